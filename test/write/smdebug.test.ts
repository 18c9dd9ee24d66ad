/**
 * Trials that `createWriter` writes, judged by smdebug's own reader: its answers are in smdebug.json, which
 * `SMDEBUG=path of its source npx vitest run test/write/smdebug.test.ts` checks, or makes where it is missing (test/peers/smdebug_answers.py
 * tells what that needs). Where it has no answer there is the name of its exception, and `faultOf` says why.
 */

import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import {
  createTrial,
  type Mode,
  modes,
  type ReductionBase,
  type ReductionName,
  type TensorData,
  type Trial,
  verifyTrial,
} from '#dist/index.js'
import { ROOT } from '../support/golden.js'
import { scratchDirectory } from '../support/scratch.js'
import { NAMES, TRIALS } from './smdebug-trials.js'

const scratch = scratchDirectory('smdebug')
const GOLDEN = join(ROOT, 'test/write/smdebug.json')

interface Answers {
  readonly steps: readonly number[]
  readonly workers: readonly string[]
  readonly modes: Readonly<Record<Mode, readonly number[]>>
  readonly modeSteps: Readonly<Record<string, readonly [Mode, number]>>
  readonly collections: Readonly<Record<string, CollectionAnswers>>
  readonly tensors: Readonly<
    Record<string, { readonly originalName: string | null; readonly steps: Readonly<Record<string, AtStep>> }>
  >
}

interface CollectionAnswers {
  readonly members: readonly string[]
  /** At which of the steps 0 to 11 of each mode it says that it would be saved. */
  readonly saves: Readonly<Record<Mode, readonly number[]>>
  readonly reductions: readonly string[]
  readonly saveRawTensor: boolean
  readonly saveShape: boolean
}

interface AtStep {
  readonly workers: readonly string[]
  readonly values: Readonly<Record<string, OfWorker>>
}

interface OfWorker {
  readonly value: readonly [dtype: string, shape: readonly number[], elements: readonly string[]] | string
  readonly shape: readonly number[] | string
  readonly reductions?: Readonly<Partial<Record<ReductionName, number>>>
}

const paths = Object.fromEntries(Object.keys(TRIALS).map(name => [name, join(scratch, name)]))

beforeAll(async () => {
  for (const [name, write] of Object.entries(TRIALS)) await write(paths[name]!)
  const source = process.env.SMDEBUG
  if (source === undefined || source === '') return
  const script = join(ROOT, 'test/peers/smdebug_answers.py')
  const env = { ...process.env, PYTHONPATH: source }
  const lines = execFileSync(process.env.PYTHON ?? 'python3', [script, ...Object.values(paths)], {
    env,
    encoding: 'utf8',
  })
  const answers = Object.fromEntries(
    lines
      .trimEnd()
      .split('\n')
      .map((line, i) => [Object.keys(paths)[i], JSON.parse(line)]),
  )
  // Without a golden file there is nothing to be held against yet.
  if (existsSync(GOLDEN)) expect(JSON.parse(readFileSync(GOLDEN, 'utf8'))).toEqual(answers)
  else writeFileSync(GOLDEN, `${JSON.stringify(answers, null, 1)}\n`)
}, 60_000)

const golden = (name: string): Answers => JSON.parse(readFileSync(GOLDEN, 'utf8'))[name]

describe.each(Object.keys(TRIALS))('smdebug finds in the trial %s what was written:', name => {
  it('steps, modes, workers and collections', async () => {
    const { steps, workers, modes: ofModes, modeSteps, collections, tensors } = golden(name)
    const trial = await createTrial(paths[name]!)
    expect(trial.steps()).toEqual(steps)
    expect([...trial.workers()].sort()).toEqual(workers)
    for (const mode of Object.values(modes)) {
      if (mode !== 'GLOBAL') expect(trial.steps({ mode })).toEqual(ofModes[mode])
    }
    for (const [step, [mode, modeStep]] of Object.entries(modeSteps)) {
      expect([trial.mode(Number(step)), trial.modeStep(Number(step))]).toEqual([mode, modeStep])
    }
    for (const [collection, theirs] of Object.entries(collections)) {
      const { members, reductionConfig } = trial.collection(collection)
      expect([...members].sort(), collection).toEqual(theirs.members)
      expect([...(reductionConfig?.reductions ?? [])].sort(), collection).toEqual(theirs.reductions)
      expect([reductionConfig?.saveRawTensor, reductionConfig?.saveShape]).toEqual([
        theirs.saveRawTensor,
        theirs.saveShape,
      ])
    }
    expect([...trial.tensorNames()].sort()).toEqual(Object.keys(tensors).sort())
    expect((await verifyTrial(paths[name]!, { deep: true })).ok).toBe(true)
  })

  it('tensors, to the element', async () => {
    const trial = await createTrial(paths[name]!)
    for (const [tensor, { steps }] of Object.entries(golden(name).tensors)) {
      for (const [step, { workers, values }] of Object.entries(steps)) {
        expect([...trial.tensor(tensor).workers(Number(step))].sort()).toEqual(workers)
        expect(Object.keys(values).sort()).toEqual(workers)
        for (const [worker, theirs] of Object.entries(values)) {
          await expectSame(trial, { name, tensor, step: Number(step), worker }, theirs)
        }
      }
    }
  })
})

