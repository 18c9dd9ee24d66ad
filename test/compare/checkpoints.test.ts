/** Pairs of checkpoints, beside what numpy has of them. */

import { truncateSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createTrial, type DiffOptions, diff, type TrialDiff } from '#dist/index.js'
import { counting, npz, safetensors, withHeader, writeFile, writeShards } from '../../fixtures/checkpoint-writer.js'
import { trialscan } from '../cli/run.js'
import { CHECKPOINTS, expectedOf, FIXTURES, hasCheckpoints } from '../support/checkpoints.js'
import { scratchDirectory } from '../support/scratch.js'

const place = (name: string): string => join(CHECKPOINTS, 'trials', name)

async function compared(a: string, b: string, options: DiffOptions = {}): Promise<TrialDiff> {
  const trials = [await createTrial(place(a)), await createTrial(place(b))] as const
  try {
    return await diff(...trials, options)
  } finally {
    for (const trial of trials) await trial.close()
  }
}

type Golden<T> = Readonly<Record<string, T>>

describe.runIf(hasCheckpoints)('checkpoints', () => {
  it('that were trained further have moved as numpy has it', async () => {
    const golden = expectedOf('base--tuned') as Golden<
      Record<'unequal' | 'count' | 'max_abs' | 'relative_norm' | 'cosine', number>
    >
    const { differences, equalTensors, compared: pairs, areCheckpoints } = await compared('base', 'tuned')
    expect([areCheckpoints, pairs]).toEqual([true, Object.keys(golden).length])
    expect([...equalTensors].sort()).toEqual(
      Object.keys(golden)
        .filter(name => golden[name]!.unequal === 0)
        .sort(),
    )
    for (const { tensor, difference } of differences) {
      const { unequal, count, max_abs, relative_norm, cosine } = golden[tensor]!
      expect([tensor, difference!.unequalCount, difference!.count, difference!.maxAbsolute]).toEqual([
        tensor,
        unequal,
        count,
        max_abs,
      ])
      expect(difference!.relativeNorm! / relative_norm).toBeCloseTo(1, 9)
      expect(difference!.cosine).toBeCloseTo(cosine, 9)
    }
  })

  it.each([
    ['base', 'fp8-block'],
    ['fp8-block', 'base'],
  ])('%s beside %s: what quantisation lost', async (a, b) => {
    const golden = expectedOf('base--fp8-block') as Golden<Record<'nmse' | 'max_abs', number>>
    const { differences, equal, missing, compared: pairs } = await compared(a, b)
    const changed = Object.keys(golden).filter(name => golden[name]!.nmse > 0)
    expect([pairs, equal, missing]).toEqual([24, 24 - changed.length, 0])
    expect(differences.map(({ tensor }) => tensor).sort()).toEqual(changed.sort())
    for (const { tensor, kind, quantised } of differences) {
      const { nmse, max_abs } = golden[tensor]!
      expect(kind).toBe('quantised')
      expect(quantised!.scheme).toBe('float8_e4m3fn, a scale per 32 × 32 block')
      expect(quantised!.normalisedError / nmse).toBeCloseTo(1, 6)
      expect(quantised!.maxAbsolute / max_abs).toBeCloseTo(1, 6)
    }
  })

  it('that are quantised are told with the worst first', async () => {
    const { code, stdout } = await trialscan(
      'diff',
      place('base'),
      place('fp8-block'),
      '--format',
      'table',
      '--top',
      '2',
    )
    expect(code).toBe(1)
    const text = stdout.replace(/\s+/g, ' ')
    expect(text).toContain('base and fp8-block: 12 of 24 tensors quantised; ')
    expect(text).toContain(
      'Worst: 31.3 dB (normalised squared error 0.000748) in model.layers.0.self_attn.q_proj.weight.',
    )
    expect(text).toContain('float8_e4m3fn, a scale per 32 × 32 block')
    expect(text).toContain('and 10 more')
  })

  it('that were trained further are told by what changed most, and JSON Lines by tensor', async () => {
    const places = [place('base'), place('tuned')]
    const { stdout } = await trialscan('diff', ...places, '--format', 'table', '--top', '2')
    const text = stdout.replace(/\s+/g, ' ')
    expect(text).toContain(
      'base and tuned: 22 of 24 tensors changed; model.embed_tokens.weight and model.layers.0.self_attn.q_proj.weight are equal bit for bit. Largest relative change ‖Δ‖/‖a‖ 0.242 in lm_head.weight.',
    )
    expect(text).toContain('tensor ‖Δ‖/‖a‖ changed max |Δ| a → b there cosine lm_head.weight 0.242')
    expect(text).toContain('[89, 42] -0.0114136 → -0.0668945')
    expect(text).toContain('and 20 more')
    const golden = expectedOf('base--tuned') as Golden<Record<'unequal' | 'relative_norm', number>>
    const lines = (await trialscan('diff', ...places, '--format', 'jsonl')).stdout.trim().split('\n').slice(1)
    const norms = Object.fromEntries(lines.map(line => JSON.parse(line)).map(one => [one.tensor, one.relative_norm]))
    const changed = Object.keys(golden).filter(name => golden[name]!.unequal > 0)
    expect(Object.keys(norms).sort()).toEqual(changed.sort())
    for (const name of changed) expect(norms[name] / golden[name]!.relative_norm).toBeCloseTo(1, 9)
  })

  it('of tensor-parallel ranks are put together, under the prefix of one side', async () => {
    const unify = { '.*(?:[qkv]_proj|up_proj)\\.weight': 0, '.*(?:o_proj|down_proj)\\.weight': 0 }
    const found = await compared('megatron', 'hf-run/checkpoint-100', { unify })
    expect([found.compared, found.aliases?.first]).toEqual([24, ['model.']])
    // Another training: each tensor has its shape there, and other values.
    expect(new Set(found.differences.map(({ kind }) => kind))).toEqual(new Set(['values']))
  })
})

