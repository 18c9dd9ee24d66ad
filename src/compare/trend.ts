/**
 * Differences of two runs grow from step to step, as rounding does in a training. Where those of a tensor leave their own trend, something else
 * has come in.
 *
 * Of each tensor a straight line is fitted to the logarithms of its mean |a − b| at the last steps, and tells what to expect at the next. It has
 * left the trend where it is far above that, by the scatter around the line, and still is at its next step.
 */

import type { RecordPlaceInTime } from './records.js'

/** A tensor whose difference is far above what the steps before let expect. */
export interface TrendDeparture extends RecordPlaceInTime {
  readonly meanAbsolute: number
  /** The value that the steps before let expect. */
  readonly expected: number
}

/** Steps that a line is fitted to, and how many it takes at least. */
const MOST_STEPS = 16
const LEAST_STEPS = 6
/** The number of standard errors above the line, and the least excess as a logarithm: thirtyfold. */
const ERRORS = 6
const LEAST_RISE = Math.log(30)
/** The scatter that a line which fits better is taken to have, so that a few points that lie well mean little. */
const LEAST_SCATTER = 0.35

interface Course {
  readonly steps: number[]
  readonly logs: number[]
  /** Far above the trend, to be seen whether it stays there. */
  pending: (TrendDeparture & { readonly rank: number; readonly limit: number }) | null
}

export class Trend {
  readonly #courses = new Map<string, Course>()
  readonly #departed: (TrendDeparture & { readonly rank: number })[] = []

  /** Steps must come in ascending order. @param rank of the tensor in the order of execution */
  add(place: RecordPlaceInTime, rank: number, meanAbsolute: number): void {
    if (!(meanAbsolute > 0 && Number.isFinite(meanAbsolute))) return
    const key = `${place.worker}\n${place.tensor}`
    let course = this.#courses.get(key)
    if (course === undefined) {
      course = { steps: [], logs: [], pending: null }
      this.#courses.set(key, course)
    }
    const log = Math.log(meanAbsolute)
    const { pending } = course
    if (pending !== null) {
      if (log > pending.limit) {
        const { limit: _, ...departure } = pending
        this.#departed.push(departure)
      }
      course.pending = null
    } else if (course.steps.length >= LEAST_STEPS) {
      const { expected, error } = forecast(course.steps, course.logs, place.step)
      const limit = expected + Math.max(LEAST_RISE, ERRORS * error)
      if (log > limit) {
        course.pending = { ...place, rank, meanAbsolute, expected: Math.exp(expected), limit }
        return
      }
    }
    course.steps.push(place.step)
    course.logs.push(log)
    if (course.steps.length > MOST_STEPS) {
      course.steps.shift()
      course.logs.shift()
    }
  }

  /** The first in the order of execution. */
  get departure(): TrendDeparture | null {
    const [first] = this.#departed.sort((x, y) => x.step - y.step || x.rank - y.rank)
    if (first === undefined) return null
    const { rank: _, ...departure } = first
    return departure
  }
}

/** A line of least squares at a step that follows, and the standard error of what is expected there. */
function forecast(steps: readonly number[], logs: readonly number[], step: number) {
  const n = steps.length
  const [x, y] = [mean(steps), mean(logs)]
  const spread = steps.reduce((sum, one) => sum + (one - x) ** 2, 0)
  const slope = steps.reduce((sum, one, i) => sum + (one - x) * (logs[i]! - y), 0) / spread
  const rest = steps.reduce((sum, one, i) => sum + (logs[i]! - y - slope * (one - x)) ** 2, 0)
  const scatter = Math.max(LEAST_SCATTER, Math.sqrt(rest / (n - 2)))
  // What falls is not expected to fall on.
  const expected = y + Math.max(0, slope) * (step - x)
  return { expected, error: scatter * Math.sqrt(1 + 1 / n + (step - x) ** 2 / spread) }
}

function mean(numbers: readonly number[]): number {
  return numbers.reduce((sum, one) => sum + one, 0) / numbers.length
}
