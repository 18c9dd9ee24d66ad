/** Checks that the chunks of a tensor cover it: each element once. */

/** Boxes in a tensor: of each as many offsets and sizes as there are axes. */
export interface Boxes {
  readonly shape: readonly number[]
  readonly offsets: Float64Array
  readonly sizes: Float64Array
}

export interface Coverage {
  /** Elements that no chunk has. */
  readonly missing: number
  /** Two chunks with common elements; null: there are none; 'unknown': there are too many chunks to compare. */
  readonly overlap: readonly [number, number] | 'unknown' | null
}

/** The largest number of pairs of chunks that are compared. */
const MAX_PAIRS = 50_000_000

/** The coverage of a tensor by its chunks. @param chunks the numbers of those present */
export function coverageOf({ shape, offsets, sizes }: Boxes, chunks: readonly number[]): Coverage {
  const rank = shape.length
  const total = shape.reduce((product, size) => product * size, 1)
  let volume = 0
  for (const chunk of chunks) {
    let elements = 1
    for (let axis = 0; axis < rank; axis++) elements *= sizes[chunk * rank + axis]!
    volume += elements
  }
  const overlap = overlapOf(rank, offsets, sizes, chunks)
  return { missing: overlap === null ? total - volume : 0, overlap }
}

function overlapOf(
  rank: number,
  offsets: Float64Array,
  sizes: Float64Array,
  chunks: readonly number[],
): Coverage['overlap'] {
  if (chunks.length < 2) return null
  const isEmpty = (chunk: number) => {
    for (let axis = 0; axis < rank; axis++) if (sizes[chunk * rank + axis] === 0) return true
    return false
  }
  const filled = chunks.filter(chunk => !isEmpty(chunk))
  // Along the axis that has most of them apart, few pairs have to be compared.
  const begins = Array.from({ length: rank }, (_, axis) => new Set(filled.map(chunk => offsets[chunk * rank + axis]!)))
  const along = begins.reduce((best, { size }, axis) => (size > begins[best]!.size ? axis : best), 0)
  const beginOf = (chunk: number) => (rank === 0 ? 0 : offsets[chunk * rank + along]!)
  const sorted = filled.sort((a, b) => beginOf(a) - beginOf(b))
  let pairs = 0
  for (const [i, chunk] of sorted.entries()) {
    const end = rank === 0 ? 1 : beginOf(chunk) + sizes[chunk * rank + along]!
    for (let j = i + 1; j < sorted.length; j++) {
      const other = sorted[j]!
      if (beginOf(other) >= end) break
      if (++pairs > MAX_PAIRS) return 'unknown'
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
