/** Percentiles and histograms of arrays. */

import { byteLengthOf } from '../core/dtype.js'
import type { Engine } from '../core/engine.js'
import { withEngineSync } from '../core/engines.js'
import { isDefined, undefinedReduction } from '../core/moments.js'
import type { ElementHistogram } from '../core/statistics/distribution.js'
import { areBins, DEFAULT_BINS, histogramFrom } from '../core/statistics/statistic.js'
import type { ArrayElements } from '../scan/job/array-job.js'
import { copyElements } from '../scan/job/tensor/copy-elements.js'
import { eachWindow } from '../scan/worker/reduce-arrays.js'
import { type ArrayInput, elementsOf } from './elements.js'
import { described, wrong } from './wrong.js'

/**
 * Exact percentiles, interpolated as by `numpy.percentile`. NaN if any element is, or if there are none.
 * @param percents numbers from 0 to 100
 * @throws UsageError
 * @throws ReductionUndefined for complex numbers
 */
export function percentiles(array: ArrayInput, percents: readonly number[]): number[] {
  const elements = orderedElements('percentiles', array)
  if (!Array.isArray(percents)) throw wrong('percentiles', 'a list of percentages', described(percents))
  const bad = percents.find(percent => !(typeof percent === 'number' && percent >= 0 && percent <= 100))
  if (bad !== undefined) throw wrong('percentiles', 'percentages from 0 to 100', described(bad))
  const { dtype, count } = elements
  return withEngineSync(engine => {
    engine.reset()
    const byteLength = byteLengthOf(dtype, count)
    const address = engine.reserveBytes(byteLength)
    copyElements(elements, 0, count, engine.view(address, byteLength))
    return engine.elements.percentiles(dtype, address, count, percents)
  })
}

/**
 * The number of elements in each bin, counted as by `numpy.histogram`: a bin includes its lower edge, the last one also its upper edge.
 * NaN and elements outside are not counted.
 * @param bins the number of equal bins from the smallest finite element to the largest, or their edges, ascending
 * @throws UsageError
 * @throws ReductionUndefined for complex numbers
 */
export function histogram(array: ArrayInput, bins: number | readonly number[] = DEFAULT_BINS): ElementHistogram {
  const elements = orderedElements('histogram', array)
  const numbers = typeof bins === 'number' ? [bins] : bins
  const isRight = Array.isArray(numbers) && areBins(numbers) && (typeof bins === 'number' || bins.length > 1)
  if (!isRight) throw wrong('histogram', 'a number of bins, or at least two ascending edges', described(bins))
  return withEngineSync(engine => {
    engine.reset()
    return histogramFrom(countedIn(engine, elements, numbers))
  })
}

/** Counts in equal bins; the range needs a pass of its own. */
function countedIn(engine: Engine, elements: ArrayElements, numbers: readonly number[]): number[] {
  const { dtype } = elements
  const range = engine.elements.reserveRange()
  if (numbers.length === 1) {
    eachWindow(engine, elements, (window, count) => engine.elements.extendRange(dtype, window, count, range))
  }
  const bins = engine.elements.reserveBins(numbers, range)
  eachWindow(engine, elements, (window, count) => engine.elements.countBins(dtype, window, count, bins))
  return engine.elements.binnedCounts(bins)
}

/** The elements of an array whose dtype is ordered. */
export function orderedElements(call: 'percentiles' | 'histogram' | 'distribution', array: ArrayInput): ArrayElements {
  const elements = elementsOf(call, array)
  if (isDefined('histogram', elements.dtype)) return elements
  throw undefinedReduction('histogram', elements.dtype)
}
