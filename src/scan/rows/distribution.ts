/** Merges the sketches of many rows. */

import { undefinedReduction } from '../../core/moments.js'
import type { Distribution } from '../../core/statistics/distribution.js'
import type { ScanRow } from '../job/row.js'

/** @returns null if no row has a value */
export async function distributionOf(rows: AsyncIterable<ScanRow>): Promise<Distribution | null> {
  let merged: Distribution | null = null
  for await (const { error, saved, dtype, reductions } of rows) {
    if (error) throw error
    if (saved) continue
    const { sketch } = reductions
    if (sketch === undefined) throw undefinedReduction('sketch', dtype ?? 'string')
    merged = merged === null ? sketch : merged.merge(sketch)
  }
  return merged
}
