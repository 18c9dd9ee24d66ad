/**
 * Column chunks of what is in typed arrays, a data page each. hyparquet-writer takes any value, looks at each several times, and takes
 * five times as long; what pages, headers and dictionaries are made of is its own.
 */

import type { ColumnChunk, Encoding, SchemaElement, Statistics } from 'hyparquet'
import { ByteWriter } from 'hyparquet-writer'
import { writePageHeader } from 'hyparquet-writer/src/datapage.js'
import { writeRleBitPackedHybrid } from 'hyparquet-writer/src/encoding.js'
import { writePlain } from 'hyparquet-writer/src/plain.js'
import { snappyCompress } from 'hyparquet-writer/src/snappy.js'

const encoder = new TextEncoder()

/** A column without fields of its own. */
export interface Leaf {
  readonly element: SchemaElement
  /** From the column to the leaf. */
  readonly path: readonly string[]
  /** How many of the elements on the path are optional or repeated, and how many are repeated. */
  readonly maxDefinition: number
  readonly maxRepetition: number
}

/** What a page holds besides its header. */
interface Page {
  readonly encoding: Encoding
  readonly bytes: Uint8Array
  readonly rows: number
  /** Whether every row has a value; otherwise none has. */
  readonly isFull: boolean
  /** Of lists: what each entry is. */
  readonly levels?: Levels
}

/** An entry for each element, each empty list and each row without a list. */
interface Levels {
  readonly repetition: Int32Array
  readonly definition: Int32Array
  /** Entries that are no elements. */
  readonly nulls: number
}

/** A float64 for every row: all first bytes, all second ones, …, since those that say little compress well next to each other. */
export function writeNumbers(writer: ByteWriter, leaf: Leaf, numbers: Float64Array<ArrayBuffer>): ColumnChunk {
  const rows = numbers.length
  const from = new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength)
  const bytes = new Uint8Array(from.length)
  // One loop over all: eight take twice as long.
  for (let i = 0, at = 0; i < rows; i++, at += 8) {
    bytes[i] = from[at]!
    bytes[rows + i] = from[at + 1]!
    bytes[2 * rows + i] = from[at + 2]!
    bytes[3 * rows + i] = from[at + 3]!
    bytes[4 * rows + i] = from[at + 4]!
    bytes[5 * rows + i] = from[at + 5]!
    bytes[6 * rows + i] = from[at + 6]!
    bytes[7 * rows + i] = from[at + 7]!
  }
  return writeChunk(writer, leaf, { encoding: 'BYTE_STREAM_SPLIT', bytes, rows, isFull: true })
}

/** One of few values for every row. @param codes the index of each row's value in the dictionary */
export function writeCodes(
  writer: ByteWriter,
  leaf: Leaf,
  values: readonly string[] | BigInt64Array,
  codes: Int32Array,
): ColumnChunk {
  const dictionary = values instanceof BigInt64Array ? integersPage(values) : textsPage(values)
  const bytes = indexBytes(codes, values.length)
  return writeChunk(writer, leaf, { encoding: 'RLE_DICTIONARY', bytes, rows: codes.length, isFull: true }, dictionary)
}

/**
 * A list of whole numbers for each row, one of few. At least one has elements.
 * @param codes the index of each row's list; -1: it has none
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
  let [entries, elements] = [0, 0]
  for (const code of codes) {
    const length = code < 0 ? 0 : lists[code]!.length
    entries += length || 1
    elements += length
  }
  const repetition = new Int32Array(entries)
  const definition = new Int32Array(entries)
  const indices = new Int32Array(elements)
  const { maxDefinition } = leaf
  let [entry, element] = [0, 0]
  for (const code of codes) {
    const list = code < 0 ? null : indicesOf[code]!
    if (list === null || list.length === 0) {
      definition[entry++] = list === null ? 0 : maxDefinition - 1
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
  const page = {
    encoding: 'RLE_DICTIONARY',
    bytes: indexBytes(indices, indicesByNumber.size),
    rows: codes.length,
  } as const
  return writeChunk(writer, leaf, { ...page, isFull: true, levels }, dictionary)
}

/** Indices into a dictionary of so many values. */
function indexBytes(indices: Int32Array, count: number): Uint8Array {
  const bytes = new ByteWriter()
  const bitWidth = 32 - Math.clz32(count - 1)
  bytes.appendUint8(bitWidth)
  writeRleBitPackedHybrid(bytes, indices, bitWidth)
  return bytes.getBytes()
}

