/** Where NaN and infinities come from, of trainings that are made with one at a known place. */

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { createTrial, type NonFiniteTrace, type Trial, traceNonFinite } from '#dist/index.js'
import { isGradientOf, layersOf, roleOf } from '#dist/trial/kinds/roles.js'
import { type StepTensor, TrialWriter } from '../../fixtures/event-writer.js'
import { trialscan } from '../cli/run.js'
import { ROOT } from '../support/golden.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('non-finite')
const trials: Trial[] = []
afterAll(() => Promise.all(trials.map(trial => trial.close())))
let count = 0

/** Where something is spoilt: a value in place of an element. */
interface Spoilt {
  readonly step: number
  readonly tensor: string
  readonly worker?: number
  readonly element: readonly number[]
  readonly value: number
}

interface Made {
  readonly spoilt?: readonly Spoilt[]
  readonly workers?: number
  /** Steps between two saved ones. */
  readonly interval?: number
  readonly dtype?: 'float32' | 'float16'
  readonly onlyReductions?: boolean
}

const SHAPES: Readonly<Record<string, readonly number[]>> = {
  'Net_fc0.weight': [4, 3],
  'Net_fc1.weight': [2, 4],
  fc0_input_0: [5, 3],
  fc0_output_0: [5, 4],
  fc1_input_0: [5, 4],
  fc1_output_0: [5, 2],
  Net_output_0: [5, 2],
  CrossEntropyLoss_input_0: [5, 2],
  CrossEntropyLoss_output_0: [],
  'gradient/Net_fc1.weight': [2, 4],
  'gradient/Net_fc0.weight': [4, 3],
}

/** A training of two layers, in the order in which smdebug's hook saves. */
function write({ spoilt = [], workers = 1, interval = 1, dtype = 'float32', onlyReductions = false }: Made): string {
  const directory = join(scratch, String(count++))
  const writer = new TrialWriter(directory, { numWorkers: workers })
  for (let step = 0; step < 6; step++) {
    for (let worker = 0; worker < workers; worker++) {
      const tensors = Object.entries(SHAPES).map(([name, shape]): StepTensor => {
        const size = shape.reduce((product, length) => product * length, 1)
        const values = Array.from({ length: size }, (_, i) => (i + 1) / 8)
        for (const { tensor, element, value, ...place } of spoilt) {
          if (tensor !== name || place.step !== step || (place.worker ?? worker) !== worker) continue
          values[element.reduce((at, index, axis) => at * shape[axis]! + index, 0)] = value
        }
        if (!onlyReductions) return { name, dtype, shape, values }
        const [min, max] = [Math.min(...values), Math.max(...values)]
        const mean = values.reduce((sum, value) => sum + value, 0) / size
        return { name, reductions: { min, max, mean }, savedShape: shape }
      })
      writer.step({ step: step * interval, mode: 'TRAIN', worker, tensors })
    }
  }
  writer.end()
  return directory
}

async function traced(made: Made): Promise<NonFiniteTrace> {
  const trial = await createTrial(write(made), { refresh: 'manual' })
  trials.push(trial)
  return traceNonFinite(trial)
}

const classes = ({ later }: NonFiniteTrace) =>
  Object.fromEntries(later.map(({ tensor, class: own, from }) => [tensor, [own, from]]))

/** What follows from a spoilt record at its step: everything after it. */
const following = (step: number, tensor: string, names: readonly string[]): Spoilt[] =>
  [tensor, ...names].map(name => ({ step, tensor: name, element: SHAPES[name]!.map(() => 0), value: Number.NaN }))

