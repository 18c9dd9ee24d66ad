/** Makes tables of records. */

import { type Column, float64Column, uint8Column } from '../../base/column.js'
import { LITERAL, TABLE_COLUMNS, type TableColumns, type TableData, type TableNames } from './table-data.js'

/** A run or a box of a record's elements, as they lie in a file. */
export interface SourceBlock {
  /** Path in the underlying store; null: the bytes are `literal`. */
  readonly file: string | null
  readonly start: number
  readonly literal?: Uint8Array
  readonly byteLength: number
  /** The offset of a block that is not the next run of elements in C order; like `shape` and `strides`, a number per axis. */
  readonly offsets?: readonly number[]
  readonly shape?: readonly number[]
  /** In elements. */
  readonly strides?: readonly number[]
}

/** A record to be put into a table. */
export interface SourceRecord {
  /** Up to the first byte of the elements. It is copied. */
  readonly head: Uint8Array
  readonly dataByteLength: number
  /** Runs in their order; or boxes, if there is a shape. */
  readonly blocks: readonly SourceBlock[]
  /** The shape and element size of elements that have to be gathered. */
  readonly gathered?: { readonly shape: readonly number[]; readonly elementByteLength: number }
}

let count = 0

/** Collects records, file by file. */
export class TableBuilder {
  readonly #end: Uint8Array
  readonly #files = new Map<string, number>()
  readonly #versions = new Map<string, string>()
  readonly #composed: [string, string, number][] = []
  readonly #columns = Object.fromEntries(TABLE_COLUMNS.map(name => [name, float64Column()])) as Record<
    keyof TableColumns,
    Column<Float64Array>
  >
  readonly #heads = uint8Column()
  readonly #literals: Uint8Array[] = []
  #literalLength = 0
  #at = 0

  /** @param end what stands behind the elements of every record */
  constructor(end: Uint8Array) {
    this.#end = end
    for (const name of ['heads', 'blocks', 'geometries'] as const) this.#columns[name].push(0)
  }

  get isEmpty(): boolean {
    return this.#composed.length === 0
  }

  /** Begins a file. @param place what errors call it: a path in the underlying store */
  begin(name: string, place: string): void {
    this.#composed.push([name, place, this.#columns.starts.length])
    this.#at = 0
  }

  /** Takes versions of files that records lie in, by path: they tell them from others of their names. */
  know(versions: ReadonlyMap<string, string>): void {
    for (const [path, version] of versions) this.#versions.set(path, version)
  }

  /** @returns where the record lies in the file */
  add({ head, dataByteLength, blocks, gathered }: SourceRecord): {
    readonly startByte: number
    readonly byteLength: number
  } {
    const columns = this.#columns
    const startByte = this.#at
    columns.starts.push(startByte)
    this.#heads.append(head)
    columns.heads.push(this.#heads.length)
    if (gathered) this.#describe([gathered.elementByteLength, gathered.shape.length], gathered.shape)
    for (const { file, start, literal, byteLength, offsets, shape, strides } of blocks) {
      if (file === null) {
        columns.files.push(LITERAL)
        columns.begins.push(this.#literalLength)
        this.#literals.push(literal!)
        this.#literalLength += literal!.length
      } else {
        columns.files.push(this.#fileNumber(file))
        columns.begins.push(start)
      }
      columns.lengths.push(byteLength)
      if (gathered) this.#describe(offsets, shape, strides)
    }
    columns.blocks.push(columns.files.length)
    columns.geometries.push(columns.geometry.length)
    const byteLength = head.length + dataByteLength + this.#end.length
    this.#at += byteLength
    return { startByte, byteLength }
  }

  #describe(...lists: readonly (readonly number[] | undefined)[]): void {
    for (const list of lists) for (const number of list ?? []) this.#columns.geometry.push(number)
  }

  /** The table. The builder is not used any more. */
  finish(): TableData {
    const columns = this.#columns
    const files: readonly string[] = [...this.#files.keys()]
    const versions = files.map(path => this.#versions.get(path) ?? null)
    const names = new TextEncoder().encode(
      JSON.stringify({ files, versions, composed: this.#composed } satisfies TableNames),
    )
    const lengths = TABLE_COLUMNS.map(name => columns[name].length)
    const blobs = [names.length, this.#heads.length, this.#literalLength, this.#end.length]
    const counts = Float64Array.from([...lengths, ...blobs])
    const total =
      counts.byteLength + 8 * lengths.reduce((a, b) => a + b, 0) + blobs.reduce((sum, length) => sum + length, 0)
    const bytes = typeof SharedArrayBuffer === 'undefined' ? new ArrayBuffer(total) : new SharedArrayBuffer(total)
    const all = new Uint8Array(bytes)
    let at = 0
    const put = (piece: Uint8Array): void => {
      all.set(piece, at)
      at += piece.length
    }
    put(new Uint8Array(counts.buffer))
    for (const name of TABLE_COLUMNS) put(columns[name].bytes)
    put(names)
    put(this.#heads.bytes)
    for (const piece of this.#literals) put(piece)
    put(this.#end)
    return { id: count++, bytes }
  }

  #fileNumber(path: string): number {
    const known = this.#files.get(path)
    if (known !== undefined) return known
    const number = this.#files.size
    this.#files.set(path, number)
    return number
  }
}
