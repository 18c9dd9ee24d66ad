/** Several workers: what each saved is judged as a sequence of its own. */

import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import {
  BUILTIN_RULES,
  createTrial,
  ExplodingTensor,
  evaluate,
  type Finding,
  type Mode,
  makeRules,
  Rule,
  RuleRegistry,
  type Trial,
  UnchangedTensor,
} from '#dist/index.js'
import { LocalStore } from '#dist/storage/local/local-store.js'
import { type StepTensor, TrialWriter } from '../../fixtures/event-writer.js'
import { uniform } from '../../fixtures/random.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('workers')

interface Step {
  readonly mode: Mode
  readonly modeStep: number
  readonly tensors: readonly StepTensor[]
}

const floats = (name: string, values: readonly number[], shape: readonly number[] = [values.length]): StepTensor => ({
  name,
  dtype: 'float32',
  shape,
  values,
})

const COLLECTIONS = {
  weights: { includeRegex: ['weight$'] },
  gradients: { includeRegex: ['^gradient'] },
  losses: { includeRegex: ['loss$'] },
}

/** @param scripts what each worker saves, step by step */
async function trialOf(scripts: Readonly<Record<string, readonly Step[]>>): Promise<Trial> {
  const directory = mkdtempSync(join(scratch, 'trial-'))
  const writer = new TrialWriter(directory, { workers: Object.keys(scripts), collections: COLLECTIONS })
  const length = Math.max(...Object.values(scripts).map(({ length }) => length))
  for (let step = 0; step < length; step++) {
    for (const [worker, steps] of Object.entries(scripts)) {
      const saved = steps[step]
      if (saved) writer.step({ step, worker, ...saved })
    }
  }
  writer.end()
  return createTrial(directory)
}

const plain = (...values: readonly number[]): Step[] =>
  values.map((value, modeStep) => ({ mode: 'TRAIN', modeStep, tensors: [floats('t', [value])] }))

const NAMES = [
  'loss',
  'a.weight',
  'gradient/a.weight',
  'relu_input',
  'relu1_relu_input',
  'relu_output',
  'tanh_input',
  'labels',
  'predictions',
  'hybridsequential0_input_0',
  'embedding0_input_0',
  'feature_importance/weight/f0',
  'feature_importance/weight/f1',
  'trees/Node',
]

/** Whole numbers, and none below zero. */
const COUNTED = new Set(['labels', 'predictions', 'trees/Node'])

/** Values that make most rules fire now and then; a mode of its own at every step. */
function script(seed: number): Step[] {
  const random = uniform(seed)
  const next: Record<string, number> = { TRAIN: 0, EVAL: 0 }
  const odd = (): number => [0, 0, 1, 3, 30, -30, 1e-9, Number.NaN][Math.floor(random() * 8)]!
  return Array.from({ length: 14 }, (_, step) => {
    const mode: Mode = random() < 0.6 ? 'TRAIN' : 'EVAL'
    const tensors = NAMES.map(name => {
      const isScalar = name === 'loss' || name.startsWith('feature')
      const first = odd()
      const isFlat = random() < 0.4
      const values = Array.from({ length: isScalar ? 1 : 4 }, () => (isFlat ? first : odd()))
      return floats(name, COUNTED.has(name) ? values.map(value => Math.abs(value) || 0) : values)
    })
    const rows = { ...floats('rows', [1, 1, step % 3, 1]), shape: [2, 2] }
    return { mode, modeStep: next[mode]!++, tensors: [...tensors, rows] }
  })
}

const PARAMETERS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  AllZero: { tensor_regex: '.*', threshold: '75' },
  TensorVariance: { tensor_regex: '.*', min_threshold: '0.1', max_threshold: '100' },
  UnchangedTensor: { tensor_regex: '.*', num_steps: '2' },
  ClassImbalance: { samples: '4', threshold_imbalance: '2' },
  CheckInputImages: { threshold_samples: '8' },
  LossNotDecreasing: { num_steps: '1' },
  TreeDepth: { depth: '3' },
  Overtraining: { patience_train: '2', patience_validation: '2' },
  OptimizerReset: { moments_regex: 'weight|relu' },
  UnchangedRows: { tensor_regex: 'rows' },
  ExplodingNorm: { tensor_regex: '.*', threshold: '1.01', epsilon: '0' },
  PoorWeightInitialization: { patience: '2', steps: '8' },
}

const rulesOf = (trial: Trial): Rule[] =>
  // Those of one worker; ReplicaDrift compares them.
  BUILTIN_RULES.filter(
    ({ name }) => !['SimilarAcrossRuns', 'DivergesFrom', 'ReplicaDrift', 'StalledTrainingRule'].includes(name),
  ).map(RuleClass => new RuleClass(trial, PARAMETERS[RuleClass.name]))

/** What tells a finding, but for the trial's name; sorted, since workers take turns. */
const told = (findings: readonly Finding[]): string[] =>
  findings.map(finding => JSON.stringify({ ...finding, trial: null })).sort()

