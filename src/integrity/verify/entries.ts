/**
 * The index files of one event file, in columns. Many index files may have the same content (links give a file several names); it is
 * stored once, beside the list of their names.
 */

import { float64Column, int32Column } from '../../base/column.js'
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

/** The starts of a list's entries, sorted. */
interface SortedStarts {
  readonly startByte: Float64Array
  /** Positions in the list, in the order of the starts; null if the list is sorted. */
  readonly place: Uint32Array | null
  /** The distinct starts. */
  readonly anchors: Float64Array
  /** The end of the entry that reaches furthest. */
  readonly endByte: number
}

/** Sorted starts by list. The index files of different steps share their lists. */
const sortedLists = new WeakMap<readonly TensorLocation[], SortedStarts>()

function sortedOf(tensors: readonly TensorLocation[]): SortedStarts {
  let sorted = sortedLists.get(tensors)
  if (sorted === undefined) {
    sorted = sort(
      Float64Array.from(tensors, ({ startByte }) => startByte),
      tensors.reduce((end, location) => Math.max(end, entryEnd(location)), 0),
    )
    sortedLists.set(tensors, sorted)
  }
  return sorted
}

function sort(starts: Float64Array, endByte: number): SortedStarts {
  const isInOrder = starts.every((start, i) => i === 0 || starts[i - 1]! <= start)
  const place = isInOrder
    ? null
    : Uint32Array.from(starts, (_, i) => i).sort((a, b) => starts[a]! - starts[b]! || a - b)
  const startByte = place === null ? starts : Float64Array.from(place, i => starts[i]!)
  const isNew = (start: number, i: number): boolean => i === 0 || startByte[i - 1] !== start
  const anchors = startByte.every(isNew) ? startByte : startByte.filter(isNew)
  return { startByte, place, anchors, endByte }
}

export function entryEnd({ startByte, byteLength }: TensorLocation): number {
  return startByte + byteLength
}

/** The end of the furthest entry of some index files; 0 if there is none. */
export function endOfIndexes(indexes: readonly ReadIndex[]): number {
  let end = 0
  for (const { content } of indexes) if (content !== null) end = Math.max(end, sortedOf(content.tensors).endByte)
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
  /** The index files with equal content, as positions in `#indexes`. The content is made from the first, on demand. */
  readonly #claims: readonly (readonly number[])[]
  readonly #startByte: Float64Array
  /** The claim of each entry; null if there is only one. */
  readonly #claim: Int32Array | null
  /** Positions in the list of the claim; null if that list is sorted. */
  readonly #place: Int32Array | Uint32Array | null

  constructor(indexes: readonly ReadIndex[]) {
    this.#indexes = indexes
    this.#claims = claimsOf(indexes)
    if (this.#claims.length < 2) {
      const { anchors, startByte, place } = sortedOf(this.#claims.length === 0 ? [] : this.#saidIn(0).tensors)
      this.anchors = anchors
      this.#startByte = startByte
      this.#claim = null
      this.#place = place
      return
    }
    const [startBytes, claims, placesInList] = [float64Column(), int32Column(), int32Column()]
    for (const i of this.#claims.keys()) {
      for (const [place, { startByte }] of this.#saidIn(i).tensors.entries()) {
        startBytes.push(startByte)
        claims.push(i)
        placesInList.push(place)
      }
    }
    const [starts, claim, places] = [startBytes.numbers, claims.numbers, placesInList.numbers]
    const { anchors, startByte, place } = sort(starts, 0)
    this.anchors = anchors
    this.#startByte = startByte
    this.#claim = place === null ? claim : Int32Array.from(place, i => claim[i]!)
    this.#place = place === null ? places : Int32Array.from(place, i => places[i]!)
  }

  /** The number of entries. Equal entries of several index files count once. */
  get length(): number {
    return this.#startByte.length
  }

  startByte(i: number): number {
    return this.#startByte[i]!
  }

  location(i: number): TensorLocation {
    return this.#claimOf(i).tensors[this.#place === null ? i : this.#place[i]!]!
  }

  /** The saved shapes in the index files of an entry. */
  shapes(i: number): readonly SavedShape[] {
    return this.#claimOf(i).shapes
  }

  /** The first entry that begins at or after a byte. */
  from(startByte: number): number {
    return countBelow(this.length, i => this.#startByte[i]! < startByte)
  }

  /** The first entry after `i` with another start. */
  behind(i: number): number {
    const start = this.#startByte[i]
    let next = i + 1
    while (this.#startByte[next] === start) next++
    return next
  }

  /** The number of times that index files have these entries. */
  count(from: number, to: number): number {
    if (this.#claim === null) return (to - from) * (this.#claims[0]?.length ?? 0)
    let count = 0
    for (let i = from; i < to; i++) count += this.#claims[this.#claim[i]!]!.length
    return count
  }

  /** Visits the index files whose entries begin at one byte, each with all of its entries there. @param visit returns true to stop */
  eachTeller(from: number, to: number, visit: (index: ReadIndex, from: number, to: number) => boolean): void {
    const first = this.#claim?.[from] ?? 0
    if (this.#claim === null || this.#claim[to - 1] === first) {
      for (const number of this.#claims[first]!) if (visit(this.#indexes[number]!, from, to) === true) return
      return
    }
    // Entries with one start are ordered by claim.
    const parts: { readonly from: number; to: number }[] = []
    const tellers: [number: number, part: number][] = []
    for (let i = from; i < to; i++) {
      const claim = this.#claim[i]!
      if (i === from || this.#claim[i - 1] !== claim) {
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

  #claimOf(i: number): IndexFile {
    return this.#saidIn(this.#claim === null ? 0 : this.#claim[i]!)
  }

  #saidIn(claim: number): IndexFile {
    return this.#indexes[this.#claims[claim]![0]!]!.content!
  }
}

/** The positions of index files that list anything, grouped by equal lists. */
function claimsOf(indexes: readonly ReadIndex[]): readonly (readonly number[])[] {
  const claims = new Map<number, number[]>()
  for (const [place, { list }] of indexes.entries()) {
    if (list === NO_LIST) continue
    const same = claims.get(list)
    if (same === undefined) claims.set(list, [place])
    else same.push(place)
  }
  return [...claims.values()]
}
