/** Real paths on the local disk, and what lies in which directory. */

import { realpath } from 'node:fs/promises'
import { basename, dirname, join, resolve, sep } from 'node:path'

/** The real path of a file or directory that may not exist yet. */
export async function realPath(path: string): Promise<string> {
  const absolute = resolve(path)
  const parent = dirname(absolute)
  return realpath(absolute).catch(async () =>
    parent === absolute ? absolute : join(await realPath(parent), basename(absolute)),
  )
}

/** True if an absolute path is a directory or lies below it. */
export function isInside(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory.endsWith(sep) ? directory : directory + sep)
}

/** True if an absolute path leads through a real directory, even if a link in it leads out again. */
export async function passesThrough(path: string, directory: string): Promise<boolean> {
  for (let at = path; at !== dirname(at); at = dirname(at)) if (isInside(await realPath(at), directory)) return true
  return false
}
