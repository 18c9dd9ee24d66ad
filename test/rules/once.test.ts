/** What rules read: each byte once, however many rules there are, and nothing that none of them needs. */

import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createTrial, evaluate, invokeRule, Rule, RuleRegistry, type Trial, UnchangedTensor } from '#dist/index.js'
import { InlineRunner } from '#dist/scan/runner/inline.js'
import { LocalStore } from '#dist/storage/local/local-store.js'
import { TrialWriter } from '../../fixtures/event-writer.js'
import { fixtureTrial, ROOT } from '../support/golden.js'
import { part } from '../support/part.js'

interface Range {
  readonly path: string
  readonly start: number
  readonly end: number
}

/** The ranges of event files that are read while `work` runs. */
async function ranges(work: () => Promise<unknown>): Promise<Range[]> {
  const spy = vi.spyOn(LocalStore.prototype, 'readInto')
  try {
    await work()
    return spy.mock.calls.map(([path, start], i) => ({
      path,
      start,
      end: start + (spy.mock.results[i]!.value as number),
    }))
  } finally {
    spy.mockRestore()
  }
}

function overlaps(read: readonly Range[]): string[] {
  const sorted = [...read].sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : a.start - b.start))
  return sorted.flatMap((range, i) => {
    const last = sorted[i - 1]
    return last && last.path === range.path && range.start < last.end ? [`${range.path} at ${range.start}`] : []
  })
}

const bytesOf = (read: readonly Range[]): number => read.reduce((sum, { start, end }) => sum + end - start, 0)

/** Every built-in rule that the trial has data for, and some more that compare, count and hand out values. */
function manyRules(trial: Trial, registry: RuleRegistry): Rule[] {
  const more: [string, Record<string, string>][] = [
    ['UnchangedTensor', { tensor_regex: '.*', num_steps: '2' }],
    ['UnchangedTensor', { tensor_regex: '.*', num_steps: '4', rtol: '0.1' }],
    ['WeightUpdateRatio', { num_steps: '30' }],
    ['ClassImbalance', { labels_regex: 'input_1|labels', predictions_regex: 'input_0|output', argmax: 'true' }],
    ['DeadRelu', { tensor_regex: 'relu|weight' }],
    ['NLPSequenceRatio', { tensor_regex: 'bias' }],
    ['CheckInputImages', { regex: 'weight' }],
    ['AllZero', { tensor_regex: '.*' }],
  ]
  const made = more.map(([name, parameters]) => new (registry.get(name))(trial, parameters))
  return [...registry.all(trial).rules, ...made]
}

const SHARED = ['cnn-good', 'cnn-overfit', 'autoencoder', 'cnn-reductions', 'xgb-cancer']
  .map(name => join(ROOT, '../shared/trials', name))
  .filter(directory => existsSync(directory))
const FIXTURES = ['mlp-vanishing', 'cnn-raw-and-reductions', 'workers-4', 'xgb-cancer'].map(
  name => fixtureTrial(name).directory,
)

const named = [...FIXTURES, ...SHARED].map(directory => [directory.split('/').slice(-3).join('/'), directory])
describe.each(part(named, (_, i) => i === 0 || i === 2))('%s', (_, directory) => {
  it('is read once by all rules together', async () => {
    const trial = await createTrial(directory!, { requireCollections: false })
    const rules = manyRules(trial, new RuleRegistry())
    const read = await ranges(() => evaluate(rules, { threads: 0, follow: false }))
    expect(overlaps(read)).toEqual([])
    // Small gaps between records, where the hook wrote something else, are read over.
    const files = [...new Set(read.map(({ path }) => path))]
    const onDisk = files.reduce((sum, path) => sum + statSync(join(directory!, path)).size, 0)
    expect(bytesOf(read)).toBeLessThanOrEqual(onDisk)
  })

  it('is read no further when every rule is there twice', async () => {
    const trial = await createTrial(directory!, { requireCollections: false })
    const registry = new RuleRegistry()
    const once = await ranges(() => evaluate(manyRules(trial, registry), { threads: 0, follow: false }))
    const twice = [...manyRules(trial, registry), ...manyRules(trial, registry)]
    expect(await ranges(() => evaluate(twice, { threads: 0, follow: false }))).toEqual(once)
  })
})

