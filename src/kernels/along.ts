/** Reductions along an axis. */

import { type AxisReductionName, REDUCTIONS } from '../base/types.js'
import { AxisFold } from '../core/border/abi.js'
import { byteLengthOf, dtypeNumber } from '../core/dtype.js'
import { coreOf, type Engine } from '../core/engine.js'
import { withEngineSync } from '../core/engines.js'
import { isDefined, undefinedReduction } from '../core/moments.js'
import type { ArrayElements } from '../scan/job/array-job.js'
import { copyElements } from '../scan/job/tensor/copy-elements.js'
import { type TensorData, tensorData } from '../scan/job/tensor/data.js'
import type { RawValue } from '../scan/job/value-job.js'
import { type ArrayInput, elementsOf } from './elements.js'
import { described, list, wrong } from './wrong.js'

/** The number of elements copied into the core at once: with their results they stay in the cache. */
const PIECE_ELEMENTS = 1 << 16
/** The largest number of neighbouring lines that are reduced at once. Rows a power of 2 apart would share the same few places of the cache. */
const MAX_LINES = 8176
/** The limit of results: an empty tensor can have any number of lines. */
const MAX_RESULTS = 2 ** 28

/** A piece of a tensor, [outer, count, inner] in C order: its outer · inner lines run along the middle axis. */
interface Piece {
  readonly outer: number
  readonly count: number
  readonly inner: number
}

const AXIS_REDUCTIONS = REDUCTIONS.filter(name => !name.endsWith('prod'))

/**
 * Reduces each line along an axis, as `numpy.mean(array, axis=0)` and the like do: an array of shape [4, 3, 2] along axis 1 gives shape
 * [4, 2]. The results are float64; `mean` and `sum` of complex numbers are complex128. Sums are compensated; 64-bit integers are first
 * rounded to float64. NaN in a line makes its result NaN; without elements, sums are 0 and other results NaN.
 * @param name any reduction but `prod` and `abs_prod`
 * @param axis from 0 on, or from -1 backwards
 * @throws UsageError
 * @throws ReductionUndefined for a reduction that is not defined for the dtype
 */
export function along(array: ArrayInput, name: AxisReductionName, axis: number): TensorData<'float64' | 'complex128'> {
  const reduced = tensorData(reduceAlong('along', elementsOf('along', array), name, axis))
  return reduced as TensorData<'float64' | 'complex128'>
}

/** @param call the call as written, for messages */
export function reduceAlong(call: string, array: ArrayElements, name: AxisReductionName, axis: number): RawValue {
  const { dtype, shape } = array
  if (!AXIS_REDUCTIONS.includes(name)) throw wrong(call, `one of ${AXIS_REDUCTIONS.join(', ')}`, described(name))
  const rank = shape.length
  if (!Number.isInteger(axis) || axis < -rank || axis >= rank) {
    const axes = rank === 0 ? 'a tensor with axes' : `an axis from ${-rank} to ${rank - 1} of the shape ${list(shape)}`
    throw wrong(call, axes, rank === 0 ? 'one of no dimensions' : described(axis))
  }
  if (!isDefined(name, dtype)) throw undefinedReduction(name, dtype)
  const at = axis < 0 ? axis + rank : axis
  const product = (sizes: readonly number[]): number => sizes.reduce((total, size) => total * size, 1)
  const tensor = { outer: product(shape.slice(0, at)), count: shape[at]!, inner: product(shape.slice(at + 1)) }
  const results = tensor.outer * tensor.inner
  if (!(results <= MAX_RESULTS))
    throw wrong(call, `at most ${MAX_RESULTS} results`, `${results}, of the shape ${list(shape)}`)
  const numbers = withEngineSync(engine => reduceLines(engine, array, tensor, name))
  return {
    dtype: numbers.length > results ? 'complex128' : 'float64',
    shape: shape.filter((_, i) => i !== at),
    bytes: new Uint8Array(numbers.buffer),
    widened: null,
    strings: null,
  }
}

