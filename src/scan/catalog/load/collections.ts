/** Reads the collections files of all workers, and finds missing ones. */

import { MissingCollectionFiles, TrialscanError } from '../../../base/errors.js'
import type { Worker } from '../../../base/types.js'
import {
  type Collections,
  CollectionsReader,
  MAX_COLLECTIONS_BYTES,
  mergeCollections,
} from '../../../format/collections.js'
import {
  COLLECTIONS_DIRECTORY,
  collectionsFilePath,
  parseCollectionsFileName,
  TORNASOLE_COLLECTIONS_FILE,
} from '../../../format/paths.js'
import { parseTornasoleCollections } from '../../../format/tornasole.js'
import { isCollectionsFile } from '../../../format/trial-files.js'
import { eachFile, type Store } from '../../../storage/store.js'

/** The workers' collections, and the errors of unreadable collections files. */
export interface FoundCollections extends Pick<Collections, 'collections'> {
  /** The number of workers; null if no file has it. */
  readonly numWorkers: number | null
  readonly paths: readonly string[]
  readonly problems: readonly TrialscanError[]
}

export async function readCollections(store: Store, paths: readonly string[]): Promise<FoundCollections | null> {
  const files = paths.filter(isCollectionsFile)
  const reader = new CollectionsReader()
  const problems: TrialscanError[] = []
  const ofWorkers = await eachFile(store, files, async path => {
    try {
      const bytes = await store.read(path, { maxByteLength: MAX_COLLECTIONS_BYTES, isText: true })
      return [reader.read(bytes, store.url(path))]
    } catch (error) {
      if (!(error instanceof TrialscanError)) throw error
      problems.push(error)
      return []
    }
  })
  if (files.length === 0) return null
  const read = ofWorkers.flat()
  const { collections, numWorkers } = mergeCollections(read)
  return { collections, numWorkers: read.length > 0 ? numWorkers : null, paths: files, problems }
}

/** Reads Tornasole's collections file. */
export async function readTornasoleCollections(store: Store): Promise<FoundCollections> {
  // This file doesn't have the number of workers.
  const file = { numWorkers: null, paths: [TORNASOLE_COLLECTIONS_FILE] }
  try {
    const bytes = await store.read(TORNASOLE_COLLECTIONS_FILE, { maxByteLength: MAX_COLLECTIONS_BYTES })
    const url = store.url(TORNASOLE_COLLECTIONS_FILE)
    const collections = parseTornasoleCollections(new TextDecoder().decode(bytes), url)
    return { ...file, collections, problems: [] }
  } catch (error) {
    if (!(error instanceof TrialscanError)) throw error
    return { ...file, collections: new Map(), problems: [error] }
  }
}

/** The collections files that an ended job lacks: one per worker, and at least one if it wrote an index as smdebug does. */
export function missingCollections(
  store: Store,
  collections: FoundCollections | null,
  { isExpected, isRequired }: { readonly isExpected: boolean; readonly isRequired: boolean },
): MissingCollectionFiles[] {
  const numWorkers = collections?.numWorkers ?? (isExpected ? 1 : 0)
  const fileCount = collections?.paths.length ?? 0
  if (fileCount >= numWorkers) return []
  const wanted = `expected collections files of ${collections ? numWorkers : 'all'} workers, but the job has ended with`
  const hint = isRequired ? '; to open the trial anyway, set requireCollections: false' : ''
  return [new MissingCollectionFiles(store.url(COLLECTIONS_DIRECTORY), `${wanted} ${fileCount}${hint}`)]
}

/** A digest of what changes when a worker begins or a file is repaired. */
export function summaryOf(collections: FoundCollections | null): string {
  return collections === null
    ? ''
    : JSON.stringify([collections.paths, collections.numWorkers, collections.problems.length])
}

/** Workers with data, and those with only a collections file, under the name in it; sorted. */
export function allWorkers(withData: readonly Worker[], collectionsPaths: readonly string[]): Worker[] {
  const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1)
  // A long name is shortened in the file's name.
  const byFile = new Map(withData.map(worker => [nameOf(collectionsFilePath(worker)), worker]))
  const withFile = collectionsPaths.flatMap(path => {
    const worker = byFile.get(nameOf(path)) ?? parseCollectionsFileName(path)
    return worker ? [worker] : []
  })
  return [...new Set([...withData, ...withFile])].sort()
}
