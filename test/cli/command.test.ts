/** The command line: help, exit codes, what goes to which stream, bad input. */

import { execFileSync, spawn } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FORMATS } from '#dist/cli/format/formats.js'
import { REDUCTIONS } from '#dist/index.js'
import { copyTrial } from '../../fixtures/corrupt.js'
import { TrialWriter } from '../../fixtures/event-writer.js'
import { corruptedCopy } from '../support/corrupted.js'
import { isRequired, ROOT } from '../support/golden.js'
import { isLong, part, whenLong } from '../support/part.js'
import { CLI, DTYPES, objects, PLAIN, trialscan } from './run.js'

let directory: string
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'trialscan-cli-'))
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

describe('help', () => {
  const commands = [[[]], ...[...Object.keys(FORMATS), 'bench'].map(command => [command.split(' ')])]
  it.each(part(commands, (_, i) => i < 2))('of %j has examples and exit codes', async command => {
    const { code, stdout, stderr } = await trialscan(...command, '--help')
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/Examples:\n( {2}\$ trialscan .*(\n {6}.*)*\n){2,}/)
    expect(stdout).toMatch(
      command.length === 0 ? /Exit codes:\n {2}0 / : /\nSee also: trialscan help s3, trialscan help exit-codes\.\n$/,
    )
    for (const line of stdout.split('\n')) expect([...line].length, line).toBeLessThanOrEqual(80)
  })

  it('says that a trial may be a checkpoint, but where event files are needed', async () => {
    const trialOf = async (command: string) =>
      / {2}TRIAL +([\s\S]*?)\n {2}\S/.exec(`${(await trialscan(command, '--help')).stdout}\n  .`)?.[1]
    expect(await trialOf('nan')).toMatch(/^a trial: a directory, a checkpoint, or\s+s3:/)
    expect(await trialOf('repair')).toMatch(/^the directory of the trial, which holds\s+collections/)
  })

  it.each([
    ['s3', /^Wherever .*\n[\s\S]*\n {2}--s3-endpoint <URL> {2}/],
    ['exit-codes', /^Exit codes:\n {2}0 {4}all is well/],
    ['steps', /^Global steps count [\s\S]*\n {2}0:100:10 {4}0, 10, 20 and so on/],
  ])('has the topic %s', async (topic, expected) => {
    const { code, stdout } = await trialscan('help', topic)
    expect([code, stdout]).toEqual([0, expect.stringMatching(expected)])
    for (const line of stdout.split('\n')) expect(line.length, line).toBeLessThanOrEqual(80)
  })

  it.each([['--help'], ['fleet', '--help']])(
    'of %j tells what commands do beside their names, in 80 columns',
    async (...words) => {
      const { stdout } = await trialscan(...words)
      const [commands] = stdout.split('Commands:\n')[1]!.split('\n\n')
      for (const line of commands!.split('\n')) {
        expect(line).toMatch(/^ {2}(\S+| +) {2,}\S/)
        expect(line.length).toBeLessThanOrEqual(80)
      }
    },
  )

  it('names the topics where one is unknown', async () => {
    expect(await trialscan('help', 'nosuch')).toEqual({
      code: 2,
      stdout: '',
      stderr: 'trialscan: help: expected a command, or one of steps, s3, exit-codes, got "nosuch"\n',
    })
    expect((await trialscan('help', 'scan')).code).toBe(0)
    expect((await trialscan('help', 'constructor')).code).toBe(2)
  })

  it('asked for before a command is about all commands', async () => {
    expect(await trialscan('--help', 'scan')).toEqual(await trialscan('--help'))
  })

  it('is there without a command, and so is the version', async () => {
    expect(await trialscan()).toMatchObject({ code: 0, stdout: expect.stringContaining('Usage: trialscan') })
    expect((await trialscan('--version')).stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
  })
})

