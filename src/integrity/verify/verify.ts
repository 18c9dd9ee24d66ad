/** Verifies a trial completely: event files, index, collections, and that they agree. */

import { checkOptions, type Kinds, kinds, optionsOf } from '../../base/options.js'
import { type DigestListSource, isDigestSource } from '../../compare/digests/list.js'
import { INDEX_DIRECTORY, parseEventFileName } from '../../format/paths.js'
import { placeOf } from '../../scan/catalog/load/place.js'
import { DEFAULT_MEMORY } from '../../scan/job/plan/memory.js'
import { Access, WORK_OPTIONS, type WorkOptions } from '../../scan/runner/access.js'
import { openStore } from '../../storage/open.js'
import { S3_OPTIONS } from '../../storage/s3/options.js'
import type { S3Options } from '../../storage/s3/spec.js'
import type { Traffic } from '../../storage/store.js'
import { verifyCheckpoints, verifyRows } from './checkpoint/checkpoints.js'
import { checkCollections, SavedNames } from './collections.js'
import { EventFileReader, eventFilesOf } from './event-files.js'
import { Findings } from './findings.js'
import { checkOwners, IndexState, readIndexes } from './indexes.js'
import { checkDuplicates, listTrial } from './listing.js'
import type { VerifyCode, VerifyProblem } from './problem.js'
import { RecordCheck } from './records.js'
import { asksRows, type DigestCounts } from './row-checks.js'

export interface VerifyOptions extends WorkOptions {
  /** Also check strings, and saved reductions against their tensors. See docs/verify.md. */
  readonly deep?: boolean
  /** Also read all tensors, and report NaN, infinities, zeros, constants, and values beyond half precision. See docs/verify.md. */
  readonly values?: boolean
  /** A digest list to compare all tensors with: its text, or pieces of it. See docs/checkpoints.md. */
  readonly digests?: DigestListSource
  /** Called with a line of a digest list for every readable tensor. */
  readonly onDigest?: (line: string) => void
  /** Called with every reported problem and note, in the order of the result. */
  readonly onProblem?: (problem: VerifyProblem) => void
  readonly signal?: AbortSignal
  /** Follow symbolic links out of the trial's directory. Default: they are refused. */
  readonly allowSymlinks?: boolean
  /** Region, endpoint, credentials and limits for S3. See docs/s3.md. */
  readonly s3?: S3Options | undefined
}

/** The options that apply to every kind of place. */
export type AnyVerifyOptions = Omit<VerifyOptions, 'allowSymlinks' | 's3'>

export const ANY_VERIFY_KINDS: Kinds<AnyVerifyOptions> = {
  ...WORK_OPTIONS,
  deep: kinds.flag,
  values: kinds.flag,
  digests: kinds.that<DigestListSource>('the text of a digest list, or pieces of it', isDigestSource),
  onDigest: kinds.callback(),
  onProblem: kinds.callback(),
  signal: kinds.signal,
}

const OPTIONS = optionsOf<VerifyOptions>({
  ...ANY_VERIFY_KINDS,
  allowSymlinks: kinds.flag,
  s3: S3_OPTIONS,
})

export interface VerifyStats {
  /** The number of event files that were read. */
  readonly eventFiles: number
  readonly indexFiles: number
  /** The number of records; of checkpoints that of tensors, each at each step and of each worker, and stacked layers one by one. */
  readonly records: number
  /** Records with smdebug's constant instead of a payload checksum, and tensors of files without checksums: a change of their values can't be noticed. */
  readonly recordsWithoutChecksum: number
  /** The number of tensors, scalars and histograms in these records. */
  readonly tensors: number
  /** The number of bytes read from event files. */
  readonly readBytes: number
  /** With `values`: how many of the tensors (counted per step and worker) were read; otherwise null. */
  readonly values: { readonly read: number; readonly of: number } | null
  /** With `digests`: how many listed tensors match; otherwise null. */
  readonly digests: DigestCounts | null
  readonly seconds: number
  readonly threads: number
  /** The requests for a trial on S3. */
  readonly traffic: Traffic
}

