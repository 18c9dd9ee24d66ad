/** A training with the hook for TensorFlow.js, beside the same training without. */

import { rmSync } from 'node:fs'
import { setThreadsCount } from '@tensorflow/tfjs-backend-wasm'
import * as core from '@tensorflow/tfjs-core'
import * as layers from '@tensorflow/tfjs-layers'
import { createTrial, createWriter, type WriterOptions } from '#dist/index.js'
import { createHook } from '#dist/tfjs.js'
import { type Case, type Contender, type Definition, type Options, WrongAnswer } from '../definition.js'
import * as ours from '../engines/ours.js'
import { scratchPath } from '../scratch.js'

const tf = { ...core, ...layers }
const BATCH = 32
const CLASSES = 10

/** A network of which losses and metrics are saved, or everything, at the same steps. */
const LOSSES: WriterOptions = { saveConfig: { saveInterval: 500 } }
const ALL: WriterOptions = { ...LOSSES, saveAll: true }

export const capture: Definition = {
  name: 'capture',
  measures: `CPU time of a step of model.fit, of all threads; tfjs-backend-wasm, batches of ${BATCH}; every 500th is saved`,
  async *cases({ quick }: Options): AsyncGenerator<Case> {
    setThreadsCount(1)
    await tf.setBackend('wasm')
    yield training('784-64-10', [784, 64], 501)
    yield training('64-32-10', [64, 32], quick ? 501 : 1001)
  },
}

function training(network: string, widths: readonly [number, ...number[]], steps: number): Case {
  const [inputs] = widths
  const x = tf.tensor2d(
    Float32Array.from({ length: steps * BATCH * inputs }, (_, i) => (i % 251) / 251),
    [steps * BATCH, inputs],
  )
  const y = tf.oneHot(
    tf.tensor1d(
      Int32Array.from({ length: steps * BATCH }, (_, i) => i % CLASSES),
      'int32',
    ),
    CLASSES,
  )
  const place = scratchPath('captured')
  let trained: Float32Array

  /** The CPU time of a step, in microseconds: another process on the machine counts for less than it would in time. */
  const run = async (options: WriterOptions | null) => {
    rmSync(place, { recursive: true, force: true })
    const model = modelOf(widths)
    const fit = { batchSize: BATCH, epochs: 1, shuffle: false, verbose: 0 } as const
    const before = process.cpuUsage()
    if (options === null) await model.fit(x, y, fit)
    else {
      const hook = createHook(await createWriter(place, { framework: 'tfjs', ...options }), { tf })
      await model.fit(x, y, { ...fit, callbacks: hook })
      await hook.close()
    }
    const { user, system } = process.cpuUsage(before)
    trained = Float32Array.from(model.getWeights().flatMap(weight => Array.from(weight.dataSync())))
    model.dispose()
    return (user + system) / steps
  }

  const contender = (engine: string, options: WriterOptions | null, names: number): Contender => ({
    engine,
    turn: () => run(options),
    check: async () => {
      await run(null)
      const expected = trained
      await run(options)
      if (!trained.every((weight, i) => Object.is(weight, expected[i]))) {
        throw new WrongAnswer(`${engine}: expected the weights of a training without the hook, got others`)
      }
      if (options === null) return
      const trial = await createTrial(place)
      const got = `${trial.tensorNames().length} tensors at steps ${trial.steps()}`
      const wanted = `${names} tensors at steps ${Array.from({ length: Math.ceil(steps / 500) }, (_, i) => 500 * i)}`
      if (got !== wanted) throw new WrongAnswer(`${engine}: expected ${wanted}, got ${got}`)
    },
  })
  // Loss and accuracy; of all tensors inputs, labels, predictions and learning rate, and of each layer weights, gradients, inputs and outputs.
  const all = 2 + 4 + 6 * widths.length
  return {
    size: `${steps} steps of ${network}`,
    unit: 'µs',
    contenders: [
      contender(`${ours.NAME}, losses and metrics`, LOSSES, 2),
      contender('TensorFlow.js alone', null, 0),
      contender(`${ours.NAME}, all tensors`, ALL, all),
    ],
  }
}

function modelOf(widths: readonly [number, ...number[]]) {
  const model = tf.sequential()
  for (const [i, inputs] of widths.entries()) {
    const units = widths[i + 1] ?? CLASSES
    const activation = units === CLASSES ? 'softmax' : 'relu'
    const kernelInitializer = tf.initializers.heNormal({ seed: i + 1 })
    model.add(tf.layers.dense({ name: `dense${i}`, units, activation, kernelInitializer, inputShape: [inputs] }))
  }
  model.compile({ optimizer: tf.train.sgd(0.01), loss: 'categoricalCrossentropy', metrics: ['accuracy'] })
  return model
}
