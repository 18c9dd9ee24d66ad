/**
 * What of an event file is kept, and what its index file says then. Decided from what the file was found to hold, and from
 * what the index file told; pure.
 */

import type { IndexFile, TensorLocation } from '../format/index-file.js'
import { MODES } from '../types.js'
import { type LeftOut, MAX_TENSORS } from './repair-report.js'

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
  }[]
}

/** What is wrong, and from which record on. */
export interface FoundProblem {
  readonly offset: number
  readonly code: string
  readonly message: string
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
  /** What it says; null where it can't be read, or is not there. */
  readonly content: IndexFile | null
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
  const isWanted = (record: WholeRecord): boolean =>
    known.length === 0 || record.values.length === 0 || steps.has(record.step)
  const kept = found.records.filter(isWanted)
  const strangers = found.records.filter(record => !isWanted(record))
  const recordAt = new Map(kept.map(record => [record.startByte, record]))
  const newStart = new Map<number, number>()
  let keptByteLength = 0
  for (const { startByte, byteLength } of kept) {
    newStart.set(startByte, keptByteLength)
    keptByteLength += byteLength
  }
  const rewritten = known.map(index => rewrite(index, path, kept, recordAt, newStart))
  const wanted = [...steps].join(' or ')
  const problems = [
    ...found.problems,
    ...strangers.map(({ startByte, step }) => ({
      offset: startByte,
      code: 'StepMismatch',
      message: `expected a record of step ${wanted}, got one of step ${step}`,
    })),
  ].sort((a, b) => a.offset - b.offset)
  const lost = rewritten.flatMap(({ lost }) => lost)
  const leftOut = [
    ...stretchesLeftOut(path, found.byteLength, kept, problems, lost),
    ...lost.flatMap(entriesLeftOut(path, found)),
  ]
  return { kept, keptByteLength, indexes: rewritten.map(({ index }) => index), leftOut }
}

/** An index entry whose record is nowhere. */
interface LostEntry extends TensorLocation {
  readonly step: number
  /** Whether it was told of. */
  isTold: boolean
}

function rewrite(
  { step, content, saved }: KnownIndex,
  path: string,
  kept: readonly WholeRecord[],
  recordAt: ReadonlyMap<number, WholeRecord>,
  newStart: ReadonlyMap<number, number>,
): { readonly index: FilePlan['indexes'][number]; readonly lost: LostEntry[] } {
  const told = content?.tensors ?? []
  const right = told.filter(({ name, startByte, byteLength }) => {
    const record = recordAt.get(startByte)
    return record?.byteLength === byteLength && record.step === step && record.values.some(value => value.name === name)
  })
  const isRight = content !== null && right.length === told.length
  // One that is right in all it says is believed in what it does not say, too.
  const found = isRight
    ? right
    : kept
        .filter(record => record.step === step)
        .flatMap(({ startByte, byteLength, values }) => values.map(({ name }) => ({ name, startByte, byteLength })))
  const lost = lostEntries(told, right, found, step)
  const isInPlace = right.every(({ startByte }) => newStart.get(startByte) === startByte)
  if (isRight && isInPlace) return { index: 'same', lost }
  // Of several entries of a name the last one counts: where that is lost, one before it would be another answer.
  const last = new Map(told.map((entry, i) => [entry.name, { ...entry, rank: i }]))
  const gone = new Set(
    lost.filter(({ name, startByte }) => last.get(name)!.startByte === startByte).map(({ name }) => name),
  )
  const tensors = found.filter(({ name }) => !gone.has(name))
  const shapes = content?.shapes ?? saved?.shapes ?? []
  if (tensors.length === 0 && shapes.length === 0) return { index: null, lost }
  const rankOf = (name: string): number => last.get(name)?.rank ?? told.length
  const { mode, modeStep } = content ?? modeOf(kept, step) ?? saved ?? { mode: 'GLOBAL', modeStep: step }
  const index: IndexFile = {
    mode,
    modeStep,
    eventFile: tensors.length === 0 ? null : path,
    tensors: tensors
      .sort((a, b) => rankOf(a.name) - rankOf(b.name) || a.startByte - b.startByte)
      .map(({ name, startByte, byteLength }) => ({ name, startByte: newStart.get(startByte)!, byteLength })),
    shapes,
  }
  return { index, lost }
}

/** Entries whose records are nowhere: those that are not right, less the records of their names that no entry leads to. */
function lostEntries(
  told: readonly TensorLocation[],
  right: readonly TensorLocation[],
  found: readonly TensorLocation[],
  step: number,
): LostEntry[] {
  const unclaimed = new Map<string, number>()
  for (const { name } of found) unclaimed.set(name, (unclaimed.get(name) ?? 0) + 1)
  for (const { name } of right) unclaimed.set(name, unclaimed.get(name)! - 1)
  const isRight = new Set(right)
  const lost: LostEntry[] = []
  for (const entry of told) {
    if (isRight.has(entry)) continue
    const left = unclaimed.get(entry.name) ?? 0
    if (left > 0) unclaimed.set(entry.name, left - 1)
    else lost.push({ ...entry, step, isTold: false })
  }
  return lost
}

/** The mode that most of a step's records have: the hook can write a record under the mode that comes next. */
function modeOf(records: readonly WholeRecord[], step: number): Pick<IndexFile, 'mode' | 'modeStep'> | null {
  const counts = new Map<string, { mode: number; modeStep: number; count: number }>()
  for (const record of records) {
    if (record.step !== step) continue
    for (const { mode, modeStep } of record.values) {
      if (mode === 0) continue
      const key = `${mode} ${modeStep}`
      counts.set(key, { mode, modeStep, count: (counts.get(key)?.count ?? 0) + 1 })
    }
  }
  const [first, ...others] = counts.values()
  if (first === undefined) return null
  const { mode, modeStep } = others.reduce((best, next) => (next.count > best.count ? next : best), first)
  return { mode: MODES[mode - 1] ?? 'GLOBAL', modeStep: modeStep < 0 ? step : modeStep }
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
      const gone = lost.filter(
        entry => entry.startByte < end && entry.startByte + entry.byteLength > start && !entry.isTold,
      )
      for (const entry of gone) entry.isTold = true
      yield {
        file: path,
        offset: start,
        byteLength: end - start,
        step: gone[0]?.step ?? null,
        tensors: gone.slice(0, MAX_TENSORS).map(({ name }) => name),
        records: Math.max(1, gone.length),
        code: problem?.code ?? 'DamagedRecord',
        reason: problem?.message ?? 'expected a whole record, got none',
      }
      start = end
    }
  }
}

/** An entry that leads to none of these. */
function entriesLeftOut(path: string, { byteLength: fileLength }: FoundFile): (entry: LostEntry) => LeftOut[] {
  return ({ name, startByte, byteLength, step, isTold }) => {
    if (isTold) return []
    const isPast = startByte + byteLength > fileLength
    const end = `the file ends at ${fileLength}`
    const reason = `the index file tells of a record at ${startByte}, but ${isPast ? end : 'none of that name is there'}`
    const code = isPast ? 'TruncatedRecord' : 'BadIndexEntry'
    return [{ file: path, offset: startByte, byteLength, step, tensors: [name], records: 1, code, reason }]
  }
}
