/** A scan: one plan over everything asked for, run on threads, rows in a stable order as they come. */

import { dtypeOf } from '../engine/dtype.js'
import { asideEngine, coreLayout, KNOWN, type Known } from '../engine/engine.js'
import { isDefined, Moments, type ReductionValue, undefinedReduction } from '../engine/moments.js'
import { BAD_PAYLOAD_CRC, type FaultPlace, faultError } from '../engine/status.js'
import {
  EngineError,
  type ErrorData,
  errorFromData,
  errorToData,
  inFull,
  ReductionUndefined,
  type TrialscanError,
  UsageError,
} from '../errors.js'
import type { TensorLocation } from '../format/index-file.js'
import type { Descriptions, HistogramResult, PartChecksum, Spent } from '../job/reply.js'
import type { PartReply, ScanReply } from '../job/scan.js'
import { type LinesRequest, type PlanContext, type PlannedJob, planJobs } from '../job/scan.js'
import { columnsOf, type RecordPlace, type RowPlace } from '../plan.js'
import type { Job, ReplyTo } from '../pool/message.js'
import { type RowFormatName, rowFormat, type ScanRow } from '../pool/row.js'
import { isFaultOfJob, isLackOfMeans, type Runner, runTwice } from '../pool/runner.js'
import { addTraffic, newTraffic, type Traffic } from '../store/store.js'
import { CHECK_LEVELS, type ReductionName } from '../types.js'
import type { SavedTensor, WorkerStep } from './catalog.js'
import { failureOfRecord } from './failed-job.js'

/** What a scan has cost so far. */
export interface ScanStats {
  /** Rows handed out, and how many of them with an error. */
  rows: number
  failedRows: number
  records: number
  readBytes: number
  reads: number
  jobs: number
  /** 0: the calling thread did the work. */
  readonly threads: number
  elapsedMs: number
  /** Where the time went, if `timed` was asked for. */
  spent?: ScanTimes
  /** Requests that were made, if the trial is where requests have to be made. */
  traffic?: Readonly<Traffic>
}

/** Milliseconds; those of the threads are added up. */
export interface ScanTimes extends Spent {
  /** That the calling thread waited for the others. */
  readonly waitMs: number
}

/** How far a scan is. */
export interface ScanProgress {
  readonly doneRows: number
  readonly totalRows: number
  readonly readBytes: number
  readonly totalBytes: number
}

/** A row to be made of as many records. */
interface PlannedRow {
  readonly workerStep: WorkerStep
  readonly saved: SavedTensor | null
  readonly recordCount: number
  /** Names of the saved reductions that the records hold; null where the record is the value. */
  readonly reductions: readonly ReductionName[] | null
}

/** A saved tensor to scan; null where the index file can't be read. */
export interface ScanItem {
  readonly workerStep: WorkerStep
  readonly saved: SavedTensor | null
}

export interface ScanRequest {
  /** What is wrong with the trial as a whole. */
  readonly problems: readonly TrialscanError[]
  /** Iterated more than once. */
  readonly items: Iterable<ScanItem>
  /** Every reduction of `all`, left out where a dtype does not have it; asked one by one, that is an error. */
  readonly reductions: readonly ReductionName[]
  readonly strict: boolean
  readonly context: PlanContext
  readonly runner: (totalBytes: number) => Promise<Runner> | Runner
  readonly url: (path: string) => string
  readonly signal: AbortSignal | undefined
  readonly onProgress: ((progress: ScanProgress) => void) | undefined
}

/** What became of one record. */
export type RecordResult =
  | { readonly moments: Moments; readonly shape: readonly number[] }
  | { readonly histogram: HistogramResult }
  | { readonly error: TrialscanError }

/** Rows written down by the thread that made them: one for each of as many records. */
interface Line {
  readonly line: Uint8Array
  readonly rows: number
}

