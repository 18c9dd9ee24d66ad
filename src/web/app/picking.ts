/** Files and folders that a person picks or drops. */

import type { Picked } from './messages.js'

/** Types that the DOM library lacks. Not every browser has these methods. */
declare global {
  interface DataTransferItem {
    getAsFileSystemHandle?(): Promise<FileSystemFileHandle | FileSystemDirectoryHandle | null>
  }
  var showDirectoryPicker: (() => Promise<FileSystemDirectoryHandle>) | undefined
}

/** The files of an input, which may be those of a folder. Null: there are none. */
export function pickedIn({ files }: HTMLInputElement): Picked | null {
  const all = [...(files ?? [])].map(file => [file.webkitRelativePath || file.name, file] as const)
  return all.length === 0 ? null : { kind: 'files', files: new Map(all) }
}

/** A folder, by the browser's own dialog if it has one that does not ask for an upload. Null: none was chosen, or the field's dialog was opened, whose `change` event has the files. */
export async function pickFolder(field: HTMLInputElement): Promise<Picked | null> {
  if (globalThis.showDirectoryPicker === undefined) {
    field.click()
    return null
  }
  try {
    return { kind: 'folder', folder: await globalThis.showDirectoryPicker() }
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') return null
    throw error
  }
}

/** The folder or the files that were dropped. @throws Error for several folders, or for anything but files */
export async function droppedIn({ items }: DataTransfer): Promise<Picked> {
  const dropped = [...items].filter(({ kind }) => kind === 'file')
  // All items are read at once, because the list is empty after the event.
  const handles = dropped.map(item => item.getAsFileSystemHandle?.())
  const entries = dropped.map(item => item.webkitGetAsEntry())
  const plain = dropped.map(item => item.getAsFile())
  const [handle] = await Promise.all(handles)
  if (dropped.length === 1 && handle?.kind === 'directory') return { kind: 'folder', folder: handle }
  const folders = entries.filter(entry => entry?.isDirectory)
  if (dropped.length === 0) throw new Error('What was dropped is neither a file nor a folder.')
  if (folders.length > 0 && dropped.length > 1)
    throw new Error('Drop one folder, or files: several folders are several trials.')
  const files = new Map<string, File>()
  for (const [i, entry] of entries.entries()) {
    if (entry?.isDirectory) await addAll(entry as FileSystemDirectoryEntry, files)
    else if (plain[i] != null) files.set(plain[i].name, plain[i])
  }
  if (files.size === 0) throw new Error('The folder is empty.')
  return { kind: 'files', files }
}

/** Adds the files of a folder by their paths, which begin with its name. */
async function addAll(folder: FileSystemDirectoryEntry, files: Map<string, File>): Promise<void> {
  const reader = folder.createReader()
  for (;;) {
    // Each call returns some entries, and none at the end.
    const entries = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject))
    if (entries.length === 0) return
    for (const entry of entries) {
      if (entry.isDirectory) await addAll(entry as FileSystemDirectoryEntry, files)
      else {
        const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject))
        files.set(entry.fullPath.slice(1), file)
      }
    }
  }
}
