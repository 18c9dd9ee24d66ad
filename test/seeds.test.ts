/**
 * The documents that the project comes from: what they ask a trial, a tensor or a rule, ported line by line, gives what they
 * say. The rules of the notebooks are in examples/; the autoencoder notebook's loop over a running job in live.test.ts.
 */

import { join } from 'node:path'
import {
  createTrial,
  invokeRule,
  modes,
  NoMoreData,
  noRefresh,
  Rule,
  type RuleOptions,
  StepUnavailable,
  TensorUnavailable,
  TensorUnavailableForStep,
  type Trial,
} from 'trialscan'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type StepTensor, TrialWriter } from '../fixtures/event-writer.js'
import { scratchDirectory } from './support/scratch.js'

const scratch = scratchDirectory('seeds')
let trial: Trial

/** The job of the documents: ten steps, of which the fifth and the last are of evaluation. */
beforeAll(async () => {
  const writer = new TrialWriter(join(scratch, 'resnet'), {
    collections: { gradients: { includeRegex: ['^gradient'] }, inputs: { includeRegex: ['_input_'] } },
  })
  const counts = { TRAIN: 0, EVAL: 0 }
  for (let step = 0; step < 10; step++) {
    const mode = step === 4 || step === 9 ? 'EVAL' : 'TRAIN'
    const tensor = (name: string, ...values: number[]): StepTensor => {
      return { name, dtype: 'float32', shape: [values.length], values }
    }
    writer.step({
      step,
      mode,
      modeStep: counts[mode]++,
      tensors: [
        tensor('relu_activation:0', step, -step - 1),
        tensor('conv_input_1', 1, step),
        tensor('conv_input_0', 0, step),
        tensor('labels', step % 3),
        tensor('predictions', step % 2),
        ...(mode === 'TRAIN' ? [tensor('gradient/fc', 10 ** -step, -(10 ** -step))] : []),
        { name: 'reduced', reductions: { abs_mean: step, l2: 2 * step } },
      ],
    })
  }
  writer.end()
  trial = await createTrial(join(scratch, 'resnet'), { name: 'resnet_training_run' })
})

afterAll(async () => {
  await trial.close()
})

