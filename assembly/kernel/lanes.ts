// Vectors: one vocabulary for all kernels and element types. What a function does for a type is decided at compile time.

/** V8 rebuilds a vector constant at each use, while a load is one instruction. */
const CONSTANTS: usize = memory.data<u64>(
  [
    0x7ff0000000000000, 0x7ff0000000000000, 0x7f8000007f800000, 0x7f8000007f800000, 0x7fffffffffffffff,
    0x7fffffffffffffff, 0x7fffffff7fffffff, 0x7fffffff7fffffff, 0x800fffffffffffff, 0x800fffffffffffff,
    0x3ff0000000000000, 0x3ff0000000000000, 0x8000000000000000, 0x8000000000000000, 0x00000000ffffffff,
    0x00000000ffffffff, 0x4330000000000000, 0x4330000000000000, 0x4338000000000000, 0x4338000000000000,
    0x4530000000000000, 0x4530000000000000, 0x4530000000100000, 0x4530000000100000, 0x4530000080000000,
    0x4530000080000000, 0x4530000080100000, 0x4530000080100000,
  ],
  16,
)
/** ∞, which is all bits of the exponent. */
const INFINITY_64: usize = 0
const INFINITY_32: usize = 16
/** A mask of all bits except the sign. */
const ABS_64: usize = 32
const ABS_32: usize = 48
/** float64: all bits but the exponent; 1. */
const FRACTION: usize = 64
const ONE: usize = 80
/** int64: the sign; the lower half. */
const SIGN: usize = 96
const LOWER: usize = 112
/** float64: 2^52; 3·2^51; 2^84, that and 2^52; 2^84 + 2^63, that and 2^52. */
const TWO_52: usize = 128
const THREE_51: usize = 144
const TWO_84: usize = 160
const TWO_84_52: usize = 176
const TWO_84_63: usize = 192
const TWO_84_63_52: usize = 208

// @ts-ignore: decorator
@inline
export function at<T>(data: usize, index: u32): T {
  return load<T>(data + index * sizeof<T>())
}

// @ts-ignore: decorator
@inline
export function isDouble<T>(): bool {
  return isFloat<T>() && sizeof<T>() == 8
}

// ---------------------------------------------------------------------------------------------------- Constants

// @ts-ignore: decorator
@inline
export function infinity<T>(): v128 {
  return v128.load(CONSTANTS, sizeof<T>() == 8 ? INFINITY_64 : INFINITY_32)
}

/** Every bit but the sign. */
// @ts-ignore: decorator
@inline
export function absMask<T>(): v128 {
  return v128.load(CONSTANTS, sizeof<T>() == 8 ? ABS_64 : ABS_32)
}

/** The sign of int64. */
// @ts-ignore: decorator
@inline
export function signMask(): v128 {
  return v128.load(CONSTANTS, SIGN)
}

/** The lower half of int64. */
// @ts-ignore: decorator
@inline
export function lowerMask(): v128 {
  return v128.load(CONSTANTS, LOWER)
}

// ---------------------------------------------------------------------------------------------------- Elements

/** Sixteen bytes of elements. 64-bit integers, of at most 52 bits, become float64. */
// @ts-ignore: decorator
@inline
export function loadVector<T>(from: usize): v128 {
  const x = v128.load(from)
  return isFloat<T>() || sizeof<T>() == 4 ? x : int52ToFloat64<T>(x)
}

/** Loads two elements as float64; 64-bit integers may have at most 52 bits. */
// @ts-ignore: decorator
@inline
export function loadPair<T>(from: usize): v128 {
  return sizeof<T>() == 8 ? loadVector<T>(from) : lowToFloat64<T>(v128.load64_zero(from))
}

/** The first two of four lanes. */
// @ts-ignore: decorator
@inline
function lowToFloat64<T>(x: v128): v128 {
  if (isFloat<T>()) return f64x2.promote_low_f32x4(x)
  return isSigned<T>() ? f64x2.convert_low_i32x4_s(x) : f64x2.convert_low_i32x4_u(x)
}

/** The bits are added as the lowest ones of 3·2^51 or 2^52, which is then subtracted. */
// @ts-ignore: decorator
@inline
function int52ToFloat64<T>(x: v128): v128 {
  const base = v128.load(CONSTANTS, isSigned<T>() ? THREE_51 : TWO_52)
  return f64x2.sub(i64x2.add(x, base), base)
}

/**
 * Rounds once. The halves become the lowest bits of 2^52 and 2^84 (for signed numbers 2^84 + 2^63, since flipping the sign makes
 * the upper half 2^31 too large), which are subtracted again before the halves are added.
 */
// @ts-ignore: decorator
@inline
export function int64ToFloat64<T>(x: v128): v128 {
  const low = v128.or(v128.and(x, lowerMask()), v128.load(CONSTANTS, TWO_52))
  const high = v128.xor(i64x2.shr_u(x, 32), v128.load(CONSTANTS, isSigned<T>() ? TWO_84_63 : TWO_84))
  return f64x2.add(f64x2.sub(high, v128.load(CONSTANTS, isSigned<T>() ? TWO_84_63_52 : TWO_84_52)), low)
}

// ---------------------------------------------------------------------------------------------------- float64

/** a + b + c + d, in pairs. */
// @ts-ignore: decorator
@inline
export function sum4(a: v128, b: v128, c: v128, d: v128): v128 {
  return f64x2.add(f64x2.add(a, b), f64x2.add(c, d))
}

/** The exponent, 1,023 too large. */
// @ts-ignore: decorator
@inline
export function exponentField(x: v128): v128 {
  return i64x2.shr_u(v128.and(x, infinity<f64>()), 52)
}

/** x with the exponent 0; of ±0, ±1. */
// @ts-ignore: decorator
@inline
export function mantissa(x: v128): v128 {
  return v128.or(v128.and(x, v128.load(CONSTANTS, FRACTION)), v128.load(CONSTANTS, ONE))
}

// ---------------------------------------------------------------------------------------------------- int64

// @ts-ignore: decorator
@inline
export function minInt64(a: v128, b: v128): v128 {
  return v128.bitselect(b, a, i64x2.gt_s(a, b))
}

// @ts-ignore: decorator
@inline
export function maxInt64(a: v128, b: v128): v128 {
  return v128.bitselect(b, a, i64x2.gt_s(b, a))
}

// ---------------------------------------------------------------------------------------------------- Across lanes

// @ts-ignore: decorator
@inline
export function sumAcross<T>(x: v128): T {
  const sum = v128.extract_lane<T>(x, 0) + v128.extract_lane<T>(x, 1)
  if (sizeof<T>() == 8) return sum
  return sum + v128.extract_lane<T>(x, 2) + v128.extract_lane<T>(x, 3)
}

// @ts-ignore: decorator
@inline
export function minAcross<T>(x: v128): T {
  const a = min(v128.extract_lane<T>(x, 0), v128.extract_lane<T>(x, 1))
  if (sizeof<T>() == 8) return a
  return min(a, min(v128.extract_lane<T>(x, 2), v128.extract_lane<T>(x, 3)))
}

// @ts-ignore: decorator
@inline
export function maxAcross<T>(x: v128): T {
  const a = max(v128.extract_lane<T>(x, 0), v128.extract_lane<T>(x, 1))
  if (sizeof<T>() == 8) return a
  return max(a, max(v128.extract_lane<T>(x, 2), v128.extract_lane<T>(x, 3)))
}
