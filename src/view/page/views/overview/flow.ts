/** The flow of gradients: their size layer by layer at one step, and how far weights move. */

import * as Plot from '@observablehq/plot'
import type { LimitView } from '../../../data.js'
import { choice, h } from '../../dom.js'
import type { OpenTensor } from '../../names.js'
import { actions, describe, legend, NOT_FINITE, STYLE } from '../../pictures/charts.js'
import { lineColor, runColor } from '../../pictures/colors.js'
import { areSeen, firstShown, lostText, stepper } from '../../stepper.js'
import { labelsOf, short, shortened, shown } from '../../text.js'
import type { Column, ShownTrial } from '../../trials.js'

/** The statistics of a layer that can be drawn. */
const FLOWS = {
  gradients: {
    kind: 'gradients',
    statistic: 'abs_mean',
    text: 'Mean |gradient| of each layer',
    axis: 'mean |gradient|',
  },
  updates: {
    kind: 'weights',
    statistic: 'update_ratio',
    text: 'Update of each weight, ‖W − W₀‖ / ‖W₀‖',
    axis: '‖W − W₀‖ / ‖W₀‖',
  },
} as const

type FlowName = keyof typeof FLOWS

/** The choice in the picture, kept while others are shown. */
export interface FlowChoice {
  flow: FlowName
}

/** The numbers of the layers of a trial, in the order of execution. */
interface Flow {
  readonly trial: ShownTrial
  /** The trial's index of two. */
  readonly place: number
  readonly column: Column
  /** Indices of tensors. */
  readonly tensors: readonly number[]
  /** The indices of the steps with a number. */
  readonly steps: readonly number[]
}

/** A layer at a step: the mean over the workers, and their range. */
interface Point {
  readonly layer: string
  readonly mean: number
  readonly low: number
  readonly high: number
  readonly workers: number
}

/** Draws the flow, as wide as given. */
export type Flowing = (width: number) => HTMLElement

/** The flow of gradients of the trials. Null: they have none. */
export async function gradientFlow(
  trials: readonly ShownTrial[],
  chosen: FlowChoice,
  open: OpenTensor,
): Promise<Flowing | null> {
  const [gradients, updates] = await Promise.all([flowsOf(trials, 'gradients'), flowsOf(trials, 'updates')])
  const all = { gradients, updates }
  const names = (['gradients', 'updates'] as const).filter(name => all[name].length > 0)
  if (names.length === 0) return null
  return width => articleOf(names, chosen, name => strip(all[name], name, { isPair: trials.length > 1, open, width }))
}

function articleOf(
  names: readonly FlowName[],
  chosen: FlowChoice,
  stripOf: (name: FlowName) => HTMLElement,
): HTMLElement {
  const picture = h('div', {})
  const draw = (name: FlowName) => {
    chosen.flow = name
    picture.replaceChildren(stripOf(name))
  }
  draw(names.includes(chosen.flow) ? chosen.flow : names[0]!)
  const controls =
    names.length === 1
      ? null
      : choice(
          'Show',
          [
            ['gradients', 'Gradients'],
            ['updates', 'Updates'],
          ],
          chosen.flow,
          draw,
        )
  return h(
    'article',
    { class: 'flow' },
    h('h2', {}, names[0] === 'gradients' ? 'Gradient flow' : 'Updates'),
    h('div', { class: 'card' }, controls && h('div', { class: 'controls' }, controls), picture),
  )
}

async function flowsOf(trials: readonly ShownTrial[], name: FlowName): Promise<readonly Flow[]> {
  const { kind, statistic } = FLOWS[name]
  const flows: Flow[] = []
  for (const [place, trial] of trials.entries()) {
    const tensors = trial.inOrder.filter(i => trial.view.tensors[i]!.kind === kind)
    const column = tensors.length === 0 ? null : await trial.column(statistic, { kind })
    if (column === null) continue
    const isTrained = trial.view.mode.some(mode => trial.view.modes[mode] === 'TRAIN')
    const steps = [...trial.view.steps.keys()].filter(
      step =>
        column.has(step) &&
        (!isTrained || trial.view.modes[trial.view.mode[step]!] === 'TRAIN') &&
        tensors.some(tensor => trial.seriesOf[tensor]!.some(series => column.isThere(series, step))),
    )
    if (steps.length > 0) flows.push({ trial, place, column, tensors, steps })
  }
  return flows
}

function pointsOf({ trial, column, tensors }: Flow, step: number): Point[] {
  return tensors.flatMap(tensor => {
    const numbers = trial.seriesOf[tensor]!.filter(series => column.isThere(series, step)).map(series =>
      column.at(series, step),
    )
    if (numbers.length === 0) return []
    const mean = numbers.reduce((sum, x) => sum + x, 0) / numbers.length
    const layer = trial.view.tensors[tensor]!.name
    return [{ layer, mean, low: Math.min(...numbers), high: Math.max(...numbers), workers: numbers.length }]
  })
}

