/** Trials that `createWriter` writes, read back by our readers and held against a writer that shares no code with it. */

import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import ndarray from 'ndarray'
import { describe, expect, it, vi } from 'vitest'
import {
  createTrial,
  createWriter,
  type DType,
  parseHookConfig,
  REDUCTIONS,
  type SavableValue,
  type TensorData,
  UsageError,
  verifyTrial,
  type WriterOptions,
} from '#dist/index.js'
import { Destination } from '#dist/storage/destination.js'
import { framedRecord } from '#dist/write/event.js'
import { seal } from '#dist/write/frame.js'
import { DTYPES, type DTypeName, elementBytes, encodeEvent, frameRecord } from '../../fixtures/event-writer.js'
import { reductionsOf } from '../oracle/moments.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('writer')
let count = 0
const place = () => join(scratch, `${count++}`)
const EVERY: WriterOptions = { saveConfig: { saveInterval: 1 } }

/** Writes one step. */
async function written(tensors: Record<string, SavableValue>, options: WriterOptions = EVERY): Promise<string> {
  const path = place()
  await using writer = await createWriter(path, options)
  await writer.step()
  for (const [name, value] of Object.entries(tensors)) await writer.save(name, value)
  return path
}

async function expectSound(path: string): Promise<void> {
  const report = await verifyTrial(path, { deep: true })
  expect(report.problems.filter(({ severity }) => severity !== 'note')).toEqual([])
}

function plain(value: TensorData): readonly unknown[] {
  return [value.dtype, [...value.shape], Array.from(value.bytes ?? (value.data as ArrayLike<unknown>))]
}

const NUMERIC = (Object.keys(DTYPES) as DTypeName[]).filter(dtype => dtype !== 'string')
const NAMES = [
  'ünïcode/名前',
  'x'.repeat(4096),
  '../../escape',
  'a\nb\t"c"\\',
  ' ',
  '\u0000',
  '__proto__',
  'constructor',
]
const SHAPES: readonly (readonly number[])[] = [[], [0], [1], [5], [2, 0, 3], [2, 3], [2, 1, 3, 2]]

