// The first 64 bytes of each of some rows, a row's lanes added to lines across the rows, whose numbers stay in registers meanwhile.
// 64 bytes are a line of the cache: rows a power of 2 apart would drive each other out of it before the next bytes were taken.

import { AxisFold } from '../../src/core/border/abi'
import { absMask, isDouble, loadPair } from './lanes'

/** The bytes of a row that are taken together. */
export const WIDTH: usize = 64

// Two functions, since the compiler would make one of two branches that differ in a constant.

export function addSums<T>(
  data: usize,
  step: usize,
  isAbsolute: bool,
  rows: u32,
  means: usize,
  accumulators: usize,
  lows: usize,
): void {
  if (isDouble<T>()) addDoubles(AxisFold.sum, data, step, maskOf<f64>(isAbsolute), rows, means, accumulators, lows)
  else addSingles(AxisFold.sum, data, step, maskOf<f64>(isAbsolute), rows, means, accumulators)
}

export function addSquares<T>(
  data: usize,
  step: usize,
  isAbsolute: bool,
  rows: u32,
  means: usize,
  accumulators: usize,
  lows: usize,
): void {
  if (isDouble<T>()) addDoubles(AxisFold.squares, data, step, maskOf<f64>(isAbsolute), rows, means, accumulators, lows)
  else addSingles(AxisFold.squares, data, step, maskOf<f64>(isAbsolute), rows, means, accumulators)
}

/**
 * Takes the lowest elements; the highest are the lowest of the negated.
 * @returns false, with nothing taken, if there may be NaN
 */
export function takeExtremes<T>(
  data: usize,
  step: usize,
  isAbsolute: bool,
  isHighest: bool,
  rows: u32,
  accumulators: usize,
): bool {
  const mask = maskOf<T>(isAbsolute)
  const flip = isHighest ? v128.not(absMask<T>()) : i64x2.splat(0)
  let a0 = v128.xor(loadNumbers<T>(accumulators, 0), flip)
  let a1 = v128.xor(loadNumbers<T>(accumulators, 1), flip)
  let a2 = v128.xor(loadNumbers<T>(accumulators, 2), flip)
  let a3 = v128.xor(loadNumbers<T>(accumulators, 3), flip)
  // NaN if any element is one, or if infinities cancel.
  let sums = i64x2.splat(0)
  for (let k: u32 = 0; k < rows; k++, data += step) {
    const x0 = v128.xor(v128.and(v128.load(data), mask), flip)
    a0 = v128.pmin<T>(a0, x0)
    const x1 = v128.xor(v128.and(v128.load(data, 16), mask), flip)
    a1 = v128.pmin<T>(a1, x1)
    const x2 = v128.xor(v128.and(v128.load(data, 32), mask), flip)
    a2 = v128.pmin<T>(a2, x2)
    const x3 = v128.xor(v128.and(v128.load(data, 48), mask), flip)
    a3 = v128.pmin<T>(a3, x3)
    sums = v128.add<T>(sums, v128.add<T>(v128.add<T>(x0, x1), v128.add<T>(x2, x3)))
  }
  if (v128.any_true(v128.ne<T>(sums, sums))) return false
  storeNumbers<T>(accumulators, 0, v128.xor(a0, flip))
  storeNumbers<T>(accumulators, 1, v128.xor(a1, flip))
  storeNumbers<T>(accumulators, 2, v128.xor(a2, flip))
  storeNumbers<T>(accumulators, 3, v128.xor(a3, flip))
  return true
}

/** Numbers of the i-th vector of elements. */
// @ts-ignore: decorator
@inline
function loadNumbers<T>(accumulators: usize, i: u32): v128 {
  if (isDouble<T>()) return v128.load(accumulators + (i << 4))
  const low = f32x4.demote_f64x2_zero(v128.load(accumulators + (i << 5)))
  return v128.shuffle<i64>(low, f32x4.demote_f64x2_zero(v128.load(accumulators + (i << 5), 16)), 0, 2)
}

// @ts-ignore: decorator
@inline
function storeNumbers<T>(accumulators: usize, i: u32, x: v128): void {
  if (isDouble<T>()) return v128.store(accumulators + (i << 4), x)
  v128.store(accumulators + (i << 5), f64x2.promote_low_f32x4(x))
  v128.store(accumulators + (i << 5), f64x2.promote_low_f32x4(v128.shuffle<i64>(x, x, 1, 0)), 16)
}

