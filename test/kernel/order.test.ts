import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Engine } from '#dist/core/engine.js'
import { normals } from '../../fixtures/random.js'
import { percentile } from '../oracle/measures.js'
import { loadCore } from '../support/core.js'
import {
  countOf,
  counts,
  DTYPES,
  dtypeNumber,
  type Elements,
  elements,
  isComplex,
  of,
  place,
  valuesOf,
} from '../support/elements.js'

const MANY = 100_000
const core = loadCore()
core.exports.arenaReset()
const DATA = core.exports.arenaReserve(16 * 100) >>> 0
const NUMBERS = core.exports.arenaReserve(8 * MANY) >>> 0

function numbersAt(values: ArrayLike<number>): Float64Array {
  const numbers = new Float64Array(core.memory.buffer, NUMBERS, values.length)
  numbers.set(values)
  return numbers
}

describe('selectKth', () => {
  test('finds each of any numbers and loses none', () => {
    const number = fc.oneof(
      fc.double({ noNaN: true }),
      fc.integer({ min: -3, max: 3 }),
      fc.constantFrom(0, -0, Infinity, -Infinity, 5e-324, -5e-324, Number.MAX_VALUE),
    )
    fc.assert(
      fc.property(fc.array(number, { maxLength: 70 }), values => {
        // Float64Array sorts −0 before 0.
        const sorted = Float64Array.from(values).sort()
        const numbers = numbersAt(values)
        for (let k = 0; k < sorted.length; k++) {
          expect(core.exports.selectKth(NUMBERS, values.length, k)).toBe(sorted[k])
        }
        expect(numbers.slice().sort()).toEqual(sorted)
      }),
      { numRuns: 500 },
    )
  })

  test('is NaN beyond the last', () => {
    expect(core.exports.selectKth(NUMBERS, 0, 0)).toBeNaN()
    expect(core.exports.selectKth(NUMBERS, 3, 3)).toBeNaN()
  })

  test.each<[string, (i: number) => number]>([
    ['constant', () => 7],
    ['sorted', i => i],
    ['reversed', i => MANY - i],
    ['organ-pipe', i => Math.min(i, MANY - i)],
    ['two-valued', i => i % 2],
    ['saw-tooth', i => i % 317],
    ['alike but for the last bits', i => 1 + ((i * 7919) % MANY) * Number.EPSILON],
    ['far-flung', i => (i % 2 ? 1 : -1) * 2 ** ((i % 2000) - 1000)],
  ])('of %s numbers is fast', (_, at) => {
    const values = Float64Array.from({ length: MANY }, (_, i) => at(i))
    const sorted = values.slice().sort()
    numbersAt(values)
    const ranks = [0, 1, MANY / 4, MANY / 2, MANY - 2, MANY - 1]
    const start = performance.now()
    const got = ranks.map(k => core.exports.selectKth(NUMBERS, MANY, k))
    // Some milliseconds; quadratic time would take minutes.
    expect(performance.now() - start).toBeLessThan(20_000)
    expect(got).toEqual(ranks.map(k => sorted[k]))
  })
})

