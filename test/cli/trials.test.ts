/** Several trials in one command: where they are found, one table of all, a directory of parts, and what is broken. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parquetReadObjects } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { expectReplaceableIn } from '#dist/cli/real-path.js'
import { createTrial, findTrials, trialFingerprint } from '#dist/index.js'
import { withHeader } from '../../fixtures/checkpoint-writer.js'
import { TrialWriter } from '../../fixtures/event-writer.js'
import { HAS_DUCKDB } from '../support/duckdb.js'
import { FaultyS3 } from '../support/faulty-s3.js'
import { CLI, objects, trialscan } from './run.js'

const directory = mkdtempSync(join(tmpdir(), 'trialscan-trials-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const PATIENCE = { timeout: 60_000, interval: 50 }

const runs = join(directory, 'runs')
const [a, b, c] = [join(runs, '2024/a'), join(runs, '2024/b'), join(runs, 'c, "x"')]

function write(path: string, value: number): void {
  const writer = new TrialWriter(path)
  for (const step of [0, 1, 2]) {
    const tensors = ['loss', 'fc.weight'].map(
      name => ({ name, dtype: 'float32', shape: [2], values: [value, step] }) as const,
    )
    writer.step({ step, mode: 'TRAIN', tensors })
  }
  writer.end()
}

beforeAll(() => {
  for (const [i, path] of [a, b, c].entries()) write(path, i)
  mkdirSync(join(runs, 'notes/deep'), { recursive: true })
  mkdirSync(join(runs, '.hidden'))
  cpSync(a, join(runs, '.hidden/d'), { recursive: true })
})

describe('findTrials', () => {
  it('finds those below a directory, in order, and a trial itself', async () => {
    expect(await findTrials(runs)).toEqual([a, b, c])
    expect(await findTrials(`${runs}/`)).toEqual([a, b, c])
    expect(await findTrials(a)).toEqual([a])
  })

  it('finds what a pattern matches, as a shell does', async () => {
    expect(await findTrials(join(runs, '*/?'))).toEqual([a, b])
    expect(await findTrials(join(runs, '20*'))).toEqual([a, b])
    expect(await findTrials(join(runs, '*'))).toEqual([a, b, c])
    expect(await findTrials(join(runs, '.h*'))).toEqual([join(runs, '.hidden/d')])
    await expect(findTrials(join(runs, 'z*'))).rejects.toThrow('no trial matches it')
  })

  it("finds TensorBoard's by a pattern, and leaves what is no trial to whoever opens it", async () => {
    const logs = join(directory, 'logs')
    mkdirSync(join(logs, 'one'), { recursive: true })
    writeFileSync(join(logs, 'one/events.out.tfevents.1700000000.host'), '')
    expect(await findTrials(join(logs, '*'))).toEqual([join(logs, 'one')])
    expect(await findTrials(logs)).toEqual([logs])
    expect(await findTrials(join(directory, 'nowhere'))).toEqual([join(directory, 'nowhere')])
  })
})

it('trialFingerprint changes with an object of S3 that another of its length has replaced within the same second', async () => {
  const s3 = await FaultyS3.start()
  try {
    for (const name of readdirSync(a, { recursive: true, encoding: 'utf8' })) {
      const file = join(a, name)
      if (statSync(file).isFile()) s3.objects.set(`a/${name}`, readFileSync(file))
    }
    const fingerprint = async () => {
      const trial = await createTrial('s3://bucket/a', { s3: s3.options })
      const text = await trialFingerprint(trial)
      await trial.close()
      return text
    }
    const before = await fingerprint()
    expect(await fingerprint()).toBe(before)
    const events = [...s3.objects.keys()].find(key => key.endsWith('.tfevents'))!
    const changed = Buffer.from(s3.objects.get(events)!)
    changed[changed.length - 1]! ^= 1
    s3.objects.set(events, changed)
    expect(await fingerprint()).not.toBe(before)
  } finally {
    await s3.stop()
  }
})

it('trialFingerprint changes with the files of a trial', async () => {
  const copy = join(directory, 'copy')
  cpSync(a, copy, { recursive: true, preserveTimestamps: true })
  const fingerprint = async () => {
    const trial = await createTrial(copy)
    const text = await trialFingerprint(trial)
    await trial.close()
    return text
  }
  const before = await fingerprint()
  expect(await fingerprint()).toBe(before)
  const seen = new Set([before])
  for (const directory of ['index', 'events', 'collections']) {
    const folder = join(copy, directory, readdirSync(join(copy, directory))[0]!)
    utimesSync(join(folder, readdirSync(folder)[0]!), 1, 1)
    seen.add(await fingerprint())
  }
  expect(seen.size).toBe(4)
  // What is written beside them is none of the trial's.
  const last = await fingerprint()
  writeFileSync(join(copy, 'table.parquet'), '')
  expect(await fingerprint()).toBe(last)
})

