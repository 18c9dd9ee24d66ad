/**
 * The bytes that make a checkpoint's elements a record: the frame and the messages that stand before the elements in a
 * record of smdebug's, and the end of its frame. So checkpoints are read in the same way.
 */

import type { DType } from '../../../base/types.js'
import { FRAMING_LENGTH, UNCHECKED_CRC } from '../../../core/border/framing.js'
import { dtypeNumber } from '../../../core/dtype.js'

const utf8 = new TextEncoder()

/** The step takes as many bytes whatever it is, so that equal steps have equal lengths. */
const STEP_BYTES = 8

/** The masked checksum of a payload that was never computed. */
export const RECORD_END = new Uint8Array(Uint32Array.of(UNCHECKED_CRC).buffer)

/** @param dataByteLength of the elements that follow */
export function recordHead(
  step: number,
  name: string,
  dtype: DType,
  shape: readonly number[],
  dataByteLength: number,
): Uint8Array {
  const tag = utf8.encode(name)
  const dims = shape.map(size => [0x08, ...varint(size)])
  const shapeBytes = dims.flatMap(dim => [0x12, ...varint(dim.length), ...dim])
  const proto = [0x08, ...varint(dtypeNumber(dtype)), 0x12, ...varint(shapeBytes.length), ...shapeBytes]
  // A field without bytes is left out.
  if (dataByteLength > 0) proto.push(0x22, ...varint(dataByteLength))
  const tensorLength = proto.length + dataByteLength
  const tensor = [0x42, ...varint(tensorLength), ...proto]
  const tagHead = [0x0a, ...varint(tag.length)]
  const valueLength = tagHead.length + tag.length + tensor.length + dataByteLength
  const value = [0x0a, ...varint(valueLength)]
  const summaryLength = value.length + valueLength
  const event = [0x10, ...paddedStep(step), 0x2a, ...varint(summaryLength)]
  const payloadLength = event.length + summaryLength
  const frame = new Uint8Array(12)
  const view = new DataView(frame.buffer)
  view.setUint32(0, payloadLength % 2 ** 32, true)
  view.setUint32(4, Math.floor(payloadLength / 2 ** 32), true)
  view.setUint32(8, masked(crc32c(frame.subarray(0, 8))), true)
  const head = new Uint8Array(payloadLength - dataByteLength + FRAMING_LENGTH - RECORD_END.length)
  let at = 0
  for (const piece of [frame, event, value, tagHead, tag, tensor]) {
    head.set(piece, at)
    at += piece.length
  }
  return head
}

/** Base 128, the lowest digit first. */
function varint(value: number): number[] {
  const digits: number[] = []
  let rest = value
  for (; rest >= 128; rest = Math.floor(rest / 128)) digits.push((rest % 128) + 128)
  digits.push(rest)
  return digits
}

function paddedStep(step: number): number[] {
  const digits = varint(step)
  while (digits.length < STEP_BYTES) {
    digits[digits.length - 1]! |= 0x80
    digits.push(0)
  }
  return digits
}

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte
  for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f63b78 : 0)
  return crc
})

/** CRC-32C of eight bytes. The core's would need memory of its own for them. */
function crc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff
  for (const byte of bytes) crc = TABLE[(crc ^ byte) & 0xff]! ^ (crc >>> 8)
  return ~crc >>> 0
}

/** TFRecord's mask. */
function masked(crc: number): number {
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0
}
