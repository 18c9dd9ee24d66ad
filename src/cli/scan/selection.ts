/** The selected part of a trial: from options, and in words if it is empty. */

import { TensorUnavailable } from '../../base/errors.js'
import { type Mode, REDUCTIONS, type StatisticName } from '../../base/types.js'
import { selectSteps } from '../../scan/catalog/step-selection.js'
import { parseReductions } from '../../trial/reduction.js'
import type { ScanOptions } from '../../trial/scan-selection.js'
import type { Trial } from '../../trial/trial.js'
import { counted, shortList } from '../format/number.js'
import type { StepsText } from '../options/arguments.js'
import { absentSteps, globalStepsOf, modeSpans, spanText } from '../step-texts.js'

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
  return {
    ...(tensor && { regex: tensor }),
    ...(collection && { collection }),
    ...(steps && { steps: steps.selection }),
    ...(modeSteps && { modeSteps: modeSteps.selection }),
    ...(mode && { mode }),
    ...(worker && { workers: worker }),
  }
}

/** True if less than the whole trial is selected. */
export function isSelective(flags: SelectionFlags): boolean {
  return Object.keys(selectionOf(flags)).length > 0
}

/** The message for a scan without rows: what was asked for, and what the trial has. */
export function nothingSelected(trial: Trial, flags: SelectionFlags): string {
  const { tensor, collection, steps, modeSteps, mode, worker } = flags
  const asked = [
    ...(tensor ?? []).map(pattern => `tensors that match ${JSON.stringify(pattern)}`),
    ...(collection ?? []).map(name => `collection ${JSON.stringify(name)}`),
    ...(steps ? [`global steps ${steps.text}`] : []),
    ...(modeSteps ? [`mode steps ${modeSteps.text}`] : []),
    ...(mode ? [`mode ${mode}`] : []),
    ...(worker ?? []).map(name => `worker ${JSON.stringify(name)}`),
  ]
  const names = trial.tensorNames()
  const numbers = trial.steps({ showIncompleteSteps: true })
  const nearest = (tensor ?? []).flatMap(pattern => nearestTo(trial, pattern))
  const near =
    nearest.length > 0 ? ` (nearest: ${[...new Set(nearest)].map(name => JSON.stringify(name)).join(', ')})` : ''
  const saved = [
    `${counted(names.length, 'tensor')}${near}`,
    numbers.length > 0 ? `global steps ${spanText(numbers)}` : 'no steps',
    ...modeSpans(trial),
    `workers ${trial.workers().join(', ') || 'none'}`,
  ]
  return `nothing is there for ${asked.join(', ') || 'a scan of all'}; the trial has ${saved.join('; ')}`
}

/** Notes on steps that were not scanned although the options may seem to include them. */
export function unscannedSteps(
  trial: Trial,
  { steps, modeSteps, mode, worker }: SelectionFlags,
  hasRows: boolean,
): readonly string[] {
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
    const left = [...globals].filter(([step, theirs]) => isMeant.has(step) && !theirs.every(step => isTaken.has(step)))
    if (left.length > 0) {
      const leftOut = left.map(([step]) => step).sort((a, b) => a - b)
      const theirs = left.flatMap(([, theirs]) => theirs.filter(step => !isTaken.has(step)))
      notes.push(
        `--steps ${steps.text} are global steps, which leaves out ${counted(leftOut.length, 'step')} of ${mode}: ` +
          `mode steps ${shortList(leftOut)} are global steps ${shortList(theirs)}; for steps of ${mode} write --mode-steps ${steps.text}`,
      )
    }
  }
  return hasRows ? [...notes, ...absentSteps(trial, { steps, modeSteps, mode })] : notes
}

/** Names similar to a pattern that matches none. */
function nearestTo(trial: Trial, pattern: string): readonly string[] {
  try {
    trial.tensor(pattern.replace(/[\^$.*+?()[\]{}|\\]+/g, ''))
    return []
  } catch (error) {
    return error instanceof TensorUnavailable ? (error.fields.nearest as readonly string[]) : []
  }
}

/** The names, where `all` may be one of them; alone, it is the default: those of the eighteen that a dtype has. */
export function asked(names: readonly string[] | undefined): readonly StatisticName[] | undefined {
  if (names === undefined || (names.length === 1 && names[0] === 'all')) return undefined
  return parseReductions(names.flatMap((name): readonly string[] => (name === 'all' ? REDUCTIONS : [name])))
}
