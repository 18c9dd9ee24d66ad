/** A tensor of a checkpoint as a record of a composed file. */

import { elementByteLength } from '../../../core/dtype.js'
import type { Block, StoredTensor } from '../../../format/checkpoint/stored-tensor.js'
import type { SourceBlock, SourceRecord } from '../../../storage/composed/table-builder.js'
import type { RecordHeads } from './record-head.js'

/** @param heads makes the bytes before the elements */
export function sourceRecord(
  step: number,
  { name, dtype, shape, blocks, data }: StoredTensor,
  heads: RecordHeads,
): SourceRecord {
  const size = elementByteLength(dtype)
  const dataByteLength = data?.length ?? Math.ceil(countOf(shape) * size)
  const head = heads.of(step, name, dtype, shape, dataByteLength)
  if (dataByteLength === 0) return { head, dataByteLength, blocks: [] }
  if (data !== undefined) {
    return { head, dataByteLength, blocks: [{ file: null, start: 0, literal: data, byteLength: data.length }] }
  }
  const [first] = blocks
  if (blocks.length === 1 && isWhole(first!)) {
    return { head, dataByteLength, blocks: [{ file: first!.file, start: first!.start, byteLength: dataByteLength }] }
  }
  const runs = runsOf(blocks, shape, size, dataByteLength)
  if (runs !== null) return { head, dataByteLength, blocks: runs }
  return {
    head,
    dataByteLength,
    blocks: blocks.map(block => boxOf(block, shape, size)),
    gathered: { shape, elementByteLength: size },
  }
}

/** True if a block is all of the tensor in C order, as most are. */
function isWhole({ offsets, shape, strides }: Block): boolean {
  return offsets === undefined && shape === undefined && strides === undefined
}

/** Blocks as runs of bytes in the order of the tensor; null if they don't fit or are ordered otherwise in their files. */
function runsOf(
  blocks: readonly Block[],
  shape: readonly number[],
  size: number,
  dataByteLength: number,
): SourceBlock[] | null {
  const runs: { readonly at: number; readonly block: SourceBlock }[] = []
  for (const { file, start, offsets, shape: sizes = shape, strides } of blocks) {
    if (strides !== undefined && !isContiguous(sizes, strides)) return null
    // All axes behind the first one longer than 1 must be complete.
    const first = sizes.findIndex(length => length !== 1)
    const axis = first < 0 ? sizes.length : first
    for (let i = axis + 1; i < sizes.length; i++) if (sizes[i] !== shape[i]) return null
    const byteLength = Math.ceil(countOf(sizes) * size)
    if (byteLength === 0) continue
    runs.push({ at: offsetOf(offsets, shape) * size, block: { file, start, byteLength } })
  }
  runs.sort((a, b) => a.at - b.at)
  let filled = 0
  for (const { at, block } of runs) {
    if (at !== filled) return null
    filled += block.byteLength
  }
  return filled === dataByteLength ? runs.map(({ block }) => block) : null
}

function boxOf(
  { file, start, offsets, shape: shapeOfBlock, strides }: Block,
  shape: readonly number[],
  size: number,
): SourceBlock {
  const sizes = shapeOfBlock ?? shape
  return {
    file,
    start,
    byteLength: countOf(sizes) * size,
    offsets: offsets ?? shape.map(() => 0),
    shape: sizes,
    strides: strides ?? stridesOf(sizes),
  }
}

function countOf(shape: readonly number[]): number {
  return shape.reduce((product, length) => product * length, 1)
}

/** The strides for C order, in elements. */
function stridesOf(shape: readonly number[]): number[] {
  const strides = new Array<number>(shape.length)
  let step = 1
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    strides[axis] = step
    step *= shape[axis]!
  }
  return strides
}

function isContiguous(shape: readonly number[], strides: readonly number[]): boolean {
  const usual = stridesOf(shape)
  return shape.every((length, axis) => length === 1 || strides[axis] === usual[axis])
}

/** The position of a block in the whole tensor, in elements. */
function offsetOf(offsets: readonly number[] | undefined, shape: readonly number[]): number {
  if (offsets === undefined) return 0
  return stridesOf(shape).reduce((sum, step, axis) => sum + step * offsets[axis]!, 0)
}
