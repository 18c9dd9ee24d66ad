/** The kind of a place, decided by the names of its files: one table for every command. */

import { CHECKPOINT_FILES, indexOfPart, isCheckpointFile } from './checkpoint/formats.js'
import { stepOf, workerOfDirectory } from './checkpoint/layout.js'
import { COLLECTIONS_DIRECTORY, EVENTS_DIRECTORY, INDEX_DIRECTORY, isTemporary, isTensorBoardFile } from './paths.js'
import { TrialFiles } from './trial-files.js'

/** Tornasole's trials are of the kind of smdebug's. */
export type PlaceKind = 'smdebug' | 'checkpoint' | 'TensorBoard'

interface Kind {
  readonly kind: PlaceKind
  /** Its files, for messages. */
  readonly files: string
  /** True if files of a place are of this kind, and of none before it. */
  readonly isOf: (paths: readonly string[]) => boolean
}

/** The kinds in the order in which they are tried. */
const KINDS: readonly Kind[] = [
  {
    kind: 'smdebug',
    // Tornasole's have no index; some trials have lost theirs.
    files: `files under ${COLLECTIONS_DIRECTORY}/ and ${INDEX_DIRECTORY}/`,
    isOf: paths => !new TrialFiles(paths).isPlain,
  },
  {
    kind: 'checkpoint',
    files: `checkpoints (${CHECKPOINT_FILES})`,
    // Trainings that save checkpoints log for TensorBoard in a directory beside them.
    isOf: paths =>
      paths.some(path => isCheckpointFile(path) || indexOfPart(path) !== null) &&
      !paths.some(path => !path.includes('/') && isTensorBoardFile(path)),
  },
  {
    kind: 'TensorBoard',
    files: 'event files',
    isOf: paths => paths.some(path => !isTemporary(path) && isTensorBoardFile(path)),
  },
]

/** The kind of a place; null if it is no trial. @param paths of all its files, or of those that decide */
export function kindOfPlace(paths: readonly string[]): PlaceKind | null {
  return KINDS.find(({ isOf }) => isOf(paths))?.kind ?? null
}

/** The files that make a place a trial, for messages. */
export function filesOfKinds(): string {
  const [trials, checkpoints, runs] = KINDS.map(({ files }) => files)
  return `${trials}, ${runs}, or ${checkpoints}`
}

/**
 * The first impression of a directory by the names of those in it: that of a trial of smdebug or Tornasole, or of checkpoints, if
 * `part`, the directory of a step or a worker, has files of them.
 */
export function kindOfFolders(folders: readonly string[]): {
  readonly isTrial: boolean
  readonly part: string | undefined
} {
  return {
    isTrial: [INDEX_DIRECTORY, EVENTS_DIRECTORY, COLLECTIONS_DIRECTORY].some(part => folders.includes(part)),
    part: folders.find(name => !name.startsWith('.') && (stepOf(name) !== null || workerOfDirectory(name) !== null)),
  }
}
