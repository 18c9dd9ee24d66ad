/** Results of earlier reads, so that asking for a reduction again reads nothing. */

import type { Moments } from '../../core/moments.js'
import type { Statistics } from '../../core/statistics/statistic.js'

/** The known reductions of a record: some or all moments, or the reductions of a histogram. */
export type KnownReductions = Moments | Statistics

/** The number of records to remember, about 700 bytes each: the most recently used. */
export const MAX_REMEMBERED = 8192

export class Remembered {
  /** The records by identity, the most recently used last, with the stamp of the file before the read. */
  readonly #records = new Map<string, { readonly stamp: Float64Array; readonly reductions: KnownReductions }>()

  /** The known reductions of a record; undefined if its file has changed since. */
  get(key: string, stamp: Float64Array): KnownReductions | undefined {
    const known = this.#records.get(key)
    if (known === undefined) return undefined
    this.#records.delete(key)
    if (!known.stamp.every((number, i) => Object.is(number, stamp[i]))) return undefined
    this.#records.set(key, known)
    return known.reductions
  }

  set(key: string, stamp: Float64Array, reductions: KnownReductions): void {
    this.#records.delete(key)
    this.#records.set(key, { stamp, reductions })
    if (this.#records.size > MAX_REMEMBERED) this.#records.delete(this.#records.keys().next().value!)
  }

  clear(): void {
    this.#records.clear()
  }
}
