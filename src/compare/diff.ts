/** Two runs compared, in the order of execution: where they first differ, and how. */

import { UsageError } from '../base/errors.js'
import { checkOptions, isPlainObject, type Kinds, kinds, optionsOf } from '../base/options.js'
import { problemLines } from '../base/problem-lines.js'
import { inTurns } from '../base/turns.js'
import { isOptimizerState } from '../format/checkpoint/names.js'
import { stepsAround } from '../scan/catalog/step-selection.js'
import { type WaitOptions, waitingOf } from '../scan/catalog/wait.js'
import { kindsOf } from '../trial/kinds/kinds.js'
import { DIFFERENCE_TOLERANCE_KINDS } from '../trial/measure/difference.js'
import { createTrial } from '../trial/open.js'
import { type ScanSelection, SELECTION_KINDS, unmatchedAmong, unmatchedParts } from '../trial/scan-selection.js'
import { expectTrial, stateOf, Trial } from '../trial/trial.js'
import { type Bisection, bisectSteps } from './bisect.js'
import { type ComparingOptions, Comparison, type ComparisonOptions, type DtypePair } from './comparison.js'
import type { NameAliases, TiedTensor } from './names/aliases.js'
import { cutTrial, cutTrials, type SplitTensor } from './names/cut.js'
import { type NameSuggestion, suggestNames } from './names/suggest.js'
import { isTensorMap, splitsOf, TENSOR_MAP, type TensorMap } from './names/tensor-map.js'
import { NoiseFloor } from './noise.js'
import {
  loggedNames,
  onlyStep,
  type Pairing,
  type Partition,
  RunPairing,
  UnifiedPairing,
  WorkerPairing,
  wantedBy,
  wantedOf,
} from './pairing.js'
import { isPacked, isScale, stemOfPart } from './quantised/names.js'
import type { DifferenceAt } from './records.js'
import type { TrendDeparture } from './trend.js'

interface CommonOptions extends ComparingOptions {
  /** End at the first step that diverges. Default: false. */
  readonly stopAtFirst?: boolean
  readonly onProgress?: (progress: { readonly doneRows: number; readonly totalRows: number }) => void
}

export type DiffWorkersOptions = CommonOptions

export interface DiffOptions extends CommonOptions, Pick<WaitOptions, 'timeoutMs' | 'pollMs'> {
  /**
   * The map from tensors of the first run to those of the second, or the other way round, where a pattern is of names in the second run. Default: those of
   * the same name. Tensors of checkpoints that are one in one run and several in the other are split: see `TensorSplit`.
   */
  readonly map?: TensorMap
  /** Runs of the configuration of the first: what they differ from it by is noise, and no difference. */
  readonly noise?: readonly Trial[]
  /**
   * Puts tensors that are split among workers together before they are compared: names or patterns of whole names, each with the axis
   * along which they are split. Of other tensors the copies of the first workers are compared.
   */
  readonly unify?: Partition
  /** Finds the first step that diverges by halving, as if what differs once differs from then on. Default: false. */
  readonly bisect?: boolean
  /** Goes on with each step that the first run completes, until it ends. Default: false. */
  readonly follow?: boolean
}

const COMMON_KINDS: Kinds<CommonOptions> = {
  ...SELECTION_KINDS,
  ...DIFFERENCE_TOLERANCE_KINDS,
  callerWorks: kinds.flag,
  stopAtFirst: kinds.flag,
  onDifference: kinds.callback(),
  onNotCompared: kinds.callback(),
  keepDifferences: kinds.flag,
  onProgress: kinds.callback(),
}

const DIFF_WORKERS_OPTIONS = optionsOf<DiffWorkersOptions>(COMMON_KINDS)

const DIFF_OPTIONS = optionsOf<DiffOptions>({
  ...COMMON_KINDS,
  map: kinds.that<TensorMap>(TENSOR_MAP, isTensorMap),
  noise: kinds.that<readonly Trial[]>('an array of trials', isTrials),
  unify: kinds.that<Partition>('an object of axes', isPartition),
  bisect: kinds.flag,
  follow: kinds.flag,
  timeoutMs: kinds.milliseconds,
  pollMs: kinds.milliseconds,
})

