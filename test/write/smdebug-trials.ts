/** The trials that smdebug's own reader is given: between them, all that a writer can be told. Each is written to a place. */

import { writeFile } from 'node:fs/promises'
import {
  createWriter,
  createWriterFromJson,
  type DType,
  type Mode,
  modes,
  REDUCTIONS,
  type WriterOptions,
} from '#dist/index.js'
import { createHook } from '#dist/tfjs.js'
import { DTYPES, type DTypeName, elementBytes } from '../../fixtures/event-writer.js'
import { tf } from '../tfjs/tf.js'

const EVERY: WriterOptions = { saveConfig: { saveInterval: 1 } }
const NUMERIC = (Object.keys(DTYPES) as DTypeName[]).filter(dtype => dtype !== 'string')

export const NAMES: readonly string[] = [
  'ünïcode/名前/𝄞',
  'x'.repeat(4096),
  '../../escape',
  '/root',
  'a\nb\t"c"\\',
  ' ',
  '\u0000',
  '__proto__',
  'constructor',
  'conv/kernel:0',
]

function elementsOf(dtype: DTypeName, shape: readonly number[]) {
  const count = shape.reduce((product, size) => product * size, 1) * DTYPES[dtype].parts
  const is64 = dtype === 'int64' || dtype === 'uint64'
  const numbers = Array.from({ length: count }, (_, i) => {
    const number = dtype === 'bool' ? i % 2 : i + 1
    return is64 ? BigInt(number) : number
  })
  return { dtype: dtype as DType, shape, data: elementBytes(dtype, numbers) }
}

