/** Repeated requests: attempts with backoff and jitter. */

import { setTimeout as sleep } from 'node:timers/promises'
import type { ReadContext } from './store.js'

/**
 * The longest wait before the second attempt, in milliseconds. It doubles with each further attempt; the wait itself is
 * random.
 */
const BACKOFF_MS = 400
const MAX_BACKOFF_MS = 20_000

/** A failed request. Any other error ends the attempts. */
export interface Failure extends Error {
  /** True if the same request may succeed later. */
  readonly retryable: boolean
  /** Milliseconds to wait in any case, and in place of `BACKOFF_MS`. */
  readonly retryAfterMs?: number | undefined
  readonly backoffMs?: number
}

/** The error of a receiver of bytes, which another attempt would not help. */
class Refusal extends Error {}

/** Runs a receiver's work. An error in it ends the request without another attempt. */
export function refusable(work: () => void): void {
  try {
    work()
  } catch (cause) {
    throw new Refusal('', { cause })
  }
}

/** A limit of requests at once. */
export interface Slots {
  take(signal: AbortSignal | undefined): Promise<void>
  /** Ends a request. @param failure null: the request was answered */
  give(failure: Failure | null): void
}

export class Attempts {
  readonly #most: number
  readonly #slots: Slots | undefined

  /** Makes attempts of one store's requests. @param most attempts of a request */
  constructor(most: number, slots?: Slots) {
    this.#most = most
    this.#slots = slots
  }

  /**
   * Runs a request, and repeats it after passing failures.
   * @param errorOf makes the error of the final failure, after a number of attempts
   */
  async run<T>(
    { signal, traffic }: ReadContext,
    attempt: () => Promise<T>,
    errorOf: (failure: Failure, attempts: number) => unknown = failure => failure,
  ): Promise<T> {
    for (let attempts = 1; ; attempts++) {
      await this.#slots?.take(signal)
      let failure: Failure | null = null
      try {
        signal?.throwIfAborted()
        return await attempt()
      } catch (error) {
        signal?.throwIfAborted()
        if (error instanceof Refusal) throw error.cause
        if (!isFailure(error)) throw error
        failure = error
        if (!failure.retryable || attempts >= this.#most) throw errorOf(failure, attempts)
      } finally {
        this.#slots?.give(failure)
      }
      for (const counted of traffic) counted.retries++
      const { retryAfterMs = 0, backoffMs = BACKOFF_MS } = failure
      // Anything up to twice as long every time, so that those who failed together don't come back together.
      const waitMs = retryAfterMs + Math.random() * Math.min(MAX_BACKOFF_MS, backoffMs * 2 ** (attempts - 1))
      await sleep(waitMs, undefined, signal && { signal }).catch(() => signal?.throwIfAborted())
    }
  }
}

function isFailure(error: unknown): error is Failure {
  return error instanceof Error && 'retryable' in error
}
