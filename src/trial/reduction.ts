/** The names of requested reductions. */

import { isStatisticName, STATISTIC_NAMES } from '../engine/statistics/statistic.js'
import { nearestNames, UsageError } from '../errors.js'
import { REDUCTIONS, type StatisticName } from '../types.js'

/**
 * Checks the names of requested reductions.
 * @param asked names, or `all` for the eighteen that smdebug has
 * @throws UsageError that names the nearest known ones
 */
export function parseReductions(asked: readonly string[] | 'all'): readonly StatisticName[] {
  if (asked === 'all') return REDUCTIONS
  if (!Array.isArray(asked)) {
    throw new UsageError(`expected names of reductions in an array, or all, got ${JSON.stringify(asked)}`, { asked })
  }
  for (const name of asked) {
    if (isStatisticName(name)) continue
    const nearest = nearestNames(name, STATISTIC_NAMES)
    const hint =
      nearest.length > 0 ? `did you mean ${nearest.join(' or ')}?` : `known are ${STATISTIC_NAMES.join(', ')}`
    throw new UsageError(`expected the name of a reduction, got ${JSON.stringify(name)}; ${hint}`, { name, nearest })
  }
  return [...new Set(asked)].filter(isStatisticName)
}
