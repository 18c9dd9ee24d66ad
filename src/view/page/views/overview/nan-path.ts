/** The path of NaN and infinities from the first tensor to the loss: the tensors that have any at each step, and how many. */

import { h } from '../../dom.js'
import type { OpenTensor } from '../../names.js'
import { actions } from '../../pictures/charts.js'
import { HeatMap } from '../../pictures/heat-map.js'
import { lostLegend } from '../../pictures/legend.js'
import { lostShading } from '../../pictures/shading.js'
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
  // A cell reaches up to the next step at which its tensor was saved; -1 for none. Tensors saved rarely would be hairlines.
  const shownSteps = rows.map(([series]) => {
    const last = steps.findLastIndex(step => isThere(series, step))
    let before = -1
    return steps.map((step, i) => {
      if (isThere(series, step)) before = step
      return i <= last ? before : -1
    })
  })
  const share = (row: number, i: number) => {
    const [[series], step] = [rows[row]!, shownSteps[row]![i]!]
    return lost(series, step) / count.at(series, step)
  }
  const tensorOf = (row: number) => view.tensors[view.series[rows[row]![0]]!.tensor]!.name
  const workerOf = (row: number) =>
    view.workers.length > 1 ? ` · ${shown(view.workers[view.series[rows[row]![0]]!.worker]!)}` : ''
  const shading = lostShading()
  const label = `The share of elements that are NaN or infinite, of ${counted(rows.length, 'tensor')} at ${counted(steps.length, 'step')}, in the order in which they first have any`
  const map = new HeatMap({
    rows: rows.length,
    steps: steps.length,
    value: share,
    isThere: (row, i) => shownSteps[row]![i]! >= 0,
    shading,
    rowText: row => `${shortened(tensorOf(row), 38)}${workerOf(row)}`,
    stepText: i => String(view.steps[steps[i]!]),
    numbers: steps.map(step => view.steps[step]!),
    cellText: (row, i) => {
      const [series] = rows[row]!
      const [step, before] = [steps[i]!, shownSteps[row]![i]!]
      const said =
        before < 0
          ? 'not saved'
          : `${nan.at(series, before)} NaN and ${infinite.at(series, before)} infinite of ${counted(count.at(series, before), 'element')}`
      const since = before < 0 || before === step ? '' : `not saved; at step ${trial.stepText(before)} `
      return `${shown(tensorOf(row))}${workerOf(row)} · step ${trial.stepText(step)}: ${since}${said}`
    },
    onOpen: row => open(tensorOf(row)),
    label,
  })
  const undrawn = firsts.size - rows.length
  return h(
    'section',
    { class: 'nan-path' },
    h('h3', {}, 'The path of NaN and infinities'),
    lostLegend(
      shading,
      shownSteps.every(row => row.every(step => step >= 0)),
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
