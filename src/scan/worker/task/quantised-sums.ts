/** Sums the error of quantised weights over pieces, a row of blocks at a time, so that only its scales and sums are in memory. */

import { QueryError } from '../../../base/errors.js'
import type { DType } from '../../../base/types.js'
import { QuantisedRow } from '../../../core/border/abi.js'
import type { Address } from '../../../core/border/memory.js'
import { dtypeNumber } from '../../../core/dtype.js'
import { coreOf, type Engine } from '../../../core/engine.js'
import { isSameShape } from '../../../format/index-file.js'
import type { QuantisationError, QuantisedForm } from '../../job/quantised-job.js'

/** A tensor according to its header. */
export interface Described {
  readonly dtype: DType
  readonly shape: readonly number[]
}

/** The grid of blocks with a scale each. */
export interface ScaleGrid {
  readonly scheme: string
  /** The shape of the weights. */
  readonly shape: readonly number[]
  readonly codes: DType
  readonly scales: DType
  /** The numbers of rows: in all matrices, in a matrix, and in a block; a block ends with its matrix. */
  readonly matrixRows: number
  readonly columns: number
  readonly blockRows: number
  readonly blockColumns: number
  /** The largest finite number of the codes; larger numbers saturate there. */
  readonly largest: number
}

const LARGEST: Readonly<Record<string, number>> = {
  float8_e4m3fn: 448,
  float8_e5m2: 57344,
  float8_e4m3fnuz: 240,
  float8_e5m2fnuz: 57344,
  float4_e2m1fn: 6,
  int8: 127,
}

/** @throws QueryError `NotComparable` if the scales don't fit the numbers */
export function scaleGrid(form: QuantisedForm, codes: Described, scale: Described): ScaleGrid {
  for (const { dtype } of [codes, scale]) expectReal(dtype)
  return form === 'scaled' ? scaledGrid(codes, scale) : fourBitGrid(form, codes, scale)
}

function fourBitGrid(form: 'nvfp4' | 'mxfp4', codes: Described, scale: Described): ScaleGrid {
  const size = form === 'nvfp4' ? 16 : 32
  const outer = codes.shape.slice(0, form === 'nvfp4' ? -1 : -2)
  const columns = form === 'nvfp4' ? 2 * (codes.shape.at(-1) ?? 0) : 32 * (codes.shape.at(-2) ?? 0)
  const shape = [...outer, columns]
  const fits = 2 * countOf(codes.shape) === countOf(shape) && countOf(scale.shape) * size === countOf(shape)
  if (codes.dtype !== 'uint8' || !fits || columns % size !== 0) throw mismatch(codes, scale)
  return {
    scheme: form === 'nvfp4' ? 'NVFP4, a scale per 16 elements' : 'MXFP4, a scale per 32 elements',
    shape,
    codes: 'float4_e2m1fn',
    // Bytes as powers of two.
    scales: scale.dtype === 'uint8' ? 'float8_e8m0fnu' : scale.dtype,
    matrixRows: shape.at(-2) ?? 1,
    columns,
    blockRows: 1,
    blockColumns: size,
    largest: 6,
  }
}

function scaledGrid(codes: Described, scale: Described): ScaleGrid {
  const { dtype, shape } = codes
  const [rows, columns] = [shape.at(-2) ?? 1, shape.at(-1) ?? 1]
  const outermost = countOf(shape.slice(0, -2))
  const scales = countOf(scale.shape)
  const common = {
    shape,
    codes: dtype,
    scales: scale.dtype,
    columns,
    largest: LARGEST[dtype] ?? Number.POSITIVE_INFINITY,
  }
  if (scales === 1) {
    const all = outermost * rows
    return { ...common, scheme: `${dtype}, one scale`, matrixRows: all, blockRows: all, blockColumns: columns }
  }
  // A scale per row can also be a grid of blocks.
  const isOfRows = scale.shape.length < shape.length && scales === outermost * rows
  const [down, across] = isOfRows ? [rows, 1] : [scale.shape.at(-2) ?? 0, scale.shape.at(-1) ?? 0]
  const [blockRows, blockColumns] = [blockSize(rows, down), blockSize(columns, across)]
  if (blockRows === null || blockColumns === null || outermost * down * across !== scales) throw mismatch(codes, scale)
  const blockText = blockRows === 1 && across === 1 ? 'row' : `${blockRows} × ${blockColumns} block`
  return { ...common, scheme: `${dtype}, a scale per ${blockText}`, matrixRows: rows, blockRows, blockColumns }
}

/** The power of two that divides a length into that many blocks; null if none does. For one block, the length itself. */
function blockSize(length: number, blocks: number): number | null {
  if (blocks === 1) return length
  for (let size = 1; size <= length; size *= 2) if (Math.ceil(length / size) === blocks) return size
  return null
}

function countOf(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1)
}

function expectReal(dtype: DType): void {
  if (!/^(?:u?int64|string|complex.*)$/.test(dtype)) return
  throw new QueryError('NotComparable', `expected numbers and their scales, got ${dtype}`, { dtype })
}