export interface TrialDiff {
  /** The first tensor, in the order of execution, that differs by more than is close, or noise; null: none does. */
  readonly divergence: DifferenceAt | null
  /** The differences, in the order of execution. */
  readonly differences: readonly DifferenceAt[]
  /** Tensors of workers at steps that were compared, and those that are equal bit by bit, close, or within noise. */
  readonly compared: number
  readonly equal: number
  readonly close: number
  readonly noisy: number
  /** The number of those of which only reductions were compared, which agree: values may differ. They count neither as equal nor as close. */
  readonly reduced: number
  /** The number of tensors that only one of the runs has at a step that both have. */
  readonly missing: number
  /** The number of weights that are quantised in both, and compared as they are stored, without their scales. */
  readonly stored: number
  /** Names in the first run of tensors that are equal bit for bit, at most 100. */
  readonly equalTensors: readonly string[]
  /** True if most of what workers of one run have in common differs, as where each has a part of a model. */
  readonly seemParts: boolean
  /** Heads that one run lacks, tied to its embeddings. They don't count as missing. */
  readonly tied: readonly TiedTensor[]
  /** True if each run has one step, and of both weights and biases alone were compared: two checkpoints, which no order of execution leads through. */
  readonly areCheckpoints: boolean
  /** The numbers that trainings logged beside two checkpoints, at steps of their own. They are compared where they alone are selected. */
  readonly logged: readonly string[]
  /** Names that were matched without prefixes of wrappers; null: names match as they are, or not at all. */
  readonly aliases: NameAliases | null
  /** Tensors that the map splits, and that were compared part by part. */
  readonly split: readonly SplitTensor[]
  /** Tensors whose dtype differs between the runs: their elements are compared as float64, and the dtype alone is no difference. */
  readonly dtypes: readonly DtypePair[]
  /** The read errors, in a sentence for each file: records and index files. They are no divergence. */
  readonly problems: readonly string[]
  /** The parts of the selection, of the first run, that match nothing, each in a sentence, with the nearest that there is. */
  readonly unmatched: readonly string[]
  /** Steps of both, of the first alone, and of the second alone. Of two runs of one step each these are compared, whatever their numbers. */
  readonly steps: { readonly both: number; readonly onlyA: readonly number[]; readonly onlyB: readonly number[] }
  /**
   * The last step before the divergence at which something was compared, nothing was unreadable, and all that was compared was equal, close or within
   * noise; null: there is none. Of earlier steps some may not have been read.
   */
  readonly equalUntil: number | null
  /** The place where differences leave the trend of the steps before; null: they don't, or runs were given to tell noise by. */
  readonly departure: TrendDeparture | null
  /** The halving; null if all steps were compared. */
  readonly bisection: Bisection | null
  /** Tensors of the first run that may have other names in the second. */
  readonly suggestions: readonly NameSuggestion[]
  readonly readBytes: number
}

/**
 * Compares two runs of a training, step by step and, within a step, in the order in which tensors were computed. Tensors are matched by name,
 * or by a map; workers by name, or where each run has one.
 * @param first an open trial, or the place of one, as `createTrial` takes it
 * @throws UsageError, and what `createTrial` and a scan throw
 */
export async function diff(
  first: Trial | string | URL,
  second: Trial | string | URL,
  options?: DiffOptions,
): Promise<TrialDiff> {
  const settings = checkOptions('diff', DIFF_OPTIONS, options)
  const opened: Trial[] = []
  try {
    const [a, b] = [await trialOf(first, opened), await trialOf(second, opened)]
    const others = [a, b].filter(trial => !(trial instanceof Trial))
    if (others.length > 0)
      throw new UsageError(`diff: expected two trials, got ${others[0] ?? 'none'}`, { call: 'diff' })
    return await diffTrials(a, b, settings)
  } finally {
    for (const trial of opened) await trial.close()
  }
}

/** @param opened gets what is opened here, to be closed */
async function trialOf(given: Trial | string | URL, opened: Trial[]): Promise<Trial> {
  if (typeof given !== 'string' && !(given instanceof URL)) return given
  const trial = await createTrial(given)
  opened.push(trial)
  return trial
}