describe('what is written', () => {
  it.each(NUMERIC)('is read back: %s, of every shape', async dtype => {
    const { byteLength, parts } = DTYPES[dtype]
    const is64 = dtype === 'int64' || dtype === 'uint64'
    const tensors = SHAPES.map(shape => {
      const count = shape.reduce((product, size) => product * size, 1)
      const numbers = Array.from({ length: count * parts }, (_, i) => {
        const number = dtype === 'bool' ? i % 2 : i + 1
        return is64 ? BigInt(number) : number
      })
      return { shape, data: elementBytes(dtype, numbers) }
    })
    const values = tensors.map(({ shape, data }, i) => [`t${i}`, { data, dtype: dtype as DType, shape }] as const)
    const path = await written(Object.fromEntries(values), { ...EVERY, checksums: true })
    await expectSound(path)
    const trial = await createTrial(path)
    for (const [i, { shape, data }] of tensors.entries()) {
      const value = await trial.tensor(`t${i}`).value(0)
      expect(plain(value as unknown as TensorData)).toEqual([dtype, [...shape], [...data]])
      expect(data.length).toBe(shape.reduce((product, size) => product * size, 1) * byteLength)
    }
  })

  it('is read back: texts, numbers, and arrays of all kinds', async () => {
    const column = ndarray(Float32Array.from([1, 2, 3, 4, 5, 6]), [2, 3]).transpose(1, 0)
    const remote = {
      shape: [2, 2],
      dtype: 'int32',
      data: async () => Int32Array.of(1, 2, 3, 4),
    }
    const texts = { shape: [2], dtype: 'string', data: async () => ['x', 'y'] }
    const path = await written({
      text: 'ß𝄞',
      texts: [
        ['a', ''],
        ['c', 'd'],
      ],
      number: 0.1,
      whole: 2n ** 62n,
      flags: [true, false],
      nested: [
        [1, 2, 3],
        [4, 5, 6],
      ],
      clamped: Uint8ClampedArray.of(7, 8),
      column,
      remote,
      remoteTexts: texts,
    })
    await expectSound(path)
    const trial = await createTrial(path)
    const of = async (name: string) => {
      const { dtype, shape, data } = await trial.tensor(name).value(0)
      return [dtype, [...shape], Array.from(data as ArrayLike<unknown>)]
    }
    expect(await of('text')).toEqual(['string', [], ['ß𝄞']])
    expect(await of('texts')).toEqual(['string', [2, 2], ['a', '', 'c', 'd']])
    expect(await of('number')).toEqual(['float64', [], [0.1]])
    expect(await of('whole')).toEqual(['int64', [], [2n ** 62n]])
    expect((await of('flags')).map(one => (Array.isArray(one) ? one.map(Number) : one))).toEqual(['bool', [2], [1, 0]])
    expect(await of('nested')).toEqual(['float64', [2, 3], [1, 2, 3, 4, 5, 6]])
    expect(await of('clamped')).toEqual(['uint8', [2], [7, 8]])
    expect(await of('column')).toEqual(['float32', [3, 2], [1, 4, 2, 5, 3, 6]])
    expect(await of('remote')).toEqual(['int32', [2, 2], [1, 2, 3, 4]])
    expect(await of('remoteTexts')).toEqual(['string', [2], ['x', 'y']])
    const saved = await written({
      again: await trial.tensor('column').value(0),
      copy: await trial.tensor('texts').value(0),
    })
    const again = await createTrial(saved)
    expect(Array.from((await again.tensor('again').value(0)).data as Float32Array)).toEqual([1, 4, 2, 5, 3, 6])
    expect((await again.tensor('copy').value(0)).shape).toEqual([2, 2])
  })

  it('is read back, whatever the name', async () => {
    const path = place()
    await using writer = await createWriter(path, EVERY)
    await writer.step()
    for (const [i, name] of NAMES.entries()) await writer.save(name, i)
    await writer.close()
    await expectSound(path)
    const trial = await createTrial(path)
    expect([...trial.tensorNames()].sort()).toEqual([...NAMES].sort())
    for (const [i, name] of NAMES.entries()) expect(Number((await trial.tensor(name).value(0)).data[0])).toBe(i)
    expect(readdirSync(scratch)).not.toContain('escape')
  })

  it('is read back, with texts of any length beside each other', async () => {
    const texts = {
      long: 'ä'.repeat(200_000),
      longer: 'x'.repeat(300_000),
      short: 'y',
      many: Array(5000).fill('0123456789'),
    }
    const path = await written({ ...texts, number: 1 }, { ...EVERY, queueByteLength: 0, checksums: true })
    await expectSound(path)
    const trial = await createTrial(path)
    for (const [name, text] of Object.entries(texts)) {
      expect((await trial.tensor(name).value(0)).data).toEqual(typeof text === 'string' ? [text] : text)
    }
  })

  it('is byte for byte what the independent writer writes', () => {
    const tag = fc.string({ unit: 'grapheme', minLength: 1 }).filter(name => !/\p{Surrogate}/u.test(name))
    const shape = fc.array(fc.nat(4), { maxLength: 3 })
    const step = fc.maxSafeNat()
    const mode = fc.constantFrom('TRAIN', 'EVAL', 'PREDICT', 'GLOBAL' as const)
    fc.assert(
      fc.property(
        tag,
        shape,
        step,
        fc.nat(),
        mode,
        fc.double({ noNaN: true }),
        fc.boolean(),
        (tag, shape, step, modeStep, mode, wallTime, isTrue) => {
          const count = shape.reduce((product, size) => product * size, 1)
          const bytes = elementBytes(
            'float32',
            Array.from({ length: count }, (_, i) => i / 3),
          )
          const value = { dtype: 'float32' as const, bytes }
          const pieces = framedRecord({ wallTime, step, mode, modeStep, tag, shape, value })
          if (isTrue) seal(pieces)
          const tensor = { dtype: 'float32' as const, shape, content: bytes }
          const expected = frameRecord(encodeEvent({ wallTime, step, tag, mode, modeStep, tensor }), {
            checksum: isTrue ? 'true' : 'constant',
          })
          expect(Buffer.concat(pieces)).toEqual(Buffer.from(expected))
        },
      ),
    )
  })

  it('has all reductions as an oracle has them, and shapes', async () => {
    // Of both signs, so that no reduction equals that of the magnitudes; few and near 1, so that the product is no 0.
    const data = Float32Array.from({ length: 100 }, (_, i) => (Math.sin(i) + 1.5) * (i % 3 === 0 ? -1 : 1))
    const path = await written(
      { x: { data, shape: [10, 10] }, text: 'no numbers' },
      { ...EVERY, reductionConfig: { reductions: REDUCTIONS, saveShape: true } },
    )
    await expectSound(path)
    const trial = await createTrial(path)
    const expected = reductionsOf([...data])
    expect(REDUCTIONS).toHaveLength(18)
    for (const name of REDUCTIONS) {
      const [base, abs] = [name.replace('abs_', '') as 'mean', name.startsWith('abs_')]
      const got = await trial.tensor('x').reductionValue(0, base, { abs })
      expect(Math.abs(Number(got) - expected[name]) / Math.abs(expected[name]), name).toBeLessThan(1e-12)
    }
    expect(await trial.tensor('x').shape(0)).toEqual([10, 10])
    await expect(trial.tensor('x').value(0)).rejects.toThrow('value')
    const index = JSON.parse(readFileSync(join(path, 'index/000000000/000000000000_worker_0.json'), 'utf8'))
    expect(index.shape_payload).toEqual([
      { tensorname: 'x', originalname: 'x', shape: [10, 10] },
      { tensorname: 'text', originalname: 'text', shape: [] },
    ])
  })

  it.each(NUMERIC.filter(dtype => !dtype.startsWith('complex')))('has all reductions of %s', async dtype => {
    const is64 = dtype === 'int64' || dtype === 'uint64'
    const numbers = dtype === 'bool' ? [1, 0, 1, 1, 1] : [3, 1, 4, 1, 5]
    const data = elementBytes(dtype, is64 ? numbers.map(BigInt) : numbers)
    const reductionConfig = { reductions: REDUCTIONS }
    const path = await written({ x: { data, dtype: dtype as DType, shape: [5] } }, { ...EVERY, reductionConfig })
    await expectSound(path)
    const trial = await createTrial(path)
    const expected = reductionsOf(numbers)
    for (const name of REDUCTIONS) {
      const [base, abs] = [name.replace('abs_', '') as 'mean', name.startsWith('abs_')]
      expect(await trial.tensor('x').reductionValue(0, base, { abs }), name).toBeCloseTo(expected[name], 12)
    }
  })

  it.each(['TRAIN', 'EVAL', 'PREDICT', 'GLOBAL'] as const)(
    'is read back in mode %s: values, reductions and shapes',
    async mode => {
      const path = place()
      await using writer = await createWriter(path, {
        ...EVERY,
        reductionConfig: { reductions: ['max', 'abs_l2'], saveRawTensor: true, saveShape: true },
      })
      writer.setMode('TRAIN')
      await writer.step()
      writer.setMode(mode)
      for (let i = 0; i < 2; i++) {
        await writer.step()
        for (const name of NAMES) await writer.save(name, Float32Array.of(-3, -4 * i), { shape: [2, 1] })
      }
      await writer.close()
      await expectSound(path)
      const trial = await createTrial(path)
      const steps = trial.steps({ mode })
      expect(steps).toHaveLength(2)
      expect(steps.map(step => trial.globalStep(mode, step))).toEqual([1, 2])
      for (const name of NAMES) {
        const tensor = trial.tensor(name)
        expect(tensor.steps({ mode })).toEqual(steps)
        for (const [i, step] of steps.entries()) {
          expect((await tensor.value(step, { mode })).data).toEqual(Float32Array.of(-3, -4 * i))
          expect(await tensor.shape(step, { mode })).toEqual([2, 1])
          expect(await tensor.reductionValue(step, 'max', { mode })).toBe(Math.max(-3, -4 * i))
          expect(await tensor.reductionValue(step, 'l2', { mode, abs: true })).toBe(i === 0 ? 3 : 5)
        }
      }
    },
  )

  it('is read back: texts of every shape, and complex numbers whose reductions are asked for', async () => {
    const none = { shape: [0, 2], dtype: 'string', data: async () => [] }
    const value = { data: Float64Array.of(3, 4, 0, 0), dtype: 'complex128', shape: [2] } as const
    const path = await written(
      { none, value, deep: [[['a', 'b']], [['c', 'd']]] },
      { ...EVERY, reductionConfig: { reductions: REDUCTIONS, saveRawTensor: true } },
    )
    await expectSound(path)
    const trial = await createTrial(path)
    expect(await trial.tensor('none').value(0)).toMatchObject({ dtype: 'string', shape: [0, 2], data: [] })
    expect(await trial.tensor('deep').value(0)).toMatchObject({
      dtype: 'string',
      shape: [2, 1, 2],
      data: ['a', 'b', 'c', 'd'],
    })
    expect((await trial.tensor('value').value(0)).data).toEqual(Float64Array.of(3, 4, 0, 0))
    expect(await trial.tensor('value').reductionValue(0, 'l2')).toBe(5)
  })
})

