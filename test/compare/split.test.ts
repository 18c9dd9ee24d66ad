/** Tensors that are one in a run and several in the other: compared part by part, as a map says. */

import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  createTrial,
  type DiffOptions,
  diff,
  reportHtml,
  type TensorMap,
  type TrialDiff,
  UsageError,
} from '#dist/index.js'
import { trialscan } from '../cli/run.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('split')

type Tensors = Readonly<Record<string, readonly [shape: readonly number[], data: Float32Array]>>

let written = 0

/** A directory with these tensors in files below it. */
function checkpoint(files: Readonly<Record<string, Tensors>>): string {
  const root = join(scratch, `${written++}`)
  for (const [path, tensors] of Object.entries(files)) {
    const header: Record<string, unknown> = {}
    const pieces: Buffer[] = []
    let at = 0
    for (const [name, [shape, data]] of Object.entries(tensors)) {
      header[name] = { dtype: 'F32', shape, data_offsets: [at, at + data.byteLength] }
      at += data.byteLength
      pieces.push(Buffer.from(data.buffer, data.byteOffset, data.byteLength))
    }
    const text = Buffer.from(JSON.stringify(header))
    const length = Buffer.alloc(8)
    length.writeBigUInt64LE(BigInt(text.length))
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), Buffer.concat([length, text, ...pieces]))
  }
  return root
}

const model = (tensors: Tensors) => checkpoint({ 'model.safetensors': tensors })

/** Numbers of which no two are the same. */
function numbers(rows: number, columns: number, first: number): readonly [readonly number[], Float32Array] {
  return [[rows, columns], Float32Array.from({ length: rows * columns }, (_, i) => first + i / 8)]
}

type Matrix = ReturnType<typeof numbers>

/** Rows of matrices, one after the other. */
function stacked(...matrices: readonly Matrix[]): Matrix {
  const columns = matrices[0]![0][1]!
  const all = matrices.flatMap(([, data]) => [...data])
  return [[all.length / columns, columns], Float32Array.from(all)]
}

const rowsOf = ([[, columns], data]: Matrix, from: number, to: number): Matrix => [
  [to - from, columns!],
  data.slice(from * columns!, to * columns!),
]

function turned([[rows, columns], data]: Matrix): Matrix {
  return [[columns!, rows!], data.map((_, i) => data[(i % rows!) * columns! + Math.floor(i / rows!)]!)]
}

const [q, k, v] = [numbers(8, 4, 100), numbers(2, 4, 200), numbers(2, 4, 300)]
const separate = { 'h.0.q_proj.weight': q, 'h.0.k_proj.weight': k, 'h.0.v_proj.weight': v }
const names = ['$1.q_proj.weight', '$1.k_proj.weight', '$1.v_proj.weight']
const map: TensorMap = { from: '(.*)\\.qkv_proj\\.weight', axis: 0, parts: names }
const fused = model({ 'h.0.qkv_proj.weight': stacked(q, k, v), 'h.norm.weight': numbers(1, 4, 1) })
const apart = model({ ...separate, 'h.norm.weight': numbers(1, 4, 1) })

const equalIn = async (a: string, b: string, options: DiffOptions) => {
  const found = await diff(a, b, options)
  return [found.differences.length, found.missing, [...found.equalTensors].sort()]
}
const parts = ['h.0.k_proj.weight', 'h.0.q_proj.weight', 'h.0.v_proj.weight']
const all = [0, 0, [...parts, 'h.norm.weight']]

