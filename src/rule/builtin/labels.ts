/** Labels and predictions: tensors read as classes. */

import type { TensorValue } from '../../trial/value.js'

/** Elements as numbers; none of strings. */
export function elements({ data, dtype }: TensorValue): ArrayLike<number> {
  if (dtype === 'string') return []
  if (data instanceof BigInt64Array || data instanceof BigUint64Array) return Float64Array.from(data, Number)
  return data as ArrayLike<number>
}

/** The place of the largest element along the last axis, for each of the others. */
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
