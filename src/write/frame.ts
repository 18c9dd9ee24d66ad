/** TFRecord frames around messages that were written backwards. */

import { UsageError } from '../base/errors.js'
import { FOOTER_LENGTH, FRAMING_LENGTH, HEADER_LENGTH, UNCHECKED_CRC } from '../core/border/framing.js'
import { crc32c } from '../kernels/checksum.js'
import { RECORD_LIMIT } from '../scan/job/plan/memory.js'
import type { Backwards } from './backwards.js'

/** A record in three pieces, of which only the middle one can be long. */
export interface FramedRecord {
  /** Valid until the next record is made. */
  readonly head: Uint8Array
  readonly content: Uint8Array
  /** Valid until the next record is made. */
  readonly tail: Uint8Array
  readonly byteLength: number
}

/**
 * Frames a message, with smdebug's constant instead of the payload's checksum. The content is not copied.
 * @param out the message, followed by room for the footer
 * @param rest the content that was left out, the length of what follows it (with the footer), and a name for errors
 * @throws UsageError if the record is too long
 */
export function inFrame(
  out: Backwards,
  rest: { readonly content: Uint8Array; readonly tailLength: number; readonly name: string },
): FramedRecord {
  const { content, tailLength, name } = rest
  const payloadLength = out.byteLength - FOOTER_LENGTH
  if (payloadLength + FRAMING_LENGTH > RECORD_LIMIT) {
    const most = `at most ${RECORD_LIMIT - FRAMING_LENGTH} bytes in a record`
    const message = `${name}: expected ${most}, got ${payloadLength}: save it in pieces, each a tensor of its own`
    throw new UsageError(message, { tensor: name })
  }
  out.room(HEADER_LENGTH)
  out.setUint32(0, payloadLength)
  out.setUint32(4, 0)
  out.setUint32(8, masked(crc32c(BigUint64Array.of(BigInt(payloadLength)))))
  out.setUint32(-FOOTER_LENGTH, UNCHECKED_CRC)
  const [head, tail] = [out.written(tailLength), out.end(tailLength)]
  return { head, content, tail, byteLength: payloadLength + FRAMING_LENGTH }
}

/** Sets the true checksum of a record's payload. */
export function seal(pieces: readonly Uint8Array[]): void {
  const last = pieces.length - 1
  let crc = 0
  for (let i = 0; i <= last; i++) {
    const bytes = pieces[i]!
    const end = bytes.length - (i === last ? FOOTER_LENGTH : 0)
    crc = crc32c(bytes.subarray(i === 0 ? HEADER_LENGTH : 0, end), crc)
  }
  const [bytes, stored] = [pieces[last]!, masked(crc)]
  for (let i = 0; i < FOOTER_LENGTH; i++) bytes[bytes.length - FOOTER_LENGTH + i] = stored >>> (8 * i)
}

/** The checksum as TFRecord stores it: rotated, with a constant added. */
function masked(crc: number): number {
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0
}
