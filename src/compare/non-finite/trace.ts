/** The origin of NaN and infinities: the first record that has any, in the order of execution, and their spread from there. */

import { checkOptions, kinds, optionsOf } from '../../base/options.js'
import { ProblemLines } from '../../base/problem-lines.js'
import { REDUCTIONS, type StatisticName, type Worker } from '../../base/types.js'
import { faultOf, type ScanRow } from '../../scan/job/row.js'
import { HALF, scalesLoss } from '../../trial/kinds/precision.js'
import {
  damageAmong,
  type ScanSelection,
  SELECTION_KINDS,
  selectTensorNames,
  unmatchedAmong,
} from '../../trial/scan-selection.js'
import { expectTrial, stateOf, type Trial } from '../../trial/trial.js'
import {
  type AffectedSlices,
  isEarlier,
  type NonFiniteKind,
  type NonFiniteRecord,
  type PassedOverflow,
  type RecordPlaceInTime,
} from '../records.js'
import { CheckpointTrace, type NonFiniteCheckpoint } from './at-checkpoint.js'
import { elementsAt } from './elements.js'
import { Spread } from './spread.js'

export interface NonFiniteOrigin extends NonFiniteRecord {
  /** The first element that is not finite; null where only reductions were saved, and of a scalar. */
  readonly element: readonly number[] | null
  readonly kind: NonFiniteKind
  readonly shape: readonly number[] | null
  /** The affected slices of each axis that is not affected as a whole. */
  readonly slices: readonly AffectedSlices[]
  /** All workers whose record of the tensor at the step has any. */
  readonly workers: readonly Worker[]
}

/** A record whose magnitudes are close to the end of what its type holds, though all are finite. */
export interface NearOverflow extends RecordPlaceInTime {
  readonly absMax: number
  readonly limit: number
}

export interface NonFiniteTrace {
  /** The earliest record with NaN or infinities, but for those of `passed`; null: all others are finite. */
  readonly origin: NonFiniteOrigin | null
  /** The first record that was near to overflow, before the origin; null: there is none. */
  readonly warning: NearOverflow | null
  /** The first record of each other tensor of a worker that has any, in the order of execution. */
  readonly later: readonly NonFiniteRecord[]
  /** The chain from the origin to the loss, as far as names tell; empty if it did not reach the loss. */
  readonly chain: readonly RecordPlaceInTime[]
  /** Overflows of gradients that the training got over, as with a scaled loss, in the order of steps. */
  readonly passed: readonly PassedOverflow[]
  /** The first checkpoint with NaN or infinities, and what was logged around it; null: all are finite, or the trial is of no checkpoints. */
  readonly checkpoint: NonFiniteCheckpoint | null
  /** True if some of it is known from saved reductions alone. */
  readonly isUncertain: boolean
  /** The read errors, in a line a file. */
  readonly problems: readonly string[]
  /** The parts of the selection that match nothing, each in a sentence, with the nearest that there is. */
  readonly unmatched: readonly string[]
  /** Values of tensors that were looked at. */
  readonly records: number
  /** Values of tensors that could not be read. */
  readonly unread: number
  /** Values of XGBoost's trees with NaN: what a leaf lacks. They are left out unless tensors are selected. */
  readonly leftOut: number
}

export interface TraceOptions extends ScanSelection {
  readonly onProgress?: (progress: { readonly doneRows: number; readonly totalRows: number }) => void
}

const TRACE_OPTIONS = optionsOf<TraceOptions>({ ...SELECTION_KINDS, onProgress: kinds.callback() })

const ASKED: readonly StatisticName[] = [...REDUCTIONS, 'nan_count', 'inf_count']

/**
 * Magnitudes from which a step more is an overflow: of types that have infinities half their largest number, of wider ones far below that. Narrow
 * types without infinities are scaled to their largest number on purpose.
 */
const LIMITS: Readonly<Record<string, number>> = {
  float8_e5m2: 57_344 / 2,
  float16: 65_504 / 2,
  bfloat16: 1e30,
  float32: 1e30,
  float64: 1e300,
}

/**
 * Finds where NaN and infinities come from, in one scan.
 * @param options which part of the trial. Default: all tensors at all steps
 * @throws what a scan throws; what can't be read is told in `problems`
 */
