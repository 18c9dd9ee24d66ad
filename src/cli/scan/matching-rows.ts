/** Rows of a scan that an expression is true for, and what there was besides. */

import type { TrialscanError } from '../../base/errors.js'
import type { ScanRow } from '../../scan/job/row.js'
import type { RowFilter } from '../../table/where.js'
import { counted, countText } from '../format/number.js'

/** Counts of a scan's rows. */
export interface Tally {
  rows: number
  matched: number
  failedRows: number
  firstError: TrialscanError | null
}

export function newTally(): Tally {
  return { rows: 0, matched: 0, failedRows: 0, firstError: null }
}

export function matchedText({ matched, rows }: Tally): string {
  return `${countText(matched)} of ${counted(rows, 'row')} ${matched === 1 ? 'matches' : 'match'}`
}

/**
 * @param filter null: all of them match
 * @param named reductions that a user has named: a dtype that does not have one is an error, as in every scan
 */
export async function* matchingRows(
  rows: AsyncIterable<ScanRow>,
  filter: RowFilter | null,
  tally: Tally,
  named: readonly string[] = [],
): AsyncGenerator<ScanRow> {
  for await (const scanned of rows) {
    const row = withoutUndefined(scanned, named)
    tally.rows++
    if (row.error) {
      tally.failedRows++
      tally.firstError ??= row.error
    }
    if (filter !== null && !filter.test(row)) continue
    tally.matched++
    yield row
  }
}

/** A row that only lacks a reduction that nobody has named, but an expression or a ranking needs, has no error. */
function withoutUndefined(row: ScanRow, named: readonly string[]): ScanRow {
  const { error, moments, tensor, dtype, shape } = row
  if (error?.code !== 'ReductionUndefined' || !moments || tensor === null || dtype === null || shape === null)
    return row
  // The first of them, in the order in which the scan was asked for them.
  if (named.some(name => name === error.fields.reduction)) return row
  const { error: _, ...others } = row
  return { ...others, tensor, dtype, shape, moments, saved: false }
}
