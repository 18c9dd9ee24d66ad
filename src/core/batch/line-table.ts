/** Records as lines of text, many at a time: the core writes them (assembly/lines.ts). */

import type { DType } from '../../base/types.js'
import {
  DTYPE_NUMBERS,
  MomentsRow,
  NUMBER_BYTES,
  type NumberForm,
  RecordSlot,
  TEXT_SLACK,
  TextColumn,
  TextFormat,
} from '../border/abi.js'
import type { Address } from '../border/memory.js'
import { decimalPowers, POWER_WORDS } from '../decimal.js'
import { dtypeOf } from '../dtype.js'
import { coreOf, type Engine } from '../engine.js'
import type { MomentSlot } from '../moments-row.js'
import type { Batch } from '../slots.js'
import { type CoreRecords, writePieces } from './core-records.js'

/** A number in each line. */
export interface Column {
  /** The text before the number. */
  readonly label: string
  readonly slot: MomentSlot
  readonly form: NumberForm
}

export interface LineTableOptions {
  readonly columns: readonly Column[]
  /** True for JSON, with NaN and the infinities in quotes; false for CSV. */
  readonly isJson: boolean
  /** The end of each line. */
  readonly end: string
  /** The names that a line may begin with, by tag. */
  readonly names: readonly string[]
  /** The text between a record's place and its shape. */
  readonly dtype: (dtype: DType) => string
}

/** The number of lines and bytes written at once: they fit into the caches. */
const MAX_LINES = 256
const MAX_BYTES = 128 << 10
/** Bytes for the place. */
const PLACE_BYTES = 4 << 10

/** 32-bit words of a struct. */
const COLUMN_WORDS = TextColumn.size / 4
const FORMAT_WORDS = TextFormat.size / 4

const encoder = new TextEncoder()

/** Writes lines. Its memory is reserved for the length of a job. */
export class LineTable {
  readonly #engine: Engine
  readonly #format: Address
  readonly #place: Address
  readonly #text: Address
  readonly #ends: Address

  constructor(engine: Engine, { columns, isJson, end, names, dtype }: LineTableOptions) {
    const powers = engine.words(coreOf(engine).POWERS.value as Address, POWER_WORDS)
    if (powers[1] === 0) powers.set(decimalPowers())
    const named = writePieces(engine, engine.writeTexts(names))
    const dtypes = Array.from({ length: DTYPE_NUMBERS }, (_, number) => dtypeOf(number))
    const kinds = writePieces(engine, engine.writeTexts(dtypes.map(known => (known === undefined ? '' : dtype(known)))))
    const { addresses, byteLengths } = engine.writeTexts([...columns.map(({ label }) => label), end])
    const columnTable = engine.reserveBytes(columns.length * TextColumn.size)
    this.#engine = engine
    this.#place = engine.reserveBytes(PLACE_BYTES)
    this.#text = engine.reserveBytes(MAX_BYTES + TEXT_SLACK)
    this.#ends = engine.reserveBytes(MAX_LINES * 4)
    this.#format = engine.reserveBytes(TextFormat.size)
    const words = engine.words(columnTable, columns.length * COLUMN_WORDS)
    for (const [i, { slot, form }] of columns.entries()) {
      const at = i * COLUMN_WORDS
      words.set([addresses[i]!, byteLengths[i]!], at + TextColumn.label / 4)
      words[at + TextColumn.slot / 4] = MomentsRow[slot]
      words[at + TextColumn.form / 4] = form
    }
    const format = engine.words(this.#format, FORMAT_WORDS)
    format[TextFormat.names / 4] = named
    format[TextFormat.dtypes / 4] = kinds
    format[TextFormat.place / 4] = this.#place
    format[TextFormat.placeLength / 4] = 0
    format[TextFormat.columns / 4] = columnTable
    format[TextFormat.columnCount / 4] = columns.length
    format[TextFormat.end / 4] = addresses.at(-1)!
    format[TextFormat.endLength / 4] = byteLengths.at(-1)!
    format[TextFormat.isJson / 4] = isJson ? 1 : 0
    format[TextFormat.restLength / 4] = byteLengths.reduce((sum, length) => sum + length, columns.length * NUMBER_BYTES)
  }

  /**
   * Sets the text between the name and the dtype for the following lines.
   * @returns false if it is too long, which also clears the previous text
   */
  setPlace(place: string): boolean {
    const { read, written } = encoder.encodeInto(place, this.#engine.view(this.#place, PLACE_BYTES))
    this.#engine.words(this.#format, FORMAT_WORDS)[TextFormat.placeLength / 4] = written
    return read === place.length
  }

  /**
   * Writes lines of ordinary records of a batch (`OrdinaryRecords`), as many as there is space for. Numbers are written as by
   * `Number.prototype.toString`, except for -0.
   * @param first the index of the first record in the order of the job, and `from` in the batch
   * @returns views, valid until the next call: the text, and the end of each line; null if not even one has space
   */
  write(
    records: CoreRecords,
    first: number,
    { slots, rows }: Batch,
    from: number,
    count: number,
  ): { readonly text: Uint8Array<ArrayBuffer>; readonly ends: Uint32Array<ArrayBuffer> } | null {
    const engine = this.#engine
    const written = coreOf(engine).writeLines(
      slots + from * RecordSlot.size,
      rows + from * MomentsRow.size,
      Math.min(count, MAX_LINES),
      records.address,
      first,
      this.#format,
      this.#text,
      MAX_BYTES,
      this.#ends,
    )
    if (written === 0) return null
    const ends = engine.words(this.#ends, written)
    return { text: engine.view(this.#text, ends[written - 1]!), ends }
  }
}