describe('steps', () => {
  it('are saved as SaveConfig says, by mode', async () => {
    const path = place()
    const saveConfig = {
      saveInterval: 3,
      startStep: 2,
      endStep: 9,
      saveSteps: [1],
      EVAL: { saveInterval: 1, startStep: 0 },
    }
    const writer = await createWriter(path, { saveConfig })
    const said: string[] = []
    for (let i = 0; i < 24; i++) {
      writer.setMode(i % 4 === 3 ? 'EVAL' : 'TRAIN')
      await writer.step()
      if (writer.shouldSave('x')) said.push(`${writer.mode} ${writer.globalStep}`)
      await writer.save('x', i)
    }
    await writer.close()
    const trial = await createTrial(path)
    const train = trial.tensor('x').steps({ mode: 'TRAIN' })
    expect(train).toEqual([1, 3, 6])
    expect(trial.tensor('x').steps({ mode: 'EVAL' })).toEqual([0, 1, 2, 3, 4, 5])
    expect(trial.tensor('x').steps()).toEqual(said.map(one => Number(one.split(' ')[1])))
    await expectSound(path)
  })

  it('are all by default, and scalars are saved at all', async () => {
    const path = place()
    const writer = await createWriter(path)
    for (let i = 0; i < 5; i++) {
      await writer.step()
      if (i % 3 === 0) await writer.save('x', i)
      if (i % 2 === 0) await writer.saveScalar('lr', 1 / (i + 1), { timestamp: 1234.5 })
    }
    await writer.close()
    const trial = await createTrial(path)
    expect(trial.tensor('x').steps()).toEqual([0, 3])
    expect(trial.tensor('scalar/lr').steps()).toEqual([0, 2, 4])
    expect(trial.collection('scalars').members).toEqual(['scalar/lr'])
  })

  it('can be recorded in any order, each once', async () => {
    const path = place()
    const writer = await createWriter(path)
    await writer.record(700, { x: 7 }, { mode: 'EVAL', modeStep: 3 })
    await writer.record(20, new Map([['x', 2]]))
    await expect(writer.record(700, { x: 8 })).rejects.toThrow(/step that was not written, got 700/)
    // Steps that begin later go on from there, also in numbers of the mode.
    writer.setMode('EVAL')
    expect(await writer.step({ saveAll: true })).toBe(21)
    await writer.save('x', 4)
    await writer.close()
    const trial = await createTrial(path)
    expect(trial.steps()).toEqual([20, 21, 700])
    expect(trial.tensor('x').steps({ mode: 'EVAL' })).toEqual([3, 4])
  })

  it('are recorded whole, or not at all and then again', async () => {
    const path = place()
    const writer = await createWriter(path)
    await expect(writer.record(3, { x: [1], y: [[1], [2, 3]] })).rejects.toThrow(
      /writer.record, tensor y: expected arrays of 1 elements at depth 1, as the first, got one of 2/,
    )
    await expect(writer.record(4, { x: [1], '': 1 })).rejects.toThrow(/expected the name of a tensor, got ""/)
    await writer.record(3, { x: [5], z: 1 })
    await writer.close()
    const trial = await createTrial(path)
    expect(trial.steps()).toEqual([3])
    expect(trial.tensorNames()).toEqual(['x', 'z'])
    expect(trial.collection('default').members).toEqual(['x', 'z'])
    expect([...(await trial.tensor('x').value(3)).data]).toEqual([5])
  })
})

