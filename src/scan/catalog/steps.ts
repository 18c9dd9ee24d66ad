/** Steps: which exist, in which mode, and which are complete. */

import { type Column, float64Column, int32Column } from '../../base/column.js'
import { UsageError } from '../../base/errors.js'
import { entryOf } from '../../base/maps.js'
import { kinds, optionsOf } from '../../base/options.js'
import { countBelow } from '../../base/sorted.js'
import { countInTurns } from '../../base/turns.js'
import { type GlobalStep, MODES, type Mode, type ModeStep, type Worker } from '../../base/types.js'
import { hasMode, type WorkerStep, workersOf } from './worker-steps.js'

/** A step that at least one worker wrote. */
export interface Step {
  readonly globalStep: GlobalStep
  /** The mode. If workers wrote the global step in several modes (only rank 0 evaluates), that of the first worker. */
  readonly mode: Mode
  readonly modeStep: ModeStep
  /** The workers that wrote it, sorted. */
  readonly workers: readonly Worker[]
  /** The steps by mode, if workers wrote the global step in several modes: each with its workers. */
  readonly apart?: readonly Step[]
}

/** The selection of steps. */
export interface StepOptions {
  /** GLOBAL (default) for all steps by their global numbers; a mode for its steps by their numbers within it. */
  readonly mode?: Mode
  /** True to include steps that not all workers have written yet. Default: false. */
  readonly showIncompleteSteps?: boolean
}

export const STEP_OPTIONS = optionsOf<StepOptions>({ mode: kinds.mode, showIncompleteSteps: kinds.flag })

/** @throws UsageError for an unknown mode */
export function checkMode(mode: Mode): Mode {
  if (MODES.includes(mode)) return mode
  throw new UsageError(`expected mode to be one of ${MODES.join(', ')}, got ${JSON.stringify(mode)}`, { mode })
}

/** True if a worker wrote a global step, or one of several, in that mode. Every step is of mode GLOBAL. */
export function isOfMode(step: Step, mode: Mode): boolean {
  return mode === 'GLOBAL' || step.mode === mode || (step.apart?.some(part => part.mode === mode) ?? false)
}

/** The conditions under which a step is complete. */
export interface Completeness {
  /** The number of workers that must write it; Infinity while unknown. */
  readonly numWorkers: number
  /** True if the job has ended: every step is complete then. */
  readonly ended: boolean
  /** The number of steps after an incomplete one, all incomplete, after which it is no longer waited for. */
  readonly incompleteStepWindow: number
}

/** A step of one worker. */
export type Written = Pick<WorkerStep, 'step' | 'worker' | 'mode' | 'modeStep' | 'error'>

/** The steps of all workers, in the order of steps, then workers' names. */
export interface AllWritten {
  readonly length: number
  stepAt(place: number): GlobalStep
  writtenAt(place: number): Written
}

/** Steps in ascending order, made into objects on demand, since there may be a million. */
export class Steps implements Iterable<Step> {
  /** The last complete step; -1 if there is none. */
  readonly lastComplete: number
  /** The number of workers that must write a step; Infinity while unknown. */
  readonly numWorkers: number
  readonly #written: AllWritten
  /** The start of each step's rows. */
  readonly #starts: Int32Array
  readonly #completeness: Completeness
  readonly #byMode = new Map<Mode, StepsOfMode>()
  /** The last result of `get`: a call about a tensor uses its step several times, and the next call often has the same step. */
  #latest: Step | undefined

