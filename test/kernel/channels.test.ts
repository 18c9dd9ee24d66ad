import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { channelsOf, isSumOf } from '../oracle/measures.js'
import { loadCore } from '../support/core.js'
import { DTYPES, dtypeNumber, type Elements, elements, of, place, valuesOf } from '../support/elements.js'

const core = loadCore()
core.exports.arenaReset()
const DATA = core.exports.arenaReserve(16 * 4200) >>> 0
const SUMS = core.exports.arenaReserve(8 * 1200) >>> 0

/** Adds to sums that are `before`, and looks that what lies behind them stays. */
function sums(data: Elements, shape: readonly [number, number, number], before = 0): number[] {
  const [outer, channels, inner] = shape
  const doubles = new Float64Array(core.memory.buffer, SUMS, channels + 1).fill(before)
  doubles[channels] = 42
  core.exports.sumChannels(dtypeNumber(data.dtype), place(core, data, DATA), outer, channels, inner, SUMS)
  expect(doubles[channels]).toBe(42)
  return [...doubles.subarray(0, channels)]
}

function expectOracle(data: Elements, shape: readonly [number, number, number], before = 0): void {
  const got = sums(data, shape, before)
  const want = channelsOf(valuesOf(data), shape[1], shape[2])
  got.forEach((sum, i) => {
    expect(isSumOf(sum, [before, ...want[i]!]), `${sum} of ${before} and ${want[i]}`).toBe(true)
  })
}

describe('sumChannels', () => {
  test('tells channels apart', () => {
    const data = of('float32', [1, 2, 3, 4, 5, 6, 7, 8])
    expect(sums(data, [2, 2, 2])).toEqual([1 + 2 + 5 + 6, 3 + 4 + 7 + 8])
    expect(sums(data, [4, 2, 1])).toEqual([16, 20])
    expect(sums(data, [1, 8, 1])).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
    expect(sums(data, [1, 1, 8], 0.5)).toEqual([36.5])
    expect(sums(data, [8, 1, 1])).toEqual([36])
  })

  test('keeps NaN and infinities to their channel', () => {
    const data = of('float64', [NaN, 1, Infinity, -Infinity, Infinity, 1])
    expect(sums(data, [2, 3, 1])).toEqual([NaN, Infinity, Infinity])
    expect(sums(data, [1, 3, 2])).toEqual([NaN, NaN, Infinity])
  })

  test('takes the real parts of complex numbers', () => {
    expect(sums(of('complex64', [1, 10, 2, 20, 3, NaN, 4, 40]), [1, 2, 2])).toEqual([3, 7])
  })

  test('of no elements, strings and unknown types adds nothing', () => {
    for (const shape of [
      [0, 2, 3],
      [2, 2, 0],
      [2, 0, 2],
    ] as const) {
      expect(sums(of('float32', []), shape, 5)).toEqual(Array(shape[1]).fill(5))
    }
    const before = Buffer.from(core.memory.buffer, SUMS, 32).toString('hex')
    for (const dtype of [7, 99]) for (const inner of [1, 3]) core.exports.sumChannels(dtype, DATA, 2, 2, inner, SUMS)
    expect(Buffer.from(core.memory.buffer, SUMS, 32).toString('hex')).toBe(before)
  })

  test.each(DTYPES)('of %s, at any address', dtype => {
    const shapes = fc.tuple(fc.nat(4), fc.nat(5), fc.oneof(fc.constant(1), fc.nat(70)))
    const cases = shapes.chain(shape => fc.tuple(fc.constant(shape), elements(dtype, shape[0] * shape[1] * shape[2])))
    fc.assert(
      fc.property(cases, fc.constantFrom(0, 1.5), ([shape, data], before) => expectOracle(data, shape, before)),
      { numRuns: 200 },
    )
  })

  test.each(DTYPES)('of %s goes over the ends of blocks', dtype => {
    for (const shape of [
      [2, 1, 1025],
      [1, 3, 1024],
      [2, 5, 205],
      [700, 3, 1],
      [2051, 1, 1],
      [4, 512, 1],
      [2, 513, 1],
      [2, 1030, 1],
      [300, 2, 3],
    ] as const) {
      const count = shape[0] * shape[1] * shape[2]
      for (const data of fc.sample(elements(dtype, count), { numRuns: 2, seed: count })) expectOracle(data, shape)
    }
  })
})
