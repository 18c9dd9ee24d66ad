/** Files that options name. */

import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { StoreError } from '../index.js'

/**
 * The bytes of a file.
 * @param option as it is written, for messages; none: the path says enough
 * @throws StoreError
 */
export async function readInputFile(path: string, option?: string): Promise<Uint8Array> {
  const url = pathToFileURL(resolve(path)).href
  try {
    return await readFile(path)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const file = option === undefined ? path : `${option} ${path}`
    if (code === 'ENOENT') throw new StoreError('NotFound', `${file}: no such file`, { url }, error)
    if (code === 'EISDIR') throw new StoreError('NotAFile', `${file}: expected a file, got a directory`, { url }, error)
    if (code === 'EACCES') throw new StoreError('Denied', `${file}: permission denied`, { url }, error)
    throw new StoreError('Unavailable', `${file}: ${message}`, { url }, error)
  }
}
