/** Runs of TensorBoard that a writer writes beside its trial. */

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import {
  createTrial,
  createWriter,
  createWriterFromJson,
  parseHookConfig,
  UsageError,
  verifyTrial,
  type WriterOptions,
} from '#dist/index.js'
import { scratchDirectory } from '../support/scratch.js'
import { runsBelow } from '../support/tensorboard.js'

const scratch = scratchDirectory('tensorboard-live')
let count = 0
const place = () => join(scratch, `${count++}`)
const EVERY: WriterOptions = { saveConfig: { saveInterval: 1 } }

/** Tag, step and value of all that is in the runs; of a histogram its number of elements. */
function shown(directory: string): Record<string, readonly unknown[]> {
  return Object.fromEntries(
    [...runsBelow(directory)].map(([run, events]) => {
      const values = events.flatMap(({ step = 0, summary }) => {
        return (summary?.value ?? []).map(({ tag, value, simple_value, histo }) => {
          return [step, tag, value === 'histo' ? { num: histo.num } : simple_value]
        })
      })
      return [run, values]
    }),
  )
}

afterEach(() => {
  vi.unstubAllEnvs()
})

it('has numbers of losses, and histograms of all else, by mode and global step', async () => {
  const [path, tensorboard] = [place(), place()]
  await using writer = await createWriter(path, { ...EVERY, includeCollections: ['weights'], tensorboard })
  const before = Date.now() / 1000
  for (const mode of ['TRAIN', 'EVAL', 'TRAIN'] as const) {
    writer.setMode(mode)
    const step = await writer.step()
    await writer.save('loss_output_0', 0.5 + step)
    await writer.save('fc.weight', Float32Array.of(1, 2, Number.NaN), { shape: [3, 1] })
    await writer.saveScalar('lr', 0.25, { timestamp: 1_700_000_000 })
  }
  // What has ended can be read.
  expect(shown(tensorboard).TRAIN).toHaveLength(3)
  await writer.close()
  const of = (step: number) => [
    [step, 'loss_output_0', 0.5 + step],
    [step, 'weights/fc.weight', { num: 2 }],
    [step, 'scalar/lr', 0.25],
  ]
  expect(shown(tensorboard)).toEqual({ EVAL: of(1), TRAIN: [...of(0), ...of(2)] })
  const events = runsBelow(tensorboard).get('TRAIN')!
  expect(events[0]).toMatchObject({ file_version: 'brain.Event:2' })
  expect(events[1]!.wall_time).toBeGreaterThanOrEqual(before)
  expect(events[3]!.wall_time).toBe(1_700_000_000)
  const trial = await createTrial(tensorboard)
  expect(trial.workers()).toEqual(['EVAL', 'TRAIN'])
  await trial.close()
  expect((await verifyTrial(tensorboard, { deep: true })).problems).toEqual([])
})

it('leaves out what has no histogram, and what no collection is to have', async () => {
  const tensorboard = place()
  const collections = { mine: { includeRegex: ['^mine'], saveHistogram: false } }
  await using writer = await createWriter(place(), { ...EVERY, saveAll: true, collections, tensorboard })
  await writer.step()
  await writer.save('flags', [true, false])
  await writer.save('none', new Float32Array(0))
  await writer.save('texts', ['a'])
  await writer.save('complex', new Float32Array(4), { dtype: 'complex64' })
  await writer.save('loss_output_0', [1, 2])
  await writer.save('mine', [1, 2])
  await writer.close()
  // `mine` belongs to `all`, too.
  expect(shown(tensorboard)).toEqual({
    GLOBAL: [
      [0, 'all/loss_output_0', { num: 2 }],
      [0, 'all/mine', { num: 2 }],
    ],
  })
})

it("has histograms of one's own at any step", async () => {
  const tensorboard = place()
  await using writer = await createWriter(place(), { saveConfig: { saveInterval: 10 }, tensorboard })
  for (let i = 0; i < 2; i++) {
    await writer.step()
    await writer.saveHistogram(
      'mine',
      [
        [1, 2],
        [3, 4],
      ],
      { dtype: 'float32' },
    )
  }
  await expect(writer.saveHistogram('', [1])).rejects.toThrow(UsageError)
  await expect(writer.saveHistogram('x', [1], { shapes: [1] } as never)).rejects.toThrow(/did you mean shape/)
  await writer.close()
  expect(shown(tensorboard)).toEqual({
    GLOBAL: [
      [0, 'mine', { num: 4 }],
      [1, 'mine', { num: 4 }],
    ],
  })
})

