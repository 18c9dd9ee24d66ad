/** Two runs compared in other ways: workers of one, layouts, by halving, while one grows, as tables. */

import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet'
import { afterAll, describe, expect, it, vi } from 'vitest'
import {
  createTrial,
  DIFFERENCE_COLUMNS,
  type DifferenceAt,
  DifferenceTable,
  type DiffOptions,
  DivergesFrom,
  diff,
  diffWorkers,
  evaluate,
  type Trial,
} from '#dist/index.js'
import { type StepTensor, TrialWriter } from '../../fixtures/event-writer.js'
import { trialscan } from '../cli/run.js'
import { rejectionOf } from '../support/scanning.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('diff-ways')
const trials: Trial[] = []
afterAll(() => Promise.all(trials.map(trial => trial.close())))
let count = 0

async function open(path: string): Promise<Trial> {
  const trial = await createTrial(path, { requireCollections: false, refresh: 'manual' })
  trials.push(trial)
  return trial
}

/** A run: at each step, what each worker saves. */
function written(
  steps: readonly (readonly (readonly StepTensor[])[])[],
  collections: Record<string, { includeRegex: string[] }> = {},
): string {
  const path = join(scratch, String(count++))
  const writer = new TrialWriter(path, { numWorkers: steps[0]!.length, collections })
  for (const [step, workers] of steps.entries()) {
    for (const [worker, tensors] of workers.entries()) writer.step({ step, worker, tensors })
  }
  writer.end()
  return path
}

const alone = (steps: readonly (readonly StepTensor[])[]) => written(steps.map(tensors => [tensors]))

const f32 = (name: string, values: readonly number[], shape: readonly number[] = [values.length]): StepTensor => ({
  name,
  dtype: 'float32',
  shape,
  values,
})

const compared = async (a: string, b: string, options?: DiffOptions) => diff(await open(a), await open(b), options)
const place = ({ step, tensor, worker, otherWorker }: DifferenceAt) => ({ step, tensor, worker, otherWorker })

describe('how much', () => {
  const [x, y] = [0, 1].map(run =>
    Float32Array.from(
      { length: 20_000 },
      (_, i) => Math.fround(1 + i / 40_000) + (i % 7 === 0 ? run * 2 ** -23 * (i % 100) : 0),
    ),
  )

  it('distances in units of the last place are told by their percentiles, and the largest by its place', async () => {
    const { divergence } = await compared(
      alone([[f32('w', [...x!], [200, 100])]]),
      alone([[f32('w', [...y!], [200, 100])]]),
    )
    const apart = Array.from(x!, (value, i) => Math.round(Math.abs(y![i]! - value) * 2 ** 23)).sort((p, q) => p - q)
    const { ulps, maxUlps, meanAbsolute, maxAbsolute } = divergence!.difference!
    for (const [name, share] of [
      ['p50', 0.5],
      ['p90', 0.9],
      ['p99', 0.99],
    ] as const) {
      const exact = apart[Math.ceil(share * apart.length) - 1]!
      const atMost = Math.min(exact === 0 ? 0 : 2 ** (Math.floor(Math.log2(exact)) + 1) - 1, apart.at(-1)!)
      expect(ulps![name]).toBe(atMost)
    }
    expect(maxUlps).toBe(apart.at(-1))
    expect(meanAbsolute).toBeCloseTo(apart.reduce((sum, one) => sum + one, 0) / apart.length / 2 ** 23, 15)
    const most = Array.from(x!).findIndex((value, i) => Math.abs(y![i]! - value) === maxAbsolute)
    expect(divergence!.largest).toEqual([Math.floor(most / 100), most % 100])
  })

  it.each([
    ['float16', 10],
    ['bfloat16', 7],
  ] as const)('of %s each distance is counted, of all elements', async (dtype, digits) => {
    // Between 1 and 2 a step is 2^-digits. The distances are such that samples of the first ones would miss most of them.
    const steps = 2 ** digits
    const apart = Array.from({ length: 20_011 }, (_, i) => (i % 1024 < 400 ? 0 : (i * i) % 97))
    const of = (values: readonly number[]) => alone([[{ name: 'w', dtype, shape: [values.length], values }]])
    const first = apart.map((_, i) => (i === 5 ? Number.NaN : 1 + (i % 29) / steps))
    const second = apart.map((distance, i) => 1 + ((i % 29) + distance) / steps)
    const { ulps, maxUlps } = (await compared(of(first), of(second))).divergence!.difference!
    const sorted = apart.filter((_, i) => i !== 5).sort((p, q) => p - q)
    const at = (share: number) => sorted[Math.ceil(share * sorted.length) - 1]
    expect([maxUlps, ulps]).toEqual([96, { p50: at(0.5), p90: at(0.9), p99: at(0.99) }])
  })

  it.each([
    ['float32', 1e-6, 4e-6],
    ['float64', 1e-8, 4e-7],
    ['float16', 1e-3, 4e-3],
    ['bfloat16', 1.5e-2, 6e-2],
  ] as const)('is close for the dtype %s', async (dtype, near, far) => {
    const of = (value: number): string => alone([[{ name: 'w', dtype, shape: [1], values: [value] }]])
    expect(await compared(of(64), of(64 * (1 + near)), { tolerance: 'dtype' })).toMatchObject({ divergence: null })
    expect((await compared(of(64), of(64 * (1 + far)), { tolerance: 'dtype' })).divergence).not.toBeNull()
  })

  it.each([
    ['a', [Number.NaN, 1], [1, 1]],
    ['b', [1, 1], [Number.POSITIVE_INFINITY, 1]],
    ['both', [1, Number.NaN], [Number.NaN, 1]],
    ['neither', [1e200, 2], [1e200, 1]],
  ] as const)('NaN and infinities are in %s', async (notFinite, p, q) => {
    const of = (values: readonly number[]): string => alone([[{ name: 'w', dtype: 'float64', shape: [2], values }]])
    expect((await compared(of(p), of(q))).divergence!.difference).toMatchObject({ notFinite })
  })
})

