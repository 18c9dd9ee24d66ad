// Everything a reduction needs, or as much of it as was asked for, in one pass over the elements.
//
// Elements are taken in blocks of 4,096, which stay in the L1 cache for as many passes as a block needs: for the extremes,
// for sums, and for Σ(x − mean)² if Σx² − (Σx)²/n would cancel. The moments of the block are merged into the row by
// Chan's formula. Only the row is carried from block to block, so input cut between blocks gives the same bits.
//
//   4, 8, 16-bit floats ▶ float32 ┐
//   8, 16 bits, bool ──▶ int32 ───┼▶ finite ──┬─▶ merge (row.ts)
//   float64, uint32 ──────────────┤     ▲     │ NaN, ±∞
//   int64, uint64 ─┬──────────────┘     └─ filtered
//                  └─ beyond 52 bits ▶ int64 ─▶ merge
//   complex, extreme float64 ──────▶ scaled ──▶ merge
//
// A float64 block is extreme when squares could leave the range. It is summed in units of 2^exponent.
//
// What a smaller set knows is the same, to the last bit, as with KnownMoments.all: blocks take the same paths. GB/s of float32
// in the cache (one core, Node.js 20): the extremes 48; Σx 29; Σx and Σx² 19; these and the extremes 14; Σ|x|, which
// takes the extremes, 14, and with Σx² 11.5; all 9.8.

import { BLOCK_ELEMENTS, DTypeNumber, KnownMoments, MomentsRow } from '../../../src/core/border/abi'
import { bytesOf, elementBits } from '../../dtype'
import { roundOff, twoProduct, twoSum } from '../double-double'
import { addFinite, block } from './finite'
import { addExtremesOfHalves } from './halves'
import { addInt64 } from './int64'
import { get, infinities, merge, momentsReset, part, set, setProduct } from './row'
import { addScaled } from './scaled'
import { addToSketch, repeatInSketch } from '../sketch'
import { widenToFloat32, widenToInt32 } from '../widen'

/** The row of an element to be repeated. */
const single: usize = memory.data(<i32>MomentsRow.size, 16)

/**
 * Adds elements to a row. Ignores types that aren't numeric.
 * @param known bits of KnownMoments: the least that the row will know
 * @param sketch in which real elements are counted, too; 0 = none
 */
export function momentsAdd(dtype: i32, data: usize, count: u32, row: usize, known: i32, sketch: usize): void {
  const bits = elementBits(dtype)
  if (bits == 0) return
  known = withNeeded(dtype, known)
  while (count > 0) {
    const n = min(count, <u32>BLOCK_ELEMENTS)
    momentsReset(part)
    addBlock(dtype, data, n, known, sketch)
    merge(row, part, known)
    data += bytesOf(n, bits)
    count -= n
  }
}

/** Adds one element to a row `times` times, a whole number up to 2^53. */
export function momentsRepeat(dtype: i32, data: usize, times: f64, row: usize, known: i32, sketch: usize): void {
  if (!(times >= 1) || elementBits(dtype) == 0) return
  momentsReset(single)
  momentsAdd(dtype, data, 1, single, KnownMoments.all, 0)
  if (get(single, MomentsRow.nanCount) == 0) repeatInSketch(get(single, MomentsRow.min), times, sketch)
  for (let slot = MomentsRow.count; slot <= MomentsRow.zeroCount; slot += 8) set(single, slot, get(single, slot) * times)
  if (get(single, MomentsRow.nanCount) + infinities(single) == 0) {
    repeatSum(MomentsRow.sum, MomentsRow.sumLow, times)
    repeatSum(MomentsRow.sumAbs, MomentsRow.sumAbsLow, times)
    repeatSum(MomentsRow.sumImaginary, MomentsRow.sumImaginaryLow, times)
    repeatSum(MomentsRow.sumSquares, MomentsRow.sumSquaresLow, times)
    repeatProduct(times)
  }
  merge(row, single, withNeeded(dtype, known))
}

