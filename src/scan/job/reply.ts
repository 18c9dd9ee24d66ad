/** The common part of all replies. Plain data, since it crosses a thread, with numbers in columns whose buffers are moved. */

import type { ErrorData } from '../../base/errors.js'
import type { Histogram } from '../../format/histogram.js'
import type { Traffic } from '../../storage/store.js'

/** The cost of a job. */
export interface JobStats {
  readonly records: number
  readonly readBytes: number
  readonly reads: number
  /** The time by activity, if requested. */
  readonly spent?: ThreadTimes | undefined
}

/** The time of one thread by activity, in milliseconds. */
export interface ThreadTimes {
  readonly readMs: number
  /** Framing, checksums and the protobuf walk. */
  readonly decodeMs: number
  readonly reduceMs: number
  /** Rows as text, if requested, and the rest of the job. */
  readonly writeMs: number
}

/** A record that could not be read: its index in the job's columns, and the error. */
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

/** Shapes of records; equal shapes are stored once. */
export interface ShapeColumn {
  readonly lists: readonly (readonly number[])[]
  /** The index of each record's shape. */
  readonly codes: Int32Array<ArrayBuffer>
}

/**
 * The shape of each described record; empty for one that failed.
 * @param tags the tags of the records: those of one tag mostly share a shape
 */
export function shapeColumn({ ranks, dims }: Descriptions, tags?: Int32Array): ShapeColumn {
  const lists: number[][] = []
  const codes = new Int32Array(ranks.length)
  const codesByText = new Map<string, number>()
  const lastOfTag = new Map<number, number>()
  let at = 0
  for (let record = 0; record < ranks.length; record++) {
    const rank = ranks[record]!
    const tag = tags === undefined ? 0 : tags[record]!
    let code = lastOfTag.get(tag)
    if (code === undefined || !isShape(lists[code]!, dims, at, rank)) {
      const shape = Array.from(dims.subarray(at, at + rank))
      const text = shape.join()
      code = codesByText.get(text) ?? lists.push(shape) - 1
      codesByText.set(text, code)
      lastOfTag.set(tag, code)
    }
    codes[record] = code
    at += rank
  }
  return { lists, codes }
}

function isShape(shape: readonly number[], dims: Float64Array, at: number, rank: number): boolean {
  if (shape.length !== rank) return false
  for (let axis = 0; axis < rank; axis++) if (shape[axis] !== dims[at + axis]) return false
  return true
}

/** The shape of each described record. */
export function shapesOf(described: Descriptions): readonly (readonly number[])[] {
  const { lists, codes } = shapeColumn(described)
  return Array.from(codes, code => lists[code]!)
}

/** The content of a TensorBoard histogram, in place of moments. */
export interface HistogramResult {
  readonly record: number
  readonly shape: readonly number[]
  readonly reductions: Histogram['reductions']
  readonly wallTime: number
}

/**
 * The CRC-32C of a run of a payload's bytes (only at check level `full`). `storedCrc` is that of the record's footer, only in the last
 * part.
 */
export interface PartChecksum {
  readonly crc: number
  readonly crcByteLength: number
  readonly storedCrc: number
}
