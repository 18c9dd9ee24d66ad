/** A trial: everything a training job saved, and the questions one can ask about it. */

import { resolve } from 'node:path'
import { recordPlace, type WorkerStep } from '../catalog/catalog.js'
import { holding } from '../catalog/hold.js'
import { type StepRange, type TrialContents, TrialLoader } from '../catalog/load.js'
import { type StepState, TrialState } from '../catalog/state.js'
import { isStepSelection, STEP_SELECTION, type StepSelection, stepFilter } from '../catalog/step-selection.js'
import { checkMode, STEP_OPTIONS, type StepOptions } from '../catalog/steps.js'
import { WAIT_OPTIONS, type WaitOptions } from '../catalog/wait.js'
import { dtypeOf } from '../engine/dtype.js'
import { setFor } from '../engine/moments.js'
import {
  errorFromData,
  InvalidWorker,
  nearestNames,
  QueryError,
  quote,
  TensorUnavailable,
  type TrialscanError,
  UsageError,
} from '../errors.js'
import { Membership } from '../format/collections.js'
import { isSameShape } from '../format/index-file.js'
import { isPartOfTrial, isTensorBoardFile } from '../format/paths.js'
import { compilePattern } from '../format/pattern.js'
import { checkLevelNumber, columnsOf, type RecordPlace } from '../job/coalesce.js'
import { DEFAULT_MEMORY, windowByteLength } from '../job/memory.js'
import { shapesOf } from '../job/reply.js'
import { checkOptions, type Kinds, kinds, optionsOf } from '../options.js'
import { Access, READ_KINDS, type ReadOptions, WORK_OPTIONS, type WorkOptions } from '../runner/access.js'
import { runWhole } from '../runner/failed-job.js'
import type { Runner } from '../runner/runner.js'
import type { ScanItem } from '../scan/rows.js'
import { Scan, type ScanProgress } from '../scan/scan.js'
import { placeIn } from '../store/local/output.js'
import { openStore, storeSpec } from '../store/open.js'
import { S3_OPTIONS } from '../store/s3/options.js'
import type { S3Options } from '../store/s3/spec.js'
import { storeName, type Traffic } from '../store/store.js'
import type { DType, GlobalStep, Mode, ModeStep, ReductionName, Worker } from '../types.js'
import { FOLLOW_OPTIONS, type FollowOptions, follow, hasPassedStep, waitForSteps } from './follow.js'
import type { Collection, TensorNamesOptions } from './names.js'
import { parseReductions } from './reduction.js'
import { Tensor } from './tensor.js'
import { TornasoleNames } from './tornasole.js'

export interface TrialOptions extends Pick<WorkOptions, 'threads'> {
  /** Default: the base name of the path. */
  readonly name?: string
  /** Global steps `[begin, end)` to load, null for no limit; others are never looked at. Default: all. */
  readonly rangeSteps?: StepRange | null
  /**
   * A step that some workers have not written counts as complete when this many steps came after it, none of which is
   * complete either. Default 1,000, as in smdebug.
   */
  readonly incompleteStepWindow?: number
  /**
   * Refuse a trial whose job has ended without the collections files of all its workers. Default true; with false it
   * opens with what there is, and a running job without any is taken to have the workers that wrote something, once there
   * is a second step.
   */
  readonly requireCollections?: boolean
  /**
   * A file to keep what the index files told, for the next opening of the same trial. Each is held against its length and
   * times of change before it is believed. Worth it from some ten thousand index files on.
   */
  readonly indexCache?: string
  /** Follow symbolic links out of the trial's directory. Default: they are refused. */
  readonly allowSymlinks?: boolean
  /**
   * `auto`, the default: a trial whose job still runs is looked at again in the background, at file events and every two
   * seconds (on S3 every five), until the job has ended or the trial is closed; getters then tell of new steps by themselves.
   * It does not keep the process alive. `manual`: only `refresh` and questions about steps that are not known yet look.
   */
  readonly refresh?: RefreshMode
  /** How to reach and read a trial on S3. See docs/s3.md. */
  readonly s3?: S3Options
}

const REFRESH_MODES = ['auto', 'manual'] as const
/** Whether a trial looks for new steps by itself. */
export type RefreshMode = (typeof REFRESH_MODES)[number]

