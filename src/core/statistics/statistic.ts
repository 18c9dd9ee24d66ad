/** What can be asked about the elements of a tensor, by name, and what has to be computed for each. */

import { UsageError } from '../../base/errors.js'
import {
  COUNTS,
  type CountName,
  type HistogramName,
  type MomentName,
  type PercentileName,
  REDUCTIONS,
  type ReductionName,
  type SketchName,
  type StatisticName,
} from '../../base/types.js'
import type { Moments, ReductionValue } from '../moments.js'
import type { Distribution, ElementHistogram } from './distribution.js'

/** What is computed from the elements of one tensor, since moments don't know it. Plain data, since it crosses a thread. */
export interface ElementStatistic {
  readonly kind: 'percentile' | 'histogram'
  /** The percentage; the number of bins, or several edges. */
  readonly numbers: readonly number[]
}

/** What a statistic can be. */
export type StatisticValue = ReductionValue | ElementHistogram | Distribution

/** The statistics of a tensor by their names, while they are put together. */
export type Values = Partial<Record<MomentName, ReductionValue>> &
  Partial<Record<PercentileName, number>> &
  Partial<Record<HistogramName, ElementHistogram>> &
  Partial<Record<'sketch', Distribution>> &
  Partial<Record<`~p${number}`, number>>

/** The same, to read. */
export type Statistics = Readonly<Values>

/** As many as `numpy.histogram` makes if it is told nothing. */
export const DEFAULT_BINS = 10
/** More bins than anybody looks at, and a bound on what a name can ask for. */
const MAX_BINS = 1 << 16

const REDUCTION_NAMES: ReadonlySet<string> = new Set(REDUCTIONS)
/** Everything that a row of moments answers. */
export const MOMENT_NAMES: readonly MomentName[] = [...REDUCTIONS, ...COUNTS]
const IS_COUNT: ReadonlySet<string> = new Set(COUNTS)
const IS_MOMENT: ReadonlySet<string> = new Set(MOMENT_NAMES)
const PERCENTILE = /^p(\d{1,3}(?:\.\d+)?)$/
const NUMBER = /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i

/** The names of all statistics, for people. */
export const STATISTIC_NAMES: readonly string[] = [...MOMENT_NAMES, 'p<q>', 'histogram', 'sketch', '~p<q>']

/** Whether a hook can have saved it. */
export function isReductionName(name: string): name is ReductionName {
  return REDUCTION_NAMES.has(name)
}

/** Whether a row of moments answers it. */
export function isMomentName(name: string): name is MomentName {
  return IS_MOMENT.has(name)
}

/** Whether it is a number of elements. */
export function isCountName(name: string): name is CountName {
  return IS_COUNT.has(name)
}

export function isPercentileName(name: string): name is PercentileName {
  return Number(PERCENTILE.exec(name)?.[1] ?? Number.NaN) <= 100
}

export function isHistogramName(name: string): name is HistogramName {
  return binsOf(name) !== null
}

/** Whether it is made from a sketch. */
export function isSketchName(name: string): name is SketchName {
  return name === 'sketch' || isSketchedPercentile(name)
}

function isSketchedPercentile(name: string): name is `~p${number}` {
  return name.startsWith('~') && isPercentileName(name.slice(1))
}

export function isStatisticName(name: string): name is StatisticName {
  return isMomentName(name) || isPercentileName(name) || isHistogramName(name) || isSketchName(name)
}

/** The bins that the name of a histogram stands for; null if it is not such a name. */
function binsOf(name: string): readonly number[] | null {
  if (name === 'histogram') return [DEFAULT_BINS]
  if (!name.startsWith('histogram:')) return null
  const texts = name.split(':').slice(1)
  const numbers = texts.map(Number)
  return texts.every(text => NUMBER.test(text)) && areBins(numbers) ? numbers : null
}

/** Whether numbers are a number of bins, or edges. */
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

/** What has to be computed from the elements; null for what moments know, and for a name that is none. */
export function elementStatistic(name: string): ElementStatistic | null {
  if (isPercentileName(name)) return { kind: 'percentile', numbers: [Number(name.slice(1))] }
  const bins = binsOf(name)
  return bins === null ? null : { kind: 'histogram', numbers: bins }
}

/** The same of a name that moments don't know. @throws UsageError for one that is none */
export function expectStatistic(name: string): ElementStatistic {
  const statistic = elementStatistic(name)
  if (statistic === null)
    throw new UsageError(`expected the name of a reduction, got ${JSON.stringify(name)}`, { name })
  return statistic
}

/** What has to be computed from elements for these names, in their order. */
export function elementStatistics(names: readonly string[]): readonly ElementStatistic[] {
  return names.map(elementStatistic).filter(statistic => statistic !== null)
}

/** How many numbers answer a statistic: those of a histogram are its edges, then its counts. */
export function answerLength({ kind, numbers }: ElementStatistic): number {
  if (kind === 'percentile') return 1
  const [bins = 0] = numbers
  return numbers.length === 1 ? 2 * bins + 1 : 2 * numbers.length - 1
}

/** A histogram from such an answer. */
export function histogramFrom(answer: readonly number[]): ElementHistogram {
  const middle = (answer.length + 1) / 2
  return { counts: answer.slice(middle), edges: answer.slice(0, middle) }
}

/** A statistic of tensors: its name, and how one tensor's is taken from what was computed. */
export interface StatisticColumn {
  readonly name: StatisticName
  /**
   * @param answers to all `elementStatistics` of the columns
   * @param sketched the distribution, if it was asked for
   * @throws as `moments.reduction`
   */
  readonly read: (into: Values, moments: Moments, answers: Float64Array, sketched: Distribution | undefined) => void
}

/** A column for each name. */
export function statisticColumns(names: readonly StatisticName[]): readonly StatisticColumn[] {
  let next = 0
  return names.map((name): StatisticColumn => {
    if (isMomentName(name)) {
      const read: StatisticColumn['read'] = (into, moments) => {
        into[name] = moments.reduction(name)
      }
      return { name, read }
    }
    if (name === 'sketch') {
      const read: StatisticColumn['read'] = (into, _, __, sketched) => {
        if (sketched !== undefined) into.sketch = sketched
      }
      return { name, read }
    }
    if (isSketchedPercentile(name)) {
      const q = Number(name.slice(2)) / 100
      const read: StatisticColumn['read'] = (into, _, __, sketched) => {
        into[name] = sketched?.quantile(q)
      }
      return { name, read }
    }
    const statistic = elementStatistic(name)
    const first = next
    next += statistic === null ? 0 : answerLength(statistic)
    const end = next
    if (isPercentileName(name)) {
      const read: StatisticColumn['read'] = (into, _, answers) => {
        into[name] = answers[first]
      }
      return { name, read }
    }
    const read: StatisticColumn['read'] = (into, _, answers) => {
      into[name] = histogramFrom([...answers.subarray(first, end)])
    }
    return { name, read }
  })
}
