/** Reductions along an axis: each of their numbers beside what `reduce` says of that line alone. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTrial, type Tensor } from '#dist/index.js'
import {
  type AxisReductionName,
  along,
  type DType,
  REDUCTIONS,
  ReductionUndefined,
  reduce,
  type StridedArray,
  UsageError,
} from '#dist/kernels.js'
import { TrialWriter } from '../../fixtures/event-writer.js'
import { uniform } from '../../fixtures/random.js'
import { DTYPES, elements, isComplex, sizeOf } from '../support/elements.js'

const NAMES = REDUCTIONS.filter(name => !name.endsWith('prod')) as AxisReductionName[]
const product = (sizes: readonly number[]) => sizes.reduce((total, size) => total * size, 1)

interface Shaped {
  readonly dtype: DType
  readonly shape: readonly number[]
  readonly bytes: Uint8Array
}

/** What `reduce` says of each line, as the numbers of a value. */
function lineByLine({ dtype, shape, bytes }: Shaped, name: AxisReductionName, axis: number): number[] {
  const count = shape[axis]!
  const inner = product(shape.slice(axis + 1))
  return Array.from({ length: product(shape.slice(0, axis)) * inner }, (_, i) => {
    const offset = Math.floor(i / inner) * count * inner + (i % inner)
    const line: StridedArray = { data: bytes, dtype, shape: [count], stride: [inner], offset: count === 0 ? 0 : offset }
    const result = reduce(line, name)
    return typeof result === 'number' ? result : [result.re, result.im]
  }).flat()
}

/** Both are right to 15 digits, but don't add in the same order. */
function isClose(a: number, b: number): boolean {
  return a === b || (Number.isNaN(a) && Number.isNaN(b)) || Math.abs(a - b) <= 2e-12 * Math.abs(b)
}

function expectLines(input: Shaped, name: AxisReductionName, axis: number): void {
  const { dtype, shape, bytes } = input
  const value = along({ data: bytes, dtype, shape }, name, axis)
  const isSum = name === 'mean' || name === 'sum'
  expect(value.dtype).toBe(isComplex(dtype) && isSum ? 'complex128' : 'float64')
  expect(value.shape).toEqual(shape.filter((_, i) => i !== (axis < 0 ? axis + shape.length : axis)))
  const expected = lineByLine(input, name, axis < 0 ? axis + shape.length : axis)
  expect(value.data.length).toBe(expected.length)
  expected.forEach((number, i) => {
    const got = value.data[i]!
    if (!isClose(got, number)) expect([name, axis, i, got]).toEqual([name, axis, i, number])
  })
}

/** Elements between -0.5 and 0.5, or whole numbers. */
function filled(dtype: DType, shape: readonly number[], seed = 1): Shaped {
  const random = uniform(seed)
  const bytes = new Uint8Array(product(shape) * sizeOf(dtype))
  const numbers = dtype === 'float32' || dtype === 'complex64' ? new Float32Array(bytes.buffer) : null
  const doubles = dtype === 'float64' || dtype === 'complex128' ? new Float64Array(bytes.buffer) : null
  const floats = numbers ?? doubles
  if (floats) for (let i = 0; i < floats.length; i++) floats[i] = random() - 0.5
  else if (dtype === 'float16' || dtype === 'bfloat16') {
    // Exponents around 0.
    for (let i = 0; i < bytes.length; i += 2)
      bytes.set([random() * 256, (dtype === 'float16' ? 0x3c : 0x3f) | ((random() * 2) << 7)], i)
  } else for (let i = 0; i < bytes.length; i++) bytes[i] = random() * 256
  return { dtype, shape, bytes }
}

