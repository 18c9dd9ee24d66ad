/** Trials without index files: catalog entries made from the event files themselves. */

import { errorFromData, type TrialscanError } from '../../../base/errors.js'
import { countBelow } from '../../../base/sorted.js'
import type { GlobalStep } from '../../../base/types.js'
import { type IndexFile, modeOfRecord, type TensorLocation } from '../../../format/index-file.js'
import {
  EVENTS_DIRECTORY,
  type EventFileName,
  isTemporary,
  isTensorBoardFile,
  parseEventFileName,
  runOf,
} from '../../../format/paths.js'
import { duplicateError, isEventFile, TrialFiles } from '../../../format/trial-files.js'
import type { SurveyedFile } from '../../job/survey-job.js'
import type { Access } from '../../runner/access.js'
import { runOnFiles } from '../../runner/failed-job.js'
import { chunksOf, pumpAll } from '../../runner/pump.js'
import { runTwice } from '../../runner/runner.js'
import { IndexColumns } from '../columns/index-columns.js'
import type { IndexRows } from '../columns/saved-rows.js'
import { listParts, listPlain } from './no-trial.js'

/** The number of event files that one job scans. */
const FILES_PER_JOB = 32
/** The number of files from which threads pay off. */
const MANY_FILES = 64

/** The facts about an event file. */
interface KnownFile {
  readonly path: string
  /** The name; null for TensorBoard's files, whose Events have the steps. */
  readonly name: EventFileName | null
  /** The scans of the file, in order; a growing file has several. */
  scans: SurveyedFile[]
  /** The reason why nothing of it could be read. */
  error: TrialscanError | null
}

/** The event files of a trial. */
export class UnindexedEvents {
  readonly #access: Access
  readonly #threads: number | undefined
  readonly #isWanted: (step: number) => boolean
  readonly #keepsAbandoned: boolean
  /** The files by path, in order. */
  readonly #files = new Map<string, KnownFile>()
  /** The errors of directories that should contain event files. */
  #places: readonly TrialscanError[] = []
  /** Superseded event files, each with its successor. */
  #duplicates: ReadonlyMap<string, string> = new Map()
  #writer: 'smdebug' | 'TensorBoard' | null = null
  #everything: readonly string[] | null = null

  /** @param keepsAbandoned true to keep steps that a restart of the training has abandoned */
  constructor(
    access: Access,
    threads: number | undefined,
    isWanted: (step: number) => boolean,
    keepsAbandoned: boolean,
  ) {
    this.#keepsAbandoned = keepsAbandoned
    this.#access = access
    this.#threads = threads
    this.#isWanted = isWanted
  }

  /** The writer of the event files; null while there are none. Files of unwanted steps count, too. */
  get writer(): 'smdebug' | 'TensorBoard' | null {
    return this.#writer
  }

  /** All files, if they were listed in search of TensorBoard's and there were none. */
  get everything(): readonly string[] | null {
    return this.#everything
  }

