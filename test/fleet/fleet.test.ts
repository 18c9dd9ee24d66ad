/** Scans on many machines: how plans are cut, and that shards come to what one scan has, whoever runs them, and how often. */

import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parquetReadObjects } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'
import { beforeEach, describe, expect, it } from 'vitest'
import {
  createTrial,
  estimateFleet,
  type FleetPlan,
  type FleetPlanOptions,
  type FleetScan,
  fleetStatus,
  mergedTable,
  PlanPlace,
  planFleet,
  runShard,
  type Trial,
} from '#dist/index.js'
import { CLI, objects, trialscan } from '../cli/run.js'
import { ROOT } from '../support/golden.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('fleet')
const FIXTURES = join(ROOT, 'fixtures/trials')
const VERSION = (JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }).version
const PATHS = readdirSync(FIXTURES).map(name => join(FIXTURES, name))

let count = 0
let at: string
beforeEach(() => {
  at = join(scratch, `plan-${count++}`)
})

async function* trialsOf(paths: readonly string[]): AsyncGenerator<Trial> {
  for (const path of paths) {
    const trial = await createTrial(path, { requireCollections: false, refresh: 'manual' })
    yield trial
    await trial.close()
  }
}

const planOf = (options: Omit<FleetPlanOptions, 'version'>, paths = PATHS) =>
  planFleet(trialsOf(paths), { version: VERSION, ...options })

