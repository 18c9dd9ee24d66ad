import { describe, expect, test } from 'vitest'
import { crc32c } from '../../fixtures/event-writer.js'
import { decodeEvent, encodeEvent, masked, readFrames } from './event-schema.js'

/** The first record of a real trial (`dtypes`, step 0), as smdebug wrote it. */
const REAL_RECORD = Buffer.from(
  '440000000000000043592e9a09d3666d4b40c0da412a390a370a0e666c6f617431362f7363616c6172' +
    '4208081312002202' +
    '83554a1b0a0e0a096d6f64655f737465701201300a090a046d6f6465120134b3c02d06',
  'hex',
)

describe('the schema', () => {
  test('reads a record that smdebug wrote', () => {
    const [frame, ...others] = readFrames(REAL_RECORD)
    expect(others).toEqual([])
    expect(frame).toMatchObject({ startByte: 0, byteLength: 84, lengthCrcHolds: true, payloadCrc: 'constant' })
    const event = decodeEvent(frame!.payload)
    expect(event.step).toBe(0n)
    expect(event.wallTime).toBeCloseTo(1795227949.6, 0)
    expect(event.values).toHaveLength(1)
    expect(event.values[0]).toMatchObject({ tag: 'float16/scalar', mode: 4, modeStep: 0, simpleValue: undefined })
    expect(event.values[0]!.tensor).toMatchObject({
      dtype: 19,
      shape: [],
      hasShape: true,
      content: Uint8Array.of(0x83, 0x55),
    })
  })

  test.each([true, false])('gives back what it wrote, packed %s', packed => {
    const bytes = encodeEvent(
      {
        wallTime: 1.25,
        step: (1n << 62n) + 1n,
        summary: {
          value: [
            {
              tag: 'ä/b',
              tensor: {
                dtype: 9,
                tensorShape: { dim: [{ size: 2, name: 'x' }, { size: 1n << 40n }] },
                int64Val: [-1n, (1n << 63n) - 1n, -(1n << 63n)],
                uint64Val: [0n, (1n << 64n) - 1n],
                boolVal: [true, false],
                halfVal: [0x3c00],
                floatVal: [0.5, Number.NaN],
                stringVal: [Uint8Array.of(255, 0), new Uint8Array()],
              },
              metadata: { pluginData: [{ pluginName: 'mode', content: Buffer.from('3') }] },
            },
            { tag: 'loss', simpleValue: 0 },
          ],
        },
      },
      { packed },
    )
    const event = decodeEvent(bytes)
    expect(event.step).toBe((1n << 62n) + 1n)
    expect(event.values[0]).toMatchObject({ tag: 'ä/b', mode: 3, modeStep: undefined })
    expect(event.values[0]!.tensor).toEqual({
      dtype: 9,
      shape: [2, 2 ** 40],
      dimNames: ['x', ''],
      unknownRank: false,
      hasShape: true,
      content: new Uint8Array(),
      typed: {
        floatVal: [0.5, Number.NaN],
        int64Val: [-1n, (1n << 63n) - 1n, -(1n << 63n)],
        boolVal: [1, 0],
        halfVal: [0x3c00],
        uint64Val: [0n, (1n << 64n) - 1n],
      },
      strings: [Uint8Array.of(255, 0), new Uint8Array()],
    })
    expect(event.values[1]).toMatchObject({ tag: 'loss', simpleValue: 0, tensor: undefined })
  })

  test('refuses bytes that are no Event', () => {
    expect(() => decodeEvent(Uint8Array.of(0x2a, 0x64, 0x0a))).toThrow()
    expect(() => readFrames(REAL_RECORD.subarray(0, 80))).toThrow(RangeError)
  })
})

describe('CRC-32C', () => {
  // RFC 3720, B.4
  const vectors: [string, Uint8Array, number][] = [
    ['32 zeros', new Uint8Array(32), 0x8a9136aa],
    ['32 ones', new Uint8Array(32).fill(255), 0x62a8ab43],
    ['32 ascending', Uint8Array.from({ length: 32 }, (_, i) => i), 0x46dd794e],
    ['32 descending', Uint8Array.from({ length: 32 }, (_, i) => 31 - i), 0x113fdb5c],
    ['the check value', Buffer.from('123456789'), 0xe3069283],
  ]

  test.each(vectors)('the writer agrees on %s', (_, bytes, crc) => {
    expect(crc32c(bytes)).toBe(crc)
  })

  test('the mask gives the constant that smdebug writes', () => {
    expect(masked(Buffer.from('0x12345678'))).toBe(0x062dc0b3)
  })
})
