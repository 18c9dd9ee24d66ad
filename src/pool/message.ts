/** All that crosses a thread: jobs down, replies back. Plain data; numbers in columns, whose buffers are moved. */

import type { ErrorData } from '../errors.js'
import type { Histogram } from '../format/histogram.js'
import type { IndexFile } from '../format/index-file.js'
import type { DescribeJob, MeasureJob, PartJob, ScanJob, ValueJob } from '../plan.js'
import type { StoreSpec, Traffic } from '../store/store.js'
import type { DType } from '../types.js'

/** Read and parse index files. */
export interface IndexJob {
  readonly kind: 'index'
  readonly store: StoreSpec
  readonly paths: readonly string[]
}

/** Find out what event files hold that no index file tells of. */
export interface EventsJob {
  readonly kind: 'events'
  readonly store: StoreSpec
  /** From where on: the end of the last whole record that is known. */
  readonly files: readonly { readonly path: string; readonly startByte: number }[]
}

export type Job = ScanJob | PartJob | MeasureJob | DescribeJob | ValueJob | IndexJob | EventsJob

/** What a job has cost. */
export interface JobStats {
  readonly records: number
  readonly readBytes: number
  readonly reads: number
  /** Where the time went, if that was asked for. */
  readonly spent?: Spent | undefined
}

/** Milliseconds of one thread. */
export interface Spent {
  readonly readMs: number
  /** Framing, checksums and the walk. */
  readonly decodeMs: number
  readonly reduceMs: number
  /** Rows as text, where they were asked for so, and the rest of the job. */
  readonly writeMs: number
}

/** One record that could not be read: its place in the job's columns, and why. */
export interface RecordFailure {
  readonly record: number
  readonly error: ErrorData
}

/** What every reply tells. */
interface Told {
  /** The requests that the job made, where its stores make requests. */
  readonly traffic?: Traffic
}

interface RecordReply extends Told {
  readonly stats: JobStats
  readonly failures: readonly RecordFailure[]
}

/** Dtypes (TensorFlow's numbers; 0 where the record failed) and shapes of a job's records. */
export interface Descriptions {
  readonly dtypes: Uint8Array
  readonly ranks: Uint8Array
  /** The dimensions of all records, one after the other. */
  readonly dims: Float64Array
}

/** What a histogram of TensorBoard tells, in place of moments. */
export interface HistogramResult {
  readonly record: number
  readonly shape: readonly number[]
  readonly reductions: Histogram['reductions']
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

/** CRC-32C of a run of a payload's bytes (check level full only). `storedCrc` is what the record's footer says, in the last part only. */
export interface PartChecksum {
  readonly crc: number
  readonly crcByteLength: number
  readonly storedCrc: number
}

export interface PartReply extends RecordReply, PartChecksum {
  readonly kind: 'part'
  readonly described: Descriptions
  readonly moments: Float64Array
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
  readonly lists: readonly NumberList[]
  /** `record` is the number of the task here. */
  readonly values: readonly RawValue[]
}

/** Numbers that answer a task. */
export interface NumberList {
  readonly task: number
  readonly numbers: readonly number[]
}

export interface DescribeReply extends RecordReply {
  readonly kind: 'describe'
  readonly described: Descriptions
}

/** A tensor's value as it crosses a thread. */
export interface RawValue {
  readonly record: number
  readonly dtype: DType
  readonly shape: readonly number[]
  /** Little-endian elements in C order; empty for strings. */
  readonly bytes: Uint8Array<ArrayBuffer>
  /** float16 and bfloat16 only: the elements as float32. */
  readonly widened: Float32Array<ArrayBuffer> | null
  /** Strings only. */
  readonly strings: readonly string[] | null
}

export interface ValueReply extends RecordReply {
  readonly kind: 'value'
  readonly values: readonly RawValue[]
}

export interface IndexReply extends Told {
  readonly kind: 'index'
  /** One an asked path, in order. */
  readonly files: readonly (IndexFile | ErrorData)[]
}

/** What an event file holds: one entry a Value in each column. */
export interface EventFileScan {
  /** Of the file when it was read, and up to the end of its last whole record. */
  readonly byteLength: number
  readonly scannedByteLength: number
  readonly tags: readonly string[]
  /** Index into `tags`. */
  readonly tag: Int32Array
  readonly startByte: Float64Array
  readonly recordByteLength: Float64Array
  readonly step: Float64Array
  /** As MODES counts, from 1 on; 0: not told. */
  readonly mode: Uint8Array
  /** -1: not told. */
  readonly modeStep: Float64Array
  /** Records that could not be read. If the file was left before its end, the last one says why. */
  readonly problems: readonly ErrorData[]
}

export interface EventsReply extends Told {
  readonly kind: 'events'
  /** One an asked file, in order. */
  readonly files: readonly (EventFileScan | ErrorData)[]
}

export type Reply = ScanReply | PartReply | MeasureReply | DescribeReply | ValueReply | IndexReply | EventsReply

/** The reply that belongs to a job. */
export type ReplyTo<J extends Job> = Extract<Reply, { kind: J['kind'] }>

/** The buffers of a reply that can be moved instead of copied. */
export function transfers(reply: Reply): ArrayBuffer[] {
  switch (reply.kind) {
    case 'scan':
      return [reply.moments.buffer as ArrayBuffer, ...(reply.lines ? [reply.lines.text.buffer] : [])]
    case 'part':
      return [reply.moments.buffer as ArrayBuffer]
    case 'measure':
      return [
        reply.moments.buffer as ArrayBuffer,
        reply.answers.buffer as ArrayBuffer,
        ...reply.values.flatMap(buffersOf),
      ]
    case 'value':
      return reply.values.flatMap(buffersOf)
    case 'events':
      return reply.files.flatMap(file => {
        if ('code' in file) return []
        const { tag, startByte, recordByteLength, step, mode, modeStep } = file
        return [tag, startByte, recordByteLength, step, mode, modeStep].map(({ buffer }) => buffer as ArrayBuffer)
      })
    default:
      return []
  }
}

function buffersOf({ bytes, widened }: RawValue): ArrayBuffer[] {
  return widened ? [bytes.buffer, widened.buffer] : [bytes.buffer]
}