/** What each of the trials has alone. */
async function alone(...args: readonly string[]): Promise<Record<string, unknown>[]> {
  const rows: Record<string, unknown>[] = []
  for (const trial of [a, b, c]) {
    const { stdout } = await trialscan('scan', trial, ...args, '--format', 'jsonl')
    rows.push(...objects(stdout).map(row => ({ trial, ...row })))
  }
  return rows
}

describe('scan of several trials', () => {
  it.each([[[]], [['--tensor', 'loss']], [['--where', 'step > 0']]])(
    'is what each has alone, with a column trial: %j',
    async args => {
      const expected = await alone('--reductions', 'mean,max', ...args)
      expect(expected.length).toBeGreaterThan(3)
      const { code, stdout } = await trialscan('scan', runs, '--reductions', 'mean,max', ...args, '--format', 'jsonl')
      expect(code).toBe(0)
      expect(objects(stdout)).toEqual(expected)
      expect(Object.keys(objects(stdout)[0]!)[0]).toBe('trial')
    },
  )

  it('is CSV with one header', async () => {
    const { stdout } = await trialscan('scan', a, c, '--reductions', 'mean', '--format', 'csv')
    const lines = stdout.trimEnd().split('\n')
    expect(lines).toHaveLength(13)
    expect(lines[0]).toBe('trial,tensor,step,mode,mode_step,worker,dtype,shape,mean,saved,error_code,error_message')
    expect(lines[1]).toMatch(`${a},loss,0,TRAIN,`)
    expect(lines[7]).toMatch(`"${c.replaceAll('"', '""')}",loss,0,TRAIN,`)
  })

  it('is one Parquet file, and one query', async () => {
    const out = join(directory, 'all.parquet')
    expect((await trialscan('scan', runs, '--reductions', 'mean', '--out', out)).code).toBe(0)
    const rows = await parquetReadObjects({ file: Uint8Array.from(readFileSync(out)).buffer, compressors })
    expect(rows.map(({ trial, tensor, step, mean }) => [trial, tensor, Number(step), mean])).toEqual(
      (await alone('--reductions', 'mean')).map(({ trial, tensor, step, mean }) => [trial, tensor, step, mean]),
    )
    if (!HAS_DUCKDB) return
    const query = 'select trial, count(*) as n from scan group by trial order by trial'
    const expected = [a, b, c].map(trial => ({ trial, n: 6 }))
    expect(objects((await trialscan('sql', runs, query, '--format', 'jsonl')).stdout)).toEqual(expected)
    expect(objects((await trialscan('sql', out, query, '--format', 'jsonl')).stdout)).toEqual(expected)
  })

  it('is a table for each, under its name', async () => {
    const { stdout } = await trialscan('scan', runs, '--reductions', 'mean', '--format', 'table')
    expect(stdout.split('\n').filter(line => [a, b, c].includes(line))).toEqual([a, b, c])
  })
})

describe('a trial that is broken', () => {
  const broken = join(directory, 'broken')
  beforeAll(() => {
    cpSync(runs, broken, { recursive: true })
    rmSync(join(broken, '2024/a'), { recursive: true })
    mkdirSync(join(broken, '2024/a/index'), { recursive: true })
    const event = join(broken, '2024/b/events/000000000001/000000000001_worker_0.tfevents')
    writeFileSync(event, readFileSync(event).subarray(0, 20))
  })

  it('costs its own rows, and is told at the end', async () => {
    const { code, stdout, stderr } = await trialscan('scan', broken, '--reductions', 'mean')
    expect(code).toBe(4)
    const rows = objects(stdout)
    expect(rows).toHaveLength(12)
    expect(rows.filter(({ error }) => error !== undefined)).toHaveLength(2)
    expect(stderr).toContain(`${join(broken, '2024/a')}: expected a trial`)
    expect(stderr).toContain('1 of 3 trials could not be read')
    expect(stderr).toContain('2 of 12 rows could not be had; the first: ')
  })

  it('ends the command with --fail-fast', async () => {
    const { code, stdout } = await trialscan('scan', broken, '--fail-fast')
    expect([code, stdout]).toEqual([5, ''])
  })

  it.runIf(HAS_DUCKDB)('is told of by sql, which has the others', async () => {
    const { code, stdout, stderr } = await trialscan(
      'sql',
      broken,
      'select count(*) as n from workers',
      '--format',
      'jsonl',
    )
    expect([code, objects(stdout)]).toEqual([4, [{ n: 2 }]])
    expect(stderr).toContain('1 of 3 trials could not be read')
  })

  it('leaves no table if it is the only one', async () => {
    const out = join(directory, 'none.parquet')
    const places = [join(broken, '2024/a'), join(broken, 'nowhere')]
    const { code, stderr } = await trialscan('scan', ...places, '--out', out)
    expect([code, existsSync(out)]).toEqual([5, false])
    expect(stderr).toContain('expected a trial')
  })
})

