/** Records larger than what is read at once: streamed, in parts, within the memory. */

import { closeSync, openSync, readFileSync, readSync, rmSync, truncateSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { EngineError } from '#dist/base/errors.js'
import { Engine } from '#dist/core/engine.js'
import { withEngineSync } from '#dist/core/engines.js'
import { MOMENT_INDEX } from '#dist/core/moments-row.js'
import { closePools, createTrial, type ScanRow, type Trial } from '#dist/index.js'
import { editEntry, readIndex, replacePayload } from '../fixtures/corrupt.js'
import { eventFilePath, type StepTensor, TrialWriter, varint } from '../fixtures/event-writer.js'
import { uniform } from '../fixtures/random.js'
import { isLong, part } from './support/part.js'
import { decodeFrame } from './support/records.js'
import { plainRow, plainRows, rejectionOf, rowsOf } from './support/scanning.js'
import { scratchDirectory } from './support/scratch.js'

const MIB = 1 << 20
const scratch = scratchDirectory('large')

afterAll(closePools)

function floats32(count: number, seed: number): Uint8Array {
  const random = uniform(seed)
  const block = Float32Array.from({ length: 65_537 }, () => random() - 0.3)
  return new Uint8Array(Float32Array.from({ length: count }, (_, i) => block[i % 65_537]! * (1 + (i >> 16))).buffer)
}

function floats64(count: number, seed: number): Uint8Array {
  return new Uint8Array(Float64Array.from(new Float32Array(floats32(count, seed).buffer)).buffer)
}

/** A trial of one step whose tensors are given. */
function writeTrial(name: string, tensors: readonly StepTensor[]): string {
  const directory = join(scratch, name)
  const writer = new TrialWriter(directory, { checksum: 'true' })
  writer.step({ step: 0, mode: 'TRAIN', modeStep: 0, tensors })
  writer.end()
  return directory
}

const data = { f32: floats32(10_000_003, 1), f64: floats64(2_200_001, 2), mid: floats32(2_300_000, 3) }
const tensors: StepTensor[] = [
  { name: 'before', dtype: 'float32', shape: [3], values: [1, 2, 3] },
  { name: 'f32', dtype: 'float32', shape: [10_000_003], data: data.f32 },
  { name: 'f64', dtype: 'float64', shape: [2_200_001, 1], data: data.f64 },
  // Read as a whole with the default memory, streamed with the least.
  { name: 'mid', dtype: 'float32', shape: [2_300_000], data: data.mid },
  { name: 'after', dtype: 'int64', shape: [2], values: [1n, -5n] },
]

describe('a trial with records of 40 MB, 17 MB and 9 MB', () => {
  let directory: string
  let file: string
  let trial: Trial
  let reference: ScanRow[]

  beforeAll(async () => {
    directory = writeTrial('plain', tensors)
    file = join(directory, eventFilePath(0, 'worker_0'))
    trial = await createTrial(directory)
    reference = await rowsOf(trial, { threads: 0, checkLevel: 'full' })
  })

  it('is scanned without an error', () => {
    expect(reference.map(({ tensor, shape, error }) => [tensor, shape, error])).toEqual([
      ['before', [3], undefined],
      ['f32', [10_000_003], undefined],
      ['f64', [2_200_001, 1], undefined],
      ['mid', [2_300_000], undefined],
      ['after', [2], undefined],
    ])
  })

  const ways = [
    [0, 4 * MIB, 'minimal'],
    [0, 4 * MIB, 'full'],
    [0, 64 * MIB, 'none'],
    [1, 4 * MIB, 'full'],
    [2, 4 * MIB, 'minimal'],
    [2, 64 * MIB, 'full'],
    [2, 1024 * MIB, 'minimal'],
  ] as const
  it.each(part(ways, (_, i) => i === 2 || i === 4))(
    'has the same bits at threads %d, memory %d, check %s',
    async (threads, memory, check) => {
      expect(plainRows(await rowsOf(trial, { threads, memory, checkLevel: check }))).toEqual(plainRows(reference))
    },
  )

  it('has the reductions of the whole record', () => {
    const engine = new Engine()
    const bytes = readFileSync(file)
    const at = MOMENT_INDEX
    for (const { tensorname, start_idx, length } of readIndex(directory, 0).tensor_payload) {
      const row = reference.find(({ tensor }) => tensor === tensorname)!.moments!.row
      const whole = decodeFrame(engine, bytes.subarray(start_idx, start_idx + length), { tag: tensorname, level: 2 })
      // Merged from parts only where there are several.
      if (!tensorname.startsWith('f')) expect(Buffer.from(row.buffer)).toEqual(Buffer.from(whole.row!.buffer))
      for (const slot of ['count', 'min', 'max', 'minAbs', 'maxAbs', 'zeroCount'] as const) {
        expect([tensorname, slot, row[at[slot]]]).toEqual([tensorname, slot, whole.row![at[slot]]])
      }
      for (const slot of ['sum', 'sumAbs', 'mean', 'm2', 'meanAbs', 'm2Abs', 'sumSquares'] as const) {
        const wanted = whole.row![at[slot]]!
        expect(Math.abs(row[at[slot]]! - wanted)).toBeLessThanOrEqual(1e-12 * Math.abs(wanted))
      }
    }
  })

  it.each(part([4 * MIB, 64 * MIB], memory => memory === 4 * MIB))(
    'hands out every value with memory %d',
    async memory => {
      for (const [name, bytes] of Object.entries(data)) {
        const value = await trial.tensor(name).value(0, { memory, checkLevel: 'full' })
        expect(Buffer.compare(value.bytes, bytes)).toBe(0)
        expect(value.shape).toEqual(reference.find(({ tensor }) => tensor === name)!.shape)
      }
    },
  )

  it('stays within the memory', async () => {
    // This process's engine has done larger work before, so a scan in a new one.
    for (const memory of isLong ? [4 * MIB, 16 * MIB, 64 * MIB] : [4 * MIB]) {
      expect(() =>
        withEngineSync(() => {
          throw new EngineError('not trusted any more')
        }),
      ).toThrow(EngineError)
      await rowsOf(trial, { threads: 0, memory, checkLevel: 'full' })
      expect(withEngineSync(engine => engine.byteLength)).toBeLessThanOrEqual(memory)
    }
  })

  it('reads every byte once, and little more', async () => {
    const scan = trial.scan({ threads: 0, memory: 4 * MIB })
    for await (const _ of scan) {
    }
    const total = readIndex(directory, 0).tensor_payload.reduce((sum, { length }) => sum + length, 0)
    expect(scan.stats.readBytes).toBeLessThan(total + 200_000)
    expect(scan.stats.readBytes).toBeGreaterThan(total - 200)
    expect(scan.stats.records).toBe(5)
  })

  describe('spoilt', () => {
    /** Changes a byte for the length of some work. */
    async function withByte<T>(at: number, change: (byte: number) => number, work: () => Promise<T>): Promise<T> {
      const descriptor = openSync(file, 'r+')
      const byte = Buffer.alloc(1)
      readSync(descriptor, byte, 0, 1, at)
      try {
        writeSync(descriptor, Uint8Array.of(change(byte[0]!)), 0, 1, at)
        return await work()
      } finally {
        writeSync(descriptor, byte, 0, 1, at)
        closeSync(descriptor)
      }
    }

    const places: [string, string, (length: number) => number][] = [
      ['f32', 'the head (wall time)', () => 12 + 3],
      ['f32', 'the first part', () => 1_000_000],
      ['f32', 'the middle part', () => 20_000_001],
      ['f32', 'the last part', length => length - 1000],
      ['f32', 'the tail (digit of the mode)', length => length - 5],
      ['f32', 'the stored checksum', length => length - 1],
      ['f64', 'the first part', () => 200],
      ['f64', 'the last part', length => length - 100],
      ['mid', 'the only part', () => 5_000_000],
    ]
    it.each(part(places, (_, i) => i === 2 || i === 8))(
      '%s: a bit of %s is found at check full, and its neighbours stand',
      async (tensor, _, at) => {
        const { start_idx, length } = readIndex(directory, 0).tensor_payload.find(e => e.tensorname === tensor)!
        await withByte(
          start_idx + at(length),
          byte => byte ^ 1,
          async () => {
            for (const memory of [4 * MIB, 64 * MIB]) {
              const rows = await rowsOf(trial, { threads: 0, memory, checkLevel: 'full' })
              for (const [i, row] of rows.entries()) {
                if (row.tensor !== tensor) expect(plainRow(row)).toEqual(plainRow(reference[i]!))
                else expect(row.error).toMatchObject({ code: 'BadPayloadChecksum', offset: start_idx + length - 4 })
              }
            }
            const failure = await rejectionOf(trial.tensor(tensor).value(0, { checkLevel: 'full', memory: 4 * MIB }))
            expect(failure).toMatchObject({ code: 'BadPayloadChecksum', offset: start_idx + length - 4 })
            const unchecked = await rowsOf(trial, {
              threads: 0,
              tensors: tensor,
              checkLevel: 'minimal',
              memory: 4 * MIB,
            })
            expect(unchecked[0]!.error).toBeUndefined()
          },
        )
      },
    )

    it('in its length or the length checksum is found at check minimal', async () => {
      const { start_idx } = readIndex(directory, 0).tensor_payload[1]!
      for (const [offset, checks, code] of [
        [8, ['minimal', 'full'], 'BadLengthChecksum'],
        [0, ['minimal', 'full'], 'BadLengthChecksum'],
        [0, ['none'], 'LengthMismatch'],
      ] as const) {
        await withByte(
          start_idx + offset,
          byte => byte ^ 1,
          async () => {
            for (const check of checks) {
              const [row] = await rowsOf(trial, { threads: 0, tensors: 'f32', checkLevel: check })
              expect(row!.error).toMatchObject({ code })
            }
          },
        )
      }
    })
  })
})

describe('large records in other forms', () => {
  const big = floats64(2_200_001, 5)
  const middle = floats32(1_300_000, 6)
  const shape = [2_200_001]
  const packed = Array.from(new Float32Array(middle.buffer, 0, 1_300_000))
  let trial: Trial
  let directory: string

  beforeAll(async () => {
    directory = writeTrial(
      'forms',
      [
        { name: 'reversed', dtype: 'float64', shape, data: big, form: { order: 'reversed' } },
        { name: 'split', dtype: 'float64', shape, data: big, form: { splitMessages: true, paddedVarints: true } },
        {
          name: 'all',
          dtype: 'float64',
          shape,
          data: big,
          form: { order: 'reversed', unknownFields: true, paddedVarints: true, splitMessages: true, overridden: true },
        },
        { name: 'first of two', dtype: 'float64', shape: [1_250_000], data: big.subarray(0, 10_000_000) },
        { name: 'second of two', dtype: 'float64', shape: [1_250_000], data: big.subarray(8), sameRecord: true },
        { name: 'packed', dtype: 'float32', shape: [1_300_000], values: packed, place: 'packed' },
      ].map(tensor =>
        tensor.name === 'second of two' ? { ...tensor, data: big.subarray(8, 10_000_008) } : tensor,
      ) as StepTensor[],
    )
    trial = await createTrial(directory)
  })

  it.each(part(['reversed', 'split', 'all'], name => name === 'all'))('%s', async name => {
    for (const memory of [4 * MIB, 64 * MIB]) {
      const [row] = await rowsOf(trial, { threads: 0, memory, checkLevel: 'full', tensors: name })
      expect(row!.error).toBeUndefined()
      expect([row!.dtype, row!.shape, row!.moments!.count]).toEqual(['float64', shape, 2_200_001])
      expect(Buffer.compare((await trial.tensor(name).value(0, { memory, checkLevel: 'full' })).bytes, big)).toBe(0)
    }
  })

  it('has the same bits in every form', async () => {
    const rows = await rowsOf(trial, { threads: 0, tensors: ['reversed', 'split', 'all'] })
    expect(new Set(rows.map(row => JSON.stringify(plainRow({ ...row, tensor: '' })))).size).toBe(1)
  })

  it.each([
    ['first of two', 0],
    ['second of two', 8],
  ] as const)('%s Values in one record', async (name, from) => {
    for (const check of ['minimal', 'full'] as const) {
      const [row] = await rowsOf(trial, { threads: 0, checkLevel: check, tensors: name })
      expect(row!.error).toBeUndefined()
      const value = await trial.tensor(name).value(0, { checkLevel: check })
      expect(Buffer.compare(value.bytes, big.subarray(from, from + 10_000_000))).toBe(0)
      expect(row!.moments!.slot('max')).toBe((value.data as Float64Array).reduce((a, b) => Math.max(a, b)))
    }
    // What the other one takes does not fit beside.
    const [row] = await rowsOf(trial, { threads: 0, memory: 4 * MIB, tensors: name })
    expect(row!.error).toMatchObject({ code: 'RecordTooLarge' })
  })

  it('values one by one are read while the record fits, and refused clearly when it does not', async () => {
    const [row] = await rowsOf(trial, { threads: 0, tensors: 'packed', checkLevel: 'full' })
    expect(row!.error).toBeUndefined()
    const value = await trial.tensor('packed').value(0, { checkLevel: 'full' })
    expect(Buffer.compare(value.bytes, middle)).toBe(0)
    const summary = await trial.summary()
    expect(summary.tensors.find(({ name }) => name === 'packed')).toMatchObject({
      dtype: 'float32',
      shape: [1_300_000],
    })
    const [refused] = await rowsOf(trial, { threads: 0, tensors: 'packed', memory: 4 * MIB })
    expect(refused!.error).toMatchObject({ name: 'FormatError', code: 'RecordTooLarge' })
    expect(await rejectionOf(trial.tensor('packed').value(0, { memory: 4 * MIB }))).toMatchObject({
      code: 'RecordTooLarge',
    })
  })
})

describe('large records that lie', () => {
  const big = new Uint8Array(17_000_000).fill(1)
  const text = new TextEncoder()

  function field(number: number, ...parts: readonly Uint8Array[]): Uint8Array {
    const body = Buffer.concat(parts)
    return Buffer.concat([varint(number * 8 + 2), varint(body.length), body])
  }
  const tag = (name: string) => field(1, text.encode(name))
  const dtype = (number: number) => Buffer.concat([varint(8), varint(number)])
  const shape = (...sizes: readonly number[]) =>
    field(2, ...sizes.map(size => field(2, Buffer.concat([varint(8), varint(size)]))))
  const content = (bytes: Uint8Array) => field(4, bytes)
  const floatVal = (...numbers: readonly number[]) => field(5, new Uint8Array(Float32Array.from(numbers).buffer))
  const event = (...values: readonly Uint8Array[][]) => field(5, ...values.map(parts => field(1, ...parts)))
  const tensor = (...parts: readonly Uint8Array[]) => field(8, ...parts)
  const two = new Uint8Array(Float32Array.of(7, 8).buffer)

  const cases: [string, Uint8Array, readonly number[] | string | RegExp][] = [
    [
      'with a second, small content',
      event([tag('t'), tensor(dtype(1), shape(2), content(big)), tensor(content(two))]),
      [7, 8],
    ],
    [
      'with a small content before',
      event([tag('t'), tensor(dtype(6), shape(17_000_000), content(two)), tensor(content(big))]),
      'int8',
    ],
    [
      'with the tensor behind another',
      event([tag('x'), tensor(content(big))], [tag('t'), tensor(dtype(1), shape(2), floatVal(7, 8))]),
      [7, 8],
    ],
    [
      'with content behind another',
      event([tag('x'), tensor(content(big))], [tag('t'), tensor(dtype(1), shape(2), content(two))]),
      [7, 8],
    ],
    [
      'with a scalar behind another',
      event([tag('x'), tensor(content(big))], [tag('t'), Buffer.from([0x15, 0, 0, 0xe0, 0x40])]),
      [7],
    ],
    [
      'with values around content that is taken back',
      event([
        tag('t'),
        tensor(dtype(1), shape(2), floatVal(7), content(big), floatVal(8)),
        tensor(content(new Uint8Array())),
      ]),
      /RecordTooLarge/,
    ],
    [
      'with strings and content',
      event([tag('t'), tensor(dtype(7), shape(1), content(big), field(8, text.encode('x')))]),
      /RecordTooLarge/,
    ],
    [
      'with a large field that is none of ours',
      event([tag('t'), tensor(dtype(1), shape(2), content(two)), field(99, big)]),
      /RecordTooLarge/,
    ],
    [
      'with a large tag',
      event([tag('t'.repeat(17_000_000)), tensor(dtype(1), shape(2), content(two))]),
      /RecordTooLarge/,
    ],
    ['without a tensor', event([tag('t'), field(4, big)]), /RecordTooLarge/],
    [
      'whose content is longer than its shape',
      event([tag('t'), tensor(dtype(1), shape(2), content(big))]),
      /ShapeMismatch/,
    ],
    ['of an unknown dtype', event([tag('t'), tensor(dtype(99), shape(17_000_000), content(big))]), /UnknownDType/],
    ['of another tensor', event([tag('u'), tensor(dtype(6), shape(17_000_000), content(big))]), /TagMismatch/],
    [
      'with rubbish behind the content',
      Buffer.concat([event([tag('t'), tensor(dtype(6), shape(17_000_000), content(big))]), Buffer.of(7, 7)]),
      /MalformedEvent/,
    ],
    [
      'with content that ends behind the tensor',
      event([tag('t'), tensor(dtype(6), Buffer.concat([varint(34), varint(big.length + 10), big]))]),
      /MalformedEvent/,
    ],
  ]

  it.each(cases)('%s', async (name, payload, wanted) => {
    const small: StepTensor = { name: 't', dtype: 'float32', shape: [2], values: [1, 2] }
    const directory = writeTrial(`lies ${name}`, [small, { ...small, name: 'neighbour' }])
    replacePayload(directory, 0, 't', payload)
    const trial = await createTrial(directory)
    for (const check of ['minimal', 'full'] as const) {
      const [row, neighbour] = await rowsOf(trial, { threads: 0, checkLevel: check })
      expect(neighbour!.reductions.sum).toBe(3)
      if (wanted instanceof RegExp) {
        expect(row!.error?.code).toMatch(wanted)
        expect(row!.error?.name).toBe('FormatError')
        expect(await rejectionOf(trial.tensor('t').value(0, { checkLevel: check }))).toMatchObject({
          code: row!.error!.code,
        })
        continue
      }
      expect(row!.error).toBeUndefined()
      const value = await trial.tensor('t').value(0, { checkLevel: check })
      if (typeof wanted === 'string') expect([value.dtype, row!.moments!.count]).toEqual([wanted, big.length])
      else {
        expect([...(value.data as Float32Array)]).toEqual(wanted)
        expect(row!.reductions.sum).toBe(wanted.reduce((a, b) => a + b))
      }
    }
    rmSync(directory, { recursive: true })
  })

  it('about where they are', async () => {
    const directory = writeTrial('elsewhere', [
      { name: 'a', dtype: 'int8', shape: [17_000_000], data: big },
      { name: 'b', dtype: 'int8', shape: [17_000_001], data: new Uint8Array(17_000_001) },
    ])
    const [a, b] = readIndex(directory, 0).tensor_payload
    editEntry(directory, 0, 'a', { start_idx: b!.start_idx, length: b!.length })
    editEntry(directory, 0, 'b', { start_idx: a!.start_idx, length: b!.length })
    const trial = await createTrial(directory)
    const rows = await rowsOf(trial, { threads: 2 })
    expect(rows.map(({ error }) => error?.code)).toEqual(['TagMismatch', 'LengthMismatch'])
    // A file cut off in the midst of a record.
    editEntry(directory, 0, 'a', a!)
    editEntry(directory, 0, 'b', b!)
    truncateSync(join(directory, eventFilePath(0, 'worker_0')), 16_900_000)
    const cut = await rowsOf(await createTrial(directory), { threads: 0 })
    expect(cut.map(({ error }) => error?.code)).toEqual(['TruncatedRecord', 'TruncatedRecord'])
    expect(cut[0]!.error).toMatchObject({ offset: 0, expected: `a record of ${a!.length} bytes` })
    truncateSync(join(directory, eventFilePath(0, 'worker_0')), 5)
    const short = await rowsOf(await createTrial(directory), { threads: 0 })
    expect(short.map(({ error }) => error?.code)).toEqual(['TruncatedRecord', 'TruncatedRecord'])
  })
})
