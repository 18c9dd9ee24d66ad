/**
 * TensorBoard's histograms (HistogramProto, format.md "Event"). As a value, a histogram is what TensorBoard itself
 * makes of it: a float64 tensor with a row `left, right, count` per bucket; the outermost edges are the smallest and
 * largest number. Its reductions are those of the data it was made from, as far as it tells them.
 */

import type { Reader } from 'protobufjs/minimal.js'
import type { ReductionName } from '../types.js'
import { LENGTH_DELIMITED } from './event-head.js'

export interface Histogram {
  /** Rows of left edge, right edge and count. */
  readonly rows: Float64Array<ArrayBuffer>
  readonly reductions: Readonly<Partial<Record<ReductionName, number>>>
  /** When it was written, in seconds since 1970; 0: the Event does not say. */
  readonly wallTime: number
}

const EVENT_WALL_TIME_FIELD = 1
const EVENT_SUMMARY_FIELD = 5
const SUMMARY_VALUE_FIELD = 1
const VALUE_TAG_FIELD = 1
const VALUE_HISTOGRAM_FIELD = 5
/** A wire type. */
const FIXED_64 = 1
/** The singular doubles of a HistogramProto; the repeated ones come after them. */
const SCALARS = ['min', 'max', 'num', 'sum', 'sumSquares'] as const
const BUCKET_LIMIT = 6
const BUCKET = 7

type Scalars = Record<(typeof SCALARS)[number], number>

/** What a HistogramProto holds. */
interface Content {
  readonly scalars: Scalars
  readonly limits: number[]
  readonly counts: number[]
}

/** The histogram with that tag in an Event; null if there is none. */
export async function decodeHistogram(event: Uint8Array, tag: string): Promise<Histogram | null> {
  const { default: protobuf } = await import('protobufjs/minimal.js')
  try {
    return findHistogram(protobuf.Reader.create(event), tag)
  } catch {
    // Malformed bytes hold no histogram; the core has already said what is wrong with them.
    return null
  }
}

/** Whether a Value that has a histogram field holds a histogram that can be read. */
export async function isHistogram(value: Uint8Array): Promise<boolean> {
  const { default: protobuf } = await import('protobufjs/minimal.js')
  try {
    return readSummaryValue(protobuf.Reader.create(value), value.length, null) !== null
  } catch {
    return false
  }
}

function findHistogram(reader: Reader, tag: string): Histogram | null {
  let found: Content | null = null
  let wallTime = 0
  eachField(reader, reader.len, (field, wireType) => {
    if (field === EVENT_WALL_TIME_FIELD && wireType === FIXED_64) wallTime = reader.double()
    else if (field === EVENT_SUMMARY_FIELD && wireType === LENGTH_DELIMITED) {
      const summaryEnd = reader.uint32() + reader.pos
      eachMessage(reader, summaryEnd, SUMMARY_VALUE_FIELD, valueEnd => {
        found ??= readSummaryValue(reader, valueEnd, tag)
      })
    } else return false
    return true
  })
  return found && histogramOf(found, wallTime)
}

/** @param tag the tag that the Value must have; null for any */
function readSummaryValue(reader: Reader, end: number, tag: string | null): Content | null {
  let ownTag = ''
  let content: Content | null = null
  eachField(reader, end, (field, wireType) => {
    if (wireType !== LENGTH_DELIMITED) return false
    if (field === VALUE_TAG_FIELD) ownTag = reader.string()
    else if (field === VALUE_HISTOGRAM_FIELD) {
      // A message that comes in pieces is merged, as protobuf requires.
      content ??= { scalars: { min: 0, max: 0, num: 0, sum: 0, sumSquares: 0 }, limits: [], counts: [] }
      readContent(reader, reader.uint32() + reader.pos, content)
    } else return false
    return true
  })
  return tag === null || ownTag === tag ? content : null
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

/** What the sums tell. For absolute values that is everything if no number is negative, and only the norm otherwise. */
function reductionsOf({ min, max, num, sum, sumSquares }: Scalars): Histogram['reductions'] {
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

/** Visits the fields of a message; `read` says whether it has read one, the others are skipped. */
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
