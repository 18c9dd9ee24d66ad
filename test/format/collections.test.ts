import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { type CollectionConfig, Membership, mergeCollections, parseCollections } from '#dist/format/collections.js'
import { parseIndexFile } from '#dist/format/index-file.js'
import { parseCollectionsFileName, parseIndexFileName } from '#dist/format/paths.js'
import { parseReductionName } from '#dist/format/reduction-name.js'

const URL = 'file:///trial/collections/000000000/worker_0_collections.json'

function parse(collections: unknown, _meta: unknown = { num_workers: 1 }) {
  return parseCollections(JSON.stringify({ collections, _meta }), URL)
}

function only(entry: unknown): CollectionConfig {
  return parse({ c: entry }).collections.get('c')!
}

it('reads the example of format.md', () => {
  const { collections, numWorkers } = parse({
    gradients: {
      name: 'gradients',
      include_regex: ['^gradient'],
      tensor_names: ['gradient/CNN_conv0.bias'],
      reduction_config: { save_raw_tensor: true, reductions: '', save_shape: false },
      save_config: {
        TRAIN: { save_interval: 10, save_steps: [], start_step: 0, end_step: null },
        EVAL: null,
        PREDICT: null,
        GLOBAL: null,
      },
      save_histogram: true,
    },
  })
  expect(numWorkers).toBe(1)
  expect([...collections]).toEqual([
    [
      'gradients',
      {
        name: 'gradients',
        includeRegex: ['^gradient'],
        tensorNames: ['gradient/CNN_conv0.bias'],
        reductionConfig: { saveRawTensor: true, reductions: [], saveShape: false },
        saveConfig: {
          TRAIN: { saveInterval: 10, saveSteps: [], startStep: 0, endStep: null },
          EVAL: null,
          PREDICT: null,
          GLOBAL: null,
        },
        saveHistogram: true,
      },
    ],
  ])
})

it('what can be written in several ways is read in all', () => {
  expect(only({})).toMatchObject({
    name: 'c',
    includeRegex: [],
    tensorNames: [],
    reductionConfig: null,
    saveConfig: null,
  })
  for (const none of [false, null, []]) expect(only({ include_regex: none }).includeRegex).toEqual([])
  expect(only({ include_regex: 'loss' }).includeRegex).toEqual(['loss'])
  for (const reductions of ['mean, abs_l2_norm,', ['mean', 'abs_l2_norm']]) {
    expect(only({ reduction_config: { reductions } }).reductionConfig).toEqual({
      saveRawTensor: false,
      saveShape: false,
      reductions: ['mean', 'abs_l2_norm'],
    })
  }
  const single = only({ save_config: { save_interval: 3, save_steps: [1, 7], end_step: 9 } }).saveConfig
  expect(single?.TRAIN).toEqual({ saveInterval: 3, saveSteps: [1, 7], startStep: 0, endStep: 9 })
  expect(single?.GLOBAL).toEqual(single?.TRAIN)
  expect(only({ save_config: { EVAL: {} } }).saveConfig?.EVAL?.saveInterval).toBe(500)
  const never = { save_interval: 0, save_steps: [-1], start_step: -5, end_step: -1 }
  expect(only({ save_config: { EVAL: never } }).saveConfig?.EVAL).toEqual({
    saveInterval: 0,
    saveSteps: [-1],
    startStep: -5,
    endStep: -1,
  })
})

it('a collection may be called __proto__', () => {
  const { collections } = parseCollections('{"collections": {"__proto__": {"tensor_names": ["x"]}}}', URL)
  expect(collections.get('__proto__')).toMatchObject({ name: '__proto__', tensorNames: ['x'] })
  expect({}).not.toHaveProperty('tensor_names')
})

