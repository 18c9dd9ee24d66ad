/** The border between TypeScript and the core: no imports, one layout, memory that grows, addresses beyond 2 GiB. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { EngineError, FormatError, QueryError } from '#dist/base/errors.js'
import { CHECK_LEVELS, type DType } from '#dist/base/types.js'
import { CheckLevelNumber, DTypeNumber, MomentsRow, Status } from '#dist/core/border/abi.js'
import { coreModule } from '#dist/core/border/module.js'
import { faultError } from '#dist/core/border/status.js'
import { dtypeNumber, dtypeOf, elementByteLength } from '#dist/core/dtype.js'
import { Engine } from '#dist/core/engine.js'
import { MOMENT_INDEX, ROW_LENGTH } from '#dist/core/moments-row.js'
import { type DTypeName, elementBytes, encodeEvent, frameRecord, type TensorSpec } from '../fixtures/event-writer.js'
import { float16Value } from '../fixtures/golden.js'
import { normals, uniform } from '../fixtures/random.js'
import { ROOT } from './support/golden.js'
import { decodeFrame } from './support/records.js'

function recordOf(tensor: TensorSpec, tag = 't'): Uint8Array {
  return frameRecord(encodeEvent({ wallTime: 0, step: 0, tag, tensor }), { checksum: 'true' })
}

describe('the core', () => {
  it('imports nothing', () => {
    expect(WebAssembly.Module.imports(coreModule())).toEqual([])
  })

  it('exports functions, its memory, and the address of one table', () => {
    const kinds = WebAssembly.Module.exports(coreModule()).filter(({ kind }) => kind !== 'function')
    expect(kinds.map(({ name }) => name).sort()).toEqual(['POWERS', 'memory'])
  })

  it.each(['abi', 'framing'])(
    'and TypeScript read %s.ts, enums and integers that mean the same to both compilers',
    name => {
      const source = readFileSync(join(ROOT, `src/core/border/${name}.ts`), 'utf8')
      const code = source
        .replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')
        .split('\n')
        .filter(line => line.trim() !== '')
      for (const line of code) {
        expect(line).toMatch(/^export enum \w+ \{$|^ {2}\w+ = \d+,$|^\}$|^export const \w+ = (-?\d+|0x[0-9a-f]+)$/)
      }
    },
  )

  it('has structs whose fields neither overlap nor leave holes', () => {
    // A field is as long as it is said to be in its comment: 8 bytes if f64, 4 otherwise.
    const source = readFileSync(join(ROOT, 'src/core/border/abi.ts'), 'utf8')
    const struct = /export enum RecordSlot \{([\s\S]*?)\n\}/.exec(source)![1]!
    let end = 0
    for (const [, comment, name, offset] of struct.matchAll(/(\/\*\* f64\b[^\n]*\*\/\n)? {2}(\w+) = (\d+)/g)) {
      expect([name, Number(offset)]).toEqual([name, end])
      end += comment === undefined ? 4 : 8
    }
    const row = Object.values(MomentsRow).filter(value => typeof value === 'number')
    expect(row).toEqual(row.map((_, i) => i * 8))
  })

  it('knows every data type and check level of the format', () => {
    for (const [name, number] of Object.entries(DTypeNumber).filter(([name]) => !/^\d/.test(name))) {
      expect([dtypeOf(number as number), dtypeNumber(name as DType)]).toEqual([name, number])
      const byteLength = name === 'string' ? 0 : name === 'bool' ? 1 : Number(/\d+/.exec(name)) / 8
      expect([name, elementByteLength(name as DType)]).toEqual([name, byteLength])
    }
    for (const number of [0, 11, 27, 2 ** 32 - 1]) expect(dtypeOf(number)).toBeUndefined()
    expect(CHECK_LEVELS).toEqual(CHECK_LEVELS.map((_, i) => CheckLevelNumber[i]))
  })

  it('has a sentence for each of its statuses', () => {
    const statuses = Object.entries(Status).filter(([name]) => !/^\d|^ok$/.test(name))
    expect(statuses.length).toBe(14)
    for (const [name, number] of statuses) {
      const fault = { status: number as Status, faultOffset: 7, expected: 3, got: 4, tag: 'other' }
      const error = faultError(fault, { url: 'file:///x', startByte: 100, tensor: 't' })
      expect(error.message).toMatch(/^\/x[,:] /)
      if (name === 'outOfMemory') expect(error).toBeInstanceOf(EngineError)
      else expect(error).toMatchObject({ offset: 107, expected: expect.any(String), got: expect.any(String) })
    }
    const nonsense = { status: 99 as Status, faultOffset: 0, expected: 0, got: 0, tag: '' }
    expect(faultError(nonsense, { url: 'x', startByte: 0, tensor: 't' })).toBeInstanceOf(EngineError)
  })
})

describe('memory', () => {
  it('holds texts as UTF-8, and no more than they take', () => {
    const engine = new Engine()
    engine.reset()
    const texts = ['layer/weight:0', '', 'schön', '\u{1f600}', 'a\ud800b', '€'.repeat(1000), 'x'.repeat(1000)]
    const { addresses, byteLengths } = engine.writeTexts(texts)
    const next = engine.reserveBytes(1)
    const read = texts.map((_, i) => engine.view(addresses[i] as typeof next, byteLengths[i]!).slice())
    expect(read).toEqual(texts.map(text => new TextEncoder().encode(text)))
    expect(next - addresses[0]!).toBeLessThan(read.reduce((sum, { length }) => sum + length, 0) + 512)
  })

  it('that grows between reserving and reading leaves nothing behind', () => {
    const engine = new Engine()
    engine.reset()
    const tags = engine.writeTexts(['t', 'u'])
    const room = engine.reserveBatch(2)
    const before = engine.byteLength
    const bytes = engine.reserveBytes(8 << 20)
    expect(engine.byteLength).toBeGreaterThan(before)
    const frames = ['t', 'u'].map(tag => recordOf({ dtype: 'float64', shape: [3], values: [1, 2, 3] }, tag))
    frames.forEach((frame, i) => {
      engine.view(bytes, 8 << 20).set(frame, i << 20)
    })
    engine.ask(
      room,
      2,
      tags,
      i => ({ byteLength: frames[i]!.length, tag: i, step: 0 }),
      i => ({ address: bytes + (i << 20), byteLength: frames[i]!.length }),
    )
    engine.scan(room, 2, 2)
    const slots = engine.slots(room, 2)
    expect([slots.ok(0), slots.ok(1)]).toEqual([true, true])
    expect([slots.shape(0), slots.shape(1)]).toEqual([[3], [3]])
  })

  it('that grows while records are walked leaves nothing behind', () => {
    const engine = new Engine()
    engine.reset()
    const count = 4096
    const tags = engine.writeTexts([])
    const room = engine.reserveBatch(count)
    const frame = recordOf({ dtype: 'int8', shape: Array(254).fill(1), values: [5] })
    const bytes = engine.reserveBytes(frame.length)
    engine.view(bytes, frame.length).set(frame)
    engine.ask(
      room,
      count,
      tags,
      () => ({ byteLength: frame.length, tag: -1, step: -1 }),
      () => ({ address: bytes, byteLength: frame.length }),
    )
    const before = engine.byteLength
    engine.scoped(() => {
      engine.scan(room, count, 2)
      expect(engine.byteLength).toBeGreaterThan(before)
      const slots = engine.slots(room, count)
      const [doubles, at] = [ROW_LENGTH, MOMENT_INDEX]
      const rows = engine.rows(room, count)
      for (let i = 0; i < count; i++) {
        expect(slots.ok(i)).toBe(true)
        expect(rows[i * doubles + at.max]).toBe(5)
      }
      expect(slots.shape(count - 1)).toEqual(Array(254).fill(1))
    })
    // What scoped has let go of is used again, so that a second run grows nothing.
    const grown = engine.byteLength
    engine.scoped(() => engine.scan(room, count, 2))
    expect(engine.byteLength).toBe(grown)
  })

  it('beyond 2 GiB works like any other, and beyond 4 GiB is refused', () => {
    const engine = new Engine()
    engine.reset()
    engine.reserveBytes(0x81000000)
    const tensor: TensorSpec = { dtype: 'int64', shape: [2, 2], values: [1n, 2n, 3n, -(1n << 62n)], place: 'mixed' }
    const frame = recordOf(tensor)
    const tags = engine.writeTexts(['t'])
    const room = engine.reserveBatch(1)
    const bytes = engine.reserveBytes(frame.length)
    expect(Math.min(tags.addresses[0]!, room.slots, room.rows, bytes)).toBeGreaterThan(2 ** 31)
    engine.view(bytes, frame.length).set(frame)
    engine.ask(
      room,
      1,
      tags,
      () => ({ byteLength: frame.length, tag: 0, step: 0 }),
      () => ({ address: bytes, byteLength: frame.length }),
    )
    expect(engine.crc32c(bytes, frame.length)).toBe(engine.crc32c(bytes, frame.length, 0))
    engine.scan(room, 1, 2)
    const row = engine.rows(room, 1).slice()
    const at = MOMENT_INDEX
    expect([row[at.count], row[at.min], row[at.max]]).toEqual([4, -(2 ** 62), 3])
    engine.decode(room, 1, 2)
    const found = engine.slots(room, 1).found(0)
    expect(found).toMatchObject({ dtype: 'int64', shape: [2, 2], kind: 'values' })
    expect(engine.values.copyElements(room, 0, found)).toEqual(elementBytes('int64', tensor.values!))
    // Content, strings and an error's tag, too.
    for (const [spec, tag] of [
      [{ dtype: 'float32', shape: [3], values: [1, 2, 3] }, 't'],
      [{ dtype: 'string', shape: [2], strings: ['é', 'b'] }, 't'],
      [{ dtype: 'float32', shape: [3], values: [1, 2, 3] }, 'wrong'],
    ] as const) {
      const other = recordOf(spec, tag)
      engine.scoped(() => {
        const there = engine.reserveBytes(other.length)
        engine.view(there, other.length).set(other)
        engine.ask(
          room,
          1,
          tags,
          () => ({ byteLength: other.length, tag: 0, step: 0 }),
          () => ({ address: there, byteLength: other.length }),
        )
        engine.decode(room, 1, 2)
        const slots = engine.slots(room, 1)
        if (tag === 'wrong') {
          expect(slots.error(0, { url: 'x', startByte: 0, tensor: 't' }).message).toContain('one of "wrong"')
        } else if (spec.dtype === 'string') {
          expect(engine.values.copyStrings(room, 0, slots.found(0))).toEqual(spec.strings)
        } else {
          expect(engine.values.copyElements(room, 0, slots.found(0))).toEqual(elementBytes('float32', spec.values))
        }
      })
    }
    // The other half does not fit any more.
    expect(() => engine.reserveBytes(0x80000000)).toThrow(QueryError)
    expect(() => engine.reserveBytes(0xffffffff)).toThrow(/cannot grow/)
    // Lengths that the core would take modulo 2^32.
    for (const length of [2 ** 32, 2 ** 32 + 8, 2 ** 53, Infinity, Number.NaN]) {
      expect(() => engine.reserveBytes(length)).toThrow(QueryError)
    }
    // Afterwards all is as before.
    engine.reset()
    expect(decodeFrame(engine, frame, { tag: 't', level: 2 }).found).toMatchObject({ shape: [2, 2] })
  })

  it('is given back by scoped even when the work throws', () => {
    const engine = new Engine()
    engine.reset()
    const first = engine.scoped(() => engine.reserveBytes(1000))
    expect(() =>
      engine.scoped(() => {
        engine.reserveBytes(1000)
        throw new RangeError('x')
      }),
    ).toThrow(RangeError)
    expect(engine.reserveBytes(1000)).toBe(first)
  })
})

describe('what does not fit', () => {
  const engine = new Engine()

  it('into JavaScript is a QueryError, not a crash', () => {
    const tensor: TensorSpec = { dtype: 'float64', shape: [2 ** 25, 2 ** 25], values: [2], place: 'packed' }
    expect(decodeFrame(engine, recordOf(tensor), { tag: 't' }).found?.elementCount).toBe(2 ** 50)
    const strings: TensorSpec = { dtype: 'string', shape: [2 ** 40], strings: ['x'] }
    for (const [spec, copy] of [
      [tensor, 'copyElements'],
      [strings, 'copyStrings'],
    ] as const) {
      const frame = recordOf(spec)
      engine.reset()
      const tags = engine.writeTexts([])
      const room = engine.reserveBatch(1)
      const bytes = engine.reserveBytes(frame.length)
      engine.view(bytes, frame.length).set(frame)
      engine.ask(
        room,
        1,
        tags,
        () => ({ byteLength: 0, tag: -1, step: -1 }),
        () => ({ address: bytes, byteLength: frame.length }),
      )
      engine.decode(room, 1, 0)
      const found = engine.slots(room, 1).found(0)
      expect(() => engine.values[copy](room, 0, found)).toThrow(QueryError)
    }
  })
})

describe('widenToFloat32', () => {
  const engine = new Engine()
  const bits = Uint16Array.from({ length: 65536 }, (_, i) => i)
  const widenedOf = (dtype: 'float16' | 'bfloat16', { buffer, byteOffset, byteLength, length }: Uint16Array) =>
    engine.values.widenToFloat32(dtype, new Uint8Array(buffer, byteOffset, byteLength), length)

  it('of every float16', () => {
    engine.reset()
    const widened = widenedOf('float16', bits)
    for (let i = 0; i < 65536; i++) if (!Object.is(widened[i], float16Value(i))) expect([i, widened[i]]).toEqual([])
  })

  it('of every bfloat16', () => {
    engine.reset()
    const widened = widenedOf('bfloat16', bits)
    const words = new Uint32Array(widened.buffer)
    const got = bits.map(value => words[value]! >>> 16)
    const isNaN16 = (value: number) => (value & 0x7fff) > 0x7f80
    for (let i = 0; i < 65536; i++) {
      if (isNaN16(i)) expect(isNaN16(got[i]!)).toBe(true)
      else expect(words[i]).toBe((i << 16) >>> 0)
    }
  })

  it('of more than fit into one step, and of none', () => {
    engine.reset()
    const many = Uint16Array.from({ length: 150_001 }, (_, i) => i & 0x7bff)
    const widened = widenedOf('float16', many)
    expect(widened.length).toBe(150_001)
    for (const i of [0, 65535, 65536, 131071, 131072, 150_000]) expect(widened[i]).toBe(float16Value(i & 0x7bff))
    expect(widenedOf('float16', new Uint16Array(0)).length).toBe(0)
    // A view that begins in the midst of its buffer.
    expect([...widenedOf('bfloat16', bits.subarray(0x3f80, 0x3f81))]).toEqual([1])
  })
})

describe('countNotClose', () => {
  const engine = new Engine()
  const numbers = [0, -0, 1, -1, 1.00001, 1.0000101, 1e-8, 1.1e-8, 5, 100, Infinity, -Infinity, Number.NaN]

  /** numpy's isclose; pairs of float32 in float32. */
  function isClose(a: number, b: number, rtol: number, atol: number, equalNan: boolean, round: (x: number) => number) {
    if (Number.isNaN(a) || Number.isNaN(b)) return equalNan && Number.isNaN(a) && Number.isNaN(b)
    if (!Number.isFinite(a) || !Number.isFinite(b)) return a === b
    const allowed = round(round(atol) + round(round(rtol) * Math.abs(b)))
    return Math.abs(round(a - b)) <= allowed
  }

  it.each([
    ['float64', 'float64'],
    ['float32', 'float32'],
    ['float32', 'float64'],
    ['float64', 'float32'],
    ['float16', 'float64'],
    ['bfloat16', 'float32'],
    ['int8', 'int8'],
    ['uint8', 'int64'],
    ['uint64', 'float64'],
  ] as [DTypeName, DTypeName][])('of %s and %s means what numpy means', (dtypeA, dtypeB) => {
    const isInteger = (dtype: DTypeName) => dtype.includes('int')
    const pairs = numbers.flatMap(a => numbers.map(b => [a, b] as const))
    const suited = pairs.filter(([a, b]) =>
      [
        [dtypeA, a],
        [dtypeB, b],
      ].every(([dtype, x]) => !isInteger(dtype as DTypeName) || (Number.isInteger(x) && (x as number) >= 0)),
    )
    const bytesA = elementBytes(
      dtypeA,
      suited.map(([a]) => a),
    )
    const bytesB = elementBytes(
      dtypeB,
      suited.map(([, b]) => b),
    )
    const inFloat32 = dtypeA === 'float32' && dtypeB === 'float32'
    const held = (dtype: DTypeName, x: number): number =>
      dtype === 'float32' ? Math.fround(x) : /float16/.test(dtype) ? engineWidened(dtype as 'float16', x) : x
    for (const [rtol, atol] of [
      [1e-5, 1e-8],
      [0, 0],
      [0.5, 0],
      [0, 4],
    ] as const) {
      for (const equalNan of [false, true]) {
        const wanted = suited.filter(
          ([a, b]) =>
            !isClose(held(dtypeA, a), held(dtypeB, b), rtol, atol, equalNan, inFloat32 ? Math.fround : x => x),
        ).length
        const got = engine.elements.countNotClose(
          { dtype: dtypeA as DType, bytes: bytesA },
          { dtype: dtypeB as DType, bytes: bytesB },
          suited.length,
          { rtol, atol, equalNan },
        )
        expect([rtol, atol, equalNan, got]).toEqual([rtol, atol, equalNan, wanted])
      }
    }
  })

  function engineWidened(dtype: 'float16' | 'bfloat16', x: number): number {
    const bytes = elementBytes(dtype, [x])
    return engine.values.widenToFloat32(dtype, bytes, 1)[0]!
  }

  it('goes over a step of 65536 elements', () => {
    const a = Float64Array.from(normals(200_000, 1))
    const b = a.slice()
    for (const i of [0, 65535, 65536, 131_072, 199_999]) b[i]! += 1
    const bytes = (array: Float64Array) => ({ dtype: 'float64' as const, bytes: new Uint8Array(array.buffer) })
    expect(engine.elements.countNotClose(bytes(a), bytes(b), a.length, { rtol: 0, atol: 1e-3, equalNan: false })).toBe(
      5,
    )
  })

  it('wants as many elements on both sides', () => {
    const one = { dtype: 'int8' as const, bytes: new Uint8Array(1) }
    const two = { dtype: 'int8' as const, bytes: new Uint8Array(2) }
    expect(() => engine.elements.countNotClose(one, two, 1, { rtol: 0, atol: 0, equalNan: false })).toThrow(EngineError)
  })
})

