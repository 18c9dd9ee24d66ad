/** The body of a pool's thread: adopts the compiled core and runs jobs. */

import { workerData } from 'node:worker_threads'
import { type ErrorData, errorToData } from '../../base/errors.js'
import { adoptModule } from '../../core/border/module.js'
import type { CompiledCore } from '../../core/host.js'
import type { Store } from '../../storage/store.js'
import type { Job } from '../job/job.js'
import { buffersOf } from './buffers.js'
import { runJobHere } from './inline.js'

/** An error as data, since Piscina keeps only the message of a thrown one. */
export interface ThreadFailure {
  readonly kind: 'failure'
  readonly error: ErrorData
}

/** Asks whether the thread has started. */
export interface Ping {
  readonly kind: 'ping'
}

adoptModule(workerData as CompiledCore)

/** Trials whose stores a thread keeps, besides those of its present job: it never learns which trials are done with. */
const MAX_STORES = 4

const stores = new Map<string, Store>()

/** The job that came last. */
let last: Promise<unknown> = Promise.resolve()

/** A job that comes while another runs waits for it, since each would take an engine. */
export default async function run(job: Job | Ping): Promise<unknown> {
  const answered = last.then(() => answer(job))
  // The next is not to fail with it.
  last = answered.catch(() => {})
  return answered
}

async function answer(job: Job | Ping): Promise<unknown> {
  if (job.kind === 'ping') return job
  for (const [key, store] of [...stores].slice(0, -MAX_STORES)) {
    stores.delete(key)
    await store.close()
  }
  try {
    const reply = await runJobHere(job, stores)
    const buffers = buffersOf(reply)
    // Moved, not copied.
    return buffers.length === 0 ? reply : moved(reply, buffers)
  } catch (error) {
    return { kind: 'failure', error: errorToData(error) } satisfies ThreadFailure
  }
}

/** Symbols of Piscina's that are in its documentation. */
const TRANSFERABLE = Symbol.for('Piscina.transferable')
const VALUE = Symbol.for('Piscina.valueOf')

/**
 * A reply whose buffers Piscina moves. Its own `move` marks such a reply with a symbol that only its main module has, and loading that would
 * take 8 ms of each thread; this has whatever symbol Piscina asks for.
 */
function moved(reply: unknown, buffers: readonly ArrayBuffer[]): object {
  return new Proxy(
    {},
    {
      has: () => true,
      get: (_, name) => (name === TRANSFERABLE ? buffers : name === VALUE ? reply : typeof name === 'symbol'),
    },
  )
}
