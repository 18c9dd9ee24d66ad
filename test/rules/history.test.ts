/** What the tests of the first rules, of 2019, expected of them. */

import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  AllZero,
  ClassImbalance,
  Confusion,
  createTrial,
  DeadRelu,
  ExplodingTensor,
  evaluate,
  InsufficientInformationForRuleInvocation,
  LossNotDecreasing,
  type Rule,
  TreeDepth,
  type Trial,
  UnchangedTensor,
  WeightUpdateRatio,
} from '#dist/index.js'
import { type StepTensor, TrialWriter } from '../../fixtures/event-writer.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('history')

const COLLECTIONS = {
  weights: { includeRegex: ['weight$'] },
  gradients: { includeRegex: ['^gradient'] },
  labels: { includeRegex: ['^labels'] },
  preds: { includeRegex: ['^preds'] },
}

/** A finished trial with these tensors at these steps, all in one mode. */
async function trialOf(steps: Readonly<Record<number, readonly StepTensor[]>>): Promise<Trial> {
  const directory = mkdtempSync(join(scratch, 'trial-'))
  const writer = new TrialWriter(directory, { collections: COLLECTIONS })
  for (const [step, tensors] of Object.entries(steps)) writer.step({ step: Number(step), mode: 'TRAIN', tensors })
  writer.end()
  return createTrial(directory)
}

async function firesAt(rule: Rule, startStep = 0): Promise<number[]> {
  const { findings, problems } = await evaluate(rule, { startStep, threads: 0 })
  expect(problems).toEqual([])
  return [...new Set(findings.map(({ step }) => step as number))]
}

const floats = (name: string, values: readonly number[], shape = [values.length]): StepTensor => ({
  name,
  dtype: 'float32',
  shape,
  values,
})
const integers = (name: string, values: readonly number[]): StepTensor => ({
  name,
  dtype: 'int64',
  shape: [values.length],
  values,
})
const range = (length: number): number[] => Array.from({ length }, (_, i) => i)

describe('ExplodingTensor', () => {
  const steps = {
    0: [floats('gradient/w', [1, Number.NaN])],
    1: [floats('gradient/w', [1, 2])],
    2: [floats('gradient/w', [Number.NaN, 1])],
  }

  it('fires at NaN, from whichever step on', async () => {
    const trial = await trialOf(steps)
    const parameters = { collection_names: 'gradients,weights' }
    expect(await firesAt(new ExplodingTensor(trial, parameters))).toEqual([0, 2])
    expect(await firesAt(new ExplodingTensor(trial, parameters), 1)).toEqual([2])
  })

  it('takes a collection that is not there for one without tensors', async () => {
    const trial = await trialOf(steps)
    expect(await firesAt(new ExplodingTensor(trial, { collection_names: 'no such collection' }))).toEqual([])
  })
})

it.each([
  // A learning rate of 1e-10 leaves the weights as they are; one of 1e-3 changes them by a thousandth.
  [1e-13, [1, 2, 3]],
  [1e-10, [1, 2, 3]],
  [1e-4, []],
  [1e-3, []],
])('WeightUpdateRatio with a learning rate of %d', async (rate, expected) => {
  const weights = (step: number): StepTensor => ({
    name: 'fc.weight',
    dtype: 'float64',
    shape: [4],
    values: [1, -2, 3, 4].map(weight => weight * (1 - rate * step)),
  })
  const trial = await trialOf(Object.fromEntries(range(4).map(step => [step, [weights(step)]])))
  expect(await firesAt(new WeightUpdateRatio(trial))).toEqual(expected)
})

it('ClassImbalance finds ten of a thousand', async () => {
  const labels = range(1000).map(i => Number(i % 100 === 0))
  const trial = await trialOf({ 3: [integers('labels', labels)] })
  const rule = new ClassImbalance(trial, { labels_regex: 'labels', predictions_regex: 'labels' })
  expect(await firesAt(rule)).toEqual([3])
})

