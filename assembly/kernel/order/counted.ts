// Order statistics of float32, in place, for several ranks at once, by three digits of 11, 11 and 10 bits. No number is moved: each pass
// counts the next digit of those that share the digits found so far with a wanted number; the others are counted in a table
// that is never read, since a branch would be mispredicted.

const TOP_COUNTS: usize = 0
/** The table of second digits for each first digit, as an offset from MIDDLE_COUNTS; 0 if it is not wanted. */
const TOP_TABLES: usize = 4 * 2048
const MIDDLE_COUNTS: usize = 8 * 2048

/** Scratch bytes that `selectCounted` needs for this many ranks. */
export function countedScratchLength(ranks: u32): usize {
  return MIDDLE_COUNTS + <usize>(ranks + 1) * 4 * (2048 + 2048 + 1024)
}

/**
 * The k-th smallest of float32 numbers for several k, counted from 0 and less than `count`. −0 is less than 0.
 * @param numbers float64: each k, replaced by the number it selects
 * @param scratch `countedScratchLength(ranks)` bytes
 * @returns 0 if there is a NaN, which has no order
 */
export function selectCounted(data: usize, count: u32, numbers: usize, ranks: u32, scratch: usize): i32 {
  const end = data + (<usize>count << 2)
  const middleCounts = scratch + MIDDLE_COUNTS
  const middleTables = middleCounts + <usize>(ranks + 1) * 4 * 2048
  const lowCounts = middleTables + <usize>(ranks + 1) * 4 * 2048
  memory.fill(scratch, 0, countedScratchLength(ranks))

  for (let at = data; at != end; at += 4) increment(scratch + TOP_COUNTS + topOf(keyOf(at)))
  if (mayHoldNaN(scratch) && holdsNaN(data, end)) return 0
  let tables: usize = 0
  const wanted = numbers + (<usize>ranks << 3)
  for (let number = numbers; number != wanted; number += 8) {
    const k = seek(scratch + TOP_COUNTS, <u32>load<f64>(number))
    const table = scratch + TOP_TABLES + (<usize>digitFound << 2)
    if (load<u32>(table) == 0) store<u32>(table, <u32>(++tables * 4 * 2048))
    store<u32>(number, k)
    store<u32>(number, digitFound << 21, 4)
  }

  for (let at = data; at != end; at += 4) {
    const key = keyOf(at)
    increment(middleCounts + load<u32>(scratch + TOP_TABLES + topOf(key)) + middleOf(key))
  }
  tables = 0
  for (let number = numbers; number != wanted; number += 8) {
    const key = load<u32>(number, 4)
    const offset = <usize>load<u32>(scratch + TOP_TABLES + topOf(key))
    const k = seek(middleCounts + offset, load<u32>(number))
    const table = middleTables + offset + (<usize>digitFound << 2)
    if (load<u32>(table) == 0) store<u32>(table, <u32>(++tables * 4 * 1024))
    store<u32>(number, k)
    store<u32>(number, key | (digitFound << 10), 4)
  }

  for (let at = data; at != end; at += 4) {
    const key = keyOf(at)
    const middle = middleTables + load<u32>(scratch + TOP_TABLES + topOf(key)) + middleOf(key)
    increment(lowCounts + load<u32>(middle) + ((<usize>key & 1023) << 2))
  }
  for (let number = numbers; number != wanted; number += 8) {
    const key = load<u32>(number, 4)
    const middle = middleTables + load<u32>(scratch + TOP_TABLES + topOf(key)) + middleOf(key)
    seek(lowCounts + load<u32>(middle), load<u32>(number))
    store<f64>(number, <f64>numberOf(key | digitFound))
  }
  return 1
}

/** The unsigned integer that orders float32. */
// @ts-ignore: decorator
@inline
function keyOf(at: usize): u32 {
  const bits = load<i32>(at)
  return bits ^ ((bits >> 31) | i32.MIN_VALUE)
}

// @ts-ignore: decorator
@inline
function numberOf(key: u32): f32 {
  return reinterpret<f32>(<i32>key < 0 ? key ^ i32.MIN_VALUE : ~key)
}

/** A key's first digit, as bytes of a table of 32-bit numbers. */
// @ts-ignore: decorator
@inline
function topOf(key: u32): usize {
  return (<usize>key >> 19) & (2047 << 2)
}

/** The second digit of a number. */
// @ts-ignore: decorator
@inline
function middleOf(key: u32): usize {
  return (<usize>key >> 8) & (2047 << 2)
}

// @ts-ignore: decorator
@inline
function increment(at: usize): void {
  store<u32>(at, load<u32>(at) + 1)
}

/** The digit that `seek` found. */
let digitFound: u32 = 0

/** Finds the digit of the k-th among counts of digits; returns its rank among those with that digit. */
function seek(counts: usize, k: u32): u32 {
  let size = load<u32>(counts)
  for (digitFound = 0; size <= k; size = load<u32>(counts + (<usize>digitFound << 2))) {
    k -= size
    digitFound++
  }
  return k
}

/** True if any number has the first digit of an infinity, or one beyond. */
function mayHoldNaN(scratch: usize): bool {
  let count: u32 = 0
  for (let digit: usize = 0; digit < 4; digit++) {
    count |= load<u32>(scratch + TOP_COUNTS + (digit << 2)) | load<u32>(scratch + TOP_COUNTS + ((2047 - digit) << 2))
  }
  return count != 0
}

function holdsNaN(data: usize, end: usize): bool {
  let nans: u32 = 0
  for (let at = data; at != end; at += 4) nans += u32(load<f32>(at) != load<f32>(at))
  return nans != 0
}
