/** Numpy's basic indexing, as arithmetic on shape, strides and offset. */

import { shown } from '../../../base/arguments.js'
import { UsageError } from '../../../base/errors.js'

/** The layout of a view in an array, in elements. */
export interface View {
  readonly shape: readonly number[]
  readonly stride: readonly number[]
  readonly offset: number
}

/** Indices from `start` to before `stop`, as Python's `start:stop:step`: negative numbers count from the end. */
export interface AxisSlice {
  /** Default: the first index; the last one if `step` is negative. */
  readonly start?: number | null | undefined
  /** Default: no limit. */
  readonly stop?: number | null | undefined
  /** Any whole number but 0. Default 1. */
  readonly step?: number | null | undefined
}

type Bound = number | null | undefined

/** The selection of an axis: an index, which removes the axis; null or undefined for all; or a slice. */
export type AxisIndex = Bound | AxisSlice | readonly [start: Bound, stop: Bound, step?: Bound]

/** The part of a view selected by an index for each of the first axes; the other axes stay whole. @throws UsageError */
export function sliceView({ shape, stride, offset }: View, indices: readonly AxisIndex[]): View {
  if (indices.length > shape.length) {
    throw wrong('slice', `no more indices than axes of the shape [${shape}]`, indices.length)
  }
  const kept: { size: number; stride: number }[] = []
  let first = offset
  shape.forEach((size, axis) => {
    const index = indices[axis]
    if (typeof index === 'number') first += indexOf('slice', index, size, `axis ${axis}`) * stride[axis]!
    else {
      const { start, step, count } = rangeOf(index, size, axis)
      first += start * stride[axis]!
      kept.push({ size: count, stride: step * stride[axis]! })
    }
  })
  return { shape: kept.map(({ size }) => size), stride: kept.map(({ stride }) => stride), offset: first }
}

/**
 * The position of an element: by an index for each axis, by one index in C order, or, for a single element, without index.
 * @throws UsageError
 */
export function placeOf({ shape, stride, offset }: View, indices: readonly number[]): number {
  const count = shape.reduce((product, size) => product * size, 1)
  if (indices.length === 0 && count !== 1) throw wrong('item', `indices for the shape [${shape}]`, 'none')
  if (indices.length > 1 && indices.length !== shape.length) {
    const expected = `${shape.length} indices, one for each axis of the shape [${shape}], or one in C order`
    throw wrong('item', expected, indices.length)
  }
  if (indices.length === shape.length) {
    return indices.reduce(
      (at, index, axis) => at + indexOf('item', index, shape[axis]!, `axis ${axis}`) * stride[axis]!,
      offset,
    )
  }
  let rest = indices.length === 0 ? 0 : indexOf('item', indices[0], count, 'all elements in C order')
  let at = offset
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const size = shape[axis]!
    at += (rest % size) * stride[axis]!
    rest = Math.floor(rest / size)
  }
  return at
}

/** An index from the start of an axis. */
function indexOf(call: string, index: unknown, size: number, axisText: string): number {
  if (Number.isSafeInteger(index)) {
    const at = (index as number) < 0 ? (index as number) + size : (index as number)
    if (at >= 0 && at < size) return at
  }
  if (size === 0) throw wrong(call, `no index for ${axisText}, of which there are none`, index)
  throw wrong(call, `an index from ${-size} to ${size - 1} for ${axisText}`, index)
}

/** The range of a slice, as Python's `slice.indices` computes it, and its length. */
function rangeOf(index: AxisIndex, size: number, axis: number): { start: number; step: number; count: number } {
  const slice = sliceOf(index)
  if (slice === undefined || ![slice.start, slice.stop, slice.step].every(isBound)) {
    throw wrong(
      'slice',
      `an index, null, { start, stop, step } or [start, stop, step] of whole numbers for axis ${axis}`,
      index,
    )
  }
  const step = slice.step ?? 1
  if (step === 0) throw wrong('slice', `a step other than 0 for axis ${axis}`, index)
  const [lowest, highest] = step < 0 ? [-1, size - 1] : [0, size]
  const clip = (bound: number): number => Math.max(lowest, Math.min(highest, bound < 0 ? bound + size : bound))
  const start = slice.start == null ? (step < 0 ? highest : lowest) : clip(slice.start)
  const stop = slice.stop == null ? (step < 0 ? lowest : highest) : clip(slice.stop)
  const count = Math.ceil((stop - start) / step)
  return count > 0 ? { start, step, count } : { start: 0, step: 1, count: 0 }
}

const isBound = (bound: unknown): boolean => bound == null || Number.isSafeInteger(bound)

function sliceOf(index: unknown): AxisSlice | undefined {
  if (index == null) return {}
  if (Array.isArray(index)) {
    const [start, stop, step] = index
    return index.length === 2 || index.length === 3 ? { start, stop, step } : undefined
  }
  const isPlain = Object.prototype.toString.call(index) === '[object Object]'
  return isPlain && Object.keys(index).every(key => /^(start|stop|step)$/.test(key)) ? index : undefined
}

function wrong(method: string, expected: string, got: unknown): UsageError {
  const call = `value.${method}`
  const gotText = got === 'none' ? got : shown(got)
  return new UsageError(`${call}: expected ${expected}, got ${gotText}`, { call })
}
