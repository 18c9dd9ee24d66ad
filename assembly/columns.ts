// Rows of moments as columns, for tables.

import { MomentsRow, TextColumn } from '../src/engine/border/abi'
import { numberOf } from './lines'
import { compress } from './snappy'

/**
 * Numbers of rows, which must be as for `writeLines`.
 * @param columns columnCount × TextColumn, whose labels are of no meaning
 * @param out columnCount × count f64
 */
export function numberColumns(rows: usize, count: u32, columns: usize, columnCount: u32, out: usize): void {
  const columnsEnd = columns + <usize>columnCount * TextColumn.size
  const byteLength = <usize>count << 3
  for (let i: u32 = 0; i < count; i++) {
    let to = out + (<usize>i << 3)
    for (let column = columns; column != columnsEnd; column += TextColumn.size) {
      store<f64>(to, numberOf(rows, column))
      to += byteLength
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
