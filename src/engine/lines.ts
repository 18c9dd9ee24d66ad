/** Rows of moments as lines of text, many at a time: the core writes them (assembly/lines.ts). */

import { MomentsRow, NUMBER_BYTES, type NumberForm, TEXT_SLACK, TextColumn, TextLine } from './border/abi.js'
import type { Address, CoreMemory, Texts } from './border/memory.js'
import type { Core } from './border/module.js'
import { decimalPowers, POWER_WORDS } from './decimal.js'
import { coreOf, type Engine } from './engine.js'
import type { MomentSlot } from './moments-row.js'

/** A number in each line. */
export interface Column {
  /** The text before the number. */
  readonly label: string
  readonly slot: MomentSlot
  readonly form: NumberForm
}

export interface LineTableOptions {
  readonly columns: readonly Column[]
  /** Whether NaN and the infinities are put in quotes, since JSON has no numbers for them. */
  readonly isJson: boolean
  /** What each line ends with. */
  readonly end: string
  /** The names that a line may begin with. */
  readonly names: readonly string[]
}

/** Lines and bytes written at once: no more than fit into the caches. */
const MAX_LINES = 256
const MAX_BYTES = 128 << 10
/** Bytes for the pieces other than names. */
const TEXT_BYTES = 16 << 10

/** 32-bit words of a struct. */
const LINE_WORDS = TextLine.size / 4
const COLUMN_WORDS = TextColumn.size / 4

const encoder = new TextEncoder()

/** Lines waiting to be written. Their memory is reserved for the length of a job. */
export class LineTable {
  readonly #core: Core
  readonly #memory: CoreMemory
  readonly #isJson: boolean
  readonly #columnCount: number
  readonly #columns: Address
  readonly #end: number
  readonly #names: Texts
  readonly #lines: Address
  readonly #pieces: Address
  readonly #text: Address
  readonly #ends: Address
  /** The most bytes that a line takes besides its pieces. */
  readonly #restByteLength: number
  readonly #endByteLength: number
  /** What will be copied to `#lines` and `#pieces`. */
  readonly #lineWords: Uint32Array
  readonly #pieceBytes = new Uint8Array(TEXT_BYTES)
  #length = 0
  #byteLength = 0
  #piecesByteLength = 0
  /** The last pieces, since most lines share them with the line before. */
  readonly #last = [new LastPiece(), new LastPiece()] as const

  constructor(memory: Engine, { columns, isJson, end, names }: LineTableOptions) {
    const core = coreOf(memory)
    this.#core = core
    this.#memory = memory
    this.#isJson = isJson
    const table = memory.words(core.POWERS.value as Address, POWER_WORDS)
    if (table[1] === 0) table.set(decimalPowers())
    this.#names = memory.writeTexts(names)
    const labels = memory.writeTexts([...columns.map(({ label }) => label), end])
    this.#end = labels.addresses.at(-1)!
    this.#endByteLength = labels.byteLengths.at(-1)!
    this.#restByteLength = labels.byteLengths.reduce((sum, length) => sum + length, columns.length * NUMBER_BYTES)
    this.#columnCount = columns.length
    this.#columns = memory.reserveBytes(columns.length * TextColumn.size)
    this.#lineWords = new Uint32Array(MAX_LINES * LINE_WORDS)
    this.#lines = memory.reserveBytes(this.#lineWords.byteLength)
    this.#pieces = memory.reserveBytes(TEXT_BYTES)
    this.#text = memory.reserveBytes(MAX_BYTES + TEXT_SLACK)
    this.#ends = memory.reserveBytes(MAX_LINES * 4)
    const words = memory.words(this.#columns, columns.length * COLUMN_WORDS)
    columns.forEach(({ slot, form }, i) => {
      const at = i * COLUMN_WORDS
      words.set([labels.addresses[i]!, labels.byteLengths[i]!], at + TextColumn.label / 4)
      words[at + TextColumn.slot / 4] = MomentsRow[slot]
      words[at + TextColumn.form / 4] = form
    })
  }

  /**
   * Adds a line: a name, two more pieces, and the numbers of a row of moments. The row must stay in place until the
   * line is written, its elements must be real, and it must be finite (`isFiniteRow`).
   * @returns false if the line does not fit until the others have been written, or not at all
   */
  add(name: number, second: string, third: string, row: Address): boolean {
    if (this.#length === 0) this.#clear()
    if (this.#length === MAX_LINES) return false
    const [a, b] = this.#last
    if (!this.#keep(a, second) || !this.#keep(b, third)) return false
    const nameByteLength = this.#names.byteLengths[name]!
    const byteLength = nameByteLength + a.byteLength + b.byteLength + this.#restByteLength
    if (this.#byteLength + byteLength > MAX_BYTES) return false
    this.#byteLength += byteLength
    const words = this.#lineWords
    let at = this.#length++ * LINE_WORDS
    words[at + TextLine.row / 4] = row
    at += TextLine.pieces / 4
    words[at] = this.#names.addresses[name]!
    words[at + 1] = nameByteLength
    words[at + 2] = a.address
    words[at + 3] = a.byteLength
    words[at + 4] = b.address
    words[at + 5] = b.byteLength
    return true
  }

  /** Makes sure that a piece is in memory. @returns false if it does not fit */
  #keep(last: LastPiece, text: string): boolean {
    if (last.text === text) return true
    const { read, written } = encoder.encodeInto(text, this.#pieceBytes.subarray(this.#piecesByteLength))
    if (read < text.length) return false
    last.text = text
    last.address = this.#pieces + this.#piecesByteLength
    last.byteLength = written
    this.#piecesByteLength += written
    return true
  }

  /**
   * Writes the waiting lines, at least one. Numbers look as `Number.prototype.toString` writes them, except for -0.
   * @returns views, valid until the next call of the core: the text, and where in it each line ends
   */
  write(): { readonly text: Uint8Array<ArrayBuffer>; readonly ends: Uint32Array<ArrayBuffer> } {
    const memory = this.#memory
    const count = this.#length
    const words = count * LINE_WORDS
    memory.words(this.#lines, words).set(this.#lineWords.subarray(0, words))
    memory.view(this.#pieces, this.#piecesByteLength).set(this.#pieceBytes.subarray(0, this.#piecesByteLength))
    this.#core.writeLines(
      this.#lines,
      count,
      this.#columns,
      this.#columnCount,
      this.#end,
      this.#endByteLength,
      this.#isJson ? 1 : 0,
      this.#text,
      this.#ends,
    )
    this.#length = 0
    const ends = memory.words(this.#ends, count)
    return { text: memory.view(this.#text, ends[count - 1]!), ends }
  }

  #clear(): void {
    this.#byteLength = 0
    this.#piecesByteLength = 0
    for (const last of this.#last) last.text = null
  }
}

class LastPiece {
  text: string | null = null
  address = 0
  byteLength = 0
}
