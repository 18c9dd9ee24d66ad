/** Sorts the files of a trial from a listing: its layout, the kind of each file, and the files that count. Pure. */

import { FormatError, quote, shortPath } from '../base/errors.js'
import { entryOf } from '../base/maps.js'
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
  usualIndexFile,
} from './paths.js'

/** The kinds of a trial's files, by name only. Every reader of trials uses this. Results are computed on demand. */
export class TrialFiles {
  readonly #paths: readonly string[]
  #superseded: ReadonlySet<string> | undefined
  #duplicates: ReadonlyMap<string, string> | undefined
  #eventDuplicates: ReadonlyMap<string, string> | undefined
  #index: readonly string[] | undefined
  #events: readonly string[] | undefined

  /** @param paths all files, or those of the directories in question */
  constructor(paths: readonly string[]) {
    this.#paths = paths
  }

  /**
   * True if Tornasole wrote the trial, with float16 labelled as int32. Index files that `reindexTrial` made beside Tornasole's change
   * nothing.
   */
  get isTornasole(): boolean {
    const isItsOwn = (path: string): boolean => path === TORNASOLE_COLLECTIONS_FILE || path === TORNASOLE_END_MARKER
    return this.#paths.some(path => isItsOwn(path) || isCsvIndex(path))
  }

  /**
   * True if there is nothing of smdebug's or Tornasole's, so that TensorBoard's files are read. A collections file identifies a trial
   * even while it is unfinished; an end marker alone doesn't.
   */
  get isPlain(): boolean {
    const isOurs = (path: string): boolean =>
      isIndexFile(path) ||
      isEventFile(path) ||
      path === TORNASOLE_COLLECTIONS_FILE ||
      (isBelow(COLLECTIONS_DIRECTORY, path) && parseCollectionsFileName(path.replace(/\.tmp$/, '')) !== null)
    return !this.#paths.some(isOurs)
  }

  /** True if the job has ended. */
  get ended(): boolean {
    return this.#paths.some(path => END_MARKERS.includes(path))
  }

  /** The finished index files that count, one per step and worker. */
  get index(): readonly string[] {
    this.#index ??= this.#paths.filter(path => this.indexName(path) !== null && !this.duplicates.has(path))
    return this.#index
  }

  /** The parsed name of an index file; null for other files, and for one that is unfinished or superseded. */
  indexName(path: string): IndexFileName | null {
    const isOther = !isBelow(INDEX_DIRECTORY, path) || isTemporary(path)
    return isOther || (this.superseded.size > 0 && this.superseded.has(path)) ? null : parseIndexFileName(path)
  }

  /** Tornasole's index files that are superseded by smdebug's beside them, made by `reindexTrial`. */
  get superseded(): ReadonlySet<string> {
    this.#superseded ??= supersededAmong(this.#paths)
    return this.#superseded
  }

  /** Superseded index files of a step and worker, by path, each with its successor's path. */
  get duplicates(): ReadonlyMap<string, string> {
    this.#duplicates ??= duplicatesAmong(this.#paths.filter(path => isBelow(INDEX_DIRECTORY, path)))
    return this.#duplicates
  }

  /** smdebug's finished event files. If there are index files, those decide which event files are read. */
  get events(): readonly string[] {
    this.#events ??= this.#paths.filter(isEventFile)
    return this.#events
  }

  /** Superseded event files of a step and worker if there is no index, by path, each with its successor's path. */
  get eventDuplicates(): ReadonlyMap<string, string> {
    this.#eventDuplicates ??= duplicatesAmong(this.events)
    return this.#eventDuplicates
  }

  /** TensorBoard's event files. */
  get plainEvents(): readonly string[] {
    return this.#paths.filter(path => !isTemporary(path) && isTensorBoardFile(path))
  }

  /** The finished collections files. */
  get collections(): readonly string[] {
    return this.#paths.filter(isCollectionsFile)
  }