describe('q, k and v in one, of which k and v are shorter', () => {
  it.each([
    [fused, apart],
    [apart, fused],
  ])('are compared with three, whichever run has them', async (a, b) => {
    expect(await equalIn(a, b, { map })).toEqual(all)
    const { split } = await diff(a, b, { map })
    const parts = ['h.0.q_proj.weight', 'h.0.k_proj.weight', 'h.0.v_proj.weight']
    expect(split).toEqual([{ tensor: 'h.0.qkv_proj.weight', of: a === fused ? 'first' : 'second', parts }])
  })

  it('may lie beneath a wrapper in one run', async () => {
    const of = (tensors: Readonly<Record<string, Matrix>>) =>
      model(Object.fromEntries(Object.entries(tensors).map(([name, matrix]) => [`module._orig_mod.${name}`, matrix])))
    const [whole, wrapped] = [
      of({ 'h.0.qkv_proj.weight': stacked(q, k, v), 'h.norm.weight': numbers(1, 4, 1) }),
      of({ ...separate, 'h.norm.weight': numbers(1, 4, 1) }),
    ]
    for (const [a, b] of [
      [whole, apart],
      [fused, wrapped],
    ] as const) {
      expect(await diff(a, b, { map })).toMatchObject({ divergence: null, equal: 4, missing: 0 })
    }
  })

  it('go by the names of their parts, and so do places in them', async () => {
    const changed: Matrix = [k[0], k[1].with(6, -1)]
    const b = model({ ...separate, 'h.0.k_proj.weight': changed, 'h.norm.weight': numbers(1, 4, 1) })
    const { differences, areCheckpoints } = await diff(fused, b, { map })
    expect(areCheckpoints).toBe(true)
    expect(differences.map(({ tensor, largest, difference }) => [tensor, largest, difference!.largestPair])).toEqual([
      ['h.0.k_proj.weight', [1, 2], [k[1][6], -1]],
    ])
    expect((await diff(fused, b, { map, tensors: 'q_proj' })).compared).toBe(1)
  })

  it('are told on the command line', async () => {
    const path = join(scratch, 'map.json')
    writeFileSync(path, JSON.stringify([{ old: 'new' }, map]))
    const { code, stdout } = await trialscan('diff', apart, fused, '--map', path, '--format', 'table')
    expect(code).toBe(0)
    expect(stdout.replace(/\s+/g, ' ')).toContain(
      'h.0.qkv_proj.weight of the second run is compared in 3 parts, as the map says: h.0.q_proj.weight, h.0.k_proj.weight, h.0.v_proj.weight.',
    )
    writeFileSync(path, JSON.stringify({ from: 'a', axis: -1, parts: ['b'] }))
    const wrong = await trialscan('diff', apart, fused, '--map', path)
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('"from": "name or pattern", "axis": 0')])
  })

  it('may have their lengths in the map, and the rest is compared where one is not there', async () => {
    const { 'h.0.v_proj.weight': _, ...lost } = separate
    const b = model({ ...lost, 'h.norm.weight': numbers(1, 4, 1) })
    const told = await diff(fused, b, {
      map: { ...map, parts: [...names.slice(0, 2), { name: names[2]!, length: 2 }] },
    })
    expect([told.equal, told.missing, told.split.length]).toEqual([3, 1, 1])
    const two = { from: 'h.0.gate_up.weight', axis: 0, parts: ['h.0.gate.weight', 'h.0.up.weight'] }
    const gates = { 'h.0.gate.weight': q, 'h.0.up.weight': k }
    const [x, y] = [
      model({ 'h.0.qkv_proj.weight': stacked(q, k, v), 'h.0.gate_up.weight': stacked(q, k) }),
      model({ ...lost, ...gates }),
    ]
    const others = await diff(x, y, { map: [map, two] })
    // q and k of the second run, and what is one with v in the first.
    expect([others.equal, others.missing, others.split.map(({ tensor }) => tensor)]).toEqual([
      2,
      3,
      ['h.0.gate_up.weight'],
    ])
  })

  it('are objects that were written as such: an instance of a class is refused, and not taken for an empty map', async () => {
    class Names {
      readonly #pairs = new Map([['old', 'new']])
      size = () => this.#pairs.size
    }
    const [a, b] = [model({ 'h.0.qkv_proj.weight': stacked(q, k, v) }), model(separate)]
    for (const given of [new Names(), [new Names()], new Map([['old', 'new']]), new Date(0)]) {
      await expect(diff(a, b, { map: given as unknown as TensorMap })).rejects.toThrow(/^diff: expected map/)
      await expect(diff(a, b, { unify: given as never })).rejects.toThrow(/^diff: expected unify/)
    }
    const bare = Object.assign(Object.create(null) as object, map) as TensorMap
    expect(await diff(a, b, { map: bare })).toMatchObject({ missing: 0, split: [{ tensor: 'h.0.qkv_proj.weight' }] })
  })

  it('are in a report', async () => {
    const trials = [await createTrial(fused), await createTrial(apart)]
    const { values } = await reportHtml(trials, { map })
    for (const trial of trials) await trial.close()
    expect(values).toBe(2 * 4)
  })
})

