/** XGBoost's trees: the features at which they split, and their shape. */

import * as Plot from '@observablehq/plot'
import { choice, h } from '../dom.js'
import { badge } from '../names.js'
import { actions, describe, halfWidth, type Line, lineChart } from '../pictures/charts.js'
import { lineColor } from '../pictures/colors.js'
import { short, shown } from '../text.js'
import type { ShownTrial } from '../trials.js'
import { treesPart } from './trees.js'
import type { View } from './view.js'

const IMPORTANCE = /^feature_importance\/([^/]+)\/(.+)$/
const SHAP = /^(average_shap)\/(.+)$/
const MAX_FEATURES = 20
const MAX_LINES = 6

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
    const drawn = trials.map(async (trial, i) =>
      h(
        'article',
        {},
        trials.length > 1 ? h('h2', {}, badge(i), shown(trial.view.name)) : null,
        ...(await importance(trial, chosen.measure)),
        await treesPart(trial),
      ),
    )
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

async function linesOf(trial: ShownTrial, pattern: (name: string) => string | null): Promise<Line[]> {
  const { view } = trial
  const column = await trial.column('mean', { kind: 'other' })
  if (column === null) return []
  return view.tensors.flatMap(({ name }, tensor) => {
    const text = pattern(name)
    const [series] = trial.seriesOf[tensor]!
    if (text === null || series === undefined) return []
    const points = view.steps.flatMap((x, step) =>
      column.has(step) && column.isThere(series, step) ? [{ x, y: column.at(series, step) }] : [],
    )
    return points.length === 0 ? [] : [{ name: shown(text), color: lineColor(0), isDashed: false, points }]
  })
}

async function importance(trial: ShownTrial, measure: string): Promise<HTMLElement[]> {
  const all = await linesOf(trial, name => {
    const [measureName, feature] = featureOf(name) ?? []
    return measureName === measure ? feature! : null
  })
  if (all.length === 0) return []
  const lastStep = Math.max(...all.map(({ points }) => points.at(-1)!.x))
  const last = all
    .filter(({ points }) => points.at(-1)!.x === lastStep)
    .map(({ name, points }) => ({ feature: name, importance: points.at(-1)!.y }))
    .sort((a, b) => Math.abs(b.importance) - Math.abs(a.importance))
  const shownBars = last.slice(0, MAX_FEATURES)
  const svg = Plot.plot({
    width: halfWidth(),
    height: 60 + shownBars.length * 18,
    marginLeft: 110,
    marginBottom: 40,
    style: { background: 'transparent', fontFamily: 'inherit', fontSize: '12px' },
    x: { label: measure, labelOffset: 36, tickFormat: short, ticks: 5 },
    y: { label: null, domain: shownBars.map(({ feature }) => feature) },
    marks: [
      Plot.barX(shownBars, {
        x: 'importance',
        y: 'feature',
        fill: lineColor(0),
        title: ({ feature, importance }: { feature: string; importance: number }) => `${feature}: ${short(importance)}`,
      }),
      Plot.ruleX([0]),
    ],
  })
  const label = `The importance of features by ${measure} at step ${lastStep}: ${shownBars
    .slice(0, 3)
    .map(({ feature, importance }) => `${feature} ${short(importance)}`)
    .join(', ')}`
  describe(svg, label)
  const most = new Set(last.slice(0, MAX_LINES).map(({ feature }) => feature))
  const lines = all.filter(({ name }) => most.has(name)).map((line, i) => ({ ...line, color: lineColor(i) }))
  const rows = () => [['feature', measure], ...last.map(({ feature, importance }) => [feature, importance])]
  const rest = last.length - shownBars.length
  return [
    h(
      'div',
      { class: 'cards' },
      h(
        'div',
        { class: 'card' },
        h('h4', {}, `At step ${lastStep}`),
        svg as unknown as HTMLElement,
        actions(label, rows, svg),
        rest > 0 ? h('p', { class: 'muted' }, `and ${rest} more, in the CSV`) : null,
      ),
      h(
        'div',
        { class: 'card' },
        h('h4', {}, 'Over the steps'),
        lineChart({
          label: `The importance of ${[...most].join(', ')} by ${measure} over the steps`,
          lines,
          width: halfWidth(),
          height: 300,
          yLabel: measure,
        }),
      ),
    ),
  ]
}
