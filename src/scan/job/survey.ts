/** A survey: what event files hold that no index file lists. */

import type { ErrorData } from '../../base/errors.js'
import type { StoreSpec } from '../../storage/store.js'
import type { AnyReply } from './reply.js'

/** Find out what event files hold that no index file lists. */
export interface SurveyJob {
  readonly kind: 'survey'
  readonly store: StoreSpec
  /** Each is read from the end of the last whole record that is known. */
  readonly files: readonly { readonly path: string; readonly startByte: number }[]
}

/** The Values of an event file, in columns. */
export interface SurveyedFile {
  /** The length of the file when it was read, and the end of its last whole record. */
  readonly byteLength: number
  readonly scannedByteLength: number
  readonly tags: readonly string[]
  /** Index into `tags`. */
  readonly tag: Int32Array
  readonly startByte: Float64Array
  readonly recordByteLength: Float64Array
  readonly step: Float64Array
  /** 1 + the index of the mode in MODES; 0: not stored. */
  readonly mode: Uint8Array
  /** -1: not stored. */
  readonly modeStep: Float64Array
  /**
   * The restarts of a training (SessionLog START) in the order of the file: earlier records from that step on are abandoned.
   */
  readonly starts: readonly { readonly startByte: number; readonly step: number }[]
  /** Records that could not be read. If the file was left before its end, the last one says why. */
  readonly problems: readonly ErrorData[]
}

export interface SurveyReply extends AnyReply {
  readonly kind: 'survey'
  /** One per file, in order. */
  readonly files: readonly (SurveyedFile | ErrorData)[]
}
