/** Trials whose jobs still run: a process of its own writes, the trial looks. */

import { join } from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import * as trialscan from '#dist/index.js'
import {
  FormatError,
  StepNotYetAvailable,
  type Trial,
  type TrialOptions,
  type Waiting,
  WaitTimeout,
} from '#dist/index.js'
import { LocalStore } from '#dist/storage/local/local-store.js'
import { LiveWriter } from './support/live-writer.js'
import { rejectionOf, thrownBy } from './support/scanning.js'
import { scratchDirectory } from './support/scratch.js'

const scratch = scratchDirectory('live')
const writers: LiveWriter[] = []
let count = 0

/** So long that nothing but a file event can be what ends a wait within the test's time. */
const NEVER = 600_000

/** What is tested here is to look on purpose; test/background.test.ts has the rest. */
function createTrial(directory: string, options: TrialOptions = {}): Promise<Trial> {
  return trialscan.createTrial(directory, { refresh: 'manual', ...options })
}

async function start(numWorkers = 1): Promise<{ writer: LiveWriter; directory: string }> {
  const directory = join(scratch, String(count++))
  const writer = await LiveWriter.start(directory, numWorkers)
  writers.push(writer)
  return { writer, directory }
}

/** Index files that are read from now on; empty it to go on. */
function indexReads(): string[] {
  const paths: string[] = []
  const { read, readSmall } = LocalStore.prototype
  const note = (path: string) => {
    if (path.startsWith('index/')) paths.push(path)
  }
  vi.spyOn(LocalStore.prototype, 'read').mockImplementation(function (this: LocalStore, path, options) {
    note(path)
    return read.call(this, path, options)
  })
  vi.spyOn(LocalStore.prototype, 'readSmall').mockImplementation(function (this: LocalStore, path, buffer) {
    const length = readSmall.call(this, path, buffer)
    if (length >= 0) note(path)
    return length
  })
  return paths
}

afterEach(() => {
  vi.restoreAllMocks()
  for (const writer of writers.splice(0)) writer.stop()
})

