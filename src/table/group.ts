/** A group of a table's rows, in columns. The replies of threads go from typed arrays to typed arrays, without an object for each row. */

import type { StatisticName } from '../base/types.js'
import type { Complex } from '../core/moments.js'
import type { DistributionData } from '../core/statistics/distribution.js'
import { isDigestName, isMomentName } from '../core/statistics/statistic.js'
import { isComplex, isHistogram, isSketch, placeOfError } from '../scan/job/row.js'
import { type ColumnsRow, ReplyColumns, type ScanColumns } from '../scan/rows/scan-columns.js'
import { type ColumnData, Lists, Numbers, Texts, Values } from './column.js'
import { isNumeric } from './schema.js'

const TEXTS = ['trial', 'tensor', 'mode', 'worker', 'dtype', 'error_code', 'error_message', 'error_file'] as const
const NUMBERS = ['step', 'mode_step', 'saved'] as const
const VALUES = ['exact', 'complex', 'error_offset'] as const

/** The first number that an int64 can't hold. */
const INT64_END = 2n ** 63n

/** Rows by the names of their columns: see `fieldsOf`. */
export interface Group {
  readonly length: number
  column(name: string): ColumnData
}

/** Collects rows. */
export class GroupBuilder implements Group {
  readonly #names: readonly StatisticName[]
  readonly #texts: Readonly<Record<(typeof TEXTS)[number], Texts>>
  readonly #numbers: Readonly<Record<(typeof NUMBERS)[number], Numbers>>
  readonly #values: Readonly<Record<(typeof VALUES)[number], Values>>
  readonly #statistics: ReadonlyMap<string, Numbers | Texts | Values>
  readonly #shapes: Lists
  #length = 0

  /** @param capacity the largest number of rows */
  constructor(statistics: readonly StatisticName[], capacity: number) {
    this.#names = statistics
    this.#texts = record(TEXTS, () => new Texts(capacity))
    this.#numbers = record(NUMBERS, () => new Numbers(capacity))
    this.#values = record(VALUES, () => new Values())
    this.#shapes = new Lists(capacity)
    this.#statistics = new Map(
      statistics.map(name => {
        const column = isNumeric(name) ? Numbers : isDigestName(name) ? Texts : Values
        return [name, new column(capacity)] as const
      }),
    )
  }

  get length(): number {
    return this.#length
  }

  column(name: string): ColumnData {
    const columns: Readonly<Record<string, Texts | Numbers | Lists | Values>> = {
      shape: this.#shapes,
      ...this.#texts,
      ...this.#numbers,
      ...this.#values,
    }
    const column = columns[name] ?? this.#statistics.get(name)
    if (column === undefined) throw new TypeError(`a table has no column ${name}`)
    return column.take(this.#length)
  }

  /** Adds rows of a trial. */
  add(trial: string, columns: ScanColumns): void {
    const first = this.#length
    const { length } = columns
    this.#length += length
    this.#texts.trial.fill(first, length, trial)
    this.#texts.tensor.setAll(first, columns.tensor)
    this.#numbers.step.numbers.set(columns.step, first)
    this.#texts.mode.setAll(first, columns.mode)
    this.#numbers.mode_step.numbers.set(columns.modeStep, first)
    this.#texts.worker.setAll(first, columns.worker)
    this.#texts.dtype.setAll(first, columns.dtype)
    this.#shapes.setAll(first, columns.shape)
    this.#numbers.saved.numbers.set(columns.saved, first)
    const replied = columns instanceof ReplyColumns ? columns : null
    const moments = this.#names.filter(isMomentName).map(name => this.#statistics.get(name) as Numbers)
    // Rows without some of the numbers are corrected below.
    for (const [k, column] of (replied?.momentColumns ?? []).entries()) {
      if ('packed' in column) moments[k]!.setPacked(first, { rows: length, packed: column.packed })
      else moments[k]!.numbers.set(column.numbers, first)
    }
    for (const i of replied?.unusualRows ?? Array(length).keys()) this.#addRow(first + i, columns.row(i))
  }

  #addRow(i: number, row: ColumnsRow): void {
    const complex: Record<string, Complex> = {}
    for (const name of this.#names) {
      const value = row.reductions[name]
      const column = this.#statistics.get(name)!
      if (isComplex(value)) complex[name] = value
      if (column instanceof Numbers) column.set(i, typeof value === 'number' ? value : undefined)
      else if (column instanceof Texts) column.set(i, typeof value === 'string' ? value : undefined)
      else if (isHistogram(value)) column.set(i, { counts: value.counts.map(BigInt), edges: value.edges })
      else if (isSketch(value)) column.set(i, sketchStruct(value.toJSON()))
    }
    if (Object.keys(complex).length > 0) this.#values.complex.set(i, complex)
    this.#addExact(i, row)
    if (row.error === undefined) return
    const { file, offset } = placeOfError(row.error)
    this.#texts.error_code.set(i, row.error.code)
    this.#texts.error_message.set(i, row.error.message)
    this.#texts.error_file.set(i, file)
    if (offset !== undefined) this.#values.error_offset.set(i, BigInt(offset))
  }

  #addExact(i: number, { exact, dtype }: ColumnsRow): void {
    const values: Readonly<Partial<Record<string, bigint>>> = { ...exact }
    const struct: Record<string, bigint> = {}
    for (const name of this.#names) {
      const value = values[name]
      if (value === undefined) continue
      const isUnsigned = (name === 'min' || name === 'max') && (dtype === 'uint64' || value >= INT64_END)
      struct[isUnsigned ? `${name}_uint64` : name] = value
    }
    if (Object.keys(struct).length > 0) this.#values.exact.set(i, struct)
  }
}

function record<K extends string, T>(names: readonly K[], make: () => T): Readonly<Record<K, T>> {
  return Object.fromEntries(names.map(name => [name, make()])) as Record<K, T>
}

function sketchStruct({ buckets, counts, ...head }: DistributionData): Record<string, unknown> {
  const whole = Object.entries(head).map(([name, value]) => [name, name.endsWith('count') ? BigInt(value!) : value])
  return {
    ...Object.fromEntries(whole),
    buckets: buckets.map(BigInt),
    counts: counts.map(BigInt),
  }
}
