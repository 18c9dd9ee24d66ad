/** The files of a trial, and which of them a copy can have. */

import type { GlobalStep, Worker } from '../../base/types.js'
import {
  EVENTS_DIRECTORY,
  isPartOfTrial,
  isTemporary,
  isTensorBoardFile,
  parseEventFileName,
} from '../../format/paths.js'
import { TrialFiles } from '../../format/trial-files.js'

/** The files of a trial, and what becomes of them. */
export interface SortedFiles {
  readonly all: ReadonlySet<string>
  readonly isTornasole: boolean
  /** True for a TensorBoard run: event files without an index. */
  readonly isPlain: boolean
  readonly index: readonly string[]
  readonly superseded: ReadonlySet<string>
  readonly events: readonly string[]
  /** Index files beside which another counts, and that one. They are none of the others. */
  readonly duplicates: ReadonlyMap<string, string>
  /** The event file of a step and worker that counts. */
  readonly eventsByName: ReadonlyMap<string, string>
  readonly collections: readonly string[]
  /** In the root: end markers, and the collections of Tornasole. */
  readonly root: readonly string[]
  /** TensorBoard's event files, where they are what is copied. */
  readonly plain: readonly string[]
  /** The files that would belong to the trial but for their paths, which no disk could have. A store's keys can be anything. */
  readonly unsafe: readonly string[]
  readonly others: readonly string[]
}

export function sortFiles(paths: readonly string[]): SortedFiles {
  const all = new Set(paths)
  const isSafe = (path: string): boolean => isTemporary(path) || (isPlainPath(path) && !liesInFile(path, all))
  const files = new TrialFiles(paths.filter(isSafe))
  const { isPlain, index, superseded, events, duplicates, eventDuplicates, collections, root } = files
  const unsafe = paths.filter(path => !isSafe(path) && (isPartOfTrial(path) || isTensorBoardFile(path)))
  const taken = new Set([...unsafe, ...index, ...duplicates.keys(), ...events, ...collections, ...root])
  const others = paths.filter(path => !taken.has(path))
  const eventsByName = new Map<string, string>()
  for (const path of events) {
    const { step, worker } = parseEventFileName(path)!
    if (!eventDuplicates.has(path)) eventsByName.set(nameKey(step, worker), path)
  }
  const { isTornasole } = new TrialFiles(paths)
  const plain = isPlain ? files.plainEvents : []
  return {
    all,
    isTornasole,
    isPlain,
    index,
    superseded,
    events,
    duplicates,
    eventsByName,
    collections,
    root,
    plain,
    unsafe,
    others,
  }
}

/** True if a path leads through a file. On S3 a key can; on a disk none does. */
function liesInFile(path: string, all: ReadonlySet<string>): boolean {
  for (let at = path.lastIndexOf('/'); at > 0; at = path.lastIndexOf('/', at - 1)) {
    const above = path.slice(0, at)
    if (isTemporary(above)) continue
    if (all.has(above) && (isPartOfTrial(above) || isTensorBoardFile(above))) return true
    if (isPartOfTrial(above) && !above.startsWith(`${EVENTS_DIRECTORY}/`)) return true
  }
  return false
}

/** True if a path only leads down, from directory to directory. */
export function isPlainPath(path: string): boolean {
  return !/[\\\0]/.test(path) && path.split('/').every(name => name !== '' && name !== '.' && name !== '..')
}

export function nameKey(step: GlobalStep, worker: Worker): string {
  return `${step} ${worker}`
}
