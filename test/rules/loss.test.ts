/** What is said of a loss: that it diverges, stands still or creeps up, and that it was not judged. */

import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  createTrial,
  evaluate,
  LossNotDecreasing,
  type Mode,
  type Rule,
  RuleRegistry,
  type Trial,
  trialOverview,
} from '#dist/index.js'
import { TrialWriter } from '../../fixtures/event-writer.js'
import { trialscan } from '../cli/run.js'
import { scratchDirectory } from '../support/scratch.js'
import { truths } from '../support/truth.js'

const scratch = scratchDirectory('loss')

interface Loss {
  readonly loss: number
  readonly mode?: Mode
}

/** @param interval of the steps that are saved */
function write(losses: readonly (number | Loss)[], interval = 1): string {
  const directory = mkdtempSync(join(scratch, 'trial-'))
  const writer = new TrialWriter(directory, { collections: { losses: { includeRegex: ['loss'] } } })
  const next: Record<string, number> = {}
  losses.forEach((given, i) => {
    const { loss, mode = 'TRAIN' } = typeof given === 'number' ? { loss: given } : given
    next[mode] = (next[mode] ?? -1) + 1
    const tensors = [{ name: 'loss', dtype: 'float64', shape: [], values: [loss] }] as const
    writer.step({ step: i * interval, mode, modeStep: next[mode]! * interval, tensors })
  })
  writer.end()
  return directory
}

const trialOf = (losses: readonly (number | Loss)[], interval?: number): Promise<Trial> =>
  createTrial(write(losses, interval))

/** A trial whose collection `losses` has one tensor, which grows. */
function rising(name: string): Promise<Trial> {
  const directory = mkdtempSync(join(scratch, 'rising-'))
  const writer = new TrialWriter(directory, { collections: { losses: { includeRegex: ['.'] } } })
  for (let step = 0; step < 8; step++) {
    const tensors = [{ name, dtype: 'float64', shape: [], values: [1.2 ** step] }] as const
    writer.step({ step, mode: 'TRAIN', modeStep: step, tensors })
  }
  writer.end()
  return createTrial(directory)
}

const series = (count: number, loss: (i: number) => number) => Array.from({ length: count }, (_, i) => loss(i))
const noise = (i: number) => 0.01 * ((i * 7) % 5)

async function firesAt(rule: Rule): Promise<{ readonly steps: number[]; readonly messages: string[] }> {
  const { findings } = await evaluate(rule, { threads: 0, follow: false })
  return { steps: findings.map(({ step }) => step), messages: findings.map(({ message }) => message) }
}

const chosen = (trial: Trial) => new LossNotDecreasing(trial, LossNotDecreasing.suggested)

describe('a loss that check judges', () => {
  it('has only risen: that needs no fifty steps', async () => {
    const { steps, messages } = await firesAt(chosen(await trialOf(series(45, i => 0.5 * 1.2 ** i))))
    expect([steps[0], steps.at(-1)]).toEqual([4, 44])
    expect(messages[0]).toBe('loss has only risen since step 0: it rose by 107.4 %, from 0.5 to 1.037')
    expect(messages.at(-1)).toBe('loss has only risen since step 0: it rose to 3048 times that, from 0.5 to 1524')
  })

  it('stands still: nor does that', async () => {
    const { steps, messages } = await firesAt(chosen(await trialOf(series(8, () => 2.25))))
    expect(steps).toEqual([5, 6, 7])
    expect(messages[0]).toBe('loss stands still at 2.25 since step 0')
  })

  it('has grown beyond all that it was, though not at every step', async () => {
    const { messages } = await firesAt(chosen(await trialOf([1, 0.9, 1.1, 30, 70, 50])))
    expect(messages).toEqual([
      'loss has grown far beyond its level: its last 3 values are 30 or more, its first 3 were 1.1 or less',
    ])
  })

  it('creeps up after it had fallen', async () => {
    const falls = series(20, i => 2 * 0.9 ** i)
    const { steps, messages } = await firesAt(chosen(await trialOf([...falls, ...series(14, i => 0.3 * 1.01 ** i)])))
    expect(steps).toEqual([31, 32, 33])
    expect(messages[0]).toBe(
      'loss has risen 12 times in a row since step 19: it rose by 23.88 %, from 0.2702 to 0.3347',
    )
  })

  it.each([
    ['falls', series(45, i => 2 - i / 50)],
    ['goes up and down', series(45, i => 2 + noise(i))],
    ['is zero, as one that was never used', series(45, () => 0)],
    ['rises by less than a rounding', series(45, i => 2 + i * 1e-12 + (i % 2) * 1e-3)],
    ['rose for a few steps', [1, 1.01, 1.02]],
  ])('is not accused where it %s', async (_, losses) => {
    expect((await firesAt(chosen(await trialOf(losses)))).steps).toEqual([])
  })

  it('is NaN since the step at which it last became so', async () => {
    const { NaN: nan } = Number
    const { steps, messages } = await firesAt(chosen(await trialOf([1, nan, 0.5, 0.5, 0.5, nan, nan], 10)))
    expect(steps).toEqual([10, 50, 60])
    expect(messages).toEqual([10, 50, 50].map(step => `loss is NaN since step ${step}`))
  })

  it.each(['HeatmapLoss_output_0', 'feature_map_loss', 'grad_acc_loss', 'AUCMLoss_output_0', 'losses/mapping', 'loss'])(
    'is %s',
    async name => {
      expect((await firesAt(chosen(await rising(name)))).steps[0]).toBe(4)
    },
  )

  it.each([
    'mAP',
    'val_mAP50',
    'val_auc',
    'valAUC',
    'train-aucpr',
    'train_acc',
    'acc@1',
    'accuracy',
    'categorical_accuracy:0',
    'eval/map_50',
    'Loss/accuracy',
    'loss/trainacc',
    'loss_acc',
    'valmap',
    'train-ndcg@5',
    'validation-pre@2',
  ])('is not %s: there, larger is better', async name => {
    expect((await firesAt(chosen(await rising(name)))).steps).toEqual([])
  })

  it('is one value for each run of EVAL: nothing is trained in it', async () => {
    const train = (loss: number): Loss => ({ loss, mode: 'TRAIN' })
    const run = (loss: number) => series(60, () => loss).map((loss): Loss => ({ loss, mode: 'EVAL' }))
    const losses = [2, 1.8, 1.6].flatMap(loss => [train(loss), ...run(loss)])
    expect((await firesAt(chosen(await trialOf(losses)))).steps).toEqual([])
  })
})

