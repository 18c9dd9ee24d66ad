/** Units × steps: which ReLUs are dead, and which units of tanh or sigmoid lie in their flat ends. */

import type { UnitsView } from '../../data.js'
import { button, h } from '../dom.js'
import { badge, link, type OpenTensor } from '../names.js'
import { actions } from '../pictures/charts.js'
import { HeatMap, hintOf } from '../pictures/heat-map.js'
import { legendOf } from '../pictures/legend.js'
import { shadingOf } from '../pictures/shading.js'
import { counted, shown } from '../text.js'
import { type ShownTrial, unpack } from '../trials.js'
import type { View } from './view.js'

const UNCOUNTED =
  'There is no layer whose units could be counted. That needs saved elements, not reductions alone, of a batch and at most 1024 units. Very large outputs are left out, and outputs beyond the range of tanh or sigmoid.'
/** Bounds of what is drawn until the reader asks for more: layers, on a narrow screen as well, and units of each. */
const [MAX_LAYERS, MAX_NARROW, MAX_UNITS] = [6, 3, 16]
const NARROW = 640
const WORDS = { dead: '0', saturated: 'saturated' } as const

export async function unitsView(given: readonly ShownTrial[], open: OpenTensor): Promise<View> {
  const element = h('section', { class: 'units' })
  let trials = given
  /** True if the reader wants all layers, and the layers of which all units are wanted. */
  let isWhole = false
  const whole = new Set<string>()
  /** The maps and their figures by their layers. */
  let maps = new Map<string, DrawnMap>()
  let turns = 0
  const draw = async () => {
    const turn = ++turns
    const layers = await Promise.all(trials.map(layersOf))
    // The reader may have asked for more meanwhile, or the training has grown.
    if (turn !== turns) return
    // Two trials have their layers in one order.
    const most = new Map<string, Score>()
    for (const { tensor, score } of layers.flat()) {
      if (byScore(score, most.get(tensor) ?? [0, 0]) <= 0) most.set(tensor, score)
    }
    // The maps are in the order of execution.
    const executed = new Set(trials.flatMap(({ view, inOrder }) => inOrder.map(i => view.tensors[i]!.name)))
    const placeOf = new Map([...executed].map((name, i) => [name, i]))
    const names = [...most.keys()].sort((a, b) => placeOf.get(a)! - placeOf.get(b)!)
    // A map where nothing is off would tell nothing.
    const telling = names.filter(name => most.get(name)![1] > 0).sort((a, b) => byScore(most.get(a)!, most.get(b)!))
    const drawn = new Set(isWhole ? names : telling.slice(0, innerWidth < NARROW ? MAX_NARROW : MAX_LAYERS))
    const newer = new Map<string, DrawnMap>()
    const articles = trials.map((trial, place) => {
      const shownLayers = names.flatMap(
        name => (drawn.has(name) && layers[place]!.find(({ tensor }) => tensor === name)) || [],
      )
      const figures = shownLayers.map(layer => {
        const all = () => {
          whole.add(layer.tensor)
          void draw()
        }
        const units = whole.has(layer.tensor)
          ? null
          : mostTelling(layers.flat().filter(({ tensor }) => tensor === layer.tensor))
        const drawnMap = mapOf(trial, layer, open, units, all)
        newer.set(`${place} ${layer.tensor}`, drawnMap)
        return drawnMap.figure
      })
      return h(
        'article',
        {},
        trials.length > 1 ? h('h2', {}, badge(place), shown(trial.view.name)) : null,
        layers[place]!.length === 0 ? h('p', {}, UNCOUNTED) : null,
        h('div', { class: 'cards' }, ...figures),
      )
    })
    const rest = names.length - drawn.size
    const more = button(drawn.size === 0 ? 'Draw them' : `Draw the other ${rest}`, () => {
      isWhole = true
      void draw()
    })
    const focused = document.activeElement
    const isRest = focused !== null && element.querySelector('.rest')?.contains(focused) === true
    const layer = [...maps.keys()].find(key => maps.get(key)!.figure.contains(focused))
    const at = layer === undefined ? -1 : focusableIn(maps.get(layer)!.figure).indexOf(focused as HTMLElement)
    element.replaceChildren(
      h(
        'p',
        { class: 'muted' },
        'How much of a batch each unit is off for: a ReLU with output 0, or a tanh or sigmoid where its slope is less than a hundredth of the largest. A unit that is off for the whole batch does not learn. Of images a unit is a channel, counted at all positions. ',
        hintOf('the tensor'),
      ),
      legendOf(shadingOf([0, 1], false, 'linear'), 'share of the batch', true),
      ...articles,
      ...(rest === 0
        ? []
        : [
            h(
              'p',
              { class: 'actions rest' },
              telling.length === 0
                ? `No unit of ${counted(names.length, 'layer')} is ever off.`
                : drawn.size < telling.length
                  ? `${drawn.size} of ${counted(names.length, 'layer')} are drawn, those with the largest shares of units that are off.`
                  : `${drawn.size} of ${counted(names.length, 'layer')} are drawn: in the others no unit is ever off.`,
              more,
            ),
          ]),
    )
    for (const [layer, { map }] of newer) map.takeOver(maps.get(layer)?.map)
    // The focus stays where it was. A button that has done its work is gone, and what it drew has the focus.
    if (isRest && rest > 0) more.focus({ preventScroll: true })
    else if (isRest) [...newer].find(([layer]) => !maps.has(layer))?.[1].map.focus()
    const same = newer.get(layer ?? '')
    if (same) (focusableIn(same.figure)[at] ?? same.map).focus({ preventScroll: true })
    maps = newer
  }
  await draw()
  const update = (newer: readonly ShownTrial[]) => {
    trials = newer
    return draw()
  }
  return { element, update }
}

