/** Modes: the worked example of Tornasole's documentation, and what is known of a step in every case. */

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createTrial, type Mode, modes, verifyTrial } from '#dist/index.js'
import { TrialWriter } from '../fixtures/event-writer.js'
import { scratchDirectory } from './support/scratch.js'

const scratch = scratchDirectory('modes')
let count = 0

/** Ten steps: four of training, one of evaluation, four of training, one of evaluation. */
const EXAMPLE = ['TRAIN', 'TRAIN', 'TRAIN', 'TRAIN', 'EVAL', 'TRAIN', 'TRAIN', 'TRAIN', 'TRAIN', 'EVAL'] as const

type Written = readonly [step: number, mode: Mode, modeStep: number, workers: readonly number[]]

function write(steps: readonly Written[], { ended = false, numWorkers = 1 } = {}): string {
  const directory = join(scratch, String(count++))
  const writer = new TrialWriter(directory, { numWorkers })
  for (const [step, mode, modeStep, workers] of steps) {
    for (const worker of workers) {
      const tensors = [{ name: 'loss', dtype: 'float32' as const, shape: [1], values: [step] }]
      writer.step({ step, mode, modeStep, worker, tensors })
    }
  }
  if (ended) writer.end()
  return directory
}

function example(): string {
  const counts = new Map<string, number>()
  return write(
    EXAMPLE.map((mode, step): Written => {
      const modeStep = counts.get(mode) ?? 0
      counts.set(mode, modeStep + 1)
      return [step, mode, modeStep, [0]]
    }),
    { ended: true },
  )
}

