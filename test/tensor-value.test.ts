/** Values of tensors and their parts: slices, elements, nested arrays and scijs' ndarray, as numpy has them. */

import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, expectTypeOf, it } from 'vitest'
import {
  type AxisIndex,
  allclose,
  createTrial,
  type ElementOf,
  type TensorValue,
  type Trial,
  UsageError,
  type ValueOf,
} from '#dist/index.js'
import { type Moments, moments } from '#dist/kernels.js'
import { tensorValue } from '#dist/scan/job/tensor-value.js'
import { type DTypeName, DTYPES as FACTS, TrialWriter } from '../fixtures/event-writer.js'
import { DTYPES, sizeOf } from './support/elements.js'
import { isRequired, ROOT } from './support/golden.js'
import { scratchDirectory } from './support/scratch.js'

const directory = join(scratchDirectory('value'), 'trial')
const SHAPES = [[], [1], [7], [0], [4, 5], [3, 0, 2], [2, 3, 4], [2, 2, 3, 2]]
const ALL: readonly DTypeName[] = [...DTYPES, 'string']
const countOf = (shape: readonly number[]): number => shape.reduce((product, size) => product * size, 1)
const nameOf = (dtype: string, shape: readonly number[]): string => `${dtype}/${shape.join('x')}`

type Element = ElementOf[keyof ElementOf]
type Tree = Element | Tree[]

/** The n-th element of each tensor, as a number that every dtype can hold. */
const number = (i: number): number => (i * 3 + 1) % 100
const imaginary = (i: number): number => -i

function element(dtype: string, i: number): Element {
  if (dtype === 'string') return `é${i}`
  if (dtype === 'bool') return i % 3 !== 0
  if (/^complex/.test(dtype)) return { re: number(i), im: imaginary(i) }
  return /^u?int64$/.test(dtype) ? BigInt(number(i)) : number(i)
}

function data(dtype: DTypeName, count: number): (number | bigint)[] | Uint8Array {
  // Whatever isn't 0 is true.
  if (dtype === 'bool') return Uint8Array.from({ length: count }, (_, i) => i % 3)
  return Array.from({ length: count * FACTS[dtype].parts }, (_, i) => {
    if (FACTS[dtype].parts === 1) return number(i)
    return i % 2 === 0 ? number(i / 2) : imaginary((i - 1) / 2)
  })
}

/** Elements in C order as nested arrays. */
function nestedOf(elements: readonly Element[], shape: readonly number[]): Tree {
  let level: Tree[] = [...elements]
  for (const [axis, size] of [...shape.entries()].reverse()) {
    const count = countOf(shape.slice(0, axis))
    level = Array.from({ length: count }, (_, i) => level.slice(i * size, (i + 1) * size))
  }
  return level[0]!
}

/** The indices that a slice means, found by looking at each: those between its bounds at whole steps from the first. */
function chosen(size: number, [start, stop, step]: readonly (number | null | undefined)[]): number[] {
  const by = step ?? 1
  const bound = (given: number) => (given < 0 ? given + size : given)
  const all = Array.from({ length: size }, (_, i) => i)
  if (by > 0) {
    const from = Math.max(0, bound(start ?? 0))
    return all.filter(i => i >= from && (stop == null || i < bound(stop)) && (i - from) % by === 0)
  }
  const from = Math.min(size - 1, start == null ? size - 1 : bound(start))
  return all.reverse().filter(i => i <= from && (stop == null || i > bound(stop)) && (from - i) % -by === 0)
}

function sliced(tree: Tree, shape: readonly number[], indices: readonly AxisIndex[]): Tree {
  if (shape.length === 0) return tree
  const [size, ...rest] = shape
  const [index, ...others] = indices
  const parts = tree as Tree[]
  if (typeof index === 'number') return sliced(parts.at(index)!, rest, others)
  const { start, stop, step } = Array.isArray(index)
    ? { start: index[0], stop: index[1], step: index[2] }
    : { start: null, stop: null, step: null, ...(index as object) }
  return chosen(size!, [start, stop, step]).map(i => sliced(parts[i]!, rest, others))
}

let trial: Trial
const values = new Map<string, TensorValue>()
const savedValue = (dtype: string, shape: readonly number[]): TensorValue => values.get(nameOf(dtype, shape))!

