/** Joins the shards of a tensor that was split among workers, and compares the result. */

import { QueryError } from '../base/errors.js'
import { byteLengthOf } from '../core/dtype.js'
import { withEngineSync } from '../core/engines.js'
import { isSameShape } from '../format/index-file.js'
import { copyElements } from '../scan/job/tensor/copy-elements.js'
import type { TensorValue } from '../scan/job/tensor-value.js'
import { differenceOf } from '../scan/worker/task/difference.js'
import { type DifferenceTolerance, differenceIn, toleranceNumbers } from '../trial/measure/difference.js'
import type { TensorDifference } from '../trial/measure/question.js'

/** A complete tensor. */
export type Whole = Pick<TensorValue, 'dtype' | 'shape' | 'bytes'>

/** @throws QueryError `NotComparable` if the shards don't belong together */
export function joined(shards: readonly Whole[], axis: number): Whole {
  const [first] = shards as [Whole]
  if (shards.length === 1) return first
  const { dtype, shape } = first
  const around = (at: readonly number[]) => at.map((length, i) => (i === axis ? 0 : length))
  for (const shard of shards) {
    if (axis >= shape.length || shard.dtype !== dtype || !isSameShape(around(shard.shape), around(shape))) {
      const shardTexts = shards.map(part => `${part.dtype} [${part.shape}]`).join(', ')
      throw new QueryError(
        'NotComparable',
        `expected shards of one dtype that differ along axis ${axis} alone, got ${shardTexts}`,
      )
    }
  }
  const lengths = shards.map(shard => shard.shape[axis]!)
  const length = lengths.reduce((sum, part) => sum + part, 0)
  const outer = shape.slice(0, axis).reduce((product, size) => product * size, 1)
  const row = shape.slice(axis + 1).reduce((product, size) => product * size, 1)
  const bytes = new Uint8Array(byteLengthOf(dtype, outer * length * row))
  let to = 0
  for (let i = 0; i < outer; i++) {
    for (const [at, shard] of shards.entries()) {
      const size = lengths[at]! * row
      copyElements({ dtype, bytes: shard.bytes, layout: null }, i * size, size, bytes, to)
      to += size
    }
  }
  return { dtype, shape: shape.map((size, i) => (i === axis ? length : size)), bytes }
}

/** The difference of two joined tensors; null if their shapes differ. */
export function differenceOfWhole(a: Whole, b: Whole, tolerance: DifferenceTolerance): TensorDifference | null {
  if (!isSameShape(a.shape, b.shape)) return null
  return withEngineSync(engine => {
    engine.reset()
    const held = [a, b].map(({ dtype, shape, bytes }) => {
      const address = engine.reserveBytes(bytes.length)
      engine.view(address, bytes.length).set(bytes)
      return { dtype, shape, address, count: shape.reduce((product, size) => product * size, 1), isUnfolded: false }
    })
    return differenceIn(differenceOf(engine, held[0]!, held[1]!, toleranceNumbers(tolerance)))
  })
}
