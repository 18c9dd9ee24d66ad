/**
 * A checkpoint of torch.distributed.checkpoint: `.metadata`, and a `__<rank>_<n>.distcp` a rank. In it each chunk is an archive of
 * torch.save or a safetensors file of its own, or an entry of the one safetensors file in which torch then has all: the place of an
 * entry is the start of that file, and the length of the elements.
 */

import { FormatError, StoreError } from '../../../base/errors.js'
import { turnsWhenDue } from '../../../base/turns.js'
import { runPickle, runPickleInTurns } from '../pickle/machine.js'
import { LENGTH_BYTES } from '../safetensors/dtypes.js'
import { SAFETENSORS } from '../safetensors/safetensors.js'
import { type HeaderFault, type HeaderTensor, headerLength, parseHeader } from '../safetensors/safetensors-header.js'
import {
  type ArchivePlace,
  type Block,
  HEAD_BYTES,
  type RangedFile,
  type StoredTensor,
  type Surroundings,
  type TensorFileContents,
  type UnreadTensor,
} from '../stored-tensor.js'
import { readTorchArchive } from '../torch/archive.js'
import { torchFault } from '../torch/fault.js'
import type { ElementType } from '../torch/storage.js'
import { dangerousOf, warningOf } from '../torch/summary.js'
import { findTensors, isContiguous, lastElement } from '../torch/tensors.js'
import { WindowedFile } from '../torch/window.js'
import { coverageOf } from './chunks.js'
import {
  type DistributedMetadata,
  type DistributedTensor,
  NO_FILE,
  ofChunk,
  parseMetadata,
  TRANSFORMED,
  UNSAFE_FILE,
} from './metadata.js'
import { layerByLayer, type SizedTensor } from './stacked.js'

const MAX_METADATA_BYTES = 2 ** 30
/**
 * The number of chunks that are all opened. Beyond it, one stands for those of its file that have its name but for numbers, its dtype
 * and shape, and as many bytes beside the elements; `verify` opens them all.
 */
const MAX_OPENED_CHUNKS = 512
const CHUNKS_AT_ONCE = 32
const MAX_NAMED_FILES = 3
const MAX_FACTS_BYTES = 64 << 10
const MAX_OBJECTS = 20
/** The magic of a ZIP archive. */
const ZIP = [0x50, 0x4b, 3, 4]
const EXPECTED_CHUNK = 'a chunk as torch.save writes it, or of safetensors'

export async function readDistributed(file: RangedFile, around: Surroundings): Promise<TensorFileContents> {
  const { described, facts } = await describedBy(file)
  return { ...(await new Checkpoint(file, around, described).read()), hasFullNames: true, metadata: facts }
}

/** The places of the chunks, which are archives unless they are of safetensors. */
export async function chunksOf(file: RangedFile): Promise<ArchivePlace[]> {
  const { files, chunks } = (await describedBy(file)).described
  const directory = file.path.slice(0, file.path.lastIndexOf('/') + 1)
  return Array.from(chunks.files).flatMap((number, i) => {
    if (number < 0) return []
    return [{ path: directory + files[number]!, startByte: chunks.starts[i]!, byteLength: chunks.lengths[i]! }]
  })
}

/** Reads `.metadata`. The pickle itself, which may take hundreds of megabytes, is not kept. */
async function describedBy(
  file: RangedFile,
): Promise<{ readonly described: DistributedMetadata; readonly facts: ReadonlyMap<string, string> }> {
  if (file.byteLength > MAX_METADATA_BYTES) {
    throw torchFault(file.url, 0, `at most ${MAX_METADATA_BYTES} bytes`, `${file.byteLength}`)
  }
  const pickle = await runPickleInTurns(await file.read(0, file.byteLength), file.url)
  const described = await parseMetadata(pickle)
  return { described, facts: factsOf(described, dangerousOf(pickle)) }
}

