/** Records from bytes, from streams cut anywhere, and from Blobs; and what is wrong with them. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { deflateSync, gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { FormatError, readTFRecords, type TFRecord, type TFRecordOptions, UsageError } from '#dist/kernels.js'
import { frameRecord } from '../../fixtures/event-writer.js'
import { ROOT } from '../support/golden.js'

const payloads = [0, 1, 5, 100, 4096, 140_000, 0, 300_000, 17].map((length, seed) =>
  Uint8Array.from({ length }, (_, i) => i * seed + seed),
)
const file = new Uint8Array(Buffer.concat(payloads.map(payload => frameRecord(payload, { checksum: 'true' }))))

async function* pieces(bytes: Uint8Array, sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const size = sizes[i % sizes.length]!
    yield bytes.slice(at, at + size)
    at += size
  }
}

const plain = (records: readonly TFRecord[]) =>
  records.map(({ startByte, byteLength, payload }) => [startByte, byteLength, Buffer.from(payload).toString('hex')])

async function all(records: AsyncIterable<TFRecord> | Iterable<TFRecord>): Promise<TFRecord[]> {
  const found: TFRecord[] = []
  for await (const record of records) found.push(record)
  return found
}

/** The records before the error, and the error. */
async function untilError(records: AsyncIterable<TFRecord> | Iterable<TFRecord>): Promise<[number, unknown]> {
  let count = 0
  try {
    for await (const _ of records) count++
  } catch (error) {
    return [count, error]
  }
  return [count, undefined]
}

let at = 0
const expected = payloads.map(payload => {
  const [startByte, byteLength] = [at, payload.length + 16]
  at += byteLength
  return [startByte, byteLength, Buffer.from(payload).toString('hex')]
})

describe('readTFRecords', () => {
  it('reads bytes, without copying them', () => {
    const records = [...readTFRecords(file)]
    expect(plain(records)).toEqual(expected)
    expect(records.every(({ payload }) => payload.buffer === file.buffer)).toBe(true)
    expect([...readTFRecords(new Uint8Array(0))]).toEqual([])
    expect(plain([...readTFRecords(file.buffer)])).toEqual(expected)
  })

  it('reads Blobs, files and streams of Node.js', async () => {
    expect(plain(await all(readTFRecords(new Blob([file]))))).toEqual(expected)
    expect(plain(await all(readTFRecords(new File([file], 'events'))))).toEqual(expected)
    expect(plain(await all(readTFRecords(Readable.from(pieces(file, [1000])))))).toEqual(expected)
  })

  it.each([[[1]], [[11, 1, 4]], [[12]], [[16]], [[17]], [[65_536]], [[140_000, 3]], [[file.length]]])(
    'reads pieces of %j bytes',
    async sizes => expect(plain(await all(readTFRecords(pieces(file, sizes))))).toEqual(expected),
  )

  it('reads any records cut anywhere', async () => {
    const data = fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 8 })
    await fc.assert(
      fc.asyncProperty(data, fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1 }), async (list, sizes) => {
        const bytes = new Uint8Array(Buffer.concat(list.map(payload => frameRecord(payload, { checksum: 'true' }))))
        const found = await all(readTFRecords(pieces(bytes, sizes)))
        expect(found.map(({ payload }) => [...payload])).toEqual(list.map(payload => [...payload]))
      }),
      { numRuns: 200 },
    )
  })

  it('takes the constant that smdebug writes for a checksum', () => {
    expect([...readTFRecords(frameRecord(payloads[3]!))]).toHaveLength(1)
  })

  it('reads a real event file', () => {
    const path = 'fixtures/trials/dtypes-checksummed/events/000000000001/000000000001_worker_0.tfevents'
    expect([...readTFRecords(readFileSync(join(ROOT, path)))].length).toBeGreaterThan(10)
  })

  it('lets go of a stream that is left', async () => {
    let isClosed = false
    async function* endless(): AsyncGenerator<Uint8Array> {
      try {
        for (;;) yield file
      } finally {
        isClosed = true
      }
    }
    for await (const _ of readTFRecords(endless())) break
    expect(isClosed).toBe(true)
  })
})

