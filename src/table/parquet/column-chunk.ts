/**
 * Writes column chunks from typed arrays. hyparquet-writer takes arbitrary values, inspects each several times, and is five times as
 * slow; headers and dictionaries are still its own.
 */

import type { ColumnChunk, Encoding, SchemaElement, Statistics } from 'hyparquet'
import { ByteWriter } from 'hyparquet-writer'
import { writePageHeader } from 'hyparquet-writer/src/datapage.js'
import { writePlain } from 'hyparquet-writer/src/plain.js'
import { compressed, pack, packIntegers } from '../../core/batch/number-columns.js'
import type { Engine } from '../../core/engine.js'
import { withEngineSync } from '../../core/engines.js'
import type { NumberColumn, PackedNumbers } from '../column.js'

const encoder = new TextEncoder()

/** A column without nested fields. */
export interface Leaf {
  readonly element: SchemaElement
  /** The path from the column to the leaf. */
  readonly path: readonly string[]
  /** The number of optional or repeated elements on the path, and of repeated ones alone. */
  readonly maxDefinition: number
  readonly maxRepetition: number
}

/** The content of a page, without its header. */
interface Page {
  readonly encoding: Encoding
  readonly compressed: Uint8Array
  /** The length before compression. */
  readonly byteLength: number
  readonly rows: number
  /** True if every row has a value, false if none has. Ignored if there are levels. */
  readonly isFull: boolean
  /** The level of each entry, if they differ. */
  readonly levels?: Levels
}

/** The levels of a column: an entry for each row; for lists, an entry for each element, each empty list and each row without a list. */
interface Levels {
  /** The repetition levels of lists. */
  readonly repetition?: Int32Array
  readonly definition: Int32Array
  /** The number of entries without a value. */
  readonly nulls: number
}

/** Writes float64s, a page for each piece. */
export function writeNumbers(
  writer: ByteWriter,
  leaf: Leaf,
  pieces: readonly (NumberColumn | PackedNumbers)[],
): ColumnChunk {
  return writeChunk(
    writer,
    leaf,
    pieces.map(piece => numbersPage(piece, leaf)),
  )
}

function numbersPage(piece: NumberColumn | PackedNumbers, { maxDefinition }: Leaf): Page {
  const encoding = 'BYTE_STREAM_SPLIT'
  if ('packed' in piece) {
    const { rows, packed } = piece
    return { encoding, compressed: packed, byteLength: 8 * rows, rows, isFull: true }
  }
  const { numbers, missing } = piece
  const rows = numbers.length
  const present = missing === null ? numbers : numbers.filter((_, i) => missing[i] === 0)
  const packed = inCore(engine => pack(engine, present))
  const page = { encoding, compressed: packed, byteLength: present.byteLength, rows } as const
  if (present.length === rows || present.length === 0) return { ...page, isFull: present.length === rows }
  const definition = Int32Array.from(missing!, isMissing => maxDefinition - isMissing)
  return {
    ...page,
    isFull: true,
    levels: { definition, nulls: rows - present.length },
  }
}

/** Writes a column with few distinct values as a dictionary and codes. @param codes the index of each row's value in the dictionary */
export function writeCodes(
  writer: ByteWriter,
  leaf: Leaf,
  values: readonly string[] | BigInt64Array,
  codes: Int32Array,
): ColumnChunk {
  const dictionary = values instanceof BigInt64Array ? integersPage(values) : textsPage(values)
  const page = { ...indicesPage(codes, values.length), rows: codes.length, isFull: true }
  return writeChunk(writer, leaf, [page], dictionary)
}

/**
 * Writes a list of whole numbers for each row; there are few distinct lists, and at least one has elements.
 * @param codes the index of each row's list; -1 for none
 */
