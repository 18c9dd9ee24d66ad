/** How the elements of a tensor are distributed over the steps: all of them one behind the other, and one after the other. */

import * as Plot from '@observablehq/plot'
import type { RidgeView } from '../view/data.js'
import { actions, describe } from './charts.js'
import { lineColor } from './colors.js'
import { button, h } from './dom.js'
import { badge } from './overview.js'
import { short, shown } from './text.js'
import type { ShownTrial } from './trials.js'

const PLAY_MS = 160
const WIDTH = 500
/** How high the highest of them is. */
const LIFT = 64

interface Row {
  readonly step: number
  /** Of each bin, from 0 to 1. */
  readonly shares: readonly number[]
}

export interface DistributionOptions {
  readonly trial: ShownTrial
  readonly ridge: RidgeView
  readonly shares: Uint8Array
  /** Which of two trials it is; null: there is one. */
  readonly place: number | null
  /** What is drawn of the axis of values: the same for all trials. */
  readonly domain: readonly [from: number, to: number]
  readonly tensor: string
  readonly worker: string | null
}

export function distribution(options: DistributionOptions): HTMLElement {
  const { trial, ridge, shares, place, tensor, worker } = options
  const { steps, low, high, bins } = ridge
  const rows: Row[] = steps.map((step, i) => ({
    step: trial.view.steps[step]!,
    shares: Array.from(shares.subarray(i * bins, (i + 1) * bins), share => share / 255),
  }))
  const label = `The distribution of the elements of ${shown(tensor)} at ${rows.length} steps, from step ${rows[0]!.step} at the back to step ${rows.at(-1)!.step} in front.`
  const picture = ridges(rows, options, label)
  const one = h('div', { class: 'one' })
  const said = h('output', {})
  const show = (i: number) => {
    const at = `step ${trial.stepText(steps[i]!)}`
    said.textContent = at
    one.replaceChildren(bars(rows[i]!, options, `The distribution at ${at}.`))
  }
  show(0)
  const width = (high - low) / bins
  const numbers = () => [
    ['step', 'from', 'to', 'share of the largest bin'],
    ...rows.flatMap(({ step, shares }) =>
      shares.map((share, bin) => [step, low + bin * width, low + (bin + 1) * width, share]),
    ),
  ]
  return h(
    'figure',
    { class: 'card distribution' },
    place === null && worker === null
      ? null
      : h('figcaption', {}, place === null ? null : badge(place), worker === null ? null : shown(worker)),
    h('div', {}, picture, actions(label, numbers, picture)),
    h('div', {}, player(rows.length, show, said), one),
  )
}

/** A slider over the steps, and a button that moves it. */
function player(length: number, show: (i: number) => void, said: HTMLElement): HTMLElement {
  const slider = h('input', {
    type: 'range',
    min: 0,
    max: length - 1,
    value: 0,
    'aria-label': 'Step',
    oninput: () => show(Number(slider.value)),
  })
  let timer: ReturnType<typeof setInterval> | undefined
  const stop = () => {
    clearInterval(timer)
    timer = undefined
    play.textContent = 'Play'
  }
  const advance = () => {
    // The view may have been left.
    if (!slider.isConnected) return stop()
    slider.value = String((Number(slider.value) + 1) % length)
    show(Number(slider.value))
  }
  const play = button('Play', () => {
    if (timer !== undefined) return stop()
    play.textContent = 'Stop'
    timer = setInterval(advance, PLAY_MS)
  })
  return h('div', { class: 'player' }, play, slider, said)
}

const STYLE = { background: 'transparent', fontFamily: 'inherit', fontSize: '12px' }

function ridges(rows: readonly Row[], { ridge, place, domain }: DistributionOptions, label: string): SVGElement {
  const gap = Math.max(7, Math.min(22, 380 / rows.length))
  const { low, high, bins } = ridge
  const color = lineColor(place ?? 0)
  const x = (bin: number) => low + ((bin + 0.5) / bins) * (high - low)
  const areas = rows.flatMap(({ step, shares }, i) =>
    shares.map((share, bin) => ({ step, x: x(bin), base: i * gap, top: i * gap - share * LIFT })),
  )
  const everyStep = Math.max(1, Math.ceil(14 / gap))
  const svg = Plot.plot({
    width: WIDTH,
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

function bars({ shares }: Row, { ridge, place, domain }: DistributionOptions, label: string): SVGElement {
  const { low, high } = ridge
  const width = (high - low) / shares.length
  const svg = Plot.plot({
    width: WIDTH,
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
        { x1: 'x1', x2: 'x2', y: 'share', fill: lineColor(place ?? 0), inset: 0.25 },
      ),
      Plot.ruleY([0]),
    ],
  })
  describe(svg, label)
  return svg as SVGElement
}
