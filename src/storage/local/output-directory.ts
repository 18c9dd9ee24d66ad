/** A directory on the local disk that appears whole or not at all, as files do: a copy of a trial. */

import { closeSync, openSync, promises } from 'node:fs'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { UsageError } from '../../base/errors.js'
import { makeDirectory, temporaryPath, writeAll, writeError, written } from './output.js'
import { isInside, passesThrough, realPath } from './real-path.js'

const { chmod, mkdir, readdir, rename, rm, rmdir, stat, writeFile } = promises

export class OutputDirectory {
  /** The absolute path of the temporary directory of the files. */
  readonly root: string
  readonly #target: string
  /** Directories above it that were made for it, the innermost first. */
  readonly #parents: readonly string[]
  readonly #directories = new Set<string>()

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
      // The directory is renamed at the end, which no mount point allows.
      const above = await written(out, () => stat(dirname(real)))
      if (above.dev !== stats.dev) throw usage(out, 'that can be replaced', 'a mount point: name a directory in it')
    }
    const parent = dirname(real)
    const first = makeDirectory(parent)
    const parents: string[] = []
    if (first !== null) for (let at = parent; at.length >= first.length; at = dirname(at)) parents.push(at)
    const root = temporaryPath(real)
    await written(out, () => mkdir(root))
    // The new directory gets the mode of the one that it replaces, which may be private.
    if (stats !== null) await written(out, () => chmod(root, stats.mode))
    return new OutputDirectory(root, real, parents)
  }

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
    if (!this.#directories.has(directory)) makeDirectory(directory)
    this.#directories.add(directory)
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

  /** Gives the finished directory its name. */
  async commit(): Promise<void> {
    await written(this.#target, async () => {
      // What was put there meanwhile is not replaced: only an empty directory can be removed so.
      await rmdir(this.#target).catch(noSuchFile)
      await rename(this.root, this.#target)
    })
  }

  /** Something went wrong: leaves nothing behind. */
  async discard(): Promise<void> {
    // A thread may still write its last piece. A failure to remove it must not hide the first error.
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
