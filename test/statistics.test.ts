/** Counts, percentiles and histograms: in scans, asked for one by one, by rules, and of arrays. */

import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  closePools,
  createTrial,
  parseReductions,
  Rule,
  type ScanRow,
  type StatisticName,
  type Trial,
} from '#dist/index.js'
import { histogram, moments, percentiles, reduce } from '#dist/kernels.js'
import { type DTypeName, elementBytes, type StepTensor, TrialWriter } from '../fixtures/event-writer.js'
import { normals } from '../fixtures/random.js'
import { binned, percentile } from './oracle/measures.js'
import { of, valuesOf } from './support/elements.js'
import { plainRow, rejectionOf, rowsOf, thrownBy } from './support/scanning.js'
import { scratchDirectory } from './support/scratch.js'

const scratch = scratchDirectory('statistics')
const EDGES = [-1, 0, 0.5, 2]
const NAMES: readonly StatisticName[] = [
  'count',
  'p0',
  'p37.5',
  'p50',
  'p100',
  'histogram',
  'histogram:3',
  'histogram:-1:0:0.5:2',
]
const REALS: readonly DTypeName[] = [
  'float16',
  'bfloat16',
  'float32',
  'float64',
  'int8',
  'int16',
  'int32',
  'int64',
  'uint8',
  'uint16',
  'uint32',
  'uint64',
  'bool',
]

/** Small numbers that every dtype can hold after rounding. */
function valuesFor(dtype: DTypeName): number[] {
  const values = [...normals(5_000, 7)].map(x =>
    dtype.startsWith('float') || dtype === 'bfloat16' ? x : Math.round(20 * x),
  )
  if (dtype === 'bool') return values.map(x => Number(x > 3))
  return dtype.startsWith('uint') ? values.map(Math.abs) : values
}

const large = Float32Array.from(normals(4_300_003, 3))
const tensors: StepTensor[] = [
  ...REALS.map((dtype): StepTensor => ({ name: dtype, dtype, shape: [5_000], values: valuesFor(dtype) })),
  { name: 'special', dtype: 'float32', shape: [6], values: [0, Number.NaN, Infinity, -Infinity, -0, 3] },
  { name: 'infinite', dtype: 'float64', shape: [4], values: [1, 2, Infinity, 3] },
  { name: 'empty', dtype: 'float32', shape: [0], values: [] },
  { name: 'apart', dtype: 'float32', shape: [10], values: [4, 1, 2], place: 'packed' },
  { name: 'complex', dtype: 'complex64', shape: [2], data: elementBytes('float32', [1, 0, 0, 0]) },
  { name: 'text', dtype: 'string', shape: [1], strings: ['a'] },
  { name: 'saved', reductions: { mean: 2 } },
  { name: 'large', dtype: 'float32', shape: [large.length], data: new Uint8Array(large.buffer) },
]
let trial: Trial

beforeAll(async () => {
  const writer = new TrialWriter(join(scratch, 'trial'), { checksum: 'true' })
  writer.step({ step: 0, tensors })
  writer.end()
  trial = await createTrial(join(scratch, 'trial'))
})

afterAll(closePools)

async function rowOf(tensor: string, reductions: readonly StatisticName[], threads = 0): Promise<ScanRow> {
  const [row] = await rowsOf(trial, { tensors: tensor, reductions, threads })
  return row!
}

async function textOf(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const texts: string[] = []
  for await (const chunk of chunks) texts.push(Buffer.from(chunk).toString())
  return texts.join('')
}