describe('refuses', () => {
  it.each<[unknown, unknown, string]>([
    [[], {}, 'collections: expected an object, got a list of 0'],
    [{ c: null }, {}, 'collections.c: expected an object, got null'],
    [{ c: { name: 1 } }, {}, 'collections.c.name: expected a string'],
    [{ c: { include_regex: true } }, {}, 'collections.c.include_regex: expected a list, got true'],
    [{ c: { include_regex: [1] } }, {}, 'collections.c.include_regex[0]: expected a string'],
    [{ c: { tensor_names: 'x' } }, {}, 'collections.c.tensor_names: expected a list'],
    [{ c: { reduction_config: 'mean' } }, {}, 'reduction_config: expected an object'],
    [{ c: { save_config: { TRIAN: {} } } }, {}, 'got "TRIAN"'],
    [{ c: { save_config: { TRAIN: { save_interval: 0.5 } } } }, {}, 'save_config.TRAIN.save_interval'],
    [{ c: { save_histogram: 'yes' } }, {}, 'save_histogram: expected true or false'],
    [{}, { num_workers: 0 }, '_meta.num_workers: expected a whole number from 1'],
    [{}, [], '_meta: expected an object'],
  ])('%j %j', (collections, meta, message) => {
    expect(() => parse(collections, meta)).toThrow(
      expect.objectContaining({ code: 'BadCollectionsFile', url: URL, message: expect.stringContaining(message) }),
    )
  })

  it('no collections', () => {
    expect(() => parseCollections('{}', URL)).toThrow('collections: expected an object, got nothing')
  })
})

it('workers are merged in order', () => {
  const a = parse({ c: { tensor_names: ['x', 'y'], include_regex: ['b'] }, d: {} }, { num_workers: 2 })
  const b = parse(
    { e: {}, c: { tensor_names: ['z', 'x'], include_regex: ['a', 'b'], reduction_config: { reductions: 'min' } } },
    { num_workers: 3 },
  )
  const { collections, numWorkers } = mergeCollections([a, b])
  expect(numWorkers).toBe(3)
  expect([...collections.keys()]).toEqual(['c', 'd', 'e'])
  expect(collections.get('c')).toMatchObject({ tensorNames: ['x', 'y', 'z'], includeRegex: ['b', 'a'] })
  expect(collections.get('c')?.reductionConfig?.reductions).toEqual(['min'])
  expect(mergeCollections([])).toEqual({ collections: new Map(), numWorkers: 1 })
})

it('members are the saved tensors that are named or found', () => {
  const config = only({ tensor_names: ['z', 'never saved'], include_regex: ['^grad', 'loss$'] })
  const saved = ['a_loss', 'gradient/a', 'gradient/b', 'loss_b', 'm', 'n', 'o', 'p', 'z', 'z/loss']
  const members = new Membership(saved).members(config)
  expect(members.toArray()).toEqual(['a_loss', 'gradient/a', 'gradient/b', 'z', 'z/loss'])
  expect(members.size).toBe(5)
  expect(() => new Membership([]).members(only({ include_regex: ['('] }))).toThrow('pattern "("')
})

const SHARED = new globalThis.URL('../../../shared/', import.meta.url)

describe.runIf(existsSync(new globalThis.URL('trials', SHARED)))('the trials in shared', () => {
  const files = (directory: globalThis.URL) =>
    existsSync(directory)
      ? readdirSync(directory, { recursive: true, encoding: 'utf8' }).map(
          path => new globalThis.URL(`${directory.href}/${path}`),
        )
      : []

  it.each(existsSync(SHARED) ? readdirSync(new globalThis.URL('trials', SHARED)) : [])('%s', trial => {
    const golden = JSON.parse(readFileSync(new globalThis.URL(`expected/${trial}.json`, SHARED), 'utf8')) as {
      workers: string[]
      collections: Record<string, string[]>
    }
    const root = new globalThis.URL(`trials/${trial}`, SHARED).href
    const names = new Set<string>()
    const workers = new Set<string>()
    for (const url of files(new globalThis.URL(`${root}/index`))) {
      const parsed = parseIndexFileName(url.pathname)
      if (parsed === null) continue
      workers.add(parsed.worker)
      if (parsed.kind === 'csv') continue
      const { tensors, shapes } = parseIndexFile(readFileSync(url, 'utf8'), url.href)
      for (const { name } of [...tensors, ...shapes]) names.add(parseReductionName(name)?.tensor ?? name)
    }
    expect([...workers].sort()).toEqual(golden.workers)
    const ofWorkers = files(new globalThis.URL(`${root}/collections`)).filter(
      url => parseCollectionsFileName(url.pathname) !== null,
    )
    // Tornasole's collections have another format.
    if (ofWorkers.length === 0) return
    expect(ofWorkers.map(url => parseCollectionsFileName(url.pathname)).sort()).toEqual(golden.workers)
    const { collections } = mergeCollections(
      ofWorkers.map(url => parseCollections(readFileSync(url, 'utf8'), url.href)),
    )
    const members = [...collections].map(([name, config]) => [
      name,
      new Membership([...names].sort()).members(config).toArray(),
    ])
    expect(Object.fromEntries(members)).toEqual(golden.collections)
  })
})
