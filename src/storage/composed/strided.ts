/** Elements that do not lie in C order: the pieces to read for a range of them, and where each belongs. */

/** A piece of the requested range. */
export interface Piece {
  /** The path of the file; null if `bytes` has the piece. */
  readonly file: string | null
  /** First byte in the file. */
  readonly start: number
  readonly byteLength: number
  readonly bytes?: Uint8Array
  /** The position in the requested range. */
  readonly at: number
  /** Copies bytes of the file to their places, if they are not contiguous. */
  readonly scatter?: (bytes: Uint8Array, into: Uint8Array) => void
}

/** Elements along each axis, [from, to). */
export interface Box {
  readonly from: readonly number[]
  readonly to: readonly number[]
}

/**
 * Splits the elements [first, end) in C order into boxes: a partial row, whole rows and a partial row, on every axis.
 */
export function boxesOf(shape: readonly number[], first: number, end: number): Box[] {
  if (first >= end) return []
  const [length, ...inner] = shape
  if (length === undefined) return [{ from: [], to: [] }]
  const size = inner.reduce((product, length) => product * length, 1)
  const [row, lastRow] = [Math.floor(first / size), Math.floor((end - 1) / size)]
  const inRow = (at: number, boxes: readonly Box[]): Box[] =>
    boxes.map(({ from, to }) => ({ from: [at, ...from], to: [at + 1, ...to] }))
  if (row === lastRow) return inRow(row, boxesOf(inner, first - row * size, end - row * size))
  const boxes: Box[] = []
  let whole = row
  if (first > row * size) {
    boxes.push(...inRow(row, boxesOf(inner, first - row * size, size)))
    whole = row + 1
  }
  const wholeEnd = end === (lastRow + 1) * size ? lastRow + 1 : lastRow
  if (wholeEnd > whole) boxes.push({ from: [whole, ...inner.map(() => 0)], to: [wholeEnd, ...inner] })
  if (wholeEnd === lastRow) boxes.push(...inRow(lastRow, boxesOf(inner, 0, end - lastRow * size)))
  return boxes
}

/** The longest span, in bytes, from the first to the last of scattered elements in one read. */
const MAX_HULL_BYTES = 1 << 20
/** The largest ratio of a span to its requested bytes, unless the span is no longer than `SHORT_HULL_BYTES`. */
const MAX_HULL_RATIO = 16
const SHORT_HULL_BYTES = 64 << 10

interface StridedBlock {
  readonly file: string
  readonly start: number
  readonly offsets: readonly number[]
  readonly sizes: readonly number[]
  readonly strides: readonly number[]
}

interface WantedElements {
  readonly shape: readonly number[]
  readonly size: number
  readonly wanted: Box
  /** The requested byte range of the elements. */
  readonly from: number
  readonly to: number
  readonly at: number
}

/** The pieces of a box that are requested, in the order in which they lie in the file. */
export function* stridedPieces(
  { file, start, offsets, sizes, strides }: StridedBlock,
  { shape, size, wanted, from, to, at }: WantedElements,
): Generator<Piece> {
  const rank = shape.length
  // Where it begins in the box and in the tensor, and how much of it there is.
  const axes: { readonly count: number; readonly source: number; readonly target: number }[] = []
  let [source, target, step] = [0, 0, 1]
  for (let axis = rank - 1; axis >= 0; axis--) {
    const first = Math.max(wanted.from[axis]!, offsets[axis]!)
    const end = Math.min(wanted.to[axis]!, offsets[axis]! + sizes[axis]!)
    if (first >= end) return
    source += (first - offsets[axis]!) * strides[axis]!
    target += first * step
    if (end - first > 1) axes.push({ count: end - first, source: strides[axis]!, target: step })
    step *= shape[axis]!
  }
  axes.sort((a, b) => a.source - b.source || a.target - b.target)
  // As many of the axes as lie close to each other are read at once.
  let [inner, hull, useful] = [0, 1, 1]
  for (const { count, source } of axes) {
    const longer = hull + (count - 1) * source
    const isClose = longer * size <= SHORT_HULL_BYTES || longer <= MAX_HULL_RATIO * useful * count
    if (longer * size > MAX_HULL_BYTES || !isClose) break
    hull = longer
    useful *= count
    inner++
  }
  const [near, far] = [axes.slice(0, inner), axes.slice(inner)]
  const isRun = near.every(({ source, target }) => source === target) && hull === useful
  // An axis of which all would be too long is read in pieces of it, if its neighbours are next to each other.
  const [next] = far
  if (next !== undefined && hull === useful && next.source === hull) {
    const atOnce = Math.max(1, Math.floor(MAX_HULL_BYTES / (hull * size)))
    const others = far.slice(1)
    for (const [sourceOffset, targetOffset] of placesOf(others)) {
      for (let i = 0; i < next.count; i += atOnce) {
        const piece = { count: Math.min(atOnce, next.count - i), source: next.source, target: next.target }
        yield pieceOf(
          [...near, piece],
          source + sourceOffset + i * next.source,
          target + targetOffset + i * next.target,
          isRun && next.target === hull,
        )
      }
    }
    return
  }
  for (const [sourceOffset, targetOffset] of placesOf(far))
    yield pieceOf(near, source + sourceOffset, target + targetOffset, isRun)

  function pieceOf(axes: readonly Axis[], sourceAt: number, targetAt: number, isRun: boolean): Piece {
    const length = 1 + axes.reduce((sum, { count, source }) => sum + (count - 1) * source, 0)
    const [begin, bytes] = [start + sourceAt * size, length * size]
    const place = targetAt * size - from
    if (isRun && place >= 0 && place + bytes <= to - from) {
      return { file, start: begin, byteLength: bytes, at: at + place }
    }
    const [inner = ONE, ...outer] = axes
    // Bytes at the beginning or the end that were not requested are left out.
    const scatter = (read: Uint8Array, into: Uint8Array): void => {
      for (const [sourceOffset, targetOffset] of placesOf(outer)) {
        if (inner.source === 1 && inner.target === 1) {
          const [comes, goes] = [sourceOffset * size, place + targetOffset * size]
          const [first, end] = [Math.max(0, -goes), Math.min(inner.count * size, to - from - goes)]
          if (first < end) into.set(read.subarray(comes + first, comes + end), at + goes + first)
          continue
        }
        for (let k = 0; k < inner.count; k++) {
          const comes = (sourceOffset + k * inner.source) * size
          const goes = place + (targetOffset + k * inner.target) * size
          for (let i = Math.max(0, -goes); i < size && goes + i < to - from; i++) into[at + goes + i] = read[comes + i]!
        }
      }
    }
    return { file, start: begin, byteLength: bytes, at, scatter }
  }
}

/** The axis of a single element. */
const ONE: Axis = { count: 1, source: 1, target: 1 }

interface Axis {
  readonly count: number
  readonly source: number
  readonly target: number
}

/** The source and target positions of all elements along the axes, the first axis fastest. */
function* placesOf(axes: readonly Axis[]): Generator<readonly [source: number, target: number]> {
  const last = axes.at(-1)
  if (last === undefined) {
    yield [0, 0]
    return
  }
  const others = axes.slice(0, -1)
  for (let i = 0; i < last.count; i++) {
    for (const [source, target] of placesOf(others)) yield [source + i * last.source, target + i * last.target]
  }
}
