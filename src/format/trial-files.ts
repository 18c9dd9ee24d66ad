/** What a listing of a trial's files tells: whose layout it is, what each file is, and which of them count. Pure. */

import { FormatError, quote, shortPath } from '../errors.js'
import {
  COLLECTIONS_DIRECTORY,
  END_MARKERS,
  EVENTS_DIRECTORY,
  type EventFileName,
  eventFilePath,
  INDEX_DIRECTORY,
  type IndexFileName,
  indexFilePath,
  isOfNoStep,
  isTemporary,
  isTensorBoardFile,
  parseCollectionsFileName,
  parseEventFileName,
  parseIndexFileName,
  TORNASOLE_COLLECTIONS_FILE,
  TORNASOLE_END_MARKER,
} from './paths.js'

/**
 * What the files of a trial are, told by their names alone: all who read a trial ask here. An answer is worked out when it is
 * first asked for, from the files that were listed.
 */
export class TrialFiles {
  readonly #paths: readonly string[]
  #superseded: ReadonlySet<string> | undefined
  #duplicates: ReadonlyMap<string, string> | undefined
  #eventDuplicates: ReadonlyMap<string, string> | undefined
  #index: readonly string[] | undefined
  #events: readonly string[] | undefined

  /** @param paths of all files, or of those directories about which something is asked */
  constructor(paths: readonly string[]) {
    this.#paths = paths
  }

  /** Whether Tornasole wrote it, which called float16 int32: index files that `reindexTrial` made beside its own change nothing. */
  get isTornasole(): boolean {
    const isItsOwn = (path: string): boolean => path === TORNASOLE_COLLECTIONS_FILE || path === TORNASOLE_END_MARKER
    return this.#paths.some(path => isItsOwn(path) || isCsvIndex(path))
  }

  /**
   * Whether nothing of smdebug's or Tornasole's is here, so that TensorBoard's files are what is read. A collections file tells
   * whose trial it is before it is finished; an end marker alone doesn't.
   */
  get isPlain(): boolean {
    const isOurs = (path: string): boolean =>
      isIndexFile(path) ||
      isEventFile(path) ||
      path === TORNASOLE_COLLECTIONS_FILE ||
      (isBelow(COLLECTIONS_DIRECTORY, path) && parseCollectionsFileName(path.replace(/\.tmp$/, '')) !== null)
    return !this.#paths.some(isOurs)
  }

  /** Whether the job has ended. */
  get ended(): boolean {
    return this.#paths.some(path => END_MARKERS.includes(path))
  }

  /** The index files that count: finished, one a step and worker. */
  get index(): readonly string[] {
    this.#index ??= this.#paths.filter(path => this.indexName(path) !== null && !this.duplicates.has(path))
    return this.#index
  }

  /** What the name of an index file tells; null for one that is not finished or is superseded, and for what is none. */
  indexName(path: string): IndexFileName | null {
    return !isBelow(INDEX_DIRECTORY, path) || isTemporary(path) || this.superseded.has(path)
      ? null
      : parseIndexFileName(path)
  }

  /** Tornasole's index files that have one of smdebug's beside them, made by `reindexTrial`: that one counts. */
  get superseded(): ReadonlySet<string> {
    this.#superseded ??= supersededAmong(this.#paths)
    return this.#superseded
  }

  /** Index files of a step and worker that another one is of, too, which counts: by path, with that one's. */
  get duplicates(): ReadonlyMap<string, string> {
    this.#duplicates ??= duplicatesAmong(this.#paths.filter(path => isBelow(INDEX_DIRECTORY, path)))
    return this.#duplicates
  }

  /** smdebug's event files that are finished. Where there are index files, these tell which are read. */
  get events(): readonly string[] {
    this.#events ??= this.#paths.filter(isEventFile)
    return this.#events
  }

  /** Event files of a step and worker that another one is of, too: without an index, that one counts. */
  get eventDuplicates(): ReadonlyMap<string, string> {
    this.#eventDuplicates ??= duplicatesAmong(this.events)
    return this.#eventDuplicates
  }

  /** TensorBoard's event files. */
  get plainEvents(): readonly string[] {
    return this.#paths.filter(path => !isTemporary(path) && isTensorBoardFile(path))
  }

  /** Collections files that are finished. */
  get collections(): readonly string[] {
    return this.#paths.filter(isCollectionsFile)
  }

  /** Files of the root that tell of the trial: end markers, and the collections of Tornasole. */
  get root(): readonly string[] {
    return this.#paths.filter(path => ROOT_FILES.includes(path))
  }

  /** Files that are still being written, or were left so. */
  get temporaries(): readonly string[] {
    return this.#paths.filter(isTemporary)
  }