describe('short steps', () => {
  it('are on the disk when the call that ends them returns', async () => {
    const path = place()
    const writer = await createWriter(path, EVERY)
    // A disk that is never slow, however busy the machine is.
    const clock = vi.spyOn(performance, 'now').mockReturnValue(0)
    try {
      for (let i = 0; i < 3; i++) {
        await writer.step()
        expect(existsSync(path) && (await createTrial(path)).steps().length).toBe(i)
        await writer.save('x', Float32Array.of(i))
      }
    } finally {
      clock.mockRestore()
    }
    await writer.close()
  })

  it('are written beside the training where the disk is slow', async () => {
    const destination = Destination.at(place())
    const clock = vi.spyOn(performance, 'now')
    const at = (...times: number[]) => {
      for (const time of times) clock.mockReturnValueOnce(time)
    }
    const create = (name: string) => destination.writeAtOnce(name, [Uint8Array.of(1)])
    try {
      at(0, 15)
      expect(create('a')).toBe(true)
      at(100, 121)
      expect(create('b')).toBe(true)
      at(1100)
      expect(create('c')).toBe(false)
      at(1122, 1123)
      expect(create('d')).toBe(true)
    } finally {
      clock.mockRestore()
      await destination.close()
    }
  })
})

describe('event files', () => {
  it('are rolled and named as smdebug does: one for each step and worker, by the global step in twelve digits', async () => {
    const path = place()
    for (const [worker, escaped] of [
      ['worker_0', 'worker_0'],
      ['/replica:0/task:1/device:GPU:0', '_replica-0_task-1_device-GPU-0'],
    ] as const) {
      const writer = await createWriter(path, { ...EVERY, worker, numWorkers: 2 })
      for (const step of [0, 999, 1000, 1_234_567]) await writer.record(step, { x: step }, { mode: 'TRAIN' })
      await writer.close()
      const files = (readdirSync(path, { recursive: true }) as string[]).filter(name => name.includes(escaped))
      expect(files.filter(name => /\.[a-z]+$/.test(name)).sort()).toEqual([
        `collections/000000000/${escaped}_collections.json`,
        `events/000000000000/000000000000_${escaped}.tfevents`,
        `events/000000000999/000000000999_${escaped}.tfevents`,
        `events/000000001000/000000001000_${escaped}.tfevents`,
        `events/000001234567/000001234567_${escaped}.tfevents`,
        `index/000000000/000000000000_${escaped}.json`,
        `index/000000000/000000000999_${escaped}.json`,
        `index/000000001/000000001000_${escaped}.json`,
        `index/000001234/000001234567_${escaped}.json`,
      ])
    }
  })
})

