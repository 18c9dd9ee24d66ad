/** Reductions of arrays: the bits of a scan, whatever the array is and however it lies. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTrial, type ScanRow } from '#dist/index.js'
import {
  type ArrayInput,
  allocate,
  type DType,
  type Moments,
  mergeMoments,
  moments,
  REDUCTIONS,
  reduce,
  UsageError,
} from '#dist/kernels.js'
import { TrialWriter } from '../../fixtures/event-writer.js'
import { uniform } from '../../fixtures/random.js'
import { DTYPES, dtypeNumber, sizeOf } from '../support/elements.js'

const BLOCK = 4096
const COUNTS = [0, 1, 2, 3, 15, 16, 17, 1023, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 3 * BLOCK + 5, 20 * BLOCK + 1]
/** float32, by how a scan cuts their records: not at all, in two parts, in three. */
const LARGE = [4_194_000, 4_194_304, 4_200_000, 8_388_608]

// When garbage is collected is V8's affair, so it is asked to: what is kept does not depend on how busy the machine is.
setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

const scratch = mkdtempSync(join(tmpdir(), 'trialscan-kernels-'))
const tensors = [
  ...DTYPES.flatMap(dtype => COUNTS.map(count => ({ dtype, count }))),
  ...LARGE.map(count => ({ dtype: 'float32' as const, count })),
].map(tensor => ({ ...tensor, name: `${tensor.dtype}/${tensor.count}`, content: bytesOf(tensor.dtype, tensor.count) }))

/** Any bits; in floats now and then numbers that can be summed, since others are mostly huge. */
function bytesOf(dtype: DType, count: number): Uint8Array<ArrayBuffer> {
  const random = uniform(count + dtypeNumber(dtype))
  const bytes = new Uint8Array(count * sizeOf(dtype))
  if (dtype === 'float32' || dtype === 'complex64') {
    const numbers = new Float32Array(bytes.buffer)
    for (let i = 0; i < numbers.length; i++) numbers[i] = random() - 0.5
  } else if ((dtype === 'float64' || dtype === 'complex128') && count % 2 === 0) {
    const numbers = new Float64Array(bytes.buffer)
    for (let i = 0; i < numbers.length; i++) numbers[i] = random() - 0.5
  } else for (let i = 0; i < bytes.length; i++) bytes[i] = random() * 256
  return bytes
}

const bitsOf = ({ row }: Moments): string => Buffer.from(row.buffer, row.byteOffset, row.byteLength).toString('hex')

const scanned = new Map<string, string>()

beforeAll(async () => {
  const writer = new TrialWriter(join(scratch, 'trial'))
  writer.step({
    step: 0,
    tensors: tensors.map(({ dtype, count, name, content }) => ({ name, dtype, shape: [count], data: content })),
  })
  writer.end()
  const trial = await createTrial(join(scratch, 'trial'))
  for await (const row of trial.scan({ threads: 0 }) as AsyncIterable<ScanRow>) {
    if (row.error || row.saved) throw new Error(`no moments: ${JSON.stringify(row)}`)
    scanned.set(row.tensor, bitsOf(row.moments))
  }
  await trial.close()
})

afterAll(() => rmSync(scratch, { recursive: true, force: true }))

