/** Data types by TensorFlow's numbers, and how their bytes are held in JavaScript. Source: format.md, "Event". */

import type { DType } from '../types.js'

const NAMES: readonly (readonly [number, DType, number])[] = [
  [1, 'float32', 4],
  [2, 'float64', 8],
  [3, 'int32', 4],
  [4, 'uint8', 1],
  [5, 'int16', 2],
  [6, 'int8', 1],
  [7, 'string', 0],
  [8, 'complex64', 8],
  [9, 'int64', 8],
  [10, 'bool', 1],
  [14, 'bfloat16', 2],
  [17, 'uint16', 2],
  [18, 'complex128', 16],
  [19, 'float16', 2],
  [22, 'uint32', 4],
  [23, 'uint64', 8],
]

const byNumber = new Map(NAMES.map(([number, name]) => [number, name]))
const byName = new Map(NAMES.map(([number, name, byteLength]) => [name, { number, byteLength }]))

/** The dtype of TensorFlow's number; undefined if we do not know it. */
export function dtypeOf(number: number): DType | undefined {
  return byNumber.get(number)
}

/** TensorFlow's number of a dtype. */
export function dtypeNumber(dtype: DType): number {
  return byName.get(dtype)!.number
}

/** Bytes an element takes; 0 for strings. */
export function elementByteLength(dtype: DType): number {
  return byName.get(dtype)!.byteLength
}
