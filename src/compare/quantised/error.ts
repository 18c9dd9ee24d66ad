/**
 * Weights beside what quantisation made of them: numbers of few bits, and scales that they are multiplied with. Which tensors belong together
 * is told by their names, as the libraries that write them give them.
 */

import { QueryError } from '../../base/errors.js'
import { isSameShape } from '../../format/index-file.js'
import type { TensorValue } from '../../scan/job/tensor-value.js'

/** The error of quantised weights. */
export interface QuantisationError {
  /** The number format and the scope of a scale, such as `float8_e4m3fn, a scale per 128 × 128 block`. */
  readonly scheme: string
  /** Σ(a − b)² / Σa² over finite elements. */
  readonly normalisedError: number
  /** −10·log10 of that, in dB; Infinity where nothing was lost. */
  readonly sqnr: number
  readonly cosine: number
  /** The largest |a − b|. */
  readonly maxAbsolute: number
  /** The block with the largest normalised error: its place among blocks of rows and of columns. */
  readonly worstBlock: { readonly index: readonly [number, number]; readonly normalisedError: number }
  /** The share of elements at the largest number of the format. */
  readonly saturated: number
  /** Elements for which either has NaN or an infinity. */
  readonly notFinite: number
}

/** The tensors that quantised weights are made of. */
export interface QuantisedTensors {
  readonly kind: 'scaled' | 'nvfp4' | 'mxfp4'
  readonly weight: string
  readonly scale: string
  /** The scale of a whole tensor (NVFP4), which multiplies or divides the other scales. */
  readonly outer?: { readonly name: string; readonly divides: boolean }
}

/** Tensors that quantisation adds beside weights: they have no counterpart among weights that are not quantised. */
const SCALES =
  /(?:[._](?:weight_scale(?:_inv|_2)?|weight_global_scale|input_scale|input_global_scale|[kv]_scale)|_scales)$/

export function isScale(name: string): boolean {
  return SCALES.test(name)
}

/** The tensors that stand for a weight; null: it is not quantised, or in a way that is not known. */
export function quantisedTensors(weight: string, names: ReadonlySet<string>): QuantisedTensors | null {
  const stem = weight.replace(/\.weight$/, '')
  const there = (...candidates: readonly string[]) => candidates.find(name => names.has(name))
  const [blocks, groups] = [`${weight}_blocks`, `${weight}_scales`]
  if (names.has(blocks) && names.has(groups)) return { kind: 'mxfp4', weight: blocks, scale: groups }
  const stored = there(weight, `${stem}.weight_packed`)
  const scale = there(`${stem}.weight_scale_inv`, `${stem}.weight_scale`)
  if (stem === weight || stored === undefined || scale === undefined) return null
  const [factor, divisor] = [`${stem}.weight_scale_2`, `${stem}.weight_global_scale`]
  const outer = there(factor, divisor)
  if (outer === undefined) return stored === weight ? { kind: 'scaled', weight: stored, scale } : null
  return { kind: 'nvfp4', weight: stored, scale, outer: { name: outer, divides: outer === divisor } }
}

/** The known quantisation of a weight that is not compared; null if there is none. */
export function otherQuantisation(weight: string, names: ReadonlySet<string>): string | null {
  const stem = weight.replace(/\.weight$/, '')
  if (names.has(`${stem}.weight_packed`)) return 'compressed-tensors'
  if (names.has(`${stem}.qweight`)) return names.has(`${stem}.g_idx`) ? 'GPTQ' : 'GPTQ or AWQ'
  return names.has(`${weight}.absmax`) || names.has(`${weight}.quant_map`) ? 'bitsandbytes' : null
}

/** The largest finite number of a dtype, at which what is larger ends up. */
const LARGEST: Readonly<Record<string, number>> = {
  float8_e4m3fn: 448,
  float8_e5m2: 57344,
  float8_e4m3fnuz: 240,
  float8_e5m2fnuz: 57344,
  float4_e2m1fn: 6,
  int8: 127,
}

