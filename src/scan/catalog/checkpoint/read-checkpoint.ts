/** One checkpoint: the tensors of its files, brought together. No more is read than their headers. */

import { FormatError, isAboutFile, quote, type StoreError, TrialscanError } from '../../../base/errors.js'
import { inTurns } from '../../../base/turns.js'
import { isNumeric } from '../../../core/dtype.js'
import { formatOf, isChunkFile } from '../../../format/checkpoint/formats.js'
import type { CheckpointFile, CheckpointPlace } from '../../../format/checkpoint/layout.js'
import { expectNoLfsPointer } from '../../../format/checkpoint/lfs-pointer.js'
import {
  isShardIndex,
  MAX_INDEX_BYTES,
  parseShardIndex,
  type ShardIndex,
  stemOf,
} from '../../../format/checkpoint/safetensors/shards.js'
import {
  HEAD_BYTES,
  type RangedFile,
  type StoredTensor,
  type Surroundings,
  type TensorFileContents,
  type UnreadTensor,
} from '../../../format/checkpoint/stored-tensor.js'
import { isRemote, type Store } from '../../../storage/store.js'
import { Faults, MAX_FAULTS } from './faults.js'
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

/** Files that hold what else a training needs to go on, by their names: the names of their tensors begin with theirs. */
const IS_MAIN = /model|weights|adapter|consolidated|pytorch|lora|actor/i
const IS_STATE = /^(?:optimizer|optim|scheduler|scaler|rng_state|random_states|training_args|extra_state)/i
/** Names that are whole, since the format takes them from elsewhere. */
const HAS_OWN_NAMES = /\.(?:npy|json|metadata)$/

/** A file, and what is in it. */
interface ReadFile extends CheckpointFile {
  readonly contents: TensorFileContents
}

/** @throws StoreError if the store can't be reached */
export async function readCheckpoint(store: Store, checkpoint: CheckpointPlace): Promise<Checkpoint> {
  const faults = new Faults()
  const notes: string[] = []
  const indices = await readIndices(store, checkpoint.files, faults)
  const chosen = chooseFiles(store, checkpoint, indices, faults, notes)
  const paths = checkpoint.files.map(({ path }) => path)
  const versions = new Map<string, string>()
  const open = async (path: string): Promise<RangedFile> => {
    const ranged = await rangedFile(store, path)
    if (ranged.version !== undefined) versions.set(path, ranged.version)
    return ranged
  }
  const around: Surroundings = { paths, open }
  const formats = new Set<string>()
  const read = await readAll(store, chosen, faults, async file => {
    const ranged = await open(file.path)
    const head = await ranged.read(0, Math.min(HEAD_BYTES, ranged.byteLength))
    expectNoLfsPointer(head, ranged.url)
    const format = formatOf(file.path, head)
    if (format === null) return null
    formats.add(format.kind)
    return { ...file, contents: await format.read(ranged, around) }
  })
  store.release?.()
  for (const index of indices) await checkIndex(store, index, read, faults)
  checkWorkers(store, checkpoint, read, faults)
  return {
    ...(await merged(store, checkpoint, read, faults, notes)),
    formats: [...formats],
    fileCount: read.length,
    versions,
  }
}

/** Tells of workers whose files are missing, where the others say how many there are. */
function checkWorkers(
  store: Store,
  { place, files }: CheckpointPlace,
  read: readonly ReadFile[],
  faults: Faults,
): void {
  const count = read.reduce((most, { contents }) => Math.max(most, contents.numWorkers ?? 0), 0)
  const isAlone = files.length === 1 && files[0]!.path === place
  if (count <= read.length || (isAlone && place !== '')) return
  const url = store.url(place)
  const [expected, got] = [`files of ${count} workers`, `${read.length}`]
  const message = `${url}: expected ${expected}, got ${got}: the others have not saved this step`
  faults.add(new FormatError('MissingWorkers', message, { url, expected, got }))
}

interface FoundIndex extends ShardIndex {
  readonly file: CheckpointFile
  readonly directory: string
}

async function readIndices(store: Store, files: readonly CheckpointFile[], faults: Faults): Promise<FoundIndex[]> {
  const found = await readAll(
    store,
    files.filter(({ path }) => isShardIndex(path)),
    faults,
    async file => {
      const bytes = await store.read(file.path, { maxByteLength: MAX_INDEX_BYTES, isText: true })
      expectNoLfsPointer(bytes, store.url(file.path))
      const index = parseShardIndex(new TextDecoder().decode(bytes), store.url(file.path))
      const directory = file.path.slice(0, file.path.lastIndexOf('/') + 1)
      for (const problem of index.problems) faults.add(problem)
      return { ...index, file, directory }
    },
  )
  return found
}

