// Order statistics of float64 by radix selection: nothing is compared, and no input is slow.

import { isComplex } from '../../dtype'
import { widenToFloat64 } from '../widen'

/** The number of values with each digit. */
const sizes: usize = memory.data(256 * 4, 16)

/**
 * Converts any real type to float64, to select from.
 * @returns 0 if the elements can't be ordered: NaN among them, complex numbers, strings
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
 * Those that share the leading digits with the k-th are moved to the front. After the exponents few are left, so most data are
 * read twice; the worst case is eight times.
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

/** Eight bits of the unsigned integer that orders float64: the bits of negative numbers are inverted. */
// @ts-ignore: decorator
@inline
function digit(bits: i64, shift: i64): usize {
  return <usize>((bits ^ ((bits >> 63) | i64.MIN_VALUE)) >> shift) & 255
}

/** Branchless, since branches would be mispredicted. Every number is swapped; only wanted ones stay in front. */
function moveToFront(data: usize, end: usize, shift: i64, wanted: usize): void {
  let front = data
  for (let at = data; at != end; at += 8) {
    const bits = load<i64>(at)
    store<i64>(at, load<i64>(front))
    store<i64>(front, bits)
    front += usize(digit(bits, shift) == wanted) << 3
  }
}
