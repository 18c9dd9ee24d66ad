// float64 as mantissa and exponent.

export const EXPONENT_BITS: i64 = 0x7ff0000000000000
export const ONE_BITS: i64 = 0x3ff0000000000000
export const TWO_32: f64 = 4294967296

/** 2^exponent for an exponent ≤ 0; 0 if that is too small to matter in a sum. */
// @ts-ignore: decorator
@inline
export function powerOfTwo(exponent: f64): f64 {
  return exponent < -1000 ? 0 : reinterpret<f64>((1023 + <i64>exponent) << 52)
}

/** x · 2^exponent, for |exponent| ≤ 2000; in two steps, as 2^1074 is out of range. */
// @ts-ignore: decorator
@inline
export function ldexp(x: f64, exponent: i64): f64 {
  const half = exponent >> 1
  return x * reinterpret<f64>((1023 + half) << 52) * reinterpret<f64>((1023 + exponent - half) << 52)
}

/** The exponent of a finite number that is not 0: x = m · 2^exponent, 1 ≤ |m| < 2. */
// @ts-ignore: decorator
@inline
export function exponentOf(x: f64): i64 {
  const field = (reinterpret<i64>(x) & EXPONENT_BITS) >> 52
  if (field != 0) return field - 1023
  return ((reinterpret<i64>(x * TWO_32 * TWO_32) & EXPONENT_BITS) >> 52) - (1023 + 64)
}