describe('a scan', () => {
  it.each(REALS)('has those of %s', async dtype => {
    const values = valuesOf(of(dtype, valuesFor(dtype))).map(Number)
    const { reductions } = await rowOf(dtype, NAMES)
    expect(reductions).toEqual({
      count: 5_000,
      p0: percentile(values, 0),
      'p37.5': percentile(values, 37.5),
      p50: percentile(values, 50),
      p100: percentile(values, 100),
      histogram: binned(values, 10),
      'histogram:3': binned(values, 3),
      'histogram:-1:0:0.5:2': binned(values, EDGES),
    })
  })

  it('counts what is not finite, and has no percentile beside a NaN', async () => {
    const counts = ['count', 'nan_count', 'inf_count', 'zero_count'] as const
    expect((await rowOf('special', [...counts, 'mean', 'p50', 'histogram:2'])).reductions).toEqual({
      count: 6,
      nan_count: 1,
      inf_count: 2,
      zero_count: 2,
      mean: Number.NaN,
      p50: Number.NaN,
      'histogram:2': { counts: [2, 1], edges: [0, 1.5, 3] },
    })
    expect((await rowOf('infinite', ['p0', 'p100', 'histogram:1'])).reductions).toEqual({
      p0: 1,
      // As numpy has it: interpolated between two infinities.
      p100: Number.NaN,
      'histogram:1': { counts: [3], edges: [1, 3] },
    })
    expect((await rowOf('empty', ['count', 'p50', 'histogram:2'])).reductions).toEqual({
      count: 0,
      p50: Number.NaN,
      'histogram:2': { counts: [0, 0], edges: [0, 0.5, 1] },
    })
  })

  it('has those of values that lie one by one, the last of which stands for the rest', async () => {
    expect((await rowOf('apart', ['count', 'p0', 'p10', 'p50', 'histogram:1:2:4'])).reductions).toEqual({
      count: 10,
      p0: 1,
      p10: 1.9,
      p50: 2,
      'histogram:1:2:4': { counts: [1, 9], edges: [1, 2, 4] },
    })
  })

  it('refuses them for complex numbers and leaves them out for texts', async () => {
    expect((await rowOf('complex', ['zero_count', 'p50'])).error).toMatchObject({ code: 'ReductionUndefined' })
    expect((await rowOf('complex', ['zero_count', 'count'])).reductions).toEqual({ zero_count: 1, count: 2 })
    expect((await rowOf('complex', ['histogram'])).error).toMatchObject({ code: 'ReductionUndefined' })
    expect(await rowOf('text', ['p50', 'count'])).toMatchObject({ reductions: {}, saved: false })
    expect(await rowOf('saved', ['p50', 'mean'])).toMatchObject({ saved: true, reductions: { mean: 2 } })
  })

  it.each([0, 2])('has those of a record in parts, on %i threads, and the moments keep their bits', async threads => {
    const names: StatisticName[] = ['mean', 'l2', 'p1', 'p50', 'histogram:7']
    const row = await rowOf('large', names, threads)
    const sorted = large.slice().sort()
    const middle = (large.length - 1) / 2
    expect(row.reductions.p50).toBe(sorted[middle])
    expect(row.reductions['histogram:7']).toEqual(binned([...large], 7))
    const { reductions } = await rowOf('large', ['mean', 'l2'], threads)
    expect(row.reductions).toMatchObject(reductions)
    expect(row.reductions.p1).toBe(percentiles(large, [1])[0])
  })

  it('is the same on threads, and as text', async () => {
    const asked = { reductions: NAMES, tensors: /./ }
    const rows = await rowsOf(trial, { ...asked, threads: 0 })
    expect((await rowsOf(trial, { ...asked, threads: 2 })).map(plainRow)).toEqual(rows.map(plainRow))
    const text = async (format: 'csv' | 'jsonl', tensor: string): Promise<string> => {
      const scan = trial.scan({ tensors: tensor, reductions: ['count', 'p50', 'histogram:-1:0:5'] })
      return await textOf(scan.lines(format))
    }
    expect(await text('jsonl', 'infinite')).toBe(
      '{"tensor":"infinite","step":0,"mode":"GLOBAL","mode_step":0,"worker":"worker_0","dtype":"float64","shape":[4],' +
        '"count":4,"p50":2.5,"histogram:-1:0:5":{"counts":[0,3],"edges":[-1,0,5]}}\n',
    )
    expect((await text('csv', 'infinite')).split('\n')[1]).toBe(
      'infinite,0,GLOBAL,0,worker_0,float64,4,4,2.5,0 3,false,,',
    )
    expect((await text('jsonl', 'special')).includes('"p50":"NaN"')).toBe(true)
  })

  it('has counts in lines that threads write', async () => {
    const scan = trial.scan({
      tensors: ['float32', 'special'],
      reductions: ['count', 'inf_count', 'nan_count', 'zero_count'],
    })
    const lines = (await textOf(scan.lines('csv'))).split('\n')
    expect(lines[1]).toContain(',5000,5000,0,0,0,false')
    expect(lines[2]).toContain(',6,6,2,1,2,false')
  })
})

