/** `.metadata` of torch.distributed.checkpoint: which tensors there are, and which file has which chunk of each. */

import { FormatError } from '../../../base/errors.js'
import { turnsWhenDue } from '../../../base/turns.js'
import { type Handle, KIND, type Pickle } from '../pickle/tape.js'
import type { UnreadTensor } from '../stored-tensor.js'
import { torchFault } from '../torch/fault.js'
import { type ElementType, elementTypeOf } from '../torch/storage.js'
import { integersOf } from '../torch/tensors.js'

export const MAX_CHUNKS = 10_000_000
const MAX_DIMENSIONS = 64
const MAX_PROBLEMS = 100
/** Offsets of all chunks, and as many sizes. */
const MAX_OFFSETS = 3 * MAX_CHUNKS

/** A tensor as `.metadata` has it. */
export interface DistributedTensor {
  readonly name: string
  /** The byte of `.metadata` at which its name begins. */
  readonly at: number
  readonly shape: readonly number[]
  /** The dtype; a text if it is not a known one. */
  readonly type: ElementType | string
  readonly chunkCount: number
  /** The number of its first chunk in the columns, and the place of that chunk's offsets and sizes. */
  readonly firstChunk: number
  readonly firstAxis: number
}

/** Columns of the chunks of all tensors: there may be millions. */
export interface Chunks {
  /** The offsets of each chunk, as many as its tensor has axes; the sizes likewise. */
  readonly offsets: Float64Array
  readonly sizes: Float64Array
  /** The file number of each chunk; -1 for a chunk that no file has, -2 for a transformed one, -3 for one outside of the directory. */
  readonly files: Int32Array
  readonly starts: Float64Array
  readonly lengths: Float64Array
}

/** The numbers of one chunk along the axes of its tensor, of a column of offsets or sizes. */
export function ofChunk({ shape, firstAxis }: DistributedTensor, column: Float64Array, chunk: number): Float64Array {
  const at = firstAxis + chunk * shape.length
  return column.subarray(at, at + shape.length)
}

export interface DistributedMetadata {
  readonly tensors: readonly DistributedTensor[]
  readonly chunks: Chunks
  readonly files: readonly string[]
  /** The byte of `.metadata` at which the name of each file begins. */
  readonly fileNamesAt: readonly number[]
  /** Tensors whose description is no good. */
  readonly unread: readonly UnreadTensor[]
  /** The first faults of entries. */
  readonly problems: readonly FormatError[]
  /** The entries that are no tensors, by name and place. */
  readonly objects: readonly {
    readonly name: string
    readonly file: string
    readonly start: number
    readonly length: number
  }[]
}

export const NO_FILE = -1
export const TRANSFORMED = -2
export const UNSAFE_FILE = -3

/** The name of a class in one place: the last component. */
function classOf(pickle: Pickle, handle: Handle): string | undefined {
  const name = pickle.calleeName(handle)
  return name?.slice(name.lastIndexOf('.') + 1)
}

/** A field of an object that was built from a dict. */
function field(pickle: Pickle, handle: Handle, name: string): Handle | undefined {
  const state = pickle.isNote(handle) ? pickle.part(handle, 'state') : undefined
  return state === undefined ? undefined : pickle.get(state, name)
}

/** Entries between two looks at the clock. */
const AT_ONCE = 512

