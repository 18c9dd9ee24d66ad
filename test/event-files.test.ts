/** Trials without index files: Tornasole's, those that lost it, and plain TensorBoard event files. */

import { execFile } from 'node:child_process'
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import {
  AllZero,
  closePools,
  createTrial,
  evaluate,
  exportTensorBoard,
  importTensorBoard,
  type Mode,
  reindexTrial,
  repairTrial,
  type StepSelection,
  type Trial,
  verifyTrial,
} from '#dist/index.js'
import {
  type EventSpec,
  encodeEvent,
  eventFilePath,
  frameRecord,
  type HistogramSpec,
  indexFilePath,
  type TensorSpec,
  TrialWriter,
} from '../fixtures/event-writer.js'
import { trialscan } from './cli/run.js'
import { fixtureTrial, fixtureTrials, ROOT } from './support/golden.js'
import { plainRows, rejectionOf, rowsOf } from './support/scanning.js'
import { scratchDirectory } from './support/scratch.js'

const root = scratchDirectory('event-files')
let number = 0
let directory: string

beforeEach(() => {
  directory = join(root, String(number++))
})

afterAll(closePools)

/** A copy of a fixture, without its index unless told. */
function copyOf(name: string, { index = false } = {}): string {
  const from = fixtureTrial(name).directory
  cpSync(from, directory, { recursive: true })
  if (!index) rmSync(join(directory, 'index'), { recursive: true })
  return from
}

function put(path: string, bytes: Uint8Array | string): void {
  mkdirSync(dirname(join(directory, path)), { recursive: true })
  appendFileSync(join(directory, path), bytes)
}

function record(event: EventSpec): Uint8Array {
  return frameRecord(encodeEvent(event), { checksum: 'true' })
}

function scalar(tag: string, step: number, simpleValue: number): Uint8Array {
  return record({ wallTime: 1, step, tag, simpleValue })
}

/** What a trial tells of its steps, and all rows without what a lost index takes away: shapes that were saved. */
async function factsOf(trial: Trial, threads = 0) {
  const rows = await rowsOf(trial, { threads, checkLevel: 'full' })
  return {
    names: trial.tensorNames(),
    workers: trial.workers(),
    modes: trial.modes(),
    steps: trial.steps().map(step => [step, trial.mode(step), trial.modeStep(step)]),
    collections: [...trial.collections().values()],
    rows: plainRows(rows),
  }
}

const withShapes = ['cnn-raw-and-reductions', 'workers-4', 'workers-running', 'workers-tf-devices', 'xgb-cancer']
// Of `modes` there are steps of which nothing but shapes was saved.
const indexed = fixtureTrials().flatMap(({ name }) => (name === 'modes' ? [] : [name]))

