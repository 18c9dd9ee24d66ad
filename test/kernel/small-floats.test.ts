/** Floats of eight and four bits in the core: what it makes of them is what it makes of the numbers that they stand for. */

import { describe, expect, it, test } from 'vitest'
import { DifferenceRow, DTypeNumber, KnownMoments, MomentsRow } from '#dist/core/border/abi.js'
import { bitsOf, decodeAll, decodeSmall, SMALL_FLOATS, type SmallFloat } from '../oracle/small-floats.js'
import { loadCore } from '../support/core.js'

const { exports: core, memory } = loadCore()
core.arenaReset()
const CAPACITY = 1 << 16
const reserve = (byteLength = CAPACITY): number => core.arenaReserve(byteLength) >>> 0
const [A, B, WIDE_A, WIDE_B, ROW, OTHER_ROW, SCRATCH] = Array.from({ length: 7 }, () => reserve()) as [
  number,
  number,
  number,
  number,
  number,
  number,
  number,
]
const { float32, float64 } = DTypeNumber
const ADDRESSES = Array.from({ length: 16 }, (_, i) => i)
const COUNTS = Array.from({ length: 67 }, (_, i) => i)
/** Counts around those of blocks. */
const LONG_COUNTS = [1023, 1024, 1025, 4095, 4096, 4097, 9001]

/** All bytes, in an order without a period. */
const BYTES = Uint8Array.from({ length: 10_000 }, (_, i) => (i < 256 ? i : (i * 167 + (i >> 8) * 31) & 255))
const numberOf = (dtype: SmallFloat): DTypeNumber => DTypeNumber[dtype]

function put(bytes: Uint8Array, at: number): number {
  new Uint8Array(memory.buffer).set(bytes, at)
  return at
}

function taken(at: number, byteLength: number): string {
  return Buffer.from(memory.buffer, at, byteLength).toString('hex')
}

const asFloat64 = (numbers: Float32Array): Uint8Array => new Uint8Array(Float64Array.from(numbers).buffer)
const bytesFor = (dtype: SmallFloat, count: number): number => Math.ceil((count * bitsOf(dtype)) / 8)

/** Elements from one of the bytes on, and the numbers they stand for. */
function elementsOf(dtype: SmallFloat, from: number, count: number) {
  const bytes = BYTES.slice(from, from + bytesFor(dtype, count))
  return { bytes, numbers: decodeAll(dtype, bytes, count) }
}

