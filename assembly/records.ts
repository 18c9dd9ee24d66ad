// Records of a batch all at once: what is asked of them, and what was found.

import { MomentsRow, RecordColumn, RecordSlot, Status, TextPiece } from '../src/core/border/abi'
import { isOrdinary } from './dtype'
import { FRAMING_LENGTH } from './tfrecord'

const LONGEST: f64 = 0xffffffff

/** The record that is the i-th in the files. */
// @ts-ignore: decorator
@inline
export function recordAt(records: usize, i: u32): usize {
  const order = <usize>load<u32>(records, RecordColumn.order)
  return order == 0 ? i : load<u32>(order + (<usize>i << 2))
}

/**
 * Writes what records must be into the slots of a batch.
 * @param records RecordColumn
 * @param first of the batch, in their order
 * @param start where in the file the window begins
 * @param windowLength, available bytes asked for, and bytes that there are
 * @returns how many of them have a length that no record can have
 */
export function askRecords(
  records: usize,
  first: u32,
  count: u32,
  start: f64,
  window: usize,
  windowLength: f64,
  available: f64,
  slots: usize,
): u32 {
  const tag = <usize>load<u32>(records, RecordColumn.tag)
  const startByte = <usize>load<u32>(records, RecordColumn.startByte)
  const byteLength = <usize>load<u32>(records, RecordColumn.byteLength)
  const step = <usize>load<u32>(records, RecordColumn.step)
  const tornasole = <usize>load<u32>(records, RecordColumn.tornasole)
  const tags = <usize>load<u32>(records, RecordColumn.tags)
  let impossible: u32 = 0
  for (let i: u32 = 0; i < count; i++) {
    const record = recordAt(records, first + i)
    let length = load<f64>(byteLength + (record << 3))
    if (!(length >= FRAMING_LENGTH && length <= LONGEST)) {
      impossible++
      length = 0
    }
    const at = max<f64>(0, load<f64>(startByte + (record << 3)) - start)
    store<u32>(slots, <u32>(window + <usize>min(at, windowLength)), RecordSlot.frame)
    store<u32>(slots, <u32>max<f64>(0, min(length, available - at)), RecordSlot.frameLength)
    store<u32>(slots, <u32>length, RecordSlot.askedLength)
    const number = load<i32>(tag + (record << 2))
    // A TextPiece, as it is.
    store<u64>(slots, number < 0 ? 0 : load<u64>(tags + <usize>number * TextPiece.size), RecordSlot.askedTag)
    store<u32>(slots, load<u8>(tornasole + record), RecordSlot.askedTornasole)
    store<f64>(slots, load<f64>(step + (record << 3)), RecordSlot.askedStep)
    slots += RecordSlot.size
  }
  return impossible
}

/**
 * The records that a run begins with whose reductions all are numbers that float64 holds, made from the row as it is: see `isOrdinary` and
 * `isFiniteRow` of the host. Tells their dtypes and ranks (u8 each: no record has more than MAX_DIMENSIONS), and their dimensions one after the other,
 * as far as there is space for these.
 * @param slots, rows count × RecordSlot and MomentsRow
 * @param capacity of dims
 * @returns how many there are
 */
export function ordinaryRecords(
  slots: usize,
  rows: usize,
  count: u32,
  dtypes: usize,
  ranks: usize,
  dims: usize,
  capacity: u32,
): u32 {
  for (let i: u32 = 0; i < count; i++) {
    const dtype = load<i32>(slots, RecordSlot.dtype)
    const rank = load<u32>(slots, RecordSlot.rank)
    if (load<i32>(slots, RecordSlot.status) != Status.ok || !isOrdinary(dtype) || !isFinite(rows) || rank > capacity) return i
    capacity -= rank
    store<u8>(dtypes + i, dtype)
    store<u8>(ranks + i, rank)
    let from = <usize>load<u32>(slots, RecordSlot.dims)
    for (let axis: u32 = 0; axis < rank; axis++) {
      store<f64>(dims, load<f64>(from))
      from += 8
      dims += 8
    }
    slots += RecordSlot.size
    rows += MomentsRow.size
  }
  return count
}

function isFinite(row: usize): bool {
  const special =
    load<f64>(row, MomentsRow.nanCount) +
    load<f64>(row, MomentsRow.positiveInfinityCount) +
    load<f64>(row, MomentsRow.negativeInfinityCount)
  return load<f64>(row, MomentsRow.count) > 0 && special == 0 && !(abs(load<f64>(row, MomentsRow.exponent)) > 0)
}
