/** A training at a glance, held against values that are read one by one. */

import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createTrial, type TensorValue, type Trial, trialOverview } from '#dist/index.js'
import { copyTrial, truncateEventFile } from '../../fixtures/corrupt.js'
import { TrialWriter } from '../../fixtures/event-writer.js'
import { ROOT } from '../support/golden.js'
import { scratchDirectory } from '../support/scratch.js'

const trialPath = (name: string) => join(ROOT, 'fixtures/trials', name)
const open = (path: string) => createTrial(path, { requireCollections: false, refresh: 'manual' })
const scratch = scratchDirectory('overview')

const numbers = (value: TensorValue) => Array.from(value.data as ArrayLike<number>)
const meanOf = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length

async function valueAt(trial: Trial, tensor: string, step: number): Promise<number[]> {
  return numbers(await trial.tensor(tensor).value(step))
}

describe('an overview', () => {
  it('counts a step for each mode that a worker is in at it', async () => {
    const path = join(scratch, 'two-modes')
    const writer = new TrialWriter(path, { numWorkers: 2 })
    const tensors = [{ name: 'loss', dtype: 'float32', shape: [], values: [1] }] as const
    for (const [worker, mode] of [
      ['worker_0', 'EVAL'],
      ['worker_1', 'TRAIN'],
    ] as const) {
      writer.step({ step: 0, mode, worker, tensors })
    }
    writer.end()
    const trial = await open(path)
    const { steps, modes } = await trialOverview(trial)
    expect([steps, modes]).toEqual([
      [0],
      [
        { mode: 'EVAL', steps: 1 },
        { mode: 'TRAIN', steps: 1 },
      ],
    ])
    await trial.close()
  })

  it('has losses by mode, and magnitudes of gradients and weights in training', async () => {
    const trial = await open(trialPath('cnn-raw-and-reductions'))
    const { losses, gradients, weights, steps, modes } = await trialOverview(trial)
    expect(steps).toEqual(trial.steps())
    expect(modes).toEqual([
      { mode: 'TRAIN', steps: trial.steps({ mode: 'TRAIN' }).length },
      { mode: 'EVAL', steps: trial.steps({ mode: 'EVAL' }).length },
    ])
    expect(losses.map(({ tensor, mode }) => [tensor, mode])).toEqual([
      ['CrossEntropyLoss_output_0', 'TRAIN'],
      ['CrossEntropyLoss_output_0', 'EVAL'],
    ])
    for (const { tensor, steps, values } of losses) {
      for (const [i, step] of steps.entries()) expect(values[i]).toBe((await valueAt(trial, tensor, step))[0])
    }
    expect([gradients.length, weights.length]).toEqual([8, 4])
    for (const { tensor, steps, values } of [...gradients, ...weights]) {
      for (const [i, step] of steps.entries()) {
        const magnitudes = (await valueAt(trial, tensor, step)).map(Math.abs)
        expect(values[i]).toBeCloseTo(meanOf(magnitudes), 6)
      }
    }
    await trial.close()
  })

  it('tells by how much each weight was updated, from one training step to the next', async () => {
    const trial = await open(trialPath('cnn-raw-and-reductions'))
    const { updates } = await trialOverview(trial)
    expect(updates).toHaveLength(4)
    const training = trial.steps({ mode: 'TRAIN' }).map(step => trial.globalStep('TRAIN', step))
    for (const { tensor, steps, values } of updates) {
      expect(steps).toEqual(training.slice(1))
      for (const [i, step] of steps.entries()) {
        const [older, newer] = [await valueAt(trial, tensor, training[i]!), await valueAt(trial, tensor, step)]
        const change = Math.hypot(...newer.map((value, at) => value - older[at]!))
        expect(values[i]! / (change / Math.hypot(...older))).toBeCloseTo(1, 5)
      }
    }
    await trial.close()
  })

  it('says first what check says first', async () => {
    const trial = await open(trialPath('mlp-vanishing'))
    const { findings, rules } = await trialOverview(trial)
    expect(findings[0]).toMatchObject({ rule: 'VanishingGradient', step: 0, cause: null })
    expect(rules).toContain('VanishingGradient')
    await trial.close()
  })

  it('names where NaN and infinities first were', async () => {
    const trial = await open(trialPath('dtypes'))
    const { notFinite } = await trialOverview(trial)
    const nan = notFinite.find(({ tensor }) => tensor === 'edge/nan')!
    expect(nan).toMatchObject({ step: 0, nan: 1, infinite: 0 })
    for (const { tensor, step, nan, infinite } of notFinite) {
      if (tensor.includes('complex')) continue
      const elements = await valueAt(trial, tensor, step)
      expect([tensor, nan, infinite]).toEqual([
        tensor,
        elements.filter(Number.isNaN).length,
        elements.filter(x => Math.abs(x) === Number.POSITIVE_INFINITY).length,
      ])
    }
    await trial.close()
  })

  it('is the mean of several workers, and of the part that was asked for', async () => {
    const trial = await open(trialPath('workers-4'))
    const { losses } = await trialOverview(trial, { steps: { from: 0, to: 2 } })
    const [loss] = losses
    expect(loss!.steps).toEqual([0, 1])
    for (const [i, step] of loss!.steps.entries()) {
      const each = await Promise.all(
        trial.workers().map(async worker => meanOf(numbers(await trial.tensor(loss!.tensor).value(step, { worker })))),
      )
      expect(loss!.values[i]).toBeCloseTo(meanOf(each), 9)
    }
    await trial.close()
  })

  it('tells what could not be read, and keeps the rest', async () => {
    const path = join(scratch, 'broken')
    copyTrial(trialPath('mlp-vanishing'), path)
    truncateEventFile(path, 0, 10_000)
    const trial = await open(path)
    const { problems, losses } = await trialOverview(trial)
    expect(problems.length).toBeGreaterThan(0)
    expect(losses.length).toBeGreaterThan(0)
    await trial.close()
  })
})
