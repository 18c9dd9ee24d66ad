/** ReplicaDrift: weights that workers should have in common. */

import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createTrial, evaluate, ReplicaDrift, type Rule, type Trial } from '#dist/index.js'
import { safetensors, tensorOf, writeFile } from '../../fixtures/checkpoint-writer.js'
import { TrialWriter } from '../../fixtures/event-writer.js'
import { CHECKPOINTS, hasCheckpoints } from '../support/checkpoints.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('replica-drift')
type Values = Readonly<Record<string, readonly number[]>>

/** @param steps what each worker saves */
async function trialOf(steps: readonly Readonly<Record<string, Values>>[]): Promise<Trial> {
  const directory = mkdtempSync(join(scratch, 'trial-'))
  const collections = { weights: { includeRegex: ['weight$'] }, biases: { includeRegex: ['bias$'] } }
  const writer = new TrialWriter(directory, { workers: Object.keys(steps[0]!), collections })
  for (const [step, workers] of steps.entries()) {
    for (const [worker, saved] of Object.entries(workers)) {
      const tensors = Object.entries(saved).map(([name, values]) => ({
        name,
        dtype: 'float32' as const,
        shape: [values.length],
        values,
      }))
      writer.step({ step, worker, mode: 'TRAIN', modeStep: step, tensors })
    }
  }
  writer.end()
  return createTrial(directory)
}

async function checkpointOf(ranks: Readonly<Record<string, Values>>): Promise<Trial> {
  const directory = mkdtempSync(join(scratch, 'checkpoint-'))
  for (const [rank, saved] of Object.entries(ranks)) {
    const tensors = Object.entries(saved).map(([name, values]) => tensorOf(name, 'F32', [values.length], values))
    writeFile(join(directory, 'step-7', rank, 'model.safetensors'), safetensors(tensors))
  }
  return createTrial(directory)
}

async function judged(rule: Rule) {
  const { findings, missing, problems, stats } = await evaluate(rule, { threads: 0, follow: false })
  expect(problems).toEqual([])
  return {
    found: findings.map(({ step, tensor, worker, value }) => [step, tensor, worker, value]),
    messages: findings.map(({ message }) => message),
    missing: missing.map(({ missing }) => missing),
    judged: stats.judged,
  }
}

const SOUND = { 'a.weight': [1, 2, 3], 'a.bias': [0, Number.NaN] }

it('fires for each weight and bias that differs, whatever losses and gradients do', async () => {
  const local = (loss: number) => ({ ...SOUND, loss: [loss], 'gradient/a.weight': [loss, 0, 0] })
  const trial = await trialOf([
    { w0: local(1), w1: local(2), w2: local(3) },
    { w0: local(1), w1: { ...local(2), 'a.weight': [1, 2.5, 3] }, w2: { ...local(3), 'a.weight': [1, 4, 3.25] } },
    { w0: local(1), w1: { ...local(2), 'a.bias': [0.125, Number.NaN] }, w2: local(3) },
  ])
  expect(await judged(new ReplicaDrift(trial))).toEqual({
    found: [
      [1, 'a.weight', null, 2],
      [2, 'a.bias', null, 0.125],
    ],
    messages: [
      'a.weight of w0 and w2 differs in 2 of 3 elements, by up to 2.00; 2 of 3 workers differ from w0',
      'a.bias of w0 and w1 differs in 1 of 2 elements, by up to 0.125',
    ],
    missing: [],
    judged: 3,
  })
  expect((await judged(new ReplicaDrift(trial, { atol: 0.25, rtol: 1 }))).found).toEqual([])
  expect((await judged(new ReplicaDrift(trial, { workers: 'w0,w1' }))).found.map(([, tensor]) => tensor)).toEqual([
    'a.weight',
    'a.bias',
  ])
})

it.each<readonly [string, Values, string]>([
  ['names', { 'a.weight': [1, 2, 3], 'b.weight': [1] }, 'w1 lacks a.bias of w0 at step 0, as where a model is split'],
  ['shapes', { 'a.weight': [1, 9], 'a.bias': [5, 5] }, 'a.weight has another shape in w1, as where a model is split'],
])('does not judge workers with other %s, and says so', async (_, other, reason) => {
  const rule = new ReplicaDrift(await trialOf([{ w0: SOUND, w1: other }]))
  expect(await judged(rule)).toMatchObject({ found: [], missing: [`copies of a model: ${reason}`], judged: 0 })
})

it('does not judge a worker alone, nor ranks between which a model is split', async () => {
  expect(ReplicaDrift.lacks(await trialOf([{ w0: SOUND }]))).toBe('several workers: there is one')
  const drifted = { ...SOUND, 'a.weight': [1, 2, 4] }
  for (const rank of ['mp_rank_00_00', 'zero_pp_rank_0_mp_rank_0', 'tp_rank_', 'pp']) {
    const trial = await trialOf([{ [`${rank}0`]: SOUND, [`${rank}1`]: drifted }])
    const missing = [expect.stringMatching(/^copies of a model: workers such as .*0 have parts of one\./)]
    expect(await judged(new ReplicaDrift(trial))).toMatchObject({ found: [], missing, judged: 0 })
    const { found } = await judged(new ReplicaDrift(trial, { collection_names: 'weights' }))
    expect(found).toEqual([[0, 'a.weight', null, 1]])
  }
})

it('leaves out experts, which may be of one worker each, and says so', async () => {
  const with2 = (expert: number) => ({ ...SOUND, 'mlp.experts.0.weight': [expert] })
  const rule = new ReplicaDrift(await trialOf([{ w0: with2(1), w1: with2(2) }]))
  expect(await judged(rule)).toMatchObject({
    found: [],
    missing: ['tensor_regex to compare experts, which may be different in each worker, such as "mlp.experts.0.weight"'],
    judged: 1,
  })
})

it('takes ranks of a checkpoint for copies only where most weights are equal', async () => {
  const shard = { 'a.weight': [4, 5, 6], 'b.weight': [7], 'a.bias': [1] }
  const copy = { 'a.weight': [1, 2, 3], 'b.weight': [7], 'a.bias': [1] }
  const parts = new ReplicaDrift(await checkpointOf({ rank_0: { ...copy, 'a.bias': [2] }, rank_1: shard }))
  expect(await judged(parts)).toMatchObject({
    found: [],
    missing: [
      'copies of a model: most weights differ between workers from step 7 on, as where each saves a part of its own',
    ],
    judged: 0,
  })
  const copies = new ReplicaDrift(await checkpointOf({ rank_0: copy, rank_1: { ...copy, 'a.bias': [1.5] } }))
  expect((await judged(copies)).found).toEqual([[7, 'a.bias', null, 0.5]])
})

it('judges the norms of tensor-parallel ranks, and nothing else of theirs', async () => {
  const rank = (norm: number, part: number) => ({
    'norm.weight': [1, norm],
    'layer_norm.bias': [2],
    'a.weight': [part],
  })
  const trial = await trialOf([{ mp_rank_00: rank(1, 5), mp_rank_01: rank(1.5, 6) }])
  expect((await judged(new ReplicaDrift(trial))).found).toEqual([[0, 'norm.weight', null, 0.5]])
})

it.runIf(hasCheckpoints)('finds the drift of a norm between the ranks of Megatron', async () => {
  const trial = await createTrial(join(CHECKPOINTS, 'trials/megatron'))
  const { messages } = await judged(new ReplicaDrift(trial))
  expect(messages).toEqual([
    'model.model.norm.weight of mp_rank_00 and mp_rank_01 differs in 1 of 48 elements, by up to 0.00100',
  ])
})
