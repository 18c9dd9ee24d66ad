/** TFRecord frames around messages that are written backwards. */

import { UsageError } from '../base/errors.js'
import { FOOTER_LENGTH, FRAMING_LENGTH, HEADER_LENGTH, UNCHECKED_CRC } from '../core/border/framing.js'
import { crc32c } from '../kernels/checksum.js'
import { RECORD_LIMIT } from '../scan/job/plan/memory.js'
import { Backwards } from './backwards.js'

/** A record's writer, which has written the footer: smdebug's constant instead of the payload's checksum. */
export function beginRecord(): Backwards {
  const out = new Backwards()
  out.uint32(UNCHECKED_CRC)
  return out
}

/**
 * Writes the header of a record. @param name the name for errors
 * @throws UsageError if the record is too long
 */
export function endRecord(out: Backwards, name: string): void {
  const payloadLength = out.byteLength - FOOTER_LENGTH
  if (payloadLength + FRAMING_LENGTH > RECORD_LIMIT) {
    const most = `at most ${RECORD_LIMIT - FRAMING_LENGTH} bytes in a record`
    const message = `${name}: expected ${most}, got ${payloadLength}: save it in pieces, each a tensor of its own`
    throw new UsageError(message, { tensor: name })
  }
  out.uint32(masked(crc32c(BigUint64Array.of(BigInt(payloadLength)))))
  out.uint32(0)
  out.uint32(payloadLength)
}

/** Sets the true checksum of a record's payload. */
export function seal(pieces: readonly Uint8Array[]): void {
  const last = pieces.length - 1
  let crc = 0
  for (const [i, bytes] of pieces.entries()) {
    const end = bytes.length - (i === last ? FOOTER_LENGTH : 0)
    crc = crc32c(bytes.subarray(i === 0 ? HEADER_LENGTH : 0, end), crc)
  }
  const { buffer, byteOffset, length } = pieces[last]!
  new DataView(buffer, byteOffset, length).setUint32(length - FOOTER_LENGTH, masked(crc), true)
}

/** The checksum as TFRecord stores it: rotated, with a constant added. */
function masked(crc: number): number {
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0
}
