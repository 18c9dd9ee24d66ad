/** The index files of a trial: listed, read once, and kept with what they hold. */

import { pathToFileURL } from 'node:url'
import { StoreError, type TrialscanError } from '../../errors.js'
import { othersAmong, otherWorkerError, otherWorkerOf } from '../../format/index-owner.js'
import { INDEX_DIRECTORY, parseIndexFileName } from '../../format/paths.js'
import { duplicateError, isCanonicalPath, isIndexFile, type TrialFiles } from '../../format/trial-files.js'
import { INDEX_FILES_PER_JOB, MANY_INDEX_FILES } from '../../job/index-files.js'
import type { Access } from '../../runner/access.js'
import { runOnFiles } from '../../runner/failed-job.js'
import { chunksOf, pumpAll } from '../../runner/pump.js'
import { runTwice } from '../../runner/runner.js'
import { readFileIfThere } from '../../store/local/file.js'
import { writeAsideSync } from '../../store/local/output.js'
import type { GlobalStep, Worker } from '../../types.js'
import type { Catalog, IndexEntry } from '../catalog.js'
import { isInRange, type StepRange } from '../step-selection.js'
import { inTurns } from '../turns.js'
import { type CachedIndexFile, decodeIndexCache, encodeIndexCache, STAMP_LENGTH } from './index-cache.js'
import { listParts } from './no-trial.js'

/** An index file by its name. */
interface UnreadFile {
  readonly path: string
  readonly step: GlobalStep
  readonly worker: Worker
}

export interface IndexedOptions {
  readonly rangeSteps: StepRange | null
  readonly threads: number | undefined
  /** Incomplete steps after the last complete one before the eldest of them count as complete. */
  readonly incompleteStepWindow: number
  /** File of the index cache, an absolute path; null: none. */
  readonly indexCache: string | null
}

/** Files of the index that are listed again although nothing is missing before them. */
const RELISTED_FILES = 500

/** The index files of a trial. */
export class IndexedFiles {
  readonly #access: Access
  readonly #options: IndexedOptions
  /** By path. */
  readonly #entries = new Map<string, IndexEntry>()
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
  /** Why the cache could not be written. */
  #cacheProblem: StoreError | null = null

  constructor(access: Access, options: IndexedOptions) {
    this.#access = access
    this.#options = options
  }

  /** Whether none was read. */
  get isEmpty(): boolean {
    return this.#entries.size === 0
  }

  /** Those that were read and count. */
  entries(): Promise<readonly IndexEntry[]> {
    return withOwners([...this.#entries.values()], path => this.#access.store.url(path))
  }

  /** What is wrong where index files should be, and those beside which another counts. */
  problems(): TrialscanError[] {
    const { store } = this.#access
    return [
      ...this.#places,
      ...[...this.#duplicates].map(([path, taken]) => duplicateError(store.url(path), path, taken)),
    ]
  }

  /** Why the cache could not be written; null: it was, or there is none. */
  get cacheProblem(): StoreError | null {
    return this.#cacheProblem
  }

  /** Nothing more is read, and the catalog has what was. */
  clear(): void {
    this.#entries.clear()
    this.#stamps.clear()
    this.#listed = []
  }

  /**
   * The files of the index. Where listing costs requests, only what may be new is listed again: from the first step on
   * that a worker may still write. What has ended is listed as a whole, once.
   * @param catalog what is known so far
   */
  async list(ended: boolean, catalog: Catalog | undefined): Promise<readonly string[]> {
    const { store, isRemote } = this.#access
    const after = isRemote && !ended ? this.#settledUpTo(catalog) : null
    const { paths: listed, problems } = await listParts(store, INDEX_DIRECTORY, isIndexFile, after)
    this.#places = problems
    if (!isRemote) return listed
    this.#listed = after === null ? listed : [...new Set([...this.#listed, ...listed])].sort()
    return this.#listed
  }

  /** What sorts before everything in the index that may still come; null: nothing is known yet. */
  #settledUpTo(catalog: Catalog | undefined): string | null {
    if (catalog === undefined) return null
    const { steps } = catalog
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

  /** Reads the index files that are new. @param isFirst whether nothing was loaded yet @returns whether there was one */
  async load(paths: readonly string[], files: TrialFiles, isFirst: boolean): Promise<boolean> {
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
    const cached = await this.#fromCache(unread, isFirst)
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
  async #fromCache(files: readonly UnreadFile[], isFirst: boolean): Promise<IndexEntry[]> {
    const { indexCache } = this.#options
    if (indexCache === null) return []
    const { store } = this.#access
    const stamps = await store.stamps(files.map(({ path }) => path))
    files.forEach(({ path }, i) => {
      this.#stamps.set(path, stamps.subarray(i * STAMP_LENGTH, (i + 1) * STAMP_LENGTH))
    })
    const bytes = isFirst ? readFileIfThere(indexCache) : null
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

  /** Index files to be read. */
  async #unread(paths: readonly string[], files: TrialFiles): Promise<UnreadFile[]> {
    const unread: UnreadFile[] = []
    // A string for each worker, and not for each file.
    const workers = new Map<Worker, Worker>()
    await inTurns(paths, path => {
      if (this.#isRead(path)) return
      const name = files.indexName(path)
      if (name === null || !isInRange(name.step, this.#options.rangeSteps)) return
      this.#hasOdd ||= !isCanonicalPath(path)
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
