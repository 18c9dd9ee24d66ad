/** XGBoost's trees: the features at which they split, and their shape. */

import * as Plot from '@observablehq/plot'
import { choice, h } from '../dom.js'
import { badge } from '../names.js'
import { actions, describe, halfWidth, type Line, lineChart, STYLE } from '../pictures/charts.js'
import { lineColor } from '../pictures/colors.js'
import { even, short, shortened, shown } from '../text.js'
import type { ShownTrial } from '../trials.js'
import { treesParts } from './trees.js'
import type { View } from './view.js'

const IMPORTANCE = /^feature_importance\/([^/]+)\/(.+)$/
const SHAP = /^(average_shap)\/(.+)$/
const MAX_FEATURES = 20
const MAX_LINES = 6
/** The colour of features without a line. */
const REST_COLOR = lineColor(6)
/** The height of a bar with its gap, the width of a letter, and the most letters of a name. */
const [ROW, LETTER, MAX_LETTERS] = [24, 6.6, 28]

/** The measures of a feature's importance, in XGBoost's words. */
const MEANINGS: Readonly<Record<string, string>> = {
  weight: 'How often a feature is split at, in all trees, as a share of all splits.',
  gain: 'How much a split at the feature lowers the loss, on average, as a share of all.',
  cover: 'How many samples a split at the feature concerns, on average, as a share of all.',
  total_gain: 'How much all splits at the feature together lower the loss, as a share of all.',
  average_shap:
    'SHAP: how far the feature moves a prediction on average over all samples, up (above 0) or down, in the units of the trees.',
  total_cover: 'How many samples all splits at the feature together concern, as a share of all.',
}

export interface BoostingChoice {
  measure: string
}

/** The measure and feature in a tensor's name: `gain` and `f1` in `feature_importance/gain/f1`. Null: the name has none. */
function featureOf(name: string): readonly [measure: string, feature: string] | null {
  const [, measure, feature] = IMPORTANCE.exec(name) ?? SHAP.exec(name) ?? []
  return measure === undefined ? null : [measure, feature!]
}

/** True if a trial has trees. */
export function isBoosted({ view }: ShownTrial): boolean {
  return view.tensors.some(({ name }) => featureOf(name) !== null || name === 'trees/ID')
}

export async function boostingView(given: readonly ShownTrial[], chosen: BoostingChoice): Promise<View> {
  let trials = given
  const measures = [
    ...new Set(trials.flatMap(({ view }) => view.tensors.flatMap(({ name }) => featureOf(name)?.[0] ?? []))),
  ]
  if (!measures.includes(chosen.measure)) chosen.measure = measures.includes('gain') ? 'gain' : (measures[0] ?? '')
  const parts = h('div', {})
  const meaning = h('p', { class: 'muted meaning' })
  const draw = async () => {
    meaning.textContent = MEANINGS[chosen.measure] ?? ''
    const all = await Promise.all(trials.map(trial => linesOf(trial, chosen.measure)))
    // Bars of two trials have one scale.
    const numbers = all.flatMap(lines => barsOf(lines).map(({ importance }) => importance)).filter(Number.isFinite)
    const domain = [Math.min(0, ...numbers), Math.max(0, ...numbers)] as const
    const drawn = trials.map(async (trial, i) => {
      const { tree = null, depth = null } = await treesParts(trial)
      const [bars, lines] = importance(all[i]!, chosen.measure, domain)
      return h(
        'article',
        {},
        trials.length > 1 ? h('h2', {}, badge(i), shown(trial.view.name)) : null,
        h('div', { class: 'cards' }, bars, h('div', {}, lines, depth)),
        tree,
      )
    })
    parts.replaceChildren(...(await Promise.all(drawn)))
  }
  await draw()
  const element = h(
    'section',
    {},
    h(
      'form',
      { class: 'controls', onsubmit: event => event.preventDefault() },
      measures.length === 0
        ? null
        : choice(
            'Importance by',
            measures.map(name => [name, name] as const),
            chosen.measure,
            measure => {
              chosen.measure = measure
              void draw()
            },
          ),
    ),
    meaning,
    parts,
  )
  const update = (newer: readonly ShownTrial[]) => {
    trials = newer
    return draw()
  }
  return { element, update }
}

/** The importance of each feature over the steps. */
async function linesOf(trial: ShownTrial, measure: string): Promise<Line[]> {
  const { view } = trial
  const column = await trial.column('mean', { kind: 'other' })
  if (column === null) return []
  return view.tensors.flatMap(({ name }, tensor) => {
    const [ofMeasure, feature] = featureOf(name) ?? []
    const [series] = trial.seriesOf[tensor]!
    if (ofMeasure !== measure || series === undefined) return []
    const points = view.steps.flatMap((x, step) =>
      column.has(step) && column.isThere(series, step) ? [{ x, y: column.at(series, step) }] : [],
    )
    return points.length === 0 ? [] : [{ name: shown(feature!), color: REST_COLOR, points }]
  })
}

