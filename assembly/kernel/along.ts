// Reductions along an axis. A piece of a tensor is [outer, count, inner] in C order, and its lines run along the middle.
//
// Every line has an accumulator, two float64: a number, and for sums of 64-bit elements what rounding took from it. The numbers
// of all lines lie one after the other, then the other halves. Lines that lie side by side are added to in pairs. A line whose
// elements are adjacent is taken as many that lie side by side, which are then added.
//
// float32 is promoted as it is read, and float64 is read in place; everything else is widened to float64 first.

import { AxisFold, DTypeNumber } from '../../src/core/border/abi'
import { isComplex } from '../dtype'
import { roundOff, twoProduct, twoSum } from './double-double'
import { absMask, isDouble, loadPair } from './lanes'
import { widenToFloat64 } from './widen'

/** Lines that one line of adjacent elements is taken as. */
const SPREAD: u32 = 64
const spread: usize = memory.data(64 * 16, 16)

/** Rows that are added at once. More, a power of 2 apart, would drive each other out of the L1 cache. */
const ROWS: u32 = 8

/** Beyond it a product could not be split. */
const SPLITTABLE: f64 = 1e290

/** Sets the accumulators of lines to those of no elements. */
export function alongReset(fold: i32, lines: u32, accumulators: usize): void {
  const start: f64 = fold == AxisFold.min ? Infinity : fold == AxisFold.max ? -Infinity : 0
  for (let i: usize = 0; i < lines; i++) store<f64>(accumulators + (i << 3), start)
  memory.fill(accumulators + (<usize>lines << 3), 0, <usize>lines << 3)
}

/**
 * Adds a piece of a tensor to the accumulators of its lines, outer · inner of them. Complex elements become two lines each, unless
 * their magnitudes are added.
 * @param isAbsolute whether it is the absolute values that are added
 * @param means of the lines, for the sum of (x − mean)²
 * @param scratch a float64 for each element, and two for a complex one
 */
export function alongAdd(
  fold: i32,
  dtype: i32,
  isAbsolute: bool,
  data: usize,
  outer: u32,
  count: u32,
  inner: u32,
  means: usize,
  scratch: usize,
  accumulators: usize,
): void {
  const areMagnitudes = isAbsolute && isComplex(dtype)
  const isFloat32 = dtype == DTypeNumber.float32 || dtype == DTypeNumber.complex64
  const isFloat64 = dtype == DTypeNumber.float64 || dtype == DTypeNumber.complex128
  if (areMagnitudes || !(isFloat32 || isFloat64)) {
    const n = outer * count * inner
    if (!widenToFloat64(dtype, data, n, scratch)) return
    if (areMagnitudes) takeMagnitudes(scratch, n)
    data = scratch
  } else if (isComplex(dtype)) inner *= 2
  const mask = isAbsolute ? absMask<f64>() : i64x2.splat(-1)
  if (isFloat32 && !areMagnitudes) addFloats<f32>(fold, data, mask, outer, count, inner, means, accumulators)
  else addFloats<f64>(fold, data, mask, outer, count, inner, means, accumulators)
}

/** Makes accumulators of sums into sums over `divisor`: sums, or means, in the place of the numbers. */
export function alongFinish(lines: u32, accumulators: usize, divisor: f64): void {
  const end = accumulators + (<usize>lines << 3)
  for (let at = accumulators; at != end; at += 8) {
    const number = load<f64>(at)
    // Where the number is infinite or NaN, so is the sum, and what rounding took is not known.
    if (!(abs(number) < Infinity)) continue
    const sum = twoSum(number, load<f64>(at + (<usize>lines << 3)))
    const low = roundOff
    let quotient = sum / divisor
    if (abs(sum) < SPLITTABLE) quotient += (sum - twoProduct(quotient, divisor) - roundOff + low) / divisor
    store<f64>(at, quotient)
  }
}

function takeMagnitudes(data: usize, n: u32): void {
  for (let i: usize = 0; i < n; i++) {
    const from = data + (i << 4)
    const re = load<f64>(from)
    const im = load<f64>(from, 8)
    // A part that is infinite makes the length infinite, whatever the other: of NaN, too.
    store<f64>(data + (i << 3), isNaN(re) || isNaN(im) ? NaN : Math.hypot(re, im))
  }
}

// @ts-ignore: decorator
@inline
function addFloats<T>(
  fold: i32,
  data: usize,
  mask: v128,
  outer: u32,
  count: u32,
  inner: u32,
  means: usize,
  accumulators: usize,
): void {
  if (fold == AxisFold.sum) addLines<T>(AxisFold.sum, data, mask, outer, count, inner, means, accumulators)
  else if (fold == AxisFold.squares) addLines<T>(AxisFold.squares, data, mask, outer, count, inner, means, accumulators)
  else if (fold == AxisFold.min) addLines<T>(AxisFold.min, data, mask, outer, count, inner, means, accumulators)
  else addLines<T>(AxisFold.max, data, mask, outer, count, inner, means, accumulators)
}