describe('what is wrong', () => {
  const flipped = (offset: number): Uint8Array => {
    const bytes = file.slice()
    bytes[offset]! ^= 4
    return bytes
  }
  const fourth = expected[3]![0] as number
  const cases: [string, Uint8Array, TFRecordOptions, number, string, number][] = [
    ['a length', flipped(fourth), {}, 3, 'BadLengthChecksum', fourth + 8],
    ['a payload', flipped(fourth + 20), {}, 3, 'BadPayloadChecksum', fourth + 12 + 100],
    [
      'a payload larger than the window',
      flipped((expected[7]![0] as number) + 299_999),
      {},
      7,
      'BadPayloadChecksum',
      445_145,
    ],
    ['an end within a header', file.subarray(0, fourth + 5), {}, 3, 'TruncatedRecord', fourth],
    ['an end within a payload', file.subarray(0, fourth + 50), {}, 3, 'TruncatedRecord', fourth],
    [
      'an end before the footer',
      file.subarray(0, file.length - 1),
      {},
      8,
      'TruncatedRecord',
      expected[8]![0] as number,
    ],
    ['a record too long', file, { maxByteLength: 5000 }, 5, 'RecordTooLarge', expected[5]![0] as number],
    ['a length that nobody checked', flipped(fourth + 7), { checkLevel: 'none' }, 3, 'RecordTooLarge', fourth],
  ]

  it.each(cases)('%s', async (_, bytes, options, count, code, offset) => {
    for (const from of [
      () => readTFRecords(bytes, { ...options, name: 'my.tfrecord' }),
      () => readTFRecords(pieces(bytes, [7, 1000, 13]), { ...options, name: 'my.tfrecord' }),
    ]) {
      const [read, error] = await untilError(from())
      expect(error).toBeInstanceOf(FormatError)
      const { code: got, offset: at, url, message } = error as FormatError
      expect([read, got, at, url]).toEqual([count, code, code === 'BadPayloadChecksum' ? at : offset, 'my.tfrecord'])
      expect(message).toMatch(/^my\.tfrecord, offset \d+: expected .*, got /)
    }
  })

  it('is not looked for where it is not asked for', () => {
    expect([...readTFRecords(flipped(fourth + 20), { checkLevel: 'minimal' })]).toHaveLength(payloads.length)
    expect([...readTFRecords(flipped(fourth + 8), { checkLevel: 'none' })]).toHaveLength(payloads.length)
  })

  it('with the call', async () => {
    // @ts-expect-error: text has no bytes
    expect(() => readTFRecords('file')).toThrow(
      'readTFRecords: expected a typed array, a DataView or a buffer, got "file"',
    )
    expect(() => readTFRecords(file, { checkLevel: 'ful' as 'full' })).toThrow(
      'one of none, minimal, full as checkLevel',
    )
    expect(() => readTFRecords(file, { maxByteLength: 3 })).toThrow(UsageError)
    expect(() => readTFRecords(file, { nmae: 'x' } as object)).toThrow('did you mean "name"?')
    expect(() => readTFRecords(file, { name: 5 as unknown as string })).toThrow('a name in text, got 5')
    const texts = Readable.from(['a', 'b']) as AsyncIterable<Uint8Array>
    await expect(all(readTFRecords(texts))).rejects.toThrow('expected a stream of Uint8Array, got one of "a"')
  })
})

