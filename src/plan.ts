/**
 * From the places of records to jobs of coalesced byte ranges. Pure: no bytes are read here.
 *
 * The figures are from the project's performance study: file and checksum are read from the L2 cache when what is read
 * at once stays within about 1 MiB, a job should carry several milliseconds of work, since a thread's round trip takes
 * about 50 µs, and a gap of 64 KiB costs less to read over than a second read.
 */

import type { StoreSpec } from './store/store.js'

/** Records longer than this are cut into parts of about this size, one job each, so that threads can share them. */
export const PART_BYTES = 16 << 20
/** A batch is closed when it is this long; a single longer record is a batch of its own. */
const BATCH_BYTES = 1 << 20
const BATCH_RECORDS = 4096
/** Neighbours further apart than this are read separately. */
const GAP_BYTES = 64 << 10
const JOB_BYTES = 8 << 20
const JOB_RECORDS = 16384
/** No record is longer: a protobuf message holds less than 2 GiB, and the core counts in 32 bits. */
export const RECORD_LIMIT = 0xffffffff

/** Smallest memory a thread can work in. */
export const MIN_MEMORY = 4 << 20
export const DEFAULT_MEMORY = 64 << 20

/** Records to read, in the order of their rows; one entry a record in each column. */
export interface RecordColumns {
  /** Index into the job's files. */
  readonly file: Int32Array
  /** Index into the job's tags. */
  readonly tag: Int32Array
  readonly startByte: Float64Array
  readonly byteLength: Float64Array
  /** The global step. */
  readonly step: Float64Array
  /** 1 where the trial is Tornasole's, which called float16 int32. */
  readonly tornasole: Uint8Array
}

/** Neighbouring records that are read at once: `order[first .. first + count)` of the job. */
export interface ReadBatch {
  readonly file: number
  readonly startByte: number
  readonly endByte: number
  readonly first: number
  readonly count: number
}

interface RecordJob {
  readonly store: StoreSpec
  readonly checkLevel: number
  readonly files: readonly string[]
  readonly tags: readonly string[]
  readonly records: RecordColumns
}

/** Reduce records to moments. */
export interface ScanJob extends RecordJob {
  readonly kind: 'scan'
  /** Indices into `records`, so that each batch is a run of them. */
  readonly order: Int32Array
  readonly batches: readonly ReadBatch[]
}

/** Reduce one part of a record too large to be read at once. */
export interface PartJob extends RecordJob {
  readonly kind: 'part'
  readonly part: number
  readonly parts: number
  /** Bytes of file that may be in memory at once. */
  readonly windowByteLength: number
}

/** Tell dtype and shape of records, reading no more of them than that takes. */
export interface DescribeJob extends RecordJob {
  readonly kind: 'describe'
  readonly windowByteLength: number
}

/** Hand out the values of records. */
export interface ValueJob extends RecordJob {
  readonly kind: 'value'
  readonly windowByteLength: number
}

/** What every job of a scan shares. */
export interface PlanContext {
  readonly store: StoreSpec
  readonly checkLevel: number
  /** Bytes a thread may use for file contents. */
  readonly memory: number
}

/** A record to read: where it lies and what it must be. */
export interface RecordPlace {
  readonly file: string
  readonly tag: string
  readonly startByte: number
  readonly byteLength: number
  readonly step: number
  /** Whether the trial is Tornasole's, which called float16 int32. */
  readonly tornasole?: boolean
}

/** A job, and which of the plan's records it is about: `records[first .. first + count)`. */
export interface PlannedJob {
  readonly job: ScanJob | PartJob
  readonly first: number
  readonly count: number
}

/** The longest record that is read into memory at once. */
export function wholeRecordLimit(memory: number): number {
  return Math.min(PART_BYTES, memory >> 1)
}

/**
 * The most that is held of a record besides the elements that stream. No less than a whole record that a scan reads at
 * once, so that whatever can be scanned can be described and handed out, too.
 */
export function windowByteLength(memory: number): number {
  return wholeRecordLimit(memory)
}

