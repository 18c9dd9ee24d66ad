/** What a trial's own files multiply: names, entries, collections, workers, rules. Output, memory and time stay in proportion. */

import { execFile } from 'node:child_process'
import { linkSync, mkdirSync, truncateSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, describe, expect, it } from 'vitest'
import { closePools, createTrial, verifyTrial } from '#dist/index.js'
import {
  collectionsFileText,
  encodeEvent,
  eventFilePath,
  frameRecord,
  indexFilePath,
  varint,
} from '../../fixtures/event-writer.js'
import { objects } from '../cli/run.js'
import { scratchDirectory } from '../support/scratch.js'
import { measured } from './measured.js'
import { concat, field, write, writeCollections, writeStep } from './museum.js'

const scratch = scratchDirectory('amplification')
const MIB = 2 ** 20
const ENTRIES = 20_000
let made = 0

afterAll(closePools)

interface Index {
  readonly eventFile: string
  readonly step?: number
  readonly worker?: string
  readonly name?: (i: number) => string
  readonly count?: number
  readonly at?: (i: number) => number
  readonly length?: number
}

/** An index file of many entries. */
function writeIndex(
  directory: string,
  { eventFile, step = 0, worker = 'worker_0', name = i => `t${i}`, count = ENTRIES, at = () => 0, length = 98 }: Index,
): void {
  const entries = Array.from({ length: count }, (_, i) => ({ tensorname: name(i), start_idx: at(i), length }))
  const meta = { mode: 'TRAIN', mode_step: step, event_file_name: eventFile }
  write(join(directory, indexFilePath(step, worker)), JSON.stringify({ meta, tensor_payload: entries }))
}

function trialOf(make: (directory: string) => void): string {
  const directory = join(scratch, `${made++}`)
  writeCollections(directory)
  make(directory)
  return directory
}

describe('the name of an event file × the entries of its index file', () => {
  it.each([
    ['a megabyte', 'x'.repeat(1e6)],
    ['more than 4,096 bytes', `events/${'y/'.repeat(2100)}z`],
    ['a part of more than 255', `events/${'é'.repeat(128)}/z`],
  ])('%s is a fault of the index file, told once', async (_, eventFile) => {
    const directory = trialOf(directory => writeIndex(directory, { eventFile }))
    for (const [command, ...flags] of [['scan'], ['scan', '--format', 'csv'], ['ls'], ['check'], ['verify']]) {
      const { byteLength, code, stdout, stderr } = await measured(command!, directory, ...flags)
      expect([command, code, byteLength < 20_000]).toEqual([command, 4, true])
      expect(`${stdout}${stderr}`).toMatch(/a path of at most 4096 bytes, 255 a part/)
    }
    const trial = await createTrial(directory)
    expect(trial.problems.map(({ code }) => code)).toEqual(['BadIndexFile'])
  })

  it('one of 3,700 bytes is named as a whole once, and in short by all other rows', async () => {
    const eventFile = `events/${`${'y'.repeat(200)}/`.repeat(18)}z`
    const directory = trialOf(directory => writeIndex(directory, { eventFile }))
    const { code, stdout, byteLength, peak } = await measured('scan', directory, '--threads', '0')
    expect(code).toBe(4)
    const rows = objects(stdout)
    expect(rows.length).toBe(ENTRIES)
    const places = rows.map(({ error }) => (error as { file: string }).file)
    expect(places[0]).toBe(join(directory, eventFile))
    expect(new Set(places.slice(1)).size).toBe(1)
    expect(places[1]).toMatch(/^\/.*y…y.*\/z$/)
    expect(byteLength).toBeLessThan(ENTRIES * 1200)
    expect(peak).toBeLessThan(400 * MIB)
    const listed = await measured('ls', directory)
    expect(listed.stderr.split('\n').length).toBeLessThan(120)
    expect(listed.byteLength).toBeLessThan(ENTRIES * 100)
  })

  it('so it is for those of several files, and for verify', async () => {
    const name = (i: number) => `events/${`${'y'.repeat(200)}/`.repeat(18)}${i}`
    const directory = trialOf(directory => {
      for (let step = 0; step < 20; step++) {
        // Of one name that is a megabyte long, and of many.
        writeIndex(directory, { eventFile: name(step), step, count: 200, at: () => 10 })
      }
    })
    const { stdout } = await measured('scan', directory)
    const files = objects(stdout).map(({ error }) => (error as { file: string }).file)
    expect(files.filter(file => file.length > 3000).length).toBe(20)
    expect((await measured('verify', directory)).byteLength).toBeLessThan(400_000)
  })
})

