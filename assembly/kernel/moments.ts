// Everything a reduction needs, in one pass over the elements (the numbers: performance.md §3).
//
// Elements are taken in blocks of 4096 that fit into the L1 cache. A block is reduced by vectors, relative to a *pilot*:
// a guess K of the mean, for which the mean of all blocks so far is a good one. Σ(x − K) and Σ(x − K)² then cancel little
// where Σx² − (Σx)²/n would lose every digit. The moments of the block are merged into the row by Chan's formula. The row
// is all that passes from block to block, so input split at whole blocks gives the same bits.
//
//   float16, bfloat16 ─▶ float32 ─┐
//   8, 16 bits, bool ──▶ int32 ───┼▶ vectors ─┬─▶ merge
//   float64, uint32 ──────────────┘     ▲     │ NaN, ±∞
//                                       └── sifted
//   complex, extreme float64 ────────▶ carefully ─▶ merge
//   int64, uint64 ───────────────────▶ whole ─────▶ merge
//
// A float64 block is extreme when squares could leave the range. It is summed in units of 2^EXPONENT.
//
// Where a sum is written as two numbers, high and low, low is what rounding took from high.

import { DType, elementSize } from '../dtype'
import { Moments } from '../layout'
import { widenToFloat32, widenToInt32 } from './lanes'

export { widenToFloat32 } from './lanes'

const BLOCK: u32 = 4096

/** As many elements give the first pilot. */
const HEAD: u32 = 64

const EXPONENT_BITS: i64 = 0x7ff0000000000000
const ONE_BITS: i64 = 0x3ff0000000000000
const INFINITY_BITS: i32 = 0x7f800000
const TWO_32: f64 = 4294967296

/** Absolute values between these and zero can be squared and summed as they are. */
const LARGE: f64 = reinterpret<f64>(<i64>(1023 + 480) << 52)
const SMALL: f64 = reinterpret<f64>(<i64>(1023 - 400) << 52)
const SMALLEST_NORMAL: f64 = reinterpret<f64>(<i64>1 << 52)

/**
 * The bits of float64 exponents, of 1, and of absolute float32. V8 builds constants anew at each use, and a load is one
 * instruction.
 */
const MASKS: usize = memory.data<u64>(
  [0x7ff0000000000000, 0x7ff0000000000000, 0x3ff0000000000000, 0x3ff0000000000000, 0x7fffffff7fffffff, 0x7fffffff7fffffff],
  16,
)

/** A block of elements that were widened, or left by `addSifted`. */
const wide: usize = memory.data(4096 * 8, 16)
/** The row of the block in hand. */
const part: usize = memory.data(<i32>Moments.SIZE, 8)
/** The row of the element to repeat. */
const single: usize = memory.data(<i32>Moments.SIZE, 8)

// ---------------------------------------------------------------------------------------------------- Interface

/** Makes a row that of no elements: MIN and MIN_ABS +∞, MAX −∞, MAX_ABS 0, the product 1, all else 0. */
export function momentsReset(row: usize): void {
  for (let slot: usize = 0; slot < Moments.SIZE; slot += 8) set(row, slot, 0)
  set(row, Moments.MIN, Infinity)
  set(row, Moments.MAX, -Infinity)
  set(row, Moments.MIN_ABS, Infinity)
  set(row, Moments.PROD_MANTISSA, 1)
}

/** Takes elements into a row. Those of a type without numbers are left out. */
export function momentsAdd(dtype: i32, data: usize, count: u32, row: usize): void {
  const size = <usize>elementSize(dtype)
  if (size == 0) return
  while (count > 0) {
    const n = min(count, BLOCK)
    momentsReset(part)
    addBlock(dtype, data, n, row)
    momentsMerge(row, part)
    data += <usize>n * size
    count -= n
  }
}

/** Takes one element into a row as if it came again and again; `times` is a whole number up to 2^53. */
export function momentsRepeat(dtype: i32, data: usize, times: f64, row: usize): void {
  if (!(times >= 1) || elementSize(dtype) == 0) return
  momentsReset(single)
  momentsAdd(dtype, data, 1, single)
  for (let slot = Moments.COUNT; slot <= Moments.ZERO_COUNT; slot += 8) set(single, slot, get(single, slot) * times)
  if (get(single, Moments.NAN_COUNT) + infinities(single) == 0) {
    repeatSum(Moments.SUM, Moments.SUM_LOW, times)
    repeatSum(Moments.SUM_ABS, Moments.SUM_ABS_LOW, times)
    repeatSum(Moments.SUM_IMAGINARY, Moments.SUM_IMAGINARY_LOW, times)
    repeatSum(Moments.SUM_SQUARES, Moments.SUM_SQUARES_LOW, times)
    repeatProduct(times)
  }
  momentsMerge(row, single)
}

