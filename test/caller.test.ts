/** The calling thread as one of those that work: jobs are done while the others start, and where they can't. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate, setTimeout } from 'node:timers/promises'
import type { Piscina } from 'piscina'
import { beforeAll, describe, expect, it } from 'vitest'
import { FormatError, ThreadError } from '#dist/base/errors.js'
import { createTrial, type ScanOptions } from '#dist/index.js'
import type { Job, ReplyTo } from '#dist/scan/job/job.js'
import { jobByteLength } from '#dist/scan/job/plan/memory.js'
import { CallerRunner, JOBS_A_THREAD } from '#dist/scan/runner/caller.js'
import type { Runner } from '#dist/scan/runner/runner.js'
import { ThreadRunner } from '#dist/scan/runner/threads.js'
import { makeLarge } from '../fixtures/make.js'
import { scratchDirectory } from './support/scratch.js'

const scratch = scratchDirectory('caller')
const directory = join(scratch, 'large')

beforeAll(() => {
  makeLarge(directory, { steps: 3, scale: 0.1 })
})

/** Says who did which job, as soon as it is told to. */
class Works implements Runner {
  readonly threads: number
  readonly ahead = 1
  readonly done: number[] = []
  most = 0
  #underWay = 0
  readonly #work: (job: number) => Promise<unknown>

  constructor(threads: number, work: (job: number) => Promise<unknown> = () => setImmediate()) {
    this.threads = threads
    this.#work = work
  }

  async run<J extends Job>(job: J): Promise<ReplyTo<J>> {
    this.most = Math.max(this.most, ++this.#underWay)
    try {
      await this.#work(job as unknown as number)
    } finally {
      this.#underWay--
    }
    this.done.push(job as unknown as number)
    return job as unknown as ReplyTo<J>
  }
}

const runAll = (runner: Runner, count: number): Promise<unknown[]> =>
  Promise.all(Array.from({ length: count }, (_, i) => runner.run(i as unknown as Job)))

const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i)

describe('the calling thread', () => {
  it('works while the others start, and shares with them once they have', async () => {
    let start = (): void => {}
    const others = Object.assign(new Works(2), { started: new Promise<void>(resolve => (start = resolve)) })
    const caller = new Works(0, async job => {
      if (job === 3) start()
      await setTimeout(5)
    })
    expect(await runAll(new CallerRunner(others, caller), 20)).toEqual(numbers(20))
    expect(caller.done.slice(0, 4)).toEqual([0, 1, 2, 3])
    expect(caller.most).toBe(1)
    expect(others.most).toBe(2 * JOBS_A_THREAD)
    expect([...caller.done, ...others.done].sort((a, b) => a - b)).toEqual(numbers(20))
  })

  it('does all of it where no other can start, at first or later', async () => {
    const lost = new ThreadError('ThreadsNotStarted', 'no threads')
    const rejected = Promise.reject(lost)
    rejected.catch(() => {})
    const never = Object.assign(new Works(2), { started: rejected })
    const caller = new Works(0)
    await runAll(new CallerRunner(never, caller), 5)
    expect(caller.done).toEqual(numbers(5))
    const given = Object.assign(new Works(2, () => Promise.reject(lost)), { started: Promise.resolve() })
    const again = new Works(0)
    expect(await runAll(new CallerRunner(given, again), 9)).toEqual(numbers(9))
    expect([...again.done].sort((a, b) => a - b)).toEqual(numbers(9))
  })

  it('tells the failure of a job to who asked for it, and goes on', async () => {
    const failure = new FormatError('BadShape', 'wrong', { url: 'file:///trial/a' })
    const caller = new Works(0, async job => {
      if (job === 1) throw failure
    })
    const runner = new CallerRunner(null, caller)
    const settled = await Promise.allSettled(numbers(3).map(i => runner.run(i as unknown as Job)))
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(settled[1]).toMatchObject({ reason: failure })
  })
})

