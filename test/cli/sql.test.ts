/** `trialscan sql`: the queries of docs/tables.md against answers computed one by one, the tables, and what can go wrong. */

import { spawn, spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTrial, type ScanRow, type Trial } from '#dist/index.js'
import { TrialWriter } from '../../fixtures/event-writer.js'
import { HAS_DUCKDB } from '../support/duckdb.js'
import { ROOT } from '../support/golden.js'
import { CLI, objects, trialscan } from './run.js'

const directory = mkdtempSync(join(tmpdir(), 'trialscan-sql-test-'))
const path = join(directory, 'trial')
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const queries = [...readFileSync(join(ROOT, 'docs/tables.md'), 'utf8').matchAll(/^```sql\n([\s\S]*?)^```$/gm)].map(
  ([, query]) => query!,
)

/** All of its numbers are real. */
type Row = Omit<ScanRow, 'reductions'> & { readonly reductions: Readonly<Record<string, number>> }
let rows: Row[]
let trial: Trial

beforeAll(async () => {
  const writer = new TrialWriter(path, { numWorkers: 2 })
  for (const step of [0, 10, 20, 30]) {
    for (const worker of [0, 1]) {
      const scale = 1 / (step + 1) + worker / 100
      const tensors = [
        { name: 'fc.weight', values: [1 + step / 10, 2, -3] },
        { name: 'conv.weight', values: [0.5, 0.25 + worker, step] },
        { name: 'gradient/fc.weight', values: [scale, 2 * scale, 0] },
        { name: 'gradient/conv.weight', values: [step === 20 && worker === 1 ? Number.NaN : 1e-9, 0, 1e-9] },
        { name: 'loss', values: [3 - step / 20 + worker] },
        // What a loss is given is none.
        { name: 'CrossEntropyLoss_input_0', values: [7, 8 + step] },
        { name: 'relu_output_0', values: [0, 0, step] },
      ].map(({ name, values }) => ({ name, dtype: 'float32', shape: [values.length], values }) as const)
      writer.step({ step, mode: step === 30 ? 'EVAL' : 'TRAIN', modeStep: step === 30 ? 0 : step, worker, tensors })
    }
  }
  writer.end()
  trial = await createTrial(path)
  rows = []
  const reductions = ['mean', 'l2', 'abs_mean', 'abs_max', 'count', 'nan_count', 'zero_count'] as const
  for await (const row of trial.scan({ reductions })) {
    rows.push({ ...row, reductions: Object.fromEntries(reductions.map(name => [name, Number(row.reductions[name])])) })
  }
})
afterAll(() => trial.close())

async function ask(query: string, ...places: readonly string[]): Promise<Record<string, unknown>[]> {
  const { code, stdout, stderr } = await trialscan(
    'sql',
    ...(places.length > 0 ? places : [path]),
    query,
    '--format',
    'jsonl',
  )
  expect(stderr).toBe('')
  expect(code).toBe(0)
  return objects(stdout)
}

function grouped<T>(all: readonly T[], key: (one: T) => string): [string, T[]][] {
  const groups = new Map<string, T[]>()
  for (const one of all) groups.set(key(one), [...(groups.get(key(one)) ?? []), one])
  return [...groups]
}

const mean = (numbers: readonly number[]) => numbers.reduce((sum, number) => sum + number, 0) / numbers.length
const isGradient = ({ tensor }: Row) => tensor!.startsWith('gradient/')
/** As JSON has it. */
const json = (number: number) => (Number.isFinite(number) ? number : String(number))

