// A row of moments (see layout.ts): made, merged, and filled with what was found among elements.

import { Known, Moments } from '../layout'
import { add, exponentOf, lost, multiply, powerOfTwo, scale } from './twofold'

const MEAN_OF: usize = Moments.MEAN - Moments.SUM
const LOW_OF: usize = Moments.SUM_LOW - Moments.SUM
const MEAN_LOW_OF: usize = Moments.MEAN_LOW - Moments.SUM
const M2_OF: usize = Moments.M2 - Moments.SUM

/** The row of the block in hand. */
export const part: usize = memory.data(<i32>Moments.SIZE, 16)

// ---------------------------------------------------------------------------------------------------- Slots

// @ts-ignore: decorator
@inline
export function get(row: usize, slot: usize): f64 {
  return load<f64>(row + slot)
}

// @ts-ignore: decorator
@inline
export function set(row: usize, slot: usize, value: f64): void {
  store<f64>(row + slot, value)
}

/** How many elements are finite. */
export function finites(row: usize): f64 {
  return get(row, Moments.COUNT) - get(row, Moments.NAN_COUNT) - infinities(row)
}

export function infinities(row: usize): f64 {
  return get(row, Moments.POSITIVE_INFINITY_COUNT) + get(row, Moments.NEGATIVE_INFINITY_COUNT)
}

/** Sets a sum of n elements and their mean. */
export function setSum(row: usize, slot: usize, high: f64, low: f64, n: f64): void {
  const sum = add(high, low)
  const sumLow = lost
  const mean = sum / n
  const rest = sum - multiply(mean, n) - lost + sumLow
  set(row, slot, sum)
  set(row, slot + LOW_OF, sumLow)
  set(row, slot + MEAN_OF, mean)
  set(row, slot + MEAN_LOW_OF, rest / n)
}

/** Sets sum, mean and M2 of `part` from Σ(x − pilot) and Σ(x − pilot)². */
export function setSumAround(slot: usize, pilot: f64, sum: f64, squares: f64, n: f64): void {
  const pilots = multiply(pilot, n)
  const pilotsLow = lost
  setSum(part, slot, add(pilots, sum), lost + pilotsLow, n)
  set(part, slot + M2_OF, max(squares - sum * (sum / n), 0))
}

/** The absolute values of numbers of one sign need no sums of their own. */
export function setSumsAbsOfOneSign(row: usize, sign: f64): void {
  for (let slot = Moments.SUM; slot < Moments.M2; slot += 24) set(row, slot + 8, sign * get(row, slot))
  set(row, Moments.M2_ABS, get(row, Moments.M2))
}

/** Sets a product after bringing its mantissa into [1, 2). */
export function setProduct(row: usize, mantissa: f64, exponent: f64): void {
  if (mantissa == 0) exponent = 0
  else {
    const more = exponentOf(mantissa)
    mantissa = scale(mantissa, -more)
    exponent += <f64>more
  }
  set(row, Moments.PROD_MANTISSA, mantissa)
  set(row, Moments.PROD_EXPONENT, exponent)
}

// ---------------------------------------------------------------------------------------------------- Whole rows

/**
 * Makes a row that of no elements, of which all is known: MIN and MIN_ABS +∞, MAX −∞, MAX_ABS 0, the product 1, all else
 * 0.
 */
export function momentsReset(row: usize): void {
  for (let slot: usize = 0; slot < Moments.SIZE; slot += 16) v128.store(row + slot, i64x2.splat(0))
  set(row, Moments.MIN, Infinity)
  set(row, Moments.MAX, -Infinity)
  set(row, Moments.MIN_ABS, Infinity)
  set(row, Moments.PROD_MANTISSA, 1)
  set(row, Moments.KNOWN, Known.ALL)
}

/** Makes `into` the row of its own elements and those of `from`, as far as both are known. */
export function momentsMerge(into: usize, from: usize): void {
  merge(into, from, Known.ALL)
}

/** Likewise; of both no more than `limit` is kept. */
export function merge(into: usize, from: usize, limit: i32): void {
  const before = <i32>get(into, Moments.KNOWN)
  const known = limit & before & <i32>get(from, Moments.KNOWN)
  if (get(into, Moments.COUNT) == 0) {
    for (let slot: usize = 0; slot < Moments.SIZE; slot += 16) v128.store(into + slot, v128.load(from + slot))
  } else {
    if (known & Known.EXTREMES) mergeExtremes(into, from)
    if (known & Known.SUM && finites(from) > 0) mergeSums(into, from, known)
    for (let slot = Moments.COUNT; slot <= Moments.ZERO_COUNT; slot += 8)
      set(into, slot, get(into, slot) + get(from, slot))
  }
  if (known != before) keepOnly(into, known)
}