describe('tornasole-analysis.md', () => {
  it('modes: the steps of each, and the global step of one', () => {
    expect(trial.availableSteps()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    // It lists nine, and says that there are eight.
    expect(trial.availableSteps(modes.TRAIN)).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
    expect(trial.globalStep(modes.TRAIN, 4)).toBe(5)
    expect([trial.mode(5), trial.modeStep(5), trial.modes()]).toEqual([modes.TRAIN, 4, [modes.EVAL, modes.TRAIN]])
  })

  it('tensors: names, steps, values, reductions', async () => {
    const relu = trial.tensor('relu_activation:0')
    expect(trial.tensors()).toContain('relu_activation:0')
    expect(relu.steps()).toEqual(trial.availableSteps())
    expect(relu.steps({ mode: modes.TRAIN })).toEqual(trial.availableSteps(modes.TRAIN))
    expect([...(await relu.value(5)).data]).toEqual([5, -6])
    expect([...(await relu.value(4, { mode: modes.TRAIN })).data]).toEqual([5, -6])
    expect(await relu.reductionValue(5, 'mean', { abs: true })).toBe(5.5)
    expect(await relu.reductionValue(4, 'mean', { abs: true, mode: modes.TRAIN })).toBe(5.5)
    expect(trial.tensorsMatchingRegex(['relu_activation*'])).toEqual(['relu_activation:0'])
    expect(trial.tensorsInCollection('gradients')).toEqual(['gradient/fc'])
    expect([...trial.collections().keys()]).toEqual(expect.arrayContaining(['gradients', 'inputs']))
  })

  it('a reduction alone gives neither the value nor another one', async () => {
    const reduced = trial.tensor('reduced')
    expect(await reduced.reductionValue(3, 'mean', { abs: true })).toBe(3)
    await expect(reduced.value(3)).rejects.toThrow(TensorUnavailableForStep)
    await expect(reduced.reductionValue(3, 'max')).rejects.toThrow(TensorUnavailableForStep)
  })

  it('range_steps: other steps are not loaded', async () => {
    for (const [rangeSteps, steps] of [
      [
        [6, null],
        [6, 7, 8, 9],
      ],
      [
        [null, 3],
        [0, 1, 2],
      ],
      [
        [2, 4],
        [2, 3],
      ],
      [null, trial.steps()],
    ] as const) {
      const part = await createTrial(join(scratch, 'resnet'), { rangeSteps })
      expect(part.availableSteps()).toEqual(steps)
      await part.close()
    }
  })
})

describe('analysis-programming-model.txt', () => {
  it('the methods of a trial', async () => {
    expect(trial.tensorNames({ step: 4, mode: modes.TRAIN })).toContain('gradient/fc')
    expect(trial.tensorNames({ regex: 'relu' })).toEqual(['relu_activation:0'])
    expect(trial.tensorNames({ collection: 'gradients' })).toEqual(['gradient/fc'])
    expect(trial.tensorNames({ collection: trial.collection('gradients'), step: 4 })).toEqual([])
    expect(trial.tensorNames({ step: 4, mode: modes.TRAIN, regex: ['relu', 'conv'] })).toHaveLength(3)
    expect([trial.hasTensor('labels'), trial.hasTensor('label')]).toEqual([true, false])
    expect([trial.steps(), trial.workers()]).toEqual([[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], ['worker_0']])
    await trial.waitForSteps([0, 7], { mode: modes.TRAIN })
    expect([await trial.hasPassedStep(9), await trial.hasPassedStep(10)]).toEqual(['AVAILABLE', 'UNAVAILABLE'])
    await expect(trial.waitForSteps([10])).rejects.toThrow(NoMoreData)
  })

  it('the methods of a tensor', async () => {
    const [relu, reduced] = [trial.tensor('relu_activation:0'), trial.tensor('reduced')]
    expect([...(await relu.values({ mode: modes.EVAL })).keys()]).toEqual([0, 1])
    expect(relu.workers(3)).toEqual(['worker_0'])
    expect([...(await relu.value(3, { worker: 'worker_0' })).data]).toEqual([3, -4])
    expect(relu.prevSteps(5, 3)).toEqual([3, 4, 5])
    expect(relu.prevSteps(1, 3, modes.TRAIN)).toEqual([0, 1])
    expect([...(await reduced.reductionValues(4))]).toEqual([
      ['abs_mean', 4],
      ['l2', 8],
    ])
    expect((await relu.reductionValues(4)).size).toBe(0)
  })

  it('its rule, and its exceptions', async () => {
    class VanishingGradientRule extends Rule {
      readonly threshold: number

      constructor(
        baseTrial: Trial,
        { threshold = 0.0000001, ...options }: RuleOptions & { threshold?: number | string },
      ) {
        super(baseTrial, options)
        this.threshold = Number(threshold)
      }

      override async invokeAtStep(step: number) {
        for (const name of this.baseTrial.tensorNames({ collection: 'gradients' })) {
          const absMean = await this.baseTrial.tensor(name).reductionValue(step, 'mean', { abs: true })
          if (Number(absMean) < this.threshold) return true
        }
        return false
      }
    }
    const fired: number[] = []
    const actions = ({ step }: { step: number }) => void fired.push(step)
    const rule = new VanishingGradientRule(trial, { threshold: '0.0001', actions })
    // From here on there is nothing more: the job has ended.
    await expect(invokeRule(rule, { startStep: 0, endStep: null })).rejects.toThrow(NoMoreData)
    expect(fired).toEqual([5, 6, 7, 8])
    expect(() => trial.tensor('tname')).toThrow(TensorUnavailable)
    await expect(trial.tensor('gradient/fc').value(4)).rejects.toThrow(TensorUnavailableForStep)
    await expect(trial.tensor('gradient/fc').value(99)).rejects.toThrow(StepUnavailable)
    expect(await noRefresh([trial], () => trial.steps().length)).toBe(10)
  })
})

it('autoencoder-notebook.rst: the tensors of each step of evaluation', async () => {
  const seen: number[][] = []
  for (const step of trial.steps({ mode: modes.EVAL })) {
    const { data } = await trial.tensor('relu_activation:0').value(step, { mode: modes.EVAL })
    const label = await trial.tensor('labels').value(step, { mode: modes.EVAL })
    seen.push([...Array.from(data, Number), Number(label.data[0])])
  }
  expect([seen, trial.loadedAllSteps]).toEqual([
    [
      [4, -5, 1],
      [9, -10, 0],
    ],
    true,
  ])
})

it('tensor-analysis-notebook.rst: its first rule, from the first step to the last', async () => {
  class CustomRule extends Rule {
    override async invokeAtStep(step: number) {
      return Number(await this.baseTrial.tensor('gradient/fc').reductionValue(step, 'max')) < 0.001
    }
  }
  const rule = new CustomRule(trial)
  const fire = vi.spyOn(rule, 'fire')
  await invokeRule(rule, { startStep: 0, endStep: trial.steps().at(-1)! })
  expect(fire.mock.calls.map(([step]) => step)).toEqual([5, 6, 7, 8])
})

it('sagemaker-debugger-overview.rst: a trial, and what it has', async () => {
  const opened = await createTrial(`  ${join(scratch, 'resnet')}`)
  expect([opened.name, opened.tensorNames().length]).toEqual(['resnet', 7])
  await opened.close()
})

describe('smdebug’s inputs, labels and predictions', () => {
  /** `trial.inputs(step)`: values, in the order of the numbers at the end of the names. */
  const valuesOf = (names: string[], step: number) =>
    Promise.all(names.map(async name => [...(await trial.tensor(name).value(step)).data]))

  it('give values; ours names, and so the line of docs/differences.md gives the same', async () => {
    expect(await valuesOf(trial.inputs({ step: 3 }), 3)).toEqual([
      [0, 3],
      [1, 3],
    ])
    expect(await valuesOf(trial.labels({ step: 4 }), 4)).toEqual([[1]])
    expect(await valuesOf(trial.predictions({ step: 3 }), 3)).toEqual([[1]])
    const step = 4
    const mode = modes.TRAIN
    const labels = await Promise.all(trial.labels({ step, mode }).map(name => trial.tensor(name).value(step, { mode })))
    expect(labels.map(({ data }) => [...data])).toEqual([[2]])
  })
})
