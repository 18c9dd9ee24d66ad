/** Matches the index files of an event file with its records. Pure. */

import { entryOf } from '../../../base/maps.js'
import type { TensorLocation } from '../../../format/index-file.js'
import { type Claim, EntryList, type IndexDraft } from './entry-list.js'
import type { KnownIndex, Place, WholeRecord } from './known.js'

/** An index file, compared with the records that were found. */
export interface Match {
  /**
   * The tensors that belong to the index file, in the order of the event file. Index files of one step that share a list share this
   * array, as long as nothing else was found for them.
   */
  found(): readonly Place[]
  readonly isEmpty: boolean
  /** True if the index file lists exactly these tensors. */
  readonly isRight: boolean
}

export interface Matches {
  /** The match of each index file. */
  readonly matched: readonly Match[]
  /** Records that no index file could list without changing its answers. */
  readonly strays: ReadonlySet<WholeRecord>
  /** Records that index files list. */
  readonly firm: ReadonlySet<WholeRecord>
  /** True for a name of a step whose last record is lost: its value can't be given. */
  readonly isGone: (step: number, name: string) => boolean
  /** The distinct lists of the index files, in order. */
  readonly lists: readonly EntryList[]
}

/** The entries of an unreadable index file. */
const NOTHING: readonly TensorLocation[] = []

/**
 * Matches index files with records. First each index file gets the records that it names correctly; its other entries then get records of
 * the same name that no index file lists. Remaining records go to an unreadable index file, else to one that has not answered for that
 * name. Work per entry is done once for each distinct list.
 * @param options isOwn: true if the event file has the name of the index file's step and worker; isWhole: true if the event file has no
 *   problem
 */
export function matchAll(
  known: readonly KnownIndex[],
  records: readonly WholeRecord[],
  { isOwn, isWhole }: { readonly isOwn: (index: KnownIndex) => boolean; readonly isWhole: boolean },
): Matches {
  const places = records.flatMap(record =>
    record.values.map(
      ({ name }): Place => ({
        name,
        startByte: record.startByte,
        byteLength: record.byteLength,
        record,
        isStray: false,
      }),
    ),
  )
  const byPlace = new Map(places.map(place => [entryKey(place), place]))
  const lists = new Map<readonly TensorLocation[], EntryList>()
  const drafts = known.map((index, number) => {
    const tensors = index.content?.tensors ?? NOTHING
    const list = entryOf(lists, tensors, () => new EntryList(tensors, entry => byPlace.get(entryKey(entry))))
    return list.add(index, number)
  })
  const claims = [...lists.values()].flatMap(({ claims }) => [...claims.values()])
  const free = freePlaces(places, claims)
  for (const draft of drafts) fill(draft, free.get(draft.index.step))
  const ownFirst = [...drafts].sort((a, b) => Number(isOwn(b.index)) - Number(isOwn(a.index)))
  const byStep = firstByStep(ownFirst)
  const strays = new Set<WholeRecord>()
  const lossy = new Map<number, IndexDraft>()
  if (isWhole) {
    for (const draft of ownFirst) {
      const { step } = draft.index
      if (!lossy.has(step) && draft.claim.lostCount > draft.filled.size) lossy.set(step, draft)
    }
  }
  for (const [step, ofStep] of free) {
    const first = byStep.get(step) ?? []
    const unreadable = first.find(({ index }) => index.content === null)
    for (const [name, places] of ofStep) {
      if (places.length === 0) continue
      const owner =
        unreadable ??
        first.find(({ claim }) => !claim.rightNames.has(name)) ??
        // An index file with lost entries may have listed this record differently. If the event file is damaged too, the record can be a
        // copy of an earlier one, and must not replace the last one.
        lossy.get(step)
      for (const place of places) {
        if (owner) owner.added.add(place)
        else if (first.length > 0) {
          place.isStray = true
          strays.add(place.record)
        }
      }
    }
  }
  if (strays.size > 0) settleStrays(strays, ownFirst, places)
  const firm = firmRecords(claims, drafts)
  const isGone = namesWithoutPlace(claims, places)
  return { matched: drafts.map(matchOf), strays, firm, isGone, lists: [...lists.values()] }
}

type FreePlaces = ReadonlyMap<number, ReadonlyMap<string, Place[]>>