  static async of(written: AllWritten, completeness: Completeness): Promise<Steps> {
    const starts = int32Column()
    await countInTurns(written.length, place => {
      if (place === 0 || written.stepAt(place) !== written.stepAt(place - 1)) starts.push(place)
    })
    const steps = new Steps(written, starts.numbers, completeness)
    await countInTurns(steps.length, i => steps.#add(i))
    return steps
  }

  private constructor(written: AllWritten, starts: Int32Array, completeness: Completeness) {
    const { numWorkers, ended, incompleteStepWindow } = completeness
    this.numWorkers = numWorkers
    this.#written = written
    this.#starts = starts
    this.#completeness = completeness
    let last = this.length - 1
    if (!ended) while (last >= 0 && this.#at(last).workers.length < numWorkers) last--
    this.lastComplete = Math.max(this.numberAt(last) ?? -1, this.numberAt(this.length - 1 - incompleteStepWindow) ?? -1)
  }

  #add(i: number): void {
    const start = this.#starts[i]!
    const end = this.#starts[i + 1] ?? this.#written.length
    if (end === start + 1) {
      // The common case, for which no object is made, since there may be a million steps.
      const { step, worker, mode, modeStep } = this.#written.writtenAt(start)
      this.#ofMode(mode).add(step, modeStep, worker, i)
      return
    }
    const step = this.#at(i)
    for (const { globalStep, mode, modeStep, workers } of step.apart ?? [step]) {
      for (const worker of workers) this.#ofMode(mode).add(globalStep, modeStep, worker, i)
    }
  }

  #ofMode(mode: Mode): StepsOfMode {
    return entryOf(this.#byMode, mode, () => new StepsOfMode())
  }

  get length(): number {
    return this.#starts.length
  }

  /** The number of the i-th global step; undefined if there is none. */
  numberAt(i: number): GlobalStep | undefined {
    return i >= 0 && i < this.length ? this.#written.stepAt(this.#starts[i]!) : undefined
  }

  *[Symbol.iterator](): Generator<Step> {
    for (let i = 0; i < this.length; i++) yield this.#at(i)
  }

  #at(i: number): Step {
    const end = this.#starts[i + 1] ?? this.#written.length
    const written: Written[] = []
    for (let place = this.#starts[i]!; place < end; place++) written.push(this.#written.writtenAt(place))
    return stepOf(written)
  }

  /** The modes of steps, without GLOBAL (no mode was set). */
  get modes(): Mode[] {
    return [...this.#byMode.keys()].filter(mode => mode !== 'GLOBAL').sort()
  }

  /** The number of complete global steps, which come first. */
  get completeCount(): number {
    return this.#countBefore(this.lastComplete + 1)
  }

  get(globalStep: number): Step | undefined {
    if (this.#latest?.globalStep !== globalStep) {
      const i = this.#countBefore(globalStep)
      if (this.numberAt(i) !== globalStep) return undefined
      this.#latest = this.#at(i)
    }
    return this.#latest
  }

  #countBefore(globalStep: number): number {
    return countBelow(this.length, i => this.numberAt(i)! < globalStep)
  }

  /**
   * The steps with that number: a global step for GLOBAL, whatever its modes, else a mode step, with the workers that wrote it as that.
   * Several global steps can have one mode step (workers count their own; a training was resumed; scalars were saved after the mode had
   * changed): the last comes first.
   */
  at(number: number, mode: Mode): readonly Step[] {
    if (checkMode(mode) !== 'GLOBAL') {
      return (this.#byMode.get(mode)?.at(number) ?? []).map(i => {
        const step = this.#at(i)
        return step.apart?.find(part => part.mode === mode && part.modeStep === number) ?? step
      })
    }
    const step = this.get(number)
    return step ? [step] : []
  }

