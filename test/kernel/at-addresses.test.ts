/** The engine's measures of elements in the core's memory: wherever these lie, and whatever was reserved meanwhile. */

import { describe, expect, it } from 'vitest'
import type { Address } from '#dist/core/border/memory.js'
import { Engine } from '#dist/core/engine.js'
import { elementBytes } from '../../fixtures/event-writer.js'

const A = [1, 2, 3, 4, 5, 6, 7, 8, 9]
const B = [1, 2, 3, 4, 5, 6, 7, 8, 19]
const TOLERANCE = { rtol: 0, atol: 0.5, equalNan: false }

function put(engine: Engine, values: readonly number[]): Address {
  const bytes = elementBytes('float32', values)
  const at = engine.reserveBytes(bytes.length)
  engine.view(at, bytes.length).set(bytes)
  return at
}

function measure(engine: Engine, a: Address, b: Address, counts: Address, sums: Address): unknown[] {
  engine.view(counts, 12).fill(0)
  engine.view(sums, 24).fill(0)
  engine.elements.countInside('float32', a, 3, 3, 1.5, 8.5, counts)
  engine.elements.sumChannels('float32', a, 1, 3, 3, sums)
  return [
    engine.elements.sumAbsDifference('float32', a, 'float32', b, 9),
    engine.elements.countNotCloseAt('float32', a, 'float32', b, 9, TOLERANCE),
    [...new Uint32Array(engine.view(counts, 12).slice().buffer)],
    engine.elements.countBelow(counts, 3, 3),
    engine.elements.countEqual('float32', a, 9, 4),
    [...new Float64Array(engine.view(sums, 24).slice().buffer)],
    engine.elements.percentiles('float32', b, 9, [50, 100]),
  ]
}

const WANT = [10, 1, [2, 3, 2], 2, 1, [6, 15, 24], [5, 19]]

describe('measures at addresses', () => {
  it('stay when memory grows', () => {
    const engine = new Engine()
    engine.reset()
    const [a, b] = [put(engine, A), put(engine, B)]
    const [counts, sums] = [engine.reserveBytes(12), engine.reserveBytes(24)]
    expect(measure(engine, a, b, counts, sums)).toEqual(WANT)
    const before = engine.byteLength
    engine.reserveBytes(before)
    expect(engine.byteLength).toBeGreaterThan(before)
    expect(measure(engine, a, b, counts, sums)).toEqual(WANT)
    // The room for the numbers that are ordered makes memory grow, too.
    const many = engine.byteLength >> 3
    const ones = engine.reserveBytes(many)
    engine.view(ones, many).fill(1)
    expect(engine.elements.percentiles('uint8', ones, many, [0, 50, 99.9])).toEqual([1, 1, 1])
    expect(measure(engine, a, b, counts, sums)).toEqual(WANT)
  })

  it('are the same beyond 2 GiB', () => {
    const engine = new Engine()
    engine.reset()
    engine.reserveBytes(0x81000000)
    const [a, b] = [put(engine, A), put(engine, B)]
    expect(a).toBeGreaterThan(2 ** 31)
    expect(measure(engine, a, b, engine.reserveBytes(12), engine.reserveBytes(24))).toEqual(WANT)
  })
})
