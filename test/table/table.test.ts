/** Tables of scans, read back by other programs' readers: Parquet by hyparquet, DuckDB and parquet-wasm, Arrow by apache-arrow. */

import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { tableFromIPC, Vector } from 'apache-arrow'
import { parquetMetadata, parquetReadObjects } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'
import { readParquet } from 'parquet-wasm/node'
import { afterAll, describe, expect, it } from 'vitest'
import {
  createTrial,
  REDUCTIONS,
  type ScanOptions,
  type StatisticName,
  type TableOptions,
  tableBytes,
} from '#dist/index.js'
import { TrialWriter } from '../../fixtures/event-writer.js'
import { uniform } from '../../fixtures/random.js'
import { askDuckDB, HAS_DUCKDB } from '../support/duckdb.js'
import { ROOT } from '../support/golden.js'
import { writeSample } from '../support/sample.js'
import { type Cell, cellsOf, normal } from './expected.js'

const TRIALS = join(ROOT, 'fixtures/trials')
const directory = mkdtempSync(join(tmpdir(), 'trialscan-table-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** Of which reductions were saved, too, of some tensors nothing else. */
const SAMPLE = join(directory, 'sample')
writeSample(SAMPLE)

const STATISTICS: readonly StatisticName[] = [
  'mean',
  'min',
  'nan_count',
  'p50',
  'p99.9',
  'histogram:4',
  'histogram:-1:0:1',
  'sketch',
  '~p50',
]

async function read(name: string, options: ScanOptions, tableOptions?: TableOptions) {
  const trial = await createTrial(resolve(TRIALS, name), { requireCollections: false })
  const names = options.reductions === undefined ? undefined : (options.reductions as readonly StatisticName[])
  const rows: Record<string, Cell>[] = []
  for await (const row of trial.scan(options)) rows.push(cellsOf(name, row, names ?? REDUCTIONS))
  const bytes = async (format: 'parquet' | 'arrow') => {
    const chunks: Uint8Array[] = []
    for await (const chunk of tableBytes(trial.scan(options), format, { trial: name, ...tableOptions }))
      chunks.push(chunk)
    return Buffer.concat(chunks)
  }
  const [parquet, arrow] = [await bytes('parquet'), await bytes('arrow')]
  await trial.close()
  return { rows, parquet, arrow }
}

function arrayBufferOf(bytes: Uint8Array): ArrayBuffer {
  return Uint8Array.from(bytes).buffer
}

describe.each([...readdirSync(TRIALS), SAMPLE])('of %s', name => {
  describe.each([
    ['all', {}],
    ['statistics', { reductions: STATISTICS }],
    ['two', { reductions: ['abs_max', 'l2'] }],
  ] as const)('with %s', (_, options) => {
    it('equals the rows of the scan, to whoever reads it', async () => {
      const { rows, parquet, arrow } = await read(name, options, { groupRows: 500 })
      expect(rows.length).toBeGreaterThan(0)
      const expected = rows.map(normal)
      const file = arrayBufferOf(parquet)
      const byHyparquet = await parquetReadObjects({ file, compressors })
      expect(byHyparquet.map(normal)).toEqual(expected)
      expect(arrowRows(tableFromIPC(arrow))).toEqual(expected)
      expect(arrowRows(tableFromIPC(readParquet(parquet).intoIPCStream()))).toEqual(expected)
      if (HAS_DUCKDB) expect(await byDuckDB(parquet)).toEqual(expected)
    })
  })
})

it('of jobs whose threads made pages, of one with a NaN, and of a short one, equals the rows', async () => {
  const trial = join(directory, 'pages')
  const writer = new TrialWriter(trial)
  const random = uniform(3)
  for (let step = 0; step < 300; step++) {
    // 33,000 rows: two jobs of 16,384, and 232 rows.
    const tensors = Array.from({ length: 110 }, (_, i) => {
      const wrong = step === 200 && i === 7 ? Number.NaN : random()
      return { name: `t${i}`, dtype: 'float32' as const, shape: [2], values: [random() - 0.5, wrong] }
    })
    writer.step({ step, tensors })
  }
  writer.end()
  const { rows, parquet, arrow } = await read(trial, { reductions: [...REDUCTIONS, 'count', 'nan_count'] })
  const expected = rows.map(normal)
  expect(expected).toHaveLength(33_000)
  expect((await parquetReadObjects({ file: arrayBufferOf(parquet), compressors })).map(normal)).toEqual(expected)
  expect(arrowRows(tableFromIPC(arrow))).toEqual(expected)
  expect(arrowRows(tableFromIPC(readParquet(parquet).intoIPCStream()))).toEqual(expected)
  if (HAS_DUCKDB) expect(await byDuckDB(parquet)).toEqual(expected)
}, 60_000)

function arrowRows(table: Iterable<unknown>): unknown[] {
  return Array.from(table, row => normal(plain(row)))
}

/** Arrow's rows, structs and vectors as objects and arrays. */
function plain(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value
  if (value instanceof Vector) return Array.from(value, plain)
  const entries = [...(value as Iterable<[string, unknown]>)]
  return Object.fromEntries(entries.map(([name, value]) => [name, plain(value)]))
}

async function byDuckDB(parquet: Uint8Array): Promise<unknown[]> {
  const path = join(directory, 'x.parquet')
  writeFileSync(path, parquet)
  return (await askDuckDB(`select * from '${path}'`)).map(row => normal(unwrapped(row)))
}

/** DuckDB's lists and structs as arrays and objects. */
function unwrapped(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if ('items' in value) return (value.items as unknown[]).map(unwrapped)
  const fields = 'entries' in value ? value.entries : value
  return Object.fromEntries(Object.entries(fields as Record<string, unknown>).map(([k, v]) => [k, unwrapped(v)]))
}

describe('a file', () => {
  it('has a row group for about as many rows as were asked for, and says what it is', async () => {
    const { parquet, rows } = await read(
      'mlp-vanishing',
      {},
      { groupRows: 100, metadata: { 'trialscan.version': '1' } },
    )
    const { row_groups, key_value_metadata, num_rows } = parquetMetadata(arrayBufferOf(parquet))
    expect(Number(num_rows)).toBe(rows.length)
    expect(row_groups.length).toBeGreaterThan(0)
    expect(key_value_metadata).toContainEqual({ key: 'trialscan.version', value: '1' })
  })

  it('without rows has its columns', async () => {
    const { parquet, arrow } = await read('mlp-vanishing', { tensors: 'there is no such tensor', reductions: ['mean'] })
    if (HAS_DUCKDB) expect(await byDuckDB(parquet)).toEqual([])
    expect(arrowRows(tableFromIPC(readParquet(parquet).intoIPCStream()))).toEqual([])
    expect(await parquetReadObjects({ file: arrayBufferOf(parquet), compressors })).toEqual([])
    expect(arrowRows(tableFromIPC(arrow))).toEqual([])
    expect(tableFromIPC(arrow).schema.fields.map(({ name }) => name)).toContain('mean')
    expect(parquetMetadata(arrayBufferOf(parquet)).schema.map(({ name }) => name)).toContain('mean')
  })

  it.each([
    [{ groupRows: 0 }, 'tableBytes: expected groupRows'],
    [{ rows: 3 }, 'tableBytes has no option "rows"'],
    [{ metadata: { a: 1 } }, 'tableBytes: expected metadata'],
    [{ metadata: new Map() }, 'tableBytes: expected metadata'],
  ])('is refused for wrong options: %j', async (options, message) => {
    const trial = await createTrial(join(TRIALS, 'mlp-vanishing'))
    expect(() => tableBytes(trial.scan(), 'parquet', options as TableOptions)).toThrow(message)
    await trial.close()
  })
})
