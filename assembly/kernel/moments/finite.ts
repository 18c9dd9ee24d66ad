// Blocks of numbers that can be squared and summed as they are. NaN and infinities are filtered out first.

import { KnownMoments, MomentsRow } from '../../../src/core/border/abi'
import { roundOff, twoSum } from '../double-double'
import { countAbsBelow, passExtremes } from './extremes'
import { at } from '../lanes'
import { get, momentsReset, part, set, setProduct, setSum, setSumsAbsOfOneSign } from './row'
import { addScaled, LARGE, SMALL } from './scaled'
import { m2Around, passAll, passSquares, passSquaresAbs, passSum, passSumsAbs } from './sums'

/** Sums of at most this many elements are exact to the last digit. */
const FEW: u32 = 64

const SMALLEST_NORMAL: f64 = reinterpret<f64>(<i64>1 << 52)

/** A block of elements that were widened, or that `addFiltered` kept. */
export const block: usize = memory.data(4096 * 8, 16)

/**
 * Fills `part` with the moments of a block. 64-bit integers must fit into 52 bits.
 * @param known as completed by `momentsAdd`
 */
export function addFinite<T>(data: usize, n: u32, known: i32): void {
  const hasExtremes = (known & KnownMoments.extremes) != 0
  const isOrdinary = hasExtremes ? passExtremes<T>(data, n) : true
  if (isFloat<T>()) {
    if (!isOrdinary && addFiltered<T>(data, n, known)) return
    if (sizeof<T>() == 8 && (!isOrdinary || isExtreme(data, n))) {
      addScaled<T>(data, n, 1)
      return
    }
  }
  if (known & KnownMoments.product) passAll<T>(data, n)
  else if (known & KnownMoments.sumAbs) {
    if (known & KnownMoments.squares) passSquaresAbs<T>(data, n)
    else passSumsAbs<T>(data, n)
  } else if (known & KnownMoments.squares) passSquares<T>(data, n)
  else if (known & KnownMoments.sum) passSum<T>(data, n)
  // The sum of float32 elements is finite unless there are NaN or ±∞
  if (isFloat<T>() && !hasExtremes && !isFinite(get(part, MomentsRow.sum)) && addFiltered<T>(data, n, known)) return
  if (known & KnownMoments.sum) setSums<T>(data, n, known)
  if (hasExtremes && get(part, MomentsRow.minAbs) == 0) {
    set(part, MomentsRow.zeroCount, countAbsBelow<T>(data, n, 0))
    setProduct(part, copysign(0, get(part, MomentsRow.prodMantissa)), 0)
  }
}

/** Makes the slots of sums and squares from the raw Σx, Σ|x| and Σx² that a pass left in them. */
function setSums<T>(data: usize, n: u32, known: i32): void {
  const count = <f64>n
  const sum = get(part, MomentsRow.sum)
  const sumAbs = get(part, MomentsRow.sumAbs)
  // People check the sums of a few numbers by hand
  if (isFloat<T>() && n <= FEW) setSumOfFew<T>(data, n)
  else setSum(part, MomentsRow.sum, sum, 0, count)
  const squares = get(part, MomentsRow.sumSquares)
  if (known & KnownMoments.squares) set(part, MomentsRow.m2, m2Of<T>(data, n, squares, sum, false))
  if (!(known & KnownMoments.sumAbs)) return
  const sign = get(part, MomentsRow.min) >= 0 ? 1 : get(part, MomentsRow.max) <= 0 ? -1 : 0
  if (sign != 0) {
    setSumsAbsOfOneSign(part, sign)
    return
  }
  setSum(part, MomentsRow.sumAbs, sumAbs, 0, count)
  if (known & KnownMoments.squares) set(part, MomentsRow.m2Abs, m2Of<T>(data, n, squares, sumAbs, true))
}

/** Σ(x − mean)², or the same of |x|: from Σx² − (Σx)²/n, or by a second pass if that cancels. */
function m2Of<T>(data: usize, n: u32, squares: f64, sum: f64, isAbsolute: bool): f64 {
  const mean = sum / <f64>n
  const m2 = squares - sum * mean
  if (m2 >= 1e-3 * squares) return m2
  return m2Around<T>(data, n, mean, isAbsolute)
}

function setSumOfFew<T>(data: usize, n: u32): void {
  let high: f64 = 0
  let low: f64 = 0
  for (let i: u32 = 0; i < n; i++) {
    high = twoSum(high, <f64>at<T>(data, i))
    low += roundOff
  }
  setSum(part, MomentsRow.sum, high, low, <f64>n)
}

/** A block with NaN or ±∞: moves the finite elements to `block` (which `data` may be) and adds them as a block. */
function addFiltered<T>(data: usize, n: u32, known: i32): bool {
  let finite: u32 = 0
  let nans: u32 = 0
  let positive: u32 = 0
  for (let i: u32 = 0; i < n; i++) {
    const x = at<T>(data, i)
    store<T>(block + finite * sizeof<T>(), x)
    finite += u32(abs<T>(x) < <T>Infinity)
    nans += u32(x != x)
    positive += u32(x == <T>Infinity)
  }
  if (finite == n) return false
  const negative = n - finite - nans - positive
  momentsReset(part)
  if (finite > 0) addFinite<T>(block, finite, known)
  set(part, MomentsRow.count, <f64>n)
  set(part, MomentsRow.nanCount, <f64>nans)
  set(part, MomentsRow.positiveInfinityCount, <f64>positive)
  set(part, MomentsRow.negativeInfinityCount, <f64>negative)
  if (positive > 0) set(part, MomentsRow.max, Infinity)
  if (negative > 0) set(part, MomentsRow.min, -Infinity)
  if (positive + negative > 0) set(part, MomentsRow.maxAbs, Infinity)
  return true
}

/** True if a finite float64 block, whose extremes are known, holds numbers whose squares or products leave the range. */
function isExtreme(data: usize, n: u32): bool {
  const most = get(part, MomentsRow.maxAbs)
  const least = get(part, MomentsRow.minAbs)
  if (most > LARGE || (most < SMALL && most > 0)) return true
  if (least > 0) return least < SMALLEST_NORMAL
  return countAbsBelow<f64>(data, n, SMALLEST_NORMAL) != countAbsBelow<f64>(data, n, 0)
}
