/** A destination of results: a directory on disk, or a prefix on S3. Each file appears whole or not at all. */

import { dirname, join } from 'node:path'
import { StoreError } from '../base/errors.js'
import { type CommitOptions, makeDirectory, makeDurable, OutputFile, removeFile, writeAtOnce } from './local/output.js'
import { openStore, storeSpec } from './open.js'
import { S3Requests } from './s3/requests.js'
import type { S3Options } from './s3/spec.js'
import { upload } from './s3/upload.js'
import type { Store, StoreSpec } from './store.js'

/** The time for a short file, in milliseconds, beyond which a disk counts as slow. */
const SLOW_WRITE_MS = 20
const PAUSE_MS = 1000

/** The destination. Every method throws, or rejects with, a StoreError. */
export class Destination {
  readonly #spec: Exclude<StoreSpec, { readonly kind: 'web' }>
  #store: Store
  #requests: S3Requests | undefined
  /** The time from which files may be written at once again. */
  #atOnceFrom = 0
  /** The directories that have been made. */
  readonly #madeDirectories = new Set<string>()

  private constructor(spec: Exclude<StoreSpec, { readonly kind: 'web' }>) {
    this.#spec = spec
    this.#store = openStore(spec)
  }

  /** The destination at a place. @param place a path, or `s3://bucket/prefix` @throws UsageError */
  static at(place: string, s3?: S3Options): Destination {
    const spec = storeSpec(place, s3 && { s3 })
    // Other kinds of stores exist only in pages.
    return new Destination(spec as Exclude<StoreSpec, { readonly kind: 'web' }>)
  }

  /** The store that reads the destination. It remembers listings until `look`. */
  get store(): Store {
    return this.#store
  }

  /**
   * Forgets what the store remembers.
   * @returns the new store
   */
  async look(): Promise<Store> {
    await this.#store.close()
    this.#store = openStore(this.#spec)
    return this.#store
  }

  /**
   * Writes a new file. On S3 an object that is already there stays, whoever wrote it.
   * @returns its number of bytes; null if another is there
   */
  async create(
    path: string,
    chunks: AsyncIterable<Uint8Array | string> | Iterable<Uint8Array | string>,
    options?: CommitOptions,
  ): Promise<number | null> {
    return this.#spec.kind === 's3' ? this.#put(path, chunks, true) : this.#writeFile(path, chunks, options)
  }

  /**
   * Writes or replaces a short file before it returns, on a local disk that has not been slow lately.
   * @returns false if it did not; `create` or `replace` can
   */
  writeAtOnce(path: string, chunks: readonly Uint8Array[]): boolean {
    if (this.#spec.kind === 's3') return false
    const start = performance.now()
    if (start < this.#atOnceFrom) return false
    const local = this.#localPath(path)
    const isWritten = writeAtOnce(local, chunks, this.#makeDirectory(dirname(local)))
    const end = performance.now()
    if (end - start > SLOW_WRITE_MS) this.#atOnceFrom = end + PAUSE_MS
    return isWritten
  }

  /** Removes a written file whose counterpart could not be written: on disk only, and as far as possible. */
  takeBack(path: string): void {
    if (this.#spec.kind === 'local') removeFile(this.#localPath(path))
  }

  /**
   * Writes a file unless it is there.
   * @returns true if it was not there; of several callers at once, one gets true
   */
  async claim(path: string, text: string): Promise<boolean> {
    if (this.#spec.kind === 's3') return this.#claimObject(this.#spec, path, text)
    const file = await OutputFile.create(this.#localPath(path), { makesDirectory: true })
    try {
      await file.write(text)
      return await file.commitNew()
    } catch (error) {
      await file.discard()
      throw error
    }
  }

  /** Returns once the files would survive a power failure. */
  async makeDurable(paths: readonly string[]): Promise<void> {
    if (this.#spec.kind === 's3') return
    for (const path of paths) await makeDurable(this.#localPath(path))
  }

  /** Writes a short file, or replaces it. */
  async replace(path: string, text: string): Promise<void> {
    if (this.writeAtOnce(path, [Buffer.from(text)])) return
    await (this.#spec.kind === 's3' ? this.#put(path, [text], false) : this.#writeFile(path, [text]))
  }

  close(): Promise<void> {
    return this.#store.close()
  }

  async #writeFile(
    path: string,
    chunks: AsyncIterable<Uint8Array | string> | Iterable<Uint8Array | string>,
    options?: CommitOptions,
  ): Promise<number> {
    const file = await OutputFile.create(this.#localPath(path), { makesDirectory: true })
    let byteLength = 0
    try {
      for await (const chunk of chunks) {
        const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
        await file.write(bytes)
        byteLength += bytes.length
      }
      await file.commit(options)
      return byteLength
    } catch (error) {
      await file.discard()
      throw error
    }
  }

  /** @returns true if it was not there */
  #makeDirectory(directory: string): boolean {
    if (this.#madeDirectories.has(directory)) return false
    const isNew = makeDirectory(directory) !== null
    if (this.#madeDirectories.size > 100) this.#madeDirectories.clear()
    this.#madeDirectories.add(directory)
    return isNew
  }

  #localPath(path: string): string {
    return join((this.#spec as { readonly root: string }).root, path)
  }

  async #claimObject(spec: Extract<StoreSpec, { readonly kind: 's3' }>, path: string, text: string): Promise<boolean> {
    this.#requests ??= new S3Requests(spec)
    const key = `${spec.prefix}${path}`
    const { isWritten, attempts } = await this.#requests.put(key, Buffer.from(text), true)
    if (isWritten || attempts === 1) return isWritten
    const url = this.#requests.url(key)
    const message = `${url}: it is there after ${attempts} attempts to write it, one of which may have done so although it seemed to fail`
    const advice = 'if no other writer has begun here, remove it and begin again'
    throw new StoreError('Unavailable', `${message}: ${advice}`, { url, attempts })
  }

  #put(
    path: string,
    chunks: AsyncIterable<Uint8Array | string> | Iterable<Uint8Array | string>,
    isNew: boolean,
  ): Promise<number | null> {
    const spec = this.#spec as Extract<StoreSpec, { readonly kind: 's3' }>
    this.#requests ??= new S3Requests(spec)
    return upload(this.#requests, `${spec.prefix}${path}`, chunks, isNew)
  }
}
