/** The reductions of a row of moments. See MomentsRow in abi.ts. */

import { expectArgument } from '../base/arguments.js'
import { QueryError, ReductionUndefined, UsageError } from '../base/errors.js'
import {
  COUNTS,
  type CountName,
  DIGESTS,
  type DType,
  type MomentName,
  REDUCTIONS,
  type ReductionBase,
  type ReductionName,
  type StatisticName,
} from '../base/types.js'
import { KnownMoments, NumberForm } from './border/abi.js'
import { isNumeric } from './dtype.js'
import { withEngineSync } from './engines.js'
import { MOMENT_INDEX, type MomentSlot, ROW_LENGTH } from './moments-row.js'

/** A complex number, as mean and sum of a complex tensor are. */
export interface Complex {
  readonly re: number
  readonly im: number
}

/** The value of a reduction. Complex only for `mean` and `sum` of complex tensors, and where a job saved a complex number. */
export type ReductionValue = number | Complex

/** Exact extremes of a 64-bit integer tensor, which float64 may round. */
export interface ExactExtremes {
  readonly min: bigint
  readonly max: bigint
  readonly abs_min: bigint
  readonly abs_max: bigint
}

/** True if a statistic is defined for a dtype: strings have none; complex numbers have no order and no product, but digests. */
export function isDefined(name: StatisticName | 'percentile', dtype: DType): boolean {
  if (dtype === 'string') return false
  if (dtype !== 'complex64' && dtype !== 'complex128') return true
  if ((DIGESTS as readonly string[]).includes(name)) return true
  return name !== 'min' && name !== 'max' && name !== 'prod' && name in PART_BY_NAME
}

/** The error for a statistic that is not defined for a dtype. */
export function undefinedReduction(name: StatisticName | 'percentile', dtype: DType): ReductionUndefined {
  if (dtype === 'string') return new ReductionUndefined(name, dtype, 'strings hold no numbers')
  if (!(name in PART_BY_NAME)) return new ReductionUndefined(name, dtype, 'complex numbers have no order')
  const detail = name === 'prod' ? 'no product of complex numbers is computed' : 'complex numbers have no order'
  return new ReductionUndefined(name, dtype, `${detail}; abs_${name}, of the magnitudes, is defined`)
}

/**
 * The moments of one tensor. Any NaN among the elements makes every reduction NaN, as in numpy; infinities propagate. Without elements,
 * sum, l1 and l2 are 0, prod is 1, and the others are NaN.
 */
export class Moments {
  readonly dtype: DType
  readonly #rows: Float64Array
  /** The start of the row among the rows. A view would take longer to make than everything else. */
  readonly #from: number
  readonly #isFinite: boolean

  constructor(dtype: DType, rows: Float64Array, from = 0) {
    this.dtype = dtype
    this.#rows = rows
    this.#from = from
    this.#isFinite = !this.#isComplex && isFiniteRow(rows, from)
  }

  /**
   * The row itself, a view of the rows of its job. A copy can be kept, or sent to another machine, where `momentsOf` restores the
   * moments.
   */
  get row(): Float64Array {
    return this.#rows.subarray(this.#from, this.#from + ROW_LENGTH)
  }

  /** The number of elements. */
  get count(): number {
    return this.slot('count')
  }

  get nanCount(): number {
    return this.slot('nanCount')
  }

  /** The number of elements that are +Infinity or -Infinity. */
  get infinityCount(): number {
    return this.slot('positiveInfinityCount') + this.slot('negativeInfinityCount')
  }

  /** The number of elements that are 0; NaN if the row has no extremes. */
  get zeroCount(): number {
    return this.slot('zeroCount')
  }

  /** True if the row has the moments for this reduction: see `setFor`. If the dtype doesn't have it, `reduction` still throws. */
  knows(name: MomentName): boolean {
    const { known } = PART_BY_NAME[name]
    return (this.slot('known') & known) === known
  }

  /** A slot as the core wrote it; NaN if the row does not have it. */
  slot(name: MomentSlot): number {
    return this.#rows[this.#from + MOMENT_INDEX[name]]!
  }

