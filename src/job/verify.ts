/** Jobs that check event files byte by byte: what is asked, how files are cut into ranges and jobs, what comes back. */

import type { ErrorData } from '../errors.js'
import type { StoreSpec } from '../store/store.js'
import type { AnyReply } from './reply.js'

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

/** Bytes of event files a job checks, how many ranges at most, and how many anchors they have. */
const JOB_BYTES = 8 << 20
const JOB_RANGES = 256
const JOB_ANCHORS = 1 << 20
/** A file longer than this is cut at records that the index names, so that threads share it. */
export const CUT_BYTES = 16 << 20

/**
 * A file in one range; one that is longer than CUT_BYTES in several, from one record that the index names to another.
 * @param anchors where records begin, as index entries say, in order and each once
 */
export function rangesOfFile(path: string, byteLength: number, anchors: Float64Array): VerifyRange[] {
  const ranges: VerifyRange[] = []
  let first = 0
  let startByte = 0
  if (byteLength > CUT_BYTES) {
    for (const [i, anchor] of anchors.entries()) {
      if (anchor >= byteLength) break
      if (anchor - startByte < JOB_BYTES) continue
      ranges.push({ path, startByte, endByte: anchor, anchors: anchors.slice(first, i + 1) })
      startByte = anchor
      first = i
    }
  }
  return [...ranges, { path, startByte, endByte: null, anchors: first === 0 ? anchors : anchors.slice(first) }]
}

/** Ranges of files, in order, as many a job as are worth a thread's while. */
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
      if (bytes < JOB_BYTES && some.length < JOB_RANGES && anchors < JOB_ANCHORS) continue
      yield { ...job, ranges: some }
      some = []
      bytes = 0
      anchors = 0
    }
  }
  if (some.length > 0) yield { ...job, ranges: some }
}
