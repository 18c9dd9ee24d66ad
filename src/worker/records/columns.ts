/** Reductions of a job's rows as columns, made by the thread that has the rows. */

import { NumberColumns } from '../../engine/columns.js'
import { dtypeOf, isOrdinary } from '../../engine/dtype.js'
import type { Engine } from '../../engine/engine.js'
import { isDefined, isFiniteRow, Moments } from '../../engine/moments.js'
import { ROW_LENGTH } from '../../engine/moments-row.js'
import { isCountName } from '../../engine/statistics/statistic.js'
import type { ColumnsRequest, MomentColumn } from '../../job/scan.js'
import type { RecordTable } from './record.js'

/** The header of a page of fewer rows would be much of it. */
const PAGE_ROWS = 1024

/** A column for each name, if they are wanted in pages and can be; otherwise numbers. */
export function columnsOf(
  { moments, dtypes }: RecordTable,
  { names, packed }: ColumnsRequest,
  engine: Engine,
): { readonly columns: readonly MomentColumn[]; readonly packed: boolean } {
  const others: number[] = []
  for (let i = 0; i < dtypes.length; i++) {
    const dtype = dtypeOf(dtypes[i]!)
    if (dtype === undefined || !isOrdinary(dtype) || !isFiniteRow(moments, i * ROW_LENGTH)) others.push(i)
  }
  return engine.scoped(() => {
    const made = new NumberColumns(engine, names, moments)
    const isWhole = others.length === 0
    if (packed && isWhole && dtypes.length >= PAGE_ROWS) {
      const columns = names.map((name, k) =>
        isCountName(name) ? { numbers: made.numbers(k).slice() } : { packed: made.packed(k) },
      )
      return { columns, packed: true }
    }
    // If no record could be read, there are no moments at all.
    const columns = names.map((_, k) => ({
      numbers: moments.length > 0 ? made.numbers(k).slice() : new Float64Array(dtypes.length),
    }))
    for (const i of others) {
      const dtype = dtypeOf(dtypes[i]!)
      const row = dtype === undefined ? null : new Moments(dtype, moments, i * ROW_LENGTH)
      for (const [k, name] of names.entries()) {
        const value = row !== null && isDefined(name, dtype!) ? row.reduction(name) : Number.NaN
        columns[k]!.numbers[i] = typeof value === 'number' ? value : Number.NaN
      }
    }
    return { columns, packed: false }
  })
}
