/** Distributions: what a sketch counts, what is told from it, and that it is the same from everywhere. */

import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { closePools, createTrial, type ScanRow, type StatisticName, type Trial } from '#dist/index.js'
import { Distribution, distribution, histogram, moments } from '#dist/kernels.js'
import { type DTypeName, elementBytes, type StepTensor, TrialWriter } from '../fixtures/event-writer.js'
import { normals } from '../fixtures/random.js'
import { percentile } from './oracle/measures.js'
import { DTYPES, isComplex, of, valuesOf } from './support/elements.js'
import { rejectionOf, rowsOf, thrownBy } from './support/scanning.js'
import { scratchDirectory } from './support/scratch.js'

const scratch = scratchDirectory('distribution')
const REALS = DTYPES.filter(dtype => !isComplex(dtype))
const view = new DataView(new ArrayBuffer(8))

/** The bucket of a number, by definition. */
function bucketOf(x: number): number {
  view.setFloat64(0, Math.abs(x))
  const bucket = view.getUint32(0) >>> 15
  return x < 0 && bucket > 0 ? -1 - bucket : bucket
}

/** What is counted of elements: those of 32 bits and less as float32, subnormal ones of which share buckets of 2^-131. */
function counted(dtype: DTypeName, values: readonly (number | bigint)[]): [number, number][] {
  const isWide = /64$/.test(dtype)
  const counts = new Map<number, number>()
  for (const value of values) {
    let x = isWide ? Number(value) : Math.fround(Number(value))
    if (!Number.isFinite(x)) continue
    if (!isWide && Math.abs(x) < 2 ** -126) x = Math.trunc(x * 2 ** 131) * 2 ** -131
    counts.set(bucketOf(x), (counts.get(bucketOf(x)) ?? 0) + 1)
  }
  return [...counts].sort(([a], [b]) => a - b)
}

function numbersOf(dtype: DTypeName, bytes: Uint8Array): (number | bigint)[] {
  return valuesOf({ dtype, bytes, offset: 0 }) as (number | bigint)[]
}

function valuesFor(dtype: DTypeName, count: number, seed: number): number[] {
  const spread = [...normals(count, seed)]
  if (dtype === 'bool') return spread.map(x => Number(x > 0.3))
  if (dtype.startsWith('float') || dtype === 'bfloat16')
    return spread.map((x, i) => (i % 7 === 0 ? 0 : x * 10 ** (i % 4)))
  return spread.map(x => (dtype.startsWith('u') ? Math.abs(Math.round(30 * x)) : Math.round(30 * x)))
}

/** How far a quantile may be from the exact one. */
function bound(sorted: readonly number[], q: number): number {
  const rank = q * (sorted.length - 1)
  const below = Math.floor(rank)
  const [a, b] = [sorted[below]!, sorted[Math.min(below + 1, sorted.length - 1)]!]
  return ((1 - (rank - below)) * Math.abs(a) + (rank - below) * Math.abs(b)) * (1 / 65 + 1e-7) + 2 ** -131
}

