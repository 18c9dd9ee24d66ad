/** Opening a trial: collections and index files from the store into one catalog. */

import { errorFromData, FormatError, MissingCollectionFiles, type TrialscanError } from '../errors.js'
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
  readonly ended: boolean
}

const MAX_COLLECTIONS_BYTES = 256 << 20
/** Index files a job reads. */
const INDEX_FILES_PER_JOB = 256
/** An index file takes about 50 µs; from this many on, threads pay. */
const MANY_INDEX_FILES = 1024

/**
 * Reads all that is known of a trial without reading a tensor. An index file that can't be read is kept as an error
 * in the catalog, not thrown.
 * @throws StoreError if the trial can't be reached, MissingCollectionFiles if there is no trial
 */
export async function readTrial(
  access: Access,
  rangeSteps: StepRange | null,
  threads: number | undefined,
): Promise<TrialContents> {
  const { store } = access
  await store.open()
  const [indexPaths, collectionPaths, ends] = await Promise.all([
    store.list(INDEX_DIRECTORY, { recursive: true }),
    store.list(COLLECTIONS_DIRECTORY, { recursive: true }),
    Promise.all(END_MARKERS.map(marker => store.exists(marker))),
  ])
  const names: { path: string; name: IndexFileName }[] = []
  let tornasole = 0
  for (const path of indexPaths) {
    const name = isTemporary(path) ? null : parseIndexFileName(path)
    if (name === null || !inRange(name.step, rangeSteps)) continue
    if (name.kind === 'json') names.push({ path, name })
    else tornasole++
  }
  if (tornasole > 0 && names.length === 0) {
    const url = store.url(INDEX_DIRECTORY)
    const message = `${url}: expected JSON index files, got ${tornasole} CSV ones: trials of Tornasole are not read yet`
    throw new FormatError('TornasoleTrial', message, { url, expected: 'JSON index files', got: 'CSV index files' })
  }
  const ended = ends.includes(true)
  const collections = await readCollections(access, collectionPaths)
  if (indexPaths.length === 0 && collections === null) {
    const wanted = `a trial: files under ${COLLECTIONS_DIRECTORY}/ and ${INDEX_DIRECTORY}/`
    const hint = ended ? 'the job has ended and saved nothing' : 'neither is there'
    throw new MissingCollectionFiles(store.url(''), `expected ${wanted}, but ${hint}`)
  }
  const entries = await readIndex(access, names, threads)
  return {
    catalog: new Catalog(entries, collections?.numWorkers ?? null, ended),
    collections: collections ?? { collections: new Map(), numWorkers: 0 },
    ended,
  }
}

function inRange(step: number, range: StepRange | null): boolean {
  return range === null || ((range[0] === null || step >= range[0]) && (range[1] === null || step < range[1]))
}

async function readCollections({ store }: Access, paths: readonly string[]): Promise<Collections | null> {
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

async function readIndex(
  access: Access,
  names: readonly { readonly path: string; readonly name: IndexFileName }[],
  threads: number | undefined,
): Promise<IndexEntry[]> {
  const many = names.length >= MANY_INDEX_FILES
  const runner = await access.runner(many ? threads : 0, Number.POSITIVE_INFINITY)
  const jobs: Promise<readonly (TrialscanError | IndexEntry['content'])[]>[] = []
  for (let first = 0; first < names.length; first += INDEX_FILES_PER_JOB) {
    const paths = names.slice(first, first + INDEX_FILES_PER_JOB).map(({ path }) => path)
    const reply = runner.run({ kind: 'index', store: access.spec, paths })
    jobs.push(reply.then(({ files }) => files.map(file => ('code' in file ? errorFromData(file) : file))))
  }
  const contents = (await Promise.all(jobs)).flat()
  return names.map(({ path, name }, i) => ({
    step: name.step,
    worker: name.worker,
    url: access.store.url(path),
    content: contents[i]!,
  }))
}
