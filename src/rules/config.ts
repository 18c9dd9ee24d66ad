/**
 * Rules from JSON: SageMaker's `DebugRuleConfigurations`, or the output of the package sagemaker-debugger-rulesconfig, which adds the
 * collections to save.
 */

import { expectArgument } from '../base/arguments.js'
import { UsageError } from '../base/errors.js'
import { checkOptions, kinds, optionsOf } from '../base/options.js'
import {
  expectList,
  expectObject,
  expectString,
  inside,
  type JsonObject,
  type JsonPlace,
  jsonExcerpt,
  jsonFault,
  parseJsonObject,
} from '../format/json.js'
import type { Trial } from '../trial/trial.js'
import { type BuiltinClass, BuiltinRule } from './base/builtin.js'
import { isWiderDefault } from './base/names.js'
import { BUILTIN_RULES } from './builtin/index.js'
import type { Logger } from './finding.js'
import { snakeCase } from './parameters.js'
import type { RuleRegistry } from './registry.js'
import { trialKind } from './required.js'
import {
  loggerKind,
  type Rule,
  type RuleClass,
  type RuleOptions,
  tensorFilterKind,
  trialsKind,
  workersKind,
} from './rule.js'

/** The configuration of one rule. */
export interface RuleConfiguration {
  /** The rule's name in findings. It distinguishes two configurations of one rule. */
  readonly name: string
  /** The rule's name in the registry. */
  readonly rule: string
  /** The rule's own parameters. */
  readonly parameters: Readonly<Record<string, string | readonly string[]>>
  /** The actions, as `action_json`. */
  readonly actions?: string | null
  /** Paths of other trials. */
  readonly otherTrials?: readonly string[]
  readonly startStep?: number | null
  /** The step after the last one to judge. */
  readonly endStep?: number | null
  /**
   * The place of a custom rule's class (`source_s3_uri`): the rule is a user's own, whatever its name. Null for a built-in rule, if there
   * is one of that name. Default: a user's rule, or else a built-in one.
   */
  readonly source?: string | null
  /** The collections that SageMaker would save for the rule. */
  readonly collections?: readonly CollectionConfiguration[]
}

export interface CollectionConfiguration {
  readonly name: string
  readonly parameters: Readonly<Record<string, string>>
}

export interface MakeRulesOptions {
  readonly baseTrial: Trial
  readonly registry: RuleRegistry
  /** Called once for each path that a configuration names. */
  readonly openTrial: (path: string) => Promise<Trial>
  readonly logger?: Logger | null | undefined
  /** The other trials for configurations that name none. */
  readonly otherTrials?: readonly Trial[] | undefined
  /** Judge only these workers, whatever a configuration says. Default: as the configuration says. */
  readonly workers?: RuleOptions['workers']
  /** Judge only tensors whose name it is true for. Default: all tensors. */
  readonly tensorFilter?: RuleOptions['tensorFilter']
}

const MAKE_OPTIONS = optionsOf<MakeRulesOptions>(
  {
    baseTrial: trialKind,
    registry: kinds.that('a RuleRegistry', given => typeof (given as RuleRegistry | null)?.get === 'function'),
    openTrial: kinds.callback(),
    logger: kinds.orNull(loggerKind),
    otherTrials: trialsKind,
    workers: workersKind,
    tensorFilter: tensorFilterKind,
  },
  'baseTrial',
  'registry',
  'openTrial',
)

const CODE = 'BadRuleConfiguration'
const LIST = 'DebugRuleConfigurations'

/** Keys of `RuleParameters` that are no parameters of the rule, besides `other_trial_0` and so on. */
const RESERVED: readonly string[] = [
  'rule_to_invoke',
  'action_json',
  'start_step',
  'end_step',
  'source_s3_uri',
  // For SageMaker's container. Ignored here: the caller provides the trial.
  'base_trial',
]

/** Constructor options that are no rule parameters, with their counterparts in a configuration. */
const CONFIG_OPTIONS: ReadonlyMap<string, string> = new Map([
  ['name', 'RuleConfigurationName'],
  ['actions', 'action_json'],
  ['otherTrials', 'other_trial_0'],
  ['startStep', 'start_step'],
  ['endStep', 'end_step'],
  ['logger', 'a parameter of the rule'],
])

/**
 * Reads a list of configurations, an object with a `DebugRuleConfigurations` list (such as a response of SageMaker's
 * DescribeTrainingJob), or a single configuration.
 * @param url names the file in errors
 * @throws FormatError `BadRuleConfiguration` with the place in the JSON
 */
