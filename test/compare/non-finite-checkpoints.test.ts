/** Where checkpoints went wrong: the first with NaN, its tensors that are finite, and what was logged around it. */

import { cpSync, mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createTrial, traceNonFinite } from '#dist/index.js'
import { safetensors, tensorOf, writeFile } from '../../fixtures/checkpoint-writer.js'
import { trialscan } from '../cli/run.js'
import { CHECKPOINTS, expectedOf, FIXTURES, hasCheckpoints } from '../support/checkpoints.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('non-finite-checkpoints')
const traced = async (path: string) => (await traceNonFinite(await createTrial(path))).checkpoint

it('names checkpoint, tensor and element, the tensors that are finite, and what was logged', async () => {
  const at = (...values: readonly number[]) => values.map((value, i) => ({ step: 5 * (i + 1), value }))
  expect(await traced(join(FIXTURES, 'run'))).toEqual({
    step: 20,
    tensor: 'model.layers.1.mlp.up_proj.weight',
    element: [1, 1],
    wholeStep: 10,
    affected: 1,
    whole: expect.arrayContaining(['model.embed_tokens.weight', 'lm_head.weight']),
    logged: [
      { name: 'grad_norm', values: at(0.5, 0.5, 0.5, 0.5, Number.NaN) },
      { name: 'learning_rate', values: at(0.001, 0.001, 0.001, 0.001, 0.001) },
      { name: 'loss', values: at(3.5, 3, 2.5, 2, Number.NaN) },
    ],
  })
  const { stdout } = await trialscan('nan', join(FIXTURES, 'run'), '--format', 'jsonl')
  const { checkpoint } = JSON.parse(stdout.split('\n')[0]!)
  expect(checkpoint).toMatchObject({ step: 20, whole_step: 10, affected: 1 })
  expect(checkpoint.logged[2].values[4]).toEqual({ step: 25, value: 'NaN' })
})

it('tells apart what was logged and what was saved', async () => {
  const path = mkdtempSync(join(scratch, 'logged-'))
  cpSync(join(FIXTURES, 'run', 'checkpoint-10'), join(path, 'checkpoint-10'), { recursive: true })
  writeFile(
    join(path, 'checkpoint-10', 'trainer_state.json'),
    '{"log_history": [{"step": 9, "loss": 1, "learning_rate": 0.1}, {"step": 10, "loss": NaN}]}',
  )
  expect(await traced(path)).toMatchObject({ step: null, tensor: null, wholeStep: 10, affected: 0 })
  const { stdout } = await trialscan('nan', path, '--format', 'table')
  expect(stdout).toContain('Only what was logged has any. Everything read of the checkpoints up to step 10 is finite.')
})

it('says so where no checkpoint was read before, of a trial of checkpoints alone', async () => {
  const path = mkdtempSync(join(scratch, 'first-'))
  writeFile(join(path, 'step-1.safetensors'), safetensors([tensorOf('a.weight', 'F32', [2], [1, Number.NaN])]))
  writeFile(join(path, 'step-2.safetensors'), safetensors([tensorOf('a.weight', 'F32', [2], [1, 2])]))
  const found = { step: 1, tensor: 'a.weight', element: [1], wholeStep: null, affected: 1, whole: [], logged: [] }
  expect(await traced(path)).toEqual(found)
  expect((await trialscan('nan', path, '--format', 'table')).stdout).toMatch(/No\s+checkpoint before it was read\./)
  expect(await traced(join(FIXTURES, 'base'))).toBeNull()
})

it('check names the learning rate that explains it', async () => {
  const path = mkdtempSync(join(scratch, 'rate-'))
  cpSync(join(FIXTURES, 'run'), path, { recursive: true })
  const log = [5, 10, 15, 20].map(step => ({ step, loss: 1, learning_rate: step < 15 ? 0.001 : 0.5 }))
  writeFile(join(path, 'checkpoint-30', 'trainer_state.json'), JSON.stringify({ log_history: log }))
  for (const step of [10, 20]) writeFile(join(path, `checkpoint-${step}`, 'trainer_state.json'), '{}')
  const { stdout } = await trialscan('check', path, '--format', 'table')
  expect(stdout.replaceAll(/\s+/g, ' ')).toContain(
    'the learning rate learning_rate is 0.5 from step 15 on, 500 times what it was before',
  )
})

it.runIf(hasCheckpoints)('of hf-run is the third, after a norm that was NaN', async () => {
  const { first_nan } = expectedOf('hf-run') as { readonly first_nan: { readonly step: number } }
  const found = await traced(join(CHECKPOINTS, 'trials/hf-run'))
  expect(found).toMatchObject({ step: first_nan.step, wholeStep: 200, affected: 72 })
  // Counts of optimizer steps are all that is finite.
  expect(found!.whole.every(name => name.endsWith('.step'))).toBe(true)
  expect(found!.logged.map(({ name }) => name)).toEqual(['grad_norm', 'learning_rate', 'loss'])
})
