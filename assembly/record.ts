// A run of records in one crossing of the border: frame, walk, and the moments while the bytes are in the cache.

import { elementSize } from './dtype'
import { readValues, walk } from './event'
import { momentsAdd, momentsRepeat } from './kernel/moments'
import { momentsReset } from './kernel/row'
import { Kind, Moments, Slot } from './layout'
import { checkFrame, payloadLength } from './tfrecord'

/** Values that lie one by one are made dense this many at a time: a block of kernel/moments.ts. */
const CHUNK: u32 = 4096
/** Room for a chunk of the widest elements, complex128. */
const chunk: usize = memory.data(4096 * 16, 16)

/** Checks and walks the records of `count` slots in a row. */
export function decodeRecords(slots: usize, count: u32, level: i32): void {
  for (let i: u32 = 0; i < count; i++) decodeRecord(slots + <usize>i * Slot.SIZE, level)
}

/** As decodeRecords, and writes the moments of each, as much as `known` asks for: `rows` has room for `count` of them. */
export function scanRecords(slots: usize, count: u32, level: i32, rows: usize, known: i32): void {
  for (let i: u32 = 0; i < count; i++) {
    const slot = slots + <usize>i * Slot.SIZE
    const row = rows + <usize>i * Moments.SIZE
    momentsReset(row)
    if (decodeRecord(slot, level)) reduceRecord(slot, row, known)
  }
}

function decodeRecord(slot: usize, level: i32): bool {
  return checkFrame(slot, level) && walk(slot, payloadLength(slot))
}

/** Adds the elements of a walked record, all of it in memory, to a row of moments. */
export function reduceRecord(slot: usize, row: usize, known: i32): void {
  const kind = load<i32>(slot, Slot.KIND)
  const dtype = load<i32>(slot, Slot.DTYPE)
  if (kind == Kind.CONTENT) {
    momentsAdd(dtype, load<u32>(slot, Slot.DATA), <u32>load<f64>(slot, Slot.ELEMENT_COUNT), row, known)
  } else if (kind == Kind.VALUES) {
    let last: usize = 0
    for (;;) {
      const count = readValues(slot, chunk, CHUNK)
      if (count == 0) break
      momentsAdd(dtype, chunk, count, row, known)
      last = chunk + <usize>(count - 1) * elementSize(dtype)
    }
    const rest = load<f64>(slot, Slot.ELEMENT_COUNT) - <f64>load<u32>(slot, Slot.VALUE_COUNT)
    if (rest > 0 && last != 0) momentsRepeat(dtype, last, rest, row, known)
  }
}
