/** The powers of ten that assembly/decimal.ts writes numbers with: made here, where integers have any size. */

const FIRST_POWER = -292
const POWER_COUNT = 617
/** u32 words of the table. */
export const POWER_WORDS = POWER_COUNT * 4

let words: Uint32Array | undefined

/** ⌈10^e · 2^(127 − ⌊log2 10^e⌋)⌉ for e from -292 to 324, 128 bits each as two u64, the high one first. */
export function decimalPowers(): Uint32Array {
  if (words !== undefined) return words
  const powers = new BigUint64Array(POWER_COUNT * 2)
  for (let i = 0; i < POWER_COUNT; i++) {
    const power = first128Bits(FIRST_POWER + i)
    powers[2 * i] = power >> 64n
    powers[2 * i + 1] = power & 0xffff_ffff_ffff_ffffn
  }
  words = new Uint32Array(powers.buffer)
  return words
}

function first128Bits(exponent: number): bigint {
  const power = 10n ** BigInt(Math.abs(exponent))
  const length = BigInt(power.toString(2).length)
  if (exponent < 0) return ((1n << (127n + length)) + power - 1n) / power
  return length <= 128n ? power << (128n - length) : ((power - 1n) >> (length - 128n)) + 1n
}
