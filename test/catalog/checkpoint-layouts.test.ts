/** Layouts of directories that training programs leave, and what is told where something in them is missing or contradicts. */

import { mkdirSync, readdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createTrial, findTrials, verifyTrial } from '#dist/index.js'
import { counting, npy, safetensors, writeFile } from '../../fixtures/checkpoint-writer.js'
import { npy as npyOf, of, zip } from '../support/array-files.js'
import { dict, int, type Piece, pickled, tensor, text, torchZip } from '../support/pickles.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('checkpoint-layouts')

type Content = Uint8Array | string

const ARRAY = npy(counting('', [2]))

/** A file of torch with two floats. */
function torchFile(root: (w: Piece) => Piece = w => dict({ w }), values: readonly number[] = [1, 2]): Uint8Array {
  const pickle = pickled(root(tensor({ count: 2, size: [2], stride: [1] })))
  return torchZip({ 'data.pkl': pickle, 'data/0': new Uint8Array(Float32Array.from(values).buffer) })
}

const shard = (...names: string[]) => safetensors(names.map(name => counting(name, [2])))
const indexOf = (weight_map: Record<string, string>) => JSON.stringify({ metadata: {}, weight_map })

/** Writes files that nobody writes any more. */
function place(name: string, files: Readonly<Record<string, Content>>): string {
  const root = join(scratch, name)
  mkdirSync(root, { recursive: true })
  for (const [path, content] of Object.entries(files)) writeFile(join(root, path), Buffer.from(content))
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    utimesSync(join(entry.parentPath, entry.name), 1e9, 1e9)
  }
  return root
}

async function told(root: string) {
  const trial = await createTrial(root, { refresh: 'manual' })
  const { notes, problems } = trial
  const facts = { steps: trial.steps(), workers: trial.workers(), names: trial.tensorNames().sort(), notes: [...notes] }
  await trial.close()
  return {
    ...facts,
    problems: problems.map(({ code, message }) => `${code} ${message.slice(message.indexOf(scratch))}`),
  }
}

