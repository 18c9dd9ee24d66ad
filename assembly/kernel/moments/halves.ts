// The extremes of a block of 16-bit floats by their bits, eight a vector: to widen them first takes several times as long. As with
// float32, the lowest negative number has the largest bits, and the highest positive one the largest as signed integers.

import { DTypeNumber, MomentsRow } from '../../../src/core/border/abi'
import { widenToFloat32 } from '../widen'
import { part, set, setProduct } from './row'

/** Three vectors, then lanes of them as float32. */
const extremes: usize = memory.data(48 + 32, 16)
const widenedLanes: usize = extremes + 48

/**
 * Puts the extremes and the count of zeros into `part`, the same as those of the widened elements.
 * @returns false, and nothing is done, if there are NaN or ±∞
 */
export function addExtremesOfHalves(dtype: i32, data: usize, n: u32): bool {
  const infinity: u32 = dtype == DTypeNumber.bfloat16 ? 0x7f80 : 0x7c00
  const mask = i16x8.splat(0x7fff)
  let lowest = i16x8.splat(0)
  let highest = i16x8.splat(i16.MIN_VALUE)
  let nearest = i16x8.splat(<i16>infinity)
  let zeros = i16x8.splat(0)
  const end = data + 2 * (<usize>n & ~7)
  for (let p = data; p != end; p += 16) {
    const x = v128.load(p)
    const magnitude = v128.and(x, mask)
    lowest = i16x8.max_u(lowest, x)
    highest = i16x8.max_s(highest, x)
    nearest = i16x8.min_u(nearest, magnitude)
    zeros = i16x8.sub(zeros, i16x8.eq(magnitude, i16x8.splat(0)))
  }
  v128.store(extremes, lowest)
  v128.store(extremes, highest, 16)
  v128.store(extremes, nearest, 32)
  let negative: u32 = 0
  let positive: i32 = i16.MIN_VALUE
  let close: u32 = infinity
  for (let lane: usize = 0; lane < 16; lane += 2) {
    negative = max(negative, <u32>load<u16>(extremes + lane))
    positive = max(positive, <i32>load<i16>(extremes + lane, 16))
    close = min(close, <u32>load<u16>(extremes + lane, 32))
  }
  if (negative >= (0x8000 | infinity) || positive >= <i32>infinity) return false
  const closest = number(dtype, close)
  let nearestAbs = closest
  let first = negative >= 0x8000 ? number(dtype, negative) : closest
  let last = positive >= 0 ? number(dtype, positive) : -closest
  const sums = i32x4.extadd_pairwise_i16x8_u(zeros)
  let zeroCount =
    i32x4.extract_lane(sums, 0) + i32x4.extract_lane(sums, 1) + i32x4.extract_lane(sums, 2) + i32x4.extract_lane(sums, 3)
  widenToFloat32(dtype, end, n & 7, widenedLanes)
  for (let i: u32 = 0; i < (n & 7); i++) {
    const x = <f64>load<f32>(widenedLanes + (<usize>i << 2))
    if (!isFinite(x)) return false
    first = x < first ? x : first
    last = x > last ? x : last
    nearestAbs = abs(x) < nearestAbs ? abs(x) : nearestAbs
    zeroCount += i32(x == 0)
  }
  set(part, MomentsRow.min, first)
  set(part, MomentsRow.max, last)
  set(part, MomentsRow.minAbs, nearestAbs)
  set(part, MomentsRow.maxAbs, max(-first, last))
  set(part, MomentsRow.zeroCount, <f64>zeroCount)
  if (zeroCount > 0) setProduct(part, 0, 0)
  return true
}

function number(dtype: i32, bits: u32): f64 {
  store<u16>(extremes, <u16>bits)
  widenToFloat32(dtype, extremes, 1, widenedLanes)
  return <f64>load<f32>(widenedLanes)
}
