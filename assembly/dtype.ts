// What TensorProto's data types mean for its fields (spec/format.md, "Event"): element size, and which repeated field holds
// the values when tensor_content does not.

import { DTypeNumber, ElementByteLength } from '../src/engine/border/abi'

/** Element size by type number; all numbers are below 32. */
const SIZES: usize = memory.data(32)
store<u8>(SIZES + DTypeNumber.bool, ElementByteLength.bool)
store<u8>(SIZES + DTypeNumber.int8, ElementByteLength.int8)
store<u8>(SIZES + DTypeNumber.uint8, ElementByteLength.uint8)
store<u8>(SIZES + DTypeNumber.int16, ElementByteLength.int16)
store<u8>(SIZES + DTypeNumber.uint16, ElementByteLength.uint16)
store<u8>(SIZES + DTypeNumber.float16, ElementByteLength.float16)
store<u8>(SIZES + DTypeNumber.bfloat16, ElementByteLength.bfloat16)
store<u8>(SIZES + DTypeNumber.int32, ElementByteLength.int32)
store<u8>(SIZES + DTypeNumber.uint32, ElementByteLength.uint32)
store<u8>(SIZES + DTypeNumber.float32, ElementByteLength.float32)
store<u8>(SIZES + DTypeNumber.int64, ElementByteLength.int64)
store<u8>(SIZES + DTypeNumber.uint64, ElementByteLength.uint64)
store<u8>(SIZES + DTypeNumber.float64, ElementByteLength.float64)
store<u8>(SIZES + DTypeNumber.complex64, ElementByteLength.complex64)
store<u8>(SIZES + DTypeNumber.complex128, ElementByteLength.complex128)

/** Bytes per element in tensor_content; 0 for strings and unknown types. */
export function elementSize(dtype: i32): u32 {
  return <u32>dtype < 32 ? load<u8>(SIZES + dtype) : 0
}

/** Whether all reductions of a known dtype are there, and float64 holds them (as in src/engine/dtype.ts). */
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
