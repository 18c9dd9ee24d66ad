/** Trainings with TensorFlow.js: what the hook saves is what was computed, and a training with it is the same as without. */

import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createTrial, createWriter, type Trial, UsageError, verifyTrial, type WriterOptions } from '#dist/index.js'
import { createHook } from '#dist/tfjs.js'
import { scratchDirectory } from '../support/scratch.js'
import { tf } from './tf.js'

const scratch = scratchDirectory('tfjs')
let count = 0
const ALL: WriterOptions = { saveAll: true, saveConfig: { saveInterval: 1 } }

/** A hook, and where it saves. */
async function hookAt(options: WriterOptions = ALL) {
  const place = join(scratch, `${count++}`)
  const writer = await createWriter(place, { framework: 'tfjs', ...options })
  return { place, writer, hook: createHook(writer, { tf }) }
}

const SAMPLES = 12
const data = () => {
  const labels = Array.from({ length: SAMPLES }, (_, i) => i % 3)
  return {
    x: tf.tensor2d(
      Float32Array.from({ length: SAMPLES * 4 }, (_, i) => Math.sin(i * 1.7)),
      [SAMPLES, 4],
    ),
    y: tf.tensor2d(Float32Array.from(labels.flatMap(label => [0, 1, 2].map(one => Number(one === label)))), [
      SAMPLES,
      3,
    ]),
  }
}

/** The same weights each time, whatever was made before. */
function modelOf(optimizer = tf.train.sgd(0.5)) {
  const init = (seed: number) => tf.initializers.glorotUniform({ seed })
  const model = tf.sequential({
    layers: [
      tf.layers.dense({ units: 5, inputShape: [4], name: 'fc1', activation: 'relu', kernelInitializer: init(1) }),
      tf.layers.dense({ units: 3, name: 'fc2', kernelInitializer: init(2) }),
      tf.layers.softmax({ name: 'softmax' }),
    ],
  })
  model.compile({ optimizer, loss: 'categoricalCrossentropy', metrics: ['accuracy'] })
  return model
}

type Values = Readonly<Record<string, readonly number[]>>

type Scalar = ReturnType<typeof tf.scalar>
type Variable2D = InstanceType<typeof tf.Variable> & ReturnType<typeof tf.tensor2d>

/** All tensors of a step. */
async function valuesAt(trial: Trial, step: number): Promise<Values> {
  const values: [string, number[]][] = []
  for (const name of trial.tensorNames({ step })) {
    const { data } = await trial.tensor(name).value(step)
    values.push([name, Array.from(data as Float32Array, Number)])
  }
  return Object.fromEntries(values)
}

const numbers = (tensor: { dataSync(): ArrayLike<number> }): number[] => Array.from(tensor.dataSync(), Number)
const close = (values: readonly number[]) => values.map(one => expect.closeTo(one, 5))

