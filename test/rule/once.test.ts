/** What rules read: each byte once, however many rules there are, and nothing that none of them needs. */

import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { createTrial, evaluate, type Rule, RuleRegistry, type Trial } from '#dist/index.js'
import { LocalStore } from '#dist/store/local.js'
import { fixtureTrial, ROOT } from '../support/golden.js'

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

describe.each([...FIXTURES, ...SHARED].map(directory => [directory.split('/').slice(-3).join('/'), directory]))(
  '%s',
  (_, directory) => {
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
  },
)

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
