// numpy's isclose: |a − b| ≤ atol + rtol · |b| for a finite b, or a = b.

import { DTypeNumber, WIDENED_ELEMENTS } from '../../../src/core/border/abi'
import { bytesOf, elementBits, isComplex } from '../../dtype'
import { absMask, infinity } from '../lanes'
import { widened, widenToFloat64 } from '../widen'

const widenedB: usize = memory.data(1024 * 16, 16)

/**
 * Counts the elements of `a` that are not close to their counterparts in `b`. A pair of float32 is compared in float32
 * as numpy does; all others as float64. Elements that aren't numbers are never close.
 */
export function allclose(
  dtypeA: i32,
  a: usize,
  dtypeB: i32,
  b: usize,
  count: u32,
  rtol: f64,
  atol: f64,
  equalNan: i32,
): u32 {
  const nan = equalNan != 0
  if (dtypeA == DTypeNumber.float32 && dtypeB == DTypeNumber.float32) return countApart<f32>(a, b, count, <f32>rtol, <f32>atol, nan)
  if (dtypeA == DTypeNumber.float64 && dtypeB == DTypeNumber.float64) return countApart<f64>(a, b, count, rtol, atol, nan)

  const bitsA = elementBits(dtypeA)
  const bitsB = elementBits(dtypeB)
  if (bitsA == 0 || bitsB == 0) return count
  const isComplexA = isComplex(dtypeA)
  const isComplexB = isComplex(dtypeB)
  let apart: u32 = 0
  while (count > 0) {
    const n = min(count, WIDENED_ELEMENTS)
    widenToFloat64(dtypeA, a, n, widened)
    widenToFloat64(dtypeB, b, n, widenedB)
    apart +=
      isComplexA || isComplexB
        ? countApartComplex(n, isComplexA, isComplexB, rtol, atol, nan)
        : countApart<f64>(widened, widenedB, n, rtol, atol, nan)
    a += bytesOf(n, bitsA)
    b += bytesOf(n, bitsB)
    count -= n
  }
  return apart
}

/** The number of elements that are compared before b is known to be finite among them. */
const RUN: u32 = 4096

function countApart<T>(a: usize, b: usize, count: u32, rtol: T, atol: T, equalNan: bool): u32 {
  // Then equal elements are within the tolerance, too.
  const isOrdinary = atol >= 0 && rtol >= 0 && rtol < <T>Infinity
  let apart: u32 = 0
  while (count > 0) {
    const n = min(count, RUN)
    let distant = isOrdinary ? countFinite<T>(a, b, n, rtol, atol) : -1
    if (distant < 0)
      distant = equalNan ? countEach<T, u8>(a, b, n, rtol, atol) : countEach<T, u16>(a, b, n, rtol, atol)
    apart += distant
    a += <usize>n * sizeof<T>()
    b += <usize>n * sizeof<T>()
    count -= n
  }
  return apart
}

/** Counts distances for a finite b, as it nearly always is. @returns -1 if b is not finite */
function countFinite<T>(a: usize, b: usize, count: u32, rtol: T, atol: T): i32 {
  const relative = v128.splat<T>(rtol)
  const absolute = v128.splat<T>(atol)
  const mask = absMask<T>()
  // Added to NaN or ∞, this makes the exponent overflow into the sign.
  const exponentStep = sizeof<T>() == 8 ? i64x2.splat(1 << 52) : i32x4.splat(1 << 23)
  let close = i32x4.splat(0)
  let special = i32x4.splat(0)
  const group: u32 = 32 / sizeof<T>()
  const end = a + <usize>(count & ~(group - 1)) * sizeof<T>()
  for (; a != end; a += 32, b += 32) {
    const y0 = v128.and(v128.load(b), mask)
    const y1 = v128.and(v128.load(b, 16), mask)
    const d0 = v128.and(v128.sub<T>(v128.load(a), v128.load(b)), mask)
    const d1 = v128.and(v128.sub<T>(v128.load(a, 16), v128.load(b, 16)), mask)
    const close0 = v128.le<T>(d0, v128.add<T>(absolute, v128.mul<T>(relative, y0)))
    const close1 = v128.le<T>(d1, v128.add<T>(absolute, v128.mul<T>(relative, y1)))
    if (sizeof<T>() == 8) {
      close = i64x2.sub(i64x2.sub(close, close0), close1)
      special = v128.or(special, v128.or(i64x2.add(y0, exponentStep), i64x2.add(y1, exponentStep)))
    } else {
      close = i32x4.sub(i32x4.sub(close, close0), close1)
      special = v128.or(special, v128.or(i32x4.add(y0, exponentStep), i32x4.add(y1, exponentStep)))
    }
  }
  if (sizeof<T>() == 8 ? i64x2.bitmask(special) : i32x4.bitmask(special)) return -1
  let apart = count & ~(group - 1)
  apart -= i32x4.extract_lane(close, 0) + i32x4.extract_lane(close, 2)
  if (sizeof<T>() == 4) apart -= i32x4.extract_lane(close, 1) + i32x4.extract_lane(close, 3)
  const rest = count & (group - 1)
  for (let i: u32 = 0; i < rest; i++, a += sizeof<T>(), b += sizeof<T>()) {
    const y = load<T>(b)
    if (!isFinite<T>(y)) return -1
    apart += u32(!(abs<T>(load<T>(a) - y) <= atol + rtol * abs<T>(y)))
  }
  return apart
}