it('what quantisation lost is in JSON Lines too', async () => {
  const { stdout } = await trialscan('diff', join(FIXTURES, 'base'), join(FIXTURES, 'fp8'), '--format', 'jsonl')
  const head = stdout
    .split('\n')
    .map(line => JSON.parse(line || 'null'))
    .find(one => one?.tensor === 'lm_head.weight')
  expect(head).toMatchObject({ kind: 'quantised', worst_block: '2 0', saturated: 0.25 })
  expect(head.sqnr).toBeCloseTo(-10 * Math.log10(head.nmse), 9)
  expect(head.worst_block_nmse).toBeGreaterThan(head.nmse)
})

describe('two of made tensors', () => {
  const scratch = scratchDirectory('compare-checkpoints')
  const tensors = [counting('a.weight', [4, 3], 'F64'), counting('b.weight', [5], 'F64', 7)]

  it('are equal whatever contains them', async () => {
    const [file, arrays, shards] = [
      join(scratch, 'model.safetensors'),
      join(scratch, 'model.npz'),
      join(scratch, 'shards'),
    ]
    writeFile(file, safetensors(tensors))
    writeFile(arrays, npz(tensors))
    writeShards(shards, [[tensors[1]!], [tensors[0]!]])
    for (const other of [arrays, shards]) {
      expect(await diff(file, other)).toMatchObject({ compared: 2, equal: 2, missing: 0 })
    }
  })

  it('of which one is cut off count what was read until then', async () => {
    const long = counting('w.weight', [1 << 20])
    const paths = ['whole', 'cut'].map(name => join(scratch, `${name}.safetensors`)) as [string, string]
    for (const path of paths) writeFile(path, safetensors([long]))
    const trials = [await createTrial(paths[0]), await createTrial(paths[1])] as const
    truncateSync(paths[1], 1 << 20)
    const { problems, compared, readBytes } = await diff(...trials, { memory: 4 << 20, threads: 0 })
    for (const trial of trials) await trial.close()
    expect([problems.length, compared]).toEqual([1, 0])
    expect(readBytes).toBeGreaterThan(1 << 16)
  })
})

it('of more tensors than are asked about at once are compared each, in order', async () => {
  const scratch = scratchDirectory('very-many')
  const count = 20_000
  const header = Array.from(
    { length: count },
    (_, i) => `"layer.${i}.weight":{"dtype":"U8","shape":[1],"data_offsets":[${i},${i + 1}]}`,
  )
  const bytes = Uint8Array.from({ length: count }, (_, i) => i % 251)
  const differing = [0, 16_383, 16_384, count - 1]
  writeFile(join(scratch, 'a/model.safetensors'), withHeader(`{${header.join(',')}}`, bytes))
  for (const i of differing) bytes[i]! ^= 255
  writeFile(join(scratch, 'b/model.safetensors'), withHeader(`{${header.join(',')}}`, bytes))
  const trials = [await createTrial(join(scratch, 'a')), await createTrial(join(scratch, 'b'))] as const
  const { compared, equal, missing, differences } = await diff(...trials)
  expect([compared, equal, missing]).toEqual([count, count - differing.length, 0])
  expect(differences.map(({ tensor }) => tensor)).toEqual(differing.map(i => `layer.${i}.weight`))
  for (const trial of trials) await trial.close()
})