describe('the origin', () => {
  it('is null where all is finite', async () => {
    const trace = await traced({})
    expect(trace).toMatchObject({ origin: null, warning: null, later: [], chain: [], records: 66, problems: [] })
  })

  it.each([
    ['a weight', { step: 3, tensor: 'Net_fc1.weight', element: [1, 2], value: Number.NaN }, 'nan'],
    [
      'a gradient',
      { step: 2, tensor: 'gradient/Net_fc0.weight', element: [3, 0], value: Number.POSITIVE_INFINITY },
      'inf',
    ],
    ['an activation', { step: 4, tensor: 'fc1_output_0', element: [0, 1], value: Number.NEGATIVE_INFINITY }, '-inf'],
    ['the loss', { step: 5, tensor: 'CrossEntropyLoss_output_0', element: [], value: Number.NaN }, 'nan'],
  ] as const)('is %s, to the very element', async (_, spoilt, kind) => {
    const { origin } = await traced({ spoilt: [spoilt] })
    const { step, tensor, element } = spoilt
    expect(origin).toMatchObject({
      step,
      tensor,
      worker: 'worker_0',
      mode: 'TRAIN',
      modeStep: step,
      kind,
      class: 'producer',
      element: element.length === 0 ? null : element,
      workers: ['worker_0'],
    })
  })

  it('is the first in the order of execution, over all workers', async () => {
    const spoilt = [
      { step: 3, tensor: 'fc1_output_0', worker: 0, element: [0, 0], value: Number.NaN },
      { step: 3, tensor: 'fc0_output_0', worker: 1, element: [2, 1], value: Number.NaN },
      { step: 4, tensor: 'Net_fc0.weight', worker: 0, element: [0, 0], value: Number.NaN },
    ]
    const { origin, later } = await traced({ spoilt, workers: 3 })
    expect(origin).toMatchObject({
      step: 3,
      tensor: 'fc0_output_0',
      worker: 'worker_1',
      element: [2, 1],
      workers: ['worker_1'],
    })
    expect(later.map(({ step, tensor, worker }) => [step, tensor, worker])).toEqual([
      [3, 'fc1_output_0', 'worker_0'],
      [4, 'Net_fc0.weight', 'worker_0'],
    ])
  })

  it('names all workers that have it at once', async () => {
    const { origin } = await traced({
      spoilt: [{ step: 1, tensor: 'fc0_output_0', element: [0, 0], value: Number.NaN }],
      workers: 3,
    })
    expect(origin).toMatchObject({ worker: 'worker_0', workers: ['worker_0', 'worker_1', 'worker_2'] })
  })

  it('tells whole channels from single elements', async () => {
    const channel = [0, 1, 2, 3, 4].map(sample => ({
      step: 2,
      tensor: 'fc0_output_0',
      element: [sample, 3],
      value: Number.NaN,
    }))
    const whole = await traced({ spoilt: channel })
    expect(whole.origin!.slices).toEqual([{ axis: 1, length: 4, indices: [3], count: 1, isWhole: true }])
    const part = await traced({ spoilt: channel.slice(1, 3) })
    expect(part.origin!.slices).toEqual([
      { axis: 0, length: 5, indices: [1, 2], count: 2, isWhole: false },
      { axis: 1, length: 4, indices: [3], count: 1, isWhole: false },
    ])
  })

  it('is found by reductions alone, with less certainty', async () => {
    const { origin, isUncertain } = await traced({
      spoilt: [{ step: 3, tensor: 'fc0_output_0', element: [1, 1], value: Number.NaN }],
      onlyReductions: true,
    })
    expect(origin).toMatchObject({ step: 3, tensor: 'fc0_output_0', kind: 'nan', element: null, nan: null })
    expect(isUncertain).toBe(true)
    const infinite = await traced({
      spoilt: [{ step: 3, tensor: 'fc0_output_0', element: [1, 1], value: Number.NEGATIVE_INFINITY }],
      onlyReductions: true,
    })
    expect(infinite.origin).toMatchObject({ step: 3, tensor: 'fc0_output_0', kind: '-inf' })
  })

  it('of cnn-exploding is where check has it', async () => {
    const path = join(ROOT, '../shared/trials/cnn-exploding')
    const trial = await createTrial(path, { refresh: 'manual' }).catch(() => null)
    if (trial === null) return
    trials.push(trial)
    const trace = await traceNonFinite(trial)
    expect(trace.origin).toMatchObject({ step: 5, tensor: 'CNN_conv1.weight', element: [7, 0, 0, 0], nan: 72 })
    expect(trace.warning).toMatchObject({ step: 5, tensor: 'CNN_conv0.weight' })
    expect(trace.chain.at(-1)!.tensor).toBe('CrossEntropyLoss_output_0')
  })
})

