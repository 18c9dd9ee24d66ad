/** Pickles and archives of torch, written by hand, opcode by opcode. */

import { crc32 } from 'node:zlib'

export type Piece = Uint8Array | readonly number[] | string

/** Pieces one after the other; a text is its characters as bytes. */
export function bytesOf(...pieces: readonly Piece[]): Uint8Array {
  return joined(pieces)
}

/** The same of very many pieces, which are too many for arguments. */
function joined(pieces: readonly Piece[]): Uint8Array {
  return new Uint8Array(
    Buffer.concat(pieces.map(piece => (typeof piece === 'string' ? Buffer.from(piece) : Uint8Array.from(piece)))),
  )
}

export const PROTO2: Piece = [0x80, 2]
export const MARK: Piece = [0x28]
export const STOP: Piece = [0x2e]
export const REDUCE: Piece = [0x52]
export const BUILD: Piece = [0x62]
export const NONE: Piece = [0x4e]
export const EMPTY_DICT: Piece = [0x7d]
export const EMPTY_LIST: Piece = [0x5d]
export const EMPTY_TUPLE: Piece = [0x29]
export const SETITEMS: Piece = [0x75]

function littleEndian(value: number, byteLength: number): readonly number[] {
  return Array.from({ length: byteLength }, (_, i) => Math.floor(value / 256 ** i) % 256)
}

export function uint32(value: number): readonly number[] {
  return littleEndian(value, 4)
}

export function uint64(value: number): readonly number[] {
  return littleEndian(value, 8)
}

export function text(value: string): Uint8Array {
  const bytes = Buffer.from(value)
  return bytesOf([0x58], uint32(bytes.length), bytes)
}

export function int(value: number): Uint8Array {
  return bytesOf([0x4a], uint32(value >>> 0))
}

export function global(module: string, name: string): Uint8Array {
  return bytesOf(`c${module}\n${name}\n`)
}

export function tuple(...items: readonly Piece[]): Uint8Array {
  return bytesOf(MARK, ...items, [0x74])
}

export function call(module: string, name: string, ...values: readonly Piece[]): Uint8Array {
  return bytesOf(global(module, name), tuple(...values), REDUCE)
}

export function dict(entries: Readonly<Record<string, Piece>>): Uint8Array {
  const items = Object.entries(entries).flatMap(([key, value]) => [text(key), value])
  return joined([EMPTY_DICT, MARK, joined(items), SETITEMS])
}

export function list(...items: readonly Piece[]): Uint8Array {
  return listOf(items)
}

function listOf(items: readonly Piece[]): Uint8Array {
  return joined([EMPTY_LIST, MARK, joined(items), [0x65]])
}

export function pickled(...pieces: readonly Piece[]): Uint8Array {
  return bytesOf(PROTO2, ...pieces, STOP)
}

export interface TensorPiece {
  readonly key?: string
  readonly storage?: string
  readonly count: number
  readonly offset?: number
  readonly size: readonly number[]
  readonly stride: readonly number[]
  /** What follows in the arguments, and makes it `_rebuild_tensor_v3`. */
  readonly dtype?: string
  readonly metadata?: Piece
}

/** `_rebuild_tensor_v2` of a storage. */
export function tensor({
  key = '0',
  storage = 'FloatStorage',
  count,
  offset = 0,
  size,
  stride,
  dtype,
  metadata,
}: TensorPiece): Uint8Array {
  const module = storage === 'UntypedStorage' ? 'torch.storage' : 'torch'
  const id = tuple(text('storage'), global(module, storage), text(key), text('cpu'), int(count))
  const values = [
    bytesOf(id, [0x51]),
    int(offset),
    tuple(...size.map(int)),
    tuple(...stride.map(int)),
    [0x89],
    call('collections', 'OrderedDict'),
  ]
  const more = metadata === undefined ? [] : [metadata]
  return dtype === undefined
    ? call('torch._utils', '_rebuild_tensor_v2', ...values, ...more)
    : call('torch._utils', '_rebuild_tensor_v3', ...values, global('torch', dtype), ...more)
}

export interface MemberPiece {
  readonly content: Uint8Array
  readonly method?: number
  readonly crc?: number
}

