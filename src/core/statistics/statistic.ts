/** The statistics of a tensor's elements, by name, and what has to be computed for each. */

import { UsageError } from '../../base/errors.js'
import {
  COUNTS,
  type CountName,
  DIGESTS,
  type DigestName,
  type HistogramName,
  type MomentName,
  type PercentileName,
  REDUCTIONS,
  type ReductionName,
  type SketchName,
  type StatisticName,
} from '../../base/types.js'
import { isDefined, type Moments, type ReductionValue } from '../moments.js'
import type { Distribution, ElementHistogram } from './distribution.js'

/** A statistic that moments don't have and that needs the elements of one tensor. Plain data, since it crosses threads. */
export interface ElementStatistic {
  readonly kind: 'percentile' | 'histogram' | DigestName
  /** The percentage; the number of bins, or several edges; none of a digest. */
  readonly numbers: readonly number[]
}

/** The value of a statistic. A digest is text: hexadecimal digits, in lower case. */
export type StatisticValue = ReductionValue | ElementHistogram | Distribution | string

/** The statistics of a tensor by their names, while they are put together. */
export type Values = Partial<Record<MomentName, ReductionValue>> &
  Partial<Record<PercentileName, number>> &
  Partial<Record<HistogramName, ElementHistogram>> &
  Partial<Record<'sketch', Distribution>> &
  Partial<Record<`~p${number}`, number>> &
  Partial<Record<DigestName, string>>

/** The statistics of a tensor, read-only. */
export type Statistics = Readonly<Values>

/** The value of the statistic of a name that is written out; of any other name, what there may be. `Complex` is left to the caller. */
export type StatisticOf<N extends StatisticName> = StatisticName extends N
  ? StatisticValue
  : N extends HistogramName
    ? ElementHistogram
    : N extends 'sketch'
      ? Distribution
      : N extends DigestName
        ? string
        : number

/** The statistics of names that are written out, all of which a row without an error has; of any other names, what there may be. */
export type StatisticsOf<R extends readonly StatisticName[]> = number extends R['length']
  ? Statistics
  : { readonly [N in R[number]]: StatisticOf<N> }

/** The number of bins that `numpy.histogram` makes by default. */
export const DEFAULT_BINS = 10
/** More bins than anybody looks at, and a bound on what a name can ask for. */
const MAX_BINS = 1 << 16

const REDUCTION_NAMES: ReadonlySet<string> = new Set(REDUCTIONS)
/** Everything that a row of moments answers. */
export const MOMENT_NAMES: readonly MomentName[] = [...REDUCTIONS, ...COUNTS]
const IS_COUNT: ReadonlySet<string> = new Set(COUNTS)
const IS_MOMENT: ReadonlySet<string> = new Set(MOMENT_NAMES)
const IS_DIGEST: ReadonlySet<string> = new Set(DIGESTS)
const PERCENTILE = /^p(\d{1,3}(?:\.\d+)?)$/
const NUMBER = /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i

/** The names of all statistics, for people. */
export const STATISTIC_NAMES: readonly string[] = [...MOMENT_NAMES, 'p<q>', 'histogram', 'sketch', '~p<q>', ...DIGESTS]

/** True for a reduction that a hook can save. */
export function isReductionName(name: string): name is ReductionName {
  return REDUCTION_NAMES.has(name)
}

/** True for a name that a row of moments answers. */
export function isMomentName(name: string): name is MomentName {
  return IS_MOMENT.has(name)
}

/** True for a count of elements. */
export function isCountName(name: string): name is CountName {
  return IS_COUNT.has(name)
}

export function isPercentileName(name: string): name is PercentileName {
  return Number(PERCENTILE.exec(name)?.[1] ?? Number.NaN) <= 100
}

export function isHistogramName(name: string): name is HistogramName {
  return binsOf(name) !== null
}

/** True for a statistic made from a sketch. */
export function isSketchName(name: string): name is SketchName {
  return name === 'sketch' || isSketchedPercentile(name)
}

function isSketchedPercentile(name: string): name is `~p${number}` {
  return name.startsWith('~') && isPercentileName(name.slice(1))
}

export function isDigestName(name: string): name is DigestName {
  return IS_DIGEST.has(name)
}

export function isStatisticName(name: string): name is StatisticName {
  return (
    isMomentName(name) || isPercentileName(name) || isHistogramName(name) || isSketchName(name) || isDigestName(name)
  )
}

/** The bins that the name of a histogram stands for; null if it is not such a name. */
function binsOf(name: string): readonly number[] | null {
  if (name === 'histogram') return [DEFAULT_BINS]
  if (!name.startsWith('histogram:')) return null
  const texts = name.split(':').slice(1)
  const numbers = texts.map(Number)
  return texts.every(text => NUMBER.test(text)) && areBins(numbers) ? numbers : null
}

