/** Files of torch.save: `.pt`, `.pth`, `.bin`, `.ckpt`. */

import { FormatError } from '../../../base/errors.js'
import { isZip } from '../../array/zip-directory.js'
import { expectNoLfsPointer } from '../lfs-pointer.js'
import { runPickleInTurns } from '../pickle/machine.js'
import type { Pickle } from '../pickle/tape.js'
import type { RangedFile, StoredTensor, Surroundings, TensorFileContents, UnreadTensor } from '../stored-tensor.js'
import { readTorchArchive, type StoragePlace } from './archive.js'
import { torchFault, UNREADABLE } from './fault.js'
import { fileNameFacts, stemOf } from './file-name.js'
import { readLegacyTorch } from './legacy.js'
import { isLegacyTorch } from './legacy-magic.js'
import { isAsItLies, type NumpyArray, numpyBytes } from './numpy.js'
import { metadataOf } from './summary.js'
import { type FoundTensor, findTensors, isContiguous, lastElement } from './tensors.js'
import { WindowedFile } from './window.js'

const HEAD_BYTES = 512
/** The magic of a tar file of 2017, and its place. */
const TAR_MAGIC = { at: 257, text: 'ustar' }

/** A view that shows each element of its storage more often costs more to read than a file of that length may. */
const MAX_EXPANSION = 1024
const MAX_EXPANDED_BYTES = 256 << 20
/** Arrays of numpy that stand as text in a pickle are kept in memory: no more of them. */
const MAX_TEXT_BYTES = 64 << 20

/** A file of torch.save without its tensors' elements. */
export interface TorchFile {
  readonly pickle: Pickle
  /** `zip`, `legacy`. */
  readonly layout: 'zip' | 'legacy'
  /** The start of the pickle's bytes in the file. */
  readonly pickleStart: number
  places(keys: readonly string[]): Promise<ReadonlyMap<string, StoragePlace | Error>>
}

/** Reads a file of torch.save. @throws FormatError; StoreError */
export async function openTorchFile(file: RangedFile): Promise<TorchFile> {
  const windowed = new WindowedFile(file)
  const head = await windowed.read(0, HEAD_BYTES)
  expectNoLfsPointer(head, file.url)
  if (isZip(head)) {
    const archive = await readTorchArchive(windowed)
    const { pickleStart, places } = archive
    const pickle = await runPickleInTurns(archive.pickle, archive.pickleUrl)
    return { pickle, layout: 'zip', pickleStart, places }
  }
  if (isLegacyTorch(head)) {
    const { pickle, places } = await readLegacyTorch(windowed)
    return { pickle, layout: 'legacy', pickleStart: 0, places: async () => places }
  }
  throw torchFault(file.url, 0, 'a file of torch.save', whatElse(head))
}

/** The description of a file that begins otherwise. */
function whatElse(head: Uint8Array): string {
  const text = Buffer.from(head).toString('latin1')
  if (head.length === 0) return 'an empty file'
  if (text.startsWith(TAR_MAGIC.text, TAR_MAGIC.at))
    return 'a tar, as torch.save wrote before 0.1.10: load it with torch, and save it again'
  if (head[0] === 0x80 && head[1]! <= 5) return 'a pickle alone, without tensors: trialscan show FILE prints it'
  return `${JSON.stringify(text.slice(0, 16))} at its beginning`
}

export async function readTorch(file: RangedFile, around: Surroundings): Promise<TensorFileContents> {
  const { pickle, layout, pickleStart, places } = await openTorchFile(file)
  const entries = findTensors(pickle)
  const keys = entries.flatMap(({ view }) => (typeof view !== 'string' && 'storage' in view ? [view.storage.key] : []))
  const storages = await places([...new Set(keys)])
  const naming = namesOf(pickle, entries, file.path, around)
  const tensors: StoredTensor[] = []
  const unread: UnreadTensor[] = []
  const firstOf = new Map<string, string>()
  const arrays = new Arrays(file, pickle, pickleStart)
  for (const entry of entries) {
    const name = naming.nameOf(entry)
    const read = storedOf(file, name, entry, { storages, pickleStart }, arrays)
    if ('error' in read) unread.push(read)
    else {
      // A single tensor has no alias.
      const identity = entries.length > 1 ? JSON.stringify([read.dtype, read.shape, read.blocks]) : ''
      const aliasOf = read.blocks.length === 0 ? undefined : firstOf.get(identity)
      if (aliasOf === undefined) firstOf.set(identity, name)
      tensors.push({ ...read, ...naming.facts, ...(aliasOf !== undefined && { aliasOf }) })
    }
  }
  const { hasFullNames } = naming
  return { tensors, unread, problems: [], hasFullNames, metadata: metadataOf(pickle, layout) }
}

