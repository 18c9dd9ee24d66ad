/** Which steps are meant: ranges, lists, from the end, of a mode. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTrial, type ScanOptions, type StepSelection, selectSteps, type Trial } from '#dist/index.js'
import { TrialWriter } from '../fixtures/event-writer.js'
import { rowsOf } from './support/scanning.js'

const TENS = [0, 10, 20, 30, 40, 50]

it.each<[StepSelection, number[]]>([
  [{ from: 10, to: 30 }, [10, 20]],
  [{ to: 11 }, [0, 10]],
  [{ from: 35 }, [40, 50]],
  [{ from: -2 }, [40, 50]],
  [{ to: -4 }, [0, 10]],
  [{ from: 10, to: -1 }, [10, 20, 30, 40]],
  [{ from: -3, to: 50 }, [30, 40]],
  [{ from: -100 }, TENS],
  [{ to: -100 }, []],
  [[1, 2], []],
  [
    [10, 30],
    [10, 30],
  ],
  [[-1], [50]],
  [
    [-1, 0, -6, -7],
    [0, 50],
  ],
  [[{ from: 0, to: 50, stride: 20 }], [0, 20, 40]],
  [[{ stride: 30 }], [0, 30]],
  [[{ from: 10, stride: 20 }], [10, 30, 50]],
  [
    [{ from: -2, stride: 10 }, 0],
    [0, 40, 50],
  ],
  [
    [0, 10, { from: 20, to: 30 }],
    [0, 10, 20],
  ],
  [
    [50, 0],
    [0, 50],
  ],
  [20, [20]],
  [-1, [50]],
  ['10:40:20,last', [10, 30, 50]],
])('%j of 0, 10, … 50', (selection, expected) => {
  expect(selectSteps(TENS, selection)).toEqual(expected)
})

it('of no steps is none', () => {
  for (const selection of [{ from: -1 }, [-1], -1, 'last', [{ to: -1 }]] as StepSelection[]) {
    expect(selectSteps([], selection)).toEqual([])
  }
})

let scratch: string
let trial: Trial
beforeAll(async () => {
  scratch = mkdtempSync(join(tmpdir(), 'trialscan-steps-'))
  // Global steps 0 to 9: two of TRAIN, then one of EVAL, and so on. At 9 worker_1 is still in TRAIN.
  const writer = new TrialWriter(join(scratch, 'trial'), {
    numWorkers: 2,
    collections: { all: { includeRegex: ['.*'] } },
  })
  const counts = [
    { TRAIN: 0, EVAL: 0 },
    { TRAIN: 0, EVAL: 0 },
  ]
  const tensor = (name: string) => ({ name, dtype: 'float32', shape: [1], values: [1] }) as const
  for (let step = 0; step < 10; step++) {
    for (const worker of [0, 1]) {
      const mode = step % 3 === 2 || (step === 9 && worker === 0) ? 'EVAL' : 'TRAIN'
      const tensors = mode === 'TRAIN' ? [tensor('loss'), tensor('gradient')] : [tensor('loss')]
      writer.step({ step, worker, mode, modeStep: counts[worker]![mode]++, tensors })
    }
  }
  writer.end()
  trial = await createTrial(join(scratch, 'trial'))
})
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

const found = async (options: ScanOptions): Promise<string> => {
  const rows = await rowsOf(trial, { tensors: 'loss', ...options })
  return rows.map(({ step, mode, modeStep, worker }) => `${step}=${mode[0]}${modeStep}@${worker.at(-1)}`).join(' ')
}

describe('a scan', () => {
  it('takes a list where a range is another', async () => {
    expect(await found({ steps: { from: 1, to: 3 }, workers: 'worker_0' })).toBe('1=T1@0 2=E0@0')
    expect(await found({ steps: [1, 3], workers: 'worker_0' })).toBe('1=T1@0 3=T2@0')
  })

  it('counts from the end of what else is asked for', async () => {
    expect(await found({ steps: [-1] })).toBe('9=E3@0 9=T6@1')
    expect(await found({ steps: [-1], mode: 'TRAIN', workers: 'worker_0' })).toBe('7=T5@0')
    expect(await found({ steps: { from: -2 }, mode: 'EVAL', workers: 'worker_1' })).toBe('5=E1@1 8=E2@1')
    expect(await found({ steps: { from: -2 }, tensors: 'gradient', workers: 'worker_0' })).toBe('6=T4@0 7=T5@0')
  })

  it('matches mode steps of each worker by its own', async () => {
    expect(await found({ modeSteps: { from: 5 }, mode: 'TRAIN' })).toBe('7=T5@0 7=T5@1 9=T6@1')
    expect(await found({ modeSteps: [3], mode: 'EVAL' })).toBe('9=E3@0')
    expect(await found({ modeSteps: [-1], mode: 'TRAIN' })).toBe('9=T6@1')
    expect(await found({ modeSteps: { from: 0, to: 3 }, steps: { from: 1 }, mode: 'TRAIN', workers: 'worker_0' })).toBe(
      '1=T1@0 3=T2@0',
    )
  })

  it('wants a mode where several count', async () => {
    expect(() => trial.scan({ modeSteps: { from: 0, to: 3 } })).toThrow(
      'expected mode beside modeSteps, since each of EVAL, TRAIN',
    )
  })

  it.each([
    { from: 3, to: 1 },
    { from: -1, to: -3 },
    { from: 0.5 },
    [0, null],
    [],
    '',
    '3:1',
    'first',
    [0.5],
    ['1'],
    [{ from: 3, to: 1 }],
    [{ stride: 0 }],
    [{ strid: 1 }],
    { only: [1] },
    { begin: 1 },
  ])('refuses %j', given => {
    for (const name of ['steps', 'modeSteps']) {
      const options = { mode: 'TRAIN', [name]: given } as unknown as ScanOptions
      expect(() => trial.scan(options)).toThrow(expect.objectContaining({ name: 'UsageError' }))
    }
  })
})
