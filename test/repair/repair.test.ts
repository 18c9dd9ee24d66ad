/** What a repair does with index files, collections, other files and other kinds of trials, and where it writes to. */

import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import {
  closePools,
  createTrial,
  type RepairOptions,
  reindexTrial,
  repairTrial,
  type ScanRow,
  UsageError,
  verifyTrial,
} from '#dist/index.js'
import { PLAIN_TRIAL, readIndex, truncateEventFile, writeIndex } from '../../fixtures/corrupt.js'
import {
  type EventSpec,
  encodeEvent,
  eventFilePath,
  frameRecord,
  type IndexFile,
  indexFilePath,
  indexFileText,
  maskedCrc32c,
  TrialWriter,
} from '../../fixtures/event-writer.js'
import { FaultyS3 } from '../support/faulty-s3.js'
import { fixtureTrial } from '../support/golden.js'
import { isLong } from '../support/part.js'
import { plainRows, rejectionOf, rowsOf } from '../support/scanning.js'
import { scratchDirectory } from '../support/scratch.js'
import { contentsOf } from './tree.js'

const scratch = scratchDirectory('repairs')
let number = 0
let dir: string
let out: string

beforeEach(() => {
  const own = join(scratch, String(number++))
  dir = join(own, 'trial')
  out = join(own, 'clean')
  mkdirSync(dir, { recursive: true })
})

afterAll(closePools)

const WORKER = 'worker_0'

function put(path: string, ...pieces: readonly (Uint8Array | string)[]): void {
  mkdirSync(dirname(join(dir, path)), { recursive: true })
  writeFileSync(join(dir, path), Buffer.concat(pieces.map(piece => Buffer.from(piece))))
}

function record(event: EventSpec): Uint8Array {
  return frameRecord(encodeEvent(event), { checksum: 'true' })
}

/** A record of one number. */
function value(
  tag: string,
  step: number,
  number: number,
  mode: 'TRAIN' | 'EVAL' = 'TRAIN',
  modeStep = step,
): Uint8Array {
  const tensor = { dtype: 'float32', shape: [], values: [number] } as const
  return record({ wallTime: 1, step, tag, mode, modeStep, tensor })
}

function damaged(bytes: Uint8Array): Uint8Array {
  const copy = Uint8Array.from(bytes)
  copy[copy.length - 1]! ^= 1
  return copy
}

function collections(worker = WORKER, numWorkers = 1): void {
  const all = { name: 'all', include_regex: ['.*'], tensor_names: [] }
  put(
    `collections/000000000/${worker}_collections.json`,
    JSON.stringify({ collections: { all }, _meta: { num_workers: numWorkers } }),
  )
}

/** An event file of a step and its index file, which tells of every record under the names. */
function step(step: number, records: readonly (readonly [string, Uint8Array])[], more: Partial<IndexFile> = {}): void {
  let at = 0
  const tensor_payload = records.map(([tensorname, { length }]) => {
    at += length
    return { tensorname, start_idx: at - length, length }
  })
  put(eventFilePath(step, WORKER), ...records.map(([, bytes]) => bytes))
  const meta = { mode: 'TRAIN', mode_step: step, event_file_name: eventFilePath(step, WORKER) } as const
  put(indexFilePath(step, WORKER), indexFileText({ meta, tensor_payload, shape_payload: [], ...more }))
}

async function rowsIn(directory: string): Promise<ScanRow[]> {
  expect((await verifyTrial(directory)).problems).toEqual([])
  const trial = await createTrial(directory)
  expect(trial.problems).toEqual([])
  const rows = await rowsOf(trial, { checkLevel: 'full' })
  await trial.close()
  return rows
}

/** Name, step, mode and number of each row of the copy. */
async function numbers(): Promise<unknown[]> {
  return (await rowsIn(out)).map(({ tensor, step, mode, modeStep, reductions, error }) =>
    error ? error.code : [tensor, step, mode, modeStep, reductions.mean],
  )
}

const repair = (options?: RepairOptions) => repairTrial(dir, out, options)

function copied(path: string): string {
  return readFileSync(join(out, path), 'utf8')
}

