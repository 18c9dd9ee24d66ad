/** Which steps of a trial an evaluation is to judge. */

import { countsFromEnd, type StepSelection, stepFilter } from '../catalog/step-selection.js'
import { UsageError } from '../errors.js'
import { stateOf, type Trial } from '../trial/trial.js'
import type { Mode } from '../types.js'

/** As in EvaluateOptions. */
interface MeantSteps {
  readonly startStep?: number | null
  readonly endStep?: number | null
  readonly steps?: StepSelection
  readonly modeSteps?: StepSelection
  readonly follow?: boolean
}

/**
 * Which steps of a trial are to be judged.
 * @throws UsageError for steps from the end of a job that goes on
 */
export function meantSteps(trial: Trial, options: MeantSteps): (step: number) => boolean {
  const { startStep, endStep, steps, modeSteps, follow = true } = options
  for (const [name, selection] of Object.entries({ steps, modeSteps })) {
    if (selection === undefined || !countsFromEnd(selection) || !follow || trial.loadedAllSteps) continue
    throw new UsageError(
      `expected ${name} that don't count from the end, since trial ${trial.name} still runs and is followed: its last step is not known`,
      { option: name },
    )
  }
  const showIncompleteSteps = true
  const isStep = steps && stepFilter(steps, () => trial.steps({ showIncompleteSteps }))
  const ofMode = new Map<Mode, (step: number) => boolean>()
  const isModeStep = (mode: Mode, modeStep: number, selection: StepSelection): boolean => {
    const known = ofMode.get(mode) ?? stepFilter(selection, () => trial.steps({ mode, showIncompleteSteps }))
    ofMode.set(mode, known)
    return known(modeStep)
  }
  return step => {
    if (step < (startStep ?? 0) || step >= (endStep ?? Number.POSITIVE_INFINITY)) return false
    if (isStep !== undefined && !isStep(step)) return false
    if (modeSteps === undefined) return true
    // Of workers in different modes each counts: the step is judged where it is meant of one of them.
    return stateOf(trial)
      .catalog.atStep(step)
      .some(({ mode, modeStep }) => isModeStep(mode, modeStep, modeSteps))
  }
}