beforeAll(async () => {
  const writer = new TrialWriter(directory)
  const tensors = ALL.flatMap(dtype =>
    SHAPES.map(shape => {
      const count = countOf(shape)
      const name = nameOf(dtype, shape)
      if (dtype !== 'string') return { name, dtype, shape, data: data(dtype, count) }
      return { name, dtype, shape, strings: Array.from({ length: count }, (_, i) => element('string', i) as string) }
    }),
  )
  writer.step({ step: 0, tensors })
  writer.end()
  trial = await createTrial(directory, { threads: 0 })
  for (const { name } of tensors) values.set(name, await trial.tensor(name).value(0))
})

afterAll(() => trial.close())

const bitsOf = ({ row }: Moments): string => Buffer.from(row.buffer, row.byteOffset, row.byteLength).toString('hex')

describe.each(ALL)('a value of %s', dtype => {
  it.each(SHAPES.map(shape => [shape]))('of shape [%s] has its elements', shape => {
    const value = savedValue(dtype, shape)
    const elements = Array.from({ length: countOf(shape) }, (_, i) => element(dtype, i))
    const tree = nestedOf(elements, shape)
    expect(value.toNested()).toEqual(tree)
    elements.forEach((element, i) => {
      expect(value.item(i)).toEqual(element)
      expect(value.item(i - elements.length)).toEqual(element)
      let rest = i
      const index = [...shape].reverse().map(size => {
        const at = rest % size
        rest = (rest - at) / size
        return at
      })
      if (shape.length > 0) expect(value.item(...index.reverse())).toEqual(element)
    })
    if (elements.length === 1) expect(value.item()).toEqual(elements[0])
    else expect(() => value.item()).toThrow(UsageError)
  })

  it('has slices that are values, over the same data', () => {
    const shape = [2, 3, 4]
    const value = savedValue(dtype, shape)
    const tree = value.toNested() as Tree
    const indices: AxisIndex[][] = [
      [],
      [1],
      [null, -1],
      [undefined, undefined, 2],
      [0, 1, 2],
      [{}, { start: 1 }],
      [{ step: -1 }, [null, null, -2], [1, 3]],
      [[0, 0], null, { start: -100, stop: 100, step: 3 }],
      [1, { start: 5, stop: -5, step: -1 }, [3, 0, -1]],
    ]
    for (const index of indices) {
      const slice = value.slice(...index)
      expect(slice.data).toBe(value.data)
      expect(slice.dtype).toBe(dtype)
      expect([slice.bits, slice.float16]).toEqual([value.bits, value.float16])
      const expected = sliced(tree, shape, index)
      expect(slice.toNested()).toEqual(expected)
      const part: TensorValue = slice
      const flat = ([expected] as unknown[]).flat(4) as Element[]
      expect(flat.map((_, i) => part.item(i))).toEqual(flat)
      if (dtype === 'string') expect(part.bytes).toHaveLength(0)
      else {
        const size = sizeOf(dtype)
        const places = sliced(
          nestedOf(
            Array.from({ length: 24 }, (_, i) => i),
            shape,
          ),
          shape,
          index,
        )
        const at = ([places] as unknown[]).flat(4) as number[]
        const wanted = Buffer.concat(at.map(i => value.bytes.subarray(i * size, (i + 1) * size)))
        expect(Buffer.from(part.bytes).equals(wanted)).toBe(true)
        // The same again: they are copied once.
        expect(part.bytes).toBe(part.bytes)
      }
    }
  })

  it('has slices that calls take as the elements that they are', () => {
    if (dtype === 'string') return
    const value = savedValue(dtype, [4, 5])
    const slice = value.slice([null, null, -2], { start: 1, stop: 4 })
    const size = sizeOf(dtype)
    const bytes = Buffer.concat([16, 17, 18, 6, 7, 8].map(i => value.bytes.subarray(i * size, (i + 1) * size)))
    expect(bitsOf(moments(slice))).toBe(bitsOf(moments({ data: Uint8Array.from(bytes), dtype, shape: [2, 3] })))
    expect(bitsOf(moments(slice))).not.toBe(bitsOf(moments(value)))
    expect(allclose(slice, slice)).toBe(true)
    expect(allclose(slice, value.slice([1, 3], [1, 4]))).toBe(false)
  })

  it('is an ndarray over the same data', () => {
    for (const shape of SHAPES) {
      const value = savedValue(dtype, shape)
      for (const part of [value, value.slice(...shape.map(() => [null, null, -2] as const))]) {
        const array = part.toNdarray()
        expect(array.data).toBe(value.data)
        const isComplex = /^complex/.test(dtype)
        expect(array.shape).toEqual(isComplex ? [...part.shape, 2] : part.shape)
        const walk = (index: number[]): unknown => {
          if (index.length < part.shape.length) {
            return Array.from({ length: part.shape[index.length]! }, (_, i) => walk([...index, i]))
          }
          if (isComplex) return { re: array.get(...index, 0), im: array.get(...index, 1) }
          return dtype === 'bool' ? array.get(...index) === 1 : array.get(...index)
        }
        expect(walk([])).toEqual(part.toNested())
      }
    }
  })

  it('is compared, cloned and written as its data', () => {
    const value = savedValue(dtype, [2, 3, 4])
    for (const part of [value, value.slice(1), value.slice(null, -1, [3, 0, -2]).slice(null, 0)]) {
      const plain = { ...part }
      expect(Object.keys(plain)).toEqual(
        expect.arrayContaining(['dtype', 'shape', 'stride', 'offset', 'data', 'bytes']),
      )
      expect(part).toEqual(plain)
      expect(structuredClone(part)).toEqual(plain)
      if (!(value.data instanceof BigInt64Array || value.data instanceof BigUint64Array)) {
        expect(JSON.stringify(part)).toBe(JSON.stringify(plain))
      }
      if (dtype !== 'string') expect(bitsOf(moments(structuredClone(plain)))).toBe(bitsOf(moments(part)))
    }
  })
})

