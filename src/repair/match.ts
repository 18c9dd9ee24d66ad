/** Whose records are whose: the index files of an event file held against the records it was found to hold; pure. */

import type { IndexFile, TensorLocation } from '../format/index-file.js'
import type { Worker } from '../types.js'

/** A whole record, all of which can be read. */
export interface WholeRecord {
  readonly startByte: number
  readonly byteLength: number
  readonly step: number
  readonly values: readonly {
    readonly name: string
    /** As MODES counts, from 1 on; 0: not told. */
    readonly mode: number
    /** -1: not told. */
    readonly modeStep: number
    /** Of a tensor, where index files have saved shapes. */
    readonly shape?: readonly number[] | null
  }[]
}

/** What is wrong, and from which record on. */
export interface FoundProblem {
  readonly offset: number
  readonly code: string
  readonly message: string
  /** What is there, if that is known. */
  readonly step?: number
  readonly tensors?: readonly string[]
}

/** An event file as it was found. */
export interface FoundFile {
  readonly byteLength: number
  /** In the order of the file; none overlaps another. */
  readonly records: readonly WholeRecord[]
  readonly problems: readonly FoundProblem[]
}

/** What is known of an index file. */
export interface KnownIndex {
  readonly step: number
  readonly worker: Worker
  /** What it says; null where it can't be read, or is not there. */
  readonly content: IndexFile | null
  /** Whether that has the mode in it; in Tornasole's it stands in the records alone. */
  readonly tellsMode: boolean
  /** Whether it was about another event file. */
  readonly isMoved?: boolean
  /** What could be saved of one that can't be read: mode and shapes. */
  readonly saved: Pick<IndexFile, 'mode' | 'modeStep' | 'shapes'> | null
}

/** An index entry whose record is nowhere. */
export interface LostEntry extends TensorLocation {
  readonly step: number
  /** Whether it was told of. */
  isTold: boolean
}

/** A tensor in a record. */
export interface Place extends TensorLocation {
  readonly record: WholeRecord
  /** Whether it must not answer: another record of the name is the one that counts. */
  isStray: boolean
}

/** An index file held against the records there are. */
export interface Match {
  /** The tensors that are its own, in the order of the file. */
  readonly found: readonly Place[]
  readonly lost: readonly LostEntry[]
  /** Names that nothing can be answered of: the last of several records counts, and it is lost. */
  readonly gone: ReadonlySet<string>
  /** Records that it answers by. */
  readonly firm: ReadonlySet<WholeRecord>
  /** Whether it tells of just these tensors. */
  readonly isRight: boolean
}

/** An index file, and what it is known to have so far. */
interface IndexDraft {
  readonly index: KnownIndex
  readonly told: readonly TensorLocation[]
  /** How often it tells of each name. */
  readonly times: ReadonlyMap<string, number>
  readonly right: readonly TensorLocation[]
  readonly rightNames: ReadonlySet<string>
  readonly found: Set<Place>
  readonly lost: LostEntry[]
}

/**
 * Brings index files and records together. First each has what it rightly tells of; then, for its other entries, records
 * of their names that nobody tells of; what is left then goes to one that can't be read, else to one that has not answered
 * for that name.
 * @param options isOwn: whether the event file has the name of the index file's step and worker; isWhole: whether nothing is
 *   wrong in the event file
 * @returns one an index file, and the records that none of them can tell of without answering otherwise than before
 */
