/** A scan: one plan over everything asked for, run on threads; rows come in a stable order, as soon as they are ready. */

import { errorToData, type TrialscanError, UsageError } from '../../base/errors.js'
import type { StatisticName } from '../../base/types.js'
import type { KnownMoments } from '../../core/border/abi.js'
import { isMomentName, type Statistics } from '../../core/statistics/statistic.js'
import { type JobRecords, type RecordPlace, type RecordRun, requestShape } from '../job/plan/coalesce.js'
import { type RowFormat, type RowFormatName, rowFormat, type ScanRow } from '../job/row.js'
import { type PartReply, type PlanContext, type PlannedJob, placesOf, planJobs, type ScanReply } from '../job/scan.js'
import { failureOfRecord } from '../runner/failed-job.js'
import { type Pumped, pump } from '../runner/pump.js'
import { isFaultOfJob, type Runner, runTwice } from '../runner/runner.js'
import { columnsOfRows, type RepliedRows, ReplyColumns, type RowsInColumns, type ScanColumns } from './columns.js'
import { Costs, type ScanStats } from './costs.js'
import { resultOfParts } from './record-parts.js'
import { type RecordResult, recordResults, resultsOf, type WrittenRows } from './record-result.js'
import { Rows, type ScanItem } from './row-groups.js'
import { planRecords, RowMaker, type RowsRequest, recordCountOf, totals } from './rows.js'
import { OF_SCALAR } from './saved-number.js'

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
/**
 * The number of times that failing jobs are halved before all of their records are given up. From 16,384 records to one takes
 * 14.
 */
const MAX_HALVINGS = 16
/** The least bytes of text to hand out at once. */
const LINES_BYTES = 1 << 16

/** The most rows that don't come from one reply and are handed out as columns together. */
const MAX_GATHERED = 4096

/** Rows as they come: all that a job replied about, or one, and the results of its records. */
type Made = RepliedRows | { readonly item: ScanItem; readonly results: readonly (RecordResult | WrittenRows)[] }

