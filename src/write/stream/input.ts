/** Reads a stream of bytes line by line, or by length. */

import { shown } from '../../base/arguments.js'
import { UsageError } from '../../base/errors.js'

/** A source of bytes: a file, a pipe, a socket, an array of pieces. */
export type ByteInput = AsyncIterable<Uint8Array | string> | Iterable<Uint8Array | string>

const NEWLINE = 0x0a

/** The kinds of input, for messages. */
export const STREAM = 'a stream of bytes, or an array of Uint8Arrays or texts'

export function isByteInput(given: unknown): given is ByteInput {
  if (typeof given !== 'object' || given === null || ArrayBuffer.isView(given)) return false
  return Symbol.asyncIterator in given || Symbol.iterator in given
}

/** Reads from an input, no further ahead than the piece that contains the requested bytes. */
export class InputReader {
  readonly #pieces: AsyncIterator<Uint8Array | string> | Iterator<Uint8Array | string>
  readonly #aborted: Promise<null>
  /** Bytes that were received but not yet read. */
  #rest: Uint8Array = new Uint8Array(0)
  #isEnded = false

  /** @param signal ends the input */
  constructor(input: ByteInput, signal?: AbortSignal) {
    this.#pieces = Symbol.asyncIterator in input ? input[Symbol.asyncIterator]() : input[Symbol.iterator]()
    this.#aborted = new Promise(resolve => {
      if (signal?.aborted) resolve(null)
      signal?.addEventListener('abort', () => resolve(null), { once: true })
    })
  }

  /** Reads a line, without its end. @returns null at the end of the input; undefined if the line is longer than `maxByteLength` */
  async line(maxByteLength: number): Promise<Uint8Array | null | undefined> {
    // Pieces can be single bytes, which as objects take a hundred bytes each: they are copied together.
    let gathered = new Uint8Array(0)
    let byteLength = 0
    for (;;) {
      const end = this.#rest.indexOf(NEWLINE)
      const part = end < 0 ? this.#rest : this.#rest.subarray(0, end)
      if (byteLength + part.length > maxByteLength) return undefined
      if (byteLength === 0) gathered = part as Uint8Array<ArrayBuffer>
      else {
        gathered = longer(gathered, byteLength, byteLength + part.length)
        gathered.set(part, byteLength)
      }
      byteLength += part.length
      if (end >= 0) {
        this.#rest = this.#rest.subarray(end + 1)
        break
      }
      if (await this.#more()) continue
      if (byteLength === 0) return null
      this.#rest = new Uint8Array(0)
      break
    }
    return gathered.subarray(0, byteLength)
  }

  /** Reads a number of bytes, fewer only at the end of the input. The caller owns them. */
  async bytes(byteLength: number): Promise<Uint8Array> {
    const bytes = new Uint8Array(byteLength)
    let filled = 0
    for (;;) {
      const part = this.#rest.subarray(0, byteLength - filled)
      bytes.set(part, filled)
      filled += part.length
      this.#rest = this.#rest.subarray(part.length)
      if (filled === byteLength || !(await this.#more())) return bytes.subarray(0, filled)
    }
  }

  /** Skips a number of bytes. */
  async skip(byteLength: number): Promise<void> {
    for (let remaining = byteLength; ; ) {
      const part = Math.min(remaining, this.#rest.length)
      this.#rest = this.#rest.subarray(part)
      remaining -= part
      if (remaining === 0 || !(await this.#more())) return
    }
  }

  /** Tells the source that no more is wanted. */
  close(): void {
    // An input that waits for its next piece would answer only when that arrives.
    Promise.resolve(this.#pieces.return?.()).catch(() => {})
  }

  async #more(): Promise<boolean> {
    if (this.#isEnded) return false
    const piece = await Promise.race([this.#pieces.next(), this.#aborted])
    if (piece === null || piece.done === true) {
      this.#isEnded = true
      return false
    }
    if (typeof piece.value !== 'string' && !(piece.value instanceof Uint8Array)) {
      throw new UsageError(`recordStream: expected ${STREAM}, got ${shown(piece.value)} in it`, {
        call: 'recordStream',
      })
    }
    this.#rest = typeof piece.value === 'string' ? Buffer.from(piece.value) : piece.value
    return true
  }
}

/** A buffer with room for more bytes, which begins with the given ones: a new buffer, if the old one is full. */
function longer(bytes: Uint8Array<ArrayBuffer>, byteLength: number, needed: number): Uint8Array<ArrayBuffer> {
  if (needed <= bytes.length) return bytes
  const longer = new Uint8Array(Math.max(needed, 2 * bytes.length, 1 << 10))
  longer.set(bytes.subarray(0, byteLength))
  return longer
}
