/** Rows of moments as columns of numbers, and such columns as Parquet's pages hold them (assembly/columns.ts). */

import type { MomentName } from '../../base/types.js'
import { MomentsRow, SNAPPY_TABLE_BYTES, TextColumn } from '../border/abi.js'
import type { Address } from '../border/memory.js'
import { coreOf, type Engine } from '../engine.js'
import { numberFrom } from '../moments.js'
import type { Batch } from '../slots.js'
import type { CoreRecords } from './core-records.js'

const COLUMN_WORDS = TextColumn.size / 4

/** The gap between columns, in numbers, so that the numbers of a row don't compete for one cache set. */
const GAP = 24

/** Reductions of the records of a job, in the core's memory. */
export class NumberColumns {
  readonly #engine: Engine
  readonly #requests: Address
  readonly #count: number
  readonly #length: number
  readonly #numbers: Address

  /** @param length of each column */
  constructor(engine: Engine, names: readonly MomentName[], length: number) {
    this.#engine = engine
    this.#count = names.length
    this.#length = length
    this.#requests = engine.reserveBytes(names.length * TextColumn.size)
    this.#numbers = engine.reserveBytes(names.length * (length + GAP) * 8)
    const words = engine.words(this.#requests, names.length * COLUMN_WORDS)
    for (const [i, name] of names.entries()) {
      const { slot, form } = numberFrom(name)
      words[i * COLUMN_WORDS + TextColumn.slot / 4] = MomentsRow[slot]
      words[i * COLUMN_WORDS + TextColumn.form / 4] = form
    }
  }

  /**
   * Adds ordinary records of a batch (`OrdinaryRecords`).
   * @param first the index of the first in the order of the job, and `from` in the batch
   */
  add(records: CoreRecords, first: number, { rows }: Batch, from: number, count: number): void {
    coreOf(this.#engine).numberColumns(
      rows + from * MomentsRow.size,
      count,
      records.address,
      first,
      this.#requests,
      this.#count,
      this.#length + GAP,
      this.#numbers,
    )
  }

  /** The k-th column: a view, valid until memory is reserved. */
  column(k: number): Float64Array<ArrayBuffer> {
    return this.#engine.doubles(this.#address(k), this.#length)
  }

  /** A column, compressed by `pack`. */
  packed(k: number): Uint8Array<ArrayBuffer> {
    return packAt(this.#engine, this.#address(k), this.#length)
  }

  #address(k: number): Address {
    return (this.#numbers + k * (this.#length + GAP) * 8) as Address
  }
}

/** Numbers in the encoding BYTE_STREAM_SPLIT, compressed by snappy. */
export function pack(engine: Engine, numbers: Float64Array): Uint8Array<ArrayBuffer> {
  return engine.scoped(() => {
    const from = engine.reserveBytes(numbers.byteLength)
    engine.doubles(from, numbers.length).set(numbers)
    return packAt(engine, from, numbers.length)
  })
}

function packAt(engine: Engine, from: Address, count: number): Uint8Array<ArrayBuffer> {
  return engine.scoped(() => {
    const byteLength = 8 * count
    const scratch = engine.reserveBytes(byteLength)
    const { seen, out } = reserveSnappy(engine, byteLength)
    return engine.view(out, coreOf(engine).packDoubles(from, count, scratch, seen, out)).slice()
  })
}

/** Bytes compressed by snappy. */
export function compressed(engine: Engine, bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return engine.scoped(() => {
    const { length } = bytes
    const from = engine.reserveBytes(length)
    const { seen, out } = reserveSnappy(engine, length)
    engine.view(from, length).set(bytes)
    return engine.view(out, coreOf(engine).compress(from, length, seen, out)).slice()
  })
}

function reserveSnappy(engine: Engine, byteLength: number): { readonly seen: Address; readonly out: Address } {
  const seen = engine.reserveBytes(SNAPPY_TABLE_BYTES)
  // The largest output of snappy for so many bytes.
  return { seen, out: engine.reserveBytes(byteLength + Math.ceil(byteLength / 6) + 32) }
}

/** Packs whole numbers in the form of Parquet's levels and indices: runs of one number, and packed bits. */
export function packIntegers(engine: Engine, numbers: Int32Array, width: number): Uint8Array<ArrayBuffer> {
  return engine.scoped(() => {
    const { length } = numbers
    const from = engine.reserveBytes(4 * length)
    const out = engine.reserveBytes(5 * length + 16)
    engine.words(from, length).set(numbers)
    return engine.view(out, coreOf(engine).packIntegers(from, length, width, out)).slice()
  })
}