export function writeLists(
  writer: ByteWriter,
  leaf: Leaf,
  lists: readonly (readonly number[])[],
  codes: Int32Array,
): ColumnChunk {
  const indicesByNumber = new Map<number, number>()
  const indicesOf = lists.map(list =>
    list.map(number => {
      const index = indicesByNumber.get(number) ?? indicesByNumber.size
      indicesByNumber.set(number, index)
      return index
    }),
  )
  const lengths = lists.map(({ length }) => length)
  let [entries, elements] = [0, 0]
  for (let row = 0; row < codes.length; row++) {
    const length = lengths[codes[row]!] ?? 0
    entries += length || 1
    elements += length
  }
  const repetition = new Int32Array(entries)
  const definition = new Int32Array(entries)
  const indices = new Int32Array(elements)
  const { maxDefinition } = leaf
  let [entry, element] = [0, 0]
  for (let row = 0; row < codes.length; row++) {
    const list = indicesOf[codes[row]!]
    if (list === undefined || list.length === 0) {
      definition[entry++] = list === undefined ? 0 : maxDefinition - 1
      continue
    }
    for (let i = 0; i < list.length; i++) {
      if (i > 0) repetition[entry] = 1
      definition[entry++] = maxDefinition
      indices[element++] = list[i]!
    }
  }
  const dictionary = integersPage(BigInt64Array.from(indicesByNumber.keys(), BigInt))
  const levels = { repetition, definition, nulls: entries - elements }
  const page = { ...indicesPage(indices, indicesByNumber.size), rows: codes.length, isFull: true, levels }
  return writeChunk(writer, leaf, [page], dictionary)
}

/** A page of indices into a dictionary with `count` values. */
function indicesPage(indices: Int32Array, count: number): Pick<Page, 'encoding' | 'compressed' | 'byteLength'> {
  const width = bitsFor(count - 1)
  const packed = inCore(engine => packIntegers(engine, indices, width))
  const bytes = new Uint8Array(1 + packed.length)
  bytes[0] = width
  bytes.set(packed, 1)
  return { encoding: 'RLE_DICTIONARY', compressed: snappy(bytes), byteLength: bytes.length }
}

function inCore<T>(work: (engine: Engine) => T): T {
  return withEngineSync(engine => {
    engine.reset()
    return work(engine)
  })
}

export function snappy(bytes: Uint8Array): Uint8Array {
  return inCore(engine => compressed(engine, bytes))
}

/** Writes a boolean for every row. @param numbers 0 or 1 for each row */
export function writeTruths(writer: ByteWriter, leaf: Leaf, numbers: Float64Array): ColumnChunk {
  const rows = numbers.length
  const bytes = new Uint8Array((rows + 7) >> 3)
  for (let row = 0; row < rows; row++) bytes[row >> 3]! |= numbers[row]! << (row & 7)
  const compressed = snappy(bytes)
  return writeChunk(writer, leaf, [{ encoding: 'PLAIN', compressed, byteLength: bytes.length, rows, isFull: true }])
}

/** Writes a column without any value. */
export function writeNothing(writer: ByteWriter, leaf: Leaf, rows: number): ColumnChunk {
  const compressed = snappy(new Uint8Array(0))
  return writeChunk(writer, leaf, [{ encoding: 'PLAIN', compressed, byteLength: 0, rows, isFull: false }])
}

interface DictionaryPage {
  readonly bytes: Uint8Array
  readonly count: number
  readonly statistics: Statistics
}

function textsPage(texts: readonly string[]): DictionaryPage {
  const page = new ByteWriter()
  const bytes = texts.map(text => encoder.encode(text))
  writePlain(page, bytes, 'BYTE_ARRAY', undefined)
  // The format orders texts by bytes, not by UTF-16 units.
  const sorted = bytes.sort(compareBytes)
  const [min_value, max_value] = [sorted[0]!, sorted.at(-1)!]
  return { bytes: page.getBytes(), count: texts.length, statistics: { null_count: 0n, min_value, max_value } }
}

function integersPage(integers: BigInt64Array): DictionaryPage {
  const page = new ByteWriter()
  writePlain(page, integers, 'INT64', undefined)
  let [min_value, max_value] = [integers[0]!, integers[0]!]
  for (const integer of integers) {
    if (integer < min_value) min_value = integer
    if (integer > max_value) max_value = integer
  }
  return { bytes: page.getBytes(), count: integers.length, statistics: { null_count: 0n, min_value, max_value } }
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) if (a[i] !== b[i]) return a[i]! - b[i]!
  return a.length - b.length
}

