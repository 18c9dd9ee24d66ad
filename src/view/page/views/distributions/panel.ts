/** One tensor among many: its distribution at a step, of all workers and trials. */

import { h, svgElement } from '../../dom.js'
import {
  type Axes,
  type AxisName,
  axesOf,
  barsOf,
  barText,
  type Histogram,
  highest,
  LOST_WIDTH,
  lostBars,
  lostOf,
  outlineOf,
  type RangeName,
} from '../../pictures/histogram.js'
import { short, shown } from '../../text.js'
import type { Column, Ridge, ShownTrial } from '../../trials.js'

export interface PanelChoice {
  shape: 'outlines' | 'ridges'
  axes: RangeName
  axis: AxisName
  scales: 'same' | 'apart'
}

/** A tensor of a worker. */
export interface Outline {
  readonly trial: ShownTrial
  readonly place: number
  readonly ridge: Ridge
  readonly histograms: readonly Histogram[]
  readonly variance: Column | null
  readonly color: string
  /** `A`, a worker, or both; empty for the only outline. */
  readonly who: string
}

interface PanelOptions {
  readonly name: string
  /** Outlines that lie over each other, a group beside the other. */
  readonly groups: readonly (readonly Outline[])[]
  readonly chosen: PanelChoice
  /** The axes of all tensors. */
  readonly shared: Axes
  /** True to leave room for elements that are not finite. */
  readonly withLost: boolean
  readonly title: HTMLElement
}

export const PANEL_WIDTH = 220
const OUTLINE_HEIGHT = 84
/** The room above the highest bar, so that it isn’t taken for one that is cut. */
const TOP = 6
/** The largest number of ridges in a picture, and their distance. */
const MAX_RIDGES = 16
const GAP = 9
const AXIS = 16
/** The largest number of outlines whose numbers are written out. */
const MAX_SAID = 4

/** A step of an outline among others. */
interface RidgePath {
  readonly path: SVGPathElement
  readonly outline: Outline
  readonly index: number
  /** True if it stands out; null before it was drawn. */
  isChosen: boolean | null
}

export class Panel {
  readonly name: string
  readonly element: HTMLElement
  readonly pictures: readonly SVGSVGElement[]
  /** The height of a picture. */
  readonly height: number
  readonly #options: PanelOptions
  /** The numbers below the name or, of trials side by side, below each picture. */
  readonly #texts: readonly HTMLElement[]
  readonly #width: number
  /** The axes of each group over all steps. */
  readonly #axes: readonly Axes[]
  /** The ridges as they were drawn last, by group. */
  readonly #ridges: ({ readonly axes: Axes; readonly ridges: readonly RidgePath[] } | undefined)[] = []
  #said: readonly string[] = []
  #step = 0

