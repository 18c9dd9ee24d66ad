/** Event files without an index, damaged amid: what `repair` keeps is read by all. */

import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { closePools, createTrial, importTensorBoard, readValues, repairTrial, type Trial } from '#dist/index.js'
import { encodeEvent, eventFilePath, frameRecord } from '../fixtures/event-writer.js'
import { trialscan } from './cli/run.js'
import { fixtureTrial } from './support/golden.js'
import { scratchDirectory } from './support/scratch.js'
import { encodeProto } from './support/tensorboard.js'

const scratch = scratchDirectory('behind-damage-without-index')
let count = 0
const place = () => join(scratch, `${count++}`)
const FILE = 'events.out.tfevents.1.h'
afterAll(closePools)

function run(bytes: Uint8Array): string {
  const directory = place()
  mkdirSync(directory)
  writeFileSync(join(directory, FILE), bytes)
  return directory
}

const framed = (payload: Uint8Array) => Buffer.from(frameRecord(payload, { checksum: 'true' }))
const scalar = (step: number) => framed(encodeEvent({ wallTime: 1, step, tag: 'loss', simpleValue: step + 0.5 }))

/** A record longer than the pieces in which files are surveyed. */
function long(step: number): Buffer {
  const tensor = { dtype: 'uint8', shape: [100_000], content: new Uint8Array(100_000).fill(step) } as const
  return framed(encodeEvent({ wallTime: 1, step, tag: 'large', tensor }))
}

/** What a scan reads without an error: tag, step and mean. */
async function readOf(trial: Trial): Promise<Set<string>> {
  const found = new Set<string>()
  for await (const { tensor, step, reductions, error } of trial.scan({ checkLevel: 'full', threads: 0 })) {
    if (!error) found.add(`${tensor} ${step} ${reductions.mean}`)
  }
  return found
}

async function opened<T>(path: string, use: (trial: Trial) => Promise<T>): Promise<T> {
  const trial = await createTrial(path, { requireCollections: false, threads: 0 })
  try {
    return await use(trial)
  } finally {
    await trial.close()
  }
}

/** Everything that reads the run, and what it read. */
async function all(path: string) {
  const [repaired, imported] = [place(), place()]
  await repairTrial(path, repaired, { threads: 0 })
  const scanned = await opened(path, async trial => {
    const report = await importTensorBoard(trial, imported)
    const values = new Set<string>()
    for await (const { tensor, step, value } of readValues(trial, { checkLevel: 'full', threads: 0 })) {
      if (value) values.add(`${tensor} ${step}`)
    }
    const shown = new Set(
      trial.tensorNames().flatMap(name =>
        trial
          .tensor(name)
          .steps()
          .map(step => `${name} ${step}`),
      ),
    )
    return { rows: await readOf(trial), values, shown, problems: trial.problems, report }
  })
  return { ...scanned, kept: await opened(repaired, readOf), imported: await opened(imported, readOf) }
}

const names = (rows: Iterable<string>) => [...rows].map(row => row.split(' ', 2).join(' ')).sort()

