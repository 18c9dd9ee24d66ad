/** Record slots: what is expected of records, and what the core found. */

import { EngineError, type TrialscanError } from '../base/errors.js'
import type { DType } from '../base/types.js'
import { Placement, RecordSlot, Status, type ValueKind } from './border/abi.js'
import type { Address, CoreMemory, Texts } from './border/memory.js'
import { type FaultPlace, faultError } from './border/status.js'
import { dtypeOf } from './dtype.js'

/** The expected content of a record. */
export interface RecordRequest {
  /** The length of the framed record, according to the index. */
  readonly byteLength: number
  /** The index into the tags; -1 for any tag. */
  readonly tag: number
  /** The global step; negative for any. */
  readonly step: number
  /** True for a Tornasole trial, which labelled float16 as int32. */
  readonly tornasole?: boolean
}

/** The actual content of a record. */
export interface RecordContents {
  readonly dtype: DType
  readonly shape: readonly number[]
  readonly elementCount: number
  /** The number of values that are stored individually, or of strings. If it is below the number of elements, the last one is repeated. */
  readonly valueCount: number
  /** The storage of the elements: contiguous, individually in a `*_val` field, as strings, or absent (no elements). */
  readonly kind: keyof typeof Placement
  /** The offset of the elements in the record. */
  readonly dataOffset: number
  readonly dataByteLength: number
  readonly mode: number
  readonly modeStep: number
  readonly eventStep: number
  /** The time in seconds since 1970; 0 if the Event has none. */
  readonly wallTime: number
}

/** A number of records in the core's memory, their slots and, when asked for, their rows of moments. */
export interface Batch {
  readonly slots: Address
  readonly rows: Address
  readonly capacity: number
}

/** Address and length of a record's bytes in the core's memory. */
export interface Frame {
  readonly address: number
  readonly byteLength: number
}

/** 32-bit words per record slot. */
const SLOT_WORDS = RecordSlot.size / 4
const SLOT_DOUBLES = RecordSlot.size / 8

/** Strings are kept as written, including a leading byte order mark. */
export const utf8Decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/**
 * Writes the expected content of the first `count` records of a batch into their slots. `frame` returns the address and length of the
 * i-th.
 */
export function writeSlots(
  memory: CoreMemory,
  { slots }: Batch,
  count: number,
  tags: Texts,
  request: (i: number) => RecordRequest,
  frame: (i: number) => Frame,
): void {
  const words = memory.words(slots, count * SLOT_WORDS)
  const doubles = memory.doubles(slots, count * SLOT_DOUBLES)
  for (let i = 0; i < count; i++) {
    const word = i * SLOT_WORDS
    const { byteLength, tag, step, tornasole = false } = request(i)
    const { address, byteLength: available } = frame(i)
    words[word + RecordSlot.frame / 4] = address
    words[word + RecordSlot.frameLength / 4] = available
    words[word + RecordSlot.askedLength / 4] = byteLength
    words[word + RecordSlot.askedTag / 4] = tag < 0 ? 0 : tags.addresses[tag]!
    words[word + RecordSlot.askedTagLength / 4] = tag < 0 ? 0 : tags.byteLengths[tag]!
    words[word + RecordSlot.askedTornasole / 4] = tornasole ? 1 : 0
    doubles[i * SLOT_DOUBLES + RecordSlot.askedStep / 8] = step
  }
}

/** The core's results in the slots of a batch. */
export class SlotReader {
  readonly #memory: CoreMemory
  readonly #words: Uint32Array
  readonly #doubles: Float64Array
  /** The dimensions of all records. */
  readonly #everything: Float64Array

  constructor(memory: CoreMemory, { slots }: Batch, count: number) {
    this.#memory = memory
    this.#everything = memory.everything
    this.#words = memory.words(slots, count * SLOT_WORDS)
    this.#doubles = memory.doubles(slots, count * SLOT_DOUBLES)
  }