/** Makes `into` the row of its own elements and those of `from`. */
export function momentsMerge(into: usize, from: usize): void {
  const n = finites(into)
  const m = finites(from)
  for (let slot = Moments.COUNT; slot <= Moments.ZERO_COUNT; slot += 8) set(into, slot, get(into, slot) + get(from, slot))

  if (isLess(from, into, Moments.MIN, Moments.MIN_EXACT)) copy(into, from, Moments.MIN, Moments.MIN_EXACT)
  if (isLess(into, from, Moments.MAX, Moments.MAX_EXACT)) copy(into, from, Moments.MAX, Moments.MAX_EXACT)
  if (isLess(from, into, Moments.MIN_ABS, Moments.MIN_ABS_EXACT)) copy(into, from, Moments.MIN_ABS, Moments.MIN_ABS_EXACT)
  if (isLess(into, from, Moments.MAX_ABS, Moments.MAX_ABS_EXACT)) copy(into, from, Moments.MAX_ABS, Moments.MAX_ABS_EXACT)

  if (m == 0) return
  // Zeros have any exponent
  const before = get(into, Moments.EXPONENT)
  const other = get(from, Moments.EXPONENT)
  const after =
    get(into, Moments.SUM_ABS) == 0 ? other : get(from, Moments.SUM_ABS) == 0 ? before : max(before, other)
  const unit = powerOfTwo(min(before - after, 0))
  const otherUnit = powerOfTwo(min(other - after, 0))
  set(into, Moments.EXPONENT, after)

  mergeSums(into, from, Moments.SUM, Moments.SUM_LOW, n, m, unit, otherUnit)
  mergeSums(into, from, Moments.SUM_ABS, Moments.SUM_ABS_LOW, n, m, unit, otherUnit)
  mergeSums(into, from, Moments.SUM_IMAGINARY, Moments.SUM_IMAGINARY_LOW, n, m, unit, otherUnit)

  const squares = add(
    get(into, Moments.SUM_SQUARES) * unit * unit,
    get(from, Moments.SUM_SQUARES) * otherUnit * otherUnit,
  )
  const squaresLow =
    lost + get(into, Moments.SUM_SQUARES_LOW) * unit * unit + get(from, Moments.SUM_SQUARES_LOW) * otherUnit * otherUnit
  set(into, Moments.SUM_SQUARES, add(squares, squaresLow))
  set(into, Moments.SUM_SQUARES_LOW, lost)

  setProduct(
    into,
    get(into, Moments.PROD_MANTISSA) * get(from, Moments.PROD_MANTISSA),
    get(into, Moments.PROD_EXPONENT) + get(from, Moments.PROD_EXPONENT),
  )
}

// ---------------------------------------------------------------------------------------------------- Rows

// @ts-ignore: decorator
@inline
function get(row: usize, slot: usize): f64 {
  return load<f64>(row + slot)
}

// @ts-ignore: decorator
@inline
function set(row: usize, slot: usize, value: f64): void {
  store<f64>(row + slot, value)
}

// @ts-ignore: decorator
@inline
function copy(into: usize, from: usize, slot: usize, exact: usize): void {
  store<u64>(into + slot, load<u64>(from + slot))
  store<u64>(into + exact, load<u64>(from + exact))
}

function infinities(row: usize): f64 {
  return get(row, Moments.POSITIVE_INFINITY_COUNT) + get(row, Moments.NEGATIVE_INFINITY_COUNT)
}

function finites(row: usize): f64 {
  return get(row, Moments.COUNT) - get(row, Moments.NAN_COUNT) - infinities(row)
}

/**
 * Compares an extreme of two rows. Where float64 can't tell them apart the exact bits can: no float64 stands for integers
 * on both sides of a sign change, so unsigned order is right for int64 too.
 */
function isLess(a: usize, b: usize, slot: usize, exact: usize): bool {
  const x = get(a, slot)
  const y = get(b, slot)
  return x < y || (x == y && load<u64>(a + exact) < load<u64>(b + exact))
}

/** Merges Σ, mean and M2, which lie side by side in the layout for each of x, |x| and the imaginary part. */
function mergeSums(
  into: usize,
  from: usize,
  sumSlot: usize,
  lowSlot: usize,
  n: f64,
  m: f64,
  unit: f64,
  otherUnit: f64,
): void {
  const meanSlot = meanOf(sumSlot)
  const meanLow = lowSlot + 8
  const apart =
    get(from, meanSlot) * otherUnit -
    get(into, meanSlot) * unit +
    (get(from, meanLow) * otherUnit - get(into, meanLow) * unit)
  const m2 = get(into, meanSlot + 8) * unit * unit + get(from, meanSlot + 8) * otherUnit * otherUnit
  set(into, meanSlot + 8, m2 + apart * apart * n * (m / (n + m)))
  const high = add(get(into, sumSlot) * unit, get(from, sumSlot) * otherUnit)
  const low = lost + get(into, lowSlot) * unit + get(from, lowSlot) * otherUnit
  setSum(into, sumSlot, lowSlot, high, low, n + m)
}

// @ts-ignore: decorator
@inline
function meanOf(sumSlot: usize): usize {
  return sumSlot == Moments.SUM ? Moments.MEAN : sumSlot == Moments.SUM_ABS ? Moments.MEAN_ABS : Moments.MEAN_IMAGINARY
}

/** Sets a sum of n elements and their mean. */
function setSum(row: usize, sumSlot: usize, lowSlot: usize, high: f64, low: f64, n: f64): void {
  const sum = add(high, low)
  const sumLow = lost
  const mean = sum / n
  const rest = sum - multiply(mean, n) - lost + sumLow
  const meanSlot = meanOf(sumSlot)
  set(row, sumSlot, sum)
  set(row, lowSlot, sumLow)
  set(row, meanSlot, mean)
  set(row, lowSlot + 8, rest / n)
}

