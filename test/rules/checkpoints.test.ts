/** Rules over checkpoints: rows that never change, norms that explode, updates as norms, and the learning rate that explains them. */

import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import {
  BUILTIN_RULES,
  createTrial,
  evaluate,
  type Rule,
  RuleRegistry,
  type Trial,
  WeightUpdateRatio,
} from '#dist/index.js'
import { type SavedTensor, safetensors, tensorOf, writeFile } from '../../fixtures/checkpoint-writer.js'
import { trialscan } from '../cli/run.js'
import { CHECKPOINTS, hasCheckpoints } from '../support/checkpoints.js'
import { ROOT } from '../support/golden.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('rules-checkpoints')
const EMBEDDING = 'model.embed_tokens.weight'
const PROJECTION = 'model.layers.0.mlp.up_proj.weight'
const MOMENT = 'optimizer.state.0.exp_avg'

/** Checkpoints at steps 10, 20, … @param tensorsAt those of each */
async function runOf(
  steps: number,
  tensorsAt: (step: number) => readonly SavedTensor[],
  rates?: readonly number[],
): Promise<Trial> {
  const directory = mkdtempSync(join(scratch, 'run-'))
  for (let i = 1; i <= steps; i++) {
    writeFile(join(directory, `checkpoint-${10 * i}/model.safetensors`), safetensors(tensorsAt(10 * i)))
    if (rates === undefined) continue
    const log_history = rates
      .slice(0, i)
      .map((learning_rate, k) => ({ step: 10 * (k + 1), loss: 1 / (k + 1), learning_rate }))
    writeFile(join(directory, `checkpoint-${10 * i}/trainer_state.json`), Buffer.from(JSON.stringify({ log_history })))
  }
  return createTrial(directory)
}

/** A matrix whose rows move with the steps, but for those that stand still. */
function matrix(
  name: string,
  rows: number,
  columns: number,
  step: number,
  still: readonly number[] = [],
  dtype = 'F32',
) {
  const value = (i: number) => (i % 7) + 1 + (still.includes(Math.floor(i / columns)) ? 0 : step / 8)
  return tensorOf(
    name,
    dtype,
    [rows, columns],
    Array.from({ length: rows * columns }, (_, i) => value(i)),
  )
}

async function found(trial: Trial, name: string, options: Readonly<Record<string, unknown>> = {}) {
  const Rule = BUILTIN_RULES.find(rule => rule.name === name)!
  const { findings, missing } = await evaluate(new Rule(trial, options) as Rule, { threads: 0 })
  return { told: findings.map(({ step, message }) => `${step}: ${message}`), findings, missing }
}

it('tells rows of weights that never change while others do, of every dtype of whole bytes', async () => {
  for (const dtype of ['F32', 'F64', 'BF16', 'I16']) {
    const still = dtype === 'I16' ? [] : [2, 5, 6, 9, 11]
    const trial = await runOf(4, step => [matrix(EMBEDDING, 12, 3, step, still, dtype), matrix(PROJECTION, 4, 2, step)])
    const told =
      still.length === 0
        ? []
        : [30, 40].map(
            (step, i) =>
              `${step}: 5 of 12 rows of ${EMBEDDING} have not changed since step 10, over ${3 + i} steps: 2, 5, 6, 9 and 1 more`,
          )
    expect((await found(trial, 'UnchangedRows')).told, dtype).toEqual(told)
  }
})

it('does not take a row that went and came back, a whole tensor, a vector or a few rows for unchanged ones', async () => {
  const back = (step: number) => (step === 20 ? 1 : 0)
  const trial = await runOf(3, step => [
    tensorOf(EMBEDDING, 'F32', [2, 2], [back(step), 0, step, 0]),
    tensorOf(PROJECTION, 'F32', [2, 2], [1, 2, 3, 4]),
    tensorOf('model.norm.weight', 'F32', [3], [1, 1, step]),
    matrix('lm_head.weight', 200, 1, step, [7]),
  ])
  expect((await found(trial, 'UnchangedRows')).told).toEqual([])
  expect((await found(trial, 'UnchangedRows', { threshold: 0.5 })).told).toEqual([
    '30: 1 of 200 rows of lm_head.weight has not changed since step 10, over 3 steps: 7',
  ])
})

it('tells a weight that stops while another goes on, and none where all stop', async () => {
  const stopped = (step: number) => matrix(PROJECTION, 4, 2, Math.min(step, 20))
  const told = [50, 60].map(
    (step, i) => `${step}: ${PROJECTION} has not changed since step 20, over ${3 + i} steps, while other weights have`,
  )
  const one = await runOf(6, step => [stopped(step), matrix('lm_head.weight', 4, 2, step)])
  expect((await found(one, 'UnchangedRows')).told).toEqual(told)
  const moment = (step: number) => tensorOf(MOMENT, 'F32', [4, 2], Array(8).fill(step))
  const all = await runOf(6, step => [stopped(step), matrix('lm_head.weight', 4, 2, Math.min(step, 30)), moment(step)])
  expect((await found(all, 'UnchangedRows')).told).toEqual([])
})

it('does not take a weight that was saved more often for one that goes on', async () => {
  // One stands still since step 20, the other, saved at a third of the steps, since step 30.
  const trial = await runOf(12, step => [
    matrix(PROJECTION, 4, 2, Math.min(step, 20)),
    ...(step % 30 === 0 ? [matrix('lm_head.weight', 4, 2, Math.min(step, 60))] : []),
  ])
  const { told } = await found(trial, 'UnchangedRows')
  expect(told.map(one => Number(one.split(':')[0])).every(step => step <= 70)).toBe(true)
})

