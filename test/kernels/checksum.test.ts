import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { allocate, crc32c, crc32cCombine, maskedCrc32c, UsageError } from '#dist/kernels.js'
import { crc32c as bytewise, masked } from '../../fixtures/event-writer.js'

const text = (words: string): Uint8Array => new TextEncoder().encode(words)

describe('crc32c', () => {
  it('has the values of RFC 3720, B.4', () => {
    expect(crc32c(new Uint8Array(32))).toBe(0x8a9136aa)
    expect(crc32c(new Uint8Array(32).fill(0xff))).toBe(0x62a8ab43)
    expect(crc32c(Uint8Array.from({ length: 32 }, (_, i) => i))).toBe(0x46dd794e)
    expect(crc32c(text('123456789'))).toBe(0xe3069283)
    expect(crc32c(new Uint8Array(0))).toBe(0)
  })

  it('of any bytes, in one piece, in two, and combined', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 3000 }), fc.nat(), (bytes, at) => {
        const cut = bytes.length === 0 ? 0 : at % bytes.length
        const [a, b] = [bytes.subarray(0, cut), bytes.subarray(cut)]
        const want = bytewise(bytes)
        expect(crc32c(bytes)).toBe(want)
        expect(crc32c(b, crc32c(a))).toBe(want)
        expect(crc32cCombine(crc32c(a), crc32c(b), b.length)).toBe(want)
        expect(maskedCrc32c(bytes)).toBe(masked(want))
      }),
    )
  })

  it('of more bytes than the window holds, wherever they lie', () => {
    const bytes = Uint8Array.from({ length: 400_001 }, (_, i) => (i * i) >> 3)
    const want = bytewise(bytes)
    const allocated = allocate('uint8', bytes.length)
    allocated.set(bytes)
    const shared = new SharedArrayBuffer(bytes.length)
    new Uint8Array(shared).set(bytes)
    for (const given of [bytes, bytes.buffer, new DataView(bytes.buffer), allocated, shared])
      expect(crc32c(given)).toBe(want)
    expect(crc32c(allocated.subarray(5, 300_000))).toBe(bytewise(bytes.subarray(5, 300_000)))
  })

  it('refuses what is no bytes and no CRC', () => {
    // @ts-expect-error: text has no bytes
    expect(() => crc32c('123')).toThrow('crc32c: expected a typed array, a DataView or a buffer, got "123"')
    for (const seed of [-1, 0.5, 2 ** 32, NaN]) expect(() => crc32c(new Uint8Array(1), seed)).toThrow(UsageError)
    expect(() => crc32cCombine(1, 2, -1)).toThrow('crc32cCombine: expected a number of bytes, got -1')
    expect(() => crc32cCombine(-1, 2, 1)).toThrow('expected a CRC from 0 to 0xffffffff, got -1')
    const detached = new Uint8Array(4)
    structuredClone(detached, { transfer: [detached.buffer] })
    expect(() => maskedCrc32c(detached)).toThrow('got a detached one')
  })
})
