/** Copy jobs: the records of event files, and their targets. */

import type { StoreSpec } from '../../storage/store.js'
import type { AnyReply } from './reply.js'

/** Records of an event file to be copied, in the order of the file. */
export interface CopiedFile {
  readonly path: string
  /** The local file to write, an absolute path at which nothing exists yet. */
  readonly target: string
  readonly startByte: Float64Array
  readonly byteLength: Float64Array
}

/** A job that copies records of event files into new files. */
export interface CopyJob {
  readonly kind: 'copy'
  readonly store: StoreSpec
  readonly files: readonly CopiedFile[]
  /** True to give records the true checksums of their payloads; otherwise they are copied byte for byte. */
  readonly checksums: boolean
}

export interface CopyReply extends AnyReply {
  readonly kind: 'copy'
  /** The number of bytes written. */
  readonly byteLength: number
}
