/** The collections of a trial while it is written: their members, and which of them are saved. */

import { UsageError } from '../base/errors.js'
import { type Kinds, kinds, optionsOf } from '../base/options.js'
import type { Framework, Mode } from '../base/types.js'
import { pythonJson } from '../format/json.js'
import { compilePattern, type Pattern } from '../format/regex/pattern.js'
import {
  REDUCTION_CONFIG,
  type ReductionConfigOptions,
  reductionConfigJson,
  SAVE_CONFIG,
  type SaveConfigOptions,
  type SaveConfigs,
  type Saved,
  saveConfigJson,
  saveConfigsOf,
  savedOf,
  savesAt,
} from './save-config.js'

/** The configuration of a collection. */
export interface CollectionOptions {
  /** Python regular expressions. A tensor belongs to the collection if one matches anywhere in its name. */
  readonly includeRegex?: readonly string[]
  readonly tensorNames?: readonly string[]
  /** Default: the writer's configuration. */
  readonly saveConfig?: SaveConfigOptions
  readonly reductionConfig?: ReductionConfigOptions
  /** True if TensorBoard gets histograms of it. Default: true. */
  readonly saveHistogram?: boolean
}

const COLLECTION_KINDS: Kinds<CollectionOptions> = {
  includeRegex: kinds.listOf('patterns', kinds.text),
  tensorNames: kinds.listOf('names', kinds.text),
  saveConfig: SAVE_CONFIG,
  reductionConfig: REDUCTION_CONFIG,
  saveHistogram: kinds.flag,
}

export const COLLECTION = optionsOf<CollectionOptions>(COLLECTION_KINDS)

/** The collections of Keras, whose members the hook knows. */
const OF_KERAS: Readonly<Record<string, readonly string[]>> = {
  metrics: [],
  inputs: [],
  outputs: [],
  labels: [],
  layers: [],
  sm_metrics: [],
  optimizer_variables: [],
}

/** The collections of every trial, with the patterns of their names (smdebug's collection managers). */
const PREDEFINED: Readonly<Record<Framework, Readonly<Record<string, readonly string[]>>>> = {
  pytorch: {
    weights: ['^(?!gradient).*weight'],
    biases: ['^(?!gradient).*bias'],
    gradients: ['^gradient'],
    losses: ['[Ll]oss_(?!input).*output'],
  },
  // TensorFlow's hook knows what a variable is; here the names that Keras gives decide.
  tensorflow: {
    weights: ['^(?!gradient).*(weight|kernel)'],
    biases: ['^(?!gradient).*bias'],
    gradients: ['^gradient'],
    losses: ['^(?!gradient).*[Ll]oss'],
    ...OF_KERAS,
  },
  // The hook of trialscan/tfjs names the collection of each tensor.
  tfjs: { weights: [], biases: [], gradients: [], losses: [], ...OF_KERAS },
  mxnet: {
    weights: ['^(?!gradient).*weight'],
    biases: ['^(?!gradient).*bias'],
    gradients: ['^gradient'],
    losses: ['.*loss._(?!input).*output'],
  },
  xgboost: {
    hyperparameters: ['^hyperparameters/.*$'],
    metrics: ['^[a-zA-z]+-[a-zA-z0-9]+$'],
    losses: ['^[a-zA-z]+-.+(?<!(auc|map))$'],
    predictions: ['^predictions$'],
    labels: ['^labels$'],
    feature_importance: ['^feature_importance/.*'],
    average_shap: ['^average_shap/.*[^/bias]$'],
    full_shap: ['^full_shap/.*[^/bias]$'],
    trees: ['^trees/.*'],
  },
}

/** The collections that are always saved. */
const INCLUDED: Readonly<Record<Framework, readonly string[]>> = {
  pytorch: ['losses'],
  tensorflow: ['losses', 'metrics', 'sm_metrics'],
  mxnet: ['losses'],
  xgboost: ['metrics'],
  tfjs: ['losses', 'metrics', 'sm_metrics'],
}

