/** Records that differ, or have NaN or infinities, and their order in time. */

import type { GlobalStep, Mode, ModeStep, Worker } from '../base/types.js'
import type { QuantisationError } from '../scan/job/quantised-job.js'
import type { TensorDifference } from '../trial/measure/question.js'

/**
 * - producer: its inputs were finite, as far as they were saved, and all that were saved were read
 * - propagator: an input was not
 * - unknown: it can't be told what it was computed from, or some of that was not read
 */
export type NonFiniteClass = 'producer' | 'propagator' | 'unknown'

/** The kinds of non-finite elements. */
export type NonFiniteKind = 'nan' | 'inf' | '-inf'

/** A record. */
export interface RecordPlaceInTime {
  readonly step: GlobalStep
  readonly mode: Mode
  readonly modeStep: ModeStep
  readonly tensor: string
  readonly worker: Worker
}

export interface NonFiniteRecord extends RecordPlaceInTime {
  readonly class: NonFiniteClass
  /** The source of the non-finite values; null if none was saved. */
  readonly from: string | null
  /** The worker of the source, which may differ; null if there is none. */
  readonly fromWorker: Worker | null
  /** The inputs of one that is unknown that were saved and not read, in words; null otherwise, and where they were not saved. */
  readonly reason: string | null
  /** The number of NaN and of infinite elements; null if only reductions were saved. */
  readonly nan: number | null
  readonly infinite: number | null
}

/** Gradients that were not finite for some steps and then recovered, while nothing else had NaN or infinities. */
export interface PassedOverflow {
  readonly worker: Worker
  /** The first and last steps at which a gradient was not finite. */
  readonly step: GlobalStep
  readonly lastStep: GlobalStep
  /** The gradients, in the order in which they were first not finite. */
  readonly tensors: readonly string[]
}

/** Indices of a tensor along an axis. */
export interface AffectedSlices {
  readonly axis: number
  readonly length: number
  /** The affected indices, ascending; the first hundred. */
  readonly indices: readonly number[]
  readonly count: number
  /** True if none of their elements is finite. */
  readonly isWhole: boolean
}

/** True if one was computed before another; at the same place, workers are ordered by name. */
export function isEarlier(a: RecordPlaceInTime & { readonly rank: number }, b: typeof a): boolean {
  if (a.step !== b.step) return a.step < b.step
  return a.rank !== b.rank ? a.rank < b.rank : a.worker < b.worker
}

/**
 * - values: elements differ
 * - reductions: values were not saved, and saved reductions differ
 * - shape: shapes differ, or shards that don't fit together
 * - dtype: integers beside floats that are not close to them
 * - quantised: one run has numbers of few bits with scales
 *
 * These are told, and are no divergence:
 * - unreadable: one of them can't be read
 * - missing: only one run has it at the step
 */
export type DifferenceKind = 'values' | 'reductions' | 'shape' | 'dtype' | 'quantised' | 'unreadable' | 'missing'

/** A difference of a worker's tensor at a step. Names are those of the first run. */
export interface DifferenceAt extends RecordPlaceInTime {
  readonly kind: DifferenceKind
  /** The name, the worker and the step in the second run. */
  readonly otherTensor: string
  readonly otherWorker: string
  readonly otherStep: number
  /** The difference of values; null otherwise. */
  readonly difference: TensorDifference | null
  /** The error of quantised weights; null otherwise. */
  readonly quantised: QuantisationError | null
  /** The first element that differs; null if unknown, and for a scalar. */
  readonly element: readonly number[] | null
  /** The element that differs most. */
  readonly largest: readonly number[] | null
  /** The mean |a − b| between runs of the same configuration; null if none were given, or they are inconclusive. */
  readonly noise: number | null
  /** The difference in a sentence. */
  readonly message: string
}
