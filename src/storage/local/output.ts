/**
 * Output to the local disk that appears whole or not at all: files, and directories (copies of trials). It grows under
 * a temporary name beside its own and is renamed when it is whole. All writers use this module.
 */

import { closeSync, constants, openSync, promises, rmSync } from 'node:fs'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { expectText } from '../../base/arguments.js'
import { UsageError } from '../../base/errors.js'
import { checkOptions, kinds, optionsOf } from '../../base/options.js'
import { makeDirectory, temporaryPath, writeAll, writeError } from './aside.js'
import { isInside, passesThrough, realPath } from './real-path.js'

const { access, appendFile, chmod, link, mkdir, open, readdir, realpath, rename, rm, rmdir, stat, writeFile } = promises

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
const MOST_WRITTEN = 1 << 30

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
      try {
        const handle = await open(aside, 'r+')
        if (stats !== null) await handle.chmod(stats.mode)
        return new OutputFile(path, handle, target, aside)
      } catch (error) {
        endAside(aside)
        throw error
      }
    })
  }

  /** @throws StoreError */
  async write(chunk: string | Uint8Array): Promise<void> {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
    await written(this.#path, async () => {
      for (let at = 0; at < bytes.length; ) {
        at += (await this.#handle.write(bytes, at, Math.min(MOST_WRITTEN, bytes.length - at))).bytesWritten
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
      // Nothing is left to be removed, and looking takes a millisecond.
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

/** A directory in progress. */
export class OutputDirectory {
  /** The absolute path of the temporary directory of the files. */
  readonly root: string
  readonly #target: string
  /** Directories above it that were made for it, the innermost first. */
  readonly #parents: readonly string[]
  readonly #made = new Set<string>()

  private constructor(root: string, target: string, parents: readonly string[]) {
    this.root = root
    this.#target = target
    this.#parents = parents
  }

  /**
   * Begins a new or empty directory.
   * @param out its path, or `file://` URL
   * @param source the directory that it must not lie in, nor be; null if the source is not local
   * @throws UsageError for a place that is not allowed; StoreError if it can't be written
   */
  static async create(out: string, source: string | null): Promise<OutputDirectory> {
    const target = outputPath(out)
    const [real, stats] = await written(out, () => Promise.all([realPath(target), stat(target).catch(noSuchFile)]))
    if (source !== null) {
      const realSource = await realPath(source)
      if (isInside(real, realSource)) throw usage(out, 'outside of the trial', 'one in it')
      if (await passesThrough(target, realSource))
        throw usage(out, 'outside of the trial', 'one that a link in it leads to')
    }
    if (stats !== null) {
      if (!stats.isDirectory()) throw usage(out, 'that is new or empty', 'a file')
      const entries = await written(out, () => readdir(real))
      if (entries.length > 0) throw usage(out, 'that is new or empty', `one that holds ${entries.sort()[0]}`)
      // Its name is given to another directory in the end, which no mount point allows.
      const above = await written(out, () => stat(dirname(real)))
      if (above.dev !== stats.dev) throw usage(out, 'that can be replaced', 'a mount point: name a directory in it')
    }
    const parent = dirname(real)
    const first = makeDirectory(parent)
    const parents: string[] = []
    if (first !== null) for (let at = parent; at.length >= first.length; at = dirname(at)) parents.push(at)
    const root = temporaryPath(real)
    await written(out, () => mkdir(root))
    // It takes the place of one that may be private.
    if (stats !== null) await written(out, () => chmod(root, stats.mode))
    return new OutputDirectory(root, real, parents)
  }

  /** The final URL of the directory. */
  get url(): string {
    return pathToFileURL(this.#target).href
  }

  /**
   * The path at which a file is to be written for now. Its directory is made.
   * @param path relative, with `/`
   */
  async place(path: string): Promise<string> {
    const target = join(this.root, path)
    if (!target.startsWith(this.root + sep)) throw new UsageError(`expected a path in the copy, got ${path}`, { path })
    const directory = dirname(target)
    if (!this.#made.has(directory)) makeDirectory(directory)
    this.#made.add(directory)
    return target
  }

  /**
   * True if the file system takes the path: names of at most 255 bytes, and 4,095 bytes in all.
   * @param path relative, with `/`
   */
  fits(path: string): boolean {
    const names = path.split('/')
    return Buffer.byteLength(join(this.root, path)) < 4096 && names.every(name => Buffer.byteLength(name) <= 255)
  }

  /** Writes a file. @param path relative, with `/` */
  async write(path: string, bytes: Uint8Array | string): Promise<void> {
    const target = await this.place(path)
    await written(target, () => writeFile(target, bytes, { flag: 'wx' }))
  }

  /**
   * Removes a file, if it is there.
   * @param target a path from `place`
   */
  async remove(target: string): Promise<void> {
    await written(target, () => rm(target, { force: true }))
  }

  /** All is written: gives it its name. */
  async commit(): Promise<void> {
    await written(this.#target, async () => {
      // What was put there meanwhile is not replaced: only an empty directory can be removed so.
      await rmdir(this.#target).catch(noSuchFile)
      await rename(this.root, this.#target)
    })
  }

  /** Something went wrong: leaves nothing behind. */
  async discard(): Promise<void> {
    // A thread may still write its last piece. Whatever happens here, what went wrong before is what is told.
    await rm(this.root, { recursive: true, force: true, maxRetries: 5 }).catch(() => {})
    for (const parent of this.#parents) await rmdir(parent).catch(() => {})
  }
}

/** A file of a directory in progress, which a thread writes piece by piece. Its methods throw StoreErrors. */
export class PieceWriter {
  readonly #path: string
  readonly #file: number

  /** @param path absolute */
  constructor(path: string) {
    this.#path = path
    this.#file = this.#written(() => openSync(path, 'wx'))
  }

  write(bytes: Uint8Array): void {
    this.#written(() => writeAll(this.#file, bytes))
  }

  close(): void {
    this.#written(() => closeSync(this.#file))
  }

  #written<T>(action: () => T): T {
    try {
      return action()
    } catch (error) {
      throw writeError(this.#path, error)
    }
  }
}

function outputPath(out: string): string {
  const place = typeof out === 'string' ? out.trim() : ''
  if (place === '' || place.includes('\0')) throw usage(out, 'with a name', JSON.stringify(out))
  if (/^file:\/\//i.test(place)) return resolve(fileURLToPath(place))
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(place)) throw usage(out, 'on the local disk', 'a URL')
  return resolve(place)
}

function usage(out: string, expected: string, got: string): UsageError {
  return new UsageError(`${out}: expected a directory ${expected}, got ${got}`, { out })
}

/** Flushes a file or a directory to the disk. */
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

/** @throws StoreError */
export async function makeDurable(path: string): Promise<void> {
  await written(path, async () => {
    await syncFile(path)
    await syncFile(dirname(path))
  })
}

async function written<T>(path: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action()
  } catch (error) {
    throw writeError(path, error)
  }
}

function noSuchFile(error: unknown): null {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
  throw error
}

/** The path, within a directory, of the file that a new file would replace, with `/`; null if it lies outside. */
export async function placeInDirectory(directory: string, path: string): Promise<string | null> {
  const [root, parent] = await Promise.all([realPath(directory), realPath(dirname(resolve(path)))])
  const place = join(parent, basename(path))
  return isInside(place, root) ? relative(root, place).replaceAll(sep, '/') : null
}
