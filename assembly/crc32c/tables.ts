// The polynomial of CRC-32C and what is computed from it once, when the module starts (25 to 100 µs).
//
// Reflected convention throughout: bit 31 of a word is the coefficient of x⁰, and "a register" is the CRC's remainder
// without the final inversion.

/** Castagnoli's polynomial without its x³² term. */
const POLYNOMIAL: u32 = 0x82f63b78

/**
 * Step tables: the u32 at STEP + 1024·k + 4·b is the register after byte b and then k zero bytes, starting from 0.
 */
// @ts-ignore: decorator
@inline
export const STEP: usize = memory.data(16 * 1024, 128)

/** 128 bytes of 0, then 128 bytes of 0xff: read at START_MASK + 128 − n, it hides the first n bytes of a 128-byte block. */
// @ts-ignore: decorator
@inline
export const START_MASK: usize = memory.data(256, 128)

/** All 0 except four bytes 0xff in the middle: read at SEED_MASK + 128 − n, it selects the bytes n … n + 3. */
// @ts-ignore: decorator
@inline
export const SEED_MASK: usize = memory.data(256, 128)

for (let byte: usize = 0; byte < 256; byte++) {
  let register = <u32>byte
  for (let bit = 0; bit < 8; bit++) register = timesX(register)
  store<u32>(STEP + (byte << 2), register)
}
for (let entry: usize = 256; entry < 16 * 256; entry++) {
  const before = load<u32>(STEP + ((entry - 256) << 2))
  store<u32>(STEP + (entry << 2), (before >>> 8) ^ load<u32>(STEP + ((before & 0xff) << 2)))
}
for (let index: usize = 128; index < 256; index++) store<u8>(START_MASK + index, 0xff)
store<u32>(SEED_MASK + 128, 0xffffffff)

/** The product of a polynomial and x, modulo P. */
function timesX(a: u32): u32 {
  return (a >>> 1) ^ (POLYNOMIAL & -(a & 1))
}

/** The product of two polynomials modulo P. */
export function multiply(a: u32, b: u32): u32 {
  let product: u32 = 0
  for (; a != 0; a <<= 1) {
    product ^= b & -(a >>> 31)
    b = timesX(b)
  }
  return product
}
