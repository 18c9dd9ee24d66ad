/** Operations on elements in the core's memory: comparing, counting, summing, ordering. */

import { EngineError } from '../base/errors.js'
import type { DType } from '../base/types.js'
import { DifferenceRow } from './border/abi.js'
import type { Address, CoreMemory } from './border/memory.js'
import type { Core } from './border/module.js'
import { byteLengthOf, dtypeNumber, elementByteLength } from './dtype.js'
import { tooLarge } from './values.js'

/** The tolerance: a and b are close if |a − b| ≤ atol + rtol·|b|, as in numpy.allclose. */
export interface Closeness {
  readonly rtol: number
  readonly atol: number
  readonly equalNan: boolean
}

/** Bins in the core's memory. */
export interface Bins {
  readonly edges: Address
  readonly counts: Address
  readonly count: number
  /** True if all bins have one width, so that the bin of an element can be computed. */
  readonly isEven: boolean
}

/** The factors for each side's elements before they are squared. */
export interface Scales {
  readonly a: number
  readonly b: number
}

export class ElementKernels {
  readonly #core: Core
  readonly #memory: CoreMemory

  constructor(core: Core, memory: CoreMemory) {
    this.#core = core
    this.#memory = memory
  }

  /** Σ|a − b| of elements in the core's memory; NaN if any difference is, such as ∞ − ∞. */
  sumAbsDifference(dtypeA: DType, a: Address, dtypeB: DType, b: Address, count: number): number {
    return this.#core.absDifference(dtypeNumber(dtypeA), a, dtypeNumber(dtypeB), b, count)
  }

  /** Σ|a − b|² of elements in the core's memory; NaN if any difference is. */
  sumSquaredDifference(dtypeA: DType, a: Address, dtypeB: DType, b: Address, count: number): number {
    return this.#core.squaredDifference(dtypeNumber(dtypeA), a, dtypeNumber(dtypeB), b, count)
  }

  /** Reserves a row for `compare`. */
  reserveDifference(): Address {
    const row = this.#memory.reserveBytes(DifferenceRow.size)
    const numbers = this.#memory.doubles(row, DifferenceRow.size / 8)
    numbers.fill(0)
    numbers[DifferenceRow.firstUnequal / 8] = -1
    return row
  }

  /** Adds the difference of elements in the core's memory to a row. */
  compare(dtypeA: DType, a: Address, dtypeB: DType, b: Address, count: number, scales: Scales, row: Address): void {
    this.#core.compare(dtypeNumber(dtypeA), a, dtypeNumber(dtypeB), b, count, scales.a, scales.b, row)
  }

  /** A copy of such a row. */
  difference(row: Address): Float64Array {
    return this.#memory.doubles(row, DifferenceRow.size / 8).slice()
  }

  /** The number of elements of a that are not close to those of b, both in the core's memory. */
  countNotCloseAt(
    dtypeA: DType,
    a: Address,
    dtypeB: DType,
    b: Address,
    count: number,
    { rtol, atol, equalNan }: Closeness,
  ): number {
    const [numberA, numberB] = [dtypeNumber(dtypeA), dtypeNumber(dtypeB)]
    return this.#core.allclose(numberA, a, numberB, b, count, rtol, atol, equalNan ? 1 : 0) >>> 0
  }

