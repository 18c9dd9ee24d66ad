// Surveys: what a record without an index entry holds, one slot per Value of its Event.

import { RecordSlot, Status, ValueKind } from '../../src/core/border/abi'
import { HEADER_LENGTH } from '../tfrecord'
import * as wire from '../wire'
import { walkValue } from './event'
import { EVENT_STEP, EVENT_SUMMARY, SUMMARY_VALUE } from './keys'
import { refusePayload, resolve } from './resolve'

// Where a survey that ran out of slots continues: the position in the payload, the end of the current Summary, and the step,
// if it has been read by then.
let surveyPosition: u32 = 0
let surveySummaryEnd: u32 = 0
let surveyStep: f64 = 0

/**
 * Walks a whole Event: one slot per Value, or a single one with ValueKind.noValue. All get `frame` and `frameLength` of the
 * first slot. A Value that can't be read has a status; if the Event itself can't be read, the first slot's `recordStatus` says
 * so, and it is the only slot. Status.needMore and needTail: see walkSparse; a hole must be in the first Value.
 * @param capacity of slots, at least one
 * @param tailBytes of the payload at `tailAt`, after a hole; 0 if there is no hole
 * @returns the number of slots. If it is more than the capacity, surveyRest returns the rest of the Values
 */
export function survey(slot: usize, capacity: u32, payloadLength: u32, tailAt: usize, tailBytes: u32): u32 {
  wire.setTail(tailAt, tailBytes, payloadLength - tailBytes)
  surveyPosition = 0
  surveySummaryEnd = 0
  surveyStep = 0
  return surveyRest(slot, capacity, payloadLength)
}

/** Continues with the Event whose Values did not fit. Fills the slots again; `frame` and `frameLength` stay. */
export function surveyRest(slot: usize, capacity: u32, payloadLength: u32): u32 {
  const frame = load<u32>(slot, RecordSlot.frame)
  const frameLength = load<u32>(slot, RecordSlot.frameLength)
  const tornasole = load<u32>(slot, RecordSlot.askedTornasole)
  const available = frameLength - HEADER_LENGTH
  const end = payloadLength
  wire.open(<usize>frame + HEADER_LENGTH, min(available, payloadLength))
  wire.seek(surveyPosition)
  openSlot(slot, frame, frameLength, tornasole)
  let count: u32 = 0
  let isFull = false
  let step = surveyStep
  let summaryEnd = surveySummaryEnd
  while (!isFull && wire.more(end)) {
    if (wire.position < summaryEnd) {
      const key = wire.readKey(summaryEnd)
      if (key != SUMMARY_VALUE) {
        wire.skip(key, summaryEnd)
        continue
      }
      const valueEnd = wire.readEnd(summaryEnd)
      const at = slot + <usize>count * RecordSlot.size
      if (count > 0) openSlot(at, frame, frameLength, tornasole)
      walkValue(at, valueEnd)
      count++
      // A malformed Value leaves the cursor where it is, and ends all loops.
      if (count == capacity && wire.more(end)) {
        surveyPosition = wire.position
        surveySummaryEnd = summaryEnd
        surveyStep = step
        isFull = true
      }
      continue
    }
    const key = wire.readKey(end)
    if (key == EVENT_SUMMARY) summaryEnd = wire.readEnd(end)
    else if (key == EVENT_STEP) step = <f64>(<i64>wire.readVarint(end))
    else wire.skip(key, end)
  }
  if (wire.status() != Status.ok) {
    const fault = wire.status()
    const offset = wire.faultOffset()
    const last = slot + <usize>(count == 0 ? 0 : count - 1) * RecordSlot.size
    const got = load<f64>(last, RecordSlot.got)
    const dataOffset = load<u32>(last, RecordSlot.dataOffset)
    const dataLength = load<u32>(last, RecordSlot.dataLength)
    openSlot(slot, frame, frameLength, tornasole)
    refusePayload(slot, fault, offset, 0, got)
    // For Status.needTail: where the tail begins.
    store<u32>(slot, dataOffset, RecordSlot.dataOffset)
    store<u32>(slot, dataLength, RecordSlot.dataLength)
    store<i32>(slot, fault, RecordSlot.recordStatus)
    return 1
  }
  const slots = max(count, 1)
  for (let i: u32 = 0; i < slots; i++) {
    const at = slot + <usize>i * RecordSlot.size
    store<f64>(at, step, RecordSlot.eventStep)
    // Reading values one by one moves the cursor, so it has to wait until the walk is over.
    if (load<i32>(at, RecordSlot.valueKind) == ValueKind.tensor) resolve(at)
  }
  return isFull ? capacity + 1 : slots
}

function openSlot(slot: usize, frame: u32, frameLength: u32, tornasole: u32): void {
  memory.fill(slot, 0, RecordSlot.size)
  store<u32>(slot, frame, RecordSlot.frame)
  store<u32>(slot, frameLength, RecordSlot.frameLength)
  store<u32>(slot, tornasole, RecordSlot.askedTornasole)
  store<f64>(slot, -1, RecordSlot.askedStep)
  store<f64>(slot, -1, RecordSlot.modeStep)
}
