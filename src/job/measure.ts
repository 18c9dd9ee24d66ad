/** Moments of records, and what else is asked of their elements and of those of pairs of them. */

import type { StoreSpec } from '../store/store.js'
import type { JobRecords, ReadBatch, RecordPlace } from './coalesce.js'
import type { Descriptions, HistogramResult, PartChecksum, RecordReply } from './reply.js'
import type { RawValue } from './value.js'

/** What is asked of elements beside their moments. Plain numbers, since it crosses a thread. */
export interface Task {
  readonly kind: 'value' | 'allclose' | 'change' | 'activity' | 'count' | 'channels' | 'percentiles'
  /** The record it is about; of two that are compared, the first. */
  readonly first: number
  /** The record it is compared with; -1 where it is about one only. */
  readonly second: number
  readonly numbers: readonly number[]
}

/** Tasks as they cross a thread. What is asked is told once, however many records it is asked of. */
export interface TaskColumns {
  readonly asked: readonly Pick<Task, 'kind' | 'numbers'>[]
  /** Of each task an index into `asked`, and its records, of the job. */
  readonly what: Int32Array
  readonly first: Int32Array
  readonly second: Int32Array
}

/** A record to measure. */
export interface MeasuredPlace extends RecordPlace {
  /** Index into the stores. */
  readonly store: number
  /** Records of one tensor, over the steps, share a number. */
  readonly series: number
}

/** Of records in any number of trials, in the order they are read. */
export interface MeasureJob extends JobRecords {
  readonly kind: 'measure'
  /** As in ScanJob. */
  readonly known: number
  readonly stores: readonly StoreSpec[]
  /** The store of each file. */
  readonly storeOf: Int32Array
  readonly checkLevel: number
  readonly tasks: TaskColumns
  /** Empty where records are too large to be read at once. */
  readonly batches: readonly ReadBatch[]
  /** Bytes of batches that may be in memory at once, where several are read at once. */
  readonly aheadByteLength: number
  /** Which part of each record, of how many; 0 of 1: all of it. */
  readonly part: number
  readonly parts: number
  readonly windowByteLength: number
}

export interface MeasureReply extends RecordReply {
  readonly kind: 'measure'
  readonly histograms: readonly HistogramResult[]
  readonly described: Descriptions
  /** A row of moments a record, of this part; of no meaning where it failed. */
  readonly moments: Float64Array
  /** One a record, where the job is about parts. */
  readonly checksums: readonly PartChecksum[]
  /** Two numbers a task; the second is NaN where there is no such answer. */
  readonly answers: Float64Array
  /** Answers of any length. */
  readonly lists: readonly TaskNumbers[]
  readonly values: readonly TaskValue[]
}

export interface TaskNumbers {
  readonly task: number
  readonly numbers: readonly number[]
}

export interface TaskValue {
  readonly task: number
  readonly value: RawValue
}
