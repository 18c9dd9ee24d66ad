/**
 * Same answers everywhere: what is computed does not depend on threads, memory (and so on windows and jobs), the order in
 * which jobs come back, how thoroughly records are checked, or the machine. To the last bit.
 */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { CHECK_LEVELS } from '#dist/base/types.js'
import { closePools, createTrial, type Trial } from '#dist/index.js'
import type { Job, ReplyTo } from '#dist/scan/job/job.js'
import { Access } from '#dist/scan/runner/access.js'
import type { Runner } from '#dist/scan/runner/runner.js'
import { type DTypeName, elementBytes, type StepTensor, TrialWriter } from '../fixtures/event-writer.js'
import { uniform } from '../fixtures/random.js'
import type { GoldenBits } from './support/bits.js'
import { bitsOf, ruleBits, scanBits, textBits, valueBits } from './support/bits.js'
import { fixtureTrials } from './support/golden.js'
import { GOLDEN_BITS, goldenBits } from './support/golden-bits.js'
import { isLong, part } from './support/part.js'
import { scratchDirectory } from './support/scratch.js'

const scratch = scratchDirectory('same')
const mixed = join(scratch, 'mixed')
const large = join(scratch, 'large')

const MIB = 1 << 20
const COLLECTIONS = {
  all: { includeRegex: ['.*'] },
  weights: { includeRegex: ['weight'] },
  gradients: { includeRegex: ['^gradient'] },
  losses: { includeRegex: ['loss'] },
}

/** Numbers of every size, with NaN, infinities, zeros of both signs and subnormal ones among them. */
function numbers(count: number, seed: number, odd: boolean): number[] {
  const random = uniform(seed)
  return Array.from({ length: count }, () => {
    const value = (random() - 0.5) * 10 ** Math.floor(random() * 6 - 3)
    if (!odd) return value
    const kind = Math.floor(random() * 500)
    return [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -0, 0, 1e-310, value * 1e30][kind] ?? value
  })
}

const FLOATS = ['float16', 'bfloat16', 'float32', 'float64'] as const
const WHOLE = ['int8', 'uint8', 'int16', 'uint16', 'int32', 'uint32', 'int64', 'uint64'] as const

function bytesOf(dtype: DTypeName, count: number, seed: number, odd: boolean): Uint8Array {
  if (dtype.endsWith('64') && dtype.includes('int')) {
    const random = uniform(seed)
    const bits = Uint32Array.from({ length: count * 2 }, () => random() * 2 ** 32)
    return new Uint8Array(bits.buffer)
  }
  const values = numbers(count, seed, odd)
  if (!dtype.includes('int')) return elementBytes(dtype, values)
  const random = uniform(seed)
  return Uint8Array.from({ length: elementBytes(dtype, [0]).length * count }, () => random() * 256)
}

beforeAll(async () => {
  const writer = new TrialWriter(mixed, { numWorkers: 2, checksum: 'true', collections: COLLECTIONS })
  for (let step = 0; step < 3; step++) {
    for (let worker = 0; worker < 2; worker++) {
      const tensors: StepTensor[] = []
      for (const [i, dtype] of [...FLOATS, ...WHOLE].entries()) {
        for (const [k, count] of [1, 37, 4096, 4097, 30_001].entries()) {
          const seed = i * 100 + k * 10 + worker + (step === 2 ? 1 : step)
          const data = bytesOf(dtype, count, seed, k % 2 === 1)
          tensors.push({ name: `${dtype}/weight${count}`, dtype, shape: [count], data })
        }
      }
      tensors.push({ name: 'loss', dtype: 'float32', shape: [1], values: [1 / (step + 1)] })
      tensors.push({ name: 'words', dtype: 'string', shape: [2], strings: ['one', 'two'] } as StepTensor)
      writer.step({ step, mode: 'TRAIN', worker, tensors })
    }
  }
  writer.end()
  const all = new TrialWriter(large, { checksum: 'true', collections: COLLECTIONS })
  const block = bytesOf('float32', 1 << 18, 5, false)
  const odd = bytesOf('float64', 1 << 17, 6, true)
  const filled = (byteLength: number, from: Uint8Array, shift: number): Uint8Array => {
    const bytes = new Uint8Array(byteLength)
    for (let at = 0, start = shift; at < byteLength; start = 0) {
      const piece = from.subarray(start, Math.min(from.length, start + byteLength - at))
      bytes.set(piece, at)
      at += piece.length
    }
    return bytes
  }
  for (let step = 0; step < 2; step++) {
    const tensor = (name: string, dtype: DTypeName, byteLength: number, from: Uint8Array): StepTensor => {
      const data = filled(byteLength, from, step * 4096)
      return { name, dtype, shape: [byteLength / (dtype === 'float64' ? 8 : 4)], data }
    }
    // Smaller and larger than half of 4 and of 16 MiB, and than a part.
    all.step({
      step,
      mode: 'TRAIN',
      tensors: [
        tensor('weight/40', 'float32', 40 * MIB + 1000, block),
        tensor('weight/5', 'float64', 5 * MIB + 8, odd),
        tensor('weight/9', 'float32', 9 * MIB + 4, block),
        tensor('weight/1', 'float32', MIB, block),
      ],
    })
  }
  all.end()
})

