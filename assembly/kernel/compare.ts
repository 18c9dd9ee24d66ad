// How two tensors differ: the largest differences, absolute, relative and in units of the last place, which elements are unequal,
// and the products that the cosine of the angle between them is made of. Elements are compared as float64; two tensors of one
// 64-bit integer type exactly.
//
// Two NaN are equal, as are two infinities of one sign: what a copy of a tensor holds does not differ from it.

import { DifferenceRow, DTypeNumber } from '../../src/engine/border/abi'
import { elementSize, isComplex } from '../dtype'
import { makeComplex } from './difference'
import { absMask, at, loadPair, sumAcross } from './lanes'
import { get, set } from './moments/row'
import { WIDENED_ELEMENTS, widened, widenToFloat64 } from './widen'

const widenedB: usize = memory.data(1024 * 16, 16)

/**
 * Adds elements to a row, which begins as zeros with `firstUnequal` -1. Ignores types that aren't numeric.
 * @param scaleA what the elements are multiplied with before they are squared, so that no square leaves the range
 */
export function compare(
  dtypeA: i32,
  a: usize,
  dtypeB: i32,
  b: usize,
  count: u32,
  scaleA: f64,
  scaleB: f64,
  row: usize,
): void {
  const sizeA = <usize>elementSize(dtypeA)
  const sizeB = <usize>elementSize(dtypeB)
  if (sizeA == 0 || sizeB == 0) return
  while (count > 0) {
    const n = min(count, WIDENED_ELEMENTS)
    compareBlock(dtypeA, a, dtypeB, b, n, scaleA, scaleB, row)
    set(row, DifferenceRow.count, get(row, DifferenceRow.count) + n)
    a += <usize>n * sizeA
    b += <usize>n * sizeB
    count -= n
  }
}

function compareBlock(
  dtypeA: i32,
  a: usize,
  dtypeB: i32,
  b: usize,
  n: u32,
  scaleA: f64,
  scaleB: f64,
  row: usize,
): void {
  if (dtypeA == DTypeNumber.float32 && dtypeB == DTypeNumber.float32) {
    compareReal<f32>(a, b, n, row)
    ulpsOfFloat32(a, b, n, row)
    return multiply<f32>(a, b, n, scaleA, scaleB, row)
  }
  widenToFloat64(dtypeA, a, n, widened)
  widenToFloat64(dtypeB, b, n, widenedB)
  if (isComplex(dtypeA) || isComplex(dtypeB)) {
    if (!isComplex(dtypeA)) makeComplex(widened, n)
    if (!isComplex(dtypeB)) makeComplex(widenedB, n)
    compareComplex(n, row)
    return multiply<f64>(widened, widenedB, 2 * n, scaleA, scaleB, row)
  }
  if (dtypeA == dtypeB && dtypeA == DTypeNumber.int64) compareInt64<i64>(a, b, n, row)
  else if (dtypeA == dtypeB && dtypeA == DTypeNumber.uint64) compareInt64<u64>(a, b, n, row)
  else compareReal<f64>(widened, widenedB, n, row)
  if (dtypeA == dtypeB) {
    if (dtypeA == DTypeNumber.float64) ulps<i64>(a, b, n, 0x7ff0000000000000, row)
    else if (dtypeA == DTypeNumber.float16) ulps<i16>(a, b, n, 0x7c00, row)
    else if (dtypeA == DTypeNumber.bfloat16) ulps<i16>(a, b, n, 0x7f80, row)
  }
  multiply<f64>(widened, widenedB, n, scaleA, scaleB, row)
}

// ---------------------------------------------------------------------------------------------------- Differences

/**
 * Two at a time. A quotient is computed only where it can be the largest so far: |a − b| ≥ largest · |b|, which rounding never
 * makes false when |a − b| / |b| is larger.
 */
