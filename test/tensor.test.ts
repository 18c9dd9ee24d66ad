/** What a tensor answers, and what the answers cost. */

import { join } from 'node:path'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { createTrial, type ReductionBase, type Tensor, TensorUnavailableForStep, type Trial } from '#dist/index.js'
import { InlineRunner } from '#dist/scan/runner/inline.js'
import { type StepTensor, TrialWriter } from '../fixtures/event-writer.js'
import { writeSample } from './support/sample.js'
import { rejectionOf } from './support/scanning.js'
import { scratchDirectory } from './support/scratch.js'

const scratch = scratchDirectory('tensor')
let trial: Trial
let weight: Tensor

beforeAll(async () => {
  writeSample(scratch)
  trial = await createTrial(scratch)
  weight = trial.tensor('fc.weight')
})

afterEach(() => {
  vi.restoreAllMocks()
})

describe('what is asked for together is read together', () => {
  it('values() are one job', async () => {
    const run = vi.spyOn(InlineRunner.prototype, 'run')
    const values = await weight.values()
    expect([...values.keys()]).toEqual([0, 10, 11, 20])
    expect([...values.values()].map(({ data }) => data[0])).toEqual([0, 10, 11, 20])
    expect(run).toHaveBeenCalledTimes(1)
  })

  it('shapes() are one job, and none where they were saved', async () => {
    const run = vi.spyOn(InlineRunner.prototype, 'run')
    expect([...(await weight.shapes()).values()]).toEqual([
      [2, 3],
      [2, 3],
      [2, 3],
      [2, 3],
    ])
    expect(run).toHaveBeenCalledTimes(1)
    expect((await trial.tensor('shaped').shapes({ mode: 'TRAIN' })).get(2)).toEqual([20, 2])
    expect(run).toHaveBeenCalledTimes(1)
  })

  it('reductions asked for in one turn are one job, of several tensors too', async () => {
    const run = vi.spyOn(InlineRunner.prototype, 'run')
    const names: ReductionBase[] = ['min', 'max', 'sum']
    const tensors = [weight, trial.tensor('fc.bias')]
    const asked = [0, 10, 20].flatMap(step => tensors.flatMap(one => names.map(name => one.reductionValue(step, name))))
    expect(await Promise.all(asked)).toEqual(
      [0, 10, 20].flatMap(step => [-8, Math.max(step, 2), step - 6.5, -0.25, step, step - 0.25]),
    )
    expect(run).toHaveBeenCalledTimes(1)
  })
})

it('counts in global steps for GLOBAL, whatever mode they were saved in', async () => {
  expect((await weight.value(11)).data[0]).toBe(11)
  expect((await weight.value(0, { mode: 'EVAL' })).data[0]).toBe(11)
  expect([...(await weight.values({ mode: 'EVAL' })).keys()]).toEqual([0])
  expect(weight.steps({ mode: 'TRAIN', showIncompleteSteps: true })).toEqual([0, 1, 2, 3])
})

it('takes the first worker in sorted order, unless told', async () => {
  expect(weight.workers(10)).toEqual(['worker_0', 'worker_1'])
  expect((await weight.value(10)).data[3]).toBe(0)
  expect((await weight.value(10, { worker: 'worker_1' })).data[3]).toBe(1)
  expect((await trial.tensor('only/worker_1').value(10)).data).toEqual(Int32Array.of(10, -10))
})

it('takes the first worker that has what is asked for', async () => {
  const directory = join(scratch, 'uneven')
  const writer = new TrialWriter(directory, { numWorkers: 3 })
  writer.step({ step: 0, worker: 0, tensors: [{ name: 'x', savedShape: [1] }] })
  writer.step({ step: 0, worker: 1, tensors: [{ name: 'x', reductions: { mean: 7 } }] })
  writer.step({ step: 0, worker: 2, tensors: [{ name: 'x', dtype: 'float32', shape: [1], values: [42] }] })
  writer.end()
  const x = (await createTrial(directory)).tensor('x')
  expect((await x.value(0)).data).toEqual(Float32Array.of(42))
  expect([...(await x.values())].map(([step, { data }]) => [step, data[0]])).toEqual([[0, 42]])
  expect([await x.reductionValue(0, 'mean'), await x.reductionValue(0, 'max')]).toEqual([7, 42])
  expect([...(await x.reductionValues(0))]).toEqual([['mean', 7]])
  expect([await x.shape(0), [...(await x.shapes())]]).toEqual([[1], [[0, [1]]]])
  for (const worker of ['worker_0', 'worker_1']) {
    expect(await rejectionOf(x.value(0, { worker }))).toBeInstanceOf(TensorUnavailableForStep)
  }
})

