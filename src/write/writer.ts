/** Writes a trial while a model is trained: what smdebug's hook writes, with its vocabulary. */

import { expectText, shown } from '../base/arguments.js'
import { type TrialscanError, UsageError } from '../base/errors.js'
import { checkOptions, isObject } from '../base/options.js'
import type { Mode, ReductionName, Worker } from '../base/types.js'
import { collectionsFilePath } from '../format/paths.js'
import { Destination } from '../storage/destination.js'
import { BesideTrial } from './beside.js'
import { COLLECTION, type Moment, type SavedCollection, SavedCollections, SCALAR_PREFIX } from './collections.js'
import { EndedSteps } from './ended-steps.js'
import {
  HISTOGRAM_OPTIONS,
  isName,
  partOf,
  RECORD_OPTIONS,
  RECORD_STEP,
  type RecordOptions,
  SAVE_OPTIONS,
  SAVE_REDUCTIONS_OPTIONS,
  type SaveOptions,
  type SaveReductionsOptions,
  SCALAR_OPTIONS,
  type ScalarOptions,
  SET_MODE,
  SHOULD_SAVE_OPTIONS,
  type ShouldSaveOptions,
  STEP_OPTIONS,
  type StepOptions,
  WRITER_OPTIONS,
  type WriterOptions,
} from './options.js'
import { checkMetricTime } from './sagemaker.js'
import { givenReductions, StepFiles } from './step-files.js'
import { type ElementOptions, type SavableValue, type TakenValue, takenValue } from './values.js'

const DEFAULT_QUEUE_BYTES = 64 << 20
const NOTHING_TO_DO = Promise.resolve()

/**
 * Begins a trial, or a worker's part of one.
 * @param path a directory, or `s3://bucket/prefix`
 * @throws UsageError if the worker already has a part there
 */
export async function createWriter(path: string, options?: WriterOptions): Promise<TrialWriter> {
  const settings = checkOptions('createWriter', WRITER_OPTIONS, options)
  for (const [name, given] of Object.entries(settings.collections ?? {})) {
    checkOptions(`createWriter, collection ${name}`, COLLECTION, given)
  }
  const collections = new SavedCollections(settings)
  const beside = await BesideTrial.begin(settings)
  const destination = Destination.at(path, settings.s3)
  const { worker, numWorkers, isSaved } = partOf(settings)
  // Only one of two writers for the same worker can create this file.
  if (isSaved && !(await destination.claim(collectionsFilePath(worker), collections.text(numWorkers)))) {
    await destination.close()
    const message = `${path}: expected no part of ${worker} yet, got one: write to another place, or as another worker`
    throw new UsageError(message, { path, worker })
  }
  return new TrialWriter(path, destination, beside, collections, settings)
}

/** Writes a trial step by step. `createWriter` makes it. */
export class TrialWriter {
  /** The path or URL of the trial, as given. */
  readonly path: string
  readonly worker: Worker
  readonly #destination: Destination
  readonly #collections: SavedCollections
  /** The options with which the writer was made. @internal */
  readonly options: WriterOptions
  readonly #seen = new Set<number>()
  readonly #modeSteps = new Map<Mode, number>()
  readonly #dropped: number[] = []
  readonly #beside: BesideTrial
  readonly #ended: EndedSteps
  #mode: Mode = 'GLOBAL'
  #step: number
  #at: Moment = { mode: 'GLOBAL', modeStep: 0 }
  /** The moment of the current `save`; null if everything is saved. */
  #savedAt: Moment | null = null
  /** The files of the current step; null if there is none, or it is not saved. */
  #files: StepFiles | null = null
  #names = new Set<string>()
  /** The saves in progress, in order. */
  #saving: Promise<void> = Promise.resolve()
  #hasNews = false
  /** The call that ended the latest step, before the next one begins; null during a step. */
  #endedBy: string | null = null
  #isClosed = false

  /** @internal */
  constructor(
    path: string,
    destination: Destination,
    beside: BesideTrial,
    collections: SavedCollections,
    options: WriterOptions,
  ) {
    this.worker = options.worker ?? 'worker_0'
    this.path = path
    this.#destination = destination
    this.#collections = collections
    this.options = options
    this.#beside = beside
    this.#ended = new EndedSteps(destination, collections, options)
    this.#step = (options.startStep ?? 0) - 1
  }

