/** The verify job: what it finds in an event file, whatever was done to it. */

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { VALUE_KINDS, type VerifiedRange, type VerifyRange, type VerifyReply } from '#dist/scan/job/verify-job.js'
import { InlineRunner } from '#dist/scan/runner/inline.js'
import { readIndex } from '../../fixtures/corrupt.js'
import { type EventSpec, encodeEvent, eventFilePath, frameRecord, varint } from '../../fixtures/event-writer.js'
import { ROOT } from '../support/golden.js'
import { isLong } from '../support/part.js'
import { scratchDirectory } from '../support/scratch.js'

const MIB = 1 << 20
const root = scratchDirectory('verify-job')
let files = 0

interface JobOptions extends Partial<Pick<VerifyRange, 'startByte' | 'endByte'>> {
  readonly anchors?: readonly number[]
  readonly memory?: number
  readonly deep?: boolean
}

async function verify(
  path: string,
  { anchors = [], memory = 32 * MIB, deep = false, startByte = 0, endByte = null }: JobOptions = {},
): Promise<{ readonly range: VerifiedRange; readonly reply: VerifyReply }> {
  const reply = await new InlineRunner().run({
    kind: 'verify',
    store: { kind: 'local', root: dirname(path) },
    ranges: [{ path: path.slice(dirname(path).length + 1), startByte, endByte, anchors: Float64Array.from(anchors) }],
    windowByteLength: memory,
    isTornasole: false,
    deep,
  })
  const range = reply.ranges[0]!
  if (!('recordStart' in range)) throw new Error(range.message)
  return { range, reply }
}

function file(...records: readonly Uint8Array[]): string {
  const path = join(root, `${files++}.tfevents`)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, Buffer.concat(records))
  return path
}

function record(event: EventSpec, checksum: 'true' | 'constant' = 'true'): Buffer {
  return Buffer.from(frameRecord(encodeEvent(event), { checksum }))
}

function tensor(tag: string, step: number, values: readonly number[] = [1, 2, 3]): Buffer {
  const spec = { dtype: 'float32', shape: [values.length], values } as const
  return record({ wallTime: 1, step, tag, mode: 'TRAIN', modeStep: step, tensor: spec })
}

function codes({ problems }: VerifiedRange): string[] {
  return problems.map(({ error }) => error.code)
}

/** The good records: offset, length, step and tags. */
function good({ range, reply }: Awaited<ReturnType<typeof verify>>): [number, number, number, string[]][] {
  return Array.from(range.recordStart, (start, i): [number, number, number, string[]] => {
    const tags = [...range.record.keys()].filter(v => range.record[v] === i).map(v => reply.tags[range.tag[v]!]!)
    return [start, range.recordByteLength[i]!, range.step[i]!, tags]
  }).filter((_, i) => range.isBad[i] === 0)
}