it.each<[string, Record<string, Content>, Partial<Awaited<ReturnType<typeof told>>>]>([
  [
    'DeepSpeed pipeline layers, whose tensors have the same names in each',
    {
      'global_step5/layer_00-model_00-model_states.pt': torchFile(),
      'global_step5/layer_01-model_00-model_states.pt': torchFile(),
      'global_step5/layer_01-model_01-model_states.pt': torchFile(),
    },
    { workers: ['mp_rank_00', 'mp_rank_01'], names: ['layer_00.w', 'layer_01.w'], problems: [] },
  ],
  [
    'DeepSpeed pipeline layers without tensor parallelism, beside what else it saves',
    {
      'global_step10/layer_00-model_states.pt': torchFile(weight => dict({ mlp: dict({ weight }) })),
      'global_step10/layer_01-model_states.pt': torchFile(weight => dict({ mlp: dict({ weight }) })),
      'global_step10/mp_rank_00_model_states.pt': torchFile(w => dict({ module: dict({ w }) })),
      'global_step10/zero_pp_rank_0_mp_rank_00_optim_states.pt': torchFile(flat => dict({ flat })),
    },
    {
      workers: ['mp_rank_00', 'zero_pp_rank_0_mp_rank_00'],
      names: ['layer_00.mlp.weight', 'layer_01.mlp.weight', 'module.w', 'optim_states.flat'],
      problems: [],
    },
  ],
  [
    'versions of one step of Lightning, of which the last is meant',
    {
      'epoch=0-step=50.ckpt': torchFile(),
      'epoch=0-step=100.ckpt': torchFile(),
      'epoch=0-step=100-v1.ckpt': torchFile(),
    },
    {
      steps: [50, 100],
      names: ['w'],
      notes: ['"epoch=0-step=100.ckpt" beside the steps epoch=<e>-step=<n>.ckpt is not read: name it to read it'],
      problems: [],
    },
  ],
  [
    'ranks of Composer, a file each at a step',
    {
      'ep0-ba100-rank0.pt': torchFile(),
      'ep0-ba100-rank1.pt': torchFile(),
      'ep0-ba200-rank0.pt': torchFile(),
      'ep0-ba200-rank1.pt': torchFile(),
    },
    { steps: [100, 200], workers: ['rank_0', 'rank_1'], names: ['w'], notes: [], problems: [] },
  ],
  [
    'two series of shards of one number, each with an index',
    {
      'model-00001-of-00002.safetensors': shard('a'),
      'model-00002-of-00002.safetensors': shard('b'),
      'model.safetensors.index.json': indexOf({
        a: 'model-00001-of-00002.safetensors',
        b: 'model-00002-of-00002.safetensors',
      }),
      'consolidated-00001-of-00002.safetensors': shard('c'),
      'consolidated-00002-of-00002.safetensors': shard('d'),
      'consolidated.safetensors.index.json': indexOf({
        c: 'consolidated-00001-of-00002.safetensors',
        d: 'consolidated-00002-of-00002.safetensors',
      }),
    },
    { names: ['a', 'b', 'c', 'd'], notes: [], problems: [] },
  ],
  [
    'a series that lacks a shard, beside an index of as many others',
    {
      'model-00001-of-00002.safetensors': shard('a'),
      'model-00002-of-00002.safetensors': shard('b'),
      'model.safetensors.index.json': indexOf({
        a: 'model-00001-of-00002.safetensors',
        b: 'model-00002-of-00002.safetensors',
      }),
      'ema-00001-of-00002.safetensors': shard('c'),
    },
    { problems: [expect.stringMatching(/^MissingShard .*ema-00002-of-00002\.safetensors: /)] as unknown as string[] },
  ],
  [
    'the same weights in another precision and format',
    {
      'model.safetensors': shard('a'),
      'model.fp16.safetensors': shard('a'),
      'pytorch_model.fp16.bin': torchFile(),
      'adapter_model.safetensors': shard('b'),
      'adapter_model.bin': torchFile(),
    },
    { names: ['a', 'b'], problems: [] },
  ],
  [
    'ranks of Llama',
    { 'consolidated.00.pth': torchFile(), 'consolidated.01.pth': torchFile() },
    { workers: ['rank_0', 'rank_1'], names: ['w'], problems: [] },
  ],
  [
    'hooks whose directories are ranks with process numbers',
    { 'rank0_pid12/Pass00001.pt': torchFile(), 'rank1_pid13/Pass00001.pt': torchFile() },
    { steps: [1], workers: ['rank_0', 'rank_1'], names: ['w'] },
  ],
  [
    'logs of nvdlfw-inspect beside those without statistics',
    {
      'nvdlfw_inspect_logs/nvdlfw_inspect_globalrank-0.log': 'INFO - x_max iteration=000001 value=7\n',
      'nvdlfw_inspect_statistics_logs/nvdlfw_inspect_globalrank-0.log': 'INFO - y_max iteration=000002 value=7\n',
    },
    { steps: [2], names: ['y'], problems: [] },
  ],
  [
    'a file a step that holds a bare array: one name at all steps',
    { 'loss_step_100.npy': ARRAY, 'loss_step_200.npy': ARRAY },
    { steps: [100, 200], names: ['loss'] },
  ],
  [
    'the same, with nothing but a number',
    { '1.pt': torchFile(w => w), '2.pt': torchFile(w => w) },
    { names: ['value'] },
  ],
  [
    'several files of a bare tensor each',
    { 'q.pt': torchFile(w => w), 'k.pt': torchFile(w => w) },
    { names: ['k', 'q'] },
  ],
  [
    'weights beside an adapter, which are no copy',
    { 'adapter_model.safetensors': shard('lora_A'), 'pytorch_model.bin': torchFile() },
    { names: ['lora_A', 'w'], notes: [], problems: [] },
  ],
  [
    'an index of copies that were not fetched',
    {
      'model-00001-of-00001.safetensors': shard('a'),
      'model.safetensors.index.json': indexOf({ a: 'model-00001-of-00001.safetensors' }),
      'pytorch_model.bin.index.json': indexOf({ a: 'pytorch_model-00001-of-00001.bin' }),
    },
    {
      names: ['a'],
      problems: [],
      notes: ['pytorch_model.bin.index.json is not read: other files beside it have the same weights'],
    },
  ],
])('reads %s', async (name, files, expected) => {
  expect(await told(place(name, files))).toMatchObject(expected)
})