/** An archive as torch writes it: local headers without sizes, content at multiples of 64, a descriptor behind it, ZIP64. */
export function torchZip(
  members: Readonly<Record<string, Uint8Array | MemberPiece>>,
  prefix = 'archive',
  alignment = 64,
): Uint8Array {
  const parts: Uint8Array[] = []
  const central: Uint8Array[] = []
  let at = 0
  const push = (part: Uint8Array) => {
    parts.push(part)
    at += part.length
  }
  for (const [name, given] of Object.entries(members)) {
    const { content, method = 0, crc = crc32(content) } = given instanceof Uint8Array ? { content: given } : given
    const path = Buffer.from(prefix === '' ? name : `${prefix}/${name}`)
    const flags = content.length === 0 ? 0x0800 : 0x0808
    const offset = at
    const plain = at + 30 + path.length + 4
    const padding = (alignment - (plain % alignment)) % alignment
    push(
      bytesOf('PK\x03\x04', littleEndian(0, 2), littleEndian(flags, 2), littleEndian(method, 2), uint32(0), uint32(0)),
    )
    push(bytesOf(uint32(0), uint32(0), littleEndian(path.length, 2), littleEndian(padding + 4, 2), path))
    push(bytesOf('FB', littleEndian(padding, 2), new Uint8Array(padding).fill(0x5a)))
    push(content)
    if (content.length > 0) push(bytesOf('PK', [7, 8], uint32(crc), uint32(content.length), uint32(content.length)))
    central.push(
      bytesOf('PK', [1, 2, 0, 0, 0, 0], littleEndian(flags, 2), littleEndian(method, 2), uint32(0), uint32(crc)),
      bytesOf(uint32(content.length), uint32(content.length), littleEndian(path.length, 2)),
      bytesOf(new Uint8Array(12), uint32(offset), path),
    )
  }
  const [start, count] = [at, central.length / 3]
  for (const part of central) push(part)
  const length = at - start
  const end = at
  push(bytesOf('PK', [6, 6], uint64(44), [30, 3, 45, 0], uint32(0), uint32(0), uint64(count), uint64(count)))
  push(bytesOf(uint64(length), uint64(start)))
  push(bytesOf('PK', [6, 7], uint32(0), uint64(end), uint32(1)))
  push(
    bytesOf(
      'PK',
      [5, 6],
      uint32(0),
      littleEndian(count, 2),
      littleEndian(count, 2),
      uint32(length),
      uint32(start),
      [0, 0],
    ),
  )
  return bytesOf(...parts)
}

export interface ChunkPiece {
  readonly offsets: readonly number[]
  readonly sizes: readonly number[]
  /** Undefined: storage_data has no place for it. */
  readonly place?: {
    readonly file: string
    readonly start: number
    readonly length: number
    readonly transform?: Piece
  }
}

export interface DistributedPiece {
  readonly size: readonly number[]
  readonly chunks: readonly ChunkPiece[]
  /** Default: float32. */
  readonly dtype?: string
}

const METADATA = 'torch.distributed.checkpoint.metadata'

/** What comes once for each chunk is remembered, as a pickler does; by its place in the memo. */
const REMEMBERED: readonly Piece[] = [
  global('torch', 'Size'),
  global(METADATA, 'ChunkStorageMetadata'),
  global(METADATA, 'MetadataIndex'),
  global('torch.distributed.checkpoint.filesystem', '_StorageInfo'),
  ...['offsets', 'sizes', 'fqn', 'offset', 'index', 'relative_path', 'length'].map(text),
]
const [SIZE, CHUNK, INDEX, INFO, OFFSETS, SIZES, FQN, OFFSET, NUMBER, PATH, LENGTH] = REMEMBERED.map(
  (_, i) => [0x68, i] as Piece,
) as [Piece, Piece, Piece, Piece, Piece, Piece, Piece, Piece, Piece, Piece, Piece]

/** An object as protocol 2 has it: its class without arguments, and its state. */
function object(of: Piece, state: Piece): Uint8Array {
  return bytesOf(of, EMPTY_TUPLE, [0x81], state, BUILD)
}

function dictOf(...items: readonly Piece[]): Uint8Array {
  return bytesOf(EMPTY_DICT, MARK, ...items, SETITEMS)
}

function size(sizes: readonly number[]): Uint8Array {
  return bytesOf(SIZE, tuple(tuple(...sizes.map(int))), REDUCE)
}

/** `.metadata` of torch.distributed.checkpoint. */
export function distributedMetadata(tensors: Readonly<Record<string, DistributedPiece>>): Uint8Array {
  const described = Object.entries(tensors).map(([name, { size: whole, chunks, dtype = 'float32' }]) => [
    name,
    object(
      global(METADATA, 'TensorStorageMetadata'),
      dict({
        properties: object(
          global(METADATA, 'TensorProperties'),
          tuple(global('torch', dtype), NONE, [0x89], NONE, [0x89]),
        ),
        size: size(whole),
        chunks: listOf(
          chunks.map(({ offsets, sizes }) => object(CHUNK, dictOf(OFFSETS, size(offsets), SIZES, size(sizes)))),
        ),
      }),
    ),
  ])
  const places = Object.entries(tensors).flatMap(([name, { chunks }]) =>
    chunks.flatMap(({ offsets, place }, index) =>
      place === undefined
        ? []
        : [
            object(INDEX, dictOf(FQN, text(name), OFFSET, size(offsets), NUMBER, int(index))),
            object(
              INFO,
              dictOf(
                ...[PATH, text(place.file), OFFSET, int(place.start), LENGTH, int(place.length)],
                ...(place.transform ? [text('transform_descriptors'), place.transform] : []),
              ),
            ),
          ],
    ),
  )
  return pickled(
    ...REMEMBERED.map((piece, i) => bytesOf(piece, [0x71, i, 0x30])),
    object(
      global(METADATA, 'Metadata'),
      dict({
        state_dict_metadata: dict(Object.fromEntries(described)),
        planner_data: NONE,
        storage_data: joined([EMPTY_DICT, MARK, joined(places), SETITEMS]),
      }),
    ),
  )
}
