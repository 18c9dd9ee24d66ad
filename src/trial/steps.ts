/** Steps: which there are, in which mode, and which are complete. Source: format.md "Collections file", rules.md §3. */

import { UsageError } from '../errors.js'
import { type GlobalStep, MODES, type Mode, type ModeStep, type Worker } from '../types.js'
import { inTurns } from './turns.js'

/** A step that at least one worker wrote. */
export interface Step {
  readonly globalStep: GlobalStep
  readonly mode: Mode
  readonly modeStep: ModeStep
  readonly workers: readonly Worker[]
}

/** Which steps are asked for. */
export interface StepOptions {
  /** GLOBAL, the default: all, by their global numbers; else those of the mode, by their numbers within it. */
  readonly mode?: Mode
  /** Also steps that not all workers have written yet. */
  readonly showIncompleteSteps?: boolean
}

/** @throws UsageError for what is no mode */
export function checkMode(mode: Mode): Mode {
  if (MODES.includes(mode)) return mode
  throw new UsageError(`expected mode to be one of ${MODES.join(', ')}, got ${JSON.stringify(mode)}`, { mode })
}

/** When a step is complete. */
export interface Completeness {
  /** Workers that have to write it. */
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
  readonly #byGlobalStep = new Map<number, Step>()
  readonly #byModeStep = new Map<Mode, Map<number, Step>>()
  /** Of steps that have one mode step: the one before. */
  readonly #earlier = new Map<Step, Step>()

  /** @param all in ascending order */
  static async of(all: readonly Step[], completeness: Completeness): Promise<Steps> {
    const steps = new Steps(all, completeness)
    await inTurns(all, step => steps.#add(step))
    return steps
  }

  private constructor(all: readonly Step[], { numWorkers, ended, incompleteStepWindow }: Completeness) {
    this.all = all
    const last = ended ? all.at(-1) : all.findLast(step => step.workers.length >= numWorkers)
    this.lastComplete = Math.max(last?.globalStep ?? -1, all.at(-1 - incompleteStepWindow)?.globalStep ?? -1)
  }

  #add(step: Step): void {
    this.#byGlobalStep.set(step.globalStep, step)
    let steps = this.#byModeStep.get(step.mode)
    if (steps === undefined) {
      steps = new Map()
      this.#byModeStep.set(step.mode, steps)
    }
    // Two global steps with one mode step (a training that was resumed, scalars saved after the mode has changed): the later
    // one counts.
    const earlier = steps.get(step.modeStep)
    if (earlier) this.#earlier.set(step, earlier)
    steps.set(step.modeStep, step)
  }

  /** The modes that steps were saved in, GLOBAL (no mode was set) left out. */
  get modes(): Mode[] {
    return [...this.#byModeStep.keys()].filter(mode => mode !== 'GLOBAL').sort()
  }

  get(globalStep: number): Step | undefined {
    return this.#byGlobalStep.get(globalStep)
  }

  /** The step of that number: a global step for GLOBAL, whatever mode it was saved in, else a mode step. */
  find(step: number, mode: Mode): Step | undefined {
    return checkMode(mode) === 'GLOBAL' ? this.get(step) : this.#byModeStep.get(mode)?.get(step)
  }

  /** The last step before it that has the same number in its mode; seldom there is one. */
  earlier(step: Step): Step | undefined {
    return this.#earlier.get(step)
  }

  /** Step numbers in ascending order: global steps for GLOBAL, else mode steps of the mode. */
  numbers(mode: Mode, showIncomplete: boolean): number[] {
    const steps = this.all.filter(step => showIncomplete || this.isComplete(step))
    if (checkMode(mode) === 'GLOBAL') return steps.map(({ globalStep }) => globalStep)
    const numbers = steps.filter(step => step.mode === mode).map(({ modeStep }) => modeStep as number)
    return [...new Set(numbers)].sort((a, b) => a - b)
  }

  /** Complete: all workers wrote it, a later step is complete, the job has ended, or too many steps came since. */
  isComplete(step: Step): boolean {
    return step.globalStep <= this.lastComplete
  }
}
