// The distance between two tensors: Σ|a − b| or Σ|a − b|², in float64 for all types.

import { DTypeNumber, WIDENED_ELEMENTS } from '../../../src/core/border/abi'
import { bytesOf, elementBits, isComplex } from '../../dtype'
import { loadPair, sum4, sumAcross } from '../lanes'
import { widened, widenToFloat64 } from '../widen'

const widenedB: usize = memory.data(1024 * 16, 16)

/** NaN if any difference is NaN; 0 if either side is not numeric. */
export function absDifference(dtypeA: i32, a: usize, dtypeB: i32, b: usize, count: u32): f64 {
  return difference<Absolute>(dtypeA, a, dtypeB, b, count)
}

/** Σ|a − b|², as `absDifference` is Σ|a − b|. */
export function squaredDifference(dtypeA: i32, a: usize, dtypeB: i32, b: usize, count: u32): f64 {
  return difference<Squared>(dtypeA, a, dtypeB, b, count)
}

/** The type parameter of a loop for absolute values; the compiler branches on its size. */
type Absolute = u8
type Squared = u16

function difference<P>(dtypeA: i32, a: usize, dtypeB: i32, b: usize, count: u32): f64 {
  if (dtypeA == DTypeNumber.float32 && dtypeB == DTypeNumber.float32) return sumApart<f32, P>(a, b, count)
  if (dtypeA == DTypeNumber.float64 && dtypeB == DTypeNumber.float64) return sumApart<f64, P>(a, b, count)

  const bitsA = elementBits(dtypeA)
  const bitsB = elementBits(dtypeB)
  if (bitsA == 0 || bitsB == 0) return 0
  const complex = isComplex(dtypeA) || isComplex(dtypeB)
  let sum: f64 = 0
  while (count > 0) {
    const n = min(count, WIDENED_ELEMENTS)
    widenToFloat64(dtypeA, a, n, widened)
    widenToFloat64(dtypeB, b, n, widenedB)
    if (complex) {
      if (!isComplex(dtypeA)) makeComplex(widened, n)
      if (!isComplex(dtypeB)) makeComplex(widenedB, n)
      sum += sumApartComplex<P>(n)
    } else sum += sumApart<f64, P>(widened, widenedB, n)
    a += bytesOf(n, bitsA)
    b += bytesOf(n, bitsB)
    count -= n
  }
  return sum
}

// @ts-ignore: decorator
@inline
function apart<T, P>(a: usize, b: usize): v128 {
  const difference = f64x2.sub(loadPair<T>(a), loadPair<T>(b))
  if (sizeof<P>() == sizeof<Squared>()) return f64x2.mul(difference, difference)
  return f64x2.abs(difference)
}

/** Four sums in parallel, since each addition waits for the one before. */
function sumApart<T, P>(a: usize, b: usize, count: u32): f64 {
  const two: usize = 2 * sizeof<T>()
  let sum0 = f64x2.splat(0)
  let sum1 = sum0
  let sum2 = sum0
  let sum3 = sum0
  const end = a + <usize>(count & ~7) * sizeof<T>()
  for (; a != end; a += 4 * two, b += 4 * two) {
    sum0 = f64x2.add(sum0, apart<T, P>(a, b))
    sum1 = f64x2.add(sum1, apart<T, P>(a + two, b + two))
    sum2 = f64x2.add(sum2, apart<T, P>(a + 2 * two, b + 2 * two))
    sum3 = f64x2.add(sum3, apart<T, P>(a + 3 * two, b + 3 * two))
  }
  const sums = sum4(sum0, sum1, sum2, sum3)
  let sum = sumAcross<f64>(sums)
  for (const last = end + <usize>(count & 7) * sizeof<T>(); a != last; a += sizeof<T>(), b += sizeof<T>()) {
    const difference = abs(<f64>load<T>(a) - <f64>load<T>(b))
    sum += sizeof<P>() == sizeof<Squared>() ? difference * difference : difference
  }
  return sum
}

function sumApartComplex<P>(n: u32): f64 {
  let sum: f64 = 0
  for (let at: usize = 0; at < <usize>n << 4; at += 16) {
    const real = load<f64>(widened + at) - load<f64>(widenedB + at)
    const difference = Math.hypot(real, load<f64>(widened + at, 8) - load<f64>(widenedB + at, 8))
    sum += sizeof<P>() == sizeof<Squared>() ? difference * difference : difference
  }
  return sum
}

/** Gives float64 elements an imaginary part, from the last to the first, so that none is overwritten before it is read. */
export function makeComplex(at: usize, n: u32): void {
  for (let i = <usize>n; i-- > 0; ) {
    store<f64>(at + (i << 4), load<f64>(at + (i << 3)))
    store<f64>(at + (i << 4), 0, 8)
  }
}