  /**
   * Scans new event files, and what was appended to others.
   * @param isPlain true if smdebug's files are missing, so that TensorBoard's are searched for
   * @param listed all files, if they were listed
   * @returns true if something was found
   */
  async load(isPlain: boolean, listed?: readonly string[]): Promise<boolean> {
    const { store } = this.#access
    const { paths, problems } = isPlain
      ? { paths: listed ?? (await listPlain(store)), problems: [] }
      : await listParts(store, EVENTS_DIRECTORY, isEventFile)
    this.#places = problems
    const duplicates = isPlain ? new Map<string, string>() : new TrialFiles(paths).eventDuplicates
    const isChanged = duplicates.size !== this.#duplicates.size
    this.#duplicates = duplicates
    // A file may have counted until its successor came.
    for (const path of duplicates.keys()) this.#files.delete(path)
    const jobs: { readonly file: KnownFile; readonly startByte: number }[] = []
    for (const path of paths) {
      if (isTemporary(path) || duplicates.has(path)) continue
      const name = isPlain ? null : parseEventFileName(path)
      if (isPlain ? !isTensorBoardFile(path) : name === null) continue
      this.#writer = isPlain ? 'TensorBoard' : 'smdebug'
      if (name !== null && !this.#isWanted(name.step)) continue
      const known = this.#files.get(path)
      if (known === undefined) {
        const file = { path, name, scans: [], error: null }
        this.#files.set(path, file)
        jobs.push({ file, startByte: 0 })
      } else {
        const startByte = await this.#continuation(known)
        if (startByte !== null) jobs.push({ file: known, startByte })
      }
    }
    this.#everything = isPlain && this.#writer === null ? paths : null
    return (await this.#scan(jobs)) || isChanged
  }

  /** The rows that index files would have. */
  rows(): IndexRows {
    const columns = new IndexColumns()
    if (this.#writer === 'TensorBoard') this.#addRuns(columns)
    else for (const file of this.#files.values()) addStep(columns, file)
    return { columns, rows: Int32Array.from({ length: columns.length }, (_, row) => row), faults: new Map() }
  }

  /** Unreadable records of files with readable ones. */
  problems(): TrialscanError[] {
    const { store } = this.#access
    const duplicates = [...this.#duplicates].map(([path, taken]) => duplicateError(store.url(path), path, taken))
    const ofRecords = [...this.#files.values()].flatMap(({ name, scans, error }) => {
      if (error !== null) return name === null ? [error] : []
      // An error that concerns all records is in the file's entry.
      if (name !== null && scans.every(({ tag }) => tag.length === 0)) return []
      return scans.flatMap(scan => scan.problems.map(errorFromData))
    })
    return [...this.#places, ...duplicates, ...ofRecords]
  }

  /** The position from which a known file is scanned again; null if nothing is new. */
  async #continuation({ path, name, scans, error }: KnownFile): Promise<number | null> {
    const last = scans.at(-1)
    if (error !== null || last === undefined) return 0
    // smdebug's files are complete when they get their name; an incomplete one was cut off or is being copied.
    if (name !== null && last.scannedByteLength === last.byteLength) return null
    const byteLength = await this.#access.store.byteLength(path)
    if (byteLength === last.byteLength) return null
    return byteLength < last.scannedByteLength ? 0 : last.scannedByteLength
  }

  /** @returns true if something was found that is not a file which was unreadable before */
  async #scan(jobs: readonly { readonly file: KnownFile; readonly startByte: number }[]): Promise<boolean> {
    if (jobs.length === 0) return false
    let isNew = false
    const many = jobs.length >= MANY_FILES
    const { isRemote, store } = this.#access
    const runner = await this.#access.runner(isRemote ? 0 : this.#threads, many ? Number.POSITIVE_INFINITY : 0)
    const scan = async (some: typeof jobs) => {
      const scans = await runOnFiles(
        some,
        jobs => {
          const files = jobs.map(({ file, startByte }) => ({ path: file.path, startByte }))
          return runTwice(runner, { kind: 'survey', store: this.#access.spec, files })
        },
        ({ file }) => store.url(file.path),
      )
      return { some, scans }
    }
    for await (const { some, scans } of pumpAll(chunksOf(jobs, FILES_PER_JOB), scan, runner)) {
      for (const [i, { file, startByte }] of some.entries()) {
        const scan = scans[i]!
        const isError = scan instanceof Error
        isNew ||= file.error === null || !isError
        file.error = isError ? scan : null
        if (isError) file.scans = []
        else file.scans = [...(startByte === 0 ? [] : file.scans.map(withoutTornTail)), scan]
      }
    }
    return isNew
  }

  /** Adds the steps of TensorBoard event files: everything that a run logged under one number. */
  #addRuns(columns: IndexColumns): void {
    type Run = Map<number, { path: string; tensors: Map<string, TensorLocation> }>
    const runs = new Map<string, Run>()
    const isAbandoned = this.#keepsAbandoned ? () => false : abandonment([...this.#files.values()])
    for (const { path, scans } of this.#files.values()) {
      const run: Run = runs.get(runOf(path)) ?? new Map()
      runs.set(runOf(path), run)
      for (const scan of scans) {
        for (let i = 0; i < scan.tag.length; i++) {
          const step = scan.step[i]!
          if (!this.#isWanted(step) || isAbandoned(scan, i)) continue
          const location = locationOf(scan, i)
          const known = run.get(step)
          if (known === undefined) run.set(step, { path, tensors: new Map([[location.name, location]]) })
          // After a restart a step comes again; the last one counts.
          else known.tensors.set(location.name, known.path === path ? location : { ...location, eventFile: path })
        }
      }
    }
    for (const [worker, steps] of runs) {
      for (const [step, { path, tensors }] of steps) {
        const content = {
          mode: 'GLOBAL',
          modeStep: step,
          eventFile: path,
          tensors: [...tensors.values()],
          shapes: [],
        } as const
        columns.add(step as GlobalStep, worker, content)
      }
    }
  }
}

/**
 * A test for Values that a restart of the training has abandoned: as in TensorBoard, Values of a run before a SessionLog START that have
 * its step or a later one.
 * @param files in the order of writing, run by run
 */
function abandonment(files: readonly KnownFile[]): (scan: SurveyedFile, i: number) => boolean {
  /** The lowest step at which the training starts there or later, for the starts and the end of each scan. */
  const floors = new Map<SurveyedFile, Float64Array>()
  const lowest = new Map<string, number>()
  for (const { path, scans } of files.toReversed()) {
    const run = runOf(path)
    let floor = lowest.get(run) ?? Number.POSITIVE_INFINITY
    for (const scan of scans.toReversed()) {
      const ofScan = new Float64Array(scan.starts.length + 1).fill(floor)
      for (let i = scan.starts.length - 1; i >= 0; i--) {
        floor = Math.min(floor, scan.starts[i]!.step)
        ofScan[i] = floor
      }
      floors.set(scan, ofScan)
    }
    lowest.set(run, floor)
  }
  return (scan, i) => {
    const { starts } = scan
    const before = countBelow(starts.length, start => starts[start]!.startByte < scan.startByte[i]!)
    return scan.step[i]! >= floors.get(scan)![before]!
  }
}

/** The step of one of smdebug's event files. */
function addStep(columns: IndexColumns, { path, name, scans, error }: KnownFile): void {
  const { step, worker } = name!
  const tensors: TensorLocation[] = []
  let firstMode: { readonly mode: number; readonly modeStep: number } | undefined
  for (const scan of scans) {
    for (let i = 0; i < scan.tag.length; i++) {
      tensors.push(locationOf(scan, i))
      // smdebug's index has the mode of the first record: scalars come last, and may have the next mode.
      const [mode, modeStep] = [scan.mode[i]!, scan.modeStep[i]!]
      if (mode !== 0) firstMode ??= { mode, modeStep }
    }
  }
  const failure = error ?? firstProblem(scans)
  const content: IndexFile = {
    ...modeOfRecord(firstMode, step),
    eventFile: path,
    tensors,
    shapes: [],
  }
  columns.add(step, worker, failure !== null && tensors.length === 0 ? failure : content)
}

function firstProblem(scans: readonly SurveyedFile[]): TrialscanError | null {
  const problem = scans.flatMap(({ problems }) => problems)[0]
  return problem ? errorFromData(problem) : null
}

/** A scan that was continued: its last problem, the incomplete record, is gone. */
function withoutTornTail(scan: SurveyedFile): SurveyedFile {
  if (scan.scannedByteLength === scan.byteLength) return scan
  return { ...scan, byteLength: scan.scannedByteLength, problems: scan.problems.slice(0, -1) }
}

function locationOf(scan: SurveyedFile, i: number): TensorLocation {
  return {
    name: scan.tags[scan.tag[i]!]!,
    startByte: scan.startByte[i]!,
    byteLength: scan.recordByteLength[i]!,
  }
}
