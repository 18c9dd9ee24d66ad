/** Jobs that verify event files byte by byte: requests, the division into ranges and jobs, and replies. */

import type { ErrorData } from '../../base/errors.js'
import type { StoreSpec } from '../../storage/store.js'
import type { AnyReply } from './reply.js'

/** A job that verifies event files, or ranges of them, byte by byte. */
export interface VerifyJob {
  readonly kind: 'verify'
  readonly store: StoreSpec
  readonly ranges: readonly VerifyRange[]
  /** The number of bytes of files that may be in memory at once. */
  readonly windowByteLength: number
  /** True for a Tornasole trial, which labelled float16 as int32. */
  readonly isTornasole: boolean
  /** True to verify values, too: see docs/verify.md. */
  readonly deep: boolean
  /** True to return the tensors' shapes, for comparison with those in index files. */
  readonly withShapes?: boolean
}

/** A range of a file, for the records that begin in it. */
export interface VerifyRange {
  readonly path: string
  readonly startByte: number
  /** The end of the range; null for the end of the file. */
  readonly endByte: number | null
  /** The starts of records according to index entries, in order: places to continue at behind a broken frame. */
  readonly anchors: Float64Array
}

/** The kinds of Values; VerifiedRange.kind is an index into this list. */
export const VALUE_KINDS = ['other', 'tensor', 'histogram'] as const
export const TENSOR = VALUE_KINDS.indexOf('tensor')
export const HISTOGRAM = VALUE_KINDS.indexOf('histogram')

/** The records with intact frames that begin in a range of a file, in the order of the file. */
export interface VerifiedRange {
  /** Length of the whole file. */
  readonly byteLength: number
  readonly startByte: number
  /**
   * The start of the first record that was not verified: the end of the file, or of the last record in the range. It is below the end of
   * the range if the job stopped early, and another must continue there.
   */
  readonly endByte: number
  // One entry per record.
  readonly recordStart: Float64Array
  /** The length with the frame. */
  readonly recordByteLength: Float64Array
  /** The number of records with smdebug's constant instead of a payload checksum. */
  readonly withoutChecksum: number
  /** The Event's step; NaN if the record is not an Event. */
  readonly step: Float64Array
  /** 1 for a record with a problem, which is listed; 0 for a good one. */
  readonly isBad: Uint8Array
  // One entry per Value, in the order of the records, including the known Values of bad records.
  /** Index into the record columns. */
  readonly record: Int32Array
  /** Index into the tags of the reply. */
  readonly tag: Int32Array
  /** The index into the tags of the reply. */
  readonly mode: Uint8Array
  /** The mode step; -1 if not stored. */
  readonly modeStep: Float64Array
  /** The shape; null for a bad tensor, empty if shapes were not requested. */
  readonly shape: readonly (readonly number[] | null)[]
  /** The index into VALUE_KINDS. An index file can list Values with a tensor or a histogram. */
  readonly kind: Uint8Array
  /** Ranges of bytes without records: start, end, start, end, … */
  readonly skipped: Float64Array
  /** The first problems, in the order of the file. */
  readonly problems: readonly RecordProblem[]
  /** The number of all problems, by code. */
  readonly problemCounts: Readonly<Record<string, number>>
  readonly notes: readonly RecordProblem[]
  readonly noteCounts: Readonly<Record<string, number>>
}

/** A problem of a record, or of the bytes where one should be. */
export interface RecordProblem {
  readonly error: ErrorData
  /** The bytes of the file that it concerns. */
  readonly startByte: number
  readonly endByte: number
  /** The tag; null if it is unknown, or if the problem concerns the whole record. */
  readonly tag: string | null
  /** The step; NaN if unknown. */
  readonly step: number
}

export interface VerifyReply extends AnyReply {
  readonly kind: 'verify'
  /** A result per range, in order; an error if the file can't be read at all. */
  readonly ranges: readonly (VerifiedRange | ErrorData)[]
  readonly tags: readonly string[]
  readonly readBytes: number
}

/** The limits of a job: bytes of event files, ranges, and anchors. */
const VERIFY_JOB_BYTES = 8 << 20
const JOB_RANGES = 256
const JOB_ANCHORS = 1 << 20
/** The length beyond which a file is cut at records that the index lists, so that threads share it. */
export const CUT_BYTES = 16 << 20

/**
 * The ranges of a file: one, or several if it is longer than CUT_BYTES, cut at records that the index lists.
 * @param anchors the starts of records according to index entries, in order and without duplicates
 */
export function rangesOfFile(path: string, byteLength: number, anchors: Float64Array): VerifyRange[] {
  const ranges: VerifyRange[] = []
  let first = 0
  let startByte = 0
  if (byteLength > CUT_BYTES) {
    for (const [i, anchor] of anchors.entries()) {
      if (anchor >= byteLength) break
      if (anchor - startByte < VERIFY_JOB_BYTES) continue
      ranges.push({ path, startByte, endByte: anchor, anchors: anchors.slice(first, i + 1) })
      startByte = anchor
      first = i
    }
  }
  return [...ranges, { path, startByte, endByte: null, anchors: first === 0 ? anchors : anchors.slice(first) }]
}

/** Jobs on ranges of files, in order, each with enough ranges to be worth a round trip to a thread. */
export function* verifyJobs(
  files: Iterable<{ readonly ranges: readonly VerifyRange[]; readonly byteLength: number }>,
  job: Omit<VerifyJob, 'ranges'>,
): Generator<VerifyJob> {
  let some: VerifyRange[] = []
  let bytes = 0
  let anchors = 0
  for (const { ranges, byteLength } of files) {
    for (const range of ranges) {
      some.push(range)
      bytes += (range.endByte ?? byteLength) - range.startByte
      anchors += range.anchors.length
      if (bytes < VERIFY_JOB_BYTES && some.length < JOB_RANGES && anchors < JOB_ANCHORS) continue
      yield { ...job, ranges: some }
      some = []
      bytes = 0
      anchors = 0
    }
  }
  if (some.length > 0) yield { ...job, ranges: some }
}
