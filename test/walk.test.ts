/** The core's walk of Events, held against protobufjs. */

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RecordSlot } from '#dist/core/border/abi.js'
import { Engine } from '#dist/core/engine.js'
import { MOMENT_INDEX } from '#dist/core/moments-row.js'
import type { Batch } from '#dist/core/slots.js'
import {
  DTYPES,
  type DTypeName,
  elementBytes,
  encodeEvent,
  frameRecord,
  type TensorSpec,
  type ValueSpec,
  varint,
  type WireForm,
} from '../fixtures/event-writer.js'
import { uniform } from '../fixtures/random.js'
import { comparable, comparableJudgement, hex, judge } from './support/event-judge.js'
import {
  decodeEvent,
  type EventView,
  encodeEvent as encodeByProtobufjs,
  readFrames,
  TYPED_FIELDS,
} from './support/event-schema.js'
import { ROOT } from './support/golden.js'
import { isLong } from './support/part.js'
import { type Decoded, type DecodeOptions, decodeFrame } from './support/records.js'

const engine = new Engine()

function decode(payload: Uint8Array, options: DecodeOptions = {}): Decoded {
  return decodeFrame(engine, frameRecord(payload), options)
}

function expectAgreement(payload: Uint8Array, tag: string | undefined, options: DecodeOptions = {}): Decoded {
  const decoded = decode(payload, { ...(tag === undefined ? {} : { tag }), ...options })
  expect(comparable(decoded)).toEqual(comparableJudgement(judge(decodeEvent(payload), tag)))
  return decoded
}

/** A field that is delimited by its length. */
function delimited(field: number, ...parts: Uint8Array[]): Uint8Array {
  const content = Buffer.concat(parts)
  return Buffer.concat([varint(field * 8 + 2), varint(content.length), content])
}

// ---------------------------------------------------------------------------------------------------- what is walked

/** Payloads of all event files of the fixtures. */
function fixturePayloads(): { name: string; payload: Uint8Array }[] {
  const fixtures = join(ROOT, 'fixtures')
  return readdirSync(fixtures, { recursive: true, encoding: 'utf8' })
    .filter(path => path.endsWith('.tfevents'))
    .sort()
    .flatMap(path =>
      readFrames(readFileSync(join(fixtures, path))).map(({ payload }) => ({ name: path, payload: payload.slice() })),
    )
}

const places = ['content', 'packed', 'unpacked', 'mixed'] as const
const dtypes = Object.keys(DTYPES) as DTypeName[]
const forms: fc.Arbitrary<WireForm> = fc.record({
  order: fc.constantFrom('natural', 'reversed'),
  unknownFields: fc.boolean(),
  paddedVarints: fc.boolean(),
  splitMessages: fc.boolean(),
  overridden: fc.boolean(),
})

/** Elements of a dtype: of a float any bits, of an integer its whole range. */
function valuesOf(dtype: DTypeName, count: number, random: () => number): (number | bigint)[] {
  const word = () => BigInt(Math.floor(random() * 2 ** 32))
  return Array.from({ length: count * DTYPES[dtype].parts }, () => {
    if (dtype === 'int64') return BigInt.asIntN(64, (word() << 32n) | word())
    if (dtype === 'uint64') return (word() << 32n) | word()
    if (dtype === 'bool') return Number(random() < 0.5)
    if (/float|complex/.test(dtype))
      return [Number.NaN, Infinity, -0, (random() - 0.5) * 1e3][Math.floor(random() * 4)]!
    const range = 2 ** (DTYPES[dtype].byteLength * 8)
    const low = dtype.startsWith('u') ? 0 : -range / 2
    return low + Math.floor(random() * range)
  })
}

