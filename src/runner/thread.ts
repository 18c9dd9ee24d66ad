/** The body of a pool's thread: adopts the compiled core and runs jobs. */

import { move, transferableSymbol, valueSymbol, workerData } from 'piscina'
import { adoptModule, type CompiledCore } from '../engine/module.js'
import { type ErrorData, errorToData } from '../errors.js'
import type { Job } from '../job/job.js'
import type { Store } from '../store/store.js'
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

export default async function run(job: Job | Ping): Promise<unknown> {
  if (job.kind === 'ping') return job
  for (const [key, store] of [...stores].slice(0, -MAX_STORES)) {
    stores.delete(key)
    await store.close()
  }
  try {
    const reply = await runJobHere(job, stores)
    const buffers = new Set<ArrayBuffer>()
    collectBuffers(reply, buffers)
    // Moved, not copied.
    return buffers.size === 0 ? reply : move({ [transferableSymbol]: [...buffers], [valueSymbol]: reply })
  } catch (error) {
    return { kind: 'failure', error: errorToData(error) } satisfies ThreadFailure
  }
}

/**
 * The buffers of a reply's columns. A buffer of which a view shows only a part is shared with others, so the view is
 * copied; a reply holds no view of the core's memory (ARCHITECTURE.md, the border to WebAssembly).
 * @param seen lists that several parts of the reply share
 */
function collectBuffers(part: unknown, buffers: Set<ArrayBuffer>, seen = new Set<unknown>()): void {
  if (typeof part !== 'object' || part === null) return
  if (ArrayBuffer.isView(part)) {
    const { buffer, byteLength } = part
    if (buffer instanceof ArrayBuffer && byteLength > 0 && byteLength === buffer.byteLength) buffers.add(buffer)
    return
  }
  if (Array.isArray(part)) {
    // A list of numbers or names has no buffers.
    if ((part.length > 0 && typeof part[0] !== 'object') || seen.has(part)) return
    seen.add(part)
  }
  for (const value of Object.values(part)) collectBuffers(value, buffers, seen)
}
