/** Two arrays compared: against definitions written down one pair at a time. */

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type ArrayInput, allclose, type Difference, difference, UsageError } from '#dist/kernels.js'
import { type Element, isClose } from '../oracle/allclose.js'
import { countOf, counts, DTYPES, dtypes, type Elements, elements, isComplex, valuesOf } from '../support/elements.js'

const input = ({ dtype, bytes, offset }: Elements): ArrayInput => {
  const moved = new Uint8Array(bytes.length + offset)
  moved.set(bytes, offset)
  return { data: moved.subarray(offset), dtype }
}

const isNaNOf = (x: Element): boolean => (typeof x === 'object' ? x.some(Number.isNaN) : Number.isNaN(x))
const partsOf = (x: Element): [number, number] => (typeof x === 'object' ? [x[0], x[1]] : [Number(x), 0])

/** What `difference` must say of one pair. */
function pairDifference(
  a: Element,
  b: Element,
  isSameType: boolean,
): { apart: number; relative: number; isEqual: boolean } {
  const [x, xi] = partsOf(a)
  const [y, yi] = partsOf(b)
  // Of one 64-bit type they are compared as they are, else as float64.
  const isExact = isSameType && typeof a === 'bigint' && typeof b === 'bigint'
  const isEqual = isExact ? a === b : (x === y && xi === yi) || (isNaNOf(a) && isNaNOf(b))
  if (isEqual) return { apart: 0, relative: 0, isEqual }
  if (isNaNOf(a) || isNaNOf(b)) return { apart: NaN, relative: NaN, isEqual }
  const apart = isExact ? Number(a > b ? a - b : b - a) : Math.hypot(x === y ? 0 : x - y, xi === yi ? 0 : xi - yi)
  return { apart, relative: apart === Infinity ? Infinity : apart / Math.hypot(y, yi), isEqual }
}

const FORMATS: Readonly<Record<string, [size: 2 | 4 | 8, infinity: bigint]>> = {
  float16: [2, 0x7c00n],
  bfloat16: [2, 0x7f80n],
  float32: [4, 0x7f800000n],
  float64: [8, 0x7ff0000000000000n],
}

/** The place of a float in the order of all floats of its type; undefined for NaN. */
function placeOf(bytes: Uint8Array, i: number, dtype: string): bigint | undefined {
  const [size, infinity] = FORMATS[dtype]!
  const bits = Buffer.from(bytes.subarray(i * size, (i + 1) * size)).reduceRight(
    (all, byte) => (all << 8n) | BigInt(byte),
    0n,
  )
  const sign = 1n << BigInt(8 * size - 1)
  const magnitude = bits & (sign - 1n)
  if (magnitude > infinity) return undefined
  return bits & sign ? -magnitude : magnitude
}

function mostUlps(a: Elements, b: Elements): number | undefined {
  if (a.dtype !== b.dtype || !(a.dtype in FORMATS)) return undefined
  let most = 0n
  for (let i = 0; i < countOf(a); i++) {
    const [p, q] = [placeOf(a.bytes, i, a.dtype), placeOf(b.bytes, i, b.dtype)]
    if (p === undefined || q === undefined) continue
    const apart = p > q ? p - q : q - p
    if (apart > most) most = apart
  }
  return Number(most)
}

const most = (numbers: readonly number[]): number => numbers.reduce((a, b) => Math.max(a, b), 0)

function expectOracle(a: Elements, b: Elements): void {
  const got = difference(input(a), input(b))
  const [left, right] = [valuesOf(a), valuesOf(b)]
  const pairs = left.map((x, i) => pairDifference(x, right[i]!, a.dtype === b.dtype))
  const first = pairs.findIndex(({ isEqual }) => !isEqual)
  const complex = isComplex(a.dtype) || isComplex(b.dtype)
  const { maxAbsolute, maxRelative, cosineSimilarity, ...rest } = got
  expect(rest).toEqual({
    count: left.length,
    unequalCount: pairs.filter(({ isEqual }) => !isEqual).length,
    firstUnequal: first < 0 ? undefined : first,
    maxUlps: mostUlps(a, b),
  })
  const expected = [most(pairs.map(({ apart }) => apart)), most(pairs.map(({ relative }) => relative))]
  for (const [i, number] of [maxAbsolute, maxRelative].entries()) {
    const want = expected[i]!
    // hypot may differ in its last bit.
    if (complex && Number.isFinite(want)) expect(Math.abs(number - want)).toBeLessThanOrEqual(1e-15 * want + 1e-323)
    else expect(number).toBe(want)
  }
  expectCosine(cosineSimilarity, left, right)
}

