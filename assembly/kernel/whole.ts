// int64 and uint64. Of at most 52 bits they are plain numbers; of more, all that has to be exact is done with integers.

import { KnownMoments, MomentsRow } from '../../src/engine/abi'
import { at } from './lanes'
import { addPlain } from './plain'
import { get, part, set, setProduct, setSum, setSumsAbsOfOneSign } from './row'
import { add, EXPONENT_BITS, lost, ONE_BITS, TWO_32 } from './twofold'

/** V8 builds constants anew at each use, and a load is one instruction. */
const CONSTANTS: usize = memory.data<u64>(
  [
    0x8000000000000000, 0x8000000000000000, 0x00000000ffffffff, 0x00000000ffffffff, 0x4330000000000000,
    0x4330000000000000, 0x4530000080000000, 0x4530000080000000, 0x4530000080100000, 0x4530000080100000,
    0x4530000000000000, 0x4530000000000000, 0x4530000000100000, 0x4530000000100000,
  ],
  16,
)
const SIGN: usize = 0
const LOWER: usize = 16
/** float64: 2^52, 2^84 + 2^63, that and 2^52, 2^84, that and 2^52. See `toFloat64`. */
const OF_LOWER: usize = 32
const OF_SIGNED: usize = 48
const BOTH_SIGNED: usize = 64
const OF_UNSIGNED: usize = 80
const BOTH_UNSIGNED: usize = 96

/** Fills `part` with the moments of a block. */
export function addWhole<T>(data: usize, n: u32, known: i32): void {
  if (isNarrow<T>(data, n)) addNarrow<T>(data, n, known)
  else addWide<T>(data, n, known)
}

// ---------------------------------------------------------------------------------------------------- Up to 52 bits

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

function addNarrow<T>(data: usize, n: u32, known: i32): void {
  addPlain<T>(data, n, known)
  store<u64>(part + MomentsRow.minExact, <u64><i64>get(part, MomentsRow.min))
  store<u64>(part + MomentsRow.maxExact, <u64><i64>get(part, MomentsRow.max))
  store<u64>(part + MomentsRow.minAbsExact, <u64>get(part, MomentsRow.minAbs))
  store<u64>(part + MomentsRow.maxAbsExact, <u64>get(part, MomentsRow.maxAbs))
  // Float64 may have rounded sums that have more bits than the elements
  setWholeSum(MomentsRow.sum, isSigned<T>() ? narrowSum >> 32 : narrowSum >>> 32, narrowSum & 0xffffffff, n)
  if (get(part, MomentsRow.min) >= 0) setSumsAbsOfOneSign(part, 1)
  else if (get(part, MomentsRow.max) <= 0) setSumsAbsOfOneSign(part, -1)
}

/** Sets Σx, or Σ|x|, of upper · 2^32 + lower: float64 holds both exactly. */
function setWholeSum(slot: usize, upper: i64, lower: i64, n: u32): void {
  setSum(part, slot, add(<f64>upper * TWO_32, <f64>lower), lost, <f64>n)
}

// ---------------------------------------------------------------------------------------------------- More bits

/** Σ of the upper halves, and of the lower ones. */
let upper: i64 = 0
let lower: i64 = 0

