/**
 * What of an event file is kept, and what its index file says then. Decided from what the file was found to hold, and from
 * what the index file told; pure.
 */

import { quote } from '../errors.js'
import { type IndexFile, isSameShape, modeOfRecord, type SavedShape } from '../format/index-file.js'
import { parseEventFileName } from '../format/paths.js'
import {
  type FoundFile,
  type FoundProblem,
  type KnownIndex,
  keyOf,
  type LostEntry,
  type Match,
  matchAll,
  type Place,
  type WholeRecord,
} from './match.js'
import { type LeftOut, MAX_TENSORS } from './report.js'

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

function rewrite(
  { step, content, saved, tellsMode, isMoved = false }: KnownIndex,
  { found, isRight }: Match,
  path: string,
  modes: ReadonlyMap<number, ModeOfStep>,
  newStart: ReadonlyMap<number, number>,
): FilePlan['indexes'][number] {
  const saidShapes = content?.shapes ?? saved?.shapes ?? []
  const shapes = shapesInCopy(saidShapes, found)
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
function shapesInCopy(shapes: readonly SavedShape[], found: readonly Place[]): readonly SavedShape[] {
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