/** True if numbers are a number of bins, or edges. */
export function areBins(numbers: readonly number[]): boolean {
  const [first = 0, ...others] = numbers
  if (others.length === 0) return Number.isInteger(first) && first >= 1 && first <= MAX_BINS
  return others.length <= MAX_BINS && isAscending(numbers)
}

function isAscending(numbers: readonly number[]): boolean {
  let last = Number.NEGATIVE_INFINITY
  for (const number of numbers) {
    if (!(number > last && number < Number.POSITIVE_INFINITY)) return false
    last = number
  }
  return true
}

/** The computation on elements that a name needs; null for names of moments, and for unknown ones. */
export function elementStatistic(name: string): ElementStatistic | null {
  if (isDigestName(name)) return { kind: name, numbers: [] }
  if (isPercentileName(name)) return { kind: 'percentile', numbers: [Number(name.slice(1))] }
  const bins = binsOf(name)
  return bins === null ? null : { kind: 'histogram', numbers: bins }
}

/** The computation on elements for a name that moments don't have. @throws UsageError for an unknown name */
export function expectStatistic(name: string): ElementStatistic {
  const statistic = elementStatistic(name)
  if (statistic === null)
    throw new UsageError(`expected the name of a reduction, got ${JSON.stringify(name)}`, { name })
  return statistic
}

/** The computations on elements for these names, in their order. */
export function elementStatistics(names: readonly string[]): readonly ElementStatistic[] {
  return names.map(elementStatistic).filter(statistic => statistic !== null)
}

/** True for a statistic that needs all elements of a tensor in memory. A digest takes them as they come. */
export function needsAllElements({ kind }: ElementStatistic): boolean {
  return !isDigestName(kind)
}

/** The number of answers to a statistic. A histogram's are its edges, then its counts; a digest's are words of 32 bits. */
export function answerLength({ kind, numbers }: ElementStatistic): number {
  if (kind === 'percentile' || kind === 'crc32c') return 1
  if (kind === 'sha256') return 8
  const [bins = 0] = numbers
  return numbers.length === 1 ? 2 * bins + 1 : 2 * numbers.length - 1
}

/** A histogram from such an answer. */
export function histogramFrom(answer: readonly number[]): ElementHistogram {
  const middle = (answer.length + 1) / 2
  return { counts: answer.slice(middle), edges: answer.slice(0, middle) }
}

/** The text of a digest from such an answer. */
function digestFrom(answer: Float64Array): string {
  return Array.from(answer, word => word.toString(16).padStart(8, '0')).join('')
}

/** A statistic of tensors: its name, and how one tensor's is taken from what was computed. */
export interface StatisticColumn {
  readonly name: StatisticName
  /** @throws as `moments.reduction` */
  readonly read: (computed: ComputedStatistics) => StatisticValue | undefined
}

/** The results for a tensor: moments, the answers to all `elementStatistics`, and the distribution, if it was asked for. */
export interface ComputedStatistics {
  readonly moments: Moments
  readonly answers: Float64Array
  readonly sketched: Distribution | undefined
}

/** A column for each name. */
export function statisticColumns(names: readonly StatisticName[]): readonly StatisticColumn[] {
  let next = 0
  return names.map(name => {
    const statistic = elementStatistic(name)
    const first = next
    next += statistic === null ? 0 : answerLength(statistic)
    return { name, read: readerOf(name, first, next) }
  })
}

/** @param first the index of the first of its answers @param end the index behind the last */
function readerOf(name: StatisticName, first: number, end: number): StatisticColumn['read'] {
  if (isMomentName(name)) return ({ moments }) => moments.reduction(name)
  if (name === 'sketch') return ({ sketched }) => sketched
  if (isSketchedPercentile(name)) {
    const q = Number(name.slice(2)) / 100
    return ({ sketched }) => sketched?.quantile(q)
  }
  if (isPercentileName(name)) return ({ answers }) => answers[first]
  if (isDigestName(name)) return ({ answers }) => digestFrom(answers.subarray(first, end))
  return ({ answers }) => histogramFrom([...answers.subarray(first, end)])
}

/** The statistics that a tensor's dtype has, and the first that it lacks. @throws as `moments.reduction` */
export function statisticsIn(
  columns: readonly StatisticColumn[],
  computed: ComputedStatistics,
): { readonly values: Values; readonly missing: StatisticName | undefined } {
  const values: Record<string, StatisticValue | undefined> = {}
  let missing: StatisticName | undefined
  for (const { name, read } of columns) {
    if (isDefined(name, computed.moments.dtype)) values[name] = read(computed)
    else missing ??= name
  }
  return { values: values as Values, missing }
}
