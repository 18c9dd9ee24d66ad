/**
 * Rows of a scan as text, written by the thread that made them. All 18 reductions of 201,000 tensors as a CSV file take
 * 0.77 s; with numbers and lines made in TypeScript it was 1.4 s (one thread, Node.js 20, medians of three, the whole
 * process).
 */

import type { Address } from '../engine/border/memory.js'
import { dtypeOf, isOrdinary } from '../engine/dtype.js'
import type { Engine } from '../engine/engine.js'
import { LineTable } from '../engine/lines.js'
import { isDefined, isFiniteRow, Moments, numberFrom } from '../engine/moments.js'
import { ROW_LENGTH } from '../engine/moments-row.js'
import { Distribution } from '../engine/statistics/distribution.js'
import { isMomentName, type StatisticColumn, statisticColumns, type Values } from '../engine/statistics/statistic.js'
import { type RowFormat, rowFormat, type ScanRow, TextWriter, type ValueRow } from '../job/row.js'
import type { LinesJob, ScanJob, WrittenLines } from '../job/scan.js'
import { type GlobalStep, MODES, type ModeStep } from '../types.js'
import type { DecodedBatch } from './records/records.js'

const NO_ANSWERS = new Float64Array(0)
/** No line of all eighteen reductions is longer, unless names are. */
const LINE_BYTES = 512

/** What the last job wrote its text to. Memory that is touched for the first time takes longer than the text does. */
let spare: Uint8Array<ArrayBuffer> | null = null
const MAX_SPARE_BYTES = 8 << 20

/**
 * Writes rows as they are made. Rows of ordinary real numbers are collected, and the core writes many at once; all
 * others are written one by one.
 */
export class LinesWriter {
  readonly #job: ScanJob
  readonly #lines: LinesJob
  readonly #engine: Engine
  readonly #format: RowFormat
  readonly #columns: readonly StatisticColumn[]
  /** For lines of nothing but moments. */
  readonly #table: LineTable
  /** The records whose lines are waiting in the table. */
  #waiting: number[] = []
  readonly #text: TextWriter
  readonly #starts: Float64Array
  readonly #byteLengths: Uint32Array<ArrayBuffer>
  #count = 0
  /** Whether the lines were written in the order of their rows. */
  #isInOrder = true
  /** The place and the kind that were formatted last. */
  #place: LinePlace = { step: -1 as GlobalStep, mode: 'GLOBAL', modeStep: -1 as ModeStep, worker: '' }
  #placeText = ''
  #kind: LineKind = { dtype: 'string', shape: [] }
  #kindText = ''

  constructor(job: ScanJob, lines: LinesJob, engine: Engine) {
    this.#job = job
    this.#lines = lines
    this.#engine = engine
    const format = rowFormat(lines.format, lines.reductions, lines.trial)
    this.#format = format
    this.#columns = statisticColumns(lines.reductions)
    const columns = lines.reductions.flatMap((name, i) =>
      isMomentName(name) ? [{ label: format.labels[i]!, ...numberFrom(name) }] : [],
    )
    const names = job.tags.map(tag => format.name(tag))
    this.#table = new LineTable(engine, { columns, isJson: format.isJson, end: format.end, names })
    this.#text = new TextWriter(job.order.length * LINE_BYTES, spare)
    spare = null
    this.#starts = new Float64Array(job.order.length)
    this.#byteLengths = new Uint32Array(job.order.length)
  }

  /**
   * Writes the i-th record of a batch, whose rows must stay in place until `flush`.
   * @returns false, and writes nothing, for a record that has no row of its own or lacks something that was asked for
   */
  write(record: number, i: number, { batch, slots, rows }: DecodedBatch): boolean {
    if (!this.#hasRow(record)) return false
    const dtype = dtypeOf(slots.dtypeNumber(i))!
    const kind = { dtype, shape: slots.shape(i) }
    const at = i * ROW_LENGTH
    if (isOrdinary(dtype) && isFiniteRow(rows, at)) {
      const tag = this.#job.records.tag[record]!
      if (this.#add(tag, this.#placeOf(record), kind, this.#engine.rowAddress(batch, i))) {
        this.#waiting.push(record)
        return true
      }
    }
    return this.writeWhole(record, kind, new Moments(dtype, rows.subarray(at, at + ROW_LENGTH)))
  }

  /**
   * Writes a record with all that was computed of it.
   * @param answers to the statistics of the job
   * @param pairs of the sketch, if there is one
   * @returns as `write`
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
    const values: Values = {}
    for (const { name, read } of this.#columns) {
      if (isDefined(name, dtype)) read(values, moments, answers, sketched)
      else if (this.#lines.strict && dtype !== 'string') return false
    }
    this.flush()
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

  /** Adds a line to the table. @returns false if it is too long for the table */
  #add(name: number, place: LinePlace, kind: LineKind, row: Address): boolean {
    if (!isSamePlace(place, this.#place)) {
      this.#place = place
      this.#placeText = this.#format.place(place)
    }
    if (!isSameKind(kind, this.#kind)) {
      this.#kind = kind
      this.#kindText = this.#format.kind(kind)
    }
    if (this.#table.add(name, this.#placeText, this.#kindText, row)) return true
    this.flush()
    return this.#table.add(name, this.#placeText, this.#kindText, row)
  }

  /** Writes the waiting lines. */
  flush(): void {
    if (this.#waiting.length === 0) return
    const { text, ends } = this.#table.write()
    let start = this.#text.length
    const base = start
    this.#text.bytes(text)
    for (const [i, record] of this.#waiting.entries()) {
      this.#wrote(record, start, base + ends[i]!)
      start = base + ends[i]!
    }
    this.#waiting = []
  }

  finish(): WrittenLines {
    const isWhole = this.#count === this.#byteLengths.length && !this.#lines.apart
    const byteLengths = isWhole ? null : this.#byteLengths
    const written = this.#text.finish()
    if (written.buffer.byteLength <= MAX_SPARE_BYTES) spare = new Uint8Array(written.buffer)
    // A buffer of its own is moved to the calling thread; of a view, the whole buffer behind it would be copied there.
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

function isSamePlace(a: LinePlace, b: LinePlace): boolean {
  return a.step === b.step && a.modeStep === b.modeStep && a.mode === b.mode && a.worker === b.worker
}

function isSameKind(a: LineKind, b: LineKind): boolean {
  const { length } = a.shape
  if (a.dtype !== b.dtype || length !== b.shape.length) return false
  for (let axis = 0; axis < length; axis++) if (a.shape[axis] !== b.shape[axis]) return false
  return true
}