/** Whose steps are meant. */
export interface WorkerOptions {
  /** Default: the first in sorted order that wrote the step. */
  readonly worker?: Worker
}

export interface ScanOptions extends ReadOptions {
  /** Names, or patterns matched anywhere in the name. Default: all tensors. */
  readonly tensors?: string | RegExp | readonly (string | RegExp)[]
  /** Python patterns, matched anywhere in the name; beside `tensors`: what either of them selects. */
  readonly regex?: string | readonly string[]
  /** Only members of one of these collections. */
  readonly collection?: string | readonly string[]
  /** Global steps. Negative numbers count from the end of those that have something of what else is asked for. */
  readonly steps?: StepSelection
  /**
   * Steps of the mode, by their numbers within it: of each worker, its own. Needs `mode` if the trial has several modes.
   * Negative numbers count from the end, as in `steps`.
   */
  readonly modeSteps?: StepSelection
  /** Only steps saved in that mode. */
  readonly mode?: Mode
  readonly workers?: Worker | readonly Worker[]
  /** Default `all`: the eighteen, as far as a dtype has them. Names from outside: `parseReductions`. */
  readonly reductions?: readonly ReductionName[] | 'all'
  /** Whether `stats.spent` tells where the time goes. It takes a second walk over the records. Default false. */
  readonly timed?: boolean
  /** Ends the scan: the loop over it then throws the signal's reason. */
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: ScanProgress) => void
}

/** What a trial holds of one tensor. */
export interface TensorSummary {
  readonly name: string
  /** Null if no value was saved, or it can't be read. */
  readonly dtype: DType | null
  /** At the first and at the last step it was saved. */
  readonly shape: readonly number[] | null
  readonly lastShape: readonly number[] | null
  /** Steps at which something of it was saved. */
  readonly stepCount: number
  /** Bytes of its records, saved reductions included. */
  readonly byteLength: number
  /** Names of the reductions that the hook saved. */
  readonly savedReductions: readonly string[]
  readonly error?: TrialscanError
}

export interface TrialSummary {
  readonly tensors: readonly TensorSummary[]
  /** Bytes of all records. */
  readonly byteLength: number
}

/** Tensors whose records one job looks at. */
const DESCRIBED_AT_ONCE = 8192

const stepRange = kinds.that<StepRange>('[begin, end] with 0 ≤ begin < end, each a whole number or null', isStepRange)

const TRIAL_OPTIONS = optionsOf<TrialOptions>({
  threads: WORK_OPTIONS.threads,
  name: kinds.text,
  rangeSteps: kinds.orNull(stepRange),
  incompleteStepWindow: kinds.wholeNumber(0),
  requireCollections: kinds.flag,
  indexCache: kinds.text,
  allowSymlinks: kinds.flag,
  refresh: kinds.oneOf<RefreshMode>(REFRESH_MODES),
  s3: S3_OPTIONS,
})
const NAMES_KINDS: Kinds<Pick<TensorNamesOptions, 'step' | 'mode'>> = { step: kinds.step, mode: kinds.mode }
const NAMES_AT_OPTIONS = optionsOf<Pick<TensorNamesOptions, 'step' | 'mode'>>(NAMES_KINDS)
const TENSOR_NAMES_OPTIONS = optionsOf<TensorNamesOptions>({
  ...NAMES_KINDS,
  regex: kinds.oneOrMore('a pattern', 'patterns', kinds.pattern),
  collection: kinds.that('the name of a collection, or a collection', isCollection),
})
const SCAN_OPTIONS = optionsOf<ScanOptions>({
  ...READ_KINDS,
  tensors: kinds.oneOrMore('a name or a RegExp', 'such', kinds.pattern),
  regex: kinds.oneOrMore('a pattern', 'patterns', kinds.text),
  collection: kinds.oneOrMore('the name of a collection', 'such', kinds.text),
  steps: kinds.that<StepSelection>(STEP_SELECTION, isStepSelection),
  modeSteps: kinds.that<StepSelection>(STEP_SELECTION, isStepSelection),
  mode: kinds.mode,
  workers: kinds.oneOrMore('the name of a worker', 'such', kinds.text),
  reductions: kinds.that("names of reductions in an array, or 'all'", isNames),
  timed: kinds.flag,
  signal: kinds.signal,
  onProgress: kinds.callback(),
})
const WORKER_OPTIONS = optionsOf<WorkerOptions>({ worker: kinds.text })
const SUMMARY_OPTIONS = optionsOf<WorkOptions>(WORK_OPTIONS)
const WAIT_FOR_STEPS_OPTIONS = optionsOf<WaitOptions & { mode?: Mode }>({ ...WAIT_OPTIONS, mode: kinds.mode })

