/** A survey: what event files hold that no index file tells of. */

import type { ErrorData } from '../errors.js'
import type { StoreSpec } from '../store/store.js'
import type { AnyReply } from './reply.js'

/** Find out what event files hold that no index file tells of. */
export interface SurveyJob {
  readonly kind: 'survey'
  readonly store: StoreSpec
  /** From where on: the end of the last whole record that is known. */
  readonly files: readonly { readonly path: string; readonly startByte: number }[]
}

/** What an event file holds: one entry a Value in each column. */
export interface SurveyedFile {
  /** Of the file when it was read, and up to the end of its last whole record. */
  readonly byteLength: number
  readonly scannedByteLength: number
  readonly tags: readonly string[]
  /** Index into `tags`. */
  readonly tag: Int32Array
  readonly startByte: Float64Array
  readonly recordByteLength: Float64Array
  readonly step: Float64Array
  /** As MODES counts, from 1 on; 0: not told. */
  readonly mode: Uint8Array
  /** -1: not told. */
  readonly modeStep: Float64Array
  /** Records that could not be read. If the file was left before its end, the last one says why. */
  readonly problems: readonly ErrorData[]
}

export interface SurveyReply extends AnyReply {
  readonly kind: 'survey'
  /** One an asked file, in order. */
  readonly files: readonly (SurveyedFile | ErrorData)[]
}
