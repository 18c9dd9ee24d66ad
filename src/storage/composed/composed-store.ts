/**
 * A store of files that consist of pieces of another store's files, or of other such files: tensors of checkpoints, as
 * records. All other files are those of the underlying store.
 */

import { FormatError } from '../../base/errors.js'
import { readShape } from '../read-shape.js'
import type { ComposedStoreSpec, ListOptions, ReadContext, Store } from '../store.js'
import type { Piece } from './strided.js'
import { type ComposedFile, Table } from './table.js'
import type { TableData } from './table-data.js'

/** The longest gap between small pieces that one read spans. */
const LOCAL_GAP_BYTES = 16 << 10
const LOCAL_JOINED_BYTES = 256 << 10
const REMOTE_JOINED_BYTES = 8 << 20
const REQUESTS_AT_ONCE = 16
/** The number of underlying files whose times make up the stamp of a composed file. */
const MAX_STAMPED = 64
/** The number of bytes of scattered elements in a chunk of a stream. */
const STREAM_BYTES = 1 << 20

/** Pieces of one file that one read spans. */
interface JoinedRead {
  readonly file: string
  readonly start: number
  byteLength: number
  readonly pieces: Piece[]
}

const tablesByData = new WeakMap<TableData, Table>()

function tableOf(data: TableData): Table {
  const known = tablesByData.get(data)
  if (known !== undefined) return known
  const table = new Table(data)
  tablesByData.set(data, table)
  return table
}

export class ComposedStore implements Store {
  readonly spec: ComposedStoreSpec
  readonly within?: (context: ReadContext) => Store
  readonly readLater?: NonNullable<Store['readLater']>
  readonly stream?: NonNullable<Store['stream']>
  readonly folders?: NonNullable<Store['folders']>
  readonly release?: NonNullable<Store['release']>
  readonly readSmall?: NonNullable<Store['readSmall']>
  readonly versionOf?: NonNullable<Store['versionOf']>
  readonly hold?: NonNullable<Store['hold']>
  readonly watch?: NonNullable<Store['watch']>
  readonly #base: Store
  readonly #tables: readonly Table[]
  readonly #gapByteLength: number
  readonly #joinedByteLength: number

  constructor(base: Store, spec: ComposedStoreSpec, tables: readonly Table[] = spec.tables.map(tableOf)) {
    this.spec = spec
    this.#base = base
    this.#tables = tables
    const shape = readShape(spec.base)
    this.#gapByteLength = shape?.gapByteLength ?? LOCAL_GAP_BYTES
    this.#joinedByteLength = shape === null ? LOCAL_JOINED_BYTES : REMOTE_JOINED_BYTES
    const { within, readLater, stream, folders } = base
    if (within) this.within = context => new ComposedStore(within(context), spec, tables)
    if (folders) this.folders = folders
    if (base.release) this.release = () => base.release!()
    if (base.readSmall) this.readSmall = (path, buffer) => base.readSmall!(path, buffer)
    if (base.watch) this.watch = directories => base.watch!(directories)
    if (base.hold) this.hold = path => base.hold!(path)
    if (base.versionOf) this.versionOf = path => base.versionOf!(path)
    if (readLater) {
      this.readLater = (path, startByte, byteLength, view) => {
        const file = this.#find(path)
        return file === null
          ? readLater(path, startByte, byteLength, view)
          : this.#readLater(file, startByte, byteLength, view)
      }
    }
    if (stream) {
      this.stream = (path, startByte, byteLength, take) => {
        const file = this.#find(path)
        return file === null
          ? stream(path, startByte, byteLength, take)
          : this.#stream(file, startByte, byteLength, take)
      }
    }
  }

  open(): Promise<void> {
    return this.#base.open()
  }

  url(path: string): string {
    const file = this.#find(path)
    return file === null ? this.#base.url(path) : this.url(file.place)
  }

  list(directory: string, options?: ListOptions): Promise<string[]> {
    return this.#base.list(directory, options)
  }

  async exists(path: string): Promise<boolean> {
    return this.#find(path) !== null || this.#base.exists(path)
  }

