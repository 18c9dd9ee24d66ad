/** Columns that grow row by row: typed arrays, allocated once for the largest number of rows in a group. */

import { Interner } from '../scan/job/plan/interner.js'
import type { DictionaryColumn } from '../scan/rows/scan-columns.js'

/** A column of texts in which equal texts are stored once. */
export interface TextColumn {
  readonly texts: readonly string[]
  /** The index of each row's text, or -1 for none. */
  readonly codes: Int32Array<ArrayBuffer>
}

/** The numbers of a range of rows, as a Parquet page holds them (see `pack`). Every row has one. */
export interface PackedNumbers {
  readonly rows: number
  readonly packed: Uint8Array
}

/** A column in pieces, some of them packed. */
export interface NumberPieces {
  readonly pieces: readonly (NumberColumn | PackedNumbers)[]
}

export interface NumberColumn {
  readonly numbers: Float64Array<ArrayBuffer>
  /** 1 for each row without a number; null if every row has one. */
  readonly missing: Uint8Array<ArrayBuffer> | null
}

/** A column of lists of whole numbers in which equal lists are stored once. */
export interface ListColumn {
  readonly lists: readonly (readonly number[])[]
  /** The index of each row's list, or -1 for none. */
  readonly codes: Int32Array<ArrayBuffer>
}

/** A column of structs or other rare values. */
export interface ValueColumn {
  /** The values, null for a row without one; null if no row has one. */
  readonly values: readonly unknown[] | null
}

export type ColumnData = TextColumn | NumberColumn | NumberPieces | ListColumn | ValueColumn

/** Sets codes from those of a part. @param codeOf the code of a value; called only for values that a row has */
function setCodes<T>(
  codes: Int32Array,
  first: number,
  { values, codes: codesOfColumn }: DictionaryColumn<T>,
  codeOf: (value: T) => number,
): void {
  const known = new Int32Array(values.length).fill(-1)
  for (let i = 0; i < codesOfColumn.length; i++) {
    const code = codesOfColumn[i]!
    if (code < 0) continue
    if (known[code]! < 0) known[code] = codeOf(values[code]!)
    codes[first + i] = known[code]!
  }
}

export class Texts {
  readonly #interner = new Interner()
  readonly #codes: Int32Array<ArrayBuffer>

  constructor(capacity: number) {
    this.#codes = new Int32Array(capacity).fill(-1)
  }

  set(i: number, text: string | null | undefined): void {
    if (text != null) this.#codes[i] = this.#interner.number(text)
  }

  fill(first: number, length: number, text: string): void {
    this.#codes.fill(this.#interner.number(text), first, first + length)
  }

  /** Sets the texts of rows from `first` on. */
  setAll(first: number, column: DictionaryColumn<string>): void {
    setCodes(this.#codes, first, column, text => this.#interner.number(text))
  }

  take(length: number): TextColumn {
    return { texts: this.#interner.names, codes: this.#codes.subarray(0, length) }
  }
}

export class Lists {
  readonly #lists: (readonly number[])[] = []
  readonly #codesByText = new Map<string, number>()
  readonly #codes: Int32Array<ArrayBuffer>

  constructor(capacity: number) {
    this.#codes = new Int32Array(capacity).fill(-1)
  }

  set(i: number, list: readonly number[]): void {
    this.#codes[i] = this.#number(list)
  }

  /** Sets the lists of rows from `first` on. */
  setAll(first: number, column: DictionaryColumn<readonly number[]>): void {
    setCodes(this.#codes, first, column, list => this.#number(list))
  }

  #number(list: readonly number[]): number {
    const text = list.join()
    const code = this.#codesByText.get(text) ?? this.#lists.push(list) - 1
    this.#codesByText.set(text, code)
    return code
  }

  take(length: number): ListColumn {
    return { lists: this.#lists, codes: this.#codes.subarray(0, length) }
  }
}

export class Numbers {
  readonly #capacity: number
  #numbers: Float64Array<ArrayBuffer> | null = null
  #missing: Uint8Array<ArrayBuffer> | null = null
  readonly #pieces: (NumberColumn | PackedNumbers)[] = []
  /** The first row that is in no piece. */
  #first = 0

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  /** The numbers of all rows, to be written to. */
  get numbers(): Float64Array<ArrayBuffer> {
    this.#numbers ??= new Float64Array(this.#capacity)
    return this.#numbers
  }

  set(i: number, value: number | undefined): void {
    if (value !== undefined) this.numbers[i] = value
    else {
      this.#missing ??= new Uint8Array(this.#capacity)
      this.#missing[i] = 1
    }
  }

  /** Sets the numbers of rows from `first` on. */
  setPacked(first: number, piece: PackedNumbers): void {
    if (first > this.#first) this.#pieces.push(this.#unpacked(first))
    this.#pieces.push(piece)
    this.#first = first + piece.rows
  }

  take(length: number): NumberColumn | NumberPieces {
    if (this.#pieces.length === 0) return this.#unpacked(length)
    const last = length > this.#first ? [this.#unpacked(length)] : []
    return { pieces: [...this.#pieces, ...last] }
  }

  #unpacked(end: number): NumberColumn {
    const range = [this.#first, end] as const
    return { numbers: this.numbers.subarray(...range), missing: this.#missing?.subarray(...range) ?? null }
  }
}

export class Values {
  #values: unknown[] | null = null

  set(i: number, value: unknown): void {
    this.#values ??= []
    while (this.#values.length < i) this.#values.push(null)
    this.#values[i] = value
  }

  take(length: number): ValueColumn {
    if (this.#values !== null) while (this.#values.length < length) this.#values.push(null)
    return { values: this.#values }
  }
}
