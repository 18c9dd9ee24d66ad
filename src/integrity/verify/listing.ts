/** Lists the files of a trial, and reports problems that their names show. */

import { quote, StoreError } from '../../base/errors.js'
import { counted } from '../../base/number-text.js'
import { checkpointFilesAmong } from '../../format/checkpoint/formats.js'
import {
  COLLECTIONS_DIRECTORY,
  END_MARKERS,
  EVENTS_DIRECTORY,
  INDEX_DIRECTORY,
  isPartOfTrial,
  isTemporary,
  isTensorBoardFile,
  parseEventFileName,
  parseIndexFileName,
} from '../../format/paths.js'
import { kindOfPlace, type PlaceKind } from '../../format/place-kind.js'
import { describeDuplicate, isPartDirectory, TrialFiles } from '../../format/trial-files.js'
import { listPlain, noTrial } from '../../scan/catalog/load/no-trial.js'
import { isRemote, type Store } from '../../storage/store.js'
import type { Findings } from './findings.js'

/** A trial's files. */
export interface ListedTrial {
  readonly files: TrialFiles
  /** The event files: smdebug's, or TensorBoard's if there are no others. */
  readonly events: readonly string[]
  readonly root: ReadonlySet<string>
  /** Directories that could not be listed completely: a file that is not listed may still exist. */
  readonly unlisted: ReadonlySet<string>
}

/**
 * Lists the files of a trial, and reports the problems that their names show.
 * @returns null for checkpoints
 * @throws StoreError if nothing can be listed, MissingCollectionFiles if there is no trial
 */
export async function listTrial(store: Store, findings: Findings): Promise<ListedTrial | null> {
  const { paths, root, unlisted, failure } = await listFiles(store, findings)
  const files = new TrialFiles(paths)
  const { ended, isPlain } = files
  await checkEndMarkers(store, findings)
  const everything = isPlain ? await listPlain(store) : []
  const kind = isPlain ? kindOfPlace(everything) : 'smdebug'
  noteOthers(kind, isPlain ? everything : paths, findings)
  if (kind === 'checkpoint') return null
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

/** Notes what is of another kind than the place, and is not read: checkpoints beside event files, and event files beside checkpoints. */
function noteOthers(kind: PlaceKind | null, paths: readonly string[], findings: Findings): void {
  const isOfCheckpoints = kind === 'checkpoint'
  const others = isOfCheckpoints
    ? paths.filter(path => !isTemporary(path) && isTensorBoardFile(path))
    : checkpointFilesAmong(paths)
  const [first] = others
  if (kind === null || first === undefined) return
  const [read, unread] = isOfCheckpoints ? ['checkpoints', 'event file'] : ['event files', 'checkpoint file']
  const named = quote(topOf(first))
  const apart = isOfCheckpoints ? '' : ', or move the event files into a directory of their own'
  const advice =
    new Set(others.map(topOf)).size === 1 ? `${named} by itself` : `each by itself, such as ${named}${apart}`
  const found = `${counted(others.length, unread)} beside them, such as ${quote(first)}, not read: verify ${advice}`
  findings.note({ code: 'NotRead', file: '', expected: `${read} alone, which are read`, found })
}

/** The first part of a path: what a user can name to verify it alone. */
function topOf(path: string): string {
  const at = path.indexOf('/')
  return at < 0 ? path : path.slice(0, at)
}

/** Lists the directories. One that can't be listed is a problem; if none can be, there is no trial. */
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
  // In the root, only files that are read are reported as missing.
  const expects = (path: string): boolean => path.includes('/') && !isTemporary(path) && isPartOfTrial(path)
  const list = async (directory: string, recursive: boolean): Promise<string[]> => {
    try {
      return await store.list(directory, { recursive, expects, onError })
    } catch (error) {
      // A remote listing that fails is no fault of the trial.
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
  // Event files are listed first: in a running job, all but the last then have their index file.
  const events = await list(EVENTS_DIRECTORY, true)
  const index = await list(INDEX_DIRECTORY, true)
  const collections = await list(COLLECTIONS_DIRECTORY, true)
  const [failure] = errors.values()
  if (failure && errors.size === 3) throw failure
  return { paths: [...root, ...collections, ...index, ...events], root: new Set(root), failure, unlisted }
}

/** Reports an end marker that exists but can't be read, since it keeps readers from opening the trial. */
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

/** @param duplicates superseded files, each with the file that counts */
export function checkDuplicates(duplicates: ReadonlyMap<string, string>, findings: Findings): void {
  for (const [file, taken] of duplicates) {
    const { step } = (parseIndexFileName(file) ?? parseEventFileName(file))!
    const { expected, got } = describeDuplicate(file, taken)
    const lost = 'what is in it: nobody reads it'
    findings.problem({ code: 'DuplicateFile', file, step, expected, found: got, lost })
  }
}
