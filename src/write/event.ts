/**
 * Records of an event file, as smdebug's hook writes them: an Event with one Summary.Value, in a TFRecord frame
 * (format.md "TFRecord", "Event").
 */

import { FOOTER_LENGTH, FRAMING_LENGTH, HEADER_LENGTH, UNCHECKED_CRC } from '../engine/border/framing.js'
import { dtypeNumber } from '../engine/dtype.js'
import { UsageError } from '../errors.js'
import { RECORD_LIMIT } from '../job/plan/memory.js'
import { crc32c } from '../kernels/checksum.js'
import { type DType, MODES, type Mode } from '../types.js'
import { Backwards } from './backwards.js'

/** What a record holds. */
export interface TensorRecord {
  /** Seconds since 1970. */
  readonly wallTime: number
  /** The global step. */
  readonly step: number
  readonly mode: Mode
  readonly modeStep: number
  readonly tag: string
  readonly shape: readonly number[]
  /** Elements, little-endian in C order, and their dtype; or texts, one an element. */
  readonly value: { readonly dtype: DType; readonly bytes: Uint8Array } | readonly string[]
}

/** A record in three pieces, of which only the middle one is always long. */
export interface FramedRecord {
  /** To be used before the next record is made. */
  readonly head: Uint8Array
  readonly content: Uint8Array
  /** To be used before the next record is made. */
  readonly tail: Uint8Array
  readonly byteLength: number
}

const NOTHING = new Uint8Array(0)
const out = new Backwards()

/**
 * A record. Its content is that which was given, not a copy.
 * @param isChecked whether it has a true checksum of its payload; else smdebug's constant
 * @throws UsageError for one that is too long
 */
export function framedRecord(record: TensorRecord, isChecked: boolean): FramedRecord {
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
  // Summary, and Event.
  out.message(1, FOOTER_LENGTH)
  out.message(5, FOOTER_LENGTH)
  out.varint(2, step)
  out.double(1, wallTime)
  const payloadLength = out.byteLength - FOOTER_LENGTH
  if (payloadLength + FRAMING_LENGTH > RECORD_LIMIT) {
    const most = `at most ${RECORD_LIMIT - FRAMING_LENGTH} bytes in a record`
    const message = `${tag}: expected ${most}, got ${payloadLength}: save it in pieces, each a tensor of its own`
    throw new UsageError(message, { tensor: tag })
  }
  out.room(HEADER_LENGTH)
  const head = out.written(tailLength)
  const header = new DataView(head.buffer, head.byteOffset)
  header.setBigUint64(0, BigInt(payloadLength), true)
  header.setUint32(8, masked(crc32c(head.subarray(0, 8))), true)
  const tail = out.end(tailLength)
  let crc = UNCHECKED_CRC
  if (isChecked) {
    const crcOfHead = crc32c(head.subarray(HEADER_LENGTH))
    crc = masked(crc32c(tail.subarray(0, -FOOTER_LENGTH), crc32c(content, crcOfHead)))
  }
  new DataView(tail.buffer, tail.byteOffset).setUint32(tailLength - FOOTER_LENGTH, crc, true)
  return { head, content, tail, byteLength: payloadLength + FRAMING_LENGTH }
}

function plugin(name: string, text: string): void {
  const end = out.byteLength
  out.text(2, text)
  out.text(1, name)
  out.message(1, end)
}

/** The checksum as TFRecord stores it: rotated, and a constant added. */
function masked(crc: number): number {
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0
}
