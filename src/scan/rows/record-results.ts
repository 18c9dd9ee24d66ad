/** The result for each record of a scan's job, made on demand. */

import { EngineError, type ErrorData, errorFromData, type TrialscanError } from '../../base/errors.js'
import { dtypeOf } from '../../core/dtype.js'
import { Moments } from '../../core/moments.js'
import { ROW_LENGTH } from '../../core/moments-row.js'
import { Distribution } from '../../core/statistics/distribution.js'
import { type HistogramResult, type ShapeColumn, shapeColumn } from '../job/reply.js'
import type { ScanReply } from '../job/scan-job.js'

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

export class RecordResults {
  readonly #reply: ScanReply
  readonly #errors: ReadonlyMap<number, ErrorData>
  readonly #histograms: ReadonlyMap<number, HistogramResult>
  #shapes: ShapeColumn | undefined

  /** @param shapes the shapes of the records, if they are known */
  constructor(reply: ScanReply, shapes?: ShapeColumn) {
    this.#reply = reply
    this.#shapes = shapes
    this.#errors = new Map(reply.failures.map(({ record, error }) => [record, error]))
    this.#histograms = new Map(reply.histograms.map(histogram => [histogram.record, histogram]))
  }

  at(record: number): RecordResult {
    const { described, moments: rows, answers, wallTimes } = this.#reply
    const histogram = this.#histograms.get(record)
    if (histogram) return { histogram, wallTime: wallTimes.length > 0 ? histogram.wallTime : undefined }
    const error = this.#errors.get(record)
    if (error) return { error: errorFromData(error) }
    const dtype = dtypeOf(described.dtypes[record]!)
    if (dtype === undefined) return { error: noAnswer(record) }
    const moments = new Moments(dtype, rows, record * ROW_LENGTH)
    const width = answers.length / described.dtypes.length
    return {
      moments,
      shape: this.#shapeOf(record),
      answers: width === 0 ? answers : answers.subarray(record * width, (record + 1) * width),
      sketched: sketchOf(this.#reply, record, moments),
      wallTime: wallTimes[record],
    }
  }

  #shapeOf(record: number): readonly number[] {
    this.#shapes ??= shapeColumn(this.#reply.described)
    return this.#shapes.lists[this.#shapes.codes[record]!]!
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