describe('what is wrong is told in a line, with a code', () => {
  const scan = ['scan', PLAIN]
  const cases: [string, number, RegExp, readonly string[]][] = [
    ['unknown command', 2, /unknown command 'scna'\n.*scan/, ['scna']],
    ['unknown option', 2, /unknown option '--stpes'\n.*--steps/, ['scan', PLAIN, '--stpes', '1']],
    ['no trial named', 2, /missing required argument/, ['scan']],
    ['bad pattern', 2, /pattern "\("/, [...scan, '--tensor', '(']],
    ['unknown reduction', 2, /"men"; did you mean/, [...scan, '--reductions', 'mean,men']],
    ['bad steps', 2, /'1-5' is invalid.*A:B/, [...scan, '--steps', '1-5']],
    ['steps from back to front', 2, /'5:3' is invalid/, [...scan, '--steps', '5:3']],
    ['an empty path', 2, /'' is invalid for argument 'TRIALS'. Expected a path/, ['ls', '']],
    ['a path of blanks', 2, /' {2}' is invalid.*Expected a path/, [...scan, '--out', '  ']],
    ['bad threads', 2, /'abc' is invalid.*whole number/, [...scan, '--threads', 'abc']],
    ['too many threads', 2, /from 0 to 1024/, [...scan, '--threads', '5000']],
    ['too little memory', 2, /'1' is invalid.*MiB from 4 to 2048/, [...scan, '--memory', '1']],
    ['too much memory', 2, /'2049' is invalid.*MiB from 4 to 2048/, [...scan, '--memory', '2049']],
    ['unknown mode', 2, /expected --mode to be one of/, [...scan, '--mode', 'trian']],
    [
      'unknown mode of show',
      2,
      /expected --mode to be one of/,
      ['show', PLAIN, 'loss', '--step', '1', '--mode', 'trian'],
    ],
    ['a bad expression', 2, /at character 10 of "step > 1 x", got "x"/, [...scan, '--where', 'step > 1 x']],
    ['unknown check level', 2, /none, minimal, full/, [...scan, '--check-level', 'some']],
    ['unknown format', 2, /Expected table, jsonl, csv, parquet or arrow/, [...scan, '--format', 'xml']],
    ['no such path', 3, /^trialscan: \/no\/such: /, ['ls', '/no/such']],
    ['a file for a trial', 3, /expected a directory/, ['ls', join(ROOT, 'package.json')]],
    ['no place to write', 3, /cannot write .*directory does not exist/, [...scan, '--out', '/no/such/file']],
    ['a directory to write to', 3, /cannot write .*is a directory/, ['ls', PLAIN, '--out', ROOT]],
    ['a directory that is no trial', 5, /expected a trial/, ['ls', join(ROOT, 'src')]],
    ['unknown collection', 5, /"los".*losses/, [...scan, '--collection', 'los']],
    ['unknown worker', 5, /"worker_9".*"worker_0"/, [...scan, '--worker', 'worker_9']],
    ['unknown tensor', 5, /"fc.wieght".*"fc.weight"/, ['show', PLAIN, 'fc.wieght', '--step', '0']],
    ['unknown step', 5, /step 77/, ['show', PLAIN, 'loss', '--step', '77']],
    ['worker without data', 5, /"nobody"/, ['show', PLAIN, 'loss', '--step', '0', '--worker', 'nobody']],
  ]
  it.each(part(cases, (_, i) => i % 4 === 0))('%s', async (_, code, message, args) => {
    const outcome = await trialscan(...args)
    expect(outcome.stderr).toMatch(message)
    expect(outcome.stderr).toMatch(/^trialscan: /)
    expect(outcome.stderr).not.toMatch(/^ {4}at /m)
    expect(outcome).toMatchObject({ code, stdout: '' })
  })
})

