/** Data types by TensorFlow's numbers, and the size of their elements. */

import type { DType } from '../base/types.js'
import { DTypeNumber, ElementBits } from './border/abi.js'

/** The known dtypes. */
export const DTYPES = Object.keys(DTypeNumber).filter((name): name is DType => Number.isNaN(Number(name)))

/** The dtype with a TensorFlow number; undefined if we do not know it. */
export function dtypeOf(number: number): DType | undefined {
  return DTypeNumber[number] as DType | undefined
}

/** TensorFlow's number of a dtype. */
export function dtypeNumber(dtype: DType): number {
  return DTypeNumber[dtype]
}

/** True if a dtype is a known one of numbers. In plain JavaScript the argument may be anything. */
export function isNumeric(dtype: DType): boolean {
  return typeof dtype === 'string' && dtype !== 'string' && dtypeOf(dtypeNumber(dtype)) === dtype
}

/** Dtypes that lack some reductions, or have reductions that float64 can't hold. */
const OUT_OF_ORDINARY: ReadonlySet<DType> = new Set<DType>(['string', 'complex64', 'complex128', 'int64', 'uint64'])

/** True if all reductions exist for a dtype, and float64 holds them. */
export function isOrdinary(dtype: DType): boolean {
  return !OUT_OF_ORDINARY.has(dtype)
}

/** Typed arrays by name, with the dtype of each. */
const ARRAYS: Readonly<Record<string, DType>> = {
  Float16Array: 'float16',
  Float32Array: 'float32',
  Float64Array: 'float64',
  Int8Array: 'int8',
  Int16Array: 'int16',
  Int32Array: 'int32',
  BigInt64Array: 'int64',
  Uint8Array: 'uint8',
  Uint8ClampedArray: 'uint8',
  Uint16Array: 'uint16',
  Uint32Array: 'uint32',
  BigUint64Array: 'uint64',
}

/** The dtype of a typed array's elements, including a Buffer's; undefined for a DataView. */
export function dtypeOfArray(array: ArrayBufferView): DType | undefined {
  return ARRAYS[(array as { readonly [Symbol.toStringTag]?: string })[Symbol.toStringTag] ?? '']
}

/** Floats without an array type in every JavaScript engine: their elements are converted to float32, exactly. */
export type NarrowFloat =
  | 'float16'
  | 'bfloat16'
  | 'float8_e4m3fn'
  | 'float8_e5m2'
  | 'float8_e4m3fnuz'
  | 'float8_e5m2fnuz'
  | 'float8_e8m0fnu'
  | 'float4_e2m1fn'

/** True for a float of at most 16 bits. */
export function isNarrowFloat(dtype: DType): dtype is NarrowFloat {
  return isFloat(dtype) && ElementBits[dtype] <= 16
}

/** True for real floats. */
export function isFloat(dtype: DType): boolean {
  return dtype.startsWith('float') || dtype === 'bfloat16'
}

/** Bytes per element: 0 for strings, a half for float4. */
export function elementByteLength(dtype: DType): number {
  return ElementBits[dtype] / 8
}

/** The number of bytes of densely packed elements. */
export function byteLengthOf(dtype: DType, count: number): number {
  return Math.ceil(count * elementByteLength(dtype))
}
