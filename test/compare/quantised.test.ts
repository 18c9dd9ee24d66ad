/** What quantisation did to weights, beside plain loops over dequantised elements. */

import { describe, expect, it } from 'vitest'
import {
  isScale,
  otherQuantisation,
  type QuantisedTensors,
  quantisationError,
  quantisedTensors,
  scaledOf,
} from '#dist/compare/quantised/error.js'
import type { TensorValue } from '#dist/index.js'

const value = (dtype: string, shape: readonly number[], data: ArrayLike<number>): TensorValue =>
  ({ dtype, shape, data }) as unknown as TensorValue
const f32 = (shape: readonly number[], data: ArrayLike<number>) => value('float32', shape, data)
const scaled: QuantisedTensors = { kind: 'scaled', weight: 'x.weight', scale: 'x.weight_scale' }
const random = (seed: number) => {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32 - 0.5
  }
}

/** Σ(a − b)² / Σa². */
function naive(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let [error, squares] = [0, 0]
  for (let i = 0; i < a.length; i++) {
    error += (a[i]! - b[i]!) ** 2
    squares += a[i]! ** 2
  }
  return error / squares
}

describe('names', () => {
  const names = (...given: string[]) => new Set(given)

  it('tell which tensors belong together', () => {
    expect(quantisedTensors('a.weight', names('a.weight', 'a.weight_scale_inv'))).toEqual({
      kind: 'scaled',
      weight: 'a.weight',
      scale: 'a.weight_scale_inv',
    })
    expect(quantisedTensors('a.weight', names('a.weight', 'a.weight_scale', 'a.weight_scale_2'))).toMatchObject({
      kind: 'nvfp4',
      outer: { name: 'a.weight_scale_2', divides: false },
    })
    expect(quantisedTensors('a.weight', names('a.weight_packed', 'a.weight_scale'))).toBeNull()
    expect(
      quantisedTensors('a.weight', names('a.weight_packed', 'a.weight_scale', 'a.weight_global_scale')),
    ).toMatchObject({ kind: 'nvfp4', weight: 'a.weight_packed', outer: { divides: true } })
    expect(quantisedTensors('a.proj', names('a.proj_blocks', 'a.proj_scales'))).toEqual({
      kind: 'mxfp4',
      weight: 'a.proj_blocks',
      scale: 'a.proj_scales',
    })
    expect(quantisedTensors('a.weight', names('a.weight', 'b.weight_scale'))).toBeNull()
  })

  it('tell what is not compared', () => {
    expect(otherQuantisation('a.weight', names('a.qweight', 'a.qzeros', 'a.g_idx'))).toBe('GPTQ')
    expect(otherQuantisation('a.weight', names('a.qweight', 'a.qzeros'))).toBe('GPTQ or AWQ')
    expect(otherQuantisation('a.weight', names('a.weight', 'a.weight.absmax'))).toBe('bitsandbytes')
    expect(otherQuantisation('a.weight', names('a.weight_packed', 'a.weight_scale'))).toBe('compressed-tensors')
    expect(otherQuantisation('a.weight', names('a.weight'))).toBeNull()
  })

  it('tell scales from weights', () => {
    const scales = ['a.weight_scale', 'a.weight_scale_inv', 'a.input_scale', 'attn.k_scale', 'a.proj_scales']
    expect(scales.filter(name => !isScale(name))).toEqual([])
    expect(['a.weight', 'upscale', 'a.scales.weight', 'layer_scale'].filter(isScale)).toEqual([])
  })
})

