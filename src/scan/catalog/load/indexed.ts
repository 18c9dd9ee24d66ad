/** The index files of a trial: listed, read once, and kept as rows. */

import { pathToFileURL } from 'node:url'
import { StoreError, type TrialscanError } from '../../../base/errors.js'
import { countInTurns, inTurns } from '../../../base/turns.js'
import type { GlobalStep, Worker } from '../../../base/types.js'
import {
  type OtherWorker,
  type OwnedIndex,
  othersAmong,
  otherWorkerError,
  otherWorkerOf,
} from '../../../format/index-owner.js'
import { INDEX_DIRECTORY, parseIndexFileName, usualIndexFile } from '../../../format/paths.js'
import { duplicateError, isCanonicalPath, isIndexFile, type TrialFiles } from '../../../format/trial-files.js'
import { readFileIfThere } from '../../../storage/local/file.js'
import { writeAtOnce } from '../../../storage/local/output.js'
import { MANY_INDEX_FILES } from '../../job/index-job.js'
import type { Access } from '../../runner/access.js'
import { readIndexFiles } from '../../runner/index-reading.js'
import type { Catalog } from '../catalog.js'
import { IndexColumns } from '../columns/index-columns.js'
import type { IndexRows } from '../columns/saved-rows.js'
import { isInRange, type StepRange } from '../step-selection.js'
import {
  decodeIndexCache,
  encodeIndexCache,
  type IndexStamps,
  indexStamps,
  type StampedFile,
  stampAt,
} from './index-cache.js'
import { listParts } from './no-trial.js'

/** Index files to read, in columns by name, since there may be a million. */
class UnreadFiles {
  readonly paths: string[] = []
  readonly steps: GlobalStep[] = []
  readonly workers: Worker[] = []

  get length(): number {
    return this.paths.length
  }

  add(path: string, step: GlobalStep, worker: Worker): void {
    this.paths.push(path)
    this.steps.push(step)
    this.workers.push(worker)
  }

  filter(isWanted: (path: string) => boolean): UnreadFiles {
    const wanted = new UnreadFiles()
    for (const [i, path] of this.paths.entries()) {
      if (isWanted(path)) wanted.add(path, this.steps[i]!, this.workers[i]!)
    }
    return wanted
  }
}

export interface IndexedOptions {
  readonly rangeSteps: StepRange | null
  readonly threads: number | undefined
  /** The number of steps after an incomplete one, all incomplete, after which it counts as complete. */
  readonly incompleteStepWindow: number
  /** The absolute path of the index cache; null for none. */
  readonly indexCache: string | null
}

/** The number of index files that are listed again although no earlier one is missing. */
const RELISTED_FILES = 500

/** The index files of a trial. */
export class IndexedFiles {
  readonly #access: Access
  readonly #options: IndexedOptions
  #columns = new IndexColumns()
  /** The rows of the index files that count, by path. */
  readonly #rows = new Map<string, number>()
  /** The stamps of index files when they were examined, for the cache. */
  #stamps: IndexStamps[] = []
  /** True if the cache is stale. */
  #isCacheOld = false
  /** The paths of the index files, in order; kept only if they are not listed anew every time. */
  #listed: readonly string[] = []
  /** The errors of directories that should contain index files. */
  #places: readonly TrialscanError[] = []
  /** Superseded index files, each with its successor. */
  #duplicates: ReadonlyMap<string, string> = new Map()
  /** True if an index file has a name other than the hook's. Otherwise no two files are of the same step and worker. */
  #hasOdd = false
  /** True if there may be a CSV index file of Tornasole's hook that a JSON file supersedes. */
  #hasCSV = false
  /** The error of writing the cache. */
  #cacheProblem: StoreError | null = null

  constructor(access: Access, options: IndexedOptions) {
    this.#access = access
    this.#options = options
  }

  /** True if no index file was read. */
  get isEmpty(): boolean {
    return this.#rows.size === 0
  }

