/**
 * Finds out what event files hold that no index file lists. The records are followed by their frames; of each, only the
 * fields that name it are read, in pieces.
 */

import { Status, ValueKind } from '../engine/border/abi.js'
import { FOOTER_LENGTH, HEADER_LENGTH } from '../engine/border/framing.js'
import type { Address } from '../engine/border/memory.js'
import { type FaultPlace, faultError } from '../engine/border/status.js'
import type { Engine } from '../engine/engine.js'
import { type Batch, utf8Decoder } from '../engine/slots.js'
import { type ErrorData, errorToData, FormatError, type TrialscanError } from '../errors.js'
import {
  type EventHead,
  type FileBytes,
  MAX_TEXT_BYTES,
  MalformedEvent,
  type Needed,
  walkEventHead,
} from '../format/event-head.js'
import { type IndexFile, modeOfRecord, type TensorLocation } from '../format/index-file.js'
import type { TornasoleIndexFile } from '../format/tornasole.js'
import { Interner } from '../job/plan/interner.js'
import type { SurveyedFile, SurveyJob, SurveyReply } from '../job/survey.js'
import { isRemote, type Store } from '../store/store.js'

/** Read at once: a large record costs one such piece, and small ones come by the hundred. */
const SURVEY_BYTES = 64 << 10
/** Values that are found at once. */
const SURVEY_SLOTS = 1024
/** The most that is read at once if one piece after another is needed: on the local disk, and if reads are requests. */
const LOCAL_PIECE_BYTES = 1 << 20
const REMOTE_PIECE_BYTES = 4 << 20
/** Faults of a file that are reported one by one. */
const MAX_SURVEY_PROBLEMS = 100

/** Walks whole event files, or what was appended to them. */
export async function surveyEventFiles(job: SurveyJob, engine: Engine, store: Store): Promise<SurveyReply> {
  engine.reset()
  const frames = new Frames(engine, store)
  const files: (SurveyedFile | ErrorData)[] = []
  for (const { path, startByte } of job.files) {
    try {
      files.push(await surveyEventFile(path, startByte, frames, store))
    } catch (error) {
      files.push(errorToData(error))
    }
  }
  return { kind: 'survey', files }
}

async function surveyEventFile(path: string, startByte: number, frames: Frames, store: Store): Promise<SurveyedFile> {
  const url = store.url(path)
  const fileLength = await store.byteLength(path)
  const file = new FilePieces(store, path, fileLength, frames.view)
  const tags = new Interner()
  const whole = frames.wholeRecords(tags)
  const columns: ValueColumns = { tag: [], startByte: [], byteLength: [], step: [], mode: [], modeStep: [] }
  const problems: ErrorData[] = []
  let at = startByte
  while (at < fileLength) {
    try {
      if (!file.has(at, HEADER_LENGTH)) await file.load(at)
      const end = whole.take(file.rest(at), at, columns)
      if (end > at) {
        at = end
        continue
      }
      const header = file.slice(at, Math.min(HEADER_LENGTH, fileLength - at))
      const byteLength = frames.byteLength(header, { url, startByte: at, tensor: '' })
      if (at + byteLength > fileLength) throw truncated(url, at, byteLength, fileLength - at)
      try {
        const { step, values } = await readHead(file, url, at, byteLength)
        if (!Number.isSafeInteger(step)) throw badStep(url, at)
        for (const { tag, kind, mode, modeStep } of values) {
          if (kind === null) continue
          columns.tag.push(tags.number(tag))
          columns.startByte.push(at)
          columns.byteLength.push(byteLength)
          columns.step.push(step)
          columns.mode.push(mode)
          columns.modeStep.push(modeStep)
        }
      } catch (error) {
        // The frame is intact: only this record is lost.
        if (!(error instanceof FormatError) || error.code === 'TruncatedRecord') throw error
        if (problems.length < MAX_SURVEY_PROBLEMS) problems.push(error.toJSON())
      }
      at += byteLength
    } catch (error) {
      // It is unknown where the next record begins.
      problems.push(errorToData(error))
      break
    }
  }
  return {
    byteLength: fileLength,
    scannedByteLength: at,
    tags: tags.names,
    tag: Int32Array.from(columns.tag),
    startByte: Float64Array.from(columns.startByte),
    recordByteLength: Float64Array.from(columns.byteLength),
    step: Float64Array.from(columns.step),
    mode: Uint8Array.from(columns.mode),
    modeStep: Float64Array.from(columns.modeStep),
    problems,
  }
}

/** Completes an index file of Tornasole's with the mode, taken from the first Event that stores one. */
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
    const { at: offset, expected, got } = error
    const message = `${url}, offset ${offset}: expected ${expected}, got ${got}`
    throw new FormatError('MalformedEvent', message, { url, offset, expected, got })
  }
}

function badStep(url: string, offset: number): FormatError {
  const [expected, got] = ['an Event of a step from 0 to 2^53 - 1', 'another step']
  const message = `${url}, offset ${offset}: expected ${expected}, got ${got}`
  return new FormatError('BadStep', message, { url, offset, expected, got })
}

function truncated(url: string, startByte: number, expected: number, got: number): TrialscanError {
  return faultError({ status: Status.truncated, expected, got }, { url, startByte, tensor: '' })
}

/** A file of which one piece is in memory. */
export class FilePieces implements FileBytes {
  readonly byteLength: number
  readonly #store: Store
  readonly #path: string
  readonly #view: (byteLength: number) => Uint8Array<ArrayBuffer>
  #piece = new Uint8Array(0)
  #next = SURVEY_BYTES
  #start = 0
  #length = 0