/** Answers in the order of the page, and by what they are sorted. */
const ANSWERS: readonly (() => Record<string, unknown>[] | Promise<Record<string, unknown>[]>)[] = [
  () =>
    grouped(rows.filter(isGradient), ({ tensor }) => tensor!)
      .map(([tensor, some]) => ({ tensor, gradient: mean(some.map(({ reductions }) => reductions.abs_mean!)) }))
      // NaN is the largest number.
      .sort((a, b) => (Number.isNaN(a.gradient) ? 1 : Number.isNaN(b.gradient) ? -1 : a.gradient - b.gradient)),
  () =>
    rows
      .filter(row => row.tensor!.endsWith('weight') && !isGradient(row))
      .map(row => {
        const { tensor, step, worker } = row
        const gradient = rows.find(
          other => other.tensor === `gradient/${tensor}` && other.step === step && other.worker === worker,
        )!
        return { tensor, step, worker, ratio: gradient.reductions.l2! / row.reductions.l2! }
      })
      .sort((a, b) => compare(b.ratio, a.ratio) || a.step - b.step || (a.tensor! < b.tensor! ? -1 : 1))
      .slice(0, 10),
  () => [{ worker: 'worker_1', first_step: 20, tensor: 'gradient/conv.weight' }],
  () =>
    grouped(
      rows.filter(row => row.tensor!.endsWith('weight') && !isGradient(row)),
      ({ tensor, worker }) => `${tensor} ${worker}`,
    )
      .flatMap(([, some]) =>
        some.map(({ tensor, step, worker, reductions }, i) => {
          const growth = i === 0 ? null : reductions.l2! / some[i - 1]!.reductions.l2! - 1
          return { tensor, step, worker, growth }
        }),
      )
      .sort(
        (a, b) =>
          Math.abs(b.growth ?? -1) * (b.growth === null ? -1 : 1) -
            Math.abs(a.growth ?? -1) * (a.growth === null ? -1 : 1) ||
          (a.tensor! < b.tensor! ? -1 : a.tensor! > b.tensor! ? 1 : a.step - b.step) ||
          (a.worker < b.worker ? -1 : 1),
      )
      .slice(0, 10),
  () =>
    grouped(rows, ({ tensor, step }) => `${tensor} ${step}`)
      .map(([, some]) => {
        const l2 = some.map(({ reductions }) => reductions.l2!)
        // NaN is the largest number here, too.
        const drift = l2.some(Number.isNaN) ? Number.NaN : Math.max(...l2) - Math.min(...l2)
        return { tensor: some[0]!.tensor, step: some[0]!.step, drift }
      })
      .sort(
        (a, b) =>
          compare(b.drift, a.drift) || (a.tensor! < b.tensor! ? -1 : a.tensor! > b.tensor! ? 1 : a.step - b.step),
      )
      .slice(0, 10),
  () =>
    grouped(
      rows.filter(({ tensor }) => tensor === 'loss'),
      ({ step, mode }) => `${step} ${mode}`,
    ).map(([, some]) => {
      return { step: some[0]!.step, mode: some[0]!.mode, loss: mean(some.map(({ reductions }) => reductions.mean!)) }
    }),
  () =>
    grouped(rows, ({ tensor }) => tensor!)
      .map(([tensor, some]) => {
        const sum = (name: string) => some.reduce((sum, { reductions }) => sum + reductions[name]!, 0)
        return { tensor, zeros: sum('zero_count') / sum('count') }
      })
      .sort((a, b) => b.zeros - a.zeros || (a.tensor < b.tensor ? -1 : 1)),
  async () => {
    const { tensors } = await trial.summary()
    return [...trial.collections().values()]
      .flatMap(({ name, members }) => {
        const bytes = tensors.filter(({ name }) => members.includes(name)).map(({ byteLength }) => byteLength)
        return bytes.length === 0
          ? []
          : [{ collection: name, tensors: bytes.length, bytes: bytes.reduce((sum, one) => sum + one, 0) }]
      })
      .sort((a, b) => b.bytes - a.bytes || (a.collection < b.collection ? -1 : 1))
  },
  () => [],
  async () => {
    const { stdout } = await trialscan('check', path, '--format', 'jsonl')
    const findings = objects(stdout).filter(({ step }) => step !== undefined && step !== null)
    expect(findings.length).toBeGreaterThan(0)
    return grouped(
      findings.filter(({ message }) => message !== undefined),
      ({ rule }) => String(rule),
    )
      .map(([rule, some]) => {
        const step = Math.min(...some.map(({ step }) => Number(step)))
        const losses = rows.filter(row => row.tensor === 'loss' && row.step === step)
        return { rule, step, loss: mean(losses.map(({ reductions }) => reductions.mean!)) }
      })
      .sort((a, b) => a.step - b.step || (a.rule < b.rule ? -1 : 1))
  },
]