/**
 * Opens a trial: of smdebug, of Tornasole, or a directory of TensorBoard event files (tag: tensor; directory: worker, `.`
 * for the root; step: the Event's). Without index files, the event files are scanned.
 * @param path a local directory, its `file://` URL, or `s3://bucket/prefix`
 * @throws StoreError if it can't be reached, MissingCollectionFiles if it is no trial, UsageError for bad options, also for those
 *   that have no effect on this trial
 */
export async function createTrial(path: string, options?: TrialOptions): Promise<Trial> {
  const {
    name,
    rangeSteps = null,
    allowSymlinks = false,
    incompleteStepWindow = 1000,
    requireCollections = true,
    indexCache,
    refresh = 'auto',
    s3,
    threads,
  } = checkOptions('createTrial', TRIAL_OPTIONS, options)
  const spec = storeSpec(path, { allowSymlinks, ...(s3 && { s3 }) })
  const replaced = indexCache !== undefined && spec.kind === 'local' ? await placeIn(spec.root, indexCache) : null
  if (replaced !== null && (isPartOfTrial(replaced) || isTensorBoardFile(replaced))) {
    const message = `expected indexCache to be none of the trial's own files, got ${indexCache}: name another file`
    throw new UsageError(message, { pathOrUrl: path, option: 'indexCache' })
  }
  const access = new Access(openStore(spec), spec)
  const loader = new TrialLoader(access, {
    rangeSteps,
    threads,
    incompleteStepWindow,
    requireCollections,
    indexCache: indexCache === undefined ? null : resolve(indexCache),
  })
  const contents = await loader.load()
  if (contents.isTensorBoard && indexCache !== undefined) {
    await access.close()
    const message = `expected indexCache for a trial with index files only, got it for TensorBoard's files at ${path}`
    throw new UsageError(message, { pathOrUrl: path, option: 'indexCache' })
  }
  const state = new TrialState(access, rangeSteps, loader, contents)
  if (refresh === 'auto') state.refreshInBackground()
  return new Trial(path.trim(), name ?? storeName(spec), state)
}

/**
 * Runs `work`, to which these trials stay as they are now: its queries don't look for new steps, and see none that others
 * have found. Those others are not held up.
 * @returns what `work` does
 */
export async function noRefresh<T>(trials: Trial | readonly Trial[], work: () => Promise<T> | T): Promise<T> {
  return holding(statesOf(trials), {}, work)
}

/**
 * Looks for what was written to these trials since.
 * @returns whether there was something
 */
export async function refresh(trials: Trial | readonly Trial[]): Promise<boolean>
/**
 * Looks for what was written to these trials since, and runs `work`, whose queries look for new steps also where this is
 * within a `noRefresh`.
 * @returns what `work` does
 */
export async function refresh<T>(trials: Trial | readonly Trial[], work: () => Promise<T> | T): Promise<T>
export async function refresh<T>(trials: Trial | readonly Trial[], work?: () => Promise<T> | T): Promise<T | boolean> {
  const states = statesOf(trials)
  const look = async (): Promise<boolean> => {
    const found = await Promise.all(states.map(state => state.refresh()))
    return found.includes(true)
  }
  if (work === undefined) return look()
  return holding([], { released: states }, async () => {
    await look()
    return work()
  })
}

function statesOf(trials: Trial | readonly Trial[]): TrialState[] {
  const all: readonly unknown[] = Array.isArray(trials) ? trials : [trials]
  return all.map(trial => {
    if (trial instanceof Trial) return stateOf(trial)
    throw new UsageError(`expected a trial, or several in an array, got ${quote(String(trial))}`)
  })
}

/** The same as `createTrial`. */
export const openTrial = createTrial

/** What is behind a trial, for the stages that build on it. */
export let stateOf: (trial: Trial) => TrialState

export class Trial extends TornasoleNames {
  static {
    stateOf = trial => trial.#state
  }