async function diffTrials(first: Trial, second: Trial, settings: DiffOptions): Promise<TrialDiff> {
  const { map = {}, noise = [], unify, bisect, follow, timeoutMs: _t, pollMs: _p, ...common } = settings
  const refuse = (isGiven: boolean | undefined, expected: string) => {
    if (isGiven) throw new UsageError(`diff: expected ${expected}`, { call: 'diff' })
  }
  const hasSteps = common.steps !== undefined || common.modeSteps !== undefined
  refuse(
    follow && (bisect || noise.length > 0 || hasSteps),
    'follow without bisect, noise and steps: it goes from step to step',
  )
  refuse(bisect && noise.length > 0, 'bisect without noise: how far runs are apart is told from step to step')
  refuse(follow && splitsOf(map).length > 0, 'follow without parts of tensors in the map, which are known once')
  const { trials, split } = await cutTrials(first, second, map, unify !== undefined)
  const [a, b] = trials
  const areLogged = selectsLogged(a, common)
  const pairing = (other: Trial) =>
    unify ? new UnifiedPairing(a, other, map, unify, areLogged) : new RunPairing(a, other, map, areLogged)
  // What is noise is cut as the first run is.
  const others = noise.map(async trial => (await cutTrial(trial, second, splitsOf(map), unify !== undefined)).trial)
  const floor = noise.length > 0 ? { noise: await noiseOf((await Promise.all(others)).map(pairing), common) } : {}
  const runs = pairing(b)
  const result = await compared(runs, { ...common, ...floor }, bisect, follow ? waitingOf(settings) : null)
  return { ...told(result), split, suggestions: result.missing === 0 ? [] : await suggested(runs) }
}

/**
 * Compares the workers of one run with each other: each with the first that has a tensor. By default weights and biases, which replicas
 * have in common; all tensors where there are none.
 * @throws UsageError, and what a scan throws
 */
export async function diffWorkers(trial: Trial, options?: DiffWorkersOptions): Promise<TrialDiff> {
  expectTrial('diffWorkers', trial)
  const settings = checkOptions('diffWorkers', DIFF_WORKERS_OPTIONS, options)
  const { collections } = stateOf(trial).contents.collections
  const parameters = ['weights', 'biases'].filter(
    name => collections.has(name) && trial.collection(name).members.length > 0,
  )
  const isSelective = settings.tensors !== undefined || settings.collection !== undefined
  const selection = isSelective || parameters.length === 0 ? settings : { ...settings, collection: parameters }
  const found = await compared(new WorkerPairing(trial), selection)
  const seemParts = trial.checkpoint !== null && 2 * (found.equal + found.close + found.reduced) <= found.compared
  return { ...told(found), seemParts: seemParts && found.divergence !== null, split: [], suggestions: [] }
}

/** The noise: the differences between runs of the same configuration. */
async function noiseOf(
  pairings: readonly Pairing[],
  { onDifference: _, onNotCompared: _n, ...common }: CommonOptions,
): Promise<NoiseFloor> {
  const floor = new NoiseFloor()
  const options = { ...common, stopAtFirst: false, keepDifferences: false }
  for (const pairing of pairings) {
    const { errors } = await compared(pairing, { ...options, onApart: (place, apart) => floor.add(place, apart) })
    floor.problems.push(...errors)
  }
  return floor
}

/** The options that select a part of a run. */
const SELECTING = ['tensors', 'collection', 'steps', 'modeSteps', 'mode', 'workers'] as const

/** The result of a comparison, with the read errors of all runs, those of noise too. */
type Compared = Omit<TrialDiff, 'suggestions' | 'split' | 'problems'> & { readonly errors: readonly Error[] }

function told({ errors, ...result }: Compared): Omit<TrialDiff, 'suggestions' | 'split'> {
  return { ...result, problems: problemLines(errors) }
}

