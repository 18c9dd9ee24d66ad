/** Where a trial's bytes lie. A store knows files and bytes, and nothing of what they mean. */

import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { UsageError } from '../errors.js'
import { LocalStore } from './local.js'

/** A store as plain data, ready to cross a thread. */
export type StoreSpec = LocalStoreSpec

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

/** All paths are relative to the trial, with `/`. Every method throws, or rejects with, a StoreError. */
export interface Store {
  readonly spec: StoreSpec

  /** Makes sure that the trial's root is there (NotFound, NotADirectory, Denied). The other methods don't need it. */
  open(): Promise<void>

  /** What errors name: the URL of a file. */
  url(path: string): string

  /** The paths of the regular files in a directory ('' is the root), sorted; none if there is no such directory. */
  list(directory: string, options?: { readonly recursive?: boolean }): Promise<string[]>

  /** True where a regular file is. */
  exists(path: string): Promise<boolean>

  /** A whole file; TooLarge if it has more than `maxByteLength` bytes. */
  read(path: string, options: { readonly maxByteLength: number }): Promise<Uint8Array>

  /**
   * Fills `view` from `startByte` on. Gives the number of bytes read, which is less than asked for only at the end of
   * the file. A store that can answers at once, without a promise: a view over WASM memory must not wait for long.
   */
  readInto(path: string, startByte: number, view: Uint8Array): number | Promise<number>

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

  /** Lets go of open files. The store can still be used, and opens them again. */
  close(): Promise<void>
}

/** The store of a spec. Touches nothing yet. */
export function openStore(spec: StoreSpec): Store {
  return new LocalStore(spec)
}

/**
 * The spec of the store at a local path or a `file://` URL; a relative path is taken from the working directory.
 * @throws UsageError for anything else
 */
export function storeSpec(pathOrUrl: string): StoreSpec {
  if (typeof pathOrUrl !== 'string' || pathOrUrl === '' || pathOrUrl.includes('\0')) {
    throw new UsageError(`expected the path or URL of a trial, got ${JSON.stringify(pathOrUrl)}`, { pathOrUrl })
  }
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(pathOrUrl)?.[1]?.toLowerCase()
  if (scheme === undefined) return { kind: 'local', root: resolve(pathOrUrl) }
  if (scheme === 's3') throw new UsageError(`${pathOrUrl}: trials on S3 are not supported yet`, { pathOrUrl })
  try {
    if (scheme === 'file') return { kind: 'local', root: resolve(fileURLToPath(pathOrUrl)) }
  } catch (error) {
    throw new UsageError(`expected a file:// URL of this machine, got ${pathOrUrl}`, { pathOrUrl }, error)
  }
  throw new UsageError(`expected a local path or a file:// URL, got ${pathOrUrl}`, { pathOrUrl })
}
