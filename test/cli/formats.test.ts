/** Which formats there are, and how one is chosen: by --format, by the name of --out, by where the output goes. */

import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { elementLines, valueJson } from '#dist/cli/format/elements.js'
import { FORMATS } from '#dist/cli/format/formats.js'
import { createTrial, REDUCTIONS, rowText } from '#dist/index.js'
import { corruptedCopy } from '../support/corrupted.js'
import { HAS_DUCKDB } from '../support/duckdb.js'
import { part, whenLong } from '../support/part.js'
import { DTYPES, objects, PLAIN, trialscan } from './run.js'

let directory: string
let damaged: string
let plan: string
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'trialscan-formats-'))
  plan = join(directory, 'plan')
  expect((await trialscan('fleet', 'plan', PLAIN, '--out', plan, '--shards', '2')).code).toBe(0)
  damaged = corruptedCopy('unknown dtype', join(directory, 'damaged'))
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

let made = 0
const place = (name: string) => join(directory, `${made++}-${name}`)

/** A command line of each command over a trial. */
const LINES: Readonly<Record<keyof typeof FORMATS, (trial: string) => readonly string[]>> = {
  ls: trial => ['ls', trial],
  summary: trial => ['summary', trial],
  scan: trial => ['scan', trial],
  sql: trial => ['sql', trial, 'select tensor, step from scan'],
  top: trial => ['top', trial, '--by', 'abs_max'],
  show: trial => ['show', trial, 'fc.weight'],
  check: trial => ['check', trial],
  nan: trial => ['nan', trial],
  diff: trial => ['diff', trial, trial],
  'rule-invoker': trial => ['rule-invoker', '--trial-dir', trial, '--rule-name', 'AllZero', '--tensor_regex', '.*'],
  verify: trial => ['verify', trial],
  reindex: trial => ['reindex', trial, '--out', place('index')],
  'fleet status': () => ['fleet', 'status', plan],
  repair: trial => ['repair', trial, '--out', place('copy')],
}

/** Cells of each line; quoted ones are no matter here but for their commas. */
const cells = (csv: string) => {
  expect(csv).toMatch(/\n$/)
  return csv
    .trimEnd()
    .split('\n')
    .map(line => line.replace(/"(?:[^"]|"")*"/g, 'quoted').split(','))
}

// Quick: the command with the most formats, and one whose output is a directory.
const isQuick = (command: string) => command === 'show' || command === 'reindex'

const commands = (Object.keys(FORMATS) as (keyof typeof FORMATS)[]).filter(command => command !== 'sql' || HAS_DUCKDB)

describe.each(part(commands, isQuick))('%s', command => {
  const { names } = FORMATS[command]

  it.each(names)('prints %s', async format => {
    const { code, stdout } = await trialscan(...LINES[command](PLAIN), '--format', format)
    expect([0, 1]).toContain(code)
    if (format === 'jsonl') objects(stdout)
    else if (format === 'json') expect(JSON.parse(stdout)).toBeTypeOf('object')
    else if (format === 'csv') expect(new Set(cells(stdout).map(({ length }) => length)).size).toBe(1)
    else if (format === 'npy') expect(stdout).toContain("'shape': (4, 5)")
    else if (format === 'parquet') expect(stdout).toMatch(/^PAR1.*PAR1$/s)
    // Annotations are of what has not passed.
    else if (format !== 'github' || code === 1) expect(stdout).not.toBe('')
  })

  it('says which there are', async () => {
    const { code, stderr } = await trialscan(...LINES[command](PLAIN), '--format', 'xml')
    const all = `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`
    expect([code, stderr]).toEqual([2, expect.stringContaining(`argument 'xml' is invalid. Expected ${all}.`)])
    expect((await trialscan(...command.split(' '), '--help')).stdout.replaceAll(/\s+/g, ' ')).toContain(
      `--format <FORMAT> ${all} (default: `,
    )
  })

  // What these two write beside their report is a directory.
  if (command === 'reindex' || command === 'repair') return

  it('chooses by the name of the file', async () => {
    for (const [ending, format] of [
      ['csv', 'csv'],
      ['jsonl', 'jsonl'],
      ['ndjson', 'jsonl'],
      ['json', 'json'],
      ['npy', 'npy'],
      ['TXT', 'table'],
    ] as const) {
      const out = place(`rows.${ending}`)
      const { code, stdout, stderr } = await trialscan(...LINES[command](PLAIN), '--out', out)
      if (!(names as readonly string[]).includes(format)) {
        expect([code, stdout]).toEqual([2, ''])
        expect(stderr).toContain(`the only formats that ${command} writes, got ${out}`)
        continue
      }
      const direct = await trialscan(...LINES[command](PLAIN), '--format', format, '--out', '-')
      const timeless = (text: string) =>
        text.replaceAll(/[\d.]+ s, [\d.]+ GB|in \d+ ms|"(seconds|elapsedMs)":[\d.e-]+/g, '')
      expect([code, stdout]).toEqual([direct.code, ''])
      expect(timeless(readFileSync(out, 'utf8'))).toBe(timeless(direct.stdout))
    }
  })

  it('refuses a name that says another format', async () => {
    const out = place('rows.csv')
    const [, format] = names.filter(name => name !== 'csv')
    if (!format) throw new Error(`expected formats of ${command}`)
    const { code, stderr } = await trialscan(...LINES[command](PLAIN), '--format', format, '--out', out)
    const told = `expected --format and the name of the file to agree, got --format ${format} and --out ${out}`
    expect([code, stderr]).toEqual([2, expect.stringContaining(told)])
    expect(readdirSync(directory)).not.toContain('rows.csv')
  })
})

