/**
 * Turns places of records into byte ranges to read, with neighbours coalesced. Pure: nothing is read here. The limits come from
 * measurements: checksums run from the L2 cache while one read stays within about 1 MiB, and reading over a gap of 64 KiB costs less than
 * a second read.
 */

import { CHECK_LEVELS, type CheckLevel, MODES, type Mode } from '../../../base/types.js'
import type { AskedRecords } from '../../../core/batch/core-records.js'
import { type ReadShape, readShape } from '../../../storage/read-shape.js'
import type { StoreSpec } from '../../../storage/store.js'
import { Interner } from './interner.js'
import { aheadByteLength } from './memory.js'

/** The size at which a batch is closed. A longer record is a batch by itself. */
const BATCH_BYTES = 1 << 20
const BATCH_RECORDS = 4096
/** The distance beyond which neighbours are read separately. */
const GAP_BYTES = 64 << 10
export const LOCAL_SHAPE: ReadShape = { gapByteLength: GAP_BYTES, batchByteLength: BATCH_BYTES }

/** The place of a record to read, and its expected content. */
export interface RecordPlace {
  readonly file: string
  readonly tag: string
  readonly startByte: number
  readonly byteLength: number
  readonly step: number
  /** True for a Tornasole trial, which labelled float16 as int32. */
  readonly tornasole?: boolean
  /** The row that is made from this record alone. */
  readonly row?: RowPlace | null
  /** The row that is made from this record and others. */
  readonly combined?: CombinedRow
}

/** A row that is made from several records, or from none. */
export interface CombinedRow {
  readonly recordCount: number
}

/** A record of a combined row, by its index in the job; or the place among the records of a row that has none. */
export interface CombinedPlace {
  readonly at: number
  readonly row: CombinedRow
}

/** The place of a row in the result. */
export interface RowPlace {
  readonly worker: string
  readonly mode: Mode
  readonly modeStep: number
}

/** The places of tensors that were saved together: a list that many steps share. */
export interface ListedPlaces {
  readonly tags: readonly string[]
  readonly startByte: Float64Array
  readonly byteLength: Float64Array
  /** The number of bytes before each tensor, followed by the total. */
  readonly bytesBefore: Float64Array
  readonly longest: number
}

/** A run of records to read from one file: all those of a list, each with a row. */
export interface RecordRun extends Pick<RecordPlace, 'file' | 'step' | 'tornasole'> {
  readonly list: ListedPlaces
  readonly row: RowPlace
}

/** Records to read, in the order of their rows; each column has one entry per record. */
export interface RecordColumns extends AskedRecords {
  /** Index into the job's files. */
  readonly file: Int32Array
}

/** The places of records' rows; each column has one entry per record. */
export interface RowColumns {
  readonly workers: readonly string[]
  /** Index into the workers; -1 if the record has no row of its own. */
  readonly worker: Int32Array
  /** Index into MODES. */
  readonly mode: Uint8Array
  readonly modeStep: Float64Array
}

/** The records of a job. */
export interface JobRecords {
  readonly files: readonly string[]
  readonly tags: readonly string[]
  readonly records: RecordColumns
}

/** A job on records of one store. */
export interface RecordJob extends JobRecords {
  readonly store: StoreSpec
  readonly checkLevel: number
}

/** The check level's number in the core. */
export function checkLevelNumber(level: CheckLevel): number {
  return CHECK_LEVELS.indexOf(level)
}

/** Neighbouring records that are read at once: `order[first .. first + count)` of the job. */
export interface ReadBatch {
  readonly file: number
  readonly startByte: number
  readonly endByte: number
  readonly first: number
  readonly count: number
}

/** The records, and the places of their rows. */
export interface ListedRecords {
  readonly listed: JobRecords
  readonly rows: RowColumns
  /** In the order of the rows. */
  readonly combined: readonly CombinedPlace[]
  /** True if each record has a row of its own. */
  readonly isWhole: boolean
}

/** @param places in the order of their rows */
export function listPlaces(
  places: readonly { readonly name: string; readonly startByte: number; readonly byteLength: number }[],
): ListedPlaces {
  const startByte = new Float64Array(places.length)
  const byteLength = new Float64Array(places.length)
  const bytesBefore = new Float64Array(places.length + 1)
  let longest = 0
  for (let i = 0; i < places.length; i++) {
    const place = places[i]!
    startByte[i] = place.startByte
    byteLength[i] = place.byteLength
    bytesBefore[i + 1] = bytesBefore[i]! + place.byteLength
    longest = Math.max(longest, place.byteLength)
  }
  return { tags: places.map(({ name }) => name), startByte, byteLength, bytesBefore, longest }
}

