/** `trialscan summary`: what it prints, how wide, and how it follows a training. */

import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { widthOf } from '#dist/cli/terminal.js'
import { copyTrial, truncateEventFile } from '../../fixtures/corrupt.js'
import { ROOT } from '../support/golden.js'
import { LiveWriter } from '../support/live-writer.js'
import { scratchDirectory } from '../support/scratch.js'
import { writeHostile } from '../view/hostile.js'
import { trialscan } from './run.js'

const trial = (name: string) => join(ROOT, 'fixtures/trials', name)
const scratch = scratchDirectory('cli-summary')
const writers: LiveWriter[] = []
afterEach(() => {
  for (const writer of writers.splice(0)) writer.stop()
})

describe('trialscan summary', () => {
  it('is what the demo shows', () => {
    const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    expect(scripts.demo).toMatch(/main\.js summary fixtures\/trials\/mlp-vanishing$/)
  })

  it('says what was trained, what is wrong with it, and how it went', async () => {
    const { code, stdout, stderr } = await trialscan('summary', trial('mlp-vanishing'))
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(
      /^mlp-vanishing: 22 tensors, the training has ended\n {2}steps +15 \(TRAIN 9, EVAL 6\), 0 to 106\n/,
    )
    expect(stdout).toContain('VanishingGradient from step 0 (TRAIN 0):')
    expect(stdout).toMatch(/CrossEntropyLoss_output_0 {2}TRAIN {2}2\.317 {2}→ {2}2\.298 {2}[▁-█]{9}\n/)
    expect(stdout).toMatch(/gradient\/DeepSigmoid_inp\.weight {2}.*[▁-█]{9}\n/)
    expect(stdout).toMatch(/\n206 tensor values, 432\.6 KB, looked through in \d+ ms\n$/)
  })

  it('marks what is not finite, and names it', async () => {
    const { stdout } = await trialscan('summary', trial('dtypes'))
    expect(stdout).toMatch(/NaN and infinities\n {2}first in edge\/.* at step 0 of worker_0: .* among its elements/)
  })

  it.each(['mlp-vanishing', 'xgb-cancer', 'workers-4', 'cnn-raw-and-reductions'])(
    'of %s fits the width that it is given, and 80 columns',
    async name => {
      for (const [given, width] of [
        ['200', 200],
        ['100', 100],
        ['20', 80],
      ] as const) {
        const before = process.env.COLUMNS
        process.env.COLUMNS = given
        const { stdout } = await trialscan('summary', trial(name), '--all')
        if (before === undefined) delete process.env.COLUMNS
        else process.env.COLUMNS = before
        for (const line of stdout.split('\n')) expect(widthOf(line), line).toBeLessThanOrEqual(width)
      }
    },
  )

  it('shows some layers of many, and all with --all', async () => {
    const lines = async (...args: string[]) =>
      (await trialscan('summary', trial('xgb-cancer'), ...args)).stdout.split('\n').filter(line => /→/.test(line))
        .length
    expect(await lines('--all')).toBeGreaterThanOrEqual(await lines())
  })

  it('is JSON for programs, a line a trial, with NaN as text', async () => {
    const { stdout } = await trialscan('summary', trial('workers-4'), trial('dtypes'), '--format', 'json')
    const [workers, dtypes] = stdout
      .trim()
      .split('\n')
      .map(line => JSON.parse(line))
    expect([workers.name, workers.workers.length, dtypes.name]).toEqual(['workers-4', 4, 'dtypes'])
    expect(dtypes.notFinite.length).toBeGreaterThan(0)
  })

  it('tells what it could not read, with exit code 4', async () => {
    const path = join(scratch, 'broken')
    copyTrial(trial('mlp-vanishing'), path)
    truncateEventFile(path, 0, 10_000)
    const { code, stdout } = await trialscan('summary', path)
    expect(code).toBe(4)
    expect(stdout).toContain('Could not be read')
  })

  it('spells out the marks of a hostile trial', async () => {
    const path = join(scratch, 'hostile')
    writeHostile(path)
    const { stdout } = await trialscan('summary', path, '--all')
    expect(stdout.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}]/u)
  })

  it.each([
    [['summary'], 2, "missing required argument 'TRIALS'"],
    [['summary', '/no/such/trial'], 3, '/no/such/trial'],
    [['summary', trial('dtypes'), '--tensor', 'nosuch'], 5, 'nosuch'],
    [['summary', trial('dtypes'), trial('workers-4'), '--follow'], 2, 'expected one trial to --follow, got 2'],
  ])('%j is told in a line', async (args, code, message) => {
    const outcome = await trialscan(...args)
    expect([outcome.code, outcome.stderr]).toEqual([code, expect.stringContaining(message)])
  })

  it('follows a training until it ends, and shows it again after each step', async () => {
    const directory = join(scratch, 'live')
    const writer = await LiveWriter.start(directory, 1)
    writers.push(writer)
    await writer.step(0, 0)
    const child = spawn(process.execPath, [join(ROOT, 'dist/bundle/main.js'), 'summary', directory, '--follow'])
    let text = ''
    child.stdout.on('data', some => (text += some))
    const ended = new Promise<number | null>(resolve => child.on('close', resolve))
    const shown = () => [...text.matchAll(/^ {2}steps +(\d+)/gm)].map(([, steps]) => Number(steps))
    await expect.poll(shown, { timeout: 10_000 }).toEqual([1])
    await writer.step(1, 0)
    await expect.poll(() => shown().at(-1), { timeout: 10_000 }).toBe(2)
    await writer.step(2, 0)
    await writer.end()
    expect(await ended).toBe(0)
    expect(shown().at(-1)).toBe(3)
    expect(text).toContain('the training has ended')
  })
})
