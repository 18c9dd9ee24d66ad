/** Reads all index files of a trial in jobs. */

import type { TrialscanError } from '../../base/errors.js'
import type { IndexFile } from '../../format/index-file.js'
import { filesOf, INDEX_FILES_PER_JOB, indexFileOf, MANY_INDEX_FILES, type ReadIndexFile } from '../job/index-files.js'
import type { Access } from './access.js'
import { runOnFiles } from './failed-job.js'
import { chunksOf, pumpAll } from './pump.js'
import { runTwice } from './runner.js'

/** The options of reading index files. */
export interface IndexReading {
  readonly threads?: number | undefined
  readonly memory?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/**
 * Yields the contents of index files, or their errors, in order, a job at a time. If an index file lacks the mode (Tornasole's), it is
 * not searched for in event files.
 */
export async function* readIndexFiles(
  paths: readonly string[],
  access: Access,
  { threads, memory, signal }: IndexReading,
): AsyncGenerator<readonly (IndexFile | TrialscanError)[]> {
  const runner = await access.runner(threads, paths.length < MANY_INDEX_FILES ? 0 : Number.POSITIVE_INFINITY, memory)
  const job = { kind: 'index', store: access.spec, readsModes: false } as const
  const read = async (some: readonly string[]) => {
    const files = await runOnFiles<string, ReadIndexFile>(
      some,
      async paths => ({ files: filesOf(await runTwice(runner, { ...job, paths }, signal)) }),
      path => access.store.url(path),
    )
    return files.map((file, i) => (file instanceof Error ? file : indexFileOf(file, some[i]!)))
  }
  const options = { ahead: runner.ahead, signal, settles: true }
  yield* pumpAll(chunksOf(paths, INDEX_FILES_PER_JOB), read, options)
}
