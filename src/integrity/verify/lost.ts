/** Sentences about data that is lost. */

import { quote } from '../../base/errors.js'
import type { Entries } from './entries.js'

/** The number of names that a sentence lists. */
export const MAX_LISTED = 5

/** The first names, and the number of others. */
export function listNames(names: readonly string[], show = quote, count = names.length): string {
  const some = names.slice(0, MAX_LISTED).map(show).join(', ')
  return count > MAX_LISTED ? `${some} and ${count - MAX_LISTED} others` : some
}

/** @param names all names, or the first of them */
export function lostTensors(names: readonly string[], step: number, count = names.length): string {
  return `${count === 1 ? 'tensor' : 'tensors'} ${listNames(names, quote, count)} at step ${step}`
}

/** The tensors of index entries; '' where there are none. */
export function lostEntries(entries: Entries, from = 0, to = entries.length): string {
  const some = entries.some(from, to, MAX_LISTED)
  const names = some.map(({ location }) => location.name)
  return some.length === 0 ? '' : lostTensors(names, some[0]!.index.step, entries.count(from, to))
}

/** The data that is lost by damage to a range of bytes; '' if unknown. */
export function lostBetween(
  entries: Entries,
  startByte: number,
  endByte: number,
  tag: string | null,
  step: number,
): string {
  if (tag !== null) return `tensor ${quote(tag)}${Number.isNaN(step) ? '' : ` at step ${step}`}`
  return lostEntries(entries, entries.from(startByte), entries.from(endByte))
}