/** One number per line; two for sums and means of complex numbers. */
function reduceLines(
  engine: Engine,
  array: ArrayElements,
  tensor: Piece,
  name: AxisReductionName,
): Float64Array<ArrayBuffer> {
  const { outer, count, inner } = tensor
  const core = coreOf(engine)
  const base = name.replace('abs_', '')
  const isAbsolute = base !== name || base === 'l1' || base === 'l2'
  const isSpread = base === 'variance' || base === 'std'
  const [dtype, absolute] = [dtypeNumber(array.dtype), isAbsolute ? 1 : 0]
  // Each part of a complex number has a line of its own; the variances of the two are added.
  const parts = !isAbsolute && array.dtype.startsWith('complex') ? 2 : 1
  const kept = isSpread ? 1 : parts
  const results = new Float64Array(outer * inner * kept)
  if (count === 0) return base === 'sum' || base === 'l1' || base === 'l2' ? results : results.fill(Number.NaN)

  engine.reset()
  const window = engine.reserveBytes(byteLengthOf(array.dtype, PIECE_ELEMENTS))
  const scratch = engine.reserveBytes(PIECE_ELEMENTS * 16)
  const accumulators = engine.reserveBytes(PIECE_ELEMENTS * parts * 16)
  const means = engine.reserveBytes(PIECE_ELEMENTS * parts * 8)

  const outers = Math.max(1, Math.floor(PIECE_ELEMENTS / (count * inner)))
  const inners = count * inner <= PIECE_ELEMENTS ? inner : Math.min(inner, MAX_LINES)
  for (let firstOuter = 0; firstOuter < outer; firstOuter += outers) {
    for (let firstInner = 0; firstInner < inner; firstInner += inners) {
      const tile = { outer: Math.min(outers, outer - firstOuter), inner: Math.min(inners, inner - firstInner) }
      const lines = tile.outer * tile.inner * parts
      const atOnce = tile.outer > 1 ? count : Math.max(1, Math.floor(PIECE_ELEMENTS / tile.inner))

      /** Copies a piece, starting at element `first` of each line. */
      const copy = (first: number, piece: Piece): void => {
        const from = (firstOuter * count + first) * inner + firstInner
        // Complete rows are contiguous.
        const rows = piece.inner === inner ? 1 : piece.count
        const length = (piece.outer * piece.count * piece.inner) / rows
        const into = engine.view(window, byteLengthOf(array.dtype, rows * length))
        for (let row = 0; row < rows; row++) {
          copyElements(array, from + row * inner, length, into, row * length)
        }
      }
      /** The first element of the piece that was copied last. */
      let copied = -1
      /** A view that is valid until the next call. */
      const fold = (how: AxisFold, divisor = 1): Float64Array<ArrayBuffer> => {
        core.alongReset(how, lines, accumulators)
        for (let first = 0; first < count; first += atOnce) {
          const piece = { ...tile, count: Math.min(atOnce, count - first) }
          if (first !== copied) copy(first, piece)
          copied = first
          core.alongAdd(
            how,
            dtype,
            absolute,
            window,
            piece.outer,
            piece.count,
            piece.inner,
            means,
            scratch,
            accumulators,
          )
        }
        core.alongFinish(lines, accumulators, divisor)
        return engine.doubles(accumulators, lines)
      }

      let numbers: Float64Array
      if (base === 'min' || base === 'max') numbers = fold(base === 'min' ? AxisFold.min : AxisFold.max)
      else if (base === 'l2') {
        engine.doubles(means, lines).fill(0)
        numbers = fold(AxisFold.squares)
      } else {
        numbers = fold(AxisFold.sum, base === 'sum' || base === 'l1' ? 1 : count)
        if (isSpread) {
          engine.doubles(means, lines).set(numbers)
          const squares = fold(AxisFold.squares, count)
          numbers = parts === 1 ? squares : squares.filter((_, i) => i % 2 === 0).map((x, i) => x + squares[2 * i + 1]!)
        }
      }
      if (base === 'std' || base === 'l2') for (let i = 0; i < numbers.length; i++) numbers[i] = Math.sqrt(numbers[i]!)
      results.set(numbers, (firstOuter * inner + firstInner) * kept)
    }
  }
  return results
}
