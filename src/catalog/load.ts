/** Opening and refreshing a trial: collections and index files from the store into one catalog. */

import { pathToFileURL } from 'node:url'
import { MissingCollectionFiles, StoreError, TrialscanError } from '../errors.js'
import { type Collections, CollectionsReader, MAX_COLLECTIONS_BYTES, mergeCollections } from '../format/collections.js'
import { othersAmong, otherWorkerError, otherWorkerOf } from '../format/index-owner.js'
import {
  COLLECTIONS_DIRECTORY,
  collectionsFilePath,
  INDEX_DIRECTORY,
  parseCollectionsFileName,
  parseIndexFileName,
  TORNASOLE_COLLECTIONS_FILE,
} from '../format/paths.js'
import { parseTornasoleCollections } from '../format/tornasole.js'
import {
  duplicateError,
  isCollectionsFile,
  isHooksOwn,
  isIndexFile,
  ROOT_FILES,
  TrialFiles,
} from '../format/trial-files.js'
import { INDEX_FILES_PER_JOB, MANY_INDEX_FILES } from '../job/index-files.js'
import type { Access } from '../runner/access.js'
import { runOnFiles } from '../runner/failed-job.js'
import { chunksOf, pumpAll } from '../runner/pump.js'
import { runTwice } from '../runner/runner.js'
import { readFileIfThere } from '../store/local/file.js'
import { writeAsideSync } from '../store/local/output.js'
import { eachFile, type Store } from '../store/store.js'
import type { GlobalStep, Worker } from '../types.js'
import { Catalog, type IndexEntry } from './catalog.js'
import { type CachedIndexFile, decodeIndexCache, encodeIndexCache, STAMP_LENGTH } from './index-cache.js'
import { listParts, noTrial } from './no-trial.js'
import { inTurns } from './turns.js'
import { UnindexedEvents } from './unindexed.js'

/** An index file by its name. */
interface UnreadFile {
  readonly path: string
  readonly step: GlobalStep
  readonly worker: Worker
}

/** Steps `[begin, end)`; null: no limit on that side. */
export type StepRange = readonly [begin: number | null, end: number | null]

export interface TrialContents {
  readonly catalog: Catalog
  readonly collections: Collections
  /** Those with a collections file, which may have written nothing yet, and those with data; sorted. */
  readonly workers: readonly Worker[]
  /** Whether the job has ended, and everything it wrote is in the catalog. */
  readonly ended: boolean
  /** The files that the catalog was made from, if they are kept: index files, or event files where there are none. */
  readonly entries: readonly IndexEntry[]
  /** Event files without index: the steps of several lie in one, so that no index file can name it. */
  readonly isTensorBoard: boolean
  /** Collections files that are missing or can't be read, records of event files that have no index, a cache not written. */
  readonly problems: readonly TrialscanError[]
  /** Those of them that are of event files. */
  readonly recordProblems: readonly TrialscanError[]
}

export interface LoadOptions {
  readonly rangeSteps: StepRange | null
  readonly threads: number | undefined
  /** Incomplete steps after the last complete one before the eldest of them count as complete. */
  readonly incompleteStepWindow: number
  /** Whether an ended trial needs the collections files of all its workers. */
  readonly requireCollections: boolean
  /** Whether the files that the catalog is made from are wanted for themselves. */
  readonly keepsEntries: boolean
  /** File of the index cache, an absolute path; null: none. */
  readonly indexCache: string | null
}

/** Files of the index that are listed again although nothing is missing before them. */
const RELISTED_FILES = 500

/** Reads what is known of a trial without reading a tensor, and later what has come since. */
export class TrialLoader {
  readonly #access: Access
  readonly #options: LoadOptions
  /** By path. */
  readonly #entries = new Map<string, IndexEntry>()
  /** Where there are no index files. */
  readonly #events: UnindexedEvents
  /** Of index files, when they were read; kept only for the cache. */
  readonly #stamps = new Map<string, Float64Array>()
  /** Index files, in order; kept only where they are not listed again every time. */
  #listed: readonly string[] = []
  /** What is wrong where index files should be, beside what is wrong with those that count. */
  #places: readonly TrialscanError[] = []
  /** Index files beside which another counts, and that one. */
  #duplicates: ReadonlyMap<string, string> = new Map()
  /** Whether there is an index file that the hook would call otherwise: without one, no two are of one step and worker. */
  #hasOdd = false
  #collections: { readonly stamp: string; readonly found: FoundCollections | null } | undefined
  #contents: TrialContents | undefined
  /** What the collections files told at the last load, and whether more of them are to come. */
  #told: FoundCollections | null = null
  #awaitsCollections = true
  /** The load that begins when the one under way has ended. */
  #next: Promise<TrialContents> | undefined
  #current: Promise<unknown> = Promise.resolve()
  /** Why the cache could not be written. */
  #cacheProblem: StoreError | null = null

