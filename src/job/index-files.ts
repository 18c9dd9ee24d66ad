/** Index files: which to read, and what they say. */

import type { ErrorData } from '../errors.js'
import type { IndexFile } from '../format/index-file.js'
import type { StoreSpec } from '../store/store.js'
import type { AnyReply } from './reply.js'

/** A longer index file is not read. */
export const MAX_INDEX_BYTES = 256 << 20
/** Index files that one job reads. */
export const INDEX_FILES_PER_JOB = 256
/** From this many on, threads pay: an index file takes about 50 µs. */
export const MANY_INDEX_FILES = 1024

/** Read and parse index files. */
export interface IndexJob {
  readonly kind: 'index'
  readonly store: StoreSpec
  readonly paths: readonly string[]
  /** Whether the mode that Tornasole's index files lack is read from their event files. Otherwise it is GLOBAL. Default: true. */
  readonly readsModes?: boolean
}

export interface IndexReply extends AnyReply {
  readonly kind: 'index'
  /** One per path, in order. */
  readonly files: readonly (IndexFile | ErrorData)[]
}
