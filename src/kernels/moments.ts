/** Reductions of arrays. */

import { nearestNames, quote, UsageError } from '../base/errors.js'
import type { MomentName } from '../base/types.js'
import { KnownMoments } from '../core/border/abi.js'
import { withEngineSync } from '../core/engines.js'
import { Moments, type ReductionValue, setFor } from '../core/moments.js'
import { isMomentName, MOMENT_NAMES } from '../core/statistics/statistic.js'
import type { ArrayElements } from '../scan/job/array-job.js'
import { reduceArray, reduceInPlace } from '../scan/worker/reduce-arrays.js'
import { addressOf, allocationOf } from './allocate.js'
import { type ArrayInput, elementsOf } from './elements.js'
import { described, wrong } from './wrong.js'

/**
 * All reductions of an array, with the numbers of NaN, infinite and zero elements. A scan of the same tensor has the same bits.
 * @param known the reductions that will be read: fewer take less time. Default: all
 * @throws UsageError
 */
export function moments(array: ArrayInput, known?: readonly MomentName[]): Moments {
  return momentsOf(elementsOf('moments', array), knownFor('moments', known))
}

/** A single reduction of an array. @throws UsageError @throws ReductionUndefined for a reduction that is not defined for the dtype */
export function reduce(array: ArrayInput, name: MomentName): ReductionValue {
  return momentsOf(elementsOf('reduce', array), knownFor('reduce', [name])).reduction(name)
}

function momentsOf(array: ArrayElements, known: KnownMoments): Moments {
  const { dtype, bytes, layout } = array
  const allocation = layout === null ? allocationOf(bytes) : undefined
  const row = allocation
    ? reduceInPlace(allocation.engine, allocation.batch, array, addressOf(bytes), known)
    : withEngineSync(engine => reduceArray(engine, array, known))
  return new Moments(dtype, row)
}

/** The moments that rows must have for these reductions. @throws UsageError for an unknown reduction */
export function knownFor(call: string, names: readonly MomentName[] | undefined): KnownMoments {
  if (names === undefined) return KnownMoments.all
  if (!Array.isArray(names)) throw wrong(call, 'a list of reductions', described(names))
  const index = names.findIndex(name => !isMomentName(name))
  if (index < 0) return setFor(names)
  const unknown: unknown = names[index]
  const nearest = nearestNames(String(unknown), MOMENT_NAMES).map(quote).join(' or ')
  const hint = nearest === '' ? '' : `; did you mean ${nearest}?`
  throw new UsageError(`${call}: expected the name of a reduction, got ${described(unknown)}${hint}`, { call })
}
