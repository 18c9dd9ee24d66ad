// int64 and uint64.

import { Moments } from '../layout'
import { at } from './lanes'
import { addPlain } from './plain'
import { get, part, set, setProduct, setSum, setSumsAbsOfOneSign } from './row'
import { add, exponentOf, lost, scale, TWO_32 } from './twofold'

/** Of a product before its exponent is taken. */
const LARGE: f64 = reinterpret<f64>(<i64>(1023 + 480) << 52)

/**
 * int64 and uint64. Numbers are taken as upper · 2^32 + lower, of which float64 holds both parts and their sums exactly.
 */
export function addWhole<T>(data: usize, n: u32, known: i32): void {
  if (isNarrow<T>(data, n)) {
    addPlain<T>(data, n, known)
    store<u64>(part + Moments.MIN_EXACT, <u64><i64>get(part, Moments.MIN))
    store<u64>(part + Moments.MAX_EXACT, <u64><i64>get(part, Moments.MAX))
    store<u64>(part + Moments.MIN_ABS_EXACT, <u64>get(part, Moments.MIN_ABS))
    store<u64>(part + Moments.MAX_ABS_EXACT, <u64>get(part, Moments.MAX_ABS))
    // Float64 may have rounded sums that have more bits than the elements
    setWholeSum(Moments.SUM, isSigned<T>() ? narrowSum >> 32 : narrowSum >>> 32, narrowSum & 0xffffffff, n)
    if (get(part, Moments.MIN) >= 0) setSumsAbsOfOneSign(part, 1)
    else if (get(part, Moments.MAX) <= 0) setSumsAbsOfOneSign(part, -1)
    return
  }
  let lowest = at<T>(data, 0)
  let highest = lowest
  let least = magnitude<T>(lowest)
  let most = least
  let upper: i64 = 0
  let lower: i64 = 0
  let upperAbs: i64 = 0
  let lowerAbs: i64 = 0
  let zeros: u32 = 0
  let product: f64 = 1
  let exponent: f64 = 0
  for (let i: u32 = 0; i < n; i++) {
    const x = at<T>(data, i)
    const m = magnitude<T>(x)
    lowest = min(lowest, x)
    highest = max(highest, x)
    least = min(least, m)
    most = max(most, m)
    upper += <i64>(x >> 32)
    lower += <i64>x & 0xffffffff
    upperAbs += m >> 32
    lowerAbs += m & 0xffffffff
    zeros += u32(m == 0)
    product *= x < 0 ? -(<f64>m) : m == 0 ? 1 : <f64>m
    if (abs(product) > LARGE) {
      const more = exponentOf(product)
      product = scale(product, -more)
      exponent += <f64>more
    }
  }
  const count = <f64>n
  set(part, Moments.ZERO_COUNT, <f64>zeros)
  set(part, Moments.MIN, <f64>lowest)
  set(part, Moments.MAX, <f64>highest)
  set(part, Moments.MIN_ABS, <f64>least)
  set(part, Moments.MAX_ABS, <f64>most)
  store<u64>(part + Moments.MIN_EXACT, <u64>lowest)
  store<u64>(part + Moments.MAX_EXACT, <u64>highest)
  store<u64>(part + Moments.MIN_ABS_EXACT, least)
  store<u64>(part + Moments.MAX_ABS_EXACT, most)
  setProduct(part, zeros > 0 ? copysign(0, product) : product, exponent)

  setWholeSum(Moments.SUM, upper, lower, n)
  set(part, Moments.M2, m2Whole<T>(data, n, <T>wholeMean(upper, lower, n), false))
  const mean = get(part, Moments.MEAN)
  set(part, Moments.SUM_SQUARES, get(part, Moments.M2) + mean * mean * count)
  if (lowest >= 0) setSumsAbsOfOneSign(part, 1)
  else if (highest <= 0) setSumsAbsOfOneSign(part, -1)
  else {
    setWholeSum(Moments.SUM_ABS, upperAbs, lowerAbs, n)
    set(part, Moments.M2_ABS, m2Whole<T>(data, n, <T>wholeMean(upperAbs, lowerAbs, n), true))
  }
}

/** The sum that `isNarrow` has come to, in 64 bits. */
let narrowSum: i64 = 0

/** Whether they are of so few bits that float64 holds them. */
function isNarrow<T>(data: usize, n: u32): bool {
  const bias = i64x2.splat(isSigned<T>() ? 1 << 51 : 0)
  let bits = i64x2.splat(0)
  let sums = i64x2.splat(0)
  const end = data + (<usize>n & ~3) * 8
  for (let p = data; p != end; p += 32) {
    const x0 = i64x2.add(v128.load(p), bias)
    const x1 = i64x2.add(v128.load(p, 16), bias)
    bits = v128.or(bits, v128.or(x0, x1))
    sums = i64x2.add(sums, i64x2.add(x0, x1))
  }
  let all = i64x2.extract_lane(bits, 0) | i64x2.extract_lane(bits, 1)
  let sum = i64x2.extract_lane(sums, 0) + i64x2.extract_lane(sums, 1)
  for (let i = n & ~3; i < n; i++) {
    const x = <i64>at<T>(data, i) + i64x2.extract_lane(bias, 0)
    all |= x
    sum += x
  }
  narrowSum = sum - <i64>n * i64x2.extract_lane(bias, 0)
  return <u64>all >> 52 == 0
}

/** Sets Σx, or Σ|x|, of upper · 2^32 + lower. */
function setWholeSum(slot: usize, upper: i64, lower: i64, n: u32): void {
  setSum(part, slot, add(<f64>upper * TWO_32, <f64>lower), lost, <f64>n)
}

/** |x| as an unsigned number, also of the lowest int64. */
// @ts-ignore: decorator
@inline
function magnitude<T>(x: T): u64 {
  return x < 0 ? 0 - <u64>x : <u64>x
}

/** (upper · 2^32 + lower) / n, to the next integer or so. */
function wholeMean(upper: i64, lower: i64, n: u32): i64 {
  return (upper / <i64>n << 32) + ((upper % <i64>n << 32) + lower) / <i64>n
}

/** Σ(x − mean)² around an integer near the mean, or likewise of |x|. */
function m2Whole<T>(data: usize, n: u32, pilot: T, absolute: bool): f64 {
  let sum: f64 = 0
  let squares: f64 = 0
  for (let i: u32 = 0; i < n; i++) {
    const x = absolute ? <T>magnitude<T>(at<T>(data, i)) : at<T>(data, i)
    const d = absolute
      ? <f64>(<i64>(<u64>x >> 32) - <i64>(<u64>pilot >> 32)) * TWO_32
      : <f64>(<i64>(x >> 32) - <i64>(pilot >> 32)) * TWO_32
    const whole = d + <f64>((<i64>x & 0xffffffff) - (<i64>pilot & 0xffffffff))
    sum += whole
    squares += whole * whole
  }
  return max(squares - sum * (sum / <f64>n), 0)
}