/** The rows of a scan, to be read once. Iterating starts the work; leaving the loop ends it. */
export class Scan<S extends Statistics = Statistics> implements AsyncIterable<ScanRow<S>> {
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
    for await (const ready of this.#rows({ lines: { format, reductions, strict, trial } })) {
      for (const made of ready) {
        const text = this.#textOf(made, line)
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
  #textOf(made: Made, line: RowFormat['line']): Uint8Array {
    if (!('item' in made) && made.reply.lines?.byteLengths === null) {
      this.#costs.stats.rows += made.plan.count
      return made.reply.lines.text
    }
    const rows =
      'item' in made
        ? [made]
        : resultsOf(made.reply).map((result, i) => ({ item: made.items.at(i), results: [result] }))
    const texts = rows.map(({ item, results }) => {
      const [only] = results
      if (only && 'text' in only) {
        this.#costs.stats.rows++
        return only.text
      }
      const row = this.#rowMaker.row(item, results as readonly RecordResult[])
      this.#count(row)
      return encoder.encode(line(row))
    })
    return texts.length === 1 ? texts[0]! : Buffer.concat(texts)
  }

  /** @param packed whether columns of reductions may be pages of a Parquet file */
  async *#columns(packed: boolean, moments: boolean): AsyncGenerator<RowsInColumns> {
    this.#start()
    const { reductions, context } = this.#request
    const { wallTimes = false } = context
    const names = reductions.filter(isMomentName)
    for await (const ready of this.#rows({ columns: { names, packed, moments } })) {
      // Those that were made one by one.
      let gathered: ScanRow[] = []
      for (const made of ready) {
        const isOne = 'item' in made
        if (isOne) {
          gathered.push(this.#rowMaker.row(made.item, made.results as readonly RecordResult[]))
          if (gathered.length < MAX_GATHERED) continue
        }
        if (gathered.length > 0) yield columnsOfRows(gathered, reductions, wallTimes)
        gathered = []
        if (!isOne) yield new ReplyColumns(made, reductions, this.#rowMaker)
      }
      if (gathered.length > 0) yield columnsOfRows(gathered, reductions, wallTimes)
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

  /** The rows in order, those that are ready at a time: those of a reply, if each of its records has one, or one by one. */
  async *#rows(as: Wanted): AsyncGenerator<readonly Made[]> {
    const startedAt = performance.now()
    const { reductions, signal, onProgress } = this.#request
    signal?.throwIfAborted()
    const { totalRows, totalBytes, totalCost, hasSaved } = totals(this.#request)
    if (hasSaved) this.#known |= OF_SCALAR
    const runner = await this.#request.runner(totalCost)
    this.#costs.stats.threads = runner.threads
    // Rows that are planned and not handed out yet. Planning goes on only as rows are handed out, so that this does not
    // grow with the trial.
    const items = new Rows()
    const results: (RecordResult | WrittenRows)[] = []
    let doneRows = 0
    const finished = this.#results(planRecords(this.#request, items), runner, totalBytes, as)
    for (;;) {
      const next = await finished.next()
      const done = next.done ? [] : next.value
      let replied = 'reply' in done ? done : null
      if (!('reply' in done)) results.push(...done)
      const ready: Made[] = []
      let made = 0
      let used = 0
      while (made < items.length) {
        const item = items.at(made)
        const recordCount = recordCountOf(item, reductions)
        if (replied !== null && recordCount > 0) {
          const first = made
          made += replied.plan.count
          ready.push({ ...replied, items: items.slice(first, made) })
          replied = null
        } else {
          if (used + recordCount > results.length) break
          made++
          used += recordCount
          ready.push({ item, results: results.slice(used - recordCount, used) })
        }
      }
      if (ready.length > 0) yield ready
      signal?.throwIfAborted()
      items.drop(made)
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

  /** The results of records, in order, one job at a time; or its reply, if each of its records has a row. */
  async *#results(
    records: Iterable<RecordPlace | RecordRun | null>,
    runner: Runner,
    totalBytes: number,
    as: Wanted,
  ): AsyncGenerator<readonly (RecordResult | WrittenRows)[] | Omit<RepliedRows, 'items'>> {
    const { ahead, threads } = runner
    // Of a store that makes requests, several jobs are under way on each thread, and share its memory.
    const work =
      requestShape([this.#request.context.store], 0) === null ? { byteLength: totalBytes, threads } : undefined
    let parts: (PartReply | TrialscanError)[] = []
    const jobs = planJobs(records, { ...this.#context, ...as, work })
    for await (const pumped of this.#pump(jobs, runner, ahead)) {
      const { plan, reply, error, waitMs } = pumped
      const { job } = plan
      this.#costs.add(reply, waitMs)
      if (job.kind === 'part') {
        parts.push((reply as PartReply | null) ?? this.#lost(job, 0, error))
        if (job.part + job.partCount < job.parts) continue
        yield [resultOfParts(job, parts, this.#request.url)]
        parts = []
      } else if (reply === null) yield await this.#halved(plan, error, runner)
      else if (plan.rows.apart) yield resultsOf(reply as ScanReply)
      else yield { plan, reply: reply as ScanReply }
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
   * Saves what it can of a job that failed as a whole, perhaps with its thread: the job is halved, and halved again, until
   * only the records to blame are lost. Rows are written on this thread, since the end of each has to be known.
   */
  async #halved(plan: PlannedJob, failure: unknown, runner: Runner): Promise<RecordResult[]> {
    const { job, count } = plan
    if (count === 1 || this.#halvings === MAX_HALVINGS || !isFaultOfJob(failure)) {
      return Array.from({ length: count }, (_, record) => ({ error: this.#lost(job, record, failure) }))
    }
    this.#halvings++
    const results: RecordResult[] = []
    const middle = count >> 1
    for (const half of [placesOf(plan, 0, middle), placesOf(plan, middle, count)]) {
      for await (const { plan, reply, error, waitMs } of this.#pump(planJobs(half, this.#context), runner, 1)) {
        this.#costs.add(reply, waitMs)
        if (reply !== null) results.push(...recordResults(reply as ScanReply))
        else results.push(...(await this.#halved(plan, error, runner)))
      }
    }
    return results
  }
}
