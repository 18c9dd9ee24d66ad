/** Single files on the local disk that are no part of a trial: the index cache. */

import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'

/**
 * A whole file; null if there is none, or it can't be read, is longer than it should be, or is no file: a FIFO, say, or a
 * device without an end.
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
