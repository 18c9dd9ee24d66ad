/** Pools of threads, kept for the next scan, and what they say when they fail: those of Node.js and of a page. */

import { ThreadError } from '../../base/errors.js'
import type { Runner } from './runner.js'

/** A pool. An idle one does not keep the process alive. */
interface ThreadPool extends Runner {
  /** Ends the threads; jobs that are still running are rejected. */
  close(): Promise<void> | void
}

/** The pools that have been started, by their kind. */
export class Pools<P extends ThreadPool> {
  readonly #pools = new Map<string, P>()

  get(kind: string, start: () => P): P {
    const pool = this.#pools.get(kind) ?? start()
    this.#pools.set(kind, pool)
    return pool
  }

  /** Forgets a pool that can't run jobs any more: the next scan starts another. */
  forget(pool: P): void {
    for (const [kind, known] of this.#pools) if (known === pool) this.#pools.delete(kind)
  }

  [Symbol.iterator](): Iterator<P> {
    return this.#pools.values()
  }

  async close(): Promise<void> {
    await Promise.all([...this].map(pool => pool.close()))
  }
}

export function threadsClosed(): ThreadError {
  const message = 'expected the threads to stay alive until the work was done, but they were closed'
  return new ThreadError('ThreadsClosed', message)
}

export function threadsNotStarted(threads: number, reason: string, cause?: unknown): ThreadError {
  const message = `expected ${threads} threads to start, but they did not: ${reason}`
  return new ThreadError('ThreadsNotStarted', message, {}, cause)
}

export function threadDied(reason: string, cause?: unknown): ThreadError {
  return new ThreadError('ThreadDied', `its thread died: ${reason}`, {}, cause)
}
