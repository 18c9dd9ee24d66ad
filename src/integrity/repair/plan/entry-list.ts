/**
 * The entries of the index files of one event file, compared with its records. Equal lists are kept once, since links give a file several
 * names.
 */

import { entryOf } from '../../../base/maps.js'
import type { TensorLocation } from '../../../format/index-file.js'
import type { KnownIndex, Place } from './known.js'

/** An index file while it is rewritten: its claim, and the records that were found for other entries. */
export interface IndexDraft {
  readonly index: KnownIndex
  /** The number of the list among those of the event file. */
  readonly number: number
  readonly claim: Claim
  readonly added: Set<Place>
  /** The positions of entries that got another record. */
  readonly filled: Set<number>
}

/** The occurrences of a name in a list. */
interface NameOccurrences {
  times: number
  /** The start of the last entry with the name; this entry counts. */
  lastStart: number
  /** The positions of the entries that begin there. */
  readonly last: number[]
}

/** The entries of one list. */
export class EntryList {
  readonly tensors: readonly TensorLocation[]
  /** The index files with this list, in order. */
  readonly drafts: IndexDraft[] = []
  /** The claims by step. */
  readonly claims = new Map<number, Claim>()
  /** By position in the list: the number of index files in which the entry got another record. */
  readonly filled = new Map<number, number>()
  readonly #places: readonly (Place | undefined)[]
  /** The matching places of each step. */
  readonly #right = new Map<number, Place[]>()
  #names: ReadonlyMap<string, NameOccurrences> | undefined

  /** @param placeOf the place that an entry leads to, at any step */
  constructor(tensors: readonly TensorLocation[], placeOf: (entry: TensorLocation) => Place | undefined) {
    this.tensors = tensors
    this.#places = tensors.map(placeOf)
    for (const place of this.#places) {
      if (place === undefined) continue
      entryOf(this.#right, place.record.step, () => []).push(place)
    }
  }

  add(index: KnownIndex, number: number): IndexDraft {
    const claim = entryOf(this.claims, index.step, () => new Claim(this, index.step, this.#right.get(index.step) ?? []))
    claim.draftCount++
    const draft = { index, number, claim, added: new Set<Place>(), filled: new Set<number>() }
    this.drafts.push(draft)
    return draft
  }

  get names(): ReadonlyMap<string, NameOccurrences> {
    this.#names ??= this.#tellings()
    return this.#names
  }

  #tellings(): ReadonlyMap<string, NameOccurrences> {
    const names = new Map<string, NameOccurrences>()
    for (const { name, startByte } of this.tensors) {
      const telling = names.get(name)
      if (telling === undefined) names.set(name, { times: 1, lastStart: startByte, last: [] })
      else {
        telling.times++
        telling.lastStart = startByte
      }
    }
    for (const [position, { name, startByte }] of this.tensors.entries()) {
      const telling = names.get(name)!
      if (telling.lastStart === startByte) telling.last.push(position)
    }
    return names
  }

  isRight(position: number, step: number): boolean {
    return this.#places[position]?.record.step === step
  }

  /**
   * The entries that lead nowhere at a step, but whose name a free place has, in order. If several entries have one name, only the last
   * counts: which of them a record found elsewhere belongs to is unknown.
   */
  wanting(step: number, free: ReadonlyMap<string, readonly Place[]>): readonly number[] {
    const wanting: number[] = []
    for (const name of this.tensors.length < free.size ? this.tensors.map(({ name }) => name) : free.keys()) {
      const telling = this.names.get(name)
      if (telling?.times === 1 && !this.isRight(telling.last[0]!, step)) wanting.push(telling.last[0]!)
    }
    return wanting.sort((a, b) => a - b)
  }

  /** The number of index files in which an entry leads nowhere. */
  lostCount(position: number): number {
    const place = this.#places[position]
    const right = place === undefined ? 0 : (this.claims.get(place.record.step)?.draftCount ?? 0)
    return this.drafts.length - right - (this.filled.get(position) ?? 0)
  }
}

/** The index files of one step that share a list; their correct entries are the same. */
export class Claim {
  readonly list: EntryList
  readonly step: number
  draftCount = 0
  /** The places that the list names correctly, in the order of the file. */
  readonly found: readonly Place[]
  readonly rightNames: ReadonlySet<string>
  /** The number of wrong entries. */
  readonly lostCount: number
  /** By position: the number of these index files in which the entry got another record. */
  readonly filled = new Map<number, number>()
  /** Entries that may still get another record; null until it is known. */
  wanting: readonly number[] | null = null

  /** @param right the places that the entries lead to, in their order */
  constructor(list: EntryList, step: number, right: readonly Place[]) {
    this.list = list
    this.step = step
    this.found = [...new Set(right)].sort((a, b) => a.startByte - b.startByte)
    this.rightNames = new Set(right.map(({ name }) => name))
    this.lostCount = list.tensors.length - right.length
  }

  /** True if the name's last record is lost, so that its value can't be given. */
  isGone(name: string, isFilled: (position: number) => boolean): boolean {
    if (this.lostCount === 0) return false
    const last = this.list.names.get(name)?.last ?? []
    return last.some(position => !this.list.isRight(position, this.step) && !isFilled(position))
  }
}

export function isLostIn({ claim, filled }: IndexDraft, position: number): boolean {
  return !claim.list.isRight(position, claim.step) && !filled.has(position)
}
