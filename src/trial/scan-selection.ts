/** The selection of a scan: the options of `trial.scan`, the records that they select, and the parts that select none. */

import {
  InvalidWorker,
  nearestNames,
  QueryError,
  quote,
  suggest,
  type TrialscanError,
  UsageError,
} from '../base/errors.js'
import { type Kinds, kinds, optionsOf } from '../base/options.js'
import type { Mode, StatisticName, Worker } from '../base/types.js'
import type { TrialState } from '../scan/catalog/state.js'
import {
  absentSteps,
  isStepSelection,
  nearestSteps,
  STEP_SELECTION,
  type StepSelection,
  stepFilter,
} from '../scan/catalog/step-selection.js'
import type { WorkerStep, WorkerSteps } from '../scan/catalog/worker-steps.js'
import { itemsOf, type RowGroup, SavedLists, type ScanItem } from '../scan/rows/row-groups.js'
import type { ScanProgress } from '../scan/rows/scan.js'
import { READ_KINDS, type ReadOptions } from '../scan/runner/access.js'
import { asList, collectionOf, type NamePatterns, namesOf } from './names.js'

export interface ScanOptions extends ReadOptions {
  /**
   * Names and patterns. The name of a tensor selects that tensor alone; any other text is a Python pattern, found anywhere in the name. A
   * RegExp is a pattern of JavaScript. Default: all tensors.
   */
  readonly tensors?: NamePatterns | undefined
  /** Only members of one of these collections. */
  readonly collection?: string | readonly string[] | undefined
  /** Global steps. Negative numbers count from the end of the steps that match the other options. */
  readonly steps?: StepSelection | undefined
  /**
   * Steps of the mode, by each worker's own numbers. Requires `mode` if the trial has several modes. Negative numbers
   * count from the end, as in `steps`.
   */
  readonly modeSteps?: StepSelection | undefined
  /** Only steps saved in this mode. */
  readonly mode?: Mode | undefined
  readonly workers?: Worker | readonly Worker[] | undefined
  /**
   * Reductions, counts, percentiles, histograms and digests. Default: `all` eighteen reductions, as far as the dtype has them. To check names
   * that users give, see `parseReductions`.
   */
  readonly reductions?: readonly StatisticName[] | 'all'
  /** True to give each row the time at which its record was written: `wallTime`. Default: false. */
  readonly wallTimes?: boolean
  /** True to measure where the time goes (`stats.spent`). This takes a second walk over the records. Default: false. */
  readonly timed?: boolean
  /**
   * True if the calling thread is one of `threads`. A scan is done sooner, since a thread less has to start; until it ends, the calling
   * thread works for some milliseconds at a time, and does all else in between. Local trials alone. Default: false.
   */
  readonly callerWorks?: boolean
  /** Aborts the scan: the loop over it then throws the signal's reason. */
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: ScanProgress) => void) | undefined
}

/** The part of a scan's options that selects what is read, and how. */
export type ScanSelection = Omit<ScanOptions, 'reductions' | 'wallTimes' | 'timed' | 'callerWorks' | 'onProgress'>

/** The options that select which of a tensor's values are merged. */
export type DistributionOptions = ReadOptions & Pick<ScanOptions, 'steps' | 'modeSteps' | 'mode' | 'workers' | 'signal'>

const PLACE_KINDS: Kinds<DistributionOptions> = {
  ...READ_KINDS,
  steps: kinds.that<StepSelection>(STEP_SELECTION, isStepSelection),
  modeSteps: kinds.that<StepSelection>(STEP_SELECTION, isStepSelection),
  mode: kinds.mode,
  workers: kinds.oneOrMore('the name of a worker', 'such', kinds.text),
  signal: kinds.signal,
}

export const DISTRIBUTION_OPTIONS = optionsOf<DistributionOptions>(PLACE_KINDS)

export const SELECTION_KINDS: Kinds<ScanSelection> = {
  ...PLACE_KINDS,
  tensors: kinds.oneOrMore('a name or a pattern', 'such', kinds.pattern),
  collection: kinds.oneOrMore('the name of a collection', 'such', kinds.text),
}

export const SCAN_OPTIONS = optionsOf<ScanOptions>({
  ...SELECTION_KINDS,
  reductions: kinds.that("names of reductions in an array, or 'all'", isNames),
  wallTimes: kinds.flag,
  timed: kinds.flag,
  callerWorks: kinds.flag,
  onProgress: kinds.callback(),
})