describe('callerWorks', () => {
  const text = async (options: ScanOptions): Promise<{ text: string; threads: number }> => {
    const trial = await createTrial(directory)
    const scan = trial.scan(options)
    let text = ''
    for await (const lines of scan.lines('csv')) text += Buffer.from(lines)
    return { text, threads: scan.stats.threads }
  }

  it('changes no byte of a scan', async () => {
    const expected = await text({ threads: 0 })
    for (const threads of [1, 2, 3]) {
      expect(await text({ threads, callerWorks: true })).toEqual({ text: expected.text, threads })
    }
  })

  it('ends with the signal', async () => {
    const trial = await createTrial(directory)
    const stop = new AbortController()
    const rows = async (): Promise<void> => {
      for await (const _ of trial.scan({ threads: 2, callerWorks: true, signal: stop.signal }))
        stop.abort(new Error('enough'))
    }
    await expect(rows()).rejects.toThrow('enough')
  })
})

describe('a thread that has several jobs at once', () => {
  it('has them with a signal, too, and outlives an abort', async () => {
    const runner = new ThreadRunner(1, 2)
    const pool = (await runner.started) as Piscina
    const before = pool.threads.map(({ threadId }) => threadId)
    const stop = new AbortController()
    const job = { kind: 'index', store: { kind: 'local', root: directory }, readsModes: false, paths: [] } as const
    const given = [runner.run(job, stop.signal), runner.run(job, stop.signal)]
    const settled = Promise.allSettled(given)
    // They are with the thread before it can answer one.
    for (let i = 0; i < 10; i++) await null
    expect(pool.queueSize).toBe(0)
    stop.abort(new Error('enough'))
    expect(await settled).toMatchObject([{ reason: { message: 'enough' } }, { reason: { message: 'enough' } }])
    expect(await runner.run(job)).toMatchObject({ kind: 'index' })
    expect(pool.threads.map(({ threadId }) => threadId)).toEqual(before)
    await runner.close()
  })
})

describe('an abort', () => {
  const job = { kind: 'index', store: { kind: 'local', root: directory }, readsModes: false, paths: [] } as const

  it('of a job that does not end holds back no other', async () => {
    const hangs = join(scratch, 'hangs.cjs')
    writeFileSync(hangs, 'module.exports = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)')
    const runner = new ThreadRunner(1, 2)
    const pool = (await runner.started) as Piscina
    pool.run({}, { filename: hangs }).catch(() => {})
    const stop = new AbortController()
    const waiting = [runner.run(job, stop.signal), runner.run(job)]
    // They are with the thread.
    for (let i = 0; i < 10; i++) await null
    stop.abort(new Error('enough'))
    await expect(waiting[0]).rejects.toThrow('enough')
    expect(await waiting[1]).toMatchObject({ kind: 'index' })
    expect(await runner.started).not.toBe(pool)
    await runner.close()
  })

  it('may be waited for by very many jobs', async () => {
    const warnings: string[] = []
    const warn = ({ message }: Error): number => warnings.push(message)
    process.on('warning', warn)
    const runners = [new ThreadRunner(1), new ThreadRunner(1, 2)]
    const { signal } = new AbortController()
    await Promise.all(runners.flatMap(runner => numbers(20).map(() => runner.run(job, signal))))
    await setImmediate()
    process.off('warning', warn)
    expect(warnings).toEqual([])
    await Promise.all(runners.map(runner => runner.close()))
  })
})

describe('jobs', () => {
  it('are long while much is left, and short at first, in the end, and on the calling thread alone', () => {
    const mib = 2 ** 20
    const lengths = (planned: number, left: readonly number[]): number[] =>
      left.map(left => jobByteLength(left * mib, 2, planned * mib) / mib)
    expect(lengths(4000, [0, 100, 512, 4000])).toEqual([8, 8, 32, 64])
    expect([0, 64, 128, 4000].flatMap(planned => lengths(planned, [4000]))).toEqual([8, 8, 16, 64])
    expect(jobByteLength(4000 * mib, 0)).toBe(8 * mib)
  })
})
