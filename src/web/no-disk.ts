/** A page has no files of its own: stands in the place of what keeps the index cache. `createTrial` takes no `indexCache` here. */

import { UsageError } from '../base/errors.js'

function noDisk(): never {
  throw new UsageError('expected no file to be written or read, since a page has none')
}

export const readFileIfThere: () => never = noDisk
export const isFile: () => never = noDisk
export const placeInDirectory: () => never = noDisk
export const writeAsideSync: () => never = noDisk
export const encodeIndexCache: () => never = noDisk
export const decodeIndexCache: () => never = noDisk
/** Repair writes files, so no job of a page copies records. */
export const copyRecords: () => never = noDisk
export const stampAt: () => never = noDisk
/** A page has no CRC-32: checksums of archives are not checked there. */
export const checkArchive: () => Promise<void> = () => Promise.resolve()
export const STAMP_LENGTH = 3
export const indexStamps: () => never = noDisk
