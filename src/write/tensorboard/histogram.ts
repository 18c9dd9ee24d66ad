/** TensorBoard histograms of tensors, made from moments and sketches: about as fine as TensorFlow's own. */

import { type Moments, scale } from '../../core/moments.js'
import { type Distribution, lowerEdge, partsOf, upperEdge } from '../../core/statistics/distribution.js'
import type { HistogramSummary } from './summary.js'

/** The number of sketch buckets that are merged into one. This makes 8 for each power of two; TensorFlow has 7.3. */
const TOGETHER = 4
/**
 * The factor below the largest magnitude under which numbers share one bucket around 0. A bucket of zeros alone would have no width, and
 * TensorBoard doesn't draw those.
 */
const NEAR_ZERO = 2 ** -20

export interface HistogramSums {
  readonly sum?: number | undefined
  readonly l2?: number | undefined
}

/** The histogram of the finite elements; null if there are none. */
export function histogramOf(moments: Moments, distribution: Distribution): HistogramSummary | null {
  const {
    head: { min, max },
    pairs,
  } = partsOf(distribution)
  if (min === null || max === null) return null
  const nearZero = powerOfTwo(Math.max(Math.abs(min), Math.abs(max)) * NEAR_ZERO)
  const limits: number[] = []
  const counts: number[] = []
  let num = 0
  for (let i = 0; i < pairs.length; i += 2) {
    const group = TOGETHER * Math.floor(pairs[i]! / TOGETHER)
    let [lower, upper] = [lowerEdge(group), upperEdge(group + TOGETHER - 1)]
    if (lower >= -nearZero && upper <= nearZero) [lower, upper] = [-nearZero, nearZero]
    const count = pairs[i + 1]!
    num += count
    const last = limits.length - 1
    if (limits[last] === upper) {
      counts[last] = counts[last]! + count
      continue
    }
    // A bucket begins where the one before it ends.
    if (last >= 0 && limits[last]! < lower) {
      limits.push(lower)
      counts.push(0)
    }
    limits.push(upper)
    counts.push(count)
  }
  const exponent = moments.slot('exponent')
  const sum = scale(moments.slot('sum'), exponent)
  const sumSquares = scale(moments.slot('sumSquares'), 2 * exponent)
  return { min, max, num, sum, sumSquares, limits, counts }
}

/**
 * The histogram of an imported run, from its rows of left edge, right edge and count; null if it is empty. Unknown sums are both written
 * as 0, which is otherwise true only of zeros.
 */
export function histogramOfRows(rows: ArrayLike<number>, sums: HistogramSums): HistogramSummary | null {
  const limits: number[] = []
  const counts: number[] = []
  for (let i = 0; i < rows.length; i += 3) {
    limits.push(rows[i + 1]!)
    counts.push(rows[i + 2]!)
  }
  const num = counts.reduce((total, count) => total + count, 0)
  if (num === 0) return null
  const isKnown = sums.sum !== undefined && sums.l2 !== undefined
  const { sum, l2 } = isKnown ? (sums as { sum: number; l2: number }) : { sum: 0, l2: 0 }
  return { min: rows[0]!, max: limits.at(-1)!, num, sum, sumSquares: l2 * l2, limits, counts }
}

/** The largest power of two that is not larger; the smallest number if there is none. */
function powerOfTwo(x: number): number {
  return x < 2 ** -1022 ? 2 ** -1022 : 2 ** Math.floor(Math.log2(x))
}
