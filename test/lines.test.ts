/** Rows as text from the threads that make them: the same, byte for byte, as each row written down for itself. */

import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { closePools, createTrial, REDUCTIONS, rowText, type ScanOptions, type Trial } from '#dist/index.js'
import { TrialWriter } from '../fixtures/event-writer.js'
import { fixtureTrial, fixtureTrials } from './support/golden.js'
import { writeSample } from './support/sample.js'
import { scratchDirectory } from './support/scratch.js'

const scratch = scratchDirectory('lines')
const FORMATS = ['csv', 'jsonl'] as const

afterAll(closePools)

async function writtenApart(trial: Trial, format: 'csv' | 'jsonl', options: ScanOptions): Promise<string> {
  const { head, line } = rowText.rowFormat(
    format,
    options.reductions === 'all' ? REDUCTIONS : (options.reductions ?? REDUCTIONS),
  )
  let text = head
  for await (const row of trial.scan(options)) text += line(row)
  return text
}

async function lines(trial: Trial, format: 'csv' | 'jsonl', options: ScanOptions) {
  const scan = trial.scan(options)
  const chunks: Uint8Array[] = []
  for await (const chunk of scan.lines(format)) {
    expect(chunk.at(-1), 'whole lines').toBe(10)
    chunks.push(chunk)
  }
  return { text: Buffer.concat(chunks).toString(), scan }
}

const OTHERS = { reductions: ['abs_max', 'p50', 'sketch', 'count', '~p99', 'histogram:4'] } satisfies ScanOptions

describe.each(fixtureTrials().map(({ name, directory }) => [name, directory]))('%s', (_, directory) => {
  it.each([0, 2])('with %i threads', async threads => {
    const trial = await createTrial(directory!, { requireCollections: false })
    const asked: ScanOptions[] = [{}, OTHERS, { reductions: ['sketch'] }]
    for (const [format, options] of FORMATS.flatMap(format => asked.map(options => [format, options] as const))) {
      const { text, scan } = await lines(trial, format, { ...options, threads })
      expect(text).toBe(await writtenApart(trial, format, { ...options, threads: 0 }))
      const rows = trial.scan({ ...options, threads: 0 })
      let failed = 0
      for await (const { error } of rows) if (error) failed++
      expect(scan.stats).toMatchObject({ rows: rows.stats.rows, failedRows: failed })
      expect(scan.firstError === null).toBe(failed === 0)
    }
  })
})

it('writes sketches and percentiles that read back as those of the rows', async () => {
  const trial = await createTrial(fixtureTrial('cnn-raw-and-reductions').directory)
  const [{ text }, rows] = [await lines(trial, 'jsonl', { ...OTHERS, threads: 1 }), [] as unknown[]]
  for await (const { reductions } of trial.scan(OTHERS)) rows.push(JSON.parse(JSON.stringify(reductions)))
  const read = text
    .split('\n')
    .slice(0, -1)
    .map(line => JSON.parse(line))
  expect(
    read.map(row => Object.fromEntries(OTHERS.reductions.flatMap(name => (name in row ? [[name, row[name]]] : [])))),
  ).toEqual(rows)
  expect(read.filter(({ sketch }) => sketch?.buckets.length > 10).length).toBeGreaterThan(10)
})

it('writes rows of saved reductions, several workers and failed ones in their places', async () => {
  const directory = join(scratch, 'sample')
  writeSample(directory)
  const trial = await createTrial(directory)
  for (const format of FORMATS) {
    for (const threads of [0, 1]) {
      const { text } = await lines(trial, format, { threads })
      expect(text).toBe(await writtenApart(trial, format, { threads: 0 }))
    }
  }
})

it('has an error in the row where a reduction that was asked for by name is not defined', async () => {
  const directory = join(scratch, 'complex')
  new TrialWriter(directory, { checksum: 'true' }).step({
    step: 0,
    tensors: [
      { name: 'a', dtype: 'float32', shape: [1], values: [1] },
      { name: 'z, "quoted"\n', dtype: 'complex64', shape: [1], values: [1, 2] },
      { name: 'ü', dtype: 'float64', shape: [], values: [-0] },
    ],
  })
  const trial = await createTrial(directory)
  for (const format of FORMATS) {
    const options = { reductions: ['min'] as const, threads: 0 }
    const { text, scan } = await lines(trial, format, options)
    expect(text).toBe(await writtenApart(trial, format, options))
    expect(scan.stats).toMatchObject({ rows: 3, failedRows: 1 })
    expect(scan.firstError?.code).toBe('ReductionUndefined')
  }
})

it('writes lines of any length in the order of their rows, those the core writes and those it does not', async () => {
  const directory = join(scratch, 'mixed')
  const workers = ['worker_0', 'ü".worker,1']
  const writer = new TrialWriter(directory, { checksum: 'true', workers })
  // Around what fits into the table of lines: 256 lines, 128 KiB.
  const long = [100_000, 130_400, 130_500, 131_072, 200_000].map(length => `ß${'n'.repeat(length)}`)
  for (const [i, worker] of workers.entries()) {
    for (let step = 0; step < 3; step++) {
      const tensors = Array.from({ length: 300 }, (_, k) => {
        const name = k % 60 === 59 ? `${step}${long[Math.floor(k / 60)]}` : `t${k},"`
        const values = Array.from({ length: 1 + (k % 5) }, (_, j) => (k - 150) / (j + step + i + 1))
        const shape = k % 7 === 0 ? [1, values.length, 1] : [values.length]
        if (k % 41 === 3) values[0] = Number.NaN
        if (k % 43 === 5) values[0] = Number.POSITIVE_INFINITY
        if (k % 47 === 7) return { name, dtype: 'int64', shape, values: values.map(Math.round) } as const
        if (k % 53 === 9) return { name, dtype: 'float64', shape, values: values.map(x => x * 1e300) } as const
        return { name, dtype: k % 2 ? 'float32' : 'float64', shape, values } as const
      })
      writer.step({ step, mode: 'TRAIN', worker, tensors })
    }
  }
  writer.end()
  const trial = await createTrial(directory)
  for (const format of FORMATS) {
    for (const reductions of [REDUCTIONS, ['mean', 'std'], ['min']] as const) {
      const { text, scan } = await lines(trial, format, { threads: 0, reductions })
      expect(scan.stats.rows).toBe(1800)
      expect(text === (await writtenApart(trial, format, { threads: 0, reductions }))).toBe(true)
    }
  }
})

it('is once, and instead of the rows', async () => {
  const scan = (await createTrial(fixtureTrial('plain').directory)).scan()
  for await (const _ of scan.lines('csv')) break
  await expect(scan[Symbol.asyncIterator]().next()).rejects.toThrow('once')
})