describe('an index file', () => {
  it('tells where records lie now, and else what it told', async () => {
    const shapes = [{ tensorname: 'a', originalname: 'net/a', shape: [2, 3] }]
    const records = [
      ['a', damaged(value('a', 5, 1))],
      ['b', value('b', 5, 2, 'EVAL', 9)],
      ['c', value('c', 5, 3, 'EVAL', 9)],
    ] as const
    collections()
    step(5, records, { shape_payload: shapes })
    const report = await repair()
    const length = records[1][1].length
    // The hook can write records under the mode that comes next; the index file's is right.
    expect(copied(indexFilePath(5, WORKER))).toBe(
      indexFileText({
        meta: { mode: 'TRAIN', mode_step: 5, event_file_name: eventFilePath(5, WORKER) },
        tensor_payload: [
          { tensorname: 'b', start_idx: 0, length },
          { tensorname: 'c', start_idx: length, length },
        ],
        shape_payload: shapes,
      }),
    )
    expect(readFileSync(join(out, eventFilePath(5, WORKER)))).toEqual(Buffer.concat([records[1][1], records[2][1]]))
    expect(report).toMatchObject({
      records: { kept: 2, leftOut: 1 },
      bytes: { kept: 2 * length, leftOut: length },
      files: { copied: 1, rebuilt: 2, leftOut: 0, ignored: 0 },
      leftOut: [{ file: eventFilePath(5, WORKER), offset: 0, byteLength: length, step: 5, tensors: ['a'], records: 1 }],
    })
    expect(report.leftOut[0]!.code).toBe('BadPayloadChecksum')
    expect(await numbers()).toEqual([
      ['b', 5, 'TRAIN', 5, 2],
      ['c', 5, 'TRAIN', 5, 3],
    ])
  })

  it('that is wrong keeps its mode and shapes where these are right', async () => {
    collections()
    const shape_payload = [{ tensorname: 'a', originalname: 'other', shape: [] }]
    step(1, [['a', value('a', 1, 1)]], { shape_payload })
    writeIndex(dir, 1, { ...readIndex(dir, 1), tensor_payload: [{ tensorname: 'a', start_idx: -1, length: 1 }] })
    const report = await repair()
    expect(report.leftOut).toEqual([])
    expect(report.rebuilt.map(({ file }) => file)).toEqual([indexFilePath(1, WORKER)])
    expect(report.rebuilt[0]!.reason).toContain('start_idx')
    expect(JSON.parse(copied(indexFilePath(1, WORKER)))).toMatchObject({ shape_payload })
    expect(await numbers()).toEqual([['a', 1, 'TRAIN', 1, 1]])
  })

  it('that is torn is told of: shapes may be lost with it', async () => {
    collections()
    step(1, [['a', value('a', 1, 1, 'EVAL', 0)]])
    put(indexFilePath(1, WORKER), '{"meta": {"mode": "EV')
    const report = await repair()
    expect(report.leftOut).toMatchObject([
      { file: indexFilePath(1, WORKER), offset: null, records: 0, code: 'BadIndexFile' },
    ])
    expect(await numbers()).toEqual([['a', 1, 'EVAL', 0, 1]])
  })

  it('that names another event file than there is finds its own', async () => {
    collections()
    step(1, [['a', value('a', 1, 1, 'EVAL', 9)]])
    const index = readIndex(dir, 1)
    writeIndex(dir, 1, { ...index, meta: { ...index.meta, event_file_name: 'events/000000000009/x.tfevents' } })
    const report = await repair()
    expect(report).toMatchObject({ leftOut: [], rebuilt: [{ file: indexFilePath(1, WORKER) }] })
    expect(await numbers()).toEqual([['a', 1, 'TRAIN', 1, 1]])
  })

  it.each<[string, string, string]>([
    ['entries that can’t be', '"start_idx": 0', '"start_idx": -1'],
    ['no meta', '"meta"', '"mate"'],
    ['an event file outside of the trial', '"event_file_name": "', '"event_file_name": "../'],
    ['no JSON', '{"meta"', '{"meta'],
  ])('tells that all is lost of an event file that is gone and whose index file has %s', async (_, from, to) => {
    collections()
    step(1, [['a', value('a', 1, 1)]])
    step(2, [['a', value('a', 2, 2)]])
    const index = indexFilePath(1, WORKER)
    const text = readFileSync(join(dir, index), 'utf8')
    expect(text).toContain(from)
    put(index, text.replace(from, to))
    for (const makeEmpty of [false, true]) {
      if (makeEmpty) put(eventFilePath(1, WORKER))
      else rmSync(join(dir, eventFilePath(1, WORKER)))
      rmSync(out, { recursive: true, force: true })
      const report = await repair()
      expect(report.leftOut).toMatchObject([{ file: index, step: 1, code: expect.stringMatching(/BadIndexFile/) }])
      expect(await numbers()).toEqual([['a', 2, 'TRAIN', 2, 2]])
    }
  })

  it('keeps the shapes of an event file that is gone', async () => {
    collections()
    step(1, [['a', value('a', 1, 1)]], { shape_payload: [{ tensorname: 'b', originalname: 'b', shape: [4] }] })
    rmSync(join(dir, eventFilePath(1, WORKER)))
    const report = await repair()
    expect(report.leftOut).toMatchObject([
      {
        file: eventFilePath(1, WORKER),
        offset: null,
        byteLength: null,
        tensors: ['a'],
        records: 1,
        code: 'EventFileMissing',
      },
    ])
    const trial = await createTrial(out)
    expect(trial.tensorNames()).toEqual(['b'])
    expect(await trial.tensor('b').shape(1)).toEqual([4])
    expect(JSON.parse(copied(indexFilePath(1, WORKER)))).toMatchObject({ tensor_payload: [] })
  })

  it('that was lost has the mode of the first record: scalars come last, and may have the next', async () => {
    collections()
    const scalars = [value('b', 3, 2, 'EVAL', 0), value('c', 3, 3, 'EVAL', 0)]
    put(eventFilePath(3, WORKER), value('a', 3, 1, 'TRAIN', 2), ...scalars)
    step(4, [['a', value('a', 4, 4)]])
    const report = await repair()
    expect(report).toMatchObject({ leftOut: [], rebuilt: [{ file: indexFilePath(3, WORKER) }] })
    expect(await numbers()).toEqual([
      ['a', 3, 'TRAIN', 2, 1],
      ['b', 3, 'TRAIN', 2, 2],
      ['c', 3, 'TRAIN', 2, 3],
      ['a', 4, 'TRAIN', 4, 4],
    ])
  })

  it('answers nothing where the last record of a name is lost, and not with one before it', async () => {
    collections()
    const records = [
      ['lr', value('lr', 1, 0.5)],
      ['a', value('a', 1, 1)],
      ['lr', damaged(value('lr', 1, 0.25))],
    ] as const
    step(1, records)
    const report = await repair()
    expect(report.leftOut).toMatchObject([
      { offset: 0, tensors: ['lr'], records: 1, code: 'LaterRecordLost' },
      { tensors: ['lr'], records: 1, code: 'BadPayloadChecksum' },
    ])
    expect(await numbers()).toEqual([['a', 1, 'TRAIN', 1, 1]])
  })

  it('still answers with the last record of a name where one before it is lost', async () => {
    collections()
    const records = [
      ['lr', damaged(value('lr', 1, 0.5))],
      ['a', value('a', 1, 1)],
      ['lr', value('lr', 1, 0.25)],
    ] as const
    step(1, records)
    const report = await repair()
    expect(report.leftOut).toMatchObject([{ tensors: ['lr'], records: 1, offset: 0 }])
    expect(await numbers()).toEqual([
      ['a', 1, 'TRAIN', 1, 1],
      ['lr', 1, 'TRAIN', 1, 0.25],
    ])
  })

  it('and another of the same event file have each their own records', async () => {
    collections()
    const [first, second] = [value('a', 1, 1), value('a', 2, 2)]
    step(1, [['a', first]])
    step(2, [['a', second]])
    put(eventFilePath(1, WORKER), first, second)
    rmSync(join(dir, eventFilePath(2, WORKER)))
    const index = readIndex(dir, 2)
    const entry = { tensorname: 'a', start_idx: first.length, length: second.length }
    const meta = { ...index.meta, event_file_name: eventFilePath(1, WORKER) }
    writeIndex(dir, 2, { ...index, meta, tensor_payload: [entry] })
    const report = await repair()
    expect(report).toMatchObject({ leftOut: [], rebuilt: [] })
    expect(await numbers()).toEqual([
      ['a', 1, 'TRAIN', 1, 1],
      ['a', 2, 'TRAIN', 2, 2],
    ])
  })

  it.each(['collections/000000000/worker_0_collections.json', 'training_job_end.ts', 'events/half.tfevents.tmp'])(
    'that names %s as its event file is not believed',
    async name => {
      collections()
      put('training_job_end.ts', '')
      put('events/half.tfevents.tmp', value('a', 1, 1))
      step(1, [['a', value('a', 1, 1)]])
      const index = readIndex(dir, 1)
      writeIndex(dir, 1, { ...index, meta: { ...index.meta, event_file_name: name } })
      expect((await repair()).leftOut).toEqual([])
      expect(await numbers()).toEqual([['a', 1, 'TRAIN', 1, 1]])
      // Nor where there is nothing else.
      rmSync(join(dir, eventFilePath(1, WORKER)))
      rmSync(out, { recursive: true })
      const report = await repair()
      expect(report.leftOut).toMatchObject([{ file: name, tensors: ['a'] }])
      expect(await numbers()).toEqual([])
    },
  )
})

