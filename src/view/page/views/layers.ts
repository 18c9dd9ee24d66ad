/** Tensors × steps as a heat map: of one trial, of two on one scale, or of what differs. */

import type { Mode } from '../../../base/types.js'
import { KINDS, type Kind } from '../../../trial/kinds/kinds.js'
import { type ShownStatistic, STATES } from '../../data.js'
import { choice, h, nameFilter } from '../dom.js'
import { badge, type OpenTensor } from '../names.js'
import { actions } from '../pictures/charts.js'
import { modeColor } from '../pictures/colors.js'
import { HeatMap } from '../pictures/heat-map.js'
import { legendOf, ratioLegend } from '../pictures/legend.js'
import { ratioShading, type ScaleName, type Shading, shadingOf } from '../pictures/shading.js'
import { counted, exact, KIND_NAMES, MEANINGS, short, shortened, shown } from '../text.js'
import type { Column, ShownTrial } from '../trials.js'
import type { View } from './view.js'

/** The choice in the view, kept while other views are shown. */
export interface LayersChoice {
  kind: Kind | 'all'
  statistic: ShownStatistic
  /** True if the reader chose the statistic. */
  isChosen: boolean
  scale: ScaleName
  /** The mode of the steps; empty: all modes. */
  mode: Mode | ''
  filter: string
  /** The tensor last pointed at. */
  tensor: string
}

/** Statistics that can be below 0. */
export const SIGNED: ReadonlySet<ShownStatistic> = new Set(['mean', 'min', 'max', 'sum', 'prod'])

/** Statistics of two trials together. */
export const OF_BOTH: ReadonlySet<ShownStatistic> = new Set(['difference', 'changed'])

export function firstChoice(trials: readonly ShownTrial[]): LayersChoice {
  const has = (kind: Kind) => trials.some(({ view }) => view.tensors.some(tensor => tensor.kind === kind))
  const areCheckpoints = trials.every(({ view }) => view.checkpoint !== null)
  const kinds = areCheckpoints ? (['weights', 'outputs'] as const) : (['gradients', 'weights', 'outputs'] as const)
  return {
    kind: kinds.find(has) ?? 'all',
    // The norms of two checkpoints look alike.
    statistic: firstOf(trials, areCheckpoints ? ['difference', 'l2'] : ['abs_mean']),
    isChosen: false,
    scale: 'log',
    mode: '',
    filter: '',
    tensor: '',
  }
}

/** The first of some statistics that there is. */
export function firstOf(trials: readonly ShownTrial[], wanted: readonly ShownStatistic[]): ShownStatistic {
  const { statistics } = trials[0]!
  return wanted.find(name => statistics.includes(name)) ?? statistics[0] ?? 'abs_mean'
}

/** A trial's numbers, and which of its series are shown. */
interface Layer {
  readonly trial: ShownTrial
  readonly series: readonly number[]
  /** The numbers of the steps of all trials, which are the columns. */
  readonly numbers: readonly number[]
  /** The trial's index of each of these steps; -1 for none. */
  readonly steps: readonly number[]
  readonly column: Column
  readonly states: Uint8Array
}

/** The largest number of steps that are told one by one. */
const MAX_NUMBERS = 12
const FAILED = STATES.indexOf('failed')

export async function layers(given: readonly ShownTrial[], chosen: LayersChoice, open: OpenTensor): Promise<View> {
  let trials = given
  const maps = h('div', { class: 'maps' })
  let drawn: readonly HeatMap[] = []
  let turns = 0
  const draw = async (isSame = false) => {
    const turn = ++turns
    const { elements, heatMaps } = await mapsOf(trials, chosen, open)
    // The reader may have chosen something else meanwhile.
    if (turn !== turns) return
    const focused = drawn.findIndex(({ element }) => element.contains(document.activeElement))
    maps.replaceChildren(...elements)
    if (isSame) for (const [i, map] of heatMaps.entries()) map.takeOver(drawn[i])
    heatMaps[focused]?.focus()
    drawn = heatMaps
  }
  const set = <K extends keyof LayersChoice>(name: K, value: LayersChoice[K]) => {
    chosen[name] = value
    void draw()
  }
  const modes = modesOf(trials)
  const kinds = KINDS.filter(kind => trials.some(({ view }) => view.tensors.some(tensor => tensor.kind === kind)))
  const statistics = [...new Set(trials.flatMap(({ statistics }) => statistics))]
  const meaning = h('p', { class: 'muted meaning' })
  const explain = () => (meaning.textContent = MEANINGS[chosen.statistic] ?? '')
  explain()
  await draw()
  const element = h(
    'section',
    {},
    h(
      'form',
      { class: 'controls', onsubmit: event => event.preventDefault() },
      choice('Tensors', [['all', 'All'], ...kinds.map(kind => [kind, KIND_NAMES[kind]!] as const)], chosen.kind, kind =>
        set('kind', kind),
      ),
      choice(
        'Show',
        statistics.map(name => [name, name] as const),
        chosen.statistic,
        name => {
          chosen.isChosen = true
          set('statistic', name)
          explain()
        },
      ),
      choice(
        'Scale',
        [
          ['log', 'Logarithmic'],
          ['linear', 'Linear'],
        ],
        chosen.scale,
        scale => set('scale', scale),
      ),
      modes.length < 2
        ? null
        : choice('Steps of', [['', 'All modes'], ...modes.map(mode => [mode, mode] as const)], chosen.mode, mode =>
            set('mode', mode),
          ),
      nameFilter(chosen.filter, text => set('filter', text)),
    ),
    meaning,
    maps,
  )
  const update = (newer: readonly ShownTrial[]) => {
    trials = newer
    return draw(true)
  }
  return { element, update }
}

