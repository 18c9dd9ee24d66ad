// How far apart floats of one type are, in units of the last place.
//
// Floats of one sign are ordered as their bits are. With the bits of negative ones counted downwards from 0, the distance of two
// floats is how many steps from one to the next lie between them; −0 and 0 are the same.

import { DTypeNumber } from '../../src/engine/border/abi'
import { at } from './lanes'

/** Of float32 without NaN. @param i the bits of p without the sign @param j those of q */
// @ts-ignore: decorator
@inline
export function distances32(p: v128, q: v128, i: v128, j: v128): v128 {
  // Across 0 the smaller one counts the other way: x ^ −1 − −1 is −x.
  const isAcross = i32x4.shr_s(v128.xor(p, q), 31)
  return i32x4.sub(i32x4.max_u(i, j), i32x4.sub(v128.xor(i32x4.min_u(i, j), isAcross), isAcross))
}

/** The largest distance; pairs with a NaN are left aside. @param infinity bits of the type's infinity; beyond lie the NaNs */
export function mostUlps<T>(a: usize, b: usize, n: u32, infinity: i64): f64 {
  const magnitude: i64 = i64.MAX_VALUE >> (64 - 8 * sizeof<T>())
  let most: u64 = 0
  for (let i: u32 = 0; i < n; i++) {
    const apart = ulpsApart(<i64>at<T>(a, i), <i64>at<T>(b, i), magnitude, infinity)
    if (apart != u64.MAX_VALUE) most = max(most, apart)
  }
  return <f64>most
}

/** u64.MAX_VALUE: one of them is NaN. */
// @ts-ignore: decorator
@inline
function ulpsApart(x: i64, y: i64, magnitude: i64, infinity: i64): u64 {
  const magnitudeX = x & magnitude
  const magnitudeY = y & magnitude
  if (magnitudeX > infinity || magnitudeY > infinity) return u64.MAX_VALUE
  const p = x < 0 ? -magnitudeX : magnitudeX
  const q = y < 0 ? -magnitudeY : magnitudeY
  return p > q ? <u64>(p - q) : <u64>(q - p)
}

/**
 * Counts distances by their numbers of bits: 0, 1, 2 to 3, 4 to 7 and so on. Pairs with a NaN are left aside.
 * @param counts 65 uint32
 */
export function countUlps(dtype: i32, a: usize, b: usize, n: u32, counts: usize): void {
  if (dtype == DTypeNumber.float32) ulpBits<i32>(a, b, n, 0x7f800000, counts)
  else if (dtype == DTypeNumber.float64) ulpBits<i64>(a, b, n, 0x7ff0000000000000, counts)
  else if (dtype == DTypeNumber.float16) ulpBits<i16>(a, b, n, 0x7c00, counts)
  else if (dtype == DTypeNumber.bfloat16) ulpBits<i16>(a, b, n, 0x7f80, counts)
}

function ulpBits<T>(a: usize, b: usize, n: u32, infinity: i64, counts: usize): void {
  for (let i: u32 = 0; i < n; i++) {
    const apart = ulpsApart(<i64>at<T>(a, i), <i64>at<T>(b, i), i64.MAX_VALUE >> (64 - 8 * sizeof<T>()), infinity)
    if (apart == u64.MAX_VALUE) continue
    const count = counts + ((64 - <usize>clz(apart)) << 2)
    store<u32>(count, load<u32>(count) + 1)
  }
}
