/** A trial: everything a training job saved, and the questions one can ask about it. */

import { expectText, expectWork } from '../base/arguments.js'
import { quote, TensorUnavailable, type TrialscanError, UsageError } from '../base/errors.js'
import { checkOptions, kinds, optionsOf } from '../base/options.js'
import type { GlobalStep, Mode, ModeStep, StatisticName, Worker } from '../base/types.js'
import { setFor } from '../core/moments.js'
import type { Distribution } from '../core/statistics/distribution.js'
import { elementStatistics, isMomentName, isSketchName, type StatisticsOf } from '../core/statistics/statistic.js'
import type { CheckpointFacts } from '../scan/catalog/checkpoint/facts.js'
import { withHold } from '../scan/catalog/hold.js'
import type { StepState, TrialState } from '../scan/catalog/state.js'
import { checkMode, STEP_OPTIONS, type StepOptions } from '../scan/catalog/steps.js'
import { WAIT_OPTIONS, type WaitOptions } from '../scan/catalog/wait.js'
import { checkLevelNumber } from '../scan/job/plan/coalesce.js'
import { DEFAULT_MEMORY } from '../scan/job/plan/memory.js'
import { distributionOf } from '../scan/rows/distribution.js'
import { Scan } from '../scan/rows/scan.js'
import { WORK_OPTIONS, type WorkOptions } from '../scan/runner/access.js'
import type { Traffic } from '../storage/store.js'
import { FOLLOW_OPTIONS, type FollowOptions, follow, hasPassedStep, waitForSteps } from './follow.js'
import {
  type Collection,
  collectionOf,
  expectTensor,
  makeCollection,
  type NamesAtOptions,
  namesAmong,
  namesFor,
  type OwnCollectionOptions,
  TENSOR_NAMES_OPTIONS,
  type TensorNamesOptions,
} from './names.js'
import { parseReductions } from './reduction.js'
import {
  DISTRIBUTION_OPTIONS,
  type DistributionOptions,
  SCAN_OPTIONS,
  type ScanOptions,
  selectGroups,
  unmatchedParts,
} from './scan-selection.js'
import { summarize, type TrialSummary } from './summary.js'
import { Tensor } from './tensor.js'
import { TornasoleNames } from './tornasole.js'

/** The worker whose steps are meant. */
export interface WorkerOptions {
  /** Default: the first worker, in sorted order, that wrote the step. */
  readonly worker?: Worker
}

const WORKER_OPTIONS = optionsOf<WorkerOptions>({ worker: kinds.text })
const SUMMARY_OPTIONS = optionsOf<WorkOptions>(WORK_OPTIONS)
const WAIT_FOR_STEPS_OPTIONS = optionsOf<WaitOptions & { mode?: Mode }>({ ...WAIT_OPTIONS, mode: kinds.mode })

/** The state behind a trial, for the stages that build on it. */
export let stateOf: (trial: Trial) => TrialState

export class Trial extends TornasoleNames {
  static {
    stateOf = trial => trial.#state
  }

  /** The path or URL that `createTrial` was given, without surrounding blanks. */
  readonly path: string
  readonly name: string
  readonly #state: TrialState

  /** Use `createTrial`. @internal */
  constructor(path: string, name: string, state: TrialState) {
    super()
    this.path = path
    this.name = name
    this.#state = state
  }

  /**
   * Looks for anything written since the last look. Only new index files are read.
   * @returns whether there was anything
   */
  refresh(): Promise<boolean> {
    return this.#state.refresh()
  }

