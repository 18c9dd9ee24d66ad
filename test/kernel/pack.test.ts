/** Doubles as Parquet's pages hold them, unpacked by another's snappy. */

import { snappyUncompress } from 'hyparquet'
import { ByteWriter } from 'hyparquet-writer'
import { writeRleBitPackedHybrid } from 'hyparquet-writer/src/encoding.js'
import { describe, expect, it } from 'vitest'
import { compressed, pack, packIntegers } from '#dist/core/batch/number-columns.js'
import { Engine } from '#dist/core/engine.js'
import { uniform } from '../../fixtures/random.js'

const engine = new Engine()

function unpacked(numbers: Float64Array): Float64Array {
  engine.reset()
  const bytes = new Uint8Array(numbers.byteLength)
  snappyUncompress(pack(engine, numbers), bytes)
  const joined = new Uint8Array(numbers.byteLength)
  for (let i = 0; i < joined.length; i++) joined[i] = bytes[(i % 8) * numbers.length + (i >> 3)]!
  return new Float64Array(joined.buffer)
}

const random = uniform(5)

/** Numbers of each kind: those that compress well, hardly, and not at all. */
const KINDS: Readonly<Record<string, (i: number) => number>> = {
  zeros: () => 0,
  'one number': () => Math.PI,
  'small integers': i => i % 17,
  'a ramp': i => i,
  'noise of one exponent': () => 1 + random(),
  'noise of all exponents': () => (random() - 0.5) * 2 ** Math.floor(2000 * (random() - 0.5)),
  'a period beyond the reach of short copies': i => Math.sin(i % 700),
  'NaN, infinities and zeros of both signs': i => [Number.NaN, -0, Number.POSITIVE_INFINITY, 0, -1e-310][i % 5]!,
  'runs of any length': i => Math.floor(Math.sqrt(i)),
}

describe.each(Object.keys(KINDS))('%s', kind => {
  it('of any count is as it was', () => {
    // Around the blocks of 65,536 bytes, and around what is too short to be compressed.
    const counts = [...Array.from({ length: 40 }, (_, i) => i), 100, 1000, 8191, 8192, 8193, 16_384, 20_000, 40_001]
    for (const count of counts) {
      const numbers = Float64Array.from({ length: count }, (_, i) => KINDS[kind]!(i))
      expect(Buffer.from(unpacked(numbers).buffer).equals(Buffer.from(numbers.buffer)), `${count}`).toBe(true)
    }
  })
})

it('takes little space where there is little to say, and hardly more than the numbers where there is much', () => {
  const sizeOf = (numbers: Float64Array) => {
    engine.reset()
    return pack(engine, numbers).length
  }
  const count = 16_384
  expect(sizeOf(new Float64Array(count))).toBeLessThan(count / 2)
  const noise = new Uint8Array(8 * count).map(() => random() * 256)
  expect(sizeOf(new Float64Array(noise.buffer))).toBeLessThan(8 * count * 1.001 + 64)
  expect(sizeOf(Float64Array.from({ length: count }, () => 1 + random()))).toBeLessThan(8 * count * 0.9)
})

it('whole numbers are packed as another writes them, of any width and count, in runs and without', () => {
  for (const width of [1, 2, 3, 7, 8, 9, 16, 17, 24]) {
    for (const count of [0, 1, 7, 8, 9, 15, 64, 1000]) {
      for (const longest of [1, 4, 20, 200]) {
        const numbers = new Int32Array(count)
        for (let i = 0; i < count; ) {
          const end = Math.min(count, i + 1 + Math.floor(random() * longest))
          numbers.fill(random() * 2 ** width, i, end)
          i = end
        }
        const expected = new ByteWriter()
        writeRleBitPackedHybrid(expected, numbers, width)
        engine.reset()
        const packed = packIntegers(engine, numbers, width)
        expect([width, count, longest, Buffer.from(packed)]).toEqual([
          width,
          count,
          longest,
          Buffer.from(expected.getBytes()),
        ])
      }
    }
  }
  // Numbers of no bits are a run.
  engine.reset()
  expect([...packIntegers(engine, new Int32Array(100), 0)]).toEqual([200, 1])
  expect([...packIntegers(engine, new Int32Array(3), 0)]).toEqual([6])
})

it('bytes of any count are compressed', () => {
  for (const count of [0, 1, 15, 16, 17, 100, 65_536, 65_537, 200_000]) {
    const bytes = new Uint8Array(count).map((_, i) => (i % 1000 < 500 ? i % 7 : random() * 256))
    const read = new Uint8Array(count)
    engine.reset()
    snappyUncompress(compressed(engine, bytes), read)
    expect(Buffer.from(read).equals(Buffer.from(bytes)), `${count}`).toBe(true)
  }
})
