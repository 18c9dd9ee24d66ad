/**
 * Records of an event file, as smdebug's hook writes them: an Event with one Summary.Value, in a TFRecord frame
 * (format.md "TFRecord", "Event").
 */

import { FOOTER_LENGTH, FRAMING_LENGTH, HEADER_LENGTH, UNCHECKED_CRC } from '../engine/border/framing.js'
import { dtypeNumber } from '../engine/dtype.js'
import { UsageError } from '../errors.js'
import { RECORD_LIMIT } from '../job/plan/memory.js'
import { crc32c } from '../kernels/checksum.js'
import { type DType, MODES, type Mode } from '../types.js'

/** What a record holds. */
export interface TensorRecord {
  /** Seconds since 1970. */
  readonly wallTime: number
  /** The global step. */
  readonly step: number
  readonly mode: Mode
  readonly modeStep: number
  readonly tag: string
  readonly shape: readonly number[]
  /** Elements, little-endian in C order, and their dtype; or texts, one an element. */
  readonly value: { readonly dtype: DType; readonly bytes: Uint8Array } | readonly string[]
}

/** A record in three pieces, of which only the middle one can be long. */
export interface FramedRecord {
  readonly head: Uint8Array
  readonly content: Uint8Array
  readonly tail: Uint8Array
  readonly byteLength: number
}

const utf8 = new TextEncoder()
const NOTHING = new Uint8Array(0)
/** Wire types of protobuf. */
const [VARINT, FIXED_64, BYTES] = [0, 1, 2]

/** Fields of a protobuf message of proto3, which leaves out a number that is 0. */
class Message {
  readonly #parts: Uint8Array[] = []
  byteLength = 0

  varint(field: number, value: number): this {
    if (value === 0) return this
    return this.#add(varint(field * 8 + VARINT)).#add(varint(value))
  }

  double(field: number, value: number): this {
    if (Object.is(value, 0)) return this
    return this.#add(varint(field * 8 + FIXED_64)).#add(new Uint8Array(Float64Array.of(value).buffer))
  }

  bytes(field: number, value: Uint8Array): this {
    return this.#add(varint(field * 8 + BYTES))
      .#add(varint(value.length))
      .#add(value)
  }

  text(field: number, value: string): this {
    return this.bytes(field, utf8.encode(value))
  }

  message(field: number, { done, byteLength }: Message): this {
    return this.#add(varint(field * 8 + BYTES))
      .#add(varint(byteLength))
      .#add(done())
  }

  readonly done = (): Uint8Array => {
    const bytes = new Uint8Array(this.byteLength)
    let at = 0
    for (const part of this.#parts) {
      bytes.set(part, at)
      at += part.length
    }
    return bytes
  }

  #add(part: Uint8Array): this {
    this.#parts.push(part)
    this.byteLength += part.length
    return this
  }
}

/** Base 128, the lowest digit first. Numbers up to 2^53. */
function varint(value: number): Uint8Array {
  const digits: number[] = []
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) {
      digits.push(rest)
      return Uint8Array.from(digits)
    }
    digits.push((rest % 128) + 128)
  }
}

/**
 * A record. Its content is that which was given, not a copy.
 * @param isChecked whether it has a true checksum of its payload; else smdebug's constant
 * @throws UsageError for one that is too long
 */
export function framedRecord(record: TensorRecord, isChecked: boolean): FramedRecord {
  const { wallTime, step, mode, modeStep, tag, shape, value } = record
  const dims = new Message()
  for (const size of shape) dims.message(2, new Message().varint(1, size).text(2, `${tag}_${size}`))
  const tensor = new Message()
  let content: Uint8Array = NOTHING
  if ('bytes' in value) {
    tensor.varint(1, dtypeNumber(value.dtype)).message(2, dims)
    content = value.bytes
  } else {
    // The hook leaves the dtype of texts at 0.
    tensor.message(2, dims)
    for (const text of value) tensor.text(8, text)
  }
  const contentHead = content.length === 0 ? NOTHING : lengthOf(4, content.length)
  const tensorLength = tensor.byteLength + contentHead.length + content.length
  const plugin = (name: string, text: string) => new Message().text(1, name).text(2, text)
  const metadata = new Message()
    .message(1, plugin('mode_step', `${modeStep}`))
    .message(1, plugin('mode', `${MODES.indexOf(mode) + 1}`))
  const behind = new Message().message(9, metadata).done()
  const name = new Message().text(1, tag).done()
  const valueHead = joined([name, lengthOf(8, tensorLength), tensor.done(), contentHead])
  const valueLength = valueHead.length + content.length + behind.length
  const summaryHead = lengthOf(1, valueLength)
  const eventHead = new Message().double(1, wallTime).varint(2, step).done()
  const payloadHead = joined([eventHead, lengthOf(5, summaryHead.length + valueLength), summaryHead, valueHead])
  const payloadLength = payloadHead.length + content.length + behind.length
  if (payloadLength + FRAMING_LENGTH > RECORD_LIMIT) {
    const message = `${tag}: expected at most ${RECORD_LIMIT - FRAMING_LENGTH} bytes in a record, got ${payloadLength}`
    throw new UsageError(message, { tensor: tag })
  }
  const head = new Uint8Array(HEADER_LENGTH + payloadHead.length)
  const view = new DataView(head.buffer)
  view.setBigUint64(0, BigInt(payloadLength), true)
  view.setUint32(8, masked(crc32c(head.subarray(0, 8))), true)
  head.set(payloadHead, HEADER_LENGTH)
  const tail = new Uint8Array(behind.length + FOOTER_LENGTH)
  tail.set(behind)
  const crc = isChecked ? masked(crc32c(behind, crc32c(content, crc32c(payloadHead)))) : UNCHECKED_CRC
  new DataView(tail.buffer).setUint32(behind.length, crc, true)
  return { head, content, tail, byteLength: payloadLength + FRAMING_LENGTH }
}

function lengthOf(field: number, byteLength: number): Uint8Array {
  return joined([varint(field * 8 + BYTES), varint(byteLength)])
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return bytes
}

/** The checksum as TFRecord stores it: rotated, and a constant added. */
function masked(crc: number): number {
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0
}