/** The modes of the steps. */
function modesOf(trials: readonly ShownTrial[]): readonly Mode[] {
  return [...new Set(trials.flatMap(({ view }) => view.mode.map(mode => view.modes[mode]!)))]
}

/** The colours of the lines below columns. */
function modeLegend(trials: readonly ShownTrial[], numbers: readonly number[]): readonly HTMLElement[] {
  const modes = modesOf(trials).filter(mode =>
    trials.some(({ view }) => numbers.some(number => view.modes[view.mode[view.steps.indexOf(number)]!] === mode)),
  )
  return modes.length < 2
    ? []
    : [
        h(
          'ul',
          { class: 'legend', 'aria-label': 'Modes of the steps' },
          ...modes.map(mode => h('li', {}, h('i', { style: `border-top: 3px solid ${modeColor(mode)}` }), mode)),
        ),
      ]
}

interface Maps {
  readonly elements: readonly HTMLElement[]
  readonly heatMaps: readonly HeatMap[]
}

async function mapsOf(trials: readonly ShownTrial[], chosen: LayersChoice, open: OpenTensor): Promise<Maps> {
  const allLayers = await Promise.all(trials.map(trial => layerOf(trial, chosen)))
  const saved = allLayers.filter(layer => layer !== null)
  // Steps with the same number are one column.
  const numbers = [...new Set(saved.flatMap(({ numbers }) => numbers))].sort((a, b) => a - b)
  const shownLayers = saved.map(layer => {
    const indices = new Map(layer.numbers.map((number, i) => [number, layer.steps[i]!]))
    return { ...layer, numbers, steps: numbers.map(number => indices.get(number) ?? -1) }
  })
  if (shownLayers.length === 0) {
    return { elements: [h('p', {}, 'No tensor has such numbers: choose others.')], heatMaps: [] }
  }
  // One scale for all trials, so that colours can be compared.
  const shading = shadingOf(numbersOf(shownLayers), SIGNED.has(chosen.statistic), chosen.scale)
  const cells = shownLayers.reduce((sum, { series, steps }) => sum + series.length * steps.length, 0)
  const maps = shownLayers.map(layer =>
    mapOf(layer, chosen, shading, trials.length > 1 ? trials.indexOf(layer.trial) : null, open),
  )
  const difference = shownLayers.length === 2 ? differenceOf(shownLayers[0]!, shownLayers[1]!, chosen, open) : null
  const all = difference === null ? maps : [...maps, difference]
  const [a, b] = shownLayers
  return {
    elements: [
      legendOf(shading, chosen.statistic, shading.count === cells),
      ...modeLegend(trials, numbers),
      ...all.map(({ element }) => element),
      ...(b !== undefined && difference === null ? [h('p', { class: 'note' }, withoutRatio(a!, b))] : []),
    ],
    heatMaps: all.map(({ map }) => map),
  }
}

async function layerOf(trial: ShownTrial, { kind, statistic, mode, filter }: LayersChoice): Promise<Layer | null> {
  const { view } = trial
  const column = await trial.column(statistic, { kind })
  if (column === null) return null
  const wanted = filter.toLowerCase()
  const states = await trial.states()
  const tensors = trial.inOrder.filter(i => {
    const { name, kind: tensorKind } = view.tensors[i]!
    return (kind === 'all' || tensorKind === kind) && name.toLowerCase().includes(wanted)
  })
  // The workers of a tensor lie below each other.
  const workerOf = (i: number) => view.series[i]!.worker
  const series = tensors.flatMap(i => [...trial.seriesOf[i]!].sort((a, b) => workerOf(a) - workerOf(b)))
  const count = view.steps.length
  const steps = [...view.steps.keys()].filter(
    step =>
      column.has(step) &&
      (mode === '' || view.modes[view.mode[step]!] === mode) &&
      series.some(row => column.isThere(row, step) || states[row * count + step] === FAILED),
  )
  const numbers = steps.map(step => view.steps[step]!)
  return steps.length === 0 ? null : { trial, series, numbers, steps, column, states }
}

