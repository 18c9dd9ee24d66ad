/** `trialscan fleet submit` and `fleet work`: shards of plans through a queue. */

import { FormatError, QueryError, UsageError } from '../../base/errors.js'
import { fleetStatus } from '../../fleet/merge.js'
import { PlanPlace } from '../../fleet/place.js'
import { shardName } from '../../fleet/plan.js'
import { runShard } from '../../fleet/shard.js'
import { runOptions, type WorkFlags } from '../commands/fleet.js'
import { EXIT } from '../exit.js'
import { counted, countText } from '../format/number.js'
import { type S3Flags, s3For } from '../options/s3.js'
import { note, safe } from '../terminal.js'
import { VERSION } from '../version.js'
import { type Job, ShardQueue, type Worker } from './queue.js'

interface QueueFlags extends S3Flags {
  readonly redis: string
  readonly queue?: string
}

export interface SubmitFlags extends QueueFlags {
  readonly attempts?: number
}

/** The default queue. Each version has its own, so that workers of other versions take nothing from it. */
const QUEUE = `trialscan-${VERSION}`
const DEFAULT_ATTEMPTS = 5

/** @returns the exit code */
export async function fleetSubmit(at: string, flags: SubmitFlags): Promise<number> {
  const { redis, queue: name = QUEUE, attempts = DEFAULT_ATTEMPTS } = flags
  const place = await PlanPlace.open(at, s3For(at, flags))
  try {
    const { plan } = place
    if (plan.version !== VERSION) {
      throw new UsageError(`expected trialscan ${plan.version}, which has made the plan, got ${VERSION}`)
    }
    const { shards, done } = await fleetStatus(place)
    const queue = await ShardQueue.open(redis, name)
    try {
      const missing = shards.filter(({ report }) => report === null).map(({ shard }) => shard)
      const jobs = missing.map(shard => ({ id: shardName(plan, shard), plan: at, shard }))
      const again = await queue.add(jobs, attempts)
      const retried = again > 0 ? `, ${countText(again)} of which had failed for good` : ''
      const shardsText = counted(shards.length, 'shard')
      process.stdout.write(
        `${safe(at)}: ${countText(done)} of ${shardsText} done; ${countText(jobs.length)} in the queue ${safe(name)}${retried}\n`,
      )
      return EXIT.ok
    } finally {
      await queue.close()
    }
  } finally {
    await place.close()
  }
}

export interface WorkerFlags extends QueueFlags, WorkFlags {
  readonly concurrency?: number
  readonly drain?: boolean
}

/** @returns the exit code */
export async function fleetWork(flags: WorkerFlags, signal: AbortSignal): Promise<number> {
  const queue = await ShardQueue.open(flags.redis, flags.queue ?? QUEUE)
  const shift = new Shift(queue, flags, signal)
  try {
    return await shift.work()
  } finally {
    await shift.close()
    await queue.close()
  }
}

/** The interval, in milliseconds, of checks for an empty queue. */
const DRAINED_MS = 500
/** The shortest interval of progress reports, in milliseconds. */
const PROGRESS_MS = 2000

/** A worker, from its start to its end. */
class Shift {
  readonly #queue: ShardQueue
  readonly #flags: WorkerFlags
  readonly #signal: AbortSignal
  readonly #places = new Map<string, Promise<PlanPlace>>()
  /** Ends the shift. */
  #end: () => void = () => {}
  readonly #ended: Promise<void>
  #error: unknown = null

  constructor(queue: ShardQueue, flags: WorkerFlags, signal: AbortSignal) {
    this.#queue = queue
    this.#flags = flags
    this.#signal = signal
    this.#ended = new Promise(resolve => {
      this.#end = resolve
    })
  }

  async work(): Promise<number> {
    const { concurrency = 1, drain = false } = this.#flags
    const worker = this.#queue.worker((job, token) => this.#take(job, token), concurrency)
    this.#tell(worker)
    const timer = drain ? setInterval(() => this.#endIfEmpty(), DRAINED_MS) : undefined
    this.#signal.addEventListener('abort', this.#end)
    try {
      if (!this.#signal.aborted) await this.#ended
    } finally {
      clearInterval(timer)
      this.#signal.removeEventListener('abort', this.#end)
      // `close` waits for shards in progress: they end, or are given back.
      await worker.close()
    }
    if (this.#error !== null) throw this.#error
    return this.#signal.aborted ? EXIT.interrupted : EXIT.ok
  }

  async close(): Promise<void> {
    for (const place of await Promise.allSettled(this.#places.values())) {
      if (place.status === 'fulfilled') await place.value.close()
    }
  }

  #tell(worker: Worker): void {
    let last = ''
    worker.on('error', ({ message }) => {
      // While Redis is away, its client repeats one message.
      if (message !== last) note(`the queue: ${message}`)
      last = message
    })
    worker.on('failed', (job, error) => {
      if (job === undefined) return
      const { plan, shard } = job.data
      const { attempts = 1 } = job.opts
      const isLast = error.name === 'UnrecoverableError' || job.attemptsMade >= attempts
      const next = isLast ? 'given up' : `attempt ${job.attemptsMade} of ${attempts}`
      note(`${plan}, shard ${shard} has failed, ${next}: ${error.message}`)
    })
  }

  #endIfEmpty(): void {
    // Redis may be away for a while; the next check asks again.
    this.#queue.isEmpty().then(
      isEmpty => isEmpty && this.#end(),
      () => {},
    )
  }

  async #take(job: Job, token: string): Promise<unknown> {
    const { plan: at, shard } = job.data
    let toldAt = 0
    try {
      const place = await this.#open(at)
      const { plan } = place
      if (plan.version !== VERSION) return await this.#refuse(job, token, plan.version)
      const options = await runOptions(plan, this.#flags, this.#signal)
      const { report, wasDone } = await runShard(place, shard, {
        ...options,
        onProgress: progress => {
          const now = performance.now()
          if (now - toldAt < PROGRESS_MS) return
          toldAt = now
          job.updateProgress(progress).catch(() => {})
        },
      })
      const state = wasDone ? 'was done' : `${report.seconds.toFixed(1)} s`
      process.stdout.write(
        `${safe(at)}, shard ${shard} of ${plan.shards.length}: ${counted(report.rows, 'row')}; ${state}\n`,
      )
      return { rows: report.rows }
    } catch (error) {
      if (this.#signal.aborted) {
        await job.moveToWait(token)
        throw new this.#queue.Waiting()
      }
      // These errors would recur.
      const isLasting = error instanceof UsageError || error instanceof QueryError || error instanceof FormatError
      throw isLasting ? new this.#queue.Unrecoverable(error.message) : error
    }
  }

  /** Gives back a job of another version, and ends the shift with an error. */
  async #refuse(job: Job, token: string, version: string): Promise<never> {
    this.#error = new UsageError(`expected trialscan ${version}, which has made the plan, got ${VERSION}`)
    this.#end()
    await job.moveToWait(token)
    throw new this.#queue.Waiting()
  }

  #open(at: string): Promise<PlanPlace> {
    const opened = this.#places.get(at) ?? PlanPlace.open(at, s3For(at, this.#flags))
    this.#places.set(at, opened)
    // A plan that could not be opened is tried again.
    opened.catch(() => this.#places.delete(at))
    return opened
  }
}
