/** The difference of two tensors in a sentence. */

import { isFloat } from '../core/dtype.js'
import type { TensorDifference } from '../trial/measure/question.js'

/** The end of the message about a tensor that was compared in no run of the same configuration. */
export const NOISE_UNKNOWN = '; how far runs of the same configuration are apart in it is not known'

/** @param limit the distance between runs of the same configuration; null: it is not known */
export function messageOf(difference: TensorDifference, isExact: boolean, limit: number | null | undefined): string {
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
    limit === null
      ? NOISE_UNKNOWN
      : limit === undefined || meanAbsolute === null || limit === 0
        ? ''
        : `, ${short(meanAbsolute)} on average, where runs of the same configuration stay within ${short(limit)}`
  const what =
    count === 1
      ? `it ${isExact ? 'differs' : 'is not close'}, by ${short(maxAbsolute)}`
      : `${many === count ? `all ${count} of its` : `${many} of its ${count}`} elements ${isExact ? 'differ' : 'are not close'}, by up to ${short(maxAbsolute)}`
  return `${what}${beyond}${side}`
}

/** ‖Δ‖/‖a‖ from which on a narrow float is no cast of the other: a cast of float8_e5m2 is off by an eighth at most, one of float4 by a fourth. */
const NO_CAST = 0.3

/** A sentence for codes of few bits beside floats that they are no casts of, since their scales are missing; null if the two can be compared. */
export function dtypesApart(
  { dtype, otherDtype, beyondCount, relativeNorm }: TensorDifference,
  [first, second]: readonly string[],
): string | null {
  if (beyondCount === 0) return null
  const isOf = (pattern: RegExp) => pattern.test(dtype) !== pattern.test(otherDtype)
  const areIntegers = isFloat(dtype) !== isFloat(otherDtype) && isOf(/^u?int|^bool/)
  const areScaled = isOf(/^float[48]_/) && isFloat(dtype) === isFloat(otherDtype) && (relativeNorm ?? 0) > NO_CAST
  if (!areIntegers && !areScaled) return null
  const what = areIntegers ? 'which floats the integers stand for' : 'what its numbers are multiplied by'
  return `it is ${dtype} in ${first} and ${otherDtype} in ${second}, and no scales say ${what}`
}

/** Decibels, without a sign before zero. */
export function decibels(sqnr: number): string {
  return (Math.round(sqnr * 10) / 10 + 0).toFixed(1)
}

export function shown(value: unknown): string {
  return typeof value === 'number' ? String(Number(value.toPrecision(9))) : String(value)
}

function short(value: number): string {
  return Number.isFinite(value) ? String(Number(value.toPrecision(4))) : String(value)
}