it('a name of a megabyte × the entries that overlap it', async () => {
  const directory = trialOf(directory => {
    writeStep(directory, 0)
    // It reaches further than all others.
    const name = (i: number) => (i === 0 ? 'n'.repeat(MIB) : `t${i}`)
    const entries = Array.from({ length: ENTRIES }, (_, i) => ({
      tensorname: name(i),
      start_idx: i,
      length: i === 0 ? 1e9 : 20,
    }))
    const path = eventFilePath(0, 'worker_0')
    truncateSync(join(directory, path), 100_000)
    const meta = { mode: 'TRAIN', mode_step: 0, event_file_name: path }
    write(join(directory, indexFilePath(0, 'worker_0')), JSON.stringify({ meta, tensor_payload: entries }))
  })
  const { code, byteLength } = await measured('verify', directory)
  expect(code).toBe(4)
  expect(byteLength).toBeLessThan(5 * MIB)
})

describe('collections × tensors', () => {
  const config = (includeRegex: (i: number) => string, count = 3000) =>
    collectionsFileText(
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`c${i}`, { includeRegex: [includeRegex(i)] }])),
      1,
    )
  const directoryOf = (text: string) =>
    trialOf(directory => {
      writeCollections(directory, text)
      writeIndex(directory, { eventFile: eventFilePath(0, 'worker_0') })
    })

  it('of which all have all: counted for a table as far as it goes, listed up to a million members', async () => {
    const directory = directoryOf(config(() => '.*'))
    const table = await measured('ls', directory)
    expect(table.stdout).toMatch(/Collections \(3,000\)\n {2}c0 +20,000 +tensors/)
    expect(table.peak).toBeLessThan(400 * MIB)
    const { stdout, peak } = await measured('ls', directory, '--json')
    const { collections } = JSON.parse(stdout) as { collections: { members: string[] | null }[] }
    expect(collections.length).toBe(3000)
    expect(collections.filter(({ members }) => members?.length === ENTRIES).length).toBe(50)
    expect(collections.filter(({ members }) => members === null).length).toBe(2950)
    expect(peak).toBeLessThan(500 * MIB)
  })

  it('× rules: a check of those that name collections ends', async () => {
    const directory = directoryOf(config(i => `.*x.${i}`))
    const startedAt = performance.now()
    const { byteLength, peak } = await measured('check', directory)
    expect(performance.now() - startedAt).toBeLessThan(60_000)
    expect(byteLength).toBeLessThan(100_000)
    expect(peak).toBeLessThan(500 * MIB)
  })
})

it('workers × steps: each step of a worker of its own', async () => {
  const count = 8000
  const directory = trialOf(directory => {
    for (let i = 0; i < count; i++) writeIndex(directory, { eventFile: 'events/x', step: i, worker: `w${i}`, count: 0 })
  })
  const startedAt = performance.now()
  const { noteCounts, notes } = await verifyTrial(directory)
  expect(noteCounts.StepIncomplete).toBe(count)
  expect(notes.find(({ code }) => code === 'StepIncomplete')!.found).toBe(
    `that of 1, without w1, w10, w100, w1000, w1001 and ${count - 6} others`,
  )
  expect(performance.now() - startedAt).toBeLessThan(20_000)
})