/** NaN is larger than all numbers, as in DuckDB. */
function compare(a: number, b: number): number {
  if (Number.isNaN(a) || Number.isNaN(b)) return Number(Number.isNaN(a)) - Number(Number.isNaN(b))
  return a - b
}

describe.runIf(HAS_DUCKDB)('the queries of docs/tables.md', () => {
  it('are ten', () => expect(queries.length).toBe(ANSWERS.length))

  it.each(queries.map((query, i) => [query.split('\n')[0], query, ANSWERS[i]!] as const))(
    '%s',
    async (_, query, answer) => {
      const expected = await answer()
      const got = await ask(query)
      expect(got.length).toBe(expected.length)
      for (const [i, row] of expected.entries()) {
        for (const [name, value] of Object.entries(row)) {
          const found = got[i]![name]
          if (typeof value === 'number' && Number.isFinite(value)) expect(found, `${i}: ${name}`).toBeCloseTo(value, 10)
          else expect(found, `${i}: ${name}`).toEqual(typeof value === 'number' ? json(value) : value)
        }
      }
    },
  )
})

describe.runIf(HAS_DUCKDB)('tables', () => {
  it('are those that the query names, of several trials', async () => {
    const other = join(directory, 'other')
    cpSync(path, other, { recursive: true })
    const found = await ask('select trial, count(*) as n from scan group by trial order by trial', path, other)
    expect(found).toEqual([
      { trial: other, n: rows.length },
      { trial: path, n: rows.length },
    ])
  })

  it('have all reductions for a star, and others by their names', async () => {
    const [all] = await ask('select * from scan limit 1')
    expect(Object.keys(all!)).toEqual(expect.arrayContaining(['mean', 'abs_l2', 'exact', 'complex', 'error_offset']))
    const [some] = await ask(
      'select "p99.9", exact.max, "histogram:2".counts from scan where tensor = \'fc.weight\' limit 1',
    )
    expect(some).toEqual({ 'p99.9': expect.closeTo(1.998, 5), max: null, counts: [1, 2] })
    expect(await ask("select column_name from (describe scan) where column_name like 'abs_l%'")).toHaveLength(2)
  })

  it('tell steps and workers', async () => {
    const steps = await ask("select * from steps where worker = 'worker_1' order by step")
    expect(steps.map(({ step, mode, mode_step, complete }) => [step, mode, mode_step, complete])).toEqual([
      [0, 'TRAIN', 0, true],
      [10, 'TRAIN', 10, true],
      [20, 'TRAIN', 20, true],
      [30, 'EVAL', 0, true],
    ])
    expect(await ask('from workers')).toEqual([0, 1].map(i => ({ trial: path, worker: `worker_${i}`, has_data: true })))
  })

  it('tell the steps of tensors as ls has them', async () => {
    const { stdout } = await trialscan('ls', path, '--format', 'jsonl')
    const listed = objects(stdout).map(({ name, steps, first_step, last_step }) => [name, steps, first_step, last_step])
    const found = await ask('select tensor, steps, first_step, last_step from tensors')
    expect(found.map(row => Object.values(row))).toEqual(listed)
  })

  it('tell findings with their causes as check has them', async () => {
    const { stdout } = await trialscan('check', path, '--format', 'jsonl')
    const expected = objects(stdout).filter(({ message }) => message !== undefined)
    const found = await ask('select * exclude (trial, finding) from findings order by finding')
    expect(found).toEqual(expected)
  })

  it.each(['csv', 'jsonl', 'parquet'])('that a scan has written as %s are read', async format => {
    const out = join(directory, `written.${format}`)
    expect((await trialscan('scan', path, '--reductions', 'mean,nan_count', '--out', out)).code).toBe(0)
    const query = 'select tensor, sum(nan_count)::bigint as nans from scan group by tensor having nans > 0'
    if (format !== 'jsonl') expect(await ask(query, out)).toEqual([{ tensor: 'gradient/conv.weight', nans: 1 }])
    else expect((await ask('select count(*) as n from scan', out))[0]).toEqual({ n: rows.length })
  })
})