/** Sets sum, mean and M2 of `part` from Σ(x − pilot) and Σ(x − pilot)². */
function setSumAround(sumSlot: usize, lowSlot: usize, pilot: f64, sum: f64, squares: f64, n: f64): void {
  const pilots = multiply(pilot, n)
  const pilotsLow = lost
  setSum(part, sumSlot, lowSlot, add(pilots, sum), lost + pilotsLow, n)
  set(part, meanOf(sumSlot) + 8, max(squares - sum * (sum / n), 0))
}

/** The absolute values of numbers of one sign need no sums of their own. */
function setSumsAbsOfOneSign(row: usize, sign: f64): void {
  set(row, Moments.SUM_ABS, sign * get(row, Moments.SUM))
  set(row, Moments.SUM_ABS_LOW, sign * get(row, Moments.SUM_LOW))
  set(row, Moments.MEAN_ABS, sign * get(row, Moments.MEAN))
  set(row, Moments.MEAN_ABS_LOW, sign * get(row, Moments.MEAN_LOW))
  set(row, Moments.M2_ABS, get(row, Moments.M2))
}

/** Sets a product after bringing its mantissa into [1, 2). */
function setProduct(row: usize, mantissa: f64, exponent: f64): void {
  if (mantissa == 0) exponent = 0
  else {
    const more = exponentOf(mantissa)
    mantissa = scale(mantissa, -more)
    exponent += <f64>more
  }
  set(row, Moments.PROD_MANTISSA, mantissa)
  set(row, Moments.PROD_EXPONENT, exponent)
}

function repeatSum(sumSlot: usize, lowSlot: usize, times: f64): void {
  const high = multiply(get(single, sumSlot), times)
  const low = lost + get(single, lowSlot) * times
  set(single, sumSlot, add(high, low))
  set(single, lowSlot, lost)
}

/** Repeated squaring, to twice the precision since every squaring doubles the error. */
function repeatProduct(times: f64): void {
  let power = get(single, Moments.PROD_MANTISSA)
  if (power == 0) {
    set(single, Moments.PROD_MANTISSA, <u64>times & 1 ? power : 0)
    return
  }
  let powerLow: f64 = 0
  let exponent: f64 = 0
  let product: f64 = 1
  let productLow: f64 = 0
  let productExponent: f64 = get(single, Moments.PROD_EXPONENT) * times
  for (let left = <u64>times; ; ) {
    if (left & 1) {
      const high = multiply(product, power)
      const low = lost + (product * powerLow + productLow * power)
      product = add(high, low)
      productLow = lost
      productExponent += exponent
      if (abs(product) >= 2) {
        product *= 0.5
        productLow *= 0.5
        productExponent += 1
      }
    }
    left >>= 1
    if (left == 0) break
    const high = multiply(power, power)
    const low = lost + 2 * power * powerLow
    power = add(high, low)
    powerLow = lost
    exponent *= 2
    if (power >= 2) {
      power *= 0.5
      powerLow *= 0.5
      exponent += 1
    }
  }
  setProduct(single, product, productExponent)
}

// ---------------------------------------------------------------------------------------------------- Arithmetic

/** What rounding took from the result of the last `add` or `multiply`. */
let lost: f64 = 0

// @ts-ignore: decorator
@inline
function add(a: f64, b: f64): f64 {
  const sum = a + b
  const ofB = sum - a
  lost = a - (sum - ofB) + (b - ofB)
  return sum
}

/** Dekker's product: halves of 26 bits multiply without rounding. */
// @ts-ignore: decorator
@inline
function multiply(a: f64, b: f64): f64 {
  const product = a * b
  const a1 = upperHalf(a)
  const a2 = a - a1
  const b1 = upperHalf(b)
  const b2 = b - b1
  lost = a1 * b1 - product + a1 * b2 + a2 * b1 + a2 * b2
  return product
}

// @ts-ignore: decorator
@inline
function upperHalf(x: f64): f64 {
  const shifted = x * 134217729
  return shifted - (shifted - x)
}

/** 2^exponent of an exponent ≤ 0, or 0 where that leaves nothing of a sum. */
// @ts-ignore: decorator
@inline
function powerOfTwo(exponent: f64): f64 {
  return exponent < -1000 ? 0 : reinterpret<f64>((1023 + <i64>exponent) << 52)
}

/** x · 2^exponent, for |exponent| ≤ 2000; in two steps as 2^1074 is out of range. */
// @ts-ignore: decorator
@inline
function scale(x: f64, exponent: i64): f64 {
  const half = exponent >> 1
  return x * reinterpret<f64>((1023 + half) << 52) * reinterpret<f64>((1023 + exponent - half) << 52)
}

/** The exponent of a finite number but zero: x = m · 2^exponent, 1 ≤ |m| < 2. */
// @ts-ignore: decorator
@inline
function exponentOf(x: f64): i64 {
  const field = (reinterpret<i64>(x) & EXPONENT_BITS) >> 52
  if (field != 0) return field - 1023
  return ((reinterpret<i64>(x * TWO_32 * TWO_32) & EXPONENT_BITS) >> 52) - (1023 + 64)
}

// ---------------------------------------------------------------------------------------------------- Blocks

