/** A clean copy of a trial: what is whole is copied, what is not is left out and told of. */

import { normalize } from 'node:path/posix'
import { setTimeout } from 'node:timers/promises'
import { STAMP_LENGTH } from '../catalog/index-cache.js'
import { listEverything, noTrial } from '../catalog/no-trial.js'
import {
  type ErrorData,
  errorFromData,
  FormatError,
  MissingCollectionFiles,
  pathOfUrl,
  quote,
  type StoreError,
  TrialscanError,
  tellsOfFile,
} from '../errors.js'
import { type IndexFile, indexFileText, parseIndexFile } from '../format/index-file.js'
import { othersAmong, otherWorkerError } from '../format/index-owner.js'
import { parseJsonObject } from '../format/json.js'
import {
  COLLECTIONS_DIRECTORY,
  END_MARKERS,
  EVENTS_DIRECTORY,
  INDEX_DIRECTORY,
  indexFilePath,
  isPartOfTrial,
  isTemporary,
  isTensorBoardFile,
  parseEventFileName,
  parseIndexFileName,
  TORNASOLE_COLLECTIONS_FILE,
} from '../format/paths.js'
import {
  parseTornasoleCollections,
  parseTornasoleIndex,
  tornasoleIndexText,
  tornasoleText,
} from '../format/tornasole.js'
import { describeDuplicate, isPartDirectory, TrialFiles } from '../format/trial-files.js'
import type { CopiedFile } from '../job/copy.js'
import { DisjointSets } from '../job/disjoint-sets.js'
import { checkOptions, kinds, optionsOf } from '../options.js'
import { Access, WORK_OPTIONS, type WorkOptions } from '../runner/access.js'
import { runOnFiles } from '../runner/failed-job.js'
import { chunksOf, pumpAll } from '../runner/pump.js'
import { isFaultOfJob, type Runner, runTwice } from '../runner/runner.js'
import { OutputDirectory } from '../store/local/output.js'
import { openStore, storeSpec } from '../store/open.js'
import { S3_OPTIONS } from '../store/s3/options.js'
import type { S3Options } from '../store/s3/spec.js'
import type { Store } from '../store/store.js'
import type { GlobalStep, Worker } from '../types.js'
import { repairCollections } from './collections.js'
import { type FilePlan, type FoundFile, type KnownIndex, planFile } from './file.js'
import { findRecords } from './find.js'
import { type LeftOut, RepairNotes, type RepairReport } from './report.js'

export interface RepairOptions extends Pick<WorkOptions, 'threads'> {
  /**
   * Give every record the true checksum of its payload; smdebug leaves it out by default. Default: records are copied byte
   * for byte.
   */
  readonly checksums?: boolean
  /** Follow symbolic links out of the trial's directory. Default: what they lead to is left out. */
  readonly allowSymlinks?: boolean
  /** How to reach and read a trial on S3. See docs/s3.md. */
  readonly s3?: S3Options
  /** Ends the repair; nothing is left of the copy then. */
  readonly signal?: AbortSignal
  /**
   * Called with the path of the directory in which the copy grows, before anything is written: whoever ends the process
   * without waiting can remove it. It is gone once the promise is settled.
   */
  readonly onTemporary?: (directory: string) => void
}

const OPTIONS = optionsOf<RepairOptions>({
  threads: WORK_OPTIONS.threads,
  checksums: kinds.flag,
  allowSymlinks: kinds.flag,
  s3: S3_OPTIONS,
  signal: kinds.signal,
  onTemporary: kinds.callback(),
})

/** Index files that a job reads, and event files at the most. */
const INDEX_FILES_PER_JOB = 256
const EVENT_FILES_PER_JOB = 32
const MAX_INDEX_BYTES = 256 << 20

/** Event files that are looked at together since their index files name one another's. */
const MAX_ENTANGLED = 10_000

/** What is written within one tick of a file system's clock has one time: 10 ms at the most, and as much again. */
const CLOCK_TICK_MS = 20
/** S3 tells seconds, perhaps. */
const REMOTE_CLOCK_TICK_MS = 1000

const NO_INDEX = 'there was no index file'

/** An index file, or one that is missing. */
interface IndexSource extends KnownIndex {
  /** Where it is, or is to be written. */
  readonly path: string
  readonly step: GlobalStep
  readonly worker: Worker
  /** Where it says that the event file is, or where that was found. */
  readonly eventFile: string | null
  /** The event file that has the name of its step and worker, where it says another. */
  readonly own?: string
  /** Why it can't stay as it is; null: it can, as far as is known yet. */
  readonly fault: string | null
  /** Whether more may be lost of it than can be told. */
  readonly isTorn: boolean
  /** Of one that can't be read: whether it tells of records. */
  readonly hasEntries?: boolean
}

