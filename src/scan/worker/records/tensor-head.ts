/**
 * The content of a checkpoint's record, from its head alone. The core has 32-bit record lengths, which suffices for a protobuf message; a
 * tensor of a checkpoint may be longer.
 */

import { EngineError } from '../../../base/errors.js'
import { FOOTER_LENGTH, HEADER_LENGTH } from '../../../core/border/framing.js'
import { dtypeOf } from '../../../core/dtype.js'
import type { RecordContents } from '../../../core/slots.js'
import { Cursor, EVENT_STEP, EVENT_SUMMARY, VALUE_TENSOR } from '../../../format/event-head.js'

const TENSOR_DTYPE = 0x08
const TENSOR_SHAPE = 0x12
const TENSOR_CONTENT = 0x22
const SHAPE_DIM = 0x12
const DIM_SIZE = 0x08

/**
 * @param head the record's bytes before its elements, as a composed store makes them
 * @param byteLength the length of the record with its frame
 */
export function contentsOf(head: Uint8Array, byteLength: number): RecordContents {
  const bytes = {
    has: () => true,
    byte: (at: number) => head[at]!,
    slice: (at: number, length: number) => head.subarray(at, at + length),
  }
  const cursor = new Cursor(bytes, HEADER_LENGTH)
  let [eventStep, dtypeNumber, dataOffset, dataByteLength] = [0, 0, 0, 0]
  const shape: number[] = []
  const each = (end: number, visit: () => void): void => {
    while (cursor.next(end).next().value === true) visit()
  }
  const readShape = (): void =>
    each(cursor.enter(), () => {
      if (cursor.key !== SHAPE_DIM) return
      each(cursor.enter(), () => {
        if (cursor.key === DIM_SIZE) shape.push(cursor.value)
      })
    })
  const readTensor = (): void =>
    each(cursor.enter(), () => {
      if (cursor.key === TENSOR_DTYPE) dtypeNumber = cursor.value
      else if (cursor.key === TENSOR_SHAPE) readShape()
      else if (cursor.key === TENSOR_CONTENT) [dataOffset, dataByteLength] = [cursor.start, cursor.byteLength]
    })
  each(byteLength - FOOTER_LENGTH, () => {
    if (cursor.key === EVENT_STEP) eventStep = cursor.value
    else if (cursor.key === EVENT_SUMMARY) {
      each(cursor.enter(), () => {
        each(cursor.enter(), () => {
          if (cursor.key === VALUE_TENSOR) readTensor()
        })
      })
    }
  })
  const dtype = dtypeOf(dtypeNumber)
  if (dtype === undefined) throw new EngineError(`expected a known data type in a head, got number ${dtypeNumber}`)
  const elementCount = shape.reduce((product, size) => product * size, 1)
  return {
    dtype,
    shape,
    elementCount,
    valueCount: 0,
    kind: 'content',
    dataOffset,
    dataByteLength,
    mode: 0,
    modeStep: -1,
    eventStep,
    wallTime: 0,
  }
}
