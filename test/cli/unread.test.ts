/** Trials of which not everything can be read: the first line says what was read of what, and a file has one line. */

import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { FormatError, problemLines, StoreError } from '#dist/index.js'
import { copyTrial, truncateEventFile } from '../../fixtures/corrupt.js'
import { fixtureTrial } from '../support/golden.js'
import { scratchDirectory } from '../support/scratch.js'
import { objects, trialscan } from './run.js'

const scratch = scratchDirectory('unread')
const NONE = join(scratch, 'none')
const CUT = join(scratch, 'cut')

beforeAll(() => {
  const { directory } = fixtureTrial('mlp-vanishing')
  copyTrial(directory, NONE)
  // A directory in the place of a file can't be read by root either.
  for (const step of readdirSync(join(NONE, 'events'))) {
    for (const file of readdirSync(join(NONE, 'events', step))) {
      rmSync(join(NONE, 'events', step, file))
      mkdirSync(join(NONE, 'events', step, file))
    }
  }
  copyTrial(directory, CUT)
  truncateEventFile(CUT, 0, 30_000)
})

const firstLine = (text: string) => text.split('\n', 1)[0]

describe('nothing could be read', () => {
  it.each([
    ['nan', 'none: nothing was looked at: none of 206 tensor values could be read'],
    ['check', 'none: none of 206 tensor values could be read; nothing was judged; the job has ended'],
    ['summary', 'none: 22 tensors, the training has ended; none of 206 tensor values could be\n  read'],
  ])('%s says so first', async (command, head) => {
    const { code, stdout } = await trialscan(command, NONE, '--format', 'table')
    expect([code, stdout.slice(0, head.length + 1)]).toEqual([4, `${head}\n`])
    expect(stdout).not.toMatch(/no NaN|[Nn]othing (was )?found|found nothing/)
  })

  it('no rule counts as one that judged', async () => {
    const { stdout } = await trialscan('check', NONE, '--format', 'jsonl', '--explain')
    const judging = objects(stdout).filter(({ judges }) => judges === true)
    expect(judging.map(({ rule }) => rule)).toEqual(['StalledTrainingRule'])
  })

  it('a rule says that it is the bytes that are missing', async () => {
    const { stdout } = await trialscan('check', NONE, '--rule', 'VanishingGradient', '--format', 'table')
    expect(stdout).toContain('VanishingGradient: tensors that can be read: of those that it judges none could be')
  })

  it('check of several trials', async () => {
    const { directory } = fixtureTrial('cnn-raw-and-reductions')
    const { code, stdout } = await trialscan('check', NONE, directory, '--format', 'table')
    expect(code).toBe(4)
    expect(stdout).toContain('none of 206 tensor values could be read')
    expect(stdout).toContain('no rule fired in what could be read of 2 trials; not everything could be read of 1')
  })
})

describe('a file that is cut', () => {
  const READ = '200 of 206 tensor values'
  const LINE = /offset 29440, .* \(and 5 more problems in this file\)/

  it.each(['nan', 'summary'])('%s says what was read of what, and has a line for the file', async command => {
    const { code, stdout, stderr } = await trialscan(command, CUT, '--format', 'table')
    expect(code).toBe(4)
    expect(firstLine(stdout)).toContain(READ)
    expect(stderr).toMatch(LINE)
    expect(stderr.trim().split('\n')).toHaveLength(1)
  })

  it('check says it with what it found, and has a line for the file', async () => {
    const { code, stdout } = await trialscan('check', CUT, '--format', 'table')
    expect(code).toBe(4)
    expect(stdout).toContain(`15 steps judged; ${READ} could be read; the job has ended`)
    expect(stdout.match(/expected a\s+record/g)).toHaveLength(1)
  })

  it('check, in lines for programs, says it on standard error, and has a line for each record', async () => {
    const { stdout, stderr } = await trialscan('check', CUT, '--format', 'jsonl')
    expect(stderr).toMatch(/^trialscan: 200 of 206 tensor values could be read, so the findings are incomplete/)
    expect(stderr).toMatch(LINE)
    expect(objects(stdout).filter(({ problem }) => problem)).toHaveLength(6)
  })

  it('nan counts for programs, too', async () => {
    const { stdout } = await trialscan('nan', CUT, '--format', 'jsonl')
    expect(objects(stdout)[0]).toMatchObject({ origin: null, records: 200, unread: 6, left_out: 0 })
  })

  it('summary counts for programs, too', async () => {
    const { stdout } = await trialscan('summary', CUT, '--format', 'json')
    expect(objects(stdout)[0]).toMatchObject({ values: 200, unread: 6, problems: [expect.stringMatching(LINE)] })
  })
})

it('an index file that is damaged leaves open how much there is', async () => {
  const path = join(scratch, 'index')
  copyTrial(fixtureTrial('mlp-vanishing').directory, path)
  const directory = join(path, 'index', readdirSync(join(path, 'index'))[0]!)
  const file = join(directory, readdirSync(directory)[0]!)
  writeFileSync(file, readFileSync(file).subarray(0, 100))
  const nan = await trialscan('nan', path, '--format', 'table')
  expect([nan.code, firstLine(nan.stdout)]).toEqual([
    4,
    'index: no NaN and no infinity in 184 tensor values; not everything could be read',
  ])
  const summary = await trialscan('summary', path, '--format', 'table')
  expect(firstLine(summary.stdout)).toMatch(/; not everything could be read$/)
})

describe("XGBoost's trees", () => {
  const trial = fixtureTrial('xgb-cancer').directory

  it('are left out by nan, which says so', async () => {
    const { code, stdout } = await trialscan('nan', trial, '--format', 'table')
    expect(code).toBe(0)
    expect(stdout).toMatch(
      /^3 values of trees have NaN for what a leaf lacks\. Left out; --tensor '\^trees\/' looks at/m,
    )
  })

  it('are looked at where they are asked for', async () => {
    const { code, stdout } = await trialscan('nan', trial, '--tensor', '^trees/', '--format', 'table')
    expect(code).toBe(1)
    expect(firstLine(stdout)).toBe('xgb-cancer: NaN first in trees/Split, at step 0 of worker_0')
    expect(stdout).not.toContain('Left out')
  })
})

it('problems of a file are one line: the first in it', () => {
  const at = (offset: number) => new FormatError('Bad', `f, offset ${offset}: bad`, { url: 'file:///f', offset })
  const gone = new StoreError('NotFound', 'g: gone', { url: 'file:///g' })
  const other = new Error('other')
  const errors = [at(7), gone, at(3), at(3), at(9), at(7), gone, other]
  expect(problemLines(errors)).toEqual(['f, offset 3: bad (and 2 more problems in this file)', 'g: gone', 'other'])
  expect(problemLines([at(1), at(2)])).toEqual(['f, offset 1: bad (and 1 more problem in this file)'])
  expect(problemLines([])).toEqual([])
})
