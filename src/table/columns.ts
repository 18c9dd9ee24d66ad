/** The columns of a row: everything that a scan returns of a tensor at a step, by name. */

import { nearestNames, quote, UsageError } from '../base/errors.js'
import type { StatisticName } from '../base/types.js'
import type { ReductionValue } from '../core/moments.js'
import type { Distribution, ElementHistogram } from '../core/statistics/distribution.js'
import { isDigestName, isHistogramName, isStatisticName, STATISTIC_NAMES } from '../core/statistics/statistic.js'
import { reductionOf, type ScanRow } from '../scan/job/row.js'

/**
 * The kind of a column's values. Numbers can be bigints (for all digits of 64-bit integers) and complex; a distribution is a histogram or
 * a sketch.
 */
export type ColumnKind = 'number' | 'text' | 'truth' | 'shape' | 'distribution'

/** A value, or null if the row has none. */
export type ColumnValue =
  | ReductionValue
  | bigint
  | string
  | boolean
  | readonly number[]
  | ElementHistogram
  | Distribution
  | null

export interface RowColumn {
  readonly name: string
  readonly kind: ColumnKind
  /** The reduction that a scan must compute for this column; null if none. */
  readonly reduction: StatisticName | null
  /** The value of a row in this column. */
  value(row: ScanRow): ColumnValue
}

function column(name: string, kind: ColumnKind, value: RowColumn['value']): [string, RowColumn] {
  return [name, { name, kind, reduction: null, value }]
}

/** The columns that are not reductions. */
const PLACES: ReadonlyMap<string, RowColumn> = new Map([
  column('tensor', 'text', row => row.tensor),
  column('step', 'number', row => row.step),
  column('mode', 'text', row => row.mode),
  column('mode_step', 'number', row => row.modeStep),
  column('worker', 'text', row => row.worker),
  column('dtype', 'text', row => row.dtype),
  column('shape', 'shape', row => row.shape),
  column('rank', 'number', row => row.shape?.length ?? null),
  column('size', 'number', row => row.shape?.reduce((product, length) => product * length, 1) ?? null),
  column('saved', 'truth', row => row.saved),
  column('error_code', 'text', row => row.error?.code ?? null),
  column('error_message', 'text', row => row.error?.message ?? null),
])

/** The column of that name, in any case; undefined if there is none. */
export function columnOf(given: string): RowColumn | undefined {
  const name = given.toLowerCase()
  const place = PLACES.get(name)
  if (place !== undefined || !isStatisticName(name)) return place
  const isDistribution = isHistogramName(name) || name === 'sketch'
  const kind = isDistribution ? 'distribution' : isDigestName(name) ? 'text' : 'number'
  return { name, kind, reduction: name, value: row => reductionOf(row, name) ?? null }
}

/** The columns nearest to an unknown name, or all columns. */
export function nearestColumns(name: string): { readonly nearest: readonly string[]; readonly hint: string } {
  const known = [...PLACES.keys(), ...STATISTIC_NAMES]
  const nearest = nearestNames(
    name,
    known.filter(known => !known.includes('<')),
  )
  return {
    nearest,
    hint: nearest.length > 0 ? `did you mean ${nearest.join(' or ')}?` : `there are ${known.join(', ')}`,
  }
}

/**
 * The columns of rows by their names: `tensor`, `step`, `mode`, `mode_step`, `worker`, `dtype`, `shape`, `rank`, `size`, `saved`,
 * `error_code`, `error_message`, and every reduction that a scan can be asked for.
 * @throws UsageError that names the nearest known ones
 */
export function parseColumns(names: readonly string[]): readonly RowColumn[] {
  if (!Array.isArray(names) || !names.every(name => typeof name === 'string')) {
    throw new UsageError(`expected names of columns in an array, got ${Array.isArray(names) ? 'others' : typeof names}`)
  }
  return names.map(name => {
    const described = columnOf(name)
    if (described !== undefined) return described
    const { nearest, hint } = nearestColumns(name)
    throw new UsageError(`expected the name of a column, got ${quote(name)}; ${hint}`, { name, nearest })
  })
}
