/** Steps on the command line: which are global and which of a mode, from the end, in lists. */

import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { corruptedCopy } from '../support/corrupted.js'
import { isRequired, sharedTrials } from '../support/golden.js'
import { part } from '../support/part.js'
import { scratchDirectory } from '../support/scratch.js'
import { objects, PLAIN, trialscan } from './run.js'

const scratch = scratchDirectory('steps')

const steps = async (...args: string[]): Promise<number[]> =>
  objects((await trialscan('scan', PLAIN, '--tensor', 'loss', '--reductions', 'mean', ...args)).stdout).map(
    ({ step }) => step as number,
  )

const RANGES: [string[], number[]][] = [
  [
    ['--steps', '-2:'],
    [1, 2],
  ],
  [['--steps=-2:'], [1, 2]],
  [['--steps', '-1'], [2]],
  [['--steps=-1'], [2]],
  [['--steps', 'last'], [2]],
  [
    ['--steps', ':-1'],
    [0, 1],
  ],
  [
    ['--steps', '0:3:2'],
    [0, 2],
  ],
  [
    ['--steps', '::2'],
    [0, 2],
  ],
  [
    ['--steps', '0,2'],
    [0, 2],
  ],
  [
    ['--steps', '0, 1:2,last'],
    [0, 1, 2],
  ],
  [['--mode-steps', '-1'], [2]],
  [
    ['--mode-steps', '0:2', '--mode', 'TRAIN'],
    [0, 1],
  ],
]
it.each(part(RANGES, (_, i) => i % 5 === 0))('%j', async (args, expected) => {
  expect(await steps(...args)).toEqual(expected)
})

const REFUSED = ['1-5', '5:3', '-1:-3', '1:2:0', '1:2:3:4', ',', '1,', 'first', '1.5', '--', '-', '9007199254740993']
it.each(part(REFUSED, text => text === '-1:-3'))('--steps %s is refused', async text => {
  for (const [command, option] of [
    ['scan', '--steps'],
    ['scan', '--mode-steps'],
    ['check', '--steps'],
    ['check', '--mode-steps'],
  ] as const) {
    const { code, stderr } = await trialscan(command, PLAIN, option, text)
    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(/^trialscan: option '--(mode-)?steps <STEPS>' argument '.*' is invalid/),
    ])
  }
})

it('an index file that is cut costs its own steps, and nothing of the rest', async () => {
  const cut = corruptedCopy('index file cut', join(scratch, 'cut'))
  const listed = await trialscan('ls', cut, '--json')
  expect(listed.code).toBe(4)
  expect(JSON.parse(listed.stdout).steps.TRAIN.count).toBeGreaterThan(0)
  const scanned = await trialscan('scan', cut, '--mode', 'TRAIN', '--steps', '0:3')
  expect(scanned.code).toBe(4)
  expect(objects(scanned.stdout).filter(({ error }) => error === undefined).length).toBeGreaterThan(0)
})

it('says which of the steps that are named there are none of', async () => {
  const { code, stdout, stderr } = await trialscan('scan', PLAIN, '--tensor', 'loss', '--steps', '1,7,8')
  expect([code, objects(stdout).length]).toEqual([0, 1])
  expect(stderr).toBe('trialscan: the trial has no global step 7, 8; nearest to 7: 2\n')
})

