/** Makes records of an event file as smdebug's hook writes them: an Event with one Summary.Value, in a TFRecord frame. */

import { type DType, MODES, type Mode } from '../base/types.js'
import { FOOTER_LENGTH } from '../core/border/framing.js'
import { dtypeNumber } from '../core/dtype.js'
import { Backwards } from './backwards.js'
import { type FramedRecord, inFrame } from './frame.js'

/** The content of a record. */
export interface TensorRecord {
  /** The time in seconds since 1970. */
  readonly wallTime: number
  /** The global step. */
  readonly step: number
  readonly mode: Mode
  readonly modeStep: number
  readonly tag: string
  readonly shape: readonly number[]
  /** The elements, little-endian in C order, and their dtype; or texts, one per element. */
  readonly value: { readonly dtype: DType; readonly bytes: Uint8Array } | readonly string[]
}

const NOTHING = new Uint8Array(0)
const out = new Backwards()

/**
 * A record, with smdebug's constant instead of the payload's checksum. It refers to the given content without copying it.
 * @throws UsageError if it is too long
 */
export function framedRecord(record: TensorRecord): FramedRecord {
  const { wallTime, step, mode, modeStep, tag, shape, value } = record
  const isDense = 'bytes' in value
  const content = isDense ? value.bytes : NOTHING
  out.reset()
  out.room(FOOTER_LENGTH)
  // Value.metadata, the last field.
  plugin('mode', `${MODES.indexOf(mode) + 1}`)
  plugin('mode_step', `${modeStep}`)
  out.message(9, FOOTER_LENGTH)
  const tailLength = out.byteLength
  // TensorProto.
  if (content.length > 0) {
    out.leaveOut(content.length)
    out.message(4, tailLength)
  }
  if (!isDense) for (let i = value.length - 1; i >= 0; i--) out.text(8, value[i]!)
  const shapeEnd = out.byteLength
  for (let i = shape.length - 1; i >= 0; i--) {
    const end = out.byteLength
    out.text(2, `${tag}_${shape[i]}`)
    out.varint(1, shape[i]!)
    out.message(2, end)
  }
  out.message(2, shapeEnd)
  // The hook leaves the dtype of texts at 0.
  if (isDense) out.varint(1, dtypeNumber(value.dtype))
  out.message(8, tailLength)
  out.text(1, tag)
  // Summary and Event.
  out.message(1, FOOTER_LENGTH)
  out.message(5, FOOTER_LENGTH)
  out.varint(2, step)
  out.double(1, wallTime)
  return inFrame(out, { content, tailLength, name: tag })
}

function plugin(name: string, text: string): void {
  const end = out.byteLength
  out.text(2, text)
  out.text(1, name)
  out.message(1, end)
}
