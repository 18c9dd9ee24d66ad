/** The part that all jobs on records share: how a record is requested, refused, opened and described. */

import { type ErrorData, FormatError, quote, StoreError, TrialscanError, withShortPath } from '../../../base/errors.js'
import type { DescribedRun } from '../../../core/batch/core-records.js'
import { FOOTER_LENGTH, FRAMING_LENGTH, HEADER_LENGTH } from '../../../core/border/framing.js'
import { dtypeOf } from '../../../core/dtype.js'
import { Moments } from '../../../core/moments.js'
import { ROW_LENGTH } from '../../../core/moments-row.js'
import type { SlotReader } from '../../../core/slots.js'
import { decodeHistogram, type Histogram } from '../../../format/histogram.js'
import type { ByteSource } from '../../../storage/store.js'
import type { JobRecords, RecordColumns } from '../../job/plan/coalesce.js'
import { RECORD_LIMIT } from '../../job/plan/memory.js'
import type { Descriptions, HistogramResult, RecordFailure } from '../../job/reply.js'

/** The limit for a histogram, which takes 16 bytes per bucket. */
const MAX_HISTOGRAM_BYTES = 16 << 20

/**
 * Reads the histogram of a record in which the core found no tensor with its tag, as in TensorBoard's files; null if there is none. The
 * core has checked the record. If it can't be read a second time, the core's error stands.
 */
async function readHistogram(
  { files, tags, records }: JobRecords,
  record: number,
  code: string,
  source: ByteSource,
): Promise<Histogram | null> {
  const byteLength = records.byteLength[record]!
  if ((code !== 'NoTensor' && code !== 'TagMismatch') || byteLength > MAX_HISTOGRAM_BYTES) return null
  const frame = new Uint8Array(byteLength)
  try {
    await source.readInto(files[records.file[record]!]!, records.startByte[record]!, frame)
  } catch (error) {
    if (error instanceof StoreError) return null
    throw error
  }
  const event = frame.subarray(HEADER_LENGTH, byteLength - FOOTER_LENGTH)
  return decodeHistogram(event, tags[records.tag[record]!]!)
}

export function shapeOf({ rows }: Histogram): number[] {
  return [rows.length / 3, 3]
}

export function histogramResult(record: number, histogram: Histogram): HistogramResult {
  const { reductions, wallTime } = histogram
  return { record, shape: shapeOf(histogram), reductions, wallTime }
}

/**
 * A failure as data, so that the rest of the job stands. The file's path is shortened, since many records can fail with it. An unexpected
 * error is a bug, and ends the job.
 */
export function failureData(error: unknown): ErrorData {
  if (error instanceof TrialscanError) return withShortPath(error.toJSON())
  throw error
}

/** The failed records of a job. Some are TensorBoard histograms, which the core does not decode. */
export class Failures {
  readonly #job: JobRecords
  readonly #sourceOf: (file: number) => ByteSource
  readonly #failures: RecordFailure[] = []

  constructor(job: JobRecords, sourceOf: (file: number) => ByteSource) {
    this.#job = job
    this.#sourceOf = sourceOf
  }

  add(record: number, error: unknown): void {
    this.#failures.push({ record, error: failureData(error) })
  }

  /** @returns the failures that are no histograms, in the order of the records */
  async finish(onHistogram: (record: number, histogram: Histogram) => void): Promise<RecordFailure[]> {
    const failed: RecordFailure[] = []
    for (const failure of this.#failures) {
      const { record, error } = failure
      const source = this.#sourceOf(this.#job.records.file[record]!)
      const histogram = await readHistogram(this.#job, record, error.code, source)
      if (histogram === null) failed.push(failure)
      else onHistogram(record, histogram)
    }
    return failed.sort((a, b) => a.record - b.record)
  }
}

export function recordRequestAt(records: RecordColumns, record: number) {
  return {
    byteLength: records.byteLength[record]!,
    tag: records.tag[record]!,
    step: records.step[record]!,
    tornasole: records.tornasole[record] === 1,
  }
}

export function placeOf({ files, tags, records }: JobRecords, record: number, source: ByteSource) {
  return {
    url: source.url(files[records.file[record]!]!),
    startByte: records.startByte[record]!,
    tensor: tags[records.tag[record]!]!,
  }
}

/** The error of an index entry with an impossible length; such a record is not read. */
export function impossibleLength(job: JobRecords, record: number, source: ByteSource): FormatError | undefined {
  const byteLength = job.records.byteLength[record]!
  if (byteLength >= FRAMING_LENGTH && byteLength <= RECORD_LIMIT) return undefined
  if (byteLength > RECORD_LIMIT && isComposed(job, record, source)) return undefined
  const { url, startByte, tensor } = placeOf(job, record, source)
  const expected = `a record length between ${FRAMING_LENGTH} and ${RECORD_LIMIT} bytes in the index entry`
  const message = `${url}, offset ${startByte}, tensor ${quote(tensor)}: expected ${expected}, got ${byteLength}`
  return new FormatError('LengthMismatch', message, { url, offset: startByte, expected, got: `${byteLength}`, tensor })
}

/** True for a record that the store composes. */
function isComposed({ files, records }: JobRecords, record: number, source: ByteSource): boolean {
  return source.headByteLength?.(files[records.file[record]!]!, records.startByte[record]!) !== undefined
}

/** Collects the results of records, which may come in any order, in the order of the job's columns. */
export class RecordTable {
  readonly #dtypes: Uint8Array
  readonly #ranks: Uint8Array
  /** The start of each record's dimensions. */
  readonly #begins: Float64Array
  /** The dimensions, in the order in which records were described. */
  #dims: Float64Array<ArrayBuffer>
  #length = 0
  /** The last described record, while they come in order. */
  #last = -1
  /** The moments, made for the first record that needs them: written rows don't. */
  #moments = new Float64Array(0)

