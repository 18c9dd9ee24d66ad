/** The difference between two tensors in the core's memory. */

import type { DType } from '../../../base/types.js'
import { DifferenceRow, WIDENED_ELEMENTS } from '../../../core/border/abi.js'
import type { Address } from '../../../core/border/memory.js'
import { byteLengthOf, dtypeNumber, elementByteLength, isFloat } from '../../../core/dtype.js'
import type { Scales } from '../../../core/elements.js'
import type { Engine } from '../../../core/engine.js'
import { differ, placeApart, UlpCounts } from '../../../core/ulps.js'
import type { Elements } from './elements.js'

const UNEQUAL_COUNT = DifferenceRow.unequalCount / 8
const BEYOND_COUNT = DifferenceRow.beyondCount / 8
const LARGEST_BLOCK = DifferenceRow.largestBlock / 8
const MAX_ABSOLUTE = DifferenceRow.maxAbsolute / 8
const SQUARES_A = DifferenceRow.squaresA / 8
const SQUARES_B = DifferenceRow.squaresB / 8
/** Elements of a tensor of which distances in units of the last place are counted. */
const ULP_ELEMENTS = 1 << 13
const SHARES = [0.5, 0.9, 0.99]
const NO_SHARES = [Number.NaN, Number.NaN, Number.NaN]
const UNSCALED: Scales = { a: 1, b: 1 }

/** The tolerances by dtype: the defaults of torch.testing.assert_close. Other dtypes must be equal. */
const TOLERANCES: Partial<Record<DType, readonly [rtol: number, atol: number]>> = {
  float16: [1e-3, 1e-5],
  bfloat16: [1.6e-2, 1e-5],
  float32: [1.3e-6, 1e-5],
  float64: [1e-7, 1e-7],
  complex64: [1.3e-6, 1e-5],
  complex128: [1e-7, 1e-7],
}

/**
 * The numbers of a DifferenceRow, the shape behind them, and before them:
 * - whether the bits are equal, 1 or 0: tensors of equal bits are read no further, and their list ends after `count`
 * - the index of the first element whose bits are not, two NaN left aside (-1: none, or the dtypes differ)
 * - how many elements are not close
 * - the index of the largest |a − b| (-1: none)
 * - whether there are NaN or infinities, of either: 1 in the first, 2 in the second
 * - what a half, 90 % and 99 % of the distances in units of the last place are at most, of about 8,192 elements of a larger tensor (NaN: of
 *   floats of one type alone)
 * - what the elements were scaled by before they were squared
 * - the numbers of the dtypes
 * - the two elements that are farthest apart, as float64 (NaN: there are none, or they are complex)
 * @param tolerance rtol and atol; NaN: those of the dtypes
 */
export function differenceOf(
  engine: Engine,
  a: Elements,
  b: Elements,
  tolerance: readonly number[],
): readonly number[] {
  const isSameType = a.dtype === b.dtype
  const dtypes = [dtypeNumber(a.dtype), dtypeNumber(b.dtype)]
  const first = isSameType ? firstUnequalBits(engine, a, b) : -1
  if (isSameType && first < 0) return [1, -1, 0, -1, 0, 0, 0, 0, 1, 1, ...dtypes, Number.NaN, Number.NaN, a.count]
  return engine.scoped(() => {
    const { elements } = engine
    const [rtol, atol] = tolerance.some(Number.isNaN) ? toleranceOf(a.dtype, b.dtype) : tolerance
    const hasUlps = isSameType && isFloat(a.dtype)
    // Of each block the first ones, since counting takes longer than all else.
    const sampled = hasUlps ? Math.ceil(ULP_ELEMENTS / Math.ceil(a.count / WIDENED_ELEMENTS)) : 0
    const ulps = new UlpCounts(engine)
    const row = elements.reserveDifference()
    differ(engine, a, b, a.count, { rtol: rtol!, atol: atol! }, sampled, ulps, row)
    let slots = elements.difference(row)
    const beyond = slots[rtol === 0 && atol === 0 ? UNEQUAL_COUNT : BEYOND_COUNT]!
    let scales = UNSCALED
    let notFinite = 0
    if (!isOrdinary(slots[SQUARES_A]!) || !isOrdinary(slots[SQUARES_B]!)) {
      const [largestA, largestB] = [largestOf(engine, a), largestOf(engine, b)]
      notFinite = (Number.isFinite(largestA) ? 0 : 1) + (Number.isFinite(largestB) ? 0 : 2)
      scales = { a: scaleOf(largestA), b: scaleOf(largestB) }
      const again = elements.reserveDifference()
      elements.compare(a.dtype, a.address, b.dtype, b.address, a.count, scales, again)
      slots = elements.difference(again)
    }
    let mostAt = -1
    const most = slots[MAX_ABSOLUTE]!
    if (most !== 0) {
      const block = slots[LARGEST_BLOCK]!
      const count = Math.min(WIDENED_ELEMENTS, a.count - block)
      mostAt = placeApart(engine, a, b, block, count, most)
    }
    const shares = hasUlps ? ulps.atMost(SHARES) : NO_SHARES
    // Where all numbers are equal, what differs is the sign of a zero, or the bits of a NaN.
    const firstApart = slots[UNEQUAL_COUNT] === 0 ? firstSign(engine, a, b, first) : first
    const numbers = [0, firstApart, beyond, mostAt, notFinite, shares[0]!, shares[1]!, shares[2]!, scales.a, scales.b]
    numbers.push(...dtypes, numberAt(engine, a, mostAt), numberAt(engine, b, mostAt))
    for (let slot = 0; slot < slots.length; slot++) numbers.push(slots[slot]!)
    for (const size of a.shape) numbers.push(size)
    return numbers
  })
}