  /** Like `noRefresh` for this trial. */
  async withoutRefresh<T>(work: () => Promise<T> | T): Promise<T> {
    expectWork('trial.withoutRefresh', work)
    return withHold([this.#state], {}, work)
  }

  /**
   * The state of a step (complete, still possible, or unavailable for good): a global step for GLOBAL (the default), else a step of
   * the mode. Looks for new steps first if that could change the answer.
   */
  async hasPassedStep(step: number, mode: Mode = 'GLOBAL'): Promise<StepState> {
    return hasPassedStep(this.#state, step, checkMode(mode))
  }

  /**
   * Waits until all of the steps are complete: global steps for GLOBAL (the default), else steps of the mode.
   * @throws StepUnavailable for a step that was skipped, NoMoreData if the job ended before it, WaitTimeout,
   *   StepNotYetAvailable within `withoutRefresh`, the signal's reason
   */
  async waitForSteps(steps: readonly number[], options?: WaitOptions & { mode?: Mode }): Promise<void> {
    const { mode = 'GLOBAL', ...waiting } = checkOptions('trial.waitForSteps', WAIT_FOR_STEPS_OPTIONS, options)
    return waitForSteps(this.#state, steps, mode, waiting)
  }

  /**
   * Complete global steps as they come, until the job ends: `for await (const step of trial.follow())`.
   * @throws WaitTimeout if no step comes for too long, the signal's reason
   */
  follow(options?: FollowOptions): AsyncGenerator<GlobalStep> {
    return follow(this.#state, checkOptions('trial.follow', FOLLOW_OPTIONS, options))
  }

  /** The requests made so far for a trial on S3; all zero for others. */
  get traffic(): Readonly<Traffic> {
    return { ...this.#state.access.traffic }
  }

  /** Closes open files, forgets what was read, and stops looking for new steps in the background. */
  async close(): Promise<void> {
    await this.#state.close()
  }

  /** True if the job has ended, so that no more steps will come. */
  get loadedAllSteps(): boolean {
    return this.#state.ended
  }

  /**
   * Index files that can't be read, so that what they list is missing. If event files were scanned because there is no
   * index, also records that can't be read.
   */
  get problems(): readonly TrialscanError[] {
    const problems: TrialscanError[] = []
    for (const { error } of this.#catalog.workerSteps) if (error) problems.push(error)
    return problems.concat(this.#state.problems)
  }

  /** The facts about checkpoints beside their tensors (format, configuration); null for any other trial. */
  get checkpoint(): CheckpointFacts | null {
    return this.#state.contents.checkpoint
  }

  /** Notes that are no problems: checkpoints that are still being written, files that are not read. */
  get notes(): readonly string[] {
    return this.#state.contents.notes
  }

  /**
   * Step numbers, ascending: all global steps for GLOBAL (the default), else the steps of the mode. Steps that not all
   * workers have written yet are left out by default.
   */
  steps(options?: StepOptions): number[] {
    const { mode = 'GLOBAL', showIncompleteSteps = false } = checkOptions('trial.steps', STEP_OPTIONS, options)
    return this.#catalog.steps.numbers(mode, showIncompleteSteps)
  }

  /** The modes in which steps were saved, sorted; empty if the job set no mode. */
  modes(): Mode[] {
    return this.#catalog.steps.modes
  }

  /**
   * The mode in which a worker wrote a global step; without a worker, the first one that wrote it. If only rank 0
   * evaluates, workers are in different modes.
   * @throws StepUnavailable, StepNotYetAvailable, InvalidWorker
   */
  mode(globalStep: number, options?: WorkerOptions): Mode {
    const { worker } = checkOptions('trial.mode', WORKER_OPTIONS, options)
    return this.#state.writtenAs(globalStep, worker).mode
  }

  /** The step within its mode of a global step, for the worker that `mode` uses. @throws as `mode` */
  modeStep(globalStep: number, options?: WorkerOptions): ModeStep {
    const { worker } = checkOptions('trial.modeStep', WORKER_OPTIONS, options)
    return this.#state.writtenAs(globalStep, worker).modeStep
  }

  /** The global step of a step of a mode. Each worker counts for itself, as in `mode`. @throws as `mode` */
  globalStep(mode: Mode, modeStep: number, options?: WorkerOptions): GlobalStep {
    const { worker } = checkOptions('trial.globalStep', WORKER_OPTIONS, options)
    return this.#state.globalStep(modeStep, checkMode(mode), worker)
  }

  /** The workers of the job, sorted: those with a collections file, which may not have saved anything yet, and those with data. */
  workers(): Worker[] {
    return [...this.#state.contents.workers]
  }

  /** The workers that saved anything, sorted. */
  workersWithData(): Worker[] {
    return [...this.#catalog.workers]
  }

  /** All collections, by name. */
  collections(): Map<string, Collection> {
    const { collections } = this.#state.contents.collections
    return new Map([...collections.keys()].map(name => [name, this.collection(name)]))
  }

  /**
   * @param definition makes a collection of your own for this trial, or replaces one that you have made. Whatever takes the name of a
   *   collection knows it: `tensorNames`, `scan`, rules. Nothing is written.
   * @throws QueryError `CollectionUnavailable`, which names the nearest ones; UsageError for a pattern that is none, and for the name of a
   *   collection that was saved
   */
  collection(name: string, definition?: OwnCollectionOptions): Collection {
    if (definition !== undefined) makeCollection(this.#state, name, definition)
    return collectionOf(this.#state, this.name, name)
  }

  /** Names of saved tensors that meet all of the options, sorted. */
  tensorNames(options?: TensorNamesOptions): string[] {
    return namesAmong(this.#state, this.name, checkOptions('trial.tensorNames', TENSOR_NAMES_OPTIONS, options))
  }

  /** Names of the inputs: members of the collection `inputs` or, if none were saved, names that contain `input`. */
  inputs(options?: NamesAtOptions): string[] {
    return namesFor(this.#state, this.name, 'inputs', options)
  }

  /** Like `inputs`, for the outputs. */
  outputs(options?: NamesAtOptions): string[] {
    return namesFor(this.#state, this.name, 'outputs', options)
  }

  /** Like `inputs`, for the labels. */
  labels(options?: NamesAtOptions): string[] {
    return namesFor(this.#state, this.name, 'labels', options)
  }

  /** Like `inputs`, for the predictions. */
  predictions(options?: NamesAtOptions): string[] {
    return namesFor(this.#state, this.name, 'predictions', options)
  }

  hasTensor(name: string): boolean {
    expectText('trial.hasTensor', 'name', name)
    return this.#catalog.byTensor.has(name)
  }

  /** @throws TensorUnavailable, which names the nearest ones */
  tensor(name: string): Tensor {
    expectTensor(this.#state, this.name, name)
    return new Tensor(name, this.#state)
  }

  /**
   * Reductions of many tensors in one pass over their bytes. Rows come in the order of global steps, workers (sorted)
   * and tensors (as in the index file), as soon as they are ready, with any number of threads. If only reductions of a
   * tensor were saved, its row has those. A record that can't be read gives a row with an `error`. A row without one has every reduction that
   * is asked for by name, as a number. Complex means and sums, and texts, which have none, are left out of these types: `const scan: Scan = …`
   * has them.
   * @throws UsageError, TensorUnavailable, InvalidWorker or QueryError at once, for anything that the trial does not
   *   have
   */
  scan<const R extends readonly StatisticName[]>(
    options: ScanOptions & { readonly reductions: R },
  ): Scan<StatisticsOf<R>>
  scan(options?: ScanOptions): Scan
  scan(options?: ScanOptions): Scan {
    const settings = checkOptions('trial.scan', SCAN_OPTIONS, options)
    const { checkLevel = 'minimal', reductions = 'all', threads, memory = DEFAULT_MEMORY } = settings
    const names = parseReductions(reductions)
    const { access } = this.#state
    return new Scan({
      problems: () => [...this.#state.contents.problems, ...unmatchedParts(this.#state, this.name, settings)],
      groups: selectGroups(this.#state, this.name, settings),
      reductions: names,
      strict: reductions !== 'all',
      context: {
        store: access.spec,
        checkLevel: checkLevelNumber(checkLevel),
        memory,
        timed: settings.timed,
        wallTimes: settings.wallTimes,
        known: setFor(names.filter(isMomentName)),
        statistics: elementStatistics(names),
        sketched: names.some(isSketchName),
      },
      runner: cost => access.runner(threads, cost, memory, settings.callerWorks),
      url: path => access.store.url(path),
      signal: settings.signal,
      onProgress: settings.onProgress,
    })
  }

  /**
   * The distribution of a tensor's elements over steps and workers: merged sketches.
   * @param options as of `scan`. Default: all steps and workers
   * @throws as `scan`, and what is wrong with a record; ReductionUndefined for complex numbers and texts; TensorUnavailable if none of the
   *   values was saved
   */
  async distribution(tensor: string, options?: DistributionOptions): Promise<Distribution> {
    const settings = checkOptions('trial.distribution', DISTRIBUTION_OPTIONS, options)
    expectTensor(this.#state, this.name, tensor)
    const merged = await distributionOf(this.scan({ ...settings, tensors: tensor, reductions: ['sketch'] }))
    if (merged !== null) return merged
    throw new TensorUnavailable(tensor, this.name, [])
  }

  /** Dtype, shape, steps and bytes of every tensor. Reads the heads of two records per tensor. */
  async summary(options?: WorkOptions): Promise<TrialSummary> {
    return summarize(this.#state, checkOptions('trial.summary', SUMMARY_OPTIONS, options))
  }

  get #catalog() {
    return this.#state.catalog
  }
}

/** @throws UsageError for what is no trial: a path, most often */
export function expectTrial(call: string, given: unknown): void {
  if (given instanceof Trial) return
  const got = typeof given === 'string' ? quote(given) : String(given)
  throw new UsageError(`${call}: expected a trial, as createTrial opens it, got ${got}`, { call })
}
