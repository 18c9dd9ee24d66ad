// Widening: narrow types become one of the few types that the kernels compute with. The small kernels read float32 and float64
// in place, and everything else widened to float64.

import { DTypeNumber } from '../../src/core/border/abi'

/** The float32 of each byte of the five float8 types: 256 numbers each. */
const FLOAT8: usize = memory.data(5 * 1024, 16)
const E4M3FN: usize = FLOAT8
const E5M2: usize = FLOAT8 + 1024
const E4M3FNUZ: usize = FLOAT8 + 2 * 1024
const E5M2FNUZ: usize = FLOAT8 + 3 * 1024
const E8M0FNU: usize = FLOAT8 + 4 * 1024
/** The two float32 of each byte of float4. */
const FLOAT4: usize = memory.data(256 * 8, 16)

/** Fills a table with sign, exponent and mantissa; `top` and what is above it, without the sign, are infinity and NaN. */
function fillTable(table: usize, mantissaBits: u32, bias: i32, infinity: u32, nan: u32): void {
  const ones = (1 << mantissaBits) - 1
  for (let byte: u32 = 0; byte < 256; byte++) {
    const magnitude = byte & 0x7f
    const field = <i32>(magnitude >> mantissaBits)
    const significand = <f32>((magnitude & ones) + (field > 0 ? ones + 1 : 0))
    const exponent = max(field, 1) - bias - <i32>mantissaBits
    let x = significand * reinterpret<f32>((127 + exponent) << 23)
    if (magnitude == infinity) x = f32(Infinity)
    else if (magnitude >= nan) x = f32.NaN
    store<f32>(table + (<usize>byte << 2), byte > 127 ? -x : x)
  }
}

fillTable(E4M3FN, 3, 7, 0xff, 0x7f)
fillTable(E5M2, 2, 15, 0x7c, 0x7d)
fillTable(E4M3FNUZ, 3, 8, 0xff, 0xff)
fillTable(E5M2FNUZ, 2, 16, 0xff, 0xff)
store<f32>(E4M3FNUZ + (0x80 << 2), f32.NaN)
store<f32>(E5M2FNUZ + (0x80 << 2), f32.NaN)
for (let byte: u32 = 1; byte < 255; byte++) store<u32>(E8M0FNU + (<usize>byte << 2), byte << 23)
store<u32>(E8M0FNU, 1 << 22)
store<f32>(E8M0FNU + (255 << 2), f32.NaN)
for (let byte: usize = 0; byte < 256; byte++) {
  store<f32>(FLOAT4 + (byte << 3), float4(<u32>byte & 15))
  store<f32>(FLOAT4 + (byte << 3), float4(<u32>byte >> 4), 4)
}

/** A sign, two bits of exponent, one of mantissa: 0, 0.5, 1, 1.5, 2, 3, 4, 6. */
function float4(bits: u32): f32 {
  const field = (bits >> 1) & 3
  const significand = (bits & 1) + (field > 0 ? 2 : 0)
  const x = <f32>(significand << max(field, 1)) / 4
  return bits > 7 ? -x : x
}

const INFINITY_BITS: i32 = 0x7f800000

/** A block of WIDENED_ELEMENTS, widened. */
export const widened: usize = memory.data(1024 * 16, 16)

/** The last elements of a run. */
const few: usize = memory.data(16, 16)

/** Four float16 patterns in 32-bit lanes → float32. */
// @ts-ignore: decorator
@inline
function float16x4(bits: v128): v128 {
  const magnitude = i32x4.shl(v128.and(bits, i32x4.splat(0x7fff)), 13)
  // Read as float32, the exponent is 112 too small. The multiplication is exact and makes subnormals normal.
  const scaled = f32x4.mul(magnitude, f32x4.splat(reinterpret<f32>((127 + 112) << 23)))
  const special = v128.and(i32x4.ge_s(magnitude, i32x4.splat(0x7c00 << 13)), i32x4.splat(INFINITY_BITS))
  const sign = i32x4.shl(v128.and(bits, i32x4.splat(0x8000)), 16)
  return v128.or(v128.or(scaled, special), sign)
}

