/** Surveys list the content of records without index entries, one slot per Value. */

import { RecordSlot } from './border/abi.js'
import type { Address, CoreMemory } from './border/memory.js'
import type { Core } from './border/module.js'
import type { Batch, Frame } from './slots.js'

export class Survey {
  readonly #core: Core
  readonly #memory: CoreMemory

  constructor(core: Core, memory: CoreMemory) {
    this.#core = core
    this.#memory = memory
  }

  /**
   * Follows the frames of consecutive records, verifies their checksums, and lists all their Values: one slot each, or one for a record
   * without Values. Stops at the first record that is incomplete in memory or has a bad header, and when the slots are used up.
   * @returns the number of slots; if it exceeds the batch's capacity, the only record has more Values, see `rest`
   */
  records(batch: Batch, window: Address, byteLength: number, tornasole: boolean): number {
    this.#words(batch)[RecordSlot.askedTornasole / 4] = tornasole ? 1 : 0
    return this.#core.surveyRecords(window, byteLength, batch.slots, batch.capacity) >>> 0
  }

  /** Continues with a record that has more Values than there are slots; fills the slots again. */
  rest(batch: Batch, payloadLength: number): number {
    return this.#core.surveyRest(batch.slots, batch.capacity, payloadLength) >>> 0
  }

  /** Lists the Values of a record of which only the head and possibly the tail are in memory. Doesn't check its frame. */
  sparse(
    batch: Batch,
    { address, byteLength }: Frame,
    payloadLength: number,
    tail: Address | 0,
    tailLength: number,
    tornasole: boolean,
  ): number {
    const words = this.#words(batch)
    words[RecordSlot.frame / 4] = address
    words[RecordSlot.frameLength / 4] = byteLength
    words[RecordSlot.askedTornasole / 4] = tornasole ? 1 : 0
    return this.#core.survey(batch.slots, batch.capacity, payloadLength, tail, tailLength) >>> 0
  }

  /**
   * Searches for the next valid header of a record that ends within the file.
   * @param remaining the number of bytes from the address to the end of the file
   * @returns its offset; without one, the first offset at which a header would be incomplete
   */
  findFrame(address: Address, byteLength: number, remaining: number): number {
    return this.#core.findFrame(address, byteLength, remaining) >>> 0
  }

  /** The first slot. */
  #words({ slots }: Batch): Uint32Array {
    return this.#memory.words(slots, RecordSlot.size / 4)
  }
}