describe('a good event file', () => {
  it.each([
    ['generated/plain', [0, 1, 2]],
    ['generated/wire-forms', [0, 1, 2, 3, 4, 5, 6]],
    ['trials/dtypes', [0]],
  ] as const)('has the records that its index names: %s', async (name, steps) => {
    const trial = join(ROOT, 'fixtures', name)
    for (const step of steps) {
      const entries = readIndex(trial, step).tensor_payload
      const result = await verify(join(trial, eventFilePath(step, 'worker_0')))
      expect(result.range.problems).toEqual([])
      const named = good(result).flatMap(([start, length, at, tags]) => tags.map(tag => [tag, start, length, at]))
      expect(named).toEqual(entries.map(({ tensorname, start_idx, length }) => [tensorname, start_idx, length, step]))
      expect(result.range.endByte).toBe(result.range.byteLength)
      expect([...result.range.skipped]).toEqual([])
    }
  })

  it('tells mode, mode step and kind of every Value', async () => {
    const values = [
      { tag: 'a', mode: 'EVAL', modeStep: 7, tensor: { dtype: 'int8', shape: [2], values: [1, 2] } },
      { tag: 'b', simpleValue: 3 },
      { tag: 'c' },
    ] as const
    const { range, reply } = await verify(
      file(
        record({ wallTime: 1, step: 3, values: [...values] }),
        record({ wallTime: 1, step: 0, fileVersion: 'brain.Event:2' }),
      ),
    )
    expect(range.problems).toEqual([])
    expect([...range.record]).toEqual([0, 0, 0])
    expect([...range.tag].map(tag => reply.tags[tag])).toEqual(['a', 'b', 'c'])
    expect([...range.mode]).toEqual([2, 0, 0])
    expect([...range.modeStep]).toEqual([7, -1, -1])
    expect([...range.kind].map(kind => VALUE_KINDS[kind])).toEqual(['tensor', 'tensor', 'other'])
    expect([...range.step]).toEqual([3, 0])
  })

  it('may have more Values in a record than are surveyed at once, and its step behind them', async () => {
    const values = Array.from({ length: 10_000 }, (_, i) => ({ tag: `tag${i}`, simpleValue: i }))
    const summary = encodeEvent({ wallTime: 1, step: 0, values })
    const step = Uint8Array.from([0x10, 42])
    const many = frameRecord(Buffer.concat([summary, step]), { checksum: 'true' })
    const result = await verify(file(tensor('first', 1), many, tensor('last', 2)))
    expect(result.range.problems).toEqual([])
    expect([...result.range.step]).toEqual([1, 42, 2])
    expect(good(result)[1]![3]).toEqual(values.map(({ tag }) => tag))
    expect(good(result)[2]![3]).toEqual(['last'])
  })

  it('may be empty', async () => {
    const { range } = await verify(file())
    expect(range.recordStart).toHaveLength(0)
    expect(range.problems).toEqual([])
  })

  it('can be read in ranges: the records that begin in them', async () => {
    const records = Array.from({ length: 20 }, (_, i) => tensor('t', i, Array(i + 1).fill(i)))
    const path = file(...records)
    const all = good(await verify(path))
    for (const at of [0, 1, 500, all[7]![0], all[19]![0]]) {
      const first = await verify(path, { endByte: at })
      const second = await verify(path, { startByte: first.range.endByte })
      expect([...good(first), ...good(second)]).toEqual(all)
      expect(first.range.endByte).toBe(all.find(([start]) => start >= at)?.[0] ?? first.range.byteLength)
    }
  })
})