// @ts-ignore: decorator
@inline
function addLines<T>(
  fold: i32,
  data: usize,
  mask: v128,
  outer: u32,
  count: u32,
  inner: u32,
  means: usize,
  accumulators: usize,
): void {
  const lows = (<usize>outer * inner) << 3
  const step = <usize>inner << 3
  for (let o: u32 = 0; o < outer; o++, accumulators += step, means += step) {
    if (inner == 1) {
      addLine<T>(fold, data, mask, count, means, accumulators, lows)
      data += <usize>count * sizeof<T>()
    } else {
      for (let k: u32 = 0; k < count; k += ROWS) {
        const rows = min(ROWS, count - k)
        addRows<T>(fold, data, mask, rows, inner, 8, means, accumulators, lows)
        data += <usize>rows * inner * sizeof<T>()
      }
    }
  }
}

/** Adds adjacent elements to one line. */
// @ts-ignore: decorator
@inline
function addLine<T>(fold: i32, data: usize, mask: v128, count: u32, mean: usize, accumulator: usize, lows: usize): void {
  const end = data + <usize>count * sizeof<T>()
  if (count >= 2 * SPREAD) {
    alongReset(fold, SPREAD, spread)
    for (let k: u32 = count / SPREAD; k > 0; ) {
      const rows = min(ROWS, k)
      addRows<T>(fold, data, mask, rows, SPREAD, 0, mean, spread, SPREAD << 3)
      data += <usize>rows * SPREAD * sizeof<T>()
      k -= rows
    }
    let a = load<f64>(accumulator)
    let low = load<f64>(accumulator + lows)
    for (let at = spread; at != spread + (SPREAD << 3); at += 8) {
      const x = load<f64>(at)
      if (fold == AxisFold.min) a = min(a, x)
      else if (fold == AxisFold.max) a = max(a, x)
      else {
        const sum = a + x
        low += lowOf(a, x, sum) + load<f64>(at, SPREAD << 3)
        a = sum
      }
    }
    store<f64>(accumulator, a)
    store<f64>(accumulator + lows, low)
  }
  addOnes<T>(fold, data, end, mask, mean, accumulator, lows)
}

/** Adds rows to the lines across them, eight lines at a time. @param meanStep 0 if they have one mean, else 8 */
// @ts-ignore: decorator
@inline
function addRows<T>(
  fold: i32,
  data: usize,
  mask: v128,
  rows: u32,
  inner: u32,
  meanStep: usize,
  means: usize,
  accumulators: usize,
  lows: usize,
): void {
  const step = <usize>inner * sizeof<T>()
  const eights = inner & ~7
  for (let i: u32 = 0; i < eights; i += 8, accumulators += 64, means += 8 * meanStep, data += 8 * sizeof<T>()) {
    addEight<T>(fold, data, step, mask, rows, meanStep, means, accumulators, lows)
  }
  if (inner == eights) return
  for (let k: u32 = 0; k < rows; k++, data += step) {
    addEach<T>(fold, data, mask, inner & 7, meanStep, means, accumulators, lows)
  }
}

