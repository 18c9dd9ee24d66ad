/** Weights beside what quantisation made of them: numbers of few bits, and scales that they are multiplied with. */

import type { StoreSpec } from '../../storage/store.js'
import type { JobRecords } from './plan/coalesce.js'
import type { RecordReply } from './reply.js'

/** The error of quantised weights. */
export interface QuantisationError {
  /** The number format and the scope of a scale, such as `float8_e4m3fn, a scale per 128 × 128 block`. */
  readonly scheme: string
  /** Σ(a − b)² / Σa² over finite elements. */
  readonly normalisedError: number
  /** −10·log10 of that, in dB; Infinity where nothing was lost. */
  readonly sqnr: number
  readonly cosine: number
  /** The largest |a − b|. */
  readonly maxAbsolute: number
  /** The block with the largest normalised error: its place among blocks of rows and of columns. */
  readonly worstBlock: { readonly index: readonly [number, number]; readonly normalisedError: number }
  /** The share of elements at the largest number of the format. */
  readonly saturated: number
  /** Elements for which either has NaN or an infinity. */
  readonly notFinite: number
}

/**
 * - scaled: a number an element, and a scale for all, for each row or for each block
 * - nvfp4: two in a byte, a scale per 16 of a row, and one of all scales
 * - mxfp4: two in a byte, a power of two per 32 of a row
 */
export type QuantisedForm = 'scaled' | 'nvfp4' | 'mxfp4'

/** Compares the weights of one record with those of the others: numbers, their scales and, of some, the scale of all. */
export interface QuantisedJob extends JobRecords {
  readonly kind: 'quantised'
  readonly stores: readonly StoreSpec[]
  /** The store of each file. */
  readonly storeOf: Int32Array
  readonly checkLevel: number
  readonly windowByteLength: number
  readonly aheadByteLength: number
  readonly form: QuantisedForm
  /** True if the scale of all divides. */
  readonly divides: boolean
}

/** A failure of code `NotComparable` where they don't fit together. */
export interface QuantisedReply extends RecordReply {
  readonly kind: 'quantised'
  readonly error: QuantisationError | null
}
