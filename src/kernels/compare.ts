/** Compares two arrays. */

import { BLOCK_ELEMENTS, DifferenceRow } from '../core/border/abi.js'
import type { Address } from '../core/border/memory.js'
import { byteLengthOf, elementByteLength, isFloat } from '../core/dtype.js'
import type { Scales } from '../core/elements.js'
import type { Engine } from '../core/engine.js'
import { withEngineSync } from '../core/engines.js'
import type { ArrayElements } from '../scan/job/array-job.js'
import type { Tolerance } from '../scan/job/tensor/allclose.js'
import { copyElements } from '../scan/job/tensor/copy-elements.js'
import { WINDOW_BYTES } from '../scan/worker/reduce-arrays.js'
import { type ArrayInput, elementsOf } from './elements.js'
import { reduce } from './moments.js'
import { described, expectOptions, list, wrong } from './wrong.js'

/** The difference between two arrays. NaN equals NaN; if only one of a pair is NaN, the largest differences are NaN. */
export interface Difference {
  /** The number of pairs. */
  readonly count: number
  readonly unequalCount: number
  /** The index of the first unequal pair, in C order; undefined if all are equal. */
  readonly firstUnequal: number | undefined
  /** The largest |a − b|, computed in float64; exact for two arrays of one 64-bit integer type. */
  readonly maxAbsolute: number
  /** The largest |a − b| / |b|; Infinity where b is 0 and a is not. */
  readonly maxRelative: number
  /**
   * The largest distance in units of the last place, for two arrays of one float dtype; otherwise undefined. Pairs with NaN don't count.
   */
  readonly maxUlps: number | undefined
  /** Σab / √(Σa² · Σb²), with each part of a complex number as an element. NaN if an array is all zeros or not finite. */
  readonly cosineSimilarity: number
}

/**
 * True if every element of `a` is close to its counterpart in `b`: |a − b| ≤ atol + rtol·|b|; an infinity is close only to itself.
 * Two float32 are compared in float32 arithmetic, as numpy does, all others in float64.
 * @throws UsageError
 */
export function allclose(a: ArrayInput, b: ArrayInput, tolerance: Tolerance = {}): boolean {
  const [left, right] = pairOf('allclose', a, b)
  expectOptions('allclose', tolerance, ['rtol', 'atol', 'equalNan'])
  const { rtol = 1e-5, atol = 1e-8, equalNan = false } = tolerance
  for (const [name, number] of Object.entries({ rtol, atol })) {
    if (typeof number !== 'number' || !(number >= 0))
      throw wrong('allclose', `${name} to be a number from 0`, described(number))
  }
  if (typeof equalNan !== 'boolean') throw wrong('allclose', 'equalNan to be true or false', described(equalNan))
  return withEngineSync(engine => {
    engine.reset()
    const closeness = { rtol, atol, equalNan }
    return everyWindow(engine, left, right, (x, y, count) => {
      return engine.elements.countNotCloseAt(left.dtype, x, right.dtype, y, count, closeness) === 0
    })
  })
}

/** The difference between two arrays of one shape. @throws UsageError */
export function difference(a: ArrayInput, b: ArrayInput): Difference {
  const [left, right] = pairOf('difference', a, b)
  const slot = slotsOf(left, right, { a: 1, b: 1 })
  const count = slot(DifferenceRow.count)
  const first = slot(DifferenceRow.firstUnequal)
  const hasUlps = left.dtype === right.dtype && isFloat(left.dtype)
  let cosineSimilarity = cosine(slot)
  // Squares of extreme numbers leave the range of float64.
  if (!isOrdinary(slot(DifferenceRow.squaresA)) || !isOrdinary(slot(DifferenceRow.squaresB))) {
    cosineSimilarity = cosine(slotsOf(left, right, { a: scaleOf(a), b: scaleOf(b) }))
  }
  return {
    count,
    unequalCount: slot(DifferenceRow.unequalCount),
    firstUnequal: first < 0 ? undefined : first,
    maxAbsolute: slot(DifferenceRow.maxAbsolute),
    maxRelative: slot(DifferenceRow.maxRelative),
    maxUlps: hasUlps ? slot(DifferenceRow.maxUlps) : undefined,
    cosineSimilarity,
  }
}

/** The numbers of a row with the difference between two arrays. */
function slotsOf(a: ArrayElements, b: ArrayElements, scales: Scales): (slot: DifferenceRow) => number {
  return withEngineSync(engine => {
    engine.reset()
    const row = engine.elements.reserveDifference()
    everyWindow(engine, a, b, (x, y, count) => {
      engine.elements.compare(a.dtype, x, b.dtype, y, count, scales, row)
      return true
    })
    const numbers = engine.elements.difference(row)
    return slot => numbers[slot / 8]!
  })
}

function cosine(slot: (slot: DifferenceRow) => number): number {
  const lengths = Math.sqrt(slot(DifferenceRow.squaresA)) * Math.sqrt(slot(DifferenceRow.squaresB))
  return Math.max(-1, Math.min(1, slot(DifferenceRow.dot) / lengths))
}

/** True if a sum of squares is far from both ends of float64's range. */
function isOrdinary(squares: number): boolean {
  return squares > 1e-250 && squares < 1e290
}

/** A power of two that brings the largest element near 1. */
function scaleOf(array: ArrayInput): number {
  const largest = Number(reduce(array, 'abs_max'))
  if (!(largest > 0 && largest < Number.POSITIVE_INFINITY)) return 1
  return 2 ** Math.max(-1000, Math.min(1000, -Math.floor(Math.log2(largest))))
}

function pairOf(call: string, a: ArrayInput, b: ArrayInput): [ArrayElements, ArrayElements] {
  const [left, right] = [elementsOf(call, a), elementsOf(call, b)]
  if (left.shape.length !== right.shape.length || left.shape.some((size, axis) => size !== right.shape[axis])) {
    throw wrong(call, 'arrays of one shape', `${list(left.shape)} and ${list(right.shape)}`)
  }
  return [left, right]
}

/**
 * Copies two arrays into the core's memory, a window of each at a time, until `test` fails. Arrays that differ mostly do so from their
 * first elements on, so the first window is small.
 */
function everyWindow(
  engine: Engine,
  a: ArrayElements,
  b: ArrayElements,
  test: (x: Address, y: Address, count: number) => boolean,
): boolean {
  const [sizeA, sizeB] = [elementByteLength(a.dtype), elementByteLength(b.dtype)]
  const most = Math.min(a.count, WINDOW_BYTES / Math.max(sizeA, sizeB))
  const [x, y] = [engine.reserveBytes(byteLengthOf(a.dtype, most)), engine.reserveBytes(byteLengthOf(b.dtype, most))]
  for (let at = 0; at < a.count; ) {
    const count = Math.min(at === 0 ? BLOCK_ELEMENTS : most, a.count - at)
    copyElements(a, at, count, engine.view(x, byteLengthOf(a.dtype, count)))
    copyElements(b, at, count, engine.view(y, byteLengthOf(b.dtype, count)))
    if (!test(x, y, count)) return false
    at += count
  }
  return true
}
