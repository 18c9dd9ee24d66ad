/** Bad trials through the library: what is wrong is said, and what is not wrong is still read. */

import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  type CheckLevel,
  closePools,
  createTrial,
  type FormatError,
  MissingCollectionFiles,
  type ScanRow,
  StoreError,
  type Trial,
  TrialscanError,
  UsageError,
} from '#dist/index.js'
import {
  type Corruption,
  copyTrial,
  corruptions,
  editEntry,
  locate,
  PLAIN_TENSORS,
  PLAIN_TRIAL,
} from '../fixtures/corrupt.js'
import { eventFilePath, indexFilePath, TrialWriter } from '../fixtures/event-writer.js'
import { whenLong } from './support/part.js'
import { plainRow, plainRows, rejectionOf, rowsOf } from './support/scanning.js'
import { scratchDirectory } from './support/scratch.js'

const scratch = scratchDirectory('bad')
const LEVELS: readonly CheckLevel[] = ['none', 'minimal', 'full']
const isRoot = process.getuid?.() === 0

let good: ScanRow[]

beforeAll(async () => {
  good = await rowsOf(await createTrial(PLAIN_TRIAL), { checkLevel: 'full' })
  expect(good.length).toBe(15)
})

afterAll(closePools)

let copies = 0

/** A spoilt copy of the plain trial. */
function spoilt(apply: (dir: string) => void): string {
  const dir = join(scratch, String(copies++))
  copyTrial(PLAIN_TRIAL, dir)
  apply(dir)
  return dir
}

function isFailing({ step, tensors }: Corruption['expect'], row: ScanRow): boolean {
  return row.step === step && tensors.includes(row.tensor!)
}

/** Where a trial differs from the good one that it was made from, the copy's own place aside. */
function expectSame(row: ScanRow, wanted: ScanRow): void {
  expect(plainRow(row)).toEqual(plainRow(wanted))
}

function expectError(error: unknown, { hint }: Corruption['expect'], dir: string): void {
  expect(error).toBeInstanceOf(TrialscanError)
  const { name, code, message } = error as TrialscanError
  expect(['FormatError', 'StoreError', 'MissingCollectionFiles']).toContain(name)
  expect(`${code}: ${message}`).toMatch(hint)
  // The file and, of bytes that are wrong, where.
  expect(message).toContain(dir)
}

const usable = corruptions.filter(({ needsUnprivilegedUser }) => !(needsUnprivilegedUser && isRoot))
const named = (list: readonly Corruption[]) => list.map(corruption => [corruption.name, corruption] as const)
/** No fault by the format: the value stands for every element, and that can be reduced. It just can't be handed out. */
const UNBELIEVABLE = 'one value for 2^50 elements'
const onRead = usable.filter(
  ({ name, expect: { when, error } }) => when === 'read' && error !== 'none' && name !== UNBELIEVABLE,
)

describe('a corruption of a record or an event file', () => {
  it.each(named(onRead))('%s', async (_, { apply, expect: wanted }) => {
    const dir = spoilt(apply)
    const trial = await createTrial(dir)
    expect(trial.problems).toEqual([])
    for (const check of LEVELS) {
      const rows = await rowsOf(trial, { checkLevel: check })
      const isNoticed = LEVELS.indexOf(check) >= LEVELS.indexOf(wanted.noticedAt)
      expect(rows.map(({ tensor, step }) => [tensor, step])).toEqual(good.map(({ tensor, step }) => [tensor, step]))
      for (const [i, row] of rows.entries()) {
        if (!isFailing(wanted, row)) expectSame(row, good[i]!)
        else if (!isNoticed) expect(row.error).toBeUndefined()
        else {
          expectError(row.error, wanted, dir)
          if (row.error?.name === 'FormatError') {
            const { expected, got, offset } = row.error as FormatError
            expect([typeof expected, typeof got, typeof offset]).toEqual(['string', 'string', 'number'])
            expect(row.error.message).toContain(`expected ${expected}, got ${got}`)
          }
          expect([row.dtype, row.shape, row.reductions]).toEqual([null, null, {}])
          // A single value fails alike; of a file that is missing for good it tells what that means for the tensor.
          const failure = (await rejectionOf(
            trial.tensor(row.tensor!).value(row.step, { checkLevel: check }),
          )) as TrialscanError
          if (row.error!.code === 'NotFound') expect(failure.code).toBe('TensorUnavailableForStep')
          else expect(failure.toJSON()).toEqual(row.error!.toJSON())
        }
      }
    }
    // On threads the same.
    expect(plainRows(await rowsOf(trial, { threads: 1, checkLevel: 'full' }))).toEqual(
      plainRows(await rowsOf(trial, { threads: 0, checkLevel: 'full' })),
    )
    await trial.close()
  })
})

