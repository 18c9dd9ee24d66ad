/** Runs jobs on the calling thread: for small scans, for `threads: 0`, and if most of the time is spent waiting for requests. */

import { setImmediate } from 'node:timers/promises'
import { entryOf } from '../../base/maps.js'
import { withEngine } from '../../core/engines.js'
import { openStore } from '../../storage/open.js'
import { newTraffic, type Store, type StoreSpec } from '../../storage/store.js'
import type { Job, ReplyTo } from '../job/job.js'
import { runJob } from '../worker/run-job.js'
import type { Runner } from './runner.js'

/** The time after which jobs on the calling thread yield to signals, timers and aborts. */
const TURN_MS = 4

export class InlineRunner implements Runner {
  readonly threads = 0
  readonly ahead: number
  readonly #lanes: Promise<unknown>[]
  readonly #stores: Map<string, Store>
  #next = 0
  #turnAt = 0

  /** @param store the store for jobs on its spec @param jobs the number of concurrent jobs */
  constructor(store: Store | null = null, jobs = 1) {
    this.#stores = new Map(store ? [[keyOf(store.spec), store]] : [])
    this.#lanes = new Array<Promise<unknown>>(jobs).fill(Promise.resolve())
    this.ahead = jobs === 1 ? 1 : jobs * 2
  }

  run<J extends Job>(job: J, signal?: AbortSignal): Promise<ReplyTo<J>> {
    const lane = this.#next++ % this.#lanes.length
    const reply = this.#lanes[lane]!.then(async () => {
      if (performance.now() - this.#turnAt > TURN_MS) {
        await setImmediate()
        this.#turnAt = performance.now()
      }
      signal?.throwIfAborted()
      return runJobHere(job, this.#stores, signal)
    })
    this.#lanes[lane] = reply.catch(() => {})
    return reply
  }

  /** Closes open files. */
  async close(): Promise<void> {
    for (const store of this.#stores.values()) await store.close()
  }
}

/** Runs a job on an engine of this thread. */
export async function runJobHere<J extends Job>(
  job: J,
  stores: Map<string, Store>,
  signal?: AbortSignal,
): Promise<ReplyTo<J>> {
  const traffic = newTraffic()
  let makesRequests = false
  const openWithin = (spec: StoreSpec): Store => {
    const store = storeOf(spec, stores)
    if (store.within === undefined) return store
    makesRequests = true
    return store.within({ signal, traffic: [traffic] })
  }
  try {
    const reply = (await withEngine(engine => runJob(job, engine, openWithin))) as ReplyTo<J>
    return makesRequests ? { ...reply, traffic } : reply
  } finally {
    // Only jobs hold descriptors; an idle pool has none.
    for (const store of stores.values()) store.release?.()
  }
}

const keys = new WeakMap<StoreSpec, string>()

function keyOf(spec: StoreSpec): string {
  return entryOf(keys, spec, () => JSON.stringify(spec))
}

function storeOf(spec: StoreSpec, stores: Map<string, Store>): Store {
  const key = keyOf(spec)
  const store = stores.get(key) ?? openStore(spec)
  // Moves it to the end: the most recently used store is last.
  stores.delete(key)
  stores.set(key, store)
  return store
}
