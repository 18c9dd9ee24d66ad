/** Hostile steps among good ones, through the library and the command line: each does no more harm than its own rows. */

import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  closePools,
  createTrial,
  evaluate,
  RuleRegistry,
  reindexTrial,
  type ScanRow,
  type Trial,
  TrialscanError,
} from '#dist/index.js'
import { objects, trialscan } from '../cli/run.js'
import { FaultyS3 } from '../support/faulty-s3.js'
import { isLong, part, whenLong } from '../support/part.js'
import { plainRow, plainRows, rejectionOf, rowsOf } from '../support/scanning.js'
import { scratchDirectory } from '../support/scratch.js'
import { EXHIBITS, type Exhibit, type Museum, makeMuseum, writeCollections, writeStep } from './museum.js'

const scratch = scratchDirectory('hostile')
const LAST = EXHIBITS.length + 1

let museum: Museum
let trial: Trial
let rows: readonly ScanRow[]

beforeAll(async () => {
  museum = makeMuseum(join(scratch, 'museum'), EXHIBITS)
  trial = await createTrial(museum.directory)
  rows = await rowsOf(trial, { threads: 0 })
})

afterAll(closePools)

/** What a row is, the step aside. */
function content(row: ScanRow | undefined): unknown {
  return row && { ...(plainRow(row) as object), step: 0, modeStep: 0, tensor: '' }
}

function failsIn({ at, isWhole }: Exhibit, tensor: string): boolean {
  return at === 'record' && (isWhole === true || tensor !== 'good')
}

/** The rows of an exhibit's step, held against what it says of itself. */
function expectRows(exhibit: Exhibit, own: readonly ScanRow[], good: ScanRow): void {
  const { at, code, says = /./, tensor = 'bad' } = exhibit
  if (at === 'index') {
    expect(own.map(row => [row.tensor, row.error?.code])).toEqual([[null, code]])
    expect(own[0]!.error!.message).toMatch(says)
    return
  }
  expect(own.map(row => row.tensor)).toEqual(['good', tensor])
  for (const row of own) {
    if (failsIn(exhibit, row.tensor!)) expect(row.error?.code).toBe(code)
    else if (row.tensor === 'good') expect(content(row)).toEqual(content(good))
    else expect(row.error).toBeUndefined()
  }
}

