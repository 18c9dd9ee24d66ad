// CRC-32C by table lookups, slicing-by-16: for short inputs, and for what folding leaves.

import { STEP } from './tables'

/** Written but never read, see advance16. */
const ANCHOR: usize = memory.data(4, 16)

/** The register after any number of bytes. */
export function advance(data: usize, byteLength: u32, register: u32): u32 {
  for (; byteLength >= 16; byteLength -= 16) {
    register = advance16(data, register)
    data += 16
  }
  if (byteLength & 8) {
    register = advance8(load<u32>(data), load<u32>(data, 4), register)
    data += 8
  }
  if (byteLength & 4) {
    register = advance4(load<u32>(data) ^ register)
    data += 4
  }
  return advanceBytes(data, byteLength & 3, register)
}

export function advanceBytes(data: usize, byteLength: u32, register: u32): u32 {
  for (; byteLength != 0; byteLength--) {
    register = (register >>> 8) ^ load<u32>(((register ^ load<u8>(data)) & 0xff) << 2, STEP)
    data++
  }
  return register
}

/** The register after a word that has already been XORed with the register before it. */
// @ts-ignore: decorator
@inline
function advance4(word: u32): u32 {
  return (
    load<u32>((word << 2) & 0x3fc, STEP + 3 * 1024) ^
    load<u32>((word >>> 6) & 0x3fc, STEP + 2 * 1024) ^
    load<u32>((word >>> 14) & 0x3fc, STEP + 1 * 1024) ^
    load<u32>((word >>> 22) & 0x3fc, STEP)
  )
}

/** The register after eight bytes. */
export function advance8(low: u32, high: u32, register: u32): u32 {
  low ^= register
  return (
    load<u32>((low << 2) & 0x3fc, STEP + 7 * 1024) ^
    load<u32>((low >>> 6) & 0x3fc, STEP + 6 * 1024) ^
    load<u32>((low >>> 14) & 0x3fc, STEP + 5 * 1024) ^
    load<u32>((low >>> 22) & 0x3fc, STEP + 4 * 1024) ^
    advance4(high)
  )
}

/**
 * The register after sixteen bytes. Only the four bytes that meet the register wait for it; the others are looked up
 * straight from memory. V8 would compute every sum after the last lookup and run out of registers, hence the stores,
 * which it leaves in their places.
 */
// @ts-ignore: decorator
@inline
export function advance16(data: usize, register: u32): u32 {
  let sum =
    load<u32>((<usize>load<u8>(data, 4)) << 2, STEP + 11 * 1024) ^
    load<u32>((<usize>load<u8>(data, 5)) << 2, STEP + 10 * 1024) ^
    load<u32>((<usize>load<u8>(data, 6)) << 2, STEP + 9 * 1024) ^
    load<u32>((<usize>load<u8>(data, 7)) << 2, STEP + 8 * 1024)
  store<u32>(ANCHOR, sum)
  sum ^=
    load<u32>((<usize>load<u8>(data, 8)) << 2, STEP + 7 * 1024) ^
    load<u32>((<usize>load<u8>(data, 9)) << 2, STEP + 6 * 1024) ^
    load<u32>((<usize>load<u8>(data, 10)) << 2, STEP + 5 * 1024) ^
    load<u32>((<usize>load<u8>(data, 11)) << 2, STEP + 4 * 1024)
  store<u32>(ANCHOR, sum)
  sum ^=
    load<u32>((<usize>load<u8>(data, 12)) << 2, STEP + 3 * 1024) ^
    load<u32>((<usize>load<u8>(data, 13)) << 2, STEP + 2 * 1024) ^
    load<u32>((<usize>load<u8>(data, 14)) << 2, STEP + 1 * 1024) ^
    load<u32>((<usize>load<u8>(data, 15)) << 2, STEP)
  store<u32>(ANCHOR, sum)
  const word = load<u32>(data) ^ register
  sum ^=
    load<u32>((word << 2) & 0x3fc, STEP + 15 * 1024) ^
    load<u32>((word >>> 6) & 0x3fc, STEP + 14 * 1024) ^
    load<u32>((word >>> 14) & 0x3fc, STEP + 13 * 1024) ^
    load<u32>((word >>> 22) & 0x3fc, STEP + 12 * 1024)
  store<u32>(ANCHOR, sum)
  return sum
}
