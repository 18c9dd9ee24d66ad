/** Histograms and sparklines of block characters. */

import type { TensorData } from '../../scan/job/tensor/data.js'

const BLOCKS = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']

export interface BarCounts {
  /** The minimum of the finite values. */
  readonly min: number
  readonly max: number
  readonly counts: readonly number[]
}

/**
 * Counts the finite values in equal bins, or the magnitudes of complex numbers. Null if there are none, and for
 * strings.
 */
export function histogram({ dtype, data }: TensorData, bins: number): BarCounts | null {
  if (dtype === 'string') return null
  const isComplex = dtype === 'complex64' || dtype === 'complex128'
  const elements = data as ArrayLike<number | bigint>
  const length = isComplex ? elements.length / 2 : elements.length
  const at = isComplex
    ? (i: number) => Math.hypot(Number(elements[2 * i]), Number(elements[2 * i + 1]))
    : (i: number) => Number(elements[i])
  let min = Number.POSITIVE_INFINITY
  let max = Number.NEGATIVE_INFINITY
  for (let i = 0; i < length; i++) {
    const value = at(i)
    if (!Number.isFinite(value)) continue
    if (value < min) min = value
    if (value > max) max = value
  }
  if (min > max) return null
  const counts = new Array<number>(bins).fill(0)
  // Halves, since the range itself may exceed the largest number.
  const range = max / 2 - min / 2
  for (let i = 0; i < length; i++) {
    const value = at(i)
    if (!Number.isFinite(value)) continue
    const bin = range > 0 ? Math.floor(((value / 2 - min / 2) / range) * bins) : 0
    counts[Math.min(bins - 1, bin)]!++
  }
  return { min, max, counts }
}

/** Counts as blocks. A blank stands for zero. */
export function blocks(counts: readonly number[]): string {
  const most = Math.max(1, ...counts)
  return counts.map(count => (count === 0 ? ' ' : BLOCKS[Math.ceil((count / most) * BLOCKS.length) - 1]!)).join('')
}

/**
 * Draws a series as blocks, from the lowest to the highest value.
 * @param range the values of the lowest and the highest block; default: the least and the largest
 * @returns `!` for a value that is not finite, `·` for one that is missing
 */
export function sparkline(series: readonly (number | undefined)[], range?: readonly [number, number]): string {
  const finite = series.filter((value): value is number => value !== undefined && Number.isFinite(value))
  const [low, high] = range ?? [
    finite.reduce((least, value) => Math.min(least, value), Number.POSITIVE_INFINITY),
    finite.reduce((most, value) => Math.max(most, value), Number.NEGATIVE_INFINITY),
  ]
  return series
    .map(value => {
      if (value === undefined) return '·'
      if (!Number.isFinite(value)) return '!'
      const level = high > low ? Math.round(((value - low) / (high - low)) * (BLOCKS.length - 1)) : 0
      return BLOCKS[Math.max(0, Math.min(BLOCKS.length - 1, level))]!
    })
    .join('')
}

/** Evenly chosen elements, with the first and the last. */
export function spread<T>(all: readonly T[], most: number): readonly T[] {
  if (all.length <= most) return all
  return Array.from({ length: most }, (_, i) => all[Math.round((i * (all.length - 1)) / (most - 1))]!)
}
