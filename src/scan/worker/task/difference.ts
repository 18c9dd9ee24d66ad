/** The difference between two tensors in the core's memory. */

import type { DType } from '../../../base/types.js'
import { DifferenceRow, WIDENED_ELEMENTS } from '../../../core/border/abi.js'
import type { Address } from '../../../core/border/memory.js'
import { byteLengthOf, dtypeNumber, elementByteLength, isFloat } from '../../../core/dtype.js'
import type { Scales } from '../../../core/elements.js'
import { coreOf, type Engine } from '../../../core/engine.js'
import { countsEach, differ, placeApart, UlpCounts } from '../../../core/ulps.js'
import type { Elements } from './element-reader.js'

const UNEQUAL_COUNT = DifferenceRow.unequalCount / 8
const BEYOND_COUNT = DifferenceRow.beyondCount / 8
const LARGEST_BLOCK = DifferenceRow.largestBlock / 8
const MAX_ABSOLUTE = DifferenceRow.maxAbsolute / 8
const MAX_ULPS = DifferenceRow.maxUlps / 8
const SQUARES_A = DifferenceRow.squaresA / 8
const SQUARES_B = DifferenceRow.squaresB / 8
/** The number of a tensor's elements whose distance in units of the last place is counted; for 16-bit floats all are. */
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

/** Takes a piece of both tensors. @returns whether nothing of what follows is wanted */
type Pass = (a: Address, b: Address, count: number) => boolean

/**
 * The numbers of a DifferenceRow, the shape behind them, and before them:
 * - whether the bits are equal, 1 or 0: tensors of equal bits are read no further, and their list ends after `count`
 * - the index of the first element whose bits are not, two NaN left aside (-1: none, or the dtypes differ)
 * - how many elements are not close
 * - the index of the largest |a − b| (-1: none)
 * - whether there are NaN or infinities, of either: 1 in the first, 2 in the second
 * - what a half, 90 % and 99 % of the distances in units of the last place are at most, of about 8,192 elements of a larger tensor, of
 *   floats of 16 bits of all (NaN: of floats of one type alone)
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
  return engine.scoped(() => {
    const difference = new Difference(engine, a, b, tolerance)
    for (const pass of difference.passes()) pass(a.address, b.address, a.count)
    return difference.numbers()
  })
}

/** The same of two tensors that come in pieces: once, and again where their bits or their range ask for it. */
export class Difference {
  readonly #engine: Engine
  readonly #a: DType
  readonly #b: DType
  readonly #count: number
  readonly #shape: readonly number[]
  readonly #tolerance: readonly [rtol: number, atol: number]
  readonly #hasUlps: boolean
  /** The number of first elements of each WIDENED_ELEMENTS whose distances are counted: of long types that takes longer than all else. */
  readonly #sampled: number
  /** Made once elements differ. */
  #ulps: UlpCounts | null = null
  readonly #row: Address
  /** Elements that a pass has taken. */
  #done = 0
  /** The first of which the bits differ. */
  #first = -1
  /** The first of which the bits differ and not both are NaN; it is looked for as long as all numbers are equal. */
  #firstSign = -1
  #most = -1
  #mostPair: readonly [number, number] = [Number.NaN, Number.NaN]
  readonly #largest: [a: number, b: number] = [0, 0]
  #notFinite = 0
  #scales = UNSCALED
  #slots: Float64Array = new Float64Array()
  #beyond = 0

  /** Reserves memory in the core. */
  constructor(
    engine: Engine,
    a: Pick<Elements, 'dtype' | 'shape' | 'count'>,
    b: Pick<Elements, 'dtype'>,
    tolerance: readonly number[],
  ) {
    this.#engine = engine
    this.#a = a.dtype
    this.#b = b.dtype
    this.#count = a.count
    this.#shape = a.shape
    const [rtol, atol] = tolerance.some(Number.isNaN) ? toleranceOf(a.dtype, b.dtype) : tolerance
    this.#tolerance = [rtol!, atol!]
    this.#hasUlps = a.dtype === b.dtype && isFloat(a.dtype)
    const sampled = countsEach(a.dtype)
      ? WIDENED_ELEMENTS
      : Math.ceil(ULP_ELEMENTS / Math.ceil(a.count / WIDENED_ELEMENTS))
    this.#sampled = this.#hasUlps ? sampled : 0
    this.#row = engine.elements.reserveDifference()
  }