/** Sums of float32 have 29 bits more than their elements: nothing of use is rounded away. */
// @ts-ignore: decorator
@inline
function addSingles(
  fold: i32,
  data: usize,
  step: usize,
  mask: v128,
  rows: u32,
  means: usize,
  accumulators: usize,
): void {
  let a0 = v128.load(accumulators)
  let a1 = v128.load(accumulators, 16)
  let a2 = v128.load(accumulators, 32)
  let a3 = v128.load(accumulators, 48)
  let a4 = v128.load(accumulators, 64)
  let a5 = v128.load(accumulators, 80)
  let a6 = v128.load(accumulators, 96)
  let a7 = v128.load(accumulators, 112)
  for (let k: u32 = 0; k < rows; k++, data += step) {
    a0 = f64x2.add(a0, term<f32>(fold, data, mask, means))
    a1 = f64x2.add(a1, term<f32>(fold, data + 8, mask, means + 16))
    a2 = f64x2.add(a2, term<f32>(fold, data + 16, mask, means + 32))
    a3 = f64x2.add(a3, term<f32>(fold, data + 24, mask, means + 48))
    a4 = f64x2.add(a4, term<f32>(fold, data + 32, mask, means + 64))
    a5 = f64x2.add(a5, term<f32>(fold, data + 40, mask, means + 80))
    a6 = f64x2.add(a6, term<f32>(fold, data + 48, mask, means + 96))
    a7 = f64x2.add(a7, term<f32>(fold, data + 56, mask, means + 112))
  }
  v128.store(accumulators, a0)
  v128.store(accumulators, a1, 16)
  v128.store(accumulators, a2, 32)
  v128.store(accumulators, a3, 48)
  v128.store(accumulators, a4, 64)
  v128.store(accumulators, a5, 80)
  v128.store(accumulators, a6, 96)
  v128.store(accumulators, a7, 112)
}

/** The sum of adjacent float32. */
export function sumOf(data: usize, isAbsolute: bool, count: u32): f64 {
  return addAdjacent(AxisFold.sum, data, maskOf<f64>(isAbsolute), count, 0)
}

/** The sum of (x − mean)² of adjacent float32. */
export function squaresOf(data: usize, isAbsolute: bool, count: u32, mean: f64): f64 {
  return addAdjacent(AxisFold.squares, data, maskOf<f64>(isAbsolute), count, mean)
}

// @ts-ignore: decorator
@inline
function extremeOfTwo(a: f64, b: f64, isHighest: bool): f64 {
  return isHighest ? max(a, b) : min(a, b)
}

/** The lowest of adjacent float32, or the highest; NaN if there is one. */
export function extremeOf(data: usize, isAbsolute: bool, isHighest: bool, count: u32): f64 {
  const mask = maskOf<f32>(isAbsolute)
  const flip = isHighest ? v128.not(absMask<f32>()) : i64x2.splat(0)
  const first = data
  let a0 = f32x4.splat(Infinity)
  let a1 = a0
  let sums = f32x4.splat(0)
  for (; count >= 8; count -= 8, data += 32) {
    const x0 = v128.xor(v128.and(v128.load(data), mask), flip)
    const x1 = v128.xor(v128.and(v128.load(data, 16), mask), flip)
    a0 = f32x4.pmin(a0, x0)
    a1 = f32x4.pmin(a1, x1)
    sums = f32x4.add(sums, f32x4.add(x0, x1))
  }
  const pairs = f32x4.pmin(a0, a1)
  const both = v128.xor(f32x4.pmin(pairs, v128.shuffle<i64>(pairs, pairs, 1, 0)), flip)
  let x = extremeOfTwo(<f64>f32x4.extract_lane(both, 0), <f64>f32x4.extract_lane(both, 1), isHighest)
  // NaN if any element is one, or if infinities cancel.
  if (v128.any_true(f32x4.ne(sums, sums))) {
    count += <u32>((data - first) >> 2)
    data = first
  }
  for (; count > 0; count--, data += 4) {
    const number = <f64>load<f32>(data)
    x = extremeOfTwo(x, isAbsolute ? abs(number) : number, isHighest)
  }
  return x
}

