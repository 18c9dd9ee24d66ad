/** The files in a place that was picked, and the trials among them. */

import { isCheckpointFile } from '../../format/checkpoint/formats.js'
import { stepOf } from '../../format/checkpoint/layout.js'
import { COLLECTIONS_DIRECTORY, EVENTS_DIRECTORY, INDEX_DIRECTORY, isTensorBoardFile } from '../../format/paths.js'
import type { Picked } from './messages.js'

/** A place is listed up to here. */
const MAX_FILES = 10_000

const PARTS: readonly string[] = [INDEX_DIRECTORY, EVENTS_DIRECTORY, COLLECTIONS_DIRECTORY]

/** The paths of the files in a place, without its own name. Behind a URL there are none to be seen. */
export async function pathsOf(picked: Picked): Promise<string[]> {
  if (picked.kind === 'url') return []
  if (picked.kind === 'files') return [...picked.files.keys()].map(path => path.replace(/^[^/]*\//, ''))
  const paths: string[] = []
  const walk = async (folder: FileSystemDirectoryHandle, prefix: string): Promise<void> => {
    for await (const [name, entry] of folder.entries()) {
      if (paths.length >= MAX_FILES) return
      if (entry.kind === 'file') paths.push(prefix + name)
      else await walk(entry as FileSystemDirectoryHandle, `${prefix}${name}/`)
    }
  }
  await walk(picked.folder, '')
  return paths.sort()
}

/** The directories that can be opened, by the names of the files in them. */
export function trialsAmong(paths: readonly string[]): string[] {
  const directories = new Set<string>()
  for (const path of paths) {
    const names = path.split('/')
    const part = names.findIndex(name => PARTS.includes(name))
    if (part > 0 && part < names.length - 1) directories.add(names.slice(0, part).join('/'))
    else if (part < 0 && (isCheckpointFile(path) || isTensorBoardFile(path))) {
      const step = names.findIndex((name, i) => i < names.length - 1 && stepOf(name) !== null)
      directories.add(names.slice(0, step < 0 ? -1 : step).join('/'))
    }
  }
  return [...directories].filter(place => place !== '').sort()
}

/** A directory of a place, as a place of its own. */
export async function within(picked: Picked, directory: string): Promise<Picked> {
  if (picked.kind === 'folder') {
    let { folder } = picked
    for (const name of directory.split('/')) folder = await folder.getDirectoryHandle(name)
    return { kind: 'folder', folder }
  }
  if (picked.kind === 'url') return picked
  const name = directory.slice(directory.lastIndexOf('/') + 1)
  const files = [...picked.files].flatMap(([path, file]) => {
    const inside = path.replace(/^[^/]*\//, '')
    return inside.startsWith(`${directory}/`) ? [[name + inside.slice(directory.length), file] as const] : []
  })
  return { kind: 'files', files: new Map(files) }
}
