/** A group of a table's rows, in columns. What threads reply goes from typed arrays to typed arrays, without an object for each row. */

import { NumberColumns } from '../engine/columns.js'
import { dtypeOf, isOrdinary } from '../engine/dtype.js'
import { withEngineSync } from '../engine/engines.js'
import { type Complex, isFiniteRow } from '../engine/moments.js'
import { ROW_LENGTH } from '../engine/moments-row.js'
import type { DistributionData } from '../engine/statistics/distribution.js'
import { isMomentName } from '../engine/statistics/statistic.js'
import type { Descriptions } from '../job/reply.js'
import { isComplex, isHistogram, isSketch, placeOfError, type ScanRow } from '../job/row.js'
import type { ScanReply } from '../job/scan.js'
import type { ScanRows } from '../scan/scan.js'
import type { DType, MomentName, StatisticName } from '../types.js'
import { type ColumnData, Lists, Numbers, Texts, Values } from './column.js'
import { isNumeric } from './schema.js'

/** Rows by the names of their columns: see `fieldsOf`. */
export interface Group {
  readonly length: number
  column(name: string): ColumnData
}

const TEXTS = ['trial', 'tensor', 'mode', 'worker', 'dtype', 'error_code', 'error_message', 'error_file'] as const
const NUMBERS = ['step', 'mode_step', 'saved'] as const
const VALUES = ['exact', 'complex', 'error_offset'] as const

/** The first number that an int64 can't hold. */
const INT64_END = 2n ** 63n

/** Collects rows. */
export class GroupBuilder implements Group {
  readonly #names: readonly StatisticName[]
  readonly #texts: Readonly<Record<(typeof TEXTS)[number], Texts>>
  readonly #numbers: Readonly<Record<(typeof NUMBERS)[number], Numbers>>
  readonly #values: Readonly<Record<(typeof VALUES)[number], Values>>
  readonly #statistics: ReadonlyMap<string, Numbers | Values>
  readonly #shapes: Lists
  #length = 0

