/** Writes a clean copy of a trial: what is intact is copied, the rest is left out and reported. */

import { MissingCollectionFiles, type StoreError, TrialscanError, UsageError } from '../../base/errors.js'
import { checkOptions, kinds, optionsOf } from '../../base/options.js'
import {
  COLLECTIONS_DIRECTORY,
  END_MARKERS,
  EVENTS_DIRECTORY,
  INDEX_DIRECTORY,
  isPartOfTrial,
  isTemporary,
  isTensorBoardFile,
  TORNASOLE_COLLECTIONS_FILE,
} from '../../format/paths.js'
import { kindOfPlace } from '../../format/place-kind.js'
import { parseTornasoleCollections } from '../../format/tornasole.js'
import { describeDuplicate, isPartDirectory } from '../../format/trial-files.js'
import { listEverything, noTrial } from '../../scan/catalog/load/no-trial.js'
import { MAX_INDEX_BYTES } from '../../scan/job/index-job.js'
import { Access, WORK_OPTIONS, type WorkOptions } from '../../scan/runner/access.js'
import { OutputDirectory } from '../../storage/local/output-directory.js'
import { openStore, storeSpec } from '../../storage/open.js'
import { S3_OPTIONS } from '../../storage/s3/options.js'
import type { S3Options } from '../../storage/s3/spec.js'
import { repairCollections } from './collections.js'
import { type RepairContext, RepairSource } from './context.js'
import { copyEventFiles } from './event-files.js'
import { SortedFiles } from './files.js'
import { Grouping } from './groups.js'
import { readIndexSources } from './index-source.js'
import { type Reason, RepairNotes, type RepairReport } from './report.js'

export interface RepairOptions extends Pick<WorkOptions, 'threads'> {
  /** Give every record the true checksum of its payload; smdebug leaves it out by default. Default: records are copied byte for byte. */
  readonly checksums?: boolean
  /** Follow symbolic links out of the trial's directory. Default: their targets are left out. */
  readonly allowSymlinks?: boolean
  /** Region, endpoint, credentials and limits for S3. See docs/s3.md. */
  readonly s3?: S3Options | undefined
  /** Ends the repair and removes the partial copy. */
  readonly signal?: AbortSignal
  /**
   * Called with the path of the directory in which the copy grows, before anything is written, so that a caller that exits early can
   * remove it. It no longer exists once the promise is settled.
   */
  readonly onTemporary?: (directory: string) => void
}

const REPAIR_OPTIONS = optionsOf<RepairOptions>({
  threads: WORK_OPTIONS.threads,
  checksums: kinds.flag,
  allowSymlinks: kinds.flag,
  s3: S3_OPTIONS,
  signal: kinds.signal,
  onTemporary: kinds.callback(),
})

const PART_DIRECTORIES = [INDEX_DIRECTORY, EVENTS_DIRECTORY, COLLECTIONS_DIRECTORY]

const UNSAFE_NAME: Reason = { code: 'UnsafePath', message: 'its path is not valid on every file system' }

/**
 * Writes a clean copy of a trial: intact records, index files that list exactly these, collections files and the end marker. The trial is
 * only read. The copy gets its name when it is complete; after an error there is none.
 * @param path a local directory, its `file://` URL, or `s3://bucket/prefix`
 * @param out the copy: a local directory outside of the trial that does not exist or is empty
 * @throws what `createTrial` throws if there is no trial; StoreError if the copy can't be written or a store can't be reached; UsageError
 *   for a copy inside the trial or in a directory with content. Damage in the trial is no error.
 */
export async function repairTrial(path: string, out: string, options?: RepairOptions): Promise<RepairReport> {
  const settings = checkOptions('repairTrial', REPAIR_OPTIONS, options)
  const { allowSymlinks = false, checksums = false, s3, signal, threads, onTemporary } = settings
  const spec = storeSpec(path, { allowSymlinks, s3 })
  const access = new Access(openStore(spec), spec)
  try {
    await access.store.open()
    const output = await OutputDirectory.create(out, spec.kind === 'local' ? spec.root : null)
    try {
      onTemporary?.(output.root)
      const notes = await copyTrial(access, output, { checksums, threads, signal })
      signal?.throwIfAborted()
      await output.commit()
      return notes.report(access.store.url(''), output.url)
    } catch (error) {
      await output.discard()
      throw error
    }
  } finally {
    await access.store.close()
  }
}

/** Files that could not be listed, and the reasons. */
type Unlisted = readonly (readonly [path: string, error: StoreError])[]