describe('a trial whose index is lost', () => {
  it.each(indexed)('tells the same without: %s', async name => {
    const whole = await factsOf(await createTrial(copyOf(name)))
    const trial = await createTrial(directory, { threads: 0 })
    expect(trial.problems).toEqual([])
    const facts = await factsOf(trial)
    if (withShapes.includes(name)) {
      // A tensor of which the shape alone was saved is in no event file.
      expect(whole.names).toEqual(expect.arrayContaining(facts.names))
      expect({ ...whole, names: [], rows: [], collections: [] }).toEqual({
        ...facts,
        names: [],
        rows: [],
        collections: [],
      })
      expect(whole.rows.length).toBe(facts.rows.length)
    } else expect(facts).toEqual(whole)
  })

  it('gives the same on threads', async () => {
    copyOf('tornasole-2019')
    const inline = await factsOf(await createTrial(directory, { threads: 0 }))
    const threaded = await factsOf(await createTrial(directory, { threads: 2 }), 2)
    expect(threaded).toEqual(inline)
    expect(inline.rows.length).toBeGreaterThan(30)
  })

  it('loses a torn record, and nothing before it', async () => {
    const from = copyOf('mlp-all-zero')
    const whole = await rowsOf(await createTrial(from), { steps: { from: 0, to: 1 } })
    const path = eventFilePath(0, 'worker_0')
    const { length } = readFileSync(join(directory, path))
    truncateSync(join(directory, path), length - 7)
    const trial = await createTrial(directory)
    const rows = await rowsOf(trial, { steps: { from: 0, to: 1 } })
    expect(rows.length).toBe(whole.length - 1)
    expect(plainRows(rows)).toEqual(plainRows(whole.slice(0, -1)))
    expect(trial.problems).toHaveLength(1)
    expect(trial.problems[0]).toMatchObject({ code: 'TruncatedRecord', url: expect.stringContaining(path) })
    const { offset, expected, got } = trial.problems[0] as unknown as Record<string, string | number>
    expect(Number(offset)).toBeLessThan(length - 7)
    expect([expected, got]).toEqual([
      `a record of ${length - Number(offset)} bytes`,
      `${length - Number(offset) - 7} bytes before the file ends`,
    ])
  })

  it('tells of a file that is no event file, and goes on after an Event that is none', async () => {
    put('events/0/0_w.tfevents', 'this is no event file at all')
    const wrong = frameRecord(Uint8Array.of(0x2a, 0x7f, 1))
    put('events/1/1_w.tfevents', Buffer.concat([scalar('a', 1, 1), wrong, scalar('b', 1, 2)]))
    const trial = await createTrial(directory)
    expect(trial.problems.map(({ code }) => code)).toEqual(['BadLengthChecksum', 'MalformedEvent'])
    const rows = await rowsOf(trial)
    expect(rows.map(({ tensor, error }) => [tensor, error?.code])).toEqual([
      [null, 'BadLengthChecksum'],
      ['a', undefined],
      ['b', undefined],
    ])
  })

  it('says what is wrong with any damaged file, and never throws', async () => {
    const tensor = { dtype: 'float32', shape: [2], values: [1, 2] } as const
    const whole = Buffer.concat([
      record({ wallTime: 1, step: 3, tag: 'a', mode: 'TRAIN', modeStep: 3, tensor }),
      record({
        wallTime: 1,
        step: 3,
        values: [
          { tag: 'b', simpleValue: 1 },
          { tag: 'c', mode: 'EVAL', tensor },
        ],
      }),
    ])
    for (let at = 0; at < whole.length; at++) {
      for (const damage of [0xff, 0x80, 0x01]) {
        const bytes = Buffer.from(whole)
        bytes[at]! ^= damage
        put(`events/${at}/${at}_${damage}.tfevents`, bytes)
      }
      put(`events/${at}/${at}_cut.tfevents`, whole.subarray(0, at))
    }
    const trial = await createTrial(directory, { threads: 0 })
    expect(trial.steps({ showIncompleteSteps: true })).toHaveLength(whole.length)
    expect(trial.problems.length).toBeGreaterThan(whole.length)
    for (const problem of trial.problems) {
      expect(problem).toMatchObject({ name: 'FormatError', offset: expect.any(Number) })
    }
    for (const { tensor, error } of await rowsOf(trial, { checkLevel: 'full' })) {
      if (error === undefined) expect(['a', 'b', 'c']).toContain(tensor)
    }
  })

  it('jumps over large tensors, in records of several Values too', async () => {
    const big = { dtype: 'uint8', shape: [300_000], content: new Uint8Array(300_000).fill(3) } as const
    const values = ['x', 'y'].map(tag => ({ tag, mode: 'EVAL', modeStep: 4, tensor: big }) as const)
    put('events/9/9_w.tfevents', record({ wallTime: 1, step: 9, values }))
    put('events/9/9_w.tfevents', scalar('z', 9, 7))
    const trial = await createTrial(directory)
    expect([trial.tensorNames(), trial.mode(9), trial.modeStep(9)]).toEqual([['x', 'y', 'z'], 'EVAL', 4])
    expect((await rowsOf(trial)).map(({ reductions }) => reductions.sum)).toEqual([900_000, 900_000, 7])
  })

  it('has the mode of the first record: scalars come last, and may have the mode that comes next', async () => {
    const tensor = { dtype: 'float32', shape: [1], values: [1] } as const
    const saved = (tag: string, mode: Mode, modeStep: number) =>
      record({ wallTime: 1, step: 7, tag, mode, modeStep, tensor })
    put(
      'events/7/7_w.tfevents',
      Buffer.concat([saved('loss', 'TRAIN', 5), saved('lr', 'EVAL', 1), saved('scalar', 'EVAL', 1)]),
    )
    put('training_job_end.ts', '')
    const trial = await createTrial(directory)
    expect([trial.modes(), trial.mode(7), trial.modeStep(7)]).toEqual([['TRAIN'], 'TRAIN', 5])
    expect(trial.tensor('scalar').steps({ mode: 'TRAIN' })).toEqual([5])
  })

  it('does not call a file new that can be read no more than before', async () => {
    put('events/0/0_w.tfevents', scalar('a', 0, 1))
    writeFileSync(join(root, 'outside'), scalar('b', 1, 1))
    mkdirSync(join(directory, 'events/1'))
    symlinkSync(join(root, 'outside'), join(directory, 'events/1/1_w.tfevents'))
    const trial = await createTrial(directory)
    expect([trial.steps(), trial.problems]).toEqual([[0, 1], [expect.objectContaining({ code: 'Denied' })]])
    expect(await trial.refresh()).toBe(false)
  })

  it('goes over to the index once there is one, and reads new files until then', async () => {
    const writer = new TrialWriter(directory)
    for (const step of [0, 1]) writer.step({ step, tensors: [{ name: 'a', values: [step] }] })
    cpSync(join(directory, 'index'), join(directory, 'kept'), { recursive: true })
    rmSync(join(directory, 'index'), { recursive: true })
    const trial = await createTrial(directory)
    expect(trial.steps()).toEqual([0, 1])
    expect(await trial.refresh()).toBe(false)
    put(eventFilePath(2, 'worker_0'), scalar('b', 2, 2))
    expect(await trial.refresh()).toBe(true)
    expect(trial.steps()).toEqual([0, 1, 2])
    cpSync(join(directory, 'kept'), join(directory, 'index'), { recursive: true })
    expect(await trial.refresh()).toBe(true)
    expect([trial.steps(), trial.tensorNames()]).toEqual([[0, 1], ['a']])
  })

  it('loads only the range of steps asked for', async () => {
    copyOf('tornasole-2019')
    const all = (await createTrial(directory)).steps()
    const trial = await createTrial(directory, { rangeSteps: [1, null] })
    expect(trial.steps()).toEqual(all.filter(step => step >= 1))
    const none = await createTrial(directory, { rangeSteps: [1_000_000, null] })
    expect([none.steps(), none.problems]).toEqual([[], []])
  })
})

