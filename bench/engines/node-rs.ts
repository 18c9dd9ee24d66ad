/** @node-rs/crc32: native code (Rust) behind N-API, with the CPU's crc32 instruction. */
import { crc32c as nodeRsCrc32c } from '@node-rs/crc32'
import { cut } from './plain-js.js'

export const NAME = '@node-rs/crc32'

/** The exclusive or of the checksums of consecutive stretches. */
export function crc32c(data: Uint8Array, byteLength: number): () => number {
  const buffers = cut(data, byteLength)
  return () => {
    let all = 0
    for (const buffer of buffers) all ^= nodeRsCrc32c(buffer)
    return all >>> 0
  }
}