function strip(
  flows: readonly Flow[],
  name: FlowName,
  { isPair, open, width }: { readonly isPair: boolean; readonly open: OpenTensor; readonly width: number },
): HTMLElement {
  const layers = [
    ...new Set(flows.flatMap(({ trial, tensors }) => tensors.map(tensor => trial.view.tensors[tensor]!.name))),
  ]
  const numbers = flows
    .flatMap(flow => flow.steps.flatMap(step => pointsOf(flow, step).flatMap(({ low, high }) => [low, high])))
    .filter(x => Number.isFinite(x) && x > 0)
  const least = numbers.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY)
  const most = numbers.reduce((a, b) => Math.max(a, b), 0)
  const limits = name === 'gradients' ? (flows[0]?.trial.view.limits ?? []) : []
  const near = limits.filter(({ below }) => below >= least / NEAR && below <= most * NEAR)
  const domain = [Math.min(least, ...near.map(({ below }) => below)), Math.max(most, ...near.map(({ below }) => below))]
  const steps = [...new Set(flows.flatMap(({ trial, steps }) => steps.map(step => trial.view.steps[step]!)))].sort(
    (a, b) => a - b,
  )
  const picture = h('div', {})
  const note = h('p', { class: 'note', 'aria-live': 'polite' })
  const isSeen = (flow: Flow, step: number) =>
    flow.steps.includes(step) && areSeen(pointsOf(flow, step).map(({ mean }) => mean))
  const first = firstShown(steps, i => flows.some(flow => isSeen(flow, flow.trial.view.steps.indexOf(steps[i]!))))
  const lost = flows.map(flow => {
    const numbers = flow.steps.map(step => flow.trial.view.steps[step]!)
    return lostText(numbers, i => isSeen(flow, flow.steps[i]!), 'NaN, infinite or 0', isPair ? flow.place : null)
  })
  const show = (i: number) => {
    // Each trial has its own last step.
    const ats = flows.map(flow => flow.steps.findLast(step => flow.trial.view.steps[step]! <= steps[i]!))
    const shownPoints = flows.map((flow, i) => (ats[i] === undefined ? [] : pointsOf(flow, ats[i])))
    const whose = flows.map(({ trial, place }, i) => ({
      name: `${'AB'[place]} ${shown(trial.view.name)}, ${ats[i] === undefined ? 'no step yet' : `step ${trial.stepText(ats[i])}`}`,
      color: isPair ? runColor(place) : lineColor(0),
      points: shownPoints[i]!,
    }))
    const ranges = whose.map(({ name, points }) => `${isPair ? `${name} ` : ''}${rangeText(points)}`)
    const label = `${FLOWS[name].text} at step ${steps[i]}, in the order of execution: ${ranges.join('; ')}.`
    note.textContent = [...sayPoints(limits, near, shownPoints.flat()), ...lost].filter(Boolean).join(' ')
    const svg = plot(whose, { layers, domain, limits: near, label, axis: FLOWS[name].axis, width })
    svg.addEventListener('click', () => {
      const { value } = svg as unknown as { readonly value: Point | null }
      if (value !== null) open(value.layer)
    })
    const rows = () => [
      ['trial', 'step', 'tensor', FLOWS[name].statistic, 'least worker', 'greatest worker'],
      ...flows.flatMap(({ trial }, i) =>
        shownPoints[i]!.map(({ layer, mean, low, high }) => [
          trial.view.name,
          trial.view.steps[ats[i]!]!,
          layer,
          mean,
          low,
          high,
        ]),
      ),
    ]
    const lines = isPair ? whose : []
    picture.replaceChildren(svg, ...(isPair ? [legend(lines)] : []), actions(label, rows, svg, [], lines))
  }
  const text = (i: number) => {
    const { trial } = flows[0]!
    const at = trial.view.steps.indexOf(steps[i]!)
    return `step ${at < 0 ? steps[i] : trial.stepText(at)}`
  }
  return h('div', {}, stepper({ steps, text, show, first }), picture, note)
}

/** The factor beyond the drawn values from which on a limit is written instead of drawn. */
const NEAR = 1000
const MAX_LABELS = 48

function rangeText(points: readonly Point[]): string {
  const finite = points.filter(({ mean }) => Number.isFinite(mean)).sort((a, b) => a.mean - b.mean)
  const [least, most] = [finite[0], finite.at(-1)]
  if (least === undefined || most === undefined) return 'none is finite'
  return `from ${short(least.mean)} in ${shown(least.layer)} to ${short(most.mean)} in ${shown(most.layer)}`
}

