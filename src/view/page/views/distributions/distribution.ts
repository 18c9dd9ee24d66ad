/** The distribution of a tensor's elements over the steps: as ridges, and one after the other. */

import * as Plot from '@observablehq/plot'
import { button, h } from '../../dom.js'
import { badge } from '../../names.js'
import { actions, describe, fitting, halfWidth, STYLE } from '../../pictures/charts.js'
import { runColor } from '../../pictures/colors.js'
import {
  type Axes,
  type AxisName,
  axesOf,
  barsOf,
  barText,
  type Histogram,
  hasFinite,
  hasLost,
  LOST_WIDTH,
  lostBars,
} from '../../pictures/histogram.js'
import { fileName, saveGif, videoButton } from '../../pictures/raster.js'
import { lostText, stepper } from '../../stepper.js'
import { counted, short, shown } from '../../text.js'
import type { ShownTrial } from '../../trials.js'

const PLAY_MS = 160
/** The height of the highest ridge, in pixels. */
const LIFT = 64

export type DistributionShape = 'ridges' | 'heat map'

/** The choice in the view, kept while other views are shown. */
export interface DistributionChoice {
  shape: DistributionShape
  range: 'own' | 'step'
  axis: AxisName
}

export interface DistributionOptions {
  readonly chosen: DistributionChoice
  readonly trial: ShownTrial
  /** Indices of the steps, ascending. */
  readonly steps: readonly number[]
  readonly histograms: readonly Histogram[]
  /** The index of the first step, if no step has been chosen. */
  readonly first: number
  /** The height of all ridges, in pixels. */
  readonly height: number
  /** The axes of all steps, workers and trials. */
  readonly axes: Axes
  /** The trial's index of two; null for a single trial. */
  readonly place: number | null
  readonly tensor: string
  readonly worker: string | null
}

/** A histogram and the number of its step. */
interface Row {
  readonly step: number
  readonly histogram: Histogram
}

export function distribution(options: DistributionOptions): HTMLElement {
  const { trial, steps, histograms, first, axes, chosen, place, tensor, worker } = options
  const rows: Row[] = steps.map((step, i) => ({ step: trial.view.steps[step]!, histogram: histograms[i]! }))
  const who = [place === null ? '' : ` in ${'AB'[place]}`, worker === null ? '' : ` of ${shown(worker)}`].join('')
  const isOne = rows.length === 1
  const at = isOne
    ? `at step ${rows[0]!.step}.`
    : `at ${rows.length} steps, from step ${rows[0]!.step} at the back to step ${rows.at(-1)!.step} in front.`
  const label = `The distribution of the elements of ${shown(tensor)}${who} ${at}`
  const element = h('div', { class: 'one' })
  const text = (i: number) => {
    const lost = histograms[i]!.lost.reduce((sum, some) => sum + some, 0)
    return `step ${trial.stepText(steps[i]!)}${lost === 0 ? '' : `: ${counted(lost, 'element')} NaN or infinite`}`
  }
  const axesAt = (i: number) => (chosen.range === 'own' ? axes : axesOf([histograms[i]!], chosen.axis))
  const withLost = hasLost(histograms)
  const picture = (i: number, title?: string) => bars(rows[i]!, axesAt(i), { place, withLost, title, label: text(i) })
  const show = (i: number) => element.replaceChildren(picture(i))
  const frames = function* () {
    for (const i of rows.keys()) yield picture(i, `${shown(tensor)}${who}, ${text(i)}`)
  }
  const numbers = () => [
    ['step', 'from', 'to', 'elements', 'of'],
    ...rows.flatMap(({ step, histogram }) =>
      barsOf(histogram, axes).map(({ low, high, share }) => [
        step,
        low,
        high,
        Math.round(share * histogram.count),
        histogram.count,
      ]),
    ),
  ]
  const numbersOfSteps = rows.map(({ step }) => step)
  const lost = lostText(numbersOfSteps, i => hasFinite(histograms[i]!), 'NaN or infinite')
  const name = fileName(`distribution of ${tensor}${who}`)
  const whole = () => {
    const svg = chosen.shape === 'ridges' ? ridges(rows, axes, options, label) : heatMap(rows, axes, place, label)
    return h('div', {}, h('p', { class: 'heading' }, 'All steps'), svg, actions(label, numbers, svg))
  }
  const player = stepper({ steps: numbersOfSteps, text, show, first: steps.indexOf(first) })
  return h(
    'figure',
    { class: 'card distribution' },
    place === null && worker === null
      ? null
      : h('figcaption', {}, place === null ? null : badge(place), worker === null ? null : shown(worker)),
    isOne ? null : whole(),
    h(
      'div',
      {},
      player,
      lost === '' ? null : h('p', { class: 'note' }, lost),
      element,
      isOne
        ? actions(label, numbers, element.firstElementChild)
        : h(
            'p',
            { class: 'actions' },
            button('GIF', () => void saveGif(frames(), name, PLAY_MS), {
              'aria-label': `Save the animation as GIF: ${label}`,
            }),
            videoButton(frames, name, PLAY_MS),
          ),
    ),
  )
}

/** The width of a picture: two lie side by side, on a wide page those of A beside those of B. */
function width(place: number | null): number {
  return place === null ? halfWidth() - 20 : fitting(Math.min(620, halfWidth()))
}

/** A pixel, as an approximate fraction of an axis. */
const THIN = 1 / 300

/** The values from left to right. */
function valueAxis({ name, constant, from, to }: Axes, length: number) {
  const most = Math.min(5, Math.max(3, Math.floor(length / 70)))
  return {
    type: name,
    ...(name === 'symlog' && { constant }),
    label: 'value',
    labelOffset: 36,
    domain: [from, to],
    tickFormat: short,
    ticks: name === 'symlog' ? symlogTicks(from, to, constant, most) : most,
  }
}

