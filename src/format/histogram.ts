/**
 * Reads TensorBoard's histograms: a HistogramProto, or a tensor of the plugin `histograms`, as TensorFlow 2 and Keras write them. As a
 * value, a histogram is what TensorBoard makes of it: a float64 tensor with a row `left, right, count` per bucket; the outermost edges
 * are the smallest and largest number. Its reductions are those of the original data, as far as they are known: a tensor of buckets has
 * no sums, and some writers leave those of a HistogramProto out.
 */

import type { Reader } from 'protobufjs/minimal.js'
import type { ReductionName } from '../base/types.js'
import { LENGTH_DELIMITED } from './event-head.js'

export interface Histogram {
  /** Rows of left edge, right edge and count. */
  readonly rows: Float64Array<ArrayBuffer>
  readonly reductions: Readonly<Partial<Record<ReductionName, number>>>
  /** The time in seconds since 1970; 0 if the Event has none. */
  readonly wallTime: number
}

const EVENT_WALL_TIME_FIELD = 1
const EVENT_SUMMARY_FIELD = 5
const SUMMARY_VALUE_FIELD = 1
const VALUE_TAG_FIELD = 1
const VALUE_HISTOGRAM_FIELD = 5
const VALUE_TENSOR_FIELD = 8
const TENSOR_DTYPE_FIELD = 1
const TENSOR_CONTENT_FIELD = 4
/** The fields of TensorProto with individual numbers, by dtype number. */
const TENSOR_VALUES_FIELDS: Readonly<Record<number, number>> = { 1: 5, 2: 6 }
const FLOAT32 = 1
/** Wire types. */
const VARINT = 0
const FIXED_64 = 1
const FIXED_32 = 5
/** The singular doubles of a HistogramProto; the repeated ones come after them. */
const SCALARS = ['min', 'max', 'num', 'sum', 'sumSquares'] as const
const BUCKET_LIMIT = 6
const BUCKET = 7

type Scalars = Record<(typeof SCALARS)[number], number>

/** The content of a HistogramProto. */
interface Content {
  readonly scalars: Scalars
  readonly limits: number[]
  readonly counts: number[]
}

/** The parts of a tensor of buckets, before the type of its numbers is known. */
interface TensorParts {
  dtype: number
  content: Uint8Array
  /** Individual numbers, by field. */
  readonly values: Map<number, number[]>
}

/** The histogram with a tag in an Event; null if there is none. */
export async function decodeHistogram(event: Uint8Array, tag: string): Promise<Histogram | null> {
  const { default: protobuf } = await import('protobufjs/minimal.js')
  try {
    return findHistogram(protobuf.Reader.create(event), tag)
  } catch {
    // Malformed bytes have no histogram; the core has reported what is wrong with them.
    return null
  }
}

/** True if a Value with a histogram field holds a readable histogram. */
export async function isHistogram(value: Uint8Array): Promise<boolean> {
  const { default: protobuf } = await import('protobufjs/minimal.js')
  try {
    return readSummaryValue(protobuf.Reader.create(value), value.length, null) !== null
  } catch {
    return false
  }
}

function findHistogram(reader: Reader, tag: string): Histogram | null {
  let content: Content | Float64Array<ArrayBuffer> | null = null
  let wallTime = 0
  eachField(reader, reader.len, (field, wireType) => {
    if (field === EVENT_WALL_TIME_FIELD && wireType === FIXED_64) wallTime = reader.double()
    else if (field === EVENT_SUMMARY_FIELD && wireType === LENGTH_DELIMITED) {
      const summaryEnd = reader.uint32() + reader.pos
      eachMessage(reader, summaryEnd, SUMMARY_VALUE_FIELD, valueEnd => {
        content ??= readSummaryValue(reader, valueEnd, tag)
      })
    } else return false
    return true
  })
  if (content === null) return null
  return ArrayBuffer.isView(content) ? histogramOfRows(content, wallTime) : histogramOf(content, wallTime)
}

/** @param tag the required tag; null for any @returns the rows of a tensor */
function readSummaryValue(reader: Reader, end: number, tag: string | null): Content | Float64Array<ArrayBuffer> | null {
  let ownTag = ''
  let content: Content | null = null
  let tensor: TensorParts | null = null
  eachField(reader, end, (field, wireType) => {
    if (wireType !== LENGTH_DELIMITED) return false
    if (field === VALUE_TAG_FIELD) ownTag = reader.string()
    // A message that comes in pieces is merged, as protobuf requires.
    else if (field === VALUE_HISTOGRAM_FIELD) {
      content ??= { scalars: { min: 0, max: 0, num: 0, sum: 0, sumSquares: 0 }, limits: [], counts: [] }
      readContent(reader, reader.uint32() + reader.pos, content)
    } else if (field === VALUE_TENSOR_FIELD) {
      tensor ??= { dtype: 0, content: new Uint8Array(0), values: new Map() }
      readTensor(reader, reader.uint32() + reader.pos, tensor)
    } else return false
    return true
  })
  if (tag !== null && ownTag !== tag) return null
  return content ?? (tensor && rowsOf(tensor))
}

