/** Rules from JSON: the forms that are read, what is refused and where, and the rules that are made. */

import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FormatError, InsufficientInformationForRuleInvocation, QueryError, UsageError } from '#dist/base/errors.js'
import { makeRules, parseRuleConfigurations, type RuleConfiguration } from '#dist/rules/config.js'
import { silent } from '#dist/rules/finding.js'
import { RuleRegistry } from '#dist/rules/registry.js'
import { Rule, type RuleOptions } from '#dist/rules/rule.js'
import { createTrial } from '#dist/trial/open.js'
import type { Trial } from '#dist/trial/trial.js'
import { ROOT } from '../support/golden.js'
import { rejectionOf, thrownBy } from '../support/scanning.js'

const URL = 'file:///rules.json'
const parse = (value: unknown) => parseRuleConfigurations(JSON.stringify(value), URL)
const entry = (parameters: unknown, name: unknown = 'mine') => ({
  RuleConfigurationName: name,
  RuleParameters: parameters,
})
const plain = {
  actions: null,
  otherTrials: [],
  startStep: null,
  endStep: null,
  source: null,
  collections: [],
}
const loss = { ...plain, name: 'Loss', rule: 'LossNotDecreasing', parameters: { num_steps: '5' } }
const dead = { ...plain, name: 'Dead', rule: 'DeadRelu', parameters: {} }
const lossEntry = {
  RuleConfigurationName: 'Loss',
  RuleEvaluatorImage: '123.dkr.ecr.us-east-1.amazonaws.com/sagemaker-debugger-rules:latest',
  VolumeSizeInGB: 0,
  RuleParameters: { rule_to_invoke: 'LossNotDecreasing', num_steps: '5' },
}
const deadEntry = {
  DebugRuleConfiguration: { RuleConfigurationName: 'Dead', RuleParameters: { rule_to_invoke: 'DeadRelu' } },
  CollectionConfigurations: [
    { CollectionName: 'relu_output', CollectionParameters: { include_regex: '.*relu_output', save_interval: 500 } },
    { CollectionName: 'losses' },
  ],
}
const deadCollections = [
  { name: 'relu_output', parameters: { include_regex: '.*relu_output', save_interval: '500' } },
  { name: 'losses', parameters: {} },
]

