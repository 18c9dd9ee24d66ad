/** evaluate: any number of rules over any number of trials, in one pass, and what becomes of what goes wrong. */

import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it, vi } from 'vitest'
import {
  AllZero,
  ClassImbalance,
  closePools,
  createTrial,
  DeadRelu,
  type EvaluateOptions,
  ExplodingTensor,
  evaluate,
  NLPSequenceRatio,
  PoorWeightInitialization,
  Rule,
  RuleEvaluationConditionMet,
  RuleRegistry,
  SimilarAcrossRuns,
  StalledTrainingRule,
  type Trial,
  UnchangedTensor,
  VanishingGradient,
  WeightUpdateRatio,
} from '#dist/index.js'
import { LocalStore } from '#dist/storage/local/local-store.js'
import { copyTrial, corruptions, editEventFile, locate, PLAIN_TRIAL } from '../../fixtures/corrupt.js'
import { type StepTensor, TrialWriter } from '../../fixtures/event-writer.js'
import { fixtureTrial } from '../support/golden.js'
import { LiveWriter } from '../support/live-writer.js'
import { part, whenLong } from '../support/part.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('evaluate')

afterAll(closePools)

const COLLECTIONS = { weights: { includeRegex: ['^[^/]*weight$'] }, gradients: { includeRegex: ['^gradient'] } }

async function trialOf(steps: Readonly<Record<number, readonly StepTensor[]>>, ended = true): Promise<Trial> {
  const directory = mkdtempSync(join(scratch, 'trial-'))
  const writer = new TrialWriter(directory, { collections: COLLECTIONS, checksum: 'true' })
  for (const [step, tensors] of Object.entries(steps)) writer.step({ step: Number(step), mode: 'TRAIN', tensors })
  if (ended) writer.end()
  return createTrial(directory)
}

const scalar = (name: string, value: number): StepTensor => ({ name, dtype: 'float32', shape: [1], values: [value] })
const weights = (count: number) =>
  trialOf(Object.fromEntries(Array.from({ length: count }, (_, step) => [step, [scalar('fc.weight', 1)]])))

/** A running job, which has written one of `count` steps; `writeNext` writes the next one, and ends it after the last. */
async function running(count: number, tensorsAt = (step: number): StepTensor[] => [scalar('a', step)]) {
  const directory = mkdtempSync(join(scratch, 'running-'))
  const writer = new TrialWriter(directory, { collections: COLLECTIONS })
  let step = 0
  const writeNext = (): void => {
    if (step < count) writer.step({ step, mode: 'TRAIN', tensors: tensorsAt(step) })
    else writer.end()
    step++
  }
  writeNext()
  return { trial: await createTrial(directory), writeNext }
}

/** Fires at every step. */
class Always extends Rule {
  invokeAtStep(): boolean {
    return true
  }
}

