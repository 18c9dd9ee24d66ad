/** Arrays in the core's memory, which are reduced where they lie. */

import type { Address } from '../engine/border/memory.js'
import { dtypeOfArray, elementByteLength, isNumeric } from '../engine/dtype.js'
import { Engine } from '../engine/engine.js'
import type { Batch } from '../engine/slots.js'
import { quote } from '../errors.js'
import type { ElementsOf } from '../job/tensor-value.js'
import type { DType } from '../types.js'
import { described, wrong } from './wrong.js'

/** The array that holds the elements of each dtype: the bits of float16 and bfloat16, two numbers of each complex element. */
export type ArrayOf = Omit<ElementsOf, 'float16' | 'bfloat16' | 'string'> & Record<'float16' | 'bfloat16', Uint16Array>

type Constructors = {
  readonly [D in keyof ArrayOf]: new (
    buffer: ArrayBuffer,
    byteOffset: number,
    length: number,
  ) => ArrayOf[D]
}

const CONSTRUCTORS: Constructors = {
  float16: Uint16Array,
  bfloat16: Uint16Array,
  float32: Float32Array,
  float64: Float64Array,
  int8: Int8Array,
  int16: Int16Array,
  int32: Int32Array,
  int64: BigInt64Array,
  uint8: Uint8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  uint64: BigUint64Array,
  bool: Uint8Array,
  complex64: Float32Array,
  complex128: Float64Array,
}

export interface Allocation {
  /** Its memory never grows, since that would detach the array. */
  readonly engine: Engine
  /** Two rows for moments. */
  readonly batch: Batch
  readonly dtype: DType
  /** The dtype that arrays of this kind have if nothing else is said. */
  readonly arrayDType: DType | undefined
}

/** By buffer, for as long as anybody has a view of it. */
const allocations = new WeakMap<ArrayBufferLike, Allocation>()

/**
 * Allocates an array of zeros in the memory of an engine of its own. The array, or a part of it, is reduced without being copied.
 * @param length elements
 * @throws UsageError
 * @throws QueryError `ValueTooLarge` from 4 GiB on
 */
export function allocate<D extends keyof ArrayOf>(dtype: D, length: number): ArrayOf[D] {
  if (!isNumeric(dtype)) throw wrong('allocate', 'the dtype of numbers', quote(String(dtype)))
  if (!Number.isSafeInteger(length) || length < 0) throw wrong('allocate', 'a number of elements', described(length))
  const engine = new Engine()
  const batch = engine.reserveBatch(2)
  const byteLength = length * elementByteLength(dtype)
  const { buffer, byteOffset } = engine.view(engine.reserveBytes(byteLength), byteLength)
  const numbers = dtype === 'complex64' || dtype === 'complex128' ? 2 * length : length
  const array = new CONSTRUCTORS[dtype](buffer, byteOffset, numbers)
  allocations.set(buffer, { engine, batch, dtype, arrayDType: dtypeOfArray(array) })
  return array
}

/** The allocation that a view is of. */
export function allocationOf(view: ArrayBufferView): Allocation | undefined {
  return allocations.get(view.buffer)
}

/** Where a view of an allocation lies: it is a view of all of the core's memory. */
export function addressOf(view: ArrayBufferView): Address {
  return view.byteOffset as Address
}