describe('flags of S3', () => {
  const file = join(ROOT, 'package.json')
  const other = 's3://bucket/trial'
  const invoker = ['rule-invoker', '--rule-name', 'SimilarAcrossRuns', '--trial-dir', PLAIN]

  const refused: [string, string[], string[]][] = [
    ['ls', ['ls', PLAIN], ['--s3-endpoint', 'http://127.0.0.1:1']],
    ['scan', ['scan', PLAIN, '--format', 'csv'], ['--s3-cache', file]],
    ['show', ['show', PLAIN, 'loss'], ['--s3-anonymous']],
    ['top', ['top', PLAIN, '--by', 'max'], ['--s3-anonymous']],
    ['check', ['check', PLAIN], ['--s3-region', 'eu-west-1']],
    ['check with another trial', ['check', PLAIN, '--other-trials', PLAIN], ['--s3-region', 'eu-west-1']],
    ['rule-invoker', [...invoker, '--other-trials', PLAIN], ['--s3-region', 'eu-west-1']],
    ['verify', ['verify', PLAIN, '--format', 'csv'], ['--s3-force-path-style']],
    ['reindex', ['reindex', PLAIN, '--out', join(tmpdir(), 'never')], ['--s3-anonymous']],
    ['repair', ['repair', PLAIN, '--out', join(tmpdir(), 'never')], ['--s3-anonymous']],
  ]
  it.each(part(refused, (_, i) => i % 4 === 1))('are refused on disk: %s', async (_, command, flags) => {
    const { code, stdout, stderr } = await trialscan(...command, ...flags)
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain(`expected ${flags[0]} for a trial at s3://bucket/prefix only, got it for ${PLAIN}`)
  })

  it.each([
    ['check, whose base is on disk', ['check', PLAIN, '--other-trials', other]],
    ['rule-invoker, whose base is on disk', [...invoker, '--other-trials', other]],
  ])('hold for those trials that are there: %s', async (_, command) => {
    // A cache that can't be had is told when the trial on S3 is opened, before a request is made.
    const { code, stderr } = await trialscan(...command, '--s3-anonymous', '--s3-cache', file)
    expect(code).toBe(3)
    expect(stderr).toContain(file)
  })
})

it('`--check` and `--cache`, which flags were once called, are unknown', async () => {
  for (const flag of ['--check', '--cache']) {
    const { code, stderr } = await trialscan('scan', PLAIN, flag, 'full')
    expect(code).toBe(2)
    expect(stderr).toMatch(`unknown option '${flag}'`)
  }
})

