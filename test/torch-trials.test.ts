/** Files of torch, distributed checkpoints and dumps as trials: the same answers through createTrial as torch gave. */

import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { closePools, createTrial, diffWorkers, type Trial, verifyTrial } from '#dist/index.js'
import { trialscan } from './cli/run.js'
import { FIXTURES, type GoldenTensor, golden } from './support/checkpoint-files.js'
import { bytesOf, call, dict, int, list, pickled, tensor, torchZip, tuple } from './support/pickles.js'
import { scratchDirectory } from './support/scratch.js'

type Golden = Readonly<Record<string, GoldenTensor>>
type GoldenSteps = { readonly steps: Readonly<Record<string, Golden>> }

const torchSize = (...sizes: number[]) => call('torch', 'Size', tuple(...sizes.map(int)))

const scratch = scratchDirectory('torch-trials')
afterAll(closePools)

async function withTrial(path: string, work: (trial: Trial) => Promise<void>): Promise<void> {
  const trial = await createTrial(path, { refresh: 'manual' })
  try {
    await work(trial)
  } finally {
    await trial.close()
  }
}

/** Compares a row of a scan for each tensor, and its first values. */
async function expectAnswers(trial: Trial, step: number, expected: Golden, worker?: string): Promise<void> {
  const seen = new Set<string>()
  const selected = { steps: step, threads: 0, ...(worker && { workers: worker }) }
  for await (const row of trial.scan({ ...selected, reductions: ['min', 'max', 'mean', 'l2'] })) {
    const answer = expected[row.tensor!]
    if (answer === undefined) continue
    seen.add(row.tensor!)
    // Complex numbers have no order, and so no least.
    if (answer.dtype.startsWith('complex')) continue
    expect(row.error ?? null, row.tensor!).toBeNull()
    expect([row.dtype, row.shape], row.tensor!).toEqual([answer.dtype, answer.shape])
    if (answer.shape.includes(0)) continue
    if (answer.nan_count !== undefined) expect(row.moments!.nanCount, row.tensor!).toBe(answer.nan_count)
    for (const name of ['min', 'max', 'mean', 'l2'] as const) {
      const value = row.moments!.reduction(name) as number
      const wanted = answer[name]
      if (typeof wanted !== 'number') continue
      expect(Math.abs(value - wanted), `${name} of ${row.tensor}`).toBeLessThanOrEqual(
        1e-9 * Math.max(1, Math.abs(wanted)),
      )
    }
    const value = await trial.tensor(row.tensor!).value(step, { ...(worker && { worker }) })
    if (!answer.first) continue
    const first = [...(value.data as Float64Array)].slice(0, answer.first.length).map(Number)
    expect(
      first.map(x => (Number.isFinite(x) ? x : `${x}`)),
      row.tensor!,
    ).toEqual(answer.first)
  }
  expect([...seen].sort()).toEqual(Object.keys(expected).sort())
}

/** Makes files old: a checkpoint that lacks something and is new counts as one that is being written. */
function age(root: string): void {
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    utimesSync(join(entry.parentPath, entry.name), 1e9, 1e9)
  }
}

