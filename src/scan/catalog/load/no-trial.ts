/** Directories without smdebug's files: TensorBoard's, or no trial at all. */

import { MissingCollectionFiles, quote, StoreError } from '../../../base/errors.js'
import { isCheckpointFile } from '../../../format/checkpoint/formats.js'
import { notesOnUnread } from '../../../format/checkpoint/unread-formats.js'
import {
  COLLECTIONS_DIRECTORY,
  EVENTS_DIRECTORY,
  INDEX_DIRECTORY,
  isPartOfTrial,
  isTensorBoardFile,
  parseEventFileName,
  trialsAmong,
} from '../../../format/paths.js'
import { filesOfKinds } from '../../../format/place-kind.js'
import { isPartDirectory } from '../../../format/trial-files.js'
import type { Store } from '../../../storage/store.js'

/** The most trials that an error names. */
const MAX_NAMED = 5
/** The number of objects outside any trial after which a place on S3 counts as a mistake; sooner if there are trials below it. */
const MAX_OTHERS = 100_000
const MAX_OTHERS_BESIDE_TRIALS = 10_000

/**
 * Lists all files of a place that may not be a trial. On S3 a listing covers everything below a prefix, which may be a whole bucket.
 * @throws MissingCollectionFiles, with `listed`, if a listing on S3 finds so many other objects that the place must be a mistake
 */
export function listEverything(
  store: Store,
  options: Pick<NonNullable<Parameters<Store['list']>[1]>, 'expects' | 'onError'> = {},
): Promise<string[]> {
  const limit = new ListLimit(store)
  return store.list('', { recursive: true, ...options, onPaths: paths => limit.add(paths) })
}

/** Lists index or event files. Anything else in the place of a directory is a problem, since no file can be found in it. */
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

/** All files of a directory that may have TensorBoard's; none if a link leads out of it, since that could be any directory. */
export function listPlain(store: Store): Promise<string[]> {
  const expects = (path: string, isDirectory: boolean): boolean =>
    !isDirectory && (isTensorBoardFile(path) || isCheckpointFile(path))
  return listEverything(store, { expects }).catch(error => {
    if (error instanceof StoreError && error.code === 'Denied' && store.spec.kind === 'local') return []
    throw error
  })
}

/**
 * The error for a directory that is not a trial. It names the trials inside, says that it is part of one, or what else it contains.
 * @param listed all of its files, if they were listed
 */
export async function noTrial(store: Store, listed: readonly string[] | null): Promise<MissingCollectionFiles> {
  let contents: string
  try {
    const paths = listed?.length ? listed : await listEverything(store)
    const isPart = paths.some(path => parseEventFileName(path) !== null || PART.test(path))
    contents =
      trialsBelow(trialsAmong(paths)) ??
      (isPart ? 'this is a part of one: name the directory above' : shownFiles(paths))
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    contents = `there are none that could be listed (${error.message})`
  }
  return new MissingCollectionFiles(store.url(''), `expected a trial: ${filesOfKinds()}, but ${contents}`)
}

/** An index or collections file by its name alone. */
const PART = /(^|\/)(\d{12}_[^/]+\.(json|csv)|[^/]+_collections\.(json|ts))$/

const NONE = 'there are none'

function shownFiles(paths: readonly string[]): string {
  if (paths.length === 0) return 'there is no file'
  const more = paths.length > MAX_NAMED ? ` and ${paths.length - MAX_NAMED} more` : ''
  const files = paths.slice(0, MAX_NAMED).map(quote).join(', ')
  return [`there are other files: ${files}${more}`, ...notesOnUnread(paths)].join('; ')
}

function trialsBelow(trials: readonly string[]): string | null {
  const more = trials.length > MAX_NAMED ? ` and ${trials.length - MAX_NAMED} more` : ''
  if (trials.length === 0) return null
  return `there are trials below it; name one of them: ${trials.slice(0, MAX_NAMED).join(', ')}${more}`
}

/** Watches a listing, and ends it if it is not that of a trial. */
class ListLimit {
  readonly #store: Store
  /** The caller's limit of files; null for the default. */
  readonly #given: number | null
  readonly #trials = new Set<string>()
  #listed = 0
  #others = 0
  #isTrial = false
  #hasRuns = false

  constructor(store: Store) {
    this.#store = store
    this.#given = (store.spec.kind === 's3' ? store.spec.options.listLimit : undefined) ?? null
  }

  async add(paths: readonly string[]): Promise<void> {
    this.#listed += paths.length
    for (const trial of trialsAmong(paths)) this.#trials.add(trial)
    for (const path of paths) {
      if (isTensorBoardFile(path)) this.#hasRuns = true
      else if (isPartOfTrial(path)) this.#isTrial = true
      else this.#others++
    }
    const isBesideTrials = this.#trials.size > 0 && !this.#hasRuns
    const most = this.#given ?? (isBesideTrials ? MAX_OTHERS_BESIDE_TRIALS : MAX_OTHERS)
    if (most === 0 || this.#isTrial || this.#others < most) return
    // In the order of keys, other objects may come first.
    const parts = [INDEX_DIRECTORY, EVENTS_DIRECTORY, COLLECTIONS_DIRECTORY]
    for (const directory of parts) this.#isTrial ||= await directoryExists(this.#store, directory)
    if (this.#isTrial) return
    const contents = trialsBelow([...this.#trials].sort()) ?? NONE
    const count = `the first ${this.#listed.toLocaleString('en-US')} objects`
    const hint = 's3.listLimit, --s3-list-limit: where the listing ends; 0: nowhere'
    const detail = `expected a trial: ${filesOfKinds()}, but among ${count} ${contents} (${hint})`
    throw new MissingCollectionFiles(this.#store.url(''), detail, { listed: this.#listed })
  }
}

/** True if there is a file below a directory. The listing ends with the first one. */
async function directoryExists(store: Store, directory: string): Promise<boolean> {
  let isFound = false
  const enough = new Error()
  const onPaths = (paths: readonly string[]): void => {
    isFound = paths.length > 0
    if (isFound) throw enough
  }
  await store.list(directory, { recursive: true, onPaths }).catch(error => {
    if (error !== enough) throw error
  })
  return isFound
}
