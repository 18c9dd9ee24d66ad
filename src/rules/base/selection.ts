/** The tensors that a rule looks at, and the message if there are none. */

import { nearestNames, UsageError } from '../../base/errors.js'
import { entryOf } from '../../base/maps.js'
import type { CollectionConfig } from '../../format/collections.js'
import { NameSet } from '../../format/regex/name-set.js'
import { compileOwnPattern, compilePattern, type Pattern } from '../../format/regex/pattern.js'
import type { TrialContents } from '../../scan/catalog/load/load.js'
import type { TensorAtStep } from '../../trial/measure/tensor-at-step.js'
import { membersOf } from '../../trial/names.js'
import { stateOf, type Trial } from '../../trial/trial.js'
import type { Rule } from '../rule.js'
import type { Moment } from './moment.js'
import { IN_WORDS, NOT_OF_TREES } from './names.js'

export interface Choice {
  readonly collections?: readonly string[]
  /** Python patterns; a name with a match is selected. */
  readonly regex?: readonly string[]
  readonly names?: readonly string[]
  /** All tensors. */
  readonly all?: boolean
  /** Names to leave out. */
  readonly except?: RegExp
  /** True if the rule can do without these tensors. */
  readonly optional?: boolean
  /** True if the rule needs values; saved reductions are not enough then. */
  readonly value?: boolean
  /** True if their absence is not reported, since another selection is about the same data. */
  readonly quiet?: boolean
}

/** The tensors that a rule looks at. */
export class Selection {
  readonly isOptional: boolean
  readonly #rule: Rule
  readonly choice: Choice
  #contents: TrialContents | undefined
  #names: readonly string[] = []

  constructor(rule: Rule, choice: Choice) {
    this.#rule = rule
    this.choice = choice
    this.isOptional = choice.optional ?? false
    // An invalid pattern is refused when the rule is made.
    for (const pattern of choice.regex ?? []) patternOf(pattern)
  }

  /** The selected tensors that the worker saved at the step, sorted by name. */
  at({ step, worker }: Moment): readonly TensorAtStep[] {
    return this.#rule.reqTensors.select(this.names, step, null, worker)
  }

