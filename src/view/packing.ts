/** Numbers as small texts. */

import { deflateRawSync } from 'node:zlib'
import type { Numbers, PackedNumbers } from './data.js'

/** Packs numbers as `NumbersText` says: bytes of the same significance lie together, where they compress well. */
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
