// Extreme float64 and complex numbers: one by one, in units of a power of two.

import { MomentsRow } from '../../../src/core/border/abi'
import { exponentOf, ldexp, TWO_32 } from '../exponent'
import { at } from '../lanes'
import { part, set, setProduct, setSumAround } from './row'

/** Numbers with absolute values between these can be squared and summed as they are, and so can 0. */
export const LARGE: f64 = reinterpret<f64>(<i64>(1023 + 480) << 52)
export const SMALL: f64 = reinterpret<f64>(<i64>(1023 - 400) << 52)

/**
 * Adds extreme float64, and complex numbers as two parts each. Three passes: extremes and counts; sums; squares around
 * the means.
 */
export function addScaled<T>(data: usize, n: u32, parts: u32): void {
  let nans: f64 = 0
  let infinite: f64 = 0
  let zeros: f64 = 0
  let lowest: f64 = Infinity
  let highest: f64 = -Infinity
  let least: f64 = Infinity
  let most: f64 = 0
  let largestPart: f64 = 0
  let product: f64 = 1
  let exponent: i64 = 0
  for (let i: u32 = 0; i < n; i++) {
    const x = <f64>at<T>(data, i * parts)
    const y = parts == 2 ? <f64>at<T>(data, i * parts + 1) : 0
    if (isNaN(x) || isNaN(y)) {
      nans++
      continue
    }
    lowest = x < lowest ? x : lowest
    highest = x > highest ? x : highest
    const larger = max(abs(x), abs(y))
    // |z| = length · 2^e, without overflow or loss
    let absolute = larger
    if (larger == Infinity) {
      infinite++
    } else if (larger == 0) {
      zeros++
      product *= parts == 1 ? copysign(1, x) : 1
    } else {
      largestPart = larger > largestPart ? larger : largestPart
      const e = exponentOf(larger)
      let length = ldexp(x, -e)
      if (parts == 2) {
        const other = ldexp(y, -e)
        length = sqrt(length * length + other * other)
        absolute = ldexp(length, e)
      }
      product *= length
      exponent += e
      if (abs(product) >= TWO_32) {
        product *= 1 / TWO_32
        exponent += 32
      }
    }
    least = absolute < least ? absolute : least
    most = absolute > most ? absolute : most
  }
  set(part, MomentsRow.nanCount, nans)
  set(part, MomentsRow.positiveInfinityCount, infinite)
  set(part, MomentsRow.zeroCount, zeros)
  set(part, MomentsRow.min, lowest)
  set(part, MomentsRow.max, highest)
  set(part, MomentsRow.minAbs, least)
  set(part, MomentsRow.maxAbs, most)
  setProduct(part, zeros > 0 ? copysign(0, product) : product, <f64>exponent)

  const count = <f64>n - nans - infinite
  if (count == 0) return
  const unit: i64 = largestPart > LARGE || (largestPart < SMALL && largestPart > 0) ? exponentOf(largestPart) : 0
  set(part, MomentsRow.exponent, <f64>unit)
  // Two factors, see `ldexp`
  const scale1 = ldexp(1, -unit >> 1)
  const scale2 = ldexp(1, -unit - (-unit >> 1))
  let sum: f64 = 0
  let sumImaginary: f64 = 0
  let sumAbs: f64 = 0
  let squares: f64 = 0
  for (let i: u32 = 0; i < n; i++) {
    const x = <f64>at<T>(data, i * parts) * scale1 * scale2
    const y = parts == 2 ? <f64>at<T>(data, i * parts + 1) * scale1 * scale2 : 0
    if (!isFinite(x) || !isFinite(y)) continue
    const square = x * x + y * y
    sum += x
    sumImaginary += y
    sumAbs += parts == 2 ? sqrt(square) : abs(x)
    squares += square
  }
  set(part, MomentsRow.sumSquares, squares)

  const mean = sum / count
  const meanImaginary = sumImaginary / count
  const meanAbs = sumAbs / count
  let m2: f64 = 0
  let m2Imaginary: f64 = 0
  let m2Abs: f64 = 0
  let rest: f64 = 0
  let restImaginary: f64 = 0
  let restAbs: f64 = 0
  for (let i: u32 = 0; i < n; i++) {
    const x = <f64>at<T>(data, i * parts) * scale1 * scale2
    const y = parts == 2 ? <f64>at<T>(data, i * parts + 1) * scale1 * scale2 : 0
    if (!isFinite(x) || !isFinite(y)) continue
    const d = x - mean
    const da = (parts == 2 ? sqrt(x * x + y * y) : abs(x)) - meanAbs
    m2 += d * d
    m2Abs += da * da
    rest += d
    restAbs += da
    if (parts == 2) {
      const di = y - meanImaginary
      m2Imaginary += di * di
      restImaginary += di
    }
  }
  setSumAround(MomentsRow.sum, mean, rest, m2, count)
  setSumAround(MomentsRow.sumAbs, meanAbs, restAbs, m2Abs, count)
  if (parts == 2) setSumAround(MomentsRow.sumImaginary, meanImaginary, restImaginary, m2Imaginary, count)
}
