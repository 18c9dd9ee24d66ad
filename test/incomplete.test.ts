/** Steps that some workers have yet to write, and jobs of which nobody knows yet how many workers they have. */

import { cpSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import {
  createTrial,
  InvalidWorker,
  noRefresh,
  StepNotYetAvailable,
  TensorUnavailableForStep,
  type Trial,
  WaitTimeout,
} from '#dist/index.js'
import { LocalStore } from '#dist/storage/local/local-store.js'
import { eventFilePath, indexFilePath, TrialWriter } from '../fixtures/event-writer.js'
import { trialscan } from './cli/run.js'
import { rejectionOf, thrownBy } from './support/scanning.js'
import { scratchDirectory } from './support/scratch.js'

const scratch = scratchDirectory('incomplete')
let count = 0

afterEach(() => {
  vi.restoreAllMocks()
})

/** A job of several workers whose files appear one by one. */
class Job {
  readonly directory = join(scratch, String(count++))
  readonly #staged = `${this.directory}.staged`
  readonly #writer: TrialWriter

  constructor(numWorkers: number) {
    this.#writer = new TrialWriter(this.#staged, { numWorkers })
  }

  /** Of worker 1 also a tensor that no other saves. */
  write(step: number, ...workers: number[]): void {
    for (const worker of workers) {
      const tensors = [{ name: 'loss', dtype: 'float32' as const, shape: [1], values: [step + worker / 10] }]
      if (worker === 1) tensors.push({ ...tensors[0]!, name: 'only' })
      this.#writer.step({ step, worker, tensors })
      this.#publish(eventFilePath(step, `worker_${worker}`))
      this.#publish(indexFilePath(step, `worker_${worker}`))
    }
  }

  /** The collections files of workers. */
  begin(...workers: number[]): void {
    for (const worker of workers) this.#publish(`collections/000000000/worker_${worker}_collections.json`)
  }

  end(): void {
    writeFileSync(join(this.directory, 'training_job_end.ts'), '')
  }

  #publish(path: string): void {
    cpSync(join(this.#staged, path), join(this.directory, path), { recursive: true })
  }
}

describe('while nobody knows how many workers there are', () => {
  it('no step is complete, and follow yields none', async () => {
    const job = new Job(2)
    job.write(0, 0)
    const trial = await createTrial(job.directory)
    expect([trial.steps(), trial.steps({ showIncompleteSteps: true }), trial.tensor('loss').steps()]).toEqual([
      [],
      [0],
      [],
    ])
    expect(await trial.hasPassedStep(0)).toBe('NOT_YET_AVAILABLE')
    const following = await rejectionOf(trial.follow({ timeoutMs: 0 }).next())
    expect(following).toBeInstanceOf(WaitTimeout)
    expect((following as Error).message).toContain('a collections file')
    const waiting = await rejectionOf(trial.waitForSteps([0], { timeoutMs: 0 }))
    expect((waiting as Error).message).toContain('no collections file says yet how many workers there are')
    // What is there can be read all the same.
    expect((await trial.tensor('loss').value(0)).data[0]).toBe(0)
  })

  it('follow yields the first step when both of two workers have written it', async () => {
    const job = new Job(2)
    job.write(0, 0)
    const trial = await createTrial(job.directory)
    const steps: number[] = []
    const following = (async () => {
      for await (const step of trial.follow({ timeoutMs: 60_000, pollMs: 20 })) steps.push(step)
    })()
    job.begin(0)
    await vi.waitFor(() => expect(trial.workers()).toEqual(['worker_0']), 30_000)
    job.write(1, 0)
    await vi.waitFor(() => expect(trial.steps({ showIncompleteSteps: true })).toEqual([0, 1]), 30_000)
    expect(steps).toEqual([])
    job.begin(1)
    job.write(0, 1)
    await vi.waitFor(() => expect(steps).toEqual([0]), 30_000)
    job.end()
    await following
    expect(steps).toEqual([0, 1])
  })

  it('a collections file that comes alone is something new', async () => {
    const job = new Job(1)
    job.write(0, 0)
    const trial = await createTrial(job.directory)
    expect(await trial.refresh()).toBe(false)
    job.begin(0)
    expect([await trial.refresh(), trial.steps(), await trial.refresh()]).toEqual([true, [0], false])
  })

  it('a second step shows that there are none to come, where none are required or the index is lost', async () => {
    const job = new Job(2)
    job.write(0, 0)
    const options = { requireCollections: false }
    expect((await createTrial(job.directory, options)).steps()).toEqual([])
    job.write(1, 0)
    expect((await createTrial(job.directory, options)).steps()).toEqual([0, 1])
    expect((await createTrial(job.directory)).steps()).toEqual([])
    rmSync(join(job.directory, 'index'), { recursive: true })
    expect((await createTrial(job.directory)).steps()).toEqual([0, 1])
  })

  it('a job that has ended is complete without', async () => {
    const job = new Job(2)
    job.write(0, 0)
    const trial = await createTrial(job.directory)
    job.end()
    await trial.refresh()
    expect([trial.steps(), trial.workers()]).toEqual([[0], ['worker_0']])
    expect((await createTrial(job.directory, { requireCollections: false })).steps()).toEqual([0])
  })
})

describe('what a worker has yet to write', () => {
  /** Step 0 is complete, step 1 is not. */
  async function half(): Promise<{ job: Job; trial: Trial }> {
    const job = new Job(2)
    job.begin(0, 1)
    job.write(0, 0, 1)
    job.write(1, 0)
    // What a question looks for, and not what the background has seen meanwhile.
    return { job, trial: await createTrial(job.directory, { refresh: 'manual' }) }
  }

  const worker = 'worker_1'
  const asked = (trial: Trial): readonly [string, () => Promise<unknown>][] => {
    const [loss, only] = [trial.tensor('loss'), trial.tensor('only')]
    return [
      ['value', () => loss.value(1, { worker })],
      ['value of no worker', () => only.value(1)],
      ['reductionValue', () => only.reductionValue(1, 'max')],
      ['reductionValues', () => only.reductionValues(1)],
      ['shape', () => loss.shape(1, { worker })],
      ['workers', async () => only.workers(1)],
      ['mode', async () => trial.mode(1, { worker })],
      ['globalStep', async () => trial.globalStep('GLOBAL', 1, { worker })],
    ]
  }

  it('is not available yet', async () => {
    const { trial } = await half()
    for (const [name, ask] of asked(trial)) expect(await rejectionOf(ask()), name).toBeInstanceOf(StepNotYetAvailable)
    await expect(trial.tensor('only').value(1)).rejects.toThrow('step 1 is not available yet: written by worker_0 only')
    await expect(trial.tensor('only').value(1, { worker })).rejects.toThrow('worker_1 has yet to write it')
  })

  it.each(['value', 'value of no worker', 'reductionValue', 'reductionValues', 'shape'])(
    'is looked for again: %s',
    async name => {
      const { job, trial } = await half()
      job.write(1, 1)
      const [, ask] = asked(trial).find(([known]) => known === name)!
      expect(await rejectionOf(noRefresh(trial, ask))).toBeInstanceOf(StepNotYetAvailable)
      await ask()
      expect(trial.steps()).toEqual([0, 1])
    },
  )

  it('is not awaited where a worker has saved a value, of which there are no reductions', async () => {
    const { trial } = await half()
    for (const options of [{}, { worker: 'worker_0' }]) {
      expect((await trial.tensor('loss').value(1, options)).dtype).toBe('float32')
      expect(await trial.tensor('loss').reductionValues(1, options)).toEqual(new Map())
    }
    expect(await rejectionOf(trial.tensor('loss').reductionValues(1, { worker }))).toBeInstanceOf(StepNotYetAvailable)
  })

  it('is never there once the step is complete', async () => {
    const { job, trial } = await half()
    job.write(2, 0, 1)
    await trial.refresh()
    expect(await rejectionOf(trial.tensor('loss').value(1, { worker }))).toBeInstanceOf(InvalidWorker)
    expect(await rejectionOf(trial.tensor('only').value(1))).toBeInstanceOf(TensorUnavailableForStep)
    expect(thrownBy(() => trial.mode(1, { worker }))).toBeInstanceOf(InvalidWorker)
  })

  it('is not looked for where all workers have written', async () => {
    const { trial } = await half()
    const list = vi.spyOn(LocalStore.prototype, 'list')
    expect(await rejectionOf(trial.tensor('only').value(0, { worker: 'worker_0' }))).toBeInstanceOf(InvalidWorker)
    expect(await rejectionOf(trial.tensor('loss').value(0, { worker: 'worker_9' }))).toBeInstanceOf(InvalidWorker)
    expect(list).not.toHaveBeenCalled()
    expect(await rejectionOf(trial.tensor('loss').value(1, { worker: 'worker_9' }))).toBeInstanceOf(InvalidWorker)
  })

  it('is awaited of workers that have yet to begin', async () => {
    const job = new Job(2)
    job.begin(0)
    job.write(0, 0)
    const trial = await createTrial(job.directory)
    expect(trial.workers()).toEqual(['worker_0'])
    expect(await rejectionOf(trial.tensor('loss').value(0, { worker }))).toBeInstanceOf(StepNotYetAvailable)
  })
})

describe('a worker that has begun and saved nothing yet', () => {
  it('is one of the workers', async () => {
    const job = new Job(2)
    job.begin(0)
    job.write(0, 0)
    const trial = await createTrial(job.directory)
    job.begin(1)
    expect(await trial.refresh()).toBe(true)
    expect([trial.workers(), trial.workersWithData()]).toEqual([['worker_0', 'worker_1'], ['worker_0']])
    const rows: unknown[] = []
    for await (const row of trial.scan({ workers: 'worker_1' })) rows.push(row)
    expect(rows).toEqual([])
    expect(thrownBy(() => trial.scan({ workers: 'worker_2' }))).toBeInstanceOf(InvalidWorker)
    const { stdout } = await trialscan('ls', job.directory)
    expect(stdout).toMatch(/Workers \(2\)\n {2}worker_0\n {2}worker_1 {2}\(nothing saved\)\n/)
    const listing = JSON.parse((await trialscan('ls', job.directory, '--json')).stdout)
    expect([listing.workers, listing.workers_with_data]).toEqual([['worker_0', 'worker_1'], ['worker_0']])
  })
})
