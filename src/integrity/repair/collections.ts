/** The collections files of a clean copy. */

import { type ErrorData, FormatError, TrialscanError } from '../../base/errors.js'
import type { Worker } from '../../base/types.js'
import { MAX_COLLECTIONS_BYTES, parseCollections } from '../../format/collections.js'
import { parseJsonObject, pythonJson } from '../../format/json.js'
import { collectionsFilePath, parseCollectionsFileName } from '../../format/paths.js'
import type { OutputDirectory } from '../../storage/local/output-directory.js'
import type { RepairContext } from './context.js'

/** The largest number of workers for whom a missing collections file is made. A larger number is itself the error. */
const MAX_WORKERS = 10_000
/** The limit of bytes for copies of a good collections file in place of missing ones. */
const MAX_SUBSTITUTES_BYTES = 16 << 20

/**
 * Copies the collections files that can be read. One that can't be read, or is missing although the job has ended, is replaced: by what
 * can be recovered from it, by the content of another worker's file, or by an empty one.
 * @param paths the collections files of the trial
 * @param workers the workers that wrote index or event files
 * @param areExpected true if each worker must have a file, since the job has ended
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
  // Readers need just one good file. The claimed number of workers must not fill the disk.
  const substitute = good !== null && good.length * missing <= MAX_SUBSTITUTES_BYTES ? good : empty
  for (const { path, error, bytes } of bad) {
    const saved = bytes && withNumWorkers(bytes, numWorkers)
    await output.write(copiedPath(path, output), saved ?? substitute)
    notes.rebuild(path, error.message)
    if (saved === null) notes.leaveOutFile(path, error)
  }
  if (!areExpected || paths.length >= numWorkers) return
  const present = new Set(paths.map(parseCollectionsFileName))
  // The names of workers that wrote nothing else can only be guessed from their ranks.
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

/** The path of a file in the copy: its own, or another one if the name is taken. */
function copiedPath(path: string, output: OutputDirectory): string {
  return output.fits(path) ? path : collectionsFilePath(parseCollectionsFileName(path)!)
}

/** The corrected text of a file whose only fault is the number of workers; null for any other file. */
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