/** The requested moments, with those that they need or that cost nothing. */
function withNeeded(dtype: i32, known: i32): i32 {
  if (known & KnownMoments.product) return KnownMoments.all
  if (known & (KnownMoments.sumAbs | KnownMoments.squares)) known |= KnownMoments.sum
  // Extremes tell whether there are two signs, whether a float64 can be squared, and how many bits an int64 has.
  if (known & KnownMoments.sum && elementBits(dtype) > 32) known |= KnownMoments.sumAbs
  if (known & KnownMoments.sumAbs || known == 0) known |= KnownMoments.extremes
  return known
}

/** Fills the empty row `part` with the moments of a block that follows the elements of `row`. */
function addBlock(dtype: i32, data: usize, n: u32, known: i32, sketch: usize): void {
  set(part, MomentsRow.count, n)
  switch (dtype) {
    case DTypeNumber.float32:
      addToSketch<f32>(data, n, sketch)
      addFinite<f32>(data, n, known)
      break
    case DTypeNumber.float64:
      addToSketch<f64>(data, n, sketch)
      addFinite<f64>(data, n, known)
      break
    case DTypeNumber.float16:
    case DTypeNumber.bfloat16:
      if (known == KnownMoments.extremes && sketch == 0 && addExtremesOfHalves(dtype, data, n)) break
    // falls through
    case DTypeNumber.float8_e4m3fn:
    case DTypeNumber.float8_e5m2:
    case DTypeNumber.float8_e4m3fnuz:
    case DTypeNumber.float8_e5m2fnuz:
    case DTypeNumber.float8_e8m0fnu:
    case DTypeNumber.float4_e2m1fn:
      widenToFloat32(dtype, data, n, block)
      addToSketch<f32>(block, n, sketch)
      addFinite<f32>(block, n, known)
      break
    case DTypeNumber.int32:
      addToSketch<i32>(data, n, sketch)
      addFinite<i32>(data, n, known)
      break
    case DTypeNumber.uint32:
      addToSketch<u32>(data, n, sketch)
      addFinite<u32>(data, n, known)
      break
    case DTypeNumber.int64:
      addToSketch<i64>(data, n, sketch)
      addInt64<i64>(data, n, known)
      break
    case DTypeNumber.uint64:
      addToSketch<u64>(data, n, sketch)
      addInt64<u64>(data, n, known)
      break
    case DTypeNumber.complex64:
      addScaled<f32>(data, n, 2)
      break
    case DTypeNumber.complex128:
      addScaled<f64>(data, n, 2)
      break
    default:
      widenToInt32(dtype, data, n, block)
      addToSketch<i32>(block, n, sketch)
      addFinite<i32>(block, n, known)
  }
}

function repeatSum(slot: usize, low: usize, times: f64): void {
  const high = twoProduct(get(single, slot), times)
  const rest = roundOff + get(single, low) * times
  set(single, slot, twoSum(high, rest))
  set(single, low, roundOff)
}

/** Repeated squaring in double-double, since every squaring doubles the error. */
function repeatProduct(times: f64): void {
  let power = get(single, MomentsRow.prodMantissa)
  if (power == 0) {
    set(single, MomentsRow.prodMantissa, <u64>times & 1 ? power : 0)
    return
  }
  let powerLow: f64 = 0
  let exponent: f64 = 0
  let product: f64 = 1
  let productLow: f64 = 0
  let productExponent: f64 = get(single, MomentsRow.prodExponent) * times
  for (let left = <u64>times; ; ) {
    if (left & 1) {
      const high = twoProduct(product, power)
      const low = roundOff + (product * powerLow + productLow * power)
      product = twoSum(high, low)
      productLow = roundOff
      productExponent += exponent
      if (abs(product) >= 2) {
        product *= 0.5
        productLow *= 0.5
        productExponent += 1
      }
    }
    left >>= 1
    if (left == 0) break
    const high = twoProduct(power, power)
    const low = roundOff + 2 * power * powerLow
    power = twoSum(high, low)
    powerLow = roundOff
    exponent *= 2
    if (power >= 2) {
      power *= 0.5
      powerLow *= 0.5
      exponent += 1
    }
  }
  setProduct(single, product, productExponent)
}
