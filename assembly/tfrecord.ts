// TFRecord framing:
//   uint64 length | uint32 masked CRC of the length | payload | uint32 masked CRC of the payload

import { CheckLevelNumber, RecordSlot, Status } from '../src/core/border/abi'
import * as framing from '../src/core/border/framing'
import { crc32c, crc32cOfLength, mask } from './crc32c/crc32c'

/** Unsigned, as lengths are. */
export const HEADER_LENGTH: u32 = framing.HEADER_LENGTH
export const FRAMING_LENGTH: u32 = framing.FRAMING_LENGTH

/** Records why a record is refused, and at which offset of its frame. @returns false */
export function refuse(slot: usize, status: i32, offset: u32, expected: f64, got: f64): bool {
  store<i32>(slot, status, RecordSlot.status)
  store<u32>(slot, offset, RecordSlot.faultOffset)
  store<f64>(slot, expected, RecordSlot.expected)
  store<f64>(slot, got, RecordSlot.got)
  return false
}

/**
 * Checks a record's header: its checksum, and its length against `askedLength`.
 * @returns whether the header is good; if not, the slot says why
 */
export function checkHeader(slot: usize, level: i32): bool {
  const frame = <usize>load<u32>(slot, RecordSlot.frame)
  const available = load<u32>(slot, RecordSlot.frameLength)
  const wanted = load<u32>(slot, RecordSlot.askedLength)
  if (available < HEADER_LENGTH) return refuse(slot, Status.truncated, 0, max(wanted, FRAMING_LENGTH), available)
  const low = load<u32>(frame)
  const high = load<u32>(frame, 4)
  if (level >= CheckLevelNumber.minimal) {
    const stored = load<u32>(frame, 8)
    const computed = mask(crc32cOfLength(low, high))
    if (stored != computed) return refuse(slot, Status.badLengthCrc, 8, computed, stored)
  }
  // A protobuf message can't exceed 2 GiB, so a length of more than 32 bits is wrong, whatever its checksum.
  const framed = <f64>high * 4294967296 + <f64>low + FRAMING_LENGTH
  const limit: f64 = wanted != 0 ? wanted : 0xffffffff
  if (framed > limit || (wanted != 0 && framed != limit)) return refuse(slot, Status.lengthMismatch, 0, limit, framed)
  return true
}

/** The payload's length, once checkHeader has passed. */
export function payloadLength(slot: usize): u32 {
  return load<u32>(<usize>load<u32>(slot, RecordSlot.frame))
}

/**
 * Checks the frame of a record that is completely in memory.
 * @returns whether the payload can be walked; if not, the slot says why
 */
export function checkFrame(slot: usize, level: i32): bool {
  if (!checkHeader(slot, level)) return false
  const frame = <usize>load<u32>(slot, RecordSlot.frame)
  const available = load<u32>(slot, RecordSlot.frameLength)
  const payload = payloadLength(slot)
  if (available < FRAMING_LENGTH || available - FRAMING_LENGTH < payload) {
    return refuse(slot, Status.truncated, 0, <f64>payload + FRAMING_LENGTH, available)
  }
  if (level < CheckLevelNumber.full) return true
  return checkPayload(slot, crc32c(frame + HEADER_LENGTH, payload, 0), load<u32>(frame + HEADER_LENGTH + payload))
}

/** True if the stored checksum is the payload's, or the constant that stands for an uncomputed one. */
export function isPayload(stored: u32, crc: u32): bool {
  return stored == framing.UNCHECKED_CRC || stored == mask(crc)
}

/**
 * Looks for the next good header of a record that ends within the file.
 * @param available bytes in memory
 * @param left bytes from `data` to the end of the file
 * @returns its offset; without one, the first offset at which a header would not be completely in memory
 */
export function findFrame(data: usize, available: u32, left: f64): u32 {
  let at: u32 = 0
  for (; at + HEADER_LENGTH <= available; at++) {
    // Records of more than 4 GiB are refused, so the upper half of a length is zero: few offsets pass.
    if (load<u32>(data + at, 4) != 0) continue
    const low = load<u32>(data + at)
    if (<f64>at + FRAMING_LENGTH + <f64>low > left) continue
    if (load<u32>(data + at, 8) == mask(crc32cOfLength(low, 0))) break
  }
  return at
}

/** Compares the checksum computed over a payload with the one stored after it. */
export function checkPayload(slot: usize, crc: u32, stored: u32): bool {
  if (isPayload(stored, crc)) return true
  return refuse(slot, Status.badPayloadCrc, HEADER_LENGTH + payloadLength(slot), mask(crc), stored)
}
