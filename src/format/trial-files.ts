/** What a listing of a trial's files tells: whose layout it is, and which index and event files don't count. Pure. */

import { FormatError, quote, shortPath } from '../errors.js'
import type { GlobalStep, Worker } from '../types.js'
import {
  EVENTS_DIRECTORY,
  eventFilePath,
  INDEX_DIRECTORY,
  indexFilePath,
  isTemporary,
  parseEventFileName,
  parseIndexFileName,
  TORNASOLE_COLLECTIONS_FILE,
  TORNASOLE_END_MARKER,
} from './paths.js'

/**
 * Whether Tornasole wrote a trial, which called float16 int32: index files of smdebug's that were made beside its own change
 * nothing about its records.
 * @param root the files of the root
 * @param index those of the index, whether they count or not
 */
export function isOfTornasole(root: Iterable<string>, index: readonly string[]): boolean {
  for (const path of root) if (path === TORNASOLE_COLLECTIONS_FILE || path === TORNASOLE_END_MARKER) return true
  return index.some(isCsvIndex)
}

/** Tornasole's index files that have one of smdebug's beside them, made by `reindexTrial`: that one counts. */
export function supersededAmong(paths: readonly string[]): ReadonlySet<string> {
  const csv = paths.filter(isCsvIndex)
  if (csv.length === 0) return new Set()
  const there = new Set(paths)
  return new Set(csv.filter(path => there.has(path.replace(/csv$/, 'json'))))
}

/** Whether a path is that of an index file which is finished. */
export function isIndexFile(path: string): boolean {
  return !isTemporary(path) && parseIndexFileName(path) !== null
}

/** Whether a path is that of an event file of smdebug's which is finished. */
export function isEventFile(path: string): boolean {
  return !isTemporary(path) && parseEventFileName(path) !== null
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
export function duplicatesAmong(paths: readonly string[]): ReadonlyMap<string, string> {
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
  const kind = isOfEvents(path) ? 'event' : 'index'
  return {
    expected: `one ${kind} file of step ${step} and worker ${quote(worker)}`,
    got: `a second one, beside ${shortPath(taken)}, which counts`,
  }
}

/** What the hook would call the file of that step and worker; null for what is none. */
function ownPath(path: string): string | null {
  const name = nameOf(path)
  return name && (isOfEvents(path) ? eventFilePath : indexFilePath)(name.step, name.worker)
}

function nameOf(path: string): { readonly step: GlobalStep; readonly worker: Worker } | null {
  if (isTemporary(path)) return null
  return isOfEvents(path) ? parseEventFileName(path) : parseIndexFileName(path)
}

function isOfEvents(path: string): boolean {
  return path.startsWith(`${EVENTS_DIRECTORY}/`)
}

function isCsvIndex(path: string): boolean {
  return path.endsWith('.csv') && path.startsWith(`${INDEX_DIRECTORY}/`) && parseIndexFileName(path) !== null
}
