/** The index files of a trial that is copied: the content of each, or what can be recovered. */

import { normalize } from 'node:path/posix'
import { pathOfUrl, TrialscanError } from '../../base/errors.js'
import type { GlobalStep, Worker } from '../../base/types.js'
import { type IndexFile, parseIndexFile } from '../../format/index-file.js'
import { othersAmong, otherWorkerError } from '../../format/index-owner.js'
import { parseJsonObject } from '../../format/json.js'
import { indexFilePath, parseEventFileName, parseIndexFileName } from '../../format/paths.js'
import { IndexColumns } from '../../scan/catalog/columns/index-columns.js'
import { NO_LIST } from '../../scan/catalog/columns/tensor-lists.js'
import { MAX_INDEX_BYTES, type ReadIndexFile } from '../../scan/job/index-job.js'
import { readIndexFiles } from '../../scan/runner/index-reading.js'
import { isFaultOfJob } from '../../scan/runner/runner.js'
import type { Store } from '../../storage/store.js'
import type { RepairContext, RepairSource } from './context.js'
import { nameKey, type SortedFiles } from './files.js'
import type { KnownIndex } from './plan/known.js'

export const NO_INDEX = 'there was no index file'

/** An index file, or one that is missing. */
export interface IndexSource extends KnownIndex {
  /** The path of the index file, existing or to be written. */
  readonly path: string
  readonly step: GlobalStep
  readonly worker: Worker
  /** The number of the list of tensors and shapes; equal lists have equal numbers. `NO_LIST` if there is none, or it can't be read. */
  readonly list: number
  /** The path of the event file that the index file names, or where it was found. */
  readonly eventFile: string | null
  /** The event file named after its step and worker, if the index file names another one. */
  readonly eventPath?: string
  /** The reason why it can't be kept as it is; null if none is known so far. */
  readonly fault: string | null
  /** True if it may have lost more entries than can be listed. */
  readonly isTorn: boolean
  /** For an unreadable index file: true if it has entries. */
  readonly hasEntries?: boolean
}

/** Reads all index files. @throws errors of the store; those of a file become part of the result */
export async function readIndexSources(
  { index, eventsByName }: SortedFiles,
  context: RepairContext,
): Promise<IndexSource[]> {
  const sources: IndexSource[] = []
  // Equal lists that are read soon after each other, as through links, are stored once.
  const columns = new IndexColumns()
  for await (const contents of readIndexFiles(index, context.access, context)) {
    const first = sources.length
    const some = contents.map((content, i) => indexSource(index[first + i]!, content, columns, eventsByName, context))
    sources.push(...(await Promise.all(some)))
  }
  return withTrueOwners(sources, eventsByName, context.access.store)
}

/** Gives index files that carry another worker's number the content of the one that names their event file, or none. */
function withTrueOwners(
  indexes: readonly IndexSource[],
  eventsByName: ReadonlyMap<string, string>,
  store: Store,
): IndexSource[] {
  const others = [...othersAmong(indexes)].filter(([, { isFault }]) => isFault)
  if (others.length === 0) return [...indexes]
  const faults = new Map(others)
  const byEventFile = new Map(others.map(([{ eventFile, content, list }]) => [eventFile, { content, list }]))
  return indexes.map(index => {
    const other = faults.get(index)
    if (other === undefined) return index
    const { path, step, worker, content: said } = index
    const eventFile = eventsByName.get(nameKey(step, worker)) ?? null
    const { content, list } = byEventFile.get(eventFile) ?? { content: null, list: NO_LIST }
    const isTorn = content === null && said!.shapes.length > 0
    const fault = otherWorkerError(pathOfUrl(store.url(path)), index, other).message
    return { ...index, content, list, eventFile, fault, isTorn, hasEntries: true }
  })
}

async function indexSource(
  path: string,
  read: ReadIndexFile | TrialscanError,
  columns: IndexColumns,
  eventsByName: ReadonlyMap<string, string>,
  { access: { store }, source }: RepairContext,
): Promise<IndexSource> {
  const { step, worker, kind } = parseIndexFileName(path)!
  const row = columns.addRead(step, worker, read)
  const [content, list] = [columns.content(row), columns.list(row)]
  const tellsMode = kind === 'json'
  const named = eventsByName.get(nameKey(step, worker)) ?? null
  if (content instanceof TrialscanError) {
    source.expectTold(path, content.toJSON())
    // A file whose parsing killed a thread is not parsed again.
    const rest = isFaultOfJob(content) ? { saved: null, isTorn: true } : await save(path, store, source)
    return { path, step, worker, content: null, list, ...rest, tellsMode, eventFile: named, fault: content.message }
  }
  const namedEventFile = content.eventFile === null ? null : normalize(content.eventFile)
  return {
    path,
    step,
    worker,
    content,
    list,
    saved: null,
    tellsMode,
    eventFile: namedEventFile,
    fault: null,
    isTorn: false,
  }
}

/** Recovers what is readable on its own in a damaged index file: mode and shapes. */
async function save(
  path: string,
  store: Store,
  source: RepairSource,
): Promise<Pick<IndexSource, 'saved' | 'isTorn' | 'hasEntries'>> {
  if (path.endsWith('.csv')) return { saved: null, isTorn: false, hasEntries: true }
  const url = store.url(path)
  try {
    const bytes = await store.read(path, { maxByteLength: MAX_INDEX_BYTES, isText: true })
    const file = parseJsonObject(new TextDecoder().decode(bytes), url, 'BadIndexFile')
    const { meta, tensor_payload = [], shape_payload = [] } = file
    const hasEntries = !Array.isArray(tensor_payload) || tensor_payload.length > 0
    // The records have the tensors; the event file is known by its name.
    const { mode, mode_step } = (meta ?? {}) as Record<string, unknown>
    const read = (said: object): IndexFile | null => {
      try {
        return parseIndexFile(JSON.stringify({ meta: said, tensor_payload: [], shape_payload }), url)
      } catch {
        return null
      }
    }
    const saved = read({ mode, mode_step })
    if (saved !== null) return { saved, isTorn: false, hasEntries }
    // The mode is lost. The shapes may still be readable.
    const shapes = read({ mode: 'GLOBAL', mode_step: 0 })?.shapes
    return { saved: null, isTorn: shapes === undefined || shapes.length > 0, hasEntries }
  } catch (error) {
    if (!(error instanceof TrialscanError)) throw error
    source.expectTold(path, error.toJSON())
    return { saved: null, isTorn: true }
  }
}

/** The index file that an event file lacks. */
export function missingIndex(path: string): IndexSource {
  const { step, worker } = parseEventFileName(path)!
  const nothing = { content: null, list: NO_LIST, saved: null, tellsMode: true, fault: NO_INDEX, isTorn: false }
  return { path: indexFilePath(step, worker), step, worker, eventFile: path, ...nothing }
}
