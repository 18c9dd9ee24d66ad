/** Index files: which to read, and what they say. */

import type { ErrorData } from '../../base/errors.js'
import { MODES } from '../../base/types.js'
import type { IndexFile, Listed } from '../../format/index-file.js'
import { eventFilePath, parseIndexFileName } from '../../format/paths.js'
import type { StoreSpec } from '../../storage/store.js'
import type { AnyReply } from './reply.js'

/** A longer index file is not read. */
export const MAX_INDEX_BYTES = 256 << 20
/** Index files that one job reads. */
export const INDEX_FILES_PER_JOB = 512
/** The number of index files from which threads pay: a file takes about 10 µs, starting threads some 60 ms. */
export const MANY_INDEX_FILES = 1024

/** Read and parse index files. */
export interface IndexJob {
  readonly kind: 'index'
  readonly store: StoreSpec
  readonly paths: readonly string[]
  /** True to read the mode from the event file where Tornasole's index file lacks it; otherwise it is GLOBAL. Default: true. */
  readonly readsModes?: boolean
}

/** In columns: a number a file, in the order of the paths. Objects for each would take longer to hand over than to read. */
export interface IndexReply extends AnyReply {
  readonly kind: 'index'
  /** The mode, as its place in MODES. */
  readonly mode: Uint8Array
  readonly modeStep: Float64Array
  /** The index of each file's list in `lists`; -1 if the file can't be read. */
  readonly list: Int32Array
  readonly lists: readonly Listed[]
  /** By file: the event file, where it is not the one that the hook writes. */
  readonly eventFiles: ReadonlyMap<number, string | null>
  /** By file: why it can't be read. */
  readonly errors: ReadonlyMap<number, ErrorData>
}

/** The content of an index file, as a reply has it. */
export interface ReadIndexFile extends Pick<IndexFile, 'mode' | 'modeStep'> {
  /** Undefined: the one that the hook writes. */
  readonly eventFile: string | null | undefined
  /** The list of tensors; one object for all files of a reply with equal lists. */
  readonly listed: Listed
}

/** File by file. */
export function filesOf({
  mode,
  modeStep,
  list,
  lists,
  eventFiles,
  errors,
}: IndexReply): (ReadIndexFile | ErrorData)[] {
  return Array.from(
    list,
    (number, i) =>
      errors.get(i) ?? {
        mode: MODES[mode[i]!]!,
        modeStep: modeStep[i]!,
        eventFile: eventFiles.get(i),
        listed: lists[number]!,
      },
  )
}

/** The index file with the name of its event file. @param path the path of the index file */
export function indexFileOf({ mode, modeStep, eventFile, listed }: ReadIndexFile, path: string): IndexFile {
  return { mode, modeStep, eventFile: eventFile === undefined ? usualEventFile(path)! : eventFile, ...listed }
}

/** The event file that the hook writes beside an index file; null: by its name, it is none. */
export function usualEventFile(path: string): string | null {
  const name = parseIndexFileName(path)
  return name && eventFilePath(name.step, name.worker)
}
