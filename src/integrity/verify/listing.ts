/** The listing of a trial's directory, and the problems that it shows by itself. */

import { StoreError } from '../../base/errors.js'
import {
  COLLECTIONS_DIRECTORY,
  END_MARKERS,
  EVENTS_DIRECTORY,
  INDEX_DIRECTORY,
  isPartOfTrial,
  isTemporary,
  parseEventFileName,
  parseIndexFileName,
} from '../../format/paths.js'
import { describeDuplicate, isPartDirectory, TrialFiles } from '../../format/trial-files.js'
import { listPlain, noTrial } from '../../scan/catalog/load/no-trial.js'
import { isCheckpointPlace } from '../../scan/catalog/load/place.js'
import { isRemote, type Store } from '../../storage/store.js'
import type { Findings } from './findings.js'

/** A trial's files. */
export interface ListedTrial {
  readonly files: TrialFiles
  /** Event files: smdebug's, or TensorBoard's where there are no others. */
  readonly events: readonly string[]
  readonly root: ReadonlySet<string>
  /** Parts of the trial that could not be listed, or not all of them: what is not among them may be there. */
  readonly unlisted: ReadonlySet<string>
}

/**
 * Lists a trial, and tells what is wrong with it as far as that can be seen from the names of its files.
 * @returns null: it holds checkpoints
 * @throws StoreError if nothing of it can be listed, MissingCollectionFiles if there is no trial
 */
export async function listTrial(store: Store, findings: Findings): Promise<ListedTrial | null> {
  const { paths, root, unlisted, failure } = await listFiles(store, findings)
  const files = new TrialFiles(paths)
  const { ended, isPlain } = files
  await checkEndMarkers(store, findings)
  const everything = isPlain ? await listPlain(store) : []
  if (isPlain && isCheckpointPlace(everything)) return null
  const events = isPlain ? new TrialFiles(everything).plainEvents : files.events
  if (isPlain && failure) throw failure
  if (isPlain && events.length === 0) throw await noTrial(store, everything)
  checkTemporaries(files, paths, findings)
  for (const file of files.ofNoStep) {
    const expected = 'a file of a step from 0 to 2^53 - 1'
    findings.problem({ code: 'BadStep', file, expected, found: 'its name', lost: 'what is in it: nobody reads it' })
  }
  if (!ended && !isPlain) {
    const expected = `${END_MARKERS[0]}, which a job leaves when it ends`
    findings.note({ code: 'NoEndMarker', file: '', expected, found: 'none: the job still runs, or was stopped' })
  }
  return { files, events, root, unlisted }
}

/** Lists the directories. One that can't be listed is a problem; if none can, there is no trial. */
async function listFiles(store: Store, findings: Findings) {
  const errors = new Map<string, StoreError>()
  const unlisted = new Set<string>()
  const onError = (path: string, error: StoreError): void => {
    if (error.code !== 'NotAFile' && error.code !== 'NotFound') {
      if (!path.includes('/')) return
      unlisted.add(path.split('/', 1)[0]!)
      findings.unreadable(error, path, 'all files in it')
    } else if (isPartDirectory(path)) findings.unreadable(error, path, 'all files in it')
    else if (isPartOfTrial(path)) findings.odd.set(path, error.toJSON())
  }
  // In the root, only what is read as a file is missed.
  const expects = (path: string): boolean => path.includes('/') && !isTemporary(path) && isPartOfTrial(path)
  const list = async (directory: string, recursive: boolean): Promise<string[]> => {
    try {
      return await store.list(directory, { recursive, expects, onError })
    } catch (error) {
      // What a server doesn't tell is no fault of the trial.
      if (!(error instanceof StoreError) || isRemote(store)) throw error
      errors.set(directory, error)
      unlisted.add(directory)
      findings.unreadable(error, directory, 'all files in it')
      return []
    }
  }
  const root = await list('', false)
  const [unlistedRoot] = errors.values()
  if (unlistedRoot) throw unlistedRoot
  // In this order: of a job that runs, the index files of all these but the last are then there.
  const events = await list(EVENTS_DIRECTORY, true)
  const index = await list(INDEX_DIRECTORY, true)
  const collections = await list(COLLECTIONS_DIRECTORY, true)
  const [failure] = errors.values()
  if (failure && errors.size === 3) throw failure
  return { paths: [...root, ...collections, ...index, ...events], root: new Set(root), failure, unlisted }
}

/** One that is there and can't be looked at keeps readers from opening the trial. */
async function checkEndMarkers(store: Store, findings: Findings): Promise<void> {
  for (const marker of END_MARKERS) {
    try {
      if (await store.exists(marker)) await store.byteLength(marker)
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      findings.unreadable(error, marker, 'whether the job has ended')
    }
  }
}

function checkTemporaries({ temporaries, ended }: TrialFiles, paths: readonly string[], findings: Findings): void {
  if (temporaries.length === 0) return
  const existing = new Set(paths)
  for (const file of temporaries) {
    const final = file.slice(0, -'.tmp'.length)
    const found = 'a file that is still called temporary'
    if (ended && !existing.has(final)) {
      const expected = 'all files closed, since the job has ended'
      findings.problem({ code: 'LeftoverTemporary', file, expected, found, lost: `what was to be in ${final}` })
    } else {
      findings.note({ code: 'TemporaryFile', file, expected: `${final}, once it is whole`, found })
    }
  }
}

/** @param duplicates files beside which another one counts, and that one */
export function checkDuplicates(duplicates: ReadonlyMap<string, string>, findings: Findings): void {
  for (const [file, taken] of duplicates) {
    const { step } = (parseIndexFileName(file) ?? parseEventFileName(file))!
    const { expected, got } = describeDuplicate(file, taken)
    const lost = 'what is in it: nobody reads it'
    findings.problem({ code: 'DuplicateFile', file, step, expected, found: got, lost })
  }
}
