/**
 * The only file that turns the core's addresses into views. A view is made when asked for and never kept: growing
 * memory detaches every one of them, and no address outlives the job it was reserved for.
 */

import { EngineError } from '../errors.js'
import type { Core } from './module.js'

/** Where a reservation starts in the core's memory. Opaque outside the engine. */
export type Address = number & { readonly __address: never }

export class CoreMemory {
  readonly #core: Core
  /** All of the memory as it was when last asked for. */
  #text: Buffer<ArrayBuffer> | undefined

  constructor(core: Core) {
    this.#core = core
  }

  /** Forgets every reservation. */
  reset(): void {
    this.#core.arenaReset()
  }

  /** Reserves bytes until the next reset or release. Detaches every view. */
  reserve(byteLength: number): Address {
    const address = this.#core.arenaReserve(byteLength) >>> 0
    if (address === 0) throw new EngineError(`expected room for ${byteLength} bytes, but the core's memory can't grow`)
    return address as Address
  }

  /** Runs `work` and forgets what was reserved meanwhile. */
  scoped<T>(work: () => T): T {
    const mark = this.mark()
    try {
      return work()
    } finally {
      this.release(mark)
    }
  }

  mark(): Address {
    return (this.#core.arenaMark() >>> 0) as Address
  }

  release(mark: Address): void {
    this.#core.arenaRelease(mark)
  }

  bytes(address: Address, byteLength: number): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.#buffer, address, byteLength)
  }

  /** Bytes as a string of as many characters. */
  latin1(address: Address, byteLength: number): string {
    if (this.#text?.buffer !== this.#buffer) this.#text = Buffer.from(this.#buffer)
    return this.#text.toString('latin1', address, address + byteLength)
  }

  words(address: Address, length: number): Uint32Array<ArrayBuffer> {
    return new Uint32Array(this.#buffer, address, length)
  }

  doubles(address: Address, length: number): Float64Array<ArrayBuffer> {
    return new Float64Array(this.#buffer, address, length)
  }

  get #buffer(): ArrayBuffer {
    return this.#core.memory.buffer as ArrayBuffer
  }
}