describe('workers of one run', () => {
  const replicas = (drift: number) =>
    [0, 1, 2].map(step =>
      [0, 1, 2].map(worker => [
        f32('fc.weight', [1, 2, worker === 2 && step > 0 ? 3 + drift : 3]),
        f32('fc.weight_input', [worker]),
      ]),
    )
  const weights = { weights: { includeRegex: ['weight$'] } }

  it('are compared by their weights, each with the first', async () => {
    const found = await diffWorkers(await open(written(replicas(0.5), weights)))
    expect(found).toMatchObject({ compared: 6, equal: 4, missing: 0, equalUntil: 0 })
    expect(found.differences.map(place)).toEqual(
      [1, 2].map(step => ({ step, tensor: 'fc.weight', worker: 'worker_2', otherWorker: 'worker_0' })),
    )
    expect(found.divergence).toMatchObject({ element: [2] })
  })

  it('agree', async () => {
    expect(await diffWorkers(await open(written(replicas(0), weights)))).toMatchObject({ divergence: null, equal: 6 })
  })

  it('by what is selected, or all where there are no weights', async () => {
    const trial = await open(written(replicas(0)))
    expect((await diffWorkers(trial)).divergence).toMatchObject({ tensor: 'fc.weight_input', worker: 'worker_1' })
    expect(await diffWorkers(trial, { tensors: 'weight$' })).toMatchObject({ divergence: null, compared: 6 })
  })

  it('on the command line', async () => {
    const { code, stdout } = await trialscan('diff', written(replicas(0.5), weights), '--workers', '--format', 'table')
    expect(code).toBe(1)
    expect(stdout).toMatch(/The workers of \d+ first differ at step 1 in fc\.weight of\s+worker_2, beside\s+worker_0/)
  })

  it('go without what is about two runs', async () => {
    const { code, stderr } = await trialscan('diff', '.', '--workers', '--bisect')
    expect([code, stderr]).toEqual([2, expect.stringContaining('expected --workers without --bisect')])
  })
})

