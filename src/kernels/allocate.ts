/** Arrays in the core's memory, which are reduced where they lie. */

import { quote } from '../base/errors.js'
import type { DType } from '../base/types.js'
import type { Address } from '../core/border/memory.js'
import { byteLengthOf, dtypeOfArray, isNumeric, type NarrowFloat } from '../core/dtype.js'
import { Engine } from '../core/engine.js'
import type { ElementsOf } from '../scan/job/tensor/data.js'
import { described, wrong } from './wrong.js'

/**
 * The array type for each dtype: the bits of floats of 16 and 8 bits, two elements of float4 per byte (the first in the lower half), two
 * numbers per complex element.
 */
export type ArrayOf = Omit<ElementsOf, NarrowFloat | 'string'> & {
  readonly [D in NarrowFloat]: D extends 'float16' | 'bfloat16' ? Uint16Array : Uint8Array
}

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
  float8_e4m3fn: Uint8Array,
  float8_e5m2: Uint8Array,
  float8_e4m3fnuz: Uint8Array,
  float8_e5m2fnuz: Uint8Array,
  float8_e8m0fnu: Uint8Array,
  float4_e2m1fn: Uint8Array,
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

/**
 * The size of a block of arrays of one dtype. V8 reserves 10 GiB of address space for an instance, so arrays share one. Untouched pages
 * take no memory.
 */
const BLOCK_BYTES = 64 << 20
/** The size from which an array gets an instance of its own. */
const MAX_SHARING_BYTES = BLOCK_BYTES / 4
/** Arrays start at multiples of this, with as much space between them, which the core may read over. */
const PADDING = 128

/** An instance that holds arrays of one dtype. */
export class Block {
  readonly dtype: DType
  /** The dtype of the arrays, unless a call names another one. */
  readonly arrayDType: DType | undefined
  /** The engine whose memory holds the arrays. It never grows, since growing would detach them. */
  readonly engine = new Engine()
  /** Two rows for moments. */
  readonly batch = this.engine.reserveBatch(2)
  /** The address of the next array, and the number of bytes left. */
  #next: Address
  #remaining: number

  constructor(dtype: keyof ArrayOf, byteLength: number) {
    this.dtype = dtype
    this.arrayDType = dtypeOfArray(new CONSTRUCTORS[dtype](new ArrayBuffer(0), 0, 0))
    this.#next = this.engine.reserveBytes(byteLength)
    this.#remaining = byteLength
  }

  has(byteLength: number): boolean {
    return byteLength <= this.#remaining
  }

  /** Bytes for an array. */
  take(byteLength: number): Uint8Array<ArrayBuffer> {
    const bytes = this.engine.view(this.#next, byteLength)
    const taken = Math.ceil(byteLength / PADDING + 1) * PADDING
    this.#next = (this.#next + taken) as Address
    this.#remaining -= taken
    return bytes
  }
}

/** The block of each buffer, for as long as anybody has a view of it. */
const blockOf = new WeakMap<ArrayBufferLike, Block>()
/** The newest block of each dtype, if anybody has an array in it. */
const newest = new Map<DType, WeakRef<Block>>()

/**
 * Allocates an array of zeros in the core's memory, beside others of its dtype. The array, or a part of it, is reduced without being
 * copied.
 * @param length the number of elements
 * @throws UsageError
 * @throws QueryError `ValueTooLarge` from 4 GiB on
 */
export function allocate<D extends keyof ArrayOf>(dtype: D, length: number): ArrayOf[D] {
  if (!isNumeric(dtype)) throw wrong('allocate', 'the dtype of numbers', quote(String(dtype)))
  if (!Number.isSafeInteger(length) || length < 0) throw wrong('allocate', 'a number of elements', described(length))
  const byteLength = byteLengthOf(dtype, length)
  const block = blockFor(dtype, byteLength)
  const { buffer, byteOffset } = block.take(byteLength)
  blockOf.set(buffer, block)
  const isComplex = dtype === 'complex64' || dtype === 'complex128'
  const arrayLength = dtype === 'float4_e2m1fn' ? byteLength : isComplex ? 2 * length : length
  return new CONSTRUCTORS[dtype](buffer, byteOffset, arrayLength)
}

/** A block with room for an array. */
function blockFor(dtype: keyof ArrayOf, byteLength: number): Block {
  const isAlone = byteLength > MAX_SHARING_BYTES
  const shared = isAlone ? undefined : newest.get(dtype)?.deref()
  if (shared?.has(byteLength)) return shared
  const block = new Block(dtype, isAlone ? byteLength : BLOCK_BYTES)
  if (!isAlone) newest.set(dtype, new WeakRef(block))
  return block
}

/** The block that a view belongs to; undefined if it was not allocated here. */
export function allocationOf(view: ArrayBufferView): Block | undefined {
  return blockOf.get(view.buffer)
}

/** The address of an allocated view. All allocations are views of the core's whole memory. */
export function addressOf(view: ArrayBufferView): Address {
  return view.byteOffset as Address
}