const tensors: fc.Arbitrary<TensorSpec> = fc
  .record({
    dtype: fc.constantFrom(...dtypes),
    shape: fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 4 }),
    place: fc.constantFrom(...places),
    dimNames: fc.boolean(),
    writeShape: fc.boolean(),
    // Also too few and too many, which has to be found out.
    surplus: fc.constantFrom(0, 0, 0, -1, -2, 1),
    alone: fc.boolean(),
    number: fc.constantFrom(undefined, undefined, undefined, 0, 7, 99, 1),
    seed: fc.nat(),
  })
  .map(({ dtype, shape, place, dimNames, writeShape, surplus, alone, number, seed }) => {
    const count = writeShape ? shape.reduce((product, size) => product * size, 1) : 1
    const there = Math.max(0, alone && place !== 'content' ? Math.min(1, count) : count + surplus)
    const random = uniform(seed)
    const common = { dtype, shape, dimNames, writeShape, ...(number === undefined ? {} : { dtypeNumber: number }) }
    if (dtype === 'string') {
      return { ...common, strings: Array.from({ length: there }, (_, i) => ['', 'a', 'ß漢', '\u{1f600}'][i % 4]!) }
    }
    return { ...common, place, values: valuesOf(dtype, there, random) }
  })

const tags = fc.constantFrom('t', 'fc.weight', '', 'ß漢 "x"', 'n'.repeat(200))
const values: fc.Arbitrary<ValueSpec> = fc.record(
  {
    tag: tags,
    mode: fc.constantFrom('TRAIN', 'EVAL', 'PREDICT', 'GLOBAL'),
    modeStep: fc.nat(),
    tensor: tensors,
    simpleValue: fc.float(),
    nodeName: fc.string(),
    plugins: fc.array(
      fc.tuple(fc.constantFrom('mode', 'mode_step', 'x'), fc.constantFrom('1', '4', '5', '', '1x', '-1', '123456789')),
      { maxLength: 3 },
    ),
  },
  { requiredKeys: ['tag'] },
)

/** Where the words of a slot begin that tell what was found. */
const FOUND_WORD = RecordSlot.status / 4

/** What a walk leaves in the slot of a payload; of a refused one, why it was. */
function slotAfter(payload: Uint8Array, tag: string, walk: (batch: Batch) => void): Record<string, unknown> {
  const frame = frameRecord(payload)
  engine.reset()
  const tags = engine.writeTexts([tag])
  const batch = engine.reserveBatch(1)
  const address = engine.reserveBytes(frame.length)
  engine.view(address, frame.length).set(frame)
  engine.ask(
    batch,
    1,
    tags,
    () => ({ byteLength: frame.length, tag: 0, step: -1 }),
    () => ({ address, byteLength: frame.length }),
  )
  walk(batch)
  const slots = engine.slots(batch, 1)
  const words = Array.from(engine.words(batch.slots, RecordSlot.size / 4))
  if (!slots.ok(0)) return { refused: words.slice(FOUND_WORD, RecordSlot.mode / 4) }
  // Dimensions may lie elsewhere.
  words[RecordSlot.dims / 4] = 0
  return { found: words.slice(FOUND_WORD), shape: slots.shape(0) }
}

// -------------------------------------------------------------------------------------------------------------- tests

describe('usual Events', () => {
  const usual = fc.record({
    tag: tags,
    dtype: fc.constantFrom(...dtypes.filter(dtype => dtype !== 'string')),
    shape: fc.array(fc.constantFrom(0, 1, 2, 3, 130), { maxLength: 3 }),
    dimNames: fc.boolean(),
    step: fc.constantFrom(0, 1, 127, 128, 20_000, 3_000_000, 2 ** 28, 2 ** 40),
    mode: fc.constantFrom('TRAIN', 'EVAL', undefined),
    wrong: fc.array(fc.record({ at: fc.nat(), byte: fc.nat(255) }), { maxLength: 2 }),
    cut: fc.constantFrom(0, 0, 0, 1, 2, 5),
  })

  it('are what the walk over any Event says, whole and damaged', () => {
    let found = 0
    fc.assert(
      fc.property(usual, ({ tag, dtype, shape, dimNames, step, mode, wrong, cut }) => {
        const count = shape.reduce<number>((product, size) => product * size, 1)
        if (count > 1000) return
        const values = valuesOf(dtype, count, uniform(step))
        const modes = mode === undefined ? {} : { mode, modeStep: step % 1000 }
        const tensor = { dtype, shape, dimNames, place: 'content', values } as const
        const payload = encodeEvent({ wallTime: 1.5e9, step, values: [{ tag, ...modes, tensor }] }).slice(
          0,
          -cut || undefined,
        )
        // Most of the bytes are elements; what may go wrong is before them.
        const head = Math.min(payload.length, 120 + 2 * tag.length)
        for (const { at, byte } of wrong) payload[at % head] = byte
        const any = slotAfter(payload, tag, batch => engine.walkSparse(batch, payload.length, 0, 0))
        expect(slotAfter(payload, tag, batch => engine.decode(batch, 1, 0))).toEqual(any)
        if ('found' in any) found++
      }),
      { numRuns: isLong ? 100_000 : 2000 },
    )
    expect(found).toBeGreaterThan(200)
  })
})

