/** The values of records, and jobs that read no more of them than dtype and shape. */

import type { DType } from '../../base/types.js'
import type { StoreSpec } from '../../storage/store.js'
import {
  coalesce,
  columnsOf,
  inFileOrder,
  type ReadBatch,
  type RecordJob,
  type RecordPlace,
  requestShape,
} from './plan/coalesce.js'
import { aheadByteLength, JOB_BYTES, recordLimit, windowByteLength } from './plan/memory.js'
import type { Descriptions, RecordReply } from './reply.js'

export interface ValueJob extends RecordJob {
  readonly kind: 'value'
  /** Indices into `records`, so that each batch is a run of them. */
  readonly order: Int32Array
  /** The batches; empty if the records are too large to be read at once. */
  readonly batches: readonly ReadBatch[]
  readonly aheadByteLength: number
  readonly windowByteLength: number
  /** The limit of bytes for all values whose records store them in short form. */
  readonly unfoldLimit: number
}

/** A tensor's value in transferable form. */
export interface RawValue {
  readonly dtype: DType
  readonly shape: readonly number[]
  /** Little-endian elements in C order; empty for strings. */
  readonly bytes: Uint8Array<ArrayBuffer>
  /** Only for floats of at most 16 bits: the elements as float32. */
  readonly widened: Float32Array<ArrayBuffer> | null
  /** The elements of a string tensor; null otherwise. */
  readonly strings: readonly string[] | null
}

export interface ValueReply extends RecordReply {
  readonly kind: 'value'
  /** The values, in the order of the records, without those that failed. */
  readonly values: readonly RawValue[]
}

export interface DescribeJob extends RecordJob {
  readonly kind: 'describe'
  readonly windowByteLength: number
}

export interface DescribeReply extends RecordReply {
  readonly kind: 'describe'
  readonly described: Descriptions
}

export interface ValueContext {
  readonly store: StoreSpec
  readonly checkLevel: number
  /** The number of bytes of file contents that a thread may hold. */
  readonly memory: number
  readonly unfoldLimit: number
}

/** Jobs that read the values of records, in the order of the records. */
export function* planValues(places: readonly RecordPlace[], context: ValueContext): Generator<ValueJob> {
  const longest = windowByteLength(context.memory)
  const isLarge = ({ byteLength }: RecordPlace): boolean =>
    byteLength > longest && byteLength <= recordLimit(context.store)
  for (let first = 0; first < places.length; ) {
    const large = isLarge(places[first]!)
    let end = first
    for (let bytes = 0; end < places.length && bytes < JOB_BYTES && isLarge(places[end]!) === large; end++) {
      bytes += places[end]!.byteLength
    }
    yield planValueJob(places.slice(first, end), large, context)
    first = end
  }
}

function planValueJob(
  places: readonly RecordPlace[],
  isLarge: boolean,
  { store, checkLevel, memory, unfoldLimit }: ValueContext,
): ValueJob {
  const { files, tags, records } = columnsOf(places)
  const order = inFileOrder(records)
  const longest = windowByteLength(memory)
  return {
    kind: 'value',
    store,
    checkLevel,
    files,
    tags,
    records,
    order,
    batches: isLarge ? [] : coalesce(records, order, { shape: requestShape([store], memory), longest }),
    aheadByteLength: aheadByteLength(memory),
    windowByteLength: longest,
    unfoldLimit,
  }
}