describe('model.fit', () => {
  it('saves losses, metrics, weights, gradients, layers, labels and the learning rate as they are', async () => {
    const { x, y } = data()
    const { place, hook } = await hookAt()
    const model = modelOf()
    await model.fit(x, y, { epochs: 2, batchSize: SAMPLES, shuffle: false, verbose: 0, callbacks: hook })
    const report = await hook.close()
    expect(report).toEqual({ findings: [], missing: [], problems: [] })

    // The same training, by hand.
    const same = modelOf()
    const variables = same.trainableWeights.map(weight => weight.read() as InstanceType<typeof tf.Variable>)
    const [kernel1, bias1, kernel2, bias2] = variables as [Variable2D, Variable2D, Variable2D, Variable2D]
    const trial = await createTrial(place)
    expect(trial.steps({ mode: 'TRAIN' })).toEqual([0, 1])
    const optimizer = tf.train.sgd(0.5)
    for (const step of [0, 1]) {
      const hidden = () => tf.relu(tf.add(tf.matMul(x, kernel1), bias1))
      const logits = () => tf.add(tf.matMul(hidden() as typeof x, kernel2), bias2)
      const loss = () => tf.mean(tf.metrics.categoricalCrossentropy(y, tf.softmax(logits()))) as Scalar
      const before = {
        hidden: numbers(hidden()),
        logits: numbers(logits()),
        predictions: numbers(tf.softmax(logits())),
      }
      const { value, grads } = tf.variableGrads(loss, variables)
      const gradients = variables.map(variable => numbers(grads[variable.name]!))
      optimizer.applyGradients(grads)
      const got = await valuesAt(trial, step)
      expect(Object.keys(got)).toHaveLength(20)
      expect(got).toMatchObject({
        loss: close(numbers(value)),
        acc: [expect.any(Number)],
        learning_rate: [0.5],
        inputs: numbers(x),
        labels: numbers(y),
        predictions: close(before.predictions),
        'fc1/inputs': numbers(x),
        'fc1/relu/outputs': close(before.hidden),
        'fc2/inputs': close(before.hidden),
        'fc2/outputs': close(before.logits),
        'softmax/inputs': close(before.logits),
        'softmax/outputs': close(before.predictions),
        'gradient/fc1/kernel': close(gradients[0]!),
        'gradient/fc1/bias': close(gradients[1]!),
        'gradient/fc2/kernel': close(gradients[2]!),
        'gradient/fc2/bias': close(gradients[3]!),
        'fc1/kernel': close(numbers(kernel1)),
        'fc1/bias': close(numbers(bias1)),
        'fc2/kernel': close(numbers(kernel2)),
        'fc2/bias': close(numbers(bias2)),
      })
    }
    const members = (name: string) => trial.collection(name).members
    expect(members('gradients')).toHaveLength(4)
    expect([...members('weights')].sort()).toEqual(['fc1/kernel', 'fc2/kernel'])
    expect([...members('biases')].sort()).toEqual(['fc1/bias', 'fc2/bias'])
    expect([...members('losses')]).toEqual(['loss'])
    expect([...members('metrics')]).toEqual(['acc'])
    expect([...members('outputs')]).toEqual(['predictions'])
    expect(members('layers')).toHaveLength(6)
    expect((await verifyTrial(place, { deep: true })).ok).toBe(true)
  })
  it('has steps of training and of evaluation, each batch one', async () => {
    const { x, y } = data()
    const { place, hook } = await hookAt({ saveAll: true, saveConfig: { saveInterval: 2, EVAL: { saveInterval: 1 } } })
    const model = modelOf()
    const history = await model.fit(x, y, {
      epochs: 2,
      batchSize: 4,
      validationData: [x, y],
      verbose: 0,
      callbacks: [hook, new tf.CustomCallback({ onBatchEnd: async () => {} })],
    })
    const [loss, accuracy] = model.evaluate(x, y, { batchSize: SAMPLES }) as Scalar[]
    await hook.close()
    const trial = await createTrial(place)
    // Six batches of training, of which every other is saved; the last of an epoch begins before its evaluation.
    expect(trial.steps()).toEqual([0, 2, 3, 4, 5, 7, 9, 10, 11, 12])
    expect(trial.steps({ mode: 'TRAIN' })).toEqual([0, 2, 4])
    expect(trial.steps({ mode: 'EVAL' })).toEqual([0, 1, 2, 3, 4, 5, 6])
    const evaluated = await valuesAt(trial, 12)
    // What `evaluate` gives back is a mean over its batches, of one batch too, and so may differ in the last bit.
    expect(evaluated).toMatchObject({
      loss: close(numbers(loss!)),
      acc: close(numbers(accuracy!)),
      predictions: expect.anything(),
    })
    expect(evaluated['fc1/kernel']).toEqual(numbers(model.getWeights()[0]!))
    expect(Object.keys(evaluated).filter(name => /gradient|optimizer|learning_rate/.test(name))).toEqual([])
    const losses = await Promise.all(
      [3, 4, 5].map(modeStep =>
        trial
          .tensor('loss')
          .value(modeStep, { mode: 'EVAL' })
          .then(({ data }) => Number(data[0])),
      ),
    )
    const mean = losses.reduce((sum, one) => sum + one, 0) / 3
    expect(mean).toBeCloseTo(history.history.val_loss![1] as number, 5)
  })

  it('saves losses and metrics alone, at every step, unless something else is asked for', async () => {
    const { x, y } = data()
    const { place, hook } = await hookAt({})
    await modelOf().fit(x, y, { epochs: 3, batchSize: SAMPLES, verbose: 0, callbacks: hook })
    await hook.close()
    const trial = await createTrial(place)
    expect(trial.steps()).toEqual([0, 1, 2])
    expect(trial.tensorNames()).toEqual(['acc', 'loss'])
  })

  it('takes data sets', async () => {
    const { place, hook } = await hookAt()
    const model = modelOf()
    const batches = () => [0, 1].map(() => ({ value: { xs: data().x, ys: data().y }, done: false }))
    // What tf.data makes, as far as fitDataset and evaluateDataset look at it.
    const dataset = {
      size: 2,
      iterator: async () => {
        const left = batches()
        return { next: async () => left.shift() ?? { value: null, done: true } }
      },
    } as unknown as Parameters<typeof model.fitDataset>[0]
    await model.fitDataset(dataset, { epochs: 1, verbose: 0, callbacks: hook, validationData: dataset as never })
    await hook.close()
    const trial = await createTrial(place)
    expect(trial.steps({ mode: 'TRAIN' })).toEqual([0, 1])
    expect(trial.steps({ mode: 'EVAL' })).toEqual([0, 1])
    expect(trial.tensorNames({ step: 3 })).toContain('fc1/relu/outputs')
  })

  it('leaks no tensor, and trains the same as without it', async () => {
    const train = async (save: boolean, optimizer = tf.train.adam(0.01)) => {
      const { x, y } = data()
      const model = modelOf(optimizer as never)
      const hook = save ? (await hookAt()).hook : null
      await model.fit(x, y, {
        epochs: 3,
        batchSize: 4,
        shuffle: false,
        validationSplit: 0.25,
        verbose: 0,
        ...(hook && { callbacks: hook }),
      })
      tf.dispose(model.evaluate(x, y, { batchSize: 5 }))
      await hook?.close()
      const weights = model.getWeights().map(numbers)
      model.dispose()
      optimizer.dispose()
      tf.dispose([x, y])
      return weights
    }
    const expected = await train(false)
    const before = tf.memory().numTensors
    expect(await train(true)).toEqual(expected)
    await train(false)
    const left = tf.memory().numTensors - before
    // What TensorFlow.js itself leaves of a training.
    await train(false)
    expect(tf.memory().numTensors - before - left).toBe(left / 2)
  })

  it('leaves a model as it was', async () => {
    const { x, y } = data()
    const { hook } = await hookAt()
    const model = modelOf()
    const { lossFunctions } = (model as unknown as { model: { lossFunctions: unknown[] } }).model
    const before = [...lossFunctions]
    await model.fit(x, y, { epochs: 1, verbose: 0, callbacks: hook })
    await hook.close()
    expect(lossFunctions).toEqual(before)
    for (const one of [...model.layers, model.optimizer, (model as unknown as { model: object }).model]) {
      expect(
        Object.keys(one).filter(key =>
          ['call', 'minimize', 'applyGradients', 'testLoop', 'makeTestFunction'].includes(key),
        ),
      ).toEqual([])
    }
    const steps = tf.memory().numTensors
    tf.dispose(model.predict(x))
    expect(tf.memory().numTensors).toBe(steps)
  })

  it('goes on after a training that has failed', async () => {
    const { x, y } = data()
    const { place, hook } = await hookAt()
    const model = modelOf()
    const wrong = tf.zeros([SAMPLES, 3])
    const failing = new tf.CustomCallback({
      onBatchBegin: async batch => {
        if (batch === 1) throw new Error('no more')
      },
    })
    await expect(
      model.fit(x, wrong, { epochs: 1, batchSize: 4, verbose: 0, callbacks: [hook, failing] }),
    ).rejects.toThrow('no more')
    await model.fit(x, y, { epochs: 1, batchSize: SAMPLES, verbose: 0, callbacks: hook })
    await hook.close()
    const trial = await createTrial(place)
    expect(trial.steps({ mode: 'TRAIN' })).toEqual([0, 2])
  })
})

