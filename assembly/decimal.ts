// Numbers as text: the shortest decimal digits that read back as the same float64, in the notation of JavaScript's
// Number.prototype.toString.
//
// Schubfach finds the digits (Raffaello Giulietti, "The Schubfach way to render doubles", 2020): v = c·2^q is scaled by
// a power of ten so that its rounding interval is at most a few units wide, which leaves one or two integers to choose
// from. This takes 25 ns per number; JavaScript's String takes about 250.

import { FIRST_POWER, POWER_COUNT } from '../src/core/border/abi'

/**
 * The first 128 bits of each power of ten, rounded up: ⌈10^e · 2^(127 − ⌊log2 10^e⌋)⌉, as two u64, the high one first.
 * The host, which has big integers, fills in the table once; until then it is all zeros.
 */
export const POWERS: usize = memory.data(POWER_COUNT << 4, 16)

/** Up to 17 digits, with slack for reading and writing 16 bytes at a time. */
const digits: usize = memory.data(64, 16)

/** `00` to `99`. */
const PAIRS: usize = memory.data(200, 16)
for (let i: usize = 0; i < 100; i++) store<u16>(PAIRS + (i << 1), <u16>(0x3030 + i / 10 + ((i % 10) << 8)))

// @ts-ignore: decorator
@inline
const MINUS: u8 = 0x2d
// @ts-ignore: decorator
@inline
const POINT: u8 = 0x2e
// @ts-ignore: decorator
@inline
const ZERO: u8 = 0x30
// @ts-ignore: decorator
@inline
const QUOTE: u8 = 0x22

/**
 * Writes a number in at most NUMBER_BYTES. Overwrites up to TEXT_SLACK bytes after it.
 * @param isJson 1: NaN and the infinities are written in quotes
 * @returns where the text ends
 */
export function writeNumber(value: f64, isJson: u32, at: usize): usize {
  const bits = reinterpret<u64>(value)
  const biased = <i32>(bits >> 52) & 0x7ff
  if (biased == 0x7ff) return writeSpecial(bits, isJson, at)
  if (<i64>bits < 0) store<u8>(at++, MINUS)
  const fraction = bits & 0xfffffffffffff
  const magnitude = abs(value)
  if (magnitude < 9007199254740992 && magnitude == floor(magnitude)) return layOut(<u64>magnitude, 0, at)
  return writeShortest(fraction, biased, at)
}

function writeSpecial(bits: u64, isJson: u32, at: usize): usize {
  if (isJson) store<u8>(at++, QUOTE)
  if (bits & 0xfffffffffffff) {
    store<u32>(at, 0x4e614e) // NaN
    at += 3
  } else {
    if (<i64>bits < 0) store<u8>(at++, MINUS)
    store<u64>(at, 0x7974696e69666e49) // Infinity
    at += 8
  }
  if (isJson) store<u8>(at++, QUOTE)
  return at
}

/** Schubfach, section 9. The number must be finite and not 0. */
function writeShortest(fraction: u64, biased: i32, at: usize): usize {
  const c = biased ? fraction | 0x10000000000000 : fraction
  const q = max(biased, 1) - 1075
  // The neighbour below a power of two is half as far away as the one above.
  const isUneven = fraction == 0 && biased > 1
  // ⌊log10 2^q⌋, or ⌊log10 ¾·2^q⌋
  const k = (q * 1262611 - (isUneven ? 524031 : 0)) >> 22
  // ⌊log2 10^−k⌋
  const h = <u64>(q + ((-k * 1741647) >> 19) + 1)
  const power = POWERS + (<usize>(-k - FIRST_POWER) << 4)
  const high = load<u64>(power)
  const low = load<u64>(power, 8)
  // Quarters can express the midpoints between neighbours.
  const quarters = c << 2
  const value = roundToOdd(high, low, quarters << h)
  // A midpoint reads back as the even neighbour.
  const isOdd = c & 1
  const lower = roundToOdd(high, low, (quarters - (isUneven ? 1 : 2)) << h) + isOdd
  const upper = roundToOdd(high, low, (quarters + 2) << h) - isOdd

  const s = value >> 2
  if (s >= 10) {
    const tens = s / 10
    const isBelowInside = lower <= 40 * tens
    const isAboveInside = 40 * tens + 40 <= upper
    if (isBelowInside != isAboveInside) return layOut(tens + u64(isAboveInside), k + 1, at)
  }
  const isBelowInside = lower <= s << 2
  const isAboveInside = (s << 2) + 4 <= upper
  if (isBelowInside != isAboveInside) return layOut(s + u64(isAboveInside), k, at)
  const middle = (s << 2) + 2
  const isUp = value > middle || (value == middle && (s & 1) == 1)
  return layOut(s + u64(isUp), k, at)
}

