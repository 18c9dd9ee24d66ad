/** Survey jobs: they list the Values of event files without an index. */

import type { ErrorData } from '../../base/errors.js'
import type { StoreSpec } from '../../storage/store.js'
import type { AnyReply } from './reply.js'

/** A job that lists the Values of event files. */
export interface SurveyJob {
  readonly kind: 'survey'
  readonly store: StoreSpec
  /** The files, each read from the end of its last known intact record. */
  readonly files: readonly { readonly path: string; readonly startByte: number }[]
}

/** The Values of an event file, in columns. */
export interface SurveyedFile {
  /** The length of the file when it was read, and the end of its last intact record. */
  readonly byteLength: number
  readonly scannedByteLength: number
  readonly tags: readonly string[]
  /** Index into `tags`. */
  readonly tag: Int32Array
  readonly startByte: Float64Array
  readonly recordByteLength: Float64Array
  readonly step: Float64Array
  /** 1 + the index of the mode in MODES; 0 if not stored. */
  readonly mode: Uint8Array
  /** The mode step; -1 if not stored. */
  readonly modeStep: Float64Array
  /** The restarts of a training (SessionLog START) in the order of the file: earlier records from that step on are abandoned. */
  readonly starts: readonly { readonly startByte: number; readonly step: number }[]
  /** The unreadable records. If the rest of the file was skipped, the last one has the reason. */
  readonly problems: readonly ErrorData[]
}

export interface SurveyReply extends AnyReply {
  readonly kind: 'survey'
  /** One per file, in order. */
  readonly files: readonly (SurveyedFile | ErrorData)[]
}
