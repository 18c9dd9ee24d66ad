/** What quantisation did to weights, beside plain loops over dequantised elements. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { isScale, otherQuantisation, quantisedTensors } from '#dist/compare/quantised/names.js'
import { type DifferenceAt, diff } from '#dist/index.js'
import { numbersOf } from '../support/checkpoint-files.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('quantised')

type Stored = readonly [dtype: string, shape: readonly number[], data: ArrayLike<number>]
const f32 = (shape: readonly number[], data: ArrayLike<number>): Stored => ['F32', shape, data]
const e4m3 = (shape: readonly number[], data: ArrayLike<number>): Stored => ['F8_E4M3', shape, data]
const u8 = (shape: readonly number[], data: ArrayLike<number>): Stored => ['U8', shape, data]

const E4M3 = numbersOf(
  'float8_e4m3fn',
  Uint8Array.from({ length: 256 }, (_, byte) => byte),
)

function bytesOf([dtype, , data]: Stored): Buffer {
  if (dtype === 'F32') return Buffer.from(Float32Array.from(data).buffer)
  if (dtype === 'F64') return Buffer.from(Float64Array.from(data).buffer)
  if (dtype === 'U8') return Buffer.from(Uint8Array.from(data))
  return Buffer.from(Array.from(data, number => E4M3.findIndex(one => Object.is(one, number))))
}

let written = 0

function checkpoint(tensors: Readonly<Record<string, Stored>>): string {
  const header: Record<string, unknown> = {}
  const pieces: Buffer[] = []
  let at = 0
  for (const [tensor, stored] of Object.entries(tensors)) {
    const bytes = bytesOf(stored)
    header[tensor] = { dtype: stored[0], shape: stored[1], data_offsets: [at, at + bytes.length] }
    at += bytes.length
    pieces.push(bytes)
  }
  const text = Buffer.from(JSON.stringify(header))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(text.length))
  const path = join(scratch, `${written++}.safetensors`)
  writeFileSync(path, Buffer.concat([length, text, ...pieces]))
  return path
}

/** What `diff` finds of a weight `x.weight` beside tensors that stand for it, in either order. */
async function found(weight: Stored, tensors: Readonly<Record<string, Stored>>, isFirst = true): Promise<DifferenceAt> {
  const paths = [checkpoint({ 'x.weight': weight }), checkpoint(tensors)]
  const { differences, missing, areCheckpoints } = await diff(
    ...((isFirst ? paths : paths.reverse()) as [string, string]),
  )
  expect([differences.length, missing, areCheckpoints]).toEqual([1, 0, true])
  return differences[0]!
}