  /** Step numbers in ascending order: global steps for GLOBAL, else mode steps of the mode. */
  numbers(mode: Mode, showIncomplete: boolean): number[] {
    if (checkMode(mode) === 'GLOBAL') {
      const count = showIncomplete ? this.length : this.completeCount
      const numbers: number[] = []
      for (let i = 0; i < count; i++) numbers.push(this.numberAt(i)!)
      return numbers
    }
    const numbers = Array.from(this.#byMode.get(mode)?.numbers ?? [])
    return showIncomplete ? numbers : numbers.filter(number => this.isComplete(number, mode))
  }

  /**
   * True if an existing step is complete. A global step is complete if all workers wrote it, a later one is complete, the job has ended,
   * or too many steps came since. A mode step is complete if the job has ended, or if the first global step that has it is complete and
   * either every worker that had begun the mode before it has reached it (each counts the steps of a mode itself), or too many steps of the
   * mode came since. So a complete step stays complete, and a worker that was never in the mode is not waited for.
   */
  isComplete(number: number, mode: Mode): boolean {
    if (mode === 'GLOBAL') {
      return number <= this.lastComplete && this.numberAt(this.#countBefore(number)) === number
    }
    const ofMode = this.#byMode.get(mode)
    const first = this.numberAt(ofMode?.at(number).at(-1) ?? -1)
    if (ofMode === undefined || first === undefined) return false
    return (
      this.#completeness.ended || (first <= this.lastComplete && ofMode.isComplete(number, first, this.#completeness))
    )
  }
}

/**
 * A step made from what each worker wrote. An unreadable index file has only the global step; the mode is that of the other workers, if
 * they agree.
 */
function stepOf(written: readonly Written[]): Step {
  const readable = written.filter(hasMode)
  const { step: globalStep, mode, modeStep } = readable[0] ?? written[0]!
  const step = { globalStep, mode, modeStep, workers: workersOf(written) }
  if (readable.every(other => other.mode === mode && other.modeStep === modeStep)) return step
  const parts = new Map<string, Written[]>()
  for (const entry of written) {
    const key = `${entry.mode} ${entry.modeStep}`
    entryOf(parts, key, () => []).push(entry)
  }
  const apart = [...parts.values()].map(part => {
    const { mode, modeStep } = part[0]!
    return { globalStep, mode, modeStep, workers: workersOf(part) }
  })
  return { ...step, apart }
}

/** The steps of one mode. */
class StepsOfMode {
  /** The number of each within the mode. */
  #modeSteps: Column<Float64Array> = float64Column()
  /** The index of each among all steps. */
  #places: Column<Int32Array> = int32Column()
  /** True if the steps ascend by their numbers in the mode. They were added by global step. */
  #isSorted = true
  /** The global step at which each worker began the mode, and the step it has reached. */
  readonly #workers = new Map<Worker, { readonly begunAt: number; reached: number }>()
  #numbers: Float64Array | undefined

  /** Adds a step. Called in the order of global steps, once for each of its workers. */
  add(globalStep: GlobalStep, modeStep: ModeStep, worker: Worker, place: number): void {
    const last = this.#places.length - 1
    if (last < 0 || this.#places.at(last) !== place || this.#modeSteps.at(last) !== modeStep) {
      if (last >= 0 && modeStep < this.#modeSteps.at(last)) this.#isSorted = false
      this.#modeSteps.push(modeStep)
      this.#places.push(place)
    }
    const known = this.#workers.get(worker)
    if (known === undefined) this.#workers.set(worker, { begunAt: globalStep, reached: modeStep })
    else if (known.reached < modeStep) known.reached = modeStep
  }

  #sort(): void {
    if (this.#isSorted) return
    const [modeSteps, places] = [this.#modeSteps, this.#places]
    const order = Int32Array.from({ length: modeSteps.length }, (_, i) => i)
    order.sort((a, b) => modeSteps.at(a) - modeSteps.at(b) || a - b)
    this.#modeSteps = float64Column()
    this.#places = int32Column()
    for (const i of order) {
      this.#modeSteps.push(modeSteps.at(i))
      this.#places.push(places.at(i))
    }
    this.#isSorted = true
  }

  /** The distinct numbers, ascending. */
  get numbers(): Float64Array {
    this.#sort()
    const modeSteps = this.#modeSteps
    this.#numbers ??= modeSteps.numbers.filter((number, i) => i === 0 || number !== modeSteps.at(i - 1))
    return this.#numbers
  }

  /** The steps with a number, the last first. */
  at(number: number): number[] {
    this.#sort()
    const { length } = this.#modeSteps
    const places: number[] = []
    for (let i = countBelow(length, i => this.#modeSteps.at(i) < number); i < length; i++) {
      if (this.#modeSteps.at(i) !== number) break
      places.push(this.#places.at(i))
    }
    return places.reverse()
  }

  /** True if no worker may still write a step. @param first the first global step with that number; all up to it are complete */
  isComplete(number: number, first: number, { incompleteStepWindow }: Completeness): boolean {
    if (number <= (this.numbers.at(-1 - incompleteStepWindow) ?? -1)) return true
    for (const { begunAt, reached } of this.#workers.values()) {
      if (begunAt < first && reached < number) return false
    }
    return true
  }
}
