/** `trialscan rule-invoker`: the options of Tornasole's command. */

import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ROOT } from '../support/golden.js'
import { part } from '../support/part.js'
import { objects, trialscan } from './run.js'

const fixture = (name: string): string => join(ROOT, 'fixtures/trials', name)
const VANISHING = fixture('mlp-vanishing')
const invoke = (...args: readonly string[]) => trialscan('rule-invoker', ...args)
const on = (trial: string, rule: string) => ['--trial-dir', trial, '--rule-name', rule]
const STEPS = [0, 10, 20, 30, 40, 62, 72, 82, 92]

describe('rule-invoker', () => {
  it('says in two lines at which steps the rule fired, and exits with 1', async () => {
    const { code, stdout, stderr } = await invoke(...on(VANISHING, 'VanishingGradient'), '--threshold', '0.001')
    expect([code, stderr]).toEqual([1, ''])
    expect(stdout).toMatch(
      /^VanishingGradient fired on mlp-vanishing \(9 steps judged\) at steps 0, 10, 20, 30, 40, 62, 72, 82, 92\nworst at step \d+ \(TRAIN \d+\): .* of gradient\/.* is .*e-\d+, below 0.001\n$/,
    )
  })

  it('exits with 0 if it did not', async () => {
    const { code, stdout } = await invoke(...on(VANISHING, 'vanishinggradient'), '--threshold=1e-30')
    expect([code, stdout]).toEqual([0, 'VanishingGradient did not fire on mlp-vanishing (9 steps judged)\n'])
  })

  const spellings: string[][][] = [
    [['--threshold', '0.001', '--rule_name', 'VANISHINGGRADIENT', '--trial_dir', VANISHING, '--json']],
    [['--json', `--trial_dir=${VANISHING}`, '--threshold=0.001', '--rule-name=VanishingGradient']],
    [[...on(VANISHING, 'vanishinggradient'), '--threshold', '7', '--format', 'jsonl', '--threshold', '0.001']],
  ]
  it.each(part(spellings, (_, i) => i === 1))('takes options in any order and spelling: %j', async args => {
    const { code, stdout } = await invoke(...args)
    expect(code).toBe(1)
    expect([...new Set(objects(stdout).map(({ step }) => step))]).toEqual(STEPS)
  })

  it('takes parameters with dashes, with commas, and with dashes for values', async () => {
    const zero = on(fixture('mlp-all-zero'), 'AllZero')
    const dashed = await invoke(...zero, '--collection-names', 'gradients,weights', '--threshold', '100', '--json')
    const underscored = await invoke(...zero, '--collection_names=gradients,weights', '--json')
    expect(dashed).toEqual(underscored)
    expect(dashed.code).toBe(1)
    const { stderr } = await invoke(...on(VANISHING, 'VanishingGradient'), '--threshold', '-x')
    expect(stderr).toMatch(/threshold to be a number.*"-x"/)
  })

  it('has help with examples and exit codes', async () => {
    const { code, stdout } = await invoke('--help')
    expect(code).toBe(0)
    expect(stdout).toMatch(/Examples:\n( {2}\$ trialscan rule-invoker .*(\n {6}.*)*\n){3}/)
    expect(stdout).toMatch(/trialscan help exit-codes\.\n$/)
  })

  it('looks at a range of steps', async () => {
    const range = ['--start_step', '20', '--end-step', '41']
    const { stdout } = await invoke(...on(VANISHING, 'vanishinggradient'), '--threshold', '0.001', ...range)
    expect(stdout).toMatch(/\(3 steps judged\) at steps 20, 30, 40\n/)
  })

  it('ends at the first hit if it is told to', async () => {
    const { code, stdout, stderr } = await invoke(
      ...['--raise_rule_eval_cond_exception', ...on(VANISHING, 'vanishinggradient'), '--threshold', '0.001'],
    )
    expect([code, stderr]).toEqual([1, 'trialscan: the condition of rule VanishingGradient is met at step 0\n'])
    expect(stdout).toMatch(/^VanishingGradient fired on mlp-vanishing at step 0\nworst at step 0 /)
  })

  it('compares with other trials', async () => {
    const { code } = await invoke(...on(VANISHING, 'similaracrossruns'), '--other-trials', VANISHING)
    expect(code).toBe(0)
  })

  it('gives up on a job that does not go on', async () => {
    const { code, stderr } = await invoke(...on(fixture('workers-running'), 'explodingtensor'), '--timeout', '0.2')
    expect([code, stderr]).toEqual([0, expect.stringMatching(/no new step came for \d+ s.*the last is 5/)])
  })

  const wrong: [string, RegExp, readonly string[]][] = [
    ['no trial', /--trial-dir/, ['--rule-name', 'AllZero']],
    ['no rule', /--rule-name/, ['--trial-dir', VANISHING]],
    ['unknown rule', /VanishingGradient/, on(VANISHING, 'vanishing_gradiend')],
    [
      'unknown option',
      /"treshold"; did you mean threshold/,
      [...on(VANISHING, 'VanishingGradient'), '--treshold', '1'],
    ],
    ['missing argument', /AllZero.*collection_names/, on(VANISHING, 'AllZero')],
    ['missing value', /a value after --threshold/, [...on(VANISHING, 'VanishingGradient'), '--threshold']],
    ['missing value in the middle', /a value after --a/, [...on(VANISHING, 'VanishingGradient'), '--a', '--b', '1']],
    ['word without an option', /got stray/, [...on(VANISHING, 'VanishingGradient'), 'stray']],
    ['Python bool', /got True/, [...on(VANISHING, 'VanishingGradient'), '--raise-rule-eval-cond-exception', 'True']],
    ['end before start', /--end-step/, [...on(VANISHING, 'AllZero'), '--start-step', '5', '--end-step', '5']],
    ['no number', /'x' is invalid/, [...on(VANISHING, 'AllZero'), '--start-step', 'x']],
  ]
  it.each(part(wrong, (_, i) => i % 5 === 0))('%s is a wrong command line', async (_, message, args) => {
    const outcome = await invoke(...args)
    expect(outcome.stderr).toMatch(message)
    expect(outcome.stderr).toMatch(/^trialscan: /)
    expect(outcome.stderr).not.toMatch(/^ {4}at /m)
    expect(outcome).toMatchObject({ code: 2, stdout: '' })
  })
})
