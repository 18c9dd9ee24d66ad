/** docs/differences.md: a line for each difference, and what it says of us where that is a fact of a call. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  createTrial,
  evaluate,
  invokeRule,
  modes,
  QueryError,
  Rule,
  RuleEvaluationConditionMet,
  TensorUnavailableForStep,
  type Trial,
  UsageError,
} from '#dist/index.js'
import { TrialWriter } from '../fixtures/event-writer.js'
import { fixtureTrial, ROOT } from './support/golden.js'
import { rejectionOf, thrownBy } from './support/scanning.js'
import { scratchDirectory } from './support/scratch.js'

const text = readFileSync(join(ROOT, 'docs/differences.md'), 'utf8')
const rows = text.split('\n').filter(line => line.startsWith('| ') && !line.startsWith('| case '))
const cellsOf = (row: string) => row.replaceAll('\\|', '¦').split('|').slice(1, -1)
const scratch = scratchDirectory('differences')
let trial: Trial
beforeAll(async () => {
  trial = await createTrial(fixtureTrial('mlp-vanishing').directory)
})
afterAll(() => trial.close())

/** The line whose case begins so. */
function line(begin: string): string {
  const found = rows.filter(row => row.startsWith(`| ${begin}`))
  expect(found, begin).toHaveLength(1)
  return found[0]!
}

it('has a line for each: what it is, both answers, and why', () => {
  expect(rows.length).toBeGreaterThan(70)
  for (const row of rows) for (const cell of cellsOf(row)) expect(cell.trim(), row).not.toBe('')
  for (const row of rows) expect(cellsOf(row), row).toHaveLength(4)
  const cases = rows.map(row => cellsOf(row)[0])
  expect(new Set(cases).size).toBe(cases.length)
})

it('says once what of AWS stays out', () => {
  const [, out] = text.split('\n## What stays out\n')
  for (const call of ['latest_job_debugger_artifacts_path', 'describe_training_job', 'Rule.sagemaker', 'Rule.custom'])
    expect(out).toContain(call)
})

describe('what it says of us', () => {
  it('modes and states are texts', async () => {
    expect(line('`modes.TRAIN`')).toContain("`'TRAIN'`")
    expect(modes.TRAIN).toBe('TRAIN')
    const states = [await trial.hasPassedStep(0), await trial.hasPassedStep(1)]
    for (const state of states) expect(line('`StepState`')).toContain(`\`'${state}'\``)
  })

  it('a reduction is a number, and one that can’t be had is an error', async () => {
    expect(line('a reduction | an array')).toContain('1×1')
    expect(typeof (await trial.tensor(trial.tensorNames()[0]!).reductionValue(0, 'mean'))).toBe('number')
    expect(line('a reduction that was not saved and can’t be computed, in Tornasole'.replace('’', "'"))).toContain(
      'None',
    )
    const writer = new TrialWriter(join(scratch, 'reduced'))
    writer.step({ step: 0, tensors: [{ name: 'x', reductions: { abs_mean: 1 } }] })
    writer.end()
    const only = await createTrial(join(scratch, 'reduced'))
    expect(await rejectionOf(only.tensor('x').reductionValue(0, 'mean'))).toMatchObject({
      constructor: TensorUnavailableForStep,
      message: expect.stringContaining('saved are: abs_mean'),
    })
    await only.close()
  })

  it.each(['(a)\\1', '(?P<n>a)(?P=n)', '(a)?(?(1)b|c)', '(?>a)', 'a++', 'a{1001}'])('%s is refused', pattern => {
    expect(line('`tensor_names(regex)`')).toMatch(
      /backreferences, conditional, atomic and possessive groups, more than 1,000/,
    )
    expect(() => trial.tensorNames({ regex: pattern })).toThrow(UsageError)
  })

  it('collections are made on purpose only', () => {
    line('`collection(name)` of an unknown name')
    line('`trial.collection(name).include(…)`')
    expect(thrownBy(() => trial.collection('nosuch'))).toBeInstanceOf(QueryError)
    expect(() => (trial.tensors as (options: object) => void).call(trial, { collection: 'losses' })).toThrow(UsageError)
  })

  it('an evaluation goes on after a rule has fired', async () => {
    line('after a rule has fired')
    class Always extends Rule {
      invokeAtStep(): boolean {
        return true
      }
    }
    const rule = new Always(trial, { logger: null })
    expect((await evaluate(rule)).findings).toHaveLength(trial.steps().length)
    await invokeRule(rule, { endStep: 20 })
    await expect(invokeRule(rule, { raiseEvalCond: true })).rejects.toBeInstanceOf(RuleEvaluationConditionMet)
  })
})
