/** How many floats of two tensors lie how far apart, in units of the last place. */

import type { Address } from './border/memory.js'
import type { Engine } from './engine.js'

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

  /** What these shares of all distances, ascending, are at most: 0, 1, 3, 7 and so on. */
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