/** Fills the empty row `part` with the moments of a block that follows the elements of `row`. */
function addBlock(dtype: i32, data: usize, n: u32, row: usize): void {
  set(part, Moments.COUNT, n)
  switch (dtype) {
    case DType.FLOAT32:
      addVectors<f32>(data, n, row)
      break
    case DType.FLOAT64:
      addVectors<f64>(data, n, row)
      break
    case DType.FLOAT16:
    case DType.BFLOAT16:
      widenToFloat32(dtype, data, n, wide)
      addVectors<f32>(wide, n, row)
      break
    case DType.INT32:
      addVectors<i32>(data, n, row)
      break
    case DType.UINT32:
      addVectors<u32>(data, n, row)
      break
    case DType.INT64:
      addWhole<i64>(data, n)
      break
    case DType.UINT64:
      addWhole<u64>(data, n)
      break
    case DType.COMPLEX64:
      addCarefully<f32>(data, n, 2)
      break
    case DType.COMPLEX128:
      addCarefully<f64>(data, n, 2)
      break
    default:
      widenToInt32(dtype, data, n, wide)
      addVectors<i32>(wide, n, row)
  }
}

function addVectors<T>(data: usize, n: u32, row: usize): void {
  const count = <f64>n
  let pilot =
    finites(row) > 0 && get(row, Moments.EXPONENT) == 0 ? get(row, Moments.MEAN) : meanOfHead<T>(data, min(n, HEAD))
  pilot = rounded<T>(pilot)
  pass<T>(data, n, pilot)
  if (isFloat<T>()) {
    const isSummed = isFinite(get(part, Moments.M2)) && isFinite(get(part, Moments.SUM_ABS))
    if (!isSummed && addSifted<T>(data, n, row)) return
    if (sizeof<T>() == 8 && (!isSummed || isExtreme(data, n))) {
      addCarefully<T>(data, n, 1)
      return
    }
  }
  // The block is so unlike those before it that the pilot would cost digits of the sum
  if (count * abs(pilot) > 2 * get(part, Moments.SUM_ABS)) {
    pilot = rounded<T>(pilot + get(part, Moments.SUM) / count)
    pass<T>(data, n, pilot)
  }

  setSumAround(Moments.SUM, Moments.SUM_LOW, pilot, get(part, Moments.SUM), get(part, Moments.M2), count)
  // Of a few numbers a person knows the sum
  if (isFloat<T>() && n <= HEAD) setSumOfFew<T>(data, n)
  const mean = get(part, Moments.MEAN)
  const squares = get(part, Moments.M2) + mean * mean * count
  set(part, Moments.SUM_SQUARES, squares)

  if (get(part, Moments.MIN) >= 0) setSumsAbsOfOneSign(part, 1)
  else if (get(part, Moments.MAX) <= 0) setSumsAbsOfOneSign(part, -1)
  else {
    const sumAbs = get(part, Moments.SUM_ABS)
    setSum(part, Moments.SUM_ABS, Moments.SUM_ABS_LOW, sumAbs, 0, count)
    const meanAbs = get(part, Moments.MEAN_ABS)
    const m2Abs = squares - sumAbs * meanAbs
    set(part, Moments.M2_ABS, m2Abs < 1e-3 * squares ? m2AbsAround<T>(data, n, meanAbs) : m2Abs)
  }
  if (get(part, Moments.MIN_ABS) == 0) {
    set(part, Moments.ZERO_COUNT, countAbsBelow<T>(data, n, 0))
    setProduct(part, copysign(0, get(part, Moments.PROD_MANTISSA)), 0)
  }
}

/** A pilot of so few digits that x − pilot is mostly exact: integers then stay integers, and sums of float32 are exact. */
// @ts-ignore: decorator
@inline
function rounded<T>(pilot: f64): f64 {
  if (isInteger<T>()) return nearest(pilot)
  return sizeof<T>() == 4 ? reinterpret<f64>(reinterpret<i64>(pilot) & ~0xffffff) : pilot
}

function setSumOfFew<T>(data: usize, n: u32): void {
  let high: f64 = 0
  let low: f64 = 0
  for (let i: u32 = 0; i < n; i++) {
    high = add(high, <f64>at<T>(data, i))
    low += lost
  }
  setSum(part, Moments.SUM, Moments.SUM_LOW, high, low, <f64>n)
}

/** A first pilot. Not finite elements are left out, as they would spoil it. */
function meanOfHead<T>(data: usize, n: u32): f64 {
  let sum: f64 = 0
  for (let i: u32 = 0; i < n; i++) {
    const x = <f64>at<T>(data, i)
    if (isFinite(x)) sum += x
  }
  const mean = sum / <f64>n
  return isFinite(mean) ? mean : 0
}

/** A block with NaN or ±∞: moves the finite elements to `wide` (`data` may be that) and takes them as a block. */
function addSifted<T>(data: usize, n: u32, row: usize): bool {
  let finite: u32 = 0
  let nans: u32 = 0
  let positive: u32 = 0
  for (let i: u32 = 0; i < n; i++) {
    const x = at<T>(data, i)
    store<T>(wide + finite * sizeof<T>(), x)
    finite += u32(abs<T>(x) < <T>Infinity)
    nans += u32(x != x)
    positive += u32(x == <T>Infinity)
  }
  if (finite == n) return false
  const negative = n - finite - nans - positive
  momentsReset(part)
  if (finite > 0) addVectors<T>(wide, finite, row)
  set(part, Moments.COUNT, <f64>n)
  set(part, Moments.NAN_COUNT, <f64>nans)
  set(part, Moments.POSITIVE_INFINITY_COUNT, <f64>positive)
  set(part, Moments.NEGATIVE_INFINITY_COUNT, <f64>negative)
  if (positive > 0) set(part, Moments.MAX, Infinity)
  if (negative > 0) set(part, Moments.MIN, -Infinity)
  if (positive + negative > 0) set(part, Moments.MAX_ABS, Infinity)
  return true
}

