/** Writes groups of rows as an Apache Arrow IPC stream: a record batch for each group, with texts in dictionaries. */

import {
  Field as ArrowField,
  AsyncByteQueue,
  Bool,
  type Data,
  type DataType,
  Dictionary,
  Float64,
  Int32,
  Int64,
  List,
  makeData,
  RecordBatch,
  RecordBatchStreamWriter,
  Schema,
  Struct,
  Uint64,
  Utf8,
  type Vector,
  vectorFromArray,
} from 'apache-arrow'
import type { ColumnData, NumberColumn, TextColumn } from './column.js'
import type { Group } from './group.js'
import type { Field, FieldType } from './schema.js'

/** Yields the bytes of the stream as they are ready. @param metadata key-value metadata */
export async function* tableFile(
  fields: readonly Field[],
  groups: AsyncIterable<Group>,
  metadata: Readonly<Record<string, string>>,
): AsyncGenerator<Uint8Array> {
  const schema = new Schema(fields.map(arrowField), new Map(Object.entries(metadata)))
  const chunks = new Chunks()
  const writer = new RecordBatchStreamWriter()
  writer.reset(chunks, schema)
  for await (const group of groups) {
    const { length } = group
    const children = schema.fields.map(({ type }, i) => dataOf(type, group.column(fields[i]!.name), length))
    writer.write(new RecordBatch(schema, makeData({ type: new Struct(schema.fields), length, children })))
    yield* chunks.take()
  }
  writer.finish()
  yield* chunks.take()
}

/** The chunks that the writer has written and the reader has not yet taken. */
class Chunks extends AsyncByteQueue {
  #chunks: Uint8Array[] = []

  override write(chunk: Uint8Array): void {
    if (chunk.byteLength > 0) this.#chunks.push(chunk)
  }

  take(): readonly Uint8Array[] {
    const chunks = this.#chunks
    this.#chunks = []
    return chunks
  }
}

function arrowField({ name, type, isNullable }: Field): ArrowField {
  return new ArrowField(name, arrowType(type, true), isNullable)
}

/** @param isColumn true if texts repeat */
function arrowType(type: FieldType, isColumn = false): DataType {
  if (typeof type !== 'string') {
    return 'list' in type
      ? new List(new ArrowField('item', arrowType(type.list), false))
      : new Struct(type.struct.map(({ name, type, isNullable }) => new ArrowField(name, arrowType(type), isNullable)))
  }
  switch (type) {
    case 'text':
      return isColumn ? new Dictionary(new Utf8(), new Int32()) : new Utf8()
    case 'int64':
      return new Int64()
    case 'uint64':
      return new Uint64()
    case 'float64':
      return new Float64()
    case 'boolean':
      return new Bool()
  }
}

function dataOf(type: DataType, column: ColumnData, length: number): Data {
  if ('texts' in column) return textData(type as Dictionary<Utf8, Int32>, column, length)
  if ('numbers' in column) return numberData(type, column, length)
  if ('pieces' in column) throw new TypeError('expected numbers, got pages of Parquet')
  if ('lists' in column) {
    const lists = column.lists.map(list => list.map(BigInt))
    return onlyChunk(
      vectorFromArray(
        Array.from(column.codes, code => lists[code] ?? null),
        type,
      ),
    )
  }
  const values = column.values?.map(value => withNulls(type, value)) ?? new Array<null>(length).fill(null)
  return onlyChunk(vectorFromArray(values, type))
}

/** A struct in which absent fields are null. */
function withNulls(type: DataType, value: unknown): unknown {
  if (!(type instanceof Struct) || value == null) return value ?? null
  const fields = value as Readonly<Record<string, unknown>>
  return Object.fromEntries(type.children.map(({ name, type }) => [name, withNulls(type, fields[name])]))
}

function textData(type: Dictionary<Utf8, Int32>, { texts, codes }: TextColumn, length: number): Data {
  const nulls = bits(length, i => codes[i]! >= 0)
  const dictionary = vectorFromArray(texts, new Utf8())
  return makeData({ type, length, data: codes, dictionary, ...nulls })
}

function numberData(type: DataType, { numbers, missing }: NumberColumn, length: number): Data {
  const nulls = missing === null ? {} : bits(length, i => missing[i] === 0)
  if (type instanceof Bool) {
    return makeData({ type, length, data: bits(length, i => numbers[i] !== 0).nullBitmap, ...nulls })
  }
  if (type instanceof Int64) return makeData({ type, length, data: BigInt64Array.from(numbers, BigInt), ...nulls })
  return makeData({ type: type as Float64, length, data: numbers, ...nulls })
}

/** A bit for each row, and the number of zeros. */
function bits(length: number, isSet: (i: number) => boolean): { nullBitmap: Uint8Array; nullCount: number } {
  const nullBitmap = new Uint8Array((length + 7) >> 3)
  let nullCount = 0
  for (let i = 0; i < length; i++) {
    if (isSet(i)) nullBitmap[i >> 3]! |= 1 << (i & 7)
    else nullCount++
  }
  return { nullBitmap, nullCount }
}

function onlyChunk(vector: Vector): Data {
  const [data] = vector.data
  if (data === undefined || vector.data.length > 1) throw new TypeError('expected a vector in one piece')
  return data
}