  /** Files in the root that describe the trial: end markers, and Tornasole's collections. */
  get root(): readonly string[] {
    return this.#paths.filter(path => ROOT_FILES.includes(path))
  }

  /** Unfinished files. */
  get temporaries(): readonly string[] {
    return this.#paths.filter(isTemporary)
  }

  /** Files that would be index or event files but for their step. */
  get ofNoStep(): readonly string[] {
    const isPart = (path: string): boolean => isBelow(INDEX_DIRECTORY, path) || isBelow(EVENTS_DIRECTORY, path)
    return this.#paths.filter(path => isPart(path) && isOfNoStep(path))
  }
}

/** The files in the root that show the state of a trial. */
export const ROOT_FILES: readonly string[] = [...END_MARKERS, TORNASOLE_COLLECTIONS_FILE]

/** Tornasole's index files that are superseded by smdebug's beside them. */
function supersededAmong(paths: readonly string[]): ReadonlySet<string> {
  const csv = paths.filter(isCsvIndex)
  if (csv.length === 0) return new Set()
  const existing = new Set(paths)
  return new Set(csv.filter(path => existing.has(path.replace(/csv$/, 'json'))))
}

/** True for the path of a finished index file. */
export function isIndexFile(path: string): boolean {
  return isBelow(INDEX_DIRECTORY, path) && !isTemporary(path) && parseIndexFileName(path) !== null
}

/** True for the path of a finished event file of smdebug. */
export function isEventFile(path: string): boolean {
  return isBelow(EVENTS_DIRECTORY, path) && !isTemporary(path) && parseEventFileName(path) !== null
}

/** True for the path of a finished collections file. */
export function isCollectionsFile(path: string): boolean {
  return isBelow(COLLECTIONS_DIRECTORY, path) && !isTemporary(path) && parseCollectionsFileName(path) !== null
}

function isBelow(directory: string, path: string): boolean {
  return path.startsWith(directory) && path[directory.length] === '/'
}

/** True for the hook's name of a directory for index or event files. If it is a file instead, all of them are gone. */
export function isPartDirectory(path: string): boolean {
  return /^(?:index|events)\/\d+$/.test(path)
}

/**
 * Superseded files of a step and worker, by path, each with its successor's path. The hook's own name wins; without one, smdebug's files
 * win over Tornasole's, and then the order of paths decides. Contents don't matter, so that the choice never changes while a file is
 * written or copied.
 * @param paths all index files, or all event files, of a trial; other files are ignored
 */
function duplicatesAmong(paths: readonly string[]): ReadonlyMap<string, string> {
  const unusual = new Map<string, string[]>()
  for (const path of paths) {
    const name = isCanonicalPath(path) ? null : nameOf(path)
    if (name === null) continue
    const key = `${name.step} ${name.worker}`
    entryOf(unusual, key, () => []).push(path)
  }
  const duplicates = new Map<string, string>()
  if (unusual.size === 0) return duplicates
  const existing = new Set(paths)
  const superseded = supersededAmong(paths)
  for (const others of unusual.values()) {
    const usual = canonicalPath(others[0]!)!
    const sorted = others.sort((a, b) => Number(isCsvIndex(a)) - Number(isCsvIndex(b)) || (a < b ? -1 : 1))
    const all = [usual, usual.replace(/json$/, 'csv'), ...sorted].filter(
      path => existing.has(path) && !superseded.has(path),
    )
    const [first, ...rest] = new Set(all)
    for (const path of rest) duplicates.set(path, first!)
  }
  return duplicates
}

/** True for the hook's own name (also Tornasole's) of the file of a step and worker. */
export function isCanonicalPath(path: string): boolean {
  if (usualIndexFile(path) !== null) return true
  return canonicalPath(path) === path.replace(/csv$/, 'json')
}

/** The error for a superseded file. */
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

/** The hook's own name for the file of a step and worker; null for other kinds of paths. */
function canonicalPath(path: string): string | null {
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
