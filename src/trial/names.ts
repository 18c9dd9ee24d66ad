/** Selecting tensors by name: patterns, collections, and the options of `tensorNames`. */

import { expectText } from '../base/arguments.js'
import { nearestNames, QueryError, TensorUnavailable, UsageError } from '../base/errors.js'
import { checkOptions, type Kinds, kinds, optionsOf } from '../base/options.js'
import type { Mode } from '../base/types.js'
import { type CollectionConfig, Membership } from '../format/collections.js'
import type { NameSet } from '../format/regex/name-set.js'
import { compilePattern } from '../format/regex/pattern.js'
import type { TrialContents } from '../scan/catalog/load/load.js'
import type { TrialState } from '../scan/catalog/state.js'
import type { WorkerStep } from '../scan/catalog/worker-steps.js'

/** A named group of tensors. */
export interface Collection extends CollectionConfig {
  /** The members that were saved, sorted. Throws a UsageError if one of the patterns is refused. */
  readonly members: readonly string[]
}

/** Texts and RegExps that select tensors by their names. */
export type NamePatterns = string | RegExp | readonly (string | RegExp)[]

export interface TensorNamesOptions {
  /** Only tensors saved at this step: a global step for GLOBAL (the default mode), else a step of the mode. */
  readonly step?: number
  /** Only tensors saved in this mode. */
  readonly mode?: Mode
  /** Names, or patterns as in `regex`, as a scan takes them. */
  readonly tensors?: NamePatterns
  /** Python patterns (strings) or JavaScript ones, matched anywhere in the name. Can't be combined with `collection`. */
  readonly regex?: NamePatterns
  readonly collection?: string | Collection
}

export type NamesAtOptions = Pick<TensorNamesOptions, 'step' | 'mode'>

const NAMES_KINDS: Kinds<NamesAtOptions> = { step: kinds.step, mode: kinds.mode }
const NAMES_AT_OPTIONS = optionsOf<NamesAtOptions>(NAMES_KINDS)
export const TENSOR_NAMES_OPTIONS = optionsOf<TensorNamesOptions>({
  ...NAMES_KINDS,
  tensors: kinds.oneOrMore('a name or a pattern', 'such', kinds.pattern),
  regex: kinds.oneOrMore('a pattern', 'patterns', kinds.pattern),
  collection: kinds.that('the name of a collection, or a collection', isCollection),
})

/** The members of a collection of the caller's own: named tensors, and tensors whose names match a pattern. */
export interface OwnCollectionOptions {
  /** Python patterns, matched anywhere in the name. */
  readonly includeRegex?: string | readonly string[]
  readonly tensorNames?: readonly string[]
}

const OWN_COLLECTION = optionsOf<OwnCollectionOptions>({
  includeRegex: kinds.oneOrMore('a pattern', 'patterns', kinds.text),
  tensorNames: kinds.listOf('names', kinds.text),
})

/** Makes a collection. @throws UsageError for a pattern that is none, and for the name of a collection that was saved */
export function makeCollection(state: TrialState, name: string, options: OwnCollectionOptions): void {
  const { includeRegex = [], tensorNames = [] } = checkOptions('trial.collection', OWN_COLLECTION, options)
  const patterns = typeof includeRegex === 'string' ? [includeRegex] : [...includeRegex]
  for (const pattern of patterns) compilePattern(pattern)
  const saving = { reductionConfig: null, saveConfig: null, saveHistogram: true }
  state.makeCollection({ name, includeRegex: patterns, tensorNames: [...tensorNames], ...saving })
}

/** A collection of a trial. @throws QueryError `CollectionUnavailable`, which names the nearest ones */
export function collectionOf(state: TrialState, trial: string, name: string): Collection {
  expectText('trial.collection', 'name', name)
  const { collections } = state.contents.collections
  const config = collections.get(name)
  if (config === undefined) {
    const nearest = nearestNames(name, collections.keys())
    const hint =
      nearest.length > 0
        ? `did you mean ${nearest.join(' or ')}?`
        : `it has: ${[...collections.keys()].join(', ') || 'none'}`
    const message = `trial ${JSON.stringify(trial)} has no collection ${JSON.stringify(name)}; ${hint}`
    throw new QueryError('CollectionUnavailable', message, { collection: name, nearest })
  }
  const { contents } = state
  let members: readonly string[] | undefined
  return {
    ...config,
    get members() {
      members ??= membersOf(contents, config).toArray()
      return members
    },
  }
}