/** Four elements of a type of at most 32 bits → float32 or int32 (uint32) lanes. Reads nothing but those elements. */
// @ts-ignore: decorator
@inline
function load4(dtype: i32, from: usize): v128 {
  switch (dtype) {
    case DTypeNumber.float16:
      return float16x4(v128.load16x4_u(from))
    case DTypeNumber.bfloat16:
      return i32x4.shl(v128.load16x4_u(from), 16)
    case DTypeNumber.int16:
      return v128.load16x4_s(from)
    case DTypeNumber.uint16:
      return v128.load16x4_u(from)
    case DTypeNumber.int8:
      return i32x4.extend_low_i16x8_s(i16x8.extend_low_i8x16_s(v128.load32_zero(from)))
    case DTypeNumber.uint8:
      return i32x4.extend_low_i16x8_u(i16x8.extend_low_i8x16_u(v128.load32_zero(from)))
    default: // BOOL
      return v128.and(
        i32x4.ne(i32x4.extend_low_i16x8_u(i16x8.extend_low_i8x16_u(v128.load32_zero(from))), i32x4.splat(0)),
        i32x4.splat(1),
      )
  }
}

/** Up to three elements, without reading past them. */
// @ts-ignore: decorator
@inline
function loadSome(dtype: i32, from: usize, count: u32, size: usize): v128 {
  v128.store(few, i32x4.splat(0))
  for (let i: usize = 0; i < <usize>count * size; i++) store<u8>(few + i, load<u8>(from + i))
  return load4(dtype, few)
}

// @ts-ignore: decorator
@inline
function widen(dtype: i32, size: usize, from: usize, count: u32, to: usize): void {
  const sixteens = to + ((<usize>count & ~15) << 2)
  for (; to != sixteens; to += 64, from += 16 * size) {
    v128.store(to, load4(dtype, from))
    v128.store(to, load4(dtype, from + 4 * size), 16)
    v128.store(to, load4(dtype, from + 8 * size), 32)
    v128.store(to, load4(dtype, from + 12 * size), 48)
  }
  const end = to + ((<usize>count & 12) << 2)
  for (; to != end; to += 16, from += 4 * size) v128.store(to, load4(dtype, from))
  const rest = count & 3
  if (rest == 0) return
  const last = loadSome(dtype, from, rest, size)
  v128.store32_lane(to, last, 0)
  if (rest > 1) v128.store32_lane(to + 4, last, 1)
  if (rest > 2) v128.store32_lane(to + 8, last, 2)
}

/** Converts bytes to float32 by a table. */
function lookUp(table: usize, from: usize, count: u32, to: usize): void {
  for (const end = from + (count & ~3); from != end; from += 4, to += 16) {
    const bytes = <usize>load<u32>(from)
    store<f32>(to, load<f32>(table + ((bytes << 2) & 0x3fc)))
    store<f32>(to, load<f32>(table + ((bytes >> 6) & 0x3fc)), 4)
    store<f32>(to, load<f32>(table + ((bytes >> 14) & 0x3fc)), 8)
    store<f32>(to, load<f32>(table + ((bytes >> 22) & 0x3fc)), 12)
  }
  for (const end = from + (count & 3); from != end; from++, to += 4) {
    store<f32>(to, load<f32>(table + (<usize>load<u8>(from) << 2)))
  }
}

/** Halves of bytes → float32. */
function lookUpHalves(from: usize, count: u32, to: usize): void {
  for (const end = from + (count >> 1); from != end; from++, to += 8) {
    store<u64>(to, load<u64>(FLOAT4 + (<usize>load<u8>(from) << 3)))
  }
  if (count & 1) store<u32>(to, load<u32>(FLOAT4 + (<usize>load<u8>(from) << 3)))
}

