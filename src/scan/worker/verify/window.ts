/** A window over an event file, in the core's memory: it moves forward, and keeps the bytes that it still covers. */

import type { Address } from '../../../core/border/memory.js'
import type { Engine } from '../../../core/engine.js'
import type { Store } from '../../../storage/store.js'

export class FileWindow {
  /** The length of the file; reduced if the file has become shorter. */
  fileLength: number
  readBytes = 0
  /** The start of the window in the file, and the number of bytes in it. */
  start = 0
  held = 0
  readonly address: Address
  readonly byteLength: number
  readonly path: string
  readonly #engine: Engine
  readonly #store: Store

  constructor(
    engine: Engine,
    store: Store,
    { path, fileLength, address, byteLength }: Pick<FileWindow, 'path' | 'fileLength' | 'address' | 'byteLength'>,
  ) {
    this.#engine = engine
    this.#store = store
    this.path = path
    this.fileLength = fileLength
    this.address = address
    this.byteLength = byteLength
  }

  get end(): number {
    return this.start + this.held
  }

  /** True if the window holds these bytes of the file. */
  holds(at: number, byteLength: number): boolean {
    return at >= this.start && at + byteLength <= this.end
  }

  /** The address of a byte of the file, which the window must hold. */
  addressOf(at: number): Address {
    return (this.address + at - this.start) as Address
  }

  /** Moves the window so that it begins at a byte of the file, or before. */
  async fill(at: number): Promise<void> {
    const kept = this.end - at
    const isKept = at >= this.start && kept > 0
    if (isKept && at > this.start) {
      this.#engine.view(this.address, this.held).copyWithin(0, at - this.start, this.held)
    }
    this.start = at
    this.held = isKept ? kept : 0
    const wanted = Math.min(this.byteLength, this.fileLength - at) - this.held
    if (wanted <= 0) return
    const available = await this.read(this.end, (this.address + this.held) as Address, wanted)
    this.held += available
    if (available < wanted) this.fileLength = this.end
  }

  /** Reads to any address. @returns the number of bytes read */
  async read(startByte: number, address: Address, byteLength: number): Promise<number> {
    const available = await this.#store.readInto(this.path, startByte, this.#engine.view(address, byteLength))
    this.readBytes += available
    return available
  }
}
