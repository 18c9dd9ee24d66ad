// Arithmetic to twice the precision of float64, and exponents taken by hand.
//
// Where a number is written as two, high and low, low is what rounding took from high.

export const EXPONENT_BITS: i64 = 0x7ff0000000000000
export const ONE_BITS: i64 = 0x3ff0000000000000
export const TWO_32: f64 = 4294967296

/** What rounding took from the result of the last `add` or `multiply`. */
export let lost: f64 = 0

// @ts-ignore: decorator
@inline
export function add(a: f64, b: f64): f64 {
  const sum = a + b
  const ofB = sum - a
  lost = a - (sum - ofB) + (b - ofB)
  return sum
}

/** Dekker's product: halves of 26 bits multiply without rounding. */
// @ts-ignore: decorator
@inline
export function multiply(a: f64, b: f64): f64 {
  const product = a * b
  const a1 = upperHalf(a)
  const a2 = a - a1
  const b1 = upperHalf(b)
  const b2 = b - b1
  lost = a1 * b1 - product + a1 * b2 + a2 * b1 + a2 * b2
  return product
}

// @ts-ignore: decorator
@inline
export function upperHalf(x: f64): f64 {
  const shifted = x * 134217729
  return shifted - (shifted - x)
}

/** 2^exponent of an exponent ≤ 0, or 0 where that leaves nothing of a sum. */
// @ts-ignore: decorator
@inline
export function powerOfTwo(exponent: f64): f64 {
  return exponent < -1000 ? 0 : reinterpret<f64>((1023 + <i64>exponent) << 52)
}

/** x · 2^exponent, for |exponent| ≤ 2000; in two steps as 2^1074 is out of range. */
// @ts-ignore: decorator
@inline
export function scale(x: f64, exponent: i64): f64 {
  const half = exponent >> 1
  return x * reinterpret<f64>((1023 + half) << 52) * reinterpret<f64>((1023 + exponent - half) << 52)
}

/** The exponent of a finite number but zero: x = m · 2^exponent, 1 ≤ |m| < 2. */
// @ts-ignore: decorator
@inline
export function exponentOf(x: f64): i64 {
  const field = (reinterpret<i64>(x) & EXPONENT_BITS) >> 52
  if (field != 0) return field - 1023
  return ((reinterpret<i64>(x * TWO_32 * TWO_32) & EXPONENT_BITS) >> 52) - (1023 + 64)
}
