import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { absDifferences, isSumOf } from '../oracle/measures.js'
import { loadCore } from '../support/core.js'
import {
  countOf,
  counts,
  DTYPES,
  dtypeNumber,
  dtypes,
  type Elements,
  elements,
  of,
  place,
  valuesOf,
} from '../support/elements.js'

const core = loadCore()
core.exports.arenaReset()
const A = core.exports.arenaReserve(16 * 2100) >>> 0
const B = core.exports.arenaReserve(16 * 2100) >>> 0

function difference(a: Elements, b: Elements): number {
  return core.exports.absDifference(
    dtypeNumber(a.dtype),
    place(core, a, A),
    dtypeNumber(b.dtype),
    place(core, b, B),
    countOf(a),
  )
}

function expectOracle(a: Elements, b: Elements): void {
  const got = difference(a, b)
  const apart = absDifferences(valuesOf(a), valuesOf(b))
  expect(isSumOf(got, apart), `${got} of ${apart}`).toBe(true)
  const squares = core.exports.squaredDifference(
    dtypeNumber(a.dtype),
    place(core, a, A),
    dtypeNumber(b.dtype),
    place(core, b, B),
    countOf(a),
  )
  const squared = apart.map(one => one * one)
  expect(isSumOf(squares, squared), `${squares} of ${squared}`).toBe(true)
}

describe('absDifference', () => {
  test('subtracts float32 as float64', () => {
    const [x, y] = [Math.fround(0.1), Math.fround(1e-9)]
    expect(difference(of('float32', [x]), of('float32', [y]))).toBe(x - y)
    expect(difference(of('float32', [3.4e38, 0]), of('float32', [-3.4e38, 0]))).toBe(2 * Math.fround(3.4e38))
  })

  test.each([
    ['NaN', [NaN, 1], [1, 1], NaN],
    ['∞ − ∞', [Infinity, 1], [Infinity, 1], NaN],
    ['∞ − −∞', [Infinity, 1], [-Infinity, 1], Infinity],
    ['−0 and 0', [-0, 0], [0, -0], 0],
    ['nothing', [], [], 0],
  ])('of %s', (_, a, b, want) => {
    for (const dtype of ['float32', 'float64', 'float16', 'bfloat16'] as const) {
      expect(difference(of(dtype, a), of(dtype, b))).toBe(want)
    }
  })

  test('of complex numbers is their distance', () => {
    expect(difference(of('complex64', [3, 4, 0, 1]), of('complex128', [0, 0, 0, 2]))).toBe(6)
    expect(difference(of('complex128', [3, 4, 5, 12]), of('int8', [0, 0]))).toBe(18)
    expect(difference(of('uint8', [3, 5, 1]), of('complex64', [0, 4, 5, 0, 1, 0]))).toBe(5)
    expect(difference(of('complex128', [1e200, 1e200]), of('float32', [0]))).toBeCloseTo(Math.SQRT2 * 1e200, -190)
  })

  test('is 0 where there are no numbers', () => {
    expect(core.exports.absDifference(7, A, 1, B, 5)).toBe(0)
    expect(core.exports.absDifference(1, A, 99, B, 5)).toBe(0)
    expect(core.exports.squaredDifference(7, A, 1, B, 5)).toBe(0)
  })

  test.each(DTYPES)('of %s and any type, at any address', dtype => {
    const sides = fc
      .tuple(fc.oneof(fc.constant(dtype), dtypes), counts)
      .chain(([other, count]) => fc.tuple(elements(dtype, count), elements(other, count)))
    fc.assert(
      fc.property(sides, ([a, b]) => expectOracle(a, b)),
      { numRuns: 200 },
    )
  })

  test.each(DTYPES)('of many %s goes over the ends of blocks', dtype => {
    for (const count of [1023, 1024, 1025, 2051]) {
      const a = fc.sample(elements(dtype, count), { numRuns: 3, seed: count })
      const b = fc.sample(elements(dtype, count), { numRuns: 3, seed: count + 1 })
      for (const [i, side] of a.entries()) expectOracle(side, b[i]!)
    }
  })
})
