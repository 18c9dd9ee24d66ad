/** Selects steps by number, from the end, in ranges, and in lists. */

import { expectArgument, expectArray } from '../../base/arguments.js'
import { parseSteps, type StepSlice } from './step-text.js'

export type { StepSlice }

/** Steps `[begin, end)`, as smdebug's `range_steps` has them; null: no limit on that side. */
export type StepRange = readonly [begin: number | null, end: number | null]

/**
 * A selection of steps: a number, a range, a list of both, or a text as `--steps` takes it (`0:10`, `0,10,20`, `last`).
 * Negative numbers count from the end of the existing steps: `{ from: -5 }` selects the last five, `-1` the last one, even where
 * TensorBoard's files have steps below 0: a range without `from` selects those, too.
 */
export type StepSelection = number | string | StepSlice | readonly (number | StepSlice)[]

/** The forms of a selection, for messages. */
export const STEP_SELECTION =
  "a step, a range { from, to, stride } with from < to, a list of both, or a text such as '0:10' or '0,10,20'"

export function isStepSelection(given: unknown): given is StepSelection {
  if (typeof given === 'string') return parseSteps(given) !== null
  if (!Array.isArray(given)) return Number.isSafeInteger(given) || isSlice(given)
  return given.length > 0 && given.every(entry => Number.isSafeInteger(entry) || isSlice(entry))
}

function isSlice(given: unknown): boolean {
  if (Object.prototype.toString.call(given) !== '[object Object]' || Object.keys(given as object).length === 0)
    return false
  const { from = null, to = null, stride = 1, ...others } = given as Record<string, unknown>
  if (Object.keys(others).length > 0 || !(Number.isSafeInteger(stride) && (stride as number) > 0)) return false
  if (![from, to].every(bound => bound === null || Number.isSafeInteger(bound))) return false
  if (from === null || to === null) return true
  const [first, behind] = [from as number, to as number]
  // If only one of the two counts from the end, their order is unknown.
  return first < behind || first < 0 !== behind < 0
}

/** True if the selection can be resolved only when all steps are known. */
export function countsFromEnd(selection: StepSelection): boolean {
  const isNegative = (bound: number | null | undefined): boolean => (bound ?? 0) < 0
  return listOf(selection).some(entry =>
    typeof entry === 'number' ? isNegative(entry) : isNegative(entry.from) || isNegative(entry.to),
  )
}

/** The number after the last step of a selection that does not count from the end; Infinity if it has no end. */
export function endOf(selection: StepSelection): number {
  return Math.max(
    ...listOf(selection).map(entry => (typeof entry === 'number' ? entry + 1 : (entry.to ?? Number.POSITIVE_INFINITY))),
  )
}

function listOf(selection: StepSelection): readonly (number | StepSlice)[] {
  if (typeof selection === 'string') return parseSteps(selection) ?? []
  return Array.isArray(selection) ? selection : [selection as number | StepSlice]
}

/** The steps that a selection selects. @param numbers the existing steps, ascending */
export function selectSteps(numbers: readonly number[], selection: StepSelection): number[] {
  expectArray('selectSteps', 'numbers', 'an array of steps', numbers)
  expectArgument('selectSteps', 'selection', STEP_SELECTION, selection, isStepSelection(selection))
  return numbers.filter(stepFilter(selection, () => numbers))
}

/** @param numbers returns the existing steps, ascending; called only for a selection that counts from the end */
export function stepFilter(selection: StepSelection, numbers: () => readonly number[]): (step: number) => boolean {
  let known: readonly number[] | undefined
  /** The n-th step from the end; undefined if there are fewer. */
  const fromEnd = (position: number): number | undefined => {
    known ??= numbers()
    return known.at(position)
  }
  const single = new Set<number | undefined>()
  const ranges: { readonly begin: number; readonly end: number; readonly stride: number }[] = []
  for (const entry of listOf(selection)) {
    if (typeof entry === 'number') single.add(entry < 0 ? fromEnd(entry) : entry)
    else {
      const { from, to, stride = 1 } = entry
      ranges.push({
        // Before the first step, a range begins at the first or ends before it.
        begin: from == null ? Number.NEGATIVE_INFINITY : from < 0 ? (fromEnd(from) ?? known![0] ?? 0) : from,
        end: to == null ? Number.POSITIVE_INFINITY : to < 0 ? (fromEnd(to) ?? 0) : to,
        stride,
      })
    }
  }
  return step =>
    single.has(step) ||
    ranges.some(
      ({ begin, end, stride }) =>
        step >= begin && step < end && (step - (Number.isFinite(begin) ? begin : 0)) % stride === 0,
    )
}

/** The steps that a selection names and that don't exist. @param saved the existing steps */
export function absentSteps(selection: StepSelection, saved: ReadonlySet<number>): number[] {
  return listOf(selection).filter(entry => typeof entry === 'number' && entry >= 0 && !saved.has(entry)) as number[]
}

/** The existing steps just below and above a missing one. @param saved the existing steps, in any order */
export function nearestSteps(step: number, saved: Iterable<number>): number[] {
  let [below, above] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]
  for (const number of saved) {
    if (number < step) below = Math.max(below, number)
    else above = Math.min(above, number)
  }
  return [below, above].filter(Number.isFinite)
}

/** A selection that includes a step: below 0, where a number would count from the end, all steps below 0. */
export function stepsAround(step: number): StepSelection {
  return step < 0 ? { to: 0 } : step
}

/** True if a step lies within a range; null is all steps. */
export function isInRange(step: number, range: StepRange | null): boolean {
  return range === null || ((range[0] === null || step >= range[0]) && (range[1] === null || step < range[1]))
}
