/** Runs of TensorBoard that a writer writes beside its trial. */

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import {
  createTrial,
  createWriter,
  createWriterFromJson,
  exportTensorBoard,
  parseHookConfig,
  type TrialWriter,
  UsageError,
  verifyTrial,
  type WriterOptions,
} from '#dist/index.js'
import { FaultyS3 } from '../support/faulty-s3.js'
import { scratchDirectory } from '../support/scratch.js'
import { type ProtoValue, pixelsOf, runsBelow } from '../support/tensorboard.js'

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

/** Images by their tags. */
function imagesBelow(directory: string): Record<string, ProtoValue['image']> {
  const values = [...runsBelow(directory).values()].flat().flatMap(({ summary }) => summary?.value ?? [])
  return Object.fromEntries(values.flatMap(({ tag, value, image }) => (value === 'image' ? [[tag, image]] : [])))
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

it('has images where they are wanted and shapes allow, the same as those of an export', async () => {
  const [path, plain] = [place(), place()]
  const directory = place()
  const collections = { mine: { includeRegex: ['^mine'], saveHistogram: false } }
  const options: WriterOptions = { ...EVERY, collections, includeRegex: ['^(?!mine|loss)'] }
  for (const [at, tensorboard] of [
    [path, { directory, images: true }],
    [place(), { directory: plain }],
  ] as const) {
    await using writer = await createWriter(at, { ...options, tensorboard })
    await writer.step()
    const ramp = (count: number) => Float32Array.from({ length: count }, (_, i) => i / 7 - 3)
    await writer.save('mine/rgb', ramp(2 * 3 * 4 * 3), { shape: [2, 3, 4, 3] })
    await writer.save('grey', Uint8Array.of(9, 0, 50, 100, 150, 200, 255).subarray(1), { shape: [2, 3] })
    await writer.save('half', Uint16Array.of(0, 0x3c00, 0x3800, 0x3400), { shape: [2, 2], dtype: 'float16' })
    await writer.save('stack', ramp(5 * 4), { shape: [5, 2, 2] })
    await writer.save('flags', [
      [true, false],
      [false, true],
    ])
    await writer.save('row', ramp(9))
    await writer.save('complex', new Float32Array(8), { shape: [2, 2], dtype: 'complex64' })
    await writer.save('loss_output_0', ramp(4), { shape: [2, 2], collection: 'losses' })
    await writer.close()
  }
  const ofExport = place()
  const trial = await createTrial(path)
  await exportTensorBoard(trial, ofExport, { images: true })
  await trial.close()
  const live = imagesBelow(directory)
  const exported = imagesBelow(ofExport)
  expect(Object.keys(live)).toEqual([
    'mine/mine/rgb/image/0',
    'mine/mine/rgb/image/1',
    'default/grey/image/0',
    'default/half/image/0',
    'default/stack/image/0',
    'default/stack/image/1',
    'default/stack/image/2',
    'default/flags/image/0',
  ])
  for (const [tag, image] of Object.entries(live)) {
    expect(image, tag).toEqual(exported[tag.replace(/^(mine|default)[/]/, '')])
  }
  expect(pixelsOf(live['default/half/image/0']!.encoded_image_string)).toEqual([0, 255, 128, 64])
  // `mine` has no histograms, but images.
  const histograms = Object.values(shown(directory)).flat() as [number, string, unknown][]
  expect(histograms.flatMap(([, tag, value]) => (value instanceof Object ? [tag] : []))).toEqual([
    'default/grey',
    'default/half',
    'default/stack',
    'default/row',
  ])
  expect(imagesBelow(plain)).toEqual({})
  expect((await verifyTrial(directory, { deep: true })).problems).toEqual([])
})

it('has as many images of a tensor as a training can wait for', async () => {
  const directory = place()
  await using writer = await createWriter(place(), {
    ...EVERY,
    saveAll: true,
    tensorboard: { directory, images: true },
  })
  await writer.step()
  await writer.save('large', new Uint8Array(1025 * 1024), { shape: [1025, 1024] })
  await writer.save('two', new Uint8Array(3 * 600 * 800), { shape: [3, 600, 800, 1] })
  await writer.close()
  expect(Object.keys(imagesBelow(directory))).toEqual(['all/two/image/0', 'all/two/image/1'])
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

it('writes a further event file of each run to S3 with each step', async () => {
  const s3 = await FaultyS3.start()
  for (const path of [place(), 's3://bucket/trial']) {
    const logs = `logs-${path.startsWith('s3:')}`
    const tensorboard = { directory: `s3://bucket/${logs}`, ...(!path.startsWith('s3:') && { s3: s3.options }) }
    const options = { ...EVERY, tensorboard, ...(path.startsWith('s3:') && { s3: s3.options }) }
    await using writer = await createWriter(path, options)
    for (const loss of [3, 2, 1]) {
      await writer.step()
      await writer.save('loss_output_0', loss)
    }
    await writer.close()
    expect([...s3.objects.keys()].filter(key => key.startsWith(`${logs}/`))).toHaveLength(3)
    const trial = await createTrial(`s3://bucket/${logs}`, { threads: 0, s3: s3.options })
    const values = await trial.tensor(trial.tensorNames()[0]!).values()
    expect([...values.values()].map(({ data }) => data[0])).toEqual([3, 2, 1])
    await trial.close()
    await expect(
      createWriter(place(), { tensorboard: { directory: `s3://bucket/${logs}`, s3: s3.options } }),
    ).rejects.toThrow('expected no run there yet')
  }
  await s3.stop()
})

it('tells what it can not write', async () => {
  for (const [tensorboard, message] of [
    [7, /tensorboard to be a directory, or an object with directory and images, got 7/],
    [{ images: true }, /createWriter, tensorboard: expected directory, got none/],
    [{ directory: 'x', image: true }, /createWriter, tensorboard has no option "image"; did you mean images/],
    [{ directory: 'x', images: 1 }, /expected images to be true or false, got 1/],
  ] as const) {
    await expect(createWriter(place(), { tensorboard } as never)).rejects.toThrow(message)
  }
})

it('is refused before anything is written where it can not be', async () => {
  const [path, file] = [place(), place()]
  writeFileSync(file, '')
  await expect(createWriter(path, { tensorboard: file })).rejects.toThrow(
    `cannot write ${file}: there is a file of that name`,
  )
  await expect(createWriter(path, { tensorboard: join(file, 'logs') })).rejects.toThrow(
    /logs: a part of its path is not a directory/,
  )
  expect(existsSync(path)).toBe(false)
})

it('is refused in the log directory of another training', async () => {
  const [path, tensorboard] = [place(), place()]
  const write = async (writer: TrialWriter) => {
    writer.setMode('TRAIN')
    await writer.step()
    await writer.saveScalar('x', 1)
    await writer.close()
  }
  // Neither has written anything when the other begins.
  const [first, second] = [await createWriter(place(), { tensorboard }), await createWriter(place(), { tensorboard })]
  await write(first)
  await expect(write(second)).rejects.toThrow(/TRAIN.*: expected no run there yet, got one: write to another place/)
  await expect(createWriter(path, { tensorboard })).rejects.toThrow(/expected no run there yet, got one/)
  expect(existsSync(path)).toBe(false)
  // Another worker's runs lie beside them.
  await write(await createWriter(path, { tensorboard, worker: 'worker_1', numWorkers: 2 }))
  expect(Object.keys(shown(tensorboard))).toEqual(['TRAIN', 'worker_1/TRAIN'])
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
    expect(directoryOf({ tensorboard_dir: '/tmp/logs', tensorboard_images: 'True' })).toEqual({
      directory: '/tmp/logs',
      images: true,
    })
    expect(directoryOf({ tensorboard_images: true })).toBeUndefined()
  })

  async function train(parameters: object): Promise<string> {
    const [path, file] = [place(), place()]
    writeFileSync(file, config(parameters, path))
    await using writer = await createWriterFromJson(file)
    await writer.step()
    await writer.saveScalar('x', 1)
    await writer.save('picture', new Uint8Array(6), { shape: [2, 3] })
    await writer.close()
    return path
  }

  it('may lie in the trial, which is a trial all the same', async () => {
    const path = await train({ export_tensorboard: true })
    expect(Object.keys(shown(join(path, 'tensorboard')))).toEqual(['GLOBAL'])
    const trial = await createTrial(path)
    expect([trial.workers(), trial.tensorNames()]).toEqual([['worker_0'], ['picture', 'scalar/x']])
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
    await train({ tensorboard_images: true })
    expect(readdirSync(logs)).toEqual(['GLOBAL'])
    expect(Object.keys(imagesBelow(logs))).toEqual(['default/picture/image/0'])
    writeFileSync(process.env.TENSORBOARD_CONFIG_FILE_PATH!, '{"LocalPath"')
    await expect(train({})).rejects.toThrow(/tensorboardoutputconfig.json/)
    expect(readFileSync(process.env.TENSORBOARD_CONFIG_FILE_PATH!, 'utf8')).toBe('{"LocalPath"')
  })
})
