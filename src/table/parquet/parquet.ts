/** Writes groups of rows as an Apache Parquet file, a row group for each. */

import type { ColumnChunk, DecodedArray, SchemaElement } from 'hyparquet'
import { ByteWriter, type ColumnSource, ParquetWriter } from 'hyparquet-writer'
import type { ColumnData, NumberColumn } from '../column.js'
import type { Group } from '../group.js'
import type { Field, LeafType } from '../schema.js'
import { type Leaf, snappy, writeCodes, writeLists, writeNothing, writeNumbers, writeTruths } from './column-chunk.js'

// The bundle has everything that needs Parquet's packages in one file (scripts/make-bundle.mjs).
export { mergedFile } from './merge.js'

type Element = Omit<SchemaElement, 'name' | 'repetition_type'>

const LEAVES: Readonly<Record<LeafType, Element>> = {
  text: { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } },
  int64: { type: 'INT64' },
  // No logical type: hyparquet-writer omits fields that are false, which the format requires.
  uint64: { type: 'INT64', converted_type: 'UINT_64' },
  float64: { type: 'DOUBLE' },
  boolean: { type: 'BOOLEAN' },
}

/** The share of distinct values above which a column gets no dictionary. */
const DICTIONARY_PART = 1 / 4

/** Yields the bytes of the file, a row group at a time. @param metadata key-value metadata */
export async function* tableFile(
  fields: readonly Field[],
  groups: AsyncIterable<Group>,
  metadata: Readonly<Record<string, string>>,
): AsyncGenerator<Uint8Array> {
  const file = new TableFile(fields, metadata)
  for await (const group of groups) {
    file.write(group)
    yield file.take()
  }
  file.finish()
  yield file.take()
}

class TableFile {
  readonly #fields: readonly Field[]
  readonly #bytes = new ByteWriter()
  readonly #parquet: ParquetWriter