/** ⌊power · factor / 2^128⌋, made odd if it was rounded: enough to compare it with multiples of 2. */
// @ts-ignore: decorator
@inline
function roundToOdd(high: u64, low: u64, factor: u64): u64 {
  const middle = high * factor
  const sum = middle + multiplyHigh(low, factor)
  const whole = multiplyHigh(high, factor) + u64(sum < middle)
  return whole | u64(sum > 1)
}

/** The upper 64 bits of a 128-bit product. */
// @ts-ignore: decorator
@inline
function multiplyHigh(a: u64, b: u64): u64 {
  const aLow = a & 0xffffffff
  const aHigh = a >> 32
  const bLow = b & 0xffffffff
  const bHigh = b >> 32
  const cross = aHigh * bLow + ((aLow * bLow) >> 32)
  const other = aLow * bHigh + (cross & 0xffffffff)
  return aHigh * bHigh + (cross >> 32) + (other >> 32)
}

/** Writes the number `significand`·10^exponent, of at most 17 digits. @returns where it ends */
function layOut(significand: u64, exponent: i32, at: usize): usize {
  let first = digits
  let end = digits + 17
  const upper = significand / 100000000
  write8(end - 8, <u32>(significand - upper * 100000000))
  if (upper == 0) first = end - 8
  else {
    const top = <u32>upper / 100000000
    write8(end - 16, <u32>upper - top * 100000000)
    store<u8>(first, <u8>top + ZERO)
  }
  while (first < end - 1 && load<u8>(first) == ZERO) first++
  /** Position of the decimal point, counted from the first digit. */
  const point = <i32>(end - first) + exponent
  while (end > first + 1 && load<u8>(end - 1) == ZERO) end--
  const count = <i32>(end - first)

  if (point > 21 || point < -5) return writeScientific(first, count, point - 1, at)
  if (point <= 0) {
    store<u64>(at, 0x3030303030302e30) // 0.000000
    at += 2 - point
    copy17(at, first)
    return at + count
  }
  copy17(at, first)
  if (count <= point) {
    for (let i = count; i < point; i++) store<u8>(at + i, ZERO)
    return at + point
  }
  at += point
  store<u8>(at, POINT)
  copy17(at + 1, first + point)
  return at + 1 + (count - point)
}

/** `1.5e+300` */
function writeScientific(first: usize, count: i32, exponent: i32, at: usize): usize {
  store<u8>(at++, load<u8>(first))
  if (count > 1) {
    store<u8>(at, POINT)
    copy17(at + 1, first + 1)
    at += count
  }
  store<u16>(at, exponent < 0 ? 0x2d65 : 0x2b65) // e- or e+
  at += 2
  let magnitude = <u32>abs(exponent)
  if (magnitude >= 100) {
    store<u8>(at++, <u8>(magnitude / 100) + ZERO)
    magnitude %= 100
    store<u16>(at, load<u16>(PAIRS + (magnitude << 1)))
    return at + 2
  }
  if (magnitude >= 10) {
    store<u16>(at, load<u16>(PAIRS + (magnitude << 1)))
    return at + 2
  }
  store<u8>(at, <u8>magnitude + ZERO)
  return at + 1
}

/** Writes eight digits, with leading zeros. */
function write8(at: usize, value: u32): void {
  const upper = value / 10000
  write4(at, upper)
  write4(at + 4, value - upper * 10000)
}

// @ts-ignore: decorator
@inline
function write4(at: usize, value: u32): void {
  const upper = value / 100
  store<u16>(at, load<u16>(PAIRS + (upper << 1)))
  store<u16>(at, load<u16>(PAIRS + ((value - upper * 100) << 1)), 2)
}

/** Copies up to 17 bytes; overwrites the bytes after them. */
// @ts-ignore: decorator
@inline
function copy17(to: usize, from: usize): void {
  const last = load<u8>(from, 16)
  v128.store(to, v128.load(from))
  store<u8>(to, last, 16)
}

/** Overwrites up to 15 bytes after the copy. */
// @ts-ignore: decorator
@inline
export function copy(to: usize, from: usize, byteLength: usize): void {
  for (let i: usize = 0; i < byteLength; i += 16) v128.store(to + i, v128.load(from + i))
}
