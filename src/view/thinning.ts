/** A choice of steps to show if there are too many: some of each mode, evaluation first, since it has few. */

import { MODES, type Mode } from '../base/types.js'
import type { ThinnedView } from './data.js'
import type { Skeleton } from './skeleton.js'

/** The largest share for evaluation if the other modes have use for the rest. */
const EVAL_SHARE = 2 / 3

/**
 * Steps of each mode, spread evenly, the first and the last of each among them.
 * @param steps ascending
 * @param most the largest number, far above the number of modes
 */
export function thinned<T>(
  steps: readonly T[],
  modeOf: (step: T) => Mode,
  most: number,
): { readonly steps: readonly T[]; readonly thinned: readonly ThinnedView[] } {
  if (steps.length <= most) return { steps, thinned: [] }
  const byMode = new Map<Mode, T[]>()
  for (const step of steps) byMode.set(modeOf(step), [...(byMode.get(modeOf(step)) ?? []), step])
  // Evaluation comes first; of the others those with the fewest steps, so that the next ones get what they leave.
  const rank = (mode: Mode, count: number) => (mode === 'EVAL' ? -1 : count)
  const order = [...byMode].sort(([a, x], [b, y]) => rank(a, x.length) - rank(b, y.length))
  let room = most
  const chosen = new Map<Mode, readonly T[]>()
  for (const [i, [mode, ofMode]] of order.entries()) {
    const others = order.slice(i + 1).reduce((sum, [, { length }]) => sum + length, 0)
    const share = mode === 'EVAL' ? Math.ceil(room * EVAL_SHARE) : Math.floor(room / (order.length - i))
    const count = Math.min(ofMode.length, Math.max(others === 0 ? room : share, room - others))
    chosen.set(mode, evenly(ofMode, count))
    room -= count
  }
  const kept = new Set([...chosen.values()].flat())
  return {
    steps: steps.filter(step => kept.has(step)),
    thinned: MODES.flatMap(mode =>
      byMode.has(mode) ? [{ mode, kept: chosen.get(mode)!.length, of: byMode.get(mode)!.length }] : [],
    ),
  }
}

/** The indices of the steps that are shown. */
export function thinnedIndices({ steps, mode }: Skeleton, most: number): ReturnType<typeof thinned<number>> {
  return thinned([...steps.keys()], index => MODES[mode[index]!]!, most)
}

/** Some of a list, spread evenly, the first and the last among them. */
export function evenly<T>(all: readonly T[], count: number): readonly T[] {
  if (all.length <= count) return all
  if (count <= 1) return all.slice(all.length - count)
  return Array.from({ length: count }, (_, i) => all[Math.round((i * (all.length - 1)) / (count - 1))]!)
}
