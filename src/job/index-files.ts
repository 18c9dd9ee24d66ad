/** Index files: which to read, and what they say. */

import type { ErrorData } from '../errors.js'
import type { IndexFile } from '../format/index-file.js'
import type { StoreSpec } from '../store/store.js'
import type { AnyReply } from './reply.js'

/** Read and parse index files. */
export interface IndexJob {
  readonly kind: 'index'
  readonly store: StoreSpec
  readonly paths: readonly string[]
}

export interface IndexReply extends AnyReply {
  readonly kind: 'index'
  /** One per path, in order. */
  readonly files: readonly (IndexFile | ErrorData)[]
}
