/**
 * Decides which parts of an event file are kept, and what its index files say. Pure: it depends only on the content of the event file and
 * the index files.
 */

import { quote } from '../../../base/errors.js'
import { entryOf } from '../../../base/maps.js'
import {
  type IndexFile,
  isSameShape,
  modeOfRecord,
  type SavedShape,
  type TensorLocation,
} from '../../../format/index-file.js'
import { parseEventFileName } from '../../../format/paths.js'
import { type LeftOut, MAX_OF_FILE, MAX_TENSORS, type Reason } from '../report.js'
import type { FoundFile, FoundProblem, KnownIndex, Place, WholeRecord } from './known.js'
import { LostEntries, type LostInOrder } from './lost-entries.js'
import { type Match, matchAll } from './match.js'

export interface FilePlan {
  /** The records that are kept, in the order of the file. */
  readonly kept: readonly WholeRecord[]
  readonly keptByteLength: number
  /**
   * The new content of each known index file; null if nothing is left; `same` if it doesn't change. Made on demand, since it can be far
   * longer than what it is made from.
   */
  readonly indexes: readonly (() => IndexFile | null | 'same')[]
  readonly leftOut: readonly LeftOut[]
  /** The number of index entries without a record that are not listed. */
  readonly moreLeftOut: number
}

/**
 * Plans the copy of an event file.
 * @param path the path of the event file in the trial
 * @param known the index files that refer to it; none for a TensorBoard file
 */
