/** Steps: which there are, in which mode, and which are complete. Source: format.md "Collections file", rules.md §3. */

import { UsageError } from '../errors.js'
import { kinds, optionsOf } from '../options.js'
import { type GlobalStep, MODES, type Mode, type ModeStep, type Worker } from '../types.js'
import { inTurns } from './turns.js'

/** A step that at least one worker wrote. */
export interface Step {
  readonly globalStep: GlobalStep
  /** Where workers wrote the global step as several steps of modes (only rank 0 evaluates): the first worker's. */
  readonly mode: Mode
  readonly modeStep: ModeStep
  /** Those that wrote it, sorted. */
  readonly workers: readonly Worker[]
  /** Where workers wrote the global step as several steps of modes: each of them, with the workers that wrote it as that. */
  readonly apart?: readonly Step[]
}

/** Which steps are asked for. */
export interface StepOptions {
  /** GLOBAL, the default: all, by their global numbers; else those of the mode, by their numbers within it. */
  readonly mode?: Mode
  /** Also steps that not all workers have written yet. */
  readonly showIncompleteSteps?: boolean
}

export const STEP_OPTIONS = optionsOf<StepOptions>({ mode: kinds.mode, showIncompleteSteps: kinds.flag })

/** @throws UsageError for what is no mode */
export function checkMode(mode: Mode): Mode {
  if (MODES.includes(mode)) return mode
  throw new UsageError(`expected mode to be one of ${MODES.join(', ')}, got ${JSON.stringify(mode)}`, { mode })
}

/** Whether a worker wrote a global step, or one of several, in that mode; all are of mode GLOBAL. */
export function isOfMode(step: Step, mode: Mode): boolean {
  return mode === 'GLOBAL' || step.mode === mode || (step.apart?.some(part => part.mode === mode) ?? false)
}

/** When a step is complete. */
export interface Completeness {
  /** Workers that have to write it; Infinity while nobody knows how many there are. */
  readonly numWorkers: number
  /** Whether the job has ended: then every step is. */
  readonly ended: boolean
  /** When so many steps came after it and none of them is complete either, a step is no longer waited for. */
  readonly incompleteStepWindow: number
}

export class Steps {
  /** In ascending order. */
  readonly all: readonly Step[]
  /** The last complete step; -1 if there is none. */
  readonly lastComplete: number
  /** Workers that have to write a step; Infinity while nobody knows how many there are. */
  readonly numWorkers: number
  readonly #completeness: Completeness
  readonly #byMode = new Map<Mode, StepsOfMode>()

  /** @param all in ascending order */
  static async of(all: readonly Step[], completeness: Completeness): Promise<Steps> {
    const steps = new Steps(all, completeness)
    await inTurns(all, step => steps.#add(step))
    return steps
  }

  private constructor(all: readonly Step[], completeness: Completeness) {
    const { numWorkers, ended, incompleteStepWindow } = completeness
    this.all = all
    this.numWorkers = numWorkers
    this.#completeness = completeness
    const last = ended ? all.at(-1) : all.findLast(step => step.workers.length >= numWorkers)
    this.lastComplete = Math.max(last?.globalStep ?? -1, all.at(-1 - incompleteStepWindow)?.globalStep ?? -1)
  }

  #add(step: Step): void {
    for (const part of step.apart ?? [step]) {
      let ofMode = this.#byMode.get(part.mode)
      if (ofMode === undefined) {
        ofMode = new StepsOfMode()
        this.#byMode.set(part.mode, ofMode)
      }
      ofMode.add(part)
    }
  }