/**
 * The selection of a scan, in the order of its rows.
 * @param trial its name, for errors
 * @throws UsageError, TensorUnavailable, InvalidWorker or QueryError at once, for anything that the trial does not have
 */
export function selectGroups(state: TrialState, trial: string, options: ScanOptions): Iterable<RowGroup> {
  const names = selectTensorNames(state, trial, options)
  const workerSteps = selectWorkerSteps(state, options, names)
  const lists = new SavedLists(names)
  return { [Symbol.iterator]: () => lists.of(workerSteps) }
}

/** The selected records, row by row. */
export function selectItems(state: TrialState, trial: string, options: ScanOptions): Iterable<ScanItem> {
  const groups = selectGroups(state, trial, options)
  return { [Symbol.iterator]: () => itemsOf(groups) }
}

/** The steps of workers that a scan is about. An index file that can't be read tells no mode: it is one of every mode. */
function selectWorkerSteps(
  { catalog, contents }: TrialState,
  { steps, modeSteps, mode, workers }: ScanOptions,
  names: ReadonlySet<string> | null,
): WorkerSteps {
  const modes = catalog.steps.modes
  if (modeSteps !== undefined && (mode ?? 'GLOBAL') === 'GLOBAL' && modes.length > 1) {
    throw new UsageError(`expected mode beside modeSteps, since each of ${modes.join(', ')} counts its own, got none`, {
      option: 'modeSteps',
    })
  }
  const workerNames = workers === undefined ? null : new Set(asList(workers))
  for (const worker of workerNames ?? []) {
    if (!contents.workers.includes(worker)) throw new InvalidWorker(worker, [...contents.workers])
  }
  const isOfMode = (saved: WorkerStep) => mode === undefined || mode === 'GLOBAL' || saved.mode === mode
  const isEverything = workerNames === null && (mode === undefined || mode === 'GLOBAL')
  const all = isEverything
    ? catalog.workerSteps
    : catalog.workerSteps.filter(
        saved => (workerNames === null || workerNames.has(saved.worker)) && (saved.error !== null || isOfMode(saved)),
      )
  const numbersOf = (number: (saved: WorkerStep) => number) => () => {
    const numbers = new Set<number>()
    for (const saved of all) if (hasAnyTensor(saved, names)) numbers.add(number(saved))
    return [...numbers].sort((a, b) => a - b)
  }
  const filterOf = (selection: StepSelection | undefined, number: (saved: WorkerStep) => number) =>
    selection === undefined ? undefined : stepFilter(selection, numbersOf(number))
  const isStep = filterOf(steps, ({ step }) => step)
  const isModeStep = filterOf(modeSteps, ({ modeStep }) => modeStep)
  if (isStep === undefined && isModeStep === undefined) return all
  return all.filter(
    ({ step, modeStep, error }) =>
      (isStep === undefined || isStep(step)) && (isModeStep === undefined || error !== null || isModeStep(modeStep)),
  )
}

/** The tensors a scan is about; null: all. */
export function selectTensorNames(
  state: TrialState,
  trial: string,
  { tensors, collection }: ScanOptions,
): ReadonlySet<string> | null {
  const selected =
    tensors === undefined ? null : new Set(asList(tensors).flatMap(entry => namesOf(state.catalog, entry)))
  if (collection === undefined) return selected
  const members = asList(collection).flatMap(name => collectionOf(state, trial, name).members)
  return new Set(selected === null ? members : members.filter(name => selected.has(name)))
}

/** True if any of these tensors was saved; null: any tensor at all. */
function hasAnyTensor({ tensors }: WorkerStep, names: ReadonlySet<string> | null): boolean {
  if (names === null) return tensors.size > 0
  for (const name of tensors.keys()) if (names.has(name)) return true
  return false
}

/** Checks the type of `tensors`. Unknown names are reported elsewhere, with the nearest known ones. */
export function isNames(given: unknown): boolean {
  return given === 'all' || (Array.isArray(given) && given.every(name => typeof name === 'string'))
}

/** The code of a QueryError about a part of a selection that matches nothing. */
const NOTHING_SELECTED = 'NothingSelected'

/** The problems among these that bytes have, rather than the question: a selection that matches nothing is no damage. */
export function damageAmong(problems: readonly TrialscanError[]): readonly TrialscanError[] {
  return problems.filter(({ code }) => code !== NOTHING_SELECTED)
}