/** Whether a finite float64 block, having passed, holds numbers whose squares or products leave the range. */
function isExtreme(data: usize, n: u32): bool {
  const most = get(part, Moments.MAX_ABS)
  const least = get(part, Moments.MIN_ABS)
  if (most > LARGE || (most < SMALL && most > 0)) return true
  if (least > 0) return least < SMALLEST_NORMAL
  return countAbsBelow<f64>(data, n, SMALLEST_NORMAL) != countAbsBelow<f64>(data, n, 0)
}

// @ts-ignore: decorator
@inline
function at<T>(data: usize, index: u32): T {
  return load<T>(data + index * sizeof<T>())
}

// ---------------------------------------------------------------------------------------------------- Vectors

/**
 * The pass over ordinary elements: into `part` go min, max, min|x|, max|x| and the product, and in the places of SUM, M2
 * and SUM_ABS the raw Σ(x − pilot), Σ(x − pilot)² and Σ|x|.
 */
function pass<T>(data: usize, n: u32, pilot: f64): void {
  const k = f64x2.splat(pilot)
  const exponentBits = v128.load(MASKS)
  const one = v128.load(MASKS, 16)
  let lowest = ofNone<T>(Infinity, 0, i32.MAX_VALUE, -1)
  let highest = ofNone<T>(-Infinity, i32.MIN_VALUE, i32.MIN_VALUE, 0)
  let least = ofNone<T>(Infinity, INFINITY_BITS, -1, -1)
  let sum = f64x2.splat(0)
  let squares = f64x2.splat(0)
  let sumAbs = f64x2.splat(0)
  let product = one
  let exponents = i64x2.splat(0)

  // Eight elements at once, as four pairs of float64
  const end = data + (<usize>n & ~7) * sizeof<T>()
  let p = data
  for (; p != end; p += 8 * sizeof<T>()) {
    let x0 = v128.load(p)
    let x1 = v128.load(p, 16)
    lowest = lesser<T>(lesser<T>(lowest, x0), x1)
    highest = greater<T>(greater<T>(highest, x0), x1)
    least = lesserAbs<T>(lesserAbs<T>(least, x0), x1)
    let x2: v128, x3: v128
    if (sizeof<T>() == 8) {
      x2 = v128.load(p, 32)
      x3 = v128.load(p, 48)
      lowest = lesser<T>(lesser<T>(lowest, x2), x3)
      highest = greater<T>(greater<T>(highest, x2), x3)
      least = lesserAbs<T>(lesserAbs<T>(least, x2), x3)
    } else {
      x3 = toFloat64<T>(v128.shuffle<u64>(x1, x1, 1, 0))
      x2 = toFloat64<T>(x1)
      x1 = toFloat64<T>(v128.shuffle<u64>(x0, x0, 1, 0))
      x0 = toFloat64<T>(x0)
    }

    const d0 = f64x2.sub(x0, k)
    const d1 = f64x2.sub(x1, k)
    const d2 = f64x2.sub(x2, k)
    const d3 = f64x2.sub(x3, k)
    sum = f64x2.add(sum, f64x2.add(f64x2.add(d0, d1), f64x2.add(d2, d3)))
    squares = f64x2.add(
      squares,
      f64x2.add(
        f64x2.add(f64x2.mul(d0, d0), f64x2.mul(d1, d1)),
        f64x2.add(f64x2.mul(d2, d2), f64x2.mul(d3, d3)),
      ),
    )
    sumAbs = f64x2.add(
      sumAbs,
      f64x2.add(f64x2.add(f64x2.abs(x0), f64x2.abs(x1)), f64x2.add(f64x2.abs(x2), f64x2.abs(x3))),
    )

    // Four factors of 32 bits stay within 2^±600. One of 64 bits can fill the range: it leaves its exponent first.
    if (sizeof<T>() == 8) {
      exponents = i64x2.add(exponents, i64x2.add(exponentField(x0, exponentBits), exponentField(x1, exponentBits)))
      exponents = i64x2.add(exponents, i64x2.add(exponentField(x2, exponentBits), exponentField(x3, exponentBits)))
      x0 = mantissa(x0, exponentBits, one)
      x1 = mantissa(x1, exponentBits, one)
      x2 = mantissa(x2, exponentBits, one)
      x3 = mantissa(x3, exponentBits, one)
    }
    product = f64x2.mul(product, f64x2.mul(f64x2.mul(x0, x1), f64x2.mul(x2, x3)))
    exponents = i64x2.add(exponents, exponentField(product, exponentBits))
    product = mantissa(product, exponentBits, one)
  }

  let s = f64x2.extract_lane(sum, 0) + f64x2.extract_lane(sum, 1)
  let q = f64x2.extract_lane(squares, 0) + f64x2.extract_lane(squares, 1)
  let a = f64x2.extract_lane(sumAbs, 0) + f64x2.extract_lane(sumAbs, 1)
  let factor = f64x2.extract_lane(product, 0) * f64x2.extract_lane(product, 1)
  const steps = (n >> 3) * 2 * (sizeof<T>() == 8 ? 5 : 1)
  let exponent = i64x2.extract_lane(exponents, 0) + i64x2.extract_lane(exponents, 1) - 1023 * <i64>steps
  let first: f64, last: f64, closest: f64
  if (sizeof<T>() == 8) {
    first = min(f64x2.extract_lane(lowest, 0), f64x2.extract_lane(lowest, 1))
    last = max(f64x2.extract_lane(highest, 0), f64x2.extract_lane(highest, 1))
    closest = min(f64x2.extract_lane(least, 0), f64x2.extract_lane(least, 1))
  } else if (isFloat<T>()) {
    const negative = maxAcross<u32>(lowest)
    const positive = maxAcross<i32>(highest)
    closest = <f64>reinterpret<f32>(minAcross<i32>(least))
    first = <i32>negative < 0 ? <f64>reinterpret<f32>(negative) : closest
    last = positive >= 0 ? <f64>reinterpret<f32>(positive) : -closest
  } else {
    first = <f64>minAcross<T>(lowest)
    last = <f64>maxAcross<T>(highest)
    closest = <f64>minAcross<u32>(least)
  }

  for (let i = n & ~7; i < n; i++) {
    const x = <f64>at<T>(data, i)
    const d = x - pilot
    s += d
    q += d * d
    a += abs(x)
    first = x < first ? x : first
    last = x > last ? x : last
    closest = abs(x) < closest ? abs(x) : closest
    exponent += ((reinterpret<i64>(x) & EXPONENT_BITS) >> 52) - 1023
    factor *= reinterpret<f64>((reinterpret<i64>(x) & ~EXPONENT_BITS) | ONE_BITS)
  }
  set(part, Moments.SUM, s)
  set(part, Moments.M2, q)
  set(part, Moments.SUM_ABS, a)
  set(part, Moments.MIN, first)
  set(part, Moments.MAX, last)
  set(part, Moments.MIN_ABS, closest)
  set(part, Moments.MAX_ABS, max(-first, last))
  setProduct(part, factor, <f64>exponent)
}

