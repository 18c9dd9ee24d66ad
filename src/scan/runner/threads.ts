/** Runs jobs on a pool of threads (Piscina): one engine per thread; only the compiled core is shared. */

import { setMaxListeners } from 'node:events'
import { Piscina } from 'piscina'
import { EngineError, errorFromData, ThreadError } from '../../base/errors.js'
import { coreModule } from '../../core/border/module.js'
import type { Job, ReplyTo } from '../job/job.js'
import { CallerRunner, JOBS_A_THREAD, type StartingThreads } from './caller.js'
import { Pools, threadDied, threadsClosed, threadsNotStarted } from './pools.js'
import type { Runner } from './runner.js'
import type { ThreadFailure } from './thread.js'

/** The number of times that a pool may lose its threads without finishing a job, before it is given up. */
const MAX_LOSSES = 5
/** The time, in milliseconds, that an aborted job has to end before its thread is terminated, since its read may hang. */
const DROPPED_JOB_MS = 1000

export class ThreadRunner implements StartingThreads {
  readonly threads: number
  readonly ahead: number
  readonly #jobsAThread: number
  /** The pool that gets the jobs. */
  #pool: Promise<Piscina>
  #losses = 0
  #isClosed = false

  /** @param jobsAThread the number of jobs that a thread has at once; it runs one after the other */
  constructor(threads: number, jobsAThread = 1) {
    this.threads = threads
    this.ahead = threads * 2 + 1
    this.#jobsAThread = jobsAThread
    this.#pool = this.#start()
  }

  async run<J extends Job>(job: J, signal?: AbortSignal): Promise<ReplyTo<J>> {
    // Each job in progress listens to it.
    if (signal !== undefined) setMaxListeners(0, signal)
    for (;;) {
      const piscina = this.#pool
      let reply: ReplyTo<J> | ThreadFailure
      try {
        const pool = await piscina
        signal?.throwIfAborted()
        if (this.#isClosed) throw threadsClosed()
        if (this.#pool !== piscina) continue
        const transfer = job.kind === 'arrays' && { transferList: job.moved }
        // Piscina gives a thread with such a job no other until it is done, since an abort ends the thread.
        reply =
          signal !== undefined && this.#jobsAThread > 1
            ? await this.#unlessAborted(pool.run(job, { ...transfer }), signal, piscina)
            : await pool.run(job, { ...(signal && { signal }), ...transfer })
      } catch (cause) {
        signal?.throwIfAborted()
        if (cause instanceof ThreadError || (cause instanceof EngineError && cause.code !== 'Engine')) throw cause
        if (this.#isClosed) throw threadsClosed()
        // The pool was given up with the job in it, which is not the job's fault.
        if (this.#pool !== piscina) continue
        throw threadDied(reasonOf(cause), cause)
      }
      this.#losses = 0
      if (reply.kind === 'failure') throw errorFromData((reply as ThreadFailure).error)
      return reply as ReplyTo<J>
    }
  }

  /** The result of work, unless it is aborted first. If the work doesn't end, its pool is given up and other jobs move to a new one. */
  #unlessAborted<T>(work: Promise<T>, signal: AbortSignal, pool: Promise<Piscina>): Promise<T> {
    return new Promise((resolve, reject) => {
      let grace: NodeJS.Timeout | undefined
      const giveUp = (): void => {
        if (this.#isClosed || this.#pool !== pool) return
        this.#pool = this.#start()
        void pool.then(pool => pool.destroy())
      }
      const abort = (): void => {
        reject(signal.reason)
        grace = setTimeout(giveUp, DROPPED_JOB_MS).unref()
      }
      signal.addEventListener('abort', abort, { once: true })
      work.then(resolve, reject).finally(() => {
        signal.removeEventListener('abort', abort)
        clearTimeout(grace)
      })
    })
  }

  get started(): Promise<unknown> {
    return this.#pool
  }

  /** Ends the threads; jobs that are still running are rejected. */
  async close(): Promise<void> {
    pools.forget(this)
    this.#isClosed = true
    await this.#pool.then(
      pool => pool.destroy(),
      () => {},
    )
  }

  /** Starts a pool. If that fails it is retried once; after that, the next scan tries again. */
  #start(): Promise<Piscina> {
    const started = this.#open()
      .catch(() => this.#open())
      .then(
        pool => {
          pool.on('workerDestroy', () => queueMicrotask(() => this.#replace(pool, started)))
          this.#replace(pool, started)
          return pool
        },
        (cause: unknown) => {
          pools.forget(this)
          // Without an engine, threads would have nothing to run.
          if (cause instanceof EngineError) throw cause
          throw threadsNotStarted(this.threads, reasonOf(cause), cause)
        },
      )
    started.catch(() => {})
    return started
  }

  /** Opens a pool and checks that it runs: if a thread's file fails to load, Piscina leaves every later task waiting for ever. */
  async #open(): Promise<Piscina> {
    const pool = new Piscina({
      filename: new URL('./thread-entry.cjs', import.meta.url).href,
      minThreads: this.threads,
      maxThreads: this.threads,
      concurrentTasksPerWorker: this.#jobsAThread,
      workerData: coreModule(),
    })
    // Errors of threads that die while idle. Piscina replaces such threads.
    pool.on('error', () => {})
    try {
      await pool.run({ kind: 'ping' })
      return pool
    } catch (cause) {
      void pool.destroy()
      throw cause
    }
  }

  /**
   * Replaces a pool whose threads die before they are ready: Piscina never replaces these, and tasks would wait for ever. Its jobs move
   * to a new pool.
   */
  #replace(pool: Piscina, started: Promise<Piscina>): void {
    if (this.#isClosed || this.#pool !== started || pool.threads.length >= this.threads) return
    if (++this.#losses < MAX_LOSSES) this.#pool = this.#start()
    else {
      pools.forget(this)
      const message = `expected ${this.threads} threads to stay alive, but they died before they were ready`
      this.#pool = Promise.reject(new ThreadError('ThreadsNotStarted', message))
      this.#pool.catch(() => {})
    }
    void pool.destroy()
  }
}

/** The reason on one line: some versions of Node.js append a stack. */
function reasonOf(cause: unknown): string {
  return (cause instanceof Error ? cause.message : String(cause)).split('\n', 1)[0]!
}

const pools = new Pools<ThreadRunner>()

/** The pool with that many threads, kept for the next scan. */
export function threadRunner(threads: number, jobsAThread = 1): ThreadRunner {
  return pools.get(`${threads} ${jobsAThread}`, () => new ThreadRunner(threads, jobsAThread))
}

/** A runner of threads that include the calling thread. @param caller runs jobs on the calling thread */
export function withCaller(threads: number, caller: Runner): Runner {
  return new CallerRunner(threads === 1 ? null : threadRunner(threads - 1, JOBS_A_THREAD), caller)
}

/** Ends every pool of this process. Scans in progress are rejected. */
export function closeThreadPools(): Promise<void> {
  return pools.close()
}
