/** Each exception in its documented case, with what it tells. */

import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import {
  createTrial,
  InvalidWorker,
  MissingCollectionFiles,
  type Mode,
  NoMoreData,
  type ReductionBase,
  ShapeUnavailableForStep,
  StepNotYetAvailable,
  type StepRange,
  StepUnavailable,
  TensorUnavailable,
  TensorUnavailableForStep,
  UsageError,
} from '#dist/index.js'
import { eventFilePath } from '../fixtures/event-writer.js'
import { writeSample } from './support/sample.js'
import { rejectionOf, thrownBy } from './support/scanning.js'
import { scratchDirectory } from './support/scratch.js'

const scratch = scratchDirectory('exceptions')
let count = 0

function sample(options: { ended?: boolean } = {}): string {
  const directory = join(scratch, String(count++))
  writeSample(directory, options)
  return directory
}

it('StepUnavailable: a step that was left out', async () => {
  const trial = await createTrial(sample())
  const failure = await rejectionOf(trial.tensor('fc.weight').value(5))
  expect(failure).toBeInstanceOf(StepUnavailable)
  expect(failure).toMatchObject({ step: 5, mode: 'GLOBAL', code: 'StepUnavailable' })
  expect(await rejectionOf(trial.waitForSteps([0, 5]))).toBeInstanceOf(StepUnavailable)
})

it('StepNotYetAvailable: a step that may still come', async () => {
  const trial = await createTrial(sample())
  const failure = await rejectionOf(trial.tensor('fc.weight').value(7, { mode: 'TRAIN' }))
  expect(failure).toBeInstanceOf(StepNotYetAvailable)
  expect((failure as Error).message).toBe('TRAIN step 7 is not available yet: the trial has 4 TRAIN steps, from 0 to 3')
  const frozen = trial.withoutRefresh(() => trial.waitForSteps([99]))
  expect(await rejectionOf(frozen)).toBeInstanceOf(StepNotYetAvailable)
})

it('NoMoreData: waiting for a step after the end of the job', async () => {
  const trial = await createTrial(sample({ ended: true }))
  const failure = await rejectionOf(trial.waitForSteps([31]))
  expect(failure).toBeInstanceOf(NoMoreData)
  expect(failure).toMatchObject({ step: 31, lastStep: 30, message: expect.stringContaining('its last step is 30') })
  expect(await rejectionOf(trial.waitForSteps([5]))).toBeInstanceOf(StepUnavailable)
})

it('TensorUnavailable: a name that was never saved, with the nearest there are', async () => {
  const trial = await createTrial(sample())
  const failure = thrownBy(() => trial.tensor('fc.wieght'))
  expect(failure).toBeInstanceOf(TensorUnavailable)
  expect((failure as Error).message).toContain('did you mean "fc.weight"?')
})

it('TensorUnavailableForStep: a tensor that was not saved at the step', async () => {
  const trial = await createTrial(sample())
  const failure = await rejectionOf(trial.tensor('accuracy').value(10))
  expect(failure).toBeInstanceOf(TensorUnavailableForStep)
  expect((failure as Error).message).toMatch(/steps that have it: 11$/)
  expect(thrownBy(() => trial.tensor('accuracy').workers(10))).toBeInstanceOf(TensorUnavailableForStep)
})

it('TensorUnavailableForStep: only reductions or only the shape were saved', async () => {
  const trial = await createTrial(sample())
  const ofLoss = await rejectionOf(trial.tensor('loss').value(10))
  expect(ofLoss).toBeInstanceOf(TensorUnavailableForStep)
  expect((ofLoss as Error).message).toContain('only its reductions mean, abs_max were saved')
  const ofShape = await rejectionOf(trial.tensor('shaped').value(10))
  expect((ofShape as Error).message).toContain('only its shape was saved')
  const reduction = await rejectionOf(trial.tensor('loss').reductionValue(10, 'min'))
  expect(reduction).toBeInstanceOf(TensorUnavailableForStep)
  expect((reduction as Error).message).toContain('min was not saved (saved are: mean, abs_max)')
})