  /** The mode of the current step, or of the first. */
  get mode(): Mode {
    return this.#mode
  }

  /** The current global step; before the first, one less than it. */
  get globalStep(): number {
    return this.#step
  }

  /** The steps that were not saved because earlier ones were still being written. */
  get droppedSteps(): readonly number[] {
    return this.#dropped
  }

  /** The reason why nothing is saved any more, with `whenFailing: 'stop'`; null if nothing has failed. */
  get failure(): TrialscanError | null {
    return this.#ended.failure
  }

  /** Sets the mode of the following steps. */
  setMode(mode: Mode): void {
    checkOptions('writer.setMode', SET_MODE, { mode })
    this.#mode = mode
  }

  /**
   * Ends the current step and begins the next. Waits while the step before the ending one is still being written.
   * @returns the number of the new step
   * @throws StoreError; UsageError for a step that was begun before
   */
  async step(options?: StepOptions): Promise<number> {
    const { step, saveAll = false, ...given } = checkOptions('writer.step', STEP_OPTIONS, options)
    this.#expectOpen('writer.step')
    await this.#finish()
    const mode = this.#mode
    if (step === undefined) {
      this.#step++
      while (this.#seen.has(this.#step)) this.#step++
    } else {
      this.#expectNewStep('writer.step', step)
      this.#step = step
    }
    const next = step ?? (this.#modeSteps.get(mode) ?? -1) + 1
    const modeStep = given.modeStep ?? (mode === 'GLOBAL' ? this.#step : next)
    this.#modeSteps.set(mode, modeStep)
    await this.#begin({ mode, modeStep }, saveAll)
    return this.#step
  }

  /** Gives up the current step: nothing of it is saved, and it can't be begun again. */
  async giveUpStep(): Promise<void> {
    await this.#saving
    const files = this.#files
    this.#files = null
    await files?.abandon()
  }

  /** True if `save` would save a tensor at the current step, or at a given step of a mode. */
  shouldSave(name: string, options?: ShouldSaveOptions): boolean {
    expectText('writer.shouldSave', 'name', name)
    const { collection, mode = this.#mode, modeStep } = checkOptions('writer.shouldSave', SHOULD_SAVE_OPTIONS, options)
    if (modeStep !== undefined) return this.wants(name, listOf(collection), { mode, modeStep })
    return this.#files !== null && this.wants(name, listOf(collection), this.#savedAt)
  }

  /** `shouldSave` without checks, for a hook that asks about each tensor at each step. @internal */
  wants(name: string, named: readonly string[], at: Moment | null): boolean {
    return this.#ended.isSaved && this.failure === null && this.#collections.saving(name, named, at).length > 0
  }

  /**
   * Saves a tensor at the current step, if one of its collections is saved then: its value, its reductions or its shape, according to the
   * collections.
   * @returns a promise until which the value must not change; short values are copied at once
   * @throws UsageError for a value that can't be saved, or a tensor that was saved at this step already; it is thrown synchronously
   */
  save(name: string, value: SavableValue, options?: SaveOptions): Promise<void> {
    const settings = checkOptions('writer.save', SAVE_OPTIONS, options)
    this.#expectStep('writer.save')
    return this.#saveAs(name, settings.collection, (files, saving) => this.#add(files, name, value, settings, saving))
  }

  /**
   * Saves reductions of a tensor that were computed elsewhere at the current step, if one of its collections is saved then.
   * @throws UsageError
   */
  saveReductions(
    name: string,
    reductions: Readonly<Partial<Record<ReductionName, number>>>,
    options?: SaveReductionsOptions,
  ): Promise<void> {
    const settings = checkOptions('writer.saveReductions', SAVE_REDUCTIONS_OPTIONS, options)
    this.#expectStep('writer.saveReductions')
    const entries = givenReductions(reductions)
    const { timestamp: wallTime = Date.now() / 1000 } = settings
    return this.#saveAs(name, settings.collection, files => this.#guarded(files.addReductions(name, entries, wallTime)))
  }

  /** Saves a number at the current step, whichever steps are saved. Its name becomes `scalar/` and the name. @throws UsageError */
  saveScalar(name: string, value: number, options?: ScalarOptions): Promise<void> {
    const settings = checkOptions('writer.saveScalar', SCALAR_OPTIONS, options)
    const { timestamp: wallTime = Date.now() / 1000, sagemakerMetric = false } = settings
    this.#expectStep('writer.saveScalar')
    if (typeof value !== 'number') {
      throw new UsageError(`writer.saveScalar: expected a number, got ${shown(value)}`, { call: 'writer.saveScalar' })
    }
    if (sagemakerMetric) checkMetricTime(wallTime)
    if (!isName(name)) throw wrongName(name)
    const tag = `${SCALAR_PREFIX}${name}`
    this.#expectNew(tag)
    this.#names.add(tag)
    this.#beside.addScalar(tag, value, wallTime, { step: this.#step, ...this.#at }, sagemakerMetric)
    const files = this.#files
    if (files === null || this.failure !== null) return Promise.resolve()
    if (sagemakerMetric) this.#hasNews = this.#collections.noteMetric(tag) || this.#hasNews
    const bytes = new Uint8Array(Float64Array.of(value).buffer)
    return this.#guarded(files.add({ wallTime, tag, shape: [], value: { dtype: 'float64', bytes } }))
  }

  /**
   * Writes a histogram to TensorBoard at the current step, whichever steps are saved. Does nothing without `tensorboard`.
   * @returns a promise until which the value must not change
   * @throws UsageError
   */
  async saveHistogram(name: string, value: SavableValue, options?: ElementOptions): Promise<void> {
    const settings = checkOptions('writer.saveHistogram', HISTOGRAM_OPTIONS, options)
    this.#expectStep('writer.saveHistogram')
    if (!isName(name)) throw wrongName(name)
    if (this.options.tensorboard === undefined) return
    const at = { step: this.#step, ...this.#at }
    const taken = takenValue(`writer.saveHistogram, ${name}`, value, settings)
    await this.#guarded(Promise.resolve(taken).then(taken => this.#beside.addHistogram(name, taken, at)))
  }

  /**
   * Writes a whole step with the given tensors, whichever steps are saved. Steps may come in any order, each once.
   * @throws UsageError for a value that can't be saved: nothing of the step is saved then, and it can be recorded again; StoreError
   */
  async record(
    step: number,
    tensors: Readonly<Record<string, SavableValue>> | ReadonlyMap<string, SavableValue>,
    options?: RecordOptions,
  ): Promise<void> {
    const { mode = 'GLOBAL', modeStep = step } = checkOptions('writer.record', RECORD_OPTIONS, options)
    checkOptions('writer.record', RECORD_STEP, { step })
    if (!(tensors instanceof Map) && !isObject(tensors)) {
      const message = `writer.record: expected values by the names of tensors, in an object or a Map, got ${shown(tensors)}`
      throw new UsageError(message, { call: 'writer.record' })
    }
    this.#expectOpen('writer.record')
    await this.#finish()
    this.#expectNewStep('writer.record', step)
    this.#step = step
    await this.#begin({ mode, modeStep }, true)
    const files = this.#files
    if (files === null) return
    const entries = [...(tensors instanceof Map ? tensors : Object.entries(tensors))]
    try {
      for (const [name, value] of entries) {
        this.#expectNew(name)
        this.#names.add(name)
        await this.#add(files, name, value, {}, this.#collections.saving(name, [], null), 'writer.record')
      }
    } catch (error) {
      // A part of the step would look like the whole.
      await this.giveUpStep()
      this.#seen.delete(step)
      throw error
    }
    for (const [name] of entries) {
      const saving = this.#collections.saving(name, [], null)
      this.#hasNews = this.#collections.note(name, saving) || this.#hasNews
    }
    this.#modeSteps.set(mode, modeStep)
    this.#endedBy = 'writer.record'
    await this.#finish()
  }

  /**
   * Ends the current step, and waits until everything saved can be read. Nothing more can be saved before the next step.
   * @throws StoreError
   */
  async flush(): Promise<void> {
    this.#expectOpen('writer.flush')
    this.#endedBy = 'writer.flush'
    await this.#finish()
    await this.#ended.written()
  }

  /** Ends the current step and the trial: readers no longer wait for steps. @throws StoreError */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    try {
      await this.#finish()
      await this.#ended.end()
    } finally {
      await this.#destination.close()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  // ---------------------------------------------------------------------------------------------------- Steps

  async #begin(at: Moment, savesAll: boolean): Promise<void> {
    this.#endedBy = null
    this.#at = at
    this.#savedAt = savesAll ? null : at
    this.#seen.add(this.#step)
    this.#names = new Set()
    if (!this.#ended.isSaved) return
    const { room } = this.#ended
    if (room !== null) {
      if (this.options.whenSlow === 'drop') {
        this.#dropped.push(this.#step)
        return
      }
      await room
    }
    this.#ended.expectNoFailure()
    const { checksums = false, fsync = false, queueByteLength = DEFAULT_QUEUE_BYTES } = this.options
    const how = { worker: this.worker, checksums, isDurable: fsync === 'step', queueByteLength }
    this.#files = new StepFiles(this.#destination, { step: this.#step, ...at }, how)
  }

  /** Ends the current step. The rest of it is written while the training goes on. */
  async #finish(): Promise<void> {
    await this.#saving
    await this.#beside.flush().catch(error => this.#ended.fail(error))
    this.#ended.expectNoFailure()
    const files = this.#files
    this.#files = null
    if (files === null || files.isEmpty) return
    this.#ended.add(files, this.#hasNews)
    this.#hasNews = false
  }

  /** Adds a tensor to the current step, if it is saved. */
  #saveAs(
    name: string,
    collection: SaveOptions['collection'],
    add: (files: StepFiles, saving: readonly SavedCollection[]) => Promise<void>,
  ): Promise<void> {
    if (!isName(name)) throw wrongName(name)
    const files = this.#files
    if (files === null || this.failure !== null) return Promise.resolve()
    const saving = this.#collections.saving(name, listOf(collection), this.#savedAt)
    if (saving.length === 0) return Promise.resolve()
    this.#expectNew(name)
    const adding = add(files, saving)
    this.#names.add(name)
    this.#hasNews = this.#collections.note(name, saving) || this.#hasNews
    return adding
  }

  #add(
    files: StepFiles,
    name: string,
    value: SavableValue,
    options: SaveOptions,
    saving: readonly SavedCollection[],
    call = 'writer.save',
  ): Promise<void> {
    const { originalName = name, timestamp: wallTime = Date.now() / 1000 } = options
    const saved = saving.map(collection => collection.saved)
    const write = (taken: TakenValue): Promise<unknown> | null => {
      this.#beside.addTensor(name, taken, saved, files.at, wallTime)
      return files.addTensor(name, taken, saved, { originalName, wallTime })
    }
    const taken = takenValue(`${call}, tensor ${name}`, value, options)
    // A value that is already here is copied before this returns, unless elements of an earlier one are still awaited.
    return this.#guarded(taken instanceof Promise ? taken.then(write) : write(taken))
  }

  /** Tracks a save in progress, and keeps its error for the next call. */
  #guarded(work: Promise<unknown> | null): Promise<void> {
    if (work === null) return NOTHING_TO_DO
    const done = work.then(
      () => {},
      error => {
        // The caller who passed an unsuitable value gets the error, as in the synchronous case.
        if (error instanceof UsageError) throw error
        this.#ended.fail(error)
      },
    )
    const settled = done.catch(() => {})
    this.#saving = Promise.all([this.#saving, settled]).then(() => {})
    return done.then(() => this.#ended.expectNoFailure())
  }

  // ---------------------------------------------------------------------------------------------------- Misuse

  #expectOpen(call: string): void {
    if (this.#isClosed)
      throw new UsageError(`${call}: expected a writer that is open, got one that was closed`, { call })
  }

  #expectStep(call: string): void {
    this.#expectOpen(call)
    if (this.#seen.size > 0 && this.#endedBy === null) return
    const ended = this.#seen.size === 0 ? '' : `, since ${this.#endedBy} has ended step ${this.#step}`
    throw new UsageError(`${call}: expected a call of writer.step() before it${ended}`, { call })
  }

  #expectNew(name: string): void {
    if (!isName(name)) throw wrongName(name)
    if (this.#names.has(name)) {
      throw new UsageError(`${name}: expected one value a step, got another at step ${this.#step}`, { tensor: name })
    }
  }

  #expectNewStep(call: string, step: number): void {
    if (!this.#seen.has(step)) return
    throw new UsageError(`${call}: expected a step that was not written, got ${step}`, { step })
  }
}

function wrongName(name: unknown): UsageError {
  return new UsageError(`expected the name of a tensor, got ${shown(name)}`, { name })
}

function listOf(names: string | readonly string[] | undefined): readonly string[] {
  return names === undefined ? [] : typeof names === 'string' ? [names] : names
}