describe.runIf(HAS_DUCKDB)('answers', () => {
  it('are a table for people, with short numbers', async () => {
    const query =
      "select tensor, step, abs_mean from scan where tensor = 'fc.weight' and worker = 'worker_0' order by step"
    const { stdout, code } = await trialscan('sql', path, query, '--format', 'table')
    expect(code).toBe(0)
    expect(stdout.split('\n').slice(0, 2)).toEqual(['tensor     step  abs_mean', 'fc.weight     0         2'])
  })

  it('are CSV, in a file that is there as a whole or not at all', async () => {
    const out = join(directory, 'answer.csv')
    const asked = await trialscan(
      'sql',
      path,
      "select step, mean from scan where tensor = 'loss' order by all limit 1",
      '--out',
      out,
    )
    expect(asked.code).toBe(0)
    expect(readFileSync(out, 'utf8')).toBe('step,mean\n0,3\n')
    const failed = await trialscan('sql', path, "select error('no') from scan", '--out', join(directory, 'none.csv'))
    expect(failed.code).toBe(2)
    expect(readdirSync(directory).filter(name => name.includes('none'))).toEqual([])
  })

  it('of a damaged trial have the rest, and say what is missing', async () => {
    const damaged = join(directory, 'damaged')
    cpSync(path, damaged, { recursive: true })
    const event = join(damaged, 'events/000000000010/000000000010_worker_0.tfevents')
    const bytes = readFileSync(event)
    bytes[9]! ^= 0xff
    writeFileSync(event, bytes)
    const { code, stdout, stderr } = await trialscan('sql', damaged, queries[8]!, '--format', 'jsonl')
    expect(code).toBe(4)
    expect(objects(stdout)).toEqual([
      { error_code: expect.any(String), rows: 1, example: expect.stringContaining('10_worker_0') },
    ])
    expect(stderr).toContain(`1 of ${rows.length} rows could not be had`)
    // Rules could not judge the record.
    const ofRules = await trialscan('sql', damaged, 'select count(*) from findings')
    expect([ofRules.code, ofRules.stderr]).toEqual([4, expect.stringContaining('10_worker_0')])
  })
})