describe('collections', () => {
  it('decide what is saved', async () => {
    const path = place()
    const options: WriterOptions = {
      saveConfig: { saveInterval: 1 },
      includeCollections: ['gradients'],
      collections: {
        relu: {
          includeRegex: ['relu_\\d+$'],
          saveConfig: { saveInterval: 2 },
          reductionConfig: { reductions: ['abs_max'] },
        },
      },
    }
    const writer = await createWriter(path, options)
    writer.setMode('TRAIN')
    const save = async () => {
      await writer.step()
      // Named as what is not included: not saved.
      await writer.save('fc.weight', 1, { collection: 'weights' })
      await writer.save('gradient/fc.weight', 2)
      await writer.save('relu_1', 3)
      await writer.save('mine', 4, { collection: ['mine', 'yours'] })
      await writer.save('CrossEntropyLoss_output_0', 5)
      // Nothing says that it is: not saved, unless it is asked for.
      expect(writer.shouldSave('anything')).toBe(false)
      await writer.save('anything', 6)
      await writer.save('asked for', 7, { collection: 'default' })
    }
    await save()
    await save()
    writer.setMode('EVAL')
    await save()
    await writer.step({ saveAll: true })
    await writer.save('anything', 6)
    await writer.close()
    const trial = await createTrial(path)
    const at = (step: number) => trial.tensorNames({ step }).toSorted?.() ?? [...trial.tensorNames({ step })].sort()
    const always = ['CrossEntropyLoss_output_0', 'asked for', 'mine']
    expect(at(0)).toEqual([...always, 'gradient/fc.weight', 'relu_1'].sort())
    expect(at(1)).toEqual([...always, 'gradient/fc.weight'].sort())
    // No gradients are evaluated.
    expect(at(2)).toEqual([...always, 'relu_1'].sort())
    expect(trial.collection('yours').members).toEqual(['mine'])
    expect(at(3)).toEqual(['anything'])
    expect([...trial.collection('default').members].sort()).toEqual(['anything', 'asked for'])
    expect(await trial.tensor('relu_1').reductionValue(0, 'max', { abs: true })).toBe(3)
    const text = JSON.parse(readFileSync(join(path, 'collections/000000000/worker_0_collections.json'), 'utf8'))
    expect(text._meta.num_workers).toBe(1)
    expect(text.collections.relu).toEqual({
      name: 'relu',
      include_regex: ['relu_\\d+$'],
      tensor_names: ['relu_1'],
      reduction_config: { save_raw_tensor: false, reductions: 'abs_max', save_shape: false },
      save_config: Object.fromEntries(
        ['TRAIN', 'EVAL', 'PREDICT', 'GLOBAL'].map(mode => [
          mode,
          { save_interval: 2, save_steps: [], start_step: 0, end_step: null },
        ]),
      ),
      save_histogram: true,
    })
  })

  it('say nothing by steps and reductions alone: all is saved', async () => {
    const path = place()
    const saveConfig = { saveInterval: 1 }
    const writer = await createWriter(path, { saveConfig, reductionConfig: { reductions: ['max'] } })
    await writer.step()
    await writer.save('anything', 6)
    await writer.close()
    const trial = await createTrial(path)
    expect(trial.collection('default').members).toEqual(['anything'])
  })

  it.each([
    ['includeRegex', { includeRegex: ['dense0_output|input_1'] }],
    ['a collection', { collections: { custom: { includeRegex: ['dense0_output|input_1'] } } }],
  ])('that %s selects are saved, and nothing else', async (_, selection) => {
    const path = place()
    const writer = await createWriter(path, { saveConfig: { saveInterval: 1 }, ...selection })
    await writer.step()
    for (const name of ['dense0_output_0', 'input_1', 'dense0_weight', 'other']) await writer.save(name, 1)
    await writer.close()
    expect([...(await createTrial(path)).tensorNames()].sort()).toEqual(['dense0_output_0', 'input_1'])
  })

  it.each([
    ['pytorch', ['losses']],
    ['mxnet', ['losses']],
    ['tensorflow', ['losses', 'metrics', 'sm_metrics']],
    ['xgboost', ['metrics']],
  ] as const)('are saved without a word as those of %s', async (framework, saved) => {
    const writer = await createWriter(place(), { ...EVERY, framework })
    await writer.step()
    const known = ['weights', 'gradients', 'losses', 'metrics', 'sm_metrics', 'labels']
    // One that nobody has heard of is made, and saved.
    const predefined =
      framework === 'tensorflow' ? known : framework === 'xgboost' ? ['losses', 'metrics', 'labels'] : known.slice(0, 3)
    expect(predefined.filter(collection => writer.shouldSave('none', { collection }))).toEqual(saved)
    await writer.close()
  })

  it.each([
    ['pytorch', [0]],
    ['xgboost', [0, 10, 20]],
  ] as const)(
    "are saved as often as smdebug's hook of %s does, where its configuration has no interval",
    async (framework, steps) => {
      const directory = place()
      const { options } = parseHookConfig(
        '{"CollectionConfigurations": [{"CollectionName": "metrics"}]}',
        'hook.json',
        framework,
      )
      const writer = await createWriter(directory, { ...options, framework })
      for (let step = 0; step < 21; step++) {
        await writer.step()
        await writer.save('loss', 1, { collection: 'metrics' })
      }
      await writer.close()
      expect((await createTrial(directory)).steps()).toEqual(steps)
    },
  )

  it('are told when their names or patterns are wrong', async () => {
    await expect(createWriter(place(), { includeCollections: ['wieghts'] })).rejects.toThrow(
      /expected a collection of all, default, weights.*got "wieghts"/,
    )
    await expect(createWriter(place(), { includeRegex: ['('] })).rejects.toThrow(UsageError)
    await expect(createWriter(place(), { collections: { a: { inculdeRegex: [] } as never } })).rejects.toThrow(
      /inculdeRegex.*did you mean/,
    )
    await expect(
      createWriter(place(), { reductionConfig: { reductions: ['mean', 'median' as never] } }),
    ).rejects.toThrow(
      /expected reductionConfig.reductions to be an array of reductions, each one of min, .*abs_l2, not "median", got/,
    )
  })
})