  #word(i: number, field: RecordSlot): number {
    return this.#words[i * SLOT_WORDS + field / 4]!
  }

  #double(i: number, field: RecordSlot): number {
    return this.#doubles[i * SLOT_DOUBLES + field / 8]!
  }

  status(i: number): Status {
    return this.#word(i, RecordSlot.status)
  }

  ok(i: number): boolean {
    return this.status(i) === Status.ok
  }

  /** `more` or `tail` if a sparse walk needs more of the head, or the tail; otherwise null. */
  needs(i: number): 'more' | 'tail' | null {
    const status = this.status(i)
    return status === Status.needMore ? 'more' : status === Status.needTail ? 'tail' : null
  }

  dtypeNumber(i: number): number {
    return this.#word(i, RecordSlot.dtype)
  }

  /** Surveys only: the status of the record as a whole. */
  recordStatus(i: number): Status {
    return this.#word(i, RecordSlot.recordStatus)
  }

  /** The address of the record. */
  frame(i: number): number {
    return this.#word(i, RecordSlot.frame)
  }

  /** Surveys only: the bytes of the record, its frame included. */
  frameByteLength(i: number): number {
    return this.#word(i, RecordSlot.frameLength)
  }

  /** Surveys only: the content of the Value. */
  holds(i: number): ValueKind {
    return this.#word(i, RecordSlot.valueKind)
  }

  eventStep(i: number): number {
    return this.#double(i, RecordSlot.eventStep)
  }

  wallTime(i: number): number {
    return this.#double(i, RecordSlot.wallTime)
  }

  mode(i: number): number {
    return this.#word(i, RecordSlot.mode)
  }

  modeStep(i: number): number {
    return this.#double(i, RecordSlot.modeStep)
  }

  /** The bytes of the record's tag, one per character: a key for lookups. */
  tagBytes(i: number): string {
    const byteLength = this.#word(i, RecordSlot.tagLength)
    return byteLength === 0 ? '' : this.#memory.latin1(this.#word(i, RecordSlot.tag) as Address, byteLength)
  }

  /** A copy of the record's encoded Value. */
  valueBytes(i: number): Uint8Array {
    const address = this.#word(i, RecordSlot.value) as Address
    return this.#memory.view(address, this.#word(i, RecordSlot.valueLength)).slice()
  }

  dataOffset(i: number): number {
    return this.#word(i, RecordSlot.dataOffset)
  }

  dataByteLength(i: number): number {
    return this.#word(i, RecordSlot.dataLength)
  }

  /** The address of the elements, if they are contiguous. */
  dataAddress(i: number): Address {
    return this.#word(i, RecordSlot.data) as Address
  }

  shape(i: number): number[] {
    const rank = this.rank(i)
    const shape: number[] = []
    // Spreading a typed array takes ten times as long: 3 % of a scan of small tensors.
    for (let axis = 0; axis < rank; axis++) shape.push(this.dimension(i, axis))
    return shape
  }

  rank(i: number): number {
    return this.#word(i, RecordSlot.rank)
  }

  /** A number of the shape. */
  dimension(i: number, axis: number): number {
    return this.#everything[this.#word(i, RecordSlot.dims) / 8 + axis]!
  }

  found(i: number): RecordContents {
    const dtype = dtypeOf(this.dtypeNumber(i))
    if (dtype === undefined)
      throw new EngineError(`expected a known data type from the core, got number ${this.dtypeNumber(i)}`)
    return {
      dtype,
      shape: this.shape(i),
      elementCount: this.#double(i, RecordSlot.elementCount),
      valueCount: this.#word(i, RecordSlot.valueCount),
      kind: Placement[this.#word(i, RecordSlot.placement)] as RecordContents['kind'],
      dataOffset: this.dataOffset(i),
      dataByteLength: this.dataByteLength(i),
      mode: this.mode(i),
      modeStep: this.modeStep(i),
      eventStep: this.eventStep(i),
      wallTime: this.wallTime(i),
    }
  }

  /** The error of the i-th record. */
  error(i: number, place: FaultPlace): TrialscanError {
    const status = this.status(i)
    // A record that was refused before the walk has no tag: the slot still has that of an earlier job.
    const tagLength = status === Status.tagMismatch ? Math.min(this.#word(i, RecordSlot.tagLength), 1000) : 0
    const tag =
      tagLength === 0 ? '' : utf8Decoder.decode(this.#memory.view(this.#word(i, RecordSlot.tag) as Address, tagLength))
    const faultOffset = this.#word(i, RecordSlot.faultOffset)
    const [expected, got] = [this.#double(i, RecordSlot.expected), this.#double(i, RecordSlot.got)]
    return faultError({ status, faultOffset, expected, got, tag }, place)
  }
}
