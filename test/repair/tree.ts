/** Directories as values. */

import { createHash } from 'node:crypto'
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'

/** By path what is in a directory: files by their hash, links by where they lead; empty if there is none. */
export function contentsOf(dir: string): Record<string, string> {
  const stats = lstatSync(dir, { throwIfNoEntry: false })
  if (stats === undefined) return {}
  const entries = readdirSync(dir, { recursive: true, encoding: 'utf8' }).sort()
  return Object.fromEntries(entries.map(path => [path, contentOf(join(dir, path))]))
}

function contentOf(path: string): string {
  const stats = lstatSync(path)
  if (stats.isSymbolicLink()) return `-> ${readlinkSync(path)}`
  if (!stats.isFile()) return 'directory'
  if ((stats.mode & 0o400) === 0) return `unreadable, ${stats.size} bytes`
  return createHash('sha256').update(readFileSync(path)).digest('hex')
}