describe('records', () => {
  it('of another step are left out', async () => {
    collections()
    step(1, [
      ['a', value('a', 1, 1)],
      ['b', value('b', 2, 2)],
    ])
    const report = await repair()
    expect(report.leftOut).toMatchObject([{ tensors: ['b'], step: 1, code: 'StepMismatch' }])
    expect(report.leftOut[0]!.reason).toMatch(/expected a record of step 1, got one of step 2/)
    expect(await numbers()).toEqual([['a', 1, 'TRAIN', 1, 1]])
  })

  it('behind a broken frame are found again', async () => {
    collections()
    const bytes = value('b', 1, 2)
    bytes[3]! ^= 0x40
    put(eventFilePath(1, WORKER), value('a', 1, 1), bytes, value('c', 1, 3))
    const report = await repair()
    expect(report).toMatchObject({ records: { kept: 2, leftOut: 1 }, leftOut: [{ byteLength: bytes.length }] })
    expect(await numbers()).toEqual([
      ['a', 1, 'TRAIN', 1, 1],
      ['c', 1, 'TRAIN', 1, 3],
    ])
  })

  it('that are damaged by the hundred are counted, and the first of a file are told', async () => {
    collections()
    const records = Array.from({ length: 500 }, (_, i) => [`t${i}`, damaged(value(`t${i}`, 1, i))] as const)
    step(1, [...records, ['good', value('good', 1, 7)]])
    const report = await repair()
    expect(report.records).toEqual({ kept: 1, leftOut: 500 })
    expect([report.leftOutCount, report.leftOut.length]).toEqual([500, 100])
    expect(report.leftOut.map(({ tensors }) => tensors[0])).toEqual(records.slice(0, 100).map(([name]) => name))
    expect(await numbers()).toEqual([['good', 1, 'TRAIN', 1, 7]])
  })

  it('get their checksums wherever pieces end, on threads too', async () => {
    // Records that end so many bytes behind the second mebibyte that the checksum lies across the border.
    const writer = new TrialWriter(dir)
    for (let over = -1; over <= 5; over++) {
      const border = 2 << 20
      const sized = (length: number) => {
        const data = new Uint8Array(length).map((_, i) => (i * 31 + over) & 255)
        return { name: 'a', dtype: 'uint8', shape: [length], data } as const
      }
      const probe = writer.step({ step: over + 2, tensors: [sized(border - 200)] })
      const overhead = probe.tensor_payload[0]!.length - (border - 200)
      const tensors = [sized(border + over - overhead), { ...sized(5000), name: 'b' }]
      const index = writer.step({ step: over + 2, tensors })
      expect(index.tensor_payload[0]!.length).toBe(border + over)
    }
    for (const threads of [0, 2]) {
      const report = await repair({ checksums: true, threads })
      expect(report.records).toEqual({ kept: 14, leftOut: 0 })
      for (let n = 1; n <= 7; n++) {
        const bytes = readFileSync(join(out, eventFilePath(n, WORKER)))
        for (let at = 0; at < bytes.length; ) {
          const end = at + 12 + Number(bytes.readBigUInt64LE(at))
          expect(bytes.readUInt32LE(end)).toBe(maskedCrc32c(bytes.subarray(at + 12, end)))
          at = end + 4
        }
      }
      expect(plainRows(await rowsIn(out))).toEqual(plainRows(await rowsIn(dir)))
      rmSync(out, { recursive: true })
    }
  })
})

