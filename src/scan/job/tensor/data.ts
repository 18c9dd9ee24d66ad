/** The data of a value: a typed array with shape and strides, as in zarrita and scijs' ndarray. */

import type { DType } from '../../../base/types.js'
import type { RawValue } from '../value-job.js'

export type NumericArray =
  | Float32Array
  | Float64Array
  | Int8Array
  | Int16Array
  | Int32Array
  | BigInt64Array
  | Uint8Array
  | Uint16Array
  | Uint32Array
  | BigUint64Array

/** The JavaScript array of the elements, by dtype. */
export interface ElementsOf {
  float16: Float32Array
  bfloat16: Float32Array
  float8_e4m3fn: Float32Array
  float8_e5m2: Float32Array
  float8_e4m3fnuz: Float32Array
  float8_e5m2fnuz: Float32Array
  float8_e8m0fnu: Float32Array
  float4_e2m1fn: Float32Array
  float32: Float32Array
  float64: Float64Array
  int8: Int8Array
  int16: Int16Array
  int32: Int32Array
  int64: BigInt64Array
  uint8: Uint8Array
  uint16: Uint16Array
  uint32: Uint32Array
  uint64: BigUint64Array
  bool: Uint8Array
  complex64: Float32Array
  complex128: Float64Array
  string: readonly string[]
}

/** The data of a value of one dtype. */
export interface DataOf<D extends DType> {
  readonly dtype: D
  readonly shape: readonly number[]
  /** The distance of neighbours along each axis, in elements. */
  readonly stride: readonly number[]
  /** The index of the first element in `data`; 0 except in slices. */
  readonly offset: number
  /**
   * The elements. Floats of 16 bits and less are widened to a Float32Array. bool is a Uint8Array of 0 and 1. complex64 and complex128 are
   * a Float32Array and a Float64Array with two numbers per element, real part first; shape and stride count complex elements. int64 and
   * uint64 are BigInt arrays. Strings are an array of strings.
   */
  readonly data: ElementsOf[D]
  /**
   * The elements as they were saved: little-endian, in C order, float4 in pairs (the first in the lower half of the byte); empty for
   * strings.
   */
  readonly bytes: Uint8Array
  /** Only for floats of 16 and 8 bits: the bits of each element, laid out as `data`. */
  readonly bits?: D extends 'float16' | 'bfloat16' ? Uint16Array : D extends `float8${string}` ? Uint8Array : undefined
  /** Only for float16, if the runtime has Float16Array (Node.js 24): the elements unconverted, laid out as `data`. */
  readonly float16?: D extends 'float16' ? ArrayLike<number> : undefined
}

/**
 * A value without methods, which can be cloned and passed to calls that take values. Its `dtype` determines the type of `data`.
 * @typeParam D narrows the dtypes: `TensorData<'float32' | 'float64'>`
 */
export type TensorData<D extends DType = DType> = { readonly [K in D]: DataOf<K> }[D]

/**
 * The data of a value, from what a thread has read. Written without spread, which takes 1 µs (Node.js 20), half as long as reading a
 * small value.
 */
export function tensorData({ dtype, shape, bytes, widened, strings }: RawValue): TensorData {
  // The thread has checked that the data match the dtype.
  const data = strings ?? widened ?? typedArray(dtype, bytes)
  const plainValue = { dtype, shape, stride: stridesOf(shape), offset: 0, bytes, data } as TensorData
  return widened ? withBits(plainValue, bytes) : plainValue
}

/** Adds the saved bits of narrow floats, except for float4, which has two in a byte. */
function withBits(converted: TensorData, bytes: Uint8Array<ArrayBuffer>): TensorData {
  if (converted.dtype === 'float4_e2m1fn') return converted
  if (converted.dtype !== 'float16' && converted.dtype !== 'bfloat16')
    return { ...converted, bits: bytes } as TensorData
  const bits = new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 2)
  const float16 = converted.dtype === 'float16' ? float16Array(bytes) : undefined
  return { ...converted, bits, ...(float16 && { float16 }) } as TensorData
}

function typedArray(dtype: DType, bytes: Uint8Array<ArrayBuffer>): NumericArray {
  const { buffer, byteOffset, byteLength } = bytes
  switch (dtype) {
    case 'float32':
    case 'complex64':
      return new Float32Array(buffer, byteOffset, byteLength / 4)
    case 'float64':
    case 'complex128':
      return new Float64Array(buffer, byteOffset, byteLength / 8)
    case 'int8':
      return new Int8Array(buffer, byteOffset, byteLength)
    case 'int16':
      return new Int16Array(buffer, byteOffset, byteLength / 2)
    case 'int32':
      return new Int32Array(buffer, byteOffset, byteLength / 4)
    case 'int64':
      return new BigInt64Array(buffer, byteOffset, byteLength / 8)
    case 'uint16':
      return new Uint16Array(buffer, byteOffset, byteLength / 2)
    case 'uint32':
      return new Uint32Array(buffer, byteOffset, byteLength / 4)
    case 'uint64':
      return new BigUint64Array(buffer, byteOffset, byteLength / 8)
    case 'bool':
      return booleans(bytes)
    default:
      return bytes
  }
}

/** Booleans as 0 and 1; anything but 0 is true. */
function booleans(bytes: Uint8Array<ArrayBuffer>): Uint8Array {
  let at = 0
  // Without a function call per element: there can be billions.
  while (at < bytes.length && bytes[at]! < 2) at++
  if (at === bytes.length) return bytes
  const data = bytes.slice()
  for (; at < data.length; at++) if (data[at] !== 0) data[at] = 1
  return data
}

type Float16Constructor = new (buffer: ArrayBuffer, byteOffset: number, length: number) => ArrayLike<number>

function float16Array(bytes: Uint8Array<ArrayBuffer>): ArrayLike<number> | undefined {
  const Float16 = (globalThis as { Float16Array?: Float16Constructor }).Float16Array
  return Float16 && new Float16(bytes.buffer, bytes.byteOffset, bytes.byteLength / 2)
}

/** Strides of a C-order array, in elements. */
export function stridesOf(shape: readonly number[]): number[] {
  const strides = new Array<number>(shape.length)
  let stride = 1
  for (let i = shape.length - 1; i >= 0; i--) {
    strides[i] = stride
    stride *= shape[i]!
  }
  return strides
}

/** True if the elements are dense in C order. */
export function isDense(shape: readonly number[], stride: readonly number[]): boolean {
  const dense = stridesOf(shape)
  return shape.includes(0) || shape.every((size, axis) => size === 1 || stride[axis] === dense[axis])
}
