/** The value of a tensor: its data, and views of them. */

import { QueryError, UsageError } from '../../base/errors.js'
import type { DType } from '../../base/types.js'
import { byteLengthOf, elementByteLength } from '../../core/dtype.js'
import type { Complex } from '../../core/moments.js'
import { copyElements } from './tensor/copy-elements.js'
import { type DataOf, type ElementsOf, isDense, type TensorData, tensorData } from './tensor/data.js'
import { type AxisIndex, placeOf, sliceView, type View } from './tensor/indices.js'
import { loadNdarray, type NdArray } from './tensor/ndarray.js'
import type { RawValue } from './value-job.js'

/** The JavaScript type of an element, by dtype. */
export interface ElementOf
  extends Record<Exclude<DType, 'int64' | 'uint64' | 'bool' | 'complex64' | 'complex128' | 'string'>, number> {
  int64: bigint
  uint64: bigint
  bool: boolean
  complex64: Complex
  complex128: Complex
  string: string
}

/** Nested arrays of elements; for a tensor without axes, its element. */
export type Nested<T> = T | readonly Nested<T>[]

/** The types of `data` in scijs' ndarray. */
interface NdarrayData extends Omit<ElementsOf, 'int64' | 'uint64' | 'string'> {
  int64: BigInt64Array<ArrayBuffer>
  uint64: BigUint64Array<ArrayBuffer>
  string: string[]
}

/** A value of one dtype. */
export interface ValueOf<D extends DType> extends DataOf<D> {
  /**
   * A part of the value, by numpy's basic indexing, over the same `data`: only shape, stride and offset differ. `bytes` are those of the
   * part (copied on first use, unless contiguous).
   * @param indices one per axis: an index, which removes the axis; null for all; or { start, stop, step } or [start, stop, step].
   *   Negative numbers count from the end. Missing indices select whole axes.
   * @throws UsageError
   */
  slice(...indices: readonly AxisIndex[]): ValueOf<D>
  /**
   * An element, as by numpy's `item`: by an index for each axis, by one index in C order, or, for a single element, without index.
   * Negative numbers count from the end.
   * @throws UsageError
   */
  item(...indices: readonly number[]): ElementOf[D]
  /**
   * The elements as nested arrays, as by numpy's `tolist`.
   * @throws QueryError `ValueTooLarge` for more than 16,777,216 elements, or as many arrays
   */
  toNested(): Nested<ElementOf[D]>
  /**
   * A scijs ndarray over the same `data`. Complex elements get a last axis of length two.
   * @throws UsageError if code can't be made from text (a Content-Security-Policy without 'unsafe-eval'), or for `data` longer than it
   *   can address, 2,147,483,647 elements
   */
  toNdarray(): NdArray<NdarrayData[D]>
}

/**
 * The value of a tensor at a step, in C order, or a slice of it. Its `dtype` determines the type of `data`. @typeParam D narrows the
 * dtypes: `TensorValue<'float32' | 'float64'>`
 */
export type TensorValue<D extends DType = DType> = { readonly [K in D]: ValueOf<K> }[D]

/** Makes a value from what a thread has read. */
export function tensorValue(raw: RawValue): TensorValue {
  const data = tensorData(raw)
  return new Value(data, data.bytes) as TensorValue
}

/** The limit of elements, and of arrays, in nested arrays: for any dtype about a gigabyte. */
const MAX_NESTED = 2 ** 24

/** The largest index of ndarray, which uses signed 32-bit integers. */
const MAX_NDARRAY = 2 ** 31 - 1

class Value<D extends DType> implements ValueOf<D> {
  declare readonly dtype: D
  declare readonly shape: readonly number[]
  declare readonly stride: readonly number[]
  declare readonly offset: number
  declare readonly data: ElementsOf[D]
  declare readonly bytes: Uint8Array
  declare readonly bits?: NonNullable<DataOf<D>['bits']>
  declare readonly float16?: NonNullable<DataOf<D>['float16']>
  /** The elements as they were saved, laid out as `data`. */
  readonly #saved: Uint8Array

