/** The bounds of one request. */

import { UsageError } from '../../base/errors.js'
import { elementStatistics } from '../../core/statistics/statistic.js'
import { answersLength } from '../../scan/job/scan-job.js'
import { totals } from '../../scan/rows/row-maker.js'
import { parseReductions } from '../../trial/reduction.js'
import { type ScanOptions, selectGroups } from '../../trial/scan-selection.js'
import { stateOf, type Trial } from '../../trial/trial.js'

/** The largest number of percentiles, edges and counts in one answer: some hundred megabytes of text. */
const MAX_NUMBERS = 1 << 24

/**
 * Refuses requests whose answer would be too large.
 * @throws UsageError for too many histograms and percentiles; what `trial.scan` throws
 */
export function expectBounded(trial: Trial, options: ScanOptions): void {
  const reductions = parseReductions(options.reductions ?? 'all')
  const perRow = answersLength(elementStatistics(reductions))
  if (perRow === 0) return
  const { totalRows } = totals({ groups: selectGroups(stateOf(trial), trial.name, options), reductions })
  const numbers = perRow * totalRows
  if (numbers <= MAX_NUMBERS) return
  throw new UsageError(
    `expected histograms and percentiles of at most ${MAX_NUMBERS} numbers in one answer, got ${totalRows} rows of ${perRow}: ask for fewer bins, tensors or steps at a time`,
    { rows: totalRows, numbersPerRow: perRow },
  )
}
