/** Reads all index files of a trial in jobs. */

import type { TrialscanError } from '../../base/errors.js'
import { filesOf, INDEX_FILES_PER_JOB, MANY_INDEX_FILES, type ReadIndexFile } from '../job/index-job.js'
import type { Access } from './access.js'
import { runOnFiles } from './failed-job.js'
import { chunksOf, pumpAll } from './pump.js'
import { runTwice } from './runner.js'

/** The options of reading index files. */
export interface IndexReading {
  readonly threads?: number | undefined
  readonly memory?: number | undefined
  readonly signal?: AbortSignal | undefined
  /** True to read the mode from the event file if an index file (Tornasole's) lacks it. Default: false. */
  readonly readsModes?: boolean
}

/** Yields the contents of index files, or their errors, in order, a job at a time. */
export async function* readIndexFiles(
  paths: readonly string[],
  access: Access,
  { threads, memory, signal, readsModes = false }: IndexReading,
): AsyncGenerator<readonly (ReadIndexFile | TrialscanError)[]> {
  const runner = await access.runner(threads, paths.length < MANY_INDEX_FILES ? 0 : Number.POSITIVE_INFINITY, memory)
  const job = { kind: 'index', store: access.spec, readsModes } as const
  const read = (some: readonly string[]) =>
    runOnFiles<string, ReadIndexFile>(
      some,
      async paths => ({ files: filesOf(await runTwice(runner, { ...job, paths }, signal)) }),
      path => access.store.url(path),
    )
  const options = { ahead: runner.ahead, signal, settles: true }
  yield* pumpAll(chunksOf(paths, INDEX_FILES_PER_JOB), read, options)
}
