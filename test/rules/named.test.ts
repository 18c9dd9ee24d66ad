/** Rules that are asked for by name judge the tensors that `check` has them judge, and say what would have to be saved. */

import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  AllZero,
  Confusion,
  createTrial,
  createWriter,
  type Evaluation,
  evaluate,
  makeRules,
  parseHookConfig,
  type Rule,
  RuleRegistry,
  type Trial,
  UnchangedTensor,
  type WriterOptions,
} from '#dist/index.js'
import { trialscan } from '../cli/run.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('named')
const registry = new RuleRegistry()

/** As PyTorch's hook names them, each with its shape; images are far from centred, and the ReLUs are dead. */
const TENSORS: Readonly<Record<string, readonly number[]>> = {
  'Net_fc0.weight': [4, 3],
  'gradient/Net_fc0.weight': [4, 3],
  Net_input_0: [150, 1, 4, 4],
  relu0_input_0: [50, 8],
  relu0_output_0: [50, 8],
  tanh0_input_0: [50, 8],
  tanh0_output_0: [50, 8],
  relu1_input_0: [50, 8],
  CrossEntropyLoss_input_0: [150, 2],
  CrossEntropyLoss_input_1: [150],
  CrossEntropyLoss_output_0: [],
}
/** What of it is saved whatever the configuration. */
const SCALARS = new Set(['CrossEntropyLoss_output_0'])

function elementOf(name: string, i: number, step: number): number {
  if (name === 'relu0_output_0') return 0
  if (name === 'tanh0_input_0') return 50
  if (name === 'tanh0_output_0') return 1
  if (name === 'relu1_input_0') return (i % 7) * 1000
  if (name === 'Net_input_0') return 100 + (i % 3)
  if (name === 'CrossEntropyLoss_input_1') return i % 25 === 0 ? 1 : 0
  return ((i * 7919 + step) % 13) / 13
}

/** A training of 20 steps of which every fifth is saved. */
async function training(label: string, options: WriterOptions): Promise<string> {
  const path = join(scratch, label)
  const writer = await createWriter(path, options)
  writer.setMode('TRAIN')
  for (let step = 0; step < 20; step += 5) {
    await writer.step({ step, modeStep: step })
    for (const [name, shape] of Object.entries(TENSORS)) {
      // By these collections alone: what belongs to none of them is not saved.
      const isSaved = writer.shouldSave(name, { collection: 'biases' })
      if (!isSaved && !SCALARS.has(name)) continue
      const size = shape.reduce((product, length) => product * length, 1)
      const values = Float32Array.from({ length: size }, (_, i) => elementOf(name, i, step))
      await writer.save(name, values, { shape, collection: 'biases' })
    }
  }
  await writer.close()
  return path
}

const everything: WriterOptions = { collections: { all: { includeRegex: ['.*'] } }, saveConfig: { saveInterval: 1 } }
let full: Trial
let fullPath: string
let bare: Trial
let barePath: string
beforeAll(async () => {
  fullPath = await training('full', everything)
  barePath = await training('bare', { saveConfig: { saveInterval: 5 } })
  full = await createTrial(fullPath)
  bare = await createTrial(barePath)
})
afterAll(() => Promise.all([full.close(), bare.close()]))

const RULES = ['DeadRelu', 'SaturatedActivation', 'PoorWeightInitialization', 'ClassImbalance', 'CheckInputImages']

async function named(trial: Trial, rule: string, parameters: Readonly<Record<string, string>> = {}): Promise<Rule> {
  const openTrial = (path: string) => createTrial(path)
  const [made] = await makeRules([{ name: rule, rule, parameters }], { baseTrial: trial, registry, openTrial })
  return made!
}

const told = ({ findings }: Evaluation) => findings.map(({ step, tensor, message }) => [step, tensor, message])

