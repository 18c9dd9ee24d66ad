/**
 * Jobs on Web Workers: one engine per thread, with nothing shared but the compiled core. It replaces
 * scan/runner/threads.
 */

import { errorFromData, ThreadError, TrialscanError } from '../base/errors.js'
import { coreModule } from '../core/border/module.js'
import type { CompiledCore } from '../core/host.js'
import type { Job, ReplyTo } from '../scan/job/job.js'
import { Pools, threadDied, threadsClosed, threadsNotStarted } from '../scan/runner/pools.js'
import type { Runner } from '../scan/runner/runner.js'
import type { StoreSpec } from '../storage/store.js'
import { placeOf } from '../storage/web/place.js'
import { theFiles } from './files.js'
import type { FromThread, ToThread } from './messages.js'

/** The number of deaths in a row, without a finished job between them, after which no thread is started any more. */
const MAX_DEATHS = 5

interface Waiting {
  readonly job: Job
  resolve(reply: unknown): void
  reject(error: unknown): void
}

/** A worker and its current job. */
class Thread {
  readonly #worker: Worker
  /** The numbers of the places that the worker has received. */
  readonly #places = new Set<number>()
  readonly #onIdle: (thread: Thread) => void
  readonly #onDeath: (thread: Thread, error: ThreadError) => void
  work: Waiting | null = null

  constructor(
    core: CompiledCore,
    onIdle: (thread: Thread) => void,
    onDeath: (thread: Thread, error: ThreadError) => void,
  ) {
    this.#onIdle = onIdle
    this.#onDeath = onDeath
    this.#worker = theFiles().startWorker()
    this.#worker.onmessage = ({ data }: MessageEvent<FromThread>) => this.#hear(data)
    this.#worker.onmessageerror = () => this.#die('its answer could not be read')
    this.#worker.onerror = event => {
      event.preventDefault()
      this.#die(event.message || 'its code could not be loaded')
    }
    this.#send({ kind: 'start', core })
  }

  run(work: Waiting): void {
    this.work = work
    try {
      for (const spec of specsOf(work.job)) this.#introduce(spec)
      this.#send({ kind: 'job', job: work.job })
    } catch (cause) {
      // What can't be sent; the thread knows nothing of it.
      this.work = null
      const message = `the job could not be sent to a thread: ${cause instanceof Error ? cause.message : String(cause)}`
      work.reject(cause instanceof TrialscanError ? cause : new ThreadError('ThreadDied', message, {}, cause))
      this.#onIdle(this)
    }
  }

  end(): void {
    this.#worker.onmessage = null
    this.#worker.onerror = null
    this.#worker.terminate()
  }

  forget(number: number): void {
    if (this.#places.delete(number)) this.#send({ kind: 'forget', number })
  }

  #introduce(given: StoreSpec): void {
    const spec = given.kind === 'composed' ? given.base : given
    if (spec.kind !== 'web' || this.#places.has(spec.place)) return
    this.#send({ kind: 'place', number: spec.place, place: placeOf(spec) })
    this.#places.add(spec.place)
    watched.register(spec, spec.place)
  }

  #hear(message: FromThread): void {
    const { work } = this
    this.work = null
    if (message.kind === 'reply') work?.resolve(message.reply)
    else if (message.kind === 'failure') work?.reject(errorFromData(message.error))
    this.#onIdle(this)
  }

  #die(reason: string): void {
    this.end()
    this.#onDeath(this, threadDied(reason))
  }

  #send(message: ToThread): void {
    this.#worker.postMessage(message)
  }
}

class WebThreadRunner implements Runner {
  readonly threads: number
  readonly ahead: number
  readonly #core: CompiledCore
  readonly all = new Set<Thread>()
  readonly #idle: Thread[] = []
  readonly #waiting: Waiting[] = []
  #deaths = 0
  /** The reason why no job can run any more; null while jobs can run. */
  #end: ThreadError | null = null

  constructor(threads: number, core: CompiledCore) {
    this.threads = threads
    this.ahead = threads * 2 + 1
    this.#core = core
    while (this.all.size < threads) this.#start()
  }

  run<J extends Job>(job: J, signal?: AbortSignal): Promise<ReplyTo<J>> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      if (this.#end) return reject(this.#end)
      const stop = (): void => {
        this.#cancel(work)
        reject(signal?.reason)
      }
      const settled = <T>(settle: (value: T) => void) => {
        return (value: T): void => {
          signal?.removeEventListener('abort', stop)
          settle(value)
        }
      }
      const work: Waiting = {
        job,
        resolve: settled(reply => resolve(reply as ReplyTo<J>)),
        reject: settled(reject),
      }
      signal?.addEventListener('abort', stop, { once: true })
      this.#waiting.push(work)
      this.#next()
    })
  }

  /** Ends the threads; jobs that are still running are rejected. */
  close(): void {
    this.#giveUp(threadsClosed())
  }

  #start(): void {
    this.all.add(
      new Thread(
        this.#core,
        thread => {
          this.#deaths = 0
          this.#idle.push(thread)
          this.#next()
        },
        (thread, error) => this.#bury(thread, error),
      ),
    )
  }

  #next(): void {
    while (this.#idle.length > 0 && this.#waiting.length > 0) this.#idle.pop()!.run(this.#waiting.shift()!)
  }

  /** Cancels a job. A thread that runs it is ended, since nothing else stops it. */
  #cancel(work: Waiting): void {
    const place = this.#waiting.indexOf(work)
    if (place >= 0) this.#waiting.splice(place, 1)
    const thread = [...this.all].find(thread => thread.work === work)
    if (thread === undefined || this.#end) return
    thread.end()
    this.all.delete(thread)
    this.#start()
  }

  #bury(thread: Thread, error: ThreadError): void {
    this.all.delete(thread)
    const place = this.#idle.indexOf(thread)
    if (place >= 0) this.#idle.splice(place, 1)
    thread.work?.reject(error)
    if (this.#end) return
    this.#deaths++
    if (this.#deaths < MAX_DEATHS) this.#start()
    else this.#giveUp(threadsNotStarted(this.threads, error.message))
  }

  #giveUp(error: ThreadError): void {
    this.#end = error
    pools.forget(this)
    for (const thread of this.all) {
      thread.end()
      thread.work?.reject(error)
    }
    this.all.clear()
    for (const work of this.#waiting.splice(0)) work.reject(error)
  }
}

const pools = new Pools<WebThreadRunner>()

/** Tells threads to forget places that are no longer in use. */
const watched = new FinalizationRegistry((number: number) => {
  for (const pool of pools) for (const thread of pool.all) thread.forget(number)
})

/** The pool of that many threads, kept for the next scan. */
export function threadRunner(threads: number): Runner {
  return pools.get(`${threads}`, () => new WebThreadRunner(threads, coreModule()))
}

/** A runner of threads alone: the page's own thread runs no jobs. */
export function withCaller(threads: number): Runner {
  return threadRunner(threads)
}

/** Ends every thread of this page. Scans that are still running are rejected. */
export function closeThreadPools(): Promise<void> {
  return pools.close()
}

/** The stores that a job reads from. */
function specsOf(job: Job): readonly StoreSpec[] {
  if (job.kind === 'arrays') return []
  return 'stores' in job ? job.stores : [job.store]
}