describe('mergeRows', () => {
  const engine = new Engine()
  const [at, doubles] = [MOMENT_INDEX, ROW_LENGTH]

  function rowOf(dtype: DTypeName, values: readonly (number | bigint)[]): Float64Array {
    return decodeFrame(engine, recordOf({ dtype, shape: [values.length], values })).row!
  }

  it('of one row is that row, and of none that of no elements', () => {
    const row = rowOf('float64', [...normals(5000, 3)])
    expect(engine.mergeRows([row])).toEqual(row)
    const none = engine.mergeRows([])
    expect([none.length, none[at.count], none[at.sum], none[at.min]]).toEqual([doubles, 0, 0, Infinity])
    expect(engine.mergeRows([none, row, none])).toEqual(row)
  })

  it('of parts is close to the row of the whole', () => {
    const random = uniform(5)
    for (const dtype of ['float32', 'float64', 'int16', 'float16'] as const) {
      const values = [...normals(10_001, 4)].map(x => (dtype === 'int16' ? Math.round(x * 1000) : x + 100))
      const whole = rowOf(dtype, values)
      const cuts = [0, ...Array.from({ length: 4 }, () => Math.floor(random() * 10_001)).sort((a, b) => a - b), 10_001]
      const merged = engine.mergeRows(cuts.slice(1).map((end, i) => rowOf(dtype, values.slice(cuts[i], end))))
      for (const name of ['count', 'min', 'max', 'minAbs', 'maxAbs', 'zeroCount', 'prodExponent'] as const) {
        expect([name, merged[at[name]]]).toEqual([name, whole[at[name]]])
      }
      for (const name of ['sum', 'sumAbs', 'mean', 'm2', 'meanAbs', 'm2Abs', 'sumSquares', 'prodMantissa'] as const) {
        const [got, want] = [merged[at[name]]!, whole[at[name]]!]
        expect(Math.abs(got - want)).toBeLessThanOrEqual(1e-11 * Math.abs(want))
      }
    }
  })

  it('keeps 64-bit extremes exact', () => {
    const merged = engine.mergeRows([rowOf('int64', [(1n << 62n) + 1n, 5n]), rowOf('int64', [-(1n << 62n) - 1n])])
    const bits = new BigInt64Array(merged.buffer)
    expect([bits[at.minExact], bits[at.maxExact]]).toEqual([-(1n << 62n) - 1n, (1n << 62n) + 1n])
  })

  it('refuses what is no row', () => {
    expect(() => engine.mergeRows([new Float64Array(3)])).toThrow(/expected rows of \d+ numbers, got 3/)
  })
})

