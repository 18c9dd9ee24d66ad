/** Jobs on the calling thread: for small scans, and for `threads: 0`. */

import { setImmediate } from 'node:timers/promises'
import { discardEngine, threadEngine } from '../engine/engine.js'
import { EngineError, TrialscanError } from '../errors.js'
import { openStore, type Store, type StoreSpec } from '../store/store.js'
import { runJob } from './job.js'
import type { Job, ReplyTo } from './message.js'
import type { Runner } from './runner.js'

export class InlineRunner implements Runner {
  readonly threads = 0
  readonly #stores = new Map<string, Store>()
  #last: Promise<unknown> = Promise.resolve()

  /** One job at a time: they share the thread's engine, whose memory belongs to one job. */
  run<J extends Job>(job: J, signal?: AbortSignal): Promise<ReplyTo<J>> {
    const reply = this.#last.then(async () => {
      // A turn of the event loop, so that signals, timers and aborts come through between two jobs.
      await setImmediate()
      signal?.throwIfAborted()
      return (await runJobHere(job, this.#stores)) as ReplyTo<J>
    })
    this.#last = reply.catch(() => {})
    return reply
  }
}

/** Runs a job on this thread's engine and stores. */
export async function runJobHere(job: Job, stores: Map<string, Store>): Promise<ReplyTo<Job>> {
  try {
    return await runJob(job, threadEngine(), spec => storeOf(spec, stores))
  } catch (error) {
    // An instance that failed in a way it promises never to fail is not to be trusted with the next job.
    if (error instanceof EngineError || !(error instanceof TrialscanError)) discardEngine()
    throw error
  }
}

function storeOf(spec: StoreSpec, stores: Map<string, Store>): Store {
  const key = JSON.stringify(spec)
  let store = stores.get(key)
  if (store === undefined) {
    store = openStore(spec)
    stores.set(key, store)
  }
  return store
}
