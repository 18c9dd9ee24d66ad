/** Labels and predictions: tensors read as classes. */

import type { TensorValue } from '../../scan/job/tensor-value.js'

/** The elements as numbers. Strings have none. */
export function elements({ data, dtype }: TensorValue): ArrayLike<number> {
  if (dtype === 'string') return []
  if (data instanceof BigInt64Array || data instanceof BigUint64Array) return Float64Array.from(data, Number)
  return data as ArrayLike<number>
}

/** The index of the largest element along the last axis, row by row. */
export function argmax(value: TensorValue): number[] {
  const data = elements(value)
  const width = value.shape.at(-1) ?? 1
  const rows = width === 0 ? 0 : data.length / width
  return Array.from({ length: rows }, (_, row) => {
    let best = 0
    for (let i = 1; i < width; i++) if (data[row * width + i]! > data[row * width + best]!) best = i
    return best
  })
}

/**
 * Predictions as classes, one per label. Several numbers per label: the index of the largest. One number: rounded, so that
 * a probability of at least one half is class 1.
 * @param isArgmax the last axis has one number per class, however many labels there are
 */
export function predictedClasses(predictions: TensorValue, labelCount: number, isArgmax = false): ArrayLike<number> {
  const data = elements(predictions)
  const width = predictions.shape.at(-1) ?? 1
  const hasAll = predictions.shape.length > 1 && width > 1 && data.length === width * labelCount
  if (isArgmax || hasAll) return argmax(predictions)
  return Array.from(data, Math.round)
}

/** True if all values are integers, as classes are. */
export function areIntegers(values: ArrayLike<number>): boolean {
  for (let i = 0; i < values.length; i++) if (!Number.isInteger(values[i])) return false
  return true
}

/** True if each row along the last axis, of several numbers, has a 1 and zeros besides. */
export function areOneHot(value: TensorValue): boolean {
  const data = elements(value)
  const width = value.shape.at(-1) ?? 1
  if (width < 2 || data.length === 0) return false
  for (let row = 0; row < data.length; row += width) {
    let ones = 0
    for (let i = row; i < row + width; i++) {
      if (data[i] === 1) ones++
      else if (data[i] !== 0) return false
    }
    if (ones !== 1) return false
  }
  return true
}
