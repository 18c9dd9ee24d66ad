/**
 * Reads the configuration that SageMaker gives smdebug's hook: where to save, and what. Parameters mean what they mean in smdebug's
 * `json_config.py`; invalid ones are errors here, while smdebug takes what it can.
 */

import { basename, dirname, join, resolve } from 'node:path'
import { shown } from '../base/arguments.js'
import { type FormatError, nearestNames, StoreError, UsageError } from '../base/errors.js'
import { checkOptions } from '../base/options.js'
import { MODES, type Mode } from '../base/types.js'
import {
  expectObject,
  inside,
  type JsonObject,
  type JsonPlace,
  jsonExcerpt,
  jsonFault,
  parseJsonObject,
} from '../format/json.js'
import { compilePattern } from '../format/regex/pattern.js'
import { openStore } from '../storage/open.js'
import type { CollectionOptions } from './collections.js'
import { WRITER_OPTIONS, type WriterOptions } from './options.js'
import { HOOK_CONFIG_PATH, hookConfigPath, isSageMakerJob, tensorBoardConfigPath } from './sagemaker.js'
import {
  ANY_REDUCTION,
  type ReductionConfigOptions,
  reductionNamed,
  type SaveConfigOptions,
  type SaveSteps,
} from './save-config.js'
import { createWriter, type TrialWriter } from './writer.js'

/** smdebug's default interval; that of its hook for XGBoost differs (smdebug/xgboost/hook.py). */
const SAVE_INTERVAL = 500
const XGBOOST_SAVE_INTERVAL = 10
/** The directory in which SageMaker's jobs save by default. */
const TENSORS_PATH = '/opt/ml/output/tensors'
const MAX_CONFIG_BYTES = 16 << 20
const CODE = 'BadHookConfig'

/** The content of a configuration. */
export interface HookConfig {
  /** `LocalPath`, by default `/opt/ml/output/tensors`. SageMaker itself copies from there to `S3OutputPath`. */
  readonly path: string
  /** `S3OutputPath`; null if absent. */
  readonly s3OutputPath: string | null
  readonly options: WriterOptions
  /** Keys without a meaning here, with their places: `HookParameters.dry_run`. A key that looks misspelled is an error instead. */
  readonly ignored: readonly string[]
}

/**
 * Begins a trial as SageMaker's configuration says.
 * @param configPath default: the file that SMDEBUG_CONFIG_FILE_PATH names, or `/opt/ml/input/config/debughookconfig.json`; if it doesn't
 *   exist, no trial was requested, and the writer saves nothing
 * @param options options that override the configuration
 * @throws FormatError `BadHookConfig`; what `createWriter` throws
 */
export async function createWriterFromJson(configPath?: string, options?: WriterOptions): Promise<TrialWriter> {
  checkOptions('createWriterFromJson', WRITER_OPTIONS, options)
  const configFile = configPath ?? hookConfigPath()
  if (typeof configFile !== 'string' || configFile === '') {
    const message = `createWriterFromJson: expected the path of a configuration, got ${shown(configFile)}`
    throw new UsageError(message, { call: 'createWriterFromJson' })
  }
  const file = await textOf(configFile).catch(error => {
    const isMissing = error instanceof StoreError && error.code === 'NotFound'
    if (configPath === undefined && configFile === HOOK_CONFIG_PATH && isMissing) return null
    throw error
  })
  if (file === null) return createWriter(TENSORS_PATH, { ...options, savesNothing: true })
  const [text, url] = file
  const [{ path, options: configured }, images] = readHookConfig(text, url, options?.framework)
  const { tensorboard: here, ...others } = configured
  const tensorboard = isSageMakerJob() ? tensorboardOf(await tensorBoardDirectoryOfJob(), images) : here
  return createWriter(path, { ...others, ...(tensorboard !== undefined && { tensorboard }), ...options })
}