describe('what it gives', () => {
  it('findings in the order of steps, then of rules, each told at once', async () => {
    const trial = await weights(3)
    const told: string[] = []
    const onFinding: EvaluateOptions['onFinding'] = ({ name, step }) => told.push(`${name} ${step}`)
    const { findings } = await evaluate([new Always(trial, { name: 'a' }), new Always(trial, { name: 'b' })], {
      onFinding,
    })
    expect(told).toEqual(['a 0', 'b 0', 'a 1', 'b 1', 'a 2', 'b 2'])
    expect(findings.map(({ name, step }) => `${name} ${step}`)).toEqual(told)
    expect(findings[0]).toEqual({
      rule: 'Always',
      name: 'a',
      trial: trial.name,
      step: 0,
      mode: 'TRAIN',
      modeStep: 0,
      tensor: null,
      worker: null,
      value: null,
      threshold: null,
      message: 'the condition of a is met',
    })
  })

  it('keeps to the range of steps, its own and that of a rule', async () => {
    const trial = await weights(10)
    const rule = new Always(trial, { startStep: 3, endStep: 9 })
    const { findings, complete, stats } = await evaluate(rule, { startStep: 2, endStep: 6 })
    expect(findings.map(({ step }) => step)).toEqual([3, 4, 5])
    expect(complete).toBe(true)
    expect(stats.steps).toBe(4)
  })

  it.each<[EvaluateOptions, number[]]>([
    [{ steps: { from: 7 } }, [7, 8, 9]],
    [{ steps: { from: -2 } }, [8, 9]],
    [{ steps: [0, { from: 2, to: 9, stride: 3 }, -1] }, [0, 2, 5, 8, 9]],
    [{ steps: [1, 4, 7], startStep: 2, endStep: 7 }, [4]],
    [{ modeSteps: [-1] }, [8, 9]],
    [{ modeSteps: { from: 0, to: 2 } }, [0, 1, 4, 5]],
    [{ steps: { from: 0, to: 4 }, modeSteps: [1, 3] }, [1, 3]],
    [{ steps: [99] }, []],
  ])('keeps to the steps that %j means, of each mode for itself', async (options, expected) => {
    const directory = mkdtempSync(join(scratch, 'trial-'))
    const writer = new TrialWriter(directory, { collections: COLLECTIONS })
    // TRAIN 0 to 5 are global 0 to 3, 6 and 8; EVAL 0 to 3 are global 4, 5, 7 and 9.
    const counts = { TRAIN: 0, EVAL: 0 }
    for (const [step, letter] of [...'TTTTEETETE'].entries()) {
      const mode = letter === 'T' ? 'TRAIN' : 'EVAL'
      writer.step({ step, mode, modeStep: counts[mode]++, tensors: [scalar('fc.weight', 1)] })
    }
    writer.end()
    const trial = await createTrial(directory)
    for (const follow of [true, false]) {
      const { findings, stats, complete } = await evaluate(new Always(trial), { ...options, follow })
      expect([findings.map(({ step }) => step), stats.steps]).toEqual([expected, expected.length])
      expect(complete).toBe(true)
    }
    await expect(evaluate(new Always(trial), { steps: { from: 5, to: 3 } })).rejects.toThrow(
      /expected steps to be a step, a range/,
    )
  })

  it('judges a global step where it is meant of one of the workers, which are in modes of their own', async () => {
    const directory = mkdtempSync(join(scratch, 'trial-'))
    const writer = new TrialWriter(directory, { numWorkers: 2 })
    for (const [worker, modes] of [
      ['worker_0', 'TTETT'],
      ['worker_1', 'TTTTT'],
    ] as const) {
      for (const [step, letter] of [...modes].entries()) {
        const mode = letter === 'E' ? 'EVAL' : 'TRAIN'
        const modeStep = [...modes.slice(0, step)].filter(before => before === letter).length
        writer.step({ step, worker, mode, modeStep, tensors: [scalar('a', 1)] })
      }
    }
    writer.end()
    const trial = await createTrial(directory)
    const judged = async (only: number[]) =>
      (await evaluate(new Always(trial), { modeSteps: only })).findings.map(({ step }) => step)
    expect([await judged([3]), await judged([4]), await judged([0])]).toEqual([[3, 4], [4], [0, 2]])
  })

  it('lets rules look back at steps that are left out', async () => {
    const trial = await weights(10)
    const rule = new UnchangedTensor(trial, { tensor_regex: '.*', num_steps: '3' })
    const { findings } = await evaluate(rule, { steps: [5] })
    expect(findings.map(({ message }) => message)).toEqual(['fc.weight has not changed over the steps 3, 4, 5'])
  })

  it('tells how far it is', async () => {
    const onProgress = vi.fn()
    await evaluate(new Always(await weights(4)), { onProgress })
    expect(onProgress).toHaveBeenLastCalledWith({ doneSteps: 4, totalSteps: 4, readBytes: 0, findings: 4 })
  })

  it('steps in windows of a thousand judgements, though they ask nothing', async () => {
    class Never extends Rule {
      invokeAtStep(): boolean {
        return false
      }
    }
    const trial = await weights(10)
    const onProgress = vi.fn()
    await evaluate(
      Array.from({ length: 300 }, () => new Never(trial)),
      { onProgress },
    )
    const done = onProgress.mock.calls.map(([{ doneSteps }]) => doneSteps)
    expect(done).toEqual([4, 8, 10])
  })

  it('judges several trials, step by step', async () => {
    const trials = [await weights(2), await weights(3)]
    const { findings } = await evaluate(trials.map((trial, i) => new Always(trial, { name: `${i}` })))
    expect(findings.map(({ name, step }) => `${name} ${step}`)).toEqual(['0 0', '1 0', '0 1', '1 1', '1 2'])
  })

  it('counts in the report of a rule', async () => {
    const rule = new AllZero(await weights(3), { tensor_regex: 'weight', threshold: '0' })
    await evaluate(rule)
    expect(rule.report).toMatchObject({ ruleTriggered: 3, violations: 3, datapoints: 3 })
    expect(JSON.parse(rule.report.ruleParameters)).toMatchObject({ threshold: 0, tensor_regex: ['weight'] })
  })

  const fixtures = ['mlp-vanishing', 'cnn-raw-and-reductions', 'workers-4', 'xgb-cancer']
  it.each(part(fixtures, name => name === 'workers-4'))(
    'the same of %s, whatever the threads and the memory',
    async name => {
      const trial = await createTrial(fixtureTrial(name).directory)
      const registry = new RuleRegistry()
      const rules = () => [
        ...registry.all(trial).rules,
        new UnchangedTensor(trial, { tensor_regex: '.*', num_steps: '2', rtol: '0.1' }),
        new AllZero(trial, { tensor_regex: '.*', threshold: '0' }),
        new NLPSequenceRatio(trial, { tensor_regex: '.*', token_thresholds_percent: '10' }),
      ]
      const foundBy = async (options: EvaluateOptions) =>
        (await evaluate(rules(), { ...options, follow: false })).findings.map(finding => JSON.stringify(finding))
      const expected = await foundBy({ threads: 0 })
      expect(expected).not.toEqual([])
      for (const threads of [0, 1, 2]) expect(await foundBy({ threads, memory: 4 * 2 ** 20 })).toEqual(expected)
    },
  )

  it('tells how far it is after every window, and never goes back', async () => {
    const done: number[] = []
    const { trial, writeNext } = await running(4)
    const onProgress = ({ doneSteps }: { doneSteps: number }) => {
      done.push(doneSteps)
      writeNext()
    }
    await evaluate(new Always(trial), { onProgress, follow: true, pollMs: 5 })
    expect(done).toEqual([1, 2, 3, 4])
  })

  it.each([{ startStep: -1 }, { endStep: 1.5 }, { threads: -1 }, { memory: 5 }])('refuses %j', async options => {
    await expect(evaluate(new Always(await weights(1)), options)).rejects.toThrow('expected')
  })
})

