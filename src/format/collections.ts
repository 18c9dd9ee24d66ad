/** Collections: named groups of tensors, with the hook's configuration for them. */

import { UsageError } from '../base/errors.js'
import { entryOf } from '../base/maps.js'
import { turnsWhenDue } from '../base/turns.js'
import { MODES, type Mode } from '../base/types.js'
import {
  expectBoolean,
  expectInteger,
  expectList,
  expectObject,
  expectString,
  inside,
  type JsonObject,
  type JsonPlace,
  jsonExcerpt,
  jsonFault,
  parseJsonObject,
} from './json.js'
import { NameSet } from './regex/name-set.js'
import { compilePattern, isPlainText } from './regex/pattern.js'

/** The largest collections file that is read, in bytes. */
export const MAX_COLLECTIONS_BYTES = 256 << 20

export interface ReductionConfig {
  readonly saveRawTensor: boolean
  readonly saveShape: boolean
  /** The reductions in the hook's spelling: `mean`, `abs_l2_norm`. */
  readonly reductions: readonly string[]
}

/** The steps of a mode at which the hook saves. */
export interface SaveConfig {
  readonly saveInterval: number
  readonly saveSteps: readonly number[]
  readonly startStep: number
  /** The first step that is no longer saved; null for no end. */
  readonly endStep: number | null
}

export interface CollectionConfig {
  readonly name: string
  /** Python regular expressions: see `compilePattern`. */
  readonly includeRegex: readonly string[]
  readonly tensorNames: readonly string[]
  /** The reductions; null for those of the hook's own configuration. */
  readonly reductionConfig: ReductionConfig | null
  /** The steps by mode, null for a mode without a configuration; null as a whole for the hook's own configuration. */
  readonly saveConfig: Readonly<Record<Mode, SaveConfig | null>> | null
  readonly saveHistogram: boolean
}

export interface Collections {
  readonly collections: ReadonlyMap<string, CollectionConfig>
  /** The number of workers of a complete step. */
  readonly numWorkers: number
}

/**
 * Parses a worker's collections file.
 * @param text the whole file
 * @param url the file's URL, for errors
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

/** The number of files that are kept for comparison, and their total size. */
const KEPT_FILES = 4
const MAX_KEPT_BYTES = 64 << 20

/** Reads the collections files of a trial. Those of most workers are equal, and equal files are parsed once. */
export class CollectionsReader {
  readonly #known: { readonly bytes: Uint8Array; readonly collections: Collections }[] = []
  #keptBytes = 0
  readonly #decoder = new TextDecoder()

