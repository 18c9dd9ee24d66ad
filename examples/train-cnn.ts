/**
 * The notebook on tensor analysis, without Python: a small CNN learns the digits of MNIST, once with weights that suit its ReLUs, once with
 * weights anywhere from -1 to 1. A rule says so at the first step; then trialscan checks both trainings, and shows them side by side.
 * Usage: npx tsx examples/train-cnn.ts [DIRECTORY]
 */

import { join } from 'node:path'
import { createWriter } from 'trialscan'
import { createHook } from 'trialscan/tfjs'
import { mnistDigits, tf, trialscan } from './tfjs-mnist.js'

type Initializer = (seed: number) => ReturnType<typeof tf.initializers.heNormal>

const [directory = 'cnn'] = process.argv.slice(2)
const [training, validation] = [mnistDigits(4000), mnistDigits(200, 400)]

async function train(path: string, init: Initializer): Promise<void> {
  console.log(`\n${path}`)
  const model = tf.sequential({
    layers: [
      tf.layers.conv2d({
        name: 'conv0',
        filters: 8,
        kernelSize: 5,
        kernelInitializer: init(1),
        inputShape: [28, 28, 1],
      }),
      tf.layers.reLU({ name: 'relu0' }),
      tf.layers.maxPooling2d({ name: 'pool0', poolSize: 2 }),
      tf.layers.conv2d({ name: 'conv1', filters: 16, kernelSize: 5, kernelInitializer: init(2) }),
      tf.layers.reLU({ name: 'relu1' }),
      tf.layers.maxPooling2d({ name: 'pool1', poolSize: 2 }),
      tf.layers.flatten({ name: 'flatten' }),
      tf.layers.dense({ name: 'dense0', units: 64, kernelInitializer: init(3) }),
      tf.layers.reLU({ name: 'relu2' }),
      tf.layers.dense({ name: 'dense1', units: 10, kernelInitializer: init(4) }),
      tf.layers.softmax({ name: 'softmax' }),
    ],
  })
  model.compile({ optimizer: tf.train.sgd(0.1), loss: 'categoricalCrossentropy', metrics: ['accuracy'] })

  const writer = await createWriter(path, {
    framework: 'tfjs',
    includeCollections: ['weights', 'biases', 'gradients', 'layers', 'inputs', 'labels', 'outputs', 'metrics'],
    saveConfig: { saveInterval: 10, EVAL: { saveInterval: 1 } },
  })
  const hook = createHook(writer, { tf })
  await hook.rules([
    {
      rule: 'PoorWeightInitialization',
      actions: ({ step, findings }) => console.log(`step ${step}: ${findings[0]?.message}`),
    },
  ])
  await model.fit(training.images, tf.oneHot(training.classes, 10), {
    epochs: 1,
    batchSize: 32,
    shuffle: false,
    validationData: [validation.images, tf.oneHot(validation.classes, 10)],
    verbose: 0,
    callbacks: [
      hook,
      new tf.CustomCallback({
        onEpochEnd: async (_epoch, { loss, val_loss, val_acc } = {}) =>
          console.log(`loss ${loss}; of digits not seen ${val_loss}, accuracy ${val_acc}`),
      }),
    ],
  })
  await hook.close()
}

const [good, bad] = [join(directory, 'good'), join(directory, 'bad')]
await train(good, seed => tf.initializers.heNormal({ seed }))
await train(bad, seed => tf.initializers.randomUniform({ minval: -1, maxval: 1, seed }))

trialscan('check', good, '--format', 'table')
trialscan('check', bad, '--format', 'table')
trialscan('diff', good, bad, '--format', 'table')
trialscan('report', good, bad, '--out', join(directory, 'report.html'))
