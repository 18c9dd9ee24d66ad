// Numbers that can be squared and summed as they are, by vectors.

import { KnownMoments, MomentsRow } from '../../src/engine/abi'
import { addCarefully, LARGE, SMALL } from './careful'
import { at } from './lanes'
import { get, momentsReset, part, set, setProduct, setSum, setSumsAbsOfOneSign } from './row'
import { add, EXPONENT_BITS, lost, ONE_BITS } from './twofold'

/** Sums of no more than these are right to the last digit. */
const FEW: u32 = 64

const INFINITY_BITS: i32 = 0x7f800000
const SMALLEST_NORMAL: f64 = reinterpret<f64>(<i64>1 << 52)

/** V8 builds constants anew at each use, and a load is one instruction. */
const CONSTANTS: usize = memory.data<u64>(
  [
    0x7ff0000000000000, 0x7ff0000000000000, 0x3ff0000000000000, 0x3ff0000000000000, 0x7fffffff7fffffff,
    0x7fffffff7fffffff, 0x4338000000000000, 0x4338000000000000, 0x4330000000000000, 0x4330000000000000,
    0x7fffffffffffffff, 0x7fffffffffffffff, 0x800fffffffffffff, 0x800fffffffffffff,
  ],
  16,
)
/** Of float64: the bits of the exponent, 1. */
const EXPONENTS: usize = 0
const ONE: usize = 16
/** All bits but the sign, of float32. */
const MAGNITUDE32: usize = 32
/** 3·2^51 and 2^52: see `load16`. */
const SIGNED: usize = 48
const UNSIGNED: usize = 64
/** All bits but the sign, and all but the exponent, of float64. */
const MAGNITUDE64: usize = 80
const FRACTION: usize = 96

/** A block of elements that were widened, or left by `addSifted`. */
export const wide: usize = memory.data(4096 * 8, 16)

/**
 * Fills `part` with the moments of a block. 64-bit integers must be of at most 52 bits.
 * @param known as `momentsAdd` has completed it
 */
export function addPlain<T>(data: usize, n: u32, known: i32): void {
  const hasExtremes = (known & KnownMoments.extremes) != 0
  const isOrdinary = hasExtremes ? passExtremes<T>(data, n) : true
  if (isFloat<T>()) {
    if (!isOrdinary && addSifted<T>(data, n, known)) return
    if (sizeof<T>() == 8 && (!isOrdinary || isExtreme(data, n))) {
      addCarefully<T>(data, n, 1)
      return
    }
  }
  if (known & KnownMoments.product) passAll<T>(data, n)
  else if (known & KnownMoments.sumAbs) {
    if (known & KnownMoments.squares) passSquaresAbs<T>(data, n)
    else passSumsAbs<T>(data, n)
  } else if (known & KnownMoments.squares) passSquares<T>(data, n)
  else if (known & KnownMoments.sum) passSum<T>(data, n)
  // Only NaN and ±∞ leave the sum of float32 not finite
  if (isFloat<T>() && !hasExtremes && !isFinite(get(part, MomentsRow.sum)) && addSifted<T>(data, n, known)) return
  if (known & KnownMoments.sum) setSums<T>(data, n, known)
  if (hasExtremes && get(part, MomentsRow.minAbs) == 0) {
    set(part, MomentsRow.zeroCount, countAbsBelow<T>(data, n, 0))
    setProduct(part, copysign(0, get(part, MomentsRow.prodMantissa)), 0)
  }
}

/** From the raw Σx, Σ|x| and Σx² that a pass left to the slots of sums and squares. */
function setSums<T>(data: usize, n: u32, known: i32): void {
  const count = <f64>n
  const sum = get(part, MomentsRow.sum)
  const sumAbs = get(part, MomentsRow.sumAbs)
  // Of a few numbers a person knows the sum
  if (isFloat<T>() && n <= FEW) setSumOfFew<T>(data, n)
  else setSum(part, MomentsRow.sum, sum, 0, count)
  const squares = get(part, MomentsRow.sumSquares)
  if (known & KnownMoments.squares) set(part, MomentsRow.m2, m2Of<T>(data, n, squares, sum, false))
  if (!(known & KnownMoments.sumAbs)) return
  const sign = get(part, MomentsRow.min) >= 0 ? 1 : get(part, MomentsRow.max) <= 0 ? -1 : 0
  if (sign != 0) {
    setSumsAbsOfOneSign(part, sign)
    return
  }
  setSum(part, MomentsRow.sumAbs, sumAbs, 0, count)
  if (known & KnownMoments.squares) set(part, MomentsRow.m2Abs, m2Of<T>(data, n, squares, sumAbs, true))
}