/** The files of tensors that count. */
function chooseFiles(
  store: Store,
  { files, place }: CheckpointPlace,
  indices: readonly FoundIndex[],
  faults: Faults,
  notes: string[],
): CheckpointFile[] {
  // A file that was named is meant alone; an index, with the files that it names.
  const isAlone = files.length === 1 && files[0]!.path === place
  const there = new Set(files.map(({ path }) => path))
  const named = new Map<string, FoundIndex>()
  const chosen: CheckpointFile[] = []
  for (const index of indices) {
    for (const shard of index.shards) {
      const path = index.directory + shard
      if (there.has(path)) named.set(path, index)
      else if (isAlone) chosen.push({ ...index.file, path })
      else faults.add(missingShard(store.url(path), index, shard))
    }
  }
  const tensors = files.filter(({ path }) => !isShardIndex(path))
  const hasSafetensors = new Set(
    tensors.filter(({ path }) => path.endsWith('.safetensors')).map(({ path }) => directoryOf(path)),
  )
  for (const directory of new Set(
    tensors.filter(({ path }) => isChunkFile(path)).map(({ path }) => directoryOf(path)),
  )) {
    faults.add(unfinished(store.url(directory)))
  }
  for (const file of tensors) {
    const { path } = file
    if (isChunkFile(path)) continue
    const name = path.slice(directoryOf(path).length)
    const index = indices.find(({ directory }) => directory === directoryOf(path))
    const isOther =
      index !== undefined &&
      !named.has(path) &&
      path.endsWith('.safetensors') &&
      !IS_STATE.test(name) &&
      (stemOf(name) === stemOf(index.file.path.slice(index.directory.length)) || name.startsWith('consolidated'))
    const isCopy = hasSafetensors.has(directoryOf(path)) && /^pytorch_model.*\.bin$/.test(name)
    if (isOther) notes.push(`${path} is not read: ${quote(index.file.path)} names other files`)
    else if (isCopy) notes.push(`${path} is not read: the safetensors files beside it have the same weights`)
    else chosen.push(file)
  }
  if (!isAlone) for (const fault of missingOfSeries(store, chosen, named)) faults.add(fault)
  return chosen
}

function directoryOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/') + 1)
}

function unfinished(url: string): FormatError {
  const [expected, got] = ['.metadata beside the files of ranks', 'no such file']
  const message = `${url}: expected ${expected}, got ${got}: the save of this distributed checkpoint never finished`
  return new FormatError('UnfinishedSave', message, { url, expected, got, lost: 'all tensors in it' })
}

function missingShard(url: string, index: FoundIndex, shard: string): FormatError {
  let count = 0
  for (const name of index.shardOf.values()) if (name === shard) count++
  const expected = `the shard that ${index.file.path} names`
  const message = `${url}: expected ${expected}, got no such file: ${count} tensors are lost`
  return new FormatError('MissingShard', message, { url, expected, got: 'no such file', lost: `${count} tensors` })
}

/** Without an index, what the names of shards say. */
function missingOfSeries(
  store: Store,
  files: readonly CheckpointFile[],
  named: ReadonlyMap<string, FoundIndex>,
): FormatError[] {
  const series = new Map<string, { readonly total: number; readonly width: number; readonly found: Set<number> }>()
  for (const { path } of files) {
    // Where ranks write files, `shard-00002-model-…`, each need not have some of all.
    const plain = path.replace(/(^|\/)shard-\d+-(?=[^/]*$)/, '$1')
    const match = named.has(path) ? null : /^(.*-)(\d{5,6})-of-(\d{5,6}\..*)$/.exec(plain)
    if (match === null) continue
    const key = `${match[1]}\0-of-${match[3]}`
    const known = series.get(key) ?? {
      total: Number.parseInt(match[3]!, 10),
      width: match[2]!.length,
      found: new Set(),
    }
    known.found.add(Number(match[2]))
    series.set(key, known)
  }
  const faults: FormatError[] = []
  for (const [key, { total, width, found }] of series) {
    for (let number = 1; number <= Math.min(total, 9999) && faults.length < MAX_FAULTS; number++) {
      if (found.has(number)) continue
      const url = store.url(key.replace('\0', `${number}`.padStart(width, '0')))
      const message = `${url}: expected ${total} shards, as their names say, got no such file`
      faults.push(new FormatError('MissingShard', message, { url, expected: `${total} shards`, got: 'no such file' }))
    }
  }
  return faults
}

/** Compares the index with what the shards contain. */
async function checkIndex(store: Store, index: FoundIndex, read: readonly ReadFile[], faults: Faults): Promise<void> {
  const url = store.url(index.file.path)
  const shards = new Set(index.shards)
  const placed = new Map<string, string>()
  for (const { path, contents } of read) {
    const name = path.slice(directoryOf(path).length)
    if (directoryOf(path) !== index.directory || !shards.has(name)) continue
    await inTurns([...contents.tensors, ...contents.unread], tensor => {
      if (!placed.has(tensor.name)) placed.set(tensor.name, name)
      const said = index.shardOf.get(tensor.name)
      if (said === name) return
      const expected = `tensor ${quote(tensor.name)} ${said === undefined ? 'in the index' : `in ${said}`}`
      faults.index(url, expected, `it in ${name}`)
    })
  }
  const isRead = new Set(read.map(({ path }) => path))
  await inTurns([...index.shardOf], ([name, shard]) => {
    if (placed.has(name) || !isRead.has(index.directory + shard)) return
    faults.index(url, `tensor ${quote(name)} in ${shard}`, 'no such tensor there')
  })
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
  const one = async (file: CheckpointFile): Promise<T | null> => {
    try {
      return await read(file)
    } catch (error) {
      if (!(error instanceof TrialscanError) || !isAboutFile(error.toJSON())) throw error
      faults.add(error as FormatError | StoreError)
      return null
    }
  }
  for (let i = 0; i < files.length; i += atOnce) {
    results.push(...(await Promise.all(files.slice(i, i + atOnce).map(one))))
  }
  return results.filter(result => result !== null) as T[]
}

