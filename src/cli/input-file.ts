/** Files that a command reads besides trials, none of which it may replace. */

import { createReadStream } from 'node:fs'
import { readFile, realpath, stat } from 'node:fs/promises'
import { resolve, sep } from 'node:path'
import { pipeline } from 'node:stream'
import { pathToFileURL } from 'node:url'
import { createGunzip } from 'node:zlib'
import { StoreError, UsageError } from '../base/errors.js'

/** The device and inode of each input file: the same by any name, and through any link. */
const inputs = new Set<string>()

/** The files of trials and of TensorBoard, by the ends of their paths. */
const FILE_OF_TRIAL =
  /\/(?:(?:index|events)\/\d+\/-?\d+_[^/]+\.(?:json|csv|tfevents)|collections\/\d+\/[^/]+_collections\.json|(?:training_job_end|END_OF_JOB|collections)\.ts)$|tfevents[^/]*$/

/** Protects an input file from the command's output. */
export async function noteInput(path: string): Promise<void> {
  const identity = await identityOf(path)
  if (identity !== null) inputs.add(identity)
}

/**
 * Refuses to replace what the command reads, by any name and through any link, or a file of any trial.
 * @throws UsageError
 */
export async function expectNoInput(path: string): Promise<void> {
  const identity = await identityOf(path)
  if (identity === null) return
  const real = (await realpath(path).catch(() => resolve(path))).split(sep).join('/')
  const got = inputs.has(identity) ? 'one' : FILE_OF_TRIAL.test(real) ? 'a file of a trial' : null
  if (got === null) return
  const message = `${path}: expected a file that is no input of the command, got ${got}: name another file`
  throw new UsageError(message, { path })
}

/** The device and inode of a file; null if there is no regular file. */
async function identityOf(path: string): Promise<string | null> {
  const stats = await stat(path, { bigint: true }).catch(() => null)
  return stats?.isFile() ? `${stats.dev} ${stats.ino}` : null
}

/**
 * Reads a file.
 * @param option the option that names the file, for messages; none if the path says enough
 * @throws StoreError
 */
export async function readInputFile(path: string, option?: string): Promise<Uint8Array> {
  try {
    const bytes = await readFile(path)
    await noteInput(path)
    return bytes
  } catch (error) {
    throw inputError(error, path, option)
  }
}

/**
 * Reads a file of any length in pieces; a `.gz` is decompressed.
 * @throws StoreError
 */
export async function* inputPieces(path: string, option: string): AsyncGenerator<Uint8Array> {
  try {
    await noteInput(path)
    const file = createReadStream(path)
    // An error of either is thrown by the loop.
    yield* path.endsWith('.gz') ? pipeline(file, createGunzip(), () => {}) : file
  } catch (error) {
    throw inputError(error, path, option)
  }
}

function inputError(error: unknown, path: string, option: string | undefined): StoreError {
  const url = pathToFileURL(resolve(path)).href
  const { code, message } = error as NodeJS.ErrnoException
  const file = option === undefined ? path : `${option} ${path}`
  if (code === 'ENOENT') return new StoreError('NotFound', `${file}: no such file`, { url }, error)
  if (code === 'EISDIR') return new StoreError('NotAFile', `${file}: expected a file, got a directory`, { url }, error)
  if (code === 'EACCES') return new StoreError('Denied', `${file}: permission denied`, { url }, error)
  return new StoreError('Unavailable', `${file}: ${message}`, { url }, error)
}