describe('each of the exhibits', () => {
  it.each(EXHIBITS.map(exhibit => [exhibit.name, exhibit] as const))('%s', async (name, exhibit) => {
    const step = museum.steps.get(name)!
    const { at, code, tensor = 'bad' } = exhibit
    const own = rows.filter(row => row.step === step)
    expectRows(exhibit, own, rows[0]!)
    for (const { error } of own) {
      if (!error) continue
      // Where it is, in a message that fits on a screen.
      expect(error).toBeInstanceOf(TrialscanError)
      expect(error.message).toContain(museum.directory)
      expect(error.message.length).toBeLessThan(1000)
      if (error.name === 'FormatError' && at === 'record') expect(error).toMatchObject({ offset: expect.any(Number) })
    }
    for (const threads of [0, 2]) {
      const value = trial.tensor(at === 'index' ? 'good' : tensor).value(step, { threads })
      if (at === 'fine') expect((await value).shape.length).toBeGreaterThan(0)
      else expect(await rejectionOf(value)).toMatchObject({ code })
      if (at !== 'index' && at !== 'record') continue
      const reduction = trial.tensor(at === 'index' ? 'good' : tensor).reductionValue(step, 'mean', { threads })
      expect(await rejectionOf(reduction)).toMatchObject({ code })
    }
  })

  it('leaves the others as they are, on threads as without', async () => {
    expect(rows.filter(({ step }) => step === 0 || step === LAST).map(({ error }) => error)).toEqual(
      new Array(4).fill(undefined),
    )
    expect(rows.filter(({ tensor, error }) => tensor === 'good' && !error).length).toBe(
      2 + EXHIBITS.filter(exhibit => exhibit.at !== 'index' && !failsIn(exhibit, 'good')).length,
    )
    expect(trial.steps()).toEqual([0, ...EXHIBITS.map((_, i) => i + 1), LAST])
    for (const check of ['none', 'full'] as const) {
      const codes = (list: readonly ScanRow[]) => list.map(({ step, tensor, error }) => [step, tensor, error?.code])
      expect(codes(await rowsOf(trial, { threads: 2, checkLevel: check }))).toEqual(codes(rows))
    }
    expect(plainRows(await rowsOf(trial, { threads: 2 }))).toEqual(plainRows(rows))
  })

  it('costs rules no more than what they asked of it', async () => {
    const registry = new RuleRegistry()
    const all = { tensor_regex: '.*' }
    const rules = () => [
      ...['AllZero', 'UnchangedTensor', 'DeadRelu', 'SaturatedActivation'].map(
        name => new (registry.get(name))(trial, all),
      ),
      new (registry.get('TensorVariance'))(trial, { ...all, max_threshold: 1 }),
      new (registry.get('CheckInputImages'))(trial, { regex: '.*' }),
    ]
    const told = []
    for (const threads of [0, 2]) {
      const { problems, stats } = await evaluate(rules(), { threads })
      expect(stats.steps).toBe(trial.steps().length)
      const codes = new Set(problems.map(({ error }) => error.code))
      // Every code that a record has in the museum, and none of a bug.
      const wanted = EXHIBITS.filter(({ at }) => at === 'record' || at === 'index').map(({ code }) => code)
      for (const code of wanted) expect(codes).toContain(code)
      expect([...codes].filter(code => code === 'Engine' || code === 'RuleFailed')).toEqual([])
      told.push([...codes].sort())
    }
    expect(told[0]).toEqual(told[1])
  })

  it('ends a reindexing, before anything is written', async () => {
    expect(await rejectionOf(reindexTrial(museum.directory))).toBeInstanceOf(TrialscanError)
    const out = join(scratch, 'reindexed')
    const outcome = await trialscan('reindex', museum.directory, '--out', out)
    expect(outcome.code).toBe(4)
    expect(() => statSync(out)).toThrow()
  })

  it('is the same on S3, where it can be there', async () => {
    const server = await FaultyS3.start()
    try {
      const remote = EXHIBITS.filter(({ isLocal }) => !isLocal)
      const { directory, steps } = makeMuseum(join(scratch, 'remote'), remote)
      for (const path of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
        const file = join(directory, path)
        if (statSync(file).isFile()) server.objects.set(`t/${path}`, readFileSync(file))
      }
      const onS3 = await createTrial('s3://bucket/t', { s3: server.options })
      const its = await rowsOf(onS3, { threads: 0 })
      for (const exhibit of remote) {
        const step = steps.get(exhibit.name)!
        expectRows(
          exhibit,
          its.filter(row => row.step === step),
          its[0]!,
        )
        if (exhibit.at !== 'value') continue
        const failure = await rejectionOf(onS3.tensor('bad').value(step))
        expect(failure).toMatchObject({ code: exhibit.code })
      }
      // Nothing was asked for that is not in the trial.
      expect(server.seen.filter(({ what }) => what !== 'list' && !what.startsWith('t/'))).toEqual([])
      await onS3.close()
    } finally {
      await server.stop()
    }
  })
})

/** Whatever could move a terminal's cursor, but for newlines. */
const HARMFUL = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u

