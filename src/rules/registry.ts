/** Rules by name: the built-in ones, and users' own. */

import { nearestNames, UsageError } from '../base/errors.js'
import { checkOptions, kinds, optionsOf } from '../base/options.js'
import { turnsWhenDue } from '../base/turns.js'
import { jsonExcerpt } from '../format/json.js'
import { prepareMembers } from '../trial/names.js'
import { expectTrial, stateOf, type Trial } from '../trial/trial.js'
import { BUILTIN_RULES } from './builtin/index.js'
import type { Logger, Missing } from './finding.js'
import {
  loggerKind,
  Rule,
  type RuleClass,
  type RuleOptions,
  tensorFilterKind,
  trialsKind,
  workersKind,
} from './rule.js'

/** The built-in rules, sorted by whether they can judge a trial. */
export interface AllRules {
  /** The rules for which the trial has the data. */
  readonly rules: Rule[]
  /** The data that other rules lack. */
  readonly leftOut: Missing[]
  /** The rules that run only by name, and the reasons. */
  readonly onlyByName: { readonly rule: string; readonly reason: string }[]
}

export interface AllRulesOptions {
  readonly otherTrials?: readonly Trial[] | undefined
  readonly logger?: Logger | null | undefined
  /** Judge only these workers. Default: all workers. */
  readonly workers?: RuleOptions['workers']
  /** Judge only tensors whose name it is true for. Default: all tensors. */
  readonly tensorFilter?: RuleOptions['tensorFilter']
}

const ALL_OPTIONS = optionsOf<AllRulesOptions>({
  otherTrials: trialsKind,
  logger: kinds.orNull(loggerKind),
  workers: workersKind,
  tensorFilter: tensorFilterKind,
})

