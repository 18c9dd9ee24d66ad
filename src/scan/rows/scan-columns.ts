/** Rows of a scan in columns: typed arrays of what threads have replied. Rows as objects are made of them. */

import {
  type DType,
  type GlobalStep,
  MODES,
  type Mode,
  type ModeStep,
  type StatisticName,
  type Worker,
} from '../../base/types.js'
import { DTYPES, dtypeOf, isOrdinary } from '../../core/dtype.js'
import { Moments } from '../../core/moments.js'
import { ROW_LENGTH } from '../../core/moments-row.js'
import type { StatisticValue, Values } from '../../core/statistics/statistic.js'
import { Interner } from '../job/plan/interner.js'
import { type ShapeColumn, shapeColumn } from '../job/reply.js'
import type { FailedRow, SavedRow, ScanRow, ValueRow } from '../job/row.js'
import type { MomentColumn, PlannedJob, ScanReply } from '../job/scan-job.js'
import type { ReadJob } from './read-jobs.js'
import { RecordResults } from './record-results.js'
import type { RowMaker } from './row-maker.js'

/** A column of few values, each of which is there once: a dictionary, as Arrow and Parquet call it. */
export interface DictionaryColumn<T> {
  readonly values: readonly T[]
  /** The index of each row's value; -1 for none. */
  readonly codes: Int32Array
}

/** A row as an object, without its moments. */
export type ColumnsRow = Omit<ValueRow, 'moments'> | Omit<SavedRow, 'moments'> | Omit<FailedRow, 'moments'>

/** A number for each row, by the name of the reduction. */
export type ReductionColumns = Readonly<Partial<Record<StatisticName, Float64Array>>>

/** Rows of a scan in columns, as many as were ready: what Arrow calls a record batch. */
export interface ScanColumns<C extends ReductionColumns = ReductionColumns> {
  /** The number of rows. Every column has as many entries. */
  readonly length: number
  /** None for a row whose index file could not be read. */
  readonly tensor: DictionaryColumn<string>
  /** Global steps. */
  readonly step: Float64Array
  readonly mode: DictionaryColumn<Mode>
  readonly modeStep: Float64Array
  readonly worker: DictionaryColumn<Worker>
  /** None where it is not known. */
  readonly dtype: DictionaryColumn<DType>
  /** None where it is not known. */
  readonly shape: DictionaryColumn<readonly number[]>
  /** Seconds since 1970, NaN where it is not known. Null: it was not asked for. */
  readonly wallTime: Float64Array | null
  /** 1 for a row whose reductions are those that the hook saved. */
  readonly saved: Uint8Array
  /** Rows with an error, ascending: `row` has it. */
  readonly failed: Int32Array
  /**
   * The reductions that were asked for, a number for each row. NaN where a row has none, or one that is no number: a complex mean, a histogram,
   * a sketch, a digest. `row` has those, and all digits of 64-bit integers.
   */
  readonly reductions: C
  /** A row as an object, without its moments. */
  row(i: number): ColumnsRow
}

/** The columns, and the rows with their moments if those were asked for. */
export interface RowsInColumns extends ScanColumns {
  wholeRow(i: number): ScanRow
}

/** The columns of a job in which each record has a row. */
export class ReplyColumns implements RowsInColumns {
  readonly length: number
  readonly tensor: DictionaryColumn<string>
  readonly step: Float64Array
  readonly mode: DictionaryColumn<Mode>
  readonly modeStep: Float64Array
  readonly worker: DictionaryColumn<Worker>
  readonly dtype: DictionaryColumn<DType>
  readonly shape: DictionaryColumn<readonly number[]>
  readonly wallTime: Float64Array | null
  readonly saved: Uint8Array
  readonly #plan: PlannedJob
  readonly #reply: ScanReply
  readonly #names: readonly StatisticName[]
  readonly #rowMaker: RowMaker
  readonly #dtypes: Uint8Array
  readonly #shapes: ShapeColumn
  #results: RecordResults | undefined
  #numbers: readonly Float64Array[] | undefined
  #failed: Int32Array | undefined
  #unusual: readonly number[] | undefined
  /** Rows with an error: the first about a file tells more than the others. */
  readonly #withError = new Map<number, ScanRow>()