describe('what can not be', () => {
  it('is told, and all else is saved', async () => {
    const path = place()
    await using writer = await createWriter(path, EVERY)
    await writer.step()
    const lost = { shape: [1], dtype: 'float32', data: async () => Promise.reject(new Error('device lost')) }
    await expect(writer.save('lost', lost)).rejects.toThrow(
      /writer.save, tensor lost: expected the elements of a tensor, got an error: device lost/,
    )
    const odd = { shape: [1], dtype: 'float8', data: async () => Float32Array.of(1) }
    await expect(writer.save('odd', odd)).rejects.toThrow(/expected the dtype of numbers, got "float8"/)
    expect(() => writer.save('map', new Map() as never)).toThrow(
      /expected a typed array, a tensor, numbers or texts, or arrays of these, got a Map/,
    )
    expect(() => writer.save('shape', [1], { shape: [Number.NaN] })).toThrow(/expected shape\[0\] to be .*, got NaN/)
    expect(() => writer.save('text', ['a\ud800'])).toThrow(/tensor text: expected texts that UTF-8 can hold, got "a.*"/)
    expect(() => writer.saveScalar(undefined as never, 1)).toThrow(/expected the name of a tensor, got undefined/)
    expect(() => writer.saveScalar('', 1)).toThrow(/expected the name of a tensor, got ""/)
    expect(() => writer.setMode(undefined as never)).toThrow(/expected mode to be one of TRAIN, .*, got undefined/)
    await expect(writer.record('5' as never, {})).rejects.toThrow(/writer.record: expected step to be .*, got "5"/)
    await expect(writer.record(5, null as never)).rejects.toThrow(/in an object or a Map, got null/)
    await writer.save('x', 1)
    await writer.close()
    expect((await createTrial(path)).tensorNames()).toEqual(['x'])
  })
})