/** Ticks of a symmetric logarithm: 0, and some powers of ten on both sides. */
function symlogTicks(from: number, to: number, constant: number, most: number): number[] {
  const powers = [Math.ceil(Math.log10(constant)) + 1, Math.floor(Math.log10(Math.max(Math.abs(from), Math.abs(to))))]
  const every = Math.max(1, most < 5 ? powers[1]! - powers[0]! + 1 : Math.ceil((powers[1]! - powers[0]!) / 2))
  const sizes: number[] = []
  for (let power = powers[1]!; power >= powers[0]!; power -= every) sizes.push(10 ** power)
  return [...sizes.map(size => -size), 0, ...sizes].filter(value => value >= from && value <= to)
}

/** The height in which the ridges of so many steps can be told apart. */
export function heightOf(steps: number): number {
  return steps * Math.max(7, Math.min(22, 380 / steps))
}

function ridges(
  rows: readonly Row[],
  axes: Axes,
  { place, height }: Pick<DistributionOptions, 'place' | 'height'>,
  label: string,
): SVGElement {
  const gap = height / rows.length
  const color = runColor(place)
  const areas = rows.flatMap(({ step, histogram }, i) =>
    barsOf(histogram, axes).flatMap(({ low, high, height }) =>
      [low, high].map(x => ({ step, x, base: i * gap, top: i * gap - height * LIFT })),
    ),
  )
  const everyStep = Math.max(1, Math.ceil(14 / gap))
  const svg = Plot.plot({
    width: width(place),
    height: height + LIFT + 48,
    marginLeft: 56,
    marginTop: LIFT + 8,
    marginRight: 24,
    marginBottom: 40,
    style: STYLE,
    x: valueAxis(axes, width(place) - 80),
    y: { axis: null, domain: [height, 0] },
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

/** A column of the picture for each step, a box for each bin. */
function heatMap(rows: readonly Row[], axes: Axes, place: number | null, label: string): SVGElement {
  const cells = rows.flatMap(({ step, histogram }, i) =>
    barsOf(histogram, axes).map(bar => ({
      x1: i,
      x2: i + 1,
      y1: bar.low,
      y2: bar.high,
      height: Math.min(1, bar.height),
      title: `step ${step}, ${barText(bar, histogram)}`,
    })),
  )
  const every = Math.max(1, Math.ceil(rows.length / 8))
  const svg = Plot.plot({
    width: width(place),
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
    y: valueAxis(axes, 380),
    marks: [Plot.rect(cells, { x1: 'x1', x2: 'x2', y1: 'y1', y2: 'y2', fill: 'height', title: 'title' })],
  })
  describe(svg, label)
  return svg as SVGElement
}

/** A histogram of bars. @param title drawn in the picture if it stands alone */
function bars(
  { histogram }: Row,
  axes: Axes,
  {
    place,
    withLost,
    title,
    label,
  }: {
    readonly place: number | null
    readonly withLost: boolean
    readonly title: string | undefined
    readonly label: string
  },
): SVGElement {
  const all = barsOf(histogram, axes)
  // The bars' unit is the share of elements per unit of value; a logarithmic axis has no such unit.
  const unit = axes.name === 'linear' ? axes.most / (axes.to - axes.from) : Number.NaN
  const hasUnit = Number.isFinite(unit) && unit > 0
  const heightOf = ({ height }: { height: number }) => height * (hasUnit ? unit : 1)
  const [wide, high, bottom] = [width(place), 300, 40]
  const svg = Plot.plot({
    width: wide,
    height: high,
    marginLeft: 64,
    marginRight: withLost ? 24 + LOST_WIDTH : 24,
    marginBottom: bottom,
    style: STYLE,
    x: valueAxis(axes, wide - 88 - (withLost ? LOST_WIDTH : 0)),
    y: {
      // Room above the highest bar, so that it isn’t taken for one that is cut.
      domain: [0, 1.05 * (hasUnit ? unit : 1)],
      label: hasUnit ? 'share of elements per unit' : 'density on this axis',
      ticks: hasUnit ? 4 : [],
      tickFormat: short,
    },
    marks: [
      Plot.rectY(all, {
        x1: 'low',
        x2: 'high',
        y: heightOf,
        fill: runColor(place),
        insetLeft: 0.25,
        insetRight: 0.25,
      }),
      // A bar that is too thin to be visible gets a line.
      Plot.ruleX(
        all.filter(({ low, high, share }) => share > 0 && axes.place(high) - axes.place(low) < THIN),
        { x: 'low', y: heightOf, stroke: runColor(place), strokeWidth: 2 },
      ),
      Plot.ruleY([0]),
      Plot.tip(
        all,
        Plot.pointerX({
          x: ({ low, high }: { low: number; high: number }) => low / 2 + high / 2,
          y: heightOf,
          title: (bar: (typeof all)[number]) => barText(bar, histogram).replace(': ', '\n'),
        }),
      ),
      ...(title === undefined
        ? []
        : [Plot.text([title], { frameAnchor: 'top-left', dx: 4, dy: -14, fontSize: 14, lineAnchor: 'top' })]),
    ],
  })
  if (withLost) {
    const group = lostBars(histogram, high - bottom - 20, '')
    group.setAttribute('transform', `translate(${wide - LOST_WIDTH - 8} 20)`)
    svg.append(group)
  }
  describe(svg, `The distribution at ${label}.`)
  return svg as SVGElement
}
