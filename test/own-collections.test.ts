/** Collections that a caller makes, for a trial that was saved without them. */

import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  AllZero,
  createTrial,
  diff,
  evaluate,
  invokeRule,
  QueryError,
  Rule,
  type Trial,
  traceNonFinite,
  trialOverview,
  UsageError,
} from '#dist/index.js'
import { TrialWriter } from '../fixtures/event-writer.js'
import { thrownBy } from './support/scanning.js'
import { scratchDirectory } from './support/scratch.js'

const scratch = scratchDirectory('own-collections')
let count = 0

/** A training with a layer that is dead, and one with a NaN. */
function job(steps = 2): { writer: TrialWriter; path: string; write: (step: number, more?: string) => void } {
  const path = join(scratch, String(count++))
  const writer = new TrialWriter(path)
  const write = (step: number, more?: string) => {
    const tensors = [
      { name: 'dead_output_0', values: [0, 0] },
      { name: 'relu_output_0', values: [1, step] },
      { name: 'relu_output_1', values: [Number.NaN, 1] },
      { name: 'fc.weight', values: [1, 2] },
      ...(more === undefined ? [] : [{ name: more, values: [0] }]),
    ].map(({ name, values }) => ({ name, dtype: 'float32', shape: [values.length], values }) as const)
    writer.step({ step, mode: 'TRAIN', modeStep: step, tensors })
  }
  for (let step = 0; step < steps; step++) write(step)
  return { writer, path, write }
}

async function ended(): Promise<Trial> {
  const { writer, path } = job()
  writer.end()
  return createTrial(path)
}

describe('a collection of one’s own', () => {
  it('has what its patterns match and its names say', async () => {
    const trial = await ended()
    const mine = trial.collection('mine', { includeRegex: 'relu_out.*', tensorNames: ['fc.weight', 'nosuch'] })
    expect(mine).toMatchObject({ name: 'mine', members: ['fc.weight', 'relu_output_0', 'relu_output_1'] })
    expect(trial.collection('mine').members).toEqual(mine.members)
    expect(trial.collections().get('mine')!.members).toEqual(mine.members)
    trial.collection('mine', { includeRegex: ['^dead', '^fc'] })
    expect(trial.collection('mine').members).toEqual(['dead_output_0', 'fc.weight'])
    expect(trial.collection('none', {}).members).toEqual([])
  })

  it('is known to every call that takes the name of one', async () => {
    const trial = await ended()
    trial.collection('mine', { includeRegex: ['output'] })
    const members = ['dead_output_0', 'relu_output_0', 'relu_output_1']
    expect(trial.tensorNames({ collection: 'mine' })).toEqual(members)
    expect(trial.tensorNames({ collection: 'mine', step: 1 })).toEqual(members)
    expect(trial.tensorsInCollection('mine')).toEqual(members)
    const rows = new Set<string | null>()
    for await (const { tensor } of trial.scan({ collection: 'mine' })) rows.add(tensor)
    expect([...rows].sort()).toEqual(members)
    expect((await trialOverview(trial)).collections).toContainEqual({ name: 'mine', size: 3 })
    expect((await traceNonFinite(trial, { collection: 'mine' })).origin).toMatchObject({ tensor: 'relu_output_1' })
    expect((await traceNonFinite(trial, { collection: 'mine' })).records).toBe(6)
    const other = await ended()
    other.collection('mine', { includeRegex: ['output'] })
    expect((await diff(trial, other, { collection: 'mine' })).compared).toBe(6)
  })

  it('is known to rules, built-in and one’s own', async () => {
    const trial = await ended()
    trial.collection('mine', { includeRegex: ['output'] })
    const { findings, missing } = await evaluate(new AllZero(trial, { collection_names: 'mine' }))
    expect(missing).toEqual([])
    expect(new Set(findings.map(({ tensor }) => tensor))).toEqual(new Set(['dead_output_0']))
    class Looks extends Rule {
      readonly seen: string[] = []
      override setRequiredTensors(step: number): void {
        for (const name of this.baseTrial.tensorNames({ collection: 'mine' })) this.reqTensors.add(name, [step])
      }
      invokeAtStep(): boolean {
        this.seen.push(...this.reqTensors.getNames())
        return false
      }
    }
    const looks = new Looks(trial)
    await invokeRule(looks, { endStep: 1 })
    expect(looks.seen).toEqual(['dead_output_0', 'relu_output_0', 'relu_output_1'])
  })

  it('grows with a running job', async () => {
    const { writer, path, write } = job()
    const trial = await createTrial(path, { refresh: 'manual' })
    trial.collection('mine', { includeRegex: ['^new'] })
    expect(trial.collection('mine').members).toEqual([])
    expect(await trial.refresh()).toBe(false)
    write(2, 'new_tensor')
    writer.end()
    expect(await trial.refresh()).toBe(true)
    expect(trial.collection('mine').members).toEqual(['new_tensor'])
    expect(trial.tensorNames({ collection: 'mine', step: 2 })).toEqual(['new_tensor'])
  })

  it('is of its trial alone', async () => {
    const { writer, path } = job()
    writer.end()
    const [one, other] = [await createTrial(path), await createTrial(path)]
    one.collection('mine', { includeRegex: ['output'] })
    expect(() => other.collection('mine')).toThrow('has no collection "mine"')
  })

  it('is refused where it can’t be', async () => {
    const trial = await ended()
    const saved = thrownBy(() => trial.collection('weights', { includeRegex: 'x' }))
    expect(saved).toBeInstanceOf(UsageError)
    expect(saved).toMatchObject({ message: expect.stringContaining('the trial has a collection "weights" already') })
    expect(() => trial.collection('mine', { includeRegex: '(' })).toThrow(UsageError)
    expect(() => trial.collection('mine', { include_regex: 'x' } as never)).toThrow('did you mean includeRegex?')
    expect(() => trial.collection('mine', { includeRegex: [5] } as never)).toThrow(UsageError)
    expect(thrownBy(() => trial.collection('mine'))).toBeInstanceOf(QueryError)
  })
})