describe('collections files', () => {
  it('of a worker that cannot be read get what another one has', async () => {
    cpSync(fixtureTrial('workers-4').directory, dir, { recursive: true })
    const wanted = await rowsIn(dir)
    const [first, second] = readdirSync(join(dir, 'collections/000000000'))
    put(`collections/000000000/${second}`, '{"collections"')
    const report = await repair()
    expect(report.leftOut).toMatchObject([{ file: `collections/000000000/${second}`, code: 'BadCollectionsFile' }])
    expect(copied(`collections/000000000/${second}`)).toBe(copied(`collections/000000000/${first}`))
    expect(plainRows(await rowsIn(out))).toEqual(plainRows(wanted))
  })

  it('that an ended job owes are made for all its workers, under the names that devices have in files', async () => {
    cpSync(fixtureTrial('workers-tf-devices').directory, dir, { recursive: true })
    const wanted = await createTrial(dir)
    rmSync(join(dir, 'collections'), { recursive: true })
    put('training_job_end.ts', '')
    const report = await repair()
    const files = readdirSync(join(out, 'collections/000000000'))
    expect(report.leftOut.map(({ file, code }) => [file, code])).toEqual(
      files.map(file => [`collections/000000000/${file}`, 'MissingCollectionFiles']),
    )
    const trial = await createTrial(out)
    expect(trial.workers()).toEqual(wanted.workers())
    expect(files.length).toBe(trial.workers().length)
    expect(trial.steps()).toEqual(wanted.steps())
  })

  it('that are owed by many are copies of one that is good, unless these would fill the disk', async () => {
    step(1, [['a', value('a', 1, 1)]])
    put('training_job_end.ts')
    for (const [names, isCopied] of [
      [10, true],
      [1000, false],
    ] as const) {
      const all = {
        name: 'all',
        include_regex: ['a'],
        tensor_names: Array.from({ length: names }, (_, i) => `tensor ${i}`),
      }
      const text = JSON.stringify({ collections: { all }, _meta: { num_workers: 2000 } })
      put(`collections/000000000/${WORKER}_collections.json`, text)
      rmSync(out, { recursive: true, force: true })
      expect(await repair()).toMatchObject({ leftOutCount: 1999 })
      const other = copied('collections/000000000/worker_1999_collections.json')
      expect(other === text).toBe(isCopied)
      const trial = await createTrial(out)
      expect(trial.collection('all').members).toEqual(['a'])
      await trial.close()
    }
  })

  it('are not made up for a job that runs', async () => {
    step(1, [['a', value('a', 1, 1)]])
    expect((await repair()).leftOut).toEqual([])
    expect(Object.keys(contentsOf(out)).filter(path => !/^(index|events)/.test(path))).toEqual([])
    expect(await numbers()).toEqual([['a', 1, 'TRAIN', 1, 1]])
  })
})