/** Makes slots NaN. All but extremes comes with Σx. */
function keepOnly(row: usize, known: i32): void {
  if (!(known & Known.EXTREMES)) forget(row, Moments.ZERO_COUNT, Moments.EXPONENT)
  if (!(known & Known.SUM)) forget(row, Moments.EXPONENT, Moments.KNOWN)
  if (!(known & Known.SUM_ABS)) for (let slot = Moments.SUM_ABS; slot <= Moments.M2_ABS; slot += 24) set(row, slot, NaN)
  if (!(known & Known.SQUARES)) forget(row, Moments.M2, Moments.PROD_MANTISSA)
  if (!(known & Known.PRODUCT)) forget(row, Moments.PROD_MANTISSA, Moments.KNOWN)
  set(row, Moments.KNOWN, known)
}

function forget(row: usize, first: usize, end: usize): void {
  for (let slot = first; slot < end; slot += 8) set(row, slot, NaN)
}

function mergeExtremes(into: usize, from: usize): void {
  if (isLess(from, into, Moments.MIN, Moments.MIN_EXACT)) copy(into, from, Moments.MIN, Moments.MIN_EXACT)
  if (isLess(into, from, Moments.MAX, Moments.MAX_EXACT)) copy(into, from, Moments.MAX, Moments.MAX_EXACT)
  if (isLess(from, into, Moments.MIN_ABS, Moments.MIN_ABS_EXACT)) copy(into, from, Moments.MIN_ABS, Moments.MIN_ABS_EXACT)
  if (isLess(into, from, Moments.MAX_ABS, Moments.MAX_ABS_EXACT)) copy(into, from, Moments.MAX_ABS, Moments.MAX_ABS_EXACT)
}

/**
 * Compares an extreme of two rows. Where float64 can't tell them apart the exact bits can: no float64 stands for integers
 * on both sides of a sign change, so unsigned order is right for int64 too.
 */
// @ts-ignore: decorator
@inline
function isLess(a: usize, b: usize, slot: usize, exact: usize): bool {
  const x = get(a, slot)
  const y = get(b, slot)
  return x < y || (x == y && load<u64>(a + exact) < load<u64>(b + exact))
}

// @ts-ignore: decorator
@inline
function copy(into: usize, from: usize, slot: usize, exact: usize): void {
  store<u64>(into + slot, load<u64>(from + slot))
  store<u64>(into + exact, load<u64>(from + exact))
}

/** Merges what comes beyond the extremes, of rows that have their counts yet. */
function mergeSums(into: usize, from: usize, known: i32): void {
  const n = finites(into)
  const m = finites(from)
  // Zeros have any exponent
  const before = get(into, Moments.EXPONENT)
  const other = get(from, Moments.EXPONENT)
  const after =
    get(into, Moments.SUM_ABS) == 0 ? other : get(from, Moments.SUM_ABS) == 0 ? before : max(before, other)
  const unit = powerOfTwo(min(before - after, 0))
  const otherUnit = powerOfTwo(min(other - after, 0))
  set(into, Moments.EXPONENT, after)

  mergeSum(into, from, Moments.SUM, n, m, unit, otherUnit)
  if (known & Known.SUM_ABS) mergeSum(into, from, Moments.SUM_ABS, n, m, unit, otherUnit)
  if (hasImaginary(into) || hasImaginary(from)) mergeSum(into, from, Moments.SUM_IMAGINARY, n, m, unit, otherUnit)
  if (!(known & Known.SQUARES)) return

  const squares = add(
    get(into, Moments.SUM_SQUARES) * unit * unit,
    get(from, Moments.SUM_SQUARES) * otherUnit * otherUnit,
  )
  const squaresLow =
    lost + get(into, Moments.SUM_SQUARES_LOW) * unit * unit + get(from, Moments.SUM_SQUARES_LOW) * otherUnit * otherUnit
  set(into, Moments.SUM_SQUARES, add(squares, squaresLow))
  set(into, Moments.SUM_SQUARES_LOW, lost)
  if (!(known & Known.PRODUCT)) return

  setProduct(
    into,
    get(into, Moments.PROD_MANTISSA) * get(from, Moments.PROD_MANTISSA),
    get(into, Moments.PROD_EXPONENT) + get(from, Moments.PROD_EXPONENT),
  )
}

/** Merges a sum, its mean and M2, by Chan's formula. */
function mergeSum(into: usize, from: usize, slot: usize, n: f64, m: f64, unit: f64, otherUnit: f64): void {
  const apart =
    get(from, slot + MEAN_OF) * otherUnit -
    get(into, slot + MEAN_OF) * unit +
    (get(from, slot + MEAN_LOW_OF) * otherUnit - get(into, slot + MEAN_LOW_OF) * unit)
  const m2 = get(into, slot + M2_OF) * unit * unit + get(from, slot + M2_OF) * otherUnit * otherUnit
  set(into, slot + M2_OF, m2 + apart * apart * n * (m / (n + m)))
  const high = add(get(into, slot) * unit, get(from, slot) * otherUnit)
  const low = lost + get(into, slot + LOW_OF) * unit + get(from, slot + LOW_OF) * otherUnit
  setSum(into, slot, high, low, n + m)
}

function hasImaginary(row: usize): bool {
  return get(row, Moments.SUM_IMAGINARY) != 0 || get(row, Moments.M2_IMAGINARY) > 0
}