/** Adds eight elements of each row to eight lines, whose numbers stay in registers meanwhile. */
// @ts-ignore: decorator
@inline
function addEight<T>(
  fold: i32,
  data: usize,
  step: usize,
  mask: v128,
  rows: u32,
  meanStep: usize,
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
    let x0 = v128.and(loadPair<T>(data), mask)
    let x1 = v128.and(loadPair<T>(data + 2 * sizeof<T>()), mask)
    let x2 = v128.and(loadPair<T>(data + 4 * sizeof<T>()), mask)
    let x3 = v128.and(loadPair<T>(data + 6 * sizeof<T>()), mask)
    if (fold == AxisFold.min) {
      a0 = f64x2.min(a0, x0)
      a1 = f64x2.min(a1, x1)
      a2 = f64x2.min(a2, x2)
      a3 = f64x2.min(a3, x3)
      continue
    }
    if (fold == AxisFold.max) {
      a0 = f64x2.max(a0, x0)
      a1 = f64x2.max(a1, x1)
      a2 = f64x2.max(a2, x2)
      a3 = f64x2.max(a3, x3)
      continue
    }
    if (fold == AxisFold.squares) {
      x0 = squareAway(x0, means, meanStep)
      x1 = squareAway(x1, means + 2 * meanStep, meanStep)
      x2 = squareAway(x2, means + 4 * meanStep, meanStep)
      x3 = squareAway(x3, means + 6 * meanStep, meanStep)
    }
    const sum0 = f64x2.add(a0, x0)
    const sum1 = f64x2.add(a1, x1)
    const sum2 = f64x2.add(a2, x2)
    const sum3 = f64x2.add(a3, x3)
    // Sums of float32 have 29 bits more than their elements.
    if (isDouble<T>()) {
      low0 = f64x2.add(low0, lowsOf(a0, x0, sum0))
      low1 = f64x2.add(low1, lowsOf(a1, x1, sum1))
      low2 = f64x2.add(low2, lowsOf(a2, x2, sum2))
      low3 = f64x2.add(low3, lowsOf(a3, x3, sum3))
    }
    a0 = sum0
    a1 = sum1
    a2 = sum2
    a3 = sum3
  }
  v128.store(accumulators, a0)
  v128.store(accumulators, a1, 16)
  v128.store(accumulators, a2, 32)
  v128.store(accumulators, a3, 48)
  if (!isDouble<T>() || fold == AxisFold.min || fold == AxisFold.max) return
  v128.store(accumulators + lows, low0)
  v128.store(accumulators + lows, low1, 16)
  v128.store(accumulators + lows, low2, 32)
  v128.store(accumulators + lows, low3, 48)
}

/** (x − mean)² */
// @ts-ignore: decorator
@inline
function squareAway(x: v128, means: usize, meanStep: usize): v128 {
  const away = f64x2.sub(x, meanStep == 0 ? v128.load64_splat(means) : v128.load(means))
  return f64x2.mul(away, away)
}

/** The rounding errors of sums of a and x. */
// @ts-ignore: decorator
@inline
function lowsOf(a: v128, x: v128, sum: v128): v128 {
  const ofX = f64x2.sub(sum, a)
  return f64x2.add(f64x2.sub(a, f64x2.sub(sum, ofX)), f64x2.sub(x, ofX))
}

// @ts-ignore: decorator
@inline
function lowOf(a: f64, x: f64, sum: f64): f64 {
  const ofX = sum - a
  return a - (sum - ofX) + (x - ofX)
}

/** Adds each element to a line of its own. @param meanStep 0 if they have one mean, else 8 */
// @ts-ignore: decorator
@inline
function addEach<T>(
  fold: i32,
  data: usize,
  mask: v128,
  n: u32,
  meanStep: usize,
  means: usize,
  accumulators: usize,
  lows: usize,
): void {
  for (const end = data + <usize>(n & ~1) * sizeof<T>(); data != end; data += 2 * sizeof<T>(), accumulators += 16) {
    const x = v128.and(loadPair<T>(data), mask)
    const a = v128.load(accumulators)
    if (fold == AxisFold.min) v128.store(accumulators, f64x2.min(a, x))
    else if (fold == AxisFold.max) v128.store(accumulators, f64x2.max(a, x))
    else if (fold == AxisFold.sum) addTo<T>(accumulators, lows, a, x)
    else {
      addTo<T>(accumulators, lows, a, squareAway(x, means, meanStep))
      means += 2 * meanStep
    }
  }
  if (n & 1) addOnes<T>(fold, data, data + sizeof<T>(), mask, means, accumulators, lows)
}

// @ts-ignore: decorator
@inline
function addTo<T>(accumulators: usize, lows: usize, a: v128, x: v128): void {
  const sum = f64x2.add(a, x)
  v128.store(accumulators, sum)
  // Sums of float32 have 29 bits more than their elements.
  if (!isDouble<T>()) return
  v128.store(accumulators + lows, f64x2.add(v128.load(accumulators + lows), lowsOf(a, x, sum)))
}

/** Adds adjacent elements to one line, one by one. */
// @ts-ignore: decorator
@inline
function addOnes<T>(
  fold: i32,
  data: usize,
  end: usize,
  mask: v128,
  mean: usize,
  accumulator: usize,
  lows: usize,
): void {
  let a = load<f64>(accumulator)
  let low = load<f64>(accumulator + lows)
  for (; data != end; data += sizeof<T>()) {
    const number = <f64>load<T>(data)
    let x = i64x2.extract_lane(mask, 0) == -1 ? number : abs(number)
    if (fold == AxisFold.min) a = min(a, x)
    else if (fold == AxisFold.max) a = max(a, x)
    else {
      if (fold == AxisFold.squares) x = (x - load<f64>(mean)) * (x - load<f64>(mean))
      const sum = a + x
      low += lowOf(a, x, sum)
      a = sum
    }
  }
  store<f64>(accumulator, a)
  store<f64>(accumulator + lows, low)
}
