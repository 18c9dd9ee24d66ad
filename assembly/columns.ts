// Rows of moments as columns, for tables.

import { MomentsRow, TextColumn } from '../src/core/border/abi'
import { numberOf } from './lines'
import { recordAt } from './records'
import { compress } from './snappy'

/**
 * Numbers of records that `ordinaryRecords` has passed, each to its record's place in a column.
 * @param records RecordColumn, and which of them in their order is the first
 * @param columns columnCount × TextColumn, whose labels are of no meaning
 * @param out columnCount × apart f64
 */
export function numberColumns(
  rows: usize,
  count: u32,
  records: usize,
  first: u32,
  columns: usize,
  columnCount: u32,
  apart: u32,
  out: usize,
): void {
  const columnsEnd = columns + <usize>columnCount * TextColumn.size
  for (let i: u32 = 0; i < count; i++) {
    let to = out + (recordAt(records, first + i) << 3)
    for (let column = columns; column != columnsEnd; column += TextColumn.size) {
      store<f64>(to, numberOf(rows, column))
      to += <usize>apart << 3
    }
    rows += MomentsRow.size
  }
}

/**
 * Doubles as a page of Parquet holds them, in the encoding BYTE_STREAM_SPLIT and compressed by snappy: all first bytes, all
 * second ones, …, since those that say little compress well next to each other.
 * @param scratch 8 × count bytes
 * @param seen, out as for `compress`
 * @returns bytes written
 */
export function packDoubles(doubles: usize, count: u32, scratch: usize, seen: usize, out: usize): u32 {
  for (let i: usize = 0; i < count; i++) {
    let bits = load<u64>(doubles + (i << 3))
    let to = scratch + i
    for (let byte = 0; byte < 8; byte++) {
      store<u8>(to, bits)
      bits >>= 8
      to += count
    }
  }
  return compress(scratch, count << 3, seen, out)
}

/**
 * Whole numbers as Parquet has levels and indices of dictionaries: the hybrid of runs of one number and of packed bits.
 * @param numbers count × u32, none of more than `width` bits
 * @param out has space for 5 bytes a number, and 16 more
 * @returns bytes written
 */
export function packIntegers(numbers: usize, count: u32, width: u32, out: usize): u32 {
  let at = out
  /** The first value that is not written yet. */
  let rest: u32 = 0
  let i: u32 = 0
  while (i < count) {
    const number = load<u32>(numbers + (<usize>i << 2))
    let end = i + 1
    while (end < count && load<u32>(numbers + (<usize>end << 2)) == number) end++
    if (end - i < 8 && width > 0) {
      i += 8
      continue
    }
    at = packBits(numbers, rest, i, count, width, at)
    at = writeVarint((end - i) << 1, at)
    for (let bits: u32 = 0; bits < width; bits += 8) store<u8>(at++, number >> bits)
    i = rest = end
  }
  return <u32>(packBits(numbers, rest, i, count, width, at) - out)
}

/** Groups of eight; what the last lacks is 0. @returns where they end */
function packBits(numbers: usize, from: u32, to: u32, count: u32, width: u32, at: usize): usize {
  if (from == to) return at
  at = writeVarint((((to - from) >> 3) << 1) | 1, at)
  let bits: u64 = 0
  let bitCount: u32 = 0
  for (let i = from; i < to; i++) {
    if (i < count) bits |= <u64>load<u32>(numbers + (<usize>i << 2)) << bitCount
    bitCount += width
    while (bitCount >= 8) {
      store<u8>(at++, bits)
      bits >>= 8
      bitCount -= 8
    }
  }
  return at
}

function writeVarint(number: u32, at: usize): usize {
  while (number >= 0x80) {
    store<u8>(at++, number | 0x80)
    number >>= 7
  }
  store<u8>(at, number)
  return at + 1
}