  /** The exact extremes of int64 and uint64 tensors. Undefined for other dtypes, and without elements. */
  get exact(): ExactExtremes | undefined {
    if ((this.dtype !== 'int64' && this.dtype !== 'uint64') || this.count === 0) return undefined
    const signed = this.dtype === 'int64'
    return {
      min: this.#bits('minExact', signed),
      max: this.#bits('maxExact', signed),
      abs_min: this.#bits('minAbsExact', false),
      abs_max: this.#bits('maxAbsExact', false),
    }
  }

  /**
   * A reduction of the elements: population variance and std, l1 = Σ|x|, l2 = √Σx²; or a count, which NaN doesn't change.
   * @throws ReductionUndefined for a reduction that is not defined for the dtype
   * @throws QueryError (`ReductionUnknown`) for one that the row lacks the moments for
   */
  reduction(name: MomentName): ReductionValue {
    const { base, absolute, slot, form } = PART_BY_NAME[name]
    if (!this.knows(name)) throw unknownReduction(name)
    if (this.#isFinite) return finiteNumber(this.#rows, this.#from, slot, form)
    if (!isDefined(name, this.dtype)) throw undefinedReduction(name, this.dtype)
    if (name === 'inf_count') return this.infinityCount
    if (base === 'count') return this.slot(slot)
    if (this.nanCount > 0) return this.#isComplex && (name === 'mean' || name === 'sum') ? complexNaN : Number.NaN
    if (this.#isComplex && !absolute) {
      if (base === 'mean' || base === 'sum') return this.#complex(base)
      if (base === 'variance' || base === 'std') {
        return this.#spread(this.slot('m2') + this.slot('m2Imaginary'), base)
      }
    }
    return this.#reduce(base, absolute)
  }

  #reduce(base: ReductionBase, absolute: boolean): number {
    const { count } = this
    switch (base) {
      case 'min':
        return count === 0 ? Number.NaN : this.slot(absolute ? 'minAbs' : 'min')
      case 'max':
        return count === 0 ? Number.NaN : this.slot(absolute ? 'maxAbs' : 'max')
      case 'sum':
        return this.#total(absolute)
      case 'l1':
        return this.#total(true)
      case 'mean':
        if (count === 0) return Number.NaN
        if (this.infinityCount > 0) return this.#total(absolute)
        return scale(this.slot(absolute ? 'meanAbs' : 'mean'), this.slot('exponent'))
      case 'variance':
      case 'std':
        return this.#spread(this.slot(absolute ? 'm2Abs' : 'm2'), base)
      case 'l2':
        if (this.infinityCount > 0) return Number.POSITIVE_INFINITY
        return scale(Math.sqrt(this.slot('sumSquares')), this.slot('exponent'))
      case 'prod':
        return absolute ? Math.abs(this.#product()) : this.#product()
    }
  }

  #total(absolute: boolean): number {
    const negative = this.slot('negativeInfinityCount')
    const positive = this.slot('positiveInfinityCount')
    if (absolute && positive + negative > 0) return Number.POSITIVE_INFINITY
    if (positive > 0 && negative > 0) return Number.NaN
    if (positive > 0) return Number.POSITIVE_INFINITY
    if (negative > 0) return Number.NEGATIVE_INFINITY
    return scale(this.slot(absolute ? 'sumAbs' : 'sum'), this.slot('exponent'))
  }