interface Naming {
  nameOf(tensor: FoundTensor): string
  readonly facts: Pick<StoredTensor, 'worker' | 'step' | 'order'>
  /** True if names have parts that are not in the file. */
  readonly hasFullNames: boolean
}

/** The names of a file's tensors, and its other facts about them. */
function namesOf(pickle: Pickle, entries: readonly FoundTensor[], path: string, around: Surroundings): Naming {
  const { tensor, worker, order } = fileNameFacts(path, around.paths)
  const facts = { ...(worker !== undefined && { worker }), ...(order !== undefined && { order }) }
  // SGLang's dumper: {"value": tensor, "meta": {"name", "step", "rank", …}}
  const meta = pickle.get(pickle.root, 'meta')
  const isDump =
    meta !== undefined && pickle.get(pickle.root, 'value') !== undefined && pickle.dictOf(meta) !== undefined
  if (isDump) {
    const name = textOf(pickle, meta, 'name')
    // The name of the file has tags besides, where several dumps have one name.
    const base = name === undefined || tensor.startsWith(name) ? tensor : name
    const [step, rank] = [integerOf(pickle, meta, 'step'), integerOf(pickle, meta, 'rank')]
    return {
      nameOf: ({ path }) => [base, ...(path[0] === 'value' ? path.slice(1) : path)].join('.'),
      facts: {
        ...(step !== undefined && { step }),
        ...(rank !== undefined && { worker: `rank_${rank}` }),
        ...facts,
      },
      hasFullNames: true,
    }
  }
  const isNamed = entries.some(({ path }) => path.length === 0) || order !== undefined || tensor !== stemOf(path)
  return { nameOf: ({ path }) => [...(isNamed ? [tensor] : []), ...path].join('.'), facts, hasFullNames: isNamed }
}

function textOf(pickle: Pickle, dict: number, key: string): string | undefined {
  const value = pickle.get(dict, key)
  return value === undefined ? undefined : pickle.text(value)
}

function integerOf(pickle: Pickle, dict: number, key: string): number | undefined {
  const value = pickle.get(dict, key)
  const integer = value === undefined ? undefined : pickle.integer(value)
  return integer !== undefined && integer >= 0 ? integer : undefined
}

/** The place of a tensor's elements, or the reason why they can't be read. */
function storedOf(
  file: RangedFile,
  name: string,
  { view, kind, isOther = false }: FoundTensor,
  {
    storages,
    pickleStart,
  }: { readonly storages: ReadonlyMap<string, StoragePlace | Error>; readonly pickleStart: number },
  arrays: Arrays,
): StoredTensor | UnreadTensor {
  const fault = (expected: string, got: string, code?: string) => {
    const place = typeof view !== 'string' && 'storage' in view ? storages.get(view.storage.key) : undefined
    // A fault without a storage is at the pickle's position.
    const offset = place === undefined || place instanceof Error ? pickleStart : place.start
    return torchFault(file.url, offset, expected, got, { tensor: name, ...(code !== undefined && { code }) })
  }
  if (typeof view === 'string') {
    return { name, dtype: kind, error: fault('a dense tensor', view, isOther ? UNREADABLE : undefined) }
  }
  if (!('storage' in view)) return arrays.stored(name, view)
  const { storage, type, shape } = view
  const key = storage.key.slice(0, 200)
  const count = shape.reduce((product, size) => product * size, 1)
  const unread = (error: FormatError): UnreadTensor => {
    const byteLength = count * type.byteLength
    return { name, dtype: type.name, shape, ...(Number.isSafeInteger(byteLength) && { byteLength }), error }
  }
  // torch counts two elements as one.
  const isPacked = type.name === 'float4_e2m1fn_x2' && shape.length > 0 && isContiguous(view)
  const dtype = isPacked ? 'float4_e2m1fn' : type.dtype
  const whole = isPacked ? [...shape.slice(0, -1), 2 * shape.at(-1)!] : shape
  if (dtype === null) return unread(fault('elements that can be read', type.name, UNREADABLE))
  if (!Number.isSafeInteger(count)) return unread(fault('elements that can be counted', `shape [${shape}]`))
  if (count === 0) return { name, dtype, shape: whole, blocks: [] }
  const last = lastElement(view)
  const capacity = Math.floor(storage.byteLength / type.byteLength)
  if (!(last < capacity)) {
    return unread(fault(`a view of the ${capacity} elements of storage ${key}`, `one up to element ${last}`))
  }
  const elements = last - view.offset + 1
  if (count > MAX_EXPANSION * elements && count * type.byteLength > MAX_EXPANDED_BYTES) {
    return unread(fault(`a view of at most ${MAX_EXPANSION} times its elements`, `${count} of ${elements}`))
  }
  const place = storages.get(storage.key)
  if (place === undefined) return unread(fault(`storage ${key} in the file`, 'none'))
  // A storage may be of several tensors: each is named.
  if (place instanceof FormatError) {
    const { offset, expected, got } = place.fields
    return unread(torchFault(file.url, Number(offset), String(expected), String(got), { tensor: name }))
  }
  if (place instanceof Error) return unread(place as FormatError)
  if (place.byteLength < storage.byteLength) {
    return unread(fault(`${storage.byteLength} bytes in storage ${key}`, `${place.byteLength}`))
  }
  const start = place.start + view.offset * type.byteLength
  if (start + (last - view.offset + 1) * type.byteLength > file.byteLength) {
    return unread(fault(`a file that has all of storage ${key}`, `one of ${file.byteLength} bytes`))
  }
  const strides = isContiguous(view) ? {} : { strides: view.stride }
  return { name, dtype, shape: whole, blocks: [{ file: file.path, start, ...strides }] }
}

