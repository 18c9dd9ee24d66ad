/**
 * The core as the rest of trialscan sees it: records in, rows of moments or values out. One instance a thread. Every
 * job starts with `reset`, reserves what it needs, and copies its results out.
 */

import { EngineError, QueryError, type TrialscanError } from '../errors.js'
import type { DType } from '../types.js'
import {
  BLOCK_ELEMENTS,
  KnownMoments,
  MomentsRow,
  Placement,
  RecordSlot,
  Status,
  UNCHECKED_CRC,
  type ValueKind,
} from './abi.js'
import { dtypeNumber, dtypeOf, elementByteLength } from './dtype.js'
import { LAYOUT, type Layout } from './layout.js'
import { LineTable, type LineTableOptions } from './lines.js'
import { type Address, CoreMemory } from './memory.js'
import { type Core, instantiateCore } from './module.js'
import { type FaultPlace, faultError } from './status.js'

export {
  BLOCK_ELEMENTS,
  FRAMING_LENGTH,
  HEADER_LENGTH,
  KnownMoments as KNOWN,
  type KnownMoments as Known,
} from './abi.js'

/** What a record is asked to be. */
export interface Asked {
  /** Bytes of the framed record, as the index says. */
  readonly byteLength: number
  /** Index into the tags; -1 for any tag. */
  readonly tag: number
  /** The global step; negative for any. */
  readonly step: number
  /** Whether the trial is Tornasole's, which called float16 int32. */
  readonly tornasole?: boolean
}

/** What a record turned out to hold. */
export interface Found {
  readonly dtype: DType
  readonly shape: readonly number[]
  readonly elementCount: number
  /** Of values that lie one by one, and of strings: how many there are. If fewer than elements, the last stands for the rest. */
  readonly valueCount: number
  /** How the elements lie: in one piece, one by one in a `*_val` field, as strings, or not at all (no elements). */
  readonly kind: keyof typeof Placement
  /** Where the elements begin, from the start of the record. */
  readonly dataOffset: number
  readonly dataByteLength: number
  readonly mode: number
  readonly modeStep: number
  readonly eventStep: number
}

/**
 * Room for what unfolds: a record of a hundred bytes can stand for any number of elements, since the last of its values
 * stands for the rest.
 */
export class UnfoldRoom {
  readonly #byteLength: number
  #left: number

  /** @param byteLength for all values together */
  constructor(byteLength = UNFOLD_LIMIT) {
    this.#byteLength = byteLength
    this.#left = byteLength
  }

  /** @throws QueryError `ValueTooLarge` if there is not so much left */
  take(byteLength: number): void {
    if (byteLength > this.#left) {
      throw new QueryError(
        'ValueTooLarge',
        `expected values that unfold to at most ${this.#byteLength} bytes in all, got one of ${byteLength} bytes, most of ` +
          'which the last of the saved ones stands for; its reductions can be scanned',
        { byteLength, unfoldLimit: this.#byteLength },
      )
    }
    this.#left -= byteLength
  }

  give(byteLength: number): void {
    this.#left += byteLength
  }
}

/** A number of records in the core's memory, their slots and, when asked for, their rows of moments. */
export interface Batch {
  readonly slots: Address
  readonly rows: Address
  readonly capacity: number
}

/** UTF-8 tags in the core's memory. */
export interface Tags {
  readonly addresses: Uint32Array
  readonly byteLengths: Uint32Array
}

/** What is close: |a − b| ≤ atol + rtol·|b|, as numpy.allclose means it. */
export interface Tolerance {
  readonly rtol: number
  readonly atol: number
  readonly equalNan: boolean
}

/** Of a record slot. */
const SLOT_WORDS = RecordSlot.size / 4
const SLOT_DOUBLES = RecordSlot.size / 8

/** What values may unfold to unless more is asked for. */
export const UNFOLD_LIMIT = 256 << 20
/** What a string takes besides its characters, about. */
const STRING_BYTES = 32

const encoder = new TextEncoder()
/** Strings are what was written, a byte order mark at their beginning included. */
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

export class Engine {
  readonly layout = LAYOUT
  readonly #core: Core
  readonly #memory: CoreMemory