export function parseRuleConfigurations(text: string, url: string): Required<RuleConfiguration>[] {
  expectArgument('parseRuleConfigurations', 'text', 'a text', text, typeof text === 'string')
  const root = { url, code: CODE, at: '' }
  const value = parseConfigurations(text, url)
  const isSingle = !Array.isArray(value) && !Object.hasOwn(expectObject(value, root), LIST)
  if (isSingle) return [readEntry(value, root)]
  const place = Array.isArray(value) ? root : inside(root, LIST)
  const configurations = expectList(Array.isArray(value) ? value : (value as JsonObject)[LIST], place, readEntry)
  if (configurations.length === 0) throw jsonFault(place, 'at least one rule configuration', 'none')
  const names = new Set<string>()
  for (const [index, { name }] of configurations.entries()) {
    const wanted = 'another name: findings are told apart by it'
    if (names.has(name)) throw jsonFault(inside(place, index), wanted, `${jsonExcerpt(name)} a second time`)
    names.add(name)
  }
  return configurations
}

/** Makes the rules of configurations, in their order. An error's message begins with the configuration's name. */
export async function makeRules(
  configurations: readonly RuleConfiguration[],
  options: MakeRulesOptions,
): Promise<Rule[]> {
  const checked = checkOptions('makeRules', MAKE_OPTIONS, options)
  const { baseTrial, registry, openTrial, logger, workers, tensorFilter, otherTrials = [] } = checked
  const opened = new Map<string, Trial>()
  const open = async (path: string): Promise<Trial> => {
    const trial = opened.get(path) ?? (await openTrial(path))
    opened.set(path, trial)
    return trial
  }
  const rules: Rule[] = []
  for (const {
    name,
    rule,
    parameters,
    source,
    actions,
    startStep,
    endStep,
    otherTrials: paths = [],
  } of configurations) {
    try {
      const RuleClass = classOf(registry, rule, source)
      const others: Trial[] = []
      for (const path of paths) others.push(await open(path))
      const shared = {
        ...(workers != null && { workers }),
        ...(tensorFilter != null && { tensorFilter }),
        name,
        actions,
        startStep,
        endStep,
        logger,
      }
      const options = { ...shared, otherTrials: others.length > 0 ? others : otherTrials }
      rules.push(makeRule(RuleClass, baseTrial, parameters, options))
    } catch (error) {
      // Callers act on the error's class, so it is not wrapped. Some messages name the configuration already.
      const isNamed = !(error instanceof Error) || error.message.startsWith(`rule ${name}`)
      if (!isNamed) error.message = `${name}: ${error.message}`
      throw error
    }
  }
  return rules
}

/** The class for a configuration. @throws UsageError for a custom rule that is not registered */
function classOf(registry: RuleRegistry, rule: string, source: string | null | undefined): RuleClass {
  if (source === undefined || source === null) return registry.get(rule, source === null ? 'builtin' : undefined)
  try {
    return registry.get(rule, 'user')
  } catch (error) {
    const wanted = `the class ${rule} of ${source}, which has not been loaded`
    const message = `expected ${wanted}: a module that exports a rule of that name has to be registered (on the command line: --module FILE)`
    throw new UsageError(message, { rule, source }, error)
  }
}

/**
 * Makes a rule. If its default names belong to another framework, it gets the parameters that its class suggests, provided the trial has
 * such tensors: `check` judges the same tensors whether it chose the rule or got its name.
 */
function makeRule(
  RuleClass: RuleClass,
  trial: Trial,
  parameters: RuleConfiguration['parameters'],
  options: RuleOptions,
): Rule {
  const rule = new RuleClass(trial, { ...parameters, ...options })
  const { suggested } = RuleClass as Partial<BuiltinClass>
  const isSelective = Object.keys(parameters).some(name => /regex|collection/i.test(name))
  const isOurs = BUILTIN_RULES.some(Ours => Ours === RuleClass)
  if (!isOurs || !(rule instanceof BuiltinRule) || !suggested || isSelective || rule.emptySelections === 0) return rule
  const given = Object.fromEntries(Object.entries(parameters).map(([name, value]) => [snakeCase(name), value]))
  const other = new RuleClass(trial, { ...suggested, ...given, ...options }) as typeof rule
  if (other.emptySelections < rule.emptySelections) return other
  // The tensors may still come, or be saved next time, under any framework's names.
  const wider = Object.fromEntries(Object.entries(suggested).filter(([, value]) => isWiderDefault(value)))
  return Object.keys(wider).length > 0 ? new RuleClass(trial, { ...wider, ...given, ...options }) : rule
}

function parseConfigurations(text: string, url: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Parses once more, for an error with the place.
    return parseJsonObject(text, url, CODE)
  }
}