/** Reads the metadata of a checkpoint. @throws FormatError */
export async function parseMetadata(pickle: Pickle): Promise<DistributedMetadata> {
  const { url, root } = pickle
  const due = turnsWhenDue()
  if (classOf(pickle, root) !== 'Metadata') {
    throw torchFault(url, 0, 'Metadata of torch.distributed.checkpoint', pickle.describe(root))
  }
  const described = field(pickle, root, 'state_dict_metadata')
  if (described === undefined || !pickle.isDict(described)) {
    throw torchFault(url, 0, 'state_dict_metadata: a dict', 'none')
  }
  const broken = new Map<string, UnreadTensor>()
  const tensors = new Map<string, DistributedTensor>()
  const lists = new Map<string, Handle>()
  const count = { chunks: 0, offsets: 0 }
  const isBroken = (name: string, error: unknown): void => {
    if (!(error instanceof FormatError)) throw error
    tensors.delete(name)
    broken.set(name, { name, dtype: '?', error })
  }
  for (let i = 0; i < pickle.size(described); i += 2) {
    if (i % AT_ONCE === 0) await due()
    const [key, value] = [pickle.link(described, i), pickle.link(described, i + 1)]
    if (classOf(pickle, value) !== 'TensorStorageMetadata') continue
    const name = pickle.exactText(key)
    if (name === undefined) throw torchFault(url, 0, 'texts as names of tensors', pickle.describe(key))
    try {
      const { tensor, list } = tensorOf(pickle, { name, at: pickle.startOf(key) }, value, count)
      tensors.set(name, tensor)
      lists.set(name, list)
    } catch (error) {
      isBroken(name, error)
    }
  }
  const chunks: Chunks = {
    offsets: new Float64Array(count.offsets),
    sizes: new Float64Array(count.offsets),
    files: new Int32Array(count.chunks).fill(NO_FILE),
    starts: new Float64Array(count.chunks),
    lengths: new Float64Array(count.chunks),
  }
  let done = 0
  for (const [name, tensor] of tensors) {
    if (++done % AT_ONCE === 0) await due()
    try {
      await fillChunks(pickle, tensor, lists.get(name)!, chunks, due)
    } catch (error) {
      isBroken(name, error)
    }
  }
  const places = new ChunkPlaces(chunks)
  const files: string[] = []
  const fileNumbers = new Map<string, number>()
  const problems: FormatError[] = []
  const fileNamesAt: number[] = []
  const blame = (at: number, expected: string, got: string): void => {
    if (problems.length < MAX_PROBLEMS) problems.push(torchFault(url, at, expected, got))
  }
  const objects: { name: string; file: string; start: number; length: number }[] = []
  const placed = field(pickle, root, 'storage_data')
  if (placed === undefined || !pickle.isDict(placed)) throw torchFault(url, 0, 'storage_data: a dict', 'none')
  for (let i = 0; i < pickle.size(placed); i += 2) {
    if (i % AT_ONCE === 0) await due()
    const entry = placeOf(pickle, pickle.link(placed, i), pickle.link(placed, i + 1))
    let file = fileNumbers.get(entry.file)
    if (file === undefined) {
      const isSafe = /^[^/\\:\0]+$/.test(entry.file) && !entry.file.includes('..')
      if (!isSafe) blame(entry.fileAt, 'names of files beside .metadata', JSON.stringify(entry.file.slice(0, 200)))
      file = isSafe ? files.push(entry.file) - 1 : UNSAFE_FILE
      if (isSafe) fileNamesAt.push(entry.fileAt)
      fileNumbers.set(entry.file, file)
    }
    const { name, offset, index, start, length, isTransformed } = entry
    if (broken.has(name)) continue
    if (offset === undefined) objects.push({ name, file: entry.file, start, length })
    else {
      const tensor = tensors.get(name)
      const chunk = tensor === undefined ? -1 : places.find(tensor, offset, index)
      if (tensor === undefined || chunk < 0) {
        const got = `one of ${JSON.stringify(name.slice(0, 200))} at [${offset.slice(0, 64)}]`
        blame(entry.nameAt, 'places of chunks that tensors have', got)
        continue
      }
      const at = tensor.firstChunk + chunk
      chunks.files[at] = isTransformed ? TRANSFORMED : file
      chunks.starts[at] = start
      chunks.lengths[at] = length
    }
  }
  return { tensors: [...tensors.values()], chunks, files, fileNamesAt, objects, unread: [...broken.values()], problems }
}

/** A tensor of the metadata. @param count the chunks and offsets so far */
function tensorOf(
  pickle: Pickle,
  { name, at }: Pick<DistributedTensor, 'name' | 'at'>,
  handle: Handle,
  count: { chunks: number; offsets: number },
): { readonly tensor: DistributedTensor; readonly list: Handle } {
  const wrong = (expected: string, got: string) => torchFault(pickle.url, at, expected, got, { tensor: name })
  const shape = integersOf(pickle, field(pickle, handle, 'size'))
  if (shape === undefined || shape.length > MAX_DIMENSIONS) throw wrong('a size', 'none')
  const list = field(pickle, handle, 'chunks')
  if (list === undefined || !pickle.isSequence(list)) throw wrong('a list of chunks', 'none')
  const chunkCount = pickle.size(list)
  const type = typeOf(pickle, field(pickle, handle, 'properties'))
  const tensor = { name, at, shape, type, chunkCount, firstChunk: count.chunks, firstAxis: count.offsets }
  const [chunks, offsets] = [count.chunks + chunkCount, count.offsets + chunkCount * shape.length]
  if (chunks > MAX_CHUNKS) throw wrong(`at most ${MAX_CHUNKS} chunks`, 'more')
  if (offsets > MAX_OFFSETS) throw wrong(`at most ${MAX_OFFSETS} offsets of chunks`, 'more')
  count.chunks = chunks
  count.offsets = offsets
  return { tensor, list }
}

async function fillChunks(
  pickle: Pickle,
  tensor: DistributedTensor,
  list: Handle,
  { offsets, sizes }: Chunks,
  due: () => Promise<void> | undefined,
): Promise<void> {
  const { name, at: nameAt, shape, chunkCount, firstAxis } = tensor
  const wrong = (expected: string, got: string) => torchFault(pickle.url, nameAt, expected, got, { tensor: name })
  const rank = shape.length
  for (let chunk = 0; chunk < chunkCount; chunk++) {
    if (chunk % AT_ONCE === AT_ONCE - 1) await due()
    const value = pickle.link(list, chunk)
    const [from, size] = [field(pickle, value, 'offsets'), field(pickle, value, 'sizes')]
    const at = firstAxis + chunk * rank
    if (!fill(pickle, from, offsets, at, rank) || !fill(pickle, size, sizes, at, rank)) {
      throw wrong(`offsets and sizes of ${rank} axes for chunk ${chunk}`, 'others')
    }
    for (let axis = 0; axis < rank; axis++) {
      const end = offsets[at + axis]! + sizes[at + axis]!
      if (end > shape[axis]!) throw wrong(`chunks within [${shape}]`, `one up to ${end} along axis ${axis}`)
    }
  }
}