function expectCosine(got: number, a: readonly Element[], b: readonly Element[]): void {
  const [x, y] = [a.flatMap(partsOf), b.flatMap(partsOf)]
  const scaled = (numbers: readonly number[]): number[] => {
    const largest = most(numbers.map(Math.abs))
    const exponent = Math.floor(Math.log2(largest))
    // In two steps, since 2^1074 is none.
    return numbers.map(number => number * 2 ** -Math.trunc(exponent / 2) * 2 ** -(exponent - Math.trunc(exponent / 2)))
  }
  const [p, q] = [scaled(x), scaled(y)]
  const dot = (u: readonly number[], v: readonly number[]): number => u.reduce((sum, n, i) => sum + n * v[i]!, 0)
  const want = dot(p, q) / Math.sqrt(dot(p, p) * dot(q, q))
  if (Number.isFinite(want)) expect(Math.abs(got - want)).toBeLessThan(1e-12)
  else expect(got).toBeNaN()
}

describe('difference', () => {
  const facts = (a: ArrayInput, b: ArrayInput): Partial<Difference> => difference(a, b)

  it('of what is equal', () => {
    const array = Float32Array.of(1, -0, NaN, Infinity, -Infinity)
    expect(facts(array, Float32Array.of(1, 0, NaN, Infinity, -Infinity))).toMatchObject({
      count: 5,
      unequalCount: 0,
      firstUnequal: undefined,
      maxAbsolute: 0,
      maxRelative: 0,
      maxUlps: 0,
    })
    expect(difference(Float64Array.of(1, 2), Float64Array.of(2, 4)).cosineSimilarity).toBeCloseTo(1, 15)
    expect(facts(new Int8Array(0), new Int8Array(0))).toMatchObject({ count: 0, maxAbsolute: 0, cosineSimilarity: NaN })
  })

  it('of neighbours, of zeros, of infinities', () => {
    expect(facts(Float32Array.of(1), Float32Array.of(1 + 2 ** -23))).toMatchObject({
      maxAbsolute: 2 ** -23,
      maxUlps: 1,
    })
    expect(facts(Float64Array.of(5e-324), Float64Array.of(-5e-324)).maxUlps).toBe(2)
    expect(facts(Float64Array.of(1), Float64Array.of(0)).maxRelative).toBe(Infinity)
    expect(facts(Float64Array.of(1), Float64Array.of(Infinity))).toMatchObject({
      maxAbsolute: Infinity,
      maxRelative: Infinity,
    })
    expect(facts(Float64Array.of(1, NaN), Float64Array.of(1, 1))).toMatchObject({
      unequalCount: 1,
      firstUnequal: 1,
      maxAbsolute: NaN,
      maxRelative: NaN,
    })
    expect(facts(Float64Array.of(Infinity), Float64Array.of(-Infinity)).maxAbsolute).toBe(Infinity)
  })

  it('is exact of 64-bit integers', () => {
    const [a, b] = [BigInt64Array.of(2n ** 63n - 1n, 2n ** 62n), BigInt64Array.of(-(2n ** 63n), 2n ** 62n + 1n)]
    expect(facts(a, b)).toMatchObject({ unequalCount: 2, firstUnequal: 0, maxAbsolute: 2 ** 64, maxUlps: undefined })
    expect(facts(BigUint64Array.of(2n ** 63n), BigUint64Array.of(2n ** 63n + 1n)).maxAbsolute).toBe(1)
  })

  it('knows the cosine of extreme numbers', () => {
    for (const size of [1e200, 1e-200, 5e-324, 1.7e308]) {
      expect(difference(Float64Array.of(size, 0), Float64Array.of(size, 0)).cosineSimilarity).toBe(1)
      expect(difference(Float64Array.of(size, 0), Float64Array.of(0, size)).cosineSimilarity).toBe(0)
      expect(difference(Float64Array.of(size), Float64Array.of(-1)).cosineSimilarity).toBe(-1)
    }
    expect(difference(new Float32Array(2), Float32Array.of(1, 2)).cosineSimilarity).toBeNaN()
    expect(difference(Float32Array.of(Infinity), Float32Array.of(1)).cosineSimilarity).toBeNaN()
  })

  it.each(DTYPES)('of %s and any type', dtype => {
    const sides = fc
      .tuple(fc.oneof(fc.constant(dtype), dtypes), counts)
      .chain(([other, count]) => fc.tuple(elements(dtype, count), elements(other, count)))
    fc.assert(
      fc.property(sides, ([a, b]) => expectOracle(a, b)),
      { numRuns: 300 },
    )
  })

  it.each(DTYPES)('of many %s, which differ in one place', dtype => {
    for (const count of [1023, 1025, 4097, 8192 + 3, 40_000]) {
      const [a] = fc.sample(elements(dtype, count), { numRuns: 1, seed: count })
      for (const place of [0, count >> 1, count - 1]) {
        const bytes = a!.bytes.slice()
        bytes[((bytes.length / count) * place) | 0]! ^= 1
        expectOracle(a!, { ...a!, bytes })
      }
    }
  })

  it('of views', () => {
    const matrix = Float32Array.from({ length: 12 }, (_, i) => i)
    const transposed = Float32Array.of(0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11)
    const view = { data: matrix, shape: [4, 3], stride: [1, 4] }
    expect(facts(view, { data: transposed, shape: [4, 3] }).unequalCount).toBe(0)
  })
})

