// Records as lines of text: what the host says of them, dtype and shape, labelled numbers, and an end.

import {
  MomentsRow,
  NUMBER_BYTES,
  NumberForm,
  RecordColumn,
  RecordSlot,
  TextColumn,
  TextFormat,
  TextPiece,
} from '../src/core/border/abi'
import { copy, writeNumber } from './decimal'
import { recordAt } from './records'

/**
 * Writes lines of records that `ordinaryRecords` has passed. The rows must know what is asked for.
 * @param slots, rows count × RecordSlot and MomentsRow
 * @param records RecordColumn, and which of them in their order is the first
 * @param format TextFormat
 * @param out has space for `capacity` bytes, and TEXT_SLACK more
 * @param ends one u32 per line: where it ends, relative to `out`
 * @returns how many lines there was space for
 */
export function writeLines(
  slots: usize,
  rows: usize,
  count: u32,
  records: usize,
  first: u32,
  format: usize,
  out: usize,
  capacity: u32,
  ends: usize,
): u32 {
  const names = <usize>load<u32>(format, TextFormat.names)
  const dtypes = <usize>load<u32>(format, TextFormat.dtypes)
  const tags = <usize>load<u32>(records, RecordColumn.tag)
  const columns = <usize>load<u32>(format, TextFormat.columns)
  const columnsEnd = columns + <usize>load<u32>(format, TextFormat.columnCount) * TextColumn.size
  const isJson = load<u32>(format, TextFormat.isJson)
  const end = <usize>load<u32>(format, TextFormat.end)
  const endLength = load<u32>(format, TextFormat.endLength)
  const limit = out + capacity
  let at = out
  for (let i: u32 = 0; i < count; i++) {
    const name = names + <usize>load<u32>(tags + (recordAt(records, first + i) << 2)) * TextPiece.size
    const dtype = dtypes + <usize>load<u32>(slots, RecordSlot.dtype) * TextPiece.size
    const rank = load<u32>(slots, RecordSlot.rank)
    const most =
      load<u32>(name, TextPiece.byteLength) +
      load<u32>(format, TextFormat.placeLength) +
      load<u32>(dtype, TextPiece.byteLength) +
      (rank + 1) * NUMBER_BYTES +
      load<u32>(format, TextFormat.restLength)
    if (most > <u32>(limit - at)) return i
    at = put(at, name)
    at = put(at, format + TextFormat.place)
    at = put(at, dtype)
    at = writeShape(<usize>load<u32>(slots, RecordSlot.dims), rank, isJson, at)
    for (let column = columns; column != columnsEnd; column += TextColumn.size) {
      at = put(at, column)
      at = writeNumber(numberOf(rows, column), isJson, at)
    }
    copy(at, end, endLength)
    at += endLength
    store<u32>(ends, <u32>(at - out))
    ends += 4
    slots += RecordSlot.size
    rows += MomentsRow.size
  }
  return count
}

/** `[3,5]` as JSON, `3x5` or `scalar` as CSV. @returns where it ends */
function writeShape(dims: usize, rank: u32, isJson: u32, at: usize): usize {
  if (rank == 0 && !isJson) {
    store<u64>(at, 0x72616c616373) // scalar
    return at + 6
  }
  if (isJson) store<u8>(at++, 0x5b)
  for (let axis: u32 = 0; axis < rank; axis++) {
    if (axis > 0) store<u8>(at++, isJson ? 0x2c : 0x78)
    at = writeNumber(load<f64>(dims + (<usize>axis << 3)), isJson, at)
  }
  if (isJson) store<u8>(at++, 0x5d)
  return at
}

/** Copies a TextPiece. @returns where the copy ends */
// @ts-ignore: decorator
@inline
function put(at: usize, piece: usize): usize {
  const byteLength = load<u32>(piece, TextPiece.byteLength)
  copy(at, load<u32>(piece, TextPiece.address), byteLength)
  return at + byteLength
}

/** A number of a row of real, finite elements. @param column TextColumn, whose label is of no meaning here */
export function numberOf(row: usize, column: usize): f64 {
  const value = load<f64>(row + load<u32>(column, TextColumn.slot))
  switch (load<u32>(column, TextColumn.form)) {
    case NumberForm.slot:
      return value
    case NumberForm.root:
      return sqrt(value)
    case NumberForm.perCount:
      return max<f64>(0, value) / load<f64>(row, MomentsRow.count)
    case NumberForm.rootPerCount:
      return sqrt(max<f64>(0, value) / load<f64>(row, MomentsRow.count))
    default: {
      const product = scale(value, load<f64>(row, MomentsRow.prodExponent))
      return load<u32>(column, TextColumn.form) == NumberForm.absProduct ? abs(product) : product
    }
  }
}

/** x · 2^exponent, in the same steps as src/core/moments.ts. */
function scale(x: f64, exponent: f64): f64 {
  if (exponent > 3000) return x * Infinity
  // Of rows that are not finite it may be NaN, which can't be made a whole number.
  if (!(exponent >= -3000)) return x * 0
  for (let left = <i64>exponent; left != 0; ) {
    const step = max<i64>(-1000, min<i64>(1000, left))
    x *= reinterpret<f64>((1023 + step) << 52)
    left -= step
  }
  return x
}
