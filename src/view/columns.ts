/** The statistics of a trial's tensors over its steps, as many of them and as exact as a page can hold. */

import { turnsWhenDue } from '../base/turns.js'
import type { ScanRow } from '../scan/job/row.js'
import { type PackedColumn, SCANNED_STATISTICS, SHOWN_STATISTICS, type ShownStatistic } from './data.js'
import { packed } from './packing.js'

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

/** A statistic of all series at the steps that are kept, one series after the other; NaN where there is no number. */
interface Column {
  readonly numbers: Float64Array
  /** 1 for each number, NaN among them. */
  readonly isNumber: Uint8Array
}

/** Numbers of series at steps. It keeps no more than the page will hold. */
export class StatisticTable {
  readonly #seriesCount: number
  readonly #stepCount: number
  readonly #plans: readonly Plan[]
  readonly #columns: (Column | undefined)[]

  constructor(seriesCount: number, stepCount: number) {
    const cells = seriesCount * stepCount
    this.#seriesCount = seriesCount
    this.#stepCount = stepCount
    this.#plans = SHOWN_STATISTICS.map((name, i) => {
      const budget = BUDGET * (i === 0 ? FIRST_SHARE : (1 - FIRST_SHARE) / (SHOWN_STATISTICS.length - 1))
      const isExact = cells * EXACT_BYTES <= budget
      return { name, isExact, every: isExact ? 1 : Math.max(1, Math.ceil((cells * ROUNDED_BYTES) / budget)) }
    })
    this.#columns = this.#plans.map(() => undefined)
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
    const steps = Math.ceil(this.#stepCount / this.#plans[statistic]!.every)
    const count = this.#seriesCount * steps
    this.#columns[statistic] ??= { numbers: new Float64Array(count).fill(Number.NaN), isNumber: new Uint8Array(count) }
    const { numbers, isNumber } = this.#columns[statistic]
    numbers[series * steps + at] = value
    isNumber[series * steps + at] = 1
  }

  async pack(): Promise<PackedColumn[]> {
    const due = turnsWhenDue()
    const all: PackedColumn[] = []
    for (const [i, plan] of this.#plans.entries()) {
      const column = this.#columns[i]
      if (column === undefined) continue
      all.push(packedColumn(plan, column.numbers, i => column.isNumber[i] === 1))
      await due()
    }
    return all
  }
}

/** A statistic as the page gets it. @param isNumber whether the i-th is a number of a tensor */
export function packedColumn(plan: Plan, numbers: Float64Array, isNumber: (i: number) => boolean): PackedColumn {
  const kept = plan.isExact ? numbers.slice() : rounded(numbers)
  markNaN(kept, isNumber)
  return { ...plan, numbers: packed(kept) }
}

/** The number from which on a server sends numbers with three digits: a page shows so many as colours. */
export const MAX_EXACT = 400_000

/** Explicit bits of a float32's fraction that are kept: three decimal digits. */
const KEPT_BITS = 10

/**
 * Tells apart the NaN of a tensor and the NaN that stands for no number: the former get the lowest bit of their fraction.
 * @param isNumber whether the i-th is a number of a tensor
 */
function markNaN(
  numbers: Float64Array<ArrayBuffer> | Float32Array<ArrayBuffer>,
  isNumber: (i: number) => boolean,
): void {
  const words = new Uint32Array(numbers.buffer, numbers.byteOffset)
  const stride = words.length / Math.max(1, numbers.length)
  for (let i = 0; i < numbers.length; i++) if (Number.isNaN(numbers[i]) && isNumber(i)) words[i * stride]! |= 1
}

/** Numbers as float32, rounded to about three digits, which compress to a third. */
function rounded(numbers: Float64Array): Float32Array<ArrayBuffer> {
  const floats = Float32Array.from(numbers)
  const bits = new Uint32Array(floats.buffer)
  const dropped = 23 - KEPT_BITS
  const half = 1 << (dropped - 1)
  const mask = -1 << dropped
  for (let i = 0; i < bits.length; i++) {
    // NaN and the infinities stay what they are.
    if ((bits[i]! & 0x7f800000) !== 0x7f800000) bits[i] = (bits[i]! + half) & mask
  }
  return floats
}
