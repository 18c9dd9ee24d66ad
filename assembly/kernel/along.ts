// Reductions along an axis. A piece of a tensor is [outer, count, inner] in C order, and its lines run along the middle.
//
// Every line has an accumulator, two float64: a number, and for sums of 64-bit elements what rounding took from it. The numbers
// of all lines lie one after the other, then the other halves. Lines that lie side by side are taken down all rows, 64 bytes of each
// at once (rows.ts). A line whose elements are adjacent is taken as rows of 64 bytes.
//
// float32 is promoted as it is read, for extremes afterwards; float64 is read in place; everything else is widened to float64 first.

import { AxisFold, DTypeNumber } from '../../src/core/border/abi'
import { isComplex } from '../dtype'
import { roundOff, twoProduct, twoSum } from './double-double'
import { isDouble } from './lanes'
import { addSquares, addSums, extremeOf, lowsOf, maskOf, squaresOf, sumOf, takeExtremes, term, WIDTH } from './rows'
import { widenToFloat64 } from './widen'

/** The accumulators and means of the lines that one line of adjacent elements is taken as. */
const spread: usize = memory.data(16 * 16, 16)
const spreadMeans: usize = memory.data(16 * 8, 16)

/** Beyond it a product could not be split. */
const SPLITTABLE: f64 = 1e290

/** Sets the accumulators of lines to those of no elements. */
export function alongReset(fold: i32, lines: u32, accumulators: usize): void {
  const start = startOf(fold)
  memory.fill(accumulators, 0, <usize>lines << 4)
  if (start != 0) for (let i: usize = 0; i < lines; i++) store<f64>(accumulators + (i << 3), start)
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
  if (isFloat32 && !areMagnitudes) addLines<f32>(fold, data, isAbsolute, outer, count, inner, means, accumulators)
  else addLines<f64>(fold, data, isAbsolute, outer, count, inner, means, accumulators)
}

/** Makes accumulators of sums into sums over `divisor`: sums, or means, in the place of the numbers. No number is −0. */
export function alongFinish(lines: u32, accumulators: usize, divisor: f64): void {
  const end = accumulators + (<usize>lines << 3)
  for (let at = accumulators; at != end; at += 8) {
    const number = load<f64>(at)
    // Where the number is infinite or NaN, so is the sum, and what rounding took is not known.
    if (!(abs(number) < Infinity)) continue
    const low = load<f64>(at + (<usize>lines << 3))
    store<f64>(at, divisor == 1 ? number + low : quotientOf(number, low, divisor))
  }
}

function quotientOf(number: f64, low: f64, divisor: f64): f64 {
  const sum = twoSum(number, low)
  const rest = roundOff
  const quotient = sum / divisor
  // Of a sum that is one float64, as those of float32 are, the quotient is rounded once.
  if (rest == 0 || !(abs(sum) < SPLITTABLE)) return quotient
  return quotient + (sum - twoProduct(quotient, divisor) - roundOff + rest) / divisor
}

