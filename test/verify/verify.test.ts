/** verifyTrial: what it says of trials good and bad. */

import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import {
  closePools,
  createTrial,
  repairTrial,
  VERIFY_CODES,
  type Verification,
  type VerifyProblem,
  verifyTrial,
} from '#dist/index.js'
import {
  copyTrial,
  corruptions,
  editEntry,
  editEventFile,
  locate,
  PLAIN_TENSORS,
  PLAIN_TRIAL,
  readIndex,
  replaceTensor,
  writeIndex,
} from '../../fixtures/corrupt.js'
import {
  CONSTANT_CRC,
  encodeEvent,
  eventFilePath,
  frameRecord,
  indexFilePath,
  type StepTensor,
  TrialWriter,
} from '../../fixtures/event-writer.js'
import { FaultyS3 } from '../support/faulty-s3.js'
import { fixtureTrial, fixtureTrials, ROOT, sharedTrials } from '../support/golden.js'
import { part, whenLong } from '../support/part.js'
import { rowsOf } from '../support/scanning.js'
import { scratchDirectory } from '../support/scratch.js'

const WORKER = 'worker_0'
const STEP = 1
const EVENTS = eventFilePath(STEP, WORKER)
const INDEX = indexFilePath(STEP, WORKER)
const MIB = 1 << 20

const root = scratchDirectory('verify')
let number = 0
let directory: string

beforeEach(() => {
  directory = join(root, String(number++))
})

afterAll(closePools)

/** A copy of the plain trial: three steps of one worker, true checksums, ended. */
function plain(): string {
  copyTrial(PLAIN_TRIAL, directory)
  return directory
}

function place({ code, file, offset }: VerifyProblem): string {
  const name = file === EVENTS ? 'E' : file === INDEX ? 'I' : file
  return `${code} ${name}${offset === null ? '' : ` ${offset}`}`
}

function places({ problems }: Verification): string[] {
  return problems.map(place)
}

/** A result without what it has cost. */
function told({ ok, problems, notes, problemCounts, noteCounts, stats }: Verification) {
  const { records, tensors, eventFiles, indexFiles } = stats
  return { ok, problems, notes, problemCounts, noteCounts, records, tensors, eventFiles, indexFiles }
}

describe('a good trial', () => {
  const trials = [...fixtureTrials(), ...sharedTrials().map(trial => ({ ...trial, name: `${trial.name}, shared` }))]

  it.each(trials)('is told to be good: $name', async ({ directory }) => {
    const verification = await verifyTrial(directory, { threads: 0 })
    expect(verification.problems).toEqual([])
    expect(verification.problemCounts).toEqual({})
    expect(verification.ok).toBe(true)
    const paths = readdirSync(directory, { recursive: true, encoding: 'utf8' })
    const events = paths.filter(path => path.endsWith('.tfevents'))
    expect(verification.stats.eventFiles).toBe(events.length)
    // One a line in Tornasole's index, one an entry in smdebug's.
    const indexes = paths
      .filter(path => /^index.*\.(json|csv)$/.test(path))
      .map(path => readFileSync(join(directory, path), 'utf8'))
    const entries = indexes.flatMap(text => text.match(text.startsWith('{') ? /"start_idx"/g : /\n/g) ?? [])
    expect(verification.stats.tensors).toBe(entries.length)
    expect(verification.stats.tensors).toBeGreaterThan(0)
    const byteLength = events.reduce((sum, path) => sum + statSync(join(directory, path)).size, 0)
    expect(verification.stats.readBytes).toBeGreaterThanOrEqual(byteLength)
  })

  it.each(trials.filter(({ name }) => !name.startsWith('modes')))(
    'is so in depth, too: $name',
    async ({ directory }) => {
      expect((await verifyTrial(directory, { threads: 0, deep: true })).problems).toEqual([])
    },
  )

  it('may have records under the mode that comes next, as the hook itself wrote: notes', async () => {
    const steps = [{ step: 0, mode: 'TRAIN', records: 'EVAL' }] as const
    const writer = new TrialWriter(directory)
    for (const { step, mode } of steps) {
      writer.step({ step, mode, modeStep: step, tensors: [{ name: 'a', dtype: 'float32', shape: [1], values: [1] }] })
    }
    writer.end()
    const index = readIndex(directory, 0)
    writeIndex(directory, 0, { ...index, meta: { ...index.meta, mode: 'EVAL', mode_step: 7 } })
    const { ok, problems, notes } = await verifyTrial(directory)
    expect([ok, problems]).toEqual([true, []])
    expect(notes.map(({ code }) => code)).toEqual(['ModeMismatch'])
    expect(notes[0]!.message).toContain('found one of TRAIN step 0')
  })
})

describe('an index file that names another worker’s event file', () => {
  const WORKERS = ['worker_0', 'worker_1']

  function workers(names: readonly string[] = WORKERS): string {
    const writer = new TrialWriter(directory, { checksum: 'true', numWorkers: names.length })
    for (const [i, worker] of names.entries()) {
      writer.step({ step: 1, worker, tensors: [{ name: 'x', dtype: 'float32', shape: [1], values: [i] }] })
    }
    writer.end()
    return directory
  }

  function pointElsewhere(worker: string, other: string): void {
    const file = join(directory, indexFilePath(1, worker))
    const [mine, others] = [eventFilePath(1, worker), eventFilePath(1, other)]
    writeFileSync(file, readFileSync(file, 'utf8').replace(mine, others))
  }

  it('is told of, with both workers', async () => {
    workers()
    pointElsewhere('worker_0', 'worker_1')
    const { problems, notes } = await verifyTrial(directory)
    expect(notes).toEqual([])
    expect(problems).toMatchObject([
      {
        code: 'BadIndexFile',
        file: indexFilePath(1, 'worker_0'),
        step: 1,
        expected: 'an event file of worker "worker_0", whose index file this is by its name',
        found: `that of worker "worker_1", ${eventFilePath(1, 'worker_1')}`,
        lost: 'what worker_0 saved at step 1 is not found',
      },
    ])
    expect(problems[0]!.advice).toContain('trialscan repair')
  })

  it('is told of where two have changed places', async () => {
    workers()
    pointElsewhere('worker_0', 'worker_1')
    pointElsewhere('worker_1', 'worker_0')
    const { problems } = await verifyTrial(directory)
    expect(problems.map(({ code, file }) => [code, file])).toEqual(
      WORKERS.map(worker => ['BadIndexFile', indexFilePath(1, worker)]),
    )
  })

  it('is a note where the worker’s own index file is not there, or one of them is a device', async () => {
    workers()
    pointElsewhere('worker_0', 'worker_1')
    rmSync(join(directory, indexFilePath(1, 'worker_1')))
    const file = indexFilePath(1, 'worker_0')
    expect((await verifyTrial(directory)).notes).toMatchObject([{ code: 'OtherWorker', file, step: 1 }, {}])

    directory = `${directory}-devices`
    const device = '/replica:0/task:0/device:GPU:0'
    workers(['worker_0', device])
    pointElsewhere('worker_0', device)
    expect((await verifyTrial(directory)).notes).toMatchObject([{ code: 'OtherWorker', file }])
  })

  it('is a fault where it is another device’s', async () => {
    const devices = ['/replica:0/task:0/device:GPU:0', '/replica:0/task:0/device:GPU:1'] as const
    workers(devices)
    pointElsewhere(devices[1], devices[0])
    expect((await verifyTrial(directory)).problems).toMatchObject([
      { code: 'BadIndexFile', file: indexFilePath(1, devices[1]) },
    ])
  })
})

