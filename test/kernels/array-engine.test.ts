/** Many arrays on threads: the same bits as alone, bounded, and nothing left behind. */

import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  type ArrayInput,
  allocate,
  createEngine,
  type Moments,
  moments,
  type ReducedArray,
  ThreadError,
  UsageError,
} from '#dist/kernels.js'
import { ROOT } from '../support/golden.js'

const bitsOf = ({ dtype, row }: Moments): string =>
  `${dtype} ${Buffer.from(row.buffer, row.byteOffset, row.byteLength).toString('hex')}`

function wave(length: number): Float32Array<ArrayBuffer> {
  const array = new Float32Array(length)
  for (let i = 0; i < length; i++) array[i] = ((i * 7919) % 1009) - 500
  return array
}

async function all(reduced: AsyncIterable<ReducedArray>): Promise<ReducedArray[]> {
  const found: ReducedArray[] = []
  for await (const one of reduced) found.push(one)
  return found
}

function sharedWave(length: number): Float32Array {
  const shared = new Float32Array(new SharedArrayBuffer(4 * length))
  shared.set(wave(length))
  return shared
}

/** Of every kind; some are cut into parts, of which one has three. */
function arrays(): ArrayInput[] {
  const allocated = allocate('float64', 5000)
  allocated.set(Float64Array.from({ length: 5000 }, (_, i) => i))
  return [
    new Float32Array(0),
    wave(9_000_000),
    ...Array.from({ length: 3000 }, (_, i) => wave(i % 7)),
    allocated,
    sharedWave(5_000_000),
    { data: wave(10_000), shape: [100, 100], stride: [1, 100] },
    { data: wave(10_000).buffer, dtype: 'bfloat16' },
    BigInt64Array.of(1n, -(2n ** 63n)),
  ]
}

describe.each([0, 1, 2])('on %i threads', threads => {
  it('has the bits that each array has alone', async () => {
    const engine = createEngine({ threads })
    const given = arrays()
    const found = await all(engine.momentsOf(given))
    expect(found.map(one => bitsOf(one.moments))).toEqual(given.map(array => bitsOf(moments(array))))
    expect(found.every(({ buffer }) => buffer === undefined)).toBe(true)
    await engine.close()
  })

  it('moves buffers there and back', async () => {
    const engine = createEngine({ threads })
    const given = [wave(9_000_000), wave(10), wave(20).subarray(10), sharedWave(10), wave(0)]
    const expected = given.map(array => bitsOf(moments(array)))
    const found = await all(engine.momentsOf(given, { transfer: true }))
    expect(found.map(one => bitsOf(one.moments))).toEqual(expected)
    // Parts of a buffer are copied, and what is shared stays where it is.
    expect(found.map(({ buffer }) => buffer?.byteLength)).toEqual([36_000_000, 40, undefined, undefined, 0])
    expect(given.map(({ length }) => length)).toEqual(threads === 0 ? [9_000_000, 10, 10, 10, 0] : [0, 0, 10, 10, 0])
    expect(new Float32Array(found[1]!.buffer!)).toEqual(wave(10))
    await engine.close()
  })

  it('takes arrays only as fast as they are reduced', async () => {
    const engine = createEngine({ threads })
    let taken = 0
    function* many(): Generator<Float32Array> {
      for (;;) {
        taken++
        yield new Float32Array(2 << 20)
      }
    }
    let count = 0
    for await (const _ of engine.momentsOf(many(), { reductions: ['max'] })) {
      expect(taken - count).toBeLessThanOrEqual(2 * threads + 2)
      if (++count === 20) break
    }
    await engine.close()
  })

  it('stops at a signal, at a bad array, and when it is closed', async () => {
    const engine = createEngine({ threads })
    const controller = new AbortController()
    const lists = engine.momentsOf(
      (function* () {
        for (;;) yield new Float32Array(2 << 20)
      })(),
      { signal: controller.signal },
    )
    await lists.next()
    controller.abort()
    await expect(all(lists)).rejects.toThrow('aborted')
    await expect(all(engine.momentsOf([new Float32Array(1), 'x' as never]))).rejects.toThrow(UsageError)
    // Still of use.
    expect(await all(engine.momentsOf([new Float32Array(1)]))).toHaveLength(1)
    await engine.close()
    await expect(all(engine.momentsOf([new Float32Array(1)]))).rejects.toThrow(ThreadError)
    await engine.close()
  })
})

it('does not take what belongs to somebody else', async () => {
  const engine = createEngine({ threads: 1 })
  const buffer = new ArrayBuffer(8)
  const floats = new Float32Array(buffer)
  const both = await all(engine.momentsOf([floats, { data: buffer, dtype: 'float64' }], { transfer: true }))
  expect(both.map(({ moments, buffer }) => [moments.count, buffer?.byteLength])).toEqual([
    [2, 8],
    [1, 8],
  ])
  await expect(all(engine.momentsOf([floats], { transfer: true }))).rejects.toThrow('a detached one')
  const allocated = allocate('int8', 10)
  expect(await all(engine.momentsOf([allocated], { transfer: true }))).toHaveLength(1)
  expect(allocated.length).toBe(10)
  await engine.close()
})

it('refuses to move the memory of a WebAssembly instance', async () => {
  const engine = createEngine({ threads: 1 })
  const memory = new WebAssembly.Memory({ initial: 1 })
  const floats = new Float32Array(memory.buffer)
  const refused = all(engine.momentsOf([floats], { transfer: true }))
  await expect(refused).rejects.toThrow(UsageError)
  await expect(refused).rejects.toThrow('engine.momentsOf: expected buffers that can be moved')
  // It is as it was, and may be copied.
  expect(floats.length).toBe(16384)
  expect(await all(engine.momentsOf([floats]))).toHaveLength(1)
  await engine.close()
})

it('does not keep the process alive', () => {
  const code = `
    const { createEngine } = await import(${JSON.stringify(join(ROOT, 'dist/bundle/kernels.js'))})
    for await (const { moments } of createEngine({ threads: 2 }).momentsOf([new Float32Array(9)])) console.log(moments.count)`
  expect(
    execFileSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8', timeout: 60_000 }),
  ).toBe('9\n')
})

it('refuses what it can not do', async () => {
  for (const threads of [-1, 0.5, 1025, '2' as never]) expect(() => createEngine({ threads })).toThrow(UsageError)
  expect(() => createEngine({ thraeds: 2 } as object)).toThrow('did you mean "threads"?')
  const engine = createEngine({ threads: 0 })
  await expect(all(engine.momentsOf(new Float32Array(2) as never))).rejects.toThrow(
    'expected arrays in a list, got one array',
  )
  await expect(all(engine.momentsOf(5 as never))).rejects.toThrow('expected arrays in a list, got 5')
  await expect(all(engine.momentsOf([], { transfer: 1 as never }))).rejects.toThrow(
    'transfer to be true or false, got 1',
  )
  await expect(all(engine.momentsOf([], { reductions: ['p95' as never] }))).rejects.toThrow('the name of a reduction')
})
