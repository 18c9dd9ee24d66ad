/** Floats of eight and four bits in trials: recorded from files, read, reduced, compared and written for numpy. */

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parquetReadObjects } from 'hyparquet'
import { afterAll, beforeAll, describe, expect, expectTypeOf, it } from 'vitest'
import { readNpy } from '#dist/format/array/npy.js'
import { readSafetensors } from '#dist/format/array/safetensors.js'
import { sourceOf } from '#dist/format/array/source.js'
import {
  closePools,
  createTrial,
  createWriter,
  diff,
  npyChunks,
  recordStream,
  type Trial,
  type ValueOf,
  verifyTrial,
} from '#dist/index.js'
import { along, histogram, percentiles, reduce } from '#dist/kernels.js'
import { trialscan } from './cli/run.js'
import { bitsOf, decodeAll, SMALL_FLOATS, type SmallFloat } from './oracle/small-floats.js'
import { rowsOf } from './support/scanning.js'
import { scratchDirectory } from './support/scratch.js'

const scratch = scratchDirectory('small-floats')
afterAll(closePools)

const NAMES: Readonly<Record<string, SmallFloat>> = {
  F8_E4M3: 'float8_e4m3fn',
  F8_E5M2: 'float8_e5m2',
  F8_E4M3FNUZ: 'float8_e4m3fnuz',
  F8_E5M2FNUZ: 'float8_e5m2fnuz',
  F8_E8M0: 'float8_e8m0fnu',
  F4: 'float4_e2m1fn',
  E8M0: 'float8_e8m0fnu',
  UE8: 'float8_e8m0fnu',
  FP4: 'float4_e2m1fn',
}
const SHAPE = [5, 6]
const COUNT = 30
const bytesFor = (dtype: SmallFloat, count: number): number => Math.ceil((count * bitsOf(dtype)) / 8)
/** Finite elements of every type. */
const bytesOf = (dtype: SmallFloat, count = COUNT, from = 0): Uint8Array =>
  Uint8Array.from({ length: bytesFor(dtype, count) }, (_, i) => (((i + from) * 37) % 0x78) + 4)

/** A safetensors file of a tensor of each type, under the type's name in such files. */
function safetensors(from = 0): Buffer {
  const header: Record<string, object> = {}
  const parts: Uint8Array[] = []
  let at = 0
  for (const [name, dtype] of Object.entries(NAMES)) {
    const bytes = bytesOf(dtype, COUNT, from)
    header[name] = { dtype: name, shape: SHAPE, data_offsets: [at, at + bytes.length] }
    parts.push(bytes)
    at += bytes.length
  }
  const text = Buffer.from(JSON.stringify(header))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(text.length))
  return Buffer.concat([length, text, ...parts])
}

async function recorded(name: string, from = 0): Promise<string> {
  const [file, path] = [join(scratch, `${name}.safetensors`), join(scratch, name)]
  writeFileSync(file, safetensors(from))
  const report = await recordStream([Buffer.from(`{"step": 3}\n${JSON.stringify({ file })}\n`)], path)
  expect(report).toMatchObject({ savedTensors: Object.keys(NAMES).length, problemCount: 0 })
  return path
}

