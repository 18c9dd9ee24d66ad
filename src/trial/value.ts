/** A tensor's value: a typed array with its shape and strides, as zarrita and scijs' ndarray have them. */

import { dtypeNumber, elementByteLength } from '../engine/dtype.js'
import { asideEngine } from '../engine/engine.js'
import { UsageError } from '../errors.js'
import { checkOptions, kinds, optionsOf } from '../options.js'
import type { RawValue } from '../pool/message.js'
import type { DType } from '../types.js'

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

/**
 * The value of a tensor at a step, in C order.
 * @typeParam D what holds the elements
 */
export interface TensorValue<D = NumericArray | readonly string[]> {
  readonly dtype: DType
  readonly shape: readonly number[]
  /** In elements, one a dimension. */
  readonly stride: readonly number[]
  /** Of the first element in `data`, in elements. Always 0. */
  readonly offset: number
  /**
   * The elements. float16 and bfloat16 are widened to a Float32Array; bool is a Uint8Array of 0 and 1; complex64 and
   * complex128 are a Float32Array and Float64Array of twice as many numbers, real and imaginary part in turn (shape and
   * stride count complex elements); int64 and uint64 are BigInt arrays; strings are strings.
   */
  readonly data: D
  /** The elements as they were saved: little-endian bytes in C order; empty for strings. */
  readonly bytes: Uint8Array
  /** float16 and bfloat16: the bits. */
  readonly bits?: Uint16Array
  /** float16, where the runtime has Float16Array (Node.js 24): the elements unconverted. */
  readonly float16?: ArrayLike<number>
}

/** Makes a value of what a thread has read. */
export function tensorValue({ dtype, shape, bytes, widened, strings }: RawValue): TensorValue {
  const stride = stridesOf(shape)
  const common = { dtype, shape, stride, offset: 0, bytes }
  if (strings) return { ...common, data: strings }
  if (widened) {
    const bits = new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >> 1)
    const float16 = dtype === 'float16' ? float16Array(bytes) : undefined
    return { ...common, data: widened, bits, ...(float16 && { float16 }) }
  }
  return { ...common, data: typedArray(dtype, bytes) }
}

function typedArray(dtype: DType, bytes: Uint8Array<ArrayBuffer>): NumericArray {
  const { buffer, byteOffset, byteLength } = bytes
  switch (dtype) {
    case 'float32':
    case 'complex64':
      return new Float32Array(buffer, byteOffset, byteLength >> 2)
    case 'float64':
    case 'complex128':
      return new Float64Array(buffer, byteOffset, byteLength >> 3)
    case 'int8':
      return new Int8Array(buffer, byteOffset, byteLength)
    case 'int16':
      return new Int16Array(buffer, byteOffset, byteLength >> 1)
    case 'int32':
      return new Int32Array(buffer, byteOffset, byteLength >> 2)
    case 'int64':
      return new BigInt64Array(buffer, byteOffset, byteLength >> 3)
    case 'uint16':
      return new Uint16Array(buffer, byteOffset, byteLength >> 1)
    case 'uint32':
      return new Uint32Array(buffer, byteOffset, byteLength >> 2)
    case 'uint64':
      return new BigUint64Array(buffer, byteOffset, byteLength >> 3)
    case 'bool':
      return bytes.every(byte => byte < 2) ? bytes : bytes.map(byte => (byte === 0 ? 0 : 1))
    default:
      return bytes
  }
}

type Float16Constructor = new (buffer: ArrayBuffer, byteOffset: number, length: number) => ArrayLike<number>

function float16Array(bytes: Uint8Array<ArrayBuffer>): ArrayLike<number> | undefined {
  const Float16 = (globalThis as { Float16Array?: Float16Constructor }).Float16Array
  return Float16 && new Float16(bytes.buffer, bytes.byteOffset, bytes.byteLength >> 1)
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

/** Tolerances of allclose; the defaults are numpy's. */
export interface Tolerance {
  /** Default 1e-5. */
  readonly rtol?: number
  /** Default 1e-8. */
  readonly atol?: number
  /** Whether NaN is close to NaN. Default false. */
  readonly equalNan?: boolean
}

export const TOLERANCE = optionsOf<Tolerance>({ rtol: kinds.tolerance, atol: kinds.tolerance, equalNan: kinds.flag })

/**
 * Whether every element of `a` is close to that of `b`: |a − b| ≤ atol + rtol·|b|, infinities equal only to
 * themselves. Pairs of float32 are compared in float32 arithmetic, as numpy does, all others in float64.
 * @throws UsageError if the shapes differ, or for strings
 */
export function allclose(a: TensorValue, b: TensorValue, options?: Tolerance): boolean {
  const { rtol = 1e-5, atol = 1e-8, equalNan = false } = checkOptions('allclose', TOLERANCE, options)
  if (a.dtype === 'string' || b.dtype === 'string') {
    throw new UsageError(`expected tensors of numbers to compare, got ${a.dtype} and ${b.dtype}`)
  }
  if (a.shape.length !== b.shape.length || a.shape.some((size, i) => size !== b.shape[i])) {
    throw new UsageError(`expected tensors of one shape, got [${a.shape}] and [${b.shape}]`)
  }
  return asideEngine().countNotClose(a, b, { rtol, atol, equalNan }) === 0
}

/** Bytes that an element takes where it is saved, and TensorFlow's number of its type; 0 bytes for strings. */
export function dtypeInfo(dtype: DType): { readonly byteLength: number; readonly number: number } {
  return { byteLength: elementByteLength(dtype), number: dtypeNumber(dtype) }
}
