/** Directories from paths, where a listing of all files is all there is. */

/**
 * The paths in a directory, sorted.
 * @param directory '' for the root
 */
export function pathsIn(all: Iterable<string>, directory: string, isRecursive: boolean): string[] {
  const prefix = directory === '' ? '' : `${directory.replace(/\/+$/, '')}/`
  const isIn = (path: string): boolean =>
    path.startsWith(prefix) && (isRecursive || !path.slice(prefix.length).includes('/'))
  return [...all].filter(isIn).sort()
}
