/** The selected part of a trial: from options, and in words if nothing is selected. */

import { type Mode, REDUCTIONS, type StatisticName } from '../../base/types.js'
import { selectSteps } from '../../scan/catalog/step-selection.js'
import { parseReductions } from '../../trial/reduction.js'
import { type ScanOptions, unmatchedParts } from '../../trial/scan-selection.js'
import { stateOf, type Trial } from '../../trial/trial.js'
import { counted, shortList } from '../format/number.js'
import type { StepsText } from '../options/arguments.js'
import { defined } from '../options/given.js'
import { globalStepsOf, modeSpans, spanText } from '../step-texts.js'

export interface SelectionFlags {
  readonly tensor?: readonly string[]
  readonly collection?: readonly string[]
  readonly steps?: StepsText
  readonly modeSteps?: StepsText
  readonly mode?: Mode
  readonly worker?: readonly string[]
}

/** The selection for `trial.scan`. */
export function selectionOf({ tensor, collection, steps, modeSteps, mode, worker }: SelectionFlags): ScanOptions {
  const places = { steps: steps?.selection, modeSteps: modeSteps?.selection, mode, workers: worker }
  return defined({ tensors: tensor, collection, ...places })
}

/** The options of a selection as they were written; null if there are none. */
export function selectionText({
  tensor = [],
  collection = [],
  steps,
  modeSteps,
  mode,
  worker = [],
}: SelectionFlags): string | null {
  const options = [
    ...tensor.map(text => `--tensor ${text}`),
    ...collection.map(text => `--collection ${text}`),
    ...(steps ? [`--steps ${steps.text}`] : []),
    ...(modeSteps ? [`--mode-steps ${modeSteps.text}`] : []),
    ...(mode ? [`--mode ${mode}`] : []),
    ...worker.map(text => `--worker ${text}`),
  ]
  return options.length > 0 ? options.join(' ') : null
}

/** True if less than the whole trial is selected. */
export function isSelective(flags: SelectionFlags): boolean {
  return Object.keys(selectionOf(flags)).length > 0
}

/** The message for a scan without rows: what matches nothing, and what the trial has. */
export function nothingSelected(trial: Trial, flags: SelectionFlags): string {
  const names = trial.tensorNames()
  const numbers = trial.steps({ showIncompleteSteps: true })
  const saved = [
    counted(names.length, 'tensor'),
    numbers.length > 0 ? `global steps ${spanText(numbers)}` : 'no steps',
    ...modeSpans(trial),
    `workers ${trial.workers().join(', ') || 'none'}`,
  ]
  return `nothing is there: ${unmatchedTexts(trial, flags).join('; ')}; the trial has ${saved.join('; ')}`
}

/** The parts of a selection that match nothing. */
export function unmatchedTexts(trial: Trial, flags: SelectionFlags): readonly string[] {
  return unmatchedParts(stateOf(trial), trial.name, selectionOf(flags)).map(({ message }) => message)
}

/** Notes on data that was not scanned although the options may seem to include it. */
export function unscannedParts(trial: Trial, flags: SelectionFlags, hasRows: boolean): readonly string[] {
  const { steps, mode, worker } = flags
  const notes: string[] = []
  if (steps && mode && mode !== 'GLOBAL') {
    const globals = globalStepsOf(trial, mode, worker)
    const selected = (numbers: Iterable<number>) =>
      new Set(
        selectSteps(
          [...new Set(numbers)].sort((a, b) => a - b),
          steps.selection,
        ),
      )
    const [isMeant, isTaken] = [selected(globals.keys()), selected([...globals.values()].flat())]
    const unscanned = [...globals].filter(
      ([step, theirs]) => isMeant.has(step) && !theirs.every(step => isTaken.has(step)),
    )
    if (unscanned.length > 0) {
      const leftOut = unscanned.map(([step]) => step).sort((a, b) => a - b)
      const theirs = unscanned.flatMap(([, theirs]) => theirs.filter(step => !isTaken.has(step)))
      notes.push(
        `--steps ${steps.text} are global steps, which leaves out ${counted(leftOut.length, 'step')} of ${mode}: ` +
          `mode steps ${shortList(leftOut)} are global steps ${shortList(theirs)}; for steps of ${mode} write --mode-steps ${steps.text}`,
      )
    }
  }
  return hasRows ? [...notes, ...unmatchedTexts(trial, flags)] : notes
}

/**
 * The requested statistics, where `all` may be one of the names. Undefined for the default, which `all` alone means,
 * too: the reductions that a dtype has.
 */
export function requestedStatistics(names: readonly string[] | undefined): readonly StatisticName[] | undefined {
  if (names === undefined || (names.length === 1 && names[0] === 'all')) return undefined
  return parseReductions(names.flatMap((name): readonly string[] => (name === 'all' ? REDUCTIONS : [name])))
}
