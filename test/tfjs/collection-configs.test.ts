/** What rules say has to be saved, by the names of TensorFlow.js: a training saved with exactly that has their data. */

import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  BUILTIN_RULES,
  createTrial,
  createWriter,
  DeadRelu,
  evaluate,
  parseHookConfig,
  type Trial,
  type WriterOptions,
} from '#dist/index.js'
import { createHook } from '#dist/tfjs.js'
import { scratchDirectory } from '../support/scratch.js'
import { tf } from './tf.js'

const scratch = scratchDirectory('tfjs-collection-configs')
/** What they judge only XGBoost has, or checkpoints. */
const OF_OTHERS = ['FeatureImportanceOverweight', 'TreeDepth', 'OptimizerReset', 'UnchangedRows', 'ExplodingNorm']
const RULES = BUILTIN_RULES.filter(({ name }) => !OF_OTHERS.includes(name))

async function training(label: string, options: WriterOptions) {
  const path = join(scratch, label)
  const writer = await createWriter(path, { framework: 'tfjs', ...options })
  const hook = createHook(writer, { tf })
  // A seed, since ReLUs that are all dead leave everything unchanged, of which UnchangedTensor wants more steps.
  const kernelInitializer = tf.initializers.heNormal({ seed: 1 })
  const model = tf.sequential({
    layers: [
      tf.layers.embedding({
        inputDim: 5,
        outputDim: 2,
        inputLength: 4,
        embeddingsInitializer: kernelInitializer,
        name: 'embedding',
      }),
      tf.layers.flatten({ name: 'flatten' }),
      tf.layers.dense({ units: 4, activation: 'relu', kernelInitializer, name: 'fc1' }),
      tf.layers.reLU({ name: 'relu' }),
      tf.layers.dense({ units: 4, kernelInitializer, name: 'fc2' }),
      tf.layers.activation({ activation: 'tanh', name: 'tanh' }),
      tf.layers.dense({ units: 3, activation: 'softmax', kernelInitializer, name: 'fc3' }),
    ],
  })
  model.compile({ optimizer: 'sgd', loss: 'categoricalCrossentropy', metrics: ['accuracy'] })
  const x = tf.tensor2d([0, 1, 2, 3, 4, 3, 2, 1, 1, 1, 0, 0], [3, 4])
  const y = tf.oneHot([0, 1, 2], 3)
  await model.fit(x, y, { epochs: 2, verbose: 0, validationData: [x, y], callbacks: hook })
  await hook.close()
  return createTrial(path)
}

/** Needs of more of what was saved. */
const ENOUGH =
  /^(\d+ steps of a loss|several workers|at least \d+ labels|more steps with its tensors|images, which have more axes|two activation inputs of step 0)/

describe('collectionConfigs, by the names of tfjs', () => {
  let bare: Trial
  beforeAll(async () => {
    bare = await training('bare', {})
  })
  afterAll(() => bare.close())

  it.each(RULES.map(RuleClass => [RuleClass.name, RuleClass] as const))('of %s', async (name, RuleClass) => {
    // It is the one rule that has no tensors of its own.
    const given = name === 'TensorVariance' ? { collection_names: 'weights', max_threshold: '1' } : {}
    const parameters = { ...RuleClass.suggested, ...given }
    const ofDefaults = new RuleClass(bare, { ...given, ...needed(name), otherTrials: [bare] })
    const suggested = new RuleClass(bare, { ...parameters, otherTrials: [bare] })
    const texts = [ofDefaults, suggested].map(rule => JSON.stringify(rule.collectionConfigs({ framework: 'tfjs' })))
    for (const [i, configs] of [...new Set(texts)].entries()) {
      const json = `{"CollectionConfigurations":${configs.replaceAll('"save_interval":"500"', '"save_interval":"1"')}}`
      const trial = await training(`${name}-${i}`, parseHookConfig(json).options)
      const rule = new RuleClass(trial, { ...parameters, otherTrials: [trial] })
      const { missing } = await evaluate(rule)
      // How many steps, workers, labels and layers there are, and whether inputs are images, is no matter of what is saved.
      const lacking = missing.map(({ missing }) => missing).filter(text => !ENOUGH.test(text))
      expect({ configs, lacking }).toEqual({ configs, lacking: [] })
      await trial.close()
    }
  })

  it('has short patterns, and those of its user as they are', () => {
    const patterns = new DeadRelu(bare, { tensor_regex: ['.*relu_output', 'mine'] })
    expect(patterns.collectionConfigs({ framework: 'tfjs' })[0]!.CollectionParameters.include_regex).toBe(
      '(?i)(?<![pr])(?<!leaky)(?<!leaky_)relu[^/]*/outputs(/|$),mine',
    )
    // XGBoost has no such layers.
    const [ofXgboost] = patterns.collectionConfigs({ framework: 'xgboost' })
    expect(ofXgboost!.CollectionParameters.include_regex).toBe('.*relu_output,mine')
    expect(() => patterns.collectionConfigs({ framework: 'keras' as never })).toThrow(
      /rule.collectionConfigs: expected framework to be one of pytorch, tensorflow, mxnet, xgboost, tfjs, got "keras"/,
    )
  })
})

/** Parameters without which a rule can't be made. */
function needed(name: string): Readonly<Record<string, string>> {
  return name === 'AllZero' || name === 'UnchangedTensor' ? { collection_names: 'weights,gradients' } : {}
}
