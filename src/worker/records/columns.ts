/** Reductions of a job's rows as columns, made by the thread that has the rows, batch by batch. */

import { NumberColumns, pack } from '../../engine/batch/columns.js'
import type { Address } from '../../engine/border/memory.js'
import type { Engine } from '../../engine/engine.js'
import { isDefined, type Moments } from '../../engine/moments.js'
import { isCountName } from '../../engine/statistics/statistic.js'
import type { ColumnsRequest, MomentColumn } from '../../job/scan.js'

/** The header of a page of fewer rows would be much of it. */
const PAGE_ROWS = 1024

export class ColumnTable {
  readonly #asked: ColumnsRequest
  readonly #engine: Engine
  readonly #total: number
  readonly #columns: readonly Float64Array<ArrayBuffer>[]
  readonly #made: NumberColumns
  /** Whether every row so far has all of the numbers, and its dtype no others. */
  #isWhole = true

  /** @param total of the records, and how many there are in a batch at most */
  constructor(asked: ColumnsRequest, total: number, capacity: number, engine: Engine) {
    this.#asked = asked
    this.#engine = engine
    this.#total = total
    this.#columns = asked.names.map(() => new Float64Array(total))
    this.#made = new NumberColumns(engine, asked.names, capacity)
  }

  /** Adds a run of ordinary records of a batch. @param records which they are */
  addRun(records: Int32Array, rows: Address): void {
    const count = records.length
    const numbers = this.#made.of(rows, count)
    const first = records[0]!
    const isRun = isAscending(records)
    for (const [k, column] of this.#columns.entries()) {
      if (isRun) column.set(numbers.subarray(k * count, (k + 1) * count), first)
      else for (let i = 0; i < count; i++) column[records[i]!] = numbers[k * count + i]!
    }
  }

  /** Adds any other record that was read. */
  add(record: number, moments: Moments): void {
    this.#isWhole = false
    for (const [k, name] of this.#asked.names.entries()) {
      const value = isDefined(name, moments.dtype) ? moments.reduction(name) : Number.NaN
      this.#columns[k]![record] = typeof value === 'number' ? value : Number.NaN
    }
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
}

/** Whether each is the one before and 1. */
function isAscending(records: Int32Array): boolean {
  for (let i = 1; i < records.length; i++) if (records[i] !== records[i - 1]! + 1) return false
  return true
}