/** True if there is a number. */
function isThere({ column }: Layer, series: number, step: number): boolean {
  return step >= 0 && column.isThere(series, step)
}

function* numbersOf(all: readonly Layer[]): Generator<number> {
  for (const layer of all) {
    for (const series of layer.series) {
      for (const step of layer.steps) if (isThere(layer, series, step)) yield layer.column.at(series, step)
    }
  }
}

function mapOf(layer: Layer, chosen: LayersChoice, shading: Shading, place: number | null, open: OpenTensor): DrawnMap {
  const { trial, series, numbers, steps, column } = layer
  const { statistic } = chosen
  const { view } = trial
  const name = (row: number) => view.tensors[view.series[series[row]!]!.tensor]!.name
  const worker = (row: number) =>
    view.workers.length > 1 ? ` · ${shown(view.workers[view.series[series[row]!]!.worker]!)}` : ''
  const map = new HeatMap({
    rows: series.length,
    steps: steps.length,
    value: (row, i) => column.at(series[row]!, steps[i]!),
    isThere: (row, i) => isThere(layer, series[row]!, steps[i]!),
    shading,
    rowText: row => `${shortened(name(row), 38)}${worker(row)}`,
    stepText: i => String(numbers[i]),
    cellText: (row, i) => {
      const step = steps[i]!
      if (step < 0) return `${shown(name(row))}${worker(row)} · step ${numbers[i]}: not saved`
      const state = layer.states[series[row]! * view.steps.length + step]
      const value = column.at(series[row]!, step)
      const number = `${statistic} ${column.packed.isExact ? exact(value) : short(value)}`
      const without = state === 0 ? 'not saved' : state === 2 ? 'could not be read' : `no ${statistic}`
      const said = isThere(layer, series[row]!, step) ? number : without
      return `${shown(name(row))}${worker(row)} · step ${trial.stepText(step)}: ${said}`
    },
    onOpen: row => open(name(row)),
    numbers,
    bands: bandsOf([trial], numbers),
    chosenRow: series.findIndex((_, row) => name(row) === chosen.tensor),
    onPoint: row => (chosen.tensor = name(row)),
    label: `${statistic} of ${counted(series.length, 'row')} at ${counted(steps.length, 'step')} of ${shown(view.name)}`,
  })
  const element = h(
    'figure',
    {},
    place === null
      ? null
      : OF_BOTH.has(statistic)
        ? h('figcaption', {}, badge(0), badge(1), 'How far they are apart')
        : h('figcaption', {}, badge(place), shown(view.name)),
    map.element,
    actions(
      `${statistic} of the layers`,
      () => [
        ['tensor', 'worker', 'step', statistic],
        ...series.flatMap((at, row) =>
          steps
            .filter(step => isThere(layer, at, step))
            .map(step => [name(row), view.workers[view.series[at]!.worker]!, view.steps[step]!, column.at(at, step)]),
        ),
      ],
      null,
    ),
    column.packed.every > 1
      ? h(
          'p',
          { class: 'note' },
          `One step in ${column.packed.every}, rounded to three digits: that is what fits into the file. A report of fewer tensors or steps has all.`,
        )
      : null,
  )
  return { element, map }
}

/** A heat map in its figure. */
interface DrawnMap {
  readonly element: HTMLElement
  readonly map: HeatMap
}