describe('names', () => {
  it.each([
    'p',
    'p101',
    'p-1',
    'p1e1',
    'abs_p50',
    'histogram:',
    'histogram:0',
    'histogram:1.5',
    'histogram:2:1',
    'histogram:1:1',
    'histogram:a',
    'histogram:0:1e999',
    'counts',
  ])('%s is none', name => {
    expect(thrownBy(() => parseReductions([name]))).toMatchObject({ code: 'Usage' })
  })

  it.each(['p0', 'p100', 'p99.95', 'histogram:65536', 'histogram:-1e-3:.5:+2', 'zero_count'])('%s is one', name => {
    expect(parseReductions([name, name])).toEqual([name])
  })

  it('are at most 1,000 at once, and histograms of at most 262,144 numbers', () => {
    const percentiles = Array.from({ length: 1001 }, (_, i) => `p${i / 100}`)
    expect(parseReductions(percentiles.slice(1))).toHaveLength(1000)
    expect(thrownBy(() => parseReductions(percentiles))).toMatchObject({ code: 'Usage' })
    expect(parseReductions(['histogram:65536', 'histogram:65000'])).toHaveLength(2)
    expect(thrownBy(() => parseReductions(['histogram:65536', 'histogram:65535']))).toHaveProperty(
      'message',
      expect.stringContaining('262144 numbers'),
    )
  })
})

describe('asked for one by one', () => {
  it('are those of a scan', async () => {
    const tensor = trial.tensor('float32')
    const { reductions } = await rowOf('float32', ['p50', 'histogram:4', 'zero_count'])
    expect(
      await Promise.all([
        tensor.reductionValue(0, 'p50'),
        tensor.reductionValue(0, 'histogram:4'),
        tensor.reductionValue(0, 'zero_count'),
        trial.tensor('int16').reductionValue(0, 'p50'),
      ]),
    ).toEqual([
      reductions.p50,
      reductions['histogram:4'],
      reductions.zero_count,
      (await rowOf('int16', ['p50'])).reductions.p50,
    ])
  })

  it('fail where there are none', async () => {
    expect(await rejectionOf(trial.tensor('complex').reductionValue(0, 'p50'))).toMatchObject({
      code: 'ReductionUndefined',
    })
    expect(await rejectionOf(trial.tensor('text').reductionValue(0, 'histogram'))).toMatchObject({
      code: 'ReductionUndefined',
    })
    expect(await rejectionOf(trial.tensor('saved').reductionValue(0, 'p50'))).toMatchObject({
      code: 'TensorUnavailableForStep',
    })
    expect(await rejectionOf(trial.tensor('float32').reductionValue(0, 'p50', { abs: true } as object))).toMatchObject({
      code: 'Usage',
    })
  })
})

