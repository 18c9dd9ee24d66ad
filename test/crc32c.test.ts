import fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import { crc32cOfPrefixes, crc32c as reference } from './oracle/crc32c.js'
import { loadCore } from './support/core.js'

const core = loadCore()
const { arenaReserve, arenaReset } = core.exports

/** Copies bytes into the core, that many bytes off a multiple of 128, between bytes that aren't zero. */
function place(bytes: Uint8Array, misalignment = 0): number {
  const address = (arenaReserve(bytes.length + misalignment) >>> 0) + misalignment
  const memory = new Uint8Array(core.memory.buffer)
  memory.fill(0xa5, address - 128, address + bytes.length + 128)
  memory.set(bytes, address)
  return address
}

const crcAt = (address: number, byteLength: number, crc = 0): number =>
  core.exports.crc32c(address, byteLength, crc) >>> 0
const crcOf = (bytes: Uint8Array): number => crcAt(place(bytes), bytes.length)
const combine = (a: number, b: number, byteLengthB: number): number =>
  core.exports.crc32cCombine(a, b, byteLengthB) >>> 0
const mask = (crc: number): number => core.exports.mask(crc) >>> 0
const unmask = (masked: number): number => core.exports.unmask(masked) >>> 0

const ascii = (text: string): Uint8Array => new TextEncoder().encode(text)

/** Bytes without a pattern, the same in every run (a xorshift generator). */
function noise(byteLength: number, seed = 1): Uint8Array {
  const bytes = new Uint8Array(byteLength)
  let state = seed
  for (let i = 0; i < byteLength; i++) {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    bytes[i] = state
  }
  return bytes
}

const uint32 = fc.integer({ min: 0, max: 0xffffffff })

beforeEach(() => arenaReset())

describe('crc32c', () => {
  test.each([
    ['nothing', new Uint8Array(0), 0],
    ['123456789', ascii('123456789'), 0xe3069283],
    ['32 times 00 (RFC 3720)', new Uint8Array(32), 0x8a9136aa],
    ['32 times ff (RFC 3720)', new Uint8Array(32).fill(0xff), 0x62a8ab43],
    ['00 to 1f (RFC 3720)', Uint8Array.from({ length: 32 }, (_, i) => i), 0x46dd794e],
    ['1f to 00 (RFC 3720)', Uint8Array.from({ length: 32 }, (_, i) => 31 - i), 0x113fdb5c],
    [
      'an iSCSI read command (RFC 3720)',
      Uint8Array.from(
        Buffer.from(
          '01c00000000000000000000000000000140000000000040000000014000000182800000000000000' + '0200000000000000',
          'hex',
        ),
      ),
      0xd9963a56,
    ],
  ])('of %s', (_, bytes, expected) => {
    expect(reference(bytes)).toBe(expected)
    expect(crcOf(bytes)).toBe(expected)
  })

  test('of every length to 4500, wherever it starts', () => {
    const bytes = noise(4500)
    const expected = crc32cOfPrefixes(bytes)
    for (let misalignment = 0; misalignment < 16; misalignment++) {
      const address = place(bytes, misalignment)
      // Each length at one alignment, and lengths to 500 at all.
      for (let length = 0; length <= 4500; length++) {
        if (length > 500 && (length * 7) % 16 !== misalignment) continue
        if (crcAt(address, length) !== expected[length]) expect.fail(`${length} bytes at alignment ${misalignment}`)
      }
    }
  })

  test('of every length around a change of method and the ends of chunks', () => {
    const bytes = noise(40_000, 2)
    const expected = crc32cOfPrefixes(bytes)
    const address = place(bytes, 5)
    for (const middle of [8192, 8192 + 736, 2 * 8192 + 736, 3 * 8192 + 736, 4 * 8192 + 736]) {
      for (let length = middle - 300; length < middle + 300; length++) {
        if (crcAt(address, length) !== expected[length]) expect.fail(`${length} bytes`)
      }
    }
  })

  test('of random parts of 1 MB', () => {
    const bytes = noise(1_000_000, 3)
    const expected = crc32cOfPrefixes(bytes)
    const address = place(bytes)
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1_000_000 }), fc.integer({ min: 0, max: 1_000_000 }), (a, b) => {
        const [start, end] = a < b ? [a, b] : [b, a]
        // The reference has the beginnings only; the core continues from one to the other.
        expect(crcAt(address + start, end - start, expected[start])).toBe(expected[end])
      }),
      { numRuns: 300 },
    )
  })

  test('continues at any cuts', () => {
    const bytes = noise(50_000, 4)
    const expected = reference(bytes)
    const address = place(bytes, 3)
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: bytes.length }), { maxLength: 8 }), cuts => {
        let crc = 0
        let start = 0
        for (const end of [...cuts.sort((a, b) => a - b), bytes.length]) {
          crc = crcAt(address + start, end - start, crc)
          start = end
        }
        expect(crc).toBe(expected)
      }),
      { numRuns: 300 },
    )
  })

  test('of zeros and of any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 2000, size: 'max' }), uint32, (bytes, crc) => {
        arenaReset()
        expect(crcAt(place(bytes), bytes.length, crc)).toBe(reference(bytes, crc))
      }),
      { numRuns: 200 },
    )
    const zeros = new Uint8Array(20_000)
    const expected = crc32cOfPrefixes(zeros)
    const address = place(zeros)
    for (let length = 0; length <= zeros.length; length += 61) expect(crcAt(address, length)).toBe(expected[length])
  })

  test('does not trap at the start of memory', () => {
    // Nothing the arena hands out lies there: only here are there no 128 bytes below.
    for (const address of [0, 1, 127, 128]) expect(() => crcAt(address, 5000)).not.toThrow()
  })

  test('of the last bytes of memory', () => {
    const address = place(new Uint8Array(0))
    const byteLength = core.memory.buffer.byteLength - address
    const bytes = noise(byteLength, 5)
    new Uint8Array(core.memory.buffer).set(bytes, address)
    expect(crcAt(address, byteLength)).toBe(reference(bytes))
  })
})