describe('layouts', () => {
  const whole = Array.from({ length: 24 }, (_, i) => i)
  /** Columns from..to of the 4 × 6 matrix. */
  const columns = (from: number, to: number, values = whole) =>
    f32(
      'w',
      values.filter((_, i) => i % 6 >= from && i % 6 < to),
      [4, to - from],
    )
  const bias = f32('b', [1, 2])
  const two = written([
    [
      [columns(0, 3), bias],
      [columns(3, 6), bias],
    ],
  ])
  const three = (values = whole) =>
    written([
      [
        [columns(0, 2, values), bias],
        [columns(2, 4, values), bias],
        [columns(4, 6, values), bias],
      ],
    ])

  it('are compared once their shards are put together', async () => {
    expect(await compared(two, three(), { unify: { w: 1 } })).toMatchObject({
      divergence: null,
      compared: 2,
      equal: 2,
      missing: 0,
    })
    expect(await compared(two, alone([[f32('w', whole, [4, 6]), bias]]), { unify: { w: 1 } })).toMatchObject({
      equal: 2,
    })
    const other = whole.with(16, -1)
    const { divergence } = await compared(two, three(other), { unify: { '[w]': 1 } })
    expect(divergence).toMatchObject({
      tensor: 'w',
      element: [2, 4],
      difference: { count: 24, unequalCount: 1, maxAbsolute: 17 },
    })
  })

  it('along the first axis, and from more than ten workers', async () => {
    const rows = written([
      Array.from({ length: 12 }, (_, worker) => [f32('w', whole.slice(2 * worker, 2 * worker + 2), [1, 2])]),
    ])
    expect(await compared(rows, alone([[f32('w', whole, [12, 2])]]), { unify: { w: 0 } })).toMatchObject({
      equal: 1,
      compared: 1,
    })
  })

  it('need patterns', async () => {
    const error = await rejectionOf(compared(two, two, { unify: { '(': 0 } }))
    expect(error).toHaveProperty('message', expect.stringContaining('expected a name or a pattern in the map, got "("'))
  })

  it('that do not fit are told', async () => {
    const { divergence } = await compared(two, three(), { unify: { w: 0 } })
    expect(divergence).toMatchObject({
      kind: 'shape',
      message: 'its shape is [8,3] in the first run and [12,2] in the second',
    })
    const odd = written([[[f32('w', [1, 2], [1, 2])], [f32('w', [1, 2, 3], [1, 3])]]])
    const found = await compared(odd, odd, { unify: { w: 0 } })
    expect(found.divergence).toMatchObject({
      kind: 'shape',
      message: 'expected shards of one dtype that differ along axis 0 alone, got float32 [1,2], float32 [1,3]',
    })
  })
})

describe('by halving', () => {
  const steps = 300
  const from = (first: number, isOdd = (_: number) => false) =>
    alone(
      Array.from({ length: steps }, (_, step) => [f32('w', [step >= first && !isOdd(step) ? 2 : 1]), f32('b', [1])]),
    )
  const same = from(steps)

  it.each([0, 1, 137, 298, 299])('the first step that differs is found: %i', async first => {
    const { divergence, bisection, equalUntil } = await compared(same, from(first), { bisect: true })
    expect(divergence).toMatchObject({ step: first, tensor: 'w' })
    expect(bisection!.contradiction).toBeNull()
    expect(bisection!.steps.length).toBeLessThan(2 + Math.log2(steps) + 9)
    expect(equalUntil === null || equalUntil < first).toBe(true)
  })

  it('that none differs is told', async () => {
    expect(await compared(same, same, { bisect: true })).toMatchObject({
      divergence: null,
      bisection: { contradiction: null },
    })
  })

  it('differences that come and go are told', async () => {
    // Step 299 is equal, so that halving alone would find nothing.
    const { divergence, bisection } = await compared(
      same,
      from(10, step => step === 299),
      { bisect: true },
    )
    expect(divergence).toMatchObject({ step: 10 })
    expect(bisection!.contradiction).not.toBeNull()
    const table = await trialscan(
      'diff',
      same,
      from(10, step => step === 299),
      '--bisect',
      '--format',
      'table',
    )
    expect(table.stdout.replaceAll(/\s+/g, ' ')).toContain('does not agree with that: an earlier step may differ, too')
  })

  it('goes without noise', async () => {
    const trial = await open(same)
    const error = await rejectionOf(diff(trial, trial, { bisect: true, noise: [trial] }))
    expect(error).toHaveProperty('message', expect.stringContaining('expected bisect without noise'))
  })
})

