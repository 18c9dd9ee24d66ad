/** Records to be reduced to moments, and rows to be written from them. */

import type { ErrorData } from '../../base/errors.js'
import { countBelow } from '../../base/sorted.js'
import { MODES, type MomentName, type StatisticName } from '../../base/types.js'
import { answerLength, type ElementStatistic } from '../../core/statistics/statistic.js'
import type { StoreSpec } from '../../storage/store.js'
import {
  type CombinedRow,
  coalesce,
  inFileOrder,
  type JobRecords,
  type ListedRecords,
  placesOfRun,
  type ReadBatch,
  type RecordJob,
  RecordList,
  type RecordPlace,
  type RecordRun,
  type RowColumns,
  requestShape,
} from './plan/coalesce.js'
import {
  aheadByteLength,
  jobByteLength,
  PART_BYTES,
  partsAtOnce,
  recordLimit,
  recordsOfJob,
  windowByteLength,
} from './plan/memory.js'
import type { Descriptions, HistogramResult, PartChecksum, RecordReply } from './reply.js'

/** Reduce records to moments. */
export interface ScanJob extends RecordJob {
  readonly kind: 'scan'
  /** Indices into `records`, so that each batch is a run of them. */
  readonly order: Int32Array
  readonly batches: readonly ReadBatch[]
  /** Bytes of batches that may be in memory at once, if several are read at once. */
  readonly aheadByteLength: number
  /** The format of rows as text; null for numbers. */
  readonly lines: LinesJob | null
  /** The columns to make of rows; null if moments alone are wanted. */
  readonly columns: ColumnsRequest | null
  /** True to report the time by activity. This takes a second walk over the records. */
  readonly timed: boolean
  /** True to report the time at which each record was written. */
  readonly wallTimes: boolean
  /** The moments that rows must have, by the core's numbers. */
  readonly known: number
  /** The statistics that need the elements. */
  readonly statistics: readonly ElementStatistic[]
  /** True to sketch the distribution of the elements. */
  readonly sketched: boolean
  readonly windowByteLength: number
}

/** The format of rows as text. */
export interface LinesRequest {
  readonly format: 'csv' | 'jsonl'
  readonly reductions: readonly StatisticName[]
  /** The text of the column `trial`; undefined for none. */
  readonly trial: string | undefined
  /** True if a missing reduction makes a row an error, which is not written here. */
  readonly strict: boolean
}

/** The columns to make of rows. */
export interface ColumnsRequest {
  readonly names: readonly MomentName[]
  /** True for columns as Parquet pages, where every row has all numbers. */
  readonly packed: boolean
  /** True to reply moments as well. Otherwise only rows that lack numbers, have others or are not finite have them. */
  readonly moments: boolean
}

/** The format of rows as text, and the places of the rows. */
export interface LinesJob extends LinesRequest, RowColumns {
  /** True if each record has a row of its own. */
  readonly isWhole: boolean
}

/** Reduce one part, or several neighbouring ones, of a record too large to be read at once. */
export interface PartJob extends RecordJob {
  readonly kind: 'part'
  /** The moments that rows must have, as in ScanJob. */
  readonly known: number
  /** The statistics that need the elements; if there are any but crc32c, the job is about all parts. */
  readonly statistics: readonly ElementStatistic[]
  readonly sketched: boolean
  readonly wallTimes: boolean
  /** The first part, and the number of parts. */
  readonly part: number
  readonly partCount: number
  /** The parts that the record has. */
  readonly parts: number
  /** Bytes of file that may be in memory at once. */
  readonly windowByteLength: number
  readonly aheadByteLength: number
}

/** The part that all jobs of a scan share. */
export interface PlanContext {
  readonly store: StoreSpec
  readonly checkLevel: number
  /** Bytes a thread may use for file contents. */
  readonly memory: number
  /** The format in which threads write rows. Default: they don't. */
  readonly lines?: LinesRequest | undefined
  /** The amount of all jobs, and the number of threads. Default: unknown, which makes short jobs. */
  readonly work?: { readonly byteLength: number; readonly threads: number } | undefined
  /** The columns that threads make of rows. Default: none. */
  readonly columns?: ColumnsRequest | undefined
  /** True if jobs report the time by activity. */
  readonly timed?: boolean | undefined
  /** True if jobs report when each record was written. Default: false. */
  readonly wallTimes?: boolean | undefined
  /** The moments that rows must have, as KnownMoments. */
  readonly known: number
  /** The statistics that need the elements. Default: none. */
  readonly statistics?: readonly ElementStatistic[] | undefined
  /** True to sketch the distribution of the elements. Default: false. */
  readonly sketched?: boolean | undefined
}