describe('the bits of a scan', () => {
  it.each(tensors.map(tensor => [tensor.name, tensor] as const))('%s', (name, { dtype, count, content }) => {
    const expected = scanned.get(name)
    expect(bitsOf(moments({ data: content, dtype }))).toBe(expected)
    const allocated = allocate(dtype as 'float32', count)
    new Uint8Array(allocated.buffer, allocated.byteOffset, allocated.byteLength).set(content)
    expect(bitsOf(moments(allocated))).toBe(expected)
    const shared = new Uint8Array(new SharedArrayBuffer(content.length))
    shared.set(content)
    expect(bitsOf(moments({ data: shared, dtype }))).toBe(expected)
    const unaligned = new Uint8Array(content.length + 3)
    unaligned.set(content, 3)
    expect(bitsOf(moments({ data: new DataView(unaligned.buffer, 3), dtype }))).toBe(expected)
  })

  it('are those of every way to lay out the same elements', () => {
    for (const { dtype, count, content, name } of tensors.filter(({ count }) => count > 0 && count < 4 * BLOCK)) {
      const size = sizeOf(dtype)
      // Every third element of a larger array, from the second on; then the same backwards.
      const apart = new Uint8Array((3 * count + 1) * size)
      const backwards = new Uint8Array(count * size)
      for (let i = 0; i < count; i++) {
        const element = content.subarray(i * size, (i + 1) * size)
        apart.set(element, (3 * i + 1) * size)
        backwards.set(element, (count - 1 - i) * size)
      }
      const views: ArrayInput[] = [
        { data: apart, dtype, shape: [count], stride: [3], offset: 1 },
        { data: backwards, dtype, shape: [count], stride: [-1], offset: count - 1 },
        { data: content, dtype, shape: [1, count, 1], stride: [7, 1, 0] },
      ]
      for (const view of views) expect([name, bitsOf(moments(view))]).toEqual([name, scanned.get(name)])
    }
  })

  it('are those of a transposed matrix, of a part of one, and of one row again and again', () => {
    const [rows, columns] = [67, 130]
    const matrix = Float64Array.from({ length: rows * columns }, (_, i) => Math.sin(i) * 2 ** (i % 40))
    const dense = (shape: readonly [number, number], at: (i: number, j: number) => number) =>
      Float64Array.from({ length: shape[0] * shape[1] }, (_, k) => matrix[at(Math.floor(k / shape[1]), k % shape[1])]!)
    const expected = (...args: Parameters<typeof dense>) => bitsOf(moments(dense(...args)))
    expect(bitsOf(moments({ data: matrix, shape: [columns, rows], stride: [1, columns] }))).toBe(
      expected([columns, rows], (i, j) => j * columns + i),
    )
    expect(bitsOf(moments({ data: matrix, shape: [60, 100], stride: [columns, 1], offset: 135 }))).toBe(
      expected([60, 100], (i, j) => 135 + i * columns + j),
    )
    expect(bitsOf(moments({ data: matrix, shape: [100, columns], stride: [0, 1] }))).toBe(
      expected([100, columns], (_, j) => j),
    )
  })
})

