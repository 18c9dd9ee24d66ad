/** The parameters that `check` chooses: sound trainings of other kinds are not accused, and sick ones are seen. */

import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  ClassImbalance,
  Confusion,
  createTrial,
  evaluate,
  type Finding,
  LossNotDecreasing,
  type Mode,
  type Rule,
  RuleRegistry,
  SimilarAcrossRuns,
  type Trial,
  UnchangedTensor,
} from '#dist/index.js'
import { type StepTensor, TrialWriter } from '../../fixtures/event-writer.js'
import { normals, uniform } from '../../fixtures/random.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('choice')

const COLLECTIONS = {
  weights: { includeRegex: ['^(?!gradient).*weight'] },
  gradients: { includeRegex: ['^gradient'] },
  losses: { includeRegex: ['[Ll]oss_(?!input).*output'] },
}

interface Step {
  readonly mode: Mode
  readonly tensors: readonly StepTensor[]
}

/** @param interval of the steps that are saved */
async function trialOf(steps: readonly Step[], interval = 1): Promise<Trial> {
  const directory = mkdtempSync(join(scratch, 'trial-'))
  const writer = new TrialWriter(directory, { collections: COLLECTIONS })
  const next: Record<string, number> = {}
  steps.forEach(({ mode, tensors }, step) => {
    next[mode] = (next[mode] ?? -1) + 1
    writer.step({ step: step * interval, mode, modeStep: next[mode]! * interval, tensors })
  })
  writer.end()
  return createTrial(directory)
}

const floats = (name: string, values: Iterable<number>, shape?: readonly number[]): StepTensor => {
  const all = [...values]
  return { name, dtype: 'float32', shape: shape ?? [all.length], values: all }
}

const evaluated = async (...rules: readonly Rule[]): Promise<readonly Finding[]> =>
  (await evaluate([...rules], { threads: 0, follow: false })).findings

/** What check says: rule, and tensor. */
async function checked(trial: Trial): Promise<string[]> {
  const findings = await evaluated(...new RuleRegistry().all(trial).rules)
  return [...new Set(findings.map(({ rule, tensor }) => `${rule} ${tensor}`))].sort()
}

interface Training {
  readonly batch?: number
  readonly width?: number
  /** The share of samples in which a ReLU is active. */
  readonly activity?: number
  readonly loss?: (i: number) => number
  readonly validation?: (i: number) => number
  /** How far weights move at a step, of their size. */
  readonly rate?: (i: number) => number
  readonly gradient?: (i: number) => number
  /** What weights are multiplied by before they are saved. */
  readonly weight?: (i: number) => number
  readonly names?: { readonly relu: string; readonly weight: (layer: number) => string }
  readonly more?: (i: number) => readonly StepTensor[]
}

/** Twelve saved steps of a training of two layers, each after two of validation. */
function training({
  batch = 32,
  width = 24,
  activity = 0.3,
  loss = i => 2.3 * 0.8 ** i,
  validation = i => 2.4 * 0.85 ** i,
  rate = () => 0.01,
  gradient = () => 1e-3,
  weight: scale = () => 1,
  names = { relu: 'relu0_output_0', weight: layer => `Net_fc${layer}.weight` },
  more = () => [],
}: Training = {}): Step[] {
  const random = uniform(7)
  const weights = [0, 1].map(layer => normals(width * 8, layer + 1).map(value => value * 0.1))
  return Array.from({ length: 12 }).flatMap((_, i) => {
    weights.forEach((weight, layer) => {
      const by = normals(weight.length, 100 * i + layer)
      for (let k = 0; k < weight.length; k++) weight[k]! += rate(i) * 0.1 * by[k]!
    })
    const outputs = Array.from({ length: batch * width }, () => (random() < activity ? random() : 0))
    const state = [
      ...weights.map((weight, layer) =>
        floats(
          names.weight(layer),
          weight.map(value => value * scale(i)),
          [8, width],
        ),
      ),
      floats(names.relu, outputs, [batch, width]),
    ]
    const gradients = weights.map((weight, layer) =>
      floats(
        `gradient/${names.weight(layer)}`,
        normals(weight.length, i).map(value => value * gradient(i)),
        [8, width],
      ),
    )
    const train = [...state, ...gradients, floats('CrossEntropyLoss_output_0', [loss(i)], []), ...more(i)]
    const check = [...state, floats('CrossEntropyLoss_output_0', [validation(i)], [])]
    return [
      { mode: 'TRAIN' as Mode, tensors: train },
      { mode: 'EVAL' as Mode, tensors: check },
      { mode: 'EVAL' as Mode, tensors: check },
      { mode: 'EVAL' as Mode, tensors: check },
    ]
  })
}