it('counts the steps that were judged, apart from those that were gone through', async () => {
  const trial = await createTrial(fixtureTrial('mlp-vanishing').directory)
  const steps = async (...rules: Rule[]) => {
    const { stats } = await evaluate(rules, { threads: 0 })
    return [stats.judged, stats.steps]
  }
  expect(await steps(new VanishingGradient(trial, { mode: 'TRAIN' }))).toEqual([9, 15])
  // No gradients are saved in evaluation.
  expect(await steps(new VanishingGradient(trial, { mode: 'EVAL' }))).toEqual([0, 15])
  expect(await steps(new VanishingGradient(trial), new ExplodingTensor(trial))).toEqual([15, 15])
  expect(await steps(new DeadRelu(trial))).toEqual([0, 15])
  expect(await steps(new Always(trial))).toEqual([15, 15])
  expect(await steps(new VanishingGradient(trial, { mode: 'TRAIN', startStep: 20 }))).toEqual([7, 15])
  await trial.close()
})

describe('what is missing', () => {
  it('is said with what there is instead', async () => {
    const { directory } = fixtureTrial('mlp-vanishing')
    const trial = await createTrial(directory)
    const { missing, findings } = await evaluate([
      new WeightUpdateRatio(trial),
      new AllZero(trial, { tensor_regex: '.*gradeint.*' }),
      new DeadRelu(trial),
    ])
    expect(findings).toEqual([])
    expect(missing.map(({ rule, missing }) => `${rule}: ${missing}`)).toEqual([
      expect.stringMatching(
        /^WeightUpdateRatio: tensors of the collection "weights"; the trial has .*gradients \(20\)/,
      ),
      expect.stringMatching(/^AllZero: tensors that match "\.\*gradeint\.\*"; .*did you mean "gradient"\?$/),
      expect.stringMatching(/^DeadRelu: tensors that match "\.\*relu_output"/),
    ])
  })

  it('names values of which only reductions were saved', async () => {
    const trial = await trialOf({
      0: [{ name: 'fc.weight', reductions: { mean: 1, abs_max: 0 } }],
      1: [{ name: 'fc.weight', reductions: { mean: 1, abs_max: 0 } }],
    })
    const { missing, findings } = await evaluate([
      new WeightUpdateRatio(trial),
      new AllZero(trial, { collection_names: 'weights' }),
    ])
    expect(missing).toEqual([
      expect.objectContaining({ missing: expect.stringContaining('only reductions were saved') }),
    ])
    // The largest absolute value tells it.
    expect(findings.map(({ rule, step }) => `${rule} ${step}`)).toEqual(['AllZero 0', 'AllZero 1'])
  })

  it('is said of a rule of one’s own that asks for a tensor nobody saved', async () => {
    class Wants extends Rule {
      override setRequiredTensors(step: number): void {
        this.reqTensors.add('fc.wieght', [step])
      }
      invokeAtStep(): boolean {
        return true
      }
    }
    const { missing, findings } = await evaluate(new Wants(await weights(3)))
    expect(findings).toEqual([])
    expect(missing[0]!.missing).toMatch(
      /"fc.wieght" was not saved .* did you mean "fc.weight"\? \(and at 2 more steps\)$/,
    )
  })
})

describe('a pattern of a collection that is refused', () => {
  const written = async (collections: Readonly<Record<string, { includeRegex: string[] }>>) => {
    const directory = mkdtempSync(join(scratch, 'refused-'))
    const writer = new TrialWriter(directory, { collections })
    writer.step({ step: 0, tensors: [scalar('loss', 1), { ...scalar('gradient/fc.weight', 0) }] })
    writer.end()
    return createTrial(directory)
  }

  it('is no matter for rules that don’t ask for it', async () => {
    const trial = await written({ ...COLLECTIONS, custom: { includeRegex: ['(a)\\1'] } })
    const { findings, missing, problems } = await evaluate([new DeadRelu(trial), new VanishingGradient(trial)])
    expect(findings.map(({ rule }) => rule)).toEqual(['VanishingGradient'])
    expect(missing.map(({ rule, missing }) => [rule, missing])).toEqual([
      ['DeadRelu', expect.stringContaining('collections gradients (1)')],
    ])
    expect(problems).toEqual([])
  })

  it('ends the rules that do, and no others', async () => {
    const trial = await written({ losses: { includeRegex: ['loss'] }, gradients: { includeRegex: ['(a)\\1'] } })
    const rules = [new VanishingGradient(trial), new Always(trial)]
    const { findings, missing, problems } = await evaluate(rules)
    expect(findings.map(({ rule }) => rule)).toEqual(['Always'])
    const refusal = expect.stringContaining('backreference is not supported')
    expect(missing).toMatchObject([{ rule: 'VanishingGradient', missing: refusal }])
    expect(problems.map(({ error }) => error.code)).toEqual(['RuleFailed'])
  })
})

