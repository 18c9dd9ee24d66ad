// TensorProto data types by TensorFlow's numbers (spec/format.md, "Event"): element size, and which repeated field of a
// TensorProto holds the values when tensor_content does not.

export namespace DType {
  export const INVALID: i32 = 0
  export const FLOAT32: i32 = 1
  export const FLOAT64: i32 = 2
  export const INT32: i32 = 3
  export const UINT8: i32 = 4
  export const INT16: i32 = 5
  export const INT8: i32 = 6
  export const STRING: i32 = 7
  export const COMPLEX64: i32 = 8
  export const INT64: i32 = 9
  export const BOOL: i32 = 10
  export const BFLOAT16: i32 = 14
  export const UINT16: i32 = 17
  export const COMPLEX128: i32 = 18
  export const FLOAT16: i32 = 19
  export const UINT32: i32 = 22
  export const UINT64: i32 = 23
}

/** Bytes an element takes in tensor_content; 0 for strings and for types we do not know. */
export function elementSize(dtype: i32): u32 {
  switch (dtype) {
    case DType.UINT8:
    case DType.INT8:
    case DType.BOOL:
      return 1
    case DType.INT16:
    case DType.UINT16:
    case DType.FLOAT16:
    case DType.BFLOAT16:
      return 2
    case DType.FLOAT32:
    case DType.INT32:
    case DType.UINT32:
      return 4
    case DType.FLOAT64:
    case DType.INT64:
    case DType.UINT64:
    case DType.COMPLEX64:
      return 8
    case DType.COMPLEX128:
      return 16
    default:
      return 0
  }
}

/** The number of the TensorProto field that holds the values of a dtype one by one; 0 if there is none. */
export function valuesField(dtype: i32): u32 {
  switch (dtype) {
    case DType.FLOAT32:
      return 5
    case DType.FLOAT64:
      return 6
    case DType.INT32:
    case DType.INT16:
    case DType.UINT16:
    case DType.INT8:
    case DType.UINT8:
      return 7
    case DType.COMPLEX64:
      return 9
    case DType.INT64:
      return 10
    case DType.BOOL:
      return 11
    case DType.COMPLEX128:
      return 12
    case DType.FLOAT16:
    case DType.BFLOAT16:
      return 13
    case DType.UINT32:
      return 16
    case DType.UINT64:
      return 17
    default:
      return 0
  }
}
