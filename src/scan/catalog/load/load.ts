/** Opens and refreshes a trial: reads collections and index files from the store into a catalog. */

import { MissingCollectionFiles, type TrialscanError } from '../../../base/errors.js'
import type { Worker } from '../../../base/types.js'
import type { Collections } from '../../../format/collections.js'
import { COLLECTIONS_DIRECTORY, TORNASOLE_COLLECTIONS_FILE } from '../../../format/paths.js'
import { kindOfPlace } from '../../../format/place-kind.js'
import { isCollectionsFile, isIndexFile, ROOT_FILES, TrialFiles } from '../../../format/trial-files.js'
import type { Access } from '../../runner/access.js'
import { Catalog } from '../catalog.js'
import type { CheckpointFiles, SavedStatistics } from '../checkpoint/checkpoint-files.js'
import type { CheckpointFacts } from '../checkpoint/facts.js'
import type { IndexRows } from '../columns/saved-rows.js'
import { isInRange } from '../step-selection.js'
import {
  allWorkers,
  type FoundCollections,
  missingCollections,
  readCollections,
  readTornasoleCollections,
  summaryOf,
} from './collections.js'
import { IndexedFiles, type IndexedOptions } from './indexed.js'
import { listPlain, noTrial } from './no-trial.js'
import { UnindexedEvents } from './unindexed.js'

export interface TrialContents {
  readonly catalog: Catalog
  readonly collections: Collections
  /** The workers with data or with a collections file (which may not have written yet), sorted. */
  readonly workers: readonly Worker[]
  /** True if the job has ended, and everything it wrote is in the catalog. */
  readonly ended: boolean
  /** The rows of the catalog: from index files or, without them, from event files. */
  readonly index: IndexRows
  /** True for event files without an index that hold several steps each, so that no index file can describe them. */
  readonly isTensorBoard: boolean
  /** Missing or unreadable collections files, bad records in event files without an index, a cache that could not be written. */
  readonly problems: readonly TrialscanError[]
  /** The problems of event files among them. */
  readonly recordProblems: readonly TrialscanError[]
  /** The facts about checkpoints beside their tensors; null if the trial is no checkpoint. */
  readonly checkpoint: CheckpointFacts | null
  /** Notes that are no faults: unfinished checkpoints, files that are not read. */
  readonly notes: readonly string[]
  /** Paths of the files of checkpoints. */
  readonly checkpointFiles: readonly string[]
  /** Statistics that checkpoints have beside the elements of tensors. */
  readonly savedStatistics: readonly SavedStatistics[]
}

export interface LoadOptions extends IndexedOptions {
  /** True to read the last checkpoint of a run although it may be being written, and the head of every chunk. Default: false. */
  readonly readsAll?: boolean
  /** True if an ended trial needs the collections files of all its workers. */
  readonly requireCollections: boolean
  /** True to keep steps that a restart of the training has abandoned. */
  readonly abandonedSteps: boolean
  /** The file that was named instead of a directory; undefined for none. */
  readonly file?: string | undefined
}

/** Loads what is known of a trial without reading tensors, and later what is new. */
export class TrialLoader {
  readonly #access: Access
  readonly #options: LoadOptions
  readonly #index: IndexedFiles
  /** The reader of event files, for a trial without index files. */
  readonly #events: UnindexedEvents
  /** The reader of checkpoints, for a trial without event files; null until it is needed. */
  #checkpoints: CheckpointFiles | null = null
  #collections: { readonly stamp: string; readonly found: FoundCollections | null } | undefined
  #contents: TrialContents | undefined
  /** The collections of the last load, and whether more files may come. */
  #lastCollections: FoundCollections | null = null
  #awaitsCollections = true
  /** The load that will follow the current one. */
  #next: Promise<TrialContents> | undefined
  #current: Promise<unknown> = Promise.resolve()