describe('an overflow in half precision', () => {
  it('is warned of before it comes', async () => {
    const spoilt = [
      { step: 2, tensor: 'fc0_output_0', element: [0, 0], value: 60_000 },
      { step: 3, tensor: 'fc0_output_0', element: [0, 0], value: Number.POSITIVE_INFINITY },
    ]
    const { origin, warning } = await traced({ spoilt, dtype: 'float16' })
    expect(origin).toMatchObject({ step: 3, tensor: 'fc0_output_0', kind: 'inf' })
    expect(warning).toMatchObject({ step: 2, tensor: 'fc0_output_0', limit: 32_752 })
    expect(warning!.absMax).toBeGreaterThan(59_000)
  })

  it('is no warning where it comes after', async () => {
    const spoilt = [
      { step: 2, tensor: 'fc0_output_0', element: [0, 0], value: Number.POSITIVE_INFINITY },
      { step: 3, tensor: 'fc1_output_0', element: [0, 0], value: 60_000 },
    ]
    expect((await traced({ spoilt, dtype: 'float16' })).warning).toBeNull()
  })
})

describe('what follows', () => {
  it('is classified by what it was computed from, with the chain to the loss', async () => {
    const names = [
      'fc1_input_0',
      'fc1_output_0',
      'Net_output_0',
      'CrossEntropyLoss_input_0',
      'CrossEntropyLoss_output_0',
      'gradient/Net_fc1.weight',
    ]
    const trace = await traced({
      spoilt: [...following(2, 'fc0_output_0', names), ...following(3, 'Net_fc1.weight', [])],
    })
    expect(trace.origin).toMatchObject({ tensor: 'fc0_output_0', class: 'producer' })
    expect(classes(trace)).toEqual({
      fc1_input_0: ['propagator', 'fc0_output_0'],
      fc1_output_0: ['propagator', 'fc1_input_0'],
      Net_output_0: ['propagator', 'fc1_output_0'],
      CrossEntropyLoss_input_0: ['propagator', 'Net_output_0'],
      CrossEntropyLoss_output_0: ['propagator', 'CrossEntropyLoss_input_0'],
      'gradient/Net_fc1.weight': ['propagator', 'CrossEntropyLoss_output_0'],
      'Net_fc1.weight': ['propagator', 'gradient/Net_fc1.weight'],
    })
    expect(trace.chain.map(({ tensor }) => tensor)).toEqual([
      'fc0_output_0',
      'fc1_input_0',
      'fc1_output_0',
      'Net_output_0',
      'CrossEntropyLoss_input_0',
      'CrossEntropyLoss_output_0',
    ])
  })

  it('is another producer where its own inputs are finite', async () => {
    const spoilt = [
      { step: 2, tensor: 'fc0_output_0', element: [0, 0], value: Number.NaN },
      { step: 4, tensor: 'fc1_output_0', element: [0, 0], value: Number.NaN },
    ]
    expect(classes(await traced({ spoilt }))).toEqual({ fc1_output_0: ['producer', null] })
  })

  it('is unknown where steps between were not saved', async () => {
    const { origin } = await traced({
      spoilt: [{ step: 3, tensor: 'Net_fc1.weight', element: [0, 0], value: Number.NaN }],
      interval: 10,
    })
    expect(origin).toMatchObject({ step: 30, class: 'unknown' })
  })
})