  constructor() {
    this.#core = instantiateCore()
    this.#memory = new CoreMemory(this.#core)
  }

  /** Bytes of memory the instance holds. */
  get byteLength(): number {
    return this.#core.memory.buffer.byteLength
  }

  /** Forgets every reservation: the start of a job. */
  reset(): void {
    this.#memory.reset()
  }

  /** Copies tags in, for records to be held against. */
  writeTags(tags: readonly string[]): Tags {
    const encoded = tags.map(tag => encoder.encode(tag))
    const total = encoded.reduce((sum, bytes) => sum + bytes.length, 0)
    const start = this.#memory.reserve(total)
    const view = this.#memory.bytes(start, total)
    const addresses = new Uint32Array(tags.length)
    const byteLengths = new Uint32Array(tags.length)
    let at = 0
    encoded.forEach((bytes, i) => {
      view.set(bytes, at)
      addresses[i] = start + at
      byteLengths[i] = bytes.length
      at += bytes.length
    })
    return { addresses, byteLengths }
  }

  /** Room for as many records as will be decoded at once. */
  reserveBatch(capacity: number): Batch {
    return {
      slots: this.#memory.reserve(capacity * RecordSlot.size),
      rows: this.#memory.reserve(capacity * MomentsRow.size),
      capacity,
    }
  }

  /** Room for lines of text that are written from rows of moments. */
  lineTable(options: LineTableOptions): LineTable {
    const place = {
      core: this.#core,
      memory: this.#memory,
      write: (texts: readonly string[]) => this.writeTags(texts),
      powers: this.#core.POWERS.value as Address,
    }
    return new LineTable(place, options)
  }

  /** Room for bytes of files. */
  reserveBytes(byteLength: number): Address {
    return this.#memory.reserve(byteLength)
  }

  /** A view to read bytes into; it lives until the next reservation or call of the core. */
  view(address: Address, byteLength: number): Uint8Array<ArrayBuffer> {
    return this.#memory.bytes(address, byteLength)
  }

  /** Tells the slots of a batch where their records lie. `frame` gives address and bytes of the i-th. */
  ask(batch: Batch, count: number, tags: Tags, asked: (i: number) => Asked, frame: (i: number) => Frame): void {
    const words = this.#memory.words(batch.slots, count * SLOT_WORDS)
    const doubles = this.#memory.doubles(batch.slots, count * SLOT_DOUBLES)
    for (let i = 0; i < count; i++) {
      const word = i * SLOT_WORDS
      const { byteLength, tag, step, tornasole = false } = asked(i)
      const { address, byteLength: there } = frame(i)
      words[word + RecordSlot.frame / 4] = address
      words[word + RecordSlot.frameLength / 4] = there
      words[word + RecordSlot.askedLength / 4] = byteLength
      words[word + RecordSlot.askedTag / 4] = tag < 0 ? 0 : tags.addresses[tag]!
      words[word + RecordSlot.askedTagLength / 4] = tag < 0 ? 0 : tags.byteLengths[tag]!
      words[word + RecordSlot.askedTornasole / 4] = tornasole ? 1 : 0
      doubles[i * SLOT_DOUBLES + RecordSlot.askedStep / 8] = step
    }
  }

  /** Checks and walks the records of a batch. */
  decode(batch: Batch, count: number, checkLevel: number): void {
    this.#core.decodeRecords(batch.slots, count, checkLevel)
  }

  /** Checks and walks the records of a batch and writes their moments, as much as `known` asks for. */
  scan(batch: Batch, count: number, checkLevel: number, known: KnownMoments = KnownMoments.all): void {
    this.#core.scanRecords(batch.slots, count, checkLevel, batch.rows, known)
  }

  /** Runs `work` and forgets what it, or the core meanwhile, has reserved. */
  scoped<T>(work: () => T): T {
    return this.#memory.scoped(work)
  }

  /** Where reservations stand: for `release`, where what is done in between has to wait. */
  mark(): Address {
    return this.#memory.mark()
  }

  /** Forgets what was reserved since. */
  release(mark: Address): void {
    this.#memory.release(mark)
  }

