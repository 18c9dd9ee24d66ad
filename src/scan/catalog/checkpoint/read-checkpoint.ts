/** One checkpoint: the tensors of its files, brought together. No more is read than their headers. */

import { FormatError, isAboutFile, quote, type StoreError, TrialscanError } from '../../../base/errors.js'
import { inTurns } from '../../../base/turns.js'
import { isNumeric } from '../../../core/dtype.js'
import { NVDLFW } from '../../../format/checkpoint/dump/nvdlfw.js'
import { commonStem, copiesAmong, directoryOf, isModelStem, nameOf } from '../../../format/checkpoint/file-roles.js'
import { formatOf } from '../../../format/checkpoint/formats.js'
import type { CheckpointFile, CheckpointPlace } from '../../../format/checkpoint/layout.js'
import { expectNoLfsPointer } from '../../../format/checkpoint/lfs-pointer.js'
import { missingRanks } from '../../../format/checkpoint/missing-ranks.js'
import { isShardIndex, MAX_INDEX_BYTES, parseShardIndex } from '../../../format/checkpoint/safetensors/shards.js'
import {
  HEAD_BYTES,
  type RangedFile,
  type StoredTensor,
  type Surroundings,
  type TensorFileContents,
  type UnreadTensor,
} from '../../../format/checkpoint/stored-tensor.js'
import { isRemote, type Store } from '../../../storage/store.js'
import { checkIndex, chooseFiles, type FoundIndex, isNamedFile } from './choose-files.js'
import { Faults } from './faults.js'
import { fileOf, joined } from './joined.js'
import { rangedFile } from './ranged-file.js'

/** The tensors that a worker saved at a step: each name once. */
export interface WorkerTensors {
  readonly step: number
  readonly worker: string
  readonly tensors: readonly StoredTensor[]
}

export interface Checkpoint {
  /** Complete, or as whole as can be. */
  readonly groups: readonly WorkerTensors[]
  readonly unread: readonly UnreadTensor[]
  readonly problems: readonly TrialscanError[]
  /** Notes that are no faults. */
  readonly notes: readonly string[]
  readonly metadata: ReadonlyMap<string, string>
  /** Kinds of the formats that were read. */
  readonly formats: readonly string[]
  readonly fileCount: number
  /** Versions of the files that were read, by path: they tell them from others of their names. */
  readonly versions: ReadonlyMap<string, string>
}

/** The worker of a checkpoint that says nothing of workers. */
export const ONLY_WORKER = 'worker_0'
/** Files whose headers are asked for at once, where that is a request. */
const FILES_AT_ONCE = 16

/** @throws FormatError `ZeroHeader`, for a file that is empty or begins with zeros */
function expectContent(head: Uint8Array, url: string): void {
  if (head.some(byte => byte !== 0)) return
  const [expected, got] = ['a file of tensors', head.length === 0 ? 'an empty file' : 'zeros']
  const message = `${url}, byte 0: expected ${expected}, got ${got}: it was made, but never written`
  throw new FormatError('ZeroHeader', message, { url, offset: 0, expected, got })
}

/** A file, and what is in it. */
interface ReadFile extends CheckpointFile {
  readonly contents: TensorFileContents
}

/**
 * @param readsAll true to read the head of every chunk
 * @throws StoreError if the store can't be reached
 */
export async function readCheckpoint(store: Store, checkpoint: CheckpointPlace, readsAll = false): Promise<Checkpoint> {
  const faults = new Faults()
  const notes: string[] = []
  const copies = copiesAmong(checkpoint.files.map(({ path }) => path))
  const indices = await readIndices(
    store,
    checkpoint.files.filter(({ path }) => !copies.has(path)),
    faults,
  )
  const chosen = chooseFiles(store, checkpoint, { indices, copies }, faults, notes)
  const paths = checkpoint.files.map(({ path }) => path)
  const versions = new Map<string, string>()
  const open = async (path: string): Promise<RangedFile> => {
    const ranged = await rangedFile(store, path)
    if (ranged.version !== undefined) versions.set(path, ranged.version)
    return ranged
  }
  const around: Surroundings = { paths, open, readsAll }
  const formats = new Set<string>()
  const read = await readAll(store, chosen, faults, async file => {
    const ranged = await open(file.path)
    const head = await ranged.read(0, Math.min(HEAD_BYTES, ranged.byteLength))
    expectNoLfsPointer(head, ranged.url)
    const format = formatOf(file.path, head)
    // A log may be empty.
    if (format?.kind !== NVDLFW.kind) expectContent(head, ranged.url)
    if (format === null) {
      notes.push(`${file.path} is not read: it begins like no file of tensors`)
      return null
    }
    formats.add(format.kind)
    const contents = await format.read(ranged, around)
    notes.push(...(contents.notes ?? []))
    return { ...file, contents }
  })
  store.release?.()
  for (const index of indices) await checkIndex(store, index, read, faults)
  checkRanks(store, checkpoint, read, faults)
  return {
    ...(await merged(store, checkpoint, { read, indices }, faults, notes)),
    formats: [...formats],
    fileCount: read.length,
    versions,
  }
}