  #spread(m2: number, base: 'variance' | 'std'): number {
    if (this.count === 0 || this.infinityCount > 0) return Number.NaN
    const variance = Math.max(0, m2) / this.count
    const exponent = this.slot('exponent')
    return base === 'variance' ? scale(variance, 2 * exponent) : scale(Math.sqrt(variance), exponent)
  }

  #product(): number {
    const mantissa = this.slot('prodMantissa')
    if (this.infinityCount === 0) return scale(mantissa, this.slot('prodExponent'))
    if (this.zeroCount > 0) return Number.NaN
    const sign = Math.sign(mantissa) * (this.slot('negativeInfinityCount') % 2 === 0 ? 1 : -1)
    return sign * Number.POSITIVE_INFINITY
  }

  #complex(base: 'mean' | 'sum'): Complex {
    if (base === 'mean' && this.count === 0) return complexNaN
    // Which part was infinite is unknown: an infinite element leaves both parts of the sum undetermined.
    if (this.infinityCount > 0) return complexNaN
    const exponent = this.slot('exponent')
    return base === 'mean'
      ? { re: scale(this.slot('mean'), exponent), im: scale(this.slot('meanImaginary'), exponent) }
      : { re: scale(this.slot('sum'), exponent), im: scale(this.slot('sumImaginary'), exponent) }
  }

  get #isComplex(): boolean {
    return this.dtype === 'complex64' || this.dtype === 'complex128'
  }

  #bits(slot: MomentSlot, signed: boolean): bigint {
    const { buffer, byteOffset } = this.#rows
    const view = new DataView(buffer, byteOffset + (this.#from + MOMENT_INDEX[slot]) * 8, 8)
    return signed ? view.getBigInt64(0, true) : view.getBigUint64(0, true)
  }
}

/**
 * True if a row of a real dtype has elements, all of them finite, and is in units of 1. Then every reduction can be computed by its form
 * in PARTS.
 * @param from the start of the row in `rows`
 */
export function isFiniteRow(rows: Float64Array, from: number): boolean {
  const special =
    rows[from + MOMENT_INDEX.nanCount]! +
    rows[from + MOMENT_INDEX.positiveInfinityCount]! +
    rows[from + MOMENT_INDEX.negativeInfinityCount]!
  // Without sums, the exponent is NaN
  return rows[from + MOMENT_INDEX.count]! > 0 && special === 0 && !(Math.abs(rows[from + MOMENT_INDEX.exponent]!) > 0)
}

/** The common case, without NaN, infinities or scaling. The core does the same (assembly/lines.ts). */
function finiteNumber(rows: Float64Array, from: number, slot: MomentSlot, form: NumberForm): number {
  const value = rows[from + MOMENT_INDEX[slot]]!
  switch (form) {
    case NumberForm.slot:
      return value
    case NumberForm.root:
      return Math.sqrt(value)
    case NumberForm.perCount:
      return Math.max(0, value) / rows[from + MOMENT_INDEX.count]!
    case NumberForm.rootPerCount:
      return Math.sqrt(finiteNumber(rows, from, slot, NumberForm.perCount))
    case NumberForm.product:
      return scale(value, rows[from + MOMENT_INDEX.prodExponent]!)
    case NumberForm.absProduct:
      return Math.abs(finiteNumber(rows, from, slot, NumberForm.product))
  }
}

/** A number that is computed from a row of moments. */
interface Part {
  readonly base: ReductionBase | 'count'
  readonly absolute: boolean
  /** The moments that this needs. */
  readonly known: KnownMoments
  /** The slot of a finite row. */
  readonly slot: MomentSlot
  readonly form: NumberForm
}

function partOf(name: ReductionName): Part {
  const absolute = name.startsWith('abs_')
  const base = (absolute ? name.slice(4) : name) as ReductionBase
  const { extremes, sumAbs, squares, product } = KnownMoments
  const sum = absolute ? sumAbs : KnownMoments.sum
  const m2 = absolute ? 'm2Abs' : 'm2'
  const parts: Readonly<Record<ReductionBase, readonly [KnownMoments, MomentSlot, NumberForm]>> = {
    min: [extremes, absolute ? 'minAbs' : 'min', NumberForm.slot],
    max: [extremes, absolute ? 'maxAbs' : 'max', NumberForm.slot],
    mean: [sum, absolute ? 'meanAbs' : 'mean', NumberForm.slot],
    sum: [sum, absolute ? 'sumAbs' : 'sum', NumberForm.slot],
    l1: [sumAbs, 'sumAbs', NumberForm.slot],
    l2: [squares, 'sumSquares', NumberForm.root],
    std: [sum | squares, m2, NumberForm.rootPerCount],
    variance: [sum | squares, m2, NumberForm.perCount],
    prod: [product, 'prodMantissa', absolute ? NumberForm.absProduct : NumberForm.product],
  }
  const [known, slot, form] = parts[base]
  return { base, absolute, known, slot, form }
}

