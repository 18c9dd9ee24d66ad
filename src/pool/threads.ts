/** Jobs on a pool of threads (Piscina): one engine a thread, nothing shared but the compiled core. */

import { Piscina } from 'piscina'
import { coreModule } from '../engine/module.js'
import { EngineError, errorFromData } from '../errors.js'
import type { Job, ReplyTo } from './message.js'
import type { Runner } from './runner.js'
import type { ThreadFailure } from './thread.js'

export class ThreadRunner implements Runner {
  readonly threads: number
  readonly ahead: number
  readonly #pool: Piscina
  readonly #started: Promise<void>

  constructor(threads: number) {
    this.threads = threads
    this.ahead = threads * 2 + 1
    this.#pool = new Piscina({
      filename: new URL('./thread.js', import.meta.url).href,
      minThreads: threads,
      maxThreads: threads,
      workerData: coreModule(),
    })
    // After a thread whose file fails to load, Piscina lets every later task wait for ever. So the pool is asked once
    // whether it runs at all, and given up if it does not.
    this.#started = this.#pool.run({ kind: 'ping' }).then(
      () => {},
      (cause: unknown) => {
        forget(this)
        void this.#pool.destroy()
        throw new EngineError('expected the threads of the pool to start, but they do not', {}, cause)
      },
    )
    this.#started.catch(() => {})
    this.#pool.on('error', () => {})
  }

  async run<J extends Job>(job: J, signal?: AbortSignal): Promise<ReplyTo<J>> {
    await this.#started
    signal?.throwIfAborted()
    let reply: ReplyTo<J> | ThreadFailure
    try {
      reply = await this.#pool.run(job, signal ? { signal } : {})
    } catch (cause) {
      signal?.throwIfAborted()
      throw new EngineError(`a thread of the pool died: ${cause instanceof Error ? cause.message : cause}`, {}, cause)
    }
    if (reply.kind === 'failure') throw errorFromData((reply as ThreadFailure).error)
    return reply as ReplyTo<J>
  }

  /** Ends the threads; jobs that still run are rejected. */
  async close(): Promise<void> {
    forget(this)
    await this.#pool.destroy()
  }
}

const runners = new Map<number, ThreadRunner>()

/** The pool of that many threads, kept for the next scan. An idle pool does not keep the process alive. */
export function threadRunner(threads: number): ThreadRunner {
  let runner = runners.get(threads)
  if (runner === undefined) {
    runner = new ThreadRunner(threads)
    runners.set(threads, runner)
  }
  return runner
}

/** Ends every pool of this process. Scans that still run are rejected. */
export async function closePools(): Promise<void> {
  await Promise.all([...runners.values()].map(runner => runner.close()))
}

function forget(runner: ThreadRunner): void {
  if (runners.get(runner.threads) === runner) runners.delete(runner.threads)
}