it.each<[string, Record<string, Content>, string[], string[]]>([
  [
    'a rank of a world',
    {
      'global_step_5/actor/model_world_size_3_rank_0.pt': torchFile(),
      'global_step_5/actor/model_world_size_3_rank_2.pt': torchFile(),
    },
    ['w'],
    [
      '/global_step_5/actor/model_world_size_3_rank_1.pt: expected files of 3 ranks, got 2: model_world_size_3_rank_1.pt is missing',
    ],
  ],
  [
    'the last of ZeRO’s partitions',
    {
      'global_step5/mp_rank_00_model_states.pt': torchFile(w => dict({ module: dict({ w }), dp_world_size: int(2) })),
      'global_step5/zero_pp_rank_0_mp_rank_00_optim_states.pt': torchFile(flat => dict({ flat })),
    },
    ['module.w', 'optim_states.flat'],
    ['/global_step5/zero_pp_rank_1_mp_rank_00_optim_states.pt: expected files of 2 ranks, got 1: '],
  ],
  [
    'a step that was made, and never written',
    {
      'epoch=0-step=1.ckpt': torchFile(),
      'epoch=0-step=2.ckpt': new Uint8Array(64),
      'epoch=0-step=3.ckpt': new Uint8Array(0),
    },
    ['w'],
    [
      '/epoch=0-step=2.ckpt, byte 0: expected a file of tensors, got zeros: it was made, but never written',
      '/epoch=0-step=3.ckpt, byte 0: expected a file of tensors, got an empty file',
    ],
  ],
  [
    'dump.json, which msprobe writes last',
    {
      'step0/rank0/dump_tensor_data/a.pt': torchFile(w => w),
      'step1/rank0/dump.json': JSON.stringify({ data: { x: { dtype: 'torch.int64', shape: [], Max: 1 } } }),
    },
    ['x'],
    ['/step0/rank0/: expected dump.json beside the files that it describes, got no such file: the save'],
  ],
  [
    'agreement of dump.json and a file, and statistics',
    {
      'step0/rank0/dump_tensor_data/a.pt': torchFile(w => w),
      'step0/rank0/dump.json': JSON.stringify({
        data: {
          'M.forward.0': {
            input: [
              { dtype: 'torch.float32', shape: [3], data_name: 'a.pt' },
              { dtype: 'torch.bool', shape: [2], Max: true, Min: false, Mean: null, Norm: null },
              { dtype: 'torch.float32', shape: [0], Max: null },
            ],
          },
        },
      }),
    },
    ['M.forward.0.input.1', 'a'],
    [
      '/step0/rank0/dump.json, byte 9: expected "a" as float32 [3], got float32 [2] in a.pt',
      '/step0/rank0/dump.json, byte 9: expected statistics of "M.forward.0.input.2", got none',
    ],
  ],
  [
    'an index that lacks a shard of its series, which has a tensor of another: the index counts',
    {
      'model-00001-of-00002.safetensors': shard('a'),
      'model-00002-of-00002.safetensors': shard('a'),
      'model.safetensors.index.json': indexOf({ a: 'model-00002-of-00002.safetensors' }),
    },
    ['a'],
    [
      '/model.safetensors.index.json: expected tensor "a" in model-00002-of-00002.safetensors, got it in model-00001-of-00002.safetensors',
      '/model-00001-of-00002.safetensors: expected each tensor once, got "a" again, beside that in model-00002-of-00002.safetensors, which counts',
    ],
  ],
  [
    'an index that is no JSON, with the place',
    { 'model-00001-of-00001.safetensors': shard('a'), 'model.safetensors.index.json': '{"weight_map": {"a": }}' },
    ['a'],
    ['/model.safetensors.index.json, byte 21: expected JSON, got "}}"'],
  ],
])('tells what is missing: %s', async (name, files, names, problems) => {
  const root = place(name, files)
  const found = await told(root)
  expect(found.names).toEqual(names)
  expect(found.problems).toHaveLength(problems.length)
  for (const [i, problem] of problems.entries()) expect(found.problems[i]).toContain(root + problem)
  const { problemCounts } = await verifyTrial(root)
  expect(Object.values(problemCounts).reduce((sum, count) => sum + count, 0)).toBe(problems.length)
})

it('a file that begins like none of tensors is noted', async () => {
  const root = place('other', { 'model.safetensors': shard('a'), 'tokenizer.bin': 'no tensors' })
  expect((await told(root)).notes).toEqual(['tokenizer.bin is not read: it begins like no file of tensors'])
})

it('formats that are known and not read are named', async () => {
  const root = place('zarr', {
    'iter_0000001/common.pt': torchFile(),
    'iter_0000001/decoder.weight/.zarray': '{}',
    'iter_0000001/decoder.weight/0.0': 'x',
    'iter_0000001/tf_model.h5': 'x',
  })
  expect((await told(root)).notes).toEqual([
    '"iter_0000001/decoder.weight/.zarray" is of a format that is not read: zarr, as Megatron wrote it before torch_dist',
    '"iter_0000001/tf_model.h5" is of a format that is not read: HDF5, of Keras',
  ])
})

