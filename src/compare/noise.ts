/**
 * The noise between runs of the same configuration: what two runs differ by beyond that is no noise.
 *
 * Of each tensor the mean |a − b| to the run in question is held against that to runs that should be the same, at the step and its
 * neighbours. Were both noise, the ratio of their squares would follow Fisher's F distribution; of a tensor's elements at most 16 count as
 * independent. The limit is its quantile at a risk of 0.5 % for all tensors and steps together, times a margin of 3 in |a − b|, since a run
 * may be farther from another as a whole. docs/diff.md has the error rates.
 */

import type { RecordPlaceInTime } from './records.js'

/** Steps before and after one that its noise is estimated from, besides its own. */
const NEIGHBOURS = 5
const MOST_INDEPENDENT = 16
const RISK = 0.005
const MARGIN = 3

interface Samples {
  /** Ascending. */
  readonly steps: number[]
  /** Squares of the mean |a − b|, a noise run after the other, at each of the steps. */
  readonly squares: number[][]
}

export class NoiseFloor {
  readonly #samples = new Map<string, Samples>()
  #count = 0
  #isNoisy = false

  /**
   * True if runs of the configuration differ at all. What is computed inexactly may be equal for many steps by chance, a single number above all:
   * where they do, a difference in the last bits means nothing.
   */
  get isNoisy(): boolean {
    return this.#isNoisy
  }

  /** Steps of a tensor must come in ascending order, from one noise run after the other. */
  add(place: RecordPlaceInTime, meanAbsolute: number): void {
    const key = keyOf(place)
    let samples = this.#samples.get(key)
    if (samples === undefined) {
      samples = { steps: [], squares: [] }
      this.#samples.set(key, samples)
    }
    const at = lowerBound(samples.steps, place.step)
    if (samples.steps[at] !== place.step) {
      samples.steps.splice(at, 0, place.step)
      samples.squares.splice(at, 0, [])
    }
    samples.squares[at]!.push(meanAbsolute ** 2)
    this.#count++
    this.#isNoisy ||= meanAbsolute > 0
  }

  /**
   * The limit of the mean |a − b| of a tensor of so many elements, if it is noise; 0 where runs were equal; Infinity where too little
   * is known.
   */
  limit(place: RecordPlaceInTime, elements: number): number {
    const samples = this.#samples.get(keyOf(place))
    if (samples === undefined) return Number.POSITIVE_INFINITY
    const at = lowerBound(samples.steps, place.step)
    const squares = samples.squares.slice(Math.max(0, at - NEIGHBOURS), at + NEIGHBOURS + 1).flat()
    const mean = squares.reduce((sum, square) => sum + square, 0) / squares.length
    if (mean === 0) return 0
    const independent = Math.min(elements, MOST_INDEPENDENT)
    return MARGIN * Math.sqrt(mean * quantileOfF(RISK / this.#count, independent, independent * squares.length))
  }
}

function keyOf({ tensor, worker }: RecordPlaceInTime): string {
  return `${worker}\n${tensor}`
}

function lowerBound(steps: readonly number[], step: number): number {
  let [from, to] = [0, steps.length]
  while (from < to) {
    const middle = (from + to) >> 1
    if (steps[middle]! < step) from = middle + 1
    else to = middle
  }
  return from
}

/** The quantile of F that is exceeded with a small probability, after Paulson (1942); Infinity if it has none. */
export function quantileOfF(risk: number, above: number, below: number): number {
  // The quantile of the normal distribution, far out in its tail.
  const log = 2 * Math.log(1 / risk)
  const z = Math.sqrt(log - Math.log(log) - Math.log(2 * Math.PI))
  const [u, v] = [2 / (9 * above), 2 / (9 * below)]
  const [p, q] = [(1 - v) ** 2 - z * z * v, (1 - u) * (1 - v)]
  if (p <= 0) return Number.POSITIVE_INFINITY
  const root = (q + Math.sqrt(q * q - p * ((1 - u) ** 2 - z * z * u))) / p
  return root ** 3
}
