/** Which findings are causes, and which follow from one. */

import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  createTrial,
  type DiagnosedFinding,
  Diagnosis,
  diagnose,
  ExplodingTensor,
  evaluate,
  type Finding,
  LossNotDecreasing,
  Rule,
  RuleRegistry,
  type Trial,
} from '#dist/index.js'
import { CONSEQUENCES } from '#dist/rules/diagnosis.js'
import { replacePayload } from '../../fixtures/corrupt.js'
import { indexFilePath, type ModeName, TrialWriter } from '../../fixtures/event-writer.js'
import { isRequired, ROOT } from '../support/golden.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('diagnosis')

type Tensors = Readonly<Record<string, readonly number[]>>

const NAN = [Number.NaN, 1, 2, 3]
const ZERO = [0, 0, 0, 0]
/** Neither constant nor small, and another one at every step. */
const fine = (step: number, i = 0): number[] => Array.from({ length: 4 }, (_, k) => Math.sin(step * 31 + i * 7 + k * 2))

/** A trial of the tensors at each step, in the order of execution. */
async function trialOf(name: string, steps: readonly Tensors[], mode: ModeName = 'TRAIN'): Promise<Trial> {
  const path = join(scratch, name)
  const writer = new TrialWriter(path, {
    collections: {
      weights: { includeRegex: ['^(?!gradient/).*weight$'] },
      gradients: { includeRegex: ['^gradient/'] },
      losses: { includeRegex: ['loss'] },
    },
  })
  steps.forEach((tensors, step) => {
    writer.step({
      step,
      mode,
      tensors: Object.entries(tensors).map(([name, data]) => ({ name, dtype: 'float32', shape: [data.length], data })),
    })
  })
  writer.end()
  return createTrial(path)
}

async function found(trial: Trial, ...rules: readonly (readonly [name: string, parameters?: object])[]) {
  const registry = new RuleRegistry()
  const made = rules.map(([name, parameters]) => new (registry.get(name))(trial, { ...parameters }))
  return (await evaluate(made)).findings
}

const causesOf = (diagnosed: readonly DiagnosedFinding[]) => diagnosed.filter(({ cause }) => cause === null)
const told = ({ rule, step, tensor }: Finding): string => `${rule} ${step} ${tensor}`

const ALL: readonly (readonly [name: string, parameters?: object])[] = [
  ['VanishingGradient'],
  ['ExplodingTensor'],
  ['PoorWeightInitialization'],
  ['WeightUpdateRatio'],
  ['AllZero', { collection_names: 'weights,gradients' }],
  ['UnchangedTensor', { collection_names: 'weights' }],
]

const healthy = (name: string, step: number, i: number): readonly number[] =>
  name === 'loss' ? [1 / (step + 1)] : name.includes('output') ? fine(step, i).map(Math.abs) : fine(step, i)

/** A network of layers, each with a weight, an output and a gradient; `change` has other values for some of them. */
function network(step: number, change: Tensors = {}, layers = 8): Tensors {
  const names = Array.from({ length: layers }, (_, i) => `l${i}`)
  const all = [
    ...names.map(layer => `${layer}.weight`),
    ...names.map(layer => `${layer}_output_0`),
    'loss',
    ...names.toReversed().map(layer => `gradient/${layer}.weight`),
  ]
  return Object.fromEntries(all.map((name, i) => [name, change[name] ?? healthy(name, step, i)]))
}

describe('a NaN that spreads', () => {
  const names = Object.keys(network(0))
  const steps = Array.from({ length: 8 }, (_, step) => {
    const from = step === 5 ? names.indexOf('l2.weight') : step > 5 ? 0 : names.length
    return network(
      step,
      Object.fromEntries(names.slice(from).map(name => [name, name === 'loss' ? [Number.NaN] : NAN])),
    )
  })

  it('explains all the tensors after it', async () => {
    const trial = await trialOf('spreads', steps)
    const diagnosed = diagnose(trial, await found(trial, ...ALL))
    expect(causesOf(diagnosed).map(told)).toEqual(['ExplodingTensor 5 l2.weight'])
    const exploding = diagnosed.filter(({ rule, step }) => rule === 'ExplodingTensor' && step === 5)
    expect(exploding.map(({ tensor }) => tensor)).toEqual(names.slice(names.indexOf('l2.weight')))
    expect(new Set(exploding.slice(1).map(({ cause }) => cause))).toEqual(new Set([0]))
  })

  it('is ordered as the records lie, not as the index file or the alphabet has them', async () => {
    await trialOf('reversed', steps)
    const path = join(scratch, 'reversed')
    const file = join(path, indexFilePath(5, 'worker_0'))
    const index = JSON.parse(readFileSync(file, 'utf8')) as { tensor_payload: unknown[] }
    index.tensor_payload.reverse()
    writeFileSync(file, JSON.stringify(index))
    const trial = await createTrial(path)
    const diagnosed = diagnose(trial, await found(trial, ['ExplodingTensor']))
    expect(causesOf(diagnosed).map(told)).toEqual(['ExplodingTensor 5 l2.weight'])
  })

  it('is another fault if all was finite in between', async () => {
    const change = (step: number): Tensors =>
      step === 2 ? { loss: [Number.NaN] } : step === 6 ? { 'l0.weight': NAN } : {}
    const trial = await trialOf(
      'twice',
      Array.from({ length: 9 }, (_, step) => network(step, change(step))),
    )
    const diagnosed = diagnose(trial, await found(trial, ['ExplodingTensor']))
    expect(diagnosed.map(one => [told(one), one.cause])).toEqual([
      ['ExplodingTensor 2 loss', null],
      ['ExplodingTensor 6 l0.weight', null],
    ])
  })

  it('is the same one from one step to the next, whichever tensor has it then', async () => {
    const change = (step: number): Tensors =>
      step === 2 ? { loss: [Number.NaN] } : step > 2 ? { 'l0.weight': NAN } : {}
    const trial = await trialOf(
      'goes-on',
      Array.from({ length: 6 }, (_, step) => network(step, change(step))),
    )
    const diagnosed = diagnose(trial, await found(trial, ['ExplodingTensor']))
    expect(causesOf(diagnosed).map(told)).toEqual(['ExplodingTensor 2 loss'])
    expect(diagnosed.length).toBe(4)
  })
})