describe('what goes wrong', () => {
  const damage = corruptions.find(({ expect: { when, error, tensors, noticedAt } }) => {
    return when === 'read' && error === 'FormatError' && tensors.length === 1 && noticedAt !== 'full'
  })!

  it(`names a corrupt record once, and judges all else (${damage.name})`, async () => {
    const directory = join(scratch, 'corrupt')
    copyTrial(PLAIN_TRIAL, directory)
    damage.apply(directory)
    const trial = await createTrial(directory, { requireCollections: false })
    const all = () => [1, 2, 3].map(i => new AllZero(trial, { tensor_regex: '.*', threshold: '0', name: `${i}` }))
    const { problems, findings } = await evaluate(all(), { threads: 0, follow: false })
    expect(problems).toHaveLength(1)
    expect(problems[0]).toMatchObject({
      step: damage.expect.step,
      error: { fields: { tensor: damage.expect.tensors[0] } },
    })
    const { findings: good } = await evaluate(
      [1, 2, 3].map(i => new AllZero(trial, { tensor_regex: '.*', threshold: '0', name: `${i}` })),
      { threads: 1, follow: false },
    )
    expect(good).toEqual(findings)
    expect(findings.length).toBeGreaterThan(9)
  })

  it('names a corrupt record once, though reductions, counts, values and comparisons of it are asked for', async () => {
    const directory = join(scratch, 'corrupt-for-all')
    const writer = new TrialWriter(directory, { collections: COLLECTIONS, checksum: 'true' })
    for (const step of [0, 1, 2]) writer.step({ step, tensors: [scalar('labels', 1), scalar('sound', 1)] })
    writer.end()
    const { start_idx, length } = locate(directory, 1, 'labels')
    editEventFile(directory, 1, bytes => {
      bytes[start_idx + length - 5]! ^= 1
    })
    const trial = await createTrial(directory)
    const rules = [
      new ExplodingTensor(trial),
      new NLPSequenceRatio(trial, { tensor_regex: '.*', token_values: '1' }),
      new UnchangedTensor(trial, { tensor_regex: '.*', num_steps: '2' }),
      new ClassImbalance(trial),
    ]
    const { problems, findings } = await evaluate(rules, { checkLevel: 'full', threads: 0 })
    expect(problems.map(({ step, tensor, error }) => [step, tensor, error.code])).toEqual([
      [1, 'labels', expect.any(String)],
    ])
    expect(findings.map(({ rule, step, tensor }) => `${rule} ${step} ${tensor}`)).toEqual([
      'NLPSequenceRatio 0 labels',
      'NLPSequenceRatio 0 sound',
      'NLPSequenceRatio 1 sound',
      'UnchangedTensor 1 sound',
      'NLPSequenceRatio 2 labels',
      'NLPSequenceRatio 2 sound',
      'UnchangedTensor 2 sound',
    ])
  })

  describe('of tensors that are judged together', () => {
    const FULL = { checkLevel: 'full', threads: 0 } as const
    const floats = (name: string, values: readonly number[], shape = [values.length]): StepTensor => ({
      name,
      dtype: 'float32',
      shape,
      values,
    })

    /** A trial of one step, in which the record of a tensor is corrupt. */
    async function damaged(corrupt: string, ...tensors: StepTensor[]): Promise<Trial> {
      const directory = mkdtempSync(join(scratch, 'trial-'))
      const writer = new TrialWriter(directory, { collections: COLLECTIONS, checksum: 'true' })
      writer.step({ step: 0, mode: 'TRAIN', tensors })
      writer.end()
      const { start_idx, length } = locate(directory, 0, corrupt)
      editEventFile(directory, 0, bytes => {
        bytes[start_idx + length - 5]! ^= 1
      })
      return createTrial(directory)
    }

    const input = (i: number, deviation: number) => floats(`relu${i}_input_0`, [-deviation, deviation])

    it.each([false, true])('names the activation inputs that are lost (initial: %s)', async initial => {
      const trial = await damaged('relu1_input_0', input(0, 1), input(1, 2), input(2, 1))
      const rule = new PoorWeightInitialization(trial, { activation_inputs_regex: 'relu', initial })
      const { findings, problems } = await evaluate(rule, FULL)
      expect(findings).toEqual([])
      expect(problems.map(({ tensor }) => tensor)).toEqual(['relu1_input_0'])
    })

    it('does not compare variances across one that is lost', async () => {
      const inputs = [input(0, 1), input(1, 2), input(2, 4), input(3, 20)]
      const of = async (trial: Trial) => {
        const options = { activation_inputs_regex: 'relu', initial: true }
        return (await evaluate(new PoorWeightInitialization(trial, options), FULL)).findings.map(
          ({ message }) => message,
        )
      }
      const grown = /the variance of relu3_input_0 is 25 times that of relu2_input_0 before it/
      expect(await of(await damaged('relu1_input_0', ...inputs))).toEqual([expect.stringMatching(grown)])
      expect(await of(await damaged('relu1_input_0', ...inputs.slice(0, 3)))).toEqual([])
      // Nor across one that is not finite.
      const nan = floats('relu1_input_0', [Number.NaN, 1])
      expect(await of(await trialOf({ 0: [input(0, 1), nan, input(2, 20)] }))).toEqual([])
    })

    it('names gradients that are lost beside others', async () => {
      const trial = await damaged('gradient/a', floats('gradient/a', [-1, 1]), floats('gradient/b', [-1, 1]))
      const { findings, problems } = await evaluate(new PoorWeightInitialization(trial), FULL)
      expect([findings, problems.map(({ tensor }) => tensor)]).toEqual([[], ['gradient/a']])
    })

    it('counts one-hot labels whose predictions are lost', async () => {
      const rows = [0, 0, 0, 1, 1].map(label => [0, 1, 2].map(i => Number(i === label)))
      const labels = floats('labels', rows.flat(), [5, 3])
      const of = (trial: Trial, limit: number) =>
        evaluate(new ClassImbalance(trial, { argmax: true, samples: 5, threshold_imbalance: limit }), FULL)
      const corrupt = await damaged('predictions', labels, floats('predictions', rows.flat(), [5, 3]))
      const { findings, problems } = await of(corrupt, 1.6)
      expect([findings, problems.map(({ tensor }) => tensor)]).toEqual([[], ['predictions']])
      expect((await of(corrupt, 1.4)).findings.map(({ value }) => value)).toEqual([1.5])
      const reduced = await trialOf({ 0: [labels, { name: 'predictions', reductions: { mean: 1 } }] })
      expect((await of(reduced, 1.6)).findings).toEqual([])
      expect((await of(reduced, 1.4)).findings.map(({ value }) => value)).toEqual([1.5])
      const unclear = floats('labels', rows.flat().with(1, 1), [5, 3])
      const { findings: none, missing } = await of(await trialOf({ 0: [unclear, scalar('a', 1)] }), 0.1)
      expect([none.map(({ value }) => value), missing.map(({ partial }) => partial)]).toEqual([[1.5], [true]])
      const lost = await of(await damaged('predictions', unclear, floats('predictions', rows.flat(), [5, 3])), 0.1)
      expect(lost.findings).toEqual([])
      expect(lost.missing).toEqual([
        expect.objectContaining({ missing: expect.stringMatching(/predictions that can be read/), partial: false }),
      ])
    })
  })

  it('lists no findings where they are not to be kept, and tells them all the same', async () => {
    const [onFinding, onProgress] = [vi.fn(), vi.fn()]
    const { findings } = await evaluate(new Always(await weights(3)), { onFinding, onProgress, keepFindings: false })
    expect(findings).toEqual([])
    expect(onFinding.mock.calls.map(([{ step }]) => step)).toEqual([0, 1, 2])
    expect(onProgress.mock.lastCall?.[0].findings).toBe(3)
  })

  it('throws what onFinding throws: that is no fault of the rule', async () => {
    const onFinding = () => {
      throw new TypeError('mine')
    }
    await expect(evaluate(new Always(await weights(1)), { onFinding })).rejects.toThrow('mine')
  })

  it('ends a rule that throws where it says what it needs, and no other', async () => {
    class Broken extends Always {
      override setRequiredTensors(): void {
        throw new TypeError('oh')
      }
    }
    const trial = await weights(2)
    const { findings, problems } = await evaluate([new Broken(trial), new Always(trial)])
    expect(findings.map(({ rule, step }) => `${rule} ${step}`)).toEqual(['Always 0', 'Always 1'])
    expect(problems).toHaveLength(1)
  })

  it('ends a rule that has nothing left to look for', async () => {
    class Once extends Rule {
      invokeAtStep(step: number): boolean {
        throw new RuleEvaluationConditionMet(this.ruleName, step, true)
      }
    }
    const { findings, problems } = await evaluate(new Once(await weights(3)))
    expect(findings.map(({ step }) => step)).toEqual([0])
    expect(problems).toEqual([])
  })

  it('ends a rule that throws, and no other', async () => {
    class Broken extends Rule {
      invokeAtStep(step: number): boolean {
        if (step === 1) throw new TypeError('oh')
        return true
      }
    }
    const trial = await weights(3)
    const { findings, problems } = await evaluate([new Broken(trial), new Always(trial)])
    expect(findings.map(({ rule, step }) => `${rule} ${step}`)).toEqual([
      'Broken 0',
      'Always 0',
      'Always 1',
      'Always 2',
    ])
    expect(problems.map(({ error }) => [error.code, error.message])).toEqual([
      ['RuleFailed', 'rule Broken failed at step 1, and is not asked any more: TypeError: oh'],
    ])
  })

  it('stops at a signal', async () => {
    const abort = new AbortController()
    const options = { signal: abort.signal, onFinding: () => abort.abort(new Error('enough')) }
    await expect(evaluate(new Always(await weights(3)), options)).rejects.toThrow('enough')
  })

  it.each(['setRequiredTensors', 'invokeAtStep'] as const)(
    'lets signals and timers through while rules are busy: %s',
    async method => {
      let calls = 0
      class Busy extends Rule {
        override setRequiredTensors() {
          if (method === 'setRequiredTensors') this.#work()
        }
        invokeAtStep() {
          if (method === 'invokeAtStep') this.#work()
          return false
        }
        #work() {
          calls++
          for (const from = performance.now(); performance.now() - from < 2; );
        }
      }
      const STEPS = 400
      const trial = await weights(STEPS)
      const abort = new AbortController()
      // The loop turns again and again, also among the steps of one window.
      let turns = 0
      const turn = () => {
        if (++turns === 4) abort.abort(new Error('enough'))
        else setImmediate(turn)
      }
      setImmediate(turn)
      await expect(evaluate(new Busy(trial), { threads: 0, signal: abort.signal })).rejects.toThrow('enough')
      expect(calls).toBeLessThan(STEPS)
    },
  )

  it('stops waiting at a signal', async () => {
    const abort = new AbortController()
    const { trial } = await running(2)
    const onProgress = () => setImmediate(() => abort.abort(new Error('enough')))
    await expect(
      evaluate(new Always(trial), { signal: abort.signal, onProgress, follow: true, pollMs: 5 }),
    ).rejects.toThrow('enough')
  })

  it('goes on after an action that fails later', async () => {
    const error = vi.fn()
    const logger = { debug() {}, info() {}, warn() {}, error }
    const actions = () => Promise.reject(new Error('no network'))
    const { findings } = await evaluate(new Always(await weights(2), { actions, logger }))
    expect(findings).toHaveLength(2)
    expect(error).toHaveBeenCalledWith(expect.stringContaining('no network'))
  })

  it('goes on after an action that fails', async () => {
    const fired: number[] = []
    const error = vi.fn()
    const logger = { debug() {}, info() {}, warn() {}, error }
    const actions = [
      () => {
        throw new Error('no network')
      },
      ({ step }: { step: number }) => void fired.push(step),
    ]
    await evaluate(new Always(await weights(2), { actions, logger }))
    expect(fired).toEqual([0, 1])
    expect(error).toHaveBeenCalledWith(expect.stringContaining('no network'))
  })
})

