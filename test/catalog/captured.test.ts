/** What trialscan.py saves, as a trial: modes, collections, the order of execution, workers, and statistics in place of tensors. */

import { utimesSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createTrial, type ScanOptions, type ScanRow, type Trial, verifyTrial } from '#dist/index.js'
import { counting, safetensors, tensorOf, writeFile } from '../../fixtures/checkpoint-writer.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('captured')
const told = (facts: object) => ({ trialscan: JSON.stringify(facts) })

async function rowsOf(trial: Trial, options: ScanOptions): Promise<ScanRow[]> {
  const rows: ScanRow[] = []
  for await (const row of trial.scan(options)) rows.push(row)
  return rows
}

/** Two steps of training and one of evaluation. */
function writeRun(name: string): string {
  const directory = join(scratch, name)
  const collections = { weights: ['fc.weight'], outputs: ['relu_output_0'], losses: ['loss'] }
  for (const [step, mode, modeStep] of [
    [0, 'TRAIN', 0],
    [10, 'TRAIN', 10],
    [11, 'EVAL', 0],
  ] as const) {
    const tensors = [
      counting('relu_output_0', [2, 3]),
      counting('fc.weight', [3, 4]),
      tensorOf('loss', 'F32', [], [step]),
    ]
    const facts = { mode, mode_step: modeStep, num_workers: 1, collections }
    writeFile(join(directory, `step_${step}.safetensors`), safetensors(tensors, told(facts)))
  }
  return directory
}

it('has modes, their steps, the collections that it names, and the order of the file', async () => {
  const directory = writeRun('run')
  const trial = await createTrial(directory, { refresh: 'manual' })
  expect(trial.steps()).toEqual([0, 10, 11])
  expect([trial.steps({ mode: 'TRAIN' }), trial.steps({ mode: 'EVAL' })]).toEqual([[0, 10], [0]])
  expect(trial.collection('outputs').members).toEqual(['relu_output_0'])
  // fc.weight says so by its name, but of what trialscan.py saves it knows better.
  expect([...trial.collections().keys()].sort()).toEqual(['losses', 'outputs', 'weights'])
  const rows = await rowsOf(trial, { steps: [0, 1], reductions: ['max'] })
  expect(rows.map(row => row.tensor)).toEqual(['relu_output_0', 'fc.weight', 'loss'])
  expect(trial.checkpoint).toMatchObject({ model: 'run', parameters: 12, tensors: 1 })
  expect(trial.loadedAllSteps).toBe(false)
  writeFile(join(directory, 'training_job_end.ts'), '')
  await trial.refresh()
  expect(trial.loadedAllSteps).toBe(true)
  expect(trial.problems).toEqual([])
  await trial.close()
})

it('has statistics as saved reductions, in the order that is told', async () => {
  const facts = {
    mode: 'TRAIN',
    mode_step: 3,
    collections: { gradients: ['gradient/a', 'gradient/b'], losses: ['loss'] },
    order: ['gradient/a', 'loss', 'gradient/b'],
    reductions: ['min', 'abs_mean'],
    reduced: ['gradient/a', 'gradient/b'],
  }
  const tensors = [tensorOf('loss', 'F64', [], [7]), counting('trialscan.statistics', [2, 2], 'F64', 1)]
  const directory = join(scratch, 'reduced')
  writeFile(join(directory, 'step_3.safetensors'), safetensors(tensors, told(facts)))
  const trial = await createTrial(directory, { refresh: 'manual' })
  expect(trial.collection('gradients').members).toEqual(['gradient/a', 'gradient/b'])
  expect(await trial.tensor('gradient/b').reductionValue(3, 'abs_mean')).toBe(4)
  const rows = await rowsOf(trial, { reductions: ['min', 'abs_mean'] })
  const found = rows.map(row => (row.error ? null : [row.tensor, row.saved, row.reductions.min]))
  expect(found).toEqual([
    ['gradient/a', true, 1],
    ['loss', false, 7],
    ['gradient/b', true, 3],
  ])
  await trial.close()
})

it.each([
  ['no JSON', '{'],
  ['another value', '[1]'],
  ['a mode that there is not', '{"mode":"SLEEP","mode_step":-1,"collections":{"weights":3},"num_workers":"many"}'],
  ['statistics that fit no table', '{"reductions":["min"],"reduced":["a"]}'],
  ['reductions that there are not', '{"reductions":["no","max"],"reduced":["a","b"]}'],
])('metadata that are %s leave tensors as they lie', async (name, trialscan) => {
  const directory = join(scratch, name)
  const tensors = [counting('trialscan.statistics', [2, 2], 'F64', 1)]
  writeFile(join(directory, 'step_3.safetensors'), safetensors(tensors, { trialscan }))
  const trial = await createTrial(directory, { refresh: 'manual' })
  expect(trial.tensorNames()).toEqual(['trialscan.statistics'])
  expect(await trial.tensor('trialscan.statistics').reductionValue(3, 'max')).toBe(4)
  await trial.close()
})

describe('a step of several workers', () => {
  const rank = (directory: string, n: number) => {
    const file = join(directory, 'step_5', `rank_${n}.safetensors`)
    writeFile(file, safetensors([counting('w', [2], 'F32', n)], told({ mode: 'TRAIN', mode_step: 5, num_workers: 2 })))
    return file
  }

  it('is there when all have saved it', async () => {
    const directory = join(scratch, 'ranks')
    rank(directory, 0)
    const trial = await createTrial(directory, { refresh: 'manual' })
    expect(trial.steps()).toEqual([])
    expect(trial.notes).toEqual([expect.stringContaining('step_5 is not whole')])
    rank(directory, 1)
    await trial.refresh()
    expect(trial.steps()).toEqual([5])
    expect(trial.workers()).toEqual(['rank_0', 'rank_1'])
    expect(trial.problems).toEqual([])
    await trial.close()
  })

  it('is told after a while if one has not', async () => {
    const directory = join(scratch, 'lost')
    utimesSync(rank(directory, 1), 1e9, 1e9)
    const trial = await createTrial(directory, { refresh: 'manual' })
    expect(trial.steps()).toEqual([5])
    expect(trial.problems.map(({ message }) => message)).toEqual([
      expect.stringMatching(/step_5: expected files of 2 workers, got 1: the others have not saved this step$/),
    ])
    const { problems } = await verifyTrial(directory)
    expect(JSON.stringify(problems)).toContain('expected files of 2 workers, found 1')
    await trial.close()
  })
})
