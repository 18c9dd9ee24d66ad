/** What a trial and its tensors share: the way to the bytes, and what is known of the trial at the moment. */

import { NoMoreData, StepNotYetAvailable, StepUnavailable } from '../errors.js'
import type { Mode } from '../types.js'
import type { Access } from './access.js'
import type { Catalog } from './catalog.js'
import { currentHold, type Holdable } from './hold.js'
import { isInRange, type StepRange, type TrialContents, type TrialLoader } from './open.js'
import type { Step } from './steps.js'

/**
 * Whether a step can be had (smdebug's StepState).
 * - AVAILABLE: it is complete
 * - NOT_YET_AVAILABLE: the job may still write it, or some workers have not written it yet
 * - UNAVAILABLE: it was not saved and will not be: a later step is complete, or the job has ended
 */
export type StepState = 'AVAILABLE' | 'NOT_YET_AVAILABLE' | 'UNAVAILABLE'

export class TrialState implements Holdable {
  readonly access: Access
  readonly rangeSteps: StepRange | null
  readonly #loader: TrialLoader
  #contents: TrialContents

  constructor(access: Access, rangeSteps: StepRange | null, loader: TrialLoader, contents: TrialContents) {
    this.access = access
    this.rangeSteps = rangeSteps
    this.#loader = loader
    this.#contents = contents
  }

  /** What is known of the trial: now, or, within a hold, when that began. */
  get contents(): TrialContents {
    return currentHold()?.contentsOf(this) ?? this.#contents
  }

  get catalog(): Catalog {
    return this.contents.catalog
  }

  /** Whether the job has ended, and all it wrote is known. */
  get ended(): boolean {
    return this.contents.ended
  }

  /** Whether asking again could tell more. */
  get isLive(): boolean {
    return !this.ended && currentHold()?.contentsOf(this) === undefined
  }

  /** @returns whether something new was found */
  async refresh(): Promise<boolean> {
    const before = this.contents
    this.#contents = await this.#loader.load()
    currentHold()?.renew(this, this.#contents)
    return this.#contents !== before
  }

  /** A step as it is known now, or undefined. */
  find(step: number, mode: Mode): Step | undefined {
    return this.catalog.steps.find(step, mode)
  }

  /** A step; one that is not known is looked for again first. @throws StepUnavailable, StepNotYetAvailable */
  async step(step: number, mode: Mode): Promise<Step> {
    if (this.find(step, mode) === undefined && this.isLive) await this.refresh()
    return this.knownStep(step, mode)
  }

  /** A step as it is known now. @throws StepUnavailable, StepNotYetAvailable */
  knownStep(step: number, mode: Mode): Step {
    const found = this.find(step, mode)
    if (found !== undefined) return found
    if (this.stepState(step, mode) === 'NOT_YET_AVAILABLE') throw this.notYet(step, mode)
    throw new StepUnavailable(step, mode, this.#describe(step, mode))
  }

  /** What is known now of a step: of mode GLOBAL a global step, else a step of the mode. */
  stepState(step: number, mode: Mode): StepState {
    const { steps } = this.catalog
    const found = steps.find(step, mode)
    if (found !== undefined) return steps.isComplete(found) ? 'AVAILABLE' : 'NOT_YET_AVAILABLE'
    // A mode step out of the range of global steps can't be told from one that is yet to come.
    if (this.ended || (mode === 'GLOBAL' && !isInRange(step, this.rangeSteps))) return 'UNAVAILABLE'
    const isPassed = steps.all.some(
      known =>
        (mode === 'GLOBAL' ? known.globalStep : known.modeStep) > step &&
        steps.isComplete(known) &&
        matches(known, mode),
    )
    return isPassed ? 'UNAVAILABLE' : 'NOT_YET_AVAILABLE'
  }

  /** Why a step will never come: the job has ended before it, or has left it out. */
  unavailable(step: number, mode: Mode): NoMoreData | StepUnavailable {
    const last = this.catalog.steps.numbers(mode, true).at(-1)
    if (this.ended && (last === undefined || step > last)) return new NoMoreData(step, mode, last)
    return new StepUnavailable(step, mode, this.#describe(step, mode))
  }

  /** Why a step is not there yet. */
  notYet(step: number, mode: Mode): StepNotYetAvailable {
    return new StepNotYetAvailable(step, mode, this.#describe(step, mode))
  }

  /** What steps of a mode there are, in words. */
  describeSteps(mode: Mode): string {
    const numbers = this.catalog.steps.numbers(mode, true)
    const kind = mode === 'GLOBAL' ? 'steps' : `${mode} steps`
    if (numbers.length === 0) return `the trial has no ${kind}`
    return `the trial has ${numbers.length} ${kind}, from ${numbers[0]} to ${numbers.at(-1)}`
  }

  #describe(step: number, mode: Mode): string {
    const range = this.rangeSteps
    if (mode === 'GLOBAL' && !isInRange(step, range))
      return `only steps [${range![0] ?? ''}, ${range![1] ?? ''}) are loaded`
    return `${this.describeSteps(mode)}${this.ended ? ', and the job has ended' : ''}`
  }
}

function matches(step: Step, mode: Mode): boolean {
  return mode === 'GLOBAL' || step.mode === mode
}
