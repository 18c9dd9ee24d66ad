/**
 * Finds differences that leave their trend. Differences of two runs grow from step to step, as rounding errors do in a training; if a
 * tensor's leave their own trend, something else has come in. A straight line is fitted to the logarithms of the tensor's mean |a − b| at
 * the last steps, and gives the expectation for the next. The tensor has left the trend if it is far above that, relative to the scatter
 * around the line, and still is at its next step.
 */

import type { RecordPlaceInTime } from './records.js'

/** A tensor whose difference is far above the expectation. */
export interface TrendDeparture extends RecordPlaceInTime {
  readonly meanAbsolute: number
  /** The expected value. */
  readonly expected: number
}

/** The number of steps for a line: at most, and at least. */
const MAX_STEPS = 16
const MIN_STEPS = 6
/** The number of standard errors above the line, and the least excess as a logarithm: thirtyfold. */
const ERRORS = 6
const MIN_RISE = Math.log(30)
/** The least scatter that is assumed, so that a few points on a line by chance mean little. */
const MIN_SCATTER = 0.35

interface Course {
  readonly steps: number[]
  readonly logs: number[]
  /** A difference far above the trend, until the next step confirms it. */
  pending: (TrendDeparture & { readonly rank: number; readonly limit: number }) | null
}

export class Trend {
  readonly #courses = new Map<string, Course>()
  readonly #departed: (TrendDeparture & { readonly rank: number })[] = []

  /** Adds a step; steps must be ascending. @param rank the tensor's rank in the order of execution */
  add(place: RecordPlaceInTime, rank: number, meanAbsolute: number): void {
    if (!(meanAbsolute > 0 && Number.isFinite(meanAbsolute))) return
    const key = `${place.worker}\n${place.tensor}`
    const course: Course = this.#courses.get(key) ?? { steps: [], logs: [], pending: null }
    this.#courses.set(key, course)
    const log = Math.log(meanAbsolute)
    const { pending } = course
    if (pending !== null) {
      if (log > pending.limit) {
        const { limit: _, ...departure } = pending
        this.#departed.push(departure)
      }
      course.pending = null
    } else if (course.steps.length >= MIN_STEPS) {
      const { expected, error } = forecast(course.steps, course.logs, place.step)
      const limit = expected + Math.max(MIN_RISE, ERRORS * error)
      if (log > limit) {
        course.pending = { ...place, rank, meanAbsolute, expected: Math.exp(expected), limit }
        return
      }
    }
    course.steps.push(place.step)
    course.logs.push(log)
    if (course.steps.length > MAX_STEPS) {
      course.steps.shift()
      course.logs.shift()
    }
  }

  /** The first departure in the order of execution. */
  get departure(): TrendDeparture | null {
    const [first] = this.#departed.sort((x, y) => x.step - y.step || x.rank - y.rank)
    if (first === undefined) return null
    const { rank: _, ...departure } = first
    return departure
  }
}

/** The value of the least-squares line at a later step, and its standard error. */
function forecast(steps: readonly number[], logs: readonly number[], step: number) {
  const n = steps.length
  const [x, y] = [mean(steps), mean(logs)]
  const spread = steps.reduce((sum, stepNumber) => sum + (stepNumber - x) ** 2, 0)
  const slope = steps.reduce((sum, stepNumber, i) => sum + (stepNumber - x) * (logs[i]! - y), 0) / spread
  const rest = steps.reduce((sum, stepNumber, i) => sum + (logs[i]! - y - slope * (stepNumber - x)) ** 2, 0)
  const scatter = Math.max(MIN_SCATTER, Math.sqrt(rest / (n - 2)))
  // A falling trend is not extrapolated.
  const expected = y + Math.max(0, slope) * (step - x)
  return { expected, error: scatter * Math.sqrt(1 + 1 / n + (step - x) ** 2 / spread) }
}

function mean(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0) / numbers.length
}
