/** Where jobs run: the same rows on any number of threads, ends that are clean, threads that die. */

import { execFile } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  closePools,
  createTrial,
  EngineError,
  type GlobalStep,
  type ModeStep,
  maxThreads,
  type ScanProgress,
  type Trial,
  UsageError,
} from '#dist/index.js'
import type { WorkerStep } from '#dist/scan/catalog/worker-steps.js'
import type { Job, ReplyTo } from '#dist/scan/job/job.js'
import { planJobs } from '#dist/scan/job/scan-job.js'
import { Scan } from '#dist/scan/rows/scan.js'
import { InlineRunner } from '#dist/scan/runner/inline.js'
import type { Runner } from '#dist/scan/runner/runner.js'
import { ThreadRunner, threadRunner } from '#dist/scan/runner/threads.js'
import { readIndex } from '../fixtures/corrupt.js'
import { eventFilePath, TrialWriter } from '../fixtures/event-writer.js'
import { normals } from '../fixtures/random.js'
import { ROOT } from './support/golden.js'
import { isLong, part, whenLong } from './support/part.js'
import { plainRows, rejectionOf, rowsOf } from './support/scanning.js'
import { scratchDirectory } from './support/scratch.js'
import { packageWithThread, runModule, Threads } from './support/threads.js'

const run = promisify(execFile)
const scratch = scratchDirectory('pool')
const directory = join(scratch, 'trial')
let trial: Trial

beforeAll(async () => {
  // 6 steps of 2 workers, 20 records of 0.4 MB each: about 100 MB, some 12 jobs.
  const writer = new TrialWriter(directory, { numWorkers: 2, checksum: 'true' })
  const bytes = new Uint8Array(Float32Array.from(normals(110_000, 1)).buffer)
  for (let step = 0; step < 6; step++) {
    for (let worker = 0; worker < 2; worker++) {
      const tensors = Array.from({ length: 20 }, (_, i) => {
        const data = bytes.subarray(i * 4000, i * 4000 + 360_000)
        return { name: `t${i}`, dtype: 'float32', shape: [90_000], data } as const
      })
      writer.step({ step, mode: 'TRAIN', worker, tensors })
    }
  }
  writer.end()
  trial = await createTrial(directory)
})

afterAll(closePools)

describe('rows', () => {
  it('are the same in the same order on any number of threads', async () => {
    const inline = await rowsOf(trial, { threads: 0, checkLevel: 'full' })
    expect(inline.map(({ step, worker, tensor }) => [step, worker, tensor])).toEqual(
      [0, 1, 2, 3, 4, 5].flatMap(step =>
        ['worker_0', 'worker_1'].flatMap(worker => Array.from({ length: 20 }, (_, i) => [step, worker, `t${i}`])),
      ),
    )
    for (const threads of isLong ? [1, 2, 3] : [2]) {
      expect(plainRows(await rowsOf(trial, { threads, checkLevel: 'full' }))).toEqual(plainRows(inline))
    }
  })

  it('of two scans at once are not mixed up', async () => {
    for (const threads of isLong ? [0, 2] : [2]) {
      const alone = await Promise.all([rowsOf(trial, { threads, steps: { from: 0, to: 3 } })])
      const other = await rowsOf(trial, { threads, steps: { from: 3, to: 6 }, reductions: ['mean'] })
      const [both, otherBoth] = await Promise.all([
        rowsOf(trial, { threads, steps: { from: 0, to: 3 } }),
        rowsOf(trial, { threads, steps: { from: 3, to: 6 }, reductions: ['mean'] }),
      ])
      expect(plainRows(both)).toEqual(plainRows(alone[0]!))
      expect(plainRows(otherBoth)).toEqual(plainRows(other))
    }
  })

  it.each([0, 2])('come with what they have cost, at threads %d', async threads => {
    const seen: ScanProgress[] = []
    const scan = trial.scan({ threads, onProgress: progress => seen.push(progress) })
    let rows = 0
    for await (const _ of scan) rows++
    const last = seen.at(-1)!
    expect(last).toMatchObject({ doneRows: 240, totalRows: 240 })
    // The records lie side by side, and are read without a gap.
    expect(last.readBytes).toBe(last.totalBytes)
    for (let i = 1; i < seen.length; i++) expect(seen[i]!.doneRows).toBeGreaterThanOrEqual(seen[i - 1]!.doneRows)
    const { elapsedMs, ...stats } = scan.stats
    expect(elapsedMs).toBeGreaterThan(0)
    expect(stats).toMatchObject({ rows, failedRows: 0, records: 240, readBytes: last.totalBytes, threads })
    expect(stats.jobs).toBeGreaterThan(8)
    expect(stats.reads).toBeLessThan(240)
  })

  it('come once', async () => {
    const scan = trial.scan({ steps: { from: 0, to: 1 } })
    for await (const _ of scan) break
    expect(await rejectionOf(scan[Symbol.asyncIterator]().next())).toMatchObject({
      message: expect.stringContaining('iterated once'),
    })
  })
})

