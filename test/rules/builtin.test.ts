/** The decisions of rules.md at the edges that the golden trials do not reach. */

import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
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
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('builtin')

const COLLECTIONS = {
  weights: { includeRegex: ['weight$'] },
  gradients: { includeRegex: ['^gradient'] },
  losses: { includeRegex: ['loss$'] },
  metrics: { includeRegex: ['^(train|validation)-'] },
}
const EVERYTHING = { tensor_regex: '.*' }

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
    expect(BUILTIN_RULES).toHaveLength(25)
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

describe('tensors without elements', () => {
  const empty = (name: string, width = 3): StepTensor => ({ name, dtype: 'float32', shape: [0, width], values: [] })
  const trialOfEmpty = (...names: string[]) => trialOf([0, 1].map(() => names.map(name => empty(name))))

  it.each<[string, string[], (trial: Trial) => Rule]>([
    ['UnchangedTensor', ['a'], trial => new UnchangedTensor(trial, { ...EVERYTHING, num_steps: '2' })],
    ['ClassImbalance', ['labels'], trial => new ClassImbalance(trial, { samples: '0' })],
    ['Confusion', ['labels', 'predictions'], trial => new Confusion(trial)],
    ['TreeDepth', ['trees/Node'], trial => new TreeDepth(trial, { depth: '-9' })],
    ['FeatureImportanceOverweight', ['feature_importance/weight/a'], trial => new FeatureImportanceOverweight(trial)],
    ['Overtraining', ['loss'], trial => new Overtraining(trial, { patience_train: '1' })],
  ])('neither fire %s nor end it', async (_, names, make) => {
    expect(await firesAt(make(await trialOfEmpty(...names)))).toEqual([])
  })

  it('do not fire SimilarAcrossRuns where both have none', async () => {
    const [trial, other] = [await trialOfEmpty('a'), await trialOfEmpty('a')]
    expect(await firesAt(new SimilarAcrossRuns(trial, { otherTrials: [other] }))).toEqual([])
  })
})

it.each([0, 4095, 4096, 9999])(
  'UnchangedTensor sees a change of the element %i of 10,000, whatever the dtypes',
  async at => {
    const values = Array.from({ length: 10_000 }, (_, i) => i)
    const changed = values.with(at, -1)
    const of = (dtype: 'float32' | 'float64', values: number[]): StepTensor[] => [
      { name: 'a', dtype, shape: [10_000], values },
    ]
    const trial = await trialOf([
      of('float32', values),
      of('float64', values),
      of('float32', changed),
      of('float32', changed),
    ])
    expect(await firesAt(new UnchangedTensor(trial, { ...EVERYTHING, num_steps: '2' }))).toEqual([1, 3])
  },
)

describe('which tensors', () => {
  const zero = (name: string) => floats(name, [0])
  const tensorsOf = async (rule: Rule) => (await evaluate(rule)).findings.map(({ tensor }) => tensor)

  it('are those of the collections and those that match, somewhere, as they are spelled', async () => {
    const trial = await trialOf([[zero('a.weight'), zero('my_foo_1'), zero('FOO'), zero('bar')]])
    const rule = new AllZero(trial, { collection_names: 'weights', tensor_regex: 'foo' })
    expect(await tensorsOf(rule)).toEqual(['a.weight', 'my_foo_1'])
  })

  it('are all of them judged, though the first is sound', async () => {
    const trial = await trialOf([[floats('a', [1]), zero('b'), floats('c', [1]), zero('d')]])
    expect(await tensorsOf(new AllZero(trial, EVERYTHING))).toEqual(['b', 'd'])
  })

  it('may hold commas in an array of patterns', async () => {
    const trial = await trialOf([[zero('aa'), zero('aaaa')]])
    expect(await tensorsOf(new AllZero(trial, { tensor_regex: ['^a{2,3}$'] }))).toEqual(['aa'])
  })

  it('are those of every worker, in the order of their names', async () => {
    const directory = mkdtempSync(join(scratch, 'trial-'))
    const writer = new TrialWriter(directory, { workers: ['b', 'a'] })
    writer.step({ step: 0, worker: 'b', tensors: [zero('t')] })
    writer.step({ step: 0, worker: 'a', tensors: [floats('t', [1])] })
    writer.step({ step: 1, worker: 'b', tensors: [floats('t', [1])] })
    writer.step({ step: 1, worker: 'a', tensors: [zero('t')] })
    writer.step({ step: 2, worker: 'b', tensors: [zero('t')] })
    writer.step({ step: 2, worker: 'a', tensors: [zero('t')] })
    writer.end()
    const { findings } = await evaluate(new AllZero(await createTrial(directory), EVERYTHING))
    expect(findings.map(({ step, worker }) => `${step} ${worker}`)).toEqual(['0 b', '1 a', '2 a', '2 b'])
  })
})

