/** What of a selection matches nothing is told, with the nearest that there is: in the library and on the command line. */

import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import {
  closePools,
  createTrial,
  diff,
  diffWorkers,
  ExplodingTensor,
  evaluate,
  QueryError,
  type ScanOptions,
  traceNonFinite,
} from '#dist/index.js'
import { trialscan } from './cli/run.js'
import { ROOT } from './support/golden.js'

const path = join(ROOT, 'fixtures/trials/mlp-vanishing')
afterAll(() => closePools())

const LOSS = 'CrossEntropyLoss_output_0'
const CASES: readonly (readonly [ScanOptions, readonly string[]])[] = [
  [{ tensors: 'nosuch' }, ['no tensor of trial "mlp-vanishing" matches "nosuch"']],
  [{ tensors: '^los$' }, [`no tensor of trial "mlp-vanishing" matches "^los$"; did you mean "${LOSS}"?`]],
  [
    { tensors: [LOSS, /crossentropy/] },
    [`no tensor of trial "mlp-vanishing" matches /crossentropy/; did you mean "${LOSS}"?`],
  ],
  [{ tensors: [LOSS, 'bais'] }, ['no tensor of trial "mlp-vanishing" matches "bais"']],
  [{ collection: ['losses', 'weights'] }, ['collection "weights" of trial "mlp-vanishing" has no tensors']],
  [{ steps: [0, 3] }, ['the trial has no global step 3; nearest to 3: 0 and 10']],
  [{ steps: '107' }, ['the trial has no global step 107; nearest to 107: 106']],
  [{ mode: 'EVAL', modeSteps: [12, 1, 2] }, ['the trial has no step of EVAL 1, 2; nearest to 1: 0 and 4']],
  [
    { tensors: 'gradient', mode: 'EVAL' },
    [
      'the selected tensors were not saved at the selected steps, modes and workers, but at global step 0 (TRAIN step 0) of worker_0 and others',
    ],
  ],
  [{ tensors: 'gradient', collection: 'losses' }, ['no tensor of trial "mlp-vanishing" is in all that is selected']],
  [{ steps: { from: 100 } }, []],
  [{ tensors: LOSS }, []],
]
it.each(CASES)('scan.problems: %j', async (options, expected) => {
  const trial = await createTrial(path)
  const { problems } = trial.scan({ ...options, threads: 0 })
  expect(problems.map(({ message }) => message)).toEqual(expected)
  for (const problem of problems)
    expect([problem instanceof QueryError, problem.code]).toEqual([true, 'NothingSelected'])
})

it('diff, traceNonFinite and evaluate have it in unmatched', async () => {
  const trial = await createTrial(path)
  const expected = ['no tensor of trial "mlp-vanishing" matches "^los$"; did you mean "CrossEntropyLoss_output_0"?']
  const asked = { tensors: ['^los$', LOSS], threads: 0 }
  const compared = await diff(trial, trial, asked)
  expect([compared.unmatched, compared.problems, compared.compared > 0]).toEqual([expected, [], true])
  expect((await diffWorkers(trial, asked)).unmatched).toEqual(expected)
  const trace = await traceNonFinite(trial, asked)
  expect([trace.unmatched, trace.problems, trace.records > 0]).toEqual([expected, [], true])
  const evaluation = await evaluate(new ExplodingTensor(trial), { steps: [0, 3], threads: 0 })
  expect(evaluation.unmatched).toEqual(['the trial has no global step 3; nearest to 3: 0 and 10'])
  expect((await evaluate(new ExplodingTensor(trial), { threads: 0 })).unmatched).toEqual([])
})

it('the command line notes it, and ends with 5 only where nothing is there at all', async () => {
  const some = await trialscan('scan', path, '--tensor', 'nosuch', '--tensor', LOSS)
  expect([some.code, some.stderr]).toEqual([0, 'trialscan: no tensor of trial "mlp-vanishing" matches "nosuch"\n'])
  const none = await trialscan('top', path, '--by', 'mean', '--tensor', 'nosuch')
  expect([none.code, none.stderr]).toEqual([
    5,
    expect.stringMatching(
      /^trialscan: nothing is there: no tensor of trial .* matches "nosuch"; the trial has 22 tensors; /,
    ),
  ])
  const step = await trialscan('show', path, LOSS, '--step', '3')
  expect([step.code, step.stderr]).toEqual([
    5,
    expect.stringContaining('from 0 to 106, and the job has ended; nearest: 0 and 10'),
  ])
  const position = await trialscan('show', path, LOSS, '--step', '-100')
  expect([position.code, position.stderr]).toEqual([
    5,
    expect.stringContaining('was saved at 15 steps, so -100, counted from the end, is none of them; the first is -15'),
  ])
})