function sayPoints(
  limits: readonly LimitView[],
  near: readonly LimitView[],
  points: readonly Point[],
): readonly string[] {
  const said = limits.map(limit => {
    const { rule, below, share } = limit
    const shareText = share === null ? '' : `, and below ${short(share)} of the largest`
    return `${rule} fires below ${short(below)}${shareText}${near.includes(limit) ? '' : ', which lies far from all of these'}.`
  })
  const isNone = ({ mean }: Point) => !Number.isFinite(mean)
  const lost = points.filter(isNone).length
  const zeros = points.filter(({ mean }) => mean === 0).length
  return [
    ...said,
    ...(zeros > 0 ? [`${zeros} of ${points.length} are exactly 0 (○ at the foot).`] : []),
    ...(lost > 0 ? [`${lost} of ${points.length} are NaN or infinite (× above the axis).`] : []),
  ]
}

function plot(
  all: readonly { readonly color: string; readonly points: readonly Point[] }[],
  {
    layers,
    domain,
    limits,
    label,
    axis,
    width,
  }: {
    readonly layers: readonly string[]
    readonly domain: readonly number[]
    readonly limits: readonly LimitView[]
    readonly label: string
    /** The name of the numbers. */
    readonly axis: string
    readonly width: number
  },
): SVGElement {
  const every = Math.ceil(layers.length / Math.min(MAX_LABELS, (width - 100) / 13))
  const texts = labelsOf(layers, 20)
  // They stand aslant.
  const textHeight = 24 + 5.5 * Math.max(0, ...texts.map(({ length }) => length))
  const isDrawn = (x: number) => Number.isFinite(x) && x > 0
  const log = domain[0]! > 0 && Number.isFinite(domain[0]!)
  const svg = Plot.plot({
    width,
    height: 232 + textHeight,
    marginLeft: 76,
    marginBottom: textHeight,
    marginTop: 40,
    style: STYLE,
    x: {
      type: 'point',
      domain: layers,
      label: null,
      tickRotate: -50,
      tickFormat: (_: string, i: number) => (i % every === 0 ? texts[i]! : ''),
      tickSize: 3,
    },
    y: log
      ? {
          type: 'log',
          domain: [...domain],
          grid: true,
          tickFormat: short,
          ticks: decades(domain),
          label: axis,
          nice: true,
        }
      : { label: axis, domain: [0, 1], ticks: [] },
    marks: [
      ...limits.flatMap(({ rule, below }) => [
        Plot.ruleY([below], { stroke: 'var(--bad)', strokeDasharray: '4 3' }),
        Plot.text([`${rule}: below ${short(below)}`], {
          y: [below],
          frameAnchor: 'right',
          dy: -7,
          textAnchor: 'end',
          fill: 'var(--bad)',
        }),
      ]),
      ...all.flatMap(({ points, color }) => [
        ...(points.some(({ workers }) => workers > 1)
          ? [
              Plot.areaY(
                points.filter(({ low, high }) => isDrawn(low) && isDrawn(high)),
                { x: 'layer', y1: 'low', y2: 'high', fill: color, fillOpacity: 0.22 },
              ),
            ]
          : []),
        Plot.lineY(points, {
          x: 'layer',
          y: ({ mean }: Point) => (isDrawn(mean) ? mean : Number.NaN),
          stroke: color,
          strokeWidth: 1.75,
        }),
        Plot.dot(
          points.filter(({ mean }) => isDrawn(mean)),
          { x: 'layer', y: 'mean', fill: color, r: 3 },
        ),
        Plot.dot(
          points.filter(({ mean }) => mean === 0),
          { x: 'layer', frameAnchor: 'bottom', stroke: color, r: 3.5 },
        ),
        Plot.dot(
          points.filter(({ mean }) => !Number.isFinite(mean)),
          {
            x: 'layer',
            frameAnchor: 'top',
            dy: -10,
            symbol: 'times',
            stroke: NOT_FINITE,
            r: 4,
          },
        ),
      ]),
      Plot.tip(
        all.flatMap(({ points }) => points).filter(({ mean }) => isDrawn(mean)),
        Plot.pointerX({ x: 'layer', y: 'mean', title: tipOf }),
      ),
    ],
  })
  describe(svg, label)
  return svg as SVGElement
}

/** Some powers of ten. */
function decades([least, most]: readonly number[]): number[] {
  const [from, to] = [Math.floor(Math.log10(least!)), Math.ceil(Math.log10(most!))]
  const every = Math.ceil((to - from) / 7)
  return Array.from({ length: to - from + 1 }, (_, i) => 10 ** (from + i)).filter((_, i) => i % every === 0)
}

function tipOf({ layer, mean, low, high, workers }: Point): string {
  const range = workers > 1 ? `\n${workers} workers: ${short(low)} to ${short(high)}` : ''
  return `${shortened(layer, 60)}\n${short(mean)}${range}`
}
