/** The local disk as a store: the only reader of trials through node:fs. */

import {
  closeSync,
  constants,
  type Dirent,
  fstatSync,
  lstatSync,
  openSync,
  promises,
  readSync,
  realpathSync,
  type Stats,
  statSync,
} from 'node:fs'
import { dirname, isAbsolute, join, resolve, sep } from 'node:path'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { StoreError, UsageError } from '../../base/errors.js'
import type { ListOptions, LocalStoreSpec, Store, Watcher } from '../store.js'
import { isDirectory } from './file.js'
import { isInside } from './real-path.js'
import { DirectoryWatcher } from './watcher.js'

/** The number of files that stay open between reads. The jobs of a thread read a trial file by file. */
const MAX_OPEN_FILES = 16
/** A path that needs no escapes in a URL. */
const PLAIN_PATH = /^\w[\w=-]*(?:\.[\w=-]+)*(?:\/\w[\w=-]*(?:\.[\w=-]+)*)*$/
/** The number of directories that are remembered as inside the root. */
const MAX_KNOWN_DIRECTORIES = 4096
/** The number of files from which sorting yields to other work before and after. */
const AWAITED_FILES = 16_384
const LISTED_AT_ONCE = 32
/** The number of bytes of a text file to read before a byte 0 is looked for. */
const TEXT_PIECE_BYTES = 1 << 20
/** The largest request of one read, in bytes. Node.js's own limit is 2^31 - 1. */
const MAX_READ_BYTES = 2 ** 30

interface OpenFile {
  readonly file: number
  readonly stats: Stats
}

type StoreErrorCode = ConstructorParameters<typeof StoreError>[0]

const REASONS: Readonly<Record<string, readonly [StoreErrorCode, string]>> = {
  ENOENT: ['NotFound', 'no such file or directory'],
  EACCES: ['Denied', 'permission denied'],
  EPERM: ['Denied', 'permission denied'],
  EISDIR: ['NotAFile', 'expected a regular file'],
  ENXIO: ['NotAFile', 'expected a regular file'],
  ENODEV: ['NotAFile', 'expected a regular file'],
}

/**
 * The flags of open(2): opening a FIFO must not wait for its writer, and a terminal must not become the controlling
 * one. Windows has neither flag.
 */
const OPEN_FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOCTTY ?? 0)
const NO_FOLLOW = constants.O_NOFOLLOW ?? 0

/** The longest pause for a descriptor, in milliseconds. Pauses double from 1 ms up to this. */
const MAX_PAUSE_MS = 128

/**
 * A trial on the local disk. Files are read synchronously: from the page cache, that takes 10 µs for a small file, less
 * than half of what the thread pool needs even with 16 files at a time (100,000 index files: 1.0 s against 2.2 s). Into
 * WASM memory, 1 MiB at a time, it reads 30 GB/s; a promise-based read gives 15. Only listing is asynchronous.
 */
export class LocalStore implements Store {
  readonly spec: LocalStoreSpec
  readonly #root: string
  readonly #rootUrl: string
  /** Open files by path, the most recently used last. */
  readonly #files = new Map<string, OpenFile>()
  /** Directories whose real paths lie in the root's real path. */
  readonly #knownDirectories = new Set<string>()
  #last: { readonly directory: string; readonly absolute: string } | undefined
  /** The current longest pause for a descriptor. After a wait in vain it is short until a descriptor is free again. */
  #maxPauseMs = MAX_PAUSE_MS

