/** Floats of eight and four bits in the kernels: arrays, strides and slices of them are what the numbers that they stand for are. */

import { describe, expect, it } from 'vitest'
import {
  type ArrayInput,
  allclose,
  allocate,
  along,
  difference,
  distribution,
  histogram,
  moments,
  percentiles,
  reduce,
  UsageError,
} from '#dist/kernels.js'
import { bitsOf, decodeAll, SMALL_FLOATS, type SmallFloat } from '../oracle/small-floats.js'

const bytesFor = (dtype: SmallFloat, count: number): number => Math.ceil((count * bitsOf(dtype)) / 8)

/** Finite elements: no byte is that of a NaN or an infinity of any type. */
function elementsOf(dtype: SmallFloat, count: number, from = 0): { bytes: Uint8Array; numbers: Float32Array } {
  const bytes = Uint8Array.from({ length: bytesFor(dtype, count) }, (_, i) => (((i + from) * 37) % 0x78) + 4)
  return { bytes, numbers: decodeAll(dtype, bytes, count) }
}

const NAMES = ['min', 'max', 'mean', 'std', 'l2', 'prod', 'zero_count'] as const

/** What all kernels say of an array. */
const answers = (array: ArrayInput) => [
  NAMES.map(name => reduce(array, name)),
  percentiles(array, [0, 12.5, 50, 99, 100]),
  histogram(array, 7),
  [0, 0.3, 0.5, 0.9, 1].map(q => distribution(array).quantile(q)),
  moments(array, ['sum']).reduction('sum'),
]

describe.each(SMALL_FLOATS)('%s', dtype => {
  it.each([1, 2, 31, 4097])('is reduced and counted as float32, %i of them', count => {
    const { bytes, numbers } = elementsOf(dtype, count)
    expect(answers({ data: bytes, dtype, shape: [count] })).toEqual(answers(numbers))
  })

  it('is had from a place and in strides', () => {
    const [rows, columns] = [9, 7]
    const { bytes, numbers } = elementsOf(dtype, rows * columns)
    for (const view of [
      { shape: [rows, columns], stride: [columns, 1], offset: 0 },
      { shape: [columns, rows], stride: [1, columns], offset: 0 },
      { shape: [4, 3], stride: [2 * columns, -2], offset: 5 },
      { shape: [5], stride: [1], offset: 3 },
      { shape: [2, 2, 2], stride: [21, 9, 1], offset: 1 },
      { shape: [3, 3], stride: [0, 2], offset: 8 },
    ]) {
      const wanted = answers({ data: numbers, ...view })
      expect(answers({ data: bytes, dtype, ...view })).toEqual(wanted)
      for (const axis of view.shape.keys()) {
        const lines = along({ data: numbers, ...view }, 'sum', axis)
        expect(along({ data: bytes, dtype, ...view }, 'sum', axis)).toEqual(lines)
      }
    }
    const later = { data: bytes, dtype, offset: 3, shape: [rows * columns - 3] }
    expect(answers(later)).toEqual(answers(numbers.subarray(3)))
  })

  it('is reduced along an axis of many lines', () => {
    const shape = [3, 5, 2051]
    const { bytes, numbers } = elementsOf(dtype, 3 * 5 * 2051)
    for (const axis of [0, 1, 2]) {
      for (const name of ['mean', 'abs_max', 'std'] as const) {
        const got = along({ data: bytes, dtype, shape }, name, axis)
        const wanted = along({ data: Float64Array.from(numbers), shape }, name, axis)
        expect(got.shape).toEqual(wanted.shape)
        expect(got.data.findIndex((x, i) => x !== wanted.data[i])).toBe(-1)
      }
    }
  })

  it('is compared', () => {
    const count = 5001
    const [a, b] = [elementsOf(dtype, count), elementsOf(dtype, count, 1)]
    const left: ArrayInput = { data: a.bytes, dtype, shape: [count] }
    const right: ArrayInput = { data: b.bytes, dtype, shape: [count] }
    const { maxUlps, ...rest } = difference(left, right)
    const wanted = difference(a.numbers, b.numbers)
    expect(rest).toEqual({ ...(({ maxUlps: _, ...others }) => others)(wanted), cosineSimilarity: expect.any(Number) })
    expect(rest.cosineSimilarity).toBeCloseTo(wanted.cosineSimilarity, 12)
    expect(maxUlps).toBeGreaterThan(0)
    expect(difference(left, left)).toMatchObject({ unequalCount: 0, firstUnequal: undefined, maxUlps: 0 })
    expect(difference(left, a.numbers)).toMatchObject({ unequalCount: 0, maxUlps: undefined })
    expect(allclose(left, a.numbers, { rtol: 0, atol: 0 })).toBe(true)
    expect(allclose(left, right)).toBe(false)
  })

  it('has arrays of its own', () => {
    const { bytes, numbers } = elementsOf(dtype, 6)
    const array = allocate(dtype, 6)
    expect(array).toBeInstanceOf(Uint8Array)
    expect(array.length).toBe(bytes.length)
    array.set(bytes)
    expect(answers(array)).toEqual(answers(numbers))
  })
})

describe('elements of four bits', () => {
  const dtype = 'float4_e2m1fn'

  it('are all of them unless the shape says that the last half of a byte is none', () => {
    const data = Uint8Array.of(0x21, 0x73)
    expect(reduce({ data, dtype }, 'sum')).toBe(0.5 + 1 + 1.5 + 6)
    expect(reduce({ data, dtype, shape: [3] }, 'sum')).toBe(0.5 + 1 + 1.5)
    expect(reduce({ data, dtype, shape: [3], stride: [1], offset: 1 }, 'sum')).toBe(1 + 1.5 + 6)
    expect(allocate(dtype, 5).length).toBe(3)
  })

  it('do not differ in the half of a byte that holds none', () => {
    const [a, b] = [0x21, 0xf1].map(byte => ({ data: Uint8Array.of(0x11, byte), dtype, shape: [3] }) as const)
    expect(difference(a!, b!)).toMatchObject({ count: 3, unequalCount: 0 })
    expect(allclose(a!, b!)).toBe(true)
  })

  it('are as many as the shape says', () => {
    const data = new Uint8Array(4)
    for (const shape of [[6], [9], [2, 3]]) {
      expect(() => reduce({ data, dtype, shape }, 'sum')).toThrow(UsageError)
    }
  })
})