describe('what was saved and not read', () => {
  const nan = (tensor: string, step: number): Spoilt => ({
    tensor,
    step,
    element: SHAPES[tensor]!.map(() => 0),
    value: Number.NaN,
  })
  const origin = { class: 'unknown', from: null }

  it('is not taken for finite where it is not selected', async () => {
    const path = write({ spoilt: [nan('fc0_input_0', 5), nan('fc0_output_0', 5)] })
    const trial = await createTrial(path, { refresh: 'manual' })
    trials.push(trial)
    const trace = await traceNonFinite(trial, { tensors: 'fc0_output_0' })
    const reason = 'fc0_input_0 of worker_0 at step 5 was not read, nor was 1 more'
    expect(trace.origin).toMatchObject({ ...origin, tensor: 'fc0_output_0', reason })
    const { stdout } = await trialscan('nan', path, '--tensor', 'fc0_output_0', '--format', 'table')
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain(`It arose here or before: ${reason}.`)
    const json = await trialscan('nan', path, '--tensor', 'fc0_output_0', '--format', 'jsonl')
    expect(JSON.parse(json.stdout).origin).toMatchObject({ class: 'unknown', reason })
    // All that its output is computed from is selected.
    const all = await traceNonFinite(trial, { tensors: ['fc0_output_0', 'fc0_input_0', 'Net_fc0.weight'] })
    expect(classes(all)).toEqual({ fc0_output_0: ['propagator', 'fc0_input_0'] })
  })

  it('nor where its record is damaged', async () => {
    const path = write({ spoilt: [nan('fc0_output_0', 5)] })
    const file = join(path, 'events/000000000005/000000000005_worker_0.tfevents')
    const bytes = readFileSync(file)
    // The length of the record of that name.
    const lengthOf = (at: number) => 16 + Number(bytes.readBigUInt64LE(at))
    let at = 0
    while (at + lengthOf(at) < bytes.indexOf('fc0_input_0')) at += lengthOf(at)
    bytes[at]! ^= 255
    writeFileSync(file, bytes)
    const trial = await createTrial(path, { refresh: 'manual' })
    trials.push(trial)
    const trace = await traceNonFinite(trial)
    expect(trace.unread).toBe(1)
    const reason = 'fc0_input_0 of worker_0 at step 5 could not be read'
    expect(trace.origin).toMatchObject({ ...origin, tensor: 'fc0_output_0', reason })
  })

  it('nor at a step before those that are selected', async () => {
    const path = write({ spoilt: [3, 4, 5].map(step => nan('Net_fc1.weight', step)) })
    const trial = await createTrial(path, { refresh: 'manual' })
    trials.push(trial)
    const trace = await traceNonFinite(trial, { steps: [4, 5] })
    const reason = 'Net_fc1.weight of worker_0 at step 3 was not read, nor was 1 more'
    expect(trace.origin).toMatchObject({ ...origin, tensor: 'Net_fc1.weight', step: 4, reason })
  })

  it('nor where another worker has it', async () => {
    const gradient = 'gradient/Net_fc1.weight'
    const path = write({ spoilt: [{ ...nan(gradient, 3), worker: 0 }], workers: 2 })
    const trial = await createTrial(path, { refresh: 'manual' })
    trials.push(trial)
    const reason = `${gradient} of worker_1 at step 3 was not read`
    expect((await traceNonFinite(trial, { workers: 'worker_0' })).origin).toMatchObject({ ...origin, reason })
    expect((await traceNonFinite(trial)).origin).toMatchObject({ class: 'producer', reason: null })
  })
})