/** Counts the elements with |x| < limit, or with x = 0 when the limit is. */
function countAbsBelow<T>(data: usize, n: u32, limit: f64): f64 {
  let counts = i64x2.splat(0)
  const end = data + (<usize>n & ~7) * sizeof<T>()
  const limits = sizeof<T>() == 8 ? f64x2.splat(limit == 0 ? Number.MIN_VALUE : limit) : i32x4.splat(0)
  for (let p = data; p != end; p += 32) {
    const x0 = v128.load(p)
    const x1 = v128.load(p, 16)
    counts =
      sizeof<T>() == 8
        ? i64x2.sub(i64x2.sub(counts, f64x2.lt(f64x2.abs(x0), limits)), f64x2.lt(f64x2.abs(x1), limits))
        : i32x4.sub(i32x4.sub(counts, equal<T>(x0, limits)), equal<T>(x1, limits))
  }
  let count: i64 =
    sizeof<T>() == 8
      ? i64x2.extract_lane(counts, 0) + i64x2.extract_lane(counts, 1)
      : i32x4.extract_lane(counts, 0) +
        i32x4.extract_lane(counts, 1) +
        i32x4.extract_lane(counts, 2) +
        i32x4.extract_lane(counts, 3)
  for (let i = n & ~7; i < n; i++) {
    const x = abs(<f64>at<T>(data, i))
    if (x < limit || x == 0) count++
  }
  return <f64>count
}

/** Σ(|x| − mean)² in a pass of its own, where Σx² − (Σ|x|)²/n cancels. */
function m2AbsAround<T>(data: usize, n: u32, mean: f64): f64 {
  let sum: f64 = 0
  let squares: f64 = 0
  for (let i: u32 = 0; i < n; i++) {
    const d = abs(<f64>at<T>(data, i)) - mean
    sum += d
    squares += d * d
  }
  return max(squares - sum * (sum / <f64>n), 0)
}

/** The extreme to start with. */
// @ts-ignore: decorator
@inline
function ofNone<T>(float64: f64, float32: i32, int32: i32, uint32: i32): v128 {
  if (isFloat<T>()) return sizeof<T>() == 8 ? f64x2.splat(float64) : i32x4.splat(float32)
  return i32x4.splat(isSigned<T>() ? int32 : uint32)
}

// The extremes of float32 are found among the bits, by units with less to do than those of floats. Unsigned, the largest
// bits are of the lowest negative number, if there is one; signed, they are of the highest positive one. Where there is
// none, the least |x| tells. A NaN goes astray, and so must lead to `addCarefully`.

// @ts-ignore: decorator
@inline
function lesser<T>(accumulator: v128, x: v128): v128 {
  if (isFloat<T>()) return sizeof<T>() == 8 ? f64x2.pmin(accumulator, x) : i32x4.max_u(accumulator, x)
  return v128.min<T>(accumulator, x)
}

// @ts-ignore: decorator
@inline
function greater<T>(accumulator: v128, x: v128): v128 {
  if (isFloat<T>()) return sizeof<T>() == 8 ? f64x2.pmax(accumulator, x) : i32x4.max_s(accumulator, x)
  return v128.max<T>(accumulator, x)
}