/** The parts of a selection that match nothing, among these problems. */
export function unmatchedAmong(problems: readonly TrialscanError[]): readonly string[] {
  return problems.filter(({ code }) => code === NOTHING_SELECTED).map(({ message }) => message)
}

/** More steps are counted. */
const MAX_STEPS = 8

/** An error `NothingSelected` for each pattern, collection and step that matches nothing, or one for all if they match nothing together. */
export function unmatchedParts(state: TrialState, trial: string, options: ScanOptions): readonly QueryError[] {
  const { tensors = [], collection = [] } = options
  const { names } = state.catalog
  const parts: QueryError[] = []
  for (const pattern of asList(tensors)) {
    if (namesOf(state.catalog, pattern).length > 0) continue
    const isText = typeof pattern === 'string'
    const nearest = nearestNames((isText ? pattern : pattern.source).replaceAll(/[\^$.*+?()[\]{}|\\]+/g, ''), names)
    const message = `no tensor of trial ${quote(trial)} matches ${isText ? quote(pattern) : pattern}${suggest(nearest)}`
    parts.push(nothing(message, { nearest }))
  }
  for (const name of asList(collection)) {
    if (collectionOf(state, trial, name).members.length > 0) continue
    parts.push(nothing(`collection ${quote(name)} of trial ${quote(trial)} has no tensors`, { collection: name }))
  }
  parts.push(...absentParts(state, options))
  if (parts.length > 0 || hasAny(state, trial, options)) return parts
  return [nothing(emptyText(state, trial, options), {})]
}

/** An error for the steps of each selection that are named by their numbers, and that do not exist. */
export function absentParts(
  { catalog }: TrialState,
  { steps, modeSteps, mode = 'GLOBAL' }: Pick<ScanOptions, 'steps' | 'modeSteps' | 'mode'>,
): readonly QueryError[] {
  const numbers = (numberOf: (saved: WorkerStep) => number, isMeant = (_: WorkerStep) => true) =>
    [...catalog.workerSteps].filter(isMeant).map(numberOf)
  const isOfMode = (saved: WorkerStep) => mode === 'GLOBAL' || saved.mode === mode
  const kind = mode === 'GLOBAL' ? 'mode step' : `step of ${mode}`
  return [
    ...(steps === undefined
      ? []
      : absent(
          'global step',
          steps,
          numbers(({ step }) => step),
        )),
    ...(modeSteps === undefined
      ? []
      : absent(
          kind,
          modeSteps,
          numbers(({ modeStep }) => modeStep, isOfMode),
        )),
  ]
}

function hasAny(state: TrialState, trial: string, options: ScanOptions): boolean {
  for (const _ of selectItems(state, trial, options)) return true
  return false
}

/** The message for a selection whose parts match something, but nothing together. */
function emptyText(state: TrialState, trial: string, options: ScanOptions): string {
  const { steps: _steps, modeSteps: _modeSteps, mode: _mode, workers: _workers, ...names } = options
  const places = new Set<string>()
  for (const { workerStep } of selectItems(state, trial, names)) {
    const { step, mode, modeStep, worker } = workerStep
    places.add(`global step ${step} (${mode} step ${modeStep}) of ${worker}`)
    if (places.size > MAX_STEPS) break
  }
  if (state.catalog.names.length === 0) return `trial ${quote(trial)} has no tensors`
  if (places.size === 0) return `no tensor of trial ${quote(trial)} is in all that is selected`
  const [first, ...others] = places
  return `the selected tensors were not saved at the selected steps, modes and workers, but at ${first}${others.length > 0 ? ' and others' : ''}`
}

function absent(kind: string, selection: StepSelection, existing: readonly number[]): readonly QueryError[] {
  const saved = new Set(existing)
  const steps = absentSteps(selection, saved)
  if (steps.length === 0) return []
  const nearest = nearestSteps(steps[0]!, saved)
  const more = steps.length > MAX_STEPS ? ` and ${steps.length - MAX_STEPS} more` : ''
  const message = `the trial has no ${kind} ${steps.slice(0, MAX_STEPS).join(', ')}${more}`
  return [
    nothing(nearest.length > 0 ? `${message}; nearest to ${steps[0]}: ${nearest.join(' and ')}` : message, {
      steps,
      nearest,
    }),
  ]
}

function nothing(message: string, fields: Readonly<Record<string, unknown>>): QueryError {
  return new QueryError(NOTHING_SELECTED, message, fields)
}
