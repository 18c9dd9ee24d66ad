/** Rows in columns are the rows as objects, and those are what the threads write as text. */

import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import {
  closePools,
  createTrial,
  REDUCTIONS,
  type ScanColumns,
  type ScanOptions,
  type ScanRow,
  type StatisticName,
  type Trial,
  UsageError,
} from '#dist/index.js'
import { eventFilePath, indexFilePath, TrialWriter } from '../fixtures/event-writer.js'
import { ROOT } from './support/golden.js'
import { writeSample } from './support/sample.js'
import { plainRow, rejectionOf, rowsOf } from './support/scanning.js'
import { scratchDirectory } from './support/scratch.js'

const TRIALS = ['cnn-raw-and-reductions', 'dtypes', 'tornasole-2019', 'workers-4', 'xgb-cancer'].map(name =>
  join(ROOT, 'fixtures/trials', name),
)
const scratch = scratchDirectory('scan-columns')
const sample = join(scratch, 'sample')
const damaged = join(scratch, 'damaged')
const odd = join(scratch, 'odd')
writeSample(sample)
writeSample(damaged)
const events = join(damaged, eventFilePath(10, 'worker_0'))
writeFileSync(events, readFileSync(events).subarray(0, 100))
writeFileSync(join(damaged, indexFilePath(11, 'worker_0')), '{')
writeOdd()

afterAll(closePools)

/** Numbers of every sort beside each other, a hundred steps of them. */
function writeOdd(): void {
  const writer = new TrialWriter(odd, { checksum: 'true' })
  for (let step = 0; step < 100; step++) {
    const nan = step % 3 === 0 ? Number.NaN : step
    writer.step({
      step,
      tensors: [
        { name: 'finite', dtype: 'float32', shape: [2], values: [step, -1] },
        { name: 'not finite', dtype: 'float32', shape: [step % 4, 2], values: Array(2 * (step % 4)).fill(nan) },
        { name: 'long', dtype: 'int64', shape: [1], values: [2n ** 60n + BigInt(step)] },
        { name: 'complex', dtype: 'complex64', shape: [1], values: [step, 1] },
        { name: 'text', dtype: 'string', shape: [1], strings: ['a'] },
        { name: 'saved', reductions: { mean: step, max: Number.POSITIVE_INFINITY } },
      ],
    })
  }
  writer.end()
}

const STATISTICS: readonly StatisticName[] = ['mean', 'min', 'nan_count', 'p50', 'histogram:4', 'sketch', '~p50']

const OPTIONS: readonly (readonly [string, ScanOptions])[] = [
  ['all', {}],
  ['two', { reductions: ['abs_max', 'l2'] }],
  ['statistics', { reductions: STATISTICS, wallTimes: true }],
  ['counts on threads', { reductions: ['count', 'zero_count', 'std'], threads: 2, steps: { from: 0 } }],
  ['the last steps', { steps: { from: -2 }, checkLevel: 'full', memory: 4 << 20, wallTimes: true }],
]

async function opened(dir: string): Promise<Trial> {
  return createTrial(dir, { requireCollections: false })
}

async function columnsOf(trial: Trial, options: ScanOptions): Promise<ScanColumns[]> {
  const batches: ScanColumns[] = []
  for await (const columns of trial.scan(options).columns()) batches.push(columns)
  return batches
}

/** A row put together from its columns. */
function cellsOf(columns: ScanColumns, i: number, names: readonly StatisticName[]): unknown {
  const text = <T>({ values, codes }: { values: readonly T[]; codes: Int32Array }) => values[codes[i]!] ?? null
  return {
    tensor: text(columns.tensor),
    step: columns.step[i],
    mode: text(columns.mode),
    modeStep: columns.modeStep[i],
    worker: text(columns.worker),
    dtype: text(columns.dtype),
    shape: text(columns.shape),
    saved: columns.saved[i] === 1,
    ...(columns.wallTime && { wallTime: columns.wallTime[i] }),
    failed: columns.failed.includes(i),
    reductions: names.map(name => columns.reductions[name]![i]),
  }
}