it('an error of a record refused before its walk does not look at what an earlier job left', () => {
  const engine = new Engine()
  const frame = recordOf({ dtype: 'float32', shape: [2], values: [1, 2] })
  frame[8]! ^= 1
  engine.reset()
  engine.view(engine.reserveBytes(1 << 16), 1 << 16).fill(0xfe)
  const { error } = decodeFrame(engine, frame, { tag: 't' })
  expect(error).toMatchObject({ code: 'BadLengthChecksum' })
  engine.reset()
  engine.view(engine.reserveBytes(1 << 16), 1 << 16).fill(0xfe)
  expect(decodeFrame(engine, frame.subarray(0, 5), { tag: 't' }).error).toMatchObject({ code: 'TruncatedRecord' })
})

it('an error of a record says where and what', () => {
  const engine = new Engine()
  const frame = recordOf({ dtype: 'float32', shape: [2], values: [1, 2] })
  frame[8]! ^= 1
  const { error } = decodeFrame(engine, frame, { tag: 't' })
  expect(error).toBeInstanceOf(FormatError)
  expect(error).toMatchObject({ code: 'BadLengthChecksum', offset: 8, url: 'file:///x' })
  expect(error?.message).toMatch(/^\/x, offset 8, tensor "t": expected checksum 0x[0-9a-f]{8} .*, got 0x/)
})
