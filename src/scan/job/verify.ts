/** Jobs that check event files byte by byte: what is asked, how files are cut into ranges and jobs, what comes back. */

import type { ErrorData } from '../../base/errors.js'
import type { StoreSpec } from '../../storage/store.js'
import type { AnyReply } from './reply.js'

/** Check event files, or ranges of them, byte by byte. */
export interface VerifyJob {
  readonly kind: 'verify'
  readonly store: StoreSpec
  readonly ranges: readonly VerifyRange[]
  /** Bytes of files that may be in memory at once. */
  readonly windowByteLength: number
  /** True for a Tornasole trial, which labelled float16 as int32. */
  readonly isTornasole: boolean
  /** True to check values, too: see docs/verify.md. */
  readonly deep: boolean
  /** True to reply the tensors' shapes, for comparison with those that index files saved. */
  readonly withShapes?: boolean
}

/** The records of a file that begin in a range. */
export interface VerifyRange {
  readonly path: string
  readonly startByte: number
  /** Null: the end of the file. */
  readonly endByte: number | null
  /** The starts of records by index entries, in order: places to go on at behind a broken frame. */
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
   * The start of the first record that was not checked: the end of the file, or of the last record of the range. Less
   * than the end of the range if the job stopped early, so that another has to go on from there.
   */
  readonly endByte: number
  // One entry per record.
  readonly recordStart: Float64Array
  /** With its frame. */
  readonly recordByteLength: Float64Array
  /** The number of records with smdebug's constant in place of the payload's checksum. */
  readonly withoutChecksum: number
  /** The Event's step; NaN if the record is not an Event. */
  readonly step: Float64Array
  /** 1: something is wrong with the record, and is among the problems. 0: it is good. */
  readonly isBad: Uint8Array
  // One entry per Value, in the order of the records; those of bad records, too, as far as they are known.
  /** Index into the record columns. */
  readonly record: Int32Array
  /** Index into the tags of the reply. */
  readonly tag: Int32Array
  /** 1 + the index of the mode in MODES; 0: not stored. */
  readonly mode: Uint8Array
  /** -1: not stored. */
  readonly modeStep: Float64Array
  /** Null if it is not a good tensor; empty if shapes were not asked for. */
  readonly shape: readonly (readonly number[] | null)[]
  /** Index into VALUE_KINDS. An index file can name Values that hold a tensor or a histogram. */
  readonly kind: Uint8Array
  /** Ranges of bytes that hold no records, one after the other: start, end. */
  readonly skipped: Float64Array
  /** The first problems, in the order of the file. */
  readonly problems: readonly RecordProblem[]
  /** The number of all problems, by code. */
  readonly problemCounts: Readonly<Record<string, number>>
  readonly notes: readonly RecordProblem[]
  readonly noteCounts: Readonly<Record<string, number>>
}

/** Something wrong with a record, or with the bytes where one should be. */
export interface RecordProblem {
  readonly error: ErrorData
  /** The bytes of the file that it concerns. */
  readonly startByte: number
  readonly endByte: number
  /** Null if it is not known, or if it concerns the whole record. */
  readonly tag: string | null
  /** NaN if it is not known. */
  readonly step: number
}

export interface VerifyReply extends AnyReply {
  readonly kind: 'verify'
  /** One per range, in order; an error if the file can't be read at all. */
  readonly ranges: readonly (VerifiedRange | ErrorData)[]
  readonly tags: readonly string[]
  readonly readBytes: number
}

/** The most that one job checks: bytes of event files, ranges, and anchors in them. */
const VERIFY_JOB_BYTES = 8 << 20
const JOB_RANGES = 256
const JOB_ANCHORS = 1 << 20
/** A file longer than this is cut at records that the index names, so that threads share it. */
export const CUT_BYTES = 16 << 20

/**
 * The ranges of a file: one, or several if it is longer than CUT_BYTES, cut at records that the index names.
 * @param anchors where records begin according to index entries, in order and without duplicates
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

/** Jobs on ranges of files, in order, each with as many ranges as make a round trip to a thread worthwhile. */
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
