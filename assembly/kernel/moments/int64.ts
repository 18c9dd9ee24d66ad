// int64 and uint64. Numbers of at most 52 bits are treated as float64; with more bits, what has to be exact uses integers.

import { KnownMoments, MomentsRow } from '../../../src/core/border/abi'
import { roundOff, twoSum } from '../double-double'
import { TWO_32 } from '../exponent'
import { addFinite } from './finite'
import { at, exponentField, int64ToFloat64, lowerMask, mantissa, maxInt64, minInt64, signMask, sumAcross } from '../lanes'
import { get, part, set, setProduct, setSum, setSumsAbsOfOneSign } from './row'

/** Fills `part` with the moments of a block. */
export function addInt64<T>(data: usize, n: u32, known: i32): void {
  if (isNarrow<T>(data, n)) addNarrow<T>(data, n, known)
  else addWide<T>(data, n, known)
}

// ---------------------------------------------------------------------------------------------------- Up to 52 bits

/** The sum that `isNarrow` computed, in 64 bits. */
let narrowSum: i64 = 0

/** True if all elements fit into 52 bits, so that float64 holds them. */
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
  let sum = sumAcross<i64>(sums)
  for (let i = n & ~3; i < n; i++) {
    const x = <i64>at<T>(data, i) + i64x2.extract_lane(bias, 0)
    all |= x
    sum += x
  }
  narrowSum = sum - <i64>n * i64x2.extract_lane(bias, 0)
  return <u64>all >> 52 == 0
}

function addNarrow<T>(data: usize, n: u32, known: i32): void {
  addFinite<T>(data, n, known)
  store<u64>(part + MomentsRow.minExact, <u64><i64>get(part, MomentsRow.min))
  store<u64>(part + MomentsRow.maxExact, <u64><i64>get(part, MomentsRow.max))
  store<u64>(part + MomentsRow.minAbsExact, <u64>get(part, MomentsRow.minAbs))
  store<u64>(part + MomentsRow.maxAbsExact, <u64>get(part, MomentsRow.maxAbs))
  // float64 may have rounded the sums, which have more bits than the elements
  setIntegerSum(MomentsRow.sum, isSigned<T>() ? narrowSum >> 32 : narrowSum >>> 32, narrowSum & 0xffffffff, n)
  if (get(part, MomentsRow.min) >= 0) setSumsAbsOfOneSign(part, 1)
  else if (get(part, MomentsRow.max) <= 0) setSumsAbsOfOneSign(part, -1)
}

/** Sets Σx, or Σ|x|, of upper · 2^32 + lower: float64 holds both exactly. */
function setIntegerSum(slot: usize, upper: i64, lower: i64, n: u32): void {
  setSum(part, slot, twoSum(<f64>upper * TWO_32, <f64>lower), roundOff, <f64>n)
}

// ---------------------------------------------------------------------------------------------------- More bits

/** The sums of the upper and of the lower halves. */
let upper: i64 = 0
let lower: i64 = 0

function addWide<T>(data: usize, n: u32, known: i32): void {
  passExtremesAndSum<T>(data, n)
  const lowest = load<T>(part + MomentsRow.minExact)
  const highest = load<T>(part + MomentsRow.maxExact)
  set(part, MomentsRow.min, <f64>lowest)
  set(part, MomentsRow.max, <f64>highest)
  setIntegerSum(MomentsRow.sum, upper, lower, n)
  // If both extremes are less than 2^63 apart, differences fit into 64 bits
  const isClose = <i64>(highest - lowest) >= 0
  if (known & KnownMoments.squares) {
    const pilot = integerMean(upper, lower, n)
    const m2 = isClose ? m2Exact<T>(data, n, pilot, false) : m2Float<T>(data, n, get(part, MomentsRow.mean))
    const mean = get(part, MomentsRow.mean)
    set(part, MomentsRow.m2, m2)
    set(part, MomentsRow.sumSquares, m2 + mean * mean * <f64>n)
    if (known & KnownMoments.product) passProduct<T>(data, n)
  }
  if (lowest >= 0 || highest <= 0) {
    const isPositive = lowest >= 0
    store<u64>(part + MomentsRow.minAbsExact, isPositive ? <u64>lowest : 0 - <u64>highest)
    store<u64>(part + MomentsRow.maxAbsExact, isPositive ? <u64>highest : 0 - <u64>lowest)
    setSumsAbsOfOneSign(part, isPositive ? 1 : -1)
  } else {
    passMagnitudes(data, n)
    store<u64>(part + MomentsRow.maxAbsExact, max(0 - <u64>lowest, <u64>highest))
    setIntegerSum(MomentsRow.sumAbs, upper, lower, n)
    const squares = get(part, MomentsRow.sumSquares)
    const sumAbs = get(part, MomentsRow.sumAbs)
    const m2Abs = squares - sumAbs * (sumAbs / <f64>n)
    const cancels = (known & KnownMoments.squares) != 0 && m2Abs < 1e-3 * squares
    set(part, MomentsRow.m2Abs, cancels ? m2Exact<T>(data, n, integerMean(upper, lower, n), true) : m2Abs)
  }
  const least = load<u64>(part + MomentsRow.minAbsExact)
  set(part, MomentsRow.minAbs, <f64>least)
  set(part, MomentsRow.maxAbs, <f64>load<u64>(part + MomentsRow.maxAbsExact))
  if (least == 0) {
    set(part, MomentsRow.zeroCount, countZeros(data, n))
    setProduct(part, copysign(0, get(part, MomentsRow.prodMantissa)), 0)
  }
}

