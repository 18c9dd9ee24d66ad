/** Selections of steps as people write them. The command line reads them before anything else is loaded: this imports nothing but types. */

/** Steps from `from` up to, but not including, `to`. A negative bound counts from the end, as in Python's slices. */
export interface StepSlice {
  /** Default: the first step there is. */
  readonly from?: number | null
  /** Default: no end. */
  readonly to?: number | null
  /** Selects the step numbers at this distance from each other, from `from` on (from 0 if there is none). Default: 1. */
  readonly stride?: number
}

/**
 * `A:B` (from A up to, but not including, B), `A:`, `:B`, `A:B:N` (every N), `A`, `last`, several separated by commas; negative numbers
 * count from the end.
 * @returns null for anything else
 */
export function parseSteps(text: string): readonly (number | StepSlice)[] | null {
  const list = text.split(',').map(one => oneOrSlice(one.trim()))
  return list.every(one => one !== null) ? list : null
}

function oneOrSlice(text: string): number | StepSlice | null {
  if (text === 'last') return -1
  const isNumber = /^-?\d+$/.test(text)
  const isSlice = /^(-?\d+)?:(-?\d+)?(:\d*)?$/.test(text)
  if (!isNumber && !isSlice) return null
  const [from = null, to = null, stride = null] = text.split(':').map(number => (number === '' ? null : Number(number)))
  if (![from, to, stride].every(number => number === null || Number.isSafeInteger(number)) || stride === 0) return null
  if (isNumber) return from
  // If only one of the two counts from the end, it is not known which comes first.
  if (from !== null && to !== null && from >= to && from < 0 === to < 0) return null
  return { from, to, ...(stride !== null && { stride }) }
}