function factsOf({ objects, files }: DistributedMetadata, dangerous: readonly string[]): ReadonlyMap<string, string> {
  const facts = new Map([['format', `torch.distributed.checkpoint, ${files.length} files`]])
  if (dangerous.length > 0) facts.set('warning', warningOf(dangerous))
  if (objects.length > 0) {
    const names = objects.slice(0, MAX_OBJECTS).map(({ name }) => name)
    facts.set(
      'objects',
      `${names.join(', ')}${objects.length > MAX_OBJECTS ? ` and ${objects.length - MAX_OBJECTS} more` : ''}`,
    )
  }
  return facts
}

class Checkpoint {
  readonly #file: RangedFile
  readonly #around: Surroundings
  readonly #metadata: DistributedMetadata
  readonly #directory: string
  /** Archives that were opened, by what they have in common with others; null in time for one that can't be read. */
  readonly #layouts = new Map<string, Opened | Promise<Opened | null>>()
  /** The entries of safetensors files, by where these begin. */
  readonly #entries = new Map<string, Promise<Entries | null>>()
  readonly #opensAll: boolean

  constructor(file: RangedFile, around: Surroundings, metadata: DistributedMetadata) {
    this.#file = file
    this.#around = around
    this.#metadata = metadata
    this.#directory = file.path.slice(0, file.path.lastIndexOf('/') + 1)
    const count = metadata.tensors.reduce((sum, { chunkCount }) => sum + chunkCount, 0)
    this.#opensAll = around.readsAll === true || count <= MAX_OPENED_CHUNKS
  }

