/** Data types by TensorFlow's numbers, and how many bytes their elements take. */

import type { DType } from '../types.js'
import { DTypeNumber, ElementByteLength } from './abi.js'

/** The dtype of TensorFlow's number; undefined if we do not know it. */
export function dtypeOf(number: number): DType | undefined {
  return DTypeNumber[number] as DType | undefined
}

/** TensorFlow's number of a dtype. */
export function dtypeNumber(dtype: DType): number {
  return DTypeNumber[dtype]
}

/** Bytes an element takes; 0 for strings. */
export function elementByteLength(dtype: DType): number {
  return ElementByteLength[dtype]
}
