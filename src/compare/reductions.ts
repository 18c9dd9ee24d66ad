/** Reductions that two runs have of a tensor, where one of them or both lack its value. */

import type { ReductionName } from '../base/types.js'
import type { DifferenceTolerance } from '../trial/measure/difference.js'
import type { Question } from '../trial/measure/question.js'

/** A reduction of both. */
export type ReductionPair = readonly [ReductionName, Question<unknown>, Question<unknown>]

/** The tolerance between a saved reduction and a computed one: rtol and atol. */
const COMPUTED = [1e-5, 1e-7] as const

/** The reductions of a pair that are not close. @param isComputed true if those of one side are computed of its values */
export function reductionsApart(
  reductions: readonly ReductionPair[],
  isComputed: boolean,
  { rtol = 0, atol = 0, tolerance = 'exact' }: DifferenceTolerance,
): readonly ReductionPair[] {
  // What the hook saved is rounded to float32, and so were its sums: what is computed of values is not the same to the last digit.
  const exact = isComputed ? COMPUTED : [rtol, atol]
  const [near, least] = tolerance === 'exact' ? exact.map((one, i) => Math.max(one, [rtol, atol][i]!)) : [1e-5, 1e-8]
  return reductions.filter(([, x, y]) => {
    const [p, q] = [x.value, y.value]
    if (typeof p !== 'number' || typeof q !== 'number') return JSON.stringify(p) !== JSON.stringify(q)
    return !(Object.is(p, q) || Math.abs(p - q) <= least! + near! * Math.abs(q))
  })
}

/** |p − q| by the larger magnitude; Infinity where that is no number. */
export function relative(p: unknown, q: unknown): number {
  if (typeof p !== 'number' || typeof q !== 'number') return Number.POSITIVE_INFINITY
  const apart = Math.abs(p - q) / Math.max(Math.abs(p), Math.abs(q))
  return Number.isFinite(apart) ? apart : Number.POSITIVE_INFINITY
}