describe('records of the fixtures', () => {
  it('are read as protobufjs reads them', () => {
    const payloads = fixturePayloads()
    let tensorsSeen = 0
    for (const { name, payload } of payloads) {
      const event = decodeEvent(payload)
      for (const tag of new Set([undefined, 'no such tag', ...event.values.map(value => value.tag)])) {
        const decoded = decode(payload, tag === undefined ? {} : { tag })
        expect([name, tag, comparable(decoded)]).toEqual([name, tag, comparableJudgement(judge(event, tag))])
        if (decoded.found) tensorsSeen++
      }
    }
    expect(payloads.length).toBeGreaterThan(1500)
    expect(tensorsSeen).toBeGreaterThan(3000)
  })
})

describe('random Events', () => {
  it('of one Value in every odd form are read as protobufjs reads them', () => {
    const refused = new Map<string, number>()
    fc.assert(
      fc.property(values, fc.nat(2 ** 40), forms, fc.boolean(), (value, step, form, anyTag) => {
        const payload = encodeEvent({ ...value, wallTime: 1.5, step }, form)
        const { error } = expectAgreement(payload, anyTag ? undefined : value.tag)
        refused.set(error?.code ?? 'none', (refused.get(error?.code ?? 'none') ?? 0) + 1)
      }),
      { numRuns: 1500, seed: 1 },
    )
    // All kinds were there.
    expect([...refused.keys()].sort()).toEqual(['NoTensor', 'ShapeMismatch', 'UnknownDType', 'none'])
    expect(refused.get('none')).toBeGreaterThan(500)
  })

  it('of several Values give the one asked for', () => {
    fc.assert(
      fc.property(fc.array(values, { maxLength: 5 }), forms, tags, (several, form, tag) => {
        const payload = encodeEvent({ wallTime: 0, step: 3, values: several }, form)
        expectAgreement(payload, tag)
        expectAgreement(payload, undefined)
      }),
      { numRuns: 400, seed: 2 },
    )
  })

  it('written by protobufjs are read as it reads them', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...TYPED_FIELDS),
        fc.constantFrom(...dtypes),
        fc.array(fc.nat(300), { maxLength: 6 }),
        fc.boolean(),
        fc.boolean(),
        (field, dtype, list, packed, split) => {
          const tensor = {
            dtype: DTYPES[dtype].number,
            tensorShape: { dim: [{ size: list.length / DTYPES[dtype].parts }, { size: 1, name: 'x' }] },
            [field]: field === 'boolVal' ? list.map(Boolean) : list,
          }
          const metadata = { pluginData: [{ pluginName: 'mode', content: new TextEncoder().encode('2') }] }
          const first = encodeByProtobufjs(
            { step: -1, summary: { value: [{ tag: 't', tensor, metadata }] } },
            { packed },
          )
          // Two encodings one after the other are one message: repeated fields go on, singular ones are merged.
          const payload = split ? Buffer.concat([first, encodeByProtobufjs({ step: 5, wallTime: 2 })]) : first
          if (Number.isInteger(tensor.tensorShape.dim[0]!.size)) expectAgreement(payload, 't')
        },
      ),
      { numRuns: 800, seed: 3 },
    )
  })
})

