/** Jobs that read index files, and their replies. */

import type { ErrorData } from '../../base/errors.js'
import { MODES } from '../../base/types.js'
import type { IndexFile, Listed } from '../../format/index-file.js'
import { eventFilePath, parseIndexFileName } from '../../format/paths.js'
import type { StoreSpec } from '../../storage/store.js'
import type { AnyReply } from './reply.js'

/** The largest index file that is read, in bytes. */
export const MAX_INDEX_BYTES = 256 << 20
/** The number of index files that one job reads. */
export const INDEX_FILES_PER_JOB = 512
/** The number of index files from which threads pay off: a file takes about 10 µs, starting threads about 60 ms. */
export const MANY_INDEX_FILES = 1024

/** A job that reads and parses index files. */
export interface IndexJob {
  readonly kind: 'index'
  readonly store: StoreSpec
  readonly paths: readonly string[]
  /** True to read the mode from the event file if Tornasole's index file lacks it; otherwise it is GLOBAL. Default: true. */
  readonly readsModes?: boolean
}

/** The files in columns, in the order of the paths. Passing objects would take longer than reading the files. */
export interface IndexReply extends AnyReply {
  readonly kind: 'index'
  /** The mode, as an index into MODES. */
  readonly mode: Uint8Array
  readonly modeStep: Float64Array
  /** The index of each file's list in `lists`; -1 if the file can't be read. */
  readonly list: Int32Array
  readonly lists: readonly Listed[]
  /** The event file by file, if it does not have the hook's name. */
  readonly eventFiles: ReadonlyMap<number, string | null>
  /** The error of each unreadable file. */
  readonly errors: ReadonlyMap<number, ErrorData>
}

/** The content of an index file in a reply. */
export interface ReadIndexFile extends Pick<IndexFile, 'mode' | 'modeStep'> {
  /** The event file; undefined for the one with the hook's name. */
  readonly eventFile: string | null | undefined
  /** The list of tensors; one object for all files of a reply with equal lists. */
  readonly listed: Listed
}

/** The files of a reply, one by one. */
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

/** The event file that the hook writes beside an index file; null if the path is not an index file's. */
export function usualEventFile(path: string): string | null {
  const name = parseIndexFileName(path)
  return name && eventFilePath(name.step, name.worker)
}
