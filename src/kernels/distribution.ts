/** Distributions of arrays. */

import { KnownMoments } from '../core/border/abi.js'
import { withEngineSync } from '../core/engines.js'
import { Moments } from '../core/moments.js'
import { Distribution } from '../core/statistics/distribution.js'
import { eachWindow } from '../scan/worker/reduce-arrays.js'
import type { ArrayInput } from './elements.js'
import { orderedElements } from './statistics.js'

/**
 * The distribution of an array's elements: approximate quantiles and histograms, in one pass.
 * @throws UsageError
 * @throws ReductionUndefined for complex numbers
 */
export function distribution(array: ArrayInput): Distribution {
  const elements = orderedElements('distribution', array)
  const { dtype } = elements
  return withEngineSync(engine => {
    engine.reset()
    const batch = engine.reserveBatch(1)
    engine.resetRow(batch)
    const sketch = engine.reserveSketch().for(dtype)
    eachWindow(engine, elements, (window, count) =>
      engine.addToRow(batch, dtype, window, count, 0, KnownMoments.extremes, sketch),
    )
    const row = engine.rows(batch, 1).slice()
    return Distribution.of(new Moments(dtype, row), sketch.take(dtype, row))
  })
}