  constructor(access: Access, options: LoadOptions) {
    this.#access = access
    this.#options = options
    this.#events = new UnindexedEvents(access, options.threads, step => isInRange(step, options.rangeSteps))
  }

  /**
   * Lists the trial, reads the index files that are new, and those that could not be read before: they may have been
   * looked at while they were written. An index file that can't be read is kept as an error in the catalog, not thrown.
   * Where there is no index, the event files are scanned. One load at a time, since they add to the same entries: all who
   * ask while one is under way, which may have listed already, get the next.
   * @returns the same object as before if nothing is new
   * @throws StoreError if the trial can't be reached, MissingCollectionFiles if there is none
   */
  load(): Promise<TrialContents> {
    if (this.#next === undefined) {
      const next = this.#current.then(() => {
        this.#next = undefined
        return this.#load()
      })
      this.#next = next
      this.#current = next.catch(() => {})
    }
    return this.#next
  }

  async #load(): Promise<TrialContents> {
    const previous = this.#contents
    if (previous?.ended) return previous
    const { store } = this.#access
    if (previous === undefined) await store.open()
    // The end marker is looked for before the listing: what the job wrote before it is then in the listing.
    const root = await this.#lookAtRoot()
    const { ended } = new TrialFiles(root)
    const paths = await this.#listIndex(ended)
    const files = new TrialFiles([...root, ...paths])
    const isIndexed = this.#entries.size > 0 || paths.some(isIndexFile)
    const isNew = isIndexed ? await this.#loadIndex(paths, files) : await this.#loadEvents(root)
    const mayBeSame = previous !== undefined && !isNew && !ended
    if (mayBeSame && !this.#awaitsCollections) return previous
    const tornasole = await this.#tornasoleFiles(files, root)
    const collections = tornasole.collections ?? (await this.#readCollections())
    if (mayBeSame && summaryOf(collections) === summaryOf(this.#told)) return previous
    this.#told = collections
    if (!isIndexed && this.#events.writer === null && collections === null) {
      if (!ended) throw await noTrial(store, this.#events.everything)
      throw new MissingCollectionFiles(store.url(''), 'expected a trial, but the job has ended and saved nothing')
    }
    const collectionProblems = [
      ...(collections?.problems ?? []),
      ...(ended ? this.#missingCollections(collections, isIndexed && !tornasole.isThere) : []),
    ]
    if (collectionProblems[0] && previous === undefined && this.#options.requireCollections) throw collectionProblems[0]
    const isTensorBoard = !isIndexed && this.#events.writer === 'TensorBoard'
    const entries = isIndexed
      ? await withOwners([...this.#entries.values()], path => store.url(path))
      : this.#events.entries()
    const recordProblems = isIndexed ? [] : this.#events.problems()
    const duplicates = [...this.#duplicates].map(([path, taken]) => duplicateError(store.url(path), path, taken))
    const { numWorkers = null, paths: collectionsPaths = [] } = collections ?? {}
    const tellsWorkers = !isTensorBoard && !tornasole.isThere
    this.#awaitsCollections = tellsWorkers && (numWorkers === null || collectionsPaths.length < numWorkers)
    // Hooks write their collections about their first step. Where none are required, or the index is lost, they are waited for
    // no longer once there is a second.
    const mayLack = !this.#options.requireCollections || !isIndexed
    const hasGoneOn = mayLack && entries.some(({ step }) => step !== entries[0]!.step)
    const isUnknown = tellsWorkers && !ended && numWorkers === null && !hasGoneOn
    const catalog = await Catalog.of(entries, {
      // Runs of TensorBoard know nothing of each other.
      numWorkers: isTensorBoard ? 1 : isUnknown ? Number.POSITIVE_INFINITY : numWorkers,
      isTornasole: tornasole.isThere,
      ended,
      incompleteStepWindow: this.#options.incompleteStepWindow,
    })
    this.#contents = {
      catalog,
      workers: allWorkers(catalog.workers, collectionsPaths),
      collections: { collections: collections?.collections ?? new Map(), numWorkers: collections?.numWorkers ?? 0 },
      ended,
      entries: this.#options.keepsEntries ? entries : [],
      isTensorBoard,
      problems: [
        ...collectionProblems,
        ...this.#places,
        ...duplicates,
        ...recordProblems,
        ...(this.#cacheProblem ? [this.#cacheProblem] : []),
      ],
      recordProblems,
    }
    if (ended) {
      // Nothing more is read, and the catalog has what was.
      this.#entries.clear()
      this.#stamps.clear()
      this.#listed = []
    }
    return this.#contents
  }

  /** Which of the files are there that tell something by being in the root. Asked for at once: one listing answers it. */
  async #lookAtRoot(): Promise<readonly string[]> {
    const { store } = this.#access
    const there = await Promise.all(ROOT_FILES.map(file => store.exists(file)))
    return ROOT_FILES.filter((_, i) => there[i])
  }

  /**
   * The files of the index. Where listing costs requests, only what may be new is listed again: from the first step on
   * that a worker may still write. What has ended is listed as a whole, once.
   */
  async #listIndex(ended: boolean): Promise<readonly string[]> {
    const { store, isRemote } = this.#access
    const after = isRemote && !ended ? this.#settledUpTo() : null
    const { paths: listed, problems } = await listParts(store, INDEX_DIRECTORY, isIndexFile, after)
    this.#places = problems
    if (!isRemote) return listed
    this.#listed = after === null ? listed : [...new Set([...this.#listed, ...listed])].sort()
    return this.#listed
  }

  /** What sorts before everything in the index that may still come; null: nothing is known yet. */
  #settledUpTo(): string | null {
    if (this.#contents === undefined) return null
    const { steps } = this.#contents.catalog
    const { numWorkers } = steps
    // Whom a step still lacks after so many others is not waited for.
    const eldest = steps.all.at(-1 - this.#options.incompleteStepWindow)?.globalStep ?? 0
    const isOpen = (step: number): boolean => step >= eldest && (steps.get(step)?.workers.length ?? 0) < numWorkers
    // Some that are whole are listed all the same, since a page holds a thousand: who knows in which order steps arrive.
    let first = Math.max(0, this.#listed.length - RELISTED_FILES)
    // In the order of the steps; a file of which nothing is known (it can't be read, or is not wanted) can't be late.
    for (const [i, path] of this.#listed.entries()) {
      if (i >= first) break
      const entry = this.#entries.get(path)
      if (entry && (entry.content instanceof Error || isOpen(entry.step))) first = i
    }
    const path = this.#listed[first]
    // Up to the step, without the worker: the others of its workers sort behind it.
    return path === undefined ? null : path.replace(/_[^/]*$/, '')
  }

  /** As they were, where a listing tells that they are. */
  async #readCollections(): Promise<FoundCollections | null> {
    const { store, isRemote } = this.#access
    const paths = await store.list(COLLECTIONS_DIRECTORY, { recursive: true, expects: isCollectionsFile })
    if (!isRemote) return readCollections(store, paths)
    const stamp = JSON.stringify([paths, ...(await store.stamps(paths))])
    if (this.#collections?.stamp !== stamp) this.#collections = { stamp, found: await readCollections(store, paths) }
    return this.#collections.found
  }

  /** What an ended job owes: a collections file of each worker, and one at all if it wrote an index as smdebug does. */
  #missingCollections(found: FoundCollections | null, isExpected: boolean): MissingCollectionFiles[] {
    const numWorkers = found?.numWorkers ?? (isExpected ? 1 : 0)
    const fileCount = found?.paths.length ?? 0
    if (fileCount >= numWorkers) return []
    const wanted = `expected collections files of ${found ? numWorkers : 'all'} workers, but the job has ended with`
    const hint = this.#options.requireCollections ? '; to open the trial anyway, set requireCollections: false' : ''
    const url = this.#access.store.url(COLLECTIONS_DIRECTORY)
    return [new MissingCollectionFiles(url, `${wanted} ${fileCount}${hint}`)]
  }

  /** Reads the index files that are new. @returns whether there was one */
  async #loadIndex(paths: readonly string[], files: TrialFiles): Promise<boolean> {
    const found = await this.#unread(paths, files)
    const duplicates = new Map<string, string>()
    for (const [path, taken] of this.#hasOdd ? files.duplicates : []) {
      if (isInRange(parseIndexFileName(path)!.step, this.#options.rangeSteps)) duplicates.set(path, taken)
    }
    const isChanged = duplicates.size !== this.#duplicates.size
    this.#duplicates = duplicates
    // One may have counted until another came.
    for (const path of duplicates.keys()) this.#entries.delete(path)
    const unread = found.filter(({ path }) => !duplicates.has(path))
    const cached = await this.#fromCache(unread)
    await inTurns(cached, entry => this.#entries.set(entry.path, entry))
    const read = (await this.#read(unread.filter(({ path }) => !this.#isRead(path)))).filter(
      ({ path, content }) => !(content instanceof Error && this.#entries.has(path)),
    )
    await inTurns(read, entry => {
      if (entry.path.endsWith('.json')) this.#entries.delete(entry.path.replace(/json$/, 'csv'))
      this.#entries.set(entry.path, entry)
    })
    if (read.length > 0) this.#writeCache()
    return isChanged || read.length + cached.length > 0
  }

  #isRead(path: string): boolean {
    const known = this.#entries.get(path)
    return known !== undefined && !(known.content instanceof Error)
  }

  /**
   * Index files that the cache knows and that have not changed since. Stamps are taken before a file is read, so that one
   * that changes meanwhile is read again the next time.
   */
  async #fromCache(files: readonly UnreadFile[]): Promise<IndexEntry[]> {
    const { indexCache } = this.#options
    if (indexCache === null) return []
    const { store } = this.#access
    const stamps = await store.stamps(files.map(({ path }) => path))
    files.forEach(({ path }, i) => {
      this.#stamps.set(path, stamps.subarray(i * STAMP_LENGTH, (i + 1) * STAMP_LENGTH))
    })
    const bytes = this.#contents === undefined ? readFileIfThere(indexCache) : null
    const known = bytes && decodeIndexCache(store.url(''), bytes)
    if (!known) return []
    return files.flatMap(({ path, step, worker }) => {
      const file = known.get(path)
      const isSame = file?.stamp.every((number, i) => number === this.#stamps.get(path)![i])
      return file && isSame ? [{ path, step, worker, content: file.content }] : []
    })
  }

  /** Keeps what is known of the index files for the next opening. */
  #writeCache(): void {
    const { indexCache } = this.#options
    if (indexCache === null) return
    const files = new Map<string, CachedIndexFile>()
    for (const { path, content } of this.#entries.values()) {
      const stamp = this.#stamps.get(path)
      if (stamp && !(content instanceof Error)) files.set(path, { stamp, content })
    }
    this.#cacheProblem = null
    const bytes = encodeIndexCache(this.#access.store.url(''), files)
    try {
      writeAsideSync(indexCache, bytes)
    } catch (cause) {
      // A full disk costs the next opening its cache, and not this one its trial.
      const url = pathToFileURL(indexCache).href
      const reason = cause instanceof Error ? cause.message : String(cause)
      this.#cacheProblem = new StoreError('Unavailable', `${indexCache} can't be written: ${reason}`, { url }, cause)
    }
  }

  /** Scans event files where there is no index. @returns whether there was something new */
  async #loadEvents(root: readonly string[]): Promise<boolean> {
    const { store } = this.#access
    if (this.#events.writer === 'TensorBoard') return this.#events.load(true)
    const isNew = await this.#events.load(false)
    if (this.#events.writer !== null) return isNew
    const collections = await store.list(COLLECTIONS_DIRECTORY, { recursive: true })
    // A run of TensorBoard can be called `collections`, too.
    return new TrialFiles([...root, ...collections]).isPlain ? this.#events.load(true) : isNew
  }

  /** What tells that Tornasole wrote the trial, and its collections. */
  async #tornasoleFiles(
    { isTornasole: isThere }: TrialFiles,
    root: readonly string[],
  ): Promise<{ readonly isThere: boolean; readonly collections: FoundCollections | null }> {
    const { store } = this.#access
    if (!root.includes(TORNASOLE_COLLECTIONS_FILE)) return { isThere, collections: null }
    // How many workers a step needs, it does not tell.
    const file = { numWorkers: null, paths: [TORNASOLE_COLLECTIONS_FILE] }
    try {
      const bytes = await store.read(TORNASOLE_COLLECTIONS_FILE, { maxByteLength: MAX_COLLECTIONS_BYTES })
      const url = store.url(TORNASOLE_COLLECTIONS_FILE)
      const collections = parseTornasoleCollections(new TextDecoder().decode(bytes), url)
      return { isThere, collections: { ...file, collections, problems: [] } }
    } catch (error) {
      if (!(error instanceof TrialscanError)) throw error
      return { isThere, collections: { ...file, collections: new Map(), problems: [error] } }
    }
  }

  /** Index files to be read. */
  async #unread(paths: readonly string[], files: TrialFiles): Promise<UnreadFile[]> {
    const unread: UnreadFile[] = []
    // A string for each worker, and not for each file.
    const workers = new Map<Worker, Worker>()
    await inTurns(paths, path => {
      if (this.#isRead(path)) return
      const name = files.indexName(path)
      if (name === null || !isInRange(name.step, this.#options.rangeSteps)) return
      this.#hasOdd ||= !isHooksOwn(path)
      const worker = workers.get(name.worker) ?? name.worker
      workers.set(worker, worker)
      unread.push({ path, step: name.step, worker })
    })
    return unread
  }

  async #read(files: readonly UnreadFile[]): Promise<IndexEntry[]> {
    const many = files.length >= MANY_INDEX_FILES
    const { threads } = this.#options
    // Requests wait for answers, not for threads.
    const isInline = !many || this.#access.isRemote
    const runner = await this.#access.runner(isInline ? 0 : threads, Number.POSITIVE_INFINITY)
    const read = async (some: typeof files): Promise<readonly IndexEntry[]> => {
      const contents = await runOnFiles(
        some.map(({ path }) => path),
        paths => runTwice(runner, { kind: 'index', store: this.#access.spec, paths }),
        path => this.#access.store.url(path),
      )
      return some.map(({ path, step, worker }, i) => ({ path, step, worker, content: contents[i]! }))
    }
    const entries: IndexEntry[] = []
    for await (const some of pumpAll(chunksOf(files, INDEX_FILES_PER_JOB), read, runner)) entries.push(...some)
    return entries
  }
}

/** An index file whose numbers are another worker's is one that can't be used. */
async function withOwners(
  entries: readonly IndexEntry[],
  urlOf: (path: string) => string,
): Promise<readonly IndexEntry[]> {
  let hasOthers = false
  await inTurns(entries, ({ step, worker, content }) => {
    hasOthers ||= !(content instanceof Error) && otherWorkerOf({ step, worker, content }) !== null
  })
  if (!hasOthers) return entries
  const indexes = entries.map(({ step, worker, content }) => {
    return { step, worker, content: content instanceof Error ? null : content }
  })
  const others = othersAmong(indexes)
  return entries.map((entry, i) => {
    const other = others.get(indexes[i]!)
    return other?.isFault ? { ...entry, content: otherWorkerError(urlOf(entry.path), indexes[i]!, other) } : entry
  })
}

/** Whether a step lies within a range; null is all steps. */
export function isInRange(step: number, range: StepRange | null): boolean {
  return range === null || ((range[0] === null || step >= range[0]) && (range[1] === null || step < range[1]))
}

/** What the collections files of the workers tell, which there are, and which of them can't be read. */
interface FoundCollections extends Pick<Collections, 'collections'> {
  /** Null where no file tells it. */
  readonly numWorkers: number | null
  readonly paths: readonly string[]
  readonly problems: readonly TrialscanError[]
}

async function readCollections(store: Store, paths: readonly string[]): Promise<FoundCollections | null> {
  const files = paths.filter(isCollectionsFile)
  const reader = new CollectionsReader()
  const problems: TrialscanError[] = []
  const ofWorkers = await eachFile(store, files, async path => {
    try {
      const bytes = await store.read(path, { maxByteLength: MAX_COLLECTIONS_BYTES, isText: true })
      return [reader.read(bytes, store.url(path))]
    } catch (error) {
      if (!(error instanceof TrialscanError)) throw error
      problems.push(error)
      return []
    }
  })
  if (files.length === 0) return null
  const read = ofWorkers.flat()
  const { collections, numWorkers } = mergeCollections(read)
  return { collections, numWorkers: read.length > 0 ? numWorkers : null, paths: files, problems }
}

/** Two that differ in what a worker that begins, or a file that was mended, changes differ in this. */
function summaryOf(found: FoundCollections | null): string {
  return found === null ? '' : JSON.stringify([found.paths, found.numWorkers, found.problems.length])
}

/** Workers with data and those with a collections file, by its name; sorted. */
function allWorkers(withData: readonly Worker[], collectionsPaths: readonly string[]): Worker[] {
  const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1)
  // A long name is not in its file's.
  const byFile = new Map(withData.map(worker => [nameOf(collectionsFilePath(worker)), worker]))
  const withFile = collectionsPaths.flatMap(path => {
    const worker = byFile.get(nameOf(path)) ?? parseCollectionsFileName(path)
    return worker ? [worker] : []
  })
  return [...new Set([...withData, ...withFile])].sort()
}