  /** @param view of the memory where pieces lie, which must stay as it is until the next is loaded */
  constructor(store: Store, path: string, byteLength: number, view = ownMemory()) {
    this.#store = store
    this.#path = path
    this.byteLength = byteLength
    this.#view = view
  }

  has(at: number, byteLength: number): boolean {
    return at >= this.#start && at + byteLength <= this.#start + this.#length
  }

  byte(at: number): number {
    return this.#bytes[at - this.#start]!
  }

  slice(at: number, byteLength: number): Uint8Array {
    return this.#bytes.subarray(at - this.#start, Math.min(at - this.#start + byteLength, this.#length))
  }

  /** What is in memory from `at` on: where in the piece it begins, and how long it is. */
  rest(at: number): { readonly offset: number; readonly byteLength: number } {
    return { offset: at - this.#start, byteLength: this.#start + this.#length - at }
  }

  /** Reads the piece that begins at `at`. Anything appended since the file was measured is ignored. */
  async load(at: number): Promise<void> {
    const end = this.#start + this.#length
    const isNext = this.#length > 0 && at > this.#start && at <= end + SURVEY_BYTES
    if (isNext) this.#next = Math.min(2 * this.#next, mostOf(this.#store))
    this.#start = at
    this.#length = 0
    this.#piece = this.#view(Math.max(0, Math.min(isNext ? this.#next : SURVEY_BYTES, this.byteLength - at)))
    this.#length = await this.#store.readInto(this.#path, at, this.#piece)
  }

  get #bytes(): Uint8Array {
    // A view of the core's memory is empty once that has grown.
    if (this.#piece.length === 0) this.#piece = this.#view(this.#length)
    return this.#piece
  }
}

/** The most that is read at once. */
function mostOf(store: Store): number {
  return isRemote(store) ? REMOTE_PIECE_BYTES : LOCAL_PIECE_BYTES
}

function ownMemory(): (byteLength: number) => Uint8Array<ArrayBuffer> {
  let memory = new Uint8Array(SURVEY_BYTES)
  return byteLength => {
    if (byteLength > memory.length) memory = new Uint8Array(byteLength)
    return memory.subarray(0, byteLength)
  }
}

/** Of Values that were found, an entry for each. */
type ValueColumns = Readonly<Record<'tag' | 'startByte' | 'byteLength' | 'step' | 'mode' | 'modeStep', number[]>>

/**
 * Records that are in memory as a whole, and out of the ordinary in nothing: the core walks many at once, which takes a fifth of the time.
 * All others are walked here, field by field, which alone tells what is wrong.
 */
class WholeRecords {
  readonly #engine: Engine
  readonly #batch: Batch
  readonly #window: Address
  readonly #tags: Interner
  /** By the bytes of the tag. */
  readonly #numbers = new Map<string, number>()
  /** Before this, one that is out of the ordinary was found: those around it are not looked at again and again. */
  #from = 0

  constructor(engine: Engine, batch: Batch, window: Address, tags: Interner) {
    this.#engine = engine
    this.#batch = batch
    this.#window = window
    this.#tags = tags
  }

  /** @param rest of the piece, from `at` on @returns where the first record begins that was not taken */
  take(
    { offset, byteLength }: { readonly offset: number; readonly byteLength: number },
    at: number,
    columns: ValueColumns,
  ): number {
    if (at < this.#from) return at
    const address = (this.#window + offset) as Address
    return this.#engine.scoped(() => {
      const count = this.#engine.survey.records(this.#batch, address, byteLength, false)
      if (count > this.#batch.capacity) {
        this.#from = at + SURVEY_BYTES
        return at
      }
      const slots = this.#engine.slots(this.#batch, count)
      let end = at
      // Values that were found before those of the record.
      let before = columns.tag.length
      for (let i = 0; i < count; i++) {
        const startByte = at + slots.frame(i) - address
        if (startByte >= end) before = columns.tag.length
        const step = slots.eventStep(i)
        const tag = slots.tagBytes(i)
        const isOrdinary = slots.recordStatus(i) === Status.ok && step >= 0 && Number.isSafeInteger(step)
        if (!isOrdinary || tag.length > MAX_TEXT_BYTES) {
          for (const column of Object.values(columns)) column.length = before
          this.#from = startByte + SURVEY_BYTES
          return startByte
        }
        end = startByte + slots.frameByteLength(i)
        const holds = slots.holds(i)
        if (holds !== ValueKind.tensor && holds !== ValueKind.histogram) continue
        columns.tag.push(this.#tagNumber(tag))
        columns.startByte.push(startByte)
        columns.byteLength.push(slots.frameByteLength(i))
        columns.step.push(step)
        columns.mode.push(slots.mode(i))
        columns.modeStep.push(slots.modeStep(i))
      }
      return end
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

  /** The memory where pieces of files lie. */
  readonly view = (byteLength: number): Uint8Array<ArrayBuffer> => this.#engine.view(this.#window, byteLength)

  /** @param tags of the file's */
  wholeRecords(tags: Interner): WholeRecords {
    return new WholeRecords(this.#engine, this.#records, this.#window, tags)
  }

  /** The length of a record, with its frame. @throws FormatError */
  byteLength(header: Uint8Array, place: FaultPlace): number {
    this.#engine.view(this.#header, header.length).set(header)
    const byteLength = this.#engine.framedLength(this.#batch, this.#header, header.length)
    if (byteLength === null) throw this.#engine.slots(this.#batch, 1).error(0, place)
    return byteLength
  }
}
