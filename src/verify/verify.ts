/** Checks a trial from the first byte to the last: event files, index, collections, and that they agree. */

import { listPlain, noTrial } from '../catalog/no-trial.js'
import { type ErrorData, pathOfUrl, quote, StoreError, shortPath, TrialscanError, tellsOfFile } from '../errors.js'
import { type Collections, mergeCollections, parseCollections } from '../format/collections.js'
import { isSameShape, type SavedShape } from '../format/index-file.js'
import { describeOther, othersAmong, otherWorkerError } from '../format/index-owner.js'
import {
  COLLECTIONS_DIRECTORY,
  END_MARKERS,
  EVENTS_DIRECTORY,
  INDEX_DIRECTORY,
  indexFilePath,
  isPartOfTrial,
  isTemporary,
  parseEventFileName,
  parseIndexFileName,
  TORNASOLE_COLLECTIONS_FILE,
} from '../format/paths.js'
import { parseReductionName } from '../format/reduction-name.js'
import { parseTornasoleCollections, parseTornasoleIndex, tornasoleText } from '../format/tornasole.js'
import { describeDuplicate, isPartDirectory, TrialFiles } from '../format/trial-files.js'
import { DEFAULT_MEMORY } from '../job/memory.js'
import { type RecordProblem, VALUE_KINDS, type VerifiedRange, type VerifyJob, type VerifyRange } from '../job/verify.js'
import { checkOptions, kinds, optionsOf } from '../options.js'
import { Access, WORK_OPTIONS, type WorkOptions } from '../runner/access.js'
import { runOnFiles } from '../runner/failed-job.js'
import { chunksOf, pumpAll } from '../runner/pump.js'
import { type Runner, runTwice } from '../runner/runner.js'
import { openStore, storeSpec } from '../store/open.js'
import { S3_OPTIONS } from '../store/s3/options.js'
import type { S3Options } from '../store/s3/spec.js'
import type { Store, Traffic } from '../store/store.js'
import { MODES, type Worker } from '../types.js'
import {
  type Checked,
  CUT_BYTES,
  type Entry,
  type EventFile,
  endOf,
  entriesOf,
  eventFilesOf,
  type IndexContent,
  IndexState,
  jobsOf,
  listOf,
  lostBetween,
  lostTensors,
  MAX_LISTED,
  type NamedFile,
  type ReadIndex,
  rangesOf,
} from './files.js'
import { type Finding, type VerifyCode, type VerifyProblem, verifyProblem } from './problem.js'

export interface VerifyOptions extends WorkOptions {
  /** Also look at values: strings, and saved reductions against the tensors they were made from. See docs/verify.md. */
  readonly deep?: boolean
  /** Called with every problem and note that is told, in the order of the result. */
  readonly onProblem?: (problem: VerifyProblem) => void
  readonly signal?: AbortSignal
  /** Follow symbolic links out of the trial's directory. Default: they are refused. */
  readonly allowSymlinks?: boolean
  /** How to reach and read a trial on S3. See docs/s3.md. */
  readonly s3?: S3Options
}

const OPTIONS = optionsOf<VerifyOptions>({
  ...WORK_OPTIONS,
  deep: kinds.flag,
  onProblem: kinds.callback(),
  signal: kinds.signal,
  allowSymlinks: kinds.flag,
  s3: S3_OPTIONS,
})

export interface VerifyStats {
  /** Event files that were read. */
  readonly eventFiles: number
  readonly indexFiles: number
  readonly records: number
  /** Records with smdebug's constant where their payload's checksum would be: nothing tells whether their values have changed. */
  readonly recordsWithoutChecksum: number
  /** Tensors, scalars and histograms in these records. */
  readonly tensors: number
  /** Of event files. */
  readonly readBytes: number
  readonly seconds: number
  readonly threads: number
  /** The requests that were made for a trial on S3. */
  readonly traffic: Traffic
}

export interface Verification {
  /** Whether nothing is wrong: there are no problems. */
  readonly ok: boolean
  /** In the order of the files: 100 at most of a file and 10,000 in all. `problemCounts` knows of all. */
  readonly problems: readonly VerifyProblem[]
  /** What is worth knowing and no harm; as many at most. */
  readonly notes: readonly VerifyProblem[]
  /** All problems there are, by code. */
  readonly problemCounts: Readonly<Partial<Record<VerifyCode, number>>>
  readonly noteCounts: Readonly<Partial<Record<VerifyCode, number>>>
  readonly stats: VerifyStats
}

/** Told one by one. */
const MAX_TOLD_OF_FILE = 100
const MAX_TOLD = 10_000
const MAX_INDEX_BYTES = 256 << 20
const MAX_COLLECTIONS_BYTES = 256 << 20
const INDEX_FILES_PER_JOB = 256
const TENSOR = VALUE_KINDS.indexOf('tensor')
const HISTOGRAM = VALUE_KINDS.indexOf('histogram')

