/** The outcome for each record of a scan's job. */

import { dtypeOf } from '../engine/dtype.js'
import { Moments } from '../engine/moments.js'
import { ROW_LENGTH } from '../engine/moments-row.js'
import { Distribution } from '../engine/statistics/distribution.js'
import { EngineError, errorFromData, type TrialscanError } from '../errors.js'
import { type HistogramResult, shapesOf } from '../job/reply.js'
import type { ScanReply } from '../job/scan.js'

export type RecordResult =
  | {
      readonly moments: Moments
      readonly shape: readonly number[]
      readonly answers: Float64Array
      readonly sketched: Distribution | undefined
      /** Seconds since 1970; undefined: it was not asked for. */
      readonly wallTime: number | undefined
    }
  | { readonly histogram: HistogramResult; readonly wallTime: number | undefined }
  | { readonly error: TrialscanError }

/** Rows written by the thread that made them, one per record. */
export interface WrittenRows {
  readonly text: Uint8Array
  readonly rows: number
}

/** All that a job replied about, where each record has a row. */
export interface WholeReply {
  readonly reply: ScanReply
  readonly rows: number
}

/** The outcome for each record of a job, in order; or the rows that were made from it. */
export function resultsOf(reply: ScanReply, count: number): (RecordResult | WrittenRows)[] {
  const { lines } = reply
  if (lines !== null && lines.byteLengths === null) return [{ text: lines.text, rows: count }]
  const results = recordResults(reply)
  if (lines === null) return results
  let at = 0
  return results.map((result, record) => {
    const byteLength = lines.byteLengths![record]!
    at += byteLength
    return byteLength === 0 ? result : { text: lines.text.subarray(at - byteLength, at), rows: 1 }
  })
}

export function recordResults(reply: ScanReply): RecordResult[] {
  const errors = new Map(reply.failures.map(({ record, error }) => [record, error]))
  const histograms = new Map(reply.histograms.map(histogram => [histogram.record, histogram]))
  const shapes = shapesOf(reply.described)
  const width = reply.answers.length / Math.max(1, reply.described.dtypes.length)
  return Array.from(reply.described.dtypes, (number, record): RecordResult => {
    const error = errors.get(record)
    const histogram = histograms.get(record)
    if (histogram) return { histogram, wallTime: reply.wallTimes.length > 0 ? histogram.wallTime : undefined }
    if (error) return { error: errorFromData(error) }
    const dtype = dtypeOf(number)
    if (dtype === undefined) return { error: noAnswer(record) }
    const row = reply.moments.subarray(record * ROW_LENGTH, (record + 1) * ROW_LENGTH)
    const answers = reply.answers.subarray(record * width, (record + 1) * width)
    const moments = new Moments(dtype, row)
    const sketched = sketchOf(reply, record, moments)
    return { moments, shape: shapes[record]!, answers, sketched, wallTime: reply.wallTimes[record] }
  })
}

/** The distribution of a record's elements, if it was sketched. */
function sketchOf(
  { sketches: { pairs, ends } }: ScanReply,
  record: number,
  moments: Moments,
): Distribution | undefined {
  const end = ends[record]
  return end === undefined ? undefined : Distribution.of(moments, pairs.subarray(ends[record - 1] ?? 0, end))
}

export function noAnswer(record: number): EngineError {
  return new EngineError(`a job answered nothing about its record ${record}`)
}