describe('scan', () => {
  it('prints what is asked for, in order', async () => {
    const { code, stdout, stderr } = await trialscan(
      ...['scan', PLAIN, '--tensor', '^fc', '--tensor', 'loss$', '--steps', '1:', '--mode', 'train'],
      ...['--reductions', 'abs_max,mean', '--stats'],
    )
    const rows = objects(stdout)
    expect(code).toBe(0)
    expect(rows.map(({ tensor, step }) => `${tensor} ${step}`)).toEqual([
      ...['fc.weight 1', 'fc.bias 1', 'loss 1', 'fc.weight 2', 'fc.bias 2', 'loss 2'],
    ])
    expect(Object.keys(rows[0]!).slice(7)).toEqual(['abs_max', 'mean'])
    const { stdout: more } = await trialscan('scan', PLAIN, '--steps', '1', '--reductions', 'p50, all, count')
    expect(Object.keys(objects(more)[0]!).slice(7)).toEqual(['p50', ...REDUCTIONS, 'count'])
    expect(stderr).toMatch(
      /^records 6, bytes read [\d,]+ \(.+\), reads \d+, jobs \d+, threads 0, seconds [\d.]+, GB\/s [\d.]+, failed rows 0(, (open|read|decode|reduce|write|wait) [\d.]+){6}\n$/,
    )
  })

  const ranges: [string, number[]][] = [
    ['1', [1]],
    [':1', [0]],
    ['1:', [1, 2]],
    ['0:2', [0, 1]],
    [':', [0, 1, 2]],
  ]
  it.each(part(ranges, ([steps]) => steps === '0:2'))('--steps %s is %j', async (steps, expected) => {
    const { stdout } = await trialscan('scan', PLAIN, '--tensor', 'loss', '--steps', steps)
    expect(objects(stdout).map(({ step }) => step)).toEqual(expected)
  })

  it('starts no more threads than help, and says so', async () => {
    const most = 2 * availableParallelism()
    const { code, stdout, stderr } = await trialscan('scan', ` ${PLAIN} `, '--threads', '999', '--stats')
    expect([code, objects(stdout).length]).toEqual([0, 15])
    expect(stderr).toContain(
      `trialscan: --threads 999: ${most} are started: more would not help on this machine, or there is no room for them\n`,
    )
    expect(stderr).toContain(`, threads ${most}, `)
    expect((await trialscan('verify', PLAIN, '--threads', '1024')).stderr).toContain(
      `--threads 1024: ${most} are started`,
    )
    expect((await trialscan('scan', PLAIN, '--threads', '1')).stderr).toBe('')
  })

  it('says what there is when nothing is selected', async () => {
    const { code, stdout, stderr } = await trialscan('scan', PLAIN, '--tensor', 'fc.wieght', '--steps', '70:')
    expect([code, stdout]).toEqual([5, ''])
    expect(stderr).toMatch(
      /nothing is there: no tensor of trial .* matches "fc.wieght"; did you mean "fc.weight".*5 tensors; global steps 0 to 2/,
    )
  })

  it('writes csv and tables, and a file as a whole', async () => {
    const out = join(directory, 'out', 'rows.csv')
    mkdirSync(join(directory, 'out'))
    const { code, stdout } = await trialscan('scan', DTYPES, '--format', 'csv', '--out', out)
    expect([code, stdout, readdirSync(join(directory, 'out'))]).toEqual([0, '', ['rows.csv']])
    const { stdout: direct } = await trialscan('scan', DTYPES, '--format', 'csv')
    expect(readFileSync(out, 'utf8')).toBe(direct)
    expect(
      new Set(
        direct
          .trimEnd()
          .split('\n')
          .map(line => line.split(',').length),
      ),
    ).toEqual(new Set([28]))
    const table = await trialscan('scan', PLAIN, '--format', 'table')
    expect(table.stdout).toMatch(/^step {2}mode {2}.*\bmean.*\n( {3}\d .*\n){15}$/)
    expect(Math.max(...table.stdout.split('\n').map(({ length }) => length))).toBeLessThanOrEqual(80)
  })

  it('writes through a link, and keeps the mode of what was there', async () => {
    const target = join(directory, 'target.jsonl')
    const link = join(directory, 'link.jsonl')
    writeFileSync(target, 'old')
    chmodSync(target, 0o600)
    symlinkSync(target, link)
    expect((await trialscan('scan', PLAIN, '--out', link)).code).toBe(0)
    expect(objects(readFileSync(target, 'utf8'))).toHaveLength(15)
    expect(execFileSync('stat', ['-c', '%a', target], { encoding: 'utf8' })).toBe('600\n')
  })

  it.runIf(existsSync('/dev/full'))('tells when the disk is full', async () => {
    const outcome = await trialscan('scan', PLAIN, '--out', '/dev/full')
    expect(outcome).toMatchObject({ code: 3, stderr: expect.stringMatching(/cannot write \/dev\/full: no space/) })
  })

  it('does not mind when the reader leaves', async () => {
    const command = `"${process.execPath}" "${CLI}" scan "${DTYPES}" | head -n 1; exit "\${PIPESTATUS[0]}"`
    const stdout = execFileSync('bash', ['-c', command], { encoding: 'utf8' })
    expect(objects(stdout)).toHaveLength(1)
  })

  it.each(whenLong)('ends on SIGINT with whole lines, and leaves no file behind (%s)', async () => {
    const big = join(directory, 'big')
    const values = new Array<number>(2000).fill(1)
    const writer = new TrialWriter(big, { collections: { all: { includeRegex: ['.*'] } } })
    for (let step = 0; step < 200; step++) {
      const tensors = Array.from({ length: 40 }, (_, i) => ({
        name: `t${i}`,
        dtype: 'float32' as const,
        shape: [2000],
        values,
      }))
      writer.step({ step, mode: 'TRAIN', tensors })
    }
    for (const out of [[], ['--out', join(directory, 'interrupted', 'rows.jsonl')]]) {
      mkdirSync(join(directory, 'interrupted'), { recursive: true })
      const child = spawn(process.execPath, [CLI, 'scan', big, '--threads', '0', '--check-level', 'full', ...out])
      const ended = new Promise(resolve => child.on('close', resolve))
      let stdout = ''
      const started = new Promise<void>(resolve => {
        child.stdout.setEncoding('utf8').on('data', (text: string) => {
          stdout += text
          resolve()
        })
        if (out.length > 0) setTimeout(resolve, 150)
      })
      await started
      child.kill('SIGINT')
      const code = await ended
      // A fast machine may have been done before, and a slow one not have begun to listen.
      expect([130, 0, null]).toContain(code)
      expect(stdout === '' || stdout.endsWith('\n')).toBe(true)
      objects(stdout)
      if (code === 130) expect(readdirSync(join(directory, 'interrupted'))).toEqual([])
    }
  })
})