/** Of each corruption: code, file (E: the event file, I: the index file of the step) and offset of its problems. */
const FOUND: Readonly<Record<string, readonly string[]>> = {
  'event file cut inside a payload': ['TruncatedRecord E 401'],
  'event file cut inside a frame head': ['TruncatedRecord E 401'],
  'event file cut between records': ['EntryPastEnd I 513'],
  'event file without its last byte': ['TruncatedRecord E 513'],
  'event file empty': ['EntryPastEnd I 0'],
  'event file missing': ['EventFileMissing I'],
  'event file is a directory': ['Unreadable E'],
  'event file is a link to itself': ['Unreadable E'],
  'event file unreadable': ['Unreadable E'],
  'wrong checksum of the length': ['BadLengthChecksum E 203'],
  'wrong checksum of the payload': ['BadPayloadChecksum E 303'],
  'one bit of an element flipped': ['BadPayloadChecksum E 303'],
  'framed length past the file': ['BrokenFrame E 195'],
  'framed length of 2^63': ['BrokenFrame E 195'],
  'framed length of 2^32 and what is right': ['BrokenFrame E 195'],
  'framed length one too small': ['BrokenFrame E 195'],
  'framed length zero': ['BrokenFrame E 195'],
  'index entry of another tensor': ['TagMismatch I 0', 'RecordNotIndexed E 195'],
  'index entry past the end': ['RecordNotIndexed E 195', 'EntryPastEnd I 1000000'],
  'index entry that ends past the end': ['LengthMismatch I 513'],
  'index entry into the middle of a record': [
    'RecordNotIndexed E 195',
    'EntryNotARecord I 200',
    'EntriesOverlap I 307',
  ],
  'index entry of two records': ['LengthMismatch I 195', 'EntriesOverlap I 307'],
  'index entry shorter than a frame': ['LengthMismatch I 195'],
  'index entry of a negative start': ['BadIndexFile I'],
  'index entry of a fractional length': ['BadIndexFile I'],
  'index entry of a start beyond 2^53': ['BadIndexFile I'],
  'index entry without a name': ['BadIndexFile I'],
  'index file cut': ['BadIndexFile I 224'],
  'index file empty': ['BadIndexFile I 0'],
  'index file of another kind': ['BadIndexFile I'],
  'index file without meta': ['BadIndexFile I'],
  'index file of an unknown mode': ['BadIndexFile I'],
  'index file without mode step': ['BadIndexFile I'],
  'index file with tensors but no event file': ['BadIndexFile I'],
  'index file that leads out of the trial': ['UnsafePath I'],
  'index file of binary rubbish': ['BadIndexFile I'],
  'payload empty': ['NoTensor I 195'],
  'payload of zeros': ['MalformedEvent E 207'],
  'payload of ones': ['MalformedEvent E 217'],
  'field that ends past the payload': ['MalformedEvent E 208'],
  'value that ends past the summary': ['MalformedEvent E 210'],
  'field length of 2^64-1': ['MalformedEvent E 208'],
  'field length of 2^31': ['MalformedEvent E 208'],
  'varint of eleven bytes': ['MalformedEvent E 218'],
  'varint that never ends': ['MalformedEvent E 210'],
  'wire type 6': ['MalformedEvent E 208'],
  'wire type 7': ['MalformedEvent E 208'],
  'field number 0': ['MalformedEvent E 207'],
  'group that never ends': ['MalformedEvent E 210'],
  'group ended by another': ['NoTensor I 195'],
  'group ended but not begun': ['MalformedEvent E 208'],
  'groups 10,000 deep': ['NoTensor I 195'],
  'summary of the wrong wire type': ['NoTensor I 195'],
  'summary without values': ['NoTensor I 195'],
  'value without tensor': ['NoTensor I 195'],
  'record of another tensor': ['TagMismatch I 195', 'RecordNotIndexed E 195'],
  'unknown dtype': ['UnknownDType E 207'],
  'dtype without a size (DT_QINT8)': ['UnknownDType E 207'],
  'dtype of a reference (101)': ['UnknownDType E 207'],
  'no dtype, but bytes': ['UnknownDType E 207'],
  'shape of more elements than bytes': ['ShapeMismatch E 281'],
  'shape of fewer elements than bytes': ['ShapeMismatch E 281'],
  'bytes that are no whole number of elements': ['ShapeMismatch E 266'],
  'negative dimension': ['BadShape E 238'],
  'dimensions whose product overflows': ['BadShape E 207'],
  'one value for 2^50 elements': [],
  'more typed values than elements': ['ShapeMismatch E 207'],
  'more strings than elements': ['ShapeMismatch E 319'],
  'directory that is no trial': ['throws MissingCollectionFiles'],
  'directory that is not there': ['throws NotFound'],
  'collections files missing': ['MissingCollectionFiles collections'],
  'collections file cut': ['BadCollectionsFile collections/000000000/worker_0_collections.json 60'],
  'collections file without number of workers': ['BadCollectionsFile collections/000000000/worker_0_collections.json'],
  'files still being written': [
    'LeftoverTemporary index/000000000/000000000007_worker_0.json.tmp',
    'LeftoverTemporary events/000000000007/000000000007_worker_0.tfevents.tmp',
  ],
  'event file longer than its index': ['TruncatedRecord E 603'],
  'event file without index file': [],
  'files that belong to nobody': [],
  'index file of an odd layout': [],
  'index file without shape payload': [],
}

