/** Sketches of a job's records, each filled while the moments of its record are computed. */

import type { DType } from '../../base/types.js'
import { KnownMoments } from '../../core/border/abi.js'
import type { Engine } from '../../core/engine.js'
import type { Sketch } from '../../core/statistics/sketch.js'
import type { Sketches } from '../job/scan-job.js'
import type { DecodedBatch } from './records/read-records.js'

export class SketchTable {
  readonly #engine: Engine
  readonly #known: KnownMoments
  readonly #sketch: Sketch
  /** The pairs of each record. */
  readonly #pairs: (Float64Array | undefined)[]

  constructor(engine: Engine, records: number, known: KnownMoments) {
    this.#engine = engine
    // The extremes limit the search for non-empty counters.
    this.#known = known | KnownMoments.extremes
    this.#sketch = engine.reserveSketch()
    this.#pairs = new Array(records)
  }

  /** The sketch of the i-th record of a batch, for `reduced` to fill. */
  take(
    dtype: DType,
    { batch }: DecodedBatch,
    i: number,
    reduced: (row: Float64Array) => void,
  ): Float64Array<ArrayBuffer> {
    const row = this.#engine.reduceSlot(batch, i, this.#known, this.#sketch.for(dtype))
    reduced(row)
    return this.#sketch.take(dtype, row)
  }

  /** Keeps the sketch of a record for the reply. */
  keep(record: number, pairs: Float64Array): void {
    this.#pairs[record] = pairs
  }

  get sketches(): Sketches {
    let end = 0
    const ends = Float64Array.from(this.#pairs, pairs => {
      end += pairs?.length ?? 0
      return end
    })
    const all = new Float64Array(end)
    this.#pairs.forEach((pairs, record) => {
      if (pairs !== undefined) all.set(pairs, (ends[record] ?? 0) - pairs.length)
    })
    return { pairs: all, ends }
  }
}