describe('of arrays', () => {
  it.each(REALS)('counts any %s', dtype => {
    const size = elementBytes(dtype, [0]).length
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 * size }), given => {
        const bytes = given.subarray(0, given.length - (given.length % size))
        const values = numbersOf(dtype, bytes)
        const { buckets, counts, count } = distribution({ data: bytes, dtype }).toJSON()
        expect(count).toBe(values.length)
        expect(buckets.map((bucket, i) => [bucket, counts[i]])).toEqual(counted(dtype, values))
      }),
      { numRuns: 200 },
    )
  })

  it.each(REALS)('of %s tells quantiles to 1/65 of their value', dtype => {
    const { bytes } = of(dtype, valuesFor(dtype, 10_001, 5))
    const values = numbersOf(dtype, bytes).map(Number)
    const sorted = [...values].sort((a, b) => a - b)
    const sketched = distribution({ data: bytes, dtype })
    const isInteger = !dtype.startsWith('float') && dtype !== 'bfloat16'
    for (const q of [0, 0.001, 0.01, 0.1, 0.25, 1 / 3, 0.5, 0.6, 0.75, 0.9, 0.99, 0.999, 1]) {
      const exact = percentile(values, 100 * q)
      const error = Math.abs(sketched.quantile(q) - exact)
      expect(error, `${q}`).toBeLessThanOrEqual(bound(sorted, q))
      if (q === 0 || q === 1 || (isInteger && Math.abs(exact) < 63)) expect(sketched.quantile(q), `${q}`).toBe(exact)
    }
  })

  it('holds the bound where every number of a bucket is as far from its middle as can be', () => {
    for (let m = 0; m < 32; m++) {
      for (const x of [1 + m / 32, 1 + (m + 1) / 32 - 2 ** -23]) {
        const quantile = distribution(Float32Array.of(-100, x, 100)).quantile(0.5)
        expect(Math.abs(quantile - x) / x).toBeLessThanOrEqual((1 + 2 ** -40) / (65 + 2 * m))
      }
    }
  })

  it('knows NaN, infinities and nothing at all', () => {
    expect(distribution(Float32Array.of(1, Number.NaN)).quantile(0.5)).toBeNaN()
    expect(distribution(new Float64Array(0)).quantile(0.5)).toBeNaN()
    const infinite = distribution(Float64Array.of(-Infinity, 1, 2, Infinity, Infinity))
    // The least finite one is that of its bucket's edge, since the smallest element of all is infinite.
    expect([0, 0.25, 0.5, 0.75, 1].map(q => infinite.quantile(q))).toEqual([
      -Infinity,
      1,
      (2 * 66) / 65,
      Infinity,
      Infinity,
    ])
    expect(infinite.toJSON()).toEqual({
      count: 5,
      nan_count: 0,
      positive_infinity_count: 2,
      negative_infinity_count: 1,
      min: 1,
      max: 2.0625,
      integers: false,
      buckets: [bucketOf(1), bucketOf(2)],
      counts: [1, 1],
    })
    expect(distribution(Float32Array.of(-0, 0, -1e-45)).toJSON()).toMatchObject({ buckets: [0], counts: [3] })
    expect(distribution(Int8Array.of(-128, 127)).quantile(0)).toBe(-128)
  })

  it('counts as the exact histogram where edges are those of buckets', () => {
    const values = Float32Array.from(normals(20_000, 9))
    const edges = [-4, -2, -1, -0.5, 0, 0.125, 0.5, 1, 1.5, 2, 4]
    expect(distribution(values).histogram(edges)).toEqual(histogram(values, edges))
    expect(distribution(Float32Array.of(1, 2)).histogram([0, 1, 2]).counts).toEqual([0, 2])
  })

  it('merges into that of all elements', () => {
    const values = Float64Array.from(normals(3_000, 4))
    const parts = [values.subarray(0, 10), values.subarray(10, 10), values.subarray(10, 2_000), values.subarray(2_000)]
    const merged = parts.map(distribution).reduce((a, b) => a.merge(b))
    expect(merged.toJSON()).toEqual(distribution(values).toJSON())
    const others = distribution(Int8Array.of(1, 2)).merge(distribution(Float32Array.of(Number.NaN, Infinity)))
    expect(others.toJSON()).toMatchObject({
      count: 4,
      nan_count: 1,
      positive_infinity_count: 1,
      integers: false,
      min: 1,
      max: 2,
    })
    const stored = JSON.parse(JSON.stringify(merged)) as ReturnType<typeof merged.toJSON>
    expect(Distribution.from(stored).quantile(0.3)).toBe(merged.quantile(0.3))
    for (const wrong of [
      { counts: [] },
      { count: 5 },
      { buckets: [...stored.buckets].reverse() },
      { buckets: [0.5] },
    ]) {
      expect(thrownBy(() => Distribution.from({ ...stored, ...wrong }))).toMatchObject({ code: 'Usage' })
    }
  })

  it('refuses what has no order, and quantiles and edges that are none', () => {
    const sketched = distribution(Float32Array.of(1))
    expect(thrownBy(() => distribution({ data: Float32Array.of(1, 2), dtype: 'complex64' }))).toMatchObject({
      code: 'ReductionUndefined',
    })
    for (const q of [-0.1, 1.1, Number.NaN])
      expect(thrownBy(() => sketched.quantile(q))).toMatchObject({ code: 'Usage' })
    for (const edges of [[], [1], [1, 1], [1, Infinity]]) {
      expect(thrownBy(() => sketched.histogram(edges))).toMatchObject({ code: 'Usage' })
    }
  })
})

