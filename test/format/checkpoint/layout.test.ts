/** How a directory becomes steps and workers, by names alone. */

import { describe, expect, it } from 'vitest'
import { type Layout, layoutOf, layoutOfFile } from '#dist/format/checkpoint/layout.js'
import { collectionsOf, orderKey } from '#dist/format/checkpoint/names.js'

function stepsOf(paths: readonly string[], name = 'out') {
  const layout = layoutOf([...paths].sort(), name) as Layout
  return layout.checkpoints.map(({ step, place, files }) => [step, place, files.map(({ worker }) => worker)])
}

describe('steps', () => {
  it.each([
    ['checkpoint-500/model.safetensors', 500],
    ['step-500/model.safetensors', 500],
    ['step_500/model.safetensors', 500],
    ['iter_0000500/model.safetensors', 500],
    ['global_step500/model.safetensors', 500],
    ['global_step_500/actor/model.safetensors', 500],
    ['epoch=3-step=500.ckpt', 500],
    ['epoch=3-step=500/model.safetensors', 500],
    ['weight_v000500/model.safetensors', 500],
    ['ep0-ba500/.metadata', 500],
    ['ep1-ba500-rank0.pt', 500],
    ['step_000500.safetensors', 500],
    ['500.npz', 500],
    ['step=5___rank=0___dump_index=0___name=x.pt', 5],
    ['Pass00005.pt', 5],
    ['rank0/12.model.layers.0.mlp-output.0.pt', 12],
  ])('%s', (path, step) => {
    expect(stepsOf([path]).map(([step]) => step)).toEqual([step])
  })

  it('in their order, whatever the order of names', () => {
    expect(stepsOf(['checkpoint-1000/m.safetensors', 'checkpoint-200/m.safetensors'])).toEqual([
      [200, 'checkpoint-200', [null]],
      [1000, 'checkpoint-1000', [null]],
    ])
  })

  it.each([
    ['.ckpt', ''],
    ['.ckpt', '/checkpoint/.metadata'],
    ['-loss=0.5.ckpt', ''],
  ])('of versions that Lightning saves of a step the last counts: %s%s', (ending, file) => {
    const paths = ['', '-v2', '-v10'].map(version => `epoch=0-step=100${ending.replace('.ckpt', `${version}.ckpt`)}`)
    const other = `epoch=0-step=50${ending}`
    const layout = layoutOf([...paths, other].map(place => place + file).sort(), 'out') as Layout
    expect(layout.checkpoints.map(({ place }) => place)).toEqual([other, paths[2]])
    expect(layout.leftOut).toEqual([paths[1], paths[0]])
  })

  it('numbers of shards are no steps', () => {
    const names = [
      'model-00001-of-00002.safetensors',
      'model-00002-of-00002.safetensors',
      'model.safetensors.index.json',
    ]
    expect(stepsOf(names)).toEqual([[0, '', [null, null, null]]])
  })

  it('a single checkpoint has the step of its directory', () => {
    expect(stepsOf(['model.safetensors'], 'checkpoint-300')).toEqual([[300, '', [null]]])
    expect(stepsOf(['model.safetensors'], 'base')).toEqual([[0, '', [null]]])
  })

  it('the largest family counts, and the others are left out', () => {
    const layout = layoutOf(['a_step_1.npz', 'step-1/m.npz', 'step-2/m.npz', 'model.safetensors'], 'out') as Layout
    expect(layout.family).toBe('step-<n>/')
    expect(layout.leftOut).toEqual(['a_step_1.npz', 'model.safetensors'])
  })

  it('of a tie both are named', () => {
    expect(layoutOf(['iter_1/m.npz', 'step-1/m.npz'], 'out')).toEqual({ ambiguous: ['iter_<n>/', 'step-<n>/'] })
  })

  it('a directory of nothing but one directory stands for it; of several they are named', () => {
    expect(stepsOf(['exp1/step-1/m.npz', 'exp1/step-2/m.npz'])).toEqual([
      [1, 'exp1/step-1', [null]],
      [2, 'exp1/step-2', [null]],
    ])
    expect(layoutOf(['a/m.npz', 'b/m.npz'], 'out')).toEqual({ below: ['a', 'b'] })
  })

  it('what is hidden is not looked at, but for the metadata of a distributed checkpoint', () => {
    expect(layoutOf(['.cache/m.safetensors'], 'out')).toEqual({ below: [] })
    expect(stepsOf(['step-1/.metadata'])).toEqual([[1, 'step-1', [null]]])
  })
})

