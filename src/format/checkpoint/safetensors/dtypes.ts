/** The dtypes of safetensors, and the two lengths that every reader checks. */

import type { DType } from '../../../base/types.js'

/** Bytes of a file before its header. */
export const LENGTH_BYTES = 8
/** The reference implementation's limit of a header. */
export const MAX_HEADER_BYTES = 100_000_000

/** Dtypes that can be read, with the bits of an element. */
const DTYPES: Readonly<Record<string, readonly [dtype: DType, bits: number]>> = {
  BOOL: ['bool', 8],
  I8: ['int8', 8],
  U8: ['uint8', 8],
  I16: ['int16', 16],
  U16: ['uint16', 16],
  I32: ['int32', 32],
  U32: ['uint32', 32],
  I64: ['int64', 64],
  U64: ['uint64', 64],
  F16: ['float16', 16],
  BF16: ['bfloat16', 16],
  F8_E4M3: ['float8_e4m3fn', 8],
  F8_E5M2: ['float8_e5m2', 8],
  F8_E4M3FNUZ: ['float8_e4m3fnuz', 8],
  F8_E5M2FNUZ: ['float8_e5m2fnuz', 8],
  F8_E8M0: ['float8_e8m0fnu', 8],
  F4: ['float4_e2m1fn', 4],
  F32: ['float32', 32],
  F64: ['float64', 64],
  C64: ['complex64', 64],
}

/** Names that writers other than the reference use. */
const ALIASES: Readonly<Record<string, string>> = { E8M0: 'F8_E8M0', UE8: 'F8_E8M0', FP4: 'F4', F8_E4M3FN: 'F8_E4M3' }

/** The names that can be read, for messages. */
export const DTYPE_NAMES = Object.keys(DTYPES).join(', ')

/** A dtype by its name in a file, in the spelling of any writer; undefined: it can't be read. */
export function dtypeNamed(given: string): readonly [dtype: DType, bits: number] | undefined {
  const name = Object.hasOwn(ALIASES, given) ? ALIASES[given]! : given
  return Object.hasOwn(DTYPES, name) ? DTYPES[name] : undefined
}
