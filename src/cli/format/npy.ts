/** Notes on .npy files whose elements numpy has no dtype for. */

import type { DType } from '../../base/types.js'

/** A note on the substitute for a dtype that numpy lacks; null if numpy has the dtype. */
export function npySubstitute(dtype: DType): string | null {
  if (dtype === 'bfloat16') return 'numpy has no bfloat16: it is float32 there, nothing is lost'
  if (dtype === 'float4_e2m1fn') {
    return 'numpy has no float4_e2m1fn: its bits are there as uint8, two elements in each, the first in the lower half'
  }
  if (!dtype.startsWith('float8')) return null
  return `numpy has no ${dtype}: its bits are there as uint8, .view(ml_dtypes.${dtype}) reads them`
}
