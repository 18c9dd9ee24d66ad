/** Checks the names of requested reductions. */

import { nearestNames, UsageError } from '../base/errors.js'
import { REDUCTIONS, type StatisticName } from '../base/types.js'
import { elementStatistics, isStatisticName, STATISTIC_NAMES } from '../core/statistics/statistic.js'
import { answersLength } from '../scan/job/scan-job.js'

/** The limit of statistics that one scan computes for each tensor. */
const MAX_STATISTICS = 1000
/** The limit of numbers in a row, including edges and counts of histograms. */
const MAX_ROW_NUMBERS = 1 << 18

/**
 * Checks the names of requested reductions.
 * @param given names, or `all` for smdebug's eighteen
 * @throws UsageError with the nearest names
 */
export function parseReductions(given: readonly string[] | 'all'): readonly StatisticName[] {
  if (given === 'all') return REDUCTIONS
  if (!Array.isArray(given)) {
    throw new UsageError(`expected names of reductions in an array, or all, got ${JSON.stringify(given)}`, {
      asked: given,
    })
  }
  const known = given.map(name => (name === 'median' ? 'p50' : name))
  for (const name of known) {
    if (isStatisticName(name)) continue
    if (/^~?p\d/.test(name))
      throw new UsageError(`expected a percentile from p0 to p100, got ${JSON.stringify(name)}`, { name })
    const nearest = nearestNames(name, STATISTIC_NAMES)
    const hint =
      nearest.length > 0 ? `did you mean ${nearest.join(' or ')}?` : `known are ${STATISTIC_NAMES.join(', ')}`
    throw new UsageError(`expected the name of a reduction, got ${JSON.stringify(name)}; ${hint}`, { name, nearest })
  }
  const names = [...new Set(known)].filter(isStatisticName)
  const numbers = names.length + answersLength(elementStatistics(names))
  if (names.length > MAX_STATISTICS || numbers > MAX_ROW_NUMBERS) {
    throw new UsageError(
      `expected at most ${MAX_STATISTICS} statistics, with ${MAX_ROW_NUMBERS} numbers, of each tensor, got ${names.length} with ${numbers}: ask for fewer bins, or several times`,
      { statistics: names.length, numbers },
    )
  }
  return names
}