const frozen = (): readonly StepTensor[] => [floats('Net_embedding.weight', [0.1, 0.2, 0.3])]

describe('a sound training is not accused', () => {
  const noise = uniform(3)
  it.each<[string, Training]>([
    ['as it is', {}],
    ['of small batches', { batch: 4, activity: 0.15 }],
    ['of one sample a batch', { batch: 1 }],
    ['of wide layers', { width: 300 }],
    ['that learns slowly', { rate: () => 1e-4, loss: i => 2.3 - 0.01 * i, validation: i => 2.4 - 0.01 * i }],
    ['that learns fast', { rate: () => 3 }],
    ['whose loss is noisy', { loss: i => 2.3 * 0.7 ** i * (0.7 + 0.6 * noise()), validation: i => 2.4 * 0.85 ** i }],
    [
      'that has converged',
      {
        loss: i => (i < 4 ? 0.1 ** i : 1e-9),
        validation: i => (i < 4 ? 0.1 ** i : 1e-3),
        rate: i => (i < 4 ? 0.1 : 0),
        gradient: i => (i < 4 ? 1e-3 : 1e-10),
      },
    ],
    ['with a gap between validation and training', { loss: i => 0.5 ** i, validation: i => 0.5 + 0.5 ** i }],
    ['with frozen layers', { more: frozen }],
    ['with weights that start at zero', { more: i => [floats('Net_scale.weight', [0.01 * i, 0.02 * i])] }],
    ['with weights of a norm', { more: i => [floats('Net_bn.weight', [1 + i / 100, 1 - i / 100])] }],
    [
      'of raw tables',
      {
        more: () => [
          floats(
            'Net_input_0',
            Array.from({ length: 640 }, (_, k) => k),
            [32, 20],
          ),
        ],
      },
    ],
  ])('%s', async (_, what) => {
    expect(await checked(await trialOf(training(what), 10))).toEqual([])
  })

  it('in its first batches, whose losses tell of nothing but the batches', async () => {
    const flat = { loss: (i: number) => 2.3 + 0.01 * (i % 3) }
    expect(await checked(await trialOf(training(flat), 1))).toEqual([])
  })
})

