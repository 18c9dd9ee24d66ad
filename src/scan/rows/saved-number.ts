/** A reduction that the hook saved: a tensor of one element. */

import { ReductionUndefined } from '../../base/errors.js'
import type { ReductionName } from '../../base/types.js'
import { KnownMoments } from '../../core/border/abi.js'
import type { Moments, ReductionValue } from '../../core/moments.js'

/** The moments that `savedNumber` needs. */
export const OF_SCALAR: KnownMoments = KnownMoments.extremes | KnownMoments.sum

/** The value of a saved reduction, which is stored as a tensor of one element; or the reason why it is not a number. */
export function savedNumber(moments: Moments, name: ReductionName): ReductionValue | ReductionUndefined {
  const { dtype, count, nanCount } = moments
  if (count !== 1 || dtype === 'string') {
    const got = dtype === 'string' ? 'text' : `${count} numbers`
    return new ReductionUndefined(name, dtype, `expected one number, as it was saved, got ${got}`)
  }
  if (dtype === 'complex64' || dtype === 'complex128') return moments.reduction('sum')
  return nanCount > 0 ? Number.NaN : moments.slot('min')
}