it(`${UNBELIEVABLE} is reduced, but not unfolded`, async () => {
  const trial = await createTrial(spoilt(corruptions.find(({ name }) => name === UNBELIEVABLE)!.apply))
  const [row] = await rowsOf(trial, { tensors: 'fc.bias', steps: { from: 1, to: 2 }, checkLevel: 'full' })
  expect(row).toMatchObject({ shape: [2 ** 25, 2 ** 25], reductions: { sum: 2 ** 50, mean: 1, std: 0 } })
  for (const threads of [0, 1]) {
    expect(await rejectionOf(trial.tensor('fc.bias').value(1, { threads }))).toMatchObject({
      name: 'QueryError',
      code: 'ValueTooLarge',
    })
  }
})

/** The trial's index files can do without: the collections are then unknown. */
const LENIENT = ['collections files missing']

describe('a corruption that shows when the trial is opened', () => {
  const list = usable.filter(corruption => corruption.expect.when === 'open' && !LENIENT.includes(corruption.name))

  it.each(named(list))('%s', async (_, { apply, expect: wanted }) => {
    const dir = spoilt(apply)
    if (wanted.step === undefined) {
      const failure = await rejectionOf(createTrial(dir))
      expectError(failure, wanted, dir)
      expect((failure as Error).name).toBe(wanted.error)
      return
    }
    // One index file: its step is one row without a tensor, the others stand.
    const trial = await createTrial(dir)
    expect(trial.problems.length).toBe(1)
    expectError(trial.problems[0], wanted, dir)
    expect(trial.problems[0]!.name).toBe(wanted.error)
    const rows = await rowsOf(trial)
    const [broken, ...others] = rows.filter(({ step }) => step === wanted.step)
    expect(others).toEqual([])
    expect(broken).toMatchObject({ tensor: null, step: 1, dtype: null, shape: null, reductions: {}, saved: false })
    expect(broken!.error).toBe(trial.problems[0])
    expect(plainRows(rows.filter(({ step }) => step !== 1))).toEqual(plainRows(good.filter(({ step }) => step !== 1)))
    expect(await rejectionOf(trial.tensor('fc.bias').value(1))).toBe(trial.problems[0])
    expect(trial.steps()).toEqual([0, 1, 2])
  })

  it('collections files missing: what the index files tell can be had all the same', async () => {
    const dir = spoilt(directory => rmSync(join(directory, 'collections'), { recursive: true }))
    expect(await rejectionOf(createTrial(dir))).toMatchObject({ name: 'MissingCollectionFiles' })
    const trial = await createTrial(dir, { requireCollections: false })
    expect(trial.problems.map(({ code }) => code)).toEqual(['MissingCollectionFiles'])
    expect(plainRows(await rowsOf(trial))).toEqual(plainRows(good))
    expect([...trial.collections().keys()]).toEqual([])
  })
})

describe('what is odd but no fault', () => {
  const list = usable.filter(corruption => corruption.expect.error === 'none')

  it.each(named(list))('%s', async (_, { apply }) => {
    const trial = await createTrial(spoilt(apply))
    expect(trial.problems).toEqual([])
    expect(plainRows(await rowsOf(trial, { checkLevel: 'full' }))).toEqual(plainRows(good))
  })
})

