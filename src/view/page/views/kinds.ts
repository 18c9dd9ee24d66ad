/** Layers × kinds at one step: how the tensors of a model compare, each layer a row, each kind of tensor (`mlp.up_proj`) a column. */

import type { ShownStatistic } from '../../data.js'
import { choice, h } from '../dom.js'
import { moment } from '../moment.js'
import { badge, link, type OpenTensor } from '../names.js'
import { actions } from '../pictures/charts.js'
import { HeatMap } from '../pictures/heat-map.js'
import { chip, legendOf } from '../pictures/legend.js'
import { type Shading, shadingOf } from '../pictures/shading.js'
import { areSeen, firstShown, lostText } from '../stepper.js'
import { counted, exact, MEANINGS, short, shortened, shown } from '../text.js'
import type { Column, ShownTrial } from '../trials.js'
import { firstOf, OF_BOTH, SIGNED } from './layers.js'
import type { View } from './view.js'

/** The choice in the view, kept while other views are shown. */
export interface KindsChoice {
  statistic: ShownStatistic
  /** True if the reader chose the statistic. */
  isChosen: boolean
}

/** The largest number of tensors outside of any layer that are named. */
const MAX_OUTSIDE = 8

/** States of optimizers, whose numbers in names count parameters, not layers. */
const OF_OPTIMIZER = /^optim/

/** A tensor's layer and kind: `model.layers.3` and `mlp.up_proj` of `model.layers.3.mlp.up_proj.weight`. */
const IN_LAYER = /^(.*?[A-Za-z_][^.]*\.)(\d+)\.(.+?)(?:\.weight)?$/

/** The tensors of a trial by layers and kinds. */
interface Grid {
  readonly layers: readonly string[]
  readonly kinds: readonly string[]
  /** Series by row, then by column; -1 for none. */
  readonly series: Int32Array
  /** The series of tensors outside of any layer. */
  readonly others: readonly number[]
}

/** The grid of a model whose layers have the same kinds of tensors: three kinds or more in two layers or more. Null: there is none. */
function gridOf({ view, inOrder, seriesOf }: ShownTrial): Grid | null {
  const rows = new Map<
    string,
    { readonly order: readonly [string, number, number]; readonly cells: Map<string, number> }
  >()
  const kinds = new Map<string, number>()
  const others: number[] = []
  for (const series of inOrder.flatMap(tensor => seriesOf[tensor]!)) {
    const { tensor, worker } = view.series[series]!
    const { name, shape } = view.tensors[tensor]!
    // Losses and learning rates are no tensors of a layer.
    if (OF_OPTIMIZER.test(name) || shape?.length === 0) continue
    const [, before, number, kind] = IN_LAYER.exec(name) ?? []
    if (before === undefined || kind === undefined) {
      others.push(series)
      continue
    }
    const ofWorker = view.workers.length > 1 ? ` · ${view.workers[worker]}` : ''
    const layer = `${before}${number}${ofWorker}`
    const row = rows.get(layer) ?? {
      order: [before, Number(number), worker] as const,
      cells: new Map<string, number>(),
    }
    rows.set(layer, row)
    row.cells.set(kind, series)
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
  }
  const shared = [...kinds].filter(([, count]) => count > 1).map(([kind]) => kind)
  if (rows.size < 2 || shared.length < 3) return null
  const places = new Map<string, number>()
  for (const [, { order }] of rows) if (!places.has(order[0])) places.set(order[0], places.size)
  const sorted = [...rows].sort(
    ([, { order: a }], [, { order: b }]) => places.get(a[0])! - places.get(b[0])! || a[1] - b[1] || a[2] - b[2],
  )
  const names = [...kinds.keys()]
  return {
    layers: sorted.map(([layer]) => layer),
    kinds: names,
    series: Int32Array.from(sorted.flatMap(([, { cells }]) => names.map(kind => cells.get(kind) ?? -1))),
    others,
  }
}

export function firstKinds(trials: readonly ShownTrial[]): KindsChoice {
  return { statistic: firstOf(trials, ['difference', 'l2']), isChosen: false }
}

