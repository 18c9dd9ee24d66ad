/** A scan: one plan over everything asked for, run on threads; rows come in a stable order, as soon as they are ready. */

import type { KnownMoments } from '../engine/border/abi.js'
import type { Moments } from '../engine/moments.js'
import { Distribution } from '../engine/statistics/distribution.js'
import { errorFromData, errorToData, type TrialscanError, UsageError } from '../errors.js'
import { columnsOf, type JobRecords, type RecordPlace } from '../job/plan/coalesce.js'
import { shapesOf, type ThreadTimes } from '../job/reply.js'
import { type RowFormatName, rowFormat, type ScanRow } from '../job/row.js'
import {
  type LinesRequest,
  type PartJob,
  type PartReply,
  type PlanContext,
  type PlannedJob,
  planJobs,
  type ScanReply,
} from '../job/scan.js'
import { failureOfRecord } from '../runner/failed-job.js'
import { type Pumped, pump } from '../runner/pump.js'
import { isFaultOfJob, type Runner, runTwice } from '../runner/runner.js'
import { addTraffic, newTraffic, type Traffic } from '../store/store.js'
import { mergeParts } from './merge-parts.js'
import { type RecordResult, recordResults, resultsOf, type WrittenRows } from './record-result.js'
import { type PlannedRow, planRecords, RowMaker, type RowsRequest, totals } from './rows.js'
import { OF_SCALAR } from './saved-number.js'

/** What a scan has cost so far. */
export interface ScanStats {
  /** Rows handed out, and how many of them have an error. */
  rows: number
  failedRows: number
  records: number
  readBytes: number
  reads: number
  jobs: number
  /** 0: the calling thread does the work. */
  readonly threads: number
  elapsedMs: number
  /** Where the time went, if `timed` was set. */
  spent?: ScanTimes
  /** Requests that were made, if the trial's store makes requests. */
  traffic?: Readonly<Traffic>
}

/** Milliseconds; those of all threads are added up. */
export interface ScanTimes extends ThreadTimes {
  /** Time that the calling thread waited for the others. */
  readonly waitMs: number
}

/** How far a scan has come. */
export interface ScanProgress {
  readonly doneRows: number
  readonly totalRows: number
  readonly readBytes: number
  readonly totalBytes: number
}

export interface ScanRequest extends RowsRequest {
  /** What is wrong with the trial as a whole. */
  readonly problems: readonly TrialscanError[]
  readonly context: PlanContext
  readonly runner: (totalBytes: number) => Promise<Runner> | Runner
  readonly signal: AbortSignal | undefined
  readonly onProgress: ((progress: ScanProgress) => void) | undefined
}

const encoder = new TextEncoder()
/** How often a scan halves jobs that fail, before it gives up all of a job's records. From 16,384 records to one takes 14. */
const MAX_HALVINGS = 16
/** The least bytes of text to hand out at once. */
const LINES_BYTES = 1 << 16

/** The rows of a scan, to be read once. Iterating starts the work; leaving the loop ends it. */
export class Scan implements AsyncIterable<ScanRow> {
  readonly #request: ScanRequest
  readonly #stats: { -readonly [K in keyof ScanStats]: ScanStats[K] }
  #started = false
  #waitMs = 0
  #halvings = 0
  readonly #rowMaker: RowMaker
  /** Moments wanted beyond those that the reductions need. */
  #known: KnownMoments = 0
  #firstError: TrialscanError | null = null

