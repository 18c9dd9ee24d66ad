import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { countEqual, countsInside } from '../oracle/measures.js'
import { loadCore } from '../support/core.js'
import {
  countOf,
  counts,
  DTYPES,
  dtypeNumber,
  type Elements,
  elements,
  of,
  place,
  valuesOf,
} from '../support/elements.js'

const core = loadCore()
core.exports.arenaReset()
const DATA = core.exports.arenaReserve(16 * 4200) >>> 0
const COUNTS = core.exports.arenaReserve(4 * 4200) >>> 0
const GUARD = 4_000_000_000

/** Adds to counts that begin with `before`, and looks that what lies behind them stays. */
function inside(matrix: Elements, rows: number, columns: number, lo: number, hi: number, before = 0): number[] {
  const words = new Uint32Array(core.memory.buffer, COUNTS, columns + 1)
  words.fill(before)
  words[columns] = GUARD
  core.exports.countInside(dtypeNumber(matrix.dtype), place(core, matrix, DATA), rows, columns, lo, hi, COUNTS)
  expect(words[columns]).toBe(GUARD)
  return [...words.subarray(0, columns)]
}

function equal(data: Elements, value: number): number {
  return core.exports.countEqual(dtypeNumber(data.dtype), place(core, data, DATA), countOf(data), value)
}

const bounds = fc.oneof(
  fc.constantFrom(0, -0, 1, -1, 100, 127, Infinity, -Infinity, NaN, 1e-45, 5e-324, 1e300, -1e300, 6e-8),
  fc.double(),
)

describe('countInside', () => {
  test('leaves out the bounds, NaN and infinities', () => {
    const values = [0, 1, 2, 3, NaN, Infinity, -Infinity, 1.5]
    for (const dtype of ['float32', 'float64', 'float16', 'bfloat16'] as const) {
      expect(inside(of(dtype, values), 1, 8, 0, 2)).toEqual([0, 1, 0, 0, 0, 0, 0, 1])
      expect(inside(of(dtype, values), 1, 8, -Infinity, Infinity)).toEqual([1, 1, 1, 1, 0, 0, 0, 1])
      expect(inside(of(dtype, values), 1, 8, 2, 0)).toEqual([0, 0, 0, 0, 0, 0, 0, 0])
      expect(inside(of(dtype, values), 1, 8, NaN, 2)).toEqual([0, 0, 0, 0, 0, 0, 0, 0])
    }
  })

  test('compares float32 with bounds that float32 does not have', () => {
    const neighbours = (x: number) => {
      const bits = new Uint32Array(Float32Array.of(x).buffer)[0]!
      return [...new Float32Array(Uint32Array.of(bits - 1, bits, bits + 1).buffer)]
    }
    for (const bound of [9.4999, 0.1, 1e-40, 3.3e38, 16777217, Math.fround(0.1), 1e-46]) {
      for (const sign of [1, -1]) {
        const near = neighbours(sign * bound)
        const x = of('float32', near)
        expect(inside(x, 1, 3, -Infinity, sign * bound)).toEqual(near.map(y => Number(y < sign * bound)))
        expect(inside(x, 1, 3, sign * bound, Infinity)).toEqual(
          near.map(y => Number(y > sign * bound && y !== Infinity)),
        )
      }
    }
    expect(inside(of('float32', [Infinity, 3.4e38]), 1, 2, -1e300, 1e300)).toEqual([0, 1])
  })

  test('of complex numbers, strings, unknown types and empty matrices counts nothing', () => {
    expect(inside(of('complex64', [1, 0, 1, 0]), 1, 2, 0, 2)).toEqual([0, 0])
    expect(inside(of('int8', []), 0, 3, 0, 2, 7)).toEqual([7, 7, 7])
    expect(inside(of('int8', []), 3, 0, 0, 2)).toEqual([])
    core.exports.countInside(7, DATA, 2, 2, 0, 1, COUNTS)
    core.exports.countInside(99, DATA, 2, 2, 0, 1, COUNTS)
  })

  test.each(DTYPES)('of %s counts each column', dtype => {
    const matrices = fc.record({ rows: fc.integer({ min: 0, max: 6 }), columns: counts })
    const cases = matrices.chain(({ rows, columns }) =>
      fc.tuple(fc.constant(rows), fc.constant(columns), elements(dtype, rows * columns)),
    )
    fc.assert(
      fc.property(cases, bounds, bounds, fc.nat(9), ([rows, columns, matrix], lo, hi, before) => {
        const want = countsInside(valuesOf(matrix), columns, lo, hi)
        expect(inside(matrix, rows, columns, lo, hi, before)).toEqual(want.map(count => count + before))
      }),
      { numRuns: 300 },
    )
  })

  test.each(DTYPES)('of %s goes over the ends of blocks', dtype => {
    for (const [rows, columns] of [
      [1, 2051],
      [3, 1025],
      [2, 1024],
      [60, 35],
      [1500, 1],
    ] as const) {
      for (const matrix of fc.sample(elements(dtype, rows * columns), { numRuns: 2, seed: columns })) {
        expect(inside(matrix, rows, columns, 0.5, 101)).toEqual(countsInside(valuesOf(matrix), columns, 0.5, 101))
      }
    }
  })
})

test('countBelow takes counts as unsigned, the limit as float64', () => {
  const below = (counts: readonly number[], limit: number): number => {
    new Uint32Array(core.memory.buffer, COUNTS, counts.length).set(counts)
    return core.exports.countBelow(COUNTS, counts.length, limit)
  }
  expect(below([0, 1, 2, 3, 0xffffffff], 2)).toBe(2)
  expect(below([0, 1, 2, 3, 0xffffffff], 2.5)).toBe(3)
  expect(below([0, 1, 2, 3, 0xffffffff], Infinity)).toBe(5)
  expect(below([0, 1], NaN)).toBe(0)
  expect(below([0, 1], -1)).toBe(0)
  expect(below([], 1)).toBe(0)
})

describe('countEqual', () => {
  test('finds zeros of either sign, infinities, and no NaN', () => {
    for (const dtype of ['float32', 'float64', 'float16', 'bfloat16'] as const) {
      const data = of(dtype, [0, -0, NaN, Infinity, -Infinity, 1, 1])
      expect([0, -0, NaN, Infinity, 1, 2].map(value => equal(data, value))).toEqual([2, 2, 0, 1, 2, 0])
    }
  })

  test('compares float32 as float64', () => {
    expect(equal(of('float32', [0.1]), 0.1)).toBe(0)
    expect(equal(of('float32', [0.1]), Math.fround(0.1))).toBe(1)
  })

  test('wants no imaginary part', () => {
    expect(equal(of('complex128', [1, 0, 1, 1, 1, NaN, 1, -0, 0, 1]), 1)).toBe(2)
    expect(core.exports.countEqual(7, DATA, 5, 0)).toBe(0)
    expect(core.exports.countEqual(99, DATA, 5, 0)).toBe(0)
  })

  test.each(DTYPES)('of %s, at any address', dtype => {
    const many = fc.oneof(
      { weight: 20, arbitrary: counts },
      { weight: 1, arbitrary: fc.constantFrom(1023, 1025, 2051) },
    )
    const cases = many.chain(count => elements(dtype, count))
    fc.assert(
      fc.property(cases, bounds, fc.nat(), (data, other, i) => {
        const values = valuesOf(data)
        const there = values[i % values.length]
        const one = there === undefined ? 0 : typeof there === 'object' ? there[0] : Number(there)
        for (const value of [one, other, 0]) expect(equal(data, value)).toBe(countEqual(values, value))
      }),
      { numRuns: 200 },
    )
  })
})