const E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
const FOUR_BITS = Float32Array.from({ length: 16 }, (_, code) => (code < 8 ? E2M1[code]! : -E2M1[code - 8]!))

/** Numbers in C order with a scale for each block of a grid. */
interface Scaled {
  readonly scheme: string
  readonly shape: readonly number[]
  readonly codes: ArrayLike<number>
  readonly scales: ArrayLike<number>
  /** The factor of all scales. */
  readonly factor: number
  readonly blockRows: number
  readonly blockColumns: number
  readonly largest: number
}

/** @throws QueryError `NotComparable` where the scales don't fit the numbers */
export function scaledOf(
  { kind }: QuantisedTensors,
  weight: TensorValue,
  scale: TensorValue,
  outer?: { readonly value: TensorValue; readonly divides: boolean },
): Scaled {
  if (kind === 'scaled') return scaledByBlock(weight, scale)
  const size = kind === 'nvfp4' ? 16 : 32
  if (weight.dtype !== 'uint8') throw mismatch(weight, scale)
  const codes = fourBits(weight.data)
  const [columns, shape] =
    kind === 'nvfp4'
      ? [2 * (weight.shape.at(-1) ?? 0), [...weight.shape.slice(0, -1), 2 * (weight.shape.at(-1) ?? 0)]]
      : [32 * (weight.shape.at(-2) ?? 0), [...weight.shape.slice(0, -2), 32 * (weight.shape.at(-2) ?? 0)]]
  const scales = scale.dtype === 'uint8' ? Float64Array.from(scale.data, exponentScale) : numbersOf(scale)
  if (scales.length * size !== codes.length || columns % size !== 0) throw mismatch(weight, scale)
  const whole = outer === undefined ? 1 : (numbersOf(outer.value)[0] ?? 1)
  return {
    scheme: kind === 'nvfp4' ? 'NVFP4, a scale per 16 elements' : 'MXFP4, a scale per 32 elements',
    shape,
    codes,
    scales,
    factor: outer?.divides ? 1 / whole : whole,
    blockRows: 1,
    blockColumns: size,
    largest: 6,
  }
}

function scaledByBlock(weight: TensorValue, scale: TensorValue): Scaled {
  const codes = numbersOf(weight)
  const scales = numbersOf(scale)
  const { shape, dtype } = weight
  const [rows, columns] = [shape.at(-2) ?? 1, shape.at(-1) ?? 1]
  const common = { shape, codes, scales, factor: 1, largest: LARGEST[dtype] ?? Number.POSITIVE_INFINITY }
  if (scales.length === 1) {
    return { ...common, scheme: `${dtype}, one scale`, blockRows: rows, blockColumns: columns }
  }
  const outermost = shape.slice(0, -2).reduce((product, size) => product * size, 1)
  if (scales.length === outermost * rows) {
    return { ...common, scheme: `${dtype}, a scale per row`, blockRows: 1, blockColumns: columns }
  }
  const [down, across] = [scale.shape.at(-2) ?? 0, scale.shape.at(-1) ?? 0]
  const [blockRows, blockColumns] = [blockSize(rows, down), blockSize(columns, across)]
  if (blockRows === null || blockColumns === null || outermost * down * across !== scales.length) {
    throw mismatch(weight, scale)
  }
  return { ...common, scheme: `${dtype}, a scale per ${blockRows} × ${blockColumns} block`, blockRows, blockColumns }
}

/** The power of two that cuts a length into that many blocks; null: none does. Where there is one block, the length itself. */
function blockSize(length: number, blocks: number): number | null {
  if (blocks === 1) return length
  for (let size = 1; size <= length; size *= 2) if (Math.ceil(length / size) === blocks) return size
  return null
}

