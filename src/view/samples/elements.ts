/** Elements of small tensors, as many as a page can hold. */

import { isNarrowFloat } from '../../core/dtype.js'
import { elements } from '../../rules/base/labels.js'
import type { ScanSelection } from '../../trial/scan-selection.js'
import type { Trial } from '../../trial/trial.js'
import { readValues } from '../../trial/values.js'
import type { TensorView, ValueView } from '../data.js'
import { packed } from '../packing.js'
import type { Skeleton } from '../skeleton.js'
import { thinnedIndices } from '../thinning.js'

/** The largest number of elements that a person looks at. */
const MAX_ELEMENTS = 4096
/** The most bytes that elements take in a page before compression. */
const BUDGET = 1 << 20
/** The largest number of steps of a tensor, the last step among them. */
const MAX_STEPS = 6

/** The elements of small tensors at some steps. @param series by importance */
export async function elementsOf(
  trial: Trial,
  selection: ScanSelection,
  skeleton: Skeleton,
  views: readonly TensorView[],
  series: readonly number[],
): Promise<readonly ValueView[]> {
  const { steps, tensors, series: all } = skeleton
  const sizeOf = ({ shape, dtype }: TensorView): number =>
    shape === null || dtype === null || dtype === 'string' || dtype.startsWith('complex')
      ? Number.POSITIVE_INFINITY
      : shape.reduce((product, size) => product * size, 1)
  const names = new Set<string>()
  let bytes = 0
  const taken = thinnedIndices(skeleton, MAX_STEPS).steps
  for (const i of series) {
    const { tensor } = all[i]!
    const size = sizeOf(views[tensor]!)
    // A scalar is in the table of reductions already.
    if (size <= 1 || size > MAX_ELEMENTS) continue
    // A tensor that is too large leaves room for smaller ones.
    if (bytes + size * 8 * taken.length > BUDGET) continue
    bytes += size * 8 * taken.length
    names.add(tensors[tensor]!)
  }
  if (names.size === 0) return []
  const { mode: _mode, modeSteps: _modeSteps, steps: _steps, tensors: _tensors, ...rest } = selection
  const only = taken.map(index => steps[index]!)
  const values: ValueView[] = []
  for await (const { tensor, worker, step, value } of readValues(trial, {
    ...rest,
    tensors: [...names],
    steps: only,
  })) {
    const [at, index] = [tensor === null ? undefined : skeleton.seriesAt(worker, tensor), skeleton.stepAt(step)]
    if (value === null || at === undefined || index === undefined || value.dtype === 'string') continue
    if (value.shape.reduce((product, size) => product * size, 1) > MAX_ELEMENTS) continue
    values.push({ series: at, step: index, shape: value.shape, numbers: packed(numbersOf(value)) })
  }
  return values
}

/** The elements as numbers: float32 if the dtype fits in it, else float64. */
function numbersOf(value: Parameters<typeof elements>[0]): Float64Array<ArrayBuffer> | Float32Array<ArrayBuffer> {
  const { dtype } = value
  const isNarrow = dtype === 'float32' || isNarrowFloat(dtype)
  return isNarrow ? Float32Array.from(elements(value)) : Float64Array.from(elements(value))
}