const bound = fc.oneof(fc.constant(null), fc.integer({ min: -9, max: 9 }))
const step = fc.oneof(
  fc.constant(null),
  fc.integer({ min: -4, max: 4 }).filter(step => step !== 0),
)
const shapes = fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 4 })
/** Indices for a view, of which some may be out of range. */
const indicesOf = (shape: readonly number[], slack = 0): fc.Arbitrary<AxisIndex[]> =>
  fc
    .tuple(
      ...shape.map(size =>
        fc.oneof(
          ...(size + slack > 0 ? [fc.integer({ min: -size - slack, max: size + slack - 1 })] : []),
          fc.tuple(bound, bound, step),
          fc.record({ start: bound, stop: bound, step }, { requiredKeys: [] }),
          fc.constant(null),
        ),
      ),
      fc.nat({ max: shape.length }),
    )
    .map(given => (given.slice(0, -1) as AxisIndex[]).slice(0, given.at(-1) as number))

function counting(shape: readonly number[]): ValueOf<'int32'> {
  const bytes = new Uint8Array(Int32Array.from({ length: countOf(shape) }, (_, i) => i).buffer)
  return tensorValue({ dtype: 'int32', shape, bytes, widened: null, strings: null }) as ValueOf<'int32'>
}

describe('slices', () => {
  it('of slices are those of their elements', () => {
    const cases = shapes.chain(shape => fc.tuple(fc.constant(shape), indicesOf(shape)))
    fc.assert(
      fc.property(cases, fc.gen(), ([shape, indices], any) => {
        const value = counting(shape)
        const once = value.slice(...indices)
        const expected = sliced(value.toNested() as Tree, shape, indices)
        expect(once.toNested()).toEqual(expected)
        const more = any(indicesOf, once.shape)
        const twice = once.slice(...more)
        expect(twice.toNested()).toEqual(sliced(expected, once.shape, more))
        const flat = ([twice.toNested()] as unknown[]).flat(5)
        expect([...new Int32Array(twice.bytes.slice().buffer)]).toEqual(flat)
      }),
      { numRuns: 500 },
    )
  })

  it('that lie together are not copied', () => {
    const value = counting([4, 5])
    for (const slice of [
      value.slice(2),
      value.slice([1, 3]),
      value.slice(3, [1, 4]),
      value.slice(1, 1),
      value.slice(),
    ]) {
      expect(slice.bytes.buffer).toBe(value.bytes.buffer)
      expect(slice.bytes.byteOffset).toBe(slice.offset * 4)
    }
    expect(value.slice(null, 1).bytes.buffer).not.toBe(value.bytes.buffer)
  })

  const python = ['/usr/bin/python3', 'python3'].find(path => {
    try {
      execFileSync(path, ['-c', 'import numpy'], { stdio: 'ignore' })
      return true
    } catch {
      return false
    }
  })
  it.runIf(python !== undefined || isRequired('numpy'))('and elements are those of numpy', () => {
    const item = (shape: readonly number[]) =>
      fc.array(fc.integer({ min: -7, max: 6 }), { maxLength: shape.length + 1 })
    const cases = fc.sample(
      shapes.chain(shape => fc.record({ shape: fc.constant(shape), indices: indicesOf(shape, 1), item: item(shape) })),
      { numRuns: 1000, seed: 5 },
    )
    const triple = (index: AxisIndex): unknown => {
      if (index === null || typeof index === 'number' || Array.isArray(index)) return index
      const { start = null, stop = null, step = null } = index as Record<string, number | null | undefined>
      return [start, stop, step]
    }
    const script = `
import json, numpy, sys
def tried(work):
    try: return work()
    except (IndexError, ValueError): return 'error'
for case in json.load(sys.stdin):
    a = numpy.arange(numpy.prod(case['shape'], dtype=int), dtype='int32').reshape(case['shape'])
    index = tuple(i if isinstance(i, int) else slice(None) if i is None else slice(*i) for i in case['indices'])
    def part():
        # With an Ellipsis it is an array without axes, too, and not a scalar.
        v = a[index + (Ellipsis,)]
        start = lambda array: array.__array_interface__['data'][0]
        place = [[s // 4 for s in v.strides], (start(v) - start(a)) // 4] if v.size else None
        return [list(v.shape), v.tolist(), place]
    print(json.dumps([tried(part), tried(lambda: a.item(*case['item']))]))`
    const input = JSON.stringify(cases.map(one => ({ ...one, indices: one.indices.map(triple) })))
    const answers = execFileSync(python!, ['-c', script], { input, encoding: 'utf8' }).trimEnd().split('\n')
    const tried = (work: () => unknown): unknown => {
      try {
        return work()
      } catch (error) {
        expect(error).toBeInstanceOf(UsageError)
        return 'error'
      }
    }
    const errors = [0, 0]
    cases.forEach(({ shape, indices, item }, i) => {
      const value = counting(shape)
      const got = [
        tried(() => {
          const slice = value.slice(...indices)
          const place = countOf(slice.shape) > 0 ? [slice.stride, slice.offset] : null
          return [slice.shape, slice.toNested(), place]
        }),
        tried(() => value.item(...item)),
      ]
      expect([shape, indices, item, got]).toEqual([shape, indices, item, JSON.parse(answers[i]!)])
      got.forEach((answer, which) => {
        if (answer === 'error') errors[which]!++
      })
    })
    // Neither all of them, nor none.
    for (const count of errors) expect(count).toBeGreaterThan(50)
    for (const count of errors) expect(count).toBeLessThan(950)
  })
})

