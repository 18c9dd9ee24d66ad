// Weights beside the numbers of few bits that quantisation made of them, each multiplied with the scale of its block.

import { QuantisedRow, WIDENED_ELEMENTS } from '../../../src/core/border/abi'
import { bytesOf, elementBits } from '../../dtype'
import { absMask, sumAcross } from '../lanes'
import { get, set } from '../moments/row'
import { widened, widenToFloat64 } from '../widen'

/** Room for the codes of a chunk, and one more if the first is the second half of a byte. */
const codes: usize = memory.data(WIDENED_ELEMENTS * 8 + 16, 16)

/**
 * Adds elements of one row of blocks, in C order.
 * @param first the position of the first, from which a and b count, too
 * @param columns in a row of the tensor
 * @param scales one float64 for each block of the row
 * @param largest the largest number of the codes' type
 * @param blocks two float64 for each block: Σ(a − b)² and Σa²
 */
export function addQuantised(
  dtypeA: i32,
  a: usize,
  dtypeB: i32,
  b: usize,
  first: u32,
  count: u32,
  column: u32,
  columns: u32,
  blockColumns: u32,
  scales: usize,
  largest: f64,
  blocks: usize,
  row: usize,
): void {
  const bitsA = elementBits(dtypeA)
  const bitsB = elementBits(dtypeB)
  const end = first + count
  while (first < end) {
    const n = min(end - first, WIDENED_ELEMENTS)
    const halfA: u32 = bitsA == 4 ? first & 1 : 0
    const halfB: u32 = bitsB == 4 ? first & 1 : 0
    widenToFloat64(dtypeA, a + bytesOf(first - halfA, bitsA), n + halfA, widened)
    widenToFloat64(dtypeB, b + bytesOf(first - halfB, bitsB), n + halfB, codes)
    let x = widened + (<usize>halfA << 3)
    let y = codes + (<usize>halfB << 3)
    for (let left = n; left > 0; ) {
      const block = column / blockColumns
      const inBlock = min(left, min((block + 1) * blockColumns, columns) - column)
      const scale = load<f64>(scales + (<usize>block << 3))
      const sums = blocks + (<usize>block << 4)
      if (!addFinite(x, y, inBlock, scale, largest, sums, row)) addEach(x, y, inBlock, scale, largest, sums, row)
      x += <usize>inBlock << 3
      y += <usize>inBlock << 3
      left -= inBlock
      column += inBlock
      if (column == columns) column = 0
    }
    first += n
  }
}

/** Adds a run of pairs. @returns false if some are not finite: nothing was added */
function addFinite(a: usize, b: usize, n: u32, scale: f64, largest: f64, block: usize, row: usize): bool {
  const mask = absMask<f64>()
  const scales = f64x2.splat(scale)
  const most = f64x2.splat(largest)
  let errors = f64x2.splat(0)
  let squaresA = errors
  let squaresB = errors
  let dots = errors
  let farthest = errors
  let saturated = i64x2.splat(0)
  const end = a + (<usize>(n & ~1) << 3)
  for (; a != end; a += 16, b += 16) {
    const x = v128.load(a)
    const code = v128.load(b)
    const y = f64x2.mul(code, scales)
    const apart = v128.and(f64x2.sub(x, y), mask)
    saturated = i64x2.sub(saturated, f64x2.eq(v128.and(code, mask), most))
    errors = f64x2.add(errors, f64x2.mul(apart, apart))
    squaresA = f64x2.add(squaresA, f64x2.mul(x, x))
    squaresB = f64x2.add(squaresB, f64x2.mul(y, y))
    dots = f64x2.add(dots, f64x2.mul(x, y))
    farthest = f64x2.pmax(farthest, apart)
  }
  let error = sumAcross<f64>(errors)
  let squareA = sumAcross<f64>(squaresA)
  let squareB = sumAcross<f64>(squaresB)
  let dot = sumAcross<f64>(dots)
  let far = max(f64x2.extract_lane(farthest, 0), f64x2.extract_lane(farthest, 1))
  let atLargest = <f64>(i64x2.extract_lane(saturated, 0) + i64x2.extract_lane(saturated, 1))
  if (n & 1) {
    const x = load<f64>(a)
    const code = load<f64>(b)
    const y = code * scale
    const apart = abs(x - y)
    error += apart * apart
    squareA += x * x
    squareB += y * y
    dot += x * y
    far = max(far, apart)
    atLargest += f64(abs(code) == largest)
  }
  if (!isFinite(error) || !isFinite(squareA) || !isFinite(squareB)) return false
  addSums(error, squareA, squareB, dot, block, row)
  if (far > get(row, QuantisedRow.maxAbsolute)) set(row, QuantisedRow.maxAbsolute, far)
  set(row, QuantisedRow.saturated, get(row, QuantisedRow.saturated) + atLargest)
  return true
}

/** Adds pairs one by one; those that are not finite are counted and skipped. */
function addEach(a: usize, b: usize, n: u32, scale: f64, largest: f64, block: usize, row: usize): void {
  for (let i: usize = 0; i < <usize>n << 3; i += 8) {
    const x = load<f64>(a + i)
    const code = load<f64>(b + i)
    const y = code * scale
    const apart = abs(x - y)
    if (abs(code) == largest) set(row, QuantisedRow.saturated, get(row, QuantisedRow.saturated) + 1)
    if (!isFinite(apart)) {
      set(row, QuantisedRow.notFinite, get(row, QuantisedRow.notFinite) + 1)
      continue
    }
    addSums(apart * apart, x * x, y * y, x * y, block, row)
    if (apart > get(row, QuantisedRow.maxAbsolute)) set(row, QuantisedRow.maxAbsolute, apart)
  }
}

// @ts-ignore: decorator
@inline
function addSums(error: f64, squareA: f64, squareB: f64, dot: f64, block: usize, row: usize): void {
  store<f64>(block, load<f64>(block) + error)
  store<f64>(block, load<f64>(block, 8) + squareA, 8)
  set(row, QuantisedRow.squaresB, get(row, QuantisedRow.squaresB) + squareB)
  set(row, QuantisedRow.dot, get(row, QuantisedRow.dot) + dot)
}
