/** Collections: named groups of tensors, and how they were to be saved. Source: format.md "Collections file". */

import { UsageError } from '../errors.js'
import { MODES, type Mode } from '../types.js'
import {
  expectBoolean,
  expectInteger,
  expectList,
  expectObject,
  expectString,
  fault,
  inside,
  type JsonObject,
  type Place,
  parseJsonObject,
  show,
} from './json.js'
import { compilePattern } from './pattern.js'
import { parseReductionName } from './reduction-name.js'

export interface ReductionConfig {
  readonly saveRawTensor: boolean
  readonly saveShape: boolean
  /** As the hook spells them: `mean`, `abs_l2_norm`. */
  readonly reductions: readonly string[]
}

/** At which steps of a mode the hook saved. */
export interface SaveConfig {
  readonly saveInterval: number
  readonly saveSteps: readonly number[]
  readonly startStep: number
  /** Not saved any more from this step on; null: no end. */
  readonly endStep: number | null
}

export interface CollectionConfig {
  readonly name: string
  /** Python regular expressions: see `compilePattern`. */
  readonly includeRegex: readonly string[]
  readonly tensorNames: readonly string[]
  /** Null where the hook's own holds. */
  readonly reductionConfig: ReductionConfig | null
  /** By mode, null for a mode without; null as a whole where the hook's own holds. */
  readonly saveConfig: Readonly<Record<Mode, SaveConfig | null>> | null
  readonly saveHistogram: boolean
}

export interface Collections {
  readonly collections: ReadonlyMap<string, CollectionConfig>
  /** How many workers a complete step needs. */
  readonly numWorkers: number
}

/**
 * Reads one worker's collections file.
 * @param text the whole file
 * @param url names the file in errors
 * @throws FormatError `BadCollectionsFile`
 */
export function parseCollections(text: string, url: string): Collections {
  const root = { url, code: 'BadCollectionsFile', at: '' }
  const file = parseJsonObject(text, url, root.code)
  const place = inside(root, 'collections')
  const entries = Object.entries(expectObject(file.collections, place))
  const metaPlace = inside(root, '_meta')
  const meta = expectObject(file._meta ?? {}, metaPlace)
  return {
    collections: new Map(entries.map(([name, value]) => [name, parseCollection(name, value, inside(place, name))])),
    numWorkers: expectInteger(meta.num_workers ?? 1, inside(metaPlace, 'num_workers'), 1),
  }
}

/**
 * The collections of a trial from those of its workers: names and patterns in the order in which they first appear,
 * of configurations the first that there is.
 */
export function mergeCollections(ofWorkers: Iterable<Collections>): Collections {
  const merged = new Map<string, CollectionConfig>()
  let numWorkers = 1
  for (const one of ofWorkers) {
    numWorkers = Math.max(numWorkers, one.numWorkers)
    for (const [name, config] of one.collections) {
      const known = merged.get(name)
      merged.set(name, known === undefined ? config : union(known, config))
    }
  }
  return { collections: merged, numWorkers }
}

/** What the patterns of a collection may cost to compile, and to match with all names: some ten seconds. */
const MAX_COST = 1 << 18
const MAX_COST_OF_NAMES = 2 ** 32

/**
 * The saved tensors that belong to a collection, sorted: those it names and those that one of its patterns finds.
 * @param savedNames of tensors, saved shapes and saved reductions; a reduction counts for its tensor
 * @throws UsageError for a pattern that `compilePattern` refuses, and for more of them than anybody would write
 */
export function collectionMembers(config: CollectionConfig, savedNames: readonly string[]): string[] {
  const named = new Set(config.tensorNames)
  const members: string[] = []
  let others: string[] = []
  for (const name of new Set(savedNames.map(name => parseReductionName(name)?.tensor ?? name))) {
    if (named.has(name)) members.push(name)
    else others.push(name)
  }
  let cost = 0
  let costOfNames = 0
  // One after another: a compiled pattern can take a hundred MB.
  for (const source of config.includeRegex) {
    const pattern = compilePattern(source)
    cost += pattern.cost > 1 ? pattern.cost : 0
    costOfNames += pattern.cost * others.length
    if (cost > MAX_COST || costOfNames > MAX_COST_OF_NAMES) {
      const many = `${config.includeRegex.length} patterns for ${savedNames.length} names`
      throw new UsageError(`collection ${show(config.name)}: expected fewer or shorter patterns, got ${many}`, {
        collection: config.name,
      })
    }
    const found = new Set(others.filter(name => pattern.matches(name)))
    if (found.size === 0) continue
    for (const name of found) members.push(name)
    others = others.filter(name => !found.has(name))
  }
  return members.sort()
}