export function matchAll(
  known: readonly KnownIndex[],
  records: readonly WholeRecord[],
  { isOwn, isWhole }: { readonly isOwn: (index: KnownIndex) => boolean; readonly isWhole: boolean },
): { readonly matched: readonly Match[]; readonly strays: ReadonlySet<WholeRecord> } {
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
  const placeFor = (entry: TensorLocation, step: number): Place | undefined => {
    const place = byPlace.get(entryKey(entry))
    return place?.record.step === step ? place : undefined
  }
  const drafts = known.map((index): IndexDraft => {
    const told = index.content?.tensors ?? []
    const right = told.filter(entry => placeFor(entry, index.step) !== undefined)
    const found = new Set(right.map(entry => placeFor(entry, index.step)!))
    const times = new Map<string, number>()
    for (const { name } of told) times.set(name, (times.get(name) ?? 0) + 1)
    return { index, told, times, right, rightNames: new Set(right.map(({ name }) => name)), found, lost: [] }
  })
  const taken = new Set(drafts.flatMap(({ found }) => [...found]))
  const free = new Map<string, Place[]>()
  for (const place of places) {
    if (taken.has(place)) continue
    const key = keyOf(place.record.step, place.name)
    const others = free.get(key)
    if (others) others.push(place)
    else free.set(key, [place])
  }
  // Taken from the end, in the order of the file.
  for (const places of free.values()) places.reverse()
  for (const { index, told, right, times, found, lost } of drafts) {
    const isRight = new Set(right)
    for (const entry of told) {
      if (isRight.has(entry)) continue
      // Of several of a name nobody knows which of them a record elsewhere is, and the last one counts.
      const place = times.get(entry.name) === 1 ? free.get(keyOf(index.step, entry.name))?.pop() : undefined
      if (place) found.add(place)
      else lost.push({ ...entry, step: index.step, isTold: false })
    }
  }
  const ownFirst = [...drafts].sort((a, b) => Number(isOwn(b.index)) - Number(isOwn(a.index)))
  const byStep = new Map<number, IndexDraft[]>()
  for (const draft of ownFirst) byStep.set(draft.index.step, [])
  for (const draft of ownFirst) byStep.get(draft.index.step)!.push(draft)
  const strays = new Set<WholeRecord>()
  const unreadable = new Map<number, IndexDraft>()
  const lossy = new Map<number, IndexDraft>()
  for (const [step, ofStep] of byStep) {
    const [first, second] = [
      ofStep.find(({ index }) => index.content === null),
      ofStep.find(({ lost }) => lost.length > 0),
    ]
    if (first) unreadable.set(step, first)
    if (second && isWhole) lossy.set(step, second)
  }
  // Of one step and name each.
  for (const places of free.values()) {
    const [first] = places
    if (first === undefined) continue
    const { name, record } = first
    const ofStep = byStep.get(record.step) ?? []
    const owner =
      unreadable.get(record.step) ??
      ofStep.find(({ rightNames }) => !rightNames.has(name)) ??
      // One that also tells of what is nowhere may have told of this one otherwise. Where the event file is damaged, too,
      // this can be a copy of an earlier one, which must not take the last one's place.
      lossy.get(record.step)
    for (const place of places) {
      if (owner) owner.found.add(place)
      else if (ofStep.length > 0) {
        place.isStray = true
        strays.add(place.record)
      }
    }
  }
  if (strays.size > 0) settleStrays(strays, ownFirst, places, placeFor)
  return { matched: drafts.map(matchOf), strays }
}

/** A record goes, or stays, as a whole. It stays where an index file is right about one of its tensors. */
function settleStrays(
  strays: Set<WholeRecord>,
  drafts: readonly IndexDraft[],
  places: readonly Place[],
  placeFor: (entry: TensorLocation, step: number) => Place | undefined,
): void {
  const stay = new Map<WholeRecord, IndexDraft>()
  for (const draft of drafts) {
    for (const entry of draft.right) {
      const { record } = placeFor(entry, draft.index.step)!
      if (strays.has(record) && !stay.has(record)) stay.set(record, draft)
    }
  }
  for (const draft of drafts) {
    for (const place of draft.found) if (strays.has(place.record) && !stay.has(place.record)) draft.found.delete(place)
  }
  for (const place of places) if (place.isStray) stay.get(place.record)?.found.add(place)
  for (const record of stay.keys()) strays.delete(record)
}

function matchOf({ index: { content }, told, right, found, lost }: IndexDraft): Match {
  const last = new Map(told.map(entry => [entry.name, entry]))
  const gone = new Set(
    lost.filter(({ name, startByte }) => last.get(name)!.startByte === startByte).map(({ name }) => name),
  )
  const firm = new Set<WholeRecord>()
  for (const { name, record } of found) if (!gone.has(name)) firm.add(record)
  const isRight = content !== null && right.length === told.length && found.size === told.length
  return { found: [...found].sort((a, b) => a.startByte - b.startByte), lost, gone, firm, isRight }
}

export function keyOf(step: number, name: string): string {
  return `${step} ${name}`
}

function entryKey({ name, startByte, byteLength }: TensorLocation): string {
  return `${startByte} ${byteLength} ${name}`
}
