/** Numbers as small texts. */

import { deflateRawSync } from 'node:zlib'
import type { PackedNumbers } from './data.js'

type Numbers = Float64Array<ArrayBuffer> | Float32Array<ArrayBuffer> | Uint8Array<ArrayBuffer>

/** See `PackedNumbers`. Bytes of the same place in their numbers say about the same, so that they compress well together. */
export function packed(numbers: Numbers): PackedNumbers {
  const { length, BYTES_PER_ELEMENT: width } = numbers
  const from = new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength)
  const split = new Uint8Array(from.length)
  for (let byte = 0; byte < width; byte++) {
    for (let i = 0; i < length; i++) split[byte * length + i] = from[i * width + byte]!
  }
  const type = width === 8 ? 'float64' : width === 4 ? 'float32' : 'uint8'
  return { type, length, base64: deflateRawSync(split).toString('base64') }
}

/** Explicit bits of a float32's fraction that are kept: three decimal digits. */
const KEPT_BITS = 10

/**
 * Tells apart the NaN of a tensor and the NaN that stands for no number: the former get the lowest bit of their fraction.
 * @param isNumber whether the i-th is a number of a tensor
 */
export function markNaN(
  numbers: Float64Array<ArrayBuffer> | Float32Array<ArrayBuffer>,
  isNumber: (i: number) => boolean,
): void {
  const words = new Uint32Array(numbers.buffer, numbers.byteOffset)
  const stride = words.length / Math.max(1, numbers.length)
  for (let i = 0; i < numbers.length; i++) if (Number.isNaN(numbers[i]) && isNumber(i)) words[i * stride]! |= 1
}

/** Numbers as float32, rounded to about three digits, which compress to a third. */
export function rounded(numbers: Float64Array): Float32Array<ArrayBuffer> {
  const floats = Float32Array.from(numbers)
  const bits = new Uint32Array(floats.buffer)
  const dropped = 23 - KEPT_BITS
  const half = 1 << (dropped - 1)
  const mask = -1 << dropped
  for (let i = 0; i < bits.length; i++) {
    // NaN and the infinities stay what they are.
    if ((bits[i]! & 0x7f800000) !== 0x7f800000) bits[i] = (bits[i]! + half) & mask
  }
  return floats
}
