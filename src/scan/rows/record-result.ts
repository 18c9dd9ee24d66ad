/** The result for each record of a scan's job. */

import { EngineError, type ErrorData, errorFromData, TrialscanError } from '../../base/errors.js'
import { dtypeOf } from '../../core/dtype.js'
import { Moments } from '../../core/moments.js'
import { ROW_LENGTH } from '../../core/moments-row.js'
import { Distribution } from '../../core/statistics/distribution.js'
import { type HistogramResult, type ShapeColumn, shapeColumn } from '../job/reply.js'
import type { ScanReply } from '../job/scan.js'

export type RecordResult =
  | {
      readonly moments: Moments
      readonly shape: readonly number[]
      readonly answers: Float64Array
      readonly sketched: Distribution | undefined
      /** The wall time in seconds since 1970; undefined if not requested. */
      readonly wallTime: number | undefined
    }
  | { readonly histogram: HistogramResult; readonly wallTime: number | undefined }
  | { readonly error: TrialscanError }

/** Rows written by the thread that made them, one per record. */
export interface WrittenRows {
  readonly text: Uint8Array
}

/** The result for each record of a job, in order, or its row if the thread wrote it. */
export function resultsOf(reply: ScanReply): (RecordResult | WrittenRows)[] {
  const { lines } = reply
  const results = recordResults(reply)
  if (lines === null) return results
  let at = 0
  return results.map((result, record) => {
    const byteLength = lines.byteLengths![record]!
    at += byteLength
    return byteLength === 0 ? result : { text: lines.text.subarray(at - byteLength, at) }
  })
}

export function recordResults(reply: ScanReply): RecordResult[] {
  const results = new RecordResults(reply)
  return Array.from(reply.described.dtypes, (_, record) => results.at(record))
}

/** The result for each record of a job, made on demand. */
export class RecordResults {
  readonly #reply: ScanReply
  #shapes: ShapeColumn | undefined
  readonly #errors: ReadonlyMap<number, ErrorData>
  readonly #histograms: ReadonlyMap<number, HistogramResult>

  /** @param shapes the shapes of the records, if they are known */
  constructor(reply: ScanReply, shapes?: ShapeColumn) {
    this.#reply = reply
    this.#shapes = shapes
    this.#errors = new Map(reply.failures.map(({ record, error }) => [record, error]))
    this.#histograms = new Map(reply.histograms.map(histogram => [histogram.record, histogram]))
  }

  /** The moments of a record, its TensorBoard histogram, or the error. */
  outcome(record: number): Moments | HistogramResult | TrialscanError {
    const { described, moments } = this.#reply
    const histogram = this.#histograms.get(record)
    if (histogram) return histogram
    const error = this.#errors.get(record)
    if (error) return errorFromData(error)
    const dtype = dtypeOf(described.dtypes[record]!)
    return dtype === undefined ? noAnswer(record) : new Moments(dtype, moments, record * ROW_LENGTH)
  }

  at(record: number): RecordResult {
    const { described, answers, wallTimes } = this.#reply
    const moments = this.outcome(record)
    if (moments instanceof TrialscanError) return { error: moments }
    if (!(moments instanceof Moments)) {
      return { histogram: moments, wallTime: wallTimes.length > 0 ? moments.wallTime : undefined }
    }
    const width = answers.length / described.dtypes.length
    this.#shapes ??= shapeColumn(described)
    return {
      moments,
      shape: this.#shapes.lists[this.#shapes.codes[record]!]!,
      answers: width === 0 ? answers : answers.subarray(record * width, (record + 1) * width),
      sketched: sketchOf(this.#reply, record, moments),
      wallTime: wallTimes[record],
    }
  }
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
