/** Statistics that a tool saved in place of a tensor, as the reductions of smdebug: each is a tensor of its own. */

import type { ReductionName } from '../../../base/types.js'
import { reductionTensorName } from '../../reduction-name.js'
import type { StoredTensor } from '../stored-tensor.js'

/** A statistic as a tensor with a saved reduction. @param facts the place of the statistic, and the tool that saved it */
export function savedReduction(
  reduction: ReductionName,
  tensor: string,
  value: number,
  facts: Pick<StoredTensor, 'worker' | 'step' | 'order'>,
): StoredTensor {
  return savedScalar(reductionTensorName(reduction, tensor), value, facts)
}

export function savedScalar(
  name: string,
  value: number,
  facts: Pick<StoredTensor, 'worker' | 'step' | 'order'>,
): StoredTensor {
  const data = new Uint8Array(Float64Array.of(value).buffer)
  return { name, dtype: 'float64', shape: [], blocks: [], data, ...facts }
}
