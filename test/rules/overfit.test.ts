/** What Overfit, as check runs it, says of a validation loss: runs of steps, patience, and the numbers it quotes. */

import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createTrial, evaluate, type Mode, Overfit } from '#dist/index.js'
import { TrialWriter } from '../../fixtures/event-writer.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('overfit')

/** A saved step: global, of its mode, and the loss; null: only the learning rate was saved. */
type Saved = readonly [mode: Mode, step: number, modeStep: number, loss: number | null]

async function foundIn(steps: readonly Saved[], options: object = Overfit.suggested) {
  const directory = mkdtempSync(join(scratch, 'trial-'))
  const writer = new TrialWriter(directory, { collections: { losses: { includeRegex: ['loss'] } } })
  for (const [mode, step, modeStep, loss] of steps) {
    const tensors = [
      ...(loss === null ? [] : [{ name: 'loss', dtype: 'float64', shape: [], values: [loss] } as const]),
      { name: 'scalar/lr', dtype: 'float64', shape: [], values: [0.1] } as const,
    ]
    writer.step({ step, mode, modeStep, tensors })
  }
  writer.end()
  const { findings, missing } = await evaluate(new Overfit(await createTrial(directory), options), { threads: 0 })
  return { steps: findings.map(({ step }) => step), messages: findings.map(({ message }) => message), missing }
}

/** Every sixth step is of training, and EVAL saves one step of each run. */
const OVERFITTING: readonly Saved[] = [
  ['TRAIN', 0, 0, 2],
  ['EVAL', 5, 4, 1],
  ['EVAL', 11, 9, 0.75],
  ['TRAIN', 12, 2, 0.0078125],
  ['EVAL', 17, 14, 0.875],
  ['EVAL', 23, 19, 1.125],
  ['EVAL', 29, 24, null],
]

describe('Overfit', () => {
  it('quotes losses that were saved, in times where they are many', async () => {
    const { steps, messages } = await foundIn(OVERFITTING)
    expect(steps).toEqual([23])
    expect(messages).toEqual([
      'the validation loss 1.125 is 144 times the training loss 0.007813, more than 1.1, and 50 % above its lowest, 0.75',
    ])
  })

  it('does not count two steps of one run as two', async () => {
    const run = OVERFITTING.map(
      ([mode, step, modeStep, loss]): Saved => (step === 23 ? [mode, 18, 15, loss] : [mode, step, modeStep, loss]),
    )
    expect((await foundIn(run.filter(([, step]) => step !== 29))).steps).toEqual([])
  })

  it('says of a mean that it is one', async () => {
    const { messages } = await foundIn(OVERFITTING, { ratio_threshold: 0.5 })
    expect(messages.at(-1)).toBe(
      'the validation loss 1 (the mean of 2) is 128 times the training loss 0.007813, more than 1.5',
    )
  })

  it('has not judged what has fewer runs than it waits for', async () => {
    const { steps, missing } = await foundIn(OVERFITTING.slice(0, 2))
    expect(steps).toEqual([])
    expect(missing).toMatchObject([{ rule: 'Overfit', partial: false }])
  })
})
