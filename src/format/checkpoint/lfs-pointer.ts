/** Git LFS's stand-ins for files, which a clone has where the files themselves were not fetched. */

import { FormatError } from '../../base/errors.js'

const POINTER = 'version https://git-lfs.github.com/spec/'

/** Refuses a pointer of Git LFS. @param head the first bytes of a file @throws FormatError `GitLfsPointer` */
export function expectNoLfsPointer(head: Uint8Array, url: string): void {
  if (head.length < POINTER.length || [...POINTER].some((char, i) => head[i] !== char.charCodeAt(0))) return
  const [expected, got] = ['a checkpoint', 'a pointer of Git LFS']
  const message = `${url}, byte 0: expected ${expected}, got ${got}: the file itself was not fetched: git lfs pull`
  throw new FormatError('GitLfsPointer', message, { url, offset: 0, expected, got })
}
