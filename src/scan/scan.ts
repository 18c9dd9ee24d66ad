/** A scan: one plan over everything asked for, run on threads; rows come in a stable order, as soon as they are ready. */

import type { KnownMoments } from '../engine/border/abi.js'
import { isMomentName } from '../engine/statistics/statistic.js'
import { errorToData, type TrialscanError, UsageError } from '../errors.js'
import { columnsOf, type JobRecords, type RecordPlace, requestShape } from '../job/plan/coalesce.js'
import { type RowFormatName, rowFormat, type ScanRow } from '../job/row.js'
import {
  type ColumnsRequest,
  type PartReply,
  type PlanContext,
  type PlannedJob,
  planJobs,
  type ScanReply,
} from '../job/scan.js'
import { failureOfRecord } from '../runner/failed-job.js'
import { type Pumped, pump } from '../runner/pump.js'
import { isFaultOfJob, type Runner, runTwice } from '../runner/runner.js'
import type { StatisticName } from '../types.js'
import { Costs, type ScanStats } from './costs.js'
import { resultOfParts } from './record-parts.js'
import { type RecordResult, recordResults, resultsOf, type WholeReply, type WrittenRows } from './record-result.js'
import { type PlannedRow, planRecords, RowMaker, type RowsRequest, totals } from './rows.js'
import { OF_SCALAR } from './saved-number.js'

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

/** Rows of a scan as they come: one, or all that a job replied about. */
export interface ScanRows {
  readonly planned: readonly PlannedRow[]
  /** Null for a row that is made of something else. */
  readonly reply: ScanReply | null
  /** Makes one of the rows. */
  readonly row: (i: number) => ScanRow
}

/**
 * The rows of a scan for a table. It can be iterated once, as the scan can.
 * @param packed whether threads may make the pages of a Parquet file
 */
export let tableRowsOf: (
  scan: Scan,
  packed: boolean,
) => {
  readonly reductions: readonly StatisticName[]
  readonly url: string
  readonly rows: AsyncGenerator<ScanRows>
}

/** What threads make of rows, instead of moments. */
type Made = Pick<PlanContext, 'lines' | 'columns'>

const encoder = new TextEncoder()
/** How often a scan halves jobs that fail, before it gives up all of a job's records. From 16,384 records to one takes 14. */
const MAX_HALVINGS = 16
/** The least bytes of text to hand out at once. */
const LINES_BYTES = 1 << 16

type ManyRows = WrittenRows | WholeReply

/** The rows of a scan, to be read once. Iterating starts the work; leaving the loop ends it. */
export class Scan implements AsyncIterable<ScanRow> {
  readonly #request: ScanRequest
  readonly #costs = new Costs()
  #started = false
  #halvings = 0
  readonly #rowMaker: RowMaker
  /** Moments wanted beyond those that the reductions need. */
  #known: KnownMoments = 0
  #firstError: TrialscanError | null = null

