/** The builder of tables of records. */

import { type Column, float64Column, uint8Column } from '../../base/column.js'
import { LITERAL, TABLE_COLUMNS, type TableColumns, type TableData, type TableNames } from './table-data.js'

/** A run or a box of a record's elements, as it lies in a file. */
export interface SourceBlock {
  /** The path in the underlying store; null if the bytes are `literal`. */
  readonly file: string | null
  readonly start: number
  readonly literal?: Uint8Array
  readonly byteLength: number
  /** The offset of a block that is not the next run of elements in C order; like `shape` and `strides`, a number per axis. */
  readonly offsets?: readonly number[]
  readonly shape?: readonly number[]
  /** The distance of neighbours along each axis, in elements. */
  readonly strides?: readonly number[]
}

/** A record to add to a table. */
export interface SourceRecord {
  /** The bytes before the elements. They are copied. */
  readonly head: Uint8Array
  readonly dataByteLength: number
  /** Runs in order, or boxes if there is a shape. */
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

  /** @param end the bytes after the elements of every record */
  constructor(end: Uint8Array) {
    this.#end = end
    for (const name of ['heads', 'blocks', 'geometries'] as const) this.#columns[name].push(0)
  }

  get isEmpty(): boolean {
    return this.#composed.length === 0
  }

  /**
   * Begins a file.
   * @param place the name of the file in errors: a path in the underlying store
   */
  begin(name: string, place: string): void {
    this.#composed.push([name, place, this.#columns.starts.length])
    this.#at = 0
  }

  /** Sets versions of underlying files by path, which tell a file from another of the same name. */
  know(versions: ReadonlyMap<string, string>): void {
    for (const [path, version] of versions) this.#versions.set(path, version)
  }

  /** Adds a record. @returns its place in the file */
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

  /** Makes the table. The builder must not be used after that. */
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