export const TRIALS: Readonly<Record<string, (path: string) => Promise<void>>> = {
  async training(path) {
    const writer = await createWriter(path, {
      saveConfig: { saveInterval: 2, EVAL: { saveInterval: 1 } },
      includeCollections: ['weights', 'gradients'],
      collections: { relu: { includeRegex: ['^relu'], reductionConfig: { reductions: ['min', 'abs_mean', 'l2'] } } },
    })
    for (let i = 0; i < 7; i++) {
      writer.setMode(i % 3 === 2 ? 'EVAL' : 'TRAIN')
      await writer.step()
      const data = Float32Array.from({ length: 6 }, (_, k) => k / 4 - i)
      await writer.save('fc.weight', data, { shape: [2, 3] })
      await writer.save(
        'gradient/fc.weight',
        data.map(x => -x),
        { shape: [3, 2] },
      )
      await writer.save('relu_0', data)
      await writer.save('CrossEntropyLoss_output_0', [0.5 ** i], { dtype: 'float32' })
      await writer.save('mine', i, { collection: 'custom' })
      await writer.saveScalar('lr', 1 / (i + 1))
    }
    await writer.close()
  },

  async dtypes(path) {
    const writer = await createWriter(path, EVERY)
    await writer.step()
    await writer.save('float64', Float64Array.of(0.1, -2.5e-300, Number.POSITIVE_INFINITY))
    await writer.save('float32', Float32Array.of(1.5, Number.NaN), { shape: [1, 2] })
    await writer.save('float16', Uint16Array.of(0x3c00, 0xc000), { dtype: 'float16' })
    await writer.save('bfloat16', Uint16Array.of(0x3f80, 0xc000), { dtype: 'bfloat16' })
    await writer.save('int64', BigInt64Array.of(-(2n ** 63n), 2n ** 63n - 1n))
    await writer.save('uint64', BigUint64Array.of(0n, 2n ** 64n - 1n))
    await writer.save('int32', Int32Array.of(-5, 7))
    await writer.save('uint32', Uint32Array.of(5, 2 ** 32 - 1))
    await writer.save('int16', Int16Array.of(-5, 7))
    await writer.save('uint16', Uint16Array.of(5, 2 ** 16 - 1))
    await writer.save('int8', Int8Array.of(-5, 7))
    await writer.save('uint8', Uint8Array.of(0, 255))
    await writer.save('bool', [true, false])
    await writer.save('complex64', Float32Array.of(1, -2), { dtype: 'complex64' })
    await writer.save('complex128', Float64Array.of(1.5, -2, 0, 3), { dtype: 'complex128' })
    await writer.save('texts', ['ä', 'b'])
    await writer.save('text', 'of no dimensions')
    await writer.save('rows of texts', [['a'], ['b']])
    await writer.save('scalar', 3)
    await writer.close()
  },

  async shapes(path) {
    const writer = await createWriter(path, EVERY)
    await writer.step()
    for (const dtype of NUMERIC) {
      for (const shape of [[], [1], [0], [2, 0, 3], [2, 1, 3, 2]]) {
        await writer.save(`${dtype} ${shape.join('x')}`, elementsOf(dtype, shape))
      }
    }
    await writer.close()
  },

  async 'saved-shapes'(path) {
    const writer = await createWriter(path, {
      ...EVERY,
      collections: {
        alone: { includeRegex: ['^alone'], reductionConfig: { saveRawTensor: false, saveShape: true } },
        reduced: { includeRegex: ['^reduced'], reductionConfig: { reductions: ['mean'], saveShape: true } },
        raw: { includeRegex: ['^raw'], reductionConfig: { saveRawTensor: true, saveShape: true } },
      },
    })
    for (let i = 0; i < 2; i++) {
      await writer.step()
      for (const name of ['alone', 'reduced', 'raw']) {
        await writer.save(name, new Float32Array(6).fill(i), { shape: [3, 2], originalName: `model/${name}:0` })
        await writer.save(`${name} of no dimensions`, i)
        await writer.save(`${name}, none`, new Float32Array(0), { shape: [0, 4] })
      }
    }
    await writer.close()
  },

  async names(path) {
    const writer = await createWriter(path, {
      ...EVERY,
      reductionConfig: { reductions: ['max', 'abs_l1'], saveRawTensor: true },
    })
    await writer.step()
    for (const [i, name] of NAMES.entries()) await writer.save(name, Float64Array.of(i, -i))
    await writer.close()
  },

  async modes(path) {
    const writer = await createWriter(path, {
      saveConfig: {
        saveInterval: 3,
        TRAIN: { startStep: 2, endStep: 9, saveSteps: [1, 11] },
        EVAL: { saveInterval: 1, startStep: 1 },
        PREDICT: { saveInterval: 2 },
      },
      collections: { mine: { includeRegex: ['^mine'], saveConfig: { PREDICT: { saveSteps: [0, 1, 2] } } } },
    })
    const order: readonly Mode[] = ['TRAIN', 'EVAL', 'PREDICT', 'TRAIN', 'GLOBAL']
    for (let i = 0; i < 30; i++) {
      writer.setMode(order[i % order.length]!)
      await writer.step()
      await writer.save('x', i, { collection: 'default' })
      await writer.save('mine', -i)
      await writer.save('gradient/x', i / 2, { collection: 'gradients' })
    }
    await writer.close()
  },

  async reductions(path) {
    const writer = await createWriter(path, {
      ...EVERY,
      collections: { reduced: { includeRegex: ['^reduced'], reductionConfig: { reductions: REDUCTIONS } } },
    })
    await writer.step()
    for (const [name, dtype] of [
      ['doubles', 'float64'],
      ['floats', 'float32'],
      ['whole', 'int32'],
    ] as const) {
      const numbers = Array.from({ length: 12 }, (_, i) => (i % 5) + 2 - 3 * (i % 3)).map(one => one || 7)
      const value = dtype === 'int32' ? numbers : numbers.map(one => one / 3)
      await writer.save(`raw ${name}`, value, { dtype, shape: [12], collection: 'default' })
      await writer.save(`reduced ${name}`, value, { dtype, shape: [12] })
    }
    await writer.close()
  },

  async workers(path) {
    const workers = ['worker_0', 'worker_1', 'worker_2']
    const writers = await Promise.all(workers.map(worker => createWriter(path, { ...EVERY, worker, numWorkers: 3 })))
    for (let i = 0; i < 3; i++) {
      for (const [rank, writer] of writers.entries()) {
        await writer.step()
        await writer.save('x', Float32Array.of(i, rank))
        // Not every worker has each tensor.
        if (rank > 0) await writer.save('y', rank)
      }
    }
    // One stops before the last step, and the others go on.
    for (const [rank, writer] of writers.entries()) {
      if (rank === 1) continue
      await writer.step()
      await writer.save('x', Float32Array.of(3, rank))
    }
    for (const writer of writers) await writer.close()
  },

  async devices(path) {
    for (const worker of ['/replica:0/task:0/device:GPU:0', '/replica:0/task:0/device:GPU:1']) {
      const writer = await createWriter(path, { ...EVERY, worker, numWorkers: 2, framework: 'tensorflow' })
      await writer.step()
      await writer.save('loss', Number(worker.at(-1)), { collection: 'losses' })
      await writer.close()
    }
  },

  async scalars(path) {
    const writer = await createWriter(path, { saveConfig: { saveInterval: 10 } })
    for (let i = 0; i < 4; i++) {
      writer.setMode(i < 3 ? 'TRAIN' : 'EVAL')
      await writer.step()
      await writer.save('x', i)
      await writer.saveScalar('lr', 0.1 ** i, { timestamp: 1_700_000_000 + i })
      await writer.saveScalar('accuracy', i / 4, { sagemakerMetric: true })
      await writer.saveScalar('odd', i % 2 === 0 ? Number.NaN : Number.NEGATIVE_INFINITY)
    }
    await writer.close()
  },

  async 'hook-json'(path) {
    const config = {
      S3OutputPath: 's3://bucket/prefix',
      LocalPath: path,
      HookParameters: {
        save_interval: '4',
        save_steps: '1,2',
        'eval.save_interval': '1',
        'predict.start_step': 2,
        'train.end_step': '9',
      },
      CollectionConfigurations: [
        { CollectionName: 'weights' },
        {
          CollectionName: 'mine',
          CollectionParameters: {
            include_regex: 'relu,tanh',
            'train.save_interval': '2',
            reductions: 'min,abs_l2_norm',
          },
        },
      ],
    }
    const file = `${path}.json`
    await writeFile(file, JSON.stringify(config))
    const writer = await createWriterFromJson(file)
    for (const mode of [modes.TRAIN, modes.EVAL, modes.PREDICT]) {
      writer.setMode(mode)
      for (let i = 0; i < 12; i++) {
        await writer.step()
        await writer.save('fc.weight', Float32Array.of(i))
        await writer.save('relu_1', Float32Array.of(i, -2 * i))
        await writer.save('CrossEntropyLoss_output_0', i)
      }
    }
    await writer.close()
  },

  async tfjs(path) {
    const writer = await createWriter(path, {
      framework: 'tfjs',
      saveConfig: { saveInterval: 2, EVAL: { saveInterval: 1 } },
      includeCollections: [
        'weights',
        'biases',
        'gradients',
        'layers',
        'inputs',
        'labels',
        'outputs',
        'optimizer_variables',
      ],
    })
    const hook = createHook(writer, { tf })
    const model = tf.sequential({
      layers: [
        tf.layers.dense({ units: 2, inputShape: [3], name: 'fc1', kernelInitializer: 'ones', activation: 'relu' }),
        tf.layers.dense({ units: 1, name: 'fc2', kernelInitializer: 'ones' }),
      ],
    })
    model.compile({ optimizer: tf.train.momentum(0.125, 0.5), loss: 'meanSquaredError' })
    // Powers of two, which no order of additions rounds.
    const x = tf.tensor2d(
      Float32Array.from({ length: 12 }, (_, i) => 2 ** -(i % 4)),
      [4, 3],
    )
    const y = tf.tensor2d(Float32Array.of(1, 0.5, 0.25, 0), [4, 1])
    const [xs, ys] = [tf.concat([x, x, x, x]), tf.concat([y, y, y, y])]
    await model.fit(xs, ys, {
      epochs: 1,
      batchSize: 4,
      shuffle: false,
      verbose: 0,
      validationData: [x, y],
      callbacks: hook,
    })
    await hook.close()
    tf.dispose([x, y, xs, ys])
  },

  async recorded(path) {
    const writer = await createWriter(path)
    await writer.record(2500, { x: [2500] }, { mode: 'TRAIN', modeStep: 7 })
    await writer.record(999, { x: [999], y: ['a', 'b'] })
    await writer.record(1000, { x: [1000] }, { mode: 'EVAL', modeStep: 0 })
    await writer.close()
  },

  async checksums(path) {
    const writer = await createWriter(path, { ...EVERY, checksums: true })
    await writer.step()
    await writer.save('x', Float32Array.of(1, 2))
    await writer.close()
  },
}
