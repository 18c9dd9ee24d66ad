/** Whole records' elements in the core's memory, for questions beyond moments. */

import { QueryError } from '../../../base/errors.js'
import type { DType } from '../../../base/types.js'
import type { Address } from '../../../core/border/memory.js'
import { elementByteLength } from '../../../core/dtype.js'
import type { Engine } from '../../../core/engine.js'
import type { RecordContents } from '../../../core/slots.js'
import { UnfoldBudget } from '../../../core/values.js'
import type { DecodedBatch } from '../records/read-records.js'

/** Elements in the core's memory: those of a tensor, or of a part of it. */
export interface Elements {
  readonly dtype: DType
  /** The shape of the whole tensor. */
  readonly shape: readonly number[]
  readonly address: Address
  readonly count: number
  /** The index of the first element in the tensor. Default: 0. */
  readonly first?: number
  /** True if the record has fewer values than the tensor has elements. */
  readonly isUnfolded: boolean
}

/** Brings the elements of one record after the other into memory, if needed. */
export class ElementReader {
  readonly #engine: Engine
  readonly #windowByteLength: number

  /** @param windowByteLength the limit for values that are stored in short form */
  constructor(engine: Engine, windowByteLength: number) {
    this.#engine = engine
    this.#windowByteLength = windowByteLength
  }

  /**
   * Passes the elements of the i-th record of a batch, which must be numbers, to `use`; they are in memory until it returns.
   * @param content the address of the elements, if they are contiguous
   */
  with(
    contents: RecordContents,
    content: Address,
    decoded: DecodedBatch,
    i: number,
    use: (elements: Elements) => void,
  ): void {
    const engine = this.#engine
    const { dtype, shape, elementCount, kind } = contents
    if (kind === 'values') {
      // They are read with a cursor, which computing the moments has moved to the end.
      this.#engine.decodeAgain(decoded.batch, i)
      // A few bytes can stand for any number of elements, since the last one is repeated.
      if (elementCount * elementByteLength(dtype) > this.#windowByteLength) {
        const expected = `at most ${this.#windowByteLength} bytes of values that lie one by one`
        throw new QueryError('ValueTooLarge', `expected ${expected}, got ${elementCount} elements`, {
          elements: elementCount,
        })
      }
    }
    engine.scoped(() => {
      const budget = new UnfoldBudget(this.#windowByteLength)
      const address =
        kind === 'content' ? content : copyIn(engine, engine.values.copyElements(decoded.batch, i, contents, budget))
      use({ dtype, shape, address, count: kind === 'none' ? 0 : elementCount, isUnfolded: isShort(contents) })
    })
  }
}

/** Copies bytes into the core's memory. */
export function copyIn(engine: Engine, bytes: Uint8Array): Address {
  const address = engine.reserveBytes(bytes.length)
  engine.view(address, bytes.length).set(bytes)
  return address
}

/** True if the last value of a record stands for all following elements. */
export function isShort({ kind, valueCount, elementCount }: RecordContents): boolean {
  return (kind === 'values' || kind === 'strings') && valueCount < elementCount
}
