// A sketch of a distribution: how many elements share sign, exponent and the first five bits of the mantissa. It needs no range
// beforehand, and sketches are merged by addition. 64-bit types are counted as float64, all others as float32.
//
// The block is in the L1 cache, since the moments are about to read it. Neighbouring elements are counted in four tables, since an
// increment of a counter would have to wait for the one before to be stored. A key's four counters lie side by side. Until a sketch
// is taken, its counters are 32 bits wide: no record in the core's memory has more elements, but for the repeated ones.

import { elementBits } from '../dtype'

/** The header of a sketch, before its counters: the bits of a repeated element as float64, and its count. */
const REPEATED: usize = 0
const TIMES: usize = 8
const COUNTERS: usize = 16

/** The bytes of a key's counters. */
const GROUP: usize = 16

/** Half of the keys of float64, float32: those of one sign. */
const HALF_64: u32 = 1 << 16
const HALF_32: u32 = 1 << 13

/** The address of an element's counter. */
// @ts-ignore: decorator
@inline
function groupOf<T>(at: usize): usize {
  if (sizeof<T>() == 8) {
    const bits = isFloat<T>() ? load<u64>(at) : reinterpret<u64>(<f64>load<T>(at))
    return <usize>(bits >> 47) << 4
  }
  // The upper two bytes of float32 without their two lowest bits, times four
  if (isFloat<T>()) return (<usize>load<u16>(at, 2) & 0xfffc) << 2
  return <usize>(reinterpret<u32>(<f32>load<T>(at)) >> 18) << 4
}

/** Counts elements; does nothing if there is no sketch. */
// @ts-ignore: decorator
@inline
export function addToSketch<T>(data: usize, n: u32, sketch: usize): void {
  if (sketch != 0) count<T>(data, n, sketch + COUNTERS)
}

function count<T>(data: usize, n: u32, counters: usize): void {
  const size = sizeof<T>()
  const fours = data + <usize>(n & ~3) * size
  const end = data + <usize>n * size
  for (; data != fours; data += 4 * size) {
    const a = counters + groupOf<T>(data)
    store<u32>(a, load<u32>(a) + 1)
    const b = counters + groupOf<T>(data + size)
    store<u32>(b, load<u32>(b, 4) + 1, 4)
    const c = counters + groupOf<T>(data + 2 * size)
    store<u32>(c, load<u32>(c, 8) + 1, 8)
    const d = counters + groupOf<T>(data + 3 * size)
    store<u32>(d, load<u32>(d, 12) + 1, 12)
  }
  for (; data != end; data += size) {
    const a = counters + groupOf<T>(data)
    store<u32>(a, load<u32>(a) + 1)
  }
}

/** Notes that a number has been counted once, and how many times more it is to be. There is one such number in a tensor. */
export function repeatInSketch(number: f64, times: f64, sketch: usize): void {
  if (sketch == 0) return
  store<f64>(sketch + REPEATED, number)
  store<f64>(sketch + TIMES, times)
}

/**
 * Writes the counts of the finite elements, and empties the sketch.
 * @param least, most how near to 0 and how far from it the elements are; the keys outside are not looked at
 * @param out pairs of float64: a bucket and its count, which is not 0, in ascending order. A bucket is the upper 17 bits of its elements
 *   as float64, without the sign; of negative ones the complement of that
 * @returns the number of pairs
 */
export function sketchTake(dtype: i32, sketch: usize, least: f64, most: f64, out: usize): u32 {
  const isWide = elementBits(dtype) == 64
  const half = isWide ? HALF_64 : HALF_32
  const first = bucketKey(least, isWide)
  const last = most < Infinity ? bucketKey(most, isWide) : half - 1
  const negative = sketch + COUNTERS + <usize>half * GROUP
  const number = load<f64>(sketch, REPEATED)
  const times = load<f64>(sketch, TIMES)
  store<f64>(sketch, 0, TIMES)
  const repeated = times > 0 ? bucketKey(abs(number), isWide) : half
  let at = out
  let zeros: f64 = 0
  for (let key = last + 1; key-- > first; ) {
    let sum = takeGroup(negative + <usize>key * GROUP)
    if (sum == 0) continue
    if (key == repeated && number < 0) sum += times
    if (key == 0) zeros = sum
    else at = writeBucket(at, key, isWide, -1, sum)
  }
  for (let key = first; key <= last; key++) {
    let sum = takeGroup(sketch + COUNTERS + <usize>key * GROUP)
    if (key == repeated && number >= 0 && times > 0) sum += times
    if (key == 0) sum += zeros
    if (sum > 0) at = writeBucket(at, key, isWide, 1, sum)
  }
  return <u32>((at - out) >> 4)
}

/** The sum of a key's counters, which are set to 0. */
// @ts-ignore: decorator
@inline
function takeGroup(group: usize): f64 {
  const counters = v128.load(group)
  if (!v128.any_true(counters)) return 0
  v128.store(group, i64x2.splat(0))
  let sum = <u64>i32x4.extract_lane(counters, 0) & 0xffffffff
  sum += <u64>i32x4.extract_lane(counters, 1) & 0xffffffff
  sum += <u64>i32x4.extract_lane(counters, 2) & 0xffffffff
  sum += <u64>i32x4.extract_lane(counters, 3) & 0xffffffff
  return <f64>sum
}

/** The key of a number that is not negative. */
function bucketKey(x: f64, isWide: bool): u32 {
  return isWide ? <u32>(reinterpret<u64>(x) >> 47) : reinterpret<u32>(<f32>x) >> 18
}

function writeBucket(at: usize, key: u32, isWide: bool, sign: f64, sum: f64): usize {
  const bucket = isWide ? key : bucketKey(<f64>reinterpret<f32>(key << 18), true)
  // Infinities and NaN
  if (bucket >= 0x7ff << 5) return at
  store<f64>(at, sign < 0 ? <f64>~(<i32>bucket) : <f64>bucket)
  store<f64>(at, sum, 8)
  return at + 16
}
