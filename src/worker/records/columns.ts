/** Reductions of a job's rows as the columns of a table, made by the thread that has the rows. */

import { NumberColumns } from '../../engine/columns.js'
import { dtypeOf, isOrdinary } from '../../engine/dtype.js'
import type { Engine } from '../../engine/engine.js'
import { isFiniteRow } from '../../engine/moments.js'
import { ROW_LENGTH } from '../../engine/moments-row.js'
import { isCountName } from '../../engine/statistics/statistic.js'
import type { ColumnsRequest, MomentColumn } from '../../job/scan.js'
import type { RecordTable } from './record.js'

/** The header of a page of fewer rows would be much of it. */
const PAGE_ROWS = 1024

/** @returns null where a row lacks a number, or has one that float64 can't hold, and for pages of few rows */
export function columnsOf(
  table: RecordTable,
  { names, packed }: ColumnsRequest,
  engine: Engine,
): readonly MomentColumn[] | null {
  const { moments, dtypes } = table
  if (packed && dtypes.length < PAGE_ROWS) return null
  for (let i = 0; i < dtypes.length; i++) {
    const dtype = dtypeOf(dtypes[i]!)
    if (dtype === undefined || !isOrdinary(dtype) || !isFiniteRow(moments, i * ROW_LENGTH)) return null
  }
  return engine.scoped(() => {
    const columns = new NumberColumns(engine, names, moments)
    return names.map((name, i) =>
      packed && !isCountName(name) ? { packed: columns.packed(i) } : { numbers: columns.numbers(i).slice() },
    )
  })
}