describe('corrupt trials', () => {
  const damaged = (name: string): string => corruptedCopy(name, join(directory, name.replaceAll(' ', '-')))

  it('names the record, and prints its neighbours', async () => {
    const trial = damaged('unknown dtype')
    const { code, stdout, stderr } = await trialscan('scan', trial, '--threads', '0')
    const rows = objects(stdout)
    const bad = rows.filter(({ error }) => error)
    expect([code, rows.length, bad.length]).toEqual([4, 15, 1])
    expect(Object.keys(bad[0]!)).toEqual(['tensor', 'step', 'mode', 'mode_step', 'worker', 'error'])
    expect(bad[0]).toMatchObject({ tensor: 'fc.bias', step: 1, worker: 'worker_0' })
    const { file, offset, code: errorCode } = bad[0]!.error as Record<string, unknown>
    expect(errorCode).toBe('UnknownDType')
    expect(existsSync(file as string)).toBe(true)
    expect(offset).toBeGreaterThan(0)
    expect(stderr).toMatch(/^trialscan: 1 of 15 rows could not be had; the first: /)
  })

  it('names an index file that is broken', async () => {
    const trial = damaged('index file cut')
    const { code, stdout } = await trialscan('scan', trial)
    const rows = objects(stdout)
    expect([code, rows.length]).toEqual([4, 11])
    expect(rows.find(({ error }) => error)).toMatchObject({ tensor: null, step: 1, worker: 'worker_0' })
    const listed = await trialscan('ls', trial, '--json')
    expect(listed.code).toBe(4)
    expect((JSON.parse(listed.stdout) as { problems: unknown[] }).problems).toHaveLength(1)
    expect(listed.stderr).toMatch(/^trialscan: /)
  })

  it('tells what no row can: a torn record of a trial without an index, missing collections files', async () => {
    const trial = join(directory, 'torn')
    copyTrial(PLAIN, trial)
    rmSync(join(trial, 'index'), { recursive: true })
    const path = join(trial, 'events/000000000001/000000000001_worker_0.tfevents')
    truncateSync(path, statSync(path).size - 5)
    const torn = await trialscan('scan', trial, '--reductions', 'mean')
    expect([torn.code, objects(torn.stdout).length]).toEqual([4, 14])
    expect(torn.stderr).toMatch(/000000000001_worker_0\.tfevents, offset \d+: expected a record of \d+ bytes, got/)
    const uncollected = join(directory, 'uncollected')
    copyTrial(PLAIN, uncollected)
    rmSync(join(uncollected, 'collections'), { recursive: true })
    const scanned = await trialscan('scan', uncollected, '--reductions', 'mean')
    expect([scanned.code, objects(scanned.stdout).length]).toEqual([4, 15])
    expect(scanned.stderr).toMatch(/collections: expected collections files/)
  })

  it.each(whenLong)('shows what a missing event file leaves (%s)', async () => {
    const trial = damaged('event file missing')
    expect((await trialscan('scan', trial)).code).toBe(4)
    expect((await trialscan('show', trial, 'loss', '--step', '1')).code).toBe(5)
    expect((await trialscan('show', trial, 'loss', '--step', '2')).code).toBe(0)
  })

  it('shows names that would harm a terminal only spelled out', async () => {
    const trial = join(directory, 'nasty')
    const name = 'w\n\x1b[2J\u202e'
    const writer = new TrialWriter(trial, { collections: { all: { includeRegex: ['.*'] } } })
    writer.step({ step: 0, mode: 'TRAIN', tensors: [{ name, dtype: 'float32', shape: [1], values: [1] }] })
    for (const command of isLong ? [['ls'], ['scan', '--format', 'table']] : [['ls']]) {
      const { code, stdout } = await trialscan(command[0]!, trial, ...command.slice(1))
      expect([code, stdout.includes('\x1b'), stdout.includes('\u202e')]).toEqual([0, false, false])
      expect(stdout).toContain('w\\n\\x1b[2J\\u202e')
    }
    expect(objects((await trialscan('scan', trial)).stdout)[0]).toMatchObject({ tensor: name })
    const shown = await trialscan('show', trial, name, '--step', '0')
    expect([shown.code, shown.stdout.includes('\x1b')]).toEqual([0, false])
  })
})