it('what is reduced along an axis is a value, too', async () => {
  const sums = await trial.tensor('int32/4x5').along(0, 'sum', 0)
  const rows = savedValue('int32', [4, 5]).toNested() as number[][]
  expect(sums.slice({ step: -1 }).toNested()).toEqual(
    [4, 3, 2, 1, 0].map(i => rows.reduce((sum, row) => sum + row[i]!, 0)),
  )
})

describe('errors', () => {
  const value = counting([2, 3])
  const anything = (...given: unknown[]) => given as never[]

  const refusal = (work: () => unknown): string => {
    try {
      work()
    } catch (error) {
      expect(error).toBeInstanceOf(UsageError)
      return (error as UsageError).message
    }
    return 'none'
  }

  it('of slice say what was expected and what was there', () => {
    const kinds = 'an index, null, { start, stop, step } or [start, stop, step] of whole numbers for axis 0'
    const wrong: [unknown[], string][] = [
      [[0, 0, 0], 'no more indices than axes of the shape [2,3], got 3'],
      [[2], 'an index from -2 to 1 for axis 0, got 2'],
      [[null, -4], 'an index from -3 to 2 for axis 1, got -4'],
      [[0.5], 'an index from -2 to 1 for axis 0, got 0.5'],
      [[Number.NaN], 'an index from -2 to 1 for axis 0, got NaN'],
      [[{ step: 0 }], 'a step other than 0 for axis 0, got {"step":0}'],
      [[null, [0, 1, 0]], 'a step other than 0 for axis 1, got [0,1,0]'],
      [['1'], `${kinds}, got "1"`],
      [[true], `${kinds}, got true`],
      [[1n], `${kinds}, got 1`],
      [[[]], `${kinds}, got []`],
      [[[1]], `${kinds}, got [1]`],
      [[[0, 1, 1, 1]], `${kinds}, got [0,1,1,1]`],
      [[['0', 1]], `${kinds}, got ["0",1]`],
      [[{ begin: 0 }], `${kinds}, got {"begin":0}`],
      [[{ start: 0.5 }], `${kinds}, got {"start":0.5}`],
      [[{ stop: 2n }], `${kinds}, got {"stop":"2"}`],
      [[new Map()], `${kinds}, got a Map`],
      [[Int32Array.of(0, 1)], `${kinds}, got a Int32Array`],
      [[() => 0], `${kinds}, got a function`],
    ]
    for (const [indices, message] of wrong) {
      expect(refusal(() => value.slice(...anything(...indices)))).toBe(`value.slice: expected ${message}`)
    }
  })

  it('of item say what was expected and what was there', () => {
    const wrong: [unknown[], string][] = [
      [[], 'indices for the shape [2,3], got none'],
      [[0, 0, 0], '2 indices, one for each axis of the shape [2,3], or one in C order, got 3'],
      [[6], 'an index from -6 to 5 for all elements in C order, got 6'],
      [[0, 3], 'an index from -3 to 2 for axis 1, got 3'],
      [[0, null], 'an index from -3 to 2 for axis 1, got null'],
      [['0'], 'an index from -6 to 5 for all elements in C order, got "0"'],
    ]
    for (const [indices, message] of wrong) {
      expect(refusal(() => value.item(...anything(...indices)))).toBe(`value.item: expected ${message}`)
    }
  })

  it('say that there are no elements', () => {
    const empty = counting([0, 3])
    expect(() => empty.item(0, 0)).toThrow('value.item: expected no index for axis 0, of which there are none, got 0')
    expect(() => empty.slice(-1)).toThrow('value.slice: expected no index for axis 0, of which there are none, got -1')
    expect(empty.slice({ step: -1 }, 0)).toMatchObject({ shape: [0], offset: 0 })
  })

  it('come before nested arrays that would fill the memory', () => {
    const bytes = new Uint8Array(0)
    for (const shape of [
      [1e9, 0],
      [2 ** 40, 2 ** 40, 0],
      [...Array(40).fill(2 ** 62), 0],
      [2 ** 24, 1],
    ]) {
      const value = tensorValue({ dtype: 'int32', shape, bytes, widened: null, strings: null })
      expect(() => value.toNested()).toThrow(expect.objectContaining({ code: 'ValueTooLarge' }))
    }
    const value = tensorValue({ dtype: 'int32', shape: [0, 1e9], bytes, widened: null, strings: null })
    expect(value.toNested()).toEqual([])
  })

  it('come where ndarray may not make code of text, and all else works there', () => {
    const code = `
      const { createTrial } = await import(${JSON.stringify(pathToFileURL(join(ROOT, 'dist/bundle/index.js')).href)})
      const trial = await createTrial(${JSON.stringify(directory)}, { threads: 0 })
      const value = await trial.tensor('float32/4x5').value(0)
      const slice = value.slice(-1, { step: 2 })
      console.log(JSON.stringify([slice.toNested(), slice.item(-1)]))
      try {
        console.log(slice.toNdarray().get(2))
      } catch ({ name, message }) {
        console.log(name, message)
      }
      await trial.close()`
    const run = (...args: string[]) =>
      execFileSync(process.execPath, [...args, '--input-type=module', '-e', code], { encoding: 'utf8' }).split('\n')
    const numbers = [15, 17, 19].map(number)
    expect(run()).toEqual([JSON.stringify([numbers, numbers[2]]), String(numbers[2]), ''])
    const [told, error] = run('--disallow-code-generation-from-strings')
    expect(told).toBe(JSON.stringify([numbers, numbers[2]]))
    expect(error).toMatch(
      /^UsageError value\.toNdarray: expected that code may be made of text \('unsafe-eval'\), as ndarray does, got /,
    )
  })
})

it('types tell what elements are', () => {
  const told = (value: TensorValue): void => {
    if (value.dtype === 'float32') {
      expectTypeOf(value.item(0)).toEqualTypeOf<number>()
      expectTypeOf(value.slice(0).data).toEqualTypeOf<Float32Array>()
      expectTypeOf(value.toNdarray().data).toEqualTypeOf<Float32Array>()
    }
    if (value.dtype === 'int64') expectTypeOf(value.item(0)).toEqualTypeOf<bigint>()
    if (value.dtype === 'bool') expectTypeOf(value.item(0)).toEqualTypeOf<boolean>()
    if (value.dtype === 'string') expectTypeOf(value.toNdarray().get(0)).toEqualTypeOf<string>()
    if (value.dtype === 'complex64') expectTypeOf(value.item(0).re).toEqualTypeOf<number>()
    // @ts-expect-error: an index is a number
    value.slice('0')
  }
  expectTypeOf(told).toBeFunction()
})