describe('allclose', () => {
  it('is that of numpy, for every pair of types', () => {
    const pairs = dtypes.chain(a => dtypes.chain(b => counts.chain(n => fc.tuple(elements(a, n), elements(b, n)))))
    fc.assert(
      fc.property(pairs, fc.boolean(), ([a, b], equalNan) => {
        const tolerance = { rtol: 1e-3, atol: 1e-6, equalNan }
        const single = a.dtype === 'float32' && b.dtype === 'float32'
        const right = valuesOf(b)
        const want = valuesOf(a).every((x, i) => isClose(x, right[i]!, tolerance, single))
        expect(allclose(input(a), input(b), tolerance)).toBe(want)
      }),
      { numRuns: 1000 },
    )
  })

  it('finds the last of many', () => {
    const a = new Float32Array(100_001)
    const b = a.slice()
    expect(allclose(a, b)).toBe(true)
    b[100_000] = 1
    expect(allclose(a, b)).toBe(false)
    expect(allclose(a, b, { atol: 1 })).toBe(true)
  })
})

describe('bad input', () => {
  const two = new Float32Array(2)
  it.each([
    ['shapes', () => difference(two, new Float32Array(3)), 'difference: expected arrays of one shape, got [2] and [3]'],
    [
      'ranks',
      () => allclose(two, { data: two, shape: [2, 1] }),
      'allclose: expected arrays of one shape, got [2] and [2, 1]',
    ],
    ['an option', () => allclose(two, two, { rtoll: 1 } as object), 'got "rtoll"; did you mean "rtol"?'],
    ['a tolerance', () => allclose(two, two, { atol: -1 }), 'allclose: expected atol to be a number from 0, got -1'],
    ['a flag', () => allclose(two, two, { equalNan: 1 as unknown as boolean }), 'equalNan to be true or false, got 1'],
  ])('%s', (_, call, message) => {
    expect(call).toThrow(UsageError)
    expect(call).toThrow(message)
  })
})
