/**
 * Records of TensorBoard event files: an Event with one Summary.Value, with true checksums. Values use the forms that every version of
 * TensorBoard reads (`simple_value`, `histo` and `image`); newer versions convert them to tensors.
 */

import { FOOTER_LENGTH } from '../../core/border/framing.js'
import type { Backwards } from '../backwards.js'
import { beginRecord, endRecord, seal } from '../frame.js'

/** HistogramProto. */
export interface HistogramSummary {
  readonly min: number
  readonly max: number
  /** The number of values, their sum, and the sum of their squares. */
  readonly num: number
  readonly sum: number
  readonly sumSquares: number
  /** The upper limit of each bucket; the first bucket begins at the minimum. */
  readonly limits: readonly number[]
  /** The number of values in each bucket. */
  readonly counts: readonly number[]
}

/** Summary.Image. */
export interface ImageSummary {
  readonly height: number
  readonly width: number
  /** The number of channels: 1 for grey, 3 for RGB, 4 for RGB and alpha. */
  readonly channels: number
  readonly png: Uint8Array
}

/** The content of a Value. */
export type Summary =
  | { readonly scalar: number }
  | { readonly histogram: HistogramSummary }
  | { readonly image: ImageSummary }

/** The time, step and tag of a summary. */
export interface SummaryPlace {
  /** The time in seconds since 1970. */
  readonly wallTime: number
  readonly step: number
  readonly tag: string
}

/** The first record of an event file. */
export function versionRecord(wallTime: number): Uint8Array {
  const out = beginRecord()
  out.text(3, 'brain.Event:2')
  out.double(1, wallTime)
  return sealed(out, '')
}

/** @throws UsageError if it is too long */
export function summaryRecord({ wallTime, step, tag }: SummaryPlace, summary: Summary): Uint8Array {
  const out = beginRecord()
  if ('scalar' in summary) out.float(2, summary.scalar)
  else if ('image' in summary) {
    const { height, width, channels, png } = summary.image
    out.bytes(4, png)
    out.varint(3, channels)
    out.varint(2, width)
    out.varint(1, height)
    out.message(4, FOOTER_LENGTH)
  } else {
    const { min, max, num, sum, sumSquares, limits, counts } = summary.histogram
    for (const [field, numbers] of [[7, counts] as const, [6, limits] as const]) {
      out.bytes(field, new Uint8Array(Float64Array.from(numbers).buffer))
    }
    out.double(5, sumSquares)
    out.double(4, sum)
    out.double(3, num)
    out.double(2, max)
    out.double(1, min)
    out.message(5, FOOTER_LENGTH)
  }
  out.text(1, tag)
  // Summary and Event.
  out.message(1, FOOTER_LENGTH)
  out.message(5, FOOTER_LENGTH)
  out.varint(2, step)
  out.double(1, wallTime)
  return sealed(out, tag)
}

function sealed(out: Backwards, name: string): Uint8Array {
  endRecord(out, name)
  const [record] = out.written(0)
  seal([record])
  return record
}