describe('rules of one’s own', () => {
  class Mean extends Rule {
    readonly seen: number[] = []
    override setRequiredTensors(step: number): void {
      this.reqTensors.add('weight$', [step], { regex: true })
    }
    async invokeAtStep(step: number): Promise<boolean> {
      for (const tensor of this.reqTensors.get()) {
        const { data } = await tensor.value(step)
        this.seen.push((data as Float32Array)[0]!, (await tensor.reductionValue(step, 'mean')) as number)
      }
      return false
    }
  }

  it('get what they said they need without another read', async () => {
    const trial = await weights(3)
    const rule = new Mean(trial)
    const read = vi.spyOn(LocalStore.prototype, 'readInto')
    await evaluate(rule, { threads: 0 })
    // One batch a step, each in a file of its own.
    expect(read).toHaveBeenCalledTimes(3)
    read.mockRestore()
    expect(rule.seen).toEqual([1, 1, 1, 1, 1, 1])
  })

  it('share what is read with the others', async () => {
    const trial = await weights(3)
    const read = vi.spyOn(LocalStore.prototype, 'readInto')
    const rules = [new Mean(trial), new ExplodingTensor(trial), new UnchangedTensor(trial, { tensor_regex: 'weight' })]
    await evaluate(rules, { threads: 0 })
    expect(read).toHaveBeenCalledTimes(3)
    read.mockRestore()
  })

  it('read what they did not say when they ask for it', async () => {
    class Undeclared extends Mean {
      override setRequiredTensors(): void {}
      override async invokeAtStep(step: number): Promise<boolean> {
        return ((await this.baseTrial.tensor('fc.weight').reductionValue(step, 'max')) as number) === 1
      }
    }
    const { findings } = await evaluate(new Undeclared(await weights(2)))
    expect(findings).toHaveLength(2)
  })

  it('ask for more than values', async () => {
    class Changed extends Rule {
      override setRequiredTensors(step: number): void {
        if (step > 0) this.reqTensors.at('a', step - 1).allclose(this.reqTensors.at('a', step))
      }
      invokeAtStep(step: number): boolean {
        return step > 0 && !this.reqTensors.at('a', step - 1).allclose(this.reqTensors.at('a', step)).value
      }
    }
    const trial = await trialOf({ 0: [scalar('a', 1)], 1: [scalar('a', 1)], 2: [scalar('a', 2)] })
    const { findings } = await evaluate(new Changed(trial))
    expect(findings.map(({ step }) => step)).toEqual([2])
  })
})

