/** All elements of a tensor as text, for other programs: an element a line, or one JSON object with all of them. */

import { type DType, REDUCTIONS } from '../../base/types.js'
import type { Complex } from '../../core/moments.js'
import type { ScanRow } from '../../scan/job/row.js'
import * as rowText from '../../scan/job/row.js'
import type { TensorData } from '../../scan/job/tensor/data.js'
import { safe, safeJson } from '../terminal.js'
import { csvLine, jsonOf } from './lines.js'
import { complexText, jsonNumber, plainNumber } from './number.js'

/** The length of the pieces in which text is passed on: a tensor can have a hundred million elements. */
const PIECE_LENGTH = 1 << 16

/** The elements in C order. jsonl: `{"index":[0,2],"value":1.5}`; csv: a column for each axis, then the value. */
export function* elementLines(value: TensorData, format: 'csv' | 'jsonl', onTerminal: boolean): Generator<string> {
  const { shape } = value
  const text = elementText(value, format === 'csv' ? CSV_ELEMENT : JSON_ELEMENT)
  let piece = format === 'csv' ? csvLine([...shape.map((_, axis) => `index_${axis}`), 'value'], onTerminal) : ''
  const count = shape.reduce((product, size) => product * size, 1)
  const index = shape.map(() => 0)
  for (let at = 0; at < count; at++) {
    const line = format === 'csv' ? [...index, text(at)].join(',') : `{"index":[${index}],"value":${text(at)}}`
    piece += `${onTerminal ? (format === 'csv' ? safe(line) : safeJson(line)) : line}\n`
    for (let axis = shape.length - 1; axis >= 0 && ++index[axis]! === shape[axis]; axis--) index[axis] = 0
    if (piece.length < PIECE_LENGTH) continue
    yield piece
    piece = ''
  }
  yield piece
}

/** The object of a scan's line, with the elements as nested arrays; null if only reductions were saved. */
export function* valueJson(row: ScanRow, value: TensorData | null, onTerminal: boolean): Generator<string> {
  const shown = (json: string) => (onTerminal ? safeJson(json) : json)
  const object = rowText.rowFormat('jsonl', REDUCTIONS).line(row).trimEnd()
  yield shown(`${object.slice(0, -1)},"values":`)
  let piece = ''
  if (value === null) piece = 'null'
  else {
    const text = elementText(value, JSON_ELEMENT)
    for (const part of nested(value, 0, 0, text)) {
      piece += shown(part)
      if (piece.length < PIECE_LENGTH) continue
      yield piece
      piece = ''
    }
  }
  yield `${piece}}\n`
}

function* nested(
  value: Pick<TensorData, 'shape' | 'stride'>,
  axis: number,
  offset: number,
  text: (at: number) => string,
): Generator<string> {
  const { shape, stride } = value
  if (axis === shape.length) {
    yield text(offset)
    return
  }
  yield '['
  for (let i = 0; i < shape[axis]!; i++) {
    if (i > 0) yield ','
    const at = offset + i * stride[axis]!
    if (axis === shape.length - 1) yield text(at)
    else yield* nested(value, axis + 1, at, text)
  }
  yield ']'
}

/** Functions that write an element of each kind. */
interface ElementWriter {
  readonly text: (text: string) => string
  readonly number: (number: number | bigint) => string
  readonly complex: (number: Complex) => string
}

/** JSON as in lines of a scan: NaN and infinities are strings, and complex numbers objects. */
const JSON_ELEMENT: ElementWriter = { text: JSON.stringify, number: jsonNumber, complex: jsonOf }
const CSV_ELEMENT: ElementWriter = { text: rowText.csvCell, number: plainNumber, complex: complexText }

/** An element as text, by its index. */
export function elementText(
  { dtype, data }: TensorData,
  { text, number, complex }: ElementWriter,
): (at: number) => string {
  if (dtype === 'string') return at => text((data as readonly string[])[at]!)
  if (dtype === 'bool') return at => ((data as Uint8Array)[at] ? 'true' : 'false')
  if (dtype === 'complex64' || dtype === 'complex128') {
    const parts = data as Float64Array
    return at => complex({ re: parts[2 * at]!, im: parts[2 * at + 1]! })
  }
  return at => number((data as ArrayLike<number | bigint>)[at]!)
}

/** A note on the substitute for a dtype that numpy lacks; null if numpy has the dtype. */
export function npySubstitute(dtype: DType): string | null {
  if (dtype === 'bfloat16') return 'numpy has no bfloat16: it is float32 there, nothing is lost'
  if (dtype === 'float4_e2m1fn') {
    return 'numpy has no float4_e2m1fn: its bits are there as uint8, two elements in each, the first in the lower half'
  }
  if (!dtype.startsWith('float8')) return null
  return `numpy has no ${dtype}: its bits are there as uint8, .view(ml_dtypes.${dtype}) reads them`
}