/** The directory of TensorBoard files in a SageMaker job, which has a configuration of its own; null if none are wanted. */
async function tensorBoardDirectoryOfJob(): Promise<string | null> {
  const path = tensorBoardConfigPath()
  try {
    const [text, url] = await textOf(path)
    return textIn(parseJsonObject(text, url, CODE), 'LocalPath', { url, code: CODE, at: '' })
  } catch (error) {
    if (error instanceof StoreError && error.code === 'NotFound') return null
    throw error
  }
}

/** The text and the URL of a file. */
async function textOf(path: string): Promise<readonly [string, string]> {
  const store = openStore({ kind: 'local', root: dirname(resolve(path)) })
  try {
    const file = basename(path)
    const bytes = await store.read(file, { maxByteLength: MAX_CONFIG_BYTES, isText: true })
    return [new TextDecoder().decode(bytes), store.url(file)]
  } finally {
    await store.close()
  }
}

/**
 * @param text the content of the file
 * @param name the name for errors
 * @param framework smdebug's default interval is 500 steps, and 10 for `xgboost`
 * @throws FormatError `BadHookConfig`
 */
export function parseHookConfig(
  text: string,
  name = 'the configuration',
  framework?: WriterOptions['framework'],
): HookConfig {
  if (typeof text !== 'string')
    throw new UsageError(`parseHookConfig: expected the text of the JSON, got ${String(text)}`)
  return readHookConfig(text, name, framework)[0]
}

/** The content of a configuration, and whether TensorBoard gets images. A job configures the directory separately. */
function readHookConfig(
  text: string,
  name: string,
  framework: WriterOptions['framework'],
): readonly [HookConfig, boolean] {
  const json = parseJsonObject(text, name, CODE)
  const place: JsonPlace = { url: name, code: CODE, at: '' }
  const ignored = [...unknownKeys(json, place, OF_CONFIGURATION)]
  const parameters = (object: JsonObject, key: string, at: JsonPlace, known: readonly string[]): Parameters => {
    // `{"HookParameters": null}` is the same as none.
    const params = new Parameters(expectObject(object[key] ?? {}, inside(at, key)), inside(at, key))
    ignored.push(...params.unknown(known))
    return params
  }
  const params = parameters(json, 'HookParameters', place, OF_HOOK)
  const collections = new Map<string, CollectionOptions>()
  const list = json.CollectionConfigurations ?? []
  if (!Array.isArray(list)) throw fault(inside(place, 'CollectionConfigurations'), 'an array', list)
  for (const [i, item] of list.entries()) {
    const at = inside(inside(place, 'CollectionConfigurations'), i)
    const entry = expectObject(item, at)
    ignored.push(...unknownKeys(entry, at, OF_ENTRY))
    const collection = entry.CollectionName
    if (typeof collection !== 'string' || collection === '') {
      throw fault(inside(at, 'CollectionName'), 'the name of a collection', collection)
    }
    const settings = parameters(entry, 'CollectionParameters', at, OF_COLLECTION)
    const before = collections.get(collection)
    const { includeRegex = [] } = settings.includeRegex()
    // For a repeated collection, smdebug adds the patterns and takes the last value of everything else; steps are always given.
    const patterns = [...(before?.includeRegex ?? []), ...includeRegex]
    collections.set(collection, {
      ...before,
      ...(patterns.length > 0 && { includeRegex: patterns }),
      saveConfig: settings.saveConfig(),
      ...settings.reductionConfig(),
      ...settings.flag('save_histogram', 'saveHistogram'),
    })
  }
  const saveAll = params.flag('save_all', 'saveAll')
  const path = textIn(json, 'LocalPath', place) ?? TENSORS_PATH
  const { images = false } = params.flag('tensorboard_images', 'images')
  const tensorboard = tensorboardOf(params.tensorboardDirectory(path), images)
  const config: HookConfig = {
    path,
    s3OutputPath: textIn(json, 'S3OutputPath', place),
    options: {
      ...params.includeRegex(),
      ...saveAll,
      ...params.includeWorkers(),
      ...(tensorboard !== undefined && { tensorboard }),
      saveConfig: {
        saveInterval: framework === 'xgboost' ? XGBOOST_SAVE_INTERVAL : SAVE_INTERVAL,
        ...params.saveConfig(),
      },
      ...params.reductionConfig(),
      ...(list.length > 0 && {
        collections: Object.fromEntries(collections),
        includeCollections: [...collections.keys()],
      }),
    },
    ignored,
  }
  return [config, images]
}

