/** A file that keeps its small parts once they have been read. */

import type { RangedFile } from '../stored-tensor.js'

/** A file up to this length is read at once; of a longer one the end, where the directory of a ZIP lies. */
const WINDOW_BYTES = 128 << 10
/** The limit of bytes that are kept. */
const MAX_KEPT_BYTES = 8 << 20

export class WindowedFile {
  readonly url: string
  readonly byteLength: number
  readonly #file: RangedFile
  readonly #start: number
  readonly #kept: { readonly start: number; readonly bytes: Uint8Array }[] = []

  /** Keeps a file. @param start the start of the file within another that contains it */
  constructor(file: RangedFile, start = 0, byteLength = file.byteLength - start) {
    this.#file = file
    this.#start = start
    this.url = file.url
    this.byteLength = byteLength
  }

  /** These bytes, or fewer at the end of the file. The caller must not change them. @throws StoreError */
  async read(startByte: number, byteLength: number): Promise<Uint8Array> {
    const wanted = Math.max(0, Math.min(byteLength, this.byteLength - startByte))
    for (const { start, bytes } of this.#kept) {
      if (start <= startByte && startByte + wanted <= start + bytes.length) {
        return bytes.subarray(startByte - start, startByte - start + wanted)
      }
    }
    const isAtEnd = this.byteLength - startByte <= WINDOW_BYTES
    const from = isAtEnd ? Math.max(0, this.byteLength - WINDOW_BYTES) : startByte
    const length = isAtEnd ? this.byteLength - from : wanted
    const bytes = await this.#file.read(this.#start + from, length)
    if (length <= MAX_KEPT_BYTES) this.#kept.push({ start: from, bytes })
    return bytes.subarray(startByte - from, startByte - from + wanted)
  }
}