describe('a NaN that stays, of which not all was judged', () => {
  const steps = Array.from({ length: 7 }, (_, step) => ({ 'l0.weight': NAN, loss: [step === 0 ? 1 : Number.NaN] }))
  const selection = [0, 2, 4]

  it('is the same fault at each selected step', async () => {
    const trial = await trialOf('selected', steps)
    const rules = () => [
      new ExplodingTensor(trial, { tensor_regex: 'weight' }),
      new LossNotDecreasing(trial, { num_steps: 1, mode: 'TRAIN' }),
    ]
    const { findings } = await evaluate(rules(), { steps: selection })
    const expected = [
      ['ExplodingTensor 0 l0.weight', null],
      ['ExplodingTensor 2 l0.weight', 0],
      ['LossNotDecreasing 2 loss', 0],
      ['ExplodingTensor 4 l0.weight', 0],
      ['LossNotDecreasing 4 loss', 0],
    ]
    expect(diagnose(trial, findings).map(one => [told(one), one.cause])).toEqual(expected)
    const diagnosis = new Diagnosis(trial)
    const live: Finding[] = []
    await evaluate(rules(), { steps: selection, onFinding: finding => live.push(finding) })
    const byStep = selection.flatMap(step => diagnosis.add(live.filter(finding => finding.step === step)))
    expect(byStep.map(one => [told(one), one.cause])).toEqual(expected)
  })

  it('is the same fault after a record that could not be read', async () => {
    await trialOf('unread', steps)
    const path = join(scratch, 'unread')
    replacePayload(path, 1, 'l0.weight', Buffer.from([0xff, 0xff, 0xff]))
    const trial = await createTrial(path)
    const { findings, problems } = await evaluate(new ExplodingTensor(trial, { tensor_regex: 'weight' }))
    expect(problems.map(({ step, tensor }) => [step, tensor])).toEqual([[1, 'l0.weight']])
    expect(diagnose(trial, findings).map(one => [told(one), one.cause])).toEqual(
      [0, 2, 3, 4, 5, 6].map((step, i) => [`ExplodingTensor ${step} l0.weight`, i === 0 ? null : 0]),
    )
  })

  it('is another fault if a selected step was without it', async () => {
    const trial = await trialOf('selected-finite', steps.with(2, { 'l0.weight': fine(2), loss: [1] }))
    const { findings } = await evaluate(new ExplodingTensor(trial, { tensor_regex: 'weight' }), { steps: selection })
    expect(causesOf(diagnose(trial, findings)).map(told)).toEqual([
      'ExplodingTensor 0 l0.weight',
      'ExplodingTensor 4 l0.weight',
    ])
  })
})

describe('gradients that are exactly zero', () => {
  it('are AllZero, and what else is said of them follows', async () => {
    const frozen = fine(0)
    const change = { 'gradient/l3.weight': ZERO, 'l3.weight': frozen }
    const trial = await trialOf(
      'zeros',
      Array.from({ length: 5 }, (_, step) => network(step, change)),
    )
    const diagnosed = diagnose(trial, await found(trial, ...ALL))
    expect(causesOf(diagnosed).map(told)).toEqual(['AllZero 0 gradient/l3.weight'])
    expect(new Set(diagnosed.map(({ rule }) => rule))).toEqual(
      new Set(['AllZero', 'VanishingGradient', 'PoorWeightInitialization', 'WeightUpdateRatio', 'UnchangedTensor']),
    )
  })

  it('are a consequence of ReLUs that are dead', async () => {
    const change = { l1_output_0: ZERO, 'gradient/l1.weight': ZERO, 'gradient/l0.weight': ZERO }
    const trial = await trialOf(
      'dead',
      Array.from({ length: 5 }, (_, step) => network(step, change)),
    )
    const findings = await found(trial, ['DeadRelu', { tensor_regex: '_output_0' }], ...ALL)
    expect(causesOf(diagnose(trial, findings)).map(told)).toEqual(['DeadRelu 0 l1_output_0'])
  })
})

