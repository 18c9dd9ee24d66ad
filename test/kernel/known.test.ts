/** What a row of moments knows, and what it must not answer. */

import { describe, expect, it } from 'vitest'
import { QueryError } from '#dist/base/errors.js'
import { type DType, REDUCTIONS, type ReductionName } from '#dist/base/types.js'
import { KnownMoments } from '#dist/core/border/abi.js'
import { Engine } from '#dist/core/engine.js'
import { Moments, setFor } from '#dist/core/moments.js'
import { MOMENT_INDEX } from '#dist/core/moments-row.js'
import { elementBytes, encodeEvent, frameRecord } from '../../fixtures/event-writer.js'

const { extremes, sum, sumAbs, squares, product, all } = KnownMoments
const SETS = [extremes, sum, sumAbs, squares, product, all, sum | squares, sumAbs | squares]
const PARTS: ReadonlyMap<ReductionName, KnownMoments> = new Map([
  ...(['min', 'max', 'abs_min', 'abs_max'] as const).map(name => [name, extremes] as const),
  ...(['mean', 'sum'] as const).map(name => [name, sum] as const),
  ...(['l1', 'abs_l1', 'abs_mean', 'abs_sum'] as const).map(name => [name, sumAbs] as const),
  ...(['l2', 'abs_l2'] as const).map(name => [name, squares] as const),
  ...(['std', 'variance'] as const).map(name => [name, sum | squares] as const),
  ...(['abs_std', 'abs_variance'] as const).map(name => [name, sumAbs | squares] as const),
  ...(['prod', 'abs_prod'] as const).map(name => [name, product] as const),
])

const engine = new Engine()

function momentsOf(dtype: DType, values: readonly number[], known: KnownMoments): Moments {
  return momentsIn(dtype, elementBytes(dtype as 'float32', values), values.length, known)
}

function momentsIn(dtype: DType, bytes: Uint8Array, count: number, known: KnownMoments): Moments {
  engine.reset()
  const batch = engine.reserveBatch(1)
  const data = engine.reserveBytes(bytes.length)
  engine.view(data, bytes.length).set(bytes)
  engine.resetRow(batch)
  engine.addToRow(batch, dtype, data, count, 0, known)
  return new Moments(dtype, engine.rows(batch, 1).slice())
}

describe('setFor', () => {
  it('is the smallest set that knows them all', () => {
    expect([...PARTS.keys()].sort()).toEqual([...REDUCTIONS].sort())
    for (const [name, known] of PARTS) {
      expect(setFor([name])).toBe(known)
      expect(setFor(['abs_max', name, 'mean'])).toBe(known | extremes | sum)
    }
    expect(setFor(REDUCTIONS)).toBe(KnownMoments.all)
    expect(setFor([])).toBe(0)
  })
})

