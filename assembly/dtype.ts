// What TensorProto's data types mean for its fields: element size, and which repeated field holds
// the values when tensor_content does not.

import { DTYPE_NUMBERS, DTypeNumber, ElementBits } from '../src/core/border/abi'

/** Bits of an element by type number. */
const BITS: usize = memory.data(64)
store<u8>(BITS + DTypeNumber.bool, ElementBits.bool)
store<u8>(BITS + DTypeNumber.int8, ElementBits.int8)
store<u8>(BITS + DTypeNumber.uint8, ElementBits.uint8)
store<u8>(BITS + DTypeNumber.int16, ElementBits.int16)
store<u8>(BITS + DTypeNumber.uint16, ElementBits.uint16)
store<u8>(BITS + DTypeNumber.float16, ElementBits.float16)
store<u8>(BITS + DTypeNumber.bfloat16, ElementBits.bfloat16)
store<u8>(BITS + DTypeNumber.int32, ElementBits.int32)
store<u8>(BITS + DTypeNumber.uint32, ElementBits.uint32)
store<u8>(BITS + DTypeNumber.float32, ElementBits.float32)
store<u8>(BITS + DTypeNumber.int64, ElementBits.int64)
store<u8>(BITS + DTypeNumber.uint64, ElementBits.uint64)
store<u8>(BITS + DTypeNumber.float64, ElementBits.float64)
store<u8>(BITS + DTypeNumber.complex64, ElementBits.complex64)
store<u8>(BITS + DTypeNumber.complex128, ElementBits.complex128)
store<u8>(BITS + DTypeNumber.float8_e4m3fn, ElementBits.float8_e4m3fn)
store<u8>(BITS + DTypeNumber.float8_e5m2, ElementBits.float8_e5m2)
store<u8>(BITS + DTypeNumber.float8_e4m3fnuz, ElementBits.float8_e4m3fnuz)
store<u8>(BITS + DTypeNumber.float8_e5m2fnuz, ElementBits.float8_e5m2fnuz)
store<u8>(BITS + DTypeNumber.float8_e8m0fnu, ElementBits.float8_e8m0fnu)
store<u8>(BITS + DTypeNumber.float4_e2m1fn, ElementBits.float4_e2m1fn)

/** Bits per element in tensor_content; 0 for strings and unknown types. */
export function elementBits(dtype: i32): u32 {
  return <u32>dtype < <u32>DTYPE_NUMBERS ? load<u8>(BITS + dtype) : 0
}

/** The bytes that elements of so many bits take, 4 or a multiple of 8. */
// @ts-ignore: decorator
@inline
export function bytesOf(count: usize, bits: u32): usize {
  return bits == 4 ? (count + 1) >> 1 : count * (bits >> 3)
}

/** True if all reductions exist for a known dtype, and float64 holds them (as in src/core/dtype.ts). */
export function isOrdinary(dtype: i32): bool {
  switch (dtype) {
    case DTypeNumber.string:
    case DTypeNumber.complex64:
    case DTypeNumber.complex128:
    case DTypeNumber.int64:
    case DTypeNumber.uint64:
      return false
    default:
      return true
  }
}

/** The TensorProto field that holds the values of a dtype one by one; 0 if no field does. */
export function valuesField(dtype: i32): u32 {
  switch (dtype) {
    case DTypeNumber.float32:
      return 5
    case DTypeNumber.float64:
      return 6
    case DTypeNumber.int32:
    case DTypeNumber.int16:
    case DTypeNumber.uint16:
    case DTypeNumber.int8:
    case DTypeNumber.uint8:
      return 7
    case DTypeNumber.complex64:
      return 9
    case DTypeNumber.int64:
      return 10
    case DTypeNumber.bool:
      return 11
    case DTypeNumber.complex128:
      return 12
    case DTypeNumber.float16:
    case DTypeNumber.bfloat16:
      return 13
    case DTypeNumber.uint32:
      return 16
    case DTypeNumber.uint64:
      return 17
    default:
      return 0
  }
}

export function isComplex(dtype: i32): bool {
  return dtype == DTypeNumber.complex64 || dtype == DTypeNumber.complex128
}
