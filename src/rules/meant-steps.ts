/** The steps that an evaluation judges, and their order. */

import { UsageError } from '../base/errors.js'
import type { Mode } from '../base/types.js'
import { countsFromEnd, type StepSelection, stepFilter } from '../scan/catalog/step-selection.js'
import { stateOf, type Trial } from '../trial/trial.js'
import type { WasJudged } from './finding.js'
import type { Rule } from './rule.js'

/** The selection of steps, as in EvaluateOptions. */
interface MeantSteps {
  readonly startStep?: number | null
  readonly endStep?: number | null
  readonly steps?: StepSelection | undefined
  readonly modeSteps?: StepSelection | undefined
  readonly mode?: Mode | undefined
  readonly follow?: boolean
}

/**
 * A test for the steps to judge.
 * @throws UsageError for a selection from the end while the job goes on
 */
export function meantSteps(trial: Trial, options: MeantSteps): (step: number) => boolean {
  const { startStep, endStep, steps, modeSteps, mode: onlyMode, follow = false } = options
  for (const [name, selection] of Object.entries({ steps, modeSteps })) {
    if (selection === undefined || !countsFromEnd(selection) || !follow || trial.loadedAllSteps) continue
    throw new UsageError(
      `expected ${name} that don't count from the end, since trial ${trial.name} still runs and is followed: its last step is not known`,
      { option: name },
    )
  }
  const isAnyMode = onlyMode === undefined || onlyMode === 'GLOBAL'
  const showIncompleteSteps = true
  const isStep = steps === undefined ? undefined : stepFilter(steps, () => trial.steps({ showIncompleteSteps }))
  const filters = new Map<Mode, (step: number) => boolean>()
  const isModeStep = (mode: Mode, modeStep: number, selection: StepSelection): boolean => {
    const filter = filters.get(mode) ?? stepFilter(selection, () => trial.steps({ mode, showIncompleteSteps }))
    filters.set(mode, filter)
    return filter(modeStep)
  }
  return step => {
    if (step < (startStep ?? Number.NEGATIVE_INFINITY) || step >= (endStep ?? Number.POSITIVE_INFINITY)) return false
    if (isStep !== undefined && !isStep(step)) return false
    if (modeSteps === undefined && isAnyMode) return true
    // Workers can be in different modes at one step. The step is judged if any of them has a selected mode step.
    return stateOf(trial)
      .catalog.atStep(step)
      .some(
        ({ mode, modeStep }) =>
          (isAnyMode || mode === onlyMode) && (modeSteps === undefined || isModeStep(mode, modeStep, modeSteps)),
      )
  }
}

/** The rules over one trial. */
export interface RulesOfTrial {
  readonly trial: Trial
  readonly rules: readonly Rule[]
  /** True if a step is selected. */
  readonly isMeant: (step: number) => boolean
  readonly done: Set<number>
}

/** A test for the records that a rule judged, which does not keep the rule. @param done the steps that were judged */
export function judgedBy({ startStep, endStep, unreadRecords }: Rule, done: ReadonlySet<number>): WasJudged {
  return (step, tensor) =>
    done.has(step) &&
    (startStep <= 0 || step >= startStep) &&
    step < endStep &&
    !unreadRecords.has(`${step} ${tensor}`) &&
    !unreadRecords.has(`${step} `)
}

/** The steps that can be judged, in order; those before `at` have been judged. */
export interface Queue {
  readonly group: RulesOfTrial
  /** The known steps when the queue was made. */
  readonly known: readonly unknown[]
  readonly steps: readonly number[]
  at: number
}

/** The queue with the next step; the first one among equals. */
export function firstOf(queues: readonly Queue[]): Queue | undefined {
  let first: Queue | undefined
  for (const queue of queues) {
    const step = queue.steps[queue.at]
    if (step !== undefined && (first === undefined || step < first.steps[first.at]!)) first = queue
  }
  return first
}