describe('an end', () => {
  it.each([0, 2])('before the beginning is the signal’s reason, at threads %d', async threads => {
    const reason = new Error('enough')
    expect(await rejectionOf(rowsOf(trial, { threads, signal: AbortSignal.abort(reason) }))).toBe(reason)
  })

  it.each(part([0, 1, 2], threads => threads === 2))(
    'in the middle comes quickly, and the next scan is whole, at threads %d',
    async threads => {
      const reason = new Error('enough')
      const controller = new AbortController()
      let rows = 0
      let abortedAt = 0
      const failure = await rejectionOf(
        (async () => {
          for await (const _ of trial.scan({ threads, signal: controller.signal })) {
            if (++rows === 30) {
              abortedAt = performance.now()
              controller.abort(reason)
            }
          }
        })(),
      )
      expect(failure).toBe(reason)
      expect(performance.now() - abortedAt).toBeLessThan(5000)
      expect(rows).toBe(30)
      expect((await rowsOf(trial, { threads })).length).toBe(240)
    },
  )

  it.each([0, 2])('from outside while a job runs comes quickly, at threads %d', async threads => {
    const controller = new AbortController()
    const reason = new Error('now')
    const scanning = rejectionOf(rowsOf(trial, { threads, signal: controller.signal, checkLevel: 'full' }))
    // A signal's own timer: it fires between two jobs at the latest.
    setTimeout(() => controller.abort(reason), 5)
    expect(await scanning).toBe(reason)
    expect((await rowsOf(trial, { threads, steps: { from: 0, to: 1 } })).length).toBe(40)
  })

  it('of one scan leaves another alone', async () => {
    const controller = new AbortController()
    const one = rejectionOf(rowsOf(trial, { threads: 2, signal: controller.signal }))
    const other = rowsOf(trial, { threads: 2 })
    setTimeout(() => controller.abort(new Error('one')), 5)
    expect(await one).toMatchObject({ message: 'one' })
    const rows = await other
    expect([rows.length, rows.filter(({ error }) => error).length]).toEqual([240, 0])
  })

  it('by breaking out of the loop leaves nothing that disturbs', async () => {
    for (const threads of [0, 2]) {
      let rows = 0
      for await (const _ of trial.scan({ threads })) if (++rows === 5) break
      expect((await rowsOf(trial, { threads, steps: { from: 2, to: 3 } })).length).toBe(40)
    }
  })

  it('of many signals warns of nothing', async () => {
    const warnings: unknown[] = []
    const listen = (warning: unknown) => warnings.push(warning)
    process.on('warning', listen)
    const { signal } = new AbortController()
    await rowsOf(trial, { threads: 8, signal })
    await new Promise(resolve => setTimeout(resolve, 10))
    process.off('warning', listen)
    expect(warnings).toEqual([])
  })
})

/** Jobs over a worker's first step, again and again. */
function jobsOf(times: number): Job[] {
  const file = 'events/000000000000/000000000000_worker_0.tfevents'
  const places = Array.from({ length: times }, () =>
    readIndex(directory, 0).tensor_payload.map(({ tensorname, start_idx, length }) => {
      return { file, tag: tensorname, startByte: start_idx, byteLength: length, step: 0 }
    }),
  )
  const store = { kind: 'local', root: directory } as const
  return [...planJobs(places.flat(), { store, checkLevel: 2, memory: 64 << 20, known: 3 })].map(({ job }) => job)
}

