/** Scans: what they select, in which order, and what their reductions are. */

import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import {
  createTrial,
  InvalidWorker,
  type Moments,
  mergeMoments,
  REDUCTIONS,
  ReductionUndefined,
  type ScanOptions,
  type ScanRow,
  type Trial,
  momentsOf as trialscanMomentsOf,
  UsageError,
} from '#dist/index.js'
import { type DTypeName, type StepTensor, TrialWriter } from '../fixtures/event-writer.js'
import { normals } from '../fixtures/random.js'
import { writeSample } from './support/sample.js'
import { rowsOf, thrownBy } from './support/scanning.js'
import { scratchDirectory } from './support/scratch.js'

const scratch = scratchDirectory('scan')
let trial: Trial

beforeAll(async () => {
  writeSample(join(scratch, 'sample'))
  trial = await createTrial(join(scratch, 'sample'))
})

/** The rows of a trial of one step with the given tensors, by name. */
async function scanned(tensors: readonly StepTensor[], options: ScanOptions = {}): Promise<Map<string, ScanRow>> {
  const directory = mkdtempSync(join(scratch, 'made-'))
  new TrialWriter(directory, { checksum: 'true' }).step({ step: 0, tensors })
  const rows = await rowsOf(await createTrial(directory), { checkLevel: 'full', ...options })
  return new Map(rows.map(row => [row.tensor!, row]))
}