describe('names', () => {
  const ofA = [f32('x', [1, 2]), f32('layer1.weight', [1, 2, 3]), f32('layer1.bias', [1]), f32('loss', [3], [])]
  const ofB = [
    f32('x', [1, 2]),
    f32('encoder.w', [1, 2, 3]),
    f32('encoder.b', [1]),
    f32('loss', [3], []),
    f32('extra', [9]),
  ]

  it('are suggested by shapes and neighbours, and not used', async () => {
    const found = await compared(alone([ofA]), alone([ofB]))
    expect(found).toMatchObject({ compared: 2, missing: 5, divergence: null })
    expect(found.suggestions).toEqual([
      { tensor: 'layer1.weight', otherTensor: 'encoder.w', shape: [3] },
      { tensor: 'layer1.bias', otherTensor: 'encoder.b', shape: [1] },
    ])
    const map = Object.fromEntries(found.suggestions.map(({ tensor, otherTensor }) => [tensor, otherTensor]))
    expect(await compared(alone([ofA]), alone([ofB]), { map })).toMatchObject({
      compared: 4,
      missing: 1,
      suggestions: [],
    })
    const { stdout } = await trialscan('diff', alone([ofA]), alone([ofB]), '--format', 'table')
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain('{ "layer1.weight": "encoder.w", "layer1.bias": "encoder.b" }')
  })

  it('are mapped both ways', async () => {
    const [plain, wrapped] = [alone([[f32('fc.w', [1])]]), alone([[f32('module.fc.w', [2])]])]
    const map = { 'module\\.(.*)': '$1' }
    expect((await compared(wrapped, plain, { map })).divergence).toMatchObject({
      tensor: 'module.fc.w',
      otherTensor: 'fc.w',
    })
    expect((await compared(plain, wrapped, { map })).divergence).toMatchObject({
      tensor: 'fc.w',
      otherTensor: 'module.fc.w',
    })
  })
})

describe('a run that grows', () => {
  it('is compared with a reference, step by step, until it ends', async () => {
    const path = join(scratch, 'growing')
    const reference = await open(alone([0, 1, 2, 3].map(() => [f32('w', [1])])))
    const writer = new TrialWriter(path, {})
    writer.step({ step: 0, tensors: [f32('w', [1])] })
    const growing = await createTrial(path, { requireCollections: false })
    trials.push(growing)
    const seen: number[] = []
    const done = diff(growing, reference, {
      follow: true,
      timeoutMs: 20_000,
      pollMs: 20,
      onDifference: ({ step }) => {
        seen.push(step)
        if (step === 2) writer.end()
      },
    })
    writer.step({ step: 1, tensors: [f32('w', [1])] })
    writer.step({ step: 2, tensors: [f32('w', [5])] })
    const { divergence, compared: pairs, equalUntil } = await done
    expect([seen, pairs, equalUntil, divergence!.step]).toEqual([[2], 3, 1, 2])
  })

  it('ends where it diverges, if that is all', async () => {
    const path = join(scratch, 'growing-on')
    const writer = new TrialWriter(path, {})
    writer.step({ step: 0, tensors: [f32('w', [2])] })
    const growing = await createTrial(path, { requireCollections: false })
    trials.push(growing)
    const reference = await open(alone([[f32('w', [1])]]))
    expect((await diff(growing, reference, { follow: true, stopAtFirst: true })).divergence!.step).toBe(0)
  })

  it('says what --follow needs', async () => {
    const { code, stderr } = await trialscan('diff', '.', '.', '--poll', '1')
    expect([code, stderr]).toEqual([2, expect.stringContaining('expected --follow beside --poll')])
  })
})

