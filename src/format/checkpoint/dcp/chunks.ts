/** Checks that the chunks of a tensor cover it: each element once. */

import type { DistributedTensor } from './metadata.js'

export interface Coverage {
  /** Elements that no chunk has. */
  readonly missing: number
  /** Two chunks that have the same elements, if there are such. */
  readonly overlap: readonly [number, number] | null
}

/** Chunks beyond this are not compared each with each where they can't be sorted along an axis. */
const MAX_PAIRS = 4_000_000

/** @param chunks numbers of those that are there */
export function coverageOf({ shape, offsets, sizes }: DistributedTensor, chunks: readonly number[]): Coverage {
  const rank = shape.length
  const total = shape.reduce((product, size) => product * size, 1)
  let volume = 0
  for (const chunk of chunks) {
    let own = 1
    for (let axis = 0; axis < rank; axis++) own *= sizes[chunk * rank + axis]!
    volume += own
  }
  const overlap = overlapOf(rank, offsets, sizes, chunks)
  return { missing: overlap === null ? total - volume : 0, overlap }
}

function overlapOf(
  rank: number,
  offsets: Float64Array,
  sizes: Float64Array,
  chunks: readonly number[],
): readonly [number, number] | null {
  const isEmpty = (chunk: number) => {
    for (let axis = 0; axis < rank; axis++) if (sizes[chunk * rank + axis] === 0) return true
    return false
  }
  const sorted = chunks
    .filter(chunk => !isEmpty(chunk))
    .sort((a, b) => {
      for (let axis = 0; axis < rank; axis++) {
        const difference = offsets[a * rank + axis]! - offsets[b * rank + axis]!
        if (difference !== 0) return difference
      }
      return 0
    })
  let pairs = 0
  for (const [i, chunk] of sorted.entries()) {
    const end = rank === 0 ? 1 : offsets[chunk * rank]! + sizes[chunk * rank]!
    for (let j = i + 1; j < sorted.length; j++) {
      const other = sorted[j]!
      if (rank > 0 && offsets[other * rank]! >= end) break
      if (++pairs > MAX_PAIRS) return null
      if (meets(rank, offsets, sizes, chunk, other)) return [chunk, other]
    }
  }
  return null
}

function meets(rank: number, offsets: Float64Array, sizes: Float64Array, a: number, b: number): boolean {
  for (let axis = 0; axis < rank; axis++) {
    const [from, other] = [offsets[a * rank + axis]!, offsets[b * rank + axis]!]
    if (from + sizes[a * rank + axis]! <= other || other + sizes[b * rank + axis]! <= from) return false
  }
  return true
}
