/** The distribution of a tensor's elements over the steps: as ridges, and one after the other. */

import * as Plot from '@observablehq/plot'
import type { RidgeView } from '../../data.js'
import { button, choice, h } from '../dom.js'
import { badge } from '../names.js'
import { actions, describe, fitting } from '../pictures/charts.js'
import { runColor } from '../pictures/colors.js'
import { saveGif } from '../pictures/raster.js'
import { stepper } from '../stepper.js'
import { counted, short, shown } from '../text.js'
import type { ShownTrial } from '../trials.js'

const PLAY_MS = 160
const WIDTH = 500
/** The height of the highest ridge. */
const LIFT = 64

interface Row {
  readonly step: number
  /** The share of each bin, from 0 to 1. */
  readonly shares: readonly number[]
}

export type DistributionShape = 'ridges' | 'heat map'

export interface DistributionOptions {
  /** It outlives the view. */
  readonly chosen: { shape: DistributionShape }
  readonly trial: ShownTrial
  readonly ridge: RidgeView
  readonly shares: Uint8Array
  /** The height of its highest bin, from 0 to 1, relative to other workers and trials. */
  readonly height: number
  /** The trial's index of two; null if there is one. */
  readonly place: number | null
  /** The drawn range of values: the same for all trials. */
  readonly domain: readonly [from: number, to: number]
  readonly tensor: string
  readonly worker: string | null
}

export function distribution(options: DistributionOptions): HTMLElement {
  const { trial, ridge, shares, height, place, tensor, worker } = options
  const { steps, low, high, bins } = ridge
  const rows: Row[] = steps.map((step, i) => ({
    step: trial.view.steps[step]!,
    shares: Array.from(shares.subarray(i * bins, (i + 1) * bins), share => (share / 255) * height),
  }))
  const label = `The distribution of the elements of ${shown(tensor)} at ${rows.length} steps, from step ${rows[0]!.step} at the back to step ${rows.at(-1)!.step} in front.`
  const whole = h('div', {})
  const draw = (shape: DistributionShape) => {
    options.chosen.shape = shape
    const picture = shape === 'ridges' ? ridges(rows, options, label) : heatMap(rows, options, label)
    whole.replaceChildren(picture, actions(label, numbers, picture))
  }
  const one = h('div', { class: 'one' })
  const text = (i: number) => {
    const lost = ridge.lost[i]!
    const without = lost === 0 ? '' : `: ${counted(lost, 'element')} NaN or infinite`
    return `step ${trial.stepText(steps[i]!)}${without}`
  }
  const show = (i: number) => one.replaceChildren(bars(rows[i]!, options, `The distribution at ${text(i)}.`))
  const frames = function* () {
    for (const [i, row] of rows.entries()) yield bars(row, options, '', text(i))
  }
  const width = (high - low) / bins
  const numbers = () => [
    ['step', 'from', 'to', 'share of the largest bin'],
    ...rows.flatMap(({ step, shares }) =>
      shares.map((share, bin) => [step, low + bin * width, low + (bin + 1) * width, share]),
    ),
  ]
  draw(options.chosen.shape)
  return h(
    'figure',
    { class: 'card distribution' },
    place === null && worker === null
      ? null
      : h('figcaption', {}, place === null ? null : badge(place), worker === null ? null : shown(worker)),
    h(
      'div',
      {},
      choice(
        'All steps as',
        [
          ['ridges', 'Ridges'],
          ['heat map', 'Heat map'],
        ],
        options.chosen.shape,
        draw,
      ),
      whole,
    ),
    h(
      'div',
      {},
      stepper({ steps: rows.map(({ step }) => step), text, show, first: 0 }),
      one,
      h(
        'p',
        { class: 'actions' },
        button('GIF', () => void saveGif(frames(), 'distribution.gif', PLAY_MS), {
          'aria-label': `Save the animation as GIF: ${label}`,
        }),
      ),
    ),
  )
}

const STYLE = { background: 'transparent', fontFamily: 'inherit', fontSize: '12px' }