/** Names of saved tensors that meet all of the options, sorted. */
export function namesAmong(state: TrialState, trial: string, options: TensorNamesOptions): string[] {
  const { step, mode, tensors, regex, collection } = options
  if (regex !== undefined && collection !== undefined) {
    throw new UsageError('expected regex or collection, got both')
  }
  const { catalog } = state
  let workerSteps: Iterable<WorkerStep> = catalog.workerSteps
  if (step !== undefined) {
    state.knownSteps(step, mode ?? 'GLOBAL')
    workerSteps = catalog.at(step, mode ?? 'GLOBAL')
  } else if (mode !== undefined && mode !== 'GLOBAL')
    workerSteps = catalog.workerSteps.filter(saved => saved.mode === mode)
  let names = workerSteps === catalog.workerSteps ? [...catalog.names] : namesAt(workerSteps)
  if (tensors !== undefined) {
    const selected = new Set(asList(tensors).flatMap(entry => namesOf(catalog, entry)))
    names = names.filter(name => selected.has(name))
  }
  if (regex !== undefined) names = names.filter(matcher(asList(regex)))
  if (collection !== undefined) {
    const members = new Set(
      (typeof collection === 'string' ? collectionOf(state, trial, collection) : collection).members,
    )
    names = names.filter(name => members.has(name))
  }
  return names
}

/** Members of a collection or, if none were saved, names that contain its name without the `s`. */
export function namesFor(
  state: TrialState,
  trial: string,
  collection: string,
  options: NamesAtOptions | undefined,
): string[] {
  const { step, mode } = checkOptions(`trial.${collection}`, NAMES_AT_OPTIONS, options)
  const at = { ...(step !== undefined && { step }), ...(mode !== undefined && { mode }) }
  const isSaved =
    state.contents.collections.collections.has(collection) && collectionOf(state, trial, collection).members.length > 0
  return namesAmong(state, trial, isSaved ? { ...at, collection } : { ...at, regex: `(?i)${collection.slice(0, -1)}` })
}

/** @param trial its name, for the error. @throws TensorUnavailable, which names the nearest ones */
export function expectTensor({ catalog }: TrialState, trial: string, name: string): void {
  expectText('trial.tensor', 'name', name)
  if (!catalog.byTensor.has(name)) throw new TensorUnavailable(name, trial, nearestNames(name, catalog.names))
}

/** Names of what was saved, sorted; steps that share their index files' payload have the same. */
function namesAt(workerSteps: Iterable<WorkerStep>): string[] {
  const names = new Set<string>()
  const known = new WeakSet<WorkerStep['tensors']>()
  for (const { tensors } of workerSteps) {
    if (known.has(tensors)) continue
    known.add(tensors)
    for (const name of tensors.keys()) names.add(name)
  }
  return [...names].sort()
}

/** Memberships by contents: whoever asks about the same contents shares them. */
const memberships = new WeakMap<TrialContents, Membership>()

/** The members of a collection among the catalog's `names`. @throws UsageError as `Membership.members` */
export function membersOf(contents: TrialContents, config: CollectionConfig): NameSet {
  return membershipOf(contents).members(config)
}

/** There may be thousands of collections, of which few are asked about. */
const MAX_PREPARED = 32

/** Finds the members of the first MAX_PREPARED collections, yielding between them. */
export async function prepareMembers({ contents }: TrialState): Promise<void> {
  await membershipOf(contents).prepare([...contents.collections.collections.values()].slice(0, MAX_PREPARED))
}

function membershipOf(contents: TrialContents): Membership {
  const membership = memberships.get(contents) ?? new Membership(contents.catalog.names)
  memberships.set(contents, membership)
  return membership
}

/** A test for names that match one of the patterns. Strings are Python's regular expressions, RegExp JavaScript's. */
export function matcher(patterns: readonly (string | RegExp)[]): (name: string) => boolean {
  const tests = patterns.map(pattern => {
    if (typeof pattern === 'string') {
      const compiled = compilePattern(pattern)
      return (name: string) => compiled.matches(name)
    }
    // A copy without the flags that make test() remember where it stopped.
    const copy = new RegExp(pattern.source, pattern.flags.replace(/[gy]/g, ''))
    return (name: string) => copy.test(name)
  })
  return name => tests.some(test => test(name))
}

/** The tensors that a text or a RegExp selects: the one of that name, or those that it matches as a pattern. */
export function namesOf({ byTensor, names }: TrialState['catalog'], pattern: string | RegExp): readonly string[] {
  return typeof pattern === 'string' && byTensor.has(pattern) ? [pattern] : names.filter(matcher([pattern]))
}

export function asList<T extends string | RegExp>(items: T | readonly T[]): readonly T[] {
  return typeof items === 'string' || items instanceof RegExp ? [items] : items
}

function isCollection(given: unknown): boolean {
  return typeof given === 'string' || Array.isArray((given as Collection | null)?.members)
}
