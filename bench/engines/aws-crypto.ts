/** @aws-crypto/crc32c: a byte table in JavaScript. */
import { crc32c as awsCrc32c } from '@aws-crypto/crc32c'
import { cut } from './plain-js.js'

export const NAME = '@aws-crypto/crc32c'

/** The exclusive or of the checksums of consecutive stretches. */
export function crc32c(data: Uint8Array, byteLength: number): () => number {
  const buffers = cut(data, byteLength)
  return () => {
    let all = 0
    for (const buffer of buffers) all ^= awsCrc32c(buffer)
    return all >>> 0
  }
}
