/** Stores: the places of trials' bytes. A store knows files and bytes, but not their meaning. */

import { basename } from 'node:path'
import type { StoreError } from '../base/errors.js'
import type { TableData } from './composed/table-data.js'
import type { S3StoreSpec } from './s3/spec.js'
import type { WebStoreSpec } from './web/place.js'

/** A store as plain data, which can be posted to a thread. */
export type StoreSpec = PlainStoreSpec | ComposedStoreSpec

/** A store whose files are the actual files of a place. */
export type PlainStoreSpec = LocalStoreSpec | S3StoreSpec | WebStoreSpec

/** A store of files that consist of pieces of another's files. */
export interface ComposedStoreSpec {
  readonly kind: 'composed'
  readonly base: PlainStoreSpec
  readonly tables: readonly TableData[]
}

export interface LocalStoreSpec {
  readonly kind: 'local'
  /** The trial's directory, an absolute path. */
  readonly root: string
  /** True to follow symbolic links that lead out of the root. Otherwise they are refused. */
  readonly allowSymlinks?: boolean
  /** The only file of the directory that counts: one of TensorBoard's that was named itself. */
  readonly only?: string
}

/** Reports that something may have changed. */
export interface Watcher {
  /** Resolves at the next change, or at once if there was one since it last resolved. Never resolves if changes can't be watched. */
  changed(): Promise<void>
  close(): void
}

/** The numbers of a file's stamp: its length, and the times of the last change of content and of status. */
export const STAMP_LENGTH = 3

/** Counters of requests and their outcome. */
export interface Traffic {
  listRequests: number
  getRequests: number
  receivedBytes: number
  /** Attempts that failed and were repeated. Each also counts as a request. */
  retries: number
}

export function newTraffic(): Traffic {
  return { listRequests: 0, getRequests: 0, receivedBytes: 0, retries: 0 }
}

export function addTraffic(to: Traffic, more: Readonly<Traffic>): void {
  to.listRequests += more.listRequests
  to.getRequests += more.getRequests
  to.receivedBytes += more.receivedBytes
  to.retries += more.retries
}

/** The context of a store's requests. */
export interface ReadContext {
  /** Aborts the requests. */
  readonly signal?: AbortSignal | undefined
  /** The counters to which the requests are added. */
  readonly traffic: readonly Traffic[]
}

/** The part of a store that reads bytes of files. */
export type ByteSource = Pick<Store, 'url' | 'readInto' | 'readLater' | 'stream' | 'headByteLength'>

export type RemoteStore = Store & Required<Pick<Store, 'readLater'>>

export function isRemote<S extends ByteSource>(store: S): store is S & Required<Pick<Store, 'readLater'>> {
  return store.readLater !== undefined
}

/** The number of bytes of whole files that are read at once. */
const PARALLEL_BYTES = 64 << 20

export interface ListOptions {
  readonly recursive?: boolean
  readonly after?: string
  readonly expects?: (path: string, isDirectory: boolean) => boolean
  readonly onError?: (path: string, error: StoreError) => void
  readonly onPaths?: (paths: readonly string[]) => void | Promise<void>
}

/** All paths are relative to the trial and use `/`. Every method throws, or rejects with, a StoreError. */
export interface Store {
  readonly spec: StoreSpec

  /** Checks that the trial's root is there (NotFound, NotADirectory, Denied). The other methods don't need it. */
  open(): Promise<void>

  /** The URL of a file, as errors name it. */
  url(path: string): string

  /**
   * The paths of the regular files in a directory ('' is the root), sorted; none if there is no such directory.
   * @param options after: only paths after this one are needed; a store may list others, too. expects: whether
   *   something at a path that is not a regular file should be one. Then it is listed as a file, so that reading it
   *   says what is wrong, and if it is a directory, so are the files in it. onError: called for anything below the
   *   directory that can't be listed or examined, which is then left out; also for what is neither a file nor a
   *   directory (NotAFile, or NotFound for a link that leads nowhere), which is left out unless it is expected.
   *   onPaths: called by a store that makes requests with the paths of each answer, before the next request; what it
   *   throws ends the listing
   */
  list(directory: string, options?: ListOptions): Promise<string[]>

  /** The names of the directories in a directory, sorted. Only stores in which trials can be searched have it. */
  readonly folders?: (directory: string) => Promise<string[]>

  /**
   * The real path of a directory. Only stores with links have it.
   * @throws StoreError
   */
  realPath?(directory: string): string

