/**
 * The reads of a job, in order. If the store answers at once, each read is made when it is due, into the only window or into several in
 * turn. If it makes requests, several are in progress, each into a window of its own.
 */

import { EngineError } from '../../../base/errors.js'
import type { Address } from '../../../core/border/memory.js'
import type { Engine } from '../../../core/engine.js'
import { type ByteSource, isRemote } from '../../../storage/store.js'

export interface JobRead {
  readonly store: ByteSource
  readonly path: string
  readonly startByte: number
  readonly byteLength: number
}

/** Bytes that have arrived, or will. */
export interface Arrival {
  readonly window: Address
  /** The number of bytes in the window. */
  readonly available: number | Promise<number>
}

export interface ReadAheadOptions {
  /** The number of bytes of all windows together, if several reads are in progress; there is always room for those in use. */
  readonly byteLength: number
  /** The number of windows that stay valid after the next read; at most 1 if reads are requests. Default: 0. */
  readonly kept?: number
}

export class ReadAhead {
  readonly #engine: Engine
  readonly #reads: readonly JobRead[]
  /** The windows are cut from this region in the order of the reads, as in a ring buffer. */
  readonly #region: Address
  readonly #byteLength: number
  readonly #arrivals: Arrival[] = []
  /** The windows in use, oldest first, by their place in the region. */
  readonly #taken: { readonly start: number; readonly end: number }[] = []
  /** The number of windows that stay valid after their read. */
  readonly #kept: number
  /** The distance of windows if each read is made when it is due; otherwise null. */
  readonly #apart: number | null
  #requests = 0
  #answered = 0
  #isOver = false

  constructor(engine: Engine, reads: readonly JobRead[], { byteLength, kept = 0 }: ReadAheadOptions) {
    this.#engine = engine
    this.#reads = reads
    const longest = reads.reduce((most, read) => Math.max(most, read.byteLength), 0)
    const isAnyRemote = reads.some(({ store }) => isRemote(store))
    const all = isAnyRemote ? reads.reduce((sum, read) => sum + read.byteLength, 0) : 0
    this.#kept = kept
    this.#apart = isAnyRemote ? null : longest
    // Three times the longest window leaves room beside a window at any place.
    const atLeast = (kept + (isAnyRemote && kept > 0 ? 2 : 1)) * longest
    this.#byteLength = Math.max(atLeast, Math.min(all, byteLength))
    this.#region = engine.reserveBytes(this.#byteLength)
  }

  /**
   * The next read. Its window is valid until the following read is requested, or the one after the kept ones. Throws the store's
   * synchronous errors.
   */
  next(): Arrival {
    const at = this.#answered++
    if (at > this.#kept) this.#taken.shift()
    // Reads without room are made later.
    while (
      this.#requests < this.#reads.length &&
      (this.#requests <= at || isRemote(this.#reads[this.#requests]!.store))
    ) {
      const window = this.#place(this.#reads[this.#requests]!.byteLength)
      if (window === null) break
      this.#arrivals[this.#requests] = this.#ask(this.#reads[this.#requests++]!, window)
    }
    const arrival = this.#arrivals[at]!
    delete this.#arrivals[at]
    return arrival
  }

  /** Ends the reads: bytes that arrive later must not be written to memory that belongs to another job. */
  end(): void {
    this.#isOver = true
  }

  #ask({ store, path, startByte, byteLength }: JobRead, window: Address): Arrival {
    if (!isRemote(store)) {
      return { window, available: store.readInto(path, startByte, this.#engine.view(window, byteLength)) }
    }
    const available = store.readLater(path, startByte, byteLength, () => {
      if (this.#isOver) throw new EngineError('a read came in after its job had ended')
      return this.#engine.view(window, byteLength)
    })
    available.catch(() => {})
    return { window, available }
  }

  /** A window after the newest one, or at the start of the region if there is no room; null: not yet. */
  #place(byteLength: number): Address | null {
    if (this.#apart !== null) return (this.#region + (this.#requests % (this.#kept + 1)) * this.#apart) as Address
    const eldest = this.#taken[0]
    const youngest = this.#taken.at(-1)
    let start = youngest?.end ?? 0
    const isWrapped = eldest !== undefined && youngest!.end <= eldest.start && this.#taken.length > 1
    if (isWrapped ? start + byteLength > eldest.start : start + byteLength > this.#byteLength) {
      if (isWrapped || (eldest !== undefined && byteLength > eldest.start)) return null
      start = 0
    }
    this.#taken.push({ start, end: start + byteLength })
    return (this.#region + start) as Address
  }
}