describe('torch.save', () => {
  const { steps } = golden<GoldenSteps>(join(FIXTURES, 'expected/torch.json'))
  it.each(['zip.pt', 'legacy.pt'])('%s: views, permuted and expanded tensors have their elements', async file => {
    await withTrial(join(FIXTURES, 'torch', file), trial => expectAnswers(trial, 0, steps['0']!))
  })

  const of213 = golden<Record<string, Golden>>(join(FIXTURES, 'expected/torch-2.13.json'))
  it.each(['new-dtypes.pt', 'protocol5.pt'])('%s of torch 2.13', async file => {
    await withTrial(join(FIXTURES, 'torch-2.13', file), trial => expectAnswers(trial, 0, of213[file]!))
  })

  it('a directory of steps, of ranks', async () => {
    const root = join(scratch, 'megatron')
    for (const [step, rank] of [
      [100, 0],
      [100, 1],
      [200, 0],
      [200, 1],
    ] as const) {
      const directory = join(root, `iter_${`${step}`.padStart(7, '0')}`, `mp_rank_0${rank}`)
      mkdirSync(directory, { recursive: true })
      const content = new Uint8Array(Float32Array.of(step, rank).buffer)
      const root_ = dict({ model: dict({ w: tensor({ count: 2, size: [2], stride: [1] }) }) })
      writeFileSync(join(directory, 'model_optim_rng.pt'), torchZip({ 'data.pkl': pickled(root_), 'data/0': content }))
    }
    await withTrial(root, async trial => {
      expect(trial.steps()).toEqual([100, 200])
      expect(trial.workers()).toEqual(['mp_rank_00', 'mp_rank_01'])
      const value = await trial.tensor('model.w').value(200, { worker: 'mp_rank_01' })
      expect([...(value.data as Float32Array)]).toEqual([200, 1])
      const { rows } = (await diffWorkers(trial)) as unknown as { rows?: unknown }
      expect(rows === undefined || Array.isArray(rows)).toBe(true)
    })
  })
})

it('float4 of torch: two elements in each that it counts', async () => {
  const path = join(scratch, 'float4.pt')
  const piece = tensor({
    storage: 'UntypedStorage',
    count: 4,
    offset: 1,
    size: [1, 2],
    stride: [2, 1],
    dtype: 'float4_e2m1fn_x2',
  })
  const content = Uint8Array.of(0, 0x21, 0x97, 0)
  writeFileSync(path, torchZip({ 'data.pkl': pickled(dict({ w: piece })), 'data/0': content }))
  await withTrial(path, async trial => {
    const { dtype, shape, data } = await trial.tensor('w').value(0)
    expect([dtype, shape, [...(data as Float32Array)]]).toEqual(['float4_e2m1fn', [1, 4], [0.5, 1, 6, -0.5]])
  })
})

it('a step with a tensor of a kind that is not read is whole, and one that is written now', async () => {
  const root = join(scratch, 'kinds')
  for (const step of [1, 2]) {
    mkdirSync(join(root, `step-${step}`), { recursive: true })
    const sparse = call('torch._utils', '_rebuild_sparse_tensor', tuple())
    writeFileSync(
      join(root, `step-${step}`, 'model.pt'),
      twoFloats([1, 2], w => dict({ w, sparse })),
    )
  }
  await withTrial(root, async trial => {
    expect([trial.steps(), trial.tensorNames(), trial.notes]).toEqual([[1, 2], ['w'], []])
    expect(trial.problems.map(({ code, fields }) => [code, fields.tensor])).toEqual([
      ['UnreadableDType', 'sparse'],
      ['UnreadableDType', 'sparse'],
    ])
  })
})

/** A file of one tensor of two floats. */
function twoFloats(values: readonly [number, number], wrap: (tensor: Uint8Array) => Uint8Array): Uint8Array {
  const content = new Uint8Array(Float32Array.from(values).buffer)
  return torchZip({ 'data.pkl': pickled(wrap(tensor({ count: 2, size: [2], stride: [1] }))), 'data/0': content })
}