  async read(
    path: string,
    options: { readonly maxByteLength: number; readonly isText?: boolean },
  ): Promise<Uint8Array> {
    const file = this.#find(path)
    if (file === null) return this.#base.read(path, options)
    const bytes = new Uint8Array(Math.min(file.table.byteLength(file), options.maxByteLength))
    await this.readInto(path, 0, bytes)
    return bytes
  }

  readInto(path: string, startByte: number, view: Uint8Array): number | Promise<number> {
    const file = this.#find(path)
    if (file === null) return this.#base.readInto(path, startByte, view)
    if (this.#base.readLater) return this.#readLater(file, startByte, view.byteLength, () => view)
    let last: Promise<unknown> | null = null
    const available = this.#available(file, startByte, view.byteLength)
    for (const read of this.#reads(file, startByte, view.byteLength, view)) {
      // A store that answers later, as files of a page do, answers in turn.
      if (last === null) last = this.#readNow(file, read, () => view)
      else last = last.then(() => this.#readNow(file, read, () => view) ?? undefined)
    }
    return last === null ? available : last.then(() => available)
  }

  headByteLength(path: string, startByte: number): number | undefined {
    const file = this.#find(path)
    return file?.table.headByteLength(file, startByte)
  }

  async stamps(paths: readonly string[]): Promise<Float64Array> {
    const stamps = new Float64Array(paths.length * 3)
    for (const [i, path] of paths.entries()) {
      const file = this.#find(path)
      if (file === null) {
        stamps.set(await this.#base.stamps([path]), i * 3)
        continue
      }
      const sources = await this.stamps(file.table.sources(file).slice(0, MAX_STAMPED))
      let [length, modified, changed] = [0, 0, 0]
      for (let at = 0; at < sources.length; at += 3) {
        length += sources[at]!
        modified += sources[at + 1]!
        changed += sources[at + 2]!
      }
      stamps.set([length, modified, changed], i * 3)
    }
    return stamps
  }

  async byteLength(path: string): Promise<number> {
    const file = this.#find(path)
    return file === null ? this.#base.byteLength(path) : file.table.byteLength(file)
  }

  close(): Promise<void> {
    return this.#base.close()
  }

  #find(path: string): ComposedFile | null {
    for (const table of this.#tables) {
      const file = table.files.get(path)
      if (file !== undefined) return file
    }
    return null
  }

  /** The number of the requested bytes that exist. */
  #available(file: ComposedFile, startByte: number, byteLength: number): number {
    return Math.max(0, Math.min(byteLength, file.table.byteLength(file) - startByte))
  }

  /** The reads that are needed, in the order of the files. Bytes in the table are copied at once. */
  #reads(file: ComposedFile, startByte: number, byteLength: number, view: Uint8Array): readonly JoinedRead[] {
    const pieces: Piece[] = []
    for (const piece of file.table.pieces(file, startByte, byteLength)) {
      if (piece.file === null) view.set(piece.bytes!, piece.at)
      else pieces.push(piece)
    }
    if (pieces.length > 1) {
      pieces.sort((a, b) => (a.file === b.file ? a.start - b.start : a.file! < b.file! ? -1 : 1))
    }
    const reads: JoinedRead[] = []
    for (const piece of pieces) {
      const last = reads.at(-1)
      const end = piece.start + piece.byteLength
      if (
        last !== undefined &&
        last.file === piece.file &&
        piece.start - (last.start + last.byteLength) <= this.#gapByteLength &&
        Math.max(end, last.start + last.byteLength) - last.start <= this.#joinedByteLength
      ) {
        last.byteLength = Math.max(last.byteLength, end - last.start)
        last.pieces.push(piece)
      } else reads.push({ file: piece.file!, start: piece.start, byteLength: piece.byteLength, pieces: [piece] })
    }
    return reads
  }