function cellsOfRow(row: ScanRow, names: readonly StatisticName[], wallTimes: boolean | undefined): unknown {
  const { tensor, step, mode, modeStep, worker, dtype, shape, saved, error, reductions, wallTime = Number.NaN } = row
  const numbers = names.map(name => (typeof reductions[name] === 'number' ? reductions[name] : Number.NaN))
  const place = { tensor, step, mode, modeStep, worker, ...(wallTimes && { wallTime }) }
  return { ...place, dtype, shape, saved, failed: error !== undefined, reductions: numbers }
}

/** A row's numbers as lines of JSON write them. */
function written(
  { tensor, step, worker, dtype, reductions, error }: ScanRow,
  names: readonly StatisticName[],
): unknown {
  const numbers = names.flatMap(name => {
    const value = reductions[name]
    return typeof value === 'number' ? [[name, Number.isFinite(value) ? value : String(value)]] : []
  })
  return { tensor, step, worker, dtype, code: error?.code, ...Object.fromEntries(numbers) }
}

describe.each([...TRIALS, sample, damaged, odd])('of %s', dir => {
  it.each(OPTIONS)('with %s, equal the rows, and the text', async (_, options) => {
    const trial = await opened(dir)
    const names = (options.reductions ?? REDUCTIONS) as readonly StatisticName[]
    const rows = await rowsOf(trial, options)
    const batches = await columnsOf(trial, options)
    const cells = batches.flatMap(columns =>
      Array.from({ length: columns.length }, (_, i) => cellsOf(columns, i, names)),
    )
    expect(cells).toEqual(rows.map(row => cellsOfRow(row, names, options.wallTimes)))
    const made = batches.flatMap(columns => Array.from({ length: columns.length }, (_, i) => columns.row(i)))
    expect(made.map(row => plainRow(row as ScanRow))).toEqual(
      rows.map(({ moments: _, ...row }) => plainRow(row as ScanRow)),
    )
    let text = ''
    for await (const lines of trial.scan(options).lines('jsonl')) text += Buffer.from(lines).toString()
    const parsed = text
      .split('\n')
      .slice(0, -1)
      .map(line => JSON.parse(line))
    expect(
      parsed.map(({ tensor, step, worker, dtype = null, error, ...numbers }) => {
        const told = names.filter(name => ['number', 'string'].includes(typeof numbers[name]))
        return {
          tensor,
          step,
          worker,
          dtype,
          code: error?.code,
          ...Object.fromEntries(told.map(name => [name, numbers[name]])),
        }
      }),
    ).toEqual(rows.map(row => written(row, names)))
    await trial.close()
  })
})

it('count rows and errors as they are handed out', async () => {
  const trial = await opened(damaged)
  const rows = await rowsOf(trial)
  const scan = trial.scan()
  let length = 0
  for await (const columns of scan.columns()) length += columns.length
  const failed = rows.filter(({ error }) => error)
  expect(failed.length).toBeGreaterThan(1)
  expect(length).toBe(rows.length)
  expect(scan.stats).toMatchObject({ rows: rows.length, failedRows: failed.length })
  expect(scan.firstError?.toJSON()).toEqual(failed[0]!.error!.toJSON())
  await trial.close()
})

it('come once, and end when the signal says so', async () => {
  cpSync(sample, join(scratch, 'again'), { recursive: true })
  const trial = await opened(join(scratch, 'again'))
  const scan = trial.scan()
  await scan.columns().next()
  expect(await rejectionOf(scan.columns().next())).toBeInstanceOf(UsageError)
  const reason = new Error('enough')
  const aborted = trial.scan({ signal: AbortSignal.abort(reason) }).columns()
  expect(await rejectionOf(aborted.next())).toBe(reason)
  await trial.close()
})

it('of no rows are none', async () => {
  const trial = await opened(sample)
  expect(await columnsOf(trial, { tensors: 'there is no such tensor' })).toEqual([])
  await trial.close()
})
