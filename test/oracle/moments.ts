/**
 * Moments and reductions by exact arithmetic on whole numbers: slow, and too simple to be wrong the way a kernel can be.
 * It shares nothing with the kernel.
 */

/** The number whole · 2^exponent. */
export interface Exact {
  readonly whole: bigint
  readonly exponent: number
}

/** What the elements come to: sums and squares of the finite ones, exactly. */
export interface ExactMoments {
  readonly count: number
  readonly nans: number
  readonly positiveInfinities: number
  readonly negativeInfinities: number
  readonly zeros: number
  /** Over all but NaN; ±Infinity of none. */
  readonly min: number | bigint
  readonly max: number | bigint
  readonly minAbs: number | bigint
  readonly maxAbs: number | bigint
  /** Finite elements. */
  readonly n: number
  readonly sum: Exact
  readonly sumAbs: Exact
  readonly sumSquares: Exact
  /** n · Σ(x − mean)², which is a whole number of units. */
  readonly nM2: Exact
  readonly nM2Abs: Exact
  /** To 200 bits. Whole 0 when a zero is among the factors: see `isProductNegative`. */
  readonly product: Exact
  /** Counting −0 as negative. */
  readonly isProductNegative: boolean
}

const scratch = new DataView(new ArrayBuffer(8))

/** A finite number, exactly. */
export function exact(x: number | bigint): Exact {
  if (typeof x === 'bigint') return { whole: x, exponent: 0 }
  scratch.setFloat64(0, x)
  const bits = scratch.getBigUint64(0)
  const field = Number((bits >> 52n) & 0x7ffn)
  const fraction = bits & 0xfffffffffffffn
  const magnitude = field === 0 ? fraction : fraction | (1n << 52n)
  return { whole: bits >> 63n ? -magnitude : magnitude, exponent: Math.max(field, 1) - 1075 }
}

/** The quotient as a number, right to a few units of the last place. */
export function ratio(a: Exact, b: Exact): number {
  if (a.whole === 0n) return 0
  const shift = 120 - bitLength(a.whole) + bitLength(b.whole)
  const quotient = shift >= 0 ? (a.whole << BigInt(shift)) / b.whole : a.whole / (b.whole << BigInt(-shift))
  return scale(quotient, a.exponent - b.exponent - shift)
}

export function difference(a: Exact, b: Exact): Exact {
  const exponent = Math.min(a.exponent, b.exponent)
  return {
    whole: (a.whole << BigInt(a.exponent - exponent)) - (b.whole << BigInt(b.exponent - exponent)),
    exponent,
  }
}

export function times(a: Exact, factor: number): Exact {
  return { whole: a.whole * BigInt(factor), exponent: a.exponent }
}

export function toNumber({ whole, exponent }: Exact): number {
  const surplus = Math.max(0, bitLength(whole) - 120)
  return scale(whole >> BigInt(surplus), exponent + surplus)
}

/** whole · 2^exponent, of at most some hundred bits; in steps, for 2^exponent may be out of range. */
function scale(whole: bigint, exponent: number): number {
  const x = Number(whole)
  const step = Math.trunc(Math.max(-2100, Math.min(2100, exponent)) / 3)
  return x * 2 ** step * 2 ** step * 2 ** (Math.max(-2100, Math.min(2100, exponent)) - 2 * step)
}

function bitLength(whole: bigint): number {
  return (whole < 0n ? -whole : whole).toString(2).length
}

const hasValue = (x: number | bigint) => typeof x === 'bigint' || Number.isFinite(x)
const isNegative = (x: number | bigint) => (typeof x === 'bigint' ? x < 0n : x < 0 || Object.is(x, -0))
const magnitude = (x: number | bigint) => (isNegative(x) ? -x : x)

export function momentsOf(values: readonly (number | bigint)[]): ExactMoments {
  const numbers = values.filter(x => typeof x === 'bigint' || !Number.isNaN(x))
  const finite = numbers.filter(hasValue)
  const parts = finite.map(exact)
  const unit = parts.reduce((least, { exponent }) => Math.min(least, exponent), 2000)
  let sum = 0n
  let sumAbs = 0n
  let squares = 0n
  let product = 1n
  let productExponent = 0
  for (const { whole, exponent } of parts) {
    const x = whole << BigInt(exponent - unit)
    sum += x
    sumAbs += x < 0n ? -x : x
    squares += x * x
    product *= whole
    productExponent += exponent
    const surplus = product === 0n ? 0 : bitLength(product) - 200
    if (surplus > 0) {
      product >>= BigInt(surplus)
      productExponent += surplus
    }
  }
  const n = BigInt(finite.length)
  const extreme = (list: readonly (number | bigint)[], sign: 1 | -1) =>
    list.reduce((best, x) => ((sign < 0 ? x < best : x > best) ? x : best), sign < 0 ? Infinity : -Infinity)
  return {
    count: values.length,
    nans: values.length - numbers.length,
    positiveInfinities: numbers.filter(x => x === Infinity).length,
    negativeInfinities: numbers.filter(x => x === -Infinity).length,
    zeros: finite.filter(x => x === 0 || x === 0n).length,
    min: extreme(numbers, -1),
    max: extreme(numbers, 1),
    minAbs: extreme(numbers.map(magnitude), -1),
    maxAbs: extreme(numbers.map(magnitude), 1),
    n: finite.length,
    sum: { whole: sum, exponent: unit },
    sumAbs: { whole: sumAbs, exponent: unit },
    sumSquares: { whole: squares, exponent: 2 * unit },
    nM2: { whole: n * squares - sum * sum, exponent: 2 * unit },
    nM2Abs: { whole: n * squares - sumAbs * sumAbs, exponent: 2 * unit },
    product: { whole: product, exponent: productExponent },
    isProductNegative: finite.filter(isNegative).length % 2 === 1,
  }
}

