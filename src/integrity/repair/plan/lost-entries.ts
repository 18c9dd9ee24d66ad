/** Index entries without a record. They are reported with the bytes that are left out, or on their own. Pure. */

import { entryOf } from '../../../base/maps.js'
import { type EntryList, isLostIn } from './entry-list.js'

/** An entry of a list. */
interface LostEntry {
  readonly list: EntryList
  /** The position in the list. */
  readonly position: number
  readonly startByte: number
  readonly endByte: number
  /** The number of index files in which its record is missing. */
  readonly count: number
  /** True if the loss has been reported. */
  isTold: boolean
}

/** An entry in one index file. */
export interface LostInOrder {
  readonly step: number
  readonly name: string
  readonly startByte: number
  readonly byteLength: number
}

/** The lost entries of an event file. An entry is stored once, however many index files share its list. */
export class LostEntries {
  readonly #byList = new Map<EntryList, readonly LostEntry[]>()
  /** The entries, by start. */
  readonly #entries: readonly LostEntry[]
  #next = 0

  constructor(lists: readonly EntryList[]) {
    for (const list of lists) {
      const lost = list.tensors.flatMap(({ startByte, byteLength }, position): LostEntry[] => {
        const count = list.lostCount(position)
        return count === 0 ? [] : [{ list, position, startByte, endByte: startByte + byteLength, count, isTold: false }]
      })
      if (lost.length > 0) this.#byList.set(list, lost)
    }
    this.#entries = [...this.#byList.values()].flat().sort((a, b) => a.startByte - b.startByte)
  }

  /**
   * Takes the entries that begin before one byte and end after another, and marks them as reported. Entries that begin earlier are passed
   * over.
   * @param limit the largest number to return
   * @returns the first of them, and their number, counted for each index file
   */
  take(
    beyond: number,
    before: number,
    limit: number,
  ): { readonly some: readonly LostInOrder[]; readonly count: number } {
    const some: LostInOrder[] = []
    let count = 0
    while ((this.#entries[this.#next]?.startByte ?? before) < before) {
      const { startByte } = this.#entries[this.#next]!
      const taken: LostEntry[] = []
      for (let entry = this.#entries[this.#next]; entry?.startByte === startByte; entry = this.#entries[++this.#next]) {
        if (entry.endByte <= beyond) continue
        entry.isTold = true
        count += entry.count
        taken.push(entry)
      }
      if (some.length < limit) some.push(...lostInOrder(taken, limit - some.length))
    }
    return { some, count }
  }

  /** The losses that have not been reported. */
  rest(limit: number): { readonly some: readonly LostInOrder[]; readonly count: number } {
    const rest = [...this.#byList.values()].flatMap(entries => entries.filter(({ isTold }) => !isTold))
    return { some: lostInOrder(rest, limit), count: rest.reduce((sum, { count }) => sum + count, 0) }
  }
}

/** The first few entries, one index file after the other. */
function lostInOrder(entries: readonly LostEntry[], limit: number): readonly LostInOrder[] {
  const byList = new Map<EntryList, LostEntry[]>()
  for (const entry of entries) {
    entryOf(byList, entry.list, () => []).push(entry)
  }
  // From each list, as many as could be among the first.
  return [...byList]
    .flatMap(([list, entries]) => lostInList(list, entries, limit))
    .sort((a, b) => a.number - b.number)
    .slice(0, limit)
    .map(({ telling }) => telling)
}

function lostInList(
  { drafts, tensors }: EntryList,
  entries: readonly LostEntry[],
  limit: number,
): { readonly number: number; readonly telling: LostInOrder }[] {
  const some = []
  for (const draft of drafts) {
    for (const { position } of entries) {
      if (!isLostIn(draft, position)) continue
      some.push({ number: draft.number, telling: { ...tensors[position]!, step: draft.index.step } })
      if (some.length === limit) return some
    }
  }
  return some
}
