/** Verifies collections files: they can be read, are complete, and name what was saved. */

import { quote, StoreError, TrialscanError } from '../../base/errors.js'
import {
  type Collections,
  CollectionsReader,
  MAX_COLLECTIONS_BYTES,
  mergeCollections,
} from '../../format/collections.js'
import { COLLECTIONS_DIRECTORY, TORNASOLE_COLLECTIONS_FILE } from '../../format/paths.js'
import { parseReductionName } from '../../format/reduction-name.js'
import { parseTornasoleCollections } from '../../format/tornasole.js'
import type { TensorLists } from '../../scan/catalog/columns/tensor-lists.js'
import type { Store } from '../../storage/store.js'
import type { Findings } from './findings.js'
import type { ListedTrial } from './listing.js'
import { listNames } from './lost.js'

/** @returns null if none can be read */
export async function checkCollections(
  store: Store,
  { files, root, unlisted }: ListedTrial,
  findings: Findings,
): Promise<Collections | null> {
  const { collections: paths, ended, isTornasole, index } = files
  const collections: Collections[] = []
  const read = async (path: string, parse: (bytes: Uint8Array, url: string) => Collections): Promise<void> => {
    try {
      const bytes = await store.read(path, { maxByteLength: MAX_COLLECTIONS_BYTES, isText: true })
      collections.push(parse(bytes, store.url(path)))
    } catch (error) {
      if (!(error instanceof TrialscanError)) throw error
      const code = error instanceof StoreError ? 'Unreadable' : 'BadCollectionsFile'
      const lost = 'which tensors belong to which collection, as this worker has it'
      findings.problemOf(error.toJSON(), path, code, lost)
    }
  }
  const reader = new CollectionsReader()
  for (const path of paths) await read(path, (bytes, url) => reader.read(bytes, url))
  if (root.has(TORNASOLE_COLLECTIONS_FILE)) {
    await read(TORNASOLE_COLLECTIONS_FILE, (bytes, url) => ({
      collections: parseTornasoleCollections(new TextDecoder().decode(bytes), url),
      numWorkers: 0,
    }))
  }
  const merged = collections.length === 0 ? null : mergeCollections(collections)
  const isOwed = ended && index.length > 0 && !isTornasole && !unlisted.has(COLLECTIONS_DIRECTORY)
  const owed = merged && paths.length > 0 && ended ? merged.numWorkers : isOwed ? 1 : 0
  if (paths.length < owed) {
    findings.problem({
      code: 'MissingCollectionFiles',
      file: COLLECTIONS_DIRECTORY,
      expected: `collections files of ${merged ? owed : 'all'} workers, since the job has ended`,
      found: `${paths.length}`,
      lost: 'which tensors belong to which collection, as the other workers have it',
    })
  }
  return merged
}

/** The names of the tensors that were saved. */
export class SavedNames {
  readonly #names = new Set<string>()

  add(name: string): void {
    this.#names.add(parseReductionName(name)?.tensor ?? name)
  }

  addLists(lists: TensorLists): void {
    for (const name of lists.names) this.add(name)
    for (const { name } of lists.allShapes()) this.add(name)
  }

  /** Reports collections that name tensors which were never saved. */
  checkMembers(collections: Collections | null, findings: Findings): void {
    for (const [name, { tensorNames }] of collections?.collections ?? []) {
      const missing = tensorNames.filter(tensor => !this.#names.has(tensor))
      if (missing.length === 0) continue
      findings.note({
        code: 'TensorNeverSaved',
        file: COLLECTIONS_DIRECTORY,
        tensor: missing[0]!,
        expected: `the ${tensorNames.length} tensors that collection ${quote(name)} names`,
        found: `nothing of ${listNames(missing, quote)}`,
      })
    }
  }
}