  /** The passes over all pieces that are necessary, one after the other. Each piece but the last has whole WIDENED_ELEMENTS. */
  *passes(): Generator<Pass> {
    const { elements } = this.#engine
    if (this.#a === this.#b) {
      yield this.#pass((a, b, count) => this.#findFirst(a, b, count))
      if (this.#first < 0) return
    }
    this.#ulps = new UlpCounts(this.#engine, this.#a)
    yield this.#pass((a, b, count) => this.#add(a, b, count))
    this.#slots = elements.difference(this.#row)
    const [rtol, atol] = this.#tolerance
    this.#beyond = this.#slots[rtol === 0 && atol === 0 ? UNEQUAL_COUNT : BEYOND_COUNT]!
    if (isOrdinary(this.#slots[SQUARES_A]!) && isOrdinary(this.#slots[SQUARES_B]!)) return
    yield this.#pass((a, b, count) => {
      this.#largest[0] = Math.max(this.#largest[0], largestOf(this.#engine, this.#a, a, count))
      this.#largest[1] = Math.max(this.#largest[1], largestOf(this.#engine, this.#b, b, count))
    })
    const [largestA, largestB] = this.#largest
    this.#notFinite = (Number.isFinite(largestA) ? 0 : 1) + (Number.isFinite(largestB) ? 0 : 2)
    this.#scales = { a: scaleOf(largestA), b: scaleOf(largestB) }
    const again = elements.reserveDifference()
    yield this.#pass((a, b, count) => elements.compare(this.#a, a, this.#b, b, count, this.#scales, again))
    this.#slots = elements.difference(again)
  }

  numbers(): readonly number[] {
    const dtypes = [dtypeNumber(this.#a), dtypeNumber(this.#b)]
    if (this.#slots.length === 0) {
      return [1, -1, 0, -1, 0, 0, 0, 0, 1, 1, ...dtypes, Number.NaN, Number.NaN, this.#count]
    }
    const shares = this.#hasUlps && this.#ulps !== null ? this.#ulps.atMost(SHARES, this.#slots[MAX_ULPS]!) : NO_SHARES
    // Where all numbers are equal, what differs is the sign of a zero, or the bits of a NaN.
    const first = this.#slots[UNEQUAL_COUNT] === 0 ? this.#firstSign : this.#first
    const numbers = [0, first, this.#beyond, this.#most, this.#notFinite, ...shares, this.#scales.a, this.#scales.b]
    numbers.push(...dtypes, ...this.#mostPair, ...this.#slots, ...this.#shape)
    return numbers
  }

  #pass(take: (a: Address, b: Address, count: number) => unknown): Pass {
    this.#done = 0
    return (a, b, count) => {
      const isEnough = take(a, b, count) === true
      this.#done += count
      return isEnough
    }
  }

  #findFirst(a: Address, b: Address, count: number): boolean {
    const first = firstUnequalBits(this.#engine, this.#a, a, b, count)
    if (first >= 0) this.#first = this.#done + first
    return first >= 0
  }

  #add(addressA: Address, addressB: Address, count: number): void {
    const engine = this.#engine
    const { elements } = engine
    const [a, b] = [
      { dtype: this.#a, address: addressA },
      { dtype: this.#b, address: addressB },
    ]
    const [rtol, atol] = this.#tolerance
    const before = elements.difference(this.#row)[MAX_ABSOLUTE]!
    differ(engine, a, b, count, { rtol, atol }, this.#sampled, this.#ulps!, this.#row)
    const slots = elements.difference(this.#row)
    const most = slots[MAX_ABSOLUTE]!
    if (!Object.is(most, before)) {
      const block = slots[LARGEST_BLOCK]! - this.#done
      const place = placeApart(engine, a, b, block, Math.min(WIDENED_ELEMENTS, count - block), most)
      this.#most = this.#done + place
      this.#mostPair = [elements.numberAt(this.#a, addressA, place), elements.numberAt(this.#b, addressB, place)]
    }
    const isAfterFirst = this.#first >= 0 && this.#first < this.#done + count
    if (slots[UNEQUAL_COUNT] === 0 && this.#firstSign < 0 && isAfterFirst) {
      const sign = firstSign(engine, this.#a, addressA, addressB, count, Math.max(0, this.#first - this.#done))
      if (sign >= 0) this.#firstSign = this.#done + sign
    }
  }
}

function firstUnequalBits(engine: Engine, dtype: DType, a: Address, b: Address, count: number): number {
  const size = elementByteLength(dtype)
  const byte = coreOf(engine).differAt(a, b, byteLengthOf(dtype, count))
  if (byte < 0 || size >= 1) return byte < 0 ? -1 : Math.floor(byte / size)
  // Two elements share the byte; of the last one the second half may hold none.
  const [x = 0, y = 0] = [a, b].map(address => engine.view((address + byte) as Address, 1)[0])
  const first = 2 * byte + ((x ^ y) & 15 ? 0 : 1)
  return first < count ? first : -1
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
function firstSign(engine: Engine, dtype: DType, a: Address, b: Address, elements: number, from: number): number {
  const infinity = INFINITIES[dtype]
  if (infinity === undefined) return from
  const [bytes, bits, parts] = infinity
  const count = elements * parts
  const bitsOf = (address: Address, start: number, end: number) => {
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
function largestOf(engine: Engine, dtype: DType, address: Address, count: number): number {
  const [least = Number.NaN, most = Number.NaN] = engine.elements.percentiles(dtype, address, count, [0, 100])
  return Math.max(Math.abs(least), Math.abs(most))
}

/** A power of two that brings such a magnitude near 1; 1 for one that has none. */
function scaleOf(largest: number): number {
  if (!(largest > 0 && Number.isFinite(largest))) return 1
  return 2 ** Math.max(-1000, Math.min(1000, -Math.floor(Math.log2(largest))))
}
