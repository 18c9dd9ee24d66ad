// Widening: narrow types become one of the few types that the kernels compute with. The small kernels read float32 and float64
// in place, and everything else widened to float64.

import { DTypeNumber } from '../../src/engine/border/abi'


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

/** float16 and bfloat16 → float32, bit for bit (the payload of a NaN moves to the upper bits). */
export function widenToFloat32(dtype: i32, from: usize, count: u32, to: usize): void {
  if (dtype == DTypeNumber.float16) widen(DTypeNumber.float16, 2, from, count, to)
  else if (dtype == DTypeNumber.bfloat16) widen(DTypeNumber.bfloat16, 2, from, count, to)
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

/**
 * Any type → float64; two per element for complex types.
 * @returns false for strings and unknown types
 */
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
    case DTypeNumber.bfloat16: {
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
