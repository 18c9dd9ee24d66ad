/**
 * The autoencoder notebook, without Python: a convolutional autoencoder learns the digits of MNIST, once with pixels from 0 to 1, once with the bytes
 * that images are made of. After each epoch it saves what its bottleneck makes of digits that it has not seen. trialscan says what went wrong, and draws
 * the bottleneck by t-SNE, beside inputs and reconstructions.
 * Usage: npx tsx examples/train-autoencoder.ts [DIRECTORY]
 */

import { join } from 'node:path'
import { createWriter } from 'trialscan'
import { createHook } from 'trialscan/tfjs'
import { mnistDigits, tf, trialscan } from './tfjs-mnist.js'

const EPOCHS = 3
/** A quarter of the notebook's. */
const FILTERS = 8
/** The log odds of a pixel that is as dark as most: a network that has to learn that first loses its ReLUs on the way. */
const DARK = tf.initializers.constant({ value: -2 })

const [directory = 'autoencoder'] = process.argv.slice(2)
const [training, validation] = [mnistDigits(1280), mnistDigits(200, 128)]
const init = (seed: number) => tf.initializers.heNormal({ seed })

async function train(path: string, brightest: number): Promise<void> {
  console.log(`\n${path}`)
  const model = tf.sequential({
    layers: [
      tf.layers.conv2d({
        name: 'conv0',
        filters: FILTERS,
        kernelSize: 5,
        activation: 'relu',
        kernelInitializer: init(1),
        inputShape: [28, 28, 1],
      }),
      tf.layers.maxPooling2d({ name: 'pool0', poolSize: 2 }),
      tf.layers.conv2d({
        name: 'conv1',
        filters: FILTERS,
        kernelSize: 5,
        activation: 'relu',
        kernelInitializer: init(2),
      }),
      tf.layers.maxPooling2d({ name: 'pool1', poolSize: 2 }),
      tf.layers.flatten({ name: 'flatten' }),
      tf.layers.dense({ name: 'bottleneck', units: 20, kernelInitializer: init(3) }),
      tf.layers.dense({ name: 'dense', units: 16 * FILTERS, activation: 'relu', kernelInitializer: init(4) }),
      tf.layers.reshape({ name: 'reshape', targetShape: [4, 4, FILTERS] }),
      tf.layers.upSampling2d({ name: 'up0', interpolation: 'bilinear' }),
      tf.layers.conv2dTranspose({
        name: 'deconv0',
        filters: FILTERS,
        kernelSize: 5,
        activation: 'relu',
        kernelInitializer: init(5),
      }),
      tf.layers.upSampling2d({ name: 'up1', interpolation: 'bilinear' }),
      tf.layers.conv2dTranspose({
        name: 'deconv1',
        filters: 1,
        kernelSize: 5,
        activation: 'sigmoid',
        kernelInitializer: init(6),
        biasInitializer: DARK,
      }),
    ],
  })
  model.compile({ optimizer: tf.train.adam(0.002), loss: 'binaryCrossentropy' })

  const writer = await createWriter(path, {
    framework: 'tfjs',
    includeCollections: ['weights', 'gradients', 'layers', 'inputs', 'outputs'],
    saveConfig: { saveInterval: 5, EVAL: { saveInterval: 1 } },
  })
  const hook = createHook(writer, { tf })
  const [seen, unseen] = [tf.mul(training.images, brightest), tf.mul(validation.images, brightest)]
  for (let epoch = 1; epoch <= EPOCHS; epoch++) {
    const { history } = await model.fit(seen, seen, { batchSize: 32, shuffle: false, verbose: 0, callbacks: hook })
    // The evaluation is part of this step. Its labels are images, so the digits have a name of their own.
    const evaluated = await hook.step('EVAL', () => {
      hook.save('digits', validation.classes)
      return model.evaluate(unseen, unseen, { batchSize: 200 }) as ReturnType<typeof tf.scalar>
    })
    const [loss] = await evaluated.data()
    console.log(`epoch ${epoch}: loss ${history.loss}; of digits not seen ${loss}`)
  }
  await hook.close()
}

const [good, bytes] = [join(directory, 'good'), join(directory, 'bytes')]
await train(good, 1)
await train(bytes, 255)

trialscan('check', good, '--format', 'table')
trialscan('check', bytes, '--format', 'table')
trialscan('diff', good, bytes, '--format', 'table')
const embedding = ['--embed', 'bottleneck/outputs', '--labels', 'digits']
trialscan('report', good, bytes, ...embedding, '--out', join(directory, 'report.html'))
