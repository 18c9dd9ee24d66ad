/** A job without a store: moments of arrays in memory. */

import type { DType } from '../../base/types.js'
import type { KnownMoments } from '../../core/border/abi.js'
import type { AnyReply } from './reply.js'
import type { View } from './tensor/indices.js'

/** The elements of an array or a view, validated: the bytes hold them all. */
export interface ArrayElements {
  readonly dtype: DType
  readonly shape: readonly number[]
  readonly count: number
  /** Little-endian. */
  readonly bytes: Uint8Array
  /** Null if `bytes` are the elements in C order. */
  readonly layout: View | null
}

/** A part of an array's elements in C order, cut at whole blocks. It becomes one row. */
export interface ArrayPart {
  readonly first: number
  readonly count: number
}

export interface ArraysJob {
  readonly kind: 'arrays'
  readonly known: KnownMoments
  readonly parts: readonly (ArrayPart & { readonly array: ArrayElements })[]
  /** Buffers that are moved to the thread. */
  readonly moved: readonly ArrayBuffer[]
  /** The arrays whose buffers return with the reply. */
  readonly returned: readonly ArrayBuffer[]
}

export interface ArraysReply extends AnyReply {
  readonly kind: 'arrays'
  /** A row for each part, in order. */
  readonly rows: Float64Array<ArrayBuffer>
  /** The whole returned buffers. */
  readonly returned: readonly Uint8Array[]
}
