/** The columns of a table of rows: names and types, which depend only on the requested statistics. */

import type { StatisticName } from '../base/types.js'
import {
  isCountName,
  isDigestName,
  isHistogramName,
  isMomentName,
  isReductionName,
} from '../core/statistics/statistic.js'

export type LeafType = 'text' | 'int64' | 'uint64' | 'float64' | 'boolean'

export type FieldType = LeafType | { readonly list: LeafType } | { readonly struct: readonly Field[] }

export interface Field {
  readonly name: string
  readonly type: FieldType
  readonly isNullable: boolean
}

/** Fields for the exact integers that reductions of integers can be; extremes can also be uint64. */
const EXACT: Readonly<Partial<Record<string, readonly Field[]>>> = {
  min: [optional('min', 'int64'), optional('min_uint64', 'uint64')],
  max: [optional('max', 'int64'), optional('max_uint64', 'uint64')],
  sum: [optional('sum', 'int64')],
  prod: [optional('prod', 'int64')],
  abs_min: [optional('abs_min', 'uint64')],
  abs_max: [optional('abs_max', 'uint64')],
  abs_sum: [optional('abs_sum', 'int64')],
  abs_prod: [optional('abs_prod', 'int64')],
}

const COMPLEX: FieldType = { struct: [required('re', 'float64'), required('im', 'float64')] }

const HISTOGRAM: FieldType = { struct: [required('counts', { list: 'int64' }), required('edges', { list: 'float64' })] }

const SKETCH: FieldType = {
  struct: [
    required('count', 'int64'),
    required('nan_count', 'int64'),
    required('positive_infinity_count', 'int64'),
    required('negative_infinity_count', 'int64'),
    optional('min', 'float64'),
    optional('max', 'float64'),
    required('integers', 'boolean'),
    required('buckets', { list: 'int64' }),
    required('counts', { list: 'int64' }),
  ],
}

/**
 * The columns of a scan's rows. A number is a float64, a count an int64. Values that float64 can't hold are in two structs beside it:
 * `exact` has whole numbers, `complex` complex ones, with a field for each statistic that can have such values.
 */
export function fieldsOf(statistics: readonly StatisticName[]): readonly Field[] {
  const exact = statistics.flatMap(name => EXACT[name] ?? [])
  const complex = statistics.filter(name => name === 'mean' || name === 'sum').map(name => optional(name, COMPLEX))
  return [
    required('trial', 'text'),
    optional('tensor', 'text'),
    required('step', 'int64'),
    required('mode', 'text'),
    required('mode_step', 'int64'),
    required('worker', 'text'),
    optional('dtype', 'text'),
    optional('shape', { list: 'int64' }),
    required('saved', 'boolean'),
    ...statistics.map(name => optional(name, typeOf(name))),
    ...(exact.length > 0 ? [optional('exact', { struct: exact })] : []),
    ...(complex.length > 0 ? [optional('complex', { struct: complex })] : []),
    optional('error_code', 'text'),
    optional('error_message', 'text'),
    optional('error_file', 'text'),
    optional('error_offset', 'int64'),
  ]
}

function typeOf(name: StatisticName): FieldType {
  if (isCountName(name)) return 'int64'
  if (isDigestName(name)) return 'text'
  if (isHistogramName(name)) return HISTOGRAM
  return name === 'sketch' ? SKETCH : 'float64'
}

/** True if every value of a statistic is a number. */
export function isNumeric(name: StatisticName): boolean {
  return (
    isMomentName(name) || isReductionName(name) || (name !== 'sketch' && !isHistogramName(name) && !isDigestName(name))
  )
}

function required(name: string, type: FieldType): Field {
  return { name, type, isNullable: false }
}

function optional(name: string, type: FieldType): Field {
  return { name, type, isNullable: true }
}
