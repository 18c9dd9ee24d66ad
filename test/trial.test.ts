/** What a trial and its tensors answer, and how they refuse. */

import { basename, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import {
  allclose,
  createTrial,
  InvalidWorker,
  type Mode,
  QueryError,
  StepNotYetAvailable,
  type StepRange,
  StepUnavailable,
  TensorUnavailable,
  TensorUnavailableForStep,
  type Trial,
  UsageError,
} from '#dist/index.js'
import {
  bfloat16Bits,
  DTYPES,
  type DTypeName,
  elementBytes,
  float16Bits,
  TrialWriter,
} from '../fixtures/event-writer.js'
import { writeSample } from './support/sample.js'
import { rejectionOf, thrownBy } from './support/scanning.js'
import { scratchDirectory } from './support/scratch.js'

const scratch = scratchDirectory('trial')
const running = join(scratch, 'running')
const ended = join(scratch, 'ended')
let trial: Trial

beforeAll(async () => {
  writeSample(running)
  writeSample(ended, { ended: true })
  trial = await createTrial(running)
})

describe('a trial', () => {
  it('has a path and a name', async () => {
    expect([trial.path, trial.name]).toEqual([running, basename(running)])
    const url = await createTrial(pathToFileURL(running).href, { name: 'mine' })
    expect([url.path, url.name]).toEqual([pathToFileURL(running).href, 'mine'])
    expect(url.tensorNames()).toEqual(trial.tensorNames())
    const ofUrl = await createTrial(pathToFileURL(running))
    expect([ofUrl.path, ofUrl.tensorNames()]).toEqual([url.path, url.tensorNames()])
  })

  it('knows steps and modes', () => {
    expect(trial.steps()).toEqual([0, 10, 11, 20])
    expect(trial.steps({ showIncompleteSteps: true })).toEqual([0, 10, 11, 20, 30])
    expect(trial.steps({ mode: 'TRAIN' })).toEqual([0, 1, 2])
    expect(trial.steps({ mode: 'TRAIN', showIncompleteSteps: true })).toEqual([0, 1, 2, 3])
    expect(trial.steps({ mode: 'EVAL' })).toEqual([0])
    expect(trial.steps({ mode: 'PREDICT' })).toEqual([])
    expect([trial.modes(), trial.workers()]).toEqual([
      ['EVAL', 'TRAIN'],
      ['worker_0', 'worker_1'],
    ])
    expect(trial.loadedAllSteps).toBe(false)
    expect([trial.mode(11), trial.modeStep(11), trial.globalStep('EVAL', 0)]).toEqual(['EVAL', 0, 11])
    expect([trial.mode(20), trial.modeStep(20), trial.globalStep('TRAIN', 2)]).toEqual(['TRAIN', 2, 20])
    expect(trial.globalStep('GLOBAL', 20)).toBe(20)
  })

  it('whose job has ended has no incomplete steps', async () => {
    const done = await createTrial(ended)
    expect([done.loadedAllSteps, done.steps()]).toEqual([true, [0, 10, 11, 20, 30]])
  })

  it('refuses steps and modes it does not have', async () => {
    expect(thrownBy(() => trial.mode(5))).toBeInstanceOf(StepUnavailable)
    expect(thrownBy(() => trial.globalStep('EVAL', 0.5))).toBeInstanceOf(UsageError)
    expect(thrownBy(() => trial.steps({ mode: 'train' as Mode }))).toBeInstanceOf(UsageError)
    expect(thrownBy(() => trial.globalStep('x' as Mode, 0))).toBeInstanceOf(UsageError)
    const done = await createTrial(ended)
    expect(thrownBy(() => done.mode(31))).toBeInstanceOf(StepUnavailable)
    expect(thrownBy(() => done.mode(5))).toMatchObject({ message: expect.stringMatching(/step 5 .* from 0 to 30/) })
  })

  it('has collections', () => {
    expect([...trial.collections().keys()]).toEqual(['all', 'weights', 'named', 'empty'])
    expect(trial.collection('weights').members).toEqual(['fc.weight', 'gradient/fc.weight'])
    expect(trial.collection('named').members).toEqual(['fc.bias', 'loss'])
    expect(trial.collection('empty').members).toEqual([])
    expect(trial.collection('all').members).toEqual(trial.tensorNames())
    const failure = thrownBy(() => trial.collection('weigths'))
    expect(failure).toMatchObject({ name: 'QueryError', code: 'CollectionUnavailable' })
    expect((failure as Error).message).toContain('did you mean weights?')
  })
})

describe('tensorNames', () => {
  const all = ['accuracy', 'fc.bias', 'fc.weight', 'gradient/fc.weight', 'loss', 'only/worker_1', 'shaped']
  const everywhere = ['fc.bias', 'fc.weight', 'loss', 'only/worker_1', 'shaped']

  it.each([
    [{}, all],
    [{ mode: 'EVAL' }, ['accuracy', ...everywhere]],
    [{ mode: 'TRAIN' }, all.filter(name => name !== 'accuracy')],
    [{ mode: 'PREDICT' }, []],
    [{ mode: 'GLOBAL' }, all],
    [{ step: 11 }, ['accuracy', ...everywhere]],
    [{ step: 0, mode: 'EVAL' }, ['accuracy', ...everywhere]],
    [{ step: 30 }, ['fc.bias', 'fc.weight', 'gradient/fc.weight', 'loss', 'shaped']],
    [{ regex: 'weight' }, ['fc.weight', 'gradient/fc.weight']],
    [{ regex: '^fc' }, ['fc.bias', 'fc.weight']],
    [{ regex: ['^loss$', /^SHAPED$/i] }, ['loss', 'shaped']],
    [{ regex: /a/g }, ['accuracy', 'fc.bias', 'gradient/fc.weight', 'shaped']],
    [{ regex: [] }, []],
    [{ tensors: ['fc.weight', /^LOSS$/i] }, ['fc.weight', 'loss']],
    [{ tensors: 'weight', collection: 'weights', mode: 'EVAL' }, ['fc.weight']],
    [{ collection: 'weights' }, ['fc.weight', 'gradient/fc.weight']],
    [{ collection: 'weights', mode: 'EVAL' }, ['fc.weight']],
    [{ collection: 'weights', step: 11 }, ['fc.weight']],
    [{ regex: 'weight', step: 0, mode: 'EVAL' }, ['fc.weight']],
    [{ collection: 'empty' }, []],
  ] as [NonNullable<Parameters<Trial['tensorNames']>[0]>, string[]][])('%j', (options, wanted) => {
    expect(trial.tensorNames(options)).toEqual(wanted)
  })

  it('takes a collection itself', () => {
    expect(trial.tensorNames({ collection: trial.collection('named') })).toEqual(['fc.bias', 'loss'])
  })

  it('refuses regex and collection together, bad patterns, unknown steps and collections', () => {
    expect(thrownBy(() => trial.tensorNames({ regex: 'a', collection: 'all' }))).toBeInstanceOf(UsageError)
    for (const regex of ['(', '[z-a]', '(?P<x']) {
      const failure = thrownBy(() => trial.tensorNames({ regex }))
      expect(failure).toBeInstanceOf(UsageError)
      expect((failure as Error).message).toContain(regex)
    }
    expect(thrownBy(() => trial.tensorNames({ step: 5 }))).toBeInstanceOf(StepUnavailable)
    expect(thrownBy(() => trial.tensorNames({ collection: 'x' }))).toMatchObject({ code: 'CollectionUnavailable' })
  })
})

describe('a tensor', () => {
  it('that was not saved is refused, with the nearest names', () => {
    expect(trial.hasTensor('fc.weight')).toBe(true)
    expect(trial.hasTensor('fc.wieght')).toBe(false)
    const failure = thrownBy(() => trial.tensor('fc.wieght'))
    expect(failure).toBeInstanceOf(TensorUnavailable)
    expect((failure as Error).message).toMatch(/"fc\.wieght".*did you mean "fc\.weight"/)
  })

  it('knows steps and workers', () => {
    const weight = trial.tensor('fc.weight')
    expect([weight.steps(), weight.steps({ showIncompleteSteps: true })]).toEqual([
      [0, 10, 11, 20],
      [0, 10, 11, 20, 30],
    ])
    expect(trial.tensor('gradient/fc.weight').steps({ mode: 'TRAIN' })).toEqual([0, 1, 2])
    expect(trial.tensor('accuracy').steps()).toEqual([11])
    expect(trial.tensor('accuracy').steps({ mode: 'TRAIN' })).toEqual([])
    expect(weight.workers()).toEqual(['worker_0', 'worker_1'])
    expect(weight.workers(30)).toEqual(['worker_0'])
    expect(weight.workers(0, { mode: 'EVAL' })).toEqual(['worker_0', 'worker_1'])
    expect(trial.tensor('only/worker_1').workers()).toEqual(['worker_1'])
  })

  it('has the values of steps, modes and workers', async () => {
    const weight = trial.tensor('fc.weight')
    const value = await weight.value(20)
    expect(value).toMatchObject({ dtype: 'float32', shape: [2, 3], stride: [3, 1], offset: 0 })
    expect(value.data).toEqual(Float32Array.of(20, -1, 2, 0, 0.5, -8))
    expect((await weight.value(2, { mode: 'TRAIN', worker: 'worker_1' })).data).toEqual(
      Float32Array.of(20, -1, 2, 1, 0.5, -8),
    )
    expect((await weight.value(0, { mode: 'EVAL' })).data).toEqual(Float32Array.of(11, -1, 2, 0, 0.5, -8))
    // The first worker that has it; an incomplete step has values, too.
    expect((await trial.tensor('only/worker_1').value(10)).data).toEqual(Int32Array.of(10, -10))
    expect((await weight.value(30)).data).toEqual(Float32Array.of(30, -1, 2, 0, 0.5, -8))
    expect(allclose(value, await weight.value(20, { threads: 1 }))).toBe(true)
    expect(allclose(value, await weight.value(10))).toBe(false)
  })

  it('can be compared as typed arrays, of one dtype or of two', async () => {
    const [a, b] = [await trial.tensor('fc.weight').value(20), await trial.tensor('fc.weight').value(10)]
    const [own, other] = [Float32Array.of(20, -1, 2, 0, 0.5, -8), Float64Array.of(20, -1, 2, 0, 0.5, -8.00001)]
    expect([allclose(own, own), allclose(own, other), allclose(own, other, { rtol: 0 })]).toEqual([true, true, false])
    expect(allclose(a.data as Float32Array, own)).toBe(true)
    expect(allclose(b.data as Float32Array, own)).toBe(false)
    expect(allclose(Int8Array.of(-1, 2), BigInt64Array.of(-1n, 2n))).toBe(true)
    expect(allclose(Uint32Array.of(1, 2, 3).subarray(1), Uint8Array.of(2, 3))).toBe(true)
    expect(allclose(new Uint16Array(0), new Float32Array(0))).toBe(true)
    const of = (a: unknown, b: unknown) => () => allclose(a as Float32Array, b as Float32Array)
    expect(of(own, own.subarray(1))).toThrow('allclose: expected tensors of one shape, got [6] and [5]')
    expect(of(a, own)).toThrow('allclose: expected tensors of one shape, got [2,3] and [6]')
    expect(of([1], own)).toThrow('allclose: expected a to be a tensor of numbers or a typed array, got [1]')
    expect(of(own, undefined)).toThrow('expected b to be a tensor of numbers or a typed array, got undefined')
    expect(of(own, new DataView(new ArrayBuffer(8)))).toThrow('got a DataView')
    expect(of(own, { ...a, dtype: 'string' })).toThrow('got a tensor of strings')
  })

  it('says which step, worker or form there is not', async () => {
    const weight = trial.tensor('fc.weight')
    expect(await rejectionOf(weight.value(5))).toBeInstanceOf(StepUnavailable)
    expect(await rejectionOf(weight.value(31))).toBeInstanceOf(StepNotYetAvailable)
    expect(await rejectionOf(weight.value(4, { mode: 'TRAIN' }))).toBeInstanceOf(StepNotYetAvailable)
    const done = await createTrial(ended)
    expect(await rejectionOf(done.tensor('fc.weight').value(31))).toBeInstanceOf(StepUnavailable)
    const elsewhere = await rejectionOf(trial.tensor('accuracy').value(20))
    expect(elsewhere).toBeInstanceOf(TensorUnavailableForStep)
    expect((elsewhere as Error).message).toMatch(/"accuracy" at step 20: .*steps that have it: 11$/)
    const reduced = await rejectionOf(trial.tensor('loss').value(20))
    expect(reduced).toBeInstanceOf(TensorUnavailableForStep)
    expect((reduced as Error).message).toMatch(/only its reductions mean, abs_max/)
    const shaped = await rejectionOf(trial.tensor('shaped').value(20))
    expect((shaped as Error).message).toMatch(/only its shape/)
    const awaited = await rejectionOf(weight.value(30, { worker: 'worker_1' }))
    expect(awaited).toBeInstanceOf(StepNotYetAvailable)
    expect((awaited as Error).message).toMatch(/^step 30 is not available yet: worker_1 has yet to write it$/)
    const worker = await rejectionOf(done.tensor('fc.weight').value(30, { worker: 'worker_1' }))
    expect(worker).toBeInstanceOf(InvalidWorker)
    expect((worker as Error).message).toMatch(/"worker_1".*"worker_0"/)
    expect(await rejectionOf(weight.value(0, { mode: 'PREDICT' }))).toBeInstanceOf(QueryError)
  })

  it('refuses options that make no sense', async () => {
    const weight = trial.tensor('fc.weight')
    expect(await rejectionOf(weight.value(0, { threads: -1 }))).toBeInstanceOf(UsageError)
    expect(await rejectionOf(weight.value(0, { memory: 5 }))).toBeInstanceOf(UsageError)
  })

  it('has reductions, saved ones as they were saved', async () => {
    expect(await trial.tensor('loss').reductionValue(20, 'mean', { worker: 'worker_1' })).toBe(3)
    expect(await trial.tensor('loss').reductionValue(20, 'max', { abs: true })).toBe(7)
    expect(await trial.tensor('fc.bias').reductionValue(20, 'sum')).toBe(19.75)
    expect(await trial.tensor('fc.bias').reductionValue(20, 'sum', { abs: true })).toBe(20.25)
    const missing = await rejectionOf(trial.tensor('loss').reductionValue(20, 'min'))
    expect(missing).toBeInstanceOf(TensorUnavailableForStep)
    expect((missing as Error).message).toMatch(/min was not saved \(saved are: mean, abs_max\)/)
    const unknown = await rejectionOf(trial.tensor('fc.bias').reductionValue(20, 'maen' as 'mean'))
    expect(unknown).toBeInstanceOf(UsageError)
    expect((unknown as Error).message).toMatch(/did you mean .*mean/)
    const bias = trial.tensor('fc.bias')
    expect(await bias.reductionValue(20, 'abs_mean')).toBe(await bias.reductionValue(20, 'mean', { abs: true }))
    expect(await rejectionOf(bias.reductionValue('mean' as unknown as number, 'mean'))).toBeInstanceOf(UsageError)
  })
})

describe('values', () => {
  const numbers: Readonly<Record<Exclude<DTypeName, 'string'>, readonly (number | bigint)[]>> = {
    float32: [1.5, -2.25, 0, 3e38],
    float64: [1.1, -2.2, 1e300, -0],
    float16: [1.5, -2.25, 65504, 2 ** -24],
    bfloat16: [1.5, -2.25, 3.3895313892515355e38, 0.0078125],
    int8: [1, -128, 127, 0],
    int16: [1, -32768, 32767, 0],
    int32: [1, -2147483648, 2147483647, 0],
    int64: [1n, -(1n << 63n), (1n << 63n) - 1n, 0n],
    uint8: [1, 255, 128, 0],
    uint16: [1, 65535, 32768, 0],
    uint32: [1, 4294967295, 2147483648, 0],
    uint64: [1n, (1n << 64n) - 1n, 1n << 63n, 0n],
    bool: [1, 0, 1, 1],
    complex64: [1, -1, 2.5, 0, 0, 3, -4, 4],
    complex128: [1.1, -1, 2.5, 0, 0, 3, -4, 4],
  }
  const arrays = {
    float32: Float32Array,
    float64: Float64Array,
    float16: Float32Array,
    bfloat16: Float32Array,
    int8: Int8Array,
    int16: Int16Array,
    int32: Int32Array,
    int64: BigInt64Array,
    uint8: Uint8Array,
    uint16: Uint16Array,
    uint32: Uint32Array,
    uint64: BigUint64Array,
    bool: Uint8Array,
    complex64: Float32Array,
    complex128: Float64Array,
  } as const
  let dtypes: Trial

  beforeAll(async () => {
    const directory = join(scratch, 'dtypes')
    const writer = new TrialWriter(directory)
    const tensors = Object.entries(numbers).flatMap(([name, values]) => {
      const dtype = name as Exclude<DTypeName, 'string'>
      return (['content', 'packed'] as const).map(place => {
        return { name: `${dtype}/${place}`, dtype, shape: [2, 1, 2], values, place }
      })
    })
    writer.step({
      step: 0,
      tensors: [
        ...tensors,
        { name: 'string', dtype: 'string', shape: [3], strings: ['a', '', '\u{1f600}ß'] },
        { name: 'scalar', dtype: 'float32', shape: [], values: [2.5] },
        { name: 'empty', dtype: 'float64', shape: [0, 3], values: [] },
        { name: 'empty/string', dtype: 'string', shape: [0], strings: [] },
        { name: 'simple', simpleValue: 0.5 },
      ],
    })
    dtypes = await createTrial(directory)
  })

  it.each(Object.keys(numbers) as (keyof typeof numbers)[])('of %s', async dtype => {
    for (const place of ['content', 'packed']) {
      for (const threads of [0, 1]) {
        const value = await dtypes.tensor(`${dtype}/${place}`).value(0, { threads })
        expect([value.dtype, value.shape, value.stride, value.offset]).toEqual([dtype, [2, 1, 2], [2, 2, 1], 0])
        expect(value.data).toBeInstanceOf(arrays[dtype])
        expect(Array.from(value.data as Iterable<unknown>)).toEqual(
          dtype === 'float32' || dtype === 'complex64'
            ? numbers[dtype].map(x => Math.fround(Number(x)))
            : numbers[dtype],
        )
        expect(Buffer.compare(value.bytes, elementBytes(dtype, numbers[dtype]))).toBe(0)
        expect(value.bytes.length).toBe(4 * DTYPES[dtype].byteLength)
        if (dtype === 'float16')
          expect(value.bits).toEqual(Uint16Array.from(numbers.float16.map(x => float16Bits(Number(x)))))
        else if (dtype === 'bfloat16') {
          expect(value.bits).toEqual(Uint16Array.from(numbers.bfloat16.map(x => bfloat16Bits(Number(x)))))
        } else expect(value.bits).toBeUndefined()
        const hasFloat16 = dtype === 'float16' && 'Float16Array' in globalThis
        if (hasFloat16) expect(Array.from(value.float16!)).toEqual(numbers.float16)
        else expect(value.float16).toBeUndefined()
      }
    }
  })

  it('of strings, scalars, and of nothing', async () => {
    expect(await dtypes.tensor('string').value(0)).toMatchObject({
      dtype: 'string',
      shape: [3],
      stride: [1],
      data: ['a', '', '\u{1f600}ß'],
    })
    expect(await dtypes.tensor('scalar').value(0)).toMatchObject({ shape: [], stride: [], data: Float32Array.of(2.5) })
    expect(await dtypes.tensor('empty').value(0)).toMatchObject({
      shape: [0, 3],
      stride: [3, 1],
      data: new Float64Array(),
    })
    expect(await dtypes.tensor('empty/string').value(0)).toMatchObject({ shape: [0], data: [] })
    expect(await dtypes.tensor('simple').value(0)).toMatchObject({
      dtype: 'float32',
      shape: [],
      data: Float32Array.of(0.5),
    })
  })

  it('are compared when they can be', async () => {
    const one = await dtypes.tensor('float32/content').value(0)
    const same = await dtypes.tensor('float32/packed').value(0)
    expect(allclose(one, same, { rtol: 0, atol: 0 })).toBe(true)
    expect(() => allclose(one, { ...same, shape: [4] })).toThrow(UsageError)
    const text = await dtypes.tensor('string').value(0)
    expect(() => allclose(text, text)).toThrow(UsageError)
  })
})

describe('rangeSteps', () => {
  it.each([
    [
      [10, 20],
      [10, 11],
    ],
    [
      [null, 11],
      [0, 10],
    ],
    [
      [11, null],
      [11, 20],
    ],
    [
      [null, null],
      [0, 10, 11, 20],
    ],
    [[500, 600], []],
    [null, [0, 10, 11, 20]],
  ] as [StepRange | null, number[]][])('%j', async (rangeSteps, steps) => {
    const loaded = await createTrial(running, { rangeSteps })
    expect(loaded.steps()).toEqual(steps)
    const outside = loaded.hasTensor('fc.weight') && !steps.includes(0)
    if (outside) expect(await rejectionOf(loaded.tensor('fc.weight').value(0))).toBeInstanceOf(QueryError)
  })

  it.each([
    [[5, 5]],
    [[6, 5]],
    [[-1, 5]],
    [[0.5, 5]],
    [['0', '5']],
    [[1]],
    [[1, 2, 3]],
    [[Number.NaN, 5]],
    [[0, Number.POSITIVE_INFINITY]],
    ['0:5'],
    [7],
  ])('%j is refused', async rangeSteps => {
    expect(await rejectionOf(createTrial(running, { rangeSteps: rangeSteps as unknown as StepRange }))).toBeInstanceOf(
      UsageError,
    )
  })
})

describe('summary', () => {
  it('tells dtype, shape, steps and bytes of every tensor', async () => {
    for (const threads of [0, 1]) {
      const { tensors, byteLength } = await trial.summary({ threads })
      const byName = new Map(tensors.map(tensor => [tensor.name, tensor]))
      expect([...byName.keys()].sort()).toEqual(trial.tensorNames())
      expect(byName.get('fc.weight')).toMatchObject({
        dtype: 'float32',
        shape: [2, 3],
        stepCount: 5,
        savedReductions: [],
      })
      expect(byName.get('loss')).toMatchObject({ dtype: null, shape: null, savedReductions: ['mean', 'abs_max'] })
      expect(byName.get('shaped')).toMatchObject({ dtype: null, byteLength: 0, stepCount: 5 })
      expect(byteLength).toBe(tensors.reduce((sum, tensor) => sum + tensor.byteLength, 0))
    }
  })
})