/** Reports ranks whose files are missing, if the names of the others or their contents say how many there are. */
function checkRanks(store: Store, checkpoint: CheckpointPlace, read: readonly ReadFile[], faults: Faults): void {
  if (isNamedFile(checkpoint)) return
  const miss = (path: string, expected: string, got: string, hint: string): void => {
    const url = store.url(path)
    const message = `${url}: expected ${expected}, got ${got}: ${hint}`
    faults.add(new FormatError('MissingWorkers', message, { url, expected, got, lost: 'their tensors' }))
  }
  const numWorkers = read.reduce((most, { contents }) => Math.max(most, contents.numWorkers ?? 0), 0)
  if (numWorkers > read.length) {
    const hint = 'the others have not saved this step'
    miss(checkpoint.place, `files of ${numWorkers} workers`, `${read.length}`, hint)
  }
  const partitions = read.reduce((most, { contents }) => {
    const size = Number(contents.metadata?.get('dp_world_size') ?? 0)
    return Number.isSafeInteger(size) ? Math.max(most, size) : most
  }, 0)
  const paths = checkpoint.files.map(({ path }) => path)
  for (const { expected, found, paths: missing } of missingRanks(paths, partitions)) {
    const more = expected - found - missing.length
    const names = missing.map(nameOf).join(', ') + (more > 0 ? ` and ${more} more` : '')
    miss(
      missing[0]!,
      `files of ${expected} ranks`,
      `${found}`,
      `${names} ${expected - found === 1 ? 'is' : 'are'} missing`,
    )
  }
}

async function readIndices(store: Store, files: readonly CheckpointFile[], faults: Faults): Promise<FoundIndex[]> {
  const indices = await readAll(
    store,
    files.filter(({ path }) => isShardIndex(path)),
    faults,
    async file => {
      const bytes = await store.read(file.path, { maxByteLength: MAX_INDEX_BYTES, isText: true })
      expectNoLfsPointer(bytes, store.url(file.path))
      const index = parseShardIndex(new TextDecoder().decode(bytes), store.url(file.path))
      for (const problem of index.problems) faults.add(problem)
      return { ...index, file }
    },
  )
  return indices
}

/** Does something with each file, several at once where that means requests. What is wrong with one is a fault. */
async function readAll<T>(
  store: Store,
  files: readonly CheckpointFile[],
  faults: Faults,
  read: (file: CheckpointFile) => Promise<T | null>,
): Promise<T[]> {
  const results: (T | null)[] = []
  const atOnce = isRemote(store) ? FILES_AT_ONCE : 1
  const readOne = async (file: CheckpointFile): Promise<T | null> => {
    try {
      return await read(file)
    } catch (error) {
      if (!(error instanceof TrialscanError) || !isAboutFile(error.toJSON())) throw error
      faults.add(error as FormatError | StoreError)
      return null
    }
  }
  for (let i = 0; i < files.length; i += atOnce) {
    results.push(...(await Promise.all(files.slice(i, i + atOnce).map(readOne))))
  }
  return results.filter(result => result !== null) as T[]
}