describe('what equals its threshold', () => {
  const scalars = (mode: Mode, value: number): Step => ({ mode, tensors: [floats('loss', [value], [1])] })
  const nine = [0, 0, 0, 0, 0, 0, 0, 0, 0]

  it.each<[string, readonly (Step | StepTensor[])[], (trial: Trial) => Rule]>([
    [
      'Confusion',
      [[integers('labels', [...nine, 1]), integers('predictions', [...nine, 0])]],
      trial => new Confusion(trial),
    ],
    [
      'ClassImbalance, of counts',
      [[integers('labels', [...nine, 1])]],
      trial => new ClassImbalance(trial, { samples: '10', threshold_imbalance: '9' }),
    ],
    [
      'ClassImbalance, of mispredictions',
      [[integers('labels', [0, 0, 1, 1]), integers('predictions', [0, 1, 1, 1])]],
      trial => new ClassImbalance(trial, { samples: '4', threshold_misprediction: '0.5' }),
    ],
    ['DeadRelu, of layers', [[floats('relu_output', [0, 1])]], trial => new DeadRelu(trial)],
    [
      'DeadRelu, of nodes',
      [[floats('relu_output', [0, 1], [2, 1])]],
      trial => new DeadRelu(trial, { threshold_inactivity: '50' }),
    ],
    [
      'FeatureImportanceOverweight',
      [[floats('feature_importance/weight/a', [0.5], [1]), floats('feature_importance/weight/b', [0.5], [1])]],
      trial => new FeatureImportanceOverweight(trial, { nfeatures: '1', threshold: '0.5' }),
    ],
    [
      'WeightUpdateRatio',
      [[floats('a.weight', [1])], [floats('a.weight', [2])]],
      trial => new WeightUpdateRatio(trial, { epsilon: '0', large_threshold: '1', small_threshold: '1' }),
    ],
    [
      'LossNotDecreasing, going down',
      losses([2, 1]),
      trial => new LossNotDecreasing(trial, { num_steps: '1', diff_percent: '50' }),
    ],
    [
      'LossNotDecreasing, going up',
      losses([2, 3]),
      trial => new LossNotDecreasing(trial, { num_steps: '1', increase_threshold_percent: '50' }),
    ],
    ['Overfit', [scalars('TRAIN', 1), scalars('EVAL', 1.5)], trial => new Overfit(trial, { ratio_threshold: '0.5' })],
    [
      'PoorWeightInitialization',
      [[floats('relu_input0', [-1, 1]), floats('relu_input1', [-2, 2])]],
      trial => new PoorWeightInitialization(trial, { threshold: '4' }),
    ],
  ])('does not fire %s', async (_, steps, make) => {
    expect(await firesAt(make(await trialOf(steps)))).toEqual([])
  })

  it('is outside of what SaturatedActivation takes for unsaturated', async () => {
    const trial = await trialOf([[{ name: 'tanh_input', dtype: 'float64', shape: [1], values: [9.4999] }]])
    expect(await firesAt(new SaturatedActivation(trial))).toEqual([0])
  })

  it('is no gain to Overtraining', async () => {
    const trial = await trialOf(losses([2, 1.5]))
    expect(await firesAt(new Overtraining(trial, { patience_train: '1', delta: '0.5' }))).toEqual([1])
  })
})

