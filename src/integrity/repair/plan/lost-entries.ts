/** Index entries whose records are nowhere: told of with the bytes that are left out, or by themselves; pure. */

import { type EntryList, isLostIn } from './entry-list.js'

/** An entry of a list. */
interface LostEntry {
  readonly list: EntryList
  /** In the list. */
  readonly position: number
  readonly startByte: number
  readonly endByte: number
  /** In how many index files its record is nowhere. */
  readonly count: number
  /** True if the loss has been reported. */
  isTold: boolean
}

/** An entry as one index file has it. */
export interface LostInOrder {
  readonly step: number
  readonly name: string
  readonly startByte: number
  readonly byteLength: number
}

/** All of an event file's: each once, however many index files share its list. */
export class LostEntries {
  readonly #byList = new Map<EntryList, readonly LostEntry[]>()
  /** By where they begin. */
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
   * Takes the entries that begin before a byte and reach beyond another; they are told of then. Others that begin before it are passed.
   * @param limit how many are wanted
   * @returns the first of them, and how many there are, as often as index files have them
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

/** Entries as index files have them, one index file after the other: the first few. */
function lostInOrder(entries: readonly LostEntry[], limit: number): readonly LostInOrder[] {
  const byList = new Map<EntryList, LostEntry[]>()
  for (const entry of entries) {
    const others = byList.get(entry.list)
    if (others) others.push(entry)
    else byList.set(entry.list, [entry])
  }
  // Of each list as many as might be the first.
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