it('has the extremes that there are, of numbers too small for buckets of their own', () => {
  for (const values of [[-1e-40, -3e-45], [1e-40], [1e-40, 2], [-1e-39, 1e-42]]) {
    const elements = Float32Array.from(values)
    const { min, max } = distribution(elements).toJSON()
    expect([min, max]).toEqual([Math.min(...elements), Math.max(...elements)])
  }
})

describe('of a trial', () => {
  const large = Float32Array.from(normals(4_300_003, 3))
  const tensors: readonly StepTensor[] = [
    ...REALS.map((dtype): StepTensor => ({ name: dtype, dtype, shape: [5_000], values: valuesFor(dtype, 5_000, 7) })),
    { name: 'special', dtype: 'float32', shape: [6], values: [0, Number.NaN, Infinity, -Infinity, -0, 3] },
    { name: 'empty', dtype: 'float32', shape: [0], values: [] },
    { name: 'apart', dtype: 'float32', shape: [10_000], values: [-4, 1, -2], place: 'packed' },
    { name: 'zeros', dtype: 'float64', shape: [2 ** 40], values: [3, -0], place: 'packed' },
    { name: 'complex', dtype: 'complex64', shape: [1], data: elementBytes('float32', [1, 0]) },
    { name: 'text', dtype: 'string', shape: [1], strings: ['a'] },
    { name: 'saved', reductions: { mean: 2 } },
    { name: 'large', dtype: 'float32', shape: [large.length], data: new Uint8Array(large.buffer) },
  ]
  let trial: Trial

  beforeAll(async () => {
    const writer = new TrialWriter(join(scratch, 'trial'), { checksum: 'true' })
    writer.step({ step: 0, tensors })
    writer.step({ step: 1, tensors: [{ name: 'float32', dtype: 'float32', shape: [2], values: [100, -100] }] })
    writer.end()
    trial = await createTrial(join(scratch, 'trial'))
  })

  afterAll(closePools)

  async function rows(
    tensor: string | RegExp,
    reductions: readonly StatisticName[],
    threads: number,
  ): Promise<ScanRow[]> {
    return rowsOf(trial, { tensors: tensor, reductions, threads, steps: { from: 0, to: 1 } })
  }

  it.each([0, 2])('is that of its arrays, with %i threads', async threads => {
    for (const { tensor, error, reductions } of await rows(/^(u?int|b|float)/, ['sketch', '~p30'], threads)) {
      if (error) throw error
      const dtype = tensor as DTypeName
      const { bytes } = of(dtype, valuesFor(dtype, 5_000, 7))
      const expected = distribution({ data: bytes, dtype })
      expect([tensor, reductions.sketch?.toJSON()]).toEqual([tensor, expected.toJSON()])
      expect(reductions['~p30']).toBe(expected.quantile(0.3))
    }
    const [row] = await rows('large', ['sketch', 'mean', 'p50'], threads)
    expect(row!.reductions.sketch?.toJSON()).toEqual(distribution(large).toJSON())
    expect(row!.reductions.mean).toBe((await rows('large', ['mean'], threads))[0]!.reductions.mean)
    expect(row!.reductions.p50).toBe((await rows('large', ['p50'], threads))[0]!.reductions.p50)
  })

  it('leaves the moments as they are, and has exact statistics beside it', async () => {
    const names = ['mean', 'l2', 'zero_count', 'p37', 'histogram:3'] as const
    const plain = await rows(/^(?!complex|large)/, names, 0)
    const beside = await rows(/^(?!complex|large)/, [...names, '~p50'], 0)
    beside.forEach(({ tensor, reductions }, i) => {
      const { '~p50': _, ...others } = reductions
      expect([tensor, others]).toEqual([tensor, plain[i]!.reductions])
    })
  })

  it('counts the last of few values as often as it stands for others', async () => {
    const [apart] = await rows('apart', ['sketch', 'p50'], 0)
    expect(apart!.reductions.sketch?.toJSON()).toMatchObject({
      count: 10_000,
      buckets: [bucketOf(-4), bucketOf(-2), bucketOf(1)],
      counts: [1, 9_998, 1],
    })
    expect(apart!.reductions.p50).toBe(-2)
    const [zeros] = await rows('zeros', ['sketch'], 0)
    expect(zeros!.reductions.sketch?.toJSON()).toMatchObject({ buckets: [0, bucketOf(3)], counts: [2 ** 40 - 1, 1] })
  })

  it('is merged over steps', async () => {
    const [first] = await rows('float32', ['sketch'], 0)
    const merged = await trial.distribution('float32', { threads: 0 })
    expect(merged.toJSON()).toEqual(first!.reductions.sketch!.merge(distribution(Float32Array.of(100, -100))).toJSON())
    expect((await trial.distribution('float32', { steps: { from: 1, to: 2 } })).count).toBe(2)
    expect((await trial.tensor('float32').reductionValue(1, 'sketch')).toJSON()).toEqual(
      distribution(Float32Array.of(100, -100)).toJSON(),
    )
    expect(await trial.tensor('float32').reductionValue(1, '~p100')).toBe(100)
  })

  it('is refused where there is none', async () => {
    expect(await rejectionOf(trial.distribution('complex'))).toMatchObject({ code: 'ReductionUndefined' })
    expect(await rejectionOf(trial.distribution('text'))).toMatchObject({ code: 'ReductionUndefined' })
    expect(await rejectionOf(trial.distribution('saved'))).toMatchObject({ code: 'TensorUnavailable' })
    expect(await rejectionOf(trial.distribution('nowhere'))).toMatchObject({ code: 'TensorUnavailable' })
    expect((await rows('complex', ['sketch'], 0))[0]!.error).toMatchObject({ code: 'ReductionUndefined' })
  })

  it('is written as text', async () => {
    const written = async (format: 'csv' | 'jsonl'): Promise<string> => {
      const scan = trial.scan({ tensors: 'special', reductions: ['sketch'], threads: 0 })
      const chunks: Uint8Array[] = []
      for await (const chunk of scan.lines(format)) chunks.push(chunk)
      return Buffer.concat(chunks).toString()
    }
    const { sketch } = JSON.parse(await written('jsonl')) as { sketch: Parameters<typeof Distribution.from>[0] }
    expect(Distribution.from(sketch).toJSON()).toEqual(
      distribution(Float32Array.of(0, Number.NaN, Infinity, -Infinity, -0, 3)).toJSON(),
    )
    expect((await written('csv')).split('\n')[1]).toContain(`,0:2 ${bucketOf(3)}:1,false`)
  })

  it('has the counts of the moments', async () => {
    const [special] = await rows('special', ['sketch'], 0)
    const values = moments(Float32Array.of(0, Number.NaN, Infinity, -Infinity, -0, 3))
    expect(special!.reductions.sketch?.toJSON()).toMatchObject({ count: values.count, nan_count: values.nanCount })
  })
})
