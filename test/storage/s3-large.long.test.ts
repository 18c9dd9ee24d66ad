/** Tensors that are larger than a job holds, on S3: what they cost in requests, and that their rows are those from disk. */

import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import {
  closePools,
  createTrial,
  type ScanOptions,
  type TensorValue,
  type Trial,
  type TrialOptions,
} from '#dist/index.js'
import { TrialWriter } from '../../fixtures/event-writer.js'
import { FaultyS3, resetAfter } from '../support/faulty-s3.js'
import { scratchDirectory } from '../support/scratch.js'

const MIB = 2 ** 20
const scratch = scratchDirectory('s3-large')
const directory = join(scratch, 'trial')
/** Of five parts, of two, and one that is read whole. */
const ELEMENTS = { large: 18 * MIB - 5, longer: 4 * MIB + 1, whole: MIB }
const PARTS = { large: 5, longer: 2 }
let server: FaultyS3
const rows = new Map<string, string>()

beforeAll(async () => {
  const writer = new TrialWriter(directory, { checksum: 'true' })
  const tensors = Object.entries(ELEMENTS).map(([name, count], i) => {
    const data = Float32Array.from({ length: count }, (_, at) => ((at * 7919) % 10_007) / (i + 3) - 1000)
    return { name, dtype: 'float32' as const, shape: [count], data: new Uint8Array(data.buffer) }
  })
  writer.step({ step: 0, mode: 'TRAIN', worker: 0, tensors })
  writer.end()
  const local = await createTrial(directory)
  for (const checkLevel of ['minimal', 'full'] as const) rows.set(checkLevel, await rowsOf(local, { checkLevel }))
})

beforeEach(async () => {
  server = await FaultyS3.start()
  for (const path of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
    if (statSync(join(directory, path)).isFile()) server.objects.set(`t/${path}`, readFileSync(join(directory, path)))
  }
})

afterEach(() => server.stop())
afterAll(closePools)

async function open(options: TrialOptions = {}): Promise<Trial> {
  const trial = await createTrial('s3://bucket/t', { ...options, s3: { ...server.options, ...options.s3 } })
  server.seen.length = 0
  return trial
}

async function rowsOf(trial: Trial, options: ScanOptions): Promise<string> {
  const lines: Uint8Array[] = []
  for await (const text of trial.scan(options).lines('jsonl')) lines.push(text)
  return Buffer.concat(lines).toString()
}

/** Bytes of each request that was made. */
function askedLengths(): number[] {
  return server.seen.map(({ range }) => {
    const [, from, last] = /^bytes=(\d+)-(\d+)$/.exec(range!)!
    return Number(last) + 1 - Number(from)
  })
}

const partedBytes = 4 * (ELEMENTS.large + ELEMENTS.longer)
/** Of the tensor that is read whole requests of 2 MiB; of each of the others one for its head and one for its end. */
const otherGets = Math.ceil((4 * ELEMENTS.whole) / (2 * MIB) + 0.1) + 2 * 2

it.each(['minimal', 'full'] as const)(
  'a scan at %s: a request for 8 to 16 MiB, and the rows from disk',
  async level => {
    expect(await rowsOf(await open(), { checkLevel: level })).toBe(rows.get(level))
    const lengths = askedLengths()
    expect(lengths.length).toBeLessThanOrEqual(partedBytes / (8 * MIB) + otherGets)
    const parts = lengths.filter(length => length > 2.5 * MIB)
    expect(parts.length).toBe(PARTS.large + PARTS.longer)
    expect(Math.min(...parts)).toBeGreaterThan(7.9 * MIB)
    expect(Math.max(...parts)).toBeLessThan(16 * MIB + (64 << 10))
    // Nothing is read twice but what tells where the elements are.
    const all = partedBytes + 4 * ELEMENTS.whole
    expect(lengths.reduce((sum, length) => sum + length, 0)).toBeLessThan(all + (64 << 10))
    expect(server.mostInFlight).toBeGreaterThanOrEqual(PARTS.large)
  },
)

it.each([
  ['threads', { threads: 2 }, {}],
  ['little memory', { memory: 4 * MIB }, {}],
  ['much memory', { memory: 512 * MIB }, {}],
  ['a cache', {}, { cacheDirectory: join(scratch, 'cache') }],
] as const)('the rows are the same with %s', async (_, options, s3) => {
  expect(await rowsOf(await open({ s3 }), { ...options, checkLevel: 'full' })).toBe(rows.get('full'))
  if (!('cacheDirectory' in s3)) return
  expect(await rowsOf(await open({ s3 }), { ...options, checkLevel: 'full' })).toBe(rows.get('full'))
  expect(server.seen.filter(({ what }) => what !== 'list')).toEqual([])
})

it('the rows are the same where connections break in the middle, and no byte comes twice', async () => {
  const trial = await open()
  const breaks = 12
  server.faults.push(...Array.from({ length: breaks }, (_, i) => resetAfter(i * 700_001)))
  expect(await rowsOf(trial, { checkLevel: 'full' })).toBe(rows.get('full'))
  expect(trial.traffic.retries).toBeGreaterThanOrEqual(6)
  expect(trial.traffic.receivedBytes).toBeLessThan(partedBytes + 4 * ELEMENTS.whole + 4 * MIB)
})

it('a value: a request a part, and the elements from disk', async () => {
  const trial = await open()
  const [value, local] = (await Promise.all(
    [trial, await createTrial(directory)].map(trial => trial.tensor('large').value(0, { checkLevel: 'full' })),
  )) as [TensorValue, TensorValue]
  const bytes = [value, local].map(({ data }) => Buffer.from((data as Float32Array).buffer))
  expect(bytes[0]!.equals(bytes[1]!)).toBe(true)
  expect(bytes[0]!.length).toBe(4 * ELEMENTS.large)
  expect(server.seen.length).toBeLessThanOrEqual(PARTS.large + 2)
})

it('the end of a record is asked for before its head has come: no answer is waited for on its own', async () => {
  const trial = await open()
  let answer = (): void => {}
  server.faults.push((_, serve) => {
    answer = serve
  })
  const value = trial.tensor('large').value(0)
  try {
    await vi.waitFor(() => expect(server.seen).toHaveLength(2))
  } finally {
    answer()
  }
  expect((await value).data).toHaveLength(ELEMENTS.large)
})

it.each([1 / 100, 1 / 2, 98 / 100])('a wrong byte at %d of a record is found', async share => {
  const [path] = [...server.objects.keys()].filter(key => key.includes('events/'))
  const bad = Buffer.from(server.objects.get(path!)!)
  bad[Math.floor(4 * ELEMENTS.large * share)]! ^= 1
  server.objects.set(path!, bad)
  const [first, ...others] = (await rowsOf(await open(), { checkLevel: 'full' })).split('\n')
  expect(first).toContain('BadPayloadChecksum')
  expect(others).toEqual(rows.get('full')!.split('\n').slice(1))
})