/** Arrays of numpy, whose elements lie in the pickle. */
class Arrays {
  readonly #file: RangedFile
  readonly #pickle: Pickle
  readonly #pickleStart: number
  #textBytes = 0

  constructor(file: RangedFile, pickle: Pickle, pickleStart: number) {
    this.#file = file
    this.#pickle = pickle
    this.#pickleStart = pickleStart
  }

  stored(name: string, { type, shape, strides, content }: NumpyArray): StoredTensor | UnreadTensor {
    const pickle = this.#pickle
    const count = shape.reduce((product, size) => product * size, 1)
    const byteLength = count * type.byteLength
    const unread = (expected: string, got: string): UnreadTensor => {
      const error = torchFault(this.#file.url, this.#pickleStart, expected, got, { tensor: name })
      return { name, dtype: type.name, shape, ...(Number.isSafeInteger(byteLength) && { byteLength }), error }
    }
    if (!Number.isSafeInteger(byteLength)) return unread('elements that can be counted', `shape [${shape}]`)
    const wanted = `${byteLength} bytes of elements for shape [${shape}]`
    const storedLength = pickle.bytes(content).length
    const dtype = type.dtype!
    if (isAsItLies(pickle, content)) {
      if (storedLength !== byteLength) return unread(wanted, `${storedLength}`)
      if (count === 0) return { name, dtype, shape, blocks: [] }
      const start = this.#pickleStart + pickle.startOf(content)
      return { name, dtype, shape, blocks: [{ file: this.#file.path, start, ...(strides && { strides }) }] }
    }
    // One text may be the content of any number of arrays.
    this.#textBytes += storedLength
    if (this.#textBytes > MAX_TEXT_BYTES) {
      const got = 'more: save it with pickle_protocol=4, which has bytes for bytes'
      return unread(`at most ${MAX_TEXT_BYTES} bytes of numpy's arrays in a pickle of protocol 2`, got)
    }
    const bytes = numpyBytes(pickle, content)
    if (bytes?.length !== byteLength) return unread(wanted, bytes === undefined ? 'other text' : `${bytes.length}`)
    const data = strides ? inCOrder(bytes, shape, strides, type.byteLength) : bytes
    return { name, dtype, shape, blocks: [], ...(count > 0 && { data }) }
  }
}

/** Elements in another order, rearranged to C order. */
function inCOrder(bytes: Uint8Array, shape: readonly number[], strides: readonly number[], size: number): Uint8Array {
  const ordered = new Uint8Array(bytes.length)
  const index = shape.map(() => 0)
  for (let to = 0; to < bytes.length; to += size) {
    const from = size * index.reduce((sum, at, axis) => sum + at * strides[axis]!, 0)
    ordered.set(bytes.subarray(from, from + size), to)
    for (let axis = shape.length - 1; axis >= 0 && ++index[axis]! === shape[axis]; axis--) index[axis] = 0
  }
  return ordered
}