function readTensor(reader: Reader, end: number, tensor: TensorParts): void {
  eachField(reader, end, (field, wireType) => {
    if (field === TENSOR_DTYPE_FIELD && wireType === VARINT) tensor.dtype = reader.uint32()
    else if (field === TENSOR_CONTENT_FIELD && wireType === LENGTH_DELIMITED) tensor.content = reader.bytes()
    else {
      const isFloat = field === TENSOR_VALUES_FIELDS[FLOAT32]
      if (!isFloat && !Object.values(TENSOR_VALUES_FIELDS).includes(field)) return false
      const values = tensor.values.get(field) ?? []
      tensor.values.set(field, values)
      const next = () => values.push(isFloat ? reader.float() : reader.double())
      if (wireType === LENGTH_DELIMITED) {
        const listEnd = reader.uint32() + reader.pos
        while (reader.pos < listEnd) next()
      } else if (wireType === (isFloat ? FIXED_32 : FIXED_64)) next()
      else return false
    }
    return true
  })
}

/** The rows; null for an incomplete one. */
function rowsOf({ dtype, content, values }: TensorParts): Float64Array<ArrayBuffer> | null {
  const field = TENSOR_VALUES_FIELDS[dtype]
  if (field === undefined) return null
  const view = new DataView(content.buffer, content.byteOffset, content.length)
  const size = dtype === FLOAT32 ? 4 : 8
  if (content.length % (3 * size) !== 0) return null
  const rows =
    content.length === 0
      ? Float64Array.from(values.get(field) ?? [])
      : Float64Array.from({ length: content.length / size }, (_, i) =>
          dtype === FLOAT32 ? view.getFloat32(4 * i, true) : view.getFloat64(8 * i, true),
        )
  return rows.length % 3 === 0 ? rows : null
}

/** A histogram from rows only: the extremes are known, and the sums if all numbers are equal. */
function histogramOfRows(rows: Float64Array<ArrayBuffer>, wallTime: number): Histogram {
  let num = 0
  for (let i = 2; i < rows.length; i += 3) num += rows[i]!
  if (!(num > 0)) return { rows, reductions: {}, wallTime }
  let [min, max] = [rows[0]!, rows[rows.length - 2]!]
  // TensorFlow 2 used to give equal numbers one bucket of width 1 around them.
  if (rows.length === 3 && max - min === 1) min = max = (min + max) / 2
  const sums = min === max ? { sum: num * min, sumSquares: num * min * min } : { sum: 0, sumSquares: 0 }
  return { rows, reductions: reductionsOf({ min, max, num, ...sums }), wallTime }
}

function readContent(reader: Reader, end: number, { scalars, limits, counts }: Content): void {
  eachField(reader, end, (field, wireType) => {
    const scalar = SCALARS[field - 1]
    const list = field === BUCKET_LIMIT ? limits : field === BUCKET ? counts : null
    if (scalar && wireType === FIXED_64) scalars[scalar] = reader.double()
    else if (list && wireType === FIXED_64) list.push(reader.double())
    else if (list && wireType === LENGTH_DELIMITED) {
      const listEnd = reader.uint32() + reader.pos
      while (reader.pos < listEnd) list.push(reader.double())
    } else return false
    return true
  })
}

function histogramOf({ scalars, limits, counts }: Content, wallTime: number): Histogram {
  const count = Math.min(limits.length, counts.length)
  const rows = new Float64Array(count * 3)
  for (let i = 0; i < count; i++) {
    rows[3 * i] = i === 0 ? scalars.min : limits[i - 1]!
    rows[3 * i + 1] = i === count - 1 ? scalars.max : limits[i]!
    rows[3 * i + 2] = counts[i]!
  }
  return { rows, reductions: reductionsOf(scalars), wallTime }
}

/**
 * The reductions that the sums determine. For absolute values, all of them if no number is negative, and otherwise only the norm. Sums of
 * 0 for numbers that are not all 0 are missing sums.
 */
function reductionsOf({ min, max, num, sum, sumSquares }: Scalars): Histogram['reductions'] {
  if (num > 0 && sum === 0 && sumSquares === 0 && (min !== 0 || max !== 0)) {
    return { min, max, ...(min >= 0 && { abs_min: min, abs_max: max }) }
  }
  const mean = sum / num
  const variance = Math.max(0, sumSquares / num - mean * mean)
  const l2 = Math.sqrt(sumSquares)
  const std = Math.sqrt(variance)
  const plain = num > 0 ? { min, max, mean, std, variance, sum, l2 } : { sum, l2 }
  if (!(num > 0 && min >= 0)) return { ...plain, abs_l2: l2 }
  return {
    ...plain,
    l1: sum,
    abs_min: min,
    abs_max: max,
    abs_mean: mean,
    abs_std: std,
    abs_variance: variance,
    abs_sum: sum,
    abs_l1: sum,
    abs_l2: l2,
  }
}

/** Visits the fields of a message; `read` returns true if it has read one, the others are skipped. */
function eachField(reader: Reader, end: number, read: (field: number, wireType: number) => boolean): void {
  while (reader.pos < end) {
    const key = reader.uint32()
    if (!read(key >>> 3, key & 7)) reader.skipType(key & 7)
  }
  if (reader.pos > end) throw new RangeError('a field ends behind its message')
}

/** Visits the messages in a field; each is skipped to its end. */
function eachMessage(reader: Reader, end: number, field: number, read: (end: number) => void): void {
  eachField(reader, end, (number, wireType) => {
    if (number !== field || wireType !== LENGTH_DELIMITED) return false
    const messageEnd = reader.uint32() + reader.pos
    read(messageEnd)
    reader.pos = messageEnd
    return true
  })
}