describe('a collection that nobody made', () => {
  it('ends a rule that asks for it, by its name', async () => {
    const trial = await ended()
    class Asks extends Rule {
      invokeAtStep(): boolean {
        return this.baseTrial.tensorNames({ collection: 'wieghts' }).length > 0
      }
    }
    class AsksBefore extends Asks {
      override setRequiredTensors(step: number): void {
        for (const name of this.baseTrial.tensorsInCollection('wieghts')) this.reqTensors.add(name, [step])
      }
    }
    for (const rule of [new Asks(trial), new AsksBefore(trial)]) {
      const { findings, problems } = await evaluate(rule)
      expect(findings).toEqual([])
      expect(problems).toHaveLength(1)
      expect(problems[0]!.error).toMatchObject({ code: 'RuleFailed', fields: { rule: rule.name, step: 0 } })
      expect(problems[0]!.error.message).toMatch(/has no collection "wieghts"; did you mean weights\?$/)
      await expect(invokeRule(rule, { endStep: 2 })).rejects.toThrow('has no collection "wieghts"')
    }
  })

  it('is taken for another of which Tornasole’s documentation has that name', async () => {
    const { writer, path } = job(0)
    const named = new TrialWriter(path, { collections: { biases: { includeRegex: ['bias'] } } })
    named.step({ step: 0, tensors: [{ name: 'fc.bias', dtype: 'float32', shape: [1], values: [0] }] })
    writer.end()
    const trial = await createTrial(path)
    const { findings, missing } = await evaluate(new AllZero(trial, { collection_names: ['weights', 'bias'] }))
    expect([findings.map(({ tensor }) => tensor), missing]).toEqual([['fc.bias'], []])
  })
})