  /** Like `parseCollections`, from the bytes of the file. Equal files share one result. */
  read(bytes: Uint8Array, url: string): Collections {
    const known = this.#known.find(file => Buffer.compare(file.bytes, bytes) === 0)
    if (known !== undefined) return known.collections
    const collections = parseCollections(this.#decoder.decode(bytes), url)
    this.#known.unshift({ bytes, collections })
    this.#keptBytes += bytes.length
    while (this.#known.length > KEPT_FILES || this.#keptBytes > MAX_KEPT_BYTES) {
      this.#keptBytes -= this.#known.pop()!.bytes.length
    }
    return collections
  }
}

/**
 * Merges the collections of a trial's workers: names and patterns in the order of their first appearance; of each configuration, the
 * first that is set.
 */
export function mergeCollections(ofWorkers: Iterable<Collections>): Collections {
  const merged = new Map<string, CollectionConfig[]>()
  let numWorkers = 1
  for (const collections of new Set(ofWorkers)) {
    numWorkers = Math.max(numWorkers, collections.numWorkers)
    for (const [name, config] of collections.collections) {
      entryOf(merged, name, () => []).push(config)
    }
  }
  return { collections: new Map([...merged].map(([name, configs]) => [name, union(configs)])), numWorkers }
}

/** The collection that several workers have. */
function union(configs: readonly CollectionConfig[]): CollectionConfig {
  const [first] = configs as [CollectionConfig]
  if (configs.length === 1) return first
  const firstOf = <K extends 'reductionConfig' | 'saveConfig'>(key: K): CollectionConfig[K] =>
    configs.find(config => config[key] !== null)?.[key] ?? null
  return {
    name: first.name,
    includeRegex: [...new Set(configs.flatMap(({ includeRegex }) => includeRegex))],
    tensorNames: [...new Set(configs.flatMap(({ tensorNames }) => tensorNames))],
    reductionConfig: firstOf('reductionConfig'),
    saveConfig: firstOf('saveConfig'),
    saveHistogram: configs.some(({ saveHistogram }) => saveHistogram),
  }
}

/** The limit on compiling the patterns of all collections, in characters plus a fixed number for each: about a second, at most a few. */
const MAX_COMPILED = 1 << 18
const COMPILED_EACH = 32
/** The limit on matching them with all names, in characters that the regex engine or a text search reads: about ten seconds. */
const MAX_MATCHED = 2 ** 26
const TEXT_SHARE = 1 / 32
/** The number of patterns that may be matched with any number of names. */
const FREE_PATTERNS = 64
/** The size of match results that are kept, as bits. Others are matched again. */
const MAX_MATCH_BYTES = 32 << 20
/** The number of names that are matched between looks at the clock. */
const MATCHED_AT_ONCE = 256

/** The members of collections among saved tensors. A pattern is matched on demand. */
export class Membership {
  readonly #names: readonly string[]
  readonly #characters: number
  /** Match results, by pattern and by collection. */
  readonly #kept = new Map<string | CollectionConfig, NameSet>()
  #keptBytes = 0
  /** Patterns that have been counted towards the limits. */
  readonly #paid = new Set<string>()
  #compiled = 0
  #matched = 0

  /** @param names the names of the saved tensors, sorted */
  constructor(names: readonly string[]) {
    this.#names = names
    this.#characters = names.reduce((sum, { length }) => sum + length + 1, 0)
  }

