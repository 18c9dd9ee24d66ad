/**
 * Rows of a scan as text, written by the thread that made them. All 18 reductions of 201,000 tensors as a CSV file take
 * 0.77 s; with numbers and lines made in TypeScript it was 1.4 s (one thread, Node.js 20, medians of three, the whole
 * process).
 */

import { type GlobalStep, MODES, type ModeStep } from '../../base/types.js'
import { LineTable } from '../../core/batch/line-table.js'
import type { Engine } from '../../core/engine.js'
import { type Moments, numberFrom } from '../../core/moments.js'
import { Distribution } from '../../core/statistics/distribution.js'
import { isMomentName, type StatisticColumn, statisticColumns, statisticsIn } from '../../core/statistics/statistic.js'
import { type RowFormat, rowFormat, type ScanRow, TextWriter, type ValueRow } from '../job/row.js'
import type { LinesJob, ScanJob, WrittenLines } from '../job/scan-job.js'
import type { DecodedBatch } from './records/read-records.js'

const NO_ANSWERS = new Float64Array(0)
/** The limit for a line with all eighteen reductions, apart from long names. */
const LINE_BYTES = 512

/** The text buffer and the format of an engine's last job. Touching new memory takes longer than writing the text. */
interface LastJob {
  spare: Uint8Array<ArrayBuffer> | null
  readonly key: string
  readonly format: RowFormat
}

const lastJobs = new WeakMap<Engine, LastJob>()
const MAX_SPARE_BYTES = 8 << 20

/** Writes rows as they are made. The core writes those of ordinary records, many at once; others are written one by one. */
export class LinesWriter {
  readonly #job: ScanJob
  readonly #lines: LinesJob
  readonly #last: LastJob
  readonly #format: RowFormat
  readonly #columns: readonly StatisticColumn[]
  /** The table for lines of moments. */
  readonly #table: LineTable
  readonly #text: TextWriter
  readonly #starts: Float64Array
  readonly #byteLengths: Uint32Array<ArrayBuffer>
  #count = 0
  /** True if the lines were written in the order of their rows. */
  #isInOrder = true

  constructor(job: ScanJob, lines: LinesJob, engine: Engine) {
    this.#job = job
    this.#lines = lines
    this.#last = lastJobOf(engine, lines)
    const { format, spare } = this.#last
    this.#format = format
    this.#columns = statisticColumns(lines.reductions)
    const columns = lines.reductions.flatMap((name, i) =>
      isMomentName(name) ? [{ label: format.labels[i]!, ...numberFrom(name) }] : [],
    )
    const names = job.tags.map(tag => format.name(tag))
    const { isJson, end, dtype } = format
    this.#table = new LineTable(engine, { columns, isJson, end, names, dtype })
    this.#text = new TextWriter(job.order.length * LINE_BYTES, spare)
    this.#last.spare = null
    this.#starts = new Float64Array(job.order.length)
    this.#byteLengths = new Uint32Array(job.order.length)
  }

