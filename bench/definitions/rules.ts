/** Rules in one pass: what more of them cost. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTrial, evaluate, makeRules, RuleRegistry, type Trial } from '#dist/index.js'
import { type Made, makeLarge, makeMany } from '../../fixtures/make.js'
import { type Case, type Contender, contender, type Definition, type Options } from '../definition.js'
import { NAME } from '../engines/ours.js'

type Choice = readonly [rule: string, parameters?: Readonly<Record<string, string>>]

/** Twenty, the first five of which look at different things. */
export const RULES: readonly Choice[] = [
  ['VanishingGradient'],
  ['ExplodingTensor'],
  ['UnchangedTensor', { collection_names: 'weights', num_steps: '2' }],
  ['WeightUpdateRatio'],
  ['TensorVariance', { collection_names: 'weights', max_threshold: '10' }],
  ['VanishingGradient', { threshold: '1e-3' }],
  ['VanishingGradient', { threshold: '1e-5' }],
  ['ExplodingTensor', { collection_names: 'gradients', only_nan: 'true' }],
  ['AllZero', { collection_names: 'weights,gradients' }],
  ['AllZero', { tensor_regex: 'bias', threshold: '50' }],
  ['TensorVariance', { collection_names: 'gradients', min_threshold: '1e-12' }],
  ['TensorVariance', { tensor_regex: 'conv', max_threshold: '1', min_threshold: '1e-9' }],
  ['UnchangedTensor', { collection_names: 'weights', num_steps: '3' }],
  ['UnchangedTensor', { collection_names: 'gradients', num_steps: '2', rtol: '0.1' }],
  ['WeightUpdateRatio', { num_steps: '20', large_threshold: '1' }],
  ['PoorWeightInitialization', { activation_inputs_regex: 'bn1.weight', steps: '1' }],
  ['DeadRelu', { tensor_regex: 'fc.weight' }],
  ['SaturatedActivation', { tensor_regex: 'fc.weight' }],
  ['NLPSequenceRatio', { tensor_regex: 'bias' }],
  ['CheckInputImages', { regex: 'conv1.weight' }],
]

export const rules: Definition = {
  name: 'rules',
  measures:
    'evaluate: each of the five dearest rules alone, then 1, 5 and 20 in one pass; files in the page cache, threads running',
  async *cases({ quick }: Options): AsyncGenerator<Case> {
    yield* trialCase('large', dir => makeLarge(dir, { steps: quick ? 3 : 5, scale: quick ? 0.25 : 1 }))
    yield* trialCase('many', dir => makeMany(dir, { steps: quick ? 25 : 100 }))
  },
}

async function* trialCase(name: string, make: (dir: string) => Made): AsyncGenerator<Case> {
  const dir = mkdtempSync(join(tmpdir(), `trialscan-bench-rules-${name}-`))
  try {
    const { steps, tensors, tensorBytes } = make(dir)
    const trial = await createTrial(dir)
    const alone = new Map<number, readonly string[]>()
    for (const i of RULES.keys()) alone.set(i, await fired(trial, [i]))
    const together = (label: string, numbers: readonly number[]): Contender =>
      contender(
        `${NAME}, ${label}`,
        () => fired(trial, numbers),
        findings => {
          const expected = numbers.flatMap(i => alone.get(i)!)
          const isSame = findings.length === expected.length && findings.every(finding => expected.includes(finding))
          return isSame ? undefined : `expected ${expected.length} findings, got ${findings.length}`
        },
      )
    yield {
      size: `${name}, ${Math.round(tensorBytes / 1e6)} MB, ${steps.length * tensors.length} tensors`,
      byteLength: tensorBytes,
      contenders: [
        together('20 rules', [...RULES.keys()]),
        together('5 rules', [0, 1, 2, 3, 4]),
        together('1 rule, VanishingGradient', [0]),
        ...[1, 3, 12, 14, 15].map(i => together(`1 rule, ${RULES[i]![0]} ${JSON.stringify(RULES[i]![1] ?? {})}`, [i])),
      ],
    }
  } finally {
    rmSync(dir, { recursive: true })
  }
}

const registry = new RuleRegistry()

/** The findings of rules, as texts. */
async function fired(trial: Trial, numbers: readonly number[]): Promise<string[]> {
  const instances = await makeRules(
    numbers.map(i => ({ name: `${i}`, rule: RULES[i]![0], parameters: RULES[i]![1] ?? {} })),
    { baseTrial: trial, registry, openTrial: path => createTrial(path) },
  )
  const { findings } = await evaluate(instances, { follow: false })
  return findings.map(({ name, step, tensor, value }) => `${name} ${step} ${tensor} ${value}`)
}