function mismatch(codes: Described, scale: Described): QueryError {
  const [codesText, by] = [`${codes.dtype} [${codes.shape}]`, `${scale.dtype} [${scale.shape}]`]
  return new QueryError('NotComparable', `scales of ${by} don't fit numbers of ${codesText}`)
}

export class QuantisedSums {
  readonly #engine: Engine
  readonly #weight: DType
  readonly #grid: ScaleGrid
  readonly #nextScales: (count: number, into: Float64Array) => Promise<void>
  readonly #factor: number
  /** The number of blocks side by side. */
  readonly #across: number
  readonly #scales: Address
  readonly #blocks: Address
  readonly #row: Address
  #done = 0
  /** The end of the present row of blocks, in elements, and its number. */
  #end = 0
  #blockRow = -1
  #error = 0
  #squares = 0
  #worst = { index: [0, 0] as readonly [number, number], normalisedError: 0 }

  /**
   * Reserves memory in the core.
   * @param factor the global scale
   * @param nextScales reads the following scales
   * @throws QueryError `NotComparable` if shapes differ
   */
  constructor(
    engine: Engine,
    weight: Described,
    grid: ScaleGrid,
    factor: number,
    nextScales: (count: number, into: Float64Array) => Promise<void>,
  ) {
    expectReal(weight.dtype)
    if (!isSameShape(weight.shape, grid.shape)) {
      const message = `the weights are [${weight.shape}], what they were quantised to is [${grid.shape}]`
      throw new QueryError('NotComparable', message)
    }
    this.#engine = engine
    this.#weight = weight.dtype
    this.#grid = grid
    this.#factor = factor
    this.#nextScales = nextScales
    this.#across = Math.ceil(grid.columns / Math.max(1, grid.blockColumns))
    this.#scales = engine.reserveBytes(this.#across * 8)
    this.#blocks = engine.reserveBytes(this.#across * 16)
    this.#row = engine.reserveBytes(QuantisedRow.size)
    engine.doubles(this.#row, QuantisedRow.size / 8).fill(0)
  }

  /** Adds the following elements. */
  async add(a: Address, b: Address, count: number): Promise<void> {
    const { columns, blockColumns, largest, codes } = this.#grid
    const core = coreOf(this.#engine)
    const [dtypeA, dtypeB] = [dtypeNumber(this.#weight), dtypeNumber(codes)]
    for (let at = 0; at < count; ) {
      if (this.#done === this.#end) await this.#beginBlocks()
      const n = Math.min(count - at, this.#end - this.#done)
      const column = this.#done % columns
      const [scales, blocks] = [this.#scales, this.#blocks]
      core.addQuantised(dtypeA, a, dtypeB, b, at, n, column, columns, blockColumns, scales, largest, blocks, this.#row)
      this.#done += n
      at += n
      if (this.#done === this.#end) this.#endBlocks()
    }
  }

  async #beginBlocks(): Promise<void> {
    const { columns, matrixRows, blockRows } = this.#grid
    const inMatrix = Math.floor(this.#done / columns) % matrixRows
    this.#end = this.#done + Math.min(blockRows, matrixRows - inMatrix) * columns
    this.#blockRow++
    const scales = new Float64Array(this.#across)
    await this.#nextScales(this.#across, scales)
    for (let i = 0; i < scales.length; i++) scales[i]! *= this.#factor
    this.#engine.doubles(this.#scales, this.#across).set(scales)
    this.#engine.doubles(this.#blocks, 2 * this.#across).fill(0)
  }

  #endBlocks(): void {
    const sums = this.#engine.doubles(this.#blocks, 2 * this.#across)
    for (let block = 0; block < this.#across; block++) {
      const [error, squares] = [sums[2 * block]!, sums[2 * block + 1]!]
      this.#error += error
      this.#squares += squares
      const normalisedError = share(error, squares)
      if (normalisedError > this.#worst.normalisedError)
        this.#worst = { index: [this.#blockRow, block], normalisedError }
    }
  }

  get result(): QuantisationError {
    const row = this.#engine.doubles(this.#row, QuantisedRow.size / 8)
    const slot = (at: QuantisedRow) => row[at / 8]!
    const normalisedError = share(this.#error, this.#squares)
    const cosine = slot(QuantisedRow.dot) / Math.sqrt(this.#squares * slot(QuantisedRow.squaresB))
    return {
      scheme: this.#grid.scheme,
      normalisedError,
      sqnr: -10 * Math.log10(normalisedError),
      cosine: Math.max(-1, Math.min(1, cosine)),
      maxAbsolute: slot(QuantisedRow.maxAbsolute),
      worstBlock: this.#worst,
      saturated: this.#done === 0 ? 0 : slot(QuantisedRow.saturated) / this.#done,
      notFinite: slot(QuantisedRow.notFinite),
    }
  }
}

/** A share; 0 if nothing was lost of nothing. */
function share(error: number, squares: number): number {
  return error === 0 ? 0 : error / squares
}