  constructor(spec: LocalStoreSpec) {
    this.spec = spec
    this.#root = resolve(spec.root)
    const { href } = pathToFileURL(this.#root)
    this.#rootUrl = href.endsWith('/') ? href : `${href}/`
  }

  async open(): Promise<void> {
    const stats = this.#translated('', () => statSync(this.#root))
    if (!stats.isDirectory()) throw this.#unexpected('NotADirectory', '', 'a directory', 'a file')
  }

  url(path: string): string {
    // Called for every index file; most have names that a URL spells as they are.
    if (PLAIN_PATH.test(path)) return `${this.#rootUrl}${path}`
    return pathToFileURL(join(this.#root, path)).href
  }

  watch(directories: readonly string[]): Watcher {
    // The root is watched by itself: events/ below it may hold a directory for every step.
    return new DirectoryWatcher(
      directories.map(directory => ({ path: this.#resolve(directory), recursive: directory !== '' })),
    )
  }

  /**
   * The directories of a directory. A link to a directory doesn't count unless links are followed: its target has a
   * name of its own.
   */
  readonly folders = async (directory: string): Promise<string[]> => {
    if (this.spec.only !== undefined) return []
    const entries = await this.#entries(directory)
    const leadsToFolder = ({ name }: Dirent): boolean => isDirectory(join(this.#resolve(directory), name))
    const isFolder = (entry: Dirent): boolean =>
      entry.isDirectory() || (this.spec.allowSymlinks === true && entry.isSymbolicLink() && leadsToFolder(entry))
    return entries.flatMap(entry => (isFolder(entry) ? [entry.name] : [])).sort()
  }

  realPath(directory: string): string {
    return this.#translated(directory, () => realpathSync(this.#resolve(directory)))
  }

  async list(directory: string, { recursive = false, expects, onError }: ListOptions = {}): Promise<string[]> {
    this.#resolve(directory)
    const { only } = this.spec
    if (only !== undefined) return directory === '' && (await this.exists(only)) ? [only] : []
    const skip = (path: string, error: unknown): void => {
      const failure = this.#translation(path, error)
      const isTold = onError !== undefined && path !== directory && failure instanceof StoreError
      if (!isTold || isOutOfDescriptors(failure.cause)) throw failure
      onError(path, failure)
    }
    const paths: string[] = []
    // Real paths of the directories that links led to: a link to a parent directory must not loop for ever.
    const linked = new Set<string>()
    let level = [directory.replace(/\/+$/, '')]
    while (level.length > 0) {
      const next: string[] = []
      for (let i = 0; i < level.length; i += LISTED_AT_ONCE) {
        const batch = level.slice(i, i + LISTED_AT_ONCE)
        const listings = batch.map(path => this.#entries(path).catch((error: unknown) => ({ error })))
        // Each directory is handled as it comes: few listings of a thousand files are in memory together, and the thread is not held for
        // all.
        for (const [j, listing] of listings.entries()) {
          const path = batch[j]!
          const entries = await listing
          if ('error' in entries) skip(path, entries.error)
          const prefix = path === '' ? '' : `${path}/`
          for (const entry of 'error' in entries ? [] : entries) {
            try {
              const path = prefix + entry.name
              const odd = this.#sort(entry, path, paths, next, linked)
              if (paths.at(-1) === path) continue
              if (expects?.(path, odd === null)) {
                paths.push(path)
                // A real directory is still searched, since its files may be the trial's; one behind a link is not.
                if (entry.isSymbolicLink() && next.at(-1) === path) next.pop()
              } else if (odd !== null) onError?.(path, odd)
            } catch (error) {
              skip(prefix + entry.name, error)
            }
          }
        }
      }
      level = recursive ? next : []
    }
    if (paths.length > AWAITED_FILES) await setImmediate()
    paths.sort()
    if (paths.length > AWAITED_FILES) await setImmediate()
    return paths
  }

  async exists(path: string): Promise<boolean> {
    try {
      return this.#stat(path).isFile()
    } catch (error) {
      if (error instanceof StoreError && (error.code === 'NotFound' || error.code === 'NotADirectory')) return false
      throw error
    }
  }

  async read(
    path: string,
    { maxByteLength, isText = false }: { readonly maxByteLength: number; readonly isText?: boolean },
  ): Promise<Uint8Array> {
    const { file, stats } = this.#openFile(path)
    const byteLength = stats.size
    try {
      if (byteLength > maxByteLength) {
        const fields = { maxByteLength, byteLength }
        throw this.#unexpected('TooLarge', path, `at most ${maxByteLength} bytes`, `${byteLength}`, fields)
      }
      const bytes = new Uint8Array(byteLength)
      const pieceLength = isText ? TEXT_PIECE_BYTES : byteLength
      for (let at = 0; at < byteLength; at += pieceLength) {
        const piece = bytes.subarray(at, at + pieceLength)
        const filled = this.#fill(path, file, at, piece)
        const zero = isText ? piece.indexOf(0) : -1
        if (zero >= 0) return bytes.subarray(0, at + Math.min(filled, zero + 1))
        // A file that shrinks meanwhile is read as far as it goes.
        if (filled < piece.length) return bytes.subarray(0, at + filled)
      }
      return bytes
    } finally {
      closeSync(file)
    }
  }

  readSmall(path: string, buffer: Uint8Array): number {
    const slash = path.lastIndexOf('/')
    const name = path.slice(slash + 1)
    // Whatever is out of the ordinary is for `read`.
    if (sep !== '/' || slash < 1 || name === '' || name === '.' || name === '..' || name.includes('\0')) return -1
    let file: number | undefined
    try {
      const absolute = `${this.#directoryOf(path.slice(0, slash))}/${name}`
      file = openSync(absolute, this.spec.allowSymlinks ? OPEN_FLAGS : OPEN_FLAGS | NO_FOLLOW)
      const length = readSync(file, buffer, 0, buffer.length, 0)
      return length > 0 && length < buffer.length ? length : -1
    } catch {
      return -1
    } finally {
      if (file !== undefined) closeSync(file)
    }
  }

  async stamps(paths: readonly string[]): Promise<Float64Array> {
    const stamps = new Float64Array(paths.length * 3).fill(Number.NaN)
    for (const [i, path] of paths.entries()) {
      // A turn of the event loop now and then: a thousand files take about 2 ms.
      if (i % 1000 === 999) await setImmediate()
      try {
        const { size, mtimeMs, ctimeMs } = statSync(this.#resolve(path))
        stamps.set([size, mtimeMs, ctimeMs], i * 3)
      } catch {
        // Reading the file will report the error.
      }
    }
    return stamps
  }

  versionOf(path: string): string | undefined {
    const known = this.#files.get(path)
    try {
      return versionIn(known ? fstatSync(known.file) : statSync(this.#resolve(path)))
    } catch {
      return undefined
    }
  }

  readInto(path: string, startByte: number, view: Uint8Array): number {
    if (!Number.isSafeInteger(startByte) || startByte < 0) {
      throw new UsageError(`expected a byte offset, got ${startByte}`, { path, startByte })
    }
    const known = this.#files.get(path)
    if (known !== undefined) {
      const read = this.#fill(path, known.file, startByte, view)
      this.#files.delete(path)
      this.#files.set(path, known)
      if (read === view.byteLength) return read
      // Another file may have taken the name: the path is opened again before the read ends here.
      this.#forget(path)
    }
    return this.#fill(path, this.#keep(path).file, startByte, view)
  }

  hold(path: string): { readonly byteLength: number; readonly version: string } {
    this.#forget(path)
    const { stats } = this.#keep(path)
    return { byteLength: stats.size, version: versionIn(stats) }
  }

  async byteLength(path: string): Promise<number> {
    const stats = this.#stat(path)
    if (!stats.isFile()) throw this.#unexpected('NotAFile', path, 'a regular file', kindOf(stats))
    return stats.size
  }

  release(): void {
    for (const path of this.#files.keys()) this.#forget(path)
  }

  async close(): Promise<void> {
    this.release()
    this.#knownDirectories.clear()
    this.#last = undefined
  }

  /** Reads until the view is full or the file ends. */
  #fill(path: string, file: number, startByte: number, view: Uint8Array): number {
    return this.#translated(path, () => {
      let filled = 0
      while (filled < view.byteLength) {
        const wanted = Math.min(view.byteLength - filled, MAX_READ_BYTES)
        const read = readSync(file, view, filled, wanted, startByte + filled)
        if (read === 0) break
        filled += read
      }
      return filled
    })
  }

  #keep(path: string): OpenFile {
    const opened = this.#openFile(path)
    this.#files.set(path, opened)
    if (this.#files.size > MAX_OPEN_FILES) this.#forget(this.#files.keys().next().value!)
    return opened
  }

  #forget(path: string): void {
    const known = this.#files.get(path)
    this.#files.delete(path)
    if (known !== undefined) closeSync(known.file)
  }

  #openFile(path: string): OpenFile {
    const absolute = this.#resolve(path)
    const file = this.#openInside(path, absolute)
    try {
      const stats = this.#translated(path, () => fstatSync(file))
      if (!stats.isFile()) throw this.#unexpected('NotAFile', path, 'a regular file', kindOf(stats))
      return { file, stats }
    } catch (error) {
      closeSync(file)
      throw error
    }
  }

  /** Opens a path after checking that no symbolic link on the way leads out of the root. */
  #openInside(path: string, absolute: string): number {
    return this.#translated(path, () => {
      if (this.spec.allowSymlinks) return this.#open(absolute, OPEN_FLAGS)
      this.#checkDirectory(path, absolute === this.#root ? absolute : dirname(absolute))
      try {
        return this.#open(absolute, OPEN_FLAGS | NO_FOLLOW)
      } catch (error) {
        if (codeOf(error) !== 'ELOOP') throw error
        return this.#open(this.#realInside(path, absolute), OPEN_FLAGS | NO_FOLLOW)
      }
    })
  }

  /**
   * Opens a file. If no descriptor is free, it closes the store's own open files, then waits for others to close
   * theirs.
   */
  #open(absolute: string, flags: number): number {
    for (let pauseMs = 1; ; pauseMs *= 2) {
      try {
        const file = openSync(absolute, flags)
        this.#maxPauseMs = MAX_PAUSE_MS
        return file
      } catch (error) {
        if (!isOutOfDescriptors(error)) throw error
        if (this.#files.size > 0) this.release()
        else if (pauseMs <= this.#maxPauseMs) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pauseMs)
        else {
          this.#maxPauseMs = 1
          throw error
        }
      }
    }
  }

  /** The facts about a file. As with opening, a file that is no link lies where its directory does. */
  #stat(path: string): Stats {
    const absolute = this.#resolve(path)
    return this.#translated(path, () => {
      if (this.spec.allowSymlinks) return statSync(absolute)
      this.#checkDirectory(path, absolute === this.#root ? absolute : dirname(absolute))
      const stats = lstatSync(absolute)
      return stats.isSymbolicLink() ? statSync(this.#realInside(path, absolute)) : stats
    })
  }

  /** The absolute path of a directory in the root. The last one is remembered. */
  #directoryOf(directory: string): string {
    if (this.#last?.directory !== directory) {
      const absolute = this.#resolve(directory)
      if (!this.spec.allowSymlinks) this.#checkDirectory(directory, absolute)
      this.#last = { directory, absolute }
    }
    return this.#last.absolute
  }

  /**
   * Checks that a directory lies in the root, once for all of its files: an index has a thousand in each. A directory
   * that is no link lies where its parent does, which takes one call; a real path takes one for each part of two paths,
   * and event files have a directory for every step.
   */
  #checkDirectory(path: string, directory: string): void {
    if (this.#knownDirectories.has(directory)) return
    if (directory !== this.#root) {
      this.#checkDirectory(path, dirname(directory))
      if (lstatSync(directory).isSymbolicLink()) this.#realInside(path, directory)
    }
    if (this.#knownDirectories.size >= MAX_KNOWN_DIRECTORIES) this.#knownDirectories.clear()
    this.#knownDirectories.add(directory)
  }

  /** The real path of an absolute one, if it lies in the real root. */
  #realInside(path: string, absolute: string): string {
    const root = realpathSync(this.#root)
    const real = realpathSync(absolute)
    if (isInside(real, root)) return real
    const got = 'a symbolic link that leads out of it'
    throw this.#unexpected('Denied', path, 'a file in the trial', got, { isLasting: true })
  }

  async #entries(directory: string): Promise<Dirent[]> {
    const absolute = this.#resolve(directory)
    for (let pauseMs = 1; ; pauseMs *= 2) {
      try {
        if (!this.spec.allowSymlinks) this.#checkDirectory(directory, absolute)
        return await promises.readdir(absolute, { withFileTypes: true })
      } catch (error) {
        if (codeOf(error) === 'ENOENT') return []
        if (!isOutOfDescriptors(error) || pauseMs > MAX_PAUSE_MS) throw this.#translation(directory, error)
        this.release()
        await setTimeout(pauseMs)
      }
    }
  }

  /**
   * Sorts an entry into the files or the directories still to be listed.
   * @returns the error if it is neither
   */
  #sort(entry: Dirent, path: string, files: string[], directories: string[], linked: Set<string>): StoreError | null {
    if (entry.isFile()) files.push(path)
    else if (entry.isDirectory()) directories.push(path)
    else {
      const absolute = this.#resolve(path)
      const stats = this.#translated(path, () => behindLink(absolute))
      // A link to a file is always listed, so that reading it reports where it leads.
      if (entry.isSymbolicLink() && stats?.isFile()) files.push(path)
      else if (stats === undefined) return this.#lostLink(path)
      else if (!stats.isDirectory()) {
        return this.#unexpected('NotAFile', path, 'a regular file', kindOf(stats))
      }
      if (!stats.isDirectory()) return null
      const real = realpathSync(absolute)
      // The trial's own path may be a link, or go through one.
      if (linked.has(real) || isInside(realpathSync(dirname(absolute)), real)) return null
      linked.add(real)
      directories.push(path)
    }
    return null
  }

  /** The absolute path of a file in the trial. */
  #resolve(path: string): string {
    const absolute = resolve(this.#root, path)
    if (!path.includes('\0') && !isAbsolute(path) && isInside(absolute, this.#root)) return absolute
    const detail = `expected a path inside the trial, got ${JSON.stringify(path)}`
    throw new StoreError('Denied', `${this.url('')}: ${detail}`, { url: this.url('') })
  }

  #isLink(path: string): boolean {
    try {
      return lstatSync(this.#resolve(path)).isSymbolicLink()
    } catch {
      return false
    }
  }

  #translated<T>(path: string, action: () => T): T {
    try {
      return action()
    } catch (error) {
      throw this.#translation(path, error)
    }
  }

  /** The StoreError for an error of node:fs. */
  #translation(path: string, error: unknown): unknown {
    if (error instanceof StoreError) return error
    const errno = codeOf(error) ?? ''
    if (errno === 'ENOENT' && this.#isLink(path)) return this.#lostLink(path, error)
    if (errno === 'ENOTDIR') {
      const [expected, got] = ['directories on the way to it', 'a file that is named like one']
      return this.#unexpected('NotADirectory', path, expected, got, {}, error)
    }
    const [code, detail] = REASONS[errno] ?? []
    if (code !== undefined) return this.#error(code, path, detail!, {}, error)
    const retryable = ['EMFILE', 'ENFILE', 'EAGAIN', 'EIO'].includes(errno)
    const isLasting = errno === 'ELOOP' || errno === 'ENAMETOOLONG'
    const reason = error instanceof Error ? error.message : String(error)
    return this.#error('Unavailable', path, reason, { retryable, ...(isLasting && { isLasting }) }, error)
  }

  #lostLink(path: string, cause?: unknown): StoreError {
    return this.#unexpected('NotFound', path, 'a file', 'a link that leads nowhere', {}, cause)
  }

  #unexpected(
    code: StoreErrorCode,
    path: string,
    expected: string,
    got: string,
    fields: Readonly<Record<string, unknown>> = {},
    cause?: unknown,
  ): StoreError {
    return this.#error(code, path, `expected ${expected}, got ${got}`, { ...fields, got }, cause)
  }

  #error(
    code: StoreErrorCode,
    path: string,
    detail: string,
    fields: Readonly<Record<string, unknown>> & { readonly retryable?: boolean } = {},
    cause?: unknown,
  ): StoreError {
    const url = this.url(path)
    return new StoreError(code, `${url}: ${detail}`, { url, ...fields }, cause)
  }
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

/** True for EMFILE (the process has no descriptor left) and ENFILE (the machine has none). */
function isOutOfDescriptors(error: unknown): boolean {
  const code = codeOf(error)
  return code === 'EMFILE' || code === 'ENFILE'
}

/** The facts about the target of a symbolic link; undefined if it leads nowhere or in circles. */
function behindLink(absolute: string): Stats | undefined {
  try {
    return statSync(absolute, { throwIfNoEntry: false })
  } catch (error) {
    if (codeOf(error) === 'ELOOP') return undefined
    throw error
  }
}

function versionIn({ size, mtimeMs, ctimeMs }: Stats): string {
  return `${size} ${mtimeMs} ${ctimeMs}`
}

function kindOf(stats: Stats): string {
  if (stats.isDirectory()) return 'a directory'
  if (stats.isFIFO()) return 'a FIFO'
  return stats.isSocket() ? 'a socket' : 'a device'
}
