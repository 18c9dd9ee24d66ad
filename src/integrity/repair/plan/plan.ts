/**
 * The parts of an event file that are kept, and the index file for them. Decided from what the file was found to hold, and from
 * what the index file told; pure.
 */

import { quote } from '../../../base/errors.js'
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
  /** In the order of the file. */
  readonly kept: readonly WholeRecord[]
  readonly keptByteLength: number
  /**
   * One a known index file: what it has to say; null where nothing of it is left; `same` where it says just that. Each is made
   * when it is wanted: they can be far longer than what they are made of.
   */
  readonly indexes: readonly (() => IndexFile | null | 'same')[]
  readonly leftOut: readonly LeftOut[]
  /** Index entries that lead to no record, one each, beside those that are listed: of them there are some then. */
  readonly moreLeftOut: number
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
  const { matched, strays, firm, isGone, lists } = matchAll(known, found.records.filter(isOfStep), { isOwn, isWhole })
  const isStale = (record: WholeRecord): boolean =>
    record.values.length > 0 && record.values.every(({ name }) => isGone(record.step, name)) && !firm.has(record)
  // Of what no index file can tell nobody would ever know.
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
  const lost = new LostEntries(lists)
  const stretches = [...stretchesLeftOut(path, found.byteLength, kept, problems, lost)]
  const { some, count } = lost.rest(MAX_OF_FILE)
  const leftOut = [...stretches, ...entriesLeftOut(path, found, some)]
  const rewriter = new IndexRewriter(path, modesOf(kept), newStart)
  const indexes = known.map((index, i) => () => rewriter.rewrite(index, matched[i]!))
  return { kept, keptByteLength, indexes, leftOut, moreLeftOut: count - some.length }
}

function contentOf({ startByte, step, values }: WholeRecord): Pick<FoundProblem, 'offset' | 'step' | 'tensors'> {
  return { offset: startByte, step, tensors: values.map(({ name }) => name) }
}

/** Says what the index files of an event file have to say. What they share is found out once. */
class IndexRewriter {
  readonly #path: string
  readonly #modes: ReadonlyMap<number, ModeOfStep>
  readonly #newStart: ReadonlyMap<number, number>
  readonly #ranks = new WeakMap<readonly TensorLocation[], ReadonlyMap<string, number>>()
  readonly #stays = new WeakMap<readonly Place[], boolean>()
  readonly #tensors = new WeakMap<readonly Place[], readonly TensorLocation[]>()
  readonly #shapes = new WeakMap<readonly Place[], WeakMap<readonly SavedShape[], readonly SavedShape[]>>()

  /** @param newStart where the records that are kept begin in the copy */
  constructor(path: string, modes: ReadonlyMap<number, ModeOfStep>, newStart: ReadonlyMap<number, number>) {
    this.#path = path
    this.#modes = modes
    this.#newStart = newStart
  }

  rewrite(
    { step, content, saved, tellsMode, isMoved = false }: KnownIndex,
    { found: foundOf, isRight }: Match,
  ): IndexFile | null | 'same' {
    const found = foundOf()
    const saidShapes = content?.shapes ?? saved?.shapes ?? []
    const ofFound = remember(this.#shapes, found, () => new WeakMap<readonly SavedShape[], readonly SavedShape[]>())
    const shapes = remember(ofFound, saidShapes, () => shapesInCopy(saidShapes, found))
    const stays = () => found.every(({ startByte }) => this.#newStart.get(startByte) === startByte)
    if (isRight && !isMoved && shapes === saidShapes && remember(this.#stays, found, stays)) return 'same'
    const tensors = remember(this.#tensors, found, () => this.#tensorsInCopy(content?.tensors ?? [], found))
    if (tensors.length === 0 && shapes.length === 0) return null
    const told = tellsMode ? content : null
    const { mode, modeStep } = told ?? saved ?? this.#modes.get(step) ?? { mode: 'GLOBAL', modeStep: step }
    return { mode, modeStep, eventFile: tensors.length === 0 ? null : this.#path, tensors, shapes }
  }

  /** In the order in which the index file told of them. */
  #tensorsInCopy(told: readonly TensorLocation[], found: readonly Place[]): readonly TensorLocation[] {
    if (found.length === 0) return []
    const rank = remember(this.#ranks, told, () => new Map(told.map(({ name }, i) => [name, i])))
    const rankOf = (name: string): number => rank.get(name) ?? rank.size
    return found
      .filter(({ startByte }) => this.#newStart.has(startByte))
      .sort(
        (a, b) => rankOf(a.name) - rankOf(b.name) || Number(b.isStray) - Number(a.isStray) || a.startByte - b.startByte,
      )
      .map(({ name, startByte, byteLength }) => ({ name, startByte: this.#newStart.get(startByte)!, byteLength }))
  }
}

function remember<K extends object, V>(known: WeakMap<K, V>, key: K, make: () => V): V {
  const value = known.get(key) ?? make()
  known.set(key, value)
  return value
}

/** Saved shapes; of a tensor whose record has another one, that. The same list where there is none. */
function shapesInCopy(shapes: readonly SavedShape[], found: readonly Place[]): readonly SavedShape[] {
  if (shapes.length === 0 || found.length === 0) return shapes
  const places = new Map(found.map(place => [place.name, place]))
  const inCopy = shapes.map(saved => {
    const values = places.get(saved.name)?.record.values ?? []
    const shape = values.find(({ name }) => name === saved.name)?.shape
    return shape && !isSameShape(shape, saved.shape) ? { ...saved, shape } : saved
  })
  return inCopy.every((shape, i) => shape === shapes[i]) ? shapes : inCopy
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

/** The bytes between the kept records, as one stretch per problem. */
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
    // One of a record that is kept all the same is none of ours.
    while (next < problems.length && problems[next]!.offset < gapStart) next++
    let start = gapStart
    while (start < gapEnd) {
      const problem = next < problems.length && problems[next]!.offset < gapEnd ? problems[next++]! : null
      // Several of one place are one.
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

/** Entries that lead to none of these. */
function entriesLeftOut(
  path: string,
  { byteLength: fileLength, records }: FoundFile,
  others: readonly LostInOrder[],
): LeftOut[] {
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
