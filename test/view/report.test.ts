/** What the file of a report holds: the numbers of a scan, the findings of the rules, and nothing that a name can run. */

import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import {
  createTrial,
  diagnose,
  evaluate,
  REDUCTIONS,
  type ReportOptions,
  RuleRegistry,
  reportHtml,
  type ScanRow,
  type Trial,
} from '#dist/index.js'
import { TrialWriter } from '../../fixtures/event-writer.js'
import { uniform } from '../../fixtures/random.js'
import { ROOT } from '../support/golden.js'
import { scratchDirectory } from '../support/scratch.js'
import { dataOf, unpacked } from './data.js'
import { HOSTILE_NAMES, writeHostile } from './hostile.js'

const TRIALS = join(ROOT, 'fixtures/trials')
const scratch = scratchDirectory('report')
const open = (path: string) => createTrial(path, { requireCollections: false, refresh: 'manual' })

const opened: Trial[] = []
afterAll(() => Promise.all(opened.map(trial => trial.close())))

async function reportOf(path: string, options?: ReportOptions) {
  const trial = await open(path)
  opened.push(trial)
  const report = await reportHtml(trial, options)
  return { trial, report, data: dataOf(report.html) }
}

it.each([
  ['base', 'TinyLM: 220 parameters in 11 tensors, bfloat16, safetensors'],
  ['sglang-dump', /: [\d,]+ elements in \d+ tensors, /],
])('says of %s what ls says', async (name, text) => {
  const { data } = await reportOf(join(ROOT, 'fixtures/checkpoints', name))
  expect(data.trials[0]!.checkpoint).toEqual(typeof text === 'string' ? text : expect.stringMatching(text))
})

describe.each(readdirSync(TRIALS))('of %s', name => {
  it('has every number of a scan, to the bit, and says where there is none', async () => {
    const { trial, report, data } = await reportOf(join(TRIALS, name))
    const [shown] = data.trials
    const states = unpacked(shown!.states).numbers
    const columns = new Map(shown!.columns.map(({ name, numbers }) => [name, unpacked(numbers)]))
    const count = shown!.steps.length
    let values = 0
    const seen = new Set<number>()
    for await (const row of trial.scan()) {
      const series = shown!.series.findIndex(
        ({ tensor, worker }) => shown!.tensors[tensor]!.name === row.tensor && shown!.workers[worker] === row.worker,
      )
      const step = shown!.steps.indexOf(row.step)
      const at = series * count + step
      seen.add(at)
      values++
      expect(states[at], `${row.tensor} at ${row.step}`).toBe(row.error ? 2 : 1)
      expect(shown!.modes[shown!.mode[step]!]).toBe(row.mode)
      expectNumbers(row, at, columns)
    }
    expect(report.values).toBe(values)
    // Nothing else is there.
    for (const [at, state] of states.entries()) if (!seen.has(at)) expect(state).toBe(0)
    for (const { isThere } of columns.values()) expect(isThere.every((is, at) => !is || seen.has(at))).toBe(true)
  })

  it('has what the rules find, causes and all', async () => {
    const { trial, data } = await reportOf(join(TRIALS, name))
    const [shown] = data.trials
    const { rules } = new RuleRegistry().all(trial)
    const { findings } = await evaluate(rules, { follow: false })
    const expected = diagnose(trial, findings).map(({ name: rule, step, tensor, cause, message }) => ({
      rule,
      step,
      tensor,
      cause,
      message,
    }))
    const got = shown!.findings.map(({ rule, step, tensor, cause, message }) => ({
      rule,
      step: shown!.steps[step],
      tensor: tensor === null ? null : shown!.tensors[tensor]!.name,
      cause,
      message,
    }))
    expect(got).toEqual(expected)
  })
})

function expectNumbers(row: ScanRow, at: number, columns: ReadonlyMap<string, ReturnType<typeof unpacked>>): void {
  for (const name of REDUCTIONS) {
    const value = row.reductions[name]
    const column = columns.get(name)
    const isNumber = typeof value === 'number'
    expect(column?.isThere[at] ?? false, `${name} of ${row.tensor} at ${row.step}`).toBe(isNumber)
    if (isNumber) expect(column!.numbers[at], `${name} of ${row.tensor} at ${row.step}`).toBe(value)
  }
}