describe('createTrial', () => {
  it('of a path that is not there, a file, an empty directory, a directory without a trial', async () => {
    const missing = join(scratch, 'missing')
    expect(await rejectionOf(createTrial(missing))).toMatchObject({ name: 'StoreError', code: 'NotFound' })
    const file = join(scratch, 'file')
    writeFileSync(file, 'x')
    expect(await rejectionOf(createTrial(file))).toMatchObject({ name: 'StoreError', code: 'NotADirectory' })
    expect(await rejectionOf(createTrial(join(file, 'below')))).toBeInstanceOf(StoreError)
    const empty = join(scratch, 'empty')
    mkdirSync(empty)
    expect(await rejectionOf(createTrial(empty))).toBeInstanceOf(MissingCollectionFiles)
    mkdirSync(join(empty, 'index'))
    mkdirSync(join(empty, 'collections'))
    mkdirSync(join(empty, 'events'))
    const failure = await rejectionOf(createTrial(empty))
    expect(failure).toBeInstanceOf(MissingCollectionFiles)
    expect((failure as Error).message).toContain(`${empty}: expected a trial`)
    writeFileSync(join(empty, 'training_job_end.ts'), '')
    expect(((await rejectionOf(createTrial(empty))) as Error).message).toMatch(/ended and saved nothing/)
  })

  it('of nothing, told as that', async () => {
    for (const path of ['', ' ', '\t\n']) {
      expect(await rejectionOf(createTrial(path))).toMatchObject({
        name: 'UsageError',
        message: `expected the path or URL of a trial, a text that is not empty, got ${JSON.stringify(path)}`,
      })
    }
  })

  it.each(['', 'a\0b', 's3:///x', 'https://host/x', 'file://host/x'])('of %j', async path => {
    expect(await rejectionOf(createTrial(path))).toBeInstanceOf(UsageError)
  })

  it('of what is no string', async () => {
    for (const path of [undefined, null, 5, {}]) {
      expect(await rejectionOf(createTrial(path as unknown as string))).toBeInstanceOf(UsageError)
    }
  })
})