function tensorboardOf(directory: string | null, images: boolean): WriterOptions['tensorboard'] {
  if (directory === null) return undefined
  return images ? { directory, images } : directory
}

/**
 * The unknown keys, which smdebug ignores.
 * @throws FormatError for one that is nearly a known key: a misspelled key would have no effect
 */
function unknownKeys(given: JsonObject, place: JsonPlace, known: readonly string[]): readonly string[] {
  const unknown = Object.keys(given).filter(key => !known.includes(key))
  for (const key of unknown) {
    const nearest = nearestNames(key, known)
    if (nearest.length > 0) throw jsonFault(place, nearest.join(' or '), jsonExcerpt(key))
  }
  return unknown.map(key => inside(place, key).at)
}

const OF_CONFIGURATION = ['LocalPath', 'S3OutputPath', 'HookParameters', 'CollectionConfigurations']
const OF_ENTRY = ['CollectionName', 'CollectionParameters']
const OF_STEPS = ['save_interval', 'save_steps', 'start_step', 'end_step']
const OF_TENSORS = [...OF_STEPS, 'include_regex', 'reductions', 'save_raw_tensor', 'save_shape']
const OF_COLLECTION = [...OF_TENSORS, 'save_histogram']
const OF_HOOK = [
  ...OF_TENSORS,
  'save_all',
  'include_workers',
  'export_tensorboard',
  'tensorboard_dir',
  'tensorboard_images',
]

/** Parameters, whose values may all be texts. */
class Parameters {
  readonly #given: JsonObject
  readonly #place: JsonPlace

  constructor(given: JsonObject, place: JsonPlace) {
    this.#given = given
    this.#place = place
  }