describe.each(whenLong)('tensors of any size (%s)', () => {
  const COUNT = 5_000_000
  /** 20 MB a tensor: more than is read at once, whatever the memory. */
  const large = (() => {
    let trial: Promise<Trial> | undefined
    return () => {
      trial ??= trialOf(
        Object.fromEntries(
          [0, 1, 2].map(step => {
            const values = Float32Array.from({ length: COUNT }, (_, i) => (i % 1000) / 1000 + (step === 0 ? 0 : 0.25))
            const outputs = Float32Array.from({ length: COUNT }, (_, i) => (step === 1 ? 0 : i % 2))
            const bytes = (data: Float32Array) => new Uint8Array(data.buffer)
            return [
              step,
              [
                { name: 'fc.weight', dtype: 'float32', shape: [COUNT], data: bytes(values) },
                { name: 'gradient/fc.weight', dtype: 'float32', shape: [COUNT], data: bytes(values) },
                { name: 'relu_output', dtype: 'float32', shape: [50, COUNT / 50], data: bytes(outputs) },
              ] satisfies StepTensor[],
            ]
          }),
        ),
      )
      return trial
    }
  })()

  const ways = [
    [4, 0],
    [8, 2],
    [64, 0],
    [64, 2],
  ] as const
  it.each(ways)('give the same with %i MiB and %i threads', async (mebibytes, threads) => {
    const trial = await large()
    const rules = [
      new UnchangedTensor(trial, { collection_names: 'weights', num_steps: '2' }),
      new WeightUpdateRatio(trial, { large_threshold: '0.1' }),
      new VanishingGradient(trial, { threshold: '0.5' }),
      new NLPSequenceRatio(trial, { tensor_regex: '^fc', token_values: '0.5', token_thresholds_percent: '0.05' }),
      new DeadRelu(trial),
      new PoorWeightInitialization(trial, { distribution_range: '100', steps: '1' }),
    ]
    const { findings, problems } = await evaluate(rules, { memory: mebibytes * 2 ** 20, threads, checkLevel: 'full' })
    expect(problems).toEqual([])
    const found = findings.map(({ rule, step, value }) => `${rule} ${step} ${value!.toFixed(6)}`)
    expect(found).toEqual([
      'VanishingGradient 0 0.499500',
      'NLPSequenceRatio 0 0.100000',
      `PoorWeightInitialization 0 ${(0.949 - 0.05 + 0.0001).toFixed(6)}`,
      'WeightUpdateRatio 1 0.500500',
      'NLPSequenceRatio 1 0.100000',
      'DeadRelu 1 100.000000',
      'UnchangedTensor 2 2.000000',
      'WeightUpdateRatio 2 0.000000',
      'NLPSequenceRatio 2 0.100000',
    ])
  })
})