describe("Tornasole's float16", () => {
  const half = { dtype: 'int32', shape: [3], content: Uint8Array.of(0, 0x3c, 0, 0xc0, 0, 0x38) } as const

  it('is known by two bytes an element', async () => {
    put('collections.ts', 'v0!@default!@!@!@!@None!@None\n')
    put('events/0/0_w.tfevents', record({ wallTime: 1, step: 0, tag: 'x', tensor: half }))
    const tensor = (await createTrial(directory)).tensor('x')
    const { dtype, data } = await tensor.value(0)
    expect([dtype, ...(data as Float32Array)]).toEqual(['float16', 1, -2, 0.5])
    expect(await tensor.reductionValue(0, 'sum')).toBeCloseTo(-0.5, 12)
    expect(await tensor.shape(0)).toEqual([3])
  })

  it('is known in a record that streams, too', async () => {
    put('END_OF_JOB.ts', '')
    const count = 9 << 20
    const content = new Uint8Array(new Uint16Array(count).fill(0x3c00).buffer)
    put(
      'events/0/0_w.tfevents',
      record({ wallTime: 1, step: 0, tag: 'x', tensor: { ...half, shape: [count], content } }),
    )
    const [row] = await rowsOf(await createTrial(directory), { memory: 4 << 20 })
    expect([row!.error, row!.dtype, row!.reductions.sum]).toEqual([undefined, 'float16', count])
  })

  it('is a corrupt int32 in any other trial', async () => {
    put('events/0/0_w.tfevents', record({ wallTime: 1, step: 0, tag: 'x', tensor: half }))
    const tensor = (await createTrial(directory)).tensor('x')
    expect(await rejectionOf(tensor.value(0))).toMatchObject({ code: 'ShapeMismatch' })
  })
})

