/** The path of NaN and infinities from the first tensor to the loss: the tensors that have any at each step, and how many. */

import { h } from '../../dom.js'
import type { OpenTensor } from '../../names.js'
import { actions } from '../../pictures/charts.js'
import { HeatMap } from '../../pictures/heat-map.js'
import { legendOf } from '../../pictures/legend.js'
import { shadingOf } from '../../pictures/shading.js'
import { counted, shortened, shown } from '../../text.js'
import type { ShownTrial } from '../../trials.js'

/** The largest number of tensors that are drawn. */
const MAX_ROWS = 400
/** The rule that finds NaN and infinities. */
const RULE = 'ExplodingTensor'
/** XGBoost's tables of trees, which have NaN where a leaf has no split. */
const TREES = /^trees\//

/** The picture of the path. Null: all elements are finite, or a server would have to read the whole trial to know. */
export async function nanPath(trial: ShownTrial, open: OpenTensor): Promise<HTMLElement | null> {
  const { view } = trial
  if (trial.source.embedsAny && !view.findings.some(({ rule }) => rule === RULE)) return null
  const all = { kind: 'all' } as const
  const [nan, infinite, count] = await Promise.all([
    trial.column('nan_count', all),
    trial.column('inf_count', all),
    trial.column('count', all),
  ])
  if (nan === null || infinite === null || count === null) return null
  const columns = [nan, infinite, count]
  const steps = [...view.steps.keys()].filter(step => columns.every(column => column.has(step)))
  const lost = (series: number, step: number) => nan.at(series, step) + infinite.at(series, step)
  const isThere = (series: number, step: number) => columns.every(column => column.isThere(series, step))
  const firsts = new Map<number, number>()
  for (const [series, { tensor }] of view.series.entries()) {
    if (TREES.test(view.tensors[tensor]!.name)) continue
    const first = steps.find(step => isThere(series, step) && lost(series, step) > 0)
    if (first !== undefined) firsts.set(series, first)
  }
  if (firsts.size === 0) return null
  // Tensors in the order in which they are affected; within a step, in that of the training.
  const rows = [...firsts].sort(([a, x], [b, y]) => x - y || a - b).slice(0, MAX_ROWS)
  const share = (row: number, i: number) => {
    const [series] = rows[row]!
    return lost(series, steps[i]!) / count.at(series, steps[i]!)
  }
  const tensorOf = (row: number) => view.tensors[view.series[rows[row]![0]]!.tensor]!.name
  const workerOf = (row: number) =>
    view.workers.length > 1 ? ` · ${shown(view.workers[view.series[rows[row]![0]]!.worker]!)}` : ''
  const shading = shadingOf([0, 1], false, 'linear')
  const label = `The share of elements that are NaN or infinite, of ${counted(rows.length, 'tensor')} at ${counted(steps.length, 'step')}, in the order in which they first have any`
  const map = new HeatMap({
    rows: rows.length,
    steps: steps.length,
    value: share,
    isThere: (row, i) => isThere(rows[row]![0], steps[i]!),
    shading,
    rowText: row => `${shortened(tensorOf(row), 38)}${workerOf(row)}`,
    stepText: i => String(view.steps[steps[i]!]),
    numbers: steps.map(step => view.steps[step]!),
    cellText: (row, i) => {
      const [series] = rows[row]!
      const step = steps[i]!
      const said = isThere(series, step)
        ? `${nan.at(series, step)} NaN and ${infinite.at(series, step)} infinite of ${counted(count.at(series, step), 'element')}`
        : 'not saved'
      return `${shown(tensorOf(row))}${workerOf(row)} · step ${trial.stepText(step)}: ${said}`
    },
    onOpen: row => open(tensorOf(row)),
    label,
  })
  const undrawn = firsts.size - rows.length
  return h(
    'section',
    { class: 'nan-path' },
    h('h3', {}, 'The path of NaN and infinities'),
    legendOf(
      shading,
      'share of elements',
      rows.every(([series]) => steps.every(step => isThere(series, step))),
    ),
    map.element,
    undrawn > 0 ? h('p', { class: 'note' }, `and ${undrawn} more tensors, later ones`) : null,
    actions(
      label,
      () => [
        ['tensor', 'worker', 'step', 'nan', 'infinite', 'elements'],
        ...rows.flatMap(([series], row) =>
          steps
            .filter(step => isThere(series, step))
            .map(step => [
              tensorOf(row),
              view.workers[view.series[series]!.worker]!,
              view.steps[step]!,
              nan.at(series, step),
              infinite.at(series, step),
              count.at(series, step),
            ]),
        ),
      ],
      null,
    ),
  )
}