// @ts-ignore: decorator
@inline
function lesserAbs<T>(accumulator: v128, x: v128): v128 {
  if (!isFloat<T>()) return i32x4.min_u(accumulator, isSigned<T>() ? i32x4.abs(x) : x)
  return sizeof<T>() == 8
    ? f64x2.pmin(accumulator, f64x2.abs(x))
    : i32x4.min_u(accumulator, v128.and(x, v128.load(MASKS, 32)))
}

/** The first two of four lanes. */
// @ts-ignore: decorator
@inline
function toFloat64<T>(x: v128): v128 {
  if (isFloat<T>()) return f64x2.promote_low_f32x4(x)
  return isSigned<T>() ? f64x2.convert_low_i32x4_s(x) : f64x2.convert_low_i32x4_u(x)
}

// @ts-ignore: decorator
@inline
function exponentField(x: v128, exponentBits: v128): v128 {
  return i64x2.shr_u(v128.and(x, exponentBits), 52)
}

/** x with the exponent 0; of ±0, ±1. */
// @ts-ignore: decorator
@inline
function mantissa(x: v128, exponentBits: v128, one: v128): v128 {
  return v128.or(v128.andnot(x, exponentBits), one)
}

// @ts-ignore: decorator
@inline
function equal<T>(a: v128, b: v128): v128 {
  return isFloat<T>() ? f32x4.eq(a, b) : i32x4.eq(a, b)
}

// @ts-ignore: decorator
@inline
function minAcross<T>(x: v128): T {
  const a = min(v128.extract_lane<T>(x, 0), v128.extract_lane<T>(x, 1))
  return min(a, min(v128.extract_lane<T>(x, 2), v128.extract_lane<T>(x, 3)))
}

// @ts-ignore: decorator
@inline
function maxAcross<T>(x: v128): T {
  const a = max(v128.extract_lane<T>(x, 0), v128.extract_lane<T>(x, 1))
  return max(a, max(v128.extract_lane<T>(x, 2), v128.extract_lane<T>(x, 3)))
}

// ---------------------------------------------------------------------------------------------------- One by one

/**
 * Extreme float64, and complex numbers as two parts each. Three passes: what there is, the sums, the squares around the
 * means.
 */
function addCarefully<T>(data: usize, n: u32, parts: u32): void {
  let nans: f64 = 0
  let infinite: f64 = 0
  let zeros: f64 = 0
  let lowest: f64 = Infinity
  let highest: f64 = -Infinity
  let least: f64 = Infinity
  let most: f64 = 0
  let largestPart: f64 = 0
  let product: f64 = 1
  let exponent: i64 = 0
  for (let i: u32 = 0; i < n; i++) {
    const x = <f64>at<T>(data, i * parts)
    const y = parts == 2 ? <f64>at<T>(data, i * parts + 1) : 0
    if (isNaN(x) || isNaN(y)) {
      nans++
      continue
    }
    lowest = x < lowest ? x : lowest
    highest = x > highest ? x : highest
    const larger = max(abs(x), abs(y))
    // |z| = length · 2^e, without overflow or loss
    let absolute = larger
    if (larger == Infinity) {
      infinite++
    } else if (larger == 0) {
      zeros++
      product *= parts == 1 ? copysign(1, x) : 1
    } else {
      largestPart = larger > largestPart ? larger : largestPart
      const e = exponentOf(larger)
      let length = scale(x, -e)
      if (parts == 2) {
        const other = scale(y, -e)
        length = sqrt(length * length + other * other)
        absolute = scale(length, e)
      }
      product *= length
      exponent += e
      if (abs(product) >= TWO_32) {
        product *= 1 / TWO_32
        exponent += 32
      }
    }
    least = absolute < least ? absolute : least
    most = absolute > most ? absolute : most
  }
  set(part, Moments.NAN_COUNT, nans)
  set(part, Moments.POSITIVE_INFINITY_COUNT, infinite)
  set(part, Moments.ZERO_COUNT, zeros)
  set(part, Moments.MIN, lowest)
  set(part, Moments.MAX, highest)
  set(part, Moments.MIN_ABS, least)
  set(part, Moments.MAX_ABS, most)
  setProduct(part, zeros > 0 ? copysign(0, product) : product, <f64>exponent)

  const count = <f64>n - nans - infinite
  if (count == 0) return
  const unit: i64 = largestPart > LARGE || (largestPart < SMALL && largestPart > 0) ? exponentOf(largestPart) : 0
  set(part, Moments.EXPONENT, <f64>unit)
  // Two factors, see `scale`
  const scale1 = scale(1, -unit >> 1)
  const scale2 = scale(1, -unit - (-unit >> 1))
  let sum: f64 = 0
  let sumImaginary: f64 = 0
  let sumAbs: f64 = 0
  let squares: f64 = 0
  for (let i: u32 = 0; i < n; i++) {
    const x = <f64>at<T>(data, i * parts) * scale1 * scale2
    const y = parts == 2 ? <f64>at<T>(data, i * parts + 1) * scale1 * scale2 : 0
    if (!isFinite(x) || !isFinite(y)) continue
    const square = x * x + y * y
    sum += x
    sumImaginary += y
    sumAbs += parts == 2 ? sqrt(square) : abs(x)
    squares += square
  }
  set(part, Moments.SUM_SQUARES, squares)

  const mean = sum / count
  const meanImaginary = sumImaginary / count
  const meanAbs = sumAbs / count
  let m2: f64 = 0
  let m2Imaginary: f64 = 0
  let m2Abs: f64 = 0
  let rest: f64 = 0
  let restImaginary: f64 = 0
  let restAbs: f64 = 0
  for (let i: u32 = 0; i < n; i++) {
    const x = <f64>at<T>(data, i * parts) * scale1 * scale2
    const y = parts == 2 ? <f64>at<T>(data, i * parts + 1) * scale1 * scale2 : 0
    if (!isFinite(x) || !isFinite(y)) continue
    const d = x - mean
    const da = (parts == 2 ? sqrt(x * x + y * y) : abs(x)) - meanAbs
    m2 += d * d
    m2Abs += da * da
    rest += d
    restAbs += da
    if (parts == 2) {
      const di = y - meanImaginary
      m2Imaginary += di * di
      restImaginary += di
    }
  }
  setSumAround(Moments.SUM, Moments.SUM_LOW, mean, rest, m2, count)
  setSumAround(Moments.SUM_ABS, Moments.SUM_ABS_LOW, meanAbs, restAbs, m2Abs, count)
  if (parts == 2)
    setSumAround(Moments.SUM_IMAGINARY, Moments.SUM_IMAGINARY_LOW, meanImaginary, restImaginary, m2Imaginary, count)
}

