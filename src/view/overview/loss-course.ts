/** The course of a trial's loss for the list of trials, read a step once. */

import { setTimeout as sleep } from 'node:timers/promises'
import type { Mode } from '../../base/types.js'
import { kindsOf } from '../../trial/kinds/kinds.js'
import { stateOf, type Trial } from '../../trial/trial.js'
import { LINE_STATISTICS, Lines, type OverviewLine } from './lines.js'

/** The first loss of a trial, by mode. */
export interface LossView {
  readonly tensor: string
  readonly lines: readonly {
    readonly mode: Mode
    readonly steps: readonly number[]
    readonly values: readonly number[]
  }[]
}

/** The number of points of a line in the list of trials. */
const MAX_POINTS = 240
/** Steps of a run in a folder of its index, and the digits of the folder's name. */
const [FOLDER_STEPS, FOLDER_DIGITS] = [1000, 9]

export class LossCourse {
  #lines: Lines | undefined
  /** The last step that has been read. */
  #upTo = -1
  #isReading = false
  #changedMs: number | null = null

  /**
   * The loss as far as it has been read; newer steps are read in the background. Null: no loss was saved, or none was read yet.
   * @param take waits for a turn to read, and resolves to a function that ends it
   */
  of(trial: Trial, signal: AbortSignal, take: (signal: AbortSignal) => Promise<() => void>): LossView | null {
    const last = trial.steps().at(-1) ?? -1
    if (last > this.#upTo && !this.#isReading) {
      this.#isReading = true
      take(signal)
        .then(end => this.#read(trial, last, signal).finally(end))
        // The trial's own page reports what can't be read.
        .catch(() => sleep(1000, undefined, { ref: false }))
        .finally(() => (this.#isReading = false))
    }
    const lines = this.#lines?.of('losses') ?? []
    const [first] = lines
    if (first === undefined) return null
    return { tensor: first.tensor, lines: lines.filter(({ tensor }) => tensor === first.tensor).map(thinned) }
  }

  /** The time of the last change of its files, in milliseconds; null: it is not known. */
  get changedMs(): number | null {
    return this.#changedMs
  }

  async #read(trial: Trial, last: number, signal: AbortSignal): Promise<void> {
    this.#changedMs = await changedMs(trial, last)
    const kindOf = kindsOf(trial)
    const name = stateOf(trial).catalog.names.find(name => kindOf(name) === 'losses')
    this.#lines ??= new Lines(trial)
    if (name !== undefined) {
      const steps = { from: this.#upTo < 0 ? null : this.#upTo + 1, to: last + 1 }
      for await (const row of trial.scan({ tensors: name, steps, reductions: LINE_STATISTICS, signal })) {
        this.#lines.add(row)
      }
    }
    this.#upTo = last
  }
}

/**
 * The time of the last change. A folder's time changes when a file is added: the folders of the last step's index are looked at, and
 * those above.
 */
async function changedMs(trial: Trial, last: number): Promise<number | null> {
  const folder = String(Math.floor(last / FOLDER_STEPS) * FOLDER_STEPS).padStart(FOLDER_DIGITS, '0')
  const stamps = await stateOf(trial).access.store.stamps(['', 'index', 'events', `index/${folder}`])
  const times = stamps.filter((time, i) => i % 3 === 1 && !Number.isNaN(time))
  return times.length === 0 ? null : Math.max(...times)
}

/** The first point, the last, and some between them. */
function thinned({ mode, steps, values }: OverviewLine): LossView['lines'][number] {
  const every = Math.ceil(steps.length / MAX_POINTS)
  const isKept = (i: number) => i % every === 0 || i === steps.length - 1
  return { mode, steps: steps.filter((_, i) => isKept(i)), values: values.filter((_, i) => isKept(i)) }
}