  /** The unknown parameters. @throws FormatError for one that is nearly known, or that can't differ by mode */
  unknown(known: readonly string[]): readonly string[] {
    const ofModes = MODES.flatMap(mode => OF_STEPS.map(name => `${mode.toLowerCase()}.${name}`))
    for (const name of Object.keys(this.#given)) {
      const alike = name.replace(/^(train|eval|predict|global)\./, '')
      if (alike !== name && known.includes(alike) && !OF_STEPS.includes(alike)) {
        throw jsonFault(this.#place, `${alike}, for all modes alike`, jsonExcerpt(name))
      }
      const elsewhere = known === OF_HOOK ? OF_COLLECTION : OF_HOOK
      if (!known.includes(name) && elsewhere.includes(name)) {
        const [here, elsewherePlace] = known === OF_HOOK ? ['the hook', 'collections'] : ['a collection', 'the hook']
        throw jsonFault(
          this.#place,
          `parameters of ${here}`,
          `${jsonExcerpt(name)}, which only ${elsewherePlace} can have`,
        )
      }
    }
    return unknownKeys(this.#given, this.#place, [...known, ...ofModes])
  }

  includeRegex(): { readonly includeRegex?: readonly string[] } {
    const patterns = this.#list('include_regex')
    if (patterns === null) return {}
    for (const pattern of patterns) {
      try {
        compilePattern(pattern)
      } catch (error) {
        if (!(error instanceof UsageError)) throw error
        throw fault(inside(this.#place, 'include_regex'), 'Python regular expressions', pattern)
      }
    }
    return { includeRegex: patterns }
  }

  flag<N extends string>(name: string, as: N): { readonly [K in N]?: boolean } {
    const value = this.#given[name]
    if (value === undefined || value === null) return {}
    const word = String(value).toLowerCase()
    // smdebug's words for true and false.
    if (!['true', '1', 'false', '0'].includes(word)) throw fault(inside(this.#place, name), 'true or false', value)
    return { [as]: word === 'true' || word === '1' } as { readonly [K in N]?: boolean }
  }

  saveConfig(): SaveConfigOptions {
    const ofModes = MODES.flatMap(mode => {
      const steps = this.#saveSteps(`${mode.toLowerCase()}.`)
      return Object.keys(steps).length === 0 ? [] : [[mode, steps] as const]
    })
    return { ...this.#saveSteps(''), ...(Object.fromEntries(ofModes) as Partial<Record<Mode, SaveSteps>>) }
  }

  includeWorkers(): Pick<WriterOptions, 'includeWorkers'> {
    const value = this.#given.include_workers
    if (value === undefined || value === null) return {}
    if (value !== 'one' && value !== 'all') throw fault(inside(this.#place, 'include_workers'), 'one or all', value)
    return { includeWorkers: value }
  }

  /** @param path the place of the trial */
  tensorboardDirectory(path: string): string | null {
    const { isExported = false } = this.flag('export_tensorboard', 'isExported')
    // A directory alone is enough.
    return textIn(this.#given, 'tensorboard_dir', this.#place) ?? (isExported ? join(path, 'tensorboard') : null)
  }

  reductionConfig(): { readonly reductionConfig?: ReductionConfigOptions } {
    const names = this.#list('reductions') ?? []
    const raw = this.flag('save_raw_tensor', 'saveRawTensor')
    const shape = this.flag('save_shape', 'saveShape')
    // smdebug reads the others only beside `reductions`.
    if (names.length + Object.keys({ ...raw, ...shape }).length === 0) return {}
    const reductions = names.map(name => {
      const known = reductionNamed(name)
      if (known === undefined) throw fault(inside(this.#place, 'reductions'), ANY_REDUCTION, name)
      return known
    })
    const { saveRawTensor = names.length === 0 } = raw
    if (!saveRawTensor && names.length === 0 && shape.saveShape !== true) {
      throw fault(inside(this.#place, 'save_raw_tensor'), 'true where there are no reductions', false)
    }
    return { reductionConfig: { reductions, saveRawTensor, ...shape } }
  }

  #saveSteps(prefix: string): SaveSteps {
    const interval = this.#number(`${prefix}save_interval`, 1)
    const [start, end] = [this.#number(`${prefix}start_step`), this.#number(`${prefix}end_step`)]
    const steps = this.#list(`${prefix}save_steps`)?.map(step => this.#stepOf(step, `${prefix}save_steps`))
    return {
      ...(interval !== null && { saveInterval: interval }),
      ...(start !== null && { startStep: start }),
      ...(end !== null && { endStep: end }),
      ...(steps !== undefined && { saveSteps: steps }),
    }
  }

  #number(name: string, least = 0): number | null {
    const value = this.#given[name]
    if (value === undefined || value === null) return null
    return this.#stepOf(value, name, least)
  }

  #stepOf(value: unknown, name: string, least = 0): number {
    const number = /^\s*\d+\s*$/.test(String(value)) ? Number(value) : Number.NaN
    if (Number.isSafeInteger(number) && number >= least) return number
    throw fault(inside(this.#place, name), `a whole number from ${least} on`, value)
  }

  /** A list: texts separated by commas, or an array. */
  #list(name: string): readonly string[] | null {
    const value = this.#given[name]
    if (value === undefined || value === null) return null
    if (typeof value === 'object' && !Array.isArray(value)) {
      throw fault(inside(this.#place, name), 'a text, its parts separated by commas', value)
    }
    const parts = Array.isArray(value) ? value.map(String) : String(value).split(',')
    return parts.map(part => part.trim()).filter(part => part !== '')
  }
}

function textIn(json: JsonObject, key: string, place: JsonPlace): string | null {
  const value = json[key]
  if (value === undefined || value === null) return null
  if (typeof value !== 'string' || value === '') throw fault(inside(place, key), 'a path', value)
  return value
}

function fault(place: JsonPlace, expected: string, got: unknown): FormatError {
  return jsonFault(place, expected, jsonExcerpt(got))
}