async function merged(
  store: Store,
  checkpoint: CheckpointPlace,
  { read, indices }: { readonly read: readonly ReadFile[]; readonly indices: readonly FoundIndex[] },
  faults: Faults,
  notes: readonly string[],
): Promise<Omit<Checkpoint, 'formats' | 'fileCount' | 'versions'>> {
  const prefixes = prefixesOf(read)
  const metadata = new Map<string, string>()
  const unread: UnreadTensor[] = []
  const groups = new Map<string, TensorsByName>()
  for (const [i, file] of read.entries()) {
    const { path, contents } = file
    const prefix = prefixes[i]!
    const stem = fileStem(path)
    const nameIn = (name: string): string => prefix + (name === stem ? (file.tensor ?? name) : name)
    for (const [key, value] of contents.metadata ?? []) if (!metadata.has(key)) metadata.set(key, value)
    for (const problem of contents.problems) faults.add(problem)
    await inTurns(contents.unread, tensor => {
      unread.push({ ...tensor, name: nameIn(tensor.name) })
    })
    let last: TensorsByName | undefined
    await inTurns(contents.tensors, tensor => {
      // Parts of it may begin amid a byte.
      const isSplit = tensor.dtype === 'float4_e2m1fn' && tensor.isPart === true
      if (!isNumeric(tensor.dtype) || isSplit) {
        unread.push(unreadable(store.url(path), tensor, isSplit))
        return
      }
      const { step = checkpoint.step, worker = file.worker ?? ONLY_WORKER, aliasOf } = tensor
      const name = nameIn(tensor.name)
      const named =
        name === tensor.name ? tensor : { ...tensor, name, ...(aliasOf !== undefined && { aliasOf: nameIn(aliasOf) }) }
      if (last?.step !== step || last.worker !== worker) {
        const key = `${step} ${worker}`
        last = groups.get(key) ?? { step, worker, whole: new Map(), parts: new Map() }
        groups.set(key, last)
      }
      const { whole, parts } = last
      const known = whole.get(name)
      if (named.isPart) parts.set(name, [...(parts.get(name) ?? []), named])
      else if (known === undefined) whole.set(name, named)
      else if (indices.some(index => isPlacedBy(index, path, name))) {
        whole.set(name, named)
        faults.duplicate(store.url(fileOf(known)), name, path)
      } else faults.duplicate(store.url(path), name, fileOf(known))
    })
  }
  for (const { whole, parts } of groups.values()) {
    await inTurns([...parts], ([name, some]) => {
      const known = whole.get(name)
      const tensor = joined(store, some, faults)
      if (known !== undefined) faults.duplicate(store.url(fileOf(some[0]!)), name, fileOf(known))
      else if (tensor !== null) whole.set(name, tensor)
    })
  }
  const all = [...groups.values()].filter(({ whole }) => whole.size > 0)
  return {
    groups: all.map(({ step, worker, whole }) => ({ step, worker, tensors: [...whole.values()] })),
    unread,
    problems: faults.all(),
    notes,
    metadata,
  }
}

/** The tensors of a worker's step: those that one file has as a whole, and parts. */
interface TensorsByName {
  readonly step: number
  readonly worker: string
  readonly whole: Map<string, StoredTensor>
  readonly parts: Map<string, StoredTensor[]>
}

function fileStem(path: string): string {
  return nameOf(path).replace(/\.[^.]+$/, '')
}

/** True if an index says that a tensor lies in a file. */
function isPlacedBy({ file, shardOf }: FoundIndex, path: string, name: string): boolean {
  const shard = shardOf.get(name)
  return shard !== undefined && directoryOf(file.path) + shard === path
}

/** A tensor of a dtype that can't be reduced. */
function unreadable(url: string, { name, dtype, shape }: StoredTensor, isSplit: boolean): UnreadTensor {
  const [expected, got] = ['a dtype that can be read', isSplit ? `parts of ${dtype}` : dtype]
  const message = `${url}, tensor ${quote(name)}: expected ${expected}, got ${got}`
  return { name, dtype, shape, error: new FormatError('UnreadableDType', message, { url, expected, got }) }
}

/** The common beginnings of the names of each file's tensors. */
function prefixesOf(files: readonly ReadFile[]): string[] {
  const groups = new Set(files.map(({ group }) => group))
  // A dump has very many files, whose names are complete.
  const stems = files.every(({ contents }) => contents.hasFullNames) ? [] : files.map(({ path }) => commonStem(path))
  const isOneStem = new Set(files.map(({ group }, i) => `${group}/${stems[i]}`)).size < 2
  return files.map(({ group, contents }, i) => {
    const stem = stems[i] ?? ''
    const ofGroup = groups.size > 1 && group !== '' ? `${group.replaceAll('/', '.')}.` : ''
    return isOneStem || contents.hasFullNames || isModelStem(stem) ? ofGroup : `${ofGroup}${stem}.`
  })
}
