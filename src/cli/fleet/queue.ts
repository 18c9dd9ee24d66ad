/** BullMQ over Redis, loaded only here. Both are optional packages. */

import { StoreError, UsageError } from '../../base/errors.js'

const PACKAGES = ['bullmq', 'ioredis'] as const

/** The content of a queued job: never a tensor. */
export interface ShardJob {
  /** The place of the plan. */
  readonly plan: string
  readonly shard: number
}

/** The used part of the packages, whose types can't be imported where they are not installed. */
interface BullMQ {
  readonly Queue: new (name: string, options: object) => Queue
  readonly Worker: new (name: string, work: (job: Job, token: string) => Promise<unknown>, options: object) => Worker
  readonly UnrecoverableError: new (message: string) => Error
  readonly WaitingError: new () => Error
}

interface Redis {
  on(event: 'error', listener: (error: Error) => void): void
  ping(): Promise<unknown>
  disconnect(): void
}

export interface Job {
  readonly data: ShardJob
  readonly attemptsMade: number
  readonly opts: { readonly attempts?: number }
  getState(): Promise<string>
  retry(): Promise<void>
  moveToWait(token: string): Promise<unknown>
  updateProgress(progress: object): Promise<void>
}

interface Queue {
  addBulk(jobs: readonly { readonly name: string; readonly data: ShardJob; readonly opts: object }[]): Promise<unknown>
  getJob(id: string): Promise<Job | undefined>
  getJobCounts(...states: readonly string[]): Promise<Readonly<Record<string, number>>>
  on(event: 'error', listener: (error: Error) => void): void
  close(): Promise<void>
}

export interface Worker {
  on(event: 'error', listener: (error: Error) => void): void
  on(event: 'failed', listener: (job: Job | undefined, error: Error) => void): void
  close(): Promise<void>
}

/** The time for Redis's first answer, in milliseconds. Later losses of the connection are waited out. */
const CONNECT_MS = 10_000
/** The time, in milliseconds, after which a worker that has not renewed its lock counts as gone. */
const LOCK_MS = 30_000
const STALLED_MS = 10_000
/** The number of workers that a shard may end before it is given up. */
const MAX_STALLED = 10
/** The wait before a shard is tried again, in milliseconds. It doubles each time. */
const BACKOFF_MS = 2000

/** A queue of shards in Redis. */
export class ShardQueue {
  readonly #bullmq: BullMQ
  readonly #redis: Redis
  readonly #queue: Queue
  readonly name: string
  /** The error that ends a job which another attempt would not help. */
  readonly Unrecoverable: BullMQ['UnrecoverableError']
  /** The error that ends a job which was given back. */
  readonly Waiting: BullMQ['WaitingError']

  private constructor(bullmq: BullMQ, redis: Redis, name: string) {
    this.#bullmq = bullmq
    this.#redis = redis
    this.name = name
    this.#queue = new bullmq.Queue(name, { connection: redis })
    this.#queue.on('error', () => {})
    this.Unrecoverable = bullmq.UnrecoverableError
    this.Waiting = bullmq.WaitingError
  }

  /**
   * Connects to Redis.
   * @throws UsageError without the packages, StoreError (`Unavailable`) without Redis
   */
  static async open(url: string, name: string): Promise<ShardQueue> {
    const [bullmq, ioredis] = await packages()
    if (!/^rediss?:\/\//.test(url)) throw new UsageError('expected --redis redis://… or rediss://…, got another URL')
    // BullMQ waits without end for jobs, and through a restart of Redis.
    const redis = new ioredis.Redis(url, { maxRetriesPerRequest: null })
    let last = 'no answer'
    redis.on('error', ({ message, code }: NodeJS.ErrnoException) => {
      last = message || code || last
    })
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        const place = withoutSecret(url)
        reject(new StoreError('Unavailable', `${place}: cannot connect to Redis: ${last}`, { url: place }))
      }, CONNECT_MS)
    })
    try {
      await Promise.race([redis.ping(), late])
    } catch (error) {
      redis.disconnect()
      if (error instanceof StoreError) throw error
      const place = withoutSecret(url)
      const { message } = error as Error
      throw new StoreError('Unavailable', `${place}: Redis refuses the connection: ${message}`, { url: place }, error)
    } finally {
      clearTimeout(timer)
    }
    return new ShardQueue(bullmq, redis, name)
  }

  /**
   * Adds jobs, and retries those that had failed for good.
   * @returns the number of retried jobs
   */
  async add(jobs: readonly (ShardJob & { readonly id: string })[], attempts: number): Promise<number> {
    let again = 0
    for (const { id } of jobs) {
      const job = await this.#queue.getJob(id)
      if ((await job?.getState()) !== 'failed') continue
      await job!.retry()
      again++
    }
    const backoff = { type: 'exponential', delay: BACKOFF_MS, jitter: 0.5 } as const
    // Those that are there already stay as they are.
    await this.#queue.addBulk(
      jobs.map(({ id, plan, shard }) => ({
        name: 'shard',
        data: { plan, shard },
        opts: { jobId: id, attempts, backoff, removeOnComplete: true },
      })),
    )
    return again
  }

  /** True if no job is left or in progress. */
  async isEmpty(): Promise<boolean> {
    const counts = await this.#queue.getJobCounts('waiting', 'active', 'delayed', 'prioritized', 'paused')
    return Object.values(counts).every(count => count === 0)
  }

  worker(work: (job: Job, token: string) => Promise<unknown>, concurrency: number): Worker {
    const { Worker } = this.#bullmq
    return new Worker(this.name, work, {
      connection: this.#redis,
      concurrency,
      lockDuration: LOCK_MS,
      stalledInterval: STALLED_MS,
      maxStalledCount: MAX_STALLED,
    })
  }

  async close(): Promise<void> {
    await this.#queue.close()
    this.#redis.disconnect()
  }
}

interface IORedis {
  readonly Redis: new (url: string, options: object) => Redis
}

async function packages(): Promise<readonly [BullMQ, IORedis]> {
  try {
    // Names in variables, so that no bundler looks for them.
    const [bullmq, ioredis] = await Promise.all(PACKAGES.map(name => import(name) as Promise<unknown>))
    return [bullmq as BullMQ, ioredis as IORedis]
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new UsageError(`a queue needs BullMQ, which is not installed: npm install ${PACKAGES.join(' ')}`, {}, error)
  }
}

function withoutSecret(url: string): string {
  try {
    const { protocol, host } = new URL(url)
    return `${protocol}//${host}`
  } catch {
    return 'redis'
  }
}
