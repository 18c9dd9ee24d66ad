/**
 * Lists the content of event files without an index. The records are followed by their frames; only the fields that identify them are
 * read, in pieces.
 */

import { type ErrorData, errorToData, FormatError, type TrialscanError } from '../../base/errors.js'
import { Status, ValueKind } from '../../core/border/abi.js'
import { FOOTER_LENGTH, HEADER_LENGTH } from '../../core/border/framing.js'
import type { Address } from '../../core/border/memory.js'
import { type FaultPlace, faultError } from '../../core/border/status.js'
import type { Engine } from '../../core/engine.js'
import { type Batch, utf8Decoder } from '../../core/slots.js'
import {
  type EventHead,
  longText,
  MAX_TEXT_BYTES,
  MalformedEvent,
  type Needed,
  walkEventHead,
} from '../../format/event-head.js'
import { type IndexFile, modeOfRecord, type TensorLocation } from '../../format/index-file.js'
import type { TornasoleIndexFile } from '../../format/tornasole.js'
import type { Store } from '../../storage/store.js'
import { Interner } from '../job/plan/interner.js'
import { DEFAULT_MEMORY } from '../job/plan/memory.js'
import type { SurveyedFile, SurveyJob, SurveyReply } from '../job/survey-job.js'
import { VALUE_KINDS, type VerifiedRange } from '../job/verify-job.js'
import { FilePieces, mostOf, PIECE_BYTES } from './file-pieces.js'
import { expectedStep, isStep } from './verify/found.js'
import { verifyEventFiles } from './verify/verify.js'

/** The number of Values that are listed at once. */
const SURVEY_SLOTS = 1024
const OTHER = VALUE_KINDS.indexOf('other')
/** The number of faults of a file that are reported one by one. */
const MAX_SURVEY_PROBLEMS = 100

/** Walks whole event files, or what was appended to them. */
export async function surveyEventFiles(job: SurveyJob, engine: Engine, store: Store): Promise<SurveyReply> {
  const files: (SurveyedFile | ErrorData)[] = []
  for (const { path, startByte } of job.files) {
    engine.reset()
    try {
      const survey = new FileSurvey(path, await store.byteLength(path), store)
      const damage = await survey.walk(startByte, new Frames(engine, store))
      if (damage !== null) await survey.goOnBehind(damage, job, engine)
      files.push(survey.found)
    } catch (error) {
      files.push(errorToData(error))
    }
  }
  return { kind: 'survey', files }
}

/** A place behind which frames may not lead from record to record. */
interface Damage {
  /** The record that may hide others, or the place where none begins. */
  readonly startByte: number
  /** The broken frame; null if only the record's payload is damaged. */
  readonly broken: { readonly at: number; readonly error: ErrorData } | null
}

/** The survey of one file. */
class FileSurvey {
  readonly #path: string
  readonly #fileLength: number
  readonly #store: Store
  readonly #tags = new Interner()
  readonly #columns: ValueColumns = { tag: [], startByte: [], byteLength: [], step: [], mode: [], modeStep: [] }
  #starts: SurveyedFile['starts'][number][] = []
  #problems: ErrorData[] = []
  /** The end of the last intact record. */
  #end = 0

  constructor(path: string, fileLength: number, store: Store) {
    this.#path = path
    this.#fileLength = fileLength
    this.#store = store
  }

  get found(): SurveyedFile {
    const columns = this.#columns
    return {
      byteLength: this.#fileLength,
      scannedByteLength: this.#end,
      tags: this.#tags.names,
      tag: Int32Array.from(columns.tag),
      startByte: Float64Array.from(columns.startByte),
      recordByteLength: Float64Array.from(columns.byteLength),
      step: Float64Array.from(columns.step),
      mode: Uint8Array.from(columns.mode),
      modeStep: Float64Array.from(columns.modeStep),
      starts: this.#starts,
      problems: this.#problems,
    }
  }

