/**
 * The parts of a comparison that `ElementKernels.compare` lacks: elements that are not close, the place of the largest difference, and a
 * histogram of distances in units of the last place. Separate, since `trialscan/kernels` doesn't need it.
 */

import type { DType } from '../base/types.js'
import type { Address } from './border/memory.js'
import { dtypeNumber, elementByteLength } from './dtype.js'
import type { Closeness } from './elements.js'
import { coreOf, type Engine } from './engine.js'

/** Elements in the core's memory. */
export interface Operand {
  readonly dtype: DType
  readonly address: Address
}

/** The number of bit lengths of a distance: 0 to 64. */
const BIT_LENGTHS = 65
/** The distances of 16-bit floats, and one for pairs with a NaN. */
const DISTANCES = 1 << 16

/** Counts of distances: individually for 16-bit floats, otherwise by bit length: 0, 1, 2 to 3, 4 to 7 and so on. */
export class UlpCounts {
  readonly address: Address
  readonly #engine: Engine
  /** True if every distance is counted individually. */
  readonly #isEach: boolean
  /** Counts from before the 32-bit counters were full. */
  #before: Float64Array | null = null
  #counted = 0

  constructor(engine: Engine, dtype: DType) {
    this.#engine = engine
    this.#isEach = countsEach(dtype)
    this.address = engine.reserveBytes((this.#isEach ? DISTANCES : BIT_LENGTHS) * 4)
    this.#counters.fill(0)
  }

  /** Makes room for further elements, at most 2^31. */
  expect(count: number): void {
    this.#counted += count
    if (this.#counted < 2 ** 32) return
    this.#before ??= new Float64Array(this.#counters.length)
    for (const [i, more] of this.#counters.entries()) this.#before[i]! += more
    this.#counters.fill(0)
    this.#counted = count
  }

  /**
   * The distances that these shares of all elements, ascending, don't exceed; if bit lengths are counted, rounded up to 0, 1, 3, 7 and so
   * on.
   * @param most the largest distance
   */
  atMost(shares: readonly number[], most: number): readonly number[] {
    const counters = this.#counters
    const countOf = (at: number) => counters[at]! + (this.#before?.[at] ?? 0)
    let total = 0
    for (let at = 0, end = this.#isEach ? most + 1 : BIT_LENGTHS; at < end; at++) total += countOf(at)
    let [at, sum] = [0, countOf(0)]
    return shares.map(share => {
      while (sum < share * total) sum += countOf(++at)
      return this.#isEach ? at : 2 ** at - 1
    })
  }

  get #counters(): Uint32Array {
    return this.#engine.words(this.address, this.#isEach ? DISTANCES : BIT_LENGTHS)
  }
}

/** True for types of which every distance of all elements is counted. */
export function countsEach(dtype: DType): boolean {
  return dtype === 'float16' || dtype === 'bfloat16'
}

/**
 * Compares like `ElementKernels.compare`; also counts elements that are not close, if rtol or atol is not 0, and the distances of the
 * first `sampled` floats of each WIDENED_ELEMENTS.
 */
export function differ(
  engine: Engine,
  a: Operand,
  b: Operand,
  count: number,
  { rtol, atol }: Omit<Closeness, 'equalNan'>,
  sampled: number,
  ulps: UlpCounts,
  row: Address,
): void {
  const [dtypeA, dtypeB] = [dtypeNumber(a.dtype), dtypeNumber(b.dtype)]
  ulps.expect(count)
  coreOf(engine).differ(dtypeA, a.address, dtypeB, b.address, count, rtol, atol, sampled, ulps.address, row)
}

/** The index of the first of `count` pairs from `first` on, at most WIDENED_ELEMENTS, with the largest difference. */
export function placeApart(
  engine: Engine,
  a: Operand,
  b: Operand,
  first: number,
  count: number,
  apart: number,
): number {
  const [x, y] = [a, b].map(({ dtype, address }) => address + first * elementByteLength(dtype)) as [number, number]
  return first + coreOf(engine).placeApart(dtypeNumber(a.dtype), x, dtypeNumber(b.dtype), y, count, apart)
}
