/**
 * The one writer of files on the local disk. They appear whole or not at all: a file grows under a temporary name beside
 * its own, and is renamed when it is whole.
 */

import {
  closeSync,
  constants,
  fchmodSync,
  mkdirSync,
  openSync,
  promises,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expectText } from '../../base/arguments.js'
import { StoreError } from '../../base/errors.js'
import { checkOptions, kinds, optionsOf } from '../../base/options.js'
import { isDirectory } from './file.js'

const { access, appendFile, link, open, realpath, rename, stat } = promises

/** A temporary name for a file of this path: hidden, in the same directory, and not longer than a name can be. */
export function temporaryPath(path: string): string {
  // The caller expects that no such file exists. `node:crypto` would take 3 ms to load.
  const digits = Math.floor(Math.random() * 2 ** 32)
    .toString(16)
    .padStart(8, '0')
  return join(dirname(path), `.${basename(path).slice(0, 100)}.${digits}.tmp`)
}

export function isTemporaryName(name: string): boolean {
  return /^\..*\.[0-9a-f]{8}\.tmp$/s.test(name)
}

/** The files in progress, by their temporary paths. */
const underWay = new Set<string>()

/**
 * Makes an empty file and registers it within one turn of the event loop, so that nothing ends the process in between.
 */
function beginAside(aside: string, mode: number): void {
  closeSync(openSync(aside, 'wx', mode))
  underWay.add(aside)
}

/** Removes a temporary file, unless it has been renamed. */
function endAside(aside: string): void {
  rmSync(aside, { force: true })
  underWay.delete(aside)
}

/** The number of bytes of one call. Node.js counts them in 31 bits. */
const MAX_WRITTEN = 1 << 30

export interface OutputFileOptions {
  /** True to make the file's directory, and those above it. Default: false, which requires the directory. */
  readonly makesDirectory?: boolean
}

export interface CommitOptions {
  /** True to return only once the file would survive a power failure. Default: false. */
  readonly isDurable?: boolean
}

const COMMIT_OPTIONS = optionsOf<CommitOptions>({ isDurable: kinds.flag })

const OUTPUT_FILE_OPTIONS = optionsOf<OutputFileOptions>({ makesDirectory: kinds.flag })

/**
 * A file in progress. Once it is whole it replaces the file of its path, or the one that a link there leads to. A
 * device or a pipe is written to directly.
 */
export class OutputFile {
  readonly #path: string
  readonly #handle: promises.FileHandle
  readonly #target: string
  /** The temporary path; null if the file is written to directly. */
  readonly #aside: string | null

  private constructor(path: string, handle: promises.FileHandle, target: string, aside: string | null) {
    this.#path = path
    this.#handle = handle
    this.#target = target
    this.#aside = aside
  }

  /** Removes all files in progress synchronously, for a process that ends without waiting. */
  static removeAll(): void {
    for (const aside of underWay) endAside(aside)
  }

  /** Begins a file. @throws StoreError */
  static async create(path: string, options?: OutputFileOptions): Promise<OutputFile> {
    const { makesDirectory = false } = checkOptions('OutputFile.create', OUTPUT_FILE_OPTIONS, options)
    expectText('OutputFile.create', 'path', path)
    return written(path, async () => {
      if (makesDirectory) makeDirectory(dirname(path))
      const target = await realpath(path).catch(() => resolve(path))
      const stats = await stat(target).catch(() => null)
      const isSpecial = stats !== null && !stats.isFile()
      const aside = isSpecial ? null : temporaryPath(target)
      if (aside === null) return new OutputFile(path, await open(target, 'w'), target, null)
      // What may not be written is replaced as well.
      beginAside(aside, stats === null ? 0o666 : 0o600)
      let handle: promises.FileHandle | undefined
      try {
        handle = await open(aside, 'r+')
        if (stats !== null) await handle.chmod(stats.mode)
        return new OutputFile(path, handle, target, aside)
      } catch (error) {
        await handle?.close().catch(() => {})
        endAside(aside)
        throw error
      }
    })
  }

  /** Appends a chunk. @throws StoreError */
  async write(chunk: string | Uint8Array): Promise<void> {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
    await written(this.#path, async () => {
      for (let at = 0; at < bytes.length; ) {
        at += (await this.#handle.write(bytes, at, Math.min(MAX_WRITTEN, bytes.length - at))).bytesWritten
      }
    })
  }