describe('what is compressed', () => {
  it.each([
    ['gzip', gzipSync(file)],
    ['zlib', deflateSync(file)],
    ['zlib, at its fastest', deflateSync(file, { level: 1 })],
  ])('is read as a stream and as a Blob: %s', async (_, bytes) => {
    for (const sizes of [[1 << 20], [5, 1, 4096], [1]]) {
      expect(plain(await all(readTFRecords(pieces(new Uint8Array(bytes), sizes))))).toEqual(expected)
    }
    expect(plain(await all(readTFRecords(new Blob([new Uint8Array(bytes)]))))).toEqual(expected)
  })

  it('is named in memory, and where it is cut', async () => {
    expect(() => [...readTFRecords(gzipSync(file), { name: 'x' })]).toThrow(
      /^x, offset 0: expected TFRecords, got what is compressed with gzip: give it as a stream or a Blob$/,
    )
    const cut = new Uint8Array(gzipSync(file)).subarray(0, 1000)
    expect(await untilError(readTFRecords(pieces(cut, [100])))).toEqual([
      expect.any(Number),
      expect.objectContaining({ code: 'BadCompression' }),
    ])
    const failing = (async function* () {
      yield new Uint8Array(gzipSync(file)).subarray(0, 500)
      throw new RangeError('the network')
    })()
    expect((await untilError(readTFRecords(failing)))[1]).toEqual(new RangeError('the network'))
  })

  it('is not what only looks like it: a length of 0x9c78', async () => {
    const record = new Uint8Array(frameRecord(new Uint8Array(0x9c78), { checksum: 'true' }))
    expect([...readTFRecords(record)]).toHaveLength(1)
    expect(await all(readTFRecords(pieces(record, [7])))).toHaveLength(1)
  })
})

describe('damage, where somebody wants to go on', () => {
  const small = Array.from({ length: 20 }, (_, i) =>
    Buffer.from(frameRecord(Uint8Array.of(i, 1, 2, 3), { checksum: 'true' })),
  )
  const read = async (bytes: Uint8Array, sizes?: readonly number[]) => {
    const errors: string[] = []
    const options: TFRecordOptions = { onDamage: ({ code }) => void errors.push(code) }
    const records = sizes ? readTFRecords(pieces(bytes, sizes), options) : readTFRecords(bytes, options)
    const found = await all(records)
    for (const { startByte, byteLength, payload } of found) {
      expect(Buffer.from(bytes.subarray(startByte + 12, startByte + byteLength - 4))).toEqual(Buffer.from(payload))
    }
    return [found.map(({ payload }) => payload[0]), errors]
  }
  const without = (...gone: readonly number[]) => small.map((_, i) => i).filter(i => !gone.includes(i))

  it.each([undefined, [1 << 20], [1], [13, 7, 100]])('finds the records behind it, in pieces of %s', async sizes => {
    const payload = Buffer.concat(small)
    payload[10 * 20 + 13]! ^= 1
    expect(await read(payload, sizes)).toEqual([without(10), ['BadPayloadChecksum']])
    const length = Buffer.concat(small)
    length[10 * 20 + 1]! ^= 1
    expect(await read(length, sizes)).toEqual([without(10), ['BadLengthChecksum']])
    const zeros = Buffer.concat([...small.slice(0, 10), Buffer.alloc(3000), ...small.slice(10)])
    expect(await read(zeros, sizes)).toEqual([without(), ['BadLengthChecksum']])
    const cut = Buffer.concat([...small.slice(0, 10), small[10]!.subarray(0, 14), ...small.slice(11)])
    expect(await read(cut, sizes)).toEqual([without(10), ['BadPayloadChecksum']])
    const end = Buffer.concat([...small.slice(0, 19), small[19]!.subarray(0, 14)])
    expect(await read(end, sizes)).toEqual([without(19), ['TruncatedRecord']])
    const long = Buffer.from(frameRecord(new Uint8Array(5000), { checksum: 'true' })).subarray(0, 100)
    const appended = Buffer.concat([...small.slice(0, 10), long, ...small.slice(10)])
    expect(await read(appended, sizes)).toEqual([without(), ['TruncatedRecord']])
  })

  it('is thrown as ever without, and a function is wanted', () => {
    const bytes = Buffer.concat(small)
    bytes[1]! ^= 1
    expect(() => [...readTFRecords(bytes)]).toThrow(FormatError)
    expect(() => readTFRecords(bytes, { onDamage: true as never })).toThrow(UsageError)
  })
})
