/** The arguments of kernels: arrays of numbers of any kind, validated. */

import { quote, UsageError } from '../base/errors.js'
import type { DType } from '../base/types.js'
import { byteLengthOf, dtypeOfArray, elementByteLength, isNumeric } from '../core/dtype.js'
import type { ArrayElements } from '../scan/job/array-job.js'
import { isDense, type NumericArray, stridesOf, type TensorData } from '../scan/job/tensor/data.js'
import { allocationOf } from './allocate.js'
import { described, isObject, list, wrong } from './wrong.js'

/** An array with a dtype or layout that a typed array alone doesn't have. */
export interface StridedArray {
  /**
   * A typed array of the dtype: two numbers per element for complex64 (Float32Array) and complex128 (Float64Array), the bits for float16
   * and bfloat16 (Uint16Array). Or the little-endian bytes, as a Uint8Array, DataView or buffer; for float4 two elements per byte, the
   * first in the lower half.
   */
  readonly data: ArrayBufferView | ArrayBufferLike
  /** The dtype. Default: that of the typed array. */
  readonly dtype?: DType
  /** The shape. Default: one dimension with all elements (two per byte for float4). */
  readonly shape?: readonly number[]
  /** The distance of neighbours along each axis, in elements; any integers. Default: C order. */
  readonly stride?: readonly number[]
  /** The index of the first element. Default: 0. */
  readonly offset?: number
}

/** Numbers: a typed array (also a Float16Array, if the platform has it), elements with a description, or the value of a tensor. */
export type ArrayInput = NumericArray | Uint8ClampedArray | ArrayBufferView | StridedArray | TensorData

/** The dtypes that a typed array can hold in place of its own. */
const OTHER_DTYPES: Readonly<Record<string, readonly DType[]>> = {
  float32: ['complex64'],
  float64: ['complex128'],
  uint16: ['float16', 'bfloat16'],
}

/** @param call the call as written, for messages @throws UsageError */
export function elementsOf(call: string, given: ArrayInput): ArrayElements {
  if (ArrayBuffer.isView(given)) return arrayOf(call, { data: given })
  if (!isObject(given) || !('data' in given)) {
    throw wrong(call, 'a typed array, or elements as { data, dtype, shape, stride, offset }', described(given))
  }
  // The data of a value may be widened, and may be more than a slice; its bytes are as saved, in C order.
  if ('bytes' in given) return arrayOf(call, { data: given.bytes, dtype: given.dtype, shape: given.shape })
  return arrayOf(call, given)
}

function arrayOf(call: string, { data, dtype: given, shape, stride, offset = 0 }: StridedArray): ArrayElements {
  const bytes = bytesOf(call, data)
  const arrayDType = ArrayBuffer.isView(data) ? dtypeOfArray(data) : undefined
  const dtype = given ?? (ArrayBuffer.isView(data) ? allocatedDType(data, arrayDType) : undefined)
  if (dtype === undefined) throw wrong(call, 'a dtype beside a buffer or a DataView', 'none')
  if (!isNumeric(dtype)) throw wrong(call, 'the dtype of numbers', quote(String(dtype)))
  const size = elementByteLength(dtype)
  const isRaw = arrayDType === undefined || arrayDType === 'uint8'
  if (!isRaw && arrayDType !== dtype && !OTHER_DTYPES[arrayDType]?.includes(dtype)) {
    throw wrong(call, `${dtype} elements in an array of them, or as bytes`, `an array of ${arrayDType}`)
  }
  if (bytes.length % size !== 0) throw wrong(call, `whole elements of ${size} bytes`, `${bytes.length} bytes`)
  const held = bytes.length / size
  if (!Number.isSafeInteger(offset) || offset < 0 || offset > held) {
    throw wrong(call, `an offset from 0 to ${held}`, described(offset))
  }
  const sizes = shape ?? [stride === undefined ? held - offset : held]
  if (!isList(sizes, size => size >= 0)) throw wrong(call, 'a shape of whole numbers from 0', described(shape))
  const count = sizes.reduce((product, size) => product * size, 1)
  if (!Number.isSafeInteger(count)) throw wrong(call, 'at most 2^53 elements', `shape ${list(sizes)}`)
  if (stride === undefined) {
    // The last half of a byte of float4 may be unused.
    const isFull = count === held - offset || (size < 1 && count === held - offset - 1)
    if (!isFull) {
      throw wrong(call, `${count} elements, as the shape ${list(sizes)} says`, `${held - offset}`)
    }
    return adjacent(dtype, sizes, count, bytes, offset)
  }
  if (!isList(stride) || stride.length !== sizes.length) {
    throw wrong(call, `a stride for each dimension of the shape ${list(sizes)}`, described(stride))
  }
  const [first, last] = reach(sizes, stride, offset)
  if (count > 0 && (first < 0 || last >= held)) {
    const places = `shape ${list(sizes)}, stride ${list(stride)} and offset ${offset}, which reach from ${first} to ${last}`
    throw wrong(call, `indices from 0 to ${held - 1}`, places)
  }
  if (isDense(sizes, stride)) {
    return adjacent(dtype, sizes, count, bytes, count === 0 ? 0 : offset)
  }
  return { dtype, shape: sizes, count, bytes, layout: { shape: sizes, stride, offset } }
}