describe('several workers', () => {
  it('a NaN of the second worker is found, and told with its name', async () => {
    const trial = await trialOf({ worker_0: plain(1, 2), worker_1: plain(1, Number.NaN) })
    const { findings } = await evaluate(new ExplodingTensor(trial), { threads: 0 })
    expect(findings).toMatchObject([{ step: 1, worker: 'worker_1', tensor: 't' }])
  })

  it('every built-in rule finds of them together what it finds of each alone', async () => {
    const fired = new Set<string>()
    for (let seed = 0; seed < 4; seed++) {
      const scripts = { 'algo-1': script(3 * seed), 'algo-2': script(3 * seed + 1), 'algo-3': script(3 * seed + 2) }
      const together = await trialOf(scripts)
      const { findings } = await evaluate(rulesOf(together), { threads: 0 })
      const alone: Finding[] = []
      for (const [worker, steps] of Object.entries(scripts)) {
        alone.push(...(await evaluate(rulesOf(await trialOf({ [worker]: steps })), { threads: 0 })).findings)
      }
      expect(told(findings)).toEqual(told(alone))
      for (const { rule, worker } of findings) {
        fired.add(rule)
        expect(worker).toMatch(/^algo-/)
      }
    }
    expect([...fired].sort()).toEqual(
      rulesOf(await trialOf({ a: script(0) }))
        .map(rule => rule.ruleName)
        .sort(),
    )
  })

  it("a finding has its own worker's mode and mode step", async () => {
    const at = (mode: Mode, modeStep: number, value: number): Step => ({
      mode,
      modeStep,
      tensors: [floats('t', [value])],
    })
    const trial = await trialOf({
      worker_0: [at('TRAIN', 0, 1), at('EVAL', 0, 1), at('TRAIN', 1, 1)],
      worker_1: [at('TRAIN', 0, 1), at('TRAIN', 1, Number.NaN), at('TRAIN', 2, Number.NaN)],
    })
    const { findings } = await evaluate(new ExplodingTensor(trial), { threads: 0 })
    expect(findings.map(({ step, mode, modeStep }) => [step, mode, modeStep])).toEqual([
      [1, 'TRAIN', 1],
      [2, 'TRAIN', 2],
    ])
  })

  it('`workers` restricts a rule, in a program and in JSON', async () => {
    const trial = await trialOf({ a: plain(1, 1), b: plain(2, 2), c: plain(3, 3) })
    const parameters = { tensor_regex: 't', num_steps: 2 }
    const found = async (rule: Rule) => (await evaluate(rule, { threads: 0 })).findings.map(({ worker }) => worker)
    expect(await found(new UnchangedTensor(trial, parameters))).toEqual(['a', 'b', 'c'])
    expect(await found(new UnchangedTensor(trial, { ...parameters, workers: ['c', 'a'] }))).toEqual(['a', 'c'])
    expect(await found(new UnchangedTensor(trial, { ...parameters, workers: 'b, c' }))).toEqual(['b', 'c'])
    const [made] = await makeRules(
      [{ name: 'x', rule: 'UnchangedTensor', parameters: { tensor_regex: 't', num_steps: '2', workers: 'b' } }],
      { baseTrial: trial, registry: new RuleRegistry(), openTrial: createTrial },
    )
    expect(await found(made!)).toEqual(['b'])
    expect(() => new UnchangedTensor(trial, { ...parameters, workers: ['d'] })).toThrow(
      'workers that have: "a", "b", "c"',
    )
    expect(() => new UnchangedTensor(trial, { ...parameters, workers: [] })).toThrow('expected workers')
  })

  it('each record is read once, whatever number of workers there is, and none of those left out', async () => {
    const steps = plain(1, 2, 3, 4)
    const trial = await trialOf({ a: steps, b: steps, c: steps })
    const spy = vi.spyOn(LocalStore.prototype, 'readInto')
    try {
      const parameters = { tensor_regex: 't', num_steps: 2 }
      const all = await evaluate(
        [new UnchangedTensor(trial, parameters), new ExplodingTensor(trial), new UnchangedTensor(trial, parameters)],
        { threads: 0 },
      )
      expect(all.stats.records).toBe(12)
      const files = spy.mock.calls.map(([path, start]) => `${path} ${start}`)
      expect(new Set(files).size).toBe(files.length)
      expect((await evaluate(new ExplodingTensor(trial, { workers: 'b' }), { threads: 0 })).stats.records).toBe(4)
    } finally {
      spy.mockRestore()
    }
  })
})

describe("a rule of one's own", () => {
  class Seen extends Rule {
    readonly seen: unknown[] = []

    override setRequiredTensors(step: number): void {
      for (const worker of this.reqTensors.workers(step)) this.reqTensors.add('t', [step], { worker })
    }

    override async invokeAtStep(step: number): Promise<boolean> {
      const first = await this.baseTrial.tensor('t').value(step)
      this.seen.push([this.reqTensors.find('t', step)?.worker, first.data[0]])
      for (const worker of this.reqTensors.workers(step)) {
        const value = await this.baseTrial.tensor('t').value(step, { worker })
        const [same] = this.reqTensors.select(['t'], step, null, worker)
        this.seen.push([worker, value.data[0], same?.value().value.data[0]])
      }
      return false
    }
  }

  it('is given the first worker unless it asks for one', async () => {
    const trial = await trialOf({ a: plain(1), b: plain(2) })
    const rule = new Seen(trial)
    const { stats } = await evaluate(rule, { threads: 0 })
    expect(rule.seen).toEqual([
      ['a', 1],
      ['a', 1, 1],
      ['b', 2, 2],
    ])
    expect(stats.records).toBe(2)
  })

  it('sees only the workers it is restricted to', async () => {
    const trial = await trialOf({ a: plain(1), b: plain(2) })
    const rule = new Seen(trial, { workers: 'b' })
    await evaluate(rule, { threads: 0 })
    expect(rule.seen).toEqual([
      ['b', 1],
      ['b', 2, 2],
    ])
  })

  it('is told which workers there are when it asks for another', async () => {
    class Asks extends Seen {
      override setRequiredTensors(step: number): void {
        this.reqTensors.at('t', step, null, 'z')
      }
    }
    const trial = await trialOf({ a: plain(1), b: plain(2) })
    const { problems } = await evaluate(new Asks(trial), { threads: 0 })
    expect(problems[0]?.error.message).toContain('worker "z" has no data here; workers that have: "a", "b"')
  })
})
