/** What rules say has to be saved: a trial written with exactly that has their data. */

import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  BUILTIN_RULES,
  createTrial,
  createWriter,
  parseHookConfig,
  UnchangedTensor,
  type WriterOptions,
} from '#dist/index.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('collection-configs')
const NAMES = [
  'fc.weight',
  'gradient/fc.weight',
  'CrossEntropyLoss_output_0',
  'relu0_output_0',
  'relu0_input_0',
  'tanh0_input_0',
  'tanh0_output_0',
  'CNN_input_0',
  'embedding0_input_0',
  'labels',
  'predictions',
  'trees/Node',
  'feature_importance/weight/f0',
  'optimizer.state.0.exp_avg',
]

/** The rules that lack something else: a second worker, or checkpoints, which no hook saves. */
const LACKING: ReadonlyMap<string, string> = new Map([
  ['ReplicaDrift', 'several workers: there is one'],
  ['UnchangedRows', 'checkpoints, which this trial does not consist of'],
  ['ExplodingNorm', 'checkpoints, which this trial does not consist of'],
])

async function training(label: string, options: WriterOptions) {
  const path = join(scratch, label)
  const writer = await createWriter(path, options)
  for (const [i, mode] of (['TRAIN', 'TRAIN', 'EVAL', 'TRAIN', 'EVAL'] as const).entries()) {
    writer.setMode(mode)
    await writer.step({ step: i * 500 })
    // By these collections alone: what belongs to none of them is not saved.
    for (const name of NAMES)
      if (writer.shouldSave(name, { collection: 'biases' }))
        await writer.save(name, [i, i + 1], { collection: 'biases' })
    await writer.saveScalar('rate', 1)
  }
  await writer.close()
  return createTrial(path)
}

describe('collectionConfigs', () => {
  it.each(BUILTIN_RULES.map(RuleClass => [RuleClass.name, RuleClass] as const))('of %s', async (name, RuleClass) => {
    const bare = await training(`${name}-bare`, {})
    // It is the one rule that has no tensors of its own.
    const given = name === 'TensorVariance' ? { collection_names: 'weights', max_threshold: '1' } : {}
    const make = () => new RuleClass(bare, { ...RuleClass.suggested, ...given, otherTrials: [bare] })
    const texts = [make().collectionConfigs(), make().collectionConfigs({ framework: 'pytorch' })].map(configs =>
      JSON.stringify({ CollectionConfigurations: configs }),
    )
    for (const [i, json] of [...new Set(texts)].entries()) {
      const trial = await training(`${name}-${i}`, parseHookConfig(json).options)
      expect(RuleClass.lacks(trial, { ...given, otherTrials: [trial] })).toBe(LACKING.get(name) ?? null)
      // What is asked for is what is told.
      for (const { CollectionName, CollectionParameters } of JSON.parse(json).CollectionConfigurations) {
        expect(trial.collection(CollectionName).name).toBe(CollectionName)
        expect(CollectionParameters.save_interval).toBe('500')
      }
    }
  })

  it('has the parameters of the rule', async () => {
    const trial = await training('parameters', {})
    const rule = new UnchangedTensor(trial, { tensor_regex: ['a,b', 'c'], collection_names: 'mine' })
    expect(rule.collectionConfigs()).toEqual([
      { CollectionName: 'mine', CollectionParameters: { include_regex: 'a\\x2cb,c', save_interval: '500' } },
    ])
    const counted = new UnchangedTensor(trial, { tensor_regex: ['a{1,2}'] })
    expect(() => counted.collectionConfigs()).toThrow(/pattern without a count/)
  })
})
