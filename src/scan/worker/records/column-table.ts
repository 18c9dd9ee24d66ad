/** Collects reductions of a job's rows in columns, batch by batch. */

import { NumberColumns } from '../../../core/batch/number-columns.js'
import type { Engine } from '../../../core/engine.js'
import { isDefined, type Moments } from '../../../core/moments.js'
import { isCountName } from '../../../core/statistics/statistic.js'
import type { ColumnsRequest, MomentColumn } from '../../job/scan-job.js'
import type { DecodedBatch } from './read-records.js'

/** The number of rows from which a column becomes a page; in a smaller one the header would weigh too much. */
const PAGE_ROWS = 1024

export class ColumnTable {
  readonly #request: ColumnsRequest
  readonly #total: number
  readonly #columns: NumberColumns
  /** True if every row so far has all numbers, and its dtype has no others. */
  #isWhole = true

  /** @param total the number of records */
  constructor(request: ColumnsRequest, total: number, engine: Engine) {
    this.#request = request
    this.#total = total
    this.#columns = new NumberColumns(engine, request.names, total)
  }

  /** Adds ordinary records of a batch, from the i-th on. */
  addRun(i: number, count: number, { batch, records, first }: DecodedBatch): void {
    this.#columns.add(records, first + i, batch, i, count)
  }

  /** Adds any other record that was read. */
  add(record: number, moments: Moments): void {
    this.#isWhole = false
    for (const [k, name] of this.#request.names.entries()) {
      const value = isDefined(name, moments.dtype) ? moments.reduction(name) : Number.NaN
      this.#columns.column(k)[record] = typeof value === 'number' ? value : Number.NaN
    }
  }

  /** Finishes the columns, one for each name. @param missing the records without numbers */
  finish(missing: readonly number[]): readonly MomentColumn[] {
    const { names, packed } = this.#request
    const isPacked = packed && this.#isWhole && missing.length === 0 && this.#total >= PAGE_ROWS
    return names.map((name, k) => {
      if (isPacked && !isCountName(name)) return { packed: this.#columns.packed(k) }
      const numbers = this.#columns.column(k).slice()
      for (const record of missing) numbers[record] = Number.NaN
      return { numbers }
    })
  }
}