afterAll(closePools)

afterEach(() => void vi.restoreAllMocks())

/** Replies that came before one that was asked for earlier. */
let overtaken = 0

/** Hands on replies late: by how much, a seed decides. Many that were asked for first come last. */
class ShufflingRunner implements Runner {
  readonly threads: number
  readonly ahead: number
  readonly #runner: Runner
  readonly #random: () => number
  #asked = 0
  #last = 0

  constructor(runner: Runner, seed: number) {
    this.#runner = runner
    this.threads = runner.threads
    this.ahead = runner.ahead + 3
    this.#random = uniform(seed)
  }

  async run<J extends Job>(job: J, signal?: AbortSignal): Promise<ReplyTo<J>> {
    const number = this.#asked++
    const reply = await this.#runner.run(job, signal)
    await new Promise(resolve => setTimeout(resolve, this.#random() ** 2 * 12))
    if (number < this.#last) overtaken++
    this.#last = number
    return reply
  }
}

function shuffle(seed: number): void {
  const { runner } = Access.prototype
  vi.spyOn(Access.prototype, 'runner').mockImplementation(async function (this: Access, ...args) {
    return new ShufflingRunner(await runner.apply(this, args), seed)
  })
}

const ways = [0, 1, 2, 4].flatMap(threads =>
  [4 * MIB, 16 * MIB, undefined].flatMap(memory =>
    [false, true].map(shuffled => ({ threads, memory: memory ?? 0, shuffled, ...(memory && { options: { memory } }) })),
  ),
)

const TRIALS = [
  { name: 'every dtype', path: mixed },
  { name: 'large tensors', path: large },
  // Of these the quick part has the digests below.
  ...(isLong ? fixtureTrials() : [])
    .filter(({ name }) => ['cnn-raw-and-reductions', 'dtypes', 'workers-4', 'edge-dtypes'].includes(name))
    .map(({ name, directory }) => ({ name, path: directory })),
]

describe.each(TRIALS)('of $name', ({ path }) => {
  let trial: Trial
  let rows: string[]
  let csv: string
  let jsonl: string
  let values: string[]
  let rules: string[]

  beforeAll(async () => {
    trial = await createTrial(path, { requireCollections: false })
    rows = await scanBits(trial, { threads: 0 })
    csv = await textBits(trial, 'csv', { threads: 0 })
    jsonl = await textBits(trial, 'jsonl', { threads: 0 })
    values = await valueBits(trial, { threads: 0 })
    rules = await ruleBits(trial, { threads: 0 })
  })

  it('there are rows, values and findings', () => {
    expect(rows.length).toBeGreaterThan(7)
    expect(values.length).toBeGreaterThan(2)
    expect(rules.length).toBeGreaterThan(0)
  })

  const isQuick = ({ threads, memory, shuffled }: (typeof ways)[number]) =>
    threads === 2 && memory === 4 * MIB && shuffled === (path === large)
  it.each(part(ways, isQuick))('on $threads threads, with $memory bytes, shuffled: $shuffled', async way => {
    const { threads, options, shuffled } = way
    if (shuffled) shuffle(ways.indexOf(way))
    const work = { threads, ...options }
    expect(await scanBits(trial, work)).toEqual(rows)
    // As text by one of the two: each is written by the same threads from the same rows.
    const format = shuffled ? 'csv' : 'jsonl'
    expect(await textBits(trial, format, work)).toBe(shuffled ? csv : jsonl)
    expect(await ruleBits(trial, work)).toEqual(rules)
    if (!shuffled) expect(await valueBits(trial, work)).toEqual(values)
  })

  it.each(part(CHECK_LEVELS, check => check === 'full'))('at check level %s', async check => {
    for (const threads of [0, 2]) expect(await scanBits(trial, { threads, checkLevel: check })).toEqual(rows)
  })
})

it('and jobs were shuffled', () => {
  expect(overtaken).toBeGreaterThan(isLong ? 100 : 5)
})

describe('of the committed trials', () => {
  const golden = JSON.parse(readFileSync(GOLDEN_BITS, 'utf8')) as Record<string, GoldenBits>

  const options = [{ threads: 0 }, { threads: 2, memory: 4 * MIB }]
  it.each(part(options, ({ threads }) => threads === 2))(
    'they are those that were once computed on another machine: %o',
    async options => {
      expect(await goldenBits(options)).toEqual(golden)
    },
  )
})

it('digests tell -0 from 0 and the last bit, and take all NaN for one', () => {
  const nan = new Float64Array(new BigUint64Array([0xfff8000000000001n]).buffer)[0]!
  expect(bitsOf([nan])).toBe(bitsOf([Number.NaN]))
  expect(bitsOf(-0)).not.toBe(bitsOf(0))
  expect(bitsOf(0.1 + 0.2)).not.toBe(bitsOf(0.3))
  expect(bitsOf(1)).not.toBe(bitsOf(1n))
  expect(bitsOf({ a: 1, b: undefined })).toBe(bitsOf({ a: 1 }))
})