describe('saved reductions', () => {
  const onlyMean = (name: string): StepTensor => ({ name, reductions: { mean: 1 } })

  it.each<[string, StepTensor[], (trial: Trial) => Rule]>([
    ['VanishingGradient', [{ name: 'gradient/w', reductions: { abs_mean: 0 } }], trial => new VanishingGradient(trial)],
    [
      'TensorVariance',
      [{ name: 'a', reductions: { variance: 5 } }],
      trial => new TensorVariance(trial, { ...EVERYTHING, max_threshold: '4' }),
    ],
    ['AllZero', [{ name: 'a', reductions: { min: 0, max: 0 } }], trial => new AllZero(trial, EVERYTHING)],
    ['TreeDepth', [{ name: 'trees/Node', reductions: { max: 31 } }], trial => new TreeDepth(trial)],
    [
      'PoorWeightInitialization',
      [
        { name: 'relu_input0', reductions: { variance: 1 } },
        { name: 'relu_input1', reductions: { variance: 11 } },
      ],
      trial => new PoorWeightInitialization(trial),
    ],
  ])('will do for %s', async (_, tensors, make) => {
    expect(await firesAt(make(await trialOf([tensors])))).toEqual([0])
  })

  it.each<[string, string[], (trial: Trial) => Rule]>([
    ['DeadRelu', ['relu_output'], trial => new DeadRelu(trial)],
    ['SaturatedActivation', ['tanh_input'], trial => new SaturatedActivation(trial)],
    ['NLPSequenceRatio', ['a'], trial => new NLPSequenceRatio(trial, EVERYTHING)],
    ['CheckInputImages', ['a'], trial => new CheckInputImages(trial, { regex: 'a' })],
    ['UnchangedTensor', ['a'], trial => new UnchangedTensor(trial, { ...EVERYTHING, num_steps: '2' })],
    ['WeightUpdateRatio', ['a.weight'], trial => new WeightUpdateRatio(trial)],
    ['ClassImbalance', ['labels', 'predictions'], trial => new ClassImbalance(trial)],
    ['Confusion', ['labels', 'predictions'], trial => new Confusion(trial)],
    ['SimilarAcrossRuns', ['a'], trial => new SimilarAcrossRuns(trial, { otherTrials: [trial] })],
  ])('will not do for %s, which says so', async (_, names, make) => {
    const trial = await trialOf([0, 1].map(() => names.map(onlyMean)))
    const { missing } = await evaluate(make(trial))
    expect(missing.map(({ missing }) => missing).join()).toContain('only reductions were saved')
  })

  it('of one tensor do not keep ClassImbalance from the labels of another', async () => {
    const trial = await trialOf([[onlyMean('a_labels'), integers('b_labels', [0, 0, 0, 1])]])
    expect(await firesAt(new ClassImbalance(trial, { samples: '4', threshold_imbalance: '2' }))).toEqual([0])
  })

  it('of one tensor do not keep CheckInputImages from the images of another', async () => {
    const trial = await trialOf([[onlyMean('input0'), floats('input1', [1, 1], [2, 1])]])
    expect(await firesAt(new CheckInputImages(trial, { regex: 'input', threshold_samples: '2' }))).toEqual([0])
  })
})