describe('a plan', () => {
  it('has each row of each trial once, in shards of about the same size', async () => {
    const plan = await planOf({ shards: 5 })
    expect(plan.shards).toHaveLength(5)
    for (const [trial, { rows, bytes }] of plan.trials.entries()) {
      const pieces = plan.shards.flatMap(({ pieces }) => pieces.filter(piece => piece.trial === trial))
      expect(pieces.reduce((sum, piece) => sum + piece.rows, 0)).toBe(rows)
      expect(pieces.reduce((sum, piece) => sum + piece.bytes, 0)).toBe(bytes)
      if (pieces.length > 1) for (const { steps } of pieces) expect(steps).not.toBeNull()
    }
    const weights = plan.shards.map(({ rows, files, bytes }) => bytes + rows * 10_700 + files * 75_000)
    expect(Math.max(...weights)).toBeLessThan(2 * Math.min(...weights))
  })

  it('is the same for the same trials and options, and another for others', async () => {
    const plan = await planOf({ shards: 3 })
    expect(await planOf({ shards: 3 })).toEqual(plan)
    for (const other of [
      { shards: 4 },
      { shards: 3, format: 'csv' as const },
      { shards: 3, scan: { mode: 'TRAIN' as const } },
    ]) {
      expect((await planOf(other)).id).not.toBe(plan.id)
    }
  })

  it('has no more shards than steps, and shards of so many bytes', async () => {
    const [one] = PATHS
    const trial = await createTrial(one!)
    expect((await planOf({ shards: 1000 }, [one!])).shards).toHaveLength(
      trial.steps({ showIncompleteSteps: true }).length,
    )
    await trial.close()
    const { shards, trials } = await planOf({ shardBytes: 300_000 })
    expect(shards).toHaveLength(Math.ceil(trials.reduce((sum, { bytes }) => sum + bytes, 0) / 300_000))
  })

  it('is estimated by what it holds, and waits for the slowest', async () => {
    const plan = await planOf({ shards: 8 })
    const { coreSeconds, ...one } = estimateFleet(plan, { cores: 1 })
    const rows = plan.shards.reduce((sum, shard) => sum + shard.rows, 0)
    expect(coreSeconds).toBeGreaterThan(8 * 0.3 + rows * 7.5e-6)
    expect(one).toMatchObject({ seconds: coreSeconds, boundBy: 'cores' })
    expect(estimateFleet(plan, { cores: 4 })).toMatchObject({ coreSeconds, seconds: coreSeconds / 4, boundBy: 'cores' })
    expect(estimateFleet(plan, { cores: 64 }).boundBy).toBe('largest shard')
    const slow = estimateFleet(plan, { cores: 64, bytesPerSecond: 1000 })
    const bytes = plan.trials.reduce((sum, trial) => sum + trial.bytes, 0)
    expect(slow).toMatchObject({ seconds: bytes / 1000, boundBy: 'network' })
    expect(() => estimateFleet(plan, { cores: 0 })).toThrow('expected cores to be a whole number')
  })

  it.each([
    [{}, 'expected either shards or shardBytes, got none'],
    [{ shards: 2, shardBytes: 5 }, 'expected either shards or shardBytes, got both'],
    [{ shards: 0 }, 'expected shards to be a whole number from 1 to 1,000,000, got 0'],
  ])('refuses %j', async (options, message) => {
    await expect(planOf(options)).rejects.toThrow(message)
  })

  it('is not taken from a text that was changed, or is none', async () => {
    const place = await PlanPlace.create(at, await planOf({ shards: 3 }))
    await place.close()
    const file = join(at, 'plan.json')
    const text = readFileSync(file, 'utf8')
    for (const [changed, got] of [
      [text.replace('"rows":', '"rows":1'), 'one that was changed'],
      [text.slice(0, -20), 'no JSON'],
      ['[]', 'other JSON'],
    ]) {
      writeFileSync(file, changed!)
      await expect(PlanPlace.open(at)).rejects.toMatchObject({ code: 'BadPlan', got })
    }
    const { id: _, ...plan } = JSON.parse(text) as FleetPlan
    for (const wrong of [
      { ...plan, trials: [] },
      { ...plan, format: 'xml' },
      {
        ...plan,
        shards: [{ pieces: [{ trial: 0, steps: 'all', rows: 1, files: 1, bytes: 1 }], rows: 1, files: 1, bytes: 1 }],
      },
      { ...plan, shards: [null] },
      { ...plan, trials: 5 },
      { ...plan, check: 1 },
      {},
    ]) {
      const id = createHash('sha256').update(JSON.stringify(wrong)).digest('hex')
      writeFileSync(file, JSON.stringify({ id, ...wrong }))
      await expect(PlanPlace.open(at)).rejects.toMatchObject({ code: 'BadPlan', got: 'one of another form' })
    }
    rmSync(file)
    await expect(PlanPlace.open(at)).rejects.toMatchObject({ code: 'NotFound' })
  })

  it('does not replace another', async () => {
    const plan = await planOf({ shards: 3 })
    for (let i = 0; i < 2; i++) await (await PlanPlace.create(at, plan)).close()
    await expect(PlanPlace.create(at, await planOf({ shards: 2 }))).rejects.toThrow(
      'expected no plan, or the same, got another',
    )
  })
})

async function merged(place: PlanPlace): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of mergedTable(place, await fleetStatus(place))) chunks.push(chunk)
  return Buffer.concat(chunks)
}

const SCANS: readonly FleetScan[] = [
  {},
  { steps: { from: 1, to: 60 }, reductions: ['mean', 'nan_count', 'p50'] },
  { mode: 'TRAIN', steps: [{ from: 0, stride: 2 }] },
]

describe.each([1, 2, 7, 40])('%i shards', shards => {
  it.each(SCANS)('come to what one scan has: %j', async scan => {
    for (const format of ['csv', 'jsonl'] as const) {
      const place = await PlanPlace.create(join(at, format), await planOf({ shards, format, scan }))
      // In no order, and one of them twice.
      const order = [...place.plan.shards.keys()].reverse()
      for (const shard of [...order, 0]) await runShard(place, shard, { version: VERSION })
      let expected = ''
      for await (const trial of trialsOf(PATHS)) {
        let isHead = format === 'csv' && expected !== ''
        for await (const lines of trial.scan(scan).lines(format, trial.path)) {
          if (!isHead) expected += Buffer.from(lines).toString()
          isHead = false
        }
      }
      expect((await merged(place)).toString()).toBe(expected)
      await place.close()
    }
  })
})

