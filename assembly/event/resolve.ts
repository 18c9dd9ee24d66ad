// Checks what a walk found against what was asked for, and the bytes against the shape.

import { DTypeNumber, MAX_DIMENSIONS, Placement, RecordSlot, Status } from '../../src/core/border/abi'
import { elementBits } from '../dtype'
import { HEADER_LENGTH, refuse } from '../tfrecord'
import * as wire from '../wire'
import { isHalfRead, readValues } from './values'

/** Up to here JavaScript can count one by one. */
export const MAX_ELEMENTS: f64 = 9007199254740992

/** Checks the content of a record against the request, and the bytes against the shape. */
export function resolve(slot: usize): bool {
  // Mode and mode step are not compared with the index file: the hook may write a record under the next mode (as real
  // trials show), but its step is always that of its file.
  const step = load<f64>(slot, RecordSlot.eventStep)
  const askedStep = load<f64>(slot, RecordSlot.askedStep)
  if (askedStep >= 0 && askedStep != step) return refusePayload(slot, Status.stepMismatch, 0, askedStep, step)
  const count = load<f64>(slot, RecordSlot.elementCount)
  if (isMislabelledHalf(slot, count)) store<i32>(slot, DTypeNumber.float16, RecordSlot.dtype)
  const dtype = load<i32>(slot, RecordSlot.dtype)
  if (isNaN(count)) {
    const got = load<f64>(slot, RecordSlot.got)
    return refusePayload(slot, Status.badShape, load<u32>(slot, RecordSlot.faultOffset), MAX_DIMENSIONS, got)
  }
  if (count > MAX_ELEMENTS) return refusePayload(slot, Status.badShape, 0, MAX_ELEMENTS, count)
  if (load<i32>(slot, RecordSlot.placement) == Placement.strings) return checkCount(slot, count)
  const bits = elementBits(dtype)
  if (bits == 0) return refusePayload(slot, Status.unknownDType, 0, 0, dtype)
  if (load<i32>(slot, RecordSlot.placement) == Placement.content) {
    const bytes = <f64>load<u32>(slot, RecordSlot.dataLength)
    const expected = Math.ceil((count * bits) / 8)
    if (bytes == expected) return true
    return refusePayload(slot, Status.shapeMismatch, load<u32>(slot, RecordSlot.dataOffset), expected, bytes)
  }
  store<i32>(slot, Placement.values, RecordSlot.placement)
  const values = readValues(slot, 0, 0xffffffff)
  if (wire.status() != Status.ok) return refusePayload(slot, wire.status(), valuePosition(slot) + wire.faultOffset(), 0, 0)
  if (isHalfRead) return refusePayload(slot, Status.shapeMismatch, valuePosition(slot), count, <f64>values + 0.5)
  store<u32>(slot, 0, RecordSlot.cursor)
  store<u32>(slot, 0, RecordSlot.tensorEnd)
  store<u32>(slot, 0, RecordSlot.packedEnd)
  store<u32>(slot, values, RecordSlot.valueCount)
  return checkCount(slot, count)
}

/** The offset in the payload at which the slot's Value begins. */
function valuePosition(slot: usize): u32 {
  const value = <usize>load<u32>(slot, RecordSlot.value)
  if (wire.isInTail(value)) return wire.tailPosition(value)
  return <u32>value - load<u32>(slot, RecordSlot.frame) - HEADER_LENGTH
}

/** Tornasole labelled float16 as int32. In any other trial, int32 with two bytes per element is corrupt. */
function isMislabelledHalf(slot: usize, count: f64): bool {
  return (
    load<u32>(slot, RecordSlot.askedTornasole) != 0 &&
    load<i32>(slot, RecordSlot.dtype) == DTypeNumber.int32 &&
    load<i32>(slot, RecordSlot.placement) == Placement.content &&
    <f64>load<u32>(slot, RecordSlot.dataLength) == count * 2
  )
}

/** Values stored one by one: as many as the shape has elements, or fewer but at least one; the last one is repeated. */
function checkCount(slot: usize, count: f64): bool {
  const values = load<u32>(slot, RecordSlot.valueCount)
  if (<f64>values > count || (values == 0 && count > 0)) {
    return refusePayload(slot, Status.shapeMismatch, 0, count, values)
  }
  return true
}

/** Refuses a record because of the byte at an offset of its payload. */
export function refusePayload(slot: usize, status: i32, offset: u32, expected: f64, got: f64): bool {
  return refuse(slot, status, HEADER_LENGTH + offset, expected, got)
}