describe('workers', () => {
  it('have names that can be part of the names of files', async () => {
    for (const worker of ['a/b', '../../../x', 'a\\b', 'x\0y', 'é'.repeat(117)]) {
      const path = place()
      const message = /expected worker to be a name that can be part of a file's, got /
      await expect(createWriter(path, { worker })).rejects.toThrow(message)
      expect(existsSync(path)).toBe(false)
    }
    // Their names are escaped as smdebug does, which not every name comes back from.
    for (const [worker, other] of [
      ['/job:worker-1/task:0', '/job:worker:1/task:0'],
      ['_job-1', '/job:1'],
    ] as const) {
      await expect(createWriter(place(), { worker })).rejects.toThrow(`becomes "${other}", got "${worker}"`)
    }
    for (const worker of ['/job:worker/replica:0/task:1', '/device:XLA_GPU:0', '..', 'a\nb', 'a'.repeat(233)]) {
      const path = place()
      const writer = await createWriter(path, { ...EVERY, worker })
      await writer.record(0, { x: 1 })
      await writer.close()
      expect((await createTrial(path)).workers()).toEqual([worker])
    }
  })

  it('write one trial together, each its part once', async () => {
    const path = place()
    const tries = await Promise.allSettled(
      Array.from({ length: 8 }, () => createWriter(path, { ...EVERY, numWorkers: 2 })),
    )
    const first = tries.flatMap(one => (one.status === 'fulfilled' ? [one.value] : []))
    expect(first.length).toBe(1)
    for (const one of tries)
      if (one.status === 'rejected') expect(one.reason.message).toMatch(/expected no part of worker_0 yet, got one/)
    const second = await createWriter(path, { ...EVERY, numWorkers: 2, worker: '/replica:0/task:1' })
    for (const writer of [first[0]!, second]) {
      await writer.step()
      await writer.save('x', 1)
    }
    await first[0]!.close()
    await second.close()
    const trial = await createTrial(path)
    expect(trial.steps()).toEqual([0])
    expect([...trial.tensor('x').workers(0)].sort()).toEqual(['/replica:0/task:1', 'worker_0'])
    await expectSound(path)
  })
})

describe('what goes wrong', () => {
  it('tensors of more dimensions than readers take, and arrays without an end, are refused', async () => {
    const writer = await createWriter(place(), EVERY)
    await writer.step()
    const endless: unknown[] = []
    endless.push(endless)
    let deep: unknown = 1
    for (let i = 0; i < 100_000; i++) deep = [deep]
    for (const value of [endless, deep]) {
      expect(() => writer.save('x', value as never)).toThrow(/tensor x: expected at most 254 dimensions, got 255/)
    }
    for (const value of [Float32Array.of(1), ['a']]) {
      expect(() => writer.save('x', value, { shape: Array(255).fill(1) })).toThrow(/at most 254 dimensions, got 255/)
    }
    await writer.save('x', Float32Array.of(1), { shape: Array(254).fill(1) })
    await writer.close()
    const trial = await createTrial(writer.path)
    expect((await trial.tensor('x').value(0)).shape.length).toBe(254)
  })

  it('elements of a remote tensor that are no texts are told', async () => {
    const writer = await createWriter(place(), EVERY)
    await writer.step()
    const remote = { shape: [1], dtype: 'string', data: async () => [1] as never }
    await expect(writer.save('x', remote)).rejects.toThrow(/tensor x: expected texts that UTF-8 can hold, got 1/)
    await writer.save('y', 1)
    await writer.close()
    expect((await createTrial(writer.path)).tensorNames()).toEqual(['y'])
  })

  it.runIf(existsSync('/proc/self'))('a place where no directory can be made is told', async () => {
    for (const path of ['/proc/x', '/proc/x/y/z']) {
      await expect(createWriter(path)).rejects.toThrow(/^cannot write \/proc\/x: no directory can be made there$/)
    }
    const file = place()
    writeFileSync(file, '')
    await expect(createWriter(join(file, 'x'))).rejects.toThrow(/a part of its path is not a directory/)
  })

  it('is told of what is saved after flush or record has ended the step', async () => {
    const writer = await createWriter(place(), EVERY)
    await writer.flush()
    expect(() => writer.save('x', 1)).toThrow('writer.save: expected a call of writer.step() before it')
    await writer.step()
    await writer.save('x', 1)
    await writer.flush()
    const refusalOf = (call: string, ended: string) =>
      `${call}: expected a call of writer.step() before it, since ${ended} has ended step ${writer.globalStep}`
    expect(() => writer.save('y', 1)).toThrow(refusalOf('writer.save', 'writer.flush'))
    expect(() => writer.saveReductions('y', { max: 1 })).toThrow(refusalOf('writer.saveReductions', 'writer.flush'))
    expect(() => writer.saveScalar('y', 1)).toThrow(refusalOf('writer.saveScalar', 'writer.flush'))
    await expect(writer.saveHistogram('y', 1)).rejects.toThrow(refusalOf('writer.saveHistogram', 'writer.flush'))
    await writer.record(7, { x: 2 })
    expect(() => writer.save('y', 1)).toThrow(refusalOf('writer.save', 'writer.record'))
    await writer.step()
    await writer.save('y', 3)
    await writer.close()
    const trial = await createTrial(writer.path)
    expect(trial.steps().map(step => [step, trial.tensorNames({ step })])).toEqual([
      [0, ['x']],
      [7, ['x']],
      [8, ['y']],
    ])
    await trial.close()
  })

  it('is said, with what was expected', async () => {
    const writer = await createWriter(place(), EVERY)
    expect(() => writer.save('x', 1)).toThrow(/expected a call of writer.step\(\)/)
    await writer.step()
    expect(() => writer.save('', 1)).toThrow(/name of a tensor/)
    expect(() => writer.save('\ud800', 1)).toThrow(/name of a tensor/)
    expect(() => writer.save('ragged', [[1, 2], [3]])).toThrow(
      /expected arrays of 2 elements at depth 1, as the first, got one of 1/,
    )
    expect(() => writer.save('mixed', [1, 'a'])).toThrow(/elements of one type, got number and string/)
    expect(() => writer.save('nothing', null as never)).toThrow(UsageError)
    expect(() => writer.save('shape', Float32Array.of(1, 2, 3), { shape: [2] })).toThrow(/2 elements, as the shape/)
    expect(() => writer.save('odd', [0.5], { dtype: 'int32' })).toThrow(/whole numbers for int32, got 0.5/)
    await writer.save('x', 1)
    expect(() => writer.save('x', 2)).toThrow(/x: expected one value a step/)
    await writer.close()
    await writer.close()
    expect(() => writer.save('y', 1)).toThrow(/was closed/)
    await expect(writer.step()).rejects.toThrow(/was closed/)
  })

  it('a store that fails ends the training, or only the saving', async () => {
    const broken = async (options: WriterOptions) => {
      const path = place()
      const writer = await createWriter(path, { ...EVERY, ...options })
      // Where the events would lie is a file.
      writeFileSync(join(path, 'events'), '')
      await writer.step()
      await writer.save('x', Float32Array.of(3, 4)).catch(() => {})
      return { path, writer }
    }
    const { writer } = await broken({})
    const goOn = async () => {
      for (let i = 0; i < 3; i++) await writer.step()
      await writer.close()
    }
    await expect(goOn()).rejects.toThrow(/cannot write .*events/)
    const stopped = await broken({ whenFailing: 'stop' })
    for (let i = 0; i < 3; i++) {
      await stopped.writer.step()
      await stopped.writer.save('x', 1)
    }
    expect(stopped.writer.shouldSave('x')).toBe(false)
    expect(stopped.writer.failure?.message).toMatch(/cannot write .*events/)
    await stopped.writer.close()
    expect(readdirSync(stopped.path)).toContain('training_job_end.ts')
  })
})

