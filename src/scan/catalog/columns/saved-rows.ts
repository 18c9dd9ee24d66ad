/** The rows of a catalog: index files by step, then worker, made into objects on demand. */

import type { TrialscanError } from '../../../base/errors.js'
import type { GlobalStep, Mode, ModeStep, Worker } from '../../../base/types.js'
import { modeInError } from '../../../format/index-file.js'
import type { Step, Written } from '../steps.js'
import { hasMode, type WorkerStep } from '../worker-steps.js'
import type { IndexColumns } from './index-columns.js'
import { NO_LIST, type SavedTensors } from './tensor-lists.js'

const NO_TENSORS: SavedTensors = new Map()

/** The rows of a trial, and the readable ones among them that can't be used. */
export interface IndexRows {
  readonly columns: IndexColumns
  /** The rows, in any order. */
  readonly rows: Int32Array
  readonly faults: ReadonlyMap<number, TrialscanError>
}

export class SavedRows {
  readonly #columns: IndexColumns
  readonly #rows: Int32Array
  readonly #faults: ReadonlyMap<number, TrialscanError>
  readonly #isTornasole: boolean

  constructor({ columns, rows, faults }: IndexRows, isTornasole: boolean) {
    this.#columns = columns
    this.#rows = inOrder(columns, rows)
    this.#faults = faults
    this.#isTornasole = isTornasole
  }

  get length(): number {
    return this.#rows.length
  }

  stepAt(place: number): GlobalStep {
    return this.#columns.step(this.#rows[place]!)
  }

  /** The distinct workers, sorted. */
  workers(): Worker[] {
    const isThere = new Uint8Array(this.#columns.workers.length)
    for (const row of this.#rows) isThere[this.#columns.workerNumber(row)] = 1
    return this.#columns.workers.filter((_, number) => isThere[number] === 1).sort()
  }

  /** The number of the list of tensors in a row. */
  listAt(place: number): number {
    const row = this.#rows[place]!
    return this.#faults.has(row) ? NO_LIST : this.#columns.list(row)
  }

  get listCount(): number {
    return this.#columns.lists.length
  }

  tensorsOf(list: number): SavedTensors {
    return this.#columns.lists.tensors(list)
  }

  /** The step according to its own index file. */
  writtenAt(place: number): Written {
    const row = this.#rows[place]!
    const [step, worker] = [this.#columns.step(row), this.#columns.worker(row)]
    const error = this.#faults.get(row) ?? this.#columns.error(row)
    const ownMode = error === null ? this.#columns.mode(row) : modeInError(error)
    const hasNone = ownMode === null || ownMode.modeStep < 0
    const { mode, modeStep } = hasNone ? { mode: 'GLOBAL' as const, modeStep: step } : ownMode
    return { step, worker, mode, modeStep: modeStep as ModeStep, error }
  }

  /** @param stepOf returns the step with that number */
  workerStepAt(place: number, stepOf: (globalStep: GlobalStep) => Step): WorkerStep {
    const written = this.writtenAt(place)
    const isTornasole = this.#isTornasole
    if (written.error === null) return new ReadStep(written, this.#columns, this.#rows[place]!, isTornasole)
    // An unreadable index file has no mode; those of other workers decide if they agree.
    const { mode, modeStep, apart } = stepOf(written.step)
    const ofMode = hasMode(written) || apart ? written : { ...written, mode, modeStep }
    return { ...ofMode, eventFile: '', tensors: NO_TENSORS, isTornasole }
  }
}

/** A worker's step, read from its index file. */
class ReadStep implements WorkerStep {
  readonly step: GlobalStep
  readonly worker: Worker
  readonly mode: Mode
  readonly modeStep: ModeStep
  readonly error = null
  readonly isTornasole: boolean
  readonly #columns: IndexColumns
  readonly #row: number
  #eventFile: string | undefined
  #tensors: SavedTensors | undefined

  constructor({ step, worker, mode, modeStep }: Written, columns: IndexColumns, row: number, isTornasole: boolean) {
    this.step = step
    this.worker = worker
    this.mode = mode
    this.modeStep = modeStep
    this.isTornasole = isTornasole
    this.#columns = columns
    this.#row = row
  }

  /** True if both come from one index file, read once. */
  isSame(other: ReadStep): boolean {
    return this.#columns === other.#columns && this.#row === other.#row
  }

  get eventFile(): string {
    this.#eventFile ??= this.#columns.eventFile(this.#row) ?? ''
    return this.#eventFile
  }

  get tensors(): SavedTensors {
    this.#tensors ??= this.#columns.lists.tensors(this.#columns.list(this.#row))
    return this.#tensors
  }
}

/** True if both objects are the same step. */
export function isSameStep(a: WorkerStep, b: WorkerStep): boolean {
  return a === b || (a instanceof ReadStep && b instanceof ReadStep && a.isSame(b))
}

/** Sorts rows by step, then worker. Most are sorted already. */
function inOrder(columns: IndexColumns, rows: Int32Array): Int32Array {
  const ranks = new Map([...columns.workers].sort().map((worker, rank) => [worker, rank]))
  const rankOf = Int32Array.from(columns.workers, worker => ranks.get(worker)!)
  const compare = (a: number, b: number): number =>
    columns.step(a) - columns.step(b) || rankOf[columns.workerNumber(a)]! - rankOf[columns.workerNumber(b)]!
  for (let i = 1; i < rows.length; i++) {
    if (compare(rows[i - 1]!, rows[i]!) > 0) return rows.slice().sort(compare)
  }
  return rows
}