/** The number of no elements. */
// @ts-ignore: decorator
@inline
function startOf(fold: i32): f64 {
  return fold == AxisFold.min ? Infinity : fold == AxisFold.max ? -Infinity : 0
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

function addLines<T>(
  fold: i32,
  data: usize,
  isAbsolute: bool,
  outer: u32,
  count: u32,
  inner: u32,
  means: usize,
  accumulators: usize,
): void {
  const lows = (<usize>outer * inner) << 3
  const step = <usize>inner << 3
  for (let o: u32 = 0; o < outer; o++, accumulators += step, means += step) {
    if (inner == 1) addLine<T>(fold, data, isAbsolute, count, means, accumulators, lows)
    else addRows<T>(fold, data, isAbsolute, count, inner, means, accumulators, lows)
    data += <usize>count * inner * sizeof<T>()
  }
}

/** Adds adjacent elements to one line. */
function addLine<T>(fold: i32, data: usize, isAbsolute: bool, count: u32, mean: usize, accumulator: usize, lows: usize): void {
  if (!isDouble<T>()) {
    const x =
      fold == AxisFold.sum
        ? sumOf(data, isAbsolute, count)
        : fold == AxisFold.squares
          ? squaresOf(data, isAbsolute, count, load<f64>(mean))
          : extremeOf(data, isAbsolute, fold == AxisFold.max, count)
    return addNumber(fold, x, 0, accumulator, lows)
  }
  const lanes = <u32>(WIDTH / sizeof<T>())
  if (count >= lanes) {
    const rows = count / lanes
    const start = f64x2.splat(startOf(fold))
    const means = v128.load64_splat(mean)
    for (let i: usize = 0; i != lanes << 3; i += 16) {
      v128.store(spread + i, start)
      v128.store(spread + i + (lanes << 3), i64x2.splat(0))
      v128.store(spreadMeans + i, means)
    }
    addBlock<T>(fold, data, WIDTH, isAbsolute, rows, spreadMeans, spread, lanes << 3)
    addEach<T>(fold, data + <usize>rows * WIDTH, isAbsolute, count % lanes, spreadMeans, spread, lanes << 3)
    let sums = v128.load(spread)
    let low = v128.load(spread + (lanes << 3))
    for (let at = spread + 16; at != spread + (lanes << 3); at += 16) {
      const x = v128.load(at)
      if (fold == AxisFold.min) sums = f64x2.min(sums, x)
      else if (fold == AxisFold.max) sums = f64x2.max(sums, x)
      else {
        const sum = f64x2.add(sums, x)
        low = f64x2.add(low, f64x2.add(lowsOf(sums, x, sum), v128.load(at + (lanes << 3))))
        sums = sum
      }
    }
    addNumber(fold, f64x2.extract_lane(sums, 0), f64x2.extract_lane(low, 0), accumulator, lows)
    addNumber(fold, f64x2.extract_lane(sums, 1), f64x2.extract_lane(low, 1), accumulator, lows)
  } else addOnes<T>(fold, data, count, isAbsolute, mean, accumulator, lows)
}

/** Adds rows to the lines across them. */
function addRows<T>(
  fold: i32,
  data: usize,
  isAbsolute: bool,
  rows: u32,
  inner: u32,
  means: usize,
  accumulators: usize,
  lows: usize,
): void {
  const step = <usize>inner * sizeof<T>()
  const lanes = <u32>(WIDTH / sizeof<T>())
  let left = inner
  for (; left >= lanes; left -= lanes, data += WIDTH, accumulators += lanes << 3, means += lanes << 3) {
    addBlock<T>(fold, data, step, isAbsolute, rows, means, accumulators, lows)
  }
  if (left == 0) return
  for (let k: u32 = 0; k < rows; k++, data += step) addEach<T>(fold, data, isAbsolute, left, means, accumulators, lows)
}

/** Adds 64 bytes of each row to the lines across them. */
function addBlock<T>(
  fold: i32,
  data: usize,
  step: usize,
  isAbsolute: bool,
  rows: u32,
  means: usize,
  accumulators: usize,
  lows: usize,
): void {
  if (fold == AxisFold.min || fold == AxisFold.max) {
    if (takeExtremes<T>(data, step, isAbsolute, fold == AxisFold.max, rows, accumulators)) return
    const lanes = <u32>(WIDTH / sizeof<T>())
    for (let k: u32 = 0; k < rows; k++, data += step) addEach<T>(fold, data, isAbsolute, lanes, means, accumulators, lows)
  } else if (fold == AxisFold.sum) addSums<T>(data, step, isAbsolute, rows, means, accumulators, lows)
  else addSquares<T>(data, step, isAbsolute, rows, means, accumulators, lows)
}

// @ts-ignore: decorator
@inline
function lowOf(a: f64, x: f64, sum: f64): f64 {
  const ofX = sum - a
  return a - (sum - ofX) + (x - ofX)
}

/** Adds a number and what rounding took from it to a line. */
function addNumber(fold: i32, x: f64, xLow: f64, accumulator: usize, lows: usize): void {
  const a = load<f64>(accumulator)
  const sum = a + x
  if (fold == AxisFold.min) store<f64>(accumulator, min(a, x))
  else if (fold == AxisFold.max) store<f64>(accumulator, max(a, x))
  else {
    store<f64>(accumulator, sum)
    store<f64>(accumulator + lows, load<f64>(accumulator + lows) + (lowOf(a, x, sum) + xLow))
  }
}

/** Adds each element to a line of its own. */
function addEach<T>(
  fold: i32,
  data: usize,
  isAbsolute: bool,
  n: u32,
  means: usize,
  accumulators: usize,
  lows: usize,
): void {
  const mask = maskOf<f64>(isAbsolute)
  for (let left = n; left > 1; left -= 2, data += 2 * sizeof<T>(), accumulators += 16, means += 16) {
    const x = term<T>(fold, data, mask, means)
    const a = v128.load(accumulators)
    if (fold == AxisFold.min) v128.store(accumulators, f64x2.min(a, x))
    else if (fold == AxisFold.max) v128.store(accumulators, f64x2.max(a, x))
    else {
      const sum = f64x2.add(a, x)
      v128.store(accumulators, sum)
      if (isDouble<T>()) v128.store(accumulators + lows, f64x2.add(v128.load(accumulators + lows), lowsOf(a, x, sum)))
    }
  }
  if (n & 1) addOnes<T>(fold, data, 1, isAbsolute, means, accumulators, lows)
}

/** Adds adjacent elements to one line, one by one. */
function addOnes<T>(fold: i32, data: usize, n: u32, isAbsolute: bool, mean: usize, accumulator: usize, lows: usize): void {
  for (const end = data + <usize>n * sizeof<T>(); data != end; data += sizeof<T>()) {
    const number = <f64>load<T>(data)
    const x = isAbsolute ? abs(number) : number
    const away = x - load<f64>(mean)
    addNumber(fold, fold == AxisFold.squares ? away * away : x, 0, accumulator, lows)
  }
}
