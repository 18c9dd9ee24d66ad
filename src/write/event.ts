/** Makes records of an event file as smdebug's hook writes them: an Event with one Summary.Value, in a TFRecord frame. */

import { type DType, MODES, type Mode } from '../base/types.js'
import { FOOTER_LENGTH } from '../core/border/framing.js'
import { dtypeNumber } from '../core/dtype.js'
import { beginRecord, endRecord } from './frame.js'

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

/**
 * A record in pieces, with smdebug's constant instead of the payload's checksum. The given content is one of them, and not copied.
 * @throws UsageError if it is too long
 */
export function framedRecord(record: TensorRecord): readonly Uint8Array[] {
  const { wallTime, step, mode, modeStep, tag, shape, value } = record
  const out = beginRecord()
  const plugin = (name: string, text: string): void => {
    const end = out.byteLength
    out.text(2, text)
    out.text(1, name)
    out.message(1, end)
  }
  // Value.metadata, the last field.
  plugin('mode', `${MODES.indexOf(mode) + 1}`)
  plugin('mode_step', `${modeStep}`)
  out.message(9, FOOTER_LENGTH)
  const tailLength = out.byteLength
  // TensorProto.
  const content = 'bytes' in value ? value.bytes : null
  if (content !== null && content.length > 0) {
    out.leaveOut(content.length)
    out.message(4, tailLength)
  }
  if (!('bytes' in value)) for (const text of value.toReversed()) out.text(8, text)
  const shapeEnd = out.byteLength
  for (const size of shape.toReversed()) {
    const end = out.byteLength
    out.text(2, `${tag}_${size}`)
    out.varint(1, size)
    out.message(2, end)
  }
  out.message(2, shapeEnd)
  // The hook leaves the dtype of texts at 0.
  if ('bytes' in value) out.varint(1, dtypeNumber(value.dtype))
  out.message(8, tailLength)
  out.text(1, tag)
  // Summary and Event.
  out.message(1, FOOTER_LENGTH)
  out.message(5, FOOTER_LENGTH)
  out.varint(2, step)
  out.double(1, wallTime)
  endRecord(out, tag)
  const [head, tail] = out.written(tailLength)
  return content === null ? [head, tail] : [head, content, tail]
}