describe('moments', () => {
  it('knows all reductions and counts', () => {
    const of = moments(Float32Array.of(1, 2, 0, NaN, Infinity, -Infinity))
    expect([of.count, of.nanCount, of.infinityCount, of.zeroCount]).toEqual([6, 1, 2, 1])
    expect([of.slot('positiveInfinityCount'), of.slot('negativeInfinityCount')]).toEqual([1, 1])
    const finite = moments([Float32Array.of(3, -4)][0]!)
    expect(Object.fromEntries(REDUCTIONS.map(name => [name, finite.reduction(name)]))).toEqual({
      min: -4,
      max: 3,
      mean: -0.5,
      std: 3.5,
      variance: 12.25,
      sum: -1,
      prod: -12,
      l1: 7,
      l2: 5,
      abs_min: 3,
      abs_max: 4,
      abs_mean: 3.5,
      abs_std: 0.5,
      abs_variance: 0.25,
      abs_sum: 7,
      abs_prod: 12,
      abs_l1: 7,
      abs_l2: 5,
    })
  })

  it('computes no more than is asked for, with the same bits', () => {
    const array = Float32Array.from({ length: 3 * BLOCK + 5 }, (_, i) => Math.cos(i))
    const [all, mean] = [moments(array), moments(array, ['mean'])]
    expect(mean.reduction('mean')).toBe(all.reduction('mean'))
    expect(mean.knows('l2')).toBe(false)
    expect(() => mean.reduction('l2')).toThrow(/expected moments computed with l2/)
    for (const name of REDUCTIONS) expect([name, reduce(array, name)]).toEqual([name, all.reduction(name)])
  })

  it('takes the dtype of each kind of array', () => {
    const kinds: [ArrayInput, DType][] = [
      [new Float32Array(1), 'float32'],
      [new Float64Array(1), 'float64'],
      [new Int8Array(1), 'int8'],
      [new Int16Array(1), 'int16'],
      [new Int32Array(1), 'int32'],
      [new BigInt64Array(1), 'int64'],
      [new Uint8Array(1), 'uint8'],
      [new Uint8ClampedArray(1), 'uint8'],
      [Buffer.alloc(1), 'uint8'],
      [new Uint16Array(1), 'uint16'],
      [new Uint32Array(1), 'uint32'],
      [new BigUint64Array(1), 'uint64'],
      [{ data: new Uint16Array(1), dtype: 'float16' }, 'float16'],
      [{ data: new Uint16Array(1), dtype: 'bfloat16' }, 'bfloat16'],
      [{ data: new Float32Array(2), dtype: 'complex64' }, 'complex64'],
      [{ data: new Float64Array(2), dtype: 'complex128' }, 'complex128'],
      [{ data: new ArrayBuffer(8), dtype: 'float64' }, 'float64'],
      [{ data: new SharedArrayBuffer(1), dtype: 'bool' }, 'bool'],
    ]
    for (const [array, dtype] of kinds) {
      const of = moments(array)
      expect([of.dtype, of.count]).toEqual([dtype, 1])
    }
    const Float16 = (globalThis as { Float16Array?: { of(...numbers: number[]): ArrayBufferView } }).Float16Array
    if (Float16) expect(reduce(Float16.of(1.5, 2), 'sum')).toBe(3.5)
  })

  it('takes the values of tensors, also those that were widened', async () => {
    const trial = await createTrial(join(scratch, 'trial'))
    for (const name of ['float16/17', 'bfloat16/17', 'bool/17', 'complex64/17', 'int64/17']) {
      const value = await trial.tensor(name).value(0)
      expect(bitsOf(moments(value))).toBe(scanned.get(name))
    }
    await trial.close()
  })

  it('merges', () => {
    const array = Float64Array.from({ length: 100 }, (_, i) => i)
    const merged = mergeMoments([moments(array.subarray(0, 30)), moments(array.subarray(30))])
    expect([merged.count, merged.reduction('mean')]).toEqual([100, 49.5])
  })

  it('does not grow the memory with the array', () => {
    const array = new Float64Array(16 << 20)
    moments(new Float64Array(10))
    const before = process.memoryUsage().rss
    for (let i = 0; i < 3; i++) moments(array)
    expect(process.memoryUsage().rss - before - array.byteLength).toBeLessThan(64 << 20)
  })
})