it('tells rows of moments that are always zero, and not those that were not once', async () => {
  const trial = await runOf(3, step => [
    matrix(PROJECTION, 4, 2, step),
    tensorOf(MOMENT, 'F32', [4, 2], [step, 0, 0, -0, 0, 0, step === 20 ? 1 : 0, 0]),
  ])
  expect((await found(trial, 'UnchangedRows')).told).toEqual([
    `30: 2 of 4 rows of ${MOMENT} are zero at all 3 steps since step 10: 1, 2`,
  ])
})

it('reads rows of a tensor in parts as it reads them whole', async () => {
  const [rows, columns, still] = [5, 1_500_001, [1, 4]]
  const trial = await runOf(2, step => [matrix(EMBEDDING, rows, columns, step, still, 'F32')])
  const rule = new (BUILTIN_RULES.find(({ name }) => name === 'UnchangedRows')!)(trial, { num_steps: 2 }) as Rule
  const { findings } = await evaluate(rule, { threads: 0, memory: 96 << 20 })
  expect(findings.map(({ message }) => message)).toEqual([
    `2 of 5 rows of ${EMBEDDING} have not changed since step 10, over 2 steps: 1, 4`,
  ])
})

it('tells a norm that explodes from one checkpoint to the next, and none that grows or is not finite', async () => {
  const exploding: Readonly<Record<number, number>> = { 10: 1, 20: 3, 30: 300, 40: Number.NaN }
  const trial = await runOf(4, step => [
    tensorOf(PROJECTION, 'F32', [2, 2], Array(4).fill(exploding[step]!)),
    tensorOf(EMBEDDING, 'F32', [2, 2], Array(4).fill(3 ** (step / 10))),
    // Weights that begin at zero, as those of adapters do.
    tensorOf('lora_B.weight', 'F32', [2, 2], Array(4).fill(step === 10 ? 0 : 0.1)),
  ])
  expect((await found(trial, 'ExplodingNorm')).told).toEqual([`30: ‖${PROJECTION}‖ is 600, at step 20 it was 6`])
})

it('judges updates of checkpoints by their norms, and others as SageMaker does', async () => {
  const [before, after] = [
    [3, 0, 0, 4],
    [3, 0, 0, 10],
  ]
  const trial = await runOf(2, step => [tensorOf(PROJECTION, 'F32', [2, 2], step === 10 ? before : after)])
  const ratio = async (options: object) =>
    (await evaluate(new WeightUpdateRatio(trial, { large_threshold: 0, epsilon: 0, ...options }), { threads: 0 }))
      .findings[0]!.value
  expect(await ratio({})).toBeCloseTo(6 / 5, 12)
  expect(await ratio({ norm: 'l1' })).toBeCloseTo(6 / 7, 12)
})

it('names the learning rate beside what it explains', async () => {
  const rates = [1e-3, 1e-3, 0.5, 0.5]
  const trial = await runOf(4, step => [tensorOf(PROJECTION, 'F32', [2, 2], Array(4).fill(step < 30 ? 1 : 500))], rates)
  const { stdout } = await trialscan('check', trial.path, '--format', 'table')
  expect(stdout).toContain('ExplodingNorm at step 30')
  expect(stdout.replaceAll(/\s+/g, ' ')).toContain(
    'the learning rate learning_rate is 0.5 from step 30 on, 500 times what it was before',
  )
})

it('is chosen by check for checkpoints alone', async () => {
  const names = (trial: Trial) => new RuleRegistry().all(trial, { logger: null }).rules.map(({ ruleName }) => ruleName)
  const [run, other] = [
    await createTrial(join(ROOT, 'fixtures/checkpoints/run')),
    await createTrial(join(ROOT, 'fixtures/trials/mlp-vanishing')),
  ]
  expect(names(run)).toEqual(expect.arrayContaining(['UnchangedRows', 'ExplodingNorm']))
  for (const name of ['UnchangedRows', 'ExplodingNorm']) expect(names(other)).not.toContain(name)
})

it.runIf(hasCheckpoints).each(['hf-run', 'st-run', 'npz-run', 'dcp', 'torch-2.13/dcp', 'megatron'])(
  'finds nothing in %s',
  async name => {
    const trial = await createTrial(join(CHECKPOINTS, 'trials', name))
    for (const rule of ['UnchangedRows', 'ExplodingNorm']) expect((await found(trial, rule)).told).toEqual([])
  },
)

it.runIf(hasCheckpoints).each([
  ['base'],
  ['tuned'],
  ['fp8-block'],
  ['st-run'],
  ['npz-run'],
  ['sglang-dump'],
  // Before it goes wrong.
  ['hf-run', '--steps', ':250'],
  ['dcp', '--steps', ':150'],
  ['torch-2.13/dcp', '--steps', ':150'],
])('no rule at all fires on %s', async (name, ...steps) => {
  const { code, stdout } = await trialscan('check', join(CHECKPOINTS, 'trials', name), ...steps, '--format', 'table')
  expect([code, stdout]).toEqual([
    0,
    expect.stringMatching(/judged \d+ steps?( of 2 workers)? and found nothing wrong/),
  ])
})