const scaled = (codes: Stored, scale: Stored) => ({ 'x.weight': codes, 'x.weight_scale': scale })

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
      form: 'scaled',
      weight: 'a.weight',
      scale: 'a.weight_scale_inv',
    })
    expect(quantisedTensors('a.weight', names('a.weight', 'a.weight_scale', 'a.weight_scale_2'))).toMatchObject({
      form: 'nvfp4',
      outer: { name: 'a.weight_scale_2', divides: false },
    })
    expect(quantisedTensors('a.weight', names('a.weight_packed', 'a.weight_scale'))).toBeNull()
    expect(
      quantisedTensors('a.weight', names('a.weight_packed', 'a.weight_scale', 'a.weight_global_scale')),
    ).toMatchObject({ form: 'nvfp4', weight: 'a.weight_packed', outer: { divides: true } })
    expect(quantisedTensors('a.proj', names('a.proj_blocks', 'a.proj_scales'))).toEqual({
      form: 'mxfp4',
      weight: 'a.proj_blocks',
      scale: 'a.proj_scales',
    })
    expect(quantisedTensors('a.weight', names('a.weight', 'b.weight_scale'))).toBeNull()
  })

  it('tell what is not compared', () => {
    expect(otherQuantisation('a.weight', names('a.qweight', 'a.qzeros', 'a.g_idx'))).toBe('GPTQ')
    expect(otherQuantisation('a.weight', names('a.qweight', 'a.qzeros'))).toBe('GPTQ or AWQ')
    expect(otherQuantisation('a.weight', names('a.weight', 'a.weight.absmax'))).toBe('bitsandbytes')
    expect(otherQuantisation('a.weight', names('a.weight', 'a.SCB'))).toBe('bitsandbytes')
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
  type BlockOf = (row: number, column: number) => number
  const shapes: readonly (readonly [string, readonly number[], readonly number[], BlockOf, string])[] = [
    ['one', [6, 10], [], () => 0, 'one scale'],
    ['one in an array', [6, 10], [1], () => 0, 'one scale'],
    ['of rows', [6, 10], [6], row => row, 'a scale per row'],
    ['of rows, as a column', [6, 10], [6, 1], row => row, 'a scale per row'],
    ['of blocks', [40, 70], [2, 3], (row, column) => (row >> 5) * 3 + (column >> 5), 'a scale per 32 × 32 block'],
    ['of odd rows', [5, 7], [2, 2], (row, column) => (row >> 2) * 2 + (column >> 2), 'a scale per 4 × 4 block'],
    // As many scales as rows, and no scales of rows.
    ['of as many blocks as rows', [4, 64], [1, 4], (_, column) => column >> 4, 'a scale per 4 × 16 block'],
    // Rows of blocks that end amid the pieces that are read.
    ['of many', [700, 300], [6, 3], (row, column) => (row >> 7) * 3 + (column >> 7), 'a scale per 128 × 128 block'],
  ]

  it.each(shapes)('%s', async (_, shape, scaleShape, blockOf, scheme) => {
    const next = random(7)
    const [rows, columns] = shape as [number, number]
    const codes = Float32Array.from({ length: rows * columns }, () => Math.round(next() * 16) / 2 + 0)
    const count = scaleShape.reduce<number>((product, size) => product * size, 1)
    const scales = Float32Array.from({ length: count }, (_, i) => 0.25 + i / 8)
    const b = codes.map((code, i) => code * scales[blockOf(Math.floor(i / columns), i % columns)]!)
    const a = Float32Array.from(b, one => one + next() / 10)
    const { kind, quantised } = await found(f32(shape, a), scaled(e4m3(shape, codes), f32(scaleShape, scales)))
    expect([kind, quantised!.scheme]).toEqual(['quantised', `float8_e4m3fn, ${scheme}`])
    expect(quantised!.normalisedError / naive(a, b)).toBeCloseTo(1, 9)
    expect(quantised!.sqnr).toBeCloseTo(-10 * Math.log10(naive(a, b)), 9)
    const farthest = a.reduce((most, one, i) => Math.max(most, Math.abs(one - b[i]!)), 0)
    expect(quantised!.maxAbsolute).toBeCloseTo(farthest, 12)
    const dot = (x: Float32Array, y: Float32Array) => x.reduce((sum, one, i) => sum + one * y[i]!, 0)
    expect(quantised!.cosine).toBeCloseTo(dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b)), 9)
  })

  it('of several matrices, each with blocks of its own', async () => {
    const shape = [2, 6, 4]
    const codes = e4m3(shape, new Float32Array(48).fill(2))
    const scales = f32([2, 2, 1], [1, 2, 4, 8])
    const b = Float32Array.from(
      { length: 48 },
      (_, i) => 2 * [1, 2, 4, 8][Math.floor(i / 24) * 2 + ((i >> 2) % 6 >= 4 ? 1 : 0)]!,
    )
    const equal = await diff(checkpoint({ 'x.weight': f32(shape, b) }), checkpoint(scaled(codes, scales)))
    expect([equal.compared, equal.equal, equal.differences.length]).toEqual([1, 1, 0])
    b[47]! += 8
    expect((await found(f32(shape, b), scaled(codes, scales))).quantised!.worstBlock.index).toEqual([3, 0])
  })

  it('are of weights that one run alone has quantised, whatever else is quantised in the other', async () => {
    const shape = [2, 2]
    const [codes, scale] = [e4m3(shape, [1, 2, 3, 4]), f32([], [0.5])]
    const floats = f32(shape, [0.5, 1, 1.5, 3])
    const fp8 = (name: string) => ({
      [`${name}.weight`]: codes,
      [`${name}.weight_scale`]: scale,
      [`${name}.input_scale`]: scale,
    })
    const cache = { 'attn.k_scale': scale }
    const a = checkpoint({ ...cache, ...fp8('x'), ...fp8('both'), 'y.weight': floats })
    const b = checkpoint({ ...cache, ...fp8('y'), ...fp8('both'), 'x.weight': floats })
    const { differences, missing, stored, compared } = await diff(a, b)
    expect(differences.map(({ tensor, kind, quantised }) => [tensor, kind, quantised?.maxAbsolute]).sort()).toEqual([
      ['x.weight', 'quantised', 1],
      ['y.weight', 'quantised', 1],
    ])
    // The cache's scale, and of what both have quantised the codes and two scales.
    expect([missing, stored, compared]).toEqual([0, 1, 6])
    const plain = checkpoint({ ...cache, 'x.weight': floats, 'y.weight': floats, 'both.weight': floats })
    for (const pair of [
      [a, plain],
      [plain, a],
    ] as const) {
      const told = await diff(...pair)
      expect([told.differences.map(({ kind }) => kind), told.missing, told.equal]).toEqual([
        ['quantised', 'quantised'],
        0,
        2,
      ])
    }
  })

  it('are told where they do not fit', async () => {
    const codes = e4m3([6, 10], new Float32Array(60))
    const weight = f32([6, 10], new Float32Array(60))
    const { kind, message } = await found(weight, scaled(codes, f32([5], [1, 2, 3, 4, 5])))
    expect([kind, message]).toEqual(['shape', "scales of float32 [5] don't fit numbers of float8_e4m3fn [6,10]"])
    const turned = await found(f32([10, 6], new Float32Array(60)), scaled(codes, f32([], [1])))
    expect(turned.message).toBe('the weights are [10,6], what they were quantised to is [6,10]')
  })

  it('leave elements at the largest number, and none that are not finite', async () => {
    const codes = e4m3([2, 2], [448, -448, 1, 0])
    const { quantised } = await found(f32([2, 2], [500, -224, Number.NaN, 0]), scaled(codes, f32([], [0.5])))
    expect(quantised).toMatchObject({ saturated: 0.5, notFinite: 1, maxAbsolute: 276 })
  })

  it('of weights whose squares are beyond float64', async () => {
    const weight: Stored = ['F64', [1, 2], [1e200, 1]]
    const { quantised } = await found(weight, scaled(e4m3([1, 2], [0, 1]), f32([], [1])))
    expect(quantised).toMatchObject({ notFinite: 0, maxAbsolute: 1e200 })
  })
})

