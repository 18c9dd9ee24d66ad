/** The time of a job by activity. */

import type { ThreadTimes } from '../../job/reply.js'

export class Clock {
  readonly #spent: { -readonly [K in keyof ThreadTimes]: number } | undefined
  #at = performance.now()

  constructor(isOn: boolean) {
    this.#spent = isOn ? { readMs: 0, decodeMs: 0, reduceMs: 0, writeMs: 0 } : undefined
  }

  get isOn(): boolean {
    return this.#spent !== undefined
  }

  get spent(): ThreadTimes | undefined {
    return this.#spent
  }

  /** Adds the time since the last lap to one account, without the time for doing something twice. @returns the lap */
  lap(account: keyof ThreadTimes, twiceMs = 0): number {
    if (this.#spent === undefined) return 0
    const now = performance.now()
    const lap = now - this.#at
    this.#at = now
    this.#spent[account] += Math.max(0, lap - twiceMs)
    return lap
  }
}
