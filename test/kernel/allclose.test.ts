import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Element, isClose } from '../oracle/allclose.js'
import { COMPLEX, elementsOf, REAL } from '../oracle/moments.js'
import { loadCore } from '../support/core.js'

const { exports: core, memory } = loadCore()
core.arenaReset()
const CAPACITY = 16 * 8200
const A = core.arenaReserve(CAPACITY + 16) >>> 0
const B = core.arenaReserve(CAPACITY + 16) >>> 0

const DTYPES = [...Object.keys(REAL), ...Object.keys(COMPLEX)]
const isComplex = (dtype: string): dtype is keyof typeof COMPLEX => dtype in COMPLEX
const dtypeNumber = (dtype: string) => (isComplex(dtype) ? COMPLEX[dtype][0] : REAL[dtype]![0])
const sizeOf = (dtype: string) => (isComplex(dtype) ? 2 * REAL[COMPLEX[dtype][1]]![1] : REAL[dtype]![1])

interface Side {
  readonly dtype: string
  readonly bytes: Uint8Array
  readonly offset?: number
}
interface Options {
  readonly rtol: number
  readonly atol: number
  readonly equalNan: boolean
}

function apart(a: Side, b: Side, { rtol, atol, equalNan }: Options): number {
  const atA = A + (a.offset ?? 0)
  const atB = B + (b.offset ?? 0)
  const memoryBytes = new Uint8Array(memory.buffer)
  memoryBytes.set(a.bytes, atA)
  memoryBytes.set(b.bytes, atB)
  const count = a.bytes.length / sizeOf(a.dtype)
  return core.allclose(dtypeNumber(a.dtype), atA, dtypeNumber(b.dtype), atB, count, rtol, atol, equalNan ? 1 : 0)
}

function elements({ dtype, bytes }: Side): Element[] {
  const parts = elementsOf(dtype, bytes)
  if (!isComplex(dtype)) return parts
  return Array.from({ length: parts.length / 2 }, (_, i) => [parts[2 * i] as number, parts[2 * i + 1] as number])
}

function expected(a: Side, b: Side, options: Options): number {
  const single = a.dtype === 'float32' && b.dtype === 'float32'
  const y = elements(b)
  return elements(a).filter((x, i) => !isClose(x, y[i]!, options, single)).length
}

const float32 = (...values: number[]): Side => ({
  dtype: 'float32',
  bytes: new Uint8Array(Float32Array.from(values).buffer),
})
const DEFAULT: Options = { rtol: 1e-5, atol: 1e-8, equalNan: false }

const tolerances = fc.record({
  rtol: fc.constantFrom(0, 1e-5, 1e-3, 0.1, 1, 1e38, Infinity, -1e-3, NaN),
  atol: fc.constantFrom(0, 1e-8, 1e-3, 1, 100, Infinity, -1e-3, NaN),
  equalNan: fc.boolean(),
})
const floats = fc.oneof(
  fc.constantFrom(0, -0, 1, -1, Infinity, -Infinity, NaN, 1e-45, 3.4e38, -3.4e38, 1e-8, 100),
  fc.float(),
)

describe('allclose', () => {
  test.each([
    ['within the tolerance of b', [100.0005], [100], 0],
    ['beyond it', [100.01], [100], 1],
    ['zeros of either sign', [0, -0], [-0, 0], 0],
    ['infinities of the same sign', [Infinity, -Infinity], [Infinity, -Infinity], 0],
    ['infinities of different signs', [Infinity, -Infinity], [-Infinity, Infinity], 2],
    ['an infinity and a number', [Infinity, 1], [1, Infinity], 2],
    ['NaN', [NaN, NaN, 1], [NaN, 1, NaN], 3],
  ])('counts %s', (_, a, b, want) => {
    expect(apart(float32(...a), float32(...b), DEFAULT)).toBe(want)
  })

  test('takes NaN for equal when asked', () => {
    expect(apart(float32(NaN, NaN, 1), float32(NaN, 1, NaN), { ...DEFAULT, equalNan: true })).toBe(2)
  })

  test('measures by b alone', () => {
    const options = { rtol: 0.1, atol: 0, equalNan: false }
    expect(apart(float32(90), float32(100), options)).toBe(0)
    expect(apart(float32(100), float32(90), options)).toBe(1)
  })

  test('calls nothing close that has no numbers', () => {
    expect(core.allclose(7, A, 1, B, 5, 1, 1, 1)).toBe(5)
    expect(core.allclose(1, A, 0, B, 5, 1, 1, 1)).toBe(5)
  })

  test('of float32 rounds as float32 does', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(floats, floats, fc.boolean()), { maxLength: 70 }),
        tolerances,
        fc.integer({ min: 0, max: 15 }),
        (pairs, options, offset) => {
          const a = { ...float32(...pairs.map(pair => pair[0])), offset }
          // Half of them in the neighbourhood, where rounding decides
          const b = float32(...pairs.map(([x, y, near]) => (near ? x + Math.abs(x) * options.rtol : y)))
          expect(apart(a, b, options)).toBe(expected(a, b, options))
        },
      ),
      { numRuns: 1000 },
    )
  })

  test('of any two types, at any address', () => {
    const sides = fc.record({
      dtypeA: fc.constantFrom(...DTYPES),
      dtypeB: fc.constantFrom(...DTYPES),
      same: fc.boolean(),
      count: fc.oneof(fc.integer({ min: 0, max: 40 }), fc.constantFrom(1023, 1024, 1025, 2050, 4095, 4097, 8200)),
      offsetA: fc.integer({ min: 0, max: 15 }),
      offsetB: fc.integer({ min: 0, max: 15 }),
      pattern: fc.uint8Array({ minLength: 1, maxLength: 100 }),
      flips: fc.array(fc.nat(CAPACITY), { maxLength: 20 }),
    })
    fc.assert(
      fc.property(sides, tolerances, ({ dtypeA, same, count, offsetA, offsetB, pattern, flips, ...rest }, options) => {
        const dtypeB = same ? dtypeA : rest.dtypeB
        const fill = (dtype: string) =>
          Uint8Array.from({ length: count * sizeOf(dtype) }, (_, i) => pattern[i % pattern.length]!)
        const a = { dtype: dtypeA, bytes: fill(dtypeA), offset: offsetA }
        const b = { dtype: dtypeB, bytes: fill(dtypeB), offset: offsetB }
        for (const at of flips) if (at < b.bytes.length) b.bytes[at]! ^= 1 << (at & 7)
        expect(apart(a, b, options)).toBe(expected(a, b, options))
      }),
      { numRuns: 1500 },
    )
  })

  test('of small numbers in every pair of types', () => {
    const bytesOf = (dtype: string) => {
      const bytes = new Uint8Array(5 * sizeOf(dtype))
      const view = new DataView(bytes.buffer)
      for (let i = 0; i < 5; i++) {
        const at = i * sizeOf(dtype)
        const x = i % 2
        if (dtype === 'float64' || dtype === 'complex128') view.setFloat64(at, x, true)
        else if (dtype === 'float32' || dtype === 'complex64') view.setFloat32(at, x, true)
        else if (dtype === 'float16') view.setUint16(at, x * 0x3c00, true)
        else if (dtype === 'bfloat16') view.setUint16(at, x * 0x3f80, true)
        else view.setUint8(at, x)
      }
      return bytes
    }
    for (const a of DTYPES) {
      for (const b of DTYPES) {
        expect(apart({ dtype: a, bytes: bytesOf(a) }, { dtype: b, bytes: bytesOf(b) }, DEFAULT), `${a} ${b}`).toBe(0)
      }
    }
  })
})