it('Parquet of all shards has the rows that a scan of all trials has', async () => {
  const place = await PlanPlace.create(at, await planOf({ shards: 6 }))
  for (const shard of place.plan.shards.keys()) await runShard(place, shard, { version: VERSION })
  const rowsOf = (bytes: Uint8Array) => parquetReadObjects({ file: Uint8Array.from(bytes).buffer, compressors })
  const out = join(at, 'scan.parquet')
  expect((await trialscan('scan', ...PATHS, '--out', out)).code).toBe(0)
  const rows = await rowsOf(await merged(place))
  expect(rows.length).toBeGreaterThan(1000)
  expect(rows).toEqual(await rowsOf(readFileSync(out)))
  await place.close()
})

describe('a shard', () => {
  let place: PlanPlace
  const run = (shard: number, version = VERSION) => runShard(place, shard, { version })
  beforeEach(async () => {
    const trials = join(at, 'trials')
    for (const name of ['mlp-vanishing', 'workers-4', 'dtypes'])
      cpSync(join(FIXTURES, name), join(trials, name), { recursive: true })
    const paths = readdirSync(trials).map(name => join(trials, name))
    place = await PlanPlace.create(at, await planOf({ shards: 4, format: 'csv' }, paths))
  })

  it('is done once', async () => {
    const { report, wasDone } = await run(1)
    expect(wasDone).toBe(false)
    const table = join(at, place.tablePath(1))
    writeFileSync(table, 'not written again')
    expect(await run(1)).toEqual({ report, wasDone: true })
    expect(readFileSync(table, 'utf8')).toBe('not written again')
  })

  it('is refused to another version, and by a number that it does not have', async () => {
    await expect(run(0, '9.9.9')).rejects.toThrow(`expected trialscan ${VERSION}, which has made the plan, got 9.9.9`)
    for (const shard of [4, -1, 0.5])
      await expect(run(shard)).rejects.toThrow(`expected a shard from 0 to 3, got ${shard}`)
  })

  it('of a trial that has changed fails, and is named', async () => {
    const index = join(place.plan.trials[0]!.path, 'index/000000000')
    utimesSync(join(index, readdirSync(index)[0]!), 1, 1)
    for (let i = 0; i < 2; i++) await expect(run(0)).rejects.toMatchObject({ code: 'TrialChanged' })
    const { shards, done } = await fleetStatus(place)
    expect(done).toBe(0)
    expect(shards[0]!.failure).toMatchObject({
      shard: 0,
      times: 2,
      message: expect.stringContaining('make a new plan'),
    })
    await expect(merged(place)).rejects.toThrow('0 (failed 2 times: ')
  })

  it('that is missing, cut, or longer than it was is not merged', async () => {
    await expect(merged(place)).rejects.toThrow('expected all 4 shards, got 0; these are missing: 0, 1, 2, 3')
    for (const shard of [0, 1, 3]) await run(shard)
    await expect(merged(place)).rejects.toMatchObject({ code: 'ShardsMissing', fields: { missing: [2] } })
    await run(2)
    const table = join(at, place.tablePath(2))
    const whole = readFileSync(table)
    writeFileSync(table, whole.subarray(0, whole.length / 10))
    await expect(merged(place)).rejects.toThrow(`expected ${whole.length} bytes, got `)
    writeFileSync(table, Buffer.concat([whole, whole]))
    await expect(merged(place)).rejects.toThrow(`expected ${whole.length} bytes, got more`)
    rmSync(table)
    await expect(merged(place)).rejects.toMatchObject({ code: 'BadPlan' })
  })

  it('is not merged if what was written beside its table is something else', async () => {
    for (const shard of [0, 1, 2, 3]) await run(shard)
    const report = join(at, place.tablePath(1)).replace(/csv$/, 'json')
    for (const text of ['null', '{}', '[1]', '{"rows":1,"bytes":1e99}', 'x']) {
      writeFileSync(report, text)
      await expect(merged(place)).rejects.toMatchObject({
        code: 'BadPlan',
        url: expect.stringContaining('shard-00001-'),
      })
    }
  })

  it('that is interrupted leaves nothing that counts', async () => {
    const stop = new AbortController()
    const options = { version: VERSION, signal: stop.signal, onProgress: () => stop.abort(new Error('stopped')) }
    await expect(runShard(place, 0, options)).rejects.toThrow('stopped')
    expect(await place.report(0)).toBeNull()
    expect((await fleetStatus(place)).shards[0]!.failure).toBeNull()
    await run(0)
    expect(await place.report(0)).not.toBeNull()
  })
})