  /** The number of elements of a that are not close to those of b. @param a little-endian elements, as many as those of b */
  countNotClose(
    a: { readonly dtype: DType; readonly bytes: Uint8Array },
    b: { readonly dtype: DType; readonly bytes: Uint8Array },
    total: number,
    tolerance: Closeness,
  ): number {
    const sizeA = elementByteLength(a.dtype)
    const sizeB = elementByteLength(b.dtype)
    for (const { dtype, bytes } of [a, b]) {
      if (bytes.length === byteLengthOf(dtype, total)) continue
      throw new EngineError(`expected ${byteLengthOf(dtype, total)} bytes of ${total} ${dtype}, got ${bytes.length}`)
    }
    const step = 1 << 16
    this.#memory.reset()
    const addressA = this.#memory.reserveBytes(step * sizeA)
    const right = this.#memory.reserveBytes(step * sizeB)
    let notClose = 0
    for (let at = 0; at < total; at += step) {
      const count = Math.min(step, total - at)
      const [endA, endB] = [byteLengthOf(a.dtype, at + count), byteLengthOf(b.dtype, at + count)]
      this.#memory.view(addressA, endA - at * sizeA).set(a.bytes.subarray(at * sizeA, endA))
      this.#memory.view(right, endB - at * sizeB).set(b.bytes.subarray(at * sizeB, endB))
      notClose += this.countNotCloseAt(a.dtype, addressA, b.dtype, right, count, tolerance)
    }
    return notClose
  }

  /** Counts the elements with lo < x < hi in each column of a matrix. @param counts one uint32 per column, which is added to */
  countInside(dtype: DType, data: Address, rows: number, columns: number, lo: number, hi: number, counts: Address) {
    this.#core.countInside(dtypeNumber(dtype), data, rows, columns, lo, hi, counts)
  }

  /** The number of columns with a count below `limit`. */
  countBelow(counts: Address, columns: number, limit: number): number {
    return this.#core.countBelow(counts, columns, limit) >>> 0
  }

  /** Adds the elements of each channel of [outer, channels, inner], or their real parts. @param sums one float64 per channel */
  sumChannels(dtype: DType, data: Address, outer: number, channels: number, inner: number, sums: Address): void {
    this.#core.sumChannels(dtypeNumber(dtype), data, outer, channels, inner, sums)
  }

  /** The number of elements in the core's memory that equal `value`. */
  countEqual(dtype: DType, data: Address, count: number, value: number): number {
    return this.#core.countEqual(dtypeNumber(dtype), data, count, value) >>> 0
  }

  /**
   * The percentiles of elements in the core's memory, interpolated in float64 as by numpy.percentile (NaN next to an
   * infinity). NaN if there are no elements, if they are complex, or if any of them is NaN.
   * @param q percentages, 0 to 100
   */
  percentiles(dtype: DType, data: Address, count: number, q: readonly number[]): number[] {
    const last = count - 1
    const below = q.map(percent => Math.floor(last * (percent / 100)))
    const ranks = below.flatMap(rank => [rank, Math.min(rank + 1, last)])
    const numbers = count === 0 ? null : this.#select(dtype, data, count, ranks)
    return q.map((percent, i) => {
      if (numbers === null) return NaN
      const [lo, hi] = [numbers[2 * i]!, numbers[2 * i + 1]!]
      const t = last * (percent / 100) - below[i]!
      return t < 0.5 ? lo + (hi - lo) * t : hi - (hi - lo) * (1 - t)
    })
  }

  /** Reserves an empty range. */
  reserveRange(): Address {
    const range = this.#memory.reserveBytes(16)
    this.#memory.doubles(range, 2).set([Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])
    return range
  }

  /** Extends a range by the finite elements in the core's memory. */
  extendRange(dtype: DType, data: Address, count: number, range: Address): void {
    this.#core.extendRange(dtypeNumber(dtype), data, count, range)
  }

  /** Reserves bins. @param bins the number of equal bins over the range, or their edges */
  reserveBins(bins: readonly number[], range: Address): Bins {
    const [low = 0, high = 0] = this.#memory.doubles(range, 2)
    const numbers = bins.length > 1 ? bins : evenEdges(low, high, bins[0] ?? 1)
    const count = numbers.length - 1
    const [first = 0, last = 0] = [numbers[0], numbers[count]]
    const edges = this.#memory.reserveBytes(numbers.length * 8)
    const counts = this.#memory.reserveBytes(count * 8)
    this.#memory.doubles(edges, numbers.length).set(numbers)
    this.#memory.doubles(counts, count).fill(0)
    return {
      edges,
      counts,
      count,
      isEven: bins.length === 1 && isAscending(numbers) && last - first < Number.POSITIVE_INFINITY,
    }
  }

