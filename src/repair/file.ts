/**
 * What of an event file is kept, and what its index file says then. Decided from what the file was found to hold, and from
 * what the index file told; pure.
 */

import { quote } from '../errors.js'
import {
  type IndexFile,
  isSameShape,
  modeOfRecord,
  type SavedShape,
  type TensorLocation,
} from '../format/index-file.js'
import { parseEventFileName } from '../format/paths.js'
import type { Worker } from '../types.js'
import { type LeftOut, MAX_TENSORS } from './report.js'

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

export interface FilePlan {
  /** In the order of the file. */
  readonly kept: readonly WholeRecord[]
  readonly keptByteLength: number
  /** One a known index file: what it has to say; null where nothing of it is left; `same` where it says just that. */
  readonly indexes: readonly (IndexFile | null | 'same')[]
  readonly leftOut: readonly LeftOut[]
}

/**
 * Decides about an event file.
 * @param path of the event file, in the trial
 * @param known the index files that speak of it; none for one of TensorBoard's
 */
export function planFile(path: string, found: FoundFile, known: readonly KnownIndex[]): FilePlan {
  const steps = new Set(known.map(({ step }) => step))
  const isOfStep = ({ step, values }: WholeRecord): boolean =>
    known.length === 0 || values.length === 0 || steps.has(step)
  const name = parseEventFileName(path)
  const isOwn = ({ step, worker }: KnownIndex): boolean => step === name?.step && worker === name.worker
  const isWhole = found.problems.length === 0
  const { matched, strays } = matchAll(known, found.records.filter(isOfStep), { isOwn, isWhole })
  const gone = new Set(matched.flatMap(({ gone }, i) => [...gone].map(name => keyOf(known[i]!.step, name))))
  const firm = new Set(matched.flatMap(({ firm }) => [...firm]))
  const isStale = (record: WholeRecord): boolean =>
    record.values.length > 0 &&
    record.values.every(({ name }) => gone.has(keyOf(record.step, name))) &&
    !firm.has(record)
  // Of what no index file can tell nobody would ever know.
  const isSilent = known.length > 0 && matched.every(({ isRight, found }) => !isRight && found.length === 0)
  const wanted = `${[...steps].slice(0, 3).join(' or ')}${steps.size > 3 ? ` or ${steps.size - 3} others` : ''}`
  const reasonFor = (record: WholeRecord): Pick<FoundProblem, 'code' | 'message'> | null => {
    if (!isOfStep(record)) {
      return { code: 'StepMismatch', message: `expected a record of step ${wanted}, got one of step ${record.step}` }
    }
    if (isStale(record))
      return { code: 'LaterRecordLost', message: 'a later record of that name, which counts, is lost' }
    if (strays.has(record)) {
      const message = 'no index file tells of it, and another record of that name and step is the one that counts'
      return { code: 'RecordNotIndexed', message }
    }
    return isSilent ? { code: 'NoTensor', message: 'expected a tensor in some record of the file, got none' } : null
  }
  const reasons = found.records.map(reasonFor)
  const kept = found.records.filter((_, i) => reasons[i] === null)
  const newStart = new Map<number, number>()
  let keptByteLength = 0
  for (const { startByte, byteLength } of kept) {
    newStart.set(startByte, keptByteLength)
    keptByteLength += byteLength
  }
  const problems = [
    ...found.problems,
    ...reasons.flatMap((reason, i) => (reason ? [{ ...reason, ...contentOf(found.records[i]!) }] : [])),
  ].sort((a, b) => a.offset - b.offset)
  const lost = matched.flatMap(({ lost }) => lost)
  const leftOut = [
    ...stretchesLeftOut(path, found.byteLength, kept, problems, lost),
    ...entriesLeftOut(path, found, lost),
  ]
  const modes = modesOf(kept)
  const indexes = known.map((index, i) => rewrite(index, matched[i]!, path, modes, newStart))
  return { kept, keptByteLength, indexes, leftOut }
}

