/** Selections of steps as people write them. The command line reads them before anything else is loaded: this imports nothing but types. */

import type { StepSlice } from './step-selection.js'

/**
 * `A:B` (from A up to, but not including, B), `A:`, `:B`, `A:B:N` (every N), `A`, `last`, several separated by commas; negative numbers
 * count from the end.
 * @returns null for anything else
 */
export function parseSteps(text: string): { readonly only: readonly (number | StepSlice)[] } | null {
  const only = text.split(',').map(one => oneOrSlice(one.trim()))
  return only.every(one => one !== null) ? { only } : null
}

function oneOrSlice(text: string): number | StepSlice | null {
  if (text === 'last') return -1
  const isNumber = /^-?\d+$/.test(text)
  const isSlice = /^(-?\d+)?:(-?\d+)?(:\d*)?$/.test(text)
  if (!isNumber && !isSlice) return null
  const [begin = null, end = null, stride = null] = text
    .split(':')
    .map(number => (number === '' ? null : Number(number)))
  if (![begin, end, stride].every(number => number === null || Number.isSafeInteger(number)) || stride === 0)
    return null
  if (isNumber) return begin
  // If only one of the two counts from the end, it is not known which comes first.
  if (begin !== null && end !== null && begin >= end && begin < 0 === end < 0) return null
  return { begin, end, ...(stride !== null && { stride }) }
}