describe.runIf(HAS_DUCKDB)('what a query may do', () => {
  const csv = join(directory, 'outside.csv')
  const made = join(directory, 'made.csv')
  beforeAll(() => writeFileSync(csv, 'a\n1\n'))
  const FILES = 'only with --allow-files'

  it.each([
    ['reads no file', `select * from read_csv('${csv}')`, FILES],
    ['lists no directory', `select * from glob('${directory}/*')`, FILES],
    ['writes no file', `copy (select 1) to '${made}'`, FILES],
    ['nor in an explanation', `explain analyze copy (select 1) to '${made}'`, FILES],
    ['has no second statement', `select 1; copy (select 1) to '${made}'`, 'expected one statement, got 2'],
    ['has no statement at all', '/* nothing */', 'expected one statement, got 0'],
    ['nor prepared', `prepare p as copy (select 1) to '${made}'`, FILES],
    ['exports nothing', `export database '${directory}/exported'`, FILES],
    ['opens no database', `attach '${directory}/new.db'`, '--allow-files'],
    ['makes no connection', "select * from read_csv('https://127.0.0.1:9/x.csv')", FILES],
    ['installs nothing', 'install httpfs', 'loads no extensions'],
    ['loads nothing', 'load httpfs', 'loads no extensions'],
    ['allows itself nothing', 'set enable_external_access = true', 'the configuration has been locked'],
    ['takes no more memory', "set memory_limit = '9GB'", 'the configuration has been locked'],
  ])('%s', async (_, query, message) => {
    const { code, stderr } = await trialscan('sql', path, query)
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)])
    expect(readdirSync(directory).filter(name => /made|exported|new/.test(name))).toEqual([])
  })

  it('does not write the tables that it is given', async () => {
    const table = join(directory, 'given.csv')
    writeFileSync(table, 'step\n7\n')
    expect(await ask('select step from scan', table)).toEqual([{ step: 7 }])
    for (const query of [`copy (select 1) to '${table}'`, `explain analyze copy (select 1) to '${table}'`]) {
      const { code, stderr } = await trialscan('sql', table, query)
      expect([code, stderr]).toEqual([2, expect.stringContaining('COPY is only there with --allow-files')])
    }
    expect(readFileSync(table, 'utf8')).toBe('step\n7\n')
  })

  it('has the files of the machine with --allow-files, but still no extensions', async () => {
    const query = `copy (select a + 1 as a from read_csv('${csv}')) to '${made}'`
    expect((await trialscan('sql', path, query, '--allow-files')).code).toBe(0)
    expect(readFileSync(made, 'utf8')).toBe('a\n2\n')
    rmSync(made)
    const { code, stderr } = await trialscan('sql', path, 'install httpfs', '--allow-files')
    expect([code, stderr]).toEqual([2, expect.stringContaining('loads no extensions')])
  })

  // Both work for hours on one value or number, which DuckDB does not interrupt.
  it.each([
    [['--timeout', '1'], 'select count(*) from range(1000000000000000)', 'more than 1 s'],
    [['--memory', '64'], "select length(repeat('x', 4000000000))", 'more than 64 MiB'],
  ])('ends with %s', async (flags, query, message) => {
    const { code, stderr } = await trialscan('sql', path, query, ...flags)
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)])
  })

  it.each(['SIGINT', 'SIGTERM'] as const)('ends at %s, whatever it is at', async signal => {
    const own = mkdtempSync(join(directory, 'own-'))
    const query = "select length(repeat('x', 4000000000))"
    const child = spawn(process.execPath, [CLI, 'sql', path, query, '--memory', '100000'], {
      stdio: 'ignore',
      env: { ...process.env, TMPDIR: own },
    })
    const ended = new Promise<number | null>(resolve => child.once('exit', resolve))
    while (readdirSync(own).length === 0) await setTimeout(20)
    await setTimeout(500)
    child.kill(signal)
    expect(await ended).toBe(signal === 'SIGINT' ? 130 : 143)
    expect(readdirSync(own)).toEqual([])
  })
})

describe.runIf(HAS_DUCKDB)('is refused', () => {
  it.each([
    ['selec 1', 'the query is wrong: syntax error at or near "selec"'],
    ['select nothing from scan', 'Referenced column "nothing" not found'],
    ['select * from nowhere', 'There are scan, tensors, steps, workers, collections, findings'],
  ])('%s', async (query, message) => {
    const { code, stderr, stdout } = await trialscan('sql', path, query)
    expect(stderr).toContain(message)
    expect(stderr.trim().split('\n').length).toBeLessThanOrEqual(2)
    expect(code).toBe(2)
    expect(stdout).toBe('')
  })

  it('without a trial, with a trial beside a table, and for a trial that is none', async () => {
    expect((await trialscan('sql', 'select 1')).stderr).toContain('expected a trial or a table before the query')
    const table = join(directory, 'written.csv')
    writeFileSync(table, 'a\n1\n')
    const both = await trialscan('sql', path, table, 'select 1')
    expect(both.stderr).toContain('expected either trials or tables')
    expect(both.code).toBe(2)
    expect((await trialscan('sql', join(directory, 'nowhere'), 'select count(*) from scan')).code).toBe(3)
  })

  it('and leaves nothing behind', () => {
    expect(readdirSync(tmpdir()).filter(name => /^trialscan-sql-(?!test-)/.test(name))).toEqual([])
  })
})

it('without DuckDB says what to install', () => {
  // Also where it is installed: nothing of that name is found.
  const hook = `export const resolve = (name, context, next) => next(name === '@duckdb/node-api' ? '@duckdb/nowhere' : name, context)`
  const url = (source: string) => `data:text/javascript,${encodeURIComponent(source)}`
  const preload = url(`import { register } from 'node:module'; register(${JSON.stringify(url(hook))})`)
  const args = ['--import', preload, CLI, 'sql', path, 'select count(*) from scan']
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  expect([status, stderr]).toEqual([2, expect.stringContaining('npm install @duckdb/node-api')])
})
