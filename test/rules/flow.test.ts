/** Causes reach what follows from them; learning rates are named beside what they do. */

import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createTrial, diagnose, evaluate, type Finding, LearningRates, RuleRegistry, type Trial } from '#dist/index.js'
import { TrialWriter } from '../../fixtures/event-writer.js'
import { trialscan } from '../cli/run.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('flow')

type Tensors = Readonly<Record<string, readonly number[]>>

/** What smdebug's hook for PyTorch saves of two layers: parameters first, then what the layers are given and give. */
const NAMES = [
  'Net_conv0.weight',
  'Net_conv1.weight',
  'conv0_output_0',
  'relu0_output_0',
  'conv1_output_0',
  'NLLLoss_output_0',
  'gradient/Net_conv1.weight',
  'gradient/Net_conv0.weight',
  'scalar/accuracy',
  'scalar/lr',
]

const fine = (step: number, i: number): readonly number[] =>
  Array.from({ length: 4 }, (_, k) => 1 + Math.abs(Math.sin(step * 31 + i * 7 + k * 2)))

function write(count: number, change: (step: number) => Tensors): string {
  const directory = mkdtempSync(join(scratch, 'trial-'))
  const writer = new TrialWriter(directory, {
    collections: {
      weights: { includeRegex: ['^Net.*weight$'] },
      gradients: { includeRegex: ['^gradient/'] },
      losses: { includeRegex: ['Loss'] },
    },
  })
  for (let step = 0; step < count; step++) {
    const changed = change(step)
    const tensors = NAMES.map((name, i) => {
      const isScalar = /Loss|scalar/.test(name)
      const values = changed[name] ?? (name === 'scalar/lr' ? [0.1] : isScalar ? [1 / (step + 1)] : fine(step, i))
      return { name, dtype: 'float32', shape: isScalar ? [] : [2, 2], values } as const
    })
    writer.step({ step, mode: 'TRAIN', tensors })
  }
  writer.end()
  return directory
}

async function causesOf(trial: Trial): Promise<string[]> {
  const { findings } = await evaluate(new RuleRegistry().all(trial).rules, { threads: 0, follow: false })
  const told = ({ rule, step, tensor }: Finding) => `${rule} ${step} ${tensor}`
  return diagnose(trial, findings).flatMap(one => (one.cause === null ? [told(one)] : []))
}

const NAN = [Number.NaN, 1, 1, 1]
const ZERO = [0, 0, 0, 0]

describe('a cause', () => {
  it('is not what comes in later in the step: neither for an activation nor for the update of another weight', async () => {
    const change = (step: number): Tensors =>
      step < 3
        ? {}
        : {
            'Net_conv1.weight': NAN,
            'Net_conv0.weight': fine(step, 0).map(x => x * 1e9),
            relu0_output_0: ZERO,
            conv1_output_0: NAN,
            NLLLoss_output_0: [Number.NaN],
          }
    expect(await causesOf(await createTrial(write(5, change)))).toEqual([
      'ExplodingTensor 3 Net_conv1.weight',
      'DeadRelu 3 relu0_output_0',
      'WeightUpdateRatio 3 Net_conv0.weight',
    ])
  })

  it('is not what has no part in the network', async () => {
    const change = (step: number): Tensors => ({
      'scalar/accuracy': [Number.NaN],
      ...(step > 1 && { 'gradient/Net_conv0.weight': ZERO }),
    })
    expect(await causesOf(await createTrial(write(5, change)))).toEqual([
      'ExplodingTensor 0 scalar/accuracy',
      'AllZero 3 gradient/Net_conv0.weight',
    ])
  })

  it('does not take what follows from a later one of its kind', async () => {
    const change = (step: number): Tensors =>
      step === 1 ? { conv1_output_0: NAN } : step > 5 ? { 'Net_conv1.weight': NAN, NLLLoss_output_0: [Number.NaN] } : {}
    const { stdout } = await trialscan('check', write(9, change), '--format', 'table')
    const [head] = stdout.split('\n\n')
    expect(head!.replaceAll(/\s+/g, ' ')).toMatch(
      /ExplodingTensor at step 1 \(TRAIN 1\): conv1_output_0 has 1 NaN among its 4 elements\.$/,
    )
  })
})

describe('a learning rate', () => {
  const exploding = (rate: (step: number) => number) => (step: number) => ({
    'scalar/lr': [rate(step)],
    ...(step > 3 && { 'Net_conv1.weight': NAN }),
  })

  it.each<[string, (step: number) => number, string]>([
    ['huge', () => 1e9, 'is 1e+9 from step 0 on, far beyond what trainings take'],
    ['that jumps', step => (step < 3 ? 0.125 : 12.5), 'is 12.5 from step 3 on, 100 times what it was before'],
    [
      'far beyond the others',
      step => (step < 1 ? 8 : 0.5),
      'is 8 from step 0 on, 16 times what is usual in this trial',
    ],
  ])('%s is named beside what it does, by check and summary', async (_, rate, message) => {
    const path = write(6, exploding(rate))
    for (const args of [
      ['check', path, '--format', 'table'],
      ['summary', path],
    ] as const) {
      const { stdout } = await trialscan(...args)
      expect(stdout.replaceAll(/\s+/g, ' ')).toContain(`eside that, the learning rate scalar/lr ${message}`)
    }
    const { stdout } = await trialscan('check', path, '--format', 'jsonl')
    expect(stdout).toContain(`"message":"the learning rate scalar/lr ${message}"`)
  })

  it.each<[string, (step: number) => number]>([
    ['as it should be', () => 0.1],
    ['that warms up', step => 0.001 + 0.033 * Math.min(step, 3)],
    ['that jumps only later', step => (step < 5 ? 0.1 : 50)],
  ])('%s is not', async (_, rate) => {
    const { stdout } = await trialscan('check', write(6, exploding(rate)), '--format', 'table')
    expect(stdout).toMatch(/ExplodingTensor at step 4/)
    expect(stdout).not.toContain('learning rate scalar')
  })

  it('is not where nothing is wrong', async () => {
    const { stdout } = await trialscan(
      'check',
      write(6, () => ({ 'scalar/lr': [1e9] })),
      '--format',
      'table',
    )
    expect(stdout).not.toContain('scalar/lr')
  })

  it.each<[string, (step: number) => number, readonly number[]]>([
    ['that jumps and stays there', step => (step < 6 ? 0.001 : 0.1), [6]],
    ['that warms up at once', step => (step < 2 ? 0.001 : 0.1), []],
    ['that is restarted', step => (step % 6 === 5 ? 0.001 : 0.1), []],
  ])('%s for most of the steps', async (_, rate, steps) => {
    const trial = await createTrial(write(20, step => ({ 'scalar/lr': [rate(step)] })))
    const rates = new LearningRates(trial)
    await evaluate(rates, { threads: 0 })
    expect(rates.unusual.map(({ step }) => step)).toEqual(steps)
    await trial.close()
  })

  it('is asked of each trial', async () => {
    const trial = await createTrial(write(3, () => ({ 'scalar/lr': [20] })))
    const rates = new LearningRates(trial)
    await evaluate(rates, { threads: 0 })
    expect(rates.unusual).toMatchObject([{ tensor: 'scalar/lr', step: 0, value: 20 }])
  })
})
