/**
 * The part of a comparison that `ElementKernels.compare` lacks: what is not close, where the largest difference is, and how
 * many floats lie how far apart, in units of the last place. Apart from it, since `trialscan/kernels` needs none of this.
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

/** Numbers of bits that a distance can have: 0 to 64. */
const BIT_LENGTHS = 65

/** Counts of distances by their numbers of bits: 0, 1, 2 to 3, 4 to 7 and so on. */
export class UlpCounts {
  readonly address: Address
  readonly #engine: Engine

  constructor(engine: Engine) {
    this.#engine = engine
    this.address = engine.reserveBytes(BIT_LENGTHS * 4)
    engine.words(this.address, BIT_LENGTHS).fill(0)
  }

  /** The distances that these shares of all elements, ascending, don't exceed: 0, 1, 3, 7 and so on. */
  atMost(shares: readonly number[]): readonly number[] {
    const counts = this.#engine.words(this.address, BIT_LENGTHS)
    const total = counts.reduce((sum, count) => sum + count, 0)
    let [bits, sum] = [0, counts[0]!]
    return shares.map(share => {
      while (sum < share * total) sum += counts[++bits]!
      return 2 ** bits - 1
    })
  }
}

/**
 * Compares as `ElementKernels.compare`; also counts those that are not close, if rtol or atol is not 0, and the distances of the first `sampled` floats of
 * each WIDENED_ELEMENTS.
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
  coreOf(engine).differ(dtypeA, a.address, dtypeB, b.address, count, rtol, atol, sampled, ulps.address, row)
}

/** The index of the first of `count` pairs from `first` on, at most WIDENED_ELEMENTS, that is as far apart as the one that is farthest. */
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
