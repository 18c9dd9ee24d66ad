/** The files of a checkpoint that are read: those that its indices name, or all of a kind. What is missing is a fault. */

import { FormatError, quote } from '../../../base/errors.js'
import { inTurns } from '../../../base/turns.js'
import { directoryOf, isOfIndex, isOtherThanIndexed, nameOf } from '../../../format/checkpoint/file-roles.js'
import { indexOfPart } from '../../../format/checkpoint/formats.js'
import type { CheckpointFile, CheckpointPlace } from '../../../format/checkpoint/layout.js'
import { isShardIndex, missingShards, type ShardIndex } from '../../../format/checkpoint/safetensors/shards.js'
import type { TensorFileContents } from '../../../format/checkpoint/stored-tensor.js'
import type { Store } from '../../../storage/store.js'
import type { Faults } from './faults.js'

/** An index that was read, and the file that it is. */
export interface FoundIndex extends ShardIndex {
  readonly file: CheckpointFile
}

/** True if a file was named, instead of a directory: it is meant alone, an index with the files that it names. */
export function isNamedFile({ files, place }: CheckpointPlace): boolean {
  return files.length === 1 && files[0]!.path === place && place !== ''
}

/**
 * The files of tensors that are read.
 * @param copies paths of files whose weights are in files beside them as well
 */
export function chooseFiles(
  store: Store,
  checkpoint: CheckpointPlace,
  { indices, copies }: { readonly indices: readonly FoundIndex[]; readonly copies: ReadonlySet<string> },
  faults: Faults,
  notes: string[],
): CheckpointFile[] {
  const { files } = checkpoint
  const isAlone = isNamedFile(checkpoint)
  const existing = new Set(files.map(({ path }) => path))
  const indexed = new Set<string>()
  const chosen: CheckpointFile[] = []
  for (const index of indices) {
    for (const shard of index.shards) {
      const path = directoryOf(index.file.path) + shard
      if (existing.has(path)) indexed.add(path)
      else if (isAlone) chosen.push({ ...index.file, path })
      else faults.add(missingShard(store.url(path), index, shard))
    }
  }
  const unsaved = new Set<string>()
  for (const file of files) {
    const { path } = file
    if (copies.has(path)) {
      notes.push(`${path} is not read: other files beside it have the same weights`)
      continue
    }
    if (isShardIndex(path)) continue
    const index = indices.find(index => directoryOf(index.file.path) === directoryOf(path))
    const described = indexOfPart(path)
    if (described !== null) unsaved.add(described)
    else if (index !== undefined && !indexed.has(path) && isOtherThanIndexed(path, index.file.path, index.shards))
      notes.push(`${path} is not read: ${quote(nameOf(index.file.path))} names other files`)
    else chosen.push(file)
  }
  for (const path of unsaved) faults.add(unfinished(store.url(directoryOf(path)), nameOf(path)))
  if (!isAlone) {
    const isOfAny = (path: string): boolean =>
      indices.some(
        ({ file, shards }) => directoryOf(file.path) === directoryOf(path) && isOfIndex(nameOf(path), shards),
      )
    const others = chosen.flatMap(({ path }) => (isOfAny(path) ? [] : path))
    for (const { path, total } of missingShards(others)) {
      const [url, expected, got] = [store.url(path), `${total} shards, as their names say`, 'no such file']
      faults.add(
        new FormatError('MissingShard', `${url}: expected ${expected}, got ${got}`, {
          url,
          expected,
          got,
          lost: 'its tensors',
        }),
      )
    }
  }
  return chosen
}

function unfinished(url: string, name: string): FormatError {
  const [expected, got] = [`${name} beside the files that it describes`, 'no such file']
  const message = `${url}: expected ${expected}, got ${got}: the save of this checkpoint never finished`
  return new FormatError('UnfinishedSave', message, { url, expected, got, lost: 'all tensors in it' })
}

function missingShard(url: string, index: FoundIndex, shard: string): FormatError {
  let count = 0
  for (const name of index.shardOf.values()) if (name === shard) count++
  const lost = count === 1 ? '1 tensor' : `${count} tensors`
  const [expected, got] = [`the shard that ${index.file.path} names`, 'no such file']
  const message = `${url}: expected ${expected}, got ${got}: ${lost} ${count === 1 ? 'is' : 'are'} lost`
  return new FormatError('MissingShard', message, { url, expected, got, lost })
}

/** Compares an index with what its shards contain. */
export async function checkIndex(
  store: Store,
  index: FoundIndex,
  read: readonly { readonly path: string; readonly contents: TensorFileContents }[],
  faults: Faults,
): Promise<void> {
  const url = store.url(index.file.path)
  const directory = directoryOf(index.file.path)
  const placed = new Map<string, string>()
  for (const { path, contents } of read) {
    const name = nameOf(path)
    if (directoryOf(path) !== directory || !isOfIndex(name, index.shards)) continue
    await inTurns([...contents.tensors, ...contents.unread], tensor => {
      if (!placed.has(tensor.name)) placed.set(tensor.name, name)
      const shard = index.shardOf.get(tensor.name)
      if (shard === name) return
      const expected = `tensor ${quote(tensor.name)} ${shard === undefined ? 'in the index' : `in ${shard}`}`
      faults.index(url, expected, `it in ${name}`)
    })
  }
  const paths = new Set(read.map(({ path }) => path))
  await inTurns([...index.shardOf], ([name, shard]) => {
    if (placed.has(name) || !paths.has(directory + shard)) return
    faults.index(url, `tensor ${quote(name)} in ${shard}`, 'no such tensor there')
  })
}
