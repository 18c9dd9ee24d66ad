/** What jobs about records share: how a record is asked for, refused, opened and described. */

import { type Engine, type Found, FRAMING_LENGTH, HEADER_LENGTH } from '../engine/engine.js'
import { type ErrorData, FormatError, inShort, quote, StoreError, TrialscanError } from '../errors.js'
import { decodeHistogram, type Histogram } from '../format/histogram.js'
import { RECORD_LIMIT } from '../job/memory.js'
import type { Descriptions } from '../job/reply.js'
import type { RawValue } from '../job/value.js'
import type { JobRecords, RecordColumns } from '../plan.js'
import { readShape, type Store, type StoreSpec } from '../store/store.js'
import { LargeRecord } from './large.js'

/** A histogram takes 16 bytes a bucket. */
const MAX_HISTOGRAM_BYTES = 16 << 20

export function rawValue(
  found: Found,
  bytes: Uint8Array<ArrayBuffer> | null,
  strings: string[] | null,
  engine: Engine,
): RawValue {
  const { dtype, shape } = found
  const widened =
    bytes !== null && (dtype === 'float16' || dtype === 'bfloat16')
      ? engine.widenToFloat32(dtype, new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 2))
      : null
  return { dtype, shape, bytes: bytes ?? new Uint8Array(0), widened, strings }
}

/**
 * The histogram in a record where the core finds no tensor of its tag, as in TensorBoard's files; null if there is none.
 * The core has checked the record by then. If it can't be read a second time, what the core said of it stands.
 */
export async function readHistogram(
  { files, tags, records }: JobRecords,
  record: number,
  code: string,
  store: Store,
): Promise<Histogram | null> {
  const byteLength = records.byteLength[record]!
  if ((code !== 'NoTensor' && code !== 'TagMismatch') || byteLength > MAX_HISTOGRAM_BYTES) return null
  const frame = new Uint8Array(byteLength)
  try {
    await store.readInto(files[records.file[record]!]!, records.startByte[record]!, frame)
  } catch (error) {
    if (error instanceof StoreError) return null
    throw error
  }
  const event = frame.subarray(HEADER_LENGTH, byteLength - (FRAMING_LENGTH - HEADER_LENGTH))
  return decodeHistogram(event, tags[records.tag[record]!]!)
}

export function shapeOf({ rows }: Histogram): number[] {
  return [rows.length / 3, 3]
}

/**
 * What failed, as data, so that the rest of the job stands: the file in short, since many records can fail with it. An error
 * that is not ours is a bug, and ends the job.
 */
export function failureData(error: unknown): ErrorData {
  if (error instanceof TrialscanError) return inShort(error.toJSON())
  throw error
}

/**
 * A store that has the heads of a job's records already, or all of a record that is not longer: asked for together where
 * reading is making requests, the same store where it is not.
 */
export async function withHeads(
  job: JobRecords & { readonly store: StoreSpec },
  store: Store,
  headLength: number,
): Promise<Store> {
  const { readLater } = store
  if (readLater === undefined) return store
  const { files, records } = job
  const { gapByteLength } = readShape(job.store)!
  const places = Array.from(records.file, (file, i) => {
    const startByte = records.startByte[i]!
    // A length that can't be is refused unread.
    const byteLength = records.byteLength[i]! > RECORD_LIMIT ? 0 : Math.min(records.byteLength[i]!, headLength)
    return { path: files[file]!, startByte, endByte: startByte + byteLength }
  }).sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : a.startByte - b.startByte))
  const pieces = new Map<string, { startByte: number; endByte: number; read?: Promise<Uint8Array> }[]>()
  for (const { path, startByte, endByte } of places) {
    const ofFile = pieces.get(path) ?? []
    pieces.set(path, ofFile)
    const last = ofFile.at(-1)
    if (last && startByte - last.endByte <= gapByteLength) last.endByte = Math.max(last.endByte, endByte)
    else ofFile.push({ startByte, endByte })
  }
  for (const [path, ofFile] of pieces) {
    for (const piece of ofFile) {
      const bytes = new Uint8Array(piece.endByte - piece.startByte)
      piece.read = readLater(path, piece.startByte, bytes.length, () => bytes).then(there => bytes.subarray(0, there))
      piece.read.catch(() => {})
    }
  }
  const fromPieces = async (path: string, startByte: number, view: Uint8Array): Promise<number> => {
    const endByte = startByte + view.length
    const piece = pieces.get(path)?.find(piece => piece.startByte <= startByte && piece.endByte >= endByte)
    if (piece?.read === undefined) return store.readInto(path, startByte, view)
    const bytes = (await piece.read).subarray(startByte - piece.startByte, endByte - piece.startByte)
    view.set(bytes)
    return bytes.length
  }
  return {
    spec: store.spec,
    open: () => store.open(),
    url: path => store.url(path),
    list: (directory, options) => store.list(directory, options),
    exists: path => store.exists(path),
    read: (path, options) => store.read(path, options),
    readInto: fromPieces,
    readLater,
    stamps: paths => store.stamps(paths),
    byteLength: path => store.byteLength(path),
    watch: directories => store.watch(directories),
    close: () => store.close(),
  }
}

