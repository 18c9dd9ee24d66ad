/** What hostile trials may cost: the command line as a child process, its peak of memory, and that it ends. */

import { closeSync, mkdirSync, openSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { closePools, createTrial } from '#dist/index.js'
import { frameRecord, indexFilePath } from '../../fixtures/event-writer.js'
import { objects } from '../cli/run.js'
import { rejectionOf, rowsOf } from '../support/scanning.js'
import { scratchDirectory } from '../support/scratch.js'
import { measured } from './measured.js'
import { concat, dimensions, eventOf, field, repeated, tensorOf, write, writeCollections, writeStep } from './museum.js'

const scratch = scratchDirectory('limits')
const MIB = 2 ** 20
let made = 0
/** What a command takes that reads a good trial. */
let basePeak = 0

beforeAll(async () => {
  const { peak, code } = await measured(
    'scan',
    trialOf(() => {}),
  )
  expect(code).toBe(0)
  basePeak = peak
})

afterAll(closePools)

/** A trial with a step 0 in which all is well, and what else is made. */
function trialOf(make: (directory: string) => void): string {
  const directory = join(scratch, `${made++}`)
  writeCollections(directory)
  writeStep(directory, 0)
  writeFileSync(join(directory, 'training_job_end.ts'), '')
  make(directory)
  return directory
}

function goodRows(stdout: string): number {
  return objects(stdout).filter(({ tensor, error, sum }) => tensor === 'good' && !error && sum === 3).length
}

it('an index file of 1 GiB, and sixteen of 40 MiB, are not in memory at once', async () => {
  const directory = trialOf(directory => {
    for (let step = 1; step <= 17; step++) {
      const file = write(join(directory, indexFilePath(step, 'worker_0')), '{}')
      truncateSync(file, step === 1 ? 1024 * MIB : 40 * MIB)
    }
  })
  const { code, stdout, peak } = await measured('scan', directory, '--threads', '0')
  expect([code, goodRows(stdout)]).toEqual([4, 1])
  expect(objects(stdout).map(({ error }) => (error as { code?: string })?.code)).toEqual([
    undefined,
    undefined,
    'TooLarge',
    ...new Array(16).fill('BadIndexFile'),
  ])
  expect(peak - basePeak).toBeLessThan(400 * MIB)
})

it('neither are sixteen collections files of 40 MiB', async () => {
  const directory = trialOf(directory => {
    for (let i = 1; i <= 16; i++) {
      const file = write(join(directory, `collections/000000000/worker_${i}_collections.json`), '{}')
      truncateSync(file, 40 * MIB)
    }
  })
  const { code, stdout, peak } = await measured('scan', directory, '--threads', '0')
  expect([code, goodRows(stdout)]).toEqual([4, 1])
  expect(peak - basePeak).toBeLessThan(400 * MIB)
})

it.each([
  ['objects', '{},'],
  ['lists', '[],'],
  ['numbers', '0,'],
  ['brackets', '['],
])('JSON of 30 MB of %s is refused before it is parsed', async (_, piece) => {
  const text = `{"meta": {"mode": "TRAIN", "mode_step": 1}, "shape_payload": [${piece.repeat((30e6 / piece.length) | 0)}0]}`
  const directory = trialOf(directory => write(join(directory, indexFilePath(1, 'worker_0')), text))
  const { code, stdout, peak } = await measured('scan', directory)
  expect([code, goodRows(stdout)]).toEqual([4, 1])
  expect(objects(stdout).at(-1)).toMatchObject({
    tensor: null,
    error: { code: 'BadIndexFile', offset: expect.any(Number) },
  })
  expect(peak - basePeak).toBeLessThan(250 * MIB)
})

it('of tensors there may be hundreds of thousands in a step', async () => {
  const count = 300_000
  const directory = trialOf(directory => {
    const text = (json: string): string =>
      json.replace(
        '"tensor_payload":[',
        `"tensor_payload":[${Array.from({ length: count }, (_, i) => `{"tensorname":"t${i}","start_idx":0,"length":98}`).join(',')},`,
      )
    writeStep(directory, 1, { text })
  })
  const { code, stdout, peak } = await measured('scan', directory, '--tensor', '^good$')
  expect([code, goodRows(stdout)]).toEqual([0, 2])
  expect(peak - basePeak).toBeLessThan(1500 * count + 100 * MIB)
})

it('of entries in a directory there may be a million', async () => {
  // Fewer are made here, which takes long enough; what each of them costs says what a million does.
  const count = 30_000
  const directory = trialOf(directory => {
    for (let i = 0; i < count; i++) closeSync(openSync(join(directory, 'index/000000000', `${i}.tmp-of-somebody`), 'w'))
  })
  const { code, stdout, peak } = await measured('scan', directory)
  expect([code, goodRows(stdout)]).toEqual([0, 1])
  expect(peak - basePeak).toBeLessThan(2000 * count + 60 * MIB)
})

it('a shape in millions of pieces, and Values in millions, take no more than they are', async () => {
  const ones = dimensions(...new Array(254).fill(1))
  const pieces = Buffer.alloc(8_000_000, Uint8Array.of(0x12, 0x00))
  const shape = concat(field(2, ones), pieces)
  const value = concat(
    field(1, Uint8Array.of(0x78)),
    tensorOf(Uint8Array.of(8, 1), field(2, ones), field(4, new Uint8Array(4))),
  )
  const many = new Array(10_000).fill(field(1, value))
  const directory = trialOf(directory => {
    writeStep(directory, 1, {
      event: eventOf(1, 'bad', tensorOf(Uint8Array.of(8, 1), shape, field(4, new Uint8Array(4)))),
    })
    writeStep(directory, 2, { event: concat(Uint8Array.of(16, 2), field(5, Buffer.concat(many))) })
  })
  const { code, stdout, peak } = await measured('scan', directory, '--threads', '0')
  expect([code, goodRows(stdout)]).toEqual([4, 3])
  const bad = objects(stdout).filter(({ tensor }) => tensor === 'bad')
  expect(bad.map(({ error, shape }) => (error as { code?: string })?.code ?? (shape as number[]).length)).toEqual([
    1,
    254,
    'TagMismatch',
  ])
  expect(peak - basePeak).toBeLessThan(150 * MIB)
})

it('an event file of millions of empty Values without an index', async () => {
  const directory = trialOf(directory => {
    rmSync(join(directory, 'index'), { recursive: true })
    const many = Buffer.alloc(12_000_000, Uint8Array.of(0x0a, 0x00))
    const event = concat(Uint8Array.of(16, 1), field(5, many))
    write(join(directory, 'events/000000000001/000000000001_worker_0.tfevents'), frameRecord(event))
    // And of more that hold something than an Event may have.
    const full = Buffer.alloc(6_000_000, Uint8Array.of(0x0a, 0x02, 0x42, 0x00))
    const other = concat(Uint8Array.of(16, 2), field(5, full))
    write(join(directory, 'events/000000000002/000000000002_worker_0.tfevents'), frameRecord(other))
  })
  const { code, stdout, peak } = await measured('scan', directory)
  expect([code, goodRows(stdout)]).toEqual([4, 1])
  expect(
    objects(stdout).flatMap(({ step, error }) => (error ? [[step, (error as { code: string }).code]] : [])),
  ).toEqual([[2, 'MalformedEvent']])
  expect(peak - basePeak).toBeLessThan(400 * MIB)
})

describe('what a few bytes stand for', () => {
  const names = Array.from({ length: 100 }, (_, i) => `t${i}`)
  /** A hundred tensors of 15 MiB each, in a hundred bytes each. */
  const make = (directory: string): void => {
    for (const step of [1, 2, 3]) {
      const frames = names.map(name => frameRecord(repeated(step, name, 15, 2 ** 18)))
      let at = 0
      const entries = frames.map((frame, i) => {
        at += frame.length
        return { tensorname: names[i], start_idx: at - frame.length, length: frame.length }
      })
      const path = `events/${step}_worker_0.tfevents`
      write(join(directory, path), concat(...frames))
      const meta = { mode: 'TRAIN', mode_step: step, event_file_name: path }
      write(join(directory, indexFilePath(step, 'worker_0')), JSON.stringify({ meta, tensor_payload: entries }))
    }
  }

  it('is not held for rules that compare', async () => {
    const directory = trialOf(make)
    const { code, stdout, peak } = await measured(
      'check',
      directory,
      '--rule',
      'UnchangedTensor,tensor_regex=.*',
      '--threads',
      '0',
    )
    expect(code).toBe(1)
    const lines = objects(stdout)
    // There is room for one of them; for the others a rule lacks data.
    expect(lines.flatMap(({ threshold, tensor }) => (threshold ? [tensor] : []))).toEqual(['t0'])
    expect(lines.flatMap(({ missing }) => missing ?? [])).toEqual([
      expect.stringMatching(/at most 16777216 bytes in all, got one of 15728640 bytes/),
    ])
    expect(peak - basePeak).toBeLessThan(300 * MIB)
  })

  it('is scanned without being unfolded', async () => {
    const { code, stdout, peak } = await measured('scan', trialOf(make))
    expect([code, goodRows(stdout)]).toEqual([0, 1])
    expect(objects(stdout).filter(({ sum }) => sum === 15 * 2 ** 18).length).toBe(300)
    expect(peak - basePeak).toBeLessThan(100 * MIB)
  })

  it('can be had by those who ask for it', async () => {
    const trial = await createTrial(trialOf(make))
    const tensor = trial.tensor('t0')
    for (const threads of [0, 2]) {
      expect((await tensor.value(1, { threads })).bytes.length).toBe(15 * MIB)
      const refused = await rejectionOf(tensor.value(1, { threads, unfoldLimit: MIB }))
      expect(refused).toMatchObject({
        name: 'QueryError',
        code: 'ValueTooLarge',
        fields: { byteLength: 15 * MIB, unfoldLimit: MIB },
      })
      // All values together.
      expect(await rejectionOf(tensor.values({ threads, unfoldLimit: 40 * MIB }))).toMatchObject({
        code: 'ValueTooLarge',
      })
      expect((await tensor.values({ threads, unfoldLimit: 45 * MIB })).size).toBe(3)
    }
    expect(await rejectionOf(tensor.value(1, { unfoldLimit: Number.NaN }))).toMatchObject({ name: 'UsageError' })
  })
})

it('a name of 5 MB widens no table, and is intact in jsonl', async () => {
  const name = `n${'\u202e'.repeat(1_500_000)}n`
  const directory = trialOf(directory => {
    writeStep(directory, 1, { tensor: name })
    for (let step = 2; step < 102; step++) writeStep(directory, step)
  })
  for (const command of [
    ['ls'],
    ['scan', '--format', 'table'],
    ['check', '--rule', 'AllZero,tensor_regex=.*', '--format', 'table'],
  ]) {
    const { code, stdout, stderr, peak } = await measured(command[0]!, directory, ...command.slice(1))
    expect([code, stdout.length < 100_000, stderr.length < 10_000]).toEqual([0, true, true])
    expect(peak - basePeak).toBeLessThan(250 * MIB)
  }
  const { stdout } = await measured('scan', directory, '--steps', '1')
  expect(objects(stdout).map(({ tensor }) => tensor)).toEqual(['good', name])
  const mistyped = await measured('show', directory, 'n', '--step', '1')
  expect([mistyped.code, mistyped.stderr.length < 10_000]).toEqual([5, true])
})

it('directories may lie as deep as a path is long', async () => {
  const directory = trialOf(directory => {
    const deep = join(directory, 'index', ...new Array(300).fill('d'))
    mkdirSync(deep, { recursive: true })
    writeStep(directory, 1)
  })
  expect((await rowsOf(await createTrial(directory))).map(({ error }) => error)).toEqual(new Array(4).fill(undefined))
})
