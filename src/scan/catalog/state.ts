/** The state that a trial and its tensors share: access to the bytes, and the current contents. */

import { setImmediate } from 'node:timers/promises'
import { expectStep } from '../../base/arguments.js'
import {
  EngineError,
  InvalidWorker,
  NoMoreData,
  StepNotYetAvailable,
  StepUnavailable,
  TrialscanError,
  UsageError,
} from '../../base/errors.js'
import type { GlobalStep, Mode, Worker } from '../../base/types.js'
import type { CollectionConfig } from '../../format/collections.js'
import type { Access } from '../runner/access.js'
import { BackgroundRefresh, type KeptUp } from './background.js'
import type { Catalog } from './catalog.js'
import { currentHold, type Holdable } from './hold.js'
import type { TrialContents, TrialLoader } from './load/load.js'
import { Remembered } from './remembered.js'
import { isInRange, nearestSteps, type StepRange } from './step-selection.js'
import type { Step } from './steps.js'
import { hasMode, type WorkerStep } from './worker-steps.js'

/**
 * The state of a step (smdebug's StepState).
 * - AVAILABLE: it is complete
 * - NOT_YET_AVAILABLE: the job, or some of its workers, may still write it
 * - UNAVAILABLE: it was not saved and will not be (a later step is complete, or the job has ended), or lies outside the loaded range
 */
export type StepState = 'AVAILABLE' | 'NOT_YET_AVAILABLE' | 'UNAVAILABLE'

export class TrialState implements Holdable, KeptUp {
  /** The reductions that were computed for records. */
  readonly remembered = new Remembered()
  readonly access: Access
  readonly rangeSteps: StepRange | null
  readonly #loader: Pick<TrialLoader, 'load'>
  /** The contents as loaded, without the caller's own collections. */
  #loaded: TrialContents
  #contents: TrialContents
  /** The caller's own collections, by name. */
  readonly #ownCollections = new Map<string, CollectionConfig>()
  lookedAt = performance.now()
  newsAt = performance.now()
  #background: BackgroundRefresh | null = null
  /** The error of the last look in the background. */
  #problem: TrialscanError | null = null

  constructor(
    access: Access,
    rangeSteps: StepRange | null,
    loader: Pick<TrialLoader, 'load'>,
    contents: TrialContents,
  ) {
    this.access = access
    this.rangeSteps = rangeSteps
    this.#loader = loader
    this.#loaded = contents
    this.#contents = contents
  }

  /** The current contents or, within a hold, those at its beginning. */
  get contents(): TrialContents {
    return currentHold()?.contentsOf(this) ?? this.#contents
  }

  get catalog(): Catalog {
    return this.contents.catalog
  }

  /** True if the job has ended, and everything it wrote is known. */
  get ended(): boolean {
    return this.contents.ended
  }

  /** True if a refresh could bring more. */
  get isLive(): boolean {
    return !this.ended && currentHold()?.contentsOf(this) === undefined
  }