describe('a report', () => {
  it('is the same each time, and names no address that it would load from', async () => {
    const [one, two] = [await reportOf(join(TRIALS, 'mlp-vanishing')), await reportOf(join(TRIALS, 'mlp-vanishing'))]
    expect(one.report.html).toBe(two.report.html)
    const urls = one.report.html.split('</html>')[0]!.match(/(?:https?:)?\/\/[\w.-]+\.\w+[^\s"'<>)]*/g) ?? []
    expect(urls.filter(url => !url.includes('www.w3.org/'))).toEqual([])
    expect(one.report.html).toMatch(/default-src 'none'; script-src 'sha256-[\w+/=]+'; style-src/)
  })

  it('of two trials has both, and a title', async () => {
    const trials = [await open(join(TRIALS, 'mlp-vanishing')), await open(join(TRIALS, 'mlp-all-zero'))]
    opened.push(...trials)
    const { html } = await reportHtml(trials, { title: 'a <b> & "c"' })
    expect(dataOf(html).trials.map(({ name }) => name)).toEqual(['mlp-vanishing', 'mlp-all-zero'])
    expect(html).toContain('<title>a &lt;b> &amp; &quot;c&quot; – trialscan</title>')
  })

  it('of two trials has how far they are apart, tensor by tensor and step by step', async () => {
    const [a, b] = [await open(join(TRIALS, 'mlp-vanishing')), await open(join(TRIALS, 'mlp-all-zero'))]
    opened.push(a, b)
    const { html } = await reportHtml([a, b])
    const [shown, other] = dataOf(html).trials
    expect(other!.columns.map(({ name }) => name)).not.toContain('difference')
    const numbersOf = (of: string) => unpacked(shown!.columns.find(({ name }) => name === of)!.numbers)
    const { numbers, isThere } = numbersOf('difference')
    const changed = numbersOf('changed').numbers
    let compared = 0
    for (const [i, { tensor }] of shown!.series.entries()) {
      const { name } = shown!.tensors[tensor]!
      for (const [j, step] of shown!.steps.entries()) {
        const at = i * shown!.steps.length + j
        const isInBoth = [a, b].every(
          trial =>
            trial.tensorNames().includes(name) &&
            trial
              .tensor(name)
              .steps()
              .includes(step as never),
        )
        expect(isThere[at], `${name} at ${step}`).toBe(isInBoth)
        if (!isInBoth) continue
        const [x, y] = [await a.tensor(name).value(step), await b.tensor(name).value(step)]
        const [p, q] = [Array.from(x.data as Float32Array, Number), Array.from(y.data as Float32Array, Number)]
        const apart = Math.hypot(...p.map((one, k) => one - q[k]!))
        const size = Math.hypot(...p)
        expect(changed[at]).toBe(p.filter((one, k) => one !== q[k]).length / p.length)
        const expected = apart === 0 ? 0 : apart / size
        if (expected === Number.POSITIVE_INFINITY) expect(numbers[at]).toBe(expected)
        else expect(Math.abs(numbers[at]! - expected)).toBeLessThanOrEqual(1e-9 * expected)
        compared++
      }
    }
    expect(compared).toBeGreaterThan(10)
  })

  it('takes what a scan takes, and shows that alone', async () => {
    const { data } = await reportOf(join(TRIALS, 'mlp-vanishing'), {
      collection: 'gradients',
      mode: 'TRAIN',
      steps: [0, 20],
    })
    const [shown] = data.trials
    expect(shown!.tensors.every(({ kind }) => kind === 'gradients')).toBe(true)
    expect(shown!.steps).toEqual([0, 20])
    expect(unpacked(shown!.states).numbers.every(state => state === 1)).toBe(true)
  })

  it('draws distributions whose shares are those of the elements', async () => {
    const path = join(scratch, 'ridge')
    const writer = new TrialWriter(path)
    const random = uniform(1)
    for (let step = 0; step < 100; step++) {
      const values = Array.from({ length: 4000 }, () => (random() + random() + random()) * (1 + step / 100))
      writer.step({ step, tensors: [{ name: 'weight', dtype: 'float32', shape: [4000], values }] })
    }
    writer.end()
    const { data } = await reportOf(path)
    const [ridge] = data.trials[0]!.ridges
    expect(ridge!.steps).toHaveLength(48)
    expect([ridge!.steps[0], ridge!.steps.at(-1)]).toEqual([0, 99])
    const shares = unpacked(ridge!.shares).numbers
    // Of three numbers the sum lies half below the middle; the bins of a step are equal.
    for (const [i, step] of ridge!.steps.entries()) {
      const own = shares.slice(i * ridge!.bins, (i + 1) * ridge!.bins)
      const [low, high] = [ridge!.lows[i]!, ridge!.highs[i]!]
      const sum = own.reduce((total, share) => total + share, 0)
      const middle = 1.5 * (1 + step / 100)
      const isBelow = (bin: number) => low + ((bin + 0.5) / ridge!.bins) * (high - low) < middle
      const below = own.reduce((total, share, bin) => total + (isBelow(bin) ? share : 0), 0)
      expect(below / sum).toBeCloseTo(0.5, 1)
      expect(Math.max(...own)).toBe(255)
      expect(ridge!.counts[i]).toBe(4000)
      // All but one in a thousand at each end are in a bin.
      expect((sum / 255) * ridge!.most[i]!).toBeCloseTo(1, 2)
    }
  })

  it('of names that mean harm holds them as they are, and lets none of them out', async () => {
    const path = join(scratch, 'hostile')
    writeHostile(path)
    const { report, data } = await reportOf(path)
    expect(data.trials[0]!.tensors.map(({ name }) => name).sort()).toEqual([...HOSTILE_NAMES].sort())
    expect(report.html.match(/<\/script>/g)).toHaveLength(2)
    expect(report.html).not.toContain('<img')
  })

  it('of very many numbers rounds them to three digits, and stays small', async () => {
    const path = join(scratch, 'many')
    const writer = new TrialWriter(path)
    const random = uniform(2)
    for (let step = 0; step < 250; step++) {
      const tensors = Array.from({ length: 200 }, (_, i) => ({
        name: `layer${i}.weight`,
        dtype: 'float32' as const,
        shape: [2],
        values: [random() * 10 ** ((i % 20) - 10), i === 3 && step === 0 ? Number.NaN : random()],
      }))
      writer.step({ step, tensors })
    }
    writer.end()
    const { trial, report, data } = await reportOf(path)
    expect(report.html.length).toBeLessThan(5e6)
    const [shown] = data.trials
    const column = shown!.columns.find(({ name }) => name === 'abs_mean')!
    expect([column.isExact, column.every]).toEqual([true, 1])
    const other = shown!.columns.find(({ name }) => name === 'std')!
    expect(other.isExact).toBe(false)
    const { numbers, isThere } = unpacked(other.numbers)
    const kept = Math.ceil(250 / other.every)
    let checked = 0
    for await (const { tensor, step, reductions } of trial.scan({ reductions: ['std'] })) {
      if (step % other.every !== 0) continue
      const at = shown!.tensors.findIndex(({ name }) => name === tensor) * kept + step / other.every
      expect(isThere[at]).toBe(true)
      if (Number.isNaN(reductions.std)) expect(numbers[at]).toBeNaN()
      else expect(Math.abs(numbers[at]! / (reductions.std as number) - 1)).toBeLessThan(1 / 1024)
      checked++
    }
    expect(checked).toBe(200 * kept)
  }, 180_000)

  it.each([
    [[], 'reportHtml: expected one trial or two, got 0'],
    [[1], 'reportHtml: expected trials, got "1"'],
    [[1, 2, 3], 'reportHtml: expected one trial or two, got 3'],
  ])('is of trials: %j', async (given, message) => {
    await expect(reportHtml(given as never)).rejects.toThrow(message)
  })
})

describe('a distribution', () => {
  async function ridgeFor(name: string, tensors: Parameters<TrialWriter['step']>[0]['tensors']) {
    const directory = join(scratch, name)
    const writer = new TrialWriter(directory)
    writer.step({ step: 0, tensors })
    writer.end()
    const trial = await createTrial(directory, { requireCollections: false })
    const [shown] = dataOf((await reportHtml(trial)).html).trials
    await trial.close()
    return shown!
  }
  const tensor = (values: readonly number[]) => [
    { name: 'x', dtype: 'float32' as const, shape: [values.length], values },
  ]

  it('of few elements has all that are finite, and counts the others', async () => {
    const { ridges } = await ridgeFor('few', tensor([1, Number.NaN, 3]))
    expect(ridges[0]).toMatchObject({ lows: [1], highs: [3], counts: [3], lost: [[0, 1, 0]] })
    const { numbers } = unpacked(ridges[0]!.shares)
    expect([numbers[0], numbers.at(-1), numbers.filter(share => share > 0).length]).toEqual([255, 255, 2])
  })
})

it('two trials whose workers have other names are told to have nothing that is compared', async () => {
  const paths = ['workers-4', 'workers-tf-devices'].map(name => join(ROOT, 'fixtures/trials', name))
  const pair = await Promise.all(paths.map(path => createTrial(path)))
  const { html } = await reportHtml(pair)
  const { comparison } = dataOf(html) as unknown as { comparison: { verdict: string; compared: number } }
  expect(comparison.compared).toBe(0)
  expect(comparison.verdict).toMatch(
    /^Nothing was compared: workers are compared by their names, and those of the first run \(worker_0, /,
  )
  for (const trial of pair) await trial.close()
})

it('two trials of which one has more steps and tensors are not told to be equal', async () => {
  const [a, b] = [
    [0, 1, 2],
    [0, 1],
  ].map((steps, i) => {
    const path = join(scratch, `pair-${i}`)
    const writer = new TrialWriter(path)
    for (const step of steps)
      writer.step({ step, tensors: [{ name: 'w', dtype: 'float32', shape: [2], values: [1, 2] }] })
    writer.end()
    return path
  })
  const pair = await Promise.all([a!, b!].map(path => createTrial(path, { requireCollections: false })))
  const { comparison } = dataOf((await reportHtml(pair)).html) as unknown as { comparison: object }
  expect(comparison).toMatchObject({
    differ: false,
    partial: true,
    verdict: 'No difference in what was compared, 2 tensor values: 2 steps are in both (A 3, B 2).',
  })
  for (const trial of pair) await trial.close()
})
