/** Compares weights with their quantised form: numbers of few bits, and scales to multiply them with. */

import type { StoreSpec } from '../../storage/store.js'
import type { JobRecords } from './plan/coalesce.js'
import type { RecordReply } from './reply.js'

/** The error of quantised weights. */
export interface QuantisationError {
  /** The number format and the scope of a scale, such as `float8_e4m3fn, a scale per 128 × 128 block`. */
  readonly scheme: string
  /** Σ(a − b)² / Σa² over finite elements. */
  readonly normalisedError: number
  /** −10·log10 of the normalised error, in dB; Infinity if nothing was lost. */
  readonly sqnr: number
  readonly cosine: number
  /** The largest |a − b|. */
  readonly maxAbsolute: number
  /** The block with the largest normalised error, by its row and column of blocks. */
  readonly worstBlock: { readonly index: readonly [number, number]; readonly normalisedError: number }
  /** The share of elements at the format's largest magnitude. */
  readonly saturated: number
  /** The number of elements for which either side has NaN or an infinity. */
  readonly notFinite: number
}

/**
 * The layouts of quantised weights.
 * - scaled: a number per element, and one scale for all, for each row or for each block
 * - nvfp4: two numbers per byte, a scale per 16 numbers of a row, and one for all scales
 * - mxfp4: two numbers per byte, a power of two per 32 numbers of a row
 */
export type QuantisedForm = 'scaled' | 'nvfp4' | 'mxfp4'

/** A job that compares the weights of one record with other records: numbers, their scales and, for some layouts, the global scale. */
export interface QuantisedJob extends JobRecords {
  readonly kind: 'quantised'
  readonly stores: readonly StoreSpec[]
  /** The store of each file. */
  readonly storeOf: Int32Array
  readonly checkLevel: number
  readonly windowByteLength: number
  readonly aheadByteLength: number
  readonly form: QuantisedForm
  /** True if the global scale divides. */
  readonly divides: boolean
}

/** A failure has code `NotComparable` if they don't match. */
export interface QuantisedReply extends RecordReply {
  readonly kind: 'quantised'
  readonly error: QuantisationError | null
}