  /**
   * Completes the file: it gets its name.
   * @throws StoreError
   */
  async commit(options?: CommitOptions): Promise<void> {
    const { isDurable = false } = checkOptions('outputFile.commit', COMMIT_OPTIONS, options)
    await written(this.#path, async () => {
      if (isDurable) await this.#handle.sync()
      await this.#handle.close()
      if (this.#aside === null) return
      await rename(this.#aside, this.#target)
      // Nothing is left to remove, and looking would take a millisecond.
      underWay.delete(this.#aside)
      if (isDurable) await syncFile(dirname(this.#target))
    })
  }

  /**
   * Completes the file, but only if none of that name exists.
   * @returns true if there was none
   */
  async commitNew(): Promise<boolean> {
    return written(this.#path, async () => {
      await this.#handle.close()
      if (this.#aside === null) return false
      try {
        await link(this.#aside, this.#target)
        return true
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
        throw error
      } finally {
        endAside(this.#aside)
      }
    })
  }

  /** Something went wrong: leaves nothing behind. */
  async discard(): Promise<void> {
    await this.#handle.close().catch(() => {})
    if (this.#aside !== null) endAside(this.#aside)
  }
}

/**
 * Writes a file by `work`; after an error nothing is left of it.
 * @throws StoreError; the error of `work`
 */
export async function writeWhole<T>(
  path: string,
  work: (file: OutputFile) => Promise<T>,
  options: OutputFileOptions = {},
  commitOptions: CommitOptions = {},
): Promise<T> {
  const file = await OutputFile.create(path, options)
  try {
    const result = await work(file)
    await file.commit(commitOptions)
    return result
  } catch (error) {
    await file.discard()
    throw error
  }
}

/**
 * Writes or replaces a short file as `OutputFile` does, but within one turn of the event loop, in which nothing can end
 * the process: ten times as fast, while nothing else happens.
 * @param isNew true to replace whatever is there without looking: its mode is not kept, and no link is followed
 * @param mode of a new file
 * @returns false if nothing is written, since the path leads to something other than a regular file, which may be slow
 * @throws StoreError
 */
export function writeAtOnce(path: string, chunks: readonly Uint8Array[], isNew = false, mode = 0o666): boolean {
  let aside: string | undefined
  try {
    const existing = isNew ? undefined : statSync(path, { throwIfNoEntry: false })
    if (existing !== undefined && !existing.isFile()) return false
    const target = existing === undefined ? path : realpathSync.native(path)
    aside = temporaryPath(target)
    // What it replaces may be for its owner alone.
    const file = openSync(aside, 'wx', existing === undefined ? mode : 0o600)
    try {
      for (const bytes of chunks) writeAll(file, bytes)
      if (existing !== undefined) fchmodSync(file, existing.mode)
    } finally {
      closeSync(file)
    }
    renameSync(aside, target)
    return true
  } catch (error) {
    if (aside !== undefined) rmSync(aside, { force: true })
    throw writeError(path, error)
  }
}

async function syncFile(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/**
 * Makes a writable directory, and those above it.
 * @throws StoreError if that fails, or if the path is something else
 */
export async function makeWritable(directory: string): Promise<void> {
  await written(directory, async () => {
    makeDirectory(directory)
    await access(directory, constants.W_OK | constants.X_OK)
  })
}

/**
 * Appends to a file, which is made if it is missing, like its directory.
 * @throws StoreError
 */
export async function appendToFile(path: string, content: string | Uint8Array): Promise<void> {
  await written(path, async () => {
    makeDirectory(dirname(path))
    await appendFile(path, content)
  })
}

/** Flushes a file or a directory to disk. @throws StoreError */
export async function makeDurable(path: string): Promise<void> {
  await written(path, async () => {
    await syncFile(path)
    await syncFile(dirname(path))
  })
}

/** The result of an action that writes to a path. @throws StoreError */
export async function written<T>(path: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action()
  } catch (error) {
    throw writeError(path, error)
  }
}

/**
 * Makes a directory, and those above it. The function of Node.js never ends in /proc, which reports for each new
 * directory that its parent is missing.
 * @returns the outermost new directory; null if there was nothing to make
 * @throws StoreError
 */
export function makeDirectory(path: string, mode = 0o777): string | null {
  // Mostly it is there, and an error of mkdir takes longer than a look.
  if (isDirectory(path)) return null
  let outermost: string | null = null
  for (let isParentThere = false; ; isParentThere = true) {
    try {
      mkdirSync(path, mode)
      return outermost ?? path
    } catch (error) {
      if (isDirectory(path)) return outermost
      const { code } = error as NodeJS.ErrnoException
      if (code !== 'ENOENT') throw writeError(path, error)
      const parent = dirname(path)
      if (isParentThere || parent === path) {
        const message = `cannot write ${path}: no directory can be made there`
        throw new StoreError('Denied', message, { url: pathToFileURL(path).href }, error)
      }
      outermost = makeDirectory(parent, mode)
    }
  }
}

/** Removes a file, if possible. */
export function removeFile(path: string): void {
  try {
    rmSync(path, { force: true })
  } catch {
    // The error that led here is the one that is reported.
  }
}

/**
 * Writes bytes at a file's current position.
 * @throws the system's error
 */
export function writeAll(file: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at, bytes.length - at)
}

const REASONS: Readonly<Record<string, readonly ['Denied' | 'NotFound' | 'NotAFile' | 'Unavailable', string]>> = {
  EACCES: ['Denied', 'permission denied'],
  EPERM: ['Denied', 'not permitted'],
  EROFS: ['Denied', 'the file system is read-only'],
  ENOENT: ['NotFound', 'its directory does not exist'],
  ENOTDIR: ['NotFound', 'a part of its path is not a directory'],
  EEXIST: ['NotAFile', 'there is a file of that name'],
  EISDIR: ['NotAFile', 'it is a directory'],
  ENOSPC: ['Unavailable', 'no space left on the device'],
  EDQUOT: ['Unavailable', 'the quota is used up'],
}

/** The error for a failed write, or for another act upon a path. */
export function writeError(path: string, cause: unknown, act = 'write'): StoreError {
  if (cause instanceof StoreError) return cause
  const { code = '', message } = cause as NodeJS.ErrnoException
  const [kind, reason] = REASONS[code] ?? ['Unavailable', message]
  return new StoreError(kind, `cannot ${act} ${path}: ${reason}`, { url: pathToFileURL(path).href }, cause)
}