/** Σ(x − mean)², or of |x|: from Σx² − (Σx)²/n, or where that cancels by a second pass. */
function m2Of<T>(data: usize, n: u32, squares: f64, sum: f64, isAbsolute: bool): f64 {
  const mean = sum / <f64>n
  const m2 = squares - sum * mean
  if (m2 >= 1e-3 * squares) return m2
  return m2Around<T>(data, n, mean, isAbsolute ? v128.load(CONSTANTS, MAGNITUDE64) : i64x2.splat(-1))
}

function setSumOfFew<T>(data: usize, n: u32): void {
  let high: f64 = 0
  let low: f64 = 0
  for (let i: u32 = 0; i < n; i++) {
    high = add(high, <f64>at<T>(data, i))
    low += lost
  }
  setSum(part, MomentsRow.sum, high, low, <f64>n)
}

/** A block with NaN or ±∞: moves the finite elements to `wide` (`data` may be that) and takes them as a block. */
function addSifted<T>(data: usize, n: u32, known: i32): bool {
  let finite: u32 = 0
  let nans: u32 = 0
  let positive: u32 = 0
  for (let i: u32 = 0; i < n; i++) {
    const x = at<T>(data, i)
    store<T>(wide + finite * sizeof<T>(), x)
    finite += u32(abs<T>(x) < <T>Infinity)
    nans += u32(x != x)
    positive += u32(x == <T>Infinity)
  }
  if (finite == n) return false
  const negative = n - finite - nans - positive
  momentsReset(part)
  if (finite > 0) addPlain<T>(wide, finite, known)
  set(part, MomentsRow.count, <f64>n)
  set(part, MomentsRow.nanCount, <f64>nans)
  set(part, MomentsRow.positiveInfinityCount, <f64>positive)
  set(part, MomentsRow.negativeInfinityCount, <f64>negative)
  if (positive > 0) set(part, MomentsRow.max, Infinity)
  if (negative > 0) set(part, MomentsRow.min, -Infinity)
  if (positive + negative > 0) set(part, MomentsRow.maxAbs, Infinity)
  return true
}

/** Whether a finite float64 block, having passed, holds numbers whose squares or products leave the range. */
function isExtreme(data: usize, n: u32): bool {
  const most = get(part, MomentsRow.maxAbs)
  const least = get(part, MomentsRow.minAbs)
  if (most > LARGE || (most < SMALL && most > 0)) return true
  if (least > 0) return least < SMALLEST_NORMAL
  return countAbsBelow<f64>(data, n, SMALLEST_NORMAL) != countAbsBelow<f64>(data, n, 0)
}

// ---------------------------------------------------------------------------------------------------- Passes

// Eight elements at once, the rest of them one by one. The extremes have a pass of their own: all accumulators together
// are more than there are registers, and V8 would keep some of them in memory (performance.md §5), while a block that was
// read a moment ago costs little to read again.

/**
 * Puts the extremes into `part`.
 * @returns false if there may be NaN or ±∞
 */
function passExtremes<T>(data: usize, n: u32): bool {
  let lowest = ofNone<T>(Infinity, 0, i32.MAX_VALUE, -1)
  let highest = ofNone<T>(-Infinity, i32.MIN_VALUE, i32.MIN_VALUE, 0)
  let least = ofNone<T>(Infinity, INFINITY_BITS, -1, -1)
  // Of float64, a sum that only finite elements leave finite. Among the bits of float32 NaN and ±∞ are extremes
  let witness = f64x2.splat(0)
  const end = data + (<usize>n & ~7) * sizeof<T>()
  const mask = v128.load(CONSTANTS, sizeof<T>() == 8 ? MAGNITUDE64 : MAGNITUDE32)
  for (let p = data; p != end; p += 8 * sizeof<T>()) {
    const x0 = load16<T>(p)
    const x1 = load16<T>(p + 16)
    let low = lesser<T>(x0, x1)
    let high = greater<T>(x0, x1)
    let close = lesserMagnitude<T>(magnitude<T>(x0, mask), magnitude<T>(x1, mask))
    if (sizeof<T>() == 8) {
      const x2 = load16<T>(p + 32)
      const x3 = load16<T>(p + 48)
      low = lesser<T>(low, lesser<T>(x2, x3))
      high = greater<T>(high, greater<T>(x2, x3))
      close = lesserMagnitude<T>(close, lesserMagnitude<T>(magnitude<T>(x2, mask), magnitude<T>(x3, mask)))
      if (isFloat<T>()) witness = f64x2.add(witness, f64x2.add(f64x2.add(x0, x1), f64x2.add(x2, x3)))
    }
    lowest = lesser<T>(lowest, low)
    highest = greater<T>(highest, high)
    least = lesserMagnitude<T>(least, close)
  }
  let sum = f64x2.extract_lane(witness, 0) + f64x2.extract_lane(witness, 1)
  if (isFloat<T>() && sizeof<T>() == 4 && maxAcross<u32>(lowest) >= 0xff800000) sum = NaN
  if (isFloat<T>() && sizeof<T>() == 4 && maxAcross<i32>(highest) >= INFINITY_BITS) sum = NaN
  setExtremes<T>(data, n, lowest, highest, least)
  for (let i = n & ~7; i < n; i++) sum += <f64>at<T>(data, i)
  return isFinite(sum)
}