interface Place {
  /** Of the trial. */
  readonly name: string
  readonly tensor: string
  readonly step: number
  readonly worker: string
}

async function expectSame(trial: Trial, at: Place, { value, shape, reductions = {} }: OfWorker): Promise<void> {
  const { name, tensor, step, worker } = at
  const place = trial.tensor(tensor)
  const label = `${tensor} ${step} ${worker}`
  for (const [reduction, number] of Object.entries(reductions)) {
    const abs = reduction.startsWith('abs_')
    const got = await place.reductionValue(step, reduction.replace('abs_', '') as ReductionBase, { abs, worker })
    // Numbers that were saved are the same; those that numpy has computed are as good as its sums.
    if (typeof value === 'string') expect(got, `${label} ${reduction}`).toBe(number)
    else expect(Math.abs(Number(got) - number), `${label} ${reduction}`).toBeLessThanOrEqual(1e-6 * Math.abs(number))
  }
  if (typeof shape !== 'string') expect(await place.shape(step, { worker }), label).toEqual(shape)
  const ours = await place.value(step, { worker }).catch(error => error.name as string)
  if (typeof ours === 'string') {
    // There is none: only reductions or the shape were saved.
    expect([ours, value], label).toEqual(['TensorUnavailableForStep', 'TensorUnavailableForStep'])
    expect(Object.keys(reductions).length + Number(Array.isArray(shape)), label).toBeGreaterThan(0)
    return
  }
  const fault = faultOf(name, tensor, ours)
  const got = Array.isArray(value) && value[0] === 'NoneType' ? null : value
  if (fault !== undefined) {
    expect(got, label).toBe(fault)
    return
  }
  const [dtype, theirShape, elements] = got as Exclude<OfWorker['value'], string>
  expect([...ours.shape], label).toEqual(theirShape)
  expect(dtype.startsWith('<U') ? 'string' : dtype, label).toBe(ours.dtype === 'int8' ? 'uint8' : ours.dtype)
  // It takes int8 for uint8.
  const data = ours.dtype === 'int8' ? Uint8Array.from(ours.data as Int8Array) : ours.data
  expect(Array.from(data as ArrayLike<unknown>, String).map(plainText), label).toEqual(elements.map(plainText))
}

/** What smdebug's reader has instead of a value that it can't read; null: None. undefined: it can. */
function faultOf(name: string, tensor: string, { dtype, shape }: TensorData): string | null | undefined {
  // Of true checksums it compares a variable that it does not have.
  if (name === 'checksums') return 'NameError'
  // Where the index has a shape, it forgets where the value lies.
  if (name === 'saved-shapes' && tensor.startsWith('raw')) return 'TensorUnavailableForStep'
  // Its table of dtypes lacks them.
  if (['int16', 'uint16', 'uint32', 'uint64', 'bfloat16', 'complex64'].includes(dtype)) return 'KeyError'
  if (dtype === 'string') return shape.length === 1 ? undefined : 'SMDebugValueError'
  if (!shape.includes(0)) return undefined
  // It takes empty content for content that is elsewhere.
  if (dtype === 'int32' || dtype === 'int64') return null
  return dtype === 'float32' || dtype === 'bool' ? 'SMDebugValueError' : 'SMDebugTypeError'
}

it('what it reads of a configuration is when tensors were saved', async () => {
  const reached: Readonly<Record<string, Readonly<Partial<Record<Mode, number>>>>> = {
    modes: { TRAIN: 12, EVAL: 6, PREDICT: 6 },
    'hook-json': { TRAIN: 12, EVAL: 12, PREDICT: 12 },
  }
  for (const [name, counts] of Object.entries(reached)) {
    const trial = await createTrial(paths[name]!)
    const { collections } = golden(name)
    let compared = 0
    for (const [collection, { members, saves }] of Object.entries(collections)) {
      // Gradients belong to training alone.
      if (members.length === 0 || collection === 'gradients') continue
      for (const [mode, count] of Object.entries(counts) as [Mode, number][]) {
        const expected = saves[mode].filter(step => step < count)
        for (const member of members)
          expect(trial.tensor(member).steps({ mode }), `${name} ${member}`).toEqual(expected)
        compared++
      }
    }
    expect(compared).toBeGreaterThanOrEqual(6)
  }
})

it('it has been asked of all reductions, names and original names, and its answers are short', () => {
  const { tensors } = golden('reductions')
  for (const { steps } of Object.values(tensors)) {
    expect(Object.keys(steps[0]!.values.worker_0!.reductions!)).toHaveLength(18)
  }
  expect(Object.keys(golden('names').tensors).sort()).toEqual([...NAMES].sort())
  expect(golden('saved-shapes').tensors.reduced!.originalName).toBe('model/reduced:0')
  expect(statSync(GOLDEN).size).toBeLessThan(200_000)
})

/** Python and JavaScript write some numbers in two ways. */
function plainText(text: string): string {
  const names: Record<string, string> = {
    inf: 'Infinity',
    '-inf': '-Infinity',
    nan: 'NaN',
    True: '1',
    False: '0',
    true: '1',
    false: '0',
  }
  const named = names[text] ?? text
  return /^-?[\d.]+(e[+-]?\d+)?$/.test(named) && !/^-?\d{16,}$/.test(named) ? String(Number(named)) : named
}