function union(a: CollectionConfig, b: CollectionConfig): CollectionConfig {
  return {
    name: a.name,
    includeRegex: [...new Set([...a.includeRegex, ...b.includeRegex])],
    tensorNames: [...new Set([...a.tensorNames, ...b.tensorNames])],
    reductionConfig: a.reductionConfig ?? b.reductionConfig,
    saveConfig: a.saveConfig ?? b.saveConfig,
    saveHistogram: a.saveHistogram || b.saveHistogram,
  }
}

function parseCollection(key: string, value: unknown, place: Place): CollectionConfig {
  const entry = expectObject(value, place)
  return {
    name: expectString(entry.name ?? key, inside(place, 'name')),
    includeRegex: parsePatterns(entry.include_regex, inside(place, 'include_regex')),
    tensorNames: expectList(entry.tensor_names, inside(place, 'tensor_names'), expectString),
    reductionConfig: parseReductionConfig(entry.reduction_config, inside(place, 'reduction_config')),
    saveConfig: parseSaveConfigs(entry.save_config, inside(place, 'save_config')),
    saveHistogram: expectBoolean(entry.save_histogram ?? true, inside(place, 'save_histogram')),
  }
}

/** A list; `false` (older hooks) and nothing stand for none, a string for the one. */
function parsePatterns(value: unknown, place: Place): string[] {
  if (typeof value === 'string') return [value]
  return value === false ? [] : expectList(value, place, expectString)
}

function parseReductionConfig(value: unknown, place: Place): ReductionConfig | null {
  if (value === undefined || value === null) return null
  const entry = expectObject(value, place)
  return {
    saveRawTensor: expectBoolean(entry.save_raw_tensor ?? false, inside(place, 'save_raw_tensor')),
    saveShape: expectBoolean(entry.save_shape ?? false, inside(place, 'save_shape')),
    reductions: parseReductions(entry.reductions, inside(place, 'reductions')),
  }
}

function parseReductions(value: unknown, place: Place): string[] {
  const names = typeof value === 'string' ? value.split(',') : expectList(value, place, expectString)
  return names.map(name => name.trim()).filter(name => name !== '')
}

const SAVE_CONFIG_KEYS = ['save_interval', 'save_steps', 'start_step', 'end_step']

/** By mode, or one object that holds for all modes. */
function parseSaveConfigs(value: unknown, place: Place): CollectionConfig['saveConfig'] {
  if (value === undefined || value === null) return null
  const entry = expectObject(value, place)
  const isSingle = SAVE_CONFIG_KEYS.some(key => Object.hasOwn(entry, key))
  const strangers = Object.keys(entry).filter(key => !isSingle && !MODES.some(mode => mode === key))
  if (strangers.length > 0) throw fault(place, `modes among ${MODES.join(', ')}`, show(strangers[0]))
  const ofMode = (mode: Mode) =>
    isSingle ? parseSaveConfig(entry, place) : parseModeSaveConfig(entry[mode], inside(place, mode))
  return { TRAIN: ofMode('TRAIN'), EVAL: ofMode('EVAL'), PREDICT: ofMode('PREDICT'), GLOBAL: ofMode('GLOBAL') }
}

function parseModeSaveConfig(value: unknown, place: Place): SaveConfig | null {
  return value === undefined || value === null ? null : parseSaveConfig(expectObject(value, place), place)
}

/**
 * What is left out has smdebug's default (its `SaveConfigMode`): every 500th step from step 0, without end. Any whole number
 * will do, as it does for smdebug's hook: an end step of -1 is a mode that is never saved.
 */
function parseSaveConfig(entry: JsonObject, place: Place): SaveConfig {
  const endStep = entry.end_step ?? null
  return {
    saveInterval: anyInteger(entry.save_interval ?? 500, inside(place, 'save_interval')),
    saveSteps: expectList(entry.save_steps, inside(place, 'save_steps'), anyInteger),
    startStep: anyInteger(entry.start_step ?? 0, inside(place, 'start_step')),
    endStep: endStep === null ? null : anyInteger(endStep, inside(place, 'end_step')),
  }
}

function anyInteger(value: unknown, place: Place): number {
  return expectInteger(value, place, Number.MIN_SAFE_INTEGER)
}
