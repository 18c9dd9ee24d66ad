// Counts of elements that meet a condition, compared as float64.

import { DTypeNumber, WIDENED_ELEMENTS } from '../../src/core/border/abi'
import { bytesOf, elementBits, isComplex } from '../dtype'
import { loadPair } from './lanes'
import { widened, widenToFloat64 } from './widen'

/**
 * Adds to each column's u32 the number of rows of a matrix with lo < x < hi in that column. If `hi` is NaN there is no
 * upper bound. NaN, complex numbers and strings are never inside.
 */
export function countInside(
  dtype: i32,
  data: usize,
  rows: u32,
  columns: u32,
  lo: f64,
  hi: f64,
  counts: usize,
): void {
  const count = rows * columns
  if (dtype == DTypeNumber.float32) return inRows<f32>(data, 0, count, columns, lo, hi, counts)
  if (dtype == DTypeNumber.float64) return inRows<f64>(data, 0, count, columns, lo, hi, counts)

  const bits = elementBits(dtype)
  if (bits == 0 || isComplex(dtype)) return
  for (let first: u32 = 0; first < count; ) {
    const n = min(count - first, WIDENED_ELEMENTS)
    widenToFloat64(dtype, data + bytesOf(first, bits), n, widened)
    inRows<f64>(widened, first, n, columns, lo, hi, counts)
    first += n
  }
}

/** The number of columns with a count below a limit. */
export function countBelow(counts: usize, columns: u32, limit: f64): u32 {
  let below: u32 = 0
  const end = counts + (<usize>columns << 2)
  for (; counts != end; counts += 4) below += u32(<f64>load<u32>(counts) < limit)
  return below
}

/** The number of elements that equal a value. A complex number does if its imaginary part is 0. */
export function countEqual(dtype: i32, data: usize, count: u32, value: f64): u32 {
  if (dtype == DTypeNumber.float32) return equal<f32>(data, count, value)
  if (dtype == DTypeNumber.float64) return equal<f64>(data, count, value)

  const bits = elementBits(dtype)
  if (bits == 0) return 0
  let equals: u32 = 0
  while (count > 0) {
    const n = min(count, WIDENED_ELEMENTS)
    widenToFloat64(dtype, data, n, widened)
    equals += isComplex(dtype) ? equalComplex(n, value) : equal<f64>(widened, n, value)
    data += bytesOf(n, bits)
    count -= n
  }
  return equals
}

/** Counts n elements from element `first` of the matrix on; they may span rows. */
function inRows<T>(data: usize, first: u32, n: u32, columns: u32, lo: f64, hi: f64, counts: usize): void {
  for (const end = first + n; first != end; ) {
    const column = first % columns
    const run = min(end - first, columns - column)
    inRow<T>(data, run, lo, hi, counts + (<usize>column << 2))
    data += <usize>run * sizeof<T>()
    first += run
  }
}

function inRow<T>(data: usize, n: u32, lo: f64, hi: f64, counts: usize): void {
  const low = f64x2.splat(lo)
  const high = f64x2.splat(hi)
  const end = data + <usize>(n & ~3) * sizeof<T>()
  for (; data != end; data += 4 * sizeof<T>(), counts += 16) {
    const x = loadPair<T>(data)
    const y = loadPair<T>(data + 2 * sizeof<T>())
    const inside = v128.shuffle<i32>(
      v128.andnot(f64x2.lt(low, x), f64x2.ge(x, high)),
      v128.andnot(f64x2.lt(low, y), f64x2.ge(y, high)),
      0,
      2,
      4,
      6,
    )
    v128.store(counts, i32x4.sub(v128.load(counts), inside))
  }
  for (const last = end + <usize>(n & 3) * sizeof<T>(); data != last; data += sizeof<T>(), counts += 4) {
    const x = <f64>load<T>(data)
    store<u32>(counts, load<u32>(counts) + (u32(lo < x) & u32(!(x >= hi))))
  }
}

function equal<T>(data: usize, count: u32, value: f64): u32 {
  const wanted = f64x2.splat(value)
  let counts = i64x2.splat(0)
  const end = data + <usize>(count & ~3) * sizeof<T>()
  for (; data != end; data += 4 * sizeof<T>()) {
    counts = i64x2.sub(counts, f64x2.eq(loadPair<T>(data), wanted))
    counts = i64x2.sub(counts, f64x2.eq(loadPair<T>(data + 2 * sizeof<T>()), wanted))
  }
  let equals = i32x4.extract_lane(counts, 0) + i32x4.extract_lane(counts, 2)
  for (const last = end + <usize>(count & 3) * sizeof<T>(); data != last; data += sizeof<T>()) {
    equals += i32(<f64>load<T>(data) == value)
  }
  return equals
}

/** Counts widened complex elements that equal a value. */
function equalComplex(n: u32, value: f64): u32 {
  let equals: u32 = 0
  const end = widened + (<usize>n << 4)
  for (let at = widened; at != end; at += 16) equals += u32(load<f64>(at) == value) & u32(load<f64>(at, 8) == 0)
  return equals
}
