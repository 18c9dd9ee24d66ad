// A row of moments (see MomentsRow in src/core/border/abi.ts): made, filled and merged.

import { KnownMoments, MomentsRow } from '../../../src/core/border/abi'
import { roundOff, twoProduct, twoSum } from '../double-double'
import { exponentOf, ldexp, powerOfTwo } from '../exponent'

const MEAN_OF: usize = MomentsRow.mean - MomentsRow.sum
const LOW_OF: usize = MomentsRow.sumLow - MomentsRow.sum
const MEAN_LOW_OF: usize = MomentsRow.meanLow - MomentsRow.sum
const M2_OF: usize = MomentsRow.m2 - MomentsRow.sum

/** The row of the current block. */
export const part: usize = memory.data(<i32>MomentsRow.size, 16)

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

/** The number of finite elements. */
export function finites(row: usize): f64 {
  return get(row, MomentsRow.count) - get(row, MomentsRow.nanCount) - infinities(row)
}

export function infinities(row: usize): f64 {
  return get(row, MomentsRow.positiveInfinityCount) + get(row, MomentsRow.negativeInfinityCount)
}

/** Sets a sum of n elements and their mean. */
export function setSum(row: usize, slot: usize, high: f64, low: f64, n: f64): void {
  const sum = twoSum(high, low)
  const sumLow = roundOff
  const mean = sum / n
  const rest = sum - twoProduct(mean, n) - roundOff + sumLow
  set(row, slot, sum)
  set(row, slot + LOW_OF, sumLow)
  set(row, slot + MEAN_OF, mean)
  set(row, slot + MEAN_LOW_OF, rest / n)
}

/** Sets sum, mean and M2 of `part` from Σ(x − pilot) and Σ(x − pilot)². */
export function setSumAround(slot: usize, pilot: f64, sum: f64, squares: f64, n: f64): void {
  const pilots = twoProduct(pilot, n)
  const pilotsLow = roundOff
  setSum(part, slot, twoSum(pilots, sum), roundOff + pilotsLow, n)
  set(part, slot + M2_OF, max(squares - sum * (sum / n), 0))
}

/** The absolute values of numbers of one sign need no sums of their own. */
export function setSumsAbsOfOneSign(row: usize, sign: f64): void {
  for (let slot = MomentsRow.sum; slot < MomentsRow.m2; slot += 24) set(row, slot + 8, sign * get(row, slot))
  set(row, MomentsRow.m2Abs, get(row, MomentsRow.m2))
}

/** Sets a product after bringing its mantissa into [1, 2). */
export function setProduct(row: usize, mantissa: f64, exponent: f64): void {
  if (mantissa == 0) exponent = 0
  else {
    const more = exponentOf(mantissa)
    mantissa = ldexp(mantissa, -more)
    exponent += <f64>more
  }
  set(row, MomentsRow.prodMantissa, mantissa)
  set(row, MomentsRow.prodExponent, exponent)
}

// ---------------------------------------------------------------------------------------------------- Whole rows

/**
 * Resets a row to that of no elements, of which everything is known: min and minAbs are +∞, max is −∞, maxAbs 0, the
 * product 1, and everything else 0.
 */
export function momentsReset(row: usize): void {
  for (let slot = 0; slot < MomentsRow.size; slot += 16) v128.store(row + slot, i64x2.splat(0))
  set(row, MomentsRow.min, Infinity)
  set(row, MomentsRow.max, -Infinity)
  set(row, MomentsRow.minAbs, Infinity)
  set(row, MomentsRow.prodMantissa, 1)
  set(row, MomentsRow.known, KnownMoments.all)
}

/** Merges `from` into `into`, as far as both are known. */
export function momentsMerge(into: usize, from: usize): void {
  merge(into, from, KnownMoments.all)
}

/** Merges like `momentsMerge`, but keeps no more than `limit`. */
export function merge(into: usize, from: usize, limit: i32): void {
  const before = <i32>get(into, MomentsRow.known)
  const known = limit & before & <i32>get(from, MomentsRow.known)
  if (get(into, MomentsRow.count) == 0) {
    for (let slot = 0; slot < MomentsRow.size; slot += 16) v128.store(into + slot, v128.load(from + slot))
  } else {
    if (known & KnownMoments.extremes) mergeExtremes(into, from)
    if (known & KnownMoments.sum && finites(from) > 0) mergeSums(into, from, known)
    for (let slot = MomentsRow.count; slot <= MomentsRow.zeroCount; slot += 8)
      set(into, slot, get(into, slot) + get(from, slot))
  }
  if (known != before) keepOnly(into, known)
}

