/** A destination of results: a directory on disk, or a prefix on S3. Each file appears whole or not at all. */

import { dirname, join } from 'node:path'
import { StoreError } from '../base/errors.js'
import {
  type CommitOptions,
  makeDirectory,
  makeDurable,
  OutputFile,
  removeFile,
  writeAtOnce,
  writeWhole,
} from './local/output.js'
import { openStore, storeSpec } from './open.js'
import { S3Requests } from './s3/requests.js'
import type { S3Options, S3StoreSpec } from './s3/spec.js'
import { put, upload } from './s3/upload.js'
import type { LocalStoreSpec, Store } from './store.js'

/** The time for a short file, in milliseconds, beyond which a disk counts as slow. */
const SLOW_WRITE_MS = 20
const PAUSE_MS = 1000

/** The destination. Every method throws, or rejects with, a StoreError. */
export class Destination {
  readonly #spec: LocalStoreSpec | S3StoreSpec
  /** The requests to S3; null on disk. */
  readonly #requests: S3Requests | null
  #store: Store
  /** The time from which files may be written at once again. */
  #atOnceFrom = 0

  private constructor(spec: LocalStoreSpec | S3StoreSpec) {
    this.#spec = spec
    this.#requests = spec.kind === 's3' ? new S3Requests(spec) : null
    this.#store = openStore(spec)
  }

  /** The destination at a place. @param place a path, or `s3://bucket/prefix` @throws UsageError */
  static at(place: string, s3?: S3Options): Destination {
    const spec = storeSpec(place, s3 && { s3 })
    // Other kinds of stores exist only in pages.
    return new Destination(spec as LocalStoreSpec | S3StoreSpec)
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
    return this.#requests === null
      ? this.#writeFile(path, chunks, options)
      : upload(this.#requests, this.#place(path), chunks, true)
  }

  /**
   * Writes or replaces a short file before it returns, on a local disk that has not been slow lately.
   * @returns false if it did not; `create` or `replace` can
   */
  writeAtOnce(path: string, chunks: readonly Uint8Array[]): boolean {
    const start = performance.now()
    if (this.#requests !== null || start < this.#atOnceFrom) return false
    const local = this.#place(path)
    const isWritten = writeAtOnce(local, chunks, makeDirectory(dirname(local)) !== null)
    const end = performance.now()
    if (end - start > SLOW_WRITE_MS) this.#atOnceFrom = end + PAUSE_MS
    return isWritten
  }

  /** Removes a written file whose counterpart could not be written: on disk only, and as far as possible. */
  takeBack(path: string): void {
    if (this.#requests === null) removeFile(this.#place(path))
  }

  /**
   * Writes a file unless it is there.
   * @returns true if it was not there; of several callers at once, one gets true
   */
  async claim(path: string, text: string): Promise<boolean> {
    if (this.#requests !== null) return claimObject(this.#requests, this.#place(path), text)
    const file = await OutputFile.create(this.#place(path), { makesDirectory: true })
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
    for (const path of this.#requests === null ? paths : []) await makeDurable(this.#place(path))
  }

  /** Writes a short file, or replaces it. */
  async replace(path: string, text: string): Promise<void> {
    if (this.writeAtOnce(path, [Buffer.from(text)])) return
    if (this.#requests === null) await this.#writeFile(path, [text])
    else await upload(this.#requests, this.#place(path), [text], false)
  }

  close(): Promise<void> {
    return this.#store.close()
  }

  async #writeFile(
    path: string,
    chunks: AsyncIterable<Uint8Array | string> | Iterable<Uint8Array | string>,
    options?: CommitOptions,
  ): Promise<number> {
    const work = async (file: OutputFile): Promise<number> => {
      let byteLength = 0
      for await (const chunk of chunks) {
        const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
        await file.write(bytes)
        byteLength += bytes.length
      }
      return byteLength
    }
    return writeWhole(this.#place(path), work, { makesDirectory: true }, options)
  }

  /** The path of a file, or the key of an object. */
  #place(path: string): string {
    return this.#spec.kind === 's3' ? `${this.#spec.prefix}${path}` : join(this.#spec.root, path)
  }
}

async function claimObject(requests: S3Requests, key: string, text: string): Promise<boolean> {
  const { isWritten, attempts } = await put(requests, key, Buffer.from(text), true)
  if (isWritten || attempts === 1) return isWritten
  const url = requests.url(key)
  const message = `${url}: it is there after ${attempts} attempts to write it, one of which may have done so although it seemed to fail`
  const advice = 'if no other writer has begun here, remove it and begin again'
  throw new StoreError('Unavailable', `${message}: ${advice}`, { url, attempts })
}