/** Cuts records, which are in the order of their rows, into jobs in the same order. Lazy: a job is built when asked for. */
export function* planJobs(records: readonly RecordPlace[], context: PlanContext): Generator<PlannedJob> {
  const limit = wholeRecordLimit(context.memory)
  let first = 0
  while (first < records.length) {
    const head = records[first]!
    if (head.byteLength > limit && head.byteLength <= RECORD_LIMIT) {
      yield* planParts(head, first, context)
      first++
      continue
    }
    let end = first
    let bytes = 0
    while (end < records.length && end - first < JOB_RECORDS && bytes < JOB_BYTES) {
      const { byteLength } = records[end]!
      if (byteLength > limit && byteLength <= RECORD_LIMIT) break
      // A length that can't be is not read either.
      bytes += byteLength > limit ? 0 : byteLength
      end++
    }
    yield { job: planScan(records.slice(first, end), context), first, count: end - first }
    first = end
  }
}

function* planParts(record: RecordPlace, first: number, context: PlanContext): Generator<PlannedJob> {
  const parts = Math.ceil(record.byteLength / PART_BYTES)
  for (let part = 0; part < parts; part++) {
    const { files, tags, records } = columnsOf([record])
    const { store, checkLevel } = context
    yield {
      job: {
        kind: 'part',
        store,
        checkLevel,
        files,
        tags,
        records,
        part,
        parts,
        windowByteLength: windowByteLength(context.memory),
      },
      first,
      count: 1,
    }
  }
}

function planScan(places: readonly RecordPlace[], { store, checkLevel, memory }: PlanContext): ScanJob {
  const { files, tags, records } = columnsOf(places)
  const order = Int32Array.from(places.keys())
  // Index order is nearly always file order, which the sort then leaves as it is.
  order.sort((a, b) => records.file[a]! - records.file[b]! || records.startByte[a]! - records.startByte[b]! || a - b)
  const batches = planBatches(records, order, wholeRecordLimit(memory))
  return { kind: 'scan', store, checkLevel, files, tags, records, order, batches }
}

function planBatches(records: RecordColumns, order: Int32Array, limit: number): ReadBatch[] {
  const batches: ReadBatch[] = []
  let open: { file: number; startByte: number; endByte: number; first: number; count: number } | undefined
  for (let i = 0; i < order.length; i++) {
    const record = order[i]!
    const file = records.file[record]!
    const startByte = records.startByte[record]!
    // A length that can't be (the job refuses the record unread) must not make the batch longer.
    const byteLength = records.byteLength[record]!
    const endByte = startByte + (byteLength > limit ? 0 : byteLength)
    if (
      open !== undefined &&
      open.file === file &&
      startByte - open.endByte <= GAP_BYTES &&
      Math.max(endByte, open.endByte) - open.startByte <= BATCH_BYTES &&
      open.count < BATCH_RECORDS
    ) {
      open.endByte = Math.max(endByte, open.endByte)
      open.count++
      continue
    }
    open = { file, startByte, endByte, first: i, count: 1 }
    batches.push(open)
  }
  return batches
}

/** Records as columns, with every file and tag named once. */
export function columnsOf(places: readonly RecordPlace[]): {
  readonly files: string[]
  readonly tags: string[]
  readonly records: RecordColumns
} {
  const files = new Interner()
  const tags = new Interner()
  const count = places.length
  const records: RecordColumns = {
    file: new Int32Array(count),
    tag: new Int32Array(count),
    startByte: new Float64Array(count),
    byteLength: new Float64Array(count),
    step: new Float64Array(count),
    tornasole: new Uint8Array(count),
  }
  places.forEach((place, i) => {
    records.file[i] = files.number(place.file)
    records.tag[i] = tags.number(place.tag)
    records.startByte[i] = place.startByte
    records.byteLength[i] = place.byteLength
    records.step[i] = place.step
    records.tornasole[i] = place.tornasole ? 1 : 0
  })
  return { files: files.names, tags: tags.names, records }
}

/** Numbers names in the order they first come. */
export class Interner {
  readonly names: string[] = []
  readonly #numbers = new Map<string, number>()

  number(name: string): number {
    let number = this.#numbers.get(name)
    if (number === undefined) {
      number = this.names.length
      this.names.push(name)
      this.#numbers.set(name, number)
    }
    return number
  }
}
