/** Units × steps: which ReLUs are dead, and which units of tanh or sigmoid lie in their flat ends. */

import type { UnitsView } from '../../data.js'
import { h } from '../dom.js'
import { badge, link, type OpenTensor } from '../names.js'
import { actions } from '../pictures/charts.js'
import { HeatMap } from '../pictures/heat-map.js'
import { legendOf } from '../pictures/legend.js'
import { shadingOf } from '../pictures/shading.js'
import { counted, shown } from '../text.js'
import { type ShownTrial, unpack } from '../trials.js'
import type { View } from './view.js'

const UNCOUNTED =
  'There is no layer whose units could be counted. That needs saved elements, not reductions alone, of a batch and at most 1024 units. Very large outputs are left out, and outputs beyond the range of tanh or sigmoid.'
const WORDS = { dead: '0', saturated: 'saturated' } as const

export async function unitsView(given: readonly ShownTrial[], open: OpenTensor): Promise<View> {
  const element = h('section', { class: 'units' })
  /** The maps by their layers. */
  let maps = new Map<string, HeatMap>()
  const draw = async (trials: readonly ShownTrial[]) => {
    const shading = shadingOf([0, 1], false, 'linear')
    const newer = new Map<string, HeatMap>()
    const drawn = trials.map(async (trial, place) => {
      const layers = await trial.source.units()
      const figures = layers.map(async layer => {
        const { figure, map } = await mapOf(trial, layer, open)
        newer.set(`${place} ${layer.tensor}`, map)
        return figure
      })
      return h(
        'article',
        {},
        trials.length > 1 ? h('h2', {}, badge(place), shown(trial.view.name)) : null,
        layers.length === 0 ? h('p', {}, UNCOUNTED) : null,
        h('div', { class: 'cards' }, ...(await Promise.all(figures))),
      )
    })
    element.replaceChildren(
      h(
        'p',
        { class: 'muted' },
        'How much of a batch each unit is off for: a ReLU with output 0, or a tanh or sigmoid where its slope is less than a hundredth of the largest. A unit that is off for the whole batch does not learn. Of images a unit is a channel, counted at all positions.',
      ),
      legendOf(shading, 'share of the batch', true),
      ...(await Promise.all(drawn)),
    )
    for (const [layer, map] of newer) map.takeOver(maps.get(layer))
    maps = newer
  }
  await draw(given)
  return { element, update: draw }
}

async function mapOf(trial: ShownTrial, layer: UnitsView, open: OpenTensor) {
  const { tensor, isOff, units, steps, counts } = layer
  const off = await unpack(layer.off)
  const at = (unit: number, i: number) => off[i * units + unit]!
  const last = steps.length - 1
  const all = Array.from({ length: units }, (_, unit) => unit).filter(unit => at(unit, last) === counts[last]).length
  const said = `${all} of ${counted(units, 'unit')} ${all === 1 ? 'is' : 'are'} ${WORDS[isOff]} for the whole batch at step ${trial.stepText(steps[last]!)}.`
  const label = `The share of the batch for which units of ${shown(tensor)} are ${WORDS[isOff]}, at ${counted(steps.length, 'step')}. ${said}`
  const map = new HeatMap({
    rows: units,
    steps: steps.length,
    value: (unit, i) => at(unit, i) / counts[i]!,
    isThere: () => true,
    shading: shadingOf([0, 1], false, 'linear'),
    rowText: String,
    stepText: i => String(trial.view.steps[steps[i]!]),
    numbers: steps.map(step => trial.view.steps[step]!),
    cellText: (unit, i) =>
      `unit ${unit} · step ${trial.stepText(steps[i]!)}: ${WORDS[isOff]} for ${at(unit, i)} of ${counted(counts[i]!, 'output')}`,
    onOpen: () => open(tensor),
    label,
  })
  const rows = () => [
    ['tensor', 'unit', 'step', isOff, 'outputs'],
    ...steps.flatMap((step, i) =>
      Array.from({ length: units }, (_, unit) => [tensor, unit, trial.view.steps[step]!, at(unit, i), counts[i]!]),
    ),
  ]
  const figure = h(
    'figure',
    { class: 'card' },
    h('h4', {}, link(tensor, open)),
    h('p', { class: 'note' }, said),
    map.element,
    actions(label, rows, null),
  )
  return { figure, map }
}
