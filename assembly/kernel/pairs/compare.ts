// How two tensors differ: the largest differences, absolute, relative and in units of the last place, which elements are unequal,
// and the products that the cosine of the angle between them is made of. Elements are compared as float64; two tensors of one
// 64-bit integer type exactly.
//
// Two NaN are equal, as are two infinities of one sign: what a copy of a tensor holds does not differ from it.

import { DifferenceRow, DTypeNumber, WIDENED_ELEMENTS } from '../../../src/core/border/abi'
import { bytesOf, elementBits, isComplex } from '../../dtype'
import { allclose } from './allclose'
import { add, compareFiniteFloat32, distance, keepLargest, keepUlps } from './compare-float32'
import { makeComplex } from './difference'
import { absMask, at, sumAcross } from '../lanes'
import { get, set } from '../moments/row'
import { countUlps, mostUlps } from './ulps'
import { widened, widenToFloat32, widenToFloat64 } from '../widen'

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
  const bitsA = elementBits(dtypeA)
  const bitsB = elementBits(dtypeB)
  if (bitsA == 0 || bitsB == 0) return
  while (count > 0) {
    const n = min(count, WIDENED_ELEMENTS)
    const before = load<u64>(row, DifferenceRow.maxAbsolute)
    compareBlock(dtypeA, a, dtypeB, b, n, scaleA, scaleB, row)
    if (load<u64>(row, DifferenceRow.maxAbsolute) != before) {
      set(row, DifferenceRow.largestBlock, get(row, DifferenceRow.count))
    }
    add(row, DifferenceRow.count, n)
    a += bytesOf(n, bitsA)
    b += bytesOf(n, bitsB)
    count -= n
  }
}

/**
 * Does the same and, of each block, while it is in the cache:
 * - adds how many are not close; where rtol and atol are 0 none are counted
 * - counts the distances of the first `sampled` floats of one type in units of the last place by their numbers of bits: 0, 1, 2 to 3, 4 to 7
 *   and so on
 * @param counts 65 uint32
 */
export function differ(
  dtypeA: i32,
  a: usize,
  dtypeB: i32,
  b: usize,
  count: u32,
  rtol: f64,
  atol: f64,
  sampled: u32,
  counts: usize,
  row: usize,
): void {
  const bitsA = elementBits(dtypeA)
  const bitsB = elementBits(dtypeB)
  while (count > 0) {
    const n = min(count, WIDENED_ELEMENTS)
    compare(dtypeA, a, dtypeB, b, n, 1, 1, row)
    if (rtol != 0 || atol != 0) add(row, DifferenceRow.beyondCount, allclose(dtypeA, a, dtypeB, b, n, rtol, atol, 1))
    if (sampled > 0) countUlps(dtypeA, a, b, min(n, sampled), counts)
    a += bytesOf(n, bitsA)
    b += bytesOf(n, bitsB)
    count -= n
  }
}

/** Elements of four bits, widened. */
const wholeA: usize = memory.data(1024 * 8, 16)
const wholeB: usize = memory.data(1024 * 8, 16)
const halfRow: usize = memory.data(DifferenceRow.size, 16)