describe('independent faults', () => {
  it('are both told: dead ReLUs, and a NaN that comes later', async () => {
    const steps = Array.from({ length: 8 }, (_, step) =>
      network(step, { l1_output_0: ZERO, ...(step >= 4 && { 'l6.weight': NAN }) }),
    )
    const trial = await trialOf('two', steps)
    const findings = await found(trial, ['ExplodingTensor'], ['DeadRelu', { tensor_regex: '_output_0' }])
    expect(causesOf(diagnose(trial, findings)).map(told)).toEqual([
      'DeadRelu 0 l1_output_0',
      'ExplodingTensor 4 l6.weight',
    ])
  })

  it('are both told: a gradient that vanishes, and a frozen layer elsewhere', async () => {
    const change = { 'gradient/l2.weight': [1e-9, -1e-9, 2e-9, 1e-9], 'l2.weight': fine(0, 2), 'l5.weight': fine(0, 5) }
    const trial = await trialOf(
      'frozen',
      Array.from({ length: 4 }, (_, step) => network(step, change)),
    )
    const diagnosed = diagnose(
      trial,
      await found(trial, ['VanishingGradient'], ['UnchangedTensor', { collection_names: 'weights' }]),
    )
    expect(causesOf(diagnosed).map(told)).toEqual([
      'VanishingGradient 0 gradient/l2.weight',
      'UnchangedTensor 2 l5.weight',
    ])
    expect(diagnosed.find(({ rule, tensor }) => rule === 'UnchangedTensor' && tensor === 'l2.weight')!.cause).toBe(0)
  })

  it('are all that rules of your own find, but where one goes on with the same tensor', async () => {
    class Odd extends Rule {
      invokeAtStep(step: number) {
        if (step % 2 === 1) this.found({ tensor: `l${step === 3 ? 1 : 0}.weight`, message: 'odd' })
        return this.hasFound
      }
    }
    const trial = await trialOf(
      'own',
      Array.from({ length: 6 }, (_, step) => network(step)),
    )
    const { findings } = await evaluate(new Odd(trial))
    expect(diagnose(trial, findings).map(one => [told(one), one.cause])).toEqual([
      ['Odd 1 l0.weight', null],
      ['Odd 3 l1.weight', null],
      ['Odd 5 l0.weight', 0],
    ])
  })
})

const CNN = ['cnn-good', 'cnn-bad-init', 'cnn-dead-relu', 'cnn-exploding', 'cnn-overfit']
const SHARED = [...CNN, 'mlp-vanishing', 'mlp-saturated', 'mlp-all-zero', 'autoencoder', 'xgb-cancer']
const available = SHARED.filter(name => isRequired('shared') || existsSync(join(ROOT, '../shared/trials', name)))
describe.each(available)('%s', name => {
  it('has causes before what follows from them, and the same ones step by step', async () => {
    const trial = await createTrial(join(ROOT, '../shared/trials', name))
    const { findings } = await evaluate(new RuleRegistry().all(trial).rules)
    const diagnosed = diagnose(trial, findings)
    expect(diagnosed.length).toBe(findings.length)
    for (const [i, { cause, step }] of diagnosed.entries()) {
      if (cause === null) continue
      expect(cause).toBeLessThan(i)
      expect(diagnosed[cause]!.cause).toBe(null)
      expect(diagnosed[cause]!.step).toBeLessThanOrEqual(step)
    }
    const live = new Diagnosis(trial)
    const steps = [...new Set(findings.map(({ step }) => step))].sort((a, b) => a - b)
    expect(steps.flatMap(step => live.add(findings.filter(finding => finding.step === step)))).toEqual(diagnosed)
    expect(diagnose(trial, findings.toReversed()).map(({ cause }) => cause)).toEqual(
      diagnosed.map(({ cause }) => cause),
    )
  })
})

describe('the table', () => {
  const LINKS = { any: 'any', tensor: 'the same tensor', gradient: 'the weight' }

  it('stands in docs/rules.md, argued', () => {
    const page = readFileSync(join(ROOT, 'docs/rules.md'), 'utf8')
    const section = page.split('\n## The cause first\n')[1]!.split('\n## ')[0]!
    const rows = section
      .split('\n')
      .filter(line => line.startsWith('| '))
      .slice(1)
      .map(line =>
        line
          .split('|')
          .slice(1, -1)
          .map(cell => cell.trim()),
      )
    expect(rows.map(([cause, follows, of]) => [cause, of, follows!.split(', ')])).toEqual(
      CONSEQUENCES.map(([cause, link, follows]) => [cause, LINKS[link], follows]),
    )
    for (const [, , , why] of rows) expect(why).toMatch(/^[A-Z].*\.$/)
  })
})
