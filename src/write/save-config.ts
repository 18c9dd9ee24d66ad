/** The steps at which tensors are saved, and what is saved of them: smdebug's SaveConfig and ReductionConfig. */

import { shown } from '../base/arguments.js'
import { type Kinds, kinds, optionsOf } from '../base/options.js'
import { MODES, type Mode, REDUCTIONS, type ReductionName } from '../base/types.js'
import type { ReductionConfig, SaveConfig } from '../format/collections.js'

/** The steps of a mode at which tensors are saved. */
export interface SaveSteps {
  /** The number of steps of the mode between saved steps. Default: 1. */
  readonly saveInterval?: number
  /** Further steps to save. */
  readonly saveSteps?: readonly number[]
  /** The first step that is saved, apart from `saveSteps`. Default: 0. */
  readonly startStep?: number
  /** The step before which saving ends. Default: null, no end. */
  readonly endStep?: number | null
}

/** The steps that are saved: for all modes, and exceptions by mode. */
export interface SaveConfigOptions extends SaveSteps {
  readonly TRAIN?: SaveSteps
  readonly EVAL?: SaveSteps
  readonly PREDICT?: SaveSteps
  readonly GLOBAL?: SaveSteps
}

/** The parts of a tensor that are saved. */
export interface ReductionConfigOptions {
  /** The reductions to save, also in smdebug's spelling of norms: `l2_norm`, `abs_l1_norm`. Default: none. */
  readonly reductions?: readonly (ReductionName | `${'l' | 'abs_l'}${1 | 2}_norm`)[]
  /** True to save the value. Default: only if no reductions are given. */
  readonly saveRawTensor?: boolean
  /** True to write the shape into the index, where it can be read without the value. Default: false. */
  readonly saveShape?: boolean
}

const SAVE_STEPS: Kinds<SaveSteps> = {
  saveInterval: kinds.wholeNumber(1, undefined, 'a number of steps from 1 on'),
  saveSteps: kinds.listOf('steps', kinds.step),
  startStep: kinds.step,
  endStep: kinds.orNull(kinds.step),
}

const OF_MODE = optionsOf<SaveSteps>(SAVE_STEPS)

export const SAVE_CONFIG = optionsOf<SaveConfigOptions>({
  ...SAVE_STEPS,
  TRAIN: OF_MODE,
  EVAL: OF_MODE,
  PREDICT: OF_MODE,
  GLOBAL: OF_MODE,
})

export const REDUCTION_CONFIG = optionsOf<ReductionConfigOptions>({
  reductions: kinds.that(expectedReductions, isReductions),
  saveRawTensor: kinds.flag,
  saveShape: kinds.flag,
})

/** The configuration of a writer or collection, by mode. */
export type SaveConfigs = Readonly<Record<Mode, SaveConfig>>

/** @param base the configuration to fall back to */
export function saveConfigsOf(options: SaveConfigOptions = {}, base?: SaveConfigs): SaveConfigs {
  const { TRAIN: _t, EVAL: _e, PREDICT: _p, GLOBAL: _g, ...all } = options
  const configOf = (mode: Mode): SaveConfig => {
    const before = base?.[mode] ?? { saveInterval: 1, saveSteps: [], startStep: 0, endStep: null }
    return { ...before, ...all, ...options[mode] }
  }
  return { TRAIN: configOf('TRAIN'), EVAL: configOf('EVAL'), PREDICT: configOf('PREDICT'), GLOBAL: configOf('GLOBAL') }
}

/** True if tensors are saved at a step of a mode. */
export function savesAt({ saveInterval, saveSteps, startStep, endStep }: SaveConfig, modeStep: number): boolean {
  if (saveSteps.includes(modeStep)) return true
  return modeStep >= startStep && modeStep < (endStep ?? Number.POSITIVE_INFINITY) && modeStep % saveInterval === 0
}

/** The saved parts of a tensor, with trialscan's names of reductions. */
export interface Saved extends ReductionConfig {
  /** The collection with which the tensor is saved. */
  readonly collection: string
  readonly names: readonly ReductionName[]
  /** True if the mean is a metric of the training job. */
  readonly isMetric: boolean
  /** True if TensorBoard gets it as a scalar. */
  readonly isScalar: boolean
  /** True if TensorBoard gets histograms. */
  readonly saveHistogram: boolean
}

export function savedOf(
  { reductions = [], saveRawTensor, saveShape = false }: ReductionConfigOptions,
  kind: Pick<Saved, 'collection' | 'isMetric' | 'isScalar' | 'saveHistogram'>,
): Saved {
  const names = reductions.map(name => reductionNamed(name)!)
  return {
    saveRawTensor: saveRawTensor ?? reductions.length === 0,
    saveShape,
    reductions: names.map(name => (/l[12]$/.test(name) ? `${name}_norm` : name)),
    names,
    ...kind,
  }
}

/** The reduction of that name; smdebug's `abs_l2_norm` is `abs_l2`. */
export function reductionNamed(name: unknown): ReductionName | undefined {
  return typeof name === 'string' ? REDUCTIONS.find(reduction => reduction === name.replace(/_norm$/, '')) : undefined
}

/** The known reductions, for messages. */
export const ANY_REDUCTION = `one of ${REDUCTIONS.join(', ')}`

function expectedReductions(given: unknown): string {
  const names = `an array of reductions, each ${ANY_REDUCTION}`
  const unknown = Array.isArray(given) ? given.find(name => reductionNamed(name) === undefined) : undefined
  return unknown === undefined ? names : `${names}, not ${shown(unknown)}`
}

function isReductions(given: unknown): boolean {
  return Array.isArray(given) && given.every(name => reductionNamed(name) !== undefined)
}

/** The configuration in the form of a collections file. */
export function saveConfigJson(configs: SaveConfigs): Record<Mode, object> {
  const fieldsOf = ({ saveInterval, saveSteps, startStep, endStep }: SaveConfig) => {
    return { save_interval: saveInterval, save_steps: [...saveSteps], start_step: startStep, end_step: endStep }
  }
  return Object.fromEntries(MODES.map(mode => [mode, fieldsOf(configs[mode])])) as Record<Mode, object>
}

export function reductionConfigJson({ saveRawTensor, reductions, saveShape }: ReductionConfig): object {
  return { save_raw_tensor: saveRawTensor, reductions: reductions.join(','), save_shape: saveShape }
}
