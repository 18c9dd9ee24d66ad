/** Reductions of a job's rows as columns, made by the thread that has the rows, batch by batch. */

import { NumberColumns, pack } from '../../engine/columns.js'
import { dtypeOf, isOrdinary } from '../../engine/dtype.js'
import type { Engine } from '../../engine/engine.js'
import { isDefined, isFiniteRow, Moments } from '../../engine/moments.js'
import { ROW_LENGTH } from '../../engine/moments-row.js'
import { isCountName } from '../../engine/statistics/statistic.js'
import type { ColumnsRequest, MomentColumn } from '../../job/scan.js'
import type { DecodedBatch } from './records.js'

/** The header of a page of fewer rows would be much of it. */
const PAGE_ROWS = 1024

export class ColumnTable {
  readonly #asked: ColumnsRequest
  readonly #engine: Engine
  readonly #total: number
  readonly #columns: readonly Float64Array<ArrayBuffer>[]
  /** Whether every row so far has all of the numbers, and its dtype no others. */
  #isWhole = true

  /** @param total of the records */
  constructor(asked: ColumnsRequest, total: number, engine: Engine) {
    this.#asked = asked
    this.#engine = engine
    this.#total = total
    this.#columns = asked.names.map(() => new Float64Array(total))
  }

  /**
   * Adds the rows of a batch.
   * @param records which they are
   * @returns whether all of them are whole
   */
  add({ batch, count, slots, rows }: DecodedBatch, records: Int32Array): boolean {
    const others: number[] = []
    for (let i = 0; i < count; i++) {
      const dtype = slots.ok(i) ? dtypeOf(slots.dtypeNumber(i)) : undefined
      if (dtype === undefined || !isOrdinary(dtype) || !isFiniteRow(rows, i * ROW_LENGTH)) others.push(i)
    }
    const patched = others.map(i => this.#numbersOf(slots.ok(i) ? dtypeOf(slots.dtypeNumber(i)) : undefined, rows, i))
    const made = new NumberColumns(this.#engine, this.#asked.names, batch.rows, count)
    const first = records[0]!
    const isRun = records[count - 1]! - first === count - 1 && records.every((record, i) => record === first + i)
    for (const [k, column] of this.#columns.entries()) {
      const numbers = made.numbers(k)
      if (isRun) column.set(numbers, first)
      else for (let i = 0; i < count; i++) column[records[i]!] = numbers[i]!
      for (const [at, i] of others.entries()) column[records[i]!] = patched[at]![k]!
    }
    this.#isWhole &&= others.length === 0
    return others.length === 0
  }

  /** A column for each name. @param missing records that have no numbers */
  finish(missing: readonly number[]): readonly MomentColumn[] {
    for (const record of missing) for (const column of this.#columns) column[record] = Number.NaN
    const { names, packed } = this.#asked
    const isPacked = packed && this.#isWhole && missing.length === 0 && this.#total >= PAGE_ROWS
    return this.#columns.map((numbers, k) =>
      isPacked && !isCountName(names[k]!) ? { packed: pack(this.#engine, numbers) } : { numbers },
    )
  }

  #numbersOf(dtype: ReturnType<typeof dtypeOf>, rows: Float64Array, i: number): readonly number[] {
    const moments = dtype === undefined ? null : new Moments(dtype, rows, i * ROW_LENGTH)
    return this.#asked.names.map(name => {
      const value = moments !== null && isDefined(name, moments.dtype) ? moments.reduction(name) : Number.NaN
      return typeof value === 'number' ? value : Number.NaN
    })
  }
}