describe('selectFloat32', () => {
  /** The numbers of some ranks among float32 bits; null where one is NaN. */
  function select(bits: Uint32Array, ranks: readonly number[]): number[] | null {
    core.exports.arenaReset()
    const byteLengths = [
      bits.byteLength + 1,
      ranks.length * 8,
      core.exports.selectScratchLength(bits.length, ranks.length),
    ]
    const reserved = byteLengths.map(size => core.exports.arenaReserve(size) >>> 0)
    const [data, numbers, scratch] = reserved as [number, number, number]
    // Not where a word begins
    new Uint8Array(core.memory.buffer).set(new Uint8Array(bits.buffer), data + 1)
    new Float64Array(core.memory.buffer, numbers, ranks.length).set(ranks)
    const ordered = core.exports.selectFloat32(data + 1, bits.length, numbers, ranks.length, scratch)
    return ordered ? [...new Float64Array(core.memory.buffer, numbers, ranks.length)] : null
  }

  test('finds numbers of any ranks, of any bits, and refuses NaN', () => {
    const number = fc.oneof(
      fc.integer({ min: 0, max: 2 ** 32 - 1 }),
      fc.constantFrom(0, 0x80000000, 0x7f800000, 0xff800000, 1, 0x80000001, 0x7f7fffff, 0x3f800000, 0x3f800001),
      fc.integer({ min: 0x3f800000, max: 0x3f800fff }),
    )
    fc.assert(
      fc.property(
        fc.array(number, { minLength: 1, maxLength: 80 }),
        fc.array(fc.nat(), { maxLength: 9 }),
        (list, picks) => {
          const bits = Uint32Array.from(list)
          const values = new Float32Array(bits.buffer)
          const ranks = picks.map(pick => pick % list.length)
          // Float32Array sorts −0 before 0.
          const sorted = values.slice().sort()
          expect(select(bits, ranks)).toEqual(values.some(Number.isNaN) ? null : ranks.map(k => sorted[k]))
        },
      ),
      { numRuns: 1000 },
    )
  })

  test('finds all of many', () => {
    const values = Float32Array.from(normals(3000, 5))
    const ranks = Array.from(values, (_, i) => i)
    for (const some of [ranks, ranks.toReversed()]) {
      const sorted = values.slice().sort()
      expect(select(new Uint32Array(values.buffer), some)).toEqual(some.map(k => sorted[k]))
    }
  })

  describe('by a sample', () => {
    const COUNT = 20_001
    const stride = Math.floor(COUNT / (COUNT >> 3))
    /** Where the sample is taken. */
    const sampled = new Set(
      Array.from({ length: COUNT >> 3 }, (_, i) => i * stride + ((Math.imul(i, 0x9e3779b1) >>> 16) % stride)),
    )
    const noise = normals(COUNT, 6)
    const ranks = [1000, 1001, 19_000, 19_001, 0, 1, 20_000, 20_000, 10_000, 10_001]

    test.each<[string, (i: number) => number]>([
      ['noise', i => noise[i]!],
      ['sorted', i => i],
      ['all alike', () => 7],
      ['mostly zeros', i => (i % 50 ? 0 : noise[i]!)],
      ['zeros below', i => Math.max(0, noise[i]!)],
      ['zeros of both signs', i => (noise[i]! < 0 ? -0 : 0)],
      ['infinities', i => (i % 3 ? noise[i]! : i % 2 ? Infinity : -Infinity)],
      ['few values', i => i % 64],
      ['what the sample does not see below', i => (sampled.has(i) ? 100 + (i % 7) : noise[i]!)],
      ['what the sample does not see above', i => (sampled.has(i) ? noise[i]! : 1e9 + i * 64)],
      ['what is crowded where the sample is not', i => (sampled.has(i) ? i : 10_000 + noise[i]!)],
    ])('of %s', (_, at) => {
      const values = Float32Array.from({ length: COUNT }, (_, i) => at(i))
      const sorted = values.slice().sort()
      const bits = new Uint32Array(values.buffer)
      for (const some of [ranks, ranks.toReversed(), [10_000], [5], Array.from({ length: 21 }, (_, i) => i * 1000)]) {
        expect(select(bits, some)).toEqual(some.map(k => sorted[k]))
      }
    })

    test.each([0, 3, 2047, 2048, 19_999, COUNT - 1, [...sampled][9]!])('sees a NaN at %i', at => {
      for (const nan of [0x7fc00000, 0xffc00000, 0x7f800001]) {
        const bits = new Uint32Array(Float32Array.from(noise).buffer)
        bits[at] = nan
        expect(select(bits, ranks)).toBeNull()
      }
    })

    test('of any bits', () => {
      const lengths = fc.integer({ min: 8185, max: 9000 })
      const masks = fc.constantFrom(0xbfffffff, 0xbf800000, 0x000fffff, 0x80000003)
      fc.assert(
        fc.property(lengths, masks, fc.integer(), fc.array(fc.nat(), { maxLength: 9 }), (length, mask, seed, picks) => {
          // Without the bit that NaN and infinities need.
          const bits = Uint32Array.from({ length }, (_, i) => Math.imul(i + seed, 0x9e3779b1) & mask)
          const some = picks.map(pick => pick % length)
          const sorted = new Float32Array(bits.slice().buffer).sort()
          expect(select(bits, some)).toEqual(some.map(k => sorted[k]))
        }),
        { numRuns: 100 },
      )
    })
  })
})