  /** The names of all selected tensors saved so far, sorted. */
  get names(): readonly string[] {
    const { contents } = stateOf(this.#rule.baseTrial)
    if (this.#contents !== contents) {
      const names = selectedNames(this.#rule.baseTrial, this.choice)
      const { tensorFilter } = this.#rule
      this.#names = tensorFilter === null ? names : names.filter(tensorFilter)
      this.#contents = contents
    }
    return this.#names
  }

  /** The error for an invalid pattern that the trial itself has for a collection. */
  get #refusal(): UsageError | null {
    try {
      this.names
      return null
    } catch (error) {
      if (error instanceof UsageError) return error
      throw error
    }
  }

  /** True if there are no tensors, none with the values that the rule needs, or a collection's pattern is invalid. */
  get isEmpty(): boolean {
    return this.#refusal !== null || this.names.length === 0 || (this.choice.value === true && !this.#hasValues())
  }

  /** A sentence for each kind of tensor that the rule wants and the trial lacks. */
  missing(): string[] {
    const { collections = [], names = [], regex = [], value, quiet } = this.choice
    if (quiet) return []
    const trial = this.#rule.baseTrial
    const refusal = this.#refusal
    if (refusal)
      return [`tensors of the collection ${collections.map(name => JSON.stringify(name))}: ${refusal.message}`]
    if (this.names.length > 0) {
      if (!value || this.#hasValues()) return []
      const [name] = this.names
      const tensor = trial.tensor(name!)
      const more = this.names.length > 1 ? ` and of ${this.names.length - 1} more` : ''
      return [`the values of ${JSON.stringify(tensor.name)}${more}: only reductions were saved`]
    }
    const patterns = regex.filter(pattern => !IN_WORDS.has(pattern))
    const wanted = [
      ...collections.map(name => `tensors of the collection ${JSON.stringify(name)}`),
      ...names.map(name => `the tensor ${JSON.stringify(name)}`),
      ...regex.flatMap(pattern => IN_WORDS.get(pattern) ?? []),
      ...(patterns.length > 0
        ? [`tensors that match ${patterns.map(pattern => JSON.stringify(pattern)).join(' or ')}`]
        : []),
    ]
    const among = this.#rule.tensorFilter === null ? '' : ' among those that are selected'
    return [
      `${wanted.join(', or ') || 'any tensor'}${among}; ${describeTrial(trial, collections, names, wordsOf(patterns))}`,
    ]
  }

  #hasValues(): boolean {
    const { byTensor } = stateOf(this.#rule.baseTrial).catalog
    return this.names.some(name => byTensor.get(name)!.some(workerStep => workerStep.tensors.get(name)!.value !== null))
  }
}

/** The names of collections in Tornasole's documentation. */
export const OTHER_NAMES: ReadonlyMap<string, string> = new Map([['bias', 'biases']])

/** Selected names by choice, shared by the rules over a trial. */
const selections = new WeakMap<TrialContents, Map<string, readonly string[]>>()

function selectedNames(trial: Trial, choice: Choice): readonly string[] {
  const { contents } = stateOf(trial)
  const { collections, regex, names, all, except } = choice
  const cached = entryOf(selections, contents, () => new Map<string, readonly string[]>())
  const key = JSON.stringify([collections, regex, names, all, except?.source])
  return entryOf(cached, key, () => select(contents, choice))
}

function select(
  contents: TrialContents,
  { collections = [], regex = [], names = [], all, except }: Choice,
): readonly string[] {
  const saved = contents.catalog.names
  const selected = new NameSet(saved)
  if (all) selected.addMatching(() => true)
  for (const name of collections) {
    const { collections } = contents.collections
    const config = collections.get(name) ?? collections.get(OTHER_NAMES.get(name) ?? '')
    if (config) selected.addAll(membersOf(contents, config))
  }
  for (const name of names) selected.addName(name)
  for (const source of regex) selected.addMatching(patternOf(source).matches)
  const kept = except ? selected.toArray().filter(name => !except.test(name)) : selected.toArray()
  // There can be a million names: they share one list.
  return kept.length === saved.length ? saved : kept
}

/** Our own patterns, which are all that `check` uses by default, don't need the regex engine. @throws UsageError for an invalid pattern */
function patternOf(source: string): Pattern {
  const isOwn = IN_WORDS.has(source) || source === NOT_OF_TREES
  return isOwn ? compileOwnPattern(source) : compilePattern(source)
}

/** The number of collections that a message names, and that it considers. */
const MAX_COLLECTIONS_TOLD = 8
const MAX_LOOKED_AT = 100
/** The number of names that are searched for the nearest: every rule that lacks something asks for this. */
const MAX_NEAR = 10_000

/** The words of patterns that are a name with at most an anchor or a wildcard at each end. */
function wordsOf(patterns: readonly string[]): string[] {
  return patterns.flatMap(pattern => /^\^?(?:\.\*)?([\w./:-]{3,}?)(?:\.\*)?\$?$/.exec(pattern)?.[1] ?? [])
}

/** The nearest names or, if none is near, the nearest parts of names. */
function nearestOf(word: string, names: readonly string[]): string[] {
  const nearest = nearestNames(word, names)
  return nearest.length > 0 ? nearest : nearestNames(word, new Set(names.flatMap(name => name.split(/[^A-Za-z]+/))))
}

/** A description of the trial's tensors, for a message about missing ones. */
function describeTrial(
  trial: Trial,
  collections: readonly string[],
  names: readonly string[],
  words: readonly string[],
): string {
  const { contents } = stateOf(trial)
  const all = contents.catalog.names
  if (all.length === 0) return 'the trial has no tensors'
  const known = contents.collections.collections
  const listed: string[] = []
  for (const collection of [...known.values()].slice(0, MAX_LOOKED_AT)) {
    const count =
      collection.name === 'all' || listed.length === MAX_COLLECTIONS_TOLD ? 0 : memberCount(contents, collection)
    if (count > 0) listed.push(`${collection.name} (${count})`)
  }
  const near = all.slice(0, MAX_NEAR)
  const nearest = [
    ...collections.flatMap(name =>
      nearestNames(name, known.keys(), MAX_COLLECTIONS_TOLD)
        .filter(near => memberCount(contents, known.get(near)!) > 0)
        .slice(0, 3),
    ),
    ...names.flatMap(name => nearestNames(name, near)),
    ...words.flatMap(word => nearestOf(word, near)),
  ].filter(name => !collections.includes(name) && !names.includes(name))
  const hint = nearest.length > 0 ? `; did you mean ${nearest.map(name => JSON.stringify(name)).join(' or ')}?` : ''
  const some = all
    .slice(0, 3)
    .map(name => JSON.stringify(name))
    .join(', ')
  const has =
    listed.length > 0
      ? `tensors saved in the collections ${listed.join(', ')}`
      : `${all.length} tensor${all.length === 1 ? '' : 's'}: ${some}${all.length > 3 ? ', …' : ''}`
  return `the trial has ${has}${hint}`
}

/** 0 for an invalid pattern, which matters only to those who use the collection. */
function memberCount(contents: TrialContents, collection: CollectionConfig): number {
  try {
    return membersOf(contents, collection).size
  } catch (error) {
    if (error instanceof UsageError) return 0
    throw error
  }
}

/** A rule's need of more steps with its tensors. @param lists the lists of their names */
export function moreSteps(trial: Trial, lists: ReadonlySet<readonly string[]>): string {
  const { byTensor } = stateOf(trial).catalog
  const names = lists.size === 1 ? [...lists][0]! : [...new Set([...lists].flat())]
  // Tensors that were saved together share a list.
  const saved = new Set(names.map(name => byTensor.get(name)))
  const steps = [...new Set([...saved].flatMap(list => list?.globalSteps() ?? []))].sort((a, b) => a - b)
  const tensors = `${JSON.stringify(names[0])}${names.length > 1 ? ` and ${names.length - 1} more` : ''}`
  return `more steps with its tensors among those that were judged; ${tensors} were saved at ${steps.length === 1 ? `step ${steps[0]} alone` : `${steps.length} steps, from ${steps[0]} to ${steps.at(-1)}`}`
}