describe('optimizers', () => {
  const OPTIMIZERS = {
    momentum: () => tf.train.momentum(0.1, 0.9),
    adam: () => tf.train.adam(0.1),
    rmsprop: () => tf.train.rmsprop(0.1, 0.9, 0.1, 1e-7, true),
    adagrad: () => tf.train.adagrad(0.1),
    adadelta: () => tf.train.adadelta(0.1),
  }

  it.each(Object.entries(OPTIMIZERS))('what %s keeps is what it would save', async (_name, make) => {
    const { x, y } = data()
    const { place, hook } = await hookAt({
      includeCollections: ['optimizer_variables'],
      saveConfig: { saveInterval: 1 },
    })
    const optimizer = make()
    await modelOf(optimizer as never).fit(x, y, { epochs: 2, batchSize: SAMPLES, verbose: 0, callbacks: hook })
    await hook.close()
    const trial = await createTrial(place)
    const { loss: _loss, acc: _acc, learning_rate, ...got } = await valuesAt(trial, 1)
    expect(learning_rate).toEqual([0.1])
    const [, ...weights] = await optimizer.getWeights()
    expect(weights.length).toBeGreaterThanOrEqual(4)
    const suffix = (name: string) => name.replace(/^.*(fc\d)(_\d+)?\/(kernel|bias)(_\d+)?\//, 'optimizer/$1/$3/')
    expect(got).toEqual(Object.fromEntries(weights.map(({ name, tensor }) => [suffix(name), numbers(tensor)])))
  })
})

describe('loops of one’s own', () => {
  const variablesOf = () => ({
    w: tf.variable(tf.tensor2d([1, 2, 3, 4], [2, 2]), true, `w${count}`),
    b: tf.variable(tf.tensor1d([0, 0]), true, `bias_${count}`),
  })
  const x = tf.tensor2d([1, 0, 0, 1, 1, 1], [3, 2])
  type Variables = ReturnType<typeof variablesOf>
  const lossOf = ({ w, b }: Variables) => tf.mean(tf.square(tf.add(tf.matMul(x, w as Variable2D), b))) as Scalar

  it('minimize is a step, with gradients as variableGrads has them', async () => {
    const { place, hook } = await hookAt()
    const variables = variablesOf()
    const { grads } = tf.variableGrads(() => lossOf(variables), Object.values(variables))
    const before = tf.memory().numTensors
    const optimizer = tf.train.sgd(0.1)
    const losses: number[] = []
    for (let i = 0; i < 3; i++) {
      const loss = await hook.minimize(optimizer, () => lossOf(variables), Object.values(variables))
      losses.push(loss.dataSync()[0]!)
      loss.dispose()
    }
    await hook.close()
    expect(tf.memory().numTensors).toBe(before + 1)
    const trial = await createTrial(place)
    expect(trial.steps({ mode: 'TRAIN' })).toEqual([0, 1, 2])
    const [w, b] = [variables.w.name, variables.b.name]
    const first = await valuesAt(trial, 0)
    expect(first).toMatchObject({
      [`gradient/${w}`]: numbers(grads[w]!),
      [`gradient/${b}`]: numbers(grads[b]!),
      loss: [losses[0]],
    })
    expect((await valuesAt(trial, 2))[w]).toEqual(numbers(variables.w))
    expect([...trial.collection('biases').members]).toEqual([b])
  })

  it('an optimizer that is wrapped makes a step each time, without being waited for', async () => {
    const { place, hook } = await hookAt()
    const variables = variablesOf()
    const optimizer = hook.wrap(tf.train.sgd(0.1))
    for (let i = 0; i < 10; i++) optimizer.minimize(() => lossOf(variables), false, Object.values(variables))
    const { value, grads } = tf.variableGrads(() => lossOf(variables), Object.values(variables))
    optimizer.applyGradients(grads)
    tf.dispose([value, grads])
    await hook.flush()
    expect((await createTrial(place)).steps()).toHaveLength(11)
    await hook.close()
    const after = variables.w.dataSync().slice()
    optimizer.minimize(() => lossOf(variables), false, Object.values(variables))
    expect(variables.w.dataSync()).not.toEqual(after)
    expect((await createTrial(place)).steps()).toHaveLength(11)
  })

  it('a step of any mode has what is saved in it', async () => {
    const { place, hook } = await hookAt()
    const result = await hook.step('EVAL', () => {
      const loss = tf.scalar(2)
      hook.save('loss', loss, { collection: 'losses' })
      hook.save('epoch', 7)
      hook.saveScalar('seconds', 1.5)
      return loss
    })
    result.dispose()
    expect(() => hook.save('loss', 1)).toThrow(UsageError)
    await expect(
      hook.step('EVAL', () => {
        hook.save('loss', 1)
        hook.save('loss', 2)
      }),
    ).rejects.toThrow('loss: expected one value a step')
    await hook.close()
    const trial = await createTrial(place)
    expect(await valuesAt(trial, 0)).toEqual({ loss: [2], epoch: [7], 'scalar/seconds': [1.5] })
    expect(trial.steps({ mode: 'EVAL' })).toEqual([0])
  })
})

describe('rules', () => {
  it('judge each step once it is written, and stop the training there', async () => {
    const { x, y } = data()
    const { place, hook } = await hookAt({ includeCollections: ['gradients'], saveConfig: { saveInterval: 2 } })
    const fired: number[] = []
    await hook.rules([
      {
        rule: 'LossNotDecreasing',
        name: 'stuck',
        parameters: { num_steps: 2, diff_percent: 99 },
        actions: ['stop', ({ step }) => void fired.push(step)],
      },
      'VanishingGradient',
      { rule: 'ExplodingTensor', actions: () => Promise.reject(new Error('never called')) },
    ])
    const history = await modelOf().fit(x, y, { epochs: 50, batchSize: 4, shuffle: false, verbose: 0, callbacks: hook })
    expect(hook.isStopped).toBe(true)
    const { findings, missing, problems } = await hook.close()
    expect(fired).toHaveLength(1)
    expect(findings).toMatchObject([{ name: 'stuck', rule: 'LossNotDecreasing', step: fired[0], mode: 'TRAIN' }])
    expect([missing, problems]).toEqual([[], []])
    expect((await createTrial(place)).steps().at(-1)).toBe(fired[0])
    expect(history.epoch.length).toBeLessThan(50)
  })

  it('tell of what an action throws, and of what was not saved', async () => {
    const { x, y } = data()
    const { hook } = await hookAt()
    const fail = () => {
      throw new Error('no mail')
    }
    await hook.rules([
      { rule: 'VanishingGradient', parameters: { threshold: 1e6, relative_threshold: null }, actions: fail },
      'TreeDepth',
    ])
    await modelOf().fit(x, y, { epochs: 1, batchSize: SAMPLES, verbose: 0, callbacks: hook })
    const { problems, missing, findings } = await hook.close()
    expect(problems).toMatchObject([{ rule: 'VanishingGradient', error: { message: 'no mail' } }])
    expect(missing).toEqual([expect.stringMatching(/^TreeDepth: /)])
    expect(findings.length).toBeGreaterThan(0)
  })

  it('are refused at once if there are none such', async () => {
    const { hook } = await hookAt()
    await expect(hook.rules(['Vanishing'])).rejects.toThrow('there is no rule')
    await hook.close()
    const { hook: other } = await hookAt()
    await expect(other.rules([{ rule: 'VanishingGradient', parameters: { treshold: 1 } }])).rejects.toThrow('threshold')
    await other.close()
    const { hook: third } = await hookAt()
    await expect(third.rules([{ rule: 'VanishingGradient', actions: 'halt' as never }])).rejects.toThrow(
      'hook.rules: expected actions to be',
    )
    await third.close()
  })
})

describe('createHook', () => {
  it('refuses what it can’t work with', async () => {
    const writer = await createWriter(join(scratch, `${count++}`))
    expect(() => createHook(writer, { tf })).toThrow("expected a writer with framework: 'tfjs', got one with 'pytorch'")
    expect(() => createHook(writer, {} as never)).toThrow('createHook: expected tf, got none')
    expect(() => createHook(writer, { tf: {} } as never)).toThrow('createHook: expected tf to be TensorFlow.js')
    expect(() => createHook({} as never, { tf })).toThrow('expected what createWriter returns')
    await writer.close()
    const { hook } = await hookAt()
    expect(() => hook.wrap({} as never)).toThrow('hook.wrap: expected an optimizer')
    expect(() => hook.registerModel({} as never)).toThrow('hook.registerModel: expected a model')
    await hook.close()
  })
})