/** The collections of scalars, which have nothing to reduce and no histogram. */
const SCALARS: ReadonlySet<string> = new Set([
  'losses',
  'metrics',
  'sm_metrics',
  'feature_importance',
  'average_shap',
  'scalars',
])
const METRICS = 'sm_metrics'
/** The collections whose means SageMaker shows for a job. */
const OF_SAGEMAKER: ReadonlySet<string> = new Set(['losses', 'metrics', METRICS])
/** The collections that exist only while a model is trained. */
const OF_TRAINING: ReadonlySet<string> = new Set(['gradients', 'optimizer_variables'])
export const SCALAR_PREFIX = 'scalar/'

/** A collection with saved tensors. */
export interface SavedCollection {
  readonly name: string
  /** The saved tensors, and those that were listed. */
  readonly tensorNames: Set<string>
  readonly saved: Saved
}

interface Collection extends SavedCollection {
  readonly includeRegex: readonly string[]
  readonly patterns: readonly Pattern[]
  readonly saveConfigs: SaveConfigs
  isIncluded: boolean
}

/** The collections of a tensor whose caller names none. */
interface KnownTensor {
  readonly matching: readonly Collection[]
  /** The saved collections; `default` if there are none and nothing else selects what is saved. */
  readonly included: readonly Collection[]
}

export interface CollectionsOptions {
  readonly framework?: Framework
  readonly collections?: Readonly<Record<string, CollectionOptions>>
  readonly includeCollections?: readonly string[]
  readonly includeRegex?: readonly string[]
  readonly saveAll?: boolean
  readonly saveConfig?: SaveConfigOptions
  readonly reductionConfig?: ReductionConfigOptions
}

/** A moment of a training at which a tensor is saved. */
export interface Moment {
  readonly mode: Mode
  readonly modeStep: number
}

function isSavedAt({ name, saveConfigs }: Collection, { mode, modeStep }: Moment): boolean {
  if ((mode === 'EVAL' || mode === 'PREDICT') && OF_TRAINING.has(name)) return false
  return savesAt(saveConfigs[mode], modeStep)
}

export class SavedCollections {
  readonly #collections = new Map<string, Collection>()
  readonly #saveConfigs: SaveConfigs
  readonly #reductionConfig: ReductionConfigOptions
  /** True if collections or patterns select what is saved; nothing else is saved then. */
  readonly #isSelective: boolean
  /** The known tensors by name. */
  readonly #ofTensor = new Map<string, KnownTensor>()

