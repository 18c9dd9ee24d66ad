/** Opening and refreshing a trial: collections and index files from the store into one catalog. */

import { errorFromData, FormatError, MissingCollectionFiles } from '../errors.js'
import { type Collections, mergeCollections, parseCollections } from '../format/collections.js'
import {
  COLLECTIONS_DIRECTORY,
  END_MARKERS,
  INDEX_DIRECTORY,
  type IndexFileName,
  isTemporary,
  parseCollectionsFileName,
  parseIndexFileName,
} from '../format/paths.js'
import type { Access } from './access.js'
import { Catalog, type IndexEntry } from './catalog.js'

/** Steps `[begin, end)`; null: no limit on that side. */
export type StepRange = readonly [begin: number | null, end: number | null]

export interface TrialContents {
  readonly catalog: Catalog
  readonly collections: Collections
  /** Whether the job has ended, and everything it wrote is in the catalog. */
  readonly ended: boolean
}

export interface LoadOptions {
  readonly rangeSteps: StepRange | null
  readonly threads: number | undefined
  /** Incomplete steps after the last complete one before the eldest of them count as complete. */
  readonly incompleteStepWindow: number
}

const MAX_COLLECTIONS_BYTES = 256 << 20
/** Index files a job reads. */
const INDEX_FILES_PER_JOB = 256
/** An index file takes about 50 µs; from this many on, threads pay. */
const MANY_INDEX_FILES = 1024

/** Reads what is known of a trial without reading a tensor, and later what has come since. */
export class TrialLoader {
  readonly #access: Access
  readonly #options: LoadOptions
  /** By path. */
  readonly #entries = new Map<string, IndexEntry>()
  #contents: TrialContents | undefined

  constructor(access: Access, options: LoadOptions) {
    this.#access = access
    this.#options = options
  }

  /**
   * Lists the trial, reads the index files that are new, and those that could not be read before: they may have been
   * looked at while they were written. An index file that can't be read is kept as an error in the catalog, not thrown.
   * @returns the same object as before if nothing is new
   * @throws StoreError if the trial can't be reached, MissingCollectionFiles if there is none
   */
  async load(): Promise<TrialContents> {
    const previous = this.#contents
    if (previous?.ended) return previous
    const { store } = this.#access
    if (previous === undefined) await store.open()
    // The end marker is looked for before the listing: what the job wrote before it is then in the listing.
    const ended = (await Promise.all(END_MARKERS.map(marker => store.exists(marker)))).includes(true)
    const paths = await store.list(INDEX_DIRECTORY, { recursive: true })
    const fresh = this.#unread(paths)
    if (previous !== undefined && fresh.length === 0 && !ended) return previous
    const read = (await this.#read(fresh)).filter(
      ({ path, content }) => !(content instanceof Error && this.#entries.has(path)),
    )
    if (previous !== undefined && read.length === 0 && !ended) return previous
    const collections = await readCollections(this.#access)
    if (paths.length === 0 && collections === null) {
      const wanted = `a trial: files under ${COLLECTIONS_DIRECTORY}/ and ${INDEX_DIRECTORY}/`
      const hint = ended ? 'the job has ended and saved nothing' : 'neither is there'
      throw new MissingCollectionFiles(store.url(''), `expected ${wanted}, but ${hint}`)
    }
    for (const entry of read) this.#entries.set(entry.path, entry)
    this.#contents = {
      catalog: new Catalog([...this.#entries.values()], {
        numWorkers: collections?.numWorkers ?? null,
        ended,
        incompleteStepWindow: this.#options.incompleteStepWindow,
      }),
      collections: collections ?? { collections: new Map(), numWorkers: 0 },
      ended,
    }
    return this.#contents
  }

  #unread(paths: readonly string[]): { path: string; name: IndexFileName }[] {
    const unread: { path: string; name: IndexFileName }[] = []
    let tornasole = 0
    for (const path of paths) {
      const known = this.#entries.get(path)
      if (known !== undefined && !(known.content instanceof Error)) continue
      const name = isTemporary(path) ? null : parseIndexFileName(path)
      if (name === null || !isInRange(name.step, this.#options.rangeSteps)) continue
      if (name.kind === 'json') unread.push({ path, name })
      else tornasole++
    }
    if (tornasole > 0 && unread.length === 0) {
      const url = this.#access.store.url(INDEX_DIRECTORY)
      const message = `${url}: expected JSON index files, got ${tornasole} CSV ones: trials of Tornasole are not read yet`
      throw new FormatError('TornasoleTrial', message, { url, expected: 'JSON index files', got: 'CSV index files' })
    }
    return unread
  }

  async #read(files: readonly { readonly path: string; readonly name: IndexFileName }[]): Promise<IndexEntry[]> {
    const many = files.length >= MANY_INDEX_FILES
    const runner = await this.#access.runner(many ? this.#options.threads : 0, Number.POSITIVE_INFINITY)
    const jobs: Promise<readonly IndexEntry['content'][]>[] = []
    for (let first = 0; first < files.length; first += INDEX_FILES_PER_JOB) {
      const paths = files.slice(first, first + INDEX_FILES_PER_JOB).map(({ path }) => path)
      const reply = runner.run({ kind: 'index', store: this.#access.spec, paths })
      jobs.push(reply.then(answer => answer.files.map(file => ('code' in file ? errorFromData(file) : file))))
    }
    const contents = (await Promise.all(jobs)).flat()
    return files.map(({ path, name }, i) => ({
      path,
      step: name.step,
      worker: name.worker,
      url: this.#access.store.url(path),
      content: contents[i]!,
    }))
  }
}

/** Whether a step lies within a range; null is all steps. */
export function isInRange(step: number, range: StepRange | null): boolean {
  return range === null || ((range[0] === null || step >= range[0]) && (range[1] === null || step < range[1]))
}

async function readCollections({ store }: Access): Promise<Collections | null> {
  const paths = await store.list(COLLECTIONS_DIRECTORY, { recursive: true })
  const files = paths.filter(path => !isTemporary(path) && parseCollectionsFileName(path) !== null)
  const decoder = new TextDecoder()
  const ofWorkers = await Promise.all(
    files.map(async path => {
      const bytes = await store.read(path, { maxByteLength: MAX_COLLECTIONS_BYTES })
      return parseCollections(decoder.decode(bytes), store.url(path))
    }),
  )
  return ofWorkers.length === 0 ? null : mergeCollections(ofWorkers)
}
