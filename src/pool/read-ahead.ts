/**
 * The reads of a job, in order. From a store that answers at once each is made when it is its turn, into the one window
 * there is; from one that makes requests several are under way, each into a window of its own.
 */

import type { Engine } from '../engine/engine.js'
import type { Address } from '../engine/memory.js'
import { EngineError } from '../errors.js'
import type { Store } from '../store/store.js'

export interface JobRead {
  readonly store: Store
  readonly path: string
  readonly startByte: number
  readonly byteLength: number
}

/** Bytes that have come, or are to come. */
export interface Arrival {
  readonly window: Address
  /** How many there are. */
  readonly there: number | Promise<number>
}

export class ReadAhead {
  readonly #engine: Engine
  readonly #reads: readonly JobRead[]
  readonly #windows: readonly Address[]
  readonly #arrivals: Arrival[] = []
  #asked = 0
  #answered = 0
  #isOver = false

  /** @param byteLength of all windows together; there is one in any case */
  constructor(engine: Engine, reads: readonly JobRead[], byteLength: number) {
    this.#engine = engine
    this.#reads = reads
    const longest = reads.reduce((most, read) => Math.max(most, read.byteLength), 0)
    const isLater = reads.some(({ store }) => store.readLater !== undefined)
    const all = isLater ? reads.reduce((sum, read) => sum + read.byteLength, 0) : Number.POSITIVE_INFINITY
    // Each of its own length if there is room for all of them, else some of the greatest length in turns.
    const lengths =
      all <= byteLength
        ? reads.map(read => read.byteLength)
        : new Array<number>(isLater ? Math.max(1, Math.floor(byteLength / longest)) : 1).fill(longest)
    this.#windows = lengths.map(length => engine.reserveBytes(length))
  }

  /** The next read. Its window is its own until the one after it is asked for. Throws what a store throws at once. */
  next(): Arrival {
    const at = this.#answered++
    const { store } = this.#reads[at]!
    if (store.readLater === undefined) return this.#readNow(at)
    // The window of the read before is free by now.
    while (this.#asked < Math.min(this.#reads.length, at + this.#windows.length)) this.#ask(this.#asked++)
    const arrival = this.#arrivals[at]!
    delete this.#arrivals[at]
    return arrival
  }

  /** Whatever is still to come must not be written to memory that is somebody else's by then. */
  end(): void {
    this.#isOver = true
  }

  #readNow(at: number): Arrival {
    const { store, path, startByte, byteLength } = this.#reads[at]!
    const window = this.#window(at)
    this.#asked = Math.max(this.#asked, at + 1)
    return { window, there: store.readInto(path, startByte, this.#engine.view(window, byteLength)) }
  }

  #ask(at: number): void {
    const { store, path, startByte, byteLength } = this.#reads[at]!
    if (store.readLater === undefined) return
    const window = this.#window(at)
    const there = store.readLater(path, startByte, byteLength, () => {
      if (this.#isOver) throw new EngineError('a read came in after its job had ended')
      return this.#engine.view(window, byteLength)
    })
    there.catch(() => {})
    this.#arrivals[at] = { window, there }
  }

  #window(at: number): Address {
    return this.#windows[at % this.#windows.length]!
  }
}