function readEntry(value: unknown, place: JsonPlace): Required<RuleConfiguration> {
  const entry = expectObject(value, place)
  if (!Object.hasOwn(entry, 'DebugRuleConfiguration')) return readConfiguration(entry, place, [])
  const collections = expectList(
    entry.CollectionConfigurations,
    inside(place, 'CollectionConfigurations'),
    readCollection,
  )
  const within = inside(place, 'DebugRuleConfiguration')
  return readConfiguration(expectObject(entry.DebugRuleConfiguration, within), within, collections)
}

function readConfiguration(
  entry: JsonObject,
  place: JsonPlace,
  collections: readonly CollectionConfiguration[],
): Required<RuleConfiguration> {
  if (!Object.hasOwn(entry, 'RuleConfigurationName')) {
    const wanted = `an object with RuleConfigurationName and RuleParameters, DebugRuleConfiguration or ${LIST}`
    throw jsonFault(
      place,
      wanted,
      `one with ${Object.keys(entry).slice(0, 8).map(jsonExcerpt).join(', ') || 'nothing'}`,
    )
  }
  const name = expectName(entry.RuleConfigurationName, inside(place, 'RuleConfigurationName'))
  const named = { ...place, at: `${place.at} (${jsonExcerpt(name)})`.trimStart() }
  const within = inside(named, 'RuleParameters')
  const ruleParameters = expectObject(entry.RuleParameters ?? {}, within)
  const at = (key: string): JsonPlace => inside(within, key)
  if (ruleParameters.rule_to_invoke === undefined) {
    throw jsonFault(at('rule_to_invoke'), 'the name of a rule', 'nothing')
  }
  const [startStep, endStep] = ['start_step', 'end_step'].map(key => readStep(ruleParameters[key], at(key)))
  if (typeof startStep === 'number' && typeof endStep === 'number' && endStep <= startStep) {
    throw jsonFault(at('end_step'), `a step beyond start_step ${startStep}`, String(endStep))
  }
  const otherTrials: [number, string][] = []
  const parameters: [string, string | readonly string[]][] = []
  for (const [key, value] of Object.entries(ruleParameters)) {
    const option = CONFIG_OPTIONS.get(key)
    const index = /^other_trial_(\d+)$/.exec(key)?.[1]
    if (option !== undefined) throw jsonFault(within, option, jsonExcerpt(key))
    if (index !== undefined) otherTrials.push([Number(index), expectName(value, at(key))])
    else if (!RESERVED.includes(key)) parameters.push([key, expectParameter(value, at(key))])
  }
  return {
    name,
    rule: expectName(ruleParameters.rule_to_invoke, at('rule_to_invoke')),
    parameters: Object.fromEntries(parameters),
    actions:
      ruleParameters.action_json === undefined ? null : expectString(ruleParameters.action_json, at('action_json')),
    otherTrials: otherTrials.sort(([a], [b]) => a - b).map(([, path]) => path),
    startStep: startStep ?? null,
    endStep: endStep ?? null,
    source: readSource(ruleParameters.source_s3_uri, at('source_s3_uri')),
    collections,
  }
}

function readCollection(value: unknown, place: JsonPlace): CollectionConfiguration {
  const entry = expectObject(value, place)
  const within = inside(place, 'CollectionParameters')
  const parameters = Object.entries(expectObject(entry.CollectionParameters ?? {}, within))
  return {
    name: expectName(entry.CollectionName, inside(place, 'CollectionName')),
    parameters: Object.fromEntries(parameters.map(([key, value]) => [key, expectText(value, inside(within, key))])),
  }
}

/** A place; null for none. */
function readSource(value: unknown, place: JsonPlace): string | null {
  const text = value === undefined || value === null ? '' : expectString(value, place).trim()
  return text === '' || text === 'None' ? null : text
}

/** A step; null for none. SageMaker's documentation shows `None` and an empty string as defaults. */
function readStep(value: unknown, place: JsonPlace): number | null {
  const text = value === undefined ? '' : expectText(value, place).trim()
  if (text === '' || text === 'None') return null
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(Number(text))) throw jsonFault(place, 'a step', jsonExcerpt(value))
  return Number(text)
}

/** SageMaker's API takes only strings. A file written by hand may have numbers and booleans. */
function expectText(value: unknown, place: JsonPlace): string {
  if (!['string', 'number', 'boolean'].includes(typeof value)) {
    throw jsonFault(place, 'a string, a number, true or false', jsonExcerpt(value))
  }
  return String(value)
}

/** An array is for patterns that contain a comma. */
function expectParameter(value: unknown, place: JsonPlace): string | readonly string[] {
  return Array.isArray(value) ? expectList(value, place, expectText) : expectText(value, place)
}

function expectName(value: unknown, place: JsonPlace): string {
  const name = expectString(value, place)
  if (name.trim() === '') throw jsonFault(place, 'a name', jsonExcerpt(name))
  return name
}
