/**
 * Judges if two runs differ by more than runs of the same configuration do. The mean |a − b| of each tensor to the run in question is
 * compared with that to runs that should be the same, at the step and its neighbours. If both were noise, the ratio of their squares
 * would follow Fisher's F distribution; at most 16 of a tensor's elements count as independent. The limit is its quantile at a risk of
 * 0.5 % for all tensors and steps together, times a margin of 3 in |a − b|, since a run as a whole may be further from another.
 * docs/diff.md has the error rates.
 */

import { countBelow } from '../base/sorted.js'
import type { RecordPlaceInTime } from './records.js'

/** The number of steps before and after a step from which its noise is also estimated. */
const NEIGHBOURS = 5
const MAX_INDEPENDENT = 16
const RISK = 0.005
const MARGIN = 3

interface Samples {
  /** Ascending. */
  readonly steps: number[]
  /** Squares of the mean |a − b|, for each noise run, at each of the steps. */
  readonly squares: number[][]
}

export class NoiseFloor {
  readonly #samples = new Map<string, Samples>()
  #count = 0
  /**
   * True if runs of the configuration differ at all. Inexact results, above all single numbers, may be equal for many steps by chance: if
   * the runs differ, a difference in the last bits means nothing.
   */
  isNoisy = false
  /** The read errors of the runs. */
  readonly problems: Error[] = []

  /** Adds a step. The steps of a tensor must be ascending, one noise run after another. */
  add(place: RecordPlaceInTime, meanAbsolute: number): void {
    this.isNoisy ||= meanAbsolute > 0
    // NaN or infinities in one of the runs are no measure of noise.
    if (!Number.isFinite(meanAbsolute)) return
    const key = keyOf(place)
    const samples = this.#samples.get(key) ?? { steps: [], squares: [] }
    this.#samples.set(key, samples)
    const at = countBelow(samples.steps.length, i => samples.steps[i]! < place.step)
    if (samples.steps[at] !== place.step) {
      samples.steps.splice(at, 0, place.step)
      samples.squares.splice(at, 0, [])
    }
    samples.squares[at]!.push(meanAbsolute ** 2)
    this.#count++
  }

  /** The limit of a tensor's mean |a − b| for noise; 0 if runs were equal; null if the tensor was compared in none; Infinity if in too few. */
  limit(place: RecordPlaceInTime, elements: number): number | null {
    const samples = this.#samples.get(keyOf(place))
    if (samples === undefined) return null
    const at = countBelow(samples.steps.length, i => samples.steps[i]! < place.step)
    const squares = samples.squares.slice(Math.max(0, at - NEIGHBOURS), at + NEIGHBOURS + 1).flat()
    const mean = squares.reduce((sum, square) => sum + square, 0) / squares.length
    if (mean === 0) return 0
    const independent = Math.min(elements, MAX_INDEPENDENT)
    return MARGIN * Math.sqrt(mean * quantileOfF(RISK / this.#count, independent, independent * squares.length))
  }
}

function keyOf({ tensor, worker }: RecordPlaceInTime): string {
  return `${worker}\n${tensor}`
}

/** The quantile of F that is exceeded with a small probability, after Paulson (1942); Infinity if there is none. */
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
