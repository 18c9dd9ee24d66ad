/** All that crosses a thread: jobs down, replies back. Plain data; numbers in columns, whose buffers are moved. */

import type { ErrorData } from '../errors.js'
import type { IndexFile } from '../format/index-file.js'
import type { StoreSpec } from '../store/store.js'
import type { DescribeJob, DescribeReply } from './describe.js'
import type { MeasureJob, MeasureReply } from './measure.js'
import type { AnyReply } from './reply.js'
import type { PartJob, PartReply, ScanJob, ScanReply } from './scan.js'
import type { RawValue, ValueJob, ValueReply } from './value.js'

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

/** Records of an event file to be copied, in the order of the file. */
export interface CopiedFile {
  readonly path: string
  /** The local file to be written, an absolute path: there is none yet. */
  readonly target: string
  readonly startByte: Float64Array
  readonly byteLength: Float64Array
}

/** Copy records of event files into files of their own. */
export interface CopyJob {
  readonly kind: 'copy'
  readonly store: StoreSpec
  readonly files: readonly CopiedFile[]
  /** Whether records get the true checksums of their payloads; otherwise they are copied byte for byte. */
  readonly checksums: boolean
}

/** Check event files, or ranges of them, byte by byte. */
export interface VerifyJob {
  readonly kind: 'verify'
  readonly store: StoreSpec
  readonly ranges: readonly VerifyRange[]
  /** Bytes of files that may be in memory at once. */
  readonly windowByteLength: number
  /** Whether the trial is Tornasole's, which called float16 int32. */
  readonly isTornasole: boolean
  /** Whether values are looked at, too: see docs/verify.md. */
  readonly deep: boolean
  /** Whether the reply tells the tensors' shapes: an index file may have saved some. */
  readonly withShapes?: boolean
}

/** The records of a file that begin in a range. */
export interface VerifyRange {
  readonly path: string
  readonly startByte: number
  /** Null: to the end of the file. */
  readonly endByte: number | null
  /** Where records begin, as index entries say, in order: what to go on with behind a record whose frame is broken. */
  readonly anchors: Float64Array
}

export type Job = ScanJob | PartJob | MeasureJob | DescribeJob | ValueJob | IndexJob | EventsJob | VerifyJob | CopyJob

export interface IndexReply extends AnyReply {
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

export interface EventsReply extends AnyReply {
  readonly kind: 'events'
  /** One an asked file, in order. */
  readonly files: readonly (EventFileScan | ErrorData)[]
}

export interface CopyReply extends AnyReply {
  readonly kind: 'copy'
  /** Bytes that were written. */
  readonly byteLength: number
}

/** What a Value holds, as VerifiedRange.kind tells it: the place in the list. */
export const VALUE_KINDS = ['other', 'tensor', 'histogram'] as const

/** The records that begin in a range of a file: those whose frames hold, in the order of the file. */
export interface VerifiedRange {
  /** Of the file. */
  readonly byteLength: number
  readonly startByte: number
  /**
   * Where the first record begins that was not looked at: the end of the file, or of the last record of the range. Less
   * than the range's end where the job had enough: another one is to go on from there.
   */
  readonly endByte: number
  // A record in each entry.
  readonly recordStart: Float64Array
  /** Frame and all. */
  readonly recordByteLength: Float64Array
  /** How many of them have smdebug's constant in place of their payload's checksum. */
  readonly withoutChecksum: number
  /** The Event's. NaN where the record is no Event. */
  readonly step: Float64Array
  /** 1: something is wrong with it, which is among the problems. The others are good. */
  readonly isBad: Uint8Array
  // A Value in each entry, in the order of the records; those of bad records, too, as far as they are known.
  /** Index into the record columns. */
  readonly record: Int32Array
  /** Index into the tags of the reply. */
  readonly tag: Int32Array
  /** As MODES counts, from 1 on; 0: not told. */
  readonly mode: Uint8Array
  /** -1: not told. */
  readonly modeStep: Float64Array
  /** Null for what is no tensor, or a bad one; of nothing where shapes were not asked for. */
  readonly shape: readonly (readonly number[] | null)[]
  /** Index into VALUE_KINDS. What holds a tensor or a histogram is what an index file can name. */
  readonly kind: Uint8Array
  /** Ranges of bytes that are no records, one after the other: start, end. */
  readonly skipped: Float64Array
  /** The first of the problems, in the order of the file. */
  readonly problems: readonly RecordProblem[]
  /** All of them, by code. */
  readonly problemCounts: Readonly<Record<string, number>>
  readonly notes: readonly RecordProblem[]
  readonly noteCounts: Readonly<Record<string, number>>
}

/** Something that is wrong with a record, or where one should be. */
export interface RecordProblem {
  readonly error: ErrorData
  /** What it concerns, in bytes of the file. */
  readonly startByte: number
  readonly endByte: number
  /** Null where it is not known, or the record as a whole. */
  readonly tag: string | null
  /** NaN where it is not known. */
  readonly step: number
}

export interface VerifyReply extends AnyReply {
  readonly kind: 'verify'
  /** One an asked range, in order; an error where the file can't be read at all. */
  readonly ranges: readonly (VerifiedRange | ErrorData)[]
  readonly tags: readonly string[]
  readonly readBytes: number
}

export type Reply =
  | ScanReply
  | PartReply
  | MeasureReply
  | DescribeReply
  | ValueReply
  | IndexReply
  | EventsReply
  | CopyReply
  | VerifyReply

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
        ...reply.values.flatMap(({ value }) => buffersOf(value)),
      ]
    case 'value':
      return reply.values.flatMap(buffersOf)
    case 'events':
      return reply.files.flatMap(file => {
        if ('code' in file) return []
        const { tag, startByte, recordByteLength, step, mode, modeStep } = file
        return [tag, startByte, recordByteLength, step, mode, modeStep].map(({ buffer }) => buffer as ArrayBuffer)
      })
    case 'verify':
      return reply.ranges.flatMap(range =>
        'recordStart' in range
          ? Object.values(range).flatMap(column => (ArrayBuffer.isView(column) ? [column.buffer as ArrayBuffer] : []))
          : [],
      )
    default:
      return []
  }
}

function buffersOf({ bytes, widened }: RawValue): ArrayBuffer[] {
  return widened ? [bytes.buffer, widened.buffer] : [bytes.buffer]
}
