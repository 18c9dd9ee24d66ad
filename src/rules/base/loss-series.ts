/** The values of one loss over the steps of a mode: how it began, its course, and courses that are no coincidence. */

import { numberText, riseText } from './wording.js'

export interface LossAtStep {
  readonly loss: number
  readonly step: number
}

/** The reason why a loss fires before there are enough steps for a trend. */
export interface EarlyVerdict {
  /** The value with which the last one is compared. */
  readonly from: LossAtStep
  /** The threshold in percent. */
  readonly threshold: number
  /** The course of the loss as a phrase, without its name. */
  readonly message: string
}

/** The course of a loss so far. */
interface Course {
  readonly last: LossAtStep
  /** True if it has never gone down. */
  readonly onlyRisen: boolean
  /** True if it has not changed beyond rounding since its first value. */
  readonly isStill: boolean
  /** The step since which every value has exceeded the one before. */
  readonly risingFrom: LossAtStep
  /** The number of rises in a row. */
  readonly rises: number
}

/** The relative change that rounding may cause while the loss stands still. */
const ROUNDING = 1e-6
/** The number of rises in a row that is no coincidence even in a long training, as a multiple of the number of values at each end. */
const STREAK = 4

export class LossSeries {
  /** The step since which it is NaN; null if it is not. */
  nanSince: number | null = null
  /** The number of values. */
  length = 0
  /** The number of its first step in the sequence. */
  readonly start: number
  readonly #count: number
  /** The first values, and the last ones. */
  readonly #values: number[] = []
  #first: LossAtStep | null = null
  #before: Course | null = null
  #now: Course | null = null
  /** The number of losses in the last value. */
  #losses = 0

  /** @param count the number of values at each end */
  constructor(count: number, start: number) {
    this.#count = count
    this.start = start
  }

  /** @param isSameRun true if the weights are those of the value before: both then count as one value */
  add(at: LossAtStep, isSameRun: boolean): void {
    if (isSameRun && this.#now !== null) {
      const mean = this.#now.last.loss + (at.loss - this.#now.last.loss) / ++this.#losses
      this.#values[this.#values.length - 1] = mean
      if (this.length === 1) this.#first = { ...this.#first!, loss: mean }
      this.#now = this.#next({ loss: mean, step: at.step })
      return
    }
    this.#losses = 1
    this.length++
    this.#first ??= at
    this.#values.push(at.loss)
    if (this.#values.length > 3 * this.#count) this.#values.splice(this.#count, 1)
    this.#before = this.#now
    this.#now = this.#next(at)
  }

  #next(at: LossAtStep): Course {
    const before = this.#before
    if (before === null) return { last: at, onlyRisen: true, isStill: true, risingFrom: at, rises: 0 }
    const isRise = at.loss > before.last.loss
    return {
      last: at,
      onlyRisen: before.onlyRisen && at.loss >= before.last.loss,
      isStill: before.isStill && Math.abs(at.loss - this.#first!.loss) <= ROUNDING * Math.abs(this.#first!.loss),
      risingFrom: isRise ? before.risingFrom : at,
      rises: isRise ? before.rises + 1 : 0,
    }
  }

  /** The means of the first values and of the last ones. */
  ends(): readonly [first: number, last: number] {
    return [mean(this.#values.slice(0, this.#count)), mean(this.#values.slice(-this.#count))]
  }

  /**
   * A course that differences between batches don't explain in so few steps; null if there is none.
   * @param allowedRise the accepted rise, in percent
   */
  unlikely(allowedRise: number): EarlyVerdict | null {
    const [first, now, count] = [this.#first, this.#now, this.#count]
    if (first === null || now === null) return null
    const { loss } = now.last
    const verdict = (from: LossAtStep, message: string, threshold = allowedRise) => ({ from, threshold, message })
    const wasPassed = (from: LossAtStep) => 100 * (loss - from.loss) > allowedRise * Math.abs(from.loss)
    const values = this.length
    if (now.isStill && loss !== 0 && values >= 2 * count) {
      return verdict(first, `stands still at ${numberText(loss)} since step ${first.step}`, 0)
    }
    const hasDoubled = loss - first.loss > Math.abs(first.loss)
    if (now.onlyRisen && wasPassed(first) && values >= (hasDoubled ? count + 1 : 2 * count)) {
      return verdict(first, `has only risen since step ${first.step}: ${riseText(first.loss, loss)}`)
    }
    if (now.rises >= STREAK * count && wasPassed(now.risingFrom)) {
      const { risingFrom, rises } = now
      const change = riseText(risingFrom.loss, loss)
      return verdict(risingFrom, `has risen ${rises} times in a row since step ${risingFrom.step}: ${change}`)
    }
    if (values < 2 * count) return null
    const highest = Math.max(...this.#values.slice(0, count))
    const lowest = Math.min(...this.#values.slice(-count))
    if (lowest - highest <= Math.abs(highest)) return null
    const message = `has grown far beyond its level: its last ${count} values are ${numberText(lowest)} or more, its first ${count} were ${numberText(highest)} or less`
    return verdict(first, message)
  }
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}
