/** A store of one file that is in memory. */

import { StoreError } from '#dist/base/errors.js'
import type { Store, StoreSpec, Watcher } from '#dist/storage/store.js'

export class MemoryStore implements Store {
  readonly spec: StoreSpec = { kind: 'local', root: '/nowhere' }
  readonly #content: Uint8Array

  constructor(content: Uint8Array) {
    this.#content = content
  }

  async open(): Promise<void> {}

  url(path: string): string {
    return `memory:${path}`
  }

  async list(): Promise<string[]> {
    return ['file']
  }

  async exists(): Promise<boolean> {
    return true
  }

  async read(): Promise<Uint8Array> {
    return this.#content
  }

  readInto(path: string, startByte: number, view: Uint8Array): number {
    // As the real ones: a place that is none is refused.
    if (!Number.isSafeInteger(startByte) || startByte < 0) {
      throw new StoreError('Unavailable', `${this.url(path)}: no byte ${startByte}`, { url: this.url(path) })
    }
    const piece = this.#content.subarray(startByte, startByte + view.length)
    view.set(piece)
    return piece.length
  }

  async stamps(): Promise<Float64Array> {
    return new Float64Array(3)
  }

  async byteLength(): Promise<number> {
    return this.#content.length
  }

  watch(): Watcher {
    return { changed: () => new Promise(() => {}), close() {} }
  }

  async close(): Promise<void> {}
}
