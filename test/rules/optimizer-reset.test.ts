/** OptimizerReset: moments that are zero, and updates that are counted anew. */

import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createTrial, evaluate, OptimizerReset, type Trial } from '#dist/index.js'
import { safetensors, tensorOf, writeFile } from '../../fixtures/checkpoint-writer.js'
import { CHECKPOINTS, hasCheckpoints } from '../support/checkpoints.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('optimizer-reset')

/** Checkpoints at steps 10, 20, … @param saved what each has */
async function runOf(saved: readonly Readonly<Record<string, readonly number[]>>[]): Promise<Trial> {
  const directory = mkdtempSync(join(scratch, 'run-'))
  for (const [i, tensors] of saved.entries()) {
    const file = safetensors(Object.entries(tensors).map(([name, of]) => tensorOf(name, 'F32', [of.length], of)))
    writeFile(join(directory, `step-${10 * (i + 1)}.safetensors`), file)
  }
  return createTrial(directory)
}

async function found(trial: Trial) {
  const { findings, missing } = await evaluate(new OptimizerReset(trial), { threads: 0, follow: false })
  return { told: findings.map(({ step, message }) => `${step}: ${message}`), missing }
}

const [AVG, SQUARES, STEP] = ['optimizer.state.0.exp_avg', 'optimizer.state.0.exp_avg_sq', 'optimizer.state.0.step']

it('fires where moments become zero, and where fewer updates are counted', async () => {
  const trial = await runOf([
    { [AVG]: [0, 0, 0], [SQUARES]: [1, 0, 2], [STEP]: [10] },
    { [AVG]: [0, -1, 0], [SQUARES]: [1, 0, 2], [STEP]: [20] },
    { [AVG]: [0, 0, 0], [SQUARES]: [0, 0, Number.NaN], [STEP]: [5] },
    { [AVG]: [1, 0, 0], [SQUARES]: [1, 1, 2], [STEP]: [5] },
  ])
  expect(await found(trial)).toEqual({
    told: [
      `30: ${AVG} is all zero, 1 of 3 elements were not at step 20`,
      `30: ${STEP} counts 5 updates, less than the 20 at step 20`,
    ],
    missing: [],
  })
})

it('fires where moments stay zero', async () => {
  const trial = await runOf([{ momentum_buffer: [0, 0] }, { momentum_buffer: [0, 0] }])
  expect((await found(trial)).told).toEqual(['20: momentum_buffer is all zero, as at step 10'])
})

it('does not judge a single checkpoint, and says so', async () => {
  const { told, missing } = await found(await runOf([{ [AVG]: [0] }]))
  expect(told).toEqual([])
  expect(missing[0]!.missing).toMatch(/^more steps with its tensors/)
})

it.runIf(hasCheckpoints).each(['hf-run', 'torch-2.13/dcp', 'dcp'])('finds nothing in %s', async name => {
  expect((await found(await createTrial(join(CHECKPOINTS, 'trials', name)))).told).toEqual([])
})
