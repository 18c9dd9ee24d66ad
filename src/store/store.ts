/** Where a trial's bytes lie. A store knows files and bytes, and nothing of what they mean. */

import { basename } from 'node:path'
import type { StoreError } from '../errors.js'
import type { S3StoreSpec } from './s3/spec.js'

/** A store as plain data, ready to cross a thread. */
export type StoreSpec = LocalStoreSpec | S3StoreSpec

export interface LocalStoreSpec {
  readonly kind: 'local'
  /** The trial's directory, an absolute path. */
  readonly root: string
  /** Follow symbolic links that lead out of the root; otherwise they are refused. */
  readonly allowSymlinks?: boolean
}

/** Tells when something may have changed. */
export interface Watcher {
  /** Resolves at the next change, at once if there was one since it last did; never where nothing can be told. */
  changed(): Promise<void>
  close(): void
}

/** Requests that were made, and what came of them. */
export interface Traffic {
  listRequests: number
  getRequests: number
  receivedBytes: number
  /** Attempts that failed and were made again; each of them is one of the requests, too. */
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

/** For whom a store that makes requests makes them. */
export interface ReadContext {
  /** Ends them. */
  readonly signal?: AbortSignal | undefined
  /** Where they are counted. */
  readonly traffic: readonly Traffic[]
}

/** What reading a file's bytes takes. */
export type ByteSource = Pick<Store, 'url' | 'readInto' | 'readLater' | 'stream'>

/** A store that makes requests, whose answers are waited for. */
export type RemoteStore = Store & Required<Pick<Store, 'readLater'>>

export function isRemote<S extends ByteSource>(store: S): store is S & Required<Pick<Store, 'readLater'>> {
  return store.readLater !== undefined
}

/** Whole files that may be under way at once, together. */
const PARALLEL_BYTES = 64 << 20

/** All paths are relative to the trial, with `/`. Every method throws, or rejects with, a StoreError. */
export interface Store {
  readonly spec: StoreSpec

  /** Makes sure that the trial's root is there (NotFound, NotADirectory, Denied). The other methods don't need it. */
  open(): Promise<void>

  /** What errors name: the URL of a file. */
  url(path: string): string

  /**
   * The paths of the regular files in a directory ('' is the root), sorted; none if there is no such directory.
   * @param options after: only paths behind that one are wanted; a store may list the others, too. expects: whether a file
   *   should be at a path where something else is; it is listed as one, so that reading it says what is wrong, and a
   *   directory's files are, too. onError: called for what can't be listed or looked at below the directory, which then is
   *   left out; also for what is neither a file nor a directory (NotAFile, NotFound for a link that leads nowhere), which
   *   is left out unless it is expected. onPaths: called for what has come, by a store that makes requests, before the next one;
   *   what it throws ends the listing
   */
  list(
    directory: string,
    options?: {
      readonly recursive?: boolean
      readonly after?: string
      readonly expects?: (path: string, isDirectory: boolean) => boolean
      readonly onError?: (path: string, error: StoreError) => void
      readonly onPaths?: (paths: readonly string[]) => void | Promise<void>
    },
  ): Promise<string[]>

  /** True where a regular file is. */
  exists(path: string): Promise<boolean>

  /**
   * A whole file; TooLarge if it has more than `maxByteLength` bytes.
   * @param options isText: no byte of it may be 0. What is behind one need not be read: a file of holes can be long for nothing
   */
  read(path: string, options: { readonly maxByteLength: number; readonly isText?: boolean }): Promise<Uint8Array>

  /**
   * Fills `view` from `startByte` on. Gives the number of bytes read, which is less than asked for only at the end of
   * the file. A store that can answers at once, without a promise: a view over WASM memory must not wait for long.
   */
  readInto(path: string, startByte: number, view: Uint8Array): number | Promise<number>

  /**
   * As `readInto`, for stores that make requests, of which several should be under way: the others don't have it. The view
   * is asked for again whenever bytes have come, since the memory behind it may have moved; if it throws, the read ends.
   */
  readonly readLater?: (path: string, startByte: number, byteLength: number, view: () => Uint8Array) => Promise<number>

  /**
   * Hands out a range as its bytes come, in order: a request for all of it, of which no more than a chunk is held. Gives the
   * number of bytes, as `readInto` does. What `take` throws ends the read. Only stores that make requests have it.
   */
  readonly stream?: (
    path: string,
    startByte: number,
    byteLength: number,
    take: (chunk: Uint8Array) => void,
  ) => Promise<number>

  /** The same store on behalf of somebody: only stores that make requests have it. */
  readonly within?: (context: ReadContext) => Store

  /**
   * What tells whether files have changed: byte length, and the times of change of content and of status in
   * milliseconds, three numbers a file; NaN for one that is not there.
   */
  stamps(paths: readonly string[]): Promise<Float64Array>

  /** The length of a file in bytes. */
  byteLength(path: string): Promise<number>

  /**
   * Watches directories ('' is the root, alone, others with all that is below) for new files, as far as the platform
   * tells of them: a hint to look again, no more.
   */
  watch(directories: readonly string[]): Watcher

  /** Gives back the descriptors that are kept from one read to the next, where there are any. */
  release?(): void

  /** Lets go of open files. The store can still be used, and opens them again. */
  close(): Promise<void>
}

/** The last part of where a trial lies. */
export function storeName(spec: StoreSpec): string {
  return basename(spec.kind === 's3' ? `${spec.bucket}/${spec.prefix}` : spec.root)
}

/**
 * Does something with files. On the local disk, where nothing waits, one after another, so that no two of them are held;
 * where reading is making requests, with as many at once as are no larger together than `PARALLEL_BYTES`.
 */
export async function eachFile<T>(
  store: Store,
  paths: readonly string[],
  work: (path: string) => Promise<T>,
): Promise<T[]> {
  const results: T[] = []
  if (!isRemote(store)) {
    for (const path of paths) results.push(await work(path))
    return results
  }
  const lengths = await Promise.all(paths.map(path => store.byteLength(path).catch(() => 0)))
  for (let first = 0; first < paths.length; ) {
    let end = first
    for (let bytes = 0; end < paths.length && (end === first || bytes + lengths[end]! <= PARALLEL_BYTES); end++) {
      bytes += lengths[end]!
    }
    for (const result of await Promise.all(paths.slice(first, end).map(work))) results.push(result)
    first = end
  }
  return results
}