  constructor(fields: readonly Field[], metadata: Readonly<Record<string, string>>) {
    this.#fields = fields
    const schema: SchemaElement[] = [{ name: 'schema', num_children: fields.length }, ...fields.flatMap(elements)]
    const kvMetadata = Object.entries(metadata).map(([key, value]) => ({ key, value }))
    this.#parquet = new ParquetWriter({
      writer: this.#bytes,
      schema,
      compressors: { SNAPPY: snappy },
      createdBy: 'trialscan',
      // hyparquet-writer gives an empty list a wrong type.
      ...(kvMetadata.length > 0 && { kvMetadata }),
    })
  }

  /** The bytes written since the last call. */
  take(): Uint8Array {
    const bytes = this.#bytes.getBytes().slice()
    this.#bytes.index = 0
    return bytes
  }

  /** Writes a row group. */
  write(group: Group): void {
    const start = this.#bytes.offset
    const chunks = new Map<string, ColumnChunk[]>()
    const others: ColumnSource[] = []
    for (const field of this.#fields) {
      const written = this.#writeColumn(field, group.column(field.name), group.length)
      if (Array.isArray(written)) chunks.set(field.name, written)
      else others.push({ name: field.name, data: written.rows, offsetIndex: false })
    }
    if (others.length > 0) {
      this.#parquet.write({ columnData: others, rowGroupSize: group.length, pageSize: 0 })
      this.#parquet.num_rows -= BigInt(group.length)
      for (const chunk of this.#parquet.row_groups.pop()!.columns) {
        const [name] = chunk.meta_data!.path_in_schema
        chunks.set(name!, [...(chunks.get(name!) ?? []), chunk])
      }
    }
    const columns = this.#fields.flatMap(({ name }) => chunks.get(name)!)
    this.#parquet.num_rows += BigInt(group.length)
    this.#parquet.row_groups.push({
      columns,
      num_rows: BigInt(group.length),
      total_byte_size: columns.reduce((sum, { meta_data }) => sum + meta_data!.total_uncompressed_size, 0n),
      total_compressed_size: BigInt(this.#bytes.offset - start),
    })
  }

  finish(): void {
    this.#parquet.finish()
  }

  /** Writes a column, a chunk for each leaf. @returns null if done; otherwise the rows, for hyparquet-writer to write */
  #writeColumn(field: Field, column: ColumnData, rows: number): ColumnChunk[] | { readonly rows: DecodedArray } {
    const leaves = leavesOf(field)
    const leaf = leaves[0]!
    const nothing = () => leaves.map(leaf => writeNothing(this.#bytes, leaf, rows))
    if ('texts' in column) {
      const { texts, codes } = column
      if (texts.length === 0) return nothing()
      if (!codes.includes(-1)) return [writeCodes(this.#bytes, leaf, texts, codes)]
      return { rows: Array.from(codes, code => texts[code] ?? null) }
    }
    if ('lists' in column) {
      const { lists, codes } = column
      if (lists.some(({ length }) => length > 0)) return [writeLists(this.#bytes, leaf, lists, codes)]
      // If all lists are empty (scalars), the dictionary would be empty.
      return lists.length === 0 ? nothing() : { rows: Array.from(codes, code => lists[code] ?? null) }
    }
    if ('values' in column) return column.values === null ? nothing() : { rows: [...column.values] }
    if ('pieces' in column) return [writeNumbers(this.#bytes, leaf, column.pieces)]
    if (field.type === 'float64') return [writeNumbers(this.#bytes, leaf, [column])]
    const { numbers, missing } = column
    if (field.type === 'boolean') return [writeTruths(this.#bytes, leaf, numbers)]
    const few = missing === null ? fewIntegers(numbers) : null
    return few === null ? { rows: integersOf(column) } : [writeCodes(this.#bytes, leaf, few.integers, few.codes)]
  }
}

/** The leaves of a field, with their paths. */
function leavesOf({ name, type, isNullable }: Field, above?: Leaf): Leaf[] {
  const { path = [], maxDefinition: definition = 0, maxRepetition = 0 } = above ?? {}
  const maxDefinition = definition + Number(isNullable)
  const element = { name, ...(typeof type === 'string' && LEAVES[type]) }
  const leaf = { element, path: [...path, name], maxDefinition, maxRepetition }
  if (typeof type === 'string') return [leaf]
  if ('struct' in type) return type.struct.flatMap(field => leavesOf(field, leaf))
  const list = {
    ...leaf,
    path: [...leaf.path, 'list'],
    maxDefinition: maxDefinition + 1,
    maxRepetition: maxRepetition + 1,
  }
  return leavesOf({ name: 'element', type: type.list, isNullable: false }, list)
}

/** A field and its nested fields as elements of the schema. */
function elements({ name, type, isNullable }: Field): SchemaElement[] {
  const repetition_type = isNullable ? 'OPTIONAL' : 'REQUIRED'
  if (typeof type === 'string') return [{ name, repetition_type, ...LEAVES[type] }]
  if ('struct' in type) {
    return [{ name, repetition_type, num_children: type.struct.length }, ...type.struct.flatMap(elements)]
  }
  return [
    { name, repetition_type, num_children: 1, converted_type: 'LIST', logical_type: { type: 'LIST' } },
    { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
    ...elements({ name: 'element', type: type.list, isNullable: false }),
  ]
}

/** Whole numbers as a dictionary, if few are distinct. */
function fewIntegers(numbers: Float64Array): { integers: BigInt64Array; codes: Int32Array } | null {
  const most = numbers.length * DICTIONARY_PART
  const counts = new Map<number, number>()
  const codes = new Int32Array(numbers.length)
  let last = -1
  for (let i = 0; i < numbers.length; i++) {
    const number = numbers[i]!
    if (i === 0 || number !== numbers[i - 1]) {
      last = counts.get(number) ?? counts.size
      counts.set(number, last)
      if (counts.size > most) return null
    }
    codes[i] = last
  }
  return { integers: BigInt64Array.from(counts.keys(), BigInt), codes }
}

/** Whole numbers for hyparquet-writer, with null for missing ones. */
function integersOf({ numbers, missing }: NumberColumn): DecodedArray {
  return Array.from(numbers, (number, i) => (missing?.[i] ? null : BigInt(number)))
}
