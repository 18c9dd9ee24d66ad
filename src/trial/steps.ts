/** Steps: which there are, in which mode, and which are complete. Source: format.md "Collections file", rules.md §3. */

import type { GlobalStep, Mode, ModeStep, Worker } from '../types.js'

/** A step that at least one worker wrote. */
export interface Step {
  readonly globalStep: GlobalStep
  readonly mode: Mode
  readonly modeStep: ModeStep
  readonly workers: readonly Worker[]
}

export class Steps {
  /** In ascending order. */
  readonly all: readonly Step[]
  /** The last step that all workers wrote, or after which the job ended; -1 if there is none. */
  readonly lastComplete: number
  readonly #byGlobalStep: ReadonlyMap<number, Step>
  readonly #byModeStep: ReadonlyMap<Mode, ReadonlyMap<number, Step>>

  /**
   * @param all in ascending order
   * @param numWorkers workers that a complete step needs
   * @param ended whether the job has ended: then every step is complete
   */
  constructor(all: readonly Step[], numWorkers: number, ended: boolean) {
    this.all = all
    const last = ended ? all.at(-1) : all.findLast(step => step.workers.length >= numWorkers)
    this.lastComplete = last?.globalStep ?? -1
    this.#byGlobalStep = new Map(all.map(step => [step.globalStep, step]))
    const byModeStep = new Map<Mode, Map<number, Step>>()
    for (const step of all) {
      let steps = byModeStep.get(step.mode)
      if (steps === undefined) {
        steps = new Map()
        byModeStep.set(step.mode, steps)
      }
      // Two global steps with one mode step (a training that was resumed): the later one counts.
      steps.set(step.modeStep, step)
    }
    this.#byModeStep = byModeStep
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
    return mode === 'GLOBAL' ? this.get(step) : this.#byModeStep.get(mode)?.get(step)
  }

  /** Step numbers in ascending order: global steps for GLOBAL, else mode steps of the mode. */
  numbers(mode: Mode, showIncomplete: boolean): number[] {
    const steps = this.all.filter(step => showIncomplete || this.isComplete(step))
    if (mode === 'GLOBAL') return steps.map(({ globalStep }) => globalStep)
    const numbers = steps.filter(step => step.mode === mode).map(({ modeStep }) => modeStep as number)
    return [...new Set(numbers)].sort((a, b) => a - b)
  }

  /** Complete: all workers wrote it, or a later step is complete, or the job has ended. */
  isComplete(step: Step): boolean {
    return step.globalStep <= this.lastComplete
  }
}
