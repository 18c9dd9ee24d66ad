/** Units of layers that do not learn: ReLUs whose output is 0, and tanh or sigmoid in their flat ends. */

import { compileOwnPattern } from '../../format/regex/pattern.js'
import { elements } from '../../rules/base/labels.js'
import { frameworkOf, RELU_OUTPUTS, SQUASHING_OUTPUTS } from '../../rules/base/names.js'
import { FLAT_FROM, functionBy, functionOf, type Squashing, sigmoid } from '../../rules/base/squashing.js'
import type { ScanSelection } from '../../trial/scan-selection.js'
import { stateOf, type Trial } from '../../trial/trial.js'
import { readValues } from '../../trial/values.js'
import type { UnitsView } from '../data.js'
import { packed } from '../packing.js'
import type { Skeleton } from '../skeleton.js'
import { thinnedIndices } from '../thinning.js'

/** Bounds of what is read and shown: units of a layer, their steps, elements of a tensor and of all. */
const MAX_UNITS = 1024
const MAX_STEPS = 24
const MAX_ELEMENTS = 1 << 22
const BUDGET = 1 << 26

/** The outputs that are off. */
const IS_OFF: Readonly<Record<'relu' | Squashing, (x: number) => boolean>> = {
  relu: x => x <= 0,
  tanh: x => Math.abs(x) > Math.tanh(FLAT_FROM.tanh),
  sigmoid: x => Math.abs(x - 0.5) > sigmoid(FLAT_FROM.sigmoid) - 0.5,
}

/** The outputs of activations, by their names. */
export function unitTensors(names: readonly string[]): readonly string[] {
  const [relu, squashing] = [RELU_OUTPUTS, SQUASHING_OUTPUTS].map(pattern => compileOwnPattern(pattern))
  return names.filter(name => !/gradient/.test(name) && (relu!.matches(name) || squashing!.matches(name)))
}

/** A layer, as it is counted. */
interface Counts {
  readonly isRelu: boolean
  units: number
  min: number
  max: number
  zeros: number
  /** By the index of the step. */
  readonly at: Map<
    number,
    { readonly of: number; readonly off: Readonly<Record<keyof typeof IS_OFF, Float32Array<ArrayBuffer>>> }
  >
}

/** @param shapeOf the shape of a tensor at its first step; null if it is not known */
export async function unitsOf(
  trial: Trial,
  { threads, memory, signal, checkLevel }: ScanSelection,
  skeleton: Skeleton,
  shapeOf: (tensor: string) => readonly number[] | null,
): Promise<readonly UnitsView[]> {
  const { matches: isRelu } = compileOwnPattern(RELU_OUTPUTS)
  const { steps } = thinnedIndices(skeleton, MAX_STEPS)
  const isLast = frameworkOf(stateOf(trial).contents) === 'tensorflow'
  let left = BUDGET
  const layers = new Map<string, Counts>()
  for (const name of unitTensors(skeleton.tensors)) {
    const shape = shapeOf(name) ?? []
    const size = shape.reduce((product, length) => product * length, 1)
    if (shape.length < 2 || size > MAX_ELEMENTS || size * steps.length > left) continue
    if ((shape[unitAxis(shape, isLast)] ?? 0) > MAX_UNITS) continue
    left -= size * steps.length
    layers.set(name, { isRelu: isRelu(name), units: 0, min: Infinity, max: -Infinity, zeros: 0, at: new Map() })
  }
  if (layers.size === 0) return []
  const values = readValues(trial, {
    tensors: [...layers.keys()],
    steps: steps.map(index => skeleton.steps[index]!),
    threads,
    memory,
    checkLevel,
    signal,
  })
  for await (const { tensor, step, value } of values) {
    const [counts, index] = [layers.get(tensor ?? ''), skeleton.stepAt(step)]
    if (counts === undefined || index === undefined || value === null) continue
    // Of several workers the first.
    if (value.dtype === 'string' || value.dtype.startsWith('complex') || counts.at.has(index)) continue
    count(counts, index, elements(value), value.shape, unitAxis(value.shape, isLast))
  }
  return [...layers].flatMap(([tensor, counts]) => viewOf(tensor, counts) ?? [])
}

/** The axis of the units: the channels of images, else the last one. */
function unitAxis({ length }: readonly number[], isLast: boolean): number {
  return length > 3 && !isLast ? 1 : length - 1
}

function count(counts: Counts, index: number, data: ArrayLike<number>, shape: readonly number[], axis: number): void {
  const units = shape[axis] ?? 0
  if (counts.units === 0) counts.units = units
  if (units !== counts.units || units === 0) return
  const inner = shape.slice(axis + 1).reduce((product, length) => product * length, 1)
  const off = { relu: new Float32Array(units), tanh: new Float32Array(units), sigmoid: new Float32Array(units) }
  const names = counts.isRelu ? (['relu'] as const) : (['tanh', 'sigmoid'] as const)
  for (let i = 0; i < data.length; i++) {
    const [x, unit] = [data[i]!, Math.floor(i / inner) % units]
    // Neither is true of NaN.
    if (x < counts.min) counts.min = x
    if (x > counts.max) counts.max = x
    if (x === 0) counts.zeros++
    for (const name of names) if (IS_OFF[name](x)) off[name][unit]!++
  }
  counts.at.set(index, { of: data.length / units, off })
}

/** Null: nothing was read, or the outputs are those of another function; those of tanh or sigmoid may also all be NaN. */
function viewOf(tensor: string, { isRelu, units, min, max, zeros, at }: Counts): UnitsView | null {
  const name = isRelu ? 'relu' : (functionOf(tensor) ?? functionBy(min, max, zeros))
  // A whole model may be named after its activation.
  const isOther = name !== 'relu' && !(min >= (name === 'tanh' ? -1 : 0) && min <= max && max <= 1)
  if (name === null || isOther || at.size === 0) return null
  const steps = [...at].sort(([a], [b]) => a - b)
  const off = new Float32Array(units * steps.length)
  for (const [i, [, step]] of steps.entries()) off.set(step.off[name], i * units)
  return {
    tensor,
    isOff: isRelu ? 'dead' : 'saturated',
    units,
    steps: steps.map(([index]) => index),
    counts: steps.map(([, { of }]) => of),
    off: packed(off),
  }
}
