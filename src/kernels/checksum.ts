/** CRC-32C, the checksum of TFRecords. */

import type { Engine } from '../core/engine.js'
import { withEngineSync } from '../core/engines.js'
import { WINDOW_BYTES } from '../scan/worker/reduce-arrays.js'
import { addressOf, allocationOf } from './allocate.js'
import { bytesOf } from './elements.js'
import { described, wrong } from './wrong.js'

/** Bytes of any kind. */
export type BytesInput = ArrayBufferView | ArrayBufferLike

/** The CRC-32C (Castagnoli; RFC 3720) of bytes. @param seed the CRC of the preceding bytes @throws UsageError */
export function crc32c(bytes: BytesInput, seed = 0): number {
  expectCrc('crc32c', seed)
  return checksum('crc32c', bytes, seed)
}

/** The CRC-32C of bytes, masked as in a TFRecord. @throws UsageError */
export function maskedCrc32c(bytes: BytesInput): number {
  const crc = checksum('maskedCrc32c', bytes, 0)
  return withEngineSync(engine => engine.maskedCrc(crc))
}

/**
 * The CRC-32C of bytes A followed by bytes B.
 * @param a the CRC of A
 * @param b the CRC of B
 * @param byteLengthB the length of B
 * @throws UsageError
 */
export function crc32cCombine(a: number, b: number, byteLengthB: number): number {
  for (const crc of [a, b]) expectCrc('crc32cCombine', crc)
  if (!Number.isSafeInteger(byteLengthB) || byteLengthB < 0) {
    throw wrong('crc32cCombine', 'a number of bytes', described(byteLengthB))
  }
  return withEngineSync(engine => engine.crc32cCombine(a, b, byteLengthB))
}

function checksum(call: string, given: BytesInput, seed: number): number {
  const bytes = bytesOf(call, given)
  const allocation = allocationOf(bytes)
  if (allocation) return allocation.engine.crc32c(addressOf(bytes), bytes.length, seed)
  return withEngineSync(engine => {
    engine.reset()
    return checksumOutside(engine, bytes, seed)
  })
}

/** The CRC of bytes outside the core's memory. */
export function checksumOutside(engine: Engine, bytes: Uint8Array, seed: number): number {
  const window = engine.reserveBytes(Math.min(WINDOW_BYTES, bytes.length))
  let crc = seed
  for (let at = 0; at < bytes.length; at += WINDOW_BYTES) {
    const piece = bytes.subarray(at, at + WINDOW_BYTES)
    engine.view(window, piece.length).set(piece)
    crc = engine.crc32c(window, piece.length, crc)
  }
  return crc
}

function expectCrc(call: string, crc: number): void {
  if (!Number.isInteger(crc) || crc < 0 || crc > 0xffffffff)
    throw wrong(call, 'a CRC from 0 to 0xffffffff', described(crc))
}
