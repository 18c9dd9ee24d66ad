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

/** A message that checks if the thread has started. */
export interface Ping {
  readonly kind: 'ping'
}

adoptModule(workerData as CompiledCore)

/** The number of trials whose stores a thread keeps, besides that of its present job: it never learns when a trial is closed. */
const MAX_STORES = 4

const stores = new Map<string, Store>()

/** The latest job. */
let last: Promise<unknown> = Promise.resolve()

/** Runs a job after the one in progress, since each would need an engine. */
export default async function run(job: Job | Ping): Promise<unknown> {
  const answered = last.then(() => answer(job))
  // The next job must not fail with it.
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
    // The buffers are moved, not copied.
    return buffers.length === 0 ? reply : moved(reply, buffers)
  } catch (error) {
    return { kind: 'failure', error: errorToData(error) } satisfies ThreadFailure
  }
}

/** Documented symbols of Piscina. */
const TRANSFERABLE = Symbol.for('Piscina.transferable')
const VALUE = Symbol.for('Piscina.valueOf')

/**
 * A reply whose buffers Piscina moves. Piscina's own `move` marks a reply with a symbol that only its main module has, and loading that
 * takes 8 ms per thread; this object accepts whatever symbol Piscina reads.
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