export function hasKinds(trials: readonly ShownTrial[]): boolean {
  return trials.some(trial => gridOf(trial) !== null)
}

export async function kindsView(given: readonly ShownTrial[], chosen: KindsChoice, open: OpenTensor): Promise<View> {
  let trials = given
  const maps = h('div', { class: 'maps' })
  const meaning = h('p', { class: 'muted meaning' })
  const statistics = [...new Set(trials.flatMap(({ statistics }) => statistics))]
  const steps = [...new Set(trials.flatMap(({ view }) => view.steps))].sort((a, b) => a - b)
  const stepChoice =
    steps.length < 2
      ? null
      : choice(
          'Step',
          steps.map(step => [String(step), String(step)] as const),
          '',
          step => moment.point(Number(step)),
        )
  let turns = 0
  const draw = async () => {
    const turn = ++turns
    const step = moment.step === null ? null : steps[moment.indexIn(steps, 0)]!
    const { elements, at } = await mapsOf(trials, chosen.statistic, step, open)
    // The reader may have chosen something else meanwhile.
    if (turn !== turns) return
    const select = stepChoice?.querySelector('select')
    if (select) select.value = String(at ?? step ?? steps.at(-1))
    meaning.textContent = MEANINGS[chosen.statistic] ?? ''
    maps.replaceChildren(...elements)
  }
  await draw()
  const element = h(
    'section',
    {},
    h(
      'form',
      { class: 'controls', onsubmit: event => event.preventDefault() },
      choice(
        'Show',
        statistics.map(name => [name, name] as const),
        chosen.statistic,
        name => {
          chosen.isChosen = true
          chosen.statistic = name
          void draw()
        },
      ),
      stepChoice,
    ),
    meaning,
    maps,
  )
  moment.follow(element, () => void draw())
  const update = (newer: readonly ShownTrial[]) => {
    trials = newer
    return draw()
  }
  return { element, update }
}

/** A trial with the numbers that are drawn. */
interface Shown {
  readonly trial: ShownTrial
  readonly grid: Grid
  readonly column: Column
  /** The index of the step. */
  readonly step: number
  /** A sentence about later steps, if none of their numbers is finite. */
  readonly lost: string
  readonly states: Uint8Array
}

async function mapsOf(
  trials: readonly ShownTrial[],
  statistic: ShownStatistic,
  /** The number of a step; null: the last one with a finite number. */
  step: number | null,
  open: OpenTensor,
): Promise<{ readonly elements: readonly HTMLElement[]; readonly at?: number }> {
  const shownTrials: Shown[] = []
  for (const trial of trials) {
    const grid = gridOf(trial)
    const column = grid && (await trial.column(statistic, { kind: 'all' }))
    if (!grid || !column) continue
    const { steps } = trial.view
    const all = [...grid.series, ...grid.others].filter(series => series >= 0)
    const saved = [...steps.keys()].filter(i => column.has(i) && all.some(series => column.isThere(series, i)))
    const numbers = saved.map(i => steps[i]!)
    const isSeen = (i: number) => {
      const present = all.filter(series => column.isThere(series, saved[i]!))
      return areSeen(present.map(series => column.at(series, saved[i]!)))
    }
    const at = step === null ? (saved[firstShown(numbers, isSeen)] ?? -1) : steps.indexOf(step)
    if (at >= 0)
      shownTrials.push({
        trial,
        grid,
        column,
        step: at,
        lost: lostText(numbers, isSeen, 'NaN, infinite or 0'),
        states: await trial.states(),
      })
  }
  const numbers = shownTrials.flatMap(shownTrial =>
    [...shownTrial.grid.series, ...shownTrial.grid.others]
      .filter(series => isThere(shownTrial, series))
      .map(cellSeries => numberAt(shownTrial, cellSeries)),
  )
  if (numbers.length === 0) {
    return { elements: [h('p', {}, 'No layer has such numbers at this step: choose others.')] }
  }
  // One scale for all trials, so that colours can be compared.
  const shading = shadingOf(numbers, SIGNED.has(statistic), 'log')
  const elements = [
    legendOf(
      shading,
      statistic,
      shownTrials.every(shownTrial => shownTrial.grid.series.every(series => isThere(shownTrial, series))),
    ),
    ...shownTrials.map(shownTrial =>
      mapOf(shownTrial, statistic, shading, trials.length > 1 ? trials.indexOf(shownTrial.trial) : null, open),
    ),
  ]
  return { elements, at: Math.max(...shownTrials.map(({ trial, step }) => trial.view.steps[step]!)) }
}

