/** Pairs of checkpoints, beside what numpy has of them. */

import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createTrial, type DiffOptions, diff, type TrialDiff } from '#dist/index.js'
import { trialscan } from '../cli/run.js'
import { CHECKPOINTS, expectedOf, hasCheckpoints } from '../support/checkpoints.js'

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
})