it('TensorUnavailableForStep: the event file is missing, and the worker has gone on or the job has ended', async () => {
  const directory = sample()
  for (const worker of [0, 1]) rmSync(join(directory, eventFilePath(10, `worker_${worker}`)))
  rmSync(join(directory, eventFilePath(30, 'worker_0')))
  const weight = (await createTrial(directory)).tensor('fc.weight')
  const passed = await rejectionOf(weight.value(10))
  expect(passed).toBeInstanceOf(TensorUnavailableForStep)
  expect((passed as Error).message).toMatch(/event file .*000000000010_worker_0.tfevents is missing, and worker_0 has/)
  expect(await rejectionOf(weight.reductionValue(10, 'mean'))).toBeInstanceOf(TensorUnavailableForStep)
  expect(await rejectionOf(weight.shape(10))).toBeInstanceOf(TensorUnavailableForStep)
  const loss = (await createTrial(directory)).tensor('loss')
  expect(await rejectionOf(loss.reductionValues(10))).toBeInstanceOf(TensorUnavailableForStep)
  // The last step of the worker: the file may still come.
  expect(await rejectionOf(weight.value(30))).toBeInstanceOf(StepNotYetAvailable)
  expect(await rejectionOf(weight.reductionValue(30, 'mean'))).toBeInstanceOf(StepNotYetAvailable)

  const ended = sample({ ended: true })
  rmSync(join(ended, eventFilePath(30, 'worker_0')))
  const lost = await rejectionOf((await createTrial(ended)).tensor('fc.weight').value(30))
  expect(lost).toBeInstanceOf(TensorUnavailableForStep)
  expect((lost as Error).message).toContain('the job has ended')
})

it('ShapeUnavailableForStep: neither shape nor value were saved', async () => {
  const failure = await rejectionOf((await createTrial(sample())).tensor('loss').shape(10))
  expect(failure).toBeInstanceOf(ShapeUnavailableForStep)
  expect((failure as Error).message).toContain('only its reductions mean, abs_max were saved')
})

it('MissingCollectionFiles: the job has ended without the files of all workers', async () => {
  const directory = sample({ ended: true })
  const files = join(directory, 'collections/000000000')
  rmSync(join(files, readdirSync(files).at(-1)!))
  const failure = await rejectionOf(createTrial(directory))
  expect(failure).toBeInstanceOf(MissingCollectionFiles)
  expect((failure as Error).message).toMatch(
    /of 2 workers, but .* with 1; to open the trial anyway, set requireCollections: false/,
  )
  const trial = await createTrial(directory, { requireCollections: false })
  expect([trial.steps(), trial.workers().length]).toEqual([[0, 10, 11, 20, 30], 2])
  // While the job runs, the file may still come.
  const running = sample()
  rmSync(join(running, 'collections/000000000/worker_1_collections.json'))
  expect((await createTrial(running)).steps()).toEqual([0, 10, 11, 20])
})

it('MissingCollectionFiles: the directory is no trial', async () => {
  const empty = join(scratch, 'empty')
  mkdirSync(empty)
  expect(await rejectionOf(createTrial(empty))).toBeInstanceOf(MissingCollectionFiles)
})

it('InvalidWorker: a worker without data at the step', async () => {
  const trial = await createTrial(sample())
  const failure = await rejectionOf(trial.tensor('only/worker_1').value(20, { worker: 'worker_0' }))
  expect(failure).toBeInstanceOf(InvalidWorker)
  expect(failure).toMatchObject({ worker: 'worker_0', message: expect.stringContaining('"worker_1"') })
  expect(thrownBy(() => trial.scan({ workers: 'worker_9' }))).toBeInstanceOf(InvalidWorker)
})

it.each([[[5, 5]], [[9, 3]], [[-1, 3]], [[0.5, 3]], [[1]], ['1:3']])('UsageError: the range %j', async range => {
  const failure = await rejectionOf(createTrial(sample(), { rangeSteps: range as unknown as StepRange }))
  expect(failure).toBeInstanceOf(UsageError)
  expect((failure as Error).message).toContain(JSON.stringify(range))
})

it('UsageError: regex and collection together, modes, names and patterns there are not', async () => {
  const trial = await createTrial(sample())
  const loss = trial.tensor('loss')
  const calls = [
    () => trial.tensorNames({ regex: 'a', collection: 'all' }),
    () => trial.tensorNames({ regex: '(' }),
    () => trial.tensorNames({ mode: 'train' as Mode }),
    () => trial.steps({ mode: 'ALL' as Mode }),
    () => loss.prevSteps(3, -1),
  ]
  for (const call of calls) expect(thrownBy(call)).toBeInstanceOf(UsageError)
  for (const name of ['medium', 'abs_maen']) {
    expect(await rejectionOf(loss.reductionValue(10, name as ReductionBase))).toBeInstanceOf(UsageError)
  }
  expect(await rejectionOf(trial.waitForSteps([99], { timeoutMs: -1 }))).toBeInstanceOf(UsageError)
  expect(await rejectionOf(trial.hasPassedStep(0, 'train' as Mode))).toBeInstanceOf(UsageError)
})