describe('links to one file', () => {
  /** Makes a file of a trial lead to another. */
  const link = (directory: string, target: string, path: string): void => {
    mkdirSync(dirname(join(directory, path)), { recursive: true })
    linkSync(join(directory, target), join(directory, path))
  }

  const files = 300

  /** One index file under 300 names, all of which name one event file of as many records as it has entries. */
  const linked = (records: readonly (readonly [step: number, name: string])[]): string =>
    trialOf(directory => {
      const path = eventFilePath(0, 'worker_0')
      const tensor = { dtype: 'float32', shape: [], values: [1] } as const
      const framed = records.map(([step, tag]) => frameRecord(encodeEvent({ wallTime: 1, step, tag, tensor })))
      write(join(directory, path), Buffer.concat(framed))
      let at = 0
      const entries = framed.map(({ length }, i) => {
        at += length
        return { tensorname: records[i]![1], start_idx: at - length, length }
      })
      const meta = { mode: 'TRAIN', mode_step: 0, event_file_name: path }
      write(join(directory, indexFilePath(0, 'worker_0')), JSON.stringify({ meta, tensor_payload: entries }))
      for (let step = 1; step < files; step++) {
        link(directory, indexFilePath(0, 'worker_0'), indexFilePath(step, 'worker_0'))
      }
    })

  it('300 index files × 40,000 entries of one event file: what they say is held once, and counted for each', async () => {
    const count = 40_000
    const directory = linked(Array.from({ length: count }, () => [0, 't']))
    const startedAt = performance.now()
    const { code, stdout, peak } = await measured('verify', directory, '--format', 'jsonl')
    expect(performance.now() - startedAt).toBeLessThan(90_000)
    expect(peak).toBeLessThan(400 * MIB)
    expect(code).toBe(4)
    const { problems } = objects(stdout).at(-1)!
    expect(problems).toMatchObject({ StepMismatch: (files - 1) * count })
  })

  it.each([
    ['which are all of one step', () => 0, { copied: 3, rebuilt: 0, ignored: 0, left_out: files - 1 }],
    ['which are of as many steps', (i: number) => i % files, { copied: 2, rebuilt: files, ignored: 0, left_out: 0 }],
  ] as const)('and 130,000 records, %s: a repair counts what each told of in vain', async (_, stepOf, kept) => {
    const count = 130_000
    const directory = linked(Array.from({ length: count }, (_, i) => [stepOf(i), `t${i}`]))
    const startedAt = performance.now()
    const { code, stdout, peak } = await measured('repair', directory, '--out', join(scratch, `${made++}`))
    expect(performance.now() - startedAt).toBeLessThan(90_000)
    expect(peak).toBeLessThan(600 * MIB)
    expect(code).toBe(4)
    const lost = (files - 1) * count
    expect(objects(stdout).at(-1)).toMatchObject({
      files: kept,
      records: { kept: count, left_out: lost },
      left_out_count: lost,
    })
    // A hundred of the event file's, what was rebuilt, and the sum.
    expect(objects(stdout).length).toBe(100 + kept.rebuilt + 1)
  })

  it('1,000 collections files are read once', async () => {
    const collections = Object.fromEntries(
      Array.from({ length: 500 }, (_, i) => [
        `c${i}`,
        { tensorNames: Array.from({ length: 100 }, (_, j) => `${i}/${j}`) },
      ]),
    )
    const directory = trialOf(directory => {
      writeStep(directory, 0)
      writeCollections(directory, collectionsFileText(collections, 1))
      for (let i = 1; i < 1000; i++) {
        const path = (worker: number) => `collections/000000000/worker_${worker}_collections.json`
        link(directory, path(0), path(i))
      }
    })
    for (const command of ['verify', 'ls']) {
      const startedAt = performance.now()
      const { peak } = await measured(command, directory)
      expect([command, performance.now() - startedAt < 60_000, peak < 300 * MIB]).toEqual([command, true, true])
    }
  })
})

it('faults × Values: two million tensors of no type in one record', async () => {
  const value = Buffer.from([0x0a, 0x05, 0x0a, 0x01, 0x61, 0x42, 0x00])
  const count = 2_000_000
  const summary = field(5, Buffer.alloc(count * value.length, value))
  const directory = trialOf(directory => {
    write(join(directory, eventFilePath(0, 'worker_0')), frameRecord(concat(varint(16), varint(0), summary)))
  })
  const startedAt = performance.now()
  const { stdout, peak } = await measured('verify', directory, '--format', 'jsonl')
  expect(performance.now() - startedAt).toBeLessThan(45_000)
  expect(peak).toBeLessThan(700 * MIB)
  expect(objects(stdout).at(-1)!.problems).toMatchObject({ UnknownDType: count })
})

it('holes × files: a hundred index files, and collections files, of 250 MB of nothing', async () => {
  const directory = trialOf(directory => {
    writeStep(directory, 0)
    for (let i = 1; i <= 50; i++) {
      truncateSync(write(join(directory, indexFilePath(i, 'worker_0')), '{"meta":'), 250e6)
      truncateSync(write(join(directory, `collections/000000000/w${i}_collections.json`), '{"a":'), 250e6)
    }
  })
  const startedAt = performance.now()
  const { code, stdout, peak } = await measured('scan', directory, '--threads', '0')
  expect(performance.now() - startedAt).toBeLessThan(15_000)
  expect([code, objects(stdout).length]).toEqual([4, 52])
  expect(objects(stdout).at(-1)).toMatchObject({ error: { code: 'BadIndexFile', offset: 8 } })
  expect(peak).toBeLessThan(400 * MIB)
})

describe('a megabyte of its worst, for each parser', () => {
  const run = promisify(execFile)
  const program = fileURLToPath(new URL('parsers-run.js', import.meta.url))

  it('is read, or refused, in linear time', async () => {
    const { stdout } = await run(process.execPath, [program], { timeout: 120_000, maxBuffer: MIB })
    const slow = JSON.parse(stdout) as { parser: string; worst: string; ms: number }[]
    expect(slow.length).toBe(31)
    // What takes n² steps takes minutes.
    expect(slow.filter(({ ms }) => ms > 5000)).toEqual([])
  })
})