/** The records of a run, one by one. */
export function* placesOfRun({ list, ...place }: RecordRun): Generator<RecordPlace> {
  for (const [i, tag] of list.tags.entries()) {
    yield { tag, startByte: list.startByte[i]!, byteLength: list.byteLength[i]!, ...place }
  }
}

/** Records as columns, with every file and tag listed once. */
export function columnsOf(places: readonly RecordPlace[]): JobRecords {
  const list = new RecordList(places.length)
  for (const place of places) list.add(place)
  return list.take().listed
}

/** Collects records as columns: a hundred thousand objects would survive the garbage collector's young generation. */
export class RecordList {
  readonly #files = new Interner()
  readonly #tags = new Interner()
  readonly #workers = new Interner()
  /** Made for the first record, with room for `capacity`. */
  #columns: Columns | null = null
  #capacity: number
  #isWhole = true
  readonly #combined: CombinedPlace[] = []
  /** The numbers of each list's tags. */
  readonly #tagsOf = new Map<ListedPlaces, Int32Array>()
  length = 0

  constructor(capacity = 1) {
    this.#capacity = capacity
  }

  add(place: RecordPlace): void {
    const i = this.length
    const columns = this.#more(1)
    columns.file[i] = this.#files.number(place.file)
    columns.tag[i] = this.#tags.number(place.tag)
    columns.startByte[i] = place.startByte
    columns.byteLength[i] = place.byteLength
    columns.step[i] = place.step
    columns.tornasole[i] = place.tornasole ? 1 : 0
    const { row, combined } = place
    if (row) {
      columns.worker[i] = this.#workers.number(row.worker)
      columns.mode[i] = MODES.indexOf(row.mode)
      columns.modeStep[i] = row.modeStep
    } else {
      columns.worker[i] = -1
      this.#isWhole = false
      if (combined) this.#combined.push({ at: i, row: combined })
    }
  }

  /** Adds a row without a record. */
  addRow(row: CombinedRow): void {
    this.#combined.push({ at: this.length, row })
    this.#isWhole = false
  }

  get combinedCount(): number {
    return this.#combined.length
  }