describe('other files', () => {
  it('are ignored and named; an end marker is neither lost nor made', async () => {
    collections()
    step(1, [['a', value('a', 1, 1)]])
    const strangers = [
      'notes.txt',
      'events/readme.md',
      'index/x.tmp',
      `${eventFilePath(2, WORKER)}.tmp`,
      'index/1_w.json~',
    ]
    for (const path of strangers) put(path, value('z', 2, 1))
    put(eventFilePath(3, WORKER), '')
    const report = await repair()
    expect(report.ignored).toEqual([...strangers, eventFilePath(3, WORKER)].sort())
    expect(report).toMatchObject({ leftOutCount: 0, files: { copied: 3, rebuilt: 0, leftOut: 0, ignored: 6 } })
    expect(existsSync(join(out, 'training_job_end.ts'))).toBe(false)
    put('training_job_end.ts', 'x')
    rmSync(out, { recursive: true })
    await repair()
    expect(copied('training_job_end.ts')).toBe('x')
  })

  it('that links lead to are copied only if they lie in the trial, or that is allowed', async () => {
    collections()
    step(1, [['a', value('a', 1, 1)]])
    const path = join(dir, eventFilePath(1, WORKER))
    const outside = join(dirname(dir), 'outside.tfevents')
    cpSync(path, outside)
    rmSync(path)
    symlinkSync(outside, path)
    expect((await repair()).leftOut).toMatchObject([{ file: eventFilePath(1, WORKER), code: 'Denied', tensors: ['a'] }])
    rmSync(out, { recursive: true })
    expect((await repair({ allowSymlinks: true })).leftOut).toEqual([])
    rmSync(outside)
    expect(await numbers()).toEqual([['a', 1, 'TRAIN', 1, 1]])
  })
})