describe('other layouts', () => {
  it('along the second axis, whose elements are gathered', async () => {
    const a = model({ 'h.0.c_attn.weight': turned(stacked(q, k, v)) })
    const b = model(Object.fromEntries(Object.entries(separate).map(([name, matrix]) => [name, turned(matrix)])))
    const found = await equalIn(a, b, { map: { from: '(.*)\\.c_attn\\.weight', axis: 1, parts: names } })
    expect(found).toEqual([0, 0, parts])
  })

  it('in groups, each with its own share of q, k and v', async () => {
    const groups = [0, 1].flatMap(group => [
      rowsOf(q, 4 * group, 4 * group + 4),
      rowsOf(k, group, group + 1),
      rowsOf(v, group, group + 1),
    ])
    const a = model({ 'h.0.qkv_proj.weight': stacked(...groups), 'h.norm.weight': numbers(1, 4, 1) })
    expect(await equalIn(a, apart, { map: { ...map, groups: 2 } })).toEqual(all)
    expect((await diff(a, apart, { map })).differences.length).toBe(3)
  })

  it('in shares of workers, which are put together', async () => {
    const share = (rank: number) =>
      stacked(rowsOf(q, 4 * rank, 4 * rank + 4), rowsOf(k, rank, rank + 1), rowsOf(v, rank, rank + 1))
    const norm = { 'h.norm.weight': numbers(1, 4, 1) }
    const a = checkpoint({
      'rank_0/model.safetensors': { 'h.0.qkv_proj.weight': share(0), ...norm },
      'rank_1/model.safetensors': { 'h.0.qkv_proj.weight': share(1), ...norm },
    })
    expect(await equalIn(a, apart, { map, unify: { '.*proj\\.weight': 0 } })).toEqual(all)
  })

  it('at every checkpoint of two runs', async () => {
    const at = (tensors: Tensors) => ({ 'step_10/a.safetensors': tensors, 'step_20/a.safetensors': tensors })
    const [a, b] = [checkpoint(at({ 'h.0.qkv_proj.weight': stacked(q, k, v) })), checkpoint(at(separate))]
    const { equal, missing, steps } = await diff(a, b, { map })
    expect([equal, missing, steps.both]).toEqual([6, 0, 2])
  })

  it('so long that they are read in pieces', async () => {
    const [rows, columns] = [1200, 4096]
    const long = numbers(rows, columns, 0)
    const parts = { 'h.0.gate.weight': rowsOf(long, 0, 1100), 'h.0.up.weight': rowsOf(long, 1100, 1200) }
    const gate = { from: '(.*)\\.gate_up\\.weight', axis: 0, parts: ['$1.gate.weight', '$1.up.weight'] }
    const found: TrialDiff[] = []
    for (const axis of [0, 1]) {
      const [whole, others] =
        axis === 0
          ? [long, parts]
          : [turned(long), Object.fromEntries(Object.entries(parts).map(([name, one]) => [name, turned(one)]))]
      found.push(await diff(model({ 'h.0.gate_up.weight': whole }), model(others), { map: { ...gate, axis } }))
    }
    expect(found.map(({ equal, missing }) => [equal, missing])).toEqual([
      [2, 0],
      [2, 0],
    ])
  })
})

describe('entries that fit nothing are told, with their axis and the shape', () => {
  const failing = async (options: Partial<DiffOptions> & { readonly map: TensorMap }): Promise<string> => {
    const error = await diff(fused, apart, options).catch((error: unknown) => error)
    expect(error).toBeInstanceOf(UsageError)
    return (error as Error).message
  }

  it.each([
    [
      { ...map, parts: names.slice(0, 2) },
      'map entry "(.*)\\\\.qkv_proj\\\\.weight": expected parts that make up axis 0 of "h.0.qkv_proj.weight", whose shape is [12,4], got 8 + 2 = 10',
    ],
    [{ ...map, axis: 2 }, 'expected an axis of "h.0.q_proj.weight", whose shape is [8,4], got axis 2'],
    [{ ...map, groups: 4 }, 'in 4 equal groups along axis 0, got 8 + 2 + 2 = 12'],
    [{ ...map, from: 'w_qkv' }, 'expected a tensor of one run, and its parts in the other, got none'],
    [{ ...map, from: '(' }, 'expected a name or a pattern in the map, got "("'],
  ] as const)('%j', async (map, message) => {
    expect(await failing({ map })).toContain(message)
  })

  it('in a map that is none', async () => {
    const wrong = { from: 'a', axis: 0, parts: [] } as unknown as TensorMap
    await expect(diff(fused, apart, { map: wrong })).rejects.toThrow(
      'expected map to be an object of names, { from, axis, parts }, or a list of both',
    )
    expect(await failing({ map, follow: true })).toContain('expected follow without parts of tensors in the map')
  })
})