  /** The moments of a batch's records: a view, to be copied before the next call. */
  rows(batch: Batch, count: number): Float64Array<ArrayBuffer> {
    return this.#memory.doubles(batch.rows, (count * MomentsRow.size) / 8)
  }

  /** Where the i-th of them lies. */
  rowAddress(batch: Batch, i: number): Address {
    return (batch.rows + i * MomentsRow.size) as Address
  }

  /** The slots of a batch after decode or scan, for reading. Valid until the next reservation or call of the core. */
  slots(batch: Batch, count: number): SlotReader {
    return new SlotReader(
      this.#memory,
      this.#memory.words(batch.slots, count * SLOT_WORDS),
      this.#memory.doubles(batch.slots, count * SLOT_DOUBLES),
    )
  }

  /**
   * Follows the frames of records that lie one after the other, checks each with its checksums, and finds all its Values:
   * a slot each, or one for a record without. Stops at the first that is not in memory as a whole or has a bad header, or
   * when the slots are used up.
   * @returns how many slots there are; more than the batch's capacity: the one record has more, see `surveyRest`
   */
  surveyRecords(batch: Batch, window: Address, there: number, tornasole: boolean): number {
    this.#memory.words(batch.slots, SLOT_WORDS)[RecordSlot.askedTornasole / 4] = tornasole ? 1 : 0
    return this.#core.surveyRecords(window, there, batch.slots, batch.capacity) >>> 0
  }

  /** Goes on with a record that has more Values than there are slots; the slots are filled anew. */
  surveyRest(batch: Batch, payloadLength: number): number {
    return this.#core.surveyRest(batch.slots, batch.capacity, payloadLength) >>> 0
  }

  /** Finds the Values of a record of which only the head and perhaps the tail are in memory. Does not look at its frame. */
  surveySparse(
    batch: Batch,
    { address, byteLength }: Frame,
    payloadLength: number,
    tail: Address | 0,
    tailLength: number,
    tornasole: boolean,
  ): number {
    const words = this.#memory.words(batch.slots, SLOT_WORDS)
    words[RecordSlot.frame / 4] = address
    words[RecordSlot.frameLength / 4] = byteLength
    words[RecordSlot.askedTornasole / 4] = tornasole ? 1 : 0
    return this.#core.survey(batch.slots, batch.capacity, payloadLength, tail, tailLength) >>> 0
  }

  /**
   * Looks for the next header that is right, of a record that ends before the file does.
   * @param left bytes from the address to the end of the file
   * @returns its offset; if there is none, the first at which a header would not be in memory as a whole
   */
  findFrame(address: Address, there: number, left: number): number {
    return this.#core.findFrame(address, there, left) >>> 0
  }

  /** Checks the header of the batch's first record, whose first bytes are in memory. */
  checkHeader(batch: Batch, checkLevel: number): boolean {
    return this.#core.checkHeader(batch.slots, checkLevel) !== 0
  }

  /** Compares a payload's computed checksum with the stored one, for the batch's first record. */
  checkPayload(batch: Batch, crc: number, stored: number): boolean {
    return this.#core.checkPayload(batch.slots, crc, stored) !== 0
  }

  /** Walks the batch's first record, of which only the head and perhaps the tail are in memory. */
  walkSparse(batch: Batch, payloadLength: number, tail: Address | 0, tailLength: number): boolean {
    return this.#core.walkSparse(batch.slots, payloadLength, tail, tailLength) !== 0
  }

  /** CRC-32C of bytes in the core's memory, continuing `crc`. */
  crc32c(address: Address, byteLength: number, crc = 0): number {
    return this.#core.crc32c(address, byteLength, crc) >>> 0
  }

  /** CRC-32C of A followed by B. */
  crc32cCombine(a: number, b: number, byteLengthB: number): number {
    return this.#core.crc32cCombine(a, b, byteLengthB) >>> 0
  }

  /** A checksum as TFRecord stores it. */
  maskedCrc(crc: number): number {
    return this.#core.mask(crc) >>> 0
  }

  /** What stands in place of a payload's checksum where the hook did not compute it. */
  get uncheckedCrc(): number {
    return UNCHECKED_CRC
  }