/** The slot of each count. A finite row has no infinities of either sign. */
const COUNT_SLOTS: Readonly<Record<CountName, MomentSlot>> = {
  count: 'count',
  nan_count: 'nanCount',
  inf_count: 'positiveInfinityCount',
  zero_count: 'zeroCount',
}

function countPart(name: CountName): Part {
  const known = name === 'zero_count' ? KnownMoments.extremes : KnownMoments.none
  return { base: 'count', absolute: false, known, slot: COUNT_SLOTS[name], form: NumberForm.slot }
}

const PART_BY_NAME = Object.fromEntries([
  ...REDUCTIONS.map(name => [name, partOf(name)] as const),
  ...COUNTS.map(name => [name, countPart(name)] as const),
]) as Readonly<Record<MomentName, Part>>

/** The slot and form of a reduction of a finite row, for lines that the core writes. */
export function numberFrom(name: MomentName): { readonly slot: MomentSlot; readonly form: NumberForm } {
  return PART_BY_NAME[name]
}

/** The smallest set of moments for these reductions, so that a scan computes no more than it needs. */
export function setFor(names: readonly MomentName[]): KnownMoments {
  return names.reduce((known, name) => known | PART_BY_NAME[name].known, KnownMoments.none)
}

function unknownReduction(name: MomentName): QueryError {
  const detail = `expected moments computed with ${name}, got some computed without it`
  return new QueryError('ReductionUnknown', detail, { reduction: name })
}

const complexNaN: Complex = { re: Number.NaN, im: Number.NaN }

/** x · 2^exponent, without overflow on the way. */
export function scale(x: number, exponent: number): number {
  if (exponent === 0 || x === 0 || !Number.isFinite(x)) return x
  if (exponent > 3000) return x * Number.POSITIVE_INFINITY
  if (exponent < -3000) return x * 0
  let result = x
  for (let left = exponent; left !== 0; ) {
    const step = Math.max(-1000, Math.min(1000, left))
    result *= POWERS_OF_TWO[step + 1000]!
    left -= step
  }
  return result
}

/** 2^-1000 to 2^1000, since computing a power takes much longer than everything else here. */
const POWERS_OF_TWO = Float64Array.from({ length: 2001 }, (_, i) => 2 ** (i - 1000))

/**
 * Restores moments from a row that was kept, or that came from another machine. A row must travel as the bytes of its float64s, since
 * some of them are the bits of 64-bit integers.
 * @param row from a `Moments` of the same version of trialscan
 * @throws UsageError for a row of another length
 */
export function momentsOf(dtype: DType, row: Float64Array): Moments {
  expectArgument('momentsOf', 'dtype', 'a dtype', dtype, dtype === 'string' || isNumeric(dtype))
  expectArgument('momentsOf', 'row', 'a Float64Array', row, row instanceof Float64Array)
  if (row.length === ROW_LENGTH) return new Moments(dtype, row)
  throw new UsageError(`expected a row of ${ROW_LENGTH} numbers, got ${row.length}`)
}

/**
 * Merges the moments of parts, in order: the windows of one tensor, or the tensors of several workers or machines.
 * @param parts at least one, all of one dtype
 */
export function mergeMoments(parts: readonly Moments[]): Moments {
  const isAll = Array.isArray(parts) && parts.every(part => part instanceof Moments)
  expectArgument('mergeMoments', 'parts', 'an array of Moments', parts, isAll)
  const [first] = parts
  if (first === undefined || parts.some(({ dtype }) => dtype !== first.dtype)) {
    const got = parts.map(({ dtype }) => dtype).join(', ') || 'none'
    throw new UsageError(`expected moments of one dtype, got ${got}`)
  }
  const merged = withEngineSync(engine => engine.mergeRows(parts.map(({ row }) => row)))
  return new Moments(first.dtype, merged)
}
