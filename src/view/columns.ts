/** The statistics of a trial's tensors over its steps, as many of them and as exact as a page can hold. */

import type { ScanRow } from '../scan/job/row.js'
import { type PackedColumn, SCANNED_STATISTICS, SHOWN_STATISTICS, type ShownStatistic } from './data.js'
import { markNaN, packed, rounded } from './packing.js'

/** Bytes of text that all numbers together may take, about. */
const BUDGET = 4 << 20
/** The share of the room for the first statistic, which the page shows first. */
const FIRST_SHARE = 0.6
/** The approximate size of a number as text: exact, and rounded to three digits. */
const EXACT_BYTES = 9
const ROUNDED_BYTES = 2.2

/** The form in which a statistic is kept. */
interface Plan {
  readonly name: ShownStatistic
  readonly every: number
  readonly isExact: boolean
}

function isScanned(name: ShownStatistic): name is (typeof SCANNED_STATISTICS)[number] {
  return (SCANNED_STATISTICS as readonly string[]).includes(name)
}

/** Numbers of series at steps. It keeps no more than the page will hold. */
export class StatisticTable {
  readonly #stepCount: number
  readonly #plans: readonly Plan[]
  /** By the index of the statistic, then of the series, then of the step among those that are kept. */
  readonly #numbers: readonly number[][][]

  /** @param seriesCount the most series that there can be */
  constructor(seriesCount: number, stepCount: number) {
    const cells = seriesCount * stepCount
    this.#stepCount = stepCount
    this.#plans = SHOWN_STATISTICS.map((name, i) => {
      const budget = BUDGET * (i === 0 ? FIRST_SHARE : (1 - FIRST_SHARE) / (SHOWN_STATISTICS.length - 1))
      const isExact = cells * EXACT_BYTES <= budget
      return { name, isExact, every: isExact ? 1 : Math.max(1, Math.ceil((cells * ROUNDED_BYTES) / budget)) }
    })
    this.#numbers = this.#plans.map(() => [])
  }

  /** @param step the index of the row's step */
  add(series: number, step: number, { reductions }: ScanRow): void {
    for (const [i, { name, every }] of this.#plans.entries()) {
      const value = isScanned(name) ? reductions[name] : undefined
      if (typeof value === 'number' && step % every === 0) this.#put(i, series, step / every, value)
    }
  }

  set(name: ShownStatistic, series: number, step: number, value: number): void {
    const i = SHOWN_STATISTICS.indexOf(name)
    const { every } = this.#plans[i]!
    if (step % every === 0) this.#put(i, series, step / every, value)
  }

  #put(statistic: number, series: number, at: number, value: number): void {
    const column = this.#numbers[statistic]!
    column[series] ??= []
    column[series][at] = value
  }

  /** @param seriesCount how many series there are */
  pack(seriesCount: number): PackedColumn[] {
    return this.#plans.flatMap((plan, i) => {
      const column = this.#numbers[i]!
      if (column.length === 0) return []
      const steps = Math.ceil(this.#stepCount / plan.every)
      const numbers = new Float64Array(seriesCount * steps).fill(Number.NaN)
      for (const [series, values] of column.entries()) {
        for (const [step, value] of values?.entries() ?? []) numbers[series * steps + step] = value ?? Number.NaN
      }
      const kept = plan.isExact ? numbers : rounded(numbers)
      markNaN(kept, i => column[Math.floor(i / steps)]?.[i % steps] !== undefined)
      return [{ ...plan, numbers: packed(kept) }]
    })
  }
}
