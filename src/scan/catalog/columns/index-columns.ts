/** The index files of a trial in columns. Rows are only appended, so that older rows stay valid. */

import { float64Column, int32Column, uint8Column } from '../../../base/column.js'
import { TrialscanError } from '../../../base/errors.js'
import { type GlobalStep, MODES, type Worker } from '../../../base/types.js'
import type { IndexFile, Listed } from '../../../format/index-file.js'
import { eventFilePath } from '../../../format/paths.js'
import type { ReadIndexFile } from '../../job/index-job.js'
import { Interner } from '../../job/plan/interner.js'
import { NO_LIST, TensorLists } from './tensor-lists.js'

/** Marks an event file with the hook's own name, or the absence of one. */
const CANONICAL = -1
const NONE = -2

/** The content of an index file, with the number of its list. */
export interface ListedRow extends Pick<IndexFile, 'mode' | 'modeStep'> {
  /** The event file; undefined for the one with the hook's name. */
  readonly eventFile: string | null | undefined
  readonly list: number
}

export class IndexColumns {
  readonly lists = new TensorLists()
  readonly #workers = new Interner()
  readonly #eventFiles = new Interner()
  readonly #step = float64Column()
  readonly #worker = int32Column()
  readonly #mode = uint8Column()
  readonly #modeStep = float64Column()
  readonly #eventFile = int32Column()
  readonly #list = int32Column()
  /** The errors of unreadable index files, by row. */
  readonly #errors = new Map<number, TrialscanError>()
  /** The last content that was made: consecutive records often have the same index file. */
  #last: { readonly row: number; readonly content: IndexFile } | undefined

  /** The last list, by the object that all index files with that list share. */
  #lastListed: { readonly listed: Listed; readonly list: number } | undefined

  get length(): number {
    return this.#step.length
  }

  /** The names of workers, by their numbers. */
  get workers(): readonly Worker[] {
    return this.#workers.names
  }

  /** @returns the number of the row */
  add(step: GlobalStep, worker: Worker, content: IndexFile | TrialscanError): number {
    if (content instanceof TrialscanError) {
      this.#errors.set(this.length, content)
      return this.addListed(step, worker, { mode: 'GLOBAL', modeStep: 0, eventFile: null, list: NO_LIST })
    }
    const { mode, modeStep, eventFile, tensors, shapes } = content
    const isUsual = eventFile !== null && eventFile === eventFilePath(step, worker)
    const list = this.lists.add(tensors, shapes)
    return this.addListed(step, worker, { mode, modeStep, eventFile: isUsual ? undefined : eventFile, list })
  }

  /** Adds an index file that a job has read. @returns the number of the row */
  addRead(step: GlobalStep, worker: Worker, content: ReadIndexFile | TrialscanError): number {
    if (content instanceof TrialscanError) return this.add(step, worker, content)
    const { mode, modeStep, eventFile, listed } = content
    if (this.#lastListed?.listed !== listed) {
      const list = this.lists.add(listed.tensors, listed.shapes)
      this.#lastListed = { listed, list }
    }
    return this.addListed(step, worker, { mode, modeStep, eventFile, list: this.#lastListed.list })
  }

  /** Adds an index file whose list is known. @returns the number of the row */
  addListed(step: GlobalStep, worker: Worker, { mode, modeStep, eventFile, list }: ListedRow): number {
    const row = this.length
    this.#step.push(step)
    this.#worker.push(this.#workers.number(worker))
    this.#mode.push(MODES.indexOf(mode))
    this.#modeStep.push(modeStep)
    this.#eventFile.push(
      eventFile === undefined ? CANONICAL : eventFile === null ? NONE : this.#eventFiles.number(eventFile),
    )
    this.#list.push(list)
    return row
  }

  step(row: number): GlobalStep {
    return this.#step.at(row) as GlobalStep
  }

  worker(row: number): Worker {
    return this.#workers.names[this.#worker.at(row)]!
  }

  /** The worker's number; equal names have equal numbers. */
  workerNumber(row: number): number {
    return this.#worker.at(row)
  }

  list(row: number): number {
    return this.#list.at(row)
  }

  /** The error of an index file; null if it can be read. */
  error(row: number): TrialscanError | null {
    return this.#errors.get(row) ?? null
  }

  /** The mode of an index file. */
  mode(row: number): Pick<IndexFile, 'mode' | 'modeStep'> {
    return { mode: MODES[this.#mode.at(row)]!, modeStep: this.#modeStep.at(row) }
  }

  eventFile(row: number): string | null {
    const number = this.#eventFile.at(row)
    if (number === NONE) return null
    return number === CANONICAL ? eventFilePath(this.step(row), this.worker(row)) : this.#eventFiles.names[number]!
  }

  /** A row for other columns, with the number of its list here. */
  listed(row: number): ListedRow {
    const number = this.#eventFile.at(row)
    const eventFile = number === CANONICAL ? undefined : number === NONE ? null : this.#eventFiles.names[number]!
    return { ...this.mode(row), eventFile, list: this.list(row) }
  }

  /** True if the event file has the hook's name for the step, or if there is none. */
  isCanonical(row: number): boolean {
    return this.#eventFile.at(row) < 0
  }

  /** The content of an index file, or its error. */
  content(row: number): IndexFile | TrialscanError {
    const error = this.error(row)
    if (error !== null) return error
    if (this.#last?.row !== row) this.#last = { row, content: this.#contentOf(row) }
    return this.#last.content
  }

  #contentOf(row: number): IndexFile {
    // A verification of links asks for it millions of times: spreads take ten times as long.
    const { mode, modeStep } = this.mode(row)
    const list = this.list(row)
    const tensors = this.lists.locations(list)
    return { mode, modeStep, eventFile: this.eventFile(row), tensors, shapes: this.lists.shapes(list) }
  }
}
