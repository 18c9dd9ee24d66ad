/** Tensors of one element: losses, metrics, importances. */

import type { TensorAtStep } from '../../trial/measure.js'

/** Asks for the one element of a tensor; null for a tensor that has more, or no numbers. */
export function scalar(tensor: TensorAtStep): () => number | null {
  if (!tensor.isSmall) return () => null
  if (!tensor.hasValue) {
    const mean = tensor.reduction('mean')
    return () => numberOf(mean.answer ?? null)
  }
  const moments = tensor.moments()
  return () => {
    const { count, dtype } = moments.value
    return count === 1 && dtype !== 'string' ? numberOf(moments.value.reduction('mean')) : null
  }
}

function numberOf(value: unknown): number | null {
  return typeof value === 'number' ? value : null
}

/** The mean of those that are there; null if none is. */
export function meanOf(values: readonly (number | null)[]): number | null {
  const there = values.filter(value => value !== null)
  return there.length === 0 ? null : there.reduce((sum, value) => sum + value, 0) / there.length
}
