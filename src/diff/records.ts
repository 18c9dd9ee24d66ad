/** Records that have NaN or infinities, and their order in time. */

import type { GlobalStep, Mode, ModeStep, Worker } from '../types.js'

/**
 * - producer: its inputs were finite, as far as they were saved
 * - propagator: an input was not
 * - unknown: it can't be told what it was computed from
 */
export type NonFiniteClass = 'producer' | 'propagator' | 'unknown'

/** What of a tensor is not a finite number. */
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
  /** The tensor that it has them from; null: none that was saved. */
  readonly from: string | null
  /** The worker that it has them from, which may be another; null: none. */
  readonly fromWorker: Worker | null
  /** How many elements are NaN, and how many infinite; null where only reductions were saved. */
  readonly nan: number | null
  readonly infinite: number | null
}

/** Elements of a tensor along an axis. */
export interface AffectedSlices {
  readonly axis: number
  readonly length: number
  /** Those that have any, ascending; the first hundred. */
  readonly indices: readonly number[]
  readonly count: number
  /** Whether none of their elements is finite. */
  readonly isWhole: boolean
}

/** Whether one was computed before another; of several workers at the same place, the first by name. */
export function isEarlier(a: RecordPlaceInTime & { readonly rank: number }, b: typeof a): boolean {
  if (a.step !== b.step) return a.step < b.step
  return a.rank !== b.rank ? a.rank < b.rank : a.worker < b.worker
}
