/** What a command reads is not replaced by what it writes, however it is named. */

import { linkSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { HAS_DUCKDB } from '../support/duckdb.js'
import { ROOT } from '../support/golden.js'
import { scratchDirectory } from '../support/scratch.js'
import { PLAIN, trialscan } from './run.js'

const scratch = scratchDirectory('inputs')
const OTHER = join(ROOT, 'fixtures/trials/mlp-vanishing')
const plan = join(scratch, 'plan')
let made = 0

beforeAll(async () => {
  expect((await trialscan('scan', PLAIN, '--out', join(scratch, 'rows.csv'))).code).toBe(0)
  expect((await trialscan('fleet', 'plan', PLAIN, '--shards', '1', '--format', 'csv', '--out', plan)).code).toBe(0)
  expect((await trialscan('fleet', 'run', plan, '--all')).code).toBe(0)
  writeFileSync(join(scratch, 'map.csv'), '{}')
  writeFileSync(
    join(scratch, 'rules.jsonl'),
    '[{"RuleConfigurationName":"a","RuleParameters":{"rule_to_invoke":"VanishingGradient"}}]',
  )
})

/** The file by all its names. */
function namesOf(file: string): readonly string[] {
  const [link, hard, alias] = ['link', 'hard', 'alias'].map(name => join(scratch, `${name}-${made++}`)) as [
    string,
    string,
    string,
  ]
  symlinkSync(file, link)
  linkSync(file, hard)
  symlinkSync(dirname(file), alias)
  mkdirSync(join(scratch, 'deeper'), { recursive: true })
  return [
    file,
    link,
    hard,
    join(alias, basename(file)),
    `${dirname(file)}/../${basename(dirname(file))}/./${basename(file)}`,
  ]
}

const CASES: readonly (readonly [name: string, input: string, args: readonly string[]])[] = [
  ['fleet merge, the plan', join(plan, 'plan.json'), ['fleet', 'merge', plan]],
  ['fleet merge, a table of a shard', join(plan, 'shards/*.csv'), ['fleet', 'merge', plan]],
  ['fleet merge, a report of a shard', join(plan, 'shards/*.json'), ['fleet', 'merge', plan]],
  ['fleet status', join(plan, 'plan.json'), ['fleet', 'status', plan, '--format', 'json']],
  ['diff --map', join(scratch, 'map.csv'), ['diff', PLAIN, OTHER, '--map', join(scratch, 'map.csv')]],
  ['report --map', join(scratch, 'map.csv'), ['report', PLAIN, OTHER, '--map', join(scratch, 'map.csv')]],
  ['check --rules', join(scratch, 'rules.jsonl'), ['check', PLAIN, '--rules', join(scratch, 'rules.jsonl')]],
  ...(HAS_DUCKDB
    ? ([['sql of a table', join(scratch, 'rows.csv'), ['sql', join(scratch, 'rows.csv'), 'select 1']]] as const)
    : []),
]

it.each(CASES)('%s', async (_, named, args) => {
  const ending = basename(named).slice(1)
  const isPattern = basename(named).startsWith('*')
  const input = isPattern
    ? join(dirname(named), readdirSync(dirname(named)).find(name => name.endsWith(ending))!)
    : named
  const before = readFileSync(input)
  for (const out of namesOf(input)) {
    const { code, stderr } = await trialscan(...args, '--out', out)
    expect([out, code, stderr]).toEqual([
      out,
      2,
      expect.stringContaining('expected a file that is no input of the command'),
    ])
    expect(readFileSync(out)).toEqual(before)
  }
  expect(readFileSync(input)).toEqual(before)
})

it.runIf(process.platform !== 'win32').each([
  ['--rules', ['check', PLAIN, '--rules']],
  ['--map', ['diff', PLAIN, OTHER, '--map']],
  ['--config', ['record', '--out', join(scratch, 'recorded'), '--config']],
])('%s that never ends is refused', async (_, args) => {
  const { code, stderr } = await trialscan(...args, '/dev/zero')
  expect([code, stderr]).toEqual([3, expect.stringContaining('/dev/zero: expected at most 256 MiB')])
})

describe('a link in the directory of an output', () => {
  it('does not lead to a file of a trial', async () => {
    const trial = join(scratch, 'trial')
    const file = join(trial, 'events/000000000000/000000000000_worker_0.tfevents')
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, 'a trial')
    const tables = join(scratch, 'tables')
    const part = join(tables, `trial=${encodeURIComponent(PLAIN)}`, 'part-00000.parquet')
    mkdirSync(dirname(part), { recursive: true })
    symlinkSync(file, part)
    const values = join(scratch, 'values')
    mkdirSync(values)
    symlinkSync(file, join(values, 'index.jsonl'))
    for (const args of [
      ['scan', PLAIN, '--out', tables],
      ['dump', PLAIN, '--out', values],
    ]) {
      const { code, stderr } = await trialscan(...args)
      expect([args[0], code, stderr]).toEqual([args[0], 2, expect.stringContaining('got a file of a trial')])
    }
    expect(readFileSync(file, 'utf8')).toBe('a trial')
  })
})