describe(`each of ${corruptions.length} corruptions`, () => {
  it('is in the table', () => {
    expect(Object.keys(FOUND)).toEqual(corruptions.map(({ name }) => name))
    expect(corruptions.length).toBeGreaterThanOrEqual(79)
  })

  it.each(corruptions)('is found where it is: $name', async ({ name, apply, needsUnprivilegedUser }) => {
    apply(plain())
    // Root may read what nobody may.
    const isRoot = process.getuid?.() === 0
    const expected = needsUnprivilegedUser && isRoot ? [] : FOUND[name]!
    if (expected[0]?.startsWith('throws ')) {
      await expect(verifyTrial(directory)).rejects.toMatchObject({ code: expected[0].slice('throws '.length) })
      return
    }
    const verification = await verifyTrial(directory)
    expect(places(verification)).toEqual(expected)
    expect(verification.ok).toBe(expected.length === 0)
    for (const problem of verification.problems) {
      expect(VERIFY_CODES).toContain(problem.code)
      expect(problem.message).toContain(`expected ${problem.expected}, found ${problem.found}`)
      expect(problem.advice).not.toBe('')
      // An overlap is lost with the entry that is wrong.
      if (problem.code !== 'EntriesOverlap') expect(problem.lost).not.toBe('')
    }
    // What is right is kept: of the other steps all is counted.
    expect(verification.stats.records).toBeGreaterThanOrEqual(2 * PLAIN_TENSORS.length)
  })
})

/** What a scan meets where an index entry points, and what verifying, which sees the file as a whole, tells of it. */
const SEEN_OTHERWISE: readonly (readonly [scan: string, verify: string])[] = [
  ['TruncatedRecord', 'EntryPastEnd'],
  ['BadLengthChecksum', 'EntryNotARecord'],
  ['LengthMismatch', 'BrokenFrame'],
  ['NotFound', 'EventFileMissing'],
  ['NotAFile', 'Unreadable'],
  ['Unavailable', 'Unreadable'],
  ['Denied', 'Unreadable'],
]

it.each(part(corruptions, (_, i) => i % 4 === 0))(
  'one fault has one name, in a row of a scan, too: $name',
  async ({ apply }) => {
    apply(plain())
    const codesOfScan = async (): Promise<string[]> => {
      const trial = await createTrial(directory)
      const rows = await rowsOf(trial, { checkLevel: 'full' })
      await trial.close()
      return rows.flatMap(({ error }) => error?.code ?? [])
    }
    const codeOf = (error: { code: string }): string[] => [error.code]
    const scanned = await codesOfScan().catch(codeOf)
    const verified = await verifyTrial(directory).then(({ problemCounts }) => Object.keys(problemCounts), codeOf)
    for (const code of new Set(scanned)) {
      const names = [code, ...SEEN_OTHERWISE.flatMap(([scan, verify]) => (scan === code ? [verify] : []))]
      expect(verified.filter(name => names.includes(name))).not.toEqual([])
      // Where the same name could be given, it is.
      if (verified.includes(code)) expect(verified.filter(name => names.includes(name))).toEqual([code])
    }
  },
)