  /** Counts elements in the core's memory, as float64. */
  countBins(dtype: DType, data: Address, elements: number, { edges, counts, count, isEven }: Bins): void {
    this.#core.countBins(dtypeNumber(dtype), data, elements, edges, count, isEven ? 1 : 0, counts)
  }

  /** The edges of bins, then their counts. */
  binnedCounts({ edges, counts, count }: Bins): number[] {
    return [...this.#memory.doubles(edges, count + 1), ...this.#memory.doubles(counts, count)]
  }

  /** The histogram of all elements of a tensor, which must be in the core's memory and real. */
  histogram(dtype: DType, data: Address, count: number, bins: readonly number[]): number[] {
    return this.#memory.scoped(() => {
      const range = this.reserveRange()
      if (bins.length === 1) this.extendRange(dtype, data, count, range)
      const counted = this.reserveBins(bins, range)
      this.countBins(dtype, data, count, counted)
      return this.binnedCounts(counted)
    })
  }

  /** The element at an index as float64; NaN if it is complex. */
  numberAt(dtype: DType, data: Address, place: number): number {
    const size = elementByteLength(dtype)
    // Two elements of four bits begin at one address.
    const second = size < 1 ? place % 2 : 0
    return this.#memory.scoped(() => {
      const numbers = this.#memory.reserveBytes(16)
      const isOrdered =
        this.#core.widenToDoubles(dtypeNumber(dtype), data + (place - second) * size, 1 + second, numbers) !== 0
      return isOrdered ? this.#memory.doubles(numbers, 2)[second]! : Number.NaN
    })
  }

  /** The elements at some ranks, counted from 0; null if the elements can't be ordered. */
  #select(dtype: DType, data: Address, count: number, ranks: readonly number[]): number[] | null {
    if (dtype === 'float32') {
      return this.#memory.scoped(() => {
        const scratch = this.#memory.reserveBytes(this.#core.selectScratchLength(count, ranks.length) >>> 0)
        const numbers = this.#memory.reserveBytes(ranks.length * 8)
        this.#memory.doubles(numbers, ranks.length).set(ranks)
        const ordered = this.#core.selectFloat32(data, count, numbers, ranks.length, scratch) !== 0
        return ordered ? [...this.#memory.doubles(numbers, ranks.length)] : null
      })
    }
    const byteLength = count * 8
    if (byteLength >= 2 ** 32) throw tooLarge(byteLength, 'bytes')
    return this.#memory.scoped(() => {
      const numbers = this.#memory.reserveBytes(byteLength)
      const ordered = this.#core.widenToDoubles(dtypeNumber(dtype), data, count, numbers) !== 0
      return ordered ? ranks.map(rank => this.#core.selectKth(numbers, count, rank)) : null
    })
  }
}

/** True if each edge is above the one before. The edges of a very narrow range may not be. */
function isAscending(edges: readonly number[]): boolean {
  let last = Number.NEGATIVE_INFINITY
  for (const edge of edges) {
    if (edge <= last) return false
    last = edge
  }
  return true
}

/**
 * The edges of equal bins, as numpy makes them: from 0 to 1 without numbers, and half a unit on either side of a single one. No edge is
 * −0.
 */
function evenEdges(low: number, high: number, bins: number): number[] {
  const [first, last] = low > high ? [0, 1] : low === high ? [low - 0.5, high + 0.5] : [low + 0, high + 0]
  const width = (last - first) / bins
  // The width may exceed the range of float64.
  const edge = (i: number) =>
    width < Number.POSITIVE_INFINITY ? i * width + first : first * (1 - i / bins) + last * (i / bins)
  return Array.from({ length: bins + 1 }, (_, i) => (i === bins ? last : edge(i)))
}
