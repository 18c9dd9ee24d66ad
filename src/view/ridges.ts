/** The distributions of some series at some of their steps, in equal bins. */

import { entryOf } from '../base/maps.js'
import { Distribution } from '../core/statistics/distribution.js'
import type { ScanSelection } from '../trial/scan-selection.js'
import type { Trial } from '../trial/trial.js'
import { MAX_RIDGES, type RidgeView } from './data.js'
import { packed } from './packing.js'
import type { Skeleton } from './skeleton.js'
import { thinnedIndices } from './thinning.js'

/** Bins for many elements, and for few: more would be mostly empty. */
const [MAX_BINS, MIN_BINS] = [60, 12]
/** The largest number of steps in a picture. */
const MAX_STEPS = 48
/** The share of elements at each end that pictures leave out: they may lie far away from all others. */
const TAIL = 0.001

/** The series that are drawn: the most important ones. */
export function chosenSeries(byImportance: readonly number[]): ReadonlySet<number> {
  return new Set(byImportance.slice(0, MAX_RIDGES))
}

/** The indices of the steps that are drawn. */
export function chosenSteps(skeleton: Skeleton): ReadonlySet<number> {
  return new Set(thinnedIndices(skeleton, MAX_STEPS).steps)
}

/** The ridge of a series. @param sketches by the indices of their steps, ascending @returns null if no element is finite */
export function ridgeOf(series: number, sketches: ReadonlyMap<number, Distribution>): RidgeView | null {
  const drawn = [...sketches].map(([step, sketch]) => ({ step, sketch, finite: finiteOf(sketch).distribution }))
  const size = Math.max(0, ...drawn.map(({ finite }) => finite.count))
  if (size === 0) return null
  const bins = Math.max(MIN_BINS, Math.min(MAX_BINS, Math.round(2 * Math.sqrt(size))))
  const binned = drawn.map(({ sketch, finite }) => {
    const edges = finite.count === 0 ? edgesOf(0, 1, bins) : edgesAround(...rangeOf(finite), bins)
    return { edges, shares: finite.histogram(edges).counts.map(some => some / Math.max(1, sketch.count)) }
  })
  const most = binned.map(({ shares }) => Math.max(...shares))
  return {
    series,
    steps: drawn.map(({ step }) => step),
    counts: drawn.map(({ sketch }) => sketch.count),
    atMostZero: drawn.map(({ sketch }) => shareAtMostZero(sketch)),
    lost: drawn.map(({ sketch }) => {
      const { negative_infinity_count, nan_count, positive_infinity_count } = sketch.toJSON()
      return [negative_infinity_count, nan_count, positive_infinity_count]
    }),
    lows: binned.map(({ edges }) => edges[0]!),
    highs: binned.map(({ edges }) => edges.at(-1)!),
    bins,
    most,
    shares: packed(
      Uint8Array.from(
        binned.flatMap(({ shares }, i) => shares.map(share => Math.round((255 * share) / (most[i] || 1)))),
      ),
    ),
  }
}

function edgesOf(low: number, high: number, bins: number): readonly number[] {
  return Array.from({ length: bins + 1 }, (_, i) => low * (1 - i / bins) + high * (i / bins))
}

/** The edges of equal bins over a range; a range too narrow to be divided is widened. */
export function edgesAround(low: number, high: number, bins: number): readonly number[] {
  const half = Math.abs(low) / 2
  const ranges = [
    [low, high],
    [low - half, low + half],
    [-1, 1],
  ] as const
  const all = ranges.map(([from, to]) => edgesOf(from, to, bins))
  const isDivided = (edges: readonly number[]) =>
    edges.every((edge, i) => Number.isFinite(edge) && (i === 0 || edge > edges[i - 1]!))
  return all.find(isDivided)!
}

/** The distributions of one tensor at some of its steps, of each worker. */
export async function ridgesOf(
  trial: Trial,
  skeleton: Skeleton,
  tensor: string,
  reading: Pick<ScanSelection, 'threads' | 'memory' | 'signal'>,
): Promise<readonly RidgeView[]> {
  const only = [...chosenSteps(skeleton)].map(index => skeleton.steps[index]!)
  if (only.length === 0 || !trial.hasTensor(tensor)) return []
  const sketches = new Map<number, Map<number, Distribution>>()
  for await (const { worker, step, reductions } of trial.scan({
    ...reading,
    tensors: tensor,
    reductions: ['sketch'],
    steps: only,
  })) {
    const [at, index] = [skeleton.seriesAt(worker, tensor), skeleton.stepAt(step)]
    if (at === undefined || index === undefined || !(reductions.sketch instanceof Distribution)) continue
    entryOf(sketches, at, () => new Map<number, Distribution>()).set(index, reductions.sketch)
  }
  return [...sketches].flatMap(([series, byStep]) => ridgeOf(series, byStep) ?? [])
}

/** The distribution of the finite elements, and the number of the others. */
export function finiteOf(sketch: Distribution): { readonly distribution: Distribution; readonly lost: number } {
  const data = sketch.toJSON()
  const count = data.counts.reduce((sum, some) => sum + some, 0)
  const others = { nan_count: 0, positive_infinity_count: 0, negative_infinity_count: 0 }
  return { distribution: Distribution.from({ ...data, ...others, count }), lost: sketch.count - count }
}

/** The share of elements at or below 0: the buckets below 0 and the one of zeros. */
function shareAtMostZero(sketch: Distribution): number {
  const { buckets, counts, negative_infinity_count, count } = sketch.toJSON()
  const below = counts.reduce((sum, some, i) => (buckets[i]! <= 0 ? sum + some : sum), negative_infinity_count)
  return Number((below / Math.max(1, count)).toPrecision(4))
}

/** The range of a picture: without one element in a thousand at each end, so the whole range of few elements. */
export function rangeOf(finite: Distribution): readonly [low: number, high: number] {
  const last = finite.count - 1
  const left = Math.floor(TAIL * last)
  return last === 0
    ? [finite.quantile(0), finite.quantile(0)]
    : [finite.quantile(left / last), finite.quantile(1 - left / last)]
}
