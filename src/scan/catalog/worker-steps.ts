/** The steps of workers. There may be a million: each becomes an object on demand. */

import { type Column, int32Column } from '../../base/column.js'
import type { TrialscanError } from '../../base/errors.js'
import { countBelow } from '../../base/sorted.js'
import type { GlobalStep, Mode, ModeStep, Worker } from '../../base/types.js'
import { modeInError, type TensorLocation } from '../../format/index-file.js'
import type { ListedPlaces, RecordPlace, RecordRun, RowPlace } from '../job/plan/coalesce.js'
import type { SavedTensors } from './columns/tensor-lists.js'

/** The tensors that one worker saved at one step. */
export interface WorkerStep {
  readonly step: GlobalStep
  readonly worker: Worker
  readonly mode: Mode
  readonly modeStep: ModeStep
  /** The path relative to the trial; empty if only shapes were saved. */
  readonly eventFile: string
  /** The tensors, in the order of the index file. */
  readonly tensors: SavedTensors
  /** The error of an unreadable index file; `tensors` is empty then. */
  readonly error: TrialscanError | null
  /** True for a Tornasole trial, which labelled float16 as int32. */
  readonly isTornasole: boolean
}

/** Everything that workers saved, by index, in the order of steps, then workers' names. */
export interface AllWorkerSteps {
  readonly length: number
  stepAt(place: number): GlobalStep
  workerStepAt(place: number): WorkerStep
}

/** All or some of what workers saved, in the order of steps, then workers' names. */
export class WorkerSteps implements Iterable<WorkerStep> {
  readonly #all: AllWorkerSteps
  /** The indices, ascending; null for all. */
  readonly #places: Int32Array | null
  readonly length: number

  constructor(all: AllWorkerSteps, places: Int32Array | null = null) {
    this.#all = all
    this.#places = places
    this.length = places?.length ?? all.length
  }

  /** The steps at some of the positions, ascending. */
  ofAll(places: Int32Array): WorkerSteps {
    return new WorkerSteps(this.#all, places)
  }

  at(i: number): WorkerStep | undefined {
    const from = i < 0 ? this.length + i : i
    return from >= 0 && from < this.length ? this.#all.workerStepAt(this.#placeOf(from)) : undefined
  }

  /** The global step at a position; undefined beyond the end. */
  stepAt(i: number): GlobalStep | undefined {
    return i >= 0 && i < this.length ? this.#all.stepAt(this.#placeOf(i)) : undefined
  }

  *[Symbol.iterator](): Generator<WorkerStep> {
    for (let i = 0; i < this.length; i++) yield this.#all.workerStepAt(this.#placeOf(i))
  }

  some(is: (workerStep: WorkerStep) => boolean): boolean {
    for (const workerStep of this) if (is(workerStep)) return true
    return false
  }

  filter(isWanted: (workerStep: WorkerStep) => boolean): WorkerSteps {
    return this.groupBy(workerStep => (isWanted(workerStep) ? ['wanted'] : [])).get('wanted') ?? NO_WORKER_STEPS
  }

  /** Groups the steps by key; a step can have several keys. */
  groupBy<K>(keysOf: (workerStep: WorkerStep) => readonly K[]): Map<K, WorkerSteps> {
    const groups = new Map<K, Column<Int32Array>>()
    for (let i = 0; i < this.length; i++) {
      const place = this.#placeOf(i)
      for (const key of keysOf(this.#all.workerStepAt(place))) {
        const group = groups.get(key) ?? int32Column()
        if (group.length === 0) groups.set(key, group)
        group.push(place)
      }
    }
    return new Map(
      [...groups].map(([key, group]) => [key, group.length === this.length ? this : this.ofAll(group.numbers)]),
    )
  }

  /** The distinct global steps, ascending. */
  globalSteps(): GlobalStep[] {
    const steps: GlobalStep[] = []
    for (let i = 0; i < this.length; i++) {
      const step = this.#all.stepAt(this.#placeOf(i))
      if (step !== steps.at(-1)) steps.push(step)
    }
    return steps
  }

  /** The number of steps before a global step. */
  before(globalStep: number): number {
    return countBelow(this.length, i => this.stepAt(i)! < globalStep)
  }

  #placeOf(i: number): number {
    return this.#places === null ? i : this.#places[i]!
  }
}

/** No steps of workers. */
export const NO_WORKER_STEPS = new WorkerSteps({
  length: 0,
  stepAt: expectNone,
  workerStepAt: expectNone,
})

function expectNone(place: number): never {
  throw new RangeError(`expected no place, got ${place}`)
}

/** Sorts by worker; the order of steps is kept. */
export function inOrderOfWorkers(workerSteps: readonly WorkerStep[]): WorkerStep[] {
  return [...workerSteps].sort((a, b) => (a.worker < b.worker ? -1 : a.worker > b.worker ? 1 : 0))
}

/** The distinct workers, sorted. */
export function workersOf(workerSteps: Iterable<Pick<WorkerStep, 'worker'>>): Worker[] {
  const workers = new Set<Worker>()
  for (const { worker } of workerSteps) workers.add(worker)
  return [...workers].sort()
}

/** True if the index file has the mode. */
export function hasMode({ error }: Pick<WorkerStep, 'error'>): boolean {
  return error === null || modeInError(error) !== null
}

/** The place of a saved tensor's record, and its expected content. `row`: the row that has only this record. */
export function recordPlace(
  { eventFile, step, isTornasole }: WorkerStep,
  { name, startByte, byteLength, eventFile: ownFile }: TensorLocation,
  row: RowPlace | null = null,
): RecordPlace {
  return { file: ownFile ?? eventFile, tag: name, startByte, byteLength, step, tornasole: isTornasole, row }
}

/** The records of a list of saved tensors. */
export function recordRun(workerStep: WorkerStep, list: ListedPlaces): RecordRun {
  const { eventFile, step, isTornasole } = workerStep
  return { list, file: eventFile, step, tornasole: isTornasole, row: workerStep }
}