function compareReal<T>(a: usize, b: usize, n: u32, row: usize): void {
  const mask = absMask<f64>()
  let absolute = f64x2.splat(get(row, DifferenceRow.maxAbsolute))
  let relative = f64x2.splat(get(row, DifferenceRow.maxRelative))
  let nan = i64x2.splat(0)
  let equal = i64x2.splat(0)
  const two: usize = 2 * sizeof<T>()
  const end = a + <usize>(n >> 1) * two
  let y = b
  for (let x = a; x != end; x += two, y += two) {
    const p = loadPair<T>(x)
    const q = loadPair<T>(y)
    const same = v128.or(f64x2.eq(p, q), v128.and(f64x2.ne(p, p), f64x2.ne(q, q)))
    const apart = v128.andnot(v128.and(f64x2.sub(p, q), mask), same)
    const size = v128.and(q, mask)
    equal = i64x2.sub(equal, same)
    nan = v128.or(nan, f64x2.ne(apart, apart))
    absolute = f64x2.pmax(absolute, apart)
    const larger = v128.andnot(f64x2.ge(apart, f64x2.mul(relative, size)), same)
    if (v128.any_true(larger)) relative = f64x2.pmax(relative, v128.and(f64x2.div(apart, size), larger))
  }
  let unequal = (n & ~1) - u32(sumAcross<i64>(equal))
  let maxAbsolute = max(f64x2.extract_lane(absolute, 0), f64x2.extract_lane(absolute, 1))
  let maxRelative = max(f64x2.extract_lane(relative, 0), f64x2.extract_lane(relative, 1))
  let isNan = v128.any_true(nan)
  if (n & 1) {
    const p = <f64>load<T>(end)
    const q = <f64>load<T>(y)
    if (!isSame(p, q)) {
      const apart = abs(p - q)
      unequal++
      isNan = isNan || isNaN(apart)
      if (apart > maxAbsolute) maxAbsolute = apart
      if (apart / abs(q) > maxRelative) maxRelative = apart / abs(q)
    }
  }
  if (unequal > 0 && get(row, DifferenceRow.firstUnequal) < 0) {
    let first: u32 = 0
    while (isSame(<f64>at<T>(a, first), <f64>at<T>(b, first))) first++
    set(row, DifferenceRow.firstUnequal, get(row, DifferenceRow.count) + first)
  }
  set(row, DifferenceRow.unequalCount, get(row, DifferenceRow.unequalCount) + unequal)
  keepLargest(row, maxAbsolute, maxRelative, isNan)
}

// @ts-ignore: decorator
@inline
function isSame(x: f64, y: f64): bool {
  return x == y || (x != x && y != y)
}

/** An infinite difference is infinite in relation to anything; NaN, once found, stays. */
function keepLargest(row: usize, absolute: f64, relative: f64, isNan: bool): void {
  set(row, DifferenceRow.maxAbsolute, max(get(row, DifferenceRow.maxAbsolute), isNan ? NaN : absolute))
  set(row, DifferenceRow.maxRelative, max(get(row, DifferenceRow.maxRelative), isNan ? NaN : absolute == Infinity ? Infinity : relative))
}

function compareInt64<T>(a: usize, b: usize, n: u32, row: usize): void {
  let maxAbsolute: f64 = 0
  let maxRelative: f64 = 0
  for (let i: u32 = 0; i < n; i++) {
    const x = at<T>(a, i)
    const y = at<T>(b, i)
    if (x == y) continue
    const apart = <f64>(x > y ? <u64>x - <u64>y : <u64>y - <u64>x)
    countUnequal(row, i)
    maxAbsolute = max(maxAbsolute, apart)
    maxRelative = max(maxRelative, apart / abs(<f64>y))
  }
  keepLargest(row, maxAbsolute, maxRelative, false)
}

/** For widened elements. A complex number with a NaN in it is NaN. */
function compareComplex(n: u32, row: usize): void {
  let maxAbsolute: f64 = 0
  let maxRelative: f64 = 0
  let isNan = false
  for (let i: u32 = 0; i < n; i++) {
    const x = at<f64>(widened, 2 * i)
    const xi = at<f64>(widened, 2 * i + 1)
    const y = at<f64>(widenedB, 2 * i)
    const yi = at<f64>(widenedB, 2 * i + 1)
    if (x == y && xi == yi) continue
    if ((isNaN(x) || isNaN(xi)) && (isNaN(y) || isNaN(yi))) continue
    // Parts that are equal infinities are not apart.
    const apart = Math.hypot(x == y ? 0 : x - y, xi == yi ? 0 : xi - yi)
    countUnequal(row, i)
    isNan = isNan || isNaN(x) || isNaN(xi) || isNaN(y) || isNaN(yi)
    maxAbsolute = max(maxAbsolute, apart)
    const relative = apart / Math.hypot(y, yi)
    if (relative > maxRelative) maxRelative = relative
  }
  keepLargest(row, maxAbsolute, maxRelative, isNan)
}

function countUnequal(row: usize, i: u32): void {
  if (get(row, DifferenceRow.firstUnequal) < 0) set(row, DifferenceRow.firstUnequal, get(row, DifferenceRow.count) + i)
  set(row, DifferenceRow.unequalCount, get(row, DifferenceRow.unequalCount) + 1)
}

// ---------------------------------------------------------------------------------------------------- Units of the last place

// Floats of one sign are ordered as their bits are. With the bits of negative ones counted downwards from 0, the distance of two
// floats is how many steps from one to the next lie between them; −0 and 0 are the same.

