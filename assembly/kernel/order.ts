// Order statistics, by the digits of the numbers: no data make it slow, and nothing is compared.

import { isComplex } from './blocks'
import { widenToFloat64 } from './lanes'

/** How many numbers there are of each digit. */
const sizes: usize = memory.data(256 * 4, 16)

/**
 * Any real type → float64, to select from.
 * @returns 0 where not all are numbers that can be ordered: NaN, complex ones, strings
 */
export function widenToDoubles(dtype: i32, from: usize, count: u32, to: usize): i32 {
  if (isComplex(dtype) || !widenToFloat64(dtype, from, count, to)) return 0
  let nans: u32 = 0
  for (const end = to + (<usize>count << 3); to != end; to += 8) nans += u32(load<f64>(to) != load<f64>(to))
  return i32(nans == 0)
}

/**
 * The k-th smallest of float64 numbers, counted from 0; NaN beyond the last. −0 is less than 0. Reorders the numbers.
 *
 * Those that share the digits of the k-th, from the highest on, are moved to the front. As soon as the exponents are
 * done with they are few, so that most data are read through twice; at worst it is eight times.
 */
export function selectKth(data: usize, count: u32, k: u32): f64 {
  if (k >= count) return NaN
  for (let shift: i64 = 56; shift >= 0 && count > 1; shift -= 8) {
    const end = data + (<usize>count << 3)
    memory.fill(sizes, 0, 256 * 4)
    for (let at = data; at != end; at += 8) {
      const size = sizes + (digit(load<i64>(at), shift) << 2)
      store<u32>(size, load<u32>(size) + 1)
    }
    let wanted: usize = 0
    let size = load<u32>(sizes)
    while (size <= k) {
      k -= size
      size = load<u32>(sizes + (++wanted << 2))
    }
    if (size < count) moveToFront(data, end, shift, wanted)
    count = size
  }
  return load<f64>(data)
}

/** Eight bits of what orders float64 as unsigned integers: a negative number is turned upside down. */
// @ts-ignore: decorator
@inline
function digit(bits: i64, shift: i64): usize {
  return <usize>((bits ^ ((bits >> 63) | i64.MIN_VALUE)) >> shift) & 255
}

/** Without a branch, since the data decide. Every number changes places; only what is wanted stays in front. */
function moveToFront(data: usize, end: usize, shift: i64, wanted: usize): void {
  let front = data
  for (let at = data; at != end; at += 8) {
    const bits = load<i64>(at)
    store<i64>(at, load<i64>(front))
    store<i64>(front, bits)
    front += usize(digit(bits, shift) == wanted) << 3
  }
}