it('has runs of each of several workers', async () => {
  const [path, tensorboard] = [place(), place()]
  for (const worker of ['worker_0', 'worker_1']) {
    await using writer = await createWriter(path, { ...EVERY, worker, numWorkers: 2, tensorboard })
    await writer.step()
    await writer.save('loss_output_0', 1)
    await writer.close()
  }
  expect(Object.keys(shown(tensorboard))).toEqual(['worker_0/GLOBAL', 'worker_1/GLOBAL'])
})

it('tells what it can not write', async () => {
  await expect(createWriter(place(), { tensorboard: 's3://bucket/logs' })).rejects.toThrow(/a directory on disk/)
  const file = place()
  writeFileSync(file, '')
  const writer = await createWriter(place(), { tensorboard: file })
  await writer.step()
  await writer.saveScalar('x', 1)
  await expect(writer.step()).rejects.toThrow(/cannot write/)
  await expect(writer.close()).rejects.toThrow(/cannot write/)
})

describe('as SageMaker is told', () => {
  const config = (parameters: object, path = '/tmp/tensors') =>
    JSON.stringify({ LocalPath: path, HookParameters: parameters })
  const directoryOf = (parameters: object) => parseHookConfig(config(parameters)).options.tensorboard

  it('goes where the configuration says', () => {
    expect(directoryOf({})).toBeUndefined()
    expect(directoryOf({ export_tensorboard: 'false' })).toBeUndefined()
    expect(directoryOf({ export_tensorboard: 'true' })).toBe('/tmp/tensors/tensorboard')
    expect(directoryOf({ export_tensorboard: true, tensorboard_dir: '/tmp/logs' })).toBe('/tmp/logs')
    expect(directoryOf({ tensorboard_dir: '/tmp/logs' })).toBe('/tmp/logs')
    expect(() => directoryOf({ tensorboard_dir: 7 })).toThrow(/tensorboard_dir: expected a path, got 7/)
  })

  async function train(parameters: object): Promise<string> {
    const [path, file] = [place(), place()]
    writeFileSync(file, config(parameters, path))
    await using writer = await createWriterFromJson(file)
    await writer.step()
    await writer.saveScalar('x', 1)
    await writer.close()
    return path
  }

  it('may lie in the trial, which is a trial all the same', async () => {
    const path = await train({ export_tensorboard: true })
    expect(Object.keys(shown(join(path, 'tensorboard')))).toEqual(['GLOBAL'])
    const trial = await createTrial(path)
    expect([trial.workers(), trial.tensorNames()]).toEqual([['worker_0'], ['scalar/x']])
    await trial.close()
    const { ok, problems } = await verifyTrial(path, { deep: true })
    expect([ok, problems.filter(({ severity }) => severity === 'problem')]).toEqual([true, []])
  })

  it('in a job goes where a file of its own says, or nowhere', async () => {
    vi.stubEnv('TRAINING_JOB_NAME', 'job')
    vi.stubEnv('TENSORBOARD_CONFIG_FILE_PATH', join(scratch, 'tensorboardoutputconfig.json'))
    const path = await train({ export_tensorboard: true })
    expect(existsSync(join(path, 'tensorboard'))).toBe(false)
    const logs = place()
    writeFileSync(process.env.TENSORBOARD_CONFIG_FILE_PATH!, JSON.stringify({ LocalPath: logs }))
    await train({})
    expect(readdirSync(logs)).toEqual(['GLOBAL'])
    writeFileSync(process.env.TENSORBOARD_CONFIG_FILE_PATH!, '{"LocalPath"')
    await expect(train({})).rejects.toThrow(/tensorboardoutputconfig.json/)
    expect(readFileSync(process.env.TENSORBOARD_CONFIG_FILE_PATH!, 'utf8')).toBe('{"LocalPath"')
  })
})