describe('a sick one is', () => {
  const still = { rate: () => 0 }
  it.each<[string, Training, readonly string[]]>([
    ['dead in PyTorch', { activity: 0 }, ['DeadRelu relu0_output_0']],
    ['dead in small batches', { activity: 0, batch: 4 }, ['DeadRelu relu0_output_0']],
    ...['CNN_relu1_output_0', 'conv0_relu_output_0', 'relu/Relu:0', 'activation_1/Relu:0', 'relu/outputs'].map(
      (relu): [string, Training, readonly string[]] => [
        `dead as ${relu}`,
        { activity: 0, names: { relu, weight: layer => `fc${layer}_weight` } },
        [`DeadRelu ${relu}`],
      ],
    ),
    ['that stands still', still, ['UnchangedTensor Net_fc0.weight', 'UnchangedTensor Net_fc1.weight']],
    [
      'whose loss is NaN in the end',
      { loss: i => (i < 9 ? 2 - i / 9 : Number.NaN) },
      ['ExplodingTensor CrossEntropyLoss_output_0', 'LossNotDecreasing CrossEntropyLoss_output_0'],
    ],
    [
      'whose loss never leaves its level',
      { loss: i => 2.3 + 0.01 * (i % 3) },
      ['LossNotDecreasing CrossEntropyLoss_output_0'],
    ],
    ['that overfits', { loss: i => 0.5 ** i, validation: i => 1 + Math.abs(i - 7) / 10 }, ['Overfit null']],
    [
      'of bytes as images',
      { more: () => [floats('Net_input_0', Array(64 * 64).fill(120), [64, 1, 8, 8])] },
      ['CheckInputImages null'],
    ],
    [
      'that begins with weights of zero',
      { more: i => [floats('Net_fc2.weight', [i * 1e-9, 0])], weight: i => (i === 0 ? 0 : 1) },
      ['AllZero Net_fc0.weight', 'AllZero Net_fc1.weight', 'AllZero Net_fc2.weight'],
    ],
    [
      'saturated long before float32 rounds to the limit',
      {
        more: () => [
          floats(
            'tanh0_input_0',
            Array.from({ length: 128 }, (_, k) => (k % 2 ? 4 : -4)),
            [32, 4],
          ),
        ],
      },
      ['SaturatedActivation tanh0_input_0'],
    ],
    [
      'with a layer of zeros',
      { more: () => [floats('gradient/Net_fc2.weight', [0, 0])] },
      ['AllZero gradient/Net_fc2.weight'],
    ],
    [
      'saturated, by outputs alone',
      {
        more: () => [
          floats(
            'acts.0_output_0',
            Array.from({ length: 64 }, (_, k) => (k % 2 ? 1 : -1)),
            [32, 2],
          ),
        ],
      },
      ['SaturatedActivation acts.0_output_0'],
    ],
    [
      'saturated in Keras',
      {
        more: () => [
          floats(
            'dense/Sigmoid:0',
            Array.from({ length: 64 }, (_, k) => k % 2),
            [32, 2],
          ),
        ],
      },
      ['SaturatedActivation dense/Sigmoid:0'],
    ],
    [
      'whose gradients vanish',
      { more: i => [floats('gradient/Net_fc9.weight', [1e-9, -1e-9 * (i + 1)])] },
      ['VanishingGradient gradient/Net_fc9.weight'],
    ],
  ])('%s', async (_, what, expected) => {
    expect(await checked(await trialOf(training(what), 10))).toEqual(expected)
  })

  it('tells since which step the loss is NaN, in each mode', async () => {
    const steps = training({ loss: i => (i < 2 ? 1 : Number.NaN) }).slice(0, 16)
    const rule = new LossNotDecreasing(await trialOf(steps), LossNotDecreasing.suggested)
    expect((await evaluated(rule)).map(({ step, message }) => `${step} ${message}`)).toEqual([
      '8 CrossEntropyLoss_output_0 is NaN since step 8',
      '12 CrossEntropyLoss_output_0 is NaN since step 8',
    ])
  })
})

describe('mode', () => {
  const step = (mode: Mode, value: number): Step => ({ mode, tensors: [floats('a.weight', [value])] })
  // Moves at every step of TRAIN; stands still while EVAL goes on.
  const steps = [
    step('TRAIN', 1),
    step('EVAL', 1),
    step('EVAL', 1),
    step('TRAIN', 2),
    step('TRAIN', 2),
    step('EVAL', 2),
  ]
  it.each<[string | undefined, readonly number[]]>([
    [undefined, [1, 2, 4, 5]],
    ['GLOBAL', [1, 2, 4, 5]],
    ['TRAIN', [4]],
    ['training', [4]],
    ['eval', [2]],
    ['each', [2, 4]],
    ['PREDICT', []],
  ])('%s', async (mode, expected) => {
    const options = { collection_names: 'weights', num_steps: 2, ...(mode && { mode: mode as 'each' }) }
    const findings = await evaluated(new UnchangedTensor(await trialOf(steps), options))
    expect(findings.map(({ step }) => step)).toEqual(expected)
  })

  it('training is all steps where none has a mode', async () => {
    const trial = await trialOf([step('GLOBAL', 1), step('GLOBAL', 1)])
    const options = { collection_names: 'weights', num_steps: 2, mode: 'training' } as const
    expect(await evaluated(new UnchangedTensor(trial, options))).toHaveLength(1)
  })
})