function ridges(rows: readonly Row[], { ridge, place, domain }: DistributionOptions, label: string): SVGElement {
  const gap = Math.max(7, Math.min(22, 380 / rows.length))
  const { low, high, bins } = ridge
  const color = runColor(place)
  const x = (bin: number) => low + ((bin + 0.5) / bins) * (high - low)
  const areas = rows.flatMap(({ step, shares }, i) =>
    shares.map((share, bin) => ({ step, x: x(bin), base: i * gap, top: i * gap - share * LIFT })),
  )
  const everyStep = Math.max(1, Math.ceil(14 / gap))
  const svg = Plot.plot({
    width: fitting(WIDTH),
    height: rows.length * gap + LIFT + 48,
    marginLeft: 56,
    marginTop: LIFT + 8,
    marginRight: 24,
    marginBottom: 40,
    style: STYLE,
    x: { label: 'value', labelOffset: 36, domain, tickFormat: short, ticks: 5 },
    y: { axis: null, domain: [rows.length * gap, 0] },
    marks: [
      Plot.areaY(areas, { x: 'x', y1: 'base', y2: 'top', z: 'step', fill: color, fillOpacity: 0.5, sort: null }),
      Plot.line(areas, { x: 'x', y: 'top', z: 'step', stroke: color, strokeWidth: 1, sort: null }),
      Plot.text(
        rows.map(({ step }, i) => ({ step, y: i * gap })).filter((_, i) => i % everyStep === 0),
        { frameAnchor: 'left', dx: -10, textAnchor: 'end', y: 'y', text: 'step', fill: 'currentColor' },
      ),
    ],
  })
  describe(svg, label)
  return svg as SVGElement
}

/** A column for each step, a row for each bin. */
function heatMap(rows: readonly Row[], { ridge, domain }: DistributionOptions, label: string): SVGElement {
  const { low, high } = ridge
  const cells = rows.flatMap(({ step, shares }, i) =>
    shares.map((share, bin) => {
      const [y1, y2] = [bin, bin + 1].map(edge => low + (edge / shares.length) * (high - low))
      return { x1: i, x2: i + 1, y1: y1!, y2: y2!, share, step }
    }),
  )
  const every = Math.max(1, Math.ceil(rows.length / 8))
  const svg = Plot.plot({
    width: fitting(WIDTH),
    height: 380,
    marginLeft: 64,
    marginBottom: 40,
    style: STYLE,
    color: { scheme: 'viridis', domain: [0, 1] },
    x: {
      label: 'step',
      labelOffset: 36,
      domain: [0, rows.length],
      ticks: rows.flatMap((_, i) => (i % every === 0 ? [i + 0.5] : [])),
      tickFormat: (x: number) => String(rows[Math.floor(x)]?.step ?? ''),
    },
    y: { label: 'value', domain, tickFormat: short, ticks: 6 },
    marks: [
      Plot.rect(cells, {
        x1: 'x1',
        x2: 'x2',
        y1: 'y1',
        y2: 'y2',
        fill: 'share',
        title: ({ step, y1, y2, share }: (typeof cells)[number]) =>
          `step ${step}, ${short(y1)} to ${short(y2)}: ${short(share)} of the largest share`,
      }),
    ],
  })
  describe(svg, label)
  return svg as SVGElement
}

/** @param title stands in the picture, where nothing is around it */
function bars(
  { shares }: Row,
  { ridge, place, domain }: DistributionOptions,
  label: string,
  title?: string,
): SVGElement {
  const { low, high } = ridge
  const width = (high - low) / shares.length
  const svg = Plot.plot({
    width: fitting(WIDTH),
    height: 300,
    marginLeft: 56,
    marginRight: 24,
    marginBottom: 40,
    style: STYLE,
    x: { label: 'value', labelOffset: 36, domain, tickFormat: short, ticks: 5 },
    y: { axis: null, domain: [0, 1] },
    marks: [
      Plot.rectY(
        shares.map((share, i) => ({ x1: low + i * width, x2: low + (i + 1) * width, share })),
        { x1: 'x1', x2: 'x2', y: 'share', fill: runColor(place), inset: 0.25 },
      ),
      Plot.ruleY([0]),
      ...(title === undefined ? [] : [Plot.text([title], { frameAnchor: 'top-left', dx: 4, dy: 4, fontSize: 14 })]),
    ],
  })
  describe(svg, label)
  return svg as SVGElement
}
