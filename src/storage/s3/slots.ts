/**
 * A limit of concurrent requests. It is halved when S3 asks for fewer, and grows by one after every few successes, so that attempts are
 * not used up on an overloaded server.
 */

import type { Failure, Slots } from '../attempts.js'
import { S3Failure, THROTTLED_BACKOFF_MS } from './errors.js'

export class RequestSlots implements Slots {
  readonly #most: number
  readonly #waiting: (() => void)[] = []
  #allowed: number
  #taken = 0
  #throttledAt = Number.NEGATIVE_INFINITY

  constructor(most: number) {
    this.#most = most
    this.#allowed = most
  }

  async take(signal: AbortSignal | undefined): Promise<void> {
    if (this.#taken < this.#allowed) {
      this.#taken++
      return
    }
    await new Promise<void>((resolve, reject) => {
      const onAbort = (): void => {
        const place = this.#waiting.indexOf(go)
        if (place >= 0) this.#waiting.splice(place, 1)
        reject(signal!.reason)
      }
      const go = (): void => {
        signal?.removeEventListener('abort', onAbort)
        this.#taken++
        resolve()
      }
      this.#waiting.push(go)
      signal?.addEventListener('abort', onAbort, { once: true })
    })
  }

  give(failure: Failure | null): void {
    if (failure === null) this.#allowed = Math.min(this.#most, this.#allowed + 0.25)
    else if (failure instanceof S3Failure && failure.isThrottling) this.#throttle()
    this.#taken--
    while (this.#taken < this.#allowed && this.#waiting.length > 0) this.#waiting.shift()!()
  }

  #throttle(): void {
    // Requests that were under way together are refused together: that is one refusal.
    const now = performance.now()
    if (now - this.#throttledAt < THROTTLED_BACKOFF_MS) return
    this.#throttledAt = now
    this.#allowed = Math.max(1, Math.floor(this.#allowed / 2))
  }
}