test.each(DTYPES)('widenToDoubles of %s tells whether all have an order', dtype => {
  fc.assert(
    fc.property(
      counts.chain(count => elements(dtype, count)),
      data => {
        const count = countOf(data)
        const numbers = new Float64Array(core.memory.buffer, NUMBERS, count + 1)
        numbers[count] = 42
        const ordered = core.exports.widenToDoubles(dtypeNumber(dtype), place(core, data, DATA), count, NUMBERS)
        const want = valuesOf(data).map(Number)
        expect(ordered).toBe(Number(!isComplex(dtype) && !want.some(Number.isNaN)))
        if (!isComplex(dtype)) expect([...numbers.subarray(0, count)]).toEqual(want)
        expect(numbers[count]).toBe(42)
      },
    ),
  )
})

test('widenToDoubles refuses what has no numbers', () => {
  expect(core.exports.widenToDoubles(7, DATA, 1, NUMBERS)).toBe(0)
  expect(core.exports.widenToDoubles(99, DATA, 1, NUMBERS)).toBe(0)
})

describe('percentiles', () => {
  const engine = new Engine()
  const percentiles = (elements: Elements, q: readonly number[]): number[] => {
    const { dtype, bytes, offset } = elements
    engine.reset()
    const at = engine.reserveBytes(bytes.length + offset)
    const data = (at + offset) as typeof at
    engine.view(data, bytes.length).set(bytes)
    return engine.elements.percentiles(dtype, data, countOf(elements), q)
  }

  // By numpy 2.4.6.
  test.each([
    [
      [1, 2, 3, 4],
      [0, 25, 50, 75, 100],
      [1, 1.75, 2.5, 3.25, 4],
    ],
    [
      [0.1, 0.7, 0.2],
      [10, 33.3, 99],
      [0.12000000000000001, 0.1666, 0.69],
    ],
    [[5], [0, 37, 100], [5, 5, 5]],
    [
      [1, 2, Infinity],
      [25, 50, 80, 100],
      [1.5, NaN, NaN, NaN],
    ],
    [
      [1, NaN, 2],
      [0, 50],
      [NaN, NaN],
    ],
    [[], [0, 50], [NaN, NaN]],
  ])('of %j at %j', (values, q, want) => {
    expect(percentiles(of('float64', values), q)).toEqual(want)
  })

  test('of complex numbers are none', () => {
    expect(percentiles(of('complex64', [1, 0, 2, 0]), [50])).toEqual([NaN])
  })

  test.each(DTYPES.filter(dtype => !isComplex(dtype)))('of %s are those of the sorted numbers', dtype => {
    const percents = fc.array(
      fc.oneof(fc.constantFrom(0, 1, 25, 50, 75, 99, 100), fc.double({ min: 0, max: 100, noNaN: true })),
      {
        maxLength: 4,
      },
    )
    fc.assert(
      fc.property(
        counts.chain(count => elements(dtype, count)),
        percents,
        (data, q) => {
          // Adding 0 makes no difference of −0, which numpy does not tell from 0.
          const want = q.map(percent => percentile(valuesOf(data), percent) + 0)
          expect(percentiles(data, q).map(x => x + 0)).toEqual(want)
        },
      ),
      { numRuns: 150 },
    )
  })

  test('give back the room they took', () => {
    const values = [...normals(50_000, 7)]
    const data = of('float32', values)
    const q = [5, 50, 95]
    const before = percentiles(data, q)
    expect(before).toEqual(q.map(percent => percentile(valuesOf(data), percent)))
    const at = engine.scoped(() => engine.reserveBytes(1))
    engine.elements.percentiles('float32', at, 0, q)
    expect(engine.scoped(() => engine.reserveBytes(1))).toBe(at)
    const grown = engine.byteLength
    percentiles(data, q)
    expect(engine.byteLength).toBe(grown)
  })

  test('of more than memory can hold are refused', () => {
    engine.reset()
    expect(() => engine.elements.percentiles('uint8', engine.reserveBytes(16), 2 ** 29, [50])).toThrow(
      /fits into memory/,
    )
  })
})
