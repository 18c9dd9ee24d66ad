/** Decodes an Event message and its tensors. */

import { QueryError, type TrialscanError } from '../base/errors.js'
import { MODES, type Mode } from '../base/types.js'
import { Status, ValueKind } from '../core/border/abi.js'
import { FRAMING_LENGTH, HEADER_LENGTH } from '../core/border/framing.js'
import type { Engine } from '../core/engine.js'
import { withEngineSync } from '../core/engines.js'
import { type Batch, utf8Decoder } from '../core/slots.js'
import { UnfoldBudget } from '../core/values.js'
import { type TensorData, tensorData } from '../scan/job/tensor/data.js'
import { rawValue } from '../scan/worker/raw-value.js'
import type { BytesInput } from './checksum.js'
import { bytesOf } from './elements.js'
import { wrong } from './wrong.js'

/** An Event, as TensorBoard and smdebug write them. */
export interface DecodedEvent {
  /** The time in seconds since 1970. */
  readonly wallTime: number
  readonly step: number
  /** The file version, `brain.Event:2`, in the first Event of a file; otherwise undefined. */
  readonly fileVersion: string | undefined
  readonly values: readonly EventValue[]
}

/** A Value of an Event; it has one of `tensor`, `error` and `bytes`. */
export interface EventValue {
  readonly tag: string
  /** The mode that smdebug stores beside a tensor; undefined without one. */
  readonly mode: Mode | undefined
  readonly modeStep: number | undefined
  /** The tensor, or the number of a `simple_value`. */
  readonly tensor?: TensorData
  /** The reason why the tensor can't be read. */
  readonly error?: TrialscanError
  /** The encoded Value message, for anything else (a histogram, an image). */
  readonly bytes?: Uint8Array
}

/** Wire types, and the keys of the fields that are decoded here. */
const VARINT = 0
const FIXED64 = 1
const LENGTH_DELIMITED = 2
const START_GROUP = 3
const END_GROUP = 4
const FIXED32 = 5
const WALL_TIME = (1 << 3) | FIXED64
const FILE_VERSION = (3 << 3) | LENGTH_DELIMITED

/** The number of slots for Values; an Event with more is surveyed in several turns. */
const CAPACITY = 64

/**
 * Decodes an Event, which is the payload of a record in an event file.
 * @throws UsageError
 * @throws FormatError `MalformedEvent`. A tensor that can't be read is an `error` of its Value.
 */
export function decodeEvent(event: BytesInput): DecodedEvent {
  const bytes = bytesOf('decodeEvent', event)
  // The core has 32-bit addresses, and a protobuf message is shorter.
  if (bytes.length >= 2 ** 31) throw wrong('decodeEvent', 'less than 2 GiB', `${bytes.length} bytes`)
  return withEngineSync(engine => {
    engine.reset()
    const batch = engine.reserveBatch(CAPACITY)
    const frame = {
      address: engine.reserveBytes(bytes.length + FRAMING_LENGTH),
      byteLength: bytes.length + FRAMING_LENGTH,
    }
    engine.view(frame.address, frame.byteLength).set(bytes, HEADER_LENGTH)
    const values: EventValue[] = []
    const budget = new UnfoldBudget()
    let count = engine.survey.sparse(batch, frame, bytes.length, 0, 0, false)
    for (;;) {
      const slots = engine.slots(batch, CAPACITY)
      if (slots.recordStatus(0) !== Status.ok) throw slots.error(0, PLACE)
      for (let i = 0; i < Math.min(count, CAPACITY); i++) {
        // Copying a value may have grown the memory.
        if (engine.slots(batch, CAPACITY).holds(i) !== ValueKind.noValue) values.push(valueAt(engine, batch, i, budget))
      }
      if (count <= CAPACITY) return { ...headOf(bytes), step: engine.slots(batch, 1).eventStep(0), values }
      count = engine.survey.rest(batch, bytes.length)
    }
  })
}

/** Offsets are relative to the Event, which has no frame here. */
const PLACE = { url: 'event', startByte: -HEADER_LENGTH, tensor: '' }

function valueAt(engine: Engine, batch: Batch, i: number, budget: UnfoldBudget): EventValue {
  const slots = engine.slots(batch, CAPACITY)
  const tag = Buffer.from(slots.tagBytes(i), 'latin1').toString()
  const modeStep = slots.modeStep(i)
  const value = { tag, mode: MODES[slots.mode(i) - 1], modeStep: modeStep < 0 ? undefined : modeStep }
  if (slots.holds(i) !== ValueKind.tensor) return { ...value, bytes: slots.valueBytes(i) }
  if (!slots.ok(i)) return { ...value, error: slots.error(i, { ...PLACE, tensor: tag }) }
  try {
    const contents = slots.found(i)
    const strings = contents.kind === 'strings' ? engine.values.copyStrings(batch, i, contents, budget) : null
    const bytes = strings ? null : engine.values.copyElements(batch, i, contents, budget)
    return { ...value, tensor: tensorData(rawValue(contents, bytes, strings, engine)) }
  } catch (error) {
    if (error instanceof QueryError) return { ...value, error }
    throw error
  }
}

/** The fields of an Event besides its step and Summary, which the core doesn't decode. The core has checked that it is well-formed. */
function headOf(bytes: Uint8Array): Pick<DecodedEvent, 'wallTime' | 'fileVersion'> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  let at = 0
  const varint = (): number => {
    let value = 0
    for (let factor = 1; ; factor *= 128) {
      const byte = bytes[at++]!
      value += (byte & 127) * factor
      if (byte < 128) return value
    }
  }
  let wallTime = 0
  let fileVersion: string | undefined
  let depth = 0
  while (at < bytes.length) {
    const key = varint()
    const isOurs = depth === 0
    if (isOurs && key === WALL_TIME) wallTime = view.getFloat64(at, true)
    switch (key & 7) {
      case VARINT:
        varint()
        break
      case FIXED64:
        at += 8
        break
      case FIXED32:
        at += 4
        break
      case START_GROUP:
        depth++
        break
      case END_GROUP:
        depth--
        break
      default: {
        const byteLength = varint()
        if (isOurs && key === FILE_VERSION) fileVersion = utf8Decoder.decode(bytes.subarray(at, at + byteLength))
        at += byteLength
      }
    }
  }
  return { wallTime, fileVersion }
}
