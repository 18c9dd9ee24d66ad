/** What the small kernels measure, an element at a time. */

import type { Element } from './allclose.js'

const real = (x: Element): number => (typeof x === 'object' ? x[0] : Number(x))
const imaginary = (x: Element): number => (typeof x === 'object' ? x[1] : 0)

export function absDifferences(a: readonly Element[], b: readonly Element[]): number[] {
  return a.map((x, i) => {
    const y = b[i]!
    const re = real(x) - real(y)
    return typeof x === 'object' || typeof y === 'object' ? Math.hypot(re, imaginary(x) - imaginary(y)) : Math.abs(re)
  })
}

export function countsInside(matrix: readonly Element[], columns: number, lo: number, hi: number): number[] {
  const counts = Array(columns).fill(0)
  matrix.forEach((x, i) => {
    if (typeof x !== 'object' && lo < Number(x) && !(Number(x) >= hi)) counts[i % columns]++
  })
  return counts
}

export function countEqual(elements: readonly Element[], value: number): number {
  return elements.filter(x => real(x) === value && imaginary(x) === 0).length
}

/** The real parts of each channel's elements. */
export function channelsOf(elements: readonly Element[], channels: number, inner: number): number[][] {
  const apart: number[][] = Array.from({ length: channels }, () => [])
  for (const [i, x] of elements.entries()) apart[Math.floor(i / inner) % channels]!.push(real(x))
  return apart
}

/** numpy.percentile of its default method, by its formula. */
export function percentile(elements: readonly Element[], q: number): number {
  const sorted = elements.map(Number).sort((a, b) => a - b)
  if (sorted.length === 0 || sorted.some(Number.isNaN)) return NaN
  const rank = (sorted.length - 1) * (q / 100)
  const below = Math.floor(rank)
  const a = sorted[below]!
  const b = sorted[Math.min(below + 1, sorted.length - 1)]!
  return rank - below >= 0.5 ? b - (b - a) * (1 - (rank - below)) : a + (b - a) * (rank - below)
}

export const sumOf = (values: readonly number[]): number => values.reduce((sum, x) => sum + x, 0)

/** Whether a sum of these values may come out so, whatever the order they are added in. */
export function isSumOf(got: number, values: readonly number[]): boolean {
  const sum = sumOf(values)
  if (Number.isNaN(sum) || values.some(x => !Number.isFinite(x))) return Object.is(got, sum)
  const size = sumOf(values.map(Math.abs))
  // Where it overflows depends on the order.
  if (size > Number.MAX_VALUE / 2) return true
  return Math.abs(got - sum) <= size * (values.length + 1) * Number.EPSILON
}

/** numpy.histogram of the elements as float64; of a number of bins, over the finite ones. */
export function binned(
  elements: readonly number[],
  bins: number | readonly number[],
): { counts: number[]; edges: number[] } {
  const edges = typeof bins === 'number' ? linspace(elements.filter(Number.isFinite), bins) : [...bins]
  const counts = edges.slice(1).map(() => 0)
  for (const x of elements) {
    // The last bin holds its upper edge, too.
    const after = x === edges.at(-1) ? edges.length - 1 : edges.findIndex(edge => edge > x)
    if (after > 0 && x <= edges.at(-1)!) counts[after - 1]!++
  }
  return { counts, edges }
}

function linspace(finite: readonly number[], bins: number): number[] {
  let [first, last] = [Infinity, -Infinity]
  for (const x of finite) [first, last] = [Math.min(first, x), Math.max(last, x)]
  if (finite.length === 0) [first, last] = [0, 1]
  else if (first === last) [first, last] = [first - 0.5, last + 0.5]
  else [first, last] = [first + 0, last + 0]
  const step = (last - first) / bins
  const between = (i: number) => (Number.isFinite(step) ? i * step + first : first * (1 - i / bins) + last * (i / bins))
  return Array.from({ length: bins + 1 }, (_, i) => (i === bins ? last : between(i)))
}
