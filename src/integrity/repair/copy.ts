/** The list of a trial's files, and an incremental copy of them on disk. */

import { join, posix } from 'node:path'
import { StoreError, UsageError } from '../../base/errors.js'
import { checkOptions, kinds, optionsOf } from '../../base/options.js'
import { END_MARKERS, INDEX_DIRECTORY } from '../../format/paths.js'
import { type OutputFile, writeWhole } from '../../storage/local/output.js'
import { openStore, storeSpec } from '../../storage/open.js'
import { S3_OPTIONS } from '../../storage/s3/options.js'
import type { S3Options } from '../../storage/s3/spec.js'
import type { Store } from '../../storage/store.js'

export interface TrialFilesOptions {
  /** Follow symbolic links out of the trial's directory. Default: they are refused. */
  readonly allowSymlinks?: boolean
  /** Region, endpoint, credentials and limits for S3. See docs/s3.md. */
  readonly s3?: S3Options | undefined
}

export interface CopyOptions extends TrialFilesOptions {
  /** Ends the copy after the current file. */
  readonly signal?: AbortSignal
  /** Called with each file that was copied. */
  readonly onFile?: (file: TrialFile) => void
}

/** A file of a trial. */
export interface TrialFile {
  /** Relative to the trial, with `/`. */
  readonly path: string
  readonly byteLength: number
  /** The modification time, in milliseconds since 1970. */
  readonly modifiedMs: number
}

export interface TrialCopy {
  readonly copied: number
  readonly copiedBytes: number
  /** The number of files that were up to date. */
  readonly kept: number
}

const FILES_KINDS = { allowSymlinks: kinds.flag, s3: S3_OPTIONS }
const FILES_OPTIONS = optionsOf<TrialFilesOptions>(FILES_KINDS)
const COPY_OPTIONS = optionsOf<CopyOptions>({
  ...FILES_KINDS,
  signal: kinds.that('an AbortSignal', given => given instanceof AbortSignal),
  onFile: kinds.callback(),
})

/** The size of the pieces in which a file is copied, in bytes. */
const PIECE_BYTES = 8 << 20

/**
 * Lists all files below a place, including those that are no part of a trial.
 * @param path a local directory, its `file://` URL, or `s3://bucket/prefix`
 * @throws StoreError; UsageError
 */
export async function trialFiles(path: string, options?: TrialFilesOptions): Promise<TrialFile[]> {
  const store = storeOf(path, checkOptions('trialFiles', FILES_OPTIONS, options))
  try {
    return await filesIn(store)
  } finally {
    await store.close()
  }
}

/**
 * Copies the files of a trial into a directory if they are missing there, differ in length, or are newer than their copy. Index files
 * follow the event files that they name, and the end marker comes last, so that an interrupted copy is a trial that is still running.
 * @param path a local directory, its `file://` URL, or `s3://bucket/prefix`
 * @param directory the destination; it is created if needed
 * @throws StoreError; UsageError
 */
export async function copyTrial(path: string, directory: string, options?: CopyOptions): Promise<TrialCopy> {
  const { signal, onFile, ...given } = checkOptions('copyTrial', COPY_OPTIONS, options)
  if (typeof directory !== 'string' || directory === '' || /^[a-z][a-z0-9+]+:/i.test(directory)) {
    throw new UsageError(`copyTrial: expected a directory to copy to, got ${JSON.stringify(directory)}`, { directory })
  }
  const store = storeOf(path, given)
  const copies = openStore(storeSpec(directory))
  try {
    const files = (await filesIn(store)).sort((a, b) => rankOf(a.path) - rankOf(b.path))
    const stamps = await copies.stamps(files.map(file => file.path))
    let [copied, copiedBytes] = [0, 0]
    for (const [i, file] of files.entries()) {
      const [byteLength, modifiedMs] = [stamps[3 * i]!, stamps[3 * i + 1]!]
      if (byteLength === file.byteLength && modifiedMs >= file.modifiedMs) continue
      signal?.throwIfAborted()
      expectNoLink(copies, directory, file.path)
      await copyFile(store, file, join(directory, file.path))
      copied++
      copiedBytes += file.byteLength
      onFile?.(file)
    }
    return { copied, copiedBytes, kept: files.length - copied }
  } finally {
    await Promise.all([store.close(), copies.close()])
  }
}

function storeOf(path: string, { allowSymlinks = false, s3 }: TrialFilesOptions): Store {
  return openStore(storeSpec(path, { allowSymlinks, s3 }))
}

async function filesIn(store: Store): Promise<TrialFile[]> {
  await store.open()
  const paths = (await store.list('', { recursive: true })).filter(isInside)
  const stamps = await store.stamps(paths)
  const files = paths.map((path, i) => ({ path, byteLength: stamps[3 * i]!, modifiedMs: stamps[3 * i + 1]! }))
  // A file that was deleted after the listing has no length.
  return files.filter(({ byteLength }) => !Number.isNaN(byteLength))
}

/** False for S3 keys that would lead out of the directory. */
function isInside(path: string): boolean {
  return !path.includes('\\') && path.split('/').every(part => part !== '' && part !== '.' && part !== '..')
}

/** A file's rank in the order of copying. */
function rankOf(path: string): number {
  if (END_MARKERS.includes(path)) return 2
  return path.startsWith(`${INDEX_DIRECTORY}/`) ? 1 : 0
}

/** Refuses to write through a link that leads out of the directory. @throws StoreError */
function expectNoLink(copies: Store, directory: string, path: string): void {
  const parents = posix.dirname(path).split('/')
  for (let depth = 1; depth <= parents.length; depth++) {
    const parent = parents.slice(0, depth).join('/')
    let [real, wanted] = ['', '']
    try {
      real = copies.realPath!(parent)
      wanted = join(copies.realPath!(''), parent)
    } catch {
      // The path does not exist yet.
      return
    }
    if (parent !== '.' && real !== wanted) {
      const url = copies.url(path)
      throw new StoreError('Denied', `cannot write ${join(directory, path)}: a symbolic link leads to ${real}`, { url })
    }
  }
}

async function copyFile(store: Store, { path, byteLength }: TrialFile, target: string): Promise<void> {
  const work = async (file: OutputFile): Promise<void> => {
    for (let at = 0; at < byteLength; ) {
      const piece = new Uint8Array(Math.min(PIECE_BYTES, byteLength - at))
      const got = await store.readInto(path, at, piece)
      if (got === 0) break
      await file.write(got < piece.length ? piece.subarray(0, got) : piece)
      at += got
    }
  }
  await writeWhole(target, work, { makesDirectory: true })
}
