/** Two runs compared: each number held against plain loops over the elements. */

import { cpSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import { createTrial, type DifferenceAt, diff, type Trial } from '#dist/index.js'
import { elementBytes, type StepTensor, TrialWriter } from '../../fixtures/event-writer.js'
import { trialscan } from '../cli/run.js'
import { isRequired, ROOT } from '../support/golden.js'
import { rejectionOf } from '../support/scanning.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('diff')
const trials: Trial[] = []
afterAll(() => Promise.all(trials.map(trial => trial.close())))
let count = 0

async function open(path: string): Promise<Trial> {
  const trial = await createTrial(path, { requireCollections: false, refresh: 'manual' })
  trials.push(trial)
  return trial
}

/** A run of steps, each with tensors. */
function written(steps: readonly (readonly StepTensor[])[], workers = 1): string {
  const path = join(scratch, String(count++))
  const writer = new TrialWriter(path, { numWorkers: workers })
  for (const [step, tensors] of steps.entries()) {
    for (let worker = 0; worker < workers; worker++) writer.step({ step, worker, tensors })
  }
  writer.end()
  return path
}

/** A run that has the same tensors at these steps. */
function writtenAt(steps: readonly number[], tensors: readonly StepTensor[]): string {
  const path = join(scratch, String(count++))
  const writer = new TrialWriter(path)
  for (const step of steps) writer.step({ step, tensors })
  writer.end()
  return path
}

const f32 = (name: string, values: readonly number[], shape: readonly number[] = [values.length]): StepTensor => ({
  name,
  dtype: 'float32',
  shape,
  values,
})

async function compared(a: readonly (readonly StepTensor[])[], b: typeof a, options = {}) {
  return diff(await open(written(a)), await open(written(b)), options)
}

const place = ({ step, tensor, worker, element, kind }: DifferenceAt) => ({ step, tensor, worker, element, kind })

describe('two runs', () => {
  it('are opened where their places are given', async () => {
    const place = join(ROOT, 'fixtures/trials/mlp-all-zero')
    const found = await diff(place, pathToFileURL(place))
    expect([found.divergence, found.compared]).toEqual([null, 60])
  })

  it('that are the same do not differ', async () => {
    const run = [[f32('w', [1, Number.NaN, -0]), f32('loss', [2], [])]]
    expect(await compared(run, run)).toMatchObject({
      divergence: null,
      differences: [],
      compared: 2,
      equal: 2,
      equalUntil: 0,
      missing: 0,
    })
  })

  it('first differ where the order of execution has it, at the very element', async () => {
    const a = [0, 1, 2].map(step => [f32('late', [step, 1, 2, 3], [2, 2]), f32('early', [5, 6])])
    const b = a.map((tensors, step) =>
      tensors.map(tensor => (step === 1 ? { ...tensor, values: [...(tensor.values as number[])] } : tensor)),
    )
    ;(b[1]![0]!.values as number[])[2] = 2.5
    ;(b[1]![1]!.values as number[])[1] = 7
    const { divergence, differences, equalUntil, compared: pairs, equal } = await compared(a, b)
    expect(place(divergence!)).toEqual({ step: 1, tensor: 'late', worker: 'worker_0', element: [1, 0], kind: 'values' })
    expect(differences.map(({ tensor }) => tensor)).toEqual(['late', 'early'])
    expect([equalUntil, pairs, equal]).toEqual([0, 6, 4])
  })

  it('tell how much they differ, as plain loops have it', async () => {
    const [x, y] = [0, 1].map(run =>
      Float32Array.from({ length: 10_000 }, (_, i) => Math.sin(i * 7 + 1) * 3 + (i % 10 === 3 ? run * 1e-4 : 0)),
    )
    const { divergence } = await compared([[f32('w', [...x!], [100, 100])]], [[f32('w', [...y!], [100, 100])]], {
      rtol: 1e-5,
      atol: 1e-8,
    })
    const pairs = Array.from(x!, (p, i) => [p, y![i]!] as const)
    const unequal = pairs.filter(([p, q]) => p !== q)
    const bits = (value: number) => {
      const word = new Int32Array(Float32Array.of(value).buffer)[0]!
      return word < 0 ? -(word & 0x7fffffff) : word
    }
    const { difference } = divergence!
    expect(difference).toMatchObject({
      count: 10_000,
      hasEqualBits: false,
      first: pairs.findIndex(([p, q]) => p !== q),
      unequalCount: unequal.length,
      maxUlps: Math.max(...unequal.map(([p, q]) => Math.abs(bits(p) - bits(q)))),
    })
    const close = ([p, q]: readonly [number, number]) =>
      Math.abs(p - q) <= Math.fround(1e-8) + Math.fround(1e-5) * Math.abs(q)
    expect(Math.abs(difference!.beyondCount - unequal.filter(pair => !close(pair)).length)).toBeLessThanOrEqual(2)
    expect(difference!.maxAbsolute).toBeCloseTo(Math.max(...pairs.map(([p, q]) => Math.abs(p - q))), 12)
    expect(difference!.maxRelative / Math.max(...pairs.map(([p, q]) => Math.abs(p - q) / Math.abs(q)))).toBeCloseTo(
      1,
      9,
    )
    const sum = (of: (p: number, q: number) => number) => pairs.reduce((total, [p, q]) => total + of(p, q), 0)
    expect(difference!.cosine).toBeCloseTo(sum((p, q) => p * q) / Math.sqrt(sum(p => p * p) * sum((_, q) => q * q)), 12)
    expect(difference!.normRatio).toBeCloseTo(Math.sqrt(sum(p => p * p) / sum((_, q) => q * q)), 12)
    const relative = Math.sqrt(sum((p, q) => (p - q) ** 2) / sum(p => p * p))
    expect(difference!.relativeNorm! / relative).toBeCloseTo(1, 12)
    expect(difference!.largestPair).toEqual(pairs[difference!.largest!])
  })

  it.each([
    ['float64', [3, 4, 0], [3, 4, 0.5], 0.1, [0, 0.5]],
    ['float64', [3e200, 4e200, 0], [3e200, 4e200, 5e199], 0.1, [0, 5e199]],
    ['float16', [3, 4, 0], [3, 4, 0.5], 0.1, [0, 0.5]],
    ['int32', [3, 4, 0], [3, 5, 0], 0.2, [4, 5]],
    ['int64', [3n, 4n, 0n], [3n, 5n, 0n], 0.2, [4, 5]],
    ['float32', [0, 0], [0, 1], Number.POSITIVE_INFINITY, [0, 1]],
    ['float32', [1, 2], [1, Number.NaN], null, [2, Number.NaN]],
    ['float64', [1, 1], [1, Number.POSITIVE_INFINITY], Number.POSITIVE_INFINITY, [1, Number.POSITIVE_INFINITY]],
  ] as const)('of %s have moved by ‖Δ‖/‖a‖: %s and %s', async (dtype, x, y, relativeNorm, largestPair) => {
    const tensor = (values: typeof x): StepTensor => ({
      name: 'w',
      dtype,
      shape: [values.length],
      values: [...values] as never,
    })
    const { divergence } = await compared([[tensor(x)]], [[tensor(y as never)]])
    const { difference } = divergence!
    if (relativeNorm === null || relativeNorm === Number.POSITIVE_INFINITY)
      expect(difference!.relativeNorm).toBe(relativeNorm)
    else expect(difference!.relativeNorm).toBeCloseTo(relativeNorm, 12)
    expect(difference!.largestPair).toEqual(largestPair)
  })

  it.each(['float16', 'bfloat16', 'float32', 'float64', 'complex64', 'complex128'] as const)(
    'do not differ by the bits of a NaN: %s',
    async dtype => {
      // Of another sign and another payload.
      const nan = (sign: number) => {
        const bytes = elementBytes(dtype, dtype.startsWith('complex') ? [Number.NaN, 1] : [Number.NaN])
        const part = dtype.startsWith('complex') ? bytes.length / 2 : bytes.length
        bytes[part - 1] = (bytes[part - 1]! & 0x7f) | sign
        if (sign) bytes[0] = bytes[0]! | 1
        return bytes
      }
      const run = (sign: number, zero: number) => {
        const last = elementBytes(dtype, dtype.startsWith('complex') ? [zero, 0] : [zero])
        return [[{ name: 'w', dtype, shape: [2], data: Buffer.concat([nan(sign), last]) }]]
      }
      expect(await compared(run(0, 0), run(0x80, 0))).toMatchObject({ divergence: null, equal: 1 })
      expect(await compared(run(0, 0), run(0x80, -0))).toMatchObject({ divergence: { element: [1] } })
    },
  )

  it.each([
    ['the sign of a zero', [0, 0, 1], [0, -0, 1], [1]],
    ['a NaN against a number', [1, 2, Number.NaN], [1, 2, 3], [2]],
    ['an infinity', [Number.POSITIVE_INFINITY, 1], [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY], [1]],
    ['the last bit', [1, 1, 1], [1, 1, 1 + 2 ** -23], [2]],
  ])('differ by %s', async (_, x, y, element) => {
    const { divergence } = await compared([[f32('w', x)]], [[f32('w', y)]])
    expect(divergence).toMatchObject({ element, kind: 'values' })
  })

  it('are close within a tolerance, and diverge beyond it', async () => {
    const [a, b] = [[[f32('w', [1, 100])]], [[f32('w', [1, 100.0005])]]]
    expect(await compared(a, b, { rtol: 1e-5 })).toMatchObject({ divergence: null, close: 1, equal: 0 })
    expect(await compared(a, b, { rtol: 1e-7 })).toMatchObject({
      divergence: { difference: { beyondCount: 1 } },
      close: 0,
    })
  })

  it('of other types are compared after widening', async () => {
    const wide = { ...f32('w', [1, 2.5, -3]) }
    const narrow = { ...wide, dtype: 'bfloat16' as const }
    expect(await compared([[wide]], [[narrow]])).toMatchObject({
      divergence: null,
      equal: 1,
      dtypes: [{ dtype: 'float32', otherDtype: 'bfloat16', count: 1 }],
    })
    const other = { ...narrow, values: [1, 2.5, -4] }
    expect(await compared([[wide]], [[other]])).toMatchObject({
      divergence: {
        element: [2],
        difference: { dtype: 'float32', otherDtype: 'bfloat16', maxAbsolute: 1, maxUlps: null },
      },
    })
  })

  it('of other shapes can not be compared', async () => {
    const { divergence } = await compared([[f32('w', [1, 2, 3, 4], [2, 2])]], [[f32('w', [1, 2, 3, 4], [4])]])
    expect(divergence).toMatchObject({
      kind: 'shape',
      message: 'its shape is [2,2] in the first run and [4] in the second',
    })
  })

  it('of which only reductions were saved are compared by these', async () => {
    const reduced = (mean: number): StepTensor => ({ name: 'w', reductions: { mean, max: 3 }, savedShape: [4] })
    const agree = { divergence: null, compared: 1, equal: 0, reduced: 1 }
    expect(await compared([[reduced(1)]], [[reduced(1)]])).toMatchObject(agree)
    const { divergence } = await compared([[reduced(1)]], [[reduced(1.5)]])
    expect(divergence).toMatchObject({
      kind: 'reductions',
      message: 'only reductions were saved: mean is 1 and 1.5',
    })
    // Of the values of the other run they are computed.
    expect(await compared([[f32('w', [0, 1, 3, 0])]], [[reduced(1)]])).toMatchObject(agree)
    // As float32 holds them.
    const thirds: StepTensor = { name: 'w', reductions: { mean: 4 / 3, std: 1.53 }, savedShape: [3] }
    expect(await compared([[f32('w', [0, 1, 3])]], [[thirds]])).toMatchObject(agree)
  })

  it('of which only reductions were saved are not called equal', async () => {
    const run = written([[f32('x', [1]), { name: 'w', reductions: { mean: 1 }, savedShape: [4] }]])
    const { code, stdout } = await trialscan('diff', run, run, '--format', 'table')
    expect([code, stdout.replaceAll(/\s+/g, ' ')]).toEqual([
      0,
      expect.stringMatching(/no difference in what was compared\. .* 1 equal, 1 by reductions alone, which agree\. $/),
    ])
    const lines = await trialscan('diff', run, run, '--format', 'jsonl')
    expect(lines.stdout).toBe('{"divergence":null,"compared":2,"equal":1,"reduced":1}\n')
    const json = await trialscan('diff', run, run, '--format', 'json')
    expect(JSON.parse(json.stdout)).toMatchObject({ compared: 2, equal: 1, reduced: 1 })
  })

  it('are equal until the last step that could be read', async () => {
    const steps = Array.from({ length: 21 }, (_, step) => [f32('w', [step])])
    const [a, b] = [written(steps), written(steps.map((tensors, step) => (step < 15 ? tensors : [f32('w', [-1])])))]
    const file = join(b, 'events/000000000014/000000000014_worker_0.tfevents')
    truncateSync(file, statSync(file).size - 10)
    const found = await diff(await open(a), await open(b))
    expect([found.divergence!.step, found.equalUntil]).toEqual([15, 13])
    const table = await trialscan('diff', a, b, '--format', 'table')
    expect([table.code, table.stdout]).toEqual([
      4,
      expect.stringContaining('Until step 13 all that was compared was equal.'),
    ])
    const halved = await trialscan('diff', a, b, '--bisect', '--format', 'table')
    expect(halved.stdout.replaceAll(/\s+/g, ' ')).toMatch(
      /first differ at step 15 .* Until step \d+ all that was compared was equal\. .* as far as they could be read\./,
    )
  })

  it('have texts, which are the same or not', async () => {
    const text = (...values: string[]): StepTensor => ({
      name: 't',
      dtype: 'string',
      shape: [values.length],
      strings: values,
    })
    expect(await compared([[text('a', 'b')]], [[text('a', 'b')]])).toMatchObject({ divergence: null, equal: 1 })
    expect(await compared([[text('a', 'b')]], [[text('a', 'c')]])).toMatchObject({
      divergence: { element: [1], message: 'its texts differ' },
    })
  })

  it('have tensors and steps that the other lacks', async () => {
    const a = [[f32('x', [1]), f32('w', [1])], [f32('w', [1])], [f32('w', [1])]]
    const b = [[f32('w', [1]), f32('y', [1]), f32('z', [1])], [f32('w', [1])]]
    expect(await compared(a, b)).toMatchObject({
      divergence: null,
      compared: 2,
      missing: 3,
      steps: { both: 2, onlyA: [2], onlyB: [] },
    })
  })

  it('have workers by name, or one each', async () => {
    const [a, b] = [await open(written([[f32('w', [1])]], 3)), await open(written([[f32('w', [2])]], 3))]
    const { differences } = await diff(a, b)
    expect(differences.map(({ worker }) => worker)).toEqual(['worker_0', 'worker_1', 'worker_2'])
    const { compared: pairs } = await diff(a, b, { workers: 'worker_1' })
    expect(pairs).toBe(1)
  })

  it('have other names, by a map', async () => {
    const [a, b] = [[[f32('net.fc.weight', [1])]], [[f32('fc.weight', [2])]]]
    expect(await compared(a, b)).toMatchObject({ compared: 0, missing: 2, aliases: null })
    const { divergence } = await compared(a, b, { map: { 'net\\.(.*)': '$1' } })
    expect(divergence).toMatchObject({ tensor: 'net.fc.weight', otherTensor: 'fc.weight' })
  })

  it('have names with the prefixes of wrappers, which are taken off only where a name has no counterpart', async () => {
    const a = [[f32('module.model.fc.weight', [1]), f32('model.head.weight', [1]), f32('own', [1])]]
    const b = [[f32('model._orig_mod.fc.weight', [2]), f32('model.head.weight', [1]), f32('other', [1])]]
    const { differences, equal, missing, aliases } = await compared(a, b)
    expect(differences).toMatchObject([
      { tensor: 'module.model.fc.weight', otherTensor: 'model._orig_mod.fc.weight', kind: 'values' },
    ])
    expect([equal, missing, aliases?.names.size]).toEqual([1, 2, 1])
    expect([aliases?.first, aliases?.second]).toEqual([['module.'], ['_orig_mod.']])
    // Two names that are the same without their prefixes tell nothing.
    const twice = [[f32('module.fc.weight', [1]), f32('model.fc.weight', [1])]]
    expect(await compared(twice, [[f32('fc.weight', [1])]])).toMatchObject({ compared: 0, missing: 3, aliases: null })
  })

  it('of one step each are compared, whatever its number', async () => {
    const [a, b] = await Promise.all([[10], [20]].map(steps => open(writtenAt(steps, [f32('w', [1, 2])]))))
    const result = await diff(a!, b!)
    expect(result).toMatchObject({ compared: 1, equal: 1, steps: { both: 1, onlyA: [], onlyB: [] } })
    const [c, d] = await Promise.all([[10], [20, 30]].map(steps => open(writtenAt(steps, [f32('w', [1, 3])]))))
    expect(await diff(c!, d!)).toMatchObject({ compared: 0, steps: { both: 0, onlyA: [10], onlyB: [20, 30] } })
    expect((await diff(a!, c!)).divergence).toMatchObject({ step: 10, otherStep: 10 })
  })

  it('with a head that one of them ties to its embeddings lack nothing', async () => {
    const embeddings = f32('model.embed_tokens.weight', [1, 2])
    const result = await compared([[embeddings, f32('lm_head.weight', [1, 2])]], [[embeddings]])
    expect(result).toMatchObject({ equal: 1, missing: 0, divergence: null })
    const tied = { tensor: 'lm_head.weight', only: 'first', tiedTo: 'model.embed_tokens.weight', count: 1 }
    expect(result.tied).toEqual([tied])
    expect(await compared([[f32('lm_head.weight', [1])]], [[f32('w', [1])]])).toMatchObject({ missing: 2, tied: [] })
  })

  it('are read no further than the first step that differs, if that is all', async () => {
    const a = Array.from({ length: 5 }, () => [f32('w', [1])])
    const b = Array.from({ length: 5 }, (_, step) => [f32('w', [step < 2 ? 1 : 2])])
    expect((await compared(a, b, { stopAtFirst: true })).divergence!.step).toBe(2)
  })

  it('must be two', async () => {
    const trial = await open(written([[f32('w', [1])]]))
    expect(await rejectionOf(diff(trial, 5 as never))).toHaveProperty('message', 'diff: expected two trials, got 5')
  })
})

describe('beside a run of the same configuration', () => {
  const steps = (factor: number, off = 0) =>
    Array.from({ length: 4 }, (_, step) => [
      f32(
        'w',
        [step + 1, 2 * factor, 3, 4].map(value => value + off),
      ),
      f32(
        'v',
        [1, 2, 3, 4].map(value => value + off),
      ),
    ])

  it('what could not be read of it is told, and is no noise', async () => {
    const [a, b, again] = [written(steps(1)), written(steps(100)), written(steps(1))]
    for (const step of [0, 1, 2, 3]) {
      const name = `00000000000${step}`
      truncateSync(join(again, `events/${name}/${name}_worker_0.tfevents`), 40)
    }
    const { divergence, noisy, problems } = await diff(await open(a), await open(b), { noise: [await open(again)] })
    expect([divergence, noisy, problems.length]).toEqual([expect.objectContaining({ step: 0, tensor: 'w' }), 0, 4])
    expect(divergence!.message).toContain('how far runs of the same configuration are apart in it is not known')
    const { code, stderr } = await trialscan('diff', a, b, '--noise', again)
    expect([code, stderr]).toEqual([4, expect.stringContaining(again)])
    // Nothing differs, yet not all was read.
    expect((await trialscan('diff', a, a, '--noise', again)).code).toBe(4)
  })

  it('what has nothing in common with it is no noise', async () => {
    const [a, b] = [await open(written(steps(1))), await open(written(steps(1, 0.001)))]
    const others = await open(writtenAt([100, 101], [f32('w', [1, 2, 3, 4]), f32('v', [1, 2, 3, 4])]))
    expect(await diff(a, b, { noise: [others] })).toMatchObject({ divergence: { step: 0 }, noisy: 0, problems: [] })
    // One that has w alone tells of w alone.
    const some = await open(written(steps(1, 0.001).map(([w]) => [w!])))
    const found = await diff(a, b, { noise: [some] })
    expect([found.noisy, found.differences.map(({ tensor }) => tensor)]).toEqual([4, ['v', 'v', 'v', 'v']])
  })

  it('reductions of zero are equal, and NaN in it is no noise', async () => {
    const reduced = (mean: number) =>
      Array.from({ length: 12 }, () => [{ name: 'w', reductions: { min: 0, mean }, savedShape: [4] }])
    const [a, again] = [await open(written(reduced(1))), await open(written(reduced(1.001)))]
    expect(await diff(a, await open(written(reduced(1.001))), { noise: [again] })).toMatchObject({ noisy: 12 })
    expect((await diff(a, await open(written(reduced(100))), { noise: [again] })).divergence).not.toBeNull()
    const broken = await open(written(steps(1, Number.NaN)))
    const [x, y] = [await open(written(steps(1))), await open(written(steps(100)))]
    expect(await diff(x, y, { noise: [broken] })).toMatchObject({ divergence: { tensor: 'w' }, noisy: 0 })
  })
})

describe('records larger than a window', () => {
  it('are compared to the last element', async () => {
    const values = Array.from({ length: 5_000_000 }, (_, i) => i % 1000)
    const other = [...values]
    other[4_999_999] = -1
    const { divergence } = await compared([[f32('w', values, [1000, 5000])]], [[f32('w', other, [1000, 5000])]], {
      memory: 4 << 20,
    })
    expect(divergence).toMatchObject({ element: [999, 4999], difference: { unequalCount: 1, maxAbsolute: 1000 } })
  })

  const COUNT = 300_000
  const late = COUNT - 70_000
  const plain = (i: number) => ((i * 7919) % 1009) - 500
  it.each<[string, 'float64', (i: number) => number, 'float32' | 'float64', (i: number) => number]>([
    ['numbers', 'float64', plain, 'float64', i => plain(i) * (1 + (i % 5) / 64)],
    ['one number', 'float64', plain, 'float64', i => (i === late ? 600 : plain(i))],
    [
      'NaN and infinities',
      'float64',
      i => (i === late ? Number.NaN : plain(i)),
      'float64',
      i => (i > late ? 1 / 0 : plain(i)),
    ],
    ['what overflows when it is squared', 'float64', i => 1e200 * plain(i), 'float64', i => 1e180 * plain(i + 1)],
    ['the sign of a zero', 'float64', i => (i >= late ? -0 : 0), 'float64', () => 0],
    ['two types', 'float64', i => plain(i) + 0.1, 'float32', i => Math.fround(plain(i) + 0.1)],
    ['nothing', 'float64', plain, 'float64', plain],
  ])('stream with the answers of records that do not: %s', async (_, dtype, x, otherDtype, y) => {
    const of = (dtype: 'float32' | 'float64', value: (i: number) => number, shape = [300, 1000]): string =>
      written([[{ name: 'w', dtype, shape, values: Array.from({ length: COUNT }, (_, i) => value(i)) }]])
    const [a, b] = [await open(of(dtype, x)), await open(of(otherDtype, y))]
    const whole = await diff(a, b)
    const streamed = await diff(a, b, { memory: 4 << 20, checkLevel: 'full' })
    expect(streamed.divergence).toEqual(whole.divergence)
    expect(streamed.equal).toBe(whole.equal)
    const { divergence } = await diff(a, await open(of(otherDtype, y, [1000, 300])), { memory: 4 << 20 })
    expect(divergence!.kind).toBe('shape')
  })
})

describe('a real training', () => {
  const source = join(ROOT, 'fixtures/trials/cnn-raw-and-reductions')

  it('of which one bit is changed is found at that very element', async () => {
    const copy = join(scratch, 'one-bit')
    cpSync(source, copy, { recursive: true })
    const trial = await open(source)
    const [tensor, step, element] = ['CNN_fc0.weight', trial.steps()[2]!, [17, 91]] as const
    const { bytes, shape } = await trial.tensor(tensor).value(step)
    const needle = Buffer.from(bytes)
    // The record holds the elements as they are.
    const file = filesBelow(copy).find(path => readFileSync(path).includes(needle))!
    const content = readFileSync(file)
    const at = content.indexOf(needle) + 4 * (element[0] * shape[1]! + element[1])
    content[at]! ^= 1
    writeFileSync(file, content)
    const { divergence, differences } = await diff(trial, await open(copy))
    expect(place(divergence!)).toEqual({ step, tensor, worker: 'worker_0', element, kind: 'values' })
    expect(divergence!.difference).toMatchObject({ unequalCount: 1, maxUlps: 1 })
    expect(differences).toHaveLength(1)
  })

  it.runIf(isRequired('shared'))('badly initialised differs from the first step on', async () => {
    const [good, bad] = ['cnn-good', 'cnn-bad-init'].map(name => join(ROOT, '../shared/trials', name))
    const { divergence } = await diff(await open(good!), await open(bad!), { stopAtFirst: true })
    expect(divergence).toMatchObject({ step: 0, tensor: 'CNN_conv0.weight', mode: 'TRAIN' })
  })
})

/** Event files. */
function filesBelow(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.tfevents'))
    .map(name => join(directory, name))
}

describe('trialscan diff', () => {
  const a = [0, 1].map(() => [f32('w', [1, 2])])
  const b = [[f32('w', [1, 2])], [f32('w', [1, 3])]]

  it('calls nothing equal that could not be read', async () => {
    const steps = [[f32('w', [1, 2]), f32('v', [3])]]
    const [a, b] = [written(steps), written(steps)]
    const folder = join(b, 'events/000000000000')
    const file = join(folder, readdirSync(folder)[0]!)
    truncateSync(file, statSync(file).size - 10)
    const { code, stdout, stderr } = await trialscan('diff', a, b, '--format', 'table')
    expect(code).toBe(4)
    expect(stdout).toMatch(/^\S+ and \S+: no difference in what could be read; some could not\./)
    expect(stderr).toMatch(/before the file ends/)
  })

  it('tells the divergence first, then each difference', async () => {
    const { code, stdout } = await trialscan('diff', written(a), written(b), '--format', 'jsonl')
    const [first, ...rest] = stdout
      .trim()
      .split('\n')
      .map(line => JSON.parse(line))
    expect(code).toBe(1)
    expect(first.divergence).toMatchObject({
      step: 1,
      mode: 'GLOBAL',
      mode_step: 1,
      tensor: 'w',
      worker: 'worker_0',
      element: [1],
      kind: 'values',
      unequal: 1,
      max_abs: 1,
    })
    expect(rest).toEqual([first.divergence])
    const table = await trialscan('diff', written(a), written(b), '--format', 'table')
    expect(table.stdout).toMatch(
      /first differ at step 1 in w of worker_0, element \[1\]: 1 of its 2\s+elements differ, by up\s+to\s+1\./,
    )
    expect(table.stdout).toContain('Until step 0 all was equal.')
    const csv = await trialscan('diff', written(a), written(b), '--format', 'csv')
    expect(csv.stdout.split('\n')[1]).toMatch(
      /^1,GLOBAL,1,w,worker_0,values,1,1,w,worker_0,1,float32,float32,1,1,2,0.447\d+,2,3,1,0.3+,0.5,4194304,0,4194304,4194304,/,
    )
  })

  it('tells of two checkpoints what changed most, and what is equal', async () => {
    const layer = (n: number, by: number) => [
      f32(`model.layers.${n}.mlp.weight`, [3, 4 + 5 * by]),
      f32(`model.layers.${n}.self_attn.weight`, [6, 8 + 10 * by * 2]),
    ]
    const same = [f32('model.embed_tokens.weight', [1, 2])]
    const first = writtenAt([500], [...same, ...layer(0, 0), ...layer(1, 0), f32('model.norm.weight', [1, 1])])
    const second = writtenAt(
      [700],
      [...same, ...layer(0, 0.01), ...layer(1, 0.02), f32('model.norm.weight', [1, Number.NaN])],
    )
    const { code, stdout } = await trialscan('diff', first, second, '--format', 'table', '--top', '2')
    expect(code).toBe(1)
    const text = stdout.replace(/\s+/g, ' ')
    expect(text).toMatch(/5 of 6 tensors changed; model\.embed_tokens\.weight is equal bit for bit\./)
    expect(text).toContain('NaN or infinities are in the second alone of 1 tensor: model.norm.weight.')
    expect(text).toContain('Largest relative change ‖Δ‖/‖a‖ 0.04 in model.layers.1.self_attn.weight.')
    expect(text).toMatch(
      /model\.norm\.weight NaN 50\.0 % NaN \[1\] 1 → NaN model\.layers\.1\.self_attn\.weight 0\.04 50\.0 % 0\.4 \[1\] 8 → 8\.4 .* and 3 more/,
    )
    expect(text).toMatch(/layer attention mlp 0 0\.02 0\.01 1 0\.04 0\.02/)
    const lines = (await trialscan('diff', first, second, '--format', 'jsonl')).stdout.trim().split('\n').slice(1)
    const rows = lines.map(line => JSON.parse(line))
    expect(rows.map(({ tensor }) => tensor)).not.toContain('model.embed_tokens.weight')
    expect(rows[0]).toMatchObject({ step: 500, other_step: 700, relative_norm: expect.closeTo(0.01, 6), value: 4 })
  })

  it('says that there is none, with exit code 0', async () => {
    const same = await trialscan('diff', written(a), written(a), '--format', 'jsonl')
    expect([same.code, same.stdout]).toEqual([0, '{"divergence":null,"compared":2,"equal":2}\n'])
    const nothing = await trialscan('diff', written(a), written(a), '--tensor', 'nosuch', '--format', 'jsonl')
    expect([nothing.code, nothing.stdout]).toEqual([5, '{"divergence":null,"compared":0,"equal":0}\n'])
    const close = await trialscan('diff', written(a), written(b), '--atol', '2', '--format', 'table')
    expect([close.code, close.stdout]).toEqual([0, expect.stringContaining('no difference beyond the tolerance')])
  })

  it('tells what only one run has, and that it is no divergence', async () => {
    const more = [[...a[0]!, f32('x', [1])], [...a[1]!]]
    const { code, stdout, stderr } = await trialscan('diff', written(more), written(b), '--format', 'jsonl')
    const [first, ...rest] = stdout
      .trim()
      .split('\n')
      .map(line => JSON.parse(line))
    expect([code, first.divergence.step]).toEqual([1, 1])
    expect(rest.map(({ step, tensor, kind, message }) => [step, tensor, kind, message])).toEqual([
      [1, 'w', 'values', first.divergence.message],
      [0, 'x', 'missing', 'only in the first run'],
    ])
    expect(stderr).toContain('1 tensor value was not compared (kind: missing)')
    const table = await trialscan('diff', written(a), written(more), '--format', 'table')
    expect([table.code, table.stdout]).toEqual([0, expect.stringContaining('Only in the second run: x.')])
  })

  it('tells what can not be read, and that it is no divergence', async () => {
    const [whole, damaged] = [written(a), written(b)]
    const [file] = filesBelow(damaged)
    const bytes = readFileSync(file!)
    bytes[3]! ^= 1
    writeFileSync(file!, bytes)
    const { code, stdout, stderr } = await trialscan('diff', whole, damaged, '--format', 'jsonl')
    const [first, , unreadable] = stdout
      .trim()
      .split('\n')
      .map(line => JSON.parse(line))
    expect([code, first.divergence.step, stderr]).toEqual([4, 1, expect.stringContaining('offset 8')])
    expect(unreadable).toMatchObject({ step: 0, tensor: 'w', kind: 'unreadable' })
    // Beside itself it does not differ.
    const same = await trialscan('diff', damaged, damaged, '--format', 'jsonl')
    expect([same.code, same.stdout.split('\n')[0]]).toEqual([4, '{"divergence":null,"compared":1,"equal":1}'])
    const [index] = readdirSync(join(damaged, 'index/000000000'))
    writeFileSync(join(damaged, 'index/000000000', index!), '{')
    const lost = await trialscan('diff', whole, damaged, '--format', 'jsonl')
    expect([lost.code, lost.stderr]).toEqual([4, expect.stringContaining(index!)])
  })

  it('--first ends with the step that differs', async () => {
    const all = [0, 1, 2, 3].map(step => [f32('w', [step]), f32('x', [step])])
    const off = all.map((tensors, step) => (step === 0 ? tensors : [f32('w', [9]), f32('x', [9])]))
    const { stdout } = await trialscan('diff', written(all), written(off), '--first', '--format', 'jsonl')
    const [, ...rest] = stdout.trim().split('\n')
    expect(rest.map(line => JSON.parse(line)).map(({ step, tensor }) => [step, tensor])).toEqual([
      [1, 'w'],
      [1, 'x'],
    ])
  })

  it.each([
    [['diff', '.'], 2, 'expected two trials, got 1'],
    [['diff', '.', '.', '--rtol', 'x'], 2, 'a number from 0'],
    [['diff', '/no/such', '/no/such'], 3, '/no/such'],
  ])('%j is told in a line', async (args, code, message) => {
    const outcome = await trialscan(...args)
    expect([outcome.code, outcome.stderr]).toEqual([code, expect.stringContaining(message)])
  })

  it('ends with 5 where nothing can be compared', async () => {
    const { code, stderr } = await trialscan('diff', written(a), written([[f32('other', [1])]]))
    expect([code, stderr]).toEqual([5, expect.stringContaining('If names differ, use --map')])
  })
})
