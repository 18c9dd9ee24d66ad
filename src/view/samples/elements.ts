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

/** The number of elements for a person to look at. */
const MAX_ELEMENTS = 4096
/** Bytes of all that are in a file, before they are compressed. */
const BUDGET = 1 << 20
/** Steps of a tensor, the last one among them. */
const MAX_STEPS = 6

/**
 * The elements of tensors that have few of them, at some steps.
 * @param series in the order of their importance
 */
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
    // A number is in the table of reductions.
    if (size <= 1 || size > MAX_ELEMENTS) continue
    // One that is too large leaves room for smaller ones.
    if (bytes + size * 8 * taken.length > BUDGET) continue
    bytes += size * 8 * taken.length
    names.add(tensors[tensor]!)
  }
  if (names.size === 0) return []
  const { mode: _mode, modeSteps: _modeSteps, steps: _steps, tensors: _tensors, ...rest } = selection
  const only = taken.map(index => steps[index]!)
  const found: ValueView[] = []
  for await (const { tensor, worker, step, value } of readValues(trial, {
    ...rest,
    tensors: [...names],
    steps: only,
  })) {
    const [at, index] = [tensor === null ? undefined : skeleton.seriesAt(worker, tensor), skeleton.stepAt(step)]
    if (value === null || at === undefined || index === undefined || value.dtype === 'string') continue
    if (value.shape.reduce((product, size) => product * size, 1) > MAX_ELEMENTS) continue
    found.push({ series: at, step: index, shape: value.shape, numbers: packed(numbersOf(value)) })
  }
  return found
}

/** The numbers, as exact as the page can have them. */
function numbersOf(value: Parameters<typeof elements>[0]): Float64Array<ArrayBuffer> | Float32Array<ArrayBuffer> {
  const { dtype } = value
  const isNarrow = dtype === 'float32' || isNarrowFloat(dtype)
  return isNarrow ? Float32Array.from(elements(value)) : Float64Array.from(elements(value))
}