function contentOf({ startByte, step, values }: WholeRecord): Pick<FoundProblem, 'offset' | 'step' | 'tensors'> {
  return { offset: startByte, step, tensors: values.map(({ name }) => name) }
}

/** An index entry whose record is nowhere. */
interface LostEntry extends TensorLocation {
  readonly step: number
  /** Whether it was told of. */
  isTold: boolean
}

/** A tensor in a record. */
interface Place extends TensorLocation {
  readonly record: WholeRecord
  /** Whether it must not answer: another record of the name is the one that counts. */
  isStray: boolean
}

/** An index file held against the records there are. */
interface Match {
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
interface Draft {
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
function matchAll(
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
  const byPlace = new Map(places.map(place => [placeOf(place), place]))
  const placeFor = (entry: TensorLocation, step: number): Place | undefined => {
    const place = byPlace.get(placeOf(entry))
    return place?.record.step === step ? place : undefined
  }
  const drafts = known.map((index): Draft => {
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
  const byStep = new Map<number, Draft[]>()
  for (const draft of ownFirst) byStep.set(draft.index.step, [])
  for (const draft of ownFirst) byStep.get(draft.index.step)!.push(draft)
  const strays = new Set<WholeRecord>()
  const unreadable = new Map<number, Draft>()
  const lossy = new Map<number, Draft>()
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
  drafts: readonly Draft[],
  places: readonly Place[],
  placeFor: (entry: TensorLocation, step: number) => Place | undefined,
): void {
  const stay = new Map<WholeRecord, Draft>()
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

function matchOf({ index: { content }, told, right, found, lost }: Draft): Match {
  const last = new Map(told.map(entry => [entry.name, entry]))
  const gone = new Set(
    lost.filter(({ name, startByte }) => last.get(name)!.startByte === startByte).map(({ name }) => name),
  )
  const firm = new Set<WholeRecord>()
  for (const { name, record } of found) if (!gone.has(name)) firm.add(record)
  const isRight = content !== null && right.length === told.length && found.size === told.length
  return { found: [...found].sort((a, b) => a.startByte - b.startByte), lost, gone, firm, isRight }
}

function keyOf(step: number, name: string): string {
  return `${step} ${name}`
}

function placeOf({ name, startByte, byteLength }: TensorLocation): string {
  return `${startByte} ${byteLength} ${name}`
}

function rewrite(
  { step, content, saved, tellsMode, isMoved = false }: KnownIndex,
  { found, isRight }: Match,
  path: string,
  modes: ReadonlyMap<number, ModeOfStep>,
  newStart: ReadonlyMap<number, number>,
): FilePlan['indexes'][number] {
  const saidShapes = content?.shapes ?? saved?.shapes ?? []
  const shapes = shapesOf(saidShapes, found)
  const isSame = isRight && !isMoved && shapes.every((shape, i) => shape === saidShapes[i])
  if (isSame && found.every(({ startByte }) => newStart.get(startByte) === startByte)) return 'same'
  const rank = new Map(content?.tensors.map(({ name }, i) => [name, i]))
  const rankOf = (name: string): number => rank.get(name) ?? rank.size
  const tensors = found
    .filter(({ startByte }) => newStart.has(startByte))
    .sort(
      (a, b) => rankOf(a.name) - rankOf(b.name) || Number(b.isStray) - Number(a.isStray) || a.startByte - b.startByte,
    )
    .map(({ name, startByte, byteLength }) => ({ name, startByte: newStart.get(startByte)!, byteLength }))
  if (tensors.length === 0 && shapes.length === 0) return null
  const told = tellsMode ? content : null
  const { mode, modeStep } = told ?? saved ?? modes.get(step) ?? { mode: 'GLOBAL', modeStep: step }
  return { mode, modeStep, eventFile: tensors.length === 0 ? null : path, tensors, shapes }
}

/** Saved shapes; of a tensor whose record has another one, that. */
function shapesOf(shapes: readonly SavedShape[], found: readonly Place[]): readonly SavedShape[] {
  if (shapes.length === 0) return shapes
  const places = new Map(found.map(place => [place.name, place]))
  return shapes.map(saved => {
    const values = places.get(saved.name)?.record.values ?? []
    const shape = values.find(({ name }) => name === saved.name)?.shape
    return shape && !isSameShape(shape, saved.shape) ? { ...saved, shape } : saved
  })
}

type ModeOfStep = Pick<IndexFile, 'mode' | 'modeStep'>

/** The mode of each step's first record, as in smdebug's index: scalars come last, and may have the mode that comes next. */
function modesOf(records: readonly WholeRecord[]): ReadonlyMap<number, ModeOfStep> {
  const modes = new Map<number, ModeOfStep>()
  for (const { step, values } of records) {
    if (modes.has(step)) continue
    const told = values.find(({ mode }) => mode !== 0)
    if (told) modes.set(step, modeOfRecord(told, step))
  }
  return modes
}

/** What lies between the records that are kept: a stretch for each problem. */
function* stretchesLeftOut(
  path: string,
  byteLength: number,
  kept: readonly WholeRecord[],
  problems: readonly FoundProblem[],
  lost: readonly LostEntry[],
): Generator<LeftOut> {
  let at = 0
  let next = 0
  const entries = [...lost].sort((a, b) => a.startByte - b.startByte)
  let nextEntry = 0
  let open: LostEntry[] = []
  for (const { startByte: gapEnd, byteLength: keptLength } of [...kept, { startByte: byteLength, byteLength: 0 }]) {
    const gapStart = at
    at = gapEnd + keptLength
    // One of a record that is kept all the same is none of ours.
    while (next < problems.length && problems[next]!.offset < gapStart) next++
    let start = gapStart
    while (start < gapEnd) {
      const problem = next < problems.length && problems[next]!.offset < gapEnd ? problems[next++]! : null
      // Several of one place are one.
      while (next < problems.length && problems[next]!.offset <= start) next++
      const end = Math.min(gapEnd, problems[next]?.offset ?? gapEnd)
      while (nextEntry < entries.length && entries[nextEntry]!.startByte < end) open.push(entries[nextEntry++]!)
      const gone = open.filter(({ startByte, byteLength }) => startByte + byteLength > start)
      for (const entry of gone) entry.isTold = true
      open = []
      yield {
        file: path,
        offset: start,
        byteLength: end - start,
        step: gone[0]?.step ?? problem?.step ?? null,
        tensors: (gone.length > 0 ? gone.map(({ name }) => name) : (problem?.tensors ?? [])).slice(0, MAX_TENSORS),
        records: Math.max(1, gone.length),
        code: problem?.code ?? 'DamagedRecord',
        reason: problem?.message ?? 'expected a whole record, got none',
      }
      start = end
    }
  }
}

/** Entries that lead to none of these. */
function entriesLeftOut(
  path: string,
  { byteLength: fileLength, records }: FoundFile,
  lost: readonly LostEntry[],
): LeftOut[] {
  const others = lost.filter(({ isTold }) => !isTold)
  const recordAt = others.length === 0 ? null : new Map(records.map(record => [record.startByte, record]))
  return others.map(({ name, startByte, byteLength, step }) => {
    const there = recordAt?.get(startByte)
    const [code, got] =
      startByte + byteLength > fileLength
        ? ['EntryPastEnd', `the end of the file, at ${fileLength}`]
        : there
          ? there.values[0]
            ? ['TagMismatch', `one of ${quote(there.values[0].name)}`]
            : ['NoTensor', 'one that holds no tensor']
          : ['EntryNotARecord', 'the middle of one']
    const reason = `expected a record of ${byteLength} bytes there, as the index file says, got ${got}`
    return { file: path, offset: startByte, byteLength, step, tensors: [name], records: 1, code, reason }
  })
}