describe('workers', () => {
  it.each([
    ['iter_0000100/mp_rank_00/model_optim_rng.pt', 'mp_rank_00'],
    ['iter_0000100/mp_rank_01_002/model_optim_rng.pt', 'mp_rank_01_002'],
    ['global_step_1/actor/model_world_size_8_rank_3.pt', 'rank_3'],
    ['global_step1/zero_pp_rank_0_mp_rank_00_optim_states.pt', 'zero_pp_rank_0_mp_rank_00'],
    ['global_step1/bf16_zero_pp_rank_2_mp_rank_00_optim_states.pt', 'zero_pp_rank_2_mp_rank_00'],
    ['global_step1/mp_rank_00_model_states.pt', 'mp_rank_00'],
    ['step1/rank3/dump.npy', 'rank_3'],
    ['step1/proc2016/dump.npy', 'proc2016'],
    ['step1/ep0/dump.npy', 'ep0'],
    ['step1/rank_0.pt', 'rank_0'],
    ['step1/model_rank_1.pt', 'rank_1'],
    ['ep0-ba500-rank3.pt', 'rank_3'],
    ['ep0-ba500/.metadata', null],
    ['TP0_PP1_Rank2_pid99/Pass00001.pt', 'TP0_PP1_Rank2_pid99'],
  ])('%s', (path, worker) => {
    expect(stepsOf([path])[0]![2]).toEqual([worker])
  })
})

it('a directory that says the step again has the same name at all steps', () => {
  const paths = [500, 600].map(n => `checkpoint-${n}/global_step${n}/mp_rank_00_model_states.pt`)
  const layout = layoutOf(paths, 'run') as Layout
  expect(layout.checkpoints.map(({ step, files }) => [step, files[0]!.group])).toEqual([
    [500, 'global_step'],
    [600, 'global_step'],
  ])
})

it('a file that is named is that file', () => {
  expect(layoutOfFile('a/step_7.npz').checkpoints).toEqual([
    { step: 7, place: 'a/step_7.npz', files: [{ path: 'a/step_7.npz', worker: null, group: '', tensor: 'value' }] },
  ])
})

it('names have a natural order', () => {
  const names = [
    'optimizer.state.0.exp_avg',
    'lm_head.weight',
    'model.norm.weight',
    'model.layers.10.w',
    'model.layers.9.w',
    'model.layers.9.a',
    'model.embed_tokens.weight',
  ]
  const byKey = [...names].sort((a, b) => (orderKey(a) < orderKey(b) ? -1 : 1))
  expect(byKey).toEqual([...names].reverse())
})

it.each([
  ['model.layers.0.self_attn.q_proj.weight', ['weights', 'attention']],
  ['model.layers.0.mlp.up_proj.bias', ['biases', 'mlp']],
  ['model.embed_tokens.weight', ['weights', 'embeddings']],
  ['model.layers.0.input_layernorm.weight', ['weights', 'norms']],
  ['transformer.h.0.ln_1.bias', ['biases', 'norms']],
  ['base_model.model.x.q_proj.lora_A.weight', ['weights', 'adapters']],
  ['optimizer.state.3.exp_avg_sq', ['optimizer', 'exp_avg_sq']],
  ['optimizer.state.3.exp_avg', ['optimizer', 'exp_avg']],
  ['model.layers.0.mlp.up_proj.weight_scale_inv', ['scales', 'mlp']],
  ['block.0.norm.scale', ['norms']],
  ['bert/attention/kernel:0', ['weights', 'attention']],
  ['W1', ['weights']],
  ['sample_weight', []],
])('the collections of %s', (name, collections) => {
  expect(collectionsOf(name)).toEqual(collections)
})