describe('several workers', () => {
  const gradient = 'gradient/Net_fc1.weight'
  const at = (worker: number, step: number, tensor: string): Spoilt => ({
    worker,
    step,
    tensor,
    element: SHAPES[tensor]!.map(() => 0),
    value: Number.NaN,
  })

  it('have it from each other where they add up gradients', async () => {
    const spoilt = [at(1, 2, 'fc1_output_0'), ...[0, 1, 2].map(worker => at(worker, 2, gradient))]
    const { later } = await traced({ spoilt, workers: 3 })
    expect(later.map(({ worker, class: own, from, fromWorker }) => [worker, own, from, fromWorker])).toEqual([
      ['worker_0', 'propagator', gradient, 'worker_1'],
      ['worker_1', 'propagator', 'fc1_output_0', 'worker_1'],
      ['worker_2', 'propagator', gradient, 'worker_1'],
    ])
  })

  it('have it from the gradient of another, which was saved before', async () => {
    const spoilt = [at(1, 2, gradient), at(0, 3, 'Net_fc1.weight'), at(0, 3, 'CrossEntropyLoss_output_0')]
    const path = write({ spoilt, workers: 2 })
    const { stdout } = await trialscan('nan', path, '--format', 'jsonl')
    const [first, weight] = stdout.split('\n').map(line => JSON.parse(line || 'null'))
    expect(first.origin).toMatchObject({ tensor: gradient, worker: 'worker_1', step: 2 })
    expect(weight).toMatchObject({ worker: 'worker_0', class: 'propagator', from: gradient, from_worker: 'worker_1' })
  })
})

describe('other hooks', () => {
  /** @returns the class of each tensor, and what it is from */
  async function tracedOf(tensors: readonly StepTensor[]) {
    const path = join(scratch, String(count++))
    const writer = new TrialWriter(path)
    writer.step({ step: 0, tensors })
    writer.end()
    const trial = await createTrial(path, { refresh: 'manual' })
    trials.push(trial)
    return traceNonFinite(trial)
  }
  const [good, bad] = [
    [1, 2],
    [1, Number.NaN],
  ]
  const tensor = (name: string, values: readonly number[]): StepTensor => ({ name, shape: [2], values })

  it('of MXNet: parameters belong to layers by their ends', async () => {
    const trace = await tracedOf([
      tensor('conv0_weight', bad!),
      tensor('conv0_input_0', good!),
      tensor('conv0_output_0', bad!),
      tensor('conv0_relu_output_0', bad!),
    ])
    expect(classes(trace)).toEqual({
      conv0_output_0: ['propagator', 'conv0_weight'],
      conv0_relu_output_0: ['propagator', 'conv0_output_0'],
    })
  })

  it('of Keras: losses come from outputs, and gradients from losses', async () => {
    const trace = await tracedOf([
      tensor('dense/outputs', bad!),
      tensor('loss', bad!),
      tensor('gradients/dense/kernelGrad', bad!),
    ])
    expect(trace.chain.map(({ tensor }) => tensor)).toEqual(['dense/outputs', 'loss'])
    expect(classes(trace)).toEqual({
      loss: ['propagator', 'dense/outputs'],
      'gradients/dense/kernelGrad': ['propagator', 'loss'],
    })
    expect(isGradientOf('dense/kernel', 'dense/weights/dense/kernel:0')).toBe(true)
    const other = await tracedOf([tensor('dense/outputs', good!), tensor('loss', bad!), tensor('grad/w', bad!)])
    expect(other.origin).toMatchObject({ tensor: 'loss', class: 'producer' })
    expect(classes(other)).toEqual({ 'grad/w': ['propagator', 'loss'] })
  })

  it('the inputs of a loss alone are no cause', async () => {
    const trace = await tracedOf([tensor('Net_fc.weight', bad!), tensor('CrossEntropyLoss_input_0', bad!)])
    expect(classes(trace)).toEqual({ CrossEntropyLoss_input_0: ['propagator', 'Net_fc.weight'] })
  })

  it('complex numbers have elements, too', async () => {
    const values = [0, 0, 1, Number.NEGATIVE_INFINITY]
    const { origin } = await tracedOf([{ name: 'c', dtype: 'complex64', shape: [2], values }])
    expect(origin).toMatchObject({ element: [1], kind: '-inf' })
  })

  it.each([
    ['the spread of a single element is no NaN', { mean: 1, std: Number.NaN }, [1], null],
    ['nor is it alone', { std: Number.NaN }, [1], null],
    ['of several it is', { std: Number.NaN }, [2], 'nan'],
    ['a norm tells where no extreme does', { l2: Number.POSITIVE_INFINITY }, [2], 'inf'],
    ['extremes tell better', { l2: Number.POSITIVE_INFINITY, max: 1e30 }, [2], null],
  ])('of reductions: %s', async (_, reductions, savedShape, kind) => {
    const { origin } = await tracedOf([{ name: 'gradient/w', reductions, savedShape }])
    expect(origin?.kind ?? null).toBe(kind)
  })
})