describe('trialscan fleet', () => {
  it('plans, runs, tells how far it is, and merges', async () => {
    const [plan, out] = [join(at, 'plan'), join(at, 'all.csv')]
    const estimate = ['--estimate', '--cores', '2', '--net', '0.5']
    const made = await trialscan(
      'fleet',
      'plan',
      FIXTURES,
      '--out',
      plan,
      '--shards',
      '4',
      '--format',
      'csv',
      ...estimate,
    )
    expect([made.code, made.stdout]).toEqual([
      0,
      expect.stringMatching(
        /: 10 trials, 1,253 rows, .* in 4 shards \(0 to 3\)\nabout [\d.]+ s on 2 cores, bound by the cores; /,
      ),
    ])
    expect((await trialscan('fleet', 'run', plan, '--shard', '2')).stdout).toMatch(
      /^shard 2 of 4: \d+ rows; [\d.]+ s\n$/,
    )
    expect((await trialscan('fleet', 'run', plan, '--shard', '2')).stdout).toMatch(/ was done\n$/)
    const states = objects((await trialscan('fleet', 'status', plan, '--format', 'jsonl')).stdout)
    expect(states.map(({ state }) => state)).toEqual(['waiting', 'waiting', 'done', 'waiting'])
    expect((await trialscan('fleet', 'status', plan)).stdout).toContain(
      '1 of 4 shards done, 3 not yet begun or under way',
    )
    const early = await trialscan('fleet', 'merge', plan, '--out', out)
    expect([early.code, early.stderr]).toEqual([5, expect.stringContaining('these are missing: 0, 1, 3')])
    expect((await trialscan('fleet', 'run', plan, '--all')).code).toBe(0)
    expect((await trialscan('fleet', 'merge', plan, '--out', out)).code).toBe(0)
    expect(readFileSync(out, 'utf8')).toBe((await trialscan('scan', FIXTURES, '--format', 'csv')).stdout)
    expect((await trialscan('fleet', 'merge', plan, '--out', '-')).stdout).toBe(readFileSync(out, 'utf8'))
  })

  it('names a table whose footer lies, and does not merge it', async () => {
    const [plan, out] = [join(at, 'plan'), join(at, 'all.parquet')]
    await trialscan('fleet', 'plan', FIXTURES, '--out', plan, '--shards', '2')
    await trialscan('fleet', 'run', plan, '--all')
    const table = join(plan, 'shards', readdirSync(join(plan, 'shards')).find(name => name.endsWith('.parquet'))!)
    const whole = readFileSync(table)
    const lying = Buffer.from(whole)
    lying.writeUInt32LE(0xffff_fff0, whole.length - 8)
    const noise = Buffer.from(whole).fill(0x55, whole.length - 200, whole.length - 8)
    for (const bytes of [lying, noise, Buffer.alloc(whole.length)]) {
      writeFileSync(table, bytes)
      const { code, stderr } = await trialscan('fleet', 'merge', plan, '--out', out)
      expect([code, stderr]).toEqual([
        4,
        expect.stringMatching(/shard-00000-\w+\.parquet: expected the bytes of SHA-256 /),
      ])
      expect(existsSync(out)).toBe(false)
    }
  })

  it('writes nothing into a trial', async () => {
    const trial = join(at, 'trial')
    cpSync(join(FIXTURES, 'workers-4'), trial, { recursive: true })
    for (const out of [trial, join(trial, 'plan')]) {
      const { code, stderr } = await trialscan('fleet', 'plan', trial, '--out', out, '--shards', '1')
      expect([code, stderr]).toEqual([
        2,
        expect.stringContaining('expected --out to be a directory outside of the trial'),
      ])
    }
    const plan = join(at, 'plan')
    await trialscan('fleet', 'plan', trial, '--out', plan, '--shards', '1', '--format', 'csv')
    await trialscan('fleet', 'run', plan, '--all')
    const own = join(trial, 'training_job_end.ts')
    expect(await trialscan('fleet', 'merge', plan, '--out', own)).toMatchObject({ code: 2 })
  })

  it.each([
    ['--check'],
    ['--rule', 'AllZero,tensor_regex=.,threshold=50'],
    ['--rule', 'VanishingGradient', '--rule', 'ExplodingTensor,tensor_regex=.', '--worker', 'worker_0'],
  ])('judges whole trials: %j', async (...rules) => {
    const plan = join(at, 'plan')
    const made = await trialscan('fleet', 'plan', FIXTURES, '--out', plan, '--shards', '4', ...rules)
    expect([made.stderr, made.code]).toEqual(['', 0])
    const { trials, shards } = JSON.parse(readFileSync(join(plan, 'plan.json'), 'utf8')) as FleetPlan
    expect(shards.flatMap(({ pieces }) => pieces.map(({ trial }) => trial))).toEqual([...trials.keys()])
    await trialscan('fleet', 'run', plan, '--all')
    const merged = await trialscan('fleet', 'merge', plan, '--out', '-')
    const check = await trialscan('check', FIXTURES, ...rules.filter(rule => rule !== '--check'), '--format', 'jsonl')
    expect(merged.stdout).toBe(check.stdout)
    expect(objects(merged.stdout).length).toBeGreaterThan(5)
    expect(merged.code).toBe(check.code)
  })

  it.each(['AWS_BATCH_JOB_ARRAY_INDEX', 'JOB_COMPLETION_INDEX', 'SLURM_ARRAY_TASK_ID'])(
    'takes the shard from %s',
    async name => {
      const plan = join(at, 'plan')
      await trialscan('fleet', 'plan', FIXTURES, '--out', plan, '--shards', '3')
      const run = (value: string) => ended([CLI, 'fleet', 'run', plan], { [name]: value })
      expect(await run('1')).toMatchObject({ code: 0, stdout: expect.stringContaining('shard 1 of 3') })
      expect(await run('3')).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('expected a shard from 0 to 2, got 3'),
      })
      expect(await run('x')).toMatchObject({
        code: 2,
        stderr: expect.stringContaining(`expected ${name} to be the number of a shard`),
      })
      expect(await run('')).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('expected --shard N, --all, or one of'),
      })
    },
  )

  it('leaves out trials that are broken, and tells of rows that could not be read', async () => {
    const trials = join(at, 'trials')
    for (const name of ['mlp-vanishing', 'workers-4'])
      cpSync(join(FIXTURES, name), join(trials, name), { recursive: true })
    mkdirSync(join(trials, 'broken/index'), { recursive: true })
    const events = join(trials, 'mlp-vanishing/events')
    const [first] = readdirSync(events)
    const [file] = readdirSync(join(events, first!))
    writeFileSync(join(events, first!, file!), 'nothing')
    const plan = join(at, 'plan')
    const made = await trialscan('fleet', 'plan', trials, '--out', plan, '--shards', '2', '--format', 'csv')
    expect([made.code, made.stderr]).toEqual([4, expect.stringContaining('1 of 3 trials could not be read')])
    expect((await trialscan('fleet', 'run', plan, '--all')).code).toBe(0)
    const { code, stdout, stderr } = await trialscan('fleet', 'merge', plan, '--out', '-')
    const scan = await trialscan('scan', join(trials, 'mlp-vanishing'), join(trials, 'workers-4'), '--format', 'csv')
    expect([code, stdout]).toEqual([4, scan.stdout])
    expect(stderr).toMatch(/\d+ of 291 rows could not be had; the first: /)
  })

  it('runs the others where one fails', async () => {
    const trials = join(at, 'trials')
    for (const name of ['a', 'b', 'c']) cpSync(join(FIXTURES, 'mlp-all-zero'), join(trials, name), { recursive: true })
    const plan = join(at, 'plan')
    await trialscan('fleet', 'plan', trials, '--out', plan, '--shards', '3')
    const index = join(trials, 'b/index/000000000')
    utimesSync(join(index, readdirSync(index)[0]!), 1, 1)
    const { code, stdout, stderr } = await trialscan('fleet', 'run', plan, '--all')
    expect([code, stdout]).toEqual([5, expect.stringMatching(/^shard 0 of 3: .*\nshard 2 of 3: .*\n$/)])
    expect(stderr).toContain('/b: expected the trial as it was when the plan was made')
  })

  it('survives processes that are killed, and several at the same shard', async () => {
    const plan = join(at, 'plan')
    await trialscan('fleet', 'plan', FIXTURES, '--out', plan, '--shards', '12', '--format', 'csv')
    for (let round = 0; round < 4; round++) {
      const children = [0, 1, 2].map(() =>
        spawn(process.execPath, [CLI, 'fleet', 'run', plan, '--all'], { stdio: 'ignore' }),
      )
      // Listened for before it is killed: where all shards are done, a process has ended by itself.
      const ended = children.map(child => new Promise(resolve => child.on('close', resolve)))
      await new Promise(resolve => setTimeout(resolve, 100 + round * 60))
      for (const child of children) child.kill('SIGKILL')
      await Promise.all(ended)
    }
    await Promise.all([0, 1, 2].map(() => trialscan('fleet', 'run', plan, '--all')))
    const { code, stdout } = await trialscan('fleet', 'merge', plan, '--out', '-')
    expect([code, stdout]).toEqual([0, (await trialscan('scan', FIXTURES, '--format', 'csv')).stdout])
  })

  it.each([
    [['plan', FIXTURES, '--out', 'x'], 2, 'expected either --shards or --shard-bytes, got neither'],
    [
      ['plan', FIXTURES, '--out', 'x', '--shards', '2', '--tensor', 'no such'],
      5,
      'the options select nothing of any trial',
    ],
    [['plan', FIXTURES, '--out', 'x', '--shards', '2', '--cores', '2'], 2, 'expected --estimate and --cores together'],
    [
      ['plan', FIXTURES, '--out', 'x', '--shards', '2', '--check', '--steps', '1'],
      2,
      'expected --steps for a plan of a scan, got it beside --check',
    ],
    [['plan', FIXTURES, '--out', 'x', '--shards', '2', '--rule', 'NoSuchRule'], 2, 'NoSuchRule'],
    [['plan', FIXTURES, '--out', 'x', '--shards', '2', '--net', '2'], 2, 'expected --estimate beside --net'],
    [['run', '/no/such/plan', '--shard', '0'], 3, '/no/such/plan/plan.json: no such file'],
    [['status', FIXTURES], 3, 'plan.json: no such file'],
    [['merge', FIXTURES, '--out', 'x', '--s3-anonymous'], 2, 'expected --s3-anonymous for a trial at s3://'],
  ])('%j is told in a line', async (args, code, message) => {
    const outcome = await trialscan('fleet', ...args)
    expect([outcome.code, outcome.stderr]).toEqual([code, expect.stringContaining(message)])
  })
})

function ended(args: readonly string[], env: Readonly<Record<string, string>>) {
  const child = spawn(process.execPath, args, { env: { ...process.env, ...env } })
  const text = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (more: string) => (text[name] += more))
  return new Promise<{ code: number | null; stdout: string; stderr: string }>(resolve =>
    child.on('close', code => resolve({ code, ...text })),
  )
}