const shared = sharedTrials().find(({ name }) => name === 'cnn-good')
describe.runIf(shared !== undefined || isRequired('shared'))('with modes', () => {
  const good = shared!.directory
  const scan = () => ['scan', good, '--tensor', 'CrossEntropyLoss_output_0', '--reductions', 'mean']

  it('ls labels both numbers', async () => {
    expect((await trialscan('ls', good)).stdout).toContain(
      '  mode   steps  global steps  mode steps\n' +
        '  TRAIN      9  0 to 92       0 to 80\n' +
        '  EVAL       6  43 to 106     0 to 20\n' +
        '  all       15  0 to 106\n',
    )
  })

  it('a scan says what the numbering leaves out, and what to write', async () => {
    const { code, stdout, stderr } = await trialscan(...scan(), '--mode', 'TRAIN', '--steps', '0:81')
    expect([code, objects(stdout).length]).toEqual([0, 7])
    expect(stderr).toBe(
      'trialscan: --steps 0:81 are global steps, which leaves out 2 steps of TRAIN: mode steps 70, 80 are global steps 82, 92; ' +
        'for steps of TRAIN write --mode-steps 0:81\n',
    )
    const own = await trialscan(...scan(), '--mode', 'TRAIN', '--mode-steps', '0:81')
    expect([objects(own.stdout).length, own.stderr]).toEqual([9, ''])
    expect((await trialscan(...scan(), '--mode', 'TRAIN', '--steps', '-3:')).stderr).toBe('')
    const none = await trialscan(...scan(), '--mode', 'EVAL', '--steps', '0:21')
    expect([none.code, none.stderr]).toEqual([5, expect.stringContaining('write --mode-steps 0:21')])
  })

  const judged: [string[], number[]][] = [
    [
      ['--steps', '20:41'],
      [20, 30, 40],
    ],
    [
      ['--steps', '0:45:20'],
      [0, 20, 40],
    ],
    [
      ['--steps', '10,30:41'],
      [10, 30, 40],
    ],
    [['--steps', 'last'], [106]],
    [
      ['--mode-steps', 'last'],
      [92, 106],
    ],
    [
      ['--mode-steps', '-2:', '--steps', ':100'],
      [82, 92],
    ],
  ]
  it.each(part(judged, (_, i) => i % 5 === 0))('check judges the steps that %j means', async (args, expected) => {
    const every = ['--rule', 'ExplodingTensor,tensor_regex=.*', '--rule', 'AllZero,tensor_regex=.*,threshold=0']
    const { code, stdout } = await trialscan('check', good, ...every, '--format', 'jsonl', ...args)
    const steps = objects(stdout).flatMap(({ step }) => step ?? [])
    expect([code, [...new Set(steps)]]).toEqual([1, expected])
  })

  it('check says which steps there are none of', async () => {
    const rule = ['check', good, '--rule', 'ExplodingTensor']
    const some = await trialscan(...rule, '--steps', '10,11', '--mode-steps', '10,13')
    expect([some.code, some.stderr]).toEqual([
      0,
      'trialscan: the trial has no global step 11; nearest to 11: 10 and 20\ntrialscan: the trial has no mode step 13; nearest to 13: 12 and 16\n' +
        'trialscan: verdict: passed; 1 rule judged 1 step and found nothing wrong; only --steps 10,11 --mode-steps 10,13; the job has ended\n',
    ])
    const none = await trialscan(...rule, '--mode-steps', '500:')
    expect([none.code, none.stderr]).toEqual([
      5,
      'trialscan: no step is in --mode-steps 500:; the trial has global steps 0 to 106 (15 of them); ' +
        'mode EVAL with mode steps 0 to 20 (6 of them); mode TRAIN with mode steps 0 to 80 (9 of them)\n' +
        'trialscan: verdict: unjudged; nothing was judged; only --mode-steps 500:; the job has ended\n',
    ])
  })

  it('check --format csv tells on standard error what has no row', async () => {
    const missing = ['--rule', 'AllZero,tensor_regex=nowhere', '--rule', 'ExplodingTensor', '--format', 'csv']
    const { code, stdout, stderr } = await trialscan('check', good, ...missing)
    expect([code, stdout.split('\n').length]).toEqual([5, 2])
    expect(stderr).toContain(
      'trialscan: csv has no rows for missing data: AllZero lacked some; --format jsonl says which\n',
    )
    expect((await trialscan('check', good, ...missing.slice(2))).stderr).not.toContain('csv')
    expect((await trialscan('check', good, ...missing.slice(0, 4), '--format', 'jsonl')).stderr).not.toContain('csv')
  })

  it('show takes the last step that has the tensor', async () => {
    const head = async (...args: string[]) => {
      const { stdout, stderr } = await trialscan('show', good, ...args)
      return stdout.split('\n', 1)[0] || stderr.split('\n', 1)[0]
    }
    expect(await head('CNN_fc1.bias')).toBe('CNN_fc1.bias at global step 106 (EVAL step 20), worker_0')
    expect(await head('gradient/CNN_fc1.bias')).toBe(
      'gradient/CNN_fc1.bias at global step 92 (TRAIN step 80), worker_0',
    )
    expect(await head('gradient/CNN_fc1.bias', '--step', '-2')).toContain('at global step 82 (TRAIN step 70)')
    expect(await head('CNN_fc1.bias', '--mode', 'TRAIN')).toContain('at global step 92 (TRAIN step 80)')
    expect(await head('CNN_fc1.bias', '--mode', 'TRAIN', '--mode-step', '70')).toContain(
      'at global step 82 (TRAIN step 70)',
    )
    expect(await head('CNN_fc1.bias', '--step=last')).toContain('at global step 106')
    expect(await head('CNN_fc1.bias', '--step', '-99')).toMatch(
      /was saved at 15 steps, so -99, counted from the end, is none of them; the first is -15/,
    )
    expect(await head('CNN_fc1.bias', '--mode-step', '3')).toMatch(/expected --mode beside --mode-step.*EVAL, TRAIN/)
    expect(await head('CNN_fc1.bias', '--mode', 'EVAL', '--step', '20')).toMatch(
      /global step 20 is one of TRAIN, not of EVAL; EVAL step 20 is global step 106: write --mode-step 20/,
    )
  })
})