describe('files of ranks', () => {
  it("of DeepSpeed's ZeRO: flat partitions under one name in all ranks", async () => {
    const root = join(scratch, 'zero/global_step7')
    mkdirSync(root, { recursive: true })
    const model = twoFloats([1, 2], w => dict({ module: dict({ w }), param_shapes: list(dict({ w: torchSize(2) })) }))
    writeFileSync(join(root, 'mp_rank_00_model_states.pt'), model)
    for (const rank of [0, 1]) {
      const states = twoFloats([rank, rank === 0 ? 0 : Number.NaN], flat =>
        dict({ optimizer_state_dict: dict({ single_partition_of_fp32_groups: list(flat) }) }),
      )
      writeFileSync(join(root, `bf16_zero_pp_rank_${rank}_mp_rank_00_optim_states.pt`), states)
    }
    const flat = 'optim_states.optimizer_state_dict.single_partition_of_fp32_groups.0'
    await withTrial(join(scratch, 'zero'), async trial => {
      const ranks = ['zero_pp_rank_0_mp_rank_00', 'zero_pp_rank_1_mp_rank_00']
      expect([trial.steps(), trial.workers()]).toEqual([[7], ['mp_rank_00', ...ranks]])
      expect(trial.tensorNames()).toEqual(['module.w', flat])
      expect(trial.collection('master_weights').members).toEqual([flat])
      expect(trial.checkpoint!.parameters).toBe(2)
      const counts: unknown[] = []
      for await (const { worker, moments } of trial.scan({ tensors: [flat], reductions: ['l2'], threads: 0 })) {
        counts.push([worker, moments!.nanCount])
      }
      expect(counts).toEqual(ranks.map((rank, i) => [rank, i]))
    })
    const { stdout } = await trialscan('show', join(root, 'mp_rank_00_model_states.pt'))
    expect(stdout).toContain('param_shapes: 1 item\n  0:\n    w: [2]\n')
  })

  it('of verl: model and optimizer of each rank', async () => {
    const root = join(scratch, 'verl/global_step_3/actor')
    mkdirSync(root, { recursive: true })
    for (const rank of [0, 1]) {
      for (const part of ['model', 'optim']) {
        writeFileSync(
          join(root, `${part}_world_size_2_rank_${rank}.pt`),
          twoFloats([rank, 0], w => dict({ w })),
        )
      }
    }
    await withTrial(join(scratch, 'verl'), async trial => {
      expect([trial.steps(), trial.workers()]).toEqual([[3], ['rank_0', 'rank_1']])
      expect(trial.tensorNames()).toEqual(['optim.w', 'w'])
    })
  })
})

describe('torch.distributed.checkpoint', () => {
  it('without .metadata, which is written last: a save that never finished', async () => {
    const root = join(scratch, 'unfinished')
    cpSync(join(FIXTURES, 'dcp'), root, { recursive: true })
    const metadata = join(root, 'step-200/.metadata')
    const whole = readFileSync(metadata)
    rmSync(metadata)
    const trial = await createTrial(root, { refresh: 'manual' })
    expect(trial.steps()).toEqual([100])
    expect(trial.notes).toEqual([expect.stringContaining('step-200 is not whole, and was changed less than a minute')])
    age(root)
    expect(await trial.refresh()).toBe(true)
    expect(trial.problems.map(({ code, message }) => [code, message])).toEqual([
      ['UnfinishedSave', expect.stringMatching(/step-200\/?: expected \.metadata .*the save .* never finished$/)],
    ])
    expect((await verifyTrial(root)).problemCounts).toEqual({ UnfinishedSave: 1 })
    await expect(createTrial(join(root, 'step-200'))).rejects.toThrow(/the save .* never finished$/)
    writeFileSync(metadata, whole)
    expect(await trial.refresh()).toBe(true)
    expect([trial.steps(), trial.problems]).toEqual([[100, 200], []])
    await trial.close()
  })

  const standIn = golden<GoldenSteps>(join(FIXTURES, 'expected/dcp.json')).steps
  it('chunks along two axes at once', async () => {
    await withTrial(join(FIXTURES, 'dcp'), async trial => {
      expect(trial.steps()).toEqual([100, 200])
      for (const [step, expected] of Object.entries(standIn)) await expectAnswers(trial, Number(step), expected)
    })
  })

  const { dcp } = golden<{ readonly dcp: Record<string, Golden> }>(join(FIXTURES, 'expected/torch-2.13.json'))
  it('as torch 2.13 writes it', async () => {
    await withTrial(join(FIXTURES, 'torch-2.13/dcp'), async trial => {
      for (const [step, expected] of Object.entries(dcp)) await expectAnswers(trial, Number(step), expected)
    })
  })

  it('without the file of a rank: its tensors are told, and the others are read', async () => {
    const root = join(scratch, 'lost-rank')
    cpSync(join(FIXTURES, 'torch-2.13/dcp/step-100'), root, { recursive: true })
    rmSync(join(root, '__0_0.distcp'))
    await withTrial(root, async trial => {
      expect(trial.tensorNames()).toContain('model.layers.0.norm.weight')
      expect(trial.tensorNames()).not.toContain('model.layers.0.attention.wq.weight')
    })
  })
})

