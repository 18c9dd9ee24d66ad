/** How much to read at once from a store. */

import { S3_DEFAULTS } from './s3/spec.js'
import type { StoreSpec } from './store.js'

/** What is to be read at once, as it pays for a store. */
export interface ReadShape {
  /** Bytes between two records that are read over. */
  readonly gapByteLength: number
  /** Bytes of a read. */
  readonly batchByteLength: number
}

/** How to read from the store of a spec; null where nothing speaks against small reads. */
export function readShape(spec: StoreSpec): ReadShape | null {
  if (spec.kind !== 's3') return null
  const { gapByteLength, partByteLength } = { ...S3_DEFAULTS, ...spec.options }
  return { gapByteLength, batchByteLength: partByteLength }
}