describe('refresh', () => {
  it('reads only index files that are new, late ones of slow workers too', async () => {
    const { writer, directory } = await start(2)
    await writer.step(0, 0, 1)
    await writer.step(1, 0)
    const trial = await createTrial(directory)
    expect([trial.steps(), trial.steps({ showIncompleteSteps: true })]).toEqual([[0], [0, 1]])
    const reads = indexReads()
    expect(await trial.refresh()).toBe(false)
    expect(reads).toEqual([])
    await writer.step(2, 0)
    await writer.step(1, 1)
    expect(await trial.refresh()).toBe(true)
    expect(reads).toEqual(['index/000000000/000000000001_worker_1.json', 'index/000000000/000000000002_worker_0.json'])
    expect([trial.steps(), trial.steps({ showIncompleteSteps: true })]).toEqual([
      [0, 1],
      [0, 1, 2],
    ])
    expect(trial.tensor('loss').workers(1)).toEqual(['worker_0', 'worker_1'])
  })

  it('takes a late file for an old step that counted as complete', async () => {
    const { writer, directory } = await start(2)
    await writer.step(0, 0)
    await writer.step(1, 0, 1)
    const trial = await createTrial(directory)
    expect([trial.steps(), trial.tensor('loss').workers(0)]).toEqual([[0, 1], ['worker_0']])
    await writer.step(0, 1)
    await trial.refresh()
    expect([trial.steps(), trial.tensor('loss').workers(0)]).toEqual([
      [0, 1],
      ['worker_0', 'worker_1'],
    ])
    expect((await trial.tensor('loss').value(0, { worker: 'worker_1' })).data).toEqual(Float32Array.of(0, 1))
  })

  it('never forgets what another that ran at the same time has found', async () => {
    const { writer, directory } = await start()
    await writer.step(0)
    const trial = await createTrial(directory)
    await writer.step(1)
    // The second listing is late: what the first found is known by then.
    const { list } = LocalStore.prototype
    let listed = 0
    vi.spyOn(LocalStore.prototype, 'list').mockImplementation(async function (this: LocalStore, path, options) {
      if (path.startsWith('index') && ++listed === 2) await new Promise(resolve => setTimeout(resolve, 100))
      return list.call(this, path, options)
    })
    const first = trial.refresh()
    await new Promise(resolve => setImmediate(resolve))
    const second = trial.refresh()
    expect([await first, trial.steps()]).toEqual([true, [0, 1]])
    await second
    expect(trial.steps()).toEqual([0, 1])
    expect(listed).toBe(2)
  })

  it('sees what was there when it was asked, also while another is under way', async () => {
    const { writer, directory } = await start()
    await writer.step(0)
    const trial = await createTrial(directory)
    for (let step = 1; step < 20; step++) {
      const early = [trial.refresh(), trial.refresh()]
      await new Promise(resolve => setImmediate(resolve))
      await writer.step(step)
      await Promise.all([trial.refresh(), ...early])
      expect(trial.steps()).toHaveLength(step + 1)
    }
  })

  it('ignores files that are still being written', async () => {
    const { writer, directory } = await start()
    await writer.do({ do: 'put', file: 'event', step: 0, worker: 0 })
    const trial = await createTrial(directory)
    await writer.do({ do: 'put', file: 'index', step: 3, worker: 0, as: 'tmp' })
    await trial.refresh()
    expect([trial.steps({ showIncompleteSteps: true }).includes(3), trial.problems]).toEqual([false, []])
    await writer.do({ do: 'put', file: 'event', step: 3, worker: 0 }, { do: 'rename', step: 3, worker: 0 })
    await trial.refresh()
    expect(trial.steps()).toContain(3)
  })

  it('takes steps in any order, and an index before its event file', async () => {
    const { writer, directory } = await start()
    await writer.step(5)
    const trial = await createTrial(directory)
    await writer.step(2)
    await writer.do({ do: 'put', file: 'index', step: 7, worker: 0 })
    await trial.refresh()
    expect(trial.steps()).toEqual([2, 5, 7])
    expect(await rejectionOf(trial.tensor('loss').value(7))).toBeInstanceOf(StepNotYetAvailable)
    await writer.do({ do: 'put', file: 'event', step: 7, worker: 0 })
    expect((await trial.tensor('loss').value(7)).data[0]).toBe(7)
  })

  it('reads an index file again that was looked at while it was written', async () => {
    const { writer, directory } = await start()
    await writer.step(0)
    await writer.do({ do: 'put', file: 'index', step: 1, worker: 0, as: 'half' })
    const trial = await createTrial(directory)
    expect(trial.problems).toEqual([expect.any(FormatError)])
    await writer.step(1)
    await trial.refresh()
    expect([trial.problems, trial.steps()]).toEqual([[], [0, 1]])
  })

  it('keeps what there is of a job that crashed half way through a file', async () => {
    const { writer, directory } = await start(2)
    await writer.step(0, 0, 1)
    await writer.step(1, 0)
    await writer.do({ do: 'put', file: 'event', step: 1, worker: 1, as: 'half' }, { do: 'crash' })
    const trial = await createTrial(directory)
    expect([trial.steps(), trial.loadedAllSteps]).toEqual([[0], false])
    const failure = await rejectionOf(trial.waitForSteps([0, 1], { timeoutMs: 0 }))
    expect(failure).toBeInstanceOf(WaitTimeout)
    expect((failure as Error).message).toMatch(/steps 1 \(written by worker_0 only\)/)
  })
})

