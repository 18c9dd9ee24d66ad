/**
 * The only file that turns the core's addresses into views. Views are made on demand and never kept: growing memory detaches all of them,
 * and no address outlives the job it was reserved for.
 */

import { QueryError } from '../../base/errors.js'
import type { Core } from './module.js'

/** The start of a reservation in the core's memory. Opaque outside the engine. */
export type Address = number & { readonly __address: never }

/** Texts in the core's memory, in UTF-8. */
export interface Texts {
  readonly addresses: Uint32Array
  readonly byteLengths: Uint32Array
}

/** The texts of records with any tag. */
export const NO_TEXTS: Texts = { addresses: new Uint32Array(0), byteLengths: new Uint32Array(0) }

const encoder = new TextEncoder()

export class CoreMemory {
  readonly #core: Core
  /** All of the memory, as of the last use. */
  #text: Buffer<ArrayBuffer> | undefined

  constructor(core: Core) {
    this.#core = core
  }

  /** Discards every reservation, at the start of a job. */
  reset(): void {
    this.#core.arenaReset()
  }

  /**
   * Reserves bytes until the next reset or release. Detaches every view.
   * @throws QueryError `ValueTooLarge` if the core's memory, of at most 4 GiB, can't grow that far
   */
  reserveBytes(byteLength: number): Address {
    // The core takes a length modulo 2^32.
    const address = byteLength < 2 ** 32 ? this.#core.arenaReserve(byteLength) >>> 0 : 0
    if (address !== 0) return address as Address
    const message = `expected no more than fits into 4 GiB of memory, got ${byteLength} more bytes: the memory cannot grow that far`
    throw new QueryError('ValueTooLarge', message, { byteLength })
  }

  /** Copies texts in. */
  writeTexts(texts: readonly string[]): Texts {
    // No character takes more bytes; the rest is given back.
    const most = texts.reduce((sum, { length }) => sum + 3 * length, 0)
    const start = this.reserveBytes(most)
    const view = this.view(start, most)
    const addresses = new Uint32Array(texts.length)
    const byteLengths = new Uint32Array(texts.length)
    let at = 0
    for (let i = 0; i < texts.length; i++) {
      // Encoded in place, since a buffer of its own would take four times as long.
      const { written } = encoder.encodeInto(texts[i]!, view.subarray(at))
      addresses[i] = start + at
      byteLengths[i] = written
      at += written
    }
    this.release((start + at) as Address)
    return { addresses, byteLengths }
  }

  /** Runs `work`, then discards everything reserved meanwhile. */
  scoped<T>(work: () => T): T {
    const mark = this.mark()
    try {
      return work()
    } finally {
      this.release(mark)
    }
  }

  /** Marks where reservations end, for `release`: like `scoped`, but for asynchronous work. */
  mark(): Address {
    return (this.#core.arenaMark() >>> 0) as Address
  }

  /** Discards what was reserved since the mark. */
  release(mark: Address): void {
    this.#core.arenaRelease(mark)
  }

  /** A view to read bytes into, valid until the next reservation or call of the core. */
  view(address: Address, byteLength: number): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.#buffer, address, byteLength)
  }

  /** Bytes as a string, one character per byte. */
  latin1(address: Address, byteLength: number): string {
    if (this.#text?.buffer !== this.#buffer) this.#text = Buffer.from(this.#buffer)
    return this.#text.toString('latin1', address, address + byteLength)
  }

  /** Four bytes as a number, at any address. */
  uint32(address: Address): number {
    return new DataView(this.#buffer).getUint32(address, true)
  }

  words(address: Address, length: number): Uint32Array<ArrayBuffer> {
    return new Uint32Array(this.#buffer, address, length)
  }

  doubles(address: Address, length: number): Float64Array<ArrayBuffer> {
    return new Float64Array(this.#buffer, address, length)
  }

  /** The whole memory: for many short reads, each of which would need a view. */
  get everything(): Float64Array<ArrayBuffer> {
    return new Float64Array(this.#buffer)
  }

  /** Bytes of memory the instance holds. */
  get byteLength(): number {
    return this.#buffer.byteLength
  }

  get #buffer(): ArrayBuffer {
    return this.#core.memory.buffer as ArrayBuffer
  }
}
