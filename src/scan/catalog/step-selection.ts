/** Selecting steps: by number, from the end, in ranges, in lists. */

/** Steps `[begin, end)`; null: no limit on that side. */
export type StepRange = readonly [begin: number | null, end: number | null]

/** Steps from `begin` up to, but not including, `end`. A negative bound counts from the end, as in Python's slices. */
export interface StepSlice {
  /** Default: the first step there is. */
  readonly begin?: number | null
  /** Default: no end. */
  readonly end?: number | null
  /** Selects the step numbers at this distance from each other, from `begin` on (from 0 if there is none). Default: 1. */
  readonly stride?: number
}

/**
 * A selection of steps: a range `[begin, end)`, where null means no limit; or a list of step numbers and slices.
 * Negative numbers count from the end of the existing steps: `[-5, null]` selects the last five, `{ only: [-1] }` the
 * last one, even where TensorBoard's files have steps below 0: a range without a begin selects those, too.
 */
export type StepSelection = StepRange | { readonly only: readonly (number | StepSlice)[] }

/** The forms of a selection, for messages. */
export const STEP_SELECTION =
  '[begin, end] with begin < end, each a whole number or null, or { only: […] } with numbers of steps and { begin, end, stride }'

export function isStepSelection(given: unknown): given is StepSelection {
  if (Array.isArray(given)) return given.length === 2 && isSlice({ begin: given[0], end: given[1] })
  const { only, ...others } = (given ?? {}) as { readonly only?: unknown }
  if (!Array.isArray(only) || Object.keys(others).length > 0) return false
  return only.length > 0 && only.every(one => Number.isSafeInteger(one) || isSlice(one))
}

function isSlice(given: unknown): boolean {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return false
  const { begin = null, end = null, stride = 1, ...others } = given as Record<string, unknown>
  if (Object.keys(others).length > 0 || !(Number.isSafeInteger(stride) && (stride as number) > 0)) return false
  if (![begin, end].every(bound => bound === null || Number.isSafeInteger(bound))) return false
  if (begin === null || end === null) return true
  const [first, behind] = [begin as number, end as number]
  // If only one of the two counts from the end, it is not known which comes first.
  return first < behind || first < 0 !== behind < 0
}

/** True if the selection can be resolved only when all steps are known. */
export function countsFromEnd(selection: StepSelection): boolean {
  const isNegative = (bound: number | null | undefined): boolean => (bound ?? 0) < 0
  return listOf(selection).some(one =>
    typeof one === 'number' ? isNegative(one) : isNegative(one.begin) || isNegative(one.end),
  )
}

/** The number after the last step of a selection that does not count from the end; Infinity if it has no end. */
export function endOf(selection: StepSelection): number {
  return Math.max(
    ...listOf(selection).map(one => (typeof one === 'number' ? one + 1 : (one.end ?? Number.POSITIVE_INFINITY))),
  )
}

function listOf(selection: StepSelection): readonly (number | StepSlice)[] {
  return 'only' in selection ? selection.only : [{ begin: selection[0], end: selection[1] }]
}

/** The steps that a selection selects. @param numbers the existing steps, ascending */
export function selectSteps(numbers: readonly number[], selection: StepSelection): number[] {
  return numbers.filter(stepFilter(selection, () => numbers))
}

/** @param numbers returns the existing steps, ascending; called only if something counts from the end */
export function stepFilter(selection: StepSelection, numbers: () => readonly number[]): (step: number) => boolean {
  let known: readonly number[] | undefined
  /** The number of the n-th step from the end; undefined if there are fewer. */
  const fromEnd = (position: number): number | undefined => {
    known ??= numbers()
    return known.at(position)
  }
  const single = new Set<number | undefined>()
  const ranges: { readonly begin: number; readonly end: number; readonly stride: number }[] = []
  for (const one of listOf(selection)) {
    if (typeof one === 'number') single.add(one < 0 ? fromEnd(one) : one)
    else {
      const { begin, end, stride = 1 } = one
      ranges.push({
        // If that is before the first step: begins at the first, or ends before it.
        begin: begin == null ? Number.NEGATIVE_INFINITY : begin < 0 ? (fromEnd(begin) ?? known![0] ?? 0) : begin,
        end: end == null ? Number.POSITIVE_INFINITY : end < 0 ? (fromEnd(end) ?? 0) : end,
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

/** A selection that has a step: below 0, where a number would count from the end, all steps below 0. */
export function stepsAround(step: number): StepRange {
  return step < 0 ? [null, 0] : [step, step + 1]
}

/** True if a step lies within a range; null is all steps. */
export function isInRange(step: number, range: StepRange | null): boolean {
  return range === null || ((range[0] === null || step >= range[0]) && (range[1] === null || step < range[1]))
}