describe('of a trial it checks', () => {
  it('the framing of every record', async () => {
    const { start_idx } = locate(plain(), STEP, 'words')
    editEventFile(directory, STEP, bytes => bytes.writeUInt8(bytes.readUInt8(start_idx) ^ 0x40, start_idx))
    const { problems } = await verifyTrial(directory)
    expect(problems).toHaveLength(1)
    expect(problems[0]).toMatchObject({ code: 'BadLengthChecksum', file: EVENTS, offset: start_idx + 8 })
    expect(problems[0]!.lost).toBe('tensor "words" at step 1')
  })

  it('the payload’s checksum, where it is a true one', async () => {
    const writer = new TrialWriter(directory, { checksum: 'constant' })
    const tensors: StepTensor[] = [{ name: 'a', dtype: 'float32', shape: [2], values: [1, 2] }]
    writer.step({ step: 0, tensors })
    writer.end()
    expect((await verifyTrial(directory)).ok).toBe(true)
    // An element changes: nobody can know. Then the checksum is neither the constant nor true.
    const path = join(directory, eventFilePath(0, WORKER))
    const bytes = readFileSync(path)
    bytes[bytes.indexOf(Buffer.from(Float32Array.of(1, 2).buffer))]! ^= 1
    writeFileSync(path, bytes)
    expect((await verifyTrial(directory)).ok).toBe(true)
    bytes.writeUInt32LE(CONSTANT_CRC ^ 1, bytes.length - 4)
    writeFileSync(path, bytes)
    const { problems } = await verifyTrial(directory)
    expect(problems.map(({ code, tensor }) => [code, tensor])).toEqual([['BadPayloadChecksum', 'a']])
  })

  it('how many payloads have no checksum that could be held against them', async () => {
    const writer = new TrialWriter(directory, { checksum: 'constant' })
    const tensors: StepTensor[] = [
      { name: 'a', dtype: 'float32', shape: [2], values: [1, 2] },
      // One that streams.
      { name: 'b', dtype: 'uint8', shape: [3 << 20], data: new Uint8Array(3 << 20) },
      { name: 'c', dtype: 'float32', shape: [], values: [0] },
    ]
    writer.step({ step: 0, tensors })
    writer.end()
    for (const deep of [false, true]) {
      const { stats } = await verifyTrial(directory, { deep, memory: 4 << 20, threads: 0 })
      expect([stats.records, stats.recordsWithoutChecksum]).toEqual([3, 3])
    }
    plain()
    const count = async () => (await verifyTrial(directory)).stats.recordsWithoutChecksum
    expect(await count()).toBe(0)
    for (const [i, name] of ['words', 'fc.bias'].entries()) {
      const { start_idx, length } = locate(directory, STEP, name)
      editEventFile(directory, STEP, bytes => bytes.writeUInt32LE(CONSTANT_CRC, start_idx + length - 4))
      expect(await count()).toBe(i + 1)
    }
  })

  it('the bytes of a tensor against its shape and type', async () => {
    replaceTensor(plain(), STEP, 'fc.bias', { dtype: 'float64', shape: [3], content: new Uint8Array(23) })
    const { problems } = await verifyTrial(directory)
    expect(problems).toHaveLength(1)
    expect(problems[0]).toMatchObject({ code: 'ShapeMismatch', tensor: 'fc.bias', step: 1 })
    expect(problems[0]!.expected).toContain('24 bytes')
    expect(problems[0]!.found).toBe('23')
  })

  it('every index entry: tag, length, step', async () => {
    plain()
    const index = readIndex(directory, STEP)
    writeIndex(directory, 2, { ...index, meta: { ...index.meta, mode_step: 2 } })
    rmSync(join(directory, eventFilePath(2, WORKER)))
    const { problems } = await verifyTrial(directory)
    expect(problems.map(({ code }) => code)).toEqual(Array(5).fill('StepMismatch'))
    expect(problems[0]!.file).toBe(indexFilePath(2, WORKER))
    expect(problems[0]!.found).toBe('one of step 1')
  })

  it('an index file without its event file', async () => {
    rmSync(join(plain(), EVENTS))
    const { problems } = await verifyTrial(directory)
    expect(problems).toHaveLength(1)
    expect(problems[0]).toMatchObject({ code: 'EventFileMissing', file: INDEX, step: 1 })
    expect(problems[0]!.lost).toContain('"fc.weight"')
  })

  /** Files of the trial, a second apart. */
  function writtenInOrder(paths: readonly string[]): void {
    for (const [i, path] of paths.entries()) utimesSync(join(directory, path), 1e9 + i, 1e9 + i)
  }

  it('an event file without its index file', async () => {
    rmSync(join(plain(), INDEX))
    const { problems } = await verifyTrial(directory)
    expect(places({ problems } as Verification)).toEqual(['IndexFileMissing E'])
    expect(problems[0]!.lost).toContain('5 tensors')
    // Of a running job, that of the last step may still come.
    rmSync(join(directory, 'training_job_end.ts'))
    const paths = readdirSync(join(directory, 'events')).map(step => eventFilePath(Number(step), WORKER))
    writtenInOrder(paths)
    expect((await verifyTrial(directory)).ok).toBe(false)
    // If steps come in no order, the last is the one that was written last.
    writtenInOrder([...paths, eventFilePath(1, WORKER)])
    expect((await verifyTrial(directory)).notes.map(({ code }) => code).sort()).toEqual([
      'IndexFileMissing',
      'NoEndMarker',
    ])
    // A copy may have one time for all, which tells nothing; and of a worker one step alone may be unfinished.
    for (const path of paths) utimesSync(join(directory, path), 1e9, 1e9)
    expect((await verifyTrial(directory)).problems.map(({ code }) => code)).toEqual(['IndexFileMissing'])
    const other = readFileSync(join(directory, indexFilePath(0, WORKER)))
    rmSync(join(directory, indexFilePath(0, WORKER)))
    for (const path of paths.slice(0, 2)) utimesSync(join(directory, path), 2e9, 2e9)
    expect((await verifyTrial(directory)).problems.map(({ step }) => step)).toEqual([0, 1])
    writeFileSync(join(directory, indexFilePath(0, WORKER)), other)
    rmSync(join(directory, indexFilePath(2, WORKER)))
    rmSync(join(directory, eventFilePath(2, WORKER)))
    const running = await verifyTrial(directory)
    expect(running.ok).toBe(true)
    expect(running.notes.map(({ code }) => code).sort()).toEqual(['IndexFileMissing', 'NoEndMarker'])
  })

  it('index files of a running job, of which only a worker’s last one may still come', async () => {
    const writer = new TrialWriter(directory, { numWorkers: 2 })
    for (let step = 0; step < 4; step++) {
      for (const worker of [0, 1])
        writer.step({ step, worker, tensors: [{ name: 'a', dtype: 'int8', shape: [1], values: [1] }] })
    }
    for (const step of [0, 1, 2, 3]) rmSync(join(directory, indexFilePath(step, 'worker_1')))
    rmSync(join(directory, indexFilePath(2, 'worker_0')))
    rmSync(join(directory, indexFilePath(3, 'worker_0')))
    writtenInOrder([0, 1, 2, 3].flatMap(step => [0, 1].map(worker => eventFilePath(step, `worker_${worker}`))))
    const { problems, notes } = await verifyTrial(directory)
    const missing = (found: Verification['problems']) =>
      found.filter(({ code }) => code === 'IndexFileMissing').map(({ file }) => file)
    expect(missing(problems)).toEqual([
      eventFilePath(0, 'worker_1'),
      eventFilePath(1, 'worker_1'),
      eventFilePath(2, 'worker_0'),
      eventFilePath(2, 'worker_1'),
    ])
    expect(missing(notes)).toEqual([eventFilePath(3, 'worker_0'), eventFilePath(3, 'worker_1')])
  })

  it('gaps between the entries', async () => {
    const index = readIndex(plain(), STEP)
    const tensor_payload = index.tensor_payload.filter(({ tensorname }) => tensorname !== 'words')
    writeIndex(directory, STEP, { ...index, tensor_payload })
    const { problems } = await verifyTrial(directory)
    expect(places({ problems } as Verification)).toEqual(['RecordNotIndexed E 307'])
    expect(problems[0]!.tensor).toBe('words')
  })

  it('overlaps of entries', async () => {
    const { length } = locate(plain(), STEP, 'fc.weight')
    editEntry(directory, STEP, 'fc.weight', { length: length + 1 })
    const { problemCounts } = await verifyTrial(directory)
    expect(problemCounts).toEqual({ LengthMismatch: 1, EntriesOverlap: 1 })
    // The same entry twice is one, too.
    const index = readIndex(PLAIN_TRIAL, STEP)
    writeIndex(directory, STEP, { ...index, tensor_payload: [index.tensor_payload[0]!, ...index.tensor_payload] })
    expect((await verifyTrial(directory)).problemCounts).toEqual({ EntriesOverlap: 1 })
  })

  it('steps that not all workers wrote: a note', async () => {
    const writer = new TrialWriter(directory, { numWorkers: 3 })
    const tensors: StepTensor[] = [{ name: 'a', dtype: 'float32', shape: [1], values: [1] }]
    for (const worker of [0, 1, 2]) writer.step({ step: 0, worker, tensors })
    writer.step({ step: 1, worker: 1, tensors })
    writer.end()
    const { ok, notes } = await verifyTrial(directory)
    expect(ok).toBe(true)
    expect(notes).toHaveLength(1)
    expect(notes[0]).toMatchObject({ code: 'StepIncomplete', step: 1 })
    expect(notes[0]!.found).toBe('that of 1, without worker_0, worker_2')
  })

  it('collections that name tensors that were never saved: a note', async () => {
    const collections = { mine: { tensorNames: ['a', 'b', 'reduced'] } }
    const writer = new TrialWriter(directory, { collections })
    writer.step({
      step: 0,
      tensors: [
        { name: 'a', dtype: 'float32', shape: [1], values: [1] },
        { name: 'reduced', reductions: { mean: 1 } },
      ],
    })
    writer.end()
    const { ok, notes } = await verifyTrial(directory)
    expect(ok).toBe(true)
    expect(notes.map(({ code, tensor }) => [code, tensor])).toEqual([['TensorNeverSaved', 'b']])
    expect(notes[0]!.expected).toContain('"mine"')
  })

  it('temporary files: left over where the job has ended, a note where it runs', async () => {
    const temporary = `${eventFilePath(7, WORKER)}.tmp`
    mkdirSync(dirname(join(plain(), temporary)), { recursive: true })
    writeFileSync(join(directory, temporary), 'half')
    expect(places(await verifyTrial(directory))).toEqual([`LeftoverTemporary ${temporary}`])
    rmSync(join(directory, 'training_job_end.ts'))
    const { ok, notes } = await verifyTrial(directory)
    expect(ok).toBe(true)
    expect(notes.map(({ code }) => code).sort()).toEqual(['NoEndMarker', 'TemporaryFile'])
  })

  it('the end marker', async () => {
    rmSync(join(plain(), 'training_job_end.ts'))
    const { ok, notes } = await verifyTrial(directory)
    expect(ok).toBe(true)
    expect(notes.map(({ code }) => code)).toEqual(['NoEndMarker'])
  })

  it('collections files', async () => {
    const file = 'collections/000000000/worker_0_collections.json'
    writeFileSync(join(plain(), file), '{"collections": 3}')
    expect(places(await verifyTrial(directory))).toEqual([`BadCollectionsFile ${file}`])
    rmSync(join(directory, file))
    expect(places(await verifyTrial(directory))).toEqual(['MissingCollectionFiles collections'])
  })
})

