/** Single files on the local disk that are no part of a trial: the index cache. */

import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { pathToFileURL } from 'node:url'
import { StoreError } from '../../errors.js'

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

/** Writes a file that is there as a whole or not at all. @throws StoreError */
export function writeWholeFile(path: string, bytes: Uint8Array): void {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`
  try {
    const there = lstatSync(path, { throwIfNoEntry: false })
    if (there?.isCharacterDevice() || there?.isBlockDevice()) throw new Error('it is a device')
    writeFileSync(temporary, bytes, { flag: 'wx' })
    renameSync(temporary, path)
  } catch (cause) {
    rmSync(temporary, { force: true })
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new StoreError('Unavailable', `${path} can't be written: ${reason}`, { url: pathToFileURL(path).href }, cause)
  }
}