interface Bar {
  readonly feature: string
  readonly importance: number
  readonly color: string
}

/** The features of the last step, the most important first; those that have lines have their colours. */
function barsOf(lines: readonly Line[]): readonly Bar[] {
  const last = Math.max(...lines.map(({ points }) => points.at(-1)!.x))
  return lines
    .filter(({ points }) => points.at(-1)!.x === last)
    .map(({ name, points }) => ({ feature: name, importance: points.at(-1)!.y }))
    .sort((a, b) => rank(b) - rank(a))
    .map((bar, i) => ({ ...bar, color: i < MAX_LINES ? lineColor(i) : REST_COLOR }))
}

/** The place of a feature: what is not finite comes first. */
function rank({ importance }: Omit<Bar, 'color'>): number {
  return Number.isFinite(importance) ? Math.abs(importance) : Number.MAX_VALUE
}

/** The features at the last step, and the first of them over the steps. @param domain of all bars */
function importance(
  all: readonly Line[],
  measure: string,
  domain: readonly [number, number],
): readonly [bars: HTMLElement | null, lines: HTMLElement | null] {
  const bars = barsOf(all)
  if (bars.length === 0) return [null, null]
  const drawn = bars.slice(0, MAX_FEATURES)
  const width = halfWidth()
  const letters = Math.min(Math.max(...drawn.map(({ feature }) => feature.length)), MAX_LETTERS, Math.floor(width / 20))
  const room = 8 + LETTER * Math.max(...drawn.map(({ importance }) => even(importance).length))
  // What is not finite has no bar: its text stands at 0.
  const hasBar = ({ importance }: Bar) => Number.isFinite(importance)
  const number = {
    x: (bar: Bar) => (hasBar(bar) ? bar.importance : 0),
    y: 'feature',
    text: ({ importance }: Bar) => even(importance),
  }
  const svg = Plot.plot({
    width,
    height: 60 + drawn.length * ROW,
    marginLeft: 16 + LETTER * letters,
    marginBottom: 40,
    style: STYLE,
    x: {
      label: measure,
      labelOffset: 36,
      ticks: Math.max(2, Math.round(width / 100) - 1),
      domain,
      insetLeft: domain[0] < 0 ? room + 8 : 0,
      insetRight: room,
    },
    y: {
      label: null,
      domain: drawn.map(({ feature }) => feature),
      tickFormat: (name: string) => shortened(name, letters),
      tickSize: 0,
    },
    marks: [
      Plot.barX(drawn.filter(hasBar), {
        x: 'importance',
        y: 'feature',
        fill: 'color',
        fillOpacity: ({ color }: Bar) => (color === REST_COLOR ? 0.55 : 1),
        title: ({ feature, importance }: Bar) => `${feature}: ${short(importance)}`,
      }),
      Plot.text(
        drawn.filter(({ importance }) => !(importance < 0)),
        { ...number, dx: 4, textAnchor: 'start' },
      ),
      Plot.text(
        drawn.filter(({ importance }) => importance < 0),
        { ...number, dx: -4, textAnchor: 'end' },
      ),
      Plot.ruleX([0]),
    ],
  })
  const step = Math.max(...all.map(({ points }) => points.at(-1)!.x))
  const label = `The importance of features by ${measure} at step ${step}: ${drawn
    .slice(0, 3)
    .map(({ feature, importance }) => `${feature} ${short(importance)}`)
    .join(', ')}`
  describe(svg, label)
  const lines = bars.slice(0, MAX_LINES).flatMap(({ feature, color }) => {
    const line = all.find(({ name }) => name === feature)
    return line === undefined ? [] : [{ ...line, color }]
  })
  const some = drawn.length < bars.length ? `: ${drawn.length} of ${bars.length} features` : ''
  const rows = () => [['feature', measure], ...bars.map(({ feature, importance }) => [feature, importance])]
  return [
    h(
      'div',
      { class: 'card' },
      h('h4', {}, `At step ${step}${some}`),
      svg as unknown as HTMLElement,
      actions(label, rows, svg),
    ),
    h(
      'div',
      { class: 'card' },
      h('h4', {}, bars.length > MAX_LINES ? 'The most important ones over the steps' : 'Over the steps'),
      lineChart({
        label: `The importance of ${lines.map(({ name }) => name).join(', ')} by ${measure} over the steps`,
        lines,
        width,
        height: 260,
      }),
    ),
  ]
}