/**
 * Reads all of a trial and tells what is wrong with it. Writes nothing, and needs no index to be right.
 * @param path a local directory, its `file://` URL, or `s3://bucket/prefix`
 * @throws StoreError if the trial can't be reached, MissingCollectionFiles if there is none; UsageError; the signal's reason
 */
export async function verifyTrial(path: string, options?: VerifyOptions): Promise<Verification> {
  const asked = checkOptions('verifyTrial', OPTIONS, options)
  const { allowSymlinks = false, s3, signal } = asked
  const spec = storeSpec(path, { allowSymlinks, ...(s3 && { s3 }) })
  const store = openStore(spec)
  try {
    signal?.throwIfAborted()
    return await new Verifier(new Access(store, spec), asked).run()
  } finally {
    await store.close()
  }
}

/** What is in the trial's directory. */
interface Listing {
  readonly index: readonly string[]
  readonly events: readonly string[]
  readonly collections: readonly string[]
  readonly root: ReadonlySet<string>
  /** Parts of the trial that could not be listed, or not all of them: what is not among them may be there. */
  readonly unlisted: ReadonlySet<string>
  readonly failure: StoreError | undefined
}

class Verifier {
  readonly #access: Access
  readonly #store: Store
  readonly #options: VerifyOptions
  readonly #threads: number | undefined
  readonly #memory: number
  readonly #problems: VerifyProblem[] = []
  readonly #notes: VerifyProblem[] = []
  readonly #problemCounts: Partial<Record<VerifyCode, number>> = {}
  readonly #noteCounts: Partial<Record<VerifyCode, number>> = {}
  /** How many were told of the event file that is being looked at and its index files, or of what comes before these. */
  readonly #told = new Map<string, number>()
  #indexes = new IndexState([], [], false)
  /** What is no file, where one should be. */
  readonly #odd = new Map<string, ErrorData>()
  /** Whether index files have saved shapes. */
  #hasShapes = false
  readonly #savedNames = new Set<string>()
  #unlisted: ReadonlySet<string> = new Set()
  /** Whether something could not be had that may hold anything. */
  #isPartial = false
  readonly #seenPayloads = new WeakSet<object>()
  readonly #stats = { eventFiles: 0, indexFiles: 0, records: 0, recordsWithoutChecksum: 0, tensors: 0, readBytes: 0 }

  constructor(access: Access, options: VerifyOptions) {
    this.#access = access
    this.#store = access.store
    this.#options = options
    this.#threads = options.threads
    this.#memory = options.memory ?? DEFAULT_MEMORY
  }

  async run(): Promise<Verification> {
    const startedAt = performance.now()
    await this.#store.open()
    const listing = await this.#list()
    this.#unlisted = listing.unlisted
    const files = new TrialFiles([...listing.root, ...listing.collections, ...listing.index, ...listing.events])
    const { ended, isTornasole, isPlain } = files
    await this.#checkEndMarkers()
    const everything = isPlain ? await listPlain(this.#store) : []
    const eventPaths = isPlain ? new TrialFiles(everything).plainEvents : files.events
    if (isPlain && listing.failure) throw listing.failure
    if (isPlain && eventPaths.length === 0) throw await noTrial(this.#store, everything)

    this.#checkTemporaries(files.temporaries, listing, ended)
    for (const file of files.ofNoStep) {
      const expected = 'a file of a step from 0 to 2^53 - 1'
      this.#problem({ code: 'BadStep', file, expected, found: 'its name', lost: 'what is in it: nobody reads it' })
    }
    if (!ended && !isPlain) {
      const expected = `${END_MARKERS[0]}, which a job leaves when it ends`
      this.#note({ code: 'NoEndMarker', file: '', expected, found: 'none: the job still runs, or was stopped' })
    }
    const collections = await this.#readCollections(files.collections, listing.root, {
      isOwed: ended && files.index.length > 0 && !isTornasole && !listing.unlisted.has(COLLECTIONS_DIRECTORY),
      ended,
    })
    const indexes = await this.#readIndexes(files)
    if (!isPlain && files.index.length === 0 && eventPaths.length > 0 && !listing.unlisted.has(INDEX_DIRECTORY)) {
      const expected = `files under ${INDEX_DIRECTORY}/ that tell what the event files hold`
      this.#note({ code: 'NoIndex', file: '', expected, found: 'none' })
    }
    // Which of two is looked at, the index says, where there is one.
    if (files.index.length === 0) this.#checkDuplicates(files.eventDuplicates)
    this.#checkWorkers(indexes, collections)
    this.#indexes = new IndexState(indexes, isPlain ? [] : eventPaths.map(path => parseEventFileName(path)!), ended)
    const threads = await this.#checkEventFiles(eventFilesOf(eventPaths, indexes), isTornasole)
    if (!this.#isPartial) this.#checkMembers(collections)
    for (const [path, error] of this.#odd) this.#problemOf(error, path, 'Unreadable', 'what is in it')

    return {
      ok: Object.keys(this.#problemCounts).length === 0,
      problems: this.#problems,
      notes: this.#notes,
      problemCounts: this.#problemCounts,
      noteCounts: this.#noteCounts,
      stats: {
        ...this.#stats,
        seconds: (performance.now() - startedAt) / 1000,
        threads,
        traffic: { ...this.#access.traffic },
      },
    }
  }

  // ------------------------------------------------------------------------------------------------------- problems

  #problem(finding: Finding): void {
    this.#tell('problem', finding)
  }

  #note(finding: Finding): void {
    this.#tell('note', finding)
  }

  #tell(severity: VerifyProblem['severity'], finding: Finding): void {
    const counts = severity === 'problem' ? this.#problemCounts : this.#noteCounts
    counts[finding.code] = (counts[finding.code] ?? 0) + 1
    const told = severity === 'problem' ? this.#problems : this.#notes
    const key = `${severity} ${finding.file}`
    const count = this.#told.get(key) ?? 0
    if (count >= MAX_TOLD_OF_FILE || told.length >= MAX_TOLD) return
    this.#told.set(key, count + 1)
    const problem = verifyProblem(severity, finding)
    told.push(problem)
    this.#options.onProblem?.(problem)
  }

  /** Counts what was not told one by one. */
  #count(severity: VerifyProblem['severity'], code: VerifyCode, count: number): void {
    const counts = severity === 'problem' ? this.#problemCounts : this.#noteCounts
    if (count > 0) counts[code] = (counts[code] ?? 0) + count
  }