describe.each(SMALL_FLOATS)('%s', dtype => {
  it('becomes float32, of all bytes, wherever they lie, and writes no more than that', () => {
    for (const offset of ADDRESSES) {
      for (const count of [...COUNTS, 256, 512]) {
        const { bytes, numbers } = elementsOf(dtype, count === 256 || count === 512 ? 0 : offset * 5, count)
        put(new Uint8Array(count * 4 + 32).fill(0xa5), WIDE_A)
        core.widenToFloat32(numberOf(dtype), put(bytes, A + offset), count, WIDE_A)
        const got = new Float32Array(memory.buffer.slice(WIDE_A, WIDE_A + count * 4))
        expect(got.findIndex((x, i) => !Object.is(x, numbers[i]))).toBe(-1)
        expect(taken(WIDE_A + count * 4, 32)).toBe('a5'.repeat(32))
      }
    }
  })

  it('becomes float64 to be ordered', () => {
    for (const count of [...COUNTS, 256]) {
      const { bytes, numbers } = elementsOf(dtype, 0, count)
      const isOrdered = core.widenToDoubles(numberOf(dtype), put(bytes, A + 3), count, WIDE_A) !== 0
      expect(isOrdered).toBe(!numbers.some(Number.isNaN))
      expect([...new Float64Array(memory.buffer.slice(WIDE_A, WIDE_A + count * 8))]).toEqual([...numbers])
    }
  })

  test.each([KnownMoments.all, KnownMoments.none, KnownMoments.sum, KnownMoments.squares])(
    'has the moments of float32, to the last bit, of %i',
    known => {
      for (const [i, count] of [...COUNTS, ...LONG_COUNTS].entries()) {
        const { bytes, numbers } = elementsOf(dtype, i, count)
        core.momentsReset(ROW)
        core.momentsReset(OTHER_ROW)
        core.momentsAdd(numberOf(dtype), put(bytes, A + (i % 16)), count, ROW, known, 0)
        core.momentsAdd(float32, put(new Uint8Array(numbers.buffer), WIDE_A), count, OTHER_ROW, known, 0)
        expect(taken(ROW, MomentsRow.size)).toBe(taken(OTHER_ROW, MomentsRow.size))
      }
    },
  )

  it('is counted in a sketch as float32 is', () => {
    const sketches = [reserve(1 << 19), reserve(1 << 19)] as const
    const count = 5001
    const { bytes, numbers } = elementsOf(dtype, 0, count)
    const pairs = [
      [numberOf(dtype), put(bytes, A + 1)],
      [float32, put(new Uint8Array(numbers.buffer), WIDE_A)],
    ].map(([number, at], i) => {
      core.momentsReset(ROW)
      core.momentsAdd(number, at, count, ROW, KnownMoments.all, sketches[i])
      const found = core.sketchTake(number, sketches[i], 0, Number.POSITIVE_INFINITY, SCRATCH) >>> 0
      return [found, taken(SCRATCH, found * 16)]
    })
    expect(pairs[0]).toEqual(pairs[1])
    expect(pairs[0]![0]).toBeGreaterThan(4)
  })

  it('is compared, counted and summed as float64 is', () => {
    for (const [i, count] of [1, 2, 3, 5, 8, 33, 1023, 1024, 1025, 3001].entries()) {
      const a = elementsOf(dtype, i, count)
      const b = elementsOf(dtype, 300 + 7 * i, count)
      const [atA, atB] = [put(a.bytes, A + i), put(b.bytes, B + ((5 * i) % 16))]
      const [wideA, wideB] = [put(asFloat64(a.numbers), WIDE_A), put(asFloat64(b.numbers), WIDE_B)]
      const own = numberOf(dtype)
      for (const [rtol, atol, equalNan] of [
        [0, 0, 0],
        [0.25, 1e-3, 0],
        [0, 2, 1],
      ]) {
        const got = core.allclose(own, atA, own, atB, count, rtol, atol, equalNan)
        expect(got).toBe(core.allclose(float64, wideA, float64, wideB, count, rtol, atol, equalNan))
        expect(core.allclose(own, atA, float64, wideB, count, rtol, atol, equalNan)).toBe(got)
      }
      expect(core.absDifference(own, atA, own, atB, count)).toEqual(
        core.absDifference(float64, wideA, float64, wideB, count),
      )
      for (const value of [0, 1, -1.5, 448]) {
        expect(core.countEqual(own, atA, count, value)).toBe(core.countEqual(float64, wideA, count, value))
      }
      const columns = count % 3 === 0 ? 3 : 1
      const counted = [
        [own, atA],
        [float64, wideA],
      ].map(([number, at]) => {
        put(new Uint8Array(64), SCRATCH)
        core.countInside(number, at, count / columns, columns, -1, 4, SCRATCH)
        const inside = taken(SCRATCH, 12)
        put(new Uint8Array(64), SCRATCH)
        core.sumChannels(number, at, 1, columns, count / columns, SCRATCH)
        const sums = [...new Float64Array(memory.buffer.slice(SCRATCH, SCRATCH + 8 * columns))]
        put(new Uint8Array(Float64Array.of(Infinity, -Infinity).buffer), SCRATCH)
        core.extendRange(number, at, count, SCRATCH)
        const range = taken(SCRATCH, 16)
        put(new Uint8Array(Float64Array.of(-4, -1, 0, 2, 8, 0, 0, 0, 0).buffer), SCRATCH)
        core.countBins(number, at, count, SCRATCH, 4, 0, SCRATCH + 40)
        const bins = taken(SCRATCH + 40, 32)
        core.alongReset(0, columns, SCRATCH)
        core.alongAdd(0, number, 0, at, 1, count / columns, columns, 0, SCRATCH + 4096, SCRATCH)
        core.alongFinish(columns, SCRATCH, 1)
        const lines = [...new Float64Array(memory.buffer.slice(SCRATCH, SCRATCH + 8 * columns))]
        return { inside, sums, range, bins, lines }
      })
      expect(counted[0]).toEqual(counted[1])
    }
  })

  it('differs as float64 does, and the largest difference is found', () => {
    for (const [i, count] of [1, 2, 3, 7, 1000, 1023, 2049].entries()) {
      const a = elementsOf(dtype, i, count)
      const b = elementsOf(dtype, 500 + i, count)
      // Without NaN and infinities, which have no largest difference.
      if (!a.numbers.every(Number.isFinite) || !b.numbers.every(Number.isFinite)) {
        for (const { bytes, numbers } of [a, b]) {
          for (const [k, x] of numbers.entries()) if (!Number.isFinite(x)) bytes[k] = 0x31
          numbers.set(decodeAll(dtype, bytes, count))
        }
      }
      const rows = [
        [numberOf(dtype), put(a.bytes, A + i), put(b.bytes, B + 3)],
        [float64, put(asFloat64(a.numbers), WIDE_A), put(asFloat64(b.numbers), WIDE_B)],
      ].map(([number, atA, atB]) => {
        const row = number === float64 ? OTHER_ROW : ROW
        const start = new Float64Array(DifferenceRow.size / 8)
        start[DifferenceRow.firstUnequal / 8] = -1
        put(new Uint8Array(start.buffer), row)
        core.compare(number, atA, number, atB, count, 1, 1, row)
        const slots = new Float64Array(memory.buffer.slice(row, row + DifferenceRow.size))
        const block = slots[DifferenceRow.largestBlock / 8]!
        const most = slots[DifferenceRow.maxAbsolute / 8]!
        const byteOffset = number === float64 ? block * 8 : bytesFor(dtype, block)
        const within = Math.min(1024, count - block)
        const place = core.placeApart(number, atA! + byteOffset, number, atB! + byteOffset, within, most)
        slots[DifferenceRow.maxUlps / 8] = 0
        return [...slots, place]
      })
      expect(rows[0]).toEqual(rows[1])
    }
  })

  it('counts units of the last place as steps from one of its numbers to the next', () => {
    const codes = Array.from({ length: 2 ** bitsOf(dtype) }, (_, code) => code)
    const numbers = codes.map(code => decodeSmall(dtype, code))
    const ordered = [...new Set(numbers.filter(x => !Number.isNaN(x)).map(x => x + 0))].sort((x, y) => x - y)
    const place = (x: number) => ordered.indexOf(x + 0)
    for (const first of codes.filter(code => code % 7 === 0 || bitsOf(dtype) === 4)) {
      let most = 0
      const wanted = new Uint32Array(65)
      for (const code of codes) {
        if (Number.isNaN(numbers[first]!) || Number.isNaN(numbers[code]!)) continue
        const steps = Math.abs(place(numbers[first]!) - place(numbers[code]!))
        most = Math.max(most, steps)
        wanted[steps === 0 ? 0 : 32 - Math.clz32(steps)]!++
      }
      const isHalf = bitsOf(dtype) === 4
      const left = isHalf ? new Uint8Array(8).fill(first * 17) : new Uint8Array(256).fill(first)
      const right = isHalf ? Uint8Array.from({ length: 8 }, (_, i) => 2 * i + 16 * (2 * i + 1)) : Uint8Array.from(codes)
      put(new Uint8Array(DifferenceRow.size), ROW)
      put(new Uint8Array(65 * 4), SCRATCH)
      const own = numberOf(dtype)
      core.differ(own, put(left, A + 1), own, put(right, B), codes.length, 0, 0, codes.length, SCRATCH, ROW)
      const slots = new Float64Array(memory.buffer.slice(ROW, ROW + DifferenceRow.size))
      expect([first, slots[DifferenceRow.maxUlps / 8]]).toEqual([first, most])
      expect([...new Uint32Array(memory.buffer.slice(SCRATCH, SCRATCH + 260))]).toEqual([...wanted])
    }
  })
})