  /** Empties the i-th row of a batch. */
  resetRow(batch: Batch, i = 0): void {
    this.#core.momentsReset(batch.rows + i * MomentsRow.size)
  }

  /** Adds elements in the core's memory to the i-th row of a batch. */
  addToRow(
    batch: Batch,
    dtype: DType,
    data: Address,
    count: number,
    i = 0,
    known: KnownMoments = KnownMoments.all,
  ): void {
    const row = batch.rows + i * MomentsRow.size
    this.#core.momentsAdd(dtypeNumber(dtype), data, count, row, known)
  }

  /** Adds the values of the first record of a batch, which lie one by one, to the first row of another. */
  addValuesToRow(from: Batch, to: Batch, known: KnownMoments = KnownMoments.all): void {
    this.#core.reduceRecord(from.slots, to.rows, known)
  }

  /** Σ|a − b| of elements in the core's memory; NaN where one of them or ∞ − ∞ is. */
  sumAbsDifference(dtypeA: DType, a: Address, dtypeB: DType, b: Address, count: number): number {
    return this.#core.absDifference(dtypeNumber(dtypeA), a, dtypeNumber(dtypeB), b, count)
  }

  /** How many elements of a in the core's memory are not close to those of b. */
  countNotCloseAt(
    dtypeA: DType,
    a: Address,
    dtypeB: DType,
    b: Address,
    count: number,
    { rtol, atol, equalNan }: Tolerance,
  ): number {
    const [numberA, numberB] = [dtypeNumber(dtypeA), dtypeNumber(dtypeB)]
    return this.#core.allclose(numberA, a, numberB, b, count, rtol, atol, equalNan ? 1 : 0) >>> 0
  }

  /**
   * Counts the elements of each column of a matrix with lo < x < hi.
   * @param counts a uint32 for each column, which is added to
   */
  countInside(
    dtype: DType,
    data: Address,
    rows: number,
    columns: number,
    lo: number,
    hi: number,
    counts: Address,
  ): void {
    this.#core.countInside(dtypeNumber(dtype), data, rows, columns, lo, hi, counts)
  }

  /** How many of the columns were counted less often than `limit`. */
  countBelow(counts: Address, columns: number, limit: number): number {
    return this.#core.countBelow(counts, columns, limit) >>> 0
  }

  /** How many elements in the core's memory equal `value`. */
  countEqual(dtype: DType, data: Address, count: number, value: number): number {
    return this.#core.countEqual(dtypeNumber(dtype), data, count, value) >>> 0
  }

  /**
   * Sums the elements of each channel, which lie as [outer, channels, inner]; of complex ones the real parts.
   * @param sums a float64 for each channel, which is added to
   */
  sumChannels(dtype: DType, data: Address, outer: number, channels: number, inner: number, sums: Address): void {
    this.#core.sumChannels(dtypeNumber(dtype), data, outer, channels, inner, sums)
  }

  /**
   * The percentiles of elements in the core's memory, as numpy.percentile interpolates them in float64: next to an
   * infinity there is none. NaN of no elements, of complex ones, and where one of them is NaN.
   * @param q percentages, 0 to 100
   */
  percentiles(dtype: DType, data: Address, count: number, q: readonly number[]): number[] {
    const last = count - 1
    const below = q.map(percent => Math.floor(last * (percent / 100)))
    const ranks = below.flatMap(rank => [rank, Math.min(rank + 1, last)])
    const numbers = count === 0 ? null : this.#select(dtype, data, count, ranks)
    return q.map((percent, i) => {
      if (numbers === null) return NaN
      const [lo, hi] = [numbers[2 * i]!, numbers[2 * i + 1]!]
      const t = last * (percent / 100) - below[i]!
      return t < 0.5 ? lo + (hi - lo) * t : hi - (hi - lo) * (1 - t)
    })
  }

