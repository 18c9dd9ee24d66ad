/** Rows of moments as columns of numbers, and such columns as Parquet's pages hold them (assembly/columns.ts). */

import type { MomentName } from '../types.js'
import { MomentsRow, SNAPPY_TABLE_BYTES, TextColumn } from './border/abi.js'
import type { Address } from './border/memory.js'
import { coreOf, type Engine } from './engine.js'
import { numberFrom } from './moments.js'

const COLUMN_WORDS = TextColumn.size / 4

/** Reductions of many rows. */
export class NumberColumns {
  readonly #engine: Engine
  readonly #rows: number
  readonly #columns: Address

  /** @param rows of moments in the core's memory, which must be finite (`isFiniteRow`): of others the numbers are of no meaning */
  constructor(engine: Engine, names: readonly MomentName[], rows: Address, count: number) {
    this.#engine = engine
    this.#rows = count
    const asked = engine.reserveBytes(names.length * TextColumn.size)
    this.#columns = engine.reserveBytes(names.length * count * 8)
    const words = engine.words(asked, names.length * COLUMN_WORDS)
    for (const [i, name] of names.entries()) {
      const { slot, form } = numberFrom(name)
      words[i * COLUMN_WORDS + TextColumn.slot / 4] = MomentsRow[slot]
      words[i * COLUMN_WORDS + TextColumn.form / 4] = form
    }
    coreOf(engine).numberColumns(rows, count, asked, names.length, this.#columns)
  }

  /** The i-th reduction of every row: a view, to be copied before the next call. */
  numbers(i: number): Float64Array<ArrayBuffer> {
    return this.#engine.doubles(this.#address(i), this.#rows)
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
    const { length: count, byteLength } = numbers
    const scratch = engine.reserveBytes(byteLength)
    const seen = engine.reserveBytes(SNAPPY_TABLE_BYTES)
    // The most that snappy makes of them.
    const out = engine.reserveBytes(byteLength + Math.ceil(byteLength / 6) + 32)
    return engine.view(out, coreOf(engine).packDoubles(from, count, scratch, seen, out)).slice()
  })
}