describe('a selection', () => {
  const select = async (options: ScanOptions): Promise<string[]> =>
    (await rowsOf(trial, options)).map(({ step, worker, tensor }) => `${step} ${worker.slice(-1)} ${tensor}`)

  it('of all is in the order of steps, workers and the index file, incomplete steps too', async () => {
    const train = ['fc.weight', 'fc.bias', 'loss', 'gradient/fc.weight']
    const evaluated = ['fc.weight', 'fc.bias', 'loss', 'accuracy']
    // A saved shape without a value or reductions is nothing that could be scanned.
    expect(await select({})).toEqual(
      [0, 10, 11, 20, 30].flatMap(step =>
        [0, 1].flatMap(worker => {
          if (step === 30 && worker === 1) return []
          const names = [...(step === 11 ? evaluated : train), ...(worker === 1 ? ['only/worker_1'] : [])]
          return names.map(name => `${step} ${worker} ${name}`)
        }),
      ),
    )
  })

  it.each([
    [
      { tensors: 'fc.bias', steps: { from: 0, to: 11 } },
      ['0 0 fc.bias', '0 1 fc.bias', '10 0 fc.bias', '10 1 fc.bias'],
    ],
    // A name is no pattern: no tensor is selected because its name is longer.
    [{ tensors: ['fc.bias'], workers: 'worker_1', steps: { from: 10, to: 20 } }, ['10 1 fc.bias', '11 1 fc.bias']],
    [{ tensors: /^fc/, steps: { from: 20, to: 30 }, workers: ['worker_0'] }, ['20 0 fc.weight', '20 0 fc.bias']],
    // What is no name is a pattern.
    [{ tensors: 'c.bia', steps: { from: 20, to: 21 } }, ['20 0 fc.bias', '20 1 fc.bias']],
    [{ tensors: /FC\.B/gi, steps: { from: 20, to: 21 } }, ['20 0 fc.bias', '20 1 fc.bias']],
    [{ tensors: 'bias$', steps: { from: 20, to: 21 } }, ['20 0 fc.bias', '20 1 fc.bias']],
    [
      { tensors: ['^acc', '^only'], steps: { from: 11, to: 12 } },
      ['11 0 accuracy', '11 1 accuracy', '11 1 only/worker_1'],
    ],
    [{ tensors: ['fc.bias', '^acc'], mode: 'EVAL', workers: 'worker_0' }, ['11 0 fc.bias', '11 0 accuracy']],
    [{ collection: 'named', steps: { from: 0, to: 1 } }, ['0 0 fc.bias', '0 0 loss', '0 1 fc.bias', '0 1 loss']],
    [
      { collection: ['weights', 'named'], tensors: /fc/, mode: 'EVAL', workers: 'worker_0' },
      ['11 0 fc.weight', '11 0 fc.bias'],
    ],
    [{ collection: 'weights', tensors: 'fc.bias' }, []],
    [{ collection: 'empty' }, []],
    [{ mode: 'PREDICT' }, []],
    [{ mode: 'EVAL', tensors: 'accuracy' }, ['11 0 accuracy', '11 1 accuracy']],
    [{ steps: { to: 1 }, tensors: 'fc.bias' }, ['0 0 fc.bias', '0 1 fc.bias']],
    [{ steps: { from: 21 }, tensors: 'fc.bias' }, ['30 0 fc.bias']],
    [{ steps: { from: 1, to: 10 } }, []],
    [{ tensors: [] }, []],
    [{ workers: [] }, []],
    [{ tensors: 'shaped' }, []],
  ] as [ScanOptions, string[]][])('%j', async (options, wanted) => {
    expect(await select(options)).toEqual(wanted)
  })

  it.each([
    [{ tensors: '(' }, UsageError, /\(/],
    [{ collection: 'wieghts' }, Error, /did you mean weights/],
    [{ workers: 'worker_2' }, InvalidWorker, /"worker_2".*"worker_0", "worker_1"/],
    [{ mode: 'train' }, UsageError, /TRAIN, EVAL, PREDICT, GLOBAL/],
    [{ steps: { from: 5, to: 5 } }, UsageError, /steps/],
    [{ steps: [null, 5] }, UsageError, /steps/],
    [{ checkLevel: 'maximal' }, UsageError, /none, minimal, full/],
    [{ reductions: ['maen'] }, UsageError, /did you mean .*mean/],
    [{ reductions: ['l3'] }, UsageError, /did you mean l1 or l2/],
    [{ reductions: ['quantiles'] }, UsageError, /known are min, max/],
  ] as [ScanOptions, typeof Error, RegExp][])('%j is refused at once', (options, type, message) => {
    const failure = thrownBy(() => trial.scan(options))
    expect(failure).toBeInstanceOf(type)
    expect((failure as Error).message).toMatch(message)
  })
})

describe('a row', () => {
  it('says where it is from and what it holds', async () => {
    const [row] = await rowsOf(trial, { tensors: 'fc.weight', steps: { from: 11, to: 12 }, workers: 'worker_1' })
    expect(row).toMatchObject({
      tensor: 'fc.weight',
      step: 11,
      mode: 'EVAL',
      modeStep: 0,
      worker: 'worker_1',
      dtype: 'float32',
      shape: [2, 3],
      saved: false,
    })
    expect(Object.keys(row!.reductions)).toEqual([...REDUCTIONS])
    expect(row!.reductions).toMatchObject({
      min: -8,
      max: 11,
      sum: expect.closeTo(5.5, 12),
      abs_min: 0.5,
      abs_max: 11,
      l1: 23.5,
      abs_sum: 23.5,
    })
  })

  it('has the asked reductions in the order asked, each once', async () => {
    const [row] = await rowsOf(trial, { tensors: 'fc.bias', reductions: ['max', 'abs_mean', 'max'] })
    expect(Object.entries(row!.reductions)).toEqual([
      ['max', 0],
      ['abs_mean', 0.125],
    ])
    const [none] = await rowsOf(trial, { tensors: 'fc.bias', reductions: [] })
    expect(none!.reductions).toEqual({})
  })

  it('of saved reductions has those, bit for bit', async () => {
    const [row] = await rowsOf(trial, { tensors: 'loss', steps: { from: 10, to: 11 }, workers: 'worker_1' })
    expect(row).toMatchObject({ saved: true, dtype: null, shape: null, reductions: { mean: 2, abs_max: 7 } })
    expect([Object.keys(row!.reductions), row!.moments]).toEqual([['mean', 'abs_max'], undefined])
    const [asked] = await rowsOf(trial, { tensors: 'loss', reductions: ['l2', 'mean'] })
    expect(asked!.reductions).toEqual({ mean: 0 })
  })

  it('of saved reductions has all digits and both parts, whatever they were saved as', async () => {
    const saved = (op: string, dtype: DTypeName, ...values: (number | bigint)[]) => ({
      name: `smdebug/reductions/${op}/t`,
      dtype,
      shape: op === 'min' ? [1] : [],
      values,
    })
    const path = join(scratch, 'saved-as')
    const writer = new TrialWriter(path)
    const tensors = [
      saved('min', 'int64', 9007199254740993n),
      saved('max', 'uint64', 18446744073709551615n),
      saved('mean', 'complex64', 1.5, 2),
      saved('sum', 'complex128', -3, Number.NaN),
      saved('std', 'float16', 0.5),
      saved('abs_min', 'int8', -5),
    ]
    writer.step({ step: 0, tensors })
    writer.end()
    const trial = await createTrial(path, { requireCollections: false })
    const [row] = await rowsOf(trial)
    const reductions = {
      min: 2 ** 53,
      max: 2 ** 64,
      mean: { re: 1.5, im: 2 },
      sum: { re: Number.NaN, im: Number.NaN },
      std: 0.5,
      abs_min: -5,
    }
    expect(row).toMatchObject({ saved: true, reductions })
    expect(row!.error).toBeUndefined()
    expect(row!.exact).toEqual({ min: 9007199254740993n, max: 18446744073709551615n })
    expect(await trial.tensor('t').reductionValues(0)).toEqual(new Map(Object.entries(reductions)))
    expect(await trial.tensor('t').reductionValue(0, 'mean')).toEqual({ re: 1.5, im: 2 })
    let text = ''
    for await (const lines of trial.scan().lines('jsonl')) text += Buffer.from(lines)
    expect(text).toContain('"min":9007199254740993,"max":18446744073709551615,"mean":{"re":1.5,"im":2},"std":0.5')
  })

  it('of what is saved under a reduction’s name, and is not one number, has an error', async () => {
    const path = join(scratch, 'saved-not-one')
    const writer = new TrialWriter(path)
    const odd: StepTensor[] = [
      { name: 'smdebug/reductions/min/t', dtype: 'float32', shape: [2], values: [1, 2] },
      { name: 'smdebug/reductions/max/t', dtype: 'float32', shape: [0], values: [] },
      { name: 'smdebug/reductions/mean/t', dtype: 'string', shape: [], strings: ['3'] },
      { name: 'smdebug/reductions/std/t', dtype: 'float32', shape: [], values: [3] },
    ]
    writer.step({ step: 0, tensors: odd })
    writer.end()
    const trial = await createTrial(path, { requireCollections: false })
    const [row] = await rowsOf(trial)
    expect(row).toMatchObject({ saved: true, reductions: { std: 3 }, error: { code: 'ReductionUndefined' } })
    expect(row!.error!.message).toContain('expected one number, as it was saved, got 2 numbers')
    for (const [name, got] of [
      ['min', '2 numbers'],
      ['max', '0 numbers'],
      ['mean', 'text'],
    ] as const) {
      await expect(trial.tensor('t').reductionValue(0, name)).rejects.toThrow(`got ${got}`)
    }
  })

  it('of odd saved reductions has those: NaN, infinities, negative zero', async () => {
    const reductions = { min: -Infinity, max: Infinity, std: Number.NaN, mean: -0, sum: 1e-45 }
    const row = (await scanned([{ name: 't', reductions, savedShape: [4, 5] }])).get('t')!
    expect(row.reductions).toEqual({ ...reductions, sum: Math.fround(1e-45) })
    expect(Object.is(row.reductions.mean, -0)).toBe(true)
    expect(row.shape).toEqual([4, 5])
  })
})

describe('complex tensors', () => {
  const values = [3, -4, 0, 0, -5, 12, 1, 1]
  const magnitudes = [5, 0, 13, Math.SQRT2]
  const total = magnitudes.reduce((a, b) => a + b)
  const close = (wanted: number) => expect.closeTo(wanted, 12)

  it.each(['complex64', 'complex128'] as const)('of %s have means, norms and all of their magnitudes', async dtype => {
    const row = (await scanned([{ name: 't', dtype, shape: [4], values }])).get('t')!
    expect(row.error).toBeUndefined()
    expect(Object.keys(row.reductions)).toEqual(REDUCTIONS.filter(name => !['min', 'max', 'prod'].includes(name)))
    const spread = values.reduce((sum, x, i) => sum + (x - [-0.25, 2.25][i % 2]!) ** 2, 0) / 4
    const mean = total / 4
    const variance = magnitudes.reduce((sum, x) => sum + (x - mean) ** 2, 0) / 4
    expect(row.reductions).toEqual({
      mean: { re: -0.25, im: 2.25 },
      sum: { re: -1, im: 9 },
      variance: close(spread),
      std: close(Math.sqrt(spread)),
      l1: close(total),
      l2: close(14),
      abs_min: 0,
      abs_max: 13,
      abs_mean: close(mean),
      abs_std: close(Math.sqrt(variance)),
      abs_variance: close(variance),
      abs_sum: close(total),
      abs_prod: 0,
      abs_l1: close(total),
      abs_l2: close(14),
    })
  })

  it.each(['min', 'max', 'prod'] as const)('have no %s: asked for, that is an error beside the others', async name => {
    const row = (
      await scanned([{ name: 't', dtype: 'complex64', shape: [4], values }], { reductions: [name, 'l2'] })
    ).get('t')!
    expect(row.error).toBeInstanceOf(ReductionUndefined)
    expect(row.error).toMatchObject({ code: 'ReductionUndefined', reduction: name, dtype: 'complex64' })
    expect(row.reductions).toEqual({ l2: 14 })
    expect(row.shape).toEqual([4])
  })

  it('of NaN and of nothing', async () => {
    const rows = await scanned([
      { name: 'nan', dtype: 'complex64', shape: [2], values: [1, Number.NaN, 2, 3] },
      { name: 'empty', dtype: 'complex128', shape: [0], values: [] },
    ])
    const nan = { re: Number.NaN, im: Number.NaN }
    expect(rows.get('nan')!.reductions).toMatchObject({ mean: nan, sum: nan, l2: Number.NaN, abs_max: Number.NaN })
    expect(rows.get('empty')!.reductions).toMatchObject({ mean: nan, sum: { re: 0, im: 0 }, l1: 0, l2: 0 })
  })
})

describe('reductions', () => {
  it('of 64-bit integers have exact extremes beside', async () => {
    const rows = await scanned([
      { name: 'int64', dtype: 'int64', shape: [3], values: [-(1n << 63n), (1n << 62n) + 1n, 7n] },
      { name: 'uint64', dtype: 'uint64', shape: [2], values: [(1n << 64n) - 1n, (1n << 53n) + 1n] },
      { name: 'empty', dtype: 'int64', shape: [0], values: [] },
      { name: 'int32', dtype: 'int32', shape: [1], values: [1] },
    ])
    expect(rows.get('int64')!.exact).toEqual({
      min: -(1n << 63n),
      max: (1n << 62n) + 1n,
      abs_min: 7n,
      abs_max: 1n << 63n,
    })
    expect(rows.get('uint64')!.exact).toEqual({
      min: (1n << 53n) + 1n,
      max: (1n << 64n) - 1n,
      abs_min: (1n << 53n) + 1n,
      abs_max: (1n << 64n) - 1n,
    })
    expect([rows.get('empty')!.exact, rows.get('int32')!.exact]).toEqual([undefined, undefined])
  })

  it('of strings are none, and that is no error', async () => {
    for (const reductions of ['all', ['mean']] as const) {
      const row = (
        await scanned([{ name: 't', dtype: 'string', shape: [2], strings: ['a', 'b'] }], { reductions })
      ).get('t')!
      expect(row).toMatchObject({ dtype: 'string', shape: [2], reductions: {} })
      expect(row.error).toBeUndefined()
    }
  })

  it('of no elements', async () => {
    const row = (await scanned([{ name: 't', dtype: 'float32', shape: [3, 0], values: [] }])).get('t')!
    expect(row.reductions).toMatchObject({
      sum: 0,
      l1: 0,
      l2: 0,
      prod: 1,
      mean: Number.NaN,
      min: Number.NaN,
      std: Number.NaN,
    })
    expect(row.moments!.count).toBe(0)
  })

  it('of NaN and infinities', async () => {
    const rows = await scanned([
      { name: 'nan', dtype: 'float64', shape: [3], values: [1, Number.NaN, Infinity] },
      { name: 'infinite', dtype: 'float16', shape: [3], values: [1, -Infinity, 2] },
      { name: 'both', dtype: 'bfloat16', shape: [2], values: [Infinity, -Infinity] },
    ])
    for (const name of REDUCTIONS) expect(rows.get('nan')!.reductions[name]).toBeNaN()
    expect(rows.get('nan')!.moments).toMatchObject({ count: 3, nanCount: 1, infinityCount: 1, zeroCount: 0 })
    expect(rows.get('infinite')!.reductions).toMatchObject({
      min: -Infinity,
      max: 2,
      mean: -Infinity,
      sum: -Infinity,
      l1: Infinity,
      l2: Infinity,
      prod: -Infinity,
      abs_min: 1,
      abs_max: Infinity,
      std: Number.NaN,
    })
    expect(rows.get('both')!.reductions).toMatchObject({
      sum: Number.NaN,
      mean: Number.NaN,
      abs_sum: Infinity,
      prod: -Infinity,
    })
  })

  it('of every dtype are what plain JavaScript says', async () => {
    const count = 1000
    const base = [...normals(count, 1)]
    const integer = base.map(x => Math.round(Math.abs(x) * 20))
    const dtypes = ['float32', 'float64', 'float16', 'bfloat16', 'int8', 'int16', 'int32', 'int64'] as const
    const unsigned = ['uint8', 'uint16', 'uint32', 'uint64', 'bool'] as const
    const tensors: StepTensor[] = [
      ...dtypes.map(dtype => ({
        name: dtype,
        dtype,
        shape: [count],
        values: dtype.startsWith('int') ? integer.map(x => x - 20) : base.map(x => Math.round(x * 64) / 64),
      })),
      ...unsigned.map(dtype => ({
        name: dtype,
        dtype,
        shape: [count],
        values: integer.map(x => (dtype === 'bool' ? x % 2 : x)),
      })),
    ].map(tensor => ({
      ...tensor,
      values:
        tensor.dtype.endsWith('64') && /int/.test(tensor.dtype) ? tensor.values.map(x => BigInt(x)) : tensor.values,
    }))
    const rows = await scanned(tensors)
    for (const { name, values } of tensors) {
      const numbers = values!.map(Number)
      const { reductions } = rows.get(name)!
      const sum = numbers.reduce((a, b) => a + b)
      const squares = numbers.reduce((a, b) => a + b * b, 0)
      // bfloat16 keeps 8 bits of each number.
      const digits = name === 'bfloat16' ? 0 : 9
      expect([name, reductions.min]).toEqual([name, expect.closeTo(Math.min(...numbers), digits)])
      expect([name, reductions.sum]).toEqual([name, expect.closeTo(sum, digits)])
      expect([name, reductions.l2]).toEqual([name, expect.closeTo(Math.sqrt(squares), digits)])
      const variance = numbers.reduce((a, b) => a + (b - sum / count) ** 2, 0) / count
      expect([name, reductions.variance]).toEqual([name, expect.closeTo(variance, digits)])
    }
  })
})

describe('mergeMoments', () => {
  const numbers = [...normals(3001, 2)].map(x => x + 5)

  async function momentsOf(
    dtype: DTypeName,
    values: readonly (number | bigint)[],
    count = values.length,
  ): Promise<Moments> {
    return (await scanned([{ name: 't', dtype, shape: [count], values }])).get('t')!.moments!
  }

  it('of two halves is the whole', async () => {
    const whole = await momentsOf('float64', numbers)
    const merged = mergeMoments([
      await momentsOf('float64', numbers.slice(0, 1234)),
      await momentsOf('float64', numbers.slice(1234)),
    ])
    expect([merged.dtype, merged.count]).toEqual(['float64', 3001])
    for (const name of REDUCTIONS) {
      const [got, wanted] = [merged.reduction(name) as number, whole.reduction(name) as number]
      // The product of so many is beyond the largest double.
      if (/min|max|prod/.test(name)) expect(got).toBe(wanted)
      else expect(Math.abs(got - wanted)).toBeLessThanOrEqual(1e-11 * Math.abs(wanted))
    }
  })

  it('of complex halves and of 64-bit integers', async () => {
    const values = numbers.slice(0, 400)
    const whole = await momentsOf('complex128', values, 200)
    const merged = mergeMoments([
      await momentsOf('complex128', values.slice(0, 100), 50),
      await momentsOf('complex128', values.slice(100), 150),
    ])
    const [got, wanted] = [merged.reduction('mean'), whole.reduction('mean')] as { re: number; im: number }[]
    expect([got!.re, got!.im]).toEqual([expect.closeTo(wanted!.re, 12), expect.closeTo(wanted!.im, 12)])
    expect(() => merged.reduction('min')).toThrow(ReductionUndefined)
    const exact = mergeMoments([await momentsOf('int64', [-(1n << 63n)]), await momentsOf('int64', [(1n << 63n) - 1n])])
    expect(exact.exact).toMatchObject({ min: -(1n << 63n), max: (1n << 63n) - 1n })
  })

  it('takes rows that came as bytes', async () => {
    const bytes = Buffer.from((await momentsOf('int64', [7n, -(1n << 63n)])).row.slice().buffer)
    const again = trialscanMomentsOf('int64', new Float64Array(new Uint8Array(bytes).buffer))
    expect(again.exact).toMatchObject({ min: -(1n << 63n), max: 7n })
    expect(() => trialscanMomentsOf('int64', new Float64Array(3))).toThrow(UsageError)
  })

  it('wants at least one part, and one dtype', async () => {
    expect(() => mergeMoments([])).toThrow(/got none/)
    const parts = [await momentsOf('float32', [1]), await momentsOf('float64', [1])]
    expect(() => mergeMoments(parts)).toThrow(/float32, float64/)
    expect(() => mergeMoments(parts)).toThrow(UsageError)
  })
})