  /**
   * The members: the tensors that a collection lists, and those that its patterns match. Read-only.
   * @throws UsageError for a pattern that `compilePattern` rejects, and for more patterns than the limits allow
   */
  members(config: CollectionConfig): NameSet {
    const known = this.#kept.get(config)
    if (known) return known
    this.#pay(config)
    const members = new NameSet(this.#names)
    for (const name of config.tensorNames) members.addName(name)
    for (const source of config.includeRegex) members.addAll(this.#foundBy(source))
    return this.#keep(config, members)
  }

  /** Matches the patterns of collections in turns, so that `members` finds what they match. Those that are refused are left to it. */
  async prepare(configs: Iterable<CollectionConfig>): Promise<void> {
    const turnWhenDue = turnsWhenDue()
    for (const config of configs) {
      try {
        this.#pay(config)
        for (const source of config.includeRegex) {
          if (this.#kept.has(source)) continue
          const { matches } = compilePattern(source)
          const found = new NameSet(this.#names)
          for (const [i, name] of this.#names.entries()) {
            if (i % MATCHED_AT_ONCE === 0) await turnWhenDue()
            if (matches(name)) found.add(i)
          }
          this.#keep(source, found)
        }
      } catch (error) {
        if (!(error instanceof UsageError)) throw error
      }
    }
  }

  /** The names that a pattern matches. Compiled patterns are not kept: one can take 100 MB. */
  #foundBy(source: string): NameSet {
    const known = this.#kept.get(source)
    if (known) return known
    const pattern = compilePattern(source)
    const members = new NameSet(this.#names)
    members.addMatching(pattern.matches)
    return this.#keep(source, members)
  }

  #keep(key: string | CollectionConfig, names: NameSet): NameSet {
    if (this.#keptBytes + names.byteLength > MAX_MATCH_BYTES) return names
    this.#keptBytes += names.byteLength
    this.#kept.set(key, names)
    return names
  }

  /** Counts the patterns of a collection towards the limits, since the file is untrusted. A rejected collection doesn't count. */
  #pay({ name, includeRegex }: CollectionConfig): void {
    const sources = [...new Set(includeRegex)].filter(source => !this.#paid.has(source))
    let [compiled, matched, count] = [this.#compiled, this.#matched, this.#paid.size]
    for (const source of sources) {
      const isText = isPlainText(source)
      // A pattern that is too long on its own is rejected for that.
      if (!isText && source.length <= MAX_COMPILED) compiled += source.length + COMPILED_EACH
      if (count++ >= FREE_PATTERNS) matched += this.#characters * (isText ? TEXT_SHARE : 1)
    }
    if (compiled > MAX_COMPILED || matched > MAX_MATCHED) {
      const many = `${includeRegex.length} patterns for ${this.#names.length} names, after ${this.#paid.size} others`
      throw new UsageError(`collection ${jsonExcerpt(name)}: expected fewer or shorter patterns, got ${many}`, {
        collection: name,
      })
    }
    this.#compiled = compiled
    this.#matched = matched
    for (const source of sources) this.#paid.add(source)
  }
}

function parseCollection(key: string, value: unknown, place: JsonPlace): CollectionConfig {
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

/** A list. `false` (older hooks) and a missing value mean an empty list, a string a list of one. */
function parsePatterns(value: unknown, place: JsonPlace): string[] {
  if (typeof value === 'string') return [value]
  return value === false ? [] : expectList(value, place, expectString)
}

function parseReductionConfig(value: unknown, place: JsonPlace): ReductionConfig | null {
  if (value === undefined || value === null) return null
  const entry = expectObject(value, place)
  return {
    saveRawTensor: expectBoolean(entry.save_raw_tensor ?? false, inside(place, 'save_raw_tensor')),
    saveShape: expectBoolean(entry.save_shape ?? false, inside(place, 'save_shape')),
    reductions: reductionNames(entry.reductions, inside(place, 'reductions')),
  }
}

function reductionNames(value: unknown, place: JsonPlace): string[] {
  const names = typeof value === 'string' ? value.split(',') : expectList(value, place, expectString)
  return names.map(name => name.trim()).filter(name => name !== '')
}

const SAVE_CONFIG_KEYS = ['save_interval', 'save_steps', 'start_step', 'end_step']

/** The configuration by mode, or one object for all modes. */
function parseSaveConfigs(value: unknown, place: JsonPlace): CollectionConfig['saveConfig'] {
  if (value === undefined || value === null) return null
  const entry = expectObject(value, place)
  const isSingle = SAVE_CONFIG_KEYS.some(key => Object.hasOwn(entry, key))
  const strangers = Object.keys(entry).filter(key => !isSingle && !MODES.some(mode => mode === key))
  if (strangers.length > 0) throw jsonFault(place, `modes among ${MODES.join(', ')}`, jsonExcerpt(strangers[0]))
  const ofMode = (mode: Mode) =>
    isSingle ? parseSaveConfig(entry, place) : parseModeSaveConfig(entry[mode], inside(place, mode))
  return { TRAIN: ofMode('TRAIN'), EVAL: ofMode('EVAL'), PREDICT: ofMode('PREDICT'), GLOBAL: ofMode('GLOBAL') }
}

function parseModeSaveConfig(value: unknown, place: JsonPlace): SaveConfig | null {
  return value === undefined || value === null ? null : parseSaveConfig(expectObject(value, place), place)
}

/**
 * Parses the configuration of a mode. Missing fields get smdebug's defaults (`SaveConfigMode`): every 500th step from step 0, without
 * end. As in smdebug's hook, any integer is valid: an end step of -1 means that the mode is never saved.
 */
function parseSaveConfig(entry: JsonObject, place: JsonPlace): SaveConfig {
  const endStep = entry.end_step ?? null
  return {
    saveInterval: anyInteger(entry.save_interval ?? 500, inside(place, 'save_interval')),
    saveSteps: expectList(entry.save_steps, inside(place, 'save_steps'), anyInteger),
    startStep: anyInteger(entry.start_step ?? 0, inside(place, 'start_step')),
    endStep: endStep === null ? null : anyInteger(endStep, inside(place, 'end_step')),
  }
}

function anyInteger(value: unknown, place: JsonPlace): number {
  return expectInteger(value, place, Number.MIN_SAFE_INTEGER)
}
