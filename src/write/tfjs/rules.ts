/** Rules that judge each step of a training as soon as it is written. */

import { RuleEvaluationConditionMet } from '../../base/errors.js'
import { checkOptions, isObject, kinds, optionsOf } from '../../base/options.js'
import type { Action } from '../../rules/action/action.js'
import { type Finding, isUnavailable } from '../../rules/finding.js'
import { RuleRegistry } from '../../rules/registry.js'
import type { Rule, RuleClass } from '../../rules/rule.js'
import { createTrial } from '../../trial/open.js'
import type { Trial } from '../../trial/trial.js'
import type { TrialWriter } from '../writer.js'

/** An action when a rule fires: `stop` ends the training; a function or an action is called. */
export type HookAction = 'stop' | Action | Action['onFire']

export interface HookRule {
  /** A rule's name, or its class. */
  readonly rule: string | RuleClass
  /** The parameters of the rule. Others have the values that `check` uses when it runs all rules. */
  readonly parameters?: Readonly<Record<string, unknown>>
  /** The rule's name in findings. Default: the name of its class. */
  readonly name?: string
  readonly actions?: HookAction | readonly HookAction[]
}

export type HookRules = readonly (string | RuleClass | HookRule)[]

/** The report of the rules on a training. */
export interface HookReport {
  readonly findings: readonly Finding[]
  /** The tensors that rules wanted and that were not saved, one sentence each, after the rule's name. */
  readonly missing: readonly string[]
  /** The errors of rules, actions and unreadable tensors. */
  readonly problems: readonly { readonly rule: string; readonly error: Error }[]
}

/** A built-in rule has suggested parameters besides smdebug's defaults. */
type SuggestingClass = RuleClass & { readonly suggested?: Readonly<Record<string, string>> }

const HOOK_RULE = optionsOf<HookRule>(
  {
    rule: kinds.that<string | RuleClass>('the name of a rule, or its class', isRuleOrName),
    parameters: kinds.that('an object of parameters', isObject),
    name: kinds.text,
    actions: kinds.that('stop, functions or actions', isActions),
  },
  'rule',
)

export class TrainingRules {
  readonly #writer: TrialWriter
  readonly #given: readonly HookRule[]
  readonly #stop: () => void
  readonly #findings: Finding[] = []
  readonly #problems: { rule: string; error: Error }[] = []
  /** The rules that have thrown and no longer judge. */
  readonly #ended = new Set<Rule>()
  #trial: Trial | null = null
  #rules: readonly Rule[] = []
  #last = -1

  /** @throws UsageError */
  constructor(writer: TrialWriter, given: HookRules, stop: () => void) {
    this.#writer = writer
    this.#stop = stop
    this.#given = given.map(entry => {
      const rule = typeof entry === 'string' || typeof entry === 'function' ? { rule: entry } : entry
      return checkOptions('hook.rules', HOOK_RULE, rule)
    })
  }

  get report(): HookReport {
    const missing = this.#rules.flatMap(rule => rule.missing().map(sentence => `${rule.name}: ${sentence}`))
    const unread = this.#rules.flatMap(rule => rule.problems().map(({ error }) => ({ rule: rule.name, error })))
    return { findings: [...this.#findings], missing, problems: [...this.#problems, ...unread] }
  }

  /** Opens the unfinished trial, so that an unknown rule or parameter is an error at once. */
  async open(): Promise<void> {
    const { path, options } = this.#writer
    const trial = await createTrial(path, { refresh: 'manual', s3: options.s3 })
    this.#trial = trial
    const registry = new RuleRegistry()
    this.#rules = this.#given.map(({ rule, parameters = {}, name, actions = [] }) => {
      const RuleOf = typeof rule === 'string' ? registry.get(rule) : rule
      const called = name ?? RuleOf.name
      const all = [
        ({ findings }: { readonly findings: readonly Finding[] }) => void this.#findings.push(...findings),
        ...(Array.isArray(actions) ? (actions as readonly HookAction[]) : [actions as HookAction]).map(action =>
          this.#actionOf(action, called),
        ),
      ]
      return new RuleOf(trial, { ...(RuleOf as SuggestingClass).suggested, ...parameters, name: called, actions: all })
    })
  }

  /** Judges the new steps. */
  async judge(): Promise<void> {
    const trial = this.#trial!
    await trial.refresh()
    const steps = trial.steps().filter(step => step > this.#last)
    for (const step of steps) {
      this.#last = step
      for (const rule of this.#rules) if (!this.#ended.has(rule)) await this.#invoke(rule, step)
    }
  }

  async close(): Promise<void> {
    await this.#trial?.close()
  }

  async #invoke(rule: Rule, step: number): Promise<void> {
    try {
      await rule.invoke(step)
    } catch (error) {
      if (error instanceof RuleEvaluationConditionMet) {
        if (error.endOfRule) this.#ended.add(rule)
      } else if (!isUnavailable(error)) {
        // An error of a rule does not end the training.
        this.#ended.add(rule)
        this.#problems.push({ rule: rule.name, error: errorOf(error) })
      }
    }
  }

  #actionOf(action: HookAction, rule: string): Action {
    if (action === 'stop') return { name: 'stop', onFire: this.#stop }
    const { name, onFire } = typeof action === 'function' ? { name: 'callback', onFire: action } : action
    return {
      name,
      onFire: async (firing, logger) => {
        try {
          await onFire.call(action, firing, logger)
        } catch (error) {
          this.#problems.push({ rule, error: errorOf(error) })
        }
      },
    }
  }
}

function errorOf(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown))
}

function isRuleOrName(given: unknown): boolean {
  return typeof given === 'string' || typeof given === 'function'
}

function isActions(given: unknown): boolean {
  return (Array.isArray(given) ? given : [given]).every(action => {
    if (action === 'stop' || typeof action === 'function') return true
    return typeof action === 'object' && action !== null && typeof (action as Partial<Action>).onFire === 'function'
  })
}