describe('index files', () => {
  const deep = `{"meta":${'['.repeat(100_000)}${']'.repeat(100_000)}}`
  const entry = (text: string) =>
    `{"meta": {"mode": "TRAIN", "mode_step": 1, "event_file_name": "x"}, "tensor_payload": [${text}]}`
  const texts: [string, string][] = [
    ['empty', ''],
    ['blank', ' \n'],
    ['a list', '[]'],
    ['null', 'null'],
    ['a string', '"x"'],
    ['an empty object', '{}'],
    ['nested deep', deep],
    ['nested deep and cut', '['.repeat(1_000_000)],
    ['a mode step beyond 2^53', '{"meta": {"mode": "TRAIN", "mode_step": 1e300}, "shape_payload": []}'],
    ['a negative mode step', '{"meta": {"mode": "TRAIN", "mode_step": -2}, "shape_payload": []}'],
    ['a mode step in quotes', '{"meta": {"mode": "TRAIN", "mode_step": "1"}, "shape_payload": []}'],
    ['a mode of its prototype', '{"meta": {"mode": "__proto__", "mode_step": 1}, "shape_payload": []}'],
    ['an entry that is null', entry('null')],
    ['an entry that is a list', entry('["a", 0, 10]')],
    ['an end beyond 2^53', entry('{"tensorname": "a", "start_idx": 9007199254740991, "length": 9007199254740991}')],
    ['an infinite length', entry('{"tensorname": "a", "start_idx": 0, "length": 1e999}')],
    [
      'a negative shape',
      '{"meta": {"mode": "TRAIN", "mode_step": 1}, "shape_payload": [{"tensorname": "a", "shape": [-1]}]}',
    ],
    ['a byte order mark inside', '{"meta"\ufeff: {}}'],
  ]

  it.each(texts)('%s', async (_, text) => {
    const dir = spoilt(directory => writeFileSync(join(directory, indexFilePath(1, 'worker_0')), text))
    const trial = await createTrial(dir)
    expect(trial.problems.map(({ code }) => code)).toEqual(['BadIndexFile'])
    expect(trial.problems[0]!.message).toContain(indexFilePath(1, 'worker_0'))
    expect(trial.problems[0]!.message.length).toBeLessThan(1000)
    const rows = await rowsOf(trial)
    expect(rows.filter(({ error }) => error).map(({ step, tensor }) => [step, tensor])).toEqual([[1, null]])
    expect(rows.length).toBe(11)
    expect(plainRows(rows.filter(({ step }) => step !== 1))).toEqual(plainRows(good.filter(({ step }) => step !== 1)))
  })

  it.each(['../x', 'events/../../x', '/etc/passwd', 'file:///etc/passwd', 'C:\\x', 'events\\x', 'a\\u0000b', '', '..'])(
    'with event_file_name %j',
    async name => {
      const text = `{"meta": {"mode": "TRAIN", "mode_step": 1, "event_file_name": "${name.replaceAll(/\\(?!u)/g, '\\\\')}"},
        "tensor_payload": [{"tensorname": "fc.bias", "start_idx": 0, "length": 98}]}`
      const dir = spoilt(directory => writeFileSync(join(directory, indexFilePath(1, 'worker_0')), text))
      const trial = await createTrial(dir)
      expect(trial.problems.map(({ code }) => code)).toEqual(['UnsafePath'])
      expect((await rowsOf(trial)).filter(({ error }) => error).length).toBe(1)
    },
  )

  it('of two workers that have changed places are errors, not each other’s numbers', async () => {
    const dir = join(scratch, String(copies++))
    const writer = new TrialWriter(dir, { numWorkers: 2, checksum: 'true' })
    for (const step of [0, 1]) {
      for (const worker of [0, 1]) {
        writer.step({ step, worker, tensors: [{ name: 'x', dtype: 'float32', shape: [1], values: [worker] }] })
      }
    }
    writer.end()
    const [mine, others] = [0, 1].map(worker => join(dir, indexFilePath(1, `worker_${worker}`)))
    const first = readFileSync(mine!)
    writeFileSync(mine!, readFileSync(others!))
    writeFileSync(others!, first)
    const rows = await rowsOf(await createTrial(dir), { checkLevel: 'full', reductions: ['max'] })
    expect(rows.map(row => [row.step, row.worker, row.error?.code ?? row.reductions.max])).toEqual([
      [0, 'worker_0', 0],
      [0, 'worker_1', 1],
      [1, 'worker_0', 'BadIndexFile'],
      [1, 'worker_1', 'BadIndexFile'],
    ])
    const got = `got that of worker "worker_1", ${eventFilePath(1, 'worker_1')}`
    expect(rows[2]!.error!.message).toContain(got)
  })

  it('of prototype names hold tensors like any other', async () => {
    const dir = join(scratch, 'prototype')
    const writer = new TrialWriter(dir)
    const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', '']
    writer.step({ step: 0, tensors: names.map(name => ({ name, dtype: 'int8', shape: [1], values: [1] })) })
    writer.end()
    const trial = await createTrial(dir)
    const rows = await rowsOf(trial)
    expect(rows.map(({ tensor, reductions, error }) => [tensor, reductions.sum, error])).toEqual(
      names.map(name => [name, 1, undefined]),
    )
    for (const name of names) expect((await trial.tensor(name).value(0)).data).toEqual(Int8Array.of(1))
  })

  it.each(whenLong)('of a hundred thousand bad entries cost no more than reading them', async () => {
    const payload = Array.from({ length: 100_000 }, (_, i) => ({
      tensorname: `t${i}`,
      start_idx: i,
      length: [0, 15, 2 ** 33, 1e15, 50][i % 5],
    }))
    const name = eventFilePath(1, 'worker_0')
    const text = JSON.stringify({
      meta: { mode: 'TRAIN', mode_step: 1, event_file_name: name },
      tensor_payload: payload,
    })
    const dir = spoilt(directory => writeFileSync(join(directory, indexFilePath(1, 'worker_0')), text))
    const scan = (await createTrial(dir)).scan({ threads: 0 })
    let failed = 0
    for await (const { error } of scan) if (error) failed++
    expect(failed).toBe(100_000)
    expect(scan.stats.readBytes).toBeLessThan(20e6)
    expect(scan.stats.elapsedMs).toBeLessThan(30_000)
  })
})

