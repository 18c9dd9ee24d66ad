// What the small kernels share. They read float32 and float64 where these lie, and all else after it was widened.

import { DTypeNumber } from '../../src/engine/abi'


/** Elements that are widened at once; they fit into the L1 cache, complex ones too. */
export const BLOCK: u32 = 1024

/** A block of widened elements. */
export const wide: usize = memory.data(1024 * 16, 16)

/** Two float32 or float64 elements as float64. */
// @ts-ignore: decorator
@inline
export function pair<T>(at: usize): v128 {
  return sizeof<T>() == 8 ? v128.load(at) : f64x2.promote_low_f32x4(v128.load64_zero(at))
}

export function isComplex(dtype: i32): bool {
  return dtype == DTypeNumber.complex64 || dtype == DTypeNumber.complex128
}
