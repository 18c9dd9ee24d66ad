/** `trialscan report`: the file that it writes, and what it tells. */

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { copyTrial, truncateEventFile } from '../../fixtures/corrupt.js'
import { ROOT } from '../support/golden.js'
import { scratchDirectory } from '../support/scratch.js'
import { dataOf } from '../view/data.js'
import { trialscan } from './run.js'

const TRIALS = join(ROOT, 'fixtures/trials')
const VANISHING = join(TRIALS, 'mlp-vanishing')
const scratch = scratchDirectory('cli-report')

describe('trialscan report', () => {
  it('writes one file, and says what is in it', async () => {
    const out = join(scratch, 'one.html')
    const { code, stdout, stderr } = await trialscan('report', VANISHING, '--out', out)
    expect([code, stdout]).toEqual([0, ''])
    expect(stderr).toMatch(/^trialscan: 206 tensor values, \d+(\.\d)? KB, in .*one\.html\n$/)
    expect(dataOf(readFileSync(out, 'utf8')).trials[0]!.name).toBe('mlp-vanishing')
  })

  it('compares two, of what is selected, under a title', async () => {
    const args = ['--collection', 'gradients', '--steps', '0:50', '--title', 'Why?', '--out', '-']
    const { code, stdout } = await trialscan('report', VANISHING, join(TRIALS, 'mlp-all-zero'), ...args)
    const { title, trials } = dataOf(stdout)
    expect([code, title, trials.map(({ name }) => name)]).toEqual([0, 'Why?', ['mlp-vanishing', 'mlp-all-zero']])
    for (const { tensors, steps } of trials) {
      expect(new Set(tensors.map(({ kind }) => kind))).toEqual(new Set(['gradients']))
      expect(steps.every(step => step < 50)).toBe(true)
    }
  })

  it('tells what it could not read, in the page and beside it, with exit code 4', async () => {
    const trial = join(scratch, 'broken')
    copyTrial(VANISHING, trial)
    truncateEventFile(trial, 0, 10_000)
    const { code, stdout, stderr } = await trialscan('report', trial, '--out', '-')
    expect(code).toBe(4)
    const [shown] = dataOf(stdout).trials
    expect(shown!.problems.length).toBeGreaterThan(0)
    for (const problem of shown!.problems) expect(stderr).toContain(problem)
    expect(shown!.series.length).toBeGreaterThan(0)
  })

  it.each([
    [['report'], 2, "missing required argument 'TRIALS'"],
    [['report', VANISHING, VANISHING, VANISHING], 2, 'expected one trial or two that are compared, got 3'],
    [['report', '/no/such/trial'], 3, '/no/such/trial'],
    [['report', VANISHING, '--tensor', 'no such'], 5, 'no such'],
    [['report', VANISHING, '--s3-anonymous'], 2, '--s3-anonymous'],
  ])('%j is told in a line', async (args, code, message) => {
    const out = join(scratch, 'none.html')
    const outcome = await trialscan(...args, '--out', out)
    expect([outcome.code, outcome.stderr]).toEqual([code, expect.stringContaining(message)])
    expect(existsSync(out)).toBe(false)
  })
})