/** Finds the extremes and the sum. */
function passExtremesAndSum<T>(data: usize, n: u32): void {
  const sign = signMask()
  const lowerBits = lowerMask()
  // As signed numbers, since vectors have only signed comparisons
  let lowest = i64x2.splat(i64.MAX_VALUE)
  let highest = i64x2.splat(i64.MIN_VALUE)
  let uppers = i64x2.splat(0)
  let lowers = i64x2.splat(0)
  const end = data + (<usize>n & ~3) * 8
  for (let p = data; p != end; p += 32) {
    const x0 = v128.load(p)
    const x1 = v128.load(p, 16)
    const flipped0 = v128.xor(x0, sign)
    const flipped1 = v128.xor(x1, sign)
    const signed0 = isSigned<T>() ? x0 : flipped0
    const signed1 = isSigned<T>() ? x1 : flipped1
    lowest = minInt64(lowest, minInt64(signed0, signed1))
    highest = maxInt64(highest, maxInt64(signed0, signed1))
    // The upper halves of signed numbers are 2^31 too large, so that they can be shifted as unsigned ones
    const upper0 = i64x2.shr_u(isSigned<T>() ? flipped0 : x0, 32)
    const upper1 = i64x2.shr_u(isSigned<T>() ? flipped1 : x1, 32)
    uppers = i64x2.add(uppers, i64x2.add(upper0, upper1))
    lowers = i64x2.add(lowers, i64x2.add(v128.and(x0, lowerBits), v128.and(x1, lowerBits)))
  }
  if (!isSigned<T>()) {
    lowest = v128.xor(lowest, sign)
    highest = v128.xor(highest, sign)
  }
  let least = min(<T>i64x2.extract_lane(lowest, 0), <T>i64x2.extract_lane(lowest, 1))
  let most = max(<T>i64x2.extract_lane(highest, 0), <T>i64x2.extract_lane(highest, 1))
  upper = sumAcross<i64>(uppers)
  lower = sumAcross<i64>(lowers)
  if (isSigned<T>()) upper -= <i64>(n & ~3) << 31
  for (let i = n & ~3; i < n; i++) {
    const x = at<T>(data, i)
    least = min(least, x)
    most = max(most, x)
    upper += <i64>(x >> 32)
    lower += <i64>x & 0xffffffff
  }
  store<T>(part + MomentsRow.minExact, least)
  store<T>(part + MomentsRow.maxExact, most)
}