export function planFile(path: string, file: FoundFile, known: readonly KnownIndex[]): FilePlan {
  const steps = new Set(known.map(({ step }) => step))
  const isOfStep = ({ step, values }: WholeRecord): boolean =>
    known.length === 0 || values.length === 0 || steps.has(step)
  const name = parseEventFileName(path)
  const isOwn = ({ step, worker }: KnownIndex): boolean => step === name?.step && worker === name.worker
  const isWhole = file.problems.length === 0
  const { matched, strays, firm, isGone, lists } = matchAll(known, file.records.filter(isOfStep), { isOwn, isWhole })
  const isStale = (record: WholeRecord): boolean =>
    record.values.length > 0 && record.values.every(({ name }) => isGone(record.step, name)) && !firm.has(record)
  // If no index file can list a record, no reader would ever find it.
  const isSilent = known.length > 0 && matched.every(({ isRight, isEmpty }) => !isRight && isEmpty)
  const wanted = `${[...steps].slice(0, 3).join(' or ')}${steps.size > 3 ? ` or ${steps.size - 3} others` : ''}`
  const reasonFor = (record: WholeRecord): Reason | null => {
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
  const reasons = file.records.map(reasonFor)
  const kept = file.records.filter((_, i) => reasons[i] === null)
  const newStart = new Map<number, number>()
  let keptByteLength = 0
  for (const { startByte, byteLength } of kept) {
    newStart.set(startByte, keptByteLength)
    keptByteLength += byteLength
  }
  const problems = [
    ...file.problems,
    ...reasons.flatMap((reason, i) => (reason ? [{ ...reason, ...contentOf(file.records[i]!) }] : [])),
  ].sort((a, b) => a.offset - b.offset)
  const lost = new LostEntries(lists)
  const stretches = [...stretchesLeftOut(path, file.byteLength, kept, problems, lost)]
  const { some, count } = lost.rest(MAX_OF_FILE)
  const leftOut = [...stretches, ...entriesLeftOut(path, file, some)]
  const rewriter = new IndexRewriter(path, modesOf(kept), newStart)
  const indexes = known.map((index, i) => () => rewriter.rewrite(index, matched[i]!))
  return { kept, keptByteLength, indexes, leftOut, moreLeftOut: count - some.length }
}

function contentOf({ startByte, step, values }: WholeRecord): Pick<FoundProblem, 'offset' | 'step' | 'tensors'> {
  return { offset: startByte, step, tensors: values.map(({ name }) => name) }
}

/** Makes the new content of an event file's index files. What they share is computed once. */
class IndexRewriter {
  readonly #path: string
  readonly #modes: ReadonlyMap<number, ModeOfStep>
  readonly #newStart: ReadonlyMap<number, number>
  readonly #ranks = new WeakMap<readonly TensorLocation[], ReadonlyMap<string, number>>()
  readonly #stays = new WeakMap<readonly Place[], boolean>()
  readonly #tensors = new WeakMap<readonly Place[], readonly TensorLocation[]>()
  readonly #shapes = new WeakMap<readonly Place[], WeakMap<readonly SavedShape[], readonly SavedShape[]>>()

  /** @param newStart the start of each kept record in the copy */
  constructor(path: string, modes: ReadonlyMap<number, ModeOfStep>, newStart: ReadonlyMap<number, number>) {
    this.#path = path
    this.#modes = modes
    this.#newStart = newStart
  }

  rewrite(
    { step, content, saved, tellsMode, isMoved = false }: KnownIndex,
    { found: foundOf, isRight }: Match,
  ): IndexFile | null | 'same' {
    const places = foundOf()
    const saidShapes = content?.shapes ?? saved?.shapes ?? []
    const ofFound = entryOf(this.#shapes, places, () => new WeakMap<readonly SavedShape[], readonly SavedShape[]>())
    const shapes = entryOf(ofFound, saidShapes, () => shapesInCopy(saidShapes, places))
    const stays = () => places.every(({ startByte }) => this.#newStart.get(startByte) === startByte)
    if (isRight && !isMoved && shapes === saidShapes && entryOf(this.#stays, places, stays)) return 'same'
    const tensors = entryOf(this.#tensors, places, () => this.#tensorsInCopy(content?.tensors ?? [], places))
    if (tensors.length === 0 && shapes.length === 0) return null
    const modeSource = tellsMode ? content : null
    const { mode, modeStep } = modeSource ?? saved ?? this.#modes.get(step) ?? { mode: 'GLOBAL', modeStep: step }
    return { mode, modeStep, eventFile: tensors.length === 0 ? null : this.#path, tensors, shapes }
  }

  /** The tensors of an index file in the order of its old entries. */
  #tensorsInCopy(entries: readonly TensorLocation[], places: readonly Place[]): readonly TensorLocation[] {
    if (places.length === 0) return []
    const rank = entryOf(this.#ranks, entries, () => new Map(entries.map(({ name }, i) => [name, i])))
    const rankOf = (name: string): number => rank.get(name) ?? rank.size
    return places
      .filter(({ startByte }) => this.#newStart.has(startByte))
      .sort(
        (a, b) => rankOf(a.name) - rankOf(b.name) || Number(b.isStray) - Number(a.isStray) || a.startByte - b.startByte,
      )
      .map(({ name, startByte, byteLength }) => ({ name, startByte: this.#newStart.get(startByte)!, byteLength }))
  }
}

/** The saved shapes, with those of the new records. Returns the same list if nothing changes. */
function shapesInCopy(shapes: readonly SavedShape[], kept: readonly Place[]): readonly SavedShape[] {
  if (shapes.length === 0 || kept.length === 0) return shapes
  const places = new Map(kept.map(place => [place.name, place]))
  const inCopy = shapes.map(saved => {
    const values = places.get(saved.name)?.record.values ?? []
    const shape = values.find(({ name }) => name === saved.name)?.shape
    return shape && !isSameShape(shape, saved.shape) ? { ...saved, shape } : saved
  })
  return inCopy.every((shape, i) => shape === shapes[i]) ? shapes : inCopy
}

type ModeOfStep = Pick<IndexFile, 'mode' | 'modeStep'>

/** The mode of each step's first record, as in smdebug's index: scalars come last, and may have the next mode. */
function modesOf(records: readonly WholeRecord[]): ReadonlyMap<number, ModeOfStep> {
  const modes = new Map<number, ModeOfStep>()
  for (const { step, values } of records) {
    if (modes.has(step)) continue
    const firstWithMode = values.find(({ mode }) => mode !== 0)
    if (firstWithMode) modes.set(step, modeOfRecord(firstWithMode, step))
  }
  return modes
}

/** The ranges of bytes between the kept records, one for each problem. */
function* stretchesLeftOut(
  path: string,
  byteLength: number,
  kept: readonly WholeRecord[],
  problems: readonly FoundProblem[],
  lost: LostEntries,
): Generator<LeftOut> {
  let at = 0
  let next = 0
  for (const { startByte: gapEnd, byteLength: keptLength } of [...kept, { startByte: byteLength, byteLength: 0 }]) {
    const gapStart = at
    at = gapEnd + keptLength
    // A problem of a record that is kept is not reported here.
    while (next < problems.length && problems[next]!.offset < gapStart) next++
    let start = gapStart
    while (start < gapEnd) {
      const problem = next < problems.length && problems[next]!.offset < gapEnd ? problems[next++]! : null
      // Several problems at one place count as one.
      while (next < problems.length && problems[next]!.offset <= start) next++
      const end = Math.min(gapEnd, problems[next]?.offset ?? gapEnd)
      const { some, count } = lost.take(start, end, MAX_TENSORS)
      yield {
        file: path,
        offset: start,
        byteLength: end - start,
        step: some[0]?.step ?? problem?.step ?? null,
        tensors: (count > 0 ? some.map(({ name }) => name) : (problem?.tensors ?? [])).slice(0, MAX_TENSORS),
        records: Math.max(1, count),
        code: problem?.code ?? 'DamagedRecord',
        reason: problem?.message ?? 'expected a whole record, got none',
      }
      start = end
    }
  }
}

/** The entries that lead to none of the kept records. */
function entriesLeftOut(
  path: string,
  { byteLength: fileLength, records }: FoundFile,
  others: readonly LostInOrder[],
): LeftOut[] {
  const recordAt = others.length === 0 ? null : new Map(records.map(record => [record.startByte, record]))
  return others.map(({ name, startByte, byteLength, step }) => {
    const keptRecord = recordAt?.get(startByte)
    const [code, got] =
      startByte + byteLength > fileLength
        ? ['EntryPastEnd', `the end of the file, at ${fileLength}`]
        : keptRecord
          ? keptRecord.values[0]
            ? ['TagMismatch', `one of ${quote(keptRecord.values[0].name)}`]
            : ['NoTensor', 'one that holds no tensor']
          : ['EntryNotARecord', 'the middle of one']
    const reason = `expected a record of ${byteLength} bytes there, as the index file says, got ${got}`
    return { file: path, offset: startByte, byteLength, step, tensors: [name], records: 1, code, reason }
  })
}