it('gives bool as 0 and 1, whatever bytes were saved', async () => {
  const directory = join(scratch, 'bools')
  const writer = new TrialWriter(directory, {})
  writer.step({ step: 0, tensors: [{ name: 'x', dtype: 'bool', shape: [5], data: Uint8Array.of(0, 1, 2, 255, 0) }] })
  writer.end()
  const { data, bytes } = await (await createTrial(directory)).tensor('x').value(0)
  expect([data, bytes]).toEqual([Uint8Array.of(0, 1, 1, 1, 0), Uint8Array.of(0, 1, 2, 255, 0)])
})

it('bounds what a tensor without elements can ask for along an axis', async () => {
  const directory = scratchDirectory('tensor-along-empty')
  const writer = new TrialWriter(directory, { checksum: 'true' })
  const noneOf = (name: string, columns: number): StepTensor => ({
    name,
    dtype: 'float32',
    shape: [0, columns],
    values: [],
  })
  writer.step({ step: 0, tensors: [noneOf('many', 2 ** 25), noneOf('few', 8)] })
  writer.end()
  const opened = await createTrial(directory)
  const [many, few] = [opened.tensor('many'), opened.tensor('few')]
  expect(await rejectionOf(many.along(0, 'mean', 0))).toMatchObject({
    name: 'QueryError',
    code: 'ValueTooLarge',
    message: `tensor.along: expected results of at most ${2 ** 28} bytes for a tensor without elements, got up to ${2 ** 29}`,
  })
  for (const axis of [0, -2]) {
    expect(await rejectionOf(few.along(0, 'sum', axis, { unfoldLimit: 127 }))).toMatchObject({ code: 'ValueTooLarge' })
    expect((await few.along(0, 'sum', axis, { unfoldLimit: 128 })).data).toEqual(new Float64Array(8))
  }
  for (const axis of [1, -1]) expect((await many.along(0, 'sum', axis, { unfoldLimit: 0 })).data).toHaveLength(0)
  for (const axis of [2, -3, 0.5])
    expect(await rejectionOf(few.along(0, 'sum', axis))).toMatchObject({ name: 'UsageError' })
  await opened.close()
})

it('gives the saved reductions and no others', async () => {
  expect([...(await trial.tensor('loss').reductionValues(10))]).toEqual([
    ['mean', 1],
    ['abs_max', 7],
  ])
  expect(await trial.tensor('loss').reductionValue(10, 'max', { abs: true })).toBe(7)
  expect((await weight.reductionValues(10)).size).toBe(0)
})

it('goes back in steps, the one asked for included', () => {
  expect(weight.prevSteps(20, 2)).toEqual([11, 20])
  expect(weight.prevSteps(19, 2)).toEqual([10, 11])
  expect(weight.prevSteps(2, 9, 'TRAIN')).toEqual([0, 1, 2])
  expect([weight.prevSteps(20, 0), weight.prevSteps(-1, 3)]).toEqual([[], []])
})

it('knows the name in the framework where a shape was saved', () => {
  expect([trial.tensor('shaped').originalName, weight.originalName]).toEqual(['layer/shaped', undefined])
})

it('has both, where a shape and a value were saved', async () => {
  const directory = join(scratch, 'both')
  const both = {
    name: 't',
    dtype: 'float32',
    shape: [3],
    values: [1, 2, 3],
    savedShape: [3],
    originalName: 'o',
  } as const
  new TrialWriter(directory).step({ step: 0, tensors: [both] })
  const tensor = (await createTrial(directory)).tensor('t')
  expect([await tensor.shape(0), (await tensor.value(0)).data, tensor.originalName]).toEqual([
    [3],
    Float32Array.of(1, 2, 3),
    'o',
  ])
})

it('answers under the names of Tornasole', () => {
  expect(trial.tensors()).toEqual(trial.tensorNames())
  expect(trial.availableSteps()).toEqual(trial.steps())
  expect(trial.availableSteps('TRAIN')).toEqual([0, 1, 2])
  expect(trial.tensorsMatchingRegex(['^fc'])).toEqual(['fc.bias', 'fc.weight'])
  expect(trial.tensorsInCollection('weights')).toEqual(['fc.weight', 'gradient/fc.weight'])
})

it('finds inputs, outputs, labels and predictions by collection, else by name', async () => {
  const directory = join(scratch, 'roles')
  const names = ['conv_input_0', 'conv_output_0', 'y_true', 'Labels', 'predictions']
  new TrialWriter(directory, {
    collections: { inputs: { includeRegex: ['y_true'] }, outputs: {} },
  }).step({ step: 0, tensors: names.map(name => ({ name, dtype: 'float32', shape: [1], values: [1] })) })
  const roles = await createTrial(directory)
  expect([roles.inputs(), roles.outputs({ step: 0 }), roles.labels(), roles.predictions({ mode: 'TRAIN' })]).toEqual([
    ['y_true'],
    ['conv_output_0'],
    ['Labels'],
    [],
  ])
})