export interface ScanReply extends RecordReply {
  readonly kind: 'scan'
  readonly histograms: readonly HistogramResult[]
  readonly described: Descriptions
  /** One row of moments per record, of no meaning for a record that failed, and for those that columns tell all about; there may be none. */
  readonly moments: Float64Array
  /**
   * The answers to all statistics for each record (see `answersLength`); without meaning if the record failed or has no order.
   */
  readonly answers: Float64Array
  readonly sketches: Sketches
  /** Rows as text, in order, if they were asked for. */
  readonly lines: WrittenLines | null
  /** The columns, if asked for and if moments answer everything. NaN stands where a row lacks a number or it is complex. */
  readonly columns: readonly MomentColumn[] | null
  /** Seconds since 1970, for each record; none if they were not asked for. */
  readonly wallTimes: Float64Array
}

/** A reduction of every record. */
export type MomentColumn = { readonly numbers: Float64Array<ArrayBuffer> } | { readonly packed: Uint8Array }

/** Rows as UTF-8. */
export interface WrittenLines {
  readonly text: Uint8Array<ArrayBuffer>
  /** Bytes of each record's line, 0 for one that was not written; null if all were. Then the rest of the reply is empty. */
  readonly byteLengths: Uint32Array | null
}

/** The counts of sketches: pairs of a bucket and its count. */
export interface Sketches {
  /** The pairs, record by record. */
  readonly pairs: Float64Array
  /** The end of each record's numbers; empty if nothing was sketched. */
  readonly ends: Float64Array
}

export const NO_SKETCHES: Sketches = { pairs: new Float64Array(0), ends: new Float64Array(0) }

/** A reply about records that all failed. */
export function failedReply(errors: readonly ErrorData[]): ScanReply {
  const none = new Float64Array(0)
  const count = errors.length
  return {
    kind: 'scan',
    histograms: [],
    described: { dtypes: new Uint8Array(count), ranks: new Uint8Array(count), dims: none },
    moments: none,
    answers: none,
    sketches: NO_SKETCHES,
    failures: errors.map((error, record) => ({ record, error })),
    lines: null,
    columns: null,
    wallTimes: none,
    stats: { records: count, readBytes: 0, reads: 0 },
  }
}

export interface PartReply extends RecordReply {
  readonly kind: 'part'
  readonly described: Descriptions
  /** One row per part. */
  readonly moments: Float64Array
  /** A crc32c is that of the elements in these parts. */
  readonly answers: Float64Array
  /** The bytes of elements in these parts. */
  readonly elementByteLength: number
  readonly sketches: Sketches
  /** One per part. */
  readonly checksums: readonly PartChecksum[]
  /** The wall time of the record; undefined if it was not asked for. */
  readonly wallTime: number | undefined
}

/** The number of answers to all statistics of a record. */
export function answersLength(statistics: readonly ElementStatistic[]): number {
  return statistics.reduce((length, statistic) => length + answerLength(statistic), 0)
}

/** A job, and the rows that are made of its records. */
export interface PlannedJob extends Omit<ListedRecords, 'listed'> {
  readonly job: ScanJob | PartJob
  /** The number of records. */
  readonly count: number
}

/**
 * Cuts records, which are in the order of their rows, into jobs in the same order. Lazy: takes no more records than the
 * next job needs. Rows without records are jobs of their own, which nobody has to run.
 */