describe('DivergesFrom', () => {
  const values = (changed: number | null) =>
    [0, 1, 2].map(step => [f32('late', [step === changed ? 9 : 1, 1]), f32('early', [step === changed ? 8 : 1])])

  it('fires at each step for the first tensor in the order of execution', async () => {
    const [trial, reference] = [await open(alone(values(1))), await open(alone(values(null)))]
    const { findings } = await evaluate(new DivergesFrom(trial, { otherTrials: [reference] }))
    expect(findings).toMatchObject([
      {
        step: 1,
        tensor: 'late',
        value: 8,
        message: `1 of the 2 elements of late are not close to those of ${reference.name}: the largest difference is 8.00`,
      },
    ])
  })

  it('has a tolerance', async () => {
    const [trial, reference] = [await open(alone(values(1))), await open(alone(values(null)))]
    const { findings } = await evaluate(new DivergesFrom(trial, { otherTrials: [reference], atol: '8' }))
    expect(findings).toEqual([])
  })

  it('needs a reference', async () => {
    const { code, stderr } = await trialscan('check', alone(values(1)), '--rule', 'DivergesFrom')
    expect([code, stderr]).toEqual([
      expect.any(Number),
      expect.stringContaining('expected one other trial, the reference, got none'),
    ])
  })
})

describe('tables', () => {
  const a = alone([0, 1].map(() => [f32('w', [1, 2], [2, 1]), f32('s', [1], [])]))
  const b = alone([
    [f32('w', [1, 2], [2, 1]), f32('s', [1], [])],
    [f32('w', [1, 3], [2, 1]), f32('s', [Number.NaN], [])],
  ])

  it('of Parquet have a row for each difference', async () => {
    const out = join(scratch, 'differences.parquet')
    const { code, stdout } = await trialscan('diff', a, b, '--out', out)
    expect([code, stdout]).toEqual([1, ''])
    const rows = await parquetReadObjects({ file: await asyncBufferFromFile(out) })
    expect(rows).toMatchObject([
      {
        step: 1n,
        tensor: 'w',
        kind: 'values',
        element: [1n, 0n],
        largest: [1n, 0n],
        unequal: 1n,
        count: 2n,
        max_abs: 1,
        noise: null,
      },
      { step: 1n, tensor: 's', kind: 'values', element: undefined, max_abs: Number.NaN, not_finite: 'b' },
    ])
    expect(Object.keys(rows[0]!)).toEqual(DIFFERENCE_COLUMNS.map(({ name }) => name))
  })

  it('may be empty', async () => {
    const out = join(scratch, 'none.parquet')
    expect((await trialscan('diff', a, a, '--out', out)).code).toBe(0)
    expect(await parquetReadObjects({ file: await asyncBufferFromFile(out) })).toEqual([])
  })

  it('are made of what diff finds', async () => {
    const table = new DifferenceTable()
    const chunks: Uint8Array[] = []
    const made = (async () => {
      for await (const chunk of table.bytes('arrow')) chunks.push(chunk)
    })()
    await diff(await open(a), await open(b), { onDifference: difference => table.add(difference) })
    table.end()
    // A caller may end it in a `finally`, too.
    table.end()
    await made
    const { tableFromIPC } = await import('apache-arrow')
    expect(tableFromIPC(Buffer.concat(chunks)).numRows).toBe(2)
  })
})

it('places are opened, and closed again, whatever comes of it', async () => {
  const [a, b] = [alone([[f32('w', [1])]]), alone([[f32('w', [2])]])]
  const first = await open(a)
  const close = vi.spyOn(Object.getPrototypeOf(first) as Trial, 'close')
  expect(await diff(a, pathToFileURL(b))).toMatchObject({ divergence: { tensor: 'w', step: 0 }, compared: 1 })
  expect(close).toHaveBeenCalledTimes(2)
  expect((await diff(first, b)).compared).toBe(1)
  expect(close).toHaveBeenCalledTimes(3)
  await expect(diff(a, join(scratch, 'nosuch'))).rejects.toThrow('no such file or directory')
  expect(close).toHaveBeenCalledTimes(4)
  close.mockRestore()
})