describe('predictions', () => {
  const both = (labels: readonly number[], predictions: StepTensor) =>
    trialOf([{ mode: 'GLOBAL', tensors: [floats('labels', labels), predictions] }])
  const options = { samples: 1 }

  it('of two classes are the class they are nearest to', async () => {
    const right = await both([0, 1, 1, 0], floats('predictions', [0.4, 0.6, 0.99, 0.01]))
    expect(await evaluated(new ClassImbalance(right, options), new Confusion(right))).toEqual([])
    const wrong = await both([0, 1, 1, 0], floats('predictions', [0.6, 0.4, 0.01, 0.99]))
    expect(
      new Set((await evaluated(new ClassImbalance(wrong, options), new Confusion(wrong))).map(({ rule }) => rule)),
    ).toEqual(new Set(['ClassImbalance', 'Confusion']))
  })

  it('of many classes are the largest, also without argmax', async () => {
    const right = await both([2, 0], floats('predictions', [0.1, 0.2, 0.7, 0.5, 0.3, 0.2], [2, 3]))
    expect(await evaluated(new ClassImbalance(right, options), new Confusion(right))).toEqual([])
  })

  it('of a regression are no classes', async () => {
    const trial = await both([0.5, 1.5, 1.7], floats('predictions', [9, 9, 9]))
    expect(await evaluated(new ClassImbalance(trial, options))).toEqual([])
  })

  it('are found by Confusion under the names of PyTorch', async () => {
    const tensors = [
      floats('CrossEntropyLoss_input_1', [0, 1]),
      floats('CrossEntropyLoss_input_0', [0, 9, 9, 0], [2, 2]),
    ]
    expect(await evaluated(new Confusion(await trialOf([{ mode: 'TRAIN', tensors }])))).not.toEqual([])
  })
})

describe("Tornasole's parameters", () => {
  it('are taken as they stand', async () => {
    const losses = [1, 1].map((value): Step => ({ mode: 'TRAIN', tensors: [floats('Loss_output_0', [value])] }))
    const trial = await trialOf(losses)
    expect(await evaluated(new LossNotDecreasing(trial, { num_steps: 1 }))).toHaveLength(1)
    // "The rule just checks if loss is going down": one that stands still does not.
    expect(await evaluated(new LossNotDecreasing(trial, { num_steps: 1, min_difference: 0 }))).toHaveLength(1)
    expect(await evaluated(new LossNotDecreasing(trial, { num_steps: 1, diff_percent: '0' }))).toEqual([])
    const other = await trialOf([{ mode: 'TRAIN', tensors: [floats('Loss_output_0', [2]), floats('b', [1])] }])
    expect(await evaluated(new SimilarAcrossRuns(trial, { otherTrials: [other], include: 'b' }))).toEqual([])
    expect(await evaluated(new SimilarAcrossRuns(trial, { otherTrials: [other], include: 'Loss' }))).toHaveLength(1)
  })

  it('are not given twice', async () => {
    const trial = await trialOf(training())
    expect(() => new LossNotDecreasing(trial, { num_steps: 1, numSteps: 1 })).toThrow(
      'rule LossNotDecreasing: expected num_steps once, got it as num_steps and as numSteps',
    )
    expect(() => new LossNotDecreasing(trial, { diffPercent: 1, min_difference: 1 })).toThrow(
      'expected diff_percent once, got it as diffPercent and as min_difference',
    )
  })
})
