/** TFRecord frames around messages that were written from their end (format.md "TFRecord"). */

import { FOOTER_LENGTH, FRAMING_LENGTH, HEADER_LENGTH, UNCHECKED_CRC } from '../engine/border/framing.js'
import { UsageError } from '../errors.js'
import { RECORD_LIMIT } from '../job/plan/memory.js'
import { crc32c } from '../kernels/checksum.js'
import type { Backwards } from './backwards.js'

/** A record in three pieces, of which only the middle one is always long. */
export interface FramedRecord {
  /** To be used before the next record is made. */
  readonly head: Uint8Array
  readonly content: Uint8Array
  /** To be used before the next record is made. */
  readonly tail: Uint8Array
  readonly byteLength: number
}

/**
 * The record of a message. Its content is that which was given, not a copy.
 * @param out the message, and behind it the room of a footer
 * @param of its content, which was left out; the length of what follows that, with the footer; whether it has a true checksum of its
 *   payload, else smdebug's constant; what errors call it
 * @throws UsageError for one that is too long
 */
export function inFrame(
  out: Backwards,
  of: { readonly content: Uint8Array; readonly tailLength: number; readonly isChecked: boolean; readonly name: string },
): FramedRecord {
  const { content, tailLength, isChecked, name } = of
  const payloadLength = out.byteLength - FOOTER_LENGTH
  if (payloadLength + FRAMING_LENGTH > RECORD_LIMIT) {
    const most = `at most ${RECORD_LIMIT - FRAMING_LENGTH} bytes in a record`
    const message = `${name}: expected ${most}, got ${payloadLength}: save it in pieces, each a tensor of its own`
    throw new UsageError(message, { tensor: name })
  }
  out.room(HEADER_LENGTH)
  const head = out.written(tailLength)
  const header = new DataView(head.buffer, head.byteOffset)
  header.setBigUint64(0, BigInt(payloadLength), true)
  header.setUint32(8, masked(crc32c(head.subarray(0, 8))), true)
  const tail = out.end(tailLength)
  let crc = UNCHECKED_CRC
  if (isChecked) {
    const crcOfHead = crc32c(head.subarray(HEADER_LENGTH))
    crc = masked(crc32c(tail.subarray(0, -FOOTER_LENGTH), crc32c(content, crcOfHead)))
  }
  new DataView(tail.buffer, tail.byteOffset).setUint32(tailLength - FOOTER_LENGTH, crc, true)
  return { head, content, tail, byteLength: payloadLength + FRAMING_LENGTH }
}

/** The checksum as TFRecord stores it: rotated, and a constant added. */
function masked(crc: number): number {
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0
}