describe('scales', () => {
  const shapes = [
    ['one', [6, 10], [], () => 0, 'float8_e4m3fn, one scale'],
    ['one in an array', [6, 10], [1], () => 0, 'float8_e4m3fn, one scale'],
    ['of rows', [6, 10], [6], (row: number) => row, 'float8_e4m3fn, a scale per row'],
    ['of rows, as a column', [6, 10], [6, 1], (row: number) => row, 'float8_e4m3fn, a scale per row'],
    [
      'of blocks that the edges cut',
      [6, 10],
      [2, 3],
      (row: number, column: number) => (row >> 2 > 1 ? 1 : row >> 2) * 3 + (column >> 2),
      '',
    ],
    [
      'of blocks',
      [40, 70],
      [2, 3],
      (row: number, column: number) => (row >> 5) * 3 + (column >> 5),
      'float8_e4m3fn, a scale per 32 × 32 block',
    ],
  ] as const

  it.each(shapes.filter(([, , , , scheme]) => scheme !== ''))('%s', (_, shape, scaleShape, blockOf, scheme) => {
    const next = random(7)
    const [rows, columns] = shape
    const codes = Float32Array.from({ length: rows * columns }, () => Math.round(next() * 16) / 2)
    const count = scaleShape.reduce<number>((product, size) => product * size, 1)
    const scales = Float32Array.from({ length: count }, (_, i) => 0.25 + i / 8)
    const b = codes.map((code, i) => code * scales[blockOf(Math.floor(i / columns), i % columns)]!)
    const a = Float32Array.from(b, one => one + next() / 10)
    const found = quantisationError(
      f32(shape, a),
      scaledOf(scaled, value('float8_e4m3fn', shape, codes), f32(scaleShape, scales)),
    )
    expect(found.normalisedError / naive(a, b)).toBeCloseTo(1, 9)
    expect(found.sqnr).toBeCloseTo(-10 * Math.log10(naive(a, b)), 9)
    expect(found.scheme).toBe(scheme)
    expect(found.maxAbsolute).toBeCloseTo(Math.max(...a.map((one, i) => Math.abs(one - b[i]!))), 12)
  })

  it('of several matrices, each with blocks of its own', () => {
    const shape = [2, 6, 4]
    const codes = new Float32Array(48).fill(2)
    const scales = [1, 2, 4, 8]
    const b = codes.map((code, i) => code * scales[Math.floor(i / 24) * 2 + (Math.floor(i / 4) % 6 >= 4 ? 1 : 0)]!)
    const stored = scaledOf(scaled, value('float8_e4m3fn', shape, codes), f32([2, 2, 1], scales))
    expect(quantisationError(f32(shape, b), stored)).toMatchObject({ normalisedError: 0, sqnr: Infinity })
    b[47]! += 8
    expect(quantisationError(f32(shape, b), stored).worstBlock.index).toEqual([3, 0])
  })

  it('are told where they do not fit', () => {
    expect(() =>
      scaledOf(scaled, value('float8_e4m3fn', [6, 10], new Float32Array(60)), f32([5], [1, 2, 3, 4, 5])),
    ).toThrow("scales of float32 [5] don't fit numbers of float8_e4m3fn [6,10]")
    const stored = scaledOf(scaled, value('float8_e4m3fn', [6, 10], new Float32Array(60)), f32([], [1]))
    expect(() => quantisationError(f32([10, 6], new Float32Array(60)), stored)).toThrow(
      'the weights are [10,6], what they were quantised to is [6,10]',
    )
  })

  it('leave elements at the largest number, and none that are not finite', () => {
    const codes = [448, -448, 1, 0]
    const stored = scaledOf(scaled, value('float8_e4m3fn', [2, 2], Float32Array.from(codes)), f32([], [0.5]))
    const found = quantisationError(f32([2, 2], [500, -224, Number.NaN, 0]), stored)
    expect(found).toMatchObject({ saturated: 0.5, notFinite: 1, maxAbsolute: 276 })
  })
})

describe('four bits', () => {
  const E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0, -0.5, -1, -1.5, -2, -3, -4, -6]

  it.each([
    [false, 0.5],
    [true, 2],
  ])('of NVFP4, whose scale of all divides: %s', (divides, whole) => {
    const bytes = Uint8Array.from({ length: 32 }, (_, i) => (i * 37) % 256)
    const scales = [1, 2, 0.5, 4]
    const b = Array.from({ length: 64 }, (_, i) => {
      const byte = bytes[i >> 1]!
      return E2M1[i % 2 === 0 ? byte & 15 : byte >> 4]! * scales[i >> 4]! * 0.5
    })
    const tensors: QuantisedTensors = { kind: 'nvfp4', weight: 'w', scale: 's', outer: { name: 'o', divides } }
    const stored = scaledOf(tensors, value('uint8', [2, 16], bytes), value('float8_e4m3fn', [2, 2], scales), {
      value: f32([], [whole]),
      divides,
    })
    expect(quantisationError(f32([2, 32], b), stored).normalisedError).toBe(0)
    const moved = b.map((one, i) => (i === 50 ? one + 1 : one))
    const found = quantisationError(f32([2, 32], moved), stored)
    expect(found.normalisedError).toBeCloseTo(naive(moved, b), 12)
    expect(found.worstBlock.index).toEqual([1, 1])
    expect(found.scheme).toBe('NVFP4, a scale per 16 elements')
  })

  it('of MXFP4', () => {
    const bytes = Uint8Array.from({ length: 64 }, (_, i) => (i * 11) % 256)
    const exponents = Uint8Array.of(127, 128, 126, 130)
    const b = Array.from({ length: 128 }, (_, i) => {
      const byte = bytes[i >> 1]!
      return E2M1[i % 2 === 0 ? byte & 15 : byte >> 4]! * 2 ** (exponents[i >> 5]! - 127)
    })
    const stored = scaledOf(
      { kind: 'mxfp4', weight: 'w_blocks', scale: 'w_scales' },
      value('uint8', [2, 2, 16], bytes),
      value('uint8', [2, 2], exponents),
    )
    expect(quantisationError(f32([2, 64], b), stored).normalisedError).toBe(0)
  })
})
