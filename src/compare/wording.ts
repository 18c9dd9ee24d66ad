/** The difference of two tensors in a sentence. */

import { isFloat } from '../core/dtype.js'
import type { TensorDifference } from '../trial/measure/question.js'

/** @param limit the distance between runs of the same configuration */
export function messageOf(difference: TensorDifference, isExact: boolean, limit: number | undefined): string {
  const { unequalCount, beyondCount, count, maxAbsolute, meanAbsolute, notFinite } = difference
  const many = isExact ? unequalCount : beyondCount
  if (many === 0) return 'its numbers are equal, its bits are not (the sign of a zero)'
  const side = {
    neither: '',
    a: '; only the first has NaN or infinities',
    b: '; only the second has NaN or infinities',
    both: '',
  }[notFinite]
  const beyond =
    limit === undefined || meanAbsolute === null || limit === 0
      ? ''
      : `, ${short(meanAbsolute)} on average, where runs of the same configuration stay within ${short(limit)}`
  const what =
    count === 1
      ? `it ${isExact ? 'differs' : 'is not close'}, by ${short(maxAbsolute)}`
      : `${many === count ? `all ${count} of its` : `${many} of its ${count}`} elements ${isExact ? 'differ' : 'are not close'}, by up to ${short(maxAbsolute)}`
  return `${what}${beyond}${side}`
}

/** A sentence for integers and floats that are not close and can't be compared, such as codes without their scales; null if they can. */
export function dtypesApart(
  { dtype, otherDtype, beyondCount }: TensorDifference,
  [first, second]: readonly string[],
): string | null {
  if (beyondCount === 0 || isFloat(dtype) === isFloat(otherDtype)) return null
  if (![dtype, otherDtype].some(one => /^u?int|^bool/.test(one))) return null
  return `it is ${dtype} in ${first} and ${otherDtype} in ${second}, and no scales say which floats the integers stand for`
}

export function shown(value: unknown): string {
  return typeof value === 'number' ? String(Number(value.toPrecision(9))) : String(value)
}

function short(value: number): string {
  return Number.isFinite(value) ? String(Number(value.toPrecision(4))) : String(value)
}