describe('other trials', () => {
  it("TensorBoard's event files keep what is whole, and what smdebug's need not have", async () => {
    const version = record({ wallTime: 1, step: 0, fileVersion: 'brain.Event:2' })
    const scalar = (tag: string, step: number, simpleValue: number) => record({ wallTime: 1, step, tag, simpleValue })
    const name = 'events.out.tfevents.1.host'
    put(name, version, scalar('loss', 0, 0.5), damaged(scalar('loss', 1, 9)), scalar('loss', 2, 0.25))
    put(`train/${name}`, version, scalar('acc', 2, 0.75), scalar('acc', 3, 0.8).subarray(0, 20))
    put('train/notes.txt', 'no event file')
    const report = await repair()
    expect(report.leftOut.map(({ file, code }) => [file, code])).toEqual([
      [name, 'BadPayloadChecksum'],
      [`train/${name}`, 'TruncatedRecord'],
    ])
    expect(report.ignored).toEqual(['train/notes.txt'])
    expect(Object.keys(contentsOf(out))).toEqual([name, 'train', `train/${name}`])
    expect(copied(name)).toBe(Buffer.concat([version, scalar('loss', 0, 0.5), scalar('loss', 2, 0.25)]).toString())
    expect((await numbers()).map(row => (row as unknown[]).slice(0, 2))).toEqual([
      ['loss', 0],
      ['loss', 2],
      ['acc', 2],
    ])
  })

  describe('TensorBoard’s', () => {
    const name = 'events.out.tfevents.1.host'
    const run = () => [record({ wallTime: 1, step: 4, tag: 'loss', simpleValue: 0.5 })]
    const lossOf = async () => (await numbers()).map(row => (row as unknown[]).slice(0, 2))

    it('may have an end marker', async () => {
      put(name, ...run())
      put('training_job_end.ts')
      expect(await repair()).toMatchObject({ leftOut: [], rebuilt: [], ignored: [] })
      expect(contentsOf(out)).toEqual(contentsOf(dir))
      expect(await lossOf()).toEqual([['loss', 4]])
    })

    it('may have runs that are called as a part of a trial', async () => {
      for (const path of ['train', 'index', 'collections']) put(`${path}/${name}`, ...run())
      expect((await rowsIn(dir)).map(({ worker }) => worker)).toEqual(['collections', 'index', 'train'])
      expect(await repair()).toMatchObject({ leftOut: [], ignored: [] })
      expect(contentsOf(out)).toEqual(contentsOf(dir))
    })

    it('are left out, and told of, where no other disk could have their names', async () => {
      put(name, ...run())
      put(`run\\2/${name}`, ...run())
      const report = await repair()
      expect(report.leftOut).toMatchObject([{ file: `run\\2/${name}`, code: 'UnsafePath' }])
      expect(await lossOf()).toEqual([['loss', 4]])
    })
  })

  it('with a worker’s name that no other disk can have are copied without that, which is told', async () => {
    collections()
    step(1, [['a', value('a', 1, 1)]])
    put(eventFilePath(1, 'w\\0'), value('b', 1, 1))
    const report = await repair()
    expect(report.leftOut).toMatchObject([{ file: eventFilePath(1, 'w\\0'), code: 'UnsafePath' }])
    expect(await numbers()).toEqual([['a', 1, 'TRAIN', 1, 1]])
  })

  it('with names as long as can be are copied whole', async () => {
    const worker = 'w'.repeat(244)
    collections(WORKER, 2)
    step(1, [['a', value('a', 1, 1)]])
    put(`events/000000000007/7_${worker}.tfevents`, value('b', 7, 2, 'EVAL', 0))
    put('training_job_end.ts')
    const report = await repair()
    expect(report.leftOut.map(({ code }) => code)).toEqual(['MissingCollectionFiles'])
    expect(await numbers()).toEqual([
      ['a', 1, 'TRAIN', 1, 1],
      ['b', 7, 'EVAL', 0, 2],
    ])
    rmSync(join(dir, 'index'), { recursive: true })
    const paths = (await reindexTrial(dir)).map(({ path }) => path)
    expect(paths).toEqual([indexFilePath(1, WORKER), `index/000000000/7_${worker}.json`])
  })

  it('with paths as long as can be are copied without these, which is told', async () => {
    collections()
    step(1, [['a', value('a', 1, 1)]])
    const deep = `events/${Array(19).fill('d'.repeat(200)).join('/')}`
    // No path of the copy is as short as the trial's until it has its name.
    const long = `${deep}/${'d'.repeat(4095 - join(dir, deep).length - 20 - 1)}/1_${'w'.repeat(6)}.tfevents`
    expect(join(dir, long).length).toBeLessThan(4096)
    put(long, value('b', 1, 2))
    const report = await repair()
    expect(report.leftOut).toMatchObject([{ file: long, code: 'NameTooLong' }])
    expect(await numbers()).toEqual([['a', 1, 'TRAIN', 1, 1]])
  })

  it('whose end marker can’t be looked at are copied without it, which is told', async () => {
    collections()
    step(1, [['a', value('a', 1, 1)]])
    symlinkSync('training_job_end.ts', join(dir, 'training_job_end.ts'))
    expect((await repair()).leftOut).toMatchObject([{ file: 'training_job_end.ts' }])
    expect(await numbers()).toEqual([['a', 1, 'TRAIN', 1, 1]])
  })

  it("Tornasole's keep their own index files, and what tells their float16 from int32", async () => {
    cpSync(fixtureTrial('tornasole-2019').directory, dir, { recursive: true })
    const wanted = await rowsIn(dir)
    const path = 'events/000000000000/000000000000_algo-1.tfevents'
    const bytes = readFileSync(join(dir, path))
    bytes[40]! ^= 0xff
    const length = 16 + Number(bytes.readBigUInt64LE(0))
    // The hook's own checksum would not tell.
    bytes.writeUInt32LE(maskedCrc32c(Buffer.from('no such payload')), length - 4)
    put(path, bytes)
    const report = await repair()
    expect(report.leftOut).toMatchObject([{ file: path, offset: 0, byteLength: length, records: 1 }])
    const [lost] = report.leftOut[0]!.tensors
    const index = copied('index/000000000/000000000000_algo-1.csv').split('\n')
    expect(index[0]).toMatch(/, events\/000000000000\/000000000000_algo-1\.tfevents, 0,\d+$/)
    const rows = await rowsIn(out)
    expect(plainRows(rows)).toEqual(plainRows(wanted.filter(({ step, tensor }) => step !== 0 || tensor !== lost)))
    expect(rows.length).toBe(wanted.length - 1)
    expect(rows.some(({ dtype }) => dtype === 'float16') || !wanted.some(({ dtype }) => dtype === 'float16')).toBe(true)
  })

  it('of Tornasole with JSON beside its own index files, and nothing else that tells whose it is', async () => {
    const writer = new TrialWriter(dir, { checksum: 'true' })
    // Tornasole called float16 int32.
    const half = { name: 'h', dtype: 'int32', shape: [2], data: new Uint8Array([0, 0x3c, 0, 0x40]) } as const
    for (const number of [1, 2]) {
      writer.step({ step: number, tensors: [half, { name: 'a', dtype: 'float32', shape: [1], values: [number] }] })
      const path = indexFilePath(number, 'worker_0')
      const { meta, tensor_payload } = JSON.parse(readFileSync(join(dir, path), 'utf8')) as {
        meta: { event_file_name: string }
        tensor_payload: { tensorname: string; start_idx: number; length: number }[]
      }
      const line = ({ tensorname, start_idx, length }: (typeof tensor_payload)[number]) =>
        `${tensorname}, ${meta.event_file_name}, ${start_idx},${length}\n`
      put(path.replace(/json$/, 'csv'), tensor_payload.map(line).join(''))
    }
    rmSync(join(dir, 'collections'), { recursive: true, force: true })
    const wanted = await rowsIn(dir)
    expect(wanted.map(({ dtype, error }) => error?.code ?? dtype)).toEqual(['float16', 'float32', 'float16', 'float32'])
    expect((await verifyTrial(dir)).problems).toEqual([])
    const { leftOut, ignored } = await repair()
    expect([leftOut, ignored]).toEqual([[], []])
    expect(plainRows(await rowsIn(out))).toEqual(plainRows(wanted))
    expect((await verifyTrial(out)).problems).toEqual([])
    expect(contentsOf(out)).toEqual(contentsOf(dir))
  })

  it('on S3 with keys that lead through others’ are copied without these, which is told', async () => {
    const server = await FaultyS3.start()
    try {
      collections()
      step(1, [['a', value('a', 1, 1)]])
      step(2, [['a', value('a', 2, 2)]])
      rmSync(join(dir, indexFilePath(2, WORKER)))
      for (const path of readdirSync(dir, { recursive: true, encoding: 'utf8' })) {
        if (path.includes('.')) server.objects.set(`t/${path}`, readFileSync(join(dir, path)))
      }
      // Folders are empty objects to some tools: nothing is lost by these.
      for (const path of ['index', 'events', 'events/000000000000']) server.objects.set(`t/${path}`, Buffer.alloc(0))
      const below = [1, 2].flatMap(n => [
        `${eventFilePath(n, WORKER)}/000000000003_${WORKER}.tfevents`,
        `${indexFilePath(n, WORKER)}/000000000003_${WORKER}.json`,
        `collections/000000000/${WORKER}_collections.json/${n}_collections.json`,
      ])
      for (const path of below) server.objects.set(`t/${path}`, Buffer.from(value('a', 3, 3)))
      const { leftOut } = await repairTrial('s3://bucket/t', out, { s3: server.options })
      expect(leftOut.map(({ file, code }) => [file, code])).toEqual(below.sort().map(file => [file, 'UnsafePath']))
      expect(await numbers()).toEqual([
        ['a', 1, 'TRAIN', 1, 1],
        ['a', 2, 'TRAIN', 2, 2],
      ])
    } finally {
      await server.stop()
    }
  })

  it('on S3 are read there, and keys that no disk can have are left alone', async () => {
    const server = await FaultyS3.start()
    try {
      cpSync(PLAIN_TRIAL, dir, { recursive: true })
      truncateEventFile(dir, 1, 300)
      const upload = (prefix: string): void => {
        for (const path of readdirSync(dir, { recursive: true, encoding: 'utf8' })) {
          const bytes = path.includes('.') ? readFileSync(join(dir, path)) : null
          if (bytes) server.objects.set(`${prefix}/${path}`, bytes)
        }
      }
      upload('jobs/one')
      server.objects.set('jobs/one/events/../../../../escaped.tfevents', Buffer.from(value('a', 1, 1)))
      const report = await repairTrial('s3://bucket/jobs/one', out, { s3: server.options })
      const local = join(dirname(out), 'local')
      const wanted = await repairTrial(dir, local)
      expect(contentsOf(out)).toEqual(contentsOf(local))
      expect(report.records).toEqual(wanted.records)
      expect(report.url).toBe('s3://bucket/jobs/one/')
      expect(report.ignored).toEqual(['events/../../../../escaped.tfevents'])
      // What can't be had this time is not lost: there is no copy then.
      server.faults.push(
        ...Array<Parameters<typeof server.faults.push>[0]>(400).fill(answer => void answer.writeHead(503).end()),
      )
      const again = join(dirname(out), 'again')
      const s3 = { ...server.options, maxAttempts: 3 }
      const error = await rejectionOf(repairTrial('s3://bucket/jobs/one', again, { s3 }))
      expect(error).toMatchObject({ name: 'StoreError', code: 'Unavailable' })
      expect(existsSync(again)).toBe(false)
    } finally {
      await server.stop()
    }
  })
})

