// How far apart floats of one type are, in units of the last place.
//
// Floats of one sign are ordered as their bits are. With the bits of negative ones counted downwards from 0, the distance of two
// floats is how many steps from one to the next lie between them; −0 and 0 are the same.

import { DTypeNumber } from '../../../src/core/border/abi'
import { at } from '../lanes'

/** The distance of float32 values without NaN. @param i the bits of p without the sign @param j those of q */
// @ts-ignore: decorator
@inline
export function distances32(p: v128, q: v128, i: v128, j: v128): v128 {
  // Across 0 the smaller one counts the other way: x ^ −1 − −1 is −x.
  const isAcross = i32x4.shr_s(v128.xor(p, q), 31)
  return i32x4.sub(i32x4.max_u(i, j), i32x4.sub(v128.xor(i32x4.min_u(i, j), isAcross), isAcross))
}

/** The largest distance; pairs with a NaN are left aside. 0 for types that are no floats. */
export function mostUlps(dtype: i32, a: usize, b: usize, n: u32): f64 {
  switch (dtype) {
    case DTypeNumber.float32:
      return most<i32>(a, b, n, 0x7f800000)
    case DTypeNumber.float64:
      return most<i64>(a, b, n, 0x7ff0000000000000)
    case DTypeNumber.float16:
      return most16(a, b, n, 0x7c00)
    case DTypeNumber.bfloat16:
      return most16(a, b, n, 0x7f80)
    case DTypeNumber.float8_e4m3fn:
      return most<i8>(a, b, n, 0x7e)
    case DTypeNumber.float8_e5m2:
      return most<i8>(a, b, n, 0x7c)
    default: {
      if (!hasOrder(dtype)) return 0
      let largestUlps: u64 = 0
      for (let i: usize = 0; i < n; i++) {
        const apart = stepsApart(dtype, a, b, i)
        if (apart != u64.MAX_VALUE) largestUlps = max(largestUlps, apart)
      }
      return <f64>largestUlps
    }
  }
}

/** The distances of eight floats of 16 bits; 0xffff, which is none, of pairs with a NaN. */
// @ts-ignore: decorator
@inline
function distances16(p: v128, q: v128, limit: v128): v128 {
  const magnitude = i16x8.splat(0x7fff)
  const i = v128.and(p, magnitude)
  const j = v128.and(q, magnitude)
  const isAcross = i16x8.shr_s(v128.xor(p, q), 15)
  const distance = i16x8.sub(i16x8.max_u(i, j), i16x8.sub(v128.xor(i16x8.min_u(i, j), isAcross), isAcross))
  return v128.or(distance, v128.or(i16x8.gt_s(i, limit), i16x8.gt_s(j, limit)))
}

/** The largest distance of floats of 16 bits, eight at a time. */
function most16(a: usize, b: usize, n: u32, largest: i16): f64 {
  const end = a + (<usize>(n & ~7) << 1)
  const limit = i16x8.splat(largest)
  const none = i16x8.splat(-1)
  let largestLanes = i16x8.splat(0)
  for (; a != end; a += 16, b += 16) {
    const distance = distances16(v128.load(a), v128.load(b), limit)
    largestLanes = i16x8.max_u(largestLanes, v128.andnot(distance, i16x8.eq(distance, none)))
  }
  v128.store(lanes, largestLanes)
  let largestFound: u32 = 0
  for (let lane: u32 = 0; lane < 8; lane++) largestFound = max(largestFound, <u32>at<u16>(lanes, lane))
  return max(<f64>largestFound, most<i16>(a, b, n & 7, largest))
}

const lanes: usize = memory.data(16, 16)

// @ts-ignore: decorator
@inline
function most<T>(a: usize, b: usize, n: u32, largest: i64): f64 {
  const magnitude: i64 = i64.MAX_VALUE >> (64 - 8 * sizeof<T>())
  let largestUlps: u64 = 0
  for (let i: u32 = 0; i < n; i++) {
    const apart = ulpsApart(<i64>at<T>(a, i), <i64>at<T>(b, i), magnitude, largest)
    if (apart != u64.MAX_VALUE) largestUlps = max(largestUlps, apart)
  }
  return <f64>largestUlps
}

/** @param largest bits of the type's infinity, or of its largest number; beyond lie the NaNs. @returns u64.MAX_VALUE: one of them is NaN */
// @ts-ignore: decorator
@inline
function ulpsApart(x: i64, y: i64, magnitude: i64, largest: i64): u64 {
  const magnitudeX = x & magnitude
  const magnitudeY = y & magnitude
  if (magnitudeX > largest || magnitudeY > largest) return u64.MAX_VALUE
  const p = x < 0 ? -magnitudeX : magnitudeX
  const q = y < 0 ? -magnitudeY : magnitudeY
  return p > q ? <u64>(p - q) : <u64>(q - p)
}