  /** As given to `createTrial`, without blanks around it. */
  readonly path: string
  readonly name: string
  readonly #state: TrialState

  /** Use `createTrial`. */
  constructor(path: string, name: string, state: TrialState) {
    super()
    this.path = path
    this.name = name
    this.#state = state
  }

  /**
   * Looks for what was written since: only index files that are new are read.
   * @returns whether something was
   */
  refresh(): Promise<boolean> {
    return this.#state.refresh()
  }

  /** As `noRefresh` of this trial. */
  withoutRefresh<T>(work: () => Promise<T> | T): Promise<T> {
    return noRefresh(this, work)
  }

  /**
   * Whether a step is complete, may still come, or will never: a global step for GLOBAL (the default), else a step of
   * the mode. Looks for new steps first if that could change the answer.
   */
  async hasPassedStep(step: number, mode: Mode = 'GLOBAL'): Promise<StepState> {
    return hasPassedStep(this.#state, step, checkMode(mode))
  }

  /**
   * Waits until all the steps are complete: global steps for GLOBAL (the default), else steps of the mode.
   * @throws StepUnavailable for a step that was left out, NoMoreData if the job has ended before it, WaitTimeout,
   *   StepNotYetAvailable within `withoutRefresh`, the signal's reason
   */
  async waitForSteps(steps: readonly number[], options?: WaitOptions & { mode?: Mode }): Promise<void> {
    const { mode = 'GLOBAL', ...waiting } = checkOptions('trial.waitForSteps', WAIT_FOR_STEPS_OPTIONS, options)
    return waitForSteps(this.#state, steps, mode, waiting)
  }

  /**
   * Complete steps (global ones) as they come, until the job ends: `for await (const step of trial.follow())`.
   * @throws WaitTimeout if none comes for too long, the signal's reason
   */
  follow(options?: FollowOptions): AsyncGenerator<GlobalStep> {
    return follow(this.#state, checkOptions('trial.follow', FOLLOW_OPTIONS, options))
  }

  /** The requests that were made up to now for a trial on S3; none for others. */
  get traffic(): Readonly<Traffic> {
    return { ...this.#state.access.traffic }
  }

  /** Lets go of open files, and of what is remembered; looks no more for new steps by itself. */
  async close(): Promise<void> {
    await this.#state.close()
  }

  /** Whether the job has ended, so that no more steps will come. */
  get loadedAllSteps(): boolean {
    return this.#state.ended
  }

  /**
   * Index files that can't be read: what they tell of is missing. Where event files without index were scanned, also
   * records that can't be read.
   */
  get problems(): readonly TrialscanError[] {
    const ofFiles = this.#catalog.workerSteps.flatMap(({ error }) => (error ? [error] : []))
    return [...ofFiles, ...this.#state.problems]
  }

  /**
   * Step numbers, ascending: all global steps for GLOBAL (the default), else the steps of the mode. Steps that not all
   * workers have written yet are left out, unless asked for.
   */
  steps(options?: StepOptions): number[] {
    const { mode = 'GLOBAL', showIncompleteSteps = false } = checkOptions('trial.steps', STEP_OPTIONS, options)
    return this.#catalog.steps.numbers(mode, showIncompleteSteps)
  }

  /** The modes that steps were saved in, sorted; none if the job set no mode. */
  modes(): Mode[] {
    return this.#catalog.steps.modes
  }

  /**
   * The mode in which a worker wrote a global step, without a name the first that did: where only rank 0 evaluates, workers
   * are in different modes.
   * @throws StepUnavailable, StepNotYetAvailable, InvalidWorker
   */
  mode(globalStep: number, options?: WorkerOptions): Mode {
    const { worker } = checkOptions('trial.mode', WORKER_OPTIONS, options)
    return this.#state.writtenAs(globalStep, worker).mode
  }

  /** The step within its mode of a global step, as `mode` tells that. @throws as `mode` */
  modeStep(globalStep: number, options?: WorkerOptions): ModeStep {
    const { worker } = checkOptions('trial.modeStep', WORKER_OPTIONS, options)
    return this.#state.writtenAs(globalStep, worker).modeStep
  }

  /** The global step of a step of a mode; each worker counts for itself, as in `mode`. @throws as `mode` */
  globalStep(mode: Mode, modeStep: number, options?: WorkerOptions): GlobalStep {
    const { worker } = checkOptions('trial.globalStep', WORKER_OPTIONS, options)
    return this.#state.globalStep(modeStep, checkMode(mode), worker)
  }

  /** The workers of the job, sorted: those with a collections file, which may have saved nothing yet, and those with data. */
  workers(): Worker[] {
    return [...this.#state.contents.workers]
  }

  /** The workers that saved something, sorted. */
  workersWithData(): Worker[] {
    return [...this.#catalog.workers]
  }

  /** All collections, by name. */
  collections(): Map<string, Collection> {
    const { collections } = this.#state.contents.collections
    return new Map([...collections.keys()].map(name => [name, this.collection(name)]))
  }

  /** @throws QueryError `CollectionUnavailable`, naming the nearest ones */
  collection(name: string): Collection {
    const { collections } = this.#state.contents.collections
    const config = collections.get(name)
    if (config === undefined) {
      const nearest = nearestNames(name, collections.keys())
      const hint =
        nearest.length > 0
          ? `did you mean ${nearest.join(' or ')}?`
          : `it has: ${[...collections.keys()].join(', ') || 'none'}`
      const message = `trial ${JSON.stringify(this.name)} has no collection ${JSON.stringify(name)}; ${hint}`
      throw new QueryError('CollectionUnavailable', message, { collection: name, nearest })
    }
    const { contents } = this.#state
    let members: readonly string[] | undefined
    return {
      ...config,
      get members() {
        members ??= membershipOf(contents).members(config)
        return members
      },
    }
  }

  /** Names of saved tensors that fit everything asked for, sorted. */
  tensorNames(options?: TensorNamesOptions): string[] {
    const { step, mode, regex, collection } = checkOptions('trial.tensorNames', TENSOR_NAMES_OPTIONS, options)
    if (regex !== undefined && collection !== undefined) {
      throw new UsageError('expected regex or collection, got both')
    }
    const { catalog } = this.#state
    let workerSteps: readonly WorkerStep[] = catalog.workerSteps
    if (step !== undefined) {
      this.#state.knownSteps(step, mode ?? 'GLOBAL')
      workerSteps = catalog.at(step, mode ?? 'GLOBAL')
    } else if (mode !== undefined && mode !== 'GLOBAL') workerSteps = workerSteps.filter(saved => saved.mode === mode)
    let names: string[]
    if (workerSteps === catalog.workerSteps) names = this.#names
    else names = namesAt(workerSteps)
    if (regex !== undefined) names = names.filter(matcher(listOf(regex)))
    if (collection !== undefined) {
      const members = new Set((typeof collection === 'string' ? this.collection(collection) : collection).members)
      names = names.filter(name => members.has(name))
    }
    return names.sort()
  }

  /** Names of the inputs: members of the collection `inputs`, or, where none was saved, names with `input` in them. */
  inputs(options?: Pick<TensorNamesOptions, 'step' | 'mode'>): string[] {
    return this.#namesFor('inputs', options)
  }

  /** As `inputs`, of the outputs. */
  outputs(options?: Pick<TensorNamesOptions, 'step' | 'mode'>): string[] {
    return this.#namesFor('outputs', options)
  }

  /** As `inputs`, of the labels. */
  labels(options?: Pick<TensorNamesOptions, 'step' | 'mode'>): string[] {
    return this.#namesFor('labels', options)
  }

  /** As `inputs`, of the predictions. */
  predictions(options?: Pick<TensorNamesOptions, 'step' | 'mode'>): string[] {
    return this.#namesFor('predictions', options)
  }

  hasTensor(name: string): boolean {
    return this.#catalog.byTensor.has(name)
  }

  /** @throws TensorUnavailable, naming the nearest ones */
  tensor(name: string): Tensor {
    this.#expectTensor(name)
    return new Tensor(name, this.#state)
  }

  /**
   * Reductions of many tensors in one pass over their bytes. Rows come in the order of global steps, workers (sorted)
   * and tensors (as in the index file), as soon as they are there, whatever number of threads works on them. A tensor
   * of which only reductions were saved gives those. A record that can't be read is a row with an `error`.
   * @throws UsageError, TensorUnavailable, InvalidWorker or QueryError for what the trial does not have, at once
   */
  scan(options?: ScanOptions): Scan {
    const asked = checkOptions('trial.scan', SCAN_OPTIONS, options)
    const { checkLevel = 'minimal', reductions = 'all', threads, memory = DEFAULT_MEMORY } = asked
    const names = parseReductions(reductions)
    const { access } = this.#state
    const selected = this.#selectedNames(asked)
    const wanted = this.#selectedSteps(asked, selected)
    return new Scan({
      problems: this.#state.contents.problems,
      items: { [Symbol.iterator]: () => selectItems(wanted, selected) },
      reductions: names,
      strict: reductions !== 'all',
      context: {
        store: access.spec,
        checkLevel: checkLevelNumber(checkLevel),
        memory,
        timed: asked.timed,
        known: setFor(names),
      },
      runner: totalBytes => access.runner(threads, totalBytes, memory),
      url: path => access.store.url(path),
      signal: asked.signal,
      onProgress: asked.onProgress,
    })
  }

  /** Dtype, shape, steps and bytes of every tensor. Reads the head of two records a tensor. */
  async summary(options?: WorkOptions): Promise<TrialSummary> {
    const { memory = DEFAULT_MEMORY, threads } = checkOptions('trial.summary', SUMMARY_OPTIONS, options)
    const runner = await this.#state.access.runner(threads ?? 0, 0)
    const tensors: TensorSummary[] = []
    let byteLength = 0
    const summarize = new Summarizer()
    let drafts: TensorDraft[] = []
    const describe = async (): Promise<void> => {
      for (const tensor of await this.#describe(drafts, runner, memory)) {
        tensors.push(tensor)
        byteLength += tensor.byteLength
      }
      drafts = []
    }
    for (const [name, workerSteps] of this.#catalog.byTensor) {
      drafts.push(summarize.draftOf(name, workerSteps))
      if (drafts.length === DESCRIBED_AT_ONCE) await describe()
    }
    if (drafts.length > 0) await describe()
    return { tensors, byteLength }
  }

  async #describe(drafts: readonly TensorDraft[], runner: Runner, memory: number): Promise<TensorSummary[]> {
    const { spec, store } = this.#state.access
    const job = {
      kind: 'describe',
      store: spec,
      checkLevel: checkLevelNumber('minimal'),
      windowByteLength: windowByteLength(memory),
      ...columnsOf(drafts.flatMap(({ ends }) => ends)),
    } as const
    const { described, failures } = await runWhole(runner, job, path => store.url(path))
    const shapes = shapesOf(described)
    const errors = new Map(failures.map(({ record, error }) => [record, error]))
    let record = 0
    let alike: readonly number[] | null = null
    // There may be a million of them: shapes that are the same share a list.
    return drafts.map(({ name, stepCount, byteLength, savedReductions, ends, savedShape }): TensorSummary => {
      if (ends.length === 0) {
        return { name, stepCount, byteLength, savedReductions, dtype: null, shape: savedShape, lastShape: savedShape }
      }
      const [first, last] = [record, record + ends.length - 1]
      record += ends.length
      const error = errors.get(first) ?? errors.get(last)
      const dtype = dtypeOf(described.dtypes[first]!) ?? dtypeOf(described.dtypes[last]!) ?? null
      const shape = shared(errors.has(first) ? savedShape : shapes[first]!, alike)
      const lastShape = shared(errors.has(last) ? savedShape : shapes[last]!, shape)
      alike = shape
      const summary = { name, stepCount, byteLength, savedReductions, dtype, shape, lastShape }
      return error ? { ...summary, error: errorFromData(error) } : summary
    })
  }

  get #catalog() {
    return this.#state.catalog
  }

  get #names(): string[] {
    return [...this.#catalog.byTensor.keys()]
  }

  #namesFor(collection: string, options: Pick<TensorNamesOptions, 'step' | 'mode'> | undefined): string[] {
    const { step, mode } = checkOptions(`trial.${collection}`, NAMES_AT_OPTIONS, options)
    const at = { ...(step !== undefined && { step }), ...(mode !== undefined && { mode }) }
    const isSaved =
      this.#state.contents.collections.collections.has(collection) && this.collection(collection).members.length > 0
    return this.tensorNames(isSaved ? { ...at, collection } : { ...at, regex: `(?i)${collection.slice(0, -1)}` })
  }

  #expectTensor(name: string): void {
    if (!this.hasTensor(name)) throw new TensorUnavailable(name, this.name, nearestNames(name, this.#names))
  }

  /** The steps of workers that a scan is about. An index file that can't be read tells no mode: it is one of every mode. */
  #selectedSteps(
    { steps, modeSteps, mode, workers }: ScanOptions,
    names: ReadonlySet<string> | null,
  ): readonly WorkerStep[] {
    const modes = this.modes()
    if (modeSteps !== undefined && (mode ?? 'GLOBAL') === 'GLOBAL' && modes.length > 1) {
      throw new UsageError(`expected mode beside modeSteps, since each of ${modes.join(', ')} counts its own, got none`)
    }
    const asked = workers === undefined ? null : new Set(listOf(workers))
    for (const worker of asked ?? []) {
      if (!this.workers().includes(worker)) throw new InvalidWorker(worker, this.workers())
    }
    const isOfMode = (saved: WorkerStep) => mode === undefined || mode === 'GLOBAL' || saved.mode === mode
    const all = this.#catalog.workerSteps.filter(
      saved => (asked === null || asked.has(saved.worker)) && (saved.error !== null || isOfMode(saved)),
    )
    const numbersOf = (number: (saved: WorkerStep) => number) => () =>
      [...new Set(all.filter(saved => hasSome(saved, names)).map(number))].sort((a, b) => a - b)
    const isStep =
      steps &&
      stepFilter(
        steps,
        numbersOf(({ step }) => step),
      )
    const isModeStep =
      modeSteps &&
      stepFilter(
        modeSteps,
        numbersOf(({ modeStep }) => modeStep),
      )
    return all.filter(
      ({ step, modeStep, error }) =>
        (isStep === undefined || isStep(step)) && (isModeStep === undefined || error !== null || isModeStep(modeStep)),
    )
  }

  /** The tensors a scan is about; null: all. */
  #selectedNames({ tensors, regex, collection }: ScanOptions): ReadonlySet<string> | null {
    let selected: ReadonlySet<string> | null = null
    if (tensors !== undefined || regex !== undefined) {
      const asked = tensors === undefined ? [] : listOf(tensors)
      const exact = asked.filter(name => typeof name === 'string')
      for (const name of exact) this.#expectTensor(name)
      const patterns = [
        ...asked.filter(name => typeof name !== 'string'),
        ...(regex === undefined ? [] : listOf(regex)),
      ]
      selected = new Set([...exact, ...this.#names.filter(matcher(patterns))])
    }
    if (collection !== undefined) {
      const members = new Set(listOf(collection).flatMap(name => this.collection(name).members))
      selected = selected === null ? members : new Set([...selected].filter(name => members.has(name)))
    }
    return selected
  }
}

interface TensorDraft extends Pick<TensorSummary, 'name' | 'stepCount' | 'byteLength' | 'savedReductions'> {
  readonly savedShape: readonly number[] | null
  /** The records of the first and the last value. */
  readonly ends: readonly RecordPlace[]
}

const NONE_SAVED: readonly string[] = []

/** A shape, or the other one where that is the same. */
function shared(shape: readonly number[] | null, other: readonly number[] | null): readonly number[] | null {
  return shape !== null && other !== null && isSameShape(shape, other) ? other : shape
}

/** Steps with the same tensors, as far as a summary minds. */
interface Alike {
  readonly tensors: WorkerStep['tensors']
  readonly first: WorkerStep
  readonly firstPlace: number
  last: WorkerStep
  lastPlace: number
  count: number
}

/** What the index files tell of tensors. Names that were saved together have the same list of steps, looked at once. */
class Summarizer {
  readonly #known = new Map<readonly WorkerStep[], { readonly stepCount: number; readonly alike: readonly Alike[] }>()

  draftOf(name: string, workerSteps: readonly WorkerStep[]): TensorDraft {
    const { stepCount, alike } = this.#known.get(workerSteps) ?? this.#lookAt(workerSteps)
    let reductions: Set<string> | undefined
    let byteLength = 0
    let savedShape: readonly number[] | null = null
    let first: Alike | undefined
    let last: Alike | undefined
    for (const some of alike) {
      const { value, reductions: own, shape } = some.tensors.get(name)!
      savedShape ??= shape?.shape ?? null
      for (const [reduction, location] of own) {
        reductions ??= new Set()
        reductions.add(reduction)
        byteLength += location.byteLength * some.count
      }
      if (value === null) continue
      byteLength += value.byteLength * some.count
      first ??= some
      if (last === undefined || some.lastPlace > last.lastPlace) last = some
    }
    const ends = first === undefined ? [] : [first.first]
    if (first !== undefined && last!.lastPlace > first.firstPlace) ends.push(last!.last)
    return {
      name,
      stepCount,
      byteLength,
      savedReductions: reductions ? [...reductions] : NONE_SAVED,
      savedShape,
      ends: ends.map(workerStep => recordPlace(workerStep, workerStep.tensors.get(name)!.value!)),
    }
  }

  #lookAt(workerSteps: readonly WorkerStep[]) {
    const byTensors = new Map<WorkerStep['tensors'], Alike>()
    for (const [place, workerStep] of workerSteps.entries()) {
      const { tensors } = workerStep
      const known = byTensors.get(tensors)
      if (known === undefined) {
        const [first, last] = [workerStep, workerStep]
        byTensors.set(tensors, { tensors, first, firstPlace: place, last, lastPlace: place, count: 1 })
      } else {
        known.last = workerStep
        known.lastPlace = place
        known.count++
      }
    }
    const stepCount = new Set(workerSteps.map(({ step }) => step)).size
    const looked = { stepCount, alike: [...byTensors.values()] }
    this.#known.set(workerSteps, looked)
    return looked
  }
}

/** Whether something of these tensors was saved; null: of any. */
function hasSome({ tensors }: WorkerStep, names: ReadonlySet<string> | null): boolean {
  if (names === null) return tensors.size > 0
  for (const name of tensors.keys()) if (names.has(name)) return true
  return false
}

/** What a scan is about, in the order of its rows. */
function* selectItems(workerSteps: readonly WorkerStep[], names: ReadonlySet<string> | null): Generator<ScanItem> {
  for (const workerStep of workerSteps) {
    if (workerStep.error !== null) yield { workerStep, saved: null }
    for (const saved of workerStep.tensors.values()) {
      if (names === null || names.has(saved.tensor)) yield { workerStep, saved }
    }
  }
}

/** Names of what was saved; steps that share their index files' payload have the same. */
function namesAt(workerSteps: readonly WorkerStep[]): string[] {
  const names = new Set<string>()
  for (const tensors of new Set(workerSteps.map(({ tensors }) => tensors))) {
    for (const name of tensors.keys()) names.add(name)
  }
  return [...names]
}

/** What is known of members holds for all who ask the same contents. */
const memberships = new WeakMap<TrialContents, Membership>()

function membershipOf(contents: TrialContents): Membership {
  const known = memberships.get(contents) ?? new Membership(contents.catalog.byTensor.keys())
  memberships.set(contents, known)
  return known
}

/** Whether a name matches one of the patterns: strings are Python's, others JavaScript's. */
function matcher(patterns: readonly (string | RegExp)[]): (name: string) => boolean {
  const tests = patterns.map(pattern => {
    if (typeof pattern === 'string') {
      const compiled = compilePattern(pattern)
      return (name: string) => compiled.matches(name)
    }
    // A copy without the flags that make test() remember where it stopped.
    const copy = new RegExp(pattern.source, pattern.flags.replace(/[gy]/g, ''))
    return (name: string) => copy.test(name)
  })
  return name => tests.some(test => test(name))
}

function listOf<T extends string | RegExp>(one: T | readonly T[]): readonly T[] {
  return typeof one === 'string' || one instanceof RegExp ? [one] : one
}

function isStepRange(range: unknown): boolean {
  const isBound = (bound: unknown): boolean => bound === null || (Number.isSafeInteger(bound) && (bound as number) >= 0)
  if (!Array.isArray(range) || range.length !== 2 || !range.every(isBound)) return false
  const [begin, end] = range as unknown as StepRange
  return begin === null || end === null || begin < end
}

function isCollection(given: unknown): boolean {
  return typeof given === 'string' || Array.isArray((given as Collection | null)?.members)
}

/** Whether they are known is told apart, with the nearest. */
function isNames(given: unknown): boolean {
  return given === 'all' || (Array.isArray(given) && given.every(name => typeof name === 'string'))
}