function rank(value: number): number {
  return Number.isFinite(value) ? Math.abs(value) : Number.POSITIVE_INFINITY
}

function isThere({ column, step }: Shown, series: number): boolean {
  return series >= 0 && column.isThere(series, step)
}

function numberAt({ column, step }: Shown, series: number): number {
  return column.at(series, step)
}

function mapOf(
  shownTrial: Shown,
  statistic: ShownStatistic,
  shading: Shading,
  place: number | null,
  open: OpenTensor,
): HTMLElement {
  const { trial, grid, column, step, lost, states } = shownTrial
  const { view } = trial
  const { layers, kinds, series, others } = grid
  // The largest come first, and NaN before them.
  const outside = others
    .filter(i => isThere(shownTrial, i))
    .map(i => ({ name: view.tensors[view.series[i]!.tensor]!.name, value: numberAt(shownTrial, i) }))
    .sort((a, b) => rank(b.value) - rank(a.value))
  const at = (row: number, kind: number) => series[row * kinds.length + kind]!
  const map = new HeatMap({
    rows: layers.length,
    steps: kinds.length,
    value: (row, kind) => numberAt(shownTrial, at(row, kind)),
    isThere: (row, kind) => isThere(shownTrial, at(row, kind)),
    shading,
    rowText: row => shortened(layers[row]!, 38),
    stepText: kind => shortened(kinds[kind]!, 20),
    areNames: true,
    cellText: (row, kind) => {
      const cellSeries = at(row, kind)
      const value = cellSeries < 0 ? Number.NaN : numberAt(shownTrial, cellSeries)
      const state = cellSeries < 0 ? 0 : states[cellSeries * view.steps.length + step]
      const without = state === 0 ? 'not saved' : state === 2 ? 'could not be read' : `no ${statistic}`
      const said = isThere(shownTrial, cellSeries)
        ? `${statistic} ${column.packed.isExact ? exact(value) : short(value)}`
        : without
      return `${shown(layers[row]!)} · ${shown(kinds[kind]!)} · step ${trial.stepText(step)}: ${said}`
    },
    onOpen: (row, kind) => {
      const cellSeries = at(row, kind)
      if (cellSeries >= 0) open(view.tensors[view.series[cellSeries]!.tensor]!.name)
    },
    label: `${statistic} of ${counted(kinds.length, 'kind')} of tensors in ${counted(layers.length, 'layer')} of ${shown(view.name)}`,
  })
  const caption = OF_BOTH.has(statistic) ? 'How far they are apart' : shown(view.name)
  return h(
    'figure',
    {},
    place === null
      ? null
      : h('figcaption', {}, badge(place), OF_BOTH.has(statistic) ? badge(1 - place) : null, caption),
    map.element,
    actions(
      `${statistic} of layers and kinds`,
      () => [
        ['layer', 'kind', statistic],
        ...layers.flatMap((layer, row) =>
          [...kinds.keys()]
            .filter(kind => isThere(shownTrial, at(row, kind)))
            .map(kind => [layer, kinds[kind]!, numberAt(shownTrial, at(row, kind))]),
        ),
        ...outside.map(({ name, value }) => ['', name, value]),
      ],
      null,
    ),
    lost === '' ? null : h('p', { class: 'note' }, lost),
    outside.length === 0
      ? null
      : h(
          'p',
          { class: 'note' },
          'In no layer: ',
          ...outside
            .slice(0, MAX_OUTSIDE)
            .flatMap(({ name, value }, i) => [
              h('span', { class: 'outside' }, chip(shading.pixel(value)), link(name, open), ` ${short(value)}`),
              i < outside.length - 1 ? ', ' : '',
            ]),
          outside.length > MAX_OUTSIDE ? `and ${outside.length - MAX_OUTSIDE} more` : '',
        ),
  )
}
