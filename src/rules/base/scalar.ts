/** Tensors of one element: losses, metrics, importances. */

import type { TensorAtStep } from '../../trial/measure/tensor-at-step.js'

/** Asks for the element of a tensor that has one. Null for several elements, strings and complex numbers. */
export function scalar(tensor: TensorAtStep): () => number | null {
  if (!tensor.isSmall) return () => null
  if (!tensor.hasValue) return savedScalar(tensor)
  const moments = tensor.counts()
  return () => {
    const { count, dtype, nanCount } = moments.value
    if (count !== 1 || dtype === 'string' || dtype.startsWith('complex')) return null
    return nanCount > 0 ? Number.NaN : numberOrNull(moments.value.reduction('min'))
  }
}

/** Reads a scalar from saved reductions. A saved shape, or equal extremes, show that there is one element. */
function savedScalar(tensor: TensorAtStep): () => number | null {
  const { savedShape, savedReductions: saved } = tensor
  if (savedShape?.some(size => size !== 1)) return () => null
  const [name] = (['mean', 'min', 'max', 'sum'] as const).filter(name => saved.includes(name))
  if (savedShape !== null && name !== undefined) {
    const only = tensor.reduction(name)
    return () => numberOrNull(only.value)
  }
  if (!saved.includes('min') || !saved.includes('max')) return () => null
  const [min, max] = [tensor.reduction('min'), tensor.reduction('max')]
  return () => (min.value === max.value ? numberOrNull(min.value) : null)
}

function numberOrNull(value: unknown): number | null {
  return typeof value === 'number' ? value : null
}

/** The mean of the values that are not null; null if there are none. */
export function meanOf(values: readonly (number | null)[]): number | null {
  const numbers = values.filter(value => value !== null)
  return numbers.length === 0 ? null : numbers.reduce((sum, value) => sum + value, 0) / numbers.length
}