  constructor(options: PanelOptions) {
    this.#options = options
    const { name, groups, chosen, title, withLost } = options
    this.name = name
    this.#width = PANEL_WIDTH - (withLost ? LOST_WIDTH + 6 : 0)
    this.#axes = groups.map(group => this.#axesOf(group.flatMap(({ histograms }) => histograms)))
    this.height = TOP + AXIS + (chosen.shape === 'ridges' ? OUTLINE_HEIGHT + MAX_RIDGES * GAP : OUTLINE_HEIGHT)
    this.pictures = groups.map((group, i) => {
      const svg = svgElement('svg', { viewBox: `0 0 ${PANEL_WIDTH} ${this.height}`, role: 'img' })
      for (const event of ['pointermove', 'pointerdown'] as const) {
        svg.addEventListener(event, ({ clientX }) => this.#tell(svg, group, i, clientX))
      }
      // What a finger has touched stays when it is lifted.
      svg.addEventListener('pointerleave', ({ pointerType }) => pointerType !== 'touch' && this.#say(i, this.#said[i]!))
      return svg
    })
    this.#texts = groups.map(() => h('p', { class: 'muted' }))
    const pictures = this.pictures.map((svg, i) => (groups.length === 1 ? svg : h('div', {}, svg, this.#texts[i]!)))
    const text = groups.length === 1 ? this.#texts[0]! : null
    this.element = h('div', { class: 'panel' }, title, text, h('div', { class: 'sides' }, ...pictures))
  }

  /** The numbers of the visible outlines. */
  get said(): string {
    return this.#said.join('; ')
  }

  /** Shows the distributions at a step; those of a tensor without a value there are those of the last step before. */
  show(step: number): void {
    this.#step = step
    const { groups, name } = this.#options
    this.#said = groups.map((group, i) => {
      this.#draw(i, group)
      const said = group.flatMap(outline => textOf(outline, step) ?? [])
      this.pictures[i]!.setAttribute('aria-label', `The distribution of ${shown(name)}: ${said.join('; ')}`)
      return said.slice(0, MAX_SAID).join('; ') + (said.length > MAX_SAID ? '; …' : '')
    })
    for (const [i, text] of this.#said.entries()) this.#say(i, text)
  }

  /** The axes of a group, over all steps or some. */
  #axesOf(histograms: readonly Histogram[]): Axes {
    const { groups, chosen, shared } = this.#options
    const all = groups.flatMap(group => group.flatMap(({ histograms }) => histograms))
    const axes = axesOf(chosen.scales === 'same' && chosen.axes !== 'step' ? all : histograms, chosen.axis)
    if (chosen.axes !== 'shared') return axes
    // All tensors share one range; each has a height of its own.
    return { ...shared, most: highest(chosen.scales === 'same' ? all : histograms, { ...shared, most: 1 }) }
  }

  #axesAt(i: number): Axes {
    const { groups, chosen } = this.#options
    if (chosen.axes !== 'step') return this.#axes[i]!
    const outlines = chosen.scales === 'same' ? groups.flat() : groups[i]!
    const now = outlines.flatMap(outline => outline.histograms[indexAt(outline, this.#step)] ?? [])
    return now.length === 0 ? this.#axes[i]! : axesOf(now, chosen.axis)
  }

  #draw(i: number, group: readonly Outline[]): void {
    const { chosen } = this.#options
    const axes = this.#axesAt(i)
    const known = this.#ridges[i]
    // From one step to the next, ridges on the same axes differ in one that stands out: the others stay as they are.
    if (known?.axes === axes) {
      for (const ridge of known.ridges) emphasise(ridge, this.#step)
      this.pictures[i]!.querySelector('.lost')?.remove()
      this.pictures[i]!.append(...this.#lostOf(group))
      return
    }
    const ground = this.height - AXIS
    const width = this.#width
    const isAlone = group.length === 1
    const parts: SVGElement[] = []
    const ridges: RidgePath[] = []
    for (const outline of group) {
      const { histograms, color } = outline
      const at = indexAt(outline, this.#step)
      const rows = chosen.shape === 'outlines' ? [at] : evenly(histograms.length)
      for (const [row, index] of rows.entries()) {
        const histogram = histograms[index]
        if (histogram === undefined) continue
        const down = ground - OUTLINE_HEIGHT - (rows.length - 1 - row) * GAP
        const path = svgElement('path', {
          d: outlineOf(histogram, axes, width, OUTLINE_HEIGHT),
          transform: `translate(0 ${down})`,
          stroke: color,
          fill: color,
          'fill-opacity': isAlone ? 0.55 : 0.12,
        }) as SVGPathElement
        parts.push(path)
        if (chosen.shape === 'ridges') ridges.push({ path, outline, index, isChosen: null })
      }
    }
    for (const ridge of ridges) emphasise(ridge, this.#step)
    this.#ridges[i] = ridges.length > 0 ? { axes, ridges } : undefined
    parts.push(
      svgElement('line', { x1: 0, x2: width, y1: ground, y2: ground, stroke: 'currentColor', 'stroke-opacity': 0.35 }),
      svgElement('text', { x: 0, y: ground + 13 }, short(Number(axes.from.toPrecision(4)))),
      svgElement('text', { x: width, y: ground + 13, 'text-anchor': 'end' }, short(Number(axes.to.toPrecision(4)))),
    )
    if (axes.from < 0 && axes.to > 0) {
      const x = axes.place(0) * width
      parts.push(svgElement('line', { x1: x, x2: x, y1: 0, y2: ground, stroke: 'currentColor', 'stroke-opacity': 0.2 }))
    }
    this.pictures[i]!.replaceChildren(...parts, ...this.#lostOf(group))
  }

  /** The bars of elements that are not finite, where there is room for them. */
  #lostOf(group: readonly Outline[]): readonly SVGElement[] {
    const worst = this.#options.withLost ? worstOf(group, this.#step) : null
    if (worst === null) return []
    const lost = lostBars(worst.histogram, this.height - AXIS, group.length === 1 ? '' : worst.who)
    lost.setAttribute('transform', `translate(${this.#width + 8} 0)`)
    return [lost]
  }

  /** Shows the counts of the bins under the pointer. */
  #tell(svg: SVGSVGElement, group: readonly Outline[], i: number, clientX: number): void {
    const { left, width } = svg.getBoundingClientRect()
    const at = (((clientX - left) / width) * PANEL_WIDTH) / this.#width
    const axes = this.#axesAt(i)
    const said = group.flatMap(outline => {
      const histogram = outline.histograms[indexAt(outline, this.#step)]
      const bar =
        histogram && barsOf(histogram, axes).find(({ low, high }) => axes.place(low) <= at && at < axes.place(high))
      return bar ? [`${outline.who === '' ? '' : `${outline.who}: `}${barText(bar, histogram)}`] : []
    })
    this.#say(i, said.length === 0 ? this.#said[i]! : said.join('; '))
  }

  /** Breaks lines between numbers, and none of them at its exponent. */
  #say(i: number, text: string): void {
    this.#texts[i]!.replaceChildren(...text.split(/(?<=[,;:] )/).map(part => h('span', {}, part)))
  }
}

/** The outline with the largest share of non-finite elements at a step or the last one before. */
function worstOf(group: readonly Outline[], step: number): { histogram: Histogram; who: string } | null {
  const all = group.flatMap(outline => {
    const histogram = outline.histograms[indexAt(outline, step)]
    return histogram ? [{ histogram, who: outline.who, share: lostOf(histogram) / histogram.count }] : []
  })
  return all.length === 0 ? null : all.reduce((worst, candidate) => (candidate.share > worst.share ? candidate : worst))
}

/** Lets a ridge stand out if it is that of the step. */
function emphasise(ridge: RidgePath, step: number): void {
  const isChosen = ridge.index === indexAt(ridge.outline, step)
  if (ridge.isChosen === isChosen) return
  ridge.isChosen = isChosen
  ridge.path.setAttribute('stroke-width', isChosen ? '2' : '1')
  ridge.path.setAttribute('fill-opacity', isChosen ? '0.7' : '0.25')
}

/** The index of the value at a step or the last one before; -1 for none. */
export function indexAt({ trial, ridge }: Outline, step: number): number {
  return ridge.view.steps.findLastIndex(index => trial.view.steps[index]! <= step)
}

/** Indices spread evenly, the first and the last among them. */
function evenly(count: number): readonly number[] {
  const some = Math.min(MAX_RIDGES, count)
  return [...new Set(Array.from({ length: some }, (_, i) => Math.round((i * (count - 1)) / Math.max(1, some - 1))))]
}

function textOf(outline: Outline, step: number): string | null {
  const { trial, ridge, variance, who, histograms } = outline
  const at = indexAt(outline, step)
  if (at < 0) return null
  const { view } = ridge
  const stepOfRidge = view.steps[at]!
  const lost = lostOf(histograms[at]!)
  const {
    count,
    lost: [, nan],
  } = histograms[at]!
  // Of several trials and workers there is little room.
  const digits = who === '' ? 4 : 3
  const numberText = (value: number) => short(who === '' ? value : Number(value.toPrecision(3)))
  const atStep = trial.view.steps[stepOfRidge] === step ? [] : [`at step ${trial.view.steps[stepOfRidge]}`]
  const finite = [
    `${Number((100 * view.atMostZero[at]!).toPrecision(digits))} % ≤ 0`,
    ...(variance?.has(stepOfRidge) && variance.isThere(view.series, stepOfRidge)
      ? [`variance ${numberText(variance.at(view.series, stepOfRidge))}`]
      : []),
    ...(lost > 0 ? [`${lost} NaN or ∞`] : []),
  ]
  const all = `all ${nan === count ? 'NaN' : 'NaN or ∞'}`
  const numbers = [...(lost === count ? [all] : finite), ...atStep]
  return `${who === '' ? '' : `${who}: `}${numbers.join(', ')}`
}
