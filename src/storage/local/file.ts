/** Single files and directories on the local disk, looked at without errors. */

import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats, statSync } from 'node:fs'

/**
 * Reads a whole file; null if it does not exist, can't be read, is longer than `maxByteLength`, or is not a regular
 * file (such as a FIFO or an endless device).
 */
export function readFileIfThere(path: string, maxByteLength = Number.POSITIVE_INFINITY): Buffer | null {
  let file: number | undefined
  try {
    file = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
    const stats = fstatSync(file)
    return stats.isFile() && stats.size <= maxByteLength ? readFileSync(file) : null
  } catch {
    return null
  } finally {
    if (file !== undefined) closeSync(file)
  }
}

/** True if there is a regular file, or a link to one; false if it can't be examined. */
export function isFile(path: string): boolean {
  return statsOf(path)?.isFile() ?? false
}

/** True if there is a directory, or a link to one; false if it can't be examined. */
export function isDirectory(path: string): boolean {
  return statsOf(path)?.isDirectory() ?? false
}

function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch {
    return undefined
  }
}