export async function traceNonFinite(trial: Trial, options?: TraceOptions): Promise<NonFiniteTrace> {
  expectTrial('traceNonFinite', trial)
  const { onProgress, ...selection } = checkOptions('traceNonFinite', TRACE_OPTIONS, options)
  const spread = await Spread.of(trial, selectTensorNames(stateOf(trial), trial.name, selection))
  const checkpoints = trial.checkpoint === null ? null : new CheckpointTrace(trial)
  const problems = new ProblemLines()
  let warning: (NearOverflow & { readonly rank: number }) | null = null
  let isUncertain = false
  let isMixed = scalesLoss(trial)
  let [records, unread, leftOut] = [0, 0, 0]
  const isSelected = selection.tensors !== undefined || selection.collection !== undefined
  const scan = trial.scan({ ...selection, reductions: ASKED, onProgress })
  for await (const row of scan) {
    const { tensor } = row
    const fault = faultOf(row)
    if (fault) problems.add(fault)
    if (tensor === null) continue
    if (fault && Object.keys(row.reductions).length === 0) {
      unread++
      spread.addUnreadable(placeOf(row, tensor))
      continue
    }
    const nonFinite = foundIn(row)
    // Trees of XGBoost have NaN for whatever a leaf lacks.
    if (!isSelected && tensor.startsWith('trees/')) {
      if (nonFinite !== null) leftOut++
      continue
    }
    records++
    isMixed ||= row.dtype === HALF
    const place = placeOf(row, tensor)
    checkpoints?.add(tensor, row.step, nonFinite === null, row.reductions.max)
    if (nonFinite !== null) {
      isUncertain ||= nonFinite.nan === null
      spread.add({ ...place, rank: spread.rankOf(place), ...nonFinite })
      continue
    }
    spread.addFinite(place)
    const { abs_max: absMax } = row.reductions
    const limit = LIMITS[row.dtype ?? 'float32']
    if (typeof absMax !== 'number' || limit === undefined || absMax < limit) continue
    const near = { ...place, rank: spread.rankOf(place), absMax, limit }
    if (warning === null || isEarlier(near, warning)) warning = near
  }
  for (const error of [...trial.problems, ...damageAmong(scan.problems)]) problems.add(error)
  const { first, later, chain, passed } = spread.trace(isMixed)
  const before = warning !== null && (first === null || isEarlier(warning, first)) ? warning : null
  const ofCheckpoint = first && checkpoints?.firstOf([first, ...later])
  const element = ofCheckpoint ? await elementsAt(trial, ofCheckpoint) : null
  return {
    origin: first === null ? null : await originOf(trial, first, spread.workersOf(first)),
    warning: before && withoutRank(before),
    later: later.map(withoutRank),
    chain: chain.map(({ step, mode, modeStep, tensor, worker }) => ({ step, mode, modeStep, tensor, worker })),
    passed,
    checkpoint:
      first && checkpoints
        ? checkpoints.result(first.step, ofCheckpoint?.tensor ?? null, element?.element ?? null)
        : null,
    isUncertain,
    problems: problems.lines,
    unmatched: unmatchedAmong(scan.problems),
    records,
    unread,
    leftOut,
  }
}

function placeOf({ step, mode, modeStep, worker }: ScanRow, tensor: string): RecordPlaceInTime {
  return { step, mode, modeStep, tensor, worker }
}

/** The non-finite elements of a record; null if all are finite. */
function foundIn({
  reductions,
  saved,
  shape,
}: ScanRow): { nan: number | null; infinite: number | null; kind: NonFiniteKind } | null {
  const { nan_count: nan, inf_count: inf } = reductions
  if (typeof nan === 'number' && typeof inf === 'number' && !saved) {
    if (nan + inf === 0) return null
    return { nan, infinite: inf, kind: nan > 0 ? 'nan' : reductions.max === Number.POSITIVE_INFINITY ? 'inf' : '-inf' }
  }
  const all = Object.entries(reductions).filter((entry): entry is [string, number] => typeof entry[1] === 'number')
  // The spread of a single element is NaN, as PyTorch computes it, and so is a product that overflows before a zero.
  const others = all.filter(([name]) => !/(std|variance|prod)$/.test(name))
  const numbers = others.length > 0 || elementCount(shape) === 1 ? others : all
  // Of values that are finite none of these is NaN.
  if (numbers.some(([, value]) => Number.isNaN(value))) return { nan: null, infinite: null, kind: 'nan' }
  // Sums of large ones can be infinite, and squares all the more: where extremes were saved, they tell.
  const extremes = numbers.filter(([name]) => /^(abs_)?(min|max)$/.test(name))
  const telling = extremes.length > 0 ? extremes : numbers.filter(([name]) => /(mean|sum|l1|l2)$/.test(name))
  const infinite = telling.find(([, value]) => !Number.isFinite(value))
  if (infinite === undefined) return null
  return { nan: null, infinite: null, kind: infinite[1] > 0 ? 'inf' : '-inf' }
}

function elementCount(shape: readonly number[] | null): number | null {
  return shape === null ? null : shape.reduce((product, length) => product * length, 1)
}

async function originOf(
  trial: Trial,
  { rank: _rank, kind, ...first }: NonFiniteRecord & { readonly rank: number; readonly kind: NonFiniteKind },
  workers: readonly Worker[],
): Promise<NonFiniteOrigin> {
  const element = first.nan === null ? null : await elementsAt(trial, first)
  return {
    ...first,
    workers,
    kind: element?.kind ?? kind,
    element: element?.element ?? null,
    shape: element?.shape ?? null,
    slices: element?.slices ?? [],
  }
}

function withoutRank<R extends { readonly rank: number; readonly kind?: NonFiniteKind }>({
  rank: _,
  kind: _kind,
  ...record
}: R): Omit<R, 'rank' | 'kind'> {
  return record
}