describe('a pool', () => {
  it('whose threads are ended rejects what runs, and a new one serves', async () => {
    const runner = threadRunner(2)
    const replies = jobsOf(24).map(job => runner.run(job))
    const settled = Promise.allSettled(replies)
    await replies[0]
    await runner.close()
    const outcomes = await settled
    const failures = outcomes.flatMap(outcome => (outcome.status === 'rejected' ? [outcome.reason] : []))
    expect(failures.length).toBeGreaterThan(0)
    expect(failures.length).toBeLessThan(outcomes.length)
    for (const failure of failures) expect(failure).toMatchObject({ name: 'ThreadError', code: 'ThreadsClosed' })
    expect(threadRunner(2)).not.toBe(runner)
    expect((await rowsOf(trial, { threads: 2, steps: { from: 0, to: 1 } })).length).toBe(40)
  })

  it('that is closed in the midst of a scan ends it with an error, and the next scan is whole', async () => {
    const scan = trial.scan({ threads: 2, checkLevel: 'full' })
    let rows = 0
    const failure = await rejectionOf(
      (async () => {
        for await (const { error } of scan) {
          if (rows++ === 0) await closePools()
          expect(error).toBeUndefined()
        }
      })(),
    )
    expect(failure).toMatchObject({ name: 'ThreadError', code: 'ThreadsClosed' })
    expect(rows).toBeGreaterThan(0)
    expect(rows).toBeLessThan(240)
    const again = await rowsOf(trial, { threads: 2, checkLevel: 'full' })
    expect(again.filter(({ error }) => error)).toEqual([])
  })

  it('is one for each number of threads', () => {
    expect(threadRunner(1)).toBe(threadRunner(1))
    expect(threadRunner(1)).not.toBe(threadRunner(2))
    expect(threadRunner(1)).toBeInstanceOf(ThreadRunner)
  })

  it('does not keep the process alive', async () => {
    const script = `
      import { createTrial } from ${JSON.stringify(pathToFileURL(join(ROOT, 'dist/index.js')).href)}
      const trial = await createTrial(${JSON.stringify(directory)})
      let rows = 0
      for await (const row of trial.scan({ threads: 2 })) rows++
      console.log(rows)`
    const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', script], { timeout: 150_000 })
    expect(stdout.trim()).toBe('240')
  })

  /** Scans with two threads in a process of its own, by a copy of the package whose thread file is another. */
  function scanWithThread(name: string, change: (source: string) => string): Promise<[number, string[]]> {
    const index = packageWithThread(join(scratch, name), change)
    return runModule(`
      import { createTrial } from ${JSON.stringify(index)}
      const trial = await createTrial(${JSON.stringify(directory)})
      const errors = new Set()
      let rows = 0
      try {
        for await (const { error } of trial.scan({ threads: 2 })) {
          rows++
          if (error) errors.add(error.code + ': ' + error.message)
        }
      } catch (error) {
        errors.add('thrown ' + error.code + ': ' + error.message)
      }
      console.log(JSON.stringify([rows, [...errors]]))`)
  }

  it('whose thread file can’t be loaded says so instead of waiting for ever', async () => {
    const [rows, errors] = await scanWithThread('broken', () => 'throw new Error("broken thread")')
    expect(rows).toBe(0)
    expect(errors).toEqual([expect.stringMatching(/^thrown ThreadsNotStarted: .*broken thread/)])
  })

  /** Ends the thread in the midst of the job that reads a tensor, the first so many times. */
  const dying = (name: string, deaths: number) => (source: string) =>
    source.replace(
      /export default async function run\(job\) \{/,
      `import { appendFileSync, readFileSync } from 'node:fs'
       export default async function run(job) {
         if (job.kind === 'scan' && job.records.step.some((step, i) => step === 3 && job.tags[job.records.tag[i]] === 't5')) {
           const deaths = ${JSON.stringify(join(scratch, name))}
           appendFileSync(deaths, 'x')
           if (readFileSync(deaths).length <= ${deaths}) process.exit(3)
         }`,
    )

  it('one of whose threads dies does the job once more', async () => {
    expect(await scanWithThread('dying', dying('deaths', 1))).toEqual([240, []])
  })

  it.each(whenLong)(
    'whose threads die again and again loses the rows that they die of, and no others (%s)',
    async () => {
      const [rows, errors] = await scanWithThread('dead', dying('many deaths', 1000))
      expect(rows).toBe(240)
      // One of each worker.
      expect(errors.length).toBe(2)
      const named = /^ThreadDied: .*_worker_\d\.tfevents, offset \d+, tensor "t5" at step 3: its thread died/
      for (const error of errors) expect(error).toMatch(named)
    },
  )
})

describe('a job that fails as an engine does', () => {
  /** Fails as a pool does whose thread died, the first few times it is asked. */
  class DyingRunner implements Runner {
    readonly threads = 0
    readonly ahead = 1
    runs = 0
    readonly #inline = new InlineRunner()
    readonly #deaths: number

    constructor(deaths: number) {
      this.#deaths = deaths
    }

    async run<J extends Job>(job: J, signal?: AbortSignal): Promise<ReplyTo<J>> {
      if (this.runs++ < this.#deaths) throw new EngineError('a thread of the pool died: test')
      return this.#inline.run(job, signal)
    }
  }

  async function scanWith(runner: Runner): Promise<{ rows: number; failed: number }> {
    const workerStep: WorkerStep = {
      step: 0 as GlobalStep,
      worker: 'worker_0',
      mode: 'TRAIN',
      modeStep: 0 as ModeStep,
      eventFile: eventFilePath(0, 'worker_0'),
      tensors: new Map(),
      error: null,
      isTornasole: false,
    }
    const saved = readIndex(directory, 0).tensor_payload.map(({ tensorname: tensor, start_idx, length }) => {
      const value = { name: tensor, startByte: start_idx, byteLength: length }
      return { tensor, value, reductions: new Map(), shape: null }
    })
    const scan = new Scan({
      groups: [{ workerStep, list: { saved, records: null } }],
      problems: () => [],
      reductions: ['mean'],
      strict: true,
      context: { store: { kind: 'local', root: directory }, checkLevel: 1, memory: 64 << 20, known: 3 },
      runner: () => runner,
      url: name => name,
      signal: undefined,
      onProgress: undefined,
    })
    let rows = 0
    let failed = 0
    for await (const { error } of scan) {
      rows++
      if (error) failed++
    }
    return { rows, failed }
  }

  it('is tried once more', async () => {
    const runner = new DyingRunner(1)
    expect(await scanWith(runner)).toEqual({ rows: 20, failed: 0 })
    expect(runner.runs).toBe(2)
  })

  it('is halved after that', async () => {
    const runner = new DyingRunner(2)
    expect(await scanWith(runner)).toEqual({ rows: 20, failed: 0 })
    expect(runner.runs).toBe(4)
  })

  it('is given up in the end, and its rows say so', async () => {
    const runner = new DyingRunner(Number.POSITIVE_INFINITY)
    expect(await scanWith(runner)).toEqual({ rows: 20, failed: 20 })
    expect(runner.runs).toBeLessThan(100)
  })
})

describe('threads that would not help', () => {
  it('are not started', async () => {
    const most = maxThreads(directory)
    expect(most).toBe(2 * availableParallelism())
    expect(maxThreads('s3://bucket/trial')).toBe(4 * most)
    const threads = new Threads()
    try {
      const scan = trial.scan({ threads: 1000 })
      for await (const { error } of scan) expect(error).toBeUndefined()
      expect(scan.stats.threads).toBe(most)
      await trial.summary({ threads: 999 })
      expect(threads.started).toBeLessThanOrEqual(most)
    } finally {
      threads.stop()
    }
  })
})

describe('numbers of threads and memory that make no sense', () => {
  it.each([
    { threads: -1 },
    { threads: 1.5 },
    { threads: Number.NaN },
    { threads: 5000 },
    { memory: 1000 },
    { memory: 2 ** 40 },
    { memory: Number.NaN },
  ])('%j', options => {
    expect(() => trial.scan(options)).toThrow(UsageError)
  })
})