/**
 * int64 and uint64. Numbers are taken as upper · 2^32 + lower, of which float64 holds both parts and their sums exactly.
 */
function addWhole<T>(data: usize, n: u32): void {
  let lowest = at<T>(data, 0)
  let highest = lowest
  let least = magnitude<T>(lowest)
  let most = least
  let upper: i64 = 0
  let lower: i64 = 0
  let upperAbs: i64 = 0
  let lowerAbs: i64 = 0
  let zeros: u32 = 0
  let product: f64 = 1
  let exponent: f64 = 0
  for (let i: u32 = 0; i < n; i++) {
    const x = at<T>(data, i)
    const m = magnitude<T>(x)
    lowest = min(lowest, x)
    highest = max(highest, x)
    least = min(least, m)
    most = max(most, m)
    upper += <i64>(x >> 32)
    lower += <i64>x & 0xffffffff
    upperAbs += m >> 32
    lowerAbs += m & 0xffffffff
    zeros += u32(m == 0)
    product *= x < 0 ? -(<f64>m) : m == 0 ? 1 : <f64>m
    if (abs(product) > LARGE) {
      const more = exponentOf(product)
      product = scale(product, -more)
      exponent += <f64>more
    }
  }
  const count = <f64>n
  set(part, Moments.ZERO_COUNT, <f64>zeros)
  set(part, Moments.MIN, <f64>lowest)
  set(part, Moments.MAX, <f64>highest)
  set(part, Moments.MIN_ABS, <f64>least)
  set(part, Moments.MAX_ABS, <f64>most)
  store<u64>(part + Moments.MIN_EXACT, <u64>lowest)
  store<u64>(part + Moments.MAX_EXACT, <u64>highest)
  store<u64>(part + Moments.MIN_ABS_EXACT, least)
  store<u64>(part + Moments.MAX_ABS_EXACT, most)
  setProduct(part, zeros > 0 ? copysign(0, product) : product, exponent)

  setSum(part, Moments.SUM, Moments.SUM_LOW, add(<f64>upper * TWO_32, <f64>lower), lost, count)
  set(part, Moments.M2, m2Whole<T>(data, n, <T>wholeMean(upper, lower, n), false))
  const mean = get(part, Moments.MEAN)
  set(part, Moments.SUM_SQUARES, get(part, Moments.M2) + mean * mean * count)
  if (lowest >= 0) setSumsAbsOfOneSign(part, 1)
  else if (highest <= 0) setSumsAbsOfOneSign(part, -1)
  else {
    setSum(part, Moments.SUM_ABS, Moments.SUM_ABS_LOW, add(<f64>upperAbs * TWO_32, <f64>lowerAbs), lost, count)
    set(part, Moments.M2_ABS, m2Whole<T>(data, n, <T>wholeMean(upperAbs, lowerAbs, n), true))
  }
}

/** |x| as an unsigned number, also of the lowest int64. */
// @ts-ignore: decorator
@inline
function magnitude<T>(x: T): u64 {
  return x < 0 ? 0 - <u64>x : <u64>x
}

/** (upper · 2^32 + lower) / n, to the next integer or so. */
function wholeMean(upper: i64, lower: i64, n: u32): i64 {
  return (upper / <i64>n << 32) + ((upper % <i64>n << 32) + lower) / <i64>n
}

/** Σ(x − mean)² around an integer near the mean, or likewise of |x|. */
function m2Whole<T>(data: usize, n: u32, pilot: T, absolute: bool): f64 {
  let sum: f64 = 0
  let squares: f64 = 0
  for (let i: u32 = 0; i < n; i++) {
    const x = absolute ? <T>magnitude<T>(at<T>(data, i)) : at<T>(data, i)
    const d = absolute
      ? <f64>(<i64>(<u64>x >> 32) - <i64>(<u64>pilot >> 32)) * TWO_32
      : <f64>(<i64>(x >> 32) - <i64>(pilot >> 32)) * TWO_32
    const whole = d + <f64>((<i64>x & 0xffffffff) - (<i64>pilot & 0xffffffff))
    sum += whole
    squares += whole * whole
  }
  return max(squares - sum * (sum / <f64>n), 0)
}
