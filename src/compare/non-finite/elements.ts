/** The non-finite elements of a value: the first ones, and whole slices. */

import { elements } from '../../rules/base/labels.js'
import type { Trial } from '../../trial/trial.js'
import type { AffectedSlices, NonFiniteKind, RecordPlaceInTime } from '../records.js'

const MAX_INDICES = 100

export interface FoundElements {
  readonly element: readonly number[] | null
  readonly kind: NonFiniteKind
  readonly shape: readonly number[]
  readonly slices: readonly AffectedSlices[]
}

/** Null if the value can't be read. */
export async function elementsAt(
  trial: Trial,
  { tensor, step, worker }: RecordPlaceInTime,
): Promise<FoundElements | null> {
  const value = await trial
    .tensor(tensor)
    .value(step, { worker })
    .catch(() => null)
  if (value === null || value.dtype === 'string') return null
  const { shape } = value
  const data = elements(value)
  // A complex number is its real part, then its imaginary part.
  const parts = value.dtype.startsWith('complex') ? 2 : 1
  const size = data.length / parts
  /** The number of non-finite elements at each index of each axis. */
  const counts = shape.map(length => new Float64Array(length))
  const index = shape.map(() => 0)
  let first: { readonly element: readonly number[]; readonly kind: NonFiniteKind } | null = null
  for (let i = 0; i < size; i++) {
    const real = data[parts * i]!
    const x = Number.isFinite(real) ? data[parts * (i + 1) - 1]! : real
    if (!Number.isFinite(x)) {
      first ??= { element: [...index], kind: Number.isNaN(x) ? 'nan' : x > 0 ? 'inf' : '-inf' }
      for (const [axis, at] of index.entries()) counts[axis]![at]!++
    }
    for (let axis = shape.length - 1; axis >= 0 && ++index[axis]! === shape[axis]; axis--) index[axis] = 0
  }
  if (first === null) return null
  const slices = counts.flatMap((count, axis): AffectedSlices[] => {
    const indices = [...count.keys()].filter(at => count[at]! > 0)
    const length = shape[axis]!
    if (indices.length === length) return []
    const perSlice = size / length
    const isWhole = indices.every(at => count[at] === perSlice)
    return [{ axis, length, indices: indices.slice(0, MAX_INDICES), count: indices.length, isWhole }]
  })
  return { element: shape.length === 0 ? null : first.element, kind: first.kind, shape, slices }
}