/** A map in its figure. */
interface DrawnMap {
  readonly figure: HTMLElement
  readonly map: HeatMap
}

/** The elements of a figure that can have the focus. */
function focusableIn(figure: HTMLElement): HTMLElement[] {
  return [...figure.querySelectorAll<HTMLElement>('a, button, canvas')]
}

/** The share of a layer's units, or of a unit's outputs, that are off: at the last step, then at all steps. */
type Score = readonly [last: number, all: number]

/** The largest share first. */
function byScore(a: Score, b: Score): number {
  return b[0] - a[0] || b[1] - a[1]
}

interface Layer extends UnitsView {
  readonly score: Score
  /** The units that are off for the whole batch at the last step. */
  readonly dead: number
  readonly unitScores: readonly Score[]
  /** The outputs of a unit that are off at a step. */
  at(unit: number, i: number): number
}

async function layersOf(trial: ShownTrial): Promise<readonly Layer[]> {
  const views = await trial.source.units()
  return Promise.all(
    views.map(async view => {
      const { units, steps, counts } = view
      const off = await unpack(view.off)
      const at = (unit: number, i: number) => off[i * units + unit]!
      const last = steps.length - 1
      const unitScores = Array.from(
        { length: units },
        (_, unit): Score => [
          at(unit, last) / counts[last]!,
          counts.reduce((sum, count, i) => sum + at(unit, i) / count, 0),
        ],
      )
      const dead = unitScores.filter(([share]) => share === 1).length
      const score = [dead / units, unitScores.reduce((sum, [, all]) => sum + all, 0) / units / steps.length] as const
      return { ...view, score, dead, unitScores, at }
    }),
  )
}

/** The units of a layer that are off most, in one trial or the other. Null: all, where they are few. */
function mostTelling(layers: readonly Layer[]): readonly number[] | null {
  const scores = Array.from(
    { length: Math.max(...layers.map(({ units }) => units)) },
    (_, unit) => layers.flatMap(({ unitScores }) => (unitScores[unit] ? [unitScores[unit]] : [])).sort(byScore)[0]!,
  )
  if (scores.length <= MAX_UNITS) return null
  const units = [...scores.keys()].sort((a, b) => byScore(scores[a]!, scores[b]!)).slice(0, MAX_UNITS)
  return units.sort((a, b) => a - b)
}

/** The map of a layer. @param some the units to draw; null: all @param drawAll draws all of them */
function mapOf(
  trial: ShownTrial,
  layer: Layer,
  open: OpenTensor,
  some: readonly number[] | null,
  drawAll: () => void,
): DrawnMap {
  const { tensor, isOff, units, steps, counts, dead, at } = layer
  const drawn = some?.filter(unit => unit < units) ?? Array.from({ length: units }, (_, unit) => unit)
  const said = `${dead} of ${counted(units, 'unit')} ${dead === 1 ? 'is' : 'are'} ${WORDS[isOff]} for the whole batch at step ${trial.stepText(steps.at(-1)!)}.`
  const label = `The share of the batch for which units of ${shown(tensor)} are ${WORDS[isOff]}, at ${counted(steps.length, 'step')}. ${said}`
  const map = new HeatMap({
    rows: drawn.length,
    steps: steps.length,
    value: (row, i) => at(drawn[row]!, i) / counts[i]!,
    isThere: () => true,
    shading: shadingOf([0, 1], false, 'linear'),
    rowText: row => String(drawn[row]),
    stepText: i => String(trial.view.steps[steps[i]!]),
    numbers: steps.map(step => trial.view.steps[step]!),
    cellText: (row, i) =>
      `unit ${drawn[row]} · step ${trial.stepText(steps[i]!)}: ${WORDS[isOff]} for ${at(drawn[row]!, i)} of ${counted(counts[i]!, 'output')}`,
    onOpen: () => open(tensor),
    hint: '',
    label,
  })
  const rows = () => [
    ['tensor', 'unit', 'step', isOff, 'outputs'],
    ...steps.flatMap((step, i) =>
      Array.from({ length: units }, (_, unit) => [tensor, unit, trial.view.steps[step]!, at(unit, i), counts[i]!]),
    ),
  ]
  const more = some === null ? [] : [button(`Draw all ${units}`, drawAll)]
  const figure = h(
    'figure',
    { class: 'card' },
    h('h4', {}, link(tensor, open)),
    h('p', { class: 'note' }, some === null ? said : `${said} ${drawn.length} are drawn, those most often off.`),
    map.element,
    actions(label, rows, null, more),
  )
  return { figure, map }
}
