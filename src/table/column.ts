/** Columns that grow row by row: typed arrays, made once for as many rows as a group can have. */

import { Interner } from '../job/plan/interner.js'

/** A column of texts, each of which is there once. */
export interface TextColumn {
  readonly texts: readonly string[]
  /** For each row the index of its text, or -1 for none. */
  readonly codes: Int32Array<ArrayBuffer>
}

export interface NumberColumn {
  readonly numbers: Float64Array<ArrayBuffer>
  /** 1 for each row that has none; null: every row has one. */
  readonly missing: Uint8Array<ArrayBuffer> | null
}

/** A column of lists of whole numbers, each of which is there once. */
export interface ListColumn {
  readonly lists: readonly (readonly number[])[]
  /** For each row the index of its list, or -1 for none. */
  readonly codes: Int32Array<ArrayBuffer>
}

/** Structs and what else is rare. */
export interface ValueColumn {
  /** Null for a row without one; null alone: no row has one. */
  readonly values: readonly unknown[] | null
}

export type ColumnData = TextColumn | NumberColumn | ListColumn | ValueColumn

export class Texts {
  readonly #interner = new Interner()
  readonly #codes: Int32Array<ArrayBuffer>

  constructor(capacity: number) {
    this.#codes = new Int32Array(capacity).fill(-1)
  }

  set(i: number, text: string | null | undefined): void {
    if (text != null) this.#codes[i] = this.#interner.number(text)
  }

  take(length: number): TextColumn {
    return { texts: this.#interner.names, codes: this.#codes.subarray(0, length) }
  }
}

export class Lists {
  readonly #lists: (readonly number[])[] = []
  readonly #codesByText = new Map<string, number>()
  readonly #codes: Int32Array<ArrayBuffer>
  /** The list of the row before, which most rows share. */
  #last: readonly number[] | null = null
  #lastCode = -1

  constructor(capacity: number) {
    this.#codes = new Int32Array(capacity).fill(-1)
  }

  set(i: number, list: readonly number[]): void {
    if (list !== this.#last) {
      const text = list.join()
      let code = this.#codesByText.get(text)
      if (code === undefined) {
        code = this.#lists.push(list) - 1
        this.#codesByText.set(text, code)
      }
      this.#last = list
      this.#lastCode = code
    }
    this.#codes[i] = this.#lastCode
  }

  take(length: number): ListColumn {
    return { lists: this.#lists, codes: this.#codes.subarray(0, length) }
  }
}

export class Numbers {
  readonly #capacity: number
  readonly numbers: Float64Array<ArrayBuffer>
  #missing: Uint8Array<ArrayBuffer> | null = null

  constructor(capacity: number) {
    this.#capacity = capacity
    this.numbers = new Float64Array(capacity)
  }

  set(i: number, value: number | undefined): void {
    if (value !== undefined) this.numbers[i] = value
    else {
      this.#missing ??= new Uint8Array(this.#capacity)
      this.#missing[i] = 1
    }
  }

  take(length: number): NumberColumn {
    return { numbers: this.numbers.subarray(0, length), missing: this.#missing?.subarray(0, length) ?? null }
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
