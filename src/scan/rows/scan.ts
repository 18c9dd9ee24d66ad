/** A scan: one plan over everything asked for, run on threads; rows come in a stable order, as soon as they are ready. */

import { type TrialscanError, UsageError } from '../../base/errors.js'
import type { StatisticName } from '../../base/types.js'
import type { KnownMoments } from '../../core/border/abi.js'
import { isMomentName, type Statistics } from '../../core/statistics/statistic.js'
import { requestShape } from '../job/plan/coalesce.js'
import { type RowFormat, type RowFormatName, rowFormat, type ScanRow } from '../job/row.js'
import type { PlanContext } from '../job/scan-job.js'
import type { Runner } from '../runner/runner.js'
import { Costs, type ScanStats } from './costs.js'
import { type ReadJob, readJobs } from './read-jobs.js'
import { RecordResults } from './record-results.js'
import { planRecords, RowMaker, type RowsRequest, sourcesOf, totals } from './row-maker.js'
import { OF_SCALAR } from './saved-number.js'
import { columnsOfRows, ReplyColumns, type RowsInColumns, type ScanColumns } from './scan-columns.js'

/** The progress of a scan. */
export interface ScanProgress {
  readonly doneRows: number
  readonly totalRows: number
  readonly readBytes: number
  readonly totalBytes: number
}

export interface ScanRequest extends RowsRequest {
  /** The problems of the trial as a whole, and the parts of the selection that match nothing. */
  readonly problems: () => readonly TrialscanError[]
  readonly context: PlanContext
  /** @param cost of all, as bytes that are read and reduced */
  readonly runner: (cost: number) => Promise<Runner> | Runner
  readonly signal: AbortSignal | undefined
  readonly onProgress: ((progress: ScanProgress) => void) | undefined
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
  readonly rows: AsyncGenerator<RowsInColumns>
}

/** The products of threads besides moments. */
type Wanted = Pick<PlanContext, 'lines' | 'columns'>

const encoder = new TextEncoder()
/** The least bytes of text to hand out at once. */
const LINES_BYTES = 1 << 16

/** The rows of a scan, to be read once. Iterating starts the work; leaving the loop ends it. */
export class Scan<S extends Statistics = Statistics> implements AsyncIterable<ScanRow<S>> {
  readonly #request: ScanRequest
  readonly #costs = new Costs()
  #started = false
  readonly #rowMaker: RowMaker
  #firstError: TrialscanError | null = null

  static {
    tableRowsOf = (scan, packed) => {
      const { reductions, url } = scan.#request
      return { reductions, url: url(''), rows: scan.#countedColumns(packed) }
    }
  }

  /** Use `trial.scan`. @internal */
  constructor(request: ScanRequest) {
    this.#request = request
    this.#rowMaker = new RowMaker(request)
  }

  /** The cost so far. */
  get stats(): Readonly<ScanStats> {
    return this.#costs.stats
  }

  /** The problems that are in no row: those of the trial, and a `NothingSelected` for each part of the selection that matches nothing. */
  get problems(): readonly TrialscanError[] {
    return this.#request.problems()
  }

  /** The first error among the rows that were handed out. */
  get firstError(): TrialscanError | null {
    return this.#firstError
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ScanRow<S>> {
    const { signal } = this.#request
    for await (const columns of this.#columns(false, true)) {
      for (let i = 0; i < columns.length; i++) {
        const row = columns.wholeRow(i)
        this.#count(row)
        yield row as ScanRow<S>
        signal?.throwIfAborted()
      }
    }
  }

  /**
   * The rows in columns instead: typed arrays, of up to 16,384 rows at a time, as many as are ready. This takes a fraction of the time that
   * objects take. Use it instead of iterating over the scan; it, too, can be done once.
   */
  columns(): AsyncGenerator<ScanColumns<{ readonly [N in keyof S]: Float64Array }>> {
    return this.#countedColumns(false) as AsyncGenerator<ScanColumns<never>>
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
    for await (const read of this.#jobs({ lines: { format, reductions, strict, trial } })) {
      for (const text of this.#textsOf(read, line)) {
        open.push(text)
        byteLength += text.length
        if (byteLength < LINES_BYTES) continue
        yield open.length === 1 ? text : Buffer.concat(open)
        open = []
        byteLength = 0
      }
    }
    if (open.length > 0) yield Buffer.concat(open)
  }

  /** The text of the rows: as the threads have written it, and the others. */
  *#textsOf({ plan, reply }: ReadJob, line: RowFormat['line']): Generator<Uint8Array> {
    const { stats } = this.#costs
    const { lines } = reply
    if (lines?.byteLengths === null) {
      stats.rows += plan.count
      yield lines.text
      return
    }
    const results = new RecordResults(reply)
    let at = 0
    for (const source of sourcesOf(plan, results)) {
      const byteLength = (typeof source === 'number' && lines?.byteLengths?.[source]) || 0
      if (lines && byteLength > 0) {
        stats.rows++
        yield lines.text.subarray(at, at + byteLength)
        at += byteLength
        continue
      }
      const row = this.#rowMaker.row(plan, source, results)
      this.#count(row)
      yield encoder.encode(line(row))
    }
  }

  /** @param packed whether columns of reductions may be pages of a Parquet file */
  async *#columns(packed: boolean, moments: boolean): AsyncGenerator<RowsInColumns> {
    this.#start()
    const { reductions, context } = this.#request
    const { wallTimes = false } = context
    const names = reductions.filter(isMomentName)
    for await (const read of this.#jobs({ columns: { names, packed, moments } })) {
      const columns = read.plan.isWhole
        ? new ReplyColumns(read, reductions, wallTimes, this.#rowMaker)
        : columnsOfRows(this.#rowMaker.rows(read), reductions, wallTimes)
      if (columns.length > 0) yield columns
    }
  }

  async *#countedColumns(packed: boolean): AsyncGenerator<RowsInColumns> {
    const { stats } = this.#costs
    for await (const columns of this.#columns(packed, false)) {
      stats.rows += columns.length
      stats.failedRows += columns.failed.length
      const [first] = columns.failed
      if (first !== undefined) this.#firstError ??= columns.row(first).error ?? null
      yield columns
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

  /** The jobs in the order of their rows. */
  async *#jobs(wanted: Wanted): AsyncGenerator<ReadJob> {
    const startedAt = performance.now()
    const { context, signal, onProgress, url } = this.#request
    const { stats } = this.#costs
    signal?.throwIfAborted()
    const { totalRows, totalBytes, totalCost, hasSaved } = totals(this.#request)
    const runner = await this.#request.runner(totalCost)
    const { threads } = runner
    stats.threads = threads
    const known: KnownMoments = hasSaved ? context.known | OF_SCALAR : context.known
    // Of a store that makes requests, several jobs are under way on each thread, and share its memory.
    const work = requestShape([context.store], 0) === null ? { byteLength: totalBytes, threads } : undefined
    const reading = { context: { ...context, ...wanted, known, work }, runner, signal, url, costs: this.#costs }
    const report = () => {
      stats.elapsedMs = performance.now() - startedAt
      onProgress?.({ doneRows: stats.rows, totalRows, readBytes: stats.readBytes, totalBytes })
    }
    for await (const read of readJobs(planRecords(this.#request), reading)) {
      yield read
      signal?.throwIfAborted()
      report()
    }
    report()
  }
}