/** Floats of at most 16 bits → float32, bit for bit (the payload of a NaN of 16 bits moves to the upper bits). */
export function widenToFloat32(dtype: i32, from: usize, count: u32, to: usize): void {
  switch (dtype) {
    case DTypeNumber.float16:
      widen(DTypeNumber.float16, 2, from, count, to)
      break
    case DTypeNumber.bfloat16:
      widen(DTypeNumber.bfloat16, 2, from, count, to)
      break
    case DTypeNumber.float8_e4m3fn:
      lookUp(E4M3FN, from, count, to)
      break
    case DTypeNumber.float8_e5m2:
      lookUp(E5M2, from, count, to)
      break
    case DTypeNumber.float8_e4m3fnuz:
      lookUp(E4M3FNUZ, from, count, to)
      break
    case DTypeNumber.float8_e5m2fnuz:
      lookUp(E5M2FNUZ, from, count, to)
      break
    case DTypeNumber.float8_e8m0fnu:
      lookUp(E8M0FNU, from, count, to)
      break
    case DTypeNumber.float4_e2m1fn:
      lookUpHalves(from, count, to)
  }
}

/** Integers of 8 and 16 bits and bool (any non-zero byte is 1) → int32. */
export function widenToInt32(dtype: i32, from: usize, count: u32, to: usize): void {
  switch (dtype) {
    case DTypeNumber.int16:
      widen(DTypeNumber.int16, 2, from, count, to)
      break
    case DTypeNumber.uint16:
      widen(DTypeNumber.uint16, 2, from, count, to)
      break
    case DTypeNumber.int8:
      widen(DTypeNumber.int8, 1, from, count, to)
      break
    case DTypeNumber.uint8:
      widen(DTypeNumber.uint8, 1, from, count, to)
      break
    case DTypeNumber.bool:
      widen(DTypeNumber.bool, 1, from, count, to)
  }
}

// @ts-ignore: decorator
@inline
function convert<T>(from: usize, count: u32, to: usize): void {
  for (let i: usize = 0; i < count; i++) store<f64>(to + (i << 3), <f64>load<T>(from + i * sizeof<T>()))
}

/** Converts any type to float64; complex types give two per element. @returns false for strings and unknown types */
export function widenToFloat64(dtype: i32, from: usize, count: u32, to: usize): bool {
  switch (dtype) {
    case DTypeNumber.float64:
      convert<f64>(from, count, to)
      return true
    case DTypeNumber.complex128:
      convert<f64>(from, 2 * count, to)
      return true
    case DTypeNumber.float32:
      convert<f32>(from, count, to)
      return true
    case DTypeNumber.complex64:
      convert<f32>(from, 2 * count, to)
      return true
    case DTypeNumber.int32:
      convert<i32>(from, count, to)
      return true
    case DTypeNumber.uint32:
      convert<u32>(from, count, to)
      return true
    case DTypeNumber.int64:
      convert<i64>(from, count, to)
      return true
    case DTypeNumber.uint64:
      convert<u64>(from, count, to)
      return true
    case DTypeNumber.float16:
    case DTypeNumber.bfloat16:
    case DTypeNumber.float8_e4m3fn:
    case DTypeNumber.float8_e5m2:
    case DTypeNumber.float8_e4m3fnuz:
    case DTypeNumber.float8_e5m2fnuz:
    case DTypeNumber.float8_e8m0fnu:
    case DTypeNumber.float4_e2m1fn: {
      // Into the upper half of the target, where each element is read before it is overwritten
      const upper = to + <usize>count * 4
      widenToFloat32(dtype, from, count, upper)
      convert<f32>(upper, count, to)
      return true
    }
    case DTypeNumber.int16:
    case DTypeNumber.uint16:
    case DTypeNumber.int8:
    case DTypeNumber.uint8:
    case DTypeNumber.bool: {
      const upper = to + <usize>count * 4
      widenToInt32(dtype, from, count, upper)
      convert<i32>(upper, count, to)
      return true
    }
    default:
      return false
  }
}
