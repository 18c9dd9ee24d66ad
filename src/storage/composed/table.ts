/**
 * The pieces of a composed store's files: records, each with a head in the table, elements that lie elsewhere, and an
 * end.
 */

import { countBelow } from '../../base/sorted.js'
import { boxesOf, type Piece, stridedPieces } from './strided.js'
import { LITERAL, TABLE_COLUMNS, type TableColumns, type TableData, type TableNames } from './table-data.js'

/** A file that consists of records. */
export interface ComposedFile {
  readonly table: Table
  /** The name of the place in errors. */
  readonly place: string
  readonly first: number
  /** The number after its last record's. */
  readonly end: number
}

export class Table {
  /** The composed files by name. */
  readonly files: ReadonlyMap<string, ComposedFile>
  readonly #paths: readonly string[]
  /** The versions of underlying files by path. */
  readonly #versions: ReadonlyMap<string, string | null>
  readonly #columns: TableColumns
  readonly #heads: Uint8Array
  readonly #literals: Uint8Array
  readonly #end: Uint8Array

  constructor({ bytes }: TableData) {
    const counts = new Float64Array(bytes, 0, TABLE_COLUMNS.length + 4)
    let at = counts.byteLength
    const columns = {} as TableColumns
    for (const [i, name] of TABLE_COLUMNS.entries()) {
      columns[name] = new Float64Array(bytes, at, counts[i]!)
      at += 8 * counts[i]!
    }
    const blob = (i: number): Uint8Array => {
      const length = counts[TABLE_COLUMNS.length + i]!
      at += length
      return new Uint8Array(bytes, at - length, length)
    }
    // A copy, since texts are not decoded from memory that threads share.
    const { files, versions, composed } = JSON.parse(new TextDecoder().decode(blob(0).slice())) as TableNames
    this.#heads = blob(1)
    this.#literals = blob(2)
    this.#end = blob(3)
    this.#paths = files
    this.#versions = new Map(files.map((path, i) => [path, versions[i]!]))
    this.#columns = columns
    const total = columns.starts.length
    this.files = new Map(
      composed.map(([name, place, first], i) => [
        name,
        { table: this, place, first, end: composed[i + 1]?.[2] ?? total },
      ]),
    )
  }

  /** The underlying files of a file's records. */
  sources({ first, end }: ComposedFile): readonly string[] {
    const { blocks, files } = this.#columns
    const numbers = new Set<number>(files.subarray(blocks[first]!, blocks[end]!))
    return [...numbers].flatMap(number => (number === LITERAL ? [] : [this.#paths[number]!]))
  }

  /** The version of an underlying file when its header was read; undefined if unknown. */
  versionOf(path: string): string | undefined {
    return this.#versions.get(path) ?? undefined
  }

  byteLength({ first, end }: ComposedFile): number {
    return end === first ? 0 : this.#columns.starts[end - 1]! + this.#lengthOf(end - 1)
  }

  /** The number of bytes in front of the elements of the record that begins there; undefined if none does. */
  headByteLength(file: ComposedFile, startByte: number): number | undefined {
    const record = this.#recordAt(file, startByte)
    return record >= file.first && this.#columns.starts[record] === startByte ? this.#headLengthOf(record) : undefined
  }

  /** The pieces of a range, up to the end of the file. */
  *pieces(file: ComposedFile, startByte: number, byteLength: number): Generator<Piece> {
    const { starts, heads } = this.#columns
    const endByte = startByte + byteLength
    for (let record = this.#recordAt(file, startByte); record < file.end && starts[record]! < endByte; record++) {
      const begin = starts[record]!
      const headLength = this.#headLengthOf(record)
      const dataLength = this.#dataLengthOf(record)
      const dataAt = begin + headLength
      const literal = (all: Uint8Array, at: number): Piece => {
        const from = Math.max(at, startByte)
        const bytes = all.subarray(from - at, Math.max(from, Math.min(at + all.length, endByte)) - at)
        return { file: null, start: 0, byteLength: bytes.length, bytes, at: from - startByte }
      }
      const head = literal(this.#heads.subarray(heads[record]!, heads[record + 1]!), begin)
      if (head.byteLength > 0) yield head
      const [dataFrom, dataTo] = [Math.max(dataAt, startByte), Math.min(dataAt + dataLength, endByte)]
      if (dataFrom < dataTo) yield* this.#data(record, dataFrom - dataAt, dataTo - dataAt, dataFrom - startByte)
      const end = literal(this.#end, dataAt + dataLength)
      if (end.byteLength > 0) yield end
    }
  }

  /** The pieces of a record's elements, by bytes counted from the first element. */
  *#data(record: number, from: number, to: number, at: number): Generator<Piece> {
    const { blocks, geometries, files, begins, lengths } = this.#columns
    if (geometries[record] !== geometries[record + 1]) {
      yield* this.#gathered(record, from, to, at)
      return
    }
    let before = 0
    for (let block = blocks[record]!; block < blocks[record + 1]! && before < to; block++) {
      const length = lengths[block]!
      const [first, last] = [Math.max(from, before), Math.min(to, before + length)]
      if (first < last) yield this.#run(files[block]!, begins[block]! + first - before, last - first, at + first - from)
      before += length
    }
  }

  #run(file: number, start: number, byteLength: number, at: number): Piece {
    if (file !== LITERAL) return { file: this.#paths[file]!, start, byteLength, at }
    const bytes = this.#literals.subarray(start, start + byteLength)
    return { file: null, start: 0, byteLength, bytes, at }
  }

  /** The pieces of elements that do not lie in C order. */
  *#gathered(record: number, from: number, to: number, at: number): Generator<Piece> {
    const { blocks, geometries, geometry, files, begins } = this.#columns
    let next = geometries[record]!
    const take = (count: number): number[] => {
      next += count
      return [...geometry.subarray(next - count, next)]
    }
    const [size, rank] = take(2) as [number, number]
    const shape = take(rank)
    // Whole elements: bytes of one that was cut are not put in place.
    const elements = boxesOf(shape, Math.floor(from / size), Math.ceil(to / size))
    for (let block = blocks[record]!; block < blocks[record + 1]!; block++) {
      const [offsets, sizes, strides] = [take(rank), take(rank), take(rank)]
      const file = this.#paths[files[block]!]!
      for (const wanted of elements) {
        yield* stridedPieces(
          { file, start: begins[block]!, offsets, sizes, strides },
          { shape, size, wanted, from, to, at },
        )
      }
    }
  }

  #recordAt({ first, end }: ComposedFile, byte: number): number {
    const { starts } = this.#columns
    return Math.max(first, first + countBelow(end - first, i => starts[first + i]! <= byte) - 1)
  }

  #headLengthOf(record: number): number {
    const { heads } = this.#columns
    return heads[record + 1]! - heads[record]!
  }

  #dataLengthOf(record: number): number {
    const { blocks, lengths, geometries, geometry } = this.#columns
    const at = geometries[record]!
    if (at !== geometries[record + 1]) {
      const rank = geometry[at + 1]!
      return geometry.subarray(at + 2, at + 2 + rank).reduce((product, size) => product * size, geometry[at]!)
    }
    let sum = 0
    for (let block = blocks[record]!; block < blocks[record + 1]!; block++) sum += lengths[block]!
    return sum
  }

  #lengthOf(record: number): number {
    return this.#headLengthOf(record) + this.#dataLengthOf(record) + this.#end.length
  }
}
