/** Arrays of a caller, in JavaScript's memory: reductions along an axis and of the whole, beside the newest numpy that there is. */

import type { AxisReductionName } from '#dist/base/types.js'
import { along, reduce } from '#dist/kernels.js'
import { uniform } from '../../fixtures/random.js'
import { type Case, type Contender, contender, type Definition, type Judge, type Options } from '../definition.js'
import * as numpy from '../engines/numpy.js'
import * as ours from '../engines/ours.js'
import { scratchFile } from '../scratch.js'

const NAMES = ['sum', 'max', 'std', 'l2'] as const
const WHOLE_NAMES = ['min', 'max', 'sum', 'std', 'abs_mean', 'l2'] as const
/** Shapes, with the axes that are reduced. */
const SHAPES: readonly (readonly [shape: readonly number[], axes: readonly number[]])[] = [
  [
    [4096, 4096],
    [0, 1],
  ],
  [
    [32, 64, 56, 56],
    [0, 1, 3],
  ],
]
/** The tolerance of float32, in which numpy adds one element after the other. */
const TOLERANCE = 2e-3

export const arrays: Definition = {
  name: 'arrays',
  measures:
    'along and reduce of a Float32Array of a caller, the way into the core included; numpy on one thread, in float32',
  *cases({ quick }: Options): Generator<Case> {
    for (const [shape, axes] of quick
      ? [
          [
            [512, 512],
            [0, 1],
          ] as const,
        ]
      : SHAPES) {
      const random = uniform(11)
      // Far from 0, so that no sum cancels.
      const data = Float32Array.from({ length: lengthOf(shape) }, () => 0.5 + random())
      const copying = copyingAlone(data)
      const file = scratchFile(new Uint8Array(data.buffer))
      const caseOf = (
        call: string,
        name: AxisReductionName,
        axis: number | null,
        run: () => ArrayLike<number>,
      ): Case => {
        const wrong = expected(data, shape, name, axis)
        const request = ['reduce', file, 'float32', shape.join(), name, axis ?? 'all']
        return {
          size: `${call}, ${name} of ${shape.join(' × ')}${axis === null ? '' : `, axis ${axis}`}`,
          byteLength: data.byteLength,
          contenders: [
            contender(ours.NAME, run, wrong),
            ...numpy.contenders('', request, wrong, numpy.newest),
            copying,
          ],
        }
      }
      for (const axis of axes) {
        for (const name of NAMES) yield caseOf('along', name, axis, () => along({ data, shape }, name, axis).data)
      }
      if (shape.length > 2) continue
      for (const name of WHOLE_NAMES) yield caseOf('reduce', name, null, () => [Number(reduce(data, name))])
    }
  },
}

/** Copies an array into WASM memory, piece by piece, over the same pages: what any core must do with an array of the caller. */
function copyingAlone(data: Float32Array): Contender {
  const window = new Float32Array(new WebAssembly.Memory({ initial: 4 }).buffer)
  const pieces = data.length / window.length
  const run = (): Float32Array => {
    for (let i = 0; i < pieces; i++) window.set(data.subarray(i * window.length, (i + 1) * window.length))
    return window
  }
  const last = data.subarray(data.length - window.length)
  return contender('copying alone', run, copied => {
    const i = copied.findIndex((value, at) => value !== last[at])
    return i < 0 ? undefined : `element ${i} of the last piece: expected ${last[i]}, got ${copied[i]}`
  })
}

function lengthOf(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1)
}

/** The fault of results, beside those of a plain loop. @param axis null for the whole array */
function expected(
  data: Float32Array,
  shape: readonly number[],
  name: AxisReductionName,
  axis: number | null,
): Judge<ArrayLike<number>> {
  const count = axis === null ? data.length : shape[axis]!
  const inner = axis === null ? 1 : lengthOf(shape.slice(axis + 1))
  const results = Float64Array.from({ length: data.length / count }, (_, line) => {
    const start = Math.floor(line / inner) * count * inner + (line % inner)
    let [sum, squares, low, high] = [0, 0, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
    for (let i = 0; i < count; i++) {
      const value = data[start + i * inner]!
      sum += value
      squares += value * value
      low = Math.min(low, value)
      high = Math.max(high, value)
    }
    const mean = sum / count
    return {
      sum,
      min: low,
      max: high,
      abs_mean: mean,
      l2: Math.sqrt(squares),
      std: Math.sqrt(squares / count - mean * mean),
    }[name as (typeof WHOLE_NAMES)[number]]
  })
  return answer => {
    if (answer.length !== results.length) return `expected ${results.length} results, got ${answer.length}`
    const i = results.findIndex((value, at) => !(Math.abs(answer[at]! - value) <= TOLERANCE * value))
    return i < 0 ? undefined : `${name} ${i}: expected ${results[i]}, got ${answer[i]}`
  }
}