/** Contiguous elements from an index on. */
function adjacent(
  dtype: DType,
  shape: readonly number[],
  count: number,
  bytes: Uint8Array,
  offset: number,
): ArrayElements {
  const from = offset * elementByteLength(dtype)
  // The start lies within a byte.
  if (!Number.isInteger(from))
    return { dtype, shape, count, bytes, layout: { shape, stride: stridesOf(shape), offset } }
  return { dtype, shape, count, bytes: bytes.subarray(from, from + byteLengthOf(dtype, count)), layout: null }
}

/** The dtype of an allocated array, unless the view is another kind of array. */
function allocatedDType(view: ArrayBufferView, arrayDType: DType | undefined): DType | undefined {
  const allocation = allocationOf(view)
  return allocation !== undefined && allocation.arrayDType === arrayDType ? allocation.dtype : arrayDType
}

/**
 * The bytes of a view or a buffer.
 * @throws UsageError for anything else, for a transferred buffer, and for a view of a buffer that has become too short for it
 */
export function bytesOf(call: string, data: ArrayBufferView | ArrayBufferLike): Uint8Array {
  const isView = ArrayBuffer.isView(data)
  const isBuffer = data instanceof ArrayBuffer || data instanceof SharedArrayBuffer
  if (!isView && !isBuffer) throw wrong(call, 'a typed array, a DataView or a buffer', described(data))
  try {
    // Such a view has length and offset 0, like an empty one, but its methods throw.
    if (isView && data.byteLength === 0 && !(data instanceof DataView)) (data as Uint8Array).keys()
    return isView ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength) : new Uint8Array(data)
  } catch (cause) {
    const got = isView && !isDetached(data.buffer) ? 'a view beyond the end of its buffer' : 'a detached one'
    throw new UsageError(`${call}: expected a buffer with its bytes, got ${got}`, { call }, cause)
  }
}

function isDetached(buffer: ArrayBufferLike): boolean {
  try {
    return new Uint8Array(buffer).length < 0
  } catch {
    return true
  }
}

/** The lowest and the highest index. */
function reach(shape: readonly number[], stride: readonly number[], offset: number): [first: number, last: number] {
  const steps = shape.map((size, axis) => (size - 1) * stride[axis]!)
  const sum = (numbers: readonly number[]): number => numbers.reduce((total, step) => total + step, offset)
  return [sum(steps.filter(step => step < 0)), sum(steps.filter(step => step > 0))]
}

function isList(given: unknown, isGood: (size: number) => boolean = () => true): given is readonly number[] {
  return Array.isArray(given) && given.every(size => Number.isSafeInteger(size) && isGood(size))
}