  /** @returns true if something new was found */
  async refresh(): Promise<boolean> {
    const before = this.contents
    await this.#load()
    currentHold()?.renew(this, this.#contents)
    return this.#contents !== before
  }

  /** Keeps looking in the background while the job runs, until `close`. */
  refreshInBackground(): void {
    if (!this.hasEnded) this.#background ??= new BackgroundRefresh(this, this.access.store)
  }

  async keepUp(): Promise<void> {
    try {
      await this.#load()
    } catch (error) {
      this.#problem =
        error instanceof TrialscanError ? error : new EngineError('looking for new steps failed', {}, error)
    }
  }

  get hasEnded(): boolean {
    return this.#contents.ended
  }

  /** The problems of the trial as a whole. */
  get problems(): readonly TrialscanError[] {
    return this.#problem === null ? this.contents.problems : [...this.contents.problems, this.#problem]
  }

  /**
   * Waits for a turn of the event loop before answering from memory, if the trial is followed. Otherwise a caller who polls would keep
   * news from arriving.
   */
  async turn(): Promise<void> {
    if (this.#background?.isOn && this.isLive) await setImmediate()
  }

  async #load(): Promise<void> {
    this.lookedAt = performance.now()
    const loaded = await this.#loader.load()
    this.#problem = null
    if (loaded === this.#loaded) return
    this.#loaded = loaded
    this.#contents = this.#withOwnCollections()
    this.newsAt = performance.now()
  }

  /** Makes or replaces a collection of the caller. @throws UsageError for the name of a saved one */
  makeCollection(config: CollectionConfig): void {
    const { name } = config
    if (this.#loaded.collections.collections.has(name)) {
      const message = `the trial has a collection ${JSON.stringify(name)} already: expected another name for one of your own`
      throw new UsageError(message, { collection: name })
    }
    this.#ownCollections.set(name, config)
    this.#contents = this.#withOwnCollections()
    currentHold()?.renew(this, this.#contents)
  }

  #withOwnCollections(): TrialContents {
    if (this.#ownCollections.size === 0) return this.#loaded
    const { collections, numWorkers } = this.#loaded.collections
    return {
      ...this.#loaded,
      collections: { collections: new Map([...collections, ...this.#ownCollections]), numWorkers },
    }
  }

  async close(): Promise<void> {
    this.#background?.close()
    this.remembered.clear()
    await this.access.close()
  }

  /** True if a step can be used without a refresh and without waiting for a turn. */
  isAtHand(step: number, mode: Mode): boolean {
    return this.catalog.steps.at(step, mode).length > 0 && !(this.#background?.isOn && this.isLive)
  }

  /** Looks again if a step is unknown. @throws StepUnavailable, StepNotYetAvailable */
  async expectStep(step: number, mode: Mode): Promise<void> {
    if (this.catalog.steps.at(step, mode).length === 0 && this.isLive) await this.refresh()
    else await this.turn()
    this.knownSteps(step, mode)
  }

  /**
   * Looks again if a known step may have more data by now; it can't if the index files of all workers are known.
   * @returns true if it looked
   */
  async lookAgain(step: number, mode: Mode): Promise<boolean> {
    if (!this.isLive) return false
    const { catalog } = this
    const isWhole = workersOfSteps(catalog.steps.at(step, mode)).length >= catalog.steps.numWorkers
    if (isWhole && catalog.at(step, mode).every(({ error }) => error === null)) return false
    await this.refresh()
    return true
  }

  /** True if the worker, or any worker, may still write a known step. */
  awaits(step: number, mode: Mode, worker?: Worker): boolean {
    const { steps } = this.catalog
    if (steps.isComplete(step, mode)) return false
    if (worker === undefined) return true
    const { workers } = this.contents
    const mayBegin = workers.length < steps.numWorkers
    return (workers.includes(worker) || mayBegin) && !workersOfSteps(steps.at(step, mode)).includes(worker)
  }

  /** The known steps with that number, the last first. @throws StepUnavailable, StepNotYetAvailable */
  knownSteps(step: number, mode: Mode): readonly Step[] {
    expectStep(step)
    const globalStep = this.catalog.steps.at(step, mode)
    if (globalStep.length > 0) return globalStep
    if (this.stepState(step, mode) === 'NOT_YET_AVAILABLE') throw this.notYet(step, mode)
    throw new StepUnavailable(step, mode, `${this.#describe(step, mode)}${this.#nearest(step, mode)}`)
  }

  /**
   * A global step as the worker wrote it; without a worker, as the first one did.
   * @throws StepUnavailable, StepNotYetAvailable, InvalidWorker; FormatError if the worker's index file can't be read
   */
  writtenAs(globalStep: number, worker?: Worker): Pick<WorkerStep, 'mode' | 'modeStep'> {
    const [step] = this.knownSteps(globalStep, 'GLOBAL')
    if (worker === undefined) return step!
    const savedByWorker = this.catalog.atStep(globalStep).find(saved => saved.worker === worker)
    if (savedByWorker === undefined) throw this.#notWritten(globalStep, 'GLOBAL', worker)
    if (savedByWorker.error && !hasMode(savedByWorker)) throw savedByWorker.error
    return savedByWorker
  }

  /**
   * The global step that the worker wrote as a step of a mode, the last one if there are several; without a worker, that of the first one
   * that wrote it.
   * @throws StepUnavailable, StepNotYetAvailable, InvalidWorker
   */
  globalStep(step: number, mode: Mode, worker?: Worker): GlobalStep {
    const known = this.knownSteps(step, mode)
    const chosenWorker = worker ?? workersOfSteps(known)[0]!
    const match = known.find(({ workers }) => workers.includes(chosenWorker))
    if (match === undefined) throw this.#notWritten(step, mode, chosenWorker)
    return match.globalStep
  }

  /** The present state of a step: a global step for mode GLOBAL, else a step of the mode. */
  stepState(step: number, mode: Mode): StepState {
    const { steps } = this.catalog
    if (steps.at(step, mode).length > 0) return steps.isComplete(step, mode) ? 'AVAILABLE' : 'NOT_YET_AVAILABLE'
    // It is unknown if a mode step lies outside the range of global steps, or is yet to come.
    if (this.ended || (mode === 'GLOBAL' && !isInRange(step, this.rangeSteps))) return 'UNAVAILABLE'
    const last = mode === 'GLOBAL' ? steps.lastComplete : (steps.numbers(mode, false).at(-1) ?? -1)
    return last > step ? 'UNAVAILABLE' : 'NOT_YET_AVAILABLE'
  }

  /** The reason why a step will never come: the job ended before it, or skipped it. */
  unavailable(step: number, mode: Mode): NoMoreData | StepUnavailable {
    const last = this.catalog.steps.numbers(mode, true).at(-1)
    if (this.ended && (last === undefined || step > last)) return new NoMoreData(step, mode, last)
    return new StepUnavailable(step, mode, `${this.#describe(step, mode)}${this.#nearest(step, mode)}`)
  }

  /** The reason why a step is not available yet. */
  notYet(step: number, mode: Mode): StepNotYetAvailable {
    return new StepNotYetAvailable(step, mode, this.#describe(step, mode))
  }

  /** The reason why a known step lacks data that the worker, or any worker, may still write. */
  notYetOf(step: number, mode: Mode, worker?: Worker): StepNotYetAvailable {
    const detail = worker === undefined ? this.describeWriters(step, mode) : `${worker} has yet to write it`
    return new StepNotYetAvailable(step, mode, detail)
  }

  /** Describes who wrote a step that is not complete. */
  describeWriters(step: number, mode: Mode): string {
    const { steps } = this.catalog
    const workers = workersOfSteps(steps.at(step, mode)).join(', ')
    return steps.numWorkers < Number.POSITIVE_INFINITY
      ? `written by ${workers} only`
      : `written by ${workers}; no collections file says yet how many workers there are`
  }

  #notWritten(step: number, mode: Mode, worker: Worker): InvalidWorker | StepNotYetAvailable {
    if (this.awaits(step, mode, worker)) return this.notYetOf(step, mode, worker)
    return new InvalidWorker(worker, workersOfSteps(this.catalog.steps.at(step, mode)))
  }

  /** Describes the existing steps of a mode. */
  describeSteps(mode: Mode): string {
    const numbers = this.catalog.steps.numbers(mode, true)
    const kind = mode === 'GLOBAL' ? 'steps' : `${mode} steps`
    if (numbers.length === 0) return `the trial has no ${kind}`
    return `the trial has ${numbers.length} ${kind}, from ${numbers[0]} to ${numbers.at(-1)}`
  }

  #nearest(step: number, mode: Mode): string {
    const nearest = nearestSteps(step, this.catalog.steps.numbers(mode, true))
    return nearest.length > 0 ? `; nearest: ${nearest.join(' and ')}` : ''
  }

  #describe(step: number, mode: Mode): string {
    const range = this.rangeSteps
    if (mode === 'GLOBAL' && !isInRange(step, range))
      return `only steps [${range![0] ?? ''}, ${range![1] ?? ''}) are loaded`
    return `${this.describeSteps(mode)}${this.ended ? ', and the job has ended' : ''}`
  }
}

/** The workers that wrote any of some steps, sorted. */
export function workersOfSteps(steps: readonly Step[]): Worker[] {
  return [...new Set(steps.flatMap(({ workers }) => workers))].sort()
}
