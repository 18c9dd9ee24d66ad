/** Rows of moments that are kept until rules have judged them, in columns, since there may be a million. */

import { ROW_LENGTH } from '../../core/moments-row.js'

/** A slot is two words: some hold 64-bit integers, which a copy as floats could change. */
const ROW_WORDS = 2 * ROW_LENGTH

/** Compact rows of moments for very many records: values that all rows share (most counts, and unknown moments) are stored once. */
export class KeptRows {
  readonly #first: Int32Array
  /** The words that are not the same in all rows. */
  readonly #words: readonly number[]
  /** These words, row by row. */
  readonly #differing: Int32Array

  constructor(rows: Float64Array) {
    const words = new Int32Array(rows.buffer, rows.byteOffset, 2 * rows.length)
    this.#first = words.slice(0, ROW_WORDS)
    this.#words = Array.from(this.#first.keys()).filter(word => isDiffering(words, word))
    this.#differing = new Int32Array((words.length / ROW_WORDS) * this.#words.length)
    let at = 0
    for (let row = 0; row < words.length; row += ROW_WORDS) {
      for (const word of this.#words) this.#differing[at++] = words[row + word]!
    }
  }

  /** A copy of a row. */
  row(i: number): Float64Array {
    const words = this.#first.slice()
    let at = i * this.#words.length
    for (const word of this.#words) words[word] = this.#differing[at++]!
    return new Float64Array(words.buffer)
  }
}

function isDiffering(words: Int32Array, word: number): boolean {
  for (let at = word + ROW_WORDS; at < words.length; at += ROW_WORDS) if (words[at] !== words[word]) return true
  return false
}