describe('dumps', () => {
  it('of SGLang: ranks, and the order of execution', async () => {
    await withTrial(join(FIXTURES, 'sglang-dump'), async trial => {
      expect(trial.steps()).toEqual([1])
      expect(trial.workers()).toEqual(['rank_0', 'rank_1'])
      const all = golden(join(FIXTURES, 'expected/sglang-dump.json'))
      for (const worker of ['rank_0', 'rank_1']) {
        const own = Object.entries(all).filter(([name]) => name.startsWith(`${worker} `))
        const expected = Object.fromEntries(own.map(([name, answer]) => [name.slice(worker.length + 1), answer]))
        await expectAnswers(trial, 1, expected, worker)
      }
    })
  })

  it('of forward hooks: a pass is a step', async () => {
    const root = join(scratch, 'hooks/TP0_PP0_Rank0_pid17')
    mkdirSync(root, { recursive: true })
    for (const pass of [0, 1, 12]) {
      const content = new Uint8Array(Float32Array.of(pass).buffer)
      const dump = dict({ 'model.layers.0': tensor({ count: 1, size: [1], stride: [1] }) })
      const file = torchZip({ 'data.pkl': pickled(dump), 'data/0': content })
      writeFileSync(join(root, `Pass${`${pass}`.padStart(5, '0')}.pt`), file)
    }
    await withTrial(join(scratch, 'hooks'), async trial => {
      expect(trial.steps()).toEqual([0, 1, 12])
      expect(trial.workers()).toEqual(['TP0_PP0_Rank0_pid17'])
      expect([...((await trial.tensor('model.layers.0').value(12)).data as Float32Array)]).toEqual([12])
    })
  })

  it('of TensorRT-LLM: a loop is a step', async () => {
    const root = join(scratch, 'trt/rank0')
    mkdirSync(root, { recursive: true })
    const content = new Uint8Array(Float32Array.of(7).buffer)
    const file = torchZip({ 'data.pkl': pickled(tensor({ count: 1, size: [1], stride: [1] })), 'data/0': content })
    for (const loop of [3, 4]) {
      for (const part of ['input.0', 'output.0']) writeFileSync(join(root, `${loop}.layers.0.mlp-${part}.pt`), file)
    }
    await withTrial(join(scratch, 'trt'), async trial => {
      expect(trial.steps()).toEqual([3, 4])
      expect(trial.workers()).toEqual(['rank_0'])
      expect(trial.tensorNames()).toEqual(['layers.0.mlp-input.0', 'layers.0.mlp-output.0'])
    })
  })

  const described = (more: object) => ({ type: 'torch.Tensor', dtype: 'torch.float32', shape: [2], ...more })

  it('of msprobe: tensors in the order of dump.json', async () => {
    const root = join(scratch, 'msprobe/step3/rank0')
    mkdirSync(join(root, 'dump_tensor_data'), { recursive: true })
    const names = ['Module.b.forward.0.input.0', 'Module.b.forward.0.output.0', 'Module.a.forward.0.output.0']
    for (const [i, name] of names.entries()) {
      const content = new Uint8Array(Float32Array.of(i, i).buffer)
      const file = torchZip({ 'data.pkl': pickled(tensor({ count: 2, size: [2], stride: [1] })), 'data/0': content })
      writeFileSync(join(root, 'dump_tensor_data', `${name}.pt`), file)
    }
    const data = {
      'Module.b.forward.0': {
        input_args: [described({ data_name: `${names[0]}.pt` })],
        input_kwargs: {},
        output: [described({ data_name: `${names[1]}.pt` })],
      },
      'Module.a.forward.0': {
        output: [
          described({ data_name: `${names[2]}.pt` }),
          described({ data_name: 'lost.pt' }),
          described({ data_name: '../x.pt' }),
        ],
      },
    }
    writeFileSync(join(root, 'dump.json'), JSON.stringify({ task: 'tensor', level: 'L0', data }))
    age(join(scratch, 'msprobe'))
    await withTrial(join(scratch, 'msprobe'), async trial => {
      expect([trial.steps(), trial.workers()]).toEqual([[3], ['rank_0']])
      expect(trial.tensorNames().sort()).toEqual([...names].sort())
      expect([...((await trial.tensor(names[2]!).value(3)).data as Float32Array)]).toEqual([2, 2])
      const order: string[] = []
      for await (const row of trial.scan({ reductions: ['mean'], threads: 0 })) order.push(row.tensor!)
      expect(order).toEqual(names)
      // What is wrong with an entry is told where it begins.
      const offset = readFileSync(join(root, 'dump.json')).indexOf('"Module.a.forward.0":')
      expect(trial.problems.map(({ fields }) => fields.offset)).toEqual([offset, offset])
      expect(trial.checkpoint).toMatchObject({ parameters: 0, elements: 6, tensors: 3 })
    })
  })

  it('of msprobe, of statistics alone: saved reductions', async () => {
    const root = join(scratch, 'statistics/step0/proc9')
    mkdirSync(root, { recursive: true })
    const text = JSON.stringify({
      task: 'statistics',
      data: { 'Tensor.add.0.forward': { input_args: [described({ Max: 3, Min: -1, Mean: 0.5, Norm: '?' })] } },
    }).replace('"?"', 'NaN')
    writeFileSync(join(root, 'dump.json'), text)
    await withTrial(join(scratch, 'statistics'), async trial => {
      const saved = trial.tensor('Tensor.add.0.forward.input.0')
      expect(await saved.reductionValue(0, 'max')).toBe(3)
      expect(await saved.reductionValue(0, 'min')).toBe(-1)
      expect(await saved.reductionValue(0, 'mean')).toBe(0.5)
      expect(await saved.reductionValue(0, 'l2')).toBeNaN()
    })
  })

  it('of nvdlfw-inspect: lines of a log', async () => {
    const root = join(scratch, 'nvdlfw/nvdlfw_inspect_statistics_logs')
    mkdirSync(root, { recursive: true })
    const lines = [
      'INFO - Default logging to file enabled at ./log',
      // A line that is too long, which goes on in the next window.
      `INFO - ${'x'.repeat(5 << 20)}_max iteration=000099 value=7`,
      'INFO - decoder.1.mlp.fc1_activation_max                   iteration=000100                  value=1.5',
      'INFO - decoder.1.mlp.fc1_activation_l2_norm               iteration=000100                  value=2e-3',
      'INFO - decoder.1.mlp.fc1_activation_max                   iteration=000101                  value=nan',
      'INFO - decoder.1.mlp.fc1_activation_underflows%           iteration=000101                  value=12.5',
      'INFO - decoder.1.mlp.fc1_activation_max                   iteration=000102                  val',
    ]
    writeFileSync(join(root, 'nvdlfw_inspect_globalrank-3.log'), bytesOf(`${lines.join('\n')}`))
    await withTrial(join(scratch, 'nvdlfw'), async trial => {
      expect([trial.steps(), trial.workers()]).toEqual([[100, 101], ['rank_3']])
      const activation = trial.tensor('decoder.1.mlp.fc1_activation')
      expect(await activation.reductionValue(100, 'max')).toBe(1.5)
      expect(await activation.reductionValue(100, 'l2')).toBe(0.002)
      expect(await activation.reductionValue(101, 'max')).toBeNaN()
      const [share] = (await trial.tensor('decoder.1.mlp.fc1_activation_underflows%').value(101)).data as Float64Array
      expect(share).toBe(12.5)
    })
  })
})

it('tells tensors that share all elements, which are counted once', async () => {
  const path = join(FIXTURES, 'torch/zip.pt')
  const trial = await createTrial(path)
  expect([...trial.checkpoint!.aliases]).toEqual([['model.v.tied', 'model.v.base']])
  await trial.close()
  const { stdout } = await trialscan('ls', path, '--format', 'table')
  expect(stdout).toContain('\n  share their elements: model.v.tied with model.v.base\n')
})
