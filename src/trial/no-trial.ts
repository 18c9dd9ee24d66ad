/** Directories in which nothing of smdebug's lies: TensorBoard's files, or no trial at all. */

import { MissingCollectionFiles, StoreError } from '../errors.js'
import {
  COLLECTIONS_DIRECTORY,
  INDEX_DIRECTORY,
  isTensorBoardFile,
  parseEventFileName,
  trialsAmong,
} from '../format/paths.js'
import { isPartDirectory } from '../format/trial-files.js'
import type { Store } from '../store/store.js'

const WANTED = `a trial: files under ${COLLECTIONS_DIRECTORY}/ and ${INDEX_DIRECTORY}/, or event files`
/** Trials that are named. */
const MAX_NAMED = 5

/**
 * Index or event files, whatever there is in their place; and where nothing can be found since something else is in place
 * of a directory.
 */
export async function listParts(
  store: Store,
  directory: string,
  expects: (path: string) => boolean,
  after: string | null = null,
): Promise<{ readonly paths: readonly string[]; readonly problems: readonly StoreError[] }> {
  const problems: StoreError[] = []
  const onError = (path: string, error: StoreError): void => {
    if (error.code !== 'NotAFile' && error.code !== 'NotFound') throw error
    if (isPartDirectory(path)) problems.push(error)
  }
  const paths = await store.list(directory, { recursive: true, expects, onError, ...(after !== null && { after }) })
  return { paths, problems }
}

/** All files of a directory in which TensorBoard's may lie. If a link leads out of it, none: it is some directory or other. */
export function listPlain(store: Store): Promise<string[]> {
  const expects = (path: string, isDirectory: boolean): boolean => !isDirectory && isTensorBoardFile(path)
  return store.list('', { recursive: true, expects }).catch(error => {
    if (error instanceof StoreError && error.code === 'Denied') return []
    throw error
  })
}

/** The error for a directory that is no trial: it names those that lie in it, or says that it is a part of one. */
export async function noTrial(store: Store): Promise<MissingCollectionFiles> {
  let found = 'there are none'
  try {
    const paths = await store.list('', { recursive: true })
    const trials = trialsAmong(paths)
    const more = trials.length > MAX_NAMED ? ` and ${trials.length - MAX_NAMED} more` : ''
    if (trials.length > 0)
      found = `there are trials below, each to be named: ${trials.slice(0, MAX_NAMED).join(', ')}${more}`
    else if (paths.some(path => parseEventFileName(path) !== null))
      found = 'this is a part of one: name the directory above'
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    found = `there are none that can be listed (${error.message})`
  }
  return new MissingCollectionFiles(store.url(''), `expected ${WANTED}, but ${found}`)
}