describe('ls', () => {
  it('lists what there is', async () => {
    const { code, stdout, stderr } = await trialscan('ls', PLAIN)
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(
      /\n {2}mode {3}steps {2}global steps {2}mode steps\n {2}TRAIN {6}3 {2}0 to 2 {8}0 to 2\n {2}all {8}3 {2}0 to 2\n/,
    )
    expect(stdout).toMatch(/fc\.weight {2}float32 {2}4x5 +3/)
  })

  it('has one JSON object with all of it', async () => {
    const { stdout } = await trialscan('ls', PLAIN, '--json')
    const listing = JSON.parse(stdout) as Record<string, unknown>
    expect(Object.keys(listing)).toEqual([
      ...[
        'name',
        'path',
        'complete',
        'bytes',
        'steps',
        'workers',
        'workers_with_data',
        'collections',
        'tensors',
        'problems',
      ],
    ])
    expect(listing).toMatchObject({
      name: 'plain',
      complete: true,
      steps: { TRAIN: { count: 3, first: 0, last: 2, incomplete: [], numbers: [0, 1, 2], global_numbers: [0, 1, 2] } },
      workers: ['worker_0'],
      problems: [],
    })
    expect(listing.collections).toContainEqual({ name: 'losses', members: ['loss'], include_regex: ['loss'] })
    expect(listing.tensors).toContainEqual({
      ...{ name: 'count', dtype: 'int64', shape: [3], last_shape: [3], steps: 3, first_step: 0, last_step: 2 },
      ...{ bytes: expect.any(Number), saved_reductions: [] },
    })
  })
})

describe('show', () => {
  it('shows an excerpt, figures and a histogram', async () => {
    const { code, stdout } = await trialscan('show', PLAIN, 'fc.weight', '--mode', 'TRAIN', '--step', '1')
    expect(code).toBe(0)
    expect(stdout).toMatch(
      /^fc\.weight at global step 1 \(TRAIN step 1\), worker_0\nfloat32 \[4, 5\], 20 elements, 80 bytes\n/,
    )
    expect(stdout).toMatch(/min .*, mean .*, max .*, std .*\nNaN 0, infinite 0, zero 0\nhistogram .*▕.*▏/)
    expect(stdout).toMatch(/\n\[\[.*\]\n.*\]\]\n$/s)
    expect((await trialscan('show', PLAIN, 'words', '--step', '0')).stdout).toMatch(/\n\["one" "two"\]\n$/)
  })

  const python = ['/usr/bin/python3', 'python3'].find(path => {
    try {
      execFileSync(path, ['-c', 'import numpy'], { stdio: 'ignore' })
      return true
    } catch {
      return false
    }
  })
  it.runIf(python !== undefined || isRequired('numpy'))('writes files that numpy reads', async () => {
    const all = ['float16/3x5', 'float32/2x3x4x5', 'bool/7', 'complex128/3x5', 'uint64/scalar', 'strings/words']
    const names = isLong ? all : [all[0]!, all[5]!]
    for (const [i, name] of names.entries()) {
      const file = join(directory, `${i}.npy`)
      const { code, stderr } = await trialscan('show', DTYPES, name, '--step', '0', '--npy', file)
      expect([code, stderr]).toEqual([0, `trialscan: wrote ${file}\n`])
    }
    const script = 'import numpy, sys\nfor file in sys.argv[1:]: print(numpy.load(file).dtype.name)'
    const files = names.map((_, i) => join(directory, `${i}.npy`))
    const dtypes = execFileSync(python!, ['-c', script, ...files], { encoding: 'utf8' })
      .trimEnd()
      .split('\n')
    expect(dtypes).toEqual(names.map(name => name.split('/')[0]!.replace('strings', 'str160')))
  })
})
