/** Single files on the local disk that are no part of a trial: the index cache. */

import { randomBytes } from 'node:crypto'
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { StoreError } from '../errors.js'

/** A whole file; null if there is none, or it can't be read. */
export function readFileIfThere(path: string): Uint8Array | null {
  try {
    return readFileSync(path)
  } catch {
    return null
  }
}

/** Writes a file that is there as a whole or not at all. @throws StoreError */
export function writeWholeFile(path: string, bytes: Uint8Array): void {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`
  try {
    writeFileSync(temporary, bytes)
    renameSync(temporary, path)
  } catch (cause) {
    rmSync(temporary, { force: true })
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new StoreError('Unavailable', `${path} can't be written: ${reason}`, { url: pathToFileURL(path).href }, cause)
  }
}
