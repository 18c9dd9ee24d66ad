/** The powers of ten that assembly/decimal.ts needs, computed here because JavaScript has big integers. */

import { FIRST_POWER, POWER_COUNT } from './border/abi.js'

/** u32 words of the table. */
export const POWER_WORDS = POWER_COUNT * 4

let words: Uint32Array | undefined

/** ⌈10^e · 2^(127 − ⌊log2 10^e⌋)⌉ for e from -292 to 324, 128 bits each as two u64, the high one first. Takes 1 ms once. */
export function decimalPowers(): Uint32Array {
  if (words !== undefined) return words
  const powers = new BigUint64Array(POWER_COUNT * 2)
  const write = (exponent: number, bits: bigint): void => {
    const at = 2 * (exponent - FIRST_POWER)
    powers[at] = bits >> 64n
    powers[at + 1] = bits & 0xffff_ffff_ffff_ffffn
  }
  let power = 1n
  for (let exponent = 0; exponent < FIRST_POWER + POWER_COUNT; exponent++) {
    const length = bitLength(power)
    write(exponent, length <= 128n ? power << (128n - length) : ((power - 1n) >> (length - 128n)) + 1n)
    if (exponent > 0 && exponent <= -FIRST_POWER) write(-exponent, ((1n << (127n + length)) + power - 1n) / power)
    power *= 10n
  }
  words = new Uint32Array(powers.buffer)
  return words
}

function bitLength(value: bigint): bigint {
  const digits = value.toString(16)
  return BigInt(digits.length * 4 - Math.clz32(Number.parseInt(digits[0]!, 16)) + 28)
}
