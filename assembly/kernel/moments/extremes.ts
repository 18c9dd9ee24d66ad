// The extremes of a block, by vectors: eight elements at once, the remaining ones one by one. They have a pass of their
// own: with the accumulators of the sums there would not be enough registers, and V8 would spill some to memory,
// while a block that was just read is cheap to read again.

import { MomentsRow } from '../../../src/core/border/abi'
import { absMask, at, loadVector, maxAcross, minAcross, sum4, sumAcross } from '../lanes'
import { part, set } from './row'

const INFINITY_BITS: i32 = 0x7f800000

/**
 * Puts the extremes into `part`.
 * @returns false if there may be NaN or ±∞
 */
export function passExtremes<T>(data: usize, n: u32): bool {
  let lowest = startOf<T>(Infinity, 0, i32.MAX_VALUE, -1)
  let highest = startOf<T>(-Infinity, i32.MIN_VALUE, i32.MIN_VALUE, 0)
  let nearest = startOf<T>(Infinity, INFINITY_BITS, -1, -1)
  // For float64, a sum that is finite only if all elements are. For float32, the bits of NaN and ±∞ are extremes.
  let witness = f64x2.splat(0)
  const end = data + (<usize>n & ~7) * sizeof<T>()
  const mask = absMask<T>()
  for (let p = data; p != end; p += 8 * sizeof<T>()) {
    const x0 = loadVector<T>(p)
    const x1 = loadVector<T>(p + 16)
    let low = foldLowest<T>(x0, x1)
    let high = foldHighest<T>(x0, x1)
    let close = foldNearest<T>(magnitude<T>(x0, mask), magnitude<T>(x1, mask))
    if (sizeof<T>() == 8) {
      const x2 = loadVector<T>(p + 32)
      const x3 = loadVector<T>(p + 48)
      low = foldLowest<T>(low, foldLowest<T>(x2, x3))
      high = foldHighest<T>(high, foldHighest<T>(x2, x3))
      close = foldNearest<T>(close, foldNearest<T>(magnitude<T>(x2, mask), magnitude<T>(x3, mask)))
      if (isFloat<T>()) witness = f64x2.add(witness, sum4(x0, x1, x2, x3))
    }
    lowest = foldLowest<T>(lowest, low)
    highest = foldHighest<T>(highest, high)
    nearest = foldNearest<T>(nearest, close)
  }
  let sum = sumAcross<f64>(witness)
  if (isFloat<T>() && sizeof<T>() == 4 && maxAcross<u32>(lowest) >= 0xff800000) sum = NaN
  if (isFloat<T>() && sizeof<T>() == 4 && maxAcross<i32>(highest) >= INFINITY_BITS) sum = NaN
  setExtremes<T>(data, n, lowest, highest, nearest)
  for (let i = n & ~7; i < n; i++) sum += <f64>at<T>(data, i)
  return isFinite(sum)
}

/** The extremes of the vectors and of the remaining elements. */
// @ts-ignore: decorator
@inline
function setExtremes<T>(data: usize, n: u32, lowest: v128, highest: v128, nearest: v128): void {
  let first: f64, last: f64, closest: f64
  if (sizeof<T>() == 8) {
    first = minAcross<f64>(lowest)
    last = maxAcross<f64>(highest)
    closest = minAcross<f64>(nearest)
  } else if (isFloat<T>()) {
    const negative = maxAcross<u32>(lowest)
    const positive = maxAcross<i32>(highest)
    closest = <f64>reinterpret<f32>(minAcross<i32>(nearest))
    first = <i32>negative < 0 ? <f64>reinterpret<f32>(negative) : closest
    last = positive >= 0 ? <f64>reinterpret<f32>(positive) : -closest
  } else {
    first = <f64>minAcross<T>(lowest)
    last = <f64>maxAcross<T>(highest)
    closest = <f64>minAcross<u32>(nearest)
  }
  for (let i = n & ~7; i < n; i++) {
    const x = <f64>at<T>(data, i)
    first = x < first ? x : first
    last = x > last ? x : last
    closest = abs(x) < closest ? abs(x) : closest
  }
  set(part, MomentsRow.min, first)
  set(part, MomentsRow.max, last)
  set(part, MomentsRow.minAbs, closest)
  set(part, MomentsRow.maxAbs, max(-first, last))
}

/** Counts the elements with |x| < limit, or with x = 0 if the limit is 0. */
export function countAbsBelow<T>(data: usize, n: u32, limit: f64): f64 {
  let counts = i64x2.splat(0)
  const end = data + (<usize>n & ~7) * sizeof<T>()
  const limits = sizeof<T>() == 8 ? f64x2.splat(limit == 0 ? Number.MIN_VALUE : limit) : i32x4.splat(0)
  for (let p = data; p != end; p += 32) {
    const x0 = loadVector<T>(p)
    const x1 = loadVector<T>(p + 16)
    counts =
      sizeof<T>() == 8
        ? i64x2.sub(i64x2.sub(counts, f64x2.lt(f64x2.abs(x0), limits)), f64x2.lt(f64x2.abs(x1), limits))
        : i32x4.sub(i32x4.sub(counts, v128.eq<T>(x0, limits)), v128.eq<T>(x1, limits))
  }
  let count: i64 = sizeof<T>() == 8 ? sumAcross<i64>(counts) : sumAcross<i32>(counts)
  for (let i = n & ~7; i < n; i++) {
    const x = abs(<f64>at<T>(data, i))
    if (x < limit || x == 0) count++
  }
  return <f64>count
}

// The extremes of 64-bit elements are kept as float64. Those of float32 are kept as their bits, since integer comparisons run on
// less busy units: as unsigned integers, the lowest negative number has the largest bits; as signed ones, the highest positive
// number has. If there is no such number, the least |x| is the answer. NaN breaks this, so it must lead to `addFiltered`.

/** The extreme of no elements. */
// @ts-ignore: decorator
@inline
function startOf<T>(float64: f64, float32: i32, int32: i32, uint32: i32): v128 {
  if (sizeof<T>() == 8) return f64x2.splat(float64)
  if (isFloat<T>()) return i32x4.splat(float32)
  return i32x4.splat(isSigned<T>() ? int32 : uint32)
}

// @ts-ignore: decorator
@inline
function foldLowest<T>(a: v128, b: v128): v128 {
  if (sizeof<T>() == 8) return f64x2.pmin(a, b)
  return isFloat<T>() ? i32x4.max_u(a, b) : v128.min<T>(a, b)
}

// @ts-ignore: decorator
@inline
function foldHighest<T>(a: v128, b: v128): v128 {
  if (sizeof<T>() == 8) return f64x2.pmax(a, b)
  return isFloat<T>() ? i32x4.max_s(a, b) : v128.max<T>(a, b)
}

/** The extremes of magnitudes. */
// @ts-ignore: decorator
@inline
function foldNearest<T>(a: v128, b: v128): v128 {
  return sizeof<T>() == 8 ? f64x2.pmin(a, b) : i32x4.min_u(a, b)
}

// @ts-ignore: decorator
@inline
function magnitude<T>(x: v128, mask: v128): v128 {
  if (isFloat<T>() || sizeof<T>() == 8) return v128.and(x, mask)
  return isSigned<T>() ? i32x4.abs(x) : x
}