describe('along', () => {
  it.each(DTYPES)('reduces the lines of %s as reduce does each', dtype => {
    const names = NAMES.filter(name => !isComplex(dtype) || !/^(min|max)$/.test(name))
    for (const shape of [[5], [3, 4], [2, 3, 5], [4, 1, 3], [130, 2], [1, 300], [2, 3, 2, 3]]) {
      const input = filled(dtype, shape, shape.length)
      for (const axis of [...shape.keys(), -1]) for (const name of names) expectLines(input, name, axis)
    }
  })

  it.each([
    // More lines than are taken at once; lines of several pieces; pieces that end within lines; many short lines.
    ['float32', [3, 5000], 0],
    ['float64', [4, 2500, 3], 1],
    ['float32', [2, 9001], 1],
    ['int16', [17, 2049], 0],
    ['float64', [1, 20_001], 1],
    ['complex64', [2, 9, 2100], 1],
    ['complex128', [5000, 2], 1],
    ['uint8', [4097, 2, 3], 1],
    ['bfloat16', [8193], 0],
  ] as const)('of %s %j along axis %i, in pieces', (dtype, shape, axis) => {
    const input = filled(dtype, shape, 7)
    for (const name of ['mean', 'variance', 'abs_max', 'l2'] as const) expectLines(input, name, axis)
    if (!isComplex(dtype)) for (const name of ['min', 'max'] as const) expectLines(input, name, axis)
  })

  it('knows NaN, infinities and zeros of either sign', () => {
    const numbers = [NaN, 1, 2, Infinity, 1, -Infinity, Infinity, -Infinity, 0, -0, 0, -0, -1, -2, -Infinity]
    const input = { dtype: 'float64' as const, shape: [5, 3], bytes: new Uint8Array(new Float64Array(numbers).buffer) }
    for (const axis of [0, 1]) for (const name of NAMES) expectLines(input, name, axis)
  })

  it.each([Float32Array, Float64Array])(
    'takes extremes of %o as Math.min and Math.max do, with NaN; of zeros the one without a sign',
    floats => {
      const random = uniform(11)
      // Ordinary numbers; zeros of either sign alone, and beside others; infinities of either sign; NaN.
      const kinds = [
        [1, -1, 0.5],
        [0, -0],
        [0, -0, 3],
        [0, -0, -3],
        [0, 2],
        [Infinity, -Infinity, 1],
        [NaN, 1],
        [-NaN, 0, -0],
      ]
      for (const [rows, columns] of [
        [37, 35],
        [3, 16],
        [64, 5],
        [2, 200],
      ] as const) {
        for (const kind of kinds) {
          const data = floats.from(
            Array.from({ length: rows * columns }, () => kind[Math.floor(random() * kind.length)]!),
          )
          const array = { data, shape: [rows, columns] }
          const lines = [
            Array.from({ length: columns }, (_, k) => [...data.filter((_, i) => i % columns === k)]),
            Array.from({ length: rows }, (_, k) => [...data.subarray(k * columns, (k + 1) * columns)]),
          ]
          for (const axis of [0, 1]) {
            expect([...along(array, 'min', axis).data]).toEqual(lines[axis]!.map(line => Math.min(...line) + 0))
            expect([...along(array, 'max', axis).data]).toEqual(lines[axis]!.map(line => Math.max(...line) + 0))
            expect([...along(array, 'abs_min', axis).data]).toEqual(
              lines[axis]!.map(line => Math.min(...line.map(Math.abs))),
            )
            expect([...along(array, 'abs_max', axis).data]).toEqual(
              lines[axis]!.map(line => Math.max(...line.map(Math.abs))),
            )
          }
        }
      }
    },
  )

  it('of any bits is reduce of each line, but for float64 whose sums or squares are near the end of their range', () => {
    fc.assert(
      fc.property(
        fc
          .constantFrom(...DTYPES.filter(dtype => !/64|128/.test(dtype) || dtype === 'int64'))
          .chain(dtype => fc.tuple(elements(dtype, 24), fc.constantFrom([24], [2, 12], [3, 8], [2, 3, 4], [4, 6, 1]))),
        fc.nat(2),
        ([{ dtype, bytes }, shape], at) => {
          for (const name of ['min', 'abs_max', 'abs_sum', 'abs_mean'] as const) {
            const input = { dtype: dtype as DType, shape, bytes: bytes.slice() }
            expectLines(input, name, at % shape.length)
          }
        },
      ),
      { numRuns: 200 },
    )
  })

  it('keeps what rounding takes from sums of float64', () => {
    const column = [1e16, 1, -1e16, 1, 1e-8]
    const two = Float64Array.from(column.flatMap(x => [x, -x]))
    expect([...along({ data: two, shape: [5, 2] }, 'sum', 0).data]).toEqual([2 + 1e-8, -2 - 1e-8])
    const many = Float64Array.from({ length: 1000 }, (_, i) => column[i % 5]!)
    expect(along(many, 'sum', 0).data[0]).toBeCloseTo(400 + 2e-6, 12)
    // A mean that is a number itself leaves no variance.
    const same = new Float64Array(3000).fill(0.1)
    expect([...along({ data: same, shape: [1000, 3] }, 'variance', 0).data]).toEqual([0, 0, 0])
    expect([...along({ data: same, shape: [1000, 3] }, 'mean', 0).data]).toEqual([0.1, 0.1, 0.1])
  })

  it('of no elements is 0 for sums, and NaN', () => {
    const none = { data: new Float32Array(0), shape: [2, 0, 3] }
    expect([...along(none, 'sum', 1).data]).toEqual([0, 0, 0, 0, 0, 0])
    expect([...along(none, 'max', 1).data]).toEqual(Array(6).fill(NaN))
    expect(along(none, 'mean', 0)).toMatchObject({ dtype: 'float64', shape: [0, 3], data: new Float64Array(0) })
    const far = { data: new Float32Array(0), shape: [2 ** 40, 0] }
    expect(() => along(far, 'sum', 1)).toThrow(
      /^along: expected at most 268435456 results, got 1099511627776, of the shape/,
    )
  })

  it('is NaN where a part of a complex element is, though the other is infinite', () => {
    const data = Float64Array.of(Number.NEGATIVE_INFINITY, NaN, 3, 4)
    for (const dtype of ['complex64', 'complex128'] as const) {
      const array = { data: dtype === 'complex64' ? Float32Array.from(data) : data, dtype, shape: [1, 2] }
      for (const name of ['abs_min', 'abs_max', 'abs_sum', 'abs_mean', 'l1', 'l2'] as const) {
        expect([along(array, name, 0).data[0], along(array, name, 1).data[0]], name).toEqual([NaN, NaN])
        expect(along(array, name, 0).data[1], name).toBe(5)
        expect(reduce(array, name), name).toBe(NaN)
      }
    }
  })

  it('takes views with strides, and values', () => {
    const data = Float32Array.from({ length: 12 }, (_, i) => i)
    // The transpose of [3, 4].
    const transposed = { data, shape: [4, 3], stride: [1, 4] }
    expect([...along(transposed, 'sum', 0).data]).toEqual([6, 22, 38])
    expect([...along(along({ data, shape: [3, 2, 2] }, 'sum', 1), 'max', -1).data]).toEqual([4, 12, 20])
  })

  it('refuses what is not there', () => {
    const matrix = { data: new Float32Array(6), shape: [2, 3] }
    expect(() => along(matrix, 'sum', 2)).toThrow('along: expected an axis from -2 to 1 of the shape [2, 3], got 2')
    expect(() => along(matrix, 'sum', 0.5)).toThrow(UsageError)
    expect(() => along({ data: new Float32Array(1), shape: [] }, 'sum', 0)).toThrow(
      'along: expected a tensor with axes, got one of no dimensions',
    )
    expect(() => along(matrix, 'prod' as 'sum', 0)).toThrow(/^along: expected one of min, max, mean, .*, got "prod"$/)
    const complex = { data: new Float32Array(4), dtype: 'complex64' as const }
    expect(() => along(complex, 'min', 0)).toThrow(ReductionUndefined)
    const gone = new Float32Array(4)
    structuredClone(gone, { transfer: [gone.buffer] })
    expect(() => along(gone, 'sum', 0)).toThrow('along: expected a buffer with its bytes, got a detached one')
  })
})