  /** The data are own properties, so that a value is compared, cloned and serialised as they are. */
  constructor(data: Omit<DataOf<D>, 'bytes'>, saved: Uint8Array) {
    Object.assign(this, data)
    this.#saved = saved
  }

  slice(...indices: readonly AxisIndex[]): ValueOf<D> {
    const { dtype, data, bits, float16 } = this
    const view = sliceView(this, indices)
    const slice = new Value<D>(
      { dtype, ...view, data, ...(bits && { bits }), ...(float16 && { float16 }) },
      this.#saved,
    )
    const get = (): Uint8Array => {
      const value = bytesOf(dtype, view, this.#saved)
      Object.defineProperty(slice, 'bytes', { enumerable: true, value })
      return value
    }
    return Object.defineProperty(slice, 'bytes', { enumerable: true, configurable: true, get })
  }

  item(...indices: readonly number[]): ElementOf[D] {
    return this.#element(placeOf(this, indices))
  }

  toNested(): Nested<ElementOf[D]> {
    const { shape, stride, offset } = this
    let [elements, arrays] = [1, 0]
    for (const size of shape) {
      arrays += elements
      elements *= size
    }
    // For a shape with a 0 the product may be NaN.
    if (!(elements <= MAX_NESTED && arrays <= MAX_NESTED)) {
      const got = `shape [${shape}]`
      const message = `value.toNested: expected at most ${MAX_NESTED} elements, and arrays of them, got ${got}; slice it first`
      throw new QueryError('ValueTooLarge', message, { call: 'value.toNested', shape })
    }
    const nested = (axis: number, at: number): Nested<ElementOf[D]> =>
      axis === shape.length
        ? this.#element(at)
        : Array.from({ length: shape[axis]! }, (_, i) => nested(axis + 1, at + i * stride[axis]!))
    return nested(0, offset)
  }

  toNdarray(): NdArray<NdarrayData[D]> {
    const { data, shape, stride, offset } = this
    if (data.length > MAX_NDARRAY) {
      throw refused(`at most ${MAX_NDARRAY} elements in data, which ndarray can address`, `${data.length}`)
    }
    const view: View = isComplex(this.dtype)
      ? { shape: [...shape, 2], stride: [...stride.map(step => 2 * step), 1], offset: 2 * offset }
      : this
    try {
      return loadNdarray()<NdarrayData[D]>(data as NdarrayData[D], [...view.shape], [...view.stride], view.offset)
    } catch (cause) {
      if (!(cause instanceof EvalError)) throw cause
      throw refused("that code may be made of text ('unsafe-eval'), as ndarray does", cause.message, cause)
    }
  }

  #element(at: number): ElementOf[D] {
    return elementOf(this, at) as ElementOf[D]
  }
}

function elementOf({ dtype, data }: Pick<TensorData, 'dtype' | 'data'>, at: number): ElementOf[DType] {
  if (dtype === 'bool') return data[at] !== 0
  if (isComplex(dtype)) return { re: data[2 * at] as number, im: data[2 * at + 1] as number }
  return data[at]!
}

const isComplex = (dtype: DType): boolean => dtype === 'complex64' || dtype === 'complex128'

/** The bytes of a view's elements, in C order; a copy unless they are contiguous. */
function bytesOf(dtype: DType, view: View, saved: Uint8Array): Uint8Array {
  const size = elementByteLength(dtype)
  const count = view.shape.reduce((product, length) => product * length, 1)
  if (count === 0) return saved.subarray(0, 0)
  const [from, byteLength] = [view.offset * size, byteLengthOf(dtype, count)]
  const isWhole = isDense(view.shape, view.stride) && Number.isInteger(from)
  // The second half of the last byte of an odd number of float4 is not part of it.
  if (isWhole && (size >= 1 || count % 2 === 0)) return saved.subarray(from, from + byteLength)
  const bytes = new Uint8Array(byteLength)
  copyElements({ dtype, bytes: saved, layout: view }, 0, count, bytes)
  return bytes
}

function refused(expected: string, got: string, cause?: unknown): UsageError {
  const call = 'value.toNdarray'
  return new UsageError(`${call}: expected ${expected}, got ${got}`, { call }, cause)
}