/** Puts a size into a column. @returns false if its number of axes is another */
function fill(pickle: Pickle, handle: Handle | undefined, column: Float64Array, at: number, rank: number): boolean {
  if (handle === undefined || handle < 0) return false
  const tuple = pickle.isNote(handle) ? pickle.argument(handle, 0) : handle
  if (tuple === undefined || !pickle.isSequence(tuple) || pickle.size(tuple) !== rank) return false
  for (let axis = 0; axis < rank; axis++) {
    const value = pickle.integer(pickle.link(tuple, axis))
    if (value === undefined || value < 0) return false
    column[at + axis] = value
  }
  return true
}

/** The element type of TensorProperties, whose state is a tuple or, in older files, a dict. */
function typeOf(pickle: Pickle, properties: Handle | undefined): ElementType | string {
  const state = properties !== undefined && pickle.isNote(properties) ? pickle.part(properties, 'state') : undefined
  if (state === undefined) return 'no dtype'
  const dtype = pickle.isSequence(state)
    ? pickle.size(state) > 0
      ? pickle.link(state, 0)
      : undefined
    : pickle.get(state, 'dtype')
  const name = dtype === undefined ? undefined : pickle.globalName(dtype)
  return elementTypeOf(name) ?? name ?? 'no dtype'
}

interface Entry {
  readonly name: string
  /** The bytes at which the names of tensor and file begin. */
  readonly nameAt: number
  readonly fileAt: number
  /** Undefined: it is not of a tensor. */
  readonly offset: readonly number[] | undefined
  readonly index: number | undefined
  readonly file: string
  readonly start: number
  readonly length: number
  readonly isTransformed: boolean
}

function placeOf(pickle: Pickle, key: Handle, value: Handle): Entry {
  const text = (handle: Handle | undefined) => (handle === undefined ? undefined : pickle.exactText(handle))
  const integer = (handle: Handle | undefined) => (handle === undefined ? undefined : pickle.integer(handle))
  const [nameHandle, fileHandle] = [field(pickle, key, 'fqn'), field(pickle, value, 'relative_path')]
  const [name, file] = [text(nameHandle), text(fileHandle)]
  const [start, length] = [integer(field(pickle, value, 'offset')), integer(field(pickle, value, 'length'))]
  if (
    name === undefined ||
    file === undefined ||
    start === undefined ||
    length === undefined ||
    start < 0 ||
    length < 0
  ) {
    const at = name === undefined ? 0 : pickle.startOf(nameHandle!)
    throw torchFault(pickle.url, at, 'a name and a place in storage_data', 'other values')
  }
  const given = field(pickle, key, 'offset')
  const transformed = field(pickle, value, 'transform_descriptors')
  return {
    name,
    nameAt: pickle.startOf(nameHandle!),
    fileAt: pickle.startOf(fileHandle!),
    offset: given === undefined || given === 0 ? undefined : integersOf(pickle, given),
    index: integer(field(pickle, key, 'index')),
    file,
    start,
    length,
    isTransformed: transformed !== undefined && pickle.kind(transformed) !== KIND.none,
  }
}

/** The chunks of tensors by where they begin. */
class ChunkPlaces {
  readonly #chunks: Chunks
  readonly #byOffset = new Map<DistributedTensor, ReadonlyMap<string, number>>()

  constructor(chunks: Chunks) {
    this.#chunks = chunks
  }

  /** The number of the chunk of a tensor that begins there; -1: none. The index is a hint. */
  find(tensor: DistributedTensor, offset: readonly number[], index: number | undefined): number {
    if (index !== undefined && this.#isAt(tensor, index, offset)) return index
    if (tensor.chunkCount > 0 && this.#isAt(tensor, 0, offset)) return 0
    const known = this.#byOffset.get(tensor) ?? this.#offsetsOf(tensor)
    this.#byOffset.set(tensor, known)
    return known.get(offset.join()) ?? -1
  }

  #isAt({ shape, chunkCount, firstAxis }: DistributedTensor, chunk: number, offset: readonly number[]): boolean {
    if (!(chunk >= 0 && chunk < chunkCount) || offset.length !== shape.length) return false
    const at = firstAxis + chunk * shape.length
    return offset.every((from, axis) => this.#chunks.offsets[at + axis] === from)
  }

  #offsetsOf(tensor: DistributedTensor): ReadonlyMap<string, number> {
    const chunks = new Map<string, number>()
    for (let chunk = tensor.chunkCount - 1; chunk >= 0; chunk--) {
      chunks.set(ofChunk(tensor, this.#chunks.offsets, chunk).join(), chunk)
    }
    return chunks
  }
}