export interface Verification {
  /** True if there are no problems. */
  readonly ok: boolean
  /** The problems in the order of the files: up to 100 for a file and 10,000 in all. `problemCounts` counts all. */
  readonly problems: readonly VerifyProblem[]
  /** Harmless findings, with the same limits. */
  readonly notes: readonly VerifyProblem[]
  /** The number of problems by code. */
  readonly problemCounts: Readonly<Partial<Record<VerifyCode, number>>>
  readonly noteCounts: Readonly<Partial<Record<VerifyCode, number>>>
  readonly stats: VerifyStats
}

/**
 * Reads all of a trial and reports what is wrong with it. Writes nothing, and doesn't rely on the index.
 * @param path a local directory, its `file://` URL, or `s3://bucket/prefix`
 * @throws StoreError if the trial can't be reached, MissingCollectionFiles if there is none; UsageError; the signal's reason
 */
export async function verifyTrial(path: string, options?: VerifyOptions): Promise<Verification> {
  const settings = checkOptions('verifyTrial', OPTIONS, options)
  const { allowSymlinks = false, s3 } = settings
  const { spec, file } = placeOf(path, { allowSymlinks, s3 })
  return verifyTrialAt(new Access(openStore(spec), spec), settings, file)
}

/** Verifies the trial of a store, and closes the store. @param file the file of a checkpoint, if one was named */
export async function verifyTrialAt(access: Access, options: AnyVerifyOptions, file?: string): Promise<Verification> {
  try {
    options.signal?.throwIfAborted()
    return await runVerification(access, options, file)
  } finally {
    await access.close()
  }
}

async function runVerification(
  access: Access,
  options: AnyVerifyOptions,
  named: string | undefined,
): Promise<Verification> {
  const { memory = DEFAULT_MEMORY, deep = false, signal } = options
  const { store } = access
  const startedAt = performance.now()
  const findings = new Findings(file => store.url(file), options.onProblem)
  await store.open()
  const listed = named === undefined ? await listTrial(store, findings) : null
  if (listed === null) {
    const checked = await verifyCheckpoints(access, named, findings, options)
    const seconds = (performance.now() - startedAt) / 1000
    const traffic = { ...access.traffic }
    return { ...findings.told, stats: { eventFiles: 0, indexFiles: 0, ...checked, seconds, threads: 0, traffic } }
  }
  const { files, events, unlisted } = listed
  const { isPlain, isTornasole, ended } = files
  const collections = await checkCollections(store, listed, findings)
  const { indexes: indexFiles, lists } = await readIndexes(files, findings, access, options)
  const savedNames = new SavedNames()
  savedNames.addLists(lists)
  const indexes = checkOwners(indexFiles, store, findings)
  const isIndexListed = !unlisted.has(INDEX_DIRECTORY)
  if (!isPlain && files.index.length === 0 && events.length > 0 && isIndexListed) {
    const expected = `files under ${INDEX_DIRECTORY}/ that tell what the event files hold`
    findings.note({ code: 'NoIndex', file: '', expected, found: 'none' })
  }
  // Without an index, nothing decides which of two event files counts.
  if (files.index.length === 0) checkDuplicates(files.eventDuplicates, findings)
  const names = isPlain ? [] : events.map(path => parseEventFileName(path)!)
  const state = new IndexState(indexes, names, ended)
  state.checkWorkers(collections, findings)
  if (!isPlain) await state.findLastWritten(events, store)
  const reader = new EventFileReader({
    access,
    runner: bytes => access.runner(options.threads, bytes, memory),
    signal,
    job: {
      isTornasole,
      deep,
      withShapes: !lists.allShapes().next().done,
      windowByteLength: Math.floor(memory / 2),
    },
  })
  const check = new RecordCheck({ findings, indexes: state, savedNames, isIndexListed })
  for await (const { file, found } of reader.read(eventFilesOf(events, indexes))) check.check(file, found)
  if (!findings.isPartial) savedNames.checkMembers(collections, findings)
  for (const [path, error] of findings.odd) findings.problemOf(error, path, 'Unreadable', 'what is in it')
  const rows = asksRows(options) ? await verifyRows(access, findings, options) : { values: null, digests: null }
  return {
    ...findings.told,
    stats: {
      eventFiles: check.eventFiles,
      indexFiles: indexFiles.length,
      records: check.records,
      recordsWithoutChecksum: check.recordsWithoutChecksum,
      tensors: check.tensors,
      readBytes: reader.readBytes,
      ...rows,
      seconds: (performance.now() - startedAt) / 1000,
      threads: reader.threads,
      traffic: { ...access.traffic },
    },
  }
}
