/** Steps in words. */

import { TrialscanError } from '../base/errors.js'
import type { Mode } from '../base/types.js'
import type { Trial } from '../trial/trial.js'
import { countText } from './format/number.js'

/** The mode steps of each mode, such as `mode TRAIN with mode steps 0 to 80 (9 of them)`. */
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
 * The steps of a mode, each with its global steps. There are several if workers are in different modes at one global
 * step and count apart, or if a training was resumed.
 */
export function globalStepsOf(
  trial: Trial,
  mode: Mode,
  workers: readonly string[] = trial.workersWithData(),
): ReadonlyMap<number, readonly number[]> {
  const globalsByStep = new Map<number, number[]>()
  for (const step of trial.steps({ showIncompleteSteps: true })) {
    for (const worker of workers) {
      const modeStep = modeStepOf(trial, step, mode, worker)
      if (modeStep === undefined) continue
      const globals = globalsByStep.get(modeStep)
      if (globals === undefined) globalsByStep.set(modeStep, [step])
      else if (globals.at(-1) !== step) globals.push(step)
    }
  }
  return globalsByStep
}

/**
 * The mode step of a worker at a step; undefined if the worker saved nothing there, was in another mode, or its index
 * file can't be read.
 */
export function modeStepOf(trial: Trial, step: number, mode: Mode, worker: string): number | undefined {
  try {
    return trial.mode(step, { worker }) === mode ? trial.modeStep(step, { worker }) : undefined
  } catch (error) {
    if (error instanceof TrialscanError) return undefined
    throw error
  }
}
