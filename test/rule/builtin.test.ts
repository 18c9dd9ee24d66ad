/** The decisions of rules.md at the edges that the golden trials do not reach. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import {
  AllZero,
  BUILTIN_RULES,
  CheckInputImages,
  ClassImbalance,
  Confusion,
  createTrial,
  DeadRelu,
  ExplodingTensor,
  evaluate,
  FeatureImportanceOverweight,
  LossNotDecreasing,
  type Mode,
  NLPSequenceRatio,
  Overfit,
  Overtraining,
  PoorWeightInitialization,
  type Rule,
  RuleRegistry,
  SaturatedActivation,
  SimilarAcrossRuns,
  TensorVariance,
  TreeDepth,
  type Trial,
  UnchangedTensor,
  VanishingGradient,
  WeightUpdateRatio,
} from '#dist/index.js'
import { type StepTensor, TrialWriter } from '../../fixtures/event-writer.js'

const scratch = mkdtempSync(join(tmpdir(), 'trialscan-builtin-'))

afterAll(() => rmSync(scratch, { recursive: true, force: true }))

const COLLECTIONS = {
  weights: { includeRegex: ['weight$'] },
  gradients: { includeRegex: ['^gradient'] },
  losses: { includeRegex: ['loss$'] },
  metrics: { includeRegex: ['^(train|validation)-'] },
}

interface Step {
  readonly mode?: Mode
  readonly modeStep?: number
  readonly tensors: readonly StepTensor[]
}

async function trialOf(steps: readonly (Step | readonly StepTensor[])[]): Promise<Trial> {
  const directory = mkdtempSync(join(scratch, 'trial-'))
  const writer = new TrialWriter(directory, { collections: COLLECTIONS })
  steps.forEach((given, step) => {
    const { mode = 'TRAIN', modeStep = step, tensors } = 'tensors' in given ? given : { tensors: given }
    writer.step({ step, mode, modeStep, tensors })
  })
  writer.end()
  return createTrial(directory)
}

async function firesAt(rule: Rule): Promise<number[]> {
  const { findings, problems } = await evaluate(rule, { threads: 0 })
  expect(problems).toEqual([])
  return [...new Set(findings.map(({ step }) => step as number))]
}

const floats = (name: string, values: readonly number[], shape: readonly number[] = [values.length]): StepTensor => ({
  name,
  dtype: 'float32',
  shape,
  values,
})
const integers = (name: string, values: readonly number[], shape: readonly number[] = [values.length]): StepTensor => ({
  name,
  dtype: 'int64',
  shape,
  values,
})
const losses = (values: readonly number[], mode: Mode = 'TRAIN'): Step[] =>
  values.map((value, i) => ({ mode, modeStep: i, tensors: [floats('loss', [value], [1])] }))

describe('every rule', () => {
  it('is in the registry under its name, documented and read as its class', () => {
    const registry = new RuleRegistry()
    expect(BUILTIN_RULES).toHaveLength(20)
    for (const RuleClass of BUILTIN_RULES) {
      expect(registry.get(RuleClass.name)).toBe(RuleClass)
      expect(RuleClass.meaning).toMatch(/^[A-Z].*\.$/)
      expect(RuleClass.advice).toMatch(/^[A-Z].*[.?]$/)
    }
  })

  it('never fires for a tensor without elements', async () => {
    const empty = (name: string): StepTensor => ({ name, dtype: 'float32', shape: [0, 3], values: [] })
    const names = ['gradient/a', 'a.weight', 'relu_output', 'tanh_input', 'loss', 'labels']
    const trial = await trialOf([0, 1, 2, 3].map(() => names.map(empty)))
    const regex = { tensor_regex: '.*' }
    const rules = [
      new VanishingGradient(trial),
      new ExplodingTensor(trial),
      new AllZero(trial, regex),
      new TensorVariance(trial, { ...regex, min_threshold: '1', max_threshold: '2' }),
      new DeadRelu(trial),
      new SaturatedActivation(trial),
      new WeightUpdateRatio(trial),
      new NLPSequenceRatio(trial, { ...regex, token_thresholds_percent: '0' }),
      new PoorWeightInitialization(trial, { activation_inputs_regex: '.*' }),
      new CheckInputImages(trial, { regex: '.*', threshold_samples: '0' }),
      new LossNotDecreasing(trial, { num_steps: '1' }),
      new ClassImbalance(trial, { samples: '0' }),
    ]
    const { findings } = await evaluate(rules, { threads: 0 })
    expect(findings).toEqual([])
  })
})

describe('thresholds', () => {
  it.each([
    [new Array(4).fill(1e-7), []],
    [new Array(4).fill(9e-8), [0]],
    [[Number.NaN, 0], []],
    [[-1, 1], []],
  ])('VanishingGradient: the mean of |%j| strictly below', async (values, expected) => {
    const trial = await trialOf([[{ name: 'gradient/w', dtype: 'float64', shape: [values.length], values }]])
    expect(await firesAt(new VanishingGradient(trial))).toEqual(expected)
  })

  it.each([
    ['100', [0]],
    ['50', [0, 1]],
    ['50.01', [0]],
  ])('AllZero: at least %s percent', async (threshold, expected) => {
    const trial = await trialOf([[floats('a', [0, -0])], [floats('a', [0, 1])], [floats('a', [Number.NaN, 1])]])
    expect(await firesAt(new AllZero(trial, { tensor_regex: 'a', threshold }))).toEqual(expected)
  })

  it('TensorVariance: strictly outside, or NaN; a bound that is not set is not checked', async () => {
    const trial = await trialOf([[floats('a', [0, 2])], [floats('a', [0, 4])], [floats('a', [Number.NaN, 1])]])
    const at = (bounds: Record<string, string>) => firesAt(new TensorVariance(trial, { tensor_regex: 'a', ...bounds }))
    expect(await at({ max_threshold: '1' })).toEqual([1, 2])
    expect(await at({ min_threshold: '4' })).toEqual([0, 2])
    expect(await at({ min_threshold: '1', max_threshold: '4' })).toEqual([2])
    expect(() => new TensorVariance(trial, { tensor_regex: 'a' })).toThrow('max_threshold or min_threshold')
  })

  it('ExplodingTensor: NaN alone where only_nan', async () => {
    const trial = await trialOf([
      [floats('a', [Number.POSITIVE_INFINITY])],
      [floats('a', [Number.NaN])],
      [integers('a', [2 ** 53])],
      [{ name: 'a', reductions: { max: Number.NEGATIVE_INFINITY } }],
      [{ name: 'a', reductions: { mean: Number.NaN } }],
    ])
    expect(await firesAt(new ExplodingTensor(trial))).toEqual([0, 1, 3, 4])
    expect(await firesAt(new ExplodingTensor(trial, { only_nan: 'True' }))).toEqual([1, 4])
  })
})

describe('nodes', () => {
  it('are positions over all axes but the first; of one axis, each element is one', async () => {
    // Two of three nodes dead in every sample, and one alive in one of two.
    const trial = await trialOf([
      [floats('relu_output', [0, 0, 1, 0, -1, 0], [2, 3])],
      [floats('relu_output', [0, 0, 1], [3])],
      [floats('relu_output', [0, 1, 1], [3])],
      [floats('relu_output', [0, Number.POSITIVE_INFINITY, 1], [3])],
      [floats('relu_output', [0, Number.NaN, 1], [3])],
    ])
    expect(await firesAt(new DeadRelu(trial))).toEqual([0, 1, 4])
    expect(await firesAt(new DeadRelu(trial, { threshold_inactivity: '50' }))).toEqual([0, 1, 4])
    expect(await firesAt(new DeadRelu(trial, { threshold_inactivity: '50.1', threshold_layer: '66' }))).toEqual([
      0, 1, 4,
    ])
    expect(await firesAt(new DeadRelu(trial, { threshold_layer: '67' }))).toEqual([])
  })

  it('are saturated at the bounds of tanh, or of sigmoid by the name', async () => {
    const inputs = (name: string, value: number) => floats(name, [value, value, 0], [1, 3])
    const trial = await trialOf([
      [inputs('tanh_input', 9.5)],
      [inputs('tanh_input', 9.4)],
      [inputs('Sigmoid_input', 9.5)],
      [inputs('Sigmoid_input', -23)],
      [inputs('gradient/tanh_input', 99)],
    ])
    const rule = new SaturatedActivation(trial, { tensor_regex: 'input' })
    expect(await firesAt(rule)).toEqual([0, 3])
  })
})

describe('UnchangedTensor and WeightUpdateRatio', () => {
  it('pass over a tensor whose shape changes', async () => {
    const trial = await trialOf([[floats('a.weight', [1, 1])], [floats('a.weight', [1])], [floats('a.weight', [1])]])
    expect(await firesAt(new UnchangedTensor(trial, { tensor_regex: 'a', num_steps: '2' }))).toEqual([2])
    expect(await firesAt(new WeightUpdateRatio(trial))).toEqual([2])
  })

  it('take NaN for equal only if told', async () => {
    const trial = await trialOf([[floats('a', [Number.NaN])], [floats('a', [Number.NaN])]])
    const at = (equal_nan: string) =>
      firesAt(new UnchangedTensor(trial, { tensor_regex: 'a', num_steps: '2', equal_nan }))
    expect([await at('false'), await at('true')]).toEqual([[], [1]])
    expect(() => new UnchangedTensor(trial, { tensor_regex: 'a', num_steps: '1' })).toThrow('at least 2')
  })

  it('judge weights at TRAIN steps only, where there are any, against the oldest within num_steps of them', async () => {
    const weight = (value: number) => [floats('a.weight', [value])]
    const trial = await trialOf([
      { mode: 'TRAIN', modeStep: 0, tensors: weight(1) },
      { mode: 'EVAL', modeStep: 0, tensors: weight(100) },
      { mode: 'TRAIN', modeStep: 1, tensors: weight(2) },
      { mode: 'TRAIN', modeStep: 2, tensors: weight(4) },
    ])
    const found = async (parameters = {}) => {
      const rule = new WeightUpdateRatio(trial, { large_threshold: '0.5', ...parameters })
      return (await evaluate(rule)).findings.map(({ step, value }) => [step, Math.round(value!)])
    }
    expect(await found()).toEqual([
      [2, 1],
      [3, 1],
    ])
    expect(await found({ num_steps: '2' })).toEqual([
      [2, 1],
      [3, 3],
    ])
  })
})

describe('classes', () => {
  it('are counted over the steps, one-hot ones by their largest', async () => {
    const trial = await trialOf([
      [floats('labels', [1, 0, 1, 0], [2, 2]), floats('predictions', [0.9, 0.1, 0.2, 0.8], [2, 2])],
      [floats('labels', [0, 1, 0, 1], [2, 2]), floats('predictions', [0.9, 0.1, 0.8, 0.2], [2, 2])],
    ])
    const rule = new ClassImbalance(trial, { argmax: 'true', samples: '4', threshold_misprediction: '0.5' })
    const { findings } = await evaluate(rule)
    // Class 0: one of two is taken for another; class 1: both.
    expect(findings.map(({ step, value }) => [step, value])).toEqual([[1, 1]])
  })

  it('are judged without predictions where none were saved', async () => {
    const trial = await trialOf([[integers('labels', [0, 0, 0, 1])]])
    const rule = new ClassImbalance(trial, { samples: '4', threshold_imbalance: '2.9' })
    const { findings, missing } = await evaluate(rule)
    expect(findings.map(({ value }) => value)).toEqual([3])
    expect(missing).toHaveLength(1)
  })

  it('are confused by columns; empty ones are passed over', async () => {
    const trial = await trialOf([
      [integers('labels', [0, 0, 1, 2]), integers('predictions', [0, 0, 1, 1])],
      [integers('labels', [0, 1]), floats('predictions', [0.9, 0.1, 0.2, 0.8], [2, 2])],
    ])
    const { findings } = await evaluate(new Confusion(trial))
    expect(findings.map(({ step, value }) => [step, value])).toEqual([
      [0, 0.5],
      [0, 0.5],
    ])
  })
})

describe('losses', () => {
  it('are looked for in EVAL, then TRAIN, then all steps', async () => {
    const trial = await trialOf([...losses([1, 1, 1]), ...losses([3, 2, 1], 'EVAL')])
    expect(await firesAt(new LossNotDecreasing(trial, { num_steps: '1' }))).toEqual([])
    expect(await firesAt(new LossNotDecreasing(trial, { num_steps: '1', mode: 'train' }))).toEqual([1, 2])
    const global = await firesAt(new LossNotDecreasing(trial, { num_steps: '1', mode: 'GLOBAL' }))
    expect(global).toEqual([1, 2, 3])
  })

  it.each([
    [[1, 0.9991], [1]],
    [[1, 0.99], []],
    [[1, 1], [1]],
    [[1, 1.05], []],
    [[1, 1.06], [1]],
    [[0, 0], [1]],
    [[0, -1], []],
    [[-1, -0.99], []],
    [[-1, -0.5], [1]],
    [[1, Number.NaN], [1]],
  ])('%j', async (values, expected) => {
    const trial = await trialOf(losses(values))
    expect(await firesAt(new LossNotDecreasing(trial, { num_steps: '1' }))).toEqual(expected)
  })

  it('that are no scalars are none, nor are saved reductions of what may be one', async () => {
    const trial = await trialOf(
      [0, 1].map(() => [floats('a_loss', [1, 1]), { name: 'b_loss', reductions: { mean: 1 } }] satisfies StepTensor[]),
    )
    expect(await firesAt(new LossNotDecreasing(trial, { num_steps: '1' }))).toEqual([])
  })

  it('of validation are held against those of the training before it', async () => {
    const step = (mode: Mode, value: number): Step => ({ mode, tensors: [floats('loss', [value], [1])] })
    const steps = [
      step('TRAIN', 9),
      step('EVAL', 1),
      step('TRAIN', 1),
      step('TRAIN', 3),
      step('EVAL', 2.1),
      step('EVAL', 2.5),
      step('TRAIN', 1),
      step('EVAL', 1.2),
    ]
    const trial = await trialOf(steps)
    const { findings } = await evaluate(new Overfit(trial))
    // Against (1 + 3) / 2: 2.1, then (2.1 + 2.5) / 2; against 1: 1.2.
    expect(findings.map(({ step, value }) => [step, Number(value!.toFixed(6))])).toEqual([
      [5, 0.15],
      [7, 0.2],
    ])
    expect(await firesAt(new Overfit(trial, { patience: '2' }))).toEqual([7])
    expect(await firesAt(new Overfit(trial, { start_step: '6' }))).toEqual([7])
  })

  it('of XGBoost are told apart by their names; what is better when larger is left out', async () => {
    const metrics = (train: number, validation: number): StepTensor[] => [
      floats('train-logloss', [train], [1]),
      floats('validation-logloss', [validation], [1]),
      floats('train-auc', [0.5], [1]),
      floats('validation-auc', [0.9], [1]),
    ]
    const trial = await trialOf(
      [metrics(1, 1.05), metrics(1, 1.2)].map(tensors => ({ mode: 'GLOBAL' as const, tensors })),
    )
    expect(await firesAt(new Overfit(trial))).toEqual([1])
  })

  it('that no longer get better are overtraining', async () => {
    const trial = await trialOf(losses([3, 2, 1.995, 1.995, 1.9, 1.9, Number.NaN, 1.9]))
    expect(await firesAt(new Overtraining(trial, { patience_train: '2' }))).toEqual([3, 6, 7])
    expect(await firesAt(new Overtraining(trial, { patience_train: '2', delta: '0' }))).toEqual([6, 7])
  })
})

describe('PoorWeightInitialization', () => {
  const spread = floats('gradient/w', [-1, 1])

  it('(a) compares variances over layers, zero with something counting as endless', async () => {
    const inputs = (a: number, b: number) => [floats('relu_input0', [-a, a]), floats('relu_input1', [-b, b]), spread]
    const trial = await trialOf([inputs(1, 3), inputs(1, 4), inputs(0, 1), inputs(0, 0)])
    expect(await firesAt(new PoorWeightInitialization(trial))).toEqual([1, 2])
  })

  it('(b) looks for a gradient that is all in one place', async () => {
    const trial = await trialOf([[spread], [spread, floats('gradient/v', [1, 1.0005])]])
    expect(await firesAt(new PoorWeightInitialization(trial))).toEqual([1])
  })

  it('(c) waits for the loss, and for the first steps only', async () => {
    const trial = await trialOf(losses([2, 1, 1, 1, 0.5, 1, 1, 1]))
    expect(await firesAt(new PoorWeightInitialization(trial, { patience: '2' }))).toEqual([3, 6, 7])
    expect(await firesAt(new PoorWeightInitialization(trial, { patience: '2', steps: '5' }))).toEqual([3])
  })
})

describe('the others', () => {
  it('SimilarAcrossRuns finds other values and shapes, and passes over what the other trial lacks', async () => {
    const trial = await trialOf([
      [floats('a', [1, Number.NaN])],
      [floats('a', [1])],
      [floats('a', [1]), floats('b', [1])],
      [floats('a', [1])],
    ])
    const other = await trialOf([[floats('a', [1, Number.NaN])], [floats('a', [1.001])], [floats('a', [1], [1, 1])]])
    expect(await firesAt(new SimilarAcrossRuns(trial, { otherTrials: [other] }))).toEqual([1, 2])
    expect(() => new SimilarAcrossRuns(trial)).toThrow('expected one other trial')
    expect(() => new SimilarAcrossRuns(trial, { otherTrials: [other, other] })).toThrow('got 2')
  })

  it('CheckInputImages gathers images, channel by channel', async () => {
    // [2, 2, 1, 2]: two images of two channels; the second channel has a mean of 0.5.
    const images = (level: number) => floats('input', [-1, 1, level, level, 1, -1, level, level], [2, 2, 1, 2])
    const trial = await trialOf([[images(0.5)], [images(0.5)], [images(-0.5)]])
    const at = (parameters: Record<string, string>) =>
      firesAt(new CheckInputImages(trial, { regex: 'input', threshold_samples: '4', ...parameters }))
    expect(await at({})).toEqual([1])
    expect(await at({ threshold_samples: '2' })).toEqual([0, 1])
    expect(await at({ threshold_mean: '0.5' })).toEqual([])
    // No such axis: one mean of all.
    expect(await at({ channel: '7', threshold_mean: '0.24' })).toEqual([1])
  })

  it('NLPSequenceRatio has a threshold a token, or one for all', async () => {
    const trial = await trialOf([[integers('x', [0, 0, 1, 2])], [integers('x', [0, 1, 1, 1])]])
    const at = (token_values: string, token_thresholds_percent: string) =>
      firesAt(new NLPSequenceRatio(trial, { tensor_regex: 'x', token_values, token_thresholds_percent }))
    expect(await at('0', '49')).toEqual([0])
    expect(await at('0', '50')).toEqual([])
    expect(await at('0,1', '49')).toEqual([0, 1])
    expect(await at('0,1', '90,70')).toEqual([1])
    expect(() => at('0,1,2', '1,2')).toThrow('one for each of 3 tokens')
  })

  it('FeatureImportanceOverweight takes shares of what there is', async () => {
    const features = (...weights: number[]) =>
      weights.map((weight, i) => floats(`feature_importance/weight/f${i}`, [weight], [1]))
    const trial = await trialOf([features(8, 1, 1), features(1, 1, 1, 1, 1), features(0, 0)])
    expect(await firesAt(new FeatureImportanceOverweight(trial, { nfeatures: '1', threshold: '0.79' }))).toEqual([0])
    expect(await firesAt(new FeatureImportanceOverweight(trial))).toEqual([0])
  })

  it('TreeDepth counts from the root’s 0', async () => {
    const trial = await trialOf([0, 1, 2, 3, 6, 7].map(largest => [integers('trees/Node', [0, largest])]))
    const { findings } = await evaluate(new TreeDepth(trial, { depth: '0' }))
    expect(findings.map(({ step, value }) => [step, value])).toEqual([
      [1, 1],
      [2, 1],
      [3, 2],
      [4, 2],
      [5, 3],
    ])
  })
})
