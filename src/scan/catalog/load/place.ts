/** The place of a trial: a directory, or a named file. */

import { basename, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { StoreError } from '../../../base/errors.js'
import { CHECKPOINT_FILES, isCheckpointFile } from '../../../format/checkpoint/formats.js'
import { unreadFormatOf } from '../../../format/checkpoint/unread-formats.js'
import { isFile } from '../../../storage/local/file.js'
import { storeSpec } from '../../../storage/open.js'
import type { PlainStoreSpec } from '../../../storage/store.js'

export interface TrialPlace {
  /** The store of the directory. */
  readonly spec: PlainStoreSpec
  /** The name of the file in it; undefined for the whole directory. */
  readonly file: string | undefined
}

/** @throws UsageError as `storeSpec`; StoreError (`NotADirectory`) for a file that no format with tensors has */
export function placeOf(path: string, options: NonNullable<Parameters<typeof storeSpec>[1]> = {}): TrialPlace {
  const spec = storeSpec(path, options)
  if (spec.kind === 'local') {
    const name = basename(spec.root)
    if (!isFile(spec.root)) return { spec, file: undefined }
    if (!isCheckpointFile(name)) throw noTensors(path, pathToFileURL(spec.root).href)
    // A named link stands for its target.
    return { spec: { ...spec, root: resolve(spec.root, '..'), allowSymlinks: true }, file: name }
  }
  const isNamed = spec.kind === 's3' && spec.only === undefined && !path.trim().endsWith('/')
  if (!isNamed || !isCheckpointFile(spec.prefix.slice(0, -1))) return { spec, file: undefined }
  const at = spec.prefix.lastIndexOf('/', spec.prefix.length - 2) + 1
  return { spec: { ...spec, prefix: spec.prefix.slice(0, at) }, file: spec.prefix.slice(at, -1) }
}

function noTensors(path: string, url: string): StoreError {
  const unread = unreadFormatOf(path)
  const message = `${path.trim()}: expected a directory, or a file of tensors (${CHECKPOINT_FILES}), got ${unread === null ? 'another file' : `one of a format that is not read: ${unread}`}`
  return new StoreError('NotADirectory', message, { url })
}