async function compared(
  pairing: Pairing,
  { stopAtFirst = false, onProgress, ...options }: CommonOptions & Pick<ComparisonOptions, 'noise' | 'onApart'>,
  isBisected = false,
  waiting: WaitOptions | null = null,
): Promise<Compared> {
  const { a, b } = pairing
  const { onDifference, onNotCompared, keepDifferences, rtol, atol, tolerance, noise, onApart, ...selection } = options
  // Of a part it is unknown what else the second run would have in it.
  const isAll = SELECTING.every(name => selection[name] === undefined)
  const { checkpointStep } = pairing
  const wanted = wantedBy(pairing, selection)
  const [stepsA, stepsB] = [new Set(wanted.keys()), new Set<number>(b.steps({ showIncompleteSteps: true }))]
  const both = [...stepsA].filter(step => stepsB.has(pairing.stepInB(step))).sort((x, y) => x - y)
  const comparison = new Comparison(pairing, { ...options, countsAll: isAll, isFirstAll: stopAtFirst })
  const isEnough = () => stopAtFirst && comparison.divergence !== null
  let bisection: Bisection | null = null
  if (isBisected) {
    const { first, ...rest } = await bisectSteps(both, async step => {
      const probe = new Comparison(pairing, {
        ...options,
        countsAll: isAll,
        keepDifferences: false,
        onDifference: () => {},
        onNotCompared: () => {},
      })
      await probe.steps([step], wanted, () => true)
      const differs = probe.divergence !== null
      if (!differs) comparison.count(probe)
      return differs
    })
    bisection = rest
    if (first !== null) await comparison.steps([first], wanted, () => true)
  } else {
    await comparison.steps(both, wanted, done => {
      const doneRows = comparison.counts.compared + comparison.counts.missing
      onProgress?.({ doneRows, totalRows: Math.round((doneRows * both.length) / done) })
      return isEnough()
    })
  }
  if (waiting && !isEnough()) {
    for await (const step of a.follow(waiting)) {
      if (stepsA.has(step)) continue
      stepsA.add(step)
      if (!stepsB.has(step)) continue
      await comparison.steps([step], wantedOf(a, { ...selection, steps: stepsAround(step) }), () => true)
      both.push(step)
      if (isEnough()) break
    }
  }
  const { divergence, differences, counts, departure, stats } = comparison
  const looked = bisection?.steps ?? both
  const inB = new Set([...stepsA].map(step => pairing.stepInB(step)))
  return {
    divergence,
    differences,
    ...counts,
    equalTensors: [...comparison.equalTensors],
    seemParts: false,
    tied: comparison.tied,
    areCheckpoints: a !== b && both.length === 1 && (await isCheckpoint(a)) && (await isCheckpoint(b)),
    logged:
      checkpointStep === null
        ? []
        : [...new Set([a, b].flatMap(trial => [...selectedLogged(trial, selection)]))].sort(),
    aliases: pairing.aliases,
    dtypes: [...comparison.dtypes.values()],
    errors: [...a.problems, ...b.problems, ...comparison.problems.values(), ...(noise?.problems ?? [])],
    unmatched: unmatchedAmong(unmatchedParts(stateOf(a), a.name, selection)),
    steps: {
      both: both.length,
      onlyA: [...stepsA].filter(step => !stepsB.has(pairing.stepInB(step))),
      onlyB: isAll && checkpointStep === null ? [...stepsB].filter(step => !inB.has(step)) : [],
    },
    equalUntil:
      looked.filter(step => (divergence === null || step < divergence.step) && comparison.wasComparedAt(step)).at(-1) ??
      null,
    departure: noise ? null : departure,
    bisection,
    readBytes: stats.readBytes,
  }
}

/** True if numbers that were logged are selected, and nothing else. */
function selectsLogged(trial: Trial, selection: ScanSelection): boolean {
  if (trial.checkpoint === null || (selection.tensors ?? selection.collection) === undefined) return false
  return wantedOf(trial, selection).size > 0 && wantedOf(trial, selection, loggedNames(trial)).size === 0
}

/** The selected numbers that were logged. */
function selectedLogged(trial: Trial, selection: ScanSelection): ReadonlySet<string> {
  const logged = loggedNames(trial)
  if (logged.size === 0) return logged
  const names = [...wantedOf(trial, selection).values()].flatMap(workers => [...workers.values()].flat())
  return new Set(names.filter(name => logged.has(name)))
}

/** True of a run of one step that has weights, biases and states of an optimizer, and nothing that a step of a training computes. */
async function isCheckpoint(trial: Trial): Promise<boolean> {
  if (onlyStep(trial) === null) return false
  const logged = loggedNames(trial)
  const kindOf = kindsOf(trial)
  const isOther = (name: string) =>
    !isScale(name) && stemOfPart(name) === null && !logged.has(name) && !isOptimizerState(name)
  const names = stateOf(trial).catalog.names.filter(isOther)
  let [parameters, others] = [0, 0]
  await inTurns(names, name => {
    const kind = isPacked(name) ? 'weights' : kindOf(name)
    if (kind === 'weights' || kind === 'biases') parameters++
    else if (kind === 'other') others++
  })
  return parameters + others === names.length && parameters >= others
}

/** Suggested names for a step that both runs have. */
async function suggested(pairing: RunPairing): Promise<readonly NameSuggestion[]> {
  const steps = new Set<number>(pairing.b.steps({ showIncompleteSteps: true }))
  const step = pairing.a.steps({ showIncompleteSteps: true }).find(candidate => steps.has(pairing.stepInB(candidate)))
  return step === undefined ? [] : suggestNames(pairing, step)
}

function isTrials(given: unknown): given is readonly Trial[] {
  return Array.isArray(given) && given.every(trial => trial instanceof Trial)
}

function isPartition(given: unknown): given is Partition {
  return isPlainObject(given) && Object.values(given).every(axis => Number.isInteger(axis) && axis >= 0)
}
