/**
 * Rules from JSON: SageMaker's `DebugRuleConfigurations`, and what the package sagemaker-debugger-rulesconfig gives, which
 * is the same with the collections to save beside it. Source: rules.md 1.1, 1.2 and "RC's JSON shape".
 */

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
import { checkOptions, kinds, optionsOf } from '../options.js'
import type { Trial } from '../trial/trial.js'
import type { Logger } from './finding.js'
import type { RuleRegistry } from './registry.js'
import { trialKind } from './required.js'
import { loggerKind, type Rule, type RuleOptions, trialsKind, workersKind } from './rule.js'

/** A rule to be made. */
export interface RuleConfiguration {
  /** What findings call the rule: tells two configurations of the same rule apart. */
  readonly name: string
  /** As the registry knows it. */
  readonly rule: string
  /** Only those of the rule itself. */
  readonly parameters: Readonly<Record<string, string | readonly string[]>>
  /** `action_json`. */
  readonly actions?: string | null
  /** Paths. */
  readonly otherTrials?: readonly string[]
  readonly startStep?: number | null
  /** Exclusive. */
  readonly endStep?: number | null
  /** What SageMaker would save for the rule. */
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
  readonly logger?: Logger | undefined
  /** For configurations that name none. */
  readonly otherTrials?: readonly Trial[] | undefined
  /** Only what these workers saved is judged, whatever a configuration says. Default: as it says, else of all. */
  readonly workers?: RuleOptions['workers']
}

const MAKE_OPTIONS = optionsOf<MakeRulesOptions>(
  {
    baseTrial: trialKind,
    registry: kinds.that('a RuleRegistry', given => typeof (given as RuleRegistry | null)?.get === 'function'),
    openTrial: kinds.callback(),
    logger: loggerKind,
    otherTrials: trialsKind,
    workers: workersKind,
  },
  'baseTrial',
  'registry',
  'openTrial',
)

const CODE = 'BadRuleConfiguration'
const LIST = 'DebugRuleConfigurations'

/** Parameters that are none of the rule, beside `other_trial_0` and so on. */
const RESERVED: readonly string[] = [
  'rule_to_invoke',
  'action_json',
  'start_step',
  'end_step',
  // For SageMaker's container. They mean nothing here: the trial is given, and so is the code.
  'base_trial',
  'source_s3_uri',
]

/** What the constructor of a rule takes beside its parameters, and how a configuration says it. */
const CONFIG_OPTIONS: ReadonlyMap<string, string> = new Map([
  ['name', 'RuleConfigurationName'],
  ['actions', 'action_json'],
  ['otherTrials', 'other_trial_0'],
  ['startStep', 'start_step'],
  ['endStep', 'end_step'],
  ['logger', 'a parameter of the rule'],
])

/**
 * Reads a list of configurations, an object with a `DebugRuleConfigurations` list (so an answer of SageMaker's
 * DescribeTrainingJob, too), or a single configuration.
 * @param url names the file in errors
 * @throws FormatError `BadRuleConfiguration` with the place
 */
export function parseRuleConfigurations(text: string, url: string): Required<RuleConfiguration>[] {
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

/** The rules that configurations describe, in their order. An error says first which configuration it is about. */
export async function makeRules(
  configurations: readonly RuleConfiguration[],
  options: MakeRulesOptions,
): Promise<Rule[]> {
  const made = checkOptions('makeRules', MAKE_OPTIONS, options)
  const { baseTrial, registry, openTrial, logger, workers, otherTrials = [] } = made
  const opened = new Map<string, Trial>()
  const open = async (path: string): Promise<Trial> => {
    const trial = opened.get(path) ?? (await openTrial(path))
    opened.set(path, trial)
    return trial
  }
  const rules: Rule[] = []
  for (const { name, rule, parameters, actions, startStep, endStep, otherTrials: paths = [] } of configurations) {
    try {
      const RuleClass = registry.get(rule)
      const others: Trial[] = []
      for (const path of paths) others.push(await open(path))
      rules.push(
        new RuleClass(baseTrial, {
          ...parameters,
          ...(workers != null && { workers }),
          name,
          actions,
          startStep,
          endStep,
          logger,
          otherTrials: others.length > 0 ? others : otherTrials,
        }),
      )
    } catch (error) {
      // The same error, whose class says what kind it is; one that names the configuration already, as its rule, will do.
      const isNamed = !(error instanceof Error) || error.message.startsWith(`rule ${name}`)
      if (!isNamed) error.message = `${name}: ${error.message}`
      throw error
    }
  }
  return rules
}

function parseConfigurations(text: string, url: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Throws the same once more, with the place.
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
  const given = expectObject(entry.RuleParameters ?? {}, within)
  const at = (key: string): JsonPlace => inside(within, key)
  if (given.rule_to_invoke === undefined) throw jsonFault(at('rule_to_invoke'), 'the name of a rule', 'nothing')
  const [startStep, endStep] = ['start_step', 'end_step'].map(key => readStep(given[key], at(key)))
  if (typeof startStep === 'number' && typeof endStep === 'number' && endStep <= startStep) {
    throw jsonFault(at('end_step'), `a step beyond start_step ${startStep}`, String(endStep))
  }
  const otherTrials: [number, string][] = []
  const parameters: [string, string | readonly string[]][] = []
  for (const [key, value] of Object.entries(given)) {
    const option = CONFIG_OPTIONS.get(key)
    const index = /^other_trial_(\d+)$/.exec(key)?.[1]
    if (option !== undefined) throw jsonFault(within, option, jsonExcerpt(key))
    if (index !== undefined) otherTrials.push([Number(index), expectName(value, at(key))])
    else if (!RESERVED.includes(key)) parameters.push([key, expectParameter(value, at(key))])
  }
  return {
    name,
    rule: expectName(given.rule_to_invoke, at('rule_to_invoke')),
    parameters: Object.fromEntries(parameters),
    actions: given.action_json === undefined ? null : expectString(given.action_json, at('action_json')),
    otherTrials: otherTrials.sort(([a], [b]) => a - b).map(([, path]) => path),
    startStep: startStep ?? null,
    endStep: endStep ?? null,
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

/** A step, or null for none: `None` and nothing at all are what SageMaker's pages print for it. */
function readStep(value: unknown, place: JsonPlace): number | null {
  const text = value === undefined ? '' : expectText(value, place).trim()
  if (text === '' || text === 'None') return null
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(Number(text))) throw jsonFault(place, 'a step', jsonExcerpt(value))
  return Number(text)
}

/** SageMaker's API takes strings alone; whoever writes by hand writes a number as a number. */
function expectText(value: unknown, place: JsonPlace): string {
  if (!['string', 'number', 'boolean'].includes(typeof value)) {
    throw jsonFault(place, 'a string, a number, true or false', jsonExcerpt(value))
  }
  return String(value)
}

/** An array is for patterns that have a comma in them. */
function expectParameter(value: unknown, place: JsonPlace): string | readonly string[] {
  return Array.isArray(value) ? expectList(value, place, expectText) : expectText(value, place)
}

function expectName(value: unknown, place: JsonPlace): string {
  const name = expectString(value, place)
  if (name.trim() === '') throw jsonFault(place, 'a name', jsonExcerpt(name))
  return name
}
