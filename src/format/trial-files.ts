/** What a listing of a trial's files tells: whose layout it is, and which index files don't count. Pure. */

import { INDEX_DIRECTORY, parseIndexFileName, TORNASOLE_COLLECTIONS_FILE, TORNASOLE_END_MARKER } from './paths.js'

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

function isCsvIndex(path: string): boolean {
  return path.endsWith('.csv') && path.startsWith(`${INDEX_DIRECTORY}/`) && parseIndexFileName(path) !== null
}