describe('tensor.along', () => {
  const scratch = mkdtempSync(join(tmpdir(), 'trialscan-along-'))
  const values = Float32Array.from({ length: 24 }, (_, i) => i * i)
  let tensor: (name: string) => Tensor

  beforeAll(async () => {
    const writer = new TrialWriter(scratch)
    writer.step({
      step: 3,
      tensors: [
        { name: 'a', dtype: 'float32', shape: [2, 3, 4], data: new Uint8Array(values.buffer) },
        { name: 'text', dtype: 'string', shape: [1], strings: ['x'] },
      ],
    })
    writer.end()
    const trial = await createTrial(scratch)
    tensor = name => trial.tensor(name)
  })
  afterAll(() => rmSync(scratch, { recursive: true }))

  it('reduces a saved value', async () => {
    const value = await tensor('a').along(3, 'sum', 1)
    expect(value).toMatchObject({ dtype: 'float64', shape: [2, 4] })
    expect([...value.data]).toEqual([80, 107, 140, 179, 800, 899, 1004, 1115])
    const named = await tensor('a').along(3, 'abs_mean', -1, { checkLevel: 'full' })
    expect(named.shape).toEqual([2, 3])
  })

  it('says what is wrong', async () => {
    await expect(tensor('a').along(3, 'sum', 3)).rejects.toThrow(
      'tensor.along: expected an axis from -3 to 2 of the shape [2, 3, 4], got 3',
    )
    await expect(tensor('text').along(3, 'sum', 0)).rejects.toThrow(ReductionUndefined)
    await expect(tensor('a').along(4, 'sum', 0)).rejects.toMatchObject({ code: 'StepUnavailable' })
  })
})