/** The pair of a block, of at most WIDENED_ELEMENTS, that is that far apart, found by halving; the first of several. */
export function placeApart(dtypeA: i32, a: usize, dtypeB: i32, b: usize, count: u32, apart: f64): u32 {
  // Halves may begin amid a byte.
  if (elementBits(dtypeA) == 4) {
    widenToFloat64(dtypeA, a, count, wholeA)
    return placeApart(DTypeNumber.float64, wholeA, dtypeB, b, count, apart)
  }
  if (elementBits(dtypeB) == 4) {
    widenToFloat64(dtypeB, b, count, wholeB)
    return placeApart(dtypeA, a, DTypeNumber.float64, wholeB, count, apart)
  }
  const bitsA = elementBits(dtypeA)
  const bitsB = elementBits(dtypeB)
  let from: u32 = 0
  while (count > 1) {
    const half = count >> 1
    memory.fill(halfRow, 0, DifferenceRow.size)
    compareBlock(dtypeA, a + bytesOf(from, bitsA), dtypeB, b + bytesOf(from, bitsB), half, 1, 1, halfRow)
    if (isSame(get(halfRow, DifferenceRow.maxAbsolute), apart)) count = half
    else {
      from += half
      count -= half
    }
  }
  return from
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
  if (isAtMostFloat32(dtypeA) && isAtMostFloat32(dtypeB) && scaleA == 1 && scaleB == 1) {
    if (compareFiniteFloat32(asFloat32(dtypeA, a, n, narrowA), asFloat32(dtypeB, b, n, narrowB), n, row)) {
      if (dtypeA != dtypeB) return
      if (dtypeA == DTypeNumber.float32) return keepUlps(row, <f64>distance)
      // Widened, bfloat16 has 16 zeros more.
      if (dtypeA == DTypeNumber.bfloat16) return keepUlps(row, <f64>(distance >> 16))
      return keepUlps(row, mostUlps(dtypeA, a, b, n))
    }
  }
  widenToFloat64(dtypeA, a, n, widened)
  widenToFloat64(dtypeB, b, n, widenedB)
  if (isComplex(dtypeA) || isComplex(dtypeB)) {
    if (!isComplex(dtypeA)) makeComplex(widened, n)
    if (!isComplex(dtypeB)) makeComplex(widenedB, n)
    compareComplex(n, row)
    return multiply(2 * n, scaleA, scaleB, row)
  }
  if (dtypeA == dtypeB && dtypeA == DTypeNumber.int64) compareInt64<i64>(a, b, n, row)
  else if (dtypeA == dtypeB && dtypeA == DTypeNumber.uint64) compareInt64<u64>(a, b, n, row)
  else compareReal(n, row)
  if (dtypeA == dtypeB) keepUlps(row, mostUlps(dtypeA, a, b, n))
  multiply(n, scaleA, scaleB, row)
}

/** Floats of 16 bits of a block as float32. */
const narrowA: usize = memory.data(WIDENED_ELEMENTS * 4, 16)
const narrowB: usize = memory.data(WIDENED_ELEMENTS * 4, 16)

/** float32, and floats of 16 bits, which all are float32, too. */
function isAtMostFloat32(dtype: i32): bool {
  return dtype == DTypeNumber.float32 || dtype == DTypeNumber.bfloat16 || dtype == DTypeNumber.float16
}

function asFloat32(dtype: i32, data: usize, n: u32, to: usize): usize {
  if (dtype == DTypeNumber.float32) return data
  widenToFloat32(dtype, data, n, to)
  return to
}

// ---------------------------------------------------------------------------------------------------- Differences

/**
 * Two at a time. A quotient is computed only where it can be the largest so far: |a − b| ≥ largest · |b|, which rounding never
 * makes false when |a − b| / |b| is larger.
 */
