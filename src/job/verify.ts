/** Verifying: which ranges of event files are checked, and what was found in each. */

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