export function* planJobs(
  records: Iterable<RecordPlace | RecordRun | CombinedRow>,
  context: PlanContext,
): Generator<PlannedJob> {
  const limit = windowByteLength(context.memory)
  const most = recordLimit(context.store)
  const mostRecords = recordsOfJob(answersLength(context.statistics ?? []))
  const { byteLength: total, threads } = context.work ?? { byteLength: 0, threads: 0 }
  let planned = 0
  let open = new RecordList()
  let bytes = 0
  const room = () => jobByteLength(total - planned, threads, planned) - bytes
  /** The job of what was added since the last one; none if there is nothing. */
  const close = (): readonly PlannedJob[] => {
    if (open.length + open.combinedCount === 0) return []
    const count = open.length
    const { listed, ...rows } = open.take()
    open = new RecordList(count)
    planned += bytes
    bytes = 0
    return [{ job: scanJob(listed, rows.rows, rows.isWhole, context), ...rows, count }]
  }
  /** The jobs that a record completes. */
  const add = (record: RecordPlace): readonly PlannedJob[] => {
    const { byteLength } = record
    if (byteLength > limit && byteLength <= most) {
      const before = close()
      planned += byteLength
      return [...before, ...planParts(record, context)]
    }
    open.add(record)
    // An impossible length is not read either.
    bytes += byteLength > limit ? 0 : byteLength
    return open.length === mostRecords || room() <= 0 ? close() : []
  }
  for (const record of records) {
    const hasRecord = !('recordCount' in record)
    if (hasRecord ? open.length === 0 : open.length > 0) yield* close()
    if (!hasRecord) {
      open.addRow(record)
      if (open.combinedCount === mostRecords) yield* close()
    } else if (!('list' in record)) yield* add(record)
    else if (record.list.longest > limit) for (const place of placesOfRun(record)) yield* add(place)
    else {
      const { bytesBefore } = record.list
      const count = bytesBefore.length - 1
      for (let from = 0, end = 0; from < count; from = end) {
        const full = bytesBefore[from]! + room()
        end = Math.min(count, from + mostRecords - open.length)
        if (bytesBefore[end]! >= full) end = countBelow(end, i => bytesBefore[i]! < full)
        open.addRun(record, from, end)
        bytes += bytesBefore[end]! - bytesBefore[from]!
        if (open.length === mostRecords || room() <= 0) yield* close()
      }
    }
  }
  yield* close()
}

/** The places of the records of a planned job, from one of them on. */
export function placesOf({ job, rows, combined }: PlannedJob, first = 0, end = job.records.file.length): RecordPlace[] {
  const { files, tags, records } = job
  const combinedRows = new Map(combined.map(({ at, row }) => [at, row]))
  return Array.from(records.file.subarray(first, end), (file, i) => {
    const at = first + i
    const worker = rows.workers[rows.worker[at]!]
    const row = combinedRows.get(at)
    return {
      file: files[file]!,
      tag: tags[records.tag[at]!]!,
      startByte: records.startByte[at]!,
      byteLength: records.byteLength[at]!,
      step: records.step[at]!,
      tornasole: records.tornasole[at] === 1,
      row: worker === undefined ? null : { worker, mode: MODES[rows.mode[at]!]!, modeStep: rows.modeStep[at]! },
      ...(row && { combined: row }),
    }
  })
}

function* planParts(record: RecordPlace, context: PlanContext): Generator<PlannedJob> {
  const { store, checkLevel, known, statistics = [], sketched = false, wallTimes = false } = context
  const parts = Math.ceil(record.byteLength / PART_BYTES)
  // On disk one per job, so that threads can share them. Statistics are of all elements, and only CRCs can be combined.
  const shared = requestShape([store], context.memory) === null ? 1 : partsAtOnce(context.memory)
  const atOnce = statistics.every(({ kind }) => kind === 'crc32c') ? shared : parts
  const list = new RecordList(1)
  list.add(record)
  const { listed, ...rows } = list.take()
  for (let part = 0; part < parts; part += atOnce) {
    yield {
      job: {
        kind: 'part',
        known,
        statistics,
        sketched,
        wallTimes,
        store,
        checkLevel,
        ...listed,
        part,
        partCount: Math.min(atOnce, parts - part),
        parts,
        windowByteLength: windowByteLength(context.memory),
        aheadByteLength: aheadByteLength(context.memory),
      },
      ...rows,
      count: 1,
    }
  }
}

function scanJob(
  { files, tags, records }: JobRecords,
  rows: RowColumns,
  isWhole: boolean,
  context: PlanContext,
): ScanJob {
  const { store, checkLevel, memory, lines, columns, known } = context
  const { timed = false, wallTimes = false, statistics = [], sketched = false } = context
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
    lines: lines ? { ...lines, ...rows, isWhole } : null,
    columns: columns && isWhole ? columns : null,
    timed,
    wallTimes,
    known,
    statistics,
    sketched,
    windowByteLength: windowByteLength(memory),
  }
}