it('reads only what is needed: the gradients of a few bytes, not the trial', async () => {
  const trial = await createTrial(fixtureTrial('mlp-vanishing').directory)
  const { tensors } = await trial.summary()
  const gradients = tensors.filter(({ name }) => trial.collection('gradients').members.includes(name))
  const needed = gradients.reduce((sum, { byteLength }) => sum + byteLength, 0)
  const rule = new (new RuleRegistry().get('VanishingGradient'))(trial)
  expect(bytesOf(await ranges(() => evaluate(rule, { threads: 0, follow: false })))).toBe(needed)
})

it('compares a trial with itself without reading it twice', async () => {
  const { directory } = fixtureTrial('mlp-vanishing')
  const [trial, other] = [await createTrial(directory), await createTrial(directory)]
  const rule = new (new RuleRegistry().get('SimilarAcrossRuns'))(trial, { otherTrials: [other] })
  const read = await ranges(() => evaluate(rule, { threads: 0, follow: false }))
  expect(overlaps(read)).toEqual([])
})

describe('values for rules', () => {
  const scratch = mkdtempSync(join(tmpdir(), 'trialscan-once-'))
  const [steps, tensors, elements] = [40, 4, 40_000]
  let trial: Trial

  beforeAll(async () => {
    const values = Array.from({ length: elements }, (_, i) => Math.sin(i))
    const writer = new TrialWriter(scratch)
    for (let step = 0; step < steps; step++) {
      const saved = Array.from({ length: tensors }, (_, i) => ({ name: `t${i}`, dtype: 'float32' as const, values }))
      writer.step({ step, tensors: saved.map(tensor => ({ ...tensor, shape: [elements] })) })
    }
    writer.end()
    trial = await createTrial(scratch)
  })

  afterAll(() => rmSync(scratch, { recursive: true, force: true }))

  class Wants extends Rule {
    /** Bytes of values that had been made when a step was judged. */
    readonly made: number[] = []
    readonly copied: () => number

    constructor(trial: Trial, copied: () => number) {
      super(trial)
      this.copied = copied
    }

    override setRequiredTensors(step: number): void {
      this.reqTensors.add('.*', [step], { regex: true })
    }

    override async invokeAtStep(step: number): Promise<boolean> {
      this.made.push(this.copied())
      for (const tensor of this.reqTensors.get()) {
        if ((await tensor.value(step)).data.length !== elements) throw new Error('another tensor')
        await tensor.reductionValue(step, 'mean')
      }
      return false
    }
  }

  /** What a run costs: reads, bytes, jobs, instances of the core and copies of values. */
  async function cost(run: (rule: Rule) => Promise<unknown>) {
    const instances = vi.spyOn(WebAssembly, 'Instance')
    const jobs = vi.spyOn(InlineRunner.prototype, 'run')
    const slice = vi.spyOn(Uint8Array.prototype, 'slice')
    const copied = () => slice.mock.contexts.filter(bytes => (bytes as Uint8Array).length === 4 * elements).length
    const rule = new Wants(trial, copied)
    try {
      const read = await ranges(() => run(rule))
      return {
        bytes: bytesOf(read),
        reads: read.length,
        jobs: jobs.mock.calls.length,
        instances: instances.mock.calls.length,
        copies: copied(),
        made: rule.made,
      }
    } finally {
      for (const spy of [instances, jobs, slice]) spy.mockRestore()
    }
  }

  it('cost evaluate no more than invokeRule: reads, bytes, copies, instances', async () => {
    await trial.tensor('t0').value(0)
    const invoked = await cost(rule => invokeRule(rule, { endStep: steps }))
    const evaluated = await cost(rule => evaluate(rule))
    expect(evaluated).toMatchObject({ bytes: invoked.bytes, copies: steps * tensors, instances: 0 })
    expect(invoked).toMatchObject({ jobs: steps, copies: steps * tensors, instances: 0 })
    expect(evaluated.jobs).toBeLessThan(invoked.jobs / 5)
    expect(evaluated.reads).toBeLessThanOrEqual(invoked.reads)
  })

  it('are made no more than 8 MiB ahead, so that they are used where they lie', async () => {
    const { made } = await cost(rule => evaluate(rule))
    const perStep = tensors * 4 * elements
    const ahead = made.map((copies, step) => copies * 4 * elements - step * perStep)
    expect(Math.max(...ahead)).toBeLessThanOrEqual(8 << 20)
    expect(ahead[0]).toBeGreaterThan(7 << 20)
  })

  it('keep to the larger window where older tensors would be read again', async () => {
    const unchanged = () => new UnchangedTensor(trial, { tensor_regex: '.*', num_steps: 3 })
    const read = await ranges(() => evaluate([unchanged(), new Wants(trial, () => 0)], { threads: 0 }))
    expect(overlaps(read)).toEqual([])
  })
})