describe('a damaged event file', () => {
  const records = Array.from({ length: 12 }, (_, i) => tensor(`tensor${i}`, 5, Array(i * 3 + 1).fill(i)))
  const starts = records.map((_, i) => Buffer.concat(records.slice(0, i)).length)
  const whole = Buffer.concat(records)

  it.each([
    ['without an index', []],
    ['with one', starts],
  ])('loses the record whose length has rotted, and no other: %s', async (_, anchors) => {
    for (let byte = 0; byte < 12; byte++) {
      const bytes = Buffer.from(whole)
      bytes[starts[4]! + byte]! ^= 0x10
      const result = await verify(file(bytes), { anchors })
      expect(codes(result.range)).toEqual(['BadLengthChecksum'])
      expect(result.range.problems[0]).toMatchObject({ startByte: starts[4], endByte: starts[5] })
      expect([...result.range.skipped]).toEqual([starts[4], starts[5]])
      expect(good(result).map(([start]) => start)).toEqual(starts.filter((_, i) => i !== 4))
    }
  })

  it('is torn where it was cut: one problem, and all that is whole before it', async () => {
    for (let length = 0; length < whole.length; length += isLong ? 1 : 7) {
      const result = await verify(file(whole.subarray(0, length)))
      const isWhole = starts.includes(length)
      expect(codes(result.range)).toEqual(isWhole ? [] : ['TruncatedRecord'])
      const count = starts.filter((_, i) => (starts[i + 1] ?? whole.length) <= length).length
      expect(good(result)).toHaveLength(count)
      if (!isWhole) expect(result.range.problems[0]).toMatchObject({ startByte: starts[count], endByte: length })
    }
  })

  it('is named as damaged wherever a bit flips, and keeps every record that is not hit', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(whole.length - 1), fc.nat(7), fc.boolean(), async (at, bit, isIndexed) => {
        const bytes = Buffer.from(whole)
        bytes[at]! ^= 1 << bit
        const hit = starts.findLastIndex(start => start <= at)
        const result = await verify(file(bytes), { anchors: isIndexed ? starts : [] })
        expect(result.range.problems).toHaveLength(1)
        expect(result.range.problems[0]!.startByte).toBe(starts[hit])
        expect(good(result).map(([start]) => start)).toEqual(starts.filter((_, i) => i !== hit))
      }),
      { numRuns: 300 },
    )
  })

  it('is read to its end, whatever stands in it', async () => {
    const piece = fc.oneof(
      fc.nat(11).map(i => records[i]!),
      fc.uint8Array({ maxLength: 80 }).map(bytes => Buffer.from(bytes)),
      fc.constant(Buffer.alloc(64)),
      fc.nat(11).map(i => records[i]!.subarray(0, 20)),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 8 }), async pieces => {
        const bytes = Buffer.concat(pieces)
        const { range } = await verify(file(bytes))
        // Every byte is in a record or in what was skipped, once.
        const spans = [
          ...Array.from(range.recordStart, (start, i) => [start, start + range.recordByteLength[i]!] as const),
          ...Array.from(
            { length: range.skipped.length / 2 },
            (_, i) => [range.skipped[2 * i]!, range.skipped[2 * i + 1]!] as const,
          ),
        ].sort(([a], [b]) => a - b)
        expect(spans.flat().filter((at, i, all) => i % 2 === 1 && i + 1 < all.length && all[i + 1] !== at)).toEqual([])
        if (bytes.length > 0) expect([spans[0]![0], spans.at(-1)![1]]).toEqual([0, bytes.length])
        expect(range.endByte).toBe(bytes.length)
      }),
      { numRuns: 200 },
    )
  })

  it('goes on behind bytes that came in or went away', async () => {
    const extra = await verify(file(...records.slice(0, 3), Buffer.from('not a record'), ...records.slice(3)))
    expect(codes(extra.range)).toEqual(['BadLengthChecksum'])
    expect(good(extra)).toHaveLength(12)
    const gone = await verify(file(whole.subarray(0, starts[3]! + 30), whole.subarray(starts[3]! + 40)))
    expect(codes(gone.range)).toEqual(['BrokenFrame'])
    expect(gone.range.problems[0]!.error.fields.offset).toBe(starts[3])
    expect(good(gone)).toHaveLength(11)
  })

  it('is not misled by a tensor that holds event files, where the index tells what is one', async () => {
    // The frame of the outer record is broken: its bytes look like records.
    const inner = Uint8Array.from(Buffer.concat([records[0]!, records[1]!]))
    const outer = record({
      wallTime: 1,
      step: 5,
      tag: 'outer',
      mode: 'TRAIN',
      modeStep: 5,
      tensor: { dtype: 'uint8', shape: [inner.length], content: inner },
    })
    outer[8]! ^= 1
    const path = file(records[2]!, outer, records[3]!)
    const at = [0, records[2]!.length, records[2]!.length + outer.length]
    const result = await verify(path, { anchors: at })
    expect(codes(result.range)).toEqual(['BadLengthChecksum'])
    expect(good(result).map(([start]) => start)).toEqual([at[0], at[2]])
  })

  it('of headers that lead nowhere is done with soon, and tells only some of its problems', async () => {
    // Each says that the next 2^20 bytes are its payload, and none of them has the right checksum.
    const header = frameRecord(new Uint8Array(1), { checksum: 'true' }).slice(0, 12)
    const rubbish = Buffer.concat(Array.from({ length: 50_000 }, () => Buffer.concat([header, Buffer.alloc(5, 0xff)])))
    const { range } = await verify(file(rubbish, tensor('last', 1)))
    expect(range.problemCounts).toEqual({ BadPayloadChecksum: 50_000 })
    expect(range.problems).toHaveLength(100)
    expect(range.isBad.filter(bad => bad === 0)).toHaveLength(1)
  })

  it('takes those behind a spoilt one with all their Values, however many', async () => {
    const many = (count: number) =>
      record({
        wallTime: 1,
        step: 1,
        values: Array.from({ length: count }, (_, i) => ({ tag: `${count}-${i}`, simpleValue: i })),
      })
    const spoilt = Uint8Array.from(records[0]!)
    spoilt[spoilt.length - 6]! ^= 1
    const counts = [1, 2, 3, 7, 5000, 1, 4097]
    const { range, reply } = await verify(file(...counts.flatMap(count => [spoilt, many(count)])))
    expect(range.problemCounts).toEqual({ BadPayloadChecksum: counts.length })
    const whole = counts.map((_, i) => [...range.tag].filter((_, value) => range.record[value] === 2 * i + 1))
    expect(whole.map(values => values.map(tag => reply.tags[tag]))).toEqual(
      counts.map(count => Array.from({ length: count }, (_, i) => `${count}-${i}`)),
    )
  })

  it('says which tensor a payload was that is not what it was', async () => {
    const bytes = Buffer.from(whole)
    bytes[starts[8]! - 60]! ^= 1
    const { range } = await verify(file(bytes))
    expect(range.problems[0]).toMatchObject({ tag: 'tensor7', step: 5, error: { code: 'BadPayloadChecksum' } })
  })

  it('of a step that can’t be is named', async () => {
    const { range } = await verify(
      file(record({ wallTime: 1, step: -(2n ** 60n), values: [{ tag: 'a', simpleValue: 1 }] }), records[0]!),
    )
    expect(codes(range)).toEqual(['BadStep'])
  })
})