describe.each([
  ['ls', [], [0]],
  ['verify', [], [0]],
  ['check', ['--rule', 'AllZero,tensor_regex=fc.weight,threshold=99'], [1, 0, 0]],
  ['top', ['--by', 'max', '-n', '50'], [0]],
] as const)('%s of several trials', (command, args, codes) => {
  const heaviest = Math.max(...codes)

  it('has in lines what each has alone', async () => {
    const expected: Record<string, unknown>[] = []
    for (const trial of [a, b, c]) {
      const { stdout } = await trialscan(command, trial, ...args, '--format', 'jsonl')
      expected.push(...objects(stdout).map(line => ({ trial, ...line })))
    }
    expect(expected.length).toBeGreaterThan(0)
    const { code, stdout } = await trialscan(command, runs, ...args, '--format', 'jsonl')
    const ranked = command === 'top' ? (line: Record<string, unknown>) => -Number(line.max) : () => 0
    const comparable = (lines: Record<string, unknown>[]) =>
      lines.map(({ seconds: _, ...others }) => others).sort((one, other) => ranked(one) - ranked(other))
    expect(comparable(objects(stdout))).toEqual(comparable(expected))
    expect(code).toBe(heaviest)
    for (const line of objects(stdout)) expect(Object.keys(line)).toContain('trial')
  })

  it('is CSV with one header', async () => {
    const one = (await trialscan(command, c, ...args, '--format', 'csv')).stdout.trimEnd().split('\n')
    const { stdout } = await trialscan(command, c, a, ...args, '--format', 'csv')
    const lines = stdout.trimEnd().split('\n')
    expect(lines[0]).toBe(`trial,${one[0]}`)
    expect(lines.filter(line => line.startsWith('trial,'))).toHaveLength(1)
    const ofC = lines.filter(line => line.startsWith(`"${c.replaceAll('"', '""')}",`))
    expect(ofC).toHaveLength(one.length - 1)
  })

  it('is a table that names each', async () => {
    const { code, stdout } = await trialscan(command, runs, ...args, '--format', 'table')
    expect(code).toBe(heaviest)
    for (const trial of [a, b, c]) expect(stdout).toContain(trial)
  })

  it('tells the broken at the end', async () => {
    const broken = join(directory, `broken-${command}`)
    cpSync(runs, broken, { recursive: true })
    rmSync(join(broken, '2024/b'), { recursive: true })
    mkdirSync(join(broken, '2024/b/index'), { recursive: true })
    const { code, stdout, stderr } = await trialscan(command, broken, ...args, '--format', 'csv')
    expect(stderr).toContain(`${join(broken, '2024/b')}: expected a trial`)
    expect(stderr).toContain('1 of 3 trials could not be read')
    expect(code).toBe(4)
    const whole = await trialscan(command, join(broken, '2024/a'), join(broken, 'c*'), ...args, '--format', 'csv')
    expect(stdout).toBe(whole.stdout)
    expect((await trialscan(command, join(broken, '2024/b'), broken, ...args, '--fail-fast')).code).toBe(5)
  })
})

it('check of several trials counts findings for people, and can follow one only', async () => {
  const { stdout } = await trialscan(
    'check',
    runs,
    '--rule',
    'AllZero,tensor_regex=fc.weight,threshold=99',
    '--format',
    'table',
  )
  expect(stdout).toMatch(/2024\/a +3 +1 +AllZero \(0\)\n/)
  expect(stdout).toMatch(/2024\/b +3 +0\n/)
  expect(stdout).toContain(`1 of 3 trials has findings; for one of them, with causes and advice: trialscan check ${a}`)
  const { code, stderr } = await trialscan('check', runs, '--follow')
  expect([code, stderr]).toEqual([2, expect.stringContaining('expected one trial to --follow, got 3')])
})