describe('parseRuleConfigurations', () => {
  it('reads a list, an object with one, and a single one, in either form', () => {
    const both = [loss, { ...dead, collections: deadCollections }]
    expect(parse([lossEntry, deadEntry])).toEqual(both)
    expect(parse({ TrainingJobName: 'x', DebugRuleConfigurations: [lossEntry, deadEntry] })).toEqual(both)
    expect(parse(lossEntry)).toEqual([loss])
    expect(parse(deadEntry)).toEqual([both[1]])
    expect(parse({ DebugRuleConfiguration: lossEntry, CollectionConfigurations: null })).toEqual([loss])
  })

  it('takes the reserved parameters out', () => {
    const given = {
      rule_to_invoke: 'SimilarAcrossRuns',
      base_trial: 'job',
      source_s3_uri: 's3://code',
      action_json: '{"name":"log"}',
      other_trial_10: 'k',
      other_trial_2: 'c',
      other_trial_0: 'a',
      start_step: '10',
      end_step: 20,
      threshold: 0.5,
      only_nan: true,
      collection_names: '',
    }
    expect(parse([entry(given)])).toEqual([
      {
        name: 'mine',
        rule: 'SimilarAcrossRuns',
        parameters: { threshold: '0.5', only_nan: 'true', collection_names: '' },
        actions: '{"name":"log"}',
        otherTrials: ['a', 'c', 'k'],
        startStep: 10,
        endStep: 20,
        source: 's3://code',
        collections: [],
      },
    ])
    const none = parse(entry({ rule_to_invoke: 'X', start_step: 'None', end_step: '' }))
    expect(none).toMatchObject([{ startStep: null, endStep: null, parameters: {} }])
  })

  it('keeps names that JavaScript has other plans for', () => {
    const text = '{"RuleConfigurationName":"a","RuleParameters":{"rule_to_invoke":"X","__proto__":"y"}}'
    const [configuration] = parseRuleConfigurations(text, URL)
    expect(Object.entries(configuration!.parameters)).toEqual([['__proto__', 'y']])
  })

  const X = { rule_to_invoke: 'X' }
  it.each([
    ['a number', 5, ': expected an object, got 5'],
    ['an empty list', [], ': expected at least one rule configuration, got none'],
    ['an empty inner list', { DebugRuleConfigurations: [] }, 'DebugRuleConfigurations: expected at least one'],
    ['no inner list', { DebugRuleConfigurations: {} }, 'DebugRuleConfigurations: expected a list, got an object'],
    ['a list of names', ['VanishingGradient'], '[0]: expected an object, got "VanishingGradient"'],
    ['an empty object', {}, 'DebugRuleConfiguration or DebugRuleConfigurations, got one with nothing'],
    ['a mistyped key', [{ DebugRuleConfig: {} }], '[0]: expected an object with RuleConfigurationName and'],
    ['another mistyped key', { Rules: [] }, 'got one with "Rules"'],
    ['a number for a name', entry(X, 5), 'RuleConfigurationName: expected a string, got 5'],
    ['an empty name', [entry(X, ' ')], '[0].RuleConfigurationName: expected a name, got " "'],
    [
      'no rule',
      { DebugRuleConfigurations: [entry(X, 'a'), entry({ threshold: '1' }, 'b')] },
      'DebugRuleConfigurations[1] ("b").RuleParameters.rule_to_invoke: expected the name of a rule, got nothing',
    ],
    ['no parameters', [{ RuleConfigurationName: 'b' }], '[0] ("b").RuleParameters.rule_to_invoke: expected the name'],
    ['a rule that is no name', entry({ rule_to_invoke: 5 }), 'rule_to_invoke: expected a string, got 5'],
    ['a list of parameters', entry([]), '("mine").RuleParameters: expected an object, got a list of 0'],
    [
      'a list of lists',
      entry({ ...X, a: [['b']] }),
      'RuleParameters.a[0]: expected a string, a number, true or false, got a list of 1',
    ],
    ['null', entry({ ...X, a: null }), 'RuleParameters.a: expected a string, a number, true or false, got null'],
    ['actions as they are', entry({ ...X, action_json: {} }), 'action_json: expected a string, got an object'],
    ['an empty path', entry({ ...X, other_trial_0: '' }), 'other_trial_0: expected a name, got ""'],
    ['no step', entry({ ...X, start_step: 'first' }), 'start_step: expected a step, got "first"'],
    ['a negative step', entry({ ...X, end_step: -1 }), 'end_step: expected a step, got -1'],
    ['a broken step', entry({ ...X, end_step: 1.5 }), 'end_step: expected a step, got 1.5'],
    [
      'an empty range',
      entry({ ...X, start_step: 5, end_step: '5' }),
      'end_step: expected a step beyond start_step 5, got 5',
    ],
    ['an option', entry({ ...X, startStep: 5 }), 'RuleParameters: expected start_step, got "startStep"'],
    ['a logger', entry({ ...X, logger: 'x' }), 'expected a parameter of the rule, got "logger"'],
    [
      'a collection without a name',
      [{ DebugRuleConfiguration: lossEntry, CollectionConfigurations: [{}] }],
      '[0].CollectionConfigurations[0].CollectionName: expected a string, got nothing',
    ],
    [
      'a collection of lists',
      { ...deadEntry, CollectionConfigurations: [{ CollectionName: 'a', CollectionParameters: { b: [] } }] },
      'CollectionConfigurations[0].CollectionParameters.b: expected a string, a number, true or false, got a list of 0',
    ],
    [
      'a name twice',
      [lossEntry, deadEntry, lossEntry],
      '[2]: expected another name: findings are told apart by it, got "Loss"',
    ],
  ])('refuses %s', (_, value, message) => {
    const error = thrownBy(() => parse(value))
    expect(error).toBeInstanceOf(FormatError)
    expect(error).toMatchObject({ code: 'BadRuleConfiguration', url: URL })
    expect((error as Error).message).toContain(message)
    expect((error as Error).message).toMatch(/^\/rules\.json\b/)
  })

  it('takes a list of patterns, which may have commas in them', () => {
    const [configuration] = parse(entry({ ...X, tensor_regex: ['a{1,3}', 'b'] }))
    expect(configuration!.parameters).toEqual({ tensor_regex: ['a{1,3}', 'b'] })
  })

  it('tells where JSON ends being JSON', () => {
    const text = JSON.stringify([lossEntry])
    for (const [broken, offset] of [
      [text.slice(0, -1), text.length - 1],
      ['', 0],
    ] as const) {
      expect(thrownBy(() => parseRuleConfigurations(broken, URL))).toMatchObject({
        code: 'BadRuleConfiguration',
        offset,
      })
    }
    expect(thrownBy(() => parseRuleConfigurations('[{a}]', URL))).toBeInstanceOf(FormatError)
  })
})