describe("Tornasole's index", () => {
  it('costs one row where the first record is damaged, since the next tells the mode as well', async () => {
    copyOf('tornasole-2019', { index: true })
    const path = join(directory, eventFilePath(0, 'algo-1'))
    const bytes = readFileSync(path)
    bytes.fill(0xff, 12, 40)
    writeFileSync(path, bytes)
    const trial = await createTrial(directory)
    expect([trial.mode(0), trial.problems]).toEqual(['TRAIN', []])
    expect((await rowsOf(trial)).filter(({ error }) => error)).toHaveLength(1)
  })

  it('costs a step whose event file is missing, until it is there', async () => {
    const from = copyOf('tornasole-2019', { index: true })
    rmSync(join(directory, 'END_OF_JOB.ts'))
    const whole = (await createTrial(from)).steps()
    const path = eventFilePath(whole[0]!, 'algo-1')
    rmSync(join(directory, path))
    const trial = await createTrial(directory)
    expect(trial.problems).toMatchObject([{ code: 'NotFound' }])
    cpSync(join(from, path), join(directory, path))
    expect(await trial.refresh()).toBe(true)
    expect([trial.problems, trial.steps()]).toEqual([[], whole])
  })
})

describe('reindexTrial', () => {
  async function reindex(): Promise<void> {
    const files = await reindexTrial(directory)
    rmSync(join(directory, 'index'), { recursive: true, force: true })
    for (const { path, text } of files) put(path, text)
  }

  it('gives the very files that smdebug wrote', async () => {
    for (const name of ['mlp-all-zero', 'workers-4', 'workers-tf-devices', 'cnn-raw-and-reductions']) {
      const from = fixtureTrial(name).directory
      const files = await reindexTrial(from)
      expect(files.length).toBeGreaterThan(0)
      for (const { path, text } of files) expect(text).toBe(readFileSync(join(from, path), 'utf8'))
    }
  })

  it('does not care for collections files that can’t be read, or are missing', async () => {
    const from = copyOf('mlp-all-zero')
    const [file] = readdirSync(join(directory, 'collections/000000000'))
    for (const text of ['{', null]) {
      const path = join(directory, 'collections/000000000', file!)
      if (text === null) rmSync(path)
      else writeFileSync(path, text)
      const files = await reindexTrial(directory)
      expect(files.length).toBeGreaterThan(0)
      for (const { path, text } of files) expect(text).toBe(readFileSync(join(from, path), 'utf8'))
    }
  })

  it.each([true, false])('makes a Tornasole trial one with an index (CSV index there: %s)', async index => {
    const from = copyOf('tornasole-2019', { index })
    await reindex()
    expect(readFileSync(join(directory, indexFilePath(0, 'algo-1')), 'utf8')).toMatch(/^{"meta": {"mode": "TRAIN", /)
    expect(await factsOf(await createTrial(directory))).toEqual(await factsOf(await createTrial(from)))
  })

  it('makes an index that stands beside that of Tornasole, and counts instead of it', async () => {
    const from = copyOf('tornasole-2019', { index: true })
    rmSync(join(directory, 'END_OF_JOB.ts'))
    const before = await createTrial(directory)
    for (const { path, text } of await reindexTrial(directory)) put(path, text)
    expect(await before.refresh()).toBe(true)
    expect(await before.refresh()).toBe(false)
    const facts = await factsOf(await createTrial(from))
    expect(await factsOf(before)).toEqual(facts)
    expect(await factsOf(await createTrial(directory))).toEqual(facts)
  })

  it('makes a lost index again', async () => {
    const from = copyOf('mlp-all-zero')
    await reindex()
    const path = indexFilePath(0, 'worker_0')
    expect(readFileSync(join(directory, path), 'utf8')).toBe(readFileSync(join(from, path), 'utf8'))
    expect(await factsOf(await createTrial(directory))).toEqual(await factsOf(await createTrial(from)))
  })

  it('is a command, which never writes into the trial', async () => {
    const run = promisify(execFile)
    const cli = (...args: string[]) => run(process.execPath, [join(ROOT, 'dist/bundle/main.js'), 'reindex', ...args])
    const from = copyOf('tornasole-2019')
    for (const out of [directory, join(directory, 'a/b')]) {
      expect(await rejectionOf(cli(directory, '--out', out))).toMatchObject({ code: 2 })
    }
    const out = join(root, 'rebuilt')
    const { stdout, stderr } = await cli(directory, '--out', out)
    expect([stdout, stderr]).toEqual([expect.stringMatching(/^wrote \d+ index files to .*index\n$/), ''])
    cpSync(join(out, 'index'), join(directory, 'index'), { recursive: true })
    expect(await factsOf(await createTrial(directory))).toEqual(await factsOf(await createTrial(from)))
  })

  it('refuses a trial that is not whole, and TensorBoard files', async () => {
    put('run.tfevents', scalar('a', 0, 1))
    expect(await rejectionOf(reindexTrial(directory))).toMatchObject({ code: 'Usage' })
    put('events/0/0_w.tfevents', Buffer.concat([scalar('a', 0, 1), scalar('b', 0, 1).subarray(0, 20)]))
    expect(await rejectionOf(reindexTrial(directory))).toMatchObject({ code: 'TruncatedRecord' })
  })
})

describe('plain TensorBoard event files', () => {
  const version = record({ wallTime: 1, step: 0, fileVersion: 'brain.Event:2' })
  const histogram: HistogramSpec = {
    min: -2,
    max: 3,
    num: 4,
    sum: 2,
    sumSquares: 18,
    bucketLimit: [-1, 1, 5],
    bucket: [1, 1, 2],
  }
  const plugins = [['scalars', '']] as const

  it('are a trial: tags are tensors, runs workers, and steps those of the Events', async () => {
    put('events.out.tfevents.1.host', Buffer.concat([version, scalar('loss', 0, 0.5), scalar('loss', 10, 0.25)]))
    put('train/events.out.tfevents.1.host', version)
    const tensor = { dtype: 'float32', shape: [], values: [0.75] } as const
    put('train/events.out.tfevents.1.host', record({ wallTime: 1, step: 10, tag: 'acc', plugins, tensor }))
    put('train/notes.txt', 'no event file')
    const trial = await createTrial(directory)
    expect([trial.tensorNames(), trial.workers(), trial.steps()]).toEqual([
      ['acc', 'loss'],
      ['.', 'train'],
      [0, 10],
    ])
    expect([trial.modes(), trial.mode(10), trial.modeStep(10), trial.loadedAllSteps]).toEqual([[], 'GLOBAL', 10, false])
    expect([trial.problems, trial.collections().size]).toEqual([[], 0])
    for (const threads of [0, 2]) {
      const rows = await rowsOf(trial, { threads, checkLevel: 'full' })
      expect(rows.map(row => [row.tensor, row.step, row.worker, row.reductions.mean])).toEqual([
        ['loss', 0, '.', 0.5],
        ['loss', 10, '.', 0.25],
        ['acc', 10, 'train', 0.75],
      ])
    }
  })

  it('have no index that a cache could keep', async () => {
    put('events.out.tfevents.1.host', Buffer.concat([version, scalar('loss', 0, 0.5)]))
    const indexCache = join(directory, 'cache')
    const failure = await rejectionOf(createTrial(directory, { indexCache }))
    expect(failure).toMatchObject({ name: 'UsageError', fields: { option: 'indexCache' } })
    expect((failure as Error).message).toBe(
      `expected indexCache for a trial with index files only, got it for TensorBoard's files at ${directory}`,
    )
    expect(existsSync(indexCache)).toBe(false)
  })

  it('count the last of what was logged twice, in one file or two', async () => {
    put('events.out.tfevents.1.host', Buffer.concat([version, scalar('a', 0, 1), scalar('a', 1, 2), scalar('a', 1, 3)]))
    put('events.out.tfevents.2.host', Buffer.concat([version, scalar('a', 0, 4), scalar('b', 1, 5)]))
    const rows = await rowsOf(await createTrial(directory))
    expect(rows.map(row => [row.tensor, row.step, row.reductions.sum])).toEqual([
      ['a', 0, 4],
      ['a', 1, 3],
      ['b', 1, 5],
    ])
  })

  it('are many at once, also around those that are out of the ordinary', async () => {
    const parts: Uint8Array[] = [version]
    const expected = new Map<string, number>()
    let faults = 0
    for (let step = 0; step < 6000; step++) {
      const tag = `tag_${step % 7}`
      const values = [tag, `${tag}/π`].map((tag, i) => ({ tag, simpleValue: step + i }))
      const bytes = Buffer.from(record({ wallTime: 1, step, values }))
      if (step % 1000 === 301) {
        // A payload whose checksum is wrong is read all the same.
        bytes[bytes.length - 1]! ^= 1
      } else if (step % 1000 === 602) {
        // A field that ends behind its message.
        bytes[12 + 10] = 0xff
        bytes[12 + 11] = 0xff
      } else if (step % 1000 === 903) {
        const long = { tag: 't'.repeat(40_000), simpleValue: 1 }
        parts.push(record({ wallTime: 1, step, values: [values[0]!, long] }))
        faults++
        continue
      }
      parts.push(bytes)
      if (step % 1000 === 602) faults++
      else for (const { tag, simpleValue } of values) expected.set(`${step} ${tag}`, simpleValue)
    }
    put('events.out.tfevents.1.host', Buffer.concat(parts))
    const trial = await createTrial(directory)
    const found = new Map<string, number>()
    for (const { step, tensor, reductions } of await rowsOf(trial)) {
      found.set(`${step} ${tensor}`, reductions.sum as number)
    }
    expect(trial.problems).toHaveLength(faults)
    expect(found).toEqual(expected)
  })

  it('are refused by name where a tag is none any more', async () => {
    put('events.out.tfevents.1.host', Buffer.concat([version, scalar('t'.repeat(40_000), 5, 50), scalar('y', 6, 60)]))
    const trial = await createTrial(directory)
    expect(trial.tensorNames()).toEqual(['y'])
    const message = expect.stringMatching(/offset \d+: expected a name of at most 32768 bytes, got one of 40000$/)
    expect(trial.problems).toMatchObject([{ code: 'MalformedEvent', message }])
  })

  it('are told apart where they lie alike in two files, asked for together', async () => {
    put('events.out.tfevents.1.host', Buffer.concat([version, scalar('x', 5, 50), scalar('y', 6, 60)]))
    put('events.out.tfevents.2.host', Buffer.concat([version, scalar('x', 4, 40), scalar('y', 5, 55)]))
    const y = (await createTrial(directory)).tensor('y')
    expect(await Promise.all([y.reductionValue(5, 'mean'), y.reductionValue(6, 'mean')])).toEqual([55, 60])
  })

  it('have steps below 0, as TensorBoard has; beyond 2^53 there is none', async () => {
    const at = (step: number | bigint, value: number) => record({ wallTime: 1, step, tag: 'a', simpleValue: value })
    const long = record({ wallTime: 1, step: -7, tag: 't'.repeat(40_000), simpleValue: 1 })
    // Behind a record that is out of the ordinary, another reader takes them.
    const all = [version, at(-1, 1), scalar('a', 3, 2), long, at(-1, 4), at(-(2 ** 40), 5), at(-(2n ** 60n), 6)]
    put('events.out.tfevents.1.host', Buffer.concat(all))
    const trial = await createTrial(directory)
    expect(trial.steps()).toEqual([-(2 ** 40), -1, 3])
    expect(trial.problems.map(({ code }) => code)).toEqual(['MalformedEvent', 'BadStep'])
    const a = trial.tensor('a')
    expect((await a.value(-1)).data[0]).toBe(4)
    expect(await a.reductionValue(-(2 ** 40), 'mean')).toBe(5)
    const rows = async (steps: StepSelection) => (await rowsOf(trial, { steps })).map(({ step }) => step)
    expect(await rows([-1])).toEqual([3])
    expect(await rows({ to: 3 })).toEqual([-(2 ** 40), -1])
    expect(await rows({ from: 0 })).toEqual([3])
    const zero = new AllZero(trial, { tensor_regex: 'a', threshold: 0 })
    expect((await evaluate(zero, { follow: false })).findings.map(({ step }) => step)).toEqual([-(2 ** 40), -1, 3])
    const found = await verifyTrial(directory)
    expect(found.problems.map(({ code }) => code)).toEqual(['BadStep'])
    await exportTensorBoard(trial, `${directory}-logs`)
    const again = await createTrial(`${directory}-logs`)
    expect(again.steps()).toEqual([-(2 ** 40), -1, 3])
    const imported = await importTensorBoard(trial, `${directory}-trial`)
    expect([imported.steps, imported.problems.map(({ message }) => message)]).toEqual([
      1,
      expect.arrayContaining([expect.stringContaining('a at step -1: expected a step from 0 on')]),
    ])
    for (const args of [['scan'], ['ls'], ['summary'], ['show', 'a', '--step', '-2']]) {
      const { code, stdout } = await trialscan(args[0]!, directory, ...args.slice(1))
      expect([args[0], code, stdout]).toEqual([args[0], args[0] === 'show' ? 0 : 4, expect.stringContaining('-1')])
    }
    const plan = `${directory}-plan`
    await trialscan('fleet', 'plan', directory, '--out', plan, '--shards', '3')
    expect((await trialscan('fleet', 'run', plan, '--all')).stdout).toContain('shard 0 of 1: 3 rows')
  })

  it('grow: refresh reads on where the last whole record ended', async () => {
    const path = 'events.out.tfevents.1.host'
    const next = scalar('a', 2, 3)
    put(path, Buffer.concat([version, scalar('a', 0, 1), scalar('a', 1, 2), next.subarray(0, 20)]))
    const trial = await createTrial(directory)
    expect([trial.steps(), trial.problems.map(({ code }) => code)]).toEqual([[0, 1], ['TruncatedRecord']])
    expect(await trial.refresh()).toBe(false)
    put(path, next.subarray(20))
    put(path, scalar('b', 3, 4))
    expect(await trial.refresh()).toBe(true)
    expect([trial.steps(), trial.tensorNames(), trial.problems]).toEqual([[0, 1, 2, 3], ['a', 'b'], []])
    const values = await trial.tensor('a').values()
    expect([...values].map(([step, { data }]) => [step, data[0]])).toEqual([
      [0, 1],
      [1, 2],
      [2, 3],
    ])
    put('later/events.out.tfevents.2.host', scalar('a', 0, 9))
    expect(await trial.refresh()).toBe(true)
    expect(trial.workers()).toEqual(['.', 'later'])
    // A file that is shorter than it was begins anew.
    truncateSync(join(directory, path), 0)
    put(path, scalar('c', 7, 1))
    expect(await trial.refresh()).toBe(true)
    expect(trial.steps()).toEqual([0, 7])
  })

  it('hold histograms: rows of edges and count, reductions of the data', async () => {
    const values = [
      { tag: 'loss', simpleValue: 1 },
      { tag: 'weights', histogram },
    ]
    put('events.out.tfevents.1.host', Buffer.concat([version, record({ wallTime: 1, step: 5, values })]))
    const trial = await createTrial(directory)
    const tensor = trial.tensor('weights')
    const { dtype, shape, data } = await tensor.value(5, { checkLevel: 'full' })
    expect([dtype, shape, [...(data as Float64Array)]]).toEqual(['float64', [3, 3], [-2, -1, 1, -1, 1, 1, 1, 3, 2]])
    expect(await tensor.shape(5)).toEqual([3, 3])
    const variance = 18 / 4 - 0.25
    const expected = { min: -2, max: 3, mean: 0.5, std: Math.sqrt(variance), variance, sum: 2, l2: Math.sqrt(18) }
    for (const threads of [0, 2]) {
      const rows = await rowsOf(trial, { threads })
      expect(rows.map(row => [row.tensor, row.dtype, row.saved, row.error])).toEqual([
        ['loss', 'float32', false, undefined],
        ['weights', 'float64', true, undefined],
      ])
      expect(rows[1]!.reductions).toEqual({ ...expected, abs_l2: expected.l2 })
    }
    expect(await tensor.reductionValue(5, 'mean')).toBe(0.5)
    expect(await rejectionOf(tensor.reductionValue(5, 'prod'))).toMatchObject({ code: 'ReductionUndefined' })
    expect((await trial.summary()).tensors.map(({ name, dtype }) => [name, dtype])).toEqual([
      ['loss', 'float32'],
      ['weights', 'float64'],
    ])
  })

  it('hold histograms as TensorFlow 2 and Keras write them: tensors of the plugin for histograms', async () => {
    const plugins = [['histograms', '']] as const
    const rows = [0, 1, 2, 1, 2, 9, 2, 3, 4]
    const buckets = (tag: string, tensor: Omit<TensorSpec, 'dtype'> & { dtype?: 'float32' | 'float64' }) =>
      record({ wallTime: 1, step: 5, tag, plugins, tensor: { dtype: 'float64', ...tensor } })
    put(
      'events.out.tfevents.1.host',
      Buffer.concat([
        version,
        buckets('content', { shape: [3, 3], values: rows }),
        buckets('unpacked', { shape: [3, 3], values: rows, place: 'packed' }),
        buckets('single', { shape: [3, 3], values: rows, dtype: 'float32', place: 'mixed' }),
        buckets('below', { shape: [2, 3], values: [-2, -1, 1, -1, 3, 7] }),
        buckets('same', { shape: [2, 3], values: [2, 2, 0, 2, 2, 9] }),
        buckets('same-old', { shape: [1, 3], values: [1.5, 2.5, 9] }),
        buckets('empty', { shape: [0, 3], values: [] }),
        // A histogram has three columns, and this plugin.
        buckets('other', { shape: [1, 4], values: [1, 2, 3, 4] }),
        record({
          wallTime: 1,
          step: 5,
          tag: 'matrix',
          plugins: [],
          tensor: { dtype: 'float64', shape: [3, 3], values: rows },
        }),
      ]),
    )
    const trial = await createTrial(directory)
    const positive = { min: 0, max: 3, abs_min: 0, abs_max: 3 }
    const nines = { min: 2, max: 2, mean: 2, std: 0, variance: 0, sum: 18, l2: 6 }
    const expected = {
      content: positive,
      unpacked: positive,
      single: positive,
      below: { min: -2, max: 3 },
      same: nines,
      'same-old': nines,
      empty: {},
      other: { min: 1, max: 4 },
      matrix: { min: 0, max: 9 },
    }
    for (const threads of [0, 2]) {
      const found = await rowsOf(trial, { threads, checkLevel: 'full' })
      expect(found.map(({ tensor, saved, error }) => [tensor, saved, error])).toEqual(
        Object.keys(expected).map(name => [name, !['other', 'matrix'].includes(name), undefined]),
      )
      for (const { tensor, reductions } of found) {
        expect(reductions).toMatchObject(expected[tensor as keyof typeof expected])
        if (
          Object.keys(expected[tensor as keyof typeof expected]).length < 5 &&
          !['other', 'matrix'].includes(tensor!)
        ) {
          expect(reductions).toEqual(expected[tensor as keyof typeof expected])
        }
      }
    }
    for (const name of ['content', 'unpacked', 'single']) {
      const { dtype, shape, data } = await trial.tensor(name).value(5)
      expect([dtype, shape, [...(data as Float64Array)]]).toEqual(['float64', [3, 3], rows])
    }
    expect((await verifyTrial(directory, { deep: true })).problems).toEqual([])
  })

  it('are none of those of trials that lie below, or around', async () => {
    const { directory: trial } = fixtureTrial('workers-4')
    for (const job of ['b', 'a/c']) cpSync(trial, join(directory, job), { recursive: true })
    cpSync(trial, join(directory, 'd'), { recursive: true })
    for (const part of ['collections', 'index']) rmSync(join(directory, 'd', part), { recursive: true })
    const cases = [
      [directory, /there are trials below it; name one of them: a\/c, b, d$/],
      [join(trial, 'events'), /this is a part of one: name the directory above$/],
      [join(trial, 'events/000000000000'), /this is a part of one: name the directory above$/],
    ] as const
    for (const [path, message] of cases) {
      for (const open of [createTrial, verifyTrial, (path: string) => repairTrial(path, join(root, 'none'))]) {
        const error = await rejectionOf(open(path))
        expect(error).toMatchObject({ name: 'MissingCollectionFiles', message: expect.stringMatching(message) })
      }
    }
    // A run of TensorBoard's beside them is one.
    put('runs/events.out.tfevents.1.host', Buffer.concat([version, scalar('a', 0, 1)]))
    expect((await createTrial(directory)).workers()).toEqual(['runs'])
  })

  it('are not looked for where a link leads: that is any directory', async () => {
    mkdirSync(join(directory, 'a'), { recursive: true })
    symlinkSync(join(ROOT, 'fixtures'), join(directory, 'a/link'))
    for (const open of [createTrial, verifyTrial]) {
      expect(await rejectionOf(open(directory))).toMatchObject({
        name: 'MissingCollectionFiles',
        message: expect.stringContaining('a symbolic link that leads out of it'),
      })
    }
  })

  it('are not looked for in a trial of smdebug, nor found where there are none', async () => {
    put('collections/000000000/worker_0_collections.json', '{"collections": {}, "_meta": {"num_workers": 1}}')
    put('tensorboard/events.out.tfevents.1.host', scalar('a', 0, 1))
    expect((await createTrial(directory)).tensorNames()).toEqual([])
    const empty = join(root, 'empty')
    mkdirSync(empty)
    writeFileSync(join(empty, 'x.txt'), '')
    expect(await rejectionOf(createTrial(empty))).toMatchObject({ name: 'MissingCollectionFiles' })
  })
})
