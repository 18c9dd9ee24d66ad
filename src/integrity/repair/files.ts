/** The files of a trial, sorted by what a copy does with them. */

import type { GlobalStep, Worker } from '../../base/types.js'
import {
  EVENTS_DIRECTORY,
  isPartOfTrial,
  isTemporary,
  isTensorBoardFile,
  parseEventFileName,
} from '../../format/paths.js'
import { TrialFiles } from '../../format/trial-files.js'

/** The files of a trial by kind. */
export interface SortedFiles {
  readonly all: ReadonlySet<string>
  readonly isTornasole: boolean
  /** True for a TensorBoard run: event files without an index. */
  readonly isPlain: boolean
  readonly index: readonly string[]
  readonly superseded: ReadonlySet<string>
  readonly events: readonly string[]
  /** Index files that another one supersedes, each with its successor. The other lists don't contain them. */
  readonly duplicates: ReadonlyMap<string, string>
  /** The event file that counts for each step and worker. */
  readonly eventsByName: ReadonlyMap<string, string>
  readonly collections: readonly string[]
  /** Files in the root: end markers and Tornasole's collections. */
  readonly root: readonly string[]
  /** TensorBoard event files, if these are what is copied. */
  readonly plain: readonly string[]
  /** Files of the trial whose paths no disk can have. The keys of an object store can be anything. */
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

/** True if a part of the path is a file. Keys on S3 allow this; disks don't. */
function liesInFile(path: string, all: ReadonlySet<string>): boolean {
  for (let at = path.lastIndexOf('/'); at > 0; at = path.lastIndexOf('/', at - 1)) {
    const above = path.slice(0, at)
    if (isTemporary(above)) continue
    if (all.has(above) && (isPartOfTrial(above) || isTensorBoardFile(above))) return true
    if (isPartOfTrial(above) && !above.startsWith(`${EVENTS_DIRECTORY}/`)) return true
  }
  return false
}

/** True if a path has no parts like `..` or an empty name. */
export function isPlainPath(path: string): boolean {
  return !/[\\\0]/.test(path) && path.split('/').every(name => name !== '' && name !== '.' && name !== '..')
}

export function nameKey(step: GlobalStep, worker: Worker): string {
  return `${step} ${worker}`
}