describe('a tensor', () => {
  const numeric = dtypes.filter(dtype => dtype !== 'string')

  it.each(numeric.flatMap(dtype => places.map(place => [dtype, place] as const)))('of %s in %s', (dtype, place) => {
    const random = uniform(7)
    const { parts } = DTYPES[dtype]
    for (const count of [0, 1, 2, 3, 17, 4095, 4096, 4097]) {
      const all = valuesOf(dtype, count, random)
      const tensor = { dtype, shape: [count], values: all, place }
      const { found, elements } = expectAgreement(encodeEvent({ wallTime: 0, step: 0, tag: 't', tensor }), 't')
      expect(found?.dtype).toBe(dtype)
      // What bfloat16 and float16 mean is the writer's business; it writes content and typed field alike.
      expect(hex(elements!)).toBe(hex(elementBytes(dtype, all)))
      if (place === 'content' || count < 3) continue
      // The last one stands for the rest.
      const few = all.slice(0, 2 * parts)
      const short = { dtype, shape: [count], values: few, place }
      const repeatedOut = expectAgreement(encodeEvent({ wallTime: 0, step: 0, tag: 't', tensor: short }), 't')
      const wanted = [...few, ...Array.from({ length: count - 2 }, () => few.slice(parts)).flat()]
      expect(hex(repeatedOut.elements!)).toBe(hex(elementBytes(dtype, wanted)))
    }
  })

  it('whose submessages come in pieces is merged, shape and values alike', () => {
    const form = { splitMessages: true, order: 'reversed' } as const
    for (const place of places) {
      const tensor: TensorSpec = { dtype: 'int64', shape: [2, 3], values: [1n, -2n, 3n, -4n, 5n, 6n], place }
      const decoded = expectAgreement(encodeEvent({ wallTime: 0, step: 9, tag: 't', tensor, mode: 'EVAL' }, form), 't')
      expect(decoded.found).toMatchObject({ dtype: 'int64', shape: [2, 3], mode: 2, modeStep: 0, eventStep: 9 })
    }
  })

  it('without a shape is a scalar, with an empty tensor_shape too', () => {
    for (const writeShape of [true, false]) {
      const tensor: TensorSpec = { dtype: 'float64', shape: [], values: [2.5], writeShape }
      expect(expectAgreement(encodeEvent({ wallTime: 0, step: 0, tag: 't', tensor }), 't').found?.shape).toEqual([])
    }
  })

  it('is not believed where its shape disagrees', () => {
    const cases: [TensorSpec, string][] = [
      [{ dtype: 'float32', shape: [2, 3], values: [1, 2, 3, 4, 5] }, 'ShapeMismatch'],
      [{ dtype: 'float32', shape: [2], values: [1, 2, 3], place: 'unpacked' }, 'ShapeMismatch'],
      [{ dtype: 'float32', shape: [0], values: [1], place: 'packed' }, 'ShapeMismatch'],
      [{ dtype: 'float32', shape: [1], values: [], place: 'packed' }, 'ShapeMismatch'],
      [{ dtype: 'string', shape: [2], strings: ['a', 'b', 'c'] }, 'ShapeMismatch'],
      [{ dtype: 'float32', shape: [-1, -5], values: [1, 2, 3, 4, 5] }, 'BadShape'],
      [{ dtype: 'float32', shape: Array(255).fill(1), values: [1] }, 'BadShape'],
      [{ dtype: 'float32', shape: [2 ** 40, 2 ** 40], values: [1] }, 'BadShape'],
      [{ dtype: 'complex64', shape: [1], values: [1, 2, 3], place: 'packed' }, 'ShapeMismatch'],
      [{ dtype: 'complex128', shape: [2], values: [1, 2, 3], place: 'unpacked' }, 'ShapeMismatch'],
      [{ dtype: 'int8', dtypeNumber: 11, shape: [1], values: [1] }, 'UnknownDType'],
      [{ dtype: 'float32', dtypeNumber: -1, shape: [1], values: [1] }, 'UnknownDType'],
    ]
    for (const [tensor, code] of cases) {
      expect(expectAgreement(encodeEvent({ wallTime: 0, step: 0, tag: 't', tensor }), 't').error?.code).toBe(code)
    }
    const deepest: TensorSpec = { dtype: 'float32', shape: Array(254).fill(1), values: [1] }
    const decoded = expectAgreement(encodeEvent({ wallTime: 0, step: 0, tag: 't', tensor: deepest }), 't')
    expect(decoded.found?.shape.length).toBe(254)
  })

  it('is empty if one of its sizes is 0, however large the others are', () => {
    for (const shape of [
      [2 ** 52, 2 ** 52, 0],
      [...Array<number>(30).fill(2 ** 52), 0, 2 ** 52],
      [0, ...Array<number>(30).fill(2 ** 52)],
    ]) {
      const tensor: TensorSpec = { dtype: 'float32', shape, values: [] }
      expect(expectAgreement(encodeEvent({ wallTime: 0, step: 0, tag: 't', tensor }), 't').found?.shape).toEqual(shape)
    }
  })

  it('whose values are malformed is refused where they are', () => {
    const padding = { tag: 'x'.repeat(3000), tensor: { dtype: 'float32', shape: [1], values: [1] } } as const
    const tensor: TensorSpec = { dtype: 'int64', shape: [1], values: [-1n], place: 'packed' }
    const good = encodeEvent({ wallTime: 0, step: 0, values: [padding, { tag: 't', tensor, plugins: [] }] })
    // The last of the ten bytes of the -1: with it the varint does not end.
    const last = Buffer.from(good).lastIndexOf(Buffer.from([0xff, 0x01])) + 1
    const bad = Uint8Array.from(good, (byte, i) => (i === last ? 0xff : byte))
    const { error } = decode(bad, { tag: 't' })
    expect(error).toMatchObject({ code: 'MalformedEvent', fields: { offset: expect.any(Number) } })
    const offset = error!.fields.offset as number
    expect(offset).toBeGreaterThan(3000)
    expect(offset).toBeLessThanOrEqual(12 + good.length)
  })

  it('is read although that of another tag beside it has a shape that is none', () => {
    const good = { tag: 't', tensor: { dtype: 'float32', shape: [2], values: [1, 2] } } as const
    for (const shape of [[-1], Array<number>(255).fill(1), [2 ** 40, 2 ** 40]]) {
      const bad = { tag: 'other', tensor: { dtype: 'float32', shape, values: [1] } } as const
      const payload = encodeEvent({ wallTime: 0, step: 0, values: [bad, good] })
      expect(expectAgreement(payload, 't').found?.shape).toEqual([2])
      expect(expectAgreement(payload, 'other').error?.code).toBe('BadShape')
    }
  })

  it('of dimensions in a million pieces takes no more memory than they do', () => {
    const dim = delimited(2, Uint8Array.of(0x08, 1))
    const shape = delimited(2, ...Array<Uint8Array>(254).fill(dim))
    const pieces = Buffer.alloc(2_000_000, delimited(2))
    const tensor = delimited(8, Uint8Array.of(0x08, 1), shape, pieces, delimited(4, new Uint8Array(4)))
    const payload = delimited(5, delimited(1, delimited(1, Buffer.from('t')), tensor))
    const fresh = new Engine()
    const { found } = decodeFrame(fresh, frameRecord(payload), { tag: 't' })
    expect(found?.shape).toEqual(Array(254).fill(1))
    expect(fresh.byteLength).toBeLessThan(2 * payload.length)
  })

  it('of a million dimensions is refused without room for them', () => {
    const dims = Buffer.alloc(4_000_000, delimited(2, Uint8Array.of(0x08, 1)))
    const tensor = delimited(8, Uint8Array.of(0x08, 1), delimited(2, dims), delimited(4, new Uint8Array(4)))
    const payload = delimited(5, delimited(1, delimited(1, Buffer.from('t')), tensor))
    const fresh = new Engine()
    expect(decodeFrame(fresh, frameRecord(payload), { tag: 't' }).error?.code).toBe('BadShape')
    expect(fresh.byteLength).toBeLessThan(2 * payload.length)
  })

  it('of one value for 2^50 elements is reduced without being unfolded', () => {
    const tensor: TensorSpec = { dtype: 'float64', shape: [2 ** 25, 2 ** 25], values: [2], place: 'packed' }
    const { found, row } = expectAgreement(encodeEvent({ wallTime: 0, step: 0, tag: 't', tensor }), 't')
    expect(found?.elementCount).toBe(2 ** 50)
    const at = MOMENT_INDEX
    expect([row![at.count], row![at.sum], row![at.min], row![at.m2]]).toEqual([2 ** 50, 2 ** 51, 2, 0])
  })
})