  /** The rows of the index files that count. */
  async rows(): Promise<IndexRows> {
    const columns = this.#columns
    const rows = Int32Array.from(this.#rows.values())
    const others = await otherWorkersIn(columns, rows)
    const faults = new Map<number, TrialscanError>()
    for (const [path, row] of others.size > 0 ? this.#rows : []) {
      const fault = others.get(row)
      if (fault) faults.set(row, otherWorkerError(this.#access.store.url(path), fault.index, fault.other))
    }
    return { columns, rows, faults }
  }

  /** The errors of directories that should contain index files, and of superseded files. */
  problems(): TrialscanError[] {
    const { store } = this.#access
    return [
      ...this.#places,
      ...[...this.#duplicates].map(([path, taken]) => duplicateError(store.url(path), path, taken)),
    ]
  }

  /** The error of writing the cache; null if there is none. */
  get cacheProblem(): StoreError | null {
    return this.#cacheProblem
  }

  /** Releases everything after the last load; the catalog has its own references. */
  clear(): void {
    this.#columns = new IndexColumns()
    this.#rows.clear()
    this.#stamps = []
    this.#listed = []
  }

  /**
   * Lists the index files. If listings cost requests, only files that may be new are listed again: from the first step on that a worker
   * may still write. A finished trial is listed as a whole, once.
   * @param catalog the catalog so far
   */
  async list(ended: boolean, catalog: Catalog | undefined): Promise<readonly string[]> {
    const { store, isRemote } = this.#access
    const after = isRemote && !ended ? this.#settledUpTo(catalog) : null
    const { paths: listed, problems } = await listParts(store, INDEX_DIRECTORY, isIndexFile, after)
    this.#places = problems
    this.#startThreads(listed.length)
    if (!isRemote) return listed
    this.#listed = after === null ? listed : [...new Set([...this.#listed, ...listed])].sort()
    return this.#listed
  }

  /** A path that sorts before all index files that may still come; null if that is unknown. */
  #settledUpTo(catalog: Catalog | undefined): string | null {
    if (catalog === undefined) return null
    const { steps } = catalog
    const { numWorkers } = steps
    // A step that so many others follow is no longer waited for.
    const eldest = steps.numberAt(steps.length - 1 - this.#options.incompleteStepWindow) ?? 0
    const isOpen = (step: number): boolean => step >= eldest && (steps.get(step)?.workers.length ?? 0) < numWorkers
    // Some complete steps are listed again, since a page has a thousand keys and steps may arrive in any order.
    let first = Math.max(0, this.#listed.length - RELISTED_FILES)
    // In the order of the steps; files without known content (unreadable or unwanted) can't be late.
    for (const [i, path] of this.#listed.entries()) {
      if (i >= first) break
      const row = this.#rows.get(path)
      if (row !== undefined && (this.#columns.error(row) !== null || isOpen(this.#columns.step(row)))) first = i
    }
    const path = this.#listed[first]
    // Up to the step, without the worker, so that the files of its other workers sort behind it.
    return path === undefined ? null : path.replace(/_[^/]*$/, '')
  }

  /** Reads the new index files. @param isFirst true for the first load @returns true if there was one */
  async load(paths: readonly string[], files: TrialFiles, isFirst: boolean): Promise<boolean> {
    const candidates = await this.#unread(paths, files)
    const duplicates = new Map<string, string>()
    for (const [path, taken] of this.#hasOdd ? files.duplicates : []) {
      if (isInRange(parseIndexFileName(path)!.step, this.#options.rangeSteps)) duplicates.set(path, taken)
    }
    const isChanged = duplicates.size !== this.#duplicates.size
    this.#duplicates = duplicates
    // A file may have counted until its successor came.
    for (const path of duplicates.keys()) this.#rows.delete(path)
    const unread = duplicates.size === 0 ? candidates : candidates.filter(path => !duplicates.has(path))
    const cachedCount = await this.#fromCache(unread, isFirst)
    const isAllCached = cachedCount === unread.length
    const remaining = cachedCount === 0 || isAllCached ? unread : unread.filter(path => !this.#isRead(path))
    const readCount = isAllCached ? 0 : await this.#read(remaining)
    if (readCount > 0 || this.#isCacheOld) this.#writeCache()
    return isChanged || readCount + cachedCount > 0
  }

  #add(path: string, row: number): void {
    this.#hasCSV ||= path.endsWith('.csv')
    this.#rows.set(path, row)
  }

  #isRead(path: string): boolean {
    const row = this.#rows.get(path)
    return row !== undefined && this.#columns.error(row) === null
  }

  /**
   * Adds the cached content of unchanged index files. Stamps are taken before a file is read, so that one that changes during the read is
   * read again next time.
   * @returns the number of files
   */
  async #fromCache(files: UnreadFiles, isFirst: boolean): Promise<number> {
    const { indexCache } = this.#options
    if (indexCache === null || files.length === 0) return 0
    const { store } = this.#access
    const bytes = isFirst ? readFileIfThere(indexCache) : null
    const cache = bytes && decodeIndexCache(store.url(''), bytes)
    const { paths, steps, workers } = files
    const stamps = await indexStamps(store, paths, cache)
    this.#stamps.push(stamps)
    this.#isCacheOld = !stamps.areKnown
    let count = 0
    await countInTurns(paths.length, i => {
      const place = stamps.places[i]!
      if (place < 0) return
      this.#add(paths[i]!, cache!.addTo(this.#columns, place, steps[i]!, workers[i]!))
      count++
    })
    return count
  }

  /** Writes the index files to the cache. */
  #writeCache(): void {
    const { indexCache } = this.#options
    if (indexCache === null) return
    this.#isCacheOld = false
    const columns = this.#columns
    const stamps = new Map<string, Float64Array>()
    for (const looked of this.#stamps) {
      for (const [i, path] of looked.paths.entries()) stamps.set(path, stampAt(looked.stamps, i))
    }
    this.#cacheProblem = null
    const files = stampedFiles(this.#rows, columns, stamps)
    const bytes = encodeIndexCache(this.#access.store.url(''), { files, columns })
    try {
      if (!writeAtOnce(indexCache, [bytes])) throw new Error('it is not a regular file')
    } catch (error) {
      // A full disk loses the cache, not the trial.
      const url = pathToFileURL(indexCache).href
      const cause = (error as Error).cause ?? error
      const reason = cause instanceof Error ? cause.message : String(cause)
      this.#cacheProblem = new StoreError('Unavailable', `${indexCache} can't be written: ${reason}`, { url }, cause)
    }
  }

  /** Index files to be read. */
  async #unread(paths: readonly string[], files: TrialFiles): Promise<UnreadFiles> {
    const unread = new UnreadFiles()
    // One string per worker instead of one per file.
    const workers = new Map<Worker, Worker>()
    let last = ''
    await inTurns(paths, path => {
      const row = this.#rows.get(path)
      if (row !== undefined && this.#columns.error(row) === null) return
      const usual = usualIndexFile(path)
      const name = usual ?? files.indexName(path)
      if (name === null || !isInRange(name.step, this.#options.rangeSteps)) return
      this.#hasOdd ||= usual === null && !isCanonicalPath(path)
      if (name.worker !== last) {
        last = workers.get(name.worker) ?? name.worker
        workers.set(last, last)
      }
      unread.add(path, name.step, last)
    })
    return unread
  }

  /** Starts threads early, if there will be work for them. */
  #startThreads(fileCount: number): void {
    if (!this.isEmpty || this.#options.indexCache !== null || fileCount < MANY_INDEX_FILES || this.#access.isRemote)
      return
    // Errors are reported when there is work.
    this.#access.runner(this.#options.threads, Number.POSITIVE_INFINITY).catch(() => {})
  }

  /** @returns the number of files with new content */
  async #read(files: UnreadFiles): Promise<number> {
    // Requests wait for answers, not for threads, and a few files are read before threads have started.
    const isInline = this.#access.isRemote || files.paths.length < MANY_INDEX_FILES
    const threads = isInline ? 0 : this.#options.threads
    let count = 0
    let next = 0
    for await (const contents of readIndexFiles(files.paths, this.#access, { threads, readsModes: true })) {
      for (const content of contents) {
        const i = next++
        const path = files.paths[i]!
        // It could not be read before, either.
        if (content instanceof Error && this.#rows.get(path) !== undefined) continue
        if (this.#hasCSV && path.endsWith('.json')) this.#rows.delete(path.replace(/json$/, 'csv'))
        const [step, worker] = [files.steps[i]!, files.workers[i]!]
        this.#add(path, this.#columns.addRead(step, worker, content))
        count++
      }
    }
    return count
  }
}

/** The index files for the cache, made into objects one by one. */
function* stampedFiles(
  rows: ReadonlyMap<string, number>,
  columns: IndexColumns,
  stamps: ReadonlyMap<string, Float64Array>,
): Generator<StampedFile> {
  for (const [path, row] of rows) {
    const stamp = stamps.get(path)
    if (stamp && columns.error(row) === null) yield { path, stamp, row: columns.listed(row) }
  }
}

/** The index files that carry another worker's number; they can't be used. */
async function otherWorkersIn(columns: IndexColumns, rows: Int32Array) {
  const steps = new Set<GlobalStep>()
  await countInTurns(rows.length, i => {
    const row = rows[i]!
    if (columns.isCanonical(row) || columns.error(row) !== null) return
    const [step, worker] = [columns.step(row), columns.worker(row)]
    if (otherWorkerOf({ step, worker, content: { eventFile: columns.eventFile(row), tensors: [] } }) !== null)
      steps.add(step)
  })
  const others = new Map<number, { readonly index: OwnedIndex; readonly other: OtherWorker }>()
  if (steps.size === 0) return others
  const rowOf = new Map<OwnedIndex, number>()
  for (const row of rows) {
    if (!steps.has(columns.step(row))) continue
    const content = columns.content(row)
    const index = {
      step: columns.step(row),
      worker: columns.worker(row),
      content: content instanceof Error ? null : content,
    }
    rowOf.set(index, row)
  }
  for (const [index, other] of othersAmong([...rowOf.keys()])) {
    if (other.isFault) others.set(rowOf.get(index)!, { index, other })
  }
  return others
}