describe('every command', () => {
  const names = EXHIBITS.flatMap(({ tensor }) => tensor ?? [])

  const commands: readonly [string, readonly string[], number][] = [
    ['ls', [], 4],
    ['scan', ['--format', 'table', '--threads', '0'], 4],
    ['scan', ['--format', 'table', '--threads', '2'], 4],
    ['check', ['--format', 'table', '--threads', '0'], 4],
    ['check', ['--format', 'table', '--threads', '2', '--rule', 'UnchangedTensor,tensor_regex=.*'], 4],
  ]
  it.each(part(commands, (_, i) => i === 2))(
    '%s %j tells all of it, in a form that harms nobody',
    async (command, options, code) => {
      const outcome = await trialscan(command, museum.directory, ...options)
      expect([outcome.code, HARMFUL.exec(outcome.stdout), HARMFUL.exec(outcome.stderr)]).toEqual([code, null, null])
      expect(outcome.stderr + outcome.stdout).not.toMatch(/bug of trialscan|\bat .*\.js:\d+/)
      // A table leaves out the middle of long names.
      if (command !== 'check') expect(outcome.stdout).toContain('wned\\x07\\x9b31m')
    },
  )

  it.each(part(['0', '2'], threads => threads === '2'))(
    'scan as jsonl has every name as it is, at %s threads',
    async threads => {
      const outcome = await trialscan('scan', museum.directory, '--threads', threads)
      expect([outcome.code, HARMFUL.exec(outcome.stderr)]).toEqual([4, null])
      const lines = objects(outcome.stdout)
      expect(lines.map(({ step, tensor }) => [step, tensor])).toEqual(rows.map(({ step, tensor }) => [step, tensor]))
      expect(lines.map(({ error }) => (error as { code: string } | undefined)?.code)).toEqual(
        rows.map(({ error }) => error?.code),
      )
      for (const name of names) expect(lines.map(({ tensor }) => tensor)).toContain(name)
    },
  )

  it.each(part(['0', '2'], () => false))('scan as csv has a record for every row, at %s threads', async threads => {
    const { code, stdout } = await trialscan('scan', museum.directory, '--format', 'csv', '--threads', threads)
    expect(code).toBe(4)
    // As RFC 4180 has it: what is quoted may hold newlines.
    const records = stdout.match(/(?:[^"\n]|"(?:[^"]|"")*")+\n/g)!
    expect(records.length).toBe(rows.length + 1)
    expect(records.join('')).toBe(stdout)
  })

  it.each(whenLong)('ls --json has all names and problems (%s)', async () => {
    const { code, stdout } = await trialscan('ls', museum.directory, '--json')
    const { tensors, problems } = JSON.parse(stdout)
    expect(code).toBe(4)
    expect(tensors.map(({ name }: { name: string }) => name)).toEqual(expect.arrayContaining(names))
    const own = EXHIBITS.filter(({ at }) => at === 'index').map(({ code }) => code)
    const told = problems.map(({ code }: { code: string }) => code)
    for (const one of own) expect(told).toContain(one)
  })

  const shown = names.filter(name => !name.includes('\ud800'))
  it.each(part(shown, (_, i) => i === 0))('show of %j', async name => {
    const step = EXHIBITS.findIndex(({ tensor }) => tensor === name) + 1
    const shown = await trialscan('show', museum.directory, '--step', `${step}`, '--', name)
    expect([shown.code, HARMFUL.exec(shown.stdout), shown.stderr]).toEqual([0, null, ''])
    expect(shown.stdout).toContain('float32 [2]')
  })

  it('show of what unfolds says how large it is', async () => {
    const step = EXHIBITS.findIndex(({ name }) => name.includes('10^12') && name.includes('value')) + 1
    const shown = await trialscan('show', museum.directory, 'bad', '--step', `${step}`, '--npy', join(scratch, 'x.npy'))
    expect(shown.code).toBe(5)
    expect(shown.stderr).toMatch(/at most 268435456 bytes in all, got one of 4000000000000 bytes/)
    expect(() => statSync(join(scratch, 'x.npy'))).toThrow()
  })

  it.each(whenLong)('rule-invoker (%s)', async () => {
    const options = [
      '--trial-dir',
      museum.directory,
      '--rule-name',
      'AllZero',
      '--tensor_regex',
      '.*',
      '--timeout',
      '1',
    ]
    for (const more of [[], ['--json']]) {
      const outcome = await trialscan('rule-invoker', ...options, ...more)
      expect(outcome.code).toBe(4)
      if (more.length === 0) expect(HARMFUL.exec(outcome.stdout + outcome.stderr)).toBe(null)
      else for (const line of objects(outcome.stdout)) expect(Object.keys(line).length).toBeGreaterThan(2)
    }
  })

  it('check as jsonl', async () => {
    const outcome = await trialscan('check', museum.directory, '--threads', '2')
    expect([outcome.code, HARMFUL.exec(outcome.stderr)]).toEqual([4, null])
    expect(objects(outcome.stdout).filter(({ problem }) => problem).length).toBeGreaterThan(10)
  })
})

it('workers may be called anything', async () => {
  const directory = join(scratch, 'workers')
  const names = ['__proto__', 'constructor', 'w\x1b[31m\n\u202e', 'w'.repeat(200)]
  writeCollections(directory)
  for (const worker of names) writeStep(directory, 0, { worker })
  const workers = await createTrial(directory)
  expect(workers.workersWithData()).toEqual([...names].sort())
  // The collections file is that of another.
  expect(workers.workers()).toEqual([...names, 'worker_0'].sort())
  const own = await rowsOf(workers, { threads: 2 })
  expect(own.map(({ worker, error }) => [worker, error])).toEqual(
    [...names].sort().flatMap(worker => [
      [worker, undefined],
      [worker, undefined],
    ]),
  )
  for (const worker of names) expect((await workers.tensor('good').value(0, { worker })).data).toHaveLength(2)
  for (const command of isLong ? [['ls'], ['scan', '--format', 'table']] : [['ls']]) {
    const { code, stdout } = await trialscan(command[0]!, directory, ...command.slice(1))
    expect([code, HARMFUL.exec(stdout)]).toEqual([0, null])
    // A table of 80 columns cuts names in the middle.
    expect(stdout).toMatch(/w\\x1(b\[|…)31m\\n\\u202e/)
  }
  const lines = objects((await trialscan('scan', directory)).stdout)
  expect(new Set(lines.map(({ worker }) => worker))).toEqual(new Set(names))
  // Index files that a reindexing would make lie where all others do.
  for (const { path } of await reindexTrial(directory)) expect(path).toMatch(/^index\/000000000\/0{12}_[^/]+\.json$/s)
})
