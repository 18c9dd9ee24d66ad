/** Histograms on common axes, of several steps, workers and trials. Each has bins of its own. */

import { svgElement } from '../dom.js'
import { counted, short } from '../text.js'
import type { Ridge } from '../trials.js'

export type AxisName = 'linear' | 'symlog'

/** The steps that an axis covers. */
export type RangeName = 'own' | 'step' | 'shared'

export const AXES: readonly (readonly [AxisName, string])[] = [
  ['linear', 'Linear'],
  ['symlog', 'Symmetric log'],
]

/** Elements at a step, in equal bins from `low` to `high`. */
export interface Histogram {
  readonly low: number
  readonly high: number
  /** The share of all elements in each bin. */
  readonly shares: readonly number[]
  readonly count: number
  /** The numbers of elements that are −∞, NaN and +∞. */
  readonly lost: readonly [negative: number, nan: number, positive: number]
}

/** The histogram of a ridge. @param at the index of one of its steps */
export function histogramOf({ view, shares }: Ridge, at: number): Histogram {
  const { bins, lows, highs, most, counts, lost } = view
  return {
    low: lows[at]!,
    high: highs[at]!,
    shares: Array.from(shares.subarray(at * bins, (at + 1) * bins), share => (share / 255) * most[at]!),
    count: counts[at]!,
    lost: lost[at]!,
  }
}

export function histogramsOf(ridge: Ridge): readonly Histogram[] {
  return ridge.view.steps.map((_, at) => histogramOf(ridge, at))
}

/** The axes of histograms: values from left to right, densities upwards. */
export interface Axes {
  readonly name: AxisName
  readonly from: number
  readonly to: number
  /** The size around 0 below which a symmetric logarithm is linear. */
  readonly constant: number
  /** The largest share of elements for the whole width of the axis. */
  readonly most: number
  /** The position of a value, from 0 at the left end to 1 at the right one. */
  place(value: number): number
}

/** The smallest value, as a fraction of the largest, that a symmetric logarithm tells from 0. */
const FINEST = 1e-9

export function axesOf(all: readonly Histogram[], name: AxisName): Axes {
  const filled = all.filter(({ shares }) => shares.some(share => share > 0))
  const some = filled.length > 0 ? filled : all
  // The values may be too many for the arguments of one call.
  let [from, to, width] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]
  for (const { low, high, shares } of some) {
    from = Math.min(from, low)
    to = Math.max(to, high)
    width = Math.min(width, (high - low) / shares.length)
  }
  const constant = Math.max(width, Math.max(Math.abs(from), Math.abs(to)) * FINEST)
  const scaled = (value: number) =>
    name === 'linear' ? value : Math.sign(value) * Math.log1p(Math.abs(value) / constant)
  // Halves, because the difference of two large numbers may overflow.
  const [left, right] = [scaled(from) / 2, scaled(to) / 2]
  const place = (value: number) => (scaled(value) / 2 - left) / (right - left)
  const axes = { name, from, to, constant, most: 1, place }
  return { ...axes, most: highest(some, axes) }
}

/** The height of the highest bar. */
export function highest(all: readonly Histogram[], axes: Axes): number {
  let most = 0
  for (const histogram of all) for (const { height } of barsOf(histogram, axes)) most = Math.max(most, height)
  return most
}

/** A bin on the axes. */
export interface Bar {
  readonly low: number
  readonly high: number
  readonly share: number
  /** The density, as a fraction of the largest on the axes. */
  readonly height: number
}

/** The least width of a bar, as a fraction of the axis. */
const FINEST_BAR = 1 / 64

/** The bins as bars, none if no element is finite; those narrower than a bar are joined with their neighbours. */
export function barsOf({ low, high, shares }: Histogram, axes: Axes): readonly Bar[] {
  if (shares.every(share => share === 0)) return []
  const edge = (bin: number) => low * (1 - bin / shares.length) + high * (bin / shares.length)
  const bars: Bar[] = []
  let [first, share] = [0, 0]
  for (const [bin, binShare] of shares.entries()) {
    share += binShare
    const [from, to] = [edge(first), edge(bin + 1)]
    const width = axes.place(to) - axes.place(from)
    if (width < FINEST_BAR && bin < shares.length - 1) continue
    bars.push({ low: from, high: to, share, height: share / Math.max(width, FINEST_BAR) / axes.most })
    ;[first, share] = [bin + 1, 0]
  }
  return bars
}

/** The outline as a path of SVG whose base lies at `height`; empty if no element is finite. */
export function outlineOf(histogram: Histogram, axes: Axes, width: number, height: number): string {
  const bars = barsOf(histogram, axes)
  if (bars.length === 0) return ''
  const x = (value: number) => (axes.place(value) * width).toFixed(2)
  const steps = bars.map(bar => {
    const y = (height * (1 - bar.height)).toFixed(2)
    return `L${x(bar.low)},${y}L${x(bar.high)},${y}`
  })
  return `M${x(histogram.low)},${height}${steps.join('')}L${x(histogram.high)},${height}`
}

export function barText({ low, high, share }: Bar, { count }: Histogram): string {
  const elements = Math.round(share * count)
  return `${short(low)} to ${short(high)}: ${elements.toLocaleString('en')} of ${counted(count, 'element')} (${short(Number((100 * share).toPrecision(3)))} %)`
}

export const LOST_WIDTH = 64
const LOST_NAMES = ['−∞', 'NaN', '+∞']

/** The number of elements that are not finite. */
export function lostOf({ lost }: Histogram): number {
  return lost.reduce((sum, some) => sum + some, 0)
}

export function hasFinite(histogram: Histogram): boolean {
  return lostOf(histogram) < histogram.count
}

/**
 * Bars of the elements that are not finite, on a scale of all elements.
 * @param who the outline's worker or trial; empty for the only one
 */
export function lostBars({ lost, count }: Histogram, height: number, who: string): SVGGElement {
  const group = svgElement('g', { class: 'lost' })
  for (const [i, some] of lost.entries()) {
    const [x, size] = [i * 23, some === 0 ? 0 : Math.max(1.5, (height * some) / count)]
    const bar = svgElement('rect', { x, y: height - size, width: 15, height: size, fill: '#d60093' })
    bar.append(
      svgElement(
        'title',
        {},
        `${who === '' ? '' : `${who}, `}${LOST_NAMES[i]}: ${some.toLocaleString('en')} of ${counted(count, 'element')}`,
      ),
    )
    group.append(
      bar,
      svgElement(
        'text',
        { x: x + 7.5, y: height + 12, 'text-anchor': 'middle', 'font-size': 9, fill: 'currentColor' },
        LOST_NAMES[i],
      ),
    )
  }
  return group
}

export function hasLost(all: readonly Histogram[]): boolean {
  return all.some(({ lost }) => lost.some(some => some > 0))
}