function firstUnequalBits(engine: Engine, a: Elements, b: Elements): number {
  const size = elementByteLength(a.dtype)
  const byte = engine.elements.differAt(a.address, b.address, byteLengthOf(a.dtype, a.count))
  if (byte < 0 || size >= 1) return byte < 0 ? -1 : Math.floor(byte / size)
  // Two elements share the byte; of the last one the second half may hold none.
  const [x = 0, y = 0] = [a, b].map(({ address }) => engine.view((address + byte) as Address, 1)[0])
  const first = 2 * byte + ((x ^ y) & 15 ? 0 : 1)
  return first < a.count ? first : -1
}

/** Bits of a NaN are more than these, without the sign. */
const INFINITIES: Readonly<Partial<Record<DType, readonly [bytes: 2 | 4 | 8, bits: bigint, parts: 1 | 2]>>> = {
  float16: [2, 0x7c00n, 1],
  bfloat16: [2, 0x7f80n, 1],
  float32: [4, 0x7f80_0000n, 1],
  float64: [8, 0x7ff0_0000_0000_0000n, 1],
  complex64: [4, 0x7f80_0000n, 2],
  complex128: [8, 0x7ff0_0000_0000_0000n, 2],
}
const SIGNS_AT_ONCE = 1 << 16

/**
 * The index of the first element from `from` on that differs only in its bits (0 and −0); NaNs are skipped. -1 if there is
 * none.
 */
function firstSign(engine: Engine, a: Elements, b: Elements, from: number): number {
  const infinity = INFINITIES[a.dtype]
  if (from < 0 || infinity === undefined) return from
  const [bytes, bits, parts] = infinity
  const count = a.count * parts
  const bitsOf = ({ address }: Elements, start: number, end: number) => {
    const { buffer } = engine.view((address + start * bytes) as Address, (end - start) * bytes).slice()
    return bytes === 2 ? new Uint16Array(buffer) : bytes === 4 ? new Uint32Array(buffer) : new BigUint64Array(buffer)
  }
  const magnitude = (1n << BigInt(8 * bytes - 1)) - 1n
  for (let start = from * parts; start < count; start += SIGNS_AT_ONCE) {
    const end = Math.min(count, start + SIGNS_AT_ONCE)
    const [x, y] = [bitsOf(a, start, end), bitsOf(b, start, end)]
    for (let i = 0; i < x.length; i++) {
      if (x[i] === y[i]) continue
      const areNaN = [x[i]!, y[i]!].every(word => (BigInt(word) & magnitude) > bits)
      if (!areNaN) return Math.floor((start + i) / parts)
    }
  }
  return -1
}

/** An element as float64; NaN: the place is -1, or the element is complex. */
function numberAt(engine: Engine, { dtype, address }: Elements, place: number): number {
  if (place < 0) return Number.NaN
  return engine.elements.numberAt(dtype, address, place)
}

/** The wider tolerance of two dtypes. */
function toleranceOf(a: DType, b: DType): readonly [rtol: number, atol: number] {
  const [[rtolA, atolA], [rtolB, atolB]] = [TOLERANCES[a] ?? [0, 0], TOLERANCES[b] ?? [0, 0]]
  return [Math.max(rtolA, rtolB), Math.max(atolA, atolB)]
}

/** True if a sum of squares is far from both ends of float64's range, or zero because all elements are. */
function isOrdinary(squares: number): boolean {
  return squares === 0 || (squares > 1e-250 && squares < 1e290)
}

/** The largest magnitude; NaN of complex numbers, which have no order, and where there is a NaN. */
function largestOf(engine: Engine, { dtype, address, count }: Elements): number {
  const [least = Number.NaN, most = Number.NaN] = engine.elements.percentiles(dtype, address, count, [0, 100])
  return Math.max(Math.abs(least), Math.abs(most))
}

/** A power of two that brings such a magnitude near 1; 1 for one that has none. */
function scaleOf(largest: number): number {
  if (!(largest > 0 && Number.isFinite(largest))) return 1
  return 2 ** Math.max(-1000, Math.min(1000, -Math.floor(Math.log2(largest))))
}