// @ts-ignore: decorator
@inline
function addAdjacent(fold: i32, data: usize, mask: v128, count: u32, mean: f64): f64 {
  const means = f64x2.splat(mean)
  let a0 = f64x2.splat(0)
  let a1 = f64x2.splat(0)
  let a2 = f64x2.splat(0)
  let a3 = f64x2.splat(0)
  for (; count >= 8; count -= 8, data += 32) {
    a0 = f64x2.add(a0, added(fold, v128.and(loadPair<f32>(data), mask), means))
    a1 = f64x2.add(a1, added(fold, v128.and(loadPair<f32>(data + 8), mask), means))
    a2 = f64x2.add(a2, added(fold, v128.and(loadPair<f32>(data + 16), mask), means))
    a3 = f64x2.add(a3, added(fold, v128.and(loadPair<f32>(data + 24), mask), means))
  }
  for (; count >= 2; count -= 2, data += 8) a0 = f64x2.add(a0, added(fold, v128.and(loadPair<f32>(data), mask), means))
  if (count == 1) {
    const last = added(fold, v128.and(f64x2.splat(<f64>load<f32>(data)), mask), means)
    a1 = f64x2.add(a1, f64x2.replace_lane(last, 1, 0))
  }
  a0 = f64x2.add(f64x2.add(a0, a1), f64x2.add(a2, a3))
  return f64x2.extract_lane(a0, 0) + f64x2.extract_lane(a0, 1)
}

/** Sums of float64 keep what rounding took. */
// @ts-ignore: decorator
@inline
function addDoubles(
  fold: i32,
  data: usize,
  step: usize,
  mask: v128,
  rows: u32,
  means: usize,
  accumulators: usize,
  lows: usize,
): void {
  let a0 = v128.load(accumulators)
  let a1 = v128.load(accumulators, 16)
  let a2 = v128.load(accumulators, 32)
  let a3 = v128.load(accumulators, 48)
  let low0 = v128.load(accumulators + lows)
  let low1 = v128.load(accumulators + lows, 16)
  let low2 = v128.load(accumulators + lows, 32)
  let low3 = v128.load(accumulators + lows, 48)
  for (let k: u32 = 0; k < rows; k++, data += step) {
    const x0 = term<f64>(fold, data, mask, means)
    const x1 = term<f64>(fold, data + 16, mask, means + 16)
    const x2 = term<f64>(fold, data + 32, mask, means + 32)
    const x3 = term<f64>(fold, data + 48, mask, means + 48)
    const sum0 = f64x2.add(a0, x0)
    const sum1 = f64x2.add(a1, x1)
    const sum2 = f64x2.add(a2, x2)
    const sum3 = f64x2.add(a3, x3)
    low0 = f64x2.add(low0, lowsOf(a0, x0, sum0))
    low1 = f64x2.add(low1, lowsOf(a1, x1, sum1))
    low2 = f64x2.add(low2, lowsOf(a2, x2, sum2))
    low3 = f64x2.add(low3, lowsOf(a3, x3, sum3))
    a0 = sum0
    a1 = sum1
    a2 = sum2
    a3 = sum3
  }
  v128.store(accumulators, a0)
  v128.store(accumulators, a1, 16)
  v128.store(accumulators, a2, 32)
  v128.store(accumulators, a3, 48)
  v128.store(accumulators + lows, low0)
  v128.store(accumulators + lows, low1, 16)
  v128.store(accumulators + lows, low2, 32)
  v128.store(accumulators + lows, low3, 48)
}

/** The bits of an element that count. */
// @ts-ignore: decorator
@inline
export function maskOf<T>(isAbsolute: bool): v128 {
  return isAbsolute ? absMask<T>() : i64x2.splat(-1)
}

/** Two elements as they are added: themselves, or (x − mean)². */
// @ts-ignore: decorator
@inline
export function term<T>(fold: i32, data: usize, mask: v128, means: usize): v128 {
  return added(fold, v128.and(loadPair<T>(data), mask), v128.load(means))
}

// @ts-ignore: decorator
@inline
function added(fold: i32, x: v128, means: v128): v128 {
  if (fold != AxisFold.squares) return x
  const away = f64x2.sub(x, means)
  return f64x2.mul(away, away)
}

/** The rounding errors of sums of a and x. */
// @ts-ignore: decorator
@inline
export function lowsOf(a: v128, x: v128, sum: v128): v128 {
  const ofX = f64x2.sub(sum, a)
  return f64x2.add(f64x2.sub(a, f64x2.sub(sum, ofX)), f64x2.sub(x, ofX))
}
