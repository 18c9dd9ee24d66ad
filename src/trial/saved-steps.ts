/** The steps at which a tensor was saved, by which workers, and why not at others. */

import { expectStep } from '../base/arguments.js'
import { InvalidWorker, TensorUnavailableForStep, type TrialscanError } from '../base/errors.js'
import { entryOf } from '../base/maps.js'
import type { Mode, Worker } from '../base/types.js'
import type { SavedTensor } from '../scan/catalog/columns/tensor-lists.js'
import type { TrialState } from '../scan/catalog/state.js'
import { checkMode } from '../scan/catalog/steps.js'
import {
  inOrderOfWorkers,
  NO_WORKER_STEPS,
  type WorkerStep,
  type WorkerSteps,
  workersOf,
} from '../scan/catalog/worker-steps.js'

/** A tensor of one worker at a step. */
export interface SavedAtStep {
  readonly workerStep: WorkerStep
  readonly saved: SavedTensor
}

/** The steps at which one tensor was saved. */
export class SavedSteps {
  readonly #name: string
  readonly #state: TrialState

  constructor(name: string, state: TrialState) {
    this.#name = name
    this.#state = state
  }

  /** The numbers of its steps in a mode, ascending. @param isAll true to include steps that not all workers have written yet */
  numbers(mode: Mode, isAll: boolean): number[] {
    const { steps } = this.#state.catalog
    const ofMode = new Set<number>()
    for (const workerStep of this.#ofMode(mode)) ofMode.add(stepNumberOf(workerStep, mode))
    return [...ofMode].filter(step => isAll || steps.isComplete(step, mode)).sort((a, b) => a - b)
  }

  /** The steps of workers that have the tensor, in the order of global steps, then workers. */
  get workerSteps(): WorkerSteps {
    return this.#state.catalog.byTensor.get(this.#name) ?? NO_WORKER_STEPS
  }

  /** The steps of workers that have the tensor in a mode, in the order of global steps, then workers. */
  #ofMode(mode: Mode): WorkerSteps {
    if (checkMode(mode) === 'GLOBAL') return this.workerSteps
    return this.workerSteps.filter(workerStep => workerStep.mode === mode)
  }

  /** The tensor at each complete step of a mode, from one worker each: the given one, or the first that saved it. */
  all(
    mode: Mode,
    worker: Worker | undefined,
    has: (saved: SavedTensor) => boolean,
  ): (readonly [number, SavedAtStep])[] {
    const byNumber = new Map<number, WorkerStep[]>()
    for (const workerStep of this.#ofMode(mode)) {
      if (worker !== undefined && workerStep.worker !== worker) continue
      const number = stepNumberOf(workerStep, mode)
      entryOf(byNumber, number, () => []).push(workerStep)
    }
    const { steps } = this.#state.catalog
    return [...byNumber]
      .filter(([number]) => steps.isComplete(number, mode))
      .sort(([a], [b]) => a - b)
      .map(([number, workerSteps]) => {
        const all = this.#savedOf(inOrderOfWorkers(workerSteps.reverse()))
        return [number, all.find(({ saved }) => has(saved)) ?? all[0]!] as const
      })
  }

  /** Finds the tensor of a worker at a step (by default, of the first that has it). Looks for new steps first if the step is unknown. */
  find(
    step: number,
    mode: Mode,
    worker: Worker | undefined,
    has: (saved: SavedTensor) => boolean,
  ): SavedAtStep | Promise<SavedAtStep> {
    expectStep(step)
    const savedStep = this.#state.isAtHand(step, mode) ? this.#look(step, mode, worker, has) : undefined
    return savedStep !== undefined && has(savedStep.saved) ? savedStep : this.#findLater(step, mode, worker, has)
  }

  async #findLater(
    step: number,
    mode: Mode,
    worker: Worker | undefined,
    has: (saved: SavedTensor) => boolean,
  ): Promise<SavedAtStep> {
    await this.#state.expectStep(step, mode)
    let savedStep = this.#look(step, mode, worker, has)
    const hasFound = () => savedStep !== undefined && has(savedStep.saved)
    if (!hasFound() && (await this.#state.lookAgain(step, mode))) savedStep = this.#look(step, mode, worker, has)
    if (savedStep !== undefined && (has(savedStep.saved) || !this.#state.awaits(step, mode, worker))) return savedStep
    throw this.noneAt(step, mode, worker)
  }

  /** The first worker that has the tensor, or else the first of the candidates. */
  #look(
    step: number,
    mode: Mode,
    worker: Worker | undefined,
    has: (saved: SavedTensor) => boolean,
  ): SavedAtStep | undefined {
    let first: SavedAtStep | undefined
    for (const workerStep of this.#state.catalog.at(step, mode)) {
      if (worker !== undefined && workerStep.worker !== worker) continue
      const saved = workerStep.tensors.get(this.#name)
      if (saved === undefined) continue
      if (has(saved)) return { workerStep, saved }
      first ??= { workerStep, saved }
    }
    return first
  }

  /** The tensor at a step, for each worker that saved it. If several global steps have this mode step, each worker's last comes first. */
  at(step: number, mode: Mode): SavedAtStep[] {
    return this.#savedOf(this.#state.catalog.at(step, mode))
  }

  /** The reason why a worker, or any, lacks the tensor at a known step. */
  noneAt(step: number, mode: Mode, worker?: Worker): TrialscanError {
    const { catalog } = this.#state
    // The tensors and modes of an unreadable index file are unknown.
    const broken = catalog.steps
      .at(step, mode)
      .flatMap(({ globalStep }) => catalog.atStep(globalStep))
      .find(saved => saved.error !== null && (worker ?? saved.worker) === saved.worker)
    if (broken?.error) return broken.error
    if (this.#state.awaits(step, mode, worker)) return this.#state.notYetOf(step, mode, worker)
    const workers = workersOf(this.at(step, mode).map(({ workerStep }) => workerStep))
    if (worker !== undefined && workers.length > 0) return new InvalidWorker(worker, workers)
    const ofMode = this.numbers(mode, true)
    const more = ofMode.length > 8 ? ` and ${ofMode.length - 8} more` : ''
    const others = ofMode.slice(0, 8).join(', ') || 'none'
    return new TensorUnavailableForStep(
      this.#name,
      step,
      mode,
      `it was not saved then; steps that have it: ${others}${more}`,
    )
  }

  #savedOf(workerSteps: readonly WorkerStep[]): SavedAtStep[] {
    return workerSteps.flatMap(workerStep => {
      const saved = workerStep.tensors.get(this.#name)
      return saved ? [{ workerStep, saved }] : []
    })
  }
}

/** A step's number: the global step for GLOBAL, else its number within the mode. */
function stepNumberOf({ step, modeStep }: WorkerStep, mode: Mode): number {
  return mode === 'GLOBAL' ? step : modeStep
}
