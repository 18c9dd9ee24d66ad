/** Steps in words: which there are, and which of those that were named there are none of. */

import { type Mode, type Trial, TrialscanError } from '../index.js'
import { countText, shortList } from './format/number.js'
import type { StepsText } from './options/arguments.js'

/** `mode TRAIN with mode steps 0 to 80 (9 of them)`. */
export function modeSpans(trial: Trial): readonly string[] {
  const modes = trial.modes()
  if (modes.length === 0) return ['no modes']
  return modes.map(mode => `mode ${mode} with mode steps ${spanText(trial.steps({ mode, showIncompleteSteps: true }))}`)
}

export function spanText(numbers: readonly number[]): string {
  return numbers.length === 1
    ? `${numbers[0]}`
    : `${numbers[0]} to ${numbers.at(-1)} (${countText(numbers.length)} of them)`
}

/**
 * The steps of a mode, each with its global steps: several, where workers are in different modes at one global step and so
 * count apart, or where a training began again.
 */
export function globalStepsOf(
  trial: Trial,
  mode: Mode,
  workers: readonly string[] = trial.workersWithData(),
): ReadonlyMap<number, readonly number[]> {
  const found = new Map<number, number[]>()
  for (const step of trial.steps({ showIncompleteSteps: true })) {
    for (const worker of workers) {
      const modeStep = modeStepOf(trial, step, mode, worker)
      const known = modeStep === undefined ? undefined : found.get(modeStep)
      if (known === undefined && modeStep !== undefined) found.set(modeStep, [step])
      else if (known !== undefined && known.at(-1) !== step) known.push(step)
    }
  }
  return found
}

/** Undefined where the worker wrote nothing at the step, or another mode's, or its index file can't be read. */
function modeStepOf(trial: Trial, step: number, mode: Mode, worker: string): number | undefined {
  try {
    return trial.mode(step, { worker }) === mode ? trial.modeStep(step, { worker }) : undefined
  } catch (error) {
    if (error instanceof TrialscanError) return undefined
    throw error
  }
}

/** Steps that were named one by one, and that the trial does not have. */
export function absentSteps(
  trial: Trial,
  asked: {
    readonly steps: StepsText | undefined
    readonly modeSteps: StepsText | undefined
    readonly mode?: Mode | undefined
  },
): readonly string[] {
  const own = asked.mode ? [asked.mode] : trial.modes()
  const options: readonly (readonly [option: string, steps: StepsText | undefined, modes: readonly Mode[]])[] = [
    ['--steps', asked.steps, ['GLOBAL']],
    ['--mode-steps', asked.modeSteps, own.length > 0 ? own : ['GLOBAL']],
  ]
  return options.flatMap(([option, steps, modes]) => {
    if (steps === undefined) return []
    const known = new Set<number>(modes.flatMap(mode => trial.steps({ mode, showIncompleteSteps: true })))
    const absent = steps.selection.only
      .filter(step => typeof step === 'number')
      .filter(step => step >= 0 && !known.has(step))
    return absent.length > 0 ? [`${option} ${steps.text}: the trial has no step ${shortList(absent)}`] : []
  })
}
