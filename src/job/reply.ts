/**
 * What the replies to all jobs have in common. Plain data, since it crosses a thread; numbers in columns, whose buffers
 * are moved.
 */

import type { ErrorData } from '../errors.js'
import type { Histogram } from '../format/histogram.js'
import type { Traffic } from '../store/store.js'

/** What a job cost. */
export interface JobStats {
  readonly records: number
  readonly readBytes: number
  readonly reads: number
  /** Where the time went, if that was asked for. */
  readonly spent?: ThreadTimes | undefined
}

/** Milliseconds of one thread. */
export interface ThreadTimes {
  readonly readMs: number
  /** Framing, checksums and the walk. */
  readonly decodeMs: number
  readonly reduceMs: number
  /** Rows as text, if they were asked for, and the rest of the job. */
  readonly writeMs: number
}

/** A record that could not be read: its index in the job's columns, and why. */
export interface RecordFailure {
  readonly record: number
  readonly error: ErrorData
}

export interface AnyReply {
  /** The requests that the job made, if its stores make requests. */
  readonly traffic?: Traffic
}

export interface RecordReply extends AnyReply {
  readonly stats: JobStats
  readonly failures: readonly RecordFailure[]
}

/** Dtypes (TensorFlow's numbers; 0 if the record failed) and shapes of a job's records. */
export interface Descriptions {
  readonly dtypes: Uint8Array
  readonly ranks: Uint8Array
  /** The dimensions of all records, one after the other. */
  readonly dims: Float64Array
}

/** The shape of each described record. */
export function shapesOf({ ranks, dims }: Descriptions): number[][] {
  let at = 0
  return Array.from(ranks, rank => {
    const shape = Array.from(dims.subarray(at, at + rank))
    at += rank
    return shape
  })
}

/** What a TensorBoard histogram says, instead of moments. */
export interface HistogramResult {
  readonly record: number
  readonly shape: readonly number[]
  readonly reductions: Histogram['reductions']
  readonly wallTime: number
}

/**
 * CRC-32C of a run of a payload's bytes (check level `full` only). `storedCrc` is that of the record's footer, in the
 * last part only.
 */
export interface PartChecksum {
  readonly crc: number
  readonly crcByteLength: number
  readonly storedCrc: number
}
