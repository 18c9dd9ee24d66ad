// Sums of the elements of each channel, in float64.

import { DTypeNumber, WIDENED_ELEMENTS } from '../../src/core/border/abi'
import { bytesOf, elementBits, isComplex } from '../dtype'
import { loadPair, sum4, sumAcross } from './lanes'
import { widened, widenToFloat64 } from './widen'

/** The number of sums over which few adjacent channels are spread, since vectors need long runs. */
const SPREAD: u32 = 512

const spread: usize = memory.data(512 * 8, 16)

/**
 * Adds the sum of each channel's elements to its f64. Elements are [outer, channels, inner] in C order. For complex
 * numbers the real parts are summed; strings are ignored.
 */
export function sumChannels(dtype: i32, data: usize, outer: u32, channels: u32, inner: u32, sums: usize): void {
  const count = outer * channels * inner
  if (count == 0) return
  if (inner != 1 || channels > SPREAD) return addAll(dtype, data, count, channels, inner, sums)

  const many = channels * (SPREAD / channels)
  memory.fill(spread, 0, <usize>many << 3)
  addAll(dtype, data, count, many, 1, spread)
  for (let i: u32 = 0; i < many; i++) add(sums + (<usize>(i % channels) << 3), load<f64>(spread + (<usize>i << 3)))
}

function addAll(dtype: i32, data: usize, count: u32, channels: u32, inner: u32, sums: usize): void {
  if (dtype == DTypeNumber.float32) return addRuns<f32>(data, 0, count, channels, inner, sums)
  if (dtype == DTypeNumber.float64) return addRuns<f64>(data, 0, count, channels, inner, sums)

  const bits = elementBits(dtype)
  if (bits == 0) return
  for (let first: u32 = 0; first < count; ) {
    const n = min(count - first, WIDENED_ELEMENTS)
    widenToFloat64(dtype, data + bytesOf(first, bits), n, widened)
    if (isComplex(dtype)) dropImaginary(n)
    addRuns<f64>(widened, first, n, channels, inner, sums)
    first += n
  }
}

/** Adds n elements, starting with element `first` of the tensor; they may span channels. */
function addRuns<T>(data: usize, first: u32, n: u32, channels: u32, inner: u32, sums: usize): void {
  for (const end = first + n; first != end; ) {
    const channel = (first / inner) % channels
    const sum = sums + (<usize>channel << 3)
    let run: u32
    if (inner == 1) {
      run = min(end - first, channels - channel)
      addEach<T>(data, run, sum)
    } else {
      run = min(end - first, inner - (first % inner))
      add(sum, sumOf<T>(data, run))
    }
    data += <usize>run * sizeof<T>()
    first += run
  }
}

// @ts-ignore: decorator
@inline
function add(sum: usize, x: f64): void {
  store<f64>(sum, load<f64>(sum) + x)
}

/** Adds each element to its own sum. */
function addEach<T>(data: usize, n: u32, sums: usize): void {
  const end = data + <usize>(n & ~1) * sizeof<T>()
  for (; data != end; data += 2 * sizeof<T>(), sums += 16) v128.store(sums, f64x2.add(v128.load(sums), loadPair<T>(data)))
  if (n & 1) add(sums, <f64>load<T>(data))
}

/** Four sums in parallel, since each addition waits for the one before. */
function sumOf<T>(data: usize, n: u32): f64 {
  const two: usize = 2 * sizeof<T>()
  let sum0 = f64x2.splat(0)
  let sum1 = sum0
  let sum2 = sum0
  let sum3 = sum0
  const end = data + <usize>(n & ~7) * sizeof<T>()
  for (; data != end; data += 4 * two) {
    sum0 = f64x2.add(sum0, loadPair<T>(data))
    sum1 = f64x2.add(sum1, loadPair<T>(data + two))
    sum2 = f64x2.add(sum2, loadPair<T>(data + 2 * two))
    sum3 = f64x2.add(sum3, loadPair<T>(data + 3 * two))
  }
  const sums = sum4(sum0, sum1, sum2, sum3)
  let sum = sumAcross<f64>(sums)
  for (const last = end + <usize>(n & 7) * sizeof<T>(); data != last; data += sizeof<T>()) sum += <f64>load<T>(data)
  return sum
}

/** Moves the real parts of the widened elements together. */
function dropImaginary(n: u32): void {
  for (let i: usize = 1; i < n; i++) store<f64>(widened + (i << 3), load<f64>(widened + (i << 4)))
}
