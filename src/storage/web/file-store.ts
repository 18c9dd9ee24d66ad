/** A trial in files that a page was given: a folder, or single files. */

import { FormatError, StoreError } from '../../base/errors.js'
import { tooLarge } from '../ranged-store.js'
import { type ListOptions, STAMP_LENGTH, type Store } from '../store.js'
import type { Place, WebStoreSpec } from './place.js'
import { pathsIn } from './tree.js'

/** The synchronous reader of files, which only workers have and the DOM library leaves out. */
declare const FileReaderSync: (new () => { readAsArrayBuffer(blob: Blob): ArrayBuffer }) | undefined

/**
 * The number of bytes that a thread reads at once: for each read the browser makes a buffer, which it collects later.
 */
const PIECE_BYTES = 1 << 20

export class FileStore implements Store {
  readonly spec: WebStoreSpec
  readonly #place: Exclude<Place, { kind: 'http' }>
  /** Files of a folder as they were at the first read, until the end of the job. */
  readonly #held = new Map<string, File>()
  /** The synchronous reader; null outside of threads. */
  readonly #reader = typeof FileReaderSync === 'undefined' ? null : new FileReaderSync()

  constructor(spec: WebStoreSpec, place: Exclude<Place, { kind: 'http' }>) {
    this.spec = spec
    this.#place = place
  }

  async open(): Promise<void> {
    if (this.#place.kind === 'files') return
    try {
      await this.#place.folder.entries().next()
    } catch (error) {
      throw this.#storeError('', error)
    }
  }

  url(path: string): string {
    return `${this.spec.root}${path}`
  }

  async list(directory: string, { recursive = false, expects, onError }: ListOptions = {}): Promise<string[]> {
    if (this.#place.kind === 'files') return pathsIn(this.#place.files.keys(), directory, recursive)
    const folder = await this.#folder(this.#place.folder, directory)
    if (folder === null) return []
    const paths: string[] = []
    const walk = async (folder: FileSystemDirectoryHandle, prefix: string): Promise<void> => {
      try {
        for await (const [name, entry] of folder.entries()) {
          const path = `${prefix}${name}`
          const isDirectory = entry.kind === 'directory'
          if (!isDirectory || (recursive && expects?.(path, true))) paths.push(path)
          if (isDirectory && recursive) await walk(entry as FileSystemDirectoryHandle, `${path}/`)
        }
      } catch (error) {
        const problem = this.#storeError(prefix, error)
        if (!(problem instanceof StoreError)) throw problem
        onError?.(prefix, problem)
      }
    }
    await walk(folder, directory === '' ? '' : `${directory}/`)
    return paths.sort()
  }

  async exists(path: string): Promise<boolean> {
    try {
      await this.#file(path)
      return true
    } catch (error) {
      if (error instanceof StoreError && (error.code === 'NotFound' || error.code === 'NotAFile')) return false
      throw error
    }
  }

  async read(path: string, { maxByteLength }: { readonly maxByteLength: number }): Promise<Uint8Array> {
    // As it is now: what could not be read before may have been under way.
    this.#held.delete(path)
    const file = await this.#file(path)
    if (file.size > maxByteLength) throw tooLarge(this.url(path), maxByteLength, file.size)
    try {
      return new Uint8Array(await file.arrayBuffer())
    } catch (error) {
      throw this.#storeError(path, error)
    }
  }

  readInto(path: string, startByte: number, view: Uint8Array): number | Promise<number> {
    const held = this.#place.kind === 'files' ? this.#place.files.get(path) : this.#held.get(path)
    const reader = this.#reader
    if (held === undefined || reader === null) return this.#readLater(path, startByte, view)
    try {
      let at = 0
      while (at < view.length) {
        const piece = held.slice(startByte + at, startByte + Math.min(at + PIECE_BYTES, view.length))
        const length = fill(view.subarray(at), reader.readAsArrayBuffer(piece))
        if (length === 0) break
        at += length
      }
      return at
    } catch (error) {
      throw this.#storeError(path, error)
    }
  }

  async #readLater(path: string, startByte: number, view: Uint8Array): Promise<number> {
    const file = await this.#file(path)
    try {
      return fill(view, await file.slice(startByte, startByte + view.length).arrayBuffer())
    } catch (error) {
      throw this.#storeError(path, error)
    }
  }

  async stamps(paths: readonly string[]): Promise<Float64Array> {
    const stamps = new Float64Array(paths.length * STAMP_LENGTH).fill(Number.NaN)
    for (const [i, path] of paths.entries()) {
      if (!(await this.exists(path))) continue
      const { size, lastModified } = await this.#file(path)
      stamps.set([size, lastModified, lastModified], i * STAMP_LENGTH)
    }
    return stamps
  }

  async byteLength(path: string): Promise<number> {
    return (await this.#file(path)).size
  }

  release(): void {
    this.#held.clear()
  }

  async close(): Promise<void> {
    this.release()
  }

  async #file(path: string): Promise<File> {
    if (this.#place.kind === 'files') {
      const file = this.#place.files.get(path)
      if (file === undefined) throw this.#notFound(path)
      return file
    }
    const held = this.#held.get(path)
    if (held !== undefined) return held
    const slash = path.lastIndexOf('/')
    const folder = await this.#folder(this.#place.folder, path.slice(0, Math.max(0, slash)))
    if (folder === null) throw this.#notFound(path)
    try {
      const file = await (await folder.getFileHandle(path.slice(slash + 1))).getFile()
      this.#held.set(path, file)
      return file
    } catch (error) {
      throw this.#storeError(path, error)
    }
  }

  /** A directory below a folder; null if there is none. */
  async #folder(root: FileSystemDirectoryHandle, directory: string): Promise<FileSystemDirectoryHandle | null> {
    let folder = root
    try {
      for (const name of directory.split('/').filter(name => name !== ''))
        folder = await folder.getDirectoryHandle(name)
      return folder
    } catch (error) {
      const problem = this.#storeError(directory, error)
      // A file where a directory is asked for has no files in it.
      if (problem.code === 'NotFound' || problem.code === 'NotAFile') return null
      throw problem
    }
  }

  #notFound(path: string): StoreError {
    const url = this.url(path)
    return new StoreError('NotFound', `${url}: no such file among those that were picked`, { url })
  }

  /** The error for a failure of the File API, which throws a TypeError for an impossible name. */
  #storeError(path: string, cause: unknown): StoreError | FormatError {
    const url = this.url(path)
    const name = cause instanceof DOMException || cause instanceof TypeError ? cause.name : ''
    const reason = cause instanceof Error ? cause.message : String(cause)
    switch (name) {
      case 'NotFoundError':
      case 'TypeError':
        return new StoreError('NotFound', `${url}: no such file or directory`, { url }, cause)
      case 'TypeMismatchError':
        return new StoreError('NotAFile', `${url}: expected a file, got a directory`, { url }, cause)
      case 'NotAllowedError':
      case 'SecurityError':
        return new StoreError('Denied', `${url}: the page may not read it: ${reason}`, { url }, cause)
      case 'NotReadableError': {
        const [expected, got] = ['the file as it was first seen', 'one that was changed, or that cannot be read']
        const message = `${url}: expected ${expected}, got ${got}`
        return new FormatError('ObjectChanged', message, { url, expected, got }, cause)
      }
      default:
        return new StoreError('Unavailable', `${url}: ${reason}`, { url }, cause)
    }
  }
}

function fill(view: Uint8Array, bytes: ArrayBuffer): number {
  view.set(new Uint8Array(bytes))
  return bytes.byteLength
}