describe('where a record lies', () => {
  const tensor: TensorSpec = { dtype: 'int32', shape: [5], values: [1, -2, 3, -4, 5], place: 'mixed' }
  const frame = frameRecord(encodeEvent({ wallTime: 0, step: 1, tag: 't', tensor, mode: 'TRAIN' }), {
    checksum: 'true',
  })

  it('makes no difference: any alignment, whatever is around it', () => {
    const first = comparable(decodeFrame(engine, frame, { tag: 't', level: 2 }))
    for (let shift = 0; shift < 64; shift++) {
      for (const poison of [0, 0x08, 0x0a, 0x80, 0xff]) {
        expect(comparable(decodeFrame(engine, frame, { tag: 't', level: 2, shift, poison }))).toEqual(first)
      }
    }
  })

  it('can be the end of the memory', () => {
    const fresh = new Engine()
    fresh.reset()
    const tagList = fresh.writeTexts(['t'])
    const room = fresh.reserveBatch(1)
    const probe = fresh.scoped(() => fresh.reserveBytes(1))
    const before = fresh.byteLength
    // All there is without growing: the arena keeps 128 readable bytes behind every buffer.
    const room128 = before - probe - 128
    const address = fresh.reserveBytes(room128)
    expect([address, fresh.byteLength]).toEqual([probe, before])
    const at = address + room128 - frame.length
    fresh.view(address, room128).fill(0x80)
    fresh.view(address, room128).set(frame, room128 - frame.length)
    fresh.ask(
      room,
      1,
      tagList,
      () => ({ byteLength: frame.length, tag: 0, step: 1 }),
      () => ({ address: at, byteLength: frame.length }),
    )
    fresh.decode(room, 1, 2)
    const slots = fresh.slots(room, 1)
    expect(slots.ok(0)).toBe(true)
    expect(slots.shape(0)).toEqual([5])
  })

  it('ends what is read: of a record that is cut anywhere nothing behind it counts', () => {
    for (let byteLength = 0; byteLength < frame.length; byteLength++) {
      const cut = frame.subarray(0, byteLength)
      const outcomes = [0, 0x08, 0x0a, 0x80, 0xff].map(poison =>
        comparable(decodeFrame(engine, cut, { tag: 't', poison, byteLength: frame.length })),
      )
      expect(new Set(outcomes.map(outcome => JSON.stringify(outcome)))).toEqual(new Set(['{"code":"TruncatedRecord"}']))
    }
  })

  it('is not told by a payload that ends too early: its fields end with it', () => {
    const payload = frame.subarray(12, frame.length - 4)
    for (let byteLength = 0; byteLength < payload.length; byteLength++) {
      const cut = frameRecord(payload.subarray(0, byteLength))
      const outcomes = [0, 0x08, 0x0a, 0x80, 0xff].map(poison =>
        JSON.stringify(comparable(decodeFrame(engine, cut, { tag: 't', poison }))),
      )
      expect(new Set(outcomes).size).toBe(1)
    }
  })
})