/** An event file and the index files that speak of it; null: index files of no event file. */
interface Group {
  readonly path: string | null
  /** An index file calls that its event file which is another part of the trial, or is not finished. */
  readonly isOther?: boolean
  indexes: IndexSource[]
}

/**
 * Writes a clean copy of a trial: records that are whole, index files that tell of just these, collections files and end
 * marker. The trial itself is only read. The copy has its name when it is whole; before, and after an error, there is none.
 * @param path a local directory, its `file://` URL, or `s3://bucket/prefix`
 * @param out the copy: a local directory that is not there yet or is empty, outside of the trial
 * @throws as `createTrial` for what is no trial; StoreError if the copy can't be written, or a store can't be reached;
 *   UsageError for a copy in the trial, or in a directory that holds something. What is wrong in the trial is no error.
 */
export async function repairTrial(path: string, out: string, options?: RepairOptions): Promise<RepairReport> {
  const asked = checkOptions('repairTrial', OPTIONS, options)
  const { allowSymlinks = false, checksums = false, s3, signal, threads, onTemporary } = asked
  const spec = storeSpec(path, { allowSymlinks, ...(s3 && { s3 }) })
  const access = new Access(openStore(spec), spec)
  try {
    await access.store.open()
    const output = await OutputDirectory.create(out, spec.kind === 'local' ? spec.root : null)
    try {
      onTemporary?.(output.root)
      const repair = new Repair(access, output, { checksums, threads, signal })
      const notes = await repair.run()
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

const NO_EVENT_FILE: ErrorData = {
  name: 'FormatError',
  code: 'EventFileMissing',
  message: 'an index file calls it its event file, which it is not',
  fields: { url: '' },
}

const NAME_TOO_LONG: ErrorData = {
  name: 'StoreError',
  code: 'NameTooLong',
  message: 'its path would be longer than a path can be, where the copy is made',
  fields: { url: '' },
}

const UNSAFE_NAME = { code: 'UnsafePath', message: 'its path is not such as every disk can have' } as const

const NAMES_ANOTHER = { code: 'BadIndexEntry', message: 'the index file of its step does not name it' } as const

interface WorkingOptions {
  readonly checksums: boolean
  readonly threads: number | undefined
  readonly signal: AbortSignal | undefined
}

class Repair {
  readonly #access: Access
  readonly #store: Store
  readonly #output: OutputDirectory
  readonly #options: WorkingOptions
  readonly #notes = new RepairNotes()
  /** Whether it is TensorBoard's: event files, and no index. */
  #isPlain = false
  /** Steps and workers that have an index file, or are to get one. */
  readonly #known = new Set<string>()
  #superseded: ReadonlySet<string> = new Set()
  #listed: ReadonlySet<string> = new Set()
  /** What was there to be read. */
  readonly #there = new Set<string>()

  constructor(access: Access, output: OutputDirectory, options: WorkingOptions) {
    this.#access = access
    this.#store = access.store
    this.#output = output
    this.#options = options
  }

  async run(): Promise<RepairNotes> {
    const parts = [INDEX_DIRECTORY, EVENTS_DIRECTORY, COLLECTIONS_DIRECTORY]
    const unlisted: [path: string, error: StoreError][] = []
    const onError = (path: string, error: StoreError): void => void unlisted.push([path, error])
    const expects = (path: string): boolean => path.includes('/') && !isTemporary(path) && isPartOfTrial(path)
    const files = sortFiles(await listEverything(this.#store, { expects, onError }))
    this.#listed = files.all
    const { isTornasole, isPlain, plain } = files
    this.#superseded = files.superseded
    this.#isPlain = isPlain
    if (isPlain && plain.length === 0) throw await noTrial(this.#store, [...files.all])
    const copied = isPlain ? plain : [...files.index, ...files.events, ...files.collections, ...files.root]
    const stamps = await this.#stamp(copied)
    for (const [path, error] of unlisted) {
      const isOdd = error.code === 'NotAFile' || error.code === 'NotFound'
      const isPart = isPlain
        ? !isOdd || isTensorBoardFile(path)
        : isOdd
          ? isPartOfTrial(path) || isPartDirectory(path)
          : parts.includes(path.split('/', 1)[0]!)
      if (isPart) {
        this.#expectTold(path, error.toJSON())
        this.#leaveOutFile(path, error)
      } else this.#notes.ignore(path)
    }
    const indexes = await this.#readIndexes(files)
    const groups = isPlain ? plain.map(path => ({ path, indexes: [] })) : this.#group(files, indexes)
    // One that comes meanwhile would be told of as missing.
    const missing = groups.flatMap(({ path }) => (path === null || files.all.has(path) ? [] : path))
    const known = { paths: [...copied, ...missing], stamps: [...stamps, ...(await this.#store.stamps(missing))] }
    const read = new Set(groups.map(({ path }) => path))
    for (const path of files.unsafe) {
      if (isPlain ? isTensorBoardFile(path) : !isTensorBoardFile(path)) this.#leaveOutFile(path, UNSAFE_NAME)
      else this.#notes.ignore(path)
    }
    for (const [path, taken] of files.duplicates) {
      const { expected, got } = describeDuplicate(path, taken)
      this.#leaveOutFile(path, { code: 'DuplicateFile', message: `expected ${expected}, got ${got}` })
    }
    for (const path of files.others) if (!read.has(path) && !this.#superseded.has(path)) this.#notes.ignore(path)
    await this.#copyGroups(groups, isTornasole)
    const workers = new Set(indexes.map(({ worker }) => worker))
    for (const { indexes } of groups) for (const { worker } of indexes) workers.add(worker)
    const areExpected = !isTornasole && END_MARKERS.some(marker => files.root.includes(marker))
    const expectTold = (path: string, error: ErrorData): void => this.#expectTold(path, error)
    const context = { store: this.#store, output: this.#output, notes: this.#notes, areExpected, expectTold }
    if (!isPlain) await repairCollections(files.collections, [...workers].sort(), context)
    await this.#copyRoot(files.root.filter(path => !END_MARKERS.includes(path)))
    if (!this.#notes.hasKept) {
      const found = 'there is none: nothing is left to copy'
      throw new MissingCollectionFiles(this.#store.url(''), `expected event files with a whole record, but ${found}`)
    }
    await this.#copyRoot(files.root.filter(path => END_MARKERS.includes(path)))
    await this.#expectUnchanged(known.paths, known.stamps)
    return this.#notes
  }

  /** What files are like before they are read, such that whatever is changed later is seen to be. */
  async #stamp(paths: readonly string[]): Promise<Float64Array> {
    const stamps = await this.#store.stamps(paths)
    for (const [i, path] of paths.entries()) if (!Number.isNaN(stamps[i * STAMP_LENGTH])) this.#there.add(path)
    const tickMs = this.#access.isRemote ? REMOTE_CLOCK_TICK_MS : CLOCK_TICK_MS
    const recently = Date.now() - tickMs
    const isTime = (i: number): boolean => (this.#access.isRemote ? i % STAMP_LENGTH === 1 : i % STAMP_LENGTH > 0)
    if (!stamps.some((time, i) => isTime(i) && time > recently)) return stamps
    const { signal } = this.#options
    await setTimeout(tickMs, undefined, signal && { signal }).catch(() => signal?.throwIfAborted())
    return stamps
  }

  /** A file is read twice, and others tell of it: of one that has changed meanwhile nothing in the copy can be trusted. */
  async #expectUnchanged(paths: readonly string[], before: readonly number[]): Promise<void> {
    const expectSame = async (there: ReadonlySet<string>): Promise<void> => {
      const after = await this.#store.stamps(paths)
      const at = paths.findIndex((path, i) => {
        const [from, end] = [i * STAMP_LENGTH, (i + 1) * STAMP_LENGTH]
        if (there.has(path) !== this.#listed.has(path)) return true
        return after.subarray(from, end).some((number, j) => !Object.is(number, before[from + j]))
      })
      if (at >= 0) throw this.#changed(paths[at]!, 'one that has changed meanwhile')
    }
    await expectSame(this.#listed)
    // What a store of objects tells it has from what was read, and from their listing.
    if (this.#access.isRemote) await expectSame(new Set(await this.#store.list('', { recursive: true })))
  }

  #changed(path: string, got: string): FormatError {
    const url = this.#store.url(path)
    const expected = 'a file that stays as it is while the trial is copied'
    return new FormatError('FileChanged', `${pathOfUrl(url)}: expected ${expected}, got ${got}`, { url, expected, got })
  }

  /**
   * What could not be had is not lost: a copy without it would say so.
   * @throws the error, unless it tells what the file is
   */
  #expectTold(path: string, error: ErrorData): void {
    if (!tellsOfFile(error)) throw errorFromData(error)
    if (error.code === 'NotFound' && this.#there.has(path)) throw this.#changed(path, 'none any more')
  }

  // ------------------------------------------------------------------------------------------------------ index files

  async #readIndexes({ index, eventsByName }: SortedFiles): Promise<IndexSource[]> {
    const runner = await this.#runner(index.length > 4 * INDEX_FILES_PER_JOB ? Number.POSITIVE_INFINITY : 0)
    const { signal } = this.#options
    const read = async (paths: readonly string[]): Promise<readonly IndexSource[]> => {
      // Tornasole's are read here: a job would read the mode out of their event files, too.
      const json = paths.filter(path => path.endsWith('.json'))
      const contents = await runOnFiles(
        json,
        some => runTwice(runner, { kind: 'index', store: this.#access.spec, paths: some }, signal),
        path => this.#store.url(path),
      )
      const ofPath = new Map(json.map((path, i) => [path, contents[i]!]))
      return Promise.all(paths.map(path => this.#indexSource(path, ofPath.get(path), eventsByName)))
    }
    const sources: IndexSource[] = []
    for await (const some of this.#pump(chunksOf(index, INDEX_FILES_PER_JOB), read, runner)) sources.push(...some)
    return this.#withOwners(sources, eventsByName)
  }

  /** Index files whose numbers are another worker's: each has what the one says that names its event file, or nothing. */
  #withOwners(indexes: readonly IndexSource[], eventsByName: ReadonlyMap<string, string>): IndexSource[] {
    const others = [...othersAmong(indexes)].filter(([, { isFault }]) => isFault)
    if (others.length === 0) return [...indexes]
    const faults = new Map(others)
    const byEventFile = new Map(others.map(([{ eventFile, content }]) => [eventFile, content]))
    return indexes.map(index => {
      const other = faults.get(index)
      if (other === undefined) return index
      const { path, step, worker, content: said } = index
      const eventFile = eventsByName.get(nameKey(step, worker)) ?? null
      const content = (eventFile !== null && byEventFile.get(eventFile)) || null
      const isTorn = content === null && said!.shapes.length > 0
      const fault = otherWorkerError(pathOfUrl(this.#store.url(path)), index, other).message
      return { ...index, content, eventFile, fault, isTorn, hasEntries: true }
    })
  }

  async #indexSource(
    path: string,
    read: IndexFile | TrialscanError | undefined,
    eventsByName: ReadonlyMap<string, string>,
  ): Promise<IndexSource> {
    const { step, worker, kind } = parseIndexFileName(path)!
    const tellsMode = kind === 'json'
    const named = eventsByName.get(nameKey(step, worker)) ?? null
    const content = read ?? (await this.#readTornasoleIndex(path, step))
    if (content instanceof TrialscanError) {
      this.#expectTold(path, content.toJSON())
      // What has cost threads their lives is not tried on this one.
      const left = isFaultOfJob(content) ? { saved: null, isTorn: true } : await this.#save(path)
      return { path, step, worker, content: null, ...left, tellsMode, eventFile: named, fault: content.message }
    }
    const asked = content.eventFile === null ? null : normalize(content.eventFile)
    return { path, step, worker, content, saved: null, tellsMode, eventFile: asked, fault: null, isTorn: false }
  }

  async #readTornasoleIndex(path: string, step: GlobalStep): Promise<IndexFile | TrialscanError> {
    try {
      const bytes = await this.#store.read(path, { maxByteLength: MAX_INDEX_BYTES })
      const url = this.#store.url(path)
      const { eventFile, tensors } = parseTornasoleIndex(tornasoleText(bytes, url), url)
      return { mode: 'GLOBAL', modeStep: step, eventFile, tensors, shapes: [] }
    } catch (error) {
      if (error instanceof TrialscanError) return error
      throw error
    }
  }

  /** What stands for itself in an index file that is not all right: mode and shapes. */
  async #save(path: string): Promise<Pick<IndexSource, 'saved' | 'isTorn' | 'hasEntries'>> {
    if (path.endsWith('.csv')) return { saved: null, isTorn: false, hasEntries: true }
    const url = this.#store.url(path)
    try {
      const bytes = await this.#store.read(path, { maxByteLength: MAX_INDEX_BYTES, isText: true })
      const file = parseJsonObject(new TextDecoder().decode(bytes), url, 'BadIndexFile')
      const { meta, tensor_payload = [], shape_payload = [] } = file
      const hasEntries = !Array.isArray(tensor_payload) || tensor_payload.length > 0
      // The tensors stand in the records, and the event file is known by its name.
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
      // Not the mode, then; but there may be nothing else to lose.
      const shapes = read({ mode: 'GLOBAL', mode_step: 0 })?.shapes
      return { saved: null, isTorn: shapes === undefined || shapes.length > 0, hasEntries }
    } catch (error) {
      if (!(error instanceof TrialscanError)) throw error
      this.#expectTold(path, error.toJSON())
      return { saved: null, isTorn: true }
    }
  }

  /** Brings event files and index files together. */
  #group({ all, events, eventsByName, others }: SortedFiles, indexes: readonly IndexSource[]): Group[] {
    const there = new Set([...events, ...others.filter(path => !isTemporary(path) && isPlainPath(path))])
    const groups = new Map<string | null, Group>()
    const groupOf = (path: string | null): Group => {
      const isOther = path !== null && !there.has(path) && all.has(path)
      const group = groups.get(path) ?? { path, isOther, indexes: [] }
      groups.set(path, group)
      return group
    }
    for (const { step, worker } of indexes) this.#known.add(nameKey(step, worker))
    const named = new Set(indexes.map(({ eventFile }) => eventFile))
    for (const index of indexes) {
      const { step, worker, content, eventFile } = index
      const own = eventsByName.get(nameKey(step, worker))
      if (content === null || own === undefined || eventFile === own) groupOf(eventFile).indexes.push(index)
      else if (eventFile !== null && !there.has(eventFile)) {
        // It has the right name; what the index file calls it is wrong.
        groupOf(own).indexes.push(this.#ownOf(index, own))
      } else if (eventFile !== null || !named.has(own)) {
        // Which of them is right the records tell.
        groupOf(eventFile ?? own).indexes.push({ ...index, own })
        groupOf(own)
      } else groupOf(null).indexes.push(index)
    }
    for (const path of events) {
      if (groups.has(path)) continue
      const { step, worker } = parseEventFileName(path)!
      const key = nameKey(step, worker)
      const own = eventsByName.get(key)!
      if (this.#known.has(key) || (own !== path && !groups.has(own))) this.#leaveOutFile(path, NAMES_ANOTHER)
      else groupOf(path).indexes.push(missingIndex(path))
      this.#known.add(key)
    }
    return [...groups.values()].sort((a, b) => ((a.path ?? '') < (b.path ?? '') ? -1 : 1))
  }

  /** An index file that names another event file than its own, turned to that. */
  #ownOf(index: IndexSource, own: string): IndexSource {
    const fault = `${pathOfUrl(this.#store.url(index.path))}: expected the name of its event file, got ${quote(index.eventFile ?? 'nothing')}`
    const { own: _, ...rest } = index
    return { ...rest, eventFile: own, fault }
  }

  /**
   * Has index files that name another event file than that of their step and worker, or none, follow their records: they
   * move to their own where that holds as much of what they tell of, and the other nothing, or it is that of another index
   * file and nobody else names theirs. An event file that is left without any gets a new one.
   * @param found what the groups' files hold
   */
  #settle(groups: readonly Group[], found: readonly (FoundFile | ErrorData)[]): void {
    const byPath = new Map(groups.map((group, i) => [group.path, { group, tells: tellsOf(found[i]!) }]))
    const pass = (isToMove: (index: IndexSource, group: Group, own: Group) => boolean): void => {
      const moved: [to: Group, index: IndexSource][] = []
      for (const group of groups) {
        group.indexes = group.indexes.filter(index => {
          const own = index.own === undefined ? undefined : byPath.get(index.own)?.group
          if (own === undefined || !isToMove(index, group, own)) return true
          // What it says of the mode is as little about that one.
          moved.push([own, { ...this.#ownOf(index, index.own!), tellsMode: false, isMoved: true }])
          return false
        })
      }
      for (const [to, index] of moved) to.indexes.push(index)
    }
    const tells = (index: IndexSource, { path }: Group): number => byPath.get(path)!.tells(index)
    for (const [i, group] of groups.entries()) {
      const file = found[i]!
      const isEmpty = 'code' in file || file.records.length === 0
      group.indexes = group.indexes.map(index => {
        if (index.own === undefined || index.eventFile !== null) return index
        const { own, ...rest } = index
        return isEmpty ? rest : this.#ownOf(index, own)
      })
    }
    pass((index, group) => tells(index, group) === 0)
    const hasOwn = new Set(groups.filter(({ indexes }) => indexes.some(({ own }) => own === undefined)))
    const isFree = new Set(groups.filter(({ indexes }) => indexes.length === 0))
    pass((index, group, own) => {
      if (!hasOwn.has(group) || tells(index, own) < tells(index, group)) return false
      return isFree.delete(own)
    })
    for (const group of groups) {
      const name = group.indexes.length === 0 ? parseEventFileName(group.path!) : null
      if (name === null || this.#known.has(nameKey(name.step, name.worker))) continue
      this.#known.add(nameKey(name.step, name.worker))
      group.indexes = [missingIndex(group.path!)]
    }
  }

  // ------------------------------------------------------------------------------------------------------ event files

  async #copyGroups(groups: readonly Group[], isTornasole: boolean): Promise<void> {
    let total = 0
    const withFile: Group[] = []
    for (const group of groups) {
      if (group.path === null) await this.#writeIndexes(group, null)
      else withFile.push(group)
    }
    for (const { path } of withFile) total += await this.#store.byteLength(path!).catch(() => 0)
    const runner = await this.#runner(withFile.length > 2 * EVENT_FILES_PER_JOB ? Number.POSITIVE_INFINITY : total)
    const perJob = Math.max(1, Math.min(EVENT_FILES_PER_JOB, Math.ceil(withFile.length / (4 * runner.ahead))))
    const parts: Group[][] = []
    for (const together of entangled(withFile)) {
      const last = parts.at(-1)
      if (last && last.length + together.length <= perJob) last.push(...together)
      else parts.push(together)
    }
    const copy = (some: readonly Group[]): Promise<void> => this.#copyEventFiles(some, runner, isTornasole)
    for await (const _ of this.#pump(parts, copy, runner));
  }

  /** Nothing is under way any more when it ends, so that nothing is written once the output is discarded. */
  #pump<P, R>(parts: Iterable<P>, work: (part: P) => Promise<R>, { ahead }: Runner): AsyncGenerator<R> {
    return pumpAll(parts, work, { ahead, signal: this.#options.signal, settles: true })
  }

  async #copyEventFiles(groups: readonly Group[], runner: Runner, isTornasole: boolean): Promise<void> {
    const { checksums, signal } = this.#options
    const places = groups.map(({ path, indexes }) => ({ path: path!, known: indexes.map(({ content }) => content) }))
    const { spec, store } = this.#access
    const urlOf = (path: string) => store.url(path)
    const hasShapes = ({ content, saved }: IndexSource): boolean => ((content ?? saved)?.shapes.length ?? 0) > 0
    const withShapes = groups.some(({ indexes }) => indexes.some(hasShapes))
    const found = await findRecords(places, { runner, store: spec, isTornasole, withShapes, urlOf, signal })
    if (!this.#isPlain) this.#settle(groups, found)
    const copied: CopiedFile[] = []
    for (const [i, group] of groups.entries()) {
      const path = group.path!
      const file = group.isOther ? NO_EVENT_FILE : this.#output.fits(path) ? found[i]! : NAME_TOO_LONG
      if ('code' in file) {
        if (file === found[i]) this.#expectTold(path, file)
        this.#loseEventFile(group, file)
        await this.#writeIndexes(group, null)
        continue
      }
      if (group.indexes.length === 0 && !this.#isPlain) {
        const { byteLength, records } = file
        this.#notes.keep(0, 0, byteLength)
        if (byteLength === 0) this.#notes.ignore(path)
        else this.#leaveOutFile(path, NAMES_ANOTHER, { byteLength, records: records.length })
        continue
      }
      const plan = planFile(path, file, group.indexes)
      for (const one of plan.leftOut) this.#notes.leaveOut(one)
      this.#notes.keep(plan.kept.length, plan.keptByteLength, file.byteLength - plan.keptByteLength)
      if (plan.kept.length > 0) {
        const startByte = Float64Array.from(plan.kept, record => record.startByte)
        const byteLength = Float64Array.from(plan.kept, record => record.byteLength)
        copied.push({ path, target: await this.#output.place(path), startByte, byteLength })
        if (plan.keptByteLength === file.byteLength) this.#notes.countFile('copied')
        else
          this.#notes.rebuild(
            path,
            `${file.byteLength - plan.keptByteLength} bytes that are no whole record are left out`,
          )
      } else if (file.byteLength === 0 && plan.leftOut.length === 0) this.#notes.ignore(path)
      else this.#notes.countFile('leftOut')
      await this.#writeIndexes(group, plan)
    }
    if (copied.length === 0) return
    const job = { kind: 'copy', store: this.#access.spec, files: copied, checksums } as const
    try {
      await runner.run(job, signal)
    } catch (error) {
      signal?.throwIfAborted()
      if (!isFaultOfJob(error)) throw error
      // Once more, from the start: what the thread that died has left of them is gone first.
      await Promise.all(copied.map(({ target }) => this.#output.remove(target)))
      await runner.run(job, signal)
    }
  }

  /** An event file that is not there, or can't be read. */
  #loseEventFile({ path, indexes }: Group, error: ErrorData): void {
    this.#notes.countFile('leftOut')
    if (indexes.length === 0) this.#notes.leaveOutFile(path!, error)
    for (const { step, content } of indexes) {
      const tensors = content?.tensors.map(({ name }) => name) ?? []
      const { code, message } = error
      const missing = { code: code === 'NotFound' ? 'EventFileMissing' : code, message }
      this.#notes.leaveOutFile(path!, missing, { step, tensors: tensors.slice(0, 100), records: tensors.length })
    }
  }

  /** @param plan of their event file; null: there is nothing of it */
  async #writeIndexes({ path: eventFile, indexes }: Group, plan: FilePlan | null): Promise<void> {
    const nothing: FoundFile = { byteLength: 0, records: [], problems: [] }
    const { indexes: rewritten } = plan ?? planFile(eventFile ?? '', nothing, indexes)
    // Of an event file that is lost, or parts of it, that was told for each of its index files.
    const isTold = eventFile !== null && (plan === null || plan.kept.length + plan.leftOut.length > 0)
    for (const [i, { path, content, fault, isTorn, hasEntries, step, worker }] of indexes.entries()) {
      this.#options.signal?.throwIfAborted()
      const index = rewritten[i]!
      const target = this.#output.fits(path) ? path : indexFilePath(step, worker)
      if (isTorn || (hasEntries && !isTold)) {
        const lost = isTorn
          ? 'shapes in it are lost'
          : 'what it tells of is lost: there is nothing in an event file of its step'
        this.#notes.leaveOutFile(path, { code: 'BadIndexFile', message: `${fault}; ${lost}` }, { step })
      }
      if (index === 'same' && fault === null) {
        await this.#output.write(target, await this.#store.read(path, { maxByteLength: MAX_INDEX_BYTES }))
        this.#notes.countFile('copied')
        await this.#writeSuperseded(path, content!)
        continue
      }
      const said = index === 'same' ? { ...content!, eventFile } : index
      if (said === null) {
        // One that was not there is not missed.
        if (fault !== NO_INDEX) this.#notes.countFile('leftOut')
        continue
      }
      const isCsv = target.endsWith('.csv') && isOfLines(said)
      await this.#output.write(
        isCsv ? target : target.replace(/csv$/, 'json'),
        isCsv ? tornasoleIndexText(said) : indexFileText(said),
      )
      await this.#writeSuperseded(path, said)
      this.#notes.rebuild(
        path,
        fault ?? 'it told of records that were left out, of where others lay, or of another shape',
      )
    }
  }

  /** Tornasole's index file beside one of smdebug's, which is what may tell that the trial is Tornasole's: with the same in it. */
  async #writeSuperseded(path: string, said: IndexFile): Promise<void> {
    const csv = path.replace(/json$/, 'csv')
    if (!this.#superseded.has(csv) || !this.#output.fits(csv)) return
    await this.#output.write(csv, isOfLines(said) ? tornasoleIndexText(said) : '')
    this.#notes.countFile('copied')
  }

  // ------------------------------------------------------------------------------------------------------- other files

  /** End markers, and the collections of Tornasole. */
  async #copyRoot(paths: readonly string[]): Promise<void> {
    for (const path of paths) {
      let bytes: Uint8Array
      try {
        bytes = await this.#store.read(path, { maxByteLength: MAX_INDEX_BYTES })
        const text = new TextDecoder().decode(bytes)
        if (path === TORNASOLE_COLLECTIONS_FILE) parseTornasoleCollections(text, this.#store.url(path))
      } catch (error) {
        if (!(error instanceof TrialscanError)) throw error
        this.#expectTold(path, error.toJSON())
        this.#leaveOutFile(path, error)
        continue
      }
      await this.#output.write(path, bytes)
      this.#notes.countFile('copied')
    }
  }

  #leaveOutFile(path: string, error: Pick<ErrorData, 'code' | 'message'>, of: Partial<LeftOut> = {}): void {
    this.#notes.countFile('leftOut')
    this.#notes.leaveOutFile(path, error, of)
  }

  #runner(totalBytes: number): Promise<Runner> {
    return this.#access.runner(this.#options.threads, totalBytes)
  }
}

/** The files of a trial, and what becomes of them. */
interface SortedFiles {
  readonly all: ReadonlySet<string>
  readonly isTornasole: boolean
  /** Whether it is TensorBoard's: event files, and no index. */
  readonly isPlain: boolean
  readonly index: readonly string[]
  readonly superseded: ReadonlySet<string>
  readonly events: readonly string[]
  /** Index files beside which another counts, and that one. They are none of the others. */
  readonly duplicates: ReadonlyMap<string, string>
  /** The event file of a step and worker that counts. */
  readonly eventsByName: ReadonlyMap<string, string>
  readonly collections: readonly string[]
  /** In the root: end markers, and the collections of Tornasole. */
  readonly root: readonly string[]
  /** TensorBoard's event files, where they are what is copied. */
  readonly plain: readonly string[]
  /** Such as would be a part of a trial, but for what their paths hold: the names of a store need not be such as a disk's. */
  readonly unsafe: readonly string[]
  readonly others: readonly string[]
}

function sortFiles(paths: readonly string[]): SortedFiles {
  const all = new Set(paths)
  const isSafe = (path: string): boolean => isTemporary(path) || (isPlainPath(path) && !liesInFile(path, all))
  const files = new TrialFiles(paths.filter(isSafe))
  const { isPlain, index, superseded, events, duplicates, eventDuplicates, collections, root } = files
  const unsafe = paths.filter(path => !isSafe(path) && (isPartOfTrial(path) || isTensorBoardFile(path)))
  const taken = new Set([...unsafe, ...index, ...duplicates.keys(), ...events, ...collections, ...root])
  const others = paths.filter(path => !taken.has(path))
  const eventsByName = new Map<string, string>()
  for (const path of events) {
    const { step, worker } = parseEventFileName(path)!
    if (!eventDuplicates.has(path)) eventsByName.set(nameKey(step, worker), path)
  }
  const { isTornasole } = new TrialFiles(paths)
  const plain = isPlain ? files.plainEvents : []
  return {
    all,
    isTornasole,
    isPlain,
    index,
    superseded,
    events,
    duplicates,
    eventsByName,
    collections,
    root,
    plain,
    unsafe,
    others,
  }
}

/** Whether a path leads through a file that is copied, or is perhaps made: the keys of a store can, and nothing on a disk. */
function liesInFile(path: string, all: ReadonlySet<string>): boolean {
  for (let at = path.lastIndexOf('/'); at > 0; at = path.lastIndexOf('/', at - 1)) {
    const above = path.slice(0, at)
    if (isTemporary(above)) continue
    if (all.has(above) && (isPartOfTrial(above) || isTensorBoardFile(above))) return true
    if (isPartOfTrial(above) && !above.startsWith(`${EVENTS_DIRECTORY}/`)) return true
  }
  return false
}

/** A line of Tornasole's ends where a name does that holds a line break: smdebug's format has room for any. */
function isOfLines({ tensors }: IndexFile): boolean {
  return !tensors.some(({ name }) => /[\r\n]/.test(name))
}

/** The index file that an event file should have. */
function missingIndex(path: string): IndexSource {
  const { step, worker } = parseEventFileName(path)!
  const nothing = { content: null, saved: null, tellsMode: true, fault: NO_INDEX, isTorn: false }
  return { path: indexFilePath(step, worker), step, worker, eventFile: path, ...nothing }
}

/** How many of an index file's entries lead to a record of its step in an event file. */
function tellsOf(file: FoundFile | ErrorData): (index: IndexSource) => number {
  let byStep: Map<number, Set<string>> | undefined
  return ({ step, content }) => {
    if ('code' in file) return 0
    if (byStep === undefined) {
      byStep = new Map()
      for (const record of file.records) {
        const places = byStep.get(record.step) ?? new Set()
        byStep.set(record.step, places.add(`${record.startByte} ${record.byteLength}`))
      }
    }
    const places = byStep.get(step)
    return places ? content!.tensors.filter(entry => places.has(`${entry.startByte} ${entry.byteLength}`)).length : 0
  }
}

/**
 * Groups whose index files may belong to one another's event files, together: sets of them, joined where an index file leads
 * from one to another. Of a larger one than there is any reason for, the parts are taken for themselves.
 */
function entangled(groups: readonly Group[]): readonly Group[][] {
  const number = new Map(groups.map(({ path }, i) => [path, i]))
  const joined = new DisjointSets(groups.length)
  for (const [i, { indexes }] of groups.entries()) {
    for (const { own } of indexes) if (own !== undefined) joined.join(i, number.get(own)!)
  }
  const sets = new Map<number, Group[]>()
  const all: Group[][] = []
  for (const [i, group] of groups.entries()) {
    const root = joined.rootOf(i)
    const set = sets.get(root)
    if (set !== undefined && set.length < MAX_ENTANGLED) set.push(group)
    else {
      sets.set(root, [group])
      all.push(sets.get(root)!)
    }
  }
  return all
}

/** Whether a path is one that leads from directory to directory, and nowhere else. */
function isPlainPath(path: string): boolean {
  return !/[\\\0]/.test(path) && path.split('/').every(name => name !== '' && name !== '.' && name !== '..')
}

function nameKey(step: GlobalStep, worker: Worker): string {
  return `${step} ${worker}`
}
