/** Rows of moments as columns of numbers, and such columns as Parquet's pages hold them (assembly/columns.ts). */

import type { MomentName } from '../../types.js'
import { MomentsRow, SNAPPY_TABLE_BYTES, TextColumn } from '../border/abi.js'
import type { Address } from '../border/memory.js'
import { coreOf, type Engine } from '../engine.js'
import { numberFrom } from '../moments.js'

const COLUMN_WORDS = TextColumn.size / 4

/** Makes reductions of rows. Its memory is reserved for the length of a job. */
export class NumberColumns {
  readonly #engine: Engine
  readonly #asked: Address
  readonly #count: number
  readonly #numbers: Address

  /** @param capacity the most rows at once */
  constructor(engine: Engine, names: readonly MomentName[], capacity: number) {
    this.#engine = engine
    this.#count = names.length
    this.#asked = engine.reserveBytes(names.length * TextColumn.size)
    this.#numbers = engine.reserveBytes(names.length * capacity * 8)
    const words = engine.words(this.#asked, names.length * COLUMN_WORDS)
    for (const [i, name] of names.entries()) {
      const { slot, form } = numberFrom(name)
      words[i * COLUMN_WORDS + TextColumn.slot / 4] = MomentsRow[slot]
      words[i * COLUMN_WORDS + TextColumn.form / 4] = form
    }
  }

  /**
   * Every reduction of rows.
   * @param rows of moments in the core's memory, which must be finite (`isFiniteRow`)
   * @returns one column after the other: a view, to be copied before the next call
   */
  of(rows: Address, count: number): Float64Array<ArrayBuffer> {
    coreOf(this.#engine).numberColumns(rows, count, this.#asked, this.#count, this.#numbers)
    return this.#engine.doubles(this.#numbers, this.#count * count)
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