  /**
   * Writes ordinary records of a batch, from the i-th on.
   * @returns the number of records, up to one without a row of its own or with too long a line
   */
  write(i: number, count: number, { batch, records, first }: DecodedBatch): number {
    const { order, records: columns } = this.#job
    const end = i + count
    let at = i
    while (at < end) {
      const record = order[first + at]!
      if (!this.#hasRow(record) || !this.#table.setPlace(this.#format.place(this.#placeOf(record)))) break
      const last = placeEnd(this.#lines, columns.step, order, first + at, first + end) - first
      while (at < last) {
        const written = this.#table.write(records, first + at, batch, at, last - at)
        if (written === null) return at - i
        const { text, ends } = written
        const begun = first + at
        at += ends.length
        const base = this.#text.length
        this.#text.bytes(text)
        this.#isInOrder &&= isRun(order, begun, first + at, this.#count)
        this.#count += ends.length
        noteLines(this.#starts, this.#byteLengths, order, begun, base, ends)
      }
    }
    return at - i
  }

  /**
   * Writes a record with all its results.
   * @param answers the answers to the statistics of the job
   * @param pairs the pairs of the sketch, if there is one
   * @returns false, without writing, for a record that has no row of its own or lacks a requested result
   */
  writeWhole(
    record: number,
    { dtype, shape }: LineKind,
    moments: Moments,
    answers = NO_ANSWERS,
    pairs?: Float64Array,
  ): boolean {
    if (!this.#hasRow(record)) return false
    const sketched = pairs && Distribution.of(moments, pairs)
    const { values, missing } = statisticsIn(this.#columns, { moments, answers, sketched })
    if (missing !== undefined && this.#lines.strict && dtype !== 'string') return false
    const { exact } = moments
    const start = this.#text.length
    const row: ValueRow = {
      tensor: this.#job.tags[this.#job.records.tag[record]!]!,
      ...this.#placeOf(record),
      dtype,
      shape,
      reductions: values,
      saved: false,
      moments,
      ...(exact && { exact }),
    }
    this.#format.write(row, this.#text)
    this.#wrote(record, start, this.#text.length)
    return true
  }

  #hasRow(record: number): boolean {
    return this.#lines.worker[record]! >= 0
  }

  #placeOf(record: number): LinePlace {
    const { workers, worker, mode, modeStep } = this.#lines
    return {
      step: this.#job.records.step[record]! as GlobalStep,
      mode: MODES[mode[record]!]!,
      modeStep: modeStep[record]! as ModeStep,
      worker: workers[worker[record]!]!,
    }
  }

  finish(): WrittenLines {
    const isWhole = this.#count === this.#byteLengths.length && this.#lines.isWhole
    const byteLengths = isWhole ? null : this.#byteLengths
    const written = this.#text.finish()
    if (written.buffer.byteLength <= MAX_SPARE_BYTES) this.#last.spare = new Uint8Array(written.buffer)
    // A buffer of its own is moved to the calling thread; for a view, the whole underlying buffer would be copied.
    if (this.#isInOrder) return { text: written.slice(), byteLengths }
    const text = new Uint8Array(written.length)
    let at = 0
    for (const [record, byteLength] of this.#byteLengths.entries()) {
      const start = this.#starts[record]!
      text.set(written.subarray(start, start + byteLength), at)
      at += byteLength
    }
    return { text, byteLengths }
  }

  #wrote(record: number, start: number, end: number): void {
    this.#isInOrder &&= record === this.#count
    this.#count++
    this.#starts[record] = start
    this.#byteLengths[record] = end - start
  }
}

type LinePlace = Pick<ScanRow, 'step' | 'mode' | 'modeStep' | 'worker'>
type LineKind = Pick<ValueRow, 'dtype' | 'shape'>

// Loops over records are functions of typed arrays, and texts are made by the same functions in each job: V8 would optimise the methods above
// anew for many a job, which took a tenth of a scan of very many small tensors.

/** The end of the range in an order in which records have the same place as that at `from`. */
function placeEnd(
  { worker, mode, modeStep }: LinesJob,
  step: Float64Array,
  order: Int32Array,
  from: number,
  end: number,
): number {
  const a = order[from]!
  for (let at = from + 1; at < end; at++) {
    const b = order[at]!
    const isSame = step[a] === step[b] && modeStep[a] === modeStep[b] && mode[a] === mode[b] && worker[a] === worker[b]
    if (!isSame) return at
  }
  return end
}

/** True if these entries of an order are consecutive numbers beginning with `first`. */
function isRun(order: Int32Array, from: number, end: number, first: number): boolean {
  for (let at = from; at < end; at++) if (order[at] !== first + at - from) return false
  return true
}

/** Records the lines' positions in a text. @param ends relative to `base` */
function noteLines(
  starts: Float64Array,
  byteLengths: Uint32Array,
  order: Int32Array,
  from: number,
  base: number,
  ends: Uint32Array,
): void {
  for (let k = 0, start = 0; k < ends.length; k++) {
    const record = order[from + k]!
    starts[record] = base + start
    byteLengths[record] = ends[k]! - start
    start = ends[k]!
  }
}

function lastJobOf(engine: Engine, { format, reductions, trial }: LinesJob): LastJob {
  const key = JSON.stringify([format, reductions, trial])
  let last = lastJobs.get(engine)
  if (last?.key !== key) {
    last = { spare: last?.spare ?? null, key, format: rowFormat(format, reductions, trial) }
    lastJobs.set(engine, last)
  }
  return last
}
