/** Sentences about the numbers of a served trial, from its columns. */

import type { GlobalStep } from '../../base/types.js'
import type { Kind } from '../../trial/kinds/kinds.js'
import type { ShownStatistic } from '../data.js'
import type { OverviewLine } from '../overview/lines.js'
import { remarks } from '../overview/remarks.js'
import type { ShownTrial } from './trials.js'

/** A statistic of the tensors of a kind over the steps of each mode: the mean over the workers. */
export async function linesOf(
  trial: ShownTrial,
  kind: Kind,
  statistic: ShownStatistic,
): Promise<readonly OverviewLine[]> {
  const { view } = trial
  const column = await trial.column(statistic, { kind })
  if (column === null) return []
  return view.tensors.flatMap(({ name, kind: tensorKind }, tensor) => {
    if (tensorKind !== kind) return []
    const lines = new Map<number, { steps: GlobalStep[]; values: number[] }>()
    for (const [i, step] of view.steps.entries()) {
      if (!column.has(i)) continue
      const saved = trial.seriesOf[tensor]!.filter(series => column.isThere(series, i))
      if (saved.length === 0) continue
      const line = lines.get(view.mode[i]!) ?? { steps: [], values: [] }
      lines.set(view.mode[i]!, line)
      line.steps.push(step as GlobalStep)
      line.values.push(saved.reduce((sum, series) => sum + column.at(series, i), 0) / saved.length)
    }
    return [...lines].map(([mode, line]) => ({ tensor: name, mode: view.modes[mode]!, ...line }))
  })
}

export async function remarksOf(trial: ShownTrial): Promise<readonly string[]> {
  const { view } = trial
  const isTrained = view.mode.some(mode => view.modes[mode] === 'TRAIN')
  const inTraining = async (kind: Kind, statistic: ShownStatistic) =>
    (await linesOf(trial, kind, statistic)).filter(({ mode }) => mode === (isTrained ? 'TRAIN' : 'GLOBAL'))
  const [losses, gradients, updates] = await Promise.all([
    linesOf(trial, 'losses', 'mean'),
    inTraining('gradients', 'abs_mean'),
    inTraining('weights', 'update_ratio'),
  ])
  return remarks({ losses, gradients, updates, fromZero: [] })
}