describe('moments', () => {
  const values = [3, -1, 0, 2, Number.NaN, Number.POSITIVE_INFINITY]

  it.each(['float32', 'float64', 'int64', 'uint8', 'complex64'] as const)('of %s answer what they know', dtype => {
    const finite = values.slice(0, 4).map(Math.abs)
    const all = momentsOf(dtype, finite, KnownMoments.all)
    for (const known of SETS) {
      const moments = momentsOf(dtype, finite, known)
      expect(moments.exact).toEqual(all.exact)
      for (const name of REDUCTIONS) {
        if (isIn(setFor([name]), known)) expect(moments.knows(name)).toBe(true)
        if (!moments.knows(name)) expectUnknown(moments, name)
        else if (!dtype.startsWith('complex') || name.startsWith('abs_')) {
          expect(moments.reduction(name)).toEqual(all.reduction(name))
        }
      }
    }
  })

  it.each(SETS)('of set %i count infinities and NaN, and zeros with the extremes', known => {
    const moments = momentsOf('float32', values, known)
    const hasExtremes = moments.knows('max')
    expect([moments.count, moments.infinityCount, moments.nanCount]).toEqual([6, 1, 1])
    expect(moments.zeroCount).toBe(hasExtremes ? 1 : Number.NaN)
    for (const name of REDUCTIONS) if (isIn(setFor([name]), known)) expect(moments.reduction(name)).toBeNaN()
    if (!(known & product)) expectUnknown(moments, 'prod')
    // What is asked for alone is found alone.
    if (!(known & (extremes | sumAbs | product))) expectUnknown(moments, 'max')
    if (!(known & (sumAbs | product))) expectUnknown(moments, 'l1')
  })

  it.each(['float16', 'bfloat16'] as const)(
    'of %s have the same extremes to the bit, alone or with all else',
    dtype => {
      const slots = [
        'nanCount',
        'positiveInfinityCount',
        'negativeInfinityCount',
        'min',
        'max',
        'minAbs',
        'maxAbs',
        'zeroCount',
      ]
      const expectSame = (bits: Uint16Array): void => {
        const [alone, of] = [extremes, all].map(known =>
          momentsIn(dtype, new Uint8Array(bits.buffer), bits.length, known),
        )
        const read = (moments: Moments) => slots.map(slot => moments.slot(slot as 'min'))
        expect(read(alone!)).toEqual(read(of!))
      }
      const infinity = dtype === 'float16' ? 0x7c00 : 0x7f80
      let seed = 1
      const random = () => {
        seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0
        return seed >>> 16
      }
      const finite = () => (random() & 0x8000) | (random() % infinity)
      for (const length of [...Array(40).keys(), 4095, 4096, 5003]) {
        const bits = Uint16Array.from({ length }, finite)
        expectSame(bits)
        for (const sign of [0, 0x8000]) expectSame(bits.map(x => (x & 0x7fff) | sign))
        for (const few of [[0], [0x8000], [0, 0x8000], [1, 0x8001], [infinity - 1]]) {
          expectSame(bits.map(x => few[x % few.length]!))
        }
        if (length === 0) continue
        for (const special of [infinity, infinity | 0x8000, infinity + 1, 0xffff]) {
          expectSame(bits.with(random() % length, special))
          expectSame(bits.with(length - 1, special))
        }
      }
      // All there are.
      expectSame(Uint16Array.from({ length: 1 << 16 }, (_, i) => i))
    },
  )

  it('of no elements know everything', () => {
    for (const known of SETS) expect(momentsOf('float32', [], known).reduction('prod')).toBe(1)
  })

  it('know after merging what all of them knew', () => {
    for (const a of SETS) {
      for (const b of SETS) {
        const rows = [momentsOf('float32', [1, 2], a).row, momentsOf('float32', [3], b).row]
        const merged = new Moments('float32', engine.mergeRows(rows))
        const [of1, of2] = rows.map(row => row[MOMENT_INDEX.known]!)
        expect(merged.slot('known')).toBe(of1! & of2!)
        if (merged.knows('max')) expect(merged.reduction('max')).toBe(3)
        else expectUnknown(merged, 'max')
        if (merged.knows('sum')) expect(merged.reduction('sum')).toBe(6)
        else expectUnknown(merged, 'sum')
      }
    }
  })

  it.each(['content', 'packed'] as const)('of scanned records (%s) know what was asked for', place => {
    // One by one, the last value stands for the rest
    const values = place === 'content' ? [5, -7, -7] : [5, -7]
    const tensor = { dtype: 'float32', shape: [3], values, place } as const
    const frame = frameRecord(encodeEvent({ wallTime: 0, step: 0, tag: 't', tensor }), { checksum: 'true' })
    const { length } = frame
    for (const known of SETS) {
      engine.reset()
      const tags = engine.writeTexts([])
      const batch = engine.reserveBatch(1)
      const address = engine.reserveBytes(length)
      engine.view(address, length).set(frame)
      const asked = () => ({ byteLength: length, tag: -1, step: -1 })
      engine.ask(batch, 1, tags, asked, () => ({ address, byteLength: length }))
      engine.scan(batch, 1, 2, known)
      const moments = new Moments('float32', engine.rows(batch, 1))
      expect([isIn(known, moments.slot('known')), moments.count]).toEqual([true, 3])
      expect(moments.slot('min')).toBe(known & (extremes | sumAbs | product) ? -7 : Number.NaN)
      expect(moments.slot('sum')).toBe(known === extremes ? Number.NaN : -9)
      expect(moments.slot('m2')).toBe(known & (squares | product) ? 96 : Number.NaN)
    }
  })
})

function isIn(part: KnownMoments, known: KnownMoments): boolean {
  return (part & known) === part
}

function expectUnknown(moments: Moments, name: ReductionName): void {
  expect(() => moments.reduction(name)).toThrow(QueryError)
  expect(() => moments.reduction(name)).toThrow(`expected moments computed with ${name}, got some computed without it`)
}
