/** Comparison of two tensors within a tolerance. */

import { shown } from '../../../base/arguments.js'
import { UsageError } from '../../../base/errors.js'
import { checkOptions, kinds, optionsOf } from '../../../base/options.js'
import { dtypeOfArray } from '../../../core/dtype.js'
import { withEngineSync } from '../../../core/engines.js'
import type { NumericArray, TensorData } from './data.js'

/** The tolerances of allclose; the defaults are numpy's. */
export interface Tolerance {
  /** Default 1e-5. */
  readonly rtol?: number
  /** Default 1e-8. */
  readonly atol?: number
  /** True if NaN is close to NaN. Default false. */
  readonly equalNan?: boolean
}

export const TOLERANCE = optionsOf<Tolerance>({ rtol: kinds.tolerance, atol: kinds.tolerance, equalNan: kinds.flag })

/** The part of a tensor that allclose compares. */
type Comparable = Pick<TensorData, 'dtype' | 'shape' | 'bytes'>

/**
 * True if every element of `a` is close to its counterpart in `b`: |a − b| ≤ atol + rtol·|b|; an infinity is close only to itself. Two
 * float32 are compared in float32 arithmetic, as numpy does, all others in float64.
 * @param a a tensor's value, or a typed array, which has one dimension
 * @param b the same; its dtype may differ
 * @throws UsageError if the shapes differ, for strings, and for anything that is neither a value nor a typed array
 */
export function allclose(a: TensorData | NumericArray, b: TensorData | NumericArray, options?: Tolerance): boolean {
  const { rtol = 1e-5, atol = 1e-8, equalNan = false } = checkOptions('allclose', TOLERANCE, options)
  const [left, right] = [comparable('a', a), comparable('b', b)]
  if (left.shape.length !== right.shape.length || left.shape.some((size, i) => size !== right.shape[i])) {
    throw new UsageError(`allclose: expected tensors of one shape, got [${left.shape}] and [${right.shape}]`)
  }
  const count = left.shape.reduce((product, size) => product * size, 1)
  return withEngineSync(({ elements }) => elements.countNotClose(left, right, count, { rtol, atol, equalNan })) === 0
}

function comparable(name: string, given: TensorData | NumericArray): Comparable {
  const dtype = ArrayBuffer.isView(given) ? dtypeOfArray(given) : given?.dtype
  const isValue = dtype !== undefined && Array.isArray((given as TensorData).shape)
  if (ArrayBuffer.isView(given) && dtype !== undefined) {
    const bytes = new Uint8Array(given.buffer, given.byteOffset, given.byteLength)
    return { dtype, shape: [given.length], bytes }
  }
  if (isValue && dtype !== 'string') return given as TensorData
  const got = dtype === 'string' ? 'a tensor of strings' : shown(given)
  throw new UsageError(`allclose: expected ${name} to be a tensor of numbers or a typed array, got ${got}`)
}
