/** The index cache of a page, which has none, since a page has no files: `createTrial` takes no `indexCache` here. */

import { UsageError } from '../base/errors.js'

function noDisk(): never {
  throw new UsageError('expected no file to be written or read, since a page has none')
}

export const readFileIfThere: () => never = noDisk
export const isFile: () => never = noDisk
export const placeInDirectory: () => never = noDisk
export const writeAtOnce: () => never = noDisk
export const encodeIndexCache: () => never = noDisk
export const decodeIndexCache: () => never = noDisk
/** Fails: repair writes files, so no job of a page copies records. */
export const copyRecords: () => never = noDisk
export const stampAt: () => never = noDisk
/** Does nothing: a page has no CRC-32, so the checksums of archives are not verified there. */
export const checkArchives: () => Promise<void> = () => Promise.resolve()
export const indexStamps: () => never = noDisk
