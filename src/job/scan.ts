/** Records to be reduced to moments, and rows of them to be written down. */

import type { StoreSpec } from '../store/store.js'
import { MODES, type ReductionName } from '../types.js'
import {
  coalesce,
  columnsOf,
  inFileOrder,
  type ReadBatch,
  type RecordJob,
  type RecordPlace,
  requestShape,
} from './coalesce.js'
import { Interner } from './interner.js'
import {
  aheadByteLength,
  JOB_BYTES,
  JOB_RECORDS,
  PART_BYTES,
  partsAtOnce,
  RECORD_LIMIT,
  windowByteLength,
} from './memory.js'
import type { Descriptions, HistogramResult, PartChecksum, RecordReply } from './reply.js'

/** Reduce records to moments. */
export interface ScanJob extends RecordJob {
  readonly kind: 'scan'
  /** Indices into `records`, so that each batch is a run of them. */
  readonly order: Int32Array
  readonly batches: readonly ReadBatch[]
  /** Bytes of batches that may be in memory at once, where several are read at once. */
  readonly aheadByteLength: number
  /** What rows are written with; null where numbers are wanted. */
  readonly lines: LinesJob | null
  /** Whether to tell where the time goes. It takes a second walk over the records. */
  readonly timed: boolean
  /** How much the rows of moments have to know, by the core's numbers. */
  readonly known: number
}

/** How rows are to be written. */
export interface LinesRequest {
  readonly format: 'csv' | 'jsonl'
  readonly reductions: readonly ReductionName[]
  /** Whether a row without a reduction that was asked for is one with an error, and so not written here. */
  readonly strict: boolean
}

/** What a row tells beside its record: one entry a record in each column. */
export interface LinesJob extends LinesRequest {
  /** Whether it has to be known where each line ends, since some records are no rows of their own. */
  readonly apart: boolean
  readonly workers: readonly string[]
  /** Index into the workers; -1 where the record is no row of its own. */
  readonly worker: Int32Array
  /** Index into MODES. */
  readonly mode: Uint8Array
  readonly modeStep: Float64Array
}

/** Reduce a part of a record too large to be read at once, or several neighbouring ones. */
export interface PartJob extends RecordJob {
  readonly kind: 'part'
  /** As in ScanJob. */
  readonly known: number
  /** The first of them, and how many. */
  readonly part: number
  readonly partCount: number
  /** Of the record. */
  readonly parts: number
  /** Bytes of file that may be in memory at once. */
  readonly windowByteLength: number
  readonly aheadByteLength: number
}

/** What every job of a scan shares. */
export interface PlanContext {
  readonly store: StoreSpec
  readonly checkLevel: number
  /** Bytes a thread may use for file contents. */
  readonly memory: number
  /** How rows are to be written where they are made. Default: not at all. */
  readonly lines?: LinesRequest | undefined
  /** Whether jobs tell where their time goes. */
  readonly timed?: boolean | undefined
  /** How much the rows of moments have to know: see the engine's KnownMoments. */
  readonly known: number
}

export interface ScanReply extends RecordReply {
  readonly kind: 'scan'
  readonly histograms: readonly HistogramResult[]
  readonly described: Descriptions
  /** A row of moments a record; of no meaning where it failed. */
  readonly moments: Float64Array
  /** Rows as text, in order, if they were asked for so. */
  readonly lines: WrittenLines | null
}

/** Rows as UTF-8. */
export interface WrittenLines {
  readonly text: Uint8Array<ArrayBuffer>
  /** Bytes of each record's line, 0 for one that was not written; null where all were. Then the rest of the reply is empty. */
  readonly byteLengths: Uint32Array | null
}

export interface PartReply extends RecordReply {
  readonly kind: 'part'
  readonly described: Descriptions
  /** A row a part. */
  readonly moments: Float64Array
  /** One a part. */
  readonly checksums: readonly PartChecksum[]
}

/** A job, and the records it is about; `first` of them in the plan. */
export interface PlannedJob {
  readonly job: ScanJob | PartJob
  readonly places: readonly RecordPlace[]
  readonly first: number
  readonly count: number
}

/**
 * Cuts records, which are in the order of their rows, into jobs in the same order. Lazy: no more records are asked for than
 * the next job takes. At null, where a row without a record stands, a job ends.
 */
export function* planJobs(records: Iterable<RecordPlace | null>, context: PlanContext): Generator<PlannedJob> {
  const limit = windowByteLength(context.memory)
  let first = 0
  let open: RecordPlace[] = []
  let bytes = 0
  function* close(): Generator<PlannedJob> {
    const places = open
    if (places.length === 0) return
    const at = first
    first += places.length
    open = []
    bytes = 0
    yield { job: planScan(places, context), places, first: at, count: places.length }
  }
  for (const record of records) {
    if (record === null) {
      yield* close()
      continue
    }
    const { byteLength } = record
    if (byteLength > limit && byteLength <= RECORD_LIMIT) {
      yield* close()
      yield* planParts(record, first, context)
      first++
      continue
    }
    open.push(record)
    // A length that can't be is not read either.
    bytes += byteLength > limit ? 0 : byteLength
    if (open.length === JOB_RECORDS || bytes >= JOB_BYTES) yield* close()
  }
  yield* close()
}

function* planParts(record: RecordPlace, first: number, context: PlanContext): Generator<PlannedJob> {
  const { store, checkLevel, known } = context
  const parts = Math.ceil(record.byteLength / PART_BYTES)
  // On disk one a job, so that threads can share them.
  const atOnce = requestShape([store], context.memory) === null ? 1 : partsAtOnce(context.memory)
  for (let part = 0; part < parts; part += atOnce) {
    yield {
      job: {
        kind: 'part',
        known,
        store,
        checkLevel,
        ...columnsOf([record]),
        part,
        partCount: Math.min(atOnce, parts - part),
        parts,
        windowByteLength: windowByteLength(context.memory),
        aheadByteLength: aheadByteLength(context.memory),
      },
      places: [record],
      first,
      count: 1,
    }
  }
}

/** One job of records that can be read whole. */
export function planScan(
  places: readonly RecordPlace[],
  { store, checkLevel, memory, lines, timed = false, known }: PlanContext,
): ScanJob {
  const { files, tags, records } = columnsOf(places)
  const order = inFileOrder(records)
  const batches = coalesce(records, order, { shape: requestShape([store], memory), longest: windowByteLength(memory) })
  return {
    kind: 'scan',
    store,
    checkLevel,
    files,
    tags,
    records,
    order,
    batches,
    aheadByteLength: aheadByteLength(memory),
    lines: lines ? planLines(places, lines) : null,
    timed,
    known,
  }
}

function planLines(places: readonly RecordPlace[], request: LinesRequest): LinesJob {
  const workers = new Interner()
  const count = places.length
  const worker = new Int32Array(count).fill(-1)
  const mode = new Uint8Array(count)
  const modeStep = new Float64Array(count)
  places.forEach(({ row }, i) => {
    if (!row) return
    worker[i] = workers.number(row.worker)
    mode[i] = MODES.indexOf(row.mode)
    modeStep[i] = row.modeStep
  })
  return { ...request, apart: worker.includes(-1), workers: workers.names, worker, mode, modeStep }
}