function addWide<T>(data: usize, n: u32, known: i32): void {
  passWhole<T>(data, n)
  const lowest = load<T>(part + MomentsRow.minExact)
  const highest = load<T>(part + MomentsRow.maxExact)
  set(part, MomentsRow.min, <f64>lowest)
  set(part, MomentsRow.max, <f64>highest)
  setWholeSum(MomentsRow.sum, upper, lower, n)
  // Both ends less than 2^63 apart leave differences within 64 bits
  const isClose = <i64>(highest - lowest) >= 0
  if (known & KnownMoments.squares) {
    const pilot = wholeMean(upper, lower, n)
    const m2 = isClose ? m2Whole<T>(data, n, pilot, false) : m2Float<T>(data, n, get(part, MomentsRow.mean))
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
    setWholeSum(MomentsRow.sumAbs, upper, lower, n)
    const squares = get(part, MomentsRow.sumSquares)
    const sumAbs = get(part, MomentsRow.sumAbs)
    const m2Abs = squares - sumAbs * (sumAbs / <f64>n)
    const cancels = (known & KnownMoments.squares) != 0 && m2Abs < 1e-3 * squares
    set(part, MomentsRow.m2Abs, cancels ? m2Whole<T>(data, n, wholeMean(upper, lower, n), true) : m2Abs)
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
function passWhole<T>(data: usize, n: u32): void {
  const sign = v128.load(CONSTANTS, SIGN)
  const lowerBits = v128.load(CONSTANTS, LOWER)
  // As signed numbers, which is how vectors can be compared
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
    lowest = lesser(lowest, lesser(signed0, signed1))
    highest = greater(highest, greater(signed0, signed1))
    // Those of signed numbers are 2^31 too large, so that they can be shifted as unsigned ones
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
  upper = i64x2.extract_lane(uppers, 0) + i64x2.extract_lane(uppers, 1)
  lower = i64x2.extract_lane(lowers, 0) + i64x2.extract_lane(lowers, 1)
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
  const lowerBits = v128.load(CONSTANTS, LOWER)
  // −|x| is in the range of int64 also where |x| is not
  let nearest = i64x2.splat(i64.MIN_VALUE)
  let uppers = i64x2.splat(0)
  let lowers = i64x2.splat(0)
  const end = data + (<usize>n & ~3) * 8
  for (let p = data; p != end; p += 32) {
    const x0 = i64x2.abs(v128.load(p))
    const x1 = i64x2.abs(v128.load(p, 16))
    nearest = greater(nearest, greater(i64x2.neg(x0), i64x2.neg(x1)))
    uppers = i64x2.add(uppers, i64x2.add(i64x2.shr_u(x0, 32), i64x2.shr_u(x1, 32)))
    lowers = i64x2.add(lowers, i64x2.add(v128.and(x0, lowerBits), v128.and(x1, lowerBits)))
  }
  let least = 0 - <u64>max(i64x2.extract_lane(nearest, 0), i64x2.extract_lane(nearest, 1))
  upper = i64x2.extract_lane(uppers, 0) + i64x2.extract_lane(uppers, 1)
  lower = i64x2.extract_lane(lowers, 0) + i64x2.extract_lane(lowers, 1)
  for (let i = n & ~3; i < n; i++) {
    const x = magnitude(at<i64>(data, i))
    least = min(least, x)
    upper += x >> 32
    lower += x & 0xffffffff
  }
  store<u64>(part + MomentsRow.minAbsExact, least)
}

function passProduct<T>(data: usize, n: u32): void {
  const exponentBits = i64x2.splat(EXPONENT_BITS)
  const one = i64x2.splat(ONE_BITS)
  let product = one
  let exponents = i64x2.splat(0)
  const end = data + (<usize>n & ~3) * 8
  for (let p = data; p != end; p += 32) {
    product = f64x2.mul(product, f64x2.mul(toFloat64<T>(v128.load(p)), toFloat64<T>(v128.load(p, 16))))
    exponents = i64x2.add(exponents, i64x2.shr_u(v128.and(product, exponentBits), 52))
    product = v128.or(v128.andnot(product, exponentBits), one)
  }
  let factor = f64x2.extract_lane(product, 0) * f64x2.extract_lane(product, 1)
  for (let i = n & ~3; i < n; i++) factor *= <f64>at<T>(data, i)
  const exponent = i64x2.extract_lane(exponents, 0) + i64x2.extract_lane(exponents, 1) - 1023 * <i64>((n >> 2) * 2)
  setProduct(part, factor, <f64>exponent)
}

/** Σ(x − mean)² around an integer near the mean, or likewise of |x|. */
function m2Whole<T>(data: usize, n: u32, pilot: i64, isAbsolute: bool): f64 {
  const k = i64x2.splat(pilot)
  let sums = f64x2.splat(0)
  let squares = f64x2.splat(0)
  const end = data + (<usize>n & ~1) * 8
  for (let p = data; p != end; p += 16) {
    const x = v128.load(p)
    const d = toFloat64<i64>(i64x2.sub(isAbsolute ? i64x2.abs(x) : x, k))
    sums = f64x2.add(sums, d)
    squares = f64x2.add(squares, f64x2.mul(d, d))
  }
  const last = n & 1 ? at<i64>(data, n - 1) : pilot
  return m2From(sums, squares, <f64>((n & 1 && isAbsolute ? <i64>magnitude(last) : last) - pilot), n)
}

/** Σ(x − mean)² of numbers so far apart that float64 tells them from their mean. */
function m2Float<T>(data: usize, n: u32, mean: f64): f64 {
  const k = f64x2.splat(mean)
  let sums = f64x2.splat(0)
  let squares = f64x2.splat(0)
  const end = data + (<usize>n & ~1) * 8
  for (let p = data; p != end; p += 16) {
    const d = f64x2.sub(toFloat64<T>(v128.load(p)), k)
    sums = f64x2.add(sums, d)
    squares = f64x2.add(squares, f64x2.mul(d, d))
  }
  return m2From(sums, squares, n & 1 ? <f64>at<T>(data, n - 1) - mean : 0, n)
}

function m2From(sums: v128, squares: v128, last: f64, n: u32): f64 {
  const sum = f64x2.extract_lane(sums, 0) + f64x2.extract_lane(sums, 1) + last
  const all = f64x2.extract_lane(squares, 0) + f64x2.extract_lane(squares, 1) + last * last
  return max(all - sum * (sum / <f64>n), 0)
}

function countZeros(data: usize, n: u32): f64 {
  let count: u32 = 0
  for (let i: u32 = 0; i < n; i++) count += u32(at<i64>(data, i) == 0)
  return <f64>count
}

// @ts-ignore: decorator
@inline
function lesser(a: v128, b: v128): v128 {
  return v128.bitselect(b, a, i64x2.gt_s(a, b))
}

// @ts-ignore: decorator
@inline
function greater(a: v128, b: v128): v128 {
  return v128.bitselect(b, a, i64x2.gt_s(b, a))
}

/** |x| as an unsigned number, also of the lowest int64. */
// @ts-ignore: decorator
@inline
function magnitude(x: i64): u64 {
  return x < 0 ? 0 - <u64>x : <u64>x
}

/** (upper · 2^32 + lower) / n, to the next integer or so. */
function wholeMean(upper: i64, lower: i64, n: u32): i64 {
  return (upper / <i64>n << 32) + ((upper % <i64>n << 32) + lower) / <i64>n
}

/**
 * Rounded once. The halves become the lowest bits of 2^52 and 2^84 (of signed numbers 2^84 + 2^63, the upper half being
 * 2^31 too large when its sign is flipped), and these are taken off again before the halves meet.
 */
// @ts-ignore: decorator
@inline
function toFloat64<T>(x: v128): v128 {
  const low = v128.or(v128.and(x, v128.load(CONSTANTS, LOWER)), v128.load(CONSTANTS, OF_LOWER))
  const high = v128.xor(i64x2.shr_u(x, 32), v128.load(CONSTANTS, isSigned<T>() ? OF_SIGNED : OF_UNSIGNED))
  return f64x2.add(f64x2.sub(high, v128.load(CONSTANTS, isSigned<T>() ? BOTH_SIGNED : BOTH_UNSIGNED)), low)
}