/** No value for any row. */
export function writeNothing(writer: ByteWriter, leaf: Leaf, rows: number): ColumnChunk {
  return writeChunk(writer, leaf, { encoding: 'PLAIN', bytes: new Uint8Array(0), rows, isFull: false })
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
  // Bytes, not UTF-16 code units, are what texts are ordered by.
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

function writeChunk(writer: ByteWriter, leaf: Leaf, page: Page, dictionary?: DictionaryPage): ColumnChunk {
  const { element, path, maxDefinition, maxRepetition } = leaf
  const { encoding, bytes, rows, isFull, levels: own } = page
  const entries = own?.repetition.length ?? rows
  const nulls = own?.nulls ?? (isFull ? 0 : rows)
  const start = writer.offset
  let uncompressed = dictionary === undefined ? 0 : writeDictionary(writer, dictionary)
  const dataStart = writer.offset
  const levels = new ByteWriter()
  const repetitionByteLength = own
    ? writeRleBitPackedHybrid(levels, own.repetition, bitsFor(maxRepetition))
    : maxRepetition === 0
      ? 0
      : writeRun(levels, rows, 0)
  const definitionByteLength = own
    ? writeRleBitPackedHybrid(levels, own.definition, bitsFor(maxDefinition))
    : maxDefinition === 0
      ? 0
      : writeRun(levels, rows, isFull ? maxDefinition : 0)
  const compressed = snappyCompress(bytes)
  writePageHeader(writer, {
    type: 'DATA_PAGE_V2',
    uncompressed_page_size: levels.offset + bytes.length,
    compressed_page_size: levels.offset + compressed.length,
    data_page_header_v2: {
      num_values: entries,
      num_nulls: nulls,
      num_rows: rows,
      encoding,
      definition_levels_byte_length: definitionByteLength,
      repetition_levels_byte_length: repetitionByteLength,
      is_compressed: true,
    },
  })
  uncompressed += writer.offset - dataStart + levels.offset + bytes.length
  writer.appendBytes(levels.getBytes())
  writer.appendBytes(compressed)
  return {
    file_offset: BigInt(start),
    meta_data: {
      type: element.type!,
      encodings: dictionary === undefined ? [encoding] : ['PLAIN', encoding],
      path_in_schema: [...path],
      codec: 'SNAPPY',
      num_values: BigInt(entries),
      total_compressed_size: BigInt(writer.offset - start),
      total_uncompressed_size: BigInt(uncompressed),
      data_page_offset: BigInt(dataStart),
      ...(dictionary && {
        dictionary_page_offset: BigInt(start),
        statistics: { ...dictionary.statistics, null_count: BigInt(nulls) },
      }),
      ...(!isFull && { statistics: { null_count: BigInt(rows) } }),
    },
  }
}

/** @returns bytes before compression, with the header */
function writeDictionary(writer: ByteWriter, { bytes, count }: DictionaryPage): number {
  const start = writer.offset
  const compressed = snappyCompress(bytes)
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

/** Of levels from 0 to this one. */
function bitsFor(level: number): number {
  return 32 - Math.clz32(level)
}

/** The same level for all rows, which takes one byte. @returns bytes written */
function writeRun(levels: ByteWriter, rows: number, level: number): number {
  const start = levels.offset
  levels.appendVarInt(rows * 2)
  levels.appendUint8(level)
  return levels.offset - start
}