  /** True if there is a regular file. */
  exists(path: string): Promise<boolean>

  /**
   * A whole file. TooLarge if it has more than `maxByteLength` bytes.
   * @param options isText: the file should have no byte 0. What follows one need not be read: a sparse file can be long
   *   for nothing
   */
  read(path: string, options: { readonly maxByteLength: number; readonly isText?: boolean }): Promise<Uint8Array>

  /**
   * Fills the beginning of `buffer` with a file shorter than it, at once and with nothing but what reading takes. Returns its
   * length, or -1 for any file that `read` can say more about, and if it can't be read. Only the local disk has it.
   */
  readSmall?(path: string, buffer: Uint8Array): number

  /**
   * Fills `view` with the bytes from `startByte` on. Returns the number of bytes read, which is less than asked for
   * only at the end of the file. A store that is able to answers at once, without a promise: a view over WASM memory
   * must not wait for long.
   */
  readInto(path: string, startByte: number, view: Uint8Array): number | Promise<number>

  /**
   * Like `readInto`, for stores that make requests, of which several should be under way; other stores don't have it.
   * `view` is called again whenever bytes have come, since the memory behind it may have moved; if it throws, the read
   * ends.
   */
  readonly readLater?: (path: string, startByte: number, byteLength: number, view: () => Uint8Array) => Promise<number>

  /**
   * Hands out a range in order as its bytes come, from one request, without holding more than a chunk. Returns the
   * number of bytes, as `readInto` does. What `take` throws ends the read. Only stores that make requests have it.
   */
  readonly stream?: (
    path: string,
    startByte: number,
    byteLength: number,
    take: (chunk: Uint8Array) => void,
  ) => Promise<number>

  /**
   * The number of bytes in front of the elements of the record that begins there, where the store knows it without reading.
   * Undefined: it doesn't.
   */
  headByteLength?(path: string, startByte: number): number | undefined

  /** A copy of the store with another context. Only stores that make requests have it. */
  readonly within?: (context: ReadContext) => Store

  /**
   * Stamps that show whether files have changed: byte length, and the times of the last change of content and of status in
   * milliseconds. Three numbers per file; NaN for a file that does not exist.
   */
  stamps(paths: readonly string[]): Promise<Float64Array>

  /**
   * A text that tells the file that is read under a path from another that takes its name, and from itself once it is changed;
   * undefined: nothing is known. Without a request. Only stores whose files may change while they are read have it.
   */
  versionOf?(path: string): string | undefined

  /**
   * The length and the version (`versionOf`) of a file that is read next: it stays open for that, so that both are those of what is
   * read. Only the local disk has it.
   */
  hold?(path: string): { readonly byteLength: number; readonly version: string }

  byteLength(path: string): Promise<number>

  /**
   * Watches directories for new files ('' is the root by itself; others include everything below them), if the platform
   * supports it. Only a hint to look again. Only the local disk has it.
   */
  watch?(directories: readonly string[]): Watcher

  /** Closes descriptors that are kept between reads. */
  release?(): void

  /** Closes open files. The store can still be used and opens them again. */
  close(): Promise<void>
}

/** The last part of a trial's path. */
export function storeName(spec: StoreSpec): string {
  if (spec.kind === 'composed') return storeName(spec.base)
  if (spec.kind !== 'web' && spec.only !== undefined) return spec.only
  return basename(spec.kind === 's3' ? `${spec.bucket}/${spec.prefix}` : spec.root)
}

/**
 * Runs work on each file. On the local disk, where nothing waits, one file follows the other, so that only one is held.
 * With requests, as many files are read at once as together have at most `PARALLEL_BYTES`.
 */
export async function eachFile<T>(
  store: Store,
  paths: readonly string[],
  work: (path: string, i: number) => Promise<T>,
): Promise<T[]> {
  const results: T[] = []
  if (!isRemote(store)) {
    for (const [i, path] of paths.entries()) results.push(await work(path, i))
    return results
  }
  const lengths = await Promise.all(paths.map(path => store.byteLength(path).catch(() => 0)))
  for (let first = 0; first < paths.length; ) {
    let end = first
    const from = first
    for (let bytes = 0; end < paths.length && (end === first || bytes + lengths[end]! <= PARALLEL_BYTES); end++) {
      bytes += lengths[end]!
    }
    for (const result of await Promise.all(paths.slice(first, end).map((path, i) => work(path, from + i))))
      results.push(result)
    first = end
  }
  return results
}
