/** How a trial's bytes are reached: the store, and the runner that a piece of work pays for. */

import { availableParallelism } from 'node:os'
import { UsageError } from '../errors.js'
import { DEFAULT_MEMORY, MIN_MEMORY } from '../plan.js'
import { InlineRunner } from '../pool/inline.js'
import type { Runner } from '../pool/runner.js'
import type { Store, StoreSpec } from '../store/store.js'

/** Less work than this is done on the calling thread: starting a pool takes longer. */
const INLINE_BYTES = 8 << 20

/** How work is spread. */
export interface WorkOptions {
  /**
   * Threads to work on; 0: the calling thread does it. Default: as many as the machine runs at once, but none for work
   * of a few megabytes.
   */
  readonly threads?: number
  /** Bytes of file contents a thread may hold at once; at least 4 MiB. Default 64 MiB. */
  readonly memory?: number
}

let threads: Promise<typeof import('../pool/threads.js')> | undefined

/** Ends the threads that scans have started; the next scan starts new ones. Idle ones don't keep the process alive. */
export async function closePools(): Promise<void> {
  await (await threads)?.closePools()
}

export class Access {
  readonly store: Store
  readonly spec: StoreSpec
  readonly #inline = new InlineRunner()

  constructor(store: Store, spec: StoreSpec) {
    this.store = store
    this.spec = spec
  }

  /** Where to run work over that many bytes. The pool's code is loaded only when there is one to start. */
  async runner(asked: number | undefined, totalBytes: number): Promise<Runner> {
    const wanted = asked ?? (totalBytes < INLINE_BYTES ? 0 : availableParallelism())
    if (wanted === 0) return this.#inline
    threads ??= import('../pool/threads.js')
    return (await threads).threadRunner(wanted)
  }
}

/** @throws UsageError for a number of threads that makes no sense */
export function checkWorkOptions({ threads, memory }: WorkOptions): { threads: number | undefined; memory: number } {
  if (threads !== undefined && !(Number.isInteger(threads) && threads >= 0 && threads <= 1024)) {
    throw new UsageError(`expected a number of threads from 0 to 1024, got ${threads}`)
  }
  if (memory !== undefined && !(Number.isInteger(memory) && memory >= MIN_MEMORY && memory <= 2 ** 31)) {
    throw new UsageError(`expected memory a thread of 4 MiB (${MIN_MEMORY} bytes) to 2 GiB, got ${memory} bytes`)
  }
  return { threads, memory: memory ?? DEFAULT_MEMORY }
}