describe.runIf(process.platform !== 'win32')('a store that is slower than the training', () => {
  /** A writer whose first step is only written once somebody reads a pipe. */
  const stalled = async (options: WriterOptions) => {
    const path = place()
    const writer = await createWriter(path, { ...EVERY, ...options })
    const file = join(path, 'events/000000000000/000000000000_worker_0.tfevents')
    mkdirSync(dirname(file), { recursive: true })
    execFileSync('mkfifo', [file])
    for (let i = 0; i < 2; i++) {
      await writer.step()
      await writer.save('x', i)
    }
    return { path, writer, release: () => readFile(file) }
  }

  it('is waited for', async () => {
    const { writer, release } = await stalled({})
    const step = writer.step()
    const soon = new Promise(resolve => setTimeout(resolve, 50, 'still waiting'))
    expect(await Promise.race([step, soon])).toBe('still waiting')
    const read = release()
    expect(await step).toBe(2)
    await read
    await writer.close()
  })

  it('makes it drop steps, if it is told so, and say which', async () => {
    const { path, writer, release } = await stalled({ whenSlow: 'drop' })
    for (let i = 2; i < 5; i++) {
      expect(await writer.step()).toBe(i)
      expect(writer.shouldSave('x')).toBe(false)
      await writer.save('x', i)
      await writer.saveScalar('y', i)
    }
    expect(writer.droppedSteps).toEqual([2, 3, 4])
    await release()
    while (!existsSync(join(path, 'index/000000000/000000000001_worker_0.json'))) {
      await new Promise(resolve => setTimeout(resolve, 5))
    }
    await new Promise(resolve => setTimeout(resolve, 20))
    expect(await writer.step()).toBe(5)
    await writer.save('x', 5)
    await writer.close()
    expect(writer.droppedSteps).toEqual([2, 3, 4])
    expect((await createTrial(path)).tensor('x').steps()).toEqual([0, 1, 5])
  })
})