/** Two elements of each byte, the low bits first. */
function fourBits(bytes: ArrayLike<number>): Float32Array {
  const numbers = new Float32Array(bytes.length * 2)
  for (let i = 0; i < bytes.length; i++) {
    numbers[2 * i] = FOUR_BITS[bytes[i]! & 15]!
    numbers[2 * i + 1] = FOUR_BITS[bytes[i]! >> 4]!
  }
  return numbers
}

/** E8M0: a power of two. */
function exponentScale(byte: number): number {
  return byte === 255 ? Number.NaN : 2 ** (byte - 127)
}

function numbersOf({ dtype, data }: TensorValue): ArrayLike<number> {
  if (typeof data[0] === 'bigint' || dtype === 'string' || dtype.startsWith('complex')) {
    throw new QueryError('NotComparable', `expected numbers and their scales, got ${dtype}`, { dtype })
  }
  return data as ArrayLike<number>
}

function mismatch(weight: TensorValue, scale: TensorValue): QueryError {
  const [of, by] = [`${weight.dtype} [${weight.shape}]`, `${scale.dtype} [${scale.shape}]`]
  return new QueryError('NotComparable', `scales of ${by} don't fit numbers of ${of}`)
}

/** @throws QueryError `NotComparable` where shapes differ */
export function quantisationError(weight: TensorValue, quantised: Scaled): QuantisationError {
  const { shape, codes, scales, factor, blockRows, blockColumns, largest, scheme } = quantised
  if (!isSameShape(weight.shape, shape)) {
    const message = `the weights are [${weight.shape}], what they were quantised to is [${shape}]`
    throw new QueryError('NotComparable', message)
  }
  const values = numbersOf(weight)
  const [rows, columns] = [shape.at(-2) ?? 1, shape.at(-1) ?? 1]
  const [down, across] = [Math.ceil(rows / blockRows), Math.ceil(columns / blockColumns)]
  const errors = new Float64Array(scales.length)
  const squares = new Float64Array(scales.length)
  let [dot, squaresB, maxAbsolute, atLargest, notFinite] = [0, 0, 0, 0, 0]
  for (let row = 0, i = 0; i < values.length; row++) {
    const blockRow = Math.floor(row / rows) * down + Math.floor((row % rows) / blockRows)
    for (let blockColumn = 0; blockColumn < across; blockColumn++) {
      const block = scales.length === 1 ? 0 : blockRow * across + blockColumn
      const scale = scales[block]! * factor
      const end = i + Math.min(blockColumns, columns - blockColumn * blockColumns)
      for (; i < end; i++) {
        const [a, code] = [values[i]!, codes[i]!]
        const b = code * scale
        if (Math.abs(code) === largest) atLargest++
        const apart = a - b
        if (!Number.isFinite(apart)) {
          notFinite++
          continue
        }
        errors[block]! += apart * apart
        squares[block]! += a * a
        dot += a * b
        squaresB += b * b
        if (Math.abs(apart) > maxAbsolute) maxAbsolute = Math.abs(apart)
      }
    }
  }
  const [error, squaresA] = [sum(errors), sum(squares)]
  let worst = 0
  errors.forEach((one, block) => {
    if (share(one, squares[block]!) > share(errors[worst]!, squares[worst]!)) worst = block
  })
  const normalisedError = share(error, squaresA)
  return {
    scheme,
    normalisedError,
    sqnr: -10 * Math.log10(normalisedError),
    cosine: Math.max(-1, Math.min(1, dot / Math.sqrt(squaresA * squaresB))),
    maxAbsolute,
    worstBlock: {
      index: [Math.floor(worst / across), worst % across],
      normalisedError: share(errors[worst] ?? 0, squares[worst] ?? 0),
    },
    saturated: values.length === 0 ? 0 : atLargest / values.length,
    notFinite,
  }
}

function sum(numbers: Float64Array): number {
  let total = 0
  for (const number of numbers) total += number
  return total
}

/** 0 of nothing is nothing lost. */
function share(error: number, squares: number): number {
  return error === 0 ? 0 : error / squares
}
