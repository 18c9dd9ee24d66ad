/** What records told, so that a reduction that is asked for again is not read again. */

import type { Moments, ReductionValue } from '../engine/moments.js'
import type { ReductionName } from '../types.js'

/** What a record told: moments, which know some reductions or all; or what a histogram has. */
export type KnownReductions = Moments | Partial<Readonly<Record<ReductionName, ReductionValue>>>

/** Records that are remembered, some 700 bytes each: those that were asked for last. */
export const MAX_REMEMBERED = 8192

export class Remembered {
  /** By what the record is, the one used last at the end. `stamp`: of its file, before it was read. */
  readonly #records = new Map<string, { readonly stamp: Float64Array; readonly told: KnownReductions }>()

  /** What a record told; undefined if its file has changed since. */
  get(key: string, stamp: Float64Array): KnownReductions | undefined {
    const known = this.#records.get(key)
    if (known === undefined) return undefined
    this.#records.delete(key)
    if (!known.stamp.every((number, i) => Object.is(number, stamp[i]))) return undefined
    this.#records.set(key, known)
    return known.told
  }

  set(key: string, stamp: Float64Array, told: KnownReductions): void {
    this.#records.delete(key)
    this.#records.set(key, { stamp, told })
    if (this.#records.size > MAX_REMEMBERED) this.#records.delete(this.#records.keys().next().value!)
  }

  clear(): void {
    this.#records.clear()
  }
}
