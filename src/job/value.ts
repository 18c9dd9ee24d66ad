/** The values of records. */

import type { RecordJob } from '../plan.js'
import type { DType } from '../types.js'
import type { RecordReply } from './reply.js'

export interface ValueJob extends RecordJob {
  readonly kind: 'value'
  readonly windowByteLength: number
  /** What values may take whose records don't hold them element by element, all of them together. */
  readonly unfoldLimit: number
}

/** A tensor's value as it crosses a thread. */
export interface RawValue {
  readonly dtype: DType
  readonly shape: readonly number[]
  /** Little-endian elements in C order; empty for strings. */
  readonly bytes: Uint8Array<ArrayBuffer>
  /** float16 and bfloat16 only: the elements as float32. */
  readonly widened: Float32Array<ArrayBuffer> | null
  /** Strings only. */
  readonly strings: readonly string[] | null
}

export interface ValueReply extends RecordReply {
  readonly kind: 'value'
  /** In the order of the records; those that failed are left out. */
  readonly values: readonly RawValue[]
}

export function buffersOf({ bytes, widened }: RawValue): ArrayBuffer[] {
  return widened ? [bytes.buffer, widened.buffer] : [bytes.buffer]
}