  async read(): Promise<TensorFileContents> {
    const problems = [...this.#metadata.problems]
    const files = await this.#openFiles(problems)
    const tensors: SizedTensor[] = []
    const unread = [...this.#metadata.unread]
    const due = turnsWhenDue()
    for (let i = 0; i < this.#metadata.tensors.length; i += CHUNKS_AT_ONCE) {
      const some = this.#metadata.tensors.slice(i, i + CHUNKS_AT_ONCE)
      for (const [j, tensor] of (await Promise.all(some.map(tensor => this.#tensor(tensor, files)))).entries()) {
        if ('error' in tensor) unread.push(tensor)
        else tensors.push({ tensor, elementByteLength: (some[j]!.type as ElementType).byteLength })
      }
      await due()
    }
    if (!(await this.#isOfMegatron())) return { tensors: tensors.map(({ tensor }) => tensor), unread, problems }
    const { tensors: layers, fault } = await layerByLayer(tensors)
    const note = `${this.#file.path}: stacked layers are not read one by one: ${fault}`
    return { tensors: layers, unread, problems, notes: fault === null ? [] : [note] }
  }

  /** True if Megatron wrote it, as `metadata.json` says. */
  async #isOfMegatron(): Promise<boolean> {
    try {
      const file = await this.#around.open(`${this.#directory}metadata.json`)
      const text = new TextDecoder().decode(await file.read(0, Math.min(MAX_FACTS_BYTES, file.byteLength)))
      return /"sharded_backend"\s*:\s*"torch_dist"/.test(text)
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      return false
    }
  }

  /** The files of the ranks; null for one that is missing. */
  async #openFiles(problems: FormatError[]): Promise<readonly (RangedFile | null)[]> {
    const files: (RangedFile | null)[] = []
    for (let i = 0; i < this.#metadata.files.length; i += CHUNKS_AT_ONCE) {
      const names = this.#metadata.files.slice(i, i + CHUNKS_AT_ONCE)
      const opened = names.map((name, j) => this.#open(name, this.#metadata.fileNamesAt[i + j]!, problems))
      files.push(...(await Promise.all(opened)))
    }
    return files
  }

  async #open(name: string, at: number, problems: FormatError[]): Promise<RangedFile | null> {
    try {
      return await this.#around.open(this.#directory + name)
    } catch (error) {
      if (!(error instanceof StoreError) || error.code !== 'NotFound') throw error
      const rank = /^__(\d+)_/.exec(name)?.[1]
      const whose = rank === undefined ? '' : ` of rank ${rank}`
      problems.push(torchFault(this.#file.url, at, `the file ${name}${whose} beside it`, 'none'))
      return null
    }
  }

  async #tensor(
    tensor: DistributedTensor,
    files: readonly (RangedFile | null)[],
  ): Promise<StoredTensor | UnreadTensor> {
    const { name, shape, type } = tensor
    const unread = (expected: string, got: string): UnreadTensor => ({
      name,
      dtype: typeof type === 'string' ? type : type.name,
      shape,
      error: torchFault(this.#file.url, tensor.at, expected, got, { tensor: name }),
    })
    if (typeof type === 'string' || type.dtype === null) {
      return unread('elements that can be read', typeof type === 'string' ? type : type.name)
    }
    const fault = this.#missingOf(tensor, files)
    if (fault !== null) return unread(...fault)
    try {
      const blocks: Block[] = []
      for (let chunk = 0; chunk < tensor.chunkCount; chunk++) {
        const block = this.#block(tensor, chunk, files)
        const opened = block instanceof Promise ? await block : block
        if (opened !== null) blocks.push(opened)
      }
      return { name, dtype: type.dtype, shape, blocks }
    } catch (error) {
      if (!(error instanceof FormatError)) throw error
      return { name, dtype: type.name, shape, error }
    }
  }

  /** The missing part of a tensor: what was expected, and what is there; null if it is whole. */
  #missingOf(tensor: DistributedTensor, files: readonly (RangedFile | null)[]): readonly [string, string] | null {
    const { files: names, chunks } = this.#metadata
    const { shape, chunkCount, firstChunk, firstAxis } = tensor
    const fileOf = (chunk: number) => chunks.files[firstChunk + chunk]!
    const startOf = (chunk: number) => `[${ofChunk(tensor, chunks.offsets, chunk).join(', ')}]`
    const lost = new Set<string>()
    for (let chunk = 0; chunk < chunkCount; chunk++) {
      const number = fileOf(chunk)
      if (number === TRANSFORMED) return ['elements as they are', 'a chunk that was transformed, as by compression']
      if (number === UNSAFE_FILE) return ['a file beside .metadata', 'one elsewhere']
      if (number === NO_FILE) return ['a place for each chunk', `none for that at ${startOf(chunk)}`]
      const file = files[number]
      if (file === null || file === undefined) lost.add(names[number]!)
      else {
        const [start, length] = [chunks.starts[firstChunk + chunk]!, chunks.lengths[firstChunk + chunk]!]
        const end = start + length
        // Where an entry ends, its header tells.
        const mayBeEntry = () => start < file.byteLength && length === this.#byteLengthOf(tensor, chunk)
        if (end > file.byteLength && !mayBeEntry()) {
          return [`${end} bytes in ${names[number]}`, `${file.byteLength}: it was cut off`]
        }
      }
    }
    if (lost.size > 0) return [`its chunks in ${[...lost].join(', ')}`, 'no such file']
    const all = Array.from({ length: chunkCount }, (_, chunk) => chunk)
    const columnOf = (column: Float64Array) => column.subarray(firstAxis, firstAxis + chunkCount * shape.length)
    const { missing, overlap } = coverageOf(
      { shape, offsets: columnOf(chunks.offsets), sizes: columnOf(chunks.sizes) },
      all,
    )
    if (overlap === 'unknown') return ['chunks that can be told apart', `${chunkCount} that lie side by side`]
    if (overlap !== null) {
      const [first, second] = overlap.map(chunk => `${startOf(chunk)} in ${names[fileOf(chunk)]}`)
      return ['chunks that do not overlap', `those at ${first} and at ${second}`]
    }
    if (missing === 0) return null
    const having = new Set(all.map(fileOf))
    const others = names.filter((_, file) => !having.has(file))
    const whose = others.length === 0 ? '' : `; none of its chunks is in ${shown(others)}`
    return [`chunks of all of [${shape}]`, `${missing} elements that none has${whose}`]
  }

  /** The length of a chunk's elements. */
  #byteLengthOf(tensor: DistributedTensor, chunk: number): number {
    const sizes = ofChunk(tensor, this.#metadata.chunks.sizes, chunk)
    return sizes.reduce((product, size) => product * size, (tensor.type as ElementType).byteLength)
  }

  /** A chunk as a block; null: it has no elements. Most of many take no turn of their own. */
  #block(
    tensor: DistributedTensor,
    chunk: number,
    files: readonly (RangedFile | null)[],
  ): Block | null | Promise<Block> {
    const { chunks } = this.#metadata
    const number = tensor.firstChunk + chunk
    const file = files[chunks.files[number]!]!
    const shape = ofChunk(tensor, chunks.sizes, chunk)
    const byteLength = this.#byteLengthOf(tensor, chunk)
    if (byteLength === 0) return null
    const place = { tensor, shape, byteLength, file, start: chunks.starts[number]!, length: chunks.lengths[number]! }
    const blockOf = ({ begin, strides }: Opened): Block => {
      const block = { file: file.path, start: place.start + begin, ...(strides && { strides }) }
      // A chunk that is all of its tensor.
      if (tensor.chunkCount === 1) return block
      return { ...block, offsets: Array.from(ofChunk(tensor, chunks.offsets, chunk)), shape: Array.from(shape) }
    }
    const openedAlone = () => this.#openChunk(place).then(blockOf)
    if (this.#opensAll || isEntry(place)) return openedAlone()
    const { name, type } = tensor
    const layout = [
      chunks.files[number],
      name.replace(/\d+/g, '#'),
      (type as ElementType).name,
      shape.join(),
      place.length - byteLength,
    ].join(' ')
    const known = this.#layouts.get(layout)
    if (known instanceof Promise) return known.then(opened => (stands(opened) ? blockOf(opened) : openedAlone()))
    if (known !== undefined) return blockOf(known)
    // Others with this layout wait for the first.
    const opening = this.#openChunk(place)
    this.#layouts.set(
      layout,
      opening.catch(() => null),
    )
    return opening.then(
      opened => {
        if (stands(opened)) this.#layouts.set(layout, opened)
        return blockOf(opened)
      },
      error => {
        this.#layouts.delete(layout)
        throw error
      },
    )
  }

  /** Opens a chunk. @throws FormatError, if it is not what `.metadata` says */
  async #openChunk(chunk: Chunk): Promise<Opened> {
    if (!isEntry(chunk)) {
      const part = new WindowedFile(chunk.file, chunk.start, chunk.length)
      const head = await part.read(0, HEAD_BYTES)
      if (!SAFETENSORS.matches(head)) return { ...(await openArchive(chunk, part, head)), isArchive: true }
    }
    const place = `${chunk.start} ${chunk.file.path}`
    const entries = this.#entries.get(place) ?? entriesAt(chunk.file, chunk.start)
    this.#entries.set(place, entries)
    return { begin: beginOfEntry(chunk, await entries), isArchive: false }
  }
}

/** The start of a chunk's elements behind that of its place. */
interface Opened {
  readonly begin: number
  /** Default: C order. */
  readonly strides?: readonly number[]
  readonly isArchive: boolean
}

/** True if a chunk stands for others: safetensors have entries of their own, and that others have the same strides is not known. */
function stands(opened: Opened | null): opened is Opened {
  return opened?.isArchive === true && opened.strides === undefined
}

/** The entries of a safetensors file by name; null for one that a chunk has taken. */
type Entries = Map<string, HeaderTensor | HeaderFault | null>

/** A chunk and its place. */
interface Chunk {
  readonly tensor: DistributedTensor
  readonly shape: ArrayLike<number> & { join(): string }
  /** The length of its elements. */
  readonly byteLength: number
  readonly file: RangedFile
  readonly start: number
  readonly length: number
}

/** True for an entry of a safetensors file: its place has no room for a header. */
function isEntry({ byteLength, length }: Chunk): boolean {
  return length === byteLength
}

function wrongChunk({ tensor, file, start }: Chunk, expected: string, got: string): FormatError {
  return torchFault(file.url, start, expected, got, { tensor: tensor.name })
}

/** The entries of a safetensors file that lies at the end of another; null: other bytes do. */
async function entriesAt(file: RangedFile, start: number): Promise<Entries | null> {
  const part = new WindowedFile(file, start)
  if (!SAFETENSORS.matches(await part.read(0, HEAD_BYTES))) return null
  const length = headerLength(await part.read(0, LENGTH_BYTES), part.url, part.byteLength)
  const header = await parseHeader(await part.read(LENGTH_BYTES, length), part.url, part.byteLength)
  return new Map([...header.tensors, ...header.unread].map(entry => [entry.name, entry]))
}

function beginOfEntry(chunk: Chunk, entries: Entries | null): number {
  if (entries === null) throw wrongChunk(chunk, EXPECTED_CHUNK, 'other bytes')
  const { tensor, shape } = chunk
  const type = tensor.type as ElementType
  const entry = entries.get(tensor.name)
  if (entry === undefined) {
    const expected = `an entry ${JSON.stringify(tensor.name.slice(0, 200))} in the header of a chunk`
    throw wrongChunk(chunk, expected, 'none that can be read')
  }
  // A writer that puts entries under their tensor's name keeps the last.
  if (entry === null) throw wrongChunk(chunk, 'an entry for each chunk', 'one for several')
  if ('error' in entry) throw entry.error
  if (entry.dtype !== type.dtype || entry.shape.join() !== shape.join()) {
    throw wrongChunk(chunk, `a chunk of ${type.name} [${shape.join()}]`, `${entry.dtype} [${entry.shape}]`)
  }
  const end = entry.begin + chunk.byteLength
  if (!isEntry(chunk) && end > chunk.length) throw wrongChunk(chunk, `a chunk of ${end} bytes`, `${chunk.length}`)
  entries.set(tensor.name, null)
  return entry.begin
}

/** The start of the elements in an archive, and their strides. */
async function openArchive(chunk: Chunk, part: WindowedFile, head: Uint8Array): Promise<Omit<Opened, 'isArchive'>> {
  const { tensor, shape, byteLength, start: base } = chunk
  const wrong = (expected: string, got: string) => wrongChunk(chunk, expected, got)
  const type = tensor.type as ElementType
  if (!ZIP.every((byte, i) => head[i] === byte)) throw wrong(EXPECTED_CHUNK, 'other bytes')
  const archive = await readTorchArchive(part, base)
  const [content, ...others] = findTensors(runPickle(archive.pickle, archive.pickleUrl))
  if (
    content === undefined ||
    others.length > 0 ||
    content.path.length > 0 ||
    typeof content.view === 'string' ||
    !('storage' in content.view)
  ) {
    throw wrong('one tensor in a chunk', content === undefined ? 'none' : 'something else')
  }
  const { view } = content
  if (view.type.name !== type.name || view.shape.join() !== shape.join()) {
    throw wrong(`a chunk of ${type.name} [${shape.join()}]`, `${view.type.name} [${view.shape}]`)
  }
  if (lastElement(view) - view.offset >= byteLength / view.type.byteLength) {
    throw wrong('a chunk without gaps', `strides [${view.stride}]`)
  }
  const place = (await archive.places([view.storage.key])).get(view.storage.key)
  if (place instanceof Error) throw place
  const start = view.offset * view.type.byteLength
  if (place === undefined || place.byteLength < start + byteLength) {
    throw wrong(`${byteLength} bytes of elements`, `${Math.max(0, (place?.byteLength ?? 0) - start)}`)
  }
  const begin = place.start - base + start
  return isContiguous(view) ? { begin } : { begin, strides: view.stride }
}

function shown(names: readonly string[]): string {
  const some = names.slice(0, MAX_NAMED_FILES).join(', ')
  return names.length > MAX_NAMED_FILES ? `${some} and ${names.length - MAX_NAMED_FILES} more` : some
}
