/** Elements counted by their leading bits while their moments are computed (assembly/kernel/sketch.ts). */

import type { DType } from '../../types.js'
import { NARROW_SKETCH_BYTES, WIDE_SKETCH_BYTES } from '../border/abi.js'
import type { Address, CoreMemory } from '../border/memory.js'
import type { Core } from '../border/module.js'
import { dtypeNumber, elementByteLength } from '../dtype.js'
import { MOMENT_INDEX } from '../moments-row.js'

/** A sketch in the core's memory, for the length of a job: filled and taken for one tensor after the other. */
export class Sketch {
  readonly address: Address
  readonly #core: Core
  readonly #memory: CoreMemory
  readonly #byteLength: number

  /** @param dtype of all tensors, if it is one */
  constructor(core: Core, memory: CoreMemory, dtype?: DType) {
    this.#core = core
    this.#memory = memory
    const isNarrow = dtype !== undefined && elementByteLength(dtype) < 8
    this.#byteLength = isNarrow ? NARROW_SKETCH_BYTES : WIDE_SKETCH_BYTES
    this.address = memory.reserveBytes(this.#byteLength)
    memory.view(this.address, this.#byteLength).fill(0)
  }

  /**
   * Takes what was counted, which empties it.
   * @param row the moments of these elements, so that only the counters between their extremes are looked at. Default: all are
   * @returns pairs of a bucket and its count, in ascending order
   */
  take(dtype: DType, row?: Float64Array): Float64Array<ArrayBuffer> {
    const [least = 0, greatest = 0, nans = 1] = row
      ? [row[MOMENT_INDEX.minAbs], row[MOMENT_INDEX.maxAbs], row[MOMENT_INDEX.nanCount]]
      : []
    const most = nans > 0 ? Number.POSITIVE_INFINITY : greatest
    return this.#memory.scoped(() => {
      const out = this.#memory.reserveBytes(this.#byteLength)
      const pairs = this.#core.sketchTake(dtypeNumber(dtype), this.address, least, most, out) >>> 0
      return this.#memory.doubles(out, 2 * pairs).slice()
    })
  }
}