async function merged(
  store: Store,
  place: CheckpointPlace,
  read: readonly ReadFile[],
  faults: Faults,
  notes: readonly string[],
): Promise<Omit<Checkpoint, 'formats' | 'fileCount' | 'versions'>> {
  const prefixes = prefixesOf(read)
  const metadata = new Map<string, string>()
  const unread: UnreadTensor[] = []
  const groups = new Map<string, TensorsByName>()
  for (const [i, { path, worker: file, contents }] of read.entries()) {
    const prefix = prefixes[i]!
    for (const [key, value] of contents.metadata ?? []) if (!metadata.has(key)) metadata.set(key, value)
    for (const problem of contents.problems) faults.add(problem)
    for (const tensor of contents.unread)
      unread.push(prefix === '' ? tensor : { ...tensor, name: prefix + tensor.name })
    let last: TensorsByName | undefined
    await inTurns(contents.tensors, tensor => {
      // Parts of it may begin amid a byte.
      const isSplit = tensor.dtype === 'float4_e2m1fn' && tensor.isPart === true
      if (!isNumeric(tensor.dtype) || isSplit) {
        unread.push(unreadable(store.url(path), tensor, isSplit))
        return
      }
      const own = prefix === '' ? tensor : { ...tensor, name: prefix + tensor.name }
      const { step = place.step, worker = file ?? ONLY_WORKER } = tensor
      if (last?.step !== step || last.worker !== worker) {
        const key = `${step} ${worker}`
        last = groups.get(key) ?? { step, worker, whole: new Map(), parts: new Map() }
        groups.set(key, last)
      }
      const { whole, parts } = last
      const known = whole.get(own.name)
      if (own.isPart) parts.set(own.name, [...(parts.get(own.name) ?? []), own])
      else if (known === undefined) whole.set(own.name, own)
      else faults.duplicate(store.url(path), own.name, fileOf(known))
    })
  }
  for (const { whole, parts } of groups.values()) {
    await inTurns([...parts], ([name, some]) => {
      const tensor = joined(store, some, faults)
      if (tensor !== null) whole.set(name, tensor)
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

/** A tensor of a dtype that can't be reduced. */
function unreadable(url: string, { name, dtype, shape }: StoredTensor, isSplit: boolean): UnreadTensor {
  const [expected, got] = ['a dtype that can be read', isSplit ? `parts of ${dtype}` : dtype]
  const message = `${url}, tensor ${quote(name)}: expected ${expected}, got ${got}`
  return { name, dtype, shape, error: new FormatError('UnreadableDType', message, { url, expected, got }) }
}

/** `optim_states` of `bf16_zero_pp_rank_0_mp_rank_00_optim_states`: who saved a file is no part of its tensors' names. */
function withoutRank(stem: string): string {
  return stem
    .replace(/^(?:(?:bf16_|fp16_)?zero_pp_rank_\d+_)?mp_rank_\d+(?:_\d+)*(?:_|$)/, '')
    .replace(/(?:[-_.]world_size[-_=]?\d+)?(?:^|[-_.])rank[-_=]?\d+(?=$|[-_.])/i, '')
}

/** The common beginnings of the names of each file's tensors. */
function prefixesOf(files: readonly ReadFile[]): string[] {
  const groups = new Set(files.map(({ group }) => group))
  const stemAt = (path: string) => withoutRank(stemOf(path.slice(directoryOf(path).length)))
  const fileStems = files.map(({ path }) => stemAt(path))
  const stems = new Set(files.map(({ group }, i) => `${group}/${fileStems[i]}`))
  return files.map(({ path, group }, i) => {
    const name = path.slice(directoryOf(path).length)
    const stem = fileStems[i]!
    const ofGroup = groups.size > 1 && group !== '' ? `${group.replaceAll('/', '.')}.` : ''
    const isWhole = stems.size < 2 || HAS_OWN_NAMES.test(name) || /___name=|-(?:input|output)\./.test(name)
    if (isWhole) return ofGroup
    const isState = IS_STATE.test(stem)
    const isMain = !isState && (IS_MAIN.test(stem) || name.endsWith('.safetensors'))
    return isMain ? ofGroup : `${ofGroup}${stem}.`
  })
}