  /** An error of a file as a problem. */
  #problemOf(error: ErrorData, file: string, code: VerifyCode, lost = ''): void {
    // Once is enough.
    if (code === 'Unreadable') this.#odd.delete(file)
    if (!tellsOfFile(error)) this.#isPartial = true
    const { offset, expected, got, at } = error.fields
    const text = error.message.replace(`${pathOfUrl(this.#store.url(file))}: `, '')
    this.#problem({
      code,
      file,
      offset: typeof offset === 'number' ? offset : null,
      step: (parseIndexFileName(file) ?? parseEventFileName(file))?.step ?? null,
      expected: `${typeof expected === 'string' ? expected : 'a file that can be read'}${typeof at === 'string' ? ` as ${at}` : ''}`,
      found: typeof got === 'string' ? got : text.replace(/^expected .*, got /, ''),
      lost,
    })
  }

  // ---------------------------------------------------------------------------------------------- directories, index

  /** What there is. A directory that can't be listed is a problem; where none can, there is no trial to be had. */
  async #list(): Promise<Listing> {
    const errors = new Map<string, StoreError>()
    const unlisted = new Set<string>()
    const onError = (path: string, error: StoreError): void => {
      if (error.code !== 'NotAFile' && error.code !== 'NotFound') {
        if (!path.includes('/')) return
        unlisted.add(path.split('/', 1)[0]!)
        this.#problemOf(error.toJSON(), path, 'Unreadable', 'all files in it')
      } else if (isPartDirectory(path)) this.#problemOf(error.toJSON(), path, 'Unreadable', 'all files in it')
      else if (isPartOfTrial(path)) this.#odd.set(path, error.toJSON())
    }
    // In the root, only what is read as a file is missed.
    const expects = (path: string): boolean => path.includes('/') && !isTemporary(path) && isPartOfTrial(path)
    const list = async (directory: string, recursive: boolean): Promise<string[]> => {
      try {
        return await this.#store.list(directory, { recursive, expects, onError })
      } catch (error) {
        // What a server doesn't tell is no fault of the trial.
        if (!(error instanceof StoreError) || this.#access.isRemote) throw error
        errors.set(directory, error)
        unlisted.add(directory)
        this.#problemOf(error.toJSON(), directory, 'Unreadable', 'all files in it')
        return []
      }
    }
    const root = await list('', false)
    const [unlistedRoot] = errors.values()
    if (unlistedRoot) throw unlistedRoot
    // In this order: of a job that runs, the index files of all these but the last are then there.
    const events = await list(EVENTS_DIRECTORY, true)
    const index = await list(INDEX_DIRECTORY, true)
    const collections = await list(COLLECTIONS_DIRECTORY, true)
    const [failure] = errors.values()
    if (failure && errors.size === 3) throw failure
    return { root: new Set(root), index, events, collections, failure, unlisted }
  }

  /** One that is there and can't be looked at keeps readers from opening the trial. */
  async #checkEndMarkers(): Promise<void> {
    for (const marker of END_MARKERS) {
      try {
        if (await this.#store.exists(marker)) await this.#store.byteLength(marker)
      } catch (error) {
        if (!(error instanceof StoreError)) throw error
        this.#problemOf(error.toJSON(), marker, 'Unreadable', 'whether the job has ended')
      }
    }
  }

  #checkTemporaries(temporaries: readonly string[], listing: Listing, ended: boolean): void {
    if (temporaries.length === 0) return
    const there = new Set([...listing.root, ...listing.collections, ...listing.index, ...listing.events])
    for (const file of temporaries) {
      const final = file.slice(0, -'.tmp'.length)
      const found = 'a file that is still called temporary'
      if (ended && !there.has(final)) {
        const expected = 'all files closed, since the job has ended'
        this.#problem({ code: 'LeftoverTemporary', file, expected, found, lost: `what was to be in ${final}` })
      } else {
        this.#note({ code: 'TemporaryFile', file, expected: `${final}, once it is whole`, found })
      }
    }
  }

  async #readCollections(
    paths: readonly string[],
    root: ReadonlySet<string>,
    { isOwed, ended }: { readonly isOwed: boolean; readonly ended: boolean },
  ): Promise<Collections | null> {
    const read: Collections[] = []
    const parse = async (path: string, parser: (text: string, url: string) => Collections): Promise<void> => {
      try {
        const bytes = await this.#store.read(path, { maxByteLength: MAX_COLLECTIONS_BYTES, isText: true })
        read.push(parser(new TextDecoder('utf-8', { fatal: false }).decode(bytes), this.#store.url(path)))
      } catch (error) {
        if (!(error instanceof TrialscanError)) throw error
        const code = error instanceof StoreError ? 'Unreadable' : 'BadCollectionsFile'
        this.#problemOf(error.toJSON(), path, code, 'which tensors belong to which collection, as this worker has it')
      }
    }
    for (const path of paths) await parse(path, parseCollections)
    if (root.has(TORNASOLE_COLLECTIONS_FILE)) {
      await parse(TORNASOLE_COLLECTIONS_FILE, (text, url) => ({
        collections: parseTornasoleCollections(text, url),
        numWorkers: 0,
      }))
    }
    const merged = read.length === 0 ? null : mergeCollections(read)
    const owed = merged && paths.length > 0 && ended ? merged.numWorkers : isOwed ? 1 : 0
    if (paths.length < owed) {
      this.#problem({
        code: 'MissingCollectionFiles',
        file: COLLECTIONS_DIRECTORY,
        expected: `collections files of ${merged ? owed : 'all'} workers, since the job has ended`,
        found: `${paths.length}`,
        lost: 'which tensors belong to which collection, as the other workers have it',
      })
    }
    return merged
  }

  async #readIndexes({ index: wanted, duplicates }: TrialFiles): Promise<ReadIndex[]> {
    this.#checkDuplicates(duplicates)
    const runner = await this.#runner(wanted.length < 1024 ? 0 : Number.POSITIVE_INFINITY)
    const jsonPaths = wanted.filter(path => parseIndexFileName(path)!.kind === 'json')
    const contents = new Map<string, IndexContent | ErrorData>()
    const { signal } = this.#options
    const read = (some: readonly string[]) =>
      runOnFiles(
        some,
        paths => runTwice(runner, { kind: 'index', store: this.#access.spec, paths }, signal),
        path => this.#store.url(path),
      )
    const results = pumpAll(chunksOf(jsonPaths, INDEX_FILES_PER_JOB), read, { ahead: runner.ahead, signal })
    let first = 0
    for await (const files of results) for (const file of files) contents.set(jsonPaths[first++]!, file)
    for (const path of wanted) {
      if (!contents.has(path)) contents.set(path, await this.#readTornasoleIndex(path))
    }
    const indexes: ReadIndex[] = []
    for (const path of wanted) {
      const content = contents.get(path)!
      const { step, worker } = parseIndexFileName(path)!
      this.#stats.indexFiles++
      if ('code' in content) {
        const code =
          content.code === 'UnsafePath' ? content.code : content.name === 'StoreError' ? 'Unreadable' : 'BadIndexFile'
        this.#problemOf(content, path, code, `what ${worker} saved at step ${step} is not found`)
        // It says nothing, but its event file has not been forgotten.
        indexes.push({ path, step, worker, content: null })
        continue
      }
      this.#saw(content.tensors)
      this.#saw(content.shapes)
      this.#hasShapes ||= content.shapes.length > 0
      indexes.push({ path, step, worker, content })
    }
    const others = othersAmong(indexes)
    if (others.size === 0) return indexes
    return indexes.map(index => {
      const other = others.get(index)
      if (other === undefined) return index
      const { path: file, step, worker } = index
      if (!other.isFault) {
        const { expected, got } = describeOther(worker, other)
        this.#note({ code: 'OtherWorker', file, step, expected, found: got })
        return index
      }
      const error = otherWorkerError(this.#store.url(file), index, other)
      this.#problemOf(error.toJSON(), file, 'BadIndexFile', `what ${worker} saved at step ${step} is not found`)
      return { ...index, content: null }
    })
  }

  #checkDuplicates(duplicates: ReadonlyMap<string, string>): void {
    for (const [file, taken] of duplicates) {
      const { step } = (parseIndexFileName(file) ?? parseEventFileName(file))!
      const { expected, got } = describeDuplicate(file, taken)
      this.#problem({ code: 'DuplicateFile', file, step, expected, found: got, lost: 'what is in it: nobody reads it' })
    }
  }

  /** Without the mode, which stands in the Events. */
  async #readTornasoleIndex(path: string): Promise<IndexContent | ErrorData> {
    try {
      const bytes = await this.#store.read(path, { maxByteLength: MAX_INDEX_BYTES })
      const url = this.#store.url(path)
      return { ...parseTornasoleIndex(tornasoleText(bytes, url), url), shapes: [] }
    } catch (error) {
      if (error instanceof TrialscanError) return error.toJSON()
      throw error
    }
  }

  /** From step to step index files share their lists. */
  #saw(named: readonly { readonly name: string }[]): void {
    if (this.#seenPayloads.has(named)) return
    this.#seenPayloads.add(named)
    for (const { name } of named) this.#savedName(name)
  }

  #savedName(name: string): void {
    this.#savedNames.add(parseReductionName(name)?.tensor ?? name)
  }

  /** Steps that some workers wrote and others did not. */
  #checkWorkers(indexes: readonly ReadIndex[], collections: Collections | null): void {
    const known = [...new Set(indexes.map(({ worker }) => worker))].sort()
    const wanted = Math.max(known.length, collections?.numWorkers ?? 0)
    const byStep = new Map<number, Worker[]>()
    for (const { step, worker } of indexes) {
      const workers = byStep.get(step)
      if (workers) workers.push(worker)
      else byStep.set(step, [worker])
    }
    for (const [step, workers] of [...byStep].sort(([a], [b]) => a - b)) {
      if (workers.length >= wanted) continue
      const there = new Set(workers)
      // Some of them: there can be as many workers as steps, of one step each.
      const missing: Worker[] = []
      for (const worker of known) {
        if (missing.length === MAX_LISTED) break
        if (!there.has(worker)) missing.push(worker)
      }
      const missingCount = known.length - there.size
      const strangers = wanted - workers.length - missingCount
      const names = [...missing, ...(strangers > 0 ? [`${strangers} that wrote nothing`] : [])]
      const nameCount = missingCount + (strangers > 0 ? 1 : 0)
      this.#note({
        code: 'StepIncomplete',
        file: indexFilePath(step, missing[0] ?? workers[0]!).replace(/\/[^/]*$/, ''),
        step,
        expected: `step ${step} of ${wanted} workers`,
        found: `that of ${workers.length}, without ${listOf(names, String, nameCount)}`,
      })
    }
  }

  #checkMembers(collections: Collections | null): void {
    for (const [name, { tensorNames }] of collections?.collections ?? []) {
      const missing = tensorNames.filter(tensor => !this.#savedNames.has(tensor))
      if (missing.length === 0) continue
      this.#note({
        code: 'TensorNeverSaved',
        file: COLLECTIONS_DIRECTORY,
        tensor: missing[0]!,
        expected: `the ${tensorNames.length} tensors that collection ${quote(name)} names`,
        found: `nothing of ${listOf(missing, quote)}`,
      })
    }
  }

  // ---------------------------------------------------------------------------------------------------- event files

  async #runner(bytes: number): Promise<Runner> {
    return this.#access.runner(this.#access.isRemote ? (this.#threads ?? 0) : this.#threads, bytes, this.#memory)
  }

  /** What a job tells of its ranges; one that costs a thread its life costs the others nothing. */
  #rangesOf(runner: Runner, job: VerifyJob): Promise<(Checked | TrialscanError)[]> {
    const check = async (some: readonly VerifyRange[]) => {
      const { ranges, tags, readBytes } = await runTwice(runner, { ...job, ranges: some }, this.#options.signal)
      this.#stats.readBytes += readBytes
      return { files: ranges.map(range => ('recordStart' in range ? { range, tags } : range)) }
    }
    return runOnFiles(job.ranges, check, ({ path }) => this.#store.url(path))
  }

  /** @returns the number of threads */
  async #checkEventFiles(files: readonly NamedFile[], isTornasole: boolean): Promise<number> {
    const byteLengths: number[] = []
    for (const file of files) byteLengths.push(await this.#byteLength(file))
    const runner = await this.#runner(byteLengths.reduce((sum, byteLength) => sum + byteLength, 0))
    const { deep = false } = this.#options
    const job = (ranges: readonly VerifyRange[]): VerifyJob => ({
      kind: 'verify',
      store: this.#access.spec,
      ranges,
      windowByteLength: Math.floor(this.#memory / 2),
      isTornasole,
      deep,
      withShapes: this.#hasShapes,
    })
    // Those whose jobs are under way.
    const pending: { readonly file: EventFile; readonly ranges: readonly VerifyRange[] }[] = []
    const planned = function* (): Generator<{ ranges: readonly VerifyRange[]; byteLength: number }> {
      for (const [i, { path, indexes, isListed }] of files.entries()) {
        const file = { path, isListed, entries: entriesOf(indexes) }
        const byteLength = byteLengths[i]!
        const ranges = rangesOf(file, deep ? 0 : byteLength)
        pending.push({ file, ranges })
        yield { ranges, byteLength }
      }
    }
    const results = this.#checked(runner, jobsOf(planned(), job))
    for (let next = await results.next(); !next.done; ) {
      const { file, ranges } = pending.shift()!
      const checked: Checked[] = []
      let error: ErrorData | null = null
      for (const asked of ranges) {
        const { value } = next
        if (value === undefined) break
        if ('code' in value) error ??= value
        else error ??= await this.#follow(checked, asked, value, runner, job)
        next = await results.next()
      }
      this.#told.clear()
      if (error) this.#unreadable(file, error)
      else this.#checkFile(file, checked)
    }
    return runner.threads
  }

  /** As its index says, which costs nothing; of a file that no index names, or that is long, as it is. */
  async #byteLength({ path, indexes }: NamedFile): Promise<number> {
    let end = 0
    for (const { content } of indexes) {
      for (const location of content?.tensors ?? []) end = Math.max(end, endOf(location))
    }
    if (end > 0 && end <= CUT_BYTES) return end
    try {
      return await this.#store.byteLength(path)
    } catch (error) {
      if (error instanceof StoreError) return 0
      throw error
    }
  }

  /** The ranges of all jobs, in order. */
  async *#checked(
    runner: Runner,
    jobs: Iterable<VerifyJob>,
  ): AsyncGenerator<Checked | ErrorData, undefined, undefined> {
    const { signal } = this.#options
    const work = (job: VerifyJob) => this.#rangesOf(runner, job)
    for await (const ranges of pumpAll(jobs, work, { ahead: runner.ahead, signal })) yield* ranges
    return undefined
  }

  /**
   * Adds a range of a file to those before it. It counts only if the records before it lead to its first: where they lead
   * elsewhere, the index was wrong about it, and the range is read again from there.
   * @returns why it can't be
   */
  async #follow(
    checked: Checked[],
    { endByte, path, anchors }: VerifyRange,
    next: Checked,
    runner: Runner,
    job: (ranges: readonly VerifyRange[]) => VerifyJob,
  ): Promise<ErrorData | null> {
    let at = checked.at(-1)?.range.endByte ?? 0
    let part: Checked | null = next
    for (;;) {
      const fileLength = checked.at(-1)?.range.byteLength ?? Number.POSITIVE_INFINITY
      const end = Math.min(endByte ?? fileLength, fileLength)
      if (checked.length > 0 && at >= end) return null
      if (part === null || part.range.startByte !== at) {
        this.#options.signal?.throwIfAborted()
        const [again] = await this.#rangesOf(runner, job([{ path, anchors, startByte: at, endByte }]))
        if (again === undefined || 'code' in again) return again ?? null
        part = again
      }
      checked.push(part)
      if (part.range.endByte <= at) return null
      at = part.range.endByte
      part = null
    }
  }

  #unreadable({ path, entries, isListed }: EventFile, error: ErrorData): void {
    const index = entries[0]?.index
    const lost =
      entries.length === 0
        ? 'all that is in it'
        : lostTensors(
            entries.map(({ location }) => location.name),
            index!.step,
          )
    if (error.code === 'NotFound' && tellsOfFile(error) && !isListed && index) {
      const [expected, found] = [`the event file ${shortPath(path)}`, 'no such file']
      this.#problem({ code: 'EventFileMissing', file: index.path, step: index.step, expected, found, lost })
    } else {
      this.#problemOf(error, path, 'Unreadable', lost)
    }
  }

  #checkFile(file: EventFile, checked: readonly Checked[]): void {
    const { path, entries } = file
    this.#stats.eventFiles++
    let values = 0
    for (const { range, tags } of checked) {
      this.#stats.records += range.recordStart.length
      this.#stats.recordsWithoutChecksum += range.withoutChecksum
      for (const kind of range.kind) if (kind === TENSOR || kind === HISTOGRAM) values++
      if (!this.#indexes.isThere) for (const tag of tags) this.#savedName(tag)
      this.#recordProblems(file, range)
    }
    this.#stats.tensors += values
    const name = parseEventFileName(path)
    if (entries.length > 0 || (name && this.#indexes.isReadable(name))) {
      this.#compare(file, checked)
      return
    }
    if (name !== null) this.#compareSteps(file, name.step, checked)
    if (!this.#indexes.isThere || name === null || this.#indexes.has(name) || this.#unlisted.has(INDEX_DIRECTORY))
      return
    const expected = `the index file ${indexFilePath(name.step, name.worker)}`
    const finding = { file: path, step: name.step, expected }
    if (checked.every(({ range }) => range.byteLength === 0)) {
      this.#note({ ...finding, code: 'EmptyEventFile', found: 'none; the event file is empty, too' })
    } else if (this.#indexes.isLate(name)) {
      const lost = `what its ${values} tensors are called, and where they lie`
      this.#problem({ ...finding, code: 'IndexFileMissing', found: 'none', lost })
    } else {
      this.#note({ ...finding, code: 'IndexFileMissing', found: 'none; the job may still write it' })
    }
  }

  /** Where no index file tells of them, records are of the step that the event file's name says. */
  #compareSteps({ path }: EventFile, fileStep: number, checked: readonly Checked[]): void {
    for (const { range, tags } of checked) {
      const { recordStart, isBad, record, tag, step } = range
      for (const [value, i] of record.entries()) {
        if (isBad[i] === 1 || step[i] === fileStep || record[value - 1] === i) continue
        const tensor = tags[tag[value]!]!
        this.#problem({
          code: 'StepMismatch',
          file: path,
          offset: recordStart[i]!,
          tensor,
          step: fileStep,
          expected: `a record of step ${fileStep}, as the file is named`,
          found: `one of step ${step[i]}`,
          lost: lostTensors([tensor], step[i]!),
        })
      }
    }
  }

  #recordProblems({ path, entries }: EventFile, { problems, problemCounts, notes, noteCounts }: VerifiedRange): void {
    const tell = (
      severity: VerifyProblem['severity'],
      told: readonly RecordProblem[],
      counts: Readonly<Record<string, number>>,
    ): void => {
      const untold = { ...counts }
      for (const { error, startByte, endByte, tag, step: said } of told) {
        untold[error.code]!--
        const at = entries.find(({ location }) => location.startByte >= startByte && location.startByte < endByte)
        // What a damaged record says of itself is not to be trusted where the index file knows better.
        const step = at?.index.step ?? (tag === null ? Number.NaN : said)
        const { offset, expected, got } = error.fields
        this.#tell(severity, {
          code: error.code as VerifyCode,
          file: path,
          offset: typeof offset === 'number' ? offset : startByte,
          tensor: tag,
          step: Number.isNaN(step) ? null : step,
          expected: `${expected}`,
          found: `${got}`,
          lost: severity === 'note' ? '' : this.#lostBy(entries, { error, startByte, endByte, tag, step }),
        })
      }
      for (const [code, count] of Object.entries(untold)) this.#count(severity, code as VerifyCode, count)
    }
    tell('problem', problems, problemCounts)
    tell('note', notes, noteCounts)
  }

  #lostBy(entries: readonly Entry[], { error, startByte, endByte, tag, step }: RecordProblem): string {
    if (error.code === 'ReductionMismatch') return 'which of them is right'
    // Behind a torn record there is nothing more.
    const end = error.code === 'TruncatedRecord' ? Number.POSITIVE_INFINITY : endByte
    return lostBetween(entries, startByte, end, tag, step) || `${endByte - startByte} bytes`
  }

  /** Holds index entries against the records they point at. Both are in the order of the file. */
  #compare(file: EventFile, checked: readonly Checked[]): void {
    const { path } = file
    const fileLength = checked.at(-1)?.range.byteLength ?? 0
    const entries = file.entries.filter(({ location }) => location.startByte < fileLength)
    const skipped = checked.flatMap(({ range }) => [...range.skipped])
    let skip = 0
    // Told with what is wrong with the file there.
    const isSkipped = (at: number): boolean => {
      while (skip < skipped.length && skipped[skip + 1]! <= at) skip += 2
      return skip < skipped.length && at >= skipped[skip]!
    }
    const toNoRecord = (entry: Entry): void => {
      if (!isSkipped(entry.location.startByte)) this.#astray(path, entry)
      reached = this.#overlap(path, reached, entry)
    }
    let next = 0
    let reached: Entry | null = null
    for (const { range, tags } of checked) {
      const { recordStart, isBad, record, tag, kind } = range
      let value = 0
      for (let i = 0; i < recordStart.length; i++) {
        const start = recordStart[i]!
        for (; next < entries.length && entries[next]!.location.startByte < start; next++) {
          toNoRecord(entries[next]!)
        }
        const firstValue = value
        while (value < record.length && record[value] === i) value++
        const values = new Map<string, number>()
        for (let v = firstValue; v < value; v++) {
          const name = tags[tag[v]!]!
          if ((kind[v] === TENSOR || kind[v] === HISTOGRAM) && !values.has(name)) values.set(name, v)
        }
        const unnamed = new Set(values.keys())
        for (; next < entries.length && entries[next]!.location.startByte === start; next++) {
          const entry = entries[next]!
          reached = this.#overlap(path, reached, entry)
          unnamed.delete(entry.location.name)
          if (isBad[i] === 0) this.#compareEntry(path, entry, range, i, values)
        }
        if (isBad[i] === 1) continue
        for (const name of unnamed) this.#notIndexed(path, name, range, i)
      }
    }
    for (; next < entries.length; next++) toNoRecord(entries[next]!)
    this.#pastEnd(file, checked, fileLength)
  }

  /** An entry that points to where no record begins. */
  #astray(path: string, { location, index }: Entry): void {
    const { name, startByte, byteLength } = location
    this.#problem({
      code: 'EntryNotARecord',
      file: index.path,
      offset: startByte,
      tensor: name,
      step: index.step,
      expected: `a record of ${byteLength} bytes there in ${shortPath(path)}`,
      found: 'the middle of one',
      lost: `tensor ${quote(name)} at step ${index.step} is not found`,
    })
  }

  /** Entries that point behind the end of the file: one problem, since the file is what is wrong, or it is one entry. */
  #pastEnd({ path, entries }: EventFile, checked: readonly Checked[], fileLength: number): void {
    // A torn record is told with all that was behind it.
    if (checked.some(({ range }) => 'TruncatedRecord' in range.problemCounts)) return
    const past = entries.filter(({ location }) => location.startByte >= fileLength)
    const first = past[0]
    if (first === undefined) return
    const { location, index } = first
    this.#problem({
      code: 'EntryPastEnd',
      file: index.path,
      offset: location.startByte,
      tensor: location.name,
      step: index.step,
      expected: `a record of ${location.byteLength} bytes there in ${shortPath(path)}`,
      found: `the end of the file, at ${fileLength}`,
      lost: lostTensors(
        past.map(({ location }) => location.name),
        index.step,
      ),
    })
  }

  /** @returns the entry that reaches furthest */
  #overlap(path: string, reached: Entry | null, entry: Entry): Entry {
    const { location, index } = entry
    if (reached === null) return entry
    const before = reached.location
    const isSame = before.startByte === location.startByte && before.byteLength === location.byteLength
    // A record may hold several tensors, and two index files may name one.
    const isShared = isSame && (before.name !== location.name || reached.index !== index)
    if (location.startByte < endOf(before) && !isShared) {
      this.#problem({
        code: 'EntriesOverlap',
        file: index.path,
        offset: location.startByte,
        tensor: location.name,
        step: index.step,
        expected: `an entry behind that of ${quote(before.name)}, which ends at ${endOf(before)} in ${shortPath(path)}`,
        found: `one of ${location.byteLength} bytes from ${location.startByte} on`,
      })
    }
    return endOf(location) >= endOf(before) ? entry : reached
  }

  #notIndexed(
    path: string,
    name: string,
    { recordStart, recordByteLength, step }: VerifiedRange,
    record: number,
  ): void {
    this.#problem({
      code: 'RecordNotIndexed',
      file: path,
      offset: recordStart[record]!,
      tensor: name,
      step: step[record]!,
      expected: 'an index entry of every record',
      found: `none of these ${recordByteLength[record]} bytes`,
      lost: `tensor ${quote(name)} at step ${step[record]} is not found`,
    })
  }

  /** @param values the record's tensors by name: indices into the columns of Values */
  #compareEntry(
    path: string,
    { location, index }: Entry,
    range: VerifiedRange,
    record: number,
    values: ReadonlyMap<string, number>,
  ): void {
    const { name, startByte, byteLength } = location
    const { step: indexStep, content } = index
    const place = { file: index.path, offset: startByte, tensor: name, step: indexStep }
    const lost = `tensor ${quote(name)} at step ${indexStep} is not found`
    if (range.recordByteLength[record] !== byteLength) {
      const got = `one of ${range.recordByteLength[record]}`
      const expected = `a record of ${byteLength} bytes there in ${shortPath(path)}`
      this.#problem({ ...place, code: 'LengthMismatch', expected, found: got, lost })
    }
    const found = values.get(name)
    if (found === undefined) {
      const other = values.keys().next().value
      const got = other === undefined ? 'one that holds no tensor' : `one of ${quote(other)}`
      const expected = `a record of tensor ${quote(name)} there in ${shortPath(path)}`
      this.#problem({ ...place, code: other === undefined ? 'NoTensor' : 'TagMismatch', expected, found: got, lost })
      return
    }
    const step = range.step[record]!
    if (step !== indexStep) {
      const expected = `a record of step ${indexStep} there in ${shortPath(path)}`
      this.#problem({ ...place, code: 'StepMismatch', expected, found: `one of step ${step}`, lost })
    }
    const saved = content && content.shapes.length > 0 ? savedShapesOf(content.shapes).get(name) : undefined
    const shape = range.shape[found]
    if (saved && shape && !isSameShape(saved, shape)) {
      this.#problem({
        ...place,
        code: 'SavedShapeMismatch',
        expected: `shape [${shape}], as its record in ${shortPath(path)} has`,
        found: `[${saved}] in the index file`,
        lost: `the shape of tensor ${quote(name)} at step ${indexStep} is wrong in the index`,
      })
    }
    const mode = MODES[range.mode[found]! - 1]
    const modeStep = range.modeStep[found]!
    if (content?.mode === undefined || mode === undefined) return
    if (mode !== content.mode || (modeStep >= 0 && modeStep !== content.modeStep)) {
      const expected = `a record of ${content.mode} step ${content.modeStep}, as the index says`
      this.#note({
        ...place,
        code: 'ModeMismatch',
        expected,
        found: `one of ${mode}${modeStep < 0 ? '' : ` step ${modeStep}`} in ${shortPath(path)}`,
      })
    }
  }
}

/** From step to step index files share their lists. */
const savedShapes = new WeakMap<readonly SavedShape[], ReadonlyMap<string, readonly number[]>>()

function savedShapesOf(shapes: readonly SavedShape[]): ReadonlyMap<string, readonly number[]> {
  let known = savedShapes.get(shapes)
  if (known === undefined) {
    known = new Map(shapes.map(({ name, shape }) => [name, shape]))
    savedShapes.set(shapes, known)
  }
  return known
}