describe('rules', () => {
  it('have them read ahead, or ask for them', async () => {
    const seen: unknown[] = []
    class Spread extends Rule {
      override setRequiredTensors(step: number): void {
        this.reqTensors.add('float32', [step], { reductions: ['p50', 'nan_count', 'histogram:2'] })
        this.reqTensors.at('int32', step).reduction('p25')
        this.reqTensors.at('int32', step).percentiles(25)
        this.reqTensors.at('complex', step).reduction('histogram')
      }
      override async invokeAtStep(step: number): Promise<boolean> {
        const tensor = this.baseTrial.tensor('float32')
        seen.push(await tensor.reductionValue(step, 'p50'), await tensor.reductionValue(step, 'nan_count'))
        seen.push(await tensor.reductionValue(step, 'histogram:2'))
        const asked = this.reqTensors.at('int32', step)
        seen.push(asked.reduction('p25').value, asked.percentiles(25).value)
        seen.push(this.reqTensors.at('complex', step).reduction('histogram').error?.code)
        return false
      }
    }
    await new Spread(trial).invoke(0)
    const { reductions } = await rowOf('float32', ['p50', 'histogram:2'])
    const { reductions: integers } = await rowOf('int32', ['p25'])
    expect(seen).toEqual([
      reductions.p50,
      0,
      reductions['histogram:2'],
      integers.p25,
      [integers.p25],
      'ReductionUndefined',
    ])
  })
})

describe('of arrays', () => {
  it('are those that numpy has', () => {
    const array = Float64Array.from({ length: 31 }, (_, i) => 0.1 * (i - 7))
    expect(histogram(array).counts).toEqual([3, 4, 3, 3, 3, 2, 4, 2, 3, 4])
    expect(histogram(array, 3)).toEqual({
      counts: [11, 10, 10],
      edges: [-0.7000000000000001, 0.30000000000000016, 1.3000000000000003, 2.3000000000000003],
    })
    expect(histogram(Float32Array.of(1, 2, 3, 4, 5, 5, 5, 8.5), [1, 2, 5, 8]).counts).toEqual([1, 3, 3])
    expect(histogram(Int8Array.of(3, 3), 2)).toEqual({ counts: [0, 2], edges: [2.5, 3, 3.5] })
    expect(percentiles(Float32Array.of(16, 1, 4, 8, 2), [0, 10, 50, 99.9, 100])).toEqual([
      1, 1.4, 4, 15.968000000000004, 16,
    ])
    expect(percentiles(new BigInt64Array([1n, 2n]), [50])).toEqual([1.5])
    expect([
      reduce(Float32Array.of(0, 1), 'zero_count'),
      moments(Float32Array.of(0, 1), ['zero_count']).reduction('count'),
    ]).toEqual([1, 2])
  })

  it('of any numbers and edges', () => {
    const number = fc.oneof(
      fc.double(),
      fc.integer({ min: -5, max: 5 }),
      fc.constantFrom(0, -0, Number.MAX_VALUE, -Number.MAX_VALUE),
    )
    const edges = fc.uniqueArray(
      fc.oneof(fc.integer({ min: -5, max: 5 }), fc.double({ noNaN: true, noDefaultInfinity: true })),
      { minLength: 2, maxLength: 9 },
    )
    fc.assert(
      fc.property(fc.array(number, { maxLength: 60 }), edges, fc.integer({ min: 1, max: 9 }), (values, given, bins) => {
        const sorted = [...new Set(given.map(x => x + 0))].sort((a, b) => a - b)
        if (sorted.length > 1) expect(histogram(Float64Array.from(values), sorted)).toEqual(binned(values, sorted))
        expect(histogram(Float64Array.from(values), bins)).toEqual(binned(values, bins))
      }),
      { numRuns: 500 },
    )
  })

  it('are refused where there are none', () => {
    const complex = { data: Float32Array.of(1, 2), dtype: 'complex64' } as const
    expect(thrownBy(() => percentiles(complex, [50]))).toMatchObject({ code: 'ReductionUndefined' })
    expect(thrownBy(() => histogram(complex))).toMatchObject({ code: 'ReductionUndefined' })
    for (const percents of [[101], [-1], [Number.NaN], 50]) {
      expect(thrownBy(() => percentiles(Float32Array.of(1), percents as number[]))).toMatchObject({
        code: 'Usage',
      })
    }
    for (const bins of [0, 1.5, [1], [2, 1], [1, Number.NaN], 'many', 1 << 17]) {
      expect(thrownBy(() => histogram(Float32Array.of(1), bins as number))).toMatchObject({ code: 'Usage' })
    }
  })
})