  /** The modes that steps were saved in, GLOBAL (no mode was set) left out. */
  get modes(): Mode[] {
    return [...this.#byMode.keys()].filter(mode => mode !== 'GLOBAL').sort()
  }

  /** How many global steps are complete: the first ones. */
  get completeCount(): number {
    return this.#countBefore(this.lastComplete + 1)
  }

  get(globalStep: number): Step | undefined {
    const step = this.all[this.#countBefore(globalStep)]
    return step?.globalStep === globalStep ? step : undefined
  }

  #countBefore(globalStep: number): number {
    let low = 0
    let high = this.all.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.all[middle]!.globalStep < globalStep) low = middle + 1
      else high = middle
    }
    return low
  }

  /**
   * The steps of that number: a global step for GLOBAL, whatever modes it was saved in, else a mode step, with the workers
   * that wrote it as that. Several global steps can have one mode step (workers count their own; a training was resumed;
   * scalars were saved after the mode had changed): the last comes first.
   */
  at(number: number, mode: Mode): readonly Step[] {
    if (checkMode(mode) !== 'GLOBAL') return this.#byMode.get(mode)?.at(number) ?? []
    const step = this.get(number)
    return step ? [step] : []
  }

  /** Step numbers in ascending order: global steps for GLOBAL, else mode steps of the mode. */
  numbers(mode: Mode, showIncomplete: boolean): number[] {
    if (checkMode(mode) === 'GLOBAL') {
      const count = showIncomplete ? this.all.length : this.completeCount
      return Array.from({ length: count }, (_, i) => this.all[i]!.globalStep)
    }
    const numbers = this.#byMode.get(mode)?.numbers ?? []
    return numbers.filter(number => showIncomplete || this.isComplete(number, mode))
  }

  /**
   * Whether a step that is there is complete. A global step: all workers wrote it, a later one is complete, the job has
   * ended, or too many steps came since. A step of a mode: the first global step that has it is complete, and every worker
   * that had begun the mode by then has reached it, since each counts the steps of a mode for itself. So what is complete
   * once remains so, and a worker that never was in the mode is not waited for.
   */
  isComplete(number: number, mode: Mode): boolean {
    if (mode === 'GLOBAL') return number <= this.lastComplete && this.get(number) !== undefined
    return this.#byMode.get(mode)?.isComplete(number, this.lastComplete, this.#completeness) ?? false
  }
}

/** The steps of one mode, as the workers wrote them. */
class StepsOfMode {
  /** The last of each number. */
  readonly #last = new Map<number, Step>()
  /** Of steps that have one number: the one before. */
  readonly #earlier = new Map<Step, Step>()
  /** From which global step on a worker wrote the mode, and how far it came in it. */
  readonly #workers = new Map<Worker, { readonly begunAt: number; reached: number }>()
  #numbers: readonly number[] | undefined

  /** In the order of global steps. */
  add(step: Step): void {
    const { globalStep, modeStep, workers } = step
    const earlier = this.#last.get(modeStep)
    if (earlier) this.#earlier.set(step, earlier)
    this.#last.set(modeStep, step)
    for (const worker of workers) {
      const known = this.#workers.get(worker)
      if (known === undefined) this.#workers.set(worker, { begunAt: globalStep, reached: modeStep })
      else if (known.reached < modeStep) known.reached = modeStep
    }
  }

  /** Ascending. */
  get numbers(): readonly number[] {
    this.#numbers ??= [...this.#last.keys()].sort((a, b) => a - b)
    return this.#numbers
  }

  /** The last first. */
  at(number: number): Step[] {
    const steps: Step[] = []
    for (let step = this.#last.get(number); step; step = this.#earlier.get(step)) steps.push(step)
    return steps
  }

  isComplete(number: number, lastComplete: number, { ended, incompleteStepWindow }: Completeness): boolean {
    const first = this.at(number).at(-1)
    if (first === undefined || ended) return first !== undefined
    if (first.globalStep > lastComplete) return false
    if (number <= (this.numbers.at(-1 - incompleteStepWindow) ?? -1)) return true
    for (const { begunAt, reached } of this.#workers.values()) {
      if (begunAt < first.globalStep && reached < number) return false
    }
    return true
  }
}
