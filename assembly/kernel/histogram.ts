// Elements counted in bins, as numpy.histogram counts them.

import { WIDENED_ELEMENTS } from '../../src/core/border/abi'
import { bytesOf, elementBits, isComplex } from '../dtype'
import { widened, widenToFloat64 } from './widen'

/**
 * Extends a range, two float64, to the finite elements.
 * @returns 0 for types without order
 */
export function extendRange(dtype: i32, data: usize, count: u32, range: usize): i32 {
  const bits = elementBits(dtype)
  if (bits == 0 || isComplex(dtype)) return 0
  let low = load<f64>(range)
  let high = load<f64>(range, 8)
  while (count > 0) {
    const n = min(count, WIDENED_ELEMENTS)
    widenToFloat64(dtype, data, n, widened)
    for (let at = widened, end = widened + (<usize>n << 3); at != end; at += 8) {
      const x = load<f64>(at)
      if (!isFinite(x)) continue
      low = x < low ? x : low
      high = x > high ? x : high
    }
    data += bytesOf(n, bits)
    count -= n
  }
  store<f64>(range, low)
  store<f64>(range, high, 8)
  return 1
}

/**
 * Counts the elements from edge to edge. A bin holds its lower edge, the last one also its upper edge. What lies outside, and
 * NaN, is not counted.
 * @param edges `bins` + 1 ascending float64
 * @param isEven whether the bins have one width, so that the bin of an element can be computed
 * @param counts `bins` float64, which are added to
 */
export function countBins(dtype: i32, data: usize, count: u32, edges: usize, bins: u32, isEven: i32, counts: usize): void {
  const bits = elementBits(dtype)
  const first = load<f64>(edges)
  const last = load<f64>(edges + (<usize>bins << 3))
  const width = last - first
  while (count > 0) {
    const n = min(count, WIDENED_ELEMENTS)
    widenToFloat64(dtype, data, n, widened)
    for (let at = widened, end = widened + (<usize>n << 3); at != end; at += 8) {
      const x = load<f64>(at)
      if (!(x >= first && x <= last)) continue
      const bin = isEven ? evenBin(x, first, width, edges, bins) : binOf(x, edges, bins)
      const counter = counts + (<usize>bin << 3)
      store<f64>(counter, load<f64>(counter) + 1)
    }
    data += bytesOf(n, bits)
    count -= n
  }
}

/** The computed bin may be off by one, by rounding. */
// @ts-ignore: decorator
@inline
function evenBin(x: f64, first: f64, width: f64, edges: usize, bins: u32): u32 {
  let bin = <u32>(((x - first) / width) * <f64>bins)
  bin = min(bin, bins - 1)
  if (x < load<f64>(edges + (<usize>bin << 3))) return bin - 1
  return bin + u32(bin != bins - 1 && x >= load<f64>(edges + (<usize>bin << 3), 8))
}

/** The bin of x: the last one whose lower edge is not above it, by binary search. */
function binOf(x: f64, edges: usize, bins: u32): u32 {
  let low: u32 = 0
  let high = bins
  while (high - low > 1) {
    const middle = (low + high) >> 1
    if (load<f64>(edges + (<usize>middle << 3)) <= x) low = middle
    else high = middle
  }
  return low
}
