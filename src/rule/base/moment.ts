/** The moments that rules judge: a worker's steps, in sequences, and what a rule remembers of each sequence. */

import type { Catalog, WorkerStep } from '../../catalog/catalog.js'
import { stateOf, type Trial } from '../../trial/trial.js'
import type { GlobalStep, Mode, ModeStep, Worker } from '../../types.js'

/**
 * Which steps of a worker are judged as one sequence: those of one mode, or all of them. Steps of the mode GLOBAL are
 * those for which the job set none.
 */
export type Sequence = Mode | 'all'

/** A step of one worker, which is what a rule judges, and the sequence that it is judged in. */
export interface Moment {
  readonly step: GlobalStep
  readonly worker: Worker
  readonly mode: Mode
  readonly modeStep: ModeStep
  readonly sequence: Sequence
  /** Names worker and sequence. */
  readonly key: string
}

/** What a rule remembers of each sequence of each worker. */
export class Memory<S> {
  readonly #make: () => S
  readonly #known = new Map<string, S>()

  constructor(make: () => S) {
    this.#make = make
  }

  of({ key }: Moment): S {
    let known = this.#known.get(key)
    if (known === undefined) {
      known = this.#make()
      this.#known.set(key, known)
    }
    return known
  }
}

/** A worker's step, judged in a sequence. */
export function momentOf({ step, worker, mode, modeStep }: WorkerStep | Moment, sequence: Sequence): Moment {
  return { step, worker, mode, modeStep, sequence, key: `${sequence} ${worker}` }
}

/** The number by which steps of a sequence are counted. */
export function stepNumber({ step, modeStep }: WorkerStep | Moment, sequence: Sequence): number {
  return sequence === 'all' ? step : modeStep
}

/** Whether there are steps of TRAIN. */
export function hasTraining(trial: Trial): boolean {
  const { catalog } = stateOf(trial)
  let known = hasTrainingSteps.get(catalog)
  if (known === undefined) {
    known = catalog.workerSteps.some(({ mode }) => mode === 'TRAIN')
    hasTrainingSteps.set(catalog, known)
  }
  return known
}

const hasTrainingSteps = new WeakMap<Catalog, boolean>()

/** Steps of one worker, by the sequences that they are in. */
type StepsOfWorker = ReadonlyMap<Sequence, readonly WorkerStep[]>

/** By the steps at which a tensor was saved: all rules over a trial ask for the same, and tensors that were saved together have one list. */
const stepsBySequence = new WeakMap<readonly WorkerStep[], ReadonlyMap<Worker, StepsOfWorker>>()

/** Those of each worker. */
export function stepsOfWorkers(saved: readonly WorkerStep[]): ReadonlyMap<Worker, StepsOfWorker> {
  const known = stepsBySequence.get(saved)
  if (known) return known
  const byWorker = new Map<Worker, Map<Sequence, WorkerStep[]>>()
  for (const workerStep of saved) {
    let own = byWorker.get(workerStep.worker)
    if (own === undefined) {
      own = new Map()
      byWorker.set(workerStep.worker, own)
    }
    for (const sequence of ['all', workerStep.mode] as const) {
      const steps = own.get(sequence)
      if (steps) steps.push(workerStep)
      else own.set(sequence, [workerStep])
    }
  }
  stepsBySequence.set(saved, byWorker)
  return byWorker
}

/** Where a global step is among ascending ones; -1: nowhere. */
export function positionOf(step: number, steps: readonly WorkerStep[]): number {
  let low = 0
  let high = steps.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (steps[middle]!.step < step) low = middle + 1
    else high = middle
  }
  return steps[low]?.step === step ? low : -1
}