describe('LossNotDecreasing', () => {
  const series = (losses: readonly number[], interval: number) =>
    trialOf(Object.fromEntries(losses.map((loss, i) => [i * interval, [floats('loss', [loss], [1])]])))

  it('fires at the first judged step where the loss is flat, told nothing of which tensors', async () => {
    const trial = await series([0.3, 0.33, 0.31, 0.3, 0.28], 4)
    expect(await firesAt(new LossNotDecreasing(trial))).toEqual([12])
  })

  it('trims the patterns of a list', async () => {
    const trial = await series([0.3, 0.33, 0.31, 0.3, 0.28], 4)
    expect(await firesAt(new LossNotDecreasing(trial, { tensor_regex: 'losses, loss' }))).toEqual([12])
  })

  it('finds a rise', async () => {
    const trial = await series([0.3, 0.33, 0.31, 0.2, 0.18, 0.1, 0.42], 4)
    expect(await firesAt(new LossNotDecreasing(trial, { diff_percent: '20' }))).toEqual([24])
  })

  it('takes what is flat for too small a decrease, which in 2019 it was not yet', async () => {
    const trial = await series([0.3, 0.33, 0.31, 0.3, 0.28, 0.2, 0.42], 4)
    expect(await firesAt(new LossNotDecreasing(trial, { diff_percent: '20' }))).toEqual([12, 24])
  })

  it('is judged every num_steps steps, against the newest that is so old', async () => {
    // Every loss is higher than any before, so that each judgement fires. Saved every 3 steps.
    const trial = await series(
      range(13).map(i => 1 + i),
      3,
    )
    const { findings } = await evaluate(new LossNotDecreasing(trial), { threads: 0 })
    expect(findings.map(({ step }) => step)).toEqual([12, 24, 36])
    expect(findings[0]!.message).toContain('since step 0')
    const later = await evaluate(new LossNotDecreasing(trial), { startStep: 21, threads: 0 })
    expect(later.findings.map(({ step, message }) => `${step} ${/since step (\d+)/.exec(message)![1]}`)).toEqual([
      '21 9',
      '33 21',
    ])
  })
})

describe('UnchangedTensor', () => {
  const steps = Object.fromEntries(
    range(6).map(step => [
      step,
      [step < 3 ? floats('foo', [1, 1]) : floats('other', [step]), ...(step === 5 ? [floats('boo', [1])] : [])],
    ]),
  )

  it('fires at the third step that has the same tensor', async () => {
    const trial = await trialOf(steps)
    const rule = () => new UnchangedTensor(trial, { tensor_regex: 'foo,boo', num_steps: '3' })
    expect(await firesAt(rule())).toEqual([2])
    expect(await firesAt(rule(), 2)).toEqual([2])
    expect(await firesAt(rule(), 3)).toEqual([])
  })
})

describe('Confusion', () => {
  const ten = range(10)

  it('is silent where labels and predictions are the same', async () => {
    const labels = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7]
    const byCollection = await trialOf({ 0: [integers('labels/a', labels), integers('preds/a', labels)] })
    const parameters = { category_no: '10', labels_collection: 'labels', predictions_collection: 'preds' }
    expect(await firesAt(new Confusion(byCollection, parameters))).toEqual([])
    const byName = await trialOf({ 0: [integers('labels', ten), integers('predictions', ten)] })
    expect(await firesAt(new Confusion(byName, { category_no: '10' }))).toEqual([])
  })

  it.each([
    [{}, 'what is predicted to be class 7'],
    [{ min_diag: '0.0', max_off_diag: '0.01' }, 'class 4'],
  ])('finds a four that was taken for a seven: %j', async (more, message) => {
    const trial = await trialOf({ 0: [integers('foo', ten), integers('bar', ten.with(4, 7))] })
    const rule = new Confusion(trial, { category_no: '10', labels: 'foo', predictions: 'bar', ...more })
    const { findings } = await evaluate(rule, { threads: 0 })
    expect(findings.map(({ step }) => step)).toContain(0)
    expect(findings.map(({ message }) => message).join()).toContain(message)
  })
})

it.each([
  ['zeros', range(40).map(() => 0), [0]],
  ['a good initialisation', range(40).map(i => (i % 2 === 0 ? i : 0)), []],
])('DeadRelu of a layer of %s', async (_, values, expected) => {
  const trial = await trialOf({ 0: [floats('relu0_relu_output_0', values, [10, 4])] })
  expect(await firesAt(new DeadRelu(trial))).toEqual(expected)
})

it('AllZero has to be told which tensors', async () => {
  const trial = await trialOf({ 0: [floats('a', [0])] })
  expect(() => new AllZero(trial)).toThrow(InsufficientInformationForRuleInvocation)
})

it.each([
  [30, []],
  [31, [0]],
])('TreeDepth of a tree with nodes up to %d, limited to a depth of 4', async (largest, expected) => {
  const trial = await trialOf({ 0: [integers('trees/Node', range(largest + 1))] })
  expect(await firesAt(new TreeDepth(trial))).toEqual(expected)
})