describe('a loss that was not judged', () => {
  const losses = series(45, i => 2 + noise(i))

  it('is said to be that, by check', async () => {
    const { code, stdout } = await trialscan('check', write(losses), '--format', 'table')
    expect(code).toBe(0)
    expect(stdout).toContain('LossNotDecreasing needs 50 steps of a loss: loss has 45, from 0 to 44\n')
    const [, found] = /Nothing found by\n((?: {2}.*\n)*)/.exec(stdout)!
    expect(found).not.toContain('LossNotDecreasing')
    const [, rules] = /: (\d+) rules judged/.exec(stdout)!
    expect(found!.split(',')).toHaveLength(Number(rules))
  })

  it('is said to be that, by check that was asked for it, whose exit code tells', async () => {
    const { code, stderr } = await trialscan('check', write(losses.slice(0, 6)), '--rule', 'LossNotDecreasing')
    expect([code, stderr]).toEqual([
      5,
      expect.stringContaining(
        'LossNotDecreasing had nothing to judge: expected two values of a loss that are 10 steps',
      ),
    ])
  })

  it('is said to be that, by summary', async () => {
    const { stdout } = await trialscan('summary', write(losses))
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain(
      'not judged by LossNotDecreasing, which needs 50 steps of a loss: loss has 45, from 0 to 44',
    )
  })

  it('is in part, where that of another mode was', async () => {
    const both: (number | Loss)[] = [
      ...series(60, i => 2 - i / 100),
      ...[2, 1, 0, -1].map((loss): Loss => ({ loss, mode: 'EVAL' })),
    ]
    const { missing } = await evaluate(chosen(await trialOf(both)), { threads: 0, follow: false })
    expect(missing).toMatchObject([{ partial: true, missing: '50 steps of a loss: loss has 4, from 0 to 3' }])
  })
})

describe('LossNotDecreasing with its own defaults', () => {
  it('finds growth of three percent a judgement, whose sum is much', async () => {
    const { steps, messages } = await firesAt(
      new LossNotDecreasing(
        await trialOf(
          series(40, i => 1.03 ** i),
          10,
        ),
      ),
    )
    expect(steps.slice(0, 3)).toEqual([20, 40, 60])
    expect(messages[0]).toBe('loss rose by 6.09 % since step 0, from 1 to 1.061')
  })

  it('forgives what goes down in between', async () => {
    const { steps } = await firesAt(new LossNotDecreasing(await trialOf([1, 1.03, 0.99, 1.02, 0.98, 1.01, 0.97], 10)))
    expect(steps).toEqual([])
  })

  it('just checks that the loss goes down with min_difference of 0', async () => {
    const options = { min_difference: 0, num_steps: 1 }
    const { steps } = await firesAt(new LossNotDecreasing(await trialOf([1, 0.999999, 1, 1, 1.03, 1.02]), options))
    expect(steps).toEqual([2, 3, 4])
  })
})

describe.each(truths)('$name', ({ directory }) => {
  it('has one verdict, from check and from summary', async () => {
    const trial = await createTrial(directory, { requireCollections: false })
    const { rules } = new RuleRegistry().all(trial)
    const { findings, missing } = await evaluate(rules, { follow: false, threads: 0 })
    const overview = await trialOverview(trial)
    const idle = missing.filter(({ partial }) => !partial).map(({ rule }) => rule)
    const names = rules.map(({ ruleName }) => ruleName)
    expect(overview.findings).toHaveLength(findings.length)
    expect(overview.rules).toEqual(names.filter(name => !idle.includes(name)))
    expect(overview.notJudged.map(({ rule }) => rule)).toEqual(idle)
    await trial.close()
  })
})