  /** Follows the frames of the records up to the end of the file, or to damage. */
  async walk(startByte: number, frames: Frames): Promise<Damage | null> {
    const [fileLength, columns] = [this.#fileLength, this.#columns]
    const url = this.#store.url(this.#path)
    const file = new FilePieces(this.#store, this.#path, fileLength, frames.view)
    const whole = frames.wholeRecords(this.#tags, this.#path)
    let at = startByte
    // The record that ends where the next one begins.
    let before = startByte
    while (at < fileLength) {
      this.#end = at
      try {
        if (!file.has(at, HEADER_LENGTH)) await file.load(at)
        const { end, last, hollow } = whole.take(file.rest(at), at, columns)
        if (end > at) {
          for (const { startByte, byteLength } of hollow) await this.#lookForStart(file, startByte, byteLength)
          before = last
          at = end
          continue
        }
        if (whole.spoiltAt === at) return { startByte: at, broken: null }
        const header = file.slice(at, Math.min(HEADER_LENGTH, fileLength - at))
        const byteLength = frames.byteLength(header, { url, startByte: at, tensor: '' })
        if (at + byteLength > fileLength) throw truncated(url, at, byteLength, fileLength - at)
        try {
          const { step, isStart, values } = await readHead(file, url, at, byteLength)
          if (!isStep(step, this.#path)) throw badStep(url, at, this.#path)
          if (isStart) this.#starts.push({ startByte: at, step })
          for (const { tag, kind, mode, modeStep } of values) {
            if (kind === null) continue
            columns.tag.push(this.#tags.number(tag))
            columns.startByte.push(at)
            columns.byteLength.push(byteLength)
            columns.step.push(step)
            columns.mode.push(mode)
            columns.modeStep.push(modeStep)
          }
        } catch (error) {
          // The frame is intact: only this record is lost.
          if (!(error instanceof FormatError) || error.code === 'TruncatedRecord') throw error
          this.#tell(error.toJSON())
        }
        before = at
        at += byteLength
      } catch (error) {
        if (error instanceof FormatError) return { startByte: before, broken: { at, error: errorToData(error) } }
        this.#problems.push(errorToData(error))
        return null
      }
    }
    this.#end = at
    return null
  }

  /** Searches an intact record without Values for a SessionLog START. */
  async #lookForStart(file: FilePieces, startByte: number, byteLength: number): Promise<void> {
    try {
      const { step, isStart } = await readHead(file, this.#store.url(this.#path), startByte, byteLength)
      if (isStart && isStep(step, this.#path)) this.#starts.push({ startByte, step })
    } catch (error) {
      // The record has none.
      if (!(error instanceof FormatError)) throw error
    }
  }

  /** Finds the records behind damage as `verify` and `repair` do, and takes those with names and a step. */
  async goOnBehind({ startByte, broken }: Damage, { store }: SurveyJob, engine: Engine): Promise<void> {
    const columns = this.#columns
    const known = columns.startByte.findIndex(start => start >= startByte)
    if (known >= 0) for (const column of Object.values(columns)) column.length = known
    this.#starts = this.#starts.filter(start => start.startByte < startByte)
    this.#problems = this.#problems.filter(({ fields }) => !(Number(fields.offset) >= startByte))
    for (let at = startByte; at < this.#fileLength; ) {
      const ranges = [{ path: this.#path, startByte: at, endByte: null, anchors: new Float64Array(0) }]
      const job = {
        kind: 'verify',
        store,
        ranges,
        windowByteLength: DEFAULT_MEMORY / 2,
        isTornasole: false,
        deep: false,
      } as const
      const reply = await verifyEventFiles(job, engine, this.#store)
      const range = reply.ranges[0]!
      if ('code' in range) {
        this.#problems.push(range)
        return
      }
      this.#take(range, reply.tags, broken)
      const withValues = new Set(range.record)
      const file = new FilePieces(this.#store, this.#path, this.#fileLength)
      for (const [i, start] of range.recordStart.entries()) {
        if (range.isBad[i] === 1 || withValues.has(i)) continue
        await this.#lookForStart(file, start, range.recordByteLength[i]!)
      }
      if (range.endByte <= at) return
      at = range.endByte
    }
  }

  #take(range: VerifiedRange, tags: readonly string[], broken: Damage['broken']): void {
    const { byteLength, recordStart, recordByteLength, record, kind, skipped, problems } = range
    // The true end of such a record differs from its header.
    const broke = new Set(
      problems.filter(({ error }) => error.code === 'BrokenFrame').map(({ startByte }) => startByte),
    )
    const tagLengths = tags.map(tag => Buffer.byteLength(tag))
    const refused = new Map<number, number>()
    for (const [value, name] of record.entries()) {
      const tagLength = tagLengths[range.tag[value]!]!
      if (tagLength > MAX_TEXT_BYTES) refused.set(recordStart[name]!, tagLength)
    }
    for (const [startByte, tagLength] of refused) {
      this.#tell(malformed(this.#store.url(this.#path), new MalformedEvent(startByte, ...longText(tagLength))).toJSON())
    }
    const taken = new Set<number>()
    for (const [value, name] of record.entries()) {
      const [startByte, step] = [recordStart[name]!, range.step[name]!]
      if (kind[value] === OTHER || Number.isNaN(step) || broke.has(startByte) || refused.has(startByte)) continue
      taken.add(startByte)
      this.#columns.tag.push(this.#tags.number(tags[range.tag[value]!]!))
      this.#columns.startByte.push(startByte)
      this.#columns.byteLength.push(recordByteLength[name]!)
      this.#columns.step.push(step)
      this.#columns.mode.push(range.mode[value]!)
      this.#columns.modeStep.push(range.modeStep[value]!)
    }
    // Problems of a record that was taken are reported by its readers.
    const reportedProblems = problems.filter(({ startByte }) => !taken.has(startByte))
    const isTorn = skipped.length > 0 && skipped.at(-1) === byteLength
    this.#end = isTorn ? skipped.at(-2)! : byteLength
    const tail = isTorn ? reportedProblems.find(({ endByte }) => endByte === byteLength) : undefined
    for (const problem of reportedProblems) if (problem !== tail) this.#tell(problem.error)
    // A fault at the end of the file comes last and keeps that wording, since the file may grow.
    if (tail !== undefined) this.#problems.push(broken?.at === tail.startByte ? broken.error : tail.error)
  }

  #tell(problem: ErrorData): void {
    if (this.#problems.length < MAX_SURVEY_PROBLEMS) this.#problems.push(problem)
  }
}

/** Adds the mode to a Tornasole index file, from the first Event that has one. */
export async function withModeOfEvents(
  { eventFile, tensors }: TornasoleIndexFile,
  step: number,
  store: Store,
): Promise<IndexFile> {
  return { ...modeOfRecord(await readMode(eventFile, tensors, store), step), eventFile, tensors, shapes: [] }
}

async function readMode(eventFile: string | null, tensors: readonly TensorLocation[], store: Store) {
  let fault: FormatError | undefined
  if (eventFile !== null) {
    const file = new FilePieces(store, eventFile, await store.byteLength(eventFile))
    for (const { startByte, byteLength } of tensors) {
      try {
        const { values } = await readHead(file, store.url(eventFile), startByte, byteLength)
        const stored = values.find(({ mode }) => mode > 0)
        if (stored) return stored
      } catch (error) {
        // One bad record does not cost the others their mode.
        if (!(error instanceof FormatError)) throw error
        fault ??= error
      }
    }
  }
  if (fault) throw fault
  return { mode: 0, modeStep: -1 }
}

async function readHead(file: FilePieces, url: string, startByte: number, byteLength: number): Promise<EventHead> {
  const start = startByte + HEADER_LENGTH
  const walk = walkEventHead(file, start, startByte + byteLength - FOOTER_LENGTH)
  try {
    for (;;) {
      const { done, value } = walk.next()
      if (done) return value as EventHead
      const needed = value as Needed
      await file.load(needed.at)
      if (!file.has(needed.at, needed.byteLength)) {
        throw truncated(url, startByte, byteLength, Math.max(0, file.byteLength - startByte))
      }
    }
  } catch (error) {
    if (!(error instanceof MalformedEvent)) throw error
    throw malformed(url, error)
  }
}

function malformed(url: string, { at: offset, expected, got }: MalformedEvent): FormatError {
  const message = `${url}, offset ${offset}: expected ${expected}, got ${got}`
  return new FormatError('MalformedEvent', message, { url, offset, expected, got })
}

function badStep(url: string, offset: number, path: string): FormatError {
  const [expected, got] = [expectedStep(path), 'another step']
  const message = `${url}, offset ${offset}: expected ${expected}, got ${got}`
  return new FormatError('BadStep', message, { url, offset, expected, got })
}

function truncated(url: string, startByte: number, expected: number, got: number): TrialscanError {
  return faultError({ status: Status.truncated, expected, got }, { url, startByte, tensor: '' })
}

/** The Values so far, in columns. */
type ValueColumns = Readonly<Record<'tag' | 'startByte' | 'byteLength' | 'step' | 'mode' | 'modeStep', number[]>>

/** A record without Values. */
type HollowRecord = Readonly<Record<'startByte' | 'byteLength', number>>

/**
 * Handles intact ordinary records in memory: the core walks many at once, in a fifth of the time. All others are walked here, field by
 * field, which also gives the reason for a fault.
 */
class WholeRecords {
  readonly #engine: Engine
  readonly #batch: Batch
  readonly #window: Address
  readonly #tags: Interner
  readonly #path: string
  /** The numbers of tags, by their bytes. */
  readonly #numbers = new Map<string, number>()
  /** The end of the range with a special record: those around it are not examined again and again. */
  #from = 0
  /** The last record whose payload differs from what was written. */
  spoiltAt = -1

  constructor(engine: Engine, batch: Batch, window: Address, tags: Interner, path: string) {
    this.#path = path
    this.#engine = engine
    this.#batch = batch
    this.#window = window
    this.#tags = tags
  }

  /**
   * @param rest the rest of the piece, from `at` on
   * @returns the start of the first record that was not taken, the last one that was, and those without Values
   */
  take(
    { offset, byteLength }: { readonly offset: number; readonly byteLength: number },
    at: number,
    columns: ValueColumns,
  ): { readonly end: number; readonly last: number; readonly hollow: readonly HollowRecord[] } {
    const hollow: HollowRecord[] = []
    if (at < this.#from) return { end: at, last: at, hollow }
    const address = (this.#window + offset) as Address
    return this.#engine.scoped(() => {
      const count = this.#engine.survey.records(this.#batch, address, byteLength, false)
      if (count > this.#batch.capacity) {
        this.#from = at + PIECE_BYTES
        return { end: at, last: at, hollow }
      }
      const slots = this.#engine.slots(this.#batch, count)
      let [end, last] = [at, at]
      // The number of Values before those of the record.
      let before = columns.tag.length
      for (let i = 0; i < count; i++) {
        const startByte = at + slots.frame(i) - address
        if (startByte >= end) before = columns.tag.length
        const step = slots.eventStep(i)
        const tag = slots.tagBytes(i)
        const isOrdinary = slots.recordStatus(i) === Status.ok && isStep(step, this.#path)
        if (!isOrdinary || tag.length > MAX_TEXT_BYTES) {
          for (const column of Object.values(columns)) column.length = before
          this.#from = startByte + PIECE_BYTES
          if (slots.recordStatus(i) === Status.badPayloadCrc) this.spoiltAt = startByte
          return { end: startByte, last, hollow }
        }
        last = startByte
        end = startByte + slots.frameByteLength(i)
        const holds = slots.holds(i)
        if (holds === ValueKind.noValue) hollow.push({ startByte, byteLength: slots.frameByteLength(i) })
        if (holds !== ValueKind.tensor && holds !== ValueKind.histogram) continue
        columns.tag.push(this.#tagNumber(tag))
        columns.startByte.push(startByte)
        columns.byteLength.push(slots.frameByteLength(i))
        columns.step.push(step)
        columns.mode.push(slots.mode(i))
        columns.modeStep.push(slots.modeStep(i))
      }
      return { end, last, hollow }
    })
  }

  #tagNumber(bytes: string): number {
    let number = this.#numbers.get(bytes)
    if (number === undefined) {
      number = this.#tags.number(utf8Decoder.decode(Buffer.from(bytes, 'latin1')))
      this.#numbers.set(bytes, number)
    }
    return number
  }
}

/** Checks the frames of records with the core. */
class Frames {
  readonly #engine: Engine
  readonly #batch: Batch
  readonly #header: Address
  readonly #records: Batch
  readonly #window: Address

  constructor(engine: Engine, store: Store) {
    this.#engine = engine
    this.#batch = engine.reserveBatch(1)
    this.#header = engine.reserveBytes(HEADER_LENGTH)
    this.#records = engine.reserveBatch(SURVEY_SLOTS)
    this.#window = engine.reserveBytes(mostOf(store))
  }

  /** The memory for pieces of files. */
  readonly view = (byteLength: number): Uint8Array<ArrayBuffer> => this.#engine.view(this.#window, byteLength)

  /** @param tags the tags of the file */
  wholeRecords(tags: Interner, path: string): WholeRecords {
    return new WholeRecords(this.#engine, this.#records, this.#window, tags, path)
  }

  /** The length of a record with its frame. @throws FormatError */
  byteLength(header: Uint8Array, place: FaultPlace): number {
    this.#engine.view(this.#header, header.length).set(header)
    const byteLength = this.#engine.framedLength(this.#batch, this.#header, header.length)
    if (byteLength === null) throw this.#engine.slots(this.#batch, 1).error(0, place)
    return byteLength
  }
}