describe('a trial of a safetensors file', () => {
  let path: string
  let trial: Trial

  beforeAll(async () => {
    path = await recorded('a')
    trial = await createTrial(path)
  })

  it.each(Object.entries(NAMES))('has %s as %s', async (name, dtype) => {
    const bytes = bytesOf(dtype)
    const numbers = decodeAll(dtype, bytes, COUNT)
    const value = await trial.tensor(name).value(3)
    expect(value).toMatchObject({ dtype, shape: SHAPE })
    expect(value.data).toBeInstanceOf(Float32Array)
    expect([...(value.data as Float32Array)]).toEqual([...numbers])
    expect([...value.bytes]).toEqual([...bytes])
    expect(value.bits).toEqual(bitsOf(dtype) === 8 ? bytes : undefined)
    expect(value.item(2, 3)).toBe(numbers[15])
    for (const part of [value.slice(1), value.slice(null, 3), value.slice(null, [1, 6, 2]), value.slice([4, 0, -3])]) {
      const wanted = (part.toNested() as readonly unknown[]).flat(2)
      const count = part.shape.reduce((product, size) => product * size, 1)
      expect([...decodeAll(dtype, part.bytes, count)]).toEqual(wanted)
      expect(part.bytes.length).toBe(bytesFor(dtype, count))
      expect(reduce(part, 'l2')).toBe(reduce(Float32Array.from(wanted as number[]), 'l2'))
    }
    const lines = along({ data: Float64Array.from(numbers), shape: SHAPE }, 'mean', 0)
    expect((await trial.tensor(name).along(3, 'mean', 0)).data).toEqual(lines.data)

    const reductions = ['min', 'mean', 'std', 'abs_max', 'zero_count', 'p10', 'p50', '~p50', 'histogram:4'] as const
    const [row] = await rowsOf(trial, { tensors: [name], reductions })
    expect(row).toMatchObject({ dtype, shape: SHAPE })
    for (const reduction of ['min', 'mean', 'std', 'abs_max', 'zero_count'] as const) {
      expect(row!.reductions[reduction]).toBe(reduce(numbers, reduction))
    }
    expect([row!.reductions.p10, row!.reductions.p50]).toEqual(percentiles(numbers, [10, 50]))
    expect(row!.reductions['histogram:4']).toEqual(histogram(numbers, 4))
    expect(row!.reductions['~p50']).toBeCloseTo(row!.reductions.p50 as number, 0)
  })

  it('has the values of the file, which is a checkpoint', async () => {
    const checkpoint = await createTrial(join(scratch, 'a.safetensors'))
    const reductions = ['min', 'std', 'zero_count', 'p50'] as const
    const rows = async (of: Trial) =>
      new Map((await rowsOf(of, { reductions })).map(row => [row.tensor, [row.dtype, row.shape, row.reductions]]))
    expect(await rows(checkpoint)).toEqual(await rows(trial))
    for (const [name, dtype] of Object.entries(NAMES)) {
      const value = await checkpoint.tensor(name).value(0)
      expect([value.dtype, [...(value.data as Float32Array)]]).toEqual([
        dtype,
        [...decodeAll(dtype, bytesOf(dtype), COUNT)],
      ])
    }
  })

  it('is whole', async () => {
    expect((await verifyTrial(path, { deep: true })).problems.filter(({ severity }) => severity !== 'note')).toEqual([])
  })

  it('is compared with another, element by element', async () => {
    const other = await createTrial(await recorded('b', 1))
    const count = Object.keys(NAMES).length
    expect(await diff(trial, trial)).toMatchObject({ compared: count, equal: count })
    const { equal, close, differences, problems } = await diff(trial, other, { keepDifferences: true })
    expect([equal, close, problems]).toEqual([0, 0, []])
    for (const { tensor, element, difference } of differences) {
      const dtype = NAMES[tensor]!
      const [a, b] = [0, 1].map(from => decodeAll(dtype, bytesOf(dtype, COUNT, from), COUNT)) as [
        Float32Array,
        Float32Array,
      ]
      const apart = a.map((x, i) => Math.abs(x - b[i]!))
      expect(element).toEqual([0, 0])
      expect(difference).toMatchObject({
        dtype,
        maxAbsolute: Math.max(...apart),
        unequalCount: apart.filter(x => x > 0).length,
      })
      expect(difference!.maxUlps!).toBeGreaterThan(0)
    }
    expect(differences.length).toBe(count)
  })

  it('is told with its dtypes, and written for numpy as bits', async () => {
    const listed = await trialscan('ls', path, '--format', 'json')
    for (const { name, dtype } of JSON.parse(listed.stdout).tensors) expect([name, dtype]).toEqual([name, NAMES[name]])
    const [scanned, parquet] = [await trialscan('scan', path, '--format', 'csv'), join(scratch, 'x.parquet')]
    for (const dtype of SMALL_FLOATS) expect(scanned.stdout).toContain(`,${dtype},`)
    expect((await trialscan('scan', path, '--out', parquet)).code).toBe(0)
    const table = await parquetReadObjects({ file: new Uint8Array(readFileSync(parquet)).buffer })
    expect(table.map(({ tensor, dtype }) => [tensor, dtype])).toEqual(Object.entries(NAMES))
    for (const [name, dtype] of Object.entries(NAMES).slice(0, 6)) {
      const file = join(scratch, `${name}.npy`)
      const { code, stderr } = await trialscan('show', path, name, '--step', '3', '--out', file)
      expect([code, stderr]).toEqual([0, expect.stringContaining(`numpy has no ${dtype}: its bits are there as uint8`)])
      const bytes = readFileSync(file)
      const array = readNpy(sourceOf(file, bytes), dtype)
      expect({ ...array, data: [...array.data] }).toEqual({ dtype, shape: SHAPE, data: [...bytesOf(dtype)] })
      expect(readNpy(sourceOf(file, bytes))).toMatchObject({
        dtype: 'uint8',
        shape: dtype === 'float4_e2m1fn' ? [5, 3] : SHAPE,
      })
    }
    const dumped = await trialscan('dump', path, '--out', join(scratch, 'dumped'))
    for (const dtype of SMALL_FLOATS) expect(dumped.stderr).toContain(`numpy has no ${dtype}`)
    expect(readFileSync(join(scratch, 'dumped/index.jsonl'), 'utf8')).toContain('"dtype":"float8_e5m2","shape":[5,6]')
  })
})

