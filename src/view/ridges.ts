/** The distributions of some series at some of their steps, in equal bins. */

import { Distribution } from '../engine/statistics/distribution.js'
import type { ScanSelection } from '../trial/scan-selection.js'
import type { Trial } from '../trial/trial.js'
import type { RidgeView } from './data.js'
import { packed } from './packing.js'
import type { Skeleton } from './skeleton.js'

/** Bins for many elements, and for few: more would be mostly empty. */
const [MOST_BINS, LEAST_BINS] = [60, 12]
/** What a page holds. */
const MAX_STEPS = 48
const MAX_SERIES = 160
/** The outermost elements, which may lie far away from all others, are left out of the picture. */
const TAIL = 0.001

/** Which series are drawn: those that matter most come first. */
export function chosenSeries(byImportance: readonly number[]): ReadonlySet<number> {
  return new Set(byImportance.slice(0, MAX_SERIES))
}

/** Spread evenly, the first and the last among them. */
export function chosenSteps(count: number): ReadonlySet<number> {
  if (count <= MAX_STEPS) return new Set(Array.from({ length: count }, (_, i) => i))
  return new Set(Array.from({ length: MAX_STEPS }, (_, i) => Math.round((i * (count - 1)) / (MAX_STEPS - 1))))
}

/** @param sketches by the indices of their steps, ascending. @returns null if no element is finite */
export function ridgeOf(series: number, sketches: ReadonlyMap<number, Distribution>): RidgeView | null {
  const finite = [...sketches]
    .map(([step, sketch]) => ({ step, of: finitePart(sketch), count: sketch.count }))
    .filter(({ of }) => of.count > 0)
  if (finite.length === 0) return null
  let low = Math.min(...finite.map(({ of }) => of.quantile(TAIL)))
  let high = Math.max(...finite.map(({ of }) => of.quantile(1 - TAIL)))
  if (low === high) [low, high] = low === 0 ? [-1, 1] : [low - Math.abs(low) / 2, low + Math.abs(low) / 2]
  const size = Math.max(...finite.map(({ of }) => of.count))
  const bins = Math.max(LEAST_BINS, Math.min(MOST_BINS, Math.round(2 * Math.sqrt(size))))
  const edges = Array.from({ length: bins + 1 }, (_, i) => low * (1 - i / bins) + high * (i / bins))
  if (!edges.every((edge, i) => Number.isFinite(edge) && (i === 0 || edge > edges[i - 1]!))) return null
  const shares = finite.flatMap(({ of, count }) => of.histogram(edges).counts.map(some => some / count))
  const most = Math.max(...shares, Number.MIN_VALUE)
  return {
    series,
    steps: finite.map(({ step }) => step),
    low,
    high,
    bins,
    shares: packed(Uint8Array.from(shares, share => Math.round((255 * share) / most))),
  }
}

/** The distributions of one tensor at some of its steps, of each worker. */
export async function ridgesOf(
  trial: Trial,
  of: Skeleton,
  tensor: string,
  reading: Pick<ScanSelection, 'threads' | 'memory' | 'signal'>,
): Promise<readonly RidgeView[]> {
  const only = [...chosenSteps(of.steps.length)].map(index => of.steps[index]!)
  if (only.length === 0 || !trial.hasTensor(tensor)) return []
  const sketches = new Map<number, Map<number, Distribution>>()
  for await (const { worker, step, reductions } of trial.scan({
    ...reading,
    tensors: tensor,
    reductions: ['sketch'],
    steps: { only },
  })) {
    const [at, index] = [of.seriesAt(worker, tensor), of.stepAt(step)]
    if (at === undefined || index === undefined || !(reductions.sketch instanceof Distribution)) continue
    const own = sketches.get(at) ?? new Map<number, Distribution>()
    sketches.set(at, own.set(index, reductions.sketch))
  }
  return [...sketches].flatMap(([series, own]) => ridgeOf(series, own) ?? [])
}

/** The distribution of the elements that are finite. */
function finitePart(sketch: Distribution): Distribution {
  const data = sketch.toJSON()
  const count = data.counts.reduce((sum, some) => sum + some, 0)
  const others = { nan_count: 0, positive_infinity_count: 0, negative_infinity_count: 0 }
  return Distribution.from({ ...data, ...others, count })
}
