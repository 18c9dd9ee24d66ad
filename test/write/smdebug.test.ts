/**
 * Trials that `createWriter` writes, judged by smdebug's own reader: its answers are in smdebug.json, which
 * `SMDEBUG=path of its source npx vitest run test/write/smdebug.test.ts` checks, or makes where it is missing (test/peers/smdebug_answers.py
 * tells what that needs).
 */

import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { createTrial, createWriter, type Mode, modes, type ReductionBase } from '#dist/index.js'
import { ROOT } from '../support/golden.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('smdebug')
const GOLDEN = join(ROOT, 'test/write/smdebug.json')

interface Answers {
  readonly steps: readonly number[]
  readonly modes: Readonly<Record<Mode, readonly number[]>>
  readonly collections: Readonly<Record<string, readonly string[]>>
  readonly tensors: Readonly<Record<string, Readonly<Record<string, AtStep>>>>
}

interface AtStep {
  readonly workers: readonly string[]
  readonly value: readonly [dtype: string, shape: readonly number[], elements: readonly string[]] | string
  readonly reductions: Readonly<Record<string, number>>
}

/** Each writes a trial to a place. */
const TRIALS: Readonly<Record<string, (path: string) => Promise<void>>> = {
  async training(path) {
    const writer = await createWriter(path, {
      saveConfig: { saveInterval: 2, EVAL: { saveInterval: 1 } },
      includeCollections: ['weights', 'gradients'],
      collections: { relu: { includeRegex: ['^relu'], reductionConfig: { reductions: ['min', 'abs_mean', 'l2'] } } },
    })
    for (let i = 0; i < 7; i++) {
      writer.setMode(i % 3 === 2 ? 'EVAL' : 'TRAIN')
      await writer.step()
      const data = Float32Array.from({ length: 6 }, (_, k) => k / 4 - i)
      await writer.save('fc.weight', data, { shape: [2, 3] })
      await writer.save(
        'gradient/fc.weight',
        data.map(x => -x),
        { shape: [3, 2] },
      )
      await writer.save('relu_0', data)
      await writer.save('CrossEntropyLoss_output_0', [0.5 ** i], { dtype: 'float32' })
      await writer.save('mine', i, { collection: 'custom' })
      await writer.saveScalar('lr', 1 / (i + 1))
    }
    await writer.close()
  },
  async dtypes(path) {
    const writer = await createWriter(path, { saveConfig: { saveInterval: 1 } })
    await writer.step()
    // Those that smdebug can read (format.md "What smdebug itself cannot read").
    await writer.save('float64', Float64Array.of(0.1, -2.5e-300, Number.POSITIVE_INFINITY))
    await writer.save('float32', Float32Array.of(1.5, Number.NaN), { shape: [1, 2] })
    await writer.save('float16', Uint16Array.of(0x3c00, 0xc000), { dtype: 'float16' })
    await writer.save('int64', BigInt64Array.of(-(2n ** 63n), 2n ** 63n - 1n))
    await writer.save('int32', Int32Array.of(-5, 7))
    await writer.save('uint8', Uint8Array.of(0, 255))
    await writer.save('bool', [true, false])
    await writer.save('texts', ['ä', 'b'])
    await writer.save('scalar', 3)
    await writer.close()
  },
  async workers(path) {
    for (const worker of ['worker_0', 'worker_1']) {
      const writer = await createWriter(path, { saveConfig: { saveInterval: 1 }, worker, numWorkers: 2 })
      for (let i = 0; i < 3; i++) {
        await writer.step()
        await writer.save('x', Float32Array.of(i, worker === 'worker_0' ? 0 : 1))
      }
      await writer.close()
    }
  },
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
  const text = `${JSON.stringify(answers, null, 1)}\n`
  // Without a golden file there is nothing to be held against yet.
  if (existsSync(GOLDEN)) expect(JSON.parse(readFileSync(GOLDEN, 'utf8'))).toEqual(answers)
  else writeFileSync(GOLDEN, text)
})

const golden = (): Readonly<Record<string, Answers>> => JSON.parse(readFileSync(GOLDEN, 'utf8'))

it.each(Object.keys(TRIALS))('smdebug finds in the trial %s what was written', async name => {
  const { steps, modes: ofModes, collections, tensors } = golden()[name]!
  const trial = await createTrial(paths[name]!)
  expect(trial.steps()).toEqual(steps)
  for (const mode of Object.values(modes)) {
    if (mode !== 'GLOBAL') expect(trial.steps({ mode })).toEqual(ofModes[mode])
  }
  for (const [collection, members] of Object.entries(collections)) {
    expect([...trial.collection(collection).members].sort(), collection).toEqual(members)
  }
  expect([...trial.tensorNames()].sort()).toEqual(Object.keys(tensors))
  for (const [tensor, ofSteps] of Object.entries(tensors)) {
    for (const [step, { workers, value, reductions }] of Object.entries(ofSteps)) {
      const place = trial.tensor(tensor)
      expect([...place.workers(Number(step))].sort()).toEqual(workers)
      for (const [reduction, number] of Object.entries(reductions)) {
        const isAbs = reduction.startsWith('abs_')
        const got = await place.reductionValue(Number(step), reduction.replace('abs_', '') as ReductionBase, {
          abs: isAbs,
        })
        expect(got, `${tensor} ${step} ${reduction}`).toBe(number)
      }
      if (typeof value === 'string') {
        // There is none: only reductions were saved.
        expect(value).toBe('TensorUnavailableForStep')
        expect(Object.keys(reductions).length).toBeGreaterThan(0)
        continue
      }
      const { shape, data } = await place.value(Number(step), { worker: workers[0]! })
      const [, theirShape, elements] = value
      expect([...shape]).toEqual(theirShape)
      expect(Array.from(data as ArrayLike<unknown>, String).map(plainText)).toEqual(elements.map(plainText))
    }
  }
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
