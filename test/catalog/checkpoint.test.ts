/** Checkpoints as trials: what is read of them, and how their steps are found. */

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createTrial, verifyTrial } from '#dist/index.js'
import { counting, npy, npz, safetensors, tensorOf, writeFile, writeShards } from '../../fixtures/checkpoint-writer.js'
import { differences } from '../support/checkpoint-answers.js'
import { CHECKPOINTS, FIXTURES, goldenPlaces, hasCheckpoints } from '../support/checkpoints.js'
import { HAS_S3, makeBucket, OPTIONS, upload } from '../support/s3.js'
import { rowsOf } from '../support/scanning.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('checkpoint')

describe.runIf(hasCheckpoints)('golden answers', () => {
  for (const golden of goldenPlaces()) {
    for (const threads of [0, 2]) {
      it(`${golden.place}, on ${threads} threads`, async () => {
        const trial = await createTrial(join(CHECKPOINTS, golden.place), { refresh: 'manual', threads })
        expect(await differences(trial, golden)).toEqual([])
        expect(trial.problems).toEqual([])
        await trial.close()
      })
    }
  }
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

it('says of a place that is none what is there, and what would be taken', async () => {
  const directory = join(scratch, 'none')
  for (const name of ['notes.txt', 'sub/model.gguf']) writeFile(join(directory, name), Buffer.from('x'))
  const taken = /expected a trial: .*event files, or checkpoints \(\.safetensors, .*\), but there are other files: /
  await expect(createTrial(directory)).rejects.toThrow(
    new RegExp(`${taken.source}"notes.txt", "sub/model.gguf"; .*: GGUF$`),
  )
  await expect(createTrial(join(directory, 'sub/model.gguf'))).rejects.toThrow(/got one of a format .* not read: GGUF$/)
  await expect(createTrial(join(directory, 'notes.txt'))).rejects.toThrow(
    /a file of tensors \(\.safetensors, .*got another/,
  )
  mkdirSync(join(scratch, 'empty'))
  await expect(createTrial(join(scratch, 'empty'))).rejects.toThrow(/, but there is no file/)
})

describe('a run that goes on', () => {
  it('has a fault in a step behind which there are others, and in its last step once it has ended', async () => {
    const directory = join(scratch, 'cut')
    for (const step of [1, 2])
      writeShards(join(directory, `checkpoint-${step}`), [[counting('a', [2])], [counting('b', [2])]])
    const problems = async () => {
      const trial = await createTrial(directory, { refresh: 'manual' })
      return [trial.problems.map(({ code }) => code), trial.notes.length]
    }
    rmSync(join(directory, 'checkpoint-1', 'model-00002-of-00002.safetensors'))
    expect(await problems()).toEqual([['MissingShard'], 0])
    rmSync(join(directory, 'checkpoint-2', 'model-00002-of-00002.safetensors'))
    expect(await problems()).toEqual([['MissingShard'], 1])
    writeFileSync(join(directory, 'training_job_end.ts'), '')
    expect(await problems()).toEqual([['MissingShard', 'MissingShard'], 0])
  })

  it('a step that is not whole yet is left out with a note, and is there when it is whole', async () => {
    const directory = join(scratch, 'going-on')
    const shards = [[counting('a', [2])], [counting('b', [2])]]
    writeShards(join(directory, 'checkpoint-1'), shards)
    writeShards(join(directory, 'checkpoint-2'), shards)
    const late = join(directory, 'checkpoint-2', 'model-00002-of-00002.safetensors')
    const bytes = readFileSync(late)
    rmSync(late)
    const trial = await createTrial(directory, { refresh: 'manual' })
    expect(trial.steps()).toEqual([1])
    expect(trial.problems).toEqual([])
    expect(trial.notes).toEqual([
      expect.stringMatching(/checkpoint-2 is not whole, and was changed less than a minute ago/),
    ])
    expect(await trial.refresh()).toBe(false)
    writeFileSync(late, bytes)
    expect(await trial.refresh()).toBe(true)
    expect(trial.steps()).toEqual([1, 2])
    expect(trial.notes).toEqual([])
    expect([...((await trial.tensor('b').value(2)).data as Float32Array)]).toEqual([0, 1])
    // What was known before is read as before.
    expect([...((await trial.tensor('b').value(1)).data as Float32Array)]).toEqual([0, 1])
    await trial.close()
  })

  it('a step that was left alone for a minute is shown with what is wrong with it', async () => {
    const directory = join(scratch, 'left-alone')
    for (const step of [1, 2])
      writeShards(join(directory, `step-${step}`), [[counting('a', [2])], [counting('b', [2])]])
    rmSync(join(directory, 'step-2', 'model-00002-of-00002.safetensors'))
    const old = new Date(Date.now() - 600_000)
    for (const name of readdirSync(join(directory, 'step-2'))) utimesSync(join(directory, 'step-2', name), old, old)
    const trial = await createTrial(directory, { refresh: 'manual' })
    expect(trial.steps()).toEqual([1, 2])
    expect(trial.problems.map(({ code }) => code)).toEqual(['MissingShard'])
    await trial.close()
  })

  it.each([0, 1])('a shard that vanishes costs its own tensors alone, on %s threads', async threads => {
    const directory = join(scratch, `vanishing-${threads}`)
    const names = Array.from({ length: 20 }, (_, i) => `w${String.fromCharCode(97 + i)}`)
    // Their order is not that of the files.
    writeShards(
      join(directory, 'checkpoint-1'),
      [0, 1, 2].map(shard => names.filter((_, i) => i % 3 === shard).map(name => counting(name, [3]))),
    )
    const trial = await createTrial(directory, { refresh: 'manual', threads })
    rmSync(join(directory, 'checkpoint-1/model-00002-of-00003.safetensors'))
    const expected = names.map((name, i) => [name, i % 3 === 1 ? 'NotFound' : 3])
    for (const reductions of [['sum'], ['sum', 'crc32c']] as const) {
      const rows = await rowsOf(trial, { reductions: [...reductions], threads })
      expect(rows.map(({ tensor, error, reductions }) => [tensor, error?.code ?? reductions.sum])).toEqual(expected)
    }
    await trial.close()
  })

  it('a checkpoint that is written again is read again', async () => {
    const file = join(scratch, 'again', 'step_1.safetensors')
    writeFile(file, safetensors([counting('w', [2])]))
    const trial = await createTrial(join(scratch, 'again'), { refresh: 'manual' })
    expect(await trial.tensor('w').reductionValue(1, 'sum')).toBe(1)
    writeFile(file, safetensors([counting('w', [3])]))
    await trial.refresh()
    expect(await trial.tensor('w').reductionValue(1, 'sum')).toBe(3)
    await trial.close()
  })
})

describe.runIf(HAS_S3)('on S3', () => {
  it('reads headers and elements by range', async () => {
    const bucket = await makeBucket()
    await upload(join(FIXTURES, 'run'), bucket, 'run/')
    const trial = await createTrial(`s3://${bucket}/run`, { refresh: 'manual', s3: OPTIONS })
    const local = await createTrial(join(FIXTURES, 'run'), { refresh: 'manual' })
    expect(trial.steps()).toEqual(local.steps())
    const rowsOf = async (one: typeof trial) => {
      const rows: unknown[] = []
      for await (const { tensor, step, reductions } of one.scan({ reductions: ['sum', 'l2'] }))
        rows.push([tensor, step, reductions])
      return rows
    }
    expect(await rowsOf(trial)).toEqual(await rowsOf(local))
    await trial.close()
    await local.close()
    const one = await createTrial(`s3://${bucket}/run/checkpoint-10/model-00001-of-00002.safetensors`, { s3: OPTIONS })
    expect(one.tensorNames().length).toBe(5)
    await one.close()
  })

  it('opens a large file without reading its elements', async () => {
    const bucket = await makeBucket()
    const directory = join(scratch, 'large')
    writeFile(join(directory, 'model.safetensors'), safetensors([counting('w', [1 << 20]), counting('v', [1 << 20])]))
    await upload(directory, bucket, 'large/')
    const trial = await createTrial(`s3://${bucket}/large/model.safetensors`, { s3: OPTIONS })
    await trial.summary()
    expect(trial.traffic.receivedBytes).toBeLessThan(200_000)
    const value = await trial.tensor('v').value(0)
    expect(value.data.at(-1)).toBe((1 << 20) - 1)
    await trial.close()
  })
})

describe('parts of a tensor in several files', () => {
  const part = (name: string, offset: readonly number[], dtype = 'F32') =>
    safetensors([counting('w', [2, 3], dtype, 10 * offset[0]!), counting(name, [2])], {
      DCP_SHARDING_INFO: JSON.stringify({ w: { saved_offsets: offset } }),
    })
  const opened = (directory: string, files: readonly Uint8Array[]) => {
    for (const [i, file] of files.entries()) writeFile(join(scratch, directory, `part_${i}.safetensors`), file)
    return createTrial(join(scratch, directory))
  }

  it('make it up', async () => {
    const trial = await opened('parts', [part('a', [2, 0]), part('b', [0, 0])])
    const { shape, data } = await trial.tensor('w').value(0)
    expect([shape, [...(data as Float32Array)]]).toEqual([
      [4, 3],
      [0, 1, 2, 3, 4, 5, 20, 21, 22, 23, 24, 25],
    ])
    expect(trial.problems).toEqual([])
  })

  it('of several ranks, as PyTorch writes them, need not be a series each', async () => {
    for (const [i, offset] of [
      [2, 0],
      [0, 0],
    ].entries()) {
      const name = `shard-0000${i + 1}-model-0000${i + 1}-of-00002.safetensors`
      writeFile(join(scratch, 'ranks', name), part(`only_${i}`, offset))
    }
    const trial = await createTrial(join(scratch, 'ranks'))
    expect(trial.problems).toEqual([])
    expect(trial.tensorNames()).toEqual(['only_0', 'only_1', 'w'])
  })

  it.each([
    ['one is missing', [part('a', [2, 0])], 'all but 6 of its elements'],
    ['one is there twice', [part('a', [0, 0]), part('b', [0, 0])], 'parts that overlap'],
    ['they are of two types', [part('a', [0, 0]), part('b', [2, 0], 'F64')], 'parts of different dtypes or ranks'],
  ])('%s: MissingParts, and the rest is read', async (name, files, got) => {
    const trial = await opened(name, files)
    expect(trial.problems.map(({ code }) => code)).toEqual(['MissingParts'])
    expect(trial.problems[0]!.message).toContain(`"w" that make up`)
    expect(trial.problems[0]!.message).toContain(`${got}: a file is missing, or there twice`)
    expect(trial.tensorNames()).toEqual(['a', ...(files.length > 1 ? ['b'] : [])])
    const { problems } = await verifyTrial(join(scratch, name))
    expect(problems.map(({ code }) => code)).toContain('MissingParts')
  })
})