export class RuleRegistry {
  /** The built-in rules by `spellingKey` of their names. */
  readonly #builtin: ReadonlyMap<string, Registered> = new Map(
    BUILTIN_RULES.map(RuleClass => [spellingKey(RuleClass.name), { name: RuleClass.name, RuleClass }]),
  )
  /** Users' rules by `spellingKey` of their names. */
  readonly #registered = new Map<string, Registered>()

  /** The built-in rules, then users' own in the order of registration. */
  get names(): readonly string[] {
    return [...new Set([...this.#builtin.values(), ...this.#registered.values()].map(({ name }) => name))]
  }

  /**
   * Registers a rule. One with the name of a built-in rule replaces it where the rule is requested by name.
   * @throws UsageError for anything but a class that extends Rule, and for a name that is taken
   */
  register(RuleClass: RuleClass, name = RuleClass?.name ?? ''): void {
    if (!isRuleClass(RuleClass))
      throw new UsageError(`expected a class that extends Rule, got ${showExport(RuleClass)}`)
    const key = spellingKey(name)
    if (key === '') throw new UsageError(`expected a name for the rule, got ${jsonExcerpt(name)}`)
    const taken = this.#registered.get(key)
    if (this.#builtin.get(key)?.RuleClass === RuleClass) return
    if (taken)
      throw new UsageError(`there is a rule ${taken.name} already: expected another name, got ${jsonExcerpt(name)}`)
    this.#registered.set(key, { name, RuleClass })
  }

  /**
   * Registers every rule class that an ES module exports, under the name of the export; the default export, under the name
   * of its class. Skips a class that is registered already, under any name.
   * @param url names the module in errors
   * @throws UsageError if the module exports no rule class, or a name is taken
   */
  registerModule(exports: Readonly<Record<string, unknown>>, url: string): void {
    const entries = Object.entries(exports)
    const classes = entries.filter((entry): entry is [string, RuleClass] => isRuleClass(entry[1]))
    if (classes.length === 0) {
      const got = entries.map(([name, value]) => `${name} (${showExport(value)})`).join(', ') || 'nothing'
      const wanted = 'an export that is a class extending Rule (of the trialscan that runs, not of another copy)'
      throw new UsageError(`${url}: expected ${wanted}, got ${got}`, { url })
    }
    // The default export comes last: it often has a named export, too, and that name counts.
    for (const [name, RuleClass] of classes.sort(([a], [b]) => Number(a === 'default') - Number(b === 'default'))) {
      if ([...this.#builtin.values(), ...this.#registered.values()].some(other => other.RuleClass === RuleClass))
        continue
      const isNameless = name === 'default' && ['', 'default'].includes(RuleClass.name)
      if (isNameless) throw new UsageError(`${url}: expected a name for the class of the default export`, { url })
      try {
        this.register(RuleClass, name === 'default' ? RuleClass.name : name)
      } catch (error) {
        throw error instanceof UsageError ? new UsageError(`${url}: ${error.message}`, { url }, error) : error
      }
    }
  }

  /**
   * @param name in any spelling: `VanishingGradient`, `vanishing_gradient`, `vanishing-gradient`
   * @param whose `builtin`: the built-in rule, if there is one; `user`: only a user's rule. Default: a user's rule, or else a built-in
   *   one
   * @throws UsageError with the nearest names
   */
  get(name: string, whose?: 'builtin' | 'user'): RuleClass {
    const key = spellingKey(name)
    const [builtin, registered] = [this.#builtin.get(key), this.#registered.get(key)]
    const found =
      whose === 'user' ? registered : whose === 'builtin' ? (builtin ?? registered) : (registered ?? builtin)
    if (found) return found.RuleClass
    const nearest = nearestNames(key, this.names)
    const hint = nearest.length > 0 ? `did you mean ${nearest.join(' or ')}?` : `there are: ${this.names.join(', ')}`
    throw new UsageError(`there is no rule ${jsonExcerpt(name)}; ${hint}`, { rule: name, nearest })
  }

  /**
   * The rules that `check` runs when none is asked for by name: every built-in rule that the trial has the data for, with the
   * parameters that its class suggests.
   */
  all(trial: Trial, options?: AllRulesOptions): AllRules {
    const found = allRules('registry.all', trial, options)
    for (;;) {
      const { done, value } = found.next()
      if (done) return value
    }
  }

  /** The rules of `all`; others have their turn between them, since each looks at all names. @internal */
  async allInTurns(trial: Trial, options?: AllRulesOptions): Promise<AllRules> {
    expectTrial('registry.allInTurns', trial)
    await prepareMembers(stateOf(trial))
    const found = allRules('registry.allInTurns', trial, options)
    const turn = turnsWhenDue()
    for (;;) {
      const { done, value } = found.next()
      if (done) return value
      await turn()
    }
  }
}

/** The rules of `RuleRegistry.all`; yields behind each. */
function* allRules(call: string, trial: Trial, options: AllRulesOptions | undefined): Generator<undefined, AllRules> {
  const { otherTrials = [], logger, workers, tensorFilter } = checkOptions(call, ALL_OPTIONS, options)
  const shared = { otherTrials, workers, tensorFilter }
  const rules: Rule[] = []
  const leftOut: Missing[] = []
  const onlyByName: AllRules['onlyByName'] = []
  for (const RuleClass of BUILTIN_RULES) {
    const { name, onlyByName: reason } = RuleClass
    if (reason) {
      onlyByName.push({ rule: name, reason })
      continue
    }
    const missing = RuleClass.lacks(trial, shared)
    if (missing === null) rules.push(new RuleClass(trial, { ...RuleClass.suggested, ...shared, logger }))
    else leftOut.push({ rule: name, name, trial: trial.name, missing, partial: false })
    yield
  }
  return { rules, leftOut, onlyByName }
}

interface Registered {
  readonly name: string
  readonly RuleClass: RuleClass
}

function isRuleClass(value: unknown): value is RuleClass {
  return typeof value === 'function' && value.prototype instanceof Rule
}

/** The common key of all spellings of a name. */
function spellingKey(name: string): string {
  return name.replaceAll(/[-_\s]/g, '').toLowerCase()
}

function showExport(value: unknown): string {
  return typeof value === 'function' ? `function ${value.name}`.trim() : jsonExcerpt(value)
}