describe('mutated records', () => {
  /** A mutation by bits, cuts, insertions or deletions. */
  function mutate(payload: Uint8Array, random: () => number): Uint8Array {
    let bytes = [...payload]
    const place = () => Math.floor(random() * (bytes.length + 1))
    for (let left = 1 + Math.floor(random() ** 2 * 3); left > 0; left--) {
      const at = place()
      const kind = Math.floor(random() ** 1.5 * 5)
      if (kind === 0 && at < bytes.length) bytes[at]! ^= 1 << Math.floor(random() * 8)
      else if (kind === 1) bytes = bytes.slice(0, at)
      else if (kind === 2)
        bytes.splice(at, 0, ...Array.from({ length: 1 + (place() % 4) }, () => Math.floor(random() * 256)))
      else if (kind === 3) bytes.splice(at, 1 + Math.floor(random() * 4))
      else if (at < bytes.length) bytes[at] = [0, 1, 0x7f, 0x80, 0xff][Math.floor(random() * 5)]!
    }
    return Uint8Array.from(bytes)
  }

  /** protobufjs's reading, or null where it refuses the bytes. */
  function accepted(payload: Uint8Array): EventView | null {
    try {
      return decodeEvent(payload)
    } catch {
      return null
    }
  }

  /** Whether eleven bytes in a row could be one varint. */
  function hasOverlongVarint(payload: Uint8Array): boolean {
    let run = 0
    return payload.some(byte => {
      run = byte >= 0x80 ? run + 1 : 0
      return run === 10
    })
  }

  it('never trap or hang, and what protobufjs accepts is read as it reads it', () => {
    const random = uniform(11)
    const seeds: Uint8Array[] = []
    for (let i = 0; i < 300; i++) {
      const dtype = dtypes[i % dtypes.length]!
      const place = places[Math.floor(random() * 4)]!
      const count = Math.floor(random() * 6)
      const tensor: TensorSpec =
        dtype === 'string'
          ? { dtype, shape: [count], strings: Array(count).fill('ab') }
          : { dtype, shape: [count, 1], values: valuesOf(dtype, count, random), place, dimNames: i % 2 === 0 }
      const form: WireForm = { unknownFields: i % 7 === 0, splitMessages: i % 3 === 0, paddedVarints: i % 5 === 0 }
      seeds.push(encodeEvent({ wallTime: 1, step: i, tag: 't', tensor, mode: 'EVAL', modeStep: i }, form))
    }
    const counts = { accepted: 0, agreedOnTensor: 0, refusedByBoth: 0, acceptedByUsOnly: 0, overlong: 0 }
    const mutations = isLong ? 40_000 : 4000
    for (let i = 0; i < mutations; i++) {
      const payload = mutate(seeds[i % seeds.length]!, random)
      const decoded = decode(payload, { tag: 't', level: i % 3, shift: i % 17 })
      const event = accepted(payload)
      if (event === null) {
        // The core does not look into what it does not need (names of dimensions, text that is no UTF-8, other fields).
        if (decoded.error) counts.refusedByBoth++
        else counts.acceptedByUsOnly++
        continue
      }
      counts.accepted++
      // protobufjs skips a varint of any length in a field it does not know; the core allows ten bytes, as protobuf does.
      if (decoded.error?.code === 'MalformedEvent' && hasOverlongVarint(payload)) {
        counts.overlong++
        continue
      }
      const wanted = comparableJudgement(judge(event, 't'))
      const got = comparable(decoded)
      try {
        expect(got).toEqual(wanted)
      } catch (error) {
        throw new Error(`mutation ${i}, ${hex(payload)}`, { cause: error })
      }
      if (decoded.found) counts.agreedOnTensor++
    }
    expect(counts.accepted).toBeGreaterThan(mutations / 20)
    expect(counts.agreedOnTensor).toBeGreaterThan(mutations / 40)
    expect(counts.refusedByBoth).toBeGreaterThan(mutations / 20)
    expect(counts.overlong).toBeLessThan(50)
  })

  it('of bytes without sense never trap either', () => {
    const random = uniform(12)
    for (let i = 0; i < 4000; i++) {
      const payload = Uint8Array.from({ length: Math.floor(random() * 60) }, () => Math.floor(random() * 256))
      const decoded = decode(payload, i % 2 ? { tag: 't' } : {})
      const event = accepted(payload)
      if (event) expect(comparable(decoded)).toEqual(comparableJudgement(judge(event, i % 2 ? 't' : undefined)))
    }
  })

  it('with a frame that lies are refused or read, never trapped', () => {
    const random = uniform(13)
    const tensor: TensorSpec = { dtype: 'float32', shape: [3], values: [1, 2, 3] }
    const good = frameRecord(encodeEvent({ wallTime: 0, step: 0, tag: 't', tensor }), { checksum: 'true' })
    const codes = new Set<string>()
    for (let i = 0; i < 3000; i++) {
      const frame = mutate(good, random)
      const byteLength = i % 3 === 0 ? frame.length : i % 3 === 1 ? good.length : 0
      const { error } = decodeFrame(engine, frame, { tag: 't', level: i % 3, byteLength })
      codes.add(error?.code ?? 'none')
    }
    for (const code of ['none', 'TruncatedRecord', 'BadLengthChecksum', 'BadPayloadChecksum', 'LengthMismatch']) {
      expect(codes).toContain(code)
    }
    expect(codes).not.toContain('Engine')
  })
})
