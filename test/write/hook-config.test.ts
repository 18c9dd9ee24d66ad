/** SageMaker's configuration of smdebug's hook. */

import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { createTrial, createWriter, createWriterFromJson, FormatError, parseHookConfig } from '#dist/index.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('hook-config')
const parse = (config: unknown) => parseHookConfig(JSON.stringify(config), 'hook.json')

describe('a configuration', () => {
  it('means what it means to smdebug', () => {
    const config = parse({
      S3OutputPath: 's3://bucket/prefix',
      LocalPath: '/tmp/tensors',
      HookParameters: {
        save_all: 'false',
        include_regex: 'regexe1, regexe2',
        save_interval: '100',
        save_steps: '1,2,3,4',
        start_step: 1,
        'eval.save_interval': '5',
        'eval.end_step': 50,
        include_workers: 'one',
        export_tensorboard: false,
        reductions: 'min,max,abs_variance,l2_norm,abs_l2_norm',
        save_shape: true,
      },
      CollectionConfigurations: [
        { CollectionName: 'weights' },
        {
          CollectionName: 'mine',
          CollectionParameters: { include_regex: 'relu', 'train.save_interval': 7, save_histogram: 'False' },
        },
        { CollectionName: 'gradients', CollectionParameters: null },
      ],
    })
    expect(config).toEqual({
      path: '/tmp/tensors',
      s3OutputPath: 's3://bucket/prefix',
      options: {
        includeRegex: ['regexe1', 'regexe2'],
        saveAll: false,
        includeWorkers: 'one',
        saveConfig: {
          saveInterval: 100,
          saveSteps: [1, 2, 3, 4],
          startStep: 1,
          EVAL: { saveInterval: 5, endStep: 50 },
        },
        reductionConfig: {
          reductions: ['min', 'max', 'abs_variance', 'l2', 'abs_l2'],
          saveRawTensor: false,
          saveShape: true,
        },
        includeCollections: ['weights', 'mine', 'gradients'],
        collections: {
          weights: { saveConfig: {} },
          mine: { includeRegex: ['relu'], saveConfig: { TRAIN: { saveInterval: 7 } }, saveHistogram: false },
          gradients: { saveConfig: {} },
        },
      },
      ignored: [],
    })
    expect(parse({ HookParameters: null, CollectionConfigurations: null })).toEqual({
      path: '/opt/ml/output/tensors',
      s3OutputPath: null,
      options: { saveConfig: { saveInterval: 500 } },
      ignored: [],
    })
  })

  it.each([
    [
      { HookParameters: { save_interval: 'often' } },
      /HookParameters.save_interval: expected a whole number from 1 on, got "often"/,
    ],
    [{ HookParameters: { save_interval: 0 } }, /save_interval: expected a whole number from 1 on, got 0/],
    [
      { CollectionConfigurations: [{ CollectionName: 'a', CollectionParameters: { include_regex: 'relu,(' } }] },
      /^hook.json: CollectionConfigurations\[0\].CollectionParameters.include_regex: expected Python regular exp.*, got "\("/,
    ],
    [{ HookParameters: { 'eval.save_steps': '1,x' } }, /eval.save_steps: expected a whole number from 0 on, got "x"/],
    [{ HookParameters: { reductions: 'mean,median' } }, /reductions: expected one of min, max, .*abs_l2, got "median"/],
    [{ HookParameters: { save_all: 'perhaps' } }, /save_all: expected true or false, got "perhaps"/],
    [{ HookParameters: { include_workers: 'two' } }, /include_workers: expected one or all, got "two"/],
    [
      { HookParameters: { save_intervall: 5 } },
      /hook.json: HookParameters: expected save_interval, got "save_intervall"/,
    ],
    [
      { HookParameters: { 'evaluate.save_interval': 5 } },
      /HookParameters: expected eval.save_interval, got "evaluate.save_interval"/,
    ],
    [
      { HookParameters: { 'eval.reductions': 'min' } },
      /HookParameters: expected reductions, for all modes alike, got "eval.reductions"/,
    ],
    [
      { HookParameters: { save_histogram: false } },
      /HookParameters: expected parameters of the hook, got "save_histogram", which only collections can have/,
    ],
    [{ Localpath: '/tmp' }, /hook.json: expected LocalPath, got "Localpath"/],
    [{ CollectionConfiguration: [] }, /hook.json: expected CollectionConfigurations, got "CollectionConfiguration"/],
    [
      { CollectionConfigurations: [{ CollectionName: 'a', CollectionParameter: {} }] },
      /CollectionConfigurations\[0\]: expected CollectionParameters, got "CollectionParameter"/,
    ],
    [
      { CollectionConfigurations: [{ CollectionName: 'a', CollectionParameters: { save_all: true } }] },
      /CollectionParameters: expected parameters of a collection, got "save_all", which only the hook can have/,
    ],
    [{ HookParameters: { save_raw_tensor: false } }, /expected true where there are no reductions, got false/],
    [{ HookParameters: [] }, /HookParameters: expected an object, got a list of 0/],
    [{ CollectionConfigurations: {} }, /CollectionConfigurations: expected an array, got an object/],
    [
      { CollectionConfigurations: [{}] },
      /CollectionConfigurations\[0\].CollectionName: expected the name of a collection, got nothing/,
    ],
    [{ LocalPath: 3 }, /LocalPath: expected a path, got 3/],
    [{ HookParameters: { include_regex: {} } }, /include_regex: expected a text, its parts separated by commas, got/],
  ])('that is wrong is told: %j', (config, message) => {
    expect(() => parse(config)).toThrow(message)
    expect(() => parse(config)).toThrow(FormatError)
  })

  it('has collections that come again: patterns of all, and the last of all else', () => {
    const collection = (parameters: object) => ({ CollectionName: 'mine', CollectionParameters: parameters })
    const { collections, includeCollections } = parse({
      CollectionConfigurations: [
        collection({ include_regex: 'relu', save_interval: 2, reductions: 'min', save_histogram: false }),
        collection({ include_regex: 'tanh,elu', end_step: 7 }),
      ],
    }).options
    expect([collections, includeCollections]).toEqual([
      {
        mine: {
          includeRegex: ['relu', 'tanh', 'elu'],
          saveConfig: { endStep: 7 },
          reductionConfig: { reductions: ['min'], saveRawTensor: false },
          saveHistogram: false,
        },
      },
      ['mine'],
    ])
  })

  it('tells what it has that means nothing', () => {
    const config = {
      DebugRuleConfigurations: [],
      HookParameters: { dry_run: true, save_interval: 1, 'train.depth': 1 },
      CollectionConfigurations: [{ CollectionName: 'a', CollectionParameters: { color: 'red' }, Tags: [] }],
    }
    expect(parse(config).ignored).toEqual([
      'DebugRuleConfigurations',
      'HookParameters.dry_run',
      'HookParameters.train.depth',
      'CollectionConfigurations[0].Tags',
      'CollectionConfigurations[0].CollectionParameters.color',
    ])
  })

  it('has shapes and values without reductions', () => {
    const { options } = parse({ HookParameters: { save_shape: 'true', reductions: '' } })
    expect(options.reductionConfig).toEqual({ reductions: [], saveRawTensor: true, saveShape: true })
    const shapeAlone = parse({ HookParameters: { save_shape: 1, save_raw_tensor: 'False' } })
    expect(shapeAlone.options.reductionConfig).toEqual({ reductions: [], saveRawTensor: false, saveShape: true })
  })

  it('that a job names begins a trial of one worker', async () => {
    const [file, path] = [join(scratch, 'named.json'), join(scratch, 'one')]
    writeFileSync(
      file,
      JSON.stringify({ LocalPath: path, HookParameters: { save_interval: 1, include_workers: 'one' } }),
    )
    vi.stubEnv('SMDEBUG_CONFIG_FILE_PATH', file)
    try {
      for (const worker of ['worker_1', 'worker_0']) {
        const writer = await createWriterFromJson(undefined, { worker, numWorkers: 2 })
        await writer.step()
        expect(writer.shouldSave('x')).toBe(worker === 'worker_0')
        await writer.save('x', new Float32Array(100_000))
        await writer.saveScalar('y', 1)
        await writer.close()
        expect(existsSync(path)).toBe(worker === 'worker_0')
      }
    } finally {
      vi.unstubAllEnvs()
    }
    const trial = await createTrial(path)
    expect(trial.steps()).toEqual([0])
    expect(trial.tensor('x').workers(0)).toEqual(['worker_0'])
  })

  it('that SageMaker has not given has a writer that saves nothing', async () => {
    const metrics = join(scratch, 'metrics')
    vi.stubEnv('SMDEBUG_CONFIG_FILE_PATH', '')
    vi.stubEnv('SAGEMAKER_METRICS_DIRECTORY', metrics)
    try {
      const writer = await createWriterFromJson(undefined, { saveAll: true, tensorboard: join(scratch, 'runs') })
      await writer.step({ saveAll: true })
      expect(writer.shouldSave('x')).toBe(false)
      await writer.save('x', new Float32Array(100_000), { collection: 'losses' })
      await writer.saveScalar('y', 1, { sagemakerMetric: true })
      await writer.saveHistogram('z', Float32Array.of(1, 2))
      await writer.record(7, { x: 1 })
      await writer.close()
      for (const path of [writer.path, metrics, join(scratch, 'runs')])
        expect([path, existsSync(path)]).toEqual([path, false])
    } finally {
      vi.unstubAllEnvs()
    }
    vi.stubEnv('SMDEBUG_CONFIG_FILE_PATH', join(scratch, 'none.json'))
    await expect(createWriterFromJson()).rejects.toThrow(/none.json/)
    vi.unstubAllEnvs()
    await expect(createWriter(join(scratch, 'x'), { savesNothing: 1 as never })).rejects.toThrow(
      /savesNothing to be true or false/,
    )
  })

  it('begins a trial', async () => {
    const [file, path] = [join(scratch, 'hook.json'), join(scratch, 'trial')]
    const config = {
      LocalPath: path,
      HookParameters: { save_interval: '2', 'eval.save_interval': '1' },
      CollectionConfigurations: [{ CollectionName: 'biases', CollectionParameters: { reductions: 'mean,l2_norm' } }],
    }
    writeFileSync(file, JSON.stringify(config))
    const writer = await createWriterFromJson(file, { worker: 'worker_3' })
    for (const mode of ['TRAIN', 'TRAIN', 'TRAIN', 'EVAL', 'EVAL'] as const) {
      writer.setMode(mode)
      await writer.step()
      await writer.save('fc.bias', Float32Array.of(1, 3), { collection: 'biases' })
      await writer.save('fc.weight', Float32Array.of(2), { collection: 'weights' })
    }
    await writer.close()
    const trial = await createTrial(path)
    expect(trial.tensorNames()).toEqual(['fc.bias'])
    expect(trial.steps()).toEqual([0, 2, 3, 4])
    expect(await trial.tensor('fc.bias').reductionValue(2, 'mean')).toBe(2)
    expect(await trial.tensor('fc.bias').reductionValue(2, 'l2')).toBe(Math.sqrt(10))
    await expect(createWriterFromJson(join(scratch, 'none.json'))).rejects.toThrow(/none.json/)
    await expect(createWriterFromJson(7 as never)).rejects.toThrow(/expected the path of a configuration, got 7/)
  })
})