  /** Use `trial.scan`. @internal */
  constructor(request: ScanRequest) {
    this.#request = request
    this.#rowMaker = new RowMaker(request)
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

  /** What it has cost so far. */
  get stats(): Readonly<ScanStats> {
    return this.#stats
  }

  /** What is wrong with the trial but in no row: records of files without an index, collections files. */
  get problems(): readonly TrialscanError[] {
    return this.#request.problems
  }

  /** The first error among the rows that were handed out. */
  get firstError(): TrialscanError | null {
    return this.#firstError
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ScanRow> {
    this.#start()
    for await (const { planned, results } of this.#rows(undefined)) {
      const row = this.#rowMaker.row(planned, results as readonly RecordResult[])
      this.#count(row)
      yield row
    }
  }

  /**
   * The rows as UTF-8 text instead, in whole lines, as many at a time as are ready. The threads that make the rows
   * write them. Use this instead of iterating over the scan; it, too, can be done once.
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
      if (only && 'text' in only) {
        text = only.text
        this.#stats.rows += only.rows
      } else {
        const row = this.#rowMaker.row(planned, results as readonly RecordResult[])
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

  #spend({ readMs, decodeMs, reduceMs, writeMs }: ThreadTimes): void {
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

  /** The planned rows in order, each with the results of its records; written text can stand for the rows that follow, too. */
  async *#rows(
    lines: LinesRequest | undefined,
  ): AsyncGenerator<{ readonly planned: PlannedRow; readonly results: readonly (RecordResult | WrittenRows)[] }> {
    const startedAt = performance.now()
    const { signal, onProgress } = this.#request
    signal?.throwIfAborted()
    const { totalRows, totalBytes, hasSaved } = totals(this.#request)
    if (hasSaved) this.#known |= OF_SCALAR
    const runner = await this.#request.runner(totalBytes)
    this.#stats.threads = runner.threads
    // Rows that are planned and not handed out yet. Planning goes on only as rows are handed out, so that this does not
    // grow with the trial.
    const rows: PlannedRow[] = []
    const results: (RecordResult | WrittenRows)[] = []
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
        const written = results[used]
        if (planned.recordCount > 0 && written && 'text' in written && written.rows > 1) {
          // Every record has its row, so the text is handed out as it is.
          made += written.rows
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

  /** The results of records, in order, one job at a time. */
  async *#results(
    records: Iterable<RecordPlace | null>,
    runner: Runner,
    lines: LinesRequest | undefined,
  ): AsyncGenerator<readonly (RecordResult | WrittenRows)[]> {
    const { ahead } = runner
    let parts: (PartReply | TrialscanError)[] = []
    for await (const pumped of this.#pump(planJobs(records, { ...this.#context, lines }), runner, ahead)) {
      const { plan, reply, error, waitMs } = pumped
      const { job, places, count } = plan
      this.#waitMs += waitMs
      this.#account(reply)
      if (job.kind === 'part') {
        parts.push((reply as PartReply | null) ?? this.#lost(job, 0, error))
        if (job.part + job.partCount < job.parts) continue
        yield [this.#merged(job, parts)]
        parts = []
      } else if (reply === null) yield await this.#halved(places, error, runner)
      else yield resultsOf(reply as ScanReply, count)
    }
  }

  #pump(
    jobs: Iterable<PlannedJob>,
    runner: Runner,
    ahead: number,
  ): AsyncGenerator<Pumped<PlannedJob, ScanReply | PartReply>> {
    const { signal } = this.#request
    const work = ({ job }: PlannedJob): Promise<ScanReply | PartReply> =>
      runTwice<PlannedJob['job']>(runner, job, signal)
    return pump(jobs, work, { ahead, signal })
  }

  /** The result of a record that was read in parts, if all of them could be read. */
  #merged(job: PartJob, parts: readonly (PartReply | TrialscanError)[]): RecordResult {
    const replies: PartReply[] = []
    for (const part of parts) {
      if (part instanceof Error) return { error: part }
      const [failure] = part.failures
      if (failure) return { error: errorFromData(failure.error) }
      replies.push(part)
    }
    const { described, answers } = replies[0]!
    const { startByte, byteLength } = job.records
    const moments = mergeParts({
      rows: replies.flatMap(({ moments, checksums }) => rowsOf(moments, checksums.length)),
      checksums: replies.flatMap(({ checksums }) => checksums),
      dtype: described.dtypes[0]!,
      record: 0,
      byteLength: byteLength[0]!,
      placeOf: () => ({ url: this.#request.url(job.files[0]!), startByte: startByte[0]!, tensor: job.tags[0]! }),
      checkLevel: job.checkLevel,
    })
    if (moments instanceof Error) return { error: moments }
    return { moments, shape: shapesOf(described)[0]!, answers, sketched: sketchOfParts(replies, moments) }
  }

  /** The error of one record, from that of its whole job. */
  #lost(job: JobRecords, record: number, error: unknown): TrialscanError {
    return failureOfRecord(errorToData(error), job, record, this.#request.url)
  }

  #account(answer: ScanReply | PartReply | null): void {
    this.#stats.jobs++
    if (answer?.traffic) addTraffic(this.#traffic(), answer.traffic)
    if (answer === null) return
    this.#stats.records += answer.stats.records
    this.#stats.readBytes += answer.stats.readBytes
    this.#stats.reads += answer.stats.reads
    if (answer.stats.spent) this.#spend(answer.stats.spent)
  }

  /**
   * What can be saved of a job that failed as a whole, perhaps with its thread: it is halved, and halved again, until
   * only the records to blame are lost. Rows are written on this thread, since the end of each has to be known.
   */
  async #halved(records: readonly RecordPlace[], failure: unknown, runner: Runner): Promise<RecordResult[]> {
    if (records.length === 1 || this.#halvings === MAX_HALVINGS || !isFaultOfJob(failure)) {
      const columns = columnsOf(records)
      return records.map((_, record) => ({ error: this.#lost(columns, record, failure) }))
    }
    this.#halvings++
    const results: RecordResult[] = []
    const middle = records.length >> 1
    for (const half of [records.slice(0, middle), records.slice(middle)]) {
      for await (const { plan, reply, error } of this.#pump(planJobs(half, this.#context), runner, 1)) {
        this.#account(reply)
        if (reply !== null) results.push(...recordResults(reply as ScanReply))
        else results.push(...(await this.#halved(plan.places, error, runner)))
      }
    }
    return results
  }
}

/** The distribution of a record that was read in parts, if it was sketched: each part is of the elements of one job. */
function sketchOfParts(replies: readonly PartReply[], whole: Moments): Distribution | undefined {
  if (replies.every(({ sketches }) => sketches.ends.length === 0)) return undefined
  const counts = new Map<number, number>()
  for (const { sketches } of replies) {
    const { pairs } = sketches
    for (let i = 0; i < pairs.length; i += 2) counts.set(pairs[i]!, (counts.get(pairs[i]!) ?? 0) + pairs[i + 1]!)
  }
  const sorted = [...counts].sort(([a], [b]) => a - b)
  return Distribution.of(whole, Float64Array.from(sorted.flat()))
}

function rowsOf(moments: Float64Array, count: number): Float64Array[] {
  const length = moments.length / count
  return Array.from({ length: count }, (_, i) => moments.subarray(i * length, (i + 1) * length))
}