  /** @param capacity the most rows that it will be given */
  constructor(statistics: readonly StatisticName[], capacity: number) {
    this.#names = statistics
    this.#texts = record(TEXTS, () => new Texts(capacity))
    this.#numbers = record(NUMBERS, () => new Numbers(capacity))
    this.#values = record(VALUES, () => new Values())
    this.#shapes = new Lists(capacity)
    this.#statistics = new Map(
      statistics.map(name => [name, isNumeric(name) ? new Numbers(capacity) : new Values()] as const),
    )
  }

  get length(): number {
    return this.#length
  }

  column(name: string): ColumnData {
    const own: Readonly<Record<string, Texts | Numbers | Lists | Values>> = {
      shape: this.#shapes,
      ...this.#texts,
      ...this.#numbers,
      ...this.#values,
    }
    const column = own[name] ?? this.#statistics.get(name)
    if (column === undefined) throw new TypeError(`a table has no column ${name}`)
    return column.take(this.#length)
  }

  /** Adds rows of a trial. */
  add(trial: string, { planned, reply, row }: ScanRows): void {
    const first = this.#length
    this.#length += planned.length
    const isPlain = reply !== null && reply.answers.length === 0 && reply.sketches.ends.length === 0
    if (isPlain) this.#addNumbers(reply, first)
    const kinds = isPlain ? new Kinds(reply.described) : null
    for (let i = 0; i < planned.length; i++) {
      this.#texts.trial.set(first + i, trial)
      const kind = kinds?.of(i) ?? null
      const { columns, moments } = reply ?? NO_REPLY
      const isWhole =
        columns !== null || (kind !== null && isOrdinary(kind.dtype) && isFiniteRow(moments, i * ROW_LENGTH))
      if (kind === null || !isWhole) {
        this.#addRow(first + i, row(i))
        continue
      }
      const { workerStep, saved } = planned[i]!
      this.#addPlace(first + i, saved!.tensor, workerStep)
      this.#addKind(first + i, kind)
    }
  }

  /** All numbers that moments tell; for rows that aren't finite they are set again. */
  #addNumbers({ moments, columns, described }: ScanReply, first: number): void {
    const names = this.#names.filter(isMomentName)
    const rows = described.dtypes.length
    if (columns === null) {
      withEngineSync(engine => {
        engine.reset()
        const columns = new NumberColumns(engine, names, moments)
        for (const [i, name] of names.entries()) this.#numbersOf(name).numbers.set(columns.numbers(i), first)
      })
      return
    }
    for (const [i, column] of columns.entries()) {
      const numbers = this.#numbersOf(names[i]!)
      if ('packed' in column) numbers.setPacked(first, { rows, packed: column.packed })
      else numbers.numbers.set(column.numbers, first)
    }
  }

  #numbersOf(name: MomentName): Numbers {
    const column = this.#statistics.get(name)
    if (column instanceof Numbers) return column
    throw new TypeError(`expected a column of numbers for ${name}`)
  }

  #addPlace(i: number, tensor: string | null, { step, mode, modeStep, worker }: Place): void {
    this.#texts.tensor.set(i, tensor)
    this.#numbers.step.set(i, step)
    this.#texts.mode.set(i, mode)
    this.#numbers.mode_step.set(i, modeStep)
    this.#texts.worker.set(i, worker)
  }

  #addKind(i: number, { dtype, shape }: { dtype: DType | null; shape: readonly number[] | null }): void {
    this.#texts.dtype.set(i, dtype)
    if (shape !== null) this.#shapes.set(i, shape)
  }

  #addRow(i: number, row: ScanRow): void {
    this.#addPlace(i, row.tensor, row)
    this.#addKind(i, row)
    this.#numbers.saved.set(i, row.saved ? 1 : 0)
    const complex: Record<string, Complex> = {}
    for (const name of this.#names) {
      const value = row.reductions[name]
      const column = this.#statistics.get(name)!
      if (isComplex(value)) complex[name] = value
      if (column instanceof Numbers) column.set(i, typeof value === 'number' ? value : undefined)
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

  #addExact(i: number, { exact, dtype }: ScanRow): void {
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

const NO_REPLY = { columns: null, moments: new Float64Array(0) }

type Place = Pick<ScanRow, 'step' | 'mode' | 'modeStep' | 'worker'>

function record<K extends string, T>(names: readonly K[], make: () => T): Readonly<Record<K, T>> {
  return Object.fromEntries(names.map(name => [name, make()])) as Record<K, T>
}

interface Kind {
  readonly dtype: DType
  readonly shape: readonly number[]
}

/** Dtypes and shapes of records, one after the other. One that is as that before is the same object. */
class Kinds {
  readonly #described: Descriptions
  #at = 0
  #last: Kind = { dtype: 'string', shape: [] }

  constructor(described: Descriptions) {
    this.#described = described
  }

  /** @returns null for a record that failed */
  of(record: number): Kind | null {
    const { dtypes, ranks, dims } = this.#described
    const rank = ranks[record]!
    const at = this.#at
    this.#at += rank
    const dtype = dtypeOf(dtypes[record]!)
    if (dtype === undefined) return null
    const { shape } = this.#last
    let isSame = rank === shape.length
    for (let axis = 0; isSame && axis < rank; axis++) isSame = dims[at + axis] === shape[axis]
    if (isSame && dtype === this.#last.dtype) return this.#last
    this.#last = { dtype, shape: isSame ? shape : Array.from(dims.subarray(at, at + rank)) }
    return this.#last
  }
}

function sketchStruct({ buckets, counts, ...head }: DistributionData): Record<string, unknown> {
  const { count, nan_count, positive_infinity_count, negative_infinity_count } = head
  return {
    ...head,
    count: BigInt(count),
    nan_count: BigInt(nan_count),
    positive_infinity_count: BigInt(positive_infinity_count),
    negative_infinity_count: BigInt(negative_infinity_count),
    buckets: buckets.map(BigInt),
    counts: counts.map(BigInt),
  }
}