const encoder = new TextEncoder()
/** How often a scan halves jobs that fail, before it takes all of a job's records for lost: to one of 16,384 it takes 14. */
const MAX_HALVINGS = 16
/** Text that is worth handing on. */
const LINES_BYTES = 1 << 16

/** The rows of a scan, once. Iterating it starts the work; leaving the loop ends it. */
export class Scan implements AsyncIterable<ScanRow> {
  readonly #request: ScanRequest
  readonly #stats: { -readonly [K in keyof ScanStats]: ScanStats[K] }
  #started = false
  #waitMs = 0
  #halvings = 0
  /** Event files that were named in an error. */
  readonly #named = new Set<string>()
  /** More than the reductions need. */
  #known: Known = 0
  #firstError: TrialscanError | null = null

  constructor(request: ScanRequest) {
    this.#request = request
    this.#stats = {
      rows: 0,
      failedRows: 0,
      records: 0,
      readBytes: 0,
      reads: 0,
      jobs: 0,
      threads: 0,
      elapsedMs: 0,
    }
  }

  /** What it has cost up to now. */
  get stats(): Readonly<ScanStats> {
    return this.#stats
  }

  /** What is wrong with the trial and no row tells: records of files without an index, collections files. */
  get problems(): readonly TrialscanError[] {
    return this.#request.problems
  }

  /** The first error of a row, of those that were handed out. */
  get firstError(): TrialscanError | null {
    return this.#firstError
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ScanRow> {
    this.#start()
    for await (const { planned, results } of this.#rows(undefined)) {
      const row = this.#row(planned, results as readonly RecordResult[])
      this.#count(row)
      yield row
    }
  }

  /**
   * The rows as text instead, UTF-8, whole lines, as many at a time as are there: written by the threads that make them.
   * In place of iterating over the scan, and once as well.
   */
  async *lines(format: RowFormatName): AsyncGenerator<Uint8Array> {
    this.#start()
    const { reductions, strict } = this.#request
    const { head, line } = rowFormat(format, reductions)
    if (head !== '') yield encoder.encode(head)
    let open: Uint8Array[] = []
    let byteLength = 0
    for await (const { planned, results } of this.#rows({ format, reductions, strict })) {
      const [only] = results
      let text: Uint8Array
      if (only && 'line' in only) {
        text = only.line
        this.#stats.rows += only.rows
      } else {
        const row = this.#row(planned, results as readonly RecordResult[])
        this.#count(row)
        text = encoder.encode(line(row))
      }
      open.push(text)
      byteLength += text.length
      if (byteLength < LINES_BYTES) continue
      yield open.length === 1 ? text : Buffer.concat(open)
      open = []
      byteLength = 0
    }
    if (open.length > 0) yield Buffer.concat(open)
  }

  #spend({ readMs, decodeMs, reduceMs, writeMs }: Spent): void {
    const { spent } = this.#stats
    this.#stats.spent = {
      readMs: (spent?.readMs ?? 0) + readMs,
      decodeMs: (spent?.decodeMs ?? 0) + decodeMs,
      reduceMs: (spent?.reduceMs ?? 0) + reduceMs,
      writeMs: (spent?.writeMs ?? 0) + writeMs,
      waitMs: this.#waitMs,
    }
  }

  #traffic(): Traffic {
    const traffic = this.#stats.traffic ?? newTraffic()
    this.#stats.traffic = traffic
    return traffic
  }

  #start(): void {
    if (this.#started) throw new UsageError('a scan can be iterated once; ask the trial for another')
    this.#started = true
  }

  #count({ error }: ScanRow): void {
    this.#stats.rows++
    if (!error) return
    this.#stats.failedRows++
    this.#firstError ??= error
  }

  /** The planned rows in order, each with the results of its records; a line can stand for the rows that follow, too. */
  async *#rows(
    lines: LinesRequest | undefined,
  ): AsyncGenerator<{ readonly planned: PlannedRow; readonly results: readonly (RecordResult | Line)[] }> {
    const startedAt = performance.now()
    const { signal, onProgress } = this.#request
    signal?.throwIfAborted()
    const { totalRows, totalBytes, hasSaved } = totals(this.#request)
    if (hasSaved) this.#known |= OF_SCALAR
    const runner = await this.#request.runner(totalBytes)
    this.#stats.threads = runner.threads
    // Planned, and not handed out yet; planning and handing out go hand in hand, so that what is held does not grow with
    // the trial.
    const rows: PlannedRow[] = []
    const results: (RecordResult | Line)[] = []
    let doneRows = 0
    const finished = this.#results(planRecords(this.#request, rows), runner, lines)
    for (;;) {
      const next = await finished.next()
      if (!next.done) results.push(...next.value)
      let made = 0
      let used = 0
      while (made < rows.length) {
        const planned = rows[made]!
        const first = used
        const line = results[used]
        if (planned.recordCount > 0 && line && 'line' in line && line.rows > 1) {
          // As many rows as records: the text as it is.
          made += line.rows
          used++
        } else {
          if (first + planned.recordCount > results.length) break
          made++
          used += planned.recordCount
        }
        yield { planned, results: results.slice(first, used) }
        signal?.throwIfAborted()
      }
      rows.splice(0, made)
      results.splice(0, used)
      doneRows += made
      this.#stats.elapsedMs = performance.now() - startedAt
      onProgress?.({ doneRows, totalRows, readBytes: this.#stats.readBytes, totalBytes })
      if (next.done) return
    }
  }

  get #context(): PlanContext {
    const { context } = this.#request
    return { ...context, known: context.known | this.#known }
  }

  /** Results of the records, in order, a job's worth at a time. */
  async *#results(
    records: Iterable<RecordPlace | null>,
    runner: Runner,
    lines: LinesRequest | undefined,
  ): AsyncGenerator<readonly (RecordResult | Line)[]> {
    const { signal, url } = this.#request
    const jobs = planJobs(records, { ...this.#context, lines })
    // No more than that, so that replies don't pile up.
    const { ahead } = runner
    const inFlight: { planned: PlannedJob; reply: Promise<ReplyTo<Job>> }[] = []
    const parts = new PartMerger(this.#request.url)
    for (;;) {
      while (inFlight.length < ahead) {
        const next = jobs.next()
        if (next.done) break
        const planned = next.value
        const reply = runTwice<Job>(runner, planned.job, signal)
        reply.catch(() => {})
        inFlight.push({ planned, reply })
      }
      const oldest = inFlight.shift()
      if (oldest === undefined) return
      const { planned, reply } = oldest
      const { job } = planned
      const askedAt = performance.now()
      let answer: ReplyTo<Job> | null = null
      let failure: unknown
      try {
        answer = await reply
      } catch (error) {
        signal?.throwIfAborted()
        if (isLackOfMeans(error)) throw error
        failure = error
      }
      this.#waitMs += performance.now() - askedAt
      this.#account(answer)
      if (job.kind === 'part') {
        const failed = answer === null ? failureOfRecord(errorToData(failure), job, 0, url) : null
        const merged = parts.add(planned, answer as PartReply | null, failed)
        if (merged) yield [merged]
      } else if (answer === null) {
        yield await this.#halved(planned.places, failure, runner)
      } else {
        yield unpack(answer as ScanReply, planned.count)
      }
    }
  }

  #account(answer: ReplyTo<Job> | null): void {
    this.#stats.jobs++
    if (answer?.traffic) addTraffic(this.#traffic(), answer.traffic)
    if (answer === null || !('stats' in answer)) return
    this.#stats.records += answer.stats.records
    this.#stats.readBytes += answer.stats.readBytes
    this.#stats.reads += answer.stats.reads
    if (answer.stats.spent) this.#spend(answer.stats.spent)
  }

  /**
   * What is left of a job that failed as a whole, perhaps with its thread: of halves of it, and halves of those, until only
   * the records that are to blame are lost. Rows are written down here, since it has to be known where each ends.
   */
  async #halved(records: readonly RecordPlace[], failure: unknown, runner: Runner): Promise<RecordResult[]> {
    const { signal, url } = this.#request
    if (records.length === 1 || this.#halvings === MAX_HALVINGS || !isFaultOfJob(failure)) {
      const error = errorToData(failure)
      const columns = columnsOf(records)
      return records.map((_, record) => ({ error: failureOfRecord(error, columns, record, url) }))
    }
    this.#halvings++
    const results: RecordResult[] = []
    const middle = records.length >> 1
    for (const half of [records.slice(0, middle), records.slice(middle)]) {
      for (const { job, places } of planJobs(half, this.#context)) {
        try {
          const answer = await runTwice<Job>(runner, job, signal)
          this.#account(answer)
          results.push(...unpackRecords(answer as ScanReply))
        } catch (error) {
          signal?.throwIfAborted()
          if (isLackOfMeans(error)) throw error
          this.#account(null)
          results.push(...(await this.#halved(places, error, runner)))
        }
      }
    }
    return results
  }

  #row(row: PlannedRow, results: readonly RecordResult[]): ScanRow {
    const { workerStep, saved } = row
    const { step, mode, modeStep, worker, error } = workerStep
    const place = { step, mode, modeStep, worker }
    if (saved === null) {
      return { tensor: null, ...place, dtype: null, shape: null, reductions: {}, saved: false, error: error! }
    }
    const { tensor } = saved
    if (row.reductions !== null) {
      const made = savedRow(row.reductions, results, saved, place)
      const { error } = made
      if (!error) return made
      return { ...made, error: this.#naming(error, workerStep, saved.reductions.values().next().value!) }
    }
    const result = results[0]!
    if ('error' in result) {
      const error = this.#naming(result.error, workerStep, saved.value!)
      return { tensor, ...place, dtype: null, shape: null, reductions: {}, saved: false, error }
    }
    const reductions: Partial<Record<ReductionName, ReductionValue>> = {}
    if ('histogram' in result) {
      const { shape, reductions: told } = result.histogram
      for (const name of this.#request.reductions) if (told[name] !== undefined) reductions[name] = told[name]
      return { tensor, ...place, dtype: 'float64', shape, reductions, saved: true }
    }
    const { moments, shape } = result
    const { dtype, exact } = moments
    let undefinedFor: TrialscanError | undefined
    for (const name of this.#request.reductions) {
      if (isDefined(name, dtype)) reductions[name] = moments.reduction(name)
      else if (this.#request.strict && dtype !== 'string') undefinedFor ??= undefinedReduction(name, dtype)
    }
    const read = { tensor, ...place, dtype, shape, reductions, saved: false, moments, ...(exact && { exact }) } as const
    return undefinedFor ? { ...read, error: undefinedFor } : read
  }

  /** An error of a row, the first of an event file with all of its path: see `inShort`. */
  #naming(error: TrialscanError, workerStep: WorkerStep, location: TensorLocation): TrialscanError {
    const file = location.eventFile ?? workerStep.eventFile
    if (this.#named.has(file) || error.fields.url === undefined) return error
    this.#named.add(file)
    return inFull(error, this.#request.url(file))
  }
}

/** The row of a tensor of which only reductions were saved. */
function savedRow(
  names: readonly ReductionName[],
  results: readonly RecordResult[],
  saved: SavedTensor,
  place: Pick<ScanRow, 'step' | 'mode' | 'modeStep' | 'worker'>,
): ScanRow {
  const reductions: Partial<Record<ReductionName, ReductionValue>> = {}
  const exact: Partial<Record<ReductionName, bigint>> = {}
  let error: TrialscanError | undefined
  names.forEach((name, i) => {
    const result = results[i]!
    if ('error' in result) error ??= result.error
    else if ('moments' in result) {
      const { moments } = result
      const value = savedNumber(moments, name)
      if (value instanceof ReductionUndefined) error ??= value
      else {
        reductions[name] = value
        if (moments.exact) exact[name] = moments.exact.min
      }
    }
  })
  const { tensor } = saved
  const shape = saved.shape?.shape ?? null
  const hasExact = Object.keys(exact).length > 0
  const row = { tensor, ...place, dtype: null, shape, reductions, saved: true, ...(hasExact && { exact }) } as const
  return error ? { ...row, error } : row
}

/** What moments must know for `savedNumber`. */
export const OF_SCALAR: Known = KNOWN.extremes | KNOWN.sum

/** The value of a tensor of one element, as a reduction is saved; or why it is none. */
export function savedNumber(moments: Moments, name: ReductionName): ReductionValue | ReductionUndefined {
  const { dtype, count, nanCount } = moments
  if (count !== 1 || dtype === 'string') {
    const got = dtype === 'string' ? 'text' : `${count} numbers`
    return new ReductionUndefined(name, dtype, `expected one number, as it was saved, got ${got}`)
  }
  if (dtype === 'complex64' || dtype === 'complex128') return moments.reduction('sum')
  return nanCount > 0 ? Number.NaN : moments.slot('min')
}

/** What there is to do, and whether saved reductions are among it. */
function totals({ items, reductions }: ScanRequest): { totalRows: number; totalBytes: number; hasSaved: boolean } {
  let totalRows = 0
  let totalBytes = 0
  let hasSaved = false
  for (const { saved } of items) {
    if (saved === null || saved.value !== null || saved.reductions.size > 0) totalRows++
    if (saved === null) continue
    if (saved.value !== null) totalBytes += saved.value.byteLength
    else {
      hasSaved ||= saved.reductions.size > 0
      for (const name of reductions) totalBytes += saved.reductions.get(name)?.byteLength ?? 0
    }
  }
  return { totalRows, totalBytes, hasSaved }
}

/** The records that are to be read, null for a row that needs none; the rows are put behind those that are planned. */
function* planRecords({ items, reductions }: ScanRequest, rows: PlannedRow[]): Generator<RecordPlace | null> {
  for (const { workerStep, saved } of items) {
    if (saved === null) {
      rows.push({ workerStep, saved, recordCount: 0, reductions: null })
      yield null
    } else if (saved.value !== null) {
      rows.push({ workerStep, saved, recordCount: 1, reductions: null })
      yield recordPlace(workerStep, saved.value, workerStep)
    } else if (saved.reductions.size > 0) {
      const names = reductions.filter(name => saved.reductions.has(name))
      rows.push({ workerStep, saved, recordCount: names.length, reductions: names })
      if (names.length === 0) yield null
      for (const name of names) yield recordPlace(workerStep, saved.reductions.get(name)!)
    }
  }
}

/** Where a saved tensor's record lies and what it must be; `row`: that of which it is all. */
export function recordPlace(
  { eventFile, step, isTornasole }: WorkerStep,
  { name, startByte, byteLength, eventFile: own }: TensorLocation,
  row: RowPlace | null = null,
): RecordPlace {
  return { file: own ?? eventFile, tag: name, startByte, byteLength, step, tornasole: isTornasole, row }
}

/** The check level's number in the core. */
export function checkLevelNumber(level: (typeof CHECK_LEVELS)[number]): number {
  return CHECK_LEVELS.indexOf(level)
}

/** The records of a reply, in order. */
function unpack(reply: ScanReply, count: number): (RecordResult | Line)[] {
  const { lines } = reply
  if (lines !== null && lines.byteLengths === null) return [{ line: lines.text, rows: count }]
  const results = unpackRecords(reply)
  if (lines === null) return results
  let at = 0
  return results.map((result, record) => {
    const byteLength = lines.byteLengths![record]!
    at += byteLength
    return byteLength === 0 ? result : { line: lines.text.subarray(at - byteLength, at), rows: 1 }
  })
}

/** What each record of a job told, in order. */
export function unpackRecords(reply: ScanReply): RecordResult[] {
  const layout = coreLayout().moments
  const { doubles } = layout
  const errors = new Map(reply.failures.map(({ record, error }) => [record, error]))
  const histograms = new Map(reply.histograms.map(histogram => [histogram.record, histogram]))
  const shapes = shapesOf(reply.described)
  return Array.from(reply.described.dtypes, (number, record): RecordResult => {
    const error = errors.get(record)
    const histogram = histograms.get(record)
    if (histogram) return { histogram }
    const dtype = dtypeOf(number)
    if (error || dtype === undefined) return { error: errorFromData(error ?? noAnswer(record)) }
    const row = reply.moments.subarray(record * doubles, (record + 1) * doubles)
    return { moments: new Moments(layout, dtype, row), shape: shapes[record]! }
  })
}

/** The shape of each described record. */
export function shapesOf({ ranks, dims }: Descriptions): number[][] {
  let at = 0
  return Array.from(ranks, rank => {
    const shape = Array.from(dims.subarray(at, at + rank))
    at += rank
    return shape
  })
}

export function noAnswer(record: number): ErrorData {
  return new EngineError(`a job answered nothing about its record ${record}`).toJSON()
}

/** Puts the parts of large records together: moments are merged in order, checksums combined and compared. */
class PartMerger {
  readonly #url: (path: string) => string
  #replies: PartReply[] = []
  #failure: TrialscanError | null = null

  constructor(url: (path: string) => string) {
    this.#url = url
  }

  /** @returns the record's result once its last part is in */
  add({ job }: PlannedJob, reply: PartReply | null, failure: TrialscanError | null): RecordResult | null {
    if (job.kind !== 'part') throw new EngineError(`expected a part of a record, got a job of kind ${job.kind}`)
    const refused = reply?.failures[0]?.error
    this.#failure ??= failure ?? (refused ? errorFromData(refused) : null)
    if (reply) this.#replies.push(reply)
    if (job.part < job.parts - 1) return null
    const replies = this.#replies
    const failed = this.#failure
    this.#replies = []
    this.#failure = null
    if (failed) return { error: failed }
    const mismatch = job.checkLevel === checkLevelNumber('full') ? this.#checksumError(job, replies) : undefined
    if (mismatch) return { error: mismatch }
    const { described } = replies[0]!
    const dtype = dtypeOf(described.dtypes[0]!)
    if (dtype === undefined) return { error: errorFromData(noAnswer(0)) }
    const row = asideEngine().mergeRows(replies.map(({ moments }) => moments))
    return { moments: new Moments(coreLayout().moments, dtype, row), shape: shapesOf(described)[0]! }
  }

  #checksumError(job: PlannedJob['job'], replies: readonly PartReply[]): TrialscanError | undefined {
    const { startByte, byteLength } = job.records
    const place = { url: this.#url(job.files[0]!), startByte: startByte[0]!, tensor: job.tags[0]! }
    return checksumError(replies, byteLength[0]!, place)
  }
}

/** What is wrong with the checksum of a record of which the parts were read one by one; undefined: nothing. */
export function checksumError(
  parts: readonly PartChecksum[],
  byteLength: number,
  place: FaultPlace,
): TrialscanError | undefined {
  const engine = asideEngine()
  const crc = parts.reduce((sum, part) => engine.crc32cCombine(sum, part.crc, part.crcByteLength), 0)
  const stored = parts.at(-1)!.storedCrc
  const computed = engine.maskedCrc(crc)
  if (stored === computed || stored === engine.uncheckedCrc) return undefined
  const fault = { status: BAD_PAYLOAD_CRC, faultOffset: byteLength - 4, expected: computed, got: stored, tag: '' }
  return faultError(fault, place)
}