describe('allocate', () => {
  it('gives zeros that stay where they are', () => {
    const array = allocate('float64', 1000)
    expect([array.length, array.every(number => number === 0)]).toEqual([1000, true])
    array[999] = 5
    expect(moments(array).reduction('sum')).toBe(5)
    expect(moments(array.subarray(999)).count).toBe(1)
    // Others, and work of all kinds, leave it alone.
    const other = allocate('float64', 1 << 20)
    other.fill(1)
    moments(new Float64Array(1 << 20))
    expect([array.length, array[999], reduce(array, 'sum'), reduce(other, 'sum')]).toEqual([1000, 5, 5, 1 << 20])
  })

  it('knows what it was allocated for', () => {
    const complex = allocate('complex64', 2)
    expect(complex).toBeInstanceOf(Float32Array)
    complex.set([3, 4, 0, 0])
    expect([moments(complex).count, reduce(complex, 'abs_max')]).toEqual([2, 5])
    const half = allocate('float16', 1)
    half[0] = 0x3e00
    expect(reduce(half, 'sum')).toBe(1.5)
    expect(reduce(new Uint8Array(half.buffer, half.byteOffset, 2), 'sum')).toBe(0x3e)
    expect(reduce({ data: half, dtype: 'uint16' }, 'sum')).toBe(0x3e00)
  })

  it.each([15 << 20, 17 << 20])('gives the memory of arrays of %i bytes back', async byteLength => {
    const buffers: WeakRef<ArrayBufferLike>[] = []
    for (let i = 0; i < 200; i++) {
      buffers.push(new WeakRef(allocate('uint8', byteLength).buffer))
      // Until the next turn of the event loop, a WeakRef keeps what it refers to.
      await setImmediate()
    }
    const countKept = () => new Set(buffers.map(buffer => buffer.deref()).filter(buffer => buffer !== undefined)).size
    // What the stack or a compiler still refers to outlives a collection, and not several.
    for (let attempt = 0, kept = Number.POSITIVE_INFINITY; attempt < 20 && kept > 1; attempt++) {
      collectGarbage()
      kept = countKept()
      await setImmediate()
    }
    collectGarbage()
    // That of the last array is still to be filled.
    expect(countKept()).toBeLessThanOrEqual(1)
  })

  it('gives a thousand arrays that share instances, and nothing else', () => {
    const dtypes = ['float32', 'int8', 'complex128', 'bfloat16'] as const
    const arrays = Array.from({ length: 1000 }, (_, i) => allocate(dtypes[i % dtypes.length]!, (i * 7919) % 2000))
    expect(new Set(arrays.map(({ buffer }) => buffer)).size).toBe(dtypes.length)
    expect(arrays.every(array => array.every(number => number === 0))).toBe(true)
    for (const [i, array] of arrays.entries()) array.fill((i % 100) + 1)
    expect(arrays.every((array, i) => array.every(number => number === (i % 100) + 1))).toBe(true)
    for (const [i, array] of arrays.entries()) {
      const copy = { data: array.slice(), dtype: dtypes[i % dtypes.length]! }
      expect(moments(array).row).toEqual(moments(copy).row)
    }
  })

  it('makes room for what a block has no room for', () => {
    const arrays = Array.from({ length: 9 }, () => allocate('uint8', 15 << 20).fill(1))
    expect(new Set(arrays.map(({ buffer }) => buffer)).size).toBe(3)
    expect(arrays.map(array => reduce(array, 'sum'))).toEqual(arrays.map(() => 15 << 20))
    expect(allocate('uint8', 0).length).toBe(0)
  })

  it('refuses what is no size and no dtype', () => {
    for (const length of [-1, 1.5, NaN, 2 ** 60]) expect(() => allocate('int8', length)).toThrow(/^allocate: |4 GiB/)
    expect(() => allocate('float32', 2 ** 31)).toThrow(/4 GiB/)
    // @ts-expect-error: no such dtype
    expect(() => allocate('float23', 1)).toThrow('allocate: expected the dtype of numbers, got "float23"')
    // @ts-expect-error: strings have no numbers
    expect(() => allocate('string', 1)).toThrow(UsageError)
  })
})