  static {
    tableRowsOf = (scan, packed) => {
      const { reductions, url } = scan.#request
      return { reductions, url: url(''), rows: scan.#wholes({ names: reductions.filter(isMomentName), packed }) }
    }
  }

  /** Use `trial.scan`. @internal */
  constructor(request: ScanRequest) {
    this.#request = request
    this.#rowMaker = new RowMaker(request)
  }

  /** What it has cost so far. */
  get stats(): Readonly<ScanStats> {
    return this.#costs.stats
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
    for await (const { rows, first, results } of this.#rows({})) {
      const row = this.#rowMaker.row(rows[first]!, results as readonly RecordResult[])
      this.#count(row)
      yield row
    }
  }

  /**
   * The rows as UTF-8 text instead, in whole lines, as many at a time as are ready. The threads that make the rows
   * write them. Use this instead of iterating over the scan; it, too, can be done once.
   * @param trial what stands in a first column, for rows of several trials. Default: there is none
   */
  async *lines(format: RowFormatName, trial?: string): AsyncGenerator<Uint8Array> {
    this.#start()
    const { reductions, strict } = this.#request
    const { head, line } = rowFormat(format, reductions, trial)
    if (head !== '') yield encoder.encode(head)
    let open: Uint8Array[] = []
    let byteLength = 0
    for await (const { rows, first, results } of this.#rows({ lines: { format, reductions, strict, trial } })) {
      const [only] = results
      let text: Uint8Array
      if (only && 'text' in only) {
        text = only.text
        this.#costs.stats.rows += only.rows
      } else {
        const row = this.#rowMaker.row(rows[first]!, results as readonly RecordResult[])
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

  async *#wholes(columns: ColumnsRequest): AsyncGenerator<ScanRows> {
    this.#start()
    for await (const { rows, first, results } of this.#rows({ columns })) {
      const [only] = results
      const reply = only !== undefined && 'reply' in only ? only.reply : null
      const planned = rows.slice(first, first + (reply === null ? 1 : reply.described.dtypes.length))
      let parts: readonly RecordResult[] | undefined
      this.#costs.stats.rows += planned.length
      yield {
        planned,
        reply,
        row: i => {
          if (reply !== null) parts ??= recordResults(reply)
          const made = this.#rowMaker.row(
            planned[i]!,
            parts === undefined ? (results as readonly RecordResult[]) : [parts[i]!],
          )
          this.#costs.stats.rows--
          this.#count(made)
          return made
        },
      }
    }
  }

  #start(): void {
    if (this.#started) throw new UsageError('a scan can be iterated once; ask the trial for another')
    this.#started = true
  }

  #count({ error }: ScanRow): void {
    this.#costs.stats.rows++
    if (!error) return
    this.#costs.stats.failedRows++
    this.#firstError ??= error
  }

  /**
   * The planned rows in order, each with the results of its records; written text can stand for the rows that follow, too.
   * @param as with columns, whole replies can stand for rows
   */
  async *#rows(as: Made): AsyncGenerator<{
    readonly rows: readonly PlannedRow[]
    readonly first: number
    readonly results: readonly (RecordResult | ManyRows)[]
  }> {
    const startedAt = performance.now()
    const { signal, onProgress } = this.#request
    signal?.throwIfAborted()
    const { totalRows, totalBytes, hasSaved } = totals(this.#request)
    if (hasSaved) this.#known |= OF_SCALAR
    const runner = await this.#request.runner(totalBytes)
    this.#costs.stats.threads = runner.threads
    // Rows that are planned and not handed out yet. Planning goes on only as rows are handed out, so that this does not
    // grow with the trial.
    const rows: PlannedRow[] = []
    const results: (RecordResult | ManyRows)[] = []
    let doneRows = 0
    const finished = this.#results(planRecords(this.#request, rows), runner, totalBytes, as)
    for (;;) {
      const next = await finished.next()
      if (!next.done) results.push(...next.value)
      let made = 0
      let used = 0
      while (made < rows.length) {
        const { recordCount } = rows[made]!
        const first = made
        const from = used
        const many = results[used]
        if (recordCount > 0 && many && 'rows' in many && many.rows > 1) {
          // Every record has its row, so they are handed out as they are.
          made += many.rows
          used++
        } else {
          if (from + recordCount > results.length) break
          made++
          used += recordCount
        }
        yield { rows, first, results: results.slice(from, used) }
        signal?.throwIfAborted()
      }
      rows.splice(0, made)
      results.splice(0, used)
      doneRows += made
      this.#costs.stats.elapsedMs = performance.now() - startedAt
      onProgress?.({ doneRows, totalRows, readBytes: this.#costs.stats.readBytes, totalBytes })
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
    totalBytes: number,
    as: Made,
  ): AsyncGenerator<readonly (RecordResult | ManyRows)[]> {
    const { ahead, threads } = runner
    // Of a store that makes requests, several jobs are under way on each thread, and share its memory.
    const work =
      requestShape([this.#request.context.store], 0) === null ? { byteLength: totalBytes, threads } : undefined
    let parts: (PartReply | TrialscanError)[] = []
    const jobs = planJobs(records, { ...this.#context, ...as, work })
    for await (const pumped of this.#pump(jobs, runner, ahead)) {
      const { plan, reply, error, waitMs } = pumped
      const { job, places, count } = plan
      this.#costs.add(reply, waitMs)
      if (job.kind === 'part') {
        parts.push((reply as PartReply | null) ?? this.#lost(job, 0, error))
        if (job.part + job.partCount < job.parts) continue
        yield [resultOfParts(job, parts, this.#request.url)]
        parts = []
      } else if (reply === null) yield await this.#halved(places, error, runner)
      else if (as.columns && places.every(({ row }) => row))
        yield [{ reply: reply as ScanReply, rows: count }]
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

  /** The error of one record, from that of its whole job. */
  #lost(job: JobRecords, record: number, error: unknown): TrialscanError {
    return failureOfRecord(errorToData(error), job, record, this.#request.url)
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
      for await (const { plan, reply, error, waitMs } of this.#pump(planJobs(half, this.#context), runner, 1)) {
        this.#costs.add(reply, waitMs)
        if (reply !== null) results.push(...recordResults(reply as ScanReply))
        else results.push(...(await this.#halved(plan.places, error, runner)))
      }
    }
    return results
  }
}
