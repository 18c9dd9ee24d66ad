/** What a row of moments knows, and what it must not answer. */

import { describe, expect, it, test } from 'vitest'
import { Engine, KNOWN, type Known } from '#dist/engine/engine.js'
import { Moments, setFor } from '#dist/engine/moments.js'
import { QueryError } from '#dist/errors.js'
import { type DType, REDUCTIONS, type ReductionName } from '#dist/types.js'
import { elementBytes, encodeEvent, frameRecord } from '../../fixtures/event-writer.js'
import { loadCore } from '../support/core.js'

const SETS = Object.values(KNOWN)
const EXTREMES = ['min', 'max', 'abs_min', 'abs_max'] as const
const SUMS = ['mean', 'sum', 'l1', 'abs_mean', 'abs_sum', 'abs_l1'] as const
const REST = ['std', 'variance', 'prod', 'l2', 'abs_std', 'abs_variance', 'abs_prod', 'abs_l2'] as const

const engine = new Engine()

function momentsOf(dtype: DType, values: readonly number[], known: Known): Moments {
  const bytes = elementBytes(dtype as 'float32', values)
  engine.reset()
  const batch = engine.reserveBatch(1)
  const data = engine.reserveBytes(bytes.length)
  engine.view(data, bytes.length).set(bytes)
  engine.resetRow(batch)
  engine.addToRow(batch, dtype, data, values.length, 0, known)
  return new Moments(engine.layout.moments, dtype, engine.rows(batch, 1).slice())
}

test('the sets have the numbers of the core', () => {
  const { exports } = loadCore()
  expect(KNOWN).toEqual({
    extremes: exports.KNOWN_EXTREMES.value,
    sums: exports.KNOWN_SUMS.value,
    squares: exports.KNOWN_SQUARES.value,
    all: exports.KNOWN_ALL.value,
  })
})

describe('setFor', () => {
  it('is the smallest set that knows them all', () => {
    expect([...EXTREMES, ...SUMS, ...REST].sort()).toEqual([...REDUCTIONS].sort())
    for (const name of EXTREMES) expect(setFor([name])).toBe(KNOWN.extremes)
    for (const name of SUMS) expect(setFor([name, 'min'])).toBe(KNOWN.sums)
    for (const name of REST) {
      const set = name.endsWith('prod') ? KNOWN.all : KNOWN.squares
      expect(setFor(['abs_max', name, 'mean'])).toBe(set)
    }
    expect(setFor(REDUCTIONS)).toBe(KNOWN.all)
    expect(setFor([])).toBe(KNOWN.extremes)
  })
})

describe('moments', () => {
  const values = [3, -1, 0, 2, Number.NaN, Number.POSITIVE_INFINITY]

  it.each(['float32', 'float64', 'int64', 'uint8', 'complex64'] as const)('of %s answer what they know', dtype => {
    const finite = values.slice(0, 4).map(Math.abs)
    const all = momentsOf(dtype, finite, KNOWN.all)
    for (const known of SETS) {
      const moments = momentsOf(dtype, finite, known)
      expect(moments.exact).toEqual(all.exact)
      for (const name of REDUCTIONS) {
        expect(moments.knows(name)).toBe(setFor([name]) <= known)
        if (!moments.knows(name)) expectUnknown(moments, name)
        else if (!dtype.startsWith('complex') || name.startsWith('abs_')) {
          expect(moments.reduction(name)).toEqual(all.reduction(name))
        }
      }
    }
  })

  it.each(SETS)('of set %i count zeros, infinities and NaN', known => {
    const moments = momentsOf('float32', values, known)
    expect([moments.count, moments.zeroCount, moments.infinityCount, moments.nanCount]).toEqual([6, 1, 1, 1])
    expect(moments.reduction('max')).toBeNaN()
    if (known < KNOWN.all) expectUnknown(moments, 'prod')
  })

  it('of no elements know everything', () => {
    for (const known of SETS) expect(momentsOf('float32', [], known).reduction('prod')).toBe(1)
  })

  it('know after merging what all of them knew', () => {
    for (const a of SETS) {
      for (const b of SETS) {
        const rows = [momentsOf('float32', [1, 2], a).row, momentsOf('float32', [3], b).row]
        const merged = new Moments(engine.layout.moments, 'float32', engine.mergeRows(rows))
        expect(merged.slot('known')).toBe(Math.min(a, b))
        expect(merged.reduction('max')).toBe(3)
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
      const tags = engine.writeTags([])
      const batch = engine.reserveBatch(1)
      const address = engine.reserveBytes(length)
      engine.view(address, length).set(frame)
      const asked = () => ({ byteLength: length, tag: -1, step: -1 })
      engine.ask(batch, 1, tags, asked, () => ({ address, byteLength: length }))
      engine.scan(batch, 1, 2, known)
      const moments = new Moments(engine.layout.moments, 'float32', engine.rows(batch, 1))
      expect([moments.slot('known'), moments.count, moments.reduction('min')]).toEqual([known, 3, -7])
      expect(moments.slot('sum')).toBe(known === KNOWN.extremes ? Number.NaN : -9)
      expect(moments.slot('m2')).toBe(known >= KNOWN.squares ? 96 : Number.NaN)
    }
  })
})

function expectUnknown(moments: Moments, name: ReductionName): void {
  expect(() => moments.reduction(name)).toThrow(QueryError)
  expect(() => moments.reduction(name)).toThrow(`expected moments that know ${name}, got some that were made for less`)
}