export type Reduction = 'min' | 'max' | 'mean' | 'std' | 'variance' | 'sum' | 'prod' | 'l1' | 'l2'

/** The reductions as numpy's rules have it, of the elements and (`abs_…`) of their absolute values. */
export function reductionsOf(values: readonly (number | bigint)[]): Record<Reduction | `abs_${Reduction}`, number> {
  const plain = reduce(values)
  const absolute = reduce(values.map(magnitude))
  return {
    ...plain,
    ...(Object.fromEntries(Object.entries(absolute).map(([name, x]) => [`abs_${name}`, x])) as Record<
      `abs_${Reduction}`,
      number
    >),
  }
}

function reduce(values: readonly (number | bigint)[]): Record<Reduction, number> {
  const m = momentsOf(values)
  if (m.n === m.count) {
    const n: Exact = { whole: BigInt(m.n), exponent: 0 }
    const n2: Exact = { whole: BigInt(m.n) ** 2n, exponent: 0 }
    const product = toNumber(m.product)
    return {
      min: Number(m.min),
      max: Number(m.max),
      mean: ratio(m.sum, n),
      std: root(m.nM2, n2),
      variance: ratio(m.nM2, n2),
      sum: toNumber(m.sum),
      prod: m.isProductNegative ? -Math.abs(product) : product,
      l1: toNumber(m.sumAbs),
      l2: root(m.sumSquares, { whole: 1n, exponent: 0 }),
    }
  }
  // NaN and infinities decide alone: plain arithmetic on them gives numpy's answers
  const signs = values.map(x => (hasValue(x) ? Math.sign(Number(x)) : Number(x)))
  const sum = signs.reduce((a, b) => a + b)
  return {
    min: m.nans ? NaN : Number(m.min),
    max: m.nans ? NaN : Number(m.max),
    mean: sum,
    std: NaN,
    variance: NaN,
    sum,
    prod: signs.reduce((a, b) => a * b),
    l1: m.nans ? NaN : Infinity,
    l2: m.nans ? NaN : Infinity,
  }
}

/** √(a / b), also where a / b is out of range. */
function root(a: Exact, b: Exact): number {
  if (a.whole === 0n) return 0
  const even = 2 * Math.floor((a.exponent + bitLength(a.whole)) / 2)
  const reduced = ratio({ whole: a.whole, exponent: a.exponent - even }, b)
  const half = Math.trunc(even / 4)
  return Math.sqrt(reduced) * 2 ** half * 2 ** (even / 2 - half)
}

/** Real types by TensorFlow's numbers: bytes of an element and how to read one. Complex types are pairs of `part`s. */
export const REAL: Readonly<
  Record<string, readonly [number, number, (view: DataView, at: number) => number | bigint]>
> = {
  float32: [1, 4, (view, at) => view.getFloat32(at, true)],
  float64: [2, 8, (view, at) => view.getFloat64(at, true)],
  int32: [3, 4, (view, at) => view.getInt32(at, true)],
  uint8: [4, 1, (view, at) => view.getUint8(at)],
  int16: [5, 2, (view, at) => view.getInt16(at, true)],
  int8: [6, 1, (view, at) => view.getInt8(at)],
  int64: [9, 8, (view, at) => view.getBigInt64(at, true)],
  bool: [10, 1, (view, at) => Number(view.getUint8(at) !== 0)],
  bfloat16: [14, 2, (view, at) => decodeBfloat16(view.getUint16(at, true))],
  uint16: [17, 2, (view, at) => view.getUint16(at, true)],
  float16: [19, 2, (view, at) => decodeFloat16(view.getUint16(at, true))],
  uint32: [22, 4, (view, at) => view.getUint32(at, true)],
  uint64: [23, 8, (view, at) => view.getBigUint64(at, true)],
}
export const COMPLEX = { complex64: [8, 'float32'], complex128: [18, 'float64'] } as const

/** The elements that lie in some bytes; of a complex type its parts in turn. */
export function elementsOf(dtype: string, bytes: Uint8Array): (number | bigint)[] {
  const [, size, read] = REAL[dtype in COMPLEX ? COMPLEX[dtype as keyof typeof COMPLEX][1] : dtype]!
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return Array.from({ length: bytes.length / size }, (_, i) => read(view, i * size))
}

export function decodeFloat16(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1
  const exponent = (bits >> 10) & 31
  const fraction = bits & 1023
  if (exponent === 31) return fraction ? NaN : sign * Infinity
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25))
}

export function decodeBfloat16(bits: number): number {
  scratch.setUint32(0, bits << 16)
  return scratch.getFloat32(0)
}