it('ls of several trials is one object of JSON', async () => {
  const { stdout } = await trialscan('ls', runs, '--json')
  const each = await Promise.all(
    [a, b, c].map(async trial => JSON.parse((await trialscan('ls', trial, '--json')).stdout)),
  )
  expect(JSON.parse(stdout)).toEqual({ trials: each })
})

it('a few of many trials are looked at at once, for whether --out is theirs', async () => {
  const looked = expectReplaceableIn(Array(2000).fill(a), join(directory, 'table.csv'))
  expect(process.getActiveResourcesInfo().length).toBeLessThan(500)
  await looked
})

describe('--out DIR', () => {
  let out: string
  beforeEach(() => {
    out = mkdtempSync(join(directory, 'out-'))
  })
  const part = (trial: string) => join(out, `trial=${encodeURIComponent(trial)}`, 'part-00000.parquet')

  it('has a part for each trial, and says when all are there', async () => {
    expect((await trialscan('scan', runs, '--reductions', 'mean', '--out', out)).code).toBe(0)
    expect(readdirSync(out).sort()).toEqual(
      ['_SUCCESS', ...[a, b, c].map(trial => `trial=${encodeURIComponent(trial)}`)].sort(),
    )
    if (!HAS_DUCKDB) return
    const query = 'select trial, count(*) as n from scan group by trial order by trial'
    const { stdout } = await trialscan('sql', out, query, '--format', 'jsonl')
    expect(objects(stdout)).toEqual([a, b, c].map(trial => ({ trial, n: 6 })))
  })

  it('goes on with --resume: what is there, of the same trial and options, is not done again', async () => {
    await trialscan('scan', a, b, '--reductions', 'mean', '--out', out)
    const before = readFileSync(part(a))
    writeFileSync(part(a), 'kept')
    // What was interrupted left neither the third part nor the marker.
    rmSync(join(out, '_SUCCESS'))
    const taken = await trialscan('sql', out, 'select 1')
    expect([taken.code, taken.stderr]).toEqual([2, expect.stringContaining('the table is not whole')])
    const folder = join(b, 'index/000000000')
    utimesSync(join(folder, readdirSync(folder)[0]!), 1, 1)
    const { code, stderr } = await trialscan('scan', runs, '--reductions', 'mean', '--out', out, '--resume')
    expect([code, stderr]).toEqual([0, expect.stringContaining('1 of 3 trials had been scanned before')])
    expect(readFileSync(part(a), 'utf8')).toBe('kept')
    expect(readFileSync(part(c)).length).toBeGreaterThan(100)
    const again = await trialscan('scan', runs, '--reductions', 'max', '--out', out, '--resume')
    expect(again.stderr).toContain('0 of 3 trials had been scanned before')
    expect(readFileSync(part(a)).equals(before)).toBe(false)
  })

  it('does again with --resume what was not whole, and what had other event files', async () => {
    const copy = join(out, 'trial')
    cpSync(a, copy, { recursive: true, preserveTimestamps: true })
    const [, step] = readdirSync(join(copy, 'events')).sort()
    const file = join(copy, 'events', step!, readdirSync(join(copy, 'events', step!))[0]!)
    renameSync(file, join(out, 'aside'))
    const tables = join(out, 'tables/')
    const scan = () => trialscan('scan', copy, '--reductions', 'mean', '--out', tables, '--resume')
    const first = await scan()
    expect([first.code, first.stderr]).toEqual([4, expect.stringContaining('2 of 6 rows could not be had')])
    // Nothing has changed, but what was lost may be had the next time.
    const second = await scan()
    expect([second.code, second.stderr]).toEqual([4, expect.stringContaining('0 of 1 trial had been scanned before')])
    renameSync(join(out, 'aside'), file)
    const third = await scan()
    expect([third.code, third.stderr]).toEqual([0, expect.stringContaining('0 of 1 trial had been scanned before')])
    expect((await scan()).stderr).toContain('1 of 1 trial had been scanned before')
    // Only the event file changes.
    utimesSync(file, 1, 1)
    expect((await scan()).stderr).toContain('0 of 1 trial had been scanned before')
  })

  it('does again with --resume checkpoints that have changed, and their logs', async () => {
    const run = join(out, 'run')
    const checkpoint = join(run, 'checkpoint-1')
    mkdirSync(checkpoint, { recursive: true })
    const file = (value: number) =>
      withHeader(
        '{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
        new Uint8Array(Float32Array.of(value).buffer),
      )
    const scan = async () => (await trialscan('scan', run, '--out', join(out, 'tables/'), '--resume')).stderr
    writeFileSync(join(checkpoint, 'model.safetensors'), file(1))
    expect(await scan()).toContain('0 of 1 trial had been scanned before')
    expect(await scan()).toContain('1 of 1 trial had been scanned before')
    writeFileSync(join(checkpoint, 'model.safetensors'), file(2))
    expect(await scan()).toContain('0 of 1 trial had been scanned before')
    writeFileSync(join(checkpoint, 'trainer_state.json'), '{"log_history":[{"step":1,"loss":2}]}')
    expect(await scan()).toContain('0 of 1 trial had been scanned before')
    expect(await scan()).toContain('1 of 1 trial had been scanned before')
  })

  it('is refused for other formats, and --resume without it', async () => {
    const csv = await trialscan('scan', runs, '--out', out, '--format', 'csv')
    expect([csv.code, csv.stderr]).toEqual([2, expect.stringContaining('expected --format parquet')])
    const resume = await trialscan('scan', runs, '--out', join(out, 'x.parquet'), '--resume')
    expect([resume.code, resume.stderr]).toEqual([2, expect.stringContaining('expected --resume with --out DIR')])
    expect(readdirSync(out)).toEqual([])
  })

  it('has names that files can have, for any path', async () => {
    const long = join(directory, `${'x'.repeat(120)}/${'y'.repeat(120)}`)
    cpSync(a, long, { recursive: true })
    expect((await trialscan('scan', long, '--reductions', 'mean', '--out', `${out}/new/`)).code).toBe(0)
    const [folder] = readdirSync(join(out, 'new')).filter(name => name.startsWith('trial='))
    expect(folder!.length).toBeLessThan(256)
    if (!HAS_DUCKDB) return
    const { stdout } = await trialscan('sql', join(out, 'new'), 'select distinct trial from scan', '--format', 'jsonl')
    expect(objects(stdout)).toEqual([{ trial: long }])
  })
})

