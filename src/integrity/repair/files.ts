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

/** The files of a trial by kind, without those whose paths no disk can have. */
export class SortedFiles extends TrialFiles {
  readonly all: ReadonlySet<string>
  /** The event file that counts for each step and worker. */
  readonly eventsByName = new Map<string, string>()
  /** Files of the trial whose paths no disk can have. The keys of an object store can be anything. */
  readonly unsafe: readonly string[]
  readonly others: readonly string[]

  constructor(paths: readonly string[]) {
    const all = new Set(paths)
    const isSafe = (path: string): boolean => isTemporary(path) || (isPlainPath(path) && !liesInFile(path, all))
    super(paths.filter(isSafe))
    this.all = all
    this.unsafe = paths.filter(path => !isSafe(path) && (isPartOfTrial(path) || isTensorBoardFile(path)))
    const { index, duplicates, events, collections, root, unsafe } = this
    const taken = new Set([...unsafe, ...index, ...duplicates.keys(), ...events, ...collections, ...root])
    this.others = paths.filter(path => !taken.has(path))
    for (const path of events) {
      const { step, worker } = parseEventFileName(path)!
      if (!this.eventDuplicates.has(path)) this.eventsByName.set(nameKey(step, worker), path)
    }
  }

  override get isTornasole(): boolean {
    return new TrialFiles([...this.all]).isTornasole
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