it('a name that says nothing leaves what is said', async () => {
  for (const [args, format] of [
    [[], 'jsonl'],
    [['--format', 'csv'], 'csv'],
  ] as const) {
    const out = place('rows')
    expect((await trialscan('scan', PLAIN, ...args, '--out', out)).code).toBe(0)
    expect(readFileSync(out, 'utf8')).toBe((await trialscan('scan', PLAIN, '--format', format)).stdout)
  }
})

it.each(whenLong)('verify and repair tell in csv and json what they tell in jsonl (%s)', async () => {
  const { stdout } = await trialscan('verify', damaged, '--format', 'csv')
  const [head, ...rows] = cells(stdout)
  const problems = objects((await trialscan('verify', damaged)).stdout).slice(0, -1)
  expect(head).toEqual(Object.keys(problems[0]!))
  expect(rows.map(row => row.slice(0, 4))).toEqual(
    problems.map(({ severity, code, file, offset }) => [severity, code, file, String(offset ?? '')]),
  )
  const lines = objects((await trialscan(...LINES.repair(damaged), '--format', 'jsonl')).stdout)
  const { left_out, rebuilt, ...whole } = JSON.parse(
    (await trialscan(...LINES.repair(damaged), '--format', 'json')).stdout,
  ) as {
    left_out: unknown[]
    rebuilt: unknown[]
  }
  expect(lines.slice(0, left_out.length)).toEqual(left_out)
  expect(lines.filter(line => 'rebuilt' in line)).toHaveLength(rebuilt.length)
  const { out: _, ...last } = lines.at(-1)!
  expect(whole).toMatchObject(last)
  expect(cells((await trialscan(...LINES.repair(damaged), '--format', 'csv')).stdout)).toHaveLength(1 + left_out.length)
})

describe('the elements of a tensor', () => {
  it('are all there, in order, in each format', async () => {
    const trial = await createTrial(DTYPES)
    const names = trial.tensorNames()
    expect(names.length).toBeGreaterThan(10)
    for await (const row of trial.scan({ steps: { from: 0, to: 1 }, threads: 0 })) {
      const value = await trial.tensor(row.tensor!).value(0)
      const { values, ...others } = JSON.parse([...valueJson(row, value, false)].join('')) as Record<string, unknown>
      expect(others).toEqual(objects(rowText.rowFormat('jsonl', REDUCTIONS).line(row))[0])
      const lines = objects([...elementLines(value, 'jsonl', false)].join('')) as { index: number[]; value: unknown }[]
      expect(lines).toHaveLength(value.shape.reduce((product, size) => product * size, 1))
      for (const { index, value } of lines) {
        expect(index.reduce((inner, at) => (inner as unknown[])[at], values)).toEqual(value)
      }
      const [head, ...rows] = cells([...elementLines(value, 'csv', false)].join(''))
      expect(head).toEqual([...value.shape.map((_, axis) => `index_${axis}`), 'value'])
      expect(rows.map(row => row.slice(0, -1).map(Number))).toEqual(lines.map(({ index }) => index))
      names.splice(names.indexOf(row.tensor!), 1)
    }
    expect(names).toEqual([])
  })

  it('of which only reductions were saved are null', async () => {
    const trial = await createTrial(DTYPES)
    for await (const row of trial.scan({ steps: { from: 0, to: 1 }, threads: 0 })) {
      expect(JSON.parse([...valueJson(row, null, false)].join(''))).toMatchObject({ tensor: row.tensor, values: null })
    }
  })
})