describe('the worked example', () => {
  it('counts steps over all modes and within each', async () => {
    const trial = await createTrial(example())
    expect(trial.steps()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    // The documentation lists nine (0 to 8) and says they are eight: eight it is.
    expect(trial.steps({ mode: modes.TRAIN })).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
    expect(trial.steps({ mode: modes.EVAL })).toEqual([0, 1])
    expect([trial.modes(), trial.steps({ mode: modes.PREDICT })]).toEqual([['EVAL', 'TRAIN'], []])
  })

  it('leads from one number to the other and back', async () => {
    const trial = await createTrial(example())
    expect(trial.globalStep('TRAIN', 4)).toBe(5)
    expect([trial.mode(9), trial.modeStep(9)]).toEqual(['EVAL', 1])
    for (const step of trial.steps()) {
      expect(trial.mode(step)).toBe(EXAMPLE[step])
      expect(trial.globalStep(trial.mode(step), trial.modeStep(step))).toBe(step)
    }
  })

  it('gives values by either', async () => {
    const tensor = (await createTrial(example())).tensor('loss')
    expect((await tensor.value(4, { mode: 'TRAIN' })).data[0]).toBe(5)
    expect((await tensor.value(4)).data[0]).toBe(4)
    expect([...(await tensor.values({ mode: 'EVAL' }))].map(([step, { data }]) => [step, data[0]])).toEqual([
      [0, 4],
      [1, 9],
    ])
  })
})

describe('two global steps with one mode step', () => {
  /** Scalars are written when a step is closed, and have the mode that is set by then: smdebug does that. */
  function written(): string {
    const directory = join(scratch, String(count++))
    const writer = new TrialWriter(directory)
    const save = (step: number, mode: Mode, modeStep: number, names: readonly string[]) =>
      writer.step({
        step,
        mode,
        modeStep,
        tensors: names.map(name => ({ name, dtype: 'float32', shape: [1], values: [step] })),
      })
    save(1, 'EVAL', 1, ['loss', 'accuracy'])
    save(2, 'EVAL', 1, ['scalar', 'accuracy'])
    save(3, 'EVAL', 2, ['loss'])
    writer.end()
    return directory
  }

  it('give each tensor what the last that has it has', async () => {
    const trial = await createTrial(written(), { requireCollections: false })
    expect([trial.steps({ mode: 'EVAL' }), trial.globalStep('EVAL', 1)]).toEqual([[1, 2], 2])
    for (const [name, steps, values] of [
      ['loss', [1, 2], [1, 3]],
      ['scalar', [1], [2]],
      ['accuracy', [1], [2]],
    ] as const) {
      const tensor = trial.tensor(name)
      expect(tensor.steps({ mode: 'EVAL' })).toEqual(steps)
      expect([...(await tensor.values({ mode: 'EVAL' })).values()].map(({ data }) => data[0])).toEqual(values)
      for (const [i, step] of steps.entries()) {
        expect((await tensor.value(step, { mode: 'EVAL' })).data[0]).toBe(values[i])
        expect(await tensor.reductionValue(step, 'max', { mode: 'EVAL' })).toBe(values[i])
        expect(await tensor.shape(step, { mode: 'EVAL' })).toEqual([1])
        expect(tensor.workers(step, { mode: 'EVAL' })).toEqual(['worker_0'])
      }
    }
    await expect(trial.tensor('scalar').value(2, { mode: 'EVAL' })).rejects.toThrow('steps that have it: 1')
  })
})

it('a step of a mode that had none yet is of no mode', async () => {
  const directory = write([
    [4, 'EVAL', -1, [0]],
    [5, 'EVAL', 0, [0]],
  ])
  const trial = await createTrial(directory)
  expect([trial.steps(), trial.steps({ mode: 'EVAL' }), trial.mode(4), trial.modeStep(4)]).toEqual([
    [4, 5],
    [0],
    'GLOBAL',
    4,
  ])
  expect((await trial.tensor('loss').value(4)).data[0]).toBe(4)
  expect((await verifyTrial(directory)).problems).toEqual([])
  // The same where nothing but the records tells.
  rmSync(join(directory, 'index'), { recursive: true })
  const unindexed = await createTrial(directory)
  expect([unindexed.steps({ mode: 'EVAL' }), unindexed.mode(4), unindexed.modeStep(4)]).toEqual([[0], 'GLOBAL', 4])
})

describe('hasPassedStep', () => {
  /** Two workers; the second has not written steps 4 and 30. */
  const steps: readonly Written[] = [
    [0, 'TRAIN', 0, [0, 1]],
    [4, 'EVAL', 0, [0]],
    [10, 'TRAIN', 5, [0, 1]],
    [30, 'TRAIN', 9, [0]],
  ]

  it.each([
    ['all workers wrote it', 10, 'GLOBAL', 'AVAILABLE', 'AVAILABLE'],
    ['a later step is complete', 4, 'GLOBAL', 'AVAILABLE', 'AVAILABLE'],
    ['not all workers wrote it', 30, 'GLOBAL', 'NOT_YET_AVAILABLE', 'AVAILABLE'],
    ['left out before a complete step', 7, 'GLOBAL', 'UNAVAILABLE', 'UNAVAILABLE'],
    ['left out before an incomplete step', 20, 'GLOBAL', 'NOT_YET_AVAILABLE', 'UNAVAILABLE'],
    ['beyond all steps', 31, 'GLOBAL', 'NOT_YET_AVAILABLE', 'UNAVAILABLE'],
    ['a complete mode step', 5, 'TRAIN', 'AVAILABLE', 'AVAILABLE'],
    ['a mode step before a complete step of another mode', 0, 'EVAL', 'AVAILABLE', 'AVAILABLE'],
    ['an incomplete mode step', 9, 'TRAIN', 'NOT_YET_AVAILABLE', 'AVAILABLE'],
    ['a mode step left out', 3, 'TRAIN', 'UNAVAILABLE', 'UNAVAILABLE'],
    ['a mode step left out before an incomplete one', 7, 'TRAIN', 'NOT_YET_AVAILABLE', 'UNAVAILABLE'],
    ['a mode step that is a global step of another number', 4, 'EVAL', 'NOT_YET_AVAILABLE', 'UNAVAILABLE'],
    ['a mode step beyond all', 10, 'TRAIN', 'NOT_YET_AVAILABLE', 'UNAVAILABLE'],
    ['a mode without steps', 0, 'PREDICT', 'NOT_YET_AVAILABLE', 'UNAVAILABLE'],
  ] as const)('%s: step %i of %s', async (_, step, mode, whileRunning, afterEnd) => {
    const running = await createTrial(write(steps, { numWorkers: 2 }))
    expect(await running.hasPassedStep(step, mode)).toBe(whileRunning)
    const ended = await createTrial(write(steps, { numWorkers: 2, ended: true }))
    expect(await ended.hasPassedStep(step, mode)).toBe(afterEnd)
  })
})
