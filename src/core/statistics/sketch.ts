/** Counts elements by their leading bits while their moments are computed (assembly/kernel/sketch.ts). */

import type { DType } from '../../base/types.js'
import { NARROW_SKETCH_BYTES, WIDE_SKETCH_BYTES } from '../border/abi.js'
import type { Address, CoreMemory } from '../border/memory.js'
import type { Core } from '../border/module.js'
import { dtypeNumber, elementByteLength } from '../dtype.js'
import { MOMENT_INDEX } from '../moments-row.js'

/** A sketch in the core's memory for the duration of a job, filled and emptied for one tensor after another. */
export class Sketch {
  readonly address: Address
  readonly #core: Core
  readonly #memory: CoreMemory
  /** The number of bytes that have been zeroed. Unneeded memory is never touched. */
  #emptyBytes = 0

  constructor(core: Core, memory: CoreMemory) {
    this.#core = core
    this.#memory = memory
    this.address = memory.reserveBytes(WIDE_SKETCH_BYTES)
  }

  /** Prepares it for elements of a dtype. */
  for(dtype: DType): this {
    const byteLength = bytesFor(dtype)
    const missing = byteLength - this.#emptyBytes
    if (missing > 0) {
      this.#memory.view((this.address + this.#emptyBytes) as Address, missing).fill(0)
      this.#emptyBytes = byteLength
    }
    return this
  }

  /**
   * Returns the counts and empties the sketch.
   * @param row the moments of these elements, so that only the counters between their extremes are read. Default: all are
   * @returns pairs of a bucket and its count, ascending
   */
  take(dtype: DType, row?: Float64Array): Float64Array<ArrayBuffer> {
    const [least = 0, greatest = 0, nans = 1] = row
      ? [row[MOMENT_INDEX.minAbs], row[MOMENT_INDEX.maxAbs], row[MOMENT_INDEX.nanCount]]
      : []
    const most = nans > 0 ? Number.POSITIVE_INFINITY : greatest
    return this.#memory.scoped(() => {
      const out = this.#memory.reserveBytes(bytesFor(dtype))
      const pairs = this.#core.sketchTake(dtypeNumber(dtype), this.address, least, most, out) >>> 0
      return this.#memory.doubles(out, 2 * pairs).slice()
    })
  }
}

/** The number of bytes for a dtype: 64-bit elements have eight times as many counters. */
function bytesFor(dtype: DType): number {
  return elementByteLength(dtype) < 8 ? NARROW_SKETCH_BYTES : WIDE_SKETCH_BYTES
}
