/** The collections files of a clean copy. */

import { type ErrorData, FormatError, TrialscanError } from '../../base/errors.js'
import type { Worker } from '../../base/types.js'
import { MAX_COLLECTIONS_BYTES, parseCollections } from '../../format/collections.js'
import { parseJsonObject, pythonJson } from '../../format/json.js'
import { collectionsFilePath, parseCollectionsFileName } from '../../format/paths.js'
import type { OutputDirectory } from '../../storage/local/output.js'
import type { RepairContext } from './context.js'

/** The limit of workers for whom a missing collections file is made up. A larger number is itself the error. */
const MAX_WORKERS = 10_000
/** The limit of bytes for copies of a good collections file in place of missing ones. */
const MAX_SUBSTITUTES_BYTES = 16 << 20

/**
 * Copies the files that can be read. In place of one that can't, or that an ended job owes, comes one that can: with what
 * can be saved of it, else what another worker's says, else without a collection.
 * @param paths of the files there are
 * @param workers who wrote index or event files
 * @param areExpected whether each worker owes a file: the job has ended
 */
export async function repairCollections(
  paths: readonly string[],
  workers: readonly Worker[],
  areExpected: boolean,
  { access: { store }, output, notes, source }: RepairContext,
): Promise<void> {
  let good: Uint8Array | null = null
  const bad: { readonly path: string; readonly error: ErrorData; readonly bytes: Uint8Array | null }[] = []
  let numWorkers = 0
  for (const path of paths) {
    let bytes: Uint8Array | null = null
    try {
      bytes = await store.read(path, { maxByteLength: MAX_COLLECTIONS_BYTES, isText: true })
      const url = store.url(path)
      const parsed = parseCollections(new TextDecoder().decode(bytes), url)
      if (parsed.numWorkers > Math.max(MAX_WORKERS, workers.length)) {
        const [expected, got] = [`at most ${MAX_WORKERS} workers`, `${parsed.numWorkers}`]
        const message = `${url}: expected ${expected}, got ${got}`
        throw new FormatError('BadCollectionsFile', message, { url, expected, got })
      }
      numWorkers = Math.max(numWorkers, parsed.numWorkers)
    } catch (error) {
      if (!(error instanceof TrialscanError)) throw error
      const data = error.toJSON()
      source.expectTold(path, data)
      bad.push({ path, error: data, bytes })
      continue
    }
    good ??= bytes
    await output.write(copiedPath(path, output), bytes)
    notes.countFile('copied')
  }
  if (numWorkers === 0) numWorkers = Math.max(1, workers.length)
  const empty = pythonJson({ collections: {}, _meta: { num_workers: numWorkers } })
  const missing = bad.length + (areExpected ? Math.max(0, numWorkers - paths.length) : 0)
  // A reader of all of them needs no more than one that is good; what a file claims shall not fill the disk.
  const substitute = good !== null && good.length * missing <= MAX_SUBSTITUTES_BYTES ? good : empty
  for (const { path, error, bytes } of bad) {
    const saved = bytes && withNumWorkers(bytes, numWorkers)
    await output.write(copiedPath(path, output), saved ?? substitute)
    notes.rebuild(path, error.message)
    if (saved === null) notes.leaveOutFile(path, error)
  }
  if (!areExpected || paths.length >= numWorkers) return
  const present = new Set(paths.map(parseCollectionsFileName))
  // Those who wrote nothing else can only be guessed, by the names that ranks have.
  const owing = [...workers, ...Array.from({ length: numWorkers }, (_, rank) => `worker_${rank}` as Worker)]
  for (const worker of owing) {
    if (present.has(worker) || present.size >= numWorkers) continue
    present.add(worker)
    const path = collectionsFilePath(worker)
    const message = 'the job has ended, and there is no such file'
    await output.write(path, substitute)
    notes.rebuild(path, message)
    notes.leaveOutFile(path, { code: 'MissingCollectionFiles', message })
  }
}

/** The path of a file in the copy: its own, or another where there is room for its name. */
function copiedPath(path: string, output: OutputDirectory): string {
  return output.fits(path) ? path : collectionsFilePath(parseCollectionsFileName(path)!)
}

/** The text of a file in which nothing but the number of workers is wrong; null for any other. */
function withNumWorkers(bytes: Uint8Array, numWorkers: number): string | null {
  try {
    const file = parseJsonObject(new TextDecoder().decode(bytes), '', 'BadCollectionsFile')
    const text = pythonJson({ ...file, _meta: { num_workers: numWorkers } })
    parseCollections(text, '')
    return text
  } catch {
    return null
  }
}
