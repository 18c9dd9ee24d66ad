// How two tensors of float32 differ, and what is kept of it in a row: the usual case of compare.ts, without NaN and infinities.

import { DifferenceRow, DTypeNumber } from '../../../src/core/border/abi'
import { absMask, at, sumAcross } from '../lanes'
import { get, set } from '../moments/row'
import { distances32, mostUlps } from './ulps'

/** The largest distance of the last block of finite float32, in units of the last place. */
export let distance: u32 = 0

/**
 * All that is asked of float32, four at a time, if there is no NaN or infinity among them: each such pair would need more than this.
 * A quotient is computed only where it can be the largest so far, judged in float32: rounding keeps the order, so where |a − b|
 * exceeds largest · |b|, its float32 is at least that of the product, the largest rounded down.
 * @returns false, and nothing is added, if there is one
 */
export function compareFiniteFloat32(a: usize, b: usize, n: u32, row: usize): bool {
  const mask = absMask<f64>()
  const mask32 = absMask<f32>()
  let maxRelative = get(row, DifferenceRow.maxRelative)
  let relative = f32x4.splat(below(maxRelative))
  let equals = i32x4.splat(0)
  let distances = i32x4.splat(0)
  let absolute = f64x2.splat(0)
  let sums = absolute
  let dots = absolute
  let squaresA = absolute
  let squaresB = absolute
  let squaresApart = absolute
  let y = b
  const end = a + (<usize>(n & ~3) << 2)
  for (let x = a; x != end; x += 16, y += 16) {
    const p = v128.load(x)
    const q = v128.load(y)
    const same = f32x4.eq(p, q)
    equals = i32x4.sub(equals, same)
    const size = v128.and(q, mask32)
    const limit = f32x4.mul(relative, size)
    if (v128.any_true(v128.andnot(f32x4.ge(v128.and(f32x4.sub(p, q), mask32), limit), same))) {
      maxRelative = max(maxRelative, largestQuotient(x, y, 4))
      relative = f32x4.splat(below(maxRelative))
    }
    distances = i32x4.max_u(distances, distances32(p, q, v128.and(p, mask32), size))
    const p0 = f64x2.promote_low_f32x4(p)
    const q0 = f64x2.promote_low_f32x4(q)
    const p1 = f64x2.promote_low_f32x4(v128.shuffle<i32>(p, p, 2, 3, 2, 3))
    const q1 = f64x2.promote_low_f32x4(v128.shuffle<i32>(q, q, 2, 3, 2, 3))
    const apart0 = v128.and(f64x2.sub(p0, q0), mask)
    const apart1 = v128.and(f64x2.sub(p1, q1), mask)
    absolute = f64x2.pmax(absolute, f64x2.pmax(apart0, apart1))
    sums = f64x2.add(sums, f64x2.add(apart0, apart1))
    squaresApart = f64x2.add(squaresApart, f64x2.add(f64x2.mul(apart0, apart0), f64x2.mul(apart1, apart1)))
    dots = f64x2.add(dots, f64x2.add(f64x2.mul(p0, q0), f64x2.mul(p1, q1)))
    squaresA = f64x2.add(squaresA, f64x2.add(f64x2.mul(p0, p0), f64x2.mul(p1, p1)))
    squaresB = f64x2.add(squaresB, f64x2.add(f64x2.mul(q0, q0), f64x2.mul(q1, q1)))
  }
  let equal = u32(sumAcross<i32>(equals))
  let maxAbsolute = max(f64x2.extract_lane(absolute, 0), f64x2.extract_lane(absolute, 1))
  let sum = sumAcross<f64>(sums)
  let dot = sumAcross<f64>(dots)
  let squareA = sumAcross<f64>(squaresA)
  let squareB = sumAcross<f64>(squaresB)
  let squareApart = sumAcross<f64>(squaresApart)
  for (let i: u32 = 0; i < (n & 3); i++) {
    const p = <f64>at<f32>(end, i)
    const q = <f64>at<f32>(y, i)
    const apart = abs(p - q)
    equal += u32(p == q)
    maxAbsolute = max(maxAbsolute, apart)
    sum += apart
    dot += p * q
    squareA += p * p
    squareB += q * q
    squareApart += apart * apart
  }
  // What is not finite makes the sum so, as no sum of differences of finite float32 is.
  if (!isFinite(sum)) return false
  const unequal = n - equal
  if (unequal > 0 && get(row, DifferenceRow.firstUnequal) < 0) {
    let first: u32 = 0
    while (at<f32>(a, first) == at<f32>(b, first)) first++
    set(row, DifferenceRow.firstUnequal, get(row, DifferenceRow.count) + first)
  }
  const pair = i32x4.max_u(distances, v128.shuffle<i32>(distances, distances, 2, 3, 0, 1))
  distance = max(<u32>i32x4.extract_lane(pair, 0), <u32>i32x4.extract_lane(pair, 1))
  distance = max(distance, <u32>mostUlps(DTypeNumber.float32, end, y, n & 3))
  keepLargest(row, maxAbsolute, max(maxRelative, largestQuotient(end, y, n & 3)), false)
  add(row, DifferenceRow.unequalCount, unequal)
  add(row, DifferenceRow.sumAbsolute, sum)
  add(row, DifferenceRow.dot, dot)
  add(row, DifferenceRow.squaresA, squareA)
  add(row, DifferenceRow.squaresB, squareB)
  add(row, DifferenceRow.squaresApart, squareApart)
  return true
}

/** The largest |a − b| / |b| of unequal pairs. */
function largestQuotient(a: usize, b: usize, n: u32): f64 {
  let most: f64 = 0
  for (let i: u32 = 0; i < n; i++) {
    const x = <f64>at<f32>(a, i)
    const y = <f64>at<f32>(b, i)
    if (x != y) most = max(most, abs(x - y) / abs(y))
  }
  return most
}

// @ts-ignore: decorator
@inline
export function add(row: usize, slot: DifferenceRow, more: f64): void {
  set(row, slot, get(row, slot) + more)
}

/** A float32 below that, to judge by; of an infinity none can be larger. */
// @ts-ignore: decorator
@inline
function below(x: f64): f32 {
  return x == Infinity ? f32(Infinity) : <f32>min(x * (1 - 2.0 ** -23), <f64>f32.MAX_VALUE)
}

/** An infinite difference is infinite in relation to anything; NaN, once found, stays. */
export function keepLargest(row: usize, absolute: f64, relative: f64, isNan: bool): void {
  set(row, DifferenceRow.maxAbsolute, max(get(row, DifferenceRow.maxAbsolute), isNan ? NaN : absolute))
  set(row, DifferenceRow.maxRelative, max(get(row, DifferenceRow.maxRelative), isNan ? NaN : absolute == Infinity ? Infinity : relative))
}

export function keepUlps(row: usize, most: f64): void {
  set(row, DifferenceRow.maxUlps, max(get(row, DifferenceRow.maxUlps), most))
}