  constructor(total: number) {
    this.#dtypes = new Uint8Array(total)
    this.#ranks = new Uint8Array(total)
    this.#begins = new Float64Array(total)
    // A single record, as in most individual requests, needs so little that it is stored inline.
    this.#dims = new Float64Array(4 * Math.min(total, 16))
  }

  describe(record: number, dtype: number, shape: readonly number[]): void {
    this.#begin(record, dtype, shape.length)
    for (const size of shape) this.#dims[this.#length++] = size
  }

  /** Describes the i-th record of a batch from its slot. */
  describeSlot(record: number, slots: SlotReader, i: number): void {
    const rank = slots.rank(i)
    this.#begin(record, slots.dtypeNumber(i), rank)
    for (let axis = 0; axis < rank; axis++) this.#dims[this.#length++] = slots.dimension(i, axis)
  }

  /** Describes a run of records. @param records the indices of the records */
  describeAll(records: Int32Array, { count, dtypes, ranks, dims }: DescribedRun): void {
    for (let i = 0, at = 0; i < count; i++) {
      this.#begin(records[i]!, dtypes[i]!, ranks[i]!)
      for (const end = at + ranks[i]!; at < end; at++) this.#dims[this.#length++] = dims[at]!
    }
  }

  #begin(record: number, dtype: number, rank: number): void {
    this.#dtypes[record] = dtype
    this.#ranks[record] = rank
    this.#begins[record] = this.#length
    this.#last = record > this.#last ? record : Number.POSITIVE_INFINITY
    if (this.#length + rank <= this.#dims.length) return
    const grown = new Float64Array(2 * (this.#length + rank))
    grown.set(this.#dims)
    this.#dims = grown
  }

  /** @param rows rows of moments, from that record on */
  reduce(record: number, rows: Float64Array): void {
    if (this.#moments.length === 0) this.#moments = new Float64Array(this.#dtypes.length * ROW_LENGTH)
    this.#moments.set(rows, record * ROW_LENGTH)
  }

  /** The moments of a record that was described and reduced. */
  momentsOf(record: number): Moments {
    return new Moments(
      dtypeOf(this.#dtypes[record]!)!,
      this.#moments.subarray(record * ROW_LENGTH, (record + 1) * ROW_LENGTH),
    )
  }

  /** @param rows a row of moments for each record, in any order; those of neighbours are copied together */
  reduceAll(records: Int32Array, rows: Float64Array): void {
    for (let start = 0, end = 1; start < records.length; start = end++) {
      while (end < records.length && records[end] === records[end - 1]! + 1) end++
      this.reduce(records[start]!, rows.subarray(start * ROW_LENGTH, end * ROW_LENGTH))
    }
  }

  /** TensorFlow's dtype numbers; 0 for a failed record. */
  get dtypes(): Uint8Array {
    return this.#dtypes
  }

  /** A row of moments per record, of no meaning for a failed one. */
  get moments(): Float64Array<ArrayBuffer> {
    return this.#moments
  }

  get described(): Descriptions {
    const [dtypes, ranks] = [this.#dtypes, this.#ranks]
    if (this.#last < Number.POSITIVE_INFINITY) return { dtypes, ranks, dims: this.#dims.slice(0, this.#length) }
    const dims = new Float64Array(this.#length)
    let at = 0
    for (let record = 0; record < ranks.length; record++) {
      const begin = this.#begins[record]!
      for (let axis = 0; axis < ranks[record]!; axis++) dims[at++] = this.#dims[begin + axis]!
    }
    // A record may have been described twice.
    return { dtypes, ranks, dims: dims.slice(0, at) }
  }
}

/** The descriptions of no records. */
export const NOTHING_DESCRIBED: Descriptions = new RecordTable(0).described