describe('trials of other kinds', () => {
  it('without an index are checked by their event files', async () => {
    rmSync(join(plain(), 'index'), { recursive: true })
    const { ok, notes, stats } = await verifyTrial(directory)
    expect([ok, stats.records]).toEqual([true, 15])
    expect(notes.map(({ code }) => code)).toEqual(['NoIndex'])
    truncateSync(join(directory, EVENTS), 420)
    expect(places(await verifyTrial(directory))).toEqual(['TruncatedRecord E 401'])
  })

  it('of Tornasole', async () => {
    cpSync(fixtureTrial('tornasole-2019').directory, directory, { recursive: true })
    const before = await verifyTrial(directory)
    expect([before.ok, before.notes]).toEqual([true, []])
    const index = readdirSync(join(directory, 'index'), { recursive: true, encoding: 'utf8' }).find(path =>
      path.endsWith('.csv'),
    )!
    const text = readFileSync(join(directory, 'index', index), 'utf8')
    const shifted = text.replace(/(\d+),(\d+)\n/, (_, start, length) => `${Number(start) + 1},${length}\n`)
    writeFileSync(join(directory, 'index', index), shifted)
    const { problemCounts } = await verifyTrial(directory)
    expect(problemCounts).toMatchObject({ EntryNotARecord: 1, RecordNotIndexed: 1 })
  })

  it('of TensorBoard', async () => {
    const file = 'run/events.out.tfevents.1.host'
    mkdirSync(join(directory, 'run'), { recursive: true })
    const path = join(directory, file)
    const records = [
      encodeEvent({ wallTime: 1, step: 0, fileVersion: 'brain.Event:2' }),
      ...[0, 1, 2].map(step => encodeEvent({ wallTime: 1, step, values: [{ tag: 'loss', simpleValue: step }] })),
    ].map(payload => frameRecord(payload, { checksum: 'true' }))
    writeFileSync(path, Buffer.concat(records))
    const good = await verifyTrial(directory)
    expect(told(good)).toMatchObject({ ok: true, notes: [], records: 4, tensors: 3 })
    appendFileSync(path, records[1]!.subarray(0, 15))
    expect(places(await verifyTrial(directory))).toEqual([`TruncatedRecord ${file} ${Buffer.concat(records).length}`])
  })

  it.each(whenLong)('of TensorBoard, with more in a file than one job looks at (%s)', async () => {
    const values = Array.from({ length: 10_000 }, (_, i) => ({ tag: `tag${i % 100}`, simpleValue: i }))
    const record = frameRecord(encodeEvent({ wallTime: 1, step: 1, values }), { checksum: 'true' })
    const records = Array.from({ length: 110 }, () => Buffer.from(record))
    // In the part that the second job looks at.
    const last = records.at(-1)!
    last.writeUInt8(last[last.length - 1]! ^ 1, last.length - 1)
    mkdirSync(directory)
    const file = 'events.out.tfevents.1.host'
    writeFileSync(join(directory, file), Buffer.concat(records))
    const verification = await verifyTrial(directory, { threads: 0 })
    expect(verification.stats).toMatchObject({ records: 110, tensors: 1_100_000 })
    expect(places(verification)).toEqual([`BadPayloadChecksum ${file} ${110 * record.length - 4}`])
  })

  it('on S3, damaged ones too', async () => {
    corruptions.find(({ name }) => name === 'wrong checksum of the length')!.apply(plain())
    const server = await FaultyS3.start()
    try {
      for (const path of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
        if (statSync(join(directory, path)).isFile())
          server.objects.set(`t/${path}`, readFileSync(join(directory, path)))
      }
      const there = await verifyTrial('s3://bucket/t', { s3: server.options })
      expect(told(there)).toEqual(told(await verifyTrial(directory)))
      expect(places(there)).toEqual(['BadLengthChecksum E 203'])
      expect(there.stats.traffic.getRequests).toBeGreaterThan(0)
    } finally {
      await server.stop()
    }
  })
})