/** The places that no index file names correctly, by step and name, in reverse, so that `pop` takes them in the order of the file. */
function freePlaces(places: readonly Place[], claims: readonly Claim[]): FreePlaces {
  const taken = new Set(claims.flatMap(({ found }) => found))
  const free = new Map<number, Map<string, Place[]>>()
  for (const place of places) {
    if (taken.has(place)) continue
    const { step } = place.record
    const ofStep = entryOf(free, step, () => new Map<string, Place[]>())
    entryOf(ofStep, place.name, () => []).push(place)
  }
  for (const ofStep of free.values()) for (const places of ofStep.values()) places.reverse()
  return free
}

/** Assigns free places to the entries of an index file that lead nowhere, by name. */
function fill({ claim, added, filled }: IndexDraft, free: ReadonlyMap<string, Place[]> | undefined): void {
  if (free === undefined) return
  // If no place with a name is left, none is left for the other entries of the claim.
  claim.wanting = (claim.wanting ?? claim.list.wanting(claim.step, free)).filter(position => {
    const { name } = claim.list.tensors[position]!
    const place = free.get(name)?.pop()
    if (place === undefined) return false
    added.add(place)
    filled.add(position)
    claim.list.filled.set(position, (claim.list.filled.get(position) ?? 0) + 1)
    claim.filled.set(position, (claim.filled.get(position) ?? 0) + 1)
    return true
  })
}

/** The first index file of each claim, by step. */
function firstByStep(drafts: readonly IndexDraft[]): ReadonlyMap<number, readonly IndexDraft[]> {
  const seen = new Set<Claim>()
  const byStep = new Map<number, IndexDraft[]>()
  for (const draft of drafts) {
    if (seen.has(draft.claim)) continue
    seen.add(draft.claim)
    entryOf(byStep, draft.index.step, () => []).push(draft)
  }
  return byStep
}

/** Keeps or drops records as a whole: a record stays if an index file is right about one of its tensors. */
function settleStrays(strays: Set<WholeRecord>, drafts: readonly IndexDraft[], places: readonly Place[]): void {
  const stay = new Map<WholeRecord, IndexDraft>()
  const seen = new Set<Claim>()
  for (const draft of drafts) {
    if (seen.has(draft.claim)) continue
    seen.add(draft.claim)
    for (const { record } of draft.claim.found) if (strays.has(record) && !stay.has(record)) stay.set(record, draft)
  }
  for (const { added } of drafts) {
    for (const place of added) if (strays.has(place.record) && !stay.has(place.record)) added.delete(place)
  }
  for (const place of places) if (place.isStray) stay.get(place.record)?.added.add(place)
  for (const record of stay.keys()) strays.delete(record)
}

function firmRecords(claims: readonly Claim[], drafts: readonly IndexDraft[]): ReadonlySet<WholeRecord> {
  const firm = new Set<WholeRecord>()
  for (const claim of claims) {
    for (const { name, record } of claim.found) if (!claim.isGone(name, () => false)) firm.add(record)
  }
  for (const { claim, added, filled } of drafts) {
    for (const { name, record } of added) if (!claim.isGone(name, position => filled.has(position))) firm.add(record)
  }
  return firm
}

/** Finds the names that have no record. Only names of records are asked for. */
function namesWithoutPlace(claims: readonly Claim[], places: readonly Place[]): Matches['isGone'] {
  const wanted = new Map<number, Set<string>>()
  for (const { name, record } of places) {
    entryOf(wanted, record.step, () => new Set<string>()).add(name)
  }
  const gone = new Map<number, Set<string>>()
  for (const claim of claims) {
    const names = wanted.get(claim.step)
    if (names === undefined || claim.lostCount === 0) continue
    const { tensors } = claim.list
    const isFilled = (position: number): boolean => claim.filled.get(position) === claim.draftCount
    for (const name of tensors.length < names.size ? tensors.map(({ name }) => name) : names) {
      if (!claim.isGone(name, isFilled)) continue
      entryOf(gone, claim.step, () => new Set<string>()).add(name)
    }
  }
  return (step, name) => gone.get(step)?.has(name) === true
}

function matchOf({ index: { content }, claim, added }: IndexDraft): Match {
  const isRight =
    content !== null && claim.lostCount === 0 && claim.found.length + added.size === claim.list.tensors.length
  const places = (): readonly Place[] =>
    added.size === 0 ? claim.found : [...claim.found, ...added].sort((a, b) => a.startByte - b.startByte)
  return { found: places, isEmpty: claim.found.length + added.size === 0, isRight }
}

function entryKey({ name, startByte, byteLength }: TensorLocation): string {
  return `${startByte} ${byteLength} ${name}`
}