class Probe extends Rule {
  readonly some: unknown
  constructor(
    trial: Trial,
    { fail, some_value, ...options }: RuleOptions & { fail?: unknown; some_value?: unknown } = {},
  ) {
    super(trial, options)
    this.some = some_value
    if (fail === 'usage') throw new UsageError('rule Probe: expected less')
    if (fail === 'information') throw new InsufficientInformationForRuleInvocation('Probe', 'no other trial')
    if (fail === 'other') throw new TypeError('oh')
    if (fail === 'nothing') throw null
  }
  override invokeAtStep(): boolean {
    return false
  }
}

describe('makeRules', () => {
  const registry = new RuleRegistry()
  registry.register(Probe)
  const opened: string[] = []
  let trial: Trial
  let other: Trial
  const openTrial = async (path: string): Promise<Trial> => {
    opened.push(path)
    if (path === 'gone') throw new QueryError('Gone', 'gone is gone')
    return other
  }
  const make = (configurations: readonly RuleConfiguration[], options = {}) =>
    makeRules(configurations, { baseTrial: trial, registry, openTrial, logger: silent, ...options })
  const probe = (more: Partial<RuleConfiguration> = {}): RuleConfiguration => ({
    name: 'mine',
    rule: 'probe',
    parameters: {},
    ...more,
  })

  beforeAll(async () => {
    const path = join(ROOT, 'fixtures/trials/mlp-vanishing')
    trial = await createTrial(path, { threads: 0 })
    other = await createTrial(path, { threads: 0, name: 'other' })
  })
  afterAll(() => Promise.all([trial.close(), other.close()]))

  it('makes rules of what was read', async () => {
    opened.length = 0
    const configurations = parse([
      entry({ rule_to_invoke: 'Probe', some_value: 5, start_step: 1, end_step: 9, action_json: '{"name":"log"}' }, 'a'),
      entry({ rule_to_invoke: 'probe', other_trial_0: 'x', other_trial_1: 'y' }, 'b'),
      entry({ rule_to_invoke: 'PROBE', other_trial_0: 'x' }, 'c'),
    ])
    const [a, b, c, ...more] = await make(configurations)
    expect(more).toEqual([])
    expect(a).toBeInstanceOf(Probe)
    expect(a).toMatchObject({ name: 'a', ruleName: 'Probe', startStep: 1, endStep: 9, otherTrials: [], logger: silent })
    expect(a!.actions.map(({ name }) => name)).toEqual(['log'])
    expect((a as Probe).some).toBe('5')
    expect(b).toMatchObject({ name: 'b', startStep: 0, endStep: Number.POSITIVE_INFINITY, actions: [] })
    expect([b!.otherTrials, c!.otherTrials]).toEqual([[other, other], [other]])
    expect(opened).toEqual(['x', 'y'])
    expect(await make([])).toEqual([])
  })

  it('falls back on the other trials that were given', async () => {
    const rules = await make([probe(), probe({ otherTrials: ['x'] })], { otherTrials: [trial] })
    expect(rules.map(rule => rule.otherTrials)).toEqual([[trial], [other]])
  })

  it.each([
    [probe({ rule: 'prob' }), UsageError, 'mine: there is no rule "prob"; did you mean Probe?'],
    [probe({ parameters: { fail: 'usage' } }), UsageError, 'mine: rule Probe: expected less'],
    [probe({ name: 'Probe', parameters: { fail: 'usage' } }), UsageError, 'rule Probe: expected less'],
    [
      probe({ parameters: { fail: 'information' } }),
      InsufficientInformationForRuleInvocation,
      'mine: rule Probe: no other trial',
    ],
    [probe({ parameters: { fail: 'other' } }), TypeError, 'mine: oh'],
    [
      probe({ actions: '{"name":"lgo"}' }),
      UsageError,
      'mine: action_json: there is no action "lgo"; did you mean log?',
    ],
    [
      probe({ parameters: { Fail: 'usage' } }),
      UsageError,
      'mine: rule Probe has no option "Fail"; it takes otherTrials, actions, name, logger, workers, tensorFilter, startStep, endStep',
    ],
    [probe({ otherTrials: ['gone'] }), QueryError, 'mine: gone is gone'],
  ])('says which configuration an error is about: %#', async (configuration, ErrorClass, message) => {
    const error = await rejectionOf(make([configuration]))
    expect(error).toBeInstanceOf(ErrorClass)
    expect((error as Error).message).toBe(message)
  })

  it('lets what is no error pass', async () => {
    expect(await rejectionOf(make([probe({ parameters: { fail: 'nothing' } })]))).toBeNull()
  })
})