describe('a large record', () => {
  const elements = (byteLength: number): Uint8Array =>
    Uint8Array.from({ length: byteLength }, (_, i) => (i * 2_654_435_761) >>> 24)
  const spec = (byteLength: number) => ({ dtype: 'uint8', shape: [byteLength], content: elements(byteLength) }) as const
  const large = (byteLength: number) =>
    record({ wallTime: 1, step: 1, tag: 'large', mode: 'TRAIN', modeStep: 1, tensor: spec(byteLength) })

  it('streams, longer than a window or than two parts of a scan', async () => {
    for (const byteLength of isLong ? [MIB - 100, MIB, 3 * MIB + 5, 33 * MIB] : [MIB, 3 * MIB + 5]) {
      const path = file(tensor('before', 1), large(byteLength), tensor('after', 1))
      const result = await verify(path)
      expect(result.range.problems).toEqual([])
      expect(good(result).map(([, , , tags]) => tags)).toEqual([['before'], ['large'], ['after']])
      const bytes = readFileSync(path)
      bytes[bytes.length - 3000 > byteLength / 2 ? Math.floor(byteLength / 2) : 500]! ^= 4
      const flipped = await verify(file(bytes))
      expect(codes(flipped.range)).toEqual(['BadPayloadChecksum'])
      expect(flipped.range.problems[0]!.tag).toBe('large')
      expect(good(flipped).map(([, , , tags]) => tags)).toEqual([['before'], ['after']])
    }
  })

  it('that is torn is told as torn', async () => {
    const bytes = Buffer.concat([tensor('before', 1), large(3 * MIB)])
    const { range } = await verify(file(bytes.subarray(0, -MIB)))
    expect(codes(range)).toEqual(['TruncatedRecord'])
  })

  it('is held against its shape', async () => {
    const wrong = { ...spec(2 * MIB), shape: [2 * MIB + 1] }
    const path = file(record({ wallTime: 1, step: 1, tag: 'a', mode: 'TRAIN', modeStep: 1, tensor: wrong }))
    const { range } = await verify(path)
    expect(codes(range)).toEqual(['ShapeMismatch'])
    expect(range.problems[0]!.tag).toBe('a')
  })

  it('may have another long field, or several long Values', async () => {
    const values = [
      { tag: 'one', tensor: spec(2 * MIB) },
      { tag: 'two', tensor: spec(2 * MIB) },
    ]
    const image = Buffer.concat([
      encodeEvent({ wallTime: 1, step: 1, values }),
      Buffer.from([0x22]),
      varint(2 * MIB),
      elements(2 * MIB),
    ])
    const path = file(frameRecord(image, { checksum: 'true' }), tensor('after', 2))
    const result = await verify(path)
    expect(result.range.problems).toEqual([])
    expect(good(result).map(([, , , tags]) => tags)).toEqual([['one', 'two'], ['after']])
    // Where it may not be in memory as a whole, its names are known, and its checksum.
    const small = await verify(path, { memory: 2 * MIB })
    expect(small.range.problems).toEqual([])
    expect(small.range.noteCounts).toEqual({ RecordNotChecked: 1 })
    expect(good(small)).toEqual(good(result))
  })

  it('is none of the memory’s business: what is not an Event is named', async () => {
    const path = file(frameRecord(new Uint8Array(2 * MIB).fill(0xff), { checksum: 'true' }), tensor('after', 2))
    for (const memory of [32 * MIB, 2 * MIB]) {
      const result = await verify(path, { memory })
      expect(codes(result.range)).toEqual(['MalformedEvent'])
      expect(good(result)).toHaveLength(1)
    }
  })
})
