/** What lies behind damage: found again, with as many reads as there are bytes, whatever the index says. */

import fs, { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { dirname, join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { createTrial, repairTrial, verifyTrial } from '#dist/index.js'
import {
  encodeEvent,
  eventFilePath,
  frameRecord,
  indexFilePath,
  indexFileText,
  maskedCrc32c,
} from '../../fixtures/event-writer.js'
import { uniform } from '../../fixtures/random.js'
import { FaultyS3 } from '../support/faulty-s3.js'
import { part } from '../support/part.js'
import { rowsOf } from '../support/scanning.js'
import { scratchDirectory } from '../support/scratch.js'

const scratch = scratchDirectory('behind-damage')
const EVENTS = eventFilePath(1, 'worker_0')
const MIB = 1 << 20
let server: FaultyS3
let number = 0
let dir: string
let out: string

beforeAll(async () => {
  server = await FaultyS3.start()
})

beforeEach(() => {
  dir = join(scratch, String(number++), 'trial')
  out = join(dirname(dir), 'copy')
  server.objects.clear()
  server.seen.length = 0
})

afterEach(() => {
  vi.restoreAllMocks()
  syncBuiltinESMExports()
})

afterAll(async () => {
  await server.stop()
})

function put(path: string, bytes: Uint8Array | string): void {
  mkdirSync(dirname(join(dir, path)), { recursive: true })
  writeFileSync(join(dir, path), bytes)
  server.objects.set(`t/${path}`, Buffer.from(bytes as string))
}

function recordOf(name: string, count = 1, checksum: 'true' | 'constant' = 'true'): Buffer {
  const data = new Uint8Array(new Float32Array(count).fill(count).buffer)
  const tensor = { dtype: 'float32', shape: [count], content: data } as const
  return Buffer.from(
    frameRecord(encodeEvent({ wallTime: 1, step: 1, tag: name, mode: 'TRAIN', modeStep: 1, tensor }), { checksum }),
  )
}

/** A header of a record of so many bytes, frame and all, with its checksum. */
function headerOf(byteLength: number): Buffer {
  const header = Buffer.alloc(12)
  header.writeBigUInt64LE(BigInt(byteLength - 16))
  header.writeUInt32LE(maskedCrc32c(header.subarray(0, 8)), 8)
  return header
}

interface Entry {
  readonly name: string
  readonly start: number
  readonly length: number
}

function write(bytes: Uint8Array, entries: readonly Entry[] | null): void {
  const all = { name: 'all', include_regex: ['.*'], tensor_names: [] }
  put(
    'collections/000000000/worker_0_collections.json',
    JSON.stringify({ collections: { all }, _meta: { num_workers: 1 } }),
  )
  put('training_job_end.ts', 'end')
  put(EVENTS, bytes)
  if (entries === null) return
  const tensor_payload = entries.map(({ name, start, length }) => ({ tensorname: name, start_idx: start, length }))
  const meta = { mode: 'TRAIN', mode_step: 1, event_file_name: EVENTS } as const
  put(indexFilePath(1, 'worker_0'), indexFileText({ meta, tensor_payload, shape_payload: [] }))
}

/** Records one behind the other. */
function concat(records: readonly Buffer[]): { bytes: Buffer; entries: Entry[] } {
  let at = 0
  const entries = records.map(({ length }, i) => {
    at += length
    return { name: `t${i}`, start: at - length, length }
  })
  return { bytes: Buffer.concat(records), entries }
}

const noise = (byteLength: number, seed: number): Buffer => {
  const random = uniform(seed)
  return Buffer.from(Uint8Array.from({ length: byteLength }, () => Math.floor(random() * 256)))
}

/** What makes readers jump about, or so they may. */
const DAMAGES: Readonly<Record<string, () => { bytes: Buffer; entries: readonly Entry[] }>> = {
  'an object of zeros under 5,000 entries': () => {
    const { bytes, entries } = concat(Array.from({ length: 5000 }, (_, i) => recordOf(`t${i}`)))
    return { bytes: Buffer.alloc(bytes.length), entries }
  },
  'entries that all overlap': () => {
    const bytes = Buffer.alloc(400_000)
    return {
      bytes,
      entries: Array.from({ length: 5000 }, (_, i) => ({ name: `t${i}`, start: 1 + i * 7, length: 300_000 })),
    }
  },
  'headers that lead nowhere, each another way': () => {
    const tail = concat(Array.from({ length: 4 }, (_, i) => recordOf(`t${i}`, 1000)))
    const middle = 9 * MIB
    const dead = Array.from({ length: 5000 }, (_, i) => headerOf(64_000 + i * 1723))
    const bytes = Buffer.concat([Buffer.alloc(7), ...dead, Buffer.alloc(middle), tail.bytes])
    const shift = bytes.length - tail.bytes.length
    return { bytes, entries: tail.entries.map(entry => ({ ...entry, start: entry.start + shift })) }
  },
  'a damaged record behind each that is whole': () => {
    const { bytes, entries } = concat(Array.from({ length: 12_000 }, (_, i) => recordOf(`t${i}`, 100)))
    for (const [i, { start, length }] of entries.entries()) {
      if (i % 2 === 1) bytes[start + (i % 4 === 1 ? 3 : length - 20)]! ^= 0x40
    }
    return { bytes, entries }
  },
  'damaged records that hide others, and broken frames behind them': () => {
    const { bytes, entries } = concat(Array.from({ length: 12_000 }, (_, i) => recordOf(`t${i}`, 100)))
    for (let i = 0; i + 2 < entries.length; i += 4) {
      const [first, second] = [entries[i]!, entries[i + 1]!]
      headerOf(first.length + second.length - (i % 8 === 0 ? 0 : 9)).copy(bytes, first.start)
    }
    return { bytes, entries }
  },
  'noise under entries': () => {
    const bytes = noise(6 * MIB, 6)
    return {
      bytes,
      entries: Array.from({ length: 5000 }, (_, i) => ({ name: `t${i}`, start: i * 1000, length: 1000 })),
    }
  },
}

describe.each(part(Object.keys(DAMAGES), (_, i) => i % 3 === 0))('%s', name => {
  const requests = async (work: () => Promise<unknown>): Promise<number> => {
    server.seen.length = 0
    await work()
    return server.seen.filter(({ what }) => what === `t/${EVENTS}`).length
  }

  it('takes requests in proportion to bytes', async () => {
    const { bytes, entries } = DAMAGES[name]!()
    write(bytes, entries)
    const windows = Math.ceil(bytes.length / (4 * MIB))
    const s3 = server.options
    const verifying = await requests(async () => {
      expect((await verifyTrial('s3://bucket/t', { s3 })).ok).toBe(false)
    })
    expect(verifying).toBeLessThanOrEqual(4 * windows + 2)
    const repairing = await requests(() => repairTrial('s3://bucket/t', out, { s3 }).catch(() => {}))
    expect(repairing).toBeLessThanOrEqual(7 * windows + 3)
  })

  it('takes reads of a disk in proportion, too, and gives the same', async () => {
    const { bytes, entries } = DAMAGES[name]!()
    write(bytes, entries)
    const spy = vi.spyOn(fs, 'readSync')
    syncBuiltinESMExports()
    const verified = await verifyTrial(dir, { threads: 0 })
    expect(spy.mock.calls.length).toBeLessThanOrEqual(5 * Math.ceil(bytes.length / MIB) + 10)
    const remote = await verifyTrial('s3://bucket/t', { s3: server.options })
    expect(remote.problems).toEqual(verified.problems)
    expect(remote.problemCounts).toEqual(verified.problemCounts)
  })
})

describe.each([
  ['a file with an index', true],
  ['a file without an index', false],
] as const)('%s: a record whose length swallows its neighbours', (_, isIndexed) => {
  const SIZES: readonly (readonly [string, number])[] = [
    ['small', 3],
    ['longer than what is read at once', MIB],
  ]
  const cases = SIZES.flatMap(size => (['true', 'constant'] as const).map(checksum => [...size, checksum] as const))
  it.each(part(cases, ([, count]) => count === 3))(
    'costs itself alone: %s, of %d elements, %s checksums',
    async (_, count, checksum) => {
      for (const [swallowing, swallowed] of [
        [0, 1],
        [0, 2],
        [1, 4],
        [3, 3],
      ] as const) {
        const { bytes, entries } = concat(Array.from({ length: 6 }, (_, i) => recordOf(`t${i}`, count, checksum)))
        const end = entries[Math.min(5, swallowing + swallowed)]!
        const { start } = entries[swallowing]!
        headerOf(end.start + end.length - start).copy(bytes, start)
        rmSync(dir, { recursive: true, force: true })
        rmSync(out, { recursive: true, force: true })
        write(bytes, isIndexed ? entries : null)
        const { records, leftOut } = await repairTrial(dir, out)
        expect(records).toEqual({ kept: 5, leftOut: 1 })
        expect(leftOut).toMatchObject([{ offset: start, byteLength: entries[swallowing]!.length, code: 'BrokenFrame' }])
        expect((await verifyTrial(out)).problems).toEqual([])
        const rows = await rowsOf(await createTrial(out), { checkLevel: 'full' })
        expect(rows.map(({ tensor, error }) => [tensor, error])).toEqual(
          entries.filter((_, i) => i !== swallowing).map(({ name }) => [name, undefined]),
        )
        const { problems } = await verifyTrial(dir)
        expect(problems.filter(({ file }) => file === EVENTS).map(({ code, offset }) => [code, offset])).toEqual([
          ['BrokenFrame', start],
        ])
      }
    },
  )
})
