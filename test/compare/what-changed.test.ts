/** The first line of `diff` of two checkpoints: it is the answer, and says of what it was drawn. */

import { readFileSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { rankOf } from '#dist/compare/rank.js'
import { createTrial, type DifferenceAt, diff } from '#dist/index.js'
import { Inquiry } from '#dist/trial/measure/measure.js'
import { differencesOf } from '#dist/view/differences.js'
import { counting, type SavedTensor, safetensors, tensorOf, writeFile } from '../../fixtures/checkpoint-writer.js'
import { trialscan } from '../cli/run.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('what-changed')
let written = 0

function checkpoint(tensors: readonly SavedTensor[], name = `${written++}`): string {
  const dir = join(scratch, name)
  writeFile(join(dir, 'model.safetensors'), safetensors(tensors))
  return dir
}

/** A checkpoint of a Trainer, with its log until then. */
function ofTrainer(run: string, step: number, tensors: readonly SavedTensor[], losses: readonly number[]): string {
  const dir = checkpoint(tensors, `${run}/checkpoint-${step}`)
  const log_history = losses.map((loss, i) => ({ step: 10 * (i + 1), loss, grad_norm: 1 }))
  writeFile(join(dir, 'trainer_state.json'), JSON.stringify({ global_step: step, log_history }))
  return dir
}

async function table(...args: readonly string[]): Promise<{ code: number; text: string; notes: string }> {
  const { code, stdout, stderr } = await trialscan('diff', ...args, '--format', 'table')
  return { code: code!, text: stdout.replace(/\s+/g, ' '), notes: stderr.replace(/\s+/g, ' ') }
}

const weight = (start = 0, name = 'a.weight') => counting(name, [4, 3], 'F32', start)
const moment = (start: number) => counting('optimizer.state.0.exp_avg', [4, 3], 'F32', start)

describe('checkpoints of a Trainer', () => {
  const losses = [3, 2, 1.5, 1.2]
  const at20 = ofTrainer('run', 20, [weight(0), moment(1)], losses.slice(0, 2))
  const at40 = ofTrainer('run', 40, [weight(1), moment(5)], losses)

  it('are compared by their weights, whatever was logged beside them', async () => {
    const { code, text } = await table(at20, at40)
    expect(code).toBe(1)
    expect(text).toMatch(/^checkpoint-20 and checkpoint-40: 2 of 2 tensors changed, 1 of them of the optimizer\./)
    expect(text).toContain('Largest relative change ‖Δ‖/‖a‖ 0.154 in a.weight.')
    expect(text).toContain('What was logged beside the checkpoints is not compared: grad_norm, loss.')
    const found = await diff(at20, at40)
    expect(found).toMatchObject({
      compared: 2,
      equal: 0,
      missing: 0,
      areCheckpoints: true,
      logged: ['grad_norm', 'loss'],
    })
    expect(found.steps).toEqual({ both: 1, onlyA: [], onlyB: [] })
    expect(found.differences.map(({ step, otherStep }) => [step, otherStep])).toEqual([
      [20, 40],
      [20, 40],
    ])
  })

  it('are compared by selected tensors, and by steps where numbers of the log are selected', async () => {
    expect(await diff(at20, at40, { tensors: 'weight' })).toMatchObject({ compared: 1, equal: 0, logged: [] })
    expect(await diff(at20, at40, { collection: 'scalars' })).toMatchObject({ compared: 4, equal: 4 })
    const other = ofTrainer('other', 40, [weight()], [3, 2, 7, 7])
    expect((await diff(at40, other, { tensors: 'loss' })).divergence).toMatchObject({ step: 30, otherStep: 30 })
  })

  it('say what was logged and is selected, but not compared', async () => {
    const [one, other] = [losses, [9, 9]].map((log, i) => ofTrainer(`logged-${i}`, 10, [weight(7)], log))
    const { text } = await table(one!, other!, '--tensor', 'loss|weight')
    expect(text).toContain('What was logged beside the checkpoints is not compared: loss.')
    const { stderr } = await trialscan('diff', one!, other!, '--tensor', 'loss|weight', '--quiet')
    expect(stderr).toMatch(/no difference.*; not compared: loss/)
  })

  it('are told to be mapped where two of different steps have no name in common', async () => {
    const [one, other] = [10, 20].map(step => ofTrainer(`names-${step}`, step, [weight(0, `n${step}.weight`)], [1]))
    expect((await table(one!, other!)).notes).toMatch(/no tensor at a step in common. If names differ, use --map/)
  })

  it('are named one by one where a whole run stands beside a single checkpoint', async () => {
    const run = [1, 2].map(i => checkpoint([weight(i)], `plain/checkpoint-${i}0`))
    const single = checkpoint([weight(2)])
    const { notes } = await table(join(run[0]!, '..'), single)
    expect(notes).toContain('no step is in both: the first has 10, 20, the second 0; of a run, name the checkpoint')
    expect((await table(run[1]!, single)).text).toContain('no difference')
  })

  it('stand beside a checkpoint without a log', async () => {
    expect(await diff(checkpoint([weight(), moment(1)]), at20)).toMatchObject({ compared: 2, equal: 2, missing: 0 })
  })

  it('of which there are several are runs, compared step by step', async () => {
    const [run, again] = [join(scratch, 'run'), join(scratch, 'again')]
    ofTrainer('again', 20, [weight(0), moment(1)], losses.slice(0, 2))
    ofTrainer('again', 40, [weight(9), moment(5)], losses)
    const { divergence, areCheckpoints, logged } = await diff(run, again)
    expect([divergence?.step, divergence?.tensor, areCheckpoints, logged]).toEqual([40, 'a.weight', false, []])
  })

  it('are compared in a report too', async () => {
    const trials = [await createTrial(at20), await createTrial(at40)] as const
    const { verdict, compared } = await differencesOf(...trials, {}, {})
    expect([compared, verdict]).toEqual([2, expect.stringMatching(/^The runs first differ at step 20, in a\.weight/)])
    for (const trial of trials) await trial.close()
  })
})

describe('a model', () => {
  /** Numbers between -0.5 and 0.5 that look random. */
  const noise = (count: number, seed: number) =>
    Array.from({ length: count }, (_, i) => ((Math.imul(i + seed * 7919, 2654435761) >>> 0) % 1009) / 1009 - 0.5)
  const [rows, columns] = [150, 48]
  const base = noise(rows * columns, 1)
  /** The base, and what an adapter of a rank adds to it. */
  const merged = (rank: number) => {
    const [left, right] = [noise(rows * rank, 2), noise(rank * columns, 3)]
    return base.map((one, at) => {
      const [row, column] = [Math.floor(at / columns), at % columns]
      return (
        one + left.slice(row * rank, (row + 1) * rank).reduce((sum, x, i) => sum + x * right[i * columns + column]!, 0)
      )
    })
  }
  const matrix = (name: string, values: readonly number[]) => tensorOf(name, 'F32', [rows, columns], values)
  const models = (...changed: readonly (readonly number[])[]) =>
    [changed.map(() => base), changed].map(ofModel =>
      checkpoint(ofModel.map((values, i) => matrix(`model.layers.${i}.mlp.up_proj.weight`, values))),
    )

  it('into which an adapter was merged changed along few directions', async () => {
    const { text } = await table(...models(merged(3), merged(3), base))
    expect(text).toMatch(
      /Low rank: in model\.layers\.\d\.mlp\.up_proj\.weight and 1 more, at most 3 directions hold 95 % of ‖Δ‖² in 95 % of the rows and columns of samples of up to 128 rows and 48 columns\. A merged LoRA adapter is one possible cause\./,
    )
  })

  it.each([
    ['that changed everywhere', noise(rows * columns, 9)],
    ['of which few rows changed', base.map((one, at) => (at < 9 * columns ? one + 1 : one))],
    ['with a NaN', merged(1).with(4, Number.NaN)],
  ])('%s has no low rank', async (_, changed) => {
    const { code, text } = await table(...models(changed))
    expect([code, text.includes('Low rank')]).toEqual([1, false])
  })

  it('that is small has its rank told of all its rows and columns', async () => {
    const small = (values: readonly number[]) =>
      checkpoint([tensorOf('w', 'F32', [100, columns], values.slice(0, 100 * columns))])
    const { text } = await table(small(base), small(merged(2)))
    expect(text).toContain('Low rank: in w, at most 2 directions hold 95 % of ‖Δ‖² in 95 % of all rows and columns.')
  })

  it.each([
    ['columns', [32, 2048], (_: number, column: number) => column % 2],
    ['rows', [512, 32], (row: number) => row % 4],
  ] as const)('of which every so many %s changed along few directions has no low rank', async (_, shape, isOther) => {
    const [random, along] = [noise(shape[0] * shape[1], 9), [noise(shape[0], 2), noise(shape[1], 3)]]
    const delta = random.map((x, at) => {
      const [row, column] = [Math.floor(at / shape[1]), at % shape[1]]
      return isOther(row, column) === 0 ? along[0]![row]! * along[1]![column]! : x
    })
    const [a, b] = [delta.map(() => 0), delta].map(values => checkpoint([tensorOf('w', 'F32', shape, values)]))
    const { code, text } = await table(a!, b!)
    expect([code, text.includes('Low rank')]).toEqual([1, false])
  })

  it.each([
    ['one large element', (row: number, column: number) => (row === 9 && column === 7 ? 1e4 : 1)],
    ['rows that become smaller', (row: number) => 1 / (row + 1)],
    ['three large columns', (_: number, column: number) => (column < 3 ? 1e3 : 1)],
    ['large rows and columns', (row: number, column: number) => (row < 3 || column < 3 ? 1e3 : 1)],
    ['squares beyond float64', () => 1e200],
  ])('has no low rank by %s', (_, sizeOf) => {
    const random = noise(rows * columns, 9)
    const sized = Array.from({ length: 128 }, (_, row) =>
      Float64Array.from({ length: columns }, (_, i) => random[row * columns + i]! * sizeOf(row, i)),
    )
    expect(rankOf(sized)).toBe(null)
  })

  it('whose squares are beyond float64 is compared', async () => {
    const at = (values: readonly number[]) =>
      checkpoint([
        tensorOf(
          'w.weight',
          'F64',
          [rows, columns],
          values.map(x => x * 1e200),
        ),
      ])
    const { code, text } = await table(at(base), at(merged(3)))
    expect([code, text]).toEqual([1, expect.stringContaining('Low rank: in w.weight, at most 3 directions hold')])
  })

  it('has a table of layers and kinds, with the largest change of each', async () => {
    const names = ['input_layernorm', 'self_attn.q_proj', 'self_attn.k_proj', 'mlp.up_proj', 'rotary.inv_freq']
    const at = (change: (layer: number, kind: number) => number) =>
      checkpoint([
        ...[0, 1, 10].flatMap(layer =>
          names
            .filter((_, kind) => layer < 10 || kind < 2)
            .map((name, kind) =>
              tensorOf(`model.layers.${layer}.${name}.weight`, 'F32', [2], [0, change(layer, kind)]),
            ),
        ),
        tensorOf('lm_head.weight', 'F32', [2], [0, change(99, 0)]),
      ])
    const { stdout } = await trialscan(
      'diff',
      at(() => 1),
      at((layer, kind) => 1 + (layer + 1) * 2 ** kind),
      '--format',
      'table',
    )
    const block = stdout.slice(stdout.indexOf('By layer'))
    expect(block.split('\n').map(line => line.trim().split(/ +/).join(' '))).toEqual([
      'By layer: the largest ‖Δ‖/‖a‖ of its tensors',
      'layer norm attention mlp other',
      '0 1 4 8 16',
      '1 2 8 16 32',
      '10 11 22',
      '',
    ])
  })
})

describe('tensor-parallel ranks', () => {
  const ranks = (name: string, shares: readonly (readonly SavedTensor[])[]) => {
    const dir = join(scratch, name)
    for (const [rank, tensors] of shares.entries()) {
      writeFile(join(dir, `mp_rank_0${rank}.safetensors`), safetensors([...tensors, weight(0, 'norm.weight')]))
    }
    return dir
  }
  const note = 'Most tensors differ between these workers, as where each has a part of a model and no copy.'

  it('are told to have parts where most of them differs', async () => {
    const share = (start: number) => ['a', 'b'].map(name => weight(start, `${name}.weight`))
    const dir = ranks('parts', [share(1), share(2)])
    const { code, text } = await table(dir, '--workers')
    expect([code, text.includes(note)]).toEqual([1, true])
    expect((await table(dir, '--workers', '--tensor', 'norm')).code).toBe(0)
    const whole = checkpoint([...['a', 'b'].map(name => counting(`${name}.weight`, [8, 3])), weight(0, 'norm.weight')])
    const unify = join(scratch, 'unify.json')
    writeFile(unify, JSON.stringify({ '[ab]\\.weight': 0 }))
    const halves = ranks(
      'halves',
      [0, 12].map(start => ['a', 'b'].map(name => weight(start, `${name}.weight`))),
    )
    expect((await table(whole, halves, '--unify', unify)).text).toContain('no difference. 3 tensor values')
  })

  it('have a tied head where it equals the embeddings of every rank', async () => {
    const names = ['model.embed_tokens.weight', 'lm_head.weight'] as const
    const of = (second: number) =>
      ranks(
        `heads${second}`,
        [
          [0, 0],
          [12, second],
        ].map(starts => starts.map((start, i) => weight(start, names[i]))),
      )
    const whole = checkpoint([counting(names[0], [8, 3]), weight(0, 'norm.weight')])
    const unify = { '.*(embed_tokens|lm_head)\\.weight': 0 }
    const all = { compared: 2, equal: 2 }
    expect(await diff(of(12), whole, { unify })).toMatchObject({ ...all, missing: 0, tied: [{ count: 1 }] })
    expect(await diff(whole, of(5), { unify })).toMatchObject({ ...all, missing: 1, tied: [] })
  })

  it('of which there is one are compared with a worker of another name', async () => {
    const found = await diff(ranks('one', [[weight(1)]]), checkpoint([weight(1), weight(1, 'norm.weight')]))
    expect([found.compared, found.equal]).toEqual([2, 1])
    expect([found.divergence?.worker, found.divergence?.otherWorker]).toEqual(['rank_0', 'worker_0'])
  })

  it('are copies where most of them is equal', async () => {
    const { code, text } = await table(ranks('copies', [[weight(1)], [weight(1)], [weight(2)]]), '--workers')
    expect([code, text.includes(note)]).toEqual([1, false])
  })
})

describe('what was not compared', () => {
  it('is said where no difference was found', async () => {
    const { code, text } = await table(checkpoint([weight(), weight(0, 'b.weight')]), checkpoint([weight()]))
    expect(code).toBe(0)
    expect(text).toContain(
      'no difference in what was compared. 1 tensor value at 1 step compared: 1 equal; 1 not compared.',
    )
  })

  it('is said where tensors changed', async () => {
    const { text } = await table(checkpoint([weight(), weight(0, 'b.weight')]), checkpoint([weight(1)]))
    expect(text).toContain('1 of 1 tensor changed; 1 more was not compared.')
  })

  it('is what needs its ranks put together', async () => {
    const ranks = join(scratch, 'ranks')
    for (const rank of [0, 1]) writeFile(join(ranks, `mp_rank_0${rank}.safetensors`), safetensors([weight()]))
    const { code, notes } = await table(checkpoint([weight()]), ranks)
    expect(code).toBe(5)
    expect(notes).toContain('the first has worker_0, the second rank_0, rank_1. --unify FILE puts together')
  })

  it('is a model beside an adapter', async () => {
    const name = 'base_model.model.a.lora_'
    const adapter = checkpoint([weight(0, `${name}A.weight`), weight(0, `${name}B.weight`)])
    const { code, notes } = await table(checkpoint([weight()]), adapter)
    expect(code).toBe(5)
    expect(notes).toContain('the second is an adapter, which has none of the tensors of a model: merge it')
  })

  it('are the codes of narrow floats without scales, but not casts', async () => {
    const floats = tensorOf('a.weight', 'F32', [4], [0.125, -0.25, 0.375, 0.55])
    const codes = (bytes: number[]): SavedTensor => ({ ...floats, dtype: 'F8_E4M3', bytes: Uint8Array.from(bytes) })
    // 0.125, -0.25, 0.375 and 0.5625; and 256 times as large.
    const [cast, scaled] = [codes([0x20, 0xa8, 0x2c, 0x31]), codes([0x60, 0xe8, 0x6c, 0x71])]
    const [a, b, c] = [checkpoint([floats]), checkpoint([cast]), checkpoint([scaled])]
    expect((await diff(a, b)).divergence).toMatchObject({ kind: 'values' })
    expect((await diff(a, c)).divergence).toMatchObject({
      kind: 'dtype',
      message:
        'it is float32 in the first run and float8_e4m3fn in the second, and no scales say what its numbers are multiplied by',
    })
  })

  it('are the scales of weights that are quantised on both sides', async () => {
    const quantised = (code: number, scale: number) =>
      checkpoint([
        { name: 'a.weight', dtype: 'F8_E4M3', shape: [2], bytes: Uint8Array.of(code, code) },
        tensorOf('a.weight_scale', 'F32', [], [scale]),
      ])
    const [a, b] = [quantised(0x38, 2), quantised(0x40, 1)]
    expect((await table(a, b)).text).toContain(
      '1 weight is quantised on both sides, and compared as stored, without its scales.',
    )
    expect((await table(a, b)).text).toContain(' in a.weight, as stored: scales are compared on their own.')
    expect(await diff(a, a)).toMatchObject({ divergence: null })
  })
})

describe('names', () => {
  const head = (prefix = '') => weight(0, `${prefix}lm_head.weight`)
  const embeddings = (prefix = '') => weight(0, `${prefix}model.embed_tokens.weight`)

  it.each(['state_dict.', 'model_state_dict.module._orig_mod.', 'model.'])('match without %s', async prefix => {
    const [a, b] = [checkpoint([head(), embeddings()]), checkpoint([head(prefix), embeddings(prefix)])]
    expect(await diff(a, b)).toMatchObject({ compared: 2, equal: 2, missing: 0, tied: [] })
  })

  it('a head is tied only where its run has no other head', async () => {
    const [a, b] = [checkpoint([head(), embeddings()]), checkpoint([head('x.'), embeddings()])]
    expect(await diff(a, b)).toMatchObject({ compared: 1, missing: 2, tied: [] })
    const tied = { tensor: 'lm_head.weight', tiedTo: 'model.embed_tokens.weight', count: 1 }
    const without = checkpoint([embeddings()])
    expect((await diff(a, without)).tied).toEqual([{ ...tied, only: 'first' }])
    const other = checkpoint([weight(5, 'lm_head.weight'), embeddings()])
    expect((await diff(without, a)).tied).toEqual([{ ...tied, only: 'second' }])
    expect(await diff(without, other)).toMatchObject({ compared: 1, missing: 1, tied: [] })
    const { text } = await table(without, other)
    expect(text).toContain('no difference in what was compared.')
    expect(text).toContain(
      'Only in the second run, where it differs from model.embed_tokens.weight and is not tied: lm_head',
    )
    expect((await table(a, without)).text).toContain('no difference. 1 tensor value')
    expect((await diff(checkpoint([weight(0, 'output.weight')]), checkpoint([embeddings(), head()]))).tied).toEqual([])
    // In a file that is cut off it is lost.
    const cut = checkpoint([embeddings(), head()])
    truncateSync(join(cut, 'model.safetensors'), readFileSync(join(cut, 'model.safetensors')).length - 8)
    expect(await diff(a, cut)).toMatchObject({ compared: 1, missing: 1, tied: [] })
  })

  it('a head is tied at the steps at which it equals the embeddings, and missing at the others', async () => {
    const run = (name: string, heads: readonly number[]) => {
      for (const [i, start] of heads.entries()) {
        const ownHead = name === 'with' ? [weight(start, 'lm_head.weight')] : []
        checkpoint([...ownHead, embeddings()], `${name}${heads}/checkpoint-${i + 1}`)
      }
      return join(scratch, `${name}${heads}`)
    }
    const of = (heads: readonly number[]) => [run('with', heads), run('without', heads)] as const
    const [equal, some, none] = [of([0, 0]), of([0, 5, 0, 7, 0]), of([5])]
    expect(await diff(...equal)).toMatchObject({ missing: 0, tied: [{ count: 2 }] })
    expect(await diff(...some)).toMatchObject({ missing: 2, tied: [{ count: 3 }] })
    expect(await diff(some[1], some[0])).toMatchObject({ missing: 2, tied: [{ only: 'second', count: 3 }] })
    for (const [a, b] of [some, some.toReversed()]) {
      const { bisection, missing, tied } = await diff(a!, b!, { bisect: true })
      expect(missing + tied[0]!.count).toBe(bisection!.steps.length)
    }
    expect(await diff(...none)).toMatchObject({ missing: 1, tied: [] })
    expect((await table(...some)).text).toContain('in the first run it equals its embeddings (3 tensor values).')
  })

  it('a head is held against the embeddings of its own run, as all tensors are compared', async () => {
    const values = (name: string, dtype: string, ...numbers: number[]) => tensorOf(name, dtype, [2], numbers)
    const own = (...numbers: number[]) => values('transformer.wte.weight', 'BF16', ...numbers)
    const other = checkpoint([values('model.embed_tokens.weight', 'BF16', 1, 0)])
    const cast = checkpoint([own(1, 0), values('lm_head.weight', 'F32', 1, -0)])
    expect((await diff(cast, other)).tied).toMatchObject([{ tiedTo: 'model.embed_tokens.weight', count: 1 }])
    const lacks = async (...head: number[]) => {
      const messages: string[] = []
      const onNotCompared = ({ tensor, message }: DifferenceAt) => tensor === 'lm_head.weight' && messages.push(message)
      await diff(checkpoint([own(1, 0), values('lm_head.weight', 'BF16', ...head)]), other, { onNotCompared })
      return messages
    }
    const only = 'only in the first run, where it'
    expect(await lacks(1, 2)).toEqual([`${only} differs from transformer.wte.weight and is not tied`])
    expect(await lacks(1, -0)).toEqual([
      `${only}s numbers equal those of transformer.wte.weight, but for the sign of a zero`,
    ])
  })

  it('heads of many steps are read with what is compared', async () => {
    const [a, b] = [[head()], []].map((heads, i) => {
      for (const step of [1, 2, 3, 4]) checkpoint([...heads, embeddings()], `many${i}/checkpoint-${step}`)
      return join(scratch, `many${i}`)
    })
    const answers = vi.spyOn(Inquiry.prototype, 'answers')
    await diff(a!, b!)
    expect(answers).toHaveBeenCalledTimes(1)
    answers.mockRestore()
  })

  it('a head that is not held against embeddings is missing, and not tied', async () => {
    const noEmbeddings = checkpoint([head(), weight(0, 'b.weight')])
    const without = checkpoint([embeddings(), weight(0, 'b.weight')])
    expect(await diff(noEmbeddings, without)).toMatchObject({ compared: 1, missing: 2, tied: [] })
    expect((await table(noEmbeddings, without)).text).toContain(
      'Only in the first run, where it could not be compared with embeddings',
    )
    const lost = checkpoint([embeddings(), weight(0, 'b.weight'), head()])
    const trials = [await createTrial(lost), await createTrial(without)] as const
    truncateSync(join(lost, 'model.safetensors'), readFileSync(join(lost, 'model.safetensors')).length - 8)
    const { problems, missing, tied } = await diff(...trials)
    expect([problems.length, missing, tied]).toEqual([1, 0, []])
    for (const trial of trials) await trial.close()
  })

  it('a tied head is told in JSON and in what CI reads', async () => {
    const args = ['diff', checkpoint([head(), embeddings()]), checkpoint([embeddings()]), '--format']
    const { tied, missing } = JSON.parse((await trialscan(...args, 'json')).stdout)
    expect(tied).toEqual([{ tensor: 'lm_head.weight', only: 'first', tied_to: 'model.embed_tokens.weight', count: 1 }])
    expect(missing).toEqual([])
    expect((await trialscan(...args, 'junit')).stdout).toContain('tied: lm_head.weight')
  })

  it('under state_dict are those of a model', async () => {
    const at = (start: number) => checkpoint([weight(start, 'state_dict.fc.weight'), moment(start)])
    expect((await table(at(0), at(1))).text).toMatch(
      /2 of 2 tensors changed, 1 of them of the optimizer\..* in state_dict\.fc\.weight\./,
    )
  })
})

describe('in 80 columns', () => {
  const name = (kind: string) => `model.layers.10.self_attn.${kind}_layernorm_of_a_long_name.weight`
  const widest = (text: string) => Math.max(...text.split('\n').map(line => [...line].length))
  const narrow = async (...args: readonly string[]) => (await trialscan('diff', ...args, '--format', 'table')).stdout

  beforeAll(() => vi.stubEnv('COLUMNS', '80'))
  afterAll(() => vi.unstubAllEnvs())

  it('tables of changes, of shapes and of quantised weights fit', async () => {
    const floats = (count: number) => tensorOf(name('other'), 'F32', [count], Array(count).fill(-1.2345678))
    const [a, b] = [
      checkpoint([weight(0.1234567, name('post')), floats(4)]),
      checkpoint([weight(-0.7654321, name('post')), floats(5)]),
    ]
    const text = await narrow(a, b)
    expect(widest(text)).toBeLessThanOrEqual(80)
    expect(text).toContain('a → b there')
    expect(text.replace(/\s+/g, ' ')).toContain('its shape is [4] in the first run and [5] in the second.')
    const scale = tensorOf(`${name('post')}_scale`, 'F32', [4, 1], [1, 1, 1, 1])
    const codes = { name: name('post'), dtype: 'F8_E4M3', shape: [4, 3], bytes: new Uint8Array(12).fill(0x38) }
    const quantised = await narrow(a, checkpoint([codes, scale, floats(4)]))
    expect(widest(quantised)).toBeLessThanOrEqual(80)
    expect(quantised).toMatch(/SQNR dB.* at ±max +as/)
  })

  it('tables of digests fit', async () => {
    const [a, b] = [checkpoint([weight(0, name('post'))]), checkpoint([weight(1, name('post'))])]
    const list = join(scratch, 'list.jsonl')
    await trialscan('verify', a, '--record', list)
    const text = await narrow(b, '--digests', list)
    expect(widest(text)).toBeLessThanOrEqual(80)
    expect(text).toMatch(/model.*….* sha256 /)
  })
})
