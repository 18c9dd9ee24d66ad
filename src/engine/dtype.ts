/** Data types by TensorFlow's numbers, and the size of their elements. */

import type { DType } from '../types.js'
import { DTypeNumber, ElementByteLength } from './abi.js'

/** The dtype with a TensorFlow number; undefined if we do not know it. */
export function dtypeOf(number: number): DType | undefined {
  return DTypeNumber[number] as DType | undefined
}

/** TensorFlow's number of a dtype. */
export function dtypeNumber(dtype: DType): number {
  return DTypeNumber[dtype]
}

/** Bytes per element; 0 for strings. */
export function elementByteLength(dtype: DType): number {
  return ElementByteLength[dtype]
}