describe('a rule that is asked for by name', () => {
  it.each(RULES)('%s: judges what check has it judge', async name => {
    const all = registry.all(full).rules.find(({ ruleName }) => ruleName === name)!
    const [ofCheck, ofName] = [await evaluate(all), await evaluate(await named(full, name))]
    expect(ofName.missing).toEqual([])
    expect(told(ofName)).toEqual(told(ofCheck))
  })

  it('finds dead ReLUs', async () => {
    const { code, stdout } = await trialscan('check', fullPath, '--rule', 'DeadRelu', '--format', 'table', '--explain')
    expect(code).toBe(1)
    expect(stdout).toMatch(/^full: DeadRelu at step 0 .*relu0_output_0/)
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain('relu[^/]*/outputs(/|$)|/relu6?(_\\d+)?(:\\d+)?$: the names that')
  })

  it('also by the command of Tornasole', async () => {
    const args = ['--trial-dir', fullPath, '--rule-name', 'DeadRelu']
    expect((await trialscan('rule-invoker', ...args)).stdout).toMatch(
      /^DeadRelu fired on full .* at steps 0, 5, 10, 15$/m,
    )
  })

  it('keeps the parameters that it is given', async () => {
    const rule = await named(full, 'DeadRelu', { thresholdLayer: '99' })
    expect(JSON.parse(rule.report.ruleParameters)).toMatchObject({ threshold_layer: 99, expected_activity: 10 })
    expect((await evaluate(rule)).findings.length).toBeGreaterThan(0)
  })

  it('keeps the defaults where they find what they need, and names that are given', async () => {
    const vanishing = await named(full, 'VanishingGradient')
    expect(JSON.parse(vanishing.report.ruleParameters)).toMatchObject({ relative_threshold: null, mode: null })
    const dead = await named(full, 'DeadRelu', { tensor_regex: '.*relu_output' })
    expect(JSON.parse(dead.report.ruleParameters)).toMatchObject({ tensor_regex: ['.*relu_output'] })
    const { missing } = await evaluate(dead)
    expect(missing[0]!.missing).toContain('did you mean "relu0_output_0"?')
  })

  it('looks for what a running job may still save', async () => {
    const { parameters } = (await named(bare, 'DeadRelu')) as Rule & { parameters: Record<string, unknown> }
    expect(parameters).toMatchObject({ threshold_inactivity: 1, expected_activity: 100 })
    expect(String(parameters.tensor_regex)).toContain('relu')
    expect(parameters.tensor_regex).not.toEqual(['.*relu_output'])
  })
})

describe('advice', () => {
  it.each(RULES)('of %s: a training that saves what it says has the data', async name => {
    const args = ['check', barePath, '--rule', name, '--format', 'jsonl']
    const lines = (await trialscan(...args)).stdout
      .split('\n')
      .filter(line => line.includes('CollectionConfigurations'))
    expect(lines).toHaveLength(1)
    const trial = await createTrial(await training(`advised-${name}`, parseHookConfig(lines[0]!).options))
    expect(trial.steps()).toEqual([0, 5, 10, 15])
    const { missing, findings } = await evaluate(await named(trial, name))
    expect(missing).toEqual([])
    expect(findings.length > 0).toBe(told(await evaluate(await named(full, name))).length > 0)
    await trial.close()
  })

  it.each([
    ['DeadRelu', 'relu_output'],
    ['PoorWeightInitialization', 'relu_input'],
    ['CheckInputImages', 'input_image'],
    ['NLPSequenceRatio', 'input_sequence'],
    ['ClassImbalance', 'labels'],
  ])("of %s has the collection that SageMaker's configurations name", async (name, collection) => {
    for (const made of [await named(bare, name), new (registry.get(name))(bare)]) {
      expect(made.collectionConfigs().map(({ CollectionName }) => CollectionName)).toContain(collection)
      // By the names of the framework whose trial it is.
      expect(JSON.stringify(made.collectionConfigs())).not.toMatch(/outputs|inputs|hybrid|relu_output"\}|:\\d/)
    }
  })

  it('has the interval that is asked for', async () => {
    const [advised] = new UnchangedTensor(bare, { collection_names: 'weights' }).collectionConfigs({
      saveInterval: 7,
    }) as readonly { readonly CollectionParameters: unknown }[]
    expect(advised?.CollectionParameters).toEqual({ save_interval: '7' })
  })
})

describe('a collection that the trial does not have', () => {
  it.each([
    ['biass', 'biases'],
    ['weight', 'weights'],
    ['wieghts', 'weights'],
  ])('%s is refused, with the nearest', async (name, nearest) => {
    const message = `rule AllZero: the trial has no collection "${name}"; did you mean "${nearest}"?`
    expect(() => new AllZero(full, { collection_names: `gradients,${name}` })).toThrow(message)
    const { code, stderr } = await trialscan('check', fullPath, '--rule', `AllZero,collection_names=${name}`)
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)])
  })

  it('is refused by every parameter that names one', () => {
    expect(() => new Confusion(full, { category_no: 2, labelsCollection: 'biasse' })).toThrow('did you mean "biases"?')
  })

  it('is missing, if no other is called so', async () => {
    const { missing } = await evaluate(new AllZero(full, { collectionNames: ['weights', 'mine'] }))
    expect(missing).toEqual([
      expect.objectContaining({ missing: 'the collection "mine", which the trial does not have', partial: true }),
    ])
  })

  it('is taken for empty where trials of other frameworks have it', async () => {
    const { missing } = await evaluate(new AllZero(full, { collection_names: 'weights,metrics,layers' }))
    expect(missing.filter(({ missing }) => missing.includes('did you mean'))).toEqual([])
  })
})

it('a pattern that matches nothing tells the nearest words', async () => {
  const { missing } = await evaluate(new AllZero(full, { tensor_regex: 'wieght' }))
  expect(missing[0]!.missing).toMatch(/^tensors that match "wieght"; .*did you mean "weight"\?$/)
})
