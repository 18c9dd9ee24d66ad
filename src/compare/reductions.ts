/** Compares the reductions of a tensor if one of the runs, or both, lack its value. */

import type { ReductionName } from '../base/types.js'
import type { DifferenceTolerance } from '../trial/measure/difference.js'
import type { Question } from '../trial/measure/question.js'

/** A reduction in both runs. */
export type ReductionPair = readonly [ReductionName, Question<unknown>, Question<unknown>]

/** The tolerance between a saved reduction and a computed one: rtol and atol. */
const COMPUTED = [1e-5, 1e-7] as const

/** The reductions of a pair that are not close. @param isComputed true if those of one side are computed from its values */
export function reductionsApart(
  reductions: readonly ReductionPair[],
  isComputed: boolean,
  { rtol = 0, atol = 0, tolerance = 'exact' }: DifferenceTolerance,
): readonly ReductionPair[] {
  // Saved reductions are float32, and so were their sums: those computed from values differ in the last digits.
  const exact = isComputed ? COMPUTED : [rtol, atol]
  const [near, least] =
    tolerance === 'exact' ? exact.map((bound, i) => Math.max(bound, [rtol, atol][i]!)) : [1e-5, 1e-8]
  return reductions.filter(([, x, y]) => {
    const [p, q] = [x.value, y.value]
    if (typeof p !== 'number' || typeof q !== 'number') return JSON.stringify(p) !== JSON.stringify(q)
    return !(Object.is(p, q) || Math.abs(p - q) <= least! + near! * Math.abs(q))
  })
}

/** |p − q| relative to the larger magnitude; Infinity if that is no number. */
export function relative(p: unknown, q: unknown): number {
  if (typeof p !== 'number' || typeof q !== 'number') return Number.POSITIVE_INFINITY
  if (p === q) return 0
  const apart = Math.abs(p - q) / Math.max(Math.abs(p), Math.abs(q))
  return Number.isFinite(apart) ? apart : Number.POSITIVE_INFINITY
}