describe('a rule that has nothing to judge says so', () => {
  it('LossNotDecreasing, of no scalar', async () => {
    const trial = await trialOf([0, 1].map(() => [floats('a', [1, 2])]))
    expect((await evaluate(new LossNotDecreasing(trial))).missing).toHaveLength(1)
  })

  it('Overfit, of a loss that is never validated', async () => {
    expect((await evaluate(new Overfit(await trialOf(losses([1, 1]))))).missing).toHaveLength(1)
  })

  it('Overtraining, of losses that are no scalars', async () => {
    const trial = await trialOf([0, 1].map(() => [floats('loss', [1, 2])]))
    expect((await evaluate(new Overtraining(trial))).missing).toHaveLength(2)
  })

  const feature = (i: number) => floats(`feature_importance/weight/f${i}`, [1], [1])
  const shapeOnly: StepTensor = { name: 'b', savedShape: [2] }
  const two = (...tensors: StepTensor[]) => [tensors, tensors]

  it.each<[string, readonly (Step | StepTensor[])[], (trial: Trial) => Rule, string]>([
    [
      'CheckInputImages, of a table',
      two(floats('in', [1, 2, 3, 4], [2, 2])),
      trial => new CheckInputImages(trial, { regex: 'in', images_only: 'true', threshold_samples: '2' }),
      'images, which have more axes than those of samples and channels; in has not',
    ],
    [
      'CheckInputImages, of few images',
      two(floats('in', [1, 2, 3, 4], [1, 1, 2, 2])),
      trial => new CheckInputImages(trial, { regex: 'in', threshold_samples: '3' }),
      'at least 3 images; up to step 1 there were 2',
    ],
    [
      'ClassImbalance, of a regression',
      two(floats('labels', [0.5, 1.5])),
      trial => new ClassImbalance(trial, { samples: '2' }),
      'labels that are whole numbers, as classes are; labels at step 1 has others',
    ],
    [
      'ClassImbalance, of few labels',
      two(integers('labels', [0, 1])),
      trial => new ClassImbalance(trial, { samples: '5' }),
      'at least 5 labels; up to step 1 there were 4',
    ],
    [
      'SaturatedActivation, of what is a ReLU',
      two(floats('acts.0_output_0', [0, 3, 0, 2], [2, 2])),
      trial => new SaturatedActivation(trial, { tensor_regex: [], output_regex: 'acts' }),
      'outputs of tanh or sigmoid; the values of acts.0_output_0 at step 1 are of neither',
    ],
    [
      'FeatureImportanceOverweight, of few features',
      two(feature(0), feature(1)),
      trial => new FeatureImportanceOverweight(trial, { least_features: '3' }),
      'at least 3 importances at a step; step 1 has 2',
    ],
    [
      'DeadRelu, of NaN',
      two(floats('relu_output', [0, Number.NaN])),
      trial => new DeadRelu(trial, { expected_activity: '10' }),
      'outputs without NaN; relu_output has some at step 1',
    ],
    [
      'PoorWeightInitialization, of one activation input',
      two(floats('relu_input0', [1, 2]), floats('gradient/a', []), floats('loss', [1], [1])),
      trial => new PoorWeightInitialization(trial),
      'two activation inputs of a step whose variances are finite and can be read; step 1 has 1',
    ],
    [
      'PoorWeightInitialization, of one activation input as initialised',
      two(floats('relu_input0', [1, 2])),
      trial => new PoorWeightInitialization(trial, { initial: 'true' }),
      'two activation inputs of step 0, one saved right after the other, whose variances are finite and can be read',
    ],
    [
      'PoorWeightInitialization, of later steps than the first',
      [[floats('loss', [1], [1])], [floats('relu_input0', [1, 2]), floats('relu_input1', [1, 2])]],
      trial => new PoorWeightInitialization(trial, { initial: 'true' }),
      'activation inputs of step 0, among the steps that were judged',
    ],
    [
      'Overtraining, of fewer steps than its patience',
      losses([1, 1]),
      trial => new Overtraining(trial, { patience_train: '2' }),
      'more steps with its tensors among those that were judged; "loss" were saved at 2 steps, from 0 to 1',
    ],
    [
      'AllZero, of a share that reductions do not tell',
      two({ name: 'a', reductions: { abs_max: 0.3 } }),
      trial => new AllZero(trial, { ...EVERYTHING, threshold: '50' }),
      'expected the value to be saved, but only abs_max were',
    ],
    [
      'AllZero, of a mean',
      two({ name: 'a', reductions: { mean: 0 } }),
      trial => new AllZero(trial, EVERYTHING),
      'expected the value to be saved, but only mean were',
    ],
    [
      'ExplodingTensor, of a shape',
      two(shapeOnly),
      trial => new ExplodingTensor(trial),
      'expected the value to be saved, but only its shape was',
    ],
  ])('%s', async (_, steps, make, reason) => {
    const { findings, missing, problems } = await evaluate(make(await trialOf(steps)), { threads: 0 })
    expect([findings, problems]).toEqual([[], []])
    expect(missing).toEqual([expect.objectContaining({ missing: expect.stringContaining(reason), partial: false })])
  })

  it.each<[string, readonly (Step | StepTensor[])[], (trial: Trial) => Rule]>([
    ['Overtraining', losses([3, 2, 1]), trial => new Overtraining(trial, { patience_train: '2' })],
    [
      'AllZero, of an extreme that is not zero',
      [[{ name: 'a', reductions: { abs_max: 0.3 } }]],
      trial => new AllZero(trial, EVERYTHING),
    ],
    [
      'ClassImbalance',
      two(integers('labels', [0, 1]), integers('predictions', [0, 1])),
      trial => new ClassImbalance(trial, { samples: '4', threshold_imbalance: '2' }),
    ],
  ])('but not where it judges: %s', async (_, steps, make) => {
    const { findings, missing } = await evaluate(make(await trialOf(steps)), { threads: 0 })
    expect([findings, missing]).toEqual([[], []])
  })

  it('AllZero, for a part, of which it does not know that all weights are zero', async () => {
    const zeros = ['a.weight', 'b.weight'].map(name => floats(name, [0]))
    const rule = (trial: Trial) => new AllZero(trial, { collection_names: 'weights', num_steps: '2' })
    const known = await evaluate(rule(await trialOf([zeros])))
    expect(known.findings).toHaveLength(2)
    const part = await evaluate(rule(await trialOf([[...zeros, { name: 'c.weight', reductions: { mean: 1 } }], zeros])))
    expect(part.findings.map(({ step }) => step)).toEqual([1, 1])
    expect(part.missing).toEqual([expect.objectContaining({ partial: true })])
  })

  it('SimilarAcrossRuns, of two trials that have no tensor in common', async () => {
    const [trial, other] = [await trialOf([[floats('a', [1])]]), await trialOf([[floats('b', [1])]])]
    const { missing } = await evaluate(new SimilarAcrossRuns(trial, { otherTrials: [other] }))
    expect(missing).toHaveLength(1)
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
    ['gradient/fc.weight', 1, true, [0]],
    ['gradient/fc.weight', 1, false, []],
    ['gradient/fc.weight', 1e-9, false, [0]],
    ['gradient/other.weight', 1, false, [0]],
  ])('VanishingGradient: a bias beside %s of %d, lone_biases=%s', async (name, value, loneBiases, expected) => {
    const trial = await trialOf([[floats('gradient/fc.bias', [1e-9]), floats(name, [value])]])
    expect(await firesAt(new VanishingGradient(trial, { loneBiases }))).toEqual(expected)
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

it('CheckInputImages takes any number of channels', async () => {
  const data = new Uint8Array(Float32Array.from({ length: 200_000 }, () => 1).buffer)
  const trial = await trialOf([[{ name: 'input', dtype: 'float32', shape: [1, 200_000], data }]])
  expect(await firesAt(new CheckInputImages(trial, { regex: 'input', threshold_samples: '1' }))).toEqual([0])
})

describe('CheckInputImages finds the channels', () => {
  const worst = async (shape: number[], parameters = {}, others: StepTensor[] = []) => {
    const [samples, ...rest] = shape as [number, ...number[]]
    const size = rest.reduce((product, length) => product * length, 1)
    // The last element of each image is large.
    const values = Array.from({ length: samples * size }, (_, i) => (i % size === size - 1 ? size : 0))
    const trial = await trialOf([[floats('input', values, shape), ...others]])
    const rule = new CheckInputImages(trial, { regex: 'input', threshold_samples: '1', ...parameters })
    return (await evaluate(rule, { threads: 0 })).findings.map(({ message }) => /channel \d+/.exec(message)![0])[0]
  }
  const tensorflow = [floats('dense/kernel:0', [1], [1])]
  const pytorch = [floats('fc.weight', [1], [1])]

  it.each([
    ['one channel, last', [2, 14, 14, 1], 'channel 0'],
    ['one channel, first', [2, 1, 14, 14], 'channel 0'],
    ['three channels, last', [2, 14, 14, 3], 'channel 2'],
    ['three channels, first', [2, 3, 14, 14], 'channel 2'],
    ['channels of a film, last', [2, 5, 14, 14, 3], 'channel 2'],
    ['no axis of channels', [2, 14, 14], 'channel 0'],
    ['a sequence with channels, last', [2, 100, 2], 'channel 1'],
    ['a table', [2, 14], 'channel 13'],
  ])('%s', async (_, shape, channel) => {
    for (const others of [[], tensorflow, pytorch]) expect(await worst(shape, {}, others)).toBe(channel)
  })

  it.each([
    ['both could be', [2, 3, 14, 4], 'channel 3', 'channel 2'],
    ['neither could be', [2, 7, 14, 9], 'channel 8', 'channel 6'],
  ])('%s: by the framework', async (_, shape, last, first) => {
    expect(await worst(shape, {}, tensorflow)).toBe(last)
    expect(await worst(shape, {}, pytorch)).toBe(first)
    expect(await worst(shape)).toBe(first)
  })

  it('are where it is told', async () => {
    expect(await worst([2, 14, 14, 1], { channel: '1' })).toBe('channel 13')
    expect(await worst([2, 3, 14, 14], { channel: '3' }, tensorflow)).toBe('channel 13')
  })
})

describe('Confusion', () => {
  it('takes any number of labels', async () => {
    const bytes = (name: string): StepTensor => ({
      name,
      dtype: 'uint8',
      shape: [200_000],
      data: new Uint8Array(200_000),
    })
    const trial = await trialOf([[bytes('labels'), bytes('predictions')]])
    expect(await firesAt(new Confusion(trial))).toEqual([])
  })

  it('begins anew at every step', async () => {
    const pair = (label: number) => [integers('labels', [label]), integers('predictions', [1])]
    const trial = await trialOf([pair(0), pair(1), pair(0)])
    expect(await firesAt(new Confusion(trial))).toEqual([0, 2])
  })

  it('passes over what is beyond category_no', async () => {
    const trial = await trialOf([[integers('labels', [0, 1, 5]), integers('predictions', [0, 1, 1])]])
    expect(await firesAt(new Confusion(trial, { category_no: '2' }))).toEqual([])
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
    [[1, Number.POSITIVE_INFINITY], [1]],
    // The difference is no number, but neither loss is NaN.
    [[Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY], []],
  ])('%o', async (values, expected) => {
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

  it('are counted anew by Overfit once the validation is as good again', async () => {
    const step = (mode: Mode, value: number): Step => ({ mode, tensors: [floats('loss', [value], [1])] })
    const pairs = [2, 1, 2, 2].flatMap(value => [step('TRAIN', 1), step('EVAL', value)])
    expect(await firesAt(new Overfit(await trialOf(pairs), { patience: '2' }))).toEqual([7])
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

  it('of validation have a patience of their own in Overtraining', async () => {
    const step = (mode: Mode, value: number): Step => ({ mode, tensors: [floats('loss', [value], [1])] })
    const pairs = [4, 3, 2].flatMap(value => [step('TRAIN', value), step('EVAL', 1)])
    const parameters = { patience_train: '1', patience_validation: '2' }
    expect(await firesAt(new Overtraining(await trialOf(pairs), parameters))).toEqual([5])
  })

  it('of XGBoost are told apart by Overtraining, too', async () => {
    const metrics = [3, 2, 1].map(train => [
      floats('train-logloss', [train], [1]),
      floats('validation-logloss', [1], [1]),
      floats('train-auc', [0.5], [1]),
    ])
    const trial = await trialOf(metrics.map(tensors => ({ mode: 'GLOBAL' as const, tensors })))
    const parameters = { patience_train: '1', patience_validation: '2' }
    expect(await firesAt(new Overtraining(trial, parameters))).toEqual([2])
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

  it('(a) leaves gradients of activation inputs out', async () => {
    const trial = await trialOf([[floats('relu_input0', [-1, 1]), floats('gradient/relu_input0', [-9, 9])]])
    expect(await firesAt(new PoorWeightInitialization(trial))).toEqual([])
  })

  it.each([
    ['of NaN', [Number.NaN], [1]],
    ['without elements', [], [0]],
  ])('(b) sees a narrow gradient beside one %s, before or after it', async (_, values, shape) => {
    const narrow = (name: string) => floats(name, [1, 1])
    const other = (name: string) => floats(name, values, shape)
    const trial = await trialOf([
      [narrow('gradient/a'), other('gradient/b')],
      [other('gradient/a'), narrow('gradient/b')],
    ])
    expect(await firesAt(new PoorWeightInitialization(trial))).toEqual([0, 1])
  })

  it('looks at steps of TRAIN only, where there are any', async () => {
    const narrow = [floats('gradient/a', [1, 1])]
    const trial = await trialOf([
      { mode: 'EVAL', tensors: narrow },
      { mode: 'TRAIN', tensors: narrow },
      { mode: 'TRAIN', tensors: narrow },
    ])
    expect(await firesAt(new PoorWeightInitialization(trial, { steps: '1' }))).toEqual([1])
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