function ulpsOfFloat32(a: usize, b: usize, n: u32, row: usize): void {
  let most = i32x4.splat(0)
  const end = a + (<usize>(n & ~3) << 2)
  for (; a != end; a += 16, b += 16) {
    const x = v128.load(a)
    const y = v128.load(b)
    const p = ordered32(x)
    const q = ordered32(y)
    const apart = v128.bitselect(i32x4.sub(p, q), i32x4.sub(q, p), i32x4.gt_s(p, q))
    most = i32x4.max_u(most, v128.andnot(apart, v128.or(f32x4.ne(x, x), f32x4.ne(y, y))))
  }
  const pair = i32x4.max_u(most, v128.shuffle<i32>(most, most, 2, 3, 0, 1))
  const largest = max(<u32>i32x4.extract_lane(pair, 0), <u32>i32x4.extract_lane(pair, 1))
  set(row, DifferenceRow.maxUlps, max(get(row, DifferenceRow.maxUlps), <f64>largest))
  ulps<i32>(a, b, n & 3, 0x7f800000, row)
}

// @ts-ignore: decorator
@inline
function ordered32(x: v128): v128 {
  const sign = i32x4.shr_s(x, 31)
  return i32x4.sub(v128.xor(v128.and(x, absMask<f32>()), sign), sign)
}

/** @param infinity bits of the type's infinity; beyond lie the NaNs */
function ulps<T>(a: usize, b: usize, n: u32, infinity: i64, row: usize): void {
  const magnitude: i64 = i64.MAX_VALUE >> (64 - 8 * sizeof<T>())
  let most: u64 = 0
  for (let i: u32 = 0; i < n; i++) {
    const x = <i64>at<T>(a, i)
    const y = <i64>at<T>(b, i)
    const magnitudeX = x & magnitude
    const magnitudeY = y & magnitude
    if (magnitudeX > infinity || magnitudeY > infinity) continue
    const p = x < 0 ? -magnitudeX : magnitudeX
    const q = y < 0 ? -magnitudeY : magnitudeY
    most = max(most, p > q ? <u64>(p - q) : <u64>(q - p))
  }
  set(row, DifferenceRow.maxUlps, max(get(row, DifferenceRow.maxUlps), <f64>most))
}

// ---------------------------------------------------------------------------------------------------- Products

/** Adds Σab, Σa² and Σb². */
function multiply<T>(a: usize, b: usize, n: u32, scaleA: f64, scaleB: f64, row: usize): void {
  const unitA = f64x2.splat(scaleA)
  const unitB = f64x2.splat(scaleB)
  const two: usize = 2 * sizeof<T>()
  let dot0 = f64x2.splat(0)
  let dot1 = dot0
  let squaresA0 = dot0
  let squaresA1 = dot0
  let squaresB0 = dot0
  let squaresB1 = dot0
  const end = a + <usize>(n & ~3) * sizeof<T>()
  for (; a != end; a += 2 * two, b += 2 * two) {
    const x0 = f64x2.mul(loadPair<T>(a), unitA)
    const x1 = f64x2.mul(loadPair<T>(a + two), unitA)
    const y0 = f64x2.mul(loadPair<T>(b), unitB)
    const y1 = f64x2.mul(loadPair<T>(b + two), unitB)
    dot0 = f64x2.add(dot0, f64x2.mul(x0, y0))
    dot1 = f64x2.add(dot1, f64x2.mul(x1, y1))
    squaresA0 = f64x2.add(squaresA0, f64x2.mul(x0, x0))
    squaresA1 = f64x2.add(squaresA1, f64x2.mul(x1, x1))
    squaresB0 = f64x2.add(squaresB0, f64x2.mul(y0, y0))
    squaresB1 = f64x2.add(squaresB1, f64x2.mul(y1, y1))
  }
  let dot = sumAcross<f64>(f64x2.add(dot0, dot1))
  let squaresA = sumAcross<f64>(f64x2.add(squaresA0, squaresA1))
  let squaresB = sumAcross<f64>(f64x2.add(squaresB0, squaresB1))
  for (let i: u32 = 0; i < (n & 3); i++) {
    const x = <f64>at<T>(a, i) * scaleA
    const y = <f64>at<T>(b, i) * scaleB
    dot += x * y
    squaresA += x * x
    squaresB += y * y
  }
  set(row, DifferenceRow.dot, get(row, DifferenceRow.dot) + dot)
  set(row, DifferenceRow.squaresA, get(row, DifferenceRow.squaresA) + squaresA)
  set(row, DifferenceRow.squaresB, get(row, DifferenceRow.squaresB) + squaresB)
}