  /** @returns null once it is done, or a promise */
  #readNow({ table }: ComposedFile, read: JoinedRead, view: () => Uint8Array): Promise<void> | null {
    const { file, start, byteLength, pieces } = read
    const [first] = pieces as [Piece]
    const isDirect = pieces.length === 1 && first.scatter === undefined
    const into = isDirect ? view().subarray(first.at, first.at + byteLength) : new Uint8Array(byteLength)
    const put = (got: number): void => {
      if (got < byteLength) throw this.#cutOff(file, start + byteLength, start + got)
      this.#expectSame(table, file)
      if (!isDirect) putAll(read, into, view())
    }
    const got = this.readInto(file, start, into)
    if (typeof got !== 'number') return got.then(put)
    put(got)
    return null
  }

  async #readLater(file: ComposedFile, startByte: number, byteLength: number, view: () => Uint8Array): Promise<number> {
    const reads = this.#reads(file, startByte, byteLength, view())
    let next = 0
    const work = async (): Promise<void> => {
      while (next < reads.length) {
        const read = reads[next++]!
        const [first] = read.pieces as [Piece]
        if (read.pieces.length === 1 && first.scatter === undefined) {
          const place = (): Uint8Array => view().subarray(first.at, first.at + read.byteLength)
          const got = await this.readLater!(read.file, read.start, read.byteLength, place)
          if (got < read.byteLength) throw this.#cutOff(read.file, read.start + read.byteLength, read.start + got)
          this.#expectSame(file.table, read.file)
          continue
        }
        const bytes = new Uint8Array(read.byteLength)
        const got = await this.readLater!(read.file, read.start, read.byteLength, () => bytes)
        if (got < read.byteLength) throw this.#cutOff(read.file, read.start + read.byteLength, read.start + got)
        this.#expectSame(file.table, read.file)
        putAll(read, bytes, view())
      }
    }
    await Promise.all(Array.from({ length: Math.min(REQUESTS_AT_ONCE, reads.length) }, work))
    return this.#available(file, startByte, byteLength)
  }

  async #stream(
    file: ComposedFile,
    startByte: number,
    byteLength: number,
    take: (chunk: Uint8Array) => void,
  ): Promise<number> {
    const available = this.#available(file, startByte, byteLength)
    const pieces = [...file.table.pieces(file, startByte, available)]
    if (pieces.every(({ scatter }) => scatter === undefined)) {
      pieces.sort((a, b) => a.at - b.at)
      for (const { file: source, start, byteLength, bytes } of pieces) {
        if (source === null) take(bytes!)
        else {
          const got = await this.stream!(source, start, byteLength, take)
          if (got < byteLength) throw this.#cutOff(source, start + byteLength, start + got)
          this.#expectSame(file.table, source)
        }
      }
      return available
    }
    const window = new Uint8Array(Math.min(STREAM_BYTES, available))
    for (let at = 0; at < available; at += window.length) {
      const wanted = window.subarray(0, available - at)
      await this.#readLater(file, startByte + at, wanted.length, () => wanted)
      take(wanted)
    }
    return available
  }

  /**
   * Checks that the file is still the one whose header was read. It runs after the read, so that nothing changes
   * between the two.
   * @throws FormatError `ObjectChanged`
   */
  #expectSame(table: Table, file: string): void {
    const version = table.versionOf(file)
    if (version === undefined || this.#base.versionOf === undefined || this.#base.versionOf(file) === version) return
    const url = this.#base.url(file)
    const [expected, got] = ['the file whose header was read', 'another, or one that was changed since']
    const message = `${url}: expected ${expected}, got ${got}: open the checkpoint again`
    throw new FormatError('CheckpointChanged', message, { url, expected, got })
  }

  /** The error for a file that ends early, though it was whole when its header was read. */
  #cutOff(file: string, expected: number, got: number): FormatError {
    const url = this.#base.url(file)
    const message = `${url}: expected ${expected} bytes, got ${got}: it was cut or replaced while it was read`
    return new FormatError('CheckpointChanged', message, {
      url,
      offset: got,
      expected: `${expected} bytes`,
      got: `${got}`,
    })
  }
}

function putAll({ start, pieces }: JoinedRead, bytes: Uint8Array, view: Uint8Array): void {
  for (const { start: from, byteLength, at, scatter } of pieces) {
    const part = bytes.subarray(from - start, from - start + byteLength)
    if (scatter) scatter(part, view)
    else view.set(part, at)
  }
}