describe('the copy', () => {
  const others = (): string[] => readdirSync(dirname(dir)).filter(name => name !== 'trial')

  const link = (): string => {
    symlinkSync(dir, out)
    return out
  }
  const file = (path: string): string => {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, '')
    return path
  }

  it.each([
    ['the trial itself', () => dir],
    ['a directory in it', () => join(dir, 'deep/down')],
    ['a link to it', link],
    ['a path through a link into it', () => join(link(), 'new')],
    ['a directory that holds something', () => dirname(file(join(out, 'x')))],
    ['a file', () => file(out)],
    ['nothing', () => ''],
    ['a URL of another machine', () => 's3://bucket/clean'],
  ])('is refused for %s', async (_, place) => {
    collections()
    step(1, [['a', value('a', 1, 1)]])
    const target = place()
    const before = contentsOf(dirname(dir))
    const error = await rejectionOf(repairTrial(dir, target))
    expect(error).toBeInstanceOf(UsageError)
    expect(contentsOf(dirname(dir))).toEqual(before)
  })

  it.each([
    ['below a file', 'file/x', 'NotFound'],
    ['below a link that leads to itself', 'loop/x', 'Unavailable'],
    ['of a name that no file can have', 'n'.repeat(256), 'Unavailable'],
  ])('can not be written %s', async (_, path, code) => {
    collections()
    step(1, [['a', value('a', 1, 1)]])
    writeFileSync(join(dirname(dir), 'file'), '')
    symlinkSync('loop', join(dirname(dir), 'loop'))
    const error = await rejectionOf(repairTrial(dir, join(dirname(dir), path)))
    expect(error).toMatchObject({ name: 'StoreError', code, message: expect.stringMatching(/^cannot write /) })
    expect(others().sort()).toEqual(['file', 'loop'])
  })

  it('is none of a directory of TensorBoard without a whole record', async () => {
    for (const bytes of ['', 'abc']) {
      put('events.out.tfevents.1.host', bytes)
      const error = await rejectionOf(repair())
      expect(error).toMatchObject({ name: 'MissingCollectionFiles', message: expect.stringMatching(/whole record/) })
      expect(others()).toEqual([])
    }
  })

  it.each<[string, () => void]>([
    ['event files that are cut', () => put(eventFilePath(1, WORKER), value('a', 1, 1).subarray(0, 20))],
    ['empty index files', () => put(indexFilePath(1, WORKER), '')],
    ['an end marker', () => put('training_job_end.ts')],
    ['Tornasole’s end marker', () => put('END_OF_JOB.ts')],
  ])('is none of a directory in which there is nothing but %s', async (_, make) => {
    make()
    expect(await rejectionOf(repair())).toMatchObject({ name: 'MissingCollectionFiles' })
    expect(others()).toEqual([])
  })

  it('can be an empty directory, have directories above it made, and be named by a URL', async () => {
    collections()
    step(1, [['a', value('a', 1, 1)]])
    mkdirSync(out)
    await repair()
    const below = join(dirname(out), 'new/deep/down')
    const report = await repairTrial(pathToFileURL(dir).href, pathToFileURL(below).href)
    expect(report).toMatchObject({ url: pathToFileURL(dir).href, out: pathToFileURL(below).href })
    expect(contentsOf(below)).toEqual(contentsOf(out))
    expect(contentsOf(out)).toEqual(contentsOf(dir))
    expect(others().sort()).toEqual(['clean', 'new'])
  })

  it('leaves nothing behind if it is given up, or can not be made', async () => {
    collections()
    for (let n = 1; n <= 200; n++) step(n, [['a', value('a', n, n)]])
    const below = join(out, 'deep/down')
    const interrupt = new AbortController()
    const reason = new Error('enough')
    const pending = rejectionOf(repairTrial(dir, below, { signal: interrupt.signal, threads: 0 }))
    setTimeout(() => interrupt.abort(reason), 5)
    const error = await pending
    expect(error).toBe(reason)
    expect(others()).toEqual([])
    // A collision can't come from a trial on a disk; what can be is that somebody puts something there meanwhile.
    const late = repairTrial(dir, out)
    mkdirSync(out)
    writeFileSync(join(out, 'mine'), 'x')
    expect(await rejectionOf(late)).toMatchObject({ name: expect.stringMatching(/^(StoreError|UsageError)$/) })
    expect(contentsOf(out)).toEqual({ mine: expect.any(String) })
    expect(others()).toEqual(['clean'])
  })

  it('of many index files gives no warning', async () => {
    collections()
    const count = isLong ? 3000 : 500
    for (let n = 0; n < count; n++) step(n, [['a', value('a', n, n)]])
    const warnings: string[] = []
    const onWarning = (warning: Error): unknown => warnings.push(String(warning))
    process.on('warning', onWarning)
    const report = await repairTrial(dir, out, { threads: 2, signal: new AbortController().signal })
    process.off('warning', onWarning)
    expect([warnings, report.records]).toEqual([[], { kept: count, leftOut: 0 }])
  })

  it('keeps a record of more Values than are looked at in one go byte for byte', async () => {
    collections()
    for (const [n, count] of [4096, 4097, 9000].entries()) {
      const names = Array.from({ length: count }, (_, i) => `t${i}`)
      const tensor = { dtype: 'float32', shape: [], values: [1] } as const
      const values = names.map(tag => ({ tag, mode: 'TRAIN', modeStep: n + 3, tensor }) as const)
      const bytes = record({ wallTime: 1, step: n + 3, values })
      const tensor_payload = names.map(tensorname => ({ tensorname, start_idx: 0, length: bytes.length }))
      step(n + 3, [['t0', bytes]], { tensor_payload })
    }
    expect((await verifyTrial(dir)).problems).toEqual([])
    const { leftOutCount } = await repairTrial(dir, out)
    expect(leftOutCount).toBe(0)
    expect(contentsOf(out)).toEqual(contentsOf(dir))
  })

  it('is the same on threads', async () => {
    cpSync(fixtureTrial('modes').directory, dir, { recursive: true })
    const bytes = readdirSync(join(dir, 'events'), { recursive: true, encoding: 'utf8' }).filter(path =>
      path.endsWith('.tfevents'),
    )
    for (const path of bytes) put(`events/${path}`, readFileSync(join(dir, 'events', path)).subarray(0, -3))
    const reports = []
    for (const threads of [0, 2]) {
      const { out: _, ...report } = await repairTrial(dir, `${out}${threads}`, { threads })
      reports.push(report)
    }
    expect(reports[1]).toEqual(reports[0])
    expect(contentsOf(`${out}2`)).toEqual(contentsOf(`${out}0`))
    expect(reports[0]!.leftOutCount).toBeGreaterThanOrEqual(bytes.length)
  })
})