  constructor({ plan, reply }: ReadJob, names: readonly StatisticName[], hasWallTimes: boolean, rowMaker: RowMaker) {
    const { job, rows: places, count } = plan
    const { described, histograms, wallTimes } = reply
    this.length = count
    this.tensor = { values: job.tags, codes: job.records.tag }
    this.step = job.records.step
    this.mode = { values: MODES, codes: new Int32Array(places.mode) }
    this.modeStep = places.modeStep
    this.worker = { values: places.workers, codes: places.worker }
    this.#dtypes = described.dtypes
    this.#shapes = shapeColumn(described, job.records.tag)
    const dtypes = codesOf(this.#dtypes)
    const shapes = { values: this.#shapes.lists, codes: this.#shapes.codes }
    if (dtypes.includes(-1)) shapes.codes = shapes.codes.map((code, i) => (dtypes[i] === -1 ? -1 : code))
    if (histograms.length > 0) shapes.values = [...shapes.values, ...histograms.map(({ shape }) => shape)]
    this.saved = new Uint8Array(count)
    this.wallTime = hasWallTimes
      ? Float64Array.from(dtypes, (code, i) => (code === -1 ? Number.NaN : wallTimes[i]!))
      : null
    for (const [i, { record, wallTime }] of histograms.entries()) {
      if (this.wallTime) this.wallTime[record] = wallTime
      dtypes[record] = DTYPES.indexOf('float64')
      shapes.codes[record] = this.#shapes.lists.length + i
      this.saved[record] = 1
    }
    this.dtype = { values: DTYPES, codes: dtypes }
    this.shape = shapes
    this.#plan = plan
    this.#reply = reply
    this.#names = names
    this.#rowMaker = rowMaker
  }

  get failed(): Int32Array {
    this.#failed ??= Int32Array.from(this.#notOrdinary.filter(i => this.#otherRow(i).error))
    return this.#failed
  }

  get reductions(): Readonly<Partial<Record<StatisticName, Float64Array>>> {
    const numbers = this.#numberColumns
    return Object.fromEntries(this.#names.map((name, k) => [name, numbers[k]!]))
  }

  /**
   * The columns that threads made, in the order of their names (some perhaps as Parquet pages); null if moments don't answer
   * every request.
   */
  get momentColumns(): readonly MomentColumn[] | null {
    return this.#reply.columns
  }

  /** Rows that columns don't tell all about: all but those of a value all of whose reductions are numbers that float64 holds. */
  get unusualRows(): Iterable<number> {
    return this.momentColumns === null ? Array(this.length).keys() : this.#notOrdinary
  }

  get #notOrdinary(): readonly number[] {
    this.#unusual ??= notOrdinary(this.#dtypes)
    return this.#unusual
  }

  #isOrdinary(i: number): boolean {
    return this.momentColumns !== null && IS_ORDINARY[this.#dtypes[i]!] === 1
  }

  row(i: number): ColumnsRow {
    return this.#isOrdinary(i) ? this.#ordinaryRow(i) : withoutMoments(this.#otherRow(i))
  }

  wholeRow(i: number): ScanRow {
    if (!this.#isOrdinary(i)) return this.#otherRow(i)
    const row = this.#ordinaryRow(i)
    return Object.assign(row, { moments: new Moments(row.dtype, this.#reply.moments, i * ROW_LENGTH) })
  }

  #ordinaryRow(i: number): Omit<ValueRow, 'moments'> {
    const tensor = this.tensor.values[this.tensor.codes[i]!]!
    const step = this.step[i] as GlobalStep
    const mode = MODES[this.mode.codes[i]!]!
    const modeStep = this.modeStep[i] as ModeStep
    const worker = this.worker.values[this.worker.codes[i]!]!
    const dtype = DTYPES[this.dtype.codes[i]!]!
    const shape = this.#shapes.lists[this.#shapes.codes[i]!]!
    const reductions: Values = {}
    const numbers = this.#numberColumns
    const names = this.#names as readonly `~p${number}`[]
    for (let k = 0; k < names.length; k++) reductions[names[k]!] = numbers[k]![i]!
    const row = { tensor, step, mode, modeStep, worker, dtype, shape, reductions, saved: false } as const
    return this.wallTime === null ? row : { ...row, wallTime: this.wallTime[i]! }
  }

  /** A row that has an error, no numbers, or others than float64 holds. */
  #otherRow(i: number): ScanRow {
    const known = this.#withError.get(i)
    if (known !== undefined) return known
    this.#results ??= new RecordResults(this.#reply, this.#shapes)
    const row = this.#rowMaker.row(this.#plan, i, this.#results)
    if (row.error) this.#withError.set(i, row)
    return row
  }

  get #numberColumns(): readonly Float64Array[] {
    this.#numbers ??= this.#makeNumbers()
    return this.#numbers
  }

  #makeNumbers(): readonly Float64Array[] {
    const { momentColumns, length } = this
    const numbers = momentColumns?.map(column => {
      if ('numbers' in column) return column.numbers
      throw new TypeError('expected numbers, got pages of Parquet')
    })
    const columns = numbers ?? this.#names.map(() => new Float64Array(length))
    const others = momentColumns ? this.#reply.histograms.map(({ record }) => record) : Array(length).keys()
    for (const i of others) {
      const { reductions } = this.#otherRow(i)
      for (const [k, name] of this.#names.entries()) columns[k]![i] = numberOf(reductions[name])
    }
    return columns
  }
}

/** By TensorFlow's numbers: the index among all, -1 for none. */
const CODE_OF_DTYPE = Int8Array.from({ length: 256 }, (_, number) => DTYPES.indexOf(dtypeOf(number)!))
const IS_ORDINARY = CODE_OF_DTYPE.map(code => (code >= 0 && isOrdinary(DTYPES[code]!) ? 1 : 0))

// Loops over rows are functions of their own: V8 is done with them sooner than with methods around them.

function codesOf(dtypes: Uint8Array): Int32Array {
  const codes = new Int32Array(dtypes.length)
  for (let i = 0; i < dtypes.length; i++) codes[i] = CODE_OF_DTYPE[dtypes[i]!]!
  return codes
}

function notOrdinary(dtypes: Uint8Array): readonly number[] {
  const others: number[] = []
  for (let i = 0; i < dtypes.length; i++) if (IS_ORDINARY[dtypes[i]!] !== 1) others.push(i)
  return others
}

function withoutMoments({ moments: _, ...row }: ScanRow): ColumnsRow {
  return row as ColumnsRow
}

/** NaN for what is no number. */
function numberOf(value: StatisticValue | undefined): number {
  return typeof value === 'number' ? value : Number.NaN
}

/** The columns of rows that are there as objects. @param wallTimes whether they were asked for */
export function columnsOfRows(
  rows: readonly ScanRow[],
  names: readonly StatisticName[],
  wallTimes: boolean,
): RowsInColumns {
  const dictionary = <T extends string>(textOf: (row: ScanRow) => T | null) => {
    const interner = new Interner()
    const codes = Int32Array.from(rows, row => {
      const value = textOf(row)
      return value === null ? -1 : interner.number(value)
    })
    return { values: interner.names as T[], codes }
  }
  const shapes = dictionary(({ shape }) => shape?.join() ?? null)
  const values = new Array<readonly number[]>(shapes.values.length)
  for (const [i, { shape }] of rows.entries()) if (shape !== null) values[shapes.codes[i]!] = shape
  const numbersOf = (name: StatisticName) => Float64Array.from(rows, ({ reductions }) => numberOf(reductions[name]))
  return {
    length: rows.length,
    tensor: dictionary(({ tensor }) => tensor),
    step: Float64Array.from(rows, ({ step }) => step),
    mode: dictionary(({ mode }) => mode),
    modeStep: Float64Array.from(rows, ({ modeStep }) => modeStep),
    worker: dictionary(({ worker }) => worker),
    dtype: dictionary(({ dtype }) => dtype),
    shape: { values, codes: shapes.codes },
    wallTime: wallTimes ? Float64Array.from(rows, ({ wallTime = Number.NaN }) => wallTime) : null,
    saved: Uint8Array.from(rows, ({ saved }) => (saved ? 1 : 0)),
    failed: Int32Array.from([...rows.keys()].filter(i => rows[i]!.error)),
    reductions: Object.fromEntries(names.map(name => [name, numbersOf(name)])),
    row: i => withoutMoments(rows[i]!),
    wholeRow: i => rows[i]!,
  }
}