/** Sets what is no longer known to NaN. Everything but extremes requires Σx. */
function keepOnly(row: usize, known: i32): void {
  if (!(known & KnownMoments.extremes)) forget(row, MomentsRow.zeroCount, MomentsRow.exponent)
  if (!(known & KnownMoments.sum)) forget(row, MomentsRow.exponent, MomentsRow.known)
  if (!(known & KnownMoments.sumAbs)) for (let slot = MomentsRow.sumAbs; slot <= MomentsRow.m2Abs; slot += 24) set(row, slot, NaN)
  if (!(known & KnownMoments.squares)) forget(row, MomentsRow.m2, MomentsRow.prodMantissa)
  if (!(known & KnownMoments.product)) forget(row, MomentsRow.prodMantissa, MomentsRow.known)
  set(row, MomentsRow.known, known)
}

function forget(row: usize, first: usize, end: usize): void {
  for (let slot = first; slot < end; slot += 8) set(row, slot, NaN)
}

function mergeExtremes(into: usize, from: usize): void {
  if (isLess(from, into, MomentsRow.min, MomentsRow.minExact)) copy(into, from, MomentsRow.min, MomentsRow.minExact)
  if (isLess(into, from, MomentsRow.max, MomentsRow.maxExact)) copy(into, from, MomentsRow.max, MomentsRow.maxExact)
  if (isLess(from, into, MomentsRow.minAbs, MomentsRow.minAbsExact)) copy(into, from, MomentsRow.minAbs, MomentsRow.minAbsExact)
  if (isLess(into, from, MomentsRow.maxAbs, MomentsRow.maxAbsExact)) copy(into, from, MomentsRow.maxAbs, MomentsRow.maxAbsExact)
}

/**
 * Compares an extreme of two rows. If they are the same float64, the exact bits decide: no float64 stands for integers of both
 * signs, so unsigned order is right for int64, too.
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

/** Merges everything but the extremes, before the counts are merged. */
function mergeSums(into: usize, from: usize, known: i32): void {
  const n = finites(into)
  const m = finites(from)
  // Zeros fit any exponent
  const before = get(into, MomentsRow.exponent)
  const other = get(from, MomentsRow.exponent)
  const after =
    get(into, MomentsRow.sumAbs) == 0 ? other : get(from, MomentsRow.sumAbs) == 0 ? before : max(before, other)
  const unit = powerOfTwo(min(before - after, 0))
  const otherUnit = powerOfTwo(min(other - after, 0))
  set(into, MomentsRow.exponent, after)

  mergeSum(into, from, MomentsRow.sum, n, m, unit, otherUnit)
  if (known & KnownMoments.sumAbs) mergeSum(into, from, MomentsRow.sumAbs, n, m, unit, otherUnit)
  if (hasImaginary(into) || hasImaginary(from)) mergeSum(into, from, MomentsRow.sumImaginary, n, m, unit, otherUnit)
  if (!(known & KnownMoments.squares)) return

  const squares = twoSum(
    get(into, MomentsRow.sumSquares) * unit * unit,
    get(from, MomentsRow.sumSquares) * otherUnit * otherUnit,
  )
  const squaresLow =
    roundOff + get(into, MomentsRow.sumSquaresLow) * unit * unit + get(from, MomentsRow.sumSquaresLow) * otherUnit * otherUnit
  set(into, MomentsRow.sumSquares, twoSum(squares, squaresLow))
  set(into, MomentsRow.sumSquaresLow, roundOff)
  if (!(known & KnownMoments.product)) return

  setProduct(
    into,
    get(into, MomentsRow.prodMantissa) * get(from, MomentsRow.prodMantissa),
    get(into, MomentsRow.prodExponent) + get(from, MomentsRow.prodExponent),
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
  const high = twoSum(get(into, slot) * unit, get(from, slot) * otherUnit)
  const low = roundOff + get(into, slot + LOW_OF) * unit + get(from, slot + LOW_OF) * otherUnit
  setSum(into, slot, high, low, n + m)
}

function hasImaginary(row: usize): bool {
  return get(row, MomentsRow.sumImaginary) != 0 || get(row, MomentsRow.m2Imaginary) > 0
}
