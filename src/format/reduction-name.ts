/** The names of saved reductions, each of which is a tensor of its own. */

import { REDUCTIONS, type ReductionName } from '../base/types.js'

/** A saved reduction, and its tensor. */
export interface SavedReduction {
  readonly reduction: ReductionName
  readonly tensor: string
}

/** Parses the name of a saved reduction; null for other names and unknown reductions. */
export function parseReductionName(tensorName: string): SavedReduction | null {
  const match = /^(?:smdebug|tornasole)\/reductions\/([^/]+)\/(.+)$/s.exec(tensorName)
  const reduction = match && REDUCTIONS.find(name => name === match[1])
  return match && reduction ? { reduction, tensor: match[2]! } : null
}

/** The name under which smdebug saves a reduction of a tensor. */
export function reductionTensorName(reduction: ReductionName, tensor: string): string {
  return `smdebug/reductions/${reduction}/${tensor}`
}