/** Puts Σx into `part`. */
function passSum<T>(data: usize, n: u32): void {
  pass<T>(data, n, false, false, false)
}

/** Σx and Σx². */
function passSquares<T>(data: usize, n: u32): void {
  pass<T>(data, n, false, true, false)
}

/** Σx and Σ|x|. */
function passSumsAbs<T>(data: usize, n: u32): void {
  pass<T>(data, n, true, false, false)
}

/** Σx, Σ|x| and Σx². */
function passSquaresAbs<T>(data: usize, n: u32): void {
  pass<T>(data, n, true, true, false)
}

/** And the product. */
function passAll<T>(data: usize, n: u32): void {
  pass<T>(data, n, true, true, true)
}

// @ts-ignore: decorator
@inline
function pass<T>(data: usize, n: u32, hasAbs: bool, hasSquares: bool, hasProduct: bool): void {
  const magnitude = v128.load(CONSTANTS, MAGNITUDE64)
  let sum = f64x2.splat(0)
  let sumAbs = f64x2.splat(0)
  let squares = f64x2.splat(0)
  let product = f64x2.splat(1)
  let exponents = i64x2.splat(0)
  const end = data + (<usize>n & ~7) * sizeof<T>()
  for (let p = data; p != end; p += 8 * sizeof<T>()) {
    let x0 = load2<T>(p, 0)
    let x1 = load2<T>(p, 1)
    let x2 = load2<T>(p, 2)
    let x3 = load2<T>(p, 3)
    sum = f64x2.add(sum, f64x2.add(f64x2.add(x0, x1), f64x2.add(x2, x3)))
    if (hasAbs) {
      sumAbs = f64x2.add(
        sumAbs,
        f64x2.add(
          f64x2.add(v128.and(x0, magnitude), v128.and(x1, magnitude)),
          f64x2.add(v128.and(x2, magnitude), v128.and(x3, magnitude)),
        ),
      )
    }
    if (!hasSquares) continue
    squares = f64x2.add(
      squares,
      f64x2.add(
        f64x2.add(f64x2.mul(x0, x0), f64x2.mul(x1, x1)),
        f64x2.add(f64x2.mul(x2, x2), f64x2.mul(x3, x3)),
      ),
    )
    if (!hasProduct) continue
    // Four factors of 32 or 52 bits stay within 2^±600. One of float64 can fill the range: it leaves its exponent
    // first.
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

  let s = f64x2.extract_lane(sum, 0) + f64x2.extract_lane(sum, 1)
  let a = f64x2.extract_lane(sumAbs, 0) + f64x2.extract_lane(sumAbs, 1)
  let q = f64x2.extract_lane(squares, 0) + f64x2.extract_lane(squares, 1)
  let factor = f64x2.extract_lane(product, 0) * f64x2.extract_lane(product, 1)
  const steps = (n >> 3) * 2 * (isDouble<T>() ? 5 : 1)
  let exponent = i64x2.extract_lane(exponents, 0) + i64x2.extract_lane(exponents, 1) - 1023 * <i64>steps
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
 * Σ(x − mean)² of what `mask` leaves of the elements: all, or all but the sign. The mean of long numbers is rounded, which
 * Σ(x − mean) makes good.
 */
function m2Around<T>(data: usize, n: u32, mean: f64, mask: v128): f64 {
  const k = f64x2.splat(mean)
  let sum = f64x2.splat(0)
  let squares = f64x2.splat(0)
  const end = data + (<usize>n & ~7) * sizeof<T>()
  for (let p = data; p != end; p += 8 * sizeof<T>()) {
    const d0 = f64x2.sub(v128.and(load2<T>(p, 0), mask), k)
    const d1 = f64x2.sub(v128.and(load2<T>(p, 1), mask), k)
    const d2 = f64x2.sub(v128.and(load2<T>(p, 2), mask), k)
    const d3 = f64x2.sub(v128.and(load2<T>(p, 3), mask), k)
    if (sizeof<T>() == 8) sum = f64x2.add(sum, f64x2.add(f64x2.add(d0, d1), f64x2.add(d2, d3)))
    squares = f64x2.add(
      squares,
      f64x2.add(
        f64x2.add(f64x2.mul(d0, d0), f64x2.mul(d1, d1)),
        f64x2.add(f64x2.mul(d2, d2), f64x2.mul(d3, d3)),
      ),
    )
  }
  let s = f64x2.extract_lane(sum, 0) + f64x2.extract_lane(sum, 1)
  let q = f64x2.extract_lane(squares, 0) + f64x2.extract_lane(squares, 1)
  const bits = i64x2.extract_lane(mask, 0)
  for (let i = n & ~7; i < n; i++) {
    const d = reinterpret<f64>(reinterpret<i64>(<f64>at<T>(data, i)) & bits) - mean
    if (sizeof<T>() == 8) s += d
    q += d * d
  }
  return max(q - s * (s / <f64>n), 0)
}

/** From what vectors found, and the elements that are left over. */
// @ts-ignore: decorator
@inline
function setExtremes<T>(data: usize, n: u32, lowest: v128, highest: v128, least: v128): void {
  let first: f64, last: f64, closest: f64
  if (sizeof<T>() == 8) {
    first = min(f64x2.extract_lane(lowest, 0), f64x2.extract_lane(lowest, 1))
    last = max(f64x2.extract_lane(highest, 0), f64x2.extract_lane(highest, 1))
    closest = min(f64x2.extract_lane(least, 0), f64x2.extract_lane(least, 1))
  } else if (isFloat<T>()) {
    const negative = maxAcross<u32>(lowest)
    const positive = maxAcross<i32>(highest)
    closest = <f64>reinterpret<f32>(minAcross<i32>(least))
    first = <i32>negative < 0 ? <f64>reinterpret<f32>(negative) : closest
    last = positive >= 0 ? <f64>reinterpret<f32>(positive) : -closest
  } else {
    first = <f64>minAcross<T>(lowest)
    last = <f64>maxAcross<T>(highest)
    closest = <f64>minAcross<u32>(least)
  }
  for (let i = n & ~7; i < n; i++) {
    const x = <f64>at<T>(data, i)
    first = x < first ? x : first
    last = x > last ? x : last
    closest = abs(x) < closest ? abs(x) : closest
  }
  set(part, MomentsRow.min, first)
  set(part, MomentsRow.max, last)
  set(part, MomentsRow.minAbs, closest)
  set(part, MomentsRow.maxAbs, max(-first, last))
}

/** Counts the elements with |x| < limit, or with x = 0 when the limit is. */
function countAbsBelow<T>(data: usize, n: u32, limit: f64): f64 {
  let counts = i64x2.splat(0)
  const end = data + (<usize>n & ~7) * sizeof<T>()
  const limits = sizeof<T>() == 8 ? f64x2.splat(limit == 0 ? Number.MIN_VALUE : limit) : i32x4.splat(0)
  for (let p = data; p != end; p += 32) {
    const x0 = load16<T>(p)
    const x1 = load16<T>(p + 16)
    counts =
      sizeof<T>() == 8
        ? i64x2.sub(i64x2.sub(counts, f64x2.lt(f64x2.abs(x0), limits)), f64x2.lt(f64x2.abs(x1), limits))
        : i32x4.sub(i32x4.sub(counts, equal<T>(x0, limits)), equal<T>(x1, limits))
  }
  let count: i64 =
    sizeof<T>() == 8
      ? i64x2.extract_lane(counts, 0) + i64x2.extract_lane(counts, 1)
      : i32x4.extract_lane(counts, 0) +
        i32x4.extract_lane(counts, 1) +
        i32x4.extract_lane(counts, 2) +
        i32x4.extract_lane(counts, 3)
  for (let i = n & ~7; i < n; i++) {
    const x = abs(<f64>at<T>(data, i))
    if (x < limit || x == 0) count++
  }
  return <f64>count
}

// ---------------------------------------------------------------------------------------------------- Vectors

// @ts-ignore: decorator
@inline
function isDouble<T>(): bool {
  return isFloat<T>() && sizeof<T>() == 8
}

/** Sixteen bytes of elements. 64-bit integers become float64: as their lowest bits, those of 3·2^51 or 2^52 added. */
// @ts-ignore: decorator
@inline
function load16<T>(from: usize): v128 {
  const x = v128.load(from)
  if (isFloat<T>() || sizeof<T>() == 4) return x
  const base = v128.load(CONSTANTS, isSigned<T>() ? SIGNED : UNSIGNED)
  return f64x2.sub(i64x2.add(x, base), base)
}

/** The i-th pair of elements from there on, as float64. */
// @ts-ignore: decorator
@inline
function load2<T>(from: usize, i: usize): v128 {
  if (sizeof<T>() == 8) return load16<T>(from + 16 * i)
  return toFloat64<T>(v128.load64_zero(from + 8 * i))
}

/** The extreme to start with. */
// @ts-ignore: decorator
@inline
function ofNone<T>(float64: f64, float32: i32, int32: i32, uint32: i32): v128 {
  if (sizeof<T>() == 8) return f64x2.splat(float64)
  if (isFloat<T>()) return i32x4.splat(float32)
  return i32x4.splat(isSigned<T>() ? int32 : uint32)
}

// The extremes of float32 are found among the bits, by units with less to do than those of floats. Unsigned, the largest
// bits are of the lowest negative number, if there is one; signed, they are of the highest positive one. Where there is
// none, the least |x| tells. A NaN goes astray, and so must lead to `addSifted`.

// @ts-ignore: decorator
@inline
function lesser<T>(a: v128, b: v128): v128 {
  if (sizeof<T>() == 8) return f64x2.pmin(a, b)
  return isFloat<T>() ? i32x4.max_u(a, b) : v128.min<T>(a, b)
}

// @ts-ignore: decorator
@inline
function greater<T>(a: v128, b: v128): v128 {
  if (sizeof<T>() == 8) return f64x2.pmax(a, b)
  return isFloat<T>() ? i32x4.max_s(a, b) : v128.max<T>(a, b)
}

/** The lesser of magnitudes. */
// @ts-ignore: decorator
@inline
function lesserMagnitude<T>(a: v128, b: v128): v128 {
  return sizeof<T>() == 8 ? f64x2.pmin(a, b) : i32x4.min_u(a, b)
}

// @ts-ignore: decorator
@inline
function magnitude<T>(x: v128, mask: v128): v128 {
  if (isFloat<T>() || sizeof<T>() == 8) return v128.and(x, mask)
  return isSigned<T>() ? i32x4.abs(x) : x
}

/** The first two of four lanes. */
// @ts-ignore: decorator
@inline
function toFloat64<T>(x: v128): v128 {
  if (isFloat<T>()) return f64x2.promote_low_f32x4(x)
  return isSigned<T>() ? f64x2.convert_low_i32x4_s(x) : f64x2.convert_low_i32x4_u(x)
}

// @ts-ignore: decorator
@inline
function exponentField(x: v128): v128 {
  return i64x2.shr_u(v128.and(x, v128.load(CONSTANTS, EXPONENTS)), 52)
}

/** x with the exponent 0; of ±0, ±1. */
// @ts-ignore: decorator
@inline
function mantissa(x: v128): v128 {
  return v128.or(v128.and(x, v128.load(CONSTANTS, FRACTION)), v128.load(CONSTANTS, ONE))
}

// @ts-ignore: decorator
@inline
function equal<T>(a: v128, b: v128): v128 {
  return isFloat<T>() ? f32x4.eq(a, b) : i32x4.eq(a, b)
}

// @ts-ignore: decorator
@inline
function minAcross<T>(x: v128): T {
  const a = min(v128.extract_lane<T>(x, 0), v128.extract_lane<T>(x, 1))
  return min(a, min(v128.extract_lane<T>(x, 2), v128.extract_lane<T>(x, 3)))
}

// @ts-ignore: decorator
@inline
function maxAcross<T>(x: v128): T {
  const a = max(v128.extract_lane<T>(x, 0), v128.extract_lane<T>(x, 1))
  return max(a, max(v128.extract_lane<T>(x, 2), v128.extract_lane<T>(x, 3)))
}