  /** What would be an index or event file, but for its step. */
  get ofNoStep(): readonly string[] {
    const isPart = (path: string): boolean => isBelow(INDEX_DIRECTORY, path) || isBelow(EVENTS_DIRECTORY, path)
    return this.#paths.filter(path => isPart(path) && isOfNoStep(path))
  }
}

/** Files in the root that tell of a trial's state. */
export const ROOT_FILES: readonly string[] = [...END_MARKERS, TORNASOLE_COLLECTIONS_FILE]

/** Tornasole's index files that have one of smdebug's beside them. */
function supersededAmong(paths: readonly string[]): ReadonlySet<string> {
  const csv = paths.filter(isCsvIndex)
  if (csv.length === 0) return new Set()
  const there = new Set(paths)
  return new Set(csv.filter(path => there.has(path.replace(/csv$/, 'json'))))
}

/** Whether a path is that of an index file which is finished. */
export function isIndexFile(path: string): boolean {
  return isBelow(INDEX_DIRECTORY, path) && !isTemporary(path) && parseIndexFileName(path) !== null
}

/** Whether a path is that of an event file of smdebug's which is finished. */
export function isEventFile(path: string): boolean {
  return isBelow(EVENTS_DIRECTORY, path) && !isTemporary(path) && parseEventFileName(path) !== null
}

/** Whether a path is that of a collections file which is finished. */
export function isCollectionsFile(path: string): boolean {
  return isBelow(COLLECTIONS_DIRECTORY, path) && !isTemporary(path) && parseCollectionsFileName(path) !== null
}

function isBelow(directory: string, path: string): boolean {
  return path.startsWith(directory) && path[directory.length] === '/'
}

/** Whether the hook calls a directory of index or event files so: where something else is, all of them are gone. */
export function isPartDirectory(path: string): boolean {
  return /^(?:index|events)\/\d+$/.test(path)
}

/**
 * Files of a step and worker that another one is of, too: by path, with the path of the one that counts. That is the one
 * that the hook would call so; where there is none, smdebug's before Tornasole's, and of these the first by its path.
 * What is in them does not matter, so that a trial never turns to the other one while a file is written or copied.
 * @param paths all index files, or all event files, of a trial; others are passed over
 */
function duplicatesAmong(paths: readonly string[]): ReadonlyMap<string, string> {
  const odd = new Map<string, string[]>()
  for (const path of paths) {
    const name = isHooksOwn(path) ? null : nameOf(path)
    if (name === null) continue
    const key = `${name.step} ${name.worker}`
    const others = odd.get(key)
    if (others) others.push(path)
    else odd.set(key, [path])
  }
  const duplicates = new Map<string, string>()
  if (odd.size === 0) return duplicates
  const there = new Set(paths)
  const superseded = supersededAmong(paths)
  for (const others of odd.values()) {
    const own = ownPath(others[0]!)!
    const sorted = others.sort((a, b) => Number(isCsvIndex(a)) - Number(isCsvIndex(b)) || (a < b ? -1 : 1))
    const all = [own, own.replace(/json$/, 'csv'), ...sorted].filter(path => there.has(path) && !superseded.has(path))
    const [first, ...rest] = new Set(all)
    for (const path of rest) duplicates.set(path, first!)
  }
  return duplicates
}

/** Whether a path is what the hook calls the file of that step and worker, be it Tornasole's. */
export function isHooksOwn(path: string): boolean {
  return ownPath(path) === path.replace(/csv$/, 'json')
}

/** What is wrong with a file beside which another one counts. */
export function duplicateError(url: string, path: string, taken: string): FormatError {
  const { expected, got } = describeDuplicate(path, taken)
  return new FormatError('DuplicateFile', `${url}: expected ${expected}, got ${got}`, { url, expected, got })
}

export function describeDuplicate(path: string, taken: string): { readonly expected: string; readonly got: string } {
  const { step, worker } = nameOf(path)!
  const kind = isBelow(EVENTS_DIRECTORY, path) ? 'event' : 'index'
  return {
    expected: `one ${kind} file of step ${step} and worker ${quote(worker)}`,
    got: `a second one, beside ${shortPath(taken)}, which counts`,
  }
}

/** What the hook would call the file of that step and worker; null for what is none. */
function ownPath(path: string): string | null {
  const name = nameOf(path)
  return name && (isBelow(EVENTS_DIRECTORY, path) ? eventFilePath : indexFilePath)(name.step, name.worker)
}

function nameOf(path: string): EventFileName | null {
  if (isTemporary(path)) return null
  return isBelow(EVENTS_DIRECTORY, path) ? parseEventFileName(path) : parseIndexFileName(path)
}

function isCsvIndex(path: string): boolean {
  return path.endsWith('.csv') && path.startsWith(`${INDEX_DIRECTORY}/`) && parseIndexFileName(path) !== null
}