describe('a tensor that is read in parts', () => {
  const COUNT = 2_300_000
  const directory = join(scratch, 'in-parts')

  /** 18.4 MB a tensor, one of 100 labels is of class 1. */
  const labelled = (() => {
    let written = false
    return () => {
      if (!written) {
        const labels = BigInt64Array.from({ length: COUNT }, (_, i) => (i % 100 === 0 ? 1n : 0n))
        const data = new Uint8Array(labels.buffer)
        const writer = new TrialWriter(directory, { collections: COLLECTIONS, checksum: 'true' })
        for (const step of [0, 1]) {
          const tensors: StepTensor[] = [
            { name: 'labels', dtype: 'int64', shape: [COUNT], data },
            { name: 'predictions', dtype: 'int64', shape: [COUNT], data },
          ]
          writer.step({ step, mode: 'TRAIN', tensors })
        }
        writer.end()
        written = true
      }
      return createTrial(directory)
    }
  })()
  const memory = 8 * 2 ** 20

  it('is handed out as one value', async () => {
    const { findings } = await evaluate(new ClassImbalance(await labelled()), { memory, threads: 0, endStep: 1 })
    expect(findings.map(({ value }) => value)).toEqual([99])
  })

  it.each([0, 2])('is named where its checksum is wrong, and all else is judged, with %i threads', async threads => {
    await labelled()
    const copy = join(scratch, `in-parts-corrupt-${threads}`)
    cpSync(directory, copy, { recursive: true })
    const { start_idx, length } = locate(copy, 0, 'labels')
    editEventFile(copy, 0, bytes => {
      bytes[start_idx + length - 20]! ^= 1
    })
    const trial = await createTrial(copy)
    const rules = [
      new UnchangedTensor(trial, { tensor_regex: '.*', num_steps: '2' }),
      new NLPSequenceRatio(trial, { tensor_regex: '.*', token_thresholds_percent: '98' }),
    ]
    const { problems, findings } = await evaluate(rules, { memory, threads, checkLevel: 'full' })
    expect(problems.map(({ step, tensor }) => [step, tensor])).toEqual([[0, 'labels']])
    expect(findings.map(({ rule, step, tensor }) => `${rule} ${step} ${tensor}`)).toEqual([
      'NLPSequenceRatio 0 predictions',
      'UnchangedTensor 1 predictions',
      'NLPSequenceRatio 1 labels',
      'NLPSequenceRatio 1 predictions',
    ])
  })
})

it.each(whenLong)('several windows give what one would', async () => {
  // 40 tensors over 1,700 steps, and some rules: more questions than a window holds.
  const names = Array.from({ length: 40 }, (_, i) => `t${i}`)
  const trial = await trialOf(
    Object.fromEntries(
      Array.from({ length: 1700 }, (_, step) => [step, names.map((name, i) => scalar(name, i === 7 ? 1 : step % 97))]),
    ),
  )
  const parameters = { tensor_regex: '^t', rtol: '1e-9', atol: '0' }
  const rules = [
    new UnchangedTensor(trial, { ...parameters, num_steps: '2', name: '2' }),
    new UnchangedTensor(trial, { ...parameters, num_steps: '3', name: '3' }),
    new ExplodingTensor(trial),
  ]
  const { findings, stats } = await evaluate(rules, { threads: 0 })
  const of = (name: string) => findings.filter(finding => finding.name === name)
  expect(of('2').map(({ step }) => step)).toEqual(Array.from({ length: 1699 }, (_, i) => i + 1))
  expect(of('3').map(({ step }) => step)).toEqual(Array.from({ length: 1698 }, (_, i) => i + 2))
  expect(new Set(findings.map(({ tensor }) => tensor))).toEqual(new Set(['t7']))
  // The steps before the border of a window are read a second time, and no others.
  expect(stats.records).toBeGreaterThan(1700 * 40)
  expect(stats.records).toBeLessThan(1700 * 40 * 1.01)
})