describe('names', () => {
  it.each([
    ['conv0_output_0', 'outputs', 'output', 'conv0'],
    ['CrossEntropyLoss_input_1', 'inputs', 'input', 'CrossEntropyLoss'],
    ['dense/outputs', 'outputs', 'output', 'dense'],
    ['gradient/CNN_fc1.weight', 'gradients', 'gradient', 'CNN_fc1.weight'],
    ['fc1.weight.grad', 'gradients', 'gradient', 'fc1.weight'],
    ['CNN_fc1.weight', 'weights', 'parameter', 'CNN_fc1.weight'],
    ['total_loss', 'losses', 'loss', 'total_loss'],
    ['scalar/lr', 'other', 'other', 'scalar/lr'],
  ] as const)('%s, of %s, is an %s of %s', (name, of, kind, layer) => {
    expect(roleOf(name, of)).toEqual({ kind, of: layer })
  })

  it('of parameters tell their layers', () => {
    expect(layersOf('Net_block.fc1.weight')).toEqual(['Net_block.fc1', 'block.fc1', 'fc1'])
    expect(layersOf('fc1/kernel:0')).toEqual(['fc1'])
    expect(layersOf('net0_conv0_weight')).toEqual(['net0_conv0', 'conv0'])
    expect(layersOf('lr')).toEqual([])
  })
})

describe('trialscan nan', () => {
  it('prints the origin first, then a line for each other tensor', async () => {
    const path = write({ spoilt: following(2, 'fc0_output_0', ['fc1_input_0', 'fc1_output_0']) })
    const { code, stdout, stderr } = await trialscan('nan', path, '--format', 'jsonl')
    expect([code, stderr]).toEqual([1, ''])
    const [first, ...rest] = stdout
      .trim()
      .split('\n')
      .map(line => JSON.parse(line))
    expect(first.origin).toMatchObject({
      step: 2,
      mode: 'TRAIN',
      mode_step: 2,
      tensor: 'fc0_output_0',
      worker: 'worker_0',
      element: [0, 0],
      kind: 'nan',
    })
    expect(rest.map(({ tensor, class: own, mode_step }) => [tensor, own, mode_step])).toEqual([
      ['fc1_input_0', 'propagator', 2],
      ['fc1_output_0', 'propagator', 2],
    ])
    const table = await trialscan('nan', path, '--format', 'table')
    expect(table.stdout).toMatch(
      /NaN first in fc0_output_0, at step 2 \(TRAIN 2\) of worker_0\n {2}1 NaN of 20 elements, the first at \[0, 0\]\./,
    )
    const csv = await trialscan('nan', path, '--format', 'csv')
    expect(csv.stdout.split('\n')[1]).toBe('fc0_output_0,2,TRAIN,2,worker_0,producer,,,1,0')
  })

  it('says that all is finite, with exit code 0', async () => {
    const { code, stdout } = await trialscan('nan', write({}), '--format', 'jsonl')
    expect([code, JSON.parse(stdout).origin]).toEqual([0, null])
  })

  it('ends with 5 where nothing is there', async () => {
    expect((await trialscan('nan', write({}), '--tensor', 'nosuch')).code).toBe(5)
  })
})
