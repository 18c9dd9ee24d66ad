/** How a trial's bytes are reached: the store, and the runner that a piece of work pays for. */

import { availableParallelism } from 'node:os'
import { threadsThatFit } from '../engine/module.js'
import type { Job, ReplyTo } from '../job/job.js'
import { DEFAULT_MEMORY, jobsAtOnce, MIN_MEMORY } from '../job/memory.js'
import { type Kinds, kinds } from '../options.js'
import { storeSpec } from '../store/open.js'
import { addTraffic, isRemote, newTraffic, type Store, type StoreSpec, type Traffic } from '../store/store.js'
import type { CheckLevel } from '../types.js'
import { InlineRunner } from './inline.js'
import type { Runner } from './runner.js'

/** Less work than this is done on the calling thread: starting a pool takes longer. */
const INLINE_BYTES = 8 << 20

/** Threads a core of the machine: more are only in each other's way, and take some 9 MB each. */
const THREADS_A_CORE = 2
/** The same where threads mostly wait for answers. */
const WAITING_THREADS_A_CORE = 8

/** How work is spread. */
export interface WorkOptions {
  /**
   * Threads to work on; 0: the calling thread does it. Default: as many as the machine runs at once, but none for work
   * of a few megabytes. Never more than `maxThreads` of the trial.
   */
  readonly threads?: number
  /** Bytes of file contents a thread may hold at once; at least 4 MiB. Default 64 MiB. */
  readonly memory?: number
}

export const WORK_OPTIONS: Kinds<WorkOptions> = {
  threads: kinds.wholeNumber(0, 1024, 'a number of threads from 0 to 1024'),
  memory: kinds.wholeNumber(MIN_MEMORY, 2 ** 31, `bytes a thread may hold, from 4 MiB (${MIN_MEMORY}) to 2 GiB`),
}

/** How records are read. */
export interface ReadOptions extends WorkOptions {
  /** Which checksums are verified. Default `minimal`. */
  readonly checkLevel?: CheckLevel
}

export const READ_KINDS: Kinds<ReadOptions> = {
  ...WORK_OPTIONS,
  checkLevel: kinds.checkLevel,
}

let threads: Promise<typeof import('./threads.js')> | undefined

/** Ends the threads that scans have started; the next scan starts new ones. Idle ones don't keep the process alive. */
export async function closePools(): Promise<void> {
  await (await threads)?.closePools()
}

/** The most threads that can help with a trial at that path or URL: however many are asked for, no more are started. */
export function maxThreads(pathOrUrl: string): number {
  return threadLimit(storeSpec(pathOrUrl).kind === 's3')
}

function threadLimit(isRemote: boolean): number {
  return Math.min(availableParallelism() * (isRemote ? WAITING_THREADS_A_CORE : THREADS_A_CORE), threadsThatFit())
}

export class Access {
  readonly store: Store
  readonly spec: StoreSpec
  /** All requests that were made for it, where requests have to be made. */
  readonly traffic: Traffic = newTraffic()
  /** By the number of jobs that they run at once. */
  readonly #inline = new Map<number, { readonly runner: Runner; close(): Promise<void> }>()
  readonly #source: Store

  constructor(store: Store, spec: StoreSpec) {
    this.#source = store
    this.store = store.within?.({ traffic: [this.traffic] }) ?? store
    this.spec = spec
  }

  /** Whether reading is making requests, and waiting for their answers. */
  get isRemote(): boolean {
    return isRemote(this.store)
  }

  /**
   * Where to run work over that many bytes. The pool's code is loaded only when there is one to start. Requests are made
   * on the calling thread unless threads are asked for: it mostly waits, and a thread would load the SDK (110 ms) and credentials of its
   * own. 307 MB over a link of 30 ms: 1.07 s here, 3.90 on one thread, 2.28 on two, 1.22 on four; without delay 0.41, 0.50, 0.47, 0.57 s
   * (best of three, two cores, Node.js 20).
   */
  async runner(asked: number | undefined, totalBytes: number, memory = DEFAULT_MEMORY): Promise<Runner> {
    const wanted = asked ?? (totalBytes < INLINE_BYTES || this.isRemote ? 0 : availableParallelism())
    if (wanted === 0) return this.inlineRunner(memory)
    threads ??= import('./threads.js')
    return this.#counting((await threads).threadRunner(Math.min(wanted, threadLimit(this.isRemote))))
  }

  /** The calling thread. */
  inlineRunner(memory = DEFAULT_MEMORY): Runner {
    const jobs = this.isRemote ? Math.min(jobsAtOnce(memory), 1 + threadsThatFit()) : 1
    const known = this.#inline.get(jobs)
    if (known !== undefined) return known.runner
    const inline = new InlineRunner(this.#source, jobs)
    const runner = this.#counting(inline)
    this.#inline.set(jobs, { runner, close: () => inline.close() })
    return runner
  }

  /** Lets go of open files, also of other trials' that were read beside this one. */
  async close(): Promise<void> {
    await this.store.close()
    for (const inline of this.#inline.values()) await inline.close()
  }

  #counting(runner: Runner): Runner {
    if (!this.isRemote) return runner
    const { threads, ahead } = runner
    const run = async <J extends Job>(job: J, signal?: AbortSignal): Promise<ReplyTo<J>> => {
      const ran = await runner.run(job, signal)
      if (ran.traffic) addTraffic(this.traffic, ran.traffic)
      return ran
    }
    return { threads, ahead, run }
  }
}