describe('what other libraries store', () => {
  const codes = u8([2, 2], [1, 2, 3, 4])
  const one = f32([1], [1])
  const stored: readonly (readonly [string, readonly string[], boolean])[] = [
    ['GPTQ', ['qweight', 'qzeros', 'scales', 'g_idx'], false],
    ['GPTQ or AWQ', ['qweight', 'qzeros', 'scales'], false],
    [
      'bitsandbytes',
      ['absmax', 'quant_map', 'nested_absmax', 'nested_quant_map', 'quant_state.bitsandbytes__nf4'].map(
        name => `weight.${name}`,
      ),
      true,
    ],
    ['bitsandbytes', ['SCB', 'weight_format'], true],
    ['compressed-tensors', ['weight_packed', 'weight_scale', 'weight_shape', 'weight_zero_point'], false],
  ]

  it.each(stored)('of %s is not compared, and told by its weights: %s', async (by, parts, hasWeight) => {
    const norm = { 'norm.weight': f32([2], [1, 2]) }
    const tensors = {
      ...norm,
      ...(hasWeight && { 'h.0.fc.weight': codes }),
      ...Object.fromEntries(parts.map(name => [`h.0.fc.${name}`, one])),
    }
    const paths = [
      checkpoint({ ...norm, 'h.0.fc.weight': f32([2, 4], new Float32Array(8)) }),
      checkpoint(tensors),
    ] as const
    for (const [a, b] of [paths, [paths[1], paths[0]] as const]) {
      const told: (readonly string[])[] = []
      const found = await diff(a, b, { onNotCompared: ({ tensor, message }) => told.push([tensor, message]) })
      expect([found.divergence, found.compared, found.equal, found.missing]).toEqual([null, 1, 1, 1])
      expect(told).toEqual([['h.0.fc.weight', `quantised by ${by}, which is not compared`]])
    }
    // A norm that changed is told as between any two checkpoints.
    const moved = checkpoint({ ...tensors, 'norm.weight': f32([2], [1, 3]) })
    expect(await diff(paths[0], moved)).toMatchObject({ areCheckpoints: true, compared: 1, missing: 1 })
  })
})

describe('four bits', () => {
  const E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0, -0.5, -1, -1.5, -2, -3, -4, -6]
  const numberAt = (bytes: Uint8Array, i: number) => E2M1[i % 2 === 0 ? bytes[i >> 1]! & 15 : bytes[i >> 1]! >> 4]!

  it.each([
    ['x.weight', 'x.weight_scale_2', 0.5, true],
    ['x.weight_packed', 'x.weight_global_scale', 2, true],
    ['x.weight_packed', 'x.weight_global_scale', 2, false],
  ])('of NVFP4 in %s, %s', async (name, outer, whole, isFirst) => {
    const bytes = Uint8Array.from({ length: 32 }, (_, i) => (i * 37) % 256)
    const scales = [1, 2, 0.5, 4]
    const tensors = { [name]: u8([2, 16], bytes), 'x.weight_scale': e4m3([2, 2], scales), [outer]: f32([], [whole]) }
    const moved = Float32Array.from({ length: 64 }, (_, i) => numberAt(bytes, i) * scales[i >> 4]! * 0.5)
    const b = moved.slice()
    moved[50]! += 1
    const { quantised } = await found(f32([2, 32], moved), tensors, isFirst)
    expect(quantised!.normalisedError).toBeCloseTo(naive(moved, b), 12)
    expect(quantised!.worstBlock.index).toEqual([1, 1])
    expect(quantised!.scheme).toBe('NVFP4, a scale per 16 elements')
  })

  it.each([true, false])('of MXFP4, weights first: %s', async isFirst => {
    const bytes = Uint8Array.from({ length: 64 }, (_, i) => (i * 11) % 256)
    const exponents = [127, 128, 126, 130]
    const moved = Float32Array.from({ length: 128 }, (_, i) => numberAt(bytes, i) * 2 ** (exponents[i >> 5]! - 127))
    const b = moved.slice()
    moved[100]! -= 2
    const tensors = { 'x.weight_blocks': u8([2, 2, 16], bytes), 'x.weight_scales': u8([2, 2], exponents) }
    const { quantised } = await found(f32([2, 64], moved), tensors, isFirst)
    expect(quantised!.normalisedError).toBeCloseTo(naive(moved, b), 12)
    expect(quantised!.worstBlock.index).toEqual([1, 1])
  })
})
