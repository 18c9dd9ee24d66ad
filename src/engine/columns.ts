/** Rows of moments as columns of numbers, and such columns as Parquet's pages hold them (assembly/columns.ts). */

import type { MomentName } from '../types.js'
import { MomentsRow, SNAPPY_TABLE_BYTES, TextColumn } from './border/abi.js'
import type { Address } from './border/memory.js'
import { coreOf, type Engine } from './engine.js'
import { numberFrom } from './moments.js'
import { ROW_LENGTH } from './moments-row.js'

const COLUMN_WORDS = TextColumn.size / 4

/** Reductions of many rows. */
export class NumberColumns {
  readonly #engine: Engine
  readonly #rows: number
  readonly #columns: Address

  /** @param moments rows, which must be finite (`isFiniteRow`): of others the numbers are of no meaning */
  constructor(engine: Engine, names: readonly MomentName[], moments: Float64Array) {
    this.#engine = engine
    this.#rows = moments.length / ROW_LENGTH
    const from = engine.reserveBytes(this.#rows * MomentsRow.size)
    const asked = engine.reserveBytes(names.length * TextColumn.size)
    this.#columns = engine.reserveBytes(names.length * this.#rows * 8)
    engine.doubles(from, moments.length).set(moments)
    const words = engine.words(asked, names.length * COLUMN_WORDS)
    for (const [i, name] of names.entries()) {
      const { slot, form } = numberFrom(name)
      words[i * COLUMN_WORDS + TextColumn.slot / 4] = MomentsRow[slot]
      words[i * COLUMN_WORDS + TextColumn.form / 4] = form
    }
    coreOf(engine).numberColumns(from, this.#rows, asked, names.length, this.#columns)
  }

  /** The i-th reduction of every row: a view, to be copied before the next call. */
  numbers(i: number): Float64Array<ArrayBuffer> {
    return this.#engine.doubles(this.#address(i), this.#rows)
  }

  /** The same as `pack` writes it. */
  packed(i: number): Uint8Array<ArrayBuffer> {
    return packAt(this.#engine, this.#address(i), this.#rows)
  }

  #address(i: number): Address {
    return (this.#columns + i * this.#rows * 8) as Address
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
    const seen = engine.reserveBytes(SNAPPY_TABLE_BYTES)
    // The most that snappy makes of them.
    const out = engine.reserveBytes(byteLength + Math.ceil(byteLength / 6) + 32)
    return engine.view(out, coreOf(engine).packDoubles(from, count, scratch, seen, out)).slice()
  })
}
