/**
 * The entries of the index files of one event file. Many index files may have the same content (links give a file several names); its
 * entries are stored once, beside the list of their names.
 */

import { entryOf } from '../../base/maps.js'
import { countBelow } from '../../base/sorted.js'
import type { GlobalStep, Worker } from '../../base/types.js'
import type { IndexFile, SavedShape, TensorLocation } from '../../format/index-file.js'
import { NO_LIST } from '../../scan/catalog/columns/tensor-lists.js'

/** An index file. Its `content` is made on demand, since there may be a million. */
export interface ReadIndex {
  readonly path: string
  readonly step: GlobalStep
  readonly worker: Worker
  /** Null if it can't be read. */
  readonly content: IndexFile | null
  /** The number of the list of tensors and shapes; equal lists have equal numbers. `NO_LIST` if there is none, or it can't be read. */
  readonly list: number
  /** True if the index file has the mode. In Tornasole's format only the records do. */
  readonly tellsMode: boolean
}

/** An entry of an index file. */
export interface Entry {
  readonly location: TensorLocation
  readonly index: ReadIndex
}

export function entryEnd({ startByte, byteLength }: TensorLocation): number {
  return startByte + byteLength
}

/** The end of the furthest entry of some index files; 0 if there is none. */
export function endOfIndexes(indexes: readonly ReadIndex[]): number {
  let end = 0
  for (const { content } of indexes) {
    for (const location of content?.tensors ?? []) end = Math.max(end, entryEnd(location))
  }
  return end
}

/**
 * The entries of all index files that name an event file, in the order of that file. Entries with one start are in the order of the index
 * files.
 */
export class Entries {
  /** The distinct starts of the entries. */
  readonly anchors: Float64Array
  readonly #indexes: readonly ReadIndex[]
  /** The index files with equal content, as positions in `#indexes`. */
  readonly #claims: readonly (readonly number[])[]
  readonly #entries: readonly {
    readonly location: TensorLocation
    readonly shapes: readonly SavedShape[]
    readonly claim: number
  }[]

  constructor(indexes: readonly ReadIndex[]) {
    this.#indexes = indexes
    this.#claims = claimsOf(indexes)
    this.#entries = this.#claims
      .flatMap(([first], claim) => {
        const { tensors, shapes } = indexes[first!]!.content!
        return tensors.map(location => ({ location, shapes, claim }))
      })
      .sort((a, b) => a.location.startByte - b.location.startByte)
    this.anchors = Float64Array.from(new Set(this.#entries.map(({ location }) => location.startByte)))
  }

  /** The number of entries. Equal entries of several index files count once. */
  get length(): number {
    return this.#entries.length
  }

  location(i: number): TensorLocation {
    return this.#entries[i]!.location
  }

  /** The saved shapes in the index files of an entry. */
  shapes(i: number): readonly SavedShape[] {
    return this.#entries[i]!.shapes
  }

  /** The first entry that begins at or after a byte. */
  from(startByte: number): number {
    return countBelow(this.length, i => this.location(i).startByte < startByte)
  }

  /** The first entry after `i` with another start. */
  behind(i: number): number {
    const { startByte } = this.location(i)
    let next = i + 1
    while (this.#entries[next]?.location.startByte === startByte) next++
    return next
  }

  /** The number of times that index files have these entries. */
  count(from: number, to: number): number {
    let count = 0
    for (let i = from; i < to; i++) count += this.#claims[this.#entries[i]!.claim]!.length
    return count
  }

  /** Visits the index files whose entries begin at one byte, each with all of its entries there. @param visit returns true to stop */
  eachTeller(from: number, to: number, visit: (index: ReadIndex, from: number, to: number) => boolean): void {
    // Entries with one start are ordered by claim.
    const parts: { readonly from: number; to: number }[] = []
    const tellers: [number: number, part: number][] = []
    for (let i = from; i < to; i++) {
      const { claim } = this.#entries[i]!
      if (i === from || this.#entries[i - 1]!.claim !== claim) {
        for (const number of this.#claims[claim]!) tellers.push([number, parts.length])
        parts.push({ from: i, to: i + 1 })
      } else parts.at(-1)!.to = i + 1
    }
    tellers.sort(([a], [b]) => a - b)
    for (const [number, part] of tellers) {
      const { from, to } = parts[part]!
      if (visit(this.#indexes[number]!, from, to) === true) return
    }
  }

  /** The first few entries, with their index files. */
  some(from: number, to: number, limit: number): Entry[] {
    const some: Entry[] = []
    for (let first = from; first < to && some.length < limit; first = this.behind(first)) {
      this.eachTeller(first, this.behind(first), (index, from, to) => {
        for (let i = from; i < to && some.length < limit; i++) some.push({ location: this.location(i), index })
        return some.length === limit
      })
    }
    return some
  }

  /** The first entry that begins in a range of bytes. */
  firstWithin(startByte: number, endByte: number): Entry | null {
    const [from, to] = [this.from(startByte), this.from(endByte)]
    return this.some(from, to, 1)[0] ?? null
  }
}

/** The positions of index files that list anything, grouped by equal lists. */
function claimsOf(indexes: readonly ReadIndex[]): readonly (readonly number[])[] {
  const claims = new Map<number, number[]>()
  for (const [place, { list }] of indexes.entries()) {
    if (list === NO_LIST) continue
    entryOf(claims, list, () => []).push(place)
  }
  return [...claims.values()]
}