/** Finds the least |x| and Σ|x| of int64. */
function passMagnitudes(data: usize, n: u32): void {
  const lowerBits = lowerMask()
  // −|x| always fits into int64, |x| does not
  let nearest = i64x2.splat(i64.MIN_VALUE)
  let uppers = i64x2.splat(0)
  let lowers = i64x2.splat(0)
  const end = data + (<usize>n & ~3) * 8
  for (let p = data; p != end; p += 32) {
    const x0 = i64x2.abs(v128.load(p))
    const x1 = i64x2.abs(v128.load(p, 16))
    nearest = maxInt64(nearest, maxInt64(i64x2.neg(x0), i64x2.neg(x1)))
    uppers = i64x2.add(uppers, i64x2.add(i64x2.shr_u(x0, 32), i64x2.shr_u(x1, 32)))
    lowers = i64x2.add(lowers, i64x2.add(v128.and(x0, lowerBits), v128.and(x1, lowerBits)))
  }
  let least = 0 - <u64>max(i64x2.extract_lane(nearest, 0), i64x2.extract_lane(nearest, 1))
  upper = sumAcross<i64>(uppers)
  lower = sumAcross<i64>(lowers)
  for (let i = n & ~3; i < n; i++) {
    const x = magnitude(at<i64>(data, i))
    least = min(least, x)
    upper += x >> 32
    lower += x & 0xffffffff
  }
  store<u64>(part + MomentsRow.minAbsExact, least)
}

function passProduct<T>(data: usize, n: u32): void {
  let product = f64x2.splat(1)
  let exponents = i64x2.splat(0)
  const end = data + (<usize>n & ~3) * 8
  for (let p = data; p != end; p += 32) {
    product = f64x2.mul(product, f64x2.mul(int64ToFloat64<T>(v128.load(p)), int64ToFloat64<T>(v128.load(p, 16))))
    exponents = i64x2.add(exponents, exponentField(product))
    product = mantissa(product)
  }
  let factor = f64x2.extract_lane(product, 0) * f64x2.extract_lane(product, 1)
  for (let i = n & ~3; i < n; i++) factor *= <f64>at<T>(data, i)
  const exponent = sumAcross<i64>(exponents) - 1023 * <i64>((n >> 2) * 2)
  setProduct(part, factor, <f64>exponent)
}

/** Σ(x − mean)², computed around an integer near the mean; or the same of |x|. */
function m2Exact<T>(data: usize, n: u32, pilot: i64, isAbsolute: bool): f64 {
  const k = i64x2.splat(pilot)
  let sums = f64x2.splat(0)
  let squares = f64x2.splat(0)
  const end = data + (<usize>n & ~1) * 8
  for (let p = data; p != end; p += 16) {
    const x = v128.load(p)
    const d = int64ToFloat64<i64>(i64x2.sub(isAbsolute ? i64x2.abs(x) : x, k))
    sums = f64x2.add(sums, d)
    squares = f64x2.add(squares, f64x2.mul(d, d))
  }
  const last = n & 1 ? at<i64>(data, n - 1) : pilot
  return m2From(sums, squares, <f64>((n & 1 && isAbsolute ? <i64>magnitude(last) : last) - pilot), n)
}

/** Σ(x − mean)² of numbers so far apart that float64 can tell them from their mean. */
function m2Float<T>(data: usize, n: u32, mean: f64): f64 {
  const k = f64x2.splat(mean)
  let sums = f64x2.splat(0)
  let squares = f64x2.splat(0)
  const end = data + (<usize>n & ~1) * 8
  for (let p = data; p != end; p += 16) {
    const d = f64x2.sub(int64ToFloat64<T>(v128.load(p)), k)
    sums = f64x2.add(sums, d)
    squares = f64x2.add(squares, f64x2.mul(d, d))
  }
  return m2From(sums, squares, n & 1 ? <f64>at<T>(data, n - 1) - mean : 0, n)
}

function m2From(sums: v128, squares: v128, last: f64, n: u32): f64 {
  const sum = sumAcross<f64>(sums) + last
  const all = sumAcross<f64>(squares) + last * last
  return max(all - sum * (sum / <f64>n), 0)
}

function countZeros(data: usize, n: u32): f64 {
  let count: u32 = 0
  for (let i: u32 = 0; i < n; i++) count += u32(at<i64>(data, i) == 0)
  return <f64>count
}

/** |x| as an unsigned number, so that the lowest int64 fits. */
// @ts-ignore: decorator
@inline
function magnitude(x: i64): u64 {
  return x < 0 ? 0 - <u64>x : <u64>x
}

/** (upper · 2^32 + lower) / n, to about the nearest integer. */
function integerMean(upper: i64, lower: i64, n: u32): i64 {
  return (upper / <i64>n << 32) + ((upper % <i64>n << 32) + lower) / <i64>n
}
