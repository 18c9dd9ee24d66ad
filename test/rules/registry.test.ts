/** Rules by name. */

import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { UsageError } from '#dist/base/errors.js'
import type { BuiltinClass } from '#dist/rules/base/builtin.js'
import { silent } from '#dist/rules/finding.js'
import { RuleRegistry } from '#dist/rules/registry.js'
import { Rule, type RuleOptions } from '#dist/rules/rule.js'
import { createTrial } from '#dist/trial/open.js'
import type { Trial } from '#dist/trial/trial.js'
import { ROOT } from '../support/golden.js'
import { thrownBy } from '../support/scanning.js'

/** Stand for the built-in rules, so that these tests are about the registry alone. */
const { builtins } = vi.hoisted(() => ({ builtins: [] as BuiltinClass[] }))
vi.mock('#dist/rules/builtin/index.js', () => ({ BUILTIN_RULES: builtins }))

class Silent extends Rule {
  override invokeAtStep(): boolean {
    return false
  }
}
class Other extends Silent {}

abstract class Fake extends Silent {
  static readonly parameters = {}
  static readonly meaning = ''
  static readonly advice = ''
  static readonly suggested: Readonly<Record<string, string>> = {}
  static readonly reasons: Readonly<Record<string, string>> = {}
  static readonly onlyByName: string | null = null
  static lacks(_trial: Trial, _options: { readonly otherTrials?: readonly Trial[] } = {}): string | null {
    return null
  }
  readonly options: RuleOptions
  constructor(trial: Trial, options: RuleOptions & { readonly threshold?: string } = {}) {
    const { threshold: _, ...own } = options
    super(trial, own)
    this.options = options
  }
}
class VanishingGradient extends Fake {
  static override readonly suggested = { threshold: '1' }
}
class NLPSequenceRatio extends Fake {
  static override lacks(trial: Trial): string {
    return `no input sequence in ${trial.name}`
  }
}
class SimilarAcrossRuns extends Fake {
  static override lacks(_: Trial, { otherTrials = [] }: RuleOptions = {}): string | null {
    return otherTrials?.length === 1 ? null : 'no other trial'
  }
}
class StalledTrainingRule extends Fake {}
builtins.push(VanishingGradient, NLPSequenceRatio, SimilarAcrossRuns, StalledTrainingRule)

const names = ['VanishingGradient', 'NLPSequenceRatio', 'SimilarAcrossRuns', 'StalledTrainingRule']
let trial: Trial
beforeAll(async () => {
  trial = await createTrial(join(ROOT, 'fixtures/trials/mlp-vanishing'), { threads: 0 })
})
afterAll(() => trial.close())

const refusal = (call: () => unknown): string => {
  const error = thrownBy(call)
  expect(error).toBeInstanceOf(UsageError)
  return (error as Error).message
}

describe('get', () => {
  const registry = new RuleRegistry()

  it('starts with the built-in rules', () => {
    expect(registry.names).toEqual(names)
  })

  it.each([
    ['VanishingGradient', VanishingGradient],
    ['vanishinggradient', VanishingGradient],
    ['vanishing_gradient', VanishingGradient],
    ['VANISHING-GRADIENT', VanishingGradient],
    ['nlp_sequence_ratio', NLPSequenceRatio],
    ['stalled_training_rule', StalledTrainingRule],
  ])('%s', (name, RuleClass) => {
    expect(registry.get(name)).toBe(RuleClass)
  })

  it('suggests what may have been meant', () => {
    expect(refusal(() => registry.get('vanishing_gradeint'))).toBe(
      'there is no rule "vanishing_gradeint"; did you mean VanishingGradient?',
    )
    expect(refusal(() => registry.get('stalled_training'))).toContain('did you mean StalledTrainingRule?')
    expect(refusal(() => registry.get('xyzzy'))).toBe(`there is no rule "xyzzy"; there are: ${names.join(', ')}`)
    for (const name of ['', '__proto__', 'constructor']) expect(refusal(() => registry.get(name))).toContain('no rule')
  })
})

