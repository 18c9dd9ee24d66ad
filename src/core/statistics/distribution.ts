/**
 * The distribution of tensors' elements: counts of elements that share sign, exponent and the first five bits of the mantissa. A bucket
 * is narrower than 1/32 of its numbers, whatever their range, and distributions are merged by addition.
 */

import { expectArgument } from '../../base/arguments.js'
import { UsageError } from '../../base/errors.js'
import type { DType } from '../../base/types.js'
import type { Moments } from '../moments.js'

/** The number of elements between each edge and the next, counted as `numpy.histogram` does. */
export interface ElementHistogram {
  /** A count for each bin. */
  readonly counts: readonly number[]
  /** The edges, ascending, one more than there are bins. */
  readonly edges: readonly number[]
}

/** A distribution as plain data, for storage or transfer. */
export interface DistributionData {
  /** The number of all elements. */
  readonly count: number
  /** The number of NaN; like infinities, they are in no bucket. */
  readonly nan_count: number
  readonly positive_infinity_count: number
  readonly negative_infinity_count: number
  /**
   * The smallest and the largest finite element; null without any. If there is an infinity of the same sign, the outer edge of the
   * outermost bucket.
   */
  readonly min: number | null
  readonly max: number | null
  /** True if all elements are integers by their dtypes. */
  readonly integers: boolean
  /**
   * The non-empty buckets, ascending. The bucket of a number from 0 on is the upper 17 bits of its float64, as an integer; that of a
   * negative number x is −1 − that of −x.
   */
  readonly buckets: readonly number[]
  readonly counts: readonly number[]
}

/** The number of a bucket is followed by 47 bits in a float64. */
const BUCKET_UNIT = 2 ** 15
/** The number of buckets per exponent. */
const PER_EXPONENT = 32
/** Integers below this have a bucket each. */
const OWN_BUCKETS = 64

const view = new DataView(new ArrayBuffer(8))

type Head = Omit<DistributionData, 'buckets' | 'counts'>

/** The parts of a distribution: everything but the buckets, and pairs of a bucket and its count, ascending. */
export let partsOf: (distribution: Distribution) => { readonly head: Head; readonly pairs: Float64Array }

export class Distribution {
  readonly #head: Head
  readonly #pairs: Float64Array

