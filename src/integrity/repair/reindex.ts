/** Writes the index files of a trial that has none, or only Tornasole's, byte for byte as smdebug does. */

import { UsageError } from '../../base/errors.js'
import { checkOptions, kinds, optionsOf } from '../../base/options.js'
import type { GlobalStep, Worker } from '../../base/types.js'
import { indexFileText } from '../../format/index-file.js'
import { indexFilePath } from '../../format/paths.js'
import { TrialLoader } from '../../scan/catalog/load/load.js'
import { Access, WORK_OPTIONS, type WorkOptions } from '../../scan/runner/access.js'
import { openStore, storeSpec } from '../../storage/open.js'
import { S3_OPTIONS } from '../../storage/s3/options.js'
import type { S3Options } from '../../storage/s3/spec.js'

export interface ReindexOptions extends Pick<WorkOptions, 'threads'> {
  /** Follow symbolic links out of the trial's directory. Default: they are refused. */
  readonly allowSymlinks?: boolean
  /** Region, endpoint, credentials and limits for S3. See docs/s3.md. */
  readonly s3?: S3Options | undefined
}

const REINDEX_OPTIONS = optionsOf<ReindexOptions>({
  threads: WORK_OPTIONS.threads,
  allowSymlinks: kinds.flag,
  s3: S3_OPTIONS,
})

/** An index file to write. */
export interface ReindexedFile {
  /** Relative to the trial: `index/000000000/000000000010_worker_0.json`. */
  readonly path: string
  readonly step: GlobalStep
  readonly worker: Worker
  readonly text: string
}

/**
 * The index files of a trial, made from its old index files or, without any, from its event files, which don't have saved shapes.
 * Writes nothing.
 * @param path a local directory, its `file://` URL, or `s3://bucket/prefix`
 * @throws what `createTrial` throws; FormatError or StoreError at the first index or event file that can't be read; UsageError for plain
 *   TensorBoard files: they hold several steps in one file, which an index file can't express
 */
export async function reindexTrial(path: string, options?: ReindexOptions): Promise<ReindexedFile[]> {
  const { allowSymlinks = false, s3, threads } = checkOptions('reindexTrial', REINDEX_OPTIONS, options)
  const spec = storeSpec(path, { allowSymlinks, s3 })
  const store = openStore(spec)
  const loader = new TrialLoader(new Access(store, spec), {
    rangeSteps: null,
    threads,
    incompleteStepWindow: 1000,
    requireCollections: false,
    abandonedSteps: false,
    indexCache: null,
  })
  const { index, isTensorBoard, recordProblems, checkpoint } = await loader.load()
  await store.close()
  if (checkpoint !== null) {
    const url = store.url('')
    throw new UsageError(`${url}: expected a trial with event files, got checkpoints, which need no index files`, {
      path,
      url,
    })
  }
  if (isTensorBoard) {
    const wanted = 'a trial with one event file per step and worker'
    const url = store.url('')
    throw new UsageError(`${url}: expected ${wanted}, got plain TensorBoard event files`, { path, url })
  }
  // Problems of collections files don't matter here.
  if (recordProblems[0]) throw recordProblems[0]
  const { columns, rows, faults } = index
  return Array.from(rows, row => {
    const [step, worker, content] = [columns.step(row), columns.worker(row), faults.get(row) ?? columns.content(row)]
    if (content instanceof Error) throw content
    return { path: indexFilePath(step, worker), step, worker, text: indexFileText(content) }
  })
}
