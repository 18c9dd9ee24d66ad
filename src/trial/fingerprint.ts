/** A digest of a trial's files: equal digests mean that nothing a scan depends on has changed. */

import { createHash } from 'node:crypto'
import { CONFIG, TRAINER_STATE } from '../format/checkpoint/beside.js'
import { indexOfPart, isCheckpointFile } from '../format/checkpoint/formats.js'
import {
  COLLECTIONS_DIRECTORY,
  EVENTS_DIRECTORY,
  INDEX_DIRECTORY,
  isPartOfTrial,
  isTensorBoardFile,
} from '../format/paths.js'
import { expectTrial, stateOf, type Trial } from './trial.js'

const DIRECTORIES = [INDEX_DIRECTORY, EVENTS_DIRECTORY, COLLECTIONS_DIRECTORY]

/**
 * A text that changes with the trial: a digest of its files' names, lengths and modification times, or ETags on S3. Only listings are
 * read. Files that can't be listed count, too.
 * @throws StoreError
 */
export async function trialFingerprint(trial: Trial): Promise<string> {
  expectTrial('trialFingerprint', trial)
  const { access, contents } = stateOf(trial)
  const { store } = access
  const isCovered = contents.checkpointFiles.length > 0 ? isOfCheckpoint : isOfTrial
  const unlisted: string[] = []
  const all = await store.list('', {
    recursive: true,
    onError: (path, error) => unlisted.push(`${error.code} ${path}`),
  })
  const paths = all.filter(isCovered)
  const stamps = await store.stamps(paths)
  const hash = createHash('sha256').update([...paths, '', ...unlisted.sort()].join('\0'))
  return hash.update(new Uint8Array(stamps.buffer, stamps.byteOffset, stamps.byteLength)).digest('hex')
}

/** True if a file can change what a scan of checkpoints returns. */
function isOfCheckpoint(path: string): boolean {
  return (
    [CONFIG, TRAINER_STATE].includes(path.slice(path.lastIndexOf('/') + 1)) ||
    isCheckpointFile(path) ||
    indexOfPart(path) !== null
  )
}

/** True if a file can change what a scan returns. */
function isOfTrial(path: string): boolean {
  return (
    DIRECTORIES.some(directory => path.startsWith(`${directory}/`)) || isPartOfTrial(path) || isTensorBoardFile(path)
  )
}