  constructor(access: Access, options: LoadOptions) {
    this.#access = access
    this.#options = options
    this.#index = new IndexedFiles(access, options)
    this.#events = new UnindexedEvents(
      access,
      options.threads,
      step => isInRange(step, options.rangeSteps),
      options.abandonedSteps,
    )
  }

  /**
   * Lists the trial, and reads index files that are new or were unreadable before, since they may have been incomplete. An unreadable
   * index file is kept as an error in the catalog, not thrown. Without an index, the event files are scanned. Loads run one at a time,
   * since they add to the same entries: calls during a load, which may have listed already, share the next one.
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
    if (this.#options.file !== undefined || this.#checkpoints !== null) return this.#loadCheckpoints(previous ?? null)
    // The end marker is read before the listing, which then has everything that the job wrote before it.
    const root = await this.#lookAtRoot()
    const { ended } = new TrialFiles(root)
    const paths = await this.#index.list(ended, previous?.catalog)
    const files = new TrialFiles([...root, ...paths])
    const isIndexed = !this.#index.isEmpty || paths.some(isIndexFile)
    const isNew = isIndexed
      ? await this.#index.load(paths, files, previous === undefined)
      : await this.#loadEvents(root)
    if (this.#checkpoints !== null) return this.#checkpointContents(this.#checkpoints)
    const mayBeSame = previous !== undefined && !isNew && !ended
    if (mayBeSame && !this.#awaitsCollections) return previous
    const { isTornasole } = files
    const collections = root.includes(TORNASOLE_COLLECTIONS_FILE)
      ? await readTornasoleCollections(store)
      : await this.#readCollections()
    if (mayBeSame && summaryOf(collections) === summaryOf(this.#lastCollections)) return previous
    this.#lastCollections = collections
    if (!isIndexed && this.#events.writer === null && collections === null) {
      if (!ended) throw await noTrial(store, this.#events.everything)
      throw new MissingCollectionFiles(store.url(''), 'expected a trial, but the job has ended and saved nothing')
    }
    const collectionProblems = [
      ...(collections?.problems ?? []),
      ...(ended
        ? missingCollections(store, collections, {
            isExpected: isIndexed && !isTornasole,
            isRequired: this.#options.requireCollections,
          })
        : []),
    ]
    if (collectionProblems[0] && previous === undefined && this.#options.requireCollections) throw collectionProblems[0]
    const isTensorBoard = !isIndexed && this.#events.writer === 'TensorBoard'
    const index = isIndexed ? await this.#index.rows() : this.#events.rows()
    const recordProblems = isIndexed ? [] : this.#events.problems()
    const { numWorkers = null, paths: collectionsPaths = [] } = collections ?? {}
    const tellsWorkers = !isTensorBoard && !isTornasole
    this.#awaitsCollections = tellsWorkers && (numWorkers === null || collectionsPaths.length < numWorkers)
    // Hooks write their collections about their first step. If none are required, or the index is lost, they are awaited only until there
    // is a second step.
    const mayLack = !this.#options.requireCollections || !isIndexed
    const hasGoneOn = mayLack && hasManySteps(index)
    const isUnknown = tellsWorkers && !ended && numWorkers === null && !hasGoneOn
    const catalog = await Catalog.of(index, {
      // TensorBoard runs are independent of each other.
      numWorkers: isTensorBoard ? 1 : isUnknown ? Number.POSITIVE_INFINITY : numWorkers,
      isTornasole,
      ended,
      incompleteStepWindow: this.#options.incompleteStepWindow,
    })
    this.#contents = {
      catalog,
      workers: allWorkers(catalog.workers, collectionsPaths),
      collections: { collections: collections?.collections ?? new Map(), numWorkers: collections?.numWorkers ?? 0 },
      ended,
      index,
      isTensorBoard,
      problems: [
        ...collectionProblems,
        ...this.#index.problems(),
        ...recordProblems,
        ...(this.#index.cacheProblem ? [this.#index.cacheProblem] : []),
      ],
      recordProblems,
      checkpoint: null,
      notes: [],
      checkpointFiles: [],
      savedStatistics: [],
    }
    if (ended) this.#index.clear()
    return this.#contents
  }

  /** The relevant files in the root, requested together, so that one listing answers. */
  async #lookAtRoot(): Promise<readonly string[]> {
    const { store } = this.#access
    const presence = await Promise.all(ROOT_FILES.map(file => store.exists(file)))
    return ROOT_FILES.filter((_, i) => presence[i])
  }

  /** Reads collections files, unless a listing shows that they haven't changed. */
  async #readCollections(): Promise<FoundCollections | null> {
    const { store, isRemote } = this.#access
    const paths = await store.list(COLLECTIONS_DIRECTORY, { recursive: true, expects: isCollectionsFile })
    if (!isRemote) return readCollections(store, paths)
    const stamp = JSON.stringify([paths, ...(await store.stamps(paths))])
    if (this.#collections?.stamp !== stamp) this.#collections = { stamp, found: await readCollections(store, paths) }
    return this.#collections.found
  }

  /** Scans event files if there is no index. @returns true if something was new */
  async #loadEvents(root: readonly string[]): Promise<boolean> {
    const { store } = this.#access
    if (this.#events.writer === 'TensorBoard') return this.#events.load(true)
    const isNew = await this.#events.load(false)
    if (this.#events.writer !== null) return isNew
    const collections = await store.list(COLLECTIONS_DIRECTORY, { recursive: true })
    // A TensorBoard run can be called `collections`, too.
    if (kindOfPlace([...root, ...collections]) === 'smdebug') return isNew
    const everything = await listPlain(store)
    if (kindOfPlace(everything) === 'checkpoint' && (await this.#findCheckpoints(everything))) return true
    return this.#events.load(true, everything)
  }

  /** The number of records of checkpoints that lie in such files alone. */
  recordsIn(isSuch: (path: string) => boolean): number {
    return this.#checkpoints?.recordsIn(isSuch) ?? 0
  }

  /** @returns true if there are checkpoints */
  async #findCheckpoints(paths: readonly string[]): Promise<boolean> {
    const { file, rangeSteps } = this.#options
    // Most trials have none.
    const { CheckpointFiles } = await import('../checkpoint/checkpoint-files.js')
    const isWanted = (step: number): boolean => isInRange(step, rangeSteps)
    const checkpoints = new CheckpointFiles(this.#access, file ?? null, isWanted, this.#options.readsAll ?? false)
    if ((await checkpoints.load(paths)) === null) return false
    this.#checkpoints = checkpoints
    return true
  }

  /** Loads checkpoints, if there are any or one was named. */
  async #loadCheckpoints(previous: TrialContents | null): Promise<TrialContents> {
    const { store } = this.#access
    const { file } = this.#options
    const paths = file === undefined ? await listPlain(store) : await store.list('', { expects: path => path === file })
    const isNew = this.#checkpoints === null ? await this.#findCheckpoints(paths) : await this.#checkpoints.load(paths)
    if (this.#checkpoints === null) throw await noTrial(store, paths)
    return isNew === false && previous !== null ? previous : this.#checkpointContents(this.#checkpoints)
  }

  async #checkpointContents(checkpoints: CheckpointFiles): Promise<TrialContents> {
    const index = await checkpoints.rows()
    const ended = checkpoints.isEnded
    const catalog = await Catalog.of(index, {
      // Ranks are independent of each other; a missing one is among the problems.
      numWorkers: 1,
      isTornasole: false,
      ended,
      incompleteStepWindow: this.#options.incompleteStepWindow,
    })
    this.#contents = {
      catalog,
      workers: catalog.workers,
      collections: { collections: await checkpoints.collections(), numWorkers: 1 },
      ended,
      index,
      isTensorBoard: false,
      problems: checkpoints.problems(),
      recordProblems: [],
      checkpoint: await checkpoints.facts(),
      notes: checkpoints.notes(),
      checkpointFiles: checkpoints.files(),
      savedStatistics: checkpoints.statistics(),
    }
    return this.#contents
  }
}

/** True if the files are of more than one step. */
function hasManySteps({ columns, rows }: IndexRows): boolean {
  return rows.some(row => columns.step(row) !== columns.step(rows[0]!))
}