describe('instead of an event file', () => {
  const fails = async (make: (path: string) => void): Promise<ScanRow[]> => {
    const dir = spoilt(directory => {
      const path = join(directory, eventFilePath(1, 'worker_0'))
      rmSync(path)
      make(path)
    })
    const rows = await rowsOf(await createTrial(dir), { threads: 0 })
    expect(plainRows(rows.filter(({ step }) => step !== 1))).toEqual(plainRows(good.filter(({ step }) => step !== 1)))
    return rows.filter(({ step }) => step === 1)
  }

  it('a FIFO is refused without waiting for a writer', async () => {
    const rows = await fails(path => execFileSync('mkfifo', [path]))
    expect(rows.map(({ error }) => error?.code)).toEqual(PLAIN_TENSORS.map(() => 'NotAFile'))
  })

  it('a device is refused', async () => {
    const dir = spoilt(() => {})
    const path = indexFilePath(1, 'worker_0')
    rmSync(join(dir, path))
    execFileSync('ln', ['-s', '/dev/zero', join(dir, path)])
    const trial = await createTrial(dir)
    expect(trial.steps()).toEqual([0, 1, 2])
    expect((await rowsOf(trial)).flatMap(({ step, error }) => (error ? [[step, error.code]] : []))).toEqual([
      [1, 'Denied'],
    ])
  })

  it('a link out of the trial is refused, unless it is allowed', async () => {
    const target = join(PLAIN_TRIAL, eventFilePath(1, 'worker_0'))
    const dir = spoilt(directory => {
      const path = join(directory, eventFilePath(1, 'worker_0'))
      rmSync(path)
      execFileSync('ln', ['-s', target, path])
    })
    const refused = await rowsOf(await createTrial(dir), { steps: { from: 1, to: 2 } })
    expect(refused.map(({ error }) => error?.code)).toEqual(PLAIN_TENSORS.map(() => 'Denied'))
    expect(plainRows(await rowsOf(await createTrial(dir, { allowSymlinks: true })))).toEqual(plainRows(good))
  })
})

describe('index entries', () => {
  let trial: Trial
  it.each([0, 1, 15, 2 ** 32, 1e15])('of %d bytes are refused unread', async length => {
    const dir = spoilt(directory => editEntry(directory, 1, 'fc.bias', { length }))
    trial = await createTrial(dir)
    for (const threads of [0, 1]) {
      const rows = await rowsOf(trial, { threads })
      const failed = rows.filter(({ error }) => error)
      expect(failed.map(({ tensor, step, error }) => [tensor, step, error?.code])).toEqual([
        ['fc.bias', 1, 'LengthMismatch'],
      ])
      expect(failed[0]!.error).toMatchObject({ offset: locate(dir, 1, 'fc.bias').start_idx, got: `${length}` })
    }
    expect(await rejectionOf(trial.tensor('fc.bias').value(1))).toMatchObject({ code: 'LengthMismatch' })
    const summary = await trial.summary()
    expect(summary.tensors.length).toBe(5)
  })

  it('of 4 GiB that are not there end where the file does', async () => {
    const dir = spoilt(directory => editEntry(directory, 1, 'fc.bias', { length: 2 ** 32 - 1 }))
    const rows = await rowsOf(await createTrial(dir), { threads: 0 })
    expect(rows.filter(({ error }) => error).map(({ error }) => error?.name)).toEqual(['FormatError'])
  })

  it('far beyond the file end there', async () => {
    const dir = spoilt(directory => editEntry(directory, 1, 'fc.bias', { start_idx: 2 ** 52 }))
    const rows = await rowsOf(await createTrial(dir), { threads: 0 })
    expect(rows.filter(({ error }) => error).map(({ tensor, error }) => [tensor, error?.code])).toEqual([
      ['fc.bias', 'TruncatedRecord'],
    ])
  })
})