describe('the result', () => {
  /** Several large files, one of which has a record of two parts, and damage in most of them. */
  function largeTrial(): string {
    const writer = new TrialWriter(directory, { checksum: 'true' })
    const noise = (byteLength: number) => Uint8Array.from({ length: byteLength }, (_, i) => (i * 2_654_435_761) >>> 24)
    const many = Array.from(
      { length: 40 },
      (_, i): StepTensor => ({ name: `t${i}`, dtype: 'uint8', shape: [MIB], data: noise(MIB) }),
    )
    const parts: StepTensor = { name: 'parts', dtype: 'uint8', shape: [20 * MIB], data: noise(20 * MIB) }
    writer.step({ step: 0, tensors: many })
    writer.step({ step: 1, tensors: [parts, ...many.slice(0, 5)] })
    writer.step({ step: 2, tensors: many.slice(0, 3) })
    writer.end()
    editEventFile(directory, 0, bytes => bytes.writeUInt8(bytes[25 * MIB]! ^ 1, 25 * MIB))
    const { start_idx } = locate(directory, 0, 't8')
    editEventFile(directory, 0, bytes => bytes.writeUInt8(bytes[start_idx]! ^ 1, start_idx))
    editEventFile(directory, 1, bytes => bytes.writeUInt8(bytes[19 * MIB]! ^ 1, 19 * MIB))
    editEntry(directory, 0, 't30', { start_idx: locate(directory, 0, 't30').start_idx + 3 })
    truncateSync(join(directory, eventFilePath(2, WORKER)), 2 * MIB)
    return directory
  }

  it.each(whenLong)('is the same on any number of threads', async () => {
    largeTrial()
    const results: Verification[] = []
    for (const threads of [0, 1, 2]) results.push(await verifyTrial(directory, { threads }))
    results.push(await verifyTrial(directory, { threads: 0, memory: 4 * MIB }))
    for (const result of results) expect(told(result)).toEqual(told(results[0]!))
    const tensorAt = (step: number, offset: number): string =>
      readIndex(directory, step).tensor_payload.findLast(({ start_idx }) => start_idx <= offset)!.tensorname
    expect(results[0]!.problems.map(({ code, tensor, step, lost }) => [code, tensor ?? lost, step])).toEqual([
      ['BadLengthChecksum', 'tensor "t8" at step 0', 0],
      ['BadPayloadChecksum', tensorAt(0, 25 * MIB), 0],
      ['RecordNotIndexed', 't30', 0],
      ['EntryNotARecord', 't30', 0],
      ['EntriesOverlap', 't31', 0],
      ['BadPayloadChecksum', 'parts', 1],
      ['TruncatedRecord', 'tensors "t1", "t2" at step 2', 2],
    ])
  })

  it('of a file cut into ranges follows the records, not the index, where they disagree', async () => {
    const writer = new TrialWriter(directory, { checksum: 'true' })
    const tensors = Array.from(
      { length: 40 },
      (_, i): StepTensor => ({ name: `t${i}`, dtype: 'uint8', shape: [MIB], data: new Uint8Array(MIB) }),
    )
    writer.step({ step: 0, tensors })
    writer.end()
    // All entries a little too far: no range begins at a record.
    const index = readIndex(directory, 0)
    writeIndex(directory, 0, {
      ...index,
      tensor_payload: index.tensor_payload.map(entry => ({ ...entry, start_idx: entry.start_idx + 5 })),
    })
    const { problemCounts, stats } = await verifyTrial(directory, { threads: 0 })
    expect(stats.records).toBe(40)
    expect(problemCounts).toEqual({ EntryNotARecord: 40, RecordNotIndexed: 40 })
  })

  it('tells 100 problems of a file one by one, and counts the others', async () => {
    const writer = new TrialWriter(directory, { checksum: 'true' })
    const tensors = Array.from(
      { length: 500 },
      (_, i): StepTensor => ({ name: `t${i}`, dtype: 'int8', shape: [1], values: [1] }),
    )
    writer.step({ step: 0, tensors })
    writer.end()
    // Every payload has another checksum.
    const entries = readIndex(directory, 0).tensor_payload
    editEventFile(directory, 0, bytes => {
      for (const { start_idx, length } of entries)
        bytes.writeUInt8(bytes[start_idx + length - 1]! ^ 1, start_idx + length - 1)
    })
    const seen: VerifyProblem[] = []
    const { problems, problemCounts } = await verifyTrial(directory, { onProblem: problem => void seen.push(problem) })
    expect(problemCounts).toEqual({ BadPayloadChecksum: 500 })
    expect(problems).toHaveLength(100)
    expect(seen).toEqual(problems)
  })

  it('tells as many of an index file, whatever is told of its event file in between', async () => {
    const writer = new TrialWriter(directory)
    const tensors = Array.from(
      { length: 300 },
      (_, i): StepTensor => ({ name: `t${i}`, dtype: 'int8', shape: [1], values: [1] }),
    )
    writer.step({ step: 0, tensors })
    writer.end()
    const index = readIndex(directory, 0)
    const tensor_payload = index.tensor_payload.map(entry => ({ ...entry, start_idx: entry.start_idx + 1 }))
    writeIndex(directory, 0, { ...index, tensor_payload })
    const { problems, problemCounts } = await verifyTrial(directory)
    expect(problemCounts).toEqual({ EntryNotARecord: 300, RecordNotIndexed: 300 })
    expect(problems.filter(({ code }) => code === 'EntryNotARecord')).toHaveLength(100)
    expect(problems.filter(({ code }) => code === 'RecordNotIndexed')).toHaveLength(100)
  })

  it.each(whenLong)('is there soon for an index file that lies about 200,000 places (%s)', async () => {
    const index = readIndex(plain(), STEP)
    const far = Array.from({ length: 200_000 }, (_, i) => ({
      tensorname: `t${i}`,
      start_idx: i * 2 ** 24,
      length: 100,
    }))
    writeIndex(directory, STEP, { ...index, tensor_payload: [...index.tensor_payload, ...far] })
    const { problemCounts, stats } = await verifyTrial(directory)
    expect(stats.records).toBe(15)
    expect(problemCounts).toEqual({ EntryPastEnd: 1, EntriesOverlap: 1, LengthMismatch: 1, TagMismatch: 1 })
  })

  it('ends with the signal’s reason', async () => {
    plain()
    const reason = new Error('enough')
    await expect(verifyTrial(directory, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    const controller = new AbortController()
    corruptions.find(({ name }) => name === 'wrong checksum of the length')!.apply(directory)
    const abort = () => controller.abort(reason)
    const many = verifyTrial(directory, { threads: 0, signal: controller.signal, onProblem: abort })
    // The one job was done by then; what is there is told.
    await expect(many).resolves.toMatchObject({ ok: false })
  })

  it('is never more than an error where there is no trial', async () => {
    mkdirSync(directory)
    await expect(verifyTrial(directory)).rejects.toMatchObject({ code: 'MissingCollectionFiles' })
    await expect(verifyTrial(join(directory, 'nowhere'))).rejects.toMatchObject({ name: 'StoreError' })
    await expect(verifyTrial(directory, { threads: -1 })).rejects.toMatchObject({ name: 'UsageError' })
  })

  it('leaves the trial as it is', async () => {
    plain()
    const state = () =>
      readdirSync(directory, { recursive: true, encoding: 'utf8' })
        .map(path => [path, statSync(join(directory, path)).mtimeMs])
        .sort()
    const before = state()
    await verifyTrial(directory, { deep: true })
    expect(state()).toEqual(before)
  })
})

describe('what readers stumble over', () => {
  /** A record behind those of the step, and an index entry for it. */
  function append(payload: Uint8Array, tensorname: string): void {
    const bytes = frameRecord(payload, { checksum: 'true' })
    const start_idx = statSync(join(directory, EVENTS)).size
    appendFileSync(join(directory, EVENTS), bytes)
    const index = readIndex(directory, STEP)
    const tensor_payload = [...index.tensor_payload, { tensorname, start_idx, length: bytes.length }]
    writeIndex(directory, STEP, { ...index, tensor_payload })
  }
  const tensor = { dtype: 'float32', shape: [], values: [1], dimNames: false } as const
  const event = encodeEvent({ wallTime: 1, step: STEP, tag: 'zzzz', mode: 'TRAIN', modeStep: STEP, tensor })

  it('is a tag that is not UTF-8, and not one with a replacement character', async () => {
    plain()
    const at = Buffer.from(event).indexOf('zzzz')
    append(
      encodeEvent({ wallTime: 1, step: STEP, tag: '\ufffdzzz', mode: 'TRAIN', modeStep: STEP, tensor }),
      '\ufffdzzz',
    )
    expect((await verifyTrial(directory)).problems.map(({ code }) => code)).toEqual([])
    append(
      event.map((byte, i) => (i === at ? 0xff : byte)),
      '\ufffdzzz',
    )
    const { problems } = await verifyTrial(directory)
    expect(problems.map(({ code, tensor }) => [code, tensor])).toEqual([['BadText', '\ufffdzzz']])
  })

  it('is a histogram that is none', async () => {
    plain()
    const histogram = { min: 0, max: 1, num: 1, sum: 1, sumSquares: 1, bucketLimit: [1, 2], bucket: [0, 1] }
    const good = encodeEvent({ wallTime: 1, step: STEP, tag: 'h', mode: 'TRAIN', modeStep: STEP, histogram })
    append(good, 'h')
    expect((await verifyTrial(directory)).ok).toBe(true)
    // The length of the packed bucket limits: more than there is.
    const at = Buffer.from(good).lastIndexOf(Buffer.of(0x32, 16))
    append(
      good.map((byte, i) => (i === at + 1 ? 127 : byte)),
      'h',
    )
    const { problems } = await verifyTrial(directory)
    expect(problems.map(({ code, tensor }) => [code, tensor])).toEqual([['MalformedEvent', 'h']])
  })

  it('is no histogram whose tag begins with a byte order mark', async () => {
    plain()
    const histogram = { min: 0, max: 1, num: 1, sum: 1, sumSquares: 1, bucketLimit: [1], bucket: [1] }
    append(
      encodeEvent({ wallTime: 1, step: STEP, tag: '\ufeffh', mode: 'TRAIN', modeStep: STEP, histogram }),
      '\ufeffh',
    )
    expect((await verifyTrial(directory)).problems).toEqual([])
  })

  it('is told in the order of the file, and hides no record behind it', async () => {
    const histogram = { min: 0, max: 1, num: 1, sum: 1, sumSquares: 1, bucketLimit: [1, 2], bucket: [0, 1] }
    const good = encodeEvent({ wallTime: 1, step: 1, values: [{ tag: 'h', histogram }] })
    const at = Buffer.from(good).lastIndexOf(Buffer.of(0x32, 16))
    const bad = good.map((byte, i) => (i === at + 1 ? 127 : byte))
    const numbers = [1, 2, 3, 4].map(simpleValue =>
      encodeEvent({ wallTime: 1, step: 1, values: [{ tag: `t${simpleValue}`, simpleValue }] }),
    )
    const [first, cut, ...others] = [bad, ...numbers].map(payload => frameRecord(payload, { checksum: 'true' }))
    mkdirSync(directory)
    // The second has lost some bytes: it reaches into the third, which is whole.
    writeFileSync(
      join(directory, 'events.out.tfevents.1.host'),
      Buffer.concat([first!, cut!.subarray(0, 14), cut!.subarray(18), ...others]),
    )
    const { problems } = await verifyTrial(directory)
    expect(problems.map(({ code, offset }) => [code, offset])).toEqual([
      ['MalformedEvent', 0],
      ['BrokenFrame', first!.length],
    ])
  })

  it('is a record of another step where there is no index', async () => {
    plain()
    rmSync(join(directory, 'index'), { recursive: true })
    const before = statSync(join(directory, EVENTS)).size
    const other = encodeEvent({ wallTime: 1, step: 7, tag: 'z', mode: 'TRAIN', modeStep: 7, tensor })
    appendFileSync(join(directory, EVENTS), frameRecord(other, { checksum: 'true' }))
    expect(places(await verifyTrial(directory))).toEqual([`StepMismatch E ${before}`])
  })

  it.each([
    ['leads out', '/etc/passwd'],
    ['leads to a device', '/dev/zero'],
    ['leads to itself', 'training_job_end.ts'],
  ])('is an end marker that %s', async (_, target) => {
    plain()
    rmSync(join(directory, 'training_job_end.ts'))
    symlinkSync(target, join(directory, 'training_job_end.ts'))
    const { problems } = await verifyTrial(directory)
    expect(problems.map(({ code, file }) => [code, file])).toEqual([['Unreadable', 'training_job_end.ts']])
  })
})

it('the step of a damaged record is what its index file says, wherever a bit flips', async () => {
  plain()
  const { start_idx, length } = locate(directory, STEP, 'fc.bias')
  for (let at = start_idx + 12; at < start_idx + length - 4; at++) {
    editEventFile(directory, STEP, bytes => bytes.writeUInt8(bytes.readUInt8(at) ^ 0x10, at))
    const { problems } = await verifyTrial(directory, { threads: 0 })
    expect(problems.map(({ code, step }) => [code, step])).toEqual([['BadPayloadChecksum', STEP]])
    editEventFile(directory, STEP, bytes => bytes.writeUInt8(bytes.readUInt8(at) ^ 0x10, at))
  }
})

describe('a deep look', () => {
  it('finds strings and tags that are none', async () => {
    const broken = Uint8Array.of(0x61, 0xff, 0x62)
    replaceTensor(plain(), STEP, 'words', { dtype: 'string', shape: [2], strings: ['fine', broken] })
    expect((await verifyTrial(directory)).ok).toBe(true)
    const { problems } = await verifyTrial(directory, { deep: true })
    expect(problems.map(({ code, tensor }) => [code, tensor])).toEqual([['BadText', 'words']])
  })

  it('notes bools that are neither 0 nor 1', async () => {
    replaceTensor(plain(), STEP, 'count', { dtype: 'bool', shape: [3], content: Uint8Array.of(0, 1, 2) })
    const { ok, notes } = await verifyTrial(directory, { deep: true })
    expect(ok).toBe(true)
    expect(notes.map(({ code, tensor }) => [code, tensor])).toEqual([['OddEncoding', 'count']])
  })

  it('holds saved reductions against the tensors beside them: rot that no checksum tells', async () => {
    cpSync(fixtureTrial('cnn-raw-and-reductions').directory, directory, { recursive: true })
    expect((await verifyTrial(directory, { deep: true })).ok).toBe(true)
    const entries = readIndex(directory, 0).tensor_payload
    const reduced = entries.find(({ tensorname }) => /^smdebug\/reductions\/[^/]+\/.*weight/.test(tensorname))!
    const tensor = reduced.tensorname.replace(/^smdebug\/reductions\/[^/]+\//, '')
    const { start_idx, length } = locate(directory, 0, tensor)
    // The exponent of an element in the middle of the record.
    editEventFile(directory, 0, bytes => {
      const at = start_idx + (length >> 1)
      for (let i = at; i < at + 4; i++) bytes[i] = 0x60
    })
    expect((await verifyTrial(directory)).ok).toBe(true)
    const { problems } = await verifyTrial(directory, { deep: true })
    expect(problems.length).toBeGreaterThan(0)
    expect(new Set(problems.map(({ code }) => code))).toEqual(new Set(['ReductionMismatch']))
    expect(new Set(problems.map(problem => problem.tensor))).toEqual(new Set([tensor]))
  })

  it('does so for tensors that stream, and knows PyTorch’s spread', async () => {
    const values = Float32Array.from({ length: 600_000 }, (_, i) => Math.sin(i))
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length
    const m2 = values.reduce((sum, value) => sum + (value - mean) ** 2, 0)
    const std = Math.sqrt(m2 / (values.length - 1))
    const write = (reductions: Readonly<Record<string, number>>) => {
      const writer = new TrialWriter(directory)
      const data = new Uint8Array(values.buffer)
      writer.step({ step: 0, tensors: [{ name: 'a', dtype: 'float32', shape: [values.length], data, reductions }] })
      writer.end()
    }
    write({ mean, std, max: 1, l2: Math.sqrt(m2 + mean * mean * values.length) })
    expect((await verifyTrial(directory, { deep: true })).problems).toEqual([])
    rmSync(directory, { recursive: true })
    write({ mean: mean + 0.1, std, max: 2 })
    const { problems } = await verifyTrial(directory, { deep: true })
    expect(problems.map(({ code, expected }) => [code, expected.split(' ')[0]])).toEqual([
      ['ReductionMismatch', 'mean'],
      ['ReductionMismatch', 'max'],
    ])
  })
})

describe('a deep look at reductions as frameworks compute them', () => {
  const step = (...tensors: StepTensor[]) => {
    const writer = new TrialWriter(directory)
    writer.step({ step: 0, tensors })
    writer.end()
  }
  const mismatches = async () => (await verifyTrial(directory, { deep: true })).problems.map(({ expected }) => expected)
  const matrix = { name: 'm', dtype: 'float32', shape: [2, 2], values: [1, 2, 3, 4] } as const

  it.each<[string, StepTensor]>([
    // numpy.linalg.norm of [[1, 2], [3, 4]] with ord=1 and ord=2.
    ['numpy’s norms of a matrix', { ...matrix, reductions: { l1: 6, l2: 5.4649857 } }],
    ['norms of its elements', { ...matrix, reductions: { l1: 10, l2: Math.sqrt(30), abs_l1: 10 } }],
    [
      'the absolute value of the lowest int8',
      {
        name: 'i',
        dtype: 'int8',
        shape: [2],
        values: [-128, 1],
        reductions: { abs_min: -128, abs_sum: -127, abs_mean: -63.5 },
      },
    ],
    [
      'a product of int64 that wraps',
      { name: 'i', dtype: 'int64', shape: [2], values: [2n ** 40n, 2n ** 30n], reductions: { prod: 0 } },
    ],
    ['a sum of uint8 in uint8', { name: 'u', dtype: 'uint8', shape: [2], values: [200, 100], reductions: { sum: 44 } }],
    [
      'a sum of uint8 in int64',
      { name: 'u', dtype: 'uint8', shape: [2], values: [200, 100], reductions: { sum: 300 } },
    ],
  ])('lets %s pass', async (_, tensor) => {
    step(tensor)
    expect(await mismatches()).toEqual([])
  })

  it.each<[string, StepTensor, string]>([
    ['norms that no matrix of these has', { ...matrix, reductions: { l1: 3.9 } }, 'l1 10'],
    ['norms that are too large', { ...matrix, reductions: { l2: 5.6 } }, 'l2 5.47'],
    ['norms of a vector that would do for a matrix', { ...matrix, shape: [4], reductions: { l1: 6 } }, 'l1 10'],
    [
      'a sum of integers',
      { name: 'u', dtype: 'uint8', shape: [2], values: [20, 10], reductions: { sum: 44 } },
      'sum 30',
    ],
    [
      'an absolute value of int8',
      { name: 'i', dtype: 'int8', shape: [2], values: [-127, 1], reductions: { abs_max: -127 } },
      'abs_max 127',
    ],
  ])('finds %s', async (_, tensor, expected) => {
    step(tensor)
    expect(await mismatches()).toEqual([expect.stringContaining(expected)])
  })

  it('holds those of a tensor that is saved twice in a step against either', async () => {
    const named = { name: 'a', dtype: 'float32', shape: [1] } as const
    step({ ...named, values: [1], reductions: { max: 1 } }, { ...named, values: [2], reductions: { max: 2 } })
    expect(await mismatches()).toEqual([])
    rmSync(directory, { recursive: true })
    step({ ...named, values: [1], reductions: { max: 1 } }, { ...named, values: [2], reductions: { max: 3 } })
    expect(await mismatches()).toEqual([expect.stringContaining('max 2')])
  })
})

it('what is no file, where one should be, is named', async () => {
  plain()
  const collections = readdirSync(join(directory, 'collections/000000000'))[0]!
  const paths = [INDEX, EVENTS, `collections/000000000/${collections}`, 'training_job_end.ts']
  for (const path of paths) {
    rmSync(join(directory, path))
    execFileSync('mkfifo', [join(directory, path)])
  }
  mkdirSync(dirname(join(directory, eventFilePath(9, WORKER))), { recursive: true })
  symlinkSync('nowhere', join(directory, eventFilePath(9, WORKER)))
  symlinkSync('/dev/zero', join(directory, 'index/000000000/000000000007_worker_0.json'))
  execFileSync('mkfifo', [join(directory, 'events/other')])
  const { problems } = await verifyTrial(directory)
  const unreadable = problems.filter(({ code }) => code === 'Unreadable').map(({ file }) => file)
  expect(unreadable.sort()).toEqual(
    [...paths, eventFilePath(9, WORKER), 'index/000000000/000000000007_worker_0.json'].sort(),
  )
  expect(problems.find(({ file }) => file === INDEX)?.found).toBe('a FIFO')
  // A copy of what is left.
  const out = `${directory}-clean`
  const { leftOut } = await repairTrial(directory, out)
  expect(new Set(leftOut.map(({ file }) => file))).toEqual(new Set(unreadable))
  expect((await verifyTrial(out)).ok).toBe(true)
})

it('a file of a step that can’t be is named', async () => {
  plain()
  const [index, events] = [INDEX, EVENTS]
  for (const [from, to] of [
    [index, 'index/000000000/-00000000001_algo-1.json'],
    [events, 'events/-00000000001/-00000000001_algo-1.tfevents'],
    [events, `events/0/${'9'.repeat(20)}_algo-1.tfevents`],
  ] as const) {
    mkdirSync(dirname(join(directory, to)), { recursive: true })
    cpSync(join(directory, from), join(directory, to))
  }
  const { problems } = await verifyTrial(directory)
  expect(problems.map(({ code, file }) => [code, file])).toEqual([
    ['BadStep', 'index/000000000/-00000000001_algo-1.json'],
    ['BadStep', 'events/-00000000001/-00000000001_algo-1.tfevents'],
    ['BadStep', `events/0/${'9'.repeat(20)}_algo-1.tfevents`],
  ])
})

describe('docs/verify.md', () => {
  it('has every code in its table', () => {
    const text = readFileSync(join(ROOT, 'docs/verify.md'), 'utf8')
    const codes = [...text.matchAll(/^\| `(\w+)` \|/gm)].map(([, code]) => code!)
    expect(codes.sort()).toEqual([...VERIFY_CODES].sort())
  })
})
