/** Moments of records, and what else is asked about the elements of a record or of two. */

import type { DigestName } from '../../base/types.js'
import type { ElementStatistic } from '../../core/statistics/statistic.js'
import type { StoreSpec } from '../../storage/store.js'
import type { JobRecords, ReadBatch, RecordPlace } from './plan/coalesce.js'
import type { Descriptions, HistogramResult, PartChecksum, RecordReply } from './reply.js'
import type { RawValue } from './value.js'

/** A question about elements beyond their moments. Plain numbers, since it crosses threads. */
export interface Task {
  readonly kind:
    | 'value'
    | 'allclose'
    | 'change'
    | 'squares'
    | 'rows'
    | 'difference'
    | 'activity'
    | 'count'
    | 'channels'
    | 'percentiles'
    | Exclude<ElementStatistic['kind'], DigestName>
  /** The record it is about; if two are compared, the first. */
  readonly first: number
  /** The record it is compared with; -1 if there is none. */
  readonly second: number
  readonly numbers: readonly number[]
}

/** In the place of an axis of channels: the one that the shape of images tells or, where it leaves that open, the second or the last. */
export const ChannelLayout = { first: -1, last: -2 } as const

/** Tasks as they cross a thread. A question is listed once, however many records it is asked about. */
export interface TaskColumns {
  readonly asked: readonly Pick<Task, 'kind' | 'numbers'>[]
  /** The index of each task in `asked`, and the indices of its records in the job. */
  readonly what: Int32Array
  readonly first: Int32Array
  readonly second: Int32Array
}

/** A record to measure. */
export interface MeasuredPlace extends RecordPlace {
  /** Index into the stores. */
  readonly store: number
}

/** Measure records of any number of trials, in the order they are read. */
export interface MeasureJob extends JobRecords {
  readonly kind: 'measure'
  /** The moments that rows must have, as in ScanJob. */
  readonly known: number
  readonly stores: readonly StoreSpec[]
  /** The store of each file. */
  readonly storeOf: Int32Array
  readonly checkLevel: number
  readonly tasks: TaskColumns
  /** Empty if the records are too large to be read at once. */
  readonly batches: readonly ReadBatch[]
  /** Bytes of batches that may be in memory at once, if several are read at once. */
  readonly aheadByteLength: number
  /** The part of each record, and the number of parts; 0 of 1 is the whole record. */
  readonly part: number
  readonly parts: number
  readonly windowByteLength: number
}

export interface MeasureReply extends RecordReply {
  readonly kind: 'measure'
  readonly histograms: readonly HistogramResult[]
  readonly described: Descriptions
  /** One row of moments per record, for this part; undefined for a record that failed. */
  readonly moments: Float64Array
  /** One per record, if the job is about parts. */
  readonly checksums: readonly PartChecksum[]
  /** Two numbers per task; the second is NaN if the answer has none. */
  readonly answers: Float64Array
  readonly lists: TaskLists
  readonly values: readonly TaskValue[]
}

/** Answers of any length, one after the other: as arrays they were copied to the calling thread number by number. */
export interface TaskLists {
  readonly tasks: Int32Array
  /** The end of each task's numbers. */
  readonly ends: Int32Array
  readonly numbers: Float64Array
}

export interface TaskValue {
  readonly task: number
  readonly value: RawValue
}