describe('register', () => {
  it('takes a class, under its name or another', () => {
    const registry = new RuleRegistry()
    registry.register(Silent)
    registry.register(Silent, 'my_rule')
    expect(registry.names).toEqual([...names, 'Silent', 'my_rule'])
    expect([registry.get('silent'), registry.get('MyRule')]).toEqual([Silent, Silent])
    expect(new RuleRegistry().names).toEqual(names)
  })

  it('refuses what is no class of rules, and names that are taken', () => {
    const registry = new RuleRegistry()
    for (const what of [Rule, class Foreign {}, () => {}, {}, null]) {
      expect(refusal(() => registry.register(what as typeof Silent))).toContain(
        'expected a class that extends Rule, got ',
      )
    }
    registry.register(Silent)
    expect(refusal(() => registry.register(Other, 'si_lent'))).toBe(
      'there is a rule Silent already: expected another name, got "si_lent"',
    )
    for (const name of ['', '_']) expect(refusal(() => registry.register(Silent, name))).toContain('expected a name')
  })
})

describe('registerModule', () => {
  const url = 'file:///rules.mjs'
  const register = (exports: Record<string, unknown>): readonly string[] => {
    const registry = new RuleRegistry()
    registry.registerModule(exports, url)
    return registry.names.slice(names.length)
  }

  it('takes the rules of a module, each once', () => {
    expect(register({ Silent, Other, Rule, helper: () => 1, LIMIT: 5 })).toEqual(['Silent', 'Other'])
    expect(register({ default: Silent, Other })).toEqual(['Other', 'Silent'])
    expect(register({ default: Silent, Silent })).toEqual(['Silent'])
    expect(register({ default: Silent, Renamed: Silent })).toEqual(['Renamed'])
    expect(register({ VanishingGradient, Silent })).toEqual(['Silent'])
    expect(register({ VanishingGradient })).toEqual([])
    const registry = new RuleRegistry()
    for (let i = 0; i < 2; i++) registry.registerModule({ Silent }, url)
    expect(registry.names).toHaveLength(names.length + 1)
  })

  it('refuses a module without rules, and a name that is taken', () => {
    expect(refusal(() => register({}))).toMatch(/^\/rules\.mjs: expected an export .*, got nothing$/)
    expect(refusal(() => register({ Rule, LIMIT: 5 }))).toContain('got Rule (function Rule), LIMIT (5)')
    expect(refusal(() => register({ default: class extends Silent {} }))).toContain('expected a name for the class')
    expect(refusal(() => register({ Silent, silent: Other }))).toBe(
      '/rules.mjs: there is a rule Silent already: expected another name, got "silent"',
    )
  })

  it("takes a class of a built-in rule's name for the user's own", () => {
    const registry = new RuleRegistry()
    registry.registerModule({ VanishingGradient: Silent }, url)
    expect(registry.names).toEqual(names)
    expect(registry.get('vanishing_gradient')).toBe(Silent)
    expect(registry.get('vanishing_gradient', 'builtin')).toBe(VanishingGradient)
    expect(registry.get('vanishing_gradient', 'user')).toBe(Silent)
    expect(refusal(() => registry.get('DeadRelu', 'user'))).toContain('there is no rule "DeadRelu"')
    // What check runs by itself stays what it is.
    expect(registry.all(trial, { logger: silent }).rules[0]).toBeInstanceOf(VanishingGradient)
  })
})

describe('all', () => {
  it('makes what the trial allows, and says what it leaves out', () => {
    const registry = new RuleRegistry()
    registry.register(Silent)
    const { rules, leftOut, onlyByName } = registry.all(trial, { logger: silent })
    expect(onlyByName).toEqual([])
    expect(rules.map(({ name }) => name)).toEqual(['VanishingGradient', 'StalledTrainingRule'])
    expect(rules[0]).toMatchObject({ baseTrial: trial, otherTrials: [], logger: silent, options: { threshold: '1' } })
    expect(leftOut).toEqual([
      {
        rule: 'NLPSequenceRatio',
        name: 'NLPSequenceRatio',
        trial: 'mlp-vanishing',
        missing: 'no input sequence in mlp-vanishing',
        partial: false,
      },
      {
        rule: 'SimilarAcrossRuns',
        name: 'SimilarAcrossRuns',
        trial: 'mlp-vanishing',
        missing: 'no other trial',
        partial: false,
      },
    ])
  })

  it('hands the other trials on', () => {
    const { rules, leftOut } = new RuleRegistry().all(trial, { otherTrials: [trial] })
    expect(rules.map(({ name, otherTrials }) => [name, otherTrials.length])).toContainEqual(['SimilarAcrossRuns', 1])
    expect(leftOut).toHaveLength(1)
    expect(new RuleRegistry().all(trial).leftOut).toHaveLength(2)
  })
})
