/** The moments that rules judge (steps of workers in sequences), and a rule's memory of each sequence. */

import { entryOf } from '../../base/maps.js'
import type { GlobalStep, Mode, ModeStep, Worker } from '../../base/types.js'
import type { Catalog } from '../../scan/catalog/catalog.js'
import type { WorkerStep, WorkerSteps } from '../../scan/catalog/worker-steps.js'
import { stateOf, type Trial } from '../../trial/trial.js'

/**
 * The steps of a worker that are judged as one sequence: those of one mode, or all. GLOBAL is the mode of steps for which the job set
 * none.
 */
export type Sequence = Mode | 'all'

/** A step of one worker, and the sequence in which a rule judges it. */
export interface Moment {
  readonly step: GlobalStep
  readonly worker: Worker
  readonly mode: Mode
  readonly modeStep: ModeStep
  readonly sequence: Sequence
  /** Identifies worker and sequence. */
  readonly key: string
}

/** A rule's state for each sequence of each worker. */
export class Memory<S> {
  readonly #make: () => S
  readonly #states = new Map<string, S>()

  constructor(make: () => S) {
    this.#make = make
  }

  of({ key }: Moment): S {
    return entryOf(this.#states, key, this.#make)
  }
}

export function momentOf({ step, worker, mode, modeStep }: WorkerStep | Moment, sequence: Sequence): Moment {
  return { step, worker, mode, modeStep, sequence, key: `${sequence} ${worker}` }
}

/** The number of a step in its sequence: the global step or the mode step. */
export function stepNumber({ step, modeStep }: WorkerStep | Moment, sequence: Sequence): number {
  return sequence === 'all' ? step : modeStep
}

/** True if the trial has TRAIN steps. */
export function hasTraining(trial: Trial): boolean {
  const { catalog } = stateOf(trial)
  return entryOf(hasTrainingSteps, catalog, () => catalog.workerSteps.some(({ mode }) => mode === 'TRAIN'))
}

const hasTrainingSteps = new WeakMap<Catalog, boolean>()

/** Steps of one worker by sequence. */
type StepsOfWorker = ReadonlyMap<Sequence, WorkerSteps>

/** The result for each list of steps. All rules need the same, and tensors that were saved together share a list. */
const stepsBySequence = new WeakMap<WorkerSteps, ReadonlyMap<Worker, StepsOfWorker>>()

/** A tensor's steps, by worker and sequence. */
export function stepsOfWorkers(saved: WorkerSteps): ReadonlyMap<Worker, StepsOfWorker> {
  return entryOf(stepsBySequence, saved, () => {
    const byWorker = new Map<Worker, StepsOfWorker>()
    for (const [worker, all] of saved.groupBy(({ worker }) => [worker])) {
      byWorker.set(worker, new Map<Sequence, WorkerSteps>([['all', all], ...all.groupBy(({ mode }) => [mode])]))
    }
    return byWorker
  })
}

/** The index of a global step in an ascending list; -1 if it is absent. */
export function positionOf(step: number, steps: WorkerSteps): number {
  const position = steps.before(step)
  return steps.stepAt(position) === step ? position : -1
}