/** Small floats whose NaN is not above all magnitudes, or that are no whole bytes. */
function hasOrder(dtype: i32): bool {
  return (
    dtype == DTypeNumber.float8_e4m3fnuz ||
    dtype == DTypeNumber.float8_e5m2fnuz ||
    dtype == DTypeNumber.float8_e8m0fnu ||
    dtype == DTypeNumber.float4_e2m1fn
  )
}

/** The place of NaN. */
const NO_PLACE: i32 = i32.MAX_VALUE

/** The distance of the i-th elements of any type; u64.MAX_VALUE: one of them is NaN. */
function stepsApart(dtype: i32, a: usize, b: usize, i: usize): u64 {
  const p = placeOf(dtype, a, i)
  const q = placeOf(dtype, b, i)
  if (p == NO_PLACE || q == NO_PLACE) return u64.MAX_VALUE
  return <u64>abs(p - q)
}

/** The position of an element in the ascending order of its type, in which 0 is at 0. */
function placeOf(dtype: i32, data: usize, i: usize): i32 {
  if (dtype == DTypeNumber.float4_e2m1fn) {
    const bits = <i32>(load<u8>(data + (i >> 1)) >> <u8>((i & 1) << 2))
    return bits & 8 ? -(bits & 7) : bits & 7
  }
  const bits = <i32>load<u8>(data + i)
  if (dtype == DTypeNumber.float8_e8m0fnu) return bits == 0xff ? NO_PLACE : bits
  if (bits == 0x80) return NO_PLACE
  return bits > 0x7f ? -(bits & 0x7f) : bits
}

/**
 * Counts distances: of floats of 16 bits each, of others by their numbers of bits: 0, 1, 2 to 3, 4 to 7 and so on. Pairs with a NaN are
 * left aside.
 * @param counts 65,536 uint32, of which the last means nothing, or 65
 */
export function countUlps(dtype: i32, a: usize, b: usize, n: u32, counts: usize): void {
  if (dtype == DTypeNumber.float32) ulpBits<i32>(a, b, n, 0x7f800000, counts)
  else if (dtype == DTypeNumber.float64) ulpBits<i64>(a, b, n, 0x7ff0000000000000, counts)
  else if (dtype == DTypeNumber.float16) count16(a, b, n, 0x7c00, counts)
  else if (dtype == DTypeNumber.bfloat16) count16(a, b, n, 0x7f80, counts)
  else if (dtype == DTypeNumber.float8_e4m3fn) ulpBits<i8>(a, b, n, 0x7e, counts)
  else if (dtype == DTypeNumber.float8_e5m2) ulpBits<i8>(a, b, n, 0x7c, counts)
  else if (hasOrder(dtype)) for (let i: usize = 0; i < n; i++) count(stepsApart(dtype, a, b, i), counts)
}

function count16(a: usize, b: usize, n: u32, largest: i16, counts: usize): void {
  const end = a + (<usize>(n & ~7) << 1)
  const limit = i16x8.splat(largest)
  let equal: u32 = 0
  for (; a != end; a += 16, b += 16) {
    const distance = distances16(v128.load(a), v128.load(b), limit)
    if (!v128.any_true(distance)) {
      equal += 8
      continue
    }
    countFour(<u64>i64x2.extract_lane(distance, 0), counts)
    countFour(<u64>i64x2.extract_lane(distance, 1), counts)
  }
  store<u32>(counts, load<u32>(counts) + equal)
  for (let i: u32 = 0; i < (n & 7); i++) {
    const apart = ulpsApart(<i64>at<i16>(a, i), <i64>at<i16>(b, i), 0x7fff, largest)
    countOne(apart == u64.MAX_VALUE ? 0xffff : apart, counts)
  }
}

// @ts-ignore: decorator
@inline
function countFour(four: u64, counts: usize): void {
  countOne(four & 0xffff, counts)
  countOne((four >> 16) & 0xffff, counts)
  countOne((four >> 32) & 0xffff, counts)
  countOne(four >> 48, counts)
}

// @ts-ignore: decorator
@inline
function countOne(apart: u64, counts: usize): void {
  const counter = counts + (<usize>apart << 2)
  store<u32>(counter, load<u32>(counter) + 1)
}

function ulpBits<T>(a: usize, b: usize, n: u32, largest: i64, counts: usize): void {
  for (let i: u32 = 0; i < n; i++) {
    count(ulpsApart(<i64>at<T>(a, i), <i64>at<T>(b, i), i64.MAX_VALUE >> (64 - 8 * sizeof<T>()), largest), counts)
  }
}

// @ts-ignore: decorator
@inline
function count(apart: u64, counts: usize): void {
  if (apart == u64.MAX_VALUE) return
  const counter = counts + ((64 - <usize>clz(apart)) << 2)
  store<u32>(counter, load<u32>(counter) + 1)
}