describe('a run', () => {
  it.each([
    [
      'zeros amid it',
      (bytes: Buffer, at: number) => Buffer.concat([bytes.subarray(0, at), Buffer.alloc(4096), bytes.subarray(at)]),
    ],
    [
      'a cut, and records appended',
      (bytes: Buffer, at: number) => Buffer.concat([bytes.subarray(0, at + 20), bytes.subarray(at + 42)]),
    ],
    ['a length that is wrong', (bytes: Buffer, at: number) => bytes.fill(0xff, at, at + 4)],
  ])('is read behind %s', async (_, damage) => {
    const records = Array.from({ length: 20 }, (_, step) => scalar(step))
    const at = records.slice(0, 10).reduce((sum, { length }) => sum + length, 0)
    const { rows, kept, imported, values, shown, problems } = await all(run(damage(Buffer.concat(records), at)))
    expect(kept.size).toBeGreaterThanOrEqual(19)
    expect(rows).toEqual(kept)
    expect(imported).toEqual(kept)
    expect([names(values), names(shown)]).toEqual([names(kept), names(kept)])
    expect(problems).toHaveLength(1)
  })

  it('is read behind any damage, as repair has it', async () => {
    const damage = fc.tuple(
      fc.constantFrom('cut', 'zeros', 'flip', 'insert'),
      fc.nat(),
      fc.integer({ min: 1, max: 90 }),
    )
    const records = fc.array(fc.constantFrom(scalar, scalar, scalar, long), { minLength: 3, maxLength: 12 })
    await fc.assert(
      fc.asyncProperty(records, fc.array(damage, { minLength: 1, maxLength: 3 }), async (makers, damages) => {
        let bytes = Buffer.concat(makers.map((make, step) => make(step)))
        for (const [kind, place, length] of damages) {
          const at = place % bytes.length
          if (kind === 'flip') bytes[at]! ^= length
          else if (kind === 'zeros') bytes.fill(0, at, Math.min(bytes.length, at + length))
          else {
            const inserted = kind === 'insert' ? Buffer.alloc(length, 7) : Buffer.alloc(0)
            bytes = Buffer.concat([bytes.subarray(0, at), inserted, bytes.subarray(kind === 'cut' ? at + length : at)])
          }
        }
        const { rows, kept, imported, values } = await all(run(bytes)).catch(error => {
          // Nothing was left of it.
          expect(error).toMatchObject({ code: 'MissingCollectionFiles' })
          const none = new Set<string>()
          return { rows: none, kept: none, imported: none, values: none }
        })
        expect([...kept].filter(row => !rows.has(row))).toEqual([])
        expect([...kept].filter(row => !imported.has(row))).toEqual([])
        expect(names(kept).filter(row => !values.has(row))).toEqual([])
      }),
      { numRuns: 25 },
    )
  })

  it('that was damaged and grows is read on', async () => {
    const path = run(Buffer.concat([scalar(0), Buffer.alloc(100), scalar(1), scalar(2).subarray(0, 30)]))
    await opened(path, async trial => {
      expect(trial.steps()).toEqual([0, 1])
      expect(trial.problems.map(({ code }) => code)).toEqual(['BadLengthChecksum', 'TruncatedRecord'])
      writeFileSync(join(path, FILE), Buffer.concat([scalar(2).subarray(30), scalar(3)]), { flag: 'a' })
      expect(await trial.refresh()).toBe(true)
      expect(trial.steps()).toEqual([0, 1, 2, 3])
      expect(trial.problems.map(({ code }) => code)).toEqual(['BadLengthChecksum'])
    })
  })

  it('has its images counted behind damage', async () => {
    const image = (step: number) =>
      framed(
        encodeProto({
          step,
          summary: { value: [{ tag: 'i', image: { height: 1, width: 1, encoded_image_string: 'eA==' } }] },
        }),
      )
    const path = run(
      Buffer.concat([image(0), Buffer.alloc(50), image(1), scalar(2), image(3).subarray(0, 20), image(4), scalar(5)]),
    )
    const { report } = await all(path)
    expect(report.leftOut).toEqual([{ kind: 'image', count: 3, tags: ['i'] }])
  })
})

it('a trial of smdebug that lost its index is read behind damage', async () => {
  const directory = place()
  const { directory: from } = fixtureTrial('mlp-all-zero')
  cpSync(join(from, 'collections'), join(directory, 'collections'), { recursive: true })
  const path = eventFilePath(0, 'worker_0')
  const bytes = readFileSync(join(from, path))
  mkdirSync(join(directory, path, '..'), { recursive: true })
  const length = Number(bytes.readBigUInt64LE(0)) + 16
  // The length of the second record.
  bytes[length] = 0x55
  bytes[length + 1]! ^= 1
  writeFileSync(join(directory, path), bytes)
  const [rows, whole] = [await opened(directory, readOf), await opened(from, readOf)]
  const ofStep = [...whole].filter(row => row.split(' ')[1] === '0')
  expect(rows.size).toBe(ofStep.length - 1)
})

it('the command line goes on, and tells of the damage once', async () => {
  const path = run(Buffer.concat([scalar(0), Buffer.alloc(100), scalar(1), scalar(2)]))
  const { stdout, stderr, code } = await trialscan('scan', path, '--format', 'csv')
  expect(stdout.trim().split('\n')).toHaveLength(4)
  expect([code, stderr.trim().split('\n').length]).toEqual([4, 1])
})