/** log₂ of the ratio of magnitudes where both trials have a tensor at a step: 0 where they are the same, ±∞ where one is 0. */
function differenceOf(a: Layer, b: Layer, { statistic }: LayersChoice, open: OpenTensor): DrawnMap | null {
  const keyOf = ({ trial: { view } }: Layer, series: number) =>
    JSON.stringify([view.tensors[view.series[series]!.tensor]!.name, view.workers[view.series[series]!.worker]])
  const others = new Map(b.series.map(series => [keyOf(b, series), series]))
  const pairs = a.series.flatMap(series => {
    const other = others.get(keyOf(a, series))
    return other === undefined ? [] : [[series, other] as const]
  })
  const steps = a.numbers
    .map((step, at) => ({ step, i: a.steps[at]!, j: b.steps[at]! }))
    .filter(({ i, j }) => pairs.some(([x, y]) => isThere(a, x, i) && isThere(b, y, j)))
  if (steps.length === 0) return null
  const numbers = steps.map(({ step }) => step)
  const ratio = (row: number, step: number): number => {
    const [x, y] = [a.column.at(pairs[row]![0], steps[step]!.i), b.column.at(pairs[row]![1], steps[step]!.j)]
    if (!Number.isFinite(x) || !Number.isFinite(y)) return Number.NaN
    // A ratio to 0 is infinite.
    return x === y ? 0 : Math.log2(Math.abs(y)) - Math.log2(Math.abs(x))
  }
  const both = (row: number, step: number) =>
    isThere(a, pairs[row]![0], steps[step]!.i) && isThere(b, pairs[row]![1], steps[step]!.j)
  const most = pairs.map((_, row) =>
    Math.max(...steps.map((_, step) => (both(row, step) ? weight(ratio(row, step)) : 0))),
  )
  // The rows with the largest differences come first.
  const order = pairs.map((_, row) => row).sort((x, y) => most[y]! - most[x]! || x - y)
  const all = order.flatMap(row => steps.flatMap((_, step) => (both(row, step) ? [ratio(row, step)] : [])))
  const shading = ratioShading(all)
  const name = (row: number) => a.trial.view.tensors[a.trial.view.series[pairs[order[row]!]![0]]!.tensor]!.name
  const map = new HeatMap({
    rows: order.length,
    steps: steps.length,
    value: (row, step) => ratio(order[row]!, step),
    isThere: (row, step) => both(order[row]!, step),
    shading,
    rowText: row => shortened(name(row), 38),
    stepText: step => String(numbers[step]),
    cellText: (row, step) => {
      const [x, y] = pairs[order[row]!]!
      const values = `${statistic} A ${short(a.column.at(x, steps[step]!.i))}, B ${short(b.column.at(y, steps[step]!.j))}`
      return `${shown(name(row))} · step ${steps[step]!.step}: ${both(order[row]!, step) ? `${values}${timesText(ratio(order[row]!, step))}` : 'not in both'}`
    },
    onOpen: row => open(name(row)),
    numbers,
    bands: bandsOf([a.trial, b.trial], numbers),
    label: `How many times ${statistic} of B is that of A, the largest differences first`,
  })
  const some = numbers.length > MAX_NUMBERS ? `, from ${numbers[0]} to ${numbers.at(-1)}` : `: ${numbers.join(', ')}`
  const element = h(
    'figure',
    {},
    h(
      'figcaption',
      {},
      badge(0),
      badge(1),
      'How many times as large one is as the other: the largest differences first',
    ),
    h('p', { class: 'note' }, `${counted(steps.length, 'step')} with numbers of both${some}.`),
    ratioLegend(shading, all.length === order.length * steps.length),
    map.element,
    actions(
      `${statistic} of both`,
      () => [
        ['tensor', 'worker', 'step', 'A', 'B'],
        ...order.flatMap((at, row) => {
          const [x, y] = pairs[at]!
          const worker = a.trial.view.workers[a.trial.view.series[x]!.worker]!
          return steps.flatMap(({ step, i, j }, column) =>
            both(at, column) ? [[name(row), worker, step, a.column.at(x, i), b.column.at(y, j)]] : [],
          )
        }),
      ],
      null,
    ),
  )
  return { element, map }
}

/** The colour of each step's mode, transparent at steps of the other trial; none where there is one mode. */
function bandsOf(trials: readonly ShownTrial[], numbers: readonly number[]): readonly string[] {
  const modes = numbers.map(number => {
    for (const { view } of trials) {
      const at = view.steps.indexOf(number)
      if (at >= 0) return view.modes[view.mode[at]!]!
    }
    return ''
  })
  return new Set(modes.filter(mode => mode !== '')).size > 1
    ? modes.map(mode => (mode === '' ? 'transparent' : modeColor(mode)))
    : []
}

/** The ratio in words, behind the numbers. */
function timesText(ratio: number): string {
  if (ratio === 0) return ': equal'
  if (!Number.isFinite(ratio)) return ''
  return ratio > 0 ? `: B is ${short(2 ** ratio)} times A` : `: A is ${short(2 ** -ratio)} times B`
}

/** Why two trials have no picture of their ratios. */
function withoutRatio(a: Layer, b: Layer): string {
  const [ofA, ofB] = [a, b].map(({ trial: { view } }) => view.workers.map(shown))
  const why = ofA!.some(worker => ofB!.includes(worker))
    ? 'no tensor was saved at the same step in both'
    : `workers are matched by their names, and those of A (${ofA!.join(', ')}) are called otherwise than those of B (${ofB!.join(', ')})`
  return `There is no picture of A beside B: ${why}.`
}

/** The rank of a ratio: NaN comes first. */
function weight(ratio: number): number {
  return Number.isNaN(ratio) ? Number.POSITIVE_INFINITY : Math.abs(ratio)
}
