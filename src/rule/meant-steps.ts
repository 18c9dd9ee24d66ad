/** Which steps of a trial an evaluation judges. */

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
 * A test for the steps to judge.
 * @throws UsageError for a selection from the end while the job goes on
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
  const filters = new Map<Mode, (step: number) => boolean>()
  const isModeStep = (mode: Mode, modeStep: number, selection: StepSelection): boolean => {
    const filter = filters.get(mode) ?? stepFilter(selection, () => trial.steps({ mode, showIncompleteSteps }))
    filters.set(mode, filter)
    return filter(modeStep)
  }
  return step => {
    if (step < (startStep ?? 0) || step >= (endStep ?? Number.POSITIVE_INFINITY)) return false
    if (isStep !== undefined && !isStep(step)) return false
    if (modeSteps === undefined) return true
    // Workers can be in different modes at one step. It is judged if any of them has a selected mode step.
    return stateOf(trial)
      .catalog.atStep(step)
      .some(({ mode, modeStep }) => isModeStep(mode, modeStep, modeSteps))
  }
}