describe('bad input', () => {
  const BEYOND = 'expected a buffer with its bytes, got a view beyond the end of its buffer'
  // The library that is compiled against does not know them.
  type Resizable = ArrayBuffer & { resize(byteLength: number): void }
  const ResizableBuffer = ArrayBuffer as unknown as new (
    length: number,
    options: { maxByteLength: number },
  ) => Resizable
  const shrunk = new ResizableBuffer(64, { maxByteLength: 64 })
  const beyond = [new Float32Array(shrunk, 32, 4), new Uint8Array(shrunk, 32, 4), new DataView(shrunk, 32, 4)]
  shrunk.resize(16)
  const detached = new Float32Array(4)
  structuredClone(detached, { transfer: [detached.buffer] })
  const buffer = new ArrayBuffer(16)
  const cases: [string, unknown, string][] = [
    ['a list', [1, 2], 'expected a typed array, or elements as { data, dtype, shape, stride, offset }, got [1, 2]'],
    ['nothing', undefined, 'got undefined'],
    ['a number', 5, 'got 5'],
    ['no data', {}, 'got Object'],
    ['other data', { data: 'x' }, 'expected a typed array, a DataView or a buffer, got "x"'],
    ['a detached buffer', detached, 'expected a buffer with its bytes, got a detached one'],
    ...beyond.map((view): [string, unknown, string] => [
      `a ${view.constructor.name} of a buffer that has shrunk`,
      view,
      BEYOND,
    ]),
    ['a detached buffer, described', { data: detached.buffer, dtype: 'int8' }, 'got a detached one'],
    ['a DataView', new DataView(buffer), 'expected a dtype beside a buffer or a DataView, got none'],
    ['a buffer', { data: buffer }, 'expected a dtype beside a buffer or a DataView, got none'],
    ['no dtype', { data: buffer, dtype: 'float23' }, 'expected the dtype of numbers, got "float23"'],
    ['a number for a dtype', { data: buffer, dtype: 1 }, 'expected the dtype of numbers, got "1"'],
    ['the name of a method', { data: buffer, dtype: 'toString' }, 'expected the dtype of numbers, got "toString"'],
    ['strings', { data: buffer, dtype: 'string' }, 'expected the dtype of numbers, got "string"'],
    [
      'another dtype',
      { data: new Int32Array(2), dtype: 'float32' },
      'in an array of them, or as bytes, got an array of int32',
    ],
    ['a wide float16', { data: new Float32Array(2), dtype: 'float16' }, 'got an array of float32'],
    [
      'half an element',
      { data: new Uint8Array(6), dtype: 'float32' },
      'expected whole elements of 4 bytes, got 6 bytes',
    ],
    ['half a number', { data: new Float32Array(3), dtype: 'complex64' }, 'expected whole elements of 8 bytes, got 12'],
    [
      'a wrong shape',
      { data: new Int8Array(6), shape: [2, 4] },
      'expected 8 elements, as the shape [2, 4] says, got 6',
    ],
    ['a wrong shape after an offset', { data: new Int8Array(6), shape: [6], offset: 1 }, 'says, got 5'],
    ['a negative shape', { data: new Int8Array(6), shape: [-6] }, 'expected a shape of whole numbers from 0, got [-6]'],
    ['a shape of text', { data: new Int8Array(6), shape: '6' }, 'expected a shape of whole numbers from 0, got "6"'],
    [
      'too large a shape',
      { data: new Int8Array(6), shape: [2 ** 30, 2 ** 30], stride: [0, 0] },
      'at most 2^53 elements',
    ],
    ['too few strides', { data: new Int8Array(6), shape: [2, 3], stride: [1] }, 'a stride for each dimension'],
    ['half a stride', { data: new Int8Array(6), shape: [2], stride: [1.5] }, 'a stride for each dimension'],
    ['a stride too far', { data: new Int8Array(6), shape: [2, 3], stride: [4, 1] }, 'which reach from 0 to 6'],
    [
      'a stride before the start',
      { data: new Int8Array(6), shape: [3], stride: [-1], offset: 1 },
      'reach from -1 to 1',
    ],
    ['an offset beyond', { data: new Int8Array(6), offset: 7 }, 'expected an offset from 0 to 6, got 7'],
  ]

  it.each(cases)('%s', (_, given, message) => {
    const thrown = (() => {
      try {
        moments(given as ArrayInput)
      } catch (error) {
        return error
      }
      return undefined
    })()
    expect(thrown).toBeInstanceOf(UsageError)
    expect((thrown as UsageError).message).toMatch(/^moments: expected /)
    expect((thrown as UsageError).message).toContain(message)
  })

  it('of reductions', () => {
    const array = new Float32Array(1)
    // @ts-expect-error: no such reduction
    expect(() => reduce(array, 'abs_maen')).toThrow('got "abs_maen"; did you mean "abs_mean"')
    // @ts-expect-error: a list is asked for
    expect(() => moments(array, 'mean')).toThrow('moments: expected a list of reductions, got "mean"')
    expect(() => reduce({ data: new Float32Array(2), dtype: 'complex64' }, 'min')).toThrow(
      'complex numbers have no order',
    )
  })
})
