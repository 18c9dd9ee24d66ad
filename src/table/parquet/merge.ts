/** Merges Parquet files with the same columns: their row groups are copied unchanged, under one footer. */

import type { FileMetaData } from 'hyparquet'
import { parquetMetadata } from 'hyparquet/src/metadata.js'
import { ByteWriter, ParquetWriter } from 'hyparquet-writer'

/** A file that is read by ranges. */
export interface RangeFile {
  /** The name of the file in messages. */
  readonly url: string
  readonly byteLength: number
  read(begin: number, end: number): Promise<Uint8Array>
}

/** The size of a copied piece, in bytes. */
const COPIED_BYTES = 8 << 20
const MAGIC_BYTES = 4
/** The length of the footer's length and the magic number. */
const TAIL_BYTES = 8

/** Yields the bytes of one file with the rows of all, in order. @param metadata key-value metadata, which replaces that of the files */
export async function* mergedFile(
  files: AsyncIterable<RangeFile>,
  metadata: Readonly<Record<string, string>>,
): AsyncGenerator<Uint8Array> {
  const bytes = new ByteWriter()
  let parquet: ParquetWriter | null = null
  let schema = ''
  let at = MAGIC_BYTES
  for await (const file of files) {
    const { footer, dataEnd } = await footerOf(file)
    if (parquet === null) {
      schema = JSON.stringify(footer.schema)
      const kvMetadata = Object.entries(metadata).map(([key, value]) => ({ key, value }))
      parquet = new ParquetWriter({ writer: bytes, schema: footer.schema, createdBy: 'trialscan', kvMetadata })
      // The magic number that the writer has written.
      yield bytes.getBytes().slice()
      bytes.index = 0
    }
    if (JSON.stringify(footer.schema) !== schema)
      throw new Error(`${file.url}: expected the columns of the other files`)
    for (let begin = MAGIC_BYTES; begin < dataEnd; begin += COPIED_BYTES) {
      yield await file.read(begin, Math.min(dataEnd, begin + COPIED_BYTES))
    }
    const by = BigInt(at - MAGIC_BYTES)
    for (const group of footer.row_groups) {
      if (group.num_rows === 0n) continue
      parquet.row_groups.push({ ...group, columns: group.columns.map(column => moved(column, by)) })
      parquet.num_rows += group.num_rows
    }
    at += dataEnd - MAGIC_BYTES
  }
  if (parquet === null) return
  parquet.finish()
  yield bytes.getBytes().slice()
}

async function footerOf(file: RangeFile): Promise<{ readonly footer: FileMetaData; readonly dataEnd: number }> {
  const tail = await file.read(file.byteLength - TAIL_BYTES, file.byteLength)
  const length = new DataView(tail.buffer, tail.byteOffset).getUint32(0, true)
  const dataEnd = file.byteLength - TAIL_BYTES - length
  const footer = await file.read(dataEnd, file.byteLength)
  return { footer: parquetMetadata(Uint8Array.from(footer).buffer), dataEnd }
}

type Column = FileMetaData['row_groups'][number]['columns'][number]

/** A column's metadata, adjusted to its place in the new file. */
function moved(column: Column, by: bigint): Column {
  const { file_offset, meta_data, ...others } = column
  return {
    ...others,
    file_offset: file_offset === 0n ? file_offset : file_offset + by,
    ...(meta_data && {
      meta_data: {
        ...meta_data,
        data_page_offset: meta_data.data_page_offset + by,
        ...(meta_data.dictionary_page_offset !== undefined && {
          dictionary_page_offset: meta_data.dictionary_page_offset + by,
        }),
      },
    }),
  }
}
