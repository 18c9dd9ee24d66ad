// A run of records per call: frame, walk, and the moments while the bytes are in the cache.

import { BLOCK_ELEMENTS, CheckLevelNumber, MomentsRow, Placement, RecordSlot, Status } from '../src/core/border/abi'
import { crc32c } from './crc32c/crc32c'
import { bytesOf, elementBits } from './dtype'
import { walk } from './event/event'
import { survey } from './event/survey'
import { readValues } from './event/values'
import { momentsAdd, momentsRepeat } from './kernel/moments/moments'
import { momentsReset } from './kernel/moments/row'
import { checkFrame, checkHeader, FRAMING_LENGTH, HEADER_LENGTH, isPayload, payloadLength } from './tfrecord'

/** A block of values that were stored one by one, made dense; large enough for the widest elements. */
const chunk: usize = memory.data(BLOCK_ELEMENTS * 16, 16)

/** Checks and walks the records of `count` slots in a row. */
export function decodeRecords(slots: usize, count: u32, level: i32): void {
  for (let i: u32 = 0; i < count; i++) decodeRecord(slots + <usize>i * RecordSlot.size, level)
}

/** Like decodeRecords; also writes the moments that `known` asks for into `count` rows. */
export function scanRecords(slots: usize, count: u32, level: i32, rows: usize, known: i32): void {
  for (let i: u32 = 0; i < count; i++) {
    const slot = slots + <usize>i * RecordSlot.size
    const row = rows + <usize>i * MomentsRow.size
    momentsReset(row)
    if (decodeRecord(slot, level)) reduceRecord(slot, row, known, 0)
  }
}

function decodeRecord(slot: usize, level: i32): bool {
  return checkFrame(slot, level) && walk(slot, payloadLength(slot))
}

/** Adds the elements of a walked record, all of it in memory, to a row of moments, and to a sketch unless that is 0. */
export function reduceRecord(slot: usize, row: usize, known: i32, sketch: usize): void {
  const kind = load<i32>(slot, RecordSlot.placement)
  const dtype = load<i32>(slot, RecordSlot.dtype)
  if (kind == Placement.content) {
    momentsAdd(dtype, load<u32>(slot, RecordSlot.data), <u32>load<f64>(slot, RecordSlot.elementCount), row, known, sketch)
  } else if (kind == Placement.values) {
    let last: usize = 0
    for (;;) {
      const count = readValues(slot, chunk, BLOCK_ELEMENTS)
      if (count == 0) break
      momentsAdd(dtype, chunk, count, row, known, sketch)
      last = chunk + bytesOf(count - 1, elementBits(dtype))
    }
    const rest = load<f64>(slot, RecordSlot.elementCount) - <f64>load<u32>(slot, RecordSlot.valueCount)
    if (rest > 0 && last != 0) momentsRepeat(dtype, last, rest, row, known, sketch)
  }
}

/**
 * Follows the frames of consecutive records and surveys each: frame, checksums, all Values. Stops at the first record with a
 * bad header, at one that is not completely in memory, and at one whose Values don't fit into the remaining slots; if that is
 * the first record, surveyRest returns the rest of its Values.
 * @param capacity of slots; `askedTornasole` of the first applies to all
 * @returns the number of slots, see survey
 */
export function surveyRecords(window: usize, byteLength: u32, slots: usize, capacity: u32): u32 {
  const tornasole = load<u32>(slots, RecordSlot.askedTornasole)
  let at: u32 = 0
  let count: u32 = 0
  while (count < capacity && byteLength - at >= FRAMING_LENGTH) {
    const slot = slots + <usize>count * RecordSlot.size
    store<u32>(slot, <u32>(window + at), RecordSlot.frame)
    store<u32>(slot, byteLength - at, RecordSlot.frameLength)
    store<u32>(slot, 0, RecordSlot.askedLength)
    store<u32>(slot, tornasole, RecordSlot.askedTornasole)
    if (!checkHeader(slot, CheckLevelNumber.minimal)) break
    const payload = payloadLength(slot)
    if (byteLength - at - FRAMING_LENGTH < payload) break
    store<u32>(slot, payload + FRAMING_LENGTH, RecordSlot.frameLength)
    const crc = crc32c(window + at + HEADER_LENGTH, payload, 0)
    const stored = load<u32>(window + at + HEADER_LENGTH + payload)
    const values = survey(slot, capacity - count, payload, 0, 0)
    if (values > capacity - count && count > 0) break
    if (!isPayload(stored, crc)) store<i32>(slot, Status.badPayloadCrc, RecordSlot.recordStatus)
    if (values > capacity - count) return values
    count += values
    at += payload + FRAMING_LENGTH
  }
  return count
}