describe('of a job that runs', () => {
  it('judges what is there and does not wait, unless it is to follow', async () => {
    const { trial } = await running(3)
    const { findings, complete } = await evaluate(new Always(trial))
    expect([findings.length, complete, trial.loadedAllSteps]).toEqual([1, false, false])
  })

  it('goes on as steps come, until it ends', async () => {
    const directory = join(scratch, 'live')
    const job = await LiveWriter.start(directory)
    try {
      await job.step(0)
      const trial = await createTrial(directory)
      const steps: number[] = []
      const heard = { now: () => {} }
      const onFinding = ({ step }: { step: number }) => {
        steps.push(step)
        heard.now()
      }
      const evaluation = evaluate(new Always(trial), { onFinding, follow: true, pollMs: 50 })
      for (const step of [0, 1, 2]) {
        if (step > 0) await job.step(step)
        while (!steps.includes(step)) await new Promise<void>(resolve => (heard.now = resolve))
      }
      await job.do({ do: 'end' })
      expect(await evaluation).toMatchObject({ complete: true })
      expect(steps).toEqual([0, 1, 2])
    } finally {
      await job.stop()
    }
  })

  it('ends after the last step that was asked for', async () => {
    const { trial, writeNext } = await running(9)
    for (let step = 1; step < 3; step++) writeNext()
    const options = {
      steps: [1, { from: 3, to: 6, stride: 2 }],
      follow: true,
      pollMs: 5,
      signal: AbortSignal.timeout(20_000),
    }
    const evaluation = evaluate(new Always(trial), options)
    for (let step = 3; step < 6; step++) writeNext()
    const { findings, complete } = await evaluation
    expect([findings.map(({ step }) => step), complete, trial.loadedAllSteps]).toEqual([[1, 3, 5], true, false])
  })

  it('takes no steps from its end, which is not known', async () => {
    const { trial } = await running(3)
    for (const options of [{ steps: { from: -2 } }, { modeSteps: [-1] }] as const) {
      await expect(evaluate(new Always(trial), { ...options, follow: true })).rejects.toThrow(
        /^expected (modeSteps|steps) that don't count from the end, since trial .* still runs and is followed: its last step is not known$/,
      )
    }
    const { findings } = await evaluate(new Always(trial), { steps: [-1] })
    expect(findings.map(({ step }) => step)).toEqual([0])
  })

  it('compares steps that came one by one', async () => {
    const { trial, writeNext } = await running(5, step => [scalar('a', Math.max(2, step))])
    const rule = new UnchangedTensor(trial, { tensor_regex: 'a', num_steps: '3' })
    const { findings, complete } = await evaluate(rule, { onProgress: writeNext, follow: true, pollMs: 5 })
    expect(findings.map(({ step }) => step)).toEqual([2])
    expect(complete).toBe(true)
  })

  it('is not waited for beyond the last step that is asked for', async () => {
    const { trial } = await running(2)
    expect(await evaluate(new Always(trial), { endStep: 1 })).toMatchObject({ complete: true })
  })

  it('ends with what it has when nothing comes, and judges what is there', async () => {
    const trial = await createTrial(fixtureTrial('workers-running').directory)
    const { complete, findings } = await evaluate(new Always(trial), { follow: true, timeoutMs: 30, pollMs: 10 })
    expect(complete).toBe(false)
    expect(findings.map(({ step }) => step)).toEqual([0, 1, 2, 3, 4, 5])
    expect(await evaluate(new Always(trial), { follow: false })).toMatchObject({ complete: false, findings })
  })

  it('waits for the other trial, and then does without it', async () => {
    const [ended, running] = await Promise.all(
      ['workers-4', 'workers-running'].map(name => createTrial(fixtureTrial(name).directory)),
    )
    const rules = () => [new Always(ended!), new SimilarAcrossRuns(ended!, { otherTrials: [running!] })]
    const { complete, findings } = await evaluate(rules(), { follow: true, timeoutMs: 30, pollMs: 10 })
    expect(complete).toBe(false)
    const always = findings.filter(({ rule }) => rule === 'Always')
    expect(always.map(({ step }) => step)).toEqual(ended!.steps())
  })

  it('finds out that it stands still', async () => {
    const trial = await createTrial(fixtureTrial('workers-running').directory)
    let seconds = 0
    const now = () => {
      seconds += 10
      return seconds * 1000
    }
    const asked: unknown[] = []
    const rule = new StalledTrainingRule(trial, {
      threshold: '60',
      stop_training_on_fire: 'True',
      training_job_name_prefix: 'my-job',
      logger: { debug() {}, info: message => asked.push(message), warn() {}, error() {} },
      now,
    })
    const { findings } = await evaluate(rule, { follow: true, pollMs: 5 })
    expect(findings).toEqual([expect.objectContaining({ step: 5, threshold: 60 })])
    expect(asked.join()).toContain('my-job')
  })
})

it('takes a trial whose collections are lost', async () => {
  const directory = join(scratch, 'no-collections')
  const writer = new TrialWriter(directory, { collections: COLLECTIONS })
  writer.step({
    step: 0,
    tensors: [{ name: 'labels', dtype: 'int64', shape: [600], values: new Array(600).fill(0).with(0, 1) }],
  })
  writer.end()
  rmSync(join(directory, 'collections'), { recursive: true })
  writeFileSync(join(directory, 'note.txt'), 'not a part of it')
  const trial = await createTrial(directory, { requireCollections: false })
  const { findings, problems } = await evaluate(new ClassImbalance(trial))
  expect(findings.map(({ step, value }) => [step, value])).toEqual([[0, 599]])
  expect(problems.map(({ error }) => error.code)).toEqual(['MissingCollectionFiles'])
})