  static {
    partsOf = distribution => ({ head: distribution.#head, pairs: distribution.#pairs })
  }

  /** Use `distribution` of a trial or of trialscan/kernels, or `Distribution.from`. */
  private constructor(head: Head, pairs: Float64Array) {
    this.#head = head
    this.#pairs = pairs
  }

  /** A distribution from its data. @throws UsageError for invalid data */
  static from(data: DistributionData): Distribution {
    const isData = Array.isArray(data?.buckets) && Array.isArray(data.counts)
    expectArgument('Distribution.from', 'data', 'what toJSON returns', data, isData)
    const { buckets, counts, ...head } = data
    const others = head.nan_count + head.positive_infinity_count + head.negative_infinity_count
    const total = counts.reduce((sum, some) => sum + some, others)
    const isAscending = buckets.every(
      (bucket, i) => Number.isInteger(bucket) && (i === 0 || bucket > (buckets[i - 1] ?? 0)),
    )
    if (buckets.length === counts.length && total === head.count && isAscending) {
      return new Distribution(head, Float64Array.from(buckets.flatMap((bucket, i) => [bucket, counts[i] ?? 0])))
    }
    throw new UsageError('expected ascending buckets, and as many counts, of all elements, got others')
  }

  /** @param pairs pairs of a bucket and its count, ascending */
  static of(moments: Moments, pairs: Float64Array): Distribution {
    const { count, nanCount, dtype } = moments
    const [min, max] = [moments.slot('min'), moments.slot('max')]
    const [first, last] = [pairs[0], pairs[pairs.length - 2]]
    const head = {
      count,
      nan_count: nanCount,
      positive_infinity_count: moments.slot('positiveInfinityCount'),
      negative_infinity_count: moments.slot('negativeInfinityCount'),
      // If the extremes are infinite, the buckets give the edges of the finite elements. Finite extremes are exact: small numbers of
      // float32 are counted with zeros.
      min: first === undefined ? null : Number.isFinite(min) ? min : lowerEdge(first),
      max: last === undefined ? null : Number.isFinite(max) ? max : upperEdge(last),
      integers: isInteger(dtype),
    }
    return new Distribution(head, pairs)
  }

  /** The number of all elements. */
  get count(): number {
    return this.#head.count
  }

  /** The distribution of no elements, as a start for merging. */
  static get empty(): Distribution {
    const counts = { count: 0, nan_count: 0, positive_infinity_count: 0, negative_infinity_count: 0 }
    return new Distribution({ ...counts, min: null, max: null, integers: true }, new Float64Array(0))
  }

  /**
   * The approximate quantile, as `numpy.quantile` interpolates it from all elements: off by at most 1/65 of the absolute value of the
   * neighbouring elements. Exact for integers of integer dtypes from −64 to 64. NaN if any element is, or if there are none.
   * @param q a number from 0 to 1
   * @throws UsageError
   */
  quantile(q: number): number {
    if (!(q >= 0 && q <= 1)) throw new UsageError(`distribution.quantile: expected a number from 0 to 1, got ${q}`)
    const { count, nan_count } = this.#head
    if (count === 0 || nan_count > 0) return Number.NaN
    const rank = q * (count - 1)
    const below = Math.floor(rank)
    const [low, high] = [this.#at(below), this.#at(Math.min(below + 1, count - 1))]
    const t = rank - below
    if (t === 0) return low
    return t < 0.5 ? low + (high - low) * t : high - (high - low) * (1 - t)
  }

  /**
   * The approximate number of elements in each bin, counted as by `numpy.histogram`: each element counts as its bucket's representative,
   * which differs by at most 1/65.
   * @param edges the edges, ascending
   * @throws UsageError
   */
  histogram(edges: readonly number[]): ElementHistogram {
    const pairs = this.#pairs
    const last = edges.length - 1
    if (
      last < 1 ||
      edges.some((edge, i) => !(Number.isFinite(edge) && edge > (edges[i - 1] ?? Number.NEGATIVE_INFINITY)))
    ) {
      throw new UsageError('distribution.histogram: expected at least two ascending edges')
    }
    const binned = new Array<number>(last).fill(0)
    for (let i = 0; i < pairs.length; i += 2) {
      const x = this.#number(pairs[i]!)
      const next = edges.findIndex(edge => edge > x)
      const bin = next < 0 && x === edges[last] ? last - 1 : next - 1
      if (bin >= 0) binned[bin] = (binned[bin] ?? 0) + pairs[i + 1]!
    }
    return { counts: binned, edges: [...edges] }
  }

  /** The merged distribution of both. */
  merge(other: Distribution): Distribution {
    const [a, b] = [this.#head, other.#head]
    const merged = new Map<number, number>()
    for (const pairs of [this.#pairs, other.#pairs]) {
      for (let i = 0; i < pairs.length; i += 2) merged.set(pairs[i]!, (merged.get(pairs[i]!) ?? 0) + pairs[i + 1]!)
    }
    const sorted = [...merged].sort(([x], [y]) => x - y)
    const head = {
      count: a.count + b.count,
      nan_count: a.nan_count + b.nan_count,
      positive_infinity_count: a.positive_infinity_count + b.positive_infinity_count,
      negative_infinity_count: a.negative_infinity_count + b.negative_infinity_count,
      min: a.min === null || b.min === null ? (a.min ?? b.min) : Math.min(a.min, b.min),
      max: a.max === null || b.max === null ? (a.max ?? b.max) : Math.max(a.max, b.max),
      integers: a.integers && b.integers,
    }
    return new Distribution(head, Float64Array.from(sorted.flat()))
  }

  toJSON(): DistributionData {
    const pairs = [...this.#pairs]
    return { ...this.#head, buckets: pairs.filter((_, i) => i % 2 === 0), counts: pairs.filter((_, i) => i % 2 === 1) }
  }

  /** The representative of the element at a rank, from 0. */
  #at(rank: number): number {
    const { negative_infinity_count, min, max, count } = this.#head
    const pairs = this.#pairs
    // The extremes are known exactly.
    if (rank === negative_infinity_count && min !== null) return min
    let before = negative_infinity_count
    if (rank < before) return Number.NEGATIVE_INFINITY
    for (let i = 0; i < pairs.length; i += 2) {
      before += pairs[i + 1]!
      if (rank < before) return rank === count - 1 ? (max ?? Number.NaN) : this.#number(pairs[i]!)
    }
    return Number.POSITIVE_INFINITY
  }

  /** The representative of a bucket, within 1/65 of all its numbers: 2ab / (a + b) for the edges a and b. */
  #number(bucket: number): number {
    const { min, max, integers } = this.#head
    const place = bucket < 0 ? -1 - bucket : bucket
    const low = lowerEdge(place)
    const m = place % PER_EXPONENT
    const middle = low * ((2 * PER_EXPONENT + 2 + 2 * m) / (2 * PER_EXPONENT + 1 + 2 * m))
    const number = integers && low < OWN_BUCKETS ? low : middle
    return Math.min(Math.max(bucket < 0 ? -number : number, min ?? number), max ?? number)
  }
}

/** The edge of a bucket towards −∞. */
export function lowerEdge(bucket: number): number {
  if (bucket < 0) return -upperEdge(-1 - bucket)
  view.setUint32(0, bucket * BUCKET_UNIT)
  return view.getFloat64(0)
}

/** The edge of a bucket towards ∞; at most the largest number. */
export function upperEdge(bucket: number): number {
  return bucket < 0 ? -lowerEdge(-1 - bucket) : Math.min(lowerEdge(bucket + 1), Number.MAX_VALUE)
}

function isInteger(dtype: DType): boolean {
  return dtype === 'bool' || /^u?int/.test(dtype)
}