  /** Adds a range of the records of a run. */
  addRun({ list, file, step, tornasole, row }: RecordRun, from: number, end: number): void {
    const first = this.length
    const columns = this.#more(end - from)
    columns.tag.set(this.#numbersOf(list, from, end), first)
    columns.startByte.set(list.startByte.subarray(from, end), first)
    columns.byteLength.set(list.byteLength.subarray(from, end), first)
    columns.file.fill(this.#files.number(file), first, this.length)
    columns.step.fill(step, first, this.length)
    columns.tornasole.fill(tornasole ? 1 : 0, first, this.length)
    columns.worker.fill(this.#workers.number(row.worker), first, this.length)
    columns.mode.fill(MODES.indexOf(row.mode), first, this.length)
    columns.modeStep.fill(row.modeStep, first, this.length)
  }

  /** The numbers of a range of a list's tags. */
  #numbersOf(list: ListedPlaces, from: number, end: number): Int32Array {
    const known = this.#tagsOf.get(list)
    if (known !== undefined) return known.subarray(from, end)
    const numbers = new Int32Array(end - from)
    for (let i = from; i < end; i++) numbers[i - from] = this.#tags.number(list.tags[i]!)
    if (end - from === list.tags.length) this.#tagsOf.set(list, numbers)
    return numbers
  }

  /** The records that were added. The list must not be used afterwards. */
  take(): ListedRecords {
    const { length } = this
    const { file, tag, startByte, byteLength, step, tornasole, worker, mode, modeStep } =
      this.#columns === null
        ? emptyColumns(0)
        : length === this.#capacity
          ? this.#columns
          : resized(this.#columns, length)
    return {
      listed: {
        files: this.#files.names,
        tags: this.#tags.names,
        records: { file, tag, startByte, byteLength, step, tornasole },
      },
      rows: { workers: this.#workers.names, worker, mode, modeStep },
      combined: this.#combined,
      isWhole: this.#isWhole,
    }
  }

  /** The columns, with room for more records. */
  #more(count: number): Columns {
    this.length += count
    const columns = this.#columns
    if (this.length > this.#capacity) this.#capacity = Math.max(16, this.length, 2 * this.#capacity)
    else if (columns !== null) return columns
    this.#columns = columns === null ? emptyColumns(this.#capacity) : resized(columns, this.#capacity)
    return this.#columns
  }
}

type Columns = RecordColumns & Omit<RowColumns, 'workers'>

function emptyColumns(length: number): Columns {
  return {
    file: new Int32Array(length),
    tag: new Int32Array(length),
    startByte: new Float64Array(length),
    byteLength: new Float64Array(length),
    step: new Float64Array(length),
    tornasole: new Uint8Array(length),
    worker: new Int32Array(length),
    mode: new Uint8Array(length),
    modeStep: new Float64Array(length),
  }
}

/** A copy, truncated or with room for more. */
function resized(columns: Columns, length: number): Columns {
  const copy = emptyColumns(length)
  for (const name of Object.keys(copy) as (keyof Columns)[]) {
    const from = columns[name]
    copy[name].set(from.length > length ? from.subarray(0, length) : from)
  }
  return copy
}

/** Indices of records, by file and then by position. Records of a file are nearly always in order. */
export function inFileOrder({ file, startByte }: RecordColumns): Int32Array {
  // The start of each file's records, and the end of the last.
  const begins: number[] = [0]
  for (let i = 0; i < file.length; i++) {
    while (begins.length < file[i]! + 2) begins.push(0)
    begins[file[i]! + 1]!++
  }
  for (let i = 1; i < begins.length; i++) begins[i]! += begins[i - 1]!
  const order = new Int32Array(file.length)
  const ends = begins.slice()
  let isInOrder = true
  for (let i = 0; i < file.length; i++) {
    const at = ends[file[i]!]!++
    order[at] = i
    if (at > begins[file[i]!]! && startByte[order[at - 1]!]! > startByte[i]!) isInOrder = false
  }
  if (!isInOrder) order.sort((a, b) => file[a]! - file[b]! || startByte[a]! - startByte[b]! || a - b)
  return order
}

/** The shape of reads over several stores. A store that makes requests decides, since it has more to lose. */
export function requestShape(stores: readonly StoreSpec[], memory: number): ReadShape | null {
  const shape = stores.map(readShape).find(shape => shape !== null)
  if (!shape) return null
  return { ...shape, batchByteLength: Math.min(shape.batchByteLength, aheadByteLength(memory)) }
}

export interface CoalesceOptions {
  /** The shape of reads from a store that makes requests; null on the local disk. */
  readonly shape: ReadShape | null
  /** The longest valid record. A longer one is refused unread, and must not lengthen a batch. */
  readonly longest: number
  /** The largest number of records per batch. */
  readonly mostRecords?: number
  /** Returns true if a record may share a batch with the one before it. Default: always. */
  readonly mayJoin?: (at: number) => boolean
}

/**
 * Coalesces neighbours into batches. A record that begins before the batch starts a new one.
 * @param order indices of the records in the order of the files; null if they are in that order
 */
export function coalesce(
  { file, startByte, byteLength }: Pick<RecordColumns, 'file' | 'startByte' | 'byteLength'>,
  order: Int32Array | null,
  { shape, longest, mostRecords = BATCH_RECORDS, mayJoin }: CoalesceOptions,
): ReadBatch[] {
  const { gapByteLength, batchByteLength } = shape ?? LOCAL_SHAPE
  const batches: ReadBatch[] = []
  let open: { file: number; startByte: number; endByte: number; first: number; count: number } | undefined
  for (let at = 0; at < file.length; at++) {
    const record = order === null ? at : order[at]!
    const start = startByte[record]!
    const length = byteLength[record]!
    const end = start + (length > longest ? 0 : length)
    if (
      open !== undefined &&
      open.file === file[record] &&
      start >= open.startByte &&
      start - open.endByte <= gapByteLength &&
      Math.max(end, open.endByte) - open.startByte <= batchByteLength &&
      open.count < mostRecords &&
      (mayJoin === undefined || mayJoin(at))
    ) {
      open.endByte = Math.max(end, open.endByte)
      open.count++
      continue
    }
    open = { file: file[record]!, startByte: start, endByte: end, first: at, count: 1 }
    batches.push(open)
  }
  return batches
}
