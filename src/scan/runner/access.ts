/** Access to a trial's bytes: the store, and a runner for work of a given size. */

import { availableParallelism } from 'node:os'
import { type Kinds, kinds } from '../../base/options.js'
import type { CheckLevel } from '../../base/types.js'
import { threadsThatFit } from '../../core/host.js'
import { ComposedStore } from '../../storage/composed/composed-store.js'
import type { TableData } from '../../storage/composed/table-data.js'
import { storeSpec } from '../../storage/open.js'
import { addTraffic, isRemote, newTraffic, type Store, type StoreSpec, type Traffic } from '../../storage/store.js'
import type { Job, ReplyTo } from '../job/job.js'
import { DEFAULT_MEMORY, jobsAtOnce, MIN_MEMORY } from '../job/plan/memory.js'
import { InlineRunner } from './inline.js'
import type { Runner } from './runner.js'

/** The size below which work is done on the calling thread, since starting a pool takes longer. */
const INLINE_BYTES = 8 << 20

/** The largest number of threads per core. More of them only compete, and take about 9 MB each. */
const THREADS_A_CORE = 2
/** The number of threads per core if they mostly wait for requests. */
const WAITING_THREADS_A_CORE = 8

/** The distribution of work over threads. */
export interface WorkOptions {
  /**
   * The number of threads; 0 means the calling thread. Default: the parallelism of the machine, but none for work of a few megabytes. At
   * most `maxThreads` of the trial.
   */
  readonly threads?: number | undefined
  /** The number of bytes of file contents that a thread may hold at once; at least 4 MiB. Default: 64 MiB. */
  readonly memory?: number | undefined
}

export const WORK_OPTIONS: Kinds<WorkOptions> = {
  threads: kinds.wholeNumber(0, 1024, 'a number of threads from 0 to 1024'),
  memory: kinds.wholeNumber(MIN_MEMORY, 2 ** 31, `bytes a thread may hold, from 4 MiB (${MIN_MEMORY}) to 2 GiB`),
}

/** The options of reading records. */
export interface ReadOptions extends WorkOptions {
  /** The checksums to verify. Default: `minimal`. */
  readonly checkLevel?: CheckLevel | undefined
}

export const READ_KINDS: Kinds<ReadOptions> = {
  ...WORK_OPTIONS,
  checkLevel: kinds.checkLevel,
}

let threads: Promise<typeof import('./threads.js')> | undefined

/** Ends the threads that scans have started; the next scan starts new ones. Idle threads don't keep the process alive. */
export async function closePools(): Promise<void> {
  await (await threads)?.closeThreadPools()
}

/** The useful number of threads for a trial at a path or URL. No call starts more, however many it requests. */
export function maxThreads(pathOrUrl: string): number {
  return threadLimit(storeSpec(pathOrUrl).kind === 's3')
}

function threadLimit(isRemote: boolean): number {
  return Math.min(availableParallelism() * (isRemote ? WAITING_THREADS_A_CORE : THREADS_A_CORE), threadsThatFit())
}

export class Access {
  #store: Store
  #spec: StoreSpec
  /** All requests for this trial, if its store makes requests. */
  readonly traffic: Traffic = newTraffic()
  /** The inline runners, by their number of concurrent jobs. */
  readonly #inline = new Map<number, { readonly runner: Runner; close(): Promise<void> }>()
  #source: Store
  /** The store without composed files, once there are any. */
  #base: Store | null = null

  constructor(store: Store, spec: StoreSpec) {
    this.#source = store
    this.#store = store.within?.({ traffic: [this.traffic] }) ?? store
    this.#spec = spec
  }

  get store(): Store {
    return this.#store
  }

  get spec(): StoreSpec {
    return this.#spec
  }

  /** Adds the files of these tables to the store. Files of earlier tables stay. */
  compose(table: TableData): void {
    const spec = this.#spec
    const base = spec.kind === 'composed' ? spec.base : spec
    const tables = spec.kind === 'composed' ? [...spec.tables, table] : [table]
    this.#base ??= this.#source
    this.#spec = { kind: 'composed', base, tables }
    this.#source = new ComposedStore(this.#base, this.#spec)
    this.#store = this.#source.within?.({ traffic: [this.traffic] }) ?? this.#source
    // Their files belong to the same store.
    this.#inline.clear()
  }

  /** True if reading makes requests. */
  get isRemote(): boolean {
    return isRemote(this.store)
  }

  /**
   * A runner for work on that many bytes. The pool's code is loaded only to start a pool. Requests are made on the calling thread unless
   * threads are requested: it mostly waits, and a thread would load the SDK (110 ms) and fetch its own credentials. 307 MB over a link of
   * 30 ms took 1.07 s here, 3.90 on one thread, 2.28 on two, 1.22 on four; without delay 0.41, 0.50, 0.47, 0.57 s (best of three, two
   * cores, Node.js 20).
   */
  async runner(
    requested: number | undefined,
    totalBytes: number,
    memory = DEFAULT_MEMORY,
    callerWorks = false,
  ): Promise<Runner> {
    const wanted = requested ?? (totalBytes < INLINE_BYTES || this.isRemote ? 0 : availableParallelism())
    if (wanted === 0) return this.inlineRunner(memory)
    threads ??= import('./threads.js')
    const count = Math.min(wanted, threadLimit(this.isRemote))
    const { threadRunner, withCaller } = await threads
    if (callerWorks && !this.isRemote) return withCaller(count, this.inlineRunner(memory))
    return this.#counting(threadRunner(count))
  }

  /** A runner on the calling thread. */
  inlineRunner(memory = DEFAULT_MEMORY): Runner {
    const jobs = this.isRemote ? Math.min(jobsAtOnce(memory), 1 + threadsThatFit()) : 1
    const known = this.#inline.get(jobs)
    if (known !== undefined) return known.runner
    const inline = new InlineRunner(this.#source, jobs)
    const runner = this.#counting(inline)
    this.#inline.set(jobs, { runner, close: () => inline.close() })
    return runner
  }

  /** Closes open files, including those of other trials that were read with this one. */
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