describe('crc32cCombine', () => {
  test('joins the CRCs of two parts', () => {
    const bytes = noise(30_000, 6)
    const expected = reference(bytes)
    const address = place(bytes)
    fc.assert(
      fc.property(fc.integer({ min: 0, max: bytes.length }), cut => {
        const rest = bytes.length - cut
        expect(combine(crcAt(address, cut), crcAt(address + cut, rest), rest)).toBe(expected)
      }),
    )
  })

  test('takes lengths to 2^53: joining in any order gives the same', () => {
    const length = fc.integer({ min: 0, max: 2 ** 51 })
    fc.assert(
      fc.property(uint32, uint32, uint32, length, length, (a, b, c, lengthB, lengthC) => {
        const left = combine(combine(a, b, lengthB), c, lengthC)
        expect(combine(a, combine(b, c, lengthC), lengthB + lengthC)).toBe(left)
      }),
    )
    // P is x + 1 times a primitive polynomial of degree 31, so x to the power of 2³¹ − 1 is 1.
    expect(combine(0x12345678, 0, (2 ** 31 - 1) * 2 ** 22)).toBe(0x12345678)
    expect(combine(0x12345678, 0, 2 ** 53)).toBe(combine(0x12345678, 0, 2 ** 53 % (2 ** 31 - 1)))
  })

  test('does not trap on what is no length', () => {
    for (const length of [Number.NaN, -1, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 1e300]) {
      expect(() => combine(1, 2, length)).not.toThrow()
    }
  })
})

test('crc32cOfLength is the CRC of a little-endian u64', () => {
  fc.assert(
    fc.property(uint32, uint32, (low, high) => {
      const bytes = new Uint8Array(Uint32Array.of(low, high).buffer)
      expect(core.exports.crc32cOfLength(low, high) >>> 0).toBe(reference(bytes))
    }),
  )
})

describe('mask', () => {
  test('follows its definition, and unmask undoes it', () => {
    fc.assert(
      fc.property(uint32, crc => {
        expect(mask(crc)).toBe((((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0)
        expect(unmask(mask(crc))).toBe(crc)
      }),
    )
  })

  test('of the CRC of ASCII 0x12345678 is what the hook writes in place of a checksum', () => {
    expect(mask(crcOf(ascii('0x12345678')))).toBe(0x062dc0b3)
  })
})
