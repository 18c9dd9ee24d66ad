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
  [
    [10, 30],
    [10, 20],
  ],
  [
    [null, 11],
    [0, 10],
  ],
  [
    [35, null],
    [40, 50],
  ],
  [
    [-2, null],
    [40, 50],
  ],
  [
    [null, -4],
    [0, 10],
  ],
  [
    [10, -1],
    [10, 20, 30, 40],
  ],
  [
    [-3, 50],
    [30, 40],
  ],
  [[-100, null], TENS],
  [[null, -100], []],
  [{ only: [1, 2] }, []],
  [{ only: [10, 30] }, [10, 30]],
  [{ only: [-1] }, [50]],
  [{ only: [-1, 0, -6, -7] }, [0, 50]],
  [{ only: [{ begin: 0, end: 50, stride: 20 }] }, [0, 20, 40]],
  [{ only: [{ stride: 30 }] }, [0, 30]],
  [{ only: [{ begin: 10, stride: 20 }] }, [10, 30, 50]],
  [{ only: [{ begin: -2, stride: 10 }, 0] }, [0, 40, 50]],
  [{ only: [0, 10, { begin: 20, end: 30 }] }, [0, 10, 20]],
])('%j of 0, 10, … 50', (selection, expected) => {
  expect(selectSteps(TENS, selection)).toEqual(expected)
})

it('of no steps is none', () => {
  for (const selection of [[-1, null], { only: [-1] }, { only: [{ end: -1 }] }] as StepSelection[]) {
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
    expect(await found({ steps: [1, 3], workers: 'worker_0' })).toBe('1=T1@0 2=E0@0')
    expect(await found({ steps: { only: [1, 3] }, workers: 'worker_0' })).toBe('1=T1@0 3=T2@0')
  })

  it('counts from the end of what else is asked for', async () => {
    expect(await found({ steps: { only: [-1] } })).toBe('9=E3@0 9=T6@1')
    expect(await found({ steps: { only: [-1] }, mode: 'TRAIN', workers: 'worker_0' })).toBe('7=T5@0')
    expect(await found({ steps: [-2, null], mode: 'EVAL', workers: 'worker_1' })).toBe('5=E1@1 8=E2@1')
    expect(await found({ steps: [-2, null], tensors: 'gradient', workers: 'worker_0' })).toBe('6=T4@0 7=T5@0')
  })

  it('matches mode steps of each worker by its own', async () => {
    expect(await found({ modeSteps: [5, null], mode: 'TRAIN' })).toBe('7=T5@0 7=T5@1 9=T6@1')
    expect(await found({ modeSteps: { only: [3] }, mode: 'EVAL' })).toBe('9=E3@0')
    expect(await found({ modeSteps: { only: [-1] }, mode: 'TRAIN' })).toBe('9=T6@1')
    expect(await found({ modeSteps: [0, 3], steps: [1, null], mode: 'TRAIN', workers: 'worker_0' })).toBe(
      '1=T1@0 3=T2@0',
    )
  })

  it('wants a mode where several count', async () => {
    expect(() => trial.scan({ modeSteps: [0, 3] })).toThrow('expected mode beside modeSteps, since each of EVAL, TRAIN')
  })

  it.each([
    [1, 2, 3],
    [3, 1],
    [-1, -3],
    [0.5, null],
    [],
    7,
    'last',
    { only: [] },
    { only: [0.5] },
    { only: [{ begin: 3, end: 1 }] },
    { only: [{ stride: 0 }] },
    { only: [{ strid: 1 }] },
    { only: [1], begin: 2 },
    { begin: 1 },
  ])('refuses %j', given => {
    for (const name of ['steps', 'modeSteps']) {
      const options = { mode: 'TRAIN', [name]: given } as unknown as ScanOptions
      expect(() => trial.scan(options)).toThrow(expect.objectContaining({ name: 'UsageError' }))
    }
  })
})