it('what Lightning saves under state_dict is the model, and no state of an optimizer', async () => {
  const root = place('lightning', {
    'epoch=3-step=500.ckpt': torchFile(w => dict({ state_dict: dict({ 'a.weight': w }) })),
  })
  const trial = await createTrial(root, { refresh: 'manual' })
  expect(trial.checkpoint).toMatchObject({ parameters: 2, tensors: 1 })
  expect(trial.steps()).toEqual([500])
  expect([...trial.collections().keys()]).toEqual(['weights'])
  await trial.close()
})

it('an array of texts in an archive is listed as unread, and its step is whole', async () => {
  const texts = npyOf(of('<U1', '(2,)'), new Uint8Array(8))
  const root = place('texts', {})
  const archive = zip([
    { name: 'a.npy', content: ARRAY },
    { name: 's.npy', content: texts },
  ])
  writeFile(join(root, 'step_1.npz'), archive)
  const trial = await createTrial(root, { refresh: 'manual' })
  expect([trial.steps(), trial.tensorNames()]).toEqual([[1], ['a']])
  expect(trial.problems.map(({ code }) => code)).toEqual(['UnreadableDType'])
  await trial.close()
})

it('directories of workers are one trial of the directory above', async () => {
  const root = place('found', { 'a/rank0/Pass00001.pt': torchFile(), 'a/rank1/Pass00001.pt': torchFile() })
  expect(await findTrials(root)).toEqual([join(root, 'a')])
})

it('bytes of a tensor are those of all ranks', async () => {
  const files = ['mp_rank_00', 'mp_rank_01'].map(rank => [`iter_0000001/${rank}/model_optim_rng.pt`, torchFile()])
  const trial = await createTrial(place('bytes', Object.fromEntries(files)), { refresh: 'manual' })
  const { tensors, byteLength } = await trial.summary()
  expect(byteLength).toBe(trial.checkpoint!.byteLength)
  expect(tensors.reduce((sum, { byteLength }) => sum + byteLength, 0)).toBe(byteLength)
  await trial.close()
})

it('a step without a rank that the steps beside it have is noted', async () => {
  const root = place('fewer', {
    'iter_0000001/mp_rank_00/model_optim_rng.pt': torchFile(),
    'iter_0000001/mp_rank_01/model_optim_rng.pt': torchFile(),
    'iter_0000002/mp_rank_00/model_optim_rng.pt': torchFile(),
  })
  expect((await told(root)).notes).toEqual(['step 2 has no files of "mp_rank_01", as steps beside it do'])
})

it('two directories of one step have its number in the note', async () => {
  const root = place('twice', { 'step_1/a.npy': ARRAY, 'step_01/a.npy': ARRAY })
  expect((await told(root)).problems).toHaveLength(1)
  writeFileSync(join(root, 'step_1/a.npy'), ARRAY)
  mkdirSync(join(root, 'step_2'))
  expect((await told(root)).notes).toEqual([
    'step 1 is not whole, and was changed less than a minute ago: it is left out',
  ])
})

it('facts are those of the last checkpoint that has tensors', async () => {
  const root = place('facts', { 'step_1/a.npy': ARRAY, 'step_2/a.npy': 'x' })
  const trial = await createTrial(root, { refresh: 'manual' })
  expect(trial.checkpoint).toMatchObject({ formats: ['npy'], tensors: 1 })
  await trial.close()
})

it.each([
  [['a', 'b'], 0],
  [['a', 'fc.weight'], 0],
  [['sample_weight', 'class_weight'], 0],
  [['embeddings'], 0],
  [['fc.weight', 'fc.bias', 'cls'], 6],
  [['W1', 'b1'], 4],
  [['params/Dense_0/kernel', 'params/LayerNorm_0/scale'], 4],
  [['dense/kernel:0', 'dense/bias:0', 'dense/kernel/Adam:0', 'dense/kernel/Adam_1:0'], 4],
])(
  "arrays in an archive are parameters if most names are a model's, and one a weight's: %j",
  async (names, parameters) => {
    const root = place(`named-${names.length}-${parameters}`, {})
    const archive = zip(names.map(name => ({ name: `${name}.npy`, content: ARRAY })))
    writeFile(join(root, 'arrays.npz'), archive)
    const trial = await createTrial(root, { refresh: 'manual' })
    const elements = parameters || 2 * names.length
    expect(trial.checkpoint).toMatchObject({ parameters, elements, tensors: elements / 2 })
    await trial.close()
  },
)

it('an alias is told by the whole name of the other', async () => {
  const root = place('alias', {
    'a.pt': torchFile(w => dict({ one: w, other: w, note: text('x') })),
    'b.pt': torchFile(),
  })
  const trial = await createTrial(root, { refresh: 'manual' })
  expect([...trial.checkpoint!.aliases]).toEqual([['a.other', 'a.one']])
  await trial.close()
})