describe('follow', () => {
  it('yields every complete step once and ends with the job, by file events alone', async () => {
    const { writer, directory } = await start(2)
    await writer.step(0, 0, 1)
    const trial = await createTrial(directory)
    const told: number[] = []
    for await (const step of trial.follow({ pollMs: NEVER, timeoutMs: NEVER })) {
      told.push(step)
      // What happens next is told only when the step was yielded, so that each wait is for a file event.
      if (step === 0) void writer.step(1, 0).then(() => writer.step(1, 1))
      if (step === 1) void writer.step(1000, 1, 0)
      if (step === 1000) void writer.step(1001, 0).then(() => writer.end())
    }
    expect([told, trial.loadedAllSteps]).toEqual([[0, 1, 1000, 1001], true])
  })

  it('works by looking again where the platform tells of nothing', async () => {
    vi.spyOn(LocalStore.prototype, 'watch').mockReturnValue({ changed: () => new Promise(() => {}), close() {} })
    const { writer, directory } = await start()
    const trial = await createTrial(directory)
    const told: number[] = []
    void writer.step(4)
    for await (const step of trial.follow({ pollMs: 10 })) {
      told.push(step)
      void (step === 4 ? writer.step(9) : writer.end())
    }
    expect(told).toEqual([4, 9])
  })

  it('ends at once where the end marker is all that comes, or was there before', async () => {
    const { writer, directory } = await start()
    const trial = await createTrial(directory)
    const steps = trial.follow({ pollMs: NEVER })
    const next = steps.next()
    await writer.end()
    expect(await next).toEqual({ done: true, value: undefined })
    expect(await trial.follow().next()).toEqual({ done: true, value: undefined })
  })

  it('yields a step of one mode, from a step on', async () => {
    const { writer, directory } = await start()
    for (const step of [0, 1, 2, 3]) {
      await writer.do({ do: 'step', step, workers: [0], mode: step % 2 === 0 ? 'TRAIN' : 'EVAL' })
    }
    await writer.end()
    const told: number[] = []
    for await (const step of (await createTrial(directory)).follow({ mode: 'EVAL', startStep: 2 })) told.push(step)
    expect(told).toEqual([3])
  })

  it('says what it waits for, and ends with its signal or its time', async () => {
    const { writer, directory } = await start()
    await writer.step(6)
    const trial = await createTrial(directory)
    const stop = new AbortController()
    const waits: Waiting[] = []
    const onWait = (waiting: Waiting) => {
      waits.push(waiting)
      stop.abort(new Error('enough'))
    }
    const steps = trial.follow({ pollMs: NEVER, timeoutMs: NEVER, signal: stop.signal, onWait })
    expect((await steps.next()).value).toBe(6)
    expect(await rejectionOf(steps.next())).toMatchObject({ message: 'enough' })
    expect(waits).toMatchObject([
      {
        missing: 'a complete step after global step 6, or the end of the job',
        present: expect.stringContaining('steps'),
      },
    ])
    const late = trial.follow({ timeoutMs: 0 })
    await late.next()
    expect(await rejectionOf(late.next())).toBeInstanceOf(WaitTimeout)
  })
})

describe('waitForSteps', () => {
  it('waits for workers that stall, by file events alone', async () => {
    const { writer, directory } = await start(2)
    await writer.step(0, 0)
    const trial = await createTrial(directory)
    let write: Promise<void> | undefined
    const onWait = () => {
      write ??= writer.step(0, 1)
    }
    await trial.waitForSteps([0], { pollMs: NEVER, timeoutMs: NEVER, onWait })
    await write
    expect(trial.steps()).toEqual([0])
  })

  it('waits for longer than a timer can', async () => {
    const { directory } = await start()
    const stop = new AbortController()
    let looks = 0
    const options = { pollMs: Number.POSITIVE_INFINITY, timeoutMs: 2 ** 40, signal: stop.signal, onWait: () => looks++ }
    setTimeout(() => stop.abort(new Error('enough')), 100)
    const trial = await createTrial(directory, { requireCollections: false })
    expect(await rejectionOf(trial.waitForSteps([0], options))).toMatchObject({ message: 'enough' })
    expect(looks).toBe(1)
  })

  it('ends at once when its signal says so, before or on the way', async () => {
    const { directory } = await start()
    const trial = await createTrial(directory)
    const reason = new Error('never mind')
    expect(await rejectionOf(trial.waitForSteps([1], { signal: AbortSignal.abort(reason) }))).toBe(reason)
    const stop = new AbortController()
    const options = { pollMs: NEVER, timeoutMs: NEVER, signal: stop.signal, onWait: () => stop.abort(reason) }
    expect(await rejectionOf(trial.waitForSteps([1], options))).toBe(reason)
  })

  it('names what is missing and what there is', async () => {
    const { writer, directory } = await start(2)
    await writer.step(3, 0)
    const trial = await createTrial(directory)
    const failure = await rejectionOf(trial.waitForSteps([3, 8], { timeoutMs: 0 }))
    expect(failure).toBeInstanceOf(WaitTimeout)
    expect((failure as Error).message).toBe(
      'waited 0 s for steps 3 (written by worker_0 only), 8; the trial has 1 steps, from 3 to 3',
    )
  })
})

it('does not wait for stragglers beyond the window', async () => {
  const { writer, directory } = await start(2)
  for (const step of [0, 1, 2, 3]) await writer.step(step, 0)
  expect((await createTrial(directory)).steps()).toEqual([])
  const trial = await createTrial(directory, { incompleteStepWindow: 2 })
  expect([trial.steps(), trial.steps({ showIncompleteSteps: true })]).toEqual([
    [0, 1],
    [0, 1, 2, 3],
  ])
  expect(thrownBy(() => trial.globalStep('GLOBAL', 9))).toBeInstanceOf(StepNotYetAvailable)
})