async function copyTrial(
  access: Access,
  output: OutputDirectory,
  options: Pick<RepairContext, 'checksums' | 'threads' | 'signal'>,
): Promise<RepairNotes> {
  const { store } = access
  const unlisted: [path: string, error: StoreError][] = []
  const onError = (path: string, error: StoreError): void => void unlisted.push([path, error])
  const expects = (path: string): boolean => path.includes('/') && !isTemporary(path) && isPartOfTrial(path)
  const files = new SortedFiles(await listEverything(store, { expects, onError }))
  const { isPlain, isTornasole, superseded } = files
  const plain = isPlain ? files.plainEvents : []
  if (kindOfPlace([...files.all]) === 'checkpoint') {
    const url = store.url('')
    const hint = 'trialscan verify says what is wrong with them'
    throw new UsageError(
      `${url}: expected a trial with event files, got checkpoints, which are not repaired: ${hint}`,
      { url },
    )
  }
  if (isPlain && plain.length === 0) throw await noTrial(store, [...files.all])
  const source = new RepairSource(access, files.all, options.signal)
  const notes = new RepairNotes()
  const context: RepairContext = { ...options, access, output, notes, source }
  await source.watch(isPlain ? plain : [...files.index, ...files.events, ...files.collections, ...files.root])
  noteUnlisted(unlisted, isPlain, context)
  const indexes = await readIndexSources(files, context)
  const grouping = new Grouping(store, notes)
  const groups = isPlain ? plain.map(path => ({ path, indexes: [] })) : grouping.group(files, indexes)
  await source.watchMissing(groups.flatMap(({ path }) => (path === null || files.all.has(path) ? [] : path)))
  noteOthers(files, new Set(groups.map(({ path }) => path)), notes)
  await copyEventFiles(groups, { grouping, isTornasole, isPlain, superseded }, context)
  const workers = new Set(indexes.map(({ worker }) => worker))
  for (const { indexes } of groups) for (const { worker } of indexes) workers.add(worker)
  const areExpected = !isTornasole && files.root.some(path => END_MARKERS.includes(path))
  if (!isPlain) await repairCollections(files.collections, [...workers].sort(), areExpected, context)
  await copyRoot(
    files.root.filter(path => !END_MARKERS.includes(path)),
    context,
  )
  if (!notes.hasKept) {
    const got = 'there is none, so nothing is left to copy'
    throw new MissingCollectionFiles(store.url(''), `expected event files with a whole record, but ${got}`)
  }
  await copyRoot(
    files.root.filter(path => END_MARKERS.includes(path)),
    context,
  )
  await source.expectUnchanged()
  return notes
}

function noteUnlisted(unlisted: Unlisted, isPlain: boolean, { notes, source }: RepairContext): void {
  for (const [path, error] of unlisted) {
    const isOdd = error.code === 'NotAFile' || error.code === 'NotFound'
    const isPart = isPlain
      ? !isOdd || isTensorBoardFile(path)
      : isOdd
        ? isPartOfTrial(path) || isPartDirectory(path)
        : PART_DIRECTORIES.includes(path.split('/', 1)[0]!)
    if (isPart) {
      source.expectTold(path, error.toJSON())
      notes.loseFile(path, error)
    } else notes.ignore(path)
  }
}

/** @param read the event files that are read, and null */
function noteOthers(files: SortedFiles, read: ReadonlySet<string | null>, notes: RepairNotes): void {
  const { isPlain } = files
  for (const path of files.unsafe) {
    if (isPlain ? isTensorBoardFile(path) : !isTensorBoardFile(path)) notes.loseFile(path, UNSAFE_NAME)
    else notes.ignore(path)
  }
  for (const [path, taken] of files.duplicates) {
    const { expected, got } = describeDuplicate(path, taken)
    notes.loseFile(path, { code: 'DuplicateFile', message: `expected ${expected}, got ${got}` })
  }
  for (const path of files.others) if (!read.has(path) && !files.superseded.has(path)) notes.ignore(path)
}

/** Copies end markers and Tornasole's collections. */
async function copyRoot(
  paths: readonly string[],
  { access: { store }, notes, output, source }: RepairContext,
): Promise<void> {
  for (const path of paths) {
    let bytes: Uint8Array
    try {
      bytes = await store.read(path, { maxByteLength: MAX_INDEX_BYTES })
      const text = new TextDecoder().decode(bytes)
      if (path === TORNASOLE_COLLECTIONS_FILE) parseTornasoleCollections(text, store.url(path))
    } catch (error) {
      if (!(error instanceof TrialscanError)) throw error
      source.expectTold(path, error.toJSON())
      notes.loseFile(path, error)
      continue
    }
    await output.write(path, bytes)
    notes.countFile('copied')
  }
}
