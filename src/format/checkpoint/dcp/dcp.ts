/** A checkpoint of torch.distributed.checkpoint: `.metadata`, and a `__<rank>_<n>.distcp` a rank, in which each chunk is an archive or a safetensors file of its own. */

import { FormatError, StoreError } from '../../../base/errors.js'
import { turnsWhenDue } from '../../../base/turns.js'
import { runPickle, runPickleInTurns } from '../pickle/machine.js'
import { LENGTH_BYTES } from '../safetensors/dtypes.js'
import { SAFETENSORS } from '../safetensors/safetensors.js'
import { type HeaderTensor, headerLength, parseHeader } from '../safetensors/safetensors-header.js'
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
import { findTensors, isContiguous } from '../torch/tensors.js'
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
/** The number of chunks that are all opened. Beyond it, chunks of one file with the same dtype and overhead share a layout. */
const MAX_OPENED_CHUNKS = 512
const CHUNKS_AT_ONCE = 32
const MAX_NAMED_FILES = 3
const MAX_FACTS_BYTES = 64 << 10
const MAX_OBJECTS = 20
/** The magic of a ZIP archive. */
const ZIP = [0x50, 0x4b, 3, 4]

export async function readDistributed(file: RangedFile, around: Surroundings): Promise<TensorFileContents> {
  const { described, facts } = await describedBy(file)
  return { ...(await new Checkpoint(file, around, described).read()), hasFullNames: true, metadata: facts }
}

/** The places of the chunks, each of which is an archive unless it is of safetensors. */
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
  /** The start of the elements in chunks with the same layout. */
  readonly #layouts = new Map<string, number | Promise<number>>()
  readonly #opensAll: boolean

  constructor(file: RangedFile, around: Surroundings, metadata: DistributedMetadata) {
    this.#file = file
    this.#around = around
    this.#metadata = metadata
    this.#directory = file.path.slice(0, file.path.lastIndexOf('/') + 1)
    this.#opensAll = metadata.tensors.reduce((sum, { chunkCount }) => sum + chunkCount, 0) <= MAX_OPENED_CHUNKS
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
    const whole = (await this.#isOfMegatron()) ? await layerByLayer(tensors) : tensors.map(({ tensor }) => tensor)
    return { tensors: whole, unread, problems }
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
        const block = this.#block(tensor, chunk, files, type.byteLength)
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
        const end = chunks.starts[firstChunk + chunk]! + chunks.lengths[firstChunk + chunk]!
        if (end > file.byteLength) return [`${end} bytes in ${names[number]}`, `${file.byteLength}: it was cut off`]
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

  /** A chunk as a block; null: it has no elements. Most of many take no turn of their own. */
  #block(
    tensor: DistributedTensor,
    chunk: number,
    files: readonly (RangedFile | null)[],
    elementByteLength: number,
  ): Block | null | Promise<Block> {
    const { chunks } = this.#metadata
    const number = tensor.firstChunk + chunk
    const file = files[chunks.files[number]!]!
    const shape = ofChunk(tensor, chunks.sizes, chunk)
    const byteLength = shape.reduce((product, size) => product * size, 1) * elementByteLength
    if (byteLength === 0) return null
    const place = { tensor, shape, byteLength, file, start: chunks.starts[number]!, length: chunks.lengths[number]! }
    const blockAt = (begin: number): Block => {
      const start = place.start + begin
      // A chunk that is all of its tensor.
      if (tensor.chunkCount === 1) return { file: file.path, start }
      const offsets = Array.from(ofChunk(tensor, chunks.offsets, chunk))
      return { file: file.path, start, offsets, shape: Array.from(shape) }
    }
    if (this.#opensAll) return elementsOf(place).then(blockAt)
    // Chunks with the same layout: their elements begin at the same place.
    const layout = `${chunks.files[number]} ${(tensor.type as ElementType).name} ${tensor.shape.length} ${place.length - byteLength}`
    const known = this.#layouts.get(layout)
    if (typeof known === 'number') return blockAt(known)
    // Other tensors of the same file wait for the first.
    const opening = known ?? elementsOf(place)
    this.#layouts.set(layout, opening)
    return opening.then(begin => {
      this.#layouts.set(layout, begin)
      return blockAt(begin)
    })
  }
}

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

/** Opens a chunk, and says where its elements begin. @throws FormatError, if it is not what `.metadata` says */
async function elementsOf({ tensor, shape, byteLength, file, start: base, length }: Chunk): Promise<number> {
  const part = new WindowedFile(file, base, length)
  const wrong = (expected: string, got: string) => torchFault(file.url, base, expected, got, { tensor: tensor.name })
  const type = tensor.type as ElementType
  const head = await part.read(0, HEAD_BYTES)
  if (SAFETENSORS.matches(head)) {
    const entry = await safetensorsEntry(part, tensor.name)
    if (entry === undefined)
      throw wrong(`an entry ${JSON.stringify(tensor.name.slice(0, 200))} in the header of a chunk`, 'none')
    if (entry.dtype !== type.dtype || entry.shape.join() !== shape.join()) {
      throw wrong(`a chunk of ${type.name} [${shape.join()}]`, `${entry.dtype} [${entry.shape}]`)
    }
    return entry.begin
  }
  if (!ZIP.every((byte, i) => head[i] === byte)) {
    throw wrong('a chunk as torch.save writes it, or of safetensors', 'other bytes')
  }
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
  if (!isContiguous(view)) throw wrong('a contiguous chunk', `strides [${view.stride}]`)
  const place = (await archive.places([view.storage.key])).get(view.storage.key)
  if (place instanceof Error) throw place
  const start = view.offset * view.type.byteLength
  if (place === undefined || place.byteLength < start + byteLength) {
    throw wrong(`${byteLength} bytes of elements`, `${Math.max(0, (place?.byteLength ?? 0) - start)}`)
  }
  return place.start - base + start
}

/** A chunk may be a safetensors file of its own, whose entry has the name of the tensor. */
async function safetensorsEntry(part: WindowedFile, name: string): Promise<HeaderTensor | undefined> {
  const length = headerLength(await part.read(0, LENGTH_BYTES), part.url, part.byteLength)
  const json = await part.read(LENGTH_BYTES, length)
  const header = await parseHeader(json, part.url, part.byteLength)
  const broken = header.unread.find(entry => entry.name === name)
  if (broken !== undefined) throw broken.error
  return header.tensors.find(entry => entry.name === name)
}

function shown(names: readonly string[]): string {
  const some = names.slice(0, MAX_NAMED_FILES).join(', ')
  return names.length > MAX_NAMED_FILES ? `${some} and ${names.length - MAX_NAMED_FILES} more` : some
}