/**
 * Branchless: a branch on every mismatch makes noisy tensors five times slower. `N` is u8 if NaN is close to NaN: a
 * choice at compile time costs nothing where it isn't wanted.
 */
function countEach<T, N>(a: usize, b: usize, count: u32, rtol: T, atol: T): u32 {
  const relative = v128.splat<T>(rtol)
  const absolute = v128.splat<T>(atol)
  const mask = absMask<T>()
  const infinite = infinity<T>()
  let close = i32x4.splat(0)
  const group: u32 = 64 / sizeof<T>()
  const end = a + <usize>(count & ~(group - 1)) * sizeof<T>()
  for (; a != end; a += 64, b += 64) {
    const mask0 = areClose<T, N>(v128.load(a), v128.load(b), relative, absolute, mask, infinite)
    const mask1 = areClose<T, N>(v128.load(a, 16), v128.load(b, 16), relative, absolute, mask, infinite)
    const mask2 = areClose<T, N>(v128.load(a, 32), v128.load(b, 32), relative, absolute, mask, infinite)
    const mask3 = areClose<T, N>(v128.load(a, 48), v128.load(b, 48), relative, absolute, mask, infinite)
    close =
      sizeof<T>() == 8
        ? i64x2.sub(i64x2.sub(i64x2.sub(i64x2.sub(close, mask0), mask1), mask2), mask3)
        : i32x4.sub(i32x4.sub(i32x4.sub(i32x4.sub(close, mask0), mask1), mask2), mask3)
  }
  let apart = count & ~(group - 1)
  apart -= i32x4.extract_lane(close, 0) + i32x4.extract_lane(close, 2)
  if (sizeof<T>() == 4) apart -= i32x4.extract_lane(close, 1) + i32x4.extract_lane(close, 3)

  const rest = count & (group - 1)
  for (let i: u32 = 0; i < rest; i++, a += sizeof<T>(), b += sizeof<T>()) {
    const x = load<T>(a)
    const y = load<T>(b)
    const isClose = (abs<T>(x - y) <= atol + rtol * abs<T>(y) && isFinite<T>(y)) || x == y
    apart += u32(!(isClose || (sizeof<N>() == 1 && isNaN<T>(x) && isNaN<T>(y))))
  }
  return apart
}

/** Only `y` has to be checked for infinity: an infinite `x` is infinitely far away. */
// @ts-ignore: decorator
@inline
function areClose<T, N>(x: v128, y: v128, relative: v128, absolute: v128, mask: v128, infinite: v128): v128 {
  const size = v128.and(y, mask)
  const distance = v128.and(v128.sub<T>(x, y), mask)
  const within = v128.le<T>(distance, v128.add<T>(absolute, v128.mul<T>(relative, size)))
  const close = v128.or(v128.and(within, v128.lt<T>(size, infinite)), v128.eq<T>(x, y))
  if (sizeof<N>() != 1) return close
  return v128.or(close, v128.and(v128.ne<T>(x, x), v128.ne<T>(y, y)))
}

/** Counts widened elements that are apart. Real ones have no imaginary part. */
function countApartComplex(n: u32, isComplexA: bool, isComplexB: bool, rtol: f64, atol: f64, equalNan: bool): u32 {
  let apart: u32 = 0
  for (let i: usize = 0; i < n; i++) {
    const x = load<f64>(widened + (i << (isComplexA ? 4 : 3)))
    const xi = isComplexA ? load<f64>(widened + (i << 4), 8) : 0
    const y = load<f64>(widenedB + (i << (isComplexB ? 4 : 3)))
    const yi = isComplexB ? load<f64>(widenedB + (i << 4), 8) : 0
    const isWithin = isFinite(y) && isFinite(yi) && hypot(x - y, xi - yi) <= atol + rtol * hypot(y, yi)
    const bothNan = (isNaN(x) || isNaN(xi)) && (isNaN(y) || isNaN(yi))
    apart += u32(!(isWithin || (x == y && xi == yi) || (equalNan && bothNan)))
  }
  return apart
}

/** √(x² + y²), without overflow or underflow of the squares. */
function hypot(x: f64, y: f64): f64 {
  const larger = max(abs(x), abs(y))
  if (larger == 0 || larger == Infinity) return larger
  if (larger < 1e150 && larger > 1e-140) return sqrt(x * x + y * y)
  const ratio = min(abs(x), abs(y)) / larger
  return larger * sqrt(1 + ratio * ratio)
}