  /** @throws UsageError for an invalid pattern, or an unknown collection to include */
  constructor({ framework = 'pytorch', ...options }: CollectionsOptions) {
    const { collections = {}, includeCollections = [], includeRegex = [], saveAll = false } = options
    this.#saveConfigs = saveConfigsOf(options.saveConfig)
    this.#reductionConfig = options.reductionConfig ?? {}
    const selecting = [includeRegex, includeCollections, Object.keys(collections)]
    this.#isSelective = selecting.some(({ length }) => length > 0)
    const predefined: Readonly<Record<string, readonly string[]>> = {
      all: saveAll ? ['.*'] : [],
      default: includeRegex,
      ...PREDEFINED[framework],
      scalars: [`^${SCALAR_PREFIX}`],
    }
    for (const [name, patterns] of Object.entries(predefined)) {
      const { includeRegex: more = [], ...given } = collections[name] ?? {}
      this.#add(name, { ...given, includeRegex: [...patterns, ...more] })
    }
    for (const [name, given] of Object.entries(collections)) if (!this.#collections.has(name)) this.#add(name, given)
    const always = INCLUDED[framework]
    const included = new Set([...always, 'default', ...includeCollections, ...Object.keys(collections)])
    for (const name of included) {
      const collection = this.#collections.get(name)
      if (collection) collection.isIncluded = true
      else if (includeCollections.includes(name)) {
        const known = [...this.#collections.keys()].join(', ')
        throw new UsageError(`expected a collection of ${known} to include, got ${JSON.stringify(name)}`, { name })
      }
    }
    // `all` saves every collection.
    if (saveAll || included.has('all'))
      for (const collection of this.#collections.values()) collection.isIncluded = true
  }

  /**
   * The collections with which a tensor is saved; empty if it is not saved at this moment.
   * @param named the collections that the caller gives; a new one is made, and saved. Without these, and if nothing selects what is
   *   saved, a tensor in no other collection is saved with `default`.
   * @param at null to ignore which steps are saved
   */
  saving(tensor: string, named: readonly string[], at: Moment | null): readonly SavedCollection[] {
    const included = this.#included(tensor, named)
    if (at === null) return included.length > 0 ? included : [this.#collections.get('default')!]
    return included.filter(collection => isSavedAt(collection, at))
  }

  /** Records that a tensor was saved with collections. @returns true if the collections file must be updated */
  note(tensor: string, collections: readonly SavedCollection[]): boolean {
    const fresh = collections.filter(({ tensorNames }) => !tensorNames.has(tensor))
    for (const { tensorNames } of fresh) tensorNames.add(tensor)
    return fresh.length > 0
  }

  /** Adds a scalar to `sm_metrics`. @returns true if the collections file must be updated */
  noteMetric(tensor: string): boolean {
    const { tensorNames } = this.#collections.get(METRICS) ?? this.#add(METRICS, {}, true)
    const isNew = !tensorNames.has(tensor)
    tensorNames.add(tensor)
    return isNew
  }

  #included(tensor: string, named: readonly string[]): readonly Collection[] {
    const { matching, included } = this.#known(tensor)
    if (named.length === 0) return included
    const collections = new Set(matching)
    for (const name of named) collections.add(this.#collections.get(name) ?? this.#add(name, {}, true))
    return [...collections].filter(({ isIncluded }) => isIncluded)
  }

  #known(tensor: string): KnownTensor {
    let known = this.#ofTensor.get(tensor)
    if (known === undefined) {
      const matching = [...this.#collections.values()].filter(({ patterns, tensorNames }) => {
        return tensorNames.has(tensor) || patterns.some(pattern => pattern.matches(tensor))
      })
      const included = matching.filter(({ isIncluded }) => isIncluded)
      if (included.length === 0 && !this.#isSelective) included.push(this.#collections.get('default')!)
      known = { matching, included }
      this.#ofTensor.set(tensor, known)
    }
    return known
  }

  #add(name: string, given: CollectionOptions, isIncluded = false): Collection {
    const { includeRegex = [], tensorNames = [], saveConfig, saveHistogram = true } = given
    const { reductionConfig = this.#reductionConfig } = given
    const isScalar = SCALARS.has(name)
    const kind = {
      collection: name,
      isMetric: OF_SAGEMAKER.has(name),
      isScalar,
      saveHistogram: saveHistogram && !isScalar,
    }
    const collection: Collection = {
      name,
      includeRegex,
      patterns: includeRegex.map(compilePattern),
      tensorNames: new Set(tensorNames),
      saveConfigs: saveConfig === undefined ? this.#saveConfigs : saveConfigsOf(saveConfig, this.#saveConfigs),
      saved: savedOf(isScalar ? {} : reductionConfig, kind),
      isIncluded,
    }
    this.#collections.set(name, collection)
    return collection
  }

  /** The text of a collections file. */
  text(numWorkers: number): string {
    const entries = [...this.#collections.values()].map(collection => [
      collection.name,
      {
        name: collection.name,
        include_regex: [...collection.includeRegex],
        tensor_names: [...collection.tensorNames].sort(),
        reduction_config: reductionConfigJson(collection.saved),
        save_config: saveConfigJson(collection.saveConfigs),
        save_histogram: collection.saved.saveHistogram,
      },
    ])
    return pythonJson({ collections: Object.fromEntries(entries), _meta: { num_workers: numWorkers } })
  }
}