function writeChunk(writer: ByteWriter, leaf: Leaf, pages: readonly Page[], dictionary?: DictionaryPage): ColumnChunk {
  const start = writer.offset
  let uncompressed = dictionary === undefined ? 0 : writeDictionary(writer, dictionary)
  const dataStart = writer.offset
  for (const page of pages) uncompressed += writePage(writer, leaf, page)
  const encodings = [...new Set(pages.map(({ encoding }) => encoding))]
  const nulls = pages.reduce((sum, page) => sum + nullsOf(page), 0)
  const statistics = dictionary?.statistics ?? (nulls > 0 ? {} : undefined)
  return {
    file_offset: BigInt(start),
    meta_data: {
      type: leaf.element.type!,
      encodings: dictionary === undefined ? encodings : ['PLAIN', ...encodings],
      path_in_schema: [...leaf.path],
      codec: 'SNAPPY',
      num_values: BigInt(pages.reduce((sum, page) => sum + entriesOf(page), 0)),
      total_compressed_size: BigInt(writer.offset - start),
      total_uncompressed_size: BigInt(uncompressed),
      data_page_offset: BigInt(dataStart),
      ...(dictionary && { dictionary_page_offset: BigInt(start) }),
      ...(statistics && { statistics: { ...statistics, null_count: BigInt(nulls) } }),
    },
  }
}

function entriesOf({ levels, rows }: Page): number {
  return levels?.definition.length ?? rows
}

function nullsOf({ levels, isFull, rows }: Page): number {
  return levels?.nulls ?? (isFull ? 0 : rows)
}

/** @returns the length before compression, with the header */
function writePage(writer: ByteWriter, { maxDefinition, maxRepetition }: Leaf, page: Page): number {
  const { encoding, compressed, byteLength, rows, isFull, levels: pageLevels } = page
  const levels = new ByteWriter()
  const writeLevels = (most: number, ofPage: Int32Array | undefined, all: number): number => {
    if (most === 0) return 0
    if (!ofPage) return writeRun(levels, rows, all)
    const packed = inCore(engine => packIntegers(engine, ofPage, bitsFor(most)))
    levels.appendBytes(packed)
    return packed.length
  }
  const repetitionByteLength = writeLevels(maxRepetition, pageLevels?.repetition, 0)
  const definitionByteLength = writeLevels(maxDefinition, pageLevels?.definition, isFull ? maxDefinition : 0)
  const start = writer.offset
  writePageHeader(writer, {
    type: 'DATA_PAGE_V2',
    uncompressed_page_size: levels.offset + byteLength,
    compressed_page_size: levels.offset + compressed.length,
    data_page_header_v2: {
      num_values: entriesOf(page),
      num_nulls: nullsOf(page),
      num_rows: rows,
      encoding,
      definition_levels_byte_length: definitionByteLength,
      repetition_levels_byte_length: repetitionByteLength,
      is_compressed: true,
    },
  })
  const headerByteLength = writer.offset - start
  writer.appendBytes(levels.getBytes())
  writer.appendBytes(compressed)
  return headerByteLength + levels.offset + byteLength
}

/** @returns the length before compression, with the header */
function writeDictionary(writer: ByteWriter, { bytes, count }: DictionaryPage): number {
  const start = writer.offset
  const compressed = snappy(bytes)
  writePageHeader(writer, {
    type: 'DICTIONARY_PAGE',
    uncompressed_page_size: bytes.length,
    compressed_page_size: compressed.length,
    dictionary_page_header: { num_values: count, encoding: 'PLAIN' },
  })
  const headerByteLength = writer.offset - start
  writer.appendBytes(compressed)
  return headerByteLength + bytes.length
}

/** The number of bits for levels from 0 to `level`. */
function bitsFor(level: number): number {
  return 32 - Math.clz32(level)
}

/** Writes one level for all rows, as a single run. @returns the number of bytes */
function writeRun(levels: ByteWriter, rows: number, level: number): number {
  const start = levels.offset
  levels.appendVarInt(rows * 2)
  levels.appendUint8(level)
  return levels.offset - start
}
