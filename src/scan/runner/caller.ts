/**
 * Runs jobs on threads and on the calling thread, which is one of them: one thread less must start, and jobs are done while the others
 * start. A thread takes a job when it is free, the calling thread between two turns of its event loop.
 */

import { setImmediate } from 'node:timers/promises'
import { ThreadError } from '../../base/errors.js'
import type { Job, ReplyTo } from '../job/job.js'
import type { Runner } from './runner.js'

/** The number of jobs that a thread has at once: the second is there when the first is done, even while the calling thread is busy. */
export const JOBS_A_THREAD = 2

/** Threads that take a while to start. */
export interface StartingThreads extends Runner {
  /** Resolves once the threads have started; rejects if they could not. */
  readonly started: Promise<unknown>
}

interface Waiting {
  readonly job: Job
  readonly signal: AbortSignal | undefined
  resolve(reply: ReplyTo<Job>): void
  reject(error: unknown): void
}

export class CallerRunner implements Runner {
  readonly threads: number
  readonly ahead: number
  readonly #others: StartingThreads | null
  readonly #caller: Runner
  readonly #waiting: Waiting[] = []
  #haveStarted = false
  /** The number of jobs that the other threads have. */
  #away = 0
  #isWorking = false

  /** @param others the other threads; null for none @param caller runs jobs on the calling thread */
  constructor(others: StartingThreads | null, caller: Runner) {
    this.threads = 1 + (others?.threads ?? 0)
    // Replies come in order, and the calling thread finishes several jobs before the others have started.
    this.ahead = this.threads * 3 + 1
    this.#others = others
    this.#caller = caller
    others?.started.then(
      () => {
        this.#haveStarted = true
        this.#next()
      },
      // The calling thread does all of the work.
      () => {},
    )
  }

  run<J extends Job>(job: J, signal?: AbortSignal): Promise<ReplyTo<J>> {
    return new Promise<ReplyTo<Job>>((resolve, reject) => {
      this.#waiting.push({ job, signal, resolve, reject })
      this.#next()
    }) as Promise<ReplyTo<J>>
  }

  #next(): void {
    const others = this.#others
    while (others !== null && this.#haveStarted && this.#away < JOBS_A_THREAD * others.threads) {
      const next = this.#waiting.shift()
      if (next === undefined) break
      void this.#send(others, next)
    }
    if (this.#isWorking || this.#waiting.length === 0) return
    this.#isWorking = true
    void this.#work()
  }

  async #send(others: Runner, work: Waiting): Promise<void> {
    this.#away++
    try {
      work.resolve(await others.run(work.job, work.signal))
    } catch (error) {
      if (error instanceof ThreadError && error.code === 'ThreadsNotStarted') {
        this.#haveStarted = false
        this.#waiting.unshift(work)
      } else work.reject(error)
    }
    this.#away--
    this.#next()
  }

  async #work(): Promise<void> {
    for (;;) {
      // Arriving replies make threads free, which then take the next jobs.
      await setImmediate()
      const next = this.#waiting.shift()
      if (next === undefined) break
      await this.#caller.run(next.job, next.signal).then(next.resolve, next.reject)
    }
    this.#isWorking = false
  }
}
