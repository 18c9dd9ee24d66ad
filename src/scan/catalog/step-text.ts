/** Parses the text form of step selections. The command line uses it before anything else is loaded: it imports only types. */

import { expectText } from '../../base/arguments.js'

/** Steps from `from` up to, but not including, `to`. A negative bound counts from the end, as in Python's slices. */
export interface StepSlice {
  /** The first step. Default: the first existing one. */
  readonly from?: number | null
  /** The step before which the range ends. Default: no end. */
  readonly to?: number | null
  /** The distance between selected step numbers, from `from` on (or 0). Default: 1. */
  readonly stride?: number
}

/**
 * `A:B` (from A up to, but not including, B), `A:`, `:B`, `A:B:N` (every N), `A`, `last`, several separated by commas; negative numbers
 * count from the end.
 * @returns null for anything else
 */
export function parseSteps(text: string): readonly (number | StepSlice)[] | null {
  expectText('parseSteps', 'text', text)
  const list = text.split(',').map(part => oneOrSlice(part.trim()))
  return list.every(entry => entry !== null) ? list : null
}

function oneOrSlice(text: string): number | StepSlice | null {
  if (text === 'last') return -1
  const isNumber = /^-?\d+$/.test(text)
  const isSlice = /^(-?\d+)?:(-?\d+)?(:\d*)?$/.test(text)
  if (!isNumber && !isSlice) return null
  const [from = null, to = null, stride = null] = text.split(':').map(number => (number === '' ? null : Number(number)))
  if (![from, to, stride].every(number => number === null || Number.isSafeInteger(number)) || stride === 0) return null
  if (isNumber) return from
  // If only one of the two counts from the end, their order is unknown.
  if (from !== null && to !== null && from >= to && from < 0 === to < 0) return null
  return { from, to, ...(stride !== null && { stride }) }
}