  /** The elements of some ranks, counted from 0; null where not all elements can be ordered. */
  #select(dtype: DType, data: Address, count: number, ranks: readonly number[]): number[] | null {
    if (dtype === 'float32') {
      return this.scoped(() => {
        const scratch = this.#memory.reserve(this.#core.selectScratchLength(ranks.length) >>> 0)
        const numbers = this.#memory.reserve(ranks.length * 8)
        this.#memory.doubles(numbers, ranks.length).set(ranks)
        const ordered = this.#core.selectFloat32(data, count, numbers, ranks.length, scratch) !== 0
        return ordered ? [...this.#memory.doubles(numbers, ranks.length)] : null
      })
    }
    const byteLength = count * 8
    if (byteLength >= 2 ** 32) throw tooLarge(byteLength, 'bytes')
    return this.scoped(() => {
      const numbers = this.#memory.reserve(byteLength)
      const ordered = this.#core.widenToDoubles(dtypeNumber(dtype), data, count, numbers) !== 0
      return ordered ? ranks.map(rank => this.#core.selectKth(numbers, count, rank)) : null
    })
  }

  /**
   * Merges rows of moments of parts of one tensor, in order: as much as all of them know.
   * @param rows one after the other
   */
  mergeRows(rows: readonly Float64Array[]): Float64Array<ArrayBuffer> {
    this.reset()
    const batch = this.reserveBatch(2)
    const doubles = MomentsRow.size / 8
    this.resetRow(batch, 0)
    for (const row of rows) {
      if (row.length !== doubles) throw new EngineError(`expected rows of ${doubles} numbers, got ${row.length}`)
      this.rows(batch, 2).set(row, doubles)
      this.#core.momentsMerge(batch.rows, batch.rows + MomentsRow.size)
    }
    return this.rows(batch, 1).slice()
  }

  /** The little-endian bytes of the elements of a record in memory, in C order; `slots` is where `found` was read. */
  copyElements(batch: Batch, i: number, found: Found, room = new UnfoldRoom()): Uint8Array<ArrayBuffer> {
    const size = elementByteLength(found.dtype)
    if (found.kind === 'none' || found.elementCount === 0) return new Uint8Array(0)
    if (found.kind === 'content') {
      const data = this.slots(batch, batch.capacity).dataAddress(i)
      return this.#memory.bytes(data, found.dataByteLength).slice()
    }
    if (found.valueCount < found.elementCount) room.take(found.elementCount * size)
    const out = allocate(found.elementCount * size)
    return this.scoped(() => {
      const chunk = this.#memory.reserve(BLOCK_ELEMENTS * size)
      let at = 0
      for (;;) {
        const count = this.#core.readValues(batch.slots + i * RecordSlot.size, chunk, BLOCK_ELEMENTS)
        if (count === 0) break
        out.set(this.#memory.bytes(chunk, count * size), at)
        at += count * size
      }
      // TensorFlow's rule: the last value stands for the rest of the shape. Doubles what is filled until it is full.
      let filled = at
      const last = at - size
      while (filled < out.length) {
        const copied = Math.min(filled - last, out.length - filled)
        out.copyWithin(filled, last, last + copied)
        filled += copied
      }
      return out
    })
  }

  /** The strings of a record in memory; the last one repeated as often as the shape asks for. */
  copyStrings(batch: Batch, i: number, found: Found, room = new UnfoldRoom()): string[] {
    const address = batch.slots + i * RecordSlot.size
    const strings: string[] = []
    while (this.#core.readString(address) !== 0) {
      const words = this.#memory.words(address as Address, SLOT_WORDS)
      strings.push(
        decoder.decode(this.#memory.bytes(words[RecordSlot.data / 4]! as Address, words[RecordSlot.dataLength / 4]!)),
      )
    }
    const last = strings.at(-1) ?? ''
    // Each of them is a string of its own when it has crossed a thread.
    if (strings.length < found.elementCount) room.take(found.elementCount * (STRING_BYTES + 2 * last.length))
    while (strings.length < found.elementCount) strings.push(last)
    return strings
  }

  /** Whether all strings of a record in memory pass a test; `i` is its slot. Each is seen once, whatever the shape says. */
  everyString(batch: Batch, i: number, test: (bytes: Uint8Array) => boolean): boolean {
    const address = (batch.slots + i * RecordSlot.size) as Address
    while (this.#core.readString(address) !== 0) {
      const words = this.#memory.words(address, SLOT_WORDS)
      if (!test(this.#memory.bytes(words[RecordSlot.data / 4]! as Address, words[RecordSlot.dataLength / 4]!)))
        return false
    }
    return true
  }

  /** The moments of the i-th record of a batch, which was walked and is in memory: a view, to be copied. */
  reduceSlot(batch: Batch, i: number, known: KnownMoments): Float64Array<ArrayBuffer> {
    const row = (batch.rows + i * MomentsRow.size) as Address
    this.#core.momentsReset(row)
    this.#core.reduceRecord(batch.slots + i * RecordSlot.size, row, known)
    return this.#memory.doubles(row, MomentsRow.size / 8)
  }

  /** float16 or bfloat16 bits as float32. */
  widenToFloat32(dtype: 'float16' | 'bfloat16', bits: Uint16Array): Float32Array<ArrayBuffer> {
    const out = new Float32Array(allocate(bits.length * 4).buffer)
    const step = 1 << 16
    return this.scoped(() => {
      const from = this.#memory.reserve(step * 2)
      const to = this.#memory.reserve(step * 4)
      for (let at = 0; at < bits.length; at += step) {
        const count = Math.min(step, bits.length - at)
        const source = bits.subarray(at, at + count)
        this.#memory.bytes(from, count * 2).set(new Uint8Array(source.buffer, source.byteOffset, count * 2))
        this.#core.widenToFloat32(dtypeNumber(dtype), from, count, to)
        new Uint8Array(out.buffer, at * 4, count * 4).set(this.#memory.bytes(to, count * 4))
      }
      return out
    })
  }

  /**
   * How many elements of a are not close to those of b.
   * @param a little-endian elements, as many as in b
   */
  countNotClose(
    a: { readonly dtype: DType; readonly bytes: Uint8Array },
    b: { readonly dtype: DType; readonly bytes: Uint8Array },
    tolerance: Tolerance,
  ): number {
    const sizeA = elementByteLength(a.dtype)
    const sizeB = elementByteLength(b.dtype)
    const total = a.bytes.length / sizeA
    if (total !== b.bytes.length / sizeB) {
      throw new EngineError(`expected as many elements on both sides, got ${total} and ${b.bytes.length / sizeB}`)
    }
    const step = 1 << 16
    this.reset()
    const left = this.#memory.reserve(step * sizeA)
    const right = this.#memory.reserve(step * sizeB)
    let notClose = 0
    for (let at = 0; at < total; at += step) {
      const count = Math.min(step, total - at)
      this.#memory.bytes(left, count * sizeA).set(a.bytes.subarray(at * sizeA, (at + count) * sizeA))
      this.#memory.bytes(right, count * sizeB).set(b.bytes.subarray(at * sizeB, (at + count) * sizeB))
      notClose += this.countNotCloseAt(a.dtype, left, b.dtype, right, count, tolerance)
    }
    return notClose
  }
}

/** Where a record's bytes lie in the core's memory, and how many of them there are. */
export interface Frame {
  readonly address: number
  readonly byteLength: number
}

/** What the core wrote into the slots of a batch. */
export class SlotReader {
  readonly #memory: CoreMemory
  readonly #words: Uint32Array
  readonly #doubles: Float64Array

  constructor(memory: CoreMemory, words: Uint32Array, doubles: Float64Array) {
    this.#memory = memory
    this.#words = words
    this.#doubles = doubles
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

  /** True when a sparse walk asks for more bytes of the head, or for the tail. */
  needs(i: number): 'more' | 'tail' | null {
    const status = this.status(i)
    return status === Status.needMore ? 'more' : status === Status.needTail ? 'tail' : null
  }

  dtypeNumber(i: number): number {
    return this.#word(i, RecordSlot.dtype)
  }

  /** Of a survey: the record as a whole. */
  recordStatus(i: number): Status {
    return this.#word(i, RecordSlot.recordStatus)
  }

  /** Where the record lies in the core's memory. */
  frame(i: number): number {
    return this.#word(i, RecordSlot.frame)
  }

  /** Of a survey: the bytes of the record, its frame included. */
  frameByteLength(i: number): number {
    return this.#word(i, RecordSlot.frameLength)
  }

  /** Of a survey: what the Value is. */
  holds(i: number): ValueKind {
    return this.#word(i, RecordSlot.valueKind)
  }

  eventStep(i: number): number {
    return this.#double(i, RecordSlot.eventStep)
  }

  mode(i: number): number {
    return this.#word(i, RecordSlot.mode)
  }

  modeStep(i: number): number {
    return this.#double(i, RecordSlot.modeStep)
  }

  /** The bytes of the record's tag, one a character: for looking it up. */
  tagBytes(i: number): string {
    const byteLength = this.#word(i, RecordSlot.tagLength)
    return byteLength === 0 ? '' : this.#memory.latin1(this.#word(i, RecordSlot.tag) as Address, byteLength)
  }

  /** A copy of the record's Value as it lies in the Event. */
  valueBytes(i: number): Uint8Array {
    const address = this.#word(i, RecordSlot.value) as Address
    return this.#memory.bytes(address, this.#word(i, RecordSlot.valueLength)).slice()
  }

  dataOffset(i: number): number {
    return this.#word(i, RecordSlot.dataOffset)
  }

  dataByteLength(i: number): number {
    return this.#word(i, RecordSlot.dataLength)
  }

  /** Where the elements of a record that holds them in one piece lie in the core's memory. */
  dataAddress(i: number): Address {
    return this.#word(i, RecordSlot.data) as Address
  }

  shape(i: number): number[] {
    const rank = this.#word(i, RecordSlot.rank)
    return rank === 0 ? [] : [...this.#memory.doubles(this.#word(i, RecordSlot.dims) as Address, rank)]
  }

  found(i: number): Found {
    const dtype = dtypeOf(this.dtypeNumber(i))
    if (dtype === undefined) throw new EngineError(`the core let the unknown data type ${this.dtypeNumber(i)} through`)
    return {
      dtype,
      shape: this.shape(i),
      elementCount: this.#double(i, RecordSlot.elementCount),
      valueCount: this.#word(i, RecordSlot.valueCount),
      kind: Placement[this.#word(i, RecordSlot.placement)] as Found['kind'],
      dataOffset: this.dataOffset(i),
      dataByteLength: this.dataByteLength(i),
      mode: this.mode(i),
      modeStep: this.modeStep(i),
      eventStep: this.eventStep(i),
    }
  }

  /** What is wrong with the i-th record. */
  error(i: number, place: FaultPlace): TrialscanError {
    const status = this.status(i)
    // A record that was refused before the walk has no tag: what the slot then holds is of an earlier job.
    const tagLength = status === Status.tagMismatch ? Math.min(this.#word(i, RecordSlot.tagLength), 1000) : 0
    const tag =
      tagLength === 0 ? '' : decoder.decode(this.#memory.bytes(this.#word(i, RecordSlot.tag) as Address, tagLength))
    const faultOffset = this.#word(i, RecordSlot.faultOffset)
    const [expected, got] = [this.#double(i, RecordSlot.expected), this.#double(i, RecordSlot.got)]
    return faultError({ status, faultOffset, expected, got, tag }, place)
  }
}

/** Bytes outside of the core's memory. @throws QueryError `ValueTooLarge` where there is no room for so many */
export function allocate(byteLength: number): Uint8Array<ArrayBuffer> {
  try {
    return new Uint8Array(byteLength)
  } catch {
    throw tooLarge(byteLength, 'bytes')
  }
}

function tooLarge(amount: number, unit: string): QueryError {
  return new QueryError(
    'ValueTooLarge',
    `expected a value that fits into memory, got one of ${amount} ${unit}; its reductions can be scanned`,
    { amount, unit },
  )
}

let shared: Engine | undefined

/** The engine of this thread, made on the first call. */
export function threadEngine(): Engine {
  shared ??= new Engine()
  return shared
}

/** Throws this thread's engine away, after an EngineError. */
export function discardEngine(): void {
  shared = undefined
}

let aside: Engine | undefined

/** Another of this thread, for what is done at a stretch: a job that waits keeps the first, and what lies in its memory. */
export function asideEngine(): Engine {
  aside ??= new Engine()
  return aside
}

/** How every engine lays out what it writes. */
export function coreLayout(): Layout {
  return LAYOUT
}
