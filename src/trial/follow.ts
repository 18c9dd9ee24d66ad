/** Follows a running trial and yields its steps as they come. */

import { expectArray, expectStep } from '../base/arguments.js'
import { kinds, optionsOf } from '../base/options.js'
import type { GlobalStep, Mode } from '../base/types.js'
import type { StepState, TrialState } from '../scan/catalog/state.js'
import { isOfMode } from '../scan/catalog/steps.js'
import { WAIT_OPTIONS, type WaitOptions, waitFor } from '../scan/catalog/wait.js'

export interface FollowOptions extends WaitOptions {
  /** Only steps of this mode. */
  readonly mode?: Mode
  /** The first global step to yield. Default: the first one saved. */
  readonly startStep?: number
}

export const FOLLOW_OPTIONS = optionsOf<FollowOptions>({ ...WAIT_OPTIONS, mode: kinds.mode, startStep: kinds.step })

/** The state of a step: complete, still possible, or unavailable for good. Looks for new steps first if that could change the answer. */
export async function hasPassedStep(state: TrialState, step: number, mode: Mode): Promise<StepState> {
  expectStep(step)
  const known = state.stepState(step, mode)
  if (known === 'NOT_YET_AVAILABLE' && state.isLive) await state.refresh()
  else await state.turn()
  return state.stepState(step, mode)
}

/**
 * Waits until all of the steps are complete.
 * @throws StepUnavailable for a step that was skipped, NoMoreData if the job ended before it, WaitTimeout
 */
export async function waitForSteps(
  state: TrialState,
  steps: readonly number[],
  mode: Mode,
  options: WaitOptions,
): Promise<void> {
  expectArray('trial.waitForSteps', 'steps', 'an array of steps', steps)
  for (const step of steps) expectStep(step)
  const look = async () => {
    const missing: number[] = []
    if (state.isLive) await state.refresh()
    for (const step of steps) {
      const known = state.stepState(step, mode)
      if (known === 'UNAVAILABLE') throw state.unavailable(step, mode)
      if (known === 'NOT_YET_AVAILABLE') missing.push(step)
    }
    // Within withoutRefresh no step can come.
    if (missing.length > 0 && !state.isLive) throw state.notYet(missing[0]!, mode)
    if (missing.length === 0) return { answer: undefined }
    return { missing: describeMissing(state, missing, mode), present: state.describeSteps(mode) }
  }
  // If everything is known already, there is nothing to wait for.
  if (steps.every(step => state.stepState(step, mode) === 'AVAILABLE')) return state.turn()
  await waitFor(state.access.store, look, options)
}

/**
 * Yields complete steps, each once, until the job ends. They come in ascending order, except that a step which a slow
 * worker completes after later ones is yielded when it is complete.
 * @throws WaitTimeout if no step comes for too long
 */
export async function* follow(state: TrialState, options: FollowOptions): AsyncGenerator<GlobalStep> {
  const { mode = 'GLOBAL', startStep = Number.NEGATIVE_INFINITY } = options
  const yielded = new Set<GlobalStep>()
  const fresh = (): GlobalStep[] =>
    [...state.catalog.steps]
      .filter(step => step.globalStep >= startStep && isOfMode(step, mode))
      .filter(({ globalStep }) => !yielded.has(globalStep) && state.catalog.steps.isComplete(globalStep, 'GLOBAL'))
      .map(({ globalStep }) => globalStep)
  for (;;) {
    const steps = await waitFor(
      state.access.store,
      async () => {
        if (state.isLive) await state.refresh()
        const newSteps = fresh()
        if (newSteps.length > 0 || state.ended) return { answer: newSteps }
        const last = state.catalog.steps.lastComplete
        const kind = mode === 'GLOBAL' ? 'step' : `${mode} step`
        const lacking = state.catalog.steps.numWorkers < Number.POSITIVE_INFINITY ? '' : 'a collections file, and '
        const missing = `${lacking}a complete ${kind}${last < 0 ? '' : ` after global step ${last}`}, or the end of the job`
        return { missing, present: state.describeSteps('GLOBAL') }
      },
      options,
    )
    for (const step of steps) {
      yielded.add(step)
      yield step
    }
    if (state.ended && fresh().length === 0) return
  }
}

function describeMissing(state: TrialState, steps: readonly number[], mode: Mode): string {
  const parts = steps.slice(0, 5).map(step => {
    const isThere = state.catalog.steps.at(step, mode).length > 0
    return isThere ? `${step} (${state.describeWriters(step, mode)})` : String(step)
  })
  const more = steps.length > 5 ? ` and ${steps.length - 5} more` : ''
  return `${mode === 'GLOBAL' ? '' : `${mode} `}steps ${parts.join(', ')}${more}`
}
