/** Tensors of which several files have parts. */

import { FormatError, quote } from '../../../base/errors.js'
import { coverageOf } from '../../../format/checkpoint/dcp/chunks.js'
import type { StoredTensor } from '../../../format/checkpoint/stored-tensor.js'
import type { Store } from '../../../storage/store.js'
import type { Faults } from './faults.js'

export function fileOf({ blocks }: StoredTensor): string {
  return blocks[0]?.file ?? 'another file'
}

/** The tensor that the parts of several files make up. Null: they don't fit together. */
export function joined(store: Store, parts: readonly StoredTensor[], faults: Faults): StoredTensor | null {
  const [first] = parts as [StoredTensor]
  const blocks = parts.flatMap(({ blocks }) => blocks)
  const rank = first.shape.length
  const isAlike = parts.every(({ dtype, shape }) => dtype === first.dtype && shape.length === rank)
  const shape = first.shape.map((_, axis) =>
    blocks.reduce((end, { offsets = [], shape = [] }) => Math.max(end, (offsets[axis] ?? 0) + (shape[axis] ?? 0)), 0),
  )
  const boxes = {
    shape,
    offsets: Float64Array.from(blocks.flatMap(({ offsets = [] }) => offsets)),
    sizes: Float64Array.from(blocks.flatMap(({ shape = [] }) => shape)),
  }
  const { missing, overlap } = isAlike ? coverageOf(boxes, [...blocks.keys()]) : { missing: 1, overlap: null }
  if (missing === 0 && overlap === null) return { ...first, shape, blocks, isPart: false }
  const url = store.url(fileOf(first))
  const expected = `parts of ${quote(first.name)} that make up [${shape}]`
  const got = !isAlike
    ? 'parts of different dtypes or ranks'
    : overlap === null
      ? `all but ${missing} of its elements`
      : 'parts that overlap'
  const message = `${url}: expected ${expected}, got ${got}: a file is missing, or there twice`
  faults.add(new FormatError('MissingParts', message, { url, expected, got }))
  return null
}
