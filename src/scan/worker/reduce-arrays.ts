/**
 * Moments of arrays outside the core's memory. They are copied into it a window at a time, so that it does not grow with them, and cut
 * into the same parts as the record of such a tensor, so that both give the same bits.
 */

import { BLOCK_ELEMENTS, type KnownMoments } from '../../core/border/abi.js'
import type { Address } from '../../core/border/memory.js'
import { byteLengthOf, elementByteLength } from '../../core/dtype.js'
import type { Engine } from '../../core/engine.js'
import { ROW_LENGTH } from '../../core/moments-row.js'
import type { Batch } from '../../core/slots.js'
import type { ArrayElements, ArrayPart, ArraysJob, ArraysReply } from '../job/array-job.js'
import { PART_BYTES } from '../job/plan/memory.js'
import { copyElements } from '../job/tensor/copy-elements.js'

/** The number of bytes copied into the core at once: they stay in the cache, and hold a block of the widest elements. */
export const WINDOW_BYTES = 128 << 10

export function reduceArrays({ parts, known, returned }: ArraysJob, engine: Engine): ArraysReply {
  const rows = new Float64Array(parts.length * ROW_LENGTH)
  for (const [i, { array, ...part }] of parts.entries()) {
    engine.reset()
    const batch = engine.reserveBatch(1)
    engine.resetRow(batch)
    addCopied(engine, batch, array, part, 0, known)
    rows.set(engine.rows(batch, 1), i * ROW_LENGTH)
  }
  return { kind: 'arrays', rows, returned: returned.map(buffer => new Uint8Array(buffer)) }
}

/** The row of moments of an array. */
export function reduceArray(engine: Engine, array: ArrayElements, known: KnownMoments): Float64Array<ArrayBuffer> {
  engine.reset()
  const batch = engine.reserveBatch(2)
  return mergedRow(engine, batch, array, (part, row) => addCopied(engine, batch, array, part, row, known))
}

/** Reduces elements in the core's memory. @param batch a batch with room for two rows */
export function reduceInPlace(
  engine: Engine,
  batch: Batch,
  array: Pick<ArrayElements, 'dtype' | 'count'>,
  address: Address,
  known: KnownMoments,
): Float64Array<ArrayBuffer> {
  const size = elementByteLength(array.dtype)
  return mergedRow(engine, batch, array, ({ first, count }, row) => {
    engine.addToRow(batch, array.dtype, (address + first * size) as Address, count, row, known)
  })
}

/** The parts of an array, by first element and count: as many as a record that holds it has. */
export function partsOf({ dtype, count }: Pick<ArrayElements, 'dtype' | 'count'>): ArrayPart[] {
  // A record is some hundred bytes longer than its elements.
  const parts = Math.floor(byteLengthOf(dtype, count) / PART_BYTES) + 1
  const perPart = Math.ceil(count / parts / BLOCK_ELEMENTS) * BLOCK_ELEMENTS
  return Array.from({ length: parts }, (_, part) => {
    const first = Math.min(count, part * perPart)
    return { first, count: Math.min(perPart, count - first) }
  })
}

/** @param add adds a part to a row of the batch */
function mergedRow(
  engine: Engine,
  batch: Batch,
  array: Pick<ArrayElements, 'dtype' | 'count'>,
  add: (part: ArrayPart, row: number) => void,
): Float64Array<ArrayBuffer> {
  const parts = partsOf(array)
  engine.resetRow(batch, 0)
  if (parts.length === 1) add(parts[0]!, 0)
  else {
    for (const part of parts) {
      engine.resetRow(batch, 1)
      add(part, 1)
      engine.mergeRow(batch, 0, 1)
    }
  }
  return engine.rows(batch, 1).slice()
}

function addCopied(
  engine: Engine,
  batch: Batch,
  array: ArrayElements,
  { first, count }: ArrayPart,
  row: number,
  known: KnownMoments,
): void {
  const add = (window: Address, n: number) => engine.addToRow(batch, array.dtype, window, n, row, known)
  eachWindow(engine, array, add, { first, count })
}

/** Copies an array into the core's memory, a window at a time. @param part the part to copy; default: all of it */
export function eachWindow(
  engine: Engine,
  array: ArrayElements,
  take: (window: Address, count: number) => void,
  { first, count }: ArrayPart = { first: 0, count: array.count },
): void {
  const size = elementByteLength(array.dtype)
  const step = WINDOW_BYTES / size
  engine.scoped(() => {
    const window = engine.reserveBytes(Math.min(WINDOW_BYTES, byteLengthOf(array.dtype, count)))
    for (let at = 0; at < count; at += step) {
      const n = Math.min(step, count - at)
      copyElements(array, first + at, n, engine.view(window, byteLengthOf(array.dtype, n)))
      take(window, n)
    }
  })
}