it('are served as they appear, also where there is nothing yet', async () => {
  const later = join(directory, 'later')
  const child = spawn(process.execPath, [CLI, 'serve', later, join(directory, 'more-*'), '--port', '0', '--no-rules'])
  let stderr = ''
  child.stderr.on('data', text => {
    stderr += text
  })
  const ended = once(child, 'close')
  try {
    await expect.poll(() => stderr, PATIENCE).toMatch(/http:\/\/[\d.]+:\d+/)
    expect(stderr).toContain(`${later}: no trial there yet; waiting for one`)
    expect(stderr).toContain('more-*: no trial there yet; waiting for one')
    const [url] = /http:\/\/[\d.]+:\d+/.exec(stderr)!
    const ids = async () =>
      ((await (await fetch(`${url}/api/trials`)).json()) as { id: string; state: string }[])
        .map(({ id, state }) => `${id} ${state}`)
        .sort()
    expect(await ids()).toEqual([])
    mkdirSync(later)
    expect(await ids()).toEqual([])
    const events = await fetch(`${url}/api/events`, { signal: AbortSignal.timeout(120_000) })
    const told = events.body!.pipeThrough(new TextDecoderStream()).getReader()
    const isMarker = (path: string) => path.endsWith('training_job_end.ts')
    cpSync(a, join(later, 'first'), { recursive: true, filter: path => !isMarker(path) })
    await expect.poll(ids, PATIENCE).toEqual(['first running'])
    cpSync(a, join(later, 'first'), { recursive: true, filter: path => path === a || isMarker(path) })
    await expect.poll(ids, PATIENCE).toEqual(['first ended'])
    let said = ''
    while (!said.includes('"isEnded":true')) said += (await told.read()).value
    expect(said).toContain('"id":"first"')
    cpSync(b, join(directory, 'more-1'), { recursive: true })
    await expect.poll(ids, PATIENCE).toEqual(['first ended', 'more-1 ended'])
    await told.cancel()
  } finally {
    child.kill('SIGINT')
  }
  expect(await ended).toEqual([130, null])
})

it('are opened in the app where none is named', async () => {
  const child = spawn(process.execPath, [CLI, 'serve', '--port', '0'])
  let stderr = ''
  child.stderr.on('data', text => {
    stderr += text
  })
  const ended = once(child, 'close')
  try {
    await expect.poll(() => stderr, PATIENCE).toMatch(/serving the app at http:\/\/[\d.]+:\d+\/app\/, which opens/)
    const [url] = /http:\S+\/app\//.exec(stderr)!
    expect(await (await fetch(url)).text()).toContain('Look into a training')
  } finally {
    child.kill('SIGINT')
  }
  expect(await ended).toEqual([130, null])
})
