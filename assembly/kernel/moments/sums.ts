// The sums of a block, by vectors: eight elements at once, the remaining ones one by one.

import { MomentsRow } from '../../../src/core/border/abi'
import { EXPONENT_BITS, ONE_BITS } from '../exponent'
import { absMask, at, exponentField, isDouble, loadPair, mantissa, sum4, sumAcross } from '../lanes'
import { part, set, setProduct } from './row'

/** Puts Σx into `part`. */
export function passSum<T>(data: usize, n: u32): void {
  pass<T>(data, n, false, false, false)
}

/** Σx and Σx². */
export function passSquares<T>(data: usize, n: u32): void {
  pass<T>(data, n, false, true, false)
}

/** Σx and Σ|x|. */
export function passSumsAbs<T>(data: usize, n: u32): void {
  pass<T>(data, n, true, false, false)
}

/** Σx, Σ|x| and Σx². */
export function passSquaresAbs<T>(data: usize, n: u32): void {
  pass<T>(data, n, true, true, false)
}

/** Σx, Σ|x|, Σx² and the product. */
export function passAll<T>(data: usize, n: u32): void {
  pass<T>(data, n, true, true, true)
}

// @ts-ignore: decorator
@inline
function pass<T>(data: usize, n: u32, hasAbs: bool, hasSquares: bool, hasProduct: bool): void {
  const mask = absMask<f64>()
  let sum = f64x2.splat(0)
  let sumAbs = f64x2.splat(0)
  let squares = f64x2.splat(0)
  let product = f64x2.splat(1)
  let exponents = i64x2.splat(0)
  const end = data + (<usize>n & ~7) * sizeof<T>()
  for (let p = data; p != end; p += 8 * sizeof<T>()) {
    let x0 = loadPair<T>(p)
    let x1 = loadPair<T>(p + 2 * sizeof<T>())
    let x2 = loadPair<T>(p + 4 * sizeof<T>())
    let x3 = loadPair<T>(p + 6 * sizeof<T>())
    sum = f64x2.add(sum, sum4(x0, x1, x2, x3))
    if (hasAbs) {
      sumAbs = f64x2.add(
        sumAbs,
        sum4(v128.and(x0, mask), v128.and(x1, mask), v128.and(x2, mask), v128.and(x3, mask)),
      )
    }
    if (!hasSquares) continue
    squares = f64x2.add(squares, sum4(f64x2.mul(x0, x0), f64x2.mul(x1, x1), f64x2.mul(x2, x2), f64x2.mul(x3, x3)))
    if (!hasProduct) continue
    // Four factors of 32 or 52 bits stay within 2^±600. A float64 can fill the range, so its exponent is
    // taken off first.
    if (isDouble<T>()) {
      exponents = i64x2.add(exponents, i64x2.add(exponentField(x0), exponentField(x1)))
      exponents = i64x2.add(exponents, i64x2.add(exponentField(x2), exponentField(x3)))
      x0 = mantissa(x0)
      x1 = mantissa(x1)
      x2 = mantissa(x2)
      x3 = mantissa(x3)
    }
    product = f64x2.mul(product, f64x2.mul(f64x2.mul(x0, x1), f64x2.mul(x2, x3)))
    exponents = i64x2.add(exponents, exponentField(product))
    product = mantissa(product)
  }

  let s = sumAcross<f64>(sum)
  let a = sumAcross<f64>(sumAbs)
  let q = sumAcross<f64>(squares)
  let factor = f64x2.extract_lane(product, 0) * f64x2.extract_lane(product, 1)
  const steps = (n >> 3) * 2 * (isDouble<T>() ? 5 : 1)
  let exponent = sumAcross<i64>(exponents) - 1023 * <i64>steps
  for (let i = n & ~7; i < n; i++) {
    const x = <f64>at<T>(data, i)
    s += x
    if (hasAbs) a += abs(x)
    if (!hasSquares) continue
    q += x * x
    if (!hasProduct) continue
    exponent += ((reinterpret<i64>(x) & EXPONENT_BITS) >> 52) - 1023
    factor *= reinterpret<f64>((reinterpret<i64>(x) & ~EXPONENT_BITS) | ONE_BITS)
  }
  set(part, MomentsRow.sum, s)
  if (hasAbs) set(part, MomentsRow.sumAbs, a)
  if (!hasSquares) return
  set(part, MomentsRow.sumSquares, q)
  if (!hasProduct) return
  setProduct(part, factor, <f64>exponent)
}

/**
 * Σ(x − mean)² of the elements, or of their absolute values. The mean of 64-bit elements is rounded; Σ(x − mean) corrects for
 * that.
 */
export function m2Around<T>(data: usize, n: u32, mean: f64, isAbsolute: bool): f64 {
  const mask = isAbsolute ? absMask<f64>() : i64x2.splat(-1)
  const k = f64x2.splat(mean)
  let sum = f64x2.splat(0)
  let squares = f64x2.splat(0)
  const end = data + (<usize>n & ~7) * sizeof<T>()
  for (let p = data; p != end; p += 8 * sizeof<T>()) {
    const d0 = f64x2.sub(v128.and(loadPair<T>(p), mask), k)
    const d1 = f64x2.sub(v128.and(loadPair<T>(p + 2 * sizeof<T>()), mask), k)
    const d2 = f64x2.sub(v128.and(loadPair<T>(p + 4 * sizeof<T>()), mask), k)
    const d3 = f64x2.sub(v128.and(loadPair<T>(p + 6 * sizeof<T>()), mask), k)
    if (sizeof<T>() == 8) sum = f64x2.add(sum, sum4(d0, d1, d2, d3))
    squares = f64x2.add(squares, sum4(f64x2.mul(d0, d0), f64x2.mul(d1, d1), f64x2.mul(d2, d2), f64x2.mul(d3, d3)))
  }
  let s = sumAcross<f64>(sum)
  let q = sumAcross<f64>(squares)
  const bits = i64x2.extract_lane(mask, 0)
  for (let i = n & ~7; i < n; i++) {
    const d = reinterpret<f64>(reinterpret<i64>(<f64>at<T>(data, i)) & bits) - mean
    if (sizeof<T>() == 8) s += d
    q += d * d
  }
  return max(q - s * (s / <f64>n), 0)
}
