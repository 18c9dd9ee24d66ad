/** Checkpoints as trials: what is read of them, and how their steps are found. */

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createTrial } from '#dist/index.js'
import { counting, npy, npz, safetensors, tensorOf, writeFile, writeShards } from '../../fixtures/checkpoint-writer.js'
import {
  CHECKPOINTS,
  differences,
  expectedOf,
  FIXTURES,
  type GoldenTensors,
  hasCheckpoints,
  stepsOf,
} from '../support/checkpoints.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('checkpoint')
const LOGGED = ['loss', 'grad_norm', 'learning_rate']

describe.runIf(hasCheckpoints)('golden answers', () => {
  const isExtra = (name: string): boolean => LOGGED.includes(name) || /^(?:optimizer|scheduler)\./.test(name)

  for (const name of ['base', 'tuned', 'st-run', 'npz-run', 'hf-run']) {
    for (const threads of [0, 2]) {
      it(`${name}, on ${threads} threads`, async () => {
        const trial = await createTrial(join(CHECKPOINTS, 'trials', name), { refresh: 'manual', threads })
        expect(await differences(trial, stepsOf(name), undefined, isExtra)).toEqual([])
        expect(trial.problems).toEqual([])
        await trial.close()
      })
    }
  }

  it('public files', async () => {
    const files = expectedOf('public') as Readonly<Record<string, GoldenTensors>>
    const ours = Object.keys(files).filter(file => /\.(?:safetensors|npz)$/.test(file))
    expect(ours.length).toBeGreaterThan(1)
    for (const file of ours) {
      const trial = await createTrial(join(CHECKPOINTS, 'public', file), { refresh: 'manual' })
      expect(await differences(trial, { 0: files[file]! })).toEqual([])
      await trial.close()
    }
  })
})

it('the committed checkpoints are there', () => {
  expect(existsSync(FIXTURES)).toBe(true)
})

describe('one file', () => {
  const place = join(scratch, 'one', 'model.safetensors')

  it('is a trial of one step', async () => {
    writeFile(place, safetensors([counting('w', [3, 2]), counting('b', [2], 'F64', 5), tensorOf('i', 'I64', [], [9])]))
    const trial = await createTrial(place)
    expect(trial.name).toBe('model.safetensors')
    expect(trial.steps()).toEqual([0])
    expect(trial.loadedAllSteps).toBe(true)
    const w = await trial.tensor('w').value(0)
    expect(w.shape).toEqual([3, 2])
    expect([...(w.data as Float32Array)]).toEqual([0, 1, 2, 3, 4, 5])
    expect([...((await trial.tensor('b').value(0)).data as Float64Array)]).toEqual([5, 6])
    expect(await trial.tensor('i').reductionValue(0, 'sum')).toBe(9)
    await trial.close()
  })

  it('has the step that its name says', async () => {
    const file = join(scratch, 'named', 'step_000500.safetensors')
    writeFile(file, safetensors([counting('w', [2])]))
    const trial = await createTrial(file)
    expect(trial.steps()).toEqual([500])
    await trial.close()
  })

  it('is that file alone, whatever lies beside it', async () => {
    const directory = join(scratch, 'alone')
    writeShards(directory, [[counting('a', [2])], [counting('b', [2])]])
    const trial = await createTrial(join(directory, 'model-00002-of-00002.safetensors'))
    expect(trial.tensorNames()).toEqual(['b'])
    expect(trial.problems).toEqual([])
    await trial.close()
  })

  it('may be the index of shards', async () => {
    const directory = join(scratch, 'by-index')
    writeShards(directory, [[counting('a', [2])], [counting('b', [2])]])
    const trial = await createTrial(join(directory, 'model.safetensors.index.json'))
    expect(trial.tensorNames()).toEqual(['a', 'b'])
    await trial.close()
  })

  it('may be an array of numpy, in either order', async () => {
    const file = join(scratch, 'arrays', 'x.npy')
    writeFile(file, npy(counting('x', [2, 3]), 'Fortran'))
    const trial = await createTrial(file)
    const { data, shape } = await trial.tensor('x').value(0)
    expect(shape).toEqual([2, 3])
    // Elements 0 to 5 lie column by column.
    expect([...(data as Float32Array)]).toEqual([0, 2, 4, 1, 3, 5])
    await trial.close()
  })

  it('may be an archive of arrays', async () => {
    const file = join(scratch, 'archive.npz')
    writeFile(file, npz([counting('x', [2, 3]), counting('y', [2], 'I64')]))
    const trial = await createTrial(file)
    expect([...((await trial.tensor('y').value(0)).data as BigInt64Array)]).toEqual([0n, 1n])
    await trial.close()
  })
})

it('reads a directory of steps, with what was logged', async () => {
  const trial = await createTrial(join(FIXTURES, 'run'), { refresh: 'manual' })
  expect(trial.steps()).toEqual([5, 10, 15, 20, 25, 30])
  expect(trial.tensor('model.norm.weight').steps()).toEqual([10, 20, 30])
  expect(await trial.tensor('loss').reductionValue(15, 'mean')).toBe(2.5)
  expect(await trial.tensor('loss').reductionValue(25, 'mean')).toBeNaN()
  expect(trial.collection('losses').members).toEqual(['loss'])
  expect(await trial.tensor('model.layers.1.mlp.up_proj.weight').reductionValue(20, 'nan_count' as 'mean')).toBe(1)
  await trial.close()
})

it('has tensors in the natural order of names', async () => {
  const names = [
    'lm_head.weight',
    'model.norm.weight',
    'model.layers.10.w',
    'model.layers.2.w',
    'model.embed_tokens.weight',
  ]
  const file = join(scratch, 'order.safetensors')
  writeFile(file, safetensors(names.map(name => counting(name, [2]))))
  const trial = await createTrial(file)
  const rows: string[] = []
  for await (const { tensor } of trial.scan({ reductions: ['mean'] })) rows.push(tensor!)
  expect(rows).toEqual(
    [...names]
      .reverse()
      .sort((a, b) => (a.includes('layers') && b.includes('layers') ? (a.includes('.2.') ? -1 : 1) : 0)),
  )
  await trial.close()
})

it('takes the largest family of steps, and says what it left out', async () => {
  const directory = join(scratch, 'families')
  for (const step of [1, 2, 3])
    writeFile(join(directory, `step-${step}`, 'model.safetensors'), safetensors([counting('w', [2])]))
  writeFile(join(directory, 'epoch_1.npz'), npz([counting('w', [2])]))
  const trial = await createTrial(directory, { refresh: 'manual' })
  expect(trial.steps()).toEqual([1, 2, 3])
  await trial.close()
})

it('names both of two families that are equally large', async () => {
  const directory = join(scratch, 'tie')
  for (const step of [1, 2]) {
    writeFile(join(directory, `step-${step}`, 'model.safetensors'), safetensors([counting('w', [2])]))
    writeFile(join(directory, `iter_000000${step}.npz`), npz([counting('w', [2])]))
  }
  await expect(createTrial(directory)).rejects.toThrow(
    /as many of (?:step-<n>\/ as of iter_<n>\.npz|iter_<n>\.npz as of step-<n>\/)/,
  )
})
