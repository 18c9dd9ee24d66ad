/** Files that a command reads besides trials, none of which it may replace. */

import { createReadStream } from 'node:fs'
import { realpath, stat } from 'node:fs/promises'
import { resolve, sep } from 'node:path'
import { pipeline, Readable, type Transform } from 'node:stream'
import { pathToFileURL } from 'node:url'
import { StoreError, TrialscanError, UsageError } from '../base/errors.js'
import { isOnS3, type S3Flags, s3For } from './options/s3.js'

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

/** The length up to which a file is read at once. */
const MAX_INPUT_BYTES = 256 << 20

/**
 * Reads a file.
 * @param option the option that names the file, for messages; none if the path says enough
 * @throws StoreError
 */
export async function readInputFile(path: string, option?: string): Promise<Uint8Array> {
  try {
    const pieces: Uint8Array[] = []
    let byteLength = 0
    // A device or a pipe may never end.
    for await (const piece of createReadStream(path)) {
      pieces.push(piece)
      byteLength += piece.length
      if (byteLength > MAX_INPUT_BYTES) throw new Error(`expected at most ${MAX_INPUT_BYTES >> 20} MiB`)
    }
    await noteInput(path)
    return Buffer.concat(pieces)
  } catch (error) {
    throw inputError(error, path, option)
  }
}

/**
 * Reads a file of any length, on disk or S3, in pieces; a `.gz` or `.zst` is decompressed.
 * @throws StoreError, and UsageError for zstd where Node.js does not have it
 */
export async function* inputPieces(path: string, option: string, s3: S3Flags): AsyncGenerator<Uint8Array> {
  try {
    const decoder = await decoderOf(path)
    await noteInput(path)
    const file = isOnS3(path) ? Readable.from(objectPieces(path, s3)) : createReadStream(path)
    // An error of either is thrown by the loop.
    yield* decoder === null ? file : pipeline(file, decoder, () => {})
  } catch (error) {
    throw error instanceof TrialscanError ? error : inputError(error, path, option)
  }
}

const PIECE_BYTES = 4 << 20

async function* objectPieces(url: string, flags: S3Flags): AsyncGenerator<Uint8Array> {
  const { openStore, storeSpec } = await import('../storage/open.js')
  const at = url.lastIndexOf('/')
  const store = openStore(storeSpec(url.slice(0, at), s3For(url, flags)))
  const name = url.slice(at + 1)
  try {
    const byteLength = await store.byteLength(name)
    for (let start = 0; start < byteLength; start += PIECE_BYTES) {
      const piece = new Uint8Array(Math.min(PIECE_BYTES, byteLength - start))
      await store.readLater!(name, start, piece.length, () => piece)
      yield piece
    }
  } finally {
    await store.close()
  }
}

/** Null: the file is not compressed. */
async function decoderOf(path: string): Promise<Transform | null> {
  const [, extension] = /\.(gz|zst)$/i.exec(path) ?? []
  if (extension === undefined) return null
  const zlib: typeof import('node:zlib') & { createZstdDecompress?: () => Transform } = await import('node:zlib')
  if (extension.toLowerCase() === 'gz') return zlib.createGunzip()
  if (zlib.createZstdDecompress) return zlib.createZstdDecompress()
  throw new UsageError(
    `${path}: .zst is read by Node.js 22.15 and newer, and this is ${process.versions.node}: expected a .gz, or the text itself`,
  )
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