function compareReal(n: u32, row: usize): void {
  const mask = absMask<f64>()
  let absolute = f64x2.splat(get(row, DifferenceRow.maxAbsolute))
  let relative = f64x2.splat(get(row, DifferenceRow.maxRelative))
  let nan = i64x2.splat(0)
  let equal = i64x2.splat(0)
  let sums = f64x2.splat(0)
  const end = widened + (<usize>(n >> 1) << 4)
  let y = widenedB
  for (let x = widened; x != end; x += 16, y += 16) {
    const p = v128.load(x)
    const q = v128.load(y)
    const same = v128.or(f64x2.eq(p, q), v128.and(f64x2.ne(p, p), f64x2.ne(q, q)))
    const apart = v128.andnot(v128.and(f64x2.sub(p, q), mask), same)
    const size = v128.and(q, mask)
    equal = i64x2.sub(equal, same)
    sums = f64x2.add(sums, apart)
    nan = v128.or(nan, f64x2.ne(apart, apart))
    absolute = f64x2.pmax(absolute, apart)
    const larger = v128.andnot(f64x2.ge(apart, f64x2.mul(relative, size)), same)
    if (v128.any_true(larger)) relative = f64x2.pmax(relative, v128.and(f64x2.div(apart, size), larger))
  }
  let unequal = (n & ~1) - u32(sumAcross<i64>(equal))
  let maxAbsolute = max(f64x2.extract_lane(absolute, 0), f64x2.extract_lane(absolute, 1))
  let maxRelative = max(f64x2.extract_lane(relative, 0), f64x2.extract_lane(relative, 1))
  let isNan = v128.any_true(nan)
  let sum = sumAcross<f64>(sums)
  if (n & 1) {
    const p = load<f64>(end)
    const q = load<f64>(y)
    if (!isSame(p, q)) {
      const apart = abs(p - q)
      unequal++
      sum += apart
      isNan = isNan || isNaN(apart)
      if (apart > maxAbsolute) maxAbsolute = apart
      if (apart / abs(q) > maxRelative) maxRelative = apart / abs(q)
    }
  }
  if (unequal > 0 && get(row, DifferenceRow.firstUnequal) < 0) {
    let first: u32 = 0
    while (isSame(at<f64>(widened, first), at<f64>(widenedB, first))) first++
    set(row, DifferenceRow.firstUnequal, get(row, DifferenceRow.count) + first)
  }
  set(row, DifferenceRow.unequalCount, get(row, DifferenceRow.unequalCount) + unequal)
  add(row, DifferenceRow.sumAbsolute, sum)
  keepLargest(row, maxAbsolute, maxRelative, isNan)
}

// @ts-ignore: decorator
@inline
function isSame(x: f64, y: f64): bool {
  return x == y || (x != x && y != y)
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
    add(row, DifferenceRow.sumAbsolute, apart)
    maxAbsolute = max(maxAbsolute, apart)
    maxRelative = max(maxRelative, apart / abs(<f64>y))
  }
  keepLargest(row, maxAbsolute, maxRelative, false)
}

/** Compares widened elements. A complex number with a NaN in it is NaN. */
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
    add(row, DifferenceRow.sumAbsolute, apart)
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

// ---------------------------------------------------------------------------------------------------- Products

/** Adds Σab, Σa², Σb² and Σ(a − b)² of widened elements. */
function multiply(n: u32, scaleA: f64, scaleB: f64, row: usize): void {
  const unitA = f64x2.splat(scaleA)
  const unitB = f64x2.splat(scaleB)
  let dots = f64x2.splat(0)
  let squaresA = dots
  let squaresB = dots
  let squaresApart = dots
  const end = widened + (<usize>(n & ~1) << 3)
  let b = widenedB
  for (let a = widened; a != end; a += 16, b += 16) {
    const x = f64x2.mul(v128.load(a), unitA)
    const y = f64x2.mul(v128.load(b), unitB)
    dots = f64x2.add(dots, f64x2.mul(x, y))
    squaresA = f64x2.add(squaresA, f64x2.mul(x, x))
    squaresB = f64x2.add(squaresB, f64x2.mul(y, y))
    const apart = f64x2.mul(f64x2.sub(v128.load(a), v128.load(b)), unitA)
    squaresApart = f64x2.add(squaresApart, f64x2.mul(apart, apart))
  }
  const x = n & 1 ? load<f64>(end) * scaleA : 0
  const y = n & 1 ? load<f64>(b) * scaleB : 0
  const apart = n & 1 ? (load<f64>(end) - load<f64>(b)) * scaleA : 0
  add(row, DifferenceRow.dot, sumAcross<f64>(dots) + x * y)
  add(row, DifferenceRow.squaresA, sumAcross<f64>(squaresA) + x * x)
  add(row, DifferenceRow.squaresB, sumAcross<f64>(squaresB) + y * y)
  add(row, DifferenceRow.squaresApart, sumAcross<f64>(squaresApart) + apart * apart)
}

/** The place of the first of `length` bytes that differs; -1: none does. */
export function differAt(a: usize, b: usize, length: i32): i32 {
  let i = 0
  for (; i <= length - 16; i += 16) {
    if (!i8x16.all_true(i8x16.eq(v128.load(a + i), v128.load(b + i)))) break
  }
  for (; i < length; i++) if (load<u8>(a + i) != load<u8>(b + i)) return i
  return -1
}
