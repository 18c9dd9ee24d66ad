/** Jobs that measure records: moments, and other questions about the elements of one record or two. */

import type { DigestName } from '../../base/types.js'
import type { ElementStatistic } from '../../core/statistics/statistic.js'
import type { StoreSpec } from '../../storage/store.js'
import type { JobRecords, ReadBatch, RecordPlace } from './plan/coalesce.js'
import type { Descriptions, HistogramResult, PartChecksum, RecordReply } from './reply.js'
import type { RawValue } from './value-job.js'

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
  /** The record; the first of two that are compared. */
  readonly first: number
  /** The record to compare with; -1 for none. */
  readonly second: number
  readonly numbers: readonly number[]
}

/** Special values for the axis of channels: the axis that the shape of images suggests or, if it is ambiguous, the second or the last. */
export const ChannelLayout = { first: -1, last: -2 } as const

/** Tasks in transferable form. A question is listed once, however many records it concerns. */
export interface TaskColumns {
  readonly requests: readonly Pick<Task, 'kind' | 'numbers'>[]
  /** The index of each task in `requests`. */
  readonly what: Int32Array
  /** The index of its record in the job. */
  readonly first: Int32Array
  /** The record to compare with; -1 for none. */
  readonly second: Int32Array
}

/** A record to measure. */
export interface MeasuredPlace extends RecordPlace {
  /** The index of the store. */
  readonly store: number
}

/** A job that measures records of any number of trials, in the order of reading. */
export interface MeasureJob extends JobRecords {
  readonly kind: 'measure'
  /** The moments that rows must have, as in ScanJob. */
  readonly known: number
  readonly stores: readonly StoreSpec[]
  /** The store of each file. */
  readonly storeOf: Int32Array
  readonly checkLevel: number
  readonly tasks: TaskColumns
  /** The batches; empty if the records are too large to be read at once. */
  readonly batches: readonly ReadBatch[]
  /** The number of bytes of batches that may be in memory at once. */
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
  /** A row of moments per record, for this part; undefined for a failed record. */
  readonly moments: Float64Array
  /** A checksum per record, if the job reads parts. */
  readonly checksums: readonly PartChecksum[]
  /** Two numbers per task; the second is NaN for an answer of one. */
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