/** Opens a record that need not fit into memory. */
export async function openLarge(
  job: JobRecords & { readonly checkLevel: number; readonly windowByteLength: number },
  record: number,
  engine: Engine,
  store: Store,
  aheadByteLength = 0,
): Promise<LargeRecord> {
  const { records } = job
  const refused = impossibleLength(job, record, store)
  if (refused) throw refused
  engine.reset()
  const tags = engine.writeTags([job.tags[records.tag[record]!]!])
  return LargeRecord.open(engine, store, {
    path: job.files[records.file[record]!]!,
    startByte: records.startByte[record]!,
    asked: { ...askedOf(records, record), tag: 0 },
    tags,
    place: placeOf(job, record, store),
    checkLevel: job.checkLevel,
    windowByteLength: job.windowByteLength,
    aheadByteLength,
  })
}

export function askedOf(records: RecordColumns, record: number) {
  return {
    byteLength: records.byteLength[record]!,
    tag: records.tag[record]!,
    step: records.step[record]!,
    tornasole: records.tornasole[record] === 1,
  }
}

export function placeOf({ files, tags, records }: JobRecords, record: number, store: Store) {
  return {
    url: store.url(files[records.file[record]!]!),
    startByte: records.startByte[record]!,
    tensor: tags[records.tag[record]!]!,
  }
}

/** The error of an index entry whose length no record can have; such a record is not read. */
export function impossibleLength(job: JobRecords, record: number, store: Store): FormatError | undefined {
  const byteLength = job.records.byteLength[record]!
  if (byteLength >= FRAMING_LENGTH && byteLength <= RECORD_LIMIT) return undefined
  const { url, startByte, tensor } = placeOf(job, record, store)
  const expected = `a record length between ${FRAMING_LENGTH} and ${RECORD_LIMIT} bytes in the index entry`
  const message = `${url}, offset ${startByte}, tensor ${quote(tensor)}: expected ${expected}, got ${byteLength}`
  return new FormatError('LengthMismatch', message, { url, offset: startByte, expected, got: `${byteLength}`, tensor })
}

/** Collects dtypes and shapes in the order of the records, whatever order they come in. */
export class DescriptionWriter {
  readonly #dtypes: Uint8Array
  readonly #shapes: (readonly number[] | undefined)[]

  constructor(total: number) {
    this.#dtypes = new Uint8Array(total)
    this.#shapes = new Array(total)
  }

  set(record: number, dtype: number, shape: readonly number[]): void {
    this.#dtypes[record] = dtype
    this.#shapes[record] = shape
  }

  finish(): Descriptions {
    const ranks = Uint8Array.from(this.#shapes, shape => shape?.length ?? 0)
    const dims = new Float64Array(ranks.reduce((sum, rank) => sum + rank, 0))
    let at = 0
    for (const shape of this.#shapes) {
      if (shape === undefined) continue
      dims.set(shape, at)
      at += shape.length
    }
    return { dtypes: this.#dtypes, ranks, dims }
  }
}
