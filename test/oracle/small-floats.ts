/** Floats of eight and four bits, decoded as their definitions say, a bit at a time. */

export const SMALL_FLOATS = [
  'float8_e4m3fn',
  'float8_e5m2',
  'float8_e4m3fnuz',
  'float8_e5m2fnuz',
  'float8_e8m0fnu',
  'float4_e2m1fn',
] as const
export type SmallFloat = (typeof SMALL_FLOATS)[number]

/** Bits of an element. */
export const bitsOf = (dtype: SmallFloat): 4 | 8 => (dtype === 'float4_e2m1fn' ? 4 : 8)

/** The number that bits stand for. */
export function decodeSmall(dtype: SmallFloat, bits: number): number {
  switch (dtype) {
    case 'float8_e4m3fn':
      return (bits & 0x7f) === 0x7f ? Number.NaN : signed(bits, 8, 3, 7)
    case 'float8_e5m2':
      if ((bits & 0x7f) > 0x7c) return Number.NaN
      return (bits & 0x7f) === 0x7c ? (bits & 0x80 ? -1 : 1) * Number.POSITIVE_INFINITY : signed(bits, 8, 2, 15)
    case 'float8_e4m3fnuz':
      return bits === 0x80 ? Number.NaN : signed(bits, 8, 3, 8)
    case 'float8_e5m2fnuz':
      return bits === 0x80 ? Number.NaN : signed(bits, 8, 2, 16)
    case 'float8_e8m0fnu':
      return bits === 0xff ? Number.NaN : 2 ** (bits - 127)
    case 'float4_e2m1fn':
      return signed(bits, 4, 1, 1)
  }
}

/** A sign, an exponent, and a fraction of `fractionBits`. */
function signed(bits: number, width: number, fractionBits: number, bias: number): number {
  const text = bits.toString(2).padStart(width, '0')
  const sign = text[0] === '1' ? -1 : 1
  const exponent = Number.parseInt(text.slice(1, width - fractionBits), 2)
  const fraction = Number.parseInt(text.slice(width - fractionBits), 2) / 2 ** fractionBits
  return sign * (exponent === 0 ? fraction * 2 ** (1 - bias) : (1 + fraction) * 2 ** (exponent - bias))
}

/** The elements in some bytes: of four bits two in each, the first in the lower half. */
export function decodeAll(dtype: SmallFloat, bytes: Uint8Array, count: number): Float32Array<ArrayBuffer> {
  const isHalf = bitsOf(dtype) === 4
  return Float32Array.from({ length: count }, (_, i) => {
    const byte = bytes[isHalf ? i >> 1 : i]!
    return decodeSmall(dtype, isHalf ? (i % 2 === 0 ? byte & 15 : byte >> 4) : byte)
  })
}