describe('elements of four bits', () => {
  const dtype = 'float4_e2m1fn'

  it('are streamed in parts, of an odd number too', async () => {
    const path = join(scratch, 'large')
    // More than a part, and more than is read at once.
    const count = 36_000_001
    const bytes = new Uint8Array((count + 1) / 2)
    for (let i = 0; i < bytes.length; i++) bytes[i] = (i * 37 + (i >> 10)) & 0xff
    // The half that holds none.
    bytes[bytes.length - 1]! |= 0xf0
    const writer = await createWriter(path, { saveConfig: { saveInterval: 1 } })
    await writer.step({ step: 0, saveAll: true })
    await writer.save('x', { data: bytes, dtype, shape: [count] })
    await writer.close()
    const table = decodeAll(
      dtype,
      Uint8Array.from({ length: 8 }, (_, i) => 2 * i + 16 * (2 * i + 1)),
      16,
    )
    let [sum, zeros] = [0, 0]
    for (let i = 0; i < count; i++) {
      const x = table[(bytes[i >> 1]! >> (4 * (i & 1))) & 15]!
      sum += x
      zeros += x === 0 ? 1 : 0
    }
    for (const memory of [4 << 20, 64 << 20]) {
      const trial = await createTrial(path, { threads: 0 })
      const [row] = await rowsOf(trial, { reductions: ['sum', 'count', 'zero_count', 'max'], memory })
      expect(row!.reductions).toEqual({ sum, count, zero_count: zeros, max: 6 })
      const value = await trial.tensor('x').value(0, { memory })
      expect([value.data.length, Buffer.compare(value.bytes, bytes)]).toEqual([count, 0])
      expect(value.data[count - 1]).toBe(table[bytes[bytes.length - 1]! & 15])
    }
  })

  it('are odd in a file only where numpy is told so', async () => {
    const value = { dtype, shape: [3], stride: [1], offset: 0, bytes: Uint8Array.of(0x21, 0x03) } as const
    const file = Buffer.concat([...npyChunks({ ...value, data: Float32Array.of(0.5, 1, 1.5) })])
    expect(readNpy(sourceOf('x', file))).toMatchObject({ dtype: 'uint8', shape: [2] })
    const header = '{"x":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}}'
    const length = Buffer.alloc(8)
    length.writeBigUInt64LE(BigInt(header.length))
    const odd = Buffer.concat([length, Buffer.from(header), Buffer.alloc(2)])
    const first = await readSafetensors(sourceOf('x', odd)).next()
    expect(String(first.value?.[1])).toContain('expected elements that fill whole bytes')
  })
})

it('types tell what elements are', () => {
  expectTypeOf<ValueOf<'float8_e5m2'>['data']>().toEqualTypeOf<Float32Array>()
  expectTypeOf<NonNullable<ValueOf<'float8_e5m2'>['bits']>>().toEqualTypeOf<Uint8Array>()
  expectTypeOf<ValueOf<'float4_e2m1fn'>['bits']>().toEqualTypeOf<undefined>()
})
