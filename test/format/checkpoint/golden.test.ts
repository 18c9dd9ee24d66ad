/** Files of torch, as torch wrote them, against golden answers: names, dtypes, shapes, and elements gathered naively. */

import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  answerOf,
  bytesOfTensor,
  contentsOf,
  FIXTURES,
  type GoldenTensor,
  golden,
  numbersOf,
  readContent,
  SHARED_CHECKPOINTS,
} from '../../support/checkpoint-files.js'

type Golden = Readonly<Record<string, GoldenTensor>>
type GoldenSteps = { readonly steps: Readonly<Record<string, Golden>> }

const EXPECTED = join(FIXTURES, 'expected')

/** @param isLeftOut tensors that the answers say nothing of */
async function expectGolden(
  root: string,
  path: string,
  expected: Golden,
  isLeftOut: (name: string) => boolean = () => false,
): Promise<void> {
  const { tensors, unread, problems } = await contentsOf(root, path)
  expect(problems).toEqual([])
  expect(unread).toEqual([])
  const byName = new Map(tensors.map(tensor => [tensor.name, tensor]))
  expect([...byName.keys()].filter(name => !isLeftOut(name)).sort()).toEqual(Object.keys(expected).sort())
  for (const [name, answer] of Object.entries(expected)) expectTensor(root, byName.get(name)!, answer)
}

function expectTensor(
  root: string,
  tensor: Parameters<typeof bytesOfTensor>[0],
  { dtype, shape, first, ...reductions }: GoldenTensor,
): void {
  expect(tensor, tensor.name).toMatchObject({ dtype, shape })
  if (dtype.startsWith('complex')) return
  const numbers = numbersOf(dtype, bytesOfTensor(tensor, readContent(root)))
  const named = (x: number) => (Number.isFinite(x) ? x : `${x}`)
  if (first) expect(numbers.slice(0, first.length).map(named), tensor.name).toEqual(first)
  if (numbers.length === 0) return
  const own = answerOf(numbers)
  if (reductions.nan_count !== undefined) expect(own.nan_count, tensor.name).toBe(reductions.nan_count)
  if (own.nan_count! > 0) return
  for (const key of ['min', 'max'] as const) {
    if (reductions[key] !== undefined) expect(own[key], `${key} of ${tensor.name}`).toBe(reductions[key])
  }
  for (const key of ['mean', 'l2'] as const) {
    const value = reductions[key]
    if (typeof value !== 'number') continue
    const difference = Math.abs((own[key] as number) - value)
    expect(difference, `${key} of ${tensor.name}`).toBeLessThanOrEqual(1e-9 * Math.max(1, Math.abs(value)))
  }
}

describe('files of torch', () => {
  const ofTorch = golden<GoldenSteps>(join(EXPECTED, 'torch.json')).steps['0']!
  it.each(['zip.pt', 'legacy.pt'])('torch 1.13: %s', async file => {
    await expectGolden(join(FIXTURES, 'torch'), file, ofTorch)
  })

  const of213 = golden<Record<string, Golden>>(join(EXPECTED, 'torch-2.13.json'))
  it.each(['new-dtypes.pt', 'protocol5.pt'])('torch 2.13: %s', async file => {
    await expectGolden(join(FIXTURES, 'torch-2.13'), file, of213[file]!)
  })

  it('tells tensors that have the same elements', async () => {
    const { tensors } = await contentsOf(join(FIXTURES, 'torch'), 'zip.pt')
    const aliases = tensors.filter(({ aliasOf }) => aliasOf !== undefined)
    expect(aliases.map(({ name, aliasOf }) => [name, aliasOf])).toEqual([['model.v.tied', 'model.v.base']])
  })

  it('has the strides of a view where it is none in C order', async () => {
    const { tensors } = await contentsOf(join(FIXTURES, 'torch'), 'zip.pt')
    const stridesOf = (name: string) => tensors.find(tensor => tensor.name === name)!.blocks[0]!.strides
    expect(stridesOf('model.v.base')).toBeUndefined()
    expect(stridesOf('model.v.transposed')).toEqual([1, 4])
    expect(stridesOf('model.v.expanded')).toEqual([0, 1])
  })

  it('says what a file says besides', async () => {
    const { metadata } = await contentsOf(join(FIXTURES, 'torch'), 'zip.pt')
    expect(Object.fromEntries(metadata!)).toEqual({
      format: 'torch.save, zip',
      step: '7',
      big: '1180591620717411303424',
      numpy: '2.5',
    })
  })
})

describe('dumps of SGLang', () => {
  it('have their names, ranks, steps and order', async () => {
    const root = join(FIXTURES, 'sglang-dump')
    const expected = golden(join(EXPECTED, 'sglang-dump.json'))
    const found: Record<string, number | undefined> = {}
    for (const file of readdirSync(join(root, 'exp1'))) {
      const { tensors } = await contentsOf(root, `exp1/${file}`)
      expect(tensors).toHaveLength(1)
      const [tensor] = tensors as [(typeof tensors)[0]]
      expect(tensor.step).toBe(1)
      const name = `${tensor.worker} ${tensor.name}`
      found[name] = tensor.order
      expectTensor(root, tensor, expected[name]!)
    }
    expect(Object.keys(found).sort()).toEqual(Object.keys(expected).sort())
    expect(found['rank_1 model.layers.0.mlp']).toBe(2)
  })
})

describe('torch.distributed.checkpoint', () => {
  const standIn = golden<GoldenSteps>(join(EXPECTED, 'dcp.json')).steps
  it.each(Object.keys(standIn))('chunks along two axes become whole tensors: step %s', async step => {
    await expectGolden(join(FIXTURES, 'dcp'), `step-${step}/.metadata`, standIn[step]!)
  })

  const { dcp } = golden<{ readonly dcp: Record<string, Golden> }>(join(EXPECTED, 'torch-2.13.json'))
  it.each(Object.keys(dcp))('torch 2.13: step %s', async step => {
    await expectGolden(join(FIXTURES, 'torch-2.13/dcp'), `step-${step}/.metadata`, dcp[step]!, name =>
      name.endsWith('.step'),
    )
  })
})

/** Where there are such: nothing is skipped elsewhere. */
function describeShared(shared: string): void {
  it('protocol 4', async () => {
    const { steps } = golden<GoldenSteps>(join(shared, 'expected/torch.json'))
    await expectGolden(join(shared, 'trials/torch'), 'protocol4.pt', steps['0']!)
  })

  it.each(['0', '1'])('Megatron, rank %s', async rank => {
    const expected = golden(join(shared, `expected/megatron-rank${rank}.json`))
    const prefixed = Object.fromEntries(Object.entries(expected).map(([name, answer]) => [`model.${name}`, answer]))
    await expectGolden(join(shared, 'trials/megatron/iter_0000100'), `mp_rank_0${rank}/model_optim_rng.pt`, prefixed)
  })

  const ofPublic = golden<Record<string, Golden>>(join(shared, 'expected/public.json'))
  const files = Object.keys(ofPublic).filter(
    file => /\.(?:pt|pth)$/.test(file) && existsSync(join(shared, 'public', file)),
  )
  it.each(files)('%s', async file => {
    const expected = ofPublic[file]!
    if ('error' in expected) {
      await expect(contentsOf(join(shared, 'public'), file)).rejects.toThrow(/expected a file of torch\.save/)
      return
    }
    await expectGolden(join(shared, 'public'), file, expected)
  })
}

if (SHARED_CHECKPOINTS !== null) describe('files beside the project', () => describeShared(SHARED_CHECKPOINTS!))
